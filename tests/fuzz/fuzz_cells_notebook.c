/* SPDX-License-Identifier: MIT */
/* fuzz_cells_notebook.c - which edit, which cell, a text, a NUL, a notebook file: any bytes are
 * a notebook or told to be none, and after any edit it is one with just that changed. */
#include <stdlib.h>
#include <string.h>

#include "notebook/nb.h"

#define EDITS 7
#define CELLS_MAX 10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool same(struct ng_str a, struct ng_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool same_cell(const struct nb *a, size_t i, const struct nb *b, size_t k)
{
    return same(nb_bytes(a->bytes, a->cells[i].whole), nb_bytes(b->bytes, b->cells[k].whole));
}

static void check_spans(const struct nb *nb)
{
    size_t at = nb->cells_array.at;
    for (size_t i = 0; i < nb->cell_count; i++) {
        const struct nb_cell *cell = &nb->cells[i];
        struct nb_text text = {0};
        must(cell->whole.at > at && cell->whole.at + cell->whole.len < nb->bytes.len);
        must(nb->bytes.data[cell->whole.at] == '{');
        must(nb->bytes.data[cell->whole.at + cell->whole.len - 1] == '}');
        must(nb_decode_lines(&text, nb->bytes, cell->source));
        must(!text.failed && !(cell->id_unique && cell->id_duplicate));
        nb_text_done(&text);
        at = cell->whole.at + cell->whole.len;
    }
}

static void check_source(const struct nb *nb, size_t index, struct ng_str want)
{
    struct nb_text text = {0};
    struct nb_text clean = {0}; /* invalid UTF-8 is written as U+FFFD */
    struct nb_text json = {0};
    struct nb_span whole;
    nb_encode(&json, want, false);
    whole = (struct nb_span){0, json.len};
    nb_decode(&clean, nb_text_str(&json), whole);
    must(nb_decode_lines(&text, nb->bytes, nb->cells[index].source));
    must(same(nb_text_str(&text), nb_text_str(&clean)));
    nb_text_done(&text);
    nb_text_done(&clean);
    nb_text_done(&json);
}

/* Index in the new file of cell i of the old file; SIZE_MAX: gone, or it is the changed one. */
static size_t place_after(unsigned kind, size_t i, size_t cell, size_t to)
{
    if (kind == 1) {
        return i < cell ? i : i + 1;
    }
    if (kind == 2) {
        return i == cell ? SIZE_MAX : i < cell ? i : i - 1;
    }
    if (kind == 3) {
        if (i == cell) {
            return to;
        }
        size_t without = i < cell ? i : i - 1;
        return without < to ? without : without + 1;
    }
    return i == cell ? SIZE_MAX : i;
}

static void make_edit(struct nb_edit *edit, const struct nb *nb, unsigned kind, size_t cell,
                      struct ng_str text)
{
    static const char outputs[] = "[{\"output_type\":\"stream\",\"text\":[\"\xc3\xa9\"]}]";
    bool *gone = NULL;
    switch (kind) {
    case 0:
        nb_set_source(edit, nb, cell, text);
        break;
    case 1:
        nb_insert_cell(edit, nb, cell, NB_CODE,
                       nb->has_ids ? ng_str_of("new-id") : ng_str_of(""), text);
        break;
    case 2:
        gone = calloc(nb->cell_count, sizeof(*gone));
        must(gone != NULL);
        gone[cell] = true;
        nb_delete_cells(edit, nb, gone);
        free(gone);
        break;
    case 3:
        nb_move_cell(edit, nb, cell, text.len % nb->cell_count);
        break;
    case 4:
        nb_set_outputs(edit, nb, cell, ng_str_of(outputs), (int64_t)text.len - 1);
        break;
    case 5:
        nb_clear_outputs(edit, nb, cell);
        break;
    default:
        (void)nb_patch_output(edit, nb, cell, text.len % 3, ng_str_of("{\"text/plain\":\"x\"}"),
                              ng_str_of("{}"));
        break;
    }
}

static void check_edit(const struct nb *nb, unsigned kind, size_t cell, struct ng_str text)
{
    struct nb_edit edit = {0};
    struct nb_text out = {0};
    struct nb after;
    struct nb_error error;
    size_t to = kind == 3 ? text.len % nb->cell_count : 0;
    make_edit(&edit, nb, kind, cell, text);
    nb_apply(&out, nb->bytes, &edit);
    must(!out.failed);
    must(nb_index(nb_text_str(&out), &after, &error) == NB_FINE);
    must(after.cell_count == nb->cell_count + (kind == 1) - (kind == 2));
    for (size_t i = 0; i < nb->cell_count && i < CELLS_MAX; i++) {
        size_t place = place_after(kind, i, cell, to);
        must(place == SIZE_MAX || same_cell(nb, i, &after, place));
    }
    if (kind < 2) {
        check_source(&after, cell, text);
    }
    must(kind != 4 || after.cells[cell].output_count == 1);
    /* Again it changes nothing. */
    if (kind == 0 || kind == 5) {
        struct nb_edit again = {0};
        make_edit(&again, &after, kind, cell, text);
        nb_edit_done(&again);
    }
    nb_done(&after);
    nb_text_done(&out);
    nb_edit_done(&edit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nb nb;
    struct nb_error error;
    const uint8_t *nul = size > 2 ? memchr(data + 2, '\0', size - 2) : NULL;
    if (nul == NULL) {
        return 0;
    }
    struct ng_str text = {(const char *)data + 2, (size_t)(nul - data) - 2};
    struct ng_str bytes = {(const char *)nul + 1, size - (size_t)(nul - data) - 1};
    if (nb_index(bytes, &nb, &error) != NB_FINE) {
        must(error.fault != NB_FINE && error.text[0] != '\0');
        return 0;
    }
    check_spans(&nb);
    unsigned kind = data[0] % EDITS;
    size_t cell = nb.cell_count > 0 ? data[1] % nb.cell_count : 0;
    if (nb.cell_count > 0 || kind == 1) {
        check_edit(&nb, kind, cell, text);
    }
    nb_done(&nb);
    return 0;
}
