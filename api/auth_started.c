/* SPDX-License-Identifier: MIT */
/* auth_started.c - walks from a process to its ancestors, and from a socket to those who hold
 * it. */
#include "auth_started.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

/* Ancestors that end meanwhile: how often the walk begins anew before it counts as started. */
#define WALKS_MAX 16
#define DEPTH_MAX 4096
#define PATH_SIZE 64
/* Processes below this one, and on the machine, that are looked at. */
#define FAMILY_MAX 4096
#define PROCESSES_MAX 65536

/* ---- its ancestors ---- */

/* One walk up. NG_ENOTFOUND: an ancestor ended on the way, so begin anew. */
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
            *ret = pid == self ? AUTH_STARTED_NO : AUTH_STARTED_YES;
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
    return AUTH_STARTED_YES;
}

/* Nothing is below us just now. */
static bool is_childless(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 &&
           errno == ECHILD;
}

/* Nor was anything before: most gateways run no kernels. One that has ended and was reaped may
 * have connected while it ran; no process runs without page faults. */
static bool never_had_children(void)
{
    struct rusage ended;
    return is_childless() && getrusage(RUSAGE_CHILDREN, &ended) == 0 && ended.ru_minflt == 0 &&
           ended.ru_majflt == 0;
}

uint64_t auth_started_ticks(void)
{
    struct timespec now;
    uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * per_second +
           (uint64_t)now.tv_nsec / (UINT64_C(1000000000) / per_second);
}

enum auth_started auth_started_process(pid_t pid, uint64_t ticks)
{
    struct process process;
    if (pid == 0 || pid == getpid()) {
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
        return AUTH_STARTED_YES;
    }
    return never_had_children() ? AUTH_STARTED_NO : descends(pid);
}

/* ---- who holds a socket ---- */

/* Of a process whose descriptors cannot be listed none is known: false. */
static bool holds(pid_t pid, const char *socket_name)
{
    char path[PATH_SIZE];
    char target[PATH_SIZE];
    const struct dirent *entry;
    bool found = false;
    (void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    DIR *list = opendir(path);
    /* readdir is safe: the stream belongs to this thread. */
    while (list != NULL && !found && (entry = readdir(list)) != NULL) {
        ssize_t len = readlinkat(dirfd(list), entry->d_name, target, sizeof(target) - 1);
        if (len > 0) {
            target[len] = '\0';
            found = strcmp(target, socket_name) == 0;
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return found;
}

/* The processes below this one; with more than fit every caller counts as started. */
struct family {
    pid_t pids[FAMILY_MAX];
    size_t count;
    bool whole;
};

/* Those of all its threads. */
static void add_children_of(struct family *family, pid_t pid)
{
    char path[PATH_SIZE];
    const struct dirent *entry;
    (void)snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
    DIR *threads = opendir(path);
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        long thread = strtol(entry->d_name, NULL, 10);
        if (thread > 0) {
            family->whole = process_children(pid, (pid_t)thread, family->pids, FAMILY_MAX,
                                             &family->count) &&
                            family->whole;
        }
    }
    if (threads != NULL) {
        (void)closedir(threads);
    }
}

/* May it hold something that we cannot see? */
static bool is_closed(pid_t pid)
{
    struct process process = {0};
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    return access(path, R_OK) != 0 && process_read(pid, &process) != NG_ENOTFOUND &&
           process.state != 'Z';
}

/* Also where that cannot be told. */
static bool family_holds(const char *socket_name)
{
    struct family family = {.whole = true};
    add_children_of(&family, getpid());
    /* A system without lists of children has none of a process that has some. */
    family.whole = family.whole && (family.count > 0 || is_childless());
    for (size_t i = 0; i < family.count; i++) {
        if (holds(family.pids[i], socket_name) || is_closed(family.pids[i])) {
            return true;
        }
        add_children_of(&family, family.pids[i]);
    }
    return !family.whole;
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

/* Is it a process of the user's that holds the socket, and was not started by us? Then *ret is
 * told, and it comes first the next time. */
static bool found_at(pid_t pid, uid_t uid, const char *socket_name,
                     struct auth_started_recent *recent, enum auth_started *ret)
{
    char path[PATH_SIZE];
    struct stat info;
    (void)snprintf(path, sizeof(path), "/proc/%ld", (long)pid);
    if (pid <= 0 || stat(path, &info) != 0 || info.st_uid != uid || !holds(pid, socket_name)) {
        return false;
    }
    *ret = descends(pid);
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

enum auth_started auth_started_socket(uint32_t inode, uid_t uid,
                                      struct auth_started_recent *recent)
{
    char name[PATH_SIZE];
    /* With no holder that we may look at, none may have it just now: it is on its way from one
     * process to another. */
    enum auth_started started = AUTH_STARTED_YES;
    if (never_had_children()) {
        return AUTH_STARTED_NO;
    }
    (void)snprintf(name, sizeof(name), "socket:[%lu]", (unsigned long)inode);
    if (family_holds(name)) {
        return AUTH_STARTED_YES;
    }
    /* What other users' programs hold cannot be seen, but each program below us was asked. */
    if (uid != geteuid() && geteuid() != 0) {
        return AUTH_STARTED_NO;
    }
    for (size_t i = 0; i < AUTH_STARTED_RECENT; i++) {
        if (found_at(recent->pids[i], uid, name, recent, &started)) {
            return started;
        }
    }
    if (!look_at_all(uid, name, recent, &started)) {
        return AUTH_STARTED_UNKNOWN;
    }
    return started == AUTH_STARTED_YES && holds(getpid(), name) ? AUTH_STARTED_NO : started;
}
