/* SPDX-License-Identifier: MIT */
/* test_gateway.h - a plugin for tests of MCP: one small tool for each way that a call can go.
 */
#ifndef NOTEGATE_TEST_GATEWAY_H
#define NOTEGATE_TEST_GATEWAY_H

#include "core/call/gateway.h"

/*
 * t_echo (text), t_object (structured), t_parts, t_revision, t_fail, t_ask, t_big (argument
 * bytes), t_log, t_write (destructive), t_wait (reports progress, ends when cancelled or
 * released). Adds them to the gateway's registry.
 */
int test_tools_add(struct gateway *gateway);

/*
 * A gateway that has these tools and nothing that is kept: no modules, no store, no data
 * directory. sets: "key=value" of the configuration, NULL at the end. NULL: it did not open.
 */
struct gateway *test_gateway_open(const char *const *sets);
void test_gateway_close(struct gateway *gateway);

/* Calls of t_wait that wait now, and letting all of them go. */
int test_tools_waiting(void);
void test_tools_release(bool released);

#endif
