/* SPDX-License-Identifier: MIT */
/*
 * mcp_client_request.h - a plugin's code asked the user or the client's model (NG_EINPUT): the
 * question goes to the client in the form of its version, and the code runs again with the
 * answer.
 *
 * Stateless version: the result says that input is required; the client sends the request again
 * with the answers and a sealed state. Handshake versions: the gateway sends requests of its
 * own on the client's stream, and waits for the responses without holding a thread.
 */
#ifndef NOTEGATE_API_MCP_ASK_H
#define NOTEGATE_API_MCP_ASK_H

#include "api/protocol/mcp_state.h"
#include "mcp_server.h"

/* People think slowly; the time of a call stands still meanwhile. */
#define MCP_ASK_WAIT_MS ((int64_t)10 * 60 * 1000)
/* Calls that wait for a client at once, of a gateway; questions of one round; rounds of a call.
 */
#define MCP_ASK_WAITING_MAX 1024
#define MCP_ASK_QUESTIONS_MAX 64
#define MCP_ASK_ROUNDS_MAX 64
/* How often it is looked for what is over. */
#define MCP_ASK_TICK_MS 1000

struct mcp_asks;

/* What all exchanges of one transport share. tick(user): now and then, on a thread of its own,
 * once mcp_asks_start() was called; may be NULL. */
int mcp_asks_new(struct gateway *gateway, void (*tick)(void *user), void *user,
                 struct mcp_asks **ret);
/* No exchange may be under way. NULL is a no-op. */
void mcp_asks_free(struct mcp_asks *asks);
/* The thread runs from now on. Again: a no-op. */
void mcp_asks_start(struct mcp_asks *asks);
/* Tests: time passes. */
void mcp_asks_age(struct mcp_asks *asks, int64_t ms);

/* Bits 1 << enum ng_ask_kind of a client's capabilities (NULL: none). */
unsigned mcp_asks_of(const struct ng_value *capabilities);
/* Before the first run: what the client can be asked, and what it sends with a repeated
 * request. False: answered with an error. */
bool mcp_ask_begin(struct mcp_exchange *exchange);
/* exchange->call ended with NG_EINPUT. NG_OK: its result is what is to be answered now, or, if
 * *ret_answered, that was done. NG_PENDING: the code runs again (mcp_run_again) or fails later;
 * nothing of the exchange may be touched any more. */
int mcp_ask(struct mcp_exchange *exchange, bool *ret_answered);
/* The code had to ask something that the client did not say it can answer. True: answered. */
bool mcp_answer_cannot_ask(struct mcp_exchange *exchange, const struct result *result);

#endif
