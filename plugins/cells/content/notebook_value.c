/* SPDX-License-Identifier: MIT */
/* notebook_value.c - JSON values of notebooks compared by a canonical text: without white
 * space, members sorted, strings in one spelling. */
#include "notebook_value.h"

#include "core/base/arena.h"
#include "core/base/array.h"
#include "core/base/str.h"

/* Members of an object, each as `name:value,` in the canonical text. */
struct value_members {
    struct ng_str *items; /* while the text grows, only their lengths hold */
    size_t count, cap;
};

static void value_add(struct nb_text *out, struct ng_str bytes, struct nb_span value);

/* A string with the escape of a surrogate keeps its spelling: lone ones have no UTF-8. */
static bool value_has_surrogate(struct ng_str string)
{
    for (size_t at = str_find(string, ng_str_of("\\u"), 0); at < string.len;
         at = str_find(string, ng_str_of("\\u"), at + 2)) {
        if (at + 2 < string.len && str_lower(string.data[at + 2]) == 'd') {
            return true;
        }
    }
    return false;
}

static void value_add_string(struct nb_text *out, struct ng_str bytes, struct nb_span string)
{
    struct ng_str written = nb_bytes(bytes, string);
    struct nb_text text = {0};
    if (memchr(written.data, '\\', written.len) == NULL || value_has_surrogate(written)) {
        nb_add_str(out, written);
        return;
    }
    nb_decode(&text, bytes, string);
    out->failed |= text.failed;
    bool ascii = false;
    nb_encode(out, nb_text_str(&text), ascii);
    nb_text_done(&text);
}

static int value_compare_members(const void *a, const void *b)
{
    const struct ng_str *one = a;
    const struct ng_str *other = b;
    return str_compare(*one, *other);
}

static bool value_is_sorted(const struct value_members *members)
{
    for (size_t i = 1; i < members->count; i++) {
        if (str_compare(members->items[i - 1], members->items[i]) > 0) {
            return false;
        }
    }
    return true;
}

/* Sorts the members, which are the end of the text from `start` on. */
static void value_sort(struct nb_text *out, size_t start, struct value_members *members)
{
    size_t len = out->len - start;
    char *copy = alloc_bytes(len + 1);
    if (copy == NULL || out->failed) {
        out->failed = true;
        free(copy);
        return;
    }
    memcpy(copy, out->data + start, len);
    const char *at = copy;
    for (size_t i = 0; i < members->count; i++) {
        members->items[i].data = at;
        at += members->items[i].len;
    }
    if (!value_is_sorted(members)) {
        qsort(members->items, members->count, sizeof(*members->items), value_compare_members);
        out->len = start;
        for (size_t i = 0; i < members->count; i++) {
            nb_add_str(out, members->items[i]);
        }
    }
    free(copy);
}

static void value_add_object(struct nb_text *out, struct ng_str bytes, struct nb_span object)
{
    struct nb_walk walk = nb_walk_into(bytes, object);
    struct value_members members = {.count = 0};
    struct nb_span name;
    struct nb_span value;
    nb_add_word(out, "{");
    size_t start = out->len;
    while (!out->failed && nb_walk_member(&walk, &name, &value)) {
        size_t from = out->len;
        if (array_reserve((void **)&members.items, &members.cap, members.count + 1,
                          sizeof(*members.items),
                          SIZE_MAX / 4 / sizeof(*members.items)) != NG_OK) {
            out->failed = true;
            break;
        }
        value_add_string(out, bytes, name);
        nb_add_word(out, ":");
        value_add(out, bytes, value);
        nb_add_word(out, ",");
        members.items[members.count++] = str_make(NULL, out->len - from);
    }
    if (members.count > 1) {
        value_sort(out, start, &members);
    }
    free(members.items);
    nb_add_word(out, "}");
}

static void value_add_array(struct nb_text *out, struct ng_str bytes, struct nb_span array)
{
    struct nb_walk walk = nb_walk_into(bytes, array);
    struct nb_span element;
    nb_add_word(out, "[");
    while (!out->failed && nb_walk_element(&walk, &element)) {
        value_add(out, bytes, element);
        nb_add_word(out, ",");
    }
    nb_add_word(out, "]");
}

/* A notebook is nested NB_DEPTH_MAX levels deep at most. */
static void value_add(struct nb_text *out, struct ng_str bytes, struct nb_span value)
{
    char first = bytes.data[value.at];
    if (first == '{') {
        value_add_object(out, bytes, value);
    } else if (first == '[') {
        value_add_array(out, bytes, value);
    } else if (first == '"') {
        value_add_string(out, bytes, value);
    } else {
        nb_add_str(out, nb_bytes(bytes, value));
    }
}

bool notebook_value_same(struct ng_str a, struct ng_str b, bool *inout_failed)
{
    struct nb_text one = {0};
    struct nb_text other = {0};
    if (a.len == 0 || b.len == 0 || str_equal(a, b)) {
        return a.len == b.len;
    }
    value_add(&one, a, (struct nb_span){0, a.len});
    value_add(&other, b, (struct nb_span){0, b.len});
    *inout_failed |= one.failed || other.failed;
    bool same = str_equal(nb_text_str(&one), nb_text_str(&other));
    nb_text_done(&one);
    nb_text_done(&other);
    return same;
}

enum merge3_value notebook_value_choose(const struct ng_str values[3], bool *inout_failed)
{
    if (notebook_value_same(values[2], values[0], inout_failed) ||
        notebook_value_same(values[1], values[2], inout_failed)) {
        return MERGE3_PRESENT;
    }
    return notebook_value_same(values[1], values[0], inout_failed) ? MERGE3_BEFORE
                                                                   : MERGE3_CONFLICT;
}
