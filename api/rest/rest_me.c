/* SPDX-License-Identifier: MIT */
/* rest_me.c - GET /v1/me: the facts about the caller. */
#include "api/auth/whoami.h"
#include "api/http/http_reply.h"
#include "core/base/utf8.h"
#include "rest.h"

#define STATUS_OK 200
#define PARAMETER_SHOWN 60

int rest_me(struct http_request *request)
{
    struct ng_str query = request->target.query;
    struct ng_str name;
    struct ng_str value;
    if (http_query_next(&query, &name, &value)) {
        (void)http_reply_error(request, NG_EINVAL, "It has no parameters",
                               "The parameter \"%.*s\" is unknown here",
                               (int)utf8_cut(name, PARAMETER_SHOWN).len, name.data);
        return NG_OK;
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    if (whoami_print(call, &request->reply.body) == NG_OK) {
        request->reply.status = STATUS_OK;
    } else {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    }
    call_unref(call);
    return NG_OK;
}
