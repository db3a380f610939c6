/* SPDX-License-Identifier: MIT */
/* test_mcp_messages.c - JSON-RPC messages, versions, headers and sessions, each by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "api/session/mcp_session.h"
#include "core/base/str.h"
#include "core/keys/keys.h"

struct read {
    struct arena arena;
    struct mcp_message message;
    const char *error;
    int rc;
};

static void read_text(struct read *read, const char *text)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    memset(read, 0, sizeof(*read));
    arena_init(&read->arena, 0);
    assert_int_equal(json_parse(&read->arena, ng_str_of(text), 16, &value, &error), NG_OK);
    read->rc = mcp_message_read(value, &read->message, &read->error);
}

static void message_kinds(void **state)
{
    static const struct {
        const char *text;
        enum mcp_kind kind;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}", MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", MCP_NOTIFICATION},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", MCP_RESPONSE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", MCP_RESPONSE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null,\"result\":{},\"error\":null}",
         MCP_RESPONSE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null,\"error\":{}}", MCP_RESPONSE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", MCP_RESPONSE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":null}", MCP_REQUEST},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct read read;
        read_text(&read, cases[i].text);
        assert_int_equal(read.rc, NG_OK);
        assert_int_equal(read.message.kind, cases[i].kind);
        arena_done(&read.arena);
    }
}

static void message_faults(void **state)
{
    static const char *const cases[] = {
        "1",
        "{}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}",
        "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"x\"}",
        "{\"id\":1,\"method\":\"x\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"x\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":1}",
        "{\"jsonrpc\":\"2.0\",\"id\":1}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":null}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null,\"params\":null}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":null}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":1}}",
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct read read;
        read_text(&read, cases[i]);
        assert_int_equal(read.rc, NG_EINVAL);
        assert_non_null(read.error);
        arena_done(&read.arena);
    }
}

static void ids_are_verbatim(void **state)
{
    static const char *const ids[] = {"12345678901234567890123", "-0", "\"a\\\"\\u0001\"",
                                      "\"\"", "1e2"};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        struct read read;
        struct buf text;
        struct buf expected;
        buf_init(&text, 1024);
        buf_init(&expected, 1024);
        buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"x\"}", ids[i]);
        read_text(&read, buf_cstr(&text));
        assert_int_equal(read.rc, NG_OK);
        buf_clear(&text);
        mcp_print_error(&text, read.message.id, MCP_INVALID_PARAMS, ng_str_of("no"),
                        ng_str_of("[1]"));
        buf_printf(&expected,
                   "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32602,\"message\":"
                   "\"no\",\"data\":[1]}}",
                   ids[i]);
        assert_string_equal(buf_cstr(&text), buf_cstr(&expected));
        buf_done(&text);
        buf_done(&expected);
        arena_done(&read.arena);
    }
}

static void early_ids(void **state)
{
    static const char *const cases[][2] = {
        {"{\"id\":7,\"method\":\"x\",\"params\":{\"a\":\"", "7"},
        {"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":\"a,b\",\"x\":[1,", "\"a,b\""},
        {"{\"id\":7,\"x\":\"\xc3", "7"},
        {"{\"id\":7", "null"}, /* and more digits? */
        {"{\"a\":1,\"id\":7", "null"},
        {"{\"method\":\"x\",\"params\":{\"id\":7,\"a\":", "null"},
        {"{\"id\":7,\"id\":8,\"x\":1", "null"},
        {"{\"id\":7,\"result\":{},\"x\":1", "null"},
        {"[{\"id\":7,\"method\":\"x\"},{", "null"},
        {"{\"id\":null,\"x\":1", "null"},
        {"", "null"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct arena arena;
        struct buf out;
        arena_init(&arena, 0);
        buf_init(&out, 100);
        mcp_print_id(&out, mcp_message_early_id(&arena, ng_str_of(cases[i][0])));
        assert_string_equal(buf_cstr(&out), cases[i][1]);
        buf_done(&out);
        arena_done(&arena);
    }
}

static void ids_differ_by_kind(void **state)
{
    struct ng_value number = {.type = NG_TYPE_NUMBER, .text = {"1", 1}};
    struct ng_value string = {.type = NG_TYPE_STRING, .text = {"1", 1}};
    (void)state;
    assert_true(mcp_id_equal(&number, &number));
    assert_false(mcp_id_equal(&number, &string));
    assert_false(mcp_id_equal(NULL, NULL));
}

/* ---- headers ---- */

static void header_values(void **state)
{
    static const struct {
        const char *header, *value;
        bool equal;
    } cases[] = {
        {"abc", "abc", true},
        {" \tabc  ", "abc", true},
        {"abc", "abcd", false},
        {"ABC", "abc", false},
        {"", "", true},
        {"=?base64?SGVsbG8=?=", "Hello", true},
        {"  =?base64?SGVsbG8=?= ", "Hello", true},
        {"=?base64?SGVsbG8?=", "Hello", false},
        {"=?base64?SGVs!!!bG8=?=", "Hello", false},
        {"=?base64?SGVsbG9=?=", "Hello", false}, /* bits left over */
        {"=?base64?SGVsbG8=", "=?base64?SGVsbG8=", true},
        {"=?BASE64?SGVsbG8=?=", "Hello", false},
        {"=?base64?"
         "?=",
         "", true},
        {"=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, \xe4\xb8\x96\xe7\x95\x8c", true},
        {"=?base64?SGVsbG8=?=", "Hell", false},
        {"=?base64?SGVsbG8=?=", "Hello!", false},
        {"=?base64?====?=", "", false},
        {"=?base64?=?=", "", false},
        {"h\xc3\xa9", "h\xc3\xa9", false}, /* must be coded */
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        if (mcp_header_equal(ng_str_of(cases[i].header), ng_str_of(cases[i].value)) !=
            cases[i].equal) {
            fail_msg("case %zu: %s and %s", i, cases[i].header, cases[i].value);
        }
    }
}

/* ---- versions ---- */

#define META(version)                                                                          \
    "\"_meta\":{\"" MCP_META_VERSION "\":\"" version "\",\"" MCP_META_CAPABILITIES "\":{}}"
#define REQUEST(method, params)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"

#define LONG_VERSION                                                                           \
    "2030-01-01-2030-01-01-2030-01-01-2030-01-01-2030-01-01-2030-01-01-2030-01-01-2030-01-01"

struct version_case {
    const char *text;
    const char *version, *method, *name; /* headers */
    int code;                            /* 0: accepted */
    enum mcp_version expected;
};

static void check_version(const struct version_case *test, bool has_headers,
                          enum mcp_version session)
{
    struct read read;
    struct mcp_terms terms;
    struct mcp_headers headers = {.version = ng_str_of(test->version),
                                  .method = ng_str_of(test->method),
                                  .name = ng_str_of(test->name)};
    read_text(&read, test->text);
    assert_int_equal(read.rc, NG_OK);
    bool fits =
        mcp_version_decide(&read.message, has_headers ? &headers : NULL, session, &terms);
    if (terms.code != test->code || fits != (test->code == 0)) {
        fail_msg("%s: code %d (%s), not %d", test->text, terms.code, terms.message, test->code);
    }
    if (fits) {
        assert_int_equal(terms.version, test->expected);
    } else {
        assert_int_equal(terms.status, 400);
        assert_true(terms.message[0] != '\0');
        assert_true(terms.requested.len <= 64);
    }
    arena_done(&read.arena);
}

static void eras_over_http(void **state)
{
    static const struct version_case cases[] = {
        /* the handshake versions */
        {REQUEST("tools/list", ""), NULL, NULL, NULL, 0, MCP_2025_03_26},
        {REQUEST("tools/list", ""), "2025-06-18", NULL, NULL, 0, MCP_2025_06_18},
        {REQUEST("tools/list", ""), " 2024-11-05 ", NULL, NULL, 0, MCP_2024_11_05},
        {REQUEST("tools/list", "\"_meta\":{\"progressToken\":1}"), "2025-11-25", NULL, NULL, 0,
         MCP_2025_11_25},
        {REQUEST("initialize", ""), NULL, NULL, NULL, 0, MCP_2025_03_26},
        {REQUEST("initialize", ""), "1999-01-01", NULL, NULL, MCP_UNSUPPORTED_VERSION, 0},
        /* the stateless version */
        {REQUEST("tools/list", META("2026-07-28")), "2026-07-28", "tools/list", NULL, 0,
         MCP_2026_07_28},
        {REQUEST("tools/list", META("2026-07-28")), "2026-07-28", " tools/list ", NULL, 0,
         MCP_2026_07_28},
        {REQUEST("tools/list", META("2026-07-28")), "2026-07-28", NULL, NULL,
         MCP_HEADER_MISMATCH, 0},
        {REQUEST("tools/list", META("2026-07-28")), "2026-07-28", "TOOLS/LIST", NULL,
         MCP_HEADER_MISMATCH, 0},
        {REQUEST("tools/list", META("2026-07-28")), NULL, "tools/list", NULL,
         MCP_HEADER_MISMATCH, 0},
        {REQUEST("tools/list", META("2026-07-28")), "2025-11-25", "tools/list", NULL,
         MCP_HEADER_MISMATCH, 0},
        {REQUEST("tools/list", META("v9")), "2026-07-28", "tools/list", NULL,
         MCP_HEADER_MISMATCH, 0},
        {REQUEST("tools/list", META("v9")), "v9", "tools/list", NULL, MCP_UNSUPPORTED_VERSION,
         0},
        {REQUEST("tools/list", META("2025-11-25")), "2025-11-25", "tools/list", NULL,
         MCP_UNSUPPORTED_VERSION, 0},
        {REQUEST("tools/list", ""), "2026-07-28", "tools/list", NULL, MCP_INVALID_PARAMS, 0},
        {REQUEST("tools/list", "\"_meta\":{\"" MCP_META_VERSION "\":7}"), "2026-07-28",
         "tools/list", NULL, MCP_INVALID_PARAMS, 0},
        {REQUEST("tools/list", "\"_meta\":{\"" MCP_META_VERSION "\":\"2026-07-28\"}"),
         "2026-07-28", "tools/list", NULL, MCP_INVALID_PARAMS, 0},
        {REQUEST("tools/list", "\"_meta\":{\"" MCP_META_VERSION "\":\"2026-07-28\",\"" //
                 MCP_META_CAPABILITIES "\":{},\"" MCP_META_LOG_LEVEL "\":\"loud\"}"),
         "2026-07-28", "tools/list", NULL, MCP_INVALID_PARAMS, 0},
        {REQUEST("tools/call", "\"name\":\"a\"," META("2026-07-28")), "2026-07-28",
         "tools/call", "a", 0, MCP_2026_07_28},
        {REQUEST("tools/call", "\"name\":\"a\"," META("2026-07-28")), "2026-07-28",
         "tools/call", "=?base64?YQ==?=", 0, MCP_2026_07_28},
        {REQUEST("tools/call", "\"name\":\"a\"," META("2026-07-28")), "2026-07-28",
         "tools/call", "b", MCP_HEADER_MISMATCH, 0},
        {REQUEST("tools/call", "\"name\":\"a\"," META("2026-07-28")), "2026-07-28",
         "tools/call", NULL, MCP_HEADER_MISMATCH, 0},
        {REQUEST("resources/read", "\"uri\":\"a:b\"," META("2026-07-28")), "2026-07-28",
         "resources/read", "a:c", MCP_HEADER_MISMATCH, 0},
        {REQUEST("tasks/get", "\"taskId\":\"t\"," META("2026-07-28")), "2026-07-28",
         "tasks/get", NULL, MCP_HEADER_MISMATCH, 0},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", "2026-07-28", NULL, NULL, 0,
         MCP_2026_07_28},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        check_version(&cases[i], true, MCP_VERSION_NONE);
    }
}

static void eras_without_headers(void **state)
{
    static const struct version_case cases[] = {
        {REQUEST("tools/list", ""), NULL, NULL, NULL, 0, MCP_2025_11_25},
        {REQUEST("tools/call", "\"name\":\"a\"," META("2026-07-28")), NULL, NULL, NULL, 0,
         MCP_2026_07_28},
        {REQUEST("tools/list", META("2030-01-01")), NULL, NULL, NULL, MCP_UNSUPPORTED_VERSION,
         0},
        {REQUEST("tools/list", META(LONG_VERSION)), NULL, NULL, NULL, MCP_UNSUPPORTED_VERSION,
         0},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        check_version(&cases[i], false, MCP_2025_11_25);
    }
}

/* ---- sessions ---- */

static struct mcp_session *open_for(struct mcp_sessions *sessions, const char *owner)
{
    struct mcp_session *session = NULL;
    assert_int_equal(
        mcp_sessions_open(sessions, ng_str_of(owner), NULL, MCP_2025_11_25, false, &session),
        NG_OK);
    return session;
}

static void sessions_belong_to_their_owner(void **state)
{
    struct mcp_sessions *sessions = NULL;
    (void)state;
    assert_int_equal(mcp_sessions_new(60000, &sessions), NG_OK);
    struct mcp_session *one = open_for(sessions, "a 1");
    struct mcp_session *two = open_for(sessions, "a 1");
    assert_int_equal(strlen(one->id), MCP_SESSION_ID_LEN);
    assert_string_not_equal(one->id, two->id);
    struct ng_str id = ng_str_of(one->id);
    struct mcp_session *found = mcp_sessions_find(sessions, id, ng_str_of("a 1"));
    assert_ptr_equal(found, one);
    mcp_session_unref(found);
    assert_null(mcp_sessions_find(sessions, id, ng_str_of("a 2")));
    assert_null(mcp_sessions_find(sessions, ng_str_of("x"), ng_str_of("a 1")));
    assert_null(mcp_sessions_find(sessions, ng_str_of(""), ng_str_of("a 1")));
    assert_false(mcp_sessions_end(sessions, id, ng_str_of("b 1")));
    assert_true(mcp_sessions_end(sessions, id, ng_str_of("a 1")));
    assert_false(mcp_sessions_end(sessions, id, ng_str_of("a 1")));
    assert_null(mcp_sessions_find(sessions, id, ng_str_of("a 1")));
    assert_int_equal(mcp_sessions_count(sessions), 1);
    mcp_session_unref(one);
    mcp_session_unref(two);
    mcp_sessions_free(sessions);
}

static void sessions_end_with_silence(void **state)
{
    struct mcp_sessions *sessions = NULL;
    (void)state;
    assert_int_equal(mcp_sessions_new(1000, &sessions), NG_OK);
    struct mcp_session *used = open_for(sessions, "a");
    struct mcp_session *silent = open_for(sessions, "a");
    mcp_sessions_age(sessions, 900);
    mcp_session_unref(mcp_sessions_find(sessions, ng_str_of(used->id), ng_str_of("a")));
    mcp_sessions_age(sessions, 900);
    assert_null(mcp_sessions_find(sessions, ng_str_of(silent->id), ng_str_of("a")));
    struct mcp_session *found =
        mcp_sessions_find(sessions, ng_str_of(used->id), ng_str_of("a"));
    assert_ptr_equal(found, used);
    assert_int_equal(mcp_sessions_count(sessions), 1);
    mcp_session_unref(found);
    mcp_session_unref(used);
    mcp_session_unref(silent);
    mcp_sessions_free(sessions);
}

/* Silence begins when the last call or stream ended, not when it began. */
static void a_busy_session_is_not_silent(void **state)
{
    struct mcp_sessions *sessions = NULL;
    (void)state;
    assert_int_equal(mcp_sessions_new(1000, &sessions), NG_OK);
    struct mcp_session *busy = open_for(sessions, "a");
    atomic_store(&busy->busy, 1);
    mcp_sessions_age(sessions, 900);
    mcp_sessions_sweep(sessions);
    atomic_store(&busy->busy, 0);
    mcp_sessions_age(sessions, 900);
    struct mcp_session *found =
        mcp_sessions_find(sessions, ng_str_of(busy->id), ng_str_of("a"));
    assert_ptr_equal(found, busy);
    mcp_session_unref(found);
    mcp_session_unref(busy);
    mcp_sessions_free(sessions);
}

static void a_session_ends_with_its_key(void **state)
{
    struct mcp_sessions *sessions = NULL;
    struct mcp_session *session = NULL;
    struct key key;
    (void)state;
    memset(&key, 0, sizeof(key));
    atomic_init(&key.refs, 1);
    assert_int_equal(mcp_sessions_new(1000, &sessions), NG_OK);
    assert_int_equal(
        mcp_sessions_open(sessions, ng_str_of("a k"), &key, MCP_2025_11_25, false, &session),
        NG_OK);
    mcp_session_unref(open_for(sessions, "b"));
    mcp_sessions_sweep(sessions);
    assert_int_equal(mcp_sessions_count(sessions), 2);
    atomic_store(&key.revoked, true);
    mcp_sessions_sweep(sessions);
    assert_int_equal(mcp_sessions_count(sessions), 1);
    assert_true(mcp_session_has_ended(session));
    mcp_session_unref(session);
    assert_int_equal(atomic_load(&key.refs), 1);
    mcp_sessions_free(sessions);
}

static void the_busy_stay_when_there_are_too_many(void **state)
{
    struct mcp_sessions *sessions = NULL;
    (void)state;
    assert_int_equal(mcp_sessions_new(60000, &sessions), NG_OK);
    struct mcp_session *busy = open_for(sessions, "a");
    atomic_store(&busy->busy, 1);
    for (size_t i = 0; i < MCP_SESSIONS_PER_CALLER_MAX + 10; i++) {
        mcp_session_unref(open_for(sessions, "a"));
    }
    assert_int_equal(mcp_sessions_count(sessions), MCP_SESSIONS_PER_CALLER_MAX);
    assert_false(mcp_session_has_ended(busy));
    mcp_session_unref(busy);
    mcp_sessions_free(sessions);
}

/* For any number of keys; its session with the longest silence is removed. */
static void an_agent_has_half_of_the_sessions(void **state)
{
    struct mcp_sessions *sessions = NULL;
    char owner[32];
    (void)state;
    assert_int_equal(mcp_sessions_new(60000, &sessions), NG_OK);
    struct mcp_session *other = open_for(sessions, "greed k1");
    struct mcp_session *busy = open_for(sessions, "greedy k0");
    struct mcp_session *first = open_for(sessions, "greedy k0");
    atomic_store(&busy->busy, 1);
    for (size_t i = 0; i < MCP_SESSIONS_PER_AGENT_MAX; i++) {
        (void)snprintf(owner, sizeof(owner), "greedy k%zu", i % 64);
        mcp_session_unref(open_for(sessions, owner));
    }
    assert_int_equal(mcp_sessions_count(sessions), MCP_SESSIONS_PER_AGENT_MAX + 1);
    assert_true(mcp_session_has_ended(first));
    assert_false(mcp_session_has_ended(busy));
    assert_false(mcp_session_has_ended(other));
    mcp_session_unref(first);
    mcp_session_unref(busy);
    mcp_session_unref(other);
    mcp_sessions_free(sessions);
}

static void sessions_are_bounded(void **state)
{
    struct mcp_sessions *sessions = NULL;
    char owner[32];
    (void)state;
    assert_int_equal(mcp_sessions_new(60000, &sessions), NG_OK);
    struct mcp_session *first = open_for(sessions, "greedy");
    for (size_t i = 0; i < MCP_SESSIONS_PER_CALLER_MAX + 10; i++) {
        mcp_session_unref(open_for(sessions, "greedy"));
    }
    assert_int_equal(mcp_sessions_count(sessions), MCP_SESSIONS_PER_CALLER_MAX);
    assert_null(mcp_sessions_find(sessions, ng_str_of(first->id), ng_str_of("greedy")));
    mcp_session_unref(first);
    for (size_t i = 0; i < MCP_SESSIONS_MAX - MCP_SESSIONS_PER_CALLER_MAX; i++) {
        (void)snprintf(owner, sizeof(owner), "agent%zu", i);
        mcp_session_unref(open_for(sessions, owner));
    }
    /* In a full table the agent with the most sessions gives way. */
    mcp_session_unref(open_for(sessions, "late"));
    assert_int_equal(mcp_sessions_count(sessions), MCP_SESSIONS_MAX);
    for (size_t i = 0; i < MCP_SESSIONS_PER_CALLER_MAX - 2; i++) {
        (void)snprintf(owner, sizeof(owner), "more%zu", i);
        mcp_session_unref(open_for(sessions, owner));
    }
    struct mcp_session *none = NULL;
    assert_int_equal(
        mcp_sessions_open(sessions, ng_str_of("agent0"), NULL, MCP_2025_11_25, false, &none),
        NG_EBUSY);
    mcp_sessions_age(sessions, 60001 * (int64_t)2);
    mcp_session_unref(open_for(sessions, "late"));
    assert_int_equal(mcp_sessions_count(sessions), 1);
    mcp_sessions_free(sessions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_kinds),
        cmocka_unit_test(message_faults),
        cmocka_unit_test(ids_are_verbatim),
        cmocka_unit_test(early_ids),
        cmocka_unit_test(ids_differ_by_kind),
        cmocka_unit_test(header_values),
        cmocka_unit_test(eras_over_http),
        cmocka_unit_test(eras_without_headers),
        cmocka_unit_test(sessions_belong_to_their_owner),
        cmocka_unit_test(sessions_end_with_silence),
        cmocka_unit_test(a_busy_session_is_not_silent),
        cmocka_unit_test(a_session_ends_with_its_key),
        cmocka_unit_test(the_busy_stay_when_there_are_too_many),
        cmocka_unit_test(an_agent_has_half_of_the_sessions),
        cmocka_unit_test(sessions_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
