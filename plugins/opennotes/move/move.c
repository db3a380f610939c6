/* SPDX-License-Identifier: MIT */
/* move.c - the tool that moves a note or a folder, with all links that lead there. */
#include "move.h"

#include "move_changes.h"
#include "move_source.h"
#include "text/codes.h"
#include "write/edit.h"

/* Bytes of the paths in an answer; more are counted only. */
#define LISTED_MAX ((size_t)32 * 1024)

const char notes_move_summary[] =
    "Rename or move a Markdown note or a folder of an OpenNotes notebook, to keep all links. "
    "Every link that led there leads to the new place, also in properties; a link keeps its "
    "form.\n\n"
    "A path in .trash/ brings back what was deleted. opennotes_edit 'undo' of the new path "
    "takes "
    "all of it back.";

const char notes_move_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"path\",\"to\"],"
    "\"properties\":{"
    "\"path\":{\"type\":\"string\",\"description\":\"Note or folder, relative to notebook\"},"
    "\"to\":{\"type\":\"string\",\"description\":\"New path; of a note it ends in "
    ".md\"}," NOTES_PARAM_NOTEBOOK "}}";

const char notes_move_result[] =
    "{\"type\":\"object\",\"required\":[\"path\",\"links\",\"notes\"],\"properties\":{"
    "\"path\":{\"type\":\"string\"},"
    "\"links\":{\"type\":\"integer\",\"description\":\"Rewritten links\"},"
    "\"notes\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":"
    "\"Notes outside that changed\"},"
    "\"has_more\":{\"type\":\"boolean\",\"description\":\"More notes changed than listed\"},"
    "\"revision\":{\"type\":\"string\",\"description\":\"Of a note\"}}}";

/* An edit of a note that belongs to the move. */
struct link_edit {
    struct move_job *job;
    struct ng_str path; /* before the move */
    bool moved;
    size_t links; /* rewritten ones */
};

/* In call memory: the save calls its functions after the tool has returned. */
struct move_job {
    struct notes_facts facts;
    struct ng_str to;
    bool folder;
    struct link_edit *edits;
    size_t count;
};

static int fail_link(struct ng_call *call, struct ng_str path,
                     const struct notes_rewritten *rewritten)
{
    struct ng_str target = utf8_cut(rewritten->target, 200);
    (void)ng_fail(call, NG_EFAILED,
                  "Nothing was moved: the link to '%.*s' in line %zu of %.*s cannot be "
                  "rewritten so that it leads to its note again.",
                  (int)target.len, target.data, rewritten->line, (int)path.len, path.data);
    call->host->hint(call, "Change that link first, or choose another name: wiki links cannot "
                           "name notes with # ^ | [ ] in their paths.");
    return NG_EFAILED;
}

static int edit_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                   void *user)
{
    struct link_edit *edit = user;
    struct arena arena;
    struct notes_rewritten rewritten;
    struct ng_str bytes = notes_present(present->data);
    int rc = notes_write_inside(edit->job->facts.notebook, call, present, edit->path);
    if (rc != NG_OK || present->type != NG_FILE_REGULAR) {
        return rc;
    }
    arena_init(&arena, 0);
    rc = notes_link_rewrite(&arena, &edit->job->facts.move, edit->path, bytes, &rewritten);
    if (rc == NG_EINVAL) {
        rc = fail_link(call, edit->path, &rewritten);
    } else if (rc != NG_OK) {
        rc = notes_fail_memory(call);
    } else {
        edit->links = rewritten.links;
        rc = notes_edit_draft(call, next, bytes, rewritten.bytes);
    }
    arena_done(&arena);
    return rc;
}

/* ---- the answer */

static void write_notes(const struct ng_host *host, struct ng_writer *writer,
                        const struct move_job *job, bool *ret_more)
{
    size_t bytes = 0;
    *ret_more = false;
    host->json_name(writer, "notes");
    host->json_array(writer);
    for (size_t i = 0; i < job->count; i++) {
        const struct link_edit *edit = &job->edits[i];
        bool outside = edit->links > 0 && !edit->moved;
        bytes += outside ? edit->path.len : 0;
        *ret_more = *ret_more || (outside && bytes > LISTED_MAX);
        if (outside && !*ret_more) {
            host->json_string(writer, edit->path);
        }
    }
    host->json_end(writer);
}

static int replied(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                   void *user)
{
    const struct move_job *job = user;
    const struct ng_host *host = call->host;
    size_t links = 0;
    bool more = false;
    (void)next;
    for (size_t i = 0; i < job->count; i++) {
        links += job->edits[i].links;
    }
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    host->json_name(writer, "path");
    host->json_string(writer, job->to);
    host->json_name(writer, "links");
    host->json_int(writer, (int64_t)links);
    write_notes(host, writer, job, &more);
    if (more) {
        host->json_name(writer, "has_more");
        host->json_bool(writer, more);
    }
    if (!job->folder && present->revision.data != NULL) {
        host->json_name(writer, "revision");
        host->json_string(writer, present->revision);
    }
    host->json_end(writer);
    return NG_OK;
}

/* ---- */

/* Checks the new path and finds its place. */
static int find_target(struct notes_notebook *notebook, struct ng_call *call,
                       const struct notes_move_source *source, struct move_job *job,
                       struct ng_str *ret_absolute)
{
    struct ng_str given = ng_arg_text(call, "to");
    struct ng_str file;
    bool exists = false;
    int rc = source->folder ? notes_write_folder(call, given, &job->to)
                            : notes_write_path(call, given, &job->to);
    if (rc == NG_OK && source->folder && notes_path_below(job->to, source->path).len > 0) {
        rc = ng_fail(call, NOTES_EPATH, "The folder %.*s cannot be moved into itself.",
                     (int)source->path.len, source->path.data);
    }
    if (rc == NG_OK) {
        rc = notes_write_file(notebook, call, job->to, &file, &exists);
    }
    if (rc == NG_OK && exists) {
        rc = ng_fail(call, NOTES_EEXISTS, "There is a note at %.*s already.", (int)job->to.len,
                     job->to.data);
    }
    return rc == NG_OK ? notes_write_place(notebook, call, file, ret_absolute) : rc;
}

/* The edits of the save, in call memory. */
static int make_edits(const struct notes_notebook *notebook, struct ng_call *call,
                      const struct notes_changes_of_move *changes, struct move_job *job,
                      struct ng_file_edit **ret)
{
    struct ng_file_edit *edits = ng_alloc(call, (changes->count + 1) * sizeof(*edits));
    job->edits = ng_alloc(call, (changes->count + 1) * sizeof(*job->edits));
    if (edits == NULL || job->edits == NULL) {
        return notes_fail_memory(call);
    }
    for (size_t i = 0; i < changes->count; i++) {
        const struct notes_changed *note = &changes->items[i];
        struct link_edit *edit = &job->edits[job->count];
        *edit = (struct link_edit){
            .job = job, .path = notes_call_copy(call, note->path), .moved = note->moved};
        edits[job->count] = (struct ng_file_edit){.size = sizeof(*edits),
                                                  .fn = edit_fn,
                                                  .user = edit,
                                                  .max_bytes = NOTES_NOTE_EDIT_MAX,
                                                  .collection = NOTES_COLLECTION};
        int rc = notes_write_place(notebook, call, note->file, &edits[job->count].path);
        if (rc != NG_OK || edit->path.data == NULL) {
            return rc != NG_OK ? rc : notes_fail_memory(call);
        }
        job->count++;
    }
    *ret = edits;
    return NG_OK;
}

static int find_changes(struct notes_notebook *notebook, struct ng_call *call,
                        struct arena *arena, const struct notes_move_source *source,
                        struct move_job *job, struct ng_file_edit **ret_edits)
{
    struct notes_facts *facts = &job->facts;
    struct notes_changes_of_move changes;
    facts->move.from = notes_call_copy(call, source->path);
    facts->move.to = job->to;
    facts->absolute = source->absolute;
    int rc = notes_memory(call, facts->move.from.data != NULL);
    if (rc == NG_OK) {
        rc = notes_facts_begin(facts, notebook, call, arena);
    }
    if (rc == NG_OK && source->trashed) {
        rc = notes_source_add_trashed(facts, source);
    }
    if (rc == NG_OK) {
        rc = notes_move_changes(facts, &changes);
    }
    if (rc == NG_OK) {
        rc = make_edits(notebook, call, &changes, job, ret_edits);
    }
    if (rc == NG_OK) {
        rc = notes_facts_keep(facts);
    }
    notes_facts_done(facts);
    return rc;
}

int notes_move_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct move_job *job = ng_alloc(call, sizeof(*job));
    struct notes_move_source source;
    struct ng_str absolute = STR_NONE;
    struct ng_file_edit *edits = NULL;
    if (job == NULL) {
        return notes_fail_memory(call);
    }
    *job = (struct move_job){.count = 0};
    int rc = notes_source_find(notebook, call, ng_arg_text(call, "path"), &source);
    if (rc == NG_OK) {
        job->folder = source.folder;
        rc = find_target(notebook, call, &source, job, &absolute);
    }
    if (rc == NG_OK) {
        rc = find_changes(notebook, call, arena, &source, job, &edits);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_file_transfer transfer = {
        .size = sizeof(transfer),
        .from = source.absolute,
        .to = absolute,
        .replied = replied,
        .user = job,
        .exists_code = NOTES_EEXISTS,
        .edits = edits,
        .edit_count = job->count,
        .folder = true,
    };
    return call->host->file_transfer(call, &transfer);
}
