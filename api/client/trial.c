/* SPDX-License-Identifier: MIT */
/* trial.c - runs work in a child process with a temporary data directory. In a process of its
 * own: a module that crashes leaves no data directory behind. */
#include "trial.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text_choice.h"

#define TRIAL_PATH_MAX 4096
/* Folders that are open at a time while the data directory is removed. */
#define TRIAL_FOLDERS 16
#define TRIAL_TEXT_MAX ((size_t)64 * 1024)
/* Exit code of the child if its work was done: a plugin that calls exit(0) has not passed. */
#define TRIAL_PASSED 100

static int trial_remove_one(const char *path, const struct stat *info, int kind,
                            struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

/* Waits for the child. A signal that would end this process ends the child: then the folder is
 * removed all the same. */
static int trial_wait(pid_t child, const sigset_t *signals)
{
    int status = 0;
    bool stopped = false;
    while (waitpid(child, &status, WNOHANG) != child) {
        int number = sigwaitinfo(signals, NULL);
        if (number > 0 && number != SIGCHLD) {
            stopped = true;
            (void)kill(child, SIGKILL);
        }
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == TRIAL_PASSED) {
        return COMMAND_OK;
    }
    if (stopped) {
        command_error("stopped by a signal");
    } else if (code < 0) {
        command_error("the plugin ended the gateway with signal %d", WTERMSIG(status));
    } else if (code != COMMAND_FAILED) {
        command_error("the plugin ended the gateway with exit code %d", code);
    }
    return COMMAND_FAILED;
}

static int trial_start(int (*work)(void *user, const char *dir), void *user, const char *dir,
                       const sigset_t *before, const sigset_t *signals)
{
    (void)command_flush(stdout);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)pthread_sigmask(SIG_SETMASK, before, NULL);
        int code = getppid() == parent ? command_end_output(work(user, dir)) : COMMAND_FAILED;
        _exit(code == COMMAND_OK ? TRIAL_PASSED : COMMAND_FAILED);
    }
    if (child < 0) {
        command_error("no process can be started: %s", text_errno(errno));
        return COMMAND_FAILED;
    }
    return trial_wait(child, signals);
}

static int trial_in(const char *base, const char *name,
                    int (*work)(void *user, const char *dir), void *user,
                    const sigset_t *before, const sigset_t *signals)
{
    char dir[TRIAL_PATH_MAX];
    int len = snprintf(dir, sizeof(dir), "%s/%s-XXXXXX", base, name);
    if (len < 0 || (size_t)len >= sizeof(dir) || mkdtemp(dir) == NULL) {
        command_error("no folder can be made in %s: %s", base, text_errno(errno));
        return COMMAND_FAILED;
    }
    int code = trial_start(work, user, dir, before, signals);
    if (nftw(dir, trial_remove_one, TRIAL_FOLDERS, FTW_DEPTH | FTW_PHYS) != 0) {
        command_error("%s cannot be removed: %s", dir, text_errno(errno));
        return COMMAND_FAILED;
    }
    return code;
}

int trial_run(const char *name, int (*work)(void *user, const char *dir), void *user)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};
    sigset_t signals;
    sigset_t before;
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < NG_COUNT(ends); i++) {
        (void)sigaddset(&signals, ends[i]);
    }
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] == '\0') {
        base = "/tmp";
    }
    (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would take the child's status */
    (void)pthread_sigmask(SIG_BLOCK, &signals, &before);
    int code = trial_in(base, name, work, user, &before, &signals);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* the folder is gone */
    return code;
}

void trial_tell(struct buf *text, const char *dir, const char *real)
{
    const char *at = strstr(buf_cstr(text), dir);
    struct buf told;
    if (at == NULL || dir[0] == '\0' || strcmp(dir, real) == 0) {
        return;
    }
    buf_init(&told, TRIAL_TEXT_MAX);
    (void)buf_printf(&told, "%.*s%s%s", (int)(at - buf_cstr(text)), buf_cstr(text), real,
                     at + strlen(dir));
    buf_clear(text);
    (void)buf_add_str(text, buf_str(&told));
    buf_done(&told);
}

int trial_config(struct command_line *line, const char *dir, bool alone, struct config **ret)
{
    const size_t own = line->set_count;
    struct ng_str data_dir = arena_printf(&line->arena, "data_dir=%s", dir);
    const char *sets[] = {data_dir.data, "documents=memory", "journal=documents"};
    if (data_dir.data == NULL || own + NG_COUNT(sets) > COMMAND_SETS_MAX) {
        command_error("too many options at --set, or out of memory");
        return COMMAND_FAILED;
    }
    for (size_t i = 0; i < (alone ? NG_COUNT(sets) : 1); i++) {
        line->sets[line->set_count++] = sets[i];
    }
    int rc = command_config(line, ret);
    line->set_count = own;
    return rc;
}
