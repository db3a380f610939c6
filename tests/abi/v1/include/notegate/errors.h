/* SPDX-License-Identifier: MIT */
/* errors.h - the error codes of the gateway: number, name on the wire, HTTP status. */
#ifndef NOTEGATE_ERRORS_H
#define NOTEGATE_ERRORS_H

/*
 * X(symbol, value, wire name, HTTP status, meaning)
 * Functions return NG_OK, NG_PENDING or one of the negative values. Values are part of the ABI:
 * they are never renumbered, and new ones go last. Codes of a plugin begin at NG_EPLUGIN (see
 * struct ng_code).
 */
#define NG_ERROR_MAP(X)                                                                        \
    X(NG_EJSON, -1, "INVALID_JSON", 400, "the text is not JSON as this gateway accepts it")    \
    X(NG_EINVAL, -2, "INVALID_INPUT", 400,                                                     \
      "an argument is missing, wrong or contradicts another")                                  \
    X(NG_EUNAUTHENTICATED, -3, "UNAUTHENTICATED", 401,                                         \
      "the gateway does not know who is calling")                                              \
    X(NG_EFORBIDDEN, -4, "FORBIDDEN", 403, "the caller may not do this")                       \
    X(NG_EMODE, -5, "MODE_FORBIDDEN", 403, "the caller's mode does not allow this")            \
    X(NG_EOUTSIDE, -6, "PATH_OUTSIDE_ROOTS", 403, "the path is in none of the roots")          \
    X(NG_ETRAVERSAL, -7, "PATH_TRAVERSAL", 403, "the path climbs out of where it may be")      \
    X(NG_EUNKNOWN_TOOL, -8, "UNKNOWN_TOOL", 404, "no tool has this name")                      \
    X(NG_ENOTFOUND, -9, "NOT_FOUND", 404, "what was named is not there")                       \
    X(NG_EMETHOD, -10, "METHOD_NOT_ALLOWED", 405, "this address does not take this method")    \
    X(NG_ECONFLICT, -11, "CONFLICT", 409,                                                      \
      "it is at another revision than the caller expected")                                    \
    X(NG_ETOOLARGE, -12, "TOO_LARGE", 413, "a size is over its limit")                         \
    X(NG_EMEDIATYPE, -13, "UNSUPPORTED_MEDIA_TYPE", 415, "the body is not JSON")               \
    X(NG_EFAILED, -14, "TOOL_FAILED", 422, "the tool could not do what was asked")             \
    X(NG_EKEYREUSED, -15, "IDEMPOTENCY_KEY_REUSED", 422,                                       \
      "the key came with another body before")                                                 \
    X(NG_ERATE, -16, "RATE_LIMITED", 429, "the caller is over its rate")                       \
    X(NG_EBUSY, -17, "BUSY", 503, "a queue or another bounded resource is full")               \
    X(NG_EUNAVAILABLE, -18, "BACKEND_UNAVAILABLE", 503, "a storage backend does not answer")   \
    X(NG_ETIMEOUT, -19, "TIMEOUT", 504, "the call's time is up")                               \
    X(NG_EFULL, -20, "STORAGE_FULL", 507, "no room is left where the data is kept")            \
    X(NG_EINTERNAL, -21, "INTERNAL", 500, "a fault of the gateway or of a module")             \
    X(NG_ECANCELLED, -22, "CANCELLED", 499, "the caller left or cancelled the call")           \
    X(NG_EQUERYTIMEOUT, -23, "QUERY_TIMEOUT", 504, "a query ran into its own time limit")      \
    X(NG_EWOULDBLOCK, -24, "WOULD_BLOCK", 500,                                                 \
      "not an answer: what was asked may block and this thread must not; return it, and the "  \
      "gateway runs the tool again on a worker")                                               \
    X(NG_EINPUT, -25, "INPUT_REQUIRED", 500,                                                   \
      "not an answer: the user was asked; return it, and the tool runs again with the answer") \
    X(NG_ERUN, -26, "RUN_FORBIDDEN", 403, "the caller has no right to run code")               \
    X(NG_ENOTCONFIGURED, -27, "NOT_CONFIGURED", 404,                                           \
      "the plugin has nothing to work on until a key of the configuration is set")

enum ng_error {
    NG_OK = 0,
    /* In progress; a commit or host->finish completes the call. */
    NG_PENDING = 1,
#define NG_ERROR_ENUM(symbol, value, name, status, text) symbol = value,
    NG_ERROR_MAP(NG_ERROR_ENUM)
#undef NG_ERROR_ENUM
    /* First code of a plugin: its code number i has the value NG_EPLUGIN - i. */
    NG_EPLUGIN = -1000
};

#endif
