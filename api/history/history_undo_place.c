/* SPDX-License-Identifier: MIT */
/* history_undo_place.c - finds places in the log of a file: the summary of a move names one. */
#include "history_undo_place.h"

#include "core/base/str.h"
#include "history_print.h"

#define PLACE_TOOL "history_log"
#define PLACE_FROM "moved from "
#define PLACE_TO "moved to "
/* Moves to one path that are looked at, and moves that are followed. */
#define PLACE_LOOKS 20
#define PLACE_MOVES_MAX 16

/* The newest changes of the file at this path. */
static const struct ng_value *place_changes(struct history_ask *ask, struct ng_str path,
                                            const char *action, int64_t limit)
{
    const struct ng_value *answer = NULL;
    struct ng_writer *writer = history_ask_args(ask);
    bool is_open = str_ends(path, "*"); /* which would mean a beginning */
    struct ng_str exact =
        is_open ? arena_printf(&ask->line->arena, "%.*s\\*", (int)path.len - 1, path.data)
                : path;
    history_ask_text(ask, "path", exact);
    history_ask_text(ask, "action", ng_str_of(action));
    json_member_int(writer, "limit", limit);
    int rc = history_ask(ask, PLACE_TOOL, HISTORY_FAILURE_GIVEN, &answer);
    return rc == COMMAND_OK ? json_first(json_get(answer, "changes")) : NULL;
}

/* The path in the summary of a move. Others have lines of contents, which may look like it. */
static struct ng_str place_moved(const struct ng_value *change, struct ng_str path,
                                 const char *way)
{
    struct ng_str summary = json_get_text(change, "summary");
    size_t len = strlen(way);
    bool is_move = str_in_words(json_get_text(change, "action"), "moved deleted") &&
                   str_equal(json_get_text(change, "id"), path) && str_begins(summary, way);
    return is_move ? str_make(summary.data + len, summary.len - len) : STR_NONE;
}

static bool place_is_taken_back(const struct ng_value *item, int64_t revision)
{
    const struct ng_value *one = json_first(json_get(item, "revisions"));
    int64_t number = 0;
    while (one != NULL && (json_integer(one, &number) != NG_OK || number != revision)) {
        one = one->next;
    }
    return one != NULL;
}

static void place_print_old(struct history_ask *ask, const struct ng_value *item,
                            struct buf *out)
{
    struct ng_str path = json_get_text(item, "id");
    const struct ng_value *change = place_changes(ask, path, "moved", PLACE_LOOKS);
    for (; change != NULL; change = change->next) {
        struct ng_str old = place_moved(change, path, PLACE_FROM);
        if (old.len > 0 && place_is_taken_back(item, json_get_integer(change, "revision"))) {
            (void)buf_add_c(out, " \u2192 ");
            history_print_word(out, old);
            return;
        }
    }
}

static void place_print_now(struct history_ask *ask, const struct ng_value *item,
                            struct buf *out)
{
    struct ng_str now = STR_NONE;
    struct ng_str path = json_get_text(item, "id");
    for (int moves = 0; path.len > 0 && moves < PLACE_MOVES_MAX; moves++) {
        struct ng_str next = place_moved(place_changes(ask, path, NULL, 1), path, PLACE_TO);
        path = arena_copy(&ask->line->arena, next); /* the answer ends with the next one */
        now = str_or(path, now);
    }
    if (now.len > 0) {
        (void)buf_add_c(out, ", and is now ");
        history_print_word(out, now);
    }
}

void history_undo_place(void *user, const struct ng_value *item, struct buf *out)
{
    struct ng_str reason = json_get_text(json_get(item, "conflict"), "reason");
    if (!history_print_is_file(item)) {
        return;
    }
    if (str_is(json_get_text(item, "result"), "undone")) {
        place_print_old(user, item, out);
    } else if (str_is(reason, "moved_on")) {
        place_print_now(user, item, out);
    }
}
