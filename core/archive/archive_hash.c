/* SPDX-License-Identifier: MIT */
/* archive_hash.c - the running SHA-256 of an archive. */
#include "archive_hash.h"

#include <stdlib.h>

#include <openssl/evp.h>

#include "core/base/arena.h"

struct archive_hash {
    EVP_MD_CTX *running, *copy;
};

struct archive_hash *archive_hash_new(void)
{
    struct archive_hash *hash = alloc_zeroed(1, sizeof(*hash));
    if (hash == NULL) {
        return NULL;
    }
    hash->running = EVP_MD_CTX_new();
    hash->copy = EVP_MD_CTX_new();
    if (hash->running == NULL || hash->copy == NULL ||
        EVP_DigestInit_ex(hash->running, EVP_sha256(), NULL) != 1) {
        archive_hash_free(hash);
        return NULL;
    }
    return hash;
}

void archive_hash_free(struct archive_hash *hash)
{
    if (hash != NULL) {
        EVP_MD_CTX_free(hash->running);
        EVP_MD_CTX_free(hash->copy);
        free(hash);
    }
}

int archive_hash_add(struct archive_hash *hash, struct ng_str bytes)
{
    if (bytes.len > 0 && EVP_DigestUpdate(hash->running, bytes.data, bytes.len) != 1) {
        return NG_EINTERNAL;
    }
    return NG_OK;
}

int archive_hash_hex(struct archive_hash *hash, char ret_hex[ARCHIVE_HASH_CHARS + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (EVP_MD_CTX_copy_ex(hash->copy, hash->running) != 1 ||
        EVP_DigestFinal_ex(hash->copy, raw, &len) != 1 || len * 2 != ARCHIVE_HASH_CHARS) {
        return NG_EINTERNAL;
    }
    for (unsigned i = 0; i < len; i++) {
        ret_hex[2 * i] = digits[raw[i] >> 4];
        ret_hex[2 * i + 1] = digits[raw[i] & 15];
    }
    ret_hex[ARCHIVE_HASH_CHARS] = '\0';
    return NG_OK;
}
