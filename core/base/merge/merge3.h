/* SPDX-License-Identifier: MIT */
/*
 * merge3.h - three-way merge of texts by lines, and of whole values. An undo merges `base` (the
 * text after the changes that are taken back), `present` (the text that is there) and `before`
 * (the text before those changes).
 *
 * Lines are the pieces between line feeds: a carriage return belongs to its piece, a final line
 * feed makes a last empty piece, the empty text has none. So the last piece of a text is the
 * same whether another one follows or not. No byte is ever changed; NUL is a byte as others
 * are.
 *
 * The hunks from base to present and those from base to before are both applied. Two of them
 * conflict where they share a line of base, where one inserts between lines that the other
 * replaces, and where both insert at one place. Where both made the same of the same lines, it
 * counts once. Hunks that only touch are both applied, in the order of base: lines inserted at
 * the place where the other side's replaced lines begin come before those that replace them,
 * lines inserted where they end come behind.
 *
 * Added or removed lines that could as well stand some lines further down ("a blank line and a
 * paragraph", "a paragraph and a blank line") do so where that avoids a conflict; but not one
 * of two insertions or of two removals, which would be made twice.
 *
 * An empty present or before is taken as one empty line if base ends in a line feed: what was
 * appended to a text that was empty does not lie within the lines that are taken back.
 */
#ifndef NOTEGATE_CORE_MERGE3_H
#define NOTEGATE_CORE_MERGE3_H

#include "core/base/buf.h"
#include "notegate/abi.h"

/* Bytes of each text that is merged by lines. */
#define MERGE3_TEXT_MAX ((size_t)4 << 20)
/* Steps of both comparisons (see diff_lines_within()): beyond them lines that are not yet
 * compared are one hunk, so that there may be more conflicts, never another result. */
#define MERGE3_STEPS_MAX ((int64_t)50 * 1000 * 1000)
/* Conflicts that are told, and bytes of each of their sides. */
#define MERGE3_CONFLICTS_MAX 32
#define MERGE3_SIDE_MAX 1024

struct merge3_conflict {
    uint64_t line;                 /* of present, from 1; at its end the last one */
    struct ng_str present, before; /* cut to MERGE3_SIDE_MAX; in the caller's texts */
};

struct merge3 {
    struct buf text; /* without conflicts: the merged text */
    struct merge3_conflict conflicts[MERGE3_CONFLICTS_MAX];
    uint64_t conflict_count; /* all of them, also those that are not told */
    bool coarse; /* a comparison was cut short: conflicts may be wider than needed */
};

/*
 * Present equal to base gives before, before equal to base and present equal to before give
 * present: texts of any length. NG_OK: see conflict_count. NG_ETOOLARGE: texts over
 * MERGE3_TEXT_MAX that differ; NG_EINTERNAL: out of memory. merge3_done() in any case.
 */
int merge3_texts(struct ng_str base, struct ng_str present, struct ng_str before,
                 struct merge3 *ret);
/* The same with the steps that are left to the caller, for several merges together. */
int merge3_texts_within(struct ng_str base, struct ng_str present, struct ng_str before,
                        int64_t *inout_steps, struct merge3 *ret);
void merge3_done(struct merge3 *merge);

/* A value as a whole; {NULL, 0}, absent, is a value of its own. */
enum merge3_value { MERGE3_PRESENT, MERGE3_BEFORE, MERGE3_CONFLICT };

enum merge3_value merge3_values(struct ng_str base, struct ng_str present,
                                struct ng_str before);

#endif
