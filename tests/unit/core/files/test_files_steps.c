/* SPDX-License-Identifier: MIT */
/* test_files_steps.c - the process dies before every single step that a change of a file takes
 * on disk, sqlite's own among them, or the disk refuses that step: what is found afterwards is
 * the state before or the one after. */
#include "test_files_steps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files/files_state.h"

#define STEPS_MAX 200 /* more than any change takes */
#define STEPS_MIN 5   /* an intent, a file and a completion have more */
#define TEXT_SIZE 4096
#define SECTOR 512 /* a write that a kill cuts off ends between two of them */

/* ---- the steps: these stand before libc's own, also for the modules */

static atomic_int steps_left; /* 0: not counted */
static atomic_bool apart;     /* f and g are as if on two file systems */
static atomic_bool mounted;   /* f is as if a mount of its own */

static atomic_bool refuses; /* the last step fails, and the process lives on */

static bool is_last(void)
{
    return atomic_load(&steps_left) > 0 && atomic_fetch_sub(&steps_left, 1) == 1;
}

/* True: the step is to fail. */
static bool step(void)
{
    if (!is_last()) {
        return false;
    }
    if (!atomic_load(&refuses)) {
        (void)kill(getpid(), SIGKILL);
    }
    errno = EIO;
    return true;
}

static bool is_temp(const char *name)
{
    return strncmp(name, FILES_TEMP_PREFIX, strlen(FILES_TEMP_PREFIX)) == 0;
}

#pragma GCC visibility push(default)
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's are reserved */

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
    if (step()) {
        return -1;
    }
    if (atomic_load(&apart) && !is_temp(from) && !is_temp(to)) {
        errno = EXDEV;
        return -1;
    }
    if (atomic_load(&mounted) && (!is_temp(from) || (flags & RENAME_NOREPLACE) == 0)) {
        errno = EBUSY;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (step()) {
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int unlinkat(int dir, const char *name, int flags)
{
    if (!atomic_load(&refuses)) { /* else the temporary file stays, rightly */
        (void)step();
    }
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    if (step()) {
        return -1;
    }
    return (int)syscall(SYS_mkdirat, dir, name, mode);
}

int fchmod(int fd, mode_t mode)
{
    if (step()) {
        return -1;
    }
    return (int)syscall(SYS_fchmod, fd, mode);
}

int fsync(int fd)
{
    if (step()) {
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    if (step()) {
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

int ftruncate64(int fd, off64_t len)
{
    if (step()) {
        return -1;
    }
    return (int)syscall(SYS_ftruncate, fd, len);
}

ssize_t write(int fd, const void *data, size_t len)
{
    if (is_last()) { /* amid it */
        (void)syscall(SYS_write, fd, data, len / 2 / SECTOR * SECTOR);
        if (!atomic_load(&refuses)) {
            (void)kill(getpid(), SIGKILL);
        }
        errno = EIO;
        return -1;
    }
    return syscall(SYS_write, fd, data, len);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    if (step()) {
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, len, at);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
#pragma GCC visibility pop

/* ---- one change */

/* f lies in folders that the change makes. */
static void path_of(const struct harness *harness, int round, char which, char *ret)
{
    char folder = which == 'i' ? 'g' : which;
    if (which == 'F' || which == 'G') {
        (void)snprintf(ret, PATH_SIZE, "%s/files/%d/%c", harness->dir, round,
                       which - 'F' + 'f');
    } else {
        (void)snprintf(ret, PATH_SIZE, "%s/files/%d/%c/%c", harness->dir, round, folder,
                       which == 'i' ? 'f' : which);
    }
}

/* A recovered change has these names, too. */
static struct answer call_as_ada(struct harness *harness, const char *tool, const char *args)
{
    struct call *call = call_new(harness->gateway);
    (void)call_set_caller(call, ng_str_of("ada"), ng_str_of(NULL), NG_ROLE_ADMIN, NG_MODE_AGENT,
                          true);
    call->caller.request_id = ng_str_of("request-1");
    call_set_run(call, ng_str_of("run-1"));
    return harness_run(call, tool, args);
}

static struct answer run_group(struct harness *harness, int round, char on)
{
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    char f[PATH_SIZE];
    char h[PATH_SIZE];
    char args[5 * PATH_SIZE];
    path_of(harness, round, on, from);
    path_of(harness, round, on == 'f' ? 'g' : 'G', to);
    path_of(harness, round, 'f', f);
    path_of(harness, round, 'h', h);
    (void)snprintf(args, sizeof(args),
                   "{\"from\":\"%s\",\"to\":\"%s\",\"edits\":[\"%s\",\"%s\"],\"find\":\"o\","
                   "\"put\":\"00\"}",
                   from, to, f, h);
    return call_as_ada(harness, "group_move", args);
}

static struct answer run(struct harness *harness, int round, const struct command *command)
{
    char path[PATH_SIZE];
    char other[PATH_SIZE];
    char members[2 * PATH_SIZE];
    char args[4 * PATH_SIZE];
    if (command->args == NULL) {
        return run_group(harness, round, command->on);
    }
    path_of(harness, round, command->on, path);
    path_of(harness, round, command->on == 'f' ? 'g' : 'f', other);
    const char *hole = strstr(command->args, "%s");
    if (hole == NULL) {
        (void)snprintf(members, sizeof(members), "%s", command->args);
    } else {
        (void)snprintf(members, sizeof(members), "%.*s%s%s", (int)(hole - command->args),
                       command->args, other, hole + 2);
    }
    (void)snprintf(args, sizeof(args), "{\"path\":\"%s\",%s}", path, members);
    return call_as_ada(harness, "fileEditor", args);
}

/* Its second name lies beside the folder of f. */
static void second_name(const struct harness *harness, int round, char *ret)
{
    (void)snprintf(ret, PATH_SIZE, "%s/files/%d/second", harness->dir, round);
}

static bool link_f(const struct harness *harness, int round)
{
    char path[PATH_SIZE];
    char second[PATH_SIZE];
    path_of(harness, round, 'f', path);
    second_name(harness, round, second);
    return link(path, second) == 0;
}

/* ---- one round */

#define CHILD_REFUSED 5

static void child(struct harness *harness, const struct scene *scene, int round, int steps,
                  int report)
{
    open_gateway(harness);
    add_group_tools(harness);
    atomic_store(&apart, scene->apart);
    atomic_store(&mounted, scene->mounted);
    for (size_t i = 0; i < NG_COUNT(scene->before); i++) {
        if (scene->before[i].on != 0) {
            struct answer answer = run(harness, round, &scene->before[i]);
            if (answer.rc != NG_OK) {
                (void)fprintf(stderr, "%s: %s\n", scene->name, answer.message);
                _exit(2);
            }
            answer_free(&answer);
        }
    }
    if (scene->linked && !link_f(harness, round)) {
        _exit(4);
    }
    atomic_store(&refuses, scene->refused);
    atomic_store(&steps_left, steps);
    struct answer answer = run(harness, round, &scene->change);
    bool reached = atomic_exchange(&steps_left, 0) > 0;
    if (answer.rc != NG_OK) {
        _exit(scene->refused ? CHILD_REFUSED : 3);
    }
    bool told = write(report, "x", 1) == 1;
    if (told && scene->refused && !reached) {
        _exit(CHILD_REFUSED); /* the step failed, and did not matter */
    }
    _exit(told ? 0 : 3);
}

/* Runs the scene in a child that dies before step `steps`. true: it came to its end instead. */
static bool play(struct harness *harness, const struct scene *scene, int round, int steps,
                 bool *ret_told)
{
    int pipes[2];
    int status = 0;
    char byte = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(harness, scene, round, steps, pipes[1]);
    }
    (void)close(pipes[1]);
    *ret_told = read(pipes[0], &byte, 1) == 1;
    (void)close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_REFUSED) {
        return false;
    }
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return true;
    }
    assert_int_equal(WTERMSIG(status), SIGKILL);
    return false;
}

static bool has_text(const char *path, const char *text)
{
    char there[TEXT_SIZE] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return text == NULL;
    }
    ssize_t len = read(fd, there, sizeof(there) - 1);
    (void)close(fd);
    return text != NULL && len >= 0 && strcmp(there, text) == 0;
}

static bool holds(const struct harness *harness, int round, char which, const char *text)
{
    char path[PATH_SIZE];
    path_of(harness, round, which, path);
    return has_text(path, text);
}

static bool second_holds(const struct harness *harness, int round, const char *text)
{
    char path[PATH_SIZE];
    second_name(harness, round, path);
    return has_text(path, text);
}

static bool is_in(const struct harness *harness, int round, const struct state *state)
{
    return holds(harness, round, 'f', state->f) && holds(harness, round, 'g', state->g) &&
           holds(harness, round, 'h', state->h) && holds(harness, round, 'i', state->i);
}

static void expect_no_temps(const struct harness *harness, int round)
{
    for (const char *which = "fghi"; *which != '\0'; which++) {
        char path[PATH_SIZE];
        path_of(harness, round, *which, path);
        *strrchr(path, '/') = '\0';
        DIR *dir = opendir(path);
        for (const struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
             entry = readdir(dir)) {
            assert_false(is_temp(entry->d_name));
        }
        if (dir != NULL) {
            (void)closedir(dir);
        }
    }
}

static int count_row(void *user, const struct ng_doc *row)
{
    (void)row;
    ++*(size_t *)user;
    return 0;
}

static void expect_no_intents(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    size_t count = 0;
    uint64_t total = 0;
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(FILES_INTENTS),
        .space = ng_str_of(FILES_INTENT_SPACE),
        .limit = 1000,
    };
    call->may_block = true;
    assert_int_equal(
        store_query(harness->gateway->store, call, &query, count_row, &count, &total), NG_OK);
    assert_int_equal(count, 0);
    call_unref(call);
}

/* ---- versions */

#define LIST_SIZE ((size_t)64 * 1024)

/* Those of all files in a state, as the first round that ended in it has left them. */
struct versions {
    char *was, *is;
};

/* As text; free() it. Each file's newest version is as the file. */
static char *list_versions(struct harness *harness, const struct scene *scene, int round,
                           int steps)
{
    struct buf out;
    char prefix[PATH_SIZE];
    buf_init(&out, LIST_SIZE);
    (void)snprintf(prefix, sizeof(prefix), "%s/files/%d/", harness->dir, round);
    for (const char *which = "fghi"; *which != '\0'; which++) {
        char path[PATH_SIZE];
        path_of(harness, round, *which, path);
        (void)buf_printf(&out, "%c:\n", *which);
        versions_print(harness, path, prefix, &out);
        if (!versions_end_with(harness, path)) {
            fail_msg("%s, killed before step %d: %c is not as its newest version:\n%s",
                     scene->name, steps, *which, buf_cstr(&out));
        }
    }
    char *list = strdup(buf_cstr(&out));
    assert_non_null(list);
    buf_done(&out);
    return list;
}

/* The versions are those of the state, whatever the step was. */
static void check_versions(struct harness *harness, const struct scene *scene, int round,
                           int steps, char **inout_first)
{
    char *list = list_versions(harness, scene, round, steps);
    if (*inout_first == NULL) {
        *inout_first = list;
        return;
    }
    if (strcmp(*inout_first, list) != 0) {
        fail_msg("%s, killed before step %d, has these versions:\n%s\nothers have:\n%s",
                 scene->name, steps, list, *inout_first);
    }
    free(list);
}

/* ---- all steps */

/* After the restart: one of the two states, whole, with the history that belongs to it. */
static void check(struct harness *harness, const struct scene *scene, int round, int steps,
                  bool told, struct versions *versions)
{
    bool is = is_in(harness, round, &scene->is);
    bool was = is_in(harness, round, &scene->was);
    if (is == was || (told && !is)) {
        fail_msg("%s, killed before step %d: %s", scene->name, steps,
                 told ? "told of, and lost" : "neither the state before nor the one after");
    }
    if (scene->linked && !second_holds(harness, round, is ? scene->is.f : scene->was.f)) {
        fail_msg("%s, killed before step %d: the two names differ", scene->name, steps);
    }
    expect_no_temps(harness, round);
    expect_no_intents(harness);
    check_versions(harness, scene, round, steps, is ? &versions->is : &versions->was);
    const struct state *state = is ? &scene->is : &scene->was;
    const struct state *undone = is ? &scene->undone_is : &scene->undone_was;
    struct command undo = {state->g != NULL ? 'g' : 'f', UNDO};
    if (state->i != NULL) {
        undo.on = 'G';
    }
    if (state->f != NULL || state->g != NULL || state->i != NULL) {
        struct answer answer = run(harness, round, &undo);
        if (answer.rc != NG_OK || !is_in(harness, round, undone)) {
            fail_msg("%s, killed before step %d: the undo of the state %s: %s", scene->name,
                     steps, is ? "after" : "before", answer.message);
        }
        answer_free(&answer);
        free(list_versions(harness, scene, round, steps));
    }
}

static void test_every_step(void **state)
{
    const struct scene *scene = *state;
    struct harness harness;
    struct versions versions = {NULL, NULL};
    bool ended = false;
    int steps = 0;
    harness_open(&harness, sets);
    close_gateway(&harness);
    while (!ended) {
        bool told = false;
        assert_true(++steps < STEPS_MAX);
        ended = play(&harness, scene, steps, steps, &told);
        assert_true(!ended || told);
        open_gateway(&harness);
        check(&harness, scene, steps, steps, told, &versions);
        close_gateway(&harness);
    }
    if (steps <= STEPS_MIN) {
        fail_msg("%s took only %d steps", scene->name, steps);
    }
    if (versions.is == NULL || strstr(versions.is, "ada run-1 request-1") == NULL) {
        fail_msg("%s: the versions are not by the caller:\n%s", scene->name, versions.is);
    }
    free(versions.was);
    free(versions.is);
    open_gateway(&harness);
    harness_close(&harness);
}

static int run_scene(const struct scene *scene)
{
    const struct CMUnitTest tests[] = {
        {scene->name, test_every_step, NULL, NULL, (void *)(uintptr_t)scene}};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Each scene in a process of its own, all at once: most of the time they wait for the disk. */
int main(void)
{
    pid_t pids[NG_COUNT(scenes)];
    bool failed = false;
    for (size_t i = 0; i < NG_COUNT(scenes); i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            return run_scene(&scenes[i]);
        }
        failed = failed || pids[i] < 0;
    }
    for (size_t i = 0; i < NG_COUNT(scenes); i++) {
        int status = 0;
        failed =
            failed || pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || status != 0;
    }
    return failed ? 1 : 0;
}
