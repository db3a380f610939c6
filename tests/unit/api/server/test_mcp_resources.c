/* SPDX-License-Identifier: MIT */
/* test_mcp_resources.c - lists of resources and their pages, reading, subscriptions.
 */
#include "test_mcp_resources_rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/mcp_notifier.h"
#include "core/base/str.h"

#define META                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"

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

/* A list that waits gives its worker back; what it gave before does not count. */
static void lists_are_asked_again(void **state)
{
    (void)state;
    for (int times = 0; times <= 3; times++) {
        char cursor[512];
        bool more = true;
        size_t items = 0;
        atomic_store(&later, times);
        for (const char *from = NULL; more; from = cursor) {
            char *text = list_from(from);
            items += count_of(text, "/item/i");
            more = cursor_of(text, cursor, sizeof(cursor));
            free(text);
        }
        assert_int_equal(items, 2 * ITEMS);
        assert_int_equal(atomic_load(&later), 0);
        atomic_store(&later, times);
        char *text =
            ask(REQUEST("completion/complete",
                        "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"notegate://{space}/item/"
                        "{id}\"},\"argument\":{\"name\":\"id\",\"value\":\"i00\"}"));
        assert_int_equal(count_of(text, "\"i00"), 10);
        assert_int_equal(atomic_load(&later), 0);
        free(text);
    }
    atomic_store(&later, 2);
    atomic_store(&later_ends, NG_EFAILED);
    expect(REQUEST("resources/list", ""), "what it asks for is gone");
    assert_int_equal(atomic_load(&later), 1); /* and was not asked again */
    atomic_store(&later, -1);
    expect(REQUEST("resources/list", ""), "took no deferral");
}

/* The code of a plugin goes on with things of its own. */
static void a_read_goes_on_later(void **state)
{
    (void)state;
    expect(REQUEST("resources/read", "\"uri\":\"notegate://shared/item/late\""),
           "\"contents\":[{\"uri\":\"notegate://shared/item/late\",\"mimeType\":\"text/plain\","
           "\"text\":\"late\"}]");
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
    static const char *const nothing[] = {
        REQUEST("resources/read", "\"uri\":\"notegate://shared/item/\""),
        REQUEST("resources/read", "\"uri\":\"notegate://shared/item/late_nothing\""),
        REQUEST("resources/read", "\"uri\":\"notegate://shared/item/link\""),
    };
    (void)state;
    expect(REQUEST("resources/read", "\"uri\":\"test://one//data\""),
           "{\"code\":-32002,\"message\":\"there is no such resource\",\"data\":{\"uri\":"
           "\"test://one//data\"}}");
    expect(REQUEST("resources/read", "\"uri\":\"notegate://~other/item/i1\""), "-32002");
    expect(REQUEST("resources/read", "\"uri\":\"notegate://shared/item/x\""),
           "there is no item");
    for (size_t i = 0; i < NG_COUNT(nothing); i++) {
        expect(nothing[i], "-32603");
        expect(nothing[i], "the resource was read, but returned no content");
    }
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

/* No thread waits for a stream that the client does not read. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pages_are_whole),
        TEST(a_gone_entry_ends_no_list),
        TEST(a_gone_entry_hides_none),
        TEST(serial_plugins_list_one_at_a_time),
        TEST(lists_are_asked_again),
        TEST(a_read_goes_on_later),
        TEST(cursors_of_others_are_refused),
        TEST(resources_are_read),
        TEST(what_cannot_be_read),
        TEST(only_open_templates_are_listed),
        TEST(subscriptions_are_bounded),
        TEST(listening_needs_an_event_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
