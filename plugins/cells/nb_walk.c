/* SPDX-License-Identifier: MIT */
/* nb_walk.c - over members and elements of JSON that was found well formed. No memory. */
#include "nb.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void walk_space(struct nb_walk *walk)
{
    while (walk->at < walk->end && is_space(walk->bytes.data[walk->at])) {
        walk->at++;
    }
}

/* Behind the closing quote of the string that begins at `at`. */
static size_t after_string(struct ng_str bytes, size_t at, size_t end)
{
    size_t start = at + 1;
    for (at = start; at < end; at++) {
        const char *quote = memchr(bytes.data + at, '"', end - at);
        if (quote == NULL) {
            break;
        }
        at = (size_t)(quote - bytes.data);
        size_t before = at;
        while (before > start && bytes.data[before - 1] == '\\') {
            before--;
        }
        if ((at - before) % 2 == 0) {
            return at + 1;
        }
    }
    return end;
}

static size_t after_value(struct ng_str bytes, size_t at, size_t end)
{
    unsigned depth = 0;
    do {
        char c = bytes.data[at];
        if (c == '"') {
            at = after_string(bytes, at, end);
        } else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (c == '}' || c == ']') {
            depth--;
            at++;
        } else if (depth > 0) {
            at++;
        } else {
            while (at < end && !is_space(bytes.data[at]) && bytes.data[at] != ',' &&
                   bytes.data[at] != '}' && bytes.data[at] != ']') {
                at++;
            }
        }
    } while (depth > 0 && at < end);
    return at;
}

struct nb_walk nb_walk_into(struct ng_str bytes, struct nb_span span)
{
    struct nb_walk walk = {bytes, span.at, span.at};
    if (span.len >= 2) {
        walk.at = span.at + 1;
        walk.end = span.at + span.len - 1;
    }
    return walk;
}

bool nb_walk_element(struct nb_walk *walk, struct nb_span *ret_value)
{
    walk_space(walk);
    if (walk->at >= walk->end) {
        return false;
    }
    if (walk->bytes.data[walk->at] == ',') {
        walk->at++;
        walk_space(walk);
    }
    size_t start = walk->at;
    if (start >= walk->end) {
        return false;
    }
    walk->at = after_value(walk->bytes, start, walk->end);
    *ret_value = (struct nb_span){start, walk->at - start};
    return true;
}

bool nb_walk_member(struct nb_walk *walk, struct nb_span *ret_name, struct nb_span *ret_value)
{
    if (!nb_walk_element(walk, ret_name)) {
        return false;
    }
    walk_space(walk);
    walk->at++; /* the colon */
    walk_space(walk);
    size_t start = walk->at;
    if (start >= walk->end) {
        return false;
    }
    walk->at = after_value(walk->bytes, start, walk->end);
    *ret_value = (struct nb_span){start, walk->at - start};
    return true;
}

struct nb_span nb_member(struct ng_str bytes, struct nb_span object, const char *name)
{
    struct nb_span found = {0, 0};
    struct nb_span at;
    struct nb_span value;
    if (object.len < 2 || bytes.data[object.at] != '{') {
        return found;
    }
    struct nb_walk walk = nb_walk_into(bytes, object);
    while (nb_walk_member(&walk, &at, &value)) {
        if (nb_is_word(bytes, at, name)) {
            found = value;
        }
    }
    return found;
}

struct ng_str nb_bytes(struct ng_str bytes, struct nb_span span)
{
    struct ng_str str = {bytes.data + span.at, span.len};
    return str;
}

bool nb_is_word(struct ng_str bytes, struct nb_span string, const char *word)
{
    size_t len = strlen(word);
    return string.len == len + 2 && bytes.data[string.at] == '"' &&
           memcmp(bytes.data + string.at + 1, word, len) == 0;
}

bool nb_integer(struct ng_str bytes, struct nb_span number, int64_t *ret)
{
    int64_t value = 0;
    if (number.len == 0 || number.len > 18) {
        return false;
    }
    for (size_t i = 0; i < number.len; i++) {
        char c = bytes.data[number.at + i];
        if (c < '0' || c > '9') {
            return false;
        }
        value = value * 10 + (c - '0');
    }
    *ret = value;
    return true;
}
