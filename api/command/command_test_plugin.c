/* SPDX-License-Identifier: MIT */
/* command_test_plugin.c - notegate test-plugin: cases of a plugin in a gateway of their own. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cases/cases.h"
#include "commands.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/config/config_log.h"
#include "core/gateway/gateway_open.h"

#define TEST_PLUGIN_ERROR_MAX ((size_t)64 * 1024)
#define TEST_PLUGIN_PATH_MAX 4096
/* At the end: for a call that was answered before its tool came back. */
#define TEST_PLUGIN_DRAIN_MS 5000
/* Folders that are open at a time while the data directory is removed. */
#define TEST_PLUGIN_FOLDERS 16
/* Exit code of the child if all cases passed: a plugin that calls exit(0) has not passed. */
#define TEST_PLUGIN_PASSED 100

struct plugin_test {
    struct command_line *line;
    struct cases cases;
    FILE *out;                      /* the report */
    char dir[TEST_PLUGIN_PATH_MAX]; /* the data directory */
};

/* ---- the configuration ---- */

static bool test_plugin_sets(const char *set, const char *key)
{
    size_t len = strlen(key);
    return strncmp(set, key, len) == 0 && set[len] == '=';
}

/* `plugins` is the module behind the plugins that the command line names. */
static struct ng_str test_plugin_list(struct command_line *line)
{
    const char *module = line->words[0];
    const char *others = NULL;
    bool here = strchr(module, '/') == NULL && str_ends(ng_str_of(module), ".so") &&
                access(module, F_OK) == 0;
    for (size_t i = 0; i < line->set_count; i++) {
        if (test_plugin_sets(line->sets[i], "plugins")) {
            others = strchr(line->sets[i], '=') + 1;
        }
    }
    bool more = others != NULL && others[0] == '+';
    return arena_printf(&line->arena, "plugins=%s%s%s%s%s", text_or(others, ""),
                        text_if(others != NULL, ","), text_if(more, "+"), text_if(here, "./"),
                        module);
}

/* Neither file nor environment: the cases mean the same on each machine. */
static int test_plugin_configure(struct plugin_test *test, struct config **ret,
                                 struct buf *error)
{
    struct command_line *line = test->line;
    struct ng_str own[] = {
        arena_printf(&line->arena, "data_dir=%s", test->dir),
        test_plugin_list(line),
    };
    struct config_input input = {.no_file = true, .sets = line->sets};
    for (size_t i = 0; i < NG_COUNT(own); i++) {
        if (own[i].data == NULL) {
            (void)buf_add_c(error, "out of memory");
            return NG_EINTERNAL;
        }
        line->sets[line->set_count++] = own[i].data;
    }
    input.set_count = line->set_count;
    int rc = config_load(&input, ret, error);
    if (rc == NG_OK) {
        config_apply_log(*ret);
        if (!config_is_set(*ret, "log.level")) {
            log_set_level(NG_LOG_WARNING);
        }
    }
    return rc;
}

static int test_plugin_check_words(const struct command_line *line)
{
    if (line->set_count + 2 > COMMAND_SETS_MAX) {
        return command_usage(line, "too many options at --set");
    }
    for (size_t i = 0; i < line->set_count; i++) {
        if (test_plugin_sets(line->sets[i], "data_dir")) {
            return command_usage(line, "test-plugin has a temporary data directory; leave "
                                       "data_dir out");
        }
    }
    if (strchr(line->words[0], ',') != NULL) {
        return command_usage(line, "the path of the module, \"%s\", has a comma; rename it",
                             line->words[0]);
    }
    return COMMAND_OK;
}

/* ---- the cases ---- */

static int test_plugin_report(FILE *out, const struct plugin_case *one, int rc,
                              struct buf *actual)
{
    struct buf expected;
    if (rc == NG_OK) {
        (void)fprintf(out, "ok %.*s\n", (int)one->name.len, one->name.data);
    } else if (rc == NG_EFAILED) {
        buf_init(&expected, CASES_MEMORY_MAX);
        (void)json_print(&expected, one->expect);
        (void)fprintf(out, "FAILED %.*s\n  expected: %s\n  actual:   %s\n", (int)one->name.len,
                      one->name.data, buf_cstr(&expected), buf_cstr(actual));
        buf_done(&expected);
    } else {
        command_error("out of memory for the case \"%.*s\"", (int)one->name.len,
                      one->name.data);
    }
    /* A module may end the process in the next case. */
    (void)command_flush(out);
    return rc;
}

static int test_plugin_run(struct gateway *gateway, const struct plugin_test *test)
{
    const struct cases *cases = &test->cases;
    size_t failed = 0;
    for (size_t i = 0; i < cases->count; i++) {
        struct buf actual;
        buf_init(&actual, CASES_MEMORY_MAX);
        int rc = cases_run(gateway, &cases->list[i], &actual);
        rc = test_plugin_report(test->out, &cases->list[i], rc, &actual);
        buf_done(&actual);
        if (rc != NG_OK && rc != NG_EFAILED) {
            return COMMAND_FAILED;
        }
        failed += rc != NG_OK;
    }
    (void)fprintf(test->out, "%zu case%s, %zu failed\n", cases->count, plural(cases->count),
                  failed);
    return failed == 0 ? COMMAND_OK : COMMAND_FAILED;
}

/* Standard output is the report's alone: what a plugin prints goes to standard error. */
static int test_plugin_open_report(struct plugin_test *test)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    test->out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (test->out == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return NG_EFAILED;
    }
    return NG_OK;
}

/* The child: the whole gateway. enum command_exit. */
static int test_plugin_child(struct plugin_test *test)
{
    struct config *config = NULL;
    struct gateway *gateway = NULL;
    struct buf error;
    if (test_plugin_open_report(test) != NG_OK) {
        command_error("standard output cannot be used: %s", text_errno(errno));
        return COMMAND_FAILED;
    }
    buf_init(&error, TEST_PLUGIN_ERROR_MAX);
    int rc = test_plugin_configure(test, &config, &error);
    if (rc == NG_OK) {
        rc = gateway_open(config, GATEWAY_FULL, 0, &gateway, &error);
    }
    if (rc != NG_OK) {
        command_error("%s", buf_cstr(&error));
        return COMMAND_FAILED;
    }
    int code = test_plugin_run(gateway, test);
    if (!gateway_drain(gateway, TEST_PLUGIN_DRAIN_MS)) {
        command_error("a call that was answered still runs; its tool does not end");
        return COMMAND_FAILED;
    }
    gateway_close(gateway);
    buf_done(&error);
    return command_flush(test->out) == NG_OK ? code : COMMAND_FAILED;
}

/* ---- the process ---- */

static int test_plugin_remove_one(const char *path, const struct stat *info, int kind,
                                  struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

/* Waits for the child. A signal that would end this process ends the child: then the folder is
 * removed all the same. */
static int test_plugin_wait(pid_t child, const sigset_t *signals)
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
    if (code == TEST_PLUGIN_PASSED) {
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

/* In a process of its own: a module that crashes leaves no data directory behind. */
static int test_plugin_start(struct plugin_test *test)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};
    sigset_t signals;
    sigset_t before;
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < NG_COUNT(ends); i++) {
        (void)sigaddset(&signals, ends[i]);
    }
    (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would take the child's status */
    (void)pthread_sigmask(SIG_BLOCK, &signals, &before);
    (void)command_flush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        _exit(test_plugin_child(test) == COMMAND_OK ? TEST_PLUGIN_PASSED : COMMAND_FAILED);
    }
    if (child < 0) {
        command_error("no process can be started: %s", text_errno(errno));
        return COMMAND_FAILED;
    }
    return test_plugin_wait(child, &signals);
}

static int test_plugin_in_folder(struct plugin_test *test)
{
    const char *folder = text_or(getenv("TMPDIR"), "/tmp");
    int len = snprintf(test->dir, sizeof(test->dir), "%s/notegate-test-XXXXXX", folder);
    if (len < 0 || (size_t)len >= sizeof(test->dir) || mkdtemp(test->dir) == NULL) {
        command_error("no folder can be made in %s: %s", folder, text_errno(errno));
        return COMMAND_FAILED;
    }
    int rc = test_plugin_start(test);
    if (nftw(test->dir, test_plugin_remove_one, TEST_PLUGIN_FOLDERS, FTW_DEPTH | FTW_PHYS) !=
        0) {
        command_error("%s cannot be removed: %s", test->dir, text_errno(errno));
        return COMMAND_FAILED;
    }
    return rc;
}

int command_test_plugin(struct command_line *line)
{
    struct plugin_test test = {.line = line};
    struct arena arena;
    struct buf error;
    int rc = test_plugin_check_words(line);
    if (rc != COMMAND_OK) {
        return rc;
    }
    arena_init(&arena, CASES_MEMORY_MAX);
    buf_init(&error, TEST_PLUGIN_ERROR_MAX);
    int read = cases_read(&arena, line->words[1], &test.cases, &error);
    if (read == NG_OK) {
        rc = test_plugin_in_folder(&test);
    } else {
        command_error("%s", buf_cstr(&error));
        rc = read == NG_EINVAL ? COMMAND_USAGE : COMMAND_FAILED;
    }
    buf_done(&error);
    arena_done(&arena);
    return rc;
}
