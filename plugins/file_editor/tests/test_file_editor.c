/* SPDX-License-Identifier: MIT */
/* test_file_editor.c - viewing and creating: texts, ranges, folders, paths, and missing files.
 */
#include "test_file_editor_rig.h"

#include <string.h>

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
                        "\"insert_line\":\"one\"}");
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
          "INVALID_INPUT",
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
