/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_memory.c - the memory tools through a whole gateway: logging, recalling,
 * days, the summary, what is refused, spaces, restart. On sqlite and in memory; in Redis where
 * NOTEGATE_TEST_REDIS_URI names a server. */
#include "core/base/clock.h"
#include "test_memory_bench.h"

#include <pthread.h>
#include <time.h>

/* Each has a millisecond of its own: recall puts the newest first, and memories of the same one
 * in any order. */
static void log_one(struct bench *bench, const char *agent, const char *args)
{
    (void)ask_as(bench, agent, NULL, "memory_log", args);
    for (int64_t now = clock_unix_ms(); clock_unix_ms() <= now;) {
        const struct timespec pause = {0, 100000};
        (void)nanosleep(&pause, NULL);
    }
}

/* ---- logging and recalling ---- */

static void test_log_and_recall(void **state)
{
    struct bench *bench = *state;
    const struct ng_value *made =
        ask(bench, "memory_log",
            "{\"content\":\"The database wants a new index\",\"source\":\"message\","
            "\"tags\":[\"db\",\"todo\"],\"score\":0.75}");
    expect_member(made, "status", "logged");
    struct ng_str id = json_get(made, "memory_id")->text;
    assert_true(id.len >= 12);
    /* An acknowledged write can be read at once. */
    const struct ng_value *found = ask(bench, "memory_recall", "{\"query\":\"database\"}");
    assert_int_equal(number(found, "count"), 1);
    assert_null(json_get(found, "backlog"));
    const struct ng_value *memory = at(json_get(found, "results"), 0);
    expect_member(memory, "type", "memory");
    expect_member(memory, "content", "The database wants a new index");
    expect_member(memory, "source", "message");
    expect_member(memory, "agent", "agent:ann");
    expect_member(memory, "score", "0.75");
    assert_true(str_equal(json_get(memory, "memory_id")->text, id));
    assert_true(str_is(at(json_get(memory, "tags"), 1)->text, "todo"));
    assert_int_equal(json_get(memory, "timestamp")->text.len, 24);
    assert_true(json_get(found, "engine")->text.len > 0);
}

static void test_recall_filters(void **state)
{
    struct bench *bench = *state;
    log_one(bench, "ann",
            "{\"content\":\"apples are red\",\"source\":\"thought\","
            "\"tags\":[\"fruit\"]}");
    log_one(bench, "bob",
            "{\"content\":\"apples are green\",\"source\":\"message\","
            "\"tags\":[\"fruit\",\"colour\"]}");
    log_one(bench, "bob", "{\"content\":\"cars are blue\",\"tags\":[\"colour\"]}");
    const struct ng_value *all = ask(bench, "memory_recall", "{\"query\":\"\"}");
    assert_int_equal(number(all, "count"), 3);
    expect_member(at(json_get(all, "results"), 0), "content", "cars are blue");
    expect_member(at(json_get(all, "results"), 0), "source", "thought");
    assert_int_equal(number(ask(bench, "memory_recall", "{\"query\":\"apples\"}"), "count"), 2);
    const struct ng_value *one =
        ask(bench, "memory_recall", "{\"query\":\"apples\",\"source\":\"message\"}");
    assert_int_equal(number(one, "count"), 1);
    expect_member(at(json_get(one, "results"), 0), "agent", "agent:bob");
    assert_int_equal(
        number(ask(bench, "memory_recall", "{\"query\":\"\",\"tags\":[\"fruit\",\"colour\"]}"),
               "count"),
        3);
    assert_int_equal(
        number(ask(bench, "memory_recall", "{\"query\":\"\",\"limit\":2}"), "count"), 2);
    assert_int_equal(
        number(ask(bench, "memory_recall", "{\"query\":\"\",\"since\":\"2099-01-01\"}"),
               "count"),
        0);
    assert_int_equal(
        number(ask(bench, "memory_recall",
                   "{\"query\":\"apples\",\"since\":\"2020-02-29T23:59:59+02:00\"}"),
               "count"),
        2);
    assert_int_equal(number(ask(bench, "memory_recall", "{\"query\":\"zebra\"}"), "count"), 0);
    assert_int_equal(
        number(ask(bench, "memory_recall", "{\"query\":\"apples\",\"min_score\":0.6}"),
               "count"),
        0);
    assert_int_equal(
        number(ask(bench, "memory_recall", "{\"query\":\"apples\",\"min_score\":0.5}"),
               "count"),
        2);
}

static void test_refused(void **state)
{
    struct bench *bench = *state;
    refused(bench, "memory_log", "{}", "INVALID_INPUT", "content");
    refused(bench, "memory_log", "{\"content\":\"\"}", "INVALID_INPUT", "content");
    refused(bench, "memory_log", "{\"content\":\"x\",\"tags\":[\"a,b\"]}", "INVALID_INPUT",
            "comma");
    refused(bench, "memory_log", "{\"content\":\"x\",\"score\":2}", "INVALID_INPUT", "score");
    static const char *const bad[] = {
        "yesterday",        "2026-13-01",        "2026-02-30",           "2026-02-1",
        "2026-02-01T25:00", "2026-02-01T10:00X", "2026-02-01T10:00+0200"};
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        char args[128];
        (void)snprintf(args, sizeof(args), "{\"query\":\"\",\"since\":\"%s\"}", bad[i]);
        refused(bench, "memory_recall", args, "INVALID_INPUT", bad[i]);
    }
    refused(bench, "memory_timeline", "{\"date\":\"2026-2-1\"}", "INVALID_INPUT", "2026-2-1");
    refused(bench, "memory_summary", "{\"mode\":\"set\"}", "INVALID_INPUT", "text");
    refused(bench, "memory_summary", "{\"mode\":\"read\",\"text\":\"x\"}", "INVALID_INPUT",
            "read");
    struct buf args;
    buf_init(&args, 1024 * 1024);
    buf_add_c(&args, "{\"content\":\"");
    for (int i = 0; i < 64 * 1024 + 1; i++) {
        buf_add_char(&args, 'x');
    }
    buf_add_c(&args, "\"}");
    refused(bench, "memory_log", buf_cstr(&args), "TOO_LARGE", "65537");
    buf_done(&args);
}

/* ---- deleting ---- */

static const char *delete_args(const char *id)
{
    static char args[128];
    (void)snprintf(args, sizeof(args), "{\"id\":\"%s\"}", id);
    return args;
}

/* Logs one, and copies its id. */
static void log_id(struct bench *bench, const char *agent, const char *args, char id[64])
{
    const struct ng_value *made = ask_as(bench, agent, NULL, "memory_log", args);
    struct ng_str text = json_get(made, "memory_id")->text;
    (void)snprintf(id, 64, "%.*s", (int)text.len, text.data);
}

static size_t count_of(struct bench *bench, const char *tool, const char *args)
{
    return (size_t)number(ask(bench, tool, args), "count");
}

static void test_delete(void **state)
{
    struct bench *bench = *state;
    char id[64], other[64], args[256];
    log_id(bench, "ann", "{\"content\":\"a secret thing\",\"tags\":[\"t\"]}", id);
    (void)snprintf(args, sizeof(args), "{\"content\":\"secret %s %s\"}", id, "event_id");
    log_id(bench, "bob", args, other);
    const struct ng_value *found = ask(bench, "memory_recall", "{\"query\":\"thing\"}");
    const struct ng_value *row = at(json_get(found, "results"), 0);
    assert_true(str_is(json_get(row, "id")->text, id));
    assert_true(str_is(json_get(row, "memory_id")->text, id));
    const struct ng_value *gone = ask_as(bench, "ann", NULL, "memory_delete", delete_args(id));
    expect_member(gone, "status", "deleted");
    assert_true(str_is(json_get(gone, "id")->text, id));
    assert_int_equal(count_of(bench, "memory_recall", "{\"query\":\"thing\"}"), 0);
    assert_int_equal(count_of(bench, "memory_recall", "{\"query\":\"\",\"tags\":[\"t\"]}"), 0);
    assert_int_equal(count_of(bench, "memory_recall", "{\"query\":\"\"}"), 1);
    assert_int_equal(count_of(bench, "memory_timeline", "{}"), 1);
    refused(bench, "memory_delete", delete_args(id), "NOT_FOUND", id);
    refused(bench, "memory_delete", delete_args("never"), "NOT_FOUND", "never");
    refused(bench, "memory_delete", delete_args(""), "NOT_FOUND", "");
    refused(bench, "memory_delete", "{}", "INVALID_INPUT", "id");
    /* Not from another space. */
    struct answer answer =
        harness_call_as(&bench->harness, "bob", "team", "memory_delete", delete_args(other));
    assert_string_equal(answer.code, "NOT_FOUND");
    answer_free(&answer);
    (void)ask_as(bench, "bob", NULL, "memory_delete", delete_args(other));
    assert_int_equal(count_of(bench, "memory_timeline", "{}"), 0);
}

/* In any place of a long day, while others log. */
static void test_delete_among_many(void **state)
{
    enum { MANY = 600, EACH_NTH = 100 };
    static char ids[MANY][64];
    struct bench *bench = *state;
    for (int i = 0; i < MANY; i++) {
        log_id(bench, "ann", "{\"content\":\"one of many\"}", ids[i]);
    }
    for (int i = 0; i < MANY; i += EACH_NTH) {
        (void)ask_as(bench, "ann", NULL, "memory_delete", delete_args(ids[i]));
    }
    const struct ng_value *events =
        json_get(ask(bench, "memory_timeline", "{\"limit\":1000}"), "events");
    assert_int_equal(events->count, MANY - MANY / EACH_NTH);
    int next = MANY - 1;
    for (const struct ng_value *item = events->first; item != NULL; item = item->next) {
        next -= next % EACH_NTH == 0;
        assert_true(str_is(json_get(item, "id")->text, ids[next--]));
    }
}

/* A checkpoint that has it brings it back, and it can be deleted once more. */
static void test_deleted_and_restored(void **state)
{
    struct bench *bench = *state;
    char id[64], checkpoint[64], args[128];
    log_id(bench, "ann", "{\"content\":\"here again\"}", id);
    struct ng_str text =
        json_get(ask(bench, "checkpoint_snapshot", "{}"), "checkpoint_id")->text;
    (void)snprintf(checkpoint, sizeof(checkpoint), "%.*s", (int)text.len, text.data);
    (void)ask_as(bench, "ann", NULL, "memory_delete", delete_args(id));
    assert_int_equal(count_of(bench, "memory_recall", "{\"query\":\"again\"}"), 0);
    (void)ask(bench, "checkpoint_snapshot", "{}");
    assert_int_equal(count_of(bench, "memory_recall", "{\"query\":\"again\"}"), 0);
    (void)snprintf(args, sizeof(args), "{\"checkpoint_id\":\"%s\"}", checkpoint);
    (void)ask(bench, "checkpoint_restore", args);
    assert_int_equal(count_of(bench, "memory_recall", "{\"query\":\"again\"}"), 1);
    assert_int_equal(count_of(bench, "memory_timeline", "{}"), 1);
    (void)ask_as(bench, "ann", NULL, "memory_delete", delete_args(id));
    assert_int_equal(count_of(bench, "memory_timeline", "{}"), 0);
    refused(bench, "memory_delete", delete_args(id), "NOT_FOUND", id);
}

/* ---- days ---- */

static void test_timeline(void **state)
{
    struct bench *bench = *state;
    char args[256];
    char today[16];
    time_t now = time(NULL);
    struct tm tm;
    for (int i = 0; i < 20; i++) {
        (void)snprintf(args, sizeof(args), "{\"content\":\"thought %d\"}", i);
        log_one(bench, i % 2 == 0 ? "ann" : "bob", args);
    }
    const struct ng_value *entry =
        ask(bench, "notebook_create",
            "{\"collection\":\"pages\",\"title\":\"A plan\",\"content\":\"Long text\"}");
    const struct ng_value *events = json_get(ask(bench, "memory_timeline", "{}"), "events");
    assert_int_equal(events->count, 21);
    const struct ng_value *first = at(events, 0);
    expect_member(first, "type", "notebook_ref");
    expect_member(first, "action", "created");
    expect_member(first, "collection", "pages");
    assert_true(
        str_equal(json_get(first, "notebook_id")->text, json_get(entry, "notebook_id")->text));
    expect_member(at(events, 1), "content", "thought 19");
    expect_member(at(events, 20), "content", "thought 0");
    events = json_get(ask(bench, "memory_timeline", "{\"limit\":3}"), "events");
    assert_int_equal(events->count, 3);
    expect_member(at(events, 2), "content", "thought 18");
    events = json_get(ask(bench, "memory_timeline", "{\"agent\":\"agent:bob\"}"), "events");
    assert_int_equal(events->count, 10);
    events =
        json_get(ask(bench, "memory_timeline", "{\"agent\":\"bob\",\"limit\":1}"), "events");
    expect_member(at(events, 0), "content", "thought 19");
    assert_non_null(gmtime_r(&now, &tm));
    (void)strftime(today, sizeof(today), "%Y-%m-%d", &tm);
    (void)snprintf(args, sizeof(args), "{\"date\":\"%s\"}", today);
    events = json_get(ask(bench, "memory_timeline", args), "events");
    time_t later = time(NULL);
    if (later / 86400 == now / 86400) { /* not over midnight */
        assert_int_equal(events->count, 21);
    }
    events = json_get(ask(bench, "memory_timeline", "{\"date\":\"2001-01-01\"}"), "events");
    assert_int_equal(events->count, 0);
}

static void test_spaces(void **state)
{
    struct bench *bench = *state;
    (void)ask_as(bench, "ann", "team", "memory_log", "{\"content\":\"ours alone\"}");
    (void)ask_as(bench, "ann", "team", "memory_summary", "{\"text\":\"our summary\"}");
    assert_int_equal(number(ask(bench, "memory_recall", "{\"query\":\"\"}"), "count"), 0);
    expect_member(ask(bench, "memory_summary", "{}"), "status", "none");
    const struct ng_value *found =
        ask_as(bench, "bob", "team", "memory_recall", "{\"query\":\"alone\"}");
    assert_int_equal(number(found, "count"), 1);
    expect_member(ask_as(bench, "bob", "team", "memory_summary", "{\"mode\":\"read\"}"),
                  "summary", "our summary");
}

/* ---- the summary ---- */

static void test_summary(void **state)
{
    struct bench *bench = *state;
    const struct ng_value *none = ask(bench, "memory_summary", "{}");
    expect_member(none, "status", "none");
    assert_int_equal(json_get(none, "summary")->type, NG_TYPE_NULL);
    const struct ng_value *set =
        ask(bench, "memory_summary", "{\"text\":\"We build \\u00fcber things\"}");
    expect_member(set, "status", "set");
    const struct ng_value *read = ask(bench, "memory_summary", "{\"mode\":\"read\"}");
    expect_member(read, "status", "read");
    expect_member(read, "summary",
                  "We build \xc3\xbc"
                  "ber things");
    (void)ask(bench, "memory_summary", "{\"text\":\"\"}");
    read = ask(bench, "memory_summary", "{}");
    expect_member(read, "status", "read");
    expect_member(read, "summary", "");
}

/* ---- many at once, and a restart ---- */

#define WRITERS 8
#define EACH 25

struct writer {
    struct bench *bench;
    int number;
    int failed;
};

static void *writer_run(void *user)
{
    struct writer *writer = user;
    for (int i = 0; i < EACH; i++) {
        char agent[16];
        char args[64];
        (void)snprintf(agent, sizeof(agent), "agent-%d", writer->number % 3);
        (void)snprintf(args, sizeof(args), "{\"content\":\"w%d n%d\"}", writer->number, i);
        struct answer answer =
            harness_call_as(&writer->bench->harness, agent, NULL, "memory_log", args);
        writer->failed += answer.rc != NG_OK;
        answer_free(&answer);
    }
    return NULL;
}

/* The events once none waits for the journal: on a slow machine an answer tells of a backlog.
 */
static const struct ng_value *all_events(struct bench *bench)
{
    enum { TRIES_MAX = 100 };
    for (int i = 0; i < TRIES_MAX; i++) {
        const struct ng_value *answer = ask(bench, "memory_timeline", "{\"limit\":1000}");
        if (json_get(answer, "backlog") == NULL) {
            return json_get(answer, "events");
        }
    }
    fail_msg("a backlog after %d answers", TRIES_MAX);
    return NULL;
}

static void test_many(void **state)
{
    struct bench *bench = *state;
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){bench, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, writer_run, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(writers[i].failed, 0);
    }
    const struct ng_value *events = all_events(bench);
    assert_int_equal(events->count, WRITERS * EACH);
    /* Each writer's own are in its order, newest first. */
    for (int i = 0; i < WRITERS; i++) {
        int next = EACH - 1;
        for (const struct ng_value *item = events->first; item != NULL; item = item->next) {
            char want[64];
            char prefix[16];
            struct ng_str content = json_get(item, "content")->text;
            int len = snprintf(prefix, sizeof(prefix), "w%d ", i);
            if (content.len < (size_t)len || memcmp(content.data, prefix, (size_t)len) != 0) {
                continue;
            }
            (void)snprintf(want, sizeof(want), "w%d n%d", i, next--);
            assert_true(str_is(content, want));
        }
        assert_int_equal(next, -1);
    }
}

static void test_restart(void **state)
{
    struct bench *bench = *state;
    log_one(bench, "ann", "{\"content\":\"before the restart\"}");
    (void)ask(bench, "memory_summary", "{\"text\":\"lasting\"}");
    harness_reopen(&bench->harness);
    assert_int_equal(number(ask(bench, "memory_recall", "{\"query\":\"restart\"}"), "count"),
                     1);
    expect_member(ask(bench, "memory_summary", "{}"), "summary", "lasting");
    char id[64];
    log_id(bench, "ann", "{\"content\":\"deleted before the restart\"}", id);
    (void)ask_as(bench, "ann", NULL, "memory_delete", delete_args(id));
    harness_reopen(&bench->harness);
    assert_int_equal(count_of(bench, "memory_recall", "{\"query\":\"restart\"}"), 1);
    refused(bench, "memory_delete", delete_args(id), "NOT_FOUND", id);
}

#define ON(setup)                                                                              \
    cmocka_unit_test_setup_teardown(test_log_and_recall, setup, teardown),                     \
        cmocka_unit_test_setup_teardown(test_recall_filters, setup, teardown),                 \
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),                        \
        cmocka_unit_test_setup_teardown(test_delete, setup, teardown),                         \
        cmocka_unit_test_setup_teardown(test_delete_among_many, setup, teardown),              \
        cmocka_unit_test_setup_teardown(test_deleted_and_restored, setup, teardown),           \
        cmocka_unit_test_setup_teardown(test_timeline, setup, teardown),                       \
        cmocka_unit_test_setup_teardown(test_spaces, setup, teardown),                         \
        cmocka_unit_test_setup_teardown(test_summary, setup, teardown),                        \
        cmocka_unit_test_setup_teardown(test_many, setup, teardown)

int main(void)
{
    const struct CMUnitTest sqlite[] = {
        ON(setup_sqlite),
        cmocka_unit_test_setup_teardown(test_restart, setup_sqlite, teardown),
    };
    const struct CMUnitTest memory[] = {
        ON(setup_memory),
    };
    const struct CMUnitTest redis[] = {
        ON(setup_redis),
        cmocka_unit_test_setup_teardown(test_restart, setup_redis, teardown),
    };
    const struct CMUnitTest search[] = {
        ON(setup_search),
    };
    /* All of them are on MongoDB and Redis then. */
    if (getenv("NOTEGATE_TEST_SHARED") != NULL) {
        return cmocka_run_group_tests_name("shared", redis, NULL, NULL);
    }
    int failed = cmocka_run_group_tests_name("sqlite", sqlite, NULL, NULL);
    failed += cmocka_run_group_tests_name("memory", memory, NULL, NULL);
    if (getenv("NOTEGATE_TEST_REDIS_URI") != NULL) {
        failed += cmocka_run_group_tests_name("redis", redis, NULL, NULL);
    } else {
        (void)fprintf(stderr, "NOTEGATE_TEST_REDIS_URI is not set: not tried in Redis\n");
    }
    if (getenv("NOTEGATE_TEST_REDIS_SEARCH_URI") != NULL) {
        failed += cmocka_run_group_tests_name("redis with search", search, NULL, NULL);
    }
    return failed;
}
