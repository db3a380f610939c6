/* SPDX-License-Identifier: MIT */
/* test_mcp_relay_message.c - the headers of a relayed message: plain, coded, too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/client/mcp_relay_message.h"

/* The value of Mcp-Name for a call of a tool of this name. */
static void name_is(const char *name, const char *wanted)
{
    static char text[2 * RELAY_NAME_MAX];
    struct relay_message message;
    (void)snprintf(
        text, sizeof(text),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"%s\"}}",
        name);
    relay_message_read(ng_str_of(text), &message);
    assert_string_equal(message.method, "tools/call");
    assert_string_equal(message.name, wanted);
    relay_message_done(&message);
}

static void test_names(void **state)
{
    static char name[RELAY_NAME_MAX + 1];
    (void)state;
    name_is("search", "search");
    name_is(" search", "=?base64?IHNlYXJjaA==?=");
    /* One that does not fit has no header: a cut one would be another name. */
    memset(name, 'x', RELAY_NAME_MAX);
    name_is(name, "");
    name[0] = ' ';
    name_is(name, "");
    name[RELAY_NAME_MAX / 4 * 3] = '\0';
    name_is(name, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
