/* SPDX-License-Identifier: MIT */
/* markdown_slug.c - anchors of headings as GitHub makes them: lower case; letters, marks,
 * digits, '-' and '_' stay, blanks become '-', all else is removed; a repeated anchor gets a
 * number. */
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "markdown_parts.h"

#define SUFFIX_SIZE 24

struct slug_entry {
    struct hash_link link;
    struct ng_str slug;
    uint64_t repeated; /* the highest number tried as suffix */
};

void notes_slugs_init(struct notes_slugs *slugs)
{
    *slugs = (struct notes_slugs){.table = {0}};
    arena_init(&slugs->arena, 0);
}

void notes_slugs_done(struct notes_slugs *slugs)
{
    hash_table_done(&slugs->table);
    arena_done(&slugs->arena);
}

static bool is_slug(const struct hash_link *link, const void *slug)
{
    return str_equal(HASH_ITEM(link, struct slug_entry, link)->slug,
                     *(const struct ng_str *)slug);
}

static struct slug_entry *find(const struct notes_slugs *slugs, struct ng_str slug)
{
    struct hash_link *link = hash_table_find(&slugs->table, str_hash(slug), is_slug, &slug);
    if (link == NULL) {
        return NULL;
    }
    return HASH_ITEM(link, struct slug_entry, link);
}

/* `slug` lies in the arena. */
static struct ng_str insert(struct notes_slugs *slugs, struct ng_str slug)
{
    struct slug_entry *entry = arena_zalloc(&slugs->arena, sizeof(*entry));
    if (entry == NULL || hash_table_add(&slugs->table, &entry->link, str_hash(slug)) != NG_OK) {
        return str_make(NULL, 0);
    }
    entry->slug = slug;
    return slug;
}

static struct ng_str plain_slug(struct notes_slugs *slugs, struct ng_str heading)
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

struct ng_str notes_slugs_make(struct notes_slugs *slugs, struct ng_str heading)
{
    struct ng_str base = plain_slug(slugs, heading);
    if (base.data == NULL) {
        return base;
    }
    struct slug_entry *taken = find(slugs, base);
    if (taken == NULL) {
        return insert(slugs, base);
    }
    char *data = arena_zalloc(&slugs->arena, base.len + SUFFIX_SIZE);
    if (data == NULL) {
        return str_make(NULL, 0);
    }
    memcpy(data, base.data, base.len);
    for (;;) {
        taken->repeated++;
        int len = snprintf(data + base.len, SUFFIX_SIZE, "-%llu",
                           (unsigned long long)taken->repeated);
        struct ng_str slug = str_make(data, base.len + (size_t)len);
        if (find(slugs, slug) == NULL) {
            return insert(slugs, slug);
        }
    }
}
