/* SPDX-License-Identifier: MIT */
/* supervisor_client.c - starts the supervisor and exchanges packets with it. */
#include "supervisor_client.h"

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

/* The program is in the folder of this module. */
static bool program_path(char path[PATH_MAX])
{
    Dl_info info;
    static const char anchor = 0; /* an address in this module */
    if (dladdr(&anchor, &info) == 0 || info.dli_fname == NULL) {
        return false;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int folder = 0;
    if (slash != NULL) {
        folder = (int)(slash - info.dli_fname) + 1;
    }
    int len = snprintf(path, PATH_MAX, "%.*s%s", folder, info.dli_fname, SUPERVISOR_PROGRAM);
    return len > 0 && len < PATH_MAX;
}

bool supervisor_is_untrusted(const char *path)
{
    struct stat info;
    struct stat module;
    Dl_info self;
    static const char anchor = 0;
    if (stat(path, &info) != 0) {
        return false; /* starting the program reports the reason */
    }
    bool ours = info.st_uid == 0 || info.st_uid == geteuid() ||
                (dladdr(&anchor, &self) != 0 && self.dli_fname != NULL &&
                 stat(self.dli_fname, &module) == 0 && module.st_uid == info.st_uid);
    bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
    return !ours || ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky);
}

void supervisor_init(struct supervisor_client *client, const char *folder)
{
    struct stat info;
    client->socket = -1;
    client->data_dir_id[0] = '\0';
    /* By device and inode: in containers one folder may have several paths, and one path
     * several folders. */
    if (stat(folder, &info) == 0) {
        (void)snprintf(client->data_dir_id, sizeof(client->data_dir_id), "%llx-%llu",
                       (unsigned long long)info.st_dev, (unsigned long long)info.st_ino);
    }
}

static void format_owner(const struct supervisor_client *client,
                         char owner[SUPERVISOR_OWNER_MAX])
{
    (void)snprintf(owner, SUPERVISOR_OWNER_MAX, "%s/%ld", client->data_dir_id, (long)getpid());
}

static int spawn(const char *path, int socket, char *owner, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    char name[] = SUPERVISOR_PROGRAM;
    char *strings[] = {name, owner, NULL};
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0) {
        return rc;
    }
    /* Standard output belongs to the protocol if the gateway speaks MCP over stdio. */
    if ((rc = posix_spawn_file_actions_adddup2(&actions, socket, SUPERVISOR_FD)) == 0 &&
        (rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0)) ==
            0 &&
        (rc = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)) == 0 &&
        (rc = posix_spawn_file_actions_addclosefrom_np(&actions, SUPERVISOR_FD + 1)) == 0) {
        rc = posix_spawn(ret_pid, path, &actions, NULL, strings, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

bool supervisor_open(struct supervisor_client *client, char path[PATH_MAX], int *ret_error)
{
    int ends[2];
    int size = 2 * SUPERVISOR_PACKET_MAX;
    char owner[SUPERVISOR_OWNER_MAX];
    client->socket = -1;
    *ret_error = ENOENT;
    if (!program_path(path)) {
        (void)snprintf(path, PATH_MAX, "%s", SUPERVISOR_PROGRAM);
        return false;
    }
    if (supervisor_is_untrusted(path)) { /* its folder was checked when the module was loaded */
        *ret_error = EPERM;
        return false;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        *ret_error = errno;
        return false;
    }
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    format_owner(client, owner);
    *ret_error = spawn(path, ends[1], owner, &client->pid);
    (void)close(ends[1]);
    if (*ret_error != 0) {
        (void)close(ends[0]);
        return false;
    }
    client->socket = ends[0];
    return true;
}

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

void supervisor_close(struct supervisor_client *client)
{
    if (client->socket >= 0) {
        (void)close(client->socket);
        client->socket = -1;
        wait_for(client->pid);
    }
}

void supervisor_detach(struct supervisor_client *client)
{
    if (client->socket >= 0 && client->detached_count < SUPERVISOR_DETACHED_MAX) {
        (void)close(client->socket);
        client->socket = -1;
        client->detached[client->detached_count++] = client->pid;
    }
}

bool supervisor_is_detaching(struct supervisor_client *client)
{
    size_t left = 0;
    for (size_t i = 0; i < client->detached_count; i++) {
        if (waitpid(client->detached[i], NULL, WNOHANG) == 0) {
            client->detached[left++] = client->detached[i];
        }
    }
    client->detached_count = left;
    return left > 0;
}

/* ---- after a crash ---- */

/* Does the environment of the process begin a variable with this mark? */
static bool is_marked(const char *pid, const char *mark)
{
    char path[64];
    struct nb_text text = {0};
    char block[4096];
    bool found = false;
    (void)snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t got;
    while ((got = read(fd, block, sizeof(block))) > 0 && text.len < SWEEP_ENVIRON_MAX) {
        nb_add(&text, block, (size_t)got);
    }
    (void)close(fd);
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
        /* the next round finds processes that were started meanwhile */
    }
}

void supervisor_sweep(const struct supervisor_client *client)
{
    char owner[SUPERVISOR_OWNER_MAX];
    char mark[SUPERVISOR_OWNER_MAX + sizeof(SUPERVISOR_MARK "=.")];
    format_owner(client, owner);
    (void)snprintf(mark, sizeof(mark), SUPERVISOR_MARK "=%s.", owner);
    sweep(mark);
}

void supervisor_sweep_stale(const struct supervisor_client *client)
{
    char mark[SUPERVISOR_OWNER_MAX + sizeof(SUPERVISOR_MARK "=/")];
    if (client->data_dir_id[0] != '\0') {
        (void)snprintf(mark, sizeof(mark), SUPERVISOR_MARK "=%s/", client->data_dir_id);
        sweep(mark);
    }
}

/* ---- packets ---- */

static bool send_packet(struct supervisor_client *client, const struct nb_text *packet)
{
    ssize_t sent;
    if (packet->failed || packet->len > SUPERVISOR_PACKET_MAX || client->socket < 0) {
        return false;
    }
    do {
        /* The supervisor reads at once; a stopped one must not block the gateway. */
        sent = send(client->socket, packet->data, packet->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)packet->len;
}

static uint32_t add_list(struct nb_text *packet, const char *const *list)
{
    uint32_t count = 0;
    for (; list[count] != NULL; count++) {
        nb_add(packet, list[count], strlen(list[count]) + 1);
    }
    return count;
}

bool supervisor_start(struct supervisor_client *client, uint32_t id, const char *folder,
                      const char *const *command, const char *const *variables)
{
    struct supervisor_request request = {.kind = SUPERVISOR_START, .id = id};
    struct nb_text packet = {0};
    nb_add(&packet, (const char *)&request, sizeof(request));
    nb_add(&packet, folder, strlen(folder) + 1);
    request.argc = add_list(&packet, command);
    request.envc = add_list(&packet, variables);
    if (!packet.failed) {
        memcpy(packet.data, &request, sizeof(request));
    }
    bool sent = send_packet(client, &packet);
    nb_text_done(&packet);
    return sent;
}

bool supervisor_signal(struct supervisor_client *client, uint32_t id, int signal)
{
    struct supervisor_request request = {.kind = SUPERVISOR_SIGNAL, .id = id, .signal = signal};
    struct nb_text packet = {0};
    nb_add(&packet, (const char *)&request, sizeof(request));
    bool sent = send_packet(client, &packet);
    nb_text_done(&packet);
    return sent;
}

int supervisor_receive(struct supervisor_client *client, char buffer[SUPERVISOR_PACKET_MAX],
                       struct supervisor_event *ret)
{
    struct supervisor_event_head event;
    ssize_t got = recv(client->socket, buffer, SUPERVISOR_PACKET_MAX, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (got < (ssize_t)sizeof(event)) {
        return -1;
    }
    memcpy(&event, buffer, sizeof(event));
    ret->kind = (enum supervisor_event_kind)event.kind;
    ret->id = event.id;
    ret->value = event.value;
    ret->tail.data = buffer + sizeof(event);
    ret->tail.len = (size_t)got - sizeof(event);
    return 1;
}
