/* SPDX-License-Identifier: MIT */
/* async_mutex.h - lets one call at a time into a plugin that is NG_THREADS_SERIAL; the others
 * wait in a list, not in a thread. */
#ifndef NOTEGATE_CORE_ASYNC_MUTEX_H
#define NOTEGATE_CORE_ASYNC_MUTEX_H

#include <stdbool.h>

#include "core/base/lock.h"

struct async_mutex_waiter {
    void (*enter)(void *user); /* runs when it is this entry's turn, on the thread that left */
    void *user;
    struct async_mutex_waiter *next;
};

struct async_mutex {
    struct lock lock;
    bool busy;
    struct async_mutex_waiter *first, **last;
};

void async_mutex_init(struct async_mutex *mutex);
void async_mutex_done(struct async_mutex *mutex);
/* True: entered. False: entry is in the list (NULL: nothing happens), enter() will be called.
 */
bool async_mutex_lock(struct async_mutex *mutex, struct async_mutex_waiter *entry);
void async_mutex_unlock(struct async_mutex *mutex);

#endif
