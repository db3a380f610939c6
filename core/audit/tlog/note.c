/* SPDX-License-Identifier: MIT */
/* note.c - signed notes; the signatures are libcrypto's. */
#include "note.h"

#include <endian.h>
#include <stdio.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/base/text/hex.h"
#include "core/base/text/random.h"
#include "core/base/text/sha256.h"
#include "core/base/utf8.h"

#define NOTE_ED25519 1 /* the type of its keys and signatures */
#define NOTE_PRIVATE "PRIVATE+KEY+"
#define NOTE_DASH "\xe2\x80\x94 " /* before each signature */
#define NOTE_ID_BYTES 4
#define NOTE_ID_DIGITS ((size_t)2 * NOTE_ID_BYTES)
#define NOTE_TYPED_BYTES (1 + NOTE_KEY_BYTES)

bool note_name_is_valid(struct ng_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] <= ' ' || name.data[i] > '~' || name.data[i] == '+') {
            return false;
        }
    }
    return name.len > 0 && name.len <= NOTE_NAME_MAX;
}

/* ---- keys ---- */

static int key_id(struct note_key *key)
{
    static const char between[] = {'\n', NOTE_ED25519};
    unsigned char digest[SHA256_BYTES];
    const struct ng_str parts[] = {
        ng_str_of(key->name),
        str_make(between, sizeof(between)),
        str_make((const char *)key->public_key, sizeof(key->public_key)),
    };
    int rc = sha256_joined(parts, NG_COUNT(parts), digest);
    if (rc == NG_OK) {
        memcpy(&key->id, digest, sizeof(key->id));
        key->id = be32toh(key->id);
    }
    return rc;
}

static EVP_PKEY *signer_load(const struct note_signer *signer)
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, signer->secret,
                                        sizeof(signer->secret));
}

/* Completes a signer that has name and seed. */
static int signer_complete(struct note_signer *signer)
{
    size_t len = sizeof(signer->key.public_key);
    EVP_PKEY *pair = signer_load(signer);
    bool done = pair != NULL &&
                EVP_PKEY_get_raw_public_key(pair, signer->key.public_key, &len) == 1 &&
                len == sizeof(signer->key.public_key);
    EVP_PKEY_free(pair);
    return done ? key_id(&signer->key) : NG_EINTERNAL;
}

int note_signer_make(struct ng_str name, struct note_signer *ret)
{
    if (!note_name_is_valid(name)) {
        return NG_EINVAL;
    }
    utf8_copy(ret->key.name, sizeof(ret->key.name), name);
    if (!random_bytes(ret->secret, sizeof(ret->secret))) {
        return NG_EINTERNAL;
    }
    return signer_complete(ret);
}

void note_signer_done(struct note_signer *signer)
{
    OPENSSL_cleanse(signer->secret, sizeof(signer->secret));
}

/* NAME+ID+BASE64 of the type and the bytes. */
static int key_write(const struct note_key *key, const unsigned char *bytes, struct buf *out)
{
    char typed[NOTE_TYPED_BYTES] = {NOTE_ED25519};
    memcpy(typed + 1, bytes, NOTE_KEY_BYTES);
    (void)buf_printf(out, "%s+%08x+", key->name, key->id);
    base64_encode(out, str_make(typed, sizeof(typed)), BASE64_STANDARD);
    OPENSSL_cleanse(typed, sizeof(typed));
    return out->rc;
}

int note_signer_write(const struct note_signer *signer, struct buf *out)
{
    (void)buf_add_c(out, NOTE_PRIVATE);
    return key_write(&signer->key, signer->secret, out);
}

int note_key_write(const struct note_key *key, struct buf *out)
{
    return key_write(key, key->public_key, out);
}

/* The part of *text up to the next "+", which is taken off. */
static struct ng_str key_part(struct ng_str *text)
{
    size_t end = size_min(str_find(*text, ng_str_of("+"), 0), text->len);
    struct ng_str part = str_make(text->data, end);
    size_t used = size_min(end + 1, text->len);
    *text = str_make(text->data + used, text->len - used);
    return part;
}

/* The last part: the type and exactly so many bytes. */
static bool key_bytes(struct ng_str text, unsigned char out[NOTE_KEY_BYTES])
{
    char room[NOTE_TYPED_BYTES + 1];
    struct buf typed = {.data = room, .cap = sizeof(room), .max = NOTE_TYPED_BYTES};
    bool read = base64_decode(&typed, text, BASE64_STANDARD) && typed.len == NOTE_TYPED_BYTES &&
                room[0] == NOTE_ED25519;
    if (read) {
        memcpy(out, room + 1, NOTE_KEY_BYTES);
    }
    OPENSSL_cleanse(room, sizeof(room));
    return read;
}

/* Fills name, id and the bytes behind them. */
static int key_read(struct ng_str text, struct note_key *ret, unsigned char *bytes)
{
    unsigned char id[NOTE_ID_BYTES];
    char again[NOTE_ID_DIGITS + 1];
    if (text.len > 0 && text.data[text.len - 1] == '\n') {
        text.len--;
    }
    struct ng_str name = key_part(&text);
    struct ng_str digits = key_part(&text);
    if (!note_name_is_valid(name) || digits.len != NOTE_ID_DIGITS || !hex_read(digits, id) ||
        !key_bytes(text, bytes)) {
        return NG_EINVAL;
    }
    hex_write(id, sizeof(id), again);
    if (!str_is(digits, again)) { /* one key has one spelling */
        return NG_EINVAL;
    }
    utf8_copy(ret->name, sizeof(ret->name), name);
    memcpy(&ret->id, id, sizeof(ret->id));
    ret->id = be32toh(ret->id);
    return NG_OK;
}

int note_signer_read(struct ng_str text, struct note_signer *ret)
{
    struct ng_str head = ng_str_of(NOTE_PRIVATE);
    if (!str_starts(text, head)) {
        return NG_EINVAL;
    }
    text = str_make(text.data + head.len, text.len - head.len);
    int rc = key_read(text, &ret->key, ret->secret);
    uint32_t id = rc == NG_OK ? ret->key.id : 0;
    if (rc == NG_OK) {
        rc = signer_complete(ret);
    }
    return rc == NG_OK && ret->key.id != id ? NG_EINVAL : rc;
}

int note_key_read(struct ng_str text, struct note_key *ret)
{
    int rc = key_read(text, ret, ret->public_key);
    uint32_t id = rc == NG_OK ? ret->id : 0;
    if (rc == NG_OK) {
        rc = key_id(ret);
    }
    return rc == NG_OK && ret->id != id ? NG_EINVAL : rc;
}

/* ---- notes ---- */

int note_sign(const struct note_signer *signer, struct ng_str text, struct buf *out)
{
    unsigned char line[NOTE_ID_BYTES + NOTE_SIGNATURE_BYTES];
    size_t len = NOTE_SIGNATURE_BYTES;
    uint32_t id = htobe32(signer->key.id);
    memcpy(line, &id, sizeof(id));
    EVP_PKEY *pair = signer_load(signer);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool done = pair != NULL && context != NULL &&
                EVP_DigestSignInit(context, NULL, NULL, NULL, pair) == 1 &&
                EVP_DigestSign(context, line + NOTE_ID_BYTES, &len,
                               (const unsigned char *)text.data, text.len) == 1 &&
                len == NOTE_SIGNATURE_BYTES;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pair);
    if (!done) {
        return NG_EINTERNAL;
    }
    (void)buf_add_str(out, text);
    (void)buf_printf(out, "\n" NOTE_DASH "%s ", signer->key.name);
    base64_encode(out, str_make((const char *)line, sizeof(line)), BASE64_STANDARD);
    return buf_add_char(out, '\n');
}

/* 1: it is the text's; 0: it is not; -1: out of memory. */
static int signature_check(const struct note_key *key, struct ng_str text,
                           const unsigned char signature[NOTE_SIGNATURE_BYTES])
{
    EVP_PKEY *public_key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->public_key,
                                                       sizeof(key->public_key));
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int verdict = -1;
    if (public_key != NULL && context != NULL &&
        EVP_DigestVerifyInit(context, NULL, NULL, NULL, public_key) == 1) {
        verdict = EVP_DigestVerify(context, signature, NOTE_SIGNATURE_BYTES,
                                   (const unsigned char *)text.data, text.len) == 1;
    }
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(public_key);
    return verdict;
}

/* Valid UTF-8 without controls but line ends? */
static bool note_is_text(struct ng_str note)
{
    for (size_t i = 0; i < note.len; i++) {
        if ((unsigned char)note.data[i] < 0x20 && note.data[i] != '\n') {
            return false;
        }
    }
    return note.len <= NOTE_BYTES_MAX && utf8_valid(note);
}

/* The place behind the last blank line: of the signatures. 0: there is none. */
static size_t note_signatures(struct ng_str note)
{
    for (size_t at = note.len; at >= 2; at--) {
        if (note.data[at - 1] == '\n' && note.data[at - 2] == '\n') {
            return at;
        }
    }
    return 0;
}

/* One line of a signature, without its end. NG_OK: of another key; NG_PENDING: of this one, and
 * right. */
static int signature_line(struct ng_str line, const struct note_key *key, struct ng_str text)
{
    unsigned char room[NOTE_ID_BYTES + NOTE_SIGNATURE_BYTES + 1];
    struct buf bytes = {.data = (char *)room, .cap = sizeof(room), .max = sizeof(room) - 1};
    struct ng_str dash = ng_str_of(NOTE_DASH);
    uint32_t id;
    if (!str_starts(line, dash)) {
        return NG_EINVAL;
    }
    line = str_make(line.data + dash.len, line.len - dash.len);
    size_t space = str_find(line, ng_str_of(" "), 0);
    if (space == SIZE_MAX || space == 0) {
        return NG_EINVAL;
    }
    struct ng_str name = str_make(line.data, space);
    if (!str_is(name, key->name)) {
        return NG_OK;
    }
    struct ng_str text64 = str_make(line.data + space + 1, line.len - space - 1);
    if (!base64_decode(&bytes, text64, BASE64_STANDARD) || bytes.len < NOTE_ID_BYTES) {
        return NG_EFAILED;
    }
    memcpy(&id, room, sizeof(id));
    if (be32toh(id) != key->id) {
        return NG_OK;
    }
    int verdict =
        bytes.len == sizeof(room) - 1 ? signature_check(key, text, room + NOTE_ID_BYTES) : 0;
    if (verdict < 0) {
        return NG_EINTERNAL;
    }
    return verdict == 1 ? NG_PENDING : NG_EFAILED;
}

int note_open(struct ng_str note, const struct note_key *key, struct ng_str *ret_text)
{
    bool is_signed = false;
    size_t at = note_signatures(note);
    if (at == 0 || at == note.len || !note_is_text(note)) {
        return NG_EINVAL;
    }
    struct ng_str text = str_make(note.data, at - 1);
    while (at < note.len) {
        size_t end = str_find(note, ng_str_of("\n"), at);
        if (end == SIZE_MAX) {
            return NG_EINVAL;
        }
        int rc = signature_line(str_make(note.data + at, end - at), key, text);
        if (rc < 0) {
            return rc;
        }
        is_signed = is_signed || rc == NG_PENDING;
        at = end + 1;
    }
    if (!is_signed) {
        return NG_ENOTFOUND;
    }
    *ret_text = text;
    return NG_OK;
}
