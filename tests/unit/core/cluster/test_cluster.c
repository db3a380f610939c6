/* SPDX-License-Identifier: MIT */
/* test_cluster.c - gateways that share a database: keys, the feed, the journal, and a start
 * while the database is away. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/tasks/mcp_task_table.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"
#include "core/feed/feed.h"
#include "core/journal/journal.h"
#include "core/keys/keys.h"
#include "core/store/store.h"
#include "hub.h"

#define GATEWAYS 3
/* Far more than anything here takes. */
#define PATIENCE_MS 60000
/* A lease whose end a test waits for. */
#define SHORT_LEASE_MS 2000

#define NG_TEXT(text)                                                                          \
    {                                                                                          \
        (text), sizeof(text) - 1                                                               \
    }

static const struct hub_control *hub;

static const struct ng_collection things = {
    .name = "things",
    .flags = NG_COLLECTION_REFERENCED,
};

struct cluster_bench {
    struct harness harness[GATEWAYS];
};

static void bench_open_one(struct harness *harness)
{
    static const char *const sets[] = {"plugins=", "documents=" HUB_MODULE, NULL};
    harness_open(harness, sets);
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_declare(harness->gateway->store, call, &things), NG_OK);
    store_release_referenced(harness->gateway->store, SIZE_MAX); /* as the journal does it */
    call_unref(call);
}

static void bench_open(struct cluster_bench *bench)
{
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        bench_open_one(&bench->harness[i]);
    }
}

/* From then on the first two gateways soon find a gateway dead. */
static void bench_shorten_leases(struct cluster_bench *bench)
{
    for (size_t i = 0; i < 2; i++) {
        cluster_set_lease(bench->harness[i].gateway->cluster, SHORT_LEASE_MS);
    }
}

static void bench_close(struct cluster_bench *bench)
{
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        harness_close(&bench->harness[i]);
    }
}

static void step(void)
{
    const struct timespec time = {0, 2000000};
    (void)nanosleep(&time, NULL);
}

/* Until the condition holds; a failure if it never does. */
#define WAIT_FOR(condition)                                                                    \
    for (int64_t until_ = clock_monotonic_ns() + (int64_t)PATIENCE_MS * 1000000; !(condition); \
         step()) {                                                                             \
        assert_true(clock_monotonic_ns() < until_);                                            \
    }

/* ---- writing ---- */

static int write_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                    void *user)
{
    struct ng_str text = ng_str_of(user);
    (void)present;
    call->host->draft_event(next, ng_str_of("{\"title\":\"a thing\"}"));
    return call->host->draft_text(next, &text, 1);
}

static int put(struct harness *harness, const char *id)
{
    struct call *call = harness_new_call(harness);
    char text[] = "text";
    struct ng_change change = {
        .size = sizeof(change),
        .key = {NG_TEXT("things"), NG_TEXT("shared"), {id, strlen(id)}},
        .fn = write_fn,
        .user = text,
    };
    int rc = store_write_wait(harness->gateway->store, call, &change, 1);
    call_unref(call);
    return rc;
}

/* ---- keys ---- */

static struct key *add_key(struct harness *harness, char text[KEY_TEXT_MAX])
{
    struct call *call = harness_new_call(harness);
    struct key_spec spec = {.agent = NG_TEXT("someone"), .role = NG_ROLE_WRITER};
    struct key *key = NULL;
    spec.mode = NG_MODE_AGENT;
    spec.created_ms = clock_unix_ms();
    assert_int_equal(keys_add(harness->gateway->keys, call, &spec, text, &key), NG_OK);
    call_unref(call);
    return key;
}

static bool knows_key(struct harness *harness, const char *text)
{
    const char *why = NULL;
    struct key *key = keys_find(harness->gateway->keys, ng_str_of(text), &why);
    key_unref(key);
    return key != NULL;
}

static void test_keys(void **state)
{
    struct cluster_bench bench;
    char text[KEY_TEXT_MAX];
    (void)state;
    bench_open(&bench);
    assert_int_equal(keys_active(bench.harness[1].gateway->keys), 0);
    struct key *key = add_key(&bench.harness[0], text);
    assert_true(knows_key(&bench.harness[0], text));
    for (size_t i = 1; i < GATEWAYS; i++) {
        WAIT_FOR(knows_key(&bench.harness[i], text));
        assert_int_equal(keys_active(bench.harness[i].gateway->keys), 1);
    }
    struct key *held = keys_get(bench.harness[2].gateway->keys, ng_str_of(key->id));
    struct call *call = harness_new_call(&bench.harness[1]);
    struct key *revoked = NULL;
    assert_int_equal(
        keys_revoke(bench.harness[1].gateway->keys, call, ng_str_of(key->id), NULL, &revoked),
        NG_OK);
    call_unref(call);
    assert_false(key_live(revoked));
    WAIT_FOR(!key_live(held)); /* its running calls see that */
    WAIT_FOR(!knows_key(&bench.harness[0], text));
    key_unref(held);
    key_unref(revoked);
    key_unref(key);
    bench_close(&bench);
}

/* One that another gateway made a moment ago can be revoked here. */
static void test_revoked_at_once(void **state)
{
    struct cluster_bench bench;
    char text[KEY_TEXT_MAX];
    (void)state;
    bench_open(&bench);
    for (size_t i = 0; i < 5; i++) {
        struct key *key = add_key(&bench.harness[0], text);
        struct call *call = harness_new_call(&bench.harness[1]);
        struct key *revoked = NULL;
        assert_int_equal(keys_revoke(bench.harness[1].gateway->keys, call, ng_str_of(key->id),
                                     NULL, &revoked),
                         NG_OK);
        call_unref(call);
        key_unref(revoked);
        WAIT_FOR(!knows_key(&bench.harness[0], text));
        key_unref(key);
    }
    bench_close(&bench);
}

/* ---- a start without the database ---- */

static void test_start_while_away(void **state)
{
    struct cluster_bench bench;
    struct harness late;
    char text[KEY_TEXT_MAX];
    (void)state;
    bench_open(&bench);
    struct key *key = add_key(&bench.harness[0], text);
    assert_int_equal(put(&bench.harness[0], "before"), NG_OK);
    hub->away(true);
    bench_open_one(&late);
    struct keys *keys = late.gateway->keys;
    assert_true(keys_not_loaded(keys));
    assert_true(keys_active(keys) > 0); /* closed, not open */
    assert_false(knows_key(&late, text));
    assert_int_equal(put(&late, "while"), NG_EUNAVAILABLE);
    hub->away(false);
    WAIT_FOR(!keys_not_loaded(keys));
    assert_int_equal(keys_active(keys), 1);
    assert_true(knows_key(&late, text));
    assert_int_equal(put(&late, "after"), NG_OK);
    key_unref(key);
    harness_close(&late);
    bench_close(&bench);
}

/* ---- the feed ---- */

static void no_wake(void *user)
{
    (void)user;
}

struct follower {
    struct feed_reader *reader;
    uint64_t seqs[1024];
    char ids[1024][32];
    size_t count;
};

static void follower_open(struct follower *follower, struct harness *harness, uint64_t since)
{
    struct feed_filter filter = {.all_spaces = true, .collection = NG_TEXT("things")};
    follower->count = 0;
    assert_int_equal(feed_open(harness->gateway->feed, &filter, since, ng_str_of("reader"),
                               no_wake, NULL, &follower->reader),
                     NG_OK);
}

/* Takes what there is. */
static size_t follower_take(struct follower *follower)
{
    const struct ng_event *event = NULL;
    while (feed_next(follower->reader, &event) == NG_OK) {
        assert_true(follower->count < NG_COUNT(follower->seqs));
        follower->seqs[follower->count] = event->seq;
        (void)snprintf(follower->ids[follower->count], sizeof(follower->ids[0]), "%.*s",
                       (int)event->key.id.len, event->key.id.data);
        follower->count++;
    }
    return follower->count;
}

struct writer {
    struct harness *harness;
    size_t number;
};

static void *writer_run(void *user)
{
    struct writer *writer = user;
    char id[32];
    for (size_t i = 0; i < 50; i++) {
        (void)snprintf(id, sizeof(id), "%zu/%zu", writer->number, i % 7);
        if (put(writer->harness, id) != NG_OK) {
            return user;
        }
    }
    return NULL;
}

/* Every gateway shows every event, in one order; a reader that continues at another gateway
 * misses none. */
static void test_feed(void **state)
{
    struct cluster_bench bench;
    struct follower *followers = calloc(GATEWAYS + 1, sizeof(*followers));
    struct writer writers[GATEWAYS];
    pthread_t threads[GATEWAYS];
    const size_t total = (size_t)GATEWAYS * 50;
    (void)state;
    assert_non_null(followers);
    bench_open(&bench);
    hub->unnumbered(true);
    for (size_t i = 0; i < GATEWAYS; i++) {
        follower_open(&followers[i], &bench.harness[i], i == 0 ? 0 : UINT64_MAX);
        (void)follower_take(&followers[i]);
    }
    /* Those that begin now have begun when they have seen this one. */
    assert_int_equal(put(&bench.harness[0], "first"), NG_OK);
    for (size_t i = 0; i < GATEWAYS; i++) {
        WAIT_FOR(follower_take(&followers[i]) > 0);
        assert_int_equal(followers[i].count, 1);
    }
    for (size_t i = 0; i < GATEWAYS; i++) {
        writers[i] = (struct writer){&bench.harness[i], i};
        assert_int_equal(pthread_create(&threads[i], NULL, writer_run, &writers[i]), 0);
    }
    for (size_t i = 0; i < GATEWAYS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    for (size_t i = 0; i < GATEWAYS; i++) {
        WAIT_FOR(follower_take(&followers[i]) >= total + 1);
        assert_int_equal(followers[i].count, total + 1);
        for (size_t j = 0; j < followers[i].count; j++) {
            assert_int_equal(followers[i].seqs[j], followers[0].seqs[j]);
            assert_string_equal(followers[i].ids[j], followers[0].ids[j]);
            assert_true(j == 0 || followers[i].seqs[j] > followers[i].seqs[j - 1]);
        }
    }
    struct follower *resumed = &followers[GATEWAYS];
    follower_open(resumed, &bench.harness[2], followers[0].seqs[99]);
    WAIT_FOR(follower_take(resumed) >= total - 99);
    assert_int_equal(resumed->count, total - 99);
    assert_int_equal(resumed->seqs[0], followers[0].seqs[100]);
    for (size_t i = 0; i <= GATEWAYS; i++) {
        feed_close(followers[i].reader);
    }
    free(followers);
    bench_close(&bench);
}

/* ---- the journal ---- */

static int count_entry(void *user, const struct ng_entry *entry)
{
    size_t *count = user;
    *count += str_is(entry->collection, "things") ? 1 : 0;
    return 0;
}

static size_t references(struct harness *harness)
{
    void *db = NULL;
    size_t count = 0;
    const struct ng_journal *journal = journal_vtable(harness->gateway->journal, &db);
    struct call *call = harness_new_call(harness);
    struct ng_timeline timeline = {
        .size = sizeof(timeline), .space = NG_TEXT("shared"), .limit = 10000};
    assert_int_equal(journal->timeline(db, &call->pub, &timeline, count_entry, &count), NG_OK);
    call_unref(call);
    return count;
}

static void test_journal(void **state)
{
    struct cluster_bench bench;
    (void)state;
    bench_open(&bench);
    hub->unnumbered(true);
    char id[32];
    for (size_t i = 0; i < 30; i++) {
        (void)snprintf(id, sizeof(id), "%zu", i);
        assert_int_equal(put(&bench.harness[i % GATEWAYS], id), NG_OK);
    }
    WAIT_FOR(references(&bench.harness[0]) >= 30);
    /* A reader that needs all events does not wait for the delivering gateway. */
    assert_int_equal(put(&bench.harness[1], "more"), NG_OK);
    for (size_t i = 0; i < GATEWAYS; i++) {
        struct call *call = harness_new_call(&bench.harness[i]);
        assert_int_equal(journal_flush(bench.harness[i].gateway->journal, call), NG_OK);
        call_unref(call);
        assert_int_equal(references(&bench.harness[i]), 31);
    }
    for (size_t i = 0; i < GATEWAYS; i++) {
        WAIT_FOR(journal_backlog(bench.harness[i].gateway->journal) == 0);
        assert_false(journal_degraded(bench.harness[i].gateway->journal));
    }
    bench_close(&bench);
}

/* ---- tasks ---- */

static bool make_task(struct mcp_task *task, struct call *call, void *user)
{
    (void)call;
    *task = *(const struct mcp_task *)user;
    return true;
}

static bool complete_task(struct mcp_task *task, struct call *call, void *user)
{
    (void)call;
    (void)user;
    task->status = MCP_TASK_COMPLETED;
    task->outcome = ng_str_of("{}");
    return true;
}

static const char task_owner[] = "someone\n";

/* A task that this gateway runs, as far as anybody can tell. */
static struct mcp_task_entry *begin_task_at(struct harness *harness, struct call *run,
                                            int64_t created_ms)
{
    struct mcp_tasks *tasks = mcp_tasks_of(harness->gateway);
    struct mcp_task_entry *entry = NULL;
    const char *error = NULL;
    struct ng_str owner = ng_str_of(task_owner);
    assert_int_equal(mcp_tasks_add(tasks, owner, MCP_TASK_TTL_MAX_MS, run, &entry, &error),
                     NG_OK);
    struct mcp_task task = {
        .id = ng_str_of(entry->id),
        .owner = owner,
        .tool = ng_str_of("tool"),
        .arguments = ng_str_of("{}"),
        .status = MCP_TASK_WORKING,
        .created_ms = created_ms,
        .ttl_ms = MCP_TASK_TTL_MAX_MS,
    };
    struct mcp_task_edit edit = {.fn = make_task, .user = &task, .creates = true};
    struct call *call = harness_new_call(harness);
    int rc = mcp_task_change(call, task.id, &edit);
    if (rc != NG_OK) {
        fail_msg("error %d: %.*s", rc, (int)call->staged.message.len,
                 call->staged.message.data);
    }
    call_unref(call);
    mcp_tasks_lock(tasks);
    entry->is_stored = true;
    mcp_tasks_unlock(tasks);
    return entry;
}

static struct mcp_task_entry *begin_task(struct harness *harness, struct call *run)
{
    return begin_task_at(harness, run, clock_unix_ms());
}

static enum mcp_task_status status_of(struct harness *harness, const char *id)
{
    struct mcp_task task;
    struct call *call = harness_new_call(harness);
    assert_int_equal(mcp_task_view(mcp_tasks_of(harness->gateway), call, ng_str_of(id),
                                   ng_str_of(task_owner), &task),
                     NG_OK);
    enum mcp_task_status status = task.status;
    call_unref(call);
    return status;
}

static void open_tasks(struct harness *harness)
{
    struct buf error;
    buf_init(&error, 4096);
    assert_int_equal(mcp_tasks_open(harness->gateway, &error), NG_OK);
    buf_done(&error);
}

/* Tasks of one gateway are visible at the others, left alone while it lives, and failed after
 * its death. */
static void test_tasks(void **state)
{
    struct cluster_bench bench;
    char first[MCP_TASK_ID_LEN + 1];
    char second[MCP_TASK_ID_LEN + 1];
    (void)state;
    bench_open(&bench);
    open_tasks(&bench.harness[1]);
    open_tasks(&bench.harness[2]);
    struct harness *owner = &bench.harness[2];
    struct call *runs[2] = {harness_new_call(owner), harness_new_call(owner)};
    memcpy(first, begin_task(owner, runs[0])->id, sizeof(first));
    memcpy(second, begin_task(owner, runs[1])->id, sizeof(second));
    assert_int_equal(status_of(&bench.harness[1], first), MCP_TASK_WORKING);
    open_tasks(&bench.harness[0]); /* a start fails nothing that runs elsewhere */
    assert_int_equal(status_of(&bench.harness[0], first), MCP_TASK_WORKING);
    assert_int_equal(status_of(&bench.harness[0], second), MCP_TASK_WORKING);
    struct mcp_task_edit edit = {.fn = complete_task};
    struct call *call = harness_new_call(owner);
    assert_int_equal(mcp_task_change(call, ng_str_of(first), &edit), NG_OK);
    call_unref(call);
    mcp_tasks_settle(mcp_tasks_of(owner->gateway), ng_str_of(first), runs[0],
                     MCP_TASK_COMPLETED, false);
    assert_int_equal(status_of(&bench.harness[0], first), MCP_TASK_COMPLETED);
    assert_int_equal(status_of(&bench.harness[1], second), MCP_TASK_WORKING);
    mcp_tasks_let_go(mcp_tasks_of(owner->gateway), ng_str_of(second));
    call_unref(runs[0]);
    call_unref(runs[1]);
    harness_close(owner);
    bench_shorten_leases(&bench);
    WAIT_FOR(status_of(&bench.harness[0], second) == MCP_TASK_FAILED);
    WAIT_FOR(status_of(&bench.harness[1], second) == MCP_TASK_FAILED);
    assert_int_equal(status_of(&bench.harness[1], first), MCP_TASK_COMPLETED);
    bench_open_one(owner);
    bench_close(&bench);
}

static void upkeep_tasks(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    struct gateway *gateway = harness->gateway;
    assert_int_equal(gateway->tasks.upkeep(mcp_tasks_of(gateway), call), NG_OK);
    call_unref(call);
}

static bool has_task(struct harness *harness, const char *id)
{
    struct mcp_tasks *tasks = mcp_tasks_of(harness->gateway);
    mcp_tasks_lock(tasks);
    bool has = mcp_tasks_find(tasks, ng_str_of(id), ng_str_of(task_owner)) != NULL;
    mcp_tasks_unlock(tasks);
    return has;
}

/* A task whose maker's clock is days slow has not expired at the others; when the maker removes
 * it, it is gone there, too. */
static void test_tasks_of_another_clock(void **state)
{
    struct cluster_bench bench;
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    bench_open(&bench);
    open_tasks(&bench.harness[0]);
    open_tasks(&bench.harness[2]);
    struct harness *owner = &bench.harness[2];
    struct call *run = harness_new_call(owner);
    int64_t slow_ms = clock_unix_ms() - 3 * MCP_TASK_TTL_MAX_MS;
    memcpy(id, begin_task_at(owner, run, slow_ms)->id, sizeof(id));
    WAIT_FOR(has_task(&bench.harness[0], id));
    open_tasks(&bench.harness[1]); /* a start finds it, and keeps it */
    for (size_t i = 0; i < 2; i++) {
        upkeep_tasks(&bench.harness[i]);
        assert_true(has_task(&bench.harness[i], id));
        assert_int_equal(status_of(&bench.harness[i], id), MCP_TASK_WORKING);
    }
    struct call *call = harness_new_call(owner);
    assert_int_equal(mcp_task_delete(call, ng_str_of(id)), NG_OK);
    call_unref(call);
    for (size_t i = 0; i < 2; i++) {
        WAIT_FOR(!has_task(&bench.harness[i], id));
    }
    mcp_tasks_let_go(mcp_tasks_of(owner->gateway), ng_str_of(id));
    call_unref(run);
    bench_close(&bench);
}

/* One that began and ended between two looks is listed everywhere. */
static void test_short_tasks_are_listed(void **state)
{
    struct cluster_bench bench;
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    bench_open(&bench);
    open_tasks(&bench.harness[0]);
    open_tasks(&bench.harness[1]);
    struct harness *owner = &bench.harness[1];
    struct call *run = harness_new_call(owner);
    memcpy(id, begin_task(owner, run)->id, sizeof(id));
    struct mcp_task_edit edit = {.fn = complete_task};
    struct call *call = harness_new_call(owner);
    assert_int_equal(mcp_task_change(call, ng_str_of(id), &edit), NG_OK);
    call_unref(call);
    mcp_tasks_settle(mcp_tasks_of(owner->gateway), ng_str_of(id), run, MCP_TASK_COMPLETED,
                     false);
    call = harness_new_call(&bench.harness[0]);
    struct mcp_tasks *tasks = mcp_tasks_of(bench.harness[0].gateway);
    struct ng_str other = ng_str_of("other\n");
    assert_int_equal(mcp_task_remote_find_owned(tasks, call, ng_str_of(task_owner)), NG_OK);
    assert_int_equal(mcp_task_remote_find_owned(tasks, call, other), NG_OK);
    call_unref(call);
    assert_true(has_task(&bench.harness[0], id));
    assert_int_equal(status_of(&bench.harness[0], id), MCP_TASK_COMPLETED);
    call_unref(run);
    bench_close(&bench);
}

/* ---- liveness ---- */

static size_t peers_of(struct harness *harness, const char *wanted, bool *ret_has)
{
    struct call *call = harness_new_call(harness);
    struct ng_str *ids = NULL;
    size_t count = 0;
    *ret_has = false;
    assert_int_equal(cluster_peers(harness->gateway->cluster, call, &ids, &count), NG_OK);
    for (size_t i = 0; i < count; i++) {
        *ret_has = *ret_has || str_is(ids[i], wanted);
    }
    call_unref(call);
    return count;
}

static void test_lives(void **state)
{
    struct cluster_bench bench;
    bool has = false;
    (void)state;
    bench_open(&bench);
    struct cluster *first = bench.harness[0].gateway->cluster;
    struct cluster *last = bench.harness[GATEWAYS - 1].gateway->cluster;
    char id[CLUSTER_ID_LEN + 1];
    struct ng_str text = cluster_id(last);
    assert_int_equal(text.len, CLUSTER_ID_LEN);
    assert_false(str_equal(text, cluster_id(first)));
    (void)snprintf(id, sizeof(id), "%.*s", (int)text.len, text.data);
    WAIT_FOR(cluster_has_lease(first));
    assert_true(cluster_is_alive(first, ng_str_of(id)));
    assert_true(cluster_is_alive(first, cluster_id(first)));
    /* A restarted gateway has its old id. */
    harness_reopen(&bench.harness[GATEWAYS - 1]);
    assert_true(str_is(cluster_id(bench.harness[GATEWAYS - 1].gateway->cluster), id));
    /* Only one that was seen alive can die. */
    WAIT_FOR(peers_of(&bench.harness[0], id, &has) > 0 && has);
    uint64_t deaths = cluster_deaths(first);
    harness_close(&bench.harness[GATEWAYS - 1]);
    bench_shorten_leases(&bench);
    struct ng_str living = cluster_id(bench.harness[1].gateway->cluster);
    WAIT_FOR(!cluster_is_alive(first, ng_str_of(id)) && cluster_is_alive(first, living));
    WAIT_FOR(cluster_deaths(first) > deaths);
    bench_open_one(&bench.harness[GATEWAYS - 1]);
    bench_close(&bench);
}

/* A gateway that announced itself is found at once, not at the next poll. */
static void test_peers(void **state)
{
    struct harness first;
    struct harness second;
    bool has = false;
    (void)state;
    hub_reset();
    bench_open_one(&first);
    WAIT_FOR(cluster_has_lease(first.gateway->cluster));
    assert_int_equal(peers_of(&first, "", &has), 0);
    bench_open_one(&second);
    struct call *call = harness_new_call(&second);
    assert_int_equal(cluster_announce(second.gateway->cluster, call), NG_OK);
    call_unref(call);
    struct ng_str id = cluster_id(second.gateway->cluster);
    assert_int_equal(peers_of(&first, id.data, &has), 1);
    assert_true(has);
    assert_int_equal(peers_of(&second, cluster_id(first.gateway->cluster).data, &has), 1);
    assert_true(has);
    hub_reset();
    harness_close(&second);
    harness_close(&first);
}

/* ---- processes and terms ---- */

static bool finds(struct harness *harness, const char *name)
{
    struct call *call = harness_new_call(harness);
    struct ng_str host;
    bool alive = false;
    assert_int_equal(
        cluster_find(harness->gateway->cluster, call, ng_str_of(name), &alive, &host), NG_OK);
    assert_true(!alive || host.len > 0);
    call_unref(call);
    return alive;
}

/* A gateway that started again is another process, whose work others may take over at once. */
static void test_processes(void **state)
{
    struct cluster_bench bench;
    char name[CLUSTER_NAME_SIZE];
    (void)state;
    bench_open(&bench);
    struct harness *first = &bench.harness[0];
    struct harness *last = &bench.harness[GATEWAYS - 1];
    struct ng_str text = cluster_name(last->gateway->cluster);
    (void)snprintf(name, sizeof(name), "%.*s", (int)text.len, text.data);
    WAIT_FOR(finds(first, name));
    assert_true(finds(last, name));
    assert_false(finds(first, ""));
    assert_false(finds(first, "0123456789abcdef01234567-89abcdef"));
    harness_reopen(last);
    WAIT_FOR(!finds(first, name));
    assert_false(finds(last, name));
    WAIT_FOR(finds(first, cluster_name(last->gateway->cluster).data));
    bench_close(&bench);
}

/* It has a new term after a time in which others may have given it up. */
static void test_terms(void **state)
{
    struct cluster_bench bench;
    (void)state;
    bench_open(&bench);
    const struct cluster *cluster = bench.harness[0].gateway->cluster;
    WAIT_FOR(cluster_term(cluster) != 0);
    uint64_t term = cluster_term(cluster);
    bench_shorten_leases(&bench);
    WAIT_FOR(cluster_term(cluster) != 0);
    uint64_t second = cluster_term(cluster);
    hub->away(true);
    WAIT_FOR(cluster_term(cluster) == 0);
    hub->away(false);
    WAIT_FOR(cluster_term(cluster) != 0);
    assert_true(second >= term && cluster_term(cluster) > second);
    assert_int_equal(cluster_term(NULL), 1);
    bench_close(&bench);
}

int main(void)
{
    hub = hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_revoked_at_once),
        cmocka_unit_test(test_start_while_away),
        cmocka_unit_test(test_feed),
        cmocka_unit_test(test_journal),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_tasks_of_another_clock),
        cmocka_unit_test(test_short_tasks_are_listed),
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
