/* SPDX-License-Identifier: MIT */
/* audit_key.h - the key of the audit log: `key` (0600) signs its checkpoints, `key.pub` is what
 * verifiers get. */
#ifndef NOTEGATE_CORE_AUDIT_KEY_H
#define NOTEGATE_CORE_AUDIT_KEY_H

#include "core/audit/tlog/note.h"

#define AUDIT_KEY_FILE "key"
#define AUDIT_KEY_PUBLIC_FILE "key.pub"

/* Loads the key of the folder `dir`. A folder without a log (`is_new`) gets one of this name;
 * in another one a missing key is an error. note_signer_done() wipes it. NG_OK; NG_EFAILED:
 * the files are damaged or of two keys; NG_EFORBIDDEN: others can read the key;
 * NG_EUNAVAILABLE, NG_EINTERNAL. The sentence is in error. */
int audit_key_load(int dir, bool is_new, struct ng_str name, struct note_signer *ret,
                   struct buf *error);
/* The public key alone. As above. */
int audit_key_load_public(int dir, struct note_key *ret, struct buf *error);

#endif
