/* SPDX-License-Identifier: MIT */
/*
 * checkpoint_text.c - finds members in the text of a checkpoint without parsing it into a tree,
 * which would take several times the memory.
 *
 * The text may come from another program and hold anything: invalid JSON is found when a piece
 * is parsed.
 */
#include "checkpoint.h"

#include <string.h>

static bool text_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t text_skip_blanks(struct ng_str json, size_t at)
{
    while (at < json.len && text_is_blank(json.data[at])) {
        at++;
    }
    return at;
}

/* The position behind the string that begins at `at`. */
static size_t text_skip_string(struct ng_str json, size_t at)
{
    for (at++; at < json.len && json.data[at] != '"'; at++) {
        at += json.data[at] == '\\';
    }
    if (at >= json.len) {
        return json.len;
    }
    return at + 1;
}

/* The position behind the value that begins at `at`. */
static size_t text_skip_value(struct ng_str json, size_t at)
{
    size_t depth = 0;
    while (at < json.len) {
        char c = json.data[at];
        if (c == '"') {
            at = text_skip_string(json, at);
        } else if (c == '[' || c == '{') {
            depth++;
            at++;
        } else if (depth == 0 && (c == ',' || c == ']' || c == '}' || text_is_blank(c))) {
            return at;
        } else {
            depth -= c == ']' || c == '}';
            at++;
        }
        if (depth == 0 && at > 0 && (c == '"' || c == ']' || c == '}')) {
            return at;
        }
    }
    return json.len;
}

static bool text_is_name(struct ng_str json, size_t from, size_t to, const char *name)
{
    size_t len = strlen(name);
    return to - from == len + 2 && memcmp(json.data + from + 1, name, len) == 0;
}

struct ng_str checkpoint_text_member(struct ng_str json, const char *name)
{
    struct ng_str value = {NULL, 0};
    size_t at = text_skip_blanks(json, 0);
    if (at == json.len || json.data[at] != '{') {
        return value;
    }
    for (at++; at < json.len;) {
        at = text_skip_blanks(json, at);
        if (at == json.len || json.data[at] != '"') {
            return value;
        }
        size_t from = at;
        at = text_skip_string(json, at);
        bool found = text_is_name(json, from, at, name);
        at = text_skip_blanks(json, at);
        if (at == json.len || json.data[at] != ':') {
            return value;
        }
        from = text_skip_blanks(json, at + 1);
        at = text_skip_value(json, from);
        if (found) {
            value.data = json.data + from;
            value.len = at - from;
            return value;
        }
        at = text_skip_blanks(json, at);
        if (at < json.len && json.data[at] == ',') {
            at++;
        }
    }
    return value;
}

uint64_t checkpoint_text_count(struct ng_str array)
{
    uint64_t count = 0;
    size_t at = text_skip_blanks(array, 0);
    if (at == array.len || array.data[at] != '[') {
        return 0;
    }
    for (at = text_skip_blanks(array, at + 1); at < array.len && array.data[at] != ']';) {
        size_t behind = text_skip_value(array, at);
        if (behind == at) {
            return count; /* there is no value */
        }
        count++;
        at = text_skip_blanks(array, behind);
        if (at < array.len && array.data[at] == ',') {
            at = text_skip_blanks(array, at + 1);
        }
    }
    return count;
}
