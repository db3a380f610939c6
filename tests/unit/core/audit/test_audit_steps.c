/* SPDX-License-Identifier: MIT */
/* test_audit_steps.c - the process dies before every single step that the log takes on disk,
 * the power goes with it, or the disk refuses that step: no entry that was told to be durable
 * is lost, and the log is whole. */
#include "test_audit_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/str.h"

#define STEPS_MAX 600 /* more than any scene takes */
#define STEPS_MIN 20
#define REFUSED_MAX 2 /* steps, one after the other */
#define PAIRS 400     /* of a step that is refused and one at which the power goes */
#define CHANGES_MAX 512

/* ---- a disk that forgets what was not synced ---- */

enum loss {
    LOSS_NONE = 0, /* a kill */
    LOSS_ALL,      /* a power cut: of what was not synced nothing is left */
    LOSS_SOME,     /* ... or some of it */
    LOSS_KINDS
};

enum change_kind {
    CHANGE_CONTENT, /* `before` is what was synced */
    CHANGE_CREATED, /* a file or a folder got its name */
    CHANGE_RENAMED, /* `from` became `path`, whose former file is `saved` */
    CHANGE_REMOVED, /* its file is `saved`; a folder has none */
};

struct change {
    enum change_kind kind;
    char path[RIG_PATH_SIZE], from[RIG_PATH_SIZE], saved[RIG_PATH_SIZE];
    struct ng_str before;
};

static struct {
    bool on; /* steps are counted, from 1 */
    int count;
    int refused_from, refused_to; /* these fail, and the process lives on; 0: none */
    int dies_at;                  /* 0: it does not */
    enum loss loss;
    uint32_t seed;
    unsigned saved;
    char save[RIG_PATH_SIZE]; /* a folder beside */
    struct change changes[CHANGES_MAX];
    size_t change_count;
} disk;

static void path_at(int dir, const char *name, char out[RIG_PATH_SIZE])
{
    char link[64];
    if (name != NULL && (name[0] == '/' || dir == AT_FDCWD)) {
        (void)snprintf(out, RIG_PATH_SIZE, "%s", name);
        return;
    }
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    ssize_t len = readlink(link, out, RIG_PATH_SIZE - 1);
    out[len > 0 ? len : 0] = '\0';
    if (name != NULL) {
        size_t used = strlen(out);
        (void)snprintf(out + used, RIG_PATH_SIZE - used, "/%s", name);
    }
}

static bool is_ours(const char *path)
{
    return strstr(path, "/notegate-audit-") != NULL;
}

static struct change *change_add(enum change_kind kind, const char *path)
{
    if (disk.change_count == CHANGES_MAX) {
        abort();
    }
    struct change *change = &disk.changes[disk.change_count++];
    *change = (struct change){.kind = kind};
    (void)snprintf(change->path, sizeof(change->path), "%s", path);
    return change;
}

/* Another name for the file, so that it can come back. */
static void change_save(struct change *change, const char *path)
{
    (void)snprintf(change->saved, sizeof(change->saved), "%.*s/%u", RIG_PATH_SIZE - 16,
                   disk.save, disk.saved++);
    if (link(path, change->saved) != 0) {
        change->saved[0] = '\0';
    }
}

/* Before its first change since the last sync. */
static void content_changes(int fd)
{
    char path[RIG_PATH_SIZE];
    struct stat info;
    path_at(fd, NULL, path);
    if (!is_ours(path) || fstat(fd, &info) != 0) {
        return;
    }
    for (size_t i = 0; i < disk.change_count; i++) {
        if (disk.changes[i].kind == CHANGE_CONTENT && strcmp(disk.changes[i].path, path) == 0) {
            return;
        }
    }
    struct change *change = change_add(CHANGE_CONTENT, path);
    char *before = malloc((size_t)info.st_size + 1);
    int from = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
    if (before == NULL || from < 0 ||
        read(from, before, (size_t)info.st_size) != info.st_size) {
        abort();
    }
    (void)close(from);
    change->before = str_make(before, (size_t)info.st_size);
}

/* Of a file: its content stays; of a folder: the names in it. */
static void synced(int fd)
{
    char path[RIG_PATH_SIZE];
    size_t kept = 0;
    path_at(fd, NULL, path);
    size_t len = strlen(path);
    for (size_t i = 0; i < disk.change_count; i++) {
        const struct change *change = &disk.changes[i];
        bool is_content = change->kind == CHANGE_CONTENT;
        bool is_here = is_content ? strcmp(change->path, path) == 0
                                  : strncmp(change->path, path, len) == 0 &&
                                        strrchr(change->path, '/') == change->path + len;
        if (!is_here) {
            disk.changes[kept++] = *change;
        } else if (is_content) {
            free((char *)(uintptr_t)change->before.data);
        }
    }
    disk.change_count = kept;
}

static void undo(const struct change *change)
{
    switch (change->kind) {
    case CHANGE_CONTENT: {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, change->path, O_WRONLY | O_TRUNC, 0);
        if (fd >= 0) {
            (void)!syscall(SYS_write, fd, change->before.data, change->before.len);
            (void)close(fd);
        }
        break;
    }
    case CHANGE_CREATED:
        rig_remove(change->path);
        break;
    case CHANGE_RENAMED:
        (void)syscall(SYS_renameat2, AT_FDCWD, change->path, AT_FDCWD, change->from, 0);
        if (change->saved[0] != '\0') {
            (void)link(change->saved, change->path);
        }
        break;
    case CHANGE_REMOVED:
        if (change->saved[0] != '\0') {
            (void)link(change->saved, change->path);
        } else {
            (void)syscall(SYS_mkdirat, AT_FDCWD, change->path, 0700);
        }
        break;
    }
}

static void power_cut(void)
{
    for (size_t i = disk.change_count; i-- > 0;) {
        if (disk.loss == LOSS_ALL || rig_any(&disk.seed, 2) == 0) {
            undo(&disk.changes[i]);
        }
    }
}

/* ---- the steps: these stand before libc's own ---- */

/* Are changes noted? Not where the process lives on. */
static bool is_noted(void)
{
    return disk.on && disk.dies_at > 0;
}

static bool is_refused(int number)
{
    return number >= disk.refused_from && number <= disk.refused_to;
}

static void die(void)
{
    disk.on = false;
    if (disk.loss != LOSS_NONE) {
        power_cut();
    }
    (void)kill(getpid(), SIGKILL);
}

/* True: the step is to fail. */
static bool step(void)
{
    if (!disk.on) {
        return false;
    }
    disk.count++;
    if (disk.count == disk.dies_at) {
        die();
    }
    errno = EIO;
    return is_refused(disk.count);
}

#pragma GCC visibility push(default)
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's are reserved */

int openat(int dir, const char *name, int flags, ...)
{
    char path[RIG_PATH_SIZE];
    struct stat info;
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    bool writes = disk.on && (flags & (O_CREAT | O_TRUNC)) != 0;
    if (writes && step()) {
        return -1;
    }
    if (writes && is_noted()) {
        path_at(dir, name, path);
        if (syscall(SYS_newfstatat, AT_FDCWD, path, &info, 0) != 0) {
            (void)change_add(CHANGE_CREATED, path);
        } else if ((flags & O_TRUNC) != 0) {
            int fd = (int)syscall(SYS_openat, dir, name, O_RDONLY, 0);
            content_changes(fd);
            (void)close(fd);
        }
    }
    return (int)syscall(SYS_openat, dir, name, flags, mode);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    char path[RIG_PATH_SIZE];
    if (step()) {
        return -1;
    }
    if (is_noted()) {
        path_at(to_dir, to, path);
        struct change *change = change_add(CHANGE_RENAMED, path);
        path_at(from_dir, from, change->from);
        change_save(change, path);
        for (size_t i = 0; i < disk.change_count; i++) { /* its content goes with it */
            struct change *other = &disk.changes[i];
            if (other->kind == CHANGE_CONTENT && strcmp(other->path, change->from) == 0) {
                memcpy(other->path, path, sizeof(path));
            }
        }
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int unlinkat(int dir, const char *name, int flags)
{
    char path[RIG_PATH_SIZE];
    if (step()) {
        return -1;
    }
    if (is_noted()) {
        path_at(dir, name, path);
        struct change *change = change_add(CHANGE_REMOVED, path);
        if ((flags & AT_REMOVEDIR) == 0) {
            change_save(change, path);
        }
    }
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    char path[RIG_PATH_SIZE];
    if (step()) {
        return -1;
    }
    int rc = (int)syscall(SYS_mkdirat, dir, name, mode);
    if (rc == 0 && is_noted()) {
        path_at(dir, name, path);
        (void)change_add(CHANGE_CREATED, path);
    }
    return rc;
}

int mkdir(const char *name, mode_t mode)
{
    return mkdirat(AT_FDCWD, name, mode);
}

int fchmod(int fd, mode_t mode)
{
    return step() ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

int fsync(int fd)
{
    if (step()) {
        return -1;
    }
    if (is_noted()) {
        synced(fd);
    }
    return 0; /* the disk is the one above */
}

int fdatasync(int fd)
{
    return fsync(fd);
}

int ftruncate(int fd, off_t len)
{
    if (step()) {
        return -1;
    }
    if (is_noted()) {
        content_changes(fd);
    }
    return (int)syscall(SYS_ftruncate, fd, len);
}

ssize_t write(int fd, const void *data, size_t len)
{
    if (is_noted()) {
        content_changes(fd);
    }
    if (disk.on && (disk.count + 1 == disk.dies_at || is_refused(disk.count + 1))) {
        (void)syscall(SYS_write, fd, data, len / 2); /* amid it */
    }
    return step() ? -1 : syscall(SYS_write, fd, data, len);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
#pragma GCC visibility pop

/* ---- scenes ---- */

/* Entries of the log before, and those that are appended and folded, one after the other. */
struct scene {
    size_t folded, pending;
    size_t appends[4];
};

static const struct scene scenes[] = {
    {0, 0, {3, 2}},
    {250, 3, {2, 300, 2}},
    {300, 0, {1, 1}},
    {511, 1, {1, 1}},
};

static void scene_prepare(struct audit_rig *rig, const struct scene *scene)
{
    rig_make(rig);
    (void)snprintf(disk.save, sizeof(disk.save), "%s", rig->dir);
    (void)snprintf(strrchr(disk.save, '/'), 8, "/saved");
    assert_int_equal(mkdir(disk.save, 0700), 0);
    disk.change_count = 0;
    if (scene->folded > 0) {
        rig_open(rig);
        rig_grow(rig, scene->folded);
        assert_int_equal(rig_append(rig, scene->pending), NG_OK);
        rig_close(rig);
    }
}

/* A step of the log failed, and is done again. */
static unsigned scene_failed(struct audit_rig *rig, int rc, unsigned failures)
{
    if (rc != NG_EUNAVAILABLE || failures >= REFUSED_MAX ||
        strstr(buf_cstr(&rig->error), "Input/output error") == NULL) {
        (void)fprintf(stderr, "%d: %s\n", rc, buf_cstr(&rig->error));
        abort();
    }
    buf_clear(&rig->error);
    return failures + 1;
}

/* Tells the durable size after each append, unless `report` is -1. Returns how often a step of
 * the log failed. */
static unsigned scene_run(struct audit_rig *rig, const struct scene *scene, int report)
{
    unsigned failures = 0;
    int rc;
    disk.count = 0;
    disk.on = true;
    while ((rc = audit_log_open(rig->dir, ng_str_of(RIG_NAME), &rig->log, &rig->error)) !=
           NG_OK) {
        failures = scene_failed(rig, rc, failures);
    }
    for (size_t i = 0; i < NG_COUNT(scene->appends) && scene->appends[i] > 0; i++) {
        uint64_t end = audit_log_size(rig->log) + scene->appends[i];
        while (audit_log_size(rig->log) < end) {
            rc = rig_append(rig, end - audit_log_size(rig->log));
            failures = rc != NG_OK ? scene_failed(rig, rc, failures) : failures;
        }
        if (report >= 0 && syscall(SYS_write, report, &end, sizeof(end)) != (long)sizeof(end)) {
            abort();
        }
        while ((rc = audit_log_fold(rig->log, &rig->error)) != NG_OK) {
            failures = scene_failed(rig, rc, failures);
        }
    }
    disk.on = false;
    return failures;
}

/* One child, killed at step dies_at. False: it had fewer. */
static bool scene_kill(struct audit_rig *rig, const struct scene *scene, uint64_t *ret_told)
{
    int pipes[2];
    int status = 0;
    uint64_t size = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(pipes[0]);
        (void)scene_run(rig, scene, pipes[1]);
        _exit(0);
    }
    (void)close(pipes[1]);
    *ret_told = scene->folded + scene->pending;
    while (read(pipes[0], &size, sizeof(size)) == (ssize_t)sizeof(size)) {
        *ret_told = size;
    }
    (void)close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
    }
    assert_int_equal(WTERMSIG(status), SIGKILL);
    return true;
}

/* The remaining log verifies, and takes further entries. */
static void check_left(struct audit_rig *rig, const struct scene *scene, uint64_t told)
{
    struct audit_verify_report report;
    if (scene->folded > 0) {
        int rc = rig_verify(rig->dir, NULL, &report, &rig->error);
        if (rc != NG_OK) {
            fail_msg("%d: %s", rc, buf_cstr(&rig->error));
        }
    }
    rig_open(rig);
    uint64_t size = audit_log_size(rig->log);
    assert_true(size >= told);
    rig_grow(rig, 3);
    rig_check(rig, size + 3);
}

/* Returns whether the child was killed before its end. */
static bool kill_and_check(const struct scene *scene)
{
    struct audit_rig rig;
    uint64_t told = 0;
    scene_prepare(&rig, scene);
    bool killed = scene_kill(&rig, scene, &told);
    check_left(&rig, scene, told);
    rig_done(&rig);
    return killed;
}

static void test_kills(void **state)
{
    (void)state;
    disk.refused_from = disk.refused_to = 0;
    for (size_t i = 0; i < NG_COUNT(scenes) * LOSS_KINDS; i++) {
        int at = 1;
        disk.loss = (enum loss)(i % LOSS_KINDS);
        do {
            disk.dies_at = at;
            disk.seed = (uint32_t)at++;
            assert_true(at < STEPS_MAX);
        } while (kill_and_check(&scenes[i / LOSS_KINDS]));
        assert_true(at > STEPS_MIN);
    }
}

/* The disk refuses a step, and the next one too: it is told, and everything works when it is
 * done again. */
static void test_refusals(void **state)
{
    (void)state;
    disk.dies_at = 0;
    for (size_t i = 0; i < NG_COUNT(scenes) * REFUSED_MAX; i++) {
        const struct scene *scene = &scenes[i / REFUSED_MAX];
        bool refused = true;
        for (int at = 1; refused; at++) {
            struct audit_rig rig;
            assert_true(at < STEPS_MAX);
            scene_prepare(&rig, scene);
            disk.refused_from = at;
            disk.refused_to = at + (int)(i % REFUSED_MAX);
            (void)scene_run(&rig, scene, -1);
            refused = disk.count >= at;
            rig_check(&rig, audit_log_size(rig.log));
            rig_done(&rig);
        }
    }
}

/* Data of a sync that failed does not count as durable afterwards. */
static void test_power_cuts_after_refusals(void **state)
{
    (void)state;
    uint32_t seed = 42;
    for (unsigned i = 0; i < PAIRS; i++) {
        disk.loss = i % 2 == 0 ? LOSS_ALL : LOSS_SOME;
        disk.seed = i;
        disk.refused_from = 1 + (int)rig_any(&seed, 60);
        disk.refused_to = disk.refused_from;
        disk.dies_at = disk.refused_from + 1 + (int)rig_any(&seed, 30);
        (void)kill_and_check(&scenes[2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_power_cuts_after_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
