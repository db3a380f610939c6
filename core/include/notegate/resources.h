/* SPDX-License-Identifier: MIT */
/*
 * resources.h - resources and prompts of a plugin, as it declares them. plugin.h includes this
 * header.
 */
#ifndef NOTEGATE_RESOURCES_H
#define NOTEGATE_RESOURCES_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ng_call;
struct ng_listing;

/* The default space, if the caller names none. */
enum ng_tool_space {
    NG_SPACE_OWN = 0,   /* the agent's own */
    NG_SPACE_SHARED = 1 /* "shared" */
};

/*
 * A kind of resource. With `kind` its URIs are notegate://SPACE/KIND/ID (percent-encoded), with
 * ids of the plugin. With `uri_template` (RFC 6570 level 1) the plugin defines whole URIs, and
 * id is the whole URI. Read by its size, which is in the module record.
 */
struct ng_resources {
    const char *kind; /* "notebook", or NULL */
    const char *uri_template;
    const char *title;
    const char *summary;
    const char *mime_type;
    const char *collection; /* its events are changes of these resources, with equal ids */
    /* Passes entries to list_add() until that returns an error (the page is full), then returns
     * NG_OK. The order is stable; new entries may appear anywhere. list and complete may return
     * NG_PENDING: when the deferral ends with NG_OK they run again, and earlier entries are
     * discarded. */
    int (*list)(void *self, struct ng_call *call, struct ng_str space,
                struct ng_listing *listing);
    /* Replies with ng_reply() or host->reply_resource. revision 0: the newest. */
    int (*read)(void *self, struct ng_call *call, struct ng_str space, struct ng_str id,
                uint64_t revision);
    /* Values of `variable` that begin with `prefix`. NULL: taken from list. */
    int (*complete)(void *self, struct ng_call *call, struct ng_str space, const char *variable,
                    struct ng_str prefix, struct ng_listing *listing);
};

/* A prompt. Read by its size, which is in the module record. */
struct ng_prompt {
    const char *name;
    const char *title;
    const char *summary;
    const char *params; /* JSON Schema of the arguments: an object of strings; NULL: none */
    /* Replies with one JSON object {"messages": [...]} as in MCP, or with a text (one user
     * message). */
    int (*get)(void *self, struct ng_call *call, struct ng_str args);
    int (*complete)(void *self, struct ng_call *call, const char *argument,
                    struct ng_str prefix, struct ng_listing *listing);
    /* Modes that list it, as bits NG_IN_MODE(NG_MODE_ASK); 0: all. get() runs in any mode and
     * may fail with NG_EMODE. */
    uint32_t modes;
    enum ng_tool_space space; /* as for a tool */
    bool is_guide; /* without arguments, its text ends with the facts of GET /v1/me */
};

#define NG_IN_MODE(mode) (1u << (mode))

#ifdef __cplusplus
}
#endif

#endif
