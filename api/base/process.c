/* SPDX-License-Identifier: MIT */
/* process.c - reads /proc/PID/stat and lists of children. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of /proc/PID/stat: the name, in parentheses, may hold anything but is short. */
#define STAT_MAX 1024
#define PATH_SIZE 64
/* The kernel gives out a page of a list of children at a time. */
#define CHILDREN_BLOCK 4096
/* The 20th word behind the name: when it started. */
#define STAT_WORDS_TO_START 19

static bool parse_stat(const char *text, struct process *ret)
{
    const char *at = strrchr(text, ')');
    long parent = 0;
    unsigned long long start = 0;
    /* ") S PARENT ..." */
    /* NOLINTNEXTLINE(cert-err34-c) */
    if (at == NULL || strlen(at) < 4 || sscanf(at + 4, "%ld", &parent) != 1) {
        return false;
    }
    const char *state = at + 2;
    at += 2;
    for (int i = 0; i < STAT_WORDS_TO_START && at != NULL; i++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    /* NOLINTNEXTLINE(cert-err34-c) */
    if (at == NULL || sscanf(at, "%llu", &start) != 1) {
        return false;
    }
    ret->parent = (pid_t)parent;
    ret->state = *state;
    ret->start = start;
    return true;
}

bool process_is_short(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

int process_read(pid_t pid, struct process *ret)
{
    char path[PATH_SIZE];
    char text[STAT_MAX];
    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ESRCH) {
        return NG_ENOTFOUND; /* it ends just now */
    }
    if (fd < 0 && errno != ENOENT) {
        return NG_EUNAVAILABLE;
    }
    if (fd < 0) {
        if (kill(pid, 0) != 0 && errno == EPERM) {
            return NG_EFORBIDDEN;
        }
        return NG_ENOTFOUND;
    }
    ssize_t len = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (len <= 0) {
        return NG_ENOTFOUND; /* ESRCH: it ended in between */
    }
    text[len] = '\0';
    if (parse_stat(text, ret)) {
        return NG_OK;
    }
    return NG_EUNAVAILABLE;
}

bool process_children(pid_t pid, pid_t thread, pid_t *ret, size_t max, size_t *ret_count)
{
    char path[PATH_SIZE];
    char block[CHILDREN_BLOCK];
    pid_t number = 0; /* each ends in a space, maybe that of the next block */
    bool fits = true;
    (void)snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", (long)pid, (long)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return !process_is_short(errno);
    }
    ssize_t got = read(fd, block, sizeof(block));
    while (got > 0 && fits) {
        for (ssize_t i = 0; i < got && fits; i++) {
            if (block[i] >= '0' && block[i] <= '9') {
                number = number * 10 + (block[i] - '0');
            } else if (number != 0) {
                fits = *ret_count < max;
                if (fits) {
                    ret[(*ret_count)++] = number;
                }
                number = 0;
            }
        }
        got = read(fd, block, sizeof(block));
    }
    (void)close(fd);
    return fits;
}
