/* SPDX-License-Identifier: MIT */
/* holding.h - the gateway's end of the process that holds its kernels (holder/). Used by one
 * thread at a time. */
#ifndef NOTEGATE_PLUGIN_CELLS_HOLDING_H
#define NOTEGATE_PLUGIN_CELLS_HOLDING_H

#include "orders.h"

#include <limits.h>
#include <sys/types.h>

#include "notebook/nb.h"

/* Processes that were let go and are not gone: where there are so many, the next stays. */
#define HOLDING_LEAVING_MAX 8

struct holding {
    int socket; /* -1: there is no such process */
    pid_t pid;
    pid_t leaving[HOLDING_LEAVING_MAX];
    size_t leaving_count;
    char place[HOLDER_OWNER_MAX / 2]; /* which data directory; "": not known */
};

/* One piece of news; `tail` lies in the buffer that was given. */
struct holding_news {
    enum holder_news_kind kind;
    uint32_t id;
    int32_t value;
    struct ng_str tail;
};

/* socket is -1 from here on. folder: the data directory, which one gateway at a time has. */
void holding_init(struct holding *holding, const char *folder);
/* Starts the process. false: *ret_error says why (errno; EPERM: other users can change the
 * program). path: the program. */
bool holding_open(struct holding *holding, char path[PATH_MAX], int *ret_error);
/* Can others than root and our user (or who owns this module) change the file, or what is in
 * the folder? Not where it cannot be looked at: using it says why. */
bool holding_is_others(const char *path);
/* Ends it: it takes all kernels and what they started with it. Waits until they are gone, which
 * a program that cannot be killed puts off. */
void holding_close(struct holding *holding);
/* The same without waiting; another process can be started at once. */
void holding_leave(struct holding *holding);
/* Takes those that have ended off the list; true: some have not. Does not wait. */
bool holding_is_leaving(struct holding *holding);
/* The process and its guard were killed: kernels went with them, and what those had started
 * goes now. */
void holding_sweep(const struct holding *holding);
/* The same of gateways that had this data directory before, with all that holds kernels
 * killed. Before the first holding_open(). */
void holding_sweep_old(const struct holding *holding);
/* false: the process is gone or does not listen, or the order is too long. The lists end with
 * NULL. */
bool holding_start(struct holding *holding, uint32_t id, const char *folder,
                   char *const *command, char *const *variables);
bool holding_signal(struct holding *holding, uint32_t id, int signal);
/* Does not wait. 1: news, 0: none now, -1: the process is gone, and all kernels with it. */
int holding_news(struct holding *holding, char buffer[HOLDER_PACKET_MAX],
                 struct holding_news *ret);

#endif
