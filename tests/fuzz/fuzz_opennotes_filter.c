/* SPDX-License-Identifier: MIT */
/* fuzz_opennotes_filter.c - conditions of filters, one a line: what compiles is one SQL
 * expression that runs, with its values bound and nothing of the text pasted. */
#include <stdlib.h>
#include <string.h>

#include "core/call/call.h"
#include "core/json/json.h"
#include "test_gateway.h"

#include "../../plugins/opennotes/filter/filter.h"

/* NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tables[] =
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, path, path_fold, title, title_fold,"
    " front_error);"
    "CREATE TABLE fields(note, key, text, number);CREATE TABLE tags(note, tag, fold);"
    "CREATE TABLE links(note, key, kind);CREATE TABLE names(note, key, kind);"
    "INSERT INTO notes VALUES(1,'a.md','a.md','A','a',NULL),(2,'b.md','b.md',NULL,NULL,'x');"
    "INSERT INTO fields VALUES(1,'k','v',NULL),(1,'n','2',2);INSERT INTO tags "
    "VALUES(1,'x','x');"
    "INSERT INTO links VALUES(1,'a','wiki');INSERT INTO names VALUES(1,'a','file');";

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
    must(notes_filter_functions(db) == SQLITE_OK);
    (void)atexit(close_all);
}

/* The lines as {"and": [...], "or": [...], "not": [...]}, in turn. */
static struct ng_str as_json(struct ng_call *call, const uint8_t *data, size_t size)
{
    static const char *const names[] = {"and", "or", "not"};
    struct ng_writer *writer = call->host->json_writer(call);
    must(writer != NULL);
    call->host->json_object(writer);
    for (size_t group = 0; group < NG_COUNT(names); group++) {
        size_t line = 0;
        call->host->json_name(writer, names[group]);
        call->host->json_array(writer);
        for (size_t begin = 0; begin < size; line++) {
            const uint8_t *lf = memchr(data + begin, '\n', size - begin);
            size_t end = lf != NULL ? (size_t)(lf - data) : size;
            if (line % NG_COUNT(names) == group) {
                call->host->json_string(writer,
                                        str_make((const char *)data + begin, end - begin));
            }
            begin = end + 1;
        }
        call->host->json_end(writer);
    }
    call->host->json_end(writer);
    return call->host->json_result(writer);
}

static void run_filter(const struct notes_filter *filter)
{
    struct buf sql;
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    int next = 0;
    buf_init(&sql, (size_t)4 * 1024 * 1024);
    buf_add_c(&sql, "SELECT 1 FROM notes n WHERE ");
    buf_add_str(&sql, filter->sql);
    buf_add_char(&sql, '\0');
    must(sqlite3_prepare_v2(db, sql.data, -1, &statement, &rest) == SQLITE_OK);
    must(*rest == '\0' && sqlite3_stmt_readonly(statement));
    must(notes_filter_bind(filter, statement, 1, &next) == SQLITE_OK);
    must(next == sqlite3_bind_parameter_count(statement) + 1);
    int rc = sqlite3_step(statement);
    must(rc == SQLITE_ROW || rc == SQLITE_DONE);
    must(sqlite3_finalize(statement) == SQLITE_OK);
    buf_done(&sql);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ng_value *filters = NULL;
    struct notes_filter *filter = NULL;
    struct notes_filter *left = NULL;
    if (gateway == NULL) {
        open_all();
    }
    struct call *call = call_new(gateway);
    must(call != NULL);
    struct ng_str json = as_json(&call->pub, data, size);
    if (json.data != NULL && call->pub.host->json_parse(&call->pub, json, &filters) == NG_OK) {
        int rc = notes_filter_compile(&call->pub, filters, NG_EINVAL, &filter);
        must(rc == NG_OK || (rc == NG_EINVAL && call->staged.message.len > 0));
        if (rc == NG_OK) {
            run_filter(filter);
            must(notes_filter_left_out(&call->pub, db, filter, &left) == SQLITE_OK);
        }
        if (left != NULL) {
            run_filter(left);
        }
    }
    call_unref(call);
    return 0;
}
