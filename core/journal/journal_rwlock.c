/* SPDX-License-Identifier: MIT */
/* journal_rwlock.c - shared/exclusive lock of the journal, and turns of long work on it, with
 * deadlines and cancellation. */
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "journal_delivery.h"
#include "journal_documents.h"

/* With the mutex held: waits one step, because a cancellation does not signal. */
static int rwlock_wait(struct journal_front *front, struct call *call)
{
    int64_t now = clock_monotonic_ns();
    if (call_has(call, CALL_CANCELLED) || front->state == DELIVERY_STOPPING) {
        return call_fail(call, NG_ECANCELLED, "the call was cancelled");
    }
    if (call->deadline_ns != 0 && now >= call->deadline_ns) {
        return call_fail(call, NG_ETIMEOUT,
                         "the journal is being saved or restored; try again when that is done");
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
    } else if (rc == NG_OK) {
        front->exclusive = true; /* blocks new readers, so that the wait ends */
        while (rc == NG_OK && front->readers > 0) {
            rc = rwlock_wait(front, call);
        }
        if (rc != NG_OK) {
            front->exclusive = false;
            pthread_cond_broadcast(&front->rwlock);
        }
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

int journal_turn_take(struct journal_front *front, struct call *call)
{
    int rc = NG_OK;
    if (front->inner != journal_documents_vtable()) {
        return NG_OK;
    }
    lock_take(&front->lock);
    while (rc == NG_OK && front->turn != NULL) {
        rc = rwlock_wait(front, call);
    }
    if (rc == NG_OK) {
        front->turn = call;
    }
    lock_release(&front->lock);
    return rc;
}

void journal_turn_release(struct journal_front *front)
{
    if (front->inner == journal_documents_vtable()) {
        lock_take(&front->lock);
        front->turn = NULL;
        pthread_cond_broadcast(&front->rwlock);
        lock_release(&front->lock);
    }
}
