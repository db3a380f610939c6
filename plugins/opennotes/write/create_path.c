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

int notes_write_path(struct ng_call *call, struct ng_str given, struct ng_str *ret_path)
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
    if (!str_ends(path, ".md")) {
        return fail_path(call, path, "notes end in '.md'.");
    }
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

/* Is `real` below the folder? */
static bool is_below(struct ng_str folder, struct ng_str real)
{
    bool root = str_is(folder, "/");
    return real.len > folder.len && memcmp(real.data, folder.data, folder.len) == 0 &&
           (root || real.data[folder.len] == '/');
}

int notes_write_inside(const struct notes_notebook *notebook, struct ng_call *call,
                       const struct ng_file *present, struct ng_str path)
{
    if (!is_below(notebook->path, present->real)) {
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
    size_t size = notebook->path.len + file.len + 2;
    char *absolute = ng_alloc(call, size);
    if (absolute == NULL) {
        return notes_fail_memory(call);
    }
    size_t len = notebook->path.len;
    memcpy(absolute, notebook->path.data, len);
    if (len > 1) {
        absolute[len++] = '/';
    }
    memcpy(absolute + len, file.data, file.len);
    len += file.len;
    absolute[len] = '\0';
    *ret_absolute = str_make(absolute, len);
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
