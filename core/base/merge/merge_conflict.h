/* SPDX-License-Identifier: MIT */
/*
 * merge_conflict.h - the reason why a document could not be merged, and the places where both
 * sides changed it. Sides are copied: the merged texts may be gone.
 */
#ifndef NOTEGATE_CORE_MERGE_CONFLICT_H
#define NOTEGATE_CORE_MERGE_CONFLICT_H

#include "core/base/buf.h"
#include "core/base/text/json_writer.h"
#include "notegate/abi.h"

/* Places that are told, and bytes of each of their sides. */
#define MERGE_PLACES_MAX 32
#define MERGE_SIDE_MAX ((size_t)1024)
/* Places that the second of two kinds of conflicts has at least, if it has so many. */
#define MERGE_PLACES_JOINED 8

enum merge_reason {
    MERGE_CLEAN = 0,     /* no conflict */
    MERGE_OVERLAP,       /* both sides changed the same lines */
    MERGE_MEMBER,        /* both sides changed a member that is merged as a whole */
    MERGE_CELL,          /* the same of a cell of a notebook, or of the order of cells */
    MERGE_NOT_TEXT,      /* both sides changed a content that has no lines or cells */
    MERGE_TOO_LARGE,     /* both sides changed a content over the limit of merges */
    MERGE_INVALID_MERGE, /* the result is not a document of its kind */
};

struct merge_place {
    uint64_t line;                      /* of present, from 1; 0: the document has no lines */
    size_t at, present_len, before_len; /* in `sides`: present at `at`, before behind it */
};

/* {0} is none. */
struct merge_conflict {
    enum merge_reason reason; /* of the first one that was added */
    struct merge_place places[MERGE_PLACES_MAX];
    size_t place_count;
    uint64_t count;   /* all of them, also those that are not told */
    struct buf sides; /* the texts of all places */
};

/* A conflict without places, unless there is one already. */
void merge_conflict_set(struct merge_conflict *conflict, enum merge_reason reason);
/* Adds a place; its sides are valid UTF-8. Without memory the place is only counted, and
 * sides.rc tells it. */
void merge_conflict_add(struct merge_conflict *conflict, enum merge_reason reason,
                        uint64_t line, struct ng_str present, struct ng_str before);
/* Adds the places of another one of the same document, for which the last ones give way where
 * there are too many. */
void merge_conflict_join(struct merge_conflict *conflict, const struct merge_conflict *other);
/* The sides of a place, lent. */
struct ng_str merge_conflict_present(const struct merge_conflict *conflict, size_t place);
struct ng_str merge_conflict_before(const struct merge_conflict *conflict, size_t place);
void merge_conflict_done(struct merge_conflict *conflict);
/* "overlap". */
const char *merge_reason_name(enum merge_reason reason);
/* Writes {"reason", "at"?: [{"line"?, "present", "before"}]} as the next value. */
void merge_conflict_json(struct ng_writer *writer, const struct merge_conflict *conflict);

/* The outcome of a merge of contents: a text or a conflict. {0} before the merge. */
struct merge_result {
    struct buf text;                /* without a conflict */
    struct merge_conflict conflict; /* MERGE_CLEAN: there is none */
};

void merge_result_done(struct merge_result *result);
/* Makes a copy of `text` the result. NG_OK or NG_EINTERNAL (out of memory). */
int merge_result_set(struct merge_result *result, struct ng_str text);
/*
 * The end of every merge, for contents of any kind and length: present equal to base gives
 * before, byte for byte; before equal to base and present equal to before give present. True:
 * that is the result (check text.rc).
 */
bool merge_result_is_simple(struct merge_result *result, struct ng_str base,
                            struct ng_str present, struct ng_str before);

#endif
