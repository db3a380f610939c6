/* SPDX-License-Identifier: MIT */
/* test_feed.c - readers of the changes, also slow ones.
 */
#include "test_feed_rig.h"

#include <stdio.h>
#include <string.h>

#include "core/base/str.h"

#define LARGE_BYTES ((size_t)1024 * 1024)

/* ---- what a reader is given ---- */

static void test_an_event_is_whole(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    const struct ng_event *event = NULL;
    bench_open(&bench, 100);
    reader_open(&bench, &reader, &everything, UINT64_MAX);
    expect_nothing(&reader);
    struct put put = {"things", "~ada", "it", 10};
    put_as(&bench, &put);
    assert_int_equal(reader_next(&reader, &event), NG_OK);
    assert_int_equal(event->seq, store_last_seq(bench.gateway.store));
    assert_int_equal(event->revision, 1);
    assert_true(str_is(event->key.collection, "things"));
    assert_true(str_is(event->key.space, "~ada"));
    assert_true(str_is(event->key.id, "it"));
    assert_true(str_is(event->agent, "local"));
    assert_true(str_is(event->tool, "writer"));
    assert_true(str_is(event->action, "put"));
    assert_true(str_is(event->data, "{        }"));
    assert_true(event->time_ms > 0);
    expect_nothing(&reader);
    reader_close(&reader);
    bench_close(&bench);
}

static void test_positions(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    bench_open(&bench, 4);
    reader_open(&bench, &reader, &everything, 0);
    expect_nothing(&reader);
    reader_close(&reader);
    assert_int_equal(reader_try(&bench, &reader, &everything, 1), NG_EINVAL);
    put_things(&bench, "a", 10);
    uint64_t last = store_last_seq(bench.gateway.store);
    assert_int_equal(reader_try(&bench, &reader, &everything, last + 1), NG_EINVAL);
    reader_open(&bench, &reader, &everything, last);
    expect_nothing(&reader);
    put_thing(&bench, "b");
    (void)expect_event(&reader, "b");
    reader_close(&reader);
    /* From the store, over the seam, into the ring. */
    reader_open(&bench, &reader, &everything, 0);
    expect_things(&reader, "a", 0, 10);
    (void)expect_event(&reader, "b");
    uint64_t position = feed_position(reader.feed);
    reader_close(&reader);
    reader_open(&bench, &reader, &everything, position - 1);
    (void)expect_event(&reader, "b");
    expect_nothing(&reader);
    reader_close(&reader);
    bench_close(&bench);
}

static bool wants_even(void *user, const struct ng_event *event)
{
    (void)user;
    return (event->key.id.data[event->key.id.len - 1] - '0') % 2 == 0;
}

static void test_filters(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader[5];
    static const struct ng_str spaces[] = {{"~ada", 4}, {"team", 4}};
    const struct feed_filter filters[5] = {
        {.all_spaces = true, .collection = ng_str_of("others")},
        {.spaces = spaces, .space_count = 2},
        {.all_spaces = true, .tool = ng_str_of("nobody")},
        {.all_spaces = true, .wants = wants_even},
        {.spaces = NULL},
    };
    static const struct put puts[] = {
        {"things", "shared", "p0", 0},
        {"others", "~ada", "p1", 0},
        {"things", "team", "p2", 0},
        {"others", "shared", "p3", 0},
    };
    bench_open(&bench, 3);
    for (int round = 0; round < 2; round++) { /* live, then from the store */
        for (size_t i = 0; i < NG_COUNT(filters); i++) {
            reader_open(&bench, &reader[i], &filters[i], round == 0 ? UINT64_MAX : 0);
        }
        for (size_t i = 0; i < NG_COUNT(puts) && round == 0; i++) {
            for (size_t j = 0; j < NG_COUNT(filters); j++) {
                const struct ng_event *event = NULL;
                while (feed_next(reader[j].feed, &event) == NG_OK) {
                }
            }
            wait_told(&bench);
            put_as(&bench, &puts[i]);
            wait_told(&bench);
        }
        if (round == 1) {
            (void)expect_event(&reader[0], "p1");
            (void)expect_event(&reader[0], "p3");
            (void)expect_event(&reader[1], "p1");
            (void)expect_event(&reader[1], "p2");
            (void)expect_event(&reader[3], "p0");
            (void)expect_event(&reader[3], "p2");
        } else {
            assert_int_equal(reader[0].wakes, 2);
            assert_int_equal(reader[1].wakes, 2);
            assert_int_equal(reader[2].wakes, 0);
            assert_int_equal(reader[4].wakes, 0);
            /* Events that no reader wants move the position all the same. */
            assert_int_equal(feed_position(reader[2].feed),
                             store_last_seq(bench.gateway.store));
        }
        for (size_t i = 0; i < NG_COUNT(filters); i++) {
            reader_close(&reader[i]);
        }
    }
    bench_close(&bench);
}

/* ---- readers that are slow ---- */

static void test_too_far_behind(void **state)
{
    (void)state;
    struct bench bench;
    struct reader slow;
    struct reader careless;
    const struct ng_event *event = NULL;
    const struct feed_filter none = {.all_spaces = true, .tool = ng_str_of("nobody")};
    bench_open(&bench, 8);
    reader_open(&bench, &slow, &everything, UINT64_MAX);
    reader_open(&bench, &careless, &none, UINT64_MAX);
    expect_nothing(&careless);
    put_things(&bench, "a", 8); /* exactly what the ring holds */
    expect_things(&slow, "a", 0, 8);
    put_things(&bench, "b", 9);
    wait_told(&bench);
    assert_int_equal(feed_next(slow.feed, &event), NG_ETOOLARGE);
    assert_int_equal(feed_next(slow.feed, &event), NG_ETOOLARGE);
    uint64_t position = feed_position(slow.feed);
    reader_close(&slow);
    reader_open(&bench, &slow, &everything, position);
    expect_things(&slow, "b", 0, 9);
    /* A reader that waits for other events has not fallen behind. */
    put_things(&bench, "c", 20);
    wait_told(&bench);
    assert_int_equal(feed_next(careless.feed, &event), NG_PENDING);
    reader_close(&slow);
    reader_close(&careless);
    bench_close(&bench);
}

/* The ring is bounded by bytes too: then readers go on in the store, and are not cut. */
static void test_large_events(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    char id[16];
    bench_open(&bench, 100);
    reader_open(&bench, &reader, &everything, UINT64_MAX);
    put_thing(&bench, "first");
    (void)expect_event(&reader, "first");
    for (unsigned i = 0; i < 12; i++) {
        (void)snprintf(id, sizeof(id), "l%u", i);
        struct put put = {"things", "shared", id, LARGE_BYTES};
        put_as(&bench, &put);
    }
    wait_told(&bench);
    lock_take(&bench.gateway.feed->lock);
    assert_true(bench.gateway.feed->bytes <= FEED_RING_BYTES);
    lock_release(&bench.gateway.feed->lock);
    expect_things(&reader, "l", 0, 12);
    put_thing(&bench, "last");
    (void)expect_event(&reader, "last");
    expect_nothing(&reader);
    reader_close(&reader);
    bench_close(&bench);
}

static void test_the_store_fails(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    const struct ng_event *event = NULL;
    bench_open(&bench, 2);
    put_things(&bench, "a", 5);
    reading_set(NG_EUNAVAILABLE, false);
    reader_open(&bench, &reader, &everything, 0);
    assert_int_equal(reader_next(&reader, &event), NG_EUNAVAILABLE);
    assert_int_equal(reader_next(&reader, &event), NG_EUNAVAILABLE);
    reader_close(&reader);
    reading_set(NG_OK, false);
    reader_open(&bench, &reader, &everything, 0);
    expect_things(&reader, "a", 0, 5);
    reader_close(&reader);
    bench_close(&bench);
}

static void test_closing_while_it_reads(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    bench_open(&bench, 2);
    put_things(&bench, "a", 5);
    reading_set(NG_OK, true);
    reader_open(&bench, &reader, &everything, 0);
    expect_nothing(&reader);
    pthread_mutex_lock(&reading.lock);
    while (reading.inside == 0) {
        pthread_cond_wait(&reading.moved, &reading.lock);
    }
    pthread_mutex_unlock(&reading.lock);
    reader_close(&reader); /* its memory is ours from here on */
    memset(&reader, 0, sizeof(reader));
    reading_set(NG_OK, false);
    bench_close(&bench);
}

/* ---- events as texts ---- */

static unsigned prints;

static void print_id(struct buf *out, const struct ng_event *event)
{
    prints++;
    (void)buf_add(out, event->key.id.data, event->key.id.len);
    (void)buf_add(out, event->data.data, event->data.len);
}

static void expect_printed(struct reader *reader, const char *id, size_t data_bytes,
                           unsigned count)
{
    const struct ng_event *event = NULL;
    struct buf out;
    buf_init(&out, 2 * LARGE_BYTES);
    (void)buf_add_c(&out, "before ");
    prints = 0;
    assert_int_equal(reader_next(reader, &event), NG_OK);
    feed_print(reader->feed, print_id, &out);
    assert_int_equal(prints, count);
    assert_int_equal(out.len, strlen("before ") + strlen(id) + data_bytes);
    assert_memory_equal(out.data, "before ", strlen("before "));
    assert_memory_equal(out.data + strlen("before "), id, strlen(id));
    buf_done(&out);
}

static void test_printed_once_for_all(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader[3];
    bench_open(&bench, 100);
    for (size_t i = 0; i < NG_COUNT(reader); i++) {
        reader_open(&bench, &reader[i], &everything, UINT64_MAX);
    }
    put_thing(&bench, "a");
    put_thing(&bench, "b");
    for (size_t i = 0; i < NG_COUNT(reader); i++) {
        expect_printed(&reader[i], "a", 0, i == 0 ? 1 : 0);
        expect_printed(&reader[i], "b", 0, i == 0 ? 1 : 0);
    }
    /* It has no other reader. */
    reader_close(&reader[1]);
    reader_close(&reader[2]);
    put_thing(&bench, "c");
    expect_printed(&reader[0], "c", 0, 1);
    reader_close(&reader[0]);
    bench_close(&bench);
}

/* Kept memory is bounded, and freed with the events. */
static void test_printed_texts_are_bounded(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader[2];
    const struct put large = {"things", "shared", "l", LARGE_BYTES};
    bench_open(&bench, 100);
    for (size_t i = 0; i < NG_COUNT(reader); i++) {
        reader_open(&bench, &reader[i], &everything, UINT64_MAX);
    }
    for (size_t i = 0; i < 3 * FEED_TEXT_BYTES / LARGE_BYTES; i++) {
        put_as(&bench, &large);
        expect_printed(&reader[0], "l", LARGE_BYTES, 1);
        assert_true(atomic_load(&bench.gateway.feed->text_bytes) <= FEED_TEXT_BYTES);
        const struct ng_event *event = NULL;
        assert_int_equal(reader_next(&reader[1], &event), NG_OK);
    }
    assert_true(atomic_load(&bench.gateway.feed->text_bytes) > 0);
    put_things(&bench, "a", 100);
    for (unsigned i = 0; i < 100; i++) {
        const struct ng_event *event = NULL;
        assert_int_equal(reader_next(&reader[0], &event), NG_OK);
        assert_int_equal(reader_next(&reader[1], &event), NG_OK);
    }
    wait_told(&bench);
    assert_int_equal(atomic_load(&bench.gateway.feed->text_bytes), 0);
    reader_close(&reader[0]);
    reader_close(&reader[1]);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_event_is_whole),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_too_far_behind),
        cmocka_unit_test(test_large_events),
        cmocka_unit_test(test_the_store_fails),
        cmocka_unit_test(test_closing_while_it_reads),
        cmocka_unit_test(test_printed_once_for_all),
        cmocka_unit_test(test_printed_texts_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
