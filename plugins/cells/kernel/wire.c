/* SPDX-License-Identifier: MIT */
/* wire.c - frames, headers and signatures. */
#include "wire.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/text/random.h"
#include "core/base/text/rfc3339.h"

#define ID_BYTES 16
#define SIGNED_FRAMES 4 /* header, parent header, metadata, content */
#define HASH_BYTES 32

bool wire_id(char id[WIRE_ID_SIZE])
{
    return random_hex(ID_BYTES, id);
}

static bool sign(const struct wire_key *key, const struct ng_str parts[SIGNED_FRAMES],
                 char signature[WIRE_SIGNATURE + 1])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    size_t length = 0;
    signature[0] = '\0';
    if (key->text[0] == '\0') {
        return true;
    }
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *context = NULL;
    if (mac != NULL) {
        context = EVP_MAC_CTX_new(mac);
    }
    bool good = context != NULL && EVP_MAC_init(context, (const unsigned char *)key->text,
                                                strlen(key->text), params) == 1;
    for (size_t i = 0; i < SIGNED_FRAMES && good; i++) {
        good = EVP_MAC_update(context, (const unsigned char *)parts[i].data, parts[i].len) == 1;
    }
    good = good && EVP_MAC_final(context, hash, &length, sizeof(hash)) == 1 &&
           length == HASH_BYTES;
    if (good) {
        hex_write(hash, HASH_BYTES, signature);
    }
    EVP_MAC_CTX_free(context);
    EVP_MAC_free(mac);
    return good;
}

static void add_member(struct nb_text *out, const char *name, const char *value)
{
    nb_add_if(out, out->len > 1, ",");
    nb_addf(out, "\"%s\":", name);
    nb_encode(out, ng_str_of(value), true);
}

bool wire_make(struct wire_out *out, const struct wire_key *key, const char *session,
               const char *type, struct ng_str content)
{
    char date[RFC3339_SIZE];
    memset(out, 0, sizeof(*out));
    if (!wire_id(out->id)) {
        return false;
    }
    rfc3339_write(clock_unix_ms(), RFC3339_MS, date);
    nb_add_word(&out->header, "{");
    add_member(&out->header, "msg_id", out->id);
    add_member(&out->header, "session", session);
    add_member(&out->header, "username", "notegate");
    add_member(&out->header, "date", date);
    add_member(&out->header, "msg_type", type);
    add_member(&out->header, "version", "5.3");
    nb_add_word(&out->header, "}");
    nb_add_str(&out->content, content);
    struct ng_str parts[SIGNED_FRAMES] = {nb_text_str(&out->header), ng_str_of("{}"),
                                          ng_str_of("{}"), nb_text_str(&out->content)};
    return !out->header.failed && !out->content.failed && sign(key, parts, out->signature);
}

void wire_out_done(struct wire_out *out)
{
    nb_text_done(&out->header);
    nb_text_done(&out->content);
}

/* The text of a string without escapes; otherwise {NULL, 0}. */
static struct ng_str plain(struct ng_str bytes, struct nb_span string)
{
    struct ng_str none = {NULL, 0};
    if (string.len < 2 || bytes.data[string.at] != '"' ||
        memchr(bytes.data + string.at, '\\', string.len) != NULL) {
        return none;
    }
    struct ng_str text = {bytes.data + string.at + 1, string.len - 2};
    return text;
}

static bool is_object(struct ng_str json)
{
    size_t at = 0;
    while (at < json.len && strchr(" \t\r\n", json.data[at]) != NULL && json.data[at] != '\0') {
        at++;
    }
    return at < json.len && json.data[at] == '{' && nb_check(json);
}

bool wire_parse(const struct ng_str *frames, size_t count, const struct wire_key *key,
                struct wire_message *ret)
{
    char signature[WIRE_SIGNATURE + 1];
    size_t at = 0;
    /* Skip identities or a topic. */
    while (at < count && !str_is(frames[at], WIRE_DELIMITER)) {
        at++;
    }
    if (count - at < 2 + SIGNED_FRAMES) {
        return false;
    }
    const struct ng_str *parts = &frames[at + 2];
    if (!sign(key, parts, signature) || frames[at + 1].len != strlen(signature) ||
        CRYPTO_memcmp(frames[at + 1].data, signature, frames[at + 1].len) != 0) {
        return false;
    }
    if (!is_object(parts[0]) || !is_object(parts[1]) || !is_object(parts[3])) {
        return false;
    }
    struct nb_span header = {0, parts[0].len};
    struct nb_span parent = {0, parts[1].len};
    ret->type = plain(parts[0], nb_member(parts[0], header, "msg_type"));
    ret->parent_id = plain(parts[1], nb_member(parts[1], parent, "msg_id"));
    ret->content = parts[3];
    return ret->type.len > 0;
}
