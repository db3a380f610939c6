/* SPDX-License-Identifier: MIT */
/* checkpoint_restore.c - checkpoint_restore: the tool, and the job that restores step by step,
 * each step in a call of its own, so that the memory of a large space does not add up. */
#include "checkpoint.h"
#include "core/base/arena.h"

#include <stdlib.h>
#include <string.h>

/* Entries in one step; with the record they are one commit. Fewer than a change may have: each
 * is a lock that is held, and lock checkers limit the number of held locks. */
#define CHECKPOINT_STEP_ENTRIES (NG_CHANGES_MAX - 16)
/* Bytes of text in one step. */
#define CHECKPOINT_STEP_BYTES ((uint64_t)16 * 1024 * 1024)
/* Retries of a step that ran out of memory. */
#define CHECKPOINT_TRIES 16

struct checkpoint_job {
    struct agent_notebook *self;
    struct ng_call *caller; /* the call to answer; used by one step at a time */
    struct ng_deferred *deferred;
    struct checkpoint_intent intent;
    struct checkpoint_plan plan;
    size_t next;    /* next step of the plan */
    unsigned tries; /* retries after running out of memory */
    bool live;
    bool aside;     /* the step that restores the journal also keeps the present one aside */
    bool unchanged; /* the step that keeps the journal aside has failed for good */
    struct arena texts; /* of the intent */
};

/* ---- life ---- */

static void checkpoint_job_free(struct checkpoint_job *job)
{
    if (job->live) {
        checkpoint_live_remove(job->self->checkpoint, job->intent.token);
    }
    checkpoint_plan_free(&job->plan);
    arena_done(&job->texts);
    free(job);
}

static int checkpoint_job_answer(const struct checkpoint_job *job)
{
    struct ng_call *call = job->caller;
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    memory_put(call, writer, "status", ng_str_of("restored"));
    memory_put(call, writer, "checkpoint_id", job->intent.checkpoint);
    memory_put(call, writer, "previous_checkpoint_id", job->intent.previous);
    host->json_name(writer, "notebooks_restored");
    host->json_bool(writer, job->intent.notebooks);
    checkpoint_plan_write(call, writer, &job->plan,
                          job->intent.notebooks ? CHECKPOINT_BACK : CHECKPOINT_KEPT);
    host->json_end(writer);
    return NG_OK;
}

/* Errors that a retry may mend. Any other error would keep the gateway from ever being
 * ready. */
static bool checkpoint_may_mend(int rc)
{
    return rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT || rc == NG_EBUSY ||
           rc == NG_ECANCELLED || rc == NG_EFULL;
}

/* The message of a restore that has failed. */
static int checkpoint_job_fail(const struct checkpoint_job *job, int rc)
{
    const struct checkpoint_intent *intent = &job->intent;
    bool may_mend = checkpoint_may_mend(rc);
    if (job->unchanged) {
        return ng_fail(job->caller, rc,
                       "the restore of checkpoint %.*s failed, and nothing was changed; the "
                       "gateway's log says why",
                       (int)intent->checkpoint.len, intent->checkpoint.data);
    }
    return ng_fail(job->caller, rc,
                   "the restore of checkpoint %.*s was interrupted; %s. The state before it is "
                   "checkpoint %.*s",
                   (int)intent->checkpoint.len, intent->checkpoint.data,
                   may_mend ? "it is finished as soon as the storage allows"
                            : "the gateway's log says why, and it is not tried again",
                   (int)intent->previous.len, intent->previous.data);
}

/* The end of the restore, successful or not. If it failed for a while, the gateway that finds
 * the record next finishes it. */
static int checkpoint_job_end(struct checkpoint_job *job, int rc)
{
    struct ng_call *caller = job->caller;
    struct ng_deferred *deferred = job->deferred;
    if (caller != NULL) {
        if (rc == NG_OK) {
            rc = checkpoint_job_answer(job);
        } else {
            rc = checkpoint_job_fail(job, rc);
        }
    }
    checkpoint_job_free(job);
    if (caller != NULL) {
        caller->host->finish(deferred, rc);
    }
    return rc;
}

static int checkpoint_job_step(struct ng_call *call, void *user);

/* Runs the next step in a call of its own. */
static int checkpoint_job_go_on(struct checkpoint_job *job, struct ng_call *call)
{
    int rc = call->host->background(call, checkpoint_job_step, job);
    if (rc == NG_OK) {
        return NG_OK;
    }
    return checkpoint_job_end(job, rc);
}

int checkpoint_job_start(struct agent_notebook *self, struct ng_call *call,
                         const struct checkpoint_intent *intent, bool answer)
{
    struct checkpoint_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return entry_no_memory(call);
    }
    arena_init(&job->texts, 0);
    job->self = self;
    job->intent = *intent;
    struct ng_str *const texts[] = {&job->intent.space,    &job->intent.checkpoint,
                                    &job->intent.previous, &job->intent.owner,
                                    &job->intent.token,    &job->intent.once};
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        *texts[i] = arena_copy(&job->texts, *texts[i]);
    }
    if (job->texts.failed) {
        checkpoint_job_free(job);
        return entry_no_memory(call);
    }
    int rc = checkpoint_live_add(self->checkpoint, call, job->intent.token);
    job->live = rc == NG_OK;
    if (rc == NG_OK && answer) {
        job->caller = call;
        job->deferred = call->host->defer(call);
        if (job->deferred == NULL) {
            rc = entry_no_memory(call);
        }
    }
    if (rc != NG_OK) {
        checkpoint_job_free(job);
        return rc;
    }
    rc = checkpoint_job_go_on(job, call); /* on failure it has ended the job */
    if (answer) {
        return NG_PENDING;
    }
    return rc;
}

/* ---- the journal ---- */

/* Reads both checkpoints and makes the plan. */
static int checkpoint_job_load(struct checkpoint_job *job, struct ng_call *call,
                               struct checkpoint_view *then, struct checkpoint_view *now)
{
    const struct checkpoint_intent *intent = &job->intent;
    struct ng_str json = {NULL, 0};
    checkpoint_plan_free(&job->plan);
    int rc = checkpoint_get(call, intent->space, intent->checkpoint, &json);
    if (rc == NG_OK) {
        rc = checkpoint_read(call, json, then);
    }
    if (rc == NG_OK) {
        rc = checkpoint_get(call, intent->space, intent->previous, &json);
    }
    if (rc == NG_OK) {
        rc = checkpoint_read(call, json, now);
    }
    if (rc == NG_OK) {
        rc = checkpoint_plan_make(call, then, now, &job->plan);
    }
    if (rc != NG_OK) {
        checkpoint_plan_free(&job->plan);
    }
    return rc;
}

static int checkpoint_job_phase(struct checkpoint_job *job, struct ng_call *call,
                                enum checkpoint_phase phase)
{
    job->intent.phase = phase;
    return checkpoint_intent_begin(call, &job->intent);
}

/* The checkpoint of the present says that the journal is kept aside, but it is not. */
static void checkpoint_job_forget(const struct checkpoint_job *job, struct ng_call *call)
{
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    if (NG_HAS(functions, checkpoint_delete) && functions->checkpoint_delete != NULL) {
        (void)functions->checkpoint_delete(handle, call, job->intent.space,
                                           job->intent.previous);
    }
}

/* Removes the record. If the call has an idempotency key, the same commit records that it is
 * done: a retry must not restore again, over later memories. */
static int checkpoint_job_finish(struct checkpoint_job *job, struct ng_call *call, int rc)
{
    bool did = rc == NG_OK && job->intent.phase != CHECKPOINT_BEGUN;
    size_t count = 1;
    job->unchanged = rc != NG_OK && job->aside && job->intent.phase == CHECKPOINT_JOURNAL;
    if (job->unchanged) {
        checkpoint_job_forget(job, call);
    }
    job->intent.phase = CHECKPOINT_FINISHED;
    struct ng_change changes[2] = {checkpoint_intent_change(call, &job->intent)};
    if (did && job->intent.once.len > 0) {
        changes[count++] = checkpoint_done_change(call, &job->intent);
    }
    if (changes[0].user == NULL || changes[count - 1].user == NULL) {
        return entry_no_memory(call);
    }
    return call->host->change_wait(call, changes, count);
}

static int checkpoint_job_journal(struct checkpoint_job *job, struct ng_call *call)
{
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    struct checkpoint_view then;
    struct checkpoint_view now;
    int rc = checkpoint_job_load(job, call, &then, &now);
    /* The record must still belong to this run: another gateway may have taken it over. */
    if (rc == NG_OK) {
        rc = checkpoint_job_phase(job, call, CHECKPOINT_JOURNAL);
    }
    job->aside = rc == NG_OK && now.aside;
    if (job->aside) {
        rc = functions->restore_aside(handle, call, job->intent.space, job->intent.previous,
                                      then.text);
    } else if (rc == NG_OK) {
        rc = functions->restore_over(handle, call, job->intent.space, then.text, now.text);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return checkpoint_job_phase(job, call, CHECKPOINT_ENTRIES);
}

/* ---- the entries ---- */

/* One entry of a step. It changes only if it is as it was when the restore began, so that a
 * step can be retried and no later change is overwritten. */
struct checkpoint_back {
    struct checkpoint_step *step;
    struct ng_change change;
};

static int checkpoint_back_change(struct ng_call *call, const struct ng_doc *present,
                                  struct ng_draft *next, void *user)
{
    const struct checkpoint_back *back = user;
    uint64_t there = 0;
    if (entry_exists(present)) {
        there = present->revision;
    }
    back->step->made = 0;
    if (there != back->step->present) {
        back->step->outcome = CHECKPOINT_BUSY;
        return NG_OK;
    }
    back->step->outcome = CHECKPOINT_RESTORED;
    back->step->made = present->revision + 1;
    return back->change.fn(call, present, next, back->change.user);
}

/* Prepares one entry; *ret_bytes: of its text. A version that is no longer kept is no error. */
static int checkpoint_back_prepare(struct checkpoint_job *job, struct ng_call *call,
                                   struct checkpoint_back *back, uint64_t *ret_bytes)
{
    const struct checkpoint_entry *entry = &back->step->entry;
    const struct ng_doc *doc = NULL;
    struct ng_key key = {ng_str_of(entry_collections[entry->collection]), job->intent.space,
                         entry->id};
    int rc = call->host->get(call, &key, entry->version, &doc);
    if (rc == NG_OK) {
        rc = entry_restore_prepare(job->self, call, &key, entry->version, false, &back->change);
    }
    if (rc == NG_ENOTFOUND || rc == AGENT_NOTEBOOK_ENTRY_NOT_FOUND ||
        rc == AGENT_NOTEBOOK_VERSION_NOT_FOUND) {
        back->step->outcome = CHECKPOINT_GONE;
        return NG_ENOTFOUND;
    }
    if (rc == NG_OK) {
        *ret_bytes += doc->text_size;
    }
    return rc;
}

/* As many entries as fit into one commit, and the record with them. */
static int checkpoint_job_entries(struct checkpoint_job *job, struct ng_call *call)
{
    struct checkpoint_back *backs = ng_alloc(call, CHECKPOINT_STEP_ENTRIES * sizeof(*backs));
    struct ng_change *changes = ng_alloc(call, NG_CHANGES_MAX * sizeof(*changes));
    uint64_t bytes = 0;
    size_t count = 0;
    int rc = NG_OK;
    if (backs == NULL || changes == NULL) {
        return entry_no_memory(call);
    }
    while (rc == NG_OK && job->next < job->plan.count && count < CHECKPOINT_STEP_ENTRIES &&
           bytes < CHECKPOINT_STEP_BYTES) {
        struct checkpoint_step *step = &job->plan.steps[job->next++];
        if (step->fate == CHECKPOINT_MADE) {
            continue;
        }
        struct checkpoint_back *back = &backs[count];
        memset(back, 0, sizeof(*back));
        back->step = step;
        rc = checkpoint_back_prepare(job, call, back, &bytes);
        if (rc == NG_OK) {
            changes[count] = back->change;
            changes[count].fn = checkpoint_back_change;
            changes[count++].user = back;
        }
        if (rc == NG_ENOTFOUND) {
            rc = NG_OK;
        }
    }
    if (rc != NG_OK) {
        return rc;
    }
    changes[count] = checkpoint_intent_change(call, &job->intent);
    if (changes[count].user == NULL) {
        return entry_no_memory(call);
    }
    return call->host->change_wait(call, changes, count + 1);
}

/* ---- the steps ---- */

static void checkpoint_job_tell(const struct checkpoint_job *job)
{
    if (job->caller != NULL) {
        job->caller->host->progress(job->caller, (double)job->next, (double)job->plan.count,
                                    ng_str_of("notebook entries"));
    }
}

static int checkpoint_job_step(struct ng_call *call, void *user)
{
    struct checkpoint_job *job = user;
    struct checkpoint_view then;
    struct checkpoint_view now;
    size_t first = job->next;
    int rc = NG_OK;
    switch (job->intent.phase) {
    case CHECKPOINT_JOURNAL:
        rc = checkpoint_job_journal(job, call);
        break;
    case CHECKPOINT_ENTRIES:
        if (job->plan.steps == NULL) { /* an interrupted one */
            rc = checkpoint_job_load(job, call, &then, &now);
        }
        if (rc == NG_OK) {
            rc = checkpoint_job_entries(job, call);
        }
        if (rc != NG_OK) {
            job->next = first;
        }
        checkpoint_job_tell(job);
        break;
    default: /* nothing was changed yet: drop it */
        job->next = job->plan.count;
        break;
    }
    if (rc == NG_EINTERNAL && job->tries++ < CHECKPOINT_TRIES) {
        return checkpoint_job_go_on(job, call); /* retry in a call with memory left */
    }
    bool done = !job->intent.notebooks || job->next >= job->plan.count;
    if (rc == NG_OK && !done) {
        return checkpoint_job_go_on(job, call);
    }
    if (rc == NG_OK || !checkpoint_may_mend(rc)) {
        int finished = checkpoint_job_finish(job, call, rc);
        if (rc == NG_OK) {
            rc = finished;
        }
    }
    return checkpoint_job_end(job, rc);
}

/* ---- the tool ---- */

/* Saves the present before anything changes; until then the call can be cancelled. If the
 * journal is too large for a checkpoint, the step that restores the journal keeps the present
 * one aside instead. It also does so if the restored one was kept aside. */
static int checkpoint_restore_keep(struct ng_call *call, struct checkpoint_intent *intent,
                                   bool aside)
{
    struct ng_str json = {NULL, 0};
    struct ng_str label =
        call->host->format(call, "before the restore of %.*s", (int)intent->checkpoint.len,
                           intent->checkpoint.data);
    int rc = NG_ETOOLARGE;
    if (!aside) {
        rc = checkpoint_take(call, intent->space, label, &intent->previous, &json);
    }
    if ((rc == NG_ETOOLARGE || rc == NG_ETIMEOUT) && !call->host->cancelled(call)) {
        rc = checkpoint_take_aside(call, intent->space, label, &intent->previous);
    }
    if (rc == NG_OK && call->host->cancelled(call)) {
        rc = ng_fail(call, NG_ECANCELLED, "cancelled; nothing was changed");
    }
    if (rc == NG_OK) {
        intent->phase = CHECKPOINT_JOURNAL;
        rc = checkpoint_intent_begin(call, intent);
    }
    return rc;
}

/* Removes the record; the error that led here stays the answer. */
static void checkpoint_restore_drop(struct ng_call *call, struct checkpoint_intent *intent)
{
    intent->phase = CHECKPOINT_FINISHED;
    if (checkpoint_intent_begin(call, intent) != NG_OK) {
        call->host->log(call, NG_LOG_WARNING,
                        "the record of a restore that did not begin could not be removed; it "
                        "is removed when its lease expires");
    }
}

/* The answer of a restore that an earlier attempt of the call has finished. */
static int checkpoint_restore_told(struct agent_notebook *self, struct ng_call *call,
                                   const struct checkpoint_intent *done)
{
    struct checkpoint_view then;
    struct checkpoint_view now;
    struct checkpoint_job job = {.self = self, .caller = call, .intent = *done};
    int rc = checkpoint_job_load(&job, call, &then, &now);
    if (rc == NG_OK) {
        rc = checkpoint_job_answer(&job);
    }
    checkpoint_plan_free(&job.plan);
    return rc;
}

/* Writes the record, so that no other gateway restores this space. *ret_done: an earlier
 * attempt of the same call has finished, and its answer is given again. */
static int checkpoint_restore_begun(struct agent_notebook *self, struct ng_call *call,
                                    struct checkpoint_intent *intent, bool aside,
                                    bool *ret_done)
{
    struct checkpoint_intent before = *intent;
    int rc = checkpoint_done_find(call, &before, ret_done);
    if (rc != NG_OK) {
        return rc;
    }
    if (*ret_done) {
        return checkpoint_restore_told(self, call, &before);
    }
    return checkpoint_restore_keep(call, intent, aside);
}

int checkpoint_restore_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct agent_notebook *notebook = self;
    const struct ng_host *host = call->host;
    struct checkpoint_view view;
    struct ng_str json = {NULL, 0};
    struct checkpoint_intent intent = {
        .space = call->caller->space,
        .checkpoint = ng_arg_text(call, "checkpoint_id"),
        .owner = checkpoint_owner(notebook->checkpoint),
        .token = memory_uuid(call),
        .once = host->idempotency_token(call),
        .phase = CHECKPOINT_BEGUN,
        .notebooks = host->json_type(ng_arg(call, "notebooks")) == NG_TYPE_TRUE,
    };
    bool done = false;
    (void)args;
    if (intent.token.data == NULL) {
        return NG_EINTERNAL;
    }
    int rc = checkpoint_get(call, intent.space, intent.checkpoint, &json);
    if (rc != NG_OK) {
        return rc;
    }
    rc = checkpoint_read(call, json, &view);
    if (rc != NG_OK) {
        return rc;
    }
    rc = checkpoint_live_add(notebook->checkpoint, call, intent.token);
    if (rc != NG_OK) {
        return rc;
    }
    rc = checkpoint_intent_begin(call, &intent);
    if (rc == NG_EBUSY) { /* by a run that has died */
        (void)checkpoint_recover_soon(notebook, call);
    }
    if (rc == NG_OK) {
        rc = checkpoint_restore_begun(notebook, call, &intent, view.aside, &done);
        if (!(rc != NG_OK || done)) {
            rc = checkpoint_job_start(notebook, call, &intent, true);
        }
        if (done || (rc != NG_OK && rc != NG_PENDING)) {
            checkpoint_restore_drop(call, &intent);
        }
    }
    checkpoint_live_remove(notebook->checkpoint, intent.token);
    return rc;
}
