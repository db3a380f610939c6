/* SPDX-License-Identifier: MIT */
/* journal_rwlock.c - who may write to the journal just now: many together, or one exclusive. */
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "journal_delivery.h"

/* With the lock held: waits a step, as neither a cancellation nor the call's end wakes. */
static int rwlock_wait(struct journal_front *front, struct call *call)
{
    int64_t now = clock_monotonic_ns();
    if (atomic_load(&call->cancelled) || front->stopping) {
        return call_fail(call, NG_ECANCELLED, "the call was cancelled");
    }
    if (call->deadline_ns != 0 && now >= call->deadline_ns) {
        return call_fail(call, NG_ETIMEOUT,
                         "the journal is being restored; try again when that is done");
    }
    (void)delivery_wait_until(&front->rwlock, &front->lock,
                              now + (int64_t)DELIVERY_WAIT_FIRST_MS * 1000000);
    return NG_OK;
}

int journal_rwlock_lock(struct journal_front *front, struct call *call, bool exclusive)
{
    int rc = NG_OK;
    lock_take(&front->lock);
    while (rc == NG_OK && front->exclusive) {
        rc = rwlock_wait(front, call);
    }
    if (rc == NG_OK && !exclusive) {
        front->readers++;
    }
    /* From here on nobody else comes in: so the wait has an end. */
    front->exclusive = front->exclusive || (rc == NG_OK && exclusive);
    bool mine = rc == NG_OK && exclusive;
    while (mine && rc == NG_OK && front->readers > 0) {
        rc = rwlock_wait(front, call);
    }
    if (mine && rc != NG_OK) {
        front->exclusive = false;
        pthread_cond_broadcast(&front->rwlock);
    }
    lock_release(&front->lock);
    return rc;
}

void journal_rwlock_unlock(struct journal_front *front, bool exclusive)
{
    lock_take(&front->lock);
    if (exclusive) {
        front->exclusive = false;
    } else {
        front->readers--;
    }
    pthread_cond_broadcast(&front->rwlock);
    lock_release(&front->lock);
}
