/* SPDX-License-Identifier: MIT */
/* openapi_operations.h - the operations of /openapi.json that are not tools. */
#ifndef NOTEGATE_API_OPENAPI_OPERATIONS_H
#define NOTEGATE_API_OPENAPI_OPERATIONS_H

#include "core/base/buf.h"

/* For whom a document is made. */
struct openapi_reader {
    bool admin; /* operations of administrators too */
    bool agent; /* callers without a key may name themselves */
};

/* The responses that refuse, by status. */
enum openapi_refusal {
    OPENAPI_400 = 1 << 0,
    OPENAPI_401 = 1 << 1,
    OPENAPI_403 = 1 << 2,
    OPENAPI_404 = 1 << 3,
    OPENAPI_409 = 1 << 4,
    OPENAPI_413 = 1 << 5,
    OPENAPI_422 = 1 << 6,
    OPENAPI_429 = 1 << 7,
    OPENAPI_503 = 1 << 8,
    OPENAPI_507 = 1 << 9
};

/* Error responses of operations that need a key, of those that write, and of tool calls. */
#define OPENAPI_READS                                                                          \
    (OPENAPI_400 | OPENAPI_401 | OPENAPI_403 | OPENAPI_404 | OPENAPI_429 | OPENAPI_503)
#define OPENAPI_WRITES (OPENAPI_READS | OPENAPI_409 | OPENAPI_413 | OPENAPI_507)
#define OPENAPI_CALLS (OPENAPI_WRITES | OPENAPI_422)

/* Parameters of every operation that calls a tool; the second of those that call one alone. */
#define OPENAPI_CALL_PARAMETERS "Space Mode Run IdempotencyKey"
#define OPENAPI_TOOL_PARAMETERS OPENAPI_CALL_PARAMETERS " Raw"

/* Members of "responses", each with a comma before it; "default" is the last. */
void openapi_print_refusals(struct buf *out, unsigned refusals);
/* An array of references to components/parameters: Agent where callers may say it, then the
 * named ones, separated by spaces. */
void openapi_print_parameters(struct buf *out, const char *names, bool agent);
/* ",'parameters':[...],'responses':{...}" of an operation that answers one definition. */
void openapi_print_definition(struct buf *out);
/* Members of "paths", without the last comma. */
void openapi_print_operations(struct buf *out, const struct openapi_reader *reader);

#endif
