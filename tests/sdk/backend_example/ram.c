/* SPDX-License-Identifier: MIT */
/* ram - documents in a list in memory, the newest revision only: the smallest backend that
 * works. Queries list a space in the order of creation; conditions it refuses. */
#ifndef NG_ABI
#define NG_ABI 1
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <notegate/backend.h>

struct item {
    struct item *next;
    struct ng_doc doc; /* its strings are one allocation, `bytes` */
    char *bytes;
};

struct ram {
    pthread_mutex_t lock;
    struct item *first; /* in the order of creation */
    uint64_t seq;
};

static bool same(struct ng_str a, struct ng_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static struct item *find(struct ram *ram, const struct ng_key *key)
{
    struct item *item = ram->first;
    while (item != NULL &&
           !(same(item->doc.key.id, key->id) && same(item->doc.key.space, key->space) &&
             same(item->doc.key.collection, key->collection))) {
        item = item->next;
    }
    return item;
}

static int ram_open(struct ng_call *call, const struct ng_conf *conf, void **ret_db)
{
    (void)conf;
    struct ram *ram = calloc(1, sizeof(*ram));
    if (ram == NULL || pthread_mutex_init(&ram->lock, NULL) != 0) {
        free(ram);
        return ng_fail(call, NG_EINTERNAL, "no memory for the store");
    }
    *ret_db = ram;
    return NG_OK;
}

static void ram_close(void *db)
{
    struct ram *ram = db;
    if (ram == NULL) {
        return;
    }
    while (ram->first != NULL) {
        struct item *item = ram->first;
        ram->first = item->next;
        free(item->bytes);
        free(item);
    }
    pthread_mutex_destroy(&ram->lock);
    free(ram);
}

static int ram_declare(void *db, struct ng_call *call, const struct ng_collection *collection)
{
    (void)db;
    (void)call;
    (void)collection;
    return NG_OK;
}

/* Copies what the batch lends. NULL: no memory. */
static struct item *item_new(const struct ng_put *put)
{
    const struct ng_str parts[] = {put->key.collection, put->key.space, put->key.id, put->json,
                                   put->text,           put->agent,     put->action};
    struct ng_str copies[NG_COUNT(parts)];
    size_t size = 1;
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        size += parts[i].len;
    }
    struct item *item = calloc(1, sizeof(*item));
    char *at = malloc(size);
    if (item == NULL || at == NULL) {
        free(item);
        free(at);
        return NULL;
    }
    item->bytes = at;
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        if (parts[i].len > 0) {
            memcpy(at, parts[i].data, parts[i].len);
        }
        copies[i].data = at;
        copies[i].len = parts[i].len;
        at += parts[i].len;
    }
    item->doc.size = sizeof(item->doc);
    item->doc.key.collection = copies[0];
    item->doc.key.space = copies[1];
    item->doc.key.id = copies[2];
    item->doc.json = copies[3];
    item->doc.text = copies[4];
    item->doc.author = copies[5];
    item->doc.action = copies[6];
    item->doc.text_size = put->text.len;
    item->doc.revision = put->revision;
    item->doc.deleted = put->deleted;
    item->doc.created_ms = put->created_ms;
    item->doc.updated_ms = put->time_ms;
    return item;
}

static void store(struct ram *ram, struct ng_put *put, struct item *item)
{
    struct item *old = find(ram, &put->key);
    put->seq = item->doc.seq = ++ram->seq;
    bool keeps = old != NULL && put->created_seq == NG_SEQ_KEEP;
    item->doc.created_seq = keeps ? old->doc.created_seq : put->seq;
    if (keeps) { /* it stays in its place */
        struct item swap = *old;
        struct item *next = old->next;
        *old = *item;
        old->next = next;
        free(swap.bytes);
        free(item);
        return;
    }
    struct item **at = &ram->first;
    while (*at != NULL) {
        if (*at == old) {
            *at = old->next;
            free(old->bytes);
            free(old);
        } else {
            at = &(*at)->next;
        }
    }
    *at = item;
}

/* All conditions and all memory first, then nothing can fail any more. */
static int apply(struct ram *ram, struct ng_batch *batch)
{
    for (size_t i = 0; i < batch->put_count; i++) {
        const struct item *item = find(ram, &batch->puts[i]->key);
        if ((item != NULL ? item->doc.revision : 0) != batch->puts[i]->base_revision) {
            batch->failed_put = i;
            (void)snprintf(batch->error, sizeof(batch->error),
                           "the document is at another revision");
            return NG_ECONFLICT;
        }
    }
    struct item **items = calloc(batch->put_count + 1, sizeof(struct item *));
    bool ok = items != NULL;
    for (size_t i = 0; i < batch->put_count && ok; i++) {
        items[i] = item_new(batch->puts[i]);
        ok = items[i] != NULL;
    }
    for (size_t i = 0; items != NULL && i < batch->put_count; i++) {
        const struct ng_put *put = batch->puts[i];
        if (ok && put->revision != put->base_revision) {
            store(ram, batch->puts[i], items[i]);
        } else if (items[i] != NULL) {
            free(items[i]->bytes);
            free(items[i]);
        }
    }
    free(items);
    if (!ok) {
        (void)snprintf(batch->error, sizeof(batch->error), "no memory for the change");
    }
    return ok ? NG_OK : NG_EINTERNAL;
}

static int ram_commit(void *db, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    struct ram *ram = db;
    pthread_mutex_lock(&ram->lock);
    int rc = apply(ram, batch);
    pthread_mutex_unlock(&ram->lock);
    done(user, batch, rc);
    return NG_OK;
}

static int ram_get(void *db, struct ng_call *call, const struct ng_key *key, uint64_t revision,
                   ng_row_fn *row, void *user)
{
    struct ram *ram = db;
    pthread_mutex_lock(&ram->lock);
    const struct item *item = find(ram, key);
    bool found = item != NULL && (revision == 0 || revision == item->doc.revision);
    if (found) {
        (void)row(user, &item->doc);
    }
    pthread_mutex_unlock(&ram->lock);
    return found ? NG_OK : ng_fail(call, NG_ENOTFOUND, "there is no such document");
}

static int ram_query(void *db, struct ng_call *call, const struct ng_query *query,
                     ng_row_fn *row, void *user, uint64_t *ret_total)
{
    struct ram *ram = db;
    uint64_t total = 0;
    uint32_t given = 0;
    bool stop = false;
    if (query->term_count > 0 || query->sort.len > 0 || query->space.data == NULL) {
        return ng_fail(call, NG_EINVAL, "this store only lists one space, as it was written");
    }
    pthread_mutex_lock(&ram->lock);
    for (const struct item *item = ram->first; item != NULL; item = item->next) {
        if (!same(item->doc.key.collection, query->collection) ||
            !same(item->doc.key.space, query->space) ||
            (item->doc.deleted && !query->with_deleted)) {
            continue;
        }
        if (total++ >= query->offset && given < query->limit && !stop) {
            given++;
            stop = row(user, &item->doc) != 0;
        }
    }
    pthread_mutex_unlock(&ram->lock);
    if (query->want_total && ret_total != NULL) {
        *ret_total = total;
    }
    return NG_OK;
}

static int ram_history(void *db, struct ng_call *call, const struct ng_key *key,
                       const struct ng_range *range, ng_row_fn *row, void *user)
{
    return range->limit == 0 ? NG_OK : ram_get(db, call, key, 0, row, user);
}

static int ram_changes(void *db, struct ng_call *call, uint64_t since, uint32_t limit,
                       ng_event_fn *event, void *user)
{
    (void)db;
    (void)since;
    (void)limit;
    (void)event;
    (void)user;
    return ng_fail(call, NG_EUNAVAILABLE, "this store keeps no events");
}

static int ram_answer(void *db, struct ng_call *call, struct ng_str scope,
                      struct ng_answer *ret)
{
    (void)db;
    (void)scope;
    (void)ret;
    return ng_fail(call, NG_ENOTFOUND, "this store keeps no answers");
}

static const struct ng_documents ram_documents = {
    .name = "ram",
    .version = "1.0.0",
    .flags = NG_DOCUMENTS_MEMORY,
    .open = ram_open,
    .close = ram_close,
    .declare = ram_declare,
    .commit = ram_commit,
    .get = ram_get,
    .query = ram_query,
    .history = ram_history,
    .changes = ram_changes,
    .answer = ram_answer,
};

NG_EXPORT_DOCUMENTS(ram_documents);
