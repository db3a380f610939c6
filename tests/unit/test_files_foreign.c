/* SPDX-License-Identifier: MIT */
/* test_files_foreign.c - another program saves a file just when a change of ours has been
 * committed and is about to be made: nobody sees the file without that save, not for a moment,
 * since whoever read it then would save it so.
 */
#include "test_files_rig.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files_state.h"

#define THEIRS "theirs\n"

enum save {
    SAVE_NONE,
    SAVE_BESIDE, /* written beside it and renamed */
    SAVE_INSIDE, /* written into the same file */
};

static char file[PATH_SIZE], beside[PATH_SIZE]; /* set before anything is armed */
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

static void other_program(void)
{
    int save = atomic_exchange(&armed, SAVE_NONE);
    if (save == SAVE_BESIDE) {
        write_theirs(beside, O_TRUNC);
        assert_int_equal(syscall(SYS_renameat2, AT_FDCWD, beside, AT_FDCWD, file, 0), 0);
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
    edit_fails(harness, UNDO, "f", "CONFLICT", "another program");
    expect_seen(harness, THEIRS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_edit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_taking_a_create_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
