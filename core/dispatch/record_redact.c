/* SPDX-License-Identifier: MIT */
/* record_redact.c - arguments as text, without what their schema marks as secret. */
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "record.h"

/* Schemas that describe one value at the same time, and nesting that is printed. */
#define SCHEMAS_MAX 32
#define DEPTH_MAX 16

struct schemas {
    const struct ng_value *root;
    const struct ng_value *items[SCHEMAS_MAX];
    size_t count;
    bool full; /* there are more, any of which may mark it */
};

static bool is_true(const struct ng_value *schema, const char *name)
{
    const struct ng_value *value = json_get(schema, name);
    return value != NULL && value->type == NG_TYPE_TRUE;
}

/* "#/$defs/NAME" and the like; NULL: not in this schema. */
static const struct ng_value *resolve(const struct ng_value *root, struct ng_str ref)
{
    const struct ng_value *at = root;
    size_t from = 2;
    if (ref.len < 2 || memcmp(ref.data, "#/", 2) != 0) {
        if (ref.len == 1 && ref.data[0] == '#') {
            return root;
        }
        return NULL;
    }
    while (at != NULL && from < ref.len) {
        size_t to = from;
        while (to < ref.len && ref.data[to] != '/') {
            to++;
        }
        struct ng_str name = {ref.data + from, to - from};
        const struct ng_value *member = NULL;
        if (at->type == NG_TYPE_OBJECT) {
            member = at->first;
        }
        while (member != NULL && !str_equal(member->key, name)) {
            member = member->next;
        }
        at = member;
        from = to + 1;
    }
    return at;
}

static void schemas_add_all(struct schemas *schemas, const struct ng_value *container,
                            enum ng_type type);

/* The schema, and all that it refers to or combines. */
static void schemas_add(struct schemas *schemas, const struct ng_value *schema)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    static const char *const ones[] = {"then", "else", "if"};
    if (schema == NULL || schema->type != NG_TYPE_OBJECT) {
        return;
    }
    for (size_t i = 0; i < schemas->count; i++) {
        if (schemas->items[i] == schema) {
            return;
        }
    }
    if (schemas->count == SCHEMAS_MAX) {
        schemas->full = true;
        return;
    }
    schemas->items[schemas->count++] = schema;
    const struct ng_value *ref = json_get(schema, "$ref");
    if (ref != NULL && ref->type == NG_TYPE_STRING) {
        schemas_add(schemas, resolve(schemas->root, ref->text));
    }
    for (size_t i = 0; i < NG_COUNT(lists); i++) {
        const struct ng_value *list = json_get(schema, lists[i]);
        schemas_add_all(schemas, list, NG_TYPE_ARRAY);
    }
    for (size_t i = 0; i < NG_COUNT(ones); i++) {
        schemas_add(schemas, json_get(schema, ones[i]));
    }
}

/* The elements of a container of this type. */
static void schemas_add_all(struct schemas *schemas, const struct ng_value *container,
                            enum ng_type type)
{
    if (container == NULL || container->type != type) {
        return;
    }
    for (const struct ng_value *item = container->first; item != NULL; item = item->next) {
        schemas_add(schemas, item);
    }
}

static bool schemas_secret(const struct schemas *schemas)
{
    if (schemas->full) {
        return true;
    }
    for (size_t i = 0; i < schemas->count; i++) {
        const struct ng_value *format = json_get(schemas->items[i], "format");
        if (is_true(schemas->items[i], "writeOnly") ||
            is_true(schemas->items[i], "x-notegate-secret") ||
            (format != NULL && format->type == NG_TYPE_STRING &&
             str_is(format->text, "password"))) {
            return true;
        }
    }
    return false;
}

static void schemas_of_member(const struct schemas *schemas, struct ng_str name,
                              struct schemas *ret)
{
    *ret = (struct schemas){.root = schemas->root};
    for (size_t i = 0; i < schemas->count; i++) {
        const struct ng_value *properties = json_get(schemas->items[i], "properties");
        bool is_object = properties != NULL && properties->type == NG_TYPE_OBJECT;
        const struct ng_value *member = NULL;
        if (is_object) {
            member = properties->first;
        }
        while (member != NULL && !str_equal(member->key, name)) {
            member = member->next;
        }
        schemas_add(ret, member != NULL ? member
                                        : json_get(schemas->items[i], "additionalProperties"));
        /* Which names a pattern means is left open: whatever one of them marks is a secret. */
        const struct ng_value *patterns = json_get(schemas->items[i], "patternProperties");
        schemas_add_all(ret, patterns, NG_TYPE_OBJECT);
    }
}

static void schemas_of_items(const struct schemas *schemas, struct schemas *ret)
{
    *ret = (struct schemas){.root = schemas->root};
    for (size_t i = 0; i < schemas->count; i++) {
        schemas_add(ret, json_get(schemas->items[i], "items"));
        const struct ng_value *prefix = json_get(schemas->items[i], "prefixItems");
        schemas_add_all(ret, prefix, NG_TYPE_ARRAY);
    }
}

static void print_string(struct buf *out, struct ng_str text)
{
    struct ng_str cut = utf8_cut(text, RECORD_STRING_MAX);
    (void)buf_add_json(out, cut);
    if (cut.len < text.len) {
        (void)buf_printf(out, "... (%zu bytes)", text.len);
    }
}

static void print_value(struct buf *out, const struct ng_value *value,
                        const struct schemas *schemas, unsigned depth)
{
    struct schemas inner;
    if (schemas_secret(schemas)) {
        (void)buf_add_c(out, "\"[redacted]\"");
        return;
    }
    bool is_object = value->type == NG_TYPE_OBJECT;
    if (value->type == NG_TYPE_STRING) {
        print_string(out, value->text);
        return;
    }
    if (!is_object && value->type != NG_TYPE_ARRAY) {
        (void)json_print(out, value);
        return;
    }
    (void)buf_add_char(out, is_object ? '{' : '[');
    for (const struct ng_value *item = value->first; item != NULL; item = item->next) {
        if (out->len > RECORD_ARGUMENTS_MAX || depth == DEPTH_MAX) {
            (void)buf_add_c(out, "...");
            break;
        }
        if (item != value->first) {
            (void)buf_add_char(out, ',');
        }
        if (is_object) {
            print_string(out, item->key);
            (void)buf_add_char(out, ':');
            schemas_of_member(schemas, item->key, &inner);
        } else {
            schemas_of_items(schemas, &inner);
        }
        print_value(out, item, &inner, depth + 1);
    }
    (void)buf_add_char(out, is_object ? '}' : ']');
}

void record_print(struct buf *out, const struct ng_value *args, const struct ng_value *schema)
{
    struct schemas schemas = {.root = schema};
    schemas_add(&schemas, schema);
    print_value(out, args, &schemas, 0);
}
