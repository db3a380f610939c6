/* SPDX-License-Identifier: MIT */
/* fuzz_opennotes_sql.c - any text as a statement of an agent: it gives rows or a failure, it
 * ends, the index is as it was, and the answer is within its budget. */
#include <stdlib.h>
#include <string.h>

#include "core/call/call.h"
#include "test_gateway.h"

#include "../../plugins/opennotes/sql/sql.h"
#include "../../plugins/opennotes/text/codes.h"

#define TIMEOUT_MS 200
#define BUDGET 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tables[] =
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, path TEXT UNIQUE, title, created, modified,"
    " size, words, front, front_error);"
    "CREATE TABLE bodies(note INTEGER PRIMARY KEY, content);CREATE TABLE tags(note, tag);"
    "INSERT INTO notes "
    "VALUES(1,'a.md','A',1,2,3,4,'{\"k\":[1]}',NULL),(2,'b/c.md',NULL,1,2,3,4,'{}','x');"
    "INSERT INTO bodies VALUES(1,'# A\n[b](b/c.md) [[x]]\n- [ ] t\n'),(2,'text');"
    "INSERT INTO tags VALUES(1,'x');";

static struct gateway *gateway;
static sqlite3 *db;

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void close_all(void)
{
    (void)sqlite3_close(db);
    test_gateway_close(gateway);
}

static void open_all(void)
{
    gateway = test_gateway_open(NULL);
    must(gateway != NULL);
    must(sqlite3_open(":memory:", &db) == SQLITE_OK);
    must(sqlite3_exec(db, tables, NULL, NULL, NULL) == SQLITE_OK);
    (void)atexit(close_all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct notes_budget budget = {BUDGET, 2000};
    int64_t total = 0;
    struct notes_answer answer;
    if (gateway == NULL) {
        open_all();
    }
    struct call *call = call_new(gateway);
    must(call != NULL);
    const struct notes_sql sql = {.text = str_make((const char *)data, size),
                                  .timeout_ms = TIMEOUT_MS};
    int changes = sqlite3_total_changes(db);
    notes_answer_begin(&answer, &call->pub, &budget, 10, 0);
    notes_answer_list(&answer, "results");
    int rc = notes_sql_run(&call->pub, db, &sql, &answer, &total);
    must(rc == NG_OK || rc == NOTES_ESQL || rc == NG_EQUERYTIMEOUT || rc == NG_ETRAVERSAL);
    if (rc == NG_OK) {
        must(total >= answer.returned && total <= NOTES_SQL_ROWS_MAX);
        notes_answer_list_end(&answer);
        must(notes_answer_end(&answer, total) == NG_OK);
    } else {
        must(call->staged.message.len > 0);
        notes_answer_drop(&answer);
    }
    must(sqlite3_total_changes(db) == changes);
    must(sqlite3_next_stmt(db, NULL) == NULL);
    call_unref(call);
    return 0;
}
