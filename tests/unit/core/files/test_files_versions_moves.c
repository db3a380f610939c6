/* SPDX-License-Identifier: MIT */
/* test_files_versions_moves.c - the versions that moves, copies, groups and folders add. */
#include "test_files_rig.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGS_SIZE (4 * PATH_SIZE)

static int setup_group(void **state)
{
    int rc = setup(state);
    add_group_tools(*state);
    return rc;
}

static void drop(struct harness *harness, const char *name)
{
    char path[PATH_SIZE];
    assert_int_equal(unlink(in_root(harness, path, name).data), 0);
}

static void make_folder(struct harness *harness, const char *name)
{
    char path[PATH_SIZE];
    assert_int_equal(mkdir(in_root(harness, path, name).data, 0755), 0);
}

/* A tool of the group plugin; its arguments with ' for " and ~ for the root. */
static void group_works(struct harness *harness, const char *tool, const char *arguments)
{
    char args[ARGS_SIZE];
    size_t len = 0;
    for (const char *from = arguments; *from != '\0'; from++) {
        assert_true(len + PATH_SIZE < sizeof(args));
        if (*from == '~') {
            len += (size_t)snprintf(args + len, sizeof(args) - len, "%s/files", harness->dir);
        } else {
            args[len++] = *from;
            args[len - 1] = args[len - 1] == '\'' ? '"' : args[len - 1];
        }
    }
    args[len] = '\0';
    struct answer answer = harness_call(harness, tool, args);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s", arguments, answer.message);
    }
    answer_free(&answer);
}

/* ---- moves and copies */

static void test_moves(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    transfers(harness, "move", "f", "g");
    edit_works(harness, INSERT(0, "x"), "g");
    transfers(harness, "move", "g", "f");
    edit_works(harness, UNDO, "f");
    versions_are(harness, "f",
                 "1 created local \"one\\n\" +2-0\n"
                 "2 deleted local gone +0-2 to g\n"
                 "3 created local \"x\\none\\n\" +3-0 from g@2\n"
                 "4 deleted local gone +0-3 to g\n");
    versions_are(harness, "g",
                 "1 created local \"one\\n\" +2-0 from f@1\n"
                 "2 updated local \"x\\none\\n\" +1-0\n"
                 "3 deleted local gone +0-3 to f\n"
                 "4 created local \"x\\none\\n\" +3-0 from f@3\n");
}

static void test_moves_of_what_another_program_saved(void **state)
{
    struct harness *harness = *state;
    put(harness, "f", "one\n");
    transfers(harness, "move", "f", "g");
    put(harness, "g", "two\n");
    transfers(harness, "move", "g", "f");
    versions_are(harness, "f",
                 "1 found local \"one\\n\" +2-0\n"
                 "2 deleted local gone +0-2 to g\n"
                 "3 created local \"two\\n\" +2-0 from g@2\n");
    versions_are(harness, "g",
                 "1 created local \"one\\n\" +2-0 from f@1\n"
                 "2 found local \"two\\n\" +1-1\n"
                 "3 deleted local gone +0-2 to f\n");
}

/* To a place where a file was that another program has removed. */
static void test_moves_to_a_former_file(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    edit_works(harness, WRITE("two\\n"), "g");
    drop(harness, "g");
    transfers(harness, "move", "f", "g");
    versions_are(harness, "g",
                 "1 created local \"two\\n\" +2-0\n"
                 "2 updated local \"one\\n\" +1-1 from f@1\n");
}

static void test_copies(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    transfers(harness, "copy", "f", "g");
    put(harness, "f", "two\n");
    transfers(harness, "copy", "f", "h");
    put(harness, "i", "three\n");
    transfers(harness, "copy", "i", "k");
    edit_works(harness, UNDO, "g");
    versions_are(harness, "f", "1 created local \"one\\n\" +2-0\n");
    versions_are(harness, "g",
                 "1 created local \"one\\n\" +2-0 from f@1\n"
                 "2 deleted local gone +0-2\n");
    versions_are(harness, "h", "1 created local \"two\\n\" +2-0 from f@0\n");
    versions_are(harness, "i", ""); /* nothing has saved it */
    versions_are(harness, "k", "1 created local \"three\\n\" +2-0 from i@0\n");
}

/* ---- groups */

static void test_move_with_its_group(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("f leads to old\\n"), "f");
    put(harness, "h", "h leads to old\n");
    edit_works(harness, WRITE("k leads nowhere\\n"), "k");
    group_works(harness, "group_move",
                "{'from':'~/f','to':'~/g','find':'old','put':'new',"
                "'edits':['~/f','~/h','~/k','~/missing']}");
    versions_are(harness, "f",
                 "1 created local \"f leads to old\\n\" +2-0\n"
                 "2 deleted local gone +0-2 to g\n");
    versions_are(harness, "g", "1 created local \"f leads to new\\n\" +2-0 from f@1\n");
    versions_are(harness, "h",
                 "1 found local \"h leads to old\\n\" +2-0\n"
                 "2 updated local \"h leads to new\\n\" +1-1\n");
    versions_are(harness, "k", "1 created local \"k leads nowhere\\n\" +2-0\n");
    group_works(harness, "group_undo", "{'path':'~/g'}");
    versions_are(harness, "f",
                 "1 created local \"f leads to old\\n\" +2-0\n"
                 "2 deleted local gone +0-2 to g\n"
                 "3 created local \"f leads to old\\n\" +2-0 from g@1\n");
    versions_are(harness, "g",
                 "1 created local \"f leads to new\\n\" +2-0 from f@1\n"
                 "2 deleted local gone +0-2 to f\n");
    versions_are(harness, "h",
                 "1 found local \"h leads to old\\n\" +2-0\n"
                 "2 updated local \"h leads to new\\n\" +1-1\n"
                 "3 updated local \"h leads to old\\n\" +1-1\n");
}

/* The group is made again on what the other program saved meanwhile. */
static void test_a_group_and_another_program(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("old\\n"), "f");
    edit_works(harness, WRITE("old\\n"), "h");
    group_works(harness, "group_move",
                "{'from':'~/f','to':'~/g','find':'old','put':'new','meddle':'~/f',"
                "'edits':['~/h','~/f']}");
    versions_are(harness, "f",
                 "1 created local \"old\\n\" +2-0\n"
                 "2 found local \"old\\nother\\n\" +1-0\n"
                 "3 deleted local gone +0-3 to g\n");
    versions_are(harness, "g", "1 created local \"new\\nother\\n\" +3-0 from f@2\n");
    versions_are(harness, "h",
                 "1 created local \"old\\n\" +2-0\n"
                 "2 updated local \"new\\n\" +1-1\n");
}

/* A file takes its newest version along; what no version has stays without one. */
static void test_move_of_a_folder(void **state)
{
    struct harness *harness = *state;
    make_folder(harness, "d");
    make_folder(harness, "d/sub");
    edit_works(harness, WRITE("old\\n"), "d/f");
    edit_works(harness, WRITE("k\\n"), "d/sub/k");
    edit_works(harness, INSERT(1, "x"), "d/sub/k");
    put(harness, "d/plain", "plain\n");
    edit_works(harness, WRITE("gone\\n"), "d/gone");
    edit_works(harness, DELETE, "d/gone");
    group_works(harness, "group_move",
                "{'from':'~/d','to':'~/e','find':'old','put':'new','edits':['~/d/f']}");
    versions_are(harness, "d/f",
                 "1 created local \"old\\n\" +2-0\n"
                 "2 deleted local gone +0-2 to e/f\n");
    versions_are(harness, "e/f", "1 created local \"new\\n\" +2-0 from d/f@1\n");
    versions_are(harness, "d/sub/k",
                 "1 created local \"k\\n\" +2-0\n"
                 "2 updated local \"k\\nx\\n\" +1-0\n"
                 "3 deleted local gone +0-3 to e/sub/k\n");
    versions_are(harness, "e/sub/k", "1 created local \"k\\nx\\n\" +3-0 from d/sub/k@2\n");
    versions_are(harness, "d/plain", "");
    versions_are(harness, "e/plain", "");
    versions_are(harness, "d/gone",
                 "1 created local \"gone\\n\" +2-0\n"
                 "2 deleted local gone +0-2\n");
    versions_are(harness, "e/gone", "");
    edit_works(harness, INSERT(1, "y"), "e/plain");
    versions_are(harness, "e/plain",
                 "1 found local \"plain\\n\" +2-0\n"
                 "2 updated local \"plain\\ny\\n\" +1-0\n");
    edit_works(harness, UNDO, "e/plain");
    group_works(harness, "group_undo", "{'path':'~/e'}");
    versions_are(harness, "d/sub/k",
                 "1 created local \"k\\n\" +2-0\n"
                 "2 updated local \"k\\nx\\n\" +1-0\n"
                 "3 deleted local gone +0-3 to e/sub/k\n"
                 "4 created local \"k\\nx\\n\" +3-0 from e/sub/k@1\n");
    versions_are(harness, "e/sub/k",
                 "1 created local \"k\\nx\\n\" +3-0 from d/sub/k@2\n"
                 "2 deleted local gone +0-3 to d/sub/k\n");
}

/* More documents than one transaction has. */
static void test_move_of_a_large_folder(void **state)
{
    struct harness *harness = *state;
    char name[32];
    char path[PATH_SIZE];
    make_folder(harness, "d");
    for (int i = 0; i < 60; i++) {
        (void)snprintf(name, sizeof(name), "d/%d", i);
        edit_works(harness, WRITE("one\\n"), name);
    }
    group_works(harness, "group_move", "{'from':'~/d','to':'~/e','find':'o','put':'0'}");
    for (int i = 0; i < 60; i++) {
        (void)snprintf(name, sizeof(name), "e/%d", i);
        assert_true(versions_end_with(harness, in_root(harness, path, name).data));
        (void)snprintf(name, sizeof(name), "d/%d", i);
        assert_true(versions_end_with(harness, in_root(harness, path, name).data));
    }
}

/* An edit that another program's save overtakes is made again on that, and finds it once. */
static void test_a_save_of_another_program_meanwhile(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("old\\n"), "f");
    group_works(harness, "group_edit",
                "{'path':'~/f','find':'old','put':'new','meddle':'~/f'}");
    versions_are(harness, "f",
                 "1 created local \"old\\n\" +2-0\n"
                 "2 found local \"old\\nother\\n\" +1-0\n"
                 "3 updated local \"new\\nother\\n\" +1-1\n");
    put(harness, "g", "old\n");
    group_works(harness, "group_edit",
                "{'path':'~/g','find':'old','put':'new','meddle':'~/g'}");
    versions_are(harness, "g",
                 "1 found local \"old\\n\" +2-0\n"
                 "2 found local \"old\\nother\\n\" +1-0\n"
                 "3 updated local \"new\\nother\\n\" +1-1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_save_of_another_program_meanwhile, setup_group,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_moves, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moves_of_what_another_program_saved, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_moves_to_a_former_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_move_with_its_group, setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_a_group_and_another_program, setup_group,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_move_of_a_folder, setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_move_of_a_large_folder, setup_group, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
