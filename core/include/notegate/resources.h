/* SPDX-License-Identifier: MIT */
/*
 * resources.h - resources and prompts of a plugin, as it declares them, and searches of
 * resources. plugin.h includes this header.
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

/* A hit of a search. Its texts are borrowed for the function that gets it; those of
 * ng_host.find live as long as the call. Read by its size. */
struct ng_hit {
    size_t size;
    struct ng_str id;      /* of the resource, as in list_add() */
    struct ng_str title;   /* absent: the id */
    struct ng_str agent;   /* of its last change; absent: unknown */
    struct ng_str excerpt; /* the text around the hit; absent: none */
    int64_t updated_ms;    /* Unix time; 0: unknown */
    uint64_t line;         /* of the hit in the text that read() gives, from 1; 0: unknown */
    /* Set by the gateway. */
    struct ng_str kind, space, uri;
    bool exact; /* the title is the searched text, in any case */
};

/* Return 0 to continue, any other value if no more hits are wanted. */
typedef int ng_hit_fn(void *user, const struct ng_hit *hit);

/* A search of resources. Read by its size. */
struct ng_find {
    size_t size;
    struct ng_str text;
    uint32_t limit; /* hits of one kind that are wanted */
    /* CLOCK_MONOTONIC: when a kind that `scans` ends, with `incomplete`. */
    int64_t scan_until_ns;
    ng_hit_fn *hit; /* gets the hits */
    void *user;
    /* Out: how many hits there are; at least, if `incomplete`. */
    uint64_t total;
    bool incomplete;
    /* Only of ng_host.find: the wanted kinds, by name; count 0: all. Out: one of them that no
     * plugin has, or {NULL, 0}. */
    const struct ng_str *kinds;
    size_t kind_count;
    struct ng_str unknown_kind;
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
    /* Passes the hits of find->text in one space to find->hit, best first, until that returns
     * another value than 0, and sets find->total. May block, or return NG_PENDING as list does:
     * then it runs again, and earlier hits are discarded. NULL: not searched. */
    int (*find)(void *self, struct ng_call *call, struct ng_str space, struct ng_find *find);
    const char *find_kind; /* its name in searches; NULL: `kind`, or the template */
    bool scans;            /* find reads files: few at once, and ends at find->scan_until_ns */
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
