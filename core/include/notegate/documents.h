/* SPDX-License-Identifier: MIT */
/*
 * documents.h - documents: what plugins read and change, and what backends keep.
 *
 * A document is JSON members plus a text beside them (long text is never escaped, parsed or
 * compared as JSON). Every change makes one new revision; revisions of one document are 1, 2,
 * 3, ... without a gap, and go on counting after a delete. The design is in core/README.md.
 */
#ifndef NOTEGATE_DOCUMENTS_H
#define NOTEGATE_DOCUMENTS_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ng_value; /* a parsed JSON value, read-only; enum ng_type says of which type */
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

/* Longest names, in bytes. Longer ones are NG_EINVAL. */
#define NG_COLLECTION_MAX 64
#define NG_SPACE_MAX 128
#define NG_ID_MAX 65536

/* What names a document. Collection: [a-z0-9_]+, declared by a plugin. Space: see struct
 * ng_caller. Id: any UTF-8 text, also "" and text with newlines or NUL. Never grows. */
struct ng_key {
    struct ng_str collection;
    struct ng_str space;
    struct ng_str id;
};

/* How a field of a collection is used. The value is the member of that name at the top of the
 * document's JSON ("a.b" reaches into objects). */
enum ng_field_use {
    NG_FIELD_TAG =
        1, /* a string or an array of strings; found by NG_TERM_EQ, any element matches */
    NG_FIELD_NUMBER = 2, /* a number; equality, ranges, sorting */
    NG_FIELD_STRING = 3, /* a string; equality, ranges, sorting (by bytes), prefix */
    NG_FIELD_TEXT =
        4 /* a string; full-text search (the document's own text is searched as "text") */
};

/* Read by its size: that in field_size of its collection. */
struct ng_field {
    const char *name;
    enum ng_field_use use;
    double weight; /* NG_FIELD_TEXT: rank factor of a hit in it, 0 = 1.0 */
};

enum ng_collection_flags {
    NG_COLLECTION_TEXT_SEARCH = 1, /* the text beside the JSON is searchable */
    NG_COLLECTION_QUIET = 2,       /* changes make no event (bookkeeping of a plugin) */
    NG_COLLECTION_REFERENCED = 4,  /* every event also goes to the journal, see journal.h */
    NG_COLLECTION_NO_HISTORY = 8   /* only the newest revision is kept */
};

/* Declared by the plugin that owns it; lives as long as the module. Read by its size, which is
 * in the module record. */
struct ng_collection {
    const char *name;
    uint32_t flags; /* enum ng_collection_flags */
    const struct ng_field *fields;
    size_t field_count;
    size_t field_size; /* sizeof(struct ng_field): the step from one field to the next. Required
                          where there are fields */
};

/* One revision of a document. Everything it points to is lent: for the call (host->get) or for
 * the row callback. revision 0 = there is no such document, and has never been. Read by its
 * size.
 */
struct ng_doc {
    size_t size;
    struct ng_key key;
    uint64_t revision;
    bool deleted;                /* a tombstone: json is "{}", text is "" */
    struct ng_str json;          /* an object; member order and number spelling as written */
    const struct ng_value *body; /* the same, parsed; NULL where a backend gives a row */
    struct ng_str text;          /* {NULL, 0} where a query did not ask for it */
    uint64_t text_size;          /* bytes of the text, also where text was not asked for */
    uint64_t seq;         /* change sequence number of this revision, 0 = not committed yet */
    uint64_t created_seq; /* that of the revision that created it (anew, after a delete) */
    int64_t created_ms;   /* Unix time in milliseconds */
    int64_t updated_ms;
    struct ng_str author; /* agent that made this revision */
    struct ng_str
        action;   /* what that change was called: "created", "updated", "deleted", ... */
    double score; /* search rows: rank, higher is better; else 0 */
    struct ng_str snippet; /* search rows: the hit in context, else {NULL, 0} */
};

/* Return 0 to go on, anything else to stop; the function that calls it then returns NG_OK. */
typedef int ng_row_fn(void *user, const struct ng_doc *row);

enum ng_op {
    NG_TERM_EQ = 1, /* equal; of a tag: one of its elements is */
    NG_TERM_NE = 2, /* the negation of EQ: a missing field is unequal */
    NG_TERM_LT = 3,
    NG_TERM_LE = 4,
    NG_TERM_GT = 5,
    NG_TERM_GE = 6,
    NG_TERM_PREFIX = 7, /* strings: begins with */
    NG_TERM_IN = 8      /* one of `values` matches as EQ does */
};

/* A condition. field is a declared field, or one of the built-in ones: "id" (string), "created"
 * and "updated" (number, ms), "created_seq", "seq", "revision" (number), "author" (string).
 * Never grows. */
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

/* Which documents, in which order. Read by its size. */
struct ng_query {
    size_t size;
    struct ng_str collection;
    struct ng_str space; /* {NULL, 0}: every space in `spaces` */
    const struct ng_str *spaces;
    size_t space_count;
    const struct ng_term *terms; /* all must hold */
    size_t term_count;
    struct ng_str
        sort; /* a sortable or built-in field; absent: created_seq. Ties: created_seq */
    bool descending;
    uint64_t offset;
    uint32_t limit; /* 0: no rows, only the total */
    bool with_text; /* else rows have no text */
    bool with_deleted;
    bool want_total;
};

/* Full-text search: documents with any of the words of `text`, those with more of them first,
 * then those with more of them as they are (case and accents folded; English words are found by
 * their stems too, scripts without spaces by pairs of characters, "quoted words" as a phrase, a
 * trailing * matches a prefix; words of every text count only where there are no others).
 * Nothing in it is syntax that fails. Read by its size. */
struct ng_search {
    size_t size;
    const struct ng_query *query; /* sort absent: by rank, descending: of equal ones the newest
                                     first */
    struct ng_str text;
    uint32_t snippet_chars; /* 0: no snippet */
};

/* A part of the history of one document, newest first. Read by its size. */
struct ng_range {
    size_t size;
    uint64_t from, to; /* revisions, inclusive; to 0: the newest */
    uint32_t limit;
    bool with_body; /* json and text of every revision, else only who, when, what */
    bool ascending;
};

/* One change, as the event feed tells it. Lent for the callback. Read by its size. */
struct ng_event {
    size_t size;
    uint64_t seq; /* rises; has no gap that later fills */
    int64_t time_ms;
    struct ng_key key;
    uint64_t revision;
    struct ng_str agent;
    struct ng_str tool;
    struct ng_str action;
    struct ng_str data; /* JSON object the plugin added (host->draft_event), or {NULL, 0} */
};

typedef int ng_event_fn(void *user, const struct ng_event *event);

/* ---- changes of documents ---- */

/*
 * Makes the next state of a document from the present one (revision 0 or deleted: there is
 * none). Runs under the document's lock, against the newest state, committed or queued, and
 * must be quick and free of I/O. It changes no other document: that is NG_EINTERNAL; documents
 * that change together are named in one change. It may run again later, on another thread,
 * after the tool returned (another gateway changed the document meanwhile): `user` lies in call
 * memory, and replies made in it are taken back before it runs again. The next state begins as
 * a copy of the present one; without a draft call nothing is changed and no revision is made.
 * Not NG_OK: nothing of the whole change is stored, and the call fails with it.
 */
typedef int ng_change_fn(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user);

/* A change of one document. Read by its size. */
struct ng_change {
    size_t size;
    struct ng_key key;
    ng_change_fn *fn;
    void *user;
    const char
        *action; /* of the event; NULL: "created", "updated" or "deleted", as it turns out */
    bool has_expected;          /* compare-and-swap: */
    bool is_new;                /* the id was just made by chance: it is not looked for first.
                                   Where it is taken nevertheless the change is NG_ECONFLICT */
    uint64_t expected_revision; /* the present revision must be this (0: not there), else
                                   NG_ECONFLICT */
};

/* Documents that one change may touch. */
#define NG_CHANGES_MAX 64

#ifdef __cplusplus
}
#endif

#endif
