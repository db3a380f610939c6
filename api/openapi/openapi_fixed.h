/* SPDX-License-Identifier: MIT */
/*
 * openapi_fixed.h - components of /openapi.json that do not depend on the tools.
 *
 * Its texts are JSON with ' in the place of ", so that they can be read here; openapi_put()
 * puts the quotation marks back. No text has an apostrophe.
 */
#ifndef NOTEGATE_API_OPENAPI_FIXED_H
#define NOTEGATE_API_OPENAPI_FIXED_H

#include "core/base/buf.h"
#include "openapi_operations.h"

extern const char openapi_info[];
#define OPENAPI_TAGS                                                                           \
    "{'name':'gateway','description':'The tools there are.'},"                                 \
    "{'name':'mcp','description':'The same tools over the Model Context Protocol.'},"          \
    "{'name':'events','description':'Changes, as they come.'},"                                \
    "{'name':'operation','description':'Health, numbers, configuration.'},"                    \
    "{'name':'admin','description':'Keys, backups and checks, for administrators.'}"

void openapi_put(struct buf *out, const char *text);
/* "components" up to its schemas, which are left open: those of the tools follow. */
void openapi_fixed_components(struct buf *out, const struct openapi_reader *reader);

#endif
