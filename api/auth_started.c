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
/* Processes below this one, and on the machine, that are looked at; their numbers in a file. */
#define FAMILY_MAX 4096
#define PROCESSES_MAX 65536
#define CHILDREN_MAX 16384
/* The 20th word behind the name: when it started, in ticks since the boot. */
#define STAT_WORDS_TO_START 19

struct process {
    pid_t parent;
    char state; /* 'Z': it has ended and waits to be reaped */
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
    const char *state = at + 2;
    at += 2;
    for (int i = 0; i < STAT_WORDS_TO_START && at != NULL; i++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    if (at == NULL || sscanf(at, "%llu", &start) != 1) {
        return false;
    }
    ret->parent = (pid_t)parent;
    ret->state = *state;
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
            /* A program of ours keeps our user, or has become more than we are. */
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

static void add_children(struct family *family, const char *path)
{
    char text[CHILDREN_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    family->whole = family->whole && len < (ssize_t)sizeof(text) - 1;
    text[len > 0 ? len : 0] = '\0';
    char *at = text;
    for (;;) {
        char *end = NULL;
        long pid = strtol(at, &end, 10);
        if (end == at) {
            return;
        }
        at = end;
        if (family->count == FAMILY_MAX) {
            family->whole = false;
            return;
        }
        family->pids[family->count++] = (pid_t)pid;
    }
}

/* Those of all its threads. */
static void add_children_of(struct family *family, pid_t pid)
{
    char path[PATH_SIZE];
    const struct dirent *entry;
    (void)snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
    DIR *threads = opendir(path);
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(path, sizeof(path), "/proc/%ld/task/%.20s/children", (long)pid,
                           entry->d_name);
            add_children(family, path);
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
    return access(path, R_OK) != 0 && read_process(pid, &process) != NG_ENOTFOUND &&
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
    if (is_childless()) {
        return AUTH_STARTED_NO;
    }
    (void)snprintf(name, sizeof(name), "socket:[%lu]", (unsigned long)inode);
    if (family_holds(name)) {
        return AUTH_STARTED_YES;
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
