/* SPDX-License-Identifier: MIT */
/*
 * content.h - text of a document and the members of its JSON that people write (members of
 * ng_collection). An undo or a restore gives these back; the plugin makes the rest.
 */
#ifndef NOTEGATE_CORE_CONTENT_H
#define NOTEGATE_CORE_CONTENT_H

#include "core/call/call.h"
#include "core/json/json.h"

/* Members of one collection. */
#define CONTENT_MEMBERS_MAX 16

/* {0}: there is no document. */
struct content {
    bool exists;
    struct ng_str text;
    const struct ng_value *members; /* an object: last name and value */
};

/* Their last names. */
size_t content_names(const struct ng_collection *collection,
                     struct ng_str ret[CONTENT_MEMBERS_MAX]);
/* Those of the JSON of a document: an object in memory of the arena. NULL: out of memory. */
const struct ng_value *content_members(struct arena *arena,
                                       const struct ng_collection *collection,
                                       const struct ng_value *body);
/* Memory of the arena; text and values are those of the document. NG_OK or NG_EINTERNAL. */
int content_of(struct arena *arena, const struct ng_collection *collection,
               const struct ng_doc *doc, struct content *ret);
bool content_equal(const struct content *a, const struct content *b);
/* Lines of the stretch of `old` that differs, and of what is in its place. */
void content_lines(struct ng_str old, struct ng_str next, uint64_t *ret_added,
                   uint64_t *ret_removed);

/* Runs restore() of the collection's plugin, in a change function. NG_EINVAL: it has none. */
int content_draft(struct call *call, const struct ng_content *content,
                  const struct ng_doc *present, struct ng_draft *next);
#endif
