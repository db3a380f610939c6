/* SPDX-License-Identifier: MIT */
/* resource_uri.h - prints the URI of a resource; api/protocol/mcp_uri.h parses it. */
#ifndef NOTEGATE_CORE_RESOURCE_URI_H
#define NOTEGATE_CORE_RESOURCE_URI_H

#include "core/base/buf.h"

#define RESOURCE_URI_SCHEME "notegate://"
/* Longest URI: an id of NG_ID_MAX bytes, each as %XX, and the rest. */
#define RESOURCE_URI_MAX ((size_t)3 * 65536 + 1024)

/* Characters that a URI has as they are; every other byte is %XX. */
static inline bool resource_uri_is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '.' || c == '_' || c == '~';
}

/* notegate://SPACE/KIND/ID in the one spelling that lists, events and answers use. Returns
 * out->rc. */
int resource_uri_print(struct buf *out, struct ng_str space, struct ng_str kind,
                       struct ng_str id);

#endif
