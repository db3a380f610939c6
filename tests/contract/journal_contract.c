/* SPDX-License-Identifier: MIT */
/* journal_contract.c - the suite every journal passes: delivering, the timeline, recall. */
#include "journal_parts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

const char *const journal_day = "2024-05-17";
/* 2024-05-17 00:00:00 UTC. */
#define JOURNAL_DAY_MS INT64_C(1715904000000)

void suite_find(struct suite *suite)
{
    suite->journal = journal_vtable(suite->harness.gateway->journal, &suite->db);
    assert_non_null(suite->journal);
}

/* ---- helpers ---- */

void assert_str(struct ng_str text, const char *want)
{
    if (!str_is(text, want)) {
        fail_msg("\"%.*s\" should be \"%s\"", (int)text.len, text.data == NULL ? "" : text.data,
                 want);
    }
}

struct ng_entry journal_reference(const char *space, const char *event_id, const char *id,
                                  uint64_t version, int64_t seconds)
{
    struct ng_entry entry = {
        .size = sizeof(entry),
        .kind = NG_ENTRY_REFERENCE,
        .event_id = ng_str_of(event_id),
        .seq = (uint64_t)seconds,
        .space = ng_str_of(space),
        .time_ms = JOURNAL_DAY_MS + seconds * 1000,
        .agent = ng_str_of("ann"),
        .action = ng_str_of("updated"),
        .collection = ng_str_of("pages"),
        .id = ng_str_of(id),
        .title = ng_str_of("A title"),
        .status = ng_str_of("active"),
        .version = version,
        .content = ng_str_of("What the page is about"),
        .source = ng_str_of("notebook"),
        .score = 1,
    };
    return entry;
}

struct ng_entry journal_memory(const char *space, const char *event_id, const char *content,
                               int64_t seconds)
{
    struct ng_entry entry = {
        .size = sizeof(entry),
        .kind = NG_ENTRY_MEMORY,
        .event_id = ng_str_of(event_id),
        .seq = (uint64_t)seconds,
        .space = ng_str_of(space),
        .time_ms = JOURNAL_DAY_MS + seconds * 1000,
        .agent = ng_str_of("ann"),
        .action = ng_str_of("created"),
        .content = ng_str_of(content),
        .source = ng_str_of("thought"),
        .score = 0.5,
    };
    return entry;
}

static struct ng_str collected_copy(struct collected *collected, struct ng_str text)
{
    return arena_copy(&collected->call->arena, text);
}

static int collect_row(void *user, const struct ng_entry *entry)
{
    struct collected *collected = user;
    assert_true(collected->count < JOURNAL_COLLECTED_MAX);
    struct ng_entry *copy = &collected->entries[collected->count++];
    *copy = *entry;
    copy->event_id = collected_copy(collected, entry->event_id);
    copy->agent = collected_copy(collected, entry->agent);
    copy->action = collected_copy(collected, entry->action);
    copy->collection = collected_copy(collected, entry->collection);
    copy->id = collected_copy(collected, entry->id);
    copy->title = collected_copy(collected, entry->title);
    copy->status = collected_copy(collected, entry->status);
    copy->content = collected_copy(collected, entry->content);
    copy->source = collected_copy(collected, entry->source);
    copy->data = collected_copy(collected, entry->data);
    struct ng_str *tags =
        arena_alloc(&collected->call->arena, (entry->tag_count + 1) * sizeof(*tags));
    assert_non_null(tags);
    for (size_t i = 0; i < entry->tag_count; i++) {
        tags[i] = collected_copy(collected, entry->tags[i]);
    }
    copy->tags = tags;
    return 0;
}

void journal_collect_timeline(struct harness *harness, const char *space, const char *date,
                              const char *agent, uint32_t limit, struct collected *ret)
{
    void *db = NULL;
    const struct ng_journal *journal = journal_vtable(harness->gateway->journal, &db);
    ret->call = harness_new_call(harness);
    ret->count = 0;
    struct ng_timeline timeline = {
        .size = sizeof(timeline),
        .space = ng_str_of(space),
        .date = ng_str_of(date),
        .agent = ng_str_of(agent),
        .limit = limit,
    };
    assert_int_equal(journal->timeline(db, &ret->call->pub, &timeline, collect_row, ret),
                     NG_OK);
}

void collected_done(struct collected *collected)
{
    call_unref(collected->call);
    collected->call = NULL;
}

int suite_deliver(struct suite *suite, const struct ng_entry *entries, size_t count)
{
    struct call *call = harness_new_call(&suite->harness);
    int rc = harness_deliver(suite->journal, suite->db, call, entries, count);
    call_unref(call);
    return rc;
}

void suite_recall(struct suite *suite, struct ng_recall *recall, struct collected *collected)
{
    const char *engine = NULL;
    collected->call = harness_new_call(&suite->harness);
    collected->count = 0;
    recall->size = sizeof(*recall);
    assert_int_equal(suite->journal->recall(suite->db, &collected->call->pub, recall,
                                            collect_row, collected, &engine),
                     NG_OK);
    assert_non_null(engine);
}

/* ---- delivering and the timeline ---- */

static void test_timeline(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_str tags[] = {ng_str_of("red"), ng_str_of("blue")};
    struct ng_entry entries[] = {
        journal_reference("team", "e1", "p1", 1, 10),
        journal_memory("team", "e2", "I thought of something", 20),
        journal_reference("team", "e3", "p2", 1, 30),
        journal_reference("other", "e4", "p3", 1, 40),
    };
    entries[0].tags = tags;
    entries[0].tag_count = NG_COUNT(tags);
    entries[0].data = ng_str_of("{\"restored_from\":7}");
    entries[2].agent = ng_str_of("bob");
    assert_int_equal(suite_deliver(suite, entries, NG_COUNT(entries)), NG_OK);

    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 3);
    assert_str(rows->entries[0].event_id, "e3");
    assert_str(rows->entries[1].event_id, "e2");
    assert_int_equal(rows->entries[1].kind, NG_ENTRY_MEMORY);
    assert_str(rows->entries[1].content, "I thought of something");
    const struct ng_entry *first = &rows->entries[2];
    assert_int_equal(first->kind, NG_ENTRY_REFERENCE);
    assert_str(first->action, "updated");
    assert_str(first->collection, "pages");
    assert_str(first->id, "p1");
    assert_str(first->title, "A title");
    assert_str(first->status, "active");
    assert_str(first->content, "What the page is about");
    assert_str(first->agent, "ann");
    assert_int_equal(first->version, 1);
    assert_int_equal(first->time_ms, JOURNAL_DAY_MS + 10000);
    assert_str(first->data, "{\"restored_from\":7}");
    assert_int_equal(first->tag_count, 2);
    assert_str(first->tags[1], "blue");
    collected_done(rows);

    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 2, rows);
    assert_int_equal(rows->count, 2);
    assert_str(rows->entries[1].event_id, "e2");
    collected_done(rows);
    journal_collect_timeline(&suite->harness, "team", journal_day, "bob", 0, rows);
    assert_int_equal(rows->count, 1);
    assert_str(rows->entries[0].event_id, "e3");
    collected_done(rows);
    journal_collect_timeline(&suite->harness, "team", "2024-05-18", NULL, 0, rows);
    assert_int_equal(rows->count, 0);
    collected_done(rows);
    journal_collect_timeline(&suite->harness, "team", NULL, NULL, 0, rows);
    assert_int_equal(rows->count, 0);
    collected_done(rows);
    free(rows);
}

static void test_bad_date(void **state)
{
    struct suite *suite = *state;
    struct call *call = harness_new_call(&suite->harness);
    struct ng_timeline timeline = {
        .size = sizeof(timeline),
        .space = ng_str_of("team"),
        .date = ng_str_of("yesterday"),
    };
    assert_int_equal(
        suite->journal->timeline(suite->db, &call->pub, &timeline, collect_row, NULL),
        NG_EINVAL);
    call_unref(call);
}

static void test_delivered_twice(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry entries[] = {
        journal_reference("team", "e1", "p1", 1, 10),
        journal_memory("team", "e2", "once", 20),
        journal_memory("team", "e2", "once", 20),
    };
    assert_int_equal(suite_deliver(suite, entries, NG_COUNT(entries)), NG_OK);
    assert_int_equal(suite_deliver(suite, entries, NG_COUNT(entries)), NG_OK);
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 2);
    collected_done(rows);
    struct ng_recall recall = {.space = ng_str_of("team")};
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 2);
    collected_done(rows);
    free(rows);
}

/* A recall of memories leaves references out, also a memory that looks like one. */
static void test_recall_of_memories(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry entries[] = {
        journal_reference("team", "e1", "p1", 1, 10),
        journal_reference("team", "e2", "p2", 1, 20),
        journal_memory("team", "e3", "a lantern", 30),
        journal_memory("team", "e4", "another lantern", 40),
    };
    entries[0].title = ng_str_of("lantern");
    entries[1].content = ng_str_of("of a lantern");
    entries[3].source = ng_str_of("notebook");
    assert_int_equal(suite_deliver(suite, entries, NG_COUNT(entries)), NG_OK);
    static const char *const texts[] = {"", "lantern", "lanterns"};
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        struct ng_recall recall = {
            .space = ng_str_of("team"), .text = ng_str_of(texts[i]), .memories = true};
        suite_recall(suite, &recall, rows);
        assert_int_equal(rows->count, 2);
        assert_int_equal(rows->entries[0].kind, NG_ENTRY_MEMORY);
        assert_int_equal(rows->entries[1].kind, NG_ENTRY_MEMORY);
        collected_done(rows);
    }
    free(rows);
}

static void test_many(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    struct ng_entry *entries = calloc(NG_DELIVERY_MAX, sizeof(*entries));
    char(*ids)[16] = calloc(NG_DELIVERY_MAX, sizeof(*ids));
    assert_non_null(rows);
    assert_non_null(entries);
    assert_non_null(ids);
    for (size_t i = 0; i < NG_DELIVERY_MAX; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "e%zu", i);
        entries[i] = i % 3 == 0 ? journal_memory("team", ids[i], "text", (int64_t)i)
                                : journal_reference(i % 3 == 1 ? "team" : "other", ids[i], "p1",
                                                    i + 1, (int64_t)i);
    }
    assert_int_equal(suite_deliver(suite, entries, NG_DELIVERY_MAX), NG_OK);
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 1000, rows);
    size_t want = 0;
    for (size_t i = NG_DELIVERY_MAX; i > 0; i--) {
        if ((i - 1) % 3 != 2) {
            assert_true(want < rows->count);
            assert_str(rows->entries[want++].event_id, ids[i - 1]);
        }
    }
    assert_int_equal(rows->count, want);
    collected_done(rows);
    free(ids);
    free(entries);
    free(rows);
}

static void test_reference_moves_forward(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry late = journal_reference("team", "e1", "p1", 2, 10);
    struct ng_entry early = journal_reference("team", "e2", "p1", 2, 30);
    late.action = ng_str_of("deleted");
    late.version = 3;
    early.action = ng_str_of("opened");
    assert_int_equal(suite_deliver(suite, &late, 1), NG_OK);
    assert_int_equal(suite_deliver(suite, &early, 1), NG_OK);
    struct ng_recall recall = {.space = ng_str_of("team")};
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 1);
    assert_str(rows->entries[0].action, "deleted");
    assert_int_equal(rows->entries[0].version, 3);
    collected_done(rows);

    /* The same in one delivery, and by sequence where the version is the same. */
    struct ng_entry both[] = {
        journal_reference("team", "e3", "p2", 1, 50),
        journal_reference("team", "e4", "p2", 1, 60),
        journal_reference("team", "e5", "p2", 1, 40),
    };
    assert_int_equal(suite_deliver(suite, both, NG_COUNT(both)), NG_OK);
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 2);
    assert_str(rows->entries[0].event_id, "e4");
    collected_done(rows);
    /* All of them are in the day. */
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 5);
    collected_done(rows);
    free(rows);
}

static void test_bad_entries(void **state)
{
    struct suite *suite = *state;
    struct ng_entry entry = journal_memory("team", "", "no id", 1);
    assert_int_equal(suite_deliver(suite, &entry, 1), NG_EINVAL);
    assert_int_equal(suite_deliver(suite, &entry, 0), NG_OK);
}

#define DELIVERERS 8
#define DELIVERED 40

struct deliverer {
    struct suite *suite;
    int failures;
};

static void *deliver_same(void *user)
{
    struct deliverer *deliverer = user;
    for (int i = 0; i < DELIVERED; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "e%d", i);
        struct ng_entry entry = journal_memory("team", id, "the same for all", i);
        deliverer->failures += suite_deliver(deliverer->suite, &entry, 1) != NG_OK;
    }
    return NULL;
}

static void test_at_once(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct deliverer deliverers[DELIVERERS];
    pthread_t threads[DELIVERERS];
    for (size_t i = 0; i < DELIVERERS; i++) {
        deliverers[i] = (struct deliverer){suite, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, deliver_same, &deliverers[i]), 0);
    }
    for (size_t i = 0; i < DELIVERERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(deliverers[i].failures, 0);
    }
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 1000, rows);
    assert_int_equal(rows->count, DELIVERED);
    collected_done(rows);
    free(rows);
}

/* Each allocation of a delivery and of a reading fails once: an error and no harm. */
static void test_out_of_memory(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry entries[] = {
        journal_reference("team", "e1", "p1", 1, 10),
        journal_memory("team", "e2", "text", 20),
    };
    bool delivered = false;
    for (long fails = 0; !delivered; fails++) {
        struct call *call = harness_new_call(&suite->harness);
        alloc_fail_after(fails);
        int rc = harness_deliver(suite->journal, suite->db, call, entries, NG_COUNT(entries));
        alloc_fail_after(-1);
        delivered = rc == NG_OK;
        assert_true(rc == NG_OK || rc == NG_EINTERNAL || rc == NG_EUNAVAILABLE);
        call_unref(call);
        assert_true(fails < 10000);
    }
    assert_int_equal(suite_deliver(suite, entries, NG_COUNT(entries)), NG_OK);
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 2);
    collected_done(rows);
    free(rows);
}

/* ---- recall ---- */

static void test_recall(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_str red[] = {ng_str_of("red"), ng_str_of("big")};
    struct ng_str blue[] = {ng_str_of("blue")};
    struct ng_str wanted[] = {ng_str_of("blue"), ng_str_of("green")};
    struct ng_entry entries[] = {
        journal_memory("team", "e1", "the harbour was full of herons", 10),
        journal_memory("team", "e2", "nothing to see here", 20),
        journal_memory("team", "e3", "a heron stood in the harbour", 30),
        journal_reference("team", "e4", "p1", 1, 40),
        journal_memory("other", "e5", "another harbour", 50),
    };
    entries[0].tags = red;
    entries[0].tag_count = 2;
    entries[2].tags = blue;
    entries[2].tag_count = 1;
    entries[2].source = ng_str_of("message");
    entries[3].content = ng_str_of("Plans for the harbour");
    assert_int_equal(suite_deliver(suite, entries, NG_COUNT(entries)), NG_OK);

    struct ng_recall recall = {.space = ng_str_of("team"), .text = ng_str_of("harbour")};
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 3);
    collected_done(rows);
    recall.source = ng_str_of("message");
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 1);
    assert_str(rows->entries[0].event_id, "e3");
    assert_str(rows->entries[0].content, "a heron stood in the harbour");
    collected_done(rows);
    recall.source = ng_str_of(NULL);
    recall.tags = wanted;
    recall.tag_count = 2;
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 1);
    assert_str(rows->entries[0].event_id, "e3");
    collected_done(rows);
    recall.tag_count = 0;
    recall.since_ms = JOURNAL_DAY_MS + 30000;
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 2);
    collected_done(rows);
    /* Without a text: the newest first. */
    struct ng_recall all = {.space = ng_str_of("team"), .limit = 3};
    suite_recall(suite, &all, rows);
    assert_int_equal(rows->count, 3);
    assert_str(rows->entries[0].event_id, "e4");
    assert_str(rows->entries[1].event_id, "e3");
    assert_str(rows->entries[2].event_id, "e2");
    collected_done(rows);
    free(rows);
}

/* Any of the words; the score is a factor of the rank, and of equal ones the newest is first.
 */
static void test_recall_ranks(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry entries[] = {
        journal_memory("team", "e1", "lantern of the harbour", 10),
        journal_memory("team", "e2", "lantern of the harbour", 20),
        journal_memory("team", "e3", "lantern of the harbour", 30),
        journal_memory("team", "e4", "lantern of the harbour", 40),
        journal_memory("team", "e5", "only a gull", 50),
    };
    const double scores[] = {0.1, 0.9, 0.5, 0.5, 0.5};
    for (size_t i = 0; i < NG_COUNT(entries); i++) {
        entries[i].score = scores[i];
    }
    assert_int_equal(suite_deliver(suite, entries, NG_COUNT(entries)), NG_OK);
    struct ng_recall recall = {.space = ng_str_of("team"), .text = ng_str_of("lantern")};
    static const char *const order[] = {"e2", "e4", "e3", "e1"};
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, NG_COUNT(order));
    for (size_t i = 0; i < NG_COUNT(order); i++) {
        assert_str(rows->entries[i].event_id, order[i]);
    }
    collected_done(rows);
    recall.limit = 1;
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 1);
    assert_str(rows->entries[0].event_id, "e2");
    collected_done(rows);
    recall.limit = 10;
    recall.min_score = 0.5;
    recall.text = ng_str_of("what about the gull or a harbour");
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 4);
    collected_done(rows);
    struct ng_recall newest = {.space = ng_str_of("team"), .limit = 1, .min_score = 0.6};
    suite_recall(suite, &newest, rows);
    assert_int_equal(rows->count, 1);
    assert_str(rows->entries[0].event_id, "e2");
    collected_done(rows);
    free(rows);
}

/* A word as it is comes before its stem, whatever the kind and the score. */
static void test_recall_exact_first(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry entries[] = {
        journal_reference("team", "e1", "p1", 1, 10),
        journal_memory("team", "e2", "a lantern", 20),
        journal_memory("team", "e3", "many lanterns", 30),
    };
    entries[0].content = ng_str_of("lanterns of the harbour");
    entries[1].score = 0.1;
    entries[2].score = 1;
    assert_int_equal(suite_deliver(suite, entries, NG_COUNT(entries)), NG_OK);
    struct ng_recall recall = {.space = ng_str_of("team"), .text = ng_str_of("lantern")};
    static const char *const order[] = {"e2", "e3", "e1"};
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, NG_COUNT(order));
    for (size_t i = 0; i < NG_COUNT(order); i++) {
        assert_str(rows->entries[i].event_id, order[i]);
    }
    collected_done(rows);
    free(rows);
}

/* ---- the suite ---- */

int suite_setup(void **state)
{
    const struct suite_start *start = *state;
    if (start->prepare != NULL) {
        start->prepare();
    }
    struct suite *suite = calloc(1, sizeof(*suite));
    assert_non_null(suite);
    harness_open(&suite->harness, start->sets);
    suite_find(suite);
    *state = suite;
    return 0;
}

int suite_teardown(void **state)
{
    struct suite *suite = *state;
    harness_close(&suite->harness);
    free(suite);
    return 0;
}

int journal_contract(const char *name, const char *const *sets)
{
    return journal_contract_on(name, sets, NULL);
}

int journal_contract_on(const char *name, const char *const *sets, void (*prepare)(void))
{
    struct suite_start chosen = {sets, prepare};
    struct suite_start *start = &chosen;
    const struct CMUnitTest tests[] = {
        CONTRACT(test_timeline),
        CONTRACT(test_bad_date),
        CONTRACT(test_delivered_twice),
        CONTRACT(test_recall_of_memories),
        CONTRACT(test_many),
        CONTRACT(test_reference_moves_forward),
        CONTRACT(test_bad_entries),
        CONTRACT(test_at_once),
        CONTRACT(test_out_of_memory),
        CONTRACT(test_recall),
        CONTRACT(test_recall_ranks),
        CONTRACT(test_recall_exact_first),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL) +
           journal_upkeep_contract(name, start) + journal_aside_contract(name, start);
}
