/* SPDX-License-Identifier: MIT */
/* notebook_file.c - the notebook of a call, and the handles of its cells. */
#include "cells.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Another program may be writing: read a truncated file again. */
#define READS_MAX 5
/* Cells with the same id that an error lists. */
#define DUPLICATES_LISTED 10
#define READ_AGAIN_NS (NG_FILE_PAUSE_MS * 1000000L)

int cells_no_memory(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "out of memory");
}

int cells_check_memory(struct ng_call *call, bool good)
{
    if (good) {
        return NG_OK;
    }
    return cells_no_memory(call);
}

#define NOTEBOOK_LINE "\nNotebook: "

size_t cells_notebook_len(struct ng_str path)
{
    return sizeof(NOTEBOOK_LINE) - 1 + path.len;
}

int cells_add_notebook(struct ng_call *call, struct ng_str path, struct nb_text *text)
{
    nb_add_word(text, NOTEBOOK_LINE);
    nb_add_str(text, path);
    return call->host->reply_meta(call, CELLS_META_NOTEBOOK, path);
}

int cells_reply(struct ng_call *call, struct ng_str path, struct nb_text *text)
{
    int rc = path.data == NULL ? NG_OK : cells_add_notebook(call, path, text);
    if (rc == NG_OK) {
        rc = cells_check_memory(call, !text->failed);
    }
    if (rc == NG_OK) {
        rc = ng_reply(call, nb_text_str(text));
    }
    nb_text_done(text);
    return rc;
}

int cells_replyf(struct ng_call *call, struct ng_str path, const char *format, ...)
{
    struct nb_text text = {0};
    va_list args;
    va_start(args, format);
    nb_vaddf(&text, format, args);
    va_end(args);
    return cells_reply(call, path, &text);
}

int cells_absolute(struct ng_call *call, const char *name, struct ng_str *ret)
{
    const struct ng_str *roots = NULL;
    struct ng_str path = ng_arg_text(call, name);
    if (path.len > 0 && path.data[0] == '/') {
        *ret = path;
        return NG_OK;
    }
    if (path.len == 0) {
        return ng_fail(call, NG_EINVAL, "`%s` is empty; give the path of an .ipynb file", name);
    }
    if (memchr(path.data, '\0', path.len) != NULL) { /* the formatted path would end there */
        return ng_fail(call, NG_EINVAL,
                       "`%s` holds a NUL character; give the path of an .ipynb file", name);
    }
    if (call->host->file_roots(call, &roots) == 0) {
        return ng_fail(call, NG_EOUTSIDE, "No root is open to this caller.");
    }
    *ret = call->host->format(call, "%.*s/%.*s", (int)roots[0].len, roots[0].data,
                              (int)path.len, path.data);
    return cells_check_memory(call, ret->data != NULL);
}

int cells_path(struct cells *self, struct ng_call *call, enum cells_use use,
               struct ng_str *ret_path)
{
    if (ng_has_arg(call, "notebook")) {
        return cells_absolute(call, "notebook", ret_path);
    }
    return cells_use_active(self, call, use, ret_path);
}

static int fail_folder(struct ng_call *call, struct ng_str path)
{
    return ng_fail(call, NG_EFAILED, "%.*s is a folder, not a notebook: name an .ipynb file",
                   (int)path.len, path.data);
}

int cells_fail_folder(struct ng_call *call, struct ng_str path, int rc)
{
    struct ng_file file = {.size = sizeof(file)};
    bool folder = rc == NG_EFAILED && call->host->file_stat(call, path, &file) == NG_OK &&
                  file.type == NG_FILE_DIRECTORY;
    if (!folder) {
        return rc;
    }
    return fail_folder(call, path);
}

static int fail_malformed(struct ng_call *call, const struct ng_file *file,
                          const struct nb_error *error)
{
    if (error->fault == NB_NO_MEMORY) {
        return cells_no_memory(call);
    }
    int rc = ng_fail(call, CELLS_EMALFORMED, "The notebook %.*s cannot be used: %s",
                     (int)file->path.len, file->path.data, error->text);
    call->host->hint(call, "The file was not changed. Repair it in Jupyter or an editor, or "
                           "restore an earlier version of it.");
    return rc;
}

/* Truncation inside a character gives invalid UTF-8. */
static bool looks_half_written(enum nb_fault fault)
{
    return fault == NB_NOT_JSON || fault == NB_EMPTY || fault == NB_NOT_UTF8;
}

bool cells_should_reread(enum nb_fault fault, unsigned *reads)
{
    return looks_half_written(fault) && ++*reads < READS_MAX;
}

int cells_index(struct cells *self, struct ng_call *call, const struct ng_file *file,
                unsigned *reads, struct nb *ret)
{
    struct nb_error error;
    if (file->type == NG_FILE_DIRECTORY) {
        return fail_folder(call, file->path);
    }
    if (file->type != NG_FILE_REGULAR) {
        return ng_fail(call, NG_ENOTFOUND, "There is no notebook %.*s", (int)file->path.len,
                       file->path.data);
    }
    enum nb_fault fault =
        nb_cache_index(self->indexes, file->data, file->revision, ret, &error);
    if (fault == NB_FINE) {
        return NG_OK;
    }
    if (cells_should_reread(fault, reads)) {
        return NG_EWOULDBLOCK;
    }
    return fail_malformed(call, file, &error);
}

int cells_open(struct cells *self, struct ng_call *call, enum cells_use use,
               struct notebook_file *ret)
{
    struct nb_error error = {.fault = NB_FINE};
    memset(ret, 0, sizeof(*ret));
    unsigned reads = 0;
    int rc = cells_path(self, call, use, &ret->path);
    if (rc != NG_OK) {
        return rc;
    }
    for (;;) {
        ret->file.size = sizeof(ret->file);
        rc = call->host->file_read(call, ret->path, CELLS_FILE_MAX, &ret->file);
        if (rc != NG_OK) {
            return cells_fail_folder(call, ret->path, rc);
        }
        enum nb_fault fault =
            nb_cache_index(self->indexes, ret->file.data, ret->file.revision, &ret->nb, &error);
        if (fault == NB_FINE) {
            return NG_OK;
        }
        if (!cells_should_reread(fault, &reads)) {
            return fail_malformed(call, &ret->file, &error);
        }
        const struct timespec again = {0, READ_AGAIN_NS};
        (void)nanosleep(&again, NULL);
    }
}

void cells_close(struct notebook_file *notebook)
{
    nb_done(&notebook->nb);
}

/* The id of a cell, a plain string, without its quotes. */
static struct ng_str bare_id(const struct nb *nb, const struct nb_cell *cell)
{
    return str_make(nb->bytes.data + cell->id.at + 1, cell->id.len - 2);
}

void cells_handle(const struct nb *nb, size_t index, char handle[CELLS_HANDLE_MAX])
{
    const struct nb_cell *cell = &nb->cells[index];
    if (cell->id_unique) {
        (void)snprintf(handle, CELLS_HANDLE_MAX, "%.*s", (int)cell->id.len - 2,
                       nb->bytes.data + cell->id.at + 1);
    } else {
        (void)snprintf(handle, CELLS_HANDLE_MAX, "index:%zu", index);
    }
}

/* The position that the digits name. */
static size_t position(const struct nb *nb, struct ng_str digits)
{
    const struct nb_span whole = {0, digits.len};
    int64_t index = 0;
    if (nb_integer(digits, whole, &index) && (uint64_t)index < nb->cell_count) {
        return (size_t)index;
    }
    return SIZE_MAX;
}

size_t cells_find(const struct nb *nb, struct ng_str handle)
{
    static const char prefix[] = "index:";
    size_t skip = sizeof(prefix) - 1;
    if (handle.len > skip && memcmp(handle.data, prefix, skip) == 0) {
        return position(nb, str_make(handle.data + skip, handle.len - skip));
    }
    for (size_t i = 0; i < nb->cell_count; i++) {
        const struct nb_cell *cell = &nb->cells[i];
        if (cell->id_unique && str_equal(bare_id(nb, cell), handle)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static bool has_id(const struct nb *nb, size_t index, struct ng_str name)
{
    const struct nb_cell *cell = &nb->cells[index];
    return cell->id_duplicate && str_equal(bare_id(nb, cell), name);
}

static bool is_duplicate(const struct nb *nb, struct ng_str name)
{
    for (size_t i = 0; i < nb->cell_count; i++) {
        if (has_id(nb, i, name)) {
            return true;
        }
    }
    return false;
}

size_t cells_find_named(const struct nb *nb, struct ng_str name)
{
    size_t index = cells_find(nb, name);
    return index != SIZE_MAX || is_duplicate(nb, name) ? index : position(nb, name);
}

/* Appends "index:1, index:4" for the cells with this id; returns their number. */
static size_t add_duplicates(struct nb_text *out, const struct nb *nb, struct ng_str name)
{
    size_t count = 0;
    for (size_t i = 0; i < nb->cell_count; i++) {
        if (has_id(nb, i, name) && ++count <= DUPLICATES_LISTED) {
            char handle[CELLS_HANDLE_MAX];
            cells_handle(nb, i, handle);
            nb_add_if(out, count > 1, ", ");
            nb_add_word(out, handle);
        }
    }
    nb_add_if(out, count > DUPLICATES_LISTED, ", ...");
    return count;
}

/* Fails the call if several cells have this id. */
static bool fail_duplicate(struct ng_call *call, const struct nb *nb, struct ng_str name)
{
    struct nb_text list = {0};
    size_t count = add_duplicates(&list, nb, name);
    if (count > 0) {
        struct ng_str handles = nb_text_str(&list);
        (void)ng_fail(call, NG_ECONFLICT, "%zu cells have the id %.*s", count, (int)name.len,
                      name.data);
        call->host->hint(call, "Name the cell by its index: %.*s", (int)handles.len,
                         handles.data);
    }
    nb_text_done(&list);
    return count > 0;
}

/* The messages of the tools that this plugin reimplements. */
static const char *unknown_words(struct ng_str tool)
{
    static const char *const words[][2] = {
        {"runNotebookCells", "No cells found with IDs: "},
        {"getNotebookCells", "No cells found with the specified IDs: "},
        {"updateNotebookCell", "Failed to update cell: Cell not found: "},
        {"getCellOutputs", "Failed to get outputs: Cell not found: "},
    };
    for (size_t i = 0; i < NG_COUNT(words); i++) {
        if (str_is(tool, words[i][0])) {
            return words[i][1];
        }
    }
    return "Cell not found: ";
}

int cells_fail_unknown(struct ng_call *call, const struct nb *nb, struct ng_str names)
{
    if (fail_duplicate(call, nb, names)) {
        return NG_ECONFLICT;
    }
    int rc = ng_fail(call, CELLS_ENOCELL, "%s%.*s", unknown_words(call->tool), (int)names.len,
                     names.data);
    call->host->hint(
        call,
        "getNotebookCells lists the ids of its %zu cells; index:N names the position "
        "of any cell, from 0",
        nb->cell_count);
    return rc;
}

/* Unknown ids that are named, and bytes of each. */
#define UNKNOWN_SHOWN 10
#define UNKNOWN_BYTES ((size_t)NB_ID_MAX)

/* Ids that no cell, or several cells have. */
struct unknown_names {
    struct nb_text text;              /* "a, b": unknown ids, and how many more */
    size_t count;                     /* their number: an empty id has no length */
    const struct ng_value *duplicate; /* the first id of several cells */
};

static int fail_names(struct ng_call *call, const struct nb *nb,
                      const struct unknown_names *unknown)
{
    if (unknown->count > 0) {
        return cells_fail_unknown(call, nb, nb_text_str(&unknown->text));
    }
    if (unknown->duplicate != NULL) {
        return cells_fail_unknown(call, nb, call->host->json_text(unknown->duplicate));
    }
    return NG_OK;
}

static void add_unknown_names(struct ng_call *call, const struct nb *nb,
                              const struct unknown_names *unknown, struct nb_text *ret)
{
    if (unknown->count > 0) {
        nb_add_word(ret, unknown_words(call->tool));
        nb_add_str(ret, nb_text_str(&unknown->text));
    }
    if (unknown->duplicate != NULL) {
        struct ng_str name = call->host->json_text(unknown->duplicate);
        nb_add_if(ret, ret->len > 0, "\n");
        nb_add_word(ret, "Several cells have the id ");
        nb_add_str(ret, name);
        nb_add_word(ret, ", name the cell by its index: ");
        (void)add_duplicates(ret, nb, name);
    }
}

int cells_chosen(struct ng_call *call, const struct nb *nb, size_t **ret, size_t *ret_count,
                 struct nb_text *ret_missing)
{
    const struct ng_host *host = call->host;
    const struct ng_value *ids = ng_arg(call, "cellIds");
    size_t count = host->json_count(ids);
    size_t *chosen = ng_alloc(call, (count + 1) * sizeof(*chosen));
    struct unknown_names unknown = {.count = 0};
    size_t kept = 0;
    if (count > CELLS_CHOSEN_MAX) {
        return ng_fail(call, NG_EINVAL, "`cellIds` has %zu ids; at most %d at once", count,
                       CELLS_CHOSEN_MAX);
    }
    if (chosen == NULL) {
        return cells_no_memory(call);
    }
    const struct ng_value *id = host->json_first(ids);
    for (; id != NULL; id = host->json_next(id)) {
        struct ng_str handle = host->json_text(id);
        size_t index = cells_find_named(nb, handle);
        if (index != SIZE_MAX) {
            chosen[kept++] = index;
        } else if (is_duplicate(nb, handle)) {
            if (unknown.duplicate == NULL) {
                unknown.duplicate = id;
            }
        } else if (unknown.count++ < UNKNOWN_SHOWN) {
            nb_add_if(&unknown.text, unknown.count > 1, ", ");
            nb_add_str(&unknown.text, utf8_cut(handle, UNKNOWN_BYTES));
        }
    }
    if (unknown.count > UNKNOWN_SHOWN) {
        nb_addf(&unknown.text, " and %zu more", unknown.count - UNKNOWN_SHOWN);
    }
    int rc = NG_OK;
    if (ret_missing != NULL && kept > 0) {
        add_unknown_names(call, nb, &unknown, ret_missing);
    } else {
        rc = fail_names(call, nb, &unknown);
    }
    if (unknown.text.failed) {
        rc = cells_no_memory(call);
    }
    nb_text_done(&unknown.text);
    *ret = chosen;
    *ret_count = kept;
    return rc;
}

bool cells_names_all(struct ng_call *call, const struct nb *nb)
{
    const struct ng_value *ids = ng_arg(call, "cellIds");
    struct ng_str all = ng_str_of("all");
    return call->host->json_count(ids) == 1 &&
           str_equal(call->host->json_text(call->host->json_first(ids)), all) &&
           cells_find(nb, all) == SIZE_MAX && !is_duplicate(nb, all);
}

int cells_chosen_or_all(struct ng_call *call, const struct nb *nb, size_t **ret,
                        size_t *ret_count, struct nb_text *ret_missing)
{
    if (!cells_names_all(call, nb)) {
        return cells_chosen(call, nb, ret, ret_count, ret_missing);
    }
    *ret = ng_alloc(call, (nb->cell_count + 1) * sizeof(**ret));
    if (*ret == NULL) {
        return cells_no_memory(call);
    }
    for (size_t i = 0; i < nb->cell_count; i++) {
        (*ret)[i] = i;
    }
    *ret_count = nb->cell_count;
    return NG_OK;
}
