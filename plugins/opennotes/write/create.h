/* SPDX-License-Identifier: MIT */
/* create.h - making notes: where one may be, what it is made of, templates. */
#ifndef OPENNOTES_CREATE_H
#define OPENNOTES_CREATE_H

#include "note/note.h"
#include "notebook/notebook.h"

/* Bytes that composing one note may take. */
#define ON_COMPOSE_MAX ((size_t)64 * 1024 * 1024)
/* Largest note that is edited. */
#define ON_NOTE_EDIT_MAX ((uint64_t)64 * 1024 * 1024)

/* ---- create_path.c: nothing is written outside of the notebook */

/* Checks the relative path of a note that need not be there: *ret_path is its NFC form without
 * "./" and doubled slashes. NOTE_INVALID_PATH, PATH_TRAVERSAL. */
int on_write_path(struct ng_call *call, struct ng_str given, struct ng_str *ret_path);
/* The absolute path of a file of the notebook; checks that it stays inside when links on the
 * way are followed, so that no folder is made outside either. */
int on_write_place(const struct on_notebook *notebook, struct ng_call *call, struct ng_str file,
                   struct ng_str *ret_absolute);
/* The same of a file as it was found, when it is about to be written. */
int on_write_inside(const struct on_notebook *notebook, struct ng_call *call,
                    const struct ng_file *present, struct ng_str path);

/* ---- create_template.c */

/* What `{{...}}` stands for. */
struct on_vars {
    struct ng_str title, slug;
    int64_t now_ms;              /* {{date}}, {{time}}, {{year}}, {{month}}, {{day}} */
    const struct on_value *data; /* any other name: its field */
};

/* The text of a template of the notebook; TEMPLATE_NOT_FOUND, NOTEBOOK_CONFIG_ERROR. */
int on_template_text(const struct on_notebook *notebook, struct ng_call *call,
                     struct ng_str name, struct ng_str *ret_text);
bool on_template_known(const struct on_notebook *notebook, struct ng_call *call,
                       struct ng_str name);
/* Writes the text with its variables filled in; names that are not known stay as they are. */
void on_template_fill(struct on_buf *out, struct ng_str text, const struct on_vars *vars);

/* ---- create_compose.c */

struct on_new_note {
    struct ng_str path; /* relative */
    struct ng_str title;
    struct ng_str template_name; /* {NULL, 0}: the group's, if there is one */
    struct ng_str content;       /* {NULL, 0}: none */
    const struct on_value *data; /* a map */
    int64_t now_ms;              /* when it is made */
    int64_t day_ms;              /* what {{date}} and {{time}} say */
};

/* The bytes of a new note, in call memory, and its title. */
int on_compose(const struct on_notebook *notebook, struct ng_call *call, struct on_arena *arena,
               const struct on_new_note *note, struct ng_str *ret_bytes,
               struct ng_str *ret_title);

#endif
