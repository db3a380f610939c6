/* SPDX-License-Identifier: MIT */
/* orphans.c - tells orphans from children of our own, and reaps the former. */
#include "orphans.h"

#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"

static bool holds(const struct orphans_set *set, pid_t pid, uint64_t start)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].pid == pid && set->items[i].start == start) {
            return true;
        }
    }
    return false;
}

static bool add(struct orphans_set *set, pid_t pid, uint64_t start)
{
    if (set->count == ORPHANS_MAX) {
        return false;
    }
    set->items[set->count].pid = pid;
    set->items[set->count++].start = start;
    return true;
}

/* Of the main thread. */
static bool list(pid_t pids[ORPHANS_MAX], size_t *ret_count)
{
    *ret_count = 0;
    return process_children(getpid(), getpid(), pids, ORPHANS_MAX, ret_count);
}

static uint64_t ticks_now(void)
{
    return (uint64_t)clock_uptime_ms() * (uint64_t)sysconf(_SC_CLK_TCK) / 1000;
}

void orphans_begin(struct orphans *orphans)
{
    pid_t pids[ORPHANS_MAX];
    size_t count = 0;
    if (orphans->open) {
        return; /* a process that could not be examined is as old as the first begin */
    }
    orphans->before.count = 0;
    orphans->begin = ticks_now();
    /* They are older: only those of this very tick have to be in the set. */
    (void)list(pids, &count);
    for (size_t i = 0; i < count; i++) {
        struct process process;
        if (process_read(pids[i], &process) == NG_OK) {
            (void)add(&orphans->before, pids[i], process.start);
        }
    }
}

/* Records our own processes among the children, and whether one could not be checked. */
static void note_own(struct orphans *orphans)
{
    pid_t pids[ORPHANS_MAX];
    size_t count = 0;
    orphans->open = !list(pids, &count);
    for (size_t i = 0; i < count; i++) {
        struct process process;
        int rc = process_read(pids[i], &process);
        if (rc == NG_ENOTFOUND) {
            continue; /* it was waited for */
        }
        if (rc != NG_OK) {
            orphans->open = true;
        } else if (process.parent == getpid() && process.start >= orphans->begin &&
                   process.start <= orphans->end &&
                   !holds(&orphans->before, pids[i], process.start) &&
                   !holds(&orphans->own, pids[i], process.start)) {
            orphans->off = !add(&orphans->own, pids[i], process.start) || orphans->off;
        }
    }
}

void orphans_end(struct orphans *orphans)
{
    bool off = orphans->off;
    bool open = orphans->open;
    orphans->end = ticks_now();
    note_own(orphans);
    if ((orphans->off && !off) || (orphans->open && !open)) {
        log_write(NG_LOG_WARNING, "serve",
                  "the gateway cannot tell its own child processes from adopted ones: adopted "
                  "processes stay as zombies until %s",
                  orphans->off ? "it stops" : "it can");
    }
}

/* A process of ours that was waited for is no more, and another may get its number. */
static void forget_gone(struct orphans_set *own)
{
    size_t kept = 0;
    for (size_t i = 0; i < own->count; i++) {
        struct process process = {.start = own->items[i].start};
        int rc = process_read(own->items[i].pid, &process);
        if (rc != NG_ENOTFOUND && process.start == own->items[i].start) {
            own->items[kept++] = own->items[i];
        }
    }
    own->count = kept;
}

size_t orphans_reap(struct orphans *orphans)
{
    pid_t pids[ORPHANS_MAX];
    size_t count = 0;
    size_t reaped = 0;
    struct orphans_set ended;
    ended.count = 0;
    if (orphans->open) {
        note_own(orphans);
    }
    if (orphans->off || orphans->open) {
        return 0;
    }
    forget_gone(&orphans->own);
    (void)list(pids, &count);
    for (size_t i = 0; i < count; i++) {
        struct process process;
        siginfo_t info = {0};
        if (process_read(pids[i], &process) != NG_OK || process.state != 'Z' ||
            holds(&orphans->own, pids[i], process.start)) {
            continue;
        }
        if (!holds(&orphans->seen, pids[i], process.start)) {
            (void)add(&ended, pids[i], process.start);
        } else if (waitid(P_PID, (id_t)pids[i], &info, WEXITED | WNOHANG) == 0 &&
                   info.si_pid == pids[i]) {
            reaped++;
        } else { /* its other threads have not ended */
            (void)add(&ended, pids[i], process.start);
        }
    }
    orphans->seen = ended;
    return reaped;
}
