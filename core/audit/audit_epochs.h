/* SPDX-License-Identifier: MIT */
/*
 * audit_epochs.h - waits, without a lock, for the end of all calls that are under way.
 *
 * A call is counted in the epoch in which it begins. The thread of the audit log begins a new
 * epoch; when the count of the one before is 0, every call that had begun by then has ended.
 */
#ifndef NOTEGATE_CORE_AUDIT_EPOCHS_H
#define NOTEGATE_CORE_AUDIT_EPOCHS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct audit_epochs {
    atomic_uint now;
    atomic_size_t calls[2]; /* of this epoch and the one before, by the last bit */
};

/* Returns what audit_epochs_leave() takes. Any thread. */
static inline unsigned audit_epochs_enter(struct audit_epochs *epochs)
{
    for (;;) {
        unsigned now = atomic_load(&epochs->now);
        (void)atomic_fetch_add(&epochs->calls[now & 1], 1);
        if (atomic_load(&epochs->now) == now) {
            return now & 1;
        }
        (void)atomic_fetch_sub(&epochs->calls[now & 1], 1); /* another one began meanwhile */
    }
}

static inline void audit_epochs_leave(struct audit_epochs *epochs, unsigned entered)
{
    (void)atomic_fetch_sub(&epochs->calls[entered], 1);
}

/* One thread; only when audit_epochs_are_over(). */
static inline void audit_epochs_begin(struct audit_epochs *epochs)
{
    (void)atomic_fetch_add(&epochs->now, 1);
}

/* Have all calls of earlier epochs ended? */
static inline bool audit_epochs_are_over(const struct audit_epochs *epochs)
{
    return atomic_load(&epochs->calls[(atomic_load(&epochs->now) + 1) & 1]) == 0;
}

#endif
