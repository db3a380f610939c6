/* SPDX-License-Identifier: MIT */
/*
 * render.h - outputs as an agent sees them: from the `outputs` array of a file (or of a run) to
 * text and images. Escape sequences of terminals are taken out, \r and \b done as a terminal
 * does them.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_RENDER_H
#define NOTEGATE_PLUGIN_CELLS_RENDER_H

#include "core/base/buf.h"
#include "nb.h"

/* Images of one answer; more are named in the text. */
#define RENDER_IMAGES_MAX 20

struct rendered_image {
    char mime[64];
    struct buf bytes; /* decoded */
};

struct rendered {
    struct nb_text text; /* all outputs, a blank line between two */
    struct rendered_image images[RENDER_IMAGES_MAX];
    size_t image_count;
    size_t outputs; /* how many there were */
    bool has_error;
    bool failed; /* out of memory */
};

/* json: the array. html: of displays with both, the HTML instead of the plain text. */
void render_outputs(struct rendered *rendered, struct ng_str json, struct nb_span outputs,
                    bool html);
void render_done(struct rendered *rendered);
/* Appends the text as a terminal would leave it. */
void render_clean(struct nb_text *out, struct ng_str text);
/*
 * Appends at most about `max` bytes: a longer text is cut in its middle, and how much is left
 * out is said. Where the text began at character `offset` of a whole, that is counted in.
 */
void render_cut(struct nb_text *out, struct ng_str text, size_t max);
/* Appends a fence of backquotes longer than any run of them in the text: 3 or more. */
void render_fence(struct nb_text *out, struct ng_str text);

#endif
