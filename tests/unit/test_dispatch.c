/* SPDX-License-Identifier: MIT */
/* test_dispatch.c - the way of a call, with plugins that are linked in: they wait, defer, ask,
 * write and fail as a case wants it. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "files.h"
#include "idem.h"
#include "keys.h"
#include "str.h"

#undef fail /* of cmocka: ng_fail() needs the name */

#define JOBS_MAX 64

static struct probe {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool open;          /* blocked calls go on */
    unsigned blocked;   /* calls that wait in d_block */
    unsigned runs;      /* of d_count and its like */
    unsigned in_serial; /* calls inside the serial plugin */
    unsigned most_serial;
    unsigned steps;
    unsigned ended;               /* background calls that were over, and well */
    char space[NG_SPACE_MAX + 1]; /* of the background call */
    struct ng_deferred *deferred;
} probe = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

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

static void probe_add(unsigned *number, unsigned more)
{
    pthread_mutex_lock(&probe.lock);
    *number += more;
    pthread_cond_broadcast(&probe.moved);
    pthread_mutex_unlock(&probe.lock);
}

static unsigned probe_read(const unsigned *number)
{
    pthread_mutex_lock(&probe.lock);
    unsigned value = *number;
    pthread_mutex_unlock(&probe.lock);
    return value;
}

static void probe_open(void)
{
    pthread_mutex_lock(&probe.lock);
    probe.open = true;
    pthread_cond_broadcast(&probe.moved);
    pthread_mutex_unlock(&probe.lock);
}

static void probe_wait(const unsigned *number, unsigned least)
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

/* What it reads first is not there, and it goes on. */
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

static int background_step(struct ng_call *call, void *user)
{
    (void)user;
    assert_int_equal(call->host->when_ended(call, background_ended, &probe), NG_OK);
    pthread_mutex_lock(&probe.lock);
    (void)snprintf(probe.space, sizeof(probe.space), "%.*s %.*s", (int)call->caller->agent.len,
                   call->caller->agent.data, (int)call->caller->space.len,
                   call->caller->space.data);
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
    if (strstr(args.data, "nothing") != NULL) {
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

static int shape_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_str kind = ng_arg_text(call, "kind");
    if (str_is(kind, "text")) {
        return ng_reply(call, kind);
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
};

static const struct ng_collection docs = {.name = "probe_docs"};

static void open_probe(struct harness *harness, const char *const *sets)
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

static const char *const plain[] = {"plugins=", "documents=memory", "limits.workers=4", NULL};

/* ---- calls that are under way ---- */

struct job {
    struct call *call;
    bool done;
    int rc;
};

static void job_done(struct call *call, void *user)
{
    struct job *job = user;
    (void)call;
    pthread_mutex_lock(&probe.lock);
    job->done = true;
    pthread_cond_broadcast(&probe.moved);
    pthread_mutex_unlock(&probe.lock);
}

static struct call *job_new(struct harness *harness, struct job *job, const char *agent,
                            const char *tool, const char *args)
{
    memset(job, 0, sizeof(*job));
    job->call = call_new(harness->gateway);
    assert_non_null(job->call);
    assert_int_equal(call_set_caller(job->call, ng_str_of(agent), str_make(NULL, 0),
                                     NG_ROLE_ADMIN, NG_MODE_AGENT),
                     NG_OK);
    job->call->tool_name = ng_str_of(tool);
    job->call->args_text = ng_str_of(args);
    job->call->done = job_done;
    job->call->done_user = job;
    return job->call;
}

static void job_start(struct job *job)
{
    job->rc = dispatch(job->call);
}

static const struct result *job_wait(struct job *job)
{
    if (job->rc == NG_PENDING) {
        pthread_mutex_lock(&probe.lock);
        while (!job->done) {
            pthread_cond_wait(&probe.moved, &probe.lock);
        }
        pthread_mutex_unlock(&probe.lock);
    }
    return &job->call->result;
}

static void job_expect(struct job *job, const char *code)
{
    const struct result *result = job_wait(job);
    if (strcmp(result->code, code) != 0) {
        print_error("%.*s\n", (int)result->message.len, result->message.data);
    }
    assert_string_equal(result->code, code);
    call_unref(job->call);
}

static void run_as(struct harness *harness, enum ng_role role, enum ng_mode mode,
                   const char *tool, const char *args, const char *code)
{
    struct job job;
    struct call *call = job_new(harness, &job, "a", tool, args);
    call->caller.role = role;
    call->caller.mode = mode;
    job_start(&job);
    job_expect(&job, code);
}

/* ---- cases ---- */

static void test_ways(void **state)
{
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, plain);
    job_new(&harness, &job, "a", "d_echo", "{\"x\":1}")->on_loop = true;
    job_start(&job);
    assert_int_equal(job.rc, NG_OK); /* where it arrived */
    job_expect(&job, "ok");
    job_new(&harness, &job, "a", "d_echo", "");
    job_start(&job);
    assert_int_equal(job.rc, NG_PENDING);
    assert_true(str_is(job_wait(&job)->text, "{}"));
    job_expect(&job, "ok");
    /* The first needs to load, the second is queued where it arrived. */
    for (int i = 0; i < 2; i++) {
        job_new(&harness, &job, "a", "d_write", "{\"text\":\"x\"}")->on_loop = true;
        job_start(&job);
        assert_int_equal(job_wait(&job)->revision_number, i + 1);
        job_expect(&job, "ok");
    }
    job_new(&harness, &job, "a", "d_step", "{}")->on_loop = true;
    job_start(&job);
    assert_true(str_is(job_wait(&job)->text, "stepped"));
    job_expect(&job, "ok");
    assert_int_equal(probe_read(&probe.steps), 2);
    expect_text(&harness, "d_handled", "{}", "handled");
    expect_text(&harness, "d_twice", "{}", "twice");
    harness_close(&harness);
}

static void test_refusals(void **state)
{
    struct harness harness;
    (void)state;
    open_probe(&harness, plain);
    expect_error(&harness, "d_ehco", "{}", "UNKNOWN_TOOL", "no tool is called \"d_ehco\"");
    expect_error(&harness, "d_loose", "[1]", "INVALID_INPUT",
                 "the arguments: expected an object");
    run_as(&harness, NG_ROLE_WRITER, NG_MODE_AGENT, "d_admin", "{}", "FORBIDDEN");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_EDIT, "d_agent", "{}", "MODE_FORBIDDEN");
    run_as(&harness, NG_ROLE_READER, NG_MODE_AGENT, "d_both", "{}", "FORBIDDEN");
    run_as(&harness, NG_ROLE_READER, NG_MODE_AGENT, "d_both", "{\"mode\":\"rea\"}",
           "FORBIDDEN");
    run_as(&harness, NG_ROLE_READER, NG_MODE_AGENT, "d_both", "{\"mode\":\"list\"}", "ok");
    run_as(&harness, NG_ROLE_WRITER, NG_MODE_ASK, "d_both", "{}", "MODE_FORBIDDEN");
    run_as(&harness, NG_ROLE_WRITER, NG_MODE_ASK, "d_both", "{\"mode\":\"read\"}", "ok");
    run_as(&harness, NG_ROLE_WRITER, NG_MODE_EDIT, "d_write", "{\"text\":7}", "INVALID_INPUT");
    struct job job;
    struct call *call = job_new(&harness, &job, "a", "d_echo", "{}");
    struct ng_str only = ng_str_of("team");
    assert_int_equal(call_allow_spaces(call, &only, 1, false), NG_OK);
    call_ref(call);
    job_start(&job);
    job_expect(&job, "ok"); /* the tool's own space is not the caller's: its first one */
    assert_true(str_is(call->caller.space, "team"));
    call_unref(call);
    call = job_new(&harness, &job, "a", "d_echo", "{}");
    assert_int_equal(call_set_caller(call, ng_str_of("a"), ng_str_of("other"), NG_ROLE_WRITER,
                                     NG_MODE_AGENT),
                     NG_OK);
    assert_int_equal(call_allow_spaces(call, &only, 1, false), NG_OK);
    job_start(&job);
    job_expect(&job, "FORBIDDEN");
    harness_close(&harness);
}

/* ---- with a key ---- */

/* A key that lives as long as a case; what it allows. */
static void key_init(struct key *key, const struct ng_str *allowed, size_t tool_count,
                     const struct ng_str *spaces, size_t space_count)
{
    memset(key, 0, sizeof(*key));
    atomic_init(&key->refs, 1);
    pthread_mutex_init(&key->lock, NULL);
    key->tools = allowed;
    key->tool_count = tool_count;
    key->spaces = spaces;
    key->space_count = space_count;
}

static struct call *job_new_keyed(struct harness *harness, struct job *job, struct key *key,
                                  const char *tool)
{
    struct call *call = job_new(harness, job, "a", tool, "{}");
    call->caller.role = NG_ROLE_WRITER;
    call->caller.spaces = key->spaces;
    call->caller.space_count = key->space_count;
    key_ref(key);
    call->key = key;
    return call;
}

static void expect_space(struct harness *harness, struct key *key, const char *tool,
                         const char *space)
{
    struct job job;
    struct call *call = job_new_keyed(harness, &job, key, tool);
    call_ref(call);
    job_start(&job);
    job_expect(&job, "ok");
    assert_true(str_is(call->caller.space, space));
    call_unref(call);
}

static void test_key_spaces(void **state)
{
    static const struct ng_str both[] = {{"~a", 2}, {"shared", 6}};
    static const struct ng_str team[] = {{"team", 4}, {"other", 5}};
    struct harness harness;
    struct key key;
    struct key other; /* background work may still hold the first */
    (void)state;
    open_probe(&harness, plain);
    key_init(&key, NULL, 0, both, 2);
    expect_space(&harness, &key, "d_echo", "~a");
    expect_space(&harness, &key, "d_background", "shared");
    key_init(&other, NULL, 0, team, 2);
    expect_space(&harness, &other, "d_echo", "team");
    expect_space(&harness, &other, "d_background", "team");
    harness_close(&harness);
    assert_int_equal(atomic_load(&key.refs), 1);
    assert_int_equal(atomic_load(&other.refs), 1);
}

static void test_key_tools(void **state)
{
    static const struct ng_str allowed[] = {{"d_echo", 6}, {"d_write", 7}};
    static const struct ng_str spaces[] = {{"~a", 2}};
    struct harness harness;
    struct job job;
    struct key key;
    (void)state;
    open_probe(&harness, plain);
    key_init(&key, allowed, 2, spaces, 1);
    job_new_keyed(&harness, &job, &key, "d_echo");
    job_start(&job);
    job_expect(&job, "ok");
    struct call *call = job_new_keyed(&harness, &job, &key, "d_both");
    call_ref(call);
    job_start(&job);
    job_expect(&job, "FORBIDDEN");
    assert_non_null(strstr(call->result.message.data, "`d_echo`, `d_write`"));
    const struct registry *registry = harness.gateway->registry;
    assert_true(dispatch_allows(call, registry_find(registry, ng_str_of("d_echo"))));
    assert_false(dispatch_allows(call, registry_find(registry, ng_str_of("d_both"))));
    struct plugin *const *plugins = NULL;
    assert_int_equal(registry_plugins(registry, &plugins), 2);
    assert_true(dispatch_sees_plugin(call, plugins[0]));
    assert_false(dispatch_sees_plugin(call, plugins[1])); /* serial: none of its tools */
    call_unref(call);
    /* The name of a tool that it may not use is no hint. */
    call = job_new_keyed(&harness, &job, &key, "d_bot");
    call_ref(call);
    job_start(&job);
    job_expect(&job, "UNKNOWN_TOOL");
    assert_true(call->result.hint.data == NULL ||
                strstr(call->result.hint.data, "d_both") == NULL);
    call_unref(call);
    call = job_new(&harness, &job, "a", "d_both", "{}");
    assert_true(dispatch_sees_plugin(call, plugins[1]));
    call_unref(call);
    harness_close(&harness);
    assert_int_equal(atomic_load(&key.refs), 1);
}

static void test_key_collections(void **state)
{
    static const char *const sets[] = {"plugins=notebook,file_editor", "documents=memory",
                                       NULL};
    static const struct ng_str notebook[] = {{"notebook", 8}};
    static const struct ng_str editor[] = {{"fileEditor", 10}};
    struct harness harness;
    struct key key;
    (void)state;
    harness_open(&harness, sets);
    struct call *call = harness_new_call(&harness);
    assert_true(dispatch_sees_collection(call, ng_str_of("notebooks")));
    assert_true(dispatch_sees_collection(call, ng_str_of(FILES_EVENTS)));
    assert_true(dispatch_sees_collection(call, ng_str_of(KEYS_COLLECTION))); /* admin */
    call->caller.role = NG_ROLE_WRITER;
    assert_false(dispatch_sees_collection(call, ng_str_of(KEYS_COLLECTION)));
    call->caller.role = NG_ROLE_ADMIN;
    key_init(&key, notebook, 1, NULL, 0);
    key_ref(&key);
    call->key = &key;
    assert_true(dispatch_sees_collection(call, ng_str_of("notebooks")));
    assert_false(dispatch_sees_collection(call, ng_str_of(FILES_EVENTS)));
    assert_false(dispatch_sees_collection(call, ng_str_of(KEYS_COLLECTION)));
    assert_false(dispatch_sees_collection(call, ng_str_of("unheard_of")));
    key.tools = editor;
    assert_false(dispatch_sees_collection(call, ng_str_of("notebooks")));
    assert_true(dispatch_sees_collection(call, ng_str_of(FILES_EVENTS)));
    call_unref(call);
    harness_close(&harness);
}

static int count_step(struct ng_call *call, void *user)
{
    atomic_uint *steps = user;
    atomic_fetch_add(steps, 1);
    return ng_reply(call, ng_str_of("step"));
}

static void test_key_rate(void **state)
{
    static const struct ng_str spaces[] = {{"~a", 2}};
    struct harness harness;
    struct job job;
    struct key key;
    atomic_uint steps = 0;
    (void)state;
    open_probe(&harness, plain);
    key_init(&key, NULL, 0, spaces, 1);
    key.rate = 1e-3; /* a burst of one, then nothing for the length of this case */
    key.tokens = 1;
    key.filled_ns = clock_monotonic_ns();
    job_new_keyed(&harness, &job, &key, "d_background");
    job_start(&job);
    job_expect(&job, "ok"); /* what it goes on with takes nothing */
    probe_wait(&probe.steps, 1);
    struct call *call = job_new_keyed(&harness, &job, &key, "d_echo");
    call_ref(call);
    job_start(&job);
    job_expect(&job, "RATE_LIMITED");
    assert_true(call->result.retry_after_s > 0);
    assert_int_equal(call->result.status, 429);
    call_unref(call);
    /* A face's own work counts as a call. */
    call = job_new_keyed(&harness, &job, &key, "");
    assert_int_equal(dispatch_step(call, count_step, &steps), NG_OK);
    assert_string_equal(call->result.code, "RATE_LIMITED");
    assert_int_equal(atomic_load(&steps), 0);
    call_unref(call);
    harness_close(&harness);
    assert_int_equal(atomic_load(&key.refs), 1);
}

static void test_answers(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.result=1000",
                                       NULL};
    struct harness harness;
    (void)state;
    open_probe(&harness, sets);
    expect_text(&harness, "d_shape", "{\"kind\":\"number\"}", "{\"n\":1}");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_shape", "{\"kind\":\"string\"}",
           "INTERNAL");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_shape", "{\"kind\":\"open\"}",
           "INTERNAL");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_shape", "{\"kind\":\"text\"}",
           "INTERNAL");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_big", "{\"bytes\":1000}", "ok");
    run_as(&harness, NG_ROLE_ADMIN, NG_MODE_AGENT, "d_big", "{\"bytes\":1001}", "TOO_LARGE");
    harness_close(&harness);
}

static void test_asking(void **state)
{
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, plain);
    job_new(&harness, &job, "a", "d_ask", "{}");
    job_start(&job);
    job_expect(&job, "TOOL_FAILED");
    job_new(&harness, &job, "a", "d_ask", "{}")->client_asks = 1U << NG_ASK_FORM;
    job_start(&job);
    job_expect(&job, "TOOL_FAILED"); /* not what this client can be asked */
    job_new(&harness, &job, "a", "d_ask", "{\"x\":\"nothing\"}")->client_asks = 1U
                                                                                << NG_ASK_MODEL;
    job_start(&job);
    job_expect(&job, "INTERNAL");
    job_new(&harness, &job, "a", "d_ask", "{}")->client_asks = 1U << NG_ASK_MODEL;
    job_start(&job);
    assert_int_equal(job_wait(&job)->rc, NG_EINPUT);
    assert_non_null(job.call->asks);
    job_expect(&job, "INPUT_REQUIRED");
    harness_close(&harness);
}

static void finish_deferred(int rc)
{
    probe_wait(&probe.steps, 1);
    pthread_mutex_lock(&probe.lock);
    struct ng_deferred *deferred = probe.deferred;
    probe.steps = 0;
    pthread_mutex_unlock(&probe.lock);
    call_host.finish(deferred, rc);
}

static void test_deferring(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory",
                                       "limits.call_timeout=100ms", NULL};
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, plain);
    job_new(&harness, &job, "a", "d_defer", "{}");
    job_start(&job);
    finish_deferred(NG_OK);
    job_expect(&job, "ok");
    job_new(&harness, &job, "a", "d_defer", "{}");
    job_start(&job);
    finish_deferred(NG_EFAILED);
    job_expect(&job, "TOOL_FAILED");
    harness_close(&harness);
    open_probe(&harness, sets);
    job_new(&harness, &job, "a", "d_defer", "{}");
    job_start(&job);
    job_expect(&job, "TIMEOUT");
    assert_true(dispatch_active(harness.gateway) >= 1); /* the tool is still at it */
    finish_deferred(NG_OK);
    harness_close(&harness);
}

/* A tool that ends at its deadline is late all the same: its answer may be half of one. */
static void test_ending_at_the_deadline(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory",
                                       "limits.call_timeout=5ms", NULL};
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, sets);
    for (int i = 0; i < 20; i++) {
        job_new(&harness, &job, "a", "d_obey", "{}");
        job_start(&job);
        job_expect(&job, "TIMEOUT");
    }
    harness_close(&harness);
}

static void test_cancelled_in_line(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.workers=1",
                                       NULL};
    struct harness harness;
    struct job first;
    struct job second;
    (void)state;
    open_probe(&harness, sets);
    job_new(&harness, &first, "a", "d_block", "{}");
    job_start(&first);
    probe_wait(&probe.blocked, 1);
    job_new(&harness, &second, "b", "d_block", "{}");
    job_start(&second);
    call_cancel(second.call);
    probe_open();
    job_expect(&first, "ok");
    job_expect(&second, "CANCELLED");
    assert_int_equal(probe_read(&probe.runs), 1);
    harness_close(&harness);
}

/* A call that its deadline or its client ended before its turn came does not run, and the one
 * behind it does. */
static void test_cancelled_in_gate(void **state)
{
    struct harness harness;
    struct job jobs[3];
    (void)state;
    open_probe(&harness, plain);
    for (size_t i = 0; i < 3; i++) {
        static const char *const agents[] = {"a", "b", "c"};
        job_new(&harness, &jobs[i], agents[i], "s_block", "{}");
        job_start(&jobs[i]);
        if (i == 0) {
            probe_wait(&probe.blocked, 1);
        }
    }
    call_cancel(jobs[1].call);
    probe_open();
    job_expect(&jobs[0], "ok");
    job_expect(&jobs[1], "CANCELLED");
    job_expect(&jobs[2], "ok");
    assert_int_equal(probe_read(&probe.runs), 2);
    harness_close(&harness);
}

static void test_one_at_a_time(void **state)
{
    struct harness harness;
    struct job jobs[JOBS_MAX];
    (void)state;
    open_probe(&harness, plain);
    for (size_t i = 0; i < JOBS_MAX; i++) {
        char agent[16];
        (void)snprintf(agent, sizeof(agent), "agent%zu", i % 8);
        job_new(&harness, &jobs[i], agent, "s_run", "{}")->on_loop = i % 3 == 0;
        job_start(&jobs[i]);
    }
    for (size_t i = 0; i < JOBS_MAX; i++) {
        job_expect(&jobs[i], "ok");
    }
    assert_int_equal(probe_read(&probe.most_serial), 1); /* continuations too */
    assert_int_equal(probe_read(&probe.runs), 2 * JOBS_MAX);
    harness_close(&harness);
}

static void test_fairness(void **state)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.workers=4",
                                       "limits.queue=8", NULL};
    struct harness harness;
    struct job jobs[6];
    struct job more;
    (void)state;
    open_probe(&harness, sets);
    for (size_t i = 0; i < 6; i++) {
        job_new(&harness, &jobs[i], "busy", "d_block", "{}");
        job_start(&jobs[i]);
        if (i < 2) {
            probe_wait(&probe.blocked, (unsigned)i + 1);
        }
    }
    /* Two run, four wait: this agent's halves. */
    job_new(&harness, &more, "busy", "d_block", "{}");
    job_start(&more);
    assert_int_equal(more.rc, NG_OK);
    assert_int_equal(job_wait(&more)->retry_after_s, 1);
    job_expect(&more, "BUSY");
    probe_open();
    for (size_t i = 0; i < 6; i++) {
        job_expect(&jobs[i], "ok");
    }
    harness_close(&harness);
    open_probe(&harness, plain);
    for (size_t i = 0; i < 6; i++) {
        job_new(&harness, &jobs[i], "busy", "d_block", "{}");
        job_start(&jobs[i]);
    }
    probe_wait(&probe.blocked, 2);
    struct answer answer = harness_call_as(&harness, "other", NULL, "d_echo", "{}");
    assert_int_equal(answer.rc, NG_OK); /* half of the workers are for others */
    answer_free(&answer);
    assert_int_equal(probe_read(&probe.blocked), 2);
    probe_open();
    for (size_t i = 0; i < 6; i++) {
        job_expect(&jobs[i], "ok");
    }
    harness_close(&harness);
}

static void keyed(struct harness *harness, struct job *job, const char *tool, const char *args,
                  const char *key)
{
    job_new(harness, job, "a", tool, args)->idempotency_key = ng_str_of(key);
    job_start(job);
}

static void test_repeats(void **state)
{
    struct harness harness;
    struct job jobs[20];
    struct job other;
    (void)state;
    open_probe(&harness, plain);
    for (size_t i = 0; i < 20; i++) {
        keyed(&harness, &jobs[i], "d_hold", "{\"a\":1}", "k");
    }
    probe_wait(&probe.blocked, 1);
    keyed(&harness, &other, "d_write", "{\"text\":\"w\"}", "k"); /* another tool */
    job_expect(&other, "ok");
    probe_open();
    for (size_t i = 0; i < 20; i++) {
        assert_true(str_is(job_wait(&jobs[i])->text, "{\"a\":1}"));
        job_expect(&jobs[i], "ok");
    }
    assert_int_equal(probe_read(&probe.runs), 2);
    keyed(&harness, &other, "d_hold", "{\"a\":2}", "k");
    job_expect(&other, "IDEMPOTENCY_KEY_REUSED");
    for (int i = 0; i < 3; i++) {
        keyed(&harness, &other, "d_write", "{\"text\":\"v\"}", "k2");
        assert_int_equal(job_wait(&other)->revision_number, 2);
        job_expect(&other, "ok");
        keyed(&harness, &other, "d_twice", "{}", "k3"); /* two commits, one key */
        assert_true(str_is(job_wait(&other)->text, "twice"));
        job_expect(&other, "ok");
    }
    assert_int_equal(probe_read(&probe.runs), 4);
    for (int i = 0; i < 2; i++) {
        keyed(&harness, &other, "d_parts", "{}", "k4");
        const struct result *result = job_wait(&other);
        assert_false(result->has_text); /* the repeat is like the first */
        assert_true(str_is(result->parts->data, "{}") && result->parts->next == NULL);
        job_expect(&other, "ok");
    }
    assert_int_equal(probe_read(&probe.runs), 5);
    char key[IDEM_KEY_MAX + 2];
    memset(key, 'k', sizeof(key));
    key[IDEM_KEY_MAX + 1] = '\0';
    keyed(&harness, &other, "d_write", "{\"text\":\"v\"}", key);
    job_expect(&other, "INVALID_INPUT");
    harness_close(&harness);
}

static void test_background(void **state)
{
    struct harness harness;
    struct job job;
    (void)state;
    open_probe(&harness, plain);
    job_new(&harness, &job, "bob", "d_background", "{}");
    job_start(&job);
    job_expect(&job, "ok");
    probe_wait(&probe.steps, 1);
    pthread_mutex_lock(&probe.lock);
    assert_string_equal(probe.space, "bob shared"); /* that of the tool, as the call's was */
    pthread_mutex_unlock(&probe.lock);
    /* A start() has no spaces of its own. */
    struct call *call = call_new(harness.gateway);
    assert_non_null(call);
    assert_int_equal(call_host.background(&call->pub, background_step, NULL), NG_OK);
    call_unref(call);
    probe_wait(&probe.steps, 2);
    probe_wait(&probe.ended, 2);
    harness_close(&harness);
}

/* As a face does: the answer is sent, the call is nobody's any more. */
static void job_drop(struct call *call, void *user)
{
    (void)user;
    probe_add(&probe.steps, call->result.rc == NG_OK ? 1 : 0);
    call_unref(call);
}

static void test_stopping(void **state)
{
    struct harness harness;
    struct job job;
    struct job late;
    (void)state;
    open_probe(&harness, plain);
    job_new(&harness, &job, "a", "d_block", "{}")->done = job_drop;
    job_start(&job);
    probe_wait(&probe.blocked, 1);
    assert_false(gateway_drain(harness.gateway, 1));
    job_new(&harness, &late, "a", "d_echo", "{}");
    job_start(&late);
    job_expect(&late, "BUSY");
    /* Closing with a call left waits for its worker and then frees what it used. */
    probe_open();
    gateway_close(harness.gateway);
    harness.gateway = NULL;
    assert_int_equal(probe_read(&probe.steps), 1);
    harness_close(&harness);
}

/* A start() may change documents; the gateway opens when they are on disk. */
static void test_start_writes(void **state)
{
    static const char *const sets[] = {"plugins=" NOTEGATE_BUILD "/tests/modules/starter.so",
                                       NULL};
    struct harness harness;
    (void)state;
    harness_open(&harness, sets);
    expect_text(&harness, "started", "{}", "1");
    harness_reopen(&harness);
    expect_text(&harness, "started", "{}", "2");
    harness_close(&harness);
}

/* ---- out of memory ---- */

#define OOM_MOST 150

/* The call with the allocation after `fails` more ones failing. */
static int starved(struct harness *harness, const char *tool, const char *args, const char *key,
                   long fails)
{
    struct job job;
    struct call *call = job_new(harness, &job, "a", tool, args);
    if (key != NULL) {
        call->idempotency_key = ng_str_of(key);
    }
    call->on_loop = fails % 2 == 0;
    call->client_asks = 1U << NG_ASK_MODEL;
    alloc_fail_after(fails);
    job_start(&job);
    int rc = job_wait(&job)->rc;
    alloc_fail_after(-1);
    assert_non_null(job.call->result.code);
    assert_true(rc == NG_OK || job.call->result.message.data != NULL);
    call_unref(job.call);
    return rc;
}

static size_t length_of(struct harness *harness, const char *id)
{
    struct call *call = harness_new_call(harness);
    struct ng_key key = {ng_str_of(docs.name), ng_str_of("shared"), ng_str_of(id)};
    const struct ng_doc *doc = NULL;
    assert_int_equal(store_get(harness->gateway->store, call, &key, 0, &doc), NG_OK);
    size_t len = doc->text.len;
    call_unref(call);
    return len;
}

static void test_out_of_memory(void **state)
{
    static const char *const calls[][2] = {
        {"d_echo", "{\"a\":[1,2,{\"b\":null}]}"},
        {"d_ehco", "{}"},
        {"d_write", "{\"text\":1}"},
        {"d_step", "{}"},
        {"d_background", "{}"},
        {"d_ask", "{}"},
        {"d_big", "{\"bytes\":100000}"},
        {"d_shape", "{\"kind\":\"number\"}"},
        {"d_shape", "{\"kind\":\"wrong\"}"},
        {"s_run", "{}"},
    };
    struct harness harness;
    (void)state;
    open_probe(&harness, plain);
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        for (long fails = 0; fails < OOM_MOST / 3; fails++) {
            (void)starved(&harness, calls[i][0], calls[i][1], NULL, fails);
        }
    }
    harness_close(&harness);
}

/* What was acknowledged is stored, what failed is not, and a repeat makes good for it. */
static void test_starved_writes(void **state)
{
    struct harness harness;
    size_t stored = 0;
    (void)state;
    open_probe(&harness, plain);
    for (long fails = 0; fails < OOM_MOST; fails++) {
        stored += starved(&harness, "d_write", "{\"text\":\"x\"}", NULL, fails) == NG_OK;
        assert_int_equal(length_of(&harness, "one"), stored);
    }
    assert_true(stored > 0 && stored < OOM_MOST);
    for (long fails = 0; fails < OOM_MOST; fails++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%ld", fails);
        (void)starved(&harness, "d_write", "{\"text\":\"x\"}", key, fails);
        assert_int_equal(starved(&harness, "d_write", "{\"text\":\"x\"}", key, -1), NG_OK);
        assert_int_equal(length_of(&harness, "one"), ++stored);
    }
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_key_spaces),
        cmocka_unit_test(test_key_tools),
        cmocka_unit_test(test_key_collections),
        cmocka_unit_test(test_key_rate),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_asking),
        cmocka_unit_test(test_deferring),
        cmocka_unit_test(test_ending_at_the_deadline),
        cmocka_unit_test(test_cancelled_in_line),
        cmocka_unit_test(test_cancelled_in_gate),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_background),
        cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_start_writes),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_starved_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
