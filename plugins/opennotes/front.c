/* SPDX-License-Identifier: MIT */
/* front.c - where front matter is in a file, and its values. */
#include "note.h"

#include <string.h>

const struct on_value *on_value_get(const struct on_value *map, struct ng_str key)
{
    if (map == NULL || map->type != ON_MAP) {
        return NULL;
    }
    for (const struct on_value *member = map->first; member != NULL; member = member->next) {
        if (on_equal(member->key, key)) {
            return member;
        }
    }
    return NULL;
}

static void write_container(struct on_buf *buf, const struct on_value *value)
{
    bool map = value->type == ON_MAP;
    on_json_begin(buf, map ? '{' : '[');
    for (const struct on_value *item = value->first; item != NULL; item = item->next) {
        if (map) {
            on_json_name(buf, item->key);
        }
        on_value_json(buf, item);
    }
    on_json_end(buf, map ? '}' : ']');
}

void on_value_json(struct on_buf *buf, const struct on_value *value)
{
    switch (value->type) {
    case ON_NULL:
        on_json_null(buf);
        break;
    case ON_FALSE:
    case ON_TRUE:
        on_json_bool(buf, value->type == ON_TRUE);
        break;
    case ON_NUMBER:
        on_json_raw(buf, value->text);
        break;
    case ON_STRING:
        on_json_text(buf, value->text);
        break;
    case ON_LIST:
    case ON_MAP:
        write_container(buf, value);
        break;
    }
}

static bool equal_containers(const struct on_value *a, const struct on_value *b)
{
    const struct on_value *other = b->first;
    if (a->count != b->count) {
        return false;
    }
    for (const struct on_value *item = a->first; item != NULL; item = item->next) {
        /* Members mostly come in the same order. */
        if (a->type == ON_MAP && (other == NULL || !on_equal(other->key, item->key))) {
            other = on_value_get(b, item->key);
        }
        if (other == NULL || !on_value_equal(item, other)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

bool on_value_equal(const struct on_value *a, const struct on_value *b)
{
    if (a == b || a == NULL || b == NULL) {
        return a == b;
    }
    if (a->type != b->type) {
        return false;
    }
    if (a->type == ON_LIST || a->type == ON_MAP) {
        return equal_containers(a, b);
    }
    return (a->type != ON_STRING && a->type != ON_NUMBER) || on_equal(a->text, b->text);
}

/* ---- where it is */

/* The line at `at` without its end; *ret_next: where the next begins. */
static struct ng_str line_at(struct ng_str bytes, size_t at, size_t *ret_next)
{
    const char *end = at < bytes.len ? memchr(bytes.data + at, '\n', bytes.len - at) : NULL;
    size_t stop = end != NULL ? (size_t)(end - bytes.data) : bytes.len;
    *ret_next = end != NULL ? stop + 1 : stop;
    return on_str(bytes.data + at, stop - at);
}

/* Three of these and nothing but blanks behind them. */
static bool is_fence(struct ng_str line, const char *fence)
{
    if (!on_begins(line, fence)) {
        return false;
    }
    for (size_t i = strlen(fence); i < line.len; i++) {
        if (line.data[i] != ' ' && line.data[i] != '\t' &&
            !(line.data[i] == '\r' && i + 1 == line.len)) {
            return false;
        }
    }
    return true;
}

void on_front_find(struct ng_str bytes, struct on_front *front)
{
    *front = (struct on_front){.bom = on_begins(bytes, "\xef\xbb\xbf") ? 3 : 0};
    front->body = front->bom;
    front->yaml = front->bom;
    front->end = front->bom;
    size_t next = front->bom;
    struct ng_str line = line_at(bytes, front->bom, &next);
    bool ended = next > front->bom + line.len;
    front->crlf = ended && on_ends(line, "\r");
    if (!is_fence(line, "---") || !ended) {
        return;
    }
    size_t yaml = next;
    size_t lines = 1;
    while (next < bytes.len) {
        size_t at = next;
        line = line_at(bytes, at, &next);
        lines++;
        if (is_fence(line, "---") || is_fence(line, "...")) {
            front->there = true;
            front->yaml = yaml;
            front->end = at;
            front->body = next;
            front->lines = lines;
            return;
        }
    }
}
