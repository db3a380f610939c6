/* SPDX-License-Identifier: MIT */
/*
 * journal_documents.h - the journal kept in documents.
 *
 * One document per line of a day's list, per reference and per memory, all in quiet
 * collections. Each belongs to a generation of its space; the space's pointer document names
 * the one that is read. So a restore writes a new generation beside the present one and becomes
 * true in one step, by moving the pointer.
 */
#ifndef NOTEGATE_CORE_JOURNAL_DOCUMENTS_H
#define NOTEGATE_CORE_JOURNAL_DOCUMENTS_H

#include <pthread.h>

#include "core/store/store.h"
#include "journal_zone.h"
#include "notegate/journal.h"

#define JOURNAL_DAYS "journal_days"
#define JOURNAL_REFERENCES "journal_references"
#define JOURNAL_MEMORY "journal_memory"
#define JOURNAL_SUMMARIES "journal_summaries"
#define JOURNAL_CHECKPOINTS "journal_checkpoints"
#define JOURNAL_STATE "journal_state" /* pointers of spaces, and the delivery's cursor */

/* Rows of one answer at most, and where the caller names no limit. */
#define JOURNAL_ROWS_MAX 1000
#define JOURNAL_ROWS_DEFAULT 100

struct journal_documents {
    struct store *store;
    const struct journal_zone *zone;
    /* Restores and dumps of this process take turns. What writes holds the generation. */
    pthread_mutex_t lock;
};

/* The generation of a space that is read now, and the revision of its pointer. */
struct journal_generation {
    uint64_t number;
    uint64_t pointer_revision;
    uint64_t last;               /* the highest that was ever read or kept */
    const struct ng_value *kept; /* {id: generation}: those that stay beside it; or NULL */
};

/* Declares the collections. The store must outlive it; zone is lent for good. */
int journal_documents_open(struct call *call, struct store *store,
                           const struct journal_zone *zone, struct journal_documents **ret);
void journal_documents_close(struct journal_documents *journal);
/* Its functions; the handle is the struct journal_documents. */
const struct ng_journal *journal_documents_vtable(void);

/* A restore by another gateway moves what is written to: so often it is looked up again. */
#define JOURNAL_TRIES 8

/* journal_append.c: see struct ng_journal. */
int journal_documents_deliver(void *journal, struct ng_call *call,
                              const struct ng_entry *const *entries, size_t count);

/* ---- between journal_documents.c and journal_snapshot.c ---- */

/* The collections as they are declared. */
int journal_declare(struct store *store, struct call *call);
struct ng_key journal_key(const char *collection, struct ng_str space, struct ng_str id);
int journal_generation_get(struct journal_documents *journal, struct call *call,
                           struct ng_str space, struct journal_generation *ret);
/* A change that touches nothing and fails with NG_ECONFLICT where the pointer has moved. */
int journal_generation_hold(struct call *call, struct ng_str space,
                            const struct journal_generation *generation, struct ng_change *ret);
/* The generation that is kept under an id; false: none is. */
bool journal_generation_kept(const struct journal_generation *generation, struct ng_str id,
                             uint64_t *ret);
/* How the pointer moves. */
struct journal_move {
    uint64_t number;    /* the generation that is read from now on */
    struct ng_str keep; /* the id that the former one is kept under; {NULL, 0}: it goes */
    struct ng_str drop; /* the id of one that is kept no more, or {NULL, 0} */
};
/* The change that moves it; fails with NG_ECONFLICT where it has moved. */
int journal_generation_change(struct call *call, struct ng_str space,
                              const struct journal_generation *generation,
                              const struct journal_move *move, struct ng_change *ret);
/* The same, committed. */
int journal_generation_move(struct journal_documents *journal, struct call *call,
                            struct ng_str space, const struct journal_generation *generation,
                            const struct journal_move *move);
/* The summary in a generation; none: {NULL, 0}. */
int journal_summary_of(struct journal_documents *journal, struct call *call,
                       struct ng_str space, uint64_t generation, struct ng_str *ret_text);

/* Memory for the tree of a dump or a checkpoint, beside the call's. */
#define JOURNAL_TREE_MAX ((size_t)1024 * 1024 * 1024)

/* A call for one step of `call`, whose memory goes with it, so that what a large journal needs
 * does not add up. NULL: out of memory, as the call says. */
struct call *journal_step(struct call *call);
/* Ends it; where it failed, the call says what the step said. Returns rc. */
int journal_step_end(struct call *call, struct call *step, int rc);

/* Where an entry goes. */
enum journal_place { JOURNAL_IN_DAY, JOURNAL_IN_REFERENCES, JOURNAL_IN_MEMORY };

/* The change that puts an entry in its place in a generation. Texts of the entry are lent until
 * the change is done. date: of the day's list, only for JOURNAL_IN_DAY. */
int journal_put(struct call *call, enum journal_place place, uint64_t generation,
                struct ng_str date, const struct ng_entry *entry, struct ng_change *ret);
/* The entry of a row, in the call's memory. date: of the day's list, or NULL. */
int journal_row(struct call *call, const struct ng_doc *row, struct ng_entry *ret,
                struct ng_str *ret_date);
/* The change that sets the summary of a space in a generation. `text` is lent until it is done.
 */
int journal_summary_change(struct call *call, uint64_t generation, struct ng_str space,
                           struct ng_str text, struct ng_change *ret);
/* Id of something in a generation: "G/name". */
struct ng_str journal_id(struct call *call, uint64_t generation, struct ng_str name);

/* ---- between journal_snapshot.c and journal_aside.c ---- */

#define JOURNAL_FORMAT "notegate-journal-1"
#define JOURNAL_PARTS 3
#define JOURNAL_BATCH (NG_CHANGES_MAX / 2) /* documents written at a time */

struct journal_part {
    enum journal_place place;
    const char *collection;
    const char *member; /* of the dump */
};
extern const struct journal_part journal_parts[JOURNAL_PARTS];

/* What one commit of a restore takes of a part. */
struct journal_batch {
    struct ng_change changes[JOURNAL_BATCH];
    struct ng_entry entries[JOURNAL_BATCH];
    struct ng_str dates[JOURNAL_BATCH];
    size_t count;
};

int journal_damaged(struct call *call, const char *what);
/* The failure of a text of so many bytes that json_parse() did not read into `tree`. */
int journal_unparsed(struct call *call, int rc, const struct arena *tree, size_t bytes);
/* Removes what lies in no generation that is read or kept: what a restore that was cut off has
 * left, and what was read before. */
int journal_sweep(struct journal_documents *journal, struct call *call, struct ng_str space,
                  const struct journal_generation *generation);
/* Removes some of what a query finds, in one commit. hold: of journal_generation_hold, or NULL.
 * *ret_more: there may be more. */
int journal_remove_some(struct journal_documents *journal, struct call *call,
                        struct ng_query *query, const struct ng_change *hold, bool *ret_more);
/* Writes a dump into a generation that is not read yet. */
int journal_restore_all(struct journal_documents *journal, struct call *call,
                        struct ng_str space, uint64_t generation, const struct ng_value *dump);
/* Removes a document, where it is there. */
int journal_remove_doc(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user);

/* journal_aside.c: see struct ng_journal. */
int journal_documents_restore_aside(void *journal, struct ng_call *call, struct ng_str space,
                                    struct ng_str id, struct ng_str json);
int journal_documents_checkpoint_delete(void *journal, struct ng_call *call,
                                        struct ng_str space, struct ng_str id);
int journal_documents_trim(void *journal, struct ng_call *call, struct ng_str space,
                           int64_t before_ms);

/* journal_snapshot.c: see struct ng_journal. */
int journal_snapshot_dump(void *journal, struct ng_call *call, struct ng_str space,
                          struct ng_str *ret_json);
int journal_snapshot_restore(void *journal, struct ng_call *call, struct ng_str space,
                             struct ng_str json);
int journal_checkpoint_put(void *journal, struct ng_call *call, struct ng_str space,
                           struct ng_str id, struct ng_str json);
int journal_checkpoint_get(void *journal, struct ng_call *call, struct ng_str space,
                           struct ng_str id, struct ng_str *ret_json);
int journal_checkpoint_list(void *journal, struct ng_call *call, struct ng_str space,
                            ng_row_fn *row, void *user);

#endif
