/* SPDX-License-Identifier: MIT */
/* mcp_request.h - one request to MCP without HTTP, and what came back. */
#ifndef NOTEGATE_TEST_MCP_REQUEST_H
#define NOTEGATE_TEST_MCP_REQUEST_H

#include <pthread.h>
#include <stdbool.h>

#include "api/transport/mcp_http.h"

struct exchange {
    struct mcp_http_request request;
    const char *params; /* further headers, "Name: value" lines; or NULL */
    struct mcp_http_response response;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

/* A POST of JSON that also takes events. What is lent must live until exchange_free(). */
void exchange_open(struct exchange *exchange, const struct auth_caller *caller,
                   const char *body);
void exchange_send(struct exchange *exchange, struct mcp_http *mcp);
/* The body of the answer, lent; a failed test if none comes. */
const char *exchange_wait(struct exchange *exchange);
void exchange_free(struct exchange *exchange);

#endif
