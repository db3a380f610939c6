/* SPDX-License-Identifier: MIT */
/*
 * trail_select.h - the part of the store that a filter of changes leaves: the numbers between
 * which its origins have changes, these origins, and the documents with its ids. If there are
 * too many of them to be listed, they are found one by one during the walk.
 */
#ifndef NOTEGATE_SQLITE_TRAIL_SELECT_H
#define NOTEGATE_SQLITE_TRAIL_SELECT_H

#include "../store/db.h"
#include "notegate/documents.h"

/*
 * The work of a walk, in rows of `trail` that SQLite looks at: a row of `trail` that is looked
 * at here; a row of `log`; an origin that is looked up; a change whose row of `log` is not
 * what the filter wants; a search over the revisions of a document.
 */
#define LOOK_ROW 3
#define LOOK_LOG 5
#define LOOK_ORIGIN 10
#define LOOK_MISS 20
#define LOOK_SEARCH 200

/* Wanted origins that the scan can name. */
#define ORIGINS_NAMED 2

/* A set of numbers. */
struct bits {
    uint64_t *words;
    size_t cap; /* words */
};

/* Numbers from `first` to `last`. */
struct span {
    uint64_t first, last;
};

/* A document with one of the ids. */
struct trail_doc {
    int64_t doc;
    uint64_t revision, seq; /* the next change of the walk */
};

enum trail_docs {
    TRAIL_DOCS_ANY,    /* the filter has no id */
    TRAIL_DOCS_FEW,    /* `few` */
    TRAIL_DOCS_MARKED, /* `docs` */
    TRAIL_DOCS_MANY    /* not listed */
};

struct trail_select {
    struct conn *conn;
    const struct ng_trail *trail;
    uint64_t until; /* numbers up to it; at first as in `trail` */
    uint64_t looks; /* work so far */
    bool by_origin; /* not all origins are wanted */
    bool has_all;   /* all wanted ones are in `wanted` */
    struct bits wanted, known;
    size_t wanted_count;
    int64_t named[ORIGINS_NAMED]; /* has_all: the first of them */
    struct span *spans;           /* newest first, apart from each other */
    size_t span_count, span_cap;
    enum trail_docs kind;
    struct trail_doc *few;
    size_t few_count, few_cap;
    struct bits docs;
    sqlite3_stmt *origin; /* is ?1 wanted? NULL: not prepared yet */
};

bool bits_has(const struct bits *bits, int64_t number);

/* Lists the documents, and all numbers. SQLITE_OK or the error. trail_select_done() in both
 * cases. */
int trail_select(struct conn *conn, const struct ng_trail *trail, struct trail_select *ret);
/* Lists the origins, if there are not too many, and the numbers up to `until` that they leave.
 * SQLITE_OK or the error. */
int trail_find_origins(struct trail_select *select);
void trail_select_done(struct trail_select *select);
/* Is the origin wanted? */
int trail_wants_origin(struct trail_select *select, int64_t origin, bool *ret);
/* Adds " AND d.id ...". */
void trail_add_id(struct sql *sql, const struct ng_trail *trail);
/* Adds " AND column IN (...)" if there are names. */
void trail_add_names(struct sql *sql, const char *column, const struct ng_names *names);

#endif
