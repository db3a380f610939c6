/* SPDX-License-Identifier: MIT */
/* test_mcp_state.c - state that goes through the client is accepted only unchanged, in time,
 * and for the same request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/protocol/mcp_state.h"
#include "core/base/str.h"

#define NOW ((int64_t)1700000000000)

struct fixture {
    struct mcp_seal *seal;
    struct mcp_binding binding;
    struct arena arena;
    struct buf text;
};

static struct fixture fixture;

static void bind_to(const char *caller, const char *request, struct mcp_binding *ret)
{
    struct ng_str pieces[] = {ng_str_of(caller), ng_str_of(request)};
    assert_int_equal(mcp_binding_make(pieces, NG_COUNT(pieces), ret), NG_OK);
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(mcp_seal_new(NULL, &fixture.seal), NG_OK);
    bind_to("ada", "{}", &fixture.binding);
    arena_init(&fixture.arena, 0);
    buf_init(&fixture.text, 4 * MCP_SEAL_PAYLOAD_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mcp_seal_free(fixture.seal);
    arena_done(&fixture.arena);
    buf_done(&fixture.text);
    return 0;
}

static struct ng_str seal(struct ng_str payload)
{
    buf_clear(&fixture.text);
    assert_int_equal(
        mcp_seal_close(fixture.seal, &fixture.binding, NOW, payload, &fixture.text), NG_OK);
    return buf_str(&fixture.text);
}

static int unseal(struct ng_str text, int64_t now, struct ng_str *ret)
{
    const char *why = NULL;
    int rc =
        mcp_seal_open(fixture.seal, &fixture.binding, now, text, &fixture.arena, ret, &why);
    assert_true((rc == NG_OK) == (why == NULL));
    return rc;
}

static void comes_back(void **state)
{
    (void)state;
    for (size_t len = 0; len < 70; len++) {
        char bytes[70];
        struct ng_str back;
        for (size_t i = 0; i < len; i++) {
            bytes[i] = (char)(i * 37);
        }
        struct ng_str text = seal(str_make(bytes, len));
        for (size_t i = 0; i < text.len; i++) {
            char c = text.data[i];
            assert_true((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                        (c >= 'a' && c <= 'z') || c == '-' || c == '_');
        }
        assert_int_equal(unseal(text, NOW, &back), NG_OK);
        assert_true(str_equal(back, str_make(bytes, len)));
    }
}

static void every_changed_byte_is_found(void **state)
{
    struct ng_str back;
    (void)state;
    struct ng_str text = seal(ng_str_of("{\"a\":{},\"s\":\"step 1\"}"));
    char *copy = malloc(text.len + 1);
    assert_non_null(copy);
    memcpy(copy, text.data, text.len);
    for (size_t i = 0; i < text.len; i++) {
        for (unsigned c = 0; c < 256; c++) {
            copy[i] = (char)c;
            assert_int_equal(unseal(str_make(copy, text.len), NOW, &back),
                             (char)c == text.data[i] ? NG_OK : NG_EINVAL);
        }
        copy[i] = text.data[i];
    }
    for (size_t len = 0; len < text.len; len++) {
        assert_int_equal(unseal(str_make(copy, len), NOW, &back), NG_EINVAL);
    }
    copy[text.len] = 'A';
    assert_int_equal(unseal(str_make(copy, text.len + 1), NOW, &back), NG_EINVAL);
    free(copy);
}

static void expires(void **state)
{
    struct ng_str back;
    (void)state;
    struct ng_str text = seal(ng_str_of("x"));
    assert_int_equal(unseal(text, NOW + MCP_SEAL_LIFE_MS - 1, &back), NG_OK);
    assert_int_equal(unseal(text, NOW + MCP_SEAL_LIFE_MS, &back), NG_EINVAL);
}

static void holds_for_one_caller_and_request(void **state)
{
    static const char *const others[][2] = {{"bob", "{}"}, {"ada", "{ }"}, {"ada{", "}"}};
    struct ng_str back;
    (void)state;
    struct ng_str text = seal(ng_str_of("x"));
    for (size_t i = 0; i < NG_COUNT(others); i++) {
        bind_to(others[i][0], others[i][1], &fixture.binding);
        assert_int_equal(unseal(text, NOW, &back), NG_EINVAL);
    }
    bind_to("ada", "{}", &fixture.binding);
    assert_int_equal(unseal(text, NOW, &back), NG_OK);
}

static void another_gateways_is_refused(void **state)
{
    struct ng_str back;
    (void)state;
    struct ng_str text = seal(ng_str_of("x"));
    mcp_seal_free(fixture.seal);
    assert_int_equal(mcp_seal_new(NULL, &fixture.seal), NG_OK);
    assert_int_equal(unseal(text, NOW, &back), NG_EINVAL);
}

static void is_bounded(void **state)
{
    struct ng_str back;
    (void)state;
    char *big = calloc(1, MCP_SEAL_PAYLOAD_MAX + 1);
    assert_non_null(big);
    assert_int_equal(mcp_seal_close(fixture.seal, &fixture.binding, NOW,
                                    str_make(big, MCP_SEAL_PAYLOAD_MAX + 1), &fixture.text),
                     NG_ETOOLARGE);
    struct ng_str text = seal(str_make(big, MCP_SEAL_PAYLOAD_MAX));
    assert_int_equal(unseal(text, NOW, &back), NG_OK);
    assert_int_equal(back.len, MCP_SEAL_PAYLOAD_MAX);
    free(big);
}

static void the_key_outlives_its_gateway(void **state)
{
    char folder[] = "/tmp/notegate-seal-XXXXXX";
    char path[sizeof(folder) + sizeof(MCP_SEAL_KEY_NAME) + 1];
    struct stat info;
    struct ng_str back;
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/" MCP_SEAL_KEY_NAME, folder);
    mcp_seal_free(fixture.seal);
    assert_int_equal(mcp_seal_new(folder, &fixture.seal), NG_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    struct ng_str text = seal(ng_str_of("x"));
    mcp_seal_free(fixture.seal);
    assert_int_equal(mcp_seal_new(folder, &fixture.seal), NG_OK);
    assert_int_equal(unseal(text, NOW, &back), NG_OK);
    /* A truncated key is created again. */
    assert_int_equal(truncate(path, 5), 0);
    mcp_seal_free(fixture.seal);
    assert_int_equal(mcp_seal_new(folder, &fixture.seal), NG_OK);
    assert_int_equal(unseal(text, NOW, &back), NG_EINVAL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    mcp_seal_free(fixture.seal);
    fixture.seal = NULL;
    assert_int_equal(mcp_seal_new(folder, &fixture.seal), NG_EINTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_changed_byte_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(expires, set_up, tear_down),
        cmocka_unit_test_setup_teardown(holds_for_one_caller_and_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_gateways_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_key_outlives_its_gateway, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
