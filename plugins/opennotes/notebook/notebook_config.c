/* SPDX-License-Identifier: MIT */
/* notebook_config.c - reads .opennotes.json, and checks the members that every tool needs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/text_choice.h"
#include "notebook_state.h"
#include "text/codes.h"

#define NAME_BYTES_MAX 1000

static int fail_config(struct notes_notebook *notebook, struct ng_call *call, const char *what)
{
    struct ng_str folder = notebook->folder;
    notebook->fault = ng_str_of(what);
    (void)ng_fail(call, NOTES_ECONFIG, "%.*s/%s cannot be used: %s.", (int)folder.len,
                  folder.data, NOTES_CONFIG_NAME, what);
    call->host->hint(call,
                     "It is a JSON object; `name` and `root` (a folder below it) are texts.");
    return NOTES_ECONFIG;
}

/* Git keeps no empty folders: a fresh clone may have no folder of notes. */
static int fail_root(struct notes_notebook *notebook, struct ng_call *call, struct ng_str root)
{
    struct ng_str folder = notebook->folder;
    notebook->fault = ng_str_of("its `root` is not there");
    (void)ng_fail(call, NOTES_ECONFIG,
                  "%.*s/%s cannot be used: its `root`, the folder %.*s/%.*s, "
                  "is not there.",
                  (int)folder.len, folder.data, NOTES_CONFIG_NAME, (int)folder.len, folder.data,
                  (int)root.len, root.data);
    call->host->hint(call, "Make the folder (git keeps no empty ones: put a note into it), or "
                           "set `root` to one that is there.");
    return NOTES_ECONFIG;
}

static struct ng_str name_of(struct ng_str path)
{
    return str_or(notes_file_name(path), path);
}

/* The file's text into call memory; {NULL, 0}: there is none. */
static int read_text(struct notes_notebook *notebook, struct ng_call *call, int fd,
                     struct ng_str *ret)
{
    struct ng_str folder = notebook->folder;
    struct notes_stat stat;
    bool loose = false;
    struct ng_str bytes = {NULL, 0};
    int file = notes_tree_open(fd, NOTES_CONFIG_NAME, O_RDONLY);
    *ret = bytes;
    if (file == -ENOENT) {
        return NG_OK;
    }
    if (file < 0 && notes_tree_is_busy(-file)) {
        return ng_fail(call, NG_EBUSY, "%.*s/%s cannot be read just now: %s. Try again.",
                       (int)folder.len, folder.data, NOTES_CONFIG_NAME, text_errno(-file));
    }
    if (file < 0) {
        return fail_config(notebook, call, text_errno(-file));
    }
    int rc = notes_tree_stat_of(file, &stat, &loose);
    if (rc == NG_OK) {
        rc = notes_tree_read_fd(file, NOTES_CONFIG_MAX + 1, &bytes);
    }
    (void)close(file);
    if (rc != NG_OK) {
        return fail_config(notebook, call, "it is not a regular file, or cannot be read");
    }
    if (bytes.len > NOTES_CONFIG_MAX) {
        free((void *)(uintptr_t)bytes.data);
        return fail_config(notebook, call, "it is larger than 1 MiB");
    }
    *ret = notes_call_copy(call, bytes);
    free((void *)(uintptr_t)bytes.data);
    return notes_memory(call, ret->data != NULL);
}

static int parse(struct notes_notebook *notebook, struct ng_call *call)
{
    const struct ng_host *host = call->host;
    struct ng_str text = notebook->config_text;
    if (str_begins(text, "\xEF\xBB\xBF")) {
        text = str_make(text.data + 3, text.len - 3);
    }
    if (host->json_parse(call, text, &notebook->config) != NG_OK) {
        return fail_config(notebook, call, "it is not JSON");
    }
    if (host->json_type(notebook->config) != NG_TYPE_OBJECT) {
        return fail_config(notebook, call, "it is JSON, but not an object");
    }
    const struct ng_value *name = host->json_get(notebook->config, "name");
    const struct ng_value *root = host->json_get(notebook->config, "root");
    if (name != NULL && host->json_type(name) != NG_TYPE_STRING) {
        return fail_config(notebook, call, "`name` is not text");
    }
    if (root != NULL && host->json_type(root) != NG_TYPE_STRING) {
        return fail_config(notebook, call, "`root` is not text");
    }
    return NG_OK;
}

/* `root`: below the folder, also if links are on the way. */
static int find_root(struct notes_notebook *notebook, struct ng_call *call, int fd,
                     struct ng_str root)
{
    if (root.len == 0 || str_is(root, ".") || str_is(root, "./")) {
        notebook->path = notebook->folder;
        return NG_OK;
    }
    if (notes_glob_leaves(root) || memchr(root.data, '\0', root.len) != NULL) {
        return fail_config(notebook, call, "`root` leaves its folder");
    }
    int notes = notes_tree_open(fd, root.data, O_PATH | O_DIRECTORY);
    if (notes == -EXDEV || notes == -ELOOP) {
        return fail_config(notebook, call, "`root` leaves its folder");
    }
    char *path = NULL;
    if (notes >= 0) {
        path = notes_tree_path_of(notes);
    }
    if (notes >= 0) {
        (void)close(notes);
    }
    if (path == NULL) {
        return fail_root(notebook, call, root);
    }
    notebook->path = notes_call_copy(call, ng_str_of(path));
    free(path);
    return notes_memory(call, notebook->path.data != NULL);
}

int notes_config_read(struct notes_notebook *notebook, struct ng_call *call, int fd,
                      struct ng_str folder)
{
    const struct ng_host *host = call->host;
    notebook->folder = folder;
    notebook->path = folder;
    notebook->name = name_of(folder);
    int rc = read_text(notebook, call, fd, &notebook->config_text);
    if (rc != NG_OK || notebook->config_text.data == NULL) {
        return rc;
    }
    rc = parse(notebook, call);
    if (rc != NG_OK) {
        notebook->config = NULL;
        return rc;
    }
    struct ng_str name = notes_trim(host->json_text(host->json_get(notebook->config, "name")));
    struct ng_str root = host->json_text(host->json_get(notebook->config, "root"));
    if (name.len > 0) {
        notebook->name = utf8_cut(name, NAME_BYTES_MAX);
    }
    if (root.len > 0) {
        root = notes_call_copy(call, root);
    }
    return find_root(notebook, call, fd, root);
}
