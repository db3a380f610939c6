/* SPDX-License-Identifier: MIT */
/* kernel_launch.c - launches a kernel: ports, connection file, sockets, process. */
#include "core/base/buf.h"
#include "core/base/files/run_as.h"
#include "core/base/files/trust.h"
#include "core/base/minmax.h"
#include "kernel_state.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PORT_SHELL, PORT_CONTROL, PORT_IOPUB, PORT_STDIN, PORT_HEARTBEAT };

static bool fail(char why[KERNEL_WHY_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool fail(char why[KERNEL_WHY_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, KERNEL_WHY_MAX, format, args);
    va_end(args);
    return false;
}

/* libzmq aborts the process when descriptors run out: reserve enough for all sockets. */
static bool has_descriptors(void)
{
    struct rlimit limit;
    size_t used = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        if (folder != NULL) {
            (void)closedir(folder);
        }
        return false;
    }
    while (readdir(folder) != NULL) {
        used++;
    }
    (void)closedir(folder);
    return used + KERNEL_DESCRIPTORS <= limit.rlim_cur;
}

static bool hold_port(struct kernel *kernel, int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    kernel->held_ports[kernel->held_count++] = fd;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        return false;
    }
    *ret_port = ntohs(address.sin_port);
    return true;
}

/* Holds free ports until the kernel answers: a kernel that finds one taken may hang (ipykernel
 * does). The system gives a bound port to no other program, and the kernel can still use it, as
 * libzmq sets SO_REUSEADDR. The last attempt is for kernels that do not. */
static bool pick_ports(struct kernel *kernel, int ports[KERNEL_PORTS])
{
    for (int i = 0; i < KERNEL_PORTS; i++) {
        if (!hold_port(kernel, &ports[i])) {
            return false;
        }
    }
    if (kernel->starts + 1 >= KERNEL_STARTS_MAX) {
        kernel_release_ports(kernel);
    }
    return true;
}

static bool write_connection_file(struct kernel *kernel, const int ports[KERNEL_PORTS])
{
    char text[1024];
    int len =
        snprintf(text, sizeof(text),
                 "{\"shell_port\":%d,\"iopub_port\":%d,\"stdin_port\":%d,"
                 "\"control_port\":%d,\"hb_port\":%d,\"ip\":\"127.0.0.1\","
                 "\"key\":\"%s\",\"transport\":\"tcp\","
                 "\"signature_scheme\":\"hmac-sha256\",\"kernel_name\":\"%s\"}\n",
                 ports[PORT_SHELL], ports[PORT_IOPUB], ports[PORT_STDIN], ports[PORT_CONTROL],
                 ports[PORT_HEARTBEAT], kernel->key.text, kernel->spec.name);
    int fd = open(kernel->connection_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    bool good = write(fd, text, (size_t)len) == len;
    good = close(fd) == 0 && good;
    return good;
}

static bool connect_channel(struct kernel *kernel, enum kernel_channel channel, int type,
                            int port)
{
    struct zeromq *zmq = &kernel->kernels->zmq;
    char address[64];
    int none = 0;
    int one = 1;
    int linger = 0;
    void *socket = zmq->socket(kernel->kernels->context, type);
    kernel->sockets[channel] = socket;
    if (socket == NULL) {
        return false;
    }
    (void)snprintf(address, sizeof(address), "tcp://127.0.0.1:%d", port);
    /* No high-water mark: beyond it messages are lost, possibly the last reply. */
    bool good = zmq->setsockopt(socket, ZMQ_RCVHWM, &none, sizeof(none)) == 0 &&
                zmq->setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger)) == 0;
    if (channel == CHANNEL_STDIN) {
        /* Writable only while connected: see kernel_has_stdin(). */
        good = good && zmq->setsockopt(socket, ZMQ_IMMEDIATE, &one, sizeof(one)) == 0;
    }
    if (type == ZMQ_SUB) {
        good = good && zmq->setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0;
    } else {
        /* One identity for all channels, so that the kernel can address input requests. */
        good = good && zmq->setsockopt(socket, ZMQ_IDENTITY, kernel->session,
                                       strlen(kernel->session)) == 0;
    }
    return good && zmq->connect(socket, address) == 0;
}

static bool connect_all(struct kernel *kernel, const int ports[KERNEL_PORTS])
{
    return connect_channel(kernel, CHANNEL_SHELL, ZMQ_DEALER, ports[PORT_SHELL]) &&
           connect_channel(kernel, CHANNEL_CONTROL, ZMQ_DEALER, ports[PORT_CONTROL]) &&
           connect_channel(kernel, CHANNEL_IOPUB, ZMQ_SUB, ports[PORT_IOPUB]) &&
           connect_channel(kernel, CHANNEL_STDIN, ZMQ_DEALER, ports[PORT_STDIN]);
}

/* Behind a sentence: the command that lets only root and this user change the file. */
static bool fail_untrusted(char why[KERNEL_WHY_MAX], const char *sentence, const char *path)
{
    struct stat info = {.st_uid = 0};
    struct buf command;
    struct buf text;
    (void)stat(path, &info);
    bool own = info.st_uid == geteuid();
    bool is_strangers = !own && info.st_uid != 0;
    buf_init(&command, KERNEL_WHY_MAX);
    buf_init(&text, KERNEL_WHY_MAX);
    if (is_strangers) {
        (void)buf_add_c(&command, "chown root ");
        (void)trust_add_word(&command, path);
        (void)buf_add_c(&command, " && ");
    }
    (void)buf_add_c(&command, "chmod go-w ");
    (void)trust_add_word(&command, path);
    if (is_strangers && geteuid() != 0) { /* one command for sudo */
        (void)buf_add_c(&text, "sh -c ");
        (void)trust_add_word(&text, buf_cstr(&command));
        buf_clear(&command);
        (void)buf_add_str(&command, buf_str(&text));
        buf_clear(&text);
    }
    (void)buf_printf(&text, "%s; do ", sentence);
    (void)run_as_add(&text, own ? geteuid() : 0, buf_cstr(&command));
    (void)fail(why, "%s.",
               text.rc == NG_OK && command.rc == NG_OK ? buf_cstr(&text) : sentence);
    buf_done(&command);
    buf_done(&text);
    return false;
}

static bool open_library(struct kernels *kernels, char why[KERNEL_WHY_MAX])
{
    char path[PATH_MAX];
    int error = 0;
    if (kernels->zmq.library == NULL) {
        const char *missing = zeromq_load(&kernels->zmq);
        if (missing != NULL) {
            return fail(why, "Kernels cannot be started, libzmq is missing: %s", missing);
        }
    }
    if (kernels->context == NULL) {
        kernels->context = kernels->zmq.ctx_new();
        if (kernels->context == NULL) {
            return fail(why, "Kernels cannot be started: libzmq does not start.");
        }
    }
    if (kernels->supervisor.socket < 0 &&
        !supervisor_open(&kernels->supervisor, path, &error)) {
        char text[128];
        if (error == EPERM) {
            return fail_untrusted(why,
                                  "Kernels cannot be started: other users can change the "
                                  "program that supervises them",
                                  path);
        }
        return fail(why, "Kernels cannot be started: the supervisor %.700s does not start: %s",
                    path, strerror_r(error, text, sizeof(text)));
    }
    return true;
}

/* A program or kernel.json that other users can change would run their code as our user. */
static bool is_trusted(const struct kernel *kernel, const char *path, char why[KERNEL_WHY_MAX])
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return fail(why,
                    "The kernel `%s` is not started: its program `%.300s` is in no folder of "
                    "PATH.",
                    kernel->spec.name, path);
    }
    if (path[0] != '/') { /* it would be resolved against the notebook's folder */
        return fail(why,
                    "The kernel `%s` is not started: its program `%.300s` is a relative path; "
                    "name it as an absolute one in kernel.json.",
                    kernel->spec.name, path);
    }
    int len = snprintf(folder, sizeof(folder), "%.*s", int_max((int)(slash - path), 1), path);
    const char *wrong = path;
    if (!supervisor_is_untrusted(path)) {
        wrong = folder;
        if (len >= PATH_MAX || len <= 0 || !supervisor_is_untrusted(folder)) {
            return true;
        }
    }
    char sentence[KERNEL_WHY_MAX / 2];
    struct stat info;
    if (stat(wrong, &info) != 0) {
        return true;
    }
    (void)snprintf(sentence, sizeof(sentence),
                   "The kernel `%s` is not started: other users can change %.300s",
                   kernel->spec.name, wrong);
    return fail_untrusted(why, sentence, wrong);
}

/* Resolves a bare program name along PATH, so that the checked file is the executed one. If it
 * is not found the name stays, and starting it reports the reason. */
static void find_program(const char **program, const char *const *variables,
                         struct arena *memory)
{
    const char *path = getenv("PATH");
    if (path == NULL) { /* in an empty environment */
        path = "/usr/local/bin:/usr/bin:/bin";
    }
    for (; *variables != NULL; variables++) {
        if (strncmp(*variables, "PATH=", 5) == 0) {
            path = *variables + 5;
        }
    }
    while (*path != '\0' && strchr(*program, '/') == NULL) {
        char file[PATH_MAX];
        struct stat info;
        size_t folder = strcspn(path, ":");
        int len = snprintf(file, sizeof(file), "%.*s/%s", (int)folder, path, *program);
        if (path[0] == '/' && len < PATH_MAX && access(file, X_OK) == 0 &&
            stat(file, &info) == 0 && S_ISREG(info.st_mode)) {
            *program = arena_copy(memory, ng_str_of(file)).data;
            return;
        }
        path += folder + (path[folder] == ':');
    }
}

static bool is_spec_trusted(const struct kernel *kernel, const char *program,
                            char why[KERNEL_WHY_MAX])
{
    char file[PATH_MAX];
    int len = snprintf(file, sizeof(file), "%s/kernel.json", kernel->spec.folder);
    return (len <= 0 || len >= PATH_MAX || is_trusted(kernel, file, why)) &&
           is_trusted(kernel, program, why);
}

static bool start_process(struct kernel *kernel, char why[KERNEL_WHY_MAX])
{
    struct arena memory;
    bool good = false;
    arena_init(&memory, 0);
    (void)fail(why,
               "The kernel `%s` could not be started: its command is too long, the supervisor "
               "of kernels does not answer, or memory is exhausted.",
               kernel->spec.name);
    const char **command = kernelspec_command(&kernel->spec, kernel->connection_file, &memory);
    const char **variables = kernelspec_environment(&kernel->spec, &memory);
    if (!memory.failed) {
        find_program(&command[0], variables, &memory);
    }
    if (!memory.failed) {
        good = is_spec_trusted(kernel, command[0], why) &&
               supervisor_start(&kernel->kernels->supervisor, kernel->id, kernel->folder,
                                command, variables);
    }
    arena_done(&memory);
    return good;
}

bool kernel_launch(struct kernel *kernel, char why[KERNEL_WHY_MAX])
{
    struct kernels *kernels = kernel->kernels;
    int ports[KERNEL_PORTS];
    kernel_disconnect(kernel);
    if (!has_descriptors()) {
        return fail(why, "Too few file descriptors are free for a kernel: raise the limit "
                         "(ulimit -n), or close some connections.");
    }
    if (!open_library(kernels, why)) {
        return false;
    }
    kernel->id = ++kernels->last_id;
    int len =
        snprintf(kernel->connection_file, sizeof(kernel->connection_file),
                 "%s/kernel-%d-%u.json", kernels->folder, (int)getpid(), (unsigned)kernel->id);
    if (!wire_id(kernel->key.text) || !wire_id(kernel->session) || !pick_ports(kernel, ports) ||
        len < 0 || (size_t)len >= sizeof(kernel->connection_file)) {
        return fail(why, "The kernel `%s` could not be started: no free ports.",
                    kernel->spec.name);
    }
    (void)unlink(kernel->connection_file);
    if (!write_connection_file(kernel, ports)) {
        return fail(why,
                    "The kernel's connection file %s could not be written: is the disk "
                    "full?",
                    kernel->connection_file);
    }
    kernel->info_replied = false;
    kernel->iopub_seen = false;
    kernel->info_request_ms = 0;
    kernel->ready_ms = 0;
    kernel->started_ms = kernel_now_ms();
    kernel->starts++;
    kernel->place_count = 0;
    if (!connect_all(kernel, ports)) {
        kernel_disconnect(kernel);
        return fail(why, "The kernel `%s` could not be reached: %s", kernel->spec.name,
                    kernels->zmq.strerror(kernels->zmq.error()));
    }
    if (!start_process(kernel, why)) {
        kernel_disconnect(kernel);
        return false;
    }
    return true;
}

void kernel_release_ports(struct kernel *kernel)
{
    while (kernel->held_count > 0) {
        (void)close(kernel->held_ports[--kernel->held_count]);
    }
}

void kernel_disconnect(struct kernel *kernel)
{
    kernel_release_ports(kernel);
    for (int i = 0; i < CHANNELS; i++) {
        if (kernel->sockets[i] != NULL) {
            (void)kernel->kernels->zmq.close(kernel->sockets[i]);
            kernel->sockets[i] = NULL;
        }
    }
    if (kernel->connection_file[0] != '\0') {
        (void)unlink(kernel->connection_file);
        kernel->connection_file[0] = '\0';
    }
}
