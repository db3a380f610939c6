/* SPDX-License-Identifier: MIT */
/*
 * audit_verify.h - checks a whole audit log against its signed checkpoint: each entry against
 * its tile, each tile against the one above, the root against the signature; and, if one is
 * given, a checkpoint that was kept elsewhere, whose tree must be a beginning of this one. The
 * values behind the names that entries show are checked as well.
 *
 * Without a kept checkpoint a log is only consistent in itself: key and disk suffice to write
 * another one.
 */
#ifndef NOTEGATE_CORE_AUDIT_VERIFY_H
#define NOTEGATE_CORE_AUDIT_VERIFY_H

#include "core/base/buf.h"

/* A gateway that goes on writing: its newer checkpoint is checked then, so often at most. */
#define AUDIT_VERIFY_TRIES 16

struct audit_verify_report {
    uint64_t size;    /* entries that the checkpoint has signed */
    uint64_t pruned;  /* of them the first ones, of which only the roots of tiles are left */
    uint64_t kept;    /* of the given checkpoint; 0: none is given */
    uint64_t pending; /* entries that no checkpoint has signed yet */
    uint64_t names;   /* values that can still be told; redacted ones are not counted */
    /* NG_EFAILED: the first entry that does not fit is one of these. Those before it fit each
     * other; that they are what they were, only a kept checkpoint can tell. */
    uint64_t bad_first, bad_last; /* `size`: it is not one of the entries */
};

/* kept: the text of a checkpoint, or absent. Reads only, also while a gateway writes. NG_OK;
 * NG_EFAILED: it was tampered with or is damaged, and `problem` says how; NG_EINVAL: `kept` is
 * no checkpoint; NG_ENOTFOUND: there is no log; NG_EUNAVAILABLE, NG_EINTERNAL. The sentence is
 * in problem, but for NG_ENOTFOUND. */
int audit_verify(const char *path, struct ng_str kept, struct audit_verify_report *ret,
                 struct buf *problem);

#endif
