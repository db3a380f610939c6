/* SPDX-License-Identifier: MIT */
/* test_mcp_tasks_rig.h - a gateway whose tools may run as tasks, and requests of both versions
 * to it. */
#ifndef NOTEGATE_TEST_MCP_TASKS_RIG_H
#define NOTEGATE_TEST_MCP_TASKS_RIG_H

#include "harness.h"

#include <pthread.h>

#include "api/tasks/mcp_tasks.h"
#include "mcp_request.h"

/* Waiting for a condition gives up after this long. */
#define PATIENCE_MS 20000
#define BODY_MAX 8192
#define NEWER_META(extra)                                                                      \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{" extra "}}"
#define DECLARED                                                                               \
    NEWER_META("\"elicitation\":{},\"extensions\":{\"" MCP_TASKS_EXTENSION "\":{}}")

struct fixture {
    struct harness harness;
    struct mcp_http *mcp;
    struct auth_caller caller;
};

extern struct fixture fixture;
int set_up(void **state);
/* With this configuration; it stays. */
int set_up_with(void **state, const char *const *sets);
/* As a restart of the gateway does. */
void start_anew(void);
int tear_down(void **state);

void exchange_start(struct exchange *exchange, bool newer, const char *method, const char *name,
                    const char *body);
/* The answer to one request; free() it. */
char *ask(bool newer, const char *method, const char *name, const char *params);
/* These free the answer. */
void expect_in(char *answer, const char *part);
void expect_not_in(char *answer, const char *part);
char *call_newer(const char *tool, const char *arguments, const char *meta);
/* The id of the task that was made; frees the answer. */
void take_id(char *answer, char id[MCP_TASK_ID_LEN + 1]);
/* A task of the stateless version. */
void make(const char *tool, const char *arguments, char id[MCP_TASK_ID_LEN + 1]);
char *on_task(const char *method, const char *id, const char *more);
/* tasks/get until the answer has `part`. */
char *get_until(const char *id, const char *part);

#endif
