/* SPDX-License-Identifier: MIT */
/* test_files_versions.c - the versions of files: what each change of a file adds, and what it
 * finds that other programs have saved. */
#include "test_files_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/call/plugin.h"
#include "core/files/files_state.h"

#define ARGS_SIZE (4 * PATH_SIZE)
#define EVENTS_SIZE ((size_t)64 * 1024)
#define EVENTS_WAITS 100

static const char *const off[] = {"plugins=file_editor", "history.files=false", NULL};
static const char *const small[] = {"plugins=file_editor", "history.max_file=8", NULL};

static int setup_with(void **state, const char *const *with)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, with);
    *state = harness;
    return 0;
}

static int setup_off(void **state)
{
    return setup_with(state, off);
}

static int setup_small(void **state)
{
    return setup_with(state, small);
}

static void drop(struct harness *harness, const char *name)
{
    char path[PATH_SIZE];
    assert_int_equal(unlink(in_root(harness, path, name).data), 0);
}

static void put_bytes(struct harness *harness, const char *name, const char *data, size_t len)
{
    char path[PATH_SIZE];
    int fd =
        open(in_root(harness, path, name).data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    (void)close(fd);
}

/* ---- events */

struct told {
    struct call *call;
    struct buf out;
    struct ng_str root;
};

static void tell_way(struct told *told, const struct ng_value *data, const char *name)
{
    struct ng_str path = json_get_text(data, name);
    if (path.len > 0) {
        (void)buf_printf(&told->out, " %s %.*s", name, (int)(path.len - told->root.len),
                         path.data + told->root.len);
    }
}

static int tell(void *user, const struct ng_event *event)
{
    struct told *told = user;
    const struct ng_value *data = NULL;
    assert_false(str_is(event->key.collection, NG_FILE_VERSIONS)); /* quiet */
    if (!str_is(event->key.collection, FILES_EVENTS)) {
        return 0;
    }
    (void)buf_printf(&told->out, "%.*s %.*s", (int)event->action.len, event->action.data,
                     (int)(event->key.id.len - told->root.len),
                     event->key.id.data + told->root.len);
    if (event->data.len > 0) {
        assert_int_equal(
            json_parse(&told->call->arena, event->data, JSON_DEPTH_DEFAULT, &data, NULL),
            NG_OK);
    }
    if (json_get(data, "version") != NULL) {
        (void)buf_printf(&told->out, " %lld +%lld-%lld",
                         (long long)json_get_integer(data, "version"),
                         (long long)json_get_integer(data, "added"),
                         (long long)json_get_integer(data, "removed"));
        (void)buf_add_c(&told->out, json_get(data, "gap") != NULL ? " gap" : "");
    }
    tell_way(told, data, "from");
    tell_way(told, data, "to");
    (void)buf_add_char(&told->out, ';');
    return 0;
}

static void read_events(struct told *told)
{
    buf_clear(&told->out);
    assert_int_equal(store_changes(told->call->gateway->store, told->call, 0, 1000, tell, told),
                     NG_OK);
}

/* All events of files: ACTION NAME[ VERSION +ADDED-REMOVED[ gap]][ from NAME][ to NAME]; */
static void events_are(struct harness *harness, const char *text)
{
    char root[PATH_SIZE];
    struct told told = {.call = harness_new_call(harness), .root = in_root(harness, root, "")};
    buf_init(&told.out, EVENTS_SIZE);
    told.call->may_block = true;
    read_events(&told);
    for (int i = 0; i < EVENTS_WAITS && told.out.len < strlen(text); i++) {
        pause_us(100000); /* a shared database may tell them later */
        read_events(&told);
    }
    assert_string_equal(buf_cstr(&told.out), text);
    buf_done(&told.out);
    call_unref(told.call);
}

/* ---- one file */

static void test_edits(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    edit_works(harness, INSERT(1, "two"), "f");
    edit_works(harness, "\"command\":\"view\"", "f"); /* adds nothing */
    versions_are(harness, "f",
                 "1 created local \"one\\n\" +2-0\n"
                 "2 updated local \"one\\ntwo\\n\" +1-0\n");
    events_are(harness, "created f 1 +2-0;updated f 2 +1-0;");
}

static void test_first_save_of_a_file(void **state)
{
    struct harness *harness = *state;
    put(harness, "f", "one\n");
    edit_works(harness, INSERT(1, "two"), "f");
    versions_are(harness, "f",
                 "1 found local \"one\\n\" +2-0\n"
                 "2 updated local \"one\\ntwo\\n\" +1-0\n");
    events_are(harness, "updated f 2 +1-0;");
}

static void test_saves_of_other_programs(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    put(harness, "f", "other\n");
    put(harness, "f", "another\n");
    edit_works(harness, INSERT(0, "top"), "f");
    put(harness, "f", "another\n"); /* as it was once */
    edit_works(harness, INSERT(0, "top"), "f");
    /* Saved by another program, but not changed. */
    put(harness, "f", "top\nanother\n");
    edit_works(harness, INSERT(0, "x"), "f");
    versions_are(harness, "f",
                 "1 created local \"one\\n\" +2-0\n"
                 "2 found local \"another\\n\" +1-1\n"
                 "3 updated local \"top\\nanother\\n\" +1-0\n"
                 "4 found local \"another\\n\" +0-1\n"
                 "5 updated local \"top\\nanother\\n\" +1-0\n"
                 "6 updated local \"x\\ntop\\nanother\\n\" +1-0\n");
}

/* A refused change adds no version of what it found. */
static void test_changes_that_fail(void **state)
{
    struct harness *harness = *state;
    put(harness, "f", "one\n");
    edit_fails(harness, WRITE("two"), "f", "FILE_EXISTS", "");
    edit_fails(harness, INSERT(9, "x"), "f", "INVALID_INPUT", "");
    edit_fails(harness, INSERT(0, "x") ",\"expectedRevision\":\"no\"", "f", "CONFLICT", "");
    versions_are(harness, "f", "");
    edit_fails(harness, DELETE, "g", "NOT_FOUND", "");
    versions_are(harness, "g", "");
    events_are(harness, "");
}

static void test_removals(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\ntwo\\n"), "f");
    edit_works(harness, DELETE, "f");
    edit_works(harness, WRITE("three\\n"), "f");
    /* By another program; then nothing is there for a tool to remove. */
    drop(harness, "f");
    edit_fails(harness, DELETE, "f", "NOT_FOUND", "");
    edit_works(harness, WRITE("four\\n"), "f");
    put(harness, "f", "five\n");
    edit_works(harness, DELETE, "f");
    versions_are(harness, "f",
                 "1 created local \"one\\ntwo\\n\" +3-0\n"
                 "2 deleted local gone +0-3\n"
                 "3 created local \"three\\n\" +2-0\n"
                 "4 found local gone +0-2\n"
                 "5 created local \"four\\n\" +2-0\n"
                 "6 found local \"five\\n\" +1-1\n"
                 "7 deleted local gone +0-2\n");
    events_are(harness, "created f 1 +3-0;deleted f 2 +0-3;created f 3 +2-0;"
                        "created f 5 +2-0;deleted f 7 +0-2;");
}

/* One that no tool has saved. */
static void test_removal_at_first(void **state)
{
    struct harness *harness = *state;
    put(harness, "f", "one\n");
    edit_works(harness, DELETE, "f");
    versions_are(harness, "f",
                 "1 found local \"one\\n\" +2-0\n"
                 "2 deleted local gone +0-2\n");
}

static void test_undos(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    edit_works(harness, INSERT(1, "two"), "f");
    edit_works(harness, UNDO, "f");
    edit_works(harness, DELETE, "f");
    edit_works(harness, UNDO, "f"); /* of the removal */
    edit_works(harness, UNDO, "f"); /* of the creation */
    versions_are(harness, "f",
                 "1 created local \"one\\n\" +2-0\n"
                 "2 updated local \"one\\ntwo\\n\" +1-0\n"
                 "3 updated local \"one\\n\" +0-1\n"
                 "4 deleted local gone +0-2\n"
                 "5 created local \"one\\n\" +2-0\n"
                 "6 deleted local gone +0-2\n");
}

static void test_events_of_moves(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    transfers(harness, "move", "f", "g");
    edit_works(harness, INSERT(0, "x"), "g");
    transfers(harness, "copy", "g", "f");
    edit_works(harness, UNDO, "f");
    transfers(harness, "move", "g", "f");
    edit_works(harness, UNDO, "f");
    events_are(harness, "created f 1 +2-0;moved g 1 +2-0 from f;deleted f 2 +0-2 to g;"
                        "updated g 2 +1-0;created f 3 +3-0;deleted f 4 +0-3;"
                        "moved f 5 +3-0 from g;deleted g 3 +0-3 to f;"
                        "moved g 4 +3-0 from f;deleted f 6 +0-3 to g;");
}

/* ---- limits */

static void test_larger_than_the_limit(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    edit_works(harness, INSERT(1, "12345"), "f"); /* too large */
    edit_works(harness, INSERT(1, "6"), "f");
    edit_works(harness, UNDO, "f");
    edit_works(harness, UNDO, "f");
    versions_are(harness, "f",
                 "1 created local \"one\\n\" +2-0\n"
                 "2 updated local \"one\\n\" +0-0 gap\n");
    put(harness, "f", "too large\n"); /* saved by another program */
    edit_works(harness, DELETE, "f");
    put(harness, "g", "too large\n");
    transfers(harness, "copy", "g", "h");
    transfers(harness, "move", "g", "k");
    for (const char *name = "g\0h\0k\0"; *name != '\0'; name += 2) {
        versions_are(harness, name, "");
    }
    put(harness, "l", "just 8\n\n");
    edit_works(harness, INSERT(0, "x"), "l");
    versions_are(harness, "l", "1 found local \"just 8\\n\\n\" +3-0\n");
    versions_are(harness, "f",
                 "1 created local \"one\\n\" +2-0\n"
                 "2 updated local \"one\\n\" +0-0 gap\n"
                 "3 deleted local gone +0-2 gap\n");
    events_are(harness,
               "created f 1 +2-0;updated f;updated f;updated f;updated f 2 +0-0 gap;"
               "deleted f 3 +0-2 gap;created h;moved k from g;deleted g to k;updated l;");
}

static void test_switched_off(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    put(harness, "f", "two\n");
    edit_works(harness, INSERT(1, "x"), "f");
    transfers(harness, "move", "f", "g");
    edit_works(harness, DELETE, "g");
    versions_are(harness, "f", "");
    versions_are(harness, "g", "");
    events_are(harness, "created f;updated f;moved g from f;deleted f to g;deleted g;");
}

/* It may be switched while the gateway runs. */
static void test_switched_off_for_a_time(void **state)
{
    struct harness *harness = *state;
    size_t limit = atomic_load(&harness->gateway->limits.version);
    assert_int_equal(limit, 16 * 1024 * 1024);
    edit_works(harness, WRITE("one\\n"), "f");
    atomic_store(&harness->gateway->limits.version, 0);
    edit_works(harness, INSERT(1, "2"), "f");
    edit_works(harness, INSERT(2, "3"), "f");
    atomic_store(&harness->gateway->limits.version, limit);
    edit_works(harness, INSERT(3, "4"), "f");
    versions_are(harness, "f",
                 "1 created local \"one\\n\" +2-0\n"
                 "2 found local \"one\\n2\\n3\\n\" +2-0\n"
                 "3 updated local \"one\\n2\\n3\\n4\\n\" +1-0\n");
}

static void test_contents(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE(""), "empty");
    edit_works(harness, INSERT(0, "x"), "empty");
    edit_works(harness, UNDO, "empty");
    transfers(harness, "copy", "empty", "copy");
    versions_are(harness, "empty",
                 "1 created local \"\" +0-0\n"
                 "2 updated local \"x\" +1-0\n"
                 "3 updated local \"\" +0-1\n");
    versions_are(harness, "copy", "1 created local \"\" +0-0 from empty@3\n");
    put(harness, "none", "");
    edit_works(harness, INSERT(0, "x"), "none");
    edit_works(harness, DELETE, "none");
    versions_are(harness, "none",
                 "1 found local \"\" +0-0\n"
                 "2 updated local \"x\" +1-0\n"
                 "3 deleted local gone +0-1\n");
    put_bytes(harness, "bytes", "\0\xff\n\xc3", 4);
    transfers(harness, "copy", "bytes", "other");
    transfers(harness, "move", "bytes", "moved");
    edit_works(harness, DELETE, "moved");
    versions_are(harness, "bytes",
                 "1 found local \"\\x00\\xff\\n\\xc3\" +2-0\n"
                 "2 deleted local gone +0-2 to moved\n");
    versions_are(harness, "other",
                 "1 created local \"\\x00\\xff\\n\\xc3\" +2-0 from bytes@0\n");
    versions_are(harness, "moved",
                 "1 created local \"\\x00\\xff\\n\\xc3\" +2-0 from bytes@1\n"
                 "2 deleted local gone +0-2\n");
}

/* A restart changes nothing. */
static void test_after_a_restart(void **state)
{
    struct harness *harness = *state;
    edit_works(harness, WRITE("one\\n"), "f");
    harness_reopen(harness);
    edit_works(harness, INSERT(0, "x"), "f");
    versions_are(harness, "f",
                 "1 created local \"one\\n\" +2-0\n"
                 "2 updated local \"x\\none\\n\" +1-0\n");
}

/* ---- without memory */

/* The change with this allocation failing. True: it came. */
static bool fails_at(struct harness *harness, long allocation, const char *args,
                     const char *name)
{
    char text[ARGS_SIZE];
    (void)snprintf(text, sizeof(text), "{\"path\":\"%s/files/%s\",%s}", harness->dir, name,
                   args);
    struct call *call = harness_new_call(harness); /* may take one that was used before */
    alloc_fail_after(allocation);
    struct answer answer = harness_run(call, "fileEditor", text);
    bool came = atomic_load(&alloc_countdown) < 0;
    alloc_fail_after(-1);
    if (!came && answer.rc != NG_OK) {
        fail_msg("%s: %s", args, answer.message);
    }
    answer_free(&answer);
    return came;
}

static size_t count_versions(struct harness *harness, const char *name)
{
    char path[PATH_SIZE];
    struct buf out;
    size_t count = 0;
    buf_init(&out, (size_t)1024 * 1024);
    versions_print(harness, in_root(harness, path, name).data, "", &out);
    for (size_t i = 0; i < out.len; i++) {
        count += buf_cstr(&out)[i] == '\n';
    }
    buf_done(&out);
    return count;
}

/* The next change, or the next start, recovers the rest of a change. */
static void recover_rest(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    assert_int_equal(files_recover_rest(harness->gateway->files, call), NG_OK);
    call_unref(call);
    assert_int_equal(count_intents(harness), 0);
}

/* The change, which leaves the file if `next`, took place with its version, or not at all. */
static void expect_whole(struct harness *harness, const char *name, bool next, size_t before,
                         size_t after)
{
    char path[PATH_SIZE];
    (void)in_root(harness, path, name);
    bool there = access(path, F_OK) == 0;
    recover_rest(harness);
    assert_int_equal(there, access(path, F_OK) == 0);
    assert_true(versions_end_with(harness, path));
    assert_int_equal(count_versions(harness, name), there == next ? after : before);
}

/* The edit of a file that another program has saved: what it found may be kept without it. */
static bool edit_without_memory(struct harness *harness, long allocation)
{
    char name[32];
    char path[PATH_SIZE];
    (void)snprintf(name, sizeof(name), "e%ld", allocation);
    put(harness, name, "one\n");
    bool came = fails_at(harness, allocation, INSERT(1, "two"), name);
    char *text = get(harness, name);
    bool edited = strcmp(text, "one\ntwo\n") == 0;
    assert_true(edited || strcmp(text, "one\n") == 0);
    free(text);
    recover_rest(harness);
    size_t count = count_versions(harness, name);
    assert_true(edited ? count == 2 : count < 2);
    assert_true(count == 0 || versions_end_with(harness, in_root(harness, path, name).data));
    return came;
}

static bool move_without_memory(struct harness *harness, long allocation)
{
    char name[32];
    char to[32];
    char args[ARGS_SIZE];
    char path[PATH_SIZE];
    (void)snprintf(name, sizeof(name), "m%ld", allocation);
    (void)snprintf(to, sizeof(to), "n%ld", allocation);
    edit_works(harness, WRITE("one\\n"), name);
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s\"",
                   in_root(harness, path, to).data);
    bool came = fails_at(harness, allocation, args, name);
    bool moved = access(path, F_OK) == 0;
    expect_whole(harness, name, false, 1, 2);
    expect_whole(harness, to, true, 0, 1);
    assert_int_equal(moved, access(in_root(harness, path, name).data, F_OK) != 0);
    return came;
}

static void test_without_memory(void **state)
{
    struct harness *harness = *state;
    bool came = true;
    for (long i = 0; came; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "f%ld", i);
        came = fails_at(harness, i, WRITE("one\\n"), name);
        expect_whole(harness, name, true, 0, 1);
    }
    came = true;
    for (long i = 0; came; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "g%ld", i);
        edit_works(harness, WRITE("one\\n"), name);
        came = fails_at(harness, i, DELETE, name);
        expect_whole(harness, name, false, 1, 2);
    }
    for (long i = 0; edit_without_memory(harness, i); i++) {
    }
    for (long i = 0; move_without_memory(harness, i); i++) {
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_edits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_first_save_of_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_saves_of_other_programs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes_that_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removal_at_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undos, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events_of_moves, setup, teardown),
        cmocka_unit_test_setup_teardown(test_larger_than_the_limit, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_switched_off, setup_off, teardown),
        cmocka_unit_test_setup_teardown(test_switched_off_for_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_contents, setup, teardown),
        cmocka_unit_test_setup_teardown(test_after_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
