/* SPDX-License-Identifier: MIT */
/* undo_running.c - the undos that this process does just now. */
#include <stdlib.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "undo.h"

struct undo_running {
    struct lock lock;
    struct undo *first;
};

int undo_running_open(struct call *call)
{
    struct undo_running *running = alloc_zeroed(1, sizeof(*running));
    if (running == NULL) {
        return call_no_memory(call);
    }
    lock_init(&running->lock, LOCK_UNDOS);
    call->gateway->undos = running;
    return NG_OK;
}

void undo_close(struct gateway *gateway)
{
    if (gateway->undos != NULL) {
        lock_done(&gateway->undos->lock);
        free(gateway->undos);
        gateway->undos = NULL;
    }
}

/* Under the lock: the place that points to it. */
static struct undo **running_find(struct undo_running *running, struct ng_str run)
{
    struct undo **at = &running->first;
    while (*at != NULL && !str_is(run, (*at)->run)) {
        at = &(*at)->next_running;
    }
    return at;
}

bool undo_is_running(struct gateway *gateway, struct ng_str run)
{
    struct undo_running *running = gateway->undos;
    lock_take(&running->lock);
    bool runs = *running_find(running, run) != NULL;
    lock_release(&running->lock);
    return runs;
}

bool undo_running_add(struct undo *undo)
{
    struct undo_running *running = undo->call->gateway->undos;
    lock_take(&running->lock);
    struct undo **at = running_find(running, ng_str_of(undo->run));
    bool is_new = *at == NULL;
    if (is_new) {
        *at = undo;
        undo->is_running = true;
    }
    lock_release(&running->lock);
    return is_new;
}

void undo_running_remove(struct undo *undo)
{
    struct undo_running *running = undo->call->gateway->undos;
    if (!undo->is_running) {
        return;
    }
    lock_take(&running->lock);
    struct undo **at = running_find(running, ng_str_of(undo->run));
    *at = undo->next_running;
    undo->is_running = false;
    lock_release(&running->lock);
}
