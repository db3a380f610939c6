/* SPDX-License-Identifier: MIT */
/* merge_text.c - three-way merge of the content of a text document. */
#include "merge_text.h"

#include "core/base/utf8.h"
#include "merge3.h"

static bool text_has_lines(struct ng_str text)
{
    return text.len == 0 || (memchr(text.data, '\0', text.len) == NULL && utf8_valid(text));
}

static void text_conflicts(const struct merge3 *merge, struct merge_conflict *conflict)
{
    for (size_t i = 0; i < merge->conflict_count && i < MERGE3_CONFLICTS_MAX; i++) {
        const struct merge3_conflict *at = &merge->conflicts[i];
        merge_conflict_add(conflict, MERGE_OVERLAP, at->line, at->present, at->before);
    }
    conflict->count = merge->conflict_count;
}

int merge_text(struct ng_str base, struct ng_str present, struct ng_str before,
               struct merge_result *ret)
{
    struct merge3 merge;
    if (merge_result_is_simple(ret, base, present, before)) {
        return ret->text.rc;
    }
    if (base.len > MERGE3_TEXT_MAX || present.len > MERGE3_TEXT_MAX ||
        before.len > MERGE3_TEXT_MAX) {
        merge_conflict_set(&ret->conflict, MERGE_TOO_LARGE);
        return NG_OK;
    }
    if (!text_has_lines(base) || !text_has_lines(present) || !text_has_lines(before)) {
        merge_conflict_set(&ret->conflict, MERGE_NOT_TEXT);
        return NG_OK;
    }
    int rc = merge3_texts(base, present, before, &merge);
    if (rc == NG_OK && merge.conflict_count > 0) {
        text_conflicts(&merge, &ret->conflict);
        rc = ret->conflict.sides.rc;
    } else if (rc == NG_OK) {
        ret->text = merge.text;
        merge.text = (struct buf){0};
    }
    merge3_done(&merge);
    return rc;
}
