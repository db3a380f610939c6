/* SPDX-License-Identifier: MIT */
/* test_store_shared_rig.c - shared code of test_store_shared*.c; see the header.
 */
#include "test_store_shared_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/module/registry.h"

#define NG_TEXT(text)                                                                          \
    {                                                                                          \
        (text), sizeof(text) - 1                                                               \
    }

const struct hub_control *hub;

/* ---- a plugin that changes documents ---- */

static const struct ng_collection things[] = {{.name = "things"}};

struct ng_key key_of(struct ng_str id)
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
    int rc = ng_has_arg(call, "wait") ? call->host->change_wait(call, changes, count)
                                      : call->host->change(call, changes, count);
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

const struct ng_plugin plugin_desc = {
    .name = "appender",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .collections = things,
    .collection_count = NG_COUNT(things),
};

const struct ng_plugin serial_desc = {
    .name = "appender",
    .version = "1",
    .threads = NG_THREADS_SERIAL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .collections = things,
    .collection_count = NG_COUNT(things),
};

/* ---- gateways ---- */

void gateways_open_as(struct cluster *cluster, const struct ng_plugin *desc, const char *set)
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

void gateways_open(struct cluster *cluster)
{
    gateways_open_as(cluster, &plugin_desc, NULL);
}

void gateways_close(struct cluster *cluster)
{
    hub_reset();
    for (size_t i = 0; i < GATEWAYS; i++) {
        harness_close(&cluster->harness[i]);
    }
}

/* ---- crowds ---- */

void *agent_run(void *user)
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

void run_crowd(struct cluster *cluster, size_t agents, size_t writes, size_t gateways,
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
