/* SPDX-License-Identifier: MIT */
/* supervisor_client.h - the gateway's end of the process that holds its kernels (holder/). Used
 * by one thread at a time. */
#ifndef NOTEGATE_PLUGIN_CELLS_SUPERVISOR_CLIENT_H
#define NOTEGATE_PLUGIN_CELLS_SUPERVISOR_CLIENT_H

#include "supervisor_protocol.h"

#include <limits.h>
#include <sys/types.h>

#include "notebook/nb.h"

/* Processes that were let go and are not gone: where there are so many, the next stays. */
#define SUPERVISOR_DETACHED_MAX 8

struct supervisor_client {
    int socket; /* -1: there is no such process */
    pid_t pid;
    pid_t detached[SUPERVISOR_DETACHED_MAX];
    size_t detached_count;
    char data_dir_id[SUPERVISOR_OWNER_MAX / 2]; /* which data directory; "": not known */
};

/* One piece of news; `tail` lies in the buffer that was given. */
struct supervisor_event {
    enum supervisor_event_kind kind;
    uint32_t id;
    int32_t value;
    struct ng_str tail;
};

/* socket is -1 from here on. folder: the data directory, which one gateway at a time has. */
void supervisor_init(struct supervisor_client *client, const char *folder);
/* Starts the process. false: *ret_error says why (errno; EPERM: other users can change the
 * program). path: the program. */
bool supervisor_open(struct supervisor_client *client, char path[PATH_MAX], int *ret_error);
/* Can others than root and our user (or who owns this module) change the file, or what is in
 * the folder? Not where it cannot be looked at: using it says why. */
bool supervisor_is_untrusted(const char *path);
/* Ends it: it takes all kernels and what they started with it. Waits until they are gone, which
 * a program that cannot be killed puts off. */
void supervisor_close(struct supervisor_client *client);
/* The same without waiting; another process can be started at once. */
void supervisor_detach(struct supervisor_client *client);
/* Takes those that have ended off the list; true: some have not. Does not wait. */
bool supervisor_is_detaching(struct supervisor_client *client);
/* The process and its guard were killed: kernels went with them, and what those had started
 * goes now. */
void supervisor_sweep(const struct supervisor_client *client);
/* The same of gateways that had this data directory before, with all that holds kernels
 * killed. Before the first supervisor_open(). */
void supervisor_sweep_stale(const struct supervisor_client *client);
/* false: the process is gone or does not listen, or the order is too long. The lists end with
 * NULL. */
bool supervisor_start(struct supervisor_client *client, uint32_t id, const char *folder,
                      char *const *command, char *const *variables);
bool supervisor_signal(struct supervisor_client *client, uint32_t id, int signal);
/* Does not wait. 1: news, 0: none now, -1: the process is gone, and all kernels with it. */
int supervisor_receive(struct supervisor_client *client, char buffer[SUPERVISOR_PACKET_MAX],
                       struct supervisor_event *ret);

#endif
