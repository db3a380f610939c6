/* SPDX-License-Identifier: MIT */
/* base64.h - bytes as base64 (RFC 4648, section 4, padded) and base64url (section 5, without
 * padding), and back. */
#ifndef NOTEGATE_CORE_BASE64_H
#define NOTEGATE_CORE_BASE64_H

#include "core/base/arena.h"
#include "core/base/buf.h"

enum base64_alphabet { BASE64_STANDARD = 0, BASE64_URL = 1 };

/* Adds the text of `bytes`. An error stays in out->rc. */
void base64_encode(struct buf *out, struct ng_str bytes, enum base64_alphabet alphabet);
/* Adds the decoded bytes of `text`. false: a character outside of the alphabet, an
 * impossible length, missing or wrong padding (standard), or leftover bits that are not zero:
 * one value has one spelling. An error of memory or size stays in out->rc. */
bool base64_decode(struct buf *out, struct ng_str text, enum base64_alphabet alphabet);
/* The same into the arena's memory. NG_EINVAL: as false above; NG_EINTERNAL: out of memory. */
int base64_decode_in(struct arena *arena, struct ng_str text, enum base64_alphabet alphabet,
                     struct ng_str *ret);
/* As decode, and takes both alphabets, with padding or without, and line ends and blanks
 * between the characters: for data that other programs wrote. */
bool base64_decode_loose(struct buf *out, struct ng_str text);

#endif
