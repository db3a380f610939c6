/* SPDX-License-Identifier: MIT */
/* ram.h - data of the example backend: lists that are searched one by one. */
#ifndef RAM_H
#define RAM_H

#ifndef NG_ABI
#define NG_ABI 1
#endif
#include <pthread.h>
#include <string.h>

#include <notegate/backend.h>

/* One revision of a document. Its texts and fields lie behind it, in the same allocation. */
struct revision {
    struct revision *later;  /* the next change of the store, or NULL */
    struct revision *before; /* of the same document, or NULL */
    struct ng_doc doc;
    struct ng_str tool, event_data;
    bool quiet;
    struct ng_field_value *fields;
    size_t field_count;
};

struct document {
    struct document *next;
    struct revision *newest;
};

struct answer {
    struct answer *next;
    struct ng_answer kept;
};

/* A declared collection. Its names and fields lie behind it. */
struct collection {
    struct collection *next;
    struct ng_str name;
    struct field {
        struct ng_str name;
        enum ng_field_use use;
    } * fields;
    size_t field_count;
};

struct ram {
    const struct ng_host *host;
    pthread_mutex_t lock; /* recursive: a row's function may read again */
    struct document *documents;
    struct revision *first, *last; /* in the order of seq */
    struct answer *answers;
    struct collection *collections;
    uint64_t seq;
};

static inline bool same(struct ng_str a, struct ng_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* With the lock. NULL: it is not declared. */
const struct collection *ram_collection(const struct ram *ram, struct ng_str name);

int ram_query(void *db, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
              void *user, uint64_t *ret_total);

#endif
