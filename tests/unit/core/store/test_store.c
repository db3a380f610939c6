/* SPDX-License-Identifier: MIT */
/* test_store.c - changes under way: conflicts, queues, chains that fail, the cache.
 */
#include "test_store_rig.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/host/host.h"

/* Lets go of the first held batch: it fails with rc, or is committed. */
static void held_next(int rc)
{
    assert_true(held.count > 0);
    struct ng_batch *batch = held.batches[0].batch;
    ng_done_fn *done = held.batches[0].done;
    void *user = held.batches[0].user;
    held.count--;
    memmove(&held.batches[0], &held.batches[1], held.count * sizeof(held.batches[0]));
    if (rc != NG_OK) {
        (void)snprintf(batch->error, sizeof(batch->error), "the disk is full");
        done(user, batch, rc);
        return;
    }
    assert_int_equal(held.inner->commit(held.db, batch, done, user), NG_OK);
}

static void held_rest(void)
{
    while (held.count > 0) {
        held_next(NG_OK);
    }
    held.hold = false;
}

static bool write_is_done(struct write *write)
{
    pthread_mutex_lock(&held.lock);
    bool done = write->done;
    pthread_mutex_unlock(&held.lock);
    return done;
}

static void expect(struct bench *bench, const char *id, uint64_t revision, const char *text)
{
    struct call *call = harness_new_call(&bench->harness);
    const struct ng_doc *doc = NULL;
    struct ng_key key = key_of(id);
    assert_int_equal(store_get(bench->store, call, &key, 0, &doc), NG_OK);
    assert_int_equal(doc->revision, revision);
    assert_int_equal(doc->text.len, strlen(text));
    assert_memory_equal(doc->text.data, text, doc->text.len);
    call_unref(call);
}

static void test_life(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    struct call *call = harness_new_call(&bench.harness);
    struct ng_key key = key_of("d");
    const struct ng_doc *doc = NULL;
    expect(&bench, "d", 0, "");
    assert_int_equal(change(&bench, "d", "-", NG_OK), 0); /* nothing to delete */
    assert_int_equal(change(&bench, "d", "a", NG_OK), 1);
    assert_int_equal(change(&bench, "d", NULL, NG_OK), 1);
    assert_int_equal(change(&bench, "d", "b", NG_OK), 2);
    assert_int_equal(store_get(bench.store, call, &key, 0, &doc), NG_OK);
    assert_true(doc->created_seq > 0 && doc->created_seq < doc->seq);
    assert_true(str_is(doc->action, "updated"));
    uint64_t created = doc->created_seq;
    change(&bench, "d", "-", NG_OK);
    assert_int_equal(store_get(bench.store, call, &key, 0, &doc), NG_OK);
    assert_true(doc->deleted && doc->revision == 3 && str_is(doc->json, "{}"));
    assert_int_equal(change(&bench, "d", "c", NG_OK), 4);
    assert_int_equal(store_get(bench.store, call, &key, 0, &doc), NG_OK);
    assert_true(doc->created_seq == doc->seq && doc->created_seq > created);
    assert_true(str_is(doc->text, "c") && str_is(doc->action, "created"));
    assert_int_equal(store_get(bench.store, call, &key, 2, &doc), NG_OK);
    assert_true(str_is(doc->text, "ab"));
    assert_int_equal(store_get(bench.store, call, &key, 9, &doc), NG_ENOTFOUND);
    call_unref(call);
    bench_close(&bench);
}

static void test_conflicts(void **state)
{
    struct bench bench;
    struct write write;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    change(&bench, "d", "a", NG_OK);
    for (uint64_t revision = 0; revision < 3; revision++) {
        write_new(&bench, &write, "d", NULL);
        write.changes[0].has_expected = true;
        write.changes[0].expected_revision = revision;
        write_start(&bench, &write);
        if (revision != 1) {
            assert_int_equal(write.runs, 0);
            assert_true(str_is(write.call->final.details, "{\"currentRevision\":1}"));
        }
        write_end(&write, revision == 1 ? NG_OK : NG_ECONFLICT);
    }
    change(&bench, "d", "-", NG_OK);
    write_new(&bench, &write, "d", "new");
    write.changes[0].has_expected = true; /* 0: not there, as after a delete */
    write_start(&bench, &write);
    assert_int_equal(write_end(&write, NG_OK), 3);
    bench_close(&bench);
}

static int fail_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    (void)call;
    (void)present;
    (void)next;
    (void)user;
    return NG_EFAILED;
}

static void test_several(void **state)
{
    struct bench bench;
    struct write write;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    write_new(&bench, &write, "a", "x");
    write.count = 2;
    write.changes[1].key = key_of("b");
    write_start(&bench, &write);
    assert_int_equal(write_end(&write, NG_OK), 1);
    expect(&bench, "b", 1, "x");
    write_new(&bench, &write, "a", "y");
    write.count = 2;
    write.changes[1].key = key_of("b");
    write.changes[1].fn = fail_fn;
    write_start(&bench, &write);
    write_end(&write, NG_EFAILED);
    expect(&bench, "a", 1, "x");
    write_new(&bench, &write, "a", "y");
    write.count = 2; /* twice the same */
    write_start(&bench, &write);
    write_end(&write, NG_EINTERNAL);
    change(&bench, "a", "!", NG_EFAILED);
    assert_int_equal(change(&bench, "a", "z", NG_OK), 2);
    bench_close(&bench);
}

/* Changes that are not on disk are neither reported nor readable. */
static void test_queued(void **state)
{
    struct bench bench;
    struct write first;
    struct write same;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    change(&bench, "d", "a", NG_OK);
    held.hold = true;
    write_new(&bench, &first, "d", "b");
    write_start(&bench, &first);
    write_new(&bench, &same, "d", NULL);
    write_start(&bench, &same);
    assert_int_equal(same.rc, NG_PENDING);
    assert_false(write_is_done(&first) || write_is_done(&same));
    expect(&bench, "d", 1, "a");
    held_rest();
    assert_int_equal(write_end(&first, NG_OK), 2);
    assert_int_equal(write_end(&same, NG_OK), 2);
    expect(&bench, "d", 2, "ab");
    bench_close(&bench);
}

/* Nor is a refusal that is made of them: a change that is lost was never seen. */
static void test_refused_by_queued(void **state)
{
    struct bench bench;
    struct write first;
    struct write guarded;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    change(&bench, "d", "a", NG_OK);
    for (int fails = 0; fails < 2; fails++) {
        held.hold = true;
        write_new(&bench, &first, "d", "b");
        write_start(&bench, &first);
        write_new(&bench, &guarded, "d", "c");
        guarded.changes[0].has_expected = true;
        guarded.changes[0].expected_revision = 1;
        write_start(&bench, &guarded);
        assert_false(write_is_done(&guarded));
        held_next(fails == 0 ? NG_EFULL : NG_OK);
        assert_false(write_is_done(&guarded));
        held_rest();
        (void)write_end(&first, fails == 0 ? NG_EFULL : NG_OK);
        write_end(&guarded, fails == 0 ? NG_EFULL : NG_ECONFLICT);
    }
    expect(&bench, "d", 2, "ab");
    bench_close(&bench);
}

static void test_failing_chain(void **state)
{
    struct bench bench;
    struct write writes[4];
    struct write late;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    change(&bench, "d", "a", NG_OK);
    held.hold = true;
    for (size_t i = 0; i < 4; i++) {
        write_new(&bench, &writes[i], "d", i == 2 ? NULL : "b");
        if (i == 3) {
            writes[i].count = 2;
            writes[i].changes[1].key = key_of("e");
        }
        write_start(&bench, &writes[i]);
    }
    held_next(NG_EFULL);
    write_end(&writes[0], NG_EFULL);
    write_new(&bench, &late, "d", "c"); /* while those behind it are still on their way */
    write_start(&bench, &late);
    write_end(&late, NG_EFULL);
    held_rest();
    for (size_t i = 1; i < 4; i++) {
        write_end(&writes[i], NG_EFULL); /* not a conflict, which would be the caller's */
    }
    expect(&bench, "d", 1, "a");
    expect(&bench, "e", 0, "");
    assert_int_equal(change(&bench, "e", "x", NG_OK), 1);
    assert_int_equal(change(&bench, "d", "z", NG_OK), 2);
    expect(&bench, "d", 2, "az");
    bench_close(&bench);
}

static void test_refused(void **state)
{
    struct bench bench;
    struct write first;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    change(&bench, "d", "a", NG_OK);
    held.hold = true;
    write_new(&bench, &first, "d", "b");
    write_start(&bench, &first);
    held.refuse = true;
    change(&bench, "d", "lost", NG_EBUSY);
    change(&bench, "e", "lost", NG_EBUSY);
    held.refuse = false;
    held_rest();
    assert_int_equal(write_end(&first, NG_OK), 2);
    assert_int_equal(change(&bench, "d", "c", NG_OK), 3);
    expect(&bench, "d", 3, "abc");
    expect(&bench, "e", 0, "");
    bench_close(&bench);
}

/* None of the changes is read. */
static void test_too_many(void **state)
{
    struct bench bench;
    struct write write;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    write_new(&bench, &write, "d", "a");
    write.count = NG_CHANGES_MAX + 1;
    write_start(&bench, &write);
    write_end(&write, NG_ETOOLARGE);
    expect(&bench, "d", 0, "");
    bench_close(&bench);
}

/* Nothing is looked for where the id is new; where it is taken nevertheless the commit finds
 * out, and memory has forgotten what it took for granted. */
static void new_ids(uint32_t flags)
{
    struct bench bench;
    struct write taken;
    struct write fresh;
    bench_open(&bench, flags);
    change(&bench, "d", "a", NG_OK);
    struct store *first = bench.store;
    bench.store = bench_store(&bench, flags); /* has nothing in memory */
    write_new(&bench, &taken, "d", "b");
    taken.changes[0].is_new = true;
    taken.changes[0].has_expected = true;
    write_start(&bench, &taken);
    write_end(&taken, NG_ECONFLICT);
    expect(&bench, "d", 1, "a");
    assert_int_equal(change(&bench, "d", "b", NG_OK), 2);
    expect(&bench, "d", 2, "ab");
    write_new(&bench, &fresh, "e", "c");
    fresh.changes[0].is_new = true;
    write_start(&bench, &fresh);
    assert_int_equal(write_end(&fresh, NG_OK), 1);
    assert_int_equal(change(&bench, "e", "d", NG_OK), 2);
    expect(&bench, "e", 2, "cd");
    store_close(bench.store);
    bench.store = first;
    bench_close(&bench);
}

static void test_new_ids(void **state)
{
    (void)state;
    new_ids(NG_DOCUMENTS_MEMORY);
    new_ids(NG_DOCUMENTS_MEMORY | NG_DOCUMENTS_SHARED);
}

static void fail_held(void)
{
    held_next(NG_EUNAVAILABLE);
    held.hold = false;
}

/* The change it depends on fails while the function runs: it runs again, and what the tool
 * replied before stays. */
static void test_again(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    for (int json = 0; json < 2; json++) {
        struct write first;
        struct write second;
        held.hold = true;
        write_new(&bench, &first, json ? "j" : "t", "lost");
        write_start(&bench, &first);
        write_new(&bench, &second, json ? "j" : "t", "kept");
        second.inside = fail_held;
        struct ng_call *pub = &second.call->pub;
        if (json) {
            struct ng_writer *writer = call_host.reply_json(pub);
            json_object(writer);
            json_end(writer);
        } else {
            assert_int_equal(call_host.reply(pub, ng_str_of("reply")), NG_OK);
        }
        write_start(&bench, &second);
        write_end(&first, NG_EUNAVAILABLE);
        call_ref(second.call);
        assert_int_equal(write_end(&second, NG_OK), 1);
        assert_int_equal(second.runs, 2);
        assert_true(str_is(second.call->final.text, json ? "{}" : "reply"));
        call_unref(second.call);
        expect(&bench, json ? "j" : "t", 1, "kept");
    }
    bench_close(&bench);
}

static void take_stat(void *user, const char *name, double value)
{
    double *bytes = user;
    if (strcmp(name, "cache_bytes") == 0) {
        *bytes = value;
    }
}

static void test_cache(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    size_t len = STORE_CACHE_BYTES / 3;
    char *large = malloc(len + 1);
    assert_non_null(large);
    memset(large, 'x', len);
    large[len] = '\0';
    char id[8];
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof(id), "d%d", i);
        assert_int_equal(change(&bench, id, large, NG_OK), 1);
    }
    double bytes = 0;
    store_stats(bench.store, take_stat, &bytes);
    assert_true(bytes > 0 && bytes <= (double)STORE_CACHE_BYTES);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof(id), "d%d", i);
        expect(&bench, id, 1, large);
        assert_int_equal(change(&bench, id, "y", NG_OK), 2);
    }
    /* One that is larger than the cache. */
    for (uint64_t i = 1; i <= 4; i++) {
        assert_int_equal(change(&bench, "big", large, NG_OK), i);
    }
    store_stats(bench.store, take_stat, &bytes);
    assert_true(bytes <= (double)STORE_CACHE_BYTES);
    struct call *call = harness_new_call(&bench.harness);
    const struct ng_doc *doc = NULL;
    struct ng_key key = key_of("big");
    assert_int_equal(store_get(bench.store, call, &key, 0, &doc), NG_OK);
    assert_int_equal(doc->text.len, 4 * len);
    call_unref(call);
    free(large);
    bench_close(&bench);
}

/* Another gateway writes to the same database: nothing of it is read from memory. */
static bool is_kept(struct bench *bench, uint64_t revision)
{
    struct call *call = harness_new_call(&bench->harness);
    const struct ng_doc *doc = NULL;
    struct ng_key key = key_of("d");
    int rc = store_get(bench->store, call, &key, revision, &doc);
    assert_true(rc == NG_OK || rc == NG_ENOTFOUND);
    call_unref(call);
    return rc == NG_OK;
}

static void maintain(struct bench *bench)
{
    struct call *call = harness_new_call(&bench->harness);
    int64_t written = clock_unix_ms();
    while (clock_unix_ms() - written < 5) {
        sched_yield(); /* until what was written is old */
    }
    call->may_block = true;
    assert_int_equal(store_maintain(bench->store, call), NG_OK);
    call_unref(call);
}

/* It looks at every document, which upkeep of every minute must not. */
static void test_history_is_thinned_now_and_then(void **state)
{
    static const char *const texts[] = {"a", "b", "c", "d", "e"};
    struct bench bench;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        change(&bench, "d", texts[i], NG_OK);
    }
    store_set_keep(bench.store, 1);
    maintain(&bench);
    assert_true(is_kept(&bench, 1) && !is_kept(&bench, 2) && is_kept(&bench, 4));
    change(&bench, "d", "f", NG_OK);
    change(&bench, "d", "g", NG_OK);
    maintain(&bench);
    assert_true(is_kept(&bench, 5));
    store_set_keep(bench.store, 1); /* the kept state has changed: there is no wait */
    maintain(&bench);
    assert_true(is_kept(&bench, 1) && !is_kept(&bench, 5) && is_kept(&bench, 7));
    bench_close(&bench);
}

static void test_shared(void **state)
{
    struct bench bench;
    struct bench other;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_SHARED);
    other = bench;
    other.store = bench_store(&other, NG_DOCUMENTS_SHARED);
    assert_int_equal(change(&bench, "d", "a", NG_OK), 1);
    expect(&other, "d", 1, "a");
    assert_int_equal(change(&other, "d", "b", NG_OK), 2);
    expect(&bench, "d", 2, "ab");
    assert_int_equal(change(&bench, "d", "c", NG_OK), 3);
    expect(&other, "d", 3, "abc");
    store_close(other.store);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_queued),
        cmocka_unit_test(test_refused_by_queued),
        cmocka_unit_test(test_failing_chain),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_history_is_thinned_now_and_then),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_new_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
