/* SPDX-License-Identifier: MIT */
/* test_opennotes_edit.c - a note is changed in one place, the rest stays byte for byte, and
 * agents that edit it at once lose nothing. */
#include "test_opennotes_edit_rig.h"

#include <pthread.h>
#include <sys/stat.h>

#include "note/revision.h"

#define AGENTS 8
#define ROUNDS 10

static void append_prepend(void **state)
{
    struct fixture *fixture = *state;
    makes(fixture, "a\n", APPEND("b"), "a\nb\n");
    makes(fixture, "a", APPEND("b\\nc\\n"), "a\nb\nc\n");
    makes(fixture, "", APPEND("b"), "b\n");
    makes(fixture, "a\r\n", APPEND("b\\nc"), "a\r\nb\r\nc\r\n");
    makes(fixture, "a\n", APPEND(""), "a\n");
    makes(fixture, "a\n", APPEND("\\nb"), "a\n\nb\n");
    makes(fixture, "a\n", PREPEND("b"), "b\na\n");
    makes(fixture, "---\nt: 1\n---\na\n", PREPEND("b"), "---\nt: 1\n---\nb\na\n");
    makes(fixture,
          "\xef\xbb\xbf"
          "a\n",
          PREPEND("b"),
          "\xef\xbb\xbf"
          "b\na\n");
    makes(fixture, "---\nt: [broken\n---\na\n", PREPEND("b"), "---\nt: [broken\n---\nb\na\n");
    makes(fixture, "---\nt: 1\n---", PREPEND("b"), "---\nt: 1\n---\nb\n");
}

static void sections(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] =
        "# T\n\nintro\n\n## A\n\nold\nold\n\n### A.1\nsub\n\n## B\nb\n\n# C\nc";
    makes(fixture, text, SECTION("A", "new"),
          "# T\n\nintro\n\n## A\n\nnew\n\n## B\nb\n\n# C\nc");
    makes(fixture, text, SECTION("## A", "\\nnew\\n"),
          "# T\n\nintro\n\n## A\n\nnew\n\n## B\nb\n\n# C\nc");
    makes(fixture, text, SECTION("a.1", "new"),
          "# T\n\nintro\n\n## A\n\nold\nold\n\n### A.1\nnew\n\n## B\nb\n\n# C\nc");
    makes(fixture, text, SECTION("#b", "x\\ny"),
          "# T\n\nintro\n\n## A\n\nold\nold\n\n### A.1\nsub\n\n## B\nx\ny\n\n# C\nc");
    makes(fixture, text, SECTION("C", "end"),
          "# T\n\nintro\n\n## A\n\nold\nold\n\n### A.1\nsub\n\n## B\nb\n\n# C\nend\n");
    makes(fixture, text, SECTION("T", ""), "# T\n\n\n# C\nc");
    makes(fixture, "A\n===\nold\nB\n---\nb\n", SECTION("A", "new"), "A\n===\nnew\n");
    makes(fixture, "A\n---\nold\n\nB\n---\nb\n", SECTION("A", "new"),
          "A\n---\nnew\n\nB\n---\nb\n");
    makes(fixture, "# A\r\nold\r\n# B\r\n", SECTION("A", "n\\nm"), "# A\r\nn\r\nm\r\n# B\r\n");
    makes(fixture, "# A\n# B\n", SECTION("A", "n"), "# A\nn\n# B\n");
    makes(fixture, "# A\n\n# B\n", SECTION("A", "n"), "# A\n\nn\n# B\n");
    makes(fixture, "# A", SECTION("A", "n"), "# A\nn\n");
    makes(fixture, "```\n# A\n```\n# A\nx\n", SECTION("A", "n"), "```\n# A\n```\n# A\nn\n");
    makes(fixture, "---\nt: 1\n---\n# Caf\xc3\xa9 *b*\nx\n", SECTION("cafe\\u0301 b", "n"),
          "---\nt: 1\n---\n# Caf\xc3\xa9 *b*\nn\n");
    makes(fixture, "# A\n1\n# A\n2\n", SECTION("#a-1", "n"), "# A\n1\n# A\nn\n");
    fixture_fails(fixture, EDIT, "{\"path\":\"n.md\"," SECTION("A", "n") "}", "INVALID_PARAMS",
                  "2 times. Name the first by its anchor: '#a'");
    fixture_fails(fixture, EDIT, "{\"path\":\"n.md\"," SECTION("none", "n") "}",
                  "SECTION_NOT_FOUND", "The note has the headings 'A', 'A'");
    fixture_has(fixture, "n.md", "# A\n1\n# A\nn\n");
}

/* Sections that a reader might not see: behind a table, behind what looks like a fence. */
static void sections_behind(void **state)
{
    struct fixture *fixture = *state;
    makes(fixture, "## A\n\n| x |\n|---|\n| 1 |\n## B\nkeep me\n", SECTION("A", "new"),
          "## A\n\nnew\n## B\nkeep me\n");
    makes(fixture, "## A\n\ntext\n    ```\n\n## B\nkeep me\n", SECTION("A", "new"),
          "## A\n\nnew\n\n## B\nkeep me\n");
    makes(fixture, "## A\n```sh\n# c\n```\n~~~\n## d\n~~~\n## B\nb\n", SECTION("A", "new"),
          "## A\nnew\n## B\nb\n");
    makes(fixture, "## [[N|As shown]] *and* more\nold\n## B\n",
          SECTION("As shown and more", "1"), "## [[N|As shown]] *and* more\n1\n## B\n");
    makes(fixture, "## [[N|As shown]] *and* more\nold\n## B\n",
          SECTION("## [[N|As shown]] *and* more", "1"),
          "## [[N|As shown]] *and* more\n1\n## B\n");
    refuses(fixture, "# A\nold\n- item\n  # L\n  x\n# B\n", SECTION("A", "new"), "TOOL_FAILED",
            "'L' (line 4 of its content) would be a heading no longer, or another one");
    refuses(fixture, "## A\nold\n```\n\n## B\nb\n", SECTION("A", "new"), "TOOL_FAILED",
            "its line '## B' looks like the heading of the next section");
    refuses(fixture, "# A\nold\n<div>\n# B\n</div>\n", SECTION("A", "new"), "TOOL_FAILED",
            "its line '# B' looks like");
    refuses(fixture, "# A\nold\n- item\n    # L\n\n10. i\n    # M\n# B\n", SECTION("A", "new"),
            "TOOL_FAILED", "would be a heading no longer");
}

/* A heading in an item: neither both texts, nor one outside of it. */
static void sections_nested(void **state)
{
    struct fixture *fixture = *state;
    refuses(fixture, "- ## F\n\t- ### P\n\t- x\n- ## G\n", SECTION("F", "new"), "TOOL_FAILED",
            "'F' (line 1 of its content) stands in a list item");
    refuses(fixture, "> # Q\n> x\n\n# R\n", SECTION("Q", "new"), "TOOL_FAILED",
            "a quote or a footnote");
}

/* Content that would swallow other sections, or make one. */
static void swallowing(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = "# A\nold\n\n# B\nb\n";
    refuses(fixture, text, SECTION("A", "```\\nopen"), "TOOL_FAILED",
            "'B' (line 4 of its content) would be a heading no longer");
    refuses(fixture, text, SECTION("A", "<!-- open"), "TOOL_FAILED", "no longer");
    refuses(fixture, text, PREPEND("~~~"), "TOOL_FAILED", "no longer");
    refuses(fixture, "# A\ntext\n", APPEND("---"), "TOOL_FAILED",
            "this content would make 'text' (line 2 of its content) a heading");
    makes(fixture, "# A\ntext\n", APPEND("\\n---\\n## C"), "# A\ntext\n\n---\n## C\n");
    makes(fixture, text, SECTION("A", "## In\\n# A2\\nx"), "# A\n## In\n# A2\nx\n\n# B\nb\n");
}

/* Nested deeper than Markdown is read: what needs no section is done, the rest refused. */
static void too_deep(void **state)
{
    struct fixture *fixture = *state;
    char text[1000] = "# A\n\n";
    char wanted[1100];
    for (int i = 0; i < 150; i++) {
        (void)strncat(text, "> ", sizeof(text) - strlen(text) - 1);
    }
    (void)strncat(text, "x\n\n# B\nb\n", sizeof(text) - strlen(text) - 1);
    refuses(fixture, text, SECTION("A", "new"), "TOOL_FAILED", "nested too deep");
    (void)snprintf(wanted, sizeof(wanted), "%sc\n", text);
    makes(fixture, text, APPEND("c"), wanted);
}

static void not_text(void **state)
{
    struct fixture *fixture = *state;
    char path[300];
    fixture_path(fixture, "n.md", path, sizeof(path));
    static const struct {
        const char *bytes;
        size_t len;
        const char *said;
    } cases[] = {
        {"\xff\xfet\0i\0", 6, "it is UTF-16 text"},
        {"a\0b\n", 4, "it holds NUL bytes"},
        {"caf\xe9\n", 5, "bytes that are not UTF-8 text"},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(cases[i].bytes, 1, cases[i].len, file), cases[i].len);
        assert_int_equal(fclose(file), 0);
        fixture_fails(fixture, EDIT, "{\"path\":\"n.md\"," APPEND("x") "}", "NOT_TEXT",
                      cases[i].said);
        fixture_fails(fixture, EDIT, "{\"path\":\"n.md\"," SET("{\"a\":1}") "}", "NOT_TEXT",
                      cases[i].said);
        struct stat stat_now;
        assert_int_equal(stat(path, &stat_now), 0);
        assert_int_equal(stat_now.st_size, cases[i].len);
    }
}

static void set_frontmatter(void **state)
{
    struct fixture *fixture = *state;
    makes(fixture, "---\na: 1 # x\nb: 'y'\n---\nT\n", SET("{\"a\":2.50,\"c\":[\"p\",\"q r\"]}"),
          "---\na: 2.50 # x\nb: 'y'\nc:\n  - p\n  - q r\n---\nT\n");
    makes(fixture, "T\r\n", SET("{\"a\":{\"b\":[1,{\"c\":null}]}}"),
          "---\r\na:\r\n  b:\r\n    - 1\r\n    - c: null\r\n---\r\nT\r\n");
    makes(fixture, "---\na: 1\nb: 2\n---\n", SET("{\"a\":null}"), "---\nb: 2\n---\n");
    makes(fixture, "---\na: 1\n---\n", SET("{}"), "---\na: 1\n---\n");
    fixture_put(fixture, "n.md", "---\na: [1\n---\n");
    fixture_fails(fixture, EDIT, "{\"path\":\"n.md\"," SET("{\"b\":1}") "}", "TOOL_FAILED",
                  "unchanged: `b` cannot be set in front matter: it does not parse");
    fixture_has(fixture, "n.md", "---\na: [1\n---\n");
}

#define DEEP_MAX 120

/* `depth` times `open`, then `inner`, then `depth` times `close`. */
static void nest(char *out, size_t size, const char *open, size_t depth, const char *inner,
                 const char *close)
{
    struct buf text;
    buf_init(&text, size);
    for (size_t i = 0; i < depth; i++) {
        buf_add_c(&text, open);
    }
    buf_add_c(&text, inner);
    for (size_t i = 0; i < depth; i++) {
        buf_add_c(&text, close);
    }
    assert_int_equal(text.rc, NG_OK);
    (void)snprintf(out, size, "%s", buf_cstr(&text));
    buf_done(&text);
}

/* As deep as front matter is read, and one level more. */
static void set_nested(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *open, *inner, *close;
        size_t depth;
        bool as_text;
    } refused[] = {
        {"[", "", "]", 64, false},
        {"[", "1", "]", 64, false},
        {"[", "1", "]", DEEP_MAX, false},
        {"{\"b\":", "1", "}", 64, false},
        {"{\"b\":", "1", "}", DEEP_MAX, false},
        {"[", "1", "]", 64, true},
    };
    char value[1200];
    char members[1400];
    char wanted[1400];
    for (size_t i = 0; i < NG_COUNT(refused); i++) {
        nest(value, sizeof(value), refused[i].open, refused[i].depth, refused[i].inner,
             refused[i].close);
        (void)snprintf(members, sizeof(members),
                       refused[i].as_text ? SET("\"{\\\"a\\\":%s}\"") : SET("{\"a\":%s}"),
                       value);
        refuses(fixture, "T\n", members, "INVALID_PARAMS", "nested too deeply");
    }
    nest(value, sizeof(value), "[", 63, "1", "]");
    (void)snprintf(members, sizeof(members), SET("{\"a\":%s}"), value);
    nest(value, sizeof(value), "- ", 63, "1", "");
    (void)snprintf(wanted, sizeof(wanted), "---\na:\n  %s\n---\nT\n", value);
    makes(fixture, "T\n", members, wanted);
}

static void arguments(void **state)
{
    struct fixture *fixture = *state;
    char path[300];
    fixture_put(fixture, "n.md", "x\n");
    fixture_fails(fixture, EDIT, "{\"path\":\"n.md\",\"operation\":\"append\"}",
                  "INVALID_PARAMS", "`content` is missing");
    fixture_fails(fixture, EDIT, "{\"path\":\"n.md\",\"operation\":\"set\"}", "INVALID_PARAMS",
                  "`data` is missing");
    fixture_fails(fixture, EDIT,
                  "{\"path\":\"n.md\",\"operation\":\"set\",\"data\":{},\"content\":\"\"}",
                  "INVALID_PARAMS", "no meaning");
    fixture_fails(fixture, EDIT,
                  "{\"path\":\"n.md\",\"operation\":\"replace_section\",\"content\":\"\"}",
                  "INVALID_PARAMS", "`section` is missing");
    fixture_fails(fixture, EDIT,
                  "{\"path\":\"n.md\",\"operation\":\"replace\",\"content\":\"\"}",
                  "INVALID_PARAMS", "");
    fixture_fails(fixture, EDIT, "{\"path\":\"m.md\"," APPEND("x") "}", "NOTE_NOT_FOUND",
                  "m.md");
    fixture_fails(fixture, EDIT, "{\"path\":\"../n.md\"," APPEND("x") "}", "PATH_TRAVERSAL",
                  "");
    fixture_fails(fixture, EDIT, "{\"path\":\"/etc/passwd\"," APPEND("x") "}", "PATH_TRAVERSAL",
                  "");
    fixture_fails(fixture, EDIT, "{\"path\":\"n.md\"," APPEND("a\\u0000b") "}",
                  "INVALID_PARAMS", "NUL");
    fixture_fails(
        fixture, EDIT,
        "{\"path\":\"n.md\",\"expectedRevision\":\"00000000000000000000000000000000\"," APPEND(
            "x") "}",
        "CONFLICT", "");
    fixture_path(fixture, "out.md", path, sizeof(path));
    assert_int_equal(symlink("/etc/hostname", path), 0);
    fixture_fails(fixture, EDIT, "{\"path\":\"out.md\"," APPEND("x") "}", "NOTE_NOT_FOUND", "");
    fixture_has(fixture, "n.md", "x\n");
    /* A link inside is the file it leads to. */
    fixture_path(fixture, "in.md", path, sizeof(path));
    assert_int_equal(symlink("n.md", path), 0);
    free(fixture_call(fixture, EDIT, "{\"path\":\"in.md\"," APPEND("y") "}"));
    fixture_has(fixture, "n.md", "x\ny\n");
}

static void expected_revision(void **state)
{
    struct fixture *fixture = *state;
    char args[300];
    char revision[NOTES_REVISION_SIZE];
    fixture_put(fixture, "n.md", "x\n");
    assert_int_equal(notes_revision(ng_str_of("x\n"), -1, revision), NG_OK);
    (void)snprintf(args, sizeof(args),
                   "{\"path\":\"n.md\",\"expectedRevision\":\"%s\"," APPEND("y") "}", revision);
    free(fixture_call(fixture, EDIT, args));
    fixture_has(fixture, "n.md", "x\ny\n");
    fixture_fails(fixture, EDIT, args, "CONFLICT", "another revision");
    fixture_has(fixture, "n.md", "x\ny\n");
}

/* ---- many at once */

struct agent {
    struct fixture *fixture;
    int number;
    int failed;
};

/* Appends lines, counts up a key of its own, and replaces a section of its own. */
static void *run_agent(void *user)
{
    struct agent *agent = user;
    for (int round = 0; round < ROUNDS; round++) {
        char args[3][200];
        (void)snprintf(args[0], sizeof(args[0]),
                       "{\"path\":\"n.md\",\"operation\":\"append\",\"content\":\"- %d/%d\"}",
                       agent->number, round);
        (void)snprintf(args[1], sizeof(args[1]),
                       "{\"path\":\"n.md\",\"operation\":\"set\",\"data\":{\"k%d\":%d}}",
                       agent->number, round);
        (void)snprintf(
            args[2], sizeof(args[2]),
            "{\"path\":\"n.md\",\"operation\":\"replace_section\",\"section\":\"S%d\","
            "\"content\":\"round %d\"}",
            agent->number, round);
        for (size_t i = 0; i < 3; i++) {
            struct answer answer = harness_call(&agent->fixture->harness, EDIT, args[i]);
            agent->failed += answer.rc != NG_OK;
            answer_free(&answer);
        }
    }
    return NULL;
}

static void at_once(void **state)
{
    struct fixture *fixture = *state;
    struct agent agents[AGENTS];
    pthread_t threads[AGENTS];
    char text[1000] = "---\n# comment\ntitle: T\n---\n";
    for (int i = 0; i < AGENTS; i++) {
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof(text) - len, "## S%d\n\n", i);
    }
    (void)strncat(text, "## Log\n", sizeof(text) - strlen(text) - 1);
    fixture_put(fixture, "n.md", text);
    for (int i = 0; i < AGENTS; i++) {
        agents[i] = (struct agent){fixture, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, run_agent, &agents[i]), 0);
    }
    for (int i = 0; i < AGENTS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(agents[i].failed, 0);
    }
    char *now = fixture_get(fixture, "n.md");
    assert_non_null(strstr(now, "---\n# comment\ntitle: T\n"));
    for (int i = 0; i < AGENTS; i++) {
        char part[64];
        for (int round = 0; round < ROUNDS; round++) {
            (void)snprintf(part, sizeof(part), "\n- %d/%d\n", i, round);
            assert_non_null(strstr(now, part));
        }
        (void)snprintf(part, sizeof(part), "\nk%d: %d\n", i, ROUNDS - 1);
        assert_non_null(strstr(now, part));
        (void)snprintf(part, sizeof(part), "## S%d\n\nround %d\n", i, ROUNDS - 1);
        assert_non_null(strstr(now, part));
    }
    free(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(append_prepend, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(sections, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(sections_behind, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(sections_nested, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(swallowing, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(too_deep, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(not_text, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(set_frontmatter, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(set_nested, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(arguments, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(expected_revision, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(at_once, edit_setup, edit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
