/* SPDX-License-Identifier: MIT */
/* gate.c - one at a time, the others wait in a list. */
#include "gate.h"

#include <stddef.h>

void gate_init(struct gate *gate)
{
    pthread_mutex_init(&gate->lock, NULL);
    gate->busy = false;
    gate->first = NULL;
    gate->last = &gate->first;
}

void gate_done(struct gate *gate)
{
    pthread_mutex_destroy(&gate->lock);
}

bool gate_enter(struct gate *gate, struct gate_entry *entry)
{
    pthread_mutex_lock(&gate->lock);
    bool entered = !gate->busy;
    if (entered) {
        gate->busy = true;
    } else if (entry != NULL) {
        entry->next = NULL;
        *gate->last = entry;
        gate->last = &entry->next;
    }
    pthread_mutex_unlock(&gate->lock);
    return entered;
}

void gate_leave(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    struct gate_entry *entry = gate->first;
    if (entry == NULL) {
        gate->busy = false;
    } else {
        gate->first = entry->next;
        if (gate->first == NULL) {
            gate->last = &gate->first;
        }
    }
    pthread_mutex_unlock(&gate->lock);
    if (entry != NULL) {
        entry->enter(entry->user);
    }
}
