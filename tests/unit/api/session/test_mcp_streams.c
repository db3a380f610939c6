/* SPDX-License-Identifier: MIT */
/* test_mcp_streams.c - one stream: order, what was missed, pauses, bounds.
 */
#include "test_mcp_streams_rig.h"

#include <stdlib.h>
#include <string.h>

#include "api/session/mcp_stream.h"
#include "core/base/str.h"

static void expect_fill(struct http_stream *stream, const char *text, int state)
{
    struct buf out;
    buf_init(&out, HTTP_STREAM_FILL_MAX);
    assert_int_equal(fill(stream, &out), state);
    assert_string_equal(buf_cstr(&out), text);
    buf_done(&out);
}

static atomic_size_t kept_sum;

static struct mcp_kept kept = {.all = &kept_sum};

static int left_count;

static void count_left(void *user)
{
    (void)user;
    left_count++;
}

static struct mcp_stream *resumable(bool primes)
{
    const struct mcp_stream_options options = {
        .resumable = true,
        .primes = primes,
        .keeps_unread = true,
        .number = 3,
        .kept = &kept,
        .left = count_left,
    };
    left_count = 0;
    struct mcp_stream *stream = mcp_stream_new(&options);
    assert_non_null(stream);
    return stream;
}

static struct http_stream *read_from(struct mcp_stream *stream, bool resumes, uint64_t after)
{
    const struct mcp_stream_reader reader = {.resumes = resumes, .after = after};
    struct http_stream *http = mcp_stream_attach(stream, &reader);
    assert_non_null(http);
    return http;
}

static void add(struct mcp_stream *stream, const char *text)
{
    assert_true(mcp_stream_add(stream, ng_str_of(text), MCP_STREAM_MAY_DROP));
}

static void finish(struct mcp_stream *stream, const char *text)
{
    struct buf last;
    buf_init(&last, 1024);
    buf_add_c(&last, text);
    mcp_stream_finish(stream, &last);
}

static void sends_in_order(void **state)
{
    (void)state;
    struct mcp_stream *stream = resumable(true);
    struct http_stream *http = read_from(stream, false, 0);
    expect_fill(http, "retry: 1000\nid: 3-0\ndata:\n\n", HTTP_STREAM_OPEN);
    expect_fill(http, "", HTTP_STREAM_OPEN);
    add(stream, "{\"a\":\n1}");
    assert_true(atomic_load(&http->wakes) > 0);
    expect_fill(http, "id: 3-1\nevent: message\ndata: {\"a\": 1}\n\n", HTTP_STREAM_OPEN);
    add(stream, "{}");
    finish(stream, "[]");
    assert_false(mcp_stream_add(stream, ng_str_of("{}"), MCP_STREAM_MUST_SEND));
    expect_fill(http,
                "id: 3-2\nevent: message\ndata: {}\n\nid: 3-3\nevent: message\ndata: []\n\n",
                HTTP_STREAM_END);
    http_stream_unref(http);
    assert_int_equal(left_count, 0);
    mcp_stream_unref(stream);
    assert_int_equal(atomic_load(&kept_sum), 0);
}

static void replays_what_was_missed(void **state)
{
    (void)state;
    struct mcp_stream *stream = resumable(true);
    struct http_stream *first = read_from(stream, false, 0);
    add(stream, "1");
    add(stream, "2");
    struct buf out;
    buf_init(&out, 4096);
    assert_int_equal(fill(first, &out), HTTP_STREAM_OPEN);
    http_stream_unref(first);
    assert_int_equal(left_count, 1);
    add(stream, "3");
    finish(stream, "4");
    struct http_stream *second = read_from(stream, true, 1);
    expect_fill(second,
                "id: 3-2\nevent: message\ndata: 2\n\nid: 3-3\nevent: message\ndata: 3\n\n"
                "id: 3-4\nevent: message\ndata: 4\n\n",
                HTTP_STREAM_END);
    http_stream_unref(second);
    struct http_stream *third = read_from(stream, true, 4);
    expect_fill(third, "", HTTP_STREAM_END);
    http_stream_unref(third);
    buf_done(&out);
    mcp_stream_unref(stream);
}

static void the_newest_reader_reads(void **state)
{
    (void)state;
    struct mcp_stream *stream = resumable(false);
    struct http_stream *first = read_from(stream, false, 0);
    struct http_stream *second = read_from(stream, false, 0);
    assert_true(atomic_load(&first->wakes) > 0);
    add(stream, "1");
    expect_fill(first, "", HTTP_STREAM_END);
    http_stream_unref(first);
    assert_int_equal(left_count, 0);
    expect_fill(second, "id: 3-1\nevent: message\ndata: 1\n\n", HTTP_STREAM_OPEN);
    mcp_stream_cut(stream);
    expect_fill(second, "", HTTP_STREAM_END);
    http_stream_unref(second);
    mcp_stream_unref(stream);
}

static void pauses(void **state)
{
    (void)state;
    struct mcp_stream *stream = resumable(true);
    struct http_stream *http = read_from(stream, false, 0);
    mcp_stream_pause(stream, 40);
    expect_fill(http, "retry: 1000\nid: 3-0\ndata:\n\nretry: 40\n\n", HTTP_STREAM_END);
    http_stream_unref(http);
    finish(stream, "1");
    http = read_from(stream, true, 0);
    expect_fill(http, "id: 3-1\nevent: message\ndata: 1\n\n", HTTP_STREAM_END);
    http_stream_unref(http);
    mcp_stream_unref(stream);
}

static void news_give_way_answers_do_not(void **state)
{
    (void)state;
    struct mcp_stream *stream = resumable(false);
    struct http_stream *http = read_from(stream, false, 0);
    size_t len = MCP_STREAM_QUEUE_MAX / 4;
    char *big = malloc(len + 1);
    assert_non_null(big);
    memset(big, '1', len);
    big[len] = '\0';
    assert_true(mcp_stream_add(stream, ng_str_of("\"question\""), MCP_STREAM_MUST_SEND));
    for (int i = 0; i < 10; i++) {
        big[0] = (char)('0' + i);
        add(stream, big);
        assert_true(atomic_load(&kept_sum) <= MCP_STREAM_QUEUE_MAX + 16);
    }
    finish(stream, "\"answer\"");
    struct buf out;
    buf_init(&out, HTTP_STREAM_FILL_MAX);
    read_until(http, NULL, &out);
    const char *text = buf_cstr(&out);
    assert_non_null(strstr(text, "data: \"question\"\n"));
    assert_null(strstr(text, "data: 511"));
    assert_non_null(strstr(text, "data: 611"));
    assert_non_null(strstr(text, "data: 911"));
    assert_non_null(strstr(text, "data: \"answer\"\n"));
    buf_done(&out);
    free(big);
    http_stream_unref(http);
    mcp_stream_unref(stream);
    assert_int_equal(atomic_load(&kept_sum), 0);
}

static void what_was_sent_is_kept_within_bounds(void **state)
{
    (void)state;
    struct mcp_stream *stream = resumable(false);
    struct http_stream *http = read_from(stream, false, 0);
    struct buf out;
    buf_init(&out, HTTP_STREAM_FILL_MAX);
    for (int i = 0; i < 3 * MCP_STREAM_EVENTS_MAX; i++) {
        add(stream, "{\"some\":\"event\"}");
        buf_clear(&out);
        (void)fill(http, &out);
    }
    assert_true(atomic_load(&kept_sum) <= (MCP_STREAM_EVENTS_MAX + 1) * 16);
    buf_done(&out);
    http_stream_unref(http);
    mcp_stream_unref(stream);
}

static void event_ids(void **state)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "1",
                                      "1-",
                                      "-1",
                                      "x-1",
                                      "1-x",
                                      "1--1",
                                      "1- 2",
                                      "99999999999-1",
                                      "1-99999999999999999999"};
    unsigned number = 0;
    uint64_t seq = 0;
    (void)state;
    assert_true(mcp_stream_parse_id(ng_str_of(" 12-34 "), &number, &seq));
    assert_int_equal(number, 12);
    assert_int_equal(seq, 34);
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_false(mcp_stream_parse_id(ng_str_of(bad[i]), &number, &seq));
    }
}

/* The streams of one caller are full of unread events; those of another caller continue. */
static void one_caller_does_not_silence_others(void **state)
{
    (void)state;
    enum { ROOM = 4, EVENT = 128 * 1024 };
    static char text[EVENT + 1];
    static struct mcp_kept greedy = {.all = &kept_sum};
    struct mcp_stream *streams[2 * MCP_STREAM_KEPT_TOTAL / MCP_STREAM_QUEUE_MAX];
    struct mcp_stream_options options = {
        .resumable = true, .keeps_unread = true, .kept = &greedy};
    memset(text, ' ', EVENT);
    for (size_t i = 0; i < NG_COUNT(streams); i++) {
        streams[i] = mcp_stream_new(&options);
        assert_non_null(streams[i]);
        for (size_t j = 0; j < ROOM; j++) {
            (void)mcp_stream_add(streams[i], str_make(text, EVENT), MCP_STREAM_MAY_DROP);
        }
    }
    assert_true(atomic_load(&greedy.own) <= MCP_STREAM_KEPT_TOTAL / 2 + EVENT);
    /* Whatever fills the rest: a caller with few bytes may have its share. */
    (void)atomic_fetch_add(&kept_sum, MCP_STREAM_KEPT_TOTAL);
    assert_false(mcp_stream_add(streams[0], ng_str_of("{}"), MCP_STREAM_MAY_DROP));
    struct mcp_stream *polite = resumable(false);
    add(polite, "{}");
    mcp_stream_unref(polite);
    (void)atomic_fetch_sub(&kept_sum, MCP_STREAM_KEPT_TOTAL);
    for (size_t i = 0; i < NG_COUNT(streams); i++) {
        mcp_stream_unref(streams[i]);
    }
    assert_int_equal(atomic_load(&greedy.own), 0);
    assert_int_equal(atomic_load(&kept_sum), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_in_order),
        cmocka_unit_test(replays_what_was_missed),
        cmocka_unit_test(one_caller_does_not_silence_others),
        cmocka_unit_test(the_newest_reader_reads),
        cmocka_unit_test(pauses),
        cmocka_unit_test(news_give_way_answers_do_not),
        cmocka_unit_test(what_was_sent_is_kept_within_bounds),
        cmocka_unit_test(event_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
