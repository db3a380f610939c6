/* SPDX-License-Identifier: MIT */
/* test_gateway_audit.c - when a gateway has an audit log, and the entries of its events. */
#include "test_gateway_audit_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cluster/cluster.h"
#include "core/dispatch/audit.h"
#include "core/gateway/gateway_open.h"
#include "core/keys/keys.h"

static const char *const always[] = {"plugins=", "documents=sqlite", "audit=on", NULL};
static const char *const keyed[] = {"plugins=", "documents=sqlite", NULL};
static const char *const never[] = {"plugins=", "documents=sqlite", "audit=off", NULL};

static void add_key(struct harness *harness, char id[64])
{
    char text[KEY_TEXT_MAX];
    struct key *key = NULL;
    const struct key_spec spec = {
        .agent = ng_str_of("ann"), .role = NG_ROLE_WRITER, .mode = NG_MODE_AGENT};
    struct call *call = harness_new_call(harness);
    call->face = "cli";
    assert_int_equal(keys_add(harness->gateway->keys, call, &spec, text, &key), NG_OK);
    (void)snprintf(id, 64, "%s", key->id);
    key_unref(key);
    call_unref(call);
}

static void revoke_key(struct harness *harness, const char *id)
{
    struct key *key = NULL;
    struct call *call = harness_new_call(harness);
    assert_int_equal(keys_revoke(harness->gateway->keys, call, ng_str_of(id), NULL, &key),
                     NG_OK);
    key_unref(key);
    call_unref(call);
}

static void test_start_and_stop(void **state)
{
    struct harness harness;
    char wanted[128];
    (void)state;
    harness_open(&harness, always);
    (void)snprintf(wanted, sizeof(wanted), "%s", cluster_id(harness.gateway->cluster).data);
    gateway_tell_start(harness.gateway);
    char *text = audit_text(&harness);
    assert_non_null(text);
    assert_int_equal(audit_count(text, "{"), 2);
    const char *start = strstr(text, "\"operation\":\"start\",\"outcome\":\"ok\"}\n");
    const char *stop = strstr(text, "\"operation\":\"stop\",\"outcome\":\"ok\"}\n");
    assert_true(start != NULL && stop != NULL && start < stop);
    free(text);
    /* The log goes on, under the name of the gateway. */
    gateway_tell_start(harness.gateway);
    text = audit_text(&harness);
    assert_int_equal(audit_count(text, "{"), 4);
    free(text);
    char path[320];
    char line[256] = "";
    (void)snprintf(path, sizeof(path), "%s/audit/key.pub", harness.dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    (void)fclose(file);
    assert_true(strncmp(line, "notegate/", 9) == 0);
    assert_true(strncmp(line + 9, wanted, CLUSTER_ID_LEN) == 0);
    assert_int_equal(line[9 + CLUSTER_ID_LEN], '+');
    harness_close(&harness);
}

static void test_a_command_tells_no_start(void **state)
{
    struct harness harness;
    (void)state;
    harness_open(&harness, always);
    char *text = audit_text(&harness);
    assert_string_equal(text, "");
    free(text);
    harness_close(&harness);
}

static void test_auto_goes_by_keys(void **state)
{
    struct harness harness;
    char id[64];
    (void)state;
    harness_open(&harness, keyed);
    gateway_tell_start(harness.gateway);
    assert_null(audit_text(&harness));
    add_key(&harness, id);
    char *text = audit_text(&harness);
    assert_int_equal(audit_count(text, "{\"v\""), 1);
    char *line = audit_line(text, "\"operation\":\"key_add\"");
    assert_non_null(strstr(line, "\"face\":\"cli\",\"agent\":\"~"));
    assert_non_null(strstr(line, "\"docs\":[{\"collection\":\"keys\",\"id\":\"~"));
    free(line);
    free(text);
    gateway_tell_start(harness.gateway);
    revoke_key(&harness, id); /* that is told, and nothing after it */
    text = audit_text(&harness);
    assert_int_equal(audit_count(text, "\"operation\":\"start\""), 1);
    assert_int_equal(audit_count(text, "\"operation\":\"key_revoke\""), 1);
    assert_int_equal(audit_count(text, "\"operation\":\"stop\""), 0);
    free(text);
    gateway_tell_start(harness.gateway);
    text = audit_text(&harness);
    assert_int_equal(audit_count(text, "\"operation\":\"start\""), 1);
    free(text);
    harness_close(&harness);
}

static void test_off(void **state)
{
    struct harness harness;
    char id[64];
    (void)state;
    harness_open(&harness, never);
    gateway_tell_start(harness.gateway);
    add_key(&harness, id);
    assert_null(audit_text(&harness));
    harness_close(&harness);
}

/* Requests that are refused before their call: one a second for each agent and code. */
static void test_refused_requests(void **state)
{
    struct harness harness;
    (void)state;
    harness_open(&harness, always);
    for (int i = 0; i < 100; i++) {
        audit_event(&(struct audit_event){
            .gateway = harness.gateway,
            .what = "refused",
            .outcome = "UNAUTHENTICATED",
            .face = "http",
            .is_refusal = true,
            .remote = ng_str_of("10.0.0.1"),
            .target = ng_str_of("/v1/secret-path"),
            .traceparent = ng_str_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        });
    }
    char *text = audit_text(&harness);
    size_t count = audit_count(text, "\"outcome\":\"UNAUTHENTICATED\"");
    assert_true(count >= 1 && count < 100);
    assert_int_equal(audit_count(text, "\"trace\":\"0af7651916cd43dd8448eb211c80319c\""),
                     count);
    assert_null(strstr(text, "secret-path"));
    assert_null(strstr(text, "10.0.0.1"));
    free(text);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_and_stop),
        cmocka_unit_test(test_a_command_tells_no_start),
        cmocka_unit_test(test_auto_goes_by_keys),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_refused_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
