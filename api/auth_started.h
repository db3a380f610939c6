/* SPDX-License-Identifier: MIT */
/*
 * auth_started.h - is a caller a program that this process has started, or that such a program
 * has: a kernel and whatever its cells run? They have the gateway's user, so that alone does
 * not make them its owner.
 */
#ifndef NOTEGATE_API_AUTH_STARTED_H
#define NOTEGATE_API_AUTH_STARTED_H

#include <stdint.h>
#include <sys/types.h>

#include "notegate/abi.h"

enum auth_started {
    AUTH_STARTED_NO = 0,
    AUTH_STARTED_YES,    /* also where it cannot be told any more: it is gone */
    AUTH_STARTED_UNKNOWN /* no descriptor or memory is left for looking */
};

/* Now, as auth_started_process() wants it. */
uint64_t auth_started_ticks(void);
/* The process `pid` that connected before `ticks`: a later one only has its number. pid 0: it
 * is outside of what this process can see, so not below it. Reads /proc, does not block. */
enum auth_started auth_started_process(pid_t pid, uint64_t ticks);
/* Processes that held such sockets lately: they are looked at first. */
#define AUTH_STARTED_RECENT 8
struct auth_started_recent {
    pid_t pids[AUTH_STARTED_RECENT];
    unsigned next;
};

/* Those who hold the socket `inode` of user `uid`. One thread at a time for one `recent`. */
enum auth_started auth_started_socket(uint32_t inode, uid_t uid,
                                      struct auth_started_recent *recent);

#endif
