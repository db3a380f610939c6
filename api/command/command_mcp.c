/* SPDX-License-Identifier: MIT */
/*
 * command_mcp.c - notegate mcp: MCP on stdin and stdout, here or through the running gateway.
 *
 * The first one on a data directory opens the gateway and serves its Unix socket for the others
 * and for the command line, until its own client ends it. It does not wait for others then:
 * their calls end, and one of their processes opens the gateway in its place and serves the
 * rest, while its own client stays in its session (mcp_relay.h).
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/base/orphans.h"
#include "api/client/attach.h"
#include "api/client/mcp_relay.h"
#include "api/http/http_transport.h"
#include "api/ops/reload.h"
#include "api/serve/mcp_methods.h"
#include "api/serve/routes.h"
#include "api/tasks/mcp_tasks.h"
#include "api/transport/mcp_stdio.h"
#include "commands.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/log_queue.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/gateway/gateway_open.h"

/* Room for what went wrong at the start. */
#define MCP_ERROR_MAX 4096
/* After shutdown_timeout: how long the end may take where a call of another client hangs. */
#define MCP_GRACE_S 10

struct mcp_command {
    struct command_line *line;
    struct attach attach;
    struct http_server *server; /* of the gateway's socket; NULL: not of this process */
    struct orphans orphans;
    char run[RUN_ID_SESSION_SIZE]; /* of this process, for calls that have none nearer */
    int64_t looked_ms;
    bool failed; /* this process cannot have the gateway */
};

/* The caller, as the command line names it. */
static void mcp_caller(const struct mcp_command *mcp, struct auth_caller *ret)
{
    const struct command_line *line = mcp->line;
    memset(ret, 0, sizeof(*ret));
    ret->run_id = ng_str_of(line->run_id);
    ret->process_run = ng_str_of(mcp->run);
    ret->agent = ng_str_of(text_or(line->agent, "local"));
    ret->space = ng_str_of(line->space);
    ret->client = ng_str_of(CLIENT_NAME); /* until its own client says its name */
    ret->role = NG_ROLE_ADMIN;
    ret->run = true; /* the owner, as on the Unix socket */
    ret->all_spaces = true;
    (void)attach_parse_mode(line->mode, &ret->mode); /* the command line was checked */
}

/* A descriptor that becomes readable with SIGTERM, SIGINT or SIGHUP: they end it as the end of
 * input does. */
static int mcp_stop_fd(void)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- the gateway of this process ---- */

/* Others find it at the socket from now on. A folder that can hold no socket leaves it alone
 * with its client. */
static int mcp_share(struct mcp_command *mcp, struct buf *error)
{
    struct gateway *gateway = mcp->attach.gateway;
    reload_fit_files(gateway);
    int rc = http_server_start_local(gateway, routes_all(), &mcp->server, error);
    if (rc != NG_OK && rc != NG_EINTERNAL) {
        log_write(NG_LOG_WARNING, "mcp", "no other client can use this gateway: %s",
                  buf_cstr(error));
        buf_clear(error);
        rc = mcp_tasks_open(gateway, error);
    }
    return rc;
}

static int mcp_open(struct mcp_command *mcp)
{
    struct buf error;
    /* A program that loses its parents stays below us, where it is known for one of ours. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    orphans_begin(&mcp->orphans);
    int rc = attach_open(mcp->line, &mcp->attach);
    orphans_end(&mcp->orphans);
    /* The client need not read the log. */
    (void)log_queue_start();
    if (rc != COMMAND_OK || mcp->attach.gateway == NULL) {
        return rc;
    }
    buf_init(&error, MCP_ERROR_MAX);
    rc = mcp_share(mcp, &error);
    if (rc != NG_OK) {
        command_error("%s", buf_cstr(&error));
        attach_done(&mcp->attach);
    }
    buf_done(&error);
    return command_exit_code(rc);
}

/* The gateway of another process is gone: this one opens its own, which the relay then reaches
 * by the socket as before. */
static int mcp_take_over(void *user)
{
    struct mcp_command *mcp = user;
    struct attach *attach = &mcp->attach;
    struct buf error;
    if (attach->gateway != NULL) {
        return mcp->server != NULL ? NG_OK : NG_EUNAVAILABLE;
    }
    if (mcp->failed || attach_check_owner(attach) != COMMAND_OK) {
        return NG_EUNAVAILABLE;
    }
    buf_init(&error, MCP_ERROR_MAX);
    orphans_begin(&mcp->orphans);
    int rc = attach_try(attach, &error);
    orphans_end(&mcp->orphans);
    if (rc == NG_OK && attach->gateway != NULL) {
        (void)mcp_share(mcp, &error);
        mcp->failed = mcp->server == NULL; /* the relay has no other way to it */
    }
    if (mcp->failed) {
        gateway_close(attach->gateway);
        attach->gateway = NULL;
        rc = NG_EUNAVAILABLE;
    } else if (attach->gateway != NULL) {
        log_write(NG_LOG_INFO, "mcp", "the gateway of %s ended: this process opened its own",
                  attach->data_dir);
    }
    if (rc != NG_OK && rc != NG_EBUSY && error.len > 0) {
        command_error("%s", buf_cstr(&error));
    }
    buf_done(&error);
    return rc;
}

/* As `serve` does while it waits. */
static void mcp_look(void *user)
{
    struct mcp_command *mcp = user;
    int64_t now = clock_monotonic_ns() / 1000000;
    if (mcp->attach.gateway != NULL && now >= mcp->looked_ms + ORPHANS_LOOK_MS) {
        mcp->looked_ms = now;
        (void)orphans_reap(&mcp->orphans);
        if (mcp->server != NULL) {
            http_server_look(mcp->server);
        }
    }
}

static void mcp_give_up(int signal_number)
{
    static const char text[] = "notegate: calls of other clients did not end and were "
                               "interrupted; every acknowledged write is kept\n";
    (void)signal_number;
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(COMMAND_OK);
}

/* Calls of others have shutdown_timeout to end. */
static void mcp_close(struct mcp_command *mcp)
{
    struct gateway *gateway = mcp->attach.gateway;
    if (mcp->server != NULL) {
        int64_t wait_ms = config_int(gateway->config, "shutdown_timeout");
        (void)signal(SIGALRM, mcp_give_up);
        (void)alarm((unsigned)(wait_ms / 1000) + MCP_GRACE_S);
        http_server_stop(mcp->server, wait_ms);
    } else if (gateway != NULL) {
        mcp_tasks_stop(gateway, true); /* no client is left to ask for them */
    }
    attach_done(&mcp->attach);
    (void)alarm(0);
}

/* The standard output is the protocol's alone: what a module prints goes to the standard error.
 * -1: no descriptor is left. */
static int mcp_take_stdout(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        (void)close(fd);
        fd = -1;
    }
    if (fd < 0) {
        command_error(
            "the standard output cannot be used: it is closed, or too many files are open");
    }
    return fd;
}

int command_mcp(struct command_line *line)
{
    struct mcp_command mcp = {.line = line};
    struct auth_caller caller;
    run_id_make(mcp.run);
    mcp_caller(&mcp, &caller);
    int out_fd = mcp_take_stdout();
    if (out_fd < 0) {
        return COMMAND_FAILED;
    }
    int stop_fd = mcp_stop_fd();
    int rc = mcp_open(&mcp);
    if (rc == COMMAND_OK && mcp.attach.gateway != NULL) {
        const struct mcp_stdio stdio = {.gateway = mcp.attach.gateway,
                                        .methods = mcp_methods_all(),
                                        .in_fd = STDIN_FILENO,
                                        .out_fd = out_fd,
                                        .stop_fd = stop_fd,
                                        .caller = &caller,
                                        .is_shared = mcp.server != NULL,
                                        .look = mcp_look,
                                        .look_user = &mcp};
        rc = command_exit_code(mcp_stdio_run(&stdio));
        if (rc != COMMAND_OK) {
            command_error("out of memory or threads for MCP on stdin and stdout");
        }
        mcp_close(&mcp);
    } else if (rc == COMMAND_OK) {
        const struct mcp_relay_host host = {.out_fd = out_fd,
                                            .stop_fd = stop_fd,
                                            .run = mcp.run,
                                            .take_over = mcp_take_over,
                                            .look = mcp_look,
                                            .user = &mcp};
        rc = mcp_relay_run(line, &mcp.attach, &host);
        mcp_close(&mcp);
    }
    if (stop_fd >= 0) {
        (void)close(stop_fd);
    }
    (void)close(out_fd);
    log_queue_stop();
    return rc;
}
