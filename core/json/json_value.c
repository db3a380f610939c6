/* SPDX-License-Identifier: MIT */
/* json_value.c - looking into parsed values: members, equality, hashes. Recursion is as deep as
 * the parser let the value be. */
#include <stdlib.h>

#include "core/base/str.h"
#include "json_number.h"

/* Up to this many members are looked up one by one, more are sorted first. */
#define MEMBERS_UNSORTED 32
/* Digits of an integer that needs no look for its size. */
#define PLAIN_DIGITS 18

const struct ng_value *json_get_str(const struct ng_value *object, struct ng_str name)
{
    if (object == NULL || object->type != NG_TYPE_OBJECT) {
        return NULL;
    }
    for (const struct ng_value *member = object->first; member != NULL; member = member->next) {
        if (str_equal(member->key, name)) {
            return member;
        }
    }
    return NULL;
}

struct ng_str json_text(const struct ng_value *value)
{
    if (value == NULL || (value->type != NG_TYPE_STRING && value->type != NG_TYPE_NUMBER)) {
        return str_make(NULL, 0);
    }
    return value->text;
}

int json_integer(const struct ng_value *number, int64_t *ret)
{
    if (number == NULL || number->type != NG_TYPE_NUMBER) {
        return NG_EINVAL;
    }
    int64_t value = 0;
    size_t at = 0;
    while (at < number->text.len && at < PLAIN_DIGITS && str_is_digit(number->text.data[at])) {
        value = value * 10 + (number->text.data[at++] - '0');
    }
    if (at < number->text.len) {
        return json_decimal_integer(number->text, ret);
    }
    *ret = value;
    return NG_OK;
}

struct ng_str json_get_text(const struct ng_value *object, const char *name)
{
    const struct ng_value *value = json_get(object, name);
    if (!json_is(value, NG_TYPE_STRING)) {
        return (struct ng_str){NULL, 0};
    }
    return value->text;
}

int64_t json_get_integer(const struct ng_value *object, const char *name)
{
    int64_t value = 0;
    (void)json_integer(json_get(object, name), &value);
    return value;
}

bool json_has_text(const struct ng_value *array, struct ng_str text)
{
    const struct ng_value *at = NULL;
    if (json_is(array, NG_TYPE_ARRAY)) {
        at = array->first;
    }
    while (at != NULL && (at->type != NG_TYPE_STRING || !str_equal(at->text, text))) {
        at = at->next;
    }
    return at != NULL;
}

static bool equal_arrays(const struct ng_value *a, const struct ng_value *b)
{
    const struct ng_value *left = a->first;
    const struct ng_value *right = b->first;
    while (left != NULL && right != NULL) {
        if (!json_equal(left, right)) {
            return false;
        }
        left = left->next;
        right = right->next;
    }
    return left == right;
}

static int by_key(const void *a, const void *b)
{
    const struct ng_value *const *left = a;
    const struct ng_value *const *right = b;
    return str_compare((*left)->key, (*right)->key);
}

static void sort_members(const struct ng_value **list, const struct ng_value *object)
{
    size_t count = 0;
    for (const struct ng_value *member = object->first; member != NULL; member = member->next) {
        list[count++] = member;
    }
    qsort((void *)list, count, sizeof(const struct ng_value *), by_key);
}

/* By sorting; *ret_done is false where there is no memory for it. */
static bool equal_big_objects(const struct ng_value *a, const struct ng_value *b,
                              bool *ret_done)
{
    const struct ng_value **list = alloc_zeroed(a->count, 2 * sizeof(const struct ng_value *));
    *ret_done = list != NULL;
    if (list == NULL) {
        return false;
    }
    const struct ng_value **other = list + a->count;
    bool equal = true;
    sort_members(list, a);
    sort_members(other, b);
    for (uint32_t i = 0; i < a->count && equal; i++) {
        equal = str_equal(list[i]->key, other[i]->key) && json_equal(list[i], other[i]);
    }
    free((void *)list);
    return equal;
}

static bool equal_objects(const struct ng_value *a, const struct ng_value *b)
{
    if (a->count > MEMBERS_UNSORTED) {
        bool done = false;
        bool equal = equal_big_objects(a, b, &done);
        if (done) {
            return equal;
        }
    }
    const struct ng_value *guess = b->first; /* most often the order is the same */
    for (const struct ng_value *member = a->first; member != NULL; member = member->next) {
        const struct ng_value *other = guess;
        if (other == NULL || !str_equal(other->key, member->key)) {
            other = json_get_str(b, member->key);
        }
        if (other == NULL || !json_equal(member, other)) {
            return false;
        }
        guess = other->next;
    }
    return true;
}

bool json_equal(const struct ng_value *a, const struct ng_value *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    if (a->type != b->type || a->count != b->count) {
        return false;
    }
    switch (a->type) {
    case NG_TYPE_NUMBER:
        return json_compare_numbers(a->text, b->text) == 0;
    case NG_TYPE_STRING:
        return str_equal(a->text, b->text);
    case NG_TYPE_ARRAY:
        return equal_arrays(a, b);
    case NG_TYPE_OBJECT:
        return equal_objects(a, b);
    default:
        return true;
    }
}

static uint64_t hash_mix(uint64_t a, uint64_t b)
{
    uint64_t words[2] = {a, b};
    return str_hash(str_make((const char *)words, sizeof(words)));
}

static uint64_t hash_number(struct ng_str number)
{
    struct json_decimal decimal = json_decimal_of(number);
    uint64_t hash = hash_mix((uint64_t)decimal.point, decimal.negative);
    for (const char *at = decimal.digits; at != decimal.end; at++) {
        if (*at != '.') {
            hash = hash * 31 + (unsigned char)*at;
        }
    }
    return hash_mix(hash, decimal.count);
}

uint64_t json_hash(const struct ng_value *value)
{
    uint64_t hash = value->type;
    switch (value->type) {
    case NG_TYPE_NUMBER:
        return hash_mix(hash, hash_number(value->text));
    case NG_TYPE_STRING:
        return hash_mix(hash, str_hash(value->text));
    case NG_TYPE_ARRAY:
        for (const struct ng_value *item = value->first; item != NULL; item = item->next) {
            hash = hash_mix(hash, json_hash(item));
        }
        return hash;
    case NG_TYPE_OBJECT:
        /* A sum, for the order does not count. */
        for (const struct ng_value *member = value->first; member != NULL;
             member = member->next) {
            hash += hash_mix(str_hash(member->key), json_hash(member));
        }
        return hash_mix(hash, value->count);
    default:
        return hash_mix(hash, 0);
    }
}

bool json_drop_nulls(struct ng_value *value)
{
    bool dropped = false;
    struct ng_value **at = &value->first;
    while (*at != NULL) {
        struct ng_value *child = *at;
        if (child->type == NG_TYPE_NULL && value->type == NG_TYPE_OBJECT) {
            *at = child->next;
            value->count--;
            dropped = true;
        } else {
            dropped = json_drop_nulls(child) || dropped;
            at = &child->next;
        }
    }
    if (dropped) {
        value->text = str_make(NULL, 0);
        value->printed = false;
    }
    return dropped;
}

struct ng_value *json_clone(struct arena *arena, const struct ng_value *value)
{
    struct ng_value *copy = arena_alloc(arena, sizeof(*copy));
    if (copy == NULL) {
        return NULL;
    }
    *copy = *value;
    copy->key = arena_copy(arena, value->key);
    bool container = value->type == NG_TYPE_OBJECT || value->type == NG_TYPE_ARRAY;
    copy->text = str_make(NULL, 0);
    if (!container) {
        copy->text = arena_copy(arena, value->text);
    }
    copy->next = NULL;
    copy->printed = false;
    if ((value->key.data != NULL && copy->key.data == NULL) ||
        (!container && value->text.data != NULL && copy->text.data == NULL)) {
        return NULL;
    }
    struct ng_value **tail = &copy->first;
    *tail = NULL;
    for (const struct ng_value *child = value->first; child != NULL; child = child->next) {
        *tail = json_clone(arena, child);
        if (*tail == NULL) {
            return NULL;
        }
        tail = &(*tail)->next;
    }
    return copy;
}
