/* SPDX-License-Identifier: MIT */
/* lines_part.h - the last line of an answer that has only a part of the requested lines. */
#ifndef NOTEGATE_CORE_BASE_TEXT_LINES_PART_H
#define NOTEGATE_CORE_BASE_TEXT_LINES_PART_H

#include <stdio.h>

#include "../minmax.h"

/* Bytes of such a line, with a final 0; members have short names. */
#define LINES_PART_NOTE_MAX 200

/* Lines count from 1. */
struct lines_part {
    size_t first, last; /* the requested lines */
    size_t total;       /* of the text */
    size_t lines;       /* whole lines in the answer; 0: only the beginning of the first */
    size_t bytes;       /* of that beginning */
};

/* Writes "[lines 1-812 of 20000; MEMBER [813, 1624] continues]". */
static inline void lines_part_note(char out[LINES_PART_NOTE_MAX], const char *member,
                                   const struct lines_part *part)
{
    size_t end = part->first + size_max(part->lines, 1) - 1;
    size_t to = part->last;
    int len = 0;
    if (part->lines == 0) {
        len = snprintf(out, LINES_PART_NOTE_MAX, "[line %zu of %zu is cut after %zu bytes", end,
                       part->total, part->bytes);
    } else {
        to = size_min(to, end + part->lines);
        len = snprintf(out, LINES_PART_NOTE_MAX, "[lines %zu-%zu of %zu", part->first, end,
                       part->total);
    }
    if (end == part->last) {
        (void)snprintf(out + len, LINES_PART_NOTE_MAX - (size_t)len, "]");
    } else {
        (void)snprintf(out + len, LINES_PART_NOTE_MAX - (size_t)len,
                       "; %s [%zu, %zu] continues]", member, end + 1, to);
    }
}

#endif
