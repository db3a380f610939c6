/* SPDX-License-Identifier: MIT */
/*
 * output_limit.h - the limit of a cell's outputs: what is over it is left out between a
 * beginning and the end, which goes on with the output.
 *
 * Overwritten text goes first (screen.h). Then the oldest outputs behind the beginning go, a
 * quarter of the limit, until the rest fits. Values and errors do not count (struct
 * output.kept).
 */
#ifndef NOTEGATE_PLUGIN_CELLS_OUTPUT_LIMIT_H
#define NOTEGATE_PLUGIN_CELLS_OUTPUT_LIMIT_H

#include "output.h"

/* The beginning has one of so many parts of the limit. */
#define OUTPUT_HEAD_PART 4
/* At the limit one of so many parts is made free, so that not each message moves all others. */
#define OUTPUT_SLACK_PART 16

/* Bytes of an output. */
size_t output_bytes(const struct output *output);
void output_done(struct output *output);
/* Brings the outputs within their limit. */
void outputs_limit(struct outputs *outputs);
/* Could an output of this size be kept, if others go for it? */
bool outputs_has_room(const struct outputs *outputs, size_t bytes);
/* An updated display, which counts, counts no longer, so that its last state is there. False:
 * there are so many already; half of OUTPUTS_KEPT_MAX is for values and errors. */
bool outputs_keep(struct outputs *outputs, struct output *output);
/* Appends at most about `max` bytes of the text, cut in its middle with a note. */
void output_cut_text(struct nb_text *out, struct ng_str text, size_t max, size_t cap);
/* Appends the note that so many bytes are missing. */
void output_note(struct nb_text *out, size_t bytes, size_t cap);

#endif
