/* SPDX-License-Identifier: MIT */
/*
 * notebook_view.h - a notebook as a text by lines, as it is compared and blamed:
 *
 *   # %% [code] 8f2a
 *   print(1)
 *
 *   # %% [markdown] cell 1
 *   Text
 *
 * Each cell is a heading with its type and id, then its source. A line feed stands behind every
 * source that is not empty, also behind one that ends in a line feed; an empty line stands
 * before every heading but the first. So every line of a source is a line of the view, and an
 * inserted cell is inserted lines alone. A cell whose id is no handle is called `cell N`; N is
 * its index, from 0 as in `index:N`. Outputs and metadata have no lines. Lone surrogates are
 * U+FFFD.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_NOTEBOOK_VIEW_H
#define NOTEGATE_PLUGIN_CELLS_NOTEBOOK_VIEW_H

#include "notebook/nb.h"

/* Bytes of a notebook that is viewed or merged. */
#define NOTEBOOK_BYTES_MAX ((size_t)4 << 20)

struct notebook_view_cell {
    size_t line;      /* of its heading, from 1 */
    size_t source_at; /* of its source, decoded, in the text */
    size_t source_len;
};

struct notebook_view {
    struct nb_text text;
    struct notebook_view_cell *cells; /* as many as the notebook has */
};

/* NG_OK; NG_EINTERNAL: out of memory. notebook_view_done() in any case. */
int notebook_view_make(const struct nb *nb, struct notebook_view *ret);
/* The same of the bytes of a file. NG_EINVAL: it is no notebook; NG_ETOOLARGE: over
 * NOTEBOOK_BYTES_MAX. */
int notebook_view_read(struct ng_str bytes, struct notebook_view *ret);
void notebook_view_done(struct notebook_view *view);

/* The source of a cell; empty if the cell has none. */
static inline struct ng_str notebook_view_source(const struct notebook_view *view, size_t cell)
{
    const struct notebook_view_cell *at = &view->cells[cell];
    struct ng_str source = {view->text.data + at->source_at, at->source_len};
    return source;
}

#endif
