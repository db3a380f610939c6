/* SPDX-License-Identifier: MIT */
/* test_redis_keys.c - keys in Redis as redis-cli shows them; changes by other programs; several
 * gateways. */
#include "journal_contract.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/journal/journal.h"
#include "redis_fixture.h"

#define SKIPPED 77
#define DAY "2024-05-17"
#define WAIT_NS INT64_C(60000000000)

static struct redis_fixture fixture;
static bool searches; /* the server has the search module */

struct gateway_test {
    struct harness harness;
    const struct ng_journal *journal;
    void *db;
};

static void open_test(struct gateway_test *test)
{
    harness_open(&test->harness, fixture.sets);
    test->journal = journal_vtable(test->harness.gateway->journal, &test->db);
}

static int setup(void **state)
{
    struct gateway_test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    redis_fixture_clear(&fixture);
    open_test(test);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct gateway_test *test = *state;
    harness_close(&test->harness);
    free(test);
    return 0;
}

/* ---- helpers ---- */

static int deliver(struct gateway_test *test, const struct ng_entry *entries, size_t count)
{
    struct call *call = harness_new_call(&test->harness);
    int rc = harness_deliver(test->journal, test->db, call, entries, count);
    call_unref(call);
    return rc;
}

static redisReply *ask(const char *command, const char *key)
{
    return redis_fixture_ask(&fixture, "%s %s%s", command, fixture.prefix, key);
}

/* One command about a key that has the prefix, and what it answers as text or number. */
static void expect_text_of(const char *command, const char *key, const char *want)
{
    redisReply *reply = ask(command, key);
    assert_non_null(reply->str);
    assert_string_equal(reply->str, want);
    freeReplyObject(reply);
}

static void expect_number(const char *command, const char *key, long long want)
{
    redisReply *reply = ask(command, key);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(reply->integer, want);
    freeReplyObject(reply);
}

static void expect_member(const char *key, const char *member, const char *want)
{
    redisReply *reply =
        redis_fixture_ask(&fixture, "HGET %s%s %s", fixture.prefix, key, member);
    if (reply->str == NULL || strcmp(reply->str, want) != 0) {
        fail_msg("%s of %s is \"%s\" and should be \"%s\"", member, key,
                 reply->str == NULL ? "(none)" : reply->str, want);
    }
    freeReplyObject(reply);
}

static void expect_lines(const char *key, long from, const char *want)
{
    redisReply *reply =
        redis_fixture_ask(&fixture, "LRANGE %s%s %ld %ld", fixture.prefix, key, from, from);
    assert_int_equal(reply->elements, 1);
    assert_string_equal(reply->element[0]->str, want);
    freeReplyObject(reply);
}

static void collect(struct collected *collected, const struct ng_entry *entry)
{
    assert_true(collected->count < JOURNAL_COLLECTED_MAX);
    struct ng_entry *copy = &collected->entries[collected->count++];
    *copy = *entry;
    copy->event_id = arena_copy(&collected->call->arena, entry->event_id);
    copy->content = arena_copy(&collected->call->arena, entry->content);
    copy->source = arena_copy(&collected->call->arena, entry->source);
    copy->agent = arena_copy(&collected->call->arena, entry->agent);
}

static int collect_row(void *user, const struct ng_entry *entry)
{
    collect(user, entry);
    return 0;
}

/* engine: the one that is waited for, or NULL. */
static void recall(struct gateway_test *test, struct ng_recall *wanted,
                   struct collected *collected, const char *engine)
{
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    for (;;) {
        const char *used = NULL;
        wanted->size = sizeof(*wanted);
        collected->call = harness_new_call(&test->harness);
        collected->count = 0;
        assert_int_equal(test->journal->recall(test->db, &collected->call->pub, wanted,
                                               collect_row, collected, &used),
                         NG_OK);
        assert_non_null(used);
        if (engine == NULL || strcmp(used, engine) == 0) {
            return;
        }
        /* A new index may still be reading older entries. */
        if (!searches || clock_monotonic_ns() > until) {
            fail_msg("the engine is %s and should be %s", used, engine);
        }
        collected_done(collected);
        sched_yield();
    }
}

/* ---- keys ---- */

static void test_reference_keys(void **state)
{
    struct gateway_test *test = *state;
    struct ng_str tags[] = {ng_str_of("red"), ng_str_of("blue")};
    struct ng_entry entry = journal_reference("shared", "e1", "abc123", 3, 10);
    entry.tags = tags;
    entry.tag_count = 2;
    entry.data = ng_str_of("{\"restored_from\":1}");
    assert_int_equal(deliver(test, &entry, 1), NG_OK);

    expect_text_of("TYPE", "daily:" DAY, "list");
    expect_number("LLEN", "daily:" DAY, 1);
    expect_lines(
        "daily:" DAY, 0,
        "{\"type\":\"notebook_ref\",\"action\":\"updated\",\"notebook_id\":\"abc123\","
        "\"title\":\"A title\",\"summary\":\"What the page is about\",\"collection\":\"pages\","
        "\"timestamp\":\"2024-05-17T00:00:10.000000+00:00\",\"agent\":\"agent:ann\","
        "\"version\":3,\"status\":\"active\",\"event_id\":\"e1\",\"seq\":10,"
        "\"time\":1715904010000,\"source\":\"notebook\",\"tags\":[\"red\",\"blue\"],"
        "\"score\":1,\"data\":{\"restored_from\":1}}");
    static const char key[] = "notebook:ref:abc123";
    expect_text_of("TYPE", key, "hash");
    expect_member(key, "content", "[Notebook updated] A title: What the page is about");
    expect_member(key, "source", "notebook");
    expect_member(key, "tags", "pages");
    expect_member(key, "entry_tags", "red,blue");
    expect_member(key, "score", "0.8");
    expect_member(key, "timestamp", "2024-05-17T00:00:10.000000+00:00");
    expect_member(key, "notebook_id", "abc123");
    expect_member(key, "title", "A title");
    expect_member(key, "status", "active");
    expect_member(key, "version", "3");
}

static void test_memory_keys(void **state)
{
    struct gateway_test *test = *state;
    struct ng_str tags[] = {ng_str_of("red"), ng_str_of("blue")};
    struct ng_entry entry = journal_memory("shared", "e1", "I thought of it", 10);
    entry.tags = tags;
    entry.tag_count = 2;
    assert_int_equal(deliver(test, &entry, 1), NG_OK);
    expect_number("LLEN", "daily:" DAY, 1);
    static const char key[] = "memory:e1";
    expect_text_of("TYPE", key, "hash");
    expect_member(key, "content", "I thought of it");
    expect_member(key, "source", "thought");
    expect_member(key, "tags", "red,blue");
    expect_member(key, "score", "0.5");
    expect_member(key, "agent", "agent:ann");
    expect_member(key, "timestamp", "2024-05-17T00:00:10.000000+00:00");
    /* Long after the delivery is forgotten, as when another journal was in use meanwhile. */
    freeReplyObject(ask("DEL", "journal:seen"));
    assert_int_equal(deliver(test, &entry, 1), NG_OK);
    expect_number("LLEN", "daily:" DAY, 1);
}

static void test_spaces(void **state)
{
    struct gateway_test *test = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry entries[] = {
        journal_memory("shared", "e1", "harbour", 1),
        journal_memory("team", "e2", "harbour", 2),
        journal_memory("~ann", "e3", "harbour", 3),
        journal_memory("team:memory", "e4", "harbour", 4),
        journal_reference("team", "e5", "p1", 1, 5),
    };
    assert_int_equal(deliver(test, entries, NG_COUNT(entries)), NG_OK);
    expect_number("LLEN", "daily:" DAY, 1);
    expect_number("EXISTS", "memory:e1", 1);
    expect_number("LLEN", "space:team:daily:" DAY, 2);
    expect_number("EXISTS", "space:team:memory:e2", 1);
    expect_number("EXISTS", "space:team:notebook:ref:p1", 1);
    expect_number("EXISTS", "space:~ann:memory:e3", 1);
    expect_number("EXISTS", "space:team%3Amemory:memory:e4", 1);
    static const char *const spaces[] = {"shared", "team", "~ann", "team:memory", "nobody"};
    for (size_t i = 0; i < NG_COUNT(spaces); i++) {
        struct ng_recall wanted = {.space = ng_str_of(spaces[i]), .text = ng_str_of("harbour")};
        recall(test, &wanted, rows, NULL);
        assert_int_equal(rows->count, i == 4 ? 0 : 1);
        collected_done(rows);
    }
    free(rows);
}

/* Each function tells that the name is too long, and nothing about memory. */
static void test_long_space(void **state)
{
    struct gateway_test *test = *state;
    const struct ng_journal *journal = test->journal;
    char name[NG_SPACE_MAX + 2];
    memset(name, 's', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    struct ng_str space = ng_str_of(name);
    struct ng_str id = ng_str_of("id");
    struct ng_str text = {NULL, 0};
    struct ng_timeline timeline = {.size = sizeof(timeline), .space = space};
    struct ng_recall wanted = {
        .size = sizeof(wanted), .space = space, .text = ng_str_of("word")};
    const char *engine = NULL;
    struct call *call = harness_new_call(&test->harness);
    struct ng_call *pub = &call->pub;
    const int codes[] = {
        journal->timeline(test->db, pub, &timeline, NULL, NULL),
        journal->recall(test->db, pub, &wanted, NULL, NULL, &engine),
        journal->summary(test->db, pub, space, &text),
        journal->set_summary(test->db, pub, space, ng_str_of("x")),
        journal->dump(test->db, pub, space, &text),
        journal->checkpoint_get(test->db, pub, space, id, &text),
        journal->checkpoint_put(test->db, pub, space, id, ng_str_of("{}")),
        journal->restore(test->db, pub, space,
                         ng_str_of("{\"format\":\"notegate-journal-1\",\"days\":[],"
                                   "\"references\":[],\"memories\":[]}")),
    };
    for (size_t i = 0; i < NG_COUNT(codes); i++) {
        assert_int_equal(codes[i], NG_EINVAL);
    }
    assert_non_null(strstr(call->staged.message.data, "longer than"));
    call_unref(call);
}

static void test_checkpoint_keys(void **state)
{
    struct gateway_test *test = *state;
    struct call *call = harness_new_call(&test->harness);
    assert_int_equal(
        test->journal->checkpoint_put(test->db, &call->pub, ng_str_of("shared"),
                                      ng_str_of("0b5c7a3e-0000-4000-8000-000000000000"),
                                      ng_str_of("{\"label\":\"x\",\"days\":[]}")),
        NG_OK);
    assert_int_equal(test->journal->set_summary(test->db, &call->pub, ng_str_of("shared"),
                                                ng_str_of("We build.")),
                     NG_OK);
    call_unref(call);
    expect_text_of("GET", "checkpoint:0b5c7a3e-0000-4000-8000-000000000000",
                   "{\"label\":\"x\",\"days\":[]}");
    expect_text_of("GET", "summary", "We build.");
}

/* A text longer than a summary is left out. */
static void test_long_summary(void **state)
{
    struct gateway_test *test = *state;
    char text[1001];
    char want[301];
    struct ng_entry entry = journal_reference("shared", "e1", "p1", 1, 10);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    entry.content = ng_str_of(text);
    assert_int_equal(deliver(test, &entry, 1), NG_OK);
    (void)snprintf(want, sizeof(want), "[Notebook updated] A title: %.200s", text);
    expect_member("notebook:ref:p1", "content", want);
    redisReply *lines =
        redis_fixture_ask(&fixture, "LRANGE %sdaily:" DAY " 0 -1", fixture.prefix);
    assert_int_equal(lines->elements, 1);
    assert_true(strlen(lines->element[0]->str) < 800);
    freeReplyObject(lines);
}

/* ---- recall ---- */

static void test_engine(void **state)
{
    struct gateway_test *test = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry entries[] = {
        journal_memory("shared", "e1", "the quick brown fox", 1),
        journal_memory("shared", "e2", "brown brown brown", 2),
        journal_memory("shared", "e3", "a fox, a Fox, a FOX and nothing of that colour", 3),
    };
    assert_int_equal(deliver(test, entries, NG_COUNT(entries)), NG_OK);
    struct ng_recall wanted = {.space = ng_str_of("shared"), .text = ng_str_of("FOX brown")};
    recall(test, &wanted, rows, searches ? "redisearch" : "scan");
    assert_int_equal(rows->count, 3);
    assert_str(rows->entries[0].event_id, "e1");
    collected_done(rows);
    wanted.text = ng_str_of("brown");
    wanted.limit = 1;
    recall(test, &wanted, rows, NULL);
    assert_int_equal(rows->count, 1);
    assert_str(rows->entries[0].event_id, "e2");
    collected_done(rows);
    if (searches) {
        /* An index that was dropped is created again. */
        freeReplyObject(
            redis_fixture_ask(&fixture, "FT.DROPINDEX %smemory:idx", fixture.prefix));
        wanted.limit = 0;
        recall(test, &wanted, rows, NULL);
        assert_int_equal(rows->count, 2);
        collected_done(rows);
        redisReply *info = redis_fixture_ask(&fixture, "FT.INFO %smemory:idx", fixture.prefix);
        assert_int_equal(info->type, REDIS_REPLY_ARRAY);
        freeReplyObject(info);
    }
    free(rows);
}

/* Texts that mean something to the search module of Redis, or to its keys. */
static const char *const odd_texts[] = {
    "@content:{x}", "fo*o|bar",  "\"open quote", "(-a ~b)",  "a\\", "[1 +inf]",   "%%fuzzy%%",
    "$param",       "{tag|tag}", "x:=>y",        "'",        "-",   "*",          "?",
    "a_b.c-d/e",    "<tag>",     "f&g^h!#;`",    "=>{$w:1}", "|",   "über Größe",
};

/* The entry with one of them is found by it as tag and source alone. */
static void expect_odd(struct gateway_test *test, struct collected *rows, const char *text,
                       const char *id)
{
    struct ng_str tag = ng_str_of(text);
    struct ng_recall by_tag = {.space = ng_str_of("shared"), .tags = &tag, .tag_count = 1};
    recall(test, &by_tag, rows, searches ? "redisearch" : "scan");
    assert_int_equal(rows->count, 1);
    assert_str(rows->entries[0].event_id, id);
    collected_done(rows);
    struct ng_recall by_source = {.space = ng_str_of("shared"), .source = tag};
    if (strchr(text, '|') == NULL) {
        recall(test, &by_source, rows, searches ? "redisearch" : "scan");
        assert_int_equal(rows->count, 1);
        collected_done(rows);
    }
    /* As a text it matches by its words alone, and is never an error. */
    struct ng_recall by_text = {.space = ng_str_of("shared"), .text = tag};
    recall(test, &by_text, rows, searches ? "redisearch" : "scan");
    assert_int_equal(rows->count, 0);
    collected_done(rows);
}

/* No sign in a text, source or tag is syntax; each is found by itself. */
static void test_odd_texts(void **state)
{
    struct gateway_test *test = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    for (size_t i = 0; i < NG_COUNT(odd_texts); i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "e%zu", i);
        struct ng_str tag = ng_str_of(odd_texts[i]);
        struct ng_entry entry = journal_memory("shared", id, "some text", (int64_t)i);
        entry.tags = &tag;
        entry.tag_count = 1;
        entry.source = strchr(odd_texts[i], '|') == NULL ? tag : ng_str_of("plain");
        assert_int_equal(deliver(test, &entry, 1), NG_OK);
    }
    for (size_t i = 0; i < NG_COUNT(odd_texts); i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "e%zu", i);
        expect_odd(test, rows, odd_texts[i], id);
    }
    struct ng_entry entry = journal_memory("shared", "w", "see (über) {Größe} a_b.c-d/e!", 99);
    assert_int_equal(deliver(test, &entry, 1), NG_OK);
    static const char *const found[] = {"über größe", "Größe*", "a_b.c-d/e", "@über:{größe}",
                                        "(see|über"};
    for (size_t i = 0; i < NG_COUNT(found); i++) {
        struct ng_recall by_text = {.space = ng_str_of("shared"), .text = ng_str_of(found[i])};
        recall(test, &by_text, rows, NULL);
        if (rows->count != 1) {
            fail_msg("'%s' was found %zu times", found[i], rows->count);
        }
        collected_done(rows);
    }
    free(rows);
}

/* ---- what other programs wrote ---- */

static void test_foreign(void **state)
{
    struct gateway_test *test = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    freeReplyObject(redis_fixture_ask(&fixture, "RPUSH %sdaily:" DAY " %s %s", fixture.prefix,
                                      "{\"type\":\"notebook_ref\",\"action\":\"created\","
                                      "\"notebook_id\":\"x\",\"title\":\"T\","
                                      "\"summary\":\"S\",\"collection\":\"pages\","
                                      "\"timestamp\":\"2024-05-17T10:00:00+00:00\","
                                      "\"agent\":\"agent:percy\"}",
                                      "no JSON"));
    struct ng_entry entry = journal_memory("shared", "e1", "ours", 10);
    assert_int_equal(deliver(test, &entry, 1), NG_OK);
    journal_collect_timeline(&test->harness, "shared", DAY, NULL, 0, rows);
    assert_int_equal(rows->count, 2);
    assert_str(rows->entries[1].id, "x");
    assert_str(rows->entries[1].agent, "percy");
    assert_str(rows->entries[1].content, "S");
    assert_int_equal(rows->entries[1].time_ms, INT64_C(1715940000000));
    collected_done(rows);
    if (searches) {
        freeReplyObject(redis_fixture_ask(
            &fixture, "HSET %smemory:theirs content %s source message tags a,b score 0.5",
            fixture.prefix, "a zeppelin over the town"));
        struct ng_recall wanted = {.space = ng_str_of("shared"), .text = ng_str_of("zeppelin")};
        recall(test, &wanted, rows, "redisearch");
        assert_int_equal(rows->count, 1);
        assert_str(rows->entries[0].content, "a zeppelin over the town");
        assert_str(rows->entries[0].source, "message");
        collected_done(rows);
    }
    free(rows);
}

/* A key of another type holds the delivery up, and nothing of it is done. */
static void test_wrong_type(void **state)
{
    struct gateway_test *test = *state;
    struct ng_entry entries[] = {
        journal_memory("shared", "e1", "one", 10),
        journal_reference("shared", "e2", "p1", 1, 20),
    };
    freeReplyObject(redis_fixture_ask(&fixture, "SET %snotebook:ref:p1 x", fixture.prefix));
    struct call *call = harness_new_call(&test->harness);
    assert_int_equal(harness_deliver(test->journal, test->db, call, entries, 2),
                     NG_EUNAVAILABLE);
    assert_non_null(memmem(call->staged.message.data, call->staged.message.len,
                           "notebook:ref:p1", strlen("notebook:ref:p1")));
    call_unref(call);
    expect_number("EXISTS", "daily:" DAY, 0);
    expect_number("EXISTS", "memory:e1", 0);
    freeReplyObject(redis_fixture_ask(&fixture, "DEL %snotebook:ref:p1", fixture.prefix));
    assert_int_equal(deliver(test, entries, 2), NG_OK);
    expect_number("LLEN", "daily:" DAY, 2);
}

/* ---- several gateways ---- */

#define GATEWAYS 2
#define SAME_EVENTS 200

struct deliverer {
    struct gateway_test *test;
    int failures;
};

static void *deliver_same(void *user)
{
    struct deliverer *deliverer = user;
    for (int i = 0; i < SAME_EVENTS; i += 4) {
        struct ng_entry entries[4];
        char ids[4][16];
        for (int k = 0; k < 4; k++) {
            (void)snprintf(ids[k], sizeof(ids[k]), "e%03d", i + k);
            entries[k] = journal_memory("shared", ids[k], "the same", i + k);
        }
        deliverer->failures += deliver(deliverer->test, entries, 4) != NG_OK;
    }
    return NULL;
}

static void test_two_gateways(void **state)
{
    struct gateway_test *tests[GATEWAYS] = {*state, calloc(1, sizeof(struct gateway_test))};
    struct deliverer deliverers[GATEWAYS];
    pthread_t threads[GATEWAYS];
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    assert_non_null(tests[1]);
    open_test(tests[1]);
    for (size_t i = 0; i < GATEWAYS; i++) {
        deliverers[i] = (struct deliverer){tests[i], 0};
        assert_int_equal(pthread_create(&threads[i], NULL, deliver_same, &deliverers[i]), 0);
    }
    for (size_t i = 0; i < GATEWAYS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(deliverers[i].failures, 0);
    }
    journal_collect_timeline(&tests[0]->harness, "shared", DAY, NULL, 1000, rows);
    assert_int_equal(rows->count, SAME_EVENTS);
    for (size_t i = 0; i < rows->count; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "e%03zu", SAME_EVENTS - 1 - i);
        assert_str(rows->entries[i].event_id, id);
    }
    collected_done(rows);
    harness_close(&tests[1]->harness);
    free(tests[1]);
    free(rows);
}

/* Readers see the journal before a restore or after it. */
#define LARGE 400
#define RESTORES 20

struct watcher {
    atomic_bool stop;
    atomic_int bad;
    atomic_int looks;
};

static void *watch_day(void *user)
{
    struct watcher *watcher = user;
    struct redis_fixture other = {0};
    assert_true(redis_fixture_open(&other, "NOTEGATE_TEST_REDIS_WATCHED"));
    while (!atomic_load(&watcher->stop)) {
        redisReply *reply = redis_fixture_ask(&other, "LLEN %sdaily:" DAY, fixture.prefix);
        atomic_fetch_add(&watcher->bad, reply->integer != LARGE && reply->integer != LARGE + 1);
        atomic_fetch_add(&watcher->looks, 1);
        freeReplyObject(reply);
    }
    redisFree(other.redis);
    return NULL;
}

static void test_restore_is_one_step(void **state)
{
    struct gateway_test *test = *state;
    struct ng_entry *entries = calloc(LARGE, sizeof(*entries));
    char(*ids)[16] = calloc(LARGE, sizeof(*ids));
    struct watcher watcher = {0};
    pthread_t thread;
    assert_non_null(entries);
    assert_non_null(ids);
    for (size_t i = 0; i < LARGE; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "e%zu", i);
        entries[i] = i % 2 == 0 ? journal_memory("shared", ids[i], "text", (int64_t)i)
                                : journal_reference("shared", ids[i], ids[i], i, (int64_t)i);
    }
    for (size_t at = 0; at < LARGE; at += LARGE / 2) {
        assert_int_equal(deliver(test, entries + at, LARGE / 2), NG_OK);
    }
    struct call *call = harness_new_call(&test->harness);
    struct ng_str json = {NULL, 0};
    struct ng_str space = ng_str_of("shared");
    assert_int_equal(test->journal->dump(test->db, &call->pub, space, &json), NG_OK);
    assert_int_equal(pthread_create(&thread, NULL, watch_day, &watcher), 0);
    while (atomic_load(&watcher.looks) == 0) {
        sched_yield();
    }
    for (int i = 0; i < RESTORES; i++) {
        struct ng_entry more = journal_memory("shared", "more", "more", LARGE);
        assert_int_equal(deliver(test, &more, 1), NG_OK);
        assert_int_equal(test->journal->restore(test->db, &call->pub, space, json), NG_OK);
        expect_number("EXISTS", "memory:more", 0);
        expect_number("EXISTS", "memory:e0", 1);
    }
    atomic_store(&watcher.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&watcher.bad), 0);
    call_unref(call);
    free(ids);
    free(entries);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static int run_on(const char *name)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reference_keys), TEST(test_memory_keys),     TEST(test_spaces),
        TEST(test_long_space),     TEST(test_checkpoint_keys), TEST(test_long_summary),
        TEST(test_engine),         TEST(test_odd_texts),       TEST(test_foreign),
        TEST(test_wrong_type),     TEST(test_two_gateways),    TEST(test_restore_is_one_step),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    static const char *const variables[] = {
        "NOTEGATE_TEST_REDIS_URI",
        "NOTEGATE_TEST_REDIS_NEW_URI",
        "NOTEGATE_TEST_REDIS_SEARCH_URI",
    };
    int failed = 0;
    int missing = 0;
    for (size_t i = 0; i < NG_COUNT(variables); i++) {
        if (!redis_fixture_open(&fixture, variables[i])) {
            (void)printf("%s names no server: skipped\n", variables[i]);
            missing++;
            continue;
        }
        (void)setenv("NOTEGATE_TEST_REDIS_WATCHED", getenv(variables[i]), 1);
        redisReply *list = redis_fixture_ask(&fixture, "FT._LIST");
        searches = list->type == REDIS_REPLY_ARRAY;
        freeReplyObject(list);
        failed += run_on(variables[i]);
        redis_fixture_close(&fixture);
    }
    return failed != 0 ? 1 : missing > 0 ? SKIPPED : 0;
}
