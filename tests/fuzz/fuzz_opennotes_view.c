/* SPDX-License-Identifier: MIT */
/* fuzz_opennotes_view.c - a view's definition, a NUL, its parameters, both JSON: it is refused,
 * or runs as one statement in which no value became syntax. */
#include <stdlib.h>
#include <string.h>

#include "core/call/call.h"
#include "core/json/json.h"
#include "test_gateway.h"

#include "../../plugins/opennotes/text/codes.h"
#include "../../plugins/opennotes/view/view.h"
#include "../../plugins/opennotes/write/create.h"

#define NOW_MS ((int64_t)1769610600000)
#define FILLED_BYTES_MAX 1048576

/* NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tables[] =
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, path, path_fold, title, title_fold, created,"
    " modified, size, words, front_error);"
    "CREATE TABLE fields(note, key, text, number);CREATE TABLE tags(note, tag, fold);"
    "CREATE TABLE links(note, key, kind);CREATE TABLE names(note, key, kind);"
    "INSERT INTO notes "
    "VALUES(1,'a.md','a.md','A','a',1,2,3,4,NULL),(2,'b.md','b.md',NULL,NULL,1,2,3,"
    "4,'broken');"
    "INSERT INTO fields VALUES(1,'k','v',NULL),(1,'n','2',2);INSERT INTO tags "
    "VALUES(1,'x','x');";

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

static void run_view(struct ng_call *call, const struct ng_value *definition)
{
    struct opennotes self = {.query_timeout_ms = 1000};
    struct notes_notebook notebook = {
        .self = &self, .name = ng_str_of("n"), .path = ng_str_of("/n"), .db = db};
    const struct notes_budget budget = {51200, 2000};
    struct arena arena;
    struct notes_answer answer;
    struct notes_view view = {.notebook = &notebook,
                              .call = call,
                              .arena = &arena,
                              .answer = &answer,
                              .name = ng_str_of("v"),
                              .origin = NOTES_VIEW_NOTEBOOK,
                              .definition = definition,
                              .now_ms = NOW_MS};
    arena_init(&arena, 0);
    notes_answer_begin(&answer, call, &budget, 50, 0);
    notes_answer_list(&answer, "results");
    int rc = notes_view_read_params(&view);
    if (rc == NG_OK && call->host->json_get(definition, "sql") == NULL) {
        rc = notes_view_run_query(&view);
        /* Refused for its content, never because the generated statement is wrong. */
        must(rc == NG_OK || rc == NOTES_ECONFIG || rc == NG_EINVAL);
    }
    notes_answer_list_end(&answer);
    notes_left_out_end(&view.left_out, &answer);
    if (rc == NG_OK) {
        must(notes_answer_end(&answer, answer.rows) == NG_OK);
    } else {
        notes_answer_drop(&answer);
    }
    arena_done(&arena);
    must(sqlite3_next_stmt(db, NULL) == NULL);
}

static void fill_template(struct ng_str text)
{
    struct notes_value data = {.type = NOTES_MAP};
    struct notes_vars vars = {.title = text, .slug = text, .now_ms = NOW_MS, .data = &data};
    struct buf out;
    char time[RFC3339_SIZE];
    buf_init(&out, FILLED_BYTES_MAX);
    notes_template_fill(&out, text, &vars);
    buf_done(&out);
    (void)notes_view_time(text, NOW_MS, time);
    must(notes_glob(text, text) || memchr(text.data, '[', text.len) != NULL ||
         memchr(text.data, '\\', text.len) != NULL ||
         memchr(text.data, '?', text.len) != NULL || memchr(text.data, '*', text.len) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (gateway == NULL) {
        open_all();
    }
    struct ng_str all = str_make((const char *)data, size);
    const char *nul = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t len = nul != NULL ? (size_t)(nul - all.data) : size;
    struct call *call = call_new(gateway);
    const struct ng_value *definition = NULL;
    const struct ng_value *args = NULL;
    must(call != NULL);
    if (size > 0 && utf8_valid(all)) {
        fill_template(all);
    }
    bool parsed =
        call->pub.host->json_parse(&call->pub, str_make(all.data, len), &definition) == NG_OK &&
        call->pub.host->json_type(definition) == NG_TYPE_OBJECT;
    if (parsed && nul != NULL) {
        parsed = call->pub.host->json_parse(&call->pub, str_make(nul + 1, size - len - 1),
                                            &args) == NG_OK &&
                 call->pub.host->json_type(args) == NG_TYPE_OBJECT;
        call->pub.args = args;
    }
    if (parsed) {
        run_view(&call->pub, definition);
    }
    call_unref(call);
    return 0;
}
