/* SPDX-License-Identifier: MIT */
/*
 * same_random.c - preloaded into a gateway under test: the first three requests for twelve
 * random bytes, the length of an entry's id, get the same bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

ssize_t getrandom(void *bytes, size_t len, unsigned flags)
{
    static atomic_int requests;
    if (len == 12 && atomic_fetch_add(&requests, 1) < 3) {
        memset(bytes, 0, len);
        return (ssize_t)len;
    }
    ssize_t (*real)(void *, size_t, unsigned) =
        (ssize_t(*)(void *, size_t, unsigned))dlsym(RTLD_NEXT, "getrandom");
    return real(bytes, len, flags);
}
