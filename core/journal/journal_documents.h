/* SPDX-License-Identifier: MIT */
/*
 * journal_documents.h - the journal stored in documents.
 *
 * Each entry of a day's list, each reference and each memory is one document, in quiet
 * collections. Each belongs to a generation of its space; the pointer document of the space
 * names the generation that is read. A restore writes a new generation beside the present one
 * and becomes visible atomically, by moving the pointer.
 */
#ifndef NOTEGATE_CORE_JOURNAL_DOCUMENTS_H
#define NOTEGATE_CORE_JOURNAL_DOCUMENTS_H

#include "core/store/store.h"
#include "journal_zone.h"
#include "notegate/journal.h"

#define JOURNAL_DAYS "journal_days"
#define JOURNAL_REFERENCES "journal_references"
#define JOURNAL_MEMORY "journal_memory"
#define JOURNAL_SUMMARIES "journal_summaries"
#define JOURNAL_CHECKPOINTS "journal_checkpoints"
#define JOURNAL_STATE "journal_state" /* pointers of spaces, and the cursor of the delivery */
#define JOURNAL_PINS "journal_pins"
#define JOURNAL_SPACES "journal_spaces"

/* Most rows of one answer, and the default limit. */
#define JOURNAL_ROWS_MAX 1000
#define JOURNAL_ROWS_DEFAULT 100

struct journal_documents {
    struct store *store;
};

/* The present generation of a space, and the revision of its pointer. */
struct journal_generation {
    uint64_t number;
    uint64_t pointer_revision;
    uint64_t last;               /* the highest number ever used */
    const struct ng_value *kept; /* {id: generation}: generations kept beside it; or NULL */
};

/* Declares the collections. The store must outlive it. */
int journal_documents_open(struct call *call, struct store *store,
                           struct journal_documents **ret);
void journal_documents_close(struct journal_documents *journal);
/* Its functions; their handle is the struct journal_documents. */
const struct ng_journal *journal_documents_vtable(void);

/* Attempts of a write whose generation a restore of another gateway has replaced. */
#define JOURNAL_TRIES 8
/* Is rc a conflict that is worth another attempt? Then the result of the call is reset. */
bool journal_try_again(struct call *call, int rc, int *tries);

/* journal_append.c: deliver of struct ng_journal. */
int journal_documents_deliver(void *user, struct ng_call *pub,
                              const struct ng_entry *const *entries, size_t count);

/* journal_apart.c: the same, with documents that several gateways share. */
int journal_append_apart(struct journal_documents *journal, struct call *call,
                         const struct ng_entry *const *entries, size_t count);

/* ---- between journal_documents.c and journal_snapshot.c ---- */

/* Declares the collections. */
int journal_declare(struct store *store, struct call *call);
struct ng_key journal_key(const char *collection, struct ng_str space, struct ng_str id);
int journal_generation_get(struct journal_documents *journal, struct call *call,
                           struct ng_str space, struct journal_generation *ret);
/* A change that writes nothing and fails with NG_ECONFLICT if the pointer has moved. */
void journal_generation_hold(struct ng_str space, const struct journal_generation *generation,
                             struct ng_change *ret);
/* The generation kept under an id; false: none. */
bool journal_generation_kept(const struct journal_generation *generation, struct ng_str id,
                             uint64_t *ret);
/* A move of the pointer. */
struct journal_move {
    uint64_t number;    /* the new present generation */
    struct ng_str keep; /* id for keeping the former one; {NULL, 0}: it is dropped */
    struct ng_str drop; /* id of a kept one to be dropped, or {NULL, 0} */
};
/* The change that moves the pointer; NG_ECONFLICT if it has moved meanwhile. */
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

/* Memory for the parsed tree of a dump or a checkpoint, in an arena of its own. */
#define JOURNAL_TREE_MAX ((size_t)1024 * 1024 * 1024)

/* A nested call for one step, so that the memory of a large journal is freed after each step.
 * NULL: out of memory, and `call` has failed. */
struct call *journal_step(struct call *call);
/* Ends the step; copies the message of a failure to `call`. Returns rc. */
int journal_step_end(struct call *call, struct call *step, int rc);

/* The collection of an entry. */
enum journal_place { JOURNAL_IN_DAY, JOURNAL_IN_REFERENCES, JOURNAL_IN_MEMORY };

/* The change that writes an entry into a generation. It borrows the texts of the entry until it
 * is done. date: the day of the list, only for JOURNAL_IN_DAY. */
int journal_put(struct call *call, enum journal_place place, uint64_t generation,
                struct ng_str date, const struct ng_entry *entry, struct ng_change *ret);
/* The entry of a row, in call memory. ret_date: the day of the list, or NULL. */
int journal_row(struct call *call, const struct ng_doc *row, struct ng_entry *ret,
                struct ng_str *ret_date);
/* The change that sets the summary of a space. It borrows `text` until it is done. */
int journal_summary_change(struct call *call, uint64_t generation, struct ng_str space,
                           struct ng_str text, struct ng_change *ret);
/* The same, committed. */
int journal_summary_store(struct journal_documents *journal, struct call *call,
                          uint64_t generation, struct ng_str space, struct ng_str text);
/* Id of a document in a generation: "G/name". */
struct ng_str journal_id(struct call *call, uint64_t generation, struct ng_str name);
/* Copies the text of `buf` into the arena and frees the buffer. NG_EINTERNAL, NG_ETOOLARGE. */
int journal_take_buf(struct arena *arena, struct buf *buf, struct ng_str *ret);

/* ---- between journal_snapshot.c and journal_aside.c ---- */

#define JOURNAL_FORMAT "notegate-journal-1"
#define JOURNAL_PARTS 3
#define JOURNAL_BATCH (NG_CHANGES_MAX / 2) /* documents of one commit */

struct journal_part {
    enum journal_place place;
    const char *collection;
    const char *member; /* of the dump */
};
extern const struct journal_part journal_parts[JOURNAL_PARTS];

/* One commit of a restore. */
struct journal_batch {
    struct ng_change changes[JOURNAL_BATCH];
    struct ng_entry entries[JOURNAL_BATCH];
    struct ng_str dates[JOURNAL_BATCH];
    size_t count;
};

int journal_damaged(struct call *call, const char *what);
/* Parses a dump into `tree`. */
int journal_parse(struct call *call, struct arena *tree, struct ng_str json,
                  const struct ng_value **ret);
/* The entries of a part in a generation, in the order of creation, behind the sequence number
 * in terms[1]. */
struct ng_query journal_part_query(size_t part, struct ng_str space, uint64_t generation,
                                   struct ng_term terms[2]);
/* Removes documents of generations that are neither present nor kept: leftovers of interrupted
 * restores, and replaced generations. */
int journal_sweep(struct journal_documents *journal, struct call *call, struct ng_str space,
                  const struct journal_generation *generation);
/* Removes one page of the documents that a query finds, in one commit. hold: a change from
 * journal_generation_hold(), or NULL. *ret_more: there may be more. */
int journal_remove_some(struct journal_documents *journal, struct call *call,
                        struct ng_query *query, const struct ng_change *hold, bool *ret_more);
/* Writes a dump into a generation that is not present yet. */
int journal_restore_all(struct journal_documents *journal, struct call *call,
                        struct ng_str space, uint64_t generation, const struct ng_value *dump);
/* Removes a document if it exists. */
int journal_remove_doc(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user);

/* journal_aside.c: functions of struct ng_journal. */
int journal_documents_restore_aside(void *user, struct ng_call *pub, struct ng_str space,
                                    struct ng_str id, struct ng_str text);
int journal_documents_checkpoint_delete(void *user, struct ng_call *pub, struct ng_str space,
                                        struct ng_str id);
int journal_documents_trim(void *user, struct ng_call *pub, struct ng_str space,
                           int64_t before_ms);

/* journal_snapshot.c: functions of struct ng_journal. */
int journal_snapshot_dump(void *user, struct ng_call *pub, struct ng_str space,
                          struct ng_str *ret_json);
int journal_snapshot_restore(void *user, struct ng_call *pub, struct ng_str space,
                             struct ng_str json);
int journal_checkpoint_put(void *user, struct ng_call *pub, struct ng_str space,
                           struct ng_str id, struct ng_str json);
int journal_checkpoint_get(void *user, struct ng_call *pub, struct ng_str space,
                           struct ng_str id, struct ng_str *ret_json);
int journal_checkpoint_list(void *user, struct ng_call *pub, struct ng_str space,
                            ng_row_fn *row, void *row_user);

#endif
