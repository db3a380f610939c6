/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_read_receipts.c - references of entries: every change and every opening
 * is one, in the order in which things happened, by whom, and none of an entry after its
 * deletion. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/journal/journal.h"
#include "core/json/json.h"

static const char *const sets[] = {"plugins=agent_notebook", "documents=sqlite", NULL};

static int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, sets);
    *state = harness;
    return 0;
}

static int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

/* ---- helpers ---- */

static void call_as(struct harness *harness, const char *agent, const char *space,
                    const char *tool, const char *id, const char *more)
{
    char args[512];
    (void)snprintf(args, sizeof(args), "{\"notebook_id\":\"%s\",\"collection\":\"pages\"%s}",
                   id, more);
    struct answer answer = harness_call_as(harness, agent, space, tool, args);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
}

static void make(struct harness *harness, const char *space, const char *title, char id[64])
{
    char args[256];
    (void)snprintf(args, sizeof(args),
                   "{\"collection\":\"pages\",\"title\":\"%s\",\"content\":\"secret text\","
                   "\"summary\":\"S\"}",
                   title);
    struct answer made = harness_call_as(harness, NULL, space, "notebook_create", args);
    assert_int_equal(made.rc, NG_OK);
    const char *found = strstr(made.text, "\"notebook_id\":\"");
    assert_non_null(found);
    (void)snprintf(id, 64, "%.12s", found + strlen("\"notebook_id\":\""));
    answer_free(&made);
}

struct timeline {
    struct answer answer;
    struct arena arena;
    const struct ng_value *events;
};

/* A stop writes what waits; the journal has it all when the timeline is asked. */
static void timeline_get(struct harness *harness, const char *space, struct timeline *ret)
{
    struct json_error error;
    const struct ng_value *body = NULL;
    struct call *call = harness_new_call(harness);
    assert_int_equal(journal_flush(harness->gateway->journal, call), NG_OK);
    call_unref(call);
    ret->answer = harness_call_as(harness, NULL, space, "memory_timeline", "{\"limit\":1000}");
    assert_int_equal(ret->answer.rc, NG_OK);
    arena_init(&ret->arena, (size_t)16 * 1024 * 1024);
    assert_int_equal(json_parse(&ret->arena, ng_str_of(ret->answer.text), 64, &body, &error),
                     NG_OK);
    ret->events = json_get(body, "events");
    assert_non_null(ret->events);
}

static void timeline_done(struct timeline *timeline)
{
    arena_done(&timeline->arena);
    answer_free(&timeline->answer);
}

static bool is(const struct ng_value *event, const char *member, const char *want)
{
    const struct ng_value *value = json_get(event, member);
    return value != NULL && str_is(value->text, want);
}

/* Reads that are counted in one event are as many. */
static int64_t count_events(const struct timeline *timeline, const char *action,
                            const char *agent)
{
    int64_t count = 0;
    for (const struct ng_value *event = timeline->events->first; event != NULL;
         event = event->next) {
        int64_t times = 1;
        (void)json_integer(json_get(json_get(event, "data"), "count"), &times);
        if (is(event, "action", action) && is(event, "agent", agent)) {
            count += times;
        }
    }
    return count;
}

/* The actions, oldest first, as "created1 opened1". */
static void expect_actions(struct harness *harness, const char *id, const char *want)
{
    char got[1024] = "";
    struct timeline timeline;
    timeline_get(harness, NULL, &timeline);
    for (const struct ng_value *event = timeline.events->first; event != NULL;
         event = event->next) {
        char rest[1024];
        int64_t version = 0;
        if (!is(event, "notebook_id", id)) {
            continue;
        }
        struct ng_str action = json_get(event, "action")->text;
        assert_int_equal(json_integer(json_get(event, "version"), &version), NG_OK);
        memcpy(rest, got, sizeof(rest));
        (void)snprintf(got, sizeof(got), "%.*s%d %.900s", (int)action.len, action.data,
                       (int)version, rest);
    }
    assert_string_equal(got, want);
    timeline_done(&timeline);
}

/* ---- tests ---- */

static void test_order(void **state)
{
    char id[64];
    make(*state, NULL, "T", id);
    call_as(*state, NULL, NULL, "notebook_read", id, "");
    call_as(*state, NULL, NULL, "notebook_update", id, ",\"append\":\"x\"");
    call_as(*state, NULL, NULL, "notebook_read", id, "");
    call_as(*state, "percy", NULL, "notebook_read", id, ",\"version\":1");
    call_as(*state, NULL, NULL, "notebook_update", id, ",\"append\":\"y\"");
    call_as(*state, NULL, NULL, "notebook_read", id, "");
    call_as(*state, NULL, NULL, "notebook_delete", id, "");
    call_as(*state, NULL, NULL, "notebook_read", id, ",\"version\":1");
    call_as(*state, NULL, NULL, "notebook_restore", id, ",\"version\":2");
    call_as(*state, NULL, NULL, "notebook_read", id, "");
    harness_reopen(*state);
    expect_actions(*state, id,
                   "created1 opened1 updated2 opened2 opened1 updated3 opened3 deleted4 "
                   "updated5 opened5 ");
}

static void test_members(void **state)
{
    char id[64];
    make(*state, NULL, "T", id);
    call_as(*state, "percy", NULL, "notebook_read", id, "");
    call_as(*state, NULL, NULL, "notebook_update", id, ",\"status\":\"complete\"");
    call_as(*state, NULL, NULL, "notebook_restore", id, ",\"version\":1");
    harness_reopen(*state);
    struct timeline timeline;
    timeline_get(*state, NULL, &timeline);
    const struct ng_value *restored = timeline.events->first;
    assert_true(is(restored, "action", "updated"));
    assert_non_null(strstr(timeline.answer.text, "\"restored_from\":1"));
    const struct ng_value *updated = restored->next;
    assert_true(is(updated, "status", "complete"));
    const struct ng_value *opened = updated->next;
    assert_true(is(opened, "type", "notebook_ref"));
    assert_true(is(opened, "action", "opened"));
    assert_true(is(opened, "notebook_id", id));
    assert_true(is(opened, "collection", "pages"));
    assert_true(is(opened, "title", "T"));
    assert_true(is(opened, "summary", "S"));
    assert_true(is(opened, "agent", "agent:percy"));
    assert_true(is(opened->next, "action", "created"));
    assert_true(is(opened->next, "agent", "agent:local"));
    /* References never carry content. */
    assert_null(strstr(timeline.answer.text, "secret"));
    timeline_done(&timeline);
}

static void test_each_opening_is_counted(void **state)
{
    char id[64];
    char other[64];
    make(*state, NULL, "T", id);
    make(*state, "lab", "U", other);
    for (int i = 0; i < 150; i++) {
        call_as(*state, "percy", NULL, "notebook_read", id, "");
        call_as(*state, i % 2 == 0 ? "maestro" : "local", NULL, "notebook_read", id, "");
    }
    call_as(*state, "percy", "lab", "notebook_read", other, "");
    harness_reopen(*state);
    struct timeline timeline;
    timeline_get(*state, NULL, &timeline);
    assert_int_equal(count_events(&timeline, "opened", "agent:percy"), 150);
    assert_int_equal(count_events(&timeline, "opened", "agent:maestro"), 75);
    assert_int_equal(count_events(&timeline, "opened", "agent:local"), 75);
    assert_int_equal(count_events(&timeline, "created", "agent:local"), 1);
    timeline_done(&timeline);
    timeline_get(*state, "lab", &timeline);
    assert_int_equal(count_events(&timeline, "opened", "agent:percy"), 1);
    timeline_done(&timeline);
}

/* Without a stop, too: after a little while. */
static void test_openings_come_by_themselves(void **state)
{
    char id[64];
    make(*state, NULL, "T", id);
    call_as(*state, NULL, NULL, "notebook_read", id, "");
    int64_t seen = 0;
    for (int i = 0; i < 3000 && seen == 0; i++) {
        struct timeline timeline;
        struct timespec step = {0, 10 * 1000000};
        timeline_get(*state, NULL, &timeline);
        seen = count_events(&timeline, "opened", "agent:local");
        timeline_done(&timeline);
        (void)nanosleep(&step, NULL);
    }
    assert_int_equal(seen, 1);
}

#define READERS 4
#define ENTRIES 20

struct reader {
    pthread_t thread;
    struct harness *harness;
    char (*ids)[64];
    int answered;
};

/* Reads each entry until it is gone. */
static void *read_until_gone(void *user)
{
    struct reader *reader = user;
    for (int i = 0; i < ENTRIES; i++) {
        char args[128];
        int rc = NG_OK;
        (void)snprintf(args, sizeof(args), "{\"notebook_id\":\"%s\",\"collection\":\"pages\"}",
                       reader->ids[i]);
        while (rc == NG_OK) {
            struct answer answer = harness_call(reader->harness, "notebook_read", args);
            rc = answer.rc;
            reader->answered += rc == NG_OK;
            answer_free(&answer);
        }
    }
    return NULL;
}

static void test_none_after_deletion(void **state)
{
    static char ids[ENTRIES][64];
    struct reader readers[READERS];
    for (int i = 0; i < ENTRIES; i++) {
        make(*state, NULL, "T", ids[i]);
    }
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.harness = *state, .ids = ids};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_until_gone, &readers[i]),
                         0);
    }
    for (int i = 0; i < ENTRIES; i++) {
        call_as(*state, NULL, NULL, "notebook_read", ids[i], "");
        call_as(*state, NULL, NULL, "notebook_delete", ids[i], "");
    }
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
    }
    harness_reopen(*state);
    struct timeline timeline;
    timeline_get(*state, NULL, &timeline);
    for (int i = 0; i < ENTRIES; i++) {
        bool deleted = false;
        for (const struct ng_value *event = timeline.events->first; event != NULL && !deleted;
             event = event->next) {
            if (is(event, "notebook_id", ids[i])) {
                /* Newest first: the first one there is must be the deletion. */
                assert_true(is(event, "action", "deleted"));
                deleted = true;
            }
        }
    }
    timeline_done(&timeline);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_order),
        WITH(test_members),
        WITH(test_each_opening_is_counted),
        WITH(test_openings_come_by_themselves),
        WITH(test_none_after_deletion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
