/* SPDX-License-Identifier: MIT */
/* test_mcp_resources_rig.h - a gateway with plugins that have resources and prompts, and
 * requests about them. */
#ifndef NOTEGATE_TEST_MCP_RESOURCES_RIG_H
#define NOTEGATE_TEST_MCP_RESOURCES_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "mcp_request.h"

#define ITEMS 450 /* resources of the plugin that takes one call at a time */
#define REQUEST(method, params)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"

extern struct auth_caller caller;
extern atomic_int most_inside; /* calls in the serial plugin at once, at most */
extern atomic_int removed;     /* its items from the front that are gone */
extern atomic_int hole;        /* one item that is gone; -1: none */
/* So many of its next lists stop behind 10 entries, to be asked again; below 0: they say so,
 * and nothing is pending. */
extern atomic_int later;
extern atomic_int later_ends; /* how what they wait for ends */

int set_up(void **state);
int tear_down(void **state);

/* Sends it; end() waits for the answer, which is to be freed. */
void begin(struct exchange *exchange, const char *body);
char *end(struct exchange *exchange);
/* The answer's text; free() it. */
char *ask(const char *body);
/* The answer holds that part. */
void expect(const char *body, const char *part);
size_t count_of(const char *text, const char *part);

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
