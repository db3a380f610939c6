/* SPDX-License-Identifier: MIT */
/* command_wait.c - a command waits for its own call in the gateway that it has opened. */
#include "command_wait.h"

#include "core/base/lock.h"

static void wait_done(struct call *call, void *user)
{
    struct command_wait *wait = user;
    (void)call;
    lock_take(&wait->lock);
    wait->done = true;
    (void)pthread_cond_signal(&wait->changed);
    lock_release(&wait->lock);
}

void command_wait_begin(struct command_wait *wait, struct call *call)
{
    lock_init(&wait->lock, LOCK_COMMAND_WAIT);
    lock_cond_init(&wait->changed);
    wait->done = false;
    call->done = wait_done;
    call->done_user = wait;
}

void command_wait_end(struct command_wait *wait, int dispatched)
{
    if (dispatched == NG_PENDING) {
        lock_take(&wait->lock);
        while (!wait->done) {
            lock_wait(&wait->changed, &wait->lock);
        }
        lock_release(&wait->lock);
    }
    (void)pthread_cond_destroy(&wait->changed);
    lock_done(&wait->lock);
}
