/* SPDX-License-Identifier: MIT */
/* cells_resources.c - cells as resources, and their search. */
#include "cells_resources.h"

#include <string.h>

#include "core/base/find/find_files.h"
#include "core/base/find/find_words.h"
#include "core/base/str.h"
#include "tools/cells.h"

#define CELLS_ENDING ".ipynb"
/* Between the path and the handle of a cell; handles have none. */
#define CELLS_ID_MARK '#'

/* ---- reading ---- */

static int fail_no_cell(struct ng_call *call)
{
    return ng_fail(call, NG_ENOTFOUND, "There is no such cell in this space.");
}

static int reply_source(struct ng_call *call, const struct nb *nb, size_t index)
{
    struct nb_text source = {0};
    (void)nb_decode_lines(&source, nb->bytes, nb->cells[index].source);
    int rc = cells_check_memory(call, !source.failed);
    if (rc == NG_OK) {
        rc = ng_reply(call, str_or(nb_text_str(&source), ng_str_of("")));
    }
    nb_text_done(&source);
    return rc;
}

static int read_notebook(struct ng_call *call, struct ng_str path, struct ng_str space,
                         struct ng_file *ret)
{
    const struct ng_host *host = call->host;
    int rc = host->file_stat(call, path, ret);
    if (rc == NG_OK && (ret->type != NG_FILE_REGULAR || !str_equal(ret->space, space))) {
        return fail_no_cell(call);
    }
    return rc == NG_OK ? host->file_read(call, path, CELLS_FILE_MAX, ret) : rc;
}

int cells_resource_read(void *self, struct ng_call *call, struct ng_str space, struct ng_str id,
                        uint64_t revision)
{
    struct cells *cells = self;
    struct ng_file file = {.size = sizeof(file)};
    struct nb_error error;
    struct nb nb;
    const char *mark = id.len > 0 ? memrchr(id.data, CELLS_ID_MARK, id.len) : NULL;
    if (revision > 0) {
        return ng_fail(call, NG_EINVAL,
                       "Cells have no numbered revisions; leave ?revision out.");
    }
    if (mark == NULL) {
        return fail_no_cell(call);
    }
    struct ng_str path = str_make(id.data, (size_t)(mark - id.data));
    struct ng_str handle = str_make(mark + 1, id.len - path.len - 1);
    int rc = read_notebook(call, path, space, &file);
    if (rc != NG_OK) {
        return rc;
    }
    if (nb_cache_index(cells->indexes, file.data, file.revision, &nb, &error) != NB_FINE) {
        return error.fault == NB_NO_MEMORY ? cells_no_memory(call) : fail_no_cell(call);
    }
    size_t index = cells_find(&nb, handle);
    rc =
        index == SIZE_MAX ? fail_no_cell(call) : call->host->revision_text(call, file.revision);
    if (rc == NG_OK) {
        rc = reply_source(call, &nb, index);
    }
    nb_done(&nb);
    return rc;
}

/* ---- searching ---- */

struct cell_hits {
    struct ng_call *call;
    struct ng_find *find;
    struct find_words words;
    const struct find_file *file;
    const struct nb *nb;
};

static int cell_hit(struct cell_hits *hits, size_t index, const struct find_place *place)
{
    const struct find_file *file = hits->file;
    char handle[CELLS_HANDLE_MAX];
    cells_handle(hits->nb, index, handle);
    struct ng_str id = hits->call->host->format(hits->call, "%.*s%c%s", (int)file->path.len,
                                                file->path.data, CELLS_ID_MARK, handle);
    if (id.data == NULL) {
        return cells_no_memory(hits->call);
    }
    const struct ng_hit hit = {
        .size = sizeof(hit),
        .id = id,
        .title = file->name,
        .excerpt = place->excerpt,
        .updated_ms = file->modified_ms,
        .line = place->line,
    };
    hits->find->total++;
    return hits->find->hit(hits->find->user, &hit) == 0 ? NG_OK : FIND_FILES_END;
}

static int cell_match(struct cell_hits *hits, size_t index)
{
    struct nb_text source = {0};
    struct find_place place = {.line = 0};
    bool found = false;
    (void)nb_decode_lines(&source, hits->nb->bytes, hits->nb->cells[index].source);
    struct ng_str text = str_or(nb_text_str(&source), ng_str_of(""));
    int rc = cells_check_memory(hits->call, !source.failed);
    if (rc == NG_OK && find_words_all(&hits->words, text, &found, &place) == NG_EINTERNAL) {
        rc = cells_no_memory(hits->call);
    }
    if (rc == NG_OK && found) {
        rc = cell_hit(hits, index, &place);
    }
    nb_text_done(&source);
    return rc;
}

/* A file that is no notebook has no cells. */
static int cell_file(void *user, const struct find_file *file)
{
    struct cell_hits *hits = user;
    struct nb_error error;
    struct nb nb;
    enum nb_fault fault = nb_index(file->text, &nb, &error);
    if (fault != NB_FINE) {
        return fault == NB_NO_MEMORY ? cells_no_memory(hits->call) : NG_OK;
    }
    int rc = NG_OK;
    hits->file = file;
    hits->nb = &nb;
    for (size_t i = 0; i < nb.cell_count && rc == NG_OK; i++) {
        rc = cell_match(hits, i);
    }
    nb_done(&nb);
    return rc;
}

int cells_resource_find(void *self, struct ng_call *call, struct ng_str space,
                        struct ng_find *find)
{
    static const struct find_files_wanted wanted = {.ending = CELLS_ENDING};
    struct cell_hits hits = {.call = call, .find = find};
    (void)self;
    int rc = find_words_open(&hits.words, find->text);
    if (rc == NG_EINTERNAL) {
        rc = cells_no_memory(call);
    } else {
        rc = hits.words.count > 0 ? find_files(call, space, find, &wanted, cell_file, &hits)
                                  : NG_OK;
    }
    find_words_done(&hits.words);
    return rc;
}
