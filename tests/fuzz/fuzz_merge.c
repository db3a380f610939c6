/* SPDX-License-Identifier: MIT */
/* fuzz_merge.c - three texts with a record separator (0x1e) between them: base, present and
 * before of a merge, and three revisions whose lines are traced. */
#include <stdlib.h>
#include <string.h>

#include "core/base/merge/blame.h"
#include "core/base/merge/line_counts.h"
#include "core/base/merge/merge3.h"
#include "core/base/merge/merge_order.h"
#include "core/base/str.h"

#define INPUT_BYTES_MAX 8192
#define IDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* The line at *at, which moves behind it; a last empty one is left out. */
static struct ng_str next_line(struct ng_str text, size_t *at)
{
    const char *end = memchr(text.data + *at, '\n', text.len - *at);
    size_t to = end == NULL ? text.len : (size_t)(end - text.data);
    struct ng_str line = str_make(text.data + *at, to - *at);
    *at = to + 1;
    return line;
}

static size_t count_lines(struct ng_str text)
{
    size_t count = text.len > 0;
    for (size_t i = 0; i < text.len; i++) {
        count += text.data[i] == '\n';
    }
    return count;
}

static bool has_line(struct ng_str text, struct ng_str wanted)
{
    for (size_t at = 0; at < text.len;) {
        if (str_equal(next_line(text, &at), wanted)) {
            return true;
        }
    }
    return wanted.len == 0;
}

/* ---- merges ---- */

static void check_merge(const struct ng_str texts[3])
{
    struct merge3 merge;
    struct merge3 again;
    must(merge3_texts(texts[0], texts[1], texts[2], &merge) == NG_OK);
    if (merge.conflict_count == 0) {
        struct ng_str merged = buf_str(&merge.text);
        for (size_t at = 0; at < merged.len;) {
            struct ng_str line = next_line(merged, &at);
            must(has_line(texts[1], line) || has_line(texts[2], line));
        }
        must(merge3_texts(merged, merged, texts[1], &again) == NG_OK);
        must(again.conflict_count == 0 && str_equal(buf_str(&again.text), texts[1]));
        merge3_done(&again);
    }
    for (size_t i = 0; i < merge.conflict_count && i < MERGE3_CONFLICTS_MAX; i++) {
        const struct merge3_conflict *conflict = &merge.conflicts[i];
        must(conflict->line > 0 &&
             conflict->line <= count_lines(texts[1]) + (texts[1].len == 0));
        must(conflict->present.len <= MERGE3_SIDE_MAX);
        must(conflict->before.len <= MERGE3_SIDE_MAX);
    }
    merge3_done(&merge);
    must(merge3_texts(texts[0], texts[0], texts[2], &merge) == NG_OK);
    must(merge.conflict_count == 0 && str_equal(buf_str(&merge.text), texts[2]));
    merge3_done(&merge);
}

static void check_order(const struct ng_str texts[3])
{
    static struct ng_str ids[3][IDS_MAX];
    struct merge_list lists[3];
    struct merge_order order;
    for (int list = 0; list < 3; list++) {
        lists[list] = (struct merge_list){ids[list], 0};
        for (size_t at = 0; at < texts[list].len && lists[list].count < IDS_MAX;) {
            ids[list][lists[list].count++] = next_line(texts[list], &at);
        }
    }
    int rc = merge_order(&lists[0], &lists[1], &lists[2], &order);
    must(rc == NG_OK || rc == NG_EINVAL);
    for (size_t i = 0; i < order.count; i++) {
        for (size_t j = 0; j < i; j++) {
            must(!str_equal(order.ids[i], order.ids[j]));
        }
    }
    merge_order_done(&order);
}

/* ---- traced lines ---- */

static void check_counts(struct ng_str old, struct ng_str new)
{
    struct ng_splice splice = {0, old.len, new};
    uint64_t added = 0;
    uint64_t removed = 0;
    must(line_counts(old, &splice, &added, &removed) == NG_OK);
    must(added - removed == count_lines(new) - count_lines(old));
    must(added <= count_lines(new) && removed <= count_lines(old));
}

/* From the first text to the last one and back: the same revisions. */
static void check_blame(const struct ng_str texts[3])
{
    struct blame *ways[2] = {NULL, NULL};
    uint64_t *revisions[2] = {NULL, NULL};
    size_t counts[2] = {0, 0};
    must(blame_new(BLAME_FORWARD, texts[0], 1, &ways[0]) == NG_OK);
    must(blame_step_text(ways[0], 2, texts[1]) == NG_OK);
    must(blame_step_text(ways[0], 3, texts[2]) == NG_OK);
    must(blame_new(BLAME_BACKWARD, texts[2], 3, &ways[1]) == NG_OK);
    must(blame_step_text(ways[1], 2, texts[1]) == NG_OK);
    must(blame_step_text(ways[1], 1, texts[0]) == NG_OK);
    for (int way = 0; way < 2; way++) {
        must(blame_result(ways[way], &revisions[way], &counts[way]) == NG_OK);
        must(counts[way] == count_lines(texts[2]));
    }
    must(memcmp(revisions[0], revisions[1], counts[0] * sizeof(revisions[0][0])) == 0);
    for (int way = 0; way < 2; way++) {
        free(revisions[way]);
        blame_free(ways[way]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ng_str texts[3];
    struct ng_str rest = {(const char *)data, size};
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        const char *end = rest.len == 0 ? NULL : memchr(rest.data, 0x1e, rest.len);
        texts[i] = str_make(rest.data, end == NULL ? rest.len : (size_t)(end - rest.data));
        size_t used = texts[i].len + (end != NULL);
        rest = str_make(rest.data + used, rest.len - used);
    }
    check_merge(texts);
    check_order(texts);
    check_counts(texts[0], texts[1]);
    check_blame(texts);
    return 0;
}
