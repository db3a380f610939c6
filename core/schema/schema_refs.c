/* SPDX-License-Identifier: MIT */
/* schema_refs.c - $id, $anchor and $ref: resolves URIs (RFC 3986, 5.2) and finds their targets.
 */
#include <stdio.h>

#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/utf8.h"
#include "schema_tree.h"

#define SHOWN_BYTES 200 /* of a reference in a message */

struct uri {
    struct ng_str scheme, authority, path, query, fragment; /* absent: data is NULL */
};

/* Cuts `text` behind the first of `stops`; *rest begins at the stop. */
static struct ng_str cut_at(struct ng_str text, const char *stops, struct ng_str *rest)
{
    size_t at = 0;
    while (at < text.len && (text.data[at] == '\0' || strchr(stops, text.data[at]) == NULL)) {
        at++;
    }
    *rest = str_make(text.data + at, text.len - at);
    return str_make(text.data, at);
}

static struct ng_str skip(struct ng_str text, size_t bytes)
{
    return str_make(text.data + bytes, text.len - bytes);
}

static struct uri uri_parse(struct ng_str text)
{
    struct uri uri;
    struct ng_str rest;
    memset(&uri, 0, sizeof(uri));
    struct ng_str scheme = cut_at(text, ":/?#", &rest);
    if (scheme.len > 0 && str_begins(rest, ":")) {
        uri.scheme = scheme;
        text = skip(rest, 1);
    }
    if (str_begins(text, "//")) {
        uri.authority = cut_at(skip(text, 2), "/?#", &text);
    }
    uri.path = cut_at(text, "?#", &text);
    if (str_begins(text, "?")) {
        uri.query = cut_at(skip(text, 1), "#", &text);
    }
    if (str_begins(text, "#")) {
        uri.fragment = skip(text, 1);
    }
    return uri;
}

/* Adds `path` without its . and .. segments; `from` is where the path begins in the buffer. */
static void add_path(struct buf *buf, struct ng_str path)
{
    size_t from = buf->len;
    while (path.len > 0) {
        struct ng_str rest;
        size_t slash = 0;
        if (path.data[0] == '/') {
            slash = 1;
        }
        struct ng_str segment = cut_at(skip(path, slash), "/", &rest);
        bool up = str_is(segment, "..");
        if (!up && !str_is(segment, ".")) {
            buf_add(buf, path.data, slash + segment.len);
        } else {
            while (up && buf->len > from && buf->data[--buf->len] != '/') {
            }
            if (rest.len == 0) {
                buf_add_char(buf, '/');
            }
        }
        path = rest;
    }
}

static void add_merged_path(struct buf *buf, const struct uri *base, struct ng_str path)
{
    struct buf merged;
    size_t keep = base->path.len;
    while (keep > 0 && base->path.data[keep - 1] != '/') {
        keep--;
    }
    buf_init(&merged, buf->max);
    if (base->authority.data != NULL && base->path.len == 0) {
        buf_add_char(&merged, '/');
    }
    buf_add(&merged, base->path.data, keep);
    buf_add_str(&merged, path);
    add_path(buf, buf_str(&merged));
    if (merged.rc != NG_OK) {
        buf->rc = merged.rc;
    }
    buf_done(&merged);
}

static void add_part(struct buf *buf, const char *before, struct ng_str part, const char *after)
{
    if (part.data != NULL) {
        buf_add_c(buf, before);
        buf_add_str(buf, part);
        buf_add_c(buf, after);
    }
}

/* `text` seen from `base`, without its fragment, in the arena. Absent: no memory. */
static struct ng_str uri_resolve(struct arena *arena, struct ng_str base_text,
                                 struct ng_str text)
{
    struct uri base = uri_parse(base_text);
    struct uri ref = uri_parse(text);
    bool own = ref.scheme.data != NULL || ref.authority.data != NULL;
    struct buf buf;
    buf_init(&buf, base_text.len + text.len + 16);
    add_part(&buf, "", ref.scheme.data != NULL ? ref.scheme : base.scheme, ":");
    add_part(&buf, "//", own ? ref.authority : base.authority, "");
    if (own || str_begins(ref.path, "/")) {
        add_path(&buf, ref.path);
    } else if (ref.path.len > 0) {
        add_merged_path(&buf, &base, ref.path);
    } else {
        buf_add_str(&buf, base.path);
    }
    bool keep_query = !own && ref.path.len == 0 && ref.query.data == NULL;
    add_part(&buf, "?", keep_query ? base.query : ref.query, "");
    struct ng_str result = {NULL, 0};
    if (buf.rc == NG_OK) {
        result = arena_copy(arena, buf.len == 0 ? ng_str_of("") : buf_str(&buf));
    }
    buf_done(&buf);
    return result;
}

int schema_add_resource(struct schema_compiler *compiler, struct ng_str base, struct ng_str id,
                        const struct ng_value *root, struct schema_resource **ret)
{
    struct schema_resource *resource = arena_zalloc(compiler->arena, sizeof(*resource));
    if (resource == NULL) {
        return schema_no_memory(compiler);
    }
    resource->uri = uri_resolve(compiler->arena, base, id);
    if (resource->uri.data == NULL) {
        return schema_no_memory(compiler);
    }
    resource->root = root;
    resource->next = compiler->resources;
    compiler->resources = resource;
    *ret = resource;
    return NG_OK;
}

/* %XX undone, in the arena. */
static struct ng_str percent_decode(struct arena *arena, struct ng_str text)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; out != NULL && i < text.len; i++) {
        char c = text.data[i];
        if (c == '%' && i + 2 < text.len && hex_digit(text.data[i + 1]) >= 0 &&
            hex_digit(text.data[i + 2]) >= 0) {
            c = (char)(hex_digit(text.data[i + 1]) * 16 + hex_digit(text.data[i + 2]));
            i += 2;
        }
        out[len++] = c;
    }
    return str_make(out, out == NULL ? 0 : len);
}

/* One step of a JSON Pointer: ~1 and ~0 undone in place of the token. */
static struct ng_str pointer_token(struct arena *arena, struct ng_str token)
{
    char *out = arena_alloc(arena, token.len + 1);
    size_t len = 0;
    for (size_t i = 0; out != NULL && i < token.len; i++) {
        char c = token.data[i];
        if (c == '~' && i + 1 < token.len) {
            i++;
            if (token.data[i] == '1') {
                c = '/';
            } else {
                c = '~';
            }
        }
        out[len++] = c;
    }
    return str_make(out, out == NULL ? 0 : len);
}

static const struct ng_value *pointer_step(const struct ng_value *value, struct ng_str token)
{
    size_t index = 0;
    if (value->type != NG_TYPE_ARRAY) {
        return json_get_str(value, token);
    }
    if (token.len == 0 || token.len > 9) {
        return NULL;
    }
    for (size_t i = 0; i < token.len; i++) {
        if (token.data[i] < '0' || token.data[i] > '9') {
            return NULL;
        }
        index = index * 10 + (size_t)(token.data[i] - '0');
    }
    const struct ng_value *item = value->first;
    for (; item != NULL && index > 0; index--) {
        item = item->next;
    }
    return item;
}

static struct schema_node *find_node(const struct schema *schema, const struct ng_value *value)
{
    struct schema_node *node = schema->nodes;
    while (node != NULL && node->value != value) {
        node = node->next;
    }
    return node;
}

static int refuse_ref(struct schema_compiler *compiler, const struct schema_pending *pending,
                      const char *why)
{
    struct ng_str shown = utf8_cut(pending->rule->value->text, SHOWN_BYTES);
    (void)snprintf(compiler->error, compiler->error_size, "\"$ref\" at #%s to \"%.*s\" %s",
                   pending->path.data, (int)shown.len, shown.data, why);
    return NG_EINVAL;
}

/* Follows `pointer` from the root of `resource`. */
static int resolve_pointer(struct schema_compiler *compiler,
                           const struct schema_pending *pending,
                           struct schema_resource *resource, struct ng_str pointer)
{
    struct schema_rule *rule = pending->rule;
    const struct ng_value *value = resource->root;
    while (value != NULL && pointer.len > 0) {
        struct ng_str raw = cut_at(skip(pointer, 1), "/", &pointer);
        struct ng_str token = pointer_token(compiler->arena, raw);
        if (token.data == NULL) {
            return schema_no_memory(compiler);
        }
        value = pointer_step(value, token);
        struct schema_node *met = NULL;
        if (value != NULL) {
            met = find_node(compiler->schema, value);
        }
        if (met != NULL) {
            resource = met->resource;
        }
    }
    if (value == NULL) {
        return refuse_ref(compiler, pending, "leads nowhere");
    }
    rule->node = find_node(compiler->schema, value);
    if (rule->node != NULL) {
        return NG_OK;
    }
    struct schema_place place = {.value = value};
    return schema_compile_node(compiler, &place, resource, &rule->node);
}

static int resolve_one(struct schema_compiler *compiler, const struct schema_pending *pending)
{
    struct schema_rule *rule = pending->rule;
    struct ng_str uri = uri_resolve(compiler->arena, pending->resource->uri, rule->value->text);
    struct ng_str fragment =
        percent_decode(compiler->arena, uri_parse(rule->value->text).fragment);
    if (uri.data == NULL || fragment.data == NULL) {
        return schema_no_memory(compiler);
    }
    struct schema_resource *resource = compiler->resources;
    while (resource != NULL && !str_equal(resource->uri, uri)) {
        resource = resource->next;
    }
    if (resource == NULL) {
        return refuse_ref(compiler, pending, "is remote, which is not supported");
    }
    if (fragment.len == 0 || fragment.data[0] == '/') {
        return resolve_pointer(compiler, pending, resource, fragment);
    }
    for (struct schema_anchor *anchor = compiler->anchors; anchor != NULL;
         anchor = anchor->next) {
        if (anchor->resource == resource && str_equal(anchor->name, fragment)) {
            rule->node = anchor->node;
            return NG_OK;
        }
    }
    return refuse_ref(compiler, pending, "leads nowhere");
}

int schema_resolve(struct schema_compiler *compiler)
{
    int rc = NG_OK;
    while (rc == NG_OK && compiler->pending != NULL) {
        const struct schema_pending *pending = compiler->pending;
        compiler->pending = pending->next; /* resolving may add more */
        rc = resolve_one(compiler, pending);
    }
    return rc;
}
