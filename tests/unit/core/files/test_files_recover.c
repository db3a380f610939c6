/* SPDX-License-Identifier: MIT */
/* test_files_recover.c - crash recovery at the next start or edit.
 */
#include "test_files_rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/str.h"
#include "core/call/plugin.h"
#include "core/files/files_state.h"
#include "core/store/idempotency.h"

/* Bytes of the events that a test reads. */
#define TOLD_SIZE 256

/* Leaves what a killed save leaves: the intent of this call, committed. */
static void leave_intent_of(struct harness *harness, struct call *call, enum file_change kind,
                            const char *name, const char *before, const char *after,
                            char op[17])
{
    char path[PATH_SIZE];
    struct file_record record;
    struct ng_change changes[FILES_CHANGES_MAX];
    call->may_block = true;
    assert_int_equal(files_record_init(call, &record, kind), NG_OK);
    record.real = in_root(harness, path, name);
    record.space = ng_str_of("shared");
    if (before != NULL) {
        files_hash(ng_str_of(before), record.before);
    }
    if (after != NULL) {
        files_hash(ng_str_of(after), record.after);
    }
    record.undo.kind = before != NULL ? NG_UNDO_EDIT : NG_UNDO_CREATE;
    record.undo.inserted = ng_str_of("");
    if (before != NULL && after != NULL) {
        assert_int_equal(
            files_undo_make(call, ng_str_of(before), ng_str_of(after), &record.undo), NG_OK);
    }
    record.undo.op = record.op;
    memcpy(record.undo.before, record.before, sizeof(record.before));
    memcpy(record.undo.after, record.after, sizeof(record.after));
    memcpy(op, record.op.data, 17);
    size_t count = files_intent_changes(&record, changes);
    assert_int_equal(store_write_wait(harness->gateway->store, call, changes, count), NG_OK);
}

static void leave_intent(struct harness *harness, enum file_change kind, const char *name,
                         const char *before, const char *after, char op[17])
{
    struct call *call = harness_new_call(harness);
    leave_intent_of(harness, call, kind, name, before, after, op);
    call_unref(call);
}

static void leave_temp(struct harness *harness, const char *op, const char *ending,
                       const char *text)
{
    char name[64];
    (void)snprintf(name, sizeof(name), FILES_TEMP_PREFIX "%s%s", op, ending);
    put(harness, name, text);
}

static void test_recovers_done(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "after");
    leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "before");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    has(harness, "f", "after");
    edit_works(harness, UNDO, "f"); /* the completion was written: it can be undone */
    has(harness, "f", "before");
}

static void test_recovers_not_done(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "before");
    leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_temp(harness, op, FILES_TEMP_WRITING, "aft");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    has(harness, "f", "before");
    edit_fails(harness, UNDO, "f", "NO_HISTORY", "No edit history found");
    leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "after");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    has(harness, "f", "before");
}

/* Killed between the exchange and the look at what came out: another program's save. */
static void test_recovers_foreign_save(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "after");
    leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "saved by another program");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    has(harness, "f", "saved by another program");
}

/* One try, at which this allocation fails. */
static int recover_failing(struct harness *harness, const char *name, long allocation)
{
    char path[PATH_SIZE];
    struct call *call = harness_new_call(harness);
    const struct ng_doc *doc = NULL;
    const struct ng_key key = {ng_str_of(FILES_INTENTS), ng_str_of(FILES_INTENT_SPACE),
                               in_root(harness, path, name)};
    call->may_block = true;
    assert_int_equal(store_get(harness->gateway->store, call, &key, 0, &doc), NG_OK);
    int rc = NG_OK;
    if (doc->revision != 0 && !doc->deleted) {
        alloc_fail_after(allocation);
        rc = files_recover(harness->gateway->files, call, key.space, doc->json, doc->text);
        alloc_fail_after(-1);
    }
    call_unref(call);
    return rc;
}

/* If that was unknown for want of memory, it is checked again. */
static void test_recovers_foreign_save_without_memory(void **state)
{
    struct harness *harness = *state;
    char op[17];
    long failed = 0;
    put(harness, "f", "after");
    leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "saved by another program");
    while (recover_failing(harness, "f", failed) != NG_OK) {
        assert_true(++failed < 1000);
    }
    assert_true(failed > 0);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    has(harness, "f", "saved by another program");
}

/* Another gateway has built on the save that this intent tells of. */
static void mark_happened(struct harness *harness, const char *name, const char *after)
{
    char path[PATH_SIZE];
    struct file_record record;
    struct ng_change changes[FILES_CHANGES_MAX];
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    assert_int_equal(files_record_init(call, &record, FILE_CHANGE_EDIT), NG_OK);
    record.real = in_root(harness, path, name);
    files_hash(ng_str_of(after), record.before);
    record.marks[record.mark_count++] =
        (struct file_built_on){ng_str_of(FILES_INTENT_SPACE), record.real, record.before};
    size_t count = files_intent_changes(&record, changes);
    assert_int_equal(store_write_wait(harness->gateway->store, call, &changes[count - 1], 1),
                     NG_OK);
    call_unref(call);
}

static void has_temp(struct harness *harness, const char *op, const char *text)
{
    char name[64];
    (void)snprintf(name, sizeof(name), FILES_TEMP_PREFIX "%s" FILES_TEMP_COMPLETE, op);
    has(harness, name, text);
}

/* If a newer file has its name already, it is kept beside that. */
static void test_recovers_foreign_save_that_is_outdated(void **state)
{
    struct harness *harness = *state;
    char edit[17];
    char mark[17];
    char removal[17];
    put(harness, "f", "newer");
    leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", edit);
    leave_temp(harness, edit, FILES_TEMP_COMPLETE, "edited by another program");
    put(harness, "g", "newer");
    leave_intent(harness, FILE_CHANGE_EDIT, "g", "before", "after", mark);
    leave_temp(harness, mark, FILES_TEMP_COMPLETE, "edited by another program");
    mark_happened(harness, "g", "after");
    put(harness, "h", "newer");
    leave_intent(harness, FILE_CHANGE_DELETE, "h", "before", NULL, removal);
    leave_temp(harness, removal, FILES_TEMP_COMPLETE, "edited by another program");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    has_temp(harness, edit, "edited by another program");
    has_temp(harness, mark, "edited by another program");
    has_temp(harness, removal, "edited by another program");
    has(harness, "f", "newer");
    has(harness, "g", "newer");
    has(harness, "h", "newer");
}

static void test_recovers_someone_else_saved(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "something else");
    leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_intent(harness, FILE_CHANGE_CREATE, "gone", NULL, "after", op);
    leave_intent(harness, FILE_CHANGE_CREATE, "no/such/folder", NULL, "after", op);
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    has(harness, "f", "something else");
    edit_fails(harness, UNDO, "f", "NO_HISTORY", "No edit history found");
}

#define SECTOR 512

static void leave_write_in_place(struct harness *harness, char op[17], char *before,
                                 char *after)
{
    memset(before, 'b', 3 * SECTOR);
    memset(after, 'a', 2 * SECTOR);
    before[3 * SECTOR] = '\0';
    after[2 * SECTOR] = '\0';
    leave_intent(harness, FILE_CHANGE_EDIT, "f", before, after, op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, after);
    leave_temp(harness, op, FILES_TEMP_OLD, before);
}

/* A file with several names, or a mount: the write was cut off. */
static void test_recovers_write_in_place(void **state)
{
    struct harness *harness = *state;
    char op[17];
    char before[3 * SECTOR + 1];
    char after[2 * SECTOR + 1];
    char torn[3 * SECTOR + 1];
    long failed = 0;
    put(harness, "f", "");
    leave_write_in_place(harness, op, before, after);
    memcpy(torn, before, sizeof(torn));
    memcpy(torn, after, SECTOR);
    put(harness, "f", torn);
    while (recover_failing(harness, "f", failed) != NG_OK) {
        assert_true(++failed < 1000);
    }
    assert_true(failed > 0);
    has(harness, "f", before);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    edit_fails(harness, UNDO, "f", "NO_HISTORY", "No edit history found");
}

/* Another program has saved since: its text is not torn. */
static void test_recovers_save_after_write_in_place(void **state)
{
    struct harness *harness = *state;
    char op[17];
    char name[64];
    char before[3 * SECTOR + 1];
    char after[2 * SECTOR + 1];
    char saved[2 * SECTOR + 1];
    leave_write_in_place(harness, op, before, after);
    memcpy(saved, after, sizeof(saved));
    saved[SECTOR + 1] = 'b';
    put(harness, "f", saved);
    harness_reopen(harness);
    has(harness, "f", saved);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 1);
    (void)snprintf(name, sizeof(name), FILES_TEMP_PREFIX "%s" FILES_TEMP_OLD, op);
    has(harness, name, before);
}

static void test_recovers_create_and_delete(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "made", "after");
    leave_intent(harness, FILE_CHANGE_CREATE, "made", NULL, "after", op);
    leave_intent(harness, FILE_CHANGE_DELETE, "removed", "before", NULL, op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "before");
    leave_intent(harness, FILE_CHANGE_DELETE, "newer", "before", NULL, op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "saved by another program");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    assert_null(get(harness, "removed"));
    has(harness, "newer", "saved by another program");
    edit_works(harness, UNDO, "made");
    assert_null(get(harness, "made"));
}

/* A move from f to g that was killed: its intent, made when f was as it is now. */
static void leave_move(struct harness *harness)
{
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    struct stat st;
    struct file_record record;
    struct ng_change changes[FILES_CHANGES_MAX];
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    assert_int_equal(files_record_init(call, &record, FILE_CHANGE_MOVE), NG_OK);
    record.real = in_root(harness, from, "f");
    assert_int_equal(stat(from, &st), 0);
    files_mark(&st, record.mark);
    record.to = in_root(harness, to, "g");
    record.space = record.to_space = ng_str_of("shared");
    files_hash(ng_str_of("text"), record.before);
    files_hash(ng_str_of("text"), record.after);
    record.undo.kind = NG_UNDO_MOVE;
    record.undo.op = record.op;
    record.undo.former = record.real;
    memcpy(record.undo.before, record.before, sizeof(record.before));
    memcpy(record.undo.after, record.after, sizeof(record.after));
    record.undo.inserted = ng_str_of("");
    size_t count = files_intent_changes(&record, changes);
    assert_int_equal(store_write_wait(harness->gateway->store, call, changes, count), NG_OK);
    call_unref(call);
}

/* Copied to another file system; the old one had not gone yet. */
static void test_recovers_a_move_that_was_a_copy(void **state)
{
    struct harness *harness = *state;
    put(harness, "f", "text");
    leave_move(harness);
    put(harness, "g", "text");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    has(harness, "g", "text");
    assert_null(get(harness, "f"));
    edit_works(harness, UNDO, "g");
    has(harness, "f", "text");
}

/* It had moved the file; then f was made again, of the same content. What was told to be there
 * is there, and can be taken back. */
static void test_recovers_a_move_whose_file_was_made_again(void **state)
{
    struct harness *harness = *state;
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    char args[PATH_SIZE + 64];
    put(harness, "f", "text");
    leave_move(harness);
    (void)in_root(harness, from, "f");
    (void)in_root(harness, to, "g");
    assert_int_equal(rename(from, to), 0);
    put(harness, "h", "text");
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s\"", from);
    edit_works(harness, args, "h");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    has(harness, "g", "text");
    has(harness, "f", "text");
    edit_works(harness, UNDO, "f");
    assert_null(get(harness, "f"));
    has(harness, "h", "text");
}

/* An intent whose completion failed while the gateway ran on: the next edit settles it. */
static void test_recovers_at_the_next_edit(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "after\n");
    leave_intent(harness, FILE_CHANGE_EDIT, "f", "before\n", "after\n", op);
    edit_works(harness, APPEND, "f");
    has(harness, "f", "after\nx\n");
    assert_int_equal(count_intents(harness), 0);
    /* The intent has no version of what it found. */
    versions_are(harness, "f",
                 "1 created local \"after\\n\" +2-0 gap\n"
                 "2 updated local \"after\\nx\\n\" +1-0\n");
    edit_works(harness, UNDO, "f");
    edit_works(harness, UNDO, "f");
    has(harness, "f", "before\n");
}

/* Adds the event of a file as words to the text. */
static int tell(void *user, const struct ng_event *event)
{
    char *text = user;
    if (str_is(event->key.collection, FILES_EVENTS)) {
        size_t len = strlen(text);
        (void)snprintf(text + len, TOLD_SIZE - len, "%.*s %.*s %.*s;", (int)event->agent.len,
                       event->agent.data, (int)event->tool.len, event->tool.data,
                       (int)event->action.len, event->action.data);
    }
    return 0;
}

/* The event of a recovered change names the agent and the tool that made the change. */
static void test_recovers_for_the_author(void **state)
{
    struct harness *harness = *state;
    char op[17];
    char told[TOLD_SIZE] = "";
    for (int i = 0; i < 2; i++) {
        struct call *call = harness_new_call(harness);
        call->caller.agent = ng_str_of("ada");
        call->pub.tool = ng_str_of("editor");
        put(harness, "f", "after\n");
        leave_intent_of(harness, call, FILE_CHANGE_EDIT, "f", "before\n", "after\n", op);
        call_unref(call);
        if (i == 0) {
            edit_works(harness, APPEND, "f");
        } else {
            harness_reopen(harness);
        }
    }
    struct call *reader = harness_new_call(harness);
    reader->may_block = true;
    assert_int_equal(store_changes(harness->gateway->store, reader, 0, 1000, tell, told),
                     NG_OK);
    call_unref(reader);
    assert_string_equal(told,
                        "ada editor updated;local fileEditor updated;ada editor updated;");
}

/* Keeps an answer to it. */
static void answer_it(struct harness *harness, struct call *call)
{
    struct ng_answer answer;
    assert_int_equal(idempotency_answer(call, &answer), NG_OK);
    assert_int_equal(store_write_answered_wait(harness->gateway->store, call, NULL, 0, &answer),
                     NG_OK);
}

/* The answer is there, the intent is, too: another gateway was faster, or the end of the save
 * is only half carried out. The next caller has another key, or none. */
static void test_recovers_what_was_answered(void **state)
{
    struct harness *harness = *state;
    char op[17];
    struct call *call = keyed_call(harness);
    put(harness, "f", "after\n");
    leave_intent_of(harness, call, FILE_CHANGE_EDIT, "f", "before\n", "after\n", op);
    answer_it(harness, call);
    idempotency_end(call);
    call_unref(call);
    edit_works(harness, APPEND, "f");
    has(harness, "f", "after\nx\n");
    assert_int_equal(count_intents(harness), 0);
    edit_works(harness, UNDO, "f");
    edit_works(harness, UNDO, "f");
    has(harness, "f", "before\n");
}

/* Once another file is there, nothing tells any more that the removal had happened, and its
 * repeat would remove that file. */
static void test_recovers_a_removal_before_a_move_to_its_place(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char args[2 * PATH_SIZE];
    char op[17];
    bool answered = false;
    struct ng_str name = in_root(harness, path, "f");
    struct call *call = keyed_call(harness);
    leave_intent_of(harness, call, FILE_CHANGE_DELETE, "f", "old", NULL, op);
    idempotency_end(call);
    call_unref(call);
    struct call *repeat = keyed_call(harness);
    put(harness, "g", "another");
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s\"", path);
    edit_works(harness, args, "g");
    assert_int_equal(files_replay_recover(harness->gateway->files, repeat, &name, 1, &answered),
                     NG_OK);
    assert_true(answered);
    idempotency_end(repeat);
    call_unref(repeat);
    has(harness, "f", "another");
    assert_int_equal(count_intents(harness), 0);
}

/* A repeat found no answer when it began, then waited for the file; the holder of the file
 * recovered the intent of the first attempt. */
static void test_recoverd_by_another_meanwhile(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    bool answered = false;
    struct ng_str name = in_root(harness, path, "f");
    struct call *repeat = keyed_call(harness);
    assert_int_equal(files_replay_recover(harness->gateway->files, repeat, &name, 1, &answered),
                     NG_OK);
    assert_false(answered);
    answer_it(harness, repeat);
    assert_int_equal(files_replay_recover(harness->gateway->files, repeat, &name, 1, &answered),
                     NG_OK);
    assert_true(answered);
    idempotency_end(repeat);
    call_unref(repeat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_recovers_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_not_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_foreign_save, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_foreign_save_without_memory, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_recovers_foreign_save_that_is_outdated, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_recovers_someone_else_saved, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_write_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_save_after_write_in_place, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_recovers_create_and_delete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_a_move_that_was_a_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_a_move_whose_file_was_made_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_recovers_at_the_next_edit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_for_the_author, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_what_was_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovers_a_removal_before_a_move_to_its_place,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_recoverd_by_another_meanwhile, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
