/* SPDX-License-Identifier: MIT */
/*
 * own_files.h - descriptors that the gateway cannot do without. Code in this process that
 * closes one which is not its own leaves it running without its socket or loop: it must end
 * then.
 *
 * No look at them touches a file system: a data directory on a network may fail or block for a
 * while, be renamed, or lose its lock file, and the descriptor is still the gateway's own.
 */
#ifndef NOTEGATE_API_OWN_FILES_H
#define NOTEGATE_API_OWN_FILES_H

#include <stddef.h>

#define OWN_FILES_MAX 8
/* The start of a link text; only those of files are longer, and a '/' tells these. */
#define OWN_FILES_TEXT_SIZE 48

struct own_files {
    size_t count;
    struct own_file {
        const char *what; /* lent */
        int fd;
        int copy; /* of another than a socket, which a copy would keep open; below 0: none */
        char text[OWN_FILES_TEXT_SIZE]; /* of its link in /proc; empty: unknown */
    } items[OWN_FILES_MAX];
};

/* fd below 0: none. */
void own_files_note(struct own_files *files, const char *what, int fd);
/* The first that is closed, or open to something else by now; NULL: all are as they were. */
const struct own_file *own_files_lost(const struct own_files *files);
/* Closes the copies, and forgets all. */
void own_files_done(struct own_files *files);

#endif
