/* SPDX-License-Identifier: MIT */
/* revision.c - the first half of the SHA-256 of a note's bytes, in hex. */
#include "revision.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/text/hex.h"
#include "core/base/text/sha256.h"

#define STEP ((size_t)64 * 1024)

static int hash_rest(struct sha256 *hash, int fd)
{
    char *step = malloc(STEP);
    int rc = step != NULL ? NG_OK : NG_EINTERNAL;
    while (rc == NG_OK) {
        ssize_t got = read(fd, step, STEP);
        if (got == 0) {
            break;
        }
        if (got > 0) {
            rc = sha256_add(hash, str_make(step, (size_t)got));
        } else if (errno != EINTR) {
            rc = NG_EFAILED;
        }
    }
    free(step);
    return rc;
}

int notes_revision(struct ng_str head, int fd, char out[NOTES_REVISION_SIZE])
{
    unsigned char digest[SHA256_BYTES] = {0};
    struct sha256 *hash = sha256_new();
    int rc = hash != NULL ? sha256_add(hash, head) : NG_EINTERNAL;
    if (rc == NG_OK && fd >= 0) {
        rc = hash_rest(hash, fd);
    }
    if (rc == NG_OK) {
        rc = sha256_now(hash, digest);
    }
    sha256_free(hash);
    hex_write(digest, (NOTES_REVISION_SIZE - 1) / 2, out);
    return rc;
}
