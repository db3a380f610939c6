/* SPDX-License-Identifier: MIT */
/* test_file_editor.c - the file editor through the real gateway: every text, and what is on
 * disk afterwards. In arguments and texts '@' stands for the root. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 16384
#define CAT "Here's the result of running `cat -n` on "
#define REVIEW                                                                                 \
    "Review the changes and make sure they are as expected. Edit the file again if necessary."
#define REVIEW_INSERT                                                                          \
    "Review the changes and make sure they are as expected (correct indentation, no "          \
    "duplicate lines, etc). Edit the file again if necessary."

#define REPLACE(path, old, new)                                                                \
    "{\"command\":\"str_replace\",\"path\":\"" path "\",\"old_str\":\"" old                    \
    "\",\"new_str\":\"" new "\"}"

struct test {
    struct harness harness;
    char roots[300]; /* folder of the two roots, or "" */
    char root[320];
    char other[320];    /* the second root */
    char root_set[700]; /* "roots=..." */
    const char *sets[3];
};

/* ---- helpers */

static void expand(const struct test *test, const char *from, char *to, size_t size)
{
    size_t len = 0;
    for (; *from != '\0'; from++) {
        if (*from == '@') {
            len += (size_t)snprintf(to + len, size - len, "%s", test->root);
        } else {
            to[len++] = *from;
            to[len] = '\0';
        }
        assert_true(len + 1 < size);
    }
    to[len] = '\0';
}

static struct answer call(struct test *test, const char *args)
{
    char real[TEXT_MAX];
    expand(test, args, real, sizeof(real));
    return harness_call(&test->harness, "fileEditor", real);
}

static void ok(struct test *test, const char *args, const char *text)
{
    char real[TEXT_MAX];
    char wanted[TEXT_MAX];
    expand(test, args, real, sizeof(real));
    expand(test, text, wanted, sizeof(wanted));
    expect_text(&test->harness, "fileEditor", real, wanted);
}

static void fails(struct test *test, const char *args, const char *code, const char *message)
{
    char real[TEXT_MAX];
    char wanted[TEXT_MAX];
    expand(test, args, real, sizeof(real));
    expand(test, message, wanted, sizeof(wanted));
    expect_error(&test->harness, "fileEditor", real, code, wanted);
}

static void works(struct test *test, const char *args)
{
    struct answer answer = call(test, args);
    if (answer.rc != NG_OK) {
        fail_msg("%s failed: %s %s", args, answer.code, answer.message);
    }
    answer_free(&answer);
}

static void put_bytes(struct test *test, const char *path, const char *data, size_t len)
{
    char real[TEXT_MAX];
    expand(test, path, real, sizeof(real));
    int fd = open(real, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static void put(struct test *test, const char *path, const char *text)
{
    put_bytes(test, path, text, strlen(text));
}

static void has_bytes(struct test *test, const char *path, const char *data, size_t len)
{
    char real[TEXT_MAX];
    char *there = malloc(len + 2);
    expand(test, path, real, sizeof(real));
    int fd = open(real, O_RDONLY | O_CLOEXEC);
    assert_non_null(there);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, there, len + 1), (ssize_t)len);
    assert_memory_equal(there, data, len);
    (void)close(fd);
    free(there);
}

static void has(struct test *test, const char *path, const char *text)
{
    has_bytes(test, path, text, strlen(text));
}

static bool exists(struct test *test, const char *path)
{
    char real[TEXT_MAX];
    struct stat st;
    expand(test, path, real, sizeof(real));
    return lstat(real, &st) == 0;
}

static void make_dir(struct test *test, const char *path)
{
    char real[TEXT_MAX];
    expand(test, path, real, sizeof(real));
    assert_int_equal(mkdir(real, 0755), 0);
}

static void make_link(struct test *test, const char *target, const char *path)
{
    char from[TEXT_MAX];
    char to[TEXT_MAX];
    expand(test, target, to, sizeof(to));
    expand(test, path, from, sizeof(from));
    assert_int_equal(symlink(to, from), 0);
}

static const char *const sets_default[] = {"plugins=file_editor", NULL};

static int setup(void **state)
{
    struct test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    harness_open(&test->harness, sets_default);
    (void)snprintf(test->root, sizeof(test->root), "%s/files", test->harness.dir);
    *state = test;
    return 0;
}

/* Two roots, "a" and "b", in one folder beside the data directory. */
static int setup_two(void **state)
{
    struct test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(test->roots, sizeof(test->roots), "%s/notegate-roots-XXXXXX",
                   tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(test->roots));
    (void)snprintf(test->root, sizeof(test->root), "%s/a", test->roots);
    (void)snprintf(test->other, sizeof(test->other), "%s/b", test->roots);
    (void)snprintf(test->root_set, sizeof(test->root_set), "roots=%s,%s", test->root,
                   test->other);
    test->sets[0] = "plugins=file_editor";
    test->sets[1] = test->root_set;
    harness_open(&test->harness, test->sets);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct test *test = *state;
    harness_close(&test->harness);
    if (test->roots[0] != '\0') {
        char command[400];
        (void)snprintf(command, sizeof(command), "rm -rf '%s'", test->roots);
        assert_int_equal(system(command), 0);
    }
    free(test);
    return 0;
}

/* ---- view */

static void test_view_texts(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "one\n\ttwo\nthree\n");
    ok(test, "{\"command\":\"view\",\"path\":\"@/f\"}",
       CAT "@/f:\n     1  one\n     2          two\n     3  three\n     4  \n");
    ok(test, "{\"command\":\"view\",\"path\":\"@/f/\"}",
       CAT "@/f:\n     1  one\n     2          two\n     3  three\n     4  \n");
    ok(test, "{\"command\":\"view\",\"path\":\"@//.//f\\\\\"}",
       CAT "@//.//f:\n     1  one\n     2          two\n     3  three\n     4  \n");
    ok(test, "{\"command\":\"view\",\"path\":\"@/f\",\"view_range\":[2,3]}",
       CAT "@/f:\n     2          two\n     3  three\n");
    ok(test, "{\"command\":\"view\",\"path\":\"@/f\",\"view_range\":[4,-1]}",
       CAT "@/f:\n     4  \n");
    ok(test, "{\"command\":\"view\",\"path\":\"@/f\",\"view_range\":[4,4]}",
       CAT "@/f:\n     4  \n");
    put(test, "@/empty", "");
    ok(test, "{\"command\":\"view\",\"path\":\"@/empty\"}", CAT "@/empty:\n     1  \n");
    put(test, "@/crlf", "a\r\nb\r\n");
    ok(test, "{\"command\":\"view\",\"path\":\"@/crlf\"}",
       CAT "@/crlf:\n     1  a\r\n     2  b\r\n     3  \n");
    char args[TEXT_MAX];
    expand(test, "{\"command\":\"view\",\"path\":\"@/empty\"}", args, sizeof(args));
    struct answer answer = harness_call(&test->harness, "file_editor", args);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
}

static void test_view_range_errors(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "one\ntwo\nthree\n");
#define RANGE(a, b) "{\"command\":\"view\",\"path\":\"@/f\",\"view_range\":[" #a "," #b "]}"
    fails(test, RANGE(0, 2), "INVALID_INPUT",
          "Invalid `view_range`: [0, 2]. Its first element `0` should be within the range of "
          "lines of the file: [1, 4]");
    fails(test, RANGE(5, 9), "INVALID_INPUT",
          "Invalid `view_range`: [5, 9]. Its first element `5` should be within the range of "
          "lines of the file: [1, 4]");
    fails(test, RANGE(2, 5), "INVALID_INPUT",
          "Invalid `view_range`: [2, 5]. Its second element `5` should be smaller than the "
          "number of lines in the file: `4`");
    fails(test, RANGE(3, 2), "INVALID_INPUT",
          "Invalid `view_range`: [3, 2]. Its second element `2` should be larger or equal than "
          "its first `3`");
    fails(test, RANGE(1, -2), "INVALID_INPUT",
          "Invalid `view_range`: [1, -2]. Its second element `-2` should be larger or equal "
          "than its first `1`");
    fails(test, RANGE(1, 0), "INVALID_INPUT",
          "Invalid `view_range`: [1, 0]. Its second element `0` should be larger or equal than "
          "its first `1`");
    struct answer answer = call(test, RANGE(9, 9));
    assert_string_equal(answer.details, "{\"violations\":[{\"path\":\"/view_range\","
                                        "\"expected\":\"a first line of the file\","
                                        "\"got\":[9,9]}]}");
    answer_free(&answer);
    answer = call(test, RANGE(1, 1.5));
    assert_string_equal(answer.code, "INVALID_INPUT");
    answer_free(&answer);
    answer = call(test, "{\"command\":\"view\",\"path\":\"@/f\",\"view_range\":[1]}");
    assert_string_equal(answer.code, "INVALID_INPUT");
    answer_free(&answer);
    answer = call(test, "{\"command\":\"view\",\"path\":\"@/f\",\"other\":1}");
    assert_string_equal(answer.code, "INVALID_INPUT");
    assert_non_null(strstr(answer.message, "other"));
    answer_free(&answer);
}

static void test_paths(void **state)
{
    struct test *test = *state;
#define VIEW(path) "{\"command\":\"view\",\"path\":\"" path "\"}"
    fails(test, VIEW("a/b"), "INVALID_INPUT",
          "The path a/b is not an absolute path, it should start with `/`. Maybe you meant "
          "@/a/b?");
    fails(test, VIEW("./a/../b"), "INVALID_INPUT",
          "The path ./a/../b is not an absolute path, it should start with `/`. Maybe you "
          "meant @/b?");
    fails(test, VIEW("/"), "INVALID_INPUT",
          "The path  is not an absolute path, it should start with `/`. Maybe you meant @?");
    fails(test, VIEW(""), "INVALID_INPUT",
          "The path  is not an absolute path, it should start with `/`. Maybe you meant @?");
    fails(test, VIEW("~/x"), "INVALID_INPUT",
          "The path ~/x is not an absolute path, it should start with `/`. Maybe you meant "
          "@/~/x?");
    fails(test, VIEW("@/../x"), "PATH_TRAVERSAL",
          "Invalid path: path traversal is not allowed");
    fails(test, VIEW("@\\\\..\\\\x"), "PATH_TRAVERSAL",
          "Invalid path: path traversal is not allowed");
    fails(test, VIEW("@/.."), "PATH_TRAVERSAL", "Invalid path: path traversal is not allowed");
    put(test, "@/a..b", "x");
    put(test, "@/..x", "y");
    ok(test, VIEW("@/a..b"), CAT "@/a..b:\n     1  x\n");
    ok(test, VIEW("@/..x"), CAT "@/..x:\n     1  y\n");
    fails(test, VIEW("@/nope"), "NOT_FOUND",
          "The path @/nope does not exist. Please provide a valid path.");
    fails(test, VIEW("@/a..b/c"), "NOT_FOUND",
          "The path @/a..b/c does not exist. Please provide a valid path.");
    fails(test, VIEW("@/no/such/file"), "NOT_FOUND",
          "The path @/no/such/file does not exist. Please provide a valid path.");
    fails(test, VIEW("@/a..b/."), "NOT_FOUND",
          "The path @/a..b/. does not exist. Please provide a valid path.");
    fails(test, VIEW("/etc/passwd"), "PATH_OUTSIDE_ROOTS",
          "The path /etc/passwd is outside the roots: @.");
    fails(test, VIEW("@x/f"), "PATH_OUTSIDE_ROOTS", "The path @x/f is outside the roots: @.");
    put(test, "@/Readme.md", "");
    struct answer near = call(test, VIEW("@/README.mb"));
    assert_string_equal(near.code, "NOT_FOUND");
    assert_non_null(strstr(near.hint, "Did you mean "));
    assert_non_null(strstr(near.hint, "/files/Readme.md?"));
    answer_free(&near);
    near = call(test, REPLACE("@/Readme", "a", "b"));
    assert_non_null(strstr(near.hint, "/files/Readme.md?"));
    answer_free(&near);
    near = call(test, VIEW("@/quite another name"));
    assert_string_equal(near.hint, "");
    answer_free(&near);
    struct answer answer = call(test, VIEW("/etc/passwd"));
    assert_non_null(strstr(answer.hint, test->root));
    answer_free(&answer);
}

static void test_missing_parameters(void **state)
{
    struct test *test = *state;
    fails(test, "{\"command\":\"create\",\"path\":\"x\"}", "INVALID_INPUT",
          "Parameter `file_text` is required for command: create");
    fails(test, "{\"command\":\"str_replace\",\"path\":\"x\"}", "INVALID_INPUT",
          "Parameter `old_str` is required for command: str_replace");
    const char *message = "Parameters `insert_line` and `new_str` are required for command: "
                          "insert";
    fails(test, "{\"command\":\"insert\",\"path\":\"x\"}", "INVALID_INPUT", message);
    fails(test, "{\"command\":\"insert\",\"path\":\"x\",\"insert_line\":1}", "INVALID_INPUT",
          message);
    fails(test, "{\"command\":\"insert\",\"path\":\"x\",\"new_str\":\"\"}", "INVALID_INPUT",
          message);
    fails(test, "{\"command\":\"regex_replace\",\"path\":\"x\",\"pattern\":\"a\"}",
          "INVALID_INPUT",
          "Parameters `pattern` and `new_str` are required for command: regex_replace");
    fails(test, "{\"command\":\"copy\",\"path\":\"x\"}", "INVALID_INPUT",
          "Parameter `destination` is required for command: copy");
    fails(test, "{\"command\":\"move\",\"path\":\"x\"}", "INVALID_INPUT",
          "Parameter `destination` is required for command: move");
    struct answer answer = call(test, "{\"command\":\"create\",\"path\":\"x\"}");
    assert_string_equal(answer.details, "{\"violations\":[{\"path\":\"/file_text\","
                                        "\"expected\":\"a string\",\"got\":\"nothing\"}]}");
    answer_free(&answer);
    answer = call(test, "{\"command\":\"insert\",\"path\":\"@/x\",\"new_str\":\"\","
                        "\"insert_line\":9007199254740993}");
    assert_string_equal(answer.code, "INVALID_INPUT");
    answer_free(&answer);
    answer = call(test, "{\"command\":\"insert\",\"path\":\"@/x\",\"new_str\":\"\","
                        "\"insert_line\":\"1\"}");
    assert_string_equal(answer.code, "INVALID_INPUT");
    answer_free(&answer);
}

static void test_folders(void **state)
{
    struct test *test = *state;
#define FOLDER "Here's the files and directories up to 2 levels deep in "
#define HIDDEN ", excluding hidden items:\n"
    ok(test, VIEW("@"), FOLDER "@" HIDDEN "\n");
    make_dir(test, "@/a");
    make_dir(test, "@/a/nest");
    make_dir(test, "@/a/nest/deep");
    make_dir(test, "@/.hidden");
    make_dir(test, "@/a-b");
    put(test, "@/a/nest/deep/file", "");
    put(test, "@/a/z", "");
    put(test, "@/a-b/z", "");
    put(test, "@/a/.secret", "");
    put(test, "@/.hidden/x", "");
    put(test, "@/B", "");
    put(test, "@/.notegate-0123456789abcdef.tmp", "");
    make_link(test, "nowhere", "@/dangling");
    make_link(test, "@/a", "@/linked");
    make_link(test, "..", "@/a/up");
    ok(test, VIEW("@"),
       FOLDER "@" HIDDEN
              "B\na\na-b\na-b/z\na/nest\na/nest/deep\na/up\na/z\ndangling\nlinked\n");
    ok(test, VIEW("@/.hidden"), FOLDER "@/.hidden" HIDDEN "x\n");
    ok(test, VIEW("@/linked"),
       FOLDER "@/linked" HIDDEN "nest\nnest/deep\nnest/deep/file\nup\nz\n");
    fails(test, "{\"command\":\"view\",\"path\":\"@/a\",\"view_range\":[1,2]}", "INVALID_INPUT",
          "The `view_range` parameter is not allowed when `path` points to a directory.");
    const char *message = "The path @/a is a directory and only the `view` command can be used "
                          "on directories";
    fails(test,
          "{\"command\":\"str_replace\",\"path\":\"@/a\",\"old_str\":\"x\",\"new_str\":\"\"}",
          "TOOL_FAILED", message);
    fails(test, "{\"command\":\"insert\",\"path\":\"@/a\",\"insert_line\":0,\"new_str\":\"\"}",
          "TOOL_FAILED", message);
    fails(test, VIEW("@/dangling"), "NOT_FOUND",
          "The path @/dangling does not exist. Please provide a valid path.");
    /* Order of UTF-16 code units. */
    make_dir(test, "@/u");
    put(test, "@/u/\xef\xbf\xbd", "");
    put(test, "@/u/\xf0\x9f\x98\x80", "");
    put(test, "@/u/z", "");
    ok(test, VIEW("@/u"), FOLDER "@/u" HIDDEN "z\n\xf0\x9f\x98\x80\n\xef\xbf\xbd\n");
}

/* ---- create */

static void test_create(void **state)
{
    struct test *test = *state;
    ok(test, "{\"command\":\"create\",\"path\":\"@/x/y/z.txt\",\"file_text\":\"a\\tb\\n\"}",
       "File created successfully at: @/x/y/z.txt");
    has(test, "@/x/y/z.txt", "a\tb\n");
    ok(test, "{\"command\":\"create\",\"path\":\"@/empty\",\"file_text\":\"\"}",
       "File created successfully at: @/empty");
    has(test, "@/empty", "");
    fails(test, "{\"command\":\"create\",\"path\":\"@/empty\",\"file_text\":\"x\"}",
          "FILE_EXISTS",
          "File already exists at: @/empty. Cannot overwrite files using command `create`.");
    has(test, "@/empty", "");
    fails(test, "{\"command\":\"create\",\"path\":\"@/x\",\"file_text\":\"x\"}", "FILE_EXISTS",
          "File already exists at: @/x. Cannot overwrite files using command `create`.");
    make_link(test, "@/nowhere", "@/dangling");
    fails(test, "{\"command\":\"create\",\"path\":\"@/dangling\",\"file_text\":\"x\"}",
          "FILE_EXISTS",
          "File already exists at: @/dangling. Cannot overwrite files using command `create`.");
    assert_false(exists(test, "@/nowhere"));
    fails(test, "{\"command\":\"create\",\"path\":\"@/empty/below\",\"file_text\":\"x\"}",
          "TOOL_FAILED",
          "Cannot create @/empty/below: a part of the path is a file, not a folder; choose "
          "another path.");
    struct answer answer =
        call(test, "{\"command\":\"create\",\"path\":\"@/nul\",\"file_text\":\"a\\u0000b\"}");
    assert_string_equal(answer.code, "NOT_TEXT");
    assert_int_equal(answer.status, 422);
    answer_free(&answer);
    assert_false(exists(test, "@/nul"));
}

static void test_create_in_a_link(void **state)
{
    struct test *test = *state;
    make_dir(test, "@/real");
    make_link(test, "@/real", "@/link");
    ok(test, "{\"command\":\"create\",\"path\":\"@/link/f\",\"file_text\":\"x\"}",
       "File created successfully at: @/link/f");
    has(test, "@/real/f", "x");
    make_link(test, "/tmp", "@/out");
    struct answer answer =
        call(test, "{\"command\":\"create\",\"path\":\"@/out/f\",\"file_text\":\"x\"}");
    assert_string_equal(answer.code, "PATH_OUTSIDE_ROOTS");
    answer_free(&answer);
}

/* ---- str_replace */

static void test_str_replace(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "one\ntwo\nthree\n");
    ok(test, REPLACE("@/f", "two", "2\\n\\t2"),
       "The file @/f has been edited. " CAT "a snippet of @/f:\n     1  one\n     2  2\n     3 "
       "         2\n     4  three\n     5  \n" REVIEW);
    has(test, "@/f", "one\n2\n\t2\nthree\n");
    ok(test, "{\"command\":\"str_replace\",\"path\":\"@/f\",\"old_str\":\"2\\n\\t2\\n\"}",
       "The file @/f has been edited. " CAT
       "a snippet of @/f:\n     1  one\n     2  three\n     3  \n" REVIEW);
    has(test, "@/f", "one\nthree\n");
    fails(test, REPLACE("@/f", "four", ""), "TOOL_FAILED",
          "No replacement was performed, old_str `four` did not appear verbatim in @/f.");
    fails(test, REPLACE("@/f", "", "x"), "TOOL_FAILED",
          "No replacement was performed, old_str must not be empty.");
    put(test, "@/g", "a a\nb\na\n");
    fails(test, REPLACE("@/g", "a", "x"), "TOOL_FAILED",
          "No replacement was performed. Multiple occurrences of old_str `a` in lines [1,1,3]. "
          "Please ensure it is unique");
    put(test, "@/h", "x\ny\nx\ny\n");
    fails(
        test, REPLACE("@/h", "x\\ny", "z"), "TOOL_FAILED",
        "No replacement was performed. Multiple occurrences of old_str `x\ny` in lines [1,3]. "
        "Please ensure it is unique");
    put(test, "@/o", "aaa");
    ok(test, REPLACE("@/o", "aa", "b"),
       "The file @/o has been edited. " CAT "a snippet of @/o:\n     1  ba\n" REVIEW);
    ok(test, REPLACE("@/o", "ba", "ba"),
       "The file @/o has been edited. " CAT "a snippet of @/o:\n     1  ba\n" REVIEW);
    put(test, "@/d", "x");
    works(test, REPLACE("@/d", "x", "$& $1 $$ $`"));
    has(test, "@/d", "$& $1 $$ $`");
    fails(test, REPLACE("@/nope", "x", "y"), "NOT_FOUND",
          "The path @/nope does not exist. Please provide a valid path.");
}

static void test_snippet(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16");
    ok(test, REPLACE("@/f", "8", "eight\\nacht"),
       "The file @/f has been edited. " CAT
       "a snippet of @/f:\n     4  4\n     5  5\n     6  6\n     7  7\n     8  eight\n"
       "     9  acht\n    10  9\n    11  10\n    12  11\n    13  12\n" REVIEW);
    put(test, "@/g", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16");
    ok(test, REPLACE("@/g", "2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n", "two\\n"),
       "The file @/g has been edited. " CAT "a snippet of @/g:\n     1  1\n     2  two\n     3 "
       " 11\n     4  12\n     5  13\n     6  14\n"
       "     7  15\n" REVIEW);
    /* Nothing left: around the cut. */
    put(test, "@/h", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16");
    ok(test, REPLACE("@/h", "6\\n7\\n8\\n9\\n10\\n11\\n12\\n", ""),
       "The file @/h has been edited. " CAT
       "a snippet of @/h:\n     2  2\n     3  3\n     4  4\n     5  5\n     6  13\n     7  14\n"
       "     8  15\n     9  16\n" REVIEW);
}

static void test_bytes_are_kept(void **state)
{
    struct test *test = *state;
    put(test, "@/f",
        "\xef\xbb\xbf"
        "one\r\n\ttwo\r\nthree");
    ok(test, VIEW("@/f"), CAT "@/f:\n     1  one\r\n     2          two\r\n     3  three\n");
    fails(test, REPLACE("@/f", "one\\n", "x"), "TOOL_FAILED",
          "No replacement was performed, old_str `one\n` did not appear verbatim in @/f.");
    works(test, REPLACE("@/f", "two", "zwei"));
    has(test, "@/f",
        "\xef\xbb\xbf"
        "one\r\n\tzwei\r\nthree");
    works(test,
          "{\"command\":\"insert\",\"path\":\"@/f\",\"insert_line\":0,\"new_str\":\"0\"}");
    has(test, "@/f",
        "\xef\xbb\xbf"
        "0\none\r\n\tzwei\r\nthree");
    works(test,
          "{\"command\":\"regex_replace\",\"path\":\"@/f\",\"pattern\":\"^o\",\"new_str\":"
          "\"O\"}");
    has(test, "@/f",
        "\xef\xbb\xbf"
        "0\nOne\r\n\tzwei\r\nthree");
    fails(
        test, REPLACE("@/f", "        zwei", "x"), "TOOL_FAILED",
        "No replacement was performed, old_str `        zwei` did not appear verbatim in @/f.");
}

static void test_not_text(void **state)
{
    struct test *test = *state;
    put_bytes(test, "@/nul", "a\0b\n", 4);
    ok(test, VIEW("@/nul"),
       "Warning: @/nul cannot be edited: it holds NUL bytes, so it is binary or not UTF-8 "
       "text. "
       "Bytes that are no text are shown as U+FFFD.\n" CAT "@/nul:\n     1  a\xef\xbf\xbd"
       "b\n     2  \n");
    put(test, "@/latin", "caf\xe9\n");
    ok(test, VIEW("@/latin"),
       "Warning: @/latin cannot be edited: it holds bytes that are not UTF-8 text. Bytes that "
       "are no text are shown as U+FFFD.\n" CAT
       "@/latin:\n     1  caf\xef\xbf\xbd\n     2  \n");
    put_bytes(test, "@/wide",
              "\xff\xfe"
              "a\0\n\0",
              6);
    struct answer answer = call(test, VIEW("@/wide"));
    assert_non_null(strstr(answer.text, "cannot be edited: it is UTF-16 text, not UTF-8."));
    answer_free(&answer);
    fails(test, REPLACE("@/nul", "a", "x"), "NOT_TEXT",
          "The file @/nul cannot be edited: it holds NUL bytes, so it is binary or not UTF-8 "
          "text. Only UTF-8 text is edited, so that nothing in it is destroyed.");
    fails(
        test, REPLACE("@/latin", "c", "x"), "NOT_TEXT",
        "The file @/latin cannot be edited: it holds bytes that are not UTF-8 text. Only UTF-8 "
        "text is edited, so that nothing in it is destroyed.");
    fails(test,
          "{\"command\":\"insert\",\"path\":\"@/wide\",\"insert_line\":0,\"new_str\":\"x\"}",
          "NOT_TEXT",
          "The file @/wide cannot be edited: it is UTF-16 text, not UTF-8. Only UTF-8 text is "
          "edited, so that nothing in it is destroyed.");
    answer = call(test, "{\"command\":\"regex_replace\",\"path\":\"@/nul\",\"pattern\":\"a\","
                        "\"new_str\":\"b\"}");
    assert_string_equal(answer.code, "NOT_TEXT");
    answer_free(&answer);
    has_bytes(test, "@/nul", "a\0b\n", 4);
    has(test, "@/latin", "caf\xe9\n");
}

/* ---- insert */

#define INSERT(path, line, text)                                                               \
    "{\"command\":\"insert\",\"path\":\"" path "\",\"insert_line\":" #line                     \
    ",\"new_str\":\"" text "\"}"

static void test_insert(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "a\nb\n");
    ok(test, INSERT("@/f", 2, "c"),
       "The file @/f has been edited. " CAT "a snippet of the edited file:\n     1  a\n     2  "
       "b\n     3  c\n     4  \n" REVIEW_INSERT);
    has(test, "@/f", "a\nb\nc\n");
    put(test, "@/f", "a\nb\n");
    works(test, INSERT("@/f", 3, "c"));
    has(test, "@/f", "a\nb\n\nc");
    put(test, "@/f", "a\nb");
    works(test, INSERT("@/f", 0, "x\\n"));
    has(test, "@/f", "x\n\na\nb");
    works(test, INSERT("@/f", 1, ""));
    has(test, "@/f", "x\n\n\na\nb");
    put(test, "@/e", "");
    ok(test, INSERT("@/e", 1, "x"),
       "The file @/e has been edited. " CAT
       "a snippet of the edited file:\n     1  x\n" REVIEW_INSERT);
    has(test, "@/e", "x");
    put(test, "@/e", "");
    works(test, INSERT("@/e", 0, "x\\ny"));
    has(test, "@/e", "x\ny");
    fails(test, INSERT("@/e", 3, "z"), "INVALID_INPUT",
          "Invalid `insert_line` parameter: 3. It should be within the range of lines of the "
          "file: [0, 2]");
    fails(test, INSERT("@/e", -1, "z"), "INVALID_INPUT",
          "Invalid `insert_line` parameter: -1. It should be within the range of lines of the "
          "file: [0, 2]");
    put(test, "@/l", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12");
    ok(test, INSERT("@/l", 6, "x\\ny"),
       "The file @/l has been edited. " CAT
       "a snippet of the edited file:\n     3  3\n     4  4\n     5  5\n     6  6\n     7  x\n"
       "     8  y\n     9  7\n    10  8\n    11  9\n    12  10\n" REVIEW_INSERT);
    fails(test, INSERT("@/nope", 0, "z"), "NOT_FOUND",
          "The path @/nope does not exist. Please provide a valid path.");
}

/* ---- regex_replace */

#define REGEX(path, pattern, text)                                                             \
    "{\"command\":\"regex_replace\",\"path\":\"" path "\",\"pattern\":\"" pattern              \
    "\",\"new_str\":\"" text "\"}"

static void test_regex(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "int a;\nint b;\n");
    ok(test, REGEX("@/f", "int (\\\\w);", "long $1 = 0;"),
       "The file @/f has been edited, 2 replacements made. " CAT
       "a snippet of @/f:\n     1  long a = 0;\n     2  long b = 0;\n     3  \n" REVIEW);
    has(test, "@/f", "long a = 0;\nlong b = 0;\n");
    ok(test,
       "{\"command\":\"regex_replace\",\"path\":\"@/f\",\"pattern\":\"(?<n>long) (.)\","
       "\"new_str\":\"$2:${n}:$$:$&:$3:$:${2}0:$20\",\"count\":1}",
       "The file @/f has been edited, 1 replacement made. " CAT
       "a snippet of @/f:\n     1  a:long:$:long a:$3:$:a0:a0 = 0;\n     2  long b = 0;\n"
       "     3  \n" REVIEW);
    put(test, "@/e", "abc\n\xc3\xa9");
    works(test, REGEX("@/e", "x*", "-"));
    has(test, "@/e", "-a-b-c-\n-\xc3\xa9-");
    put(test, "@/m", "a\nb\n");
    works(test, REGEX("@/m", "$", "!"));
    has(test, "@/m", "a!\nb!\n!");
    fails(test, REGEX("@/m", "z", "!"), "TOOL_FAILED",
          "No replacement was performed, pattern `z` did not match in @/m.");
    struct answer answer = call(test, REGEX("@/m", "(", "!"));
    assert_string_equal(answer.code, "INVALID_INPUT");
    assert_non_null(strstr(answer.message, "Invalid `pattern`: "));
    answer_free(&answer);
    char many[3000];
    memset(many, 'a', sizeof(many));
    put_bytes(test, "@/slow", many, sizeof(many));
    answer = call(test, REGEX("@/slow", "(a+)+[bc]", "!"));
    assert_string_equal(answer.code, "TOOL_FAILED");
    assert_non_null(strstr(answer.message, "too many steps"));
    answer_free(&answer);
    has_bytes(test, "@/slow", many, sizeof(many));
    answer = call(test, "{\"command\":\"regex_replace\",\"path\":\"@/m\",\"pattern\":\"a\","
                        "\"new_str\":\"\",\"count\":0}");
    assert_string_equal(answer.code, "INVALID_INPUT");
    answer_free(&answer);
}

static int setup_hurried(void **state)
{
    static const char *const hurried[] = {"plugins=file_editor", "limits.call_timeout=1s",
                                          NULL};
    struct test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    harness_open(&test->harness, hurried);
    (void)snprintf(test->root, sizeof(test->root), "%s/files", test->harness.dir);
    *state = test;
    return 0;
}

/* Below the limit of steps wherever it begins, and still minutes for the whole file. */
static void test_regex_in_time(void **state)
{
    enum { SIZE = 1000000, LINE = 300 };
    struct test *test = *state;
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (size_t i = 0; i < SIZE; i++) {
        text[i] = i % LINE == LINE - 1 ? '\n' : 'a';
    }
    put_bytes(test, "@/f", text, SIZE);
    time_t began = time(NULL);
    struct answer answer = call(test, REGEX("@/f", "a*a*a*[bc]", "!"));
    assert_string_equal(answer.code, "TIMEOUT");
    answer_free(&answer);
    harness_reopen(&test->harness); /* waits for what still runs */
    assert_true(time(NULL) - began < 20);
    has_bytes(test, "@/f", text, SIZE);
    free(text);
}

/* ---- revisions */

static void test_revisions(void **state)
{
    struct test *test = *state;
    struct answer made =
        call(test, "{\"command\":\"create\",\"path\":\"@/f\",\"file_text\":\"a\"}");
    assert_int_equal(strlen(made.revision_text), 32);
    struct answer seen = call(test, VIEW("@/f"));
    assert_string_equal(seen.revision_text, made.revision_text);
    char args[TEXT_MAX];
    (void)snprintf(args, sizeof(args),
                   "{\"command\":\"str_replace\",\"path\":\"@/f\",\"old_str\":\"a\","
                   "\"new_str\":\"b\",\"expectedRevision\":\"%s\"}",
                   seen.revision_text);
    struct answer edited = call(test, args);
    assert_int_equal(edited.rc, NG_OK);
    assert_string_not_equal(edited.revision_text, made.revision_text);
    struct answer stale = call(test, args);
    assert_string_equal(stale.code, "CONFLICT");
    assert_non_null(strstr(stale.details, edited.revision_text));
    assert_non_null(strstr(stale.details, "currentRevision"));
    has(test, "@/f", "b");
    /* A change from outside moves it; the same bytes have the same one. */
    put(test, "@/f", "a");
    struct answer outside = call(test, VIEW("@/f"));
    assert_string_equal(outside.revision_text, made.revision_text);
    answer_free(&made);
    answer_free(&seen);
    answer_free(&edited);
    answer_free(&stale);
    answer_free(&outside);
}

/* ---- sizes */

static void test_sizes(void **state)
{
    struct test *test = *state;
    size_t size = 1048577;
    char *data = malloc(size + 1);
    assert_non_null(data);
    memset(data, 'x', size);
    put_bytes(test, "@/big", data, size);
    const char *message =
        "File size (1048577 bytes) exceeds maximum allowed size (1048576 bytes)";
    fails(test, VIEW("@/big"), "TOO_LARGE", message);
    fails(test, REPLACE("@/big", "x", "y"), "TOO_LARGE", message);
    fails(test, INSERT("@/big", 0, "y"), "TOO_LARGE", message);
    put_bytes(test, "@/full", data, size - 1);
    fails(test, INSERT("@/full", 0, ""), "TOO_LARGE", message);
    has_bytes(test, "@/full", data, size - 1);
    char *args = malloc(size + 1000);
    assert_non_null(args);
    data[size] = '\0';
    (void)snprintf(args, size + 1000,
                   "{\"command\":\"create\",\"path\":\"%s/new\",\"file_text\":\"%s\"}",
                   test->root, data);
    struct answer answer = harness_call(&test->harness, "fileEditor", args);
    assert_string_equal(answer.code, "TOO_LARGE");
    assert_string_equal(answer.message, message);
    answer_free(&answer);
    assert_false(exists(test, "@/new"));
    free(args);
    free(data);
}

static void test_large_file_by_range(void **state)
{
    struct test *test = *state;
    char real[TEXT_MAX];
    expand(test, "@/large", real, sizeof(real));
    FILE *file = fopen(real, "w");
    assert_non_null(file);
    for (int i = 1; i <= 400000; i++) {
        (void)fprintf(file, "line %d of a large file, with some words in it\n", i);
    }
    assert_int_equal(fclose(file), 0);
    ok(test, "{\"command\":\"view\",\"path\":\"@/large\",\"view_range\":[200000,200001]}",
       CAT "@/large:\n200000  line 200000 of a large file, with some words in it\n"
           "200001  line 200001 of a large file, with some words in it\n");
    ok(test, "{\"command\":\"view\",\"path\":\"@/large\",\"view_range\":[400000,-1]}",
       CAT "@/large:\n400000  line 400000 of a large file, with some words in it\n400001  \n");
    fails(test, "{\"command\":\"view\",\"path\":\"@/large\",\"view_range\":[400002,-1]}",
          "INVALID_INPUT",
          "Invalid `view_range`: [400002, -1]. Its first element `400002` should be within the "
          "range of lines of the file: [1, 400001]");
    /* Over limits.result: the lines that fit are named, and do. */
    struct answer answer =
        call(test, "{\"command\":\"view\",\"path\":\"@/large\",\"view_range\":[1,-1]}");
    assert_string_equal(answer.code, "TOO_LARGE");
    const char *fits = strstr(answer.message, "view [1, ");
    assert_non_null(fits);
    char args[TEXT_MAX];
    long last = strtol(fits + strlen("view [1, "), NULL, 10);
    assert_true(last > 100000);
    (void)snprintf(args, sizeof(args),
                   "{\"command\":\"view\",\"path\":\"@/large\",\"view_range\":[1,%ld]}", last);
    answer_free(&answer);
    answer = call(test, args);
    assert_int_equal(answer.rc, NG_OK);
    assert_int_equal(strlen(answer.revision_text), 32);
    answer_free(&answer);
}

/* ---- undo */

#define UNDO(path) "{\"command\":\"undo_edit\",\"path\":\"" path "\"}"

static void test_undo(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "x\ty\n");
    works(test, REPLACE("@/f", "y", "z"));
    ok(test, UNDO("@/f"),
       "Last edit to @/f undone successfully. " CAT "@/f:\n     1  x        y\n     2  \n");
    has(test, "@/f", "x\ty\n");
    fails(test, UNDO("@/f"), "NO_HISTORY", "No edit history found for @/f.");
    works(test, "{\"command\":\"create\",\"path\":\"@/c\",\"file_text\":\"one\\n\"}");
    works(test, REPLACE("@/c", "one", "two"));
    works(test, UNDO("@/c"));
    has(test, "@/c", "one\n");
    ok(test, UNDO("@/c"),
       "Last edit to @/c undone successfully. It had created the file, which is removed.");
    assert_false(exists(test, "@/c"));
    fails(test, UNDO("@/c"), "NOT_FOUND",
          "The path @/c does not exist. Please provide a valid path.");
    fails(test, UNDO("@"), "NO_HISTORY", "No edit history found for @.");
    fails(test, UNDO("@/nope"), "NOT_FOUND",
          "The path @/nope does not exist. Please provide a valid path.");
    /* Made anew, it has a new history. */
    works(test, "{\"command\":\"create\",\"path\":\"@/c\",\"file_text\":\"new\"}");
    works(test, UNDO("@/c"));
    assert_false(exists(test, "@/c"));
    assert_false(exists(test, "@/c"));
}

static void test_undo_depth(void **state)
{
    struct test *test = *state;
    char args[TEXT_MAX];
    char text[32];
    put(test, "@/f", "E0");
    for (int i = 0; i < 12; i++) {
        (void)snprintf(args, sizeof(args),
                       "{\"command\":\"str_replace\",\"path\":\"@/f\",\"old_str\":\"E%d\","
                       "\"new_str\":\"E%d\"}",
                       i, i + 1);
        works(test, args);
    }
    for (int i = 11; i >= 2; i--) {
        works(test, UNDO("@//f"));
        (void)snprintf(text, sizeof(text), "E%d", i);
        has(test, "@/f", text);
    }
    fails(test, UNDO("@/f"), "NO_HISTORY", "No edit history found for @/f.");
}

static void test_undo_of_every_edit(void **state)
{
    struct test *test = *state;
    const char *texts[] = {"", "a", "\xc3\xa9\xc3\xa8\n", "a\nb\nc\nd\n", "a\r\n\r\n\tb"};
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        put(test, "@/f", texts[i]);
        works(test, INSERT("@/f", 0, "\xc3\xa8"));
        works(test, INSERT("@/f", 1, "\\t"));
        works(test, REGEX("@/f", ".", "$&$&"));
        works(test, UNDO("@/f"));
        works(test, UNDO("@/f"));
        works(test, UNDO("@/f"));
        has(test, "@/f", texts[i]);
    }
}

static void test_undo_refuses(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "a");
    works(test, REPLACE("@/f", "a", "b"));
    put(test, "@/f", "from outside");
    struct answer answer = call(test, UNDO("@/f"));
    assert_string_equal(answer.code, "CONFLICT");
    assert_non_null(strstr(answer.details, "currentRevision"));
    answer_free(&answer);
    has(test, "@/f", "from outside");
    /* Back at what the edit left, it can be undone. */
    put(test, "@/f", "b");
    works(test, UNDO("@/f"));
    has(test, "@/f", "a");
}

static void test_undo_after_restart(void **state)
{
    struct test *test = *state;
    works(test, "{\"command\":\"create\",\"path\":\"@/f\",\"file_text\":\"one\\n\"}");
    works(test, REPLACE("@/f", "one", "two"));
    works(test, REPLACE("@/f", "two", "three"));
    harness_reopen(&test->harness);
    works(test, UNDO("@/f"));
    has(test, "@/f", "two\n");
    works(test, UNDO("@/f"));
    harness_reopen(&test->harness);
    works(test, UNDO("@/f"));
    assert_false(exists(test, "@/f"));
}

/* ---- copy, move */

#define TRANSFER(command, from, to)                                                            \
    "{\"command\":\"" command "\",\"path\":\"" from "\",\"destination\":\"" to "\"}"

static void test_copy(void **state)
{
    struct test *test = *state;
    char real[TEXT_MAX];
    struct stat st;
    put(test, "@/f", "text\n");
    expand(test, "@/f", real, sizeof(real));
    assert_int_equal(chmod(real, 0751), 0);
    ok(test, TRANSFER("copy", "@/f", "@/x/g"), "File copied successfully from: @/f to: @/x/g");
    has(test, "@/f", "text\n");
    has(test, "@/x/g", "text\n");
    expand(test, "@/x/g", real, sizeof(real));
    assert_int_equal(stat(real, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751);
    fails(test, TRANSFER("copy", "@/f", "@/x/g"), "FILE_EXISTS",
          "File already exists at: @/x/g. Cannot overwrite files using command `copy`.");
    fails(test, TRANSFER("copy", "@/f", "@/x"), "FILE_EXISTS",
          "File already exists at: @/x. Cannot overwrite files using command `copy`.");
    fails(test, TRANSFER("copy", "@/f", "@/f"), "FILE_EXISTS",
          "File already exists at: @/f. Cannot overwrite files using command `copy`.");
    fails(test, TRANSFER("copy", "@/nope", "@/y"), "NOT_FOUND",
          "The path @/nope does not exist. Please provide a valid path.");
    fails(test, TRANSFER("copy", "@/x", "@/y"), "TOOL_FAILED",
          "The path @/x is a directory and only the `view` command can be used on directories");
    fails(test, TRANSFER("copy", "@/f", "/etc/y"), "PATH_OUTSIDE_ROOTS",
          "The path /etc/y is outside the roots: @.");
    fails(test, TRANSFER("copy", "@/f", "@/../y"), "PATH_TRAVERSAL",
          "Invalid path: path traversal is not allowed");
    works(test, UNDO("@/x/g"));
    assert_false(exists(test, "@/x/g"));
    has(test, "@/f", "text\n");
}

static void test_move(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "one");
    works(test, REPLACE("@/f", "one", "two"));
    ok(test, TRANSFER("move", "@/f", "@/x/g"), "File moved successfully from: @/f to: @/x/g");
    assert_false(exists(test, "@/f"));
    has(test, "@/x/g", "two");
    works(test, REPLACE("@/x/g", "two", "three"));
    works(test, UNDO("@/x/g"));
    has(test, "@/x/g", "two");
    ok(test, UNDO("@/x/g"),
       "Last edit to @/x/g undone successfully. It had moved the file, which is back at: @/f");
    assert_false(exists(test, "@/x/g"));
    has(test, "@/f", "two");
    works(test, UNDO("@/f"));
    has(test, "@/f", "one");
    fails(test, UNDO("@/f"), "NO_HISTORY", "No edit history found for @/f.");
    /* Never over a file, also when it is undone. */
    put(test, "@/g", "g");
    fails(test, TRANSFER("move", "@/f", "@/g"), "FILE_EXISTS",
          "File already exists at: @/g. Cannot overwrite files using command `move`.");
    works(test, TRANSFER("move", "@/f", "@/h"));
    put(test, "@/f", "new");
    struct answer answer = call(test, UNDO("@/h"));
    assert_string_equal(answer.code, "CONFLICT");
    answer_free(&answer);
    has(test, "@/h", "one");
    has(test, "@/f", "new");
}

/* ---- links and roots */

static void test_links(void **state)
{
    struct test *test = *state;
    make_dir(test, "@/dir");
    put(test, "@/dir/f", "one");
    make_link(test, "dir/f", "@/relative");
    make_link(test, "@/dir/f", "@/absolute");
    make_link(test, "@/dir", "@/folder");
    make_link(test, "/etc/passwd", "@/outside");
    make_link(test, "../../../../../../etc/passwd", "@/climbs");
    make_link(test, "loop", "@/loop");
    works(test, REPLACE("@/relative", "one", "two"));
    works(test, REPLACE("@/absolute", "two", "three"));
    works(test, REPLACE("@/folder/f", "three", "four"));
    has(test, "@/dir/f", "four");
    /* One history for all spellings. */
    works(test, UNDO("@/dir/f"));
    works(test, UNDO("@/relative"));
    works(test, UNDO("@/folder/f"));
    has(test, "@/dir/f", "one");
    char real[TEXT_MAX];
    struct stat st;
    expand(test, "@/absolute", real, sizeof(real));
    assert_int_equal(lstat(real, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    fails(test, VIEW("@/outside"), "PATH_OUTSIDE_ROOTS",
          "The path @/outside is outside the roots: @.");
    fails(test, VIEW("@/climbs"), "PATH_OUTSIDE_ROOTS",
          "The path @/climbs is outside the roots: @.");
    fails(test, VIEW("@/loop"), "TOOL_FAILED",
          "Cannot open @/loop: it goes through too many links; name the file itself.");
}

static void test_chain_of_links(void **state)
{
    struct test *test = *state;
    char from[64];
    char to[64];
    put(test, "@/l0", "end");
    for (int i = 1; i <= 41; i++) {
        (void)snprintf(from, sizeof(from), "@/l%d", i);
        (void)snprintf(to, sizeof(to), i % 2 == 0 ? "l%d" : "@/l%d", i - 1);
        make_link(test, to, from);
    }
    ok(test, VIEW("@/l40"), CAT "@/l40:\n     1  end\n");
    fails(test, VIEW("@/l41"), "TOOL_FAILED",
          "Cannot open @/l41: it goes through too many links; name the file itself.");
}

static void test_between_roots(void **state)
{
    struct test *test = *state;
    char path[TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s/f", test->other);
    put(test, path, "b");
    make_link(test, path, "@/absolute");
    make_link(test, "../b/f", "@/relative");
    make_link(test, "../c", "@/outside");
    works(test, REPLACE("@/absolute", "b", "c"));
    works(test, REPLACE("@/relative", "c", "d"));
    has(test, path, "d");
    char message[TEXT_MAX];
    (void)snprintf(message, sizeof(message), "The path @/outside is outside the roots: @, %s.",
                   test->other);
    fails(test, VIEW("@/outside"), "PATH_OUTSIDE_ROOTS", message);
    char args[TEXT_MAX];
    (void)snprintf(args, sizeof(args), TRANSFER("move", "@/absolute", "%s/g"), test->other);
    works(test, args);
    assert_false(exists(test, path));
}

static void test_mode_is_kept(void **state)
{
    struct test *test = *state;
    char real[TEXT_MAX];
    struct stat before;
    struct stat after;
    put(test, "@/f", "one");
    expand(test, "@/f", real, sizeof(real));
    assert_int_equal(chmod(real, 0640), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(real, 12345, 23456), 0);
    }
    assert_int_equal(stat(real, &before), 0);
    works(test, REPLACE("@/f", "one", "two"));
    works(test, UNDO("@/f"));
    assert_int_equal(stat(real, &after), 0);
    assert_int_equal(before.st_mode, after.st_mode);
    assert_int_equal(before.st_uid, after.st_uid);
    assert_int_equal(before.st_gid, after.st_gid);
}

static void test_special_files(void **state)
{
    struct test *test = *state;
    char real[TEXT_MAX];
    expand(test, "@/fifo", real, sizeof(real));
    assert_int_equal(mkfifo(real, 0600), 0);
    const char *message = "The path @/fifo is not a regular file (a device, pipe or socket). "
                          "Choose another path.";
    fails(test, VIEW("@/fifo"), "TOOL_FAILED", message);
    fails(test, REPLACE("@/fifo", "a", "b"), "TOOL_FAILED", message);
    char name[400];
    memset(name, 'n', 300);
    name[300] = '\0';
    char args[TEXT_MAX];
    (void)snprintf(args, sizeof(args), VIEW("@/%s"), name);
    struct answer answer = call(test, args);
    assert_string_equal(answer.code, "INVALID_INPUT");
    assert_non_null(strstr(answer.message, "too long"));
    answer_free(&answer);
}

/* ---- who may */

struct ended {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void call_ended(struct call *made, void *user)
{
    struct ended *ended = user;
    (void)made;
    (void)pthread_mutex_lock(&ended->lock);
    ended->done = true;
    (void)pthread_cond_signal(&ended->wake);
    (void)pthread_mutex_unlock(&ended->lock);
}

/* The code of a call by an agent of this mode. */
static const char *code_in_mode(struct test *test, enum ng_mode mode, const char *args)
{
    struct ended ended = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    char real[TEXT_MAX];
    expand(test, args, real, sizeof(real));
    struct call *made = call_new(test->harness.gateway);
    assert_non_null(made);
    assert_int_equal(
        call_set_caller(made, ng_str_of("a"), ng_str_of(NULL), NG_ROLE_WRITER, mode), NG_OK);
    made->tool_name = ng_str_of("fileEditor");
    made->args_text = ng_str_of(real);
    made->done = call_ended;
    made->done_user = &ended;
    if (dispatch(made) == NG_PENDING) {
        (void)pthread_mutex_lock(&ended.lock);
        while (!ended.done) {
            (void)pthread_cond_wait(&ended.wake, &ended.lock);
        }
        (void)pthread_mutex_unlock(&ended.lock);
    }
    const char *code = made->result.code; /* static text */
    call_unref(made);
    return code;
}

static void test_notebooks_in_agent_mode_only(void **state)
{
    struct test *test = *state;
    put(test, "@/n.ipynb", "{}");
    make_link(test, "n.ipynb", "@/link");
    const char *refused[] = {
        REPLACE("@/n.ipynb", "{}", "[]"),
        REPLACE("@/link", "{}", "[]"),
        "{\"command\":\"create\",\"path\":\"@/m.IPYNB\",\"file_text\":\"{}\"}",
        TRANSFER("move", "@/n.ipynb", "@/x"),
        TRANSFER("copy", "@/n.ipynb", "@/x"),
        UNDO("@/n.ipynb"),
    };
    for (size_t i = 0; i < NG_COUNT(refused); i++) {
        assert_string_equal(code_in_mode(test, NG_MODE_EDIT, refused[i]), "MODE_FORBIDDEN");
    }
    has(test, "@/n.ipynb", "{}");
    assert_string_equal(code_in_mode(test, NG_MODE_ASK, VIEW("@/n.ipynb")), "ok");
    assert_string_equal(code_in_mode(test, NG_MODE_ASK, UNDO("@/x")), "MODE_FORBIDDEN");
    works(test, REPLACE("@/n.ipynb", "{}", "[]"));
}

/* ---- at once */

#define WRITERS 8
#define EDITS 20

struct writer {
    struct test *test;
    int number;
    int failed;
};

static void *write_lines(void *user)
{
    struct writer *writer = user;
    char args[TEXT_MAX];
    char real[TEXT_MAX];
    for (int i = 0; i < EDITS; i++) {
        (void)snprintf(args, sizeof(args), INSERT("@/f", 0, "writer %d edit %d."),
                       writer->number, i);
        expand(writer->test, args, real, sizeof(real));
        struct answer answer = harness_call(&writer->test->harness, "fileEditor", real);
        writer->failed += answer.rc != NG_OK;
        answer_free(&answer);
    }
    return NULL;
}

static char *slurp(struct test *test, const char *path)
{
    char real[TEXT_MAX];
    char *text = calloc(1, 1 << 20);
    expand(test, path, real, sizeof(real));
    int fd = open(real, O_RDONLY | O_CLOEXEC);
    assert_non_null(text);
    assert_true(fd >= 0);
    assert_true(read(fd, text, (1 << 20) - 1) >= 0);
    (void)close(fd);
    return text;
}

static void run_writers(struct test *test)
{
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.test = test, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(writers[i].failed, 0);
    }
    char *text = slurp(test, "@/f");
    for (int i = 0; i < WRITERS * EDITS; i++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "writer %d edit %d.\n", i / EDITS, i % EDITS);
        assert_non_null(strstr(text, line));
    }
    free(text);
}

static void test_all_edits_survive(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "\n");
    run_writers(test);
}

static void *create_one(void *user)
{
    struct writer *writer = user;
    struct answer answer =
        call(writer->test, "{\"command\":\"create\",\"path\":\"@/one\",\"file_text\":\"x\"}");
    writer->failed = strcmp(answer.code, "FILE_EXISTS") == 0 ? 1 : answer.rc == NG_OK ? 0 : 2;
    answer_free(&answer);
    return NULL;
}

static void test_one_creates(void **state)
{
    struct test *test = *state;
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    int made = 0;
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.test = test};
        assert_int_equal(pthread_create(&threads[i], NULL, create_one, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_not_equal(writers[i].failed, 2);
        made += writers[i].failed == 0;
    }
    assert_int_equal(made, 1);
}

static void *move_to_and_fro(void *user)
{
    struct writer *writer = user;
    for (int i = 0; i < EDITS; i++) {
        bool there = (i + writer->number) % 2 == 0;
        struct answer answer = call(writer->test, there ? TRANSFER("move", "@/a", "@/b")
                                                        : TRANSFER("move", "@/b", "@/a"));
        bool expected = answer.rc == NG_OK || strcmp(answer.code, "NOT_FOUND") == 0 ||
                        strcmp(answer.code, "FILE_EXISTS") == 0;
        writer->failed += !expected;
        answer_free(&answer);
    }
    return NULL;
}

static void test_moves_to_and_fro(void **state)
{
    struct test *test = *state;
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    put(test, "@/a", "x");
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.test = test, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, move_to_and_fro, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(writers[i].failed, 0);
    }
    assert_true(exists(test, "@/a") != exists(test, "@/b"));
}

/* Another program that saves by rename, one number after the other. */
struct outsider {
    struct test *test;
    atomic_bool stop;
    int saves;
};

static void *save_outside(void *user)
{
    struct outsider *outsider = user;
    char real[TEXT_MAX];
    char temp[TEXT_MAX];
    expand(outsider->test, "@/g", real, sizeof(real));
    expand(outsider->test, "@/outside", temp, sizeof(temp));
    for (int i = 0; !atomic_load(&outsider->stop); i++) {
        FILE *file = fopen(temp, "w");
        assert_non_null(file);
        (void)fprintf(file, "save %d\n", i);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(rename(temp, real), 0);
        outsider->saves = i;
        (void)usleep(4000); /* a program that never pauses leaves no room for an edit */
    }
    return NULL;
}

static void test_another_program_saves(void **state)
{
    struct test *test = *state;
    struct outsider outsider = {.test = test};
    pthread_t thread;
    int edited = 0;
    put(test, "@/g", "save -1\n");
    atomic_init(&outsider.stop, false);
    assert_int_equal(pthread_create(&thread, NULL, save_outside, &outsider), 0);
    for (int i = 0; i < 50; i++) {
        struct answer answer = call(test, INSERT("@/g", 1, "ours"));
        assert_true(answer.rc == NG_OK || strcmp(answer.code, "CONFLICT") == 0);
        edited += answer.rc == NG_OK;
        assert_true(answer.rc != NG_OK || strstr(answer.text, "     1  save ") != NULL);
        answer_free(&answer);
    }
    atomic_store(&outsider.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* The other program's last save is in the file, whatever we did meanwhile. */
    char *text = slurp(test, "@/g");
    char last[64];
    (void)snprintf(last, sizeof(last), "save %d\n", outsider.saves);
    assert_int_equal(strncmp(text, last, strlen(last)), 0);
    assert_true(edited > 0);
    free(text);
    char command[TEXT_MAX + 64];
    expand(test, "test -z \"$(find @ -name '.notegate-*')\"", command, sizeof(command));
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_view_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_view_range_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_parameters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_in_a_link, setup, teardown),
        cmocka_unit_test_setup_teardown(test_str_replace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snippet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_insert, setup, teardown),
        cmocka_unit_test_setup_teardown(test_regex, setup, teardown),
        cmocka_unit_test_setup_teardown(test_regex_in_time, setup_hurried, teardown),
        cmocka_unit_test_setup_teardown(test_revisions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_file_by_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_depth, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_of_every_edit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_after_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_move, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain_of_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_between_roots, setup_two, teardown),
        cmocka_unit_test_setup_teardown(test_mode_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_special_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_notebooks_in_agent_mode_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_edits_survive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_creates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moves_to_and_fro, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_program_saves, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
