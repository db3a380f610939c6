/* SPDX-License-Identifier: MIT */
/* file_editor_edit.c - the commands that change one file by its text: create, str_replace,
 * insert; and undo_edit, copy, move. */
#include <stdlib.h>
#include <string.h>

#include "file_editor.h"

#define REVIEW                                                                                 \
    "Review the changes and make sure they are as expected. Edit the file again if necessary."
#define REVIEW_INSERT                                                                          \
    "Review the changes and make sure they are as expected (correct indentation, no "          \
    "duplicate lines, etc). Edit the file again if necessary."

static int fail_not_text(struct ng_call *call, struct ng_str path, const char *what)
{
    return ng_fail(call, EDITOR_NOT_TEXT,
                   "The file %.*s cannot be edited: %s. Only UTF-8 text is edited, so that "
                   "nothing in it is destroyed.",
                   (int)path.len, path.data, what);
}

int editor_editable(struct ng_call *call, const struct ng_file *present,
                    const struct editor_job *job, struct ng_str *ret_text)
{
    if (present->type == NG_FILE_NONE) {
        return editor_fail_missing(call, job->path);
    }
    if (present->type == NG_FILE_DIRECTORY) {
        return editor_fail_directory(call, job->path);
    }
    if (present->type != NG_FILE_REGULAR) {
        return ng_fail(call, NG_EFAILED,
                       "The path %.*s is not a regular file (a device, pipe or socket). Choose "
                       "another path.",
                       (int)job->path.len, job->path.data);
    }
    int rc = editor_check_mode(call, present->real);
    const char *fault = NULL;
    if (rc == NG_OK) {
        fault = editor_not_text(present->data);
    }
    if (fault != NULL) {
        return fail_not_text(call, job->path, fault);
    }
    size_t bom = editor_bom(present->data);
    *ret_text = editor_str(present->data.data + bom, present->data.len - bom);
    return rc;
}

int editor_producible(struct ng_call *call, const struct editor_job *job, uint64_t bytes,
                      struct ng_str inserted)
{
    if (bytes > job->editor->max_file_size) {
        return editor_fail_size(call, bytes, job->editor->max_file_size);
    }
    if (inserted.len > 0 && memchr(inserted.data, '\0', inserted.len) != NULL) {
        return fail_not_text(call, job->path, "the new text holds NUL characters");
    }
    return NG_OK;
}

int editor_edit(struct ng_call *call, struct editor_job *job, ng_file_fn *fn)
{
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = job->path,
        .fn = fn,
        .user = job,
        .expected_revision = job->expected,
        .max_bytes = job->editor->max_file_size,
    };
    int rc = editor_check_mode(call, job->path);
    if (rc != NG_OK) {
        return rc;
    }
    return call->host->file_edit(call, &edit);
}

/* ---- create */

static int create_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    const struct editor_job *job = user;
    int rc = editor_check_mode(call, present->real);
    if (rc != NG_OK) {
        return rc;
    }
    rc = editor_producible(call, job, job->new_str.len, job->new_str);
    if (rc != NG_OK) {
        return rc;
    }
    rc = call->host->draft_text(next, &job->new_str, 1);
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(call, call->host->format(call, "File created successfully at: %.*s",
                                             (int)job->path.len, job->path.data));
}

int editor_create(struct ng_call *call, struct editor_job *job)
{
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = job->path,
        .fn = create_fn,
        .user = job,
        .expected_revision = job->expected,
        .create = true,
        .parents = true,
        .exists_code = EDITOR_FILE_EXISTS,
    };
    job->new_str = ng_arg_text(call, "file_text");
    if (job->new_str.data == NULL) {
        job->new_str = ng_str_of("");
    }
    int rc = editor_check_mode(call, job->path);
    if (rc != NG_OK) {
        return rc;
    }
    return call->host->file_edit(call, &edit);
}

/* ---- str_replace */

/* Lines in which an occurrence begins, as JSON: "[1,4]". */
static int fail_ambiguous(struct ng_call *call, const struct editor_job *job,
                          struct ng_str text)
{
    const struct ng_host *host = call->host;
    struct ng_writer *lines = host->json_writer(call);
    size_t line = 1;
    size_t counted = 0;
    if (lines == NULL) {
        return ng_fail(call, NG_EINTERNAL, "Out of memory while searching %.*s.",
                       (int)job->path.len, job->path.data);
    }
    host->json_array(lines);
    for (size_t at = editor_find(text, job->old_str, 0); at != SIZE_MAX;
         at = editor_find(text, job->old_str, at + job->old_str.len)) {
        line += editor_count(editor_str(text.data + counted, at - counted), '\n');
        counted = at;
        host->json_int(lines, (int64_t)line);
    }
    host->json_end(lines);
    struct ng_str list = host->json_result(lines);
    return ng_fail(call, NG_EFAILED,
                   "No replacement was performed. Multiple occurrences of old_str `%.*s` in "
                   "lines %.*s. Please ensure it is unique",
                   (int)job->old_str.len, job->old_str.data, (int)list.len, list.data);
}

/* `old`: in the text of the file. */
static int replace_at(struct ng_call *call, const struct ng_file *present,
                      struct ng_draft *next, const struct editor_job *job, struct ng_str old)
{
    const struct ng_host *host = call->host;
    struct ng_str path = job->path;
    size_t bom = editor_bom(present->data);
    struct ng_str text = {present->data.data + bom, present->data.len - bom};
    size_t at = (size_t)(old.data - text.data);
    size_t tail = at + old.len;
    bool bytes = memchr(job->old_str.data, '\r', job->old_str.len) != NULL;
    struct ng_str put;
    if (bytes) {
        put = job->new_str;
    } else {
        put = editor_with_ends(call, job->new_str, old, editor_is_crlf(text, tail));
    }
    size_t len = text.len - old.len + put.len;
    int rc = editor_producible(call, job, bom + len, job->new_str);
    char *made = NULL;
    if (rc == NG_OK && put.data != NULL) {
        made = ng_alloc(call, len + 1);
    }
    if (made == NULL) {
        if (rc != NG_OK) {
            return rc;
        }
        return ng_fail(call, NG_EINTERNAL, "Out of memory while editing.");
    }
    memcpy(made, text.data, at);
    memcpy(made + at, put.data, put.len);
    memcpy(made + at + put.len, text.data + tail, text.len - tail);
    rc = host->draft_splice(next, bom + at, old.len, put);
    if (rc != NG_OK) {
        return rc;
    }
    return editor_reply_snippet(
        call, host->format(call, "The file %.*s has been edited. ", (int)path.len, path.data),
        host->format(call, "a snippet of %.*s", (int)path.len, path.data),
        editor_str(made, len), editor_count(editor_str(text.data, at), '\n'),
        editor_count(put, '\n') + 1, REVIEW);
}

static int replace_fn(struct ng_call *call, const struct ng_file *present,
                      struct ng_draft *next, void *user)
{
    const struct editor_job *job = user;
    struct ng_str path = job->path;
    struct ng_str text;
    int rc = editor_editable(call, present, job, &text);
    if (rc != NG_OK) {
        return rc;
    }
    if (job->old_str.len == 0) {
        return ng_fail(call, NG_EFAILED,
                       "No replacement was performed, old_str must not be empty.");
    }
    struct ng_str folded = editor_folded(call, text, job->old_str);
    if (folded.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "Out of memory while editing.");
    }
    size_t hit = editor_find(folded, job->old_str, 0);
    if (hit == SIZE_MAX) {
        return ng_fail(call, NG_EFAILED,
                       "No replacement was performed, old_str `%.*s` did not appear verbatim "
                       "in %.*s.",
                       (int)job->old_str.len, job->old_str.data, (int)path.len, path.data);
    }
    size_t behind = hit + job->old_str.len;
    if (editor_find(folded, job->old_str, behind) != SIZE_MAX) {
        return fail_ambiguous(call, job, folded);
    }
    size_t at = editor_unfolded(text, folded, hit);
    return replace_at(call, present, next, job,
                      editor_str(text.data + at, editor_unfolded(text, folded, behind) - at));
}

int editor_str_replace(struct ng_call *call, struct editor_job *job)
{
    job->old_str = ng_arg_text(call, "old_str");
    job->new_str = ng_arg_text(call, "new_str");
    if (job->new_str.data == NULL) {
        job->new_str = ng_str_of("");
    }
    return editor_edit(call, job, replace_fn);
}

/* ---- insert */

/* What goes where so that new_str becomes lines of its own behind line `line`. */
static void plan_insert(const struct editor_job *job, struct ng_str text, size_t lines,
                        size_t *ret_at, bool *ret_before, bool *ret_after)
{
    size_t line = (size_t)job->insert_line;
    *ret_at = text.len;
    *ret_before = line == lines && text.len > 0;
    *ret_after = line < lines && text.len > 0;
    if (*ret_after) {
        size_t at = 0;
        for (size_t i = 0; i < line; i++) {
            const char *end = memchr(text.data + at, '\n', text.len - at);
            if (end != NULL) {
                at = (size_t)(end - text.data) + 1;
            } else {
                at = text.len;
            }
        }
        *ret_at = at;
    }
}

static int insert_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    const struct editor_job *job = user;
    const struct ng_host *host = call->host;
    struct ng_str path = job->path;
    struct ng_str text;
    int rc = editor_editable(call, present, job, &text);
    if (rc != NG_OK) {
        return rc;
    }
    size_t lines = editor_count(text, '\n') + 1;
    if (job->insert_line < 0 || (uint64_t)job->insert_line > lines) {
        return editor_fail_input(
            call, "insert_line", "a line of the file",
            host->format(call,
                         "Invalid `insert_line` parameter: %lld. It should be within the range "
                         "of lines of the file: [0, %zu]",
                         (long long)job->insert_line, lines));
    }
    size_t at = 0;
    bool before = false;
    bool after = false;
    plan_insert(job, text, lines, &at, &before, &after);
    bool crlf = editor_is_crlf(text, at > 0 ? at - 1 : 0);
    const char *end = "\n";
    if (crlf) {
        end = "\r\n";
    }
    struct ng_str put = editor_with_ends(call, job->new_str, editor_str(NULL, 0), crlf);
    struct ng_str line = host->format(call, "%s%.*s%s", before ? end : "", (int)put.len,
                                      put.data, after ? end : "");
    size_t bom = present->data.len - text.len;
    size_t len = text.len + line.len;
    rc = editor_producible(call, job, bom + len, job->new_str);
    char *made = NULL;
    if (rc == NG_OK && line.data != NULL) {
        made = ng_alloc(call, len + 1);
    }
    if (made == NULL) {
        if (rc != NG_OK) {
            return rc;
        }
        return ng_fail(call, NG_EINTERNAL, "Out of memory while editing.");
    }
    memcpy(made, text.data, at);
    memcpy(made + at, line.data, line.len);
    memcpy(made + at + line.len, text.data + at, text.len - at);
    rc = host->draft_splice(next, bom + at, 0, line);
    if (rc != NG_OK) {
        return rc;
    }
    size_t shown = 0;
    if (text.len != 0) {
        shown = (size_t)job->insert_line;
    }
    return editor_reply_snippet(
        call, host->format(call, "The file %.*s has been edited. ", (int)path.len, path.data),
        ng_str_of("a snippet of the edited file"), editor_str(made, len), shown,
        editor_count(job->new_str, '\n') + 1, REVIEW_INSERT);
}

int editor_insert(struct ng_call *call, struct editor_job *job)
{
    job->new_str = ng_arg_text(call, "new_str");
    job->insert_line = ng_arg_int(call, "insert_line", 0);
    return editor_edit(call, job, insert_fn);
}

/* ---- undo_edit */

static int undo_replied(struct ng_call *call, enum ng_undo_kind kind, const struct ng_file *now,
                        struct ng_str former, void *user)
{
    const struct editor_job *job = user;
    const struct ng_host *host = call->host;
    struct ng_str path = job->path;
    struct ng_str done =
        host->format(call, "Last edit to %.*s undone successfully. ", (int)path.len, path.data);
    int rc = editor_check_mode(call, now->real);
    if (rc != NG_OK) {
        return rc;
    }
    if (kind == NG_UNDO_CREATE) {
        struct ng_str pieces[] = {done,
                                  ng_str_of("It had created the file, which is removed.")};
        return host->reply_parts(call, pieces, NG_COUNT(pieces));
    }
    if (kind == NG_UNDO_MOVE) {
        struct ng_str pieces[] = {done, ng_str_of("It had moved the file, which is back at: "),
                                  former};
        return host->reply_parts(call, pieces, NG_COUNT(pieces));
    }
    struct ng_str text;
    if (now->data.data != NULL) {
        text = now->data;
    } else {
        text = ng_str_of("");
    }
    size_t bom = editor_bom(text);
    text = editor_clean(call, editor_str(text.data + bom, text.len - bom));
    if (text.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "Out of memory while editing.");
    }
    struct ng_str lines = editor_numbered(call, text, 1, editor_count(text, '\n') + 1, 1);
    return editor_reply_lines(call, done, path, lines, "");
}

int editor_undo(struct ng_call *call, struct editor_job *job)
{
    struct ng_file_undo undo = {
        .size = sizeof(undo),
        .path = job->path,
        .expected_revision = job->expected,
        .replied = undo_replied,
        .user = job,
        .no_history_code = EDITOR_NO_HISTORY,
    };
    int rc = editor_check_mode(call, job->path);
    if (rc != NG_OK) {
        return rc;
    }
    return call->host->file_undo(call, &undo);
}

/* ---- copy, move */

static int transfer_reply(struct ng_call *call, const struct editor_job *job, const char *verb)
{
    return ng_reply(call, call->host->format(call, "File %s successfully from: %.*s to: %.*s",
                                             verb, (int)job->path.len, job->path.data,
                                             (int)job->destination.len, job->destination.data));
}

static int copied_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    (void)next;
    int rc = editor_check_mode(call, present->real);
    if (rc != NG_OK) {
        return rc;
    }
    return transfer_reply(call, user, "copied");
}

static int moved_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                    void *user)
{
    (void)next;
    int rc = editor_check_mode(call, present->real);
    if (rc != NG_OK) {
        return rc;
    }
    return transfer_reply(call, user, "moved");
}

int editor_transfer(struct ng_call *call, struct editor_job *job, bool keep)
{
    struct ng_file_transfer transfer = {
        .size = sizeof(transfer),
        .from = job->path,
        .expected_revision = job->expected,
        .keep = keep,
        .replied = keep ? copied_fn : moved_fn,
        .user = job,
        .exists_code = EDITOR_FILE_EXISTS,
    };
    int rc = editor_path(call, "destination", job->destination, &job->destination);
    if (rc == NG_OK) {
        rc = editor_check_mode(call, job->path);
    }
    if (rc == NG_OK) {
        rc = editor_check_mode(call, job->destination);
    }
    transfer.to = job->destination;
    if (rc != NG_OK) {
        return rc;
    }
    return call->host->file_transfer(call, &transfer);
}
