/* SPDX-License-Identifier: MIT */
/* move_changes.h - the notes that a move changes, found by the index. */
#ifndef OPENNOTES_MOVE_CHANGES_H
#define OPENNOTES_MOVE_CHANGES_H

#include "move_facts.h"

struct notes_changed {
    struct ng_str path; /* before the move */
    struct ng_str file; /* its bytes on disk */
    bool moved;
};

struct notes_changes_of_move {
    struct notes_changed *items; /* by path */
    size_t count, room;
    uint64_t broken; /* if nothing leads to the moved notes: links of others that led there */
};

/* Finds them. All facts that their links need were asked for then. Texts lie in the arena. */
int notes_move_changes(struct notes_facts *facts, struct notes_changes_of_move *ret);

#endif
