/* SPDX-License-Identifier: MIT */
/* test_mcp_forward.c - sessions in a database that gateways share: looking them up, their
 * documents, and streams of other gateways. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/serve/mcp_methods.h"
#include "api/session/mcp_session_store.h"
#include "api/transport/mcp_find.h"
#include "api/transport/mcp_forward_state.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/call/key.h"
#include "hub.h"

#define WORKERS "2"
#define QUEUE 64
#define QUEUE_TEXT "64"
#define DELAY_US 20000
/* Lookups that a key with a rate of one in many minutes has at once. */
#define BURST_MAX 8

struct fixture {
    struct harness harness;
    struct mcp_http *mcp;
    struct key keys[2]; /* calls have them until the gateway is closed */
};

static struct fixture fixture;

static void key_init(struct key *key)
{
    memset(key, 0, sizeof(*key));
    atomic_init(&key->refs, 1);
    lock_init(&key->lock, LOCK_KEY);
}

static int set_up(void **state)
{
    static const char *const sets[] = {"plugins=",
                                       "documents=" HUB_MODULE,
                                       "cluster.advertise=http://127.0.0.1:9",
                                       "limits.workers=" WORKERS,
                                       "limits.queue=" QUEUE_TEXT,
                                       NULL};
    struct buf error;
    (void)state;
    hub_reset();
    memset(&fixture, 0, sizeof(fixture));
    for (size_t i = 0; i < NG_COUNT(fixture.keys); i++) {
        key_init(&fixture.keys[i]);
    }
    harness_open(&fixture.harness, sets);
    buf_init(&error, 4096);
    assert_int_equal(mcp_http_new(fixture.harness.gateway, mcp_methods_all(), &fixture.mcp),
                     NG_OK);
    assert_int_equal(mcp_http_share(fixture.mcp, &error), NG_OK);
    assert_non_null(fixture.mcp->forwards);
    buf_done(&error);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hub_reset();
    mcp_http_cancel_all(fixture.mcp);
    mcp_http_free(fixture.mcp);
    harness_close(&fixture.harness);
    for (size_t i = 0; i < NG_COUNT(fixture.keys); i++) {
        lock_done(&fixture.keys[i].lock);
    }
    return 0;
}

static struct auth_caller caller_of(const char *agent, struct key *key)
{
    struct auth_caller caller = {
        .agent = ng_str_of(agent), .role = NG_ROLE_ADMIN, .mode = NG_MODE_AGENT, .key = key};
    return caller;
}

/* ---- looking up ---- */

struct lookups {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t begun, ended;
    size_t places[MCP_PLACE_REFUSED + 1];
    char message[256];
};

static void found(const struct mcp_found *found, void *user)
{
    struct lookups *lookups = user;
    pthread_mutex_lock(&lookups->lock);
    lookups->places[found->place]++;
    lookups->ended++;
    if (found->place == MCP_PLACE_REFUSED) {
        (void)snprintf(lookups->message, sizeof(lookups->message), "%.*s",
                       (int)found->message.len, found->message.data);
        assert_true(found->retry_after_s > 0);
    }
    pthread_cond_signal(&lookups->changed);
    pthread_mutex_unlock(&lookups->lock);
}

/* Of a session that nobody has, each time another one. */
static void look_up(struct lookups *lookups, const struct auth_caller *caller, bool is_counted)
{
    char id[MCP_SESSION_ID_LEN + 1];
    (void)snprintf(id, sizeof(id), "%064zx", lookups->begun++);
    struct mcp_asked asked = {.id = ng_str_of(id), .caller = caller, .is_counted = is_counted};
    mcp_find(fixture.mcp, &asked, found, lookups);
}

static void lookups_wait(struct lookups *lookups)
{
    pthread_mutex_lock(&lookups->lock);
    while (lookups->ended < lookups->begun) {
        pthread_cond_wait(&lookups->changed, &lookups->lock);
    }
    pthread_mutex_unlock(&lookups->lock);
}

#define LOOKUPS                                                                                \
    {                                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                 \
    }

static void test_lookups_count_in_the_rate(void **state)
{
    struct lookups lookups = LOOKUPS;
    struct key *key = &fixture.keys[0];
    struct auth_caller caller = caller_of("ada", key);
    (void)state;
    key->rate = 1.0 / 600;
    for (size_t i = 0; i < BURST_MAX; i++) {
        look_up(&lookups, &caller, false);
        lookups_wait(&lookups);
    }
    assert_int_equal(lookups.places[MCP_PLACE_NONE] + lookups.places[MCP_PLACE_REFUSED],
                     BURST_MAX);
    assert_true(lookups.places[MCP_PLACE_REFUSED] > 0);
    assert_non_null(strstr(lookups.message, "the caller's key allows"));
    size_t none = lookups.places[MCP_PLACE_NONE];
    look_up(&lookups, &caller, true); /* another gateway has counted it */
    lookups_wait(&lookups);
    assert_int_equal(lookups.places[MCP_PLACE_NONE], none + 1);
}

/* The lookups of one agent fill its own lane. */
static void test_lookups_of_another_agent(void **state)
{
    struct lookups many = LOOKUPS;
    struct lookups one = LOOKUPS;
    struct auth_caller ada = caller_of("ada", &fixture.keys[0]);
    struct auth_caller ben = caller_of("ben", &fixture.keys[1]);
    (void)state;
    hub_load()->delay(DELAY_US);
    for (size_t i = 0; i < 2 * (size_t)QUEUE; i++) {
        look_up(&many, &ada, false);
    }
    look_up(&one, &ben, false);
    lookups_wait(&one);
    assert_int_equal(one.places[MCP_PLACE_NONE], 1);
    hub_load()->delay(0);
    lookups_wait(&many);
    assert_true(many.places[MCP_PLACE_UNKNOWN] > 0);
}

/* ---- documents ---- */

static struct mcp_session *open_stored(void)
{
    struct mcp_session *session = NULL;
    struct call *call = harness_new_call(&fixture.harness);
    assert_int_equal(mcp_sessions_open(fixture.mcp->sessions, ng_str_of("ada k"), NULL,
                                       MCP_2025_11_25, true, &session),
                     NG_OK);
    struct mcp_session_edit edit = {.kind = MCP_SESSION_CREATE,
                                    .record = {.id = ng_str_of(session->id),
                                               .owner = ng_str_of(session->owner),
                                               .version = MCP_2025_11_25}};
    assert_int_equal(mcp_session_edit(call, &edit), NG_OK);
    call_unref(call);
    return session;
}

/* ret: may be NULL. */
static bool is_stored(const char *id, struct mcp_session_edit *ret)
{
    struct mcp_session_record record;
    struct call *call = harness_new_call(&fixture.harness);
    int rc = mcp_session_load(call, ng_str_of(id), &record);
    assert_true(rc == NG_OK || rc == NG_ENOTFOUND);
    if (rc == NG_OK && ret != NULL) {
        *ret = (struct mcp_session_edit){.kind = MCP_SESSION_TAKE, .record = record};
        ret->record.id = ng_str_of(id);
        ret->record.token = STR_NONE;
    }
    call_unref(call);
    return rc == NG_OK;
}

static void edit(struct mcp_session_edit *edit)
{
    struct call *call = harness_new_call(&fixture.harness);
    assert_int_equal(mcp_session_edit(call, edit), NG_OK);
    call_unref(call);
}

/* The end of a session here says nothing about the same session when it was taken again. */
static void test_only_what_ended_is_forgotten(void **state)
{
    (void)state;
    struct mcp_session *session = open_stored();
    struct mcp_session_edit taken;
    struct mcp_session_edit forget = {.kind = MCP_SESSION_FORGET,
                                      .record = {.id = ng_str_of(session->id)}};
    assert_true(is_stored(session->id, &taken));
    edit(&taken);
    assert_int_equal(taken.record.moves, 1);
    edit(&forget);
    assert_true(is_stored(session->id, NULL));
    forget.record.moves = 1;
    edit(&forget);
    assert_false(is_stored(session->id, NULL));
    mcp_session_unref(session);
}

static void sweep(struct mcp_session_orphans **known)
{
    struct call *call = harness_new_call(&fixture.harness);
    assert_int_equal(mcp_session_sweep_stored(call, fixture.mcp->sessions, known), NG_OK);
    call_unref(call);
}

/* Its end here could not be stored: it must not come back, nor stay for ever. */
static void test_sessions_that_ended_unseen(void **state)
{
    struct mcp_session_orphans *known = NULL;
    (void)state;
    struct mcp_session *lives = open_stored();
    struct mcp_session *ended = open_stored();
    mcp_sessions_let_go_of(fixture.mcp->sessions, ended);
    sweep(&known);
    assert_true(is_stored(ended->id, NULL)); /* its client may just be coming */
    sweep(&known);
    assert_false(is_stored(ended->id, NULL));
    assert_true(is_stored(lives->id, NULL));
    mcp_session_orphans_free(known);
    mcp_session_unref(lives);
    mcp_session_unref(ended);
}

/* ---- streams of other gateways ---- */

static void test_a_silent_stream(void **state)
{
    int64_t now_ms = clock_monotonic_ns() / 1000000;
    (void)state;
    struct forward *forward = mcp_forward_new(fixture.mcp);
    assert_non_null(forward);
    struct ng_str own = cluster_id(fixture.harness.gateway->cluster); /* it is alive */
    memcpy(forward->target, own.data, own.len);
    forward->phase = FORWARD_STREAM;
    forward->heard_ms = now_ms - HTTP_STREAM_KEEPALIVE_MS; /* as between two comments */
    assert_false(mcp_forward_is_lost(&forward->exchange));
    forward->heard_ms = now_ms - FORWARD_SILENCE_MS - 1;
    forward->phase = FORWARD_BODY; /* a call may take its time */
    assert_false(mcp_forward_is_lost(&forward->exchange));
    forward->phase = FORWARD_STREAM;
    assert_true(mcp_forward_is_lost(&forward->exchange));
    forward->paused = true; /* the client does not read */
    assert_false(mcp_forward_is_lost(&forward->exchange));
    forward->paused = false;
    assert_false(mcp_forward_is_lost(&forward->exchange));
    call_unref(forward->call);
}

int main(void)
{
    (void)hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lookups_count_in_the_rate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lookups_of_another_agent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_what_ended_is_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sessions_that_ended_unseen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_silent_stream, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
