/* SPDX-License-Identifier: MIT */
/* content_hash.h - the hash of the contents of a document that verify compares. Stored: what it
 * gives may never change. It finds damage; it does not withstand a deliberate collision. */
#ifndef NOTEGATE_BACKENDS_CONTENT_HASH_H
#define NOTEGATE_BACKENDS_CONTENT_HASH_H

#include <notegate/backend.h>

#define HASH_BYTES 16

/* The two forms in which backends have stored it since their first version. */
enum content_hash_form {
    CONTENT_HASH_MIXED,  /* sqlite: all bits of a part are mixed behind it */
    CONTENT_HASH_ROTATED /* mongo */
};

void content_hash(enum content_hash_form form, struct ng_str json, struct ng_str text,
                  bool deleted, unsigned char ret[HASH_BYTES]);

#endif
