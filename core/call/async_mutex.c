/* SPDX-License-Identifier: MIT */
/* async_mutex.c - one at a time, the others wait in a list. */
#include "async_mutex.h"

#include <stddef.h>

#include "core/base/lock.h"

void async_mutex_init(struct async_mutex *mutex)
{
    lock_init(&mutex->lock, LOCK_ASYNC_MUTEX);
    mutex->busy = false;
    mutex->first = NULL;
    mutex->last = &mutex->first;
}

void async_mutex_done(struct async_mutex *mutex)
{
    lock_done(&mutex->lock);
}

bool async_mutex_lock(struct async_mutex *mutex, struct async_mutex_waiter *entry)
{
    lock_take(&mutex->lock);
    bool entered = !mutex->busy;
    if (entered) {
        mutex->busy = true;
    } else if (entry != NULL) {
        entry->next = NULL;
        *mutex->last = entry;
        mutex->last = &entry->next;
    }
    lock_release(&mutex->lock);
    return entered;
}

void async_mutex_unlock(struct async_mutex *mutex)
{
    lock_take(&mutex->lock);
    struct async_mutex_waiter *entry = mutex->first;
    if (entry == NULL) {
        mutex->busy = false;
    } else {
        mutex->first = entry->next;
        if (mutex->first == NULL) {
            mutex->last = &mutex->first;
        }
    }
    lock_release(&mutex->lock);
    if (entry != NULL) {
        entry->enter(entry->user);
    }
}
