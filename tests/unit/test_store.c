/* SPDX-License-Identifier: MIT */
/* test_store.c - changes of documents, over a backend whose commits are held back, refused and
 * failed as a case wants it. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_types.h"
#include "str.h"

#define HELD_MAX 64
#define WRITERS 16
#define WRITES 200
#define SHARED_DOCS 3

/* ---- the backend ---- */

static struct held {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    const struct ng_documents *inner;
    void *db;
    bool hold;
    bool refuse;
    unsigned fail_each; /* 0: none; each nth commit fails */
    atomic_uint commits;
    struct {
        struct ng_batch *batch;
        ng_done_fn *done;
        void *user;
    } batches[HELD_MAX];
    size_t count;
} held = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static int held_open(struct ng_call *call, const struct ng_conf *conf, void **ret_db)
{
    (void)call;
    (void)conf;
    *ret_db = held.db;
    return NG_OK;
}

static void held_close(void *db)
{
    (void)db; /* the gateway's */
}

static int held_commit(void *db, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    if (held.refuse) {
        return NG_EBUSY;
    }
    if (held.fail_each > 0 && atomic_fetch_add(&held.commits, 1) % held.fail_each == 0) {
        done(user, batch, NG_EUNAVAILABLE); /* before those that were queued earlier */
        return NG_OK;
    }
    if (!held.hold) {
        return held.inner->commit(db, batch, done, user);
    }
    pthread_mutex_lock(&held.lock);
    assert_true(held.count < HELD_MAX);
    held.batches[held.count].batch = batch;
    held.batches[held.count].done = done;
    held.batches[held.count].user = user;
    held.count++;
    pthread_mutex_unlock(&held.lock);
    return NG_OK;
}

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

struct bench {
    struct harness harness;
    struct ng_documents backend;
    struct store *store;
};

static const struct ng_collection things = {.name = "things"};

static struct store *bench_store(struct bench *bench, uint32_t flags)
{
    struct store *store = NULL;
    struct call *call = harness_new_call(&bench->harness);
    bench->backend = *held.inner;
    bench->backend.open = held_open;
    bench->backend.close = held_close;
    bench->backend.commit = held_commit;
    bench->backend.flags = flags;
    assert_int_equal(store_open(call, &bench->backend,
                                config_view(bench->harness.gateway->config, "sqlite"), &store),
                     NG_OK);
    assert_int_equal(store_declare(store, call, &things), NG_OK);
    call_unref(call);
    return store;
}

static void bench_open(struct bench *bench, uint32_t flags)
{
    static const char *const sets[] = {"plugins=", "documents=memory", NULL};
    memset(bench, 0, sizeof(*bench));
    harness_open(&bench->harness, sets);
    held.inner = store_backend(bench->harness.gateway->store, &held.db);
    held.hold = false;
    held.refuse = false;
    held.fail_each = 0;
    held.count = 0;
    bench->store = bench_store(bench, flags);
}

static void bench_close(struct bench *bench)
{
    store_close(bench->store);
    harness_close(&bench->harness);
}

/* ---- changes under way ---- */

struct write {
    struct call *call;
    struct ng_change changes[3];
    size_t count;
    const char *text; /* NULL: no change, "-": delete, "!": fail, else what is appended */
    unsigned runs;
    void (*inside)(void); /* in the function's first run */
    bool done;
    int rc; /* of store_change */
};

static void write_done(struct call *call, void *user)
{
    struct write *write = user;
    (void)call;
    pthread_mutex_lock(&held.lock);
    write->done = true;
    pthread_cond_broadcast(&held.moved);
    pthread_mutex_unlock(&held.lock);
}

static int write_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                    void *user)
{
    struct write *write = user;
    if (write->runs++ == 0 && write->inside != NULL) {
        write->inside();
    }
    if (write->text == NULL) {
        return NG_OK;
    }
    if (write->text[0] == '-') {
        call->host->draft_delete(next);
        return NG_OK;
    }
    struct ng_str pieces[2] = {present->text, ng_str_of(write->text)};
    return write->text[0] == '!' ? NG_EFAILED : call->host->draft_text(next, pieces, 2);
}

static struct ng_key key_of(const char *id)
{
    struct ng_key key = {ng_str_of("things"), ng_str_of("shared"), ng_str_of(id)};
    return key;
}

static void write_new(struct bench *bench, struct write *write, const char *id,
                      const char *text)
{
    memset(write, 0, sizeof(*write));
    write->call = harness_new_call(&bench->harness);
    write->text = text;
    write->count = 1;
    for (size_t i = 0; i < NG_COUNT(write->changes); i++) {
        write->changes[i].size = sizeof(write->changes[i]);
        write->changes[i].key = key_of(id);
        write->changes[i].fn = write_fn;
        write->changes[i].user = write;
    }
}

/* As a run does: it holds the call until the change is on its way. */
static void write_start(struct bench *bench, struct write *write)
{
    struct call *call = write->call;
    call->done = write_done;
    call->done_user = write;
    call_ref(call);
    call_hold(call);
    write->rc = store_change(bench->store, call, write->changes, write->count);
    if (write->rc < 0) {
        call->work.rc = write->rc;
    }
    call_release(call);
}

static bool write_is_done(struct write *write)
{
    pthread_mutex_lock(&held.lock);
    bool done = write->done;
    pthread_mutex_unlock(&held.lock);
    return done;
}

/* The end of it; returns the revision, 0 where it failed. */
static uint64_t write_end(struct write *write, int rc)
{
    pthread_mutex_lock(&held.lock);
    while (!write->done) {
        pthread_cond_wait(&held.moved, &held.lock);
    }
    pthread_mutex_unlock(&held.lock);
    assert_int_equal(write->call->result.rc, rc);
    uint64_t revision = rc == NG_OK ? write->call->result.revision_number : 0;
    call_unref(write->call);
    return revision;
}

static uint64_t change(struct bench *bench, const char *id, const char *text, int rc)
{
    struct write write;
    write_new(bench, &write, id, text);
    write_start(bench, &write);
    return write_end(&write, rc);
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

/* ---- cases ---- */

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
            assert_true(str_is(write.call->result.details, "{\"currentRevision\":1}"));
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

/* Nobody is told of, or reads, what is not on disk. */
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

/* What it was made on fails while the function runs: it runs again, and what the tool replied
 * before stays. */
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
        assert_true(str_is(second.call->result.text, json ? "{}" : "reply"));
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

static struct {
    struct bench *bench;
    atomic_bool over;
    atomic_uint wrong;
} crowd;

static void *crowd_write(void *user)
{
    const unsigned *number = user;
    char id[8];
    for (unsigned i = 0; i < WRITES; i++) {
        struct write write;
        (void)snprintf(id, sizeof(id), "d%u", (i + *number) % SHARED_DOCS);
        write_new(crowd.bench, &write, id, "x");
        write_start(crowd.bench, &write);
        write_end(&write, NG_OK);
    }
    return NULL;
}

/* Revision n has n letters, and no reader goes back in time. */
static void *crowd_read(void *user)
{
    uint64_t last = 0;
    struct ng_key key = key_of("d0");
    (void)user;
    while (!atomic_load(&crowd.over)) {
        struct call *call = harness_new_call(&crowd.bench->harness);
        const struct ng_doc *doc = NULL;
        bool good = store_get(crowd.bench->store, call, &key, 0, &doc) == NG_OK &&
                    doc->text.len == doc->revision && doc->revision >= last;
        if (!good) {
            atomic_fetch_add(&crowd.wrong, 1);
        } else {
            last = doc->revision;
        }
        call_unref(call);
    }
    return NULL;
}

static void test_crowd(void **state)
{
    struct bench bench;
    pthread_t writers[WRITERS];
    pthread_t readers[2];
    unsigned numbers[WRITERS];
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    crowd.bench = &bench;
    atomic_store(&crowd.over, false);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, crowd_read, NULL), 0);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&writers[i], NULL, crowd_write, &numbers[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], NULL);
    }
    atomic_store(&crowd.over, true);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(readers[i], NULL);
    }
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    uint64_t sum = 0;
    for (unsigned i = 0; i < SHARED_DOCS; i++) {
        char id[8];
        (void)snprintf(id, sizeof(id), "d%u", i);
        sum += change(&bench, id, NULL, NG_OK);
    }
    assert_int_equal(sum, WRITERS * WRITES);
    bench_close(&bench);
}

static void *crowd_try(void *user)
{
    unsigned *stored = user;
    for (unsigned i = 0; i < WRITES; i++) {
        struct write write;
        write_new(crowd.bench, &write, "d0", "x");
        write_start(crowd.bench, &write);
        pthread_mutex_lock(&held.lock);
        while (!write.done) {
            pthread_cond_wait(&held.moved, &held.lock);
        }
        pthread_mutex_unlock(&held.lock);
        *stored += write.call->result.rc == NG_OK;
        call_unref(write.call);
    }
    return NULL;
}

/* Commits that fail between others: what was acknowledged is there, and nothing else. */
static void test_crowd_failing(void **state)
{
    struct bench bench;
    pthread_t writers[WRITERS];
    pthread_t reader;
    unsigned stored[WRITERS] = {0};
    unsigned sum = 0;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    crowd.bench = &bench;
    atomic_store(&crowd.over, false);
    atomic_store(&crowd.wrong, 0);
    held.fail_each = 7;
    assert_int_equal(pthread_create(&reader, NULL, crowd_read, NULL), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&writers[i], NULL, crowd_try, &stored[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], NULL);
        sum += stored[i];
    }
    atomic_store(&crowd.over, true);
    pthread_join(reader, NULL);
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    assert_true(sum > 0 && sum < WRITERS * WRITES);
    held.fail_each = 0;
    assert_int_equal(change(&bench, "d0", NULL, NG_OK), sum);
    bench_close(&bench);
}

/* Another gateway writes to the same database: nothing of it is read from memory. */
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
        cmocka_unit_test(test_life),          cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_several),       cmocka_unit_test(test_queued),
        cmocka_unit_test(test_failing_chain), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_again),         cmocka_unit_test(test_cache),
        cmocka_unit_test(test_crowd),         cmocka_unit_test(test_crowd_failing),
        cmocka_unit_test(test_shared),        cmocka_unit_test(test_new_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
