/* SPDX-License-Identifier: MIT */
/* files_root.c - opens one root from its configured text, and reopens it after its folder was
 * replaced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/files/run_as.h"
#include "core/base/files/trust.h"
#include "core/base/str.h"
#include "files_state.h"

#define FILES_SPACE_DEFAULT "shared"
#define FILES_USER_MAX 64

void files_close_fd(int *fd)
{
    int error = errno;
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
    errno = error;
}

void files_root_done(struct file_root *root)
{
    files_close_fd(&root->fd);
    free(root->path);
    free(root->real);
    free(root->space);
}

void files_split_root(struct ng_str text, struct ng_str *ret_space, struct ng_str *ret_path)
{
    *ret_space = ng_str_of(FILES_SPACE_DEFAULT);
    *ret_path = text;
    for (size_t i = 0; i + 1 < text.len && text.data[i] != '/'; i++) {
        struct ng_str space = {text.data, i};
        if (text.data[i] == ':' && text.data[i + 1] == '/' && call_name_valid(space)) {
            *ret_space = space;
            *ret_path = str_make(text.data + i + 1, text.len - i - 1);
            break;
        }
    }
    while (ret_path->len > 1 && ret_path->data[ret_path->len - 1] == '/') {
        ret_path->len--;
    }
}

/* Often a folder in a home, which is closed to the gateway's user. */
static int fail_closed_root(struct call *call, const char *path)
{
    char user[FILES_USER_MAX];
    char command[FILES_USER_MAX + sizeof("install -d -o  /srv/notegate")];
    struct buf remedy;
    trust_user_name(geteuid(), user, sizeof(user));
    (void)snprintf(command, sizeof(command), "install -d -o %s /srv/notegate",
                   user + (user[0] == '#'));
    buf_init(&remedy, 2 * sizeof(command));
    (void)run_as_add(&remedy, 0, command);
    int rc = call_fail(
        call, NG_EFORBIDDEN,
        "The root %s cannot be opened: user %s, as which the gateway runs, may not enter it "
        "or a folder above it. Make a folder for it, such as %s, and name that, or start the "
        "gateway as another user.",
        path, user, buf_cstr(&remedy));
    buf_done(&remedy);
    return rc;
}

static int files_open_folder(struct call *call, struct file_root *root)
{
    const char *doing = root->owner != NULL ? "open the folder" : "open the root";
    root->real = realpath(root->path, NULL);
    if (root->real != NULL) {
        root->fd = open(root->real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    if (root->fd < 0 || !files_identify(root->fd, "", &root->identity)) {
        int error = errno;
        if (root->owner == NULL && error == ENOENT) {
            return call_fail(call, NG_ENOTFOUND,
                             "The root %s is not there: make the folder, or name another.",
                             root->path);
        }
        int rc = files_fail_os(call, error, doing, ng_str_of(root->path));
        if (root->owner == NULL && error == EACCES) {
            rc = fail_closed_root(call, root->path);
        }
        return error == ENOENT || error == ENOTDIR ? NG_ENOTFOUND : rc;
    }
    return NG_OK;
}

int files_open_root(struct call *call, const struct file_holes *holes, struct ng_str text,
                    const struct plugin *owner, struct file_root *root)
{
    struct ng_str space;
    struct ng_str path;
    files_split_root(text, &space, &path);
    if (path.len == 0 || path.len >= FILES_PATH_MAX || memchr(path.data, '\0', path.len)) {
        return call_fail(call, NG_EINVAL,
                         "The root \"%.*s\" is not a usable path: give the path of a folder, "
                         "as PATH or SPACE:/PATH.",
                         (int)text.len, text.data);
    }
    root->fd = -1;
    root->owner = owner;
    root->space = str_dup(space);
    root->path = str_dup(path);
    if (root->space == NULL || root->path == NULL) {
        return call_no_memory(call);
    }
    int rc = files_open_folder(call, root);
    return rc != NG_OK ? rc : files_check_root(call, holes, root);
}

int files_absolute_root(struct call *call, struct file_root *root)
{
    if (root->path[0] == '/') {
        return NG_OK;
    }
    char *path = str_dup(ng_str_of(root->real));
    if (path == NULL) {
        return call_no_memory(call);
    }
    free(root->path);
    root->path = path;
    return NG_OK;
}

int files_try_root(struct call *call, struct ng_str text, const struct files_own *own)
{
    struct file_root root = {.fd = -1};
    struct file_holes *holes = NULL;
    int rc = files_holes_new(call, own, &holes);
    if (rc == NG_OK) {
        rc = files_open_root(call, holes, text, NULL, &root);
    }
    files_root_done(&root);
    files_holes_unref(holes);
    return rc;
}

/* ---- reopening */

static bool files_leads_to(const char *path, const struct file_root *root)
{
    struct stat st;
    return stat(path, &st) == 0 && files_same(files_identity(&st), root->identity);
}

bool files_root_is_current(const struct file_root *root)
{
    return files_leads_to(root->real, root) &&
           (strcmp(root->path, root->real) == 0 || files_leads_to(root->path, root));
}

static int files_keep_root(struct call *call, const struct file_root *old,
                           struct file_root *root)
{
    *root = *old;
    root->path = str_dup(ng_str_of(old->path));
    root->real = str_dup(ng_str_of(old->real));
    root->space = str_dup(ng_str_of(old->space));
    root->fd = fcntl(old->fd, F_DUPFD_CLOEXEC, 0);
    if (root->path == NULL || root->real == NULL || root->space == NULL) {
        return call_no_memory(call);
    }
    if (root->fd < 0) {
        return files_fail_os(call, errno, "open the root", ng_str_of(old->path));
    }
    return NG_OK;
}

static int files_reopen_root(struct call *call, const struct file_holes *holes,
                             const struct file_root *old, struct file_root *root)
{
    struct ng_str text = arena_printf(&call->arena, "%s:%s", old->space, old->path);
    if (text.data == NULL) {
        return call_no_memory(call);
    }
    int rc = files_open_root(call, holes, text, old->owner, root);
    if (rc != NG_ENOTFOUND) {
        return rc;
    }
    /* Files of a root are unreachable, not deleted; a plugin handles the loss of its folder. */
    int code = NG_EUNAVAILABLE;
    const char *what = "root";
    if (old->owner != NULL) {
        code = NG_ENOTFOUND;
        what = "folder";
    }
    return call_fail(call, code,
                     "The %s %s is not there any more: it was moved, removed or unmounted. "
                     "Put it back, or configure another one; nothing was read or written.",
                     what, old->path);
}

int files_roots_reopen(struct files *files, struct call *call, struct file_roots *old,
                       const struct file_root *stale)
{
    struct file_roots *fresh = files_roots_new(call, old->count, old->holes);
    if (fresh == NULL) {
        return NG_EINTERNAL;
    }
    int rc = NG_OK;
    for (size_t i = 0; i < old->count && rc == NG_OK; i++) {
        struct file_root *root = &fresh->items[i];
        root->fd = -1;
        fresh->count = i + 1;
        rc = &old->items[i] == stale ? files_reopen_root(call, old->holes, stale, root)
                                     : files_keep_root(call, &old->items[i], root);
    }
    if (rc == NG_OK) {
        files_roots_publish(files, old, fresh);
    } else {
        files_roots_unref(fresh);
    }
    return rc;
}
