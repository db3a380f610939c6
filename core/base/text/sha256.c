/* SPDX-License-Identifier: MIT */
/* sha256.c - SHA-256 of libcrypto. */
#include "sha256.h"

#include <pthread.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "core/base/arena.h"
#include "hex.h"

struct sha256 {
    EVP_MD_CTX *running, *copy;
};

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static const EVP_MD *sha256_fetched;

static void sha256_fetch(void)
{
    sha256_fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
}

/* Otherwise libcrypto looks it up for each hash, which costs as much as a hash of 200 bytes. */
static const EVP_MD *sha256_kind(void)
{
    (void)pthread_once(&sha256_once, sha256_fetch);
    return sha256_fetched != NULL ? sha256_fetched : EVP_sha256();
}

int sha256_digest(struct ng_str text, unsigned char out[SHA256_BYTES])
{
    const char *data = text.len > 0 ? text.data : "";
    if (EVP_Digest(data, text.len, out, NULL, sha256_kind(), NULL) != 1) {
        return NG_EINTERNAL;
    }
    return NG_OK;
}

int sha256_hex(struct ng_str text, char out[SHA256_HEX_SIZE])
{
    unsigned char raw[SHA256_BYTES];
    out[0] = '\0';
    int rc = sha256_digest(text, raw);
    if (rc == NG_OK) {
        hex_write(raw, sizeof(raw), out);
    }
    return rc;
}

int sha256_joined(const struct ng_str *texts, size_t count, unsigned char out[SHA256_BYTES])
{
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    bool done = hash != NULL && EVP_DigestInit_ex(hash, sha256_kind(), NULL) == 1;
    for (size_t i = 0; i < count && done; i++) {
        done = texts[i].len == 0 || EVP_DigestUpdate(hash, texts[i].data, texts[i].len) == 1;
    }
    done = done && EVP_DigestFinal_ex(hash, out, NULL) == 1;
    EVP_MD_CTX_free(hash);
    return done ? NG_OK : NG_EINTERNAL;
}

struct sha256 *sha256_new(void)
{
    struct sha256 *hash = alloc_zeroed(1, sizeof(*hash));
    if (hash == NULL) {
        return NULL;
    }
    hash->running = EVP_MD_CTX_new();
    hash->copy = EVP_MD_CTX_new();
    if (hash->running == NULL || hash->copy == NULL ||
        EVP_DigestInit_ex(hash->running, sha256_kind(), NULL) != 1) {
        sha256_free(hash);
        return NULL;
    }
    return hash;
}

struct sha256 *sha256_copy(const struct sha256 *hash)
{
    struct sha256 *copy = sha256_new();
    if (copy != NULL && EVP_MD_CTX_copy_ex(copy->running, hash->running) != 1) {
        sha256_free(copy);
        copy = NULL;
    }
    return copy;
}

void sha256_free(struct sha256 *hash)
{
    if (hash != NULL) {
        EVP_MD_CTX_free(hash->running);
        EVP_MD_CTX_free(hash->copy);
        free(hash);
    }
}

int sha256_add(struct sha256 *hash, struct ng_str bytes)
{
    if (bytes.len > 0 && EVP_DigestUpdate(hash->running, bytes.data, bytes.len) != 1) {
        return NG_EINTERNAL;
    }
    return NG_OK;
}

int sha256_now(struct sha256 *hash, unsigned char out[SHA256_BYTES])
{
    if (EVP_MD_CTX_copy_ex(hash->copy, hash->running) != 1 ||
        EVP_DigestFinal_ex(hash->copy, out, NULL) != 1) {
        return NG_EINTERNAL;
    }
    return NG_OK;
}
