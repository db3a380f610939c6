/* SPDX-License-Identifier: MIT */
/* test_merge_rig.h - random texts and edits for the tests of core/base/merge. */
#ifndef NOTEGATE_TEST_MERGE_RIG_H
#define NOTEGATE_TEST_MERGE_RIG_H

#include "harness.h"
#include "notegate/backend.h"

#define RIG_TEXT_MAX ((size_t)1 << 16)

struct rig_text {
    char data[RIG_TEXT_MAX];
    size_t len;
};

/* Printed, so that a failure can be repeated: NOTEGATE_TEST_SEED, or 1. */
unsigned rig_seed(void);
unsigned rig_below(unsigned *seed, unsigned limit);
struct ng_str rig_str(const struct rig_text *text);
void rig_set(struct rig_text *text, struct ng_str bytes);
void rig_add(struct rig_text *text, const char *data, size_t len);
/* Up to `lines` lines of few words, with CR, NUL and empty lines, with or without a last LF. */
void rig_random(unsigned *seed, struct rig_text *text, unsigned lines);
/* Replaces a random stretch, of bytes or of whole lines. */
void rig_edit(unsigned *seed, struct rig_text *text);
/* The splice that a store keeps: from the first byte that differs to the last one. */
void rig_splice(struct ng_str old, struct ng_str new, struct ng_splice *ret);
/* The pieces between line feeds; the empty text has none. */
uint64_t rig_pieces(struct ng_str text);

#endif
