/* SPDX-License-Identifier: MIT */
/* documents_shared_contract.c - requirements on backends that several gateways write to
 * (NG_DOCUMENTS_SHARED). */
#include "documents_contract.h"

#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "documents_parts.h"

#define CHAIN 4
#define ROUNDS 25

struct chain {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct ng_put puts[CHAIN];
    struct ng_put *lists[CHAIN];
    struct ng_batch batches[CHAIN];
    int rcs[CHAIN];
    size_t done;
};

static void chain_done(void *user, struct ng_batch *batch, int rc)
{
    struct chain *chain = user;
    pthread_mutex_lock(&chain->lock);
    chain->rcs[batch - chain->batches] = rc;
    chain->done++;
    pthread_cond_signal(&chain->wake);
    pthread_mutex_unlock(&chain->lock);
}

static void chain_put(struct chain *chain, size_t at, uint64_t base, uint64_t ticket,
                      uint64_t base_ticket)
{
    struct ng_put *put = &chain->puts[at];
    memset(put, 0, sizeof(*put));
    put->size = sizeof(*put);
    put->key.collection = ng_str_of("things");
    put->key.space = ng_str_of("team");
    put->key.id = ng_str_of("chained");
    put->base_revision = base;
    put->revision = base + 1;
    put->json = ng_str_of("{}");
    put->text = ng_str_of("lost");
    put->json_splice.inserted = base == 0 ? put->json : ng_str_of("");
    put->json_splice.at = base == 0 ? 0 : put->json.len;
    put->text_splice.inserted = put->text;
    put->text_splice.removed = base == 0 ? 0 : strlen("kept");
    put->time_ms = 1700000000000;
    put->created_ms = put->time_ms;
    put->created_seq = base == 0 ? 0 : NG_SEQ_KEEP;
    put->agent = ng_str_of("tester");
    put->tool = ng_str_of("test");
    put->action = ng_str_of("updated");
    put->ticket = ticket;
    put->base_ticket = base_ticket;
    memset(&chain->batches[at], 0, sizeof(chain->batches[at]));
    chain->batches[at].size = sizeof(chain->batches[at]);
    chain->lists[at] = put;
    chain->batches[at].puts = &chain->lists[at];
    chain->batches[at].put_count = 1;
}

/* Changes queued one upon the other, the first of which another gateway was faster than: all of
 * them fail, also where the revision they are made of is there by its number. */
static void test_built_on_one_that_failed(void **state)
{
    struct fixture *f = *state;
    struct chain chain;
    const uint64_t revisions = CHAIN + 1;
    memset(&chain, 0, sizeof(chain));
    pthread_mutex_init(&chain.lock, NULL);
    pthread_cond_init(&chain.wake, NULL);
    for (uint64_t i = 0; i < revisions; i++) {
        assert_int_equal(fixture_put(f, "chained", i, i == 0 ? "" : "kept", "kept"), NG_OK);
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        uint64_t ticket = 1000 * (round + 1);
        chain.done = 0;
        /* The last ones continue what is there: CHAIN + 1 is the present revision. */
        for (size_t i = 0; i < CHAIN; i++) {
            chain_put(&chain, i, revisions - (CHAIN - 1) + i, ticket + i,
                      i == 0 ? 0 : ticket + i - 1);
        }
        for (size_t i = 0; i < CHAIN; i++) {
            assert_int_equal(f->docs->commit(f->db, &chain.batches[i], chain_done, &chain),
                             NG_OK);
        }
        pthread_mutex_lock(&chain.lock);
        while (chain.done < CHAIN) {
            pthread_cond_wait(&chain.wake, &chain.lock);
        }
        pthread_mutex_unlock(&chain.lock);
        for (size_t i = 0; i < CHAIN; i++) {
            assert_int_equal(chain.rcs[i], NG_ECONFLICT);
        }
        expect_doc(f, "chained", revisions, "kept");
    }
    /* A document that was read again is accepted at once. */
    assert_int_equal(fixture_put(f, "chained", revisions, "kept", "more"), NG_OK);
    expect_doc(f, "chained", revisions + 1, "more");
    pthread_mutex_destroy(&chain.lock);
    pthread_cond_destroy(&chain.wake);
}

/* The same where what it is built on was made: then it is, too, and each revision is whole. */
static void test_built_on_one_that_was_made(void **state)
{
    static const char *const texts[CHAIN] = {"next", "then", "late", "last"}; /* as "kept" */
    struct fixture *f = *state;
    struct chain chain;
    memset(&chain, 0, sizeof(chain));
    pthread_mutex_init(&chain.lock, NULL);
    pthread_cond_init(&chain.wake, NULL);
    assert_int_equal(fixture_put(f, "chained", 0, "", "kept"), NG_OK);
    for (size_t i = 0; i < CHAIN; i++) {
        chain_put(&chain, i, i + 1, 500 + i, i == 0 ? 0 : 500 + i - 1);
        chain.puts[i].text = ng_str_of(texts[i]);
        chain.puts[i].text_splice.inserted = chain.puts[i].text;
    }
    for (size_t i = 0; i < CHAIN; i++) {
        assert_int_equal(f->docs->commit(f->db, &chain.batches[i], chain_done, &chain), NG_OK);
    }
    pthread_mutex_lock(&chain.lock);
    while (chain.done < CHAIN) {
        pthread_cond_wait(&chain.wake, &chain.lock);
    }
    pthread_mutex_unlock(&chain.lock);
    for (size_t i = 0; i < CHAIN; i++) {
        assert_int_equal(chain.rcs[i], NG_OK);
    }
    expect_doc(f, "chained", CHAIN + 1, texts[CHAIN - 1]);
    expect_clean(f);
    pthread_mutex_destroy(&chain.lock);
    pthread_cond_destroy(&chain.wake);
}

static int take_gateway(void *user, const struct ng_event *event)
{
    struct buf *out = user;
    fixture_needs(NG_HAS(event, gateway), "ng_event.gateway");
    assert_int_equal(buf_add_str(out, event->gateway), NG_OK);
    assert_int_equal(buf_add_c(out, event->gateway.data == NULL ? "- " : " "), NG_OK);
    return 0;
}

/* Each event has the gateway of its put; that of an import is not known. */
static void test_gateways_of_events(void **state)
{
    static const char *const gateways[] = {"one", "another", NULL, "one"};
    struct fixture *f = *state;
    struct chain chain = {.done = 0};
    struct change last = {.id = ng_str_of("last")};
    struct buf told;
    pthread_mutex_init(&chain.lock, NULL);
    pthread_cond_init(&chain.wake, NULL);
    for (size_t i = 0; i < CHAIN; i++) {
        chain_put(&chain, i, i, i + 1, i);
        chain.puts[i].text_splice.removed = i == 0 ? 0 : strlen("lost");
        chain.puts[i].gateway = ng_str_of(gateways[i]);
        assert_int_equal(f->docs->commit(f->db, &chain.batches[i], chain_done, &chain), NG_OK);
    }
    pthread_mutex_lock(&chain.lock);
    while (chain.done < CHAIN) {
        pthread_cond_wait(&chain.wake, &chain.lock);
    }
    pthread_mutex_unlock(&chain.lock);
    assert_int_equal(fixture_commit(f, &last, 1, NULL, NULL, NULL), NG_OK);
    fixture_settle(f, &last, 1);
    buf_init(&told, 4096);
    assert_int_equal(
        f->docs->changes(f->db, fixture_call(f), 0, CHAIN + 1, take_gateway, &told), NG_OK);
    assert_string_equal(buf_cstr(&told), "one another - one 0123456789abcdef ");
    buf_done(&told);
    expect_clean(f);
    pthread_mutex_destroy(&chain.lock);
    pthread_cond_destroy(&chain.wake);
}

static void only_if_shared(void (*test)(void **state), void **state)
{
    struct fixture *f = *state;
    if ((f->docs->flags & NG_DOCUMENTS_SHARED) != 0) {
        test(state);
    }
}

static void shared_failed(void **state)
{
    only_if_shared(test_built_on_one_that_failed, state);
}

static void shared_gateways(void **state)
{
    only_if_shared(test_gateways_of_events, state);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, documents_setup, documents_teardown)

int documents_shared_contract(void)
{
    const struct CMUnitTest shared[] = {
        TEST(shared_failed),
        TEST(test_built_on_one_that_was_made),
        TEST(shared_gateways),
    };
    return cmocka_run_group_tests_name("documents: shared", shared, NULL, NULL);
}
