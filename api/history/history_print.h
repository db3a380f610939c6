/* SPDX-License-Identifier: MIT */
/* history_print.h - objects of the history's tools as text for people. Pure functions; an error
 * sticks in the buffer.
 *
 * Ids, summaries and names come from others: a line never holds a character that breaks it or
 * commands the terminal (log_escape()). */
#ifndef NOTEGATE_API_HISTORY_PRINT_H
#define NOTEGATE_API_HISTORY_PRINT_H

#include "core/json/json.h"

/* Colours, for a style that has them. */
#define PRINT_YELLOW "\033[33m"
#define PRINT_CYAN "\033[36m"
#define PRINT_GREEN "\033[32m"
#define PRINT_RED "\033[31m"
#define PRINT_BOLD "\033[1m"
#define PRINT_END "\033[m"

struct history_style {
    bool is_coloured;
    bool is_escaped; /* contents are shown on a terminal; else they are printed as they are */
};

/* One line of what others wrote; SPACE/COLLECTION/ID of an object. */
void history_print_word(struct buf *out, struct ng_str word);
/* Is the object of a file, which is named by its path? */
bool history_print_is_file(const struct ng_value *object);
void history_print_title(struct buf *out, const struct ng_value *object);
/* The next line of the text, without its line feed; *text moves behind it. */
struct ng_str history_print_take_line(struct ng_str *text);
/* A change of `history_log`: its lines of git's log; one line; the lines added and removed. */
void history_print_change(struct buf *out, struct history_style style,
                          const struct ng_value *change);
void history_print_oneline(struct buf *out, struct history_style style,
                           const struct ng_value *change);
void history_print_stat(struct buf *out, struct history_style style,
                        const struct ng_value *change);
/* The list of runs: a line each, in columns. */
void history_print_runs(struct buf *out, struct history_style style,
                        const struct ng_value *runs);
/* In the place of a comparison that cannot be had: why. */
void history_print_note(struct buf *out, struct ng_str why);
/* Of `history_read`: the maker of the revision, and its members. */
void history_print_head(struct buf *out, struct history_style style,
                        const struct ng_value *answer);
void history_print_text(struct buf *out, struct history_style style, struct ng_str text);
/* Of `history_diff`, of `history_blame`. */
void history_print_diff(struct buf *out, struct history_style style,
                        const struct ng_value *answer);
/* A document of `history_diff` of selected changes. */
void history_print_changed(struct buf *out, struct history_style style,
                           const struct ng_value *row);
void history_print_changed_stat(struct buf *out, struct history_style style,
                                const struct ng_value *row);
void history_print_blame(struct buf *out, struct history_style style,
                         const struct ng_value *answer);

#endif
