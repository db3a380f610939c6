/* SPDX-License-Identifier: MIT */
/*
 * journal.h - the journal: references to changes, memories, the long-term summary, checkpoints.
 *
 * The core stores it in documents, or a backend of kind NG_KIND_JOURNAL stores it elsewhere.
 * Changes of collections with NG_COLLECTION_REFERENCED become references: the event is stored
 * with the document (the outbox), and the core delivers it, in order, at least once; event_id
 * detects duplicates. The journal never has the full content of documents. If the data of an
 * event has "about": {"collection", "id"}, the reference is to that document instead of the
 * changed one.
 */
#ifndef NOTEGATE_JOURNAL_H
#define NOTEGATE_JOURNAL_H

#include "documents.h"
#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest summary in a reference, in characters. */
#define NG_SUMMARY_MAX 200
/* Most entries of one delivery. */
#define NG_DELIVERY_MAX 256

enum ng_entry_kind {
    NG_ENTRY_REFERENCE = 1, /* to a document: in the list of the day and as its reference */
    NG_ENTRY_MEMORY = 2,    /* a message, thought or tool output: in the list, for recall */
    NG_ENTRY_FORGET = 3     /* not stored: the memory with the event id `id` is to go, or with a
                             * `version` the reference, from its day; only in `forget` */
};

/* One entry of the journal. Read by its size. */
struct ng_entry {
    size_t size;
    enum ng_entry_kind kind;
    struct ng_str event_id; /* unique; equal for repeated deliveries of the same entry */
    uint64_t seq;           /* of the event; a reference only moves forward by (version, seq) */
    struct ng_str space;
    int64_t time_ms;
    struct ng_str agent; /* without the "agent:" */
    /* REFERENCE */
    struct ng_str action, collection, id, title, status;
    uint64_t version;
    /* both */
    struct ng_str content; /* REFERENCE: the summary; MEMORY: the text */
    struct ng_str source;
    const struct ng_str *tags;
    size_t tag_count;
    double score;
    struct ng_str data; /* JSON object with further members, or {NULL, 0} */
};

typedef int ng_entry_row_fn(void *user, const struct ng_entry *entry);

/* Recall of entries with any of the words of `text`. Those with a word as it is come before
 * those that match by stems only; then the rank is the number of matching words times the score
 * of the entry; equal ranks come newest first. Read by its size. */
struct ng_recall {
    size_t size;
    struct ng_str space;
    struct ng_str text; /* "" or absent: newest first */
    struct ng_str source;
    const struct ng_str *tags; /* any matches */
    size_t tag_count;
    int64_t since_ms;
    uint32_t limit;
    double min_score; /* least score of an entry; 0: all */
    bool memories;    /* no references; modules built without this member ignore it */
};

/* The entries of one day. Read by its size. */
struct ng_timeline {
    size_t size;
    struct ng_str space;
    struct ng_str date;  /* YYYY-MM-DD in the time zone of the gateway; absent: today */
    struct ng_str agent; /* absent: all */
    uint32_t limit;
    uint64_t offset; /* skips the newest entries; modules built without this member ignore it */
};

/* Functions run on workers, may block, and may be called from many threads at once. Read by its
 * size: in the module record of a module, else in `size`. */
struct ng_journal {
    size_t size;      /* of the table that plugins get; modules may leave it 0 */
    const char *name; /* "redis" */
    const char *version;
    const struct ng_option *options;
    size_t option_count;

    int (*open)(struct ng_call *call, const struct ng_conf *conf, void **ret_journal);
    void (*close)(void *journal); /* NULL is a no-op */
    /* Stores the entries in order; after an error only some of the first are stored. Entries
     * that exist are skipped. */
    int (*deliver)(void *journal, struct ng_call *call, const struct ng_entry *const *entries,
                   size_t count);
    int (*timeline)(void *journal, struct ng_call *call, const struct ng_timeline *timeline,
                    ng_entry_row_fn *row, void *user); /* newest first */
    /* ret_engine: "fts5", "redisearch" or "scan", a constant. */
    int (*recall)(void *journal, struct ng_call *call, const struct ng_recall *recall,
                  ng_entry_row_fn *row, void *user, const char **ret_engine);
    /* The long-term summary of a space, in call memory; none: {NULL, 0}. */
    int (*summary)(void *journal, struct ng_call *call, struct ng_str space,
                   struct ng_str *ret_text);
    int (*set_summary)(void *journal, struct ng_call *call, struct ng_str space,
                       struct ng_str text);
    /* Dumps a space as one JSON text, and restores it in one step. All journals use the same
     * form: {"format": "notegate-journal-1", "days": [entry with "date", oldest first],
     * "references": [entry], "memories": [entry], "summary": text or null}. An entry is
     * {"event_id", "kind", "seq", "time", "agent", "action", "collection", "id", "title",
     * "status", "version", "source", "tags", "score", "data", "content"} without absent
     * members. A restored text may also have "passed": [event_id], delivered events that are
     * not in it: a journal that remembers deliveries ignores them if they are delivered again.
     */
    int (*dump)(void *journal, struct ng_call *call, struct ng_str space,
                struct ng_str *ret_json);
    int (*restore)(void *journal, struct ng_call *call, struct ng_str space,
                   struct ng_str json);
    int (*checkpoint_put)(void *journal, struct ng_call *call, struct ng_str space,
                          struct ng_str id, struct ng_str json);
    int (*checkpoint_get)(void *journal, struct ng_call *call, struct ng_str space,
                          struct ng_str id, struct ng_str *ret_json);
    /* Newest first: doc->key.id, and doc->json without arrays and objects. */
    int (*checkpoint_list)(void *journal, struct ng_call *call, struct ng_str space,
                           ng_row_fn *row, void *user);

    /* Optional from here. New members go last. */
    int (*health)(void *journal, struct ng_call *call);

    /* Implemented by the gateway for plugins, with any journal; modules leave them NULL. */

    /* Waits up to wait_ms until all earlier commits are delivered. NG_OK also if some are not:
     * *ret_backlog is the number of known waiting entries (0: all are delivered). */
    int (*flush)(void *journal, struct ng_call *call, int64_t wait_ms, uint64_t *ret_backlog);
    /* As restore, with a three-way merge: changes since `base` (a dump of this space) stay,
     * which are new entries, moved references and a changed summary. Blocks deliveries
     * meanwhile. */
    int (*restore_over)(void *journal, struct ng_call *call, struct ng_str space,
                        struct ng_str json, struct ng_str base);

    /* Optional functions of modules; NULL: not offered. */

    /* As restore, in one step, but keeps the present journal of any size, unread, under `id`.
     * json: a dump, or {"format": "notegate-journal-kept-1", "id": text} for a copy of the
     * journal kept under that id. NG_ENOTFOUND: there is none. NG_OK without a change if `id`
     * is kept already: a retry. */
    int (*restore_aside)(void *journal, struct ng_call *call, struct ng_str space,
                         struct ng_str id, struct ng_str json);
    /* Removes a checkpoint and the journal kept under its id. NG_ENOTFOUND. */
    int (*checkpoint_delete)(void *journal, struct ng_call *call, struct ng_str space,
                             struct ng_str id);
    /* Removes entries older than `before_ms` from a space: days that ended before, memories,
     * references. Keeps the summary, checkpoints and kept journals. */
    int (*trim)(void *journal, struct ng_call *call, struct ng_str space, int64_t before_ms);
    /* Both or none: of a journal that may lose data while the events are kept. Each database of
     * a gateway gives it a random mark, and delivers the lost events again if the mark is gone,
     * or if the last event is an earlier one. */

    /* The seq of the last event that came with the mark. NG_ENOTFOUND: there is no such mark.
     * Also asked while there is nothing to deliver. */
    int (*mark)(void *journal, struct ng_call *call, struct ng_str mark, uint64_t *ret_seq);
    /* As deliver; the seq of the last entry becomes that of the mark in the same step.
     * NG_ECONFLICT, nothing stored: the mark is gone, or its seq is less than `seq`. count 0:
     * makes the mark with this seq, unless it is there. */
    int (*deliver_marked)(void *journal, struct ng_call *call, struct ng_str mark, uint64_t seq,
                          const struct ng_entry *const *entries, size_t count);
    /* Both or none: memories can be deleted. */

    /* The memory with this event id. NG_ENOTFOUND: there is none. */
    int (*memory)(void *journal, struct ng_call *call, struct ng_str space,
                  struct ng_str event_id, ng_entry_row_fn *row, void *user);
    /* Removes the memory that an entry of kind NG_ENTRY_FORGET names from its day and from
     * recall; checkpoints and kept journals stay. NG_OK also if it is not there. mark, seq: as
     * for deliver_marked; without marks they are "" and 0. Only the core calls it. */
    int (*forget)(void *journal, struct ng_call *call, struct ng_str mark, uint64_t seq,
                  const struct ng_entry *entry);
};

#define NG_EXPORT_JOURNAL(backend)                                                             \
    NG_EXPORT_NOTE(NG_KIND_JOURNAL);                                                           \
    NG_EXTERN __attribute__((visibility("default"))) const struct ng_module ng_module;         \
    const struct ng_module ng_module =                                                         \
        {                                                                                      \
            NG_ABI,                                                                            \
            NG_KIND_JOURNAL,                                                                   \
            sizeof(backend),                                                                   \
            NG_NEEDS_HOST,                                                                     \
            {sizeof(struct ng_option)},                                                        \
            &(backend),                                                                        \
    }

#ifdef __cplusplus
}
#endif

#endif
