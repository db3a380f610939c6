/* SPDX-License-Identifier: MIT */
/* docs_page.c - /docs: the tools as forms to try. Three static files (docs/), nothing from
 * elsewhere; their data comes from /openapi.json, as any other caller's. */
#include "api/http/http_reply.h"
#include "docs_page_made.h"
#include "rest.h"

#define STATUS_OK 200
#define STATUS_PERMANENT_REDIRECT 308

/* Only these files may run, style or be fetched; no page may frame this one. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static int answer(struct http_request *request, const char *type, const void *text, size_t size)
{
    struct http_reply *reply = &request->reply;
    reply->status = STATUS_OK;
    reply->content_type = type;
    reply->csp = policy;
    reply->cache = "no-cache";
    reply->fixed.data = text;
    reply->fixed.len = size;
    return NG_OK;
}

int docs_page_redirect(struct http_request *request)
{
    (void)answer(request, "text/plain; charset=utf-8", "", 0);
    request->reply.status = STATUS_PERMANENT_REDIRECT;
    request->reply.location = "docs";
    return NG_OK;
}

int docs_page_html(struct http_request *request)
{
    static const char type[] = "text/html; charset=utf-8";
    /* Browsers resolve its addresses from /docs/ then. */
    if (request->target.has_slash) {
        return answer(request, type, docs_slash_html, sizeof(docs_slash_html));
    }
    return answer(request, type, docs_html, sizeof(docs_html));
}

int docs_page_script(struct http_request *request)
{
    return answer(request, "text/javascript; charset=utf-8", docs_js, sizeof(docs_js));
}

int docs_page_style(struct http_request *request)
{
    return answer(request, "text/css; charset=utf-8", docs_css, sizeof(docs_css));
}
