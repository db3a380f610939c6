/* SPDX-License-Identifier: MIT */
/*
 * notebook.h - which folders of notes there are, and which one a call means.
 *
 * notes_notebook_run() opens the notebook of a call for a tool; its texts live as long as the
 * call does (also in the functions of ng_file_edit that run after the tool returned).
 */
#ifndef NOTEGATE_OPENNOTES_NOTEBOOK_H
#define NOTEGATE_OPENNOTES_NOTEBOOK_H

#include <sqlite3.h>

#include "plugin_self.h"
#include "text/text.h"

#define NOTES_CONFIG_NAME ".opennotes.json"
#define NOTES_CONFIG_MAX ((size_t)1024 * 1024) /* bytes of one .opennotes.json */

enum notes_source { NOTES_REGISTERED = 1, NOTES_ANCESTOR = 2, NOTES_EXPLICIT = 3 };

struct notes_index;

/* One call's view of a notebook, in call memory. */
struct notes_notebook {
    struct opennotes *self;
    struct ng_str name; /* of its configuration, else of its folder */
    struct ng_str path; /* folder of notes: absolute, without links */
    struct ng_str
        folder; /* existing or possible folder of .opennotes.json: absolute, without links */
    struct ng_str space;
    enum notes_source source;
    struct ng_str config_text; /* .opennotes.json as it was read; {NULL, 0}: there is none */
    const struct ng_value *config; /* its object; NULL: there is none */
    bool unusable;                 /* its configuration is unusable; it is only listed */
    struct ng_str fault;           /* reason */
    struct notes_index *index;     /* open from notes_notebook_open() to done; else NULL */
    sqlite3 *db;                   /* lent from notes_notebook_begin() to done; else NULL */
};

/* Checks a tool's arguments, which fails before the notebook is searched. */
typedef int notes_check_fn(struct ng_call *call);
typedef int notes_tool_fn(struct notes_notebook *notebook, struct ng_call *call,
                          struct arena *arena);

/* Runs a tool with the notebook that the call's argument `notebook` names, or the current one.
 * `check` runs first; NULL: the tool has none.
 * Fails with NOTEBOOK_NOT_FOUND, NOTEBOOK_CONFIG_ERROR, PATH_TRAVERSAL, PATH_OUTSIDE_ROOTS. */
int notes_notebook_run(struct opennotes *self, struct ng_call *call, notes_check_fn *check,
                       notes_tool_fn *tool);
/* Closes open and borrowed objects. NULL is a no-op. */
void notes_notebook_done(struct notes_notebook *notebook);

/* notes_index_begin() into notebook->db, and notes_index_fail() for it. */
int notes_notebook_begin(struct notes_notebook *notebook, struct ng_call *call);
int notes_notebook_fail(const struct notes_notebook *notebook, struct ng_call *call);
/* A statement on notebook->db. NULL: the call has failed. */
sqlite3_stmt *notes_notebook_prepare(const struct notes_notebook *notebook,
                                     struct ng_call *call, const char *sql);

/* All notebooks that the caller may see, registered ones first; not open (index is NULL). */
int notes_notebook_list(struct opennotes *self, struct ng_call *call,
                        struct notes_notebook ***ret, size_t *ret_count);
int notes_notebook_open(struct notes_notebook *notebook, struct ng_call *call);

/* The default notebook, not open; *ret is NULL if there is none. */
int notes_notebook_current(struct opennotes *self, struct ng_call *call,
                           struct notes_notebook **ret);

/* The registered notebooks, from memory. The plugin's notes(). */
int notes_names_list(void *self, struct ng_call *call, struct ng_listing *listing);
/* Is there a notebook for this caller? The plugin's configured(). */
bool notes_configured(void *self, struct ng_call *call);
/* May the caller see the files of this space? */
bool notes_may_see(struct ng_call *call, struct ng_str space);

/* Writes the member "notebook": {name, path}. */
void notes_notebook_write(const struct notes_notebook *notebook, struct buf *json);
const char *notes_source_name(enum notes_source source);

/* From start() and stop(). `registered`: items of opennotes.notebooks. */
int notes_notebooks_open(struct opennotes *self, struct ng_call *call,
                         const struct ng_str *registered, size_t count);
void notes_notebooks_close(struct notes_notebooks *notebooks);
struct notes_indexes *notes_notebooks_indexes(const struct notes_notebooks *notebooks);

#endif
