/* SPDX-License-Identifier: MIT */
/* move_source.h - the source of a move: a note or a folder of the notebook, or of its trash. */
#ifndef OPENNOTES_MOVE_SOURCE_H
#define OPENNOTES_MOVE_SOURCE_H

#include "move_facts.h"

struct notes_move_source {
    struct ng_str path;     /* relative, in NFC */
    struct ng_str absolute; /* as on disk */
    bool folder;
    bool trashed;
};

/* Finds what the path names. NOTE_NOT_FOUND, NOTE_INVALID_PATH, PATH_TRAVERSAL. */
int notes_source_find(struct notes_notebook *notebook, struct ng_call *call,
                      struct ng_str given, struct notes_move_source *ret);
/* Adds the notes of a trashed source, which no index has, to the moved ones. */
int notes_source_add_trashed(struct notes_facts *facts, const struct notes_move_source *source);

#endif
