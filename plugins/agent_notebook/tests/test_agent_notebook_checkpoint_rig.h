/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_checkpoint_rig.h - pages, memories and checkpoints of them.
 */
#ifndef NOTEGATE_TEST_AGENT_NOTEBOOK_CHECKPOINT_RIG_H
#define NOTEGATE_TEST_AGENT_NOTEBOOK_CHECKPOINT_RIG_H

#include "test_memory_bench.h"

struct ng_str copied(struct bench *bench, struct ng_str text);
/* Makes the arguments of a call; texts must need no escapes. */
const char *form(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *page_new(struct bench *bench, const char *text);
void page_set(struct bench *bench, const char *id, const char *text);
/* The text of a page is this (NULL: there is none), at that version. */
void page_is(struct bench *bench, const char *id, const char *text, uint64_t version);
const char *snapshot(struct bench *bench, const char *label);
void remember(struct bench *bench, const char *text);
/* Memories that recall finds, whatever they say. */
int64_t memories(struct bench *bench);

#endif
