/* SPDX-License-Identifier: MIT */
/* arena.h - memory that is freed all at once: a call's, a parser's. Not for use by two threads
 * at a time. */
#ifndef NOTEGATE_CORE_ARENA_H
#define NOTEGATE_CORE_ARENA_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "notegate/abi.h"

#define ARENA_ALIGN _Alignof(max_align_t)

struct arena_block {
    struct arena_block *next;
    size_t size;
    size_t used;
    max_align_t data[];
};

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* bytes handed out */
    size_t max;                 /* most that may be handed out; 0: no limit */
    size_t first;               /* size of the first block; 0: a default that suits a call */
    bool failed;                /* something that was asked of it could not be had */
    bool oom;                   /* ... because there is no memory: it is not over `max` */
};

static inline void arena_init(struct arena *arena, size_t max)
{
    *arena = (struct arena){.max = max};
}

/* Frees everything; the arena can be used again. */
void arena_done(struct arena *arena);
/* Forgets everything but keeps one block, so that the next user allocates nothing. */
void arena_reset(struct arena *arena);
/* The bytes that an allocation takes of its block. */
static inline size_t arena_step(size_t bytes)
{
    return (bytes + (bytes == 0) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* For arena_alloc(): the newest block has no room. */
void *arena_alloc_block(struct arena *arena, size_t bytes);

/* Aligned for any type. NULL: out of memory, or over max. Size 0 gives a pointer that is not
 * NULL. */
static inline void *arena_alloc(struct arena *arena, size_t bytes)
{
    struct arena_block *block = arena->blocks;
    size_t need = arena_step(bytes);
    if (block == NULL || bytes > SIZE_MAX / 2 || block->size - block->used < need ||
        (arena->max != 0 && (need > arena->max || arena->used > arena->max - need))) {
        return arena_alloc_block(arena, bytes);
    }
    void *memory = (char *)block->data + block->used;
    block->used += need;
    arena->used += need;
    return memory;
}

static inline void *arena_zalloc(struct arena *arena, size_t bytes)
{
    void *memory = arena_alloc(arena, bytes);
    if (memory != NULL) {
        memset(memory, 0, bytes);
    }
    return memory;
}

/* A copy that ends in NUL (not counted). {NULL, 0} on failure; an absent str stays absent. */
struct ng_str arena_copy(struct arena *arena, struct ng_str text);
struct ng_str arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Tests: the allocation after `count` more fails once, in arenas and in buf.h; -1: none. */
void alloc_fail_after(long count);
/* For the three below only. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
extern atomic_long alloc_countdown;

static inline bool alloc_must_fail(void)
{
    return atomic_load_explicit(&alloc_countdown, memory_order_relaxed) >= 0 &&
           atomic_fetch_sub(&alloc_countdown, 1) == 0;
}

/* malloc, realloc and calloc of all our own code: they honour alloc_fail_after(). */
static inline void *alloc_bytes(size_t bytes)
{
    if (alloc_must_fail()) {
        return NULL;
    }
    return malloc(bytes);
}

static inline void *alloc_zeroed(size_t count, size_t bytes)
{
    if (alloc_must_fail()) {
        return NULL;
    }
    return calloc(count, bytes);
}

static inline void *alloc_resize(void *memory, size_t bytes)
{
    if (alloc_must_fail()) {
        return NULL;
    }
    return realloc(memory, bytes);
}

/* For a process that runs for long, before it starts threads: bounds the freed memory that the
 * C library keeps. */
void alloc_settle(void);
/* Returns freed memory to the system. Takes milliseconds, in which other threads may wait for
 * memory: call it rarely, not on an event loop. */
void alloc_trim(void);

#endif
