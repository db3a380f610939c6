/* SPDX-License-Identifier: MIT */
/* link_rewrite.h - rewrites the links of a note for a move, so that each leads where it led. */
#ifndef OPENNOTES_LINK_REWRITE_H
#define OPENNOTES_LINK_REWRITE_H

#include "markdown/markdown.h"

enum notes_when { NOTES_BEFORE, NOTES_AFTER };

/* A move of a note or folder, as links see it. Paths are relative, in NFC. The functions give
 * texts that live as long as the move. */
struct notes_link_move {
    struct ng_str from, to;
    /* The path, at that time, of the note that a key leads to. {NULL, 0}: there is none. */
    struct ng_str (*leads)(void *user, enum notes_when when, bool wiki, struct ng_str key);
    /* The shortest target of a wiki link that leads to the note `path` after the move, with
     * `ending` one in ".md". {NULL, 0}: there is none. */
    struct ng_str (*shortest)(void *user, struct ng_str path, bool ending);
    /* Is there a file or folder at this path before the move? */
    bool (*exists)(void *user, struct ng_str path);
    void *user;
};

/* A path after the move. {NULL, 0}: out of memory. */
struct ng_str notes_move_path(struct arena *arena, const struct notes_link_move *move,
                              struct ng_str path);

/* ---- link_target.c */

/* A link of a note, for a move of which the note may be part. */
struct notes_link_use {
    const struct notes_link_move *move;
    struct ng_str before, after; /* the note's path */
};

enum notes_link_change {
    NOTES_LINK_STAYS = 0,
    NOTES_LINK_CHANGES,
    NOTES_LINK_IMPOSSIBLE, /* no target leads to its note */
    NOTES_LINK_OOM
};

struct notes_link_target {
    struct ng_str path; /* to be written in place of the path of the old one, */
    size_t replaced;    /* which has so many bytes */
    struct ng_str key;  /* of the new target, where it is no wiki link */
};

/* The target of a link after the move; `target`: as it is meant. */
enum notes_link_change notes_link_retarget(struct arena *arena,
                                           const struct notes_link_use *use, bool wiki,
                                           struct ng_str target, struct notes_link_target *ret);
/* Appends the target in the form of the `written` one. `angle`: that stands in <>. */
void notes_link_write(struct buf *out, const struct notes_link_target *target, bool wiki,
                      struct ng_str written, bool angle);

/* ---- link_rewrite.c */

struct notes_rewritten {
    struct ng_str bytes;  /* in the arena; the same if nothing changes */
    size_t links;         /* rewritten ones */
    size_t line;          /* of a link that cannot be rewritten, */
    struct ng_str target; /* and its target */
};

/* Rewrites a whole file, the note `path` before the move. All other bytes stay. NG_OK;
 * NG_EINVAL: a link cannot be rewritten; NG_EINTERNAL: out of memory. */
int notes_link_rewrite(struct arena *arena, const struct notes_link_move *move,
                       struct ng_str path, struct ng_str bytes, struct notes_rewritten *ret);

#endif
