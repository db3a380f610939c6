/* SPDX-License-Identifier: MIT */
/* undo_file_merge.c - the merge of a file's contents: by the kind that a plugin declares for
 * the name of the file, else as text. */
#include "core/base/merge/merge_text.h"
#include "core/base/str.h"
#include "core/history/content_kind.h"
#include "undo.h"

/* Contents that are no text are not merged where the plugin that knows them is not loaded. */
#define FILE_OF_CELLS ".ipynb"

/* The merged content takes the place of the present one. */
static int merge_take(struct undo_plan *plan, struct merge_result *merged)
{
    struct ng_str present = plan->file->there.text;
    if (undo_plan_place(plan, &merged->conflict, present) != NG_OK) {
        return call_no_memory(plan->call);
    }
    if (merged->conflict.reason != MERGE_CLEAN) {
        return merged->conflict.sides.rc == NG_OK ? undo_plan_conflict(plan, &merged->conflict)
                                                  : call_no_memory(plan->call);
    }
    struct ng_str text = arena_copy(&plan->call->arena, buf_str(&merged->text));
    if (merged->text.rc != NG_OK || (merged->text.len > 0 && text.data == NULL)) {
        return call_no_memory(plan->call);
    }
    plan->next.text = str_or(text, ng_str_of(""));
    return NG_OK;
}

/* As text, or only the results that need no merge. */
static int merge_plain(struct undo_plan *plan, const struct ng_sides *sides, bool is_text)
{
    struct merge_result merged = {0};
    int rc = NG_OK;
    if (is_text) {
        rc = merge_text(sides->base, sides->present, sides->before, &merged);
    } else if (!merge_result_is_simple(&merged, sides->base, sides->present, sides->before)) {
        merge_conflict_set(&merged.conflict, MERGE_NOT_TEXT);
    }
    rc = rc == NG_OK ? merge_take(plan, &merged) : call_no_memory(plan->call);
    merge_result_done(&merged);
    return rc;
}

static int merge_by_kind(struct undo_plan *plan, const struct content_kind *kind,
                         const struct ng_sides *sides)
{
    struct ng_str merged = STR_NONE;
    struct ng_str conflict = STR_NONE;
    int rc = content_kind_merge(kind, plan->call, sides, &merged, &conflict);
    if (rc == NG_OK && merged.data == NULL) {
        plan->result = NG_UNDO_CONFLICT;
        plan->conflict = conflict;
    } else if (rc == NG_OK) {
        plan->next.text = merged;
    }
    return rc;
}

int undo_file_merge(struct undo_plan *plan, const struct undo_group *group)
{
    struct ng_str path = plan->file->path;
    const struct ng_sides sides = {group->base.text, plan->next.text, group->before.text};
    struct content_kind kind = {NULL, NULL};
    bool good = true;
    bool known = content_kind_find(plan->call, path, &kind);
    int rc = NG_OK;
    if (known && kind.desc->merge != NULL) {
        rc = merge_by_kind(plan, &kind, &sides);
    } else {
        rc = merge_plain(plan, &sides, !str_ends(path, FILE_OF_CELLS));
    }
    bool merged = rc == NG_OK && plan->result == NG_UNDO_DONE;
    if (merged && known && kind.desc->check != NULL) {
        rc = content_kind_check(&kind, plan->call, &sides, plan->next.text, &good);
    }
    if (rc == NG_OK && !good) {
        undo_plan_refuse(plan, merge_reason_name(MERGE_INVALID_MERGE));
    }
    return rc;
}
