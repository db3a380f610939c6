/* SPDX-License-Identifier: MIT */
/*
 * http_names.h - which Host and Origin headers the gateway answers to.
 *
 * allowed_hosts: "name", "*.name" (every name below it), each with ":port" or without, an
 * address, or a range of addresses ("10.0.0.0/8"), which a Host that is an address in it
 * matches. allowed_origins: a scheme, "://", a name or "*.name", and ":port" or none; or
 * "null".
 */
#ifndef NOTEGATE_API_HTTP_NAMES_H
#define NOTEGATE_API_HTTP_NAMES_H

#include "core/config/config.h"
#include "notegate/plugin.h"

struct http_names {
    struct ng_str listen_host; /* as configured, without brackets and port */
    unsigned listen_port;
    const struct ng_str *hosts; /* allowed_hosts */
    size_t host_count;
    const struct ng_str *origins; /* allowed_origins */
    size_t origin_count;
};

/* NG_EINVAL: allowed_hosts or allowed_origins has an entry that cannot match; `error` has one
 * sentence with the entry and the forms there are. */
int http_names_check(const struct config *config, struct buf *error);

/* local: the address (without port) of this connection's own end, "" for a Unix socket. */
bool http_host_allowed(const struct http_names *names, struct ng_str host, struct ng_str local);
/* host: the Host header, which was allowed: pages of the gateway itself may always ask. */
bool http_origin_allowed(const struct http_names *names, struct ng_str origin,
                         struct ng_str host);

#endif
