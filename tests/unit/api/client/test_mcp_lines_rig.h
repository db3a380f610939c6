/* SPDX-License-Identifier: MIT */
/* test_mcp_lines_rig.h - messages to `notegate mcp`, and the lines that it answers with. */
#ifndef NOTEGATE_TEST_MCP_LINES_RIG_H
#define NOTEGATE_TEST_MCP_LINES_RIG_H

#include "program.h"

#define REQUEST(id, method, params)                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params "}}\n"
#define TELL(method, params)                                                                   \
    "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":{" params "}}\n"
#define CALL(id, tool, arguments)                                                              \
    REQUEST(id, "tools/call", "\"name\":\"" tool "\",\"arguments\":{" arguments "}")
#define INITIALIZE(version, capabilities)                                                      \
    REQUEST("0", "initialize",                                                                 \
            "\"protocolVersion\":\"" version "\",\"capabilities\":{" capabilities              \
            "},\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}")
#define META                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},\"sampling\":{},"      \
    "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}"
#define READY TELL("notifications/initialized", "")
#define PARIS                                                                                  \
    "{\"role\":\"assistant\",\"model\":\"m\",\"content\":{\"type\":\"text\","                  \
    "\"text\":\"Paris\"}}"

/* A message, and parts of the lines that come after it, in this order; others may be between.
 */
struct step {
    const char *send;
    const char *parts[4];
};

/* Reads lines until one contains the part. It is lent until the next one is read. */
const char *expect_line(struct program *mcp, const char *part);
void expect_steps(struct program *mcp, const struct step *steps, size_t count);
/* In a gateway of its own, then through one that serves. */
void expect_both_ways(const struct step *steps, size_t count);
/* Ends its input; it must end with 0. */
void end_mcp(struct program *mcp);
/* Waits for a request of this method; result: "\"result\":..." or "\"error\":...". */
void answer_question(struct program *mcp, const char *method, const char *result);

/* A home with the plugins notebook and conformance. */
int set_up(void **state);
int tear_down(void **state);

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
