/* SPDX-License-Identifier: MIT */
/* test_mcp_resources.c - resources, prompts and completion of plugins that do as little as they
 * may: listings that know nothing of pages, one call at a time, answers of every form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mcp_http.h"
#include "mcp_watch.h"
#include "str.h"
#include "test_gateway.h"

#define PATIENCE_S 20
#define ITEMS 450
#define META                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define REQUEST(method, params)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"

static struct gateway *gateway;
static struct mcp_http *mcp;
static struct auth_caller caller;
static atomic_int inside;      /* calls in the serial plugin now, */
static atomic_int most_inside; /* and at most */
static atomic_int removed;     /* items from the front that are gone */
static atomic_int hole;        /* one item that is gone; -1: none */

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
    }
    leave();
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

static int set_up(void **state)
{
    (void)state;
    gateway = test_gateway_open(NULL);
    assert_non_null(gateway);
    add_plugin(&open_plugin);
    add_plugin(&item_plugin);
    assert_int_equal(mcp_http_new(gateway, &mcp), NG_OK);
    memset(&caller, 0, sizeof(caller));
    caller.agent = ng_str_of("tester");
    caller.role = NG_ROLE_READER;
    caller.mode = NG_MODE_ASK;
    atomic_store(&removed, 0);
    atomic_store(&hole, -1);
    atomic_store(&most_inside, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mcp_http_free(mcp);
    test_gateway_close(gateway);
    return 0;
}

/* ---- requests ---- */

struct exchange {
    struct mcp_http_request request;
    struct mcp_http_response response;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static struct ng_str no_header(const struct mcp_http_request *request, const char *name)
{
    (void)request;
    (void)name;
    return str_make(NULL, 0);
}

static void exchange_done(struct mcp_http_response *response, void *user)
{
    struct exchange *exchange = user;
    (void)response;
    (void)pthread_mutex_lock(&exchange->lock);
    exchange->done = true;
    (void)pthread_cond_broadcast(&exchange->changed);
    (void)pthread_mutex_unlock(&exchange->lock);
}

static void begin(struct exchange *exchange, const char *body)
{
    memset(exchange, 0, sizeof(*exchange));
    (void)pthread_mutex_init(&exchange->lock, NULL);
    (void)pthread_cond_init(&exchange->changed, NULL);
    exchange->request.method = MCP_HTTP_POST;
    exchange->request.content_type = ng_str_of("application/json");
    exchange->request.accept = ng_str_of("application/json, text/event-stream");
    exchange->request.body = ng_str_of(body);
    exchange->request.caller = &caller;
    exchange->request.header = no_header;
    exchange->request.on_loop = true;
    buf_init(&exchange->response.body, (size_t)4 * 1024 * 1024);
}

static char *end(struct exchange *exchange)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (mcp_http_handle(mcp, &exchange->request, &exchange->response, exchange_done,
                        exchange) == NG_OK) {
        exchange->done = true;
    }
    (void)pthread_mutex_lock(&exchange->lock);
    while (!exchange->done) {
        assert_int_equal(pthread_cond_timedwait(&exchange->changed, &exchange->lock, &until),
                         0);
    }
    (void)pthread_mutex_unlock(&exchange->lock);
    char *text = strdup(buf_cstr(&exchange->response.body));
    call_unref(exchange->response.call);
    buf_done(&exchange->response.body);
    (void)pthread_cond_destroy(&exchange->changed);
    (void)pthread_mutex_destroy(&exchange->lock);
    return text;
}

/* The answer's text; free() it. */
static char *ask(const char *body)
{
    struct exchange exchange;
    begin(&exchange, body);
    return end(&exchange);
}

static void expect(const char *body, const char *part)
{
    char *text = ask(body);
    if (strstr(text, part) == NULL) {
        fail_msg("%s\nis not in\n%s", part, text);
    }
    free(text);
}

static void expect_new(const char *method, const char *name, const char *body, const char *part)
{
    struct exchange exchange;
    begin(&exchange, body);
    exchange.request.protocol_version = ng_str_of("2026-07-28");
    exchange.request.mcp_method = ng_str_of(method);
    exchange.request.mcp_name = ng_str_of(name);
    char *text = end(&exchange);
    if (strstr(text, part) == NULL) {
        fail_msg("%s\nis not in\n%s", part, text);
    }
    free(text);
}

/* ---- lists ---- */

static char *list_from(const char *cursor)
{
    char body[1024];
    (void)snprintf(body, sizeof(body), "%s%s%s%s%s",
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\",\"params\":{",
                   cursor == NULL ? "" : "\"cursor\":\"", cursor == NULL ? "" : cursor,
                   cursor == NULL ? "" : "\"", "}}");
    return ask(body);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

/* False: it was the last page. */
static bool cursor_of(const char *text, char *cursor, size_t size)
{
    const char *at = strstr(text, "\"nextCursor\":\"");
    if (at == NULL) {
        return false;
    }
    at += strlen("\"nextCursor\":\"");
    (void)snprintf(cursor, size, "%.*s", (int)strcspn(at, "\""), at);
    return true;
}

static void pages_are_whole(void **state)
{
    char cursor[512];
    bool more = true;
    size_t own = 0;
    size_t shared = 0;
    size_t opened = 0;
    size_t pages = 0;
    (void)state;
    for (const char *from = NULL; more; from = cursor) {
        char *text = list_from(from);
        own += count_of(text, "notegate://~tester/item/i");
        shared += count_of(text, "notegate://shared/item/i");
        opened += count_of(text, "test://one/1/data");
        more = cursor_of(text, cursor, sizeof(cursor));
        pages++;
        free(text);
    }
    assert_int_equal(own, ITEMS);
    assert_int_equal(shared, ITEMS);
    assert_int_equal(opened, 1);
    assert_int_equal(pages, 5);
}

/* The entry that a page begins behind may be gone: then it goes on by number. */
static void a_gone_entry_ends_no_list(void **state)
{
    char cursor[512];
    (void)state;
    char *text = list_from(NULL);
    assert_true(cursor_of(text, cursor, sizeof(cursor)));
    assert_non_null(strstr(text, "~tester/item/i198\""));
    assert_null(strstr(text, "~tester/item/i199\""));
    free(text);
    atomic_store(&removed, 199);
    text = list_from(cursor);
    assert_non_null(strstr(text, "~tester/item/i449\""));
    free(text);
}

static void a_gone_entry_hides_none(void **state)
{
    char cursor[512];
    (void)state;
    char *text = list_from(NULL);
    assert_true(cursor_of(text, cursor, sizeof(cursor)));
    assert_non_null(strstr(text, "~tester/item/i198\""));
    free(text);
    atomic_store(&hole, 198);
    text = list_from(cursor);
    assert_non_null(strstr(text, "~tester/item/i199\""));
    assert_null(strstr(text, "~tester/item/i197\""));
    free(text);
}

static void *list_all(void *user)
{
    (void)user;
    char *text = list_from(NULL);
    free(text);
    return NULL;
}

static void serial_plugins_list_one_at_a_time(void **state)
{
    pthread_t threads[8];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, list_all, NULL), 0);
    }
    for (size_t i = 0; i < NG_COUNT(threads); i++) {
        (void)pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&most_inside), 1);
}

static void cursors_of_others_are_refused(void **state)
{
    char cursor[512];
    (void)state;
    char *text = list_from(NULL);
    assert_true(cursor_of(text, cursor, sizeof(cursor)));
    free(text);
    caller.agent = ng_str_of("other"); /* does not see ~tester */
    text = list_from(cursor);
    assert_non_null(strstr(text, "-32602"));
    free(text);
}

/* ---- reading ---- */

static void resources_are_read(void **state)
{
    (void)state;
    expect(REQUEST("resources/read", "\"uri\":\"notegate://shared/item/i%31\""),
           "\"contents\":[{\"uri\":\"notegate://shared/item/i%31\",\"mimeType\":\"text/plain\","
           "\"text\":\"shared:i1\"}]");
    expect(REQUEST("resources/read", "\"uri\":\"test://one/7/data\""),
           "\"contents\":[{\"uri\":\"test://one/7/data\",\"mimeType\":\"application/x-test\","
           "\"blob\":\"AQID\"}]");
    expect(REQUEST("resources/read", "\"uri\":\"test://alone\""), "\"blob\":\"AQID\"");
    expect_new("resources/read", "test://alone",
               REQUEST("resources/read", "\"uri\":\"test://alone\"," META),
               "\"ttlMs\":0,\"cacheScope\":\"private\"");
}

static void what_cannot_be_read(void **state)
{
    (void)state;
    expect(REQUEST("resources/read", "\"uri\":\"test://one//data\""),
           "{\"code\":-32002,\"message\":\"there is no such resource\",\"data\":{\"uri\":"
           "\"test://one//data\"}}");
    expect(REQUEST("resources/read", "\"uri\":\"notegate://~other/item/i1\""), "-32002");
    expect(REQUEST("resources/read", "\"uri\":\"notegate://shared/item/x\""),
           "there is no item");
    expect(REQUEST("resources/read", "\"uri\":\"notegate://shared/item/\""), "-32603");
    expect(REQUEST("resources/read", "\"uri\":7"), "-32602");
    expect(REQUEST("resources/read", ""), "`params.uri` must be a string");
    expect_new("resources/read", "test://none",
               REQUEST("resources/read", "\"uri\":\"test://none\"," META),
               "{\"code\":-32602,\"message\":\"there is no such resource\",\"data\":{\"uri\":"
               "\"test://none\"}}");
}

static void only_open_templates_are_listed(void **state)
{
    (void)state;
    char *text = ask(REQUEST("resources/templates/list", ""));
    assert_non_null(strstr(text, "\"uriTemplate\":\"test://one/{number}/data\""));
    assert_non_null(strstr(text, "\"uriTemplate\":\"notegate://{space}/item/{id}\""));
    assert_null(strstr(text, "test://alone"));
    assert_null(strstr(text, "revision")); /* it has no collection that keeps any */
    free(text);
}

/* ---- prompts ---- */

static void prompts_are_listed(void **state)
{
    (void)state;
    expect(
        REQUEST("prompts/list", ""),
        "{\"name\":\"json\",\"description\":\"An object.\",\"arguments\":[{\"name\":\"word\","
        "\"required\":true},{\"name\":\"broken\",\"description\":\"Breaks it.\","
        "\"required\":false}]},{\"name\":\"parts\",\"title\":\"Parts\",\"description\":"
        "\"A text and an image.\",\"arguments\":[]}");
}

static void prompts_answer(void **state)
{
    (void)state;
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":{\"word\":\"red\"}"),
           "\"result\":{\"description\":\"red\",\"messages\":[]}");
    expect(REQUEST("prompts/get", "\"name\":\"parts\""),
           "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"{}\"}},"
           "{\"role\":\"user\",\"content\":{\"type\":\"image\",\"data\":\"AQID\",\"mimeType\":"
           "\"image/png\"}}]");
    expect(REQUEST("prompts/get",
                   "\"name\":\"json\",\"arguments\":{\"word\":\"red\",\"broken\":"
                   "\"1\"}"),
           "-32603");
    expect(REQUEST("prompts/get", "\"name\":\"nothing\""), "-32603");
}

static void prompt_arguments_are_checked(void **state)
{
    (void)state;
    expect(REQUEST("prompts/get", "\"name\":\"json\""), "needs the argument `word`");
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":{\"word\":1}"),
           "`word` of `json` must be a string");
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":{\"word\":\"green\"}"),
           "must be one of [");
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":{\"wort\":\"red\"}"),
           "has no argument `wort`");
    expect(REQUEST("prompts/get", "\"name\":\"json\",\"arguments\":[]"), "-32602");
    expect(REQUEST("prompts/get", "\"name\":\"none\""), "no prompt is called");
    expect(REQUEST("prompts/get", ""), "-32602");
}

/* ---- completion ---- */

static void values_are_completed(void **state)
{
    (void)state;
    expect(REQUEST("completion/complete",
                   "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"json\"},\"argument\":{\"name\":"
                   "\"word\",\"value\":\"r\"}"),
           "{\"completion\":{\"values\":[\"red\",\"rose\"],\"total\":2,\"hasMore\":false}}");
    expect(REQUEST("completion/complete",
                   "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"test://one/{number}/data\"},"
                   "\"argument\":{\"name\":\"number\",\"value\":\"\"}"),
           "\"values\":[\"number\"]");
    expect(
        REQUEST("completion/complete",
                "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"notegate://{space}/item/{id}\"}"
                ",\"argument\":{\"name\":\"id\",\"value\":\"i44\"},\"context\":{\"arguments\":"
                "{\"space\":\"shared\"}}"),
        "\"values\":[\"i440\",\"i441\",\"i442\",\"i443\",\"i444\",\"i445\",\"i446\",\"i447\","
        "\"i448\",\"i449\"],\"total\":10,\"hasMore\":false");
    char *text = ask(REQUEST("completion/complete",
                             "\"ref\":{\"type\":\"ref/resource\",\"uri\":"
                             "\"notegate://{space}/item/{id}\"},\"argument\":{\"name\":\"id\","
                             "\"value\":\"\"}"));
    assert_int_equal(count_of(text, "\"i"), 100 + count_of(text, "\"id\""));
    assert_non_null(strstr(text, "\"hasMore\":true"));
    free(text);
    expect(REQUEST("completion/complete", "\"argument\":{\"name\":\"x\",\"value\":\"\"}"),
           "-32602");
    expect(
        REQUEST("completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"json\"}"),
        "-32602");
}

/* ---- subscriptions ---- */

static void subscriptions_are_bounded(void **state)
{
    char id[MCP_HTTP_SESSION_MAX];
    struct exchange exchange;
    (void)state;
    begin(&exchange, REQUEST("initialize", "\"protocolVersion\":\"2025-11-25\""));
    free(end(&exchange));
    (void)snprintf(id, sizeof(id), "%s", exchange.response.session_id);
    assert_int_equal(strlen(id), 64);
    for (int i = 0; i <= MCP_SUBSCRIPTIONS_MAX; i++) {
        char body[256];
        (void)snprintf(body, sizeof(body),
                       REQUEST("resources/subscribe", "\"uri\":\"notegate://shared/item/i%d\""),
                       i);
        begin(&exchange, body);
        exchange.request.session_id = ng_str_of(id);
        char *text = end(&exchange);
        bool fits = strstr(text, "\"result\":{}") != NULL;
        free(text);
        assert_int_equal(fits, i < MCP_SUBSCRIPTIONS_MAX);
    }
    expect(REQUEST("resources/subscribe", "\"uri\":\"notegate://shared/item/i\""), "-32600");
}

/* Nobody waits for a stream that the client does not take. */
static void listening_needs_an_event_stream(void **state)
{
    struct exchange exchange;
    (void)state;
    begin(&exchange, REQUEST("subscriptions/listen", "\"notifications\":{}," META));
    exchange.request.accept = ng_str_of("application/json");
    exchange.request.protocol_version = ng_str_of("2026-07-28");
    exchange.request.mcp_method = ng_str_of("subscriptions/listen");
    char *text = end(&exchange);
    assert_non_null(strstr(text, "-32600"));
    assert_int_equal(exchange.response.status, 406);
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pages_are_whole),
        TEST(a_gone_entry_ends_no_list),
        TEST(a_gone_entry_hides_none),
        TEST(serial_plugins_list_one_at_a_time),
        TEST(cursors_of_others_are_refused),
        TEST(resources_are_read),
        TEST(what_cannot_be_read),
        TEST(only_open_templates_are_listed),
        TEST(prompts_are_listed),
        TEST(prompts_answer),
        TEST(prompt_arguments_are_checked),
        TEST(values_are_completed),
        TEST(subscriptions_are_bounded),
        TEST(listening_needs_an_event_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
