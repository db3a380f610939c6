/* SPDX-License-Identifier: MIT */
/* markdown_memory.c - memory of cmark-gfm: small pieces from an arena, large ones from the
 * heap; and a table of the link references. */
#include "markdown_memory.h"

#include <stdlib.h>
#include <string.h>

#include "markdown.h"
#include "markdown_blocks.h"

#define SMALL_MAX 1024
#define SMALL_STEP 32  /* sizes of small pieces are multiples of this */
#define LABEL_MAX 1000 /* bytes of a reference label */

/* ---- memory */

struct piece {
    struct piece *next, *prev; /* of a large one, or of a small one that is free */
    size_t size;
    size_t unused; /* keeps what follows aligned */
};

struct notes_blocks_memory {
    struct arena small;
    struct piece *free[SMALL_MAX / SMALL_STEP + 1];
    struct piece large; /* head of a ring */
    size_t used;
    bool full;
};

/* cmark-gfm's allocators have no user argument, so the memory in use is thread-local. */
static _Thread_local struct notes_blocks_memory *memory_now;
static _Thread_local jmp_buf *memory_out;

struct notes_blocks_memory *notes_blocks_memory_new(void)
{
    struct notes_blocks_memory *memory = calloc(1, sizeof(*memory));
    if (memory != NULL) {
        arena_init(&memory->small, 0);
        memory->large.next = memory->large.prev = &memory->large;
    }
    return memory;
}

void notes_blocks_memory_free(struct notes_blocks_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    for (struct piece *piece = memory->large.next; piece != &memory->large;) {
        struct piece *next = piece->next;
        free(piece);
        piece = next;
    }
    arena_done(&memory->small);
    free(memory);
}

void notes_blocks_memory_use(struct notes_blocks_memory *memory, jmp_buf *out)
{
    memory_now = memory;
    memory_out = out;
}

size_t notes_blocks_memory_used(void)
{
    return memory_now->used;
}

bool notes_blocks_memory_is_full(const struct notes_blocks_memory *memory)
{
    return memory->full;
}

static struct piece *take_small(struct notes_blocks_memory *memory, size_t size)
{
    struct piece *piece = memory->free[size / SMALL_STEP];
    if (piece != NULL) {
        memory->free[size / SMALL_STEP] = piece->next;
        return piece;
    }
    return arena_zalloc(&memory->small, sizeof(*piece) + size);
}

static struct piece *take_large(struct notes_blocks_memory *memory, size_t size)
{
    struct piece *piece = malloc(sizeof(*piece) + size);
    if (piece != NULL) {
        piece->next = memory->large.next;
        piece->prev = &memory->large;
        piece->next->prev = piece;
        memory->large.next = piece;
    }
    return piece;
}

static struct piece *take(size_t size)
{
    struct notes_blocks_memory *memory = memory_now;
    if (size > NOTES_BLOCKS_BYTES_MAX * 2 || memory->used > NOTES_BLOCKS_BYTES_MAX * 2 - size) {
        memory->full = true;
        longjmp(*memory_out, 1);
    }
    size = (size / SMALL_STEP + (size % SMALL_STEP > 0)) * SMALL_STEP;
    struct piece *piece =
        size <= SMALL_MAX ? take_small(memory, size) : take_large(memory, size);
    if (piece == NULL) {
        longjmp(*memory_out, 1);
    }
    piece->size = size;
    memory->used += sizeof(*piece) + size;
    return piece;
}

static void memory_give_back(void *data)
{
    if (data == NULL) {
        return;
    }
    struct piece *piece = (struct piece *)data - 1;
    memory_now->used -= sizeof(*piece) + piece->size;
    if (piece->size > SMALL_MAX) {
        piece->next->prev = piece->prev;
        piece->prev->next = piece->next;
        free(piece);
    } else {
        piece->next = memory_now->free[piece->size / SMALL_STEP];
        memory_now->free[piece->size / SMALL_STEP] = piece;
    }
}

static void *memory_calloc(size_t count, size_t size)
{
    if (size != 0 && count > NOTES_BLOCKS_BYTES_MAX * 2 / size) {
        count = NOTES_BLOCKS_BYTES_MAX * 2 / size + 1;
    }
    struct piece *piece = take(count * size);
    memset(piece + 1, 0, count * size);
    return piece + 1;
}

static void *memory_realloc(void *data, size_t size)
{
    if (data == NULL) {
        return take(size) + 1;
    }
    const struct piece *old = (struct piece *)data - 1;
    if (old->size >= size && size > 0) {
        return data;
    }
    struct piece *piece = take(size);
    memcpy(piece + 1, data, size_min(old->size, size));
    memory_give_back(data);
    return piece + 1;
}

cmark_mem *notes_blocks_memory_table(void)
{
    static cmark_mem table = {memory_calloc, memory_realloc, memory_give_back};
    return &table;
}

/* ---- references */

struct ng_str notes_markdown_label(struct arena *arena, struct ng_str label)
{
    char *out = arena_zalloc(arena, label.len + 1);
    size_t len = 0;
    if (out == NULL) {
        return str_make(NULL, 0);
    }
    label = notes_trim(label);
    for (size_t i = 0; i < label.len; i++) {
        char c = label.data[i];
        if (c >= '\t' && c <= '\r') {
            c = ' ';
        }
        if (c != ' ' || len == 0 || out[len - 1] != ' ') {
            out[len++] = c;
        }
    }
    return notes_fold(arena, str_make(out, len));
}

/* If several references have one label, the first one counts. false: out of memory. */
static bool add(struct notes_keys *refs, const struct cmark_reference *found)
{
    struct ng_str label =
        notes_markdown_label(&refs->arena, ng_str_of((const char *)found->entry.label));
    if (label.data == NULL) {
        return false;
    }
    struct notes_key *reference = notes_keys_find(refs, label);
    if (reference != NULL && reference->number <= found->entry.age) {
        return true;
    }
    if (reference == NULL) {
        reference = notes_keys_add(refs, label);
        if (reference == NULL) {
            return false;
        }
    }
    reference->number = found->entry.age;
    reference->value = str_make("", 0); /* `[a]: <>` */
    if (found->url.data != NULL) {
        reference->value = str_make((const char *)found->url.data, (size_t)found->url.len);
    }
    return true;
}

int notes_blocks_refs_read(const cmark_map *map, struct notes_keys **ret)
{
    *ret = NULL;
    if (map->refs == NULL) {
        return NG_OK;
    }
    struct notes_keys *refs = calloc(1, sizeof(*refs));
    if (refs == NULL) {
        return NG_EINTERNAL;
    }
    *ret = refs;
    for (const cmark_map_entry *entry = map->refs; entry != NULL; entry = entry->next) {
        if (!add(refs, (const struct cmark_reference *)(const void *)entry)) {
            return NG_EINTERNAL;
        }
    }
    return NG_OK;
}

void notes_blocks_refs_free(struct notes_keys *refs)
{
    if (refs != NULL) {
        notes_keys_done(refs);
        free(refs);
    }
}

bool notes_blocks_refs_find(const struct notes_keys *refs, struct ng_str label,
                            struct ng_str *ret_target)
{
    struct arena arena;
    if (refs == NULL || label.len > LABEL_MAX) {
        return false;
    }
    arena_init(&arena, 0);
    struct ng_str wanted = notes_markdown_label(&arena, label);
    const struct notes_key *reference = NULL;
    if (wanted.len > 0) {
        reference = notes_keys_find(refs, wanted);
    }
    if (reference != NULL) {
        *ret_target = reference->value;
    }
    arena_done(&arena);
    return reference != NULL;
}
