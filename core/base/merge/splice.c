/* SPDX-License-Identifier: MIT */
/* splice.c - the stretch in which two contents differ. */
#include "splice.h"

#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"

/* Bytes compared at once, first in long texts, then near the difference. */
#define SPLICE_BLOCK ((size_t)1024)
#define SPLICE_WORD sizeof(uint64_t)

static size_t common_head(const char *a, const char *b, size_t most)
{
    size_t len = 0;
    while (most - len >= SPLICE_BLOCK && memcmp(a + len, b + len, SPLICE_BLOCK) == 0) {
        len += SPLICE_BLOCK;
    }
    while (most - len >= SPLICE_WORD && memcmp(a + len, b + len, SPLICE_WORD) == 0) {
        len += SPLICE_WORD;
    }
    while (len < most && a[len] == b[len]) {
        len++;
    }
    return len;
}

/* Before the ends `a` and `b`. */
static size_t common_tail(const char *a, const char *b, size_t most)
{
    size_t len = 0;
    while (most - len >= SPLICE_BLOCK &&
           memcmp(a - len - SPLICE_BLOCK, b - len - SPLICE_BLOCK, SPLICE_BLOCK) == 0) {
        len += SPLICE_BLOCK;
    }
    while (most - len >= SPLICE_WORD &&
           memcmp(a - len - SPLICE_WORD, b - len - SPLICE_WORD, SPLICE_WORD) == 0) {
        len += SPLICE_WORD;
    }
    while (len < most && a[-1 - (ptrdiff_t)len] == b[-1 - (ptrdiff_t)len]) {
        len++;
    }
    return len;
}

struct ng_splice splice_between(struct ng_str from, struct ng_str to)
{
    size_t least = size_min(from.len, to.len);
    size_t head = 0;
    size_t tail = 0;
    if (least > 0) {
        head = common_head(from.data, to.data, least);
        tail = common_tail(from.data + from.len, to.data + to.len, least - head);
    }
    return (struct ng_splice){
        .at = head,
        .removed = from.len - head - tail,
        .inserted = str_make(to.data != NULL ? to.data + head : "", to.len - head - tail)};
}
