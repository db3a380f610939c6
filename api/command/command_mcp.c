/* SPDX-License-Identifier: MIT */
/* command_mcp.c - notegate mcp: MCP on stdin and stdout, here or through the running gateway.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/client/attach.h"
#include "api/client/mcp_relay.h"
#include "api/serve/mcp_methods.h"
#include "api/tasks/mcp_tasks.h"
#include "api/transport/mcp_stdio.h"
#include "commands.h"
#include "core/base/log_queue.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Room for what went wrong at the start. */
#define MCP_ERROR_MAX 4096

/* The caller, as the command line names it. */
static void mcp_caller(const struct command_line *line, struct auth_caller *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->agent = ng_str_of(text_or(line->agent, "local"));
    ret->space = ng_str_of(line->space);
    ret->client = ng_str_of(CLIENT_NAME); /* until its own client says its name */
    ret->role = NG_ROLE_ADMIN;
    ret->all_spaces = true;                          /* the owner, as on the Unix socket */
    (void)attach_parse_mode(line->mode, &ret->mode); /* the command line was checked */
}

/* A descriptor that becomes readable with SIGTERM or SIGINT: they end it as the end of input
 * does. */
static int mcp_stop_fd(void)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int mcp_open_tasks(struct gateway *gateway)
{
    struct buf error;
    buf_init(&error, MCP_ERROR_MAX);
    int rc = mcp_tasks_open(gateway, &error);
    if (rc != NG_OK) {
        command_error("%s", buf_cstr(&error));
    }
    buf_done(&error);
    return command_exit_code(rc);
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
    struct auth_caller caller;
    struct attach attach;
    mcp_caller(line, &caller);
    int out_fd = mcp_take_stdout();
    if (out_fd < 0) {
        return COMMAND_FAILED;
    }
    int stop_fd = mcp_stop_fd();
    int rc = attach_open(line, &attach);
    /* The client need not read the log. */
    (void)log_queue_start();
    if (rc == COMMAND_OK && attach.gateway != NULL &&
        mcp_open_tasks(attach.gateway) != COMMAND_OK) {
        attach_done(&attach);
        rc = COMMAND_FAILED;
    }
    if (rc == COMMAND_OK && attach.gateway != NULL) {
        struct mcp_stdio stdio = {attach.gateway, mcp_methods_all(), STDIN_FILENO,
                                  out_fd,         stop_fd,           &caller};
        rc = command_exit_code(mcp_stdio_run(&stdio));
        if (rc != COMMAND_OK) {
            command_error("out of memory or threads for MCP on stdin and stdout");
            mcp_tasks_stop(attach.gateway, true);
            attach_done(&attach);
        }
    } else if (rc == COMMAND_OK) {
        rc = mcp_relay_run(line, &attach, out_fd, stop_fd);
    }
    if (rc == COMMAND_OK) {
        if (attach.gateway != NULL) {
            mcp_tasks_stop(attach.gateway, true); /* no client is left to ask for them */
        }
        attach_done(&attach);
    }
    if (stop_fd >= 0) {
        (void)close(stop_fd);
    }
    (void)close(out_fd);
    log_queue_stop();
    return rc;
}
