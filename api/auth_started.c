/* SPDX-License-Identifier: MIT */
/* auth_started.c - walks from a process to its ancestors, and from a socket to those who hold
 * it. */
#include "auth_started.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Ancestors that end meanwhile: how often the walk begins anew before it counts as started. */
#define WALKS_MAX 16
#define DEPTH_MAX 4096
/* Of /proc/PID/stat: the name, in parentheses, may hold anything but is short. */
#define STAT_MAX 1024
#define PATH_SIZE 64
/* The 20th word behind the name: when it started, in ticks since the boot. */
#define STAT_WORDS_TO_START 19

struct process {
    pid_t parent;
    uint64_t start;
};

/* ---- one process ---- */

static bool parse_stat(const char *text, struct process *ret)
{
    const char *at = strrchr(text, ')');
    long parent = 0;
    unsigned long long start = 0;
    /* ") S PARENT ..." */
    if (at == NULL || strlen(at) < 4 || sscanf(at + 4, "%ld", &parent) != 1) {
        return false;
    }
    at += 2;
    for (int i = 0; i < STAT_WORDS_TO_START && at != NULL; i++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    if (at == NULL || sscanf(at, "%llu", &start) != 1) {
        return false;
    }
    ret->parent = (pid_t)parent;
    ret->start = start;
    return true;
}

/* NG_ENOTFOUND: it is gone. NG_EFORBIDDEN: another user's, which /proc hides here.
 * NG_EUNAVAILABLE: it cannot be looked at. */
static int read_process(pid_t pid, struct process *ret)
{
    char path[PATH_SIZE];
    char text[STAT_MAX];
    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT) {
        return NG_EUNAVAILABLE;
    }
    if (fd < 0) {
        return kill(pid, 0) != 0 && errno == EPERM ? NG_EFORBIDDEN : NG_ENOTFOUND;
    }
    ssize_t len = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (len <= 0) {
        return NG_ENOTFOUND; /* ESRCH: it ended in between */
    }
    text[len] = '\0';
    return parse_stat(text, ret) ? NG_OK : NG_EUNAVAILABLE;
}

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
        int rc = read_process(at, &process);
        if (rc == NG_EFORBIDDEN) {
            /* What we start stays our user's, or has become more than we are. */
            return NG_OK;
        }
        if (rc != NG_OK) {
            return rc;
        }
        /* Is it still the parent, or has another process got its number? */
        if (child != 0 && (read_process(child, &below) != NG_OK || below.parent != at)) {
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

/* Nothing is below us: most gateways run no kernels. */
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

enum auth_started auth_started_process(pid_t pid, uint64_t ticks)
{
    struct process process;
    if (pid == 0 || pid == getpid()) {
        return AUTH_STARTED_NO;
    }
    int rc = read_process(pid, &process);
    if (rc == NG_EFORBIDDEN) {
        return AUTH_STARTED_NO;
    }
    if (rc == NG_EUNAVAILABLE) {
        return AUTH_STARTED_UNKNOWN;
    }
    if (rc != NG_OK || process.start > ticks) {
        return AUTH_STARTED_YES;
    }
    return is_childless() ? AUTH_STARTED_NO : descends(pid);
}

/* ---- who holds a socket ---- */

/* Of a process whose descriptors cannot be listed none is known: false. */
static bool holds(long pid, const char *socket_name)
{
    char path[PATH_SIZE];
    char target[PATH_SIZE];
    const struct dirent *entry;
    bool found = false;
    (void)snprintf(path, sizeof(path), "/proc/%ld/fd", pid);
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

/* All processes of the user, ours last: it has the most descriptors. */
static enum auth_started look_at_all(DIR *processes, const char *socket_name, uid_t uid)
{
    const struct dirent *entry;
    enum auth_started started = AUTH_STARTED_YES;
    while ((entry = readdir(processes)) != NULL) {
        struct stat info;
        char *end = NULL;
        long pid = strtol(entry->d_name, &end, 10);
        if (pid <= 0 || *end != '\0' || pid == (long)getpid() ||
            fstatat(dirfd(processes), entry->d_name, &info, 0) != 0 || info.st_uid != uid ||
            !holds(pid, socket_name)) {
            continue;
        }
        started = descends((pid_t)pid);
        if (started != AUTH_STARTED_NO) {
            return started;
        }
    }
    if (started == AUTH_STARTED_YES && holds((long)getpid(), socket_name)) {
        return AUTH_STARTED_NO;
    }
    return started;
}

enum auth_started auth_started_socket(uint32_t inode, uid_t uid)
{
    char name[PATH_SIZE];
    if (is_childless()) {
        return AUTH_STARTED_NO;
    }
    DIR *processes = opendir("/proc");
    if (processes == NULL) {
        return AUTH_STARTED_UNKNOWN;
    }
    (void)snprintf(name, sizeof(name), "socket:[%lu]", (unsigned long)inode);
    /* Found with no holder that we may look at, it may be in nobody's hands for a moment: on
     * its way from one process to another. */
    enum auth_started started = look_at_all(processes, name, uid);
    (void)closedir(processes);
    return started;
}
