/* SPDX-License-Identifier: MIT */
/* sql_parts.h - limits of a statement, and its functions and tables. */
#ifndef OPENNOTES_SQL_PARTS_H
#define OPENNOTES_SQL_PARTS_H

#include "answer/left_out.h"
#include "index/index.h"
#include "sql.h"

/* ---- sql_guard.c: time, memory, and the authorizer */

enum notes_sql_stop {
    NOTES_SQL_RUNS = 0,
    NOTES_SQL_TIME,
    NOTES_SQL_CANCELLED,
    NOTES_SQL_MEMORY,
    NOTES_SQL_TEMPORARY, /* more temporary storage than allowed */
    NOTES_SQL_FORBIDDEN,
    NOTES_SQL_TRAVERSAL
};

#define NOTES_SQL_WHAT_MAX 160

/* A note whose front matter does not parse, and of which properties were read. */
struct notes_sql_broken {
    int64_t note;
    bool is_row; /* of the result, by its path */
};

struct notes_sql_guard {
    struct ng_call *call;
    sqlite3 *db;    /* the statement's own, in memory and empty */
    sqlite3 *index; /* lent */
    int64_t deadline_ns;
    int64_t bytes_max;
    int64_t memory_base; /* SQLite's, at the beginning */
    uint32_t ticks;
    bool guards; /* false: the tables are being declared */
    enum notes_sql_stop stop;
    char what[NOTES_SQL_WHAT_MAX]; /* of NOTES_SQL_FORBIDDEN and NOTES_SQL_TRAVERSAL */
    /* sql_temp.c */
    sqlite3_vfs vfs;
    sqlite3_vfs *base;
    char vfs_name[32];
    int64_t temporary; /* bytes in temporary files */
    /* sql_left_out.c */
    struct notes_sql_broken *broken; /* by their ids */
    size_t broken_count, broken_cap;
    sqlite3_stmt *broken_at; /* the note at a path; NULL: they are not told */
};

/* Opens guard->db with all restrictions. An SQLite code; close in any case. */
int notes_sql_guard_open(struct notes_sql_guard *guard, struct ng_call *call, sqlite3 *index,
                         const struct notes_sql *sql);
void notes_sql_guard_close(struct notes_sql_guard *guard);
/* Has the deadline passed, or was the call cancelled? Then guard->stop is set. For long
 * functions. */
bool notes_sql_guard_over(struct notes_sql_guard *guard);
/* Ends the function with the guard's reason. */
void notes_sql_guard_result(struct notes_sql_guard *guard, sqlite3_context *context);
/* Sets the reason with a text, once. */
void notes_sql_guard_stop(struct notes_sql_guard *guard, enum notes_sql_stop stop,
                          const char *what);

/* ---- sql_temp.c: temporary files that count */

/* Registers guard->vfs; a connection with it cannot open files by name. */
int notes_sql_temp_register(struct notes_sql_guard *guard);

/* ---- sql_functions.c, sql_match.c, sql_format.c: own versions of functions that could run for
 * minutes */

int notes_sql_functions(struct notes_sql_guard *guard);
void notes_sql_like(sqlite3_context *context, int count, sqlite3_value **values);
void notes_sql_glob(sqlite3_context *context, int count, sqlite3_value **values);
void notes_sql_printf(sqlite3_context *context, int count, sqlite3_value **values);

/* ---- sql_left_out.c: an SQLite code each */

/* If the statement may leave notes out because of their front matter: reserves room for them.
 */
int notes_sql_broken_begin(struct notes_sql_guard *guard, const struct notes_sql *sql,
                           struct notes_answer *answer);
/* Records that properties of such a note were read. */
int notes_sql_broken_read(struct notes_sql_guard *guard, int64_t note);
/* Marks the notes of this row: they are not left out. */
void notes_sql_broken_row(struct notes_sql_guard *guard, sqlite3_stmt *statement);
/* Counts those that are in no row. */
int notes_sql_broken_end(struct notes_sql_guard *guard, struct notes_left_out *left);
void notes_sql_broken_done(struct notes_sql_guard *guard);

/* ---- sql_notes.c, sql_markdown.c: the tables */

enum notes_sql_kind { NOTES_SQL_LINKS, NOTES_SQL_HEADINGS, NOTES_SQL_TASKS, NOTES_SQL_NOTES };

struct notes_sql_table {
    sqlite3_vtab base;
    struct notes_sql_guard *guard;
    enum notes_sql_kind kind;
};

extern const char *const notes_sql_table_names[NOTES_SQL_NOTES + 1];

/* xConnect and xDisconnect of all tables. */
int notes_sql_connect(sqlite3 *db, void *user, int count, const char *const *arguments,
                      sqlite3_vtab **ret_table, char **ret_error);
int notes_sql_disconnect(sqlite3_vtab *table);
int notes_sql_notes_table(struct notes_sql_guard *guard);
int notes_sql_markdown_tables(struct notes_sql_guard *guard);

/* ---- sql_tokens.c */

enum notes_token_kind {
    NOTES_TOKEN_END = 0,
    NOTES_TOKEN_WORD,    /* a name or keyword, not quoted */
    NOTES_TOKEN_QUOTED,  /* "name", `name` */
    NOTES_TOKEN_BRACKET, /* [name] */
    NOTES_TOKEN_STRING,  /* 'text' */
    NOTES_TOKEN_NUMBER,
    NOTES_TOKEN_MARK /* one character of anything else; "::" is one mark */
};

struct notes_token {
    enum notes_token_kind kind;
    struct ng_str text; /* with its quotes */
};

/* The token at *at; *at moves behind it. Comments and blanks are skipped. */
struct notes_token notes_token_next(struct ng_str sql, size_t *at);
bool notes_token_is(const struct notes_token *token,
                    const char *word); /* without regard to case */
/* Estimated size of a statement after SQLite's expansions: tokens, those of common table
 * expressions once for each use, times names. A statement over NOTES_SQL_WEIGHT_MAX must not be
 * prepared. */
#define NOTES_SQL_WEIGHT_MAX UINT64_C(30000000)
uint64_t notes_sql_weight(struct ng_str sql);

/* ---- sql_hint.c: DuckDB syntax */

/* Syntax that SQLite would read differently: *ret_message and *ret_hint are set. */
bool notes_sql_is_foreign(struct ng_call *call, struct ng_str sql, struct ng_str *ret_message,
                          struct ng_str *ret_hint);
/* A hint for a statement that SQLite refused with `message`; {NULL, 0}: there is none. */
struct ng_str notes_sql_hint(struct ng_call *call, struct ng_str sql, const char *message);

/* ---- sql_row.c */

struct notes_sql_names {
    struct ng_str *names; /* of the columns, each once */
    int count;
};
/* In call memory; NG_EINTERNAL: none. */
int notes_sql_names(struct ng_call *call, sqlite3_stmt *statement,
                    struct notes_sql_names *names);
void notes_sql_row(struct buf *buf, sqlite3_stmt *statement,
                   const struct notes_sql_names *names);
/* Bytes of the texts and blobs of the present row. */
int64_t notes_sql_row_bytes(sqlite3_stmt *statement);

#endif
