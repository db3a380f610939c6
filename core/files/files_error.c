/* SPDX-License-Identifier: MIT */
/* files_error.c - error messages of the file service: the file, the cause, and a way out. */
#include <errno.h>

#include "core/base/str.h"
#include "files_state.h"

struct os_text {
    int error;
    int code;
    const char *text;
};

/* The first row is the fallback. */
static const struct os_text os_texts[] = {
    {0, NG_EINTERNAL, "the system reports an error; look at the disk and try again"},
    {ENOENT, NG_ENOTFOUND, "it does not exist; please provide a valid path"},
    {EACCES, NG_EFORBIDDEN,
     "permission denied; give the gateway's user access to it, or choose another path"},
    {EPERM, NG_EFORBIDDEN,
     "the system does not permit it; give the gateway's user ownership of it, or choose "
     "another path"},
    {EBUSY, NG_EFORBIDDEN,
     "it is a mount, or in use by the system; choose another path, or unmount it first"},
    {EROFS, NG_EFORBIDDEN, "it is on a read-only file system; choose another path"},
    {ETXTBSY, NG_EFORBIDDEN, "it is a program that is running; stop it first"},
    {ENOSPC, NG_EFULL, "no room is left on its disk; free some and try again"},
    {EDQUOT, NG_EFULL, "the disk quota is used up; free some room and try again"},
    {EFBIG, NG_ETOOLARGE, "it would be larger than its file system allows"},
    {ENAMETOOLONG, NG_EINVAL, "a name in it is too long; use a shorter one"},
    {ELOOP, NG_EFAILED, "it goes through too many links; name the file itself"},
    {ENOTDIR, NG_EINVAL, "a part of the path is a file, not a folder; choose another path"},
    {EISDIR, NG_EFAILED, "it is a folder; name a file in it"},
    {EEXIST, NG_ECONFLICT, "something is already there; choose another path"},
    {EMFILE, NG_EBUSY, "too many files are open; try again in a moment"},
    {ENFILE, NG_EBUSY, "too many files are open; try again in a moment"},
    {ENOMEM, NG_EBUSY, "the system is out of memory; try again in a moment"},
    {EILSEQ, NG_EINVAL, "its file system does not take this name; use another one"},
    {EINVAL, NG_EINVAL, "its file system does not take this name; use another one"},
    {EIO, NG_EINTERNAL, "the disk reports an error; look at it before trying again"},
    {ESTALE, NG_EINTERNAL, "its file server has lost it; try again"},
};

/* `fact` goes before the cause. */
static int fail_with(struct call *call, int error, const char *what, struct ng_str path,
                     const char *fact)
{
    const struct os_text *found = &os_texts[0];
    for (size_t i = 1; i < NG_COUNT(os_texts); i++) {
        if (os_texts[i].error == error) {
            found = &os_texts[i];
            break;
        }
    }
    const char *name = strerrorname_np(error);
    if (found->error != 0 || name == NULL) {
        return call_fail(call, found->code, "Cannot %s %.*s: %s%s.", what, (int)path.len,
                         path.data, fact, found->text);
    }
    return call_fail(call, found->code, "Cannot %s %.*s: %s%s (%s).", what, (int)path.len,
                     path.data, fact, found->text, name);
}

int files_fail_os(struct call *call, int error, const char *what, struct ng_str path)
{
    return fail_with(call, error, what, path, "");
}

/* Why a folder takes no new name, or NULL. */
static const char *folder_refuses(int error)
{
    switch (error) {
    case EACCES:
        return "permission denied";
    case EPERM:
        return "the system does not permit it";
    case EROFS:
        return "read-only file system";
    default:
        return NULL;
    }
}

int files_fail_name(struct call *call, int error, const char *what,
                    const struct file_place *place, const char *fact)
{
    struct ng_str real = place->real;
    const char *why = folder_refuses(error);
    if (why == NULL) {
        return fail_with(call, error, what, place->path, fact);
    }
    while (real.len > 1 && real.data[real.len - 1] != '/') {
        real.len--;
    }
    real.len -= real.len > 1;
    return call_fail(call, NG_EFORBIDDEN,
                     "Cannot %s %.*s: %sits folder %.*s may not be written (%s). Give the "
                     "gateway's user access to the folder, or choose another path.",
                     what, (int)place->path.len, place->path.data, fact, (int)real.len,
                     real.data, why);
}

int files_fail_missing(struct call *call, struct ng_str path)
{
    return call_fail(call, NG_ENOTFOUND,
                     "The path %.*s does not exist. Please provide a valid path.",
                     (int)path.len, path.data);
}

int files_fail_exists(struct call *call, struct ng_str path, int code, const char *command)
{
    return call_fail(call, code != 0 ? code : NG_ECONFLICT,
                     "File already exists at: %.*s. Cannot overwrite files using command "
                     "`%s`.",
                     (int)path.len, path.data, command);
}

int files_fail_type(struct call *call, const struct file_place *place)
{
    struct ng_str path = place->path;
    if (!place->exists && !place->dangling) {
        return files_fail_missing(call, path);
    }
    if (place->dangling) {
        return call_fail(call, NG_EFAILED,
                         "The path %.*s is a link to a file that does not exist. Name the file "
                         "itself, or remove the link.",
                         (int)path.len, path.data);
    }
    if (S_ISDIR(place->st.st_mode)) {
        return call_fail(call, NG_EFAILED,
                         "The path %.*s is a directory and only the `view` command can be used "
                         "on directories",
                         (int)path.len, path.data);
    }
    return call_fail(call, NG_EFAILED,
                     "The path %.*s is not a regular file (a device, pipe or socket). Choose "
                     "another path.",
                     (int)path.len, path.data);
}

int files_fail_size(struct call *call, uint64_t bytes, uint64_t max)
{
    return call_fail(call, NG_ETOOLARGE,
                     "File size (%llu bytes) exceeds maximum allowed size (%llu bytes)",
                     (unsigned long long)bytes, (unsigned long long)max);
}

int files_fail_revision(struct call *call, struct ng_str path, const char *current)
{
    int rc = call_fail(call, NG_ECONFLICT,
                       "The file %.*s is at another revision than expected. Read it again and "
                       "repeat the change on what is there now.",
                       (int)path.len, path.data);
    struct ng_writer *details = call->pub.host->details(&call->pub);
    if (details != NULL) {
        json_object(details);
        json_name(details, "currentRevision");
        if (current[0] == '\0') {
            json_null(details);
        } else {
            json_cstring(details, current);
        }
        json_end(details);
    }
    return rc;
}

bool files_is_refusal(int error)
{
    static const int refusals[] = {EACCES,       EBUSY,  EDQUOT, EEXIST,  EINVAL,
                                   ENAMETOOLONG, ENOENT, ENOSPC, ENOTDIR, ENOTEMPTY,
                                   EPERM,        EROFS,  EXDEV};
    for (size_t i = 0; i < NG_COUNT(refusals); i++) {
        if (error == refusals[i]) {
            return true;
        }
    }
    return false;
}

int files_undo_hide(struct file_op *op, int rc)
{
    if (rc != NG_EOUTSIDE) {
        return rc;
    }
    call_reset_result(op->call);
    return call_fail(op->call, NG_EFORBIDDEN,
                     "The last change of %.*s is part of a move of files that are not open to "
                     "this caller, so it cannot be undone.",
                     (int)op->undo.path.len, op->undo.path.data);
}
