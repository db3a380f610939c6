/* SPDX-License-Identifier: MIT */
/* command_test_plugin.c - notegate test-plugin: cases of a plugin in a gateway of their own. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cases/cases.h"
#include "api/client/trial.h"
#include "commands.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/config/config_log.h"
#include "core/gateway/gateway_open.h"

#define TEST_PLUGIN_ERROR_MAX ((size_t)64 * 1024)
/* At the end: for a call that was answered before its tool came back. */
#define TEST_PLUGIN_DRAIN_MS 5000

struct plugin_test {
    struct command_line *line;
    struct cases cases;
    FILE *out; /* the report */
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
static int test_plugin_configure(struct command_line *line, const char *dir,
                                 struct config **ret, struct buf *error)
{
    struct ng_str own[] = {
        arena_printf(&line->arena, "data_dir=%s", dir),
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
static int test_plugin_child(void *user, const char *dir)
{
    struct plugin_test *test = user;
    struct config *config = NULL;
    struct gateway *gateway = NULL;
    struct buf error;
    if (test_plugin_open_report(test) != NG_OK) {
        command_error("standard output cannot be used: %s", text_errno(errno));
        return COMMAND_FAILED;
    }
    buf_init(&error, TEST_PLUGIN_ERROR_MAX);
    int rc = test_plugin_configure(test->line, dir, &config, &error);
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
        rc = trial_run("notegate-test", test_plugin_child, &test);
    } else {
        command_error("%s", buf_cstr(&error));
        rc = read == NG_EINVAL ? COMMAND_USAGE : COMMAND_FAILED;
    }
    buf_done(&error);
    arena_done(&arena);
    return rc;
}
