/* SPDX-License-Identifier: MIT */
/* read.h - documents, revisions, queries, searches and the feed of changes. */
#ifndef NOTEGATE_MONGO_READ_H
#define NOTEGATE_MONGO_READ_H

#include "../index/indexes.h"

#define CREATED_SEQ "notegate.created_seq"
#define REVISION "notegate.revision"

/* ---- versions.c ---- */

/* The content at one revision, kept while walking the revisions of a document. */
struct state {
    uint64_t revision; /* 0: nothing loaded */
    struct bytes json, text;
};
int state_apply(struct state *state, const bson_t *version);
void state_done(struct state *state);
/* Calls each() for the kept versions of [from, to], ascending or descending, including those
 * still in the outbox of `doc` (or NULL). */
int versions_each(struct mongo *db, const char *collection, struct ng_str name,
                  const bson_t *doc, const struct ng_range *range, op_each_fn *each, void *user,
                  struct fault *fault);
int version_load(struct mongo *db, const char *collection, struct ng_str name,
                 const bson_t *doc, uint64_t revision, struct state *state,
                 struct fault *fault);
/* Stores the version whole, as the one before it is removed. */
int version_make_whole(struct mongo *db, const char *collection, struct ng_str name,
                       uint64_t revision, struct fault *fault);
/* Adds the origin of a version, its tool and the data of its event. Points into it. */
void version_origin(const bson_t *version, struct ng_doc *ret);
void version_row(const bson_t *version, const struct ng_key *key, struct ng_doc *ret);

/* ---- adopt.c ---- */

/* As doc_load(); an entry that another program changed is its next revision from here on. */
int entry_load(struct mongo *db, const struct db_collection *collection, struct ng_str space,
               struct ng_str name, bool confirmed, bson_t **ret, struct fault *fault);

/* ---- read.c ---- */

/* The newest state on the server. NG_ENOTFOUND: never existed. confirmed: after an election,
 * too. Then a new primary shows to other reads for a moment less than a majority has. */
int doc_load(struct mongo *db, const struct db_collection *collection, struct ng_str space,
             struct ng_str name, bool confirmed, bson_t **ret, struct fault *fault);
int read_confirm(void *self, struct ng_call *call, const struct ng_key *key, ng_row_fn *row,
                 void *user);
int read_get(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
             ng_row_fn *row, void *user);
int read_history(void *self, struct ng_call *call, const struct ng_key *key,
                 const struct ng_range *range, ng_row_fn *row, void *user);
void event_row(const bson_t *from, struct ng_event *ret);
int read_changes(void *self, struct ng_call *call, uint64_t since, uint32_t limit,
                 ng_event_fn *event, void *user);

/* ---- revision_at.c ---- */

int read_revision_at(void *self, struct ng_call *call, const struct ng_key *key, uint64_t seq,
                     int64_t time_ms, struct ng_kept *ret);

/* ---- query.c, terms.c ---- */

int terms_check(struct ng_call *call, const struct db_collection *collection,
                const struct ng_query *query);
/* The time limit of a read on the server: that of the call, at most mongo.timeout. */
void add_time_limit(bson_t *opts, const struct mongo *db, struct ng_call *call);
/* The members of a document that its row is made of; the text is not read without need. */
void add_row_fields(bson_t *opts, const struct db_collection *collection, bool with_text);
/* The order of a query; ties by creation. */
void add_sort(bson_t *opts, const struct db_collection *collection,
              const struct ng_query *query);
/* The filter of a query. false: nothing can match. */
bool terms_filter(const struct db_collection *collection, const struct ng_query *query,
                  bson_t *ret);
const char *sort_path(const struct db_collection *collection, struct ng_str sort);
int query_run(void *self, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
              void *user, uint64_t *ret_total);

/* ---- search.c ---- */

int search_run(void *self, struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
               void *user, uint64_t *ret_total);
const char *search_engine(void *self, const struct ng_search *search);

#endif
