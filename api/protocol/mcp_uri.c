/* SPDX-License-Identifier: MIT */
/* mcp_uri.c - parses URIs of resources. Strict about errors, lenient about longer
 * spellings of the same URI. */
#include "mcp_uri.h"

#include <strings.h>

#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/utf8.h"

#define MCP_URI_REVISION "revision="
/* Digits of the largest revision that JSON numbers carry (2^53). */
#define MCP_URI_REVISION_DIGITS 16

/* Characters that stand unescaped in a segment. Bytes of UTF-8 too: people and models write
 * them so. */
static bool is_literal(unsigned char c)
{
    return resource_uri_is_plain(c) || c >= 0x80 ||
           (c != '\0' && strchr("!$&'()*+,;=:@", c) != NULL);
}

/* slashes: they may stand as they are (ids that are paths). */
static int decode(struct arena *arena, struct ng_str text, bool slashes, struct ng_str *ret,
                  const char **ret_why)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    if (out == NULL) {
        *ret_why = "out of memory";
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_digit(text.data[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_digit(text.data[i + 2]) : -1;
            if (high < 0 || low < 0) {
                *ret_why = "a % is not followed by two hexadecimal digits";
                return NG_EINVAL;
            }
            c = (char)(high * 16 + low);
            i += 2;
        } else if (!is_literal((unsigned char)c) && !(slashes && c == '/')) {
            *ret_why = "it holds a character that must be percent-encoded";
            return NG_EINVAL;
        }
        out[len++] = c;
    }
    out[len] = '\0';
    *ret = str_make(out, len);
    if (!utf8_valid(*ret)) {
        *ret_why = "it is not UTF-8 once decoded";
        return NG_EINVAL;
    }
    return NG_OK;
}

static int parse_revision(struct ng_str query, uint64_t *ret, const char **ret_why)
{
    size_t prefix = sizeof(MCP_URI_REVISION) - 1;
    bool good = query.len > prefix && query.len <= prefix + MCP_URI_REVISION_DIGITS &&
                str_begins(query, MCP_URI_REVISION) && query.data[prefix] != '0' &&
                str_number(str_make(query.data + prefix, query.len - prefix), UINT64_MAX, ret);
    if (!good) {
        *ret_why = "after the ? only revision=N is allowed, with N a whole number from 1";
        return NG_EINVAL;
    }
    return NG_OK;
}

/* Up to the first `stop`, which is taken too. False: it is not there. */
static bool take_until(struct ng_str *rest, char stop, struct ng_str *ret)
{
    const char *at = rest->len == 0 ? NULL : memchr(rest->data, stop, rest->len);
    if (at == NULL) {
        return false;
    }
    size_t len = (size_t)(at - rest->data);
    *ret = str_make(rest->data, len);
    *rest = str_make(at + 1, rest->len - len - 1);
    return true;
}

bool mcp_uri_is_ours(struct ng_str text)
{
    size_t scheme = sizeof(RESOURCE_URI_SCHEME) - 1;
    return text.len >= scheme && strncasecmp(text.data, RESOURCE_URI_SCHEME, scheme) == 0;
}

int mcp_uri_parse(struct arena *arena, struct ng_str text, struct mcp_uri *ret,
                  const char **ret_why)
{
    struct mcp_uri uri = {.revision = 0};
    struct ng_str space;
    struct ng_str kind;
    struct ng_str id;
    size_t scheme = sizeof(RESOURCE_URI_SCHEME) - 1;
    if (text.len > RESOURCE_URI_MAX) {
        *ret_why = "it is longer than the URI of any resource";
        return NG_EINVAL;
    }
    if (!mcp_uri_is_ours(text)) {
        *ret_why = "it does not begin with " RESOURCE_URI_SCHEME;
        return NG_EINVAL;
    }
    struct ng_str rest = str_make(text.data + scheme, text.len - scheme);
    bool queried = take_until(&rest, '?', &id);
    struct ng_str path = queried ? id : rest;
    int rc = queried ? parse_revision(rest, &uri.revision, ret_why) : NG_OK;
    if (rc != NG_OK) {
        return rc;
    }
    if (!take_until(&path, '/', &space) || !take_until(&path, '/', &kind) || space.len == 0 ||
        kind.len == 0) {
        *ret_why = "it is not of the form " RESOURCE_URI_SCHEME "SPACE/KIND/ID";
        return NG_EINVAL;
    }
    rc = decode(arena, space, false, &uri.space, ret_why);
    if (rc == NG_OK) {
        rc = decode(arena, kind, false, &uri.kind, ret_why);
    }
    if (rc == NG_OK) {
        rc = decode(arena, path, true, &uri.id, ret_why);
    }
    if (rc == NG_OK) {
        *ret = uri;
    }
    return rc;
}

/* ---- templates ---- */

/* The next {variable} of *rest: the text before it, its name. False: there is none (left). */
static bool next_variable(struct ng_str *rest, struct ng_str *ret_before, struct ng_str *ret)
{
    struct ng_str at = *rest;
    if (!take_until(&at, '{', ret_before) || !take_until(&at, '}', ret)) {
        return false;
    }
    *rest = at;
    return true;
}

/* A variable's value ends where the text behind it begins for the first time: level 1 has no
 * other way that could match where this does not, as values hold no slash. */
bool mcp_template_matches(struct ng_str template, struct ng_str uri)
{
    struct ng_str before;
    struct ng_str name;
    struct ng_str rest = template;
    bool first = true;
    while (next_variable(&rest, &before, &name)) {
        size_t skip = 0; /* of the value of the variable before */
        if (!first) {
            while (skip < uri.len && uri.data[skip] != '/' &&
                   (skip == 0 || (before.len > 0 &&
                                  (uri.len - skip < before.len ||
                                   memcmp(uri.data + skip, before.data, before.len) != 0)))) {
                skip++;
            }
            if (skip == 0) {
                return false;
            }
            uri = str_make(uri.data + skip, uri.len - skip);
        }
        if (!str_starts(uri, before)) {
            return false;
        }
        uri = str_make(uri.data + before.len, uri.len - before.len);
        first = false;
    }
    if (first) {
        return str_equal(rest, uri);
    }
    /* The last value ends before the rest of the template. */
    if (uri.len <= rest.len ||
        !str_equal(str_make(uri.data + uri.len - rest.len, rest.len), rest)) {
        return false;
    }
    return memchr(uri.data, '/', uri.len - rest.len) == NULL;
}

bool mcp_template_is_open(struct ng_str template)
{
    struct ng_str before;
    struct ng_str name;
    return next_variable(&template, &before, &name);
}

bool mcp_template_has(struct ng_str template, struct ng_str variable)
{
    struct ng_str before;
    struct ng_str name;
    while (next_variable(&template, &before, &name)) {
        if (str_equal(name, variable)) {
            return true;
        }
    }
    return false;
}
