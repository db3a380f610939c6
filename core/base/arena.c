/* SPDX-License-Identifier: MIT */
/* arena.c - blocks of doubling size, freed together; and the allocation hook of all our own
 * code. */
#include "arena.h"
#include "minmax.h"

#include <stdarg.h>
#include <stdio.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define ARENA_FIRST_BLOCK ((size_t)8 * 1024)
#define ARENA_LARGEST_STEP ((size_t)1024 * 1024)

/* Each heap of the C library keeps what its threads have freed from the others: with one for
 * each thread, the document cache would come to lie in all of them in turn. */
#define ALLOC_HEAPS 4
/* Memory from this size on is mapped separately; so much may stay free at a heap's end. Without
 * fixed values both would grow with freed memory. */
#define ALLOC_MAPPED (1024 * 1024)
#define ALLOC_KEPT (2 * 1024 * 1024)

/* Test hook: see alloc_fail_after(). A mutable global by need: allocation has no context. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
atomic_long alloc_countdown = -1;

void alloc_fail_after(long count)
{
    atomic_store(&alloc_countdown, count);
}

void alloc_settle(void)
{
#ifdef __GLIBC__
    /* At the start, when there is one thread. NOLINTBEGIN(concurrency-mt-unsafe) */
    (void)mallopt(M_ARENA_MAX, ALLOC_HEAPS);
    (void)mallopt(M_MMAP_THRESHOLD, ALLOC_MAPPED);
    (void)mallopt(M_TRIM_THRESHOLD, ALLOC_KEPT);
    /* NOLINTEND(concurrency-mt-unsafe) */
#endif
}

void alloc_trim(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

void arena_done(struct arena *arena)
{
    struct arena_block *block = arena->blocks;
    while (block != NULL) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
    arena->used = 0;
    arena->failed = false;
    arena->oom = false;
}

void arena_reset(struct arena *arena)
{
    struct arena_block *keep = NULL;
    struct arena_block *block = arena->blocks;
    while (block != NULL) {
        struct arena_block *next = block->next;
        if (next == NULL && block->size <= ARENA_FIRST_BLOCK) {
            keep = block;
        } else {
            free(block);
        }
        block = next;
    }
    if (keep != NULL) {
        keep->used = 0;
    }
    arena->blocks = keep;
    arena->used = 0;
    arena->failed = false;
    arena->oom = false;
}

void *arena_alloc_block(struct arena *arena, size_t bytes)
{
    size_t need = arena_step(bytes);
    if (bytes > SIZE_MAX / 2 ||
        (arena->max != 0 && (need > arena->max || arena->used > arena->max - need))) {
        arena->failed = true;
        return NULL;
    }
    size_t size = ARENA_FIRST_BLOCK;
    if (arena->blocks != NULL) {
        size = arena->blocks->size * 2;
    } else if (arena->first != 0) {
        size = arena->first;
    }
    size = size_max(size_min(size, ARENA_LARGEST_STEP), need);
    struct arena_block *block = alloc_bytes(sizeof(*block) + size);
    if (block == NULL) {
        arena->failed = true;
        arena->oom = true;
        return NULL;
    }
    block->next = arena->blocks;
    block->size = size;
    block->used = need;
    arena->blocks = block;
    arena->used += need;
    return block->data;
}

struct ng_str arena_copy(struct arena *arena, struct ng_str text)
{
    struct ng_str copy = {NULL, 0};
    if (text.data == NULL || text.len == SIZE_MAX) {
        return copy;
    }
    char *data = arena_alloc(arena, text.len + 1);
    if (data == NULL) {
        return copy;
    }
    memcpy(data, text.data, text.len);
    data[text.len] = '\0';
    copy.data = data;
    copy.len = text.len;
    return copy;
}

struct ng_str arena_printf(struct arena *arena, const char *format, ...)
{
    struct ng_str text = {NULL, 0};
    va_list args;
    va_list again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *data = NULL;
    if (len >= 0) {
        data = arena_alloc(arena, (size_t)len + 1);
    }
    arena->failed = arena->failed || data == NULL;
    if (data != NULL) {
        (void)vsnprintf(data, (size_t)len + 1, format, again);
        text.data = data;
        text.len = (size_t)len;
    }
    va_end(again);
    return text;
}
