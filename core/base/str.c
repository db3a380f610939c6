/* SPDX-License-Identifier: MIT */
/* str.c - helpers over struct ng_str. */
#include "str.h"

#include <string.h>

#include "arena.h"
#include "minmax.h"

struct ng_str str_trim(struct ng_str text)
{
    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 &&
           (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t')) {
        text.len--;
    }
    return text;
}

uint64_t str_hash(struct ng_str text)
{
    static const char seed = 0;
    /* Seeded by where the program was mapped, so that callers cannot aim at one bucket. */
    uint64_t hash = (uint64_t)(uintptr_t)&seed ^ (text.len * UINT64_C(0x94d049bb133111eb));
    const char *at = text.data;
    size_t left = text.len;
    while (left > 0) {
        uint64_t word = 0;
        size_t len = size_min(left, sizeof(word));
        memcpy(&word, at, len);
        hash ^= word * UINT64_C(0x9e3779b97f4a7c15);
        hash = (hash << 27) | (hash >> 37);
        hash *= UINT64_C(0xbf58476d1ce4e5b9);
        at += len;
        left -= len;
    }
    return hash ^ (hash >> 31);
}

bool str_in_words(struct ng_str word, const char *words)
{
    if (words == NULL || word.len == 0) {
        return false;
    }
    const char *at = words;
    while (*at != '\0') {
        size_t len = strcspn(at, " ");
        if (len == word.len && memcmp(at, word.data, len) == 0) {
            return true;
        }
        at += len;
        at += strspn(at, " ");
    }
    return false;
}

bool str_begins(struct ng_str text, const char *beginning)
{
    return str_starts(text, ng_str_of(beginning));
}

bool str_ends(struct ng_str text, const char *ending)
{
    size_t len = strlen(ending);
    return text.len >= len &&
           (len == 0 || memcmp(text.data + text.len - len, ending, len) == 0);
}

char *str_dup(struct ng_str text)
{
    char *copy = alloc_bytes(text.len + 1);
    if (copy != NULL) {
        if (text.len > 0) {
            memcpy(copy, text.data, text.len);
        }
        copy[text.len] = '\0';
    }
    return copy;
}

bool str_number(struct ng_str text, uint64_t most, uint64_t *ret)
{
    uint64_t number = 0;
    if (text.len == 0 || text.len > 19) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret = number;
    return number <= most;
}

size_t str_find(struct ng_str text, struct ng_str needle, size_t from)
{
    if (needle.len == 0 || from > text.len || text.len - from < needle.len) {
        return SIZE_MAX;
    }
    const char *at = needle.len == 1
                         ? memchr(text.data + from, needle.data[0], text.len - from)
                         : memmem(text.data + from, text.len - from, needle.data, needle.len);
    if (at == NULL) {
        return SIZE_MAX;
    }
    return (size_t)(at - text.data);
}

size_t str_count(struct ng_str text, char byte)
{
    size_t count = 0;
    size_t at = 0;
    const char *found;
    while (at < text.len && (found = memchr(text.data + at, byte, text.len - at)) != NULL) {
        at = (size_t)(found - text.data) + 1;
        count++;
    }
    return count;
}
