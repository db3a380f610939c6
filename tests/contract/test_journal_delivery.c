/* SPDX-License-Identifier: MIT */
/* test_journal_delivery.c - the delivery to a journal on a server that loses data, refuses, or
 * is away; and events that it must not stumble over. */
#include "journal_contract.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/journal/journal.h"
#include "core/journal/journal_delivery.h"
#include "core/store/store.h"

static const char *const sets[] = {"plugins=notebook", "documents=sqlite", NULL};

#define WAIT_NS INT64_C(60000000000)
#define MARKS_MAX 32
#define HEARD_MAX 512
#define MIB ((size_t)1024 * 1024)

static const struct ng_collection papers = {
    .name = "papers",
    .flags = NG_COLLECTION_REFERENCED,
    .field_size = sizeof(struct ng_field),
};

static const struct ng_collection others = {
    .name = "others",
    .field_size = sizeof(struct ng_field),
};

/* ---- the server ---- */

struct heard {
    uint64_t seq;
    char title[32];
    size_t content, data; /* bytes */
};

struct server {
    pthread_mutex_t lock;
    bool away;
    int refused_marks; /* so many are still to be refused */
    int checks;
    size_t deliveries;
    struct heard heard[HEARD_MAX];
    size_t count;
    struct {
        char name[DELIVERY_MARK_SIZE];
        uint64_t seq;
    } marks[MARKS_MAX];
    size_t mark_count;
};

static int server_open(struct ng_call *call, const struct ng_conf *conf, void **ret_journal)
{
    (void)call;
    /* The test hands its own state in as the configuration. */
    *ret_journal = (void *)(uintptr_t)conf;
    return NG_OK;
}

static void server_close(void *journal)
{
    (void)journal;
}

static int server_fail(struct ng_call *call)
{
    return call_fail(call_of(call), NG_EUNAVAILABLE, "a fault was injected");
}

/* With the lock held. SIZE_MAX: there is none. */
static size_t server_find(const struct server *server, struct ng_str mark)
{
    for (size_t i = 0; i < server->mark_count; i++) {
        if (str_is(mark, server->marks[i].name)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static int server_mark(void *journal, struct ng_call *call, struct ng_str mark,
                       uint64_t *ret_seq)
{
    struct server *server = journal;
    int rc = NG_OK;
    pthread_mutex_lock(&server->lock);
    server->checks++;
    size_t at = server_find(server, mark);
    if (server->away) {
        rc = server_fail(call);
    } else if (at == SIZE_MAX) {
        rc = call_fail(call_of(call), NG_ENOTFOUND, "no such mark");
    } else {
        *ret_seq = server->marks[at].seq;
    }
    pthread_mutex_unlock(&server->lock);
    return rc;
}

static void server_make_mark(struct server *server, struct ng_str mark, uint64_t seq)
{
    if (server_find(server, mark) == SIZE_MAX) {
        size_t at = server->mark_count++;
        assert_true(at < MARKS_MAX);
        (void)snprintf(server->marks[at].name, DELIVERY_MARK_SIZE, "%.*s", (int)mark.len,
                       mark.data);
        server->marks[at].seq = seq;
    }
}

static void server_store(struct server *server, const struct ng_entry *entry)
{
    struct heard *heard = &server->heard[server->count++];
    assert_true(server->count <= HEARD_MAX);
    heard->seq = entry->seq;
    heard->content = entry->content.len;
    heard->data = entry->data.len;
    (void)snprintf(heard->title, sizeof(heard->title), "%.*s", (int)entry->title.len,
                   entry->title.len > 0 ? entry->title.data : "");
}

static int server_deliver_marked(void *journal, struct ng_call *call, struct ng_str mark,
                                 uint64_t seq, const struct ng_entry *const *entries,
                                 size_t count)
{
    struct server *server = journal;
    int rc = NG_OK;
    pthread_mutex_lock(&server->lock);
    size_t at = server_find(server, mark);
    if (server->away || (count == 0 && server->refused_marks > 0)) {
        server->refused_marks -= count == 0 && server->refused_marks > 0;
        rc = server_fail(call);
    } else if (count == 0) {
        server_make_mark(server, mark, seq);
    } else if (at == SIZE_MAX || server->marks[at].seq < seq) {
        rc = call_fail(call_of(call), NG_ECONFLICT, "entries are lost");
    } else {
        server->deliveries++;
        for (size_t i = 0; i < count; i++) {
            server_store(server, entries[i]);
        }
        server->marks[at].seq = entries[count - 1]->seq;
    }
    pthread_mutex_unlock(&server->lock);
    return rc;
}

static int server_deliver(void *journal, struct ng_call *call,
                          const struct ng_entry *const *entries, size_t count)
{
    (void)journal;
    (void)entries;
    (void)count;
    return server_fail(call);
}

static int server_health(void *journal, struct ng_call *call)
{
    struct server *server = journal;
    pthread_mutex_lock(&server->lock);
    bool away = server->away;
    pthread_mutex_unlock(&server->lock);
    return away ? server_fail(call) : NG_OK;
}

static const struct ng_journal server_journal = {
    .name = "documents", /* it goes on where that journal was */
    .version = "1",
    .open = server_open,
    .close = server_close,
    .deliver = server_deliver,
    .health = server_health,
    .mark = server_mark,
    .deliver_marked = server_deliver_marked,
};

/* ---- the bench ---- */

struct bench {
    struct harness harness;
    struct server server;
    struct journal_front *front;
};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    pthread_mutex_init(&bench->server.lock, NULL);
    harness_open(&bench->harness, sets);
    struct store *store = bench->harness.gateway->store;
    struct call *call = harness_new_call(&bench->harness);
    assert_int_equal(store_declare(store, call, &papers), NG_OK);
    assert_int_equal(store_declare(store, call, &others), NG_OK);
    call_unref(call);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    journal_stop(bench->front);
    /* The store may tell the front until it is closed. */
    harness_close(&bench->harness);
    journal_close(bench->front);
    pthread_mutex_destroy(&bench->server.lock);
    free(bench);
    return 0;
}

/* The gateway's own delivery has taken all so far, and stops; this one takes over. */
static void open_front(struct bench *bench)
{
    struct call *call = harness_new_call(&bench->harness);
    assert_int_equal(journal_flush(bench->harness.gateway->journal, call), NG_OK);
    journal_stop(bench->harness.gateway->journal);
    assert_int_equal(journal_open(call, bench->harness.gateway, &server_journal,
                                  (const struct ng_conf *)(const void *)&bench->server,
                                  &bench->front),
                     NG_OK);
    call_unref(call);
}

static int write_paper(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    const struct ng_str *data = user;
    (void)call;
    (void)present;
    store_draft_event(next, *data);
    return store_draft_json(next, ng_str_of("{\"a\":1}"));
}

static void change(struct bench *bench, const struct ng_collection *collection,
                   struct ng_str data)
{
    struct call *call = harness_new_call(&bench->harness);
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(collection->name), ng_str_of("team"), ng_str_of("p1")},
        .fn = write_paper,
        .user = &data,
    };
    assert_int_equal(store_write_wait(bench->harness.gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
}

static void change_paper(struct bench *bench)
{
    change(bench, &papers, str_make(NULL, 0));
}

/* {"title":"...","NAME":"xxx..."} */
static void change_long(struct bench *bench, const char *title, const char *name, size_t bytes)
{
    struct buf data;
    buf_init(&data, bytes + 4096);
    (void)buf_printf(&data, "{\"kind\":\"memory\",\"title\":\"%s\",\"%s\":\"", title, name);
    char *room = buf_reserve(&data, bytes);
    assert_non_null(room);
    memset(room, 'x', bytes);
    data.len += bytes;
    buf_add_c(&data, "\"}");
    assert_int_equal(data.rc, NG_OK);
    change(bench, &papers, buf_str(&data));
    buf_done(&data);
}

static int flush(struct bench *bench)
{
    struct call *call = harness_new_call(&bench->harness);
    call->may_block = true;
    int rc = journal_flush(bench->front, call);
    call_unref(call);
    return rc;
}

static void flush_at_last(struct bench *bench)
{
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    while (flush(bench) != NG_OK) {
        assert_true(clock_monotonic_ns() < until);
    }
}

static void set_away(struct bench *bench, bool away)
{
    pthread_mutex_lock(&bench->server.lock);
    bench->server.away = away;
    pthread_mutex_unlock(&bench->server.lock);
}

static size_t heard(struct bench *bench)
{
    pthread_mutex_lock(&bench->server.lock);
    size_t count = bench->server.count;
    pthread_mutex_unlock(&bench->server.lock);
    return count;
}

static void wait_degraded(struct bench *bench)
{
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    while (!journal_degraded(bench->front)) {
        assert_true(clock_monotonic_ns() < until);
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
}

/* ---- tests ---- */

/* A server that answers but refuses to write, such as a Redis with too few replicas: it has not
 * lost what it has. */
static void test_refused_marks_are_no_loss(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < 5; i++) {
        change_paper(bench);
    }
    bench->server.refused_marks = 3;
    open_front(bench);
    change_paper(bench);
    flush_at_last(bench);
    assert_int_equal(bench->server.refused_marks, 0);
    assert_int_equal(heard(bench), 1);
    /* The same where it did lose something: from there on, not from the beginning. */
    change_paper(bench);
    assert_int_equal(flush(bench), NG_OK);
    pthread_mutex_lock(&bench->server.lock);
    uint64_t last = bench->server.heard[1].seq;
    bench->server.marks[bench->server.mark_count - 1].seq = bench->server.heard[0].seq;
    bench->server.refused_marks = 3;
    bench->server.count = 1;
    pthread_mutex_unlock(&bench->server.lock);
    flush_at_last(bench);
    assert_int_equal(heard(bench), 2);
    assert_int_equal(bench->server.heard[1].seq, last);
}

/* While events flow that are none of its business, too. */
static void test_loss_is_noticed_between_other_events(void **state)
{
    struct bench *bench = *state;
    open_front(bench);
    change_paper(bench);
    flush_at_last(bench);
    assert_int_equal(heard(bench), 1);
    pthread_mutex_lock(&bench->server.lock);
    bench->server.count = 0;
    bench->server.mark_count = 0;
    pthread_mutex_unlock(&bench->server.lock);
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    while (heard(bench) == 0) {
        assert_true(clock_monotonic_ns() < until);
        change(bench, &others, str_make(NULL, 0));
        (void)flush(bench); /* a round that finds it */
    }
    flush_at_last(bench);
    assert_int_equal(heard(bench), 1);
}

/* A round that sends nothing does not say that the server is back. */
static void test_still_away_between_other_events(void **state)
{
    struct bench *bench = *state;
    open_front(bench);
    change_paper(bench);
    flush_at_last(bench);
    set_away(bench, true);
    wait_degraded(bench);
    for (int i = 0; i < 3; i++) {
        change(bench, &others, str_make(NULL, 0));
        assert_int_equal(flush(bench), NG_EUNAVAILABLE);
        assert_true(journal_degraded(bench->front));
    }
    set_away(bench, false);
    flush_at_last(bench);
    assert_false(journal_degraded(bench->front));
}

/* Its data are left out, and the events behind it arrive. */
static void test_an_event_with_much_data(void **state)
{
    struct bench *bench = *state;
    open_front(bench);
    change_long(bench, "first", "more", 10);
    change_long(bench, "long", "more", 2 * MIB);
    change_long(bench, "last", "more", 10);
    flush_at_last(bench);
    assert_int_equal(heard(bench), 3);
    assert_string_equal(bench->server.heard[1].title, "long");
    assert_int_equal(bench->server.heard[1].data, 0);
    assert_true(bench->server.heard[0].data > 0 && bench->server.heard[2].data > 0);
    assert_string_equal(bench->server.heard[2].title, "last");
}

/* As many of them as the memory of one call holds, then the others. */
static void test_long_events_come_in_several_pages(void **state)
{
    struct bench *bench = *state;
    open_front(bench);
    set_away(bench, true);
    for (int i = 0; i < 7; i++) {
        change_long(bench, "long", "content", 6 * MIB);
    }
    wait_degraded(bench);
    assert_int_equal(journal_backlog(bench->front), 7);
    set_away(bench, false);
    flush_at_last(bench);
    assert_int_equal(heard(bench), 7);
    assert_true(bench->server.deliveries >= 3);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(bench->server.heard[i].content, 6 * MIB);
        assert_true(i == 0 || bench->server.heard[i].seq > bench->server.heard[i - 1].seq);
    }
    assert_int_equal(journal_backlog(bench->front), 0);
}

/* A stop that comes before a round, or a count, has its call: that is cancelled all the same.
 */
static void test_stop_before_the_call(void **state)
{
    struct bench *bench = *state;
    open_front(bench);
    struct call *round = harness_new_call(&bench->harness);
    struct call *count = harness_new_call(&bench->harness);
    journal_stop(bench->front);
    assert_null(delivery_set_current(bench->front, round));
    assert_true(call_has(round, CALL_CANCELLED));
    assert_ptr_equal(delivery_set_current(bench->front, count), round);
    assert_true(call_has(count, CALL_CANCELLED));
    assert_ptr_equal(delivery_set_current(bench->front, NULL), count);
    call_unref(count);
    call_unref(round);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_refused_marks_are_no_loss),
        TEST(test_loss_is_noticed_between_other_events),
        TEST(test_still_away_between_other_events),
        TEST(test_an_event_with_much_data),
        TEST(test_long_events_come_in_several_pages),
        TEST(test_stop_before_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
