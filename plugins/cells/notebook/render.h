/* SPDX-License-Identifier: MIT */
/* render.h - outputs as an agent sees them: the `outputs` array of a file or a run rendered as
 * text and images. Text is shown as a terminal leaves it (screen.h). */
#ifndef NOTEGATE_PLUGIN_CELLS_RENDER_H
#define NOTEGATE_PLUGIN_CELLS_RENDER_H

#include "core/base/buf.h"
#include "nb.h"

/* Images of one answer; further ones are counted in the text. */
#define RENDER_IMAGES_MAX 20

struct rendered_image {
    char mime[64];
    struct buf bytes; /* decoded */
};

/* Values and errors that stay in a text that is cut. */
#define RENDER_KEPT_MAX 16

struct rendered {
    struct nb_text text;                  /* all outputs, separated by blank lines */
    struct nb_span kept[RENDER_KEPT_MAX]; /* a ring of the last values and errors in it */
    size_t kept_count;
    struct rendered_image images[RENDER_IMAGES_MAX];
    size_t image_count;
    size_t outputs; /* number of outputs */
    bool has_error;
    bool failed; /* out of memory */
};

/* json: the array. html: prefer HTML to plain text. */
void render_outputs(struct rendered *rendered, struct ng_str json, struct nb_span outputs,
                    bool html);
void render_done(struct rendered *rendered);
/* Appends about `max` bytes at most: a longer text is cut in its middle, with a note of how
 * much was left out. */
void render_cut(struct nb_text *out, struct ng_str text, size_t max);
/* The same of outputs: what is left out are streams, as far as values and errors leave room. At
 * most `max` bytes, but for notes. */
void render_cut_outputs(struct nb_text *out, const struct rendered *rendered, size_t max);
/* Appends a fence of backquotes, at least 3 and longer than any run of them in the text. */
void render_fence(struct nb_text *out, struct ng_str text);

#endif
