/* SPDX-License-Identifier: MIT */
/* nb_scan.c - reads a notebook file once: is it well formed JSON, is it a notebook, and where
 * do its cells lie. */
#include "nb.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_SLOTS_MIN 16

struct scan {
    struct ng_str bytes;
    size_t start, at; /* start: behind a byte order mark */
    unsigned depth;
    struct nb *nb;
    struct nb_error *error;
    struct nb_error bad_cell; /* the first; told only of what is a notebook of version 4 */
    size_t cells_size;
    bool has_cells, has_format, has_worksheets, cells_no_array;
    struct nb_span format, minor;
};

/* Takes the value of one member; `name` with its quotes. */
typedef bool member_fn(struct scan *scan, struct nb_span name, void *user);

static bool fail_at(struct scan *scan, enum nb_fault fault, size_t at, const char *what)
{
    size_t line = 1;
    size_t column = 1; /* in characters */
    for (size_t i = scan->start; i < at && i < scan->bytes.len; i++) {
        unsigned char c = (unsigned char)scan->bytes.data[i];
        line += c == '\n';
        column = c == '\n' ? 1 : column + ((c & 0xc0) != 0x80);
    }
    if (scan->error->fault == NB_FINE) {
        scan->error->fault = fault;
        (void)snprintf(scan->error->text, sizeof(scan->error->text),
                       "%s (line %zu, column %zu)", what, line, column);
    }
    return false;
}

/* What git leaves where it could not merge. */
static bool at_merge_mark(const struct scan *scan)
{
    static const char *const marks[] = {"<<<<<<<", "=======", ">>>>>>>", "|||||||"};
    bool found = false;
    for (size_t i = 0; i < NG_COUNT(marks) && !found; i++) {
        size_t len = strlen(marks[i]);
        found = scan->bytes.len - scan->at >= len &&
                memcmp(scan->bytes.data + scan->at, marks[i], len) == 0;
    }
    return found;
}

static bool fail_json(struct scan *scan, const char *what)
{
    if (scan->at >= scan->bytes.len) {
        return fail_at(scan, NB_NOT_JSON, scan->at, "it is cut short: its JSON does not end");
    }
    if (at_merge_mark(scan)) {
        return fail_at(scan, NB_NOT_JSON, scan->at,
                       "it holds the marks of a merge with conflicts: settle them first");
    }
    return fail_at(scan, NB_NOT_JSON, scan->at, what);
}

static void skip_space(struct scan *scan)
{
    const char *data = scan->bytes.data;
    while (scan->at < scan->bytes.len && (data[scan->at] == ' ' || data[scan->at] == '\n' ||
                                          data[scan->at] == '\r' || data[scan->at] == '\t')) {
        scan->at++;
    }
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Bytes of the character at `at` that is not ASCII; 0: no UTF-8. */
static size_t utf8_length(struct ng_str bytes, size_t at)
{
    const unsigned char *p = (const unsigned char *)bytes.data + at;
    size_t left = bytes.len - at;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        return left >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
    }
    if ((p[0] & 0xf0) == 0xe0) {
        bool good = left >= 3 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80 &&
                    !(p[0] == 0xe0 && p[1] < 0xa0) && !(p[0] == 0xed && p[1] > 0x9f);
        return good ? 3 : 0;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        bool good = left >= 4 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80 &&
                    (p[3] & 0xc0) == 0x80 && !(p[0] == 0xf0 && p[1] < 0x90) &&
                    !(p[0] == 0xf4 && p[1] > 0x8f);
        return good ? 4 : 0;
    }
    return 0;
}

/* Behind a backslash. Halves of surrogate pairs are let through: real files have them. */
static bool scan_escape(struct scan *scan)
{
    const char *data = scan->bytes.data;
    if (scan->at >= scan->bytes.len) {
        return fail_json(scan, "");
    }
    char c = data[scan->at++];
    if (c != 'u') {
        return strchr("\"\\/bfnrt", c) != NULL && c != '\0'
                   ? true
                   : fail_at(scan, NB_NOT_JSON, scan->at - 2, "there is no such escape");
    }
    for (int i = 0; i < 4; i++, scan->at++) {
        if (scan->at >= scan->bytes.len || !is_hex(data[scan->at])) {
            return fail_json(scan, "\\u needs four hexadecimal digits");
        }
    }
    return true;
}

static bool scan_string(struct scan *scan, struct nb_span *ret)
{
    const char *data = scan->bytes.data;
    size_t start = scan->at;
    if (scan->at >= scan->bytes.len || data[scan->at] != '"') {
        return fail_json(scan, "a string is missing");
    }
    scan->at++;
    while (scan->at < scan->bytes.len) {
        unsigned char c = (unsigned char)data[scan->at];
        if (c == '"') {
            scan->at++;
            *ret = (struct nb_span){start, scan->at - start};
            return true;
        }
        if (c == '\\') {
            scan->at++;
            if (!scan_escape(scan)) {
                return false;
            }
        } else if (c < 0x20) {
            return fail_json(scan, "a control character stands unescaped in a string");
        } else if (c < 0x80) {
            scan->at++;
        } else {
            size_t len = utf8_length(scan->bytes, scan->at);
            if (len == 0) {
                return fail_at(scan, NB_NOT_UTF8, scan->at, "it is not UTF-8");
            }
            scan->at += len;
        }
    }
    return fail_json(scan, "");
}

static size_t scan_digits(struct scan *scan)
{
    size_t start = scan->at;
    while (scan->at < scan->bytes.len && scan->bytes.data[scan->at] >= '0' &&
           scan->bytes.data[scan->at] <= '9') {
        scan->at++;
    }
    return scan->at - start;
}

static bool scan_is(const struct scan *scan, char c)
{
    return scan->at < scan->bytes.len && scan->bytes.data[scan->at] == c;
}

static bool scan_number(struct scan *scan)
{
    size_t start = scan->at;
    scan->at += scan_is(scan, '-') ? 1 : 0;
    bool zero = scan_is(scan, '0');
    size_t digits = scan_digits(scan);
    if (digits == 0 || (zero && digits > 1)) {
        scan->at = digits == 0 ? scan->at : start;
        return fail_json(scan, "this is no value of JSON");
    }
    if (scan_is(scan, '.')) {
        scan->at++;
        if (scan_digits(scan) == 0) {
            return fail_json(scan, "digits are missing behind the point");
        }
    }
    if (scan_is(scan, 'e') || scan_is(scan, 'E')) {
        scan->at++;
        scan->at += scan_is(scan, '+') || scan_is(scan, '-') ? 1 : 0;
        if (scan_digits(scan) == 0) {
            return fail_json(scan, "digits are missing in the exponent");
        }
    }
    return true;
}

static bool scan_word(struct scan *scan)
{
    /* The last three are Python's: it writes and reads them. */
    static const char *const words[] = {"true", "false",    "null",
                                        "NaN",  "Infinity", "-Infinity"};
    for (size_t i = 0; i < NG_COUNT(words); i++) {
        size_t len = strlen(words[i]);
        if (scan->bytes.len - scan->at >= len &&
            memcmp(scan->bytes.data + scan->at, words[i], len) == 0) {
            scan->at += len;
            return true;
        }
    }
    return false;
}

static bool scan_value(struct scan *scan, struct nb_span *ret);

static bool scan_any_member(struct scan *scan, struct nb_span name, void *user)
{
    struct nb_span value;
    (void)name;
    (void)user;
    return scan_value(scan, &value);
}

static bool scan_deeper(struct scan *scan)
{
    if (++scan->depth > NB_DEPTH_MAX) {
        return fail_at(scan, NB_DEEP, scan->at, "its JSON is nested too deep");
    }
    scan->at++;
    skip_space(scan);
    return true;
}

/* Behind a member or an element: a comma, or the end. */
static bool scan_next(struct scan *scan, char end, bool *ret_end)
{
    skip_space(scan);
    *ret_end = scan_is(scan, end);
    if (*ret_end) {
        scan->at++;
        scan->depth--;
        return true;
    }
    if (!scan_is(scan, ',')) {
        return fail_json(scan, "a comma or the closing bracket is missing");
    }
    scan->at++;
    skip_space(scan);
    return true;
}

static bool scan_object(struct scan *scan, member_fn *member, void *user, struct nb_span *ret)
{
    size_t start = scan->at;
    bool end = false;
    if (!scan_deeper(scan)) {
        return false;
    }
    if (scan_is(scan, '}')) {
        end = true;
        scan->at++;
        scan->depth--;
    }
    while (!end) {
        struct nb_span name;
        if (!scan_string(scan, &name)) {
            return false;
        }
        skip_space(scan);
        if (!scan_is(scan, ':')) {
            return fail_json(scan, "a colon is missing");
        }
        scan->at++;
        skip_space(scan);
        if (!member(scan, name, user) || !scan_next(scan, '}', &end)) {
            return false;
        }
    }
    *ret = (struct nb_span){start, scan->at - start};
    return true;
}

static bool scan_array(struct scan *scan, bool (*element)(struct scan *scan, void *user),
                       void *user, struct nb_span *ret)
{
    size_t start = scan->at;
    bool end = false;
    if (!scan_deeper(scan)) {
        return false;
    }
    if (scan_is(scan, ']')) {
        end = true;
        scan->at++;
        scan->depth--;
    }
    while (!end) {
        if (!element(scan, user) || !scan_next(scan, ']', &end)) {
            return false;
        }
    }
    *ret = (struct nb_span){start, scan->at - start};
    return true;
}

static bool scan_any_element(struct scan *scan, void *user)
{
    struct nb_span value;
    (void)user;
    return scan_value(scan, &value);
}

static bool scan_value(struct scan *scan, struct nb_span *ret)
{
    size_t start = scan->at;
    if (scan_is(scan, '{')) {
        return scan_object(scan, scan_any_member, NULL, ret);
    }
    if (scan_is(scan, '[')) {
        return scan_array(scan, scan_any_element, NULL, ret);
    }
    if (scan_is(scan, '"')) {
        return scan_string(scan, ret);
    }
    if (!scan_word(scan) && !scan_number(scan)) {
        return false;
    }
    *ret = (struct nb_span){start, scan->at - start};
    return true;
}

/* ---- cells ---- */

static void bad_cell(struct scan *scan, size_t at, const char *what)
{
    if (scan->bad_cell.fault == NB_FINE) {
        struct scan told = *scan;
        char text[NB_ERROR_MAX / 2];
        (void)snprintf(text, sizeof(text), "cell %zu %s", scan->nb->cell_count, what);
        told.error = &scan->bad_cell;
        (void)fail_at(&told, NB_BAD_CELL, at, text);
    }
}

static char first_of(const struct scan *scan, struct nb_span span)
{
    return span.len > 0 ? scan->bytes.data[span.at] : '\0';
}

static bool cell_member(struct scan *scan, struct nb_span name, void *user)
{
    struct nb_cell *cell = user;
    struct nb_span value;
    if (!scan_value(scan, &value)) {
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

static bool lines_are_strings(const struct scan *scan, struct nb_span array)
{
    struct nb_walk walk = nb_walk_into(scan->bytes, array);
    struct nb_span line;
    while (nb_walk_element(&walk, &line)) {
        if (first_of(scan, line) != '"') {
            return false;
        }
    }
    return true;
}

static void cell_judge(struct scan *scan, struct nb_cell *cell)
{
    static const struct {
        const char *word;
        enum nb_type type;
    } types[] = {{"code", NB_CODE}, {"markdown", NB_MARKDOWN}, {"raw", NB_RAW}};
    cell->type = NB_UNKNOWN;
    for (size_t i = 0; i < NG_COUNT(types); i++) {
        if (nb_is_word(scan->bytes, cell->type_word, types[i].word)) {
            cell->type = types[i].type;
        }
    }
    char source = first_of(scan, cell->source);
    if (first_of(scan, cell->type_word) != '"') {
        bad_cell(scan, cell->whole.at, "has no cell_type");
    } else if (source == '\0') {
        bad_cell(scan, cell->whole.at, "has no source");
    } else if (source != '"' && !(source == '[' && lines_are_strings(scan, cell->source))) {
        bad_cell(scan, cell->source.at, "has a source that is no text");
    } else if (cell->outputs.len > 0 && first_of(scan, cell->outputs) != '[') {
        bad_cell(scan, cell->outputs.at, "has outputs that are no list");
    } else if (cell->metadata.len > 0 && first_of(scan, cell->metadata) != '{') {
        bad_cell(scan, cell->metadata.at, "has metadata that are no object");
    }
    if (first_of(scan, cell->outputs) == '[') {
        struct nb_walk walk = nb_walk_into(scan->bytes, cell->outputs);
        struct nb_span output;
        while (nb_walk_element(&walk, &output)) {
            cell->output_count++;
            if (first_of(scan, output) != '{') {
                bad_cell(scan, output.at, "has an output that is no object");
            }
        }
    }
}

static bool scan_cell(struct scan *scan, void *user)
{
    struct nb *nb = scan->nb;
    struct nb_cell cell = {.type = NB_UNKNOWN};
    (void)user;
    if (nb->cell_count == scan->cells_size) {
        size_t size = scan->cells_size == 0 ? 64 : scan->cells_size * 2;
        struct nb_cell *cells =
            size > NB_CELLS_MAX ? NULL : realloc(nb->cells, size * sizeof(*cells));
        if (cells == NULL) {
            return fail_at(scan, NB_NO_MEMORY, scan->at, "there is no room for its cells");
        }
        nb->cells = cells;
        scan->cells_size = size;
    }
    if (!scan_is(scan, '{')) {
        bad_cell(scan, scan->at, "is no object");
        if (!scan_value(scan, &cell.whole)) {
            return false;
        }
    } else {
        if (!scan_object(scan, cell_member, &cell, &cell.whole)) {
            return false;
        }
        cell_judge(scan, &cell);
    }
    nb->cells[nb->cell_count++] = cell;
    return true;
}

/* ---- the whole ---- */

static bool top_member(struct scan *scan, struct nb_span name, void *user)
{
    struct nb *nb = scan->nb;
    struct nb_span value;
    (void)user;
    if (nb_is_word(scan->bytes, name, "cells")) {
        nb->cell_count = 0;
        scan->has_cells = true;
        scan->cells_no_array = !scan_is(scan, '[');
        return scan->cells_no_array ? scan_value(scan, &nb->cells_array)
                                    : scan_array(scan, scan_cell, NULL, &nb->cells_array);
    }
    if (!scan_value(scan, &value)) {
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

static bool judge(struct scan *scan)
{
    struct nb *nb = scan->nb;
    int64_t major = 0;
    if (!scan->has_format && !scan->has_cells && !scan->has_worksheets) {
        return fail_at(scan, NB_NO_NOTEBOOK, nb->top.at,
                       "it is JSON, but no notebook: it has neither nbformat nor cells");
    }
    if (!scan->has_format || !nb_integer(scan->bytes, scan->format, &major)) {
        return fail_at(scan, NB_NO_NOTEBOOK, nb->top.at,
                       "its nbformat is missing or no whole number");
    }
    if (major != 4) {
        return fail_at(scan, NB_OTHER_VERSION, scan->format.at,
                       major < 4 ? "its nbformat is older than 4: open it in Jupyter and save "
                                   "it, which converts it"
                                 : "its nbformat is newer than 4");
    }
    if (scan->minor.len > 0 && !nb_integer(scan->bytes, scan->minor, &nb->minor)) {
        return fail_at(scan, NB_NO_NOTEBOOK, scan->minor.at,
                       "its nbformat_minor is no whole number");
    }
    if (!scan->has_cells || scan->cells_no_array) {
        return fail_at(scan, NB_NO_NOTEBOOK, nb->top.at, "it has no list of cells");
    }
    if (nb->metadata.len > 0 && first_of(scan, nb->metadata) != '{') {
        return fail_at(scan, NB_NO_NOTEBOOK, nb->metadata.at, "its metadata are no object");
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

/* An id is a handle where no other cell has it. Of doubled ones none is: which of the two is
 * meant would be a guess. */
static bool judge_ids(struct scan *scan)
{
    struct nb *nb = scan->nb;
    size_t slots = ID_SLOTS_MIN;
    while (slots < nb->cell_count * 2) {
        slots *= 2;
    }
    size_t *seen = calloc(slots, sizeof(*seen)); /* cell + 1 */
    if (seen == NULL) {
        return fail_at(scan, NB_NO_MEMORY, 0, "there is no room for its cells");
    }
    for (size_t i = 0; i < nb->cell_count; i++) {
        struct ng_str id = nb_bytes(scan->bytes, nb->cells[i].id);
        if (!id_fits(id)) {
            continue;
        }
        uint64_t hash = 1469598103934665603u; /* FNV-1a */
        for (size_t k = 0; k < id.len; k++) {
            hash = (hash ^ (unsigned char)id.data[k]) * 1099511628211u;
        }
        size_t slot = (size_t)hash & (slots - 1);
        struct nb_cell *holder = NULL;
        while (seen[slot] != 0 && holder == NULL) {
            struct nb_cell *other = &nb->cells[seen[slot] - 1];
            struct ng_str its = nb_bytes(scan->bytes, other->id);
            holder = its.len == id.len && memcmp(its.data, id.data, id.len) == 0 ? other : NULL;
            slot = (slot + 1) & (slots - 1);
        }
        if (holder == NULL) {
            seen[slot] = i + 1;
        } else {
            holder->id_good = false;
            holder->id_doubled = true;
        }
        nb->cells[i].id_good = holder == NULL;
        nb->cells[i].id_doubled = holder != NULL;
    }
    free(seen);
    return true;
}

static bool scan_whole(struct scan *scan)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some editors put it there, readers skip it */
    if (scan->bytes.len >= 3 && memcmp(scan->bytes.data, mark, 3) == 0) {
        scan->start = scan->at = 3;
    }
    skip_space(scan);
    if (scan->at >= scan->bytes.len) {
        return fail_at(scan, NB_EMPTY, 0, "it is empty");
    }
    if ((unsigned char)scan->bytes.data[scan->at] >= 0x80 &&
        utf8_length(scan->bytes, scan->at) == 0) {
        return fail_at(scan, NB_NOT_UTF8, scan->at, "it is not UTF-8");
    }
    if (!scan_is(scan, '{')) {
        struct nb_span value;
        return scan_value(scan, &value) &&
               fail_at(scan, NB_NO_NOTEBOOK, value.at, "it is JSON, but no object");
    }
    if (!scan_object(scan, top_member, NULL, &scan->nb->top)) {
        return false;
    }
    skip_space(scan);
    if (scan->at < scan->bytes.len) {
        return fail_at(scan, NB_NOT_JSON, scan->at, "something follows the end of its JSON");
    }
    return judge(scan) && judge_ids(scan);
}

enum nb_fault nb_index(struct ng_str bytes, struct nb *ret, struct nb_error *error)
{
    struct scan scan = {.bytes = bytes, .nb = ret, .error = error};
    memset(ret, 0, sizeof(*ret));
    memset(error, 0, sizeof(*error));
    ret->bytes = bytes;
    if (!scan_whole(&scan)) {
        nb_done(ret);
        return error->fault;
    }
    nb_learn(ret);
    return NB_FINE;
}

bool nb_check(struct ng_str json)
{
    struct nb nothing = {.cell_count = 0};
    struct nb_error ignored = {.fault = NB_FINE};
    struct scan scan = {.bytes = json, .nb = &nothing, .error = &ignored};
    struct nb_span value;
    skip_space(&scan);
    if (!scan_value(&scan, &value)) {
        return false;
    }
    skip_space(&scan);
    return scan.at == json.len;
}

void nb_done(struct nb *nb)
{
    free(nb->cells);
    nb->cells = NULL;
    nb->cell_count = 0;
}
