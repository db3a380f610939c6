/* SPDX-License-Identifier: MIT */
/* edit_undo.c - takes back the caller's last change of a note, whichever tool made it: by the
 * history of the file. */
#include "edit.h"
#include "text/codes.h"

/* In call memory. */
struct undo_job {
    const struct notes_notebook *notebook;
    struct ng_str path;
    struct ng_str old; /* the present bytes of the note */
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
    int rc = NG_OK;
    arena_init(&arena, 0);
    if (kind == NG_UNDO_MOVE) {
        edited.undone = "move";
        edited.made = job->old;
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

int notes_edit_undo(const struct notes_notebook *notebook, struct ng_call *call,
                    struct ng_str path, struct ng_str absolute)
{
    struct undo_job *job = ng_alloc(call, sizeof(*job));
    struct ng_file present = {.size = sizeof(present)};
    struct ng_file_undo undo = {
        .size = sizeof(undo),
        .path = absolute,
        .expected_revision = ng_arg_text(call, "expectedRevision"),
        .replied = undo_replied,
        .user = job,
        .no_history_code = NOTES_ENOHISTORY,
        .collection = NOTES_COLLECTION,
    };
    if (job == NULL) {
        return notes_fail_memory(call);
    }
    int rc = call->host->file_read(call, absolute, NOTES_NOTE_EDIT_MAX, &present);
    if (rc != NG_OK) {
        return rc;
    }
    *job = (struct undo_job){notebook, path, notes_present(present.data)};
    if (undo.expected_revision.data == NULL) {
        /* The counted lines are those of these bytes. */
        undo.expected_revision = present.revision;
    }
    return call->host->file_undo(call, &undo);
}
