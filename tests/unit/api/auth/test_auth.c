/* SPDX-License-Identifier: MIT */
/* test_auth.c - connections without a key, in each mode of authentication. */
#include "api/auth/auth.h"
#include "harness.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/auth/auth_started.h"
#include "core/base/str.h"

/* No process has it. */
#define PID_GONE 0x7ffffff0

struct expected {
    struct auth_connection connection;
    int rc;
};

/* How the connection is judged with nothing but `auth` configured. */
static void expect_all(const char *auth_mode, const struct expected *expected, size_t count)
{
    const char *sets[] = {"plugins=notebook", "documents=memory", auth_mode, NULL};
    struct harness harness;
    struct auth *auth = NULL;
    struct buf error;
    harness_open(&harness, sets);
    buf_init(&error, 1024);
    assert_int_equal(auth_new(harness.gateway, &auth, &error), NG_OK);
    for (size_t i = 0; i < count; i++) {
        const struct auth_headers headers = {.proxied = NULL};
        struct auth_caller caller;
        struct auth_refusal refusal;
        int rc = auth_check(auth, &expected[i].connection, &headers, &caller, &refusal);
        if (rc != expected[i].rc) {
            fail_msg("%s, connection %zu: %d instead of %d", auth_mode, i, rc, expected[i].rc);
        }
    }
    auth_free(auth);
    buf_done(&error);
    harness_close(&harness);
}

static void test_programs_of_the_gateway_get_in_by_no_mode(void **state)
{
    static const struct expected off[] = {
        {{.way = AUTH_LOOPBACK}, NG_OK}, /* any user's */
        {{.way = AUTH_LOOPBACK, .is_own_user = true}, NG_OK},
        {{.way = AUTH_LOOPBACK, .is_own_user = true, .started = AUTH_STARTED_YES},
         NG_EUNAUTHENTICATED},
        {{.way = AUTH_LOOPBACK, .started = AUTH_STARTED_YES}, NG_EUNAUTHENTICATED},
        {{.way = AUTH_LOOPBACK, .is_own_user = true, .is_unknown = true}, NG_EBUSY},
        {{.way = AUTH_LOOPBACK, .is_unknown = true}, NG_EBUSY},
        {{.way = AUTH_LOOPBACK, .is_mute = true}, NG_OK},
        {{.way = AUTH_LOOPBACK, .is_mute = true, .started = AUTH_STARTED_UNSEEN},
         NG_EUNAUTHENTICATED},
        {{.is_own_user = true}, NG_EUNAUTHENTICATED},
        {{.way = AUTH_SOCKET}, NG_OK},
        {{.way = AUTH_SOCKET, .started = AUTH_STARTED_YES}, NG_EUNAUTHENTICATED},
        {{.way = AUTH_SOCKET, .is_unknown = true}, NG_EBUSY},
    };
    static const struct expected automatic[] = {
        {{.way = AUTH_LOOPBACK}, NG_EUNAUTHENTICATED},
        {{.way = AUTH_LOOPBACK, .is_own_user = true}, NG_OK},
        {{.way = AUTH_LOOPBACK, .is_own_user = true, .started = AUTH_STARTED_YES},
         NG_EUNAUTHENTICATED},
        {{.way = AUTH_LOOPBACK, .is_own_user = true, .is_unknown = true}, NG_EBUSY},
        {{.way = AUTH_LOOPBACK, .is_mute = true}, NG_EUNAUTHENTICATED},
        {{.is_own_user = true}, NG_EUNAUTHENTICATED},
        {{.way = AUTH_SOCKET}, NG_OK},
        {{.way = AUTH_SOCKET, .started = AUTH_STARTED_YES}, NG_EUNAUTHENTICATED},
        {{.way = AUTH_SOCKET, .is_unknown = true}, NG_EBUSY},
    };
    static const struct expected on[] = {
        {{.way = AUTH_LOOPBACK, .is_own_user = true}, NG_EUNAUTHENTICATED},
        {{.way = AUTH_LOOPBACK, .is_own_user = true, .is_unknown = true}, NG_EUNAUTHENTICATED},
        {{.way = AUTH_SOCKET}, NG_OK},
        {{.way = AUTH_SOCKET, .started = AUTH_STARTED_YES}, NG_EUNAUTHENTICATED},
        {{.way = AUTH_SOCKET, .is_unknown = true}, NG_EBUSY},
    };
    (void)state;
    expect_all("auth=off", off, NG_COUNT(off));
    expect_all("auth=auto", automatic, NG_COUNT(automatic));
    expect_all("auth=on", on, NG_COUNT(on));
}

/* ---- programs that have ended ---- */

static uint32_t inode_of(int fd)
{
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    return (uint32_t)info.st_ino;
}

/* A child that has ended and was waited for. */
static void run_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static enum auth_started judge(struct auth_started_past *past, uint32_t inode, uint64_t ticks)
{
    const struct auth_started_end end = {inode, geteuid(), ticks};
    struct auth_started_recent recent = {.next = 0};
    return auth_started_socket(past, &end, &recent);
}

/* A process that has ended is no child any more; it may have connected before. */
static void test_a_socket_of_ended_programs(void **state)
{
    struct auth_started_past past;
    uint64_t now = auth_started_ticks();
    int ends[2];
    (void)state;
    auth_started_begin(&past);
    run_child();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(judge(&past, 0, now), AUTH_STARTED_UNSEEN);
    assert_int_equal(judge(&past, inode_of(ends[0]), now), AUTH_STARTED_NO);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* A child that ended before any client could connect (a shell that became the gateway by exec
 * had children), and one that ended long before a connection was accepted. */
static void test_programs_that_ended_long_ago(void **state)
{
    struct auth_started_past past;
    uint64_t hour = 3600 * (uint64_t)sysconf(_SC_CLK_TCK);
    (void)state;
    run_child();
    auth_started_begin(&past);
    assert_false(auth_started_look(&past));
    assert_int_equal(judge(&past, 0, auth_started_ticks()), AUTH_STARTED_NO);
    assert_int_equal(auth_started_process(&past, PID_GONE, auth_started_ticks()),
                     AUTH_STARTED_NO);
    run_child();
    assert_false(auth_started_look(&past));
    uint64_t now = auth_started_ticks();
    assert_int_equal(auth_started_process(&past, PID_GONE, now), AUTH_STARTED_UNSEEN);
    assert_int_equal(judge(&past, 0, now), AUTH_STARTED_UNSEEN);
    /* It waited in the queue of the listener. */
    assert_int_equal(judge(&past, 0, now + 1), AUTH_STARTED_UNSEEN);
    assert_int_equal(judge(&past, 0, now + hour), AUTH_STARTED_NO);
    assert_int_equal(auth_started_process(&past, PID_GONE, now + hour), AUTH_STARTED_NO);
}

/* While one runs, whatever cannot be found may be of its making. */
static void test_programs_that_run(void **state)
{
    struct auth_started_past past;
    uint64_t hour = 3600 * (uint64_t)sysconf(_SC_CLK_TCK);
    (void)state;
    auth_started_begin(&past);
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    assert_true(auth_started_look(&past));
    uint64_t later = auth_started_ticks() + hour;
    assert_int_equal(judge(&past, 0, later), AUTH_STARTED_UNSEEN);
    assert_int_equal(auth_started_process(&past, PID_GONE, later), AUTH_STARTED_UNSEEN);
    assert_int_equal(auth_started_process(&past, pid, later), AUTH_STARTED_YES);
    assert_int_equal(auth_started_process(&past, getppid(), later), AUTH_STARTED_NO);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* In a gateway with a child and no descriptor left for looking it is not known, not a yes. */
static void judge_without_descriptors(int socket)
{
    struct auth_started_past past;
    struct rlimit none = {0, 0};
    auth_started_begin(&past);
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    uint32_t inode = inode_of(socket);
    int status = 1;
    if (pid > 0 && setrlimit(RLIMIT_NOFILE, &none) == 0 &&
        judge(&past, inode, auth_started_ticks()) == AUTH_STARTED_UNKNOWN &&
        auth_started_process(&past, getppid(), auth_started_ticks()) == AUTH_STARTED_UNKNOWN) {
        status = 0;
    }
    (void)kill(pid, SIGKILL);
    _exit(status);
}

static void test_no_descriptor_is_left(void **state)
{
    int ends[2];
    int status = 0;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        judge_without_descriptors(ends[0]);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* The process below: its first byte to `socket` tells that it has become the user. It ends with
 * the other end. */
static void become(uid_t uid, int socket)
{
    char byte = 0;
    if (setresuid(uid, uid, uid) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0 &&
        write(socket, &byte, 1) == 1) {
        while (read(socket, &byte, 1) > 0) {
        }
    }
    _exit(0);
}

/* In a gateway of user 4242 that has a child of user `below`: is the socket, which is another
 * user's and which none of its children holds, one of a program that it started? */
static int ask_as_user(uid_t below, uint32_t inode)
{
    struct auth_started_recent recent = {.next = 0};
    struct auth_started_past past;
    int ends[2];
    char byte = 0;
    auth_started_begin(&past);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        become(below, ends[1]);
    }
    (void)close(ends[1]);
    const struct auth_started_end end = {inode, 4243, auth_started_ticks()};
    return read(ends[0], &byte, 1) == 1 && setresuid(4242, 4242, 4242) == 0
               ? (int)auth_started_socket(&past, &end, &recent)
               : -1;
}

/* A program below the gateway may have become another user, and then cannot be looked at. */
static void test_sockets_of_other_users(void **state)
{
    static const struct {
        uid_t below;
        enum auth_started expected;
    } cases[] = {{4242, AUTH_STARTED_NO}, {4243, AUTH_STARTED_YES}};
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        int ends[2];
        int status = 0;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        uint32_t inode = inode_of(ends[0]);
        pid_t pid = fork();
        if (pid == 0) {
            (void)close(ends[0]);
            (void)close(ends[1]);
            _exit(ask_as_user(cases[i].below, inode));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), cases[i].expected);
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_of_the_gateway_get_in_by_no_mode),
        cmocka_unit_test(test_a_socket_of_ended_programs),
        cmocka_unit_test(test_programs_that_ended_long_ago),
        cmocka_unit_test(test_programs_that_run),
        cmocka_unit_test(test_no_descriptor_is_left),
        cmocka_unit_test(test_sockets_of_other_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
