/* SPDX-License-Identifier: MIT */
/* file_editor_search.h - the parts of `search`: lines by a pattern, names by a glob. */
#ifndef NOTEGATE_FILE_EDITOR_SEARCH_H
#define NOTEGATE_FILE_EDITOR_SEARCH_H

#include "file_editor.h"

/* ---- file_editor_match.c: the lines of a text that match */

struct matcher;

/* A line that matches. Places in the searched text. */
struct match_line {
    size_t start, end; /* without its LF, and without a CR before that */
    size_t next;       /* the line behind it */
    size_t from, to;   /* its first match */
};

struct matcher_options {
    struct ng_str pattern;
    bool regex, ignore_case;
    int64_t deadline_ns; /* monotonic */
};

/* Fails as the other commands for a pattern that is not valid. To be closed also after that. */
int matcher_open(struct ng_call *call, const struct matcher_options *options,
                 struct matcher **ret);
void matcher_close(struct matcher *matcher); /* NULL is a no-op */

enum matcher_found {
    MATCHER_NONE = 0,
    MATCHER_LINE = 1,
    MATCHER_LATE = 2,   /* the deadline of the options has passed */
    MATCHER_FAILED = 3, /* too many steps, or out of memory */
    MATCHER_CANCELLED = 4
};

/* The first matching line of `text` that begins at or behind `at`, the start of a line. After
 * an error *ret is the line that it is about. */
enum matcher_found matcher_next(struct matcher *matcher, struct ng_str text, size_t at,
                                struct match_line *ret);

/* ---- file_editor_glob.c: names by a pattern of *, **, ?, [a-z] and {a,b} */

struct name_glob;

/* Without `/` it is for the last part of a path. Fails for a glob that is not valid. To be
 * closed also after that. */
int name_glob_open(struct ng_call *call, struct ng_str text, struct name_glob **ret);
void name_glob_close(struct name_glob *glob); /* NULL is a no-op */
/* path: below the searched folder. NULL matches every path. */
bool name_glob_match(const struct name_glob *glob, struct ng_str path);

#endif
