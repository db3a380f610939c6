/* SPDX-License-Identifier: MIT */
/* openapi.h - the OpenAPI 3.1 description of the REST transport, made from the registry. */
#ifndef NOTEGATE_API_OPENAPI_H
#define NOTEGATE_API_OPENAPI_H

#include "api/http/http_route.h"
#include "core/call/gateway.h"

/* One operation for each tool this caller may call (NULL: every tool), and the fixed ones;
 * those on keys for admins only. needs_key: every request needs a key. server: the gateway's
 * address, relative to that of the document. */
int openapi_print(struct gateway *gateway, struct call *call, bool needs_key,
                  const char *server, struct buf *out);
/* GET /openapi.json. */
int openapi_route(struct http_request *request);

#endif
