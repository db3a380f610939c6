/* SPDX-License-Identifier: MIT */
/* view.h - views: named queries that are built in, in the configuration, or in a notebook. */
#ifndef OPENNOTES_VIEW_H
#define OPENNOTES_VIEW_H

#include "answer/answer.h"
#include "answer/left_out.h"
#include "index/index.h"
#include "note/note.h"
#include "notebook/notebook.h"

#define NOTES_VIEW_PARAMS_MAX 20
#define NOTES_VIEW_VALUE_MAX 1000 /* bytes of one parameter's value */

enum notes_view_origin { NOTES_VIEW_BUILTIN = 0, NOTES_VIEW_GLOBAL, NOTES_VIEW_NOTEBOOK };

/* One call that runs a view. */
struct notes_view {
    struct notes_notebook *notebook;
    struct ng_call *call;
    struct arena *arena;
    struct notes_answer *answer; /* its list "results" is open */
    struct ng_str name;
    enum notes_view_origin origin;
    const struct ng_value *definition;
    struct notes_left_out left_out;
    struct ng_str names[NOTES_VIEW_PARAMS_MAX]; /* parameters and their values */
    struct ng_str values[NOTES_VIEW_PARAMS_MAX];
    struct ng_str types[NOTES_VIEW_PARAMS_MAX];
    size_t count;
    int64_t now_ms;
};

/* ---- view_find.c */

/* Finds the view and its origin; VIEW_NOT_FOUND, NOTEBOOK_CONFIG_ERROR. */
int notes_view_find(struct notes_view *view);
/* Writes every view as an item of the answer's list. */
int notes_view_list(struct notes_view *view);

/* ---- view_params.c */

/* Checks the call's parameters against the definition's; VIEW_INVALID_PARAMS. */
int notes_view_read_params(struct notes_view *view);
/* {NULL, 0}: there is no such parameter, or it has no value. */
struct ng_str notes_view_param(const struct notes_view *view, const char *name);
/* Elements of a list value, "a, b": the next, without blanks. False: there is no more. */
bool notes_view_next(struct ng_str *rest, struct ng_str *ret_item);

/* ---- view_time.c */

/* The value of a time variable ("today", "this_week-1", "end_of_month"). false: there is no
 * such variable. */
bool notes_view_time(struct ng_str name, int64_t now_ms, char out[RFC3339_SIZE]);

/* ---- view_builtin.c, view_query.c */

/* Adds the results of the page, and counts all. */
int notes_view_run_builtin(struct notes_view *view);
int notes_view_run_query(struct notes_view *view);
enum notes_view_vars { NOTES_VARS_TIMES, NOTES_VARS_PARAMS, NOTES_VARS_SQL /* quoted times */ };
/* The text with expanded {{variables}}: times, and the parameters of a condition.
 * NOTEBOOK_CONFIG_ERROR for unknown ones and {{env:...}}. */
int notes_view_expand(struct notes_view *view, struct ng_str text, enum notes_view_vars mode,
                      struct ng_str *ret);
int notes_view_fail(struct notes_view *view, const char *what, struct ng_str text);

/* Counts each note of a statement, which it finalizes, as left out. */
int notes_view_leave_out(struct notes_view *view, sqlite3_stmt *statement);
/* Adds each note of a statement, which it finalizes: see notes_summary_rows(). */
int notes_view_add_all(struct notes_view *view, sqlite3_stmt *statement);
/* The elements of a list value as a JSON array, case folded if `fold`, for json_each(). */
struct ng_str notes_view_list_json(struct notes_view *view, struct ng_str list, bool fold);

NOTES_TOOL(views);
NOTES_CHECK(views);

#endif
