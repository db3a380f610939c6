/* SPDX-License-Identifier: MIT */
/* mcp_input.h - questions to a client in MCP's words, and the stateless version's way of
 * asking: the result names the required input, and a sealed state carries earlier answers. */
#ifndef NOTEGATE_API_MCP_INPUT_H
#define NOTEGATE_API_MCP_INPUT_H

#include "mcp_client_request.h"

/* "elicitation/create" and so on. */
const char *mcp_input_method(enum ng_ask_kind kind);
/* "method":...,"params":... of a question, without braces. */
void mcp_input_print(struct buf *out, const struct ask *ask);
/* All questions of a call: an object, by their keys. */
void mcp_input_print_all(struct buf *out, const struct call *call);
/* Answers with resultType "input_required". As mcp_client_request(). */
int mcp_input_answer(struct mcp_exchange *exchange, bool *ret_answered);
/* mcp_client_request.c */
const struct mcp_seal *mcp_client_requests_seal(const struct mcp_client_requests *requests);

#endif
