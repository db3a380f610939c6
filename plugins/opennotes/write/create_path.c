/* SPDX-License-Identifier: MIT */
/* create_path.c - checks that a note is written below the notebook's folder, for any path and
 * any links on its way. */
#include <string.h>

#include "create.h"
#include "index/index.h"
#include "notebook/notebook.h"
#include "text/codes.h"

#define NAME_BYTES_MAX 255 /* bytes of one name, as file systems limit it */
#define PATH_BYTES_MAX 4000
#define SHOWN_BYTES 200

static int fail_path(struct ng_call *call, struct ng_str path, const char *why)
{
    struct ng_str shown = utf8_cut(path, SHOWN_BYTES);
    return ng_fail(call, NOTES_EPATH, "Invalid note path '%.*s': %s", (int)shown.len,
                   shown.data, why);
}

/* The fault of a folder or file name; NULL: it is valid. */
static const char *name_fault(struct ng_str name)
{
    if (name.len == 0) {
        return NULL;
    }
    if (name.data[0] == '.') {
        return "names that begin with a dot are hidden and cannot be notes.";
    }
    if (name.len > NAME_BYTES_MAX) {
        return "a name in it is longer than 255 bytes.";
    }
    char last = name.data[name.len - 1];
    if (last == '.' || last == ' ' || name.data[0] == ' ') {
        return "a name in it begins or ends in a blank, or ends in a dot.";
    }
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (c < 0x20 || c == 0x7f || c == '\\') {
            return "a name in it holds a control character or a backslash.";
        }
    }
    return NULL;
}

int notes_write_folder(struct ng_call *call, struct ng_str given, struct ng_str *ret_path)
{
    int rc = notes_index_path(call, given, ret_path);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str path = *ret_path;
    if (path.len > PATH_BYTES_MAX) {
        return fail_path(call, path, "it is longer than 4000 bytes.");
    }
    for (size_t at = 0; at < path.len;) {
        size_t end = notes_find_char(path, at, '/');
        const char *fault = name_fault(str_make(path.data + at, end - at));
        if (fault != NULL) {
            return fail_path(call, path, fault);
        }
        at = end + 1;
    }
    return path.len > 0 ? NG_OK : fail_path(call, path, "it is empty.");
}

int notes_write_path(struct ng_call *call, struct ng_str given, struct ng_str *ret_path)
{
    int rc = notes_write_folder(call, given, ret_path);
    if (rc == NG_OK && !str_ends(*ret_path, ".md")) {
        rc = fail_path(call, *ret_path, "notes end in '.md'.");
    }
    return rc;
}

/* The first `len` bytes of the path are a folder with its slash: finds its bytes on disk, if
 * they differ. false: no note in it shows them. */
static bool folder_on_disk(struct ng_call *call, sqlite3_stmt *statement, struct ng_str path,
                           size_t len, struct ng_str *ret_file)
{
    size_t slashes = 0;
    size_t end = 0;
    for (size_t i = 0; i < len; i++) {
        slashes += path.data[i] == '/';
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_bind_text(statement, 1, path.data, (int)len, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_ROW) {
        return false;
    }
    struct ng_str file = notes_column_text(statement, 0);
    while (end < file.len && slashes > 0) {
        slashes -= file.data[end++] == '/';
    }
    *ret_file = call->host->format(call, "%.*s%.*s", (int)end, file.data, (int)(path.len - len),
                                   path.data + len);
    return slashes == 0 && ret_file->data != NULL;
}

/* A folder of the path may exist in another Unicode form: it is the same folder. */
static int find_folder(const struct notes_notebook *notebook, struct ng_call *call,
                       struct ng_str path, struct ng_str *ret_file)
{
    *ret_file = path;
    sqlite3_stmt *statement =
        notes_notebook_prepare(notebook, call,
                               "SELECT file FROM notes WHERE file IS NOT NULL"
                               " AND substr(path, 1, length(?1)) = ?1 LIMIT 1");
    if (statement == NULL) {
        return NG_EINTERNAL;
    }
    bool found = false;
    for (size_t len = path.len; len > 0 && !found; len--) {
        found =
            path.data[len - 1] == '/' && folder_on_disk(call, statement, path, len, ret_file);
    }
    (void)sqlite3_finalize(statement);
    if (!found) {
        *ret_file = path;
    }
    return NG_OK;
}

int notes_write_file(struct notes_notebook *notebook, struct ng_call *call, struct ng_str path,
                     struct ng_str *ret_file, bool *ret_exists)
{
    struct ng_str file = {NULL, 0};
    *ret_file = path;
    *ret_exists = false;
    if (notes_is_ascii(path)) {
        return NG_OK;
    }
    int rc = notes_notebook_begin(notebook, call);
    if (rc == NG_OK) {
        rc = notes_index_file(notebook->index, call, notebook->db, path, &file);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (file.data == NULL) {
        return find_folder(notebook, call, path, ret_file);
    }
    *ret_file = file;
    *ret_exists = true;
    return NG_OK;
}

static int fail_outside(struct ng_call *call, struct ng_str path)
{
    struct ng_str shown = utf8_cut(path, SHOWN_BYTES);
    (void)ng_fail(call, NG_ETRAVERSAL, "Path traversal blocked: %.*s", (int)shown.len,
                  shown.data);
    call->host->hint(call, "A link on this path leaves the notebook. Use paths relative to "
                           "notebook that stay inside.");
    return NG_ETRAVERSAL;
}

int notes_write_inside(const struct notes_notebook *notebook, struct ng_call *call,
                       const struct ng_file *present, struct ng_str path)
{
    if (notes_path_below(present->real, notebook->path).data == NULL) {
        return fail_outside(call, path);
    }
    return NG_OK;
}

/* Checks that the nearest existing parent of a note is a folder. `absolute` ends with `file`.
 */
static int check_parents(struct ng_call *call, struct ng_str absolute, struct ng_str file)
{
    size_t base = absolute.len - file.len;
    for (size_t len = file.len; len > 0; len--) {
        struct ng_file found = {.size = sizeof(found)};
        if (file.data[len - 1] != '/') {
            continue;
        }
        int rc = call->host->file_stat(call, str_make(absolute.data, base + len - 1), &found);
        if (rc != NG_OK || found.type == NG_FILE_DIRECTORY) {
            return rc;
        }
        if (found.type != NG_FILE_NONE) {
            return fail_path(call, file, "a part of it is a file, not a folder.");
        }
    }
    return NG_OK;
}

int notes_write_place(const struct notes_notebook *notebook, struct ng_call *call,
                      struct ng_str file, struct ng_str *ret_absolute)
{
    struct ng_file found = {.size = sizeof(found)};
    struct ng_str folder = notebook->path;
    folder.len -= str_is(folder, "/");
    *ret_absolute = call->host->format(call, "%.*s/%.*s", (int)folder.len, folder.data,
                                       (int)file.len, file.data);
    if (ret_absolute->data == NULL) {
        return notes_fail_memory(call);
    }
    int rc = call->host->file_stat(call, *ret_absolute, &found);
    if (rc == NG_EOUTSIDE) {
        return fail_outside(call, file);
    }
    if (rc == NG_OK) {
        rc = notes_write_inside(notebook, call, &found, file);
    }
    if (rc == NG_OK && found.type == NG_FILE_NONE) {
        rc = check_parents(call, *ret_absolute, file);
    }
    return rc;
}

int notes_write_at(struct notes_notebook *notebook, struct ng_call *call, struct ng_str path,
                   struct ng_str *ret_absolute, enum ng_file_type *ret_type)
{
    struct ng_file found = {.size = sizeof(found)};
    struct ng_str file = path;
    bool exists = false;
    struct ng_str folder = call->host->format(call, "%.*s/", (int)path.len, path.data);
    if (folder.data == NULL) {
        return notes_fail_memory(call);
    }
    int rc = notes_write_file(notebook, call, folder, &file, &exists);
    if (rc == NG_OK) {
        file.len -= str_ends(file, "/");
        rc = notes_write_place(notebook, call, file, ret_absolute);
    }
    if (rc == NG_OK) {
        rc = call->host->file_stat(call, *ret_absolute, &found);
    }
    *ret_type = found.type;
    return rc;
}
