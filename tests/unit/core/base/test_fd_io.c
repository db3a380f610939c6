/* SPDX-License-Identifier: MIT */
/* test_fd_io.c - descriptors read and written as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/files/fd_io.h"

#define MANY ((size_t)1024 * 1024) /* more than a pipe holds */

static int fds[2];
static size_t seen;

static void *read_all(void *user)
{
    static char data[4096];
    size_t len = 0;
    (void)user;
    do {
        assert_int_equal(fd_get(&fds[0], data, sizeof(data), &len), NG_OK);
        seen += len;
    } while (len > 0);
    return NULL;
}

static void test_all_is_written(void **state)
{
    static char data[MANY];
    pthread_t thread;
    struct ng_str bytes = {data, sizeof(data)};
    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_all, NULL), 0);
    assert_int_equal(fd_put(fds[1], bytes), NG_OK);
    assert_int_equal(close(fds[1]), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen, MANY);
    assert_int_equal(close(fds[0]), 0);
}

static void test_failures_have_their_errno(void **state)
{
    int none = -1;
    char data[4];
    size_t len = 1;
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(fd_get(&none, data, sizeof(data), &len), NG_EFAILED);
    assert_int_equal(errno, EBADF);
    assert_int_equal(len, 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(close(fds[0]), 0);
    assert_int_equal(fd_put(fds[1], ng_str_of("x")), NG_EFAILED);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(close(fds[1]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_written),
        cmocka_unit_test(test_failures_have_their_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
