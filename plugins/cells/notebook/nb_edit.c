/* SPDX-License-Identifier: MIT */
/* nb_edit.c - edits of a notebook as splices of its bytes. */
#include "nb_edit.h"
#include "core/base/array.h"
#include "core/base/minmax.h"
#include "core/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nb_text *nb_edit_add(struct nb_edit *edit, size_t at, size_t removed)
{
    if (array_reserve((void **)&edit->splices, &edit->size, edit->count + 1,
                      sizeof(*edit->splices), SIZE_MAX / sizeof(*edit->splices) / 4) != NG_OK) {
        edit->failed = true;
        edit->lost.failed = true;
        return &edit->lost;
    }
    size_t place = edit->count;
    while (place > 0 && edit->splices[place - 1].at > at) {
        place--;
    }
    memmove(&edit->splices[place + 1], &edit->splices[place],
            (edit->count - place) * sizeof(*edit->splices));
    edit->splices[place] = (struct nb_splice){.at = at, .removed = removed};
    edit->count++;
    return &edit->splices[place].inserted;
}

void nb_edit_done(struct nb_edit *edit)
{
    for (size_t i = 0; i < edit->count; i++) {
        nb_text_done(&edit->splices[i].inserted);
    }
    free(edit->splices);
    memset(edit, 0, sizeof(*edit));
}

void nb_apply(struct nb_text *out, struct ng_str bytes, const struct nb_edit *edit)
{
    size_t at = 0;
    for (size_t i = 0; i < edit->count; i++) {
        const struct nb_splice *splice = &edit->splices[i];
        nb_add(out, bytes.data + at, splice->at - at);
        nb_add_str(out, nb_text_str(&splice->inserted));
        out->failed |= splice->inserted.failed;
        at = splice->at + splice->removed;
    }
    nb_add(out, bytes.data + at, bytes.len - at);
    out->failed |= edit->failed;
}

void nb_add_separator(struct nb_text *out, const struct nb *nb, struct nb_span first,
                      struct nb_span second, unsigned depth)
{
    if (second.len > 0) {
        nb_add(out, nb->bytes.data + nb_end(first), second.at - nb_end(first));
        return;
    }
    nb_add_word(out, ",");
    nb_add_if(out, nb->style.flat && nb->style.space_comma, " ");
    nb_add_break(out, &nb->style, depth);
}

/* ---- source ---- */

/* The lines of a source, in the file and in the new text. Common lines at both ends stay. */
struct source_lines {
    struct nb_span *old;
    size_t count;
    size_t head, tail; /* old lines that stay */
    size_t start, end; /* range of the new text between them */
};

static bool lines_read(struct source_lines *lines, struct ng_str bytes, struct nb_span source)
{
    struct nb_walk walk = nb_walk_into(bytes, source);
    struct nb_span line;
    size_t size = 0;
    while (nb_walk_element(&walk, &line)) {
        if (array_reserve((void **)&lines->old, &size, lines->count + 1, sizeof(line),
                          SIZE_MAX / sizeof(line) / 4) != NG_OK) {
            return false;
        }
        lines->old[lines->count++] = line;
    }
    return true;
}

static bool lines_compare(struct source_lines *lines, struct ng_str bytes, struct ng_str text)
{
    struct nb_text line = {0};
    lines->start = 0;
    lines->end = text.len;
    while (lines->head < lines->count) {
        line.len = 0;
        nb_decode(&line, bytes, lines->old[lines->head]);
        size_t after = lines->start + line.len;
        bool same = line.len > 0 && after <= text.len &&
                    memcmp(text.data + lines->start, line.data, line.len) == 0 &&
                    (after == text.len || nb_line_begins(text, after));
        if (!same) {
            break;
        }
        lines->start = after;
        lines->head++;
    }
    while (lines->tail < lines->count - lines->head) {
        line.len = 0;
        nb_decode(&line, bytes, lines->old[lines->count - lines->tail - 1]);
        bool same = line.len > 0 && line.len <= lines->end - lines->start &&
                    memcmp(text.data + lines->end - line.len, line.data, line.len) == 0 &&
                    nb_line_begins(text, lines->end - line.len);
        if (!same) {
            break;
        }
        lines->end -= line.len;
        lines->tail++;
    }
    bool good = !line.failed;
    nb_text_done(&line);
    return good;
}

static void add_line_separator(struct nb_text *out, const struct nb *nb,
                               const struct source_lines *lines)
{
    struct nb_span second = {0, 0};
    if (lines->count > 1) {
        second = lines->old[1];
    }
    nb_add_separator(out, nb, lines->old[0], second, NB_DEPTH_OF_MEMBER + 1);
}

/* Appends the new lines as elements of the array. */
static void add_lines(struct nb_text *out, const struct nb *nb, struct ng_str text,
                      const struct source_lines *lines)
{
    text.len = lines->end;
    for (size_t at = lines->start; at < lines->end;) {
        size_t len = nb_line_length(text, at);
        struct ng_str line = {text.data + at, len};
        if (at > lines->start) {
            add_line_separator(out, nb, lines);
        }
        nb_encode(out, line, nb->style.ascii);
        at += len;
    }
}

static void splice_lines(struct nb_edit *edit, const struct nb *nb, struct ng_str text,
                         const struct source_lines *lines)
{
    struct nb_span first = lines->old[0];
    size_t last = lines->count - lines->tail; /* end of the lines to remove */
    bool goes = last > lines->head;
    bool comes = lines->end > lines->start;
    if (goes && comes) {
        size_t at = lines->old[lines->head].at;
        add_lines(nb_edit_add(edit, at, nb_end(lines->old[last - 1]) - at), nb, text, lines);
    } else if (goes && lines->head > 0) {
        size_t at = nb_end(lines->old[lines->head - 1]);
        (void)nb_edit_add(edit, at, nb_end(lines->old[last - 1]) - at);
    } else if (goes) {
        (void)nb_edit_add(edit, first.at, lines->old[last].at - first.at);
    } else if (comes && lines->head > 0) {
        struct nb_text *out = nb_edit_add(edit, nb_end(lines->old[lines->head - 1]), 0);
        add_line_separator(out, nb, lines);
        add_lines(out, nb, text, lines);
    } else if (comes) {
        struct nb_text *out = nb_edit_add(edit, first.at, 0);
        add_lines(out, nb, text, lines);
        add_line_separator(out, nb, lines);
    }
}

void nb_replace_value(struct nb_edit *edit, const struct nb *nb, struct nb_span value,
                      struct ng_str json, unsigned depth)
{
    struct nb_text formatted = {0};
    nb_format(&formatted, &nb->style, json, depth);
    struct ng_str text = nb_text_str(&formatted);
    if (!formatted.failed && str_equal(text, nb_bytes(nb->bytes, value))) {
        nb_text_done(&formatted);
        return;
    }
    struct nb_text *out = nb_edit_add(edit, value.at, value.len);
    if (out->failed) {
        nb_text_done(&formatted);
    } else {
        *out = formatted;
    }
}

void nb_set_source(struct nb_edit *edit, const struct nb *nb, size_t index, struct ng_str text)
{
    struct nb_span source = nb->cells[index].source;
    bool one_string = nb->bytes.data[source.at] == '"';
    struct nb_text present = {0};
    (void)nb_decode_lines(&present, nb->bytes, source);
    bool same = !present.failed && str_equal(nb_text_str(&present), text);
    nb_text_done(&present);
    if (same) {
        return; /* in any spelling */
    }
    struct source_lines lines = {0};
    bool good = one_string || (lines_read(&lines, nb->bytes, source) &&
                               lines_compare(&lines, nb->bytes, text));
    bool keeps = lines.head + lines.tail > 0;
    if (!good) {
        edit->failed = true;
    } else if (keeps) {
        splice_lines(edit, nb, text, &lines);
    } else {
        struct nb_text json = {0};
        nb_encode_text(&json, text, nb->style.ascii, one_string);
        edit->failed |= json.failed;
        nb_replace_value(edit, nb, source, nb_text_str(&json), NB_DEPTH_OF_MEMBER);
        nb_text_done(&json);
    }
    free(lines.old);
}

/* ---- cells ---- */

struct new_cell {
    enum nb_type type;
    struct ng_str id, source;
    const struct nb *nb;
    bool written[8];
};

static const char *const member_names[] = {"cell_type", "execution_count", "id",
                                           "metadata",  "outputs",         "source"};

static bool wants(const struct new_cell *cell, const char *name)
{
    if (strcmp(name, "execution_count") == 0 || strcmp(name, "outputs") == 0) {
        return cell->type == NB_CODE;
    }
    return strcmp(name, "id") != 0 || cell->id.len > 0;
}

static void add_member(struct nb_text *out, struct new_cell *cell, size_t which)
{
    const char *name = member_names[which];
    if (cell->written[which] || !wants(cell, name)) {
        return;
    }
    cell->written[which] = true;
    nb_add_if(out, out->data != NULL && out->data[out->len - 1] != '{', ",");
    nb_addf(out, "\"%s\":", name);
    if (strcmp(name, "cell_type") == 0) {
        nb_encode(out, ng_str_of(nb_type_name(cell->type)), true);
    } else if (strcmp(name, "execution_count") == 0) {
        nb_add_word(out, "null");
    } else if (strcmp(name, "id") == 0) {
        nb_encode(out, cell->id, true);
    } else if (strcmp(name, "source") == 0) {
        nb_encode_text(out, cell->source, cell->nb->style.ascii, cell->nb->style.one_string);
    } else if (strcmp(name, "outputs") == 0) {
        nb_add_word(out, "[]");
    } else {
        nb_add_word(out, "{}");
    }
}

static bool is_sorted(const struct nb *nb, const struct nb_cell *cell)
{
    struct nb_walk walk = nb_walk_into(nb->bytes, cell->whole);
    struct nb_span last = {0, 0};
    struct nb_span name;
    struct nb_span value;
    bool sorted = true;
    while (nb_walk_member(&walk, &name, &value)) {
        size_t len = size_min(last.len, name.len);
        sorted = sorted && (len == 0 || memcmp(nb->bytes.data + last.at,
                                               nb->bytes.data + name.at, len) <= 0);
        last = name;
    }
    return sorted;
}

/* The cell whose order of members a new cell copies: one of the same type, else any one. NULL:
 * sort the members, as the existing cell does. */
static const struct nb_cell *pattern_of(const struct nb *nb, enum nb_type type)
{
    for (size_t i = 0; i < nb->cell_count; i++) {
        if (nb->cells[i].type == type) {
            return &nb->cells[i];
        }
    }
    if (nb->cell_count > 0 && !is_sorted(nb, &nb->cells[0])) {
        return &nb->cells[0];
    }
    return NULL;
}

static void add_cell(struct nb_text *out, struct new_cell *cell)
{
    const struct nb *nb = cell->nb;
    const struct nb_cell *pattern = pattern_of(nb, cell->type);
    nb_add_word(out, "{");
    if (pattern != NULL) {
        struct nb_walk walk = nb_walk_into(nb->bytes, pattern->whole);
        struct nb_span name;
        struct nb_span value;
        while (nb_walk_member(&walk, &name, &value)) {
            for (size_t i = 0; i < NG_COUNT(member_names); i++) {
                if (nb_is_word(nb->bytes, name, member_names[i])) {
                    add_member(out, cell, i);
                }
            }
        }
    }
    for (size_t i = 0; i < NG_COUNT(member_names); i++) {
        add_member(out, cell, i);
    }
    nb_add_word(out, "}");
}

void nb_add_cell_separator(struct nb_text *out, const struct nb *nb)
{
    struct nb_span neighbours[2] = {{0, 0}, {0, 0}};
    for (size_t i = 0; i < 2 && i < nb->cell_count; i++) {
        neighbours[i] = nb->cells[i].whole;
    }
    nb_add_separator(out, nb, neighbours[0], neighbours[1], NB_DEPTH_OF_CELL);
}

void nb_insert_cell(struct nb_edit *edit, const struct nb *nb, size_t index, enum nb_type type,
                    struct ng_str id, struct ng_str source)
{
    struct new_cell cell = {.type = type, .id = id, .source = source, .nb = nb};
    struct nb_text json = {0};
    if (nb->cell_count == 0) {
        nb_add_word(&json, "[");
        add_cell(&json, &cell);
        nb_add_word(&json, "]");
        nb_replace_value(edit, nb, nb->cells_array, nb_text_str(&json), NB_DEPTH_OF_CELLS);
    } else {
        bool last = index >= nb->cell_count;
        size_t at = nb_end(nb->cells[nb->cell_count - 1].whole);
        if (!last) {
            at = nb->cells[index].whole.at;
        }
        struct nb_text *out = nb_edit_add(edit, at, 0);
        add_cell(&json, &cell);
        if (last) {
            nb_add_cell_separator(out, nb);
        }
        nb_format(out, &nb->style, nb_text_str(&json), NB_DEPTH_OF_CELL);
        if (!last) {
            nb_add_cell_separator(out, nb);
        }
    }
    edit->failed |= json.failed;
    nb_text_done(&json);
}

/* Cuts the cells `first` to `last` with one separator: the preceding one, else the following
 * one. */
static void cut_cells(struct nb_edit *edit, const struct nb *nb, size_t first, size_t last)
{
    size_t at = nb->cells[0].whole.at;
    size_t end;
    if (first > 0) {
        at = nb_end(nb->cells[first - 1].whole);
        end = nb_end(nb->cells[last].whole);
    } else {
        end = nb->cells[last + 1].whole.at;
    }
    (void)nb_edit_add(edit, at, end - at);
}

void nb_delete_cells(struct nb_edit *edit, const struct nb *nb, const bool *gone)
{
    size_t count = nb->cell_count;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        kept += !gone[i];
    }
    if (kept == 0 && count > 0) {
        nb_replace_value(edit, nb, nb->cells_array, ng_str_of("[]"), NB_DEPTH_OF_CELLS);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!gone[i]) {
            continue;
        }
        size_t last = i;
        while (last + 1 < count && gone[last + 1]) {
            last++;
        }
        cut_cells(edit, nb, i, last);
        i = last;
    }
}

void nb_move_cell(struct nb_edit *edit, const struct nb *nb, size_t from, size_t to)
{
    const struct nb_cell *cells = nb->cells;
    if (from == to) {
        return;
    }
    struct ng_str moved = nb_bytes(nb->bytes, cells[from].whole);
    size_t target = nb_end(cells[to].whole);
    if (to < from) {
        target = cells[to].whole.at;
    }
    struct nb_text *out = nb_edit_add(edit, target, 0);
    if (to > from) {
        nb_add_cell_separator(out, nb);
    }
    nb_add_str(out, moved);
    if (to < from) {
        nb_add_cell_separator(out, nb);
    }
    cut_cells(edit, nb, from, from);
}

/* ---- outputs ---- */

/* Appends a member to a cell that does not have it. */
static void append_member(struct nb_edit *edit, const struct nb *nb, const struct nb_cell *cell,
                          const char *name, struct ng_str json)
{
    char quoted[NB_ID_MAX];
    struct nb_walk walk = nb_walk_into(nb->bytes, cell->whole);
    struct nb_span at;
    struct nb_span last = {0, 0};
    while (nb_walk_member(&walk, &at, &last)) {
    }
    (void)snprintf(quoted, sizeof(quoted), "\"%s\"", name);
    nb_add_member(edit, nb, cell->whole, last, ng_str_of(quoted), json, NB_DEPTH_OF_MEMBER);
}

static void set_member(struct nb_edit *edit, const struct nb *nb, const struct nb_cell *cell,
                       const char *name, struct nb_span old, struct ng_str value)
{
    if (old.len > 0) {
        nb_replace_value(edit, nb, old, value, NB_DEPTH_OF_MEMBER);
    } else {
        append_member(edit, nb, cell, name, value);
    }
}

void nb_set_outputs(struct nb_edit *edit, const struct nb *nb, size_t index,
                    struct ng_str outputs, int64_t count)
{
    const struct nb_cell *cell = &nb->cells[index];
    char number[24] = "null";
    if (count >= 0) {
        (void)snprintf(number, sizeof(number), "%lld", (long long)count);
    }
    set_member(edit, nb, cell, "execution_count", cell->count, ng_str_of(number));
    set_member(edit, nb, cell, "outputs", cell->outputs, outputs);
}

void nb_replace_outputs(struct nb_edit *edit, const struct nb *nb, size_t index, size_t keep,
                        struct ng_str outputs)
{
    struct nb_span old = nb->cells[index].outputs;
    struct nb_walk walk = nb_walk_into(nb->bytes, old);
    struct nb_span first = {0, 0};
    struct nb_span second = {0, 0};
    struct nb_span kept = {0, 0};
    struct nb_span last = {0, 0};
    for (size_t i = 0; old.len > 0 && nb_walk_element(&walk, &last); i++) {
        first = i == 0 ? last : first;
        second = i == 1 ? last : second;
        kept = i < keep ? last : kept;
    }
    if (kept.len == 0) {
        set_member(edit, nb, &nb->cells[index], "outputs", old, outputs);
        return;
    }
    struct nb_text *out = nb_edit_add(edit, nb_end(kept), nb_end(last) - nb_end(kept));
    struct nb_span whole = {0, outputs.len};
    struct nb_span next;
    walk = nb_walk_into(outputs, whole);
    while (nb_walk_element(&walk, &next)) {
        nb_add_separator(out, nb, first, second, NB_DEPTH_OF_MEMBER + 1);
        nb_format(out, &nb->style, nb_bytes(outputs, next), NB_DEPTH_OF_MEMBER + 1);
    }
}

void nb_clear_outputs(struct nb_edit *edit, const struct nb *nb, size_t index)
{
    const struct nb_cell *cell = &nb->cells[index];
    if (cell->type != NB_CODE) {
        return;
    }
    if (cell->count.len > 0) {
        nb_replace_value(edit, nb, cell->count, ng_str_of("null"), NB_DEPTH_OF_MEMBER);
    }
    if (cell->output_count > 0) {
        nb_replace_value(edit, nb, cell->outputs, ng_str_of("[]"), NB_DEPTH_OF_MEMBER);
    }
}

bool nb_patch_output(struct nb_edit *edit, const struct nb *nb, size_t index, size_t ordinal,
                     struct ng_str data, struct ng_str metadata)
{
    struct nb_walk walk = nb_walk_into(nb->bytes, nb->cells[index].outputs);
    struct nb_span output = {0, 0};
    for (size_t i = 0; i <= ordinal; i++) {
        if (nb->cells[index].outputs.len == 0 || !nb_walk_element(&walk, &output)) {
            return false;
        }
    }
    struct nb_span old_data = nb_member(nb->bytes, output, "data");
    struct nb_span old_metadata = nb_member(nb->bytes, output, "metadata");
    if (old_data.len == 0 || old_metadata.len == 0) {
        return false;
    }
    nb_replace_value(edit, nb, old_data, data, NB_DEPTH_OF_OUTPUT);
    nb_replace_value(edit, nb, old_metadata, metadata, NB_DEPTH_OF_OUTPUT);
    return true;
}

void nb_new_file(struct nb_text *out, struct ng_str kernelspec, const struct nb_new_cell *cells,
                 size_t count)
{
    struct nb_style style = {.indent = " ", .newline = "\n", .space_colon = true};
    struct nb_text json = {0};
    nb_add_word(&json, "{\"cells\":[");
    const struct nb nb = {.style = style};
    for (size_t i = 0; i < count; i++) {
        struct new_cell cell = {
            .type = cells[i].type, .id = cells[i].id, .source = cells[i].source, .nb = &nb};
        nb_add_if(&json, i > 0, ",");
        add_cell(&json, &cell);
    }
    nb_add_word(&json, "],\"metadata\":{");
    if (kernelspec.len > 0) {
        nb_add_word(&json, "\"kernelspec\":");
        nb_add_str(&json, kernelspec);
    }
    nb_add_word(&json, "},\"nbformat\":4,\"nbformat_minor\":5}");
    nb_format(out, &style, nb_text_str(&json), 0);
    nb_add_word(out, "\n");
    out->failed |= json.failed;
    nb_text_done(&json);
}
