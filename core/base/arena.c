/* SPDX-License-Identifier: MIT */
/* arena.c - blocks of doubling size, freed together; and the allocation hook of all our own
 * code. */
#include "arena.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define ARENA_FIRST_BLOCK ((size_t)8 * 1024)
#define ARENA_LARGEST_STEP ((size_t)1024 * 1024)
#define ARENA_ALIGN _Alignof(max_align_t)

/* Each heap of the C library keeps what its threads have freed from the others: with one for
 * each thread, the document cache would come to lie in all of them in turn. */
#define ALLOC_HEAPS 4
/* Memory from this size on is mapped separately; so much may stay free at a heap's end. Without
 * fixed values both would grow with freed memory. */
#define ALLOC_MAPPED (1024 * 1024)
#define ALLOC_KEPT (2 * 1024 * 1024)

struct arena_block {
    struct arena_block *next;
    size_t size;
    size_t used;
    max_align_t data[];
};

/* Test hook: see alloc_fail_after(). A mutable global by need: allocation has no context. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static atomic_long alloc_countdown = -1;

void alloc_fail_after(long count)
{
    atomic_store(&alloc_countdown, count);
}

static bool alloc_must_fail(void)
{
    long left = atomic_load_explicit(&alloc_countdown, memory_order_relaxed);
    if (left < 0) {
        return false;
    }
    return atomic_fetch_sub(&alloc_countdown, 1) == 0;
}

void *alloc_bytes(size_t bytes)
{
    if (alloc_must_fail()) {
        return NULL;
    }
    return malloc(bytes);
}

void *alloc_zeroed(size_t count, size_t bytes)
{
    if (alloc_must_fail()) {
        return NULL;
    }
    return calloc(count, bytes);
}

void *alloc_resize(void *memory, size_t bytes)
{
    if (alloc_must_fail()) {
        return NULL;
    }
    return realloc(memory, bytes);
}

void alloc_settle(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_ARENA_MAX, ALLOC_HEAPS);
    (void)mallopt(M_MMAP_THRESHOLD, ALLOC_MAPPED);
    (void)mallopt(M_TRIM_THRESHOLD, ALLOC_KEPT);
#endif
}

void alloc_trim(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

void arena_init(struct arena *arena, size_t max)
{
    arena->blocks = NULL;
    arena->used = 0;
    arena->max = max;
    arena->first = 0;
    arena->failed = false;
    arena->oom = false;
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

static struct arena_block *arena_add_block(struct arena *arena, size_t bytes)
{
    size_t first = ARENA_FIRST_BLOCK;
    if (arena->first != 0) {
        first = arena->first;
    }
    size_t size = first;
    if (arena->blocks != NULL) {
        size = arena->blocks->size * 2;
    }
    if (size > ARENA_LARGEST_STEP) {
        size = ARENA_LARGEST_STEP;
    }
    if (size < bytes) {
        size = bytes;
    }
    struct arena_block *block = alloc_bytes(sizeof(*block) + size);
    if (block == NULL) {
        arena->oom = true;
        return NULL;
    }
    block->next = arena->blocks;
    block->size = size;
    block->used = 0;
    arena->blocks = block;
    return block;
}

static void *arena_take(struct arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    size_t need = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (need == 0) {
        need = ARENA_ALIGN;
    }
    if (arena->max != 0 && (need > arena->max || arena->used > arena->max - need)) {
        return NULL;
    }
    struct arena_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < need) {
        block = arena_add_block(arena, need);
        if (block == NULL) {
            return NULL;
        }
    }
    void *memory = (char *)block->data + block->used;
    block->used += need;
    arena->used += need;
    return memory;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    void *memory = arena_take(arena, bytes);
    arena->failed = arena->failed || memory == NULL;
    return memory;
}

void *arena_zalloc(struct arena *arena, size_t bytes)
{
    void *memory = arena_alloc(arena, bytes);
    if (memory != NULL) {
        memset(memory, 0, bytes);
    }
    return memory;
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
