/* SPDX-License-Identifier: MIT */
/*
 * private_file.h - files that hold everything for a while: copies on their way to their name.
 *
 * In a folder that others may write to, a file that is already there may be theirs, and they
 * may have it open. So the file is always a new one (O_EXCL), readable by its owner alone from
 * its first moment, and what is found under its name is looked at by descriptor.
 */
#ifndef NOTEGATE_CORE_PRIVATE_FILE_H
#define NOTEGATE_CORE_PRIVATE_FILE_H

#define PRIVATE_PATH_MAX 4096

struct private_file {
    int fd;                      /* read and write; locked (F_SETLK) until it is closed */
    char path[PRIVATE_PATH_MAX]; /* its present path */
};

/*
 * Makes PATH.tmp, mode 0600. What a killed process of this user left there is removed; where
 * another one's is, or anything that is no file of this user alone, the name is another one
 * beside it. NG_OK, NG_EBUSY (a process of this user is writing it), NG_EFAILED with errno;
 * ret->path is the name in each case.
 */
int private_file_make(const char *path, struct private_file *ret);

#endif
