/* SPDX-License-Identifier: MIT */
/*
 * documents.h - documents, which plugins read and change and backends store.
 *
 * A document is a JSON object and a text beside it; the text is never escaped, parsed or
 * compared as JSON. Every change makes one new revision. The revisions of a document are 1, 2,
 * 3, ... without a gap, and continue after a delete; but a backend may forget a document of a
 * quiet collection without history days after its deletion. The design is in core/README.md.
 */
#ifndef NOTEGATE_DOCUMENTS_H
#define NOTEGATE_DOCUMENTS_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ng_value; /* a parsed JSON value, read-only; enum ng_type is its type */
struct ng_call;
struct ng_draft;

enum ng_type {
    NG_TYPE_ABSENT = 0,
    NG_TYPE_NULL = 1,
    NG_TYPE_FALSE = 2,
    NG_TYPE_TRUE = 3,
    NG_TYPE_NUMBER = 4,
    NG_TYPE_STRING = 5,
    NG_TYPE_ARRAY = 6,
    NG_TYPE_OBJECT = 7
};

/* Longest names, in bytes; longer ones fail with NG_EINVAL. */
#define NG_COLLECTION_MAX 64
#define NG_SPACE_MAX 128
#define NG_ID_MAX 65536

/* The identity of a document. Collection: [a-z0-9_]+, declared by a plugin. Space: see struct
 * ng_caller. Id: any UTF-8 text, also "" and text with newlines or NUL. Never grows. */
struct ng_key {
    struct ng_str collection;
    struct ng_str space;
    struct ng_str id;
};

/* The use of an indexed field. Its value is the top-level member of that name in the JSON of
 * the document; "a.b" names a member of a nested object. */
enum ng_field_use {
    /* A string or an array of strings; NG_TERM_EQ matches any element. */
    NG_FIELD_TAG = 1,
    NG_FIELD_NUMBER = 2, /* a number; equality, ranges, sorting */
    NG_FIELD_STRING = 3, /* a string; equality, ranges, sorting (by bytes), prefix */
    /* A string for full-text search. The text beside the JSON has the field name "text". */
    NG_FIELD_TEXT = 4
};

/* Read by its size, which is field_size of the collection. */
struct ng_field {
    const char *name;
    enum ng_field_use use;
    double weight; /* NG_FIELD_TEXT: rank factor of a hit; 0 means 1.0 */
};

enum ng_collection_flags {
    NG_COLLECTION_TEXT_SEARCH = 1, /* the text beside the JSON is searchable */
    NG_COLLECTION_QUIET = 2,       /* changes make no event (internal data of a plugin) */
    NG_COLLECTION_REFERENCED = 4,  /* events are delivered to the journal, see journal.h */
    NG_COLLECTION_NO_HISTORY = 8,  /* only the newest revision is kept */
    /* Its documents are what people and agents write: their history can be read, compared and
     * restored by the tools of plugin `history`. */
    NG_COLLECTION_CONTENT = 16
};

struct ng_doc;
struct ng_content;
/*
 * A change function (ng_change_fn) that gives a document the content, whatever is there now,
 * also nothing: sets text and members, makes the other members and the event, checks sizes. An
 * error other than NG_EINTERNAL means that it cannot be a document of this collection. self: of
 * the plugin.
 */
typedef int ng_restore_fn(void *self, struct ng_call *call, const struct ng_content *content,
                          const struct ng_doc *present, struct ng_draft *next);

/* Declared by the plugin that owns it; must live as long as the module. Read by its size, which
 * is in the module record. */
struct ng_collection {
    const char *name;
    uint32_t flags; /* enum ng_collection_flags */
    const struct ng_field *fields;
    size_t field_count;
    size_t field_size; /* sizeof(struct ng_field); required if there are fields */
    /* NG_COLLECTION_CONTENT: members of the JSON that people write, separated by spaces; a
     * member of a nested object as in a field's name. "a?b": `a` counts only where the member
     * `b` is true; else the plugin has made it. Last names are unique. NULL: none. */
    const char *members;
    /* NG_COLLECTION_CONTENT: gives a document another content. NULL: its changes cannot be
     * taken back by the tools of plugin `history`. */
    ng_restore_fn *restore;
};

/* The origin of a change, besides its agent and tool, and its size. Changes of earlier
 * versions have none of it. Never grows. */
struct ng_origin {
    /* Of the call that made the change, as in struct ng_caller; each may be absent. */
    struct ng_str run_id, key_id, request_id;
    /* Lines of the stretch of the text that the change replaced, after and before: at least as
     * many as differ. */
    uint64_t lines_added, lines_removed;
    bool has_lines; /* these were recorded */
};

/* The difference of a text from the previous revision: `inserted` replaces `removed` bytes at
 * `at`. Sizes in bytes. Never grows. */
struct ng_splice {
    uint64_t at;
    uint64_t removed;
    struct ng_str inserted;
};

/* One revision of a document. Its pointers are borrowed: for the call (host->get) or for the
 * row callback. revision 0: the document does not exist and never did. Read by its size. */
struct ng_doc {
    size_t size;
    struct ng_key key;
    uint64_t revision;
    bool deleted;       /* a tombstone: json is "{}", text is "" */
    struct ng_str json; /* an object; member order and number spelling as written */
    /* The same, parsed; NULL in a row of a backend. A row of a query or search that has it
     * lives as long as the call. */
    const struct ng_value *body;
    struct ng_str text;   /* {NULL, 0} if a query did not request it */
    uint64_t text_size;   /* bytes of the text, also without the text */
    uint64_t seq;         /* sequence number of this revision; 0: not committed yet */
    uint64_t created_seq; /* sequence number of the last revision that created the document */
    int64_t created_ms;   /* Unix time in milliseconds */
    int64_t updated_ms;
    struct ng_str author;  /* agent that made this revision */
    struct ng_str action;  /* "created", "updated", "deleted", or a name of the plugin */
    double score;          /* search rows: rank, higher is better; else 0 */
    struct ng_str snippet; /* search rows: the hit in context, else {NULL, 0} */
    size_t exact;          /* search rows: words of the search that match as they are, not by
                            * their stems; 0 from backends built without this member */
    /* Of the event of this revision: in rows of host->history; absent in others. */
    struct ng_origin origin;
    struct ng_str tool;
    struct ng_str event_data;
    /* Rows of a history with NG_RANGE_SPLICES: the text is that of the row before with this
     * splice; the row has neither json nor text, but a text_size. NULL: json and text are
     * complete. */
    const struct ng_splice *text_splice;
};

/* Return 0 to continue, any other value to stop; the calling function then returns NG_OK. */
typedef int ng_row_fn(void *user, const struct ng_doc *row);

enum ng_op {
    NG_TERM_EQ = 1, /* equal; for a tag: one of its elements is equal */
    NG_TERM_NE = 2, /* the negation of EQ: true for a missing field */
    NG_TERM_LT = 3,
    NG_TERM_LE = 4,
    NG_TERM_GT = 5,
    NG_TERM_GE = 6,
    NG_TERM_PREFIX = 7, /* strings: begins with */
    NG_TERM_IN = 8      /* EQ with one of `values` */
};

/* A condition on a declared field or a built-in one: "id" (string), "created" and "updated"
 * (number, ms), "created_seq", "seq", "revision" (number), "author" (string). Never grows. */
struct ng_term {
    struct ng_str field;
    enum ng_op op;
    struct ng_str value;         /* strings and tags */
    double number;               /* NUMBER fields and numeric built-in ones */
    const struct ng_str *values; /* NG_TERM_IN */
    size_t value_count;
};

#define NG_TERMS_MAX 32
#define NG_IN_MAX 256

/* A query for documents, and their order. Read by its size. */
struct ng_query {
    size_t size;
    struct ng_str collection;
    struct ng_str space; /* {NULL, 0}: all spaces in `spaces` */
    const struct ng_str *spaces;
    size_t space_count;
    const struct ng_term *terms; /* combined with AND */
    size_t term_count;
    struct ng_str sort; /* a sortable or built-in field; absent, and for ties: created_seq */
    bool descending;
    uint64_t offset;
    uint32_t limit; /* 0: no rows, only the total */
    bool with_text; /* include the texts */
    bool with_deleted;
    bool want_total;
    /* Reads of one moment, also of several collections. In: 0, or what an earlier query has
     * stored here; out: the moment that this query has shown. Only of this process and backend,
     * and only for the call. NULL: no. A backend without moments leaves it as it is, and shows
     * the newest state. */
    uint64_t *moment;
    bool only_deleted; /* only deleted documents; no term or order of a declared field */
};

/* Full-text search: finds documents with any of the words of `text`. Documents with more of the
 * words come first, then those with more exact matches. Case and accents are folded. English
 * words match by their stems, too, and scripts without spaces by pairs of characters. "Quoted
 * words" match as a phrase, and a trailing * matches a prefix. Stop words count only if there
 * are no other words. No text is a syntax error. Read by its size. */
struct ng_search {
    size_t size;
    /* Without sort: by rank; with `descending`, equal ranks come newest first. */
    const struct ng_query *query;
    struct ng_str text;
    uint32_t snippet_chars; /* 0: no snippet */
    /* Out: more documents match than the search looked at, so the total is less than there are,
     * and an older match may be missing. A backend says how many it looks at. NULL: not asked.
     */
    bool *at_least;
};

enum ng_range_flags {
    /* With with_body and ascending: a row may have a text_splice instead of json and text, if
     * the row before is that of the revision before. It costs as much as was changed, and not
     * as much as the document is long. A backend may give complete rows all the same. */
    NG_RANGE_SPLICES = 1
};

/* A range of the history of one document, newest first. Read by its size. */
struct ng_range {
    size_t size;
    uint64_t from, to; /* revisions, inclusive; to 0: the newest */
    uint32_t limit;
    bool with_body; /* include json and text of every revision */
    bool ascending;
    uint32_t flags; /* enum ng_range_flags */
};

/* One change in the event feed. Borrowed for the callback. Read by its size. */
struct ng_event {
    size_t size;
    uint64_t seq; /* increasing; a gap is never filled later */
    int64_t time_ms;
    struct ng_key key;
    uint64_t revision;
    struct ng_str agent;
    struct ng_str tool;
    struct ng_str action;
    struct ng_str data; /* JSON object of the plugin (host->draft_event), or {NULL, 0} */
    struct ng_origin origin;
    struct ng_str gateway; /* id of the gateway that made the change; absent: not known */
};

typedef int ng_event_fn(void *user, const struct ng_event *event);

/* ---- the history of all documents ---- */

/* One of these texts; count 0: any. Never grows. */
struct ng_names {
    const struct ng_str *items;
    size_t count;
};

/* Selects changes. Read by its size. */
struct ng_trail {
    size_t size;
    uint64_t since, until; /* numbers above `since`, up to `until`; UINT64_MAX: the newest */
    struct ng_names spaces, collections, agents, runs, tools, actions;
    struct ng_str id; /* {NULL, 0}: any */
    bool id_prefix;   /* ids that begin with `id` */
};

/* Changes of one agent in one run, of documents of one collection and space. Read by its size.
 */
struct ng_run {
    size_t size;
    struct ng_str run, agent, collection, space;
    uint64_t first_seq, last_seq; /* their numbers lie between these */
    uint64_t changes;
};

typedef int ng_run_fn(void *user, const struct ng_run *run);

/* The revision of a document at a point of the history. Read by its size. */
struct ng_as_of {
    size_t size;
    uint64_t revision; /* the newest one that is not after the point; 0: there was none */
    bool kept;         /* its content can be read */
    /* Unless it is kept: the nearest kept revisions; 0: none. `before` is `revision` where a
     * file had a content at the point that got no version (history.max_file). */
    uint64_t before, after;
};

/* ---- changes of documents ---- */

/*
 * Makes the next state of a document from the present one (revision 0 or deleted: none). Runs
 * under the lock of the document, on the newest state, committed or queued; it must be quick
 * and free of I/O. It must not change other documents (NG_EINTERNAL): pass documents that
 * change together in one array of changes. It may be retried later, on another thread, after
 * the tool has returned, because another gateway has changed the document: so `user` is in call
 * memory, and replies made in the function are discarded before the retry. The next state
 * begins as a copy of the present one; without a draft call there is no change and no revision.
 * An error discards the whole transaction, and the call fails with it.
 */
typedef int ng_change_fn(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user);

/* A change of one document. Read by its size. */
struct ng_change {
    size_t size;
    struct ng_key key;
    ng_change_fn *fn;
    void *user;
    const char *action; /* of the event; NULL: "created", "updated" or "deleted" */
    bool has_expected;  /* compare-and-swap with expected_revision */
    /* The id is a fresh random one: skips the read. NG_ECONFLICT if it exists nevertheless. */
    bool is_new;
    uint64_t expected_revision; /* 0: the document must not exist. NG_ECONFLICT on mismatch */
};

/* Most documents of one transaction. */
#define NG_CHANGES_MAX 64

/* The action of a deletion before which no revision is kept: see `purge` of ng_host. */
#define NG_ACTION_PURGED "purged"

/* ---- undo ---- */

/* Most undos of a document in a row. */
#define NG_UNDO_MAX 10
/* Most documents that one undo changes. */
#define NG_UNDO_CHANGES 2
/* The action of an undo that leaves no document, because it takes back the creation. */
#define NG_ACTION_UNDONE "undone"

/*
 * The change that an undo takes back. That of a revision which an undo made is the one of its
 * base: the revision whose content it has. The plugin writes both numbers into the JSON that an
 * undo makes, as the members `undo_base` and `undos`, and leaves them out of any other.
 * Borrowed for the call. Read by its size.
 */
struct ng_undo_step {
    size_t size;
    const struct ng_doc *present; /* the newest revision */
    const struct ng_doc *last;    /* the revision that the last change made */
    const struct ng_doc *former;  /* has the content from before; NULL: there was no document */
    uint64_t base;                /* `undo_base`; 0 without former */
    uint64_t undos;               /* `undos`: in a row, with this one */
};

/*
 * Makes the reply and the changes of an undo, at most NG_UNDO_CHANGES, the first one of the
 * document itself. Each expects exactly `expected_revision`, also of a deleted document;
 * `has_expected` is not used. May read documents. Runs again where another change was faster.
 */
typedef int ng_undo_step_fn(struct ng_call *call, const struct ng_undo_step *step,
                            struct ng_change *changes, size_t *ret_count, void *user);

/*
 * host->undo takes back the last change of a document by a new revision, and returns when that
 * is durable or has failed. NG_ECONFLICT: the change is of another agent. NG_ENOTFOUND: the
 * document never existed. NG_EFAILED: no change is left, or what was before is not kept. The
 * call has not replied before. Read by its size.
 */
struct ng_undo {
    size_t size;
    struct ng_key key;
    struct ng_str name;    /* in messages: "notebook 'plan'" */
    struct ng_str instead; /* the way out in messages: "read it and write ..." */
    ng_undo_step_fn *fn;
    void *user;
    bool has_expected; /* as in struct ng_change */
    uint64_t expected_revision;
};

/* ---- changes that are taken back ---- */

/* The content that a document is given by an undo or a restore. Borrowed for the call. Read by
 * its size. */
struct ng_content {
    size_t size;
    struct ng_key key;
    bool gone; /* the document is to be deleted; the rest is absent */
    struct ng_str text;
    const struct ng_value *members; /* an object, as host->members() gives it */
    /* The JSON of a deleted document before its deletion, for what stays the same over its
     * life; NULL: it is not kept, or the document is not deleted. */
    const struct ng_value *last;
    uint64_t restored_from; /* the revision whose content it is; 0: no single one */
};

/* Makes the reply of a restore, as a change function does: the new revision, and the lines of
 * the stretch that differ. */
typedef int ng_restored_fn(struct ng_call *call, uint64_t revision, uint64_t lines_added,
                           uint64_t lines_removed, void *user);

/*
 * host->restore gives a document of any collection with restore() the content of one of its
 * revisions, by a new one; a deleted document comes back. NG_ENOTFOUND: the revision is not
 * kept. NG_EINVAL: the document was deleted in it. NG_EFORBIDDEN: the caller may not change
 * documents of the collection by a tool of its plugin. `user` is in call memory. Read by its
 * size.
 */
struct ng_restore {
    size_t size;
    struct ng_key key;
    uint64_t revision;
    bool has_expected; /* as in struct ng_change, also of a deleted document */
    uint64_t expected_revision;
    ng_restored_fn *replied;
    void *user;
};

enum ng_undo_result {
    NG_UNDO_DONE = 1,      /* taken back; with dry_run: can be */
    NG_UNDO_UNCHANGED = 2, /* nothing of the changes is there */
    NG_UNDO_CONFLICT = 3   /* the document stays as it is */
};

/* A document of an undo. Borrowed for the callback. Read by its size. */
struct ng_undo_item {
    size_t size;
    struct ng_key key;
    const uint64_t *revisions; /* those that are taken back, ascending */
    size_t revision_count;
    enum ng_undo_result result;
    uint64_t revision;                   /* made by the undo; 0: none */
    uint64_t lines_added, lines_removed; /* of the stretch that it changes */
    struct ng_str conflict;              /* JSON {"reason", "at"?}; or {NULL, 0} */
};

/* Return NG_OK; another value ends the undo with it. */
typedef int ng_undo_item_fn(void *user, const struct ng_undo_item *item);

/*
 * host->undo_changes takes back changes of many documents, without what others changed since,
 * each by one new revision with the caller as agent and the run "undo-...". Changes of other
 * agents need the role admin. Documents of a conflict stay as they are. `item` gets each
 * document. NG_OK: what could be taken back is. NG_ETOOLARGE: too many documents. Another
 * error, or a kill, leaves the rest: `again` does it. Read by its size.
 */
struct ng_undo_work {
    size_t size;
    const struct ng_trail *what; /* these changes; until: none behind it */
    const uint64_t *changes;     /* only those with these numbers; NULL: all of them */
    size_t change_count;
    bool dry_run;        /* only finds out what would be done */
    struct ng_str again; /* the run of an undo that was cut off; the rest is not used */
    ng_undo_item_fn *item;
    void *user;
};

/* The outcome. Texts are in call memory. Read by its size. */
struct ng_undo_done {
    size_t size;
    struct ng_str run;      /* "undo-..."; {NULL, 0}: none has begun */
    uint64_t upto;          /* no change behind this number was looked at */
    struct ng_names agents; /* whose changes they are */
    uint64_t total, undone, unchanged, conflicts; /* documents */
};

/* An undo that was cut off: no process does it any more. Borrowed for the callback. Read by its
 * size. */
struct ng_unfinished {
    size_t size;
    struct ng_str run;   /* "undo-..." */
    struct ng_str agent; /* began it */
    int64_t time_ms;     /* when */
};

/* Return 0 to continue. */
typedef int ng_unfinished_fn(void *user, const struct ng_unfinished *undo);

#ifdef __cplusplus
}
#endif

#endif
