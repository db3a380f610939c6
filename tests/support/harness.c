/* SPDX-License-Identifier: MIT */
/* harness.c - a whole gateway inside a test program. */
#include "harness.h"
#include "core/config/config.h"
#include "core/dispatch/dispatch.h"
#include "core/gateway/gateway_open.h"
#include "core/module/loader.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HARNESS_SETS_MAX 64
#define HARNESS_SHARED_MAX 8

const char *harness_tmp(void)
{
    const char *dir = getenv("TMPDIR");
    return dir != NULL ? dir : "/tmp";
}

/* NOTEGATE_TEST_SHARED=1: on MongoDB and Redis, of which each gateway has a database and a
 * prefix of its own. They stay when it is opened again. */
struct shared_sets {
    char mongo_uri[320], database[128], redis_uri[320], prefix[128];
};

static const char *harness_server(const char *variable)
{
    const char *uri = getenv(variable);
    if (uri == NULL) {
        printf("skipped: %s is not set\n", variable);
        exit(77);
    }
    return uri;
}

static size_t harness_shared(const struct harness *harness, struct shared_sets *shared,
                             const char **sets)
{
    const char *name = strrchr(harness->dir, '/') + 1;
    size_t count = 0;
    if (getenv("NOTEGATE_TEST_SHARED") == NULL) {
        return 0;
    }
    (void)snprintf(shared->mongo_uri, sizeof(shared->mongo_uri), "mongo.uri=%s",
                   harness_server("NOTEGATE_TEST_MONGO_URI"));
    (void)snprintf(shared->database, sizeof(shared->database), "mongo.database=%s", name);
    (void)snprintf(shared->redis_uri, sizeof(shared->redis_uri), "redis.uri=%s",
                   harness_server("NOTEGATE_TEST_REDIS_URI"));
    (void)snprintf(shared->prefix, sizeof(shared->prefix), "redis.prefix=%s", name);
    sets[count++] = "documents=mongo";
    sets[count++] = shared->mongo_uri;
    sets[count++] = shared->database;
    sets[count++] = "mongo.timeout=60s";
    sets[count++] = "journal=redis";
    sets[count++] = shared->redis_uri;
    sets[count++] = shared->prefix;
    sets[count++] = "redis.timeout=60s"; /* the servers wait for a busy disk */
    return count;
}

static void harness_start(struct harness *harness)
{
    const char *sets[HARNESS_SETS_MAX];
    char data_dir[320];
    struct shared_sets shared;
    size_t count = 0;
    (void)snprintf(data_dir, sizeof(data_dir), "data_dir=%s", harness->dir);
    sets[count++] = data_dir;
    for (size_t i = 0; harness->sets != NULL && harness->sets[i] != NULL; i++) {
        assert_true(count < HARNESS_SETS_MAX);
        sets[count++] = harness->sets[i];
    }
    assert_true(count + HARNESS_SHARED_MAX <= HARNESS_SETS_MAX);
    count += harness_shared(harness, &shared, sets + count); /* the last one counts */
    struct config_input input = {.no_file = true, .sets = sets, .set_count = count};
    struct config *config = NULL;
    struct buf error;
    buf_init(&error, 65536);
    setenv("NOTEGATE_TEST_MODULES", NOTEGATE_MODULES, 0);
    if (config_load(&input, &config, &error) != NG_OK ||
        gateway_open(config, GATEWAY_FULL, 5000, &harness->gateway, &error) != NG_OK) {
        fail_msg("the gateway did not open: %s", buf_cstr(&error));
    }
    buf_done(&error);
}

void harness_open(struct harness *harness, const char *const *sets)
{
    memset(harness, 0, sizeof(*harness));
    (void)snprintf(harness->dir, sizeof(harness->dir), "%s/notegate-test-XXXXXX",
                   harness_tmp());
    assert_non_null(mkdtemp(harness->dir));
    size_t count = 0;
    while (sets != NULL && sets[count] != NULL) {
        count++;
    }
    harness->sets = calloc(count + 1, sizeof(*harness->sets));
    assert_non_null(harness->sets);
    for (size_t i = 0; i < count; i++) {
        harness->sets[i] = sets[i];
    }
    harness_start(harness);
}

static void harness_stop(struct harness *harness)
{
    assert_true(gateway_drain(harness->gateway, 30000));
    gateway_close(harness->gateway);
    harness->gateway = NULL;
}

void harness_reopen(struct harness *harness)
{
    harness_stop(harness);
    harness_start(harness);
}

struct ng_documents *harness_documents(struct harness *harness)
{
    const struct gateway *gateway = harness->gateway;
    struct ng_documents *found = NULL;
    for (size_t i = 0; i < gateway->module_count; i++) {
        if (gateway->modules[i]->kind == NG_KIND_DOCUMENTS) {
            found = &gateway->modules[i]->desc.documents;
        }
    }
    assert_non_null(found);
    return found;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

void harness_close(struct harness *harness)
{
    if (harness->gateway != NULL) {
        harness_stop(harness);
    }
    (void)nftw(harness->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(harness->sets);
    harness->sets = NULL;
}

/* ---- calls ---- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void waiter_done(struct call *call, void *user)
{
    struct waiter *waiter = user;
    (void)call;
    pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    pthread_cond_signal(&waiter->wake);
    pthread_mutex_unlock(&waiter->lock);
}

static char *copy_of(struct ng_str text)
{
    char *copy = malloc(text.len + 1);
    assert_non_null(copy);
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

struct call *harness_new_call(struct harness *harness)
{
    struct call *call = call_new(harness->gateway);
    assert_non_null(call);
    call->caller.space = ng_str_of("shared");
    static const struct ng_str shared = {"shared", 6};
    call->caller.spaces = &shared;
    call->caller.space_count = 1;
    call->caller.all_spaces = true;
    return call;
}

struct answer harness_run(struct call *call, const char *tool, const char *args)
{
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    call->tool_name = ng_str_of(tool);
    call->args_text = ng_str_of(args);
    call->done = waiter_done;
    call->done_user = &waiter;
    if (dispatch(call) == NG_PENDING) {
        pthread_mutex_lock(&waiter.lock);
        while (!waiter.done) {
            pthread_cond_wait(&waiter.wake, &waiter.lock);
        }
        pthread_mutex_unlock(&waiter.lock);
    }
    const struct result *result = &call->final;
    struct buf meta;
    buf_init(&meta, CALL_MEMORY_MAX);
    call_print_meta(result, &meta);
    struct answer answer = {
        .rc = result->rc,
        .code = copy_of(ng_str_of(result->code)),
        .status = result->status,
        .message = copy_of(result->message),
        .hint = copy_of(result->hint),
        .has_hint = result->hint.data != NULL,
        .details = copy_of(result->details),
        .text = copy_of(result->text),
        .text_len = result->text.len,
        .is_json = result->is_json,
        .revision = result->revision_kind == REVISION_NUMBER ? result->revision_number : 0,
        .revision_text = copy_of(result->revision_text),
        .meta = copy_of(buf_str(&meta)),
    };
    buf_done(&meta);
    call_unref(call);
    pthread_mutex_destroy(&waiter.lock);
    pthread_cond_destroy(&waiter.wake);
    return answer;
}

struct answer harness_call_as(struct harness *harness, const char *agent, const char *space,
                              const char *tool, const char *args)
{
    struct call *call = call_new(harness->gateway);
    assert_non_null(call);
    (void)call_set_caller(call, ng_str_of(agent), ng_str_of(space), NG_ROLE_ADMIN,
                          NG_MODE_AGENT, true);
    call->caller.session = ng_str_of(harness->session);
    return harness_run(call, tool, args);
}

struct answer harness_call(struct harness *harness, const char *tool, const char *args)
{
    return harness_call_as(harness, NULL, NULL, tool, args);
}

void answer_free(struct answer *answer)
{
    free(answer->code);
    free(answer->message);
    free(answer->hint);
    free(answer->details);
    free(answer->text);
    free(answer->revision_text);
    free(answer->meta);
    memset(answer, 0, sizeof(*answer));
}

void expect_text(struct harness *harness, const char *tool, const char *args, const char *text)
{
    struct answer answer = harness_call(harness, tool, args);
    if (answer.rc != NG_OK) {
        fail_msg("%s %s failed: %s %s", tool, args, answer.code, answer.message);
    }
    assert_string_equal(answer.text, text);
    answer_free(&answer);
}

void expect_error(struct harness *harness, const char *tool, const char *args, const char *code,
                  const char *message)
{
    struct answer answer = harness_call(harness, tool, args);
    if (answer.rc == NG_OK) {
        fail_msg("%s %s succeeded: %s", tool, args, answer.text);
    }
    assert_string_equal(answer.code, code);
    assert_string_equal(answer.message, message);
    answer_free(&answer);
}

int harness_deliver(const struct ng_journal *journal, void *db, struct call *call,
                    const struct ng_entry *entries, size_t count)
{
    const struct ng_entry **list = calloc(count + 1, sizeof(*list));
    assert_non_null(list);
    for (size_t i = 0; i < count; i++) {
        list[i] = &entries[i];
    }
    int rc = journal->deliver(db, &call->pub, list, count);
    free(list);
    return rc;
}
