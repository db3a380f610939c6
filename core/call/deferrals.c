/* SPDX-License-Identifier: MIT */
/* deferrals.c - a list of calls for each plugin, in the order of their first deferrals. */
#include "deferrals.h"

#include "call.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "plugin.h"

void deferrals_init(struct deferrals *deferrals)
{
    lock_init(&deferrals->lock, LOCK_DEFERRALS);
}

void deferrals_done(struct deferrals *deferrals)
{
    lock_done(&deferrals->lock);
}

/* The plugin that lists the call. The call moves to another list only if none of its deferrals
 * is left: then no other thread reads the plugin. */
static struct plugin *plugin_for(struct call *call)
{
    struct deferral *deferral = &call->deferral;
    struct plugin *plugin = (struct plugin *)(uintptr_t)call_plugin(call); /* for its list */
    if (deferral->plugin == plugin) {
        return plugin; /* not written again: another thread may finish an earlier deferral */
    }
    if (deferral->plugin != NULL) {
        lock_take(&deferral->plugin->deferrals.lock);
        bool waits = deferral->count > 0;
        lock_release(&deferral->plugin->deferrals.lock);
        if (waits) {
            return deferral->plugin;
        }
    }
    deferral->plugin = plugin;
    return plugin;
}

void deferrals_add(struct call *call)
{
    struct deferral *deferral = &call->deferral;
    if (plugin_for(call) == NULL) {
        return;
    }
    struct deferrals *deferrals = &deferral->plugin->deferrals;
    lock_take(&deferrals->lock);
    if (deferral->count++ == 0) {
        deferral->since_ns = clock_monotonic_ns();
        deferral->before = deferrals->last;
        deferral->after = NULL;
        if (deferrals->last != NULL) {
            deferrals->last->deferral.after = call;
        } else {
            deferrals->first = call;
        }
        deferrals->last = call;
        deferrals->count++;
    }
    lock_release(&deferrals->lock);
}

void deferrals_remove(struct call *call)
{
    struct deferral *deferral = &call->deferral;
    if (deferral->plugin == NULL) {
        return;
    }
    struct deferrals *deferrals = &deferral->plugin->deferrals;
    lock_take(&deferrals->lock);
    if (deferral->count > 0 && --deferral->count == 0) {
        if (deferral->before != NULL) {
            deferral->before->deferral.after = deferral->after;
        } else {
            deferrals->first = deferral->after;
        }
        if (deferral->after != NULL) {
            deferral->after->deferral.before = deferral->before;
        } else {
            deferrals->last = deferral->before;
        }
        deferrals->count--;
    }
    lock_release(&deferrals->lock);
}

size_t deferrals_look(struct deferrals *deferrals, int64_t *ret_since_ns)
{
    lock_take(&deferrals->lock);
    size_t count = deferrals->count;
    if (deferrals->first != NULL) {
        *ret_since_ns = deferrals->first->deferral.since_ns;
    } else {
        *ret_since_ns = 0;
    }
    lock_release(&deferrals->lock);
    return count;
}
