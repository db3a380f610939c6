/* SPDX-License-Identifier: MIT */
/* checkpoint.h - a checkpoint of a transparency log (C2SP tlog-checkpoint): its origin, its
 * size and the root of its tree, as a signed note. */
#ifndef NOTEGATE_CORE_CHECKPOINT_H
#define NOTEGATE_CORE_CHECKPOINT_H

#include "note.h"
#include "tlog_hash.h"

struct checkpoint {
    uint64_t size;
    struct tlog_hash root;
};

/* Adds the signed note; the origin is the name of the key. NG_OK or NG_EINTERNAL. */
int checkpoint_sign(const struct checkpoint *checkpoint, const struct note_signer *signer,
                    struct buf *out);
/* Reads one that this key has signed, for the origin of its name. As note_open(); NG_EINVAL
 * also where its text is none of a checkpoint, or has another origin. */
int checkpoint_open(struct ng_str note, const struct note_key *key, struct checkpoint *ret);

#endif
