/* SPDX-License-Identifier: MIT */
/* notebook_object.h - three-way merge of an object of a notebook, member by member. Private to
 * notebook_object.c, notebook_cell.c and notebook_merge.c. */
#ifndef NOTEGATE_PLUGIN_CELLS_NOTEBOOK_OBJECT_H
#define NOTEGATE_PLUGIN_CELLS_NOTEBOOK_OBJECT_H

#include "core/base/merge/merge_conflict.h"
#include "notebook_pair.h"
#include "notebook_value.h"

/* Members of an object that is merged member by member. */
#define NOTEBOOK_MEMBERS_MAX 64

/* A merge of three notebooks. */
struct notebook_merge {
    struct notebook sides[NOTEBOOK_SIDES];
    struct notebook_pairs pairs;
    struct nb_edit edit; /* of present */
    struct merge_conflict *conflict;
    int64_t steps; /* left for comparisons, see merge3.h */
    bool failed;   /* out of memory */
};

struct notebook_members {
    struct ng_str names[NOTEBOOK_MEMBERS_MAX]; /* with their quotes */
    struct nb_span values[NOTEBOOK_MEMBERS_MAX];
    size_t count;
};

/* False: there are too many, one of them twice, or a name that is spelled with escapes. An
 * absent object has none. */
bool notebook_members_read(struct ng_str bytes, struct nb_span object,
                           struct notebook_members *ret);
/* The value of a member; {NULL, 0}: there is none. */
struct ng_str notebook_members_get(struct ng_str bytes, const struct notebook_members *members,
                                   struct ng_str name);

struct notebook_object {
    struct notebook_merge *merge;
    struct notebook_members members[NOTEBOOK_SIDES];
    struct nb_span present;   /* the object that is changed */
    unsigned depth;           /* of its members */
    enum merge_reason reason; /* of a conflict */
    size_t line;
    /* For a member that is not merged by its value: true, with the choice. */
    bool (*chosen)(const struct notebook_object *object, struct ng_str name,
                   enum merge3_value *ret);
    enum merge3_value run;       /* the choice for outputs and execution_count, for `chosen` */
    bool keeps_source, keeps_id; /* for `chosen` */
};

/* The values of the member in base, present and before. */
void notebook_object_values(const struct notebook_object *object, struct ng_str name,
                            struct ng_str ret[NOTEBOOK_SIDES]);
/* Merges the members as wholes: edits of present, or conflicts. */
void notebook_object_merge(const struct notebook_object *object);

/* ---- notebook_cell.c ---- */

/* Merges a cell that present and before have. */
void notebook_cell_merge(struct notebook_merge *merge, const struct notebook_pair *pair);
/* A cell of base that one of present and before has removed: a conflict if the other one
 * changed more than its outputs. */
void notebook_cell_removed(struct notebook_merge *merge, const struct notebook_pair *pair);

#endif
