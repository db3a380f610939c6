/* SPDX-License-Identifier: MIT */
/* markdown_memory.h - memory of cmark-gfm, and its link references. */
#ifndef OPENNOTES_MARKDOWN_MEMORY_H
#define OPENNOTES_MARKDOWN_MEMORY_H

#include <cmark-gfm.h>
#include <cmark-gfm/references.h>
#include <setjmp.h>

#include "text/text.h"

struct notes_blocks_memory;

/* NULL: no memory. */
struct notes_blocks_memory *notes_blocks_memory_new(void);
/* Frees all memory taken from it. */
void notes_blocks_memory_free(struct notes_blocks_memory *memory);
/* Sets the memory of the calling thread's allocations until the next call. A failed allocation
 * jumps to `out`: cmark-gfm has no error path. */
void notes_blocks_memory_use(struct notes_blocks_memory *memory, jmp_buf *out);
cmark_mem *notes_blocks_memory_table(void);
/* Bytes taken from the memory in use. */
size_t notes_blocks_memory_used(void);
/* Was an allocation refused because of the limit? */
bool notes_blocks_memory_is_full(const struct notes_blocks_memory *memory);

/* ---- references, by label */

/* *ret NULL: there are none. NG_EINTERNAL: no memory. */
int notes_blocks_refs_read(const cmark_map *map, struct notes_keys **ret);
void notes_blocks_refs_free(struct notes_keys *refs);
/* The target of a label; false: it is not defined. */
bool notes_blocks_refs_find(const struct notes_keys *refs, struct ng_str label,
                            struct ng_str *ret_target);

#endif
