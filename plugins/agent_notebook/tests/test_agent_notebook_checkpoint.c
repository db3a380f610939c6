/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_checkpoint.c - checkpoints: taking, listing, differences, restoring,
 * versions that stay. */
#include "test_agent_notebook_checkpoint_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call/gateway.h"
#include "core/journal/journal.h"
#include "core/store/store.h"
#include "test_clock.h"

static void page_drop(struct bench *bench, const char *id)
{
    (void)ask(bench, "notebook_delete",
              form(bench, "{\"collection\":\"pages\",\"notebook_id\":\"%s\"}", id));
}

static const struct ng_value *restore(struct bench *bench, const char *id, bool notebooks)
{
    return ask(bench, "checkpoint_restore",
               form(bench, "{\"checkpoint_id\":\"%s\",\"notebooks\":%s}", id,
                    notebooks ? "true" : "false"));
}

/* A checkpoint as it is kept. */
static struct ng_str checkpoint_json(struct bench *bench, struct call *call, struct ng_str id)
{
    void *handle = NULL;
    const struct ng_journal *journal = journal_vtable(bench->harness.gateway->journal, &handle);
    struct ng_str json = {NULL, 0};
    assert_int_equal(
        journal->checkpoint_get(handle, &call->pub, ng_str_of("shared"), id, &json), NG_OK);
    return json;
}

/* The members of one entry in the answer; NULL: none. */
static const struct ng_value *moved(const struct ng_value *answer, const char *id)
{
    const struct ng_value *list = json_get(json_get(answer, "notebooks"), "moved");
    for (const struct ng_value *item = list->first; item != NULL; item = item->next) {
        if (str_is(json_get(item, "notebook_id")->text, id)) {
            return item;
        }
    }
    return NULL;
}

/* ---- taking and listing ---- */

static void test_snapshot(void **state)
{
    struct bench *bench = *state;
    const char *page = page_new(bench, "the content of the page");
    page_set(bench, page, "its next content");
    remember(bench, "something");
    (void)ask(bench, "memory_summary", "{\"text\":\"long ago\"}");
    const struct ng_value *made = ask(bench, "checkpoint_snapshot", "{\"label\":\"first\"}");
    expect_member(made, "status", "kept");
    expect_member(made, "label", "first");
    expect_member(made, "created_by", "agent:ann");
    assert_int_equal(number(made, "notebooks"), 1);
    assert_int_equal(number(made, "memories"), 1);
    assert_int_equal(number(made, "daily_entries"), 3);
    struct ng_str id = copied(bench, json_get(made, "checkpoint_id")->text);
    assert_int_equal(id.len, 36);
    (void)snapshot(bench, "second");

    const struct ng_value *list = ask(bench, "checkpoint_list", "{}");
    assert_int_equal(number(list, "total"), 2);
    expect_member(at(json_get(list, "checkpoints"), 0), "label", "second");
    expect_member(at(json_get(list, "checkpoints"), 1), "label", "first");
    expect_member(at(json_get(list, "checkpoints"), 1), "checkpoint_id", id.data);
    list = ask(bench, "checkpoint_list", "{\"limit\":1,\"offset\":1}");
    assert_int_equal(json_get(list, "checkpoints")->count, 1);
    expect_member(at(json_get(list, "checkpoints"), 0), "label", "first");

    /* Ids and versions, never content. */
    struct call *call = harness_new_call(&bench->harness);
    void *handle = NULL;
    const struct ng_journal *journal = journal_vtable(bench->harness.gateway->journal, &handle);
    struct ng_str json = {NULL, 0};
    assert_int_equal(
        journal->checkpoint_get(handle, &call->pub, ng_str_of("shared"), id, &json), NG_OK);
    assert_null(memmem(json.data, json.len, "\"text\"", 6));
    const struct ng_value *body = NULL;
    struct json_error error;
    assert_int_equal(json_parse(&call->arena, json, 100, &body, &error), NG_OK);
    const struct ng_value *entry = at(json_get(body, "entries"), 0);
    assert_int_equal(entry->count, 3);
    expect_member(entry, "collection", "pages");
    expect_member(entry, "id", page);
    assert_int_equal(number(entry, "version"), 2);
    call_unref(call);
}

static void test_refused(void **state)
{
    struct bench *bench = *state;
    refused(bench, "checkpoint_restore", "{\"checkpoint_id\":\"nope\"}", "NOT_FOUND", "nope");
    refused(bench, "checkpoint_diff", "{\"checkpoint_id\":\"nope\"}", "NOT_FOUND", "nope");
    const char *one = snapshot(bench, "one");
    refused(bench, "checkpoint_diff",
            form(bench, "{\"checkpoint_id\":\"%s\",\"against\":\"nope\"}", one), "NOT_FOUND",
            "nope");
    refused(bench, "checkpoint_restore", "{}", "INVALID_INPUT", "checkpoint_id");
    /* Nothing was begun. */
    assert_int_equal(number(ask(bench, "checkpoint_list", "{}"), "total"), 1);
}

/* ---- differences ---- */

static void test_diff(void **state)
{
    struct bench *bench = *state;
    const char *kept = page_new(bench, "kept");
    const char *changed = page_new(bench, "one");
    const char *dropped = page_new(bench, "to be dropped");
    remember(bench, "before");
    const char *first = snapshot(bench, "first");
    const struct ng_value *same =
        ask(bench, "checkpoint_diff", form(bench, "{\"checkpoint_id\":\"%s\"}", first));
    assert_int_equal(json_get(same, "days")->count, 0);
    assert_int_equal(json_get(json_get(same, "summary"), "changed")->type, NG_TYPE_FALSE);
    assert_int_equal(json_get(json_get(same, "notebooks"), "moved")->count, 0);

    page_set(bench, changed, "two");
    page_drop(bench, dropped);
    const char *made = page_new(bench, "made");
    remember(bench, "after");
    (void)ask(bench, "memory_summary", "{\"text\":\"new\"}");
    const struct ng_value *diff =
        ask(bench, "checkpoint_diff", form(bench, "{\"checkpoint_id\":\"%s\"}", first));
    expect_member(diff, "against", "present");
    int64_t added = 0;
    const struct ng_value *days = json_get(diff, "days");
    for (const struct ng_value *day = days->first; day != NULL; day = day->next) {
        added += number(day, "added");
        assert_int_equal(number(day, "removed"), 0);
    }
    assert_int_equal(added, 4);
    const struct ng_value *changes = json_get(diff, "memories");
    assert_int_equal(number(changes, "added_count"), 1);
    assert_int_equal(number(changes, "removed_count"), 0);
    expect_member(at(json_get(changes, "added"), 0), "content", "after");
    expect_member(json_get(diff, "summary"), "after", "new");
    assert_int_equal(json_get(json_get(diff, "summary"), "before")->type, NG_TYPE_NULL);
    assert_null(moved(diff, kept));
    expect_member(moved(diff, changed), "since", "updated");
    assert_int_equal(number(moved(diff, changed), "checkpoint_version"), 1);
    assert_int_equal(number(moved(diff, changed), "version"), 2);
    expect_member(moved(diff, dropped), "since", "deleted");
    expect_member(moved(diff, made), "since", "created");
    /* Two kept ones compare the same way, also backwards. */
    const char *second = snapshot(bench, "second");
    diff = ask(bench, "checkpoint_diff",
               form(bench, "{\"checkpoint_id\":\"%s\",\"against\":\"%s\"}", second, first));
    expect_member(diff, "against", first);
    assert_int_equal(number(json_get(diff, "memories"), "removed_count"), 1);
    expect_member(moved(diff, made), "since", "deleted");
    expect_member(moved(diff, dropped), "since", "created");
}

/* ---- restoring ---- */

static void test_restore_memory(void **state)
{
    struct bench *bench = *state;
    const char *page = page_new(bench, "one");
    remember(bench, "before");
    (void)ask(bench, "memory_summary", "{\"text\":\"then\"}");
    const char *first = snapshot(bench, "first");
    page_set(bench, page, "two");
    remember(bench, "after");
    (void)ask(bench, "memory_summary", "{\"text\":\"now\"}");

    const struct ng_value *back = restore(bench, first, false);
    expect_member(back, "status", "restored");
    assert_int_equal(json_get(back, "notebooks_restored")->type, NG_TYPE_FALSE);
    const char *previous = copied(bench, json_get(back, "previous_checkpoint_id")->text).data;
    assert_int_equal(memories(bench), 1);
    expect_member(ask(bench, "memory_summary", "{}"), "summary", "then");
    assert_int_equal(json_get(ask(bench, "memory_timeline", "{}"), "events")->count, 2);
    expect_member(moved(back, page), "outcome", "kept");
    page_is(bench, page, "two", 2);

    /* The undoing. */
    back = restore(bench, previous, false);
    assert_int_equal(memories(bench), 2);
    expect_member(ask(bench, "memory_summary", "{}"), "summary", "now");
    assert_int_equal(json_get(ask(bench, "memory_timeline", "{}"), "events")->count, 4);
    assert_null(moved(back, page));
    /* It goes on taking memories. */
    remember(bench, "later");
    assert_int_equal(memories(bench), 3);
}

static void test_restore_notebooks(void **state)
{
    struct bench *bench = *state;
    const char *same = page_new(bench, "same");
    const char *changed = page_new(bench, "one");
    const char *dropped = page_new(bench, "dropped");
    const char *first = snapshot(bench, "first");
    page_set(bench, changed, "two");
    page_set(bench, changed, "three");
    page_drop(bench, dropped);
    const char *made = page_new(bench, "made since");

    const struct ng_value *back = restore(bench, first, true);
    assert_int_equal(number(json_get(back, "notebooks"), "restored"), 2);
    page_is(bench, same, "same", 1);
    page_is(bench, changed, "one", 4);
    page_is(bench, dropped, "dropped", 3);
    page_is(bench, made, "made since", 1);
    assert_null(moved(back, same));
    expect_member(moved(back, changed), "outcome", "restored");
    assert_int_equal(number(moved(back, changed), "new_version"), 4);
    expect_member(moved(back, dropped), "outcome", "restored");
    expect_member(moved(back, made), "outcome", "kept");
    /* The references of what was restored come on top of the memory that is back. */
    const struct ng_value *events = json_get(ask(bench, "memory_timeline", "{}"), "events");
    assert_int_equal(events->count, 5);
    expect_member(at(events, 0), "action", "updated");
    expect_member(at(events, 1), "action", "updated");

    const char *previous = copied(bench, json_get(back, "previous_checkpoint_id")->text).data;
    (void)restore(bench, previous, true);
    page_is(bench, changed, "three", 5);
    page_is(bench, dropped, "dropped", 3); /* made since that one: kept */
}

/* Many entries go back in many steps; none is missed, and those that changed meanwhile stay. */
static void test_restore_many(void **state)
{
    struct bench *bench = *state;
    enum { PAGES = 200 };
    const char *pages[PAGES];
    for (int i = 0; i < PAGES; i++) {
        pages[i] = page_new(bench, "one");
    }
    const char *first = snapshot(bench, "first");
    for (int i = 0; i < PAGES; i++) {
        page_set(bench, pages[i], "two");
    }
    const struct ng_value *back = restore(bench, first, true);
    assert_int_equal(number(json_get(back, "notebooks"), "restored"), PAGES);
    for (int i = 0; i < PAGES; i++) {
        page_is(bench, pages[i], "one", 3);
    }
}

/* A memory that is logged during a restore is not lost. */
struct logger {
    struct bench *bench;
    atomic_bool stop;
    atomic_int allowed; /* that it may log, so that the journal stays small on a slow machine */
    atomic_int logged;
    int failed;
};

static void *logger_run(void *user)
{
    struct logger *logger = user;
    while (!atomic_load(&logger->stop)) {
        char args[64];
        int number = atomic_load(&logger->logged);
        if (number >= atomic_load(&logger->allowed)) {
            (void)usleep(100);
            continue;
        }
        (void)snprintf(args, sizeof(args), "{\"content\":\"meanwhile %d\"}", number);
        struct answer answer =
            harness_call_as(&logger->bench->harness, "bob", NULL, "memory_log", args);
        logger->failed += answer.rc != NG_OK;
        answer_free(&answer);
        atomic_fetch_add(&logger->logged, 1);
    }
    return NULL;
}

static void test_restore_while_logging(void **state)
{
    struct bench *bench = *state;
    remember(bench, "first");
    const char *id = snapshot(bench, "first");
    struct logger logger = {.bench = bench};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, logger_run, &logger), 0);
    const struct ng_value *back = NULL;
    for (int i = 0; i < 10; i++) {
        /* Each round has one of its own: what a round before kept is not in the last one's. The
         * next that is acknowledged may have been written before the round, the second not. */
        int before = atomic_load(&logger.logged);
        atomic_fetch_add(&logger.allowed, 40);
        while (atomic_load(&logger.logged) < before + 2) {
            (void)usleep(100);
        }
        back = restore(bench, id, false);
    }
    atomic_store(&logger.stop, true);
    (void)pthread_join(thread, NULL);
    assert_int_equal(logger.failed, 0);
    /* All that was acknowledged is in what the last restore kept, or is there. */
    struct ng_str previous = copied(bench, json_get(back, "previous_checkpoint_id")->text);
    const struct ng_value *now =
        json_get(ask(bench, "memory_timeline", "{\"limit\":1000}"), "events");
    int last = atomic_load(&logger.logged) - 1;
    char want[64];
    for (const struct ng_value *item = now->first; item != NULL; item = item->next) {
        if (str_is(json_get(item, "content")->text, "first")) {
            continue;
        }
        (void)snprintf(want, sizeof(want), "meanwhile %d", last--);
        expect_member(item, "content", want);
    }
    struct call *call = harness_new_call(&bench->harness);
    struct ng_str json = checkpoint_json(bench, call, previous);
    (void)snprintf(want, sizeof(want), "\"meanwhile %d\"", last);
    if (last >= 0 && memmem(json.data, json.len, want, strlen(want)) == NULL) {
        fail_msg("%s is nowhere, of %d that were acknowledged", want,
                 atomic_load(&logger.logged));
    }
    call_unref(call);
}

/* ---- versions that stay ---- */

static void test_pinned(void **state)
{
    struct bench *bench = *state;
    struct gateway *gateway = bench->harness.gateway;
    test_clock_begin_day();
    const char *page = page_new(bench, "one");
    const char *free_page = page_new(bench, "one");
    page_set(bench, page, "two");
    /* Only one of the two pages' second versions is named. */
    const char *first = snapshot(bench, "first");
    page_set(bench, page, "three");
    page_set(bench, page, "four");
    page_set(bench, free_page, "two");
    page_set(bench, free_page, "three");
    page_set(bench, free_page, "four");
    struct call *call = harness_new_call(&bench->harness);
    /* Everything is old: of what a day has, only the first and the last stay. */
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    store_set_keep(gateway->store, 1);
    assert_int_equal(store_maintain(gateway->store, call), NG_OK);
    struct ng_key key = {ng_str_of("pages"), ng_str_of("shared"), ng_str_of(page)};
    const struct ng_doc *doc = NULL;
    assert_int_equal(store_get(gateway->store, call, &key, 2, &doc), NG_OK);
    assert_true(str_is(doc->text, "two"));
    key.id = ng_str_of(free_page);
    assert_int_equal(store_get(gateway->store, call, &key, 2, &doc), NG_ENOTFOUND);
    call_unref(call);
    const struct ng_value *back = restore(bench, first, true);
    expect_member(moved(back, page), "outcome", "restored");
    page_is(bench, page, "two", 5);
    test_clock_reset();
}

#define ON(setup)                                                                              \
    cmocka_unit_test_setup_teardown(test_snapshot, setup, teardown),                           \
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),                        \
        cmocka_unit_test_setup_teardown(test_diff, setup, teardown),                           \
        cmocka_unit_test_setup_teardown(test_restore_memory, setup, teardown),                 \
        cmocka_unit_test_setup_teardown(test_restore_notebooks, setup, teardown),              \
        cmocka_unit_test_setup_teardown(test_restore_many, setup, teardown),                   \
        cmocka_unit_test_setup_teardown(test_restore_while_logging, setup, teardown)

int main(void)
{
    const struct CMUnitTest documents[] = {
        ON(setup_sqlite),
        ON(setup_memory),
        cmocka_unit_test_setup_teardown(test_pinned, setup_sqlite, teardown),
    };
    const struct CMUnitTest redis[] = {ON(setup_redis)};
    int failed = cmocka_run_group_tests_name("documents", documents, NULL, NULL);
    if (getenv("NOTEGATE_TEST_REDIS_URI") == NULL) {
        (void)fprintf(stderr, "NOTEGATE_TEST_REDIS_URI is not set: not tried in Redis\n");
        return failed;
    }
    return failed + cmocka_run_group_tests_name("redis", redis, NULL, NULL);
}
