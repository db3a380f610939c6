/* SPDX-License-Identifier: MIT */
/*
 * auth_started.h - is a caller a program that this process has started, or that such a program
 * has: a kernel and whatever its cells run? They have the gateway's user, so that alone does
 * not make them its owner.
 */
#ifndef NOTEGATE_API_AUTH_STARTED_H
#define NOTEGATE_API_AUTH_STARTED_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "notegate/abi.h"

enum auth_started {
    AUTH_STARTED_NO = 0,
    AUTH_STARTED_YES,    /* also where those that this process started are too many to tell */
    AUTH_STARTED_UNSEEN, /* it was not found, and it may be one of them: it counts as one */
    AUTH_STARTED_UNKNOWN /* no descriptor or memory is left for looking */
};

/* When programs below this process last ran. Begun before it listens: what ended before never
 * connected. Any thread may use it then. */
struct auth_started_past {
    _Atomic uint64_t usage; /* of all that ended and were reaped */
    _Atomic uint64_t until; /* in ticks; 0: none ran */
};

/* Also takes back that SIGCHLD is ignored, where this process was started so. */
void auth_started_begin(struct auth_started_past *past);
/* To be called now and then, so that it is known when they ended. Do any run? Does not block.
 */
bool auth_started_look(struct auth_started_past *past);

/* Now, as the following want it. */
uint64_t auth_started_ticks(void);
/* The process `pid` whose connection was accepted at `ticks`: a later one only has its number.
 * pid 0: it is outside of what this process can see, so not below it. Reads /proc, does not
 * block. */
enum auth_started auth_started_process(struct auth_started_past *past, pid_t pid,
                                       uint64_t ticks);
/* Processes that held such sockets recently: they are checked first. */
#define AUTH_STARTED_RECENT 8
struct auth_started_recent {
    pid_t pids[AUTH_STARTED_RECENT];
    unsigned next;
};

/* The other end of a TCP connection that was accepted at `ticks`. inode 0: it is closed, or not
 * known. */
struct auth_started_end {
    uint32_t inode;
    uid_t uid;
    uint64_t ticks;
};

/* Programs that hold the socket. At most one thread at a time for one `recent`. */
enum auth_started auth_started_socket(struct auth_started_past *past,
                                      const struct auth_started_end *end,
                                      struct auth_started_recent *recent);

#endif
