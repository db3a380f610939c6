/* SPDX-License-Identifier: MIT */
/* test_opennotes.c - which notebooks there are, lists of notes, one note.
 */
#include "test_opennotes_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/dispatch/dispatch.h"

/* ---- notebooks ---- */

static void no_notebook(void **state)
{
    struct test *test = *state;
    harness_open(&test->harness, NULL);
    fails(test, "list", "{}", "NOT_CONFIGURED", "opennotes.notebooks");
    fails(test, "notebooks", "{}", "NOT_CONFIGURED", "opennotes.notebooks");
    fails(test, "list", "{\"notebook\":\"/no/such\"}", "NOTEBOOK_NOT_FOUND", "");
    fails(test, "get", "{\"path\":\"a.md\",\"notebook\":\"nothing\"}", "NOTEBOOK_NOT_FOUND",
          "");
}

static bool is_listed(struct test *test, const char *space)
{
    struct call *caller = call_new(test->harness.gateway);
    assert_non_null(caller);
    assert_int_equal(call_set_caller(caller, ng_str_of("ann"), ng_str_of(space), NG_ROLE_WRITER,
                                     NG_MODE_AGENT, true),
                     NG_OK);
    const struct tool *tool =
        registry_find(test->harness.gateway->registry, ng_str_of("opennotes_list"));
    assert_non_null(tool);
    bool listed = dispatch_allows(caller, tool);
    assert_null(caller->staged.message.data);
    call_unref(caller);
    return listed;
}

static void notes_lists_changed(struct gateway *gateway, unsigned lists, void *user)
{
    (void)gateway;
    atomic_fetch_or((atomic_uint *)user, lists);
}

/* The tools are listed while there is a notebook, and clients are notified of changes. */
static void tools_come_with_a_notebook(void **state)
{
    struct test *test = *state;
    static atomic_uint lists; /* looks may end after the test */
    char path[400];
    put(test, "@/root/plain/p.md", "p");
    open_with(test, "roots=@/root");
    test->harness.gateway->lists_user = &lists;
    test->harness.gateway->lists_changed = notes_lists_changed;
    assert_false(is_listed(test, NULL));
    put(test, "@/root/deep/one/.opennotes.json", "{}");
    for (int i = 0; i < 6000 && (!is_listed(test, NULL) || atomic_load(&lists) == 0); i++) {
        (void)usleep(10000);
    }
    assert_true(is_listed(test, NULL));
    assert_int_equal(atomic_load(&lists), NG_LIST_TOOLS | NG_LIST_RESOURCES);
    (void)snprintf(path, sizeof(path), "%s/root/deep/one/.opennotes.json", test->dir);
    assert_int_equal(unlink(path), 0);
    for (int i = 0; i < 6000 && is_listed(test, NULL); i++) {
        (void)usleep(10000);
    }
    assert_false(is_listed(test, NULL));
    /* A call looks for itself. */
    fails(test, "list", "{}", "NOT_CONFIGURED", "opennotes.notebooks");
    put(test, "@/root/two/.opennotes.json", "{}");
    has(test, "list", "{}", "\"total\":0");
    assert_true(is_listed(test, NULL));
}

/* It is registered in a space that only some callers see. */
static void tools_by_space(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md", "a");
    open_with(test, "opennotes.notebooks=team:@/nb");
    assert_false(is_listed(test, NULL));
    assert_true(is_listed(test, "team"));
    fails(test, "list", "{}", "NOT_CONFIGURED", "opennotes.notebooks");
}

static void registered_ones(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md", "a");
    put(test, "@/other/.opennotes.json",
        "{\"name\":\"The other\",\"root\":\"notes\",\"x\":[1]}");
    put(test, "@/other/notes/o.md", "o");
    put(test, "@/other/outside.md", "not below root");
    open_with(test, "opennotes.notebooks=@/nb,@/missing,shared:@/other");
    has(test, "notebooks", "{}",
        "{\"current\":{\"name\":\"nb\",\"path\":\"@/nb\",\"source\":\"registered\","
        "\"noteCount\":1},\"notebooks\":[{\"name\":\"nb\",\"path\":\"@/nb\",\"source\":"
        "\"registered\",\"noteCount\":1},{\"name\":\"The other\",\"path\":\"@/other/notes\","
        "\"source\":\"registered\",\"noteCount\":1}]}");
    has(test, "list", "{}", "\"path\":\"a.md\"");
    /* By path of the notes, of the folder, of the file, by name. */
    static const char *const names[] = {"@/other/notes", "@/other", "@/other/",
                                        "@/other/.opennotes.json", "The other"};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        char args[512];
        (void)snprintf(args, sizeof(args), "{\"notebook\":\"%s\"}", names[i]);
        has(test, "list", args,
            "\"notebook\":{\"name\":\"The other\",\"path\":\"@/other/notes\"}");
        has(test, "list", args, "\"path\":\"o.md\"");
        has_not(test, "list", args, "outside");
    }
    fails(test, "list", "{\"notebook\":\"@/missing\"}", "NOTEBOOK_NOT_FOUND", "@/nb");
    fails(test, "list", "{\"notebook\":\"@\"}", "NOTEBOOK_NOT_FOUND", "@/nb");
    fails(test, "list", "{\"notebook\":\"../nb\"}", "NOTEBOOK_NOT_FOUND", "@/nb");
}

/* Arguments are checked before the notebook is searched. */
static void faults_before_the_notebook(void **state)
{
    static const struct {
        const char *tool, *args, *code;
    } cases[] = {
        {"search", "\"sql\":\"SELECT 1\",\"query\":\"a\"", "INVALID_PARAMS"},
        {"search", "\"fuzzy\":true", "INVALID_PARAMS"},
        {"search", "\"filters\":{\"and\":[\"color=red\"]}", "INVALID_PARAMS"},
        {"list", "\"pattern\":\"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}\"",
         "INVALID_PARAMS"},
        {"list", "\"pattern\":\"../*.md\"", "PATH_TRAVERSAL"},
        {"get", "\"path\":\"a.md\",\"raw\":true,\"section\":\"S\"", "INVALID_PARAMS"},
        {"views", "\"params\":{\"a\":\"b\"}", "INVALID_PARAMS"},
    };
    struct test *test = *state;
    put(test, "@/nb/a.md", "x");
    open_with(test, "opennotes.notebooks=@/nb");
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char args[400];
        (void)snprintf(args, sizeof(args), "{\"notebook\":\"missing\",%s}", cases[i].args);
        fails(test, cases[i].tool, args, cases[i].code, "");
    }
    fails(test, "search", "{\"notebook\":\"missing\",\"query\":\"a\"}", "NOTEBOOK_NOT_FOUND",
          "");
}

static void discovered_ones(void **state)
{
    struct test *test = *state;
    put(test, "@/root/one/.opennotes.json", "{\"name\":\"One\"}");
    put(test, "@/root/one/deep/x.md", "x");
    put(test, "@/root/plain/p.md", "p");
    put(test, "@/root/.hidden/.opennotes.json", "{}");
    open_with(test, "roots=@/root");
    /* The only one is the current one. */
    has(test, "notebooks", "{}",
        "\"current\":{\"name\":\"One\",\"path\":\"@/root/one\",\"source\":\"ancestor\"");
    has(test, "list", "{}", "deep/x.md");
    has(test, "list", "{\"notebook\":\"one\"}", "deep/x.md");
    /* Its index was never made. */
    fails(test, "get", "{\"path\":\"none.md\",\"notebook\":\"@/root/plain\"}", "NOTE_NOT_FOUND",
          "Check path is relative to notebook root");
    has(test, "list", "{\"notebook\":\"@/root/plain\"}", "\"path\":\"p.md\"");
    has(test, "list", "{\"notebook\":\"plain\"}", "\"path\":\"p.md\"");
    /* A second one: now it must be said which. */
    put(test, "@/root/sub/two/.opennotes.json", "{\"root\":\".\"}");
    fails(test, "list", "{}", "NOTEBOOK_NOT_FOUND", "@/root/one, @/root/sub/two");
    has(test, "notebooks", "{}", "{\"current\":null,");
    has(test, "list", "{\"notebook\":\"@/root/sub/two\"}", "\"total\":0");
    fails(test, "list", "{\"notebook\":\"/etc\"}", "NOTEBOOK_NOT_FOUND", "");
}

static void bad_configurations(void **state)
{
    struct test *test = *state;
    static const char *const texts[] = {"{",
                                        "[]",
                                        "{\"root\":\"../out\"}",
                                        "{\"root\":\"/etc\"}",
                                        "{\"root\":3}",
                                        "{\"name\":[]}",
                                        "{\"root\":\"gone\"}",
                                        "{\"root\":\"link\"}",
                                        "\xff\xfe"};
    put(test, "@/nb/a.md", "a");
    char link[400];
    expand(test, "@/nb/link", link, sizeof(link));
    assert_int_equal(symlink("/etc", link), 0);
    open_with(test, REGISTERED);
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        put(test, "@/nb/.opennotes.json", texts[i]);
        fails(test, "list", "{}", "NOTEBOOK_CONFIG_ERROR", "");
        has(test, "notebooks", "{}", "\"name\":\"nb\"");
    }
    put(test, "@/nb/.opennotes.json", "\xEF\xBB\xBF{\"name\":\"With BOM\"}");
    has(test, "list", "{}", "With BOM");
    fails(test, "get", "{\"path\":\"gone\"}", "NOTE_NOT_FOUND", "");
}

/* One notebook that cannot be used takes none away: it is listed with its fault. */
static void broken_beside_good(void **state)
{
    struct test *test = *state;
    put(test, "@/root/a/.opennotes.json", "{not json");
    put(test, "@/root/good/.opennotes.json", "{\"name\":\"Good\"}");
    put(test, "@/root/good/x.md", "x");
    put(test, "@/root/z/.opennotes.json", "{\"root\":\"../out\"}");
    open_with(test, "roots=@/root");
    has(test, "list", "{}", "\"path\":\"x.md\"");
    has(test, "notebooks", "{}", "\"current\":{\"name\":\"Good\"");
    has(test, "notebooks", "{}",
        "{\"name\":\"a\",\"path\":\"@/root/a\",\"source\":\"ancestor\",\"error\":\"it is not "
        "JSON\"}");
    has(test, "notebooks", "{}", "\"error\":\"`root` leaves its folder\"");
    fails(test, "list", "{\"notebook\":\"a\"}", "NOTEBOOK_CONFIG_ERROR", "it is not JSON");
    struct answer answer = call(test, "daily", "{\"date\":\"notaday\"}");
    assert_null(strstr(answer.hint, "JSON object"));
    answer_free(&answer);
    put(test, "@/root/more/.opennotes.json", "{}");
    fails(test, "list", "{}", "NOTEBOOK_NOT_FOUND", "@/root/good, @/root/more");
    fails(test, "list", "{}", "NOTEBOOK_NOT_FOUND", "there are 2");
    answer = call(test, "list", "{\"pattern\":\"{x,y}.md\",\"notebook\":\"Good\"}");
    assert_non_null(strstr(answer.text, "\"total\":1"));
    answer_free(&answer);
    fails(
        test, "list",
        "{\"notebook\":\"Good\",\"pattern\":\"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}\"}",
        "INVALID_PARAMS", "more than 256 patterns");
}

/* ---- lists ---- */

static void sorting_and_patterns(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md",
        "---\ntitle: Zebra\ncreated: 2020-01-03\nmodified: 2021-01-01\n---\n");
    put(test, "@/nb/t/b.md", "---\ntitle: apple\ndate: 2020-01-01\nupdated: 2021-01-03\n---\n");
    put(test, "@/nb/t/u/c.md", "---\ncreated_at: 2020-01-02\nupdated_at: 2021-01-02\n---\n");
    put(test, "@/nb/t/no.txt", "x");
    open_with(test, REGISTERED);
    static const struct {
        const char *args, *first, *second, *third;
    } orders[] = {
        {"{}", "t/b", "t/u/c", "a"},
        {"{\"sortBy\":\"modified\",\"sortOrder\":\"asc\"}", "a", "t/u/c", "t/b"},
        {"{\"sortBy\":\"created\"}", "a", "t/u/c", "t/b"},
        {"{\"sortBy\":\"path\"}", "a", "t/b", "t/u/c"},
        {"{\"sortBy\":\"path\",\"sortOrder\":\"desc\"}", "t/u/c", "t/b", "a"},
        {"{\"sortBy\":\"title\"}", "t/b", "t/u/c", "a"},
        {"{\"sortBy\":\"title\",\"sortOrder\":\"desc\"}", "a", "t/u/c", "t/b"},
    };
    for (size_t i = 0; i < NG_COUNT(orders); i++) {
        char paths[3][64];
        const char *wanted[3] = {orders[i].first, orders[i].second, orders[i].third};
        const char *at[3];
        struct answer answer = call(test, "list", orders[i].args);
        for (size_t p = 0; p < 3; p++) {
            (void)snprintf(paths[p], sizeof(paths[p]), "\"path\":\"%s.md\"", wanted[p]);
            at[p] = strstr(answer.text, paths[p]);
            assert_non_null(at[p]);
        }
        assert_true(at[0] < at[1] && at[1] < at[2]);
        answer_free(&answer);
    }
    has(test, "list", "{\"pattern\":\"*.md\"}", "\"total\":1,");
    has(test, "list", "{\"pattern\":\"t/*.md\"}", "\"total\":1,");
    has(test, "list", "{\"pattern\":\"t/**\"}", "\"total\":2,");
    has(test, "list", "{\"pattern\":\"**/*.md\"}", "\"total\":3,");
    has(test, "list", "{\"pattern\":\"**/c.md\"}", "\"path\":\"t/u/c.md\"");
    has(test, "list", "{\"pattern\":\"nothing*\"}", "{\"notebook\":");
    has(test, "list", "{\"limit\":2}", "\"hasMore\":true,\"nextOffset\":2}");
    has(test, "list", "{\"limit\":2,\"offset\":2}",
        "\"page\":2,\"pageSize\":2,\"hasMore\":false}");
    has(test, "list", "{\"offset\":9}", "\"total\":3,\"returned\":0");
    fails(test, "list", "{\"limit\":0}", "INVALID_PARAMS", "");
    fails(test, "list", "{\"sortBy\":\"size\"}", "INVALID_PARAMS", "");
    fails(test, "list", "{\"limt\":1}", "INVALID_PARAMS", "");
}

/* ---- one note ---- */

static void getting(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md",
        "---\r\ntitle: T\r\ntag: one\r\ntags: [two, one]\r\nnested: {deep: [1, "
        "null]}\r\n---\r\n"
        "# One\r\n\r\ntext\r\n\r\n## Two\r\n\r\nmore\r\n\r\n# Three\r\nend");
    open_with(test, REGISTERED);
    has(test, "list", "{}", "a.md"); /* names near a wrong one are in the index */
    has(test, "get", "{\"path\":\"a.md\"}",
        "\"frontmatter\":{\"title\":\"T\",\"tag\":\"one\",\"tags\":[\"two\",\"one\"],"
        "\"nested\":{\"deep\":[1,null]}},\"content\":\"# One\\r\\n");
    has(test, "get", "{\"path\":\"./a.md\"}", "\"lines\":10,\"wordCount\":6");
    has(test, "get", "{\"path\":\"a.md\",\"raw\":true}", "\"content\":\"---\\r\\ntitle: T");
    has_not(test, "get", "{\"path\":\"a.md\",\"includeContent\":false}", "\"content\"");
    has(test, "get", "{\"path\":\"a.md\",\"section\":\"two\"}",
        "\"content\":\"## Two\\r\\n\\r\\nmore\\r\\n\\r\\n\",\"startLine\":5,\"truncated\"");
    has(test, "get", "{\"path\":\"a.md\",\"section\":\"# One\"}",
        "more\\r\\n\\r\\n\",\"truncated");
    has(test, "get", "{\"path\":\"a.md\",\"startLine\":3,\"maxLines\":2}",
        "\"content\":\"text\\r\\n\\r\\n\",\"startLine\":3,\"nextLine\":5");
    has(test, "get", "{\"path\":\"a.md\",\"startLine\":10,\"maxLines\":2}",
        "\"content\":\"end\",\"startLine\":10,\"truncated\":false");
    has(test, "get", "{\"path\":\"a.md\",\"startLine\":10,\"startByte\":1}",
        "\"content\":\"nd\"");
    fails(test, "get", "{\"path\":\"a.md\",\"startLine\":11}", "INVALID_PARAMS", "1 to 10");
    fails(test, "get", "{\"path\":\"a.md\",\"section\":\"Four\"}", "SECTION_NOT_FOUND",
          "'One', 'Two'");
    fails(test, "get", "{\"path\":\"b.md\"}", "NOTE_NOT_FOUND", "a.md");
    fails(test, "get", "{\"path\":\"\"}", "NOTE_NOT_FOUND", "");
    static const char *const tricks[] = {"../a.md", "/etc/passwd", "x/../../a.md",
                                         "..",      "a.md\\u0000", "@/nb/a.md"};
    for (size_t i = 0; i < NG_COUNT(tricks); i++) {
        char args[512];
        (void)snprintf(args, sizeof(args), "{\"path\":\"%s\"}", tricks[i]);
        fails(test, "get", args, "PATH_TRAVERSAL", "relative");
    }
    struct answer answer = call(test, "get", "{\"path\":\"a.md\"}");
    assert_int_equal(strlen(answer.revision_text), 32);
    assert_non_null(strstr(answer.text, answer.revision_text));
    answer_free(&answer);
}

/* Reads a note part by part and compares what comes with what is there. Lines are of letters
 * and umlauts, which JSON does not escape. */
static void read_on(struct test *test, const char *path, const char *whole)
{
    size_t at = 0;
    int64_t line = 1;
    int64_t byte = 0;
    for (int parts = 0; line > 0; parts++) {
        char args[512];
        (void)snprintf(args, sizeof(args),
                       "{\"path\":\"%s\",\"startLine\":%lld,\"startByte\":%lld}", path,
                       (long long)line, (long long)byte);
        struct answer answer = call(test, "get", args);
        assert_int_equal(answer.rc, NG_OK);
        assert_true(answer.text_len <= 38400 + 200);
        const char *content = strstr(answer.text, "\"content\":\"");
        assert_non_null(content);
        for (content += strlen("\"content\":\""); *content != '"'; content++) {
            char c = *content;
            if (c == '\\') {
                assert_int_equal(*++content, 'n');
                c = '\n';
            }
            assert_int_equal(c, whole[at]);
            at++;
        }
        line = number_of(answer.text, "nextLine");
        byte = number_of(answer.text, "nextByte");
        assert_int_equal(strstr(answer.text, "\"truncated\":true") != NULL, line > 0);
        answer_free(&answer);
        assert_true(parts < 1000);
    }
    assert_int_equal(at, strlen(whole));
}

/* Lines of many lengths, one of them over the budget by itself; at most a byte over `size`. */
static size_t fill_lines(char *text, size_t size)
{
    size_t len = 0;
    while (len < size) {
        bool umlaut = len % 7 == 0;
        bool end = len % 97 == 0 && (len < 50000 || len > 150000);
        memcpy(text + len, umlaut ? "\xC3\xA4" : end ? "\n" : "x", umlaut ? 2 : 1);
        len += umlaut ? 2 : 1;
    }
    text[len] = '\0';
    return len;
}

static void large_notes(void **state)
{
    struct test *test = *state;
    size_t size = (size_t)300 * 1024;
    char *text = malloc(size + 8);
    assert_non_null(text);
    size_t len = fill_lines(text, size);
    put_bytes(test, "@/nb/big.md", text, len);
    memset(text, '\n', 5000);
    text[5000] = '\0';
    put_bytes(test, "@/nb/lines.md", text, 5000);
    open_with(test, REGISTERED);
    text[0] = '\0';
    has(test, "list", "{}", "\"total\":2");
    memset(text, '\n', 5000);
    read_on(test, "lines.md", text);
    (void)fill_lines(text, size);
    read_on(test, "big.md", text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_notebook, setup, teardown),
        cmocka_unit_test_setup_teardown(tools_come_with_a_notebook, setup, teardown),
        cmocka_unit_test_setup_teardown(tools_by_space, setup, teardown),
        cmocka_unit_test_setup_teardown(registered_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_before_the_notebook, setup, teardown),
        cmocka_unit_test_setup_teardown(discovered_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_configurations, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_beside_good, setup, teardown),
        cmocka_unit_test_setup_teardown(sorting_and_patterns, setup, teardown),
        cmocka_unit_test_setup_teardown(getting, setup, teardown),
        cmocka_unit_test_setup_teardown(large_notes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
