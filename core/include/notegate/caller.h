/* SPDX-License-Identifier: MIT */
/* caller.h - the caller of a tool: its name, spaces and rights. Included by plugin.h. */
#ifndef NOTEGATE_CALLER_H
#define NOTEGATE_CALLER_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ng_role { NG_ROLE_READER = 1, NG_ROLE_WRITER = 2, NG_ROLE_ADMIN = 3 };

/* Rights that the client gives to its model, in increasing order. */
enum ng_mode { NG_MODE_ASK = 1, NG_MODE_EDIT = 2, NG_MODE_AGENT = 3 };

/* Beyond role and mode: to take back the work of others (role admin, keys with --restore). */
enum ng_right { NG_RIGHT_RESTORE = 1 };

/* Set by the server; of arguments by `space` alone. Borrowed for the call. Read by its size. */
struct ng_caller {
    size_t size;
    struct ng_str agent; /* [A-Za-z0-9._@-]{1,64} */
    struct ng_str space; /* the named space, else the default of the tool (ng_tool.space) */
    bool space_named;    /* the caller named it */
    enum ng_role role;
    enum ng_mode mode;
    /* The accessible spaces: those of the key; without keys the agent's own (~agent), shared
     * and the named one. */
    const struct ng_str *spaces;
    size_t space_count;
    bool all_spaces; /* admin */
    struct ng_str request_id;
    struct ng_str traceparent; /* W3C trace context, or {NULL, 0} */
    /* May it run code? A tool that does so for some arguments fails those with NG_ERUN. */
    bool run;
    uint64_t rights;       /* enum ng_right, or-ed; newer: test NG_HAS(caller, rights) */
    struct ng_str session; /* names the MCP session; {NULL, 0}: none; newer, as rights */
    /* The run: a label, [A-Za-z0-9._:-]{1,64}, of the calls that are one piece of work. Given
     * by the client, else of its trace or MCP session; rights do not go by it. {NULL, 0}: none;
     * newer, as the next two. */
    struct ng_str run_id;
    struct ng_str key_id; /* of the key that the caller came with; {NULL, 0}: none */
    struct ng_str client; /* the program, as it names itself; {NULL, 0}: it does not */
};

#ifdef __cplusplus
}
#endif

#endif
