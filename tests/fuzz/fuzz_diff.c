/* SPDX-License-Identifier: MIT */
/* fuzz_diff.c - two texts with a NUL between them: with the lines
 * that go away taken out and those that come put in, one becomes the other. */
#include <stdlib.h>
#include <string.h>

#include "core/base/text/diff.h"

#define INPUT_BYTES_MAX 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static int count_piece(void *user, struct ng_str piece)
{
    *(size_t *)user += piece.len;
    return 0;
}

/* The common lines of both are the same. */
static void check_lines(const struct diff *diff)
{
    size_t from = 0;
    size_t to = 0;
    while (from < diff->old_count || to < diff->new_count) {
        if (from < diff->old_count && diff->gone[from]) {
            from++;
        } else if (to < diff->new_count && diff->come[to]) {
            to++;
        } else {
            must(from < diff->old_count && to < diff->new_count);
            size_t len = diff->old_at[from + 1] - diff->old_at[from];
            must(len == diff->new_at[to + 1] - diff->new_at[to]);
            must(memcmp(diff->old.data + diff->old_at[from++],
                        diff->new.data + diff->new_at[to++], len) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diff diff;
    size_t bytes = 0;
    const uint8_t *nul = size == 0 ? NULL : memchr(data, 0, size);
    if (nul == NULL || size > INPUT_BYTES_MAX) {
        return 0;
    }
    struct ng_str old = {(const char *)data, (size_t)(nul - data)};
    struct ng_str new = {(const char *)nul + 1, size - old.len - 1};
    if (diff_lines(old, new, &diff) == NG_OK) {
        check_lines(&diff);
        must(diff_unified(&diff, DIFF_CONTEXT, ng_str_of("a"), ng_str_of("b"), count_piece,
                          &bytes) == 0);
        bool same = old.len == new.len &&memcmp(old.data, new.data, old.len) == 0;
        must(same == (diff.removed + diff.added == 0) && same == (bytes == 0));
    }
    diff_done(&diff);
    return 0;
}
