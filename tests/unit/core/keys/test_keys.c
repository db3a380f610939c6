/* SPDX-License-Identifier: MIT */
/* test_keys.c - one key: its text, its times, its rate, its document, and requests for keys.
 */
#include "test_keys_rig.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/str.h"
#include "core/keys/keys_table.h"

#define NOW_MS INT64_C(1800000000000) /* 2027-01-15T08:00:00Z */

/* ---- the text ---- */

static void test_text(void **state)
{
    char text[KEY_TEXT_MAX];
    char other[KEY_TEXT_MAX];
    struct ng_str id;
    (void)state;
    assert_int_equal(key_text_make(text), NG_OK);
    assert_int_equal(key_text_make(other), NG_OK);
    assert_int_equal(strlen(text), KEY_TEXT_LEN);
    assert_string_not_equal(text, other);
    assert_true(key_text_parse(ng_str_of(text), &id));
    assert_int_equal(id.len, KEY_ID_LEN);
    assert_memory_equal(id.data, text + 3, KEY_ID_LEN);
    for (size_t i = 0; i < KEY_TEXT_LEN; i++) {
        char kept = text[i];
        text[i] = i < 3 + KEY_ID_LEN ? '0' : '-';
        assert_false(key_text_parse(ng_str_of(text), &id));
        text[i] = '\0';
        assert_false(key_text_parse(str_make(text, KEY_TEXT_LEN), &id));
        text[i] = kept;
        assert_false(key_text_parse(str_make(text, i), &id));
    }
    assert_false(key_text_parse(str_make(NULL, 0), &id));
}

/* ---- times ---- */

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int64_t time_ms; /* 0: refused */
    } cases[] = {
        {"30d", NOW_MS + INT64_C(30) * 86400000},
        {"12h", NOW_MS + INT64_C(12) * 3600000},
        {"1500ms", NOW_MS + 1500},
        {"2027-01-31", INT64_C(1801440000000)}, /* until it is over */
        {"2028-02-29", INT64_C(1835481600000)},
        {"2027-01-31T12:00:00Z", INT64_C(1801396800000)},
        {"2027-01-31t12:00:00z", INT64_C(1801396800000)},
        {"2027-01-31 12:00:00Z", INT64_C(1801396800000)},
        {"2027-01-31T12:00:00.25Z", INT64_C(1801396800000)},
        {"2027-01-31T12:00:00+01:30", INT64_C(1801391400000)},
        {"2027-01-31T12:00:00-01:30", INT64_C(1801402200000)},
        {"1999-12-31T23:59:59Z", INT64_C(946684799000)},
        {"", 0},
        {"0", 0},
        {"0d", 0},
        {"-1d", 0},
        {"1 fortnight", 0},
        {"soon", 0},
        {"2027-02-29", 0},
        {"2027-13-01", 0},
        {"2027-1-1", 0},
        {"2027-01-31T12:00:00", 0},
        {"2027-01-31T25:00:00Z", 0},
        {"2027-01-31T12:60:00Z", 0},
        {"2027-01-31T12:00Z", 0},
        {"2027-01-31T12:00:00.Z", 0},
        {"2027-01-31T12:00:00+0100", 0},
        {"2027-01-31T12:00:00Zx", 0},
        {"2027-01-31x", 0},
        {"2227-01-31", 0},
        {"99999999d", 0},
        {"99999999999999999999d", 0},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        int64_t time_ms = 0;
        int rc = key_parse_expiry(ng_str_of(cases[i].text), NOW_MS, &time_ms);
        if (time_ms != cases[i].time_ms || (rc == NG_OK) != (cases[i].time_ms != 0)) {
            fail_msg("%s gives %lld", cases[i].text, (long long)time_ms);
        }
    }
    char text[KEY_TIME_SIZE];
    rfc3339_write(NOW_MS, RFC3339_SECONDS, text);
    assert_string_equal(text, "2027-01-15T08:00:00Z");
    rfc3339_write(INT64_MAX, RFC3339_SECONDS, text); /* no year has so many digits */
    assert_true(strlen(text) > 0);
}

/* ---- the rate ---- */

static struct key *key_with_rate(double rate)
{
    static const unsigned char hash[KEY_HASH_BYTES];
    struct key_spec spec = spec_of("ada");
    spec.rate = rate;
    struct key *key = key_new("aaaaaaaaaaaa", &spec, hash);
    assert_non_null(key);
    return key;
}

static unsigned take_all(struct key *key, int64_t now_ns, int *ret_retry_s)
{
    unsigned taken = 0;
    while (taken < 1000 && key_take_at(key, now_ns, ret_retry_s)) {
        taken++;
    }
    return taken;
}

static void test_rate(void **state)
{
    int retry_s = 0;
    (void)state;
    struct key *key = key_with_rate(5);
    int64_t now_ns = 100 * SECOND_NS;
    key_fill(key, now_ns);
    assert_int_equal(take_all(key, now_ns, &retry_s), 10);
    assert_int_equal(retry_s, 1);
    assert_int_equal(take_all(key, now_ns + SECOND_NS, &retry_s), 5);
    /* A thread that comes with an older time neither gains nor loses anything. */
    assert_int_equal(take_all(key, now_ns, &retry_s), 0);
    assert_int_equal(take_all(key, now_ns + SECOND_NS, &retry_s), 0);
    assert_int_equal(take_all(key, now_ns + 1000 * SECOND_NS, &retry_s), 10);
    key_unref(key);

    key = key_with_rate(0.1); /* slow, but never none */
    key_fill(key, now_ns);
    assert_int_equal(take_all(key, now_ns, &retry_s), 1);
    assert_int_equal(retry_s, 10);
    assert_int_equal(take_all(key, now_ns + 7 * SECOND_NS, &retry_s), 0);
    assert_int_equal(retry_s, 3);
    assert_int_equal(take_all(key, now_ns + 10 * SECOND_NS, &retry_s), 1);
    key_unref(key);

    key = key_with_rate(1e-6);
    key_fill(key, now_ns);
    assert_int_equal(take_all(key, now_ns, &retry_s), 1);
    assert_int_equal(retry_s, KEY_RETRY_MAX_S);
    key_unref(key);

    key = key_with_rate(0);
    assert_int_equal(take_all(key, now_ns, &retry_s), 1000);
    key_unref(key);
    assert_true(key_take(NULL, &retry_s));
}

static void test_life(void **state)
{
    (void)state;
    struct key *key = key_with_rate(0);
    assert_true(key_live_at(key, INT64_MAX));
    atomic_store(&key_state(key)->expires_ms, 1000);
    assert_true(key_live_at(key, 999));
    assert_false(key_live_at(key, 1000));
    assert_false(key_live(key));
    atomic_store(&key_state(key)->expires_ms, 0);
    atomic_store(&key->revoked, true);
    assert_false(key_live_at(key, 0));
    assert_true(key_live(NULL));
    assert_true(key_allows_tool(NULL, "any"));
    assert_true(key_has_space(key, ng_str_of("team")));
    assert_false(key_has_space(key, ng_str_of("shared")));
    key_unref(key);
    key_unref(NULL);
}

/* ---- documents ---- */

static struct ng_doc doc_of(const char *id, struct ng_str json)
{
    struct ng_doc doc = {
        .size = sizeof(doc),
        .key = {ng_str_of(KEYS_COLLECTION), ng_str_of(KEYS_SPACE), ng_str_of(id)},
        .revision = 1,
        .json = json,
    };
    return doc;
}

static void test_record(void **state)
{
    static const struct ng_str tools[] = {{"notebook", 8}};
    unsigned char hash[KEY_HASH_BYTES];
    struct key_spec spec = spec_of("ada");
    struct key *again = NULL;
    struct buf json;
    struct buf shown;
    struct ng_writer writer;
    (void)state;
    memset(hash, 0xa5, sizeof(hash));
    spec.tools = tools;
    spec.tool_count = 1;
    spec.rate = 2.5;
    spec.created_ms = NOW_MS;
    spec.expires_ms = NOW_MS + 1;
    spec.run = true;
    struct key *key = key_new("abcdefgh2345", &spec, hash);
    buf_init(&json, KEY_JSON_MAX);
    assert_int_equal(key_write(key, &json), NG_OK);
    struct ng_doc doc = doc_of("abcdefgh2345", buf_str(&json));
    assert_int_equal(key_read(&doc, &again), NG_OK);
    assert_string_equal(again->id, key->id);
    assert_true(str_equal(again->agent, key->agent));
    assert_int_equal(again->role, NG_ROLE_WRITER);
    assert_int_equal(again->mode, NG_MODE_AGENT);
    assert_int_equal(again->space_count, 2);
    assert_true(key_has_space(again, ng_str_of("team")));
    assert_true(key_allows_tool(again, "notebook"));
    assert_false(key_allows_tool(again, "fileEditor"));
    assert_true(again->rate == 2.5);
    assert_int_equal(again->created_ms, NOW_MS);
    assert_int_equal(again->expires_ms, NOW_MS + 1);
    assert_true(again->run);
    assert_false(atomic_load(&again->revoked));
    assert_memory_equal(again->hash, hash, sizeof(hash));
    /* Visible members have no trace of the hash. */
    buf_init(&shown, KEY_JSON_MAX);
    json_writer_init(&writer, &shown);
    json_object(&writer);
    key_print(again, &writer);
    json_end(&writer);
    assert_null(strstr(buf_cstr(&shown), "hash"));
    assert_null(strstr(buf_cstr(&shown), "a5a5"));
    assert_non_null(strstr(buf_cstr(&shown), "\"created\":\"2027-01-15T08:00:00Z\""));
    buf_done(&shown);
    buf_done(&json);
    key_unref(again);
    key_unref(key);
}

/* As the versions before the right wrote it: no code is run with it. */
static void test_record_without_the_right(void **state)
{
    static const char *const before[] = {"", ",\"run\":false"};
    struct buf json;
    (void)state;
    buf_init(&json, KEY_JSON_MAX);
    for (size_t i = 0; i < NG_COUNT(before); i++) {
        struct key *key = NULL;
        buf_clear(&json);
        (void)buf_printf(&json,
                         "{\"agent\":\"a\",\"role\":\"admin\",\"mode\":\"agent\",\"spaces\":"
                         "[\"s\"],\"tools\":[]%s,\"hash\":\"" HEX "\"}",
                         before[i]);
        struct ng_doc doc = doc_of("abcdefgh2345", buf_str(&json));
        assert_int_equal(key_read(&doc, &key), NG_OK);
        assert_false(key->run);
        key_unref(key);
    }
    buf_done(&json);
}

static void test_bad_records(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"agent\":\"a\"}",
        "{\"agent\":\"a b\",\"role\":\"writer\",\"mode\":\"ask\",\"spaces\":[\"s\"],"
        "\"tools\":[],\"hash\":\"" HEX "\"}",
        "{\"agent\":\"a\",\"role\":\"king\",\"mode\":\"ask\",\"spaces\":[\"s\"],"
        "\"tools\":[],\"hash\":\"" HEX "\"}",
        "{\"agent\":\"a\",\"role\":\"writer\",\"mode\":\"ask\",\"spaces\":[1],"
        "\"tools\":[],\"hash\":\"" HEX "\"}",
        "{\"agent\":\"a\",\"role\":\"writer\",\"mode\":\"ask\",\"spaces\":[\"s\"],"
        "\"hash\":\"" HEX "\"}",
        "{\"agent\":\"a\",\"role\":\"writer\",\"mode\":\"ask\",\"spaces\":[\"s\"],"
        "\"tools\":[],\"hash\":\"00\"}",
        "{\"agent\":\"a\",\"role\":\"writer\",\"mode\":\"ask\",\"spaces\":[\"s\"],"
        "\"tools\":[],\"run\":1,\"hash\":\"" HEX "\"}",
        "{\"agent\":\"a\",\"role\":\"writer\",\"mode\":\"ask\",\"spaces\":[\"s\"],"
        "\"tools\":[],\"expires\":\"x\",\"hash\":\"" HEX "\"}",
        "{\"agent\":\"a\",\"role\":\"writer\",\"mode\":\"ask\",\"spaces\":[\"s\"],"
        "\"tools\":[],\"hash\":"
        "\"x0112233445566778899aabbccddeeff00112233445566778899aabbccddeef"
        "f\"}",
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        struct key *key = NULL;
        struct ng_doc doc = doc_of("abcdefgh2345", ng_str_of(bad[i]));
        if (key_read(&doc, &key) != NG_EINVAL || key != NULL) {
            fail_msg("taken for a key: %s", bad[i]);
        }
    }
}

/* ---- requests for keys ---- */

static void expect_spec(struct harness *harness, const char *json, const char *says)
{
    struct call *call = harness_new_call(harness);
    const struct ng_value *body = NULL;
    struct key_spec spec;
    struct json_error error;
    assert_int_equal(json_parse(&call->arena, ng_str_of(json), 8, &body, &error), NG_OK);
    int rc = keys_read_spec(call, body, &spec);
    assert_int_equal(rc, says == NULL ? NG_OK : NG_EINVAL);
    if (says != NULL && strstr(call->staged.message.data, says) == NULL) {
        fail_msg("%s: %s", json, call->staged.message.data);
    }
    call_unref(call);
}

static void test_specs(void **state)
{
    struct harness harness;
    (void)state;
    harness_open(&harness, plain);
    struct call *call = harness_new_call(&harness);
    const struct ng_value *body = NULL;
    struct key_spec spec;
    struct json_error error;
    struct ng_str text = ng_str_of("{\"agent\":\"ada\",\"spaces\":[\"team\",\"~ada\",\"team\"],"
                                   "\"tools\":[\"notebook\",\"notebook\"],\"rate\":\"6/min\"}");
    assert_int_equal(json_parse(&call->arena, text, 8, &body, &error), NG_OK);
    assert_int_equal(keys_read_spec(call, body, &spec), NG_OK);
    assert_int_equal(spec.space_count, 2);
    assert_true(str_is(spec.spaces[0], "team"));
    assert_true(str_is(spec.spaces[1], "~ada"));
    assert_true(spec.first_is_default);
    assert_int_equal(spec.tool_count, 1);
    assert_true(spec.rate > 0.0999 && spec.rate < 0.1001);
    assert_int_equal(spec.role, NG_ROLE_WRITER);
    assert_int_equal(spec.mode, NG_MODE_AGENT);
    call_unref(call);
    expect_spec(&harness, "{\"agent\":\"a\",\"rate\":5}", NULL);
    expect_spec(&harness, "{\"agent\":\"a\",\"rate\":\"100/h\"}", NULL);
    expect_spec(&harness, "{\"agent\":\"a\",\"role\":null,\"spaces\":null,\"tools\":null}",
                NULL);
    expect_spec(&harness, "{\"agent\":\"a\",\"role\":\"admin\",\"spaces\":[\"~b\"]}", NULL);
    expect_spec(&harness, "{\"agent\":\"a\",\"spaces\":[\"~b\"]}", "another agent's own");
    expect_spec(&harness, "{\"agent\":\"a\",\"spaces\":[\"~\"]}", "the space is");
    expect_spec(&harness, "{\"agent\":\"a\",\"rate\":\"5/y\"}", "the rate is");
    expect_spec(&harness, "{\"agent\":\"a\",\"rate\":\"\"}", "the rate is");
    expect_spec(&harness, "{\"agent\":\"a\",\"rate\":1e9}", "the rate is");
    expect_spec(&harness, "{\"agent\":\"a\",\"rate\":true}", "the rate is");
    expect_spec(&harness, "{\"agent\":\"a\",\"tools\":[\"none\"]}", "no tool is called");
    expect_spec(&harness, "{\"agnet\":\"a\"}", "is not a member of a key");
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_record_without_the_right),
        cmocka_unit_test(test_specs),
    };
    log_set_level(NG_LOG_ERROR); /* thousands of keys come and go */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
