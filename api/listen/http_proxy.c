/* SPDX-License-Identifier: MIT */
/* http_proxy.c - headers that tell that a request was forwarded. */
#include <string.h>
#include <strings.h>

#include "http_check.h"

/* Headers that only a proxy, a load balancer or a content network adds, in lower case; with an
 * ellipsis: all that begin so. */
static const char *const proxy_headers[] = {
    "via",
    "forwarded",
    "forwarded-for",
    "x-forwarded...",
    "x-original-...",
    "x-envoy-...",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-proxyuser-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-appengine-user-ip",
    "client-ip",
    "proxy-client-ip",
    "wl-proxy-client-ip",
    "true-client-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-ray",
    "cdn-loop",
};

const char *http_proxy_header(struct ng_str name)
{
    for (size_t i = 0; i < NG_COUNT(proxy_headers); i++) {
        const char *known = proxy_headers[i];
        if (name.len == 0 || (name.data[0] | 0x20) != known[0]) {
            continue; /* nearly always */
        }
        size_t len = strlen(known);
        bool fits = name.len == len;
        if (known[len - 1] == '.') {
            len -= strlen("...");
            fits = name.len >= len;
        }
        if (fits && strncasecmp(name.data, known, len) == 0) {
            return known;
        }
    }
    return NULL;
}
