/* SPDX-License-Identifier: MIT */
/* edit_lines.c - the lines that an edit adds and removes. */
#include <string.h>

#include "core/base/text/diff.h"
#include "edit.h"

/* Number of equal bytes at the end of both, up to `max`. */
static size_t equal_tail(struct ng_str a, struct ng_str b, size_t max)
{
    size_t tail = 0;
    while (tail < max && a.data[a.len - 1 - tail] == b.data[b.len - 1 - tail]) {
        tail++;
    }
    return tail;
}

void notes_edit_place(struct ng_str old, struct ng_str made, size_t *ret_head, size_t *ret_tail)
{
    size_t least = size_min(old.len, made.len);
    size_t head = 0;
    while (head < least && old.data[head] == made.data[head]) {
        head++;
    }
    *ret_head = head;
    *ret_tail = equal_tail(old, made, least - head);
}

static bool begins_line(struct ng_str text, size_t at)
{
    return at == 0 || text.data[at - 1] == '\n';
}

/* The lines of text[from, to). A last line without an end gets one, so that it equals one that
 * has it. In the arena; {NULL, 0}: out of memory. */
static struct ng_str whole_lines(struct arena *arena, struct ng_str text, size_t from,
                                 size_t to)
{
    struct ng_str lines = {text.data + from, to - from};
    if (lines.len == 0 || lines.data[lines.len - 1] == '\n') {
        return notes_present(lines);
    }
    char *made = arena_alloc(arena, lines.len + 1);
    if (made == NULL) {
        return STR_NONE;
    }
    memcpy(made, lines.data, lines.len);
    made[lines.len] = '\n';
    return str_make(made, lines.len + 1);
}

int notes_edit_count(struct ng_str old, struct ng_str made, uint64_t *ret_added,
                     uint64_t *ret_removed)
{
    struct arena arena;
    struct diff diff;
    size_t head = 0;
    size_t tail = 0;
    notes_edit_place(old, made, &head, &tail);
    while (!begins_line(old, head)) {
        head--;
    }
    if (!begins_line(old, old.len - tail) || !begins_line(made, made.len - tail)) {
        tail = old.len - notes_next_line(old, old.len - tail);
    }
    arena_init(&arena, 0);
    struct ng_str gone = whole_lines(&arena, old, head, old.len - tail);
    struct ng_str come = whole_lines(&arena, made, head, made.len - tail);
    int rc = NG_EINTERNAL;
    if (gone.data != NULL && come.data != NULL) {
        rc = diff_lines(gone, come, &diff);
        *ret_added = diff.added;
        *ret_removed = diff.removed;
        diff_done(&diff);
    }
    arena_done(&arena);
    return rc;
}
