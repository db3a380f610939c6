/* SPDX-License-Identifier: MIT */
/* test_files_refused.c - errors of the system: full disks, no permission, links and pipes. */
#include "test_files_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_full_disk(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    (void)in_root(harness, path, "small");
    assert_int_equal(mkdir(path, 0755), 0);
    if (mount("none", path, "tmpfs", 0, "size=64k") != 0) {
        skip(); /* not root, or not allowed to mount */
    }
    /* A file system that is mounted inside a root is part of it. */
    put(harness, "small/f", "a\n");
    edit_works(harness, APPEND, "small/f");
    has(harness, "small/f", "a\nx\n");
    char *big = malloc(80001);
    char *args = malloc(81000);
    assert_non_null(big);
    assert_non_null(args);
    memset(big, 'y', 80000);
    big[80000] = '\0';
    (void)snprintf(args, 81000,
                   "{\"command\":\"insert\",\"path\":\"%s/f\",\"insert_line\":1,\"new_str\":"
                   "\"%s\"}",
                   path, big);
    struct answer answer = harness_call(harness, "fileEditor", args);
    assert_string_equal(answer.code, "STORAGE_FULL");
    assert_int_equal(answer.status, 507);
    assert_non_null(strstr(answer.message, "no room is left on its disk"));
    answer_free(&answer);
    has(harness, "small/f", "a\nx\n");
    edit_works(harness, UNDO, "small/f");
    assert_int_equal(count_intents(harness), 0);
    /* To another file system and back. */
    put(harness, "g", "moved\n");
    (void)snprintf(args, 81000,
                   "{\"command\":\"move\",\"path\":\"%s/files/g\",\"destination\":\"%s/g\"}",
                   harness->dir, path);
    answer = harness_call(harness, "fileEditor", args);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    assert_null(get(harness, "g"));
    has(harness, "small/g", "moved\n");
    edit_works(harness, UNDO, "small/g");
    has(harness, "g", "moved\n");
    assert_null(get(harness, "small/g"));
    assert_int_equal(umount(path), 0);
    free(big);
    free(args);
}

static void test_read_only_disk(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    (void)in_root(harness, path, "fixed");
    assert_int_equal(mkdir(path, 0755), 0);
    if (mount("none", path, "tmpfs", 0, "size=64k") != 0) {
        skip();
    }
    put(harness, "fixed/f", "a\n");
    assert_int_equal(mount("none", path, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k"), 0);
    edit_fails(harness, APPEND, "fixed/f", "FORBIDDEN", "read-only file system");
    edit_fails(harness, CREATE, "fixed/g", "FORBIDDEN", "read-only file system");
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(umount(path), 0);
}

#define NOBODY 65534

static bool edit_is(struct harness *harness, const char *args, const char *name,
                    const char *code, const char *part)
{
    struct answer answer = edit(harness, args, name);
    bool is = strcmp(answer.code, code) == 0 && strstr(answer.message, part) != NULL;
    if (!is) {
        (void)fprintf(stderr, "%s: %s %s\n", name, answer.code, answer.message);
    }
    answer_free(&answer);
    return is;
}

/* In a process of a user without files here. */
static int child_without_rights(const char *dir)
{
    struct harness harness = {0};
    (void)snprintf(harness.dir, sizeof(harness.dir), "%s", dir);
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
        return 2;
    }
    char move[PATH_SIZE];
    (void)snprintf(move, sizeof(move),
                   "\"command\":\"move\",\"destination\":\"%s/files/closed/own\"", dir);
    open_gateway(&harness);
    bool good =
        edit_is(&harness, APPEND, "unreadable", "FORBIDDEN", "permission denied") &&
        edit_is(&harness, "\"command\":\"view\"", "unreadable", "FORBIDDEN",
                "permission denied") &&
        edit_is(&harness, APPEND, "unwritable", "FORBIDDEN", "permission denied") &&
        edit_is(&harness, APPEND, "foreign", "FORBIDDEN", "its owner (user 0, group 0)") &&
        edit_is(&harness, CREATE, "closed/f", "FORBIDDEN", "permission denied") &&
        edit_is(&harness, CREATE, "closed/f", "FORBIDDEN", "/files/closed may not be") &&
        edit_is(&harness, APPEND, "closed/there", "FORBIDDEN", "/files/closed may not be") &&
        edit_is(&harness, move, "own", "FORBIDDEN", "/files/closed may not be") &&
        edit_is(&harness, APPEND, "closed/linked", "FORBIDDEN", "it has 2 names, so ") &&
        edit_is(&harness, APPEND, "two names", "ok", "") &&
        edit_is(&harness, APPEND, "own", "ok", "");
    good = good && count_intents(&harness) == 0 && count_temps(&harness) == 0;
    close_gateway(&harness);
    return good ? 0 : 1;
}

static void own_by_root(struct harness *harness, const char *name, mode_t mode)
{
    char path[PATH_SIZE];
    put(harness, name, "a\n");
    (void)in_root(harness, path, name);
    assert_int_equal(chmod(path, mode), 0);
}

static void second_name(struct harness *harness, const char *name, const char *second)
{
    char path[PATH_SIZE];
    char other[PATH_SIZE];
    (void)in_root(harness, path, name);
    (void)in_root(harness, other, second);
    assert_int_equal(link(path, other), 0);
}

static void test_no_permission(void **state)
{
    (void)state;
    char path[PATH_SIZE];
    char command[PATH_SIZE];
    struct harness harness;
    if (geteuid() != 0) {
        skip(); /* needs a second user */
    }
    harness_open(&harness, sets);
    close_gateway(&harness);
    own_by_root(&harness, "own", 0644);
    (void)snprintf(command, sizeof(command), "chown -R %d:%d '%s'", NOBODY, NOBODY,
                   harness.dir);
    assert_int_equal(system(command), 0);
    own_by_root(&harness, "unreadable", 0);
    own_by_root(&harness, "unwritable", 0644);
    own_by_root(&harness, "foreign", 0666);
    (void)in_root(&harness, path, "closed");
    assert_int_equal(mkdir(path, 0755), 0);
    own_by_root(&harness, "closed/there", 0666);
    own_by_root(&harness, "closed/linked", 0666);
    second_name(&harness, "closed/linked", "closed/other");
    own_by_root(&harness, "two names", 0666);
    second_name(&harness, "two names", "other name");
    pid_t pid = fork();
    if (pid == 0) {
        _exit(child_without_rights(harness.dir));
    }
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    has(&harness, "foreign", "a\n");
    has(&harness, "own", "a\nx\n");
    has(&harness, "other name", "a\nx\n"); /* its owner could not be given to a new file */
    harness_close(&harness);
}

static ino_t inode(struct harness *harness, const char *name)
{
    char path[PATH_SIZE];
    struct stat st;
    (void)in_root(harness, path, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_ino;
}

/* All names of a file have the new text, also after an undo; a move moves one of them. */
static void test_several_names(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char args[2 * PATH_SIZE];
    put(harness, "f", "a\nlonger than what comes\n");
    second_name(harness, "f", "g");
    second_name(harness, "f", "h");
    edit_works(harness, APPEND, "f");
    has(harness, "f", "a\nx\nlonger than what comes\n");
    has(harness, "g", "a\nx\nlonger than what comes\n");
    edit_works(harness, "\"command\":\"str_replace\",\"old_str\":\"longer than what comes\"",
               "g");
    has(harness, "h", "a\nx\n\n");
    edit_fails(harness, UNDO, "f", "CONFLICT", "was made under another name of this file");
    edit_works(harness, UNDO, "g");
    edit_works(harness, UNDO, "f");
    has(harness, "f", "a\nlonger than what comes\n");
    has(harness, "h", "a\nlonger than what comes\n");
    assert_int_equal(inode(harness, "f"), inode(harness, "g"));
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s\"",
                   in_root(harness, path, "moved").data);
    edit_works(harness, args, "h");
    assert_int_equal(inode(harness, "f"), inode(harness, "moved"));
    assert_null(get(harness, "h"));
    assert_int_equal(count_temps(harness), 0);
    assert_int_equal(count_intents(harness), 0);
}

/* A file of a container's volume. */
static void test_mounted_file(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char source[PATH_SIZE];
    char args[2 * PATH_SIZE];
    put(harness, "source", "a\n");
    put(harness, "f", "below the mount");
    (void)in_root(harness, source, "source");
    (void)in_root(harness, path, "f");
    if (mount(source, path, NULL, MS_BIND, NULL) != 0) {
        return; /* not allowed to mount: test_files_steps injects EBUSY */
    }
    edit_works(harness, APPEND, "f");
    has(harness, "source", "a\nx\n");
    edit_works(harness, UNDO, "f");
    has(harness, "f", "a\n");
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s2\"", path);
    edit_fails(harness, args, "f", "FORBIDDEN", "it is a mount");
    assert_int_equal(umount(path), 0);
    has(harness, "f", "below the mount");
    assert_int_equal(count_temps(harness), 0);
    assert_int_equal(count_intents(harness), 0);
}

/* Room for the new text beside a file, but not for the old one as well: the refusal says why
 * the old one is kept. */
static void test_no_room_for_the_old_text(void **state)
{
    enum { SIZE = 28 * 1024 };
    struct harness *harness = *state;
    char folder[PATH_SIZE];
    char path[PATH_SIZE];
    char text[SIZE + 1];
    memset(text, 'y', SIZE);
    text[SIZE] = '\0';
    (void)in_root(harness, folder, "full");
    assert_int_equal(mkdir(folder, 0755), 0);
    if (mount("none", folder, "tmpfs", 0, "size=64k") != 0) {
        skip();
    }
    put(harness, "full/f", text);
    second_name(harness, "full/f", "full/g");
    assert_true(edit_is(harness, APPEND, "full/f", "STORAGE_FULL",
                        "it has 2 names, so its old content is kept beside it meanwhile, and "
                        "no room is left on its disk"));
    has(harness, "full/f", text);
    (void)in_root(harness, path, "full/g");
    assert_int_equal(unlink(path), 0);
    (void)in_root(harness, path, "full/f");
    assert_int_equal(mount(path, path, NULL, MS_BIND, NULL), 0);
    assert_true(edit_is(harness, APPEND, "full/f", "STORAGE_FULL",
                        "it is a mount, so its old content is kept beside it meanwhile, and no "
                        "room is left on its disk"));
    assert_int_equal(umount(path), 0);
    has(harness, "full/f", text);
    assert_int_equal(count_temps(harness), 0);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(umount(folder), 0);
}

/* A copy belongs to the gateway: "runs as its owner" must not come along. */
static void test_copies_run_as_nobody_else(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char args[2 * PATH_SIZE];
    struct stat status;
    put(harness, "f", "text");
    assert_int_equal(chmod(in_root(harness, path, "f").data, 06755), 0);
    (void)snprintf(args, sizeof(args), "\"command\":\"copy\",\"destination\":\"%s\"",
                   in_root(harness, path, "copy").data);
    edit_works(harness, args, "f");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s\"",
                   in_root(harness, path, "moved").data);
    edit_works(harness, args, "f");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 06755);
}

static void test_links_and_pipes(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    (void)in_root(harness, path, "dangling");
    assert_int_equal(symlink("nothing", path), 0);
    edit_fails(harness, APPEND, "dangling", "NOT_FOUND", "does not exist");
    (void)in_root(harness, path, "loop");
    assert_int_equal(symlink("loop", path), 0);
    edit_fails(harness, APPEND, "loop", "TOOL_FAILED", "too many links");
    (void)in_root(harness, path, "pipe");
    assert_int_equal(mkfifo(path, 0644), 0);
    edit_fails(harness, APPEND, "pipe", "TOOL_FAILED", "not a regular file");
    assert_int_equal(count_intents(harness), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_only_disk, setup, teardown),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test_setup_teardown(test_several_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mounted_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_room_for_the_old_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copies_run_as_nobody_else, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links_and_pipes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
