/* SPDX-License-Identifier: MIT */
/* sql_guard.c - restricts a statement to reading, to allowed functions and tables, and limits
 * its time and memory. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "sql_parts.h"

/* Operations of SQLite's virtual machine between checks of the deadline: few, because one of
 * them can take long on values of megabytes. */
#define GUARD_TICK_OPS 4
#define GUARD_MEMORY_TICKS 4
#define GUARD_CANCEL_TICKS 4096
/* Flattening subqueries and pushing conditions down into them copy expressions into each other:
 * `SELECT x+x AS x FROM (SELECT x+x AS x FROM (...` doubles with every level, before it runs.
 */
#define OPTIMIZATIONS_OFF (0x00000001 | 0x00001000)
#define NS_PER_MS INT64_C(1000000)

static int64_t now_ns(void)
{
    struct timespec now;
    /* The coarse clock is a few ms off, but costs next to nothing. */
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

void notes_sql_guard_stop(struct notes_sql_guard *guard, enum notes_sql_stop stop,
                          const char *what)
{
    if (guard->stop == NOTES_SQL_RUNS) {
        guard->stop = stop;
        (void)snprintf(guard->what, sizeof(guard->what), "%s", what);
    }
}

bool notes_sql_guard_over(struct notes_sql_guard *guard)
{
    if (guard->stop == NOTES_SQL_RUNS && now_ns() >= guard->deadline_ns) {
        guard->stop = NOTES_SQL_TIME;
    }
    if (guard->stop == NOTES_SQL_RUNS && guard->ticks++ % GUARD_CANCEL_TICKS == 0 &&
        guard->call->host->cancelled(guard->call)) {
        guard->stop = NOTES_SQL_CANCELLED;
    }
    return guard->stop != NOTES_SQL_RUNS;
}

void notes_sql_guard_result(struct notes_sql_guard *guard, sqlite3_context *context)
{
    /* Checked even if the caller drops the error: nothing continues. */
    sqlite3_interrupt(guard->db);
    sqlite3_result_error_code(context, SQLITE_INTERRUPT);
}

static int tick(void *user)
{
    struct notes_sql_guard *guard = user;
    if (guard->stop == NOTES_SQL_RUNS && guard->ticks % GUARD_MEMORY_TICKS == 0 &&
        guard->call->host->sqlite_bytes() - guard->memory_base > guard->bytes_max) {
        guard->stop = NOTES_SQL_MEMORY;
    }
    return notes_sql_guard_over(guard);
}

/* ---- the authorizer ---- */

/* Left out on purpose: json_patch() takes quadratic time; load_extension(), fts3_tokenizer(),
 * sqlite_log() and the full-text and r-tree helpers are not needed here. */
static const char functions[] =
    "-> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char "
    "coalesce cos cosh count cume_dist current_date current_time current_timestamp "
    "date datetime degrees dense_rank exp first_value floor format glob "
    "group_concat hex ifnull iif instr json json_array json_array_length "
    "json_extract json_group_array json_group_object json_insert json_object "
    "json_quote json_remove json_replace json_set json_type json_valid julianday "
    "lag last_value lead length like likelihood likely ln log log10 log2 lower "
    "ltrim max md_stats min mod nth_value ntile nullif percent_rank pi pow power "
    "printf quote radians random randomblob rank replace round row_number rtrim "
    "sign sin sinh sqlite_version sqrt strftime substr substring sum tan tanh time "
    "total trim trunc typeof unicode unixepoch unlikely upper zeroblob";

static const char tables[] = "read_markdown md_links md_headings md_tasks json_each json_tree";

static const char *action_name(int action)
{
    switch (action) {
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
        return "It changes data; statements here only read";
    case SQLITE_PRAGMA:
        return "PRAGMA is not allowed here";
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        return "ATTACH and DETACH are not allowed here";
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
        return "Transactions are not allowed here; every statement sees one state anyway";
    default:
        return "It does more than read; only SELECT and WITH ... SELECT are allowed here";
    }
}

static int forbid(struct notes_sql_guard *guard, const char *format, const char *name)
{
    char what[NOTES_SQL_WHAT_MAX];
    (void)snprintf(what, sizeof(what), "%s %.100s", format, name != NULL ? name : "");
    notes_sql_guard_stop(guard, NOTES_SQL_FORBIDDEN, what);
    return SQLITE_DENY;
}

/* If no column of it is read, the authorizer also gets names of common table expressions. There
 * are no other tables except SQLite's own. */
static bool is_expression(const char *table, const char *column)
{
    return table != NULL && column != NULL && column[0] == '\0' &&
           strncasecmp(table, "sqlite_", 7) != 0 && strncasecmp(table, "pragma_", 7) != 0;
}

static int authorize(void *user, int action, const char *first, const char *second,
                     const char *database, const char *inner)
{
    struct notes_sql_guard *guard = user;
    (void)database;
    (void)inner;
    if (!guard->guards) {
        return SQLITE_OK;
    }
    /* Preparing can be stopped only here. */
    if (tick(guard) != 0) {
        return SQLITE_DENY;
    }
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_READ:
        if (str_in_words(ng_str_of(first), tables) || is_expression(first, second)) {
            return SQLITE_OK;
        }
        return forbid(guard, "There is no table", first);
    case SQLITE_FUNCTION:
        if (str_in_words(ng_str_of(second), functions)) {
            return SQLITE_OK;
        }
        return forbid(guard, "There is no function", second);
    default:
        return forbid(guard, action_name(action), NULL);
    }
}

/* ---- */

struct limit {
    int id;
    int most;
};

static const struct limit limits[] = {
    {SQLITE_LIMIT_LENGTH, NOTES_SQL_VALUE_MAX},
    {SQLITE_LIMIT_SQL_LENGTH, NOTES_SQL_LENGTH_MAX},
    {SQLITE_LIMIT_COLUMN, 200},
    {SQLITE_LIMIT_EXPR_DEPTH, 200},
    {SQLITE_LIMIT_COMPOUND_SELECT, 100},
    {SQLITE_LIMIT_VDBE_OP, 200000},
    {SQLITE_LIMIT_FUNCTION_ARG, 64},
    {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 100},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
};

/* Tables are declared at their first use; the declaration asks the authorizer for more than
 * reading. */
static int declare_tables(struct notes_sql_guard *guard)
{
    static const char use[] =
        "SELECT 1 FROM read_markdown, md_links(''), md_headings(''), md_tasks(''), "
        "json_each('[]'), json_tree('[]')";
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(guard->db, use, -1, &statement, NULL);
    (void)sqlite3_finalize(statement);
    return rc;
}

int notes_sql_guard_open(struct notes_sql_guard *guard, struct ng_call *call, sqlite3 *index,
                         const struct notes_sql *sql)
{
    const char *modules[] = {"json_each", "json_tree", NULL};
    int64_t left = call->host->remaining_ms(call);
    int64_t timeout_ms = sql->timeout_ms;
    *guard = (struct notes_sql_guard){.call = call, .index = index};
    guard->bytes_max = sql->bytes_max > 0 ? sql->bytes_max : NOTES_SQL_BYTES_MAX;
    guard->deadline_ns =
        now_ns() + (left > 0 && left < timeout_ms ? left : timeout_ms) * NS_PER_MS;
    int rc = notes_sql_temp_register(guard);
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = sqlite3_open_v2(":memory:", &guard->db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                         guard->vfs_name);
    (void)sqlite3_vfs_unregister(&guard->vfs);
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = sqlite3_drop_modules(guard->db, modules);
    if (rc != SQLITE_OK) {
        return rc;
    }
    static int (*const steps[])(struct notes_sql_guard *) = {
        notes_sql_functions, notes_sql_notes_table, notes_sql_markdown_tables, declare_tables};
    for (size_t i = 0; i < NG_COUNT(steps); i++) {
        rc = steps[i](guard);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    for (size_t i = 0; i < NG_COUNT(limits); i++) {
        (void)sqlite3_limit(guard->db, limits[i].id, limits[i].most);
    }
    (void)sqlite3_test_control(SQLITE_TESTCTRL_OPTIMIZATIONS, guard->db, OPTIMIZATIONS_OFF);
    guard->memory_base = call->host->sqlite_bytes();
    guard->guards = true;
    rc = sqlite3_set_authorizer(guard->db, authorize, guard);
    sqlite3_progress_handler(guard->db, GUARD_TICK_OPS, tick, guard);
    return rc;
}

void notes_sql_guard_close(struct notes_sql_guard *guard)
{
    (void)sqlite3_close_v2(guard->db);
    guard->db = NULL;
    notes_sql_broken_done(guard);
}
