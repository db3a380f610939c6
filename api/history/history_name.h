/* SPDX-License-Identifier: MIT */
/* history_name.h - documents and points as words of a command line name them. Pure functions.
 *
 *   todo                     the named notebook
 *   SPACE/COLLECTION/ID      two slashes or more; further ones belong to the id
 *   notegate://SPACE/KIND/ID a URI, percent-encoded; that of a file, note or cell is its path
 *   /a/b  ./b  ../b          a file, from the working directory of the command on
 *   T@P                      the last @, if what is behind it is a point; else it is part of T
 */
#ifndef NOTEGATE_API_HISTORY_NAME_H
#define NOTEGATE_API_HISTORY_NAME_H

#include "core/base/arena.h"
#include "core/base/buf.h"

/* A document. Lent from the word or the arena. */
struct history_name {
    struct ng_str space; /* absent: of a bare name */
    struct ng_str collection, id;
    struct ng_str path;  /* of a file; then the three are absent */
    struct ng_str point; /* behind the @; absent: none */
    struct ng_str tail;  /* behind the @, but no point, so that it is part of the rest */
};

/* Forms of what may be behind the @. */
enum history_points { HISTORY_POINT_NONE, HISTORY_POINT_ONE, HISTORY_POINT_RANGE };

/* "A", "A..B", "A..", "..B": points, an absent one is not named. */
struct history_range {
    struct ng_str from, to;
};

/* Is all of it a point (core/history/point.h)? */
bool history_is_point(struct ng_str text);
/* False: it is none. */
bool history_range_parse(struct ng_str text, struct history_range *ret);
/* "A,B", "A,", ",B", "A": lines from 1 on; *ret_last 0: to the end. False: it is none. */
bool history_lines_parse(struct ng_str text, uint64_t *ret_first, uint64_t *ret_last);
/* NG_OK; NG_EINVAL: *ret_why (static) is the reason; NG_EINTERNAL: out of memory. */
int history_name_parse(struct arena *arena, struct ng_str word, enum history_points points,
                       struct history_name *ret, const char **ret_why);

#endif
