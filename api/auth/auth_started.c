/* SPDX-License-Identifier: MIT */
/* auth_started.c - walks from a process to its ancestors, and from a socket to its holders. */
#include "auth_started.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/base/process.h"

/* A connection may wait so long to be accepted: what ended before that may have opened it. */
#define BACKLOG_WAIT_S 60
/* Limit of restarts of the walk (an ancestor ended); then the program counts as started. */
#define WALKS_MAX 16
#define DEPTH_MAX 4096
#define PATH_SIZE 64
/* Maximum of processes to check, below this one and on the machine. */
#define FAMILY_MAX 4096
#define PROCESSES_MAX 65536

/* ---- its ancestors ---- */

/* One walk up. NG_ENOTFOUND: an ancestor ended on the way, so start again. */
static int walk(pid_t pid, enum auth_started *ret)
{
    struct process process;
    struct process below;
    pid_t self = getpid();
    pid_t at = pid;
    pid_t child = 0;
    *ret = AUTH_STARTED_NO;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        if (at == self) {
            if (pid != self) {
                *ret = AUTH_STARTED_YES;
            }
            return NG_OK;
        }
        if (at <= 1) {
            return NG_OK;
        }
        int rc = process_read(at, &process);
        if (rc == NG_EFORBIDDEN) {
            /* A program of ours keeps our user, or has become more than we are. */
            return NG_OK;
        }
        if (rc != NG_OK) {
            return rc;
        }
        /* Is it still the parent, or has another process got its number? */
        if (child != 0 && (process_read(child, &below) != NG_OK || below.parent != at)) {
            return NG_ENOTFOUND;
        }
        child = at;
        at = process.parent;
    }
    *ret = AUTH_STARTED_YES;
    return NG_OK;
}

static enum auth_started descends(pid_t pid)
{
    enum auth_started started = AUTH_STARTED_YES;
    for (int i = 0; i < WALKS_MAX; i++) {
        int rc = walk(pid, &started);
        if (rc == NG_OK) {
            return started;
        }
        if (rc == NG_EUNAVAILABLE) {
            return AUTH_STARTED_UNKNOWN;
        }
    }
    return AUTH_STARTED_UNSEEN;
}

/* ---- whether there are, or were, such programs ---- */

/* Nothing is below us just now. */
static bool is_childless(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 &&
           errno == ECHILD;
}

uint64_t auth_started_ticks(void)
{
    struct timespec now;
    uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * per_second +
           (uint64_t)now.tv_nsec / (UINT64_C(1000000000) / per_second);
}

/* Grows with each child that is reaped: no process runs without page faults. It includes
 * children that this process reaped before an exec. */
static uint64_t usage_of_ended(void)
{
    struct rusage ended = {.ru_minflt = 0};
    (void)getrusage(RUSAGE_CHILDREN, &ended);
    return (uint64_t)ended.ru_minflt + (uint64_t)ended.ru_majflt;
}

void auth_started_begin(struct auth_started_past *past)
{
    struct sigaction action;
    /* Ignored, as the parent of this process may have left it, it keeps ended children from
     * being counted. */
    if (sigaction(SIGCHLD, NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
        (void)signal(SIGCHLD, SIG_DFL);
    }
    atomic_init(&past->usage, usage_of_ended());
    atomic_init(&past->until, 0);
}

bool auth_started_look(struct auth_started_past *past)
{
    if (!is_childless()) {
        atomic_store(&past->until, auth_started_ticks());
        return true;
    }
    /* In this order: a thread that sees the new usage sees that time, too. */
    uint64_t usage = usage_of_ended();
    if (atomic_load(&past->usage) != usage) {
        atomic_store(&past->until, auth_started_ticks());
        atomic_store(&past->usage, usage);
    }
    return false;
}

/* May a program below this one have opened a connection that was accepted at `ticks`? Most
 * gateways run no kernels. One that has ended and was reaped may have connected while it ran.
 */
static bool may_be_below(struct auth_started_past *past, uint64_t ticks)
{
    if (auth_started_look(past)) {
        return true;
    }
    uint64_t until = atomic_load(&past->until);
    uint64_t wait = BACKLOG_WAIT_S * (uint64_t)sysconf(_SC_CLK_TCK);
    return until != 0 && ticks <= until + wait;
}

enum auth_started auth_started_process(struct auth_started_past *past, pid_t pid,
                                       uint64_t ticks)
{
    struct process process;
    if (pid == 0 || pid == getpid() || !may_be_below(past, ticks)) {
        return AUTH_STARTED_NO;
    }
    int rc = process_read(pid, &process);
    if (rc == NG_EFORBIDDEN) {
        return AUTH_STARTED_NO;
    }
    if (rc == NG_EUNAVAILABLE) {
        return AUTH_STARTED_UNKNOWN;
    }
    if (rc != NG_OK || process.start > ticks) {
        return AUTH_STARTED_UNSEEN;
    }
    return descends(pid);
}

/* ---- the holders of a socket ---- */

enum held { HELD_NO, HELD_YES, HELD_UNKNOWN };

/* HELD_NO if the descriptors of the process may not be listed. */
static enum held holds(pid_t pid, const char *socket_name)
{
    char path[PATH_SIZE];
    char target[PATH_SIZE];
    const struct dirent *entry;
    enum held held = HELD_NO;
    (void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    DIR *list = opendir(path);
    if (list == NULL) {
        if (process_is_short(errno)) {
            return HELD_UNKNOWN;
        }
        return HELD_NO;
    }
    /* readdir is safe: the stream belongs to this thread. */
    while (held == HELD_NO && (entry = readdir(list)) != NULL) {
        ssize_t len = readlinkat(dirfd(list), entry->d_name, target, sizeof(target) - 1);
        if (len > 0) {
            target[len] = '\0';
            if (strcmp(target, socket_name) == 0) {
                held = HELD_YES;
            }
        }
    }
    (void)closedir(list);
    return held;
}

/* The processes below this one; with more than fit every caller counts as started. */
struct family {
    pid_t pids[FAMILY_MAX];
    size_t count;
    bool is_short; /* no descriptor or memory was left for listing all of them */
    bool is_large;
};

/* Those of all its threads. */
static void add_children_of(struct family *family, pid_t pid)
{
    char path[PATH_SIZE];
    const struct dirent *entry;
    (void)snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
    DIR *threads = opendir(path);
    if (threads == NULL) {
        family->is_short = process_is_short(errno) || family->is_short;
        return;
    }
    while ((entry = readdir(threads)) != NULL) {
        long thread = strtol(entry->d_name, NULL, 10);
        if (thread > 0 &&
            !process_children(pid, (pid_t)thread, family->pids, FAMILY_MAX, &family->count)) {
            family->is_large = family->count == FAMILY_MAX || family->is_large;
            family->is_short = family->count < FAMILY_MAX || family->is_short;
        }
    }
    (void)closedir(threads);
}

/* The listed descriptors of the process do not contain the socket: may it hold one that is not
 * visible to us? */
static enum held holds_unseen(pid_t pid)
{
    struct process process = {0};
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    if (access(path, R_OK) == 0) {
        return HELD_NO;
    }
    int rc = process_read(pid, &process);
    if (rc == NG_EUNAVAILABLE && process_is_short(errno)) {
        return HELD_UNKNOWN;
    }
    if (rc == NG_ENOTFOUND || process.state == 'Z') {
        return HELD_NO;
    }
    return HELD_YES;
}

/* HELD_YES also where the family is too large, or cannot be listed on this system. */
static enum held family_holds(const char *socket_name)
{
    struct family family = {.is_large = false};
    enum held all = HELD_NO;
    add_children_of(&family, getpid());
    for (size_t i = 0; i < family.count; i++) {
        enum held held = holds(family.pids[i], socket_name);
        if (held == HELD_NO) {
            held = holds_unseen(family.pids[i]);
        }
        if (held == HELD_YES) {
            return held;
        }
        if (held == HELD_UNKNOWN) {
            all = held;
        }
        add_children_of(&family, family.pids[i]);
    }
    if (family.is_large) {
        return HELD_YES;
    }
    if (family.is_short) {
        return HELD_UNKNOWN;
    }
    /* A system without lists of children has none of a process that has some. */
    if (family.count == 0 && !is_childless()) {
        return HELD_YES;
    }
    return all;
}

static bool is_recent(const struct auth_started_recent *recent, pid_t pid)
{
    for (size_t i = 0; i < AUTH_STARTED_RECENT; i++) {
        if (recent->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

/* Is it a process of the user's that holds the socket (or may, if that cannot be checked now)?
 * Then *ret tells whether it was started by us; if not it comes first the next time.
 */
static bool found_at(pid_t pid, uid_t uid, const char *socket_name,
                     struct auth_started_recent *recent, enum auth_started *ret)
{
    char path[PATH_SIZE];
    struct stat info;
    (void)snprintf(path, sizeof(path), "/proc/%ld", (long)pid);
    if (pid <= 0 || stat(path, &info) != 0 || info.st_uid != uid) {
        return false;
    }
    enum held held = holds(pid, socket_name);
    if (held == HELD_NO) {
        return false;
    }
    if (held == HELD_UNKNOWN) {
        *ret = AUTH_STARTED_UNKNOWN;
    } else {
        *ret = descends(pid);
    }
    if (*ret == AUTH_STARTED_NO && !is_recent(recent, pid)) {
        recent->pids[recent->next++ % AUTH_STARTED_RECENT] = pid;
    }
    return true;
}

/* All processes, the youngest first: a program that connects has mostly just begun. Ours is the
 * last, as it has the most descriptors. Returns false: there is no memory. */
static bool look_at_all(uid_t uid, const char *socket_name, struct auth_started_recent *recent,
                        enum auth_started *ret)
{
    const struct dirent *entry;
    DIR *processes = opendir("/proc");
    pid_t *pids = processes == NULL ? NULL : malloc(PROCESSES_MAX * sizeof(*pids));
    size_t count = 0;
    while (pids != NULL && count < PROCESSES_MAX && (entry = readdir(processes)) != NULL) {
        char *end = NULL;
        long pid = strtol(entry->d_name, &end, 10);
        if (pid > 0 && *end == '\0' && pid != (long)getpid()) {
            pids[count++] = (pid_t)pid;
        }
    }
    bool found = false;
    for (size_t i = count; i > 0 && !found; i--) {
        found = found_at(pids[i - 1], uid, socket_name, recent, ret);
    }
    if (processes != NULL) {
        (void)closedir(processes);
    }
    bool looked = pids != NULL;
    free(pids);
    return looked;
}

/* A socket of user `uid` that no process below this one holds. */
static enum auth_started find_holder(uid_t uid, const char *name,
                                     struct auth_started_recent *recent)
{
    /* Without a visible holder, no process may hold it now: it is being passed from one process
     * to another. */
    enum auth_started started = AUTH_STARTED_UNSEEN;
    for (size_t i = 0; i < AUTH_STARTED_RECENT; i++) {
        if (found_at(recent->pids[i], uid, name, recent, &started)) {
            return started;
        }
    }
    if (!look_at_all(uid, name, recent, &started)) {
        return AUTH_STARTED_UNKNOWN;
    }
    if (started != AUTH_STARTED_UNSEEN) {
        return started;
    }
    enum held held = holds(getpid(), name);
    if (held == HELD_YES) {
        return AUTH_STARTED_NO;
    }
    if (held == HELD_UNKNOWN) {
        return AUTH_STARTED_UNKNOWN;
    }
    return AUTH_STARTED_UNSEEN;
}

enum auth_started auth_started_socket(struct auth_started_past *past,
                                      const struct auth_started_end *end,
                                      struct auth_started_recent *recent)
{
    char name[PATH_SIZE];
    if (!may_be_below(past, end->ticks)) {
        return AUTH_STARTED_NO;
    }
    if (end->inode == 0) {
        return AUTH_STARTED_UNSEEN;
    }
    (void)snprintf(name, sizeof(name), "socket:[%lu]", (unsigned long)end->inode);
    enum held held = family_holds(name);
    if (held != HELD_NO) {
        if (held == HELD_YES) {
            return AUTH_STARTED_YES;
        }
        return AUTH_STARTED_UNKNOWN;
    }
    /* The sockets of other users' programs cannot be listed; all descendants were asked. */
    if (end->uid != geteuid() && geteuid() != 0) {
        return AUTH_STARTED_NO;
    }
    return find_holder(end->uid, name, recent);
}
