/* SPDX-License-Identifier: MIT */
/* markdown_slug.c - anchors of headings as GitHub makes them: lower case; letters, marks,
 * digits, '-' and '_' stay, blanks become '-', all else is removed; a repeated anchor gets a
 * number. */
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "markdown_parts.h"

#define SUFFIX_SIZE 24

/* `slug` lies in the arena. */
static struct ng_str insert(struct notes_keys *slugs, struct ng_str slug)
{
    if (notes_keys_add(slugs, slug) == NULL) {
        return str_make(NULL, 0);
    }
    return slug;
}

static struct ng_str plain_slug(struct notes_keys *slugs, struct ng_str heading)
{
    /* Lower case may take more bytes: at most 3 for 2. */
    char *data = arena_zalloc(&slugs->arena, heading.len * 2 + 8);
    size_t len = 0;
    if (data == NULL) {
        return str_make(NULL, 0);
    }
    for (size_t at = 0; at < heading.len;) {
        int32_t c = notes_next(heading, &at);
        if (c == ' ' || c == '-') {
            data[len++] = '-';
        } else if (notes_is_word(c)) {
            len += utf8_encode((uint32_t)utf8proc_tolower(c), data + len);
        }
    }
    return str_make(data, len);
}

struct ng_str notes_slugs_make(struct notes_keys *slugs, struct ng_str heading)
{
    struct ng_str base = plain_slug(slugs, heading);
    if (base.data == NULL) {
        return base;
    }
    struct notes_key *taken = notes_keys_find(slugs, base);
    if (taken == NULL) {
        return insert(slugs, base);
    }
    char *data = arena_zalloc(&slugs->arena, base.len + SUFFIX_SIZE);
    if (data == NULL) {
        return str_make(NULL, 0);
    }
    memcpy(data, base.data, base.len);
    for (;;) {
        taken->number++; /* the highest tried as suffix */
        int len =
            snprintf(data + base.len, SUFFIX_SIZE, "-%llu", (unsigned long long)taken->number);
        struct ng_str slug = str_make(data, base.len + (size_t)len);
        if (notes_keys_find(slugs, slug) == NULL) {
            return insert(slugs, slug);
        }
    }
}
