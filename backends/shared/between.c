/* SPDX-License-Identifier: MIT */
/* between.c - the splice between two contents. */
#include "bytes.h"
#include "core/base/minmax.h"

void splice_between(struct ng_str before, struct ng_str after, struct ng_splice *ret)
{
    size_t most = size_min(before.len, after.len);
    size_t head = 0;
    while (head + 8 <= most && memcmp(before.data + head, after.data + head, 8) == 0) {
        head += 8;
    }
    while (head < most && before.data[head] == after.data[head]) {
        head++;
    }
    size_t tail = 0;
    while (tail < most - head &&
           before.data[before.len - tail - 1] == after.data[after.len - tail - 1]) {
        tail++;
    }
    ret->at = head;
    ret->removed = before.len - head - tail;
    ret->inserted =
        str_of(after.data != NULL ? after.data + head : "", after.len - head - tail);
}
