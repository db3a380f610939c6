/* SPDX-License-Identifier: MIT */
/* arena.h - memory that is freed all at once: a call's, a parser's. Not for use by two threads
 * at a time. */
#ifndef NOTEGATE_CORE_ARENA_H
#define NOTEGATE_CORE_ARENA_H

#include "notegate/abi.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* bytes handed out */
    size_t max;                 /* most that may be handed out; 0: no limit */
    size_t first;               /* size of the first block; 0: a default that suits a call */
    bool failed;                /* something that was asked of it could not be had */
    bool oom;                   /* ... because there is no memory: it is not over `max` */
};

void arena_init(struct arena *arena, size_t max);
/* Frees everything; the arena can be used again. */
void arena_done(struct arena *arena);
/* Forgets everything but keeps one block, so that the next user allocates nothing. */
void arena_reset(struct arena *arena);
/* Aligned for any type. NULL: out of memory, or over max. Size 0 gives a pointer that is not
 * NULL. */
void *arena_alloc(struct arena *arena, size_t bytes);
void *arena_zalloc(struct arena *arena, size_t bytes);
/* A copy that ends in NUL (not counted). {NULL, 0} on failure; an absent str stays absent. */
struct ng_str arena_copy(struct arena *arena, struct ng_str text);
struct ng_str arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Tests: the allocation after `count` more fails once, in arenas and in buf.h; -1: none. */
void alloc_fail_after(long count);
/* malloc, realloc and calloc of all our own code: they honour alloc_fail_after(). */
void *alloc_bytes(size_t bytes);
void *alloc_zeroed(size_t count, size_t bytes);
void *alloc_resize(void *memory, size_t bytes);
/* For a process that runs for long, before it starts threads: bounds the freed memory that the
 * C library keeps. */
void alloc_settle(void);
/* Returns freed memory to the system. Takes milliseconds, in which other threads may wait for
 * memory: call it rarely, not on an event loop. */
void alloc_trim(void);

#endif
