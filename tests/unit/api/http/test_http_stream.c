/* SPDX-License-Identifier: MIT */
/* test_http_stream.c - the life of a stream beside its connection: closed() comes exactly once,
 * whichever of them ends first, and the monitor may end it. (The flow of bytes: tests/e2e.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "api/http/http_stream_transport.h"
#include "core/base/arena.h"
#include "core/keys/keys.h"

#define THREADS 4
#define ROUNDS 2000

struct source {
    atomic_uint closed;
    struct http_stream *own; /* a reference that closed() lets go */
};

static int source_fill(void *user, struct buf *out)
{
    (void)user;
    (void)out;
    fail_msg("nobody takes bytes here");
    return HTTP_STREAM_END;
}

static void source_closed(void *user)
{
    struct source *source = user;
    (void)atomic_fetch_add(&source->closed, 1);
    http_stream_unref(source->own);
    source->own = NULL;
}

static const struct http_stream_source source_of = {.fill = source_fill,
                                                    .closed = source_closed};

static struct http_stream *make(struct source *source, bool keeps, struct key *key)
{
    memset(source, 0, sizeof(*source));
    struct http_stream *stream = http_stream_new(&source_of, source, key);
    assert_non_null(stream);
    if (keeps) {
        http_stream_ref(stream);
        source->own = stream;
    }
    return stream;
}

static void test_an_answer_that_never_began(void **state)
{
    struct source source;
    (void)state;
    http_stream_unref(make(&source, false, NULL));
    assert_int_equal(source.closed, 1);
    http_stream_drop(make(&source, false, NULL));
    assert_int_equal(source.closed, 1);
    http_stream_drop(make(&source, true, NULL));
    assert_int_equal(source.closed, 1);
    http_stream_unref(NULL);
    http_stream_drop(NULL);
}

static void test_who_comes_late(void **state)
{
    struct source source;
    struct http_stream *stream = make(&source, false, NULL);
    (void)state;
    http_stream_ref(stream);
    http_stream_wake(stream); /* before it is sent */
    http_stream_drop(stream);
    assert_int_equal(source.closed, 1);
    http_stream_wake(stream);
    http_stream_finish(stream);
    http_stream_cut(stream);
    assert_false(http_stream_look(stream, 1000, false));
    http_stream_unref(stream);
    assert_int_equal(source.closed, 1);
}

static void test_without_memory(void **state)
{
    struct source source = {0};
    (void)state;
    alloc_fail_after(0);
    assert_null(http_stream_new(&source_of, &source, NULL));
    alloc_fail_after(-1);
    assert_int_equal(source.closed, 0);
}

/* The farewell of a revoked key is given some time, no more. */
static void test_a_revoked_key(void **state)
{
    struct source source;
    struct key key;
    (void)state;
    memset(&key, 0, sizeof(key));
    atomic_init(&key.refs, 1);
    struct http_stream *stream = make(&source, false, &key);
    assert_int_equal(atomic_load(&key.refs), 2);
    assert_false(http_stream_look(stream, 1000, false));
    atomic_store(&key.revoked, true);
    assert_false(http_stream_look(stream, 2000, false));
    assert_false(http_stream_look(stream, 2000 + HTTP_STREAM_FAREWELL_MS - 1, false));
    assert_true(http_stream_look(stream, 2000 + HTTP_STREAM_FAREWELL_MS, false));
    http_stream_unref(stream);
    assert_int_equal(source.closed, 1);
    assert_int_equal(atomic_load(&key.refs), 1);
}

static void *wake_often(void *user)
{
    struct http_stream *stream = user;
    for (unsigned i = 0; i < ROUNDS; i++) {
        http_stream_wake(stream);
    }
    http_stream_drop(stream);
    return NULL;
}

static void test_all_at_once(void **state)
{
    struct source source;
    pthread_t threads[THREADS];
    (void)state;
    struct http_stream *stream = make(&source, true, NULL);
    for (size_t i = 0; i < THREADS; i++) {
        http_stream_ref(stream);
        assert_int_equal(pthread_create(&threads[i], NULL, wake_often, stream), 0);
    }
    http_stream_unref(stream);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(source.closed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_that_never_began),
        cmocka_unit_test(test_who_comes_late),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_a_revoked_key),
        cmocka_unit_test(test_all_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
