/* SPDX-License-Identifier: MIT */
/* command_serve.c - notegate serve: starts the gateway and its HTTP transport, waits for
 * signals, stops. */
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "api/base/build_info.h"
#include "api/base/orphans.h"
#include "api/base/own_files.h"
#include "api/client/attach.h"
#include "api/http/http_transport.h"
#include "api/listen/http_listen.h"
#include "api/ops/reload.h"
#include "api/serve/routes.h"
#include "command_user.h"
#include "commands.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/log_queue.h"
#include "core/base/minmax.h"
#include "core/base/text_choice.h"
#include "core/cluster/cluster.h"
#include "core/dispatch/timers.h"
#include "core/gateway/gateway_open.h"
#include "core/keys/keys.h"
#include "core/module/registry.h"
#include "core/store/disk.h"

#define SERVE_ERROR_MAX ((size_t)64 * 1024)
/* After shutdown_timeout, or after a second signal: how long the rest of stopping may take
 * before the process ends all the same. What was acknowledged is on disk by then. */
#define SERVE_GRACE_MS 5000
#define SERVE_GRACE_HURRY_MS 1000
#define SERVE_DRAIN_MS 1000
/* Names of calls that keep the gateway from stopping. */
#define SERVE_CALLS_MAX 4096
/* A host name and a port. */
#define SERVE_ADDRESS_SIZE 300

struct serve {
    struct gateway *gateway;
    struct http_server *server;
    struct reload *reload;
    struct config_input input;
    struct orphans orphans;
    struct own_files files;
    sigset_t signals;
    bool dropped; /* root's rights */
};

static void serve_signals(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
}

/* Waits for one of them, at most wait_ms; below 0: none came. */
static int serve_signal(const sigset_t *signals, int64_t wait_ms)
{
    struct timespec wait = {(time_t)(wait_ms / 1000), (long)(wait_ms % 1000) * 1000000};
    return sigtimedwait(signals, NULL, &wait);
}

/* Tells a service manager that started us (NOTIFY_SOCKET) how things stand. */
static void serve_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    size_t len = strlen(path);
    if (len >= sizeof(address.sun_path)) {
        return;
    }
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL,
                     (const struct sockaddr *)(const void *)&address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
        (void)close(fd);
    }
}

static void serve_reload(struct serve *serve)
{
    serve_notify("RELOADING=1");
    orphans_begin(&serve->orphans);
    reload_run(serve->reload, NULL);
    orphans_end(&serve->orphans);
    serve_notify("READY=1");
}

/* ---- serving ---- */

static int64_t serve_now_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}

/* The gateway could not serve any more, and writes might reach another file. */
static void serve_check_files(const struct serve *serve)
{
    const struct own_file *lost = own_files_lost(&serve->files);
    if (lost != NULL) {
        log_write(NG_LOG_ERROR, "serve",
                  "the gateway ends: other code in this process (of a plugin) closed "
                  "descriptor %d, %s; every acknowledged write is kept",
                  lost->fd, lost->what);
        log_queue_flush(LOG_QUEUE_STOP_MS);
        _exit(COMMAND_FAILED);
    }
}

/* libmicrohttpd cannot go on, as where it meets a lost descriptor before the next look. */
static void serve_panic(void *user, const char *file, unsigned line, const char *reason)
{
    serve_check_files(user);
    log_write(NG_LOG_ERROR, "serve", "libmicrohttpd cannot continue (%s:%u): %s", file, line,
              text_or(reason, "no reason given"));
    log_queue_flush(LOG_QUEUE_STOP_MS);
    abort();
}

static void serve_guard_files(struct serve *serve)
{
    http_server_note_files(serve->server, &serve->files);
    own_files_note(&serve->files, "the lock of its data directory", serve->gateway->lock_fd);
    MHD_set_panic_func(serve_panic, serve);
}

/* Until the gateway is told to stop: true. False: until_ms came first. */
static bool serve_wait(struct serve *serve, int64_t until_ms)
{
    int64_t look = serve_now_ms() + ORPHANS_LOOK_MS;
    for (;;) {
        int64_t now = serve_now_ms();
        if (now >= until_ms) {
            return false;
        }
        if (now >= look) { /* whatever came in between: reloads may come often */
            http_server_look(serve->server);
            (void)orphans_reap(&serve->orphans);
            serve_check_files(serve);
            look = now + ORPHANS_LOOK_MS;
        }
        int64_t wait_ms = i64_min(look, until_ms) - now;
        int signal_number = serve_signal(&serve->signals, wait_ms);
        if (signal_number == SIGHUP) {
            serve_reload(serve);
        } else if (signal_number == SIGTERM || signal_number == SIGINT) {
            return true;
        }
    }
}

/* ---- stopping ---- */

/* Watches a stop: it ends in time, whatever a tool does, and a second signal hurries it. */
struct serve_watch {
    pthread_t thread;
    sigset_t signals;
    int64_t wait_ms;
    bool hurried; /* a second signal came */
    atomic_bool done;
    _Atomic(const char *) calls; /* those that have not ended; NULL: not known */
};

static void *serve_watch_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-serve-watch");
    struct serve_watch *watch = user;
    int64_t until = serve_now_ms() + watch->wait_ms + SERVE_GRACE_MS;
    if (watch->hurried) {
        until = serve_now_ms() + SERVE_GRACE_HURRY_MS;
    }
    for (;;) {
        int64_t left = until - serve_now_ms();
        if (left <= 0) {
            break;
        }
        int signal_number = serve_signal(&watch->signals, left);
        if (atomic_load(&watch->done)) {
            return NULL;
        }
        if ((signal_number == SIGTERM || signal_number == SIGINT) && !watch->hurried) {
            watch->hurried = true;
            until = serve_now_ms() + SERVE_GRACE_HURRY_MS;
            log_write(NG_LOG_WARNING, "serve", "second signal: not waiting for calls");
        }
    }
    const char *calls = atomic_load(&watch->calls);
    log_write(
        NG_LOG_WARNING, "serve",
        "stopping took too long, some calls were interrupted%s%s; every acknowledged write "
        "is kept",
        text_if(calls, ": "), text_or(calls, ""));
    log_queue_flush(LOG_QUEUE_STOP_MS);
    _exit(COMMAND_OK);
}

/* The service manager may have a shorter limit than the configuration asks for. */
static void serve_notify_stop(int64_t wait_ms)
{
    char text[80];
    long long limit_us = (wait_ms + SERVE_GRACE_MS) * 1000;
    (void)snprintf(text, sizeof(text), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld", limit_us);
    serve_notify(text);
}

/* Not ready, but serving for shutdown_delay: nothing is refused while a load balancer still
 * sends requests here. True: a second signal came. */
static bool serve_drain(struct serve *serve, int64_t delay_ms)
{
    if (delay_ms == 0) {
        return false;
    }
    log_write(NG_LOG_INFO, "serve",
              "not ready from now on; calls are taken for another %.1f s (shutdown_delay)",
              (double)delay_ms / 1000);
    http_server_drain(serve->server);
    return serve_wait(serve, serve_now_ms() + delay_ms);
}

static void serve_stop(struct serve *serve)
{
    int64_t delay_ms = reload_delay_ms(serve->reload);
    serve_notify_stop(delay_ms + reload_shutdown_ms(serve->reload));
    cluster_leave(serve->gateway->cluster);
    bool hurried = serve_drain(serve, delay_ms);
    int64_t wait_ms = reload_shutdown_ms(serve->reload);
    struct serve_watch watch = {
        .signals = serve->signals, .wait_ms = wait_ms, .hurried = hurried};
    own_files_done(&serve->files); /* its lock ends with the gateway */
    log_write(NG_LOG_INFO, "serve", "stopping");
    bool watched = pthread_create(&watch.thread, NULL, serve_watch_run, &watch) == 0;
    reload_end(serve->reload);
    http_server_stop(serve->server, wait_ms);
    /* Not while a call runs that its transport no longer waits for: the watch ends the process
     * then. */
    struct buf calls;
    buf_init(&calls, SERVE_CALLS_MAX);
    timers_name_calls(serve->gateway->timers, &calls);
    if (calls.len > 0) {
        atomic_store(&watch.calls, buf_cstr(&calls));
    }
    while (!gateway_drain(serve->gateway, SERVE_DRAIN_MS) && watched) {
    }
    gateway_close(serve->gateway);
    serve->gateway = NULL;
    if (watched) {
        atomic_store(&watch.done, true);
        (void)pthread_kill(watch.thread, SIGHUP);
        (void)pthread_join(watch.thread, NULL);
    }
    buf_done(&calls);
    log_write(NG_LOG_INFO, "serve", "stopped");
}

/* ---- starting ---- */

/* The address to show; for all addresses a name that clients use and a certificate may
 * contain. */
static void serve_example_address(const struct serve *serve, char out[SERVE_ADDRESS_SIZE])
{
    const char *address = http_server_address(serve->server);
    const char *port = strrchr(address, ':');
    const struct ng_str *names = NULL;
    struct ng_str name = ng_str_of("localhost");
    if (strncmp(address, "0.0.0.0:", 8) != 0 && strncmp(address, "[::]:", 5) != 0) {
        (void)snprintf(out, SERVE_ADDRESS_SIZE, "%s", address);
        return;
    }
    size_t count = config_list(serve->gateway->config, "allowed_hosts", &names);
    for (size_t i = count; i-- > 0;) {
        bool pattern = memchr(names[i].data, '*', names[i].len) != NULL ||
                       memchr(names[i].data, '/', names[i].len) != NULL;
        if (!pattern) {
            name = names[i];
        }
    }
    (void)snprintf(out, SERVE_ADDRESS_SIZE, "%.*s%s", (int)name.len, name.data, port);
}

/* A first call to try, for a person at a terminal. Never on stdout, which scripts read, nor
 * among the lines of a log. */
static void serve_print_example(const struct serve *serve)
{
    const struct tool *const *tools = NULL;
    if (isatty(STDERR_FILENO) == 0) {
        return;
    }
    size_t count = registry_tools(serve->gateway->registry, &tools);
    const char *scheme = http_server_scheme(serve->server);
    char address[SERVE_ADDRESS_SIZE];
    serve_example_address(serve, address);
    const char *key = " -H \"Authorization: Bearer $NOTEGATE_KEY\"";
    const char *header = " --header \"Authorization: Bearer $NOTEGATE_KEY\"";
    if (keys_active(serve->gateway->keys) == 0) {
        key = header = "";
    }
    (void)fprintf(stderr,
                  "page: %s://%s/docs\n"
                  "data: %s\n"
                  "Claude Code: claude mcp add --transport http notegate %s://%s/mcp%s\n",
                  scheme, address, config_text(serve->gateway->config, "data_dir").data, scheme,
                  address, header);
    if (registry_find(serve->gateway->registry, ng_str_of("notebook")) != NULL) {
        (void)fprintf(
            stderr,
            "try: curl -s %s://%s/v1/tools/notebook -H 'Content-Type: application/json' "
            "-d '{\"mode\":\"list\"}'%s\n",
            scheme, address, key);
    } else if (count > 0) {
        (void)fprintf(stderr, "try: curl -s %s://%s/v1/tools/%s%s\n", scheme, address,
                      tools[0]->desc.name, key);
    }
}

/* To the log, so that it is known later, too. */
static void serve_tell_runners(const struct serve *serve)
{
    struct gateway *gateway = serve->gateway;
    struct call *call = NULL;
    if (keys_run_matters(gateway)) {
        call = call_new(gateway);
    }
    struct buf text;
    buf_init(&text, SERVE_ERROR_MAX);
    if (call != NULL && keys_runners(gateway->keys, call, &text) == NG_OK) {
        bool open = keys_active(gateway->keys) == 0;
        log_write(open ? NG_LOG_WARNING : NG_LOG_INFO, "serve", "%s", buf_cstr(&text));
    }
    buf_done(&text);
    call_unref(call);
}

/* Shows people and logs the source of the configuration. */
static void serve_log_configuration(const struct config *config)
{
    const char *file = config_file(config);
    const char *passed = config_passed_over(config);
    if (passed != NULL) {
        log_write(NG_LOG_WARNING, "serve",
                  "user %ld may not read the configuration %s: it is ignored", (long)geteuid(),
                  passed);
    }
    log_write(NG_LOG_INFO, "serve", "notegate %s; configuration: %s", build_version(),
              text_or(file, "no file; defaults, environment and flags"));
}

/* A reload reads the same files as the start, not those of another user's environment. */
static int serve_keep_input(struct command_line *line, struct config_input *input,
                            const struct config *config)
{
    const char *file = config_file(config);
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **kept = arena_alloc(&line->arena, (count + 1) * sizeof(*kept));
    struct ng_str copy = arena_copy(&line->arena, ng_str_of(file));
    if (kept == NULL || (file != NULL && copy.data == NULL)) {
        command_error("out of memory");
        return COMMAND_FAILED;
    }
    memcpy(kept, environ, (count + 1) * sizeof(*kept));
    input->environ = kept;
    input->file = copy.data;
    return COMMAND_OK;
}

/* The rights of the user it is to run as, and a data directory that no other user gets into. */
static int serve_settle(struct serve *serve, const struct attach *attach)
{
    struct buf error;
    int rc = command_user_become(attach->config, attach->data_dir, &serve->dropped);
    if (rc != COMMAND_OK) {
        return rc;
    }
    if (gateway_make_private(attach->data_dir)) {
        log_write(
            NG_LOG_INFO, "serve",
            "the data directory %s was empty and open to other users: its mode is 0700 now",
            attach->data_dir);
    }
    buf_init(&error, SERVE_ERROR_MAX);
    rc = gateway_check_data_dir(attach->data_dir, &error);
    if (rc != NG_OK) {
        command_error("the data directory %s", buf_cstr(&error));
    }
    buf_done(&error);
    return command_exit_code(rc);
}

/* A start that cannot listen makes no store: a later command would take that for the gateway's.
 */
static int serve_probe(const struct attach *attach)
{
    struct http_listener probe;
    struct buf error;
    if (!attach_is_new(attach)) {
        return COMMAND_OK;
    }
    buf_init(&error, SERVE_ERROR_MAX);
    int rc = http_listen_tcp(config_text(attach->config, "listen"), &probe, &error);
    if (rc == NG_OK) {
        (void)close(probe.fd);
    } else {
        command_error("%s", buf_cstr(&error));
    }
    buf_done(&error);
    return command_exit_code(rc);
}

static void serve_warn_root(void)
{
    if (geteuid() == 0) {
        log_write(NG_LOG_WARNING, "serve",
                  "this gateway runs as root, and so do its tools and kernels: set another "
                  "user with --user NAME (or `user` in the configuration)");
    }
}

static int serve_start(struct serve *serve, struct config **config, int64_t wait_ms,
                       struct buf *error)
{
    orphans_begin(&serve->orphans);
    int rc = gateway_open(*config, GATEWAY_FULL, wait_ms, &serve->gateway, error);
    orphans_end(&serve->orphans);
    if (rc != NG_OK) {
        return rc;
    }
    *config = NULL;
    serve->gateway->serves_root = serve->dropped;
    reload_fit_files(serve->gateway);
    rc = reload_new(serve->gateway, &serve->input, &serve->reload);
    if (rc == NG_OK) {
        rc = http_server_start(serve->gateway, routes_all(), &serve->server, error);
    }
    if (rc == NG_OK) {
        reload_attach(serve->reload, serve->server);
        gateway_tell_start(serve->gateway);
    } else {
        gateway_close(serve->gateway);
        serve->gateway = NULL;
    }
    return rc;
}

int command_serve(struct command_line *line)
{
    struct serve serve = {
        .input = {.file = line->config_file,
                  .environ = environ,
                  .sets = line->sets,
                  .set_count = line->set_count},
    };
    struct attach attach;
    struct buf error;
    bool running = false;
    /* Before the first thread: all threads inherit the mask, so that only this thread gets the
     * signals. */
    serve_signals(&serve.signals);
    (void)pthread_sigmask(SIG_BLOCK, &serve.signals, NULL);
    /* A program that loses its parents stays below us, where it is known for one of ours. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (attach_find(line, &attach, &running) != COMMAND_OK) {
        return COMMAND_FAILED;
    }
    if (serve_keep_input(line, &serve.input, attach.config) != COMMAND_OK ||
        serve_probe(&attach) != COMMAND_OK || serve_settle(&serve, &attach) != COMMAND_OK) {
        attach_done(&attach);
        return COMMAND_FAILED;
    }
    buf_init(&error, SERVE_ERROR_MAX);
    /* From here on a slow reader of stderr blocks no thread. */
    (void)log_queue_start();
    /* Another gateway will not go away by itself; another command will. */
    int rc = serve_start(&serve, &attach.config, running ? 0 : COMMAND_WAIT_MS, &error);
    if (rc != NG_OK) {
        command_error("%s", buf_cstr(&error));
    }
    buf_done(&error);
    attach_done(&attach);
    if (rc != NG_OK) {
        reload_free(serve.reload);
        log_queue_stop();
        return COMMAND_FAILED;
    }
    serve_log_configuration(serve.gateway->config);
    serve_warn_root();
    disk_look(serve.gateway->disk); /* from then on upkeep does */
    disk_look_roots(serve.gateway->disk);
    printf("notegate %s listening on %s://%s\n", build_version(),
           http_server_scheme(serve.server), http_server_address(serve.server));
    if (command_flush(stdout) != NG_OK) {
        log_write(NG_LOG_WARNING, "serve", "cannot write to the standard output");
        clearerr(stdout);
    }
    serve_tell_runners(&serve);
    serve_print_example(&serve);
    serve_notify("READY=1");
    serve_guard_files(&serve);
    (void)serve_wait(&serve, INT64_MAX);
    serve_stop(&serve);
    reload_free(serve.reload);
    log_queue_stop();
    return COMMAND_OK;
}
