/* SPDX-License-Identifier: MIT */
/* command_wait.c - a command waits for its own call in the gateway that it has opened. */
#include "command_wait.h"

static void wait_done(struct call *call, void *user)
{
    struct command_wait *wait = user;
    (void)call;
    (void)pthread_mutex_lock(&wait->lock);
    wait->done = true;
    (void)pthread_cond_signal(&wait->changed);
    (void)pthread_mutex_unlock(&wait->lock);
}

void command_wait_begin(struct command_wait *wait, struct call *call)
{
    (void)pthread_mutex_init(&wait->lock, NULL);
    (void)pthread_cond_init(&wait->changed, NULL);
    wait->done = false;
    call->done = wait_done;
    call->done_user = wait;
}

void command_wait_end(struct command_wait *wait, int dispatched)
{
    if (dispatched == NG_PENDING) {
        (void)pthread_mutex_lock(&wait->lock);
        while (!wait->done) {
            (void)pthread_cond_wait(&wait->changed, &wait->lock);
        }
        (void)pthread_mutex_unlock(&wait->lock);
    }
    (void)pthread_cond_destroy(&wait->changed);
    (void)pthread_mutex_destroy(&wait->lock);
}
