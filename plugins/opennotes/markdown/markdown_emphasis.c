/* SPDX-License-Identifier: MIT */
/* markdown_emphasis.c - finds the runs of '*', '_' and '~' that are emphasis, by CommonMark's
 * rules, and removes them from the plain text. */
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "markdown_parts.h"

#define KINDS 14 /* of runs that can pair: mark, length modulo 3, opens or not */

static bool is_space(int32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xa0 || c == 0x3000 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x202f || c == 0x205f;
}

static bool is_mark(int32_t c)
{
    return c == '_' || (!is_space(c) && !notes_is_word(c));
}

bool notes_emphasis_add(struct notes_scan *scan, struct ng_str text, size_t begin, size_t end)
{
    struct notes_delimiters *all = &scan->delimiters;
    size_t behind = end;
    int32_t before = notes_char_before(text, begin);
    int32_t after = '\n';
    if (end < text.len) {
        after = notes_next(text, &behind);
    }
    bool left = !is_space(after) && (!is_mark(after) || is_space(before) || is_mark(before));
    bool right = !is_space(before) && (!is_mark(before) || is_space(after) || is_mark(after));
    char c = text.data[begin];
    if (array_reserve((void **)&all->items, &all->room, all->count + 1, sizeof(*all->items),
                      NOTES_ITEMS_MAX) != NG_OK) {
        return false;
    }
    struct notes_delimiter *item = &all->items[all->count];
    *item = (struct notes_delimiter){.at = scan->plain.len,
                                     .len = end - begin,
                                     .whole = end - begin,
                                     .c = c,
                                     .older = all->newest,
                                     .newer = SIZE_MAX};
    item->opens = left && (c != '_' || !right || is_mark(before));
    item->closes = right && (c != '_' || !left || is_mark(after));
    if (c == '~' && end - begin > 2) {
        item->opens = item->closes = false;
    }
    if (all->newest != SIZE_MAX) {
        all->items[all->newest].newer = all->count;
    }
    all->newest = all->count++;
    return true;
}

static void take_out(struct notes_delimiters *all, size_t i)
{
    const struct notes_delimiter *item = &all->items[i];
    if (item->older != SIZE_MAX) {
        all->items[item->older].newer = item->newer;
    }
    if (item->newer != SIZE_MAX) {
        all->items[item->newer].older = item->older;
    } else {
        all->newest = item->older;
    }
}

static size_t kind_of(const struct notes_delimiter *item)
{
    /* Only runs of one or two '~' open or close, and do not pair with each other. */
    if (item->c == '~') {
        return 11 + item->len % 3;
    }
    return (size_t)6 * (item->c != '*') + (size_t)3 * item->opens + item->whole % 3;
}

static bool pairs(const struct notes_delimiter *opener, const struct notes_delimiter *closer)
{
    if (!opener->opens || opener->c != closer->c) {
        return false;
    }
    if (opener->c == '~') {
        return opener->len == closer->len;
    }
    bool both = opener->closes || closer->opens;
    return !both || (opener->whole + closer->whole) % 3 != 0 ||
           (opener->whole % 3 == 0 && closer->whole % 3 == 0);
}

/* Removes the inner marks of a pair; runs between them become text. */
static void use_pair(struct notes_scan *scan, size_t opener, size_t closer)
{
    struct notes_delimiters *all = &scan->delimiters;
    struct notes_delimiter *open = &all->items[opener];
    struct notes_delimiter *close = &all->items[closer];
    size_t count = (size_t)1 + (open->len >= 2 && close->len >= 2);
    if (open->c == '~') {
        count = open->len;
    }
    while (all->items[closer].older != opener) {
        take_out(all, all->items[closer].older);
    }
    memset(scan->plain.data + open->at + open->len - count, NOTES_MARK_GONE, count);
    memset(scan->plain.data + close->at, NOTES_MARK_GONE, count);
    open->len -= count;
    close->len -= count;
    close->at += count;
    if (open->len == 0) {
        take_out(all, opener);
    }
}

void notes_emphasis_pair(struct notes_scan *scan, size_t bottom)
{
    struct notes_delimiters *all = &scan->delimiters;
    size_t bottoms[KINDS]; /* no opener of this kind is left below */
    size_t closer = all->newest;
    for (size_t i = 0; i < KINDS; i++) {
        bottoms[i] = bottom;
    }
    if (bottom == SIZE_MAX) {
        while (closer != SIZE_MAX && all->items[closer].older != SIZE_MAX) {
            closer = all->items[closer].older;
        }
    } else {
        closer = all->items[bottom].newer;
    }
    while (closer != SIZE_MAX) {
        const struct notes_delimiter *item = &all->items[closer];
        size_t newer = item->newer;
        if (item->closes) {
            /* By position: the run at the bottom may have been removed. SIZE_MAX + 1 is 0. */
            size_t opener = item->older;
            size_t low = bottoms[kind_of(item)] + 1;
            while (opener + 1 > low && !pairs(&all->items[opener], item)) {
                opener = all->items[opener].older;
            }
            bool found = opener + 1 > low;
            if (found) {
                use_pair(scan, opener, closer);
                newer = closer;
                if (all->items[closer].len == 0) {
                    newer = all->items[closer].newer;
                    take_out(all, closer);
                }
            } else {
                bottoms[kind_of(item)] = item->older;
                if (!item->opens) {
                    take_out(all, closer);
                }
            }
        }
        closer = newer;
    }
    while (all->newest != SIZE_MAX && all->newest != bottom) {
        take_out(all, all->newest);
    }
    all->count = bottom + 1; /* SIZE_MAX + 1 is 0 */
}
