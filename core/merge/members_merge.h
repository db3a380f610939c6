/* SPDX-License-Identifier: MIT */
/* members_merge.h - three-way merge of the members of a document that people write. */
#ifndef NOTEGATE_CORE_MEMBERS_MERGE_H
#define NOTEGATE_CORE_MEMBERS_MERGE_H

#include "core/base/merge/merge_conflict.h"
#include "core/json/json.h"

/* Bytes of the merged object. */
#define MEMBERS_MERGE_MAX ((size_t)16 << 20)

/* Objects; NULL is one without members. */
struct members_sides {
    const struct ng_value *base, *present, *before;
};

/*
 * Merges the members named in `names` three ways, each as a whole. An absent member is a value
 * of its own. Values are compared as JSON values: neither the order of members nor the spelling
 * of numbers counts. All other members are those of present, and its order stays; members that
 * it does not have come last. The text of the result is the object. `ret` is zeroed by the
 * caller. NG_OK: a result or a conflict, whose sides are `name: JSON`; NG_EINTERNAL: out of
 * memory. merge_result_done() in any case.
 */
int members_merge(const struct members_sides *sides, const struct ng_str *names, size_t count,
                  struct merge_result *ret);

#endif
