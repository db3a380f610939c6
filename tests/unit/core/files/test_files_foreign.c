/* SPDX-License-Identifier: MIT */
/* test_files_foreign.c - another program saves a file just when a change of ours has been
 * committed and is about to be made: no reader sees the file without that save, not even for a
 * moment, because a program that read it then would save it so.
 */
#include "test_files_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/files/files_state.h"

#define THEIRS "theirs\n"

enum save {
    SAVE_NONE,
    SAVE_BESIDE, /* written beside it and renamed */
    SAVE_INSIDE, /* written into the same file */
    SAVE_COPY,   /* beside both, as soon as the file has been copied */
};

static char file[PATH_SIZE], beside[PATH_SIZE]; /* set before anything is armed */
static char copy[PATH_SIZE];                    /* lies as if on another file system */
static atomic_int armed;                        /* an enum save, made at the next sync */
static atomic_bool watching;
static atomic_int seen_without;

static void write_theirs(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, THEIRS, strlen(THEIRS)), (ssize_t)strlen(THEIRS));
    (void)close(fd);
}

static void replace_with_theirs(const char *path)
{
    write_theirs(beside, O_TRUNC);
    assert_int_equal(syscall(SYS_renameat2, AT_FDCWD, beside, AT_FDCWD, path, 0), 0);
}

static void other_program(void)
{
    if (atomic_load(&armed) == SAVE_COPY && access(copy, F_OK) != 0) {
        return;
    }
    int save = atomic_exchange(&armed, SAVE_NONE);
    if (save == SAVE_BESIDE || save == SAVE_COPY) {
        replace_with_theirs(file);
    }
    if (save == SAVE_COPY) {
        replace_with_theirs(copy);
    } else if (save == SAVE_INSIDE) {
        write_theirs(file, O_TRUNC);
    }
    if (save != SAVE_NONE) {
        atomic_store(&watching, true);
    }
}

static void look(void)
{
    char text[sizeof(THEIRS)] = "";
    if (!atomic_load(&watching)) {
        return;
    }
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, strlen(THEIRS)) < 0 || strcmp(text, THEIRS) != 0) {
        atomic_fetch_add(&seen_without, 1);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* ---- these stand before libc's own, also for the modules */

#pragma GCC visibility push(default)

int fsync(int fd)
{
    other_program();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    other_program();
    return (int)syscall(SYS_fdatasync, fd);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
    if (strcmp(from, "f") == 0 && strcmp(to, "copy") == 0) {
        errno = EXDEV;
        return -1;
    }
    int rc = (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    look();
    return rc;
}

#pragma GCC visibility pop

static void begin(struct harness *harness, const char *text, enum save save)
{
    atomic_store(&watching, false);
    atomic_store(&seen_without, 0);
    (void)in_root(harness, file, "f");
    (void)in_root(harness, beside, "f.beside");
    (void)in_root(harness, copy, "copy");
    if (text != NULL) {
        put(harness, "f", text);
    } else {
        edit_works(harness, CREATE, "f");
    }
    atomic_store(&armed, save);
}

static void expect_seen(struct harness *harness, const char *text)
{
    assert_int_equal(atomic_load(&armed), SAVE_NONE);
    assert_int_equal(atomic_load(&seen_without), 0);
    has(harness, "f", text);
    assert_int_equal(count_temps(harness), 0);
    assert_int_equal(count_intents(harness), 0);
}

static void test_an_edit(void **state)
{
    struct harness *harness = *state;
    begin(harness, "ours\n", SAVE_BESIDE);
    edit_works(harness, APPEND, "f");
    expect_seen(harness, THEIRS "x\n");
    begin(harness, "ours\n", SAVE_INSIDE);
    edit_works(harness, APPEND, "f");
    expect_seen(harness, THEIRS "x\n");
}

static void test_taking_a_create_back(void **state)
{
    struct harness *harness = *state;
    begin(harness, NULL, SAVE_BESIDE);
    edit_fails(harness, UNDO, "f", "CONFLICT", "Another program changed the file");
    expect_seen(harness, THEIRS);
}

/* Both saves stay: the copy that is not wanted any more is no longer ours to remove. */
static void test_a_move_to_another_file_system(void **state)
{
    struct harness *harness = *state;
    char args[PATH_SIZE + 64];
    begin(harness, "ours\n", SAVE_COPY);
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s\"", copy);
    edit_fails(harness, args, "f", "FILE_EXISTS", "already exists");
    expect_seen(harness, THEIRS);
    has(harness, "copy", THEIRS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_edit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_taking_a_create_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_move_to_another_file_system, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
