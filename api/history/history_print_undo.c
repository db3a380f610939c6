/* SPDX-License-Identifier: MIT */
/* history_print_undo.c - answers of history_undo as text for people. */
#include "history_print_undo.h"

#include <inttypes.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Bytes of a name up to which the columns behind it are aligned, and of a name at all. */
#define UNDO_COLUMN_MAX 48
#define UNDO_TITLE_MAX ((size_t)1024 * 1024)

static const struct undo_reason {
    const char *reason, *why;
} undo_reasons[] = {
    {"overlap", "the same lines have changed since"},
    {"member", "the same member has changed since"},
    {"cell", "the same cell has changed since"},
    {"changed_since", "it has changed since it was made"},
    {"recreated", "it was made anew since"},
    {"gone", "it was deleted since"},
    {"moved_on", "it was moved on since"},
    {"path_taken", "its old place is taken"},
    {"not_kept", "a content that is needed is not kept"},
    {"not_text", "it has changed since, and its content cannot be merged"},
    {"too_large", "the content is too large"},
    {"invalid_merge", "the result would not be valid"},
    {"forbidden", "the caller may not take it back"},
    {"busy", "it is being changed"},
};

/* ---- one document ---- */

static void undo_print_reason(struct buf *out, struct ng_str reason)
{
    history_print_word(out, reason);
    for (size_t i = 0; i < NG_COUNT(undo_reasons); i++) {
        if (str_is(reason, undo_reasons[i].reason)) {
            (void)buf_printf(out, ": %s", undo_reasons[i].why);
        }
    }
}

/* Each line of a side, indented. */
static void undo_print_side(struct buf *out, struct history_style style, const char *label,
                            struct ng_str side)
{
    bool is_first = true;
    if (side.len == 0) {
        (void)buf_printf(out, "      %-8s(nothing)\n", label);
    }
    while (side.len > 0) {
        struct ng_str line = history_print_take_line(&side);
        (void)buf_printf(out, "      %-8s", is_first ? label : "");
        history_print_text(out, style, line);
        (void)buf_add_char(out, '\n');
        is_first = false;
    }
}

static void undo_print_places(struct buf *out, struct history_style style,
                              const struct ng_value *conflict)
{
    for (const struct ng_value *place = json_first(json_get(conflict, "at")); place != NULL;
         place = place->next) {
        int64_t line = json_get_integer(place, "line");
        if (line > 0) {
            (void)buf_printf(out, "    line %" PRId64 "\n", line);
        }
        undo_print_side(out, style, "now:", json_get_text(place, "present"));
        undo_print_side(out, style, "before:", json_get_text(place, "before"));
    }
}

static size_t undo_print_title(struct buf *out, const struct ng_value *item)
{
    struct buf title;
    buf_init(&title, UNDO_TITLE_MAX);
    history_print_title(&title, item);
    size_t len = title.len;
    if (out != NULL) {
        (void)buf_add_str(out, buf_str(&title));
    }
    buf_done(&title);
    return len;
}

static size_t undo_title_width(const struct ng_value *items)
{
    size_t width = 0;
    for (const struct ng_value *item = json_first(items); item != NULL; item = item->next) {
        width = size_max(width, undo_print_title(NULL, item));
    }
    return size_min(width, UNDO_COLUMN_MAX);
}

/* "undone" is what a preview could do. */
static const char *undo_result(struct ng_str result, bool is_dry, const char **ret_colour)
{
    *ret_colour = "";
    if (str_is(result, "conflict")) {
        *ret_colour = PRINT_RED;
        return "conflict";
    }
    if (str_is(result, "undone")) {
        *ret_colour = PRINT_GREEN;
        return is_dry ? "undo" : "undone";
    }
    return "unchanged";
}

struct undo_print {
    struct history_style style;
    const struct history_places *places;
    size_t width; /* of the names */
    bool is_dry;
};

static void undo_print_item(struct buf *out, const struct undo_print *print,
                            const struct ng_value *item)
{
    const char *colour = "";
    struct history_style style = print->style;
    const char *result = undo_result(json_get_text(item, "result"), print->is_dry, &colour);
    const struct ng_value *conflict = json_get(item, "conflict");
    (void)buf_printf(out, "%s%-9s%s  ", text_if(style.is_coloured, colour), result,
                     text_if(style.is_coloured && colour[0] != '\0', PRINT_END));
    size_t len = undo_print_title(out, item);
    bool has_more = conflict != NULL || json_get(item, "added") != NULL;
    (void)buf_printf(out, "%*s", has_more ? (int)(size_max(print->width, len) - len) + 2 : 0,
                     "");
    if (conflict != NULL) {
        undo_print_reason(out, json_get_text(conflict, "reason"));
    } else if (has_more) {
        (void)buf_printf(out, "+%" PRId64 " -%" PRId64, json_get_integer(item, "added"),
                         json_get_integer(item, "removed"));
    }
    if (print->places->place != NULL) {
        print->places->place(print->places->user, item, out);
    }
    (void)buf_add_char(out, '\n');
    undo_print_places(out, style, conflict);
}

/* ---- the sum ---- */

static void undo_print_agents(struct buf *out, const struct ng_value *agents)
{
    const struct ng_value *agent = json_first(agents);
    (void)buf_add_c(out, text_if(agent != NULL, " changed by "));
    for (; agent != NULL; agent = agent->next) {
        history_print_word(out, agent->text);
        (void)buf_add_c(out, text_if(agent->next != NULL, ", "));
    }
}

static void undo_print_counts(struct buf *out, const struct ng_value *answer, bool is_dry)
{
    size_t total = (size_t)json_get_integer(answer, "total");
    size_t conflicts = (size_t)json_get_integer(answer, "conflicts");
    (void)buf_printf(out, "%zu document%s", total, plural(total));
    undo_print_agents(out, json_get(answer, "agents"));
    (void)buf_printf(out, ": %" PRId64 " %s, %" PRId64 " unchanged, %zu conflict%s",
                     json_get_integer(answer, "undone"), is_dry ? "to take back" : "taken back",
                     json_get_integer(answer, "unchanged"), conflicts, plural(conflicts));
}

void history_print_undo_left(struct buf *out, const struct ng_value *answer)
{
    (void)buf_add_c(out, "  left: ");
    undo_print_counts(out, answer, json_is(json_get(answer, "dry_run"), NG_TYPE_TRUE));
}

static void undo_print_sum(struct buf *out, const struct ng_value *answer, bool is_dry)
{
    struct ng_str run = json_get_text(answer, "undo");
    undo_print_counts(out, answer, is_dry);
    (void)buf_add_char(out, '\n');
    if (run.len > 0) {
        (void)buf_add_c(out, "run ");
        history_print_word(out, run);
        (void)buf_add_c(out, "; `notegate undo --run ");
        history_print_word(out, run);
        (void)buf_add_c(out, "` takes this back\n");
    }
}

void history_print_undo(struct buf *out, struct history_style style,
                        const struct ng_value *answer, enum history_undo_rows rows,
                        const struct history_places *places)
{
    const struct ng_value *items = json_get(answer, "items");
    const struct undo_print print = {
        .style = style,
        .places = places,
        .width = undo_title_width(items),
        .is_dry = json_is(json_get(answer, "dry_run"), NG_TYPE_TRUE),
    };
    int64_t shown = 0;
    for (const struct ng_value *item = json_first(items); item != NULL; item = item->next) {
        shown++;
        if (rows == HISTORY_UNDO_ALL || json_get(item, "conflict") != NULL) {
            undo_print_item(out, &print, item);
        }
    }
    int64_t left = json_get_integer(answer, "total") - shown;
    if (left > 0 && rows == HISTORY_UNDO_ALL) {
        (void)buf_printf(out, "... and %" PRId64 " more\n", left);
    }
    undo_print_sum(out, answer, print.is_dry);
}
