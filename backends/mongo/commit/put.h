/* SPDX-License-Identifier: MIT */
/* put.h - shared by put.c (one document) and commit.c (transactions). */
#ifndef NOTEGATE_MONGO_PUT_H
#define NOTEGATE_MONGO_PUT_H

#include "commit.h"

/* The next state of one document: one queued put, or several of them that follow each other.
 * Points into the batches of the jobs. */
struct put {
    const struct prepared *prepared;
    char batch[PUT_ID_MAX]; /* the id of its last one */
    char base[PUT_ID_MAX];  /* of the queued put that it is based on; "": by revision alone */
    const struct ng_put *first, *last, *creator;
    bson_t outbox;
    uint64_t outbox_bytes, stamp;
    uint32_t count;
    bool inserts;
    bool landed;   /* an earlier attempt made it */
    bson_t change; /* the update, or the document to insert */
};

/* It stores nothing and only checks the revision. */
static inline bool put_is_condition(const struct put *put)
{
    return put->first->revision == put->first->base_revision;
}

/* last: the last of the puts that will be added. */
void put_begin(struct mongo *db, struct put *put, const struct prepared *prepared,
               const struct ng_put *last);
void put_add(struct mongo *db, struct put *put, const struct ng_put *next,
             const unsigned char hash[HASH_BYTES]);
/* Makes the update or the document, with all puts that were added. */
int put_make(struct put *put, bool inserts, struct fault *fault);
void put_end(struct put *put);
/* Whether the stored document, or NULL, is what the put is based on. */
bool put_fits(const struct put *put, const bson_t *doc);
/* The filter of its document, in any state or as it is based on. */
bson_t *put_filter(const struct put *put, bool of_base);
/* Whether the batch made the newest revision of the document or one in its outbox. */
bool doc_is_of(const bson_t *doc, const char *batch);
/* Whether the batch made the revision, as its event says. */
int event_is_of(struct mongo *db, struct session *session, const char *collection,
                struct ng_str document, uint64_t revision, const char *batch, bool *ret,
                struct fault *fault);

#endif
