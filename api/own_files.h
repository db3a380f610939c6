/* SPDX-License-Identifier: MIT */
/*
 * own_files.h - descriptors that the gateway cannot do without. Code in this process that
 * closes one which is not its own leaves it alive and deaf: it has to end then.
 */
#ifndef NOTEGATE_API_OWN_FILES_H
#define NOTEGATE_API_OWN_FILES_H

#include <stddef.h>
#include <sys/types.h>

#define OWN_FILES_MAX 8

struct own_files {
    size_t count;
    struct own_file {
        const char *what; /* lent */
        int fd;
        dev_t dev;
        ino_t ino;
    } items[OWN_FILES_MAX];
};

/* fd below 0: none. */
void own_files_note(struct own_files *files, const char *what, int fd);
/* The first that is closed, or open to something else by now; NULL: all are as they were. */
const struct own_file *own_files_lost(const struct own_files *files);

#endif
