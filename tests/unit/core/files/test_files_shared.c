/* SPDX-License-Identifier: MIT */
/* test_files_shared.c - two gateways with one database and one root: what one left unfinished
 * is not forgotten when the other one has gone on with the file.
 */
#include "test_files_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/cluster/cluster_state.h"
#include "core/files/files_state.h"
#include "core/store/idempotency.h"
#include "hub.h"

struct pair {
    struct harness first, second;
    char root[PATH_SIZE];
};

static int setup_pair(void **state)
{
    static const char *const first[] = {"plugins=file_editor", "documents=" HUB_MODULE, NULL};
    struct pair *pair = calloc(1, sizeof(*pair));
    assert_non_null(pair);
    hub_reset();
    harness_open(&pair->first, first);
    (void)snprintf(pair->root, sizeof(pair->root), "roots=%s/files", pair->first.dir);
    const char *const second[] = {first[0], first[1], pair->root, NULL};
    harness_open(&pair->second, second);
    *state = pair;
    return 0;
}

static int teardown_pair(void **state)
{
    struct pair *pair = *state;
    hub_reset();
    harness_close(&pair->second);
    harness_close(&pair->first);
    free(pair);
    return 0;
}

static void end_keyed_call(struct call *call)
{
    idempotency_end(call);
    call_unref(call);
}

/* The intent of a removal that could not be completed: its file is gone. */
static void leave_removal(struct harness *harness, struct ng_str path, const char *text)
{
    struct file_record record;
    struct ng_change changes[FILES_CHANGES_MAX];
    struct call *call = keyed_call(harness);
    assert_int_equal(cluster_announce(harness->gateway->cluster, call), NG_OK);
    assert_int_equal(files_record_init(call, &record, FILE_CHANGE_DELETE), NG_OK);
    record.real = path;
    record.space = ng_str_of("shared");
    files_hash(ng_str_of(text), record.before);
    record.undo.kind = NG_UNDO_EDIT;
    record.undo.op = record.op;
    record.undo.inserted = ng_str_of("");
    size_t count = files_intent_changes(&record, changes);
    assert_int_equal(store_write_wait(harness->gateway->store, call, changes, count), NG_OK);
    end_keyed_call(call);
}

static void call_at(struct harness *gateway, const char *args)
{
    struct answer answer = harness_call(gateway, "fileEditor", args);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s %s", args, answer.code, answer.message);
    }
    answer_free(&answer);
}

static void move_at(struct pair *pair, struct harness *gateway, const char *from,
                    const char *to)
{
    char args[3 * PATH_SIZE];
    const char *dir = pair->first.dir;
    (void)snprintf(args, sizeof(args),
                   "{\"command\":\"move\",\"path\":\"%s/files/%s\","
                   "\"destination\":\"%s/files/%s\"}",
                   dir, from, dir, to);
    call_at(gateway, args);
}

/* The removal that leave_removal() left, once more. */
static void repeat_is_answered(struct harness *harness, struct ng_str path)
{
    bool answered = false;
    struct call *repeat = keyed_call(harness);
    assert_int_equal(files_replay_recover(harness->gateway->files, repeat, &path, 1, &answered),
                     NG_OK);
    assert_true(answered);
    end_keyed_call(repeat);
}

/* Else its repeat would remove what was made since. */
static void test_a_removal_before_a_file_made_elsewhere(void **state)
{
    struct pair *pair = *state;
    char path[PATH_SIZE];
    char args[2 * PATH_SIZE];
    struct ng_str name = in_root(&pair->first, path, "f");
    leave_removal(&pair->first, name, "old");
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s\"," CREATE "}", path);
    call_at(&pair->second, args);
    repeat_is_answered(&pair->first, name);
    has(&pair->first, "f", "new");
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s\"," UNDO "}", path);
    call_at(&pair->second, args);
    assert_null(get(&pair->first, "f"));
}

/* The same of a file that another gateway moved there ... */
static void test_a_removal_before_a_move_made_elsewhere(void **state)
{
    struct pair *pair = *state;
    char path[PATH_SIZE];
    struct ng_str name = in_root(&pair->first, path, "f");
    leave_removal(&pair->first, name, "old");
    put(&pair->first, "g", "another");
    move_at(pair, &pair->second, "g", "f");
    repeat_is_answered(&pair->first, name);
    has(&pair->first, "f", "another");
}

/* ... or moved back. */
static void test_a_removal_before_a_move_undone_elsewhere(void **state)
{
    struct pair *pair = *state;
    char path[PATH_SIZE];
    char args[2 * PATH_SIZE];
    put(&pair->first, "g", "another");
    move_at(pair, &pair->second, "g", "f");
    struct ng_str former = in_root(&pair->first, path, "g");
    leave_removal(&pair->first, former, "made there since");
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/f\"," UNDO "}", pair->first.dir);
    call_at(&pair->second, args);
    repeat_is_answered(&pair->first, former);
    has(&pair->first, "g", "another");
}

/* The history in the gateway's memory is out of date. */
static void test_an_undo_of_a_move_made_elsewhere(void **state)
{
    struct pair *pair = *state;
    char args[2 * PATH_SIZE];
    const char *dir = pair->first.dir;
    put(&pair->first, "f", "one\n");
    put(&pair->first, "g", "another");
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/f\"," APPEND "}", dir);
    call_at(&pair->second, args);
    move_at(pair, &pair->first, "f", "h");
    move_at(pair, &pair->first, "g", "f");
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/f\"," UNDO "}", dir);
    call_at(&pair->second, args);
    has(&pair->first, "g", "another");
    assert_null(get(&pair->first, "f"));
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/h\"," UNDO "}", dir);
    call_at(&pair->second, args);
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s/files/f\"," UNDO "}", dir);
    call_at(&pair->second, args);
    has(&pair->first, "f", "one\n");
}

static uint64_t told_of(struct harness *harness, struct ng_str path)
{
    const struct ng_key key = {ng_str_of("files"), ng_str_of("shared"), path};
    const struct ng_doc *doc = NULL;
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_get(harness->gateway->store, call, &key, 0, &doc), NG_OK);
    uint64_t revision = doc->revision;
    call_unref(call);
    return revision;
}

static int run_changes(struct harness *harness, struct call *call, size_t count,
                       const struct ng_change *changes)
{
    return store_write_wait(harness->gateway->store, call, changes, count);
}

/* The end of a save is stored, its gateway does not learn that and stores it again: another
 * gateway has changed the file in between. */
static void test_a_save_that_ends_twice_is_told_once(void **state)
{
    struct pair *pair = *state;
    struct file_record record;
    struct ng_change changes[FILES_CHANGES_MAX];
    char path[PATH_SIZE];
    char args[2 * PATH_SIZE];
    struct ng_str name = in_root(&pair->first, path, "f");
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s\"," CREATE "}", path);
    call_at(&pair->second, args);
    struct call *call = harness_new_call(&pair->first);
    assert_int_equal(files_record_init(call, &record, FILE_CHANGE_EDIT), NG_OK);
    record.real = name;
    record.space = ng_str_of("shared");
    files_hash(ng_str_of("old"), record.before);
    files_hash(ng_str_of("new"), record.after);
    record.undo =
        (struct file_undo){.kind = NG_UNDO_EDIT, .op = record.op, .inserted = ng_str_of("")};
    size_t count = files_intent_changes(&record, changes);
    assert_int_equal(run_changes(&pair->first, call, count, changes), NG_OK);
    count = files_completion_changes(&record, changes);
    assert_int_equal(run_changes(&pair->first, call, count, changes), NG_OK);
    assert_int_equal(told_of(&pair->first, name), 2);
    (void)snprintf(args, sizeof(args),
                   "{\"command\":\"str_replace\",\"path\":\"%s\",\"old_str\":\"new\","
                   "\"new_str\":\"newer\"}",
                   path);
    call_at(&pair->second, args);
    assert_int_equal(told_of(&pair->second, name), 3);
    assert_int_equal(run_changes(&pair->first, call, count, changes), NG_OK);
    call_unref(call);
    assert_int_equal(told_of(&pair->second, name), 3);
}

/* ---- versions */

static void insert_at(struct pair *pair, struct harness *gateway, const char *text)
{
    char args[2 * PATH_SIZE];
    (void)snprintf(args, sizeof(args),
                   "{\"command\":\"insert\",\"path\":\"%s/files/f\",\"insert_line\":0,"
                   "\"new_str\":\"%s\"}",
                   pair->first.dir, text);
    call_at(gateway, args);
}

static void expect_versions(struct pair *pair, const char *text)
{
    char path[PATH_SIZE];
    struct buf out;
    buf_init(&out, (size_t)64 * 1024);
    versions_print(&pair->second, in_root(&pair->first, path, "f").data, "", &out);
    assert_string_equal(buf_cstr(&out), text);
    buf_done(&out);
}

/* One history, and nothing of the other gateway is taken for another program's. */
static void test_versions_by_both(void **state)
{
    struct pair *pair = *state;
    put(&pair->first, "f", "0\n");
    insert_at(pair, &pair->first, "1");
    insert_at(pair, &pair->second, "2");
    insert_at(pair, &pair->second, "3");
    insert_at(pair, &pair->first, "4");
    expect_versions(pair, "1 found local \"0\\n\" +2-0\n"
                          "2 updated local \"1\\n0\\n\" +1-0\n"
                          "3 updated local \"2\\n1\\n0\\n\" +1-0\n"
                          "4 updated local \"3\\n2\\n1\\n0\\n\" +1-0\n"
                          "5 updated local \"4\\n3\\n2\\n1\\n0\\n\" +1-0\n");
}

/* Another program saves what this gateway takes for the newest version. */
static void test_a_former_version_saved_by_another_program(void **state)
{
    struct pair *pair = *state;
    put(&pair->first, "f", "0\n");
    insert_at(pair, &pair->first, "1");
    insert_at(pair, &pair->second, "2");
    put(&pair->first, "f", "1\n0\n");
    insert_at(pair, &pair->first, "3");
    expect_versions(pair, "1 found local \"0\\n\" +2-0\n"
                          "2 updated local \"1\\n0\\n\" +1-0\n"
                          "3 updated local \"2\\n1\\n0\\n\" +1-0\n"
                          "4 found local \"1\\n0\\n\" +0-1\n"
                          "5 updated local \"3\\n1\\n0\\n\" +1-0\n");
}

static int count_look(void *user, struct call *call)
{
    size_t *looks = user;
    (void)call;
    ++*looks;
    return NG_OK;
}

/* Recovering may take long: what may not wait is looked for in between. */
static void test_recovery_lets_the_gateway_look(void **state)
{
    struct pair *pair = *state;
    struct gateway *gateway = pair->first.gateway;
    char path[PATH_SIZE];
    size_t looks = 0;
    leave_removal(&pair->first, in_root(&pair->first, path, "f"), "old");
    cluster_stop(gateway->cluster);
    cluster_each_look(gateway->cluster, count_look, &looks);
    atomic_store(&gateway->cluster->looked_ns, 0);
    struct call *call = harness_new_call(&pair->first);
    assert_int_equal(files_recover_all(gateway->files, call), NG_OK);
    call_unref(call);
    assert_int_equal(looks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_removal_before_a_file_made_elsewhere, setup_pair,
                                        teardown_pair),
        cmocka_unit_test_setup_teardown(test_a_removal_before_a_move_made_elsewhere, setup_pair,
                                        teardown_pair),
        cmocka_unit_test_setup_teardown(test_a_removal_before_a_move_undone_elsewhere,
                                        setup_pair, teardown_pair),
        cmocka_unit_test_setup_teardown(test_an_undo_of_a_move_made_elsewhere, setup_pair,
                                        teardown_pair),
        cmocka_unit_test_setup_teardown(test_a_save_that_ends_twice_is_told_once, setup_pair,
                                        teardown_pair),
        cmocka_unit_test_setup_teardown(test_versions_by_both, setup_pair, teardown_pair),
        cmocka_unit_test_setup_teardown(test_a_former_version_saved_by_another_program,
                                        setup_pair, teardown_pair),
        cmocka_unit_test_setup_teardown(test_recovery_lets_the_gateway_look, setup_pair,
                                        teardown_pair),
    };
    (void)hub_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
