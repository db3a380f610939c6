/* SPDX-License-Identifier: MIT */
/*
 * run_id.h - the run of a call: a label of the calls that are one piece of work.
 *
 * It is no identity: rights go by the agent. Transports hand over what they received, and this
 * decides what counts; arguments of tools never do.
 */
#ifndef NOTEGATE_CORE_RUN_ID_H
#define NOTEGATE_CORE_RUN_ID_H

#include "core/call/call.h"

#define RUN_ID_HEADER "X-Notegate-Run"
/* Sent by the relay of `notegate mcp` alone: the label of its process. It counts as the label
 * of an MCP session, since the stateless versions of MCP have no session. */
#define RUN_ID_PROCESS_HEADER "X-Notegate-Process-Run"
/* The member of `_meta` in a request of MCP. */
#define RUN_ID_META "io.notegate/run"
#define RUN_ID_FORM "1 to 64 of the characters A-Z a-z 0-9 . _ : -"
/* The label of an MCP session or of a stdio process: "mcp-", 16 hexadecimal digits and a NUL.
 */
#define RUN_ID_SESSION_SIZE 21
/* A sentence about a run. */
#define RUN_ID_TEXT_MAX 320

/* Received by a transport; the first that is there counts. Lent; {NULL, 0}: not there. */
struct run_given {
    struct ng_str meta;        /* RUN_ID_META; checked */
    struct ng_str named;       /* RUN_ID_HEADER, or --run; checked */
    struct ng_str traceparent; /* a valid one: that of `_meta`, else that of the header */
    struct ng_str session;     /* of the stdio process, else of the MCP session; or "" */
};

/* Lent, as `given` is; {NULL, 0}: none. */
struct ng_str run_id_choose(const struct run_given *given);

/* May a caller give this run? NG_OK, or NG_EINVAL with a sentence; where: how it came, as the
 * sentence calls it. */
int run_id_check(const char *where, struct ng_str run, char text[RUN_ID_TEXT_MAX]);

/* The label of the session with this id: the same at every gateway, and it does not tell the
 * id, which is a secret. "": out of memory. */
void run_id_of_session(struct ng_str id, char out[RUN_ID_SESSION_SIZE]);
/* A random label of that form. "": the system gives no random numbers. */
void run_id_make(char out[RUN_ID_SESSION_SIZE]);

#endif
