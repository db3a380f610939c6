/* SPDX-License-Identifier: MIT */
/* test_files_group.c - moves that change other files with them, and moves of folders: all or
 * nothing, and one undo for all. */
#include "test_files_rig.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/files/files_state.h"
#include "test_clock.h"

#define ARGS_SIZE 16384
#define ROUNDS 40
#define EDITS 3

static int setup_group(void **state)
{
    int rc = setup(state);
    add_group_tools(*state);
    return rc;
}

/* Moves `from` to `to`; in the files `edits` (separated by blanks) "old" becomes "new". */
static struct answer move_as(struct harness *harness, const char *agent, const char *from,
                             const char *to, const char *edits, const char *more)
{
    char args[ARGS_SIZE];
    char list[256];
    (void)snprintf(list, sizeof(list), "%s", edits);
    int len = snprintf(args, sizeof(args),
                       "{\"from\":\"%s/files/%s\",\"to\":\"%s/files/%s\",\"find\":\"old\","
                       "\"put\":\"new\"%s,\"edits\":[",
                       harness->dir, from, harness->dir, to, more);
    char *save = NULL;
    const char *comma = "";
    for (char *name = strtok_r(list, " ", &save); name != NULL;
         name = strtok_r(NULL, " ", &save)) {
        len += snprintf(args + len, sizeof(args) - (size_t)len, "%s\"%s/files/%s\"", comma,
                        harness->dir, name);
        comma = ",";
    }
    (void)snprintf(args + len, sizeof(args) - (size_t)len, "]}");
    return harness_call_as(harness, agent, NULL, "group_move", args);
}

static void moves(struct harness *harness, const char *from, const char *to, const char *edits)
{
    struct answer answer = move_as(harness, "ada", from, to, edits, "");
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s", from, answer.message);
    }
    answer_free(&answer);
}

static void fails(struct answer answer, const char *code, const char *part)
{
    assert_string_equal(answer.code, code);
    if (strstr(answer.message, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, answer.message);
    }
    answer_free(&answer);
}

static struct answer undo_as(struct harness *harness, const char *agent, const char *name)
{
    char args[ARGS_SIZE];
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/%s\"}", harness->dir, name);
    return harness_call_as(harness, agent, NULL, "group_undo", args);
}

static void undoes(struct harness *harness, const char *name, const char *former)
{
    char path[PATH_SIZE];
    struct answer answer = undo_as(harness, "ada", name);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s", name, answer.message);
    }
    assert_string_equal(answer.text, in_root(harness, path, former).data);
    answer_free(&answer);
}

static bool is_there(struct harness *harness, const char *name)
{
    char path[PATH_SIZE];
    return access(in_root(harness, path, name).data, F_OK) == 0;
}

static void make_folder(struct harness *harness, const char *name)
{
    char path[PATH_SIZE];
    assert_int_equal(mkdir(in_root(harness, path, name).data, 0755), 0);
}

static void expect_clean(struct harness *harness)
{
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
}

/* ---- a file and what leads to it */

static void put_three(struct harness *harness)
{
    put(harness, "f", "f leads to old\n");
    put(harness, "h", "h leads to old, too\n");
    put(harness, "k", "k leads nowhere\n");
}

static void has_moved(struct harness *harness)
{
    assert_false(is_there(harness, "f"));
    has(harness, "g", "f leads to new\n");
    has(harness, "h", "h leads to new, too\n");
    has(harness, "k", "k leads nowhere\n");
}

static void has_not_moved(struct harness *harness)
{
    assert_false(is_there(harness, "g"));
    has(harness, "f", "f leads to old\n");
    has(harness, "h", "h leads to old, too\n");
    has(harness, "k", "k leads nowhere\n");
}

static void test_one_undo_takes_all_back(void **state)
{
    struct harness *harness = *state;
    put_three(harness);
    for (int round = 0; round < 3; round++) {
        moves(harness, "f", "g", "f h k missing");
        has_moved(harness);
        /* Under the new name, or that of a file that changed with it. */
        undoes(harness, round == 0 ? "g" : "h", "f");
        has_not_moved(harness);
    }
    fails(undo_as(harness, "ada", "h"), "TOOL_FAILED", "No edit history");
    fails(undo_as(harness, "ada", "f"), "TOOL_FAILED", "No edit history");
    expect_clean(harness);
}

/* Nothing but the moved file changes, or nothing at all but the name. */
static void test_groups_of_one(void **state)
{
    struct harness *harness = *state;
    put_three(harness);
    moves(harness, "f", "g", "f");
    has(harness, "g", "f leads to new\n");
    undoes(harness, "g", "f");
    has_not_moved(harness);
    moves(harness, "f", "g", "k");
    has(harness, "g", "f leads to old\n");
    undoes(harness, "g", "f");
    make_folder(harness, "d");
    put(harness, "d/one", "bytes\n");
    moves(harness, "d", "e", "");
    has(harness, "e/one", "bytes\n");
    undoes(harness, "e", "d");
    has(harness, "d/one", "bytes\n");
    has_not_moved(harness);
    expect_clean(harness);
}

static void test_undo_after_a_restart(void **state)
{
    struct harness *harness = *state;
    put_three(harness);
    moves(harness, "f", "g", "f h");
    harness_reopen(harness);
    add_group_tools(harness);
    undoes(harness, "g", "f");
    has_not_moved(harness);
}

static void test_undo_is_for_the_agent_who_moved(void **state)
{
    struct harness *harness = *state;
    put_three(harness);
    moves(harness, "f", "g", "f h");
    fails(undo_as(harness, "bob", "g"), "CONFLICT", "not yours: the agent ada made it at 20");
    fails(undo_as(harness, "bob", "h"), "CONFLICT", "not yours: the agent ada made it at 20");
    has_moved(harness);
}

static void edit_as(struct harness *harness, const char *agent, const char *name)
{
    char args[ARGS_SIZE];
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/%s\"," APPEND "}", harness->dir,
                   name);
    struct answer answer = harness_call_as(harness, agent, NULL, "fileEditor", args);
    if (answer.rc != NG_OK) {
        fail_msg("%s", answer.message);
    }
    answer_free(&answer);
}

/* Nothing is taken back where one of the files has changed since. */
static void test_an_edit_since_is_named(void **state)
{
    struct harness *harness = *state;
    put_three(harness);
    moves(harness, "f", "g", "f h");
    edit_as(harness, "bob", "h");
    fails(undo_as(harness, "ada", "g"), "CONFLICT", "the agent bob made it at 20");
    has(harness, "h", "h leads to new, too\nx\n");
    has(harness, "g", "f leads to new\n");
    struct answer answer = undo_as(harness, "bob", "h");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    edit_as(harness, "ada", "h");
    fails(undo_as(harness, "ada", "g"), "CONFLICT", "was edited after the move");
    edit_as(harness, "ada", "g");
    answer = undo_as(harness, "ada", "h");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    fails(undo_as(harness, "ada", "h"), "CONFLICT", "which has changed since");
    answer = undo_as(harness, "ada", "g");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    undoes(harness, "g", "f");
    has_not_moved(harness);
}

/* The step of a change is kept where the clock goes back before it. */
static void test_the_clock_goes_back(void **state)
{
    struct harness *harness = *state;
    put_three(harness);
    test_clock_set_ahead(CLOCK_REALTIME, TEST_CLOCK_HOUR_MS);
    edit_as(harness, "ada", "h");
    test_clock_reset();
    moves(harness, "f", "g", "f h");
    has(harness, "h", "h leads to new, too\nx\n");
    undoes(harness, "g", "f");
    has(harness, "h", "h leads to old, too\nx\n");
    edit_as(harness, "ada", "h");
    expect_clean(harness);
}

static void test_a_save_of_another_program_since_is_named(void **state)
{
    struct harness *harness = *state;
    put_three(harness);
    moves(harness, "f", "g", "f h");
    put(harness, "h", "another program's\n");
    fails(undo_as(harness, "ada", "g"), "CONFLICT", "Another program changed");
    has(harness, "h", "another program's\n");
    has(harness, "g", "f leads to new\n");
    assert_false(is_there(harness, "f"));
}

/* The edit is made again on what the other program saved, and all of it is undone. */
static void test_a_save_of_another_program_meanwhile(void **state)
{
    struct harness *harness = *state;
    static const char *const meddled[] = {"f", "h"};
    for (size_t i = 0; i < NG_COUNT(meddled); i++) {
        char more[PATH_SIZE + 32];
        put_three(harness);
        (void)snprintf(more, sizeof(more), ",\"meddle\":\"%s/files/%s\"", harness->dir,
                       meddled[i]);
        struct answer answer = move_as(harness, "ada", "f", "g", "h f", more);
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
        has(harness, "g", i == 0 ? "f leads to new\nother\n" : "f leads to new\n");
        has(harness, "h", i == 0 ? "h leads to new, too\n" : "h leads to new, too\nother\n");
        undoes(harness, "g", "f");
        has(harness, "f", i == 0 ? "f leads to old\nother\n" : "f leads to old\n");
        has(harness, "h", i == 0 ? "h leads to old, too\n" : "h leads to old, too\nother\n");
    }
    expect_clean(harness);
}

static void test_refused_moves_change_nothing(void **state)
{
    struct harness *harness = *state;
    put_three(harness);
    make_folder(harness, "d");
    fails(move_as(harness, "ada", "f", "k", "f h", ""), "CONFLICT", "k");
    fails(move_as(harness, "ada", "f", "d", "f h", ""), "CONFLICT", "d");
    fails(move_as(harness, "ada", "missing", "g", "h", ""), "NOT_FOUND", "missing");
    fails(move_as(harness, "ada", "f", "../g", "h", ""), "PATH_OUTSIDE_ROOTS", "g");
    fails(move_as(harness, "ada", "f", "g", "h h", ""), "INVALID_INPUT", "edited twice");
    fails(move_as(harness, "ada", "d", "d/e", "h", ""), "INVALID_INPUT", "into itself");
    fails(move_as(harness, "ada", "", "e", "h", ""), "INVALID_INPUT", "is a root");
    has_not_moved(harness);
    expect_clean(harness);
}

/* ---- folders */

static void test_a_folder_takes_all_along(void **state)
{
    struct harness *harness = *state;
    make_folder(harness, "d");
    make_folder(harness, "d/sub");
    make_folder(harness, "d/empty");
    put(harness, "d/one", "one leads to old\n");
    put(harness, "d/sub/.hidden", "bytes\n");
    put(harness, "h", "h leads to old\n");
    edit_as(harness, "bob", "d/sub/.hidden");
    edit_as(harness, "bob", "d/one");
    moves(harness, "d", "to/e", "d/one h");
    assert_false(is_there(harness, "d"));
    assert_true(is_there(harness, "to/e/empty"));
    has(harness, "to/e/one", "one leads to new\nx\n");
    has(harness, "to/e/sub/.hidden", "bytes\nx\n");
    has(harness, "h", "h leads to new\n");
    /* The history of each file has moved along. */
    struct answer answer = undo_as(harness, "bob", "to/e/sub/.hidden");
    assert_string_equal(answer.message, "");
    answer_free(&answer);
    has(harness, "to/e/sub/.hidden", "bytes\n");
    undoes(harness, "to/e", "d");
    assert_false(is_there(harness, "to/e"));
    has(harness, "d/one", "one leads to old\nx\n");
    has(harness, "d/sub/.hidden", "bytes\n");
    has(harness, "h", "h leads to old\n");
    answer = undo_as(harness, "bob", "d/one");
    assert_string_equal(answer.message, "");
    answer_free(&answer);
    has(harness, "d/one", "one leads to old\n");
    expect_clean(harness);
}

/* More documents than one transaction has. */
static void test_a_folder_of_many_files(void **state)
{
    struct harness *harness = *state;
    char edits[256] = "";
    make_folder(harness, "d");
    for (int i = 0; i < 200; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "d/%d", i);
        put(harness, name, "leads to old\n");
        if (i < 40) {
            (void)snprintf(edits + strlen(edits), sizeof(edits) - strlen(edits), "d/%d ", i);
        }
    }
    moves(harness, "d", "e", edits);
    has(harness, "e/39", "leads to new\n");
    has(harness, "e/199", "leads to old\n");
    undoes(harness, "e/7", "d");
    has(harness, "d/39", "leads to old\n");
    assert_false(is_there(harness, "e"));
    expect_clean(harness);
}

/* ---- at once */

struct worker {
    struct harness *harness;
    int number;
};

static void *edit_often(void *user)
{
    const struct worker *worker = user;
    for (int i = 0; i < ROUNDS; i++) {
        edit_as(worker->harness, worker->number % 2 == 0 ? "ada" : "bob", "h");
    }
    return NULL;
}

/* Each move finds the file under one of two names, or not at all. */
static void *move_often(void *user)
{
    const struct worker *worker = user;
    for (int i = 0; i < ROUNDS; i++) {
        bool forth = i % 2 == 0;
        struct answer answer =
            move_as(worker->harness, "ada", forth ? "f" : "g", forth ? "g" : "f", "f g h", "");
        if (answer.rc != NG_OK && strcmp(answer.code, "NOT_FOUND") != 0 &&
            strcmp(answer.code, "CONFLICT") != 0) {
            fail_msg("%s %s", answer.code, answer.message);
        }
        answer_free(&answer);
        answer = undo_as(worker->harness, "ada", forth ? "g" : "f");
        /* The reason of a refusal varies, but no other program changes the files. */
        if (answer.rc != NG_OK && strstr(answer.message, "Another program") != NULL) {
            fail_msg("%s", answer.message);
        }
        answer_free(&answer);
    }
    return NULL;
}

static void test_at_once(void **state)
{
    struct harness *harness = *state;
    pthread_t threads[2 * EDITS];
    struct worker workers[2 * EDITS];
    put_three(harness);
    for (int i = 0; i < 2 * EDITS; i++) {
        workers[i] = (struct worker){harness, i};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < EDITS ? edit_often : move_often, &workers[i]),
            0);
    }
    for (int i = 0; i < 2 * EDITS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(is_there(harness, "f") != is_there(harness, "g"));
    char *text = get(harness, "h");
    size_t lines = 0;
    for (const char *at = strstr(text, "\nx"); at != NULL; at = strstr(at + 1, "\nx")) {
        lines++;
    }
    free(text);
    /* An undo of h takes an edit of ada back, where it is the last change. */
    assert_true(lines <= (size_t)EDITS * ROUNDS && lines >= (size_t)ROUNDS);
    expect_clean(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_undo_takes_all_back, setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_groups_of_one, setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_undo_after_a_restart, setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_undo_is_for_the_agent_who_moved, setup_group,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_an_edit_since_is_named, setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_the_clock_goes_back, setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_a_save_of_another_program_since_is_named,
                                        setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_a_save_of_another_program_meanwhile, setup_group,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_refused_moves_change_nothing, setup_group,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_folder_takes_all_along, setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_a_folder_of_many_files, setup_group, teardown),
        cmocka_unit_test_setup_teardown(test_at_once, setup_group, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
