/* SPDX-License-Identifier: MIT */
/* history_out.c - colours, pager, stdout. */
#include "history_out.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/files/fd_io.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Without less the output is not lost. */
#define OUT_PAGER "if command -v less >/dev/null; then exec less -FRX; else exec cat; fi"
/* A pager that is less shows colours, and ends where one screen holds all, as git's. */
#define OUT_SHELL "LESS=${LESS-FRX} LV=${LV--c}; export LESS LV; %s"
#define OUT_SHELL_MAX ((size_t)64 * 1024)
/* Exit codes of a shell that cannot run a command. */
#define OUT_NOT_RUN 126

/* ---- what is wanted ---- */

static const char *out_pager(void)
{
    static const char *const names[] = {"NOTEGATE_PAGER", "PAGER"};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        const char *pager = getenv(names[i]);
        if (pager != NULL && (pager[0] == '\0' || strcmp(pager, "cat") == 0)) {
            return NULL;
        }
        if (pager != NULL) {
            return pager;
        }
    }
    return OUT_PAGER;
}

int history_out_begin(const struct command_line *line, struct history_out *ret)
{
    struct ng_str color = ng_str_of(text_or(line->find.color, "auto"));
    *ret = (struct history_out){.state = HISTORY_OUT_NEW, .fd = -1};
    if (!str_in_words(color, "auto always never")) {
        return command_usage(line, "--color is \"%s\", it must be auto, always or never",
                             line->find.color);
    }
    ret->is_terminal = isatty(STDOUT_FILENO) == 1;
    ret->style.is_coloured =
        str_is(color, "always") || (str_is(color, "auto") && command_colours(stdout));
    ret->style.is_escaped = ret->is_terminal || ret->style.is_coloured;
    if (ret->is_terminal && !line_has(line, LINE_NO_PAGER)) {
        ret->pager = out_pager();
    }
    return COMMAND_OK;
}

/* ---- the pager ---- */

/* Signals that this process ignores, or ignores while the pager runs. */
static void out_default_signals(sigset_t *ret)
{
    (void)sigemptyset(ret);
    (void)sigaddset(ret, SIGPIPE);
    (void)sigaddset(ret, SIGXFSZ);
    (void)sigaddset(ret, SIGINT);
    (void)sigaddset(ret, SIGQUIT);
}

static int out_spawn(pid_t *ret_child, const char *command, int input)
{
    char shell[] = "sh";
    char option[] = "-c";
    char *words[] = {shell, option, NULL, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    words[2] = str_dup(ng_str_of(command));
    if (words[2] == NULL || posix_spawn_file_actions_init(&actions) != 0) {
        free(words[2]);
        return ENOMEM;
    }
    int rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        out_default_signals(&defaults);
        (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        rc = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        if (rc == 0) {
            rc = posix_spawnp(ret_child, shell, &actions, &attributes, words, environ);
        }
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    free(words[2]);
    return rc;
}

/* A pager that does not start leaves the output on stdout. */
static bool out_start(struct history_out *out)
{
    int ends[2];
    struct buf command;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    buf_init(&command, OUT_SHELL_MAX);
    (void)buf_printf(&command, OUT_SHELL, out->pager);
    int rc = command.rc == NG_OK ? out_spawn(&out->child, buf_cstr(&command), ends[0]) : ENOMEM;
    buf_done(&command);
    (void)close(ends[0]);
    if (rc != 0) {
        (void)close(ends[1]);
        return false;
    }
    out->fd = ends[1];
    /* The keys that send these are for the pager: its end is that of the output. */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    return true;
}

/* COMMAND_FAILED where the shell has not found it. */
static int out_wait(struct history_out *out, int code)
{
    int status = 0;
    (void)close(out->fd);
    out->fd = -1;
    while (waitpid(out->child, &status, 0) < 0 && errno == EINTR) {
    }
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    if (WIFEXITED(status) && WEXITSTATUS(status) >= OUT_NOT_RUN) {
        command_error("the pager \"%s\" does not run; --no-pager prints without one",
                      out->pager);
        return COMMAND_FAILED;
    }
    return code;
}

/* ---- output ---- */

bool history_out_put(struct history_out *out, struct buf *text)
{
    if (text->rc != NG_OK) {
        command_error("out of memory for the output");
        out->state = HISTORY_OUT_FAILED;
        return false;
    }
    if (out->state == HISTORY_OUT_NEW && text->len > 0) {
        bool paged = out->pager != NULL && out_start(out);
        out->state = paged ? HISTORY_OUT_PAGED : HISTORY_OUT_PLAIN;
    }
    if (out->state == HISTORY_OUT_PAGED && fd_put(out->fd, buf_str(text)) != NG_OK) {
        out->state = HISTORY_OUT_LEFT;
    }
    if (out->state == HISTORY_OUT_PLAIN &&
        (command_put(stdout, buf_str(text)) != NG_OK || command_flush(stdout) != NG_OK)) {
        out->state = HISTORY_OUT_FAILED;
    }
    buf_clear(text);
    return out->state < HISTORY_OUT_LEFT;
}

int history_out_end(struct history_out *out, int code)
{
    int rc = out->fd >= 0 ? out_wait(out, code) : command_end_output(code);
    if (out->state == HISTORY_OUT_FAILED && rc == COMMAND_OK) {
        rc = COMMAND_FAILED;
    }
    return rc;
}
