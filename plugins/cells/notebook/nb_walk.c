/* SPDX-License-Identifier: MIT */
/* nb_walk.c - iterates over well-formed JSON without allocating. */
#include "nb.h"

#include <stdlib.h>
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

/* The end of the string that begins at `at`. */
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
    return nb_walk_element(walk, ret_value);
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

/* The character at `at` in a string, plain or escaped, if it is ASCII; otherwise '\0'. */
static char plain_character(struct ng_str bytes, size_t at, size_t end, size_t *ret_len)
{
    char digits[3] = {0};
    const char *p = bytes.data + at;
    *ret_len = 1;
    if (*p != '\\') {
        return *p;
    }
    *ret_len = 2;
    if (end - at >= 2 && p[1] == '/') {
        return '/';
    }
    if (end - at < 6 || p[1] != 'u' || p[2] != '0' || p[3] != '0' || p[4] < '0' || p[4] > '7') {
        return '\0';
    }
    *ret_len = 6;
    memcpy(digits, p + 4, 2);
    return (char)strtol(digits, NULL, 16);
}

bool nb_is_word(struct ng_str bytes, struct nb_span string, const char *word)
{
    if (string.len < 2 || bytes.data[string.at] != '"') {
        return false;
    }
    size_t at = string.at + 1;
    size_t end = string.at + string.len - 1;
    for (; *word != '\0' && at < end; word++) {
        size_t len = 1;
        if (plain_character(bytes, at, end, &len) != *word) {
            return false;
        }
        at += len;
    }
    return *word == '\0' && at == end;
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
