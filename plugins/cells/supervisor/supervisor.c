/* SPDX-License-Identifier: MIT */
/*
 * supervisor.c - the process that owns all kernels of a gateway: starts them, reports exits,
 * and kills them with all their descendants when the gateway is gone for any reason.
 *
 * It is the subreaper of its descendants, so none can escape by leaving its parent. It lives
 * until its socket to the gateway is closed. Single-threaded.
 *
 * Its parent is a guard, the same program, which only waits: if the supervisor is killed, its
 * descendants are reparented to the guard, which kills them. If the guard is killed, the
 * supervisor kills everything and exits.
 */
#include "supervisor_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRINGS_MAX 1024
#define MARK_SIZE 64

struct kernel {
    uint32_t id;
    pid_t pid;  /* 0: free slot */
    int output; /* read end of its output pipe; -1: none */
    size_t tail_len;
    char tail[SUPERVISOR_TAIL_MAX];
};

struct supervisor {
    pid_t self, guard;
    const char *owner; /* prefix of all marks */
    struct kernel kernels[SUPERVISOR_KERNELS_MAX];
    int signals;
    bool ending;
};

extern char **environ;

/* ---- events ---- */

static void send_event(uint32_t kind, uint32_t id, int value, const struct kernel *kernel)
{
    char packet[sizeof(struct supervisor_event_head) + SUPERVISOR_TAIL_MAX];
    struct supervisor_event_head event = {kind, id, value, 0};
    if (kernel != NULL) {
        event.tail = (uint32_t)kernel->tail_len;
        memcpy(packet + sizeof(event), kernel->tail, kernel->tail_len);
    }
    memcpy(packet, &event, sizeof(event));
    ssize_t sent;
    do {
        sent = send(SUPERVISOR_FD, packet, sizeof(event) + event.tail, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
}

/* ---- launch ---- */

/* Splits the strings of a request in place. False: malformed request. */
static bool read_strings(char *at, const char *end, uint32_t count, char **strings)
{
    for (uint32_t i = 0; i < count; i++) {
        char *stop = at;
        while (stop < end && *stop != '\0') {
            stop++;
        }
        if (stop >= end) {
            return false;
        }
        strings[i] = at;
        at = stop + 1;
    }
    strings[count] = NULL;
    return true;
}

/* Variables of the gateway that kernels must not see. */
static bool is_gateway_only(const char *variable)
{
    static const char *const names[] = {"NOTEGATE_",
                                        "MONGODB_URL=", "REDIS_URL=", "PYTHONEXECUTABLE="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void set_environment(char **variables, const char *owner, uint32_t id)
{
    char mark[SUPERVISOR_OWNER_MAX + MARK_SIZE];
    char parent[MARK_SIZE];
    size_t kept = 0;
    for (size_t i = 0; environ[i] != NULL; i++) {
        if (!is_gateway_only(environ[i])) {
            environ[kept++] = environ[i];
        }
    }
    environ[kept] = NULL;
    (void)snprintf(mark, sizeof(mark), "%s.%u", owner, (unsigned)id);
    (void)snprintf(parent, sizeof(parent), "%ld", (long)getppid());
    (void)setenv(SUPERVISOR_MARK, mark, 1);
    (void)setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1",
                 0);                           /* suppresses a warning of each ipykernel */
    (void)setenv("JPY_PARENT_PID", parent, 1); /* ipykernel exits when this process does */
    for (size_t i = 0; variables[i] != NULL; i++) {
        (void)putenv(variables[i]);
    }
}

/* Runs in the child; does not return. */
static void run_kernel(const struct supervisor *supervisor, char **strings, char **variables,
                       uint32_t id, const int pipes[2])
{
    sigset_t none;
    (void)sigemptyset(&none);
    /* The gateway ignores SIGPIPE, and a shell that starts it in the background makes it ignore
     * SIGINT, which interrupts kernels. */
    for (int i = 1; i < NSIG; i++) {
        (void)signal(i, SIG_DFL);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor->self) {
        _exit(127); /* the supervisor exited before PDEATHSIG was set */
    }
    (void)setsid();
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(pipes[0], STDOUT_FILENO) >= 0 &&
        dup2(pipes[0], STDERR_FILENO) >= 0 && chdir(strings[0]) == 0) {
        (void)close_range(SUPERVISOR_FD, (unsigned)pipes[1] - 1, 0);
        (void)close_range((unsigned)pipes[1] + 1, ~0U, 0);
        set_environment(variables, supervisor->owner, id);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)execv(strings[1], strings + 1);
    }
    int error = errno;
    (void)!write(pipes[1], &error, sizeof(error));
    _exit(127);
}

/* Waits for exec. Returns 0, or the errno of its failure. */
static int exec_error(int report)
{
    int error = 0;
    ssize_t got;
    do {
        got = read(report, &error, sizeof(error));
    } while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof(error)) {
        return error;
    }
    return 0;
}

static struct kernel *free_slot(struct supervisor *supervisor)
{
    for (size_t i = 0; i < SUPERVISOR_KERNELS_MAX; i++) {
        if (supervisor->kernels[i].pid == 0) {
            return &supervisor->kernels[i];
        }
    }
    return NULL;
}

static void start(struct supervisor *supervisor, uint32_t id, char **strings, char **variables)
{
    struct kernel *kernel = free_slot(supervisor);
    int output[2];
    int report[2];
    if (kernel == NULL) {
        send_event(SUPERVISOR_FAILED, id, EAGAIN, NULL);
        return;
    }
    if (pipe2(output, O_CLOEXEC) != 0) {
        send_event(SUPERVISOR_FAILED, id, errno, NULL);
        return;
    }
    if (pipe2(report, O_CLOEXEC) != 0) {
        int error = errno;
        (void)close(output[0]);
        (void)close(output[1]);
        send_event(SUPERVISOR_FAILED, id, error, NULL);
        return;
    }
    const int pipes[2] = {output[1], report[1]};
    pid_t pid = fork();
    if (pid == 0) {
        run_kernel(supervisor, strings, variables, id, pipes);
    }
    int error = 0;
    if (pid < 0) {
        error = errno;
    }
    (void)close(output[1]);
    (void)close(report[1]);
    if (error == 0) {
        error = exec_error(report[0]);
    }
    (void)close(report[0]);
    if (error != 0) {
        (void)close(output[0]);
        send_event(SUPERVISOR_FAILED, id, error, NULL);
        return; /* the failed child is reaped like an orphan */
    }
    (void)fcntl(output[0], F_SETFL, O_NONBLOCK);
    kernel->id = id;
    kernel->pid = pid;
    kernel->output = output[0];
    kernel->tail_len = 0;
    send_event(SUPERVISOR_STARTED, id, (int)pid, NULL);
}

/* ---- output ---- */

static void keep_tail(struct kernel *kernel, const char *data, size_t len)
{
    if (kernel->tail_len + len > SUPERVISOR_TAIL_MAX) {
        size_t over = kernel->tail_len + len - SUPERVISOR_TAIL_MAX;
        memmove(kernel->tail, kernel->tail + over, kernel->tail_len - over);
        kernel->tail_len -= over;
    }
    memcpy(kernel->tail + kernel->tail_len, data, len);
    kernel->tail_len += len;
}

static void read_output(struct kernel *kernel)
{
    char block[4096];
    ssize_t got = 0;
    /* A limit per turn: a flood of output does not block other kernels. */
    for (int i = 0; i < 16; i++) {
        got = read(kernel->output, block, sizeof(block));
        if (got <= 0) {
            break;
        }
        keep_tail(kernel, block, (size_t)got);
    }
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        (void)close(kernel->output);
        kernel->output = -1;
    }
}

/* ---- exit ---- */

static struct kernel *find_by_pid(struct supervisor *supervisor, pid_t pid)
{
    for (size_t i = 0; pid > 0 && i < SUPERVISOR_KERNELS_MAX; i++) {
        if (supervisor->kernels[i].pid == pid) {
            return &supervisor->kernels[i];
        }
    }
    return NULL;
}

static struct kernel *find_by_id(struct supervisor *supervisor, uint32_t id)
{
    for (size_t i = 0; i < SUPERVISOR_KERNELS_MAX; i++) {
        if (supervisor->kernels[i].pid != 0 && supervisor->kernels[i].id == id) {
            return &supervisor->kernels[i];
        }
    }
    return NULL;
}

/* The kernel id in the mark of a process. False: no mark. */
static bool read_mark(pid_t pid, uint32_t *ret_id)
{
    static const char name[] = SUPERVISOR_MARK "=";
    static char text[1 << 20];
    char path[MARK_SIZE];
    (void)snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    if (fd < 0) {
        return false;
    }
    ssize_t got;
    while ((got = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)got;
    }
    (void)close(fd);
    text[len] = '\0';
    for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
        if (strncmp(text + at, name, sizeof(name) - 1) == 0) {
            const char *dot = strrchr(text + at, '.');
            *ret_id = 0;
            if (dot != NULL) {
                *ret_id = (uint32_t)strtoul(dot + 1, NULL, 10);
            }
            return true;
        }
    }
    return false;
}

/* Kills children that were reparented to us: those of exited kernels; with `all` every
 * child. */
static void kill_orphans(struct supervisor *supervisor, bool all)
{
    char path[MARK_SIZE];
    char text[65536];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    ssize_t got = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (got <= 0) {
        return;
    }
    text[got] = '\0';
    char *at = text;
    for (;;) {
        char *end = NULL;
        pid_t pid = (pid_t)strtol(at, &end, 10);
        uint32_t id = 0;
        if (end == at) {
            break;
        }
        at = end;
        if (all || (find_by_pid(supervisor, pid) == NULL && read_mark(pid, &id) &&
                    find_by_id(supervisor, id) == NULL)) {
            (void)kill(pid, SIGKILL);
        }
    }
}

static void kernel_exited(struct supervisor *supervisor, struct kernel *kernel, int status)
{
    if (kernel->output >= 0) {
        read_output(kernel);
    }
    if (kernel->output >= 0) {
        (void)close(kernel->output);
        kernel->output = -1;
    }
    (void)kill(-kernel->pid, SIGKILL);
    uint32_t id = kernel->id;
    kernel->pid = 0;
    kill_orphans(supervisor, false);
    send_event(SUPERVISOR_EXITED, id, status, kernel);
}

static void reap(struct supervisor *supervisor)
{
    struct signalfd_siginfo info;
    int status = 0;
    pid_t pid;
    bool orphans = false;
    while (read(supervisor->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        /* Only the socket and the guard end the supervisor: a signal to the whole process group
         * is for the gateway, which may have calls to finish. */
    }
    supervisor->ending = supervisor->ending || getppid() != supervisor->guard;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct kernel *kernel = find_by_pid(supervisor, pid);
        if (kernel != NULL) {
            kernel_exited(supervisor, kernel, status);
        } else {
            orphans = true;
        }
    }
    if (orphans) {
        kill_orphans(supervisor, false); /* an orphan may have left children */
    }
}

/* Kills all descendants. */
static void end_all(struct supervisor *supervisor)
{
    for (size_t i = 0; i < SUPERVISOR_KERNELS_MAX; i++) {
        if (supervisor->kernels[i].pid != 0) {
            (void)kill(-supervisor->kernels[i].pid, SIGKILL);
        }
    }
    do {
        kill_orphans(supervisor, true);
    } while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

/* ---- requests ---- */

static void handle_request(struct supervisor *supervisor)
{
    static char packet[SUPERVISOR_PACKET_MAX];
    static char *strings[STRINGS_MAX + 2];
    static char *variables[STRINGS_MAX + 1];
    struct supervisor_request request;
    ssize_t got = recv(SUPERVISOR_FD, packet, sizeof(packet), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got < (ssize_t)sizeof(request)) {
        supervisor->ending = true;
        return;
    }
    memcpy(&request, packet, sizeof(request));
    if (request.kind == SUPERVISOR_SIGNAL) {
        struct kernel *kernel = find_by_id(supervisor, request.id);
        if (kernel != NULL) {
            (void)kill(-kernel->pid, request.signal);
        }
        return;
    }
    char *at = packet + sizeof(request);
    const char *end = packet + got;
    bool good = request.kind == SUPERVISOR_START && request.argc > 0 &&
                request.argc <= STRINGS_MAX && request.envc <= STRINGS_MAX &&
                read_strings(at, end, request.argc + 1, strings);
    if (good) {
        at = strings[request.argc] + strlen(strings[request.argc]) + 1;
        good = read_strings(at, end, request.envc, variables);
    }
    if (good) {
        start(supervisor, request.id, strings, variables);
    } else {
        send_event(SUPERVISOR_FAILED, request.id, EINVAL, NULL);
    }
}

/* Main function of the guard: waits for the supervisor, then kills its remains. */
static int run_guard(struct supervisor *supervisor, pid_t pid)
{
    pid_t ended;
    (void)close(SUPERVISOR_FD); /* only the supervisor may hold it, so that the gateway notices
                                   its exit */
    do {
        ended = waitpid(-1, NULL, 0);
    } while (ended != pid && (ended > 0 || errno == EINTR));
    end_all(supervisor);
    return 0;
}

static bool supervisor_setup(struct supervisor *supervisor)
{
    sigset_t signals;
    for (size_t i = 0; i < SUPERVISOR_KERNELS_MAX; i++) {
        supervisor->kernels[i].output = -1;
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGCHLD);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0) {
        return false;
    }
    (void)setsid(); /* signals of the gateway's terminal are not for kernels */
    (void)fcntl(SUPERVISOR_FD, F_SETFD, FD_CLOEXEC);
    (void)prctl(PR_SET_NAME, SUPERVISOR_PROGRAM);
    supervisor->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return supervisor->signals >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* Runs in the child of the guard. */
static void begin_supervising(struct supervisor *supervisor, pid_t guard)
{
    supervisor->self = getpid();
    supervisor->guard = guard;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* not inherited */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* only wakes the loop */
    supervisor->ending = getppid() != guard;
}

int main(int argc, char **argv)
{
    static struct supervisor supervisor;
    static struct pollfd polls[SUPERVISOR_KERNELS_MAX + 2];
    pid_t guard = getpid();
    if (argc != 2 || strlen(argv[1]) > SUPERVISOR_OWNER_MAX || !supervisor_setup(&supervisor)) {
        return 1;
    }
    supervisor.owner = argv[1];
    pid_t pid = fork();
    if (pid < 0) {
        return 1;
    }
    if (pid > 0) {
        return run_guard(&supervisor, pid);
    }
    begin_supervising(&supervisor, guard);
    while (!supervisor.ending) {
        struct kernel *reading[SUPERVISOR_KERNELS_MAX];
        nfds_t count = 2;
        polls[0] = (struct pollfd){.fd = SUPERVISOR_FD, .events = POLLIN};
        polls[1] = (struct pollfd){.fd = supervisor.signals, .events = POLLIN};
        for (size_t i = 0; i < SUPERVISOR_KERNELS_MAX; i++) {
            if (supervisor.kernels[i].pid != 0 && supervisor.kernels[i].output >= 0) {
                reading[count - 2] = &supervisor.kernels[i];
                polls[count++] =
                    (struct pollfd){.fd = supervisor.kernels[i].output, .events = POLLIN};
            }
        }
        if (poll(polls, count, -1) < 0 && errno != EINTR) {
            break;
        }
        for (nfds_t i = 2; i < count; i++) {
            if (polls[i].revents != 0) {
                read_output(reading[i - 2]);
            }
        }
        if (polls[1].revents != 0) {
            reap(&supervisor);
        }
        if (polls[0].revents != 0) {
            handle_request(&supervisor);
        }
    }
    end_all(&supervisor);
    return 0;
}
