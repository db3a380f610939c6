/* SPDX-License-Identifier: MIT */
/* archive_tally.h - counts what an archive holds: documents of each collection, files of each
 * root. */
#ifndef NOTEGATE_CORE_ARCHIVE_TALLY_H
#define NOTEGATE_CORE_ARCHIVE_TALLY_H

#include "archive.h"
#include "core/base/arena.h"

/* A collection and its documents, or a root and its files. */
struct tally_item {
    struct ng_str name;          /* of the collection; path of the root */
    struct ng_str space, plugin; /* of a root; plugin "": configured */
    uint64_t count;
    struct tally_item *next;
};

struct archive_tally {
    struct arena arena;
    struct tally_item *collections, *roots;
    struct tally_item *left_out; /* roots whose files are not in the archive */
    uint64_t deleted;            /* documents that are tombstones */
};

void archive_tally_init(struct archive_tally *tally);
void archive_tally_done(struct archive_tally *tally);
/* For archive_read(): adds up in `tally`. */
struct archive_sink archive_tally_sink(struct archive_tally *tally);

#endif
