/* SPDX-License-Identifier: MIT */
/* test_opennotes_create.c - notes are made once, where they may be, of what was given; and the
 * day's note. */
#include "test_notebook.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define CREATE "opennotes_create"
#define DAILY "opennotes_daily"
#define AGENTS 50

#define CONFIG                                                                                 \
    "{\"name\":\"Mine\",\"unknown\":{\"kept\":1},\"templates\":{"                              \
    "\"inline\":\"---\\ntitle: {{title}}\\nkind: {{kind}}\\nwho: \\\"{{who}}\\\"\\nprio: "     \
    "low\\nfrom: template\\n---\\n# {{title}}\\n{{slug}} {{ none }} {{kind}}\\n\","            \
    "\"file\":\"templates/t.md\",\"gone\":\"templates/none.md\",\"odd\":{},"                   \
    "\"bad\":\"---\\na: [\\n---\\nx\","                                                        \
    "\"out\":\"../x.md\"},"                                                                    \
    "\"groups\":[{\"name\":\"tasks\",\"globs\":[\"tasks/**\"],"                                \
    "\"metadata\":{\"status\":\"todo\",\"rank\":1,\"deep\":{\"a\":[1]}},\"template\":"         \
    "\"file\"},"                                                                               \
    "{\"name\":\"all\",\"globs\":[\"**/"                                                       \
    "*.md\"],\"metadata\":{\"status\":\"none\",\"all\":true}}]}"

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture);
    fixture_put(fixture, ".opennotes.json", CONFIG);
    fixture_put(fixture, "templates/t.md", "From a file: {{title}}");
    fixture_serve(fixture, NULL);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

/* The file without its line `created: ...`, which must be there; free it. */
static char *without_created(struct fixture *fixture, const char *name)
{
    char *text = fixture_get(fixture, name);
    assert_non_null(text);
    char *line = strstr(text, "\ncreated: ");
    assert_non_null(line);
    char *end = strchr(line + 1, '\n');
    assert_non_null(end);
    memmove(line, end, strlen(end) + 1);
    return text;
}

static void file_is(struct fixture *fixture, const char *name, const char *wanted)
{
    char *text = without_created(fixture, name);
    assert_string_equal(text, wanted);
    free(text);
}

static void names(void **state)
{
    static const struct {
        const char *args, *path;
    } cases[] = {
        {"{\"title\":\"Plain Note\"}", "plain-note.md"},
        {"{\"title\":\"Caf\xc3\xa9 & \xe4\xbc\x9a\xe8\xad\xb0\"}",
         "caf\xc3\xa9-\xe4\xbc\x9a\xe8\xad\xb0.md"},
        {"{\"title\":\"Cafe\xcc\x81 two\"}", "caf\xc3\xa9-two.md"},
        {"{\"title\":\"A\",\"path\":\"dir\"}", "dir/a.md"},
        {"{\"title\":\"B\",\"path\":\"dir/sub/\"}", "dir/sub/b.md"},
        {"{\"title\":\"C\",\"path\":\"./dir//sub/.\"}", "dir/sub/c.md"},
        {"{\"title\":\"D\",\"path\":\"dir/Exact Name.md\"}", "dir/Exact Name.md"},
        {"{\"title\":\"E\",\"path\":\"\"}", "e.md"},
        {"{\"title\":\"F\",\"path\":\".\"}", "f.md"},
        {"{\"title\":\"a..b\",\"path\":\"v1.2/x..y.md\"}", "v1.2/x..y.md"},
    };
    struct fixture *fixture = *state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char wanted[300];
        (void)snprintf(wanted, sizeof(wanted),
                       "{\"created\":{\"path\":\"%s\",\"absolutePath\":\"%s/%s\"",
                       cases[i].path, fixture->folder, cases[i].path);
        fixture_says(fixture, CREATE, cases[i].args,
                     (const char *const[]){wanted, "\"notebook\":{\"name\":\"Mine\"", NULL});
        assert_true(fixture_exists(fixture, cases[i].path));
    }
    /* Titles without letters are named by the time, and never clash. */
    for (int i = 0; i < 5; i++) {
        free(fixture_call(fixture, CREATE,
                          "{\"title\":\"\xf0\x9f\x8e\x89\",\"path\":\"party\"}"));
    }
    fixture_says(fixture, "opennotes_list", "{\"pattern\":\"party/*.md\"}",
                 (const char *const[]){"\"total\":5", NULL});
}

static void refused(void **state)
{
    static const char *const traversals[] = {"../x",      "a/../../x", "/etc",     "..",
                                             "a/../b.md", "/tmp/x.md", "a\\u0000b"};
    static const char *const invalid[] = {".hidden",   "a/.git/hooks", "x./y.md", "a /b.md",
                                          "a\\\\b.md", "a\\nb",        ".md",     "x/.md"};
    struct fixture *fixture = *state;
    char args[300];
    for (size_t i = 0; i < NG_COUNT(traversals); i++) {
        (void)snprintf(args, sizeof(args), "{\"title\":\"t\",\"path\":\"%s\"}", traversals[i]);
        fixture_fails(fixture, CREATE, args, "PATH_TRAVERSAL", "Path traversal blocked");
    }
    for (size_t i = 0; i < NG_COUNT(invalid); i++) {
        (void)snprintf(args, sizeof(args), "{\"title\":\"t\",\"path\":\"%s\"}", invalid[i]);
        fixture_fails(fixture, CREATE, args, "NOTE_INVALID_PATH", "");
    }
    fixture_fails(fixture, CREATE, "{\"title\":\"  \"}", "INVALID_PARAMS", "`title` is empty");
    fixture_fails(fixture, CREATE, "{\"title\":\"\"}", "INVALID_PARAMS", "");
    fixture_fails(fixture, CREATE, "{}", "INVALID_PARAMS", "");
    fixture_fails(fixture, CREATE, "{\"title\":\"nul\\u0000x\"}", "INVALID_PARAMS",
                  "`title` holds NUL");
    fixture_fails(fixture, CREATE, "{\"title\":\"n\",\"content\":\"a\\u0000b\"}",
                  "INVALID_PARAMS", "hold NUL");
    fixture_fails(fixture, CREATE, "{\"title\":\"n\",\"data\":{\"title\":\"a\\u0000b\"}}",
                  "INVALID_PARAMS", "hold NUL");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"data\":{\"a\":{}}}", "INVALID_PARAMS",
                  "");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"template\":\"inlin\"}",
                  "TEMPLATE_NOT_FOUND", "Did you mean 'inline'? There are: '");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"template\":\"no such\"}",
                  "TEMPLATE_NOT_FOUND",
                  "Check notebook .opennotes.json for templates. There are: '");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"template\":\"gone\"}",
                  "TEMPLATE_NOT_FOUND", "templates/none.md");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"template\":\"odd\"}",
                  "NOTEBOOK_CONFIG_ERROR", "odd");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"template\":\"bad\"}",
                  "NOTEBOOK_CONFIG_ERROR", "does not parse");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"template\":\"out\"}", "PATH_TRAVERSAL",
                  "");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"content\":\"---\\na: [\\n---\\nx\"}",
                  "INVALID_PARAMS", "line 3");
    assert_false(fixture_exists(fixture, "t.md"));
}

/* No note is below a note; nothing is told of where the notebook lies. */
static void below_a_note(void **state)
{
    static const char *const paths[] = {"index.md/sub/", "index.md/t.md", "index.md/a/b/t.md"};
    struct fixture *fixture = *state;
    char args[300];
    fixture_put(fixture, "index.md", "a note");
    for (size_t i = 0; i < NG_COUNT(paths); i++) {
        (void)snprintf(args, sizeof(args), "{\"title\":\"t\",\"path\":\"%s\"}", paths[i]);
        fixture_fails(fixture, CREATE, args, "NOTE_INVALID_PATH",
                      "Invalid note path 'index.md/");
        fixture_fails(fixture, CREATE, args, "NOTE_INVALID_PATH",
                      ": a part of it is a file, not a folder.");
    }
    /* Missing folders are made, all the same. */
    free(fixture_call(fixture, CREATE, "{\"title\":\"t\",\"path\":\"new/sub/\"}"));
    assert_true(fixture_exists(fixture, "new/sub/t.md"));
}

/* Links that leave the notebook are not followed, and no folder is made behind them. */
static void links_out(void **state)
{
    struct fixture *fixture = *state;
    char path[300];
    char outside[] = "/tmp/notegate-outside-XXXXXX";
    assert_non_null(mkdtemp(outside));
    fixture_path(fixture, "out", path, sizeof(path));
    assert_int_equal(symlink(outside, path), 0);
    fixture_path(fixture, "data", path, sizeof(path));
    /* Also not into a folder that the gateway may otherwise use. */
    char root[280];
    (void)snprintf(root, sizeof(root), "%s/files", fixture->harness.dir);
    assert_int_equal(symlink(root, path), 0);
    fixture_path(fixture, "dangling.md", path, sizeof(path));
    assert_int_equal(symlink("/tmp/notegate-none/x.md", path), 0);
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"path\":\"out\"}", "PATH_TRAVERSAL", "");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"path\":\"out/new/deep\"}",
                  "PATH_TRAVERSAL", "");
    fixture_fails(fixture, CREATE, "{\"title\":\"t\",\"path\":\"data/new\"}", "PATH_TRAVERSAL",
                  "");
    struct answer answer =
        harness_call(&fixture->harness, CREATE, "{\"title\":\"t\",\"path\":\"dangling.md\"}");
    assert_true(answer.rc != NG_OK);
    answer_free(&answer);
    assert_int_equal(rmdir(outside), 0); /* it is empty */
    (void)snprintf(path, sizeof(path), "%s/new", root);
    assert_int_equal(access(path, F_OK), -1);
}

static void layers(void **state)
{
    struct fixture *fixture = *state;
    free(fixture_call(
        fixture, CREATE,
        "{\"title\":\"One: #1\",\"path\":\"n\",\"template\":\"inline\","
        "\"data\":{\"kind\":\"a: b\",\"n\":1.50,\"yes\":true,\"list\":[\"no\",\"x\"],"
        "\"who\":\"A \\\"B\\\"\"},"
        "\"content\":\"---\\nkind: c\\nprio: high\\ntags: [t]\\n---\\nText\"}"));
    file_is(
        fixture, "n/one-1.md",
        "---\ntitle: \"One: #1\"\nkind: \"a: b\"\n\"n\": 1.50\n\"yes\": true\nlist:\n  - "
        "\"no\"\n  - x\nwho: A \"B\"\nprio: high\ntags:\n  - t\nfrom: template\nstatus: none\n"
        "all: true\n---\n# One: #1\none-1 {{ none }} a: b\nText\n");
    /* The group's template and metadata; the first group that says a key. */
    free(fixture_call(fixture, CREATE, "{\"title\":\"Two\",\"path\":\"tasks/x\"}"));
    file_is(fixture, "tasks/x/two.md",
            "---\ntitle: Two\nstatus: todo\nrank: 1\ndeep:\n  a:\n    - 1\nall: true\n---\n"
            "From a file: Two\n");
    /* Data may say when it was made; content is kept as it is. */
    free(fixture_call(
        fixture, CREATE,
        "{\"title\":\"Three\",\"data\":{\"date\":\"2020-01-02\",\"title\":\"Real\"},"
        "\"content\":\"  line\\r\\n\\n\"}"));
    fixture_has(fixture, "three.md",
                "---\ntitle: Real\ndate: 2020-01-02\nstatus: none\nall: true\n---\n  "
                "line\r\n\n");
    fixture_says(
        fixture, "opennotes_get", "{\"path\":\"three.md\"}",
        (const char *const[]){"\"created\":\"2020-01-02T", "\"title\":\"Real\"", NULL});
    /* Two rules with a heading between them are no front matter. */
    free(fixture_call(fixture, CREATE,
                      "{\"title\":\"Four\",\"content\":\"---\\n# Heading\\n---\\nx\\n\"}"));
    file_is(fixture, "four.md",
            "---\ntitle: Four\nstatus: none\nall: true\n---\n---\n# Heading\n---\nx\n");
    free(fixture_call(fixture, CREATE, "{\"title\":\"Five\"}"));
    file_is(fixture, "five.md", "---\ntitle: Five\nstatus: none\nall: true\n---\n# Five\n");
    fixture_has(fixture, ".opennotes.json", CONFIG);
}

/* Metadata of a group that is deeper than front matter is read. */
static void nested(void **state)
{
    struct fixture *fixture = *state;
    struct buf text;
    buf_init(&text, 4096);
    buf_add_c(&text, "{\"groups\":[{\"globs\":\"**\",\"metadata\":{\"a\":");
    for (int i = 0; i < 64; i++) {
        buf_add_char(&text, '[');
    }
    for (int i = 0; i < 64; i++) {
        buf_add_char(&text, ']');
    }
    buf_add_c(&text, "}}]}");
    fixture_put(fixture, ".opennotes.json", buf_cstr(&text));
    fixture_fails(fixture, CREATE, "{\"title\":\"Deep\"}", "NOTEBOOK_CONFIG_ERROR",
                  "nested too deeply");
    buf_done(&text);
}

static void exists(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "e.md", "mine");
    fixture_put(fixture, "cafe\xcc\x81.md", "decomposed");
    fixture_fails(fixture, CREATE, "{\"title\":\"E\"}", "NOTE_EXISTS", "e.md");
    fixture_fails(fixture, CREATE, "{\"title\":\"Caf\xc3\xa9\"}", "NOTE_EXISTS",
                  "caf\xc3\xa9.md");
    fixture_has(fixture, "e.md", "mine");
    assert_false(fixture_exists(fixture, "caf\xc3\xa9.md"));
    /* Nor is there a second folder of the same name. */
    fixture_put(fixture, "e\xcc\x81/sub/x.md", "in a decomposed folder");
    free(fixture_call(fixture, CREATE, "{\"title\":\"New\",\"path\":\"\xc3\xa9/sub/deep\"}"));
    assert_true(fixture_exists(fixture, "e\xcc\x81/sub/deep/new.md"));
    assert_false(fixture_exists(fixture, "\xc3\xa9"));
    struct answer answer = harness_call(&fixture->harness, CREATE, "{\"title\":\"E\"}");
    assert_int_equal(answer.status, 409);
    assert_string_equal(answer.details, "{\"path\":\"e.md\"}");
    answer_free(&answer);
}

/* ---- many at once */

struct race {
    struct fixture *fixture;
    const char *tool, *args;
    atomic_int done, clashed;
};

static void *run_race(void *user)
{
    struct race *race = user;
    struct answer answer = harness_call(&race->fixture->harness, race->tool, race->args);
    if (answer.rc == NG_OK) {
        atomic_fetch_add(&race->done, 1);
    } else if (strcmp(answer.code, "NOTE_EXISTS") == 0) {
        atomic_fetch_add(&race->clashed, 1);
    }
    answer_free(&answer);
    return NULL;
}

static void run_agents(struct race *race)
{
    pthread_t threads[AGENTS];
    for (size_t i = 0; i < AGENTS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_race, race), 0);
    }
    for (size_t i = 0; i < AGENTS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void at_once(void **state)
{
    struct race race = {
        .fixture = *state, .tool = CREATE, .args = "{\"title\":\"Race\",\"path\":\"r\"}"};
    run_agents(&race);
    assert_int_equal(atomic_load(&race.done), 1);
    assert_int_equal(atomic_load(&race.clashed), AGENTS - 1);
}

/* ---- the day's note */

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (text = strstr(text, part); text != NULL; text = strstr(text + 1, part)) {
        count++;
    }
    return count;
}

static void daily(void **state)
{
    struct fixture *fixture = *state;
    struct race race = {.fixture = fixture, .tool = DAILY, .args = "{\"content\":\"- one\"}"};
    time_t before = time(NULL);
    run_agents(&race);
    time_t after = time(NULL);
    assert_int_equal(atomic_load(&race.done), AGENTS);
    char day[2][32];
    struct tm tm;
    assert_int_equal(strftime(day[0], 32, "daily/%Y-%m-%d.md", localtime_r(&before, &tm)), 19);
    assert_int_equal(strftime(day[1], 32, "daily/%Y-%m-%d.md", localtime_r(&after, &tm)), 19);
    size_t lines = 0;
    for (size_t i = 0; i < (strcmp(day[0], day[1]) == 0 ? 1U : 2U); i++) {
        char *text = fixture_get(fixture, day[i]);
        lines += text != NULL ? count_of(text, "\n- one") : 0;
        free(text);
    }
    assert_int_equal(lines, AGENTS);
    fixture_says(fixture, DAILY, "{\"date\":\"2024-02-29\"}",
                 (const char *const[]){"\"created\":true", "\"path\":\"daily/2024-02-29.md\"",
                                       "\"title\":\"2024-02-29\"",
                                       "\"content\":\"# 2024-02-29\\n\"", "\"revision\":\"",
                                       NULL});
    fixture_says(fixture, DAILY, "{\"date\":\"2024-02-29\",\"content\":\"x\\ny\"}",
                 (const char *const[]){"\"created\":false",
                                       "\"content\":\"# 2024-02-29\\nx\\ny\\n\"", NULL});
    fixture_fails(fixture, DAILY, "{\"date\":\"2023-02-29\"}", "INVALID_PARAMS", "YYYY-MM-DD");
    fixture_fails(fixture, DAILY, "{\"date\":\"today\"}", "INVALID_PARAMS", "YYYY-MM-DD");
}

static void daily_configured(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    fixture_put(&fixture, ".opennotes.json",
                "{\"templates\":{\"daily\":\"---\\ntags: [day]\\n---\\n## {{date}}\\n\"}}");
    fixture_serve(&fixture,
                  (const char *const[]){"opennotes.daily_path=j/{{year}}/{{month}}/{{day}}.md",
                                        "opennotes.prefix=notes_", NULL});
    fixture_says(&fixture, "notes_daily", "{\"date\":\"2026-03-04\",\"content\":\"- a\"}",
                 (const char *const[]){"\"path\":\"j/2026/03/04.md\"",
                                       "\"content\":\"## 2026-03-04\\n- a\\n\"",
                                       "\"tags\":[\"day\"]", NULL});
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_serve(&fixture, (const char *const[]){"opennotes.daily_path=../{{date}}.md", NULL});
    fixture_fails(&fixture, DAILY, "{}", "PATH_TRAVERSAL", "");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
        cmocka_unit_test_setup_teardown(below_a_note, setup, teardown),
        cmocka_unit_test_setup_teardown(links_out, setup, teardown),
        cmocka_unit_test_setup_teardown(layers, setup, teardown),
        cmocka_unit_test_setup_teardown(nested, setup, teardown),
        cmocka_unit_test_setup_teardown(exists, setup, teardown),
        cmocka_unit_test_setup_teardown(at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(daily, setup, teardown),
        cmocka_unit_test(daily_configured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
