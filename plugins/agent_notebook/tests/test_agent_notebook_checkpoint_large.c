/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_checkpoint_large.c - a journal that is larger than a checkpoint can be is
 * put back and forth all the same; checkpoints are deleted. */
#include "test_agent_notebook_checkpoint_rig.h"

#include "core/call/gateway.h"
#include "core/journal/journal.h"
#include "core/store/store.h"
#include "test_clock.h"

/* Not under a sanitizer: the texts would take minutes, and smaller ones fit into any journal.
 */
#ifdef NOTEGATE_SANITIZED
#define ON_LARGE(setup)
#else
#define ON_LARGE(setup) cmocka_unit_test_setup_teardown(test_large, setup, teardown),

/* Characters of one memory that take six bytes each where it is written down, twice. */
#define LARGE_CHARS ((size_t)60 * 1024)
#define LARGE_MEMORIES 200

/* More than 64 MiB in any journal. */
static void run_wild(struct bench *bench)
{
    static const char head[] = "{\"content\":\"";
    static const char escape[] = "\\u0001";
    size_t each = sizeof(escape) - 1;
    char *args = malloc(sizeof(head) + LARGE_CHARS * each + 3);
    assert_non_null(args);
    char *at = args + sizeof(head) - 1;
    memcpy(args, head, sizeof(head) - 1);
    for (size_t i = 0; i < LARGE_CHARS; i++, at += each) {
        memcpy(at, escape, each);
    }
    memcpy(at, "\"}", 3);
    for (int i = 0; i < LARGE_MEMORIES; i++) {
        struct answer answer =
            harness_call_as(&bench->harness, "ann", NULL, "memory_log", args);
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
    }
    free(args);
}

static int64_t timeline(struct bench *bench, int offset)
{
    int64_t count = 0;
    const struct ng_value *events = json_get(
        ask(bench, "memory_timeline", form(bench, "{\"limit\":10,\"offset\":%d}", offset)),
        "events");
    for (const struct ng_value *item = events->first; item != NULL; item = item->next) {
        count++;
    }
    return count;
}

static const char *restore(struct bench *bench, const char *id)
{
    const struct ng_value *done =
        ask(bench, "checkpoint_restore", form(bench, "{\"checkpoint_id\":\"%s\"}", id));
    return copied(bench, json_get(done, "previous_checkpoint_id")->text).data;
}

static void test_large(void **state)
{
    struct bench *bench = *state;
    remember(bench, "before");
    (void)ask(bench, "memory_summary", "{\"text\":\"as it was\"}");
    const char *first = snapshot(bench, "first");
    const char *of_first = form(bench, "{\"checkpoint_id\":\"%s\"}", first);
    run_wild(bench);
    (void)ask(bench, "memory_summary", "{\"text\":\"gone wild\"}");
    refused(bench, "checkpoint_snapshot", "{}", "TOO_LARGE", "journal.keep");
    refused(bench, "checkpoint_diff", of_first, "TOO_LARGE", "journal.keep");

    const char *wild = restore(bench, first);
    assert_int_equal(memories(bench), 1);
    assert_int_equal(timeline(bench, 0), 1);
    expect_member(ask(bench, "memory_summary", "{}"), "summary", "as it was");
    const struct ng_value *list = json_get(ask(bench, "checkpoint_list", "{}"), "checkpoints");
    expect_member(at(list, 0), "checkpoint_id", wild);
    assert_int_equal(json_get(at(list, 0), "kept_aside")->type, NG_TYPE_TRUE);
    refused(bench, "checkpoint_diff",
            form(bench, "{\"checkpoint_id\":\"%s\",\"against\":\"%s\"}", first, wild),
            "TOO_LARGE", "checkpoint_restore");

    /* It is undone, and the undo as well; kept states stay. */
    remember(bench, "since");
    const char *quiet = restore(bench, wild);
    expect_member(ask(bench, "memory_summary", "{}"), "summary", "gone wild");
    assert_int_equal(timeline(bench, LARGE_MEMORIES - 5), 6);
    const char *again = restore(bench, quiet);
    assert_int_equal(memories(bench), 2);

    (void)ask(bench, "checkpoint_delete", form(bench, "{\"checkpoint_id\":\"%s\"}", wild));
    refused(bench, "checkpoint_restore", form(bench, "{\"checkpoint_id\":\"%s\"}", wild),
            "NOT_FOUND", wild);
    (void)restore(bench, again);
    assert_int_equal(timeline(bench, LARGE_MEMORIES - 5), 6);
}

#endif

/* ---- comparing ---- */

/* Under a sanitizer, with its memory and its time, fewer do. */
#ifdef NOTEGATE_SANITIZED
#define MANY 2000
#else
#define MANY 100000
#endif

/* A checkpoint with so many memories of one day, as a busy agent leaves. */
static void put_many(struct bench *bench, const char *id, int count)
{
    static const char *const parts[] = {"days", "references", "memories"};
    void *handle = NULL;
    const struct ng_journal *journal = journal_vtable(bench->harness.gateway->journal, &handle);
    struct call *call = harness_new_call(&bench->harness);
    struct buf buf;
    buf_init(&buf, CALL_MEMORY_MAX);
    buf_printf(&buf,
               "{\"format\":\"notegate-checkpoint-1\",\"checkpoint_id\":\"%s\",\"entries\":[],"
               "\"journal\":{\"format\":\"notegate-journal-1\"",
               id);
    for (size_t part = 0; part < NG_COUNT(parts); part++) {
        buf_printf(&buf, ",\"%s\":[", parts[part]);
        for (int i = 0; part != 1 && i < count; i++) {
            buf_printf(&buf,
                       "%s{\"date\":\"2026-02-16\",\"event_id\":\"%012d\",\"kind\":\"memory\","
                       "\"seq\":%d,\"time\":1771200000000,\"agent\":\"ann\",\"action\":"
                       "\"logged\",\"source\":\"thought\",\"score\":0.5,\"tags\":[\"a\",\"b\"],"
                       "\"content\":\"what the agent thought at that time of the day\"}",
                       i > 0 ? "," : "", i, i);
        }
        buf_add_char(&buf, ']');
    }
    buf_add_str(&buf, ng_str_of(",\"summary\":null}}"));
    call->arena.max = CALL_BACKGROUND_MEMORY_MAX;
    assert_int_equal(journal->checkpoint_put(handle, &call->pub, ng_str_of("shared"),
                                             ng_str_of(id), buf_str(&buf)),
                     NG_OK);
    buf_done(&buf);
    call_unref(call);
}

static void test_diff_many(void **state)
{
    struct bench *bench = *state;
    put_many(bench, "some", MANY / 2);
    put_many(bench, "many", MANY);
    const struct ng_value *diff =
        ask(bench, "checkpoint_diff", "{\"checkpoint_id\":\"some\",\"against\":\"many\"}");
    assert_int_equal(number(json_get(diff, "memories"), "added_count"), MANY / 2);
    assert_int_equal(number(at(json_get(diff, "days"), 0), "added"), MANY / 2);
    diff = ask(bench, "checkpoint_diff", "{\"checkpoint_id\":\"many\"}");
    assert_int_equal(number(json_get(diff, "memories"), "removed_count"), MANY);
}

/* ---- deleting ---- */

static void test_delete(void **state)
{
    struct bench *bench = *state;
    const char *first = snapshot(bench, "first");
    const char *second = snapshot(bench, "second");
    refused(bench, "checkpoint_delete", "{\"checkpoint_id\":\"nope\"}", "NOT_FOUND", "nope");
    const struct ng_value *gone =
        ask(bench, "checkpoint_delete", form(bench, "{\"checkpoint_id\":\"%s\"}", first));
    expect_member(gone, "status", "deleted");
    expect_member(gone, "checkpoint_id", first);
    refused(bench, "checkpoint_delete", form(bench, "{\"checkpoint_id\":\"%s\"}", first),
            "NOT_FOUND", first);
    const struct ng_value *list = ask(bench, "checkpoint_list", "{}");
    assert_int_equal(number(list, "total"), 1);
    expect_member(at(json_get(list, "checkpoints"), 0), "checkpoint_id", second);
    /* A part of an id tells which was meant. */
    struct answer answer = harness_call_as(&bench->harness, "ann", NULL, "checkpoint_delete",
                                           form(bench, "{\"checkpoint_id\":\"%.8s\"}", second));
    assert_int_equal(answer.rc, NG_ENOTFOUND);
    assert_non_null(strstr(answer.hint, second));
    answer_free(&answer);
}

/* Versions that only a checkpoint kept go when it is gone. */
static void test_unpinned(void **state)
{
    struct bench *bench = *state;
    struct gateway *gateway = bench->harness.gateway;
    test_clock_begin_day();
    const char *page = page_new(bench, "one");
    page_set(bench, page, "two");
    const char *first = snapshot(bench, "first");
    page_set(bench, page, "three");
    page_set(bench, page, "four");
    (void)ask(bench, "checkpoint_delete", form(bench, "{\"checkpoint_id\":\"%s\"}", first));
    struct call *call = harness_new_call(&bench->harness);
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    store_set_keep(gateway->store, 1);
    assert_int_equal(store_maintain(gateway->store, call), NG_OK);
    struct ng_key key = {ng_str_of("pages"), ng_str_of("shared"), ng_str_of(page)};
    const struct ng_doc *doc = NULL;
    assert_int_equal(store_get(gateway->store, call, &key, 2, &doc), NG_ENOTFOUND);
    call_unref(call);
    test_clock_reset();
}

#define ON(setup)                                                                              \
    ON_LARGE(setup)                                                                            \
    cmocka_unit_test_setup_teardown(test_diff_many, setup, teardown),                          \
        cmocka_unit_test_setup_teardown(test_delete, setup, teardown)

int main(void)
{
    const struct CMUnitTest documents[] = {
        ON(setup_sqlite),
        cmocka_unit_test_setup_teardown(test_unpinned, setup_sqlite, teardown),
    };
    const struct CMUnitTest redis[] = {ON(setup_redis)};
    int failed = cmocka_run_group_tests_name("documents", documents, NULL, NULL);
    if (getenv("NOTEGATE_TEST_REDIS_URI") == NULL) {
        (void)fprintf(stderr, "NOTEGATE_TEST_REDIS_URI is not set: not tried in Redis\n");
        return failed;
    }
    return failed + cmocka_run_group_tests_name("redis", redis, NULL, NULL);
}
