/* SPDX-License-Identifier: MIT */
/* file_editor_path.c - the checks of every path, and common error messages. */
#include <string.h>

#include "file_editor.h"

int editor_fail_input(struct ng_call *call, const char *member, const char *expected,
                      struct ng_str message)
{
    const struct ng_host *host = call->host;
    const struct ng_value *value = host->json_get(call->args, member);
    int rc = ng_fail(call, NG_EINVAL, "%.*s", (int)message.len, message.data);
    struct ng_writer *details = host->details(call);
    if (details == NULL) {
        return rc;
    }
    host->json_object(details);
    host->json_name(details, "violations");
    host->json_array(details);
    host->json_object(details);
    host->json_name(details, "path");
    host->json_string(details, host->format(call, "/%s", member));
    host->json_name(details, "expected");
    host->json_string(details, ng_str_of(expected));
    host->json_name(details, "got");
    if (value == NULL) {
        host->json_string(details, ng_str_of("nothing"));
    } else {
        host->json_copy(details, value);
    }
    host->json_end(details);
    host->json_end(details);
    host->json_end(details);
    return rc;
}

/* `path` below the first root, with "." and ".." resolved as in a shell. */
static struct ng_str suggestion(struct ng_call *call, struct ng_str path)
{
    const struct ng_str *roots = NULL;
    size_t count = call->host->file_roots(call, &roots);
    struct ng_str root = count > 0 ? roots[0] : ng_str_of("/");
    char *out = ng_alloc(call, root.len + path.len + 2);
    if (out == NULL) {
        return root;
    }
    size_t least = 0;
    if (root.len > 1) {
        least = root.len;
    }
    size_t len = least;
    memcpy(out, root.data, root.len);
    for (size_t at = 0; at < path.len;) {
        size_t part = 0;
        while (at + part < path.len && path.data[at + part] != '/') {
            part++;
        }
        if (part == 2 && memcmp(path.data + at, "..", 2) == 0) {
            while (len > least && out[len - 1] != '/') {
                len--;
            }
            len -= len > least;
        } else if (part > 0 && !(part == 1 && path.data[at] == '.')) {
            out[len++] = '/';
            memcpy(out + len, path.data + at, part);
            len += part;
        }
        at += part + 1;
    }
    return len > 0 ? str_make(out, len) : ng_str_of("/");
}

static bool has_parent_segment(struct ng_str path)
{
    size_t start = 0;
    for (size_t i = 0; i <= path.len; i++) {
        if (i == path.len || path.data[i] == '/' || path.data[i] == '\\') {
            if (i - start == 2 && memcmp(path.data + start, "..", 2) == 0) {
                return true;
            }
            start = i + 1;
        }
    }
    return false;
}

int editor_path(struct ng_call *call, const char *member, struct ng_str given,
                struct ng_str *ret)
{
    struct ng_str path = given;
    while (path.len > 0 &&
           (path.data[path.len - 1] == '/' || path.data[path.len - 1] == '\\')) {
        path.len--;
    }
    if (path.len == 0 || path.data[0] != '/') {
        struct ng_str better = suggestion(call, path);
        return editor_fail_input(
            call, member, "an absolute path",
            call->host->format(call,
                               "The path %.*s is not an absolute path, it should start with "
                               "`/`. Maybe you meant %.*s?",
                               (int)path.len, path.len > 0 ? path.data : "", (int)better.len,
                               better.data));
    }
    if (memchr(path.data, '\0', path.len) != NULL) {
        return editor_fail_input(call, member, "a path without NUL",
                                 ng_str_of("Invalid path: it holds a NUL character"));
    }
    if (has_parent_segment(path)) {
        return ng_fail(call, NG_ETRAVERSAL, "Invalid path: path traversal is not allowed");
    }
    *ret = path;
    /* "." is no entry of its folder. */
    if (path.len >= 2 && memcmp(path.data + path.len - 2, "/.", 2) == 0) {
        return editor_fail_missing(call, path);
    }
    return NG_OK;
}

int editor_check_mode(struct ng_call *call, struct ng_str path)
{
    if (call->caller->mode == NG_MODE_AGENT || !editor_ends_with(path, ".ipynb")) {
        return NG_OK;
    }
    return ng_fail(
        call, NG_EMODE,
        "%.*s is a notebook of cells: it is changed in Agent mode only, as a file and "
        "by its cells.",
        (int)path.len, path.data);
}

int editor_fail_directory(struct ng_call *call, struct ng_str path)
{
    return ng_fail(call, NG_EFAILED,
                   "The path %.*s is a directory and only the `view` command can be used on "
                   "directories",
                   (int)path.len, path.data);
}

int editor_fail_size(struct ng_call *call, uint64_t bytes, uint64_t max)
{
    return ng_fail(call, NG_ETOOLARGE,
                   "File size (%llu bytes) exceeds maximum allowed size (%llu bytes)",
                   (unsigned long long)bytes, (unsigned long long)max);
}

struct ng_str editor_warning(struct ng_call *call, struct ng_str path, const char *what)
{
    return call->host->format(
        call,
        "Warning: %.*s cannot be edited: %s. Bytes that are not text are shown as U+FFFD.\n",
        (int)path.len, path.data, what);
}
