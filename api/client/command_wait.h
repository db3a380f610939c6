/* SPDX-License-Identifier: MIT */
/* command_wait.h - a command waits for its own call in the gateway that it has opened. */
#ifndef NOTEGATE_API_COMMAND_WAIT_H
#define NOTEGATE_API_COMMAND_WAIT_H

#include <pthread.h>

#include "core/base/lock.h"
#include "core/call/call.h"

struct command_wait {
    struct lock lock;
    pthread_cond_t changed;
    bool done;
};

/* Before the call is dispatched: takes call->done. */
void command_wait_begin(struct command_wait *wait, struct call *call);
/* dispatched: what dispatch() returned. When this returns the call has its result. */
void command_wait_end(struct command_wait *wait, int dispatched);

#endif
