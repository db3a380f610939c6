/* SPDX-License-Identifier: MIT */
/* markdown_slug.c - anchors of headings as GitHub makes them: lower case, letters, marks,
 * digits,
 * '-' and '_' stay, blanks become '-', all else goes; a repeated one gets a number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "markdown_parts.h"

#define SLUGS_FIRST_SIZE 64
#define SUFFIX_SIZE 24

struct notes_slug_entry {
    struct notes_slug_entry *next;
    struct ng_str slug;
    uint64_t hash;
    uint64_t repeated; /* the highest number tried behind it */
};

void notes_slugs_init(struct notes_slugs *slugs)
{
    *slugs = (struct notes_slugs){.table = NULL};
    notes_arena_init(&slugs->arena, 0);
}

void notes_slugs_done(struct notes_slugs *slugs)
{
    free(slugs->table);
    slugs->table = NULL;
    notes_arena_done(&slugs->arena);
}

/* FNV-1a: texts that collide on purpose only cost the one who wrote them, in one note. */
static uint64_t hash_of(struct ng_str text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

static struct notes_slug_entry *find(const struct notes_slugs *slugs, struct ng_str slug)
{
    if (slugs->size == 0) {
        return NULL;
    }
    uint64_t hash = hash_of(slug);
    struct notes_slug_entry *entry = slugs->table[hash & (slugs->size - 1)];
    while (entry != NULL && !(entry->hash == hash && notes_equal(entry->slug, slug))) {
        entry = entry->next;
    }
    return entry;
}

static bool grow(struct notes_slugs *slugs)
{
    size_t size = slugs->size == 0 ? SLUGS_FIRST_SIZE : slugs->size * 2;
    struct notes_slug_entry **table = calloc(size, sizeof(struct notes_slug_entry *));
    if (table == NULL) {
        return false;
    }
    for (size_t i = 0; i < slugs->size; i++) {
        while (slugs->table[i] != NULL) {
            struct notes_slug_entry *entry = slugs->table[i];
            slugs->table[i] = entry->next;
            entry->next = table[entry->hash & (size - 1)];
            table[entry->hash & (size - 1)] = entry;
        }
    }
    free(slugs->table);
    slugs->table = table;
    slugs->size = size;
    return true;
}

/* `slug` lies in the arena. */
static struct ng_str insert(struct notes_slugs *slugs, struct ng_str slug)
{
    struct notes_slug_entry *entry = notes_arena_alloc(&slugs->arena, sizeof(*entry));
    if (entry == NULL || (slugs->count >= slugs->size && !grow(slugs))) {
        return notes_str(NULL, 0);
    }
    entry->slug = slug;
    entry->hash = hash_of(slug);
    entry->next = slugs->table[entry->hash & (slugs->size - 1)];
    slugs->table[entry->hash & (slugs->size - 1)] = entry;
    slugs->count++;
    return slug;
}

static struct ng_str plain_slug(struct notes_slugs *slugs, struct ng_str heading)
{
    /* Lower case may take more bytes: at most 3 for 2. */
    char *data = notes_arena_alloc(&slugs->arena, heading.len * 2 + 8);
    size_t len = 0;
    if (data == NULL) {
        return notes_str(NULL, 0);
    }
    for (size_t at = 0; at < heading.len;) {
        int32_t c = notes_utf8_next(heading, &at);
        if (c == ' ' || c == '-') {
            data[len++] = '-';
        } else if (notes_is_word(c)) {
            len += notes_utf8_put(utf8proc_tolower(c), data + len);
        }
    }
    return notes_str(data, len);
}

struct ng_str notes_slugs_make(struct notes_slugs *slugs, struct ng_str heading)
{
    struct ng_str base = plain_slug(slugs, heading);
    if (base.data == NULL) {
        return base;
    }
    struct notes_slug_entry *taken = find(slugs, base);
    if (taken == NULL) {
        return insert(slugs, base);
    }
    char *data = notes_arena_alloc(&slugs->arena, base.len + SUFFIX_SIZE);
    if (data == NULL) {
        return notes_str(NULL, 0);
    }
    memcpy(data, base.data, base.len);
    for (;;) {
        taken->repeated++;
        int len = snprintf(data + base.len, SUFFIX_SIZE, "-%llu",
                           (unsigned long long)taken->repeated);
        struct ng_str slug = notes_str(data, base.len + (size_t)len);
        if (find(slugs, slug) == NULL) {
            return insert(slugs, slug);
        }
    }
}
