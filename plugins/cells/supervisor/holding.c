/* SPDX-License-Identifier: MIT */
/* holding.c - starts the process that holds the kernels, and talks with it. */
#include "holding.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SWEEPS_MAX 20
#define SWEEP_ENVIRON_MAX ((size_t)1024 * 1024)

extern char **environ;

/* The program lies beside this module. */
static bool program_path(char path[PATH_MAX])
{
    Dl_info info;
    static const char anchor = 0; /* something that lies in this module */
    if (dladdr(&anchor, &info) == 0 || info.dli_fname == NULL) {
        return false;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int folder = slash == NULL ? 0 : (int)(slash - info.dli_fname) + 1;
    int len = snprintf(path, PATH_MAX, "%.*s%s", folder, info.dli_fname, HOLDER_PROGRAM);
    return len > 0 && len < PATH_MAX;
}

bool holding_is_others(const char *path)
{
    struct stat info;
    struct stat module;
    Dl_info self;
    static const char anchor = 0;
    if (stat(path, &info) != 0) {
        return false; /* starting it says why */
    }
    bool ours = info.st_uid == 0 || info.st_uid == geteuid() ||
                (dladdr(&anchor, &self) != 0 && self.dli_fname != NULL &&
                 stat(self.dli_fname, &module) == 0 && module.st_uid == info.st_uid);
    bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
    return !ours || ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky);
}

void holding_init(struct holding *holding, const char *folder)
{
    struct stat info;
    holding->socket = -1;
    holding->place[0] = '\0';
    /* By number: one folder may have several names, and several one, in containers. */
    if (stat(folder, &info) == 0) {
        (void)snprintf(holding->place, sizeof(holding->place), "%llx-%llu",
                       (unsigned long long)info.st_dev, (unsigned long long)info.st_ino);
    }
}

static void owner_of(const struct holding *holding, char owner[HOLDER_OWNER_MAX])
{
    (void)snprintf(owner, HOLDER_OWNER_MAX, "%s/%ld", holding->place, (long)getpid());
}

static int spawn(const char *path, int socket, char *owner, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    char name[] = HOLDER_PROGRAM;
    char *words[] = {name, owner, NULL};
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0) {
        return rc;
    }
    /* Standard output is the protocol's where the gateway speaks MCP over it. */
    rc = posix_spawn_file_actions_adddup2(&actions, socket, HOLDER_FD);
    rc = rc != 0 ? rc
                 : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
    rc =
        rc != 0 ? rc : posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    rc = rc != 0 ? rc : posix_spawn_file_actions_addclosefrom_np(&actions, HOLDER_FD + 1);
    rc = rc != 0 ? rc : posix_spawn(ret_pid, path, &actions, NULL, words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

bool holding_open(struct holding *holding, char path[PATH_MAX], int *ret_error)
{
    int ends[2];
    int size = 2 * HOLDER_PACKET_MAX;
    char owner[HOLDER_OWNER_MAX];
    holding->socket = -1;
    *ret_error = ENOENT;
    if (!program_path(path)) {
        (void)snprintf(path, PATH_MAX, "%s", HOLDER_PROGRAM);
        return false;
    }
    if (holding_is_others(path)) { /* its folder was looked at when the module was loaded */
        *ret_error = EPERM;
        return false;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        *ret_error = errno;
        return false;
    }
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    owner_of(holding, owner);
    *ret_error = spawn(path, ends[1], owner, &holding->pid);
    (void)close(ends[1]);
    if (*ret_error != 0) {
        (void)close(ends[0]);
        return false;
    }
    holding->socket = ends[0];
    return true;
}

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

void holding_close(struct holding *holding)
{
    if (holding->socket >= 0) {
        (void)close(holding->socket);
        holding->socket = -1;
        wait_for(holding->pid);
    }
}

void holding_leave(struct holding *holding)
{
    if (holding->socket >= 0 && holding->leaving_count < HOLDING_LEAVING_MAX) {
        (void)close(holding->socket);
        holding->socket = -1;
        holding->leaving[holding->leaving_count++] = holding->pid;
    }
}

bool holding_is_leaving(struct holding *holding)
{
    size_t left = 0;
    for (size_t i = 0; i < holding->leaving_count; i++) {
        if (waitpid(holding->leaving[i], NULL, WNOHANG) == 0) {
            holding->leaving[left++] = holding->leaving[i];
        }
    }
    holding->leaving_count = left;
    return left > 0;
}

/* ---- what a holder that was killed left behind ---- */

/* Does the process carry the mark of a kernel of this gateway? */
static bool is_marked(const char *pid, const char *mark)
{
    char path[64];
    struct nb_text text = {0};
    char block[4096];
    bool found = false;
    (void)snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, block, sizeof(block));
    while (got > 0 && text.len < SWEEP_ENVIRON_MAX) {
        nb_add(&text, block, (size_t)got);
        got = read(fd, block, sizeof(block));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    nb_add(&text, "", 1);
    for (size_t at = 0; !text.failed && at < text.len && !found;
         at += strlen(text.data + at) + 1) {
        found = strncmp(text.data + at, mark, strlen(mark)) == 0;
    }
    nb_text_done(&text);
    return found;
}

static size_t kill_marked(const char *mark)
{
    size_t killed = 0;
    DIR *list = opendir("/proc");
    const struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            is_marked(entry->d_name, mark) &&
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL) == 0) {
            killed++;
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return killed;
}

static void sweep(const char *mark)
{
    for (int i = 0; i < SWEEPS_MAX && kill_marked(mark) > 0; i++) {
        /* what they had started meanwhile is found in the next round */
    }
}

void holding_sweep(const struct holding *holding)
{
    char owner[HOLDER_OWNER_MAX];
    char mark[HOLDER_OWNER_MAX + sizeof(HOLDER_MARK "=.")];
    owner_of(holding, owner);
    (void)snprintf(mark, sizeof(mark), HOLDER_MARK "=%s.", owner);
    sweep(mark);
}

void holding_sweep_old(const struct holding *holding)
{
    char mark[HOLDER_OWNER_MAX + sizeof(HOLDER_MARK "=/")];
    if (holding->place[0] != '\0') {
        (void)snprintf(mark, sizeof(mark), HOLDER_MARK "=%s/", holding->place);
        sweep(mark);
    }
}

/* ---- orders and news ---- */

static bool send_packet(struct holding *holding, const struct nb_text *packet)
{
    ssize_t sent;
    if (packet->failed || packet->len > HOLDER_PACKET_MAX || holding->socket < 0) {
        return false;
    }
    do {
        /* It reads at once; one that is stopped must not stop the gateway. */
        sent = send(holding->socket, packet->data, packet->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)packet->len;
}

static uint32_t add_list(struct nb_text *packet, char *const *list)
{
    uint32_t count = 0;
    for (; list[count] != NULL; count++) {
        nb_add(packet, list[count], strlen(list[count]) + 1);
    }
    return count;
}

bool holding_start(struct holding *holding, uint32_t id, const char *folder,
                   char *const *command, char *const *variables)
{
    struct holder_order order = {.kind = HOLDER_START, .id = id};
    struct nb_text packet = {0};
    nb_add(&packet, (const char *)&order, sizeof(order));
    nb_add(&packet, folder, strlen(folder) + 1);
    order.argc = add_list(&packet, command);
    order.envc = add_list(&packet, variables);
    if (!packet.failed) {
        memcpy(packet.data, &order, sizeof(order));
    }
    bool sent = send_packet(holding, &packet);
    nb_text_done(&packet);
    return sent;
}

bool holding_signal(struct holding *holding, uint32_t id, int signal)
{
    struct holder_order order = {.kind = HOLDER_SIGNAL, .id = id, .signal = signal};
    struct nb_text packet = {0};
    nb_add(&packet, (const char *)&order, sizeof(order));
    bool sent = send_packet(holding, &packet);
    nb_text_done(&packet);
    return sent;
}

int holding_news(struct holding *holding, char buffer[HOLDER_PACKET_MAX],
                 struct holding_news *ret)
{
    struct holder_news news;
    ssize_t got = recv(holding->socket, buffer, HOLDER_PACKET_MAX, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (got < (ssize_t)sizeof(news)) {
        return -1;
    }
    memcpy(&news, buffer, sizeof(news));
    ret->kind = (enum holder_news_kind)news.kind;
    ret->id = news.id;
    ret->value = news.value;
    ret->tail.data = buffer + sizeof(news);
    ret->tail.len = (size_t)got - sizeof(news);
    return 1;
}
