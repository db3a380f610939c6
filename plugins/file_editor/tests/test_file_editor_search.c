/* SPDX-License-Identifier: MIT */
/* test_file_editor_search.c - the command search: which lines, how they are shown, what is left
 * out, and what is refused.
 */
#include "test_file_editor_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIND(path, pattern)                                                                    \
    "{\"command\":\"search\",\"path\":\"" path "\",\"pattern\":\"" pattern "\"}"
#define FIND_AS(path, pattern, more)                                                           \
    "{\"command\":\"search\",\"path\":\"" path "\",\"pattern\":\"" pattern "\"," more "}"
#define RE "\"regex\":true"
#define IC "\"ignore_case\":true"
#define NOTHING "0 matches in 0 files"

/* A search and its whole answer. */
struct search {
    const char *args, *answer;
};

static void run(struct test *test, const struct search *searches, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ok(test, searches[i].args, searches[i].answer);
    }
}

/* The content of a file, a pattern, and the lines that match. */
static void test_lines(void **state)
{
    static const struct {
        const char *text, *pattern, *more, *lines;
    } cases[] = {
        {"a\nfoo\nb foo\n", "foo", "\"max\":9", "2: foo|3: b foo"},
        {"foo", "foo", "\"max\":9", "1: foo"},
        {"", "foo", "\"max\":9", ""},
        {"\n\nx", "x", "\"max\":9", "3: x"},
        {"foo foo\nfoo", "foo", "\"max\":9", "1: foo foo|2: foo"},
        {"a.c\nabc\n", "a.c", "\"max\":9", "1: a.c"},
        {"a.c\nabc\n", "a.c", RE, "1: a.c|2: abc"},
        {"Foo\nfoo\nFOO", "foo", IC, "1: Foo|2: foo|3: FOO"},
        {"Foo\nfoo\nFOO", "foo", "\"ignore_case\":false", "2: foo"},
        {"f(o\nF(O", "F(O", IC, "1: f(o|2: F(O"},
        /* A CR before LF ends the line, another one does not. */
        {"foo\r\nb\r\n", "foo", "\"max\":9", "1: foo"},
        {"foo\r\nbar\r\n", "(foo|bar)$", RE, "1: foo|2: bar"},
        {"foo\r\n\r\nbar", "^$", RE, "2: "},
        {"foo\r\nfoo", "foo\\r", "\"max\":9", ""},
        {"foo\r\r\nx", "foo\\r", "\"max\":9", "1: foo\r"},
        {"foo\rbar\n", "foo$", RE, ""},
        {"foo\rbar\n", "^foo.bar$", RE, "1: foo\rbar"},
        {"a\r\nb", "a\\\\s", RE, ""},
        {"a\r\nb", "A\\r", IC, ""},
        /* Nothing is found over the end of a line. */
        {"a\nb\nab", "a[^x]*b", RE, "3: ab"},
        {"a b\na\nb", "a\\\\s+b", RE, "1: a b"},
        {"a\n\nb\na b", "a\\\\s*b|\\\\n", RE, "4: a b"},
        {"a1\nb", "a[^b]*+$", RE, "1: a1"},
        {"xa1\nb", "\\\\Aa|a1\\\\z", RE, "1: xa1"},
        {"b\na", "(?<!\\\\n)a", RE, "2: a"},
        {"ab\nc", "b(?!\\\\n)", RE, "1: ab"},
        {"ab\nc", "(?s)b.c|z", RE, ""},
        /* A pattern that matches the empty string matches each line. */
        {"a\n\nb", "x*", RE, "1: a|2: |3: b"},
        {"a\nb\n", "^", RE, "1: a|2: b"},
        {"a\n\n", "$", RE, "1: a|2: "},
        {"\n", "^$", RE, "1: "},
        /* \w is ASCII, case is that of Unicode. */
        {"\xc3\xa4\na", "\\\\w", RE, "2: a"},
        {"\xc3\x84PFEL\n\xc3\xa4pfel", "\xc3\xa4pfel", IC, "1: \xc3\x84PFEL|2: \xc3\xa4pfel"},
        {"\xc3\x84PFEL\nSTRA\xc3\x9f"
         "E",
         "^\xc3\xa4.*l$", RE "," IC, "1: \xc3\x84PFEL"},
        {"x\xc3\xa4y", "x.y", RE, "1: x\xc3\xa4y"},
        /* Bytes that are no UTF-8 are shown as U+FFFD, and match nothing. */
        {"x\xff"
         "foo\nfoo\xc3\n",
         "foo", "\"max\":9",
         "1: x\xef\xbf\xbd"
         "foo|2: foo\xef\xbf\xbd"},
        {"x\xff"
         "foo\nfoo\xc3\n",
         "FOO", IC,
         "1: x\xef\xbf\xbd"
         "foo|2: foo\xef\xbf\xbd"},
        {"x\xff"
         "foo\nfoo",
         "x.foo|^foo", RE, "2: foo"},
        {"\xef\xbb\xbf"
         "foo\n",
         "^foo", RE, "1: foo"},
        /* Patterns for several lines at once, and for one. */
        {"int a;\nint f(void)\n", "^int \\\\w+\\\\(", RE, "2: int f(void)"},
        {"aa\nab\n", "(?:a)(?=b)", RE, "2: ab"},
        {"Foo\nfoo\n", "(?i)FOO", RE, "1: Foo|2: foo"},
        {"a++\nab\n", "a\\\\++", RE, "1: a++"},
        {"aa\n", "(*COMMIT)b|a", RE, ""},
        {"b b\nb\n", "(.) \\\\1", RE, "1: b b"},
        {"a|b\n", "a|b", "\"max\":9", "1: a!b"},
        /* The text that each match has. */
        {"x\ny_init(\nz_ini(", "\\\\w+_init\\\\(", RE, "2: y_init("},
        {"b\nab\nac", "a?b", RE, "1: b|2: ab"},
        {"a\naa\nab", "ab*$", RE, "1: a|2: aa|3: ab"},
        {"xd\nxabd\nab", "x(ab)?d", RE, "1: xd|2: xabd"},
        {"xd\nxabd\n", "x(?:ab)*d", RE, "1: xd|2: xabd"},
        {"b\nc\ncc", "a{0}c{2}", RE, "3: cc"},
        {"x]y\nx]]z\n", "[^]a]\\\\]+z|k", RE, "2: x]]z"},
        {"q]z\nqz", "[]q]z", RE, "1: q]z|2: qz"},
        {"a.b\naxb", "a\\\\.b", RE, "1: a.b"},
        {"\xc3\xa4\nb", "\xc3\xa4?b", RE, "2: b"},
        {"fooBAR\n", "foo(?i)bar", RE, "1: fooBAR"},
        {"xab\n", "[[:alpha:]]ab", RE, "1: xab"},
        {"0123456789012345678901234567890123456789012345678901234567890123\xc3\xa4\n"
         "012345678901234567890123456789012345678901234567890123456789012\n",
         "012345678901234567890123456789012345678901234567890123456789012\xc3\xa4?$", RE,
         "2: 012345678901234567890123456789012345678901234567890123456789012"},
    };
    struct test *test = *state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char args[TEXT_MAX];
        char wanted[TEXT_MAX];
        size_t len = 0;
        size_t lines = 0;
        put(test, "@/f", cases[i].text);
        (void)snprintf(args, sizeof(args),
                       "{\"command\":\"search\",\"path\":\"@/f\",\"pattern\":\"%s\",%s}",
                       cases[i].pattern, cases[i].more);
        for (const char *at = cases[i].lines; *at != '\0'; lines++) {
            size_t part = strcspn(at, "|");
            int wrote =
                snprintf(wanted + len, sizeof(wanted) - len, "@/f:%.*s\n", (int)part, at);
            for (int j = 0; j < wrote; j++) {
                wanted[len + (size_t)j] =
                    wanted[len + (size_t)j] == '!' ? '|' : wanted[len + (size_t)j];
            }
            len += (size_t)wrote;
            at += part + (at[part] == '|');
        }
        (void)snprintf(wanted + len, sizeof(wanted) - len, "%zu matches in %d files", lines,
                       lines > 0);
        ok(test, args, wanted);
    }
}

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245U + 12345U;
    return *seed >> 16;
}

/* Patterns for which lines are taken together find what they find line by line, as an empty
 * look-ahead makes them do. */
static void test_together_and_one_by_one(void **state)
{
    static const char *const parts[] = {
        "a",     "b",     "c",        ".",     "\\\\w", "\\\\s", "[^a]", "[ab]", "(?:", "(",
        ")",     "|",     "*",        "+",     "?",     "{0,2}", "^",    "$",    " ",   "\\\\b",
        "\\\\B", "\\\\W", "[^\\\\w]", "\\\\.", "ab",    "bc",    "a*?",  ".*",   "x",   "[]c]"};
    static const char letters[] = "aabbcc. \n\n\r]";
    struct test *test = *state;
    unsigned seed = 7;
    size_t found = 0;
    for (size_t i = 0; i < 3000; i++) {
        char pattern[128] = "";
        char text[300];
        for (unsigned n = next_random(&seed) % 6 + 1; n > 0; n--) {
            strcat(pattern, parts[next_random(&seed) % NG_COUNT(parts)]); /* NOLINT */
        }
        for (size_t at = 0; at < sizeof(text); at++) {
            text[at] = letters[next_random(&seed) % (sizeof(letters) - 1)];
        }
        if (i % 10 == 0) {
            put_bytes(test, "@/f", text, sizeof(text));
        }
        struct answer answers[2];
        for (size_t j = 0; j < 2; j++) {
            char args[512];
            (void)snprintf(args, sizeof(args),
                           j == 0 ? FIND_AS("@/f", "%s", RE) : FIND_AS("@/f", "(?=)(?:%s)", RE),
                           pattern);
            answers[j] = call(test, args);
        }
        assert_true(answers[0].rc != NG_OK || answers[1].rc == NG_OK);
        if (answers[0].rc == NG_OK && strcmp(answers[0].text, answers[1].text) != 0) {
            fail_msg("%s: %s, and line by line %s", pattern, answers[0].text, answers[1].text);
        }
        found += answers[0].rc == NG_OK && strncmp(answers[0].text, "0 ", 2) != 0;
        answer_free(&answers[0]);
        answer_free(&answers[1]);
    }
    assert_true(found > 500);
}

static void test_folders(void **state)
{
    static const struct search searches[] = {
        /* By the bytes of whole paths: "-" and "." come before "/". */
        {FIND("@", "foo"), "@/Z:1: foo\n@/a-b:1: foo\n@/a.c:1: foo\n@/a/b.c:1: foo\n"
                           "@/a/d/e.h:2: foo\n@/ab:1: foo\n6 matches in 6 files\n"
                           "Left out: 2 hidden, 4 links"},
        {FIND("@/a/", "foo"), "@/a/b.c:1: foo\n@/a/d/e.h:2: foo\n2 matches in 2 files\n"
                              "Left out: 1 links"},
        {FIND("@/a.c", "foo"), "@/a.c:1: foo\n1 matches in 1 files"},
        {FIND("@", "none"), NOTHING "\nLeft out: 2 hidden, 4 links"},
        /* `path` itself is searched, also if it is hidden or a link. */
        {FIND("@/.hid", "foo"), "@/.hid/x:1: foo\n1 matches in 1 files"},
        {FIND("@/.dot", "foo"), "@/.dot:1: foo\n1 matches in 1 files"},
        {FIND("@/link", "foo"), "@/link/b.c:1: foo\n@/link/d/e.h:2: foo\n2 matches in 2 files\n"
                                "Left out: 1 links"},
        {FIND("@/file-link", "foo"), "@/file-link:1: foo\n1 matches in 1 files"},
        {FIND("@/empty", "foo"), NOTHING},
        /* Globs. */
        {FIND_AS("@", "foo", "\"glob\":\"*.c\""),
         "@/a.c:1: foo\n@/a/b.c:1: foo\n2 matches in 2 files\nLeft out: 2 hidden, 4 links"},
        {FIND_AS("@/a", "foo", "\"glob\":\"*.{c,h}\""),
         "@/a/b.c:1: foo\n@/a/d/e.h:2: foo\n2 matches in 2 files\nLeft out: 1 links"},
        {FIND_AS("@/a", "foo", "\"glob\":\"{b,x{y,d}}.?\""),
         "@/a/b.c:1: foo\n1 matches in 1 files\nLeft out: 1 links"},
        {FIND_AS("@", "foo", "\"glob\":\"a/*\""),
         "@/a/b.c:1: foo\n1 matches in 1 files\nLeft out: 2 hidden, 4 links"},
        {FIND_AS("@", "foo", "\"glob\":\"a/**/*.h\""),
         "@/a/d/e.h:2: foo\n1 matches in 1 files\nLeft out: 2 hidden, 4 links"},
        {FIND_AS("@", "foo", "\"glob\":\"**/*.[ch]\""),
         "@/a.c:1: foo\n@/a/b.c:1: foo\n@/a/d/e.h:2: foo\n3 matches in 3 files\n"
         "Left out: 2 hidden, 4 links"},
        {FIND_AS("@", "foo", "\"glob\":\"[!aZ]*\""),
         "@/a/b.c:1: foo\n@/a/d/e.h:2: foo\n2 matches in 2 files\nLeft out: 2 hidden, 4 links"},
        {FIND_AS("@/a.c", "foo", "\"glob\":\"*.c\""), "@/a.c:1: foo\n1 matches in 1 files"},
        {FIND_AS("@/a.c", "foo", "\"glob\":\"*.h\""), NOTHING},
    };
    struct test *test = *state;
    static const char *const folders[] = {"@/a", "@/a/d", "@/.hid", "@/empty"};
    static const char *const files[] = {"@/Z",     "@/a.c",  "@/a-b",   "@/ab",
                                        "@/a/b.c", "@/.dot", "@/.hid/x"};
    for (size_t i = 0; i < NG_COUNT(folders); i++) {
        make_dir(test, folders[i]);
    }
    for (size_t i = 0; i < NG_COUNT(files); i++) {
        put(test, files[i], "foo\n");
    }
    put(test, "@/a/d/e.h", "x\nfoo\n");
    make_link(test, "@", "@/a/loop");
    make_link(test, "@/a", "@/link");
    make_link(test, "@/a.c", "@/file-link");
    make_link(test, "@/nowhere", "@/lost");
    run(test, searches, NG_COUNT(searches));
}

static void test_what_is_left_out(void **state)
{
    static const struct search searches[] = {
        {FIND("@", "foo"),
         "@/b:1: foo\n@/c:1: foo\n@/c:2: foo\n@/c:3: foo\n4 matches in 2 files\n"
         "Left out: 2 binary, 1 over 16 MiB"},
        {FIND_AS("@", "foo", "\"max\":2"), "@/b:1: foo\n@/c:1: foo\n4 matches in 2 files\nLeft "
                                           "out: 2 over `max`, 2 binary, 1 over "
                                           "16 MiB"},
        {FIND_AS("@", "foo", "\"max\":1000"),
         "@/b:1: foo\n@/c:1: foo\n@/c:2: foo\n@/c:3: foo\n4 matches in 2 files\n"
         "Left out: 2 binary, 1 over 16 MiB"},
        {FIND("@/over", "foo"), NOTHING "\nLeft out: 1 over 16 MiB"},
        {FIND("@/nul", "foo"), NOTHING "\nLeft out: 1 binary"},
        {FIND_AS("@/nul", "foo", "\"max\":1"), NOTHING "\nLeft out: 1 binary"},
    };
    struct test *test = *state;
    char real[TEXT_MAX];
    static const char nul[] = "foo\n\0\nfoo\n";
    put_bytes(test, "@/nul", nul, sizeof(nul) - 1);
    put(test, "@/b", "foo\n");
    put(test, "@/c", "foo\nfoo\nfoo\n");
    put(test, "@/over", "foo\n");
    expand(test, "@/over", real, sizeof(real));
    assert_int_equal(truncate(real, 16 * 1024 * 1024 + 1), 0);
    /* At the border it is searched, and this one has a NUL at its end: what was found before
     * that is taken back. */
    put(test, "@/even", "foo\n");
    expand(test, "@/even", real, sizeof(real));
    char *line = malloc(65536);
    assert_non_null(line);
    memset(line, 'x', 65535);
    line[65535] = '\n';
    int fd = open(real, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = 0; i < 255; i++) {
        assert_int_equal(write(fd, line, 65536), 65536);
    }
    assert_int_equal(close(fd), 0);
    free(line);
    assert_int_equal(truncate(real, 16 * 1024 * 1024), 0);
    run(test, searches, NG_COUNT(searches));
}

/* Lines over the borders of blocks, and the excerpt of long ones. */
static void test_long_lines(void **state)
{
    struct test *test = *state;
    size_t len = (size_t)3 * 1024 * 1024;
    char *text = malloc(len + 1);
    assert_non_null(text);
    memset(text, 'a', len);
    text[len] = '\0';
    memcpy(text, "first\n", 6);
    memcpy(text + 65530, "needle", 6); /* over the border of two blocks */
    text[200000] = '\n';
    memcpy(text + 200001, "\xc3\xa4\xc3\xb6", 4);
    memcpy(text + 200001 + 65536 * 3 - 2, "needle", 6);
    text[500000] = '\n';
    memcpy(text + 500001 + 1048570, "needle", 6); /* the last bytes that are searched */
    memcpy(text + len - 8, "needle\nx", 8);
    text[500001 + 1048580] = 'N';
    put_bytes(test, "@/long", text, len);
    free(text);
    static const char *const more[] = {"\"max\":9", IC, RE, RE ",\"glob\":\"l*\""};
    for (size_t i = 0; i < NG_COUNT(more); i++) {
        char args[TEXT_MAX];
        (void)snprintf(args, sizeof(args),
                       "{\"command\":\"search\",\"path\":\"@/long\",\"pattern\":\"needle\",%s}",
                       more[i]);
        struct answer answer = call(test, args);
        assert_int_equal(answer.rc, NG_OK);
        size_t lines = 0;
        for (const char *at = answer.text; strncmp(at, "3 matches", 9) != 0; lines++) {
            const char *shown = strstr(at, ": ");
            const char *end = strchr(at, '\n');
            assert_non_null(shown);
            assert_true(strstr(shown, "needle") < end);
            assert_int_equal(end - shown - 2, 400);
            assert_int_equal(strtoul(shown - 1, NULL, 10), lines + 2);
            at = end + 1;
        }
        assert_int_equal(lines, 3);
        assert_non_null(strstr(answer.text, "\n3 matches in 1 files\n"
                                            "Left out: 1 lines from their first 1 MiB on"));
        answer_free(&answer);
    }
    /* The number of a line behind one that is too long. */
    struct answer answer = call(test, FIND_AS("@/long", "^x$", RE));
    assert_string_equal(
        strstr(answer.text, "/long:") + 6,
        "5: x\n1 matches in 1 files\nLeft out: 1 lines from their first 1 MiB on");
    answer_free(&answer);
}

/* The excerpt is cut between characters, and is not longer for bytes that are none. */
static void test_excerpts(void **state)
{
    struct test *test = *state;
    static const struct {
        const char *around;
        size_t shown, least;
    } cases[] = {{"\xc3\xa4", 400, 398},
                 {"\xe2\x82\xac", 400, 396},
                 {"\xff", 400, 380},
                 {"y", 400, 400}};
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char text[8192] = "";
        size_t step = strlen(cases[i].around);
        size_t half = 1000 / step * step;
        for (size_t at = 0; at < half; at += step) {
            memcpy(text + at, cases[i].around, step);
            memcpy(text + half + 3 + at, cases[i].around, step);
        }
        memcpy(text + half, "foo", 3);
        put(test, "@/e", text);
        struct answer answer = call(test, FIND("@/e", "foo"));
        assert_int_equal(answer.rc, NG_OK);
        const char *shown = strstr(answer.text, ": ") + 2;
        size_t len = (size_t)(strchr(shown, '\n') - shown);
        assert_true(len <= cases[i].shown && len >= cases[i].least);
        assert_true(strstr(shown, "foo") != NULL);
        answer_free(&answer);
    }
}

static void test_many(void **state)
{
    struct test *test = *state;
    char path[64];
    make_dir(test, "@/many");
    for (unsigned i = 0; i < 10000; i++) {
        if (i % 1000 == 0) {
            (void)snprintf(path, sizeof(path), "@/many/%u", i / 1000);
            make_dir(test, path);
        }
        (void)snprintf(path, sizeof(path), "@/many/%u/f%04u", i / 1000, i);
        put(test, path, i % 100 == 7 ? "x\nneedle\n" : "x\ny\n");
    }
    struct answer answer = call(test, FIND_AS("@/many", "needle", "\"max\":1000"));
    assert_int_equal(answer.rc, NG_OK);
    assert_non_null(strstr(answer.text, "/many/0/f0007:2: needle\n"));
    assert_non_null(strstr(answer.text, "/many/9/f9907:2: needle\n100 matches in 100 files"));
    answer_free(&answer);
    answer = call(test, FIND("@/many", "x"));
    assert_non_null(
        strstr(answer.text, "\n10000 matches in 10000 files\nLeft out: 9900 over `max`"));
    answer_free(&answer);
    /* The answer has a size, too. */
    char text[450];
    memset(text, 'w', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\n';
    for (unsigned i = 0; i < 200; i++) {
        (void)snprintf(path, sizeof(path), "@/many/0/f%04u", i);
        put_bytes(test, path, text, sizeof(text));
    }
    answer = call(test, FIND_AS("@/many", "w", "\"max\":1000"));
    assert_true(strlen(answer.text) <= 61 * 1024 && strlen(answer.text) > 58 * 1024);
    assert_non_null(strstr(answer.text, "\n200 matches in 200 files\nLeft out: "));
    assert_non_null(strstr(answer.text, " over the size of an answer"));
    answer_free(&answer);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *args, *code, *message;
    } cases[] = {
        {"{\"command\":\"search\",\"path\":\"@\"}", "INVALID_INPUT",
         "Parameter `pattern` is required for command: search"},
        {FIND("@", ""), "INVALID_INPUT",
         "Invalid `pattern`: it is empty. Give the text that the lines have"},
        {FIND("@", "a\\nb"), "INVALID_INPUT",
         "Invalid `pattern`: it has several lines, and lines are searched one by one. Give one "
         "of them"},
        {FIND_AS("@", "a(", RE), "INVALID_INPUT",
         "Invalid `pattern`: missing closing parenthesis at character 2. Correct it and try "
         "again, or leave `regex` out to find it as plain text"},
        {FIND_AS("@", "a", "\"glob\":\"\""), "INVALID_INPUT",
         "Invalid `glob`: it is empty. Give one such as `*.c` or `src/**/*.{c,h}`"},
        {FIND_AS("@", "a", "\"glob\":\"[a\""), "INVALID_INPUT",
         "Invalid `glob`: missing terminating ] for character class. Give one such as `*.c` or "
         "`src/**/*.{c,h}`"},
        {FIND_AS("@", "a", "\"glob\":\"*.{c,h\""), "INVALID_INPUT",
         "Invalid `glob`: a `{` has no `}`. Give one such as `*.c` or `src/**/*.{c,h}`"},
        {FIND_AS("@", "a", "\"glob\":\"{1,2}{1,2}{1,2}{1,2}{1,2}{1,2}{1,2}\""), "INVALID_INPUT",
         "Invalid `glob`: its braces make more than 64 choices. Give one such as `*.c` or "
         "`src/**/*.{c,h}`"},
        {FIND("relative", "a"), "INVALID_INPUT",
         "The path relative is not an absolute path, it should start with `/`. Maybe you meant "
         "@/relative?"},
        {FIND("@/none", "a"), "NOT_FOUND",
         "The path @/none does not exist. Please provide a valid path."},
        {FIND("/etc", "a"), "PATH_OUTSIDE_ROOTS", "The path /etc is outside the roots: @."},
        {FIND("@/../x", "a"), "PATH_TRAVERSAL", "Invalid path: path traversal is not allowed"},
        {FIND_AS("@", "(a+)+$", RE), "TOOL_FAILED",
         "The pattern takes too many steps on @/hard, line 2. Use a simpler one (without "
         "nested repeats)."},
    };
    struct test *test = *state;
    put(test, "@/hard", "b\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n");
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        fails(test, cases[i].args, cases[i].code, cases[i].message);
    }
    /* Members and their bounds. */
    static const char *const invalid[] = {"\"max\":0", "\"max\":1001", "\"regex\":\"perhaps\"",
                                          "\"glob\":7", "\"case\":true"};
    for (size_t i = 0; i < NG_COUNT(invalid); i++) {
        char args[TEXT_MAX];
        (void)snprintf(args, sizeof(args),
                       "{\"command\":\"search\",\"path\":\"@\",\"pattern\":\"a\",%s}",
                       invalid[i]);
        struct answer answer = call(test, args);
        assert_int_equal(answer.rc, NG_EINVAL);
        answer_free(&answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_together_and_one_by_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_excerpts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
