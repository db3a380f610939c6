/* SPDX-License-Identifier: MIT */
/* places.h - the places of hits in the full-text index, and excerpts of their texts. */
#ifndef NOTEGATE_SQLITE_PLACES_H
#define NOTEGATE_SQLITE_PLACES_H

#include "db.h"

/* A token of a column of the full-text index. */
struct place {
    int column; /* -1: none */
    int token;
};

/* The byte of one token in MARK_BYTES of a column. */
struct mark {
    int column;
    int token;
    size_t at; /* its byte */
};

struct marks {
    struct mark *list;
    size_t count, cap;
    int column, token; /* of the next token; column -1: before the first one */
    size_t next;       /* the byte from which the next token is marked */
};

/* Begins the next column. Of NULL a no-op, as is marks_token(). */
void marks_column(struct marks *marks);
/* The next token of the column begins at this byte. SQLITE_OK or SQLITE_NOMEM. */
int marks_token(struct marks *marks, size_t from);
int marks_remove(struct conn *conn, int64_t collection, int64_t doc);
int marks_store(struct conn *conn, int64_t collection, int64_t doc, const struct marks *marks);

/* Reads excerpts of one search. */
struct excerpts {
    struct conn *conn;
    int64_t collection;
    uint32_t chars;
    sqlite3_blob *blob;
    int column; /* of the blob */
    struct bytes window, excerpt;
};

/* Makes the excerpt around a place. SQLITE_OK or an error of the connection. */
int excerpt_at(struct excerpts *excerpts, int64_t doc, const struct place *place);
void excerpts_done(struct excerpts *excerpts);

/* The value of ng_rank(): the score of a hit, and its place for the excerpt. */
struct ranked {
    double score;
    size_t exact; /* phrases that match as they are */
    struct place place;
};

#endif
