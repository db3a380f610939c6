/* SPDX-License-Identifier: MIT */
/* delete.c - the tool that moves a note or a folder to the notebook's trash. */
#include "move.h"

#include "move_changes.h"
#include "move_source.h"
#include "text/codes.h"
#include "write/create.h"

/* Notes of one path in the trash. */
#define TRASHED_COPIES_MAX 10000

const char notes_delete_summary[] =
    "Delete a Markdown note, or a folder with all its files, of an OpenNotes notebook: it "
    "moves "
    "to 'trash', from where opennotes_move brings it back. 'broken_links' counts the links of "
    "other notes that lead nowhere now.";

const char notes_delete_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"path\"],"
    "\"properties\":{"
    "\"path\":{\"type\":\"string\",\"description\":\"Note or folder, relative to "
    "notebook\"}," NOTES_PARAM_NOTEBOOK "}}";

const char notes_delete_result[] =
    "{\"type\":\"object\",\"required\":[\"trash\",\"broken_links\"],\"properties\":{"
    "\"trash\":{\"type\":\"string\",\"description\":\"Its path now\"},"
    "\"broken_links\":{\"type\":\"integer\"}}}";

/* In call memory. */
struct delete_job {
    struct ng_str trash;
    uint64_t broken;
};

static int replied(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                   void *user)
{
    const struct delete_job *job = user;
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    (void)present;
    (void)next;
    host->json_object(writer);
    host->json_name(writer, "trash");
    host->json_string(writer, job->trash);
    host->json_name(writer, "broken_links");
    host->json_int(writer, (int64_t)job->broken);
    host->json_end(writer);
    return NG_OK;
}

/* A free path in the trash: "a/b.md", "a/b 2.md". */
static int find_trash(const struct notes_notebook *notebook, struct ng_call *call,
                      const struct notes_move_source *source, struct delete_job *job,
                      struct ng_str *ret_absolute)
{
    struct ng_str stem = source->path;
    stem.len -= (size_t)3 * !source->folder;
    const char *ending = source->path.data + stem.len;
    for (unsigned number = 1; number <= TRASHED_COPIES_MAX; number++) {
        struct ng_file found = {.size = sizeof(found)};
        job->trash =
            number == 1
                ? call->host->format(call, NOTES_TRASH "/%.*s", (int)source->path.len,
                                     source->path.data)
                : call->host->format(call, NOTES_TRASH "/%.*s %u%.*s", (int)stem.len, stem.data,
                                     number, (int)(source->path.len - stem.len), ending);
        if (job->trash.data == NULL) {
            return notes_fail_memory(call);
        }
        int rc = notes_write_place(notebook, call, job->trash, ret_absolute);
        if (rc == NG_OK) {
            rc = call->host->file_stat(call, *ret_absolute, &found);
        }
        if (rc != NG_OK || found.type == NG_FILE_NONE) {
            return rc;
        }
    }
    return ng_fail(call, NOTES_EEXISTS, "The trash has %d notes of this path: empty it.",
                   TRASHED_COPIES_MAX);
}

static int count_broken(const struct notes_notebook *notebook, struct ng_call *call,
                        struct arena *arena, struct ng_str path, struct delete_job *job)
{
    struct notes_changes_of_move changes = {.count = 0};
    struct notes_facts facts = {.move = {.from = path, .to = job->trash}, .removes = true};
    int rc = notes_facts_begin(&facts, notebook, call, arena);
    if (rc == NG_OK) {
        rc = notes_move_changes(&facts, &changes);
    }
    notes_facts_done(&facts);
    job->broken = changes.broken;
    return rc;
}

int notes_delete_run(struct notes_notebook *notebook, struct ng_call *call, struct arena *arena)
{
    struct delete_job *job = ng_alloc(call, sizeof(*job));
    struct notes_move_source source;
    struct ng_str absolute = STR_NONE;
    if (job == NULL) {
        return notes_fail_memory(call);
    }
    *job = (struct delete_job){.broken = 0};
    int rc = notes_source_find(notebook, call, ng_arg_text(call, "path"), &source);
    if (rc == NG_OK && source.trashed) {
        rc = ng_fail(call, NOTES_EPATH, "%.*s is in the trash already.", (int)source.path.len,
                     source.path.data);
    }
    if (rc == NG_OK) {
        rc = find_trash(notebook, call, &source, job, &absolute);
    }
    if (rc == NG_OK) {
        rc = count_broken(notebook, call, arena, source.path, job);
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
        .folder = true,
    };
    return call->host->file_transfer(call, &transfer);
}
