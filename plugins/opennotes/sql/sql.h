/* SPDX-License-Identifier: MIT */
/* sql.h - one read-only statement of an agent, on a connection of its own that has nothing but
 * read_markdown() and the md_ functions. */
#ifndef OPENNOTES_SQL_H
#define OPENNOTES_SQL_H

#include <sqlite3.h>

#include "answer/answer.h"

#define NOTES_SQL_LENGTH_MAX 100000
#define NOTES_SQL_ROWS_MAX 100000
#define NOTES_SQL_BYTES_MAX ((int64_t)256 * 1024 * 1024) /* of its rows, and of its memory */
#define NOTES_SQL_VALUE_MAX (16 * 1024 * 1024)           /* of one value */

/* Columns of the tables md_tasks(content) and its siblings, for texts. */
#define NOTES_SQL_TASK_COLUMNS "line, done, text"
#define NOTES_SQL_LINK_COLUMNS "line, text, target, kind"
#define NOTES_SQL_HEADING_COLUMNS "line, level, text, slug"

/* Bound as :name, @name or $name. */
struct notes_sql_param {
    struct ng_str name; /* without its mark */
    struct ng_str text;
    bool is_number; /* bound as a number where the text is one */
};

struct notes_left_out;

struct notes_sql {
    struct ng_str text;
    int64_t timeout_ms; /* opennotes.query_timeout */
    int64_t
        bytes_max; /* of its rows, its memory, its temporary files; 0: NOTES_SQL_BYTES_MAX */
    const struct notes_sql_param *params;
    size_t param_count;
    struct notes_left_out *left_out; /* gets the notes that may be left out; NULL: none */
};

/*
 * Runs it to its end. The rows from answer->offset on go into the answer's list as objects, as
 * many as it takes; *ret_total is how many there are. `index` is what notes_index_begin() lent.
 * Fails with INVALID_SQL (bad or forbidden statement, a parameter without value, over
 * NOTES_SQL_ROWS_MAX or NOTES_SQL_BYTES_MAX), QUERY_TIMEOUT, CANCELLED, PATH_TRAVERSAL (a
 * glob).
 */
int notes_sql_run(struct ng_call *call, sqlite3 *index, const struct notes_sql *sql,
                  struct notes_answer *answer, int64_t *ret_total);

#endif
