/* SPDX-License-Identifier: MIT */
/* process.h - processes as /proc tells of them. */
#ifndef NOTEGATE_API_PROCESS_H
#define NOTEGATE_API_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "notegate/abi.h"

struct process {
    pid_t parent;
    char state;     /* 'Z': it has ended and waits to be reaped */
    uint64_t start; /* in ticks since the boot: pid and start name one process for good */
};

/* Does errno tell of a shortage of descriptors or memory, which may be over the next time? */
bool process_is_short(int error);
/* NG_ENOTFOUND: it is gone. NG_EFORBIDDEN: another user's, which /proc hides here.
 * NG_EUNAVAILABLE: it cannot be checked; errno has the reason. */
int process_read(pid_t pid, struct process *ret);
/* Adds the children of one thread of a process to `ret`, which holds *ret_count of `max`. A
 * thread that is gone, and one on a system without such lists, has none. False: they are more
 * than fit, or (with room left) descriptors or memory are short. */
bool process_children(pid_t pid, pid_t thread, pid_t *ret, size_t max, size_t *ret_count);

#endif
