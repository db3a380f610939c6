/* SPDX-License-Identifier: MIT */
/* edit_undo.c - takes back the caller's last change of a note, whichever tool made it: by the
 * history of the file. */
#include "edit.h"
#include "index/index.h"
#include "text/codes.h"

/* In call memory. */
struct undo_job {
    const struct notes_notebook *notebook;
    struct ng_str path;
    struct ng_str old; /* the present bytes of the note */
    bool folder;
};

/* After the undo of a move: the note's path in the notebook. */
static int find_former(struct ng_call *call, struct arena *arena, const struct undo_job *job,
                       struct ng_str former, struct ng_str *ret_path)
{
    struct ng_str below = notes_path_below(former, job->notebook->path);
    if (below.data == NULL) {
        (void)ng_fail(call, NG_EFAILED,
                      "The note %.*s is unchanged: it was moved here from outside of the "
                      "notebook, and this tool moves nothing out of it.",
                      (int)job->path.len, job->path.data);
        call->host->hint(call, "Take the move back with the tool that made it.");
        return NG_EFAILED;
    }
    struct ng_str clean = notes_utf8_clean(arena, below);
    *ret_path = clean.data != NULL ? notes_nfc(arena, clean) : STR_NONE;
    return notes_memory(call, ret_path->data != NULL);
}

static int undo_replied(struct ng_call *call, enum ng_undo_kind kind, const struct ng_file *now,
                        struct ng_str former, void *user)
{
    const struct undo_job *job = user;
    struct arena arena;
    struct notes_edited edited = {.path = job->path, .old = job->old, .undone = "edit"};
    edited.folder = job->folder;
    int rc = NG_OK;
    arena_init(&arena, 0);
    if (kind == NG_UNDO_MOVE) {
        edited.undone = "move";
        edited.made = job->old;
        edited.revision = now->revision;
        rc = find_former(call, &arena, job, former, &edited.path);
    } else {
        edited.undone = kind == NG_UNDO_CREATE ? "creation" : "edit";
        edited.deleted = kind == NG_UNDO_CREATE;
        edited.made = notes_present(now->data);
        rc = notes_write_inside(job->notebook, call, now, job->path);
    }
    if (rc == NG_OK) {
        rc = notes_edit_reply(call, &edited);
    }
    arena_done(&arena);
    return rc;
}

/* A folder, and what is in the trash, is found without the index. */
static int find_undone(struct notes_notebook *notebook, struct ng_call *call,
                       struct ng_str given, struct undo_job *job, struct ng_str *ret_absolute)
{
    struct notes_location at;
    enum ng_file_type type = NG_FILE_NONE;
    int rc = notes_index_path(call, given, &job->path);
    if (rc != NG_OK) {
        return rc;
    }
    bool trashed = notes_path_below(job->path, ng_str_of(NOTES_TRASH)).len > 0;
    if (trashed || (job->path.len > 0 && !notes_tree_is_note(job->path))) {
        rc = notes_write_at(notebook, call, job->path, ret_absolute, &type);
    }
    job->folder = type == NG_FILE_DIRECTORY;
    if (rc != NG_OK || job->folder || (trashed && type == NG_FILE_REGULAR)) {
        return rc;
    }
    rc = notes_index_locate(notebook->index, call, given, &at);
    if (rc != NG_OK) {
        return rc;
    }
    job->path = at.path;
    return notes_write_place(notebook, call, at.file, ret_absolute);
}

int notes_edit_undo(struct notes_notebook *notebook, struct ng_call *call, struct ng_str given)
{
    struct undo_job *job = ng_alloc(call, sizeof(*job));
    struct ng_file present = {.size = sizeof(present)};
    struct ng_str absolute = STR_NONE;
    if (job == NULL) {
        return notes_fail_memory(call);
    }
    *job = (struct undo_job){.notebook = notebook};
    int rc = find_undone(notebook, call, given, job, &absolute);
    if (rc == NG_OK && !job->folder) {
        rc = call->host->file_read(call, absolute, NOTES_NOTE_EDIT_MAX, &present);
    }
    if (rc != NG_OK) {
        return rc;
    }
    job->old = notes_present(present.data);
    struct ng_file_undo undo = {
        .size = sizeof(undo),
        .path = absolute,
        .expected_revision = ng_arg_text(call, "expectedRevision"),
        .replied = undo_replied,
        .user = job,
        .no_history_code = NOTES_ENOHISTORY,
        .collection = NOTES_COLLECTION,
    };
    if (undo.expected_revision.data == NULL) {
        /* The counted lines are those of these bytes. */
        undo.expected_revision = present.revision;
    }
    return call->host->file_undo(call, &undo);
}
