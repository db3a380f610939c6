/* SPDX-License-Identifier: MIT */
/* file_editor_edit.c - the commands create, str_replace, insert, undo_edit, copy, move, delete.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/text/text_near.h"
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
    if (rc != NG_OK) {
        return rc;
    }
    const char *fault = editor_not_text(present->data);
    if (fault != NULL) {
        return fail_not_text(call, job->path, fault);
    }
    size_t bom = editor_bom(present->data);
    *ret_text = str_make(present->data.data + bom, present->data.len - bom);
    return NG_OK;
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
    if (rc == NG_OK) {
        rc = call->host->file_edit(call, &edit);
    }
    return rc;
}

/* A string argument, or "". */
static struct ng_str text_argument(struct ng_call *call, const char *name)
{
    return str_or(ng_arg_text(call, name), ng_str_of(""));
}

/* ---- create */

static int create_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    const struct editor_job *job = user;
    int rc = editor_check_mode(call, present->real);
    if (rc == NG_OK) {
        rc = editor_producible(call, job, job->new_str.len, job->new_str);
    }
    if (rc == NG_OK) {
        rc = call->host->draft_text(next, &job->new_str, 1);
    }
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
    job->new_str = text_argument(call, "file_text");
    int rc = editor_check_mode(call, job->path);
    if (rc == NG_OK) {
        rc = call->host->file_edit(call, &edit);
    }
    return rc;
}

/* ---- str_replace */

static int fail_absent(struct ng_call *call, const struct editor_job *job, struct ng_str text)
{
    char note[TEXT_NEAR_NOTE_SIZE];
    int rc =
        ng_fail(call, NG_EFAILED,
                "No replacement was performed, old_str `%.*s` did not appear verbatim in "
                "%.*s.",
                (int)job->old_str.len, job->old_str.data, (int)job->path.len, job->path.data);
    if (text_near(text, job->old_str, "old_str", note)) {
        call->host->hint(call, "%s", note);
    }
    return rc;
}

/* Lines of occurrences told. */
#define AMBIGUOUS_SHOWN 10

/* The message has the first lines of the occurrences as JSON: "[1,4]". */
static int fail_ambiguous(struct ng_call *call, const struct editor_job *job,
                          struct ng_str text)
{
    const struct ng_host *host = call->host;
    struct ng_writer *lines = host->json_writer(call);
    size_t line = 1;
    size_t counted = 0;
    size_t count = 0;
    char more[40] = "";
    if (lines == NULL) {
        return ng_fail(call, NG_EINTERNAL, "Out of memory while searching %.*s.",
                       (int)job->path.len, job->path.data);
    }
    host->json_array(lines);
    for (size_t at = str_find(text, job->old_str, 0); at != SIZE_MAX;
         at = str_find(text, job->old_str, at + job->old_str.len)) {
        if (++count > AMBIGUOUS_SHOWN) {
            continue;
        }
        line += editor_count(str_make(text.data + counted, at - counted), '\n');
        counted = at;
        host->json_int(lines, (int64_t)line);
    }
    host->json_end(lines);
    if (count > AMBIGUOUS_SHOWN) {
        (void)snprintf(more, sizeof(more), " and %zu more", count - AMBIGUOUS_SHOWN);
    }
    struct ng_str list = host->json_result(lines);
    return ng_fail(call, NG_EFAILED,
                   "No replacement was performed. Multiple occurrences of old_str `%.*s` in "
                   "lines %.*s%s. Please ensure it is unique",
                   (int)job->old_str.len, job->old_str.data, (int)list.len, list.data, more);
}

/* Replaces `old`, a part of the file's text, by `put` ({NULL, 0}: out of memory), in the draft
 * and in *ret_made, which is for the snippet. */
static int splice(struct ng_call *call, const struct editor_job *job,
                  const struct ng_file *present, struct ng_draft *next, struct ng_str old,
                  struct ng_str put, struct ng_str *ret_made)
{
    size_t bom = editor_bom(present->data);
    struct ng_str text = {present->data.data + bom, present->data.len - bom};
    size_t at = (size_t)(old.data - text.data);
    size_t tail = at + old.len;
    size_t len = text.len - old.len + put.len;
    int rc = editor_producible(call, job, bom + len, job->new_str);
    if (rc != NG_OK) {
        return rc;
    }
    char *made = NULL;
    if (put.data != NULL) {
        made = ng_alloc(call, len + 1);
    }
    if (made == NULL) {
        return ng_fail(call, NG_EINTERNAL, "Out of memory while editing.");
    }
    memcpy(made, text.data, at);
    memcpy(made + at, put.data, put.len);
    memcpy(made + at + put.len, text.data + tail, text.len - tail);
    *ret_made = str_make(made, len);
    return call->host->draft_splice(next, bom + at, old.len, put);
}

static struct ng_str edited_prefix(struct ng_call *call, struct ng_str path)
{
    return call->host->format(call, "The file %.*s has been edited. ", (int)path.len,
                              path.data);
}

/* `old`: the occurrence in the text of the file, which begins at `text`. */
static int replace_at(struct ng_call *call, const struct ng_file *present,
                      struct ng_draft *next, const struct editor_job *job, struct ng_str old)
{
    struct ng_str path = job->path;
    struct ng_str put = job->new_str;
    struct ng_str made = STR_NONE;
    size_t bom = editor_bom(present->data);
    struct ng_str text = {present->data.data + bom, present->data.len - bom};
    size_t at = (size_t)(old.data - text.data);
    if (memchr(job->old_str.data, '\r', job->old_str.len) == NULL) {
        put = editor_with_ends(call, put, old, editor_is_crlf(text, at + old.len));
    }
    int rc = splice(call, job, present, next, old, put, &made);
    if (rc != NG_OK) {
        return rc;
    }
    return editor_reply_snippet(
        call, edited_prefix(call, path),
        call->host->format(call, "a snippet of %.*s", (int)path.len, path.data), made,
        editor_count(str_make(text.data, at), '\n'), editor_count(put, '\n') + 1, REVIEW);
}

static int replace_fn(struct ng_call *call, const struct ng_file *present,
                      struct ng_draft *next, void *user)
{
    const struct editor_job *job = user;
    struct ng_str text = STR_NONE;
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
    size_t hit = str_find(folded, job->old_str, 0);
    if (hit == SIZE_MAX) {
        return fail_absent(call, job, folded);
    }
    size_t behind = hit + job->old_str.len;
    if (str_find(folded, job->old_str, behind) != SIZE_MAX) {
        return fail_ambiguous(call, job, folded);
    }
    size_t at = editor_unfolded(text, folded, hit);
    return replace_at(call, present, next, job,
                      str_make(text.data + at, editor_unfolded(text, folded, behind) - at));
}

int editor_str_replace(struct ng_call *call, struct editor_job *job)
{
    job->old_str = ng_arg_text(call, "old_str");
    job->new_str = text_argument(call, "new_str");
    return editor_edit(call, job, replace_fn);
}

/* ---- insert */

static int insert_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    const struct editor_job *job = user;
    const struct ng_host *host = call->host;
    struct ng_str text = STR_NONE;
    struct ng_str made = STR_NONE;
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
    size_t line = (size_t)job->insert_line;
    size_t at = editor_line_start(text, line + 1);
    bool crlf = editor_is_crlf(text, at - (at > 0));
    const char *end = crlf ? "\r\n" : "\n";
    struct ng_str put = editor_with_ends(call, job->new_str, str_make(NULL, 0), crlf);
    /* After the last line, which has no end, one goes before the new text, else behind it. */
    if (text.len > 0 && line == lines) {
        put = host->format(call, "%s%.*s", end, (int)put.len, put.data);
    } else if (text.len > 0) {
        put = host->format(call, "%.*s%s", (int)put.len, put.data, end);
    } else {
        line = 0;
    }
    rc = splice(call, job, present, next, str_make(text.data + at, 0), put, &made);
    if (rc != NG_OK) {
        return rc;
    }
    return editor_reply_snippet(call, edited_prefix(call, job->path),
                                ng_str_of("a snippet of the edited file"), made, line,
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
    if (kind == NG_UNDO_DELETE && NG_HAS(now, names) && now->names > 1) {
        return ng_reply(call,
                        host->format(call,
                                     "%.*sIt had deleted the file, which is back as a "
                                     "file of its own: it was one of %llu names of a "
                                     "file, and the others do not change with it.",
                                     (int)done.len, done.data, (unsigned long long)now->names));
    }
    if (kind == NG_UNDO_DELETE) {
        const char *what = now->type == NG_FILE_DIRECTORY ? "folder" : "file";
        return ng_reply(call, host->format(call, "%.*sIt had deleted the %s, which is back.",
                                           (int)done.len, done.data, what));
    }
    struct ng_str text = str_or(now->data, ng_str_of(""));
    size_t bom = editor_bom(text);
    text = editor_clean(call, str_make(text.data + bom, text.len - bom));
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
    if (rc == NG_OK) {
        rc = call->host->file_undo(call, &undo);
    }
    return rc;
}

/* ---- copy, move */

static int transfer_replied(struct ng_call *call, const struct ng_file *present,
                            struct ng_draft *next, void *user)
{
    const struct editor_job *job = user;
    const char *verb = "moved";
    (void)next;
    int rc = editor_check_mode(call, present->real);
    if (rc != NG_OK) {
        return rc;
    }
    if (str_is(ng_arg_text(call, "command"), "copy")) {
        verb = "copied";
    }
    return ng_reply(call, call->host->format(call, "File %s successfully from: %.*s to: %.*s",
                                             verb, (int)job->path.len, job->path.data,
                                             (int)job->destination.len, job->destination.data));
}

int editor_transfer(struct ng_call *call, struct editor_job *job)
{
    struct ng_file_transfer transfer = {
        .size = sizeof(transfer),
        .from = job->path,
        .expected_revision = job->expected,
        .keep = str_is(ng_arg_text(call, "command"), "copy"),
        .replied = transfer_replied,
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
    if (rc == NG_OK) {
        rc = call->host->file_transfer(call, &transfer);
    }
    return rc;
}

/* ---- delete */

static int delete_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    const struct editor_job *job = user;
    bool folder = present->type == NG_FILE_DIRECTORY;
    if (present->type == NG_FILE_NONE) {
        return editor_fail_missing(call, job->path);
    }
    int rc = editor_check_mode(call, present->real);
    if (rc != NG_OK) {
        return rc;
    }
    call->host->draft_delete(next);
    return ng_reply(call, call->host->format(call,
                                             "Deleted the %s %.*s. `undo_edit` with this path "
                                             "brings it back.",
                                             folder ? "folder" : "file", (int)present->real.len,
                                             present->real.data));
}

int editor_delete(struct ng_call *call, struct editor_job *job)
{
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = job->path,
        .fn = delete_fn,
        .user = job,
        .expected_revision = job->expected,
        .max_bytes = NG_FILE_UNDO_BYTES,
    };
    struct ng_file now = {.size = sizeof(now)};
    int rc = editor_check_mode(call, job->path);
    if (rc == NG_OK) {
        rc = call->host->file_stat(call, job->path, &now);
    }
    if (rc == NG_OK && now.type == NG_FILE_REGULAR && now.bytes > NG_FILE_UNDO_BYTES) {
        rc = ng_fail(call, NG_ETOOLARGE,
                     "%.*s has %llu bytes, and only up to %zu can be brought back. `move` it "
                     "where it is not in the way.",
                     (int)job->path.len, job->path.data, (unsigned long long)now.bytes,
                     NG_FILE_UNDO_BYTES);
    }
    if (rc == NG_OK) {
        rc = call->host->file_edit(call, &edit);
    }
    return rc;
}
