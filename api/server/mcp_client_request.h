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
#ifndef NOTEGATE_API_MCP_CLIENT_REQUEST_H
#define NOTEGATE_API_MCP_CLIENT_REQUEST_H

#include "api/protocol/mcp_state.h"
#include "mcp_server.h"

/* People think slowly; the time of a call stands still meanwhile. */
#define MCP_CLIENT_REQUEST_WAIT_MS ((int64_t)10 * 60 * 1000)
/* Calls that wait for a client at once, of a gateway; questions of one round; rounds of a call.
 */
#define MCP_CLIENT_REQUEST_WAITING_MAX 1024
#define MCP_CLIENT_REQUEST_QUESTIONS_MAX 64
#define MCP_CLIENT_REQUEST_ROUNDS_MAX 64
/* Interval of the check for expired questions. */
#define MCP_CLIENT_REQUEST_TICK_MS 1000

struct mcp_client_requests;

/* State shared by all exchanges of one transport. tick(user): called now and then on a thread
 * of its own, once mcp_client_requests_start() was called; may be NULL. */
int mcp_client_requests_new(struct gateway *gateway, void (*tick)(void *user), void *user,
                            struct mcp_client_requests **ret);
/* No exchange may be under way. NULL is a no-op. */
void mcp_client_requests_free(struct mcp_client_requests *requests);
/* The thread runs from now on. Again: a no-op. */
void mcp_client_requests_start(struct mcp_client_requests *requests);
/* Tests: time passes. */
void mcp_client_requests_age(struct mcp_client_requests *requests, int64_t ms);

/* Bits 1 << enum ng_ask_kind of a client's capabilities (NULL: none). */
unsigned mcp_client_request_kinds(const struct ng_value *capabilities);
/* Before the first run: reads the kinds of questions that the client supports, and the answers
 * in a retried request. False: answered with an error. */
bool mcp_client_request_begin(struct mcp_exchange *exchange);
/* exchange->call ended with NG_EINPUT. NG_OK: its result is the answer, or, if *ret_answered,
 * the answer was sent. NG_PENDING: the code runs again (mcp_run_again) or fails later; nothing
 * of the exchange may be touched any more. */
int mcp_client_request(struct mcp_exchange *exchange, bool *ret_answered);
/* The state that the code gave with its last question, or got with the answer before. */
struct ng_str mcp_ask_state(const struct call *call);
/* The code had to ask something that the client did not say it can answer. True: answered. */
bool mcp_answer_cannot_ask(struct mcp_exchange *exchange, const struct result *result);

#endif
