/* SPDX-License-Identifier: MIT */
/* supervisor_client.h - the gateway's client of the supervisor process. Not thread-safe. */
#ifndef NOTEGATE_PLUGIN_CELLS_SUPERVISOR_CLIENT_H
#define NOTEGATE_PLUGIN_CELLS_SUPERVISOR_CLIENT_H

#include "supervisor_protocol.h"

#include <limits.h>
#include <sys/types.h>

#include "notebook/nb.h"

/* Detached processes that may still be exiting; beyond that, the next one is not detached. */
#define SUPERVISOR_DETACHED_MAX 8

struct supervisor_client {
    int socket; /* -1: not running */
    pid_t pid;
    pid_t detached[SUPERVISOR_DETACHED_MAX];
    size_t detached_count;
    char data_dir_id[SUPERVISOR_OWNER_MAX / 2]; /* identifies the data directory; "": unknown */
};

/* An event; `tail` points into the receive buffer. */
struct supervisor_event {
    enum supervisor_event_kind kind;
    uint32_t id;
    int32_t value;
    struct ng_str tail;
};

/* Sets socket to -1. folder: the data directory, which one gateway has at a time. */
void supervisor_init(struct supervisor_client *client, const char *folder);
/* Starts the program, whose path is stored in `path`. False: *ret_error is an errno; EPERM:
 * other users can change the program. */
bool supervisor_open(struct supervisor_client *client, char path[PATH_MAX], int *ret_error);
/* Can users other than root, ours and the owner of this module change the file, or the contents
 * of the folder? False if it cannot be inspected: using it reports the reason. */
bool supervisor_is_untrusted(const char *path);
/* Ends the supervisor, its kernels and their descendants. Blocks until they are gone; a process
 * that cannot be killed delays this. */
void supervisor_close(struct supervisor_client *client);
/* The same without waiting; another supervisor can be started at once. */
void supervisor_detach(struct supervisor_client *client);
/* Reaps detached processes that have exited. True: some have not. Does not block. */
bool supervisor_is_detaching(struct supervisor_client *client);
/* Kills the descendants of kernels after a crash of the supervisor and its guard. */
void supervisor_sweep(const struct supervisor_client *client);
/* The same for a crashed gateway that had this data directory before. Call before
 * supervisor_open(). */
void supervisor_sweep_stale(const struct supervisor_client *client);
/* False: the supervisor is gone or does not read, or the request is too long. The lists are
 * NULL-terminated. */
bool supervisor_start(struct supervisor_client *client, uint32_t id, const char *folder,
                      const char *const *command, const char *const *variables);
bool supervisor_signal(struct supervisor_client *client, uint32_t id, int signal);
/* Does not block. 1: event, 0: none, -1: the supervisor and all kernels are gone. */
int supervisor_receive(struct supervisor_client *client, char buffer[SUPERVISOR_PACKET_MAX],
                       struct supervisor_event *ret);

#endif
