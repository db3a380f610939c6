/* SPDX-License-Identifier: MIT */
/* checkpoint_plan.c - the entries that differ between a checkpoint and the present, and the
 * report of them. */
#include "checkpoint.h"
#include "core/base/array.h"
#include "core/base/text/json_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Entries that an answer lists; all are counted. */
#define CHECKPOINT_NAMED_MAX 1000
/* Bytes of a step in the answer, without its id, and of what follows the steps. */
#define CHECKPOINT_STEP_MAX 400
#define CHECKPOINT_STEPS_MAX ((size_t)1 << 32)

/* The step for the first entries of both lists; *ret_fate 0: none. */
static void checkpoint_next(const struct checkpoint_view *then,
                            const struct checkpoint_view *now, size_t at[2],
                            struct checkpoint_step *ret)
{
    const struct checkpoint_entry *old = NULL;
    if (at[0] < then->count) {
        old = &then->entries[at[0]];
    }
    const struct checkpoint_entry *new = NULL;
    if (at[1] < now->count) {
        new = &now->entries[at[1]];
    }
    assert(old != NULL || new != NULL);
    int order = old == NULL ? 1 : -1;
    if (old != NULL && new != NULL) {
        order = checkpoint_order(old, new);
    }
    memset(ret, 0, sizeof(*ret));
    if (order <= 0) {
        ret->entry = *old;
        ret->fate = CHECKPOINT_DELETED;
        at[0]++;
    }
    if (order == 0) {
        ret->present = new->version;
        ret->fate = CHECKPOINT_MOVED;
        if (old->version == new->version) {
            ret->fate = 0;
        }
        at[1]++;
    }
    if (order > 0) {
        ret->entry = *new;
        ret->present = new->version;
        ret->fate = CHECKPOINT_MADE;
        at[1]++;
    }
}

static int checkpoint_plan_room(struct checkpoint_plan *plan)
{
    return array_reserve((void **)&plan->steps, &plan->cap, plan->count + 1,
                         sizeof(*plan->steps), CHECKPOINT_STEPS_MAX);
}

int checkpoint_plan_make(struct ng_call *call, const struct checkpoint_view *then,
                         const struct checkpoint_view *now, struct checkpoint_plan *ret)
{
    struct checkpoint_plan plan = {0};
    size_t at[2] = {0, 0};
    arena_init(&plan.ids, 0);
    int rc = checkpoint_plan_room(&plan); /* also of a plan without steps: it is made */
    while (rc == NG_OK && (at[0] < then->count || at[1] < now->count)) {
        struct checkpoint_step step;
        checkpoint_next(then, now, at, &step);
        if (step.fate != 0) {
            step.entry.id = arena_copy(&plan.ids, step.entry.id);
            plan.steps[plan.count++] = step;
            rc = checkpoint_plan_room(&plan);
        }
    }
    if (rc != NG_OK || plan.ids.failed) {
        checkpoint_plan_free(&plan);
        return entry_no_memory(call);
    }
    *ret = plan;
    return NG_OK;
}

void checkpoint_plan_free(struct checkpoint_plan *plan)
{
    free(plan->steps);
    arena_done(&plan->ids);
    memset(plan, 0, sizeof(*plan));
}

/* ---- telling ---- */

static const char *checkpoint_outcome_name(const struct checkpoint_step *step)
{
    switch (step->outcome) {
    case CHECKPOINT_RESTORED:
        return "restored";
    case CHECKPOINT_BUSY:
        return "changed_meanwhile";
    case CHECKPOINT_GONE:
        return "version_gone";
    default:
        return "kept";
    }
}

static void checkpoint_step_write(struct ng_call *call, struct ng_writer *writer,
                                  const struct checkpoint_step *step, enum checkpoint_tell tell)
{
    static const char *const fates[] = {"", "updated", "deleted", "created"};
    call->host->json_object(writer);
    memory_put(call, writer, "notebook_id", step->entry.id);
    memory_put(call, writer, "collection",
               ng_str_of(entry_collections[step->entry.collection]));
    memory_put(call, writer, "since", ng_str_of(fates[step->fate]));
    if (step->fate != CHECKPOINT_MADE) {
        entry_put_int(call, writer, "checkpoint_version", step->entry.version);
    }
    if (step->present > 0) {
        entry_put_int(call, writer, "version", step->present);
    }
    if (tell != CHECKPOINT_TOLD) {
        memory_put(call, writer, "outcome", ng_str_of(checkpoint_outcome_name(step)));
    }
    if (step->made > 0) {
        entry_put_int(call, writer, "new_version", step->made);
    }
    call->host->json_end(writer);
}

void checkpoint_plan_write(struct ng_call *call, struct ng_writer *writer,
                           const struct checkpoint_plan *plan, enum checkpoint_tell tell)
{
    const struct ng_host *host = call->host;
    uint64_t counts[4] = {0};
    uint64_t done = 0;
    for (size_t i = 0; i < plan->count; i++) {
        counts[plan->steps[i].fate]++;
        done += plan->steps[i].outcome == CHECKPOINT_RESTORED;
    }
    host->json_name(writer, "notebooks");
    host->json_object(writer);
    entry_put_int(call, writer, "updated", counts[CHECKPOINT_MOVED]);
    entry_put_int(call, writer, "deleted", counts[CHECKPOINT_DELETED]);
    entry_put_int(call, writer, "created", counts[CHECKPOINT_MADE]);
    if (tell == CHECKPOINT_BACK) {
        entry_put_int(call, writer, "restored", done);
    }
    host->json_name(writer, "moved");
    host->json_array(writer);
    size_t named = 0;
    while (named < plan->count && named < CHECKPOINT_NAMED_MAX &&
           JSON_GROWTH_MAX * plan->steps[named].entry.id.len + CHECKPOINT_STEP_MAX <=
               host->answer_room(call)) {
        checkpoint_step_write(call, writer, &plan->steps[named++], tell);
    }
    host->json_end(writer);
    host->json_name(writer, "truncated");
    host->json_bool(writer, plan->count > named);
    host->json_end(writer);
}
