/* SPDX-License-Identifier: MIT */
/* holding.h - the gateway's end of the process that holds its kernels (holder/). Used by one
 * thread at a time. */
#ifndef NOTEGATE_PLUGIN_CELLS_HOLDING_H
#define NOTEGATE_PLUGIN_CELLS_HOLDING_H

#include "holder/orders.h"

#include <limits.h>
#include <sys/types.h>

#include "nb.h"

struct holding {
    int socket; /* -1: there is no such process */
    pid_t pid;
};

/* One piece of news; `tail` lies in the buffer that was given. */
struct holding_news {
    enum holder_news_kind kind;
    uint32_t id;
    int32_t value;
    struct ng_str tail;
};

/* Starts the process. false: *ret_error says why (errno). path: the program. */
bool holding_open(struct holding *holding, char path[PATH_MAX], int *ret_error);
/* Ends it: it takes all kernels and what they started with it. Waits until they are gone. */
void holding_close(struct holding *holding);
/* The process was killed: its kernels went with it, and what they had started goes now. */
void holding_sweep(void);
/* false: the process is gone or does not listen, or the order is too long. The lists end with
 * NULL. */
bool holding_start(struct holding *holding, uint32_t id, const char *folder,
                   char *const *command, char *const *variables);
bool holding_signal(struct holding *holding, uint32_t id, int signal);
/* Does not wait. 1: news, 0: none now, -1: the process is gone, and all kernels with it. */
int holding_news(struct holding *holding, char buffer[HOLDER_PACKET_MAX],
                 struct holding_news *ret);

#endif
