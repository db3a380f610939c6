/* SPDX-License-Identifier: MIT */
/* front_value.c - values of front matter: looked up, compared, merged, from JSON and to JSON.
 */
#include "note.h"

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

bool on_value_put(struct on_arena *arena, struct on_value *map, struct ng_str key,
                  const struct on_value *value)
{
    struct on_value *copy = on_arena_alloc(arena, sizeof(*copy));
    struct on_value **link = &map->first;
    if (copy == NULL) {
        return false;
    }
    while (*link != NULL && !on_equal((*link)->key, key)) {
        link = &(*link)->next;
    }
    *copy = *value;
    copy->key = key;
    copy->next = *link != NULL ? (*link)->next : NULL;
    map->count += *link == NULL ? 1 : 0;
    *link = copy;
    return true;
}

struct on_value *on_value_merge(struct on_arena *arena, const struct on_value *over,
                                const struct on_value *under)
{
    struct on_value *map = on_arena_alloc(arena, sizeof(*map));
    if (map == NULL) {
        return NULL;
    }
    map->type = ON_MAP;
    for (const struct on_value *item = over->first; item != NULL; item = item->next) {
        if (!on_value_put(arena, map, item->key, item)) {
            return NULL;
        }
    }
    for (const struct on_value *item = under->first; item != NULL; item = item->next) {
        if (on_value_get(over, item->key) == NULL &&
            !on_value_put(arena, map, item->key, item)) {
            return NULL;
        }
    }
    return map;
}

static struct on_value *value_from(struct on_arena *arena, const struct ng_host *host,
                                   const struct ng_value *json, unsigned depth)
{
    static const enum on_type types[] = {
        [NG_TYPE_ABSENT] = ON_NULL, [NG_TYPE_NULL] = ON_NULL,     [NG_TYPE_FALSE] = ON_FALSE,
        [NG_TYPE_TRUE] = ON_TRUE,   [NG_TYPE_NUMBER] = ON_NUMBER, [NG_TYPE_STRING] = ON_STRING,
        [NG_TYPE_ARRAY] = ON_LIST,  [NG_TYPE_OBJECT] = ON_MAP,
    };
    struct on_value *value =
        depth > ON_FRONT_DEPTH_MAX ? NULL : on_arena_alloc(arena, sizeof(*value));
    if (value == NULL) {
        return NULL;
    }
    value->type = types[host->json_type(json)];
    if (value->type == ON_STRING || value->type == ON_NUMBER) {
        value->text = host->json_text(json);
    }
    if (value->type != ON_LIST && value->type != ON_MAP) {
        return value;
    }
    struct on_value **link = &value->first;
    for (const struct ng_value *item = host->json_first(json); item != NULL;
         item = host->json_next(item)) {
        *link = value_from(arena, host, item, depth + 1);
        if (*link == NULL) {
            return NULL;
        }
        (*link)->key = value->type == ON_MAP ? host->json_key(item) : on_str(NULL, 0);
        link = &(*link)->next;
        value->count++;
    }
    return value;
}

struct on_value *on_value_from(struct on_arena *arena, struct ng_call *call,
                               const struct ng_value *json)
{
    return value_from(arena, call->host, json, 0);
}
