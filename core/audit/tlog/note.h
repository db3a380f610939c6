/* SPDX-License-Identifier: MIT */
/*
 * note.h - signed notes (C2SP signed-note): a text with lines of signatures under it, signed
 * with Ed25519.
 *
 * A key has a name and an id, four bytes of a hash of name and public key. As a text it is
 * "NAME+ID+BASE64" for verifiers, "PRIVATE+KEY+NAME+ID+BASE64" for the signer.
 */
#ifndef NOTEGATE_CORE_NOTE_H
#define NOTEGATE_CORE_NOTE_H

#include "core/base/buf.h"

#define NOTE_NAME_MAX ((size_t)128)
#define NOTE_KEY_BYTES 32
#define NOTE_SIGNATURE_BYTES 64
/* A key as text, and a note: 16 signatures of the longest algorithms fit. */
#define NOTE_KEY_TEXT_MAX ((size_t)512)
#define NOTE_BYTES_MAX ((size_t)128 * 1024)

struct note_key {
    char name[NOTE_NAME_MAX + 1];
    uint32_t id;
    unsigned char public_key[NOTE_KEY_BYTES];
};

struct note_signer {
    struct note_key key;
    unsigned char secret[NOTE_KEY_BYTES]; /* the seed; note_signer_done() wipes it */
};

/* A name of 1 to NOTE_NAME_MAX visible ASCII characters without "+"? */
bool note_name_is_valid(struct ng_str name);
/* A new key. NG_OK, NG_EINVAL (name), NG_EINTERNAL (memory, no random bytes). */
int note_signer_make(struct ng_str name, struct note_signer *ret);
void note_signer_done(struct note_signer *signer);

/* Adds the texts of keys. An error stays in out->rc; NG_EINTERNAL. */
int note_signer_write(const struct note_signer *signer, struct buf *out);
int note_key_write(const struct note_key *key, struct buf *out);
/* Read them; one line end may follow. NG_OK, NG_EINVAL (not such a text, or its id is not its
 * key's), NG_EINTERNAL. */
int note_signer_read(struct ng_str text, struct note_signer *ret);
int note_key_read(struct ng_str text, struct note_key *ret);

/* Adds the note: `text`, which ends in a line end, a blank line, and the signature. NG_OK or
 * NG_EINTERNAL. */
int note_sign(const struct note_signer *signer, struct ng_str text, struct buf *out);
/* Checks the signature of `key`; others are ignored. *ret_text points into the note. NG_OK;
 * NG_EINVAL: it is no note; NG_ENOTFOUND: this key has not signed it; NG_EFAILED: a signature
 * in its name is wrong; NG_EINTERNAL. */
int note_open(struct ng_str note, const struct note_key *key, struct ng_str *ret_text);

#endif
