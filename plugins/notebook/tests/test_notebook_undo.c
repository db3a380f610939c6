/* SPDX-License-Identifier: MIT */
/* test_notebook_undo.c - rename, delete and undo: one rule, over restarts, for many at once.
 */
#include "test_notebook_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define SPACE "team"

/* ---- calls by an agent in one space ---- */

static void run(struct harness *h, const char *agent, const char *args, const char *text)
{
    struct answer answer = harness_call_as(h, agent, SPACE, "notebook", args);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s", args, answer.message);
    }
    assert_string_equal(answer.text, text);
    answer_free(&answer);
}

static struct answer refused(struct harness *h, const char *agent, const char *args,
                             const char *code, const char *part)
{
    struct answer answer = harness_call_as(h, agent, SPACE, "notebook", args);
    assert_string_equal(answer.code, code);
    if (strstr(answer.message, part) == NULL) {
        fail_msg("%s: \"%s\" lacks \"%s\"", args, answer.message, part);
    }
    return answer;
}

static void fails(struct harness *h, const char *agent, const char *args, const char *code,
                  const char *part)
{
    struct answer answer = refused(h, agent, args, code, part);
    answer_free(&answer);
}

static void put(struct harness *h, const char *agent, const char *name, const char *text)
{
    char args[256];
    (void)snprintf(args, sizeof(args),
                   "{\"mode\":\"create\",\"name\":\"%s\",\"newStr\":\"%s\"}", name, text);
    struct answer answer = harness_call_as(h, agent, SPACE, "notebook", args);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
}

static void reads(struct harness *h, const char *name, const char *text)
{
    char args[256];
    (void)snprintf(args, sizeof(args), "{\"mode\":\"read\",\"name\":\"%s\"}", name);
    run(h, "reader", args, text);
}

static void absent(struct harness *h, const char *name)
{
    char args[256];
    (void)snprintf(args, sizeof(args), "{\"mode\":\"read\",\"name\":\"%s\"}", name);
    fails(h, "reader", args, "NOT_FOUND", "not found");
}

#define UNDO(name) "{\"mode\":\"undo\",\"name\":\"" name "\"}"
#define DELETE(name) "{\"mode\":\"delete\",\"name\":\"" name "\"}"
#define RENAME(name, to) "{\"mode\":\"rename\",\"name\":\"" name "\",\"newName\":\"" to "\"}"

/* ---- undo ---- */

static void test_undo(void **state)
{
    struct harness *h = *state;
    put(h, "ann", "n", "one");
    put(h, "ann", "n", "two");
    put(h, "ann", "n", "three");
    run(h, "ann", UNDO("n"), "Undid the last change of notebook 'n'");
    reads(h, "n", "two");
    harness_reopen(h);
    run(h, "ann", UNDO("n"), "Undid the last change of notebook 'n'");
    reads(h, "n", "one");
    /* A change between: the undos before it are not the last change. */
    put(h, "ann", "n", "four");
    run(h, "ann", UNDO("n"), "Undid the last change of notebook 'n'");
    reads(h, "n", "one");
    run(h, "ann", UNDO("n"), "Undid the creation of notebook 'n'");
    absent(h, "n");
    fails(h, "ann", UNDO("n"), "TOOL_FAILED", "No edit history found for notebook 'n'.");
    fails(h, "ann", UNDO("never"), "NOT_FOUND", "not found");
    fails(h, "ann", "{\"mode\":\"undo\"}", "TOOL_FAILED",
          "No edit history found for notebook 'default'.");
    struct answer answer =
        harness_call_as(h, "ann", SPACE, "notebook", "{\"mode\":\"create\",\"name\":\"n\"}");
    assert_int_equal(answer.revision, 9); /* the revisions go on */
    answer_free(&answer);
}

static void test_undo_counts(void **state)
{
    struct harness *h = *state;
    char text[16];
    for (int i = 0; i <= 12; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        put(h, "ann", "n", text);
    }
    for (int i = 11; i >= 2; i--) {
        run(h, "ann", UNDO("n"), "Undid the last change of notebook 'n'");
        (void)snprintf(text, sizeof(text), "%d", i);
        reads(h, "n", text);
    }
    fails(h, "ann", UNDO("n"), "TOOL_FAILED",
          "The last 10 changes of notebook 'n' are undone, which is the most in a row. Nothing "
          "was undone; read it and write the text you want.");
    reads(h, "n", "2");
}

static void test_undo_of_another(void **state)
{
    struct harness *h = *state;
    put(h, "ann", "n", "one");
    put(h, "ann", "n", "two");
    put(h, "bob", "n", "three");
    struct answer answer =
        refused(h, "ann", UNDO("n"), "CONFLICT",
                "The last change of notebook 'n' is not yours: the agent bob made it at 20");
    assert_int_equal(answer.status, 409);
    assert_non_null(strstr(answer.message, "Nothing was undone;"));
    assert_non_null(strstr(answer.details, "\"changed_by\":\"bob\""));
    answer_free(&answer);
    reads(h, "n", "three");
    /* When bob has taken his back, ann's is the last. */
    run(h, "bob", UNDO("n"), "Undid the last change of notebook 'n'");
    fails(h, "bob", UNDO("n"), "CONFLICT", "the agent ann");
    run(h, "ann", UNDO("n"), "Undid the last change of notebook 'n'");
    reads(h, "n", "one");
}

static void test_undo_expects(void **state)
{
    struct harness *h = *state;
    put(h, "ann", "n", "one");
    put(h, "ann", "n", "two");
    fails(h, "ann", "{\"mode\":\"undo\",\"name\":\"n\",\"expectedRevision\":1}", "CONFLICT",
          "revision 1 was expected");
    reads(h, "n", "two");
    run(h, "ann", "{\"mode\":\"undo\",\"name\":\"n\",\"expectedRevision\":2}",
        "Undid the last change of notebook 'n'");
    struct answer answer = harness_call_as(h, "ann", SPACE, "notebook", UNDO("n"));
    assert_int_equal(answer.revision, 0);
    answer_free(&answer);
}

/* ---- delete ---- */

static void test_delete(void **state)
{
    struct harness *h = *state;
    put(h, "ann", "n", "one\\ntwo");
    run(h, "ann", DELETE("n"), "Deleted notebook 'n'");
    absent(h, "n");
    run(h, "ann", "{\"mode\":\"list\"}", "Available notebooks:\n- default: Empty");
    fails(h, "ann", DELETE("n"), "NOT_FOUND", "not found");
    fails(h, "bob", UNDO("n"), "CONFLICT", "the agent ann");
    run(h, "ann", UNDO("n"), "Undid the deletion of notebook 'n'");
    reads(h, "n", "one\ntwo");
    run(h, "ann", "{\"mode\":\"list\"}",
        "Available notebooks:\n- default: Empty\n- n: 2 lines");
    /* Made anew after a deletion: its revisions go on, and an undo brings the deletion back. */
    run(h, "ann", DELETE("n"), "Deleted notebook 'n'");
    put(h, "ann", "n", "anew");
    fails(h, "ann",
          "{\"mode\":\"write\",\"name\":\"n\",\"newStr\":\"x\",\"expectedRevision\":1}",
          "CONFLICT", "at revision 5");
    run(h, "ann", UNDO("n"), "Undid the creation of notebook 'n'");
    run(h, "ann", UNDO("n"), "Undid the deletion of notebook 'n'");
    reads(h, "n", "one\ntwo");
    fails(h, "ann", "{\"mode\":\"delete\",\"name\":\"n\",\"expectedRevision\":1}", "CONFLICT",
          "expected");
}

static void test_default(void **state)
{
    struct harness *h = *state;
    put(h, "ann", "default", "text");
    run(h, "ann", "{\"mode\":\"delete\"}", "Cleared notebook 'default'");
    reads(h, "default", "Notebook 'default' is empty");
    run(h, "ann", "{\"mode\":\"undo\"}", "Undid the last change of notebook 'default'");
    reads(h, "default", "text");
    fails(h, "ann", RENAME("default", "m"), "INVALID_INPUT", "cannot be renamed");
    run(h, "ann", "{\"mode\":\"undo\"}", "Undid the creation of notebook 'default'");
    reads(h, "default", "Notebook 'default' is empty");
}

/* ---- rename ---- */

static void test_rename(void **state)
{
    struct harness *h = *state;
    put(h, "ann", "a", "one");
    put(h, "ann", "a", "two");
    run(h, "ann", RENAME("a", "b"), "Renamed notebook 'a' to 'b'");
    absent(h, "a");
    reads(h, "b", "two");
    fails(h, "ann", UNDO("a"), "TOOL_FAILED", "was renamed");
    fails(h, "bob", UNDO("b"), "CONFLICT", "the agent ann");
    put(h, "ann", "b", "three");
    run(h, "ann", UNDO("b"), "Undid the last change of notebook 'b'");
    reads(h, "b", "two");
    harness_reopen(h);
    run(h, "ann", UNDO("b"), "Undid the last change of notebook 'b': renamed back to 'a'");
    absent(h, "b");
    reads(h, "a", "two");
    fails(h, "ann", UNDO("b"), "TOOL_FAILED", "No edit history found");
    /* The history before the rename goes on. */
    run(h, "ann", UNDO("a"), "Undid the last change of notebook 'a'");
    reads(h, "a", "one");
    run(h, "ann", UNDO("a"), "Undid the creation of notebook 'a'");
    absent(h, "a");
}

static void test_rename_after_undo(void **state)
{
    struct harness *h = *state;
    put(h, "ann", "a", "one");
    put(h, "ann", "a", "two");
    put(h, "ann", "a", "three");
    run(h, "ann", UNDO("a"), "Undid the last change of notebook 'a'");
    run(h, "ann", RENAME("a", "b"), "Renamed notebook 'a' to 'b'");
    run(h, "ann", UNDO("b"), "Undid the last change of notebook 'b': renamed back to 'a'");
    run(h, "ann", UNDO("a"), "Undid the last change of notebook 'a'");
    reads(h, "a", "one");
}

static void test_rename_refused(void **state)
{
    struct harness *h = *state;
    put(h, "ann", "a", "one");
    put(h, "bob", "b", "two");
    struct answer answer = refused(h, "ann", RENAME("a", "b"), "CONFLICT", "already exists");
    assert_int_equal(answer.status, 409);
    answer_free(&answer);
    fails(h, "ann", RENAME("a", "default"), "CONFLICT", "already exists");
    fails(h, "ann", RENAME("a", "a"), "CONFLICT", "already exists");
    fails(h, "ann", RENAME("x", "x"), "NOT_FOUND", "not found");
    fails(h, "ann", RENAME("x", "y"), "NOT_FOUND", "not found");
    fails(h, "ann", "{\"mode\":\"rename\",\"name\":\"a\"}", "INVALID_INPUT", "newName");
    fails(h, "ann",
          "{\"mode\":\"rename\",\"name\":\"a\",\"newName\":\"c\",\"expectedRevision\":7}",
          "CONFLICT", "expected");
    reads(h, "a", "one");
    reads(h, "b", "two");
    /* Somebody took the former name. */
    run(h, "ann", RENAME("a", "c"), "Renamed notebook 'a' to 'c'");
    put(h, "bob", "a", "other");
    fails(h, "ann", UNDO("c"), "CONFLICT", "another notebook has that name now");
    reads(h, "a", "other");
    reads(h, "c", "one");
    /* It goes, and the way is free. */
    run(h, "bob", DELETE("a"), "Deleted notebook 'a'");
    run(h, "ann", UNDO("c"), "Undid the last change of notebook 'c': renamed back to 'a'");
    reads(h, "a", "one");
}

/* Onto a name that was deleted: its revisions go on. */
static void test_rename_onto_deleted(void **state)
{
    struct harness *h = *state;
    put(h, "ann", "b", "old");
    run(h, "ann", DELETE("b"), "Deleted notebook 'b'");
    put(h, "ann", "a", "one");
    struct answer answer = harness_call_as(h, "ann", SPACE, "notebook", RENAME("a", "b"));
    assert_int_equal(answer.rc, NG_OK);
    assert_int_equal(answer.revision, 3);
    answer_free(&answer);
    answer = harness_call_as(h, "ann", SPACE, "notebook", UNDO("b"));
    assert_int_equal(answer.rc, NG_OK);
    assert_int_equal(answer.revision, 3); /* of the former name */
    answer_free(&answer);
    run(h, "ann", UNDO("b"), "Undid the deletion of notebook 'b'");
    reads(h, "b", "old");
}

/* ---- many at once ---- */

#define AGENTS 4
#define STEPS 40

struct actor {
    struct harness *harness;
    int number;
    int written; /* appends that were acknowledged */
    int undone;
    int wrong; /* answers that are neither success nor a conflict */
};

/* Each appends lines of its own, and takes some back: only its own, so that the lines that are
 * left are those that were written and not undone. */
static void *act(void *user)
{
    struct actor *actor = user;
    char agent[8];
    (void)snprintf(agent, sizeof(agent), "w%d", actor->number);
    for (int i = 0; i < STEPS; i++) {
        char args[128];
        (void)snprintf(args, sizeof(args),
                       "{\"mode\":\"write\",\"name\":\"log\",\"newStr\":\"w%d-%d\"}",
                       actor->number, i);
        bool undo = i % 3 == 2;
        struct answer answer = harness_call_as(actor->harness, agent, SPACE, "notebook",
                                               undo ? UNDO("log") : args);
        if (answer.rc == NG_OK) {
            actor->written += !undo;
            actor->undone += undo;
        } else if (!undo || (strcmp(answer.code, "CONFLICT") != 0 &&
                             strcmp(answer.code, "TOOL_FAILED") != 0)) {
            print_error("%s: %s\n", answer.code, answer.message);
            actor->wrong++;
        }
        answer_free(&answer);
    }
    return NULL;
}

static void test_many_undo(void **state)
{
    struct harness *h = *state;
    struct actor actors[AGENTS];
    pthread_t threads[AGENTS];
    int left = 0;
    put(h, "ann", "log", "first");
    for (int i = 0; i < AGENTS; i++) {
        actors[i] = (struct actor){.harness = h, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, act, &actors[i]), 0);
    }
    for (int i = 0; i < AGENTS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(actors[i].wrong, 0);
        left += actors[i].written - actors[i].undone;
    }
    struct answer read =
        harness_call_as(h, "reader", SPACE, "notebook", "{\"mode\":\"read\",\"name\":\"log\"}");
    int lines = 0;
    for (const char *at = read.text; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    assert_int_equal(lines, left);
    answer_free(&read);
}

/* One agent, several of its calls at once: each undo takes back one change. */
static void *undo_one(void *user)
{
    struct actor *actor = user;
    struct answer answer = harness_call_as(actor->harness, "ann", SPACE, "notebook", UNDO("n"));
    actor->undone = answer.rc == NG_OK;
    answer_free(&answer);
    return NULL;
}

static void test_same_agent_at_once(void **state)
{
    struct harness *h = *state;
    struct actor actors[AGENTS];
    pthread_t threads[AGENTS];
    for (int i = 0; i <= 2 * AGENTS; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%d", i);
        put(h, "ann", "n", text);
    }
    for (int i = 0; i < AGENTS; i++) {
        actors[i] = (struct actor){.harness = h, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, undo_one, &actors[i]), 0);
    }
    for (int i = 0; i < AGENTS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(actors[i].undone, 1);
    }
    reads(h, "n", "4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_undo),
        TEST(test_undo_counts),
        TEST(test_undo_of_another),
        TEST(test_undo_expects),
        TEST(test_delete),
        TEST(test_default),
        TEST(test_rename),
        TEST(test_rename_after_undo),
        TEST(test_rename_refused),
        TEST(test_rename_onto_deleted),
        TEST(test_many_undo),
        TEST(test_same_agent_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
