/* SPDX-License-Identifier: MIT */
/*
 * mcp_version.h - which version of MCP a message speaks, and whether its headers say the same.
 *
 * Two kinds of version: up to 2025-11-25 a handshake (initialize) opens a session; from
 * 2026-07-28 every request carries its version and the client's capabilities in _meta. Decided
 * per message.
 */
#ifndef NOTEGATE_API_MCP_VERSION_H
#define NOTEGATE_API_MCP_VERSION_H

#include "mcp_message.h"

enum mcp_version {
    MCP_VERSION_NONE = 0,
    MCP_2024_11_05,
    MCP_2025_03_26,
    MCP_2025_06_18,
    MCP_2025_11_25,
    MCP_2026_07_28
};
#define MCP_VERSION_HANDSHAKE_NEWEST MCP_2025_11_25
/* A client that says nothing: what came before the version header did. */
#define MCP_VERSION_SILENT MCP_2025_03_26

/* Bits: which versions know a method. */
enum mcp_version_set { MCP_VERSIONS_HANDSHAKE = 1, MCP_VERSIONS_STATELESS = 2 };

/* As in RFC 5424, from most to least talkative. */
enum mcp_log_level {
    MCP_LOG_NONE = 0,
    MCP_LOG_DEBUG,
    MCP_LOG_INFO,
    MCP_LOG_NOTICE,
    MCP_LOG_WARNING,
    MCP_LOG_ERROR,
    MCP_LOG_CRITICAL,
    MCP_LOG_ALERT,
    MCP_LOG_EMERGENCY
};

#define MCP_META_VERSION "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_CLIENT_INFO "io.modelcontextprotocol/clientInfo"
#define MCP_META_LOG_LEVEL "io.modelcontextprotocol/logLevel"
#define MCP_TASKS_EXTENSION "io.modelcontextprotocol/tasks"
#define MCP_META_SERVER_INFO "io.modelcontextprotocol/serverInfo"

/* The headers that mirror the message; absent = {NULL, 0}. */
struct mcp_headers {
    struct ng_str version, method, name;
    /* Any other header; NULL: there are none. */
    struct ng_str (*other)(const struct mcp_headers *headers, const char *name);
};

/* The version that the message speaks, or the reason of its refusal (code not 0). */
struct mcp_terms {
    enum mcp_version version;
    const struct ng_value *capabilities; /* the client's, of this request; or NULL */
    enum mcp_log_level log_level;        /* of this request; MCP_LOG_NONE: not said */
    int code;                            /* enum mcp_code, 0: none */
    int status;                          /* HTTP */
    char message[MCP_SENTENCE_MAX];
    bool says_supported; /* MCP_UNSUPPORTED_VERSION: its data lists the versions */
    struct ng_str requested;
};

static inline bool mcp_is_stateless(enum mcp_version version)
{
    return version >= MCP_2026_07_28;
}

/* Batches are in the versions before 2025-06-18. */
static inline bool mcp_has_batches(enum mcp_version version)
{
    return version <= MCP_2025_03_26;
}

const char *mcp_version_text(enum mcp_version version);
/* MCP_VERSION_NONE: not one of ours. */
enum mcp_version mcp_version_parse(struct ng_str text);
/* ["2026-07-28",...], newest first. */
void mcp_print_versions(struct buf *out);
enum mcp_log_level mcp_log_level_parse(struct ng_str text);
const char *mcp_log_level_text(enum mcp_log_level level);

/*
 * headers: NULL where the transport has none (stdio). session: the version a handshake agreed
 * on, or MCP_VERSION_NONE. False: refused, see ret->code.
 */
bool mcp_version_decide(const struct mcp_message *message, const struct mcp_headers *headers,
                        enum mcp_version session, struct mcp_terms *ret);

/*
 * Does a header say the same as the body's value? White space around it does not count, and
 * =?base64?...?= is decoded (strictly).
 */
bool mcp_header_equal(struct ng_str header, struct ng_str value);

/* The same for a number: 42.0 and 42 are equal. */
bool mcp_header_equal_number(struct ng_str header, struct ng_str digits);

#endif
