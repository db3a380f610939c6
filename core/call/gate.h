/* SPDX-License-Identifier: MIT */
/* gate.h - lets one call at a time into a plugin that is NG_THREADS_SERIAL; the others wait in
 * a list, not in a thread. */
#ifndef NOTEGATE_CORE_GATE_H
#define NOTEGATE_CORE_GATE_H

#include <pthread.h>
#include <stdbool.h>

struct gate_entry {
    void (*enter)(void *user); /* runs when it is this entry's turn, on the thread that left */
    void *user;
    struct gate_entry *next;
};

struct gate {
    pthread_mutex_t lock;
    bool busy;
    struct gate_entry *first, **last;
};

void gate_init(struct gate *gate);
void gate_done(struct gate *gate);
/* True: entered. False: entry is in the list (NULL: nothing happens), enter() will be called.
 */
bool gate_enter(struct gate *gate, struct gate_entry *entry);
void gate_leave(struct gate *gate);

#endif
