/* SPDX-License-Identifier: MIT */
/* test_mcp_resources_rig.c - shared code of test_mcp_resources*.c; see the header.
 */
#include "test_mcp_resources_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/serve/mcp_methods.h"
#include "core/base/str.h"
#include "core/module/registry.h"
#include "test_gateway.h"

static struct gateway *gateway;
static struct mcp_http *mcp;
static atomic_int inside; /* calls in the serial plugin now */

struct auth_caller caller;
atomic_int most_inside, removed, hole, later, later_ends;

/* ---- a plugin that takes one call at a time ---- */

static void enter(void)
{
    int now = atomic_fetch_add(&inside, 1) + 1;
    int most = atomic_load(&most_inside);
    while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now)) {
    }
}

static void leave(void)
{
    (void)atomic_fetch_sub(&inside, 1);
}

static void *finish_later(void *user)
{
    const struct ng_host *host = &gateway->host;
    host->finish(user, atomic_load(&later_ends));
    return NULL;
}

static void *release_later(void *user)
{
    call_complete(user);
    return NULL;
}

static void start(void *(*run)(void *user), void *user, bool joins)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, user), 0);
    assert_int_equal(joins ? pthread_join(thread, NULL) : pthread_detach(thread), 0);
}

/* Ends from a thread that is not the gateway's: a failure before the list has returned. Another
 * thread has not left the call yet, and the list goes on after a failure that it met. */
static int pend(struct ng_call *call)
{
    if (atomic_load(&later) < 0) {
        return NG_PENDING;
    }
    (void)atomic_fetch_sub(&later, 1);
    call_pend(call_of(call));
    (void)call_fail(call_of(call), NG_ENOTFOUND, "what it asks for is gone");
    struct ng_deferred *deferred = call->host->defer(call);
    start(finish_later, deferred, atomic_load(&later_ends) != NG_OK);
    start(release_later, call_of(call), false);
    return NG_PENDING;
}

static int item_list(void *self, struct ng_call *call, struct ng_str space,
                     struct ng_listing *listing)
{
    struct ng_str none = {NULL, 0};
    int rc = NG_OK;
    (void)self;
    (void)space;
    enter();
    for (int i = atomic_load(&removed); i < ITEMS && rc == NG_OK; i++) {
        if (i == atomic_load(&hole)) {
            continue;
        }
        rc = call->host->list_add(listing, call->host->format(call, "i%03d", i), none, none,
                                  NULL, 1, 0);
        if (i == 10 && atomic_load(&later) != 0) {
            leave();
            return pend(call);
        }
    }
    leave();
    return NG_OK;
}

static int item_read_later(struct ng_call *call, void *user)
{
    (void)user;
    return ng_reply(call, ng_str_of("late"));
}

static int item_read_nothing(struct ng_call *call, void *user)
{
    (void)call;
    (void)user;
    return NG_OK;
}

static int item_read(void *self, struct ng_call *call, struct ng_str space, struct ng_str id,
                     uint64_t revision)
{
    (void)self;
    (void)revision;
    if (id.len == 0) {
        return NG_OK; /* answers nothing */
    }
    if (str_is(id, "late")) {
        return call->host->continue_on_worker(call, item_read_later, NULL);
    }
    if (str_is(id, "late_nothing")) {
        return call->host->continue_on_worker(call, item_read_nothing, NULL);
    }
    if (str_is(id, "link")) {
        return call->host->reply_link(call, ng_str_of("test://one/1/data"), ng_str_of("one"),
                                      NULL);
    }
    const struct ng_str pieces[] = {space, ng_str_of(":"), id};
    return id.data[0] == 'i'
               ? call->host->reply_parts(call, pieces, 3)
               : call->host->fail_text(call, NG_ENOTFOUND, ng_str_of("there is no item"));
}

static const struct ng_resources item_resources[] = {
    {
        .kind = "item",
        .title = "Items",
        .summary = "One item.",
        .mime_type = "text/plain",
        .list = item_list,
        .read = item_read,
    },
};

static const struct ng_plugin item_plugin = {
    .name = "items",
    .version = "1",
    .threads = NG_THREADS_SERIAL,
    .resources = item_resources,
    .resource_count = NG_COUNT(item_resources),
};

/* ---- and one with URIs of its own, and prompts ---- */

static int open_list(void *self, struct ng_call *call, struct ng_str space,
                     struct ng_listing *listing)
{
    struct ng_str none = {NULL, 0};
    (void)self;
    (void)space;
    return call->host->list_add(listing, ng_str_of("test://one/1/data"), ng_str_of("one"), none,
                                "text/plain", 0, 0);
}

static int open_read(void *self, struct ng_call *call, struct ng_str space, struct ng_str id,
                     uint64_t revision)
{
    (void)self;
    (void)space;
    (void)revision;
    return call->host->reply_resource(call, id, "application/x-test", ng_str_of("\x01\x02\x03"),
                                      false);
}

static int open_complete(void *self, struct ng_call *call, struct ng_str space,
                         const char *variable, struct ng_str prefix, struct ng_listing *listing)
{
    struct ng_str none = {NULL, 0};
    (void)self;
    (void)space;
    (void)prefix;
    return call->host->list_add(listing, ng_str_of(variable), none, none, NULL, 0, 0);
}

static int json_get_prompt(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    (void)self;
    (void)args;
    host->json_object(writer);
    host->json_name(writer, "description");
    host->json_string(writer, ng_arg_text(call, "word"));
    host->json_name(writer, ng_has_arg(call, "broken") ? "no messages" : "messages");
    host->json_array(writer);
    host->json_end(writer);
    host->json_end(writer);
    return NG_OK;
}

static int parts_get_prompt(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    int rc = ng_reply(call, args);
    return rc == NG_OK
               ? call->host->reply_media(call, "image", "image/png", ng_str_of("\x01\x02\x03"))
               : rc;
}

static int nothing_get_prompt(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)call;
    (void)args;
    return NG_OK;
}

static const struct ng_resources open_resources[] = {
    {
        .uri_template = "test://one/{number}/data",
        .title = "Numbers",
        .list = open_list,
        .read = open_read,
        .complete = open_complete,
    },
    {
        .uri_template = "test://alone",
        .read = open_read,
    },
};

static const struct ng_prompt open_prompts[] = {
    {
        .name = "json",
        .summary = "An object.",
        .params = "{\"type\":\"object\",\"required\":[\"word\"],\"properties\":{"
                  "\"word\":{\"type\":\"string\",\"enum\":[\"red\",\"rose\",\"blue\"]},"
                  "\"broken\":{\"type\":\"string\",\"description\":\"Breaks it.\"}}}",
        .get = json_get_prompt,
    },
    {
        .name = "parts",
        .title = "Parts",
        .summary = "A text and an image.",
        .get = parts_get_prompt,
    },
    {
        .name = "nothing",
        .get = nothing_get_prompt,
    },
};

static const struct ng_plugin open_plugin = {
    .name = "opened",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .resources = open_resources,
    .resource_count = NG_COUNT(open_resources),
    .prompts = open_prompts,
    .prompt_count = NG_COUNT(open_prompts),
};

static void add_plugin(const struct ng_plugin *desc)
{
    struct plugin *plugin = NULL;
    struct buf error;
    buf_init(&error, 4096);
    if (registry_add(gateway->registry, desc, NULL, &plugin, &error) != NG_OK) {
        fail_msg("%s", buf_cstr(&error));
    }
    buf_done(&error);
    plugin->started = true;
}

int set_up(void **state)
{
    (void)state;
    gateway = test_gateway_open(NULL);
    assert_non_null(gateway);
    add_plugin(&open_plugin);
    add_plugin(&item_plugin);
    assert_int_equal(mcp_http_new(gateway, mcp_methods_all(), &mcp), NG_OK);
    memset(&caller, 0, sizeof(caller));
    caller.agent = ng_str_of("tester");
    caller.role = NG_ROLE_READER;
    caller.mode = NG_MODE_ASK;
    atomic_store(&removed, 0);
    atomic_store(&hole, -1);
    atomic_store(&later, 0);
    atomic_store(&later_ends, NG_OK);
    atomic_store(&most_inside, 0);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    mcp_http_free(mcp);
    test_gateway_close(gateway);
    return 0;
}

/* ---- requests ---- */

void begin(struct exchange *exchange, const char *body)
{
    exchange_open(exchange, &caller, body);
}

char *end(struct exchange *exchange)
{
    exchange_send(exchange, mcp);
    char *text = strdup(exchange_wait(exchange));
    exchange_free(exchange);
    return text;
}

char *ask(const char *body)
{
    struct exchange exchange;
    begin(&exchange, body);
    return end(&exchange);
}

void expect(const char *body, const char *part)
{
    char *text = ask(body);
    if (strstr(text, part) == NULL) {
        fail_msg("%s\nis not in\n%s", part, text);
    }
    free(text);
}

/* ---- lists ---- */

size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}
