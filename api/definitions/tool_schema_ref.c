/* SPDX-License-Identifier: MIT */
/* tool_schema_ref.c - pointers, anchors and identifiers of one schema. The registry has
 * compiled the schema before, so the targets exist. */
#include "tool_schema_ref.h"

#include "core/base/str.h"

/* Schemas are looked through so deep for anchors. */
#define DEPTH_MAX 64
#define INDEX_MAX 999999

static const char *const definitions[] = {"$defs", "definitions"};

static struct ng_str skip(struct ng_str text, size_t bytes)
{
    return str_make(text.data + bytes, text.len - bytes);
}

static const struct ng_value *item_at(const struct ng_value *array, struct ng_str token)
{
    uint64_t at = 0;
    if (!str_number(token, INDEX_MAX, &at)) {
        return NULL;
    }
    const struct ng_value *item = array->first;
    while (item != NULL && at-- > 0) {
        item = item->next;
    }
    return item;
}

/* One step of a pointer; ~1 is a slash in it, ~0 a tilde. */
static const struct ng_value *step(const struct ng_value *from, struct ng_str token, bool *oom)
{
    struct buf name;
    const struct ng_value *found = NULL;
    if (from->type == NG_TYPE_ARRAY) {
        return item_at(from, token);
    }
    if (from->type != NG_TYPE_OBJECT) {
        return NULL;
    }
    buf_init(&name, TOOL_SCHEMA_REF_MAX);
    name.oom = oom;
    for (size_t i = 0; i < token.len; i++) {
        char c = token.data[i];
        if (c == '~' && i + 1 < token.len) {
            if (token.data[++i] == '1') {
                c = '/';
            }
        }
        (void)buf_add_char(&name, c);
    }
    if (name.rc == NG_OK) {
        found = json_get_str(from, buf_str(&name));
    }
    buf_done(&name);
    return found;
}

/* pointer: "/a/b" */
static const struct ng_value *walk(const struct ng_value *from, struct ng_str pointer,
                                   bool *oom)
{
    while (from != NULL && pointer.len > 0) {
        size_t end = 1;
        while (end < pointer.len && pointer.data[end] != '/') {
            end++;
        }
        from = step(from, str_make(pointer.data + 1, end - 1), oom);
        pointer = skip(pointer, end);
    }
    return from;
}

/* The first schema in `from` whose `keyword` is `name`. */
static const struct ng_value *search(const struct ng_value *from, const char *keyword,
                                     struct ng_str name, int depth)
{
    if (depth > DEPTH_MAX || (from->type != NG_TYPE_OBJECT && from->type != NG_TYPE_ARRAY)) {
        return NULL;
    }
    if (str_equal(json_get_text(from, keyword), name)) {
        return from;
    }
    const struct ng_value *found = NULL;
    for (const struct ng_value *one = from->first; one != NULL && found == NULL;
         one = one->next) {
        found = search(one, keyword, name, depth + 1);
    }
    return found;
}

static void write_pointer(const struct ng_value *root, const struct ng_value *target,
                          struct buf *pointer)
{
    if (target == root) {
        (void)buf_add_char(pointer, '#');
        return;
    }
    for (size_t i = 0; i < NG_COUNT(definitions); i++) {
        const struct ng_value *map = json_get(root, definitions[i]);
        const struct ng_value *one = json_first(map);
        while (one != NULL && one != target) {
            one = one->next;
        }
        if (one == NULL) {
            continue;
        }
        (void)buf_add_c(pointer, "#/$defs/");
        for (size_t at = 0; at < one->key.len; at++) {
            char c = one->key.data[at];
            if (c == '~') {
                (void)buf_add_c(pointer, "~0");
            } else if (c == '/') {
                (void)buf_add_c(pointer, "~1");
            } else {
                (void)buf_add_char(pointer, c);
            }
        }
        return;
    }
}

bool tool_schema_ref_find(const struct ng_value *root, struct ng_str ref, struct buf *pointer,
                          const struct ng_value **ret_target)
{
    const struct ng_value *target = NULL;
    struct ng_str id = json_get_text(root, "$id");
    if (id.len > 0 && str_starts(ref, id) && (ref.len == id.len || ref.data[id.len] == '#')) {
        ref = skip(ref, id.len);
    }
    if (ref.len == 0 || str_is(ref, "#")) {
        target = root;
    } else if (str_begins(ref, "#/")) {
        target = walk(root, skip(ref, 1), pointer->oom);
    } else if (ref.data[0] == '#') {
        target = search(root, "$anchor", skip(ref, 1), 0);
    } else {
        target = search(root, "$id", ref, 0);
    }
    if (target == NULL) {
        return false;
    }
    write_pointer(root, target, pointer);
    *ret_target = target;
    return pointer->rc == NG_OK;
}
