/* SPDX-License-Identifier: MIT */
/* own_files.c - tells by device and inode whether a descriptor is the one that it was. */
#include "own_files.h"

#include <sys/stat.h>

void own_files_note(struct own_files *files, const char *what, int fd)
{
    struct stat info;
    if (fd >= 0 && files->count < OWN_FILES_MAX && fstat(fd, &info) == 0) {
        files->items[files->count++] = (struct own_file){what, fd, info.st_dev, info.st_ino};
    }
}

const struct own_file *own_files_lost(const struct own_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct own_file *file = &files->items[i];
        struct stat info;
        if (fstat(file->fd, &info) != 0 || info.st_dev != file->dev ||
            info.st_ino != file->ino) {
            return file;
        }
    }
    return NULL;
}
