/* SPDX-License-Identifier: MIT */
/* test_journal_documents.c - the journal kept in documents, and the delivery that feeds it. */
#include "journal_contract.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/journal/journal.h"
#include "core/store/store.h"

static const char *const sets[] = {"plugins=notebook", "documents=sqlite", NULL};

#define WAIT_NS INT64_C(30000000000)

static const struct ng_collection papers = {
    .name = "papers",
    .flags = NG_COLLECTION_REFERENCED,
    .field_size = sizeof(struct ng_field),
};

static int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, sets);
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_declare(harness->gateway->store, call, &papers), NG_OK);
    call_unref(call);
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

struct paper {
    const char *data; /* of the event */
};

static int write_paper(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    (void)present;
    const struct paper *paper = user;
    if (paper->data != NULL) {
        store_draft_event(next, ng_str_of(paper->data));
    }
    return store_draft_json(next, arena_printf(&call_of(call)->arena, "{\"a\":1}"));
}

static void change_paper(struct harness *harness, const char *id, const char *data)
{
    struct call *call = harness_new_call(harness);
    struct paper paper = {data};
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("papers"), ng_str_of("team"), ng_str_of(id)},
        .fn = write_paper,
        .user = &paper,
    };
    assert_int_equal(store_write_wait(harness->gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
}

static int flush(struct harness *harness, struct journal_front *front)
{
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    int rc = journal_flush(front, call);
    call_unref(call);
    return rc;
}

/* ---- the delivery into documents ---- */

static void test_references(void **state)
{
    struct harness *harness = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    change_paper(harness, "p1",
                 "{\"title\":\"A paper\",\"summary\":\"About things\",\"status\":\"draft\","
                 "\"tags\":[\"x\",\"y\"],\"restored_from\":3}");
    change_paper(harness, "p1", NULL);
    change_paper(harness, "m1",
                 "{\"kind\":\"memory\",\"content\":\"I remember\",\"source\":\"thought\","
                 "\"score\":0.25,\"event_id\":\"mine\"}");
    assert_int_equal(flush(harness, harness->gateway->journal), NG_OK);
    assert_int_equal(journal_backlog(harness->gateway->journal), 0);
    assert_false(journal_degraded(harness->gateway->journal));

    journal_collect_timeline(harness, "team", NULL, NULL, 0, rows);
    assert_int_equal(rows->count, 3);
    const struct ng_entry *memory = &rows->entries[0];
    assert_int_equal(memory->kind, NG_ENTRY_MEMORY);
    assert_str(memory->event_id, "mine");
    assert_str(memory->content, "I remember");
    assert_str(memory->source, "thought");
    assert_true(memory->score > 0.24 && memory->score < 0.26);
    const struct ng_entry *created = &rows->entries[2];
    assert_int_equal(created->kind, NG_ENTRY_REFERENCE);
    assert_str(created->action, "created");
    assert_str(created->collection, "papers");
    assert_str(created->id, "p1");
    assert_str(created->title, "A paper");
    assert_str(created->content, "About things");
    assert_str(created->status, "draft");
    assert_str(created->data, "{\"restored_from\":3}");
    assert_int_equal(created->tag_count, 2);
    assert_int_equal(created->version, 1);
    assert_str(rows->entries[1].action, "updated");
    assert_int_equal(rows->entries[1].version, 2);
    collected_done(rows);
    free(rows);
}

static void test_long_summary(void **state)
{
    struct harness *harness = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    struct buf data;
    assert_non_null(rows);
    buf_init(&data, 65536);
    buf_add_c(&data, "{\"summary\":\"");
    for (int i = 0; i < 300; i++) {
        buf_add_c(&data, "\xc3\xa4");
    }
    buf_add_c(&data, "\"}");
    change_paper(harness, "p1", buf_cstr(&data));
    assert_int_equal(flush(harness, harness->gateway->journal), NG_OK);
    journal_collect_timeline(harness, "team", NULL, NULL, 0, rows);
    assert_int_equal(rows->count, 1);
    assert_int_equal(rows->entries[0].content.len, 2 * NG_SUMMARY_MAX);
    collected_done(rows);
    buf_done(&data);
    free(rows);
}

static void test_not_referenced(void **state)
{
    struct harness *harness = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct answer answer = harness_call_as(harness, "ann", "team", "notebook",
                                           "{\"mode\":\"write\",\"newStr\":\"x\"}");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    assert_int_equal(flush(harness, harness->gateway->journal), NG_OK);
    journal_collect_timeline(harness, "team", NULL, NULL, 0, rows);
    assert_int_equal(rows->count, 0);
    collected_done(rows);
    free(rows);
}

static void test_many_papers(void **state)
{
    struct harness *harness = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    for (int i = 0; i < 400; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "p%d", i);
        change_paper(harness, id, NULL);
    }
    assert_int_equal(flush(harness, harness->gateway->journal), NG_OK);
    journal_collect_timeline(harness, "team", NULL, NULL, 1000, rows);
    assert_int_equal(rows->count, 400);
    for (int i = 0; i < 400; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "p%d", 399 - i);
        assert_str(rows->entries[i].id, id);
    }
    collected_done(rows);
    harness_reopen(harness);
    journal_collect_timeline(harness, "team", NULL, NULL, 1000, rows);
    assert_int_equal(rows->count, 400);
    collected_done(rows);
    free(rows);
}

#define WRITERS 8
#define PAPERS 40

struct writer {
    struct harness *harness;
    int number;
};

static void *write_papers(void *user)
{
    const struct writer *writer = user;
    for (int i = 0; i < PAPERS; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "p%d", writer->number);
        change_paper(writer->harness, id, NULL);
    }
    return NULL;
}

/* While the delivery runs: every change is one reference, and the count comes back to nothing.
 */
static void test_writers_at_once(void **state)
{
    struct harness *harness = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    uint64_t last[WRITERS] = {0};
    assert_non_null(rows);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){harness, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_papers, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(flush(harness, harness->gateway->journal), NG_OK);
    assert_int_equal(journal_backlog(harness->gateway->journal), 0);
    journal_collect_timeline(harness, "team", NULL, NULL, 1000, rows);
    assert_int_equal(rows->count, WRITERS * PAPERS);
    for (size_t i = rows->count; i > 0; i--) {
        const struct ng_entry *entry = &rows->entries[i - 1];
        int number = entry->id.data[1] - '0';
        assert_in_range(number, 0, WRITERS - 1);
        assert_int_equal(entry->version, last[number] + 1);
        last[number] = entry->version;
    }
    collected_done(rows);
    free(rows);
}

/* ---- a journal that is away, and comes back ---- */

#define HEARD_MAX 1024

struct heard {
    atomic_bool away;
    atomic_int conflicts; /* deliveries still to be refused as conflicts */
    atomic_int tried;
    atomic_size_t count;
    uint64_t seqs[HEARD_MAX]; /* written by the delivery's thread alone */
};

static int heard_open(struct ng_call *call, const struct ng_conf *conf, void **ret_journal)
{
    (void)call;
    /* The test hands its own state in as the configuration. */
    *ret_journal = (void *)(uintptr_t)conf;
    return NG_OK;
}

static void heard_close(void *journal)
{
    (void)journal;
}

static int heard_deliver(void *journal, struct ng_call *call,
                         const struct ng_entry *const *entries, size_t count)
{
    struct heard *heard = journal;
    atomic_fetch_add(&heard->tried, 1);
    if (atomic_load(&heard->away)) {
        return call_fail(call_of(call), NG_EUNAVAILABLE, "away");
    }
    if (atomic_load(&heard->conflicts) > 0) {
        atomic_fetch_sub(&heard->conflicts, 1);
        return call_fail(call_of(call), NG_ECONFLICT, "conflict");
    }
    for (size_t i = 0; i < count; i++) {
        if (str_is(entries[i]->id, "poison")) {
            return call_fail(call_of(call), NG_EINVAL, "poison");
        }
        size_t at = atomic_load(&heard->count);
        assert_true(at < HEARD_MAX);
        heard->seqs[at] = entries[i]->seq;
        atomic_store(&heard->count, at + 1);
    }
    return NG_OK;
}

static const struct ng_journal heard_journal = {
    .name = "documents", /* it goes on where that journal was; another one would get all */
    .version = "1",
    .open = heard_open,
    .close = heard_close,
    .deliver = heard_deliver,
};

static int heard_deliver_marked(void *journal, struct ng_call *call, struct ng_str mark,
                                uint64_t seq, const struct ng_entry *const *entries,
                                size_t count)
{
    (void)mark;
    (void)seq;
    return count > 0 ? heard_deliver(journal, call, entries, count) : NG_OK;
}

/* It has lost nothing. */
static int heard_mark(void *journal, struct ng_call *call, struct ng_str mark,
                      uint64_t *ret_seq)
{
    (void)journal;
    (void)call;
    (void)mark;
    *ret_seq = INT64_MAX;
    return NG_OK;
}

static const struct ng_journal heard_marked_journal = {
    .name = "documents",
    .version = "1",
    .open = heard_open,
    .close = heard_close,
    .deliver = heard_deliver,
    .mark = heard_mark,
    .deliver_marked = heard_deliver_marked,
};

/* The gateway's own delivery stops; this one takes over its feed. */
static struct journal_front *open_heard_as(struct harness *harness, struct heard *heard,
                                           const struct ng_journal *journal)
{
    struct journal_front *front = NULL;
    struct call *call = harness_new_call(harness);
    journal_stop(harness->gateway->journal);
    assert_int_equal(journal_open(call, harness->gateway, journal,
                                  (const struct ng_conf *)(const void *)heard, &front),
                     NG_OK);
    call_unref(call);
    return front;
}

static struct journal_front *open_heard(struct harness *harness, struct heard *heard)
{
    return open_heard_as(harness, heard, &heard_journal);
}

static void wait_for(const char *what, bool (*holds)(void *user), void *user)
{
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    while (!holds(user)) {
        if (clock_monotonic_ns() > until) {
            fail_msg("it never came true: %s", what);
        }
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
}

static bool is_degraded(void *user)
{
    return journal_degraded(user);
}

static bool is_empty(void *user)
{
    return journal_backlog(user) == 0;
}

static void test_away(void **state)
{
    struct harness *harness = *state;
    struct heard *heard = calloc(1, sizeof(*heard));
    assert_non_null(heard);
    atomic_store(&heard->away, true);
    change_paper(harness, "before", NULL);
    assert_int_equal(flush(harness, harness->gateway->journal), NG_OK);
    struct journal_front *front = open_heard(harness, heard);
    /* Writes go on, the backlog grows. */
    for (int i = 0; i < 300; i++) {
        change_paper(harness, i % 2 == 0 ? "p1" : "p2", NULL);
    }
    assert_int_equal(journal_backlog(front), 300);
    wait_for("the front says degraded", is_degraded, front);
    assert_int_equal(flush(harness, front), NG_EUNAVAILABLE);
    assert_int_equal(journal_backlog(front), 300);

    atomic_store(&heard->away, false);
    assert_int_equal(flush(harness, front), NG_OK);
    assert_false(journal_degraded(front));
    wait_for("the backlog is empty", is_empty, front);
    /* In order, none missing, and nothing of what was delivered before. */
    size_t count = atomic_load(&heard->count);
    assert_int_equal(count, 300);
    for (size_t i = 1; i < count; i++) {
        assert_true(heard->seqs[i] > heard->seqs[i - 1]);
    }
    journal_stop(front);
    /* The store may tell the front until it is closed. */
    harness_close(harness);
    journal_close(front);
    free(heard);
    harness_open(harness, sets);
}

static void test_backlog_of_before(void **state)
{
    struct harness *harness = *state;
    struct heard *heard = calloc(1, sizeof(*heard));
    assert_non_null(heard);
    atomic_store(&heard->away, true);
    journal_stop(harness->gateway->journal);
    for (int i = 0; i < 20; i++) {
        change_paper(harness, "p1", NULL);
    }
    struct journal_front *front = open_heard(harness, heard);
    wait_for("the front says degraded", is_degraded, front);
    assert_int_equal(journal_backlog(front), 20);
    atomic_store(&heard->away, false);
    assert_int_equal(flush(harness, front), NG_OK);
    assert_int_equal(journal_backlog(front), 0);
    assert_int_equal(atomic_load(&heard->count), 20);
    journal_stop(front);
    harness_close(harness);
    journal_close(front);
    free(heard);
    harness_open(harness, sets);
}

/* A delivery that is refused as a conflict has delivered nothing: a flush does not end with it.
 */
static void check_conflict(struct harness *harness, const struct ng_journal *journal)
{
    struct heard *heard = calloc(1, sizeof(*heard));
    assert_non_null(heard);
    journal_stop(harness->gateway->journal);
    change_paper(harness, "p1", NULL);
    atomic_store(&heard->conflicts, 2);
    struct journal_front *front = open_heard_as(harness, heard, journal);
    while (flush(harness, front) != NG_OK) {
        assert_int_equal(journal_backlog(front), 1);
    }
    assert_int_equal(atomic_load(&heard->count), 1);
    assert_int_equal(atomic_load(&heard->tried), 3);
    assert_int_equal(journal_backlog(front), 0);
    journal_stop(front);
    harness_close(harness);
    journal_close(front);
    free(heard);
    harness_open(harness, sets);
}

static void test_conflict(void **state)
{
    check_conflict(*state, &heard_journal);
}

static void test_conflict_of_a_marked_journal(void **state)
{
    check_conflict(*state, &heard_marked_journal);
}

static void test_poison(void **state)
{
    struct harness *harness = *state;
    struct heard *heard = calloc(1, sizeof(*heard));
    assert_non_null(heard);
    journal_stop(harness->gateway->journal);
    change_paper(harness, "p1", NULL);
    change_paper(harness, "poison", NULL);
    change_paper(harness, "p2", NULL);
    struct journal_front *front = open_heard(harness, heard);
    assert_int_equal(flush(harness, front), NG_OK);
    assert_false(journal_degraded(front));
    assert_int_equal(journal_backlog(front), 0);
    /* The first came at least once, the last after the one that was left out. */
    size_t count = atomic_load(&heard->count);
    assert_true(count >= 2);
    assert_true(heard->seqs[count - 1] > heard->seqs[0]);
    journal_stop(front);
    harness_close(harness);
    journal_close(front);
    free(heard);
    harness_open(harness, sets);
}

/* A restore that ends in the middle changes nothing, and leaves nothing for the next one. */
static void test_restore_cut_off(void **state)
{
    struct harness *harness = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    void *db = NULL;
    const struct ng_journal *journal = journal_vtable(harness->gateway->journal, &db);
    struct ng_str space = ng_str_of("team");
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    struct ng_entry entries[] = {
        journal_memory("team", "e1", "one", 1),
        journal_memory("team", "e2", "two", 2),
    };
    assert_int_equal(harness_deliver(journal, db, call, entries, 2), NG_OK);
    struct ng_str dumped = {NULL, 0};
    assert_int_equal(journal->dump(db, &call->pub, space, &dumped), NG_OK);
    static const char member[] = "\"memories\":[";
    const char *at = memmem(dumped.data, dumped.len, member, sizeof(member) - 1);
    assert_non_null(at);
    size_t before = (size_t)(at - dumped.data) + sizeof(member) - 1;
    struct buf damaged;
    buf_init(&damaged, 1024 * 1024);
    buf_add(&damaged, dumped.data, before);
    buf_add_c(&damaged, "{},");
    buf_add(&damaged, dumped.data + before, dumped.len - before);

    struct ng_entry later = journal_memory("team", "e3", "three", 3);
    assert_int_equal(harness_deliver(journal, db, call, &later, 1), NG_OK);
    assert_int_equal(journal->restore(db, &call->pub, space, buf_str(&damaged)), NG_EINVAL);
    journal_collect_timeline(harness, "team", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 3);
    collected_done(rows);
    /* The day's lines of the damaged one were written beside: an empty dump must not show
     * them. */
    assert_int_equal(
        journal->restore(db, &call->pub, space,
                         ng_str_of("{\"format\":\"notegate-journal-1\",\"days\":[],"
                                   "\"references\":[],\"memories\":[],\"summary\":null}")),
        NG_OK);
    journal_collect_timeline(harness, "team", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 0);
    collected_done(rows);
    call_unref(call);
    buf_done(&damaged);
    free(rows);
}

static void test_zone(void **state)
{
    (void)state;
    struct harness harness = {0};
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    static const char *const far[] = {"plugins=notebook", "timezone=Pacific/Kiritimati", NULL};
    harness_open(&harness, far);
    void *db = NULL;
    const struct ng_journal *journal = journal_vtable(harness.gateway->journal, &db);
    struct call *call = harness_new_call(&harness);
    /* 14 hours ahead: noon of the 17th is the 18th there. */
    struct ng_entry entry = journal_memory("team", "e1", "noon", 12 * 3600);
    assert_int_equal(harness_deliver(journal, db, call, &entry, 1), NG_OK);
    assert_str(call->pub.host->day(&call->pub, entry.time_ms), "2024-05-18");
    call_unref(call);
    journal_collect_timeline(&harness, "team", "2024-05-18", NULL, 0, rows);
    assert_int_equal(rows->count, 1);
    collected_done(rows);
    harness_close(&harness);
    free(rows);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_references),
        TEST(test_long_summary),
        TEST(test_not_referenced),
        TEST(test_many_papers),
        TEST(test_writers_at_once),
        TEST(test_away),
        TEST(test_backlog_of_before),
        TEST(test_conflict),
        TEST(test_conflict_of_a_marked_journal),
        TEST(test_poison),
        TEST(test_restore_cut_off),
        cmocka_unit_test(test_zone),
    };
    int failed = journal_contract("journal in documents", sets);
    return failed + cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
