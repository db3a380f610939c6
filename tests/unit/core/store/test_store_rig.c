/* SPDX-License-Identifier: MIT */
/* test_store_rig.c - shared code of test_store*.c; see the header.
 */
#include "test_store_rig.h"

#include <string.h>

#include "core/base/str.h"
#include "core/config/config.h"
#include "core/dispatch/dispatch.h"

/* ---- the backend ---- */

struct held held = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

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

static const struct ng_collection things = {.name = "things"};

struct store *bench_store(struct bench *bench, uint32_t flags)
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

void bench_open(struct bench *bench, uint32_t flags)
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

void bench_close(struct bench *bench)
{
    store_close(bench->store);
    harness_close(&bench->harness);
}

/* ---- changes under way ---- */

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

struct ng_key key_of(const char *id)
{
    struct ng_key key = {ng_str_of("things"), ng_str_of("shared"), ng_str_of(id)};
    return key;
}

void write_new(struct bench *bench, struct write *write, const char *id, const char *text)
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

void write_start(struct bench *bench, struct write *write)
{
    struct call *call = write->call;
    call->done = write_done;
    call->done_user = write;
    call->over = dispatch_over;
    call_ref(call);
    call_pend(call);
    write->rc = store_change(bench->store, call, write->changes, write->count);
    if (write->rc < 0) {
        call->staged.rc = write->rc;
    }
    call_complete(call);
}

uint64_t write_end(struct write *write, int rc)
{
    pthread_mutex_lock(&held.lock);
    while (!write->done) {
        pthread_cond_wait(&held.moved, &held.lock);
    }
    pthread_mutex_unlock(&held.lock);
    assert_int_equal(write->call->final.rc, rc);
    uint64_t revision = rc == NG_OK ? write->call->final.revision_number : 0;
    call_unref(write->call);
    return revision;
}

uint64_t change(struct bench *bench, const char *id, const char *text, int rc)
{
    struct write write;
    write_new(bench, &write, id, text);
    write_start(bench, &write);
    return write_end(&write, rc);
}
