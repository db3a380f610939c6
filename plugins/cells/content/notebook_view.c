/* SPDX-License-Identifier: MIT */
/* notebook_view.c - a notebook as a text by lines. */
#include "notebook_view.h"

#include "core/base/arena.h"
#include "core/base/str.h"

static void view_add_heading(struct nb_text *text, const struct nb *nb, size_t index)
{
    const struct nb_cell *cell = &nb->cells[index];
    nb_add_if(text, index > 0, "\n");
    nb_addf(text, "# %%%% [%s] ", nb_type_name(cell->type));
    if (cell->id_unique) {
        nb_add(text, nb->bytes.data + cell->id.at + 1, cell->id.len - 2);
    } else {
        nb_addf(text, "cell %zu", index);
    }
    nb_add_word(text, "\n");
}

int notebook_view_make(const struct nb *nb, struct notebook_view *ret)
{
    struct nb_text *text = &ret->text;
    size_t line = 1;
    *ret =
        (struct notebook_view){.cells = alloc_zeroed(nb->cell_count + 1, sizeof(*ret->cells))};
    if (ret->cells == NULL) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < nb->cell_count; i++) {
        struct notebook_view_cell *cell = &ret->cells[i];
        size_t from = text->len;
        view_add_heading(text, nb, i);
        cell->line = line + (i > 0);
        cell->source_at = text->len;
        (void)nb_decode_lines(text, nb->bytes, nb->cells[i].source);
        cell->source_len = text->len - cell->source_at;
        nb_add_if(text, cell->source_len > 0, "\n");
        line += str_count(str_make(text->data + from, text->len - from), '\n');
    }
    return text->failed ? NG_EINTERNAL : NG_OK;
}

int notebook_view_read(struct ng_str bytes, struct notebook_view *ret)
{
    struct nb nb;
    struct nb_error error;
    *ret = (struct notebook_view){.cells = NULL};
    if (bytes.len > NOTEBOOK_BYTES_MAX) {
        return NG_ETOOLARGE;
    }
    enum nb_fault fault = nb_index(bytes, &nb, &error);
    if (fault != NB_FINE) {
        return fault == NB_NO_MEMORY ? NG_EINTERNAL : NG_EINVAL;
    }
    int rc = notebook_view_make(&nb, ret);
    nb_done(&nb);
    return rc;
}

void notebook_view_done(struct notebook_view *view)
{
    nb_text_done(&view->text);
    free(view->cells);
    view->cells = NULL;
}
