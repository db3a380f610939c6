/* SPDX-License-Identifier: MIT */
/* test_dispatch_rig.c - the tools of the probe; starts calls and waits for them. */
#include "test_dispatch_rig.h"

#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "core/keys/keys.h"
#include "core/store/store.h"

struct probe probe = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static void probe_reset(void)
{
    pthread_mutex_lock(&probe.lock);
    probe.open = false;
    probe.blocked = 0;
    probe.runs = 0;
    probe.in_serial = 0;
    probe.most_serial = 0;
    probe.steps = 0;
    probe.ended = 0;
    probe.space[0] = '\0';
    probe.deferred = NULL;
    pthread_mutex_unlock(&probe.lock);
}

void probe_add(unsigned *number, unsigned more)
{
    pthread_mutex_lock(&probe.lock);
    *number += more;
    pthread_cond_broadcast(&probe.moved);
    pthread_mutex_unlock(&probe.lock);
}

unsigned probe_read(const unsigned *number)
{
    pthread_mutex_lock(&probe.lock);
    unsigned value = *number;
    pthread_mutex_unlock(&probe.lock);
    return value;
}

void probe_open(void)
{
    pthread_mutex_lock(&probe.lock);
    probe.open = true;
    pthread_cond_broadcast(&probe.moved);
    pthread_mutex_unlock(&probe.lock);
}

void probe_wait(const unsigned *number, unsigned least)
{
    pthread_mutex_lock(&probe.lock);
    while (*number < least) {
        pthread_cond_wait(&probe.moved, &probe.lock);
    }
    pthread_mutex_unlock(&probe.lock);
}

/* ---- the plugin ---- */

static int echo_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    probe_add(&probe.runs, 1);
    return ng_reply(call, args);
}

static void wait_for_open(void)
{
    pthread_mutex_lock(&probe.lock);
    probe.blocked++;
    pthread_cond_broadcast(&probe.moved);
    while (!probe.open) {
        pthread_cond_wait(&probe.moved, &probe.lock);
    }
    probe.blocked--;
    pthread_mutex_unlock(&probe.lock);
}

static int block_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    probe_add(&probe.runs, 1);
    wait_for_open();
    return ng_reply(call, args);
}

/* Ends as soon as it hears that it should. */
static int obey_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    while (!call->host->cancelled(call)) {
    }
    return ng_reply(call, args);
}

static int append_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    const struct ng_str *add = user;
    struct ng_str pieces[2] = {present->text, *add};
    return call->host->draft_text(next, pieces, 2);
}

static int append(struct ng_call *call, const char *id, struct ng_str text)
{
    struct ng_str *add = ng_alloc(call, sizeof(*add));
    if (add == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    *add = text;
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("probe_docs"), ng_str_of("shared"), ng_str_of(id)},
        .fn = append_fn,
        .user = add,
    };
    return ng_change_one(call, &change);
}

static int write_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    probe_add(&probe.runs, 1);
    int rc = ng_reply(call, ng_str_of("written"));
    return rc != NG_OK ? rc : append(call, "one", ng_arg_text(call, "text"));
}

/* Its first read finds nothing, and it continues. */
static int handled_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    struct ng_key key = {ng_str_of("probe_docs"), ng_str_of("shared"), ng_str_of("handled")};
    const struct ng_doc *doc = NULL;
    if (call->host->get(call, &key, 99, &doc) != NG_ENOTFOUND) {
        return ng_fail(call, NG_EFAILED, "revision 99 is there");
    }
    int rc = ng_reply(call, ng_str_of("handled"));
    return rc != NG_OK ? rc : append(call, "handled", args);
}

static int twice_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    probe_add(&probe.runs, 1);
    int rc = ng_reply(call, ng_str_of("twice"));
    if (rc == NG_OK) {
        rc = append(call, "two", ng_str_of("a"));
    }
    return rc < 0 ? rc : append(call, "two", ng_str_of("b"));
}

static int parts_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    probe_add(&probe.runs, 1);
    return call->host->reply_media(call, "image", "image/png", args);
}

static int defer_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    int rc = ng_reply(call, args);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_deferred *deferred = call->host->defer(call);
    pthread_mutex_lock(&probe.lock);
    probe.deferred = deferred;
    pthread_mutex_unlock(&probe.lock);
    probe_add(&probe.steps, 1);
    return NG_PENDING;
}

static int last_step(struct ng_call *call, void *user)
{
    (void)user;
    probe_add(&probe.steps, 1);
    return call->host->may_block(call) ? ng_reply(call, ng_str_of("stepped"))
                                       : ng_fail(call, NG_EFAILED, "not on a worker");
}

static int first_step(struct ng_call *call, void *user)
{
    probe_add(&probe.steps, 1);
    return call->host->continue_on_worker(call, last_step, user);
}

static int step_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return call->host->continue_on_worker(call, first_step, NULL);
}

static void background_ended(void *user, int rc, struct ng_str message)
{
    bool good = user == &probe && rc == NG_OK && message.len == 0;
    probe_add(&probe.ended, good ? 1 : 0);
}

int background_step(struct ng_call *call, void *user)
{
    (void)user;
    assert_int_equal(call->host->on_complete(call, background_ended, &probe), NG_OK);
    pthread_mutex_lock(&probe.lock);
    (void)snprintf(probe.space, sizeof(probe.space), "%.*s %.*s", (int)call->caller->agent.len,
                   call->caller->agent.data, (int)call->caller->space.len,
                   call->caller->space.data);
    (void)snprintf(probe.run, sizeof(probe.run), "%.*s", (int)call->caller->run_id.len,
                   call->caller->run_id.data);
    pthread_mutex_unlock(&probe.lock);
    probe_add(&probe.steps, 1);
    return NG_OK;
}

static int background_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    int rc = call->host->background(call, background_step, NULL);
    return rc == NG_OK ? ng_reply(call, args) : rc;
}

static int ask_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    if (memmem(args.data, args.len, "nothing", strlen("nothing")) != NULL) {
        return NG_EINPUT;
    }
    return call->host->ask(call, "q", NG_ASK_MODEL, ng_str_of("{}")) == NULL
               ? NG_EINPUT
               : ng_reply(call, ng_str_of("answered"));
}

static int big_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    size_t bytes = (size_t)ng_arg_int(call, "bytes", 0);
    char *text = ng_alloc(call, bytes);
    if (text == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    memset(text, 'x', bytes);
    return ng_reply(call, (struct ng_str){text, bytes});
}

/* Changes something, and has more to say of it than fits: text or an object, and a part. */
static int grow_run(void *self, struct ng_call *call, struct ng_str args)
{
    int rc = big_run(self, call, args);
    struct ng_str kind = ng_arg_text(call, "kind");
    if (rc == NG_OK && str_is(kind, "part")) {
        rc = call->host->reply_media(call, "image", "image/png", ng_str_of("0123456789"));
    }
    return rc;
}

static int grow_object_run(void *self, struct ng_call *call, struct ng_str args)
{
    size_t bytes = (size_t)ng_arg_int(call, "bytes", 0);
    char *text = ng_alloc(call, bytes);
    (void)self;
    (void)args;
    assert_non_null(text);
    memset(text, 'x', bytes);
    struct ng_writer *writer = call->host->reply_json(call);
    call->host->json_object(writer);
    call->host->json_name(writer, "text");
    call->host->json_string(writer, (struct ng_str){text, bytes});
    for (int64_t i = 0; i < ng_arg_int(call, "members", 0); i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "m%d", (int)i);
        call->host->json_name(writer, name);
        call->host->json_int(writer, i);
    }
    call->host->json_end(writer);
    return NG_OK;
}

static int shape_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_str kind = ng_arg_text(call, "kind");
    if (str_is(kind, "text")) {
        return ng_reply(call, kind);
    }
    if (str_is(kind, "silent")) {
        return ng_fail(call, NG_EFAILED, "%s", "");
    }
    struct ng_writer *writer = call->host->reply_json(call);
    call->host->json_object(writer);
    call->host->json_name(writer, "n");
    if (str_is(kind, "number")) {
        call->host->json_int(writer, 1);
    } else {
        call->host->json_string(writer, kind);
    }
    if (!str_is(kind, "open")) {
        call->host->json_end(writer);
    }
    return NG_OK;
}

static int serial_enter(struct ng_call *call)
{
    pthread_mutex_lock(&probe.lock);
    probe.in_serial++;
    if (probe.in_serial > probe.most_serial) {
        probe.most_serial = probe.in_serial;
    }
    pthread_mutex_unlock(&probe.lock);
    sched_yield();
    probe_add(&probe.in_serial, (unsigned)-1);
    probe_add(&probe.runs, 1);
    return ng_reply(call, ng_str_of("serial"));
}

static int serial_step(struct ng_call *call, void *user)
{
    (void)user;
    return serial_enter(call);
}

static int serial_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    int rc = serial_enter(call);
    return rc == NG_OK ? call->host->continue_on_worker(call, serial_step, NULL) : rc;
}

#define ANY "{\"type\":\"object\"}"

static const struct ng_tool tools[] = {
    {.name = "d_echo",
     .summary = "s",
     .params = ANY,
     .run = echo_run,
     .effect = NG_EFFECT_READS,
     .flags = NG_TOOL_MEMORY},
    {.name = "d_loose",
     .summary = "s",
     .params = "{}",
     .run = echo_run,
     .effect = NG_EFFECT_READS},
    {.name = "d_block",
     .summary = "s",
     .params = ANY,
     .run = block_run,
     .effect = NG_EFFECT_READS},
    {.name = "d_obey",
     .summary = "s",
     .params = ANY,
     .run = obey_run,
     .effect = NG_EFFECT_READS},
    {.name = "d_hold", .summary = "s", .params = ANY, .run = block_run},
    {.name = "d_write",
     .summary = "s",
     .params = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
               "\"required\":[\"text\"]}",
     .run = write_run,
     .flags = NG_TOOL_MEMORY,
     .space = NG_SPACE_SHARED},
    {.name = "d_handled", .summary = "s", .params = ANY, .run = handled_run},
    {.name = "d_twice", .summary = "s", .params = ANY, .run = twice_run},
    {.name = "d_parts", .summary = "s", .params = ANY, .run = parts_run},
    {.name = "d_defer",
     .summary = "s",
     .params = ANY,
     .run = defer_run,
     .effect = NG_EFFECT_READS},
    {.name = "d_step",
     .summary = "s",
     .params = ANY,
     .run = step_run,
     .effect = NG_EFFECT_READS,
     .flags = NG_TOOL_MEMORY},
    {.name = "d_background",
     .summary = "s",
     .params = ANY,
     .run = background_run,
     .space = NG_SPACE_SHARED},
    {.name = "d_ask", .summary = "s", .params = ANY, .run = ask_run, .effect = NG_EFFECT_READS},
    {.name = "d_big", .summary = "s", .params = ANY, .run = big_run, .effect = NG_EFFECT_READS},
    {.name = "d_grow", .summary = "s", .params = ANY, .run = grow_run},
    {.name = "d_grow_object",
     .summary = "s",
     .params = ANY,
     .run = grow_object_run,
     .result = "{\"type\":\"object\",\"required\":[\"text\"]}"},
    {.name = "d_shape",
     .summary = "s",
     .params = ANY,
     .run = shape_run,
     .result = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"number\"}},"
               "\"required\":[\"n\"]}",
     .effect = NG_EFFECT_READS},
    {.name = "d_both",
     .summary = "s",
     .params = ANY,
     .run = echo_run,
     .read_argument = "mode",
     .read_values = "read list"},
    {.name = "d_admin",
     .summary = "s",
     .params = ANY,
     .run = echo_run,
     .effect = NG_EFFECT_ADMIN},
    {.name = "d_agent",
     .summary = "s",
     .params = ANY,
     .run = echo_run,
     .flags = NG_TOOL_AGENT_MODE},
};

static const struct ng_plugin plugin = {
    .name = "probe",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .uses = "probe_docs",
};

static const struct ng_tool serial_tools[] = {
    {.name = "s_run",
     .summary = "s",
     .params = ANY,
     .run = serial_run,
     .effect = NG_EFFECT_READS,
     .flags = NG_TOOL_MEMORY},
    {.name = "s_block",
     .summary = "s",
     .params = ANY,
     .run = block_run,
     .effect = NG_EFFECT_READS},
};

static const struct ng_plugin serial_plugin = {
    .name = "serial",
    .version = "1",
    .threads = NG_THREADS_SERIAL,
    .tools = serial_tools,
    .tool_count = NG_COUNT(serial_tools),
    .uses = "probe_docs",
};

const struct ng_collection docs = {.name = "probe_docs"};

void open_probe(struct harness *harness, const char *const *sets)
{
    struct plugin *added = NULL;
    struct buf error;
    probe_reset();
    harness_open(harness, sets);
    buf_init(&error, 4096);
    assert_int_equal(registry_add(harness->gateway->registry, &plugin, NULL, &added, &error),
                     NG_OK);
    assert_int_equal(
        registry_add(harness->gateway->registry, &serial_plugin, NULL, &added, &error), NG_OK);
    buf_done(&error);
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_declare(harness->gateway->store, call, &docs), NG_OK);
    call_unref(call);
}

const char *const plain[] = {"plugins=", "documents=memory", "limits.workers=4", NULL};

/* ---- calls that are under way ---- */

static void job_done(struct call *call, void *user)
{
    struct job *job = user;
    (void)call;
    pthread_mutex_lock(&probe.lock);
    job->done = true;
    pthread_cond_broadcast(&probe.moved);
    pthread_mutex_unlock(&probe.lock);
}

struct call *job_new(struct harness *harness, struct job *job, const char *agent,
                     const char *tool, const char *args)
{
    memset(job, 0, sizeof(*job));
    job->call = call_new(harness->gateway);
    assert_non_null(job->call);
    assert_int_equal(call_set_caller(job->call, ng_str_of(agent), str_make(NULL, 0),
                                     NG_ROLE_ADMIN, NG_MODE_AGENT, true),
                     NG_OK);
    job->call->tool_name = ng_str_of(tool);
    job->call->args_text = ng_str_of(args);
    job->call->done = job_done;
    job->call->done_user = job;
    return job->call;
}

void job_start(struct job *job)
{
    job->rc = dispatch(job->call);
}

const struct result *job_wait(struct job *job)
{
    if (job->rc == NG_PENDING) {
        pthread_mutex_lock(&probe.lock);
        while (!job->done) {
            pthread_cond_wait(&probe.moved, &probe.lock);
        }
        pthread_mutex_unlock(&probe.lock);
    }
    return &job->call->final;
}

void job_expect(struct job *job, const char *code)
{
    const struct result *result = job_wait(job);
    if (strcmp(result->code, code) != 0) {
        print_error("%.*s\n", (int)result->message.len, result->message.data);
    }
    assert_string_equal(result->code, code);
    call_unref(job->call);
}
