/* SPDX-License-Identifier: MIT */
/* journal_gate.c - who may write to the journal just now: many together, or one alone. */
#include "core/base/clock.h"
#include "journal_relay.h"

/* With the lock held: waits a step, as neither a cancellation nor the call's end wakes. */
static int gate_wait(struct journal_front *front, struct call *call)
{
    int64_t now = clock_monotonic_ns();
    if (atomic_load(&call->cancelled) || front->stopping) {
        return call_fail(call, NG_ECANCELLED, "the call was cancelled");
    }
    if (call->deadline_ns != 0 && now >= call->deadline_ns) {
        return call_fail(call, NG_ETIMEOUT,
                         "the journal is being restored; try again when that is done");
    }
    (void)relay_wait_until(&front->gate, &front->lock,
                           now + (int64_t)RELAY_WAIT_FIRST_MS * 1000000);
    return NG_OK;
}

int journal_gate_enter(struct journal_front *front, struct call *call, bool alone)
{
    int rc = NG_OK;
    pthread_mutex_lock(&front->lock);
    while (rc == NG_OK && front->alone) {
        rc = gate_wait(front, call);
    }
    if (rc == NG_OK && !alone) {
        front->within++;
    }
    /* From here on nobody else comes in: so the wait has an end. */
    front->alone = front->alone || (rc == NG_OK && alone);
    bool mine = rc == NG_OK && alone;
    while (mine && rc == NG_OK && front->within > 0) {
        rc = gate_wait(front, call);
    }
    if (mine && rc != NG_OK) {
        front->alone = false;
        pthread_cond_broadcast(&front->gate);
    }
    pthread_mutex_unlock(&front->lock);
    return rc;
}

void journal_gate_leave(struct journal_front *front, bool alone)
{
    pthread_mutex_lock(&front->lock);
    if (alone) {
        front->alone = false;
    } else {
        front->within--;
    }
    pthread_cond_broadcast(&front->gate);
    pthread_mutex_unlock(&front->lock);
}
