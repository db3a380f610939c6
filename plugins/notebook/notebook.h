/* SPDX-License-Identifier: MIT */
/* notebook.h - interfaces between the files of the plugin. */
#ifndef NOTEGATE_PLUGIN_NOTEBOOK_H
#define NOTEGATE_PLUGIN_NOTEBOOK_H

#include <notegate/plugin.h>

#include "core/base/str.h"

#define NOTEBOOK_COLLECTION "notebooks"
#define NOTEBOOK_DEFAULT "default"

/* ---- notebook_name.c: names and failures ---- */

static inline bool notebook_is_default(struct ng_str name)
{
    return str_is(name, NOTEBOOK_DEFAULT);
}

static inline struct ng_key notebook_key(struct ng_str space, struct ng_str name)
{
    struct ng_key key = {ng_str_of(NOTEBOOK_COLLECTION), space, name};
    return key;
}

/* The name of the call. An absent one is the default notebook; "" is a name. */
static inline struct ng_str notebook_name(struct ng_call *call)
{
    if (ng_has_arg(call, "name")) {
        return ng_arg_text(call, "name");
    }
    return ng_str_of(NOTEBOOK_DEFAULT);
}

/* True if the notebook was written, and for the default one, which always exists. */
static inline bool notebook_exists(const struct ng_doc *doc, struct ng_str name)
{
    return (doc->revision > 0 && !doc->deleted) || notebook_is_default(name);
}

/* The pieces as one text in call memory; {NULL, 0}: out of memory. */
struct ng_str notebook_join(struct ng_call *call, const struct ng_str *pieces, size_t count);
/* Fails with a message made of pieces: names and texts may contain NUL, which would end a
 * format.
 */
int notebook_fail(struct ng_call *call, int code, const struct ng_str *pieces, size_t count);
/* Adds one violation to the details of the error, in the form of schema violations. */
void notebook_violation(struct ng_call *call, const char *path, struct ng_str expected,
                        struct ng_str got);
int notebook_not_found(struct ng_call *call, struct ng_str name);
/* The same with the nearest existing name as a hint. It makes a query, so not in a change. */
int notebook_missing(struct ng_call *call, struct ng_str space, struct ng_str name);

/* ---- notebook_read.c ---- */

int notebook_read(struct ng_call *call, struct ng_str name);
int notebook_list(struct ng_call *call);
/* In notebook_search.c: the lines of all notebooks of the space that have all words. */
int notebook_search(struct ng_call *call);
/* The number of lines that the last write stored; 0: none. */
int64_t notebook_stored_lines(struct ng_call *call, const struct ng_doc *row);
/* Functions of struct ng_resources. */
int notebook_resource_list(void *self, struct ng_call *call, struct ng_str space,
                           struct ng_listing *listing);
int notebook_resource_read(void *self, struct ng_call *call, struct ng_str space,
                           struct ng_str id, uint64_t revision);
int notebook_resource_complete(void *self, struct ng_call *call, struct ng_str space,
                               const char *variable, struct ng_str prefix,
                               struct ng_listing *listing);

/* ---- notebook_find.c ---- */

int notebook_resource_find(void *self, struct ng_call *call, struct ng_str space,
                           struct ng_find *find);

/* ---- notebook_guide.c ---- */

int notebook_guide(void *self, struct ng_call *call, struct ng_str args);
int notebook_guide_complete(void *self, struct ng_call *call, const char *argument,
                            struct ng_str prefix, struct ng_listing *listing);

/* ---- notebook_undo.c ---- */

/* Modes rename, delete and undo. */
int notebook_rename(struct ng_call *call, struct ng_str name);
int notebook_delete(struct ng_call *call, struct ng_str name);
int notebook_undo(struct ng_call *call, struct ng_str name);

/* ---- notebook_write.c ---- */

/* The revision that the caller expects, if it says one. */
void notebook_expect(struct ng_call *call, struct ng_change *change);

/* Modes create, write and clear. max_size: bytes of one notebook. */
int notebook_create(struct ng_call *call, struct ng_str name, uint64_t max_size);
int notebook_edit(struct ng_call *call, struct ng_str name, uint64_t max_size);
int notebook_clear(struct ng_call *call, struct ng_str name);
/* The content of an undo or a restore: see ng_restore_fn. */
int notebook_take_content(struct ng_call *call, const struct ng_content *content,
                          struct ng_draft *next, uint64_t max_size);

#endif
