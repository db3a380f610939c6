/* SPDX-License-Identifier: MIT */
/* create.h - creation of notes: paths, composition, templates. */
#ifndef OPENNOTES_CREATE_H
#define OPENNOTES_CREATE_H

#include "note/note.h"
#include "notebook/notebook.h"

/* Memory limit for composing one note. */
#define NOTES_COMPOSE_MAX ((size_t)64 * 1024 * 1024)
/* Largest note that can be edited. */
#define NOTES_NOTE_EDIT_MAX ((uint64_t)64 * 1024 * 1024)
/* The notebook's folder of deleted notes; hidden, as other names that begin with a dot. */
#define NOTES_TRASH ".trash"
/* Fields of one call. */
#define NOTES_DATA_MAX ((size_t)200)

/* ---- create_path.c: nothing is written outside the notebook */

/* Checks the relative path of a note that need not exist: *ret_path is its NFC form without
 * "./" and doubled slashes. NOTE_INVALID_PATH, PATH_TRAVERSAL. */
int notes_write_path(struct ng_call *call, struct ng_str given, struct ng_str *ret_path);
/* The same for a folder. */
int notes_write_folder(struct ng_call *call, struct ng_str given, struct ng_str *ret_path);
/* The file of a note as its name and its folders are on disk: they may exist in another Unicode
 * form of the path. *ret_exists: the note does so. (The file service finds one of exactly this
 * name, because it knows retried calls.) */
int notes_write_file(struct notes_notebook *notebook, struct ng_call *call, struct ng_str path,
                     struct ng_str *ret_file, bool *ret_exists);
/* The absolute path of a file of the notebook; checks that it stays inside when links on the
 * way are followed, so that no folder is created outside either. */
int notes_write_place(const struct notes_notebook *notebook, struct ng_call *call,
                      struct ng_str file, struct ng_str *ret_absolute);
/* The type and the absolute path of a folder, or of a file in the trash, in any Unicode form:
 * of paths that the index does not have. */
int notes_write_at(struct notes_notebook *notebook, struct ng_call *call, struct ng_str path,
                   struct ng_str *ret_absolute, enum ng_file_type *ret_type);
/* The same check for a file that is about to be written. */
int notes_write_inside(const struct notes_notebook *notebook, struct ng_call *call,
                       const struct ng_file *present, struct ng_str path);

/* ---- create_template.c */

/* The values of `{{...}}`. */
struct notes_vars {
    struct ng_str title, slug;
    int64_t now_ms;                 /* {{date}}, {{time}}, {{year}}, {{month}}, {{day}} */
    const struct notes_value *data; /* any other name: its field */
};

/* The text of a template of the notebook; TEMPLATE_NOT_FOUND, NOTEBOOK_CONFIG_ERROR. */
int notes_template_text(const struct notes_notebook *notebook, struct ng_call *call,
                        struct ng_str name, struct ng_str *ret_text);
bool notes_template_known(const struct notes_notebook *notebook, struct ng_call *call,
                          struct ng_str name);
/* Writes the text with expanded variables; unknown names stay as they are. */
void notes_template_fill(struct buf *out, struct ng_str text, const struct notes_vars *vars);

/* ---- create_compose.c */

/* The argument `data`, or NULL: not too many fields, and not nested too deeply. The schema does
 * not say it, as model vendors refuse maxProperties. */
int notes_data_check(struct ng_call *call, const struct ng_value *data);

struct notes_new_note {
    struct ng_str path; /* relative */
    struct ng_str title;
    struct ng_str template_name;    /* {NULL, 0}: the template of the group, if there is one */
    struct ng_str content;          /* {NULL, 0}: none */
    const struct notes_value *data; /* a map */
    int64_t now_ms;                 /* time of creation */
    int64_t day_ms;                 /* time of {{date}} and {{time}} */
};

/* The bytes of a new note, in call memory, and its title. */
int notes_compose(const struct notes_notebook *notebook, struct ng_call *call,
                  struct arena *arena, const struct notes_new_note *note,
                  struct ng_str *ret_bytes, struct ng_str *ret_title);

#endif
