/* SPDX-License-Identifier: MIT */
/* openapi_routes.h - the operations of addresses of tools besides /v1/tools. */
#ifndef NOTEGATE_API_OPENAPI_ROUTES_H
#define NOTEGATE_API_OPENAPI_ROUTES_H

#include "core/base/buf.h"
#include "core/call/gateway.h"

/* Members of "paths", each with a comma before it: of tools that the caller may call (NULL: all
 * that there are). */
void openapi_print_routes(struct buf *out, struct gateway *gateway, struct call *call,
                          bool with_agent);

#endif
