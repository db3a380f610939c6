/* SPDX-License-Identifier: MIT */
/* test_trust.c - files that others own or can write are not believed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/files/trust.h"

#define NOBODY 65534

static char folder[] = "/tmp/notegate-trust-XXXXXX";

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    return chdir(folder);
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(chdir("/"), 0);
    return rmdir(folder);
}

static void make(const char *name, mode_t mode)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static void expect(const char *path, int rc, const char *part)
{
    struct buf error;
    buf_init(&error, 8192);
    assert_int_equal(trust_check_path(path, TRUST_OWN, &error), rc);
    if (part != NULL && strstr(buf_cstr(&error), part) == NULL) {
        fail_msg("\"%s\" is not in: %s", part, buf_cstr(&error));
    }
    assert_true(part != NULL || error.len == 0);
    buf_done(&error);
}

static void test_modes(void **state)
{
    (void)state;
    make("file", 0644);
    expect("file", NG_OK, NULL);
    assert_int_equal(chmod("file", 0664), 0);
    expect("file", NG_EFORBIDDEN, "can be written by others (mode 0664); do `chmod go-w file`");
    assert_int_equal(chmod("file", 0646), 0);
    expect("./file", NG_EFORBIDDEN, "do `chmod go-w ./file`");
    assert_int_equal(chmod("file", 0600), 0);
    expect("file", NG_OK, NULL);
    assert_int_equal(unlink("file"), 0);
    expect("file", NG_ENOTFOUND, NULL);
}

static void test_folders(void **state)
{
    (void)state;
    assert_int_equal(mkdir("it's", 0700), 0);
    make("it's/file", 0600);
    expect("it's/file", NG_OK, NULL);
    assert_int_equal(chmod("it's", 0777), 0);
    expect("it's/file", NG_EFORBIDDEN, "do `chmod go-w 'it'\\''s'`");
    /* As /tmp: others can make files there, and cannot replace ours. */
    assert_int_equal(chmod("it's", 01777), 0);
    expect("it's/file", NG_OK, NULL);
    /* By a link the folder where the file lies counts, too. */
    assert_int_equal(symlink("it's/file", "link"), 0);
    expect("link", NG_OK, NULL);
    assert_int_equal(chmod("it's", 0770), 0);
    expect("link", NG_EFORBIDDEN, "/it's can be written by others (mode 0770)");
    assert_int_equal(unlink("link"), 0);
    assert_int_equal(unlink("it's/file"), 0);
    assert_int_equal(rmdir("it's"), 0);
}

static void test_owners(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(mkdir("sticky", 0700), 0);
    assert_int_equal(chmod("sticky", 01777), 0);
    make("sticky/file", 0600);
    make("sticky/theirs", 0644);
    assert_int_equal(chown("sticky/theirs", NOBODY, NOBODY), 0);
    expect("sticky/theirs", NG_EFORBIDDEN, "belongs to user nobody");
    expect("sticky/theirs", NG_EFORBIDDEN, "do `chown root sticky/theirs`");
    assert_int_equal(symlink("file", "sticky/link"), 0);
    expect("sticky/link", NG_OK, NULL);
    assert_int_equal(lchown("sticky/link", NOBODY, NOBODY), 0);
    expect("sticky/link", NG_EFORBIDDEN, "do `chown -h root sticky/link`");
    assert_int_equal(chown("sticky", NOBODY, NOBODY), 0);
    expect("sticky/file", NG_EFORBIDDEN, "do `chown root sticky`");
    assert_int_equal(unlink("sticky/link"), 0);
    assert_int_equal(unlink("sticky/theirs"), 0);
    assert_int_equal(unlink("sticky/file"), 0);
    assert_int_equal(rmdir("sticky"), 0);
}

/* A file from the shell has no folder. */
static void test_pipes(void **state)
{
    (void)state;
    int ends[2];
    char path[32];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
    expect(path, NG_OK, NULL);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

static void test_known_users(void **state)
{
    (void)state;
    assert_true(trust_knows_user(0));
    assert_true(trust_knows_user(1234));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes),       cmocka_unit_test(test_folders),
        cmocka_unit_test(test_owners),      cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_known_users),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
