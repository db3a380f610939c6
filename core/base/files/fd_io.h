/* SPDX-License-Identifier: MIT */
/* fd_io.h - whole reads and writes of a descriptor, also where signals interrupt them; and
 * whether a folder is empty. */
#ifndef NOTEGATE_CORE_FD_IO_H
#define NOTEGATE_CORE_FD_IO_H

#include "notegate/abi.h"

/* fd: a pointer to the descriptor. Reads at most `room` bytes once; *ret_len is 0 at the end.
 * NG_OK, or NG_EFAILED with errno. */
int fd_get(void *fd, char *to, size_t room, size_t *ret_len);
/* Writes all of it, and waits where a descriptor that does not block is full. NG_OK, or
 * NG_EFAILED with errno. */
int fd_put(int fd, struct ng_str bytes);

/* Has the folder `path` below `dir` (AT_FDCWD: the current one) no entries? 1, 0, or -1 and
 * errno: it cannot be read. */
int fd_is_empty_folder(int dir, const char *path);

#endif
