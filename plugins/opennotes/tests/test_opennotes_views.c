/* SPDX-License-Identifier: MIT */
/* test_opennotes_views.c - views that are built in, configured and a notebook's own. */
#include "test_notebook.h"

#include <time.h>

#include "view/view.h"

#define VIEWS "opennotes_views"

#define CONFIG                                                                                 \
    "{\"views\":{"                                                                             \
    "\"today\":{\"description\":\"Mine\",\"query\":{\"sort\":\"-path\",\"limit\":2}},"         \
    "\"both\":{\"description\":\"Notebook\",\"query\":{}},"                                    \
    "\"by\":{\"description\":\"By status\",\"parameters\":["                                   \
    "{\"name\":\"status\",\"type\":\"list\",\"default\":\"todo\",\"description\":\"which\"},"  \
    "{\"name\":\"least\",\"type\":\"number\"},{\"name\":\"day\",\"type\":\"date\"},"           \
    "{\"name\":\"on\",\"type\":\"bool\"},{\"name\":\"must\",\"required\":true}],"              \
    "\"query\":{\"filters\":{\"and\":[\"data.status={{status}}\",\"title~{{must}}\"]},"        \
    "\"sort\":[\"-data.rank\",\"title\"],\"group\":\"data.status\"}},"                         \
    "\"sql\":{\"parameters\":[{\"name\":\"t\",\"required\":true},{\"name\":\"l\",\"type\":"    \
    "\"list\","                                                                                \
    "\"default\":\"a,b\"}],\"sql\":\"SELECT title, {{today}} AS day, '{{year}}' AS year FROM " \
    "read_markdown('**/*.md') WHERE title = :t OR title IN (SELECT value FROM json_each(:l)) " \
    "ORDER BY title\"},"                                                                       \
    "\"env\":{\"query\":{\"filters\":{\"and\":[\"title={{env:HOME}}\"]}}},"                    \
    "\"envsql\":{\"sql\":\"SELECT '{{env:HOME}}'\"},"                                          \
    "\"unknown\":{\"query\":{\"filters\":{\"and\":[\"title={{nothing}}\"]}}},"                 \
    "\"field\":{\"parameters\":[{\"name\":\"f\",\"default\":\"x\"}],"                          \
    "\"query\":{\"filters\":{\"and\":[\"data.{{f}}=1\"]}}},"                                   \
    "\"sort\":{\"query\":{\"sort\":\"rank; DROP\"}},\"empty\":{},\"text\":\"x\","              \
    "\"limit\":{\"query\":{\"limit\":0}},"                                                     \
    "\"item\":{\"query\":{\"filters\":{\"or\":[1]}}},"                                         \
    "\"many\":{\"parameters\":[{\"name\":\"a\",\"type\":\"list\",\"default\":\"a\"},"          \
    "{\"name\":\"b\",\"type\":\"list\",\"default\":\"a\"}],"                                   \
    "\"query\":{\"filters\":{\"and\":[\"title={{a}}\",\"title={{a}}\"],"                       \
    "\"or\":[\"title={{b}}\",\"path={{b}}\"]}}}}}"

#define GLOBAL                                                                                 \
    "opennotes.views={\"both\":{\"description\":\"Global\",\"query\":{}},"                     \
    "\"everywhere\":{\"description\":\"G\",\"query\":{\"sort\":\"path\"}}}"

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture);
    fixture_put(fixture, ".opennotes.json", CONFIG);
    fixture_put(fixture, "a.md",
                "---\ntitle: a\nstatus: todo\npriority: high\nrank: 10\ntags: []\n"
                "created: 2020-01-01\nmodified: 2020-01-01\n---\n[[b]]\n");
    fixture_put(fixture, "dir/Pic.png", "x");
    fixture_put(fixture, "b.md",
                "---\ntitle: b\nstatus: Done\npriority: 2\nrank: 9\ntag: t\n"
                "created: 2020-01-03\nmodified: 2020-01-03\n---\n[x](no.md) "
                "[y](file.txt) [z](dir) [[none|N]] [[pic.png]] [[c]]\n"
                "`[code](gone.md)` ![img](gone.png) [mail](mailto:x@y.z) [out](../../x.md)\n");
    fixture_put(fixture, "c.md",
                "---\ntitle: c\nstatus: [done, todo]\npriority: 10\n"
                "created: 2020-01-02\nmodified: 2020-01-02\n---\n");
    fixture_put(fixture, "d.md",
                "---\ntitle: d\nstatus: todo\nrank: word\n"
                "created: 2020-01-05\nmodified: 2020-01-05\n---\n[b](b.md)\n");
    fixture_put(fixture, "dir/e.md",
                "---\ntitle: e\nstatus: todo\npriority: 1\ntags: [x]\n"
                "created: 2020-01-04\nmodified: 2020-01-04\n---\n");
    fixture_put(fixture, "file.txt", "no note");
    fixture_serve(fixture, (const char *const[]){GLOBAL, NULL});
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

/* The paths of the results, in order, with blanks between. */
static void paths(struct fixture *fixture, const char *args, const char *wanted)
{
    char *text = fixture_call(fixture, VIEWS, args);
    char found[1000] = "";
    const char *list = strstr(text, "\"results\":[");
    assert_non_null(list);
    for (const char *at = strstr(list, "\"path\":\""); at != NULL;
         at = strstr(at + 1, "\"path\":\"")) {
        const char *end = strchr(at + 8, '"');
        size_t len = strlen(found);
        (void)snprintf(found + len, sizeof(found) - len, "%s%.*s", len > 0 ? " " : "",
                       (int)(end - at - 8), at + 8);
    }
    assert_string_equal(found, wanted);
    free(text);
}

static void built_in(void **state)
{
    struct fixture *fixture = *state;
    paths(fixture, "{\"view\":\"recent\"}", "d.md dir/e.md b.md c.md a.md");
    paths(fixture, "{\"view\":\"recent\",\"limit\":2,\"offset\":3}", "c.md a.md");
    paths(fixture, "{\"view\":\"untagged\"}", "d.md c.md a.md");
    paths(fixture, "{\"view\":\"orphans\"}", "d.md dir/e.md a.md");
    paths(fixture, "{\"view\":\"orphans\",\"params\":{\"definition\":\"no-links\"}}",
          "dir/e.md");
    paths(fixture, "{\"view\":\"orphans\",\"params\":{\"definition\":\"isolated\"}}", "");
    fixture_fails(fixture, VIEWS, "{\"view\":\"orphans\",\"params\":{\"definition\":\"all\"}}",
                  "VIEW_INVALID_PARAMS", "no-links");
    char *text = fixture_call(fixture, VIEWS, "{\"view\":\"broken-links\"}");
    assert_non_null(strstr(text,
                           "\"results\":[{\"path\":\"b.md\",\"line\":10,\"target\":\"no.md\","
                           "\"text\":\"x\"},{\"path\":\"b.md\",\"line\":10,"
                           "\"target\":\"none\",\"text\":\"N\"}]"));
    assert_non_null(strstr(text, "\"total\":2,"));
    free(text);
}

static void kanban(void **state)
{
    struct fixture *fixture = *state;
    /* Numbers before words, those before none; a list stands where its first status is. */
    paths(fixture, "{\"view\":\"kanban\"}", "dir/e.md c.md a.md d.md b.md");
    paths(fixture, "{\"view\":\"kanban\",\"params\":{\"status\":\"done, todo\"}}",
          "b.md c.md dir/e.md a.md d.md");
    paths(fixture, "{\"view\":\"kanban\",\"params\":{\"status\":\"done\"}}", "b.md c.md");
    fixture_says(fixture, VIEWS, "{\"view\":\"kanban\",\"params\":{\"status\":\"done\"}}",
                 (const char *const[]){
                     "{\"status\":\"Done\",\"priority\":2,\"path\":\"b.md\",\"title\":\"b\","
                     "\"tags\":[\"t\"],\"created\":\"2020-01-0",
                     "\"view\":{\"name\":\"kanban\",\"description\":\"Notes by",
                     "\"total\":2,\"returned\":2", "\"notebook\":{\"name\":", NULL});
    fixture_fails(fixture, VIEWS, "{\"view\":\"kanban\",\"params\":{\"stat\":\"x\"}}",
                  "VIEW_INVALID_PARAMS", "'status' (list)");
    fixture_fails(fixture, VIEWS, "{\"view\":\"kanban\",\"params\":{\"status\":\" , \"}}",
                  "VIEW_INVALID_PARAMS", "empty list");
    fixture_fails(fixture, VIEWS, "{\"view\":\"kanban\",\"params\":{\"status\":1}}",
                  "INVALID_PARAMS", "");
    fixture_fails(fixture, VIEWS, "{\"params\":{\"status\":\"x\"}}", "INVALID_PARAMS",
                  "without `view`");
}

static void today(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    fixture_put(&fixture, "new.md", "x");
    fixture_put(&fixture, "old.md", "---\ncreated: 2020-01-01\nmodified: 2020-01-01\n---\n");
    fixture_put(&fixture, "changed.md", "---\ncreated: 2020-01-01\n---\n");
    fixture_serve(&fixture, NULL);
    char *text = fixture_call(&fixture, VIEWS, "{\"view\":\"today\"}");
    assert_non_null(strstr(text, "new.md"));
    assert_non_null(strstr(text, "changed.md"));
    assert_null(strstr(text, "old.md"));
    free(text);
    fixture_close(&fixture);
}

static void listing(void **state)
{
    struct fixture *fixture = *state;
    char *text = fixture_call(fixture, VIEWS, "{}");
    assert_non_null(
        strstr(text, "{\"name\":\"today\",\"origin\":\"notebook\",\"description\":\"Mine\"}"));
    assert_non_null(strstr(text, "{\"name\":\"recent\",\"origin\":\"built-in\""));
    assert_non_null(strstr(
        text, "{\"name\":\"both\",\"origin\":\"notebook\",\"description\":\"Notebook\"}"));
    assert_non_null(strstr(text, "{\"name\":\"everywhere\",\"origin\":\"global\""));
    assert_null(strstr(text, "Global"));
    assert_non_null(strstr(text, "{\"name\":\"status\",\"type\":\"list\",\"required\":false,"
                                 "\"default\":\"todo\",\"description\":\"which\"}"));
    free(text);
    fixture_fails(fixture, VIEWS, "{\"view\":\"kanbam\"}", "VIEW_NOT_FOUND",
                  "Did you mean 'kanban'?");
    fixture_fails(fixture, VIEWS, "{\"view\":\"nothing at all\"}", "VIEW_NOT_FOUND",
                  "View not found: nothing at all");
    fixture_has(fixture, ".opennotes.json", CONFIG);
}

static void own(void **state)
{
    struct fixture *fixture = *state;
    paths(fixture, "{\"view\":\"today\"}", "dir/e.md d.md");
    paths(fixture, "{\"view\":\"everywhere\",\"limit\":2,\"offset\":1}", "b.md c.md");
    /* By status, numbers before words, the missing last, also when the order is down. */
    paths(fixture, "{\"view\":\"by\",\"params\":{\"must\":\"\",\"status\":\"todo\"}}",
          "c.md a.md d.md dir/e.md");
    paths(fixture, "{\"view\":\"by\",\"params\":{\"must\":\"A\"}}", "a.md");
    fixture_says(
        fixture, VIEWS, "{\"view\":\"by\",\"params\":{\"must\":\"d\"}}",
        (const char *const[]){"{\"group\":\"todo\",\"path\":\"d.md\"", "\"total\":1,", NULL});
    /* A value is a value, whatever is in it. */
    paths(fixture, "{\"view\":\"by\",\"params\":{\"must\":\"' OR 1=1 --\"}}", "");
    paths(fixture, "{\"view\":\"by\",\"params\":{\"must\":\"{{env:HOME}}\"}}", "");
    fixture_fails(fixture, VIEWS, "{\"view\":\"by\"}", "VIEW_INVALID_PARAMS",
                  "'must' is required");
    fixture_fails(fixture, VIEWS,
                  "{\"view\":\"by\",\"params\":{\"must\":\"x\",\"day\":\"2026-02-30\"}}",
                  "VIEW_INVALID_PARAMS", "YYYY-MM-DD");
    fixture_fails(fixture, VIEWS,
                  "{\"view\":\"by\",\"params\":{\"must\":\"x\",\"on\":\"yes\"}}",
                  "VIEW_INVALID_PARAMS", "'true' or 'false'");
    fixture_fails(fixture, VIEWS,
                  "{\"view\":\"by\",\"params\":{\"must\":\"x\",\"least\":\"many\"}}",
                  "VIEW_INVALID_PARAMS", "is a number");
}

static void statements(void **state)
{
    struct fixture *fixture = *state;
    char day[RFC3339_SIZE];
    char wanted[200];
    assert_true(notes_view_time(ng_str_of("today"), (int64_t)time(NULL) * 1000, day));
    (void)snprintf(wanted, sizeof(wanted), "{\"title\":\"a\",\"day\":\"%.4s", day);
    fixture_says(fixture, VIEWS, "{\"view\":\"sql\",\"params\":{\"t\":\"d\"}}",
                 (const char *const[]){wanted, "{\"title\":\"b\"", "{\"title\":\"d\"",
                                       "\"total\":3", NULL});
    fixture_says(fixture, VIEWS,
                 "{\"view\":\"sql\",\"params\":{\"t\":\"' OR '1'='1\",\"l\":\"a\"}}",
                 (const char *const[]){"\"total\":1", NULL});
}

static void faulty(void **state)
{
    static const struct {
        const char *view, *part;
    } cases[] = {
        {"env", "environment"},          {"envsql", "environment"},
        {"unknown", "unknown variable"}, {"field", "only after the operator"},
        {"sort", "sorts or groups"},     {"empty", "neither `query`"},
        {"text", "not an object"},       {"limit", "limit"},
        {"item", "The view 'item' in"},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char args[100];
        (void)snprintf(args, sizeof(args), "{\"view\":\"%s\"}", cases[i].view);
        fixture_fails(*state, VIEWS, args, "NOTEBOOK_CONFIG_ERROR", cases[i].part);
    }
}

/* {"view":"many","params":{NAME:"a,a,..."}} with so many elements. */
static const char *many_args(char *out, size_t size, const char *name, size_t count)
{
    size_t len = (size_t)snprintf(out, size, "{\"view\":\"many\",\"params\":{\"%s\":\"", name);
    for (size_t i = 0; i < count; i++) {
        len += (size_t)snprintf(out + len, size - len, "%sa", i > 0 ? "," : "");
    }
    (void)snprintf(out + len, size - len, "\"}}");
    return out;
}

/* A list of `and` has its own maximum, those of `or` have one together. */
static void many_conditions(void **state)
{
    char args[1200];
    const char *fault = "The view 'many' in .opennotes.json cannot be used: its filters have "
                        "more than 100 conditions.";
    paths(*state, many_args(args, sizeof(args), "a", 100), "a.md");
    fixture_fails(*state, VIEWS, many_args(args, sizeof(args), "a", 101),
                  "NOTEBOOK_CONFIG_ERROR", fault);
    fixture_fails(*state, VIEWS, many_args(args, sizeof(args), "b", 50),
                  "NOTEBOOK_CONFIG_ERROR", fault);
    paths(*state, many_args(args, sizeof(args), "b", 49), "a.md");
    fixture_fails(*state, VIEWS, many_args(args, sizeof(args), "b", 498),
                  "NOTEBOOK_CONFIG_ERROR", fault);
}

/* ---- times, without a gateway */

static void time_is(const char *name, const char *now, const char *wanted)
{
    char out[RFC3339_SIZE];
    int64_t ms = 0;
    assert_true(notes_time_parse(ng_str_of(now), &ms));
    if (!notes_view_time(ng_str_of(name), ms, out)) {
        fail_msg("%s is no time", name);
    }
    assert_string_equal(out, wanted);
}

static void times(void **state)
{
    static const char *const none[] = {
        "", "env:HOME", "todayx", "today+", "today+x", "year+1", "today+99999999999", "now-1"};
    char out[RFC3339_SIZE];
    (void)state;
    time_is("today", "2026-01-31T10:00", "2026-01-31");
    time_is("today+1", "2026-01-31T10:00", "2026-02-01");
    time_is(" today - 31 ", "2026-01-31T10:00", "2025-12-31");
    time_is("yesterday", "2026-03-01T00:30", "2026-02-28");
    time_is("tomorrow", "2026-12-31T23:30", "2027-01-01");
    time_is("this_week", "2026-02-01T10:00", "2026-01-26"); /* a Sunday */
    time_is("this_week", "2026-02-02T10:00", "2026-02-02");
    time_is("last_week", "2026-02-02T10:00", "2026-01-26");
    time_is("next_week", "2026-02-01T10:00", "2026-02-02");
    time_is("this_week-2", "2026-02-04T10:00", "2026-01-19");
    time_is("last_month", "2026-03-31T10:00", "2026-02-01"); /* no 31st of February */
    time_is("next_month", "2026-01-31T10:00", "2026-02-01");
    time_is("this_month-14", "2026-01-31T10:00", "2024-11-01");
    time_is("end_of_month", "2024-02-10T10:00", "2024-02-29");
    time_is("end_of_month+1", "2026-01-31T10:00", "2026-02-28");
    time_is("start_of_month", "2026-01-31T10:00", "2026-01-01");
    time_is("quarter", "2026-05-31T10:00", "Q2");
    time_is("start_of_quarter", "2026-05-31T10:00", "2026-04-01");
    time_is("end_of_quarter", "2026-05-31T10:00", "2026-06-30");
    time_is("end_of_quarter", "2026-12-31T10:00", "2026-12-31");
    time_is("year", "2026-12-31T23:30", "2026");
    for (size_t i = 0; i < NG_COUNT(none); i++) {
        assert_false(notes_view_time(ng_str_of(none[i]), 0, out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in), cmocka_unit_test(kanban), cmocka_unit_test(today),
        cmocka_unit_test(listing),  cmocka_unit_test(own),    cmocka_unit_test(statements),
        cmocka_unit_test(faulty),   cmocka_unit_test(times),  cmocka_unit_test(many_conditions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
