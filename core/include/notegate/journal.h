/* SPDX-License-Identifier: MIT */
/*
 * journal.h - the journal: references to changes, memory, the long-term summary, checkpoints.
 *
 * Kept in documents by the core, or elsewhere by a backend of kind NG_KIND_JOURNAL. Changes of
 * collections with NG_COLLECTION_REFERENCED become references: the event is stored with the
 * document (the outbox), and the core delivers it, in order, at least once, made harmless by
 * event_id. Full content never enters the journal. An event whose data has "about":
 * {"collection", "id"} is a reference to that document instead of the one that was changed.
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
/* References in one delivery. */
#define NG_DELIVERY_MAX 256

enum ng_entry_kind {
    NG_ENTRY_REFERENCE =
        1, /* of a document: in the day's list and in the document's own reference */
    NG_ENTRY_MEMORY =
        2 /* a message, thought or tool output: in the day's list and recallable */
};

/* One entry of the journal. Read by its size. */
struct ng_entry {
    size_t size;
    enum ng_entry_kind kind;
    struct ng_str event_id; /* unique; the same entry delivered twice has the same */
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

/* Which memories: with any of the words of `text`, ranked by how many of them there are and by
 * the entry's score as a factor, of equal ones the newest first. Read by its size. */
struct ng_recall {
    size_t size;
    struct ng_str space;
    struct ng_str text; /* "" or absent: newest first */
    struct ng_str source;
    const struct ng_str *tags; /* any matches */
    size_t tag_count;
    int64_t since_ms;
    uint32_t limit;
    double min_score; /* only entries of at least this score; 0: all */
};

/* Which day's entries. Read by its size. */
struct ng_timeline {
    size_t size;
    struct ng_str space;
    struct ng_str date;  /* YYYY-MM-DD in the gateway's zone; absent: today */
    struct ng_str agent; /* absent: all */
    uint32_t limit;
    uint64_t offset; /* so many of the newest are passed over; a module that was built without
                        it passes over none */
};

/* All functions may block and come from workers, from many threads at once. Read by its size:
 * of a module that in its record, of the table that plugins get `size`. */
struct ng_journal {
    size_t size;      /* of the table that plugins get; modules may leave it 0 */
    const char *name; /* "redis" */
    const char *version;
    const struct ng_option *options;
    size_t option_count;

    int (*open)(struct ng_call *call, const struct ng_conf *conf, void **ret_journal);
    void (*close)(void *journal); /* NULL is a no-op */
    /* Stores the entries in order, all or (with an error) a beginning of them; one that is
     * there is skipped. */
    int (*deliver)(void *journal, struct ng_call *call, const struct ng_entry *const *entries,
                   size_t count);
    int (*timeline)(void *journal, struct ng_call *call, const struct ng_timeline *timeline,
                    ng_entry_row_fn *row, void *user); /* newest first */
    /* ret_engine: "fts5", "redisearch" or "scan", static text. */
    int (*recall)(void *journal, struct ng_call *call, const struct ng_recall *recall,
                  ng_entry_row_fn *row, void *user, const char **ret_engine);
    /* The long-term summary of a space; none: {NULL, 0}. Memory of the call. */
    int (*summary)(void *journal, struct ng_call *call, struct ng_str space,
                   struct ng_str *ret_text);
    int (*set_summary)(void *journal, struct ng_call *call, struct ng_str space,
                       struct ng_str text);
    /* Everything of a space as one JSON text, and back in one step. Every journal writes and
     * takes the same form: {"format": "notegate-journal-1", "days": [entry with "date", oldest
     * first], "references": [entry], "memories": [entry], "summary": text or null}, an entry
     * being {"event_id", "kind", "seq", "time", "agent", "action", "collection", "id", "title",
     * "status", "version", "source", "tags", "score", "data", "content"}, what is absent left
     * out. What is put back may also have "passed": [event_id], events that were delivered and
     * are not in it; who remembers deliveries does not take them again. */
    int (*dump)(void *journal, struct ng_call *call, struct ng_str space,
                struct ng_str *ret_json);
    int (*restore)(void *journal, struct ng_call *call, struct ng_str space,
                   struct ng_str json);
    int (*checkpoint_put)(void *journal, struct ng_call *call, struct ng_str space,
                          struct ng_str id, struct ng_str json);
    int (*checkpoint_get)(void *journal, struct ng_call *call, struct ng_str space,
                          struct ng_str id, struct ng_str *ret_json);
    /* ids and labels, newest first: doc->key.id, doc->json without the body. */
    int (*checkpoint_list)(void *journal, struct ng_call *call, struct ng_str space,
                           ng_row_fn *row, void *user);

    /* Optional from here. New members go last. */
    int (*health)(void *journal, struct ng_call *call);

    /* What plugins get from the gateway, whatever journal is in use; modules leave these out.
     */

    /* Waits up to wait_ms until what was committed before is delivered. NG_OK also where it is
     * not: *ret_backlog says how many entries are known to wait (0: all is there). */
    int (*flush)(void *journal, struct ng_call *call, int64_t wait_ms, uint64_t *ret_backlog);
    /* As restore, but what came after `base` (a dump of this space) stays: entries that are not
     * in it, references that moved on, another summary. Nothing is delivered meanwhile. */
    int (*restore_over)(void *journal, struct ng_call *call, struct ng_str space,
                        struct ng_str json, struct ng_str base);

    /* Of modules, too, and optional again. */

    /* As restore, in one step, but nothing of what was there is read: however large it is, it
     * stays as it lies, kept under `id` beside the journal. json: a dump, or {"format":
     * "notegate-journal-kept-1", "id": text}, a copy of what was kept under that id.
     * NG_ENOTFOUND: nothing is. NG_OK without a change where `id` is kept already: it was done
     * before. NULL: not offered. */
    int (*restore_aside)(void *journal, struct ng_call *call, struct ng_str space,
                         struct ng_str id, struct ng_str json);
    /* Removes a checkpoint, and what restore_aside kept under its id. NG_ENOTFOUND. NULL: not
     * offered. */
    int (*checkpoint_delete)(void *journal, struct ng_call *call, struct ng_str space,
                             struct ng_str id);
    /* Removes entries of a space that are older than `before_ms`: lines of days that ended
     * before, memories, references. Neither the summary nor what is in a checkpoint or kept
     * beside. NULL: not offered. */
    int (*trim)(void *journal, struct ng_call *call, struct ng_str space, int64_t before_ms);
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
