/* SPDX-License-Identifier: MIT */
/* undo_plan.c - plan of one document: its groups of changes, newest first, are taken out of
 * the present content. */
#include "core/base/merge/merge_place.h"
#include "core/base/merge/merge_text.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/merge/members_merge.h"
#include "core/store/store.h"
#include "undo.h"

/* Bytes of a conflict in JSON: MERGE_PLACES_MAX places with two sides each. */
#define CONFLICT_BYTES_MAX ((size_t)1 << 20)

int undo_plan_fail(struct undo_plan *plan, int rc)
{
    struct ng_str message = plan->call->staged.message;
    return call_fail(plan->undo->call, rc, "%.*s", (int)message.len, message.data);
}

void undo_plan_refuse(struct undo_plan *plan, const char *reason)
{
    plan->result = NG_UNDO_CONFLICT;
    plan->conflict = arena_printf(&plan->call->arena, "{\"reason\":\"%s\"}", reason);
}

int undo_plan_conflict(struct undo_plan *plan, const struct merge_conflict *conflict)
{
    struct buf json;
    struct ng_writer writer;
    buf_init(&json, CONFLICT_BYTES_MAX);
    json_writer_init(&writer, &json);
    merge_conflict_json(&writer, conflict);
    plan->result = NG_UNDO_CONFLICT;
    plan->conflict = arena_copy(&plan->call->arena, buf_str(&json));
    bool complete = json.rc == NG_OK && plan->conflict.data != NULL;
    buf_done(&json);
    return complete ? NG_OK : call_no_memory(plan->call);
}

/* The content at a revision; 0: there was none. *ret_kept: it can be read. */
static int plan_content(struct undo_plan *plan, uint64_t revision, struct content *ret,
                        bool *ret_kept)
{
    const struct ng_doc *doc = NULL;
    struct call *call = plan->call;
    *ret = (struct content){0};
    *ret_kept = true;
    if (revision == 0) {
        return NG_OK;
    }
    int rc = store_get(call->gateway->store, call, &plan->doc->key, revision, &doc);
    if (rc == NG_ENOTFOUND) {
        call_reset_result(call);
        *ret_kept = false;
        return NG_OK;
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = content_of(&call->arena, plan->doc->collection, doc, ret);
    return rc == NG_OK ? rc : call_no_memory(call);
}

int undo_plan_place(const struct undo_plan *plan, struct merge_conflict *conflict,
                    struct ng_str present)
{
    if (conflict->place_count == 0 || str_equal(present, plan->next.text)) {
        return NG_OK;
    }
    return merge_place_conflict(plan->next.text, present, conflict);
}

/* Of the text and of the members. True: there is one. */
static bool plan_join(struct merge_result *text, const struct merge_result *members)
{
    if (members->conflict.reason != MERGE_CLEAN) {
        merge_conflict_join(&text->conflict, &members->conflict);
    }
    return text->conflict.reason != MERGE_CLEAN;
}

/* The merged content takes the place of what is there. */
static int plan_take(struct undo_plan *plan, struct merge_result *text,
                     struct merge_result *members, struct ng_str present)
{
    struct arena *arena = &plan->call->arena;
    if (undo_plan_place(plan, &text->conflict, present) != NG_OK) {
        return call_no_memory(plan->call);
    }
    if (plan_join(text, members)) {
        return text->conflict.sides.rc == NG_OK ? undo_plan_conflict(plan, &text->conflict)
                                                : call_no_memory(plan->call);
    }
    struct ng_str json = arena_copy(arena, buf_str(&members->text));
    if (text->text.rc != NG_OK || json.data == NULL ||
        json_parse(arena, json, JSON_DEPTH_DEFAULT, &plan->next.members, NULL) != NG_OK) {
        return call_no_memory(plan->call);
    }
    buf_done(&plan->text);
    plan->text = text->text;
    buf_init(&text->text, 0);
    plan->next.text = buf_str(&plan->text);
    plan->next.text = str_or(plan->next.text, ng_str_of(""));
    return NG_OK;
}

static int plan_merge(struct undo_plan *plan, const struct undo_group *group,
                      struct ng_str present)
{
    const struct content *base = &group->base;
    const struct content *before = &group->before;
    struct ng_str names[CONTENT_MEMBERS_MAX];
    size_t count = content_names(plan->doc->collection, names);
    const struct members_sides sides = {base->members, plan->next.members, before->members};
    struct merge_result text = {0};
    struct merge_result members = {0};
    int rc = merge_text(base->text, plan->next.text, before->text, &text);
    if (rc == NG_OK) {
        rc = members_merge(&sides, names, count, &members);
    }
    rc = rc == NG_OK ? plan_take(plan, &text, &members, present) : call_no_memory(plan->call);
    merge_result_done(&text);
    merge_result_done(&members);
    return rc;
}

/* A group is taken out. present: the text that is there. */
static int plan_group(struct undo_plan *plan, const struct undo_group *group,
                      struct ng_str present)
{
    const struct content *base = &group->base;
    const struct content *before = &group->before;
    if (content_equal(&plan->next, base)) {
        plan->next = *before;
    } else if (content_equal(base, before) || content_equal(&plan->next, before)) {
        return NG_OK;
    } else if (!before->exists) {
        undo_plan_refuse(plan, "changed_since");
    } else if (!base->exists) {
        undo_plan_refuse(plan, "recreated");
    } else if (!plan->next.exists) {
        undo_plan_refuse(plan, "gone");
    } else {
        return plan_merge(plan, group, present);
    }
    return NG_OK;
}

int undo_plan_merge(struct undo_plan *plan, const struct ng_doc *newest)
{
    struct content present;
    plan->result = NG_UNDO_DONE;
    plan->conflict = STR_NONE;
    plan->present = newest->revision;
    int rc = content_of(&plan->call->arena, plan->doc->collection, newest, &present);
    if (rc != NG_OK) {
        return call_no_memory(plan->call);
    }
    plan->next = present;
    for (size_t i = 0; i < plan->group_count && plan->result == NG_UNDO_DONE; i++) {
        rc = plan_group(plan, &plan->groups[i], present.text);
        if (rc != NG_OK) {
            return rc;
        }
    }
    if (plan->result == NG_UNDO_DONE && content_equal(&plan->next, &present)) {
        plan->result = NG_UNDO_UNCHANGED;
    }
    if (plan->result == NG_UNDO_DONE) {
        content_lines(str_or(present.text, ng_str_of("")),
                      str_or(plan->next.text, ng_str_of("")), &plan->lines_added,
                      &plan->lines_removed);
    }
    return NG_OK;
}

static int plan_before(struct undo_plan *plan, uint64_t revision, struct content *ret,
                       bool *ret_kept)
{
    return plan_content(plan, revision - 1, ret, ret_kept);
}

/* Is the revision in a group with the one before it in the list? A move begins a group. */
static bool load_goes_on(const struct undo_doc *doc, size_t at)
{
    return at > 0 && doc->revisions[at - 1] + 1 == doc->revisions[at] &&
           doc->revisions[at] != doc->moved_at;
}

/* The groups of plan->part. */
static int load_part(struct undo_plan *plan, undo_read_fn *after, undo_read_fn *before)
{
    const struct undo_doc *doc = plan->part;
    size_t end = doc->count;
    bool kept = true;
    bool fits = true;
    int rc = NG_OK;
    while (rc == NG_OK && end > 0 && kept && fits) {
        struct undo_group *group = &plan->groups[plan->group_count++];
        size_t begin = end - 1;
        while (load_goes_on(doc, begin)) {
            begin--;
        }
        *group = (struct undo_group){.base = {.exists = false}};
        rc = after(plan, doc->revisions[end - 1], &group->base, &kept);
        if (rc == NG_OK && kept) {
            rc = before(plan, doc->revisions[begin], &group->before, &kept);
        }
        plan->bytes += group->base.text.len + group->before.text.len;
        fits = plan->bytes <= UNDO_PLAN_BYTES;
        end = begin;
    }
    if (rc == NG_OK && (!kept || !fits)) {
        undo_plan_refuse(plan, kept ? "too_large" : "not_kept");
    }
    return rc;
}

int undo_plan_load(struct undo_plan *plan, undo_read_fn *after, undo_read_fn *before)
{
    size_t count = 0;
    int rc = NG_OK;
    for (const struct undo_doc *doc = plan->doc; doc != NULL; doc = doc->older) {
        count += doc->count;
    }
    plan->groups = arena_alloc(&plan->call->arena, count * sizeof(*plan->groups));
    if (plan->groups == NULL) {
        return call_no_memory(plan->call);
    }
    plan->part = plan->doc;
    while (rc == NG_OK && plan->result == NG_UNDO_DONE && plan->part != NULL) {
        rc = load_part(plan, after, before);
        plan->part = plan->part->older;
    }
    return rc;
}

/* The JSON of a deleted document before its deletion, if it is kept. */
static int plan_last(struct undo_plan *plan, const struct ng_doc *newest)
{
    const struct ng_doc *last = NULL;
    if (newest->revision < 2 || !newest->deleted) {
        return NG_OK;
    }
    struct call *call = plan->call;
    int rc =
        store_get(call->gateway->store, call, &plan->doc->key, newest->revision - 1, &last);
    if (rc == NG_ENOTFOUND) {
        call_reset_result(call);
        return NG_OK;
    }
    if (rc != NG_OK) {
        return rc;
    }
    plan->last = last->deleted ? NULL : last->body;
    return NG_OK;
}

bool undo_needs_agent(const struct call *call, struct ng_str path)
{
    return str_ends(path, ".ipynb") && call->caller.mode != NG_MODE_AGENT;
}

/* May the caller take these changes back? */
static bool plan_is_forbidden(struct undo_plan *plan)
{
    struct call *call = plan->undo->call;
    bool forbidden = false;
    for (const struct undo_doc *doc = plan->doc; doc != NULL && !forbidden; doc = doc->older) {
        bool others = doc->is_foreign && call->caller.role != NG_ROLE_ADMIN;
        bool cells = doc->is_file && undo_needs_agent(call, doc->key.id);
        forbidden = others || cells || !dispatch_may_change(call, doc->shown.collection);
    }
    return forbidden;
}

static int plan_make(struct undo_plan *plan)
{
    struct undo_doc *doc = plan->doc;
    const struct ng_doc *newest = NULL;
    if (doc->collection == NULL && !doc->is_file) {
        undo_plan_refuse(plan, "not_kept");
        return NG_OK;
    }
    if (doc->is_file) {
        return undo_file_plan(plan);
    }
    struct call *call = plan->call;
    int rc = undo_plan_load(plan, plan_content, plan_before);
    if (rc == NG_OK && plan->result == NG_UNDO_DONE) {
        rc = store_get(call->gateway->store, call, &doc->key, 0, &newest);
    }
    if (rc != NG_OK || newest == NULL) {
        return rc;
    }
    rc = undo_plan_merge(plan, newest);
    plan->bytes += newest->text.len + plan->next.text.len;
    return rc == NG_OK && plan->result == NG_UNDO_DONE ? plan_last(plan, newest) : rc;
}

int undo_plan(struct undo_plan *plan)
{
    bool taken = false;
    plan->result = NG_UNDO_DONE;
    buf_init(&plan->text, 0);
    if (plan_is_forbidden(plan)) {
        undo_plan_refuse(plan, "forbidden");
        return NG_OK;
    }
    int rc = plan_make(plan);
    if (rc == NG_OK && plan->result == NG_UNDO_CONFLICT) {
        rc = undo_taken(plan, &taken);
    }
    if (rc == NG_OK && taken) {
        plan->result = NG_UNDO_UNCHANGED;
        plan->conflict = STR_NONE;
    }
    return rc;
}

void undo_plan_done(struct undo_plan *plan)
{
    buf_done(&plan->text);
    call_unref(plan->call);
}
