/* SPDX-License-Identifier: MIT */
/*
 * trust.h - files that decide what this process does (configuration, modules, programs) may be
 * written by root and the running user alone.
 */
#ifndef NOTEGATE_CORE_TRUST_H
#define NOTEGATE_CORE_TRUST_H

#include <sys/types.h>

#include "core/base/buf.h"

enum trust {
    TRUST_OWN = 0, /* root or the running user owns it */
    TRUST_PROGRAM  /* or the owner of the running program: its modules are no less trusted */
};

/* Is `uid` known to be one user? Not where a user namespace shows all users that it does not
 * map as this one (the kernel's overflow user). */
bool trust_knows_user(uid_t uid);
/* May the open file `fd`, which was opened as `path`, be trusted? It, its folder and the
 * folder of `path` must belong to trusted users, and others must not be able to write them; a
 * folder with the sticky bit may be writable. NG_EFORBIDDEN: `error` has the whole sentence
 * and the command that mends it. NG_EUNAVAILABLE: it cannot be looked at. */
int trust_check(int fd, const char *path, enum trust trust, struct buf *error);
/* The same of a file that is opened for this alone. NG_ENOTFOUND: it cannot be opened, errno
 * says why. */
int trust_check_path(const char *path, enum trust trust, struct buf *error);
/* `text` as one word of a shell. */
int trust_add_word(struct buf *buf, const char *text);
/* The name of a user, or its number where it has none. */
void trust_user_name(uid_t uid, char *ret_name, size_t size);

#endif
