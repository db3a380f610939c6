/* SPDX-License-Identifier: MIT */
/*
 * fuzz_notebook_merge.c - three notebooks with a record separator (0x1e) between them: base,
 * present and before of a merge. A text that begins with '{' is a file as it is. Any other one
 * is made into a file: cells with a group separator (0x1d) between them, each a letter for its
 * id, one for its type, then its source, and behind a file separator (0x1c) an output.
 */
#include <stdlib.h>
#include <string.h>

#include "content/notebook_merge.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#define INPUT_BYTES_MAX 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* The text before the separator; *rest is that behind it. */
static struct ng_str next_part(struct ng_str *rest, char separator)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->data, separator, rest->len);
    struct ng_str part =
        str_make(rest->data, end == NULL ? rest->len : (size_t)(end - rest->data));
    size_t used = part.len + (end != NULL);
    *rest = str_make(rest->data + used, rest->len - used);
    return part;
}

static void add_cell(struct nb_text *file, struct ng_str cell)
{
    struct ng_str source = next_part(&cell, 0x1c);
    char id = source.len > 0 ? source.data[0] : 'a';
    bool code = source.len < 2 || source.data[1] % 2 == 0;
    bool ascii = cell.len % 2 == 1;
    bool one_string = id == 'z';
    size_t used = source.len < 2 ? source.len : 2;
    nb_add_word(file, "{");
    if (str_is_alpha(id)) {
        nb_addf(file, "\"id\":\"%c\",", id);
    }
    nb_addf(file, "\"cell_type\":\"%s\",\"metadata\":{},", code ? "code" : "markdown");
    if (code) {
        nb_addf(file, "\"execution_count\":%zu,\"outputs\":[{\"text\":", cell.len);
        nb_encode(file, cell, ascii);
        nb_add_word(file, "}],");
    }
    nb_add_word(file, "\"source\":");
    nb_encode_text(file, str_make(source.data + used, source.len - used), ascii, one_string);
    nb_add_word(file, "}");
}

static void make_file(struct nb_text *file, struct ng_str text)
{
    if (text.len > 0 && text.data[0] == '{') {
        nb_add_str(file, text);
        return;
    }
    nb_add_word(file, "{\"cells\":[");
    for (size_t i = 0; text.len > 0; i++) {
        nb_add_if(file, i > 0, ",");
        add_cell(file, next_part(&text, 0x1d));
    }
    nb_add_word(file, "],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":5}");
}

static void merge_is(struct ng_str base, struct ng_str present, struct ng_str before,
                     struct ng_str want)
{
    struct merge_result result = {.text = {.len = 0}};
    must(notebook_merge(base, present, before, &result) == NG_OK);
    must(result.conflict.reason == MERGE_CLEAN && str_equal(buf_str(&result.text), want));
    merge_result_done(&result);
}

static size_t count_lines(struct ng_str text)
{
    struct notebook_view view;
    size_t lines = 0;
    if (notebook_view_read(text, &view) == NG_OK) {
        must(utf8_valid(nb_text_str(&view.text)));
        for (size_t i = 0; i < view.text.len; i++) {
            lines += view.text.data[i] == '\n';
        }
    }
    notebook_view_done(&view);
    return lines;
}

static void check_conflict(const struct merge_conflict *conflict, struct ng_str present)
{
    size_t lines = count_lines(present);
    must(merge_reason_name(conflict->reason)[0] != '\0');
    must(conflict->place_count <= MERGE_PLACES_MAX && conflict->place_count <= conflict->count);
    for (size_t i = 0; i < conflict->place_count; i++) {
        const struct merge_place *place = &conflict->places[i];
        const char *side = conflict->sides.data == NULL ? "" : conflict->sides.data + place->at;
        must(place->line <= lines + 1);
        must(place->present_len <= MERGE_SIDE_MAX && place->before_len <= MERGE_SIDE_MAX);
        must(utf8_valid(str_make(side, place->present_len)));
        must(utf8_valid(str_make(side + place->present_len, place->before_len)));
    }
}

static void check_merge(struct ng_str base, struct ng_str present, struct ng_str before)
{
    struct merge_result result = {.text = {.len = 0}};
    struct nb nb;
    struct nb_error error;
    must(notebook_merge(base, present, before, &result) == NG_OK);
    if (result.conflict.reason != MERGE_CLEAN) {
        must(result.text.len == 0);
        check_conflict(&result.conflict, present);
    } else {
        struct ng_str text = buf_str(&result.text);
        bool simple =
            str_equal(base, present) || str_equal(base, before) || str_equal(present, before);
        merge_is(text, text, present, present);
        if (!simple) {
            must(nb_index(text, &nb, &error) == NB_FINE);
            nb_done(&nb);
        }
    }
    merge_result_done(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ng_str rest = {(const char *)data, size};
    struct nb_text files[3] = {{.len = 0}};
    struct ng_str texts[3];
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        make_file(&files[i], next_part(&rest, 0x1e));
        must(!files[i].failed);
        texts[i] = nb_text_str(&files[i]);
    }
    merge_is(texts[0], texts[0], texts[2], texts[2]);
    merge_is(texts[0], texts[1], texts[0], texts[1]);
    check_merge(texts[0], texts[1], texts[2]);
    check_merge(texts[0], texts[2], texts[1]);
    for (int i = 0; i < 3; i++) {
        nb_text_done(&files[i]);
    }
    return 0;
}
