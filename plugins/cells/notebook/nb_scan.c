/* SPDX-License-Identifier: MIT */
/* nb_scan.c - builds the index of a notebook file: checks that it is a notebook and finds its
 * cells. */
#include "nb_scan.h"
#include "core/base/array.h"
#include "core/base/hash.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_SLOTS_MIN 16

/* ---- cells ---- */

static void bad_cell(struct nb_scan *scan, size_t at, const char *what)
{
    if (scan->bad_cell.fault == NB_FINE) {
        struct nb_scan told = *scan;
        char text[NB_ERROR_MAX / 2];
        (void)snprintf(text, sizeof(text), "cell %zu %s", scan->nb->cell_count, what);
        told.error = &scan->bad_cell;
        (void)nb_scan_fail(&told, NB_BAD_CELL, at, text);
    }
}

static char first_of(const struct nb_scan *scan, struct nb_span span)
{
    if (span.len == 0) {
        return '\0';
    }
    return scan->bytes.data[span.at];
}

struct cell_scan {
    struct nb_cell *cell;
    bool lines_are_strings; /* of a source that is a list */
};

static bool output_element(struct nb_scan *scan, void *user)
{
    struct nb_cell *cell = user;
    struct nb_span value;
    cell->output_count++;
    if (!nb_scan_is(scan, '{')) {
        bad_cell(scan, scan->at, "has an output that is not an object");
    }
    return nb_scan_value(scan, &value);
}

static bool source_element(struct nb_scan *scan, void *user)
{
    struct cell_scan *found = user;
    struct nb_span value;
    found->lines_are_strings = found->lines_are_strings && nb_scan_is(scan, '"');
    return nb_scan_value(scan, &value);
}

static bool cell_member(struct nb_scan *scan, struct nb_span name, void *user)
{
    struct cell_scan *found = user;
    struct nb_cell *cell = found->cell;
    struct nb_span value;
    if (nb_scan_is(scan, '[') && nb_is_word(scan->bytes, name, "outputs")) {
        cell->output_count = 0;
        return nb_scan_array(scan, output_element, cell, &cell->outputs);
    }
    if (nb_scan_is(scan, '[') && nb_is_word(scan->bytes, name, "source")) {
        found->lines_are_strings = true;
        return nb_scan_array(scan, source_element, found, &cell->source);
    }
    if (!nb_scan_value(scan, &value)) {
        return false;
    }
    const struct {
        const char *name;
        struct nb_span *span;
    } members[] = {
        {"id", &cell->id},
        {"cell_type", &cell->type_word},
        {"source", &cell->source},
        {"outputs", &cell->outputs},
        {"execution_count", &cell->count},
        {"metadata", &cell->metadata},
        {"attachments", &cell->attachments},
    };
    for (size_t i = 0; i < NG_COUNT(members); i++) {
        if (nb_is_word(scan->bytes, name, members[i].name)) {
            *members[i].span = value;
        }
    }
    return true;
}

static const char *const type_names[] = {
    [NB_CODE] = "code", [NB_MARKDOWN] = "markdown", [NB_RAW] = "raw", [NB_UNKNOWN] = "unknown"};

const char *nb_type_name(enum nb_type type)
{
    return type_names[type];
}

static void check_cell(struct nb_scan *scan, const struct cell_scan *found)
{
    struct nb_cell *cell = found->cell;
    cell->type = NB_UNKNOWN;
    for (enum nb_type type = NB_CODE; type < NB_UNKNOWN; type++) {
        if (nb_is_word(scan->bytes, cell->type_word, type_names[type])) {
            cell->type = type;
        }
    }
    char source = first_of(scan, cell->source);
    bool text = source == '"' || (source == '[' && found->lines_are_strings);
    if (cell->type == NB_UNKNOWN && !text) { /* a later nbformat: the cell may have no source */
        cell->source = (struct nb_span){0, 0};
        text = true;
    }
    if (first_of(scan, cell->type_word) != '"') {
        bad_cell(scan, cell->whole.at, "has no cell_type");
    } else if (source == '\0' && !text) {
        bad_cell(scan, cell->whole.at, "has no source");
    } else if (!text) {
        bad_cell(scan, cell->source.at, "has a source that is not text");
    } else if (cell->outputs.len > 0 && first_of(scan, cell->outputs) != '[') {
        bad_cell(scan, cell->outputs.at, "has outputs that are not a list");
    } else if (cell->metadata.len > 0 && first_of(scan, cell->metadata) != '{') {
        bad_cell(scan, cell->metadata.at, "has metadata that are not an object");
    }
}

static bool scan_cell(struct nb_scan *scan, void *user)
{
    struct nb *nb = scan->nb;
    struct nb_cell cell = {.type = NB_UNKNOWN};
    struct cell_scan found = {.cell = &cell};
    (void)user;
    if (nb->cell_count == NB_CELLS_MAX) {
        return nb_scan_fail(scan, NB_BAD_CELL, scan->at, "it has too many cells");
    }
    if (array_reserve((void **)&nb->cells, &scan->cells_size, nb->cell_count + 1,
                      sizeof(*nb->cells), NB_CELLS_MAX) != NG_OK) {
        return nb_scan_fail(scan, NB_NO_MEMORY, scan->at, "there is no room for its cells");
    }
    if (!nb_scan_is(scan, '{')) {
        bad_cell(scan, scan->at, "is not an object");
        if (!nb_scan_value(scan, &cell.whole)) {
            return false;
        }
    } else {
        if (!nb_scan_object(scan, cell_member, &found, &cell.whole)) {
            return false;
        }
        check_cell(scan, &found);
    }
    nb->cells[nb->cell_count++] = cell;
    return true;
}

/* ---- file ---- */

static bool top_member(struct nb_scan *scan, struct nb_span name, void *user)
{
    struct nb *nb = scan->nb;
    struct nb_span value;
    (void)user;
    if (nb_is_word(scan->bytes, name, "cells")) {
        nb->cell_count = 0;
        scan->has_cells = true;
        scan->cells_no_array = !nb_scan_is(scan, '[');
        if (scan->cells_no_array) {
            return nb_scan_value(scan, &nb->cells_array);
        }
        return nb_scan_array(scan, scan_cell, NULL, &nb->cells_array);
    }
    if (!nb_scan_value(scan, &value)) {
        return false;
    }
    if (nb_is_word(scan->bytes, name, "metadata")) {
        nb->metadata = value;
    } else if (nb_is_word(scan->bytes, name, "nbformat")) {
        scan->has_format = true;
        scan->format = value;
    } else if (nb_is_word(scan->bytes, name, "nbformat_minor")) {
        scan->minor = value;
    } else if (nb_is_word(scan->bytes, name, "worksheets")) {
        scan->has_worksheets = true;
    }
    return true;
}

static bool check_notebook(struct nb_scan *scan)
{
    struct nb *nb = scan->nb;
    int64_t major = 0;
    if (!scan->has_format && !scan->has_cells && !scan->has_worksheets) {
        return nb_scan_fail(
            scan, NB_NO_NOTEBOOK, nb->top.at,
            "it is JSON, but not a notebook: it has neither nbformat nor cells");
    }
    if (!scan->has_format || !nb_integer(scan->bytes, scan->format, &major)) {
        return nb_scan_fail(scan, NB_NO_NOTEBOOK, nb->top.at,
                            "its nbformat is missing or not a whole number");
    }
    if (major != 4) {
        const char *what = "its nbformat is newer than 4";
        if (major < 4) {
            what = "its nbformat is older than 4: open it in Jupyter and save it, which "
                   "converts it";
        }
        return nb_scan_fail(scan, NB_OTHER_VERSION, scan->format.at, what);
    }
    if (scan->minor.len > 0 && !nb_integer(scan->bytes, scan->minor, &nb->minor)) {
        return nb_scan_fail(scan, NB_NO_NOTEBOOK, scan->minor.at,
                            "its nbformat_minor is not a whole number");
    }
    if (!scan->has_cells || scan->cells_no_array) {
        return nb_scan_fail(scan, NB_NO_NOTEBOOK, nb->top.at, "it has no list of cells");
    }
    if (nb->metadata.len > 0 && first_of(scan, nb->metadata) != '{') {
        return nb_scan_fail(scan, NB_NO_NOTEBOOK, nb->metadata.at,
                            "its metadata are not an object");
    }
    if (scan->bad_cell.fault != NB_FINE) {
        *scan->error = scan->bad_cell;
        return false;
    }
    nb->has_ids = nb->minor >= 5;
    return true;
}

static bool id_fits(struct ng_str id)
{
    if (id.len < 3 || id.len > NB_ID_MAX + 2 || id.data[0] != '"') {
        return false;
    }
    for (size_t i = 1; i + 1 < id.len; i++) {
        char c = id.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_')) {
            return false;
        }
    }
    return true;
}

/* Only a unique id is a handle: with duplicates the intended cell would be a guess. */
static bool find_unique_ids(struct nb_scan *scan)
{
    struct nb *nb = scan->nb;
    size_t slots = ID_SLOTS_MIN;
    while (slots < nb->cell_count * 2) {
        slots *= 2;
    }
    size_t *seen = calloc(slots, sizeof(*seen)); /* cell index + 1 */
    if (seen == NULL) {
        return nb_scan_fail(scan, NB_NO_MEMORY, 0, "there is no room for its cells");
    }
    for (size_t i = 0; i < nb->cell_count; i++) {
        struct ng_str id = nb_bytes(scan->bytes, nb->cells[i].id);
        if (!id_fits(id)) {
            continue;
        }
        size_t slot = (size_t)hash_fnv(HASH_FNV_BASIS, id) & (slots - 1);
        struct nb_cell *first = NULL;
        while (seen[slot] != 0 && first == NULL) {
            struct nb_cell *other = &nb->cells[seen[slot] - 1];
            if (str_equal(nb_bytes(scan->bytes, other->id), id)) {
                first = other;
            }
            slot = (slot + 1) & (slots - 1);
        }
        if (first == NULL) {
            seen[slot] = i + 1;
        } else {
            first->id_unique = false;
            first->id_duplicate = true;
        }
        nb->cells[i].id_unique = first == NULL;
        nb->cells[i].id_duplicate = first != NULL;
    }
    free(seen);
    return true;
}

static bool scan_whole(struct nb_scan *scan)
{
    static const char mark[] =
        "\xef\xbb\xbf"; /* byte order mark: some editors write it, readers skip it */
    if (scan->bytes.len >= 3 && memcmp(scan->bytes.data, mark, 3) == 0) {
        scan->start = scan->at = 3;
    }
    nb_scan_space(scan);
    if (scan->at >= scan->bytes.len) {
        return nb_scan_fail(scan, NB_EMPTY, 0, "it is empty");
    }
    if ((unsigned char)scan->bytes.data[scan->at] >= 0x80 &&
        utf8_length(scan->bytes, scan->at) == 0) {
        return nb_scan_fail(scan, NB_NOT_UTF8, scan->at, "it is not UTF-8");
    }
    if (!nb_scan_is(scan, '{')) {
        struct nb_span value;
        return nb_scan_value(scan, &value) &&
               nb_scan_fail(scan, NB_NO_NOTEBOOK, value.at, "it is JSON, but not an object");
    }
    if (!nb_scan_object(scan, top_member, NULL, &scan->nb->top)) {
        return false;
    }
    nb_scan_space(scan);
    if (scan->at < scan->bytes.len) {
        return nb_scan_fail(scan, NB_NOT_JSON, scan->at,
                            "there is text after the end of its JSON");
    }
    return check_notebook(scan) && find_unique_ids(scan);
}

enum nb_fault nb_index(struct ng_str bytes, struct nb *ret, struct nb_error *error)
{
    struct nb_scan scan = {.bytes = bytes, .nb = ret, .error = error};
    memset(ret, 0, sizeof(*ret));
    memset(error, 0, sizeof(*error));
    ret->bytes = bytes;
    if (!scan_whole(&scan)) {
        nb_done(ret);
        return error->fault;
    }
    nb_detect_style(ret);
    return NB_FINE;
}

void nb_done(struct nb *nb)
{
    if (nb->kept != NULL) {
        nb_kept_unref(nb->kept);
    } else {
        free(nb->cells);
    }
    nb->kept = NULL;
    nb->cells = NULL;
    nb->cell_count = 0;
}
