/* SPDX-License-Identifier: MIT */
/*
 * audit_mark.h - how far the audit log has the changes of the store: the file `seen`.
 *
 * Every change with a number up to `seq` has its entry; those of later changes are entries
 * from `entries` on. So a start finds the changes without an entry that a kill has left, and
 * reads no more of the log than was written since the mark.
 */
#ifndef NOTEGATE_CORE_AUDIT_MARK_H
#define NOTEGATE_CORE_AUDIT_MARK_H

#include "core/base/buf.h"

#define AUDIT_MARK_FILE "seen"

struct audit_mark {
    uint64_t seq, entries;
};

/* NG_OK; NG_ENOTFOUND: there is none; NG_EFAILED: it is damaged; NG_EUNAVAILABLE, NG_EINTERNAL.
 * The sentence is in error, but for NG_ENOTFOUND. */
int audit_mark_read(int dir, struct audit_mark *ret, struct buf *error);
/* NG_OK, NG_EUNAVAILABLE with the sentence. */
int audit_mark_write(int dir, const struct audit_mark *mark, struct buf *error);

/* Numbers of changes. */
struct audit_seqs {
    uint64_t *items;
    size_t count, room;
};

/* The numbers above mark->seq in entries from mark->entries on, in order. NG_OK, or as
 * audit_reader_get(). audit_seqs_done() in any case. */
int audit_seqs_read(const char *path, const struct audit_mark *mark, struct audit_seqs *ret,
                    struct buf *error);
bool audit_seqs_have(const struct audit_seqs *seqs, uint64_t seq);
void audit_seqs_done(struct audit_seqs *seqs);

#endif
