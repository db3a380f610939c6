/* SPDX-License-Identifier: MIT */
/*
 * openapi_fixed.h - what of /openapi.json does not depend on the tools.
 *
 * Its texts are JSON with ' in the place of ", so that they can be read here; openapi_put()
 * puts the quotation marks back. No text has an apostrophe.
 */
#ifndef NOTEGATE_API_OPENAPI_FIXED_H
#define NOTEGATE_API_OPENAPI_FIXED_H

#include "buf.h"

#define OPENAPI_REF(what) "{'$ref':'#/components/" what "'}"
#define OPENAPI_RESPONSE(status, name) "'" status "':" OPENAPI_REF("responses/" name)
/* What every operation may be refused with that needs a key. */
#define OPENAPI_READ_ERRORS                                                                                           \
    OPENAPI_RESPONSE("400", "BadRequest")                                                                             \
    "," OPENAPI_RESPONSE("401", "Unauthorized") "," OPENAPI_RESPONSE("403", "Forbidden") "," OPENAPI_RESPONSE(        \
        "404",                                                                                                        \
        "NotFound") "," OPENAPI_RESPONSE("429",                                                                       \
                                         "TooManyRequests") "," OPENAPI_RESPONSE("503",                               \
                                                                                 "Unavailabl"                         \
                                                                                 "e") "," OPENAPI_RESPONSE("default", \
                                                                                                           "Failure")

/* Parameters and responses of an operation that answers one definition. */
#define OPENAPI_DEFINITION                                                                     \
    ",'parameters':[" OPENAPI_REF(                                                             \
        "parameters/Format") "],'responses':{'200':{'description':"                            \
                             "'The "                                                           \
                             "definition.','content':{'application/"                           \
                             "json':{'schema':{'type':'object'}}}},"                           \
                             "'304':{'description':'Not changed since the ETag in "            \
                             "If-None-Match.'}," OPENAPI_READ_ERRORS "}"

extern const char openapi_info[];
#define OPENAPI_INFO openapi_info
#define OPENAPI_TAGS                                                                           \
    "{'name':'gateway','description':'The tools there are.'},"                                 \
    "{'name':'events','description':'Changes, as they come.'},"                                \
    "{'name':'operation','description':'Health, numbers, configuration.'},"                    \
    "{'name':'admin','description':'Keys, for the role admin.'}"

void openapi_put(struct buf *out, const char *text);
/* Members of "paths", without the last comma. admin: those on keys too. with_agent: callers
 * may say who they are. */
void openapi_fixed_paths(struct buf *out, bool admin, bool with_agent);
/* "components" up to its schemas, which are left open: those of the tools follow. */
void openapi_fixed_components(struct buf *out, bool admin, bool with_agent);

#endif
