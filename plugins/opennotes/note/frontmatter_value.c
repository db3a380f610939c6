/* SPDX-License-Identifier: MIT */
/* frontmatter_value.c - values of front matter: lookup, comparison, merge, from JSON and to
 * JSON. */
#include "note.h"

bool notes_key_is_name(struct ng_str key)
{
    static const char *const names[] = {"tag", "tags", "alias", "aliases"};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        if (str_equal_fold(key, ng_str_of(names[i]))) {
            return true;
        }
    }
    return false;
}

const struct notes_value *notes_value_get(const struct notes_value *map, struct ng_str key)
{
    const struct notes_value *other = NULL; /* in another case */
    if (map == NULL || map->type != NOTES_MAP) {
        return NULL;
    }
    bool is_name = notes_key_is_name(key);
    for (const struct notes_value *member = map->first; member != NULL; member = member->next) {
        if (str_equal(member->key, key)) {
            return member;
        }
        if (is_name && other == NULL && str_equal_fold(member->key, key)) {
            other = member;
        }
    }
    return other;
}

static void write_container(struct buf *buf, const struct notes_value *value)
{
    bool map = value->type == NOTES_MAP;
    notes_json_begin(buf, "[{"[map]);
    for (const struct notes_value *item = value->first; item != NULL; item = item->next) {
        if (map) {
            notes_json_name(buf, item->key);
        }
        notes_value_json(buf, item);
    }
    notes_json_end(buf, "]}"[map]);
}

void notes_value_json(struct buf *buf, const struct notes_value *value)
{
    switch (value->type) {
    case NOTES_NULL:
        notes_json_null(buf);
        break;
    case NOTES_FALSE:
    case NOTES_TRUE:
        notes_json_bool(buf, value->type == NOTES_TRUE);
        break;
    case NOTES_NUMBER:
        notes_json_raw(buf, value->text);
        break;
    case NOTES_STRING:
        notes_json_text(buf, value->text);
        break;
    case NOTES_LIST:
    case NOTES_MAP:
        write_container(buf, value);
        break;
    }
}

static bool equal_containers(const struct notes_value *a, const struct notes_value *b)
{
    const struct notes_value *other = b->first;
    if (a->count != b->count) {
        return false;
    }
    for (const struct notes_value *item = a->first; item != NULL; item = item->next) {
        /* Members mostly come in the same order. */
        if (a->type == NOTES_MAP && (other == NULL || !str_equal(other->key, item->key))) {
            other = notes_value_get(b, item->key);
        }
        if (other == NULL || !notes_value_equal(item, other)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

bool notes_value_equal(const struct notes_value *a, const struct notes_value *b)
{
    if (a == b || a == NULL || b == NULL) {
        return a == b;
    }
    if (a->type != b->type) {
        return false;
    }
    if (a->type == NOTES_LIST || a->type == NOTES_MAP) {
        return equal_containers(a, b);
    }
    return (a->type != NOTES_STRING && a->type != NOTES_NUMBER) || str_equal(a->text, b->text);
}

bool notes_value_put(struct arena *arena, struct notes_value *map, struct ng_str key,
                     const struct notes_value *value)
{
    struct notes_value *copy = arena_zalloc(arena, sizeof(*copy));
    struct notes_value **link = &map->first;
    if (copy == NULL) {
        return false;
    }
    while (*link != NULL && !str_equal((*link)->key, key)) {
        link = &(*link)->next;
    }
    *copy = *value;
    copy->key = key;
    if (*link != NULL) {
        copy->next = (*link)->next;
    } else {
        copy->next = NULL;
        map->count++;
    }
    *link = copy;
    return true;
}

struct notes_value *notes_value_merge(struct arena *arena, const struct notes_value *over,
                                      const struct notes_value *under)
{
    struct notes_value *map = arena_zalloc(arena, sizeof(*map));
    if (map == NULL || over == NULL || under == NULL) {
        return NULL;
    }
    map->type = NOTES_MAP;
    for (const struct notes_value *item = over->first; item != NULL; item = item->next) {
        if (!notes_value_put(arena, map, item->key, item)) {
            return NULL;
        }
    }
    for (const struct notes_value *item = under->first; item != NULL; item = item->next) {
        if (notes_value_get(over, item->key) == NULL &&
            !notes_value_put(arena, map, item->key, item)) {
            return NULL;
        }
    }
    return map;
}

bool notes_value_is_deep(struct ng_call *call, const struct ng_value *json, unsigned depth)
{
    const struct ng_host *host = call->host;
    enum ng_type type = host->json_type(json);
    if (type != NG_TYPE_ARRAY && type != NG_TYPE_OBJECT) {
        return false;
    }
    if (depth >= NOTES_FRONTMATTER_DEPTH_MAX) {
        return true;
    }
    for (const struct ng_value *item = host->json_first(json); item != NULL;
         item = host->json_next(item)) {
        if (notes_value_is_deep(call, item, depth + 1)) {
            return true;
        }
    }
    return false;
}

struct notes_value *notes_value_from(struct arena *arena, struct ng_call *call,
                                     const struct ng_value *json, unsigned depth)
{
    const struct ng_host *host = call->host;
    static const enum notes_type types[] = {
        [NG_TYPE_ABSENT] = NOTES_NULL,   [NG_TYPE_NULL] = NOTES_NULL,
        [NG_TYPE_FALSE] = NOTES_FALSE,   [NG_TYPE_TRUE] = NOTES_TRUE,
        [NG_TYPE_NUMBER] = NOTES_NUMBER, [NG_TYPE_STRING] = NOTES_STRING,
        [NG_TYPE_ARRAY] = NOTES_LIST,    [NG_TYPE_OBJECT] = NOTES_MAP,
    };
    struct notes_value *value = arena_zalloc(arena, sizeof(*value));
    if (value == NULL || depth > NOTES_FRONTMATTER_DEPTH_MAX) {
        return NULL;
    }
    value->type = types[host->json_type(json)];
    if (value->type == NOTES_STRING || value->type == NOTES_NUMBER) {
        value->text = host->json_text(json);
    }
    if (value->type != NOTES_LIST && value->type != NOTES_MAP) {
        return value;
    }
    struct notes_value **link = &value->first;
    for (const struct ng_value *item = host->json_first(json); item != NULL;
         item = host->json_next(item)) {
        *link = notes_value_from(arena, call, item, depth + 1);
        if (*link == NULL) {
            return NULL;
        }
        (*link)->key = host->json_key(item);
        link = &(*link)->next;
        value->count++;
    }
    return value;
}
