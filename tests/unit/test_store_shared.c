/* SPDX-License-Identifier: MIT */
/* test_store_shared.c - several gateways that write to one database: what another was faster
 * with is made again, nothing is lost, nothing is done twice. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dispatch.h"
#include "hub.h"
#include "str.h"

#define GATEWAYS 3

#define NG_TEXT(text)                                                                          \
    {                                                                                          \
        (text), sizeof(text) - 1                                                               \
    }

static const struct hub_control *hub;

/* ---- a plugin that changes documents ---- */

static const struct ng_collection things[] = {{.name = "things"}};

static struct ng_key key_of(struct ng_str id)
{
    struct ng_key key = {NG_TEXT("things"), NG_TEXT("shared"), id};
    return key;
}

struct appending {
    struct ng_str text;
    bool looks, silent, fails;
};

/* Appends a line and replies with the whole of it. */
static int append(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                  void *user)
{
    const struct appending *appending = user;
    struct ng_str pieces[3] = {present->text, appending->text, NG_TEXT("\n")};
    if (appending->looks) {
        const struct ng_doc *doc = NULL;
        int rc = call->host->get(call, &present->key, 0, &doc);
        if (rc != NG_OK) {
            return rc;
        }
    }
    if (appending->fails && present->text.len > 0) {
        return call->host->fail_text(call, NG_EFAILED, ng_str_of("there is something already"));
    }
    int rc = call->host->draft_text(next, pieces, 3);
    if (rc != NG_OK || appending->silent) {
        return rc;
    }
    return ng_reply(call, call->host->format(call, "%llu:%.*s%.*s",
                                             (unsigned long long)present->revision + 1,
                                             (int)present->text.len, present->text.data,
                                             (int)appending->text.len, appending->text.data));
}

static int append_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct appending *appending = ng_alloc(call, sizeof(*appending));
    if (appending == NULL) {
        return NG_EINTERNAL;
    }
    appending->text = ng_arg_text(call, "text");
    appending->looks = ng_has_arg(call, "looks");
    appending->silent = ng_has_arg(call, "also") || ng_has_arg(call, "first");
    appending->fails = ng_has_arg(call, "fails");
    if (ng_has_arg(call, "first")) {
        (void)ng_reply(call, ng_str_of("said before"));
    }
    struct ng_change changes[2]; /* on the stack: they need not outlive the run */
    memset(changes, 0, sizeof(changes));
    size_t count = ng_has_arg(call, "also") ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        changes[i].size = sizeof(changes[i]);
        changes[i].key = key_of(ng_arg_text(call, i == 0 ? "id" : "also"));
        changes[i].fn = append;
        changes[i].user = appending;
        changes[i].has_expected = ng_has_arg(call, "expected");
        changes[i].expected_revision = (uint64_t)ng_arg_int(call, "expected", 0);
    }
    int rc = call->host->change(call, changes, count);
    memset(changes, 0xff, sizeof(changes));
    if (rc == NG_PENDING && ng_has_arg(call, "also")) {
        (void)ng_reply(call, ng_str_of("both"));
    }
    return rc;
}

static int read_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    const struct ng_doc *doc = NULL;
    struct ng_key key = key_of(ng_arg_text(call, "id"));
    int rc = call->host->get(call, &key, 0, &doc);
    rc = rc == NG_OK ? call->host->revision_number(call, doc->revision) : rc;
    return rc == NG_OK ? ng_reply(call, doc->text) : rc;
}

static const struct ng_tool tools[] = {
    {
        .name = "append",
        .summary = "Append a line.",
        .params = "{\"type\":\"object\"}",
        .run = append_run,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_MEMORY,
    },
    {
        .name = "read",
        .summary = "Read it.",
        .params = "{\"type\":\"object\"}",
        .run = read_run,
        .space = NG_SPACE_SHARED,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY,
    },
};

static const struct ng_plugin plugin_desc = {
    .name = "appender",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .collections = things,
    .collection_count = NG_COUNT(things),
};

static const struct ng_plugin serial_desc = {
    .name = "appender",
    .version = "1",
    .threads = NG_THREADS_SERIAL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .collections = things,
    .collection_count = NG_COUNT(things),
};

/* ---- gateways ---- */

struct cluster {
    struct harness harness[GATEWAYS];
};

static void cluster_open_as(struct cluster *cluster, const struct ng_plugin *desc,
                            const char *set)
{
    const char *sets[] = {"plugins=", "documents=" HUB_MODULE, set, NULL};
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        struct harness *harness = &cluster->harness[i];
        struct plugin *plugin = NULL;
        struct buf error;
        harness_open(harness, sets);
        buf_init(&error, 4096);
        assert_int_equal(registry_add(harness->gateway->registry, desc, NULL, &plugin, &error),
                         NG_OK);
        buf_done(&error);
        plugin->started = true;
        struct call *call = harness_new_call(harness);
        assert_int_equal(store_declare(harness->gateway->store, call, &things[0]), NG_OK);
        call_unref(call);
    }
}

static void cluster_open(struct cluster *cluster)
{
    cluster_open_as(cluster, &plugin_desc, NULL);
}

static void cluster_close(struct cluster *cluster)
{
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        harness_close(&cluster->harness[i]);
    }
}

static uint64_t expect_answer(struct cluster *cluster, size_t gateway, const char *tool,
                              const char *args, const char *text)
{
    struct answer answer = harness_call(&cluster->harness[gateway], tool, args);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s", answer.code, answer.message);
    }
    if (text != NULL) {
        assert_string_equal(answer.text, text);
    }
    uint64_t revision = answer.revision;
    answer_free(&answer);
    return revision;
}

/* ---- the other gateway, in front of a commit ---- */

static struct {
    struct cluster *cluster;
    atomic_int left; /* how many more times it is faster */
    atomic_bool busy;
    const char *args;
} rival;

static void rival_writes(void *user)
{
    (void)user;
    if (atomic_exchange(&rival.busy, true)) {
        return; /* its own */
    }
    if (atomic_fetch_sub(&rival.left, 1) > 0) {
        struct answer answer = harness_call(&rival.cluster->harness[1], "append", rival.args);
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
    }
    atomic_store(&rival.busy, false);
}

static void rival_comes(struct cluster *cluster, int times, const char *args)
{
    rival.cluster = cluster;
    rival.args = args;
    atomic_store(&rival.left, times);
    atomic_store(&rival.busy, false);
    hub->hook(rival_writes, NULL);
}

/* ---- cases ---- */

/* What the other gateway wrote is seen, and what was replied before is taken back. */
static void test_again(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"one\"}", "1:one");
    rival_comes(&cluster, 1, "{\"id\":\"a\",\"text\":\"theirs\"}");
    uint64_t revision = expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"two\"}",
                                      "3:one\ntheirs\ntwo");
    assert_int_equal(revision, 3);
    for (size_t i = 0; i < GATEWAYS; i++) {
        expect_answer(&cluster, i, "read", "{\"id\":\"a\"}", "one\ntheirs\ntwo\n");
    }
    /* It loses many times, and wins at last. */
    rival_comes(&cluster, 7, "{\"id\":\"a\",\"text\":\".\"}");
    revision = expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"three\"}", NULL);
    assert_int_equal(revision, 11);
    /* A reply of the run itself stays. */
    rival_comes(&cluster, 1, "{\"id\":\"a\",\"text\":\".\"}");
    revision = expect_answer(&cluster, 0, "append",
                             "{\"id\":\"a\",\"text\":\"four\",\"first\":1}", "said before");
    assert_int_equal(revision, 13);
    cluster_close(&cluster);
}

/* A function that reads its own document does not wait for itself. */
static void test_reads_inside(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    rival_comes(&cluster, 2, "{\"id\":\"a\",\"text\":\"theirs\"}");
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"x\",\"looks\":1}",
                  "3:theirs\ntheirs\nx");
    cluster_close(&cluster);
}

/* Who says what must be there is told what is there. */
static void test_expected(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"one\"}", NULL);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"two\",\"expected\":1}",
                  "2:one\ntwo");
    rival_comes(&cluster, 1, "{\"id\":\"a\",\"text\":\"theirs\"}");
    struct answer answer = harness_call(&cluster.harness[0], "append",
                                        "{\"id\":\"a\",\"text\":\"x\",\"expected\":2}");
    assert_string_equal(answer.code, "CONFLICT");
    assert_string_equal(answer.details, "{\"currentRevision\":3}");
    answer_free(&answer);
    /* Memory says 3, the other gateway made 4: that is what counts. */
    expect_answer(&cluster, 2, "append", "{\"id\":\"a\",\"text\":\"more\"}", NULL);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"last\",\"expected\":4}",
                  "5:one\ntwo\ntheirs\nmore\nlast");
    cluster_close(&cluster);
}

/* A function that fails on what memory has does not fail if it is otherwise by now. */
static void test_failing(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    rival_comes(&cluster, 1, "{\"id\":\"a\",\"text\":\"theirs\"}");
    struct answer answer = harness_call(&cluster.harness[0], "append",
                                        "{\"id\":\"a\",\"text\":\"x\",\"fails\":1}");
    assert_string_equal(answer.code, "TOOL_FAILED");
    assert_string_equal(answer.message, "there is something already");
    answer_free(&answer);
    expect_answer(&cluster, 0, "read", "{\"id\":\"a\"}", "theirs\n");
    cluster_close(&cluster);
}

static void test_several_documents(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    rival_comes(&cluster, 3, "{\"id\":\"b\",\"text\":\"theirs\"}");
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"also\":\"b\",\"text\":\"x\"}",
                  "both");
    expect_answer(&cluster, 2, "read", "{\"id\":\"a\"}", "x\n");
    expect_answer(&cluster, 2, "read", "{\"id\":\"b\"}", "theirs\ntheirs\ntheirs\nx\n");
    cluster_close(&cluster);
}

/* ---- crowds ---- */

struct agent {
    struct cluster *cluster;
    size_t number, gateway, writes;
    const char *documents; /* the members that name them */
};

static void *agent_run(void *user)
{
    const struct agent *agent = user;
    char args[256];
    for (size_t i = 0; i < agent->writes; i++) {
        (void)snprintf(args, sizeof(args), "{%s,\"text\":\"agent %zu line %zu\"}",
                       agent->documents, agent->number, i);
        struct answer answer =
            harness_call(&agent->cluster->harness[agent->gateway], "append", args);
        if (answer.rc != NG_OK) {
            fail_msg("%s: %s", answer.code, answer.message);
        }
        answer_free(&answer);
    }
    return NULL;
}

static void expect_lines(const char *text, size_t agents, size_t writes)
{
    size_t *next = calloc(agents, sizeof(*next));
    size_t lines = 0;
    assert_non_null(next);
    for (const char *at = text; *at != '\0'; at = strchr(at, '\n') + 1) {
        size_t agent = 0;
        size_t line = 0;
        assert_int_equal(sscanf(at, "agent %zu line %zu", &agent, &line), 2);
        assert_true(agent < agents);
        assert_int_equal(line, next[agent]++); /* each agent's own in order, once */
        lines++;
    }
    assert_int_equal(lines, agents * writes);
    free(next);
}

static int count_row(void *user, const struct ng_doc *row)
{
    uint64_t *next = user;
    assert_int_equal(row->revision, (*next)++);
    return 0;
}

static void expect_line_of_versions(struct cluster *cluster, const char *id, uint64_t count)
{
    struct call *call = harness_new_call(&cluster->harness[0]);
    struct ng_key key = key_of(ng_str_of(id));
    struct ng_range range = {.size = sizeof(range), .limit = 100000, .ascending = true};
    uint64_t next = 1;
    assert_int_equal(
        store_history(cluster->harness[0].gateway->store, call, &key, &range, count_row, &next),
        NG_OK);
    assert_int_equal(next, count + 1);
    call_unref(call);
}

static void run_crowd(struct cluster *cluster, size_t agents, size_t writes, size_t gateways,
                      const char *documents)
{
    pthread_t *threads = calloc(agents, sizeof(*threads));
    struct agent *work = calloc(agents, sizeof(*work));
    assert_true(threads != NULL && work != NULL);
    for (size_t i = 0; i < agents; i++) {
        work[i] = (struct agent){cluster, i, i % gateways, writes, documents};
        assert_int_equal(pthread_create(&threads[i], NULL, agent_run, &work[i]), 0);
    }
    for (size_t i = 0; i < agents; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
    free(work);
}

static void expect_crowd(struct cluster *cluster, const char *id, size_t agents, size_t writes)
{
    char args[64];
    (void)snprintf(args, sizeof(args), "{\"id\":\"%s\"}", id);
    for (size_t i = 0; i < GATEWAYS; i++) {
        struct answer answer = harness_call(&cluster->harness[i], "read", args);
        assert_int_equal(answer.rc, NG_OK);
        assert_int_equal(answer.revision, agents * writes);
        expect_lines(answer.text, agents, writes);
        answer_free(&answer);
    }
    expect_line_of_versions(cluster, id, agents * writes);
}

static void test_crowd(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    run_crowd(&cluster, 9, 40, GATEWAYS, "\"id\":\"a\"");
    expect_crowd(&cluster, "a", 9, 40);
    hub->delay(500);
    run_crowd(&cluster, 9, 25, GATEWAYS, "\"id\":\"b\"");
    expect_crowd(&cluster, "b", 9, 25);
    cluster_close(&cluster);
}

/* One gateway's agents write without a gap; the only agent of another gateway gets through. */
static void test_fair(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    hub->delay(1000);
    pthread_t threads[16];
    struct agent work[16];
    for (size_t i = 0; i < NG_COUNT(work); i++) {
        work[i] = (struct agent){&cluster, i, i == 0 ? 1 : 0, 40, "\"id\":\"a\""};
        assert_int_equal(pthread_create(&threads[i], NULL, agent_run, &work[i]), 0);
    }
    for (size_t i = 0; i < NG_COUNT(work); i++) {
        pthread_join(threads[i], NULL);
    }
    expect_crowd(&cluster, "a", NG_COUNT(work), 40);
    cluster_close(&cluster);
}

/* Changes of two documents as one, in both orders, and of each alone. */
static void test_crowd_of_two(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    hub->delay(200);
    pthread_t threads[9];
    struct agent work[9];
    static const char *const named[] = {
        "\"id\":\"a\",\"also\":\"b\"",
        "\"id\":\"b\",\"also\":\"a\"",
        "\"id\":\"a\"",
    };
    for (size_t i = 0; i < NG_COUNT(work); i++) {
        work[i] = (struct agent){&cluster, i, (i / 3) % GATEWAYS, 20, named[i % 3]};
        assert_int_equal(pthread_create(&threads[i], NULL, agent_run, &work[i]), 0);
    }
    for (size_t i = 0; i < NG_COUNT(work); i++) {
        pthread_join(threads[i], NULL);
    }
    expect_crowd(&cluster, "a", 9, 20);
    expect_line_of_versions(&cluster, "b", 120);
    cluster_close(&cluster);
}

/* A plugin that takes one call at a time is given its functions one at a time, too. */
static void test_serial(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open_as(&cluster, &serial_desc, NULL);
    run_crowd(&cluster, 6, 20, GATEWAYS, "\"id\":\"a\"");
    expect_crowd(&cluster, "a", 6, 20);
    cluster_close(&cluster);
}

/* What waits for one round trip goes with the next one, together. */
static void test_batches(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    hub->delay(20000);
    uint64_t trips = hub->trips();
    uint64_t commits = hub->commits();
    run_crowd(&cluster, 16, 5, 1, "\"id\":\"a\"");
    trips = hub->trips() - trips;
    commits = hub->commits() - commits;
    hub->delay(0);
    expect_crowd(&cluster, "a", 16, 5);
    assert_true(commits >= 80);
    assert_true(trips * 2 < commits);
    cluster_close(&cluster);
}

/* ---- ends ---- */

/* Another gateway is always faster: there is an end to it, and it is told. */
static void test_never(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open_as(&cluster, &plugin_desc, "limits.call_timeout=500ms");
    rival_comes(&cluster, INT32_MAX, "{\"id\":\"a\",\"text\":\".\"}");
    struct answer answer =
        harness_call(&cluster.harness[0], "append", "{\"id\":\"a\",\"text\":\"x\"}");
    assert_true(strcmp(answer.code, "TIMEOUT") == 0 || strcmp(answer.code, "BUSY") == 0);
    answer_free(&answer);
    assert_true(gateway_drain(cluster.harness[0].gateway, 30000));
    hub_reset();
    answer = harness_call(&cluster.harness[1], "read", "{\"id\":\"a\"}");
    assert_null(strchr(answer.text, 'x'));
    answer_free(&answer);
    cluster_close(&cluster);
}

/* The database is away: said at once, also to those that wait behind, and over when it is back.
 */
static void test_away(void **state)
{
    struct cluster cluster;
    (void)state;
    cluster_open(&cluster);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"one\"}", NULL);
    hub->away(true);
    static const char *const calls[] = {"append", "read"};
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        struct answer answer =
            harness_call(&cluster.harness[i], calls[i], "{\"id\":\"a\",\"text\":\"x\"}");
        assert_string_equal(answer.code, "BACKEND_UNAVAILABLE");
        assert_int_equal(answer.status, 503);
        answer_free(&answer);
    }
    hub->away(false);
    expect_answer(&cluster, 0, "append", "{\"id\":\"a\",\"text\":\"two\"}", "2:one\ntwo");
    cluster_close(&cluster);
}

/* ---- idempotency keys ---- */

struct repeat {
    struct cluster *cluster;
    size_t gateway;
    const char *args;
    struct call *call;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void repeat_done(struct call *call, void *user)
{
    struct repeat *repeat = user;
    (void)call;
    pthread_mutex_lock(&repeat->lock);
    repeat->done = true;
    pthread_cond_signal(&repeat->wake);
    pthread_mutex_unlock(&repeat->lock);
}

static void repeat_start(struct repeat *repeat, struct cluster *cluster, size_t gateway,
                         const char *args)
{
    memset(repeat, 0, sizeof(*repeat));
    pthread_mutex_init(&repeat->lock, NULL);
    pthread_cond_init(&repeat->wake, NULL);
    repeat->call = harness_new_call(&cluster->harness[gateway]);
    repeat->call->tool_name = ng_str_of("append");
    repeat->call->args_text = ng_str_of(args);
    repeat->call->idempotency_key = ng_str_of("the key");
    repeat->call->done = repeat_done;
    repeat->call->done_user = repeat;
    if (dispatch(repeat->call) == NG_OK) {
        repeat_done(repeat->call, repeat);
    }
}

static const struct result *repeat_end(struct repeat *repeat)
{
    pthread_mutex_lock(&repeat->lock);
    while (!repeat->done) {
        pthread_cond_wait(&repeat->wake, &repeat->lock);
    }
    pthread_mutex_unlock(&repeat->lock);
    return &repeat->call->result;
}

static void repeat_free(struct repeat *repeat)
{
    call_unref(repeat->call);
    pthread_mutex_destroy(&repeat->lock);
    pthread_cond_destroy(&repeat->wake);
}

static void test_idempotency(void **state)
{
    static const char args[] = "{\"id\":\"a\",\"text\":\"x\"}";
    struct cluster cluster;
    struct repeat repeats[GATEWAYS * 2];
    (void)state;
    cluster_open(&cluster);
    hub->delay(20000); /* so that all are under way together */
    for (size_t i = 0; i < NG_COUNT(repeats); i++) {
        repeat_start(&repeats[i], &cluster, i % GATEWAYS, args);
    }
    for (size_t i = 0; i < NG_COUNT(repeats); i++) {
        const struct result *result = repeat_end(&repeats[i]);
        assert_int_equal(result->rc, NG_OK);
        assert_true(str_is(result->text, "1:x"));
        assert_int_equal(result->revision_number, 1);
        repeat_free(&repeats[i]);
    }
    hub->delay(0);
    assert_int_equal(expect_answer(&cluster, 1, "read", "{\"id\":\"a\"}", "x\n"), 1);
    repeat_start(&repeats[0], &cluster, 2, "{\"id\":\"a\",\"text\":\"y\"}");
    assert_string_equal(repeat_end(&repeats[0])->code, "IDEMPOTENCY_KEY_REUSED");
    repeat_free(&repeats[0]);
    cluster_close(&cluster);
}

/* What waited behind a repeat that was refused is made all the same. */
static void test_behind_a_repeat(void **state)
{
    static const char args[] = "{\"id\":\"a\",\"text\":\"x\"}";
    struct cluster cluster;
    struct repeat repeats[2];
    (void)state;
    cluster_open(&cluster);
    hub->delay(20000);
    for (size_t round = 0; round < 5; round++) {
        for (size_t i = 0; i < 2; i++) {
            repeat_start(&repeats[i], &cluster, i, args);
        }
        run_crowd(&cluster, 6, 1, 2, "\"id\":\"a\"");
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(repeat_end(&repeats[i])->rc, NG_OK);
            repeat_free(&repeats[i]);
        }
    }
    hub->delay(0);
    assert_int_equal(expect_answer(&cluster, 2, "read", "{\"id\":\"a\"}", NULL), 31);
    cluster_close(&cluster);
}

int main(void)
{
    hub = hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_reads_inside),
        cmocka_unit_test(test_expected),
        cmocka_unit_test(test_failing),
        cmocka_unit_test(test_several_documents),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_fair),
        cmocka_unit_test(test_crowd_of_two),
        cmocka_unit_test(test_serial),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_away),
        cmocka_unit_test(test_idempotency),
        cmocka_unit_test(test_behind_a_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
