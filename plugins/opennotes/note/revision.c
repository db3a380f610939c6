/* SPDX-License-Identifier: MIT */
/* revision.c - the first half of the SHA-256 of a note's bytes, in hex. */
#include "revision.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

#define STEP ((size_t)64 * 1024)

static int hash_rest(EVP_MD_CTX *digest, int fd)
{
    char *step = malloc(STEP);
    int rc = step != NULL ? NG_OK : NG_EINTERNAL;
    while (rc == NG_OK) {
        ssize_t got = read(fd, step, STEP);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            rc = NG_EFAILED;
        } else if (got > 0 && EVP_DigestUpdate(digest, step, (size_t)got) != 1) {
            rc = NG_EINTERNAL;
        }
    }
    free(step);
    return rc;
}

int notes_revision(struct ng_str head, int fd, char out[NOTES_REVISION_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[EVP_MAX_MD_SIZE] = {0};
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    int rc = NG_EINTERNAL;
    if (digest != NULL && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
        (head.len == 0 || EVP_DigestUpdate(digest, head.data, head.len) == 1)) {
        rc = fd >= 0 ? hash_rest(digest, fd) : NG_OK;
    }
    if (rc == NG_OK && EVP_DigestFinal_ex(digest, raw, NULL) != 1) {
        rc = NG_EINTERNAL;
    }
    EVP_MD_CTX_free(digest);
    for (size_t i = 0; i < (NOTES_REVISION_SIZE - 1) / 2; i++) {
        out[2 * i] = digits[raw[i] >> 4];
        out[2 * i + 1] = digits[raw[i] & 15];
    }
    out[NOTES_REVISION_SIZE - 1] = '\0';
    return rc;
}
