/* SPDX-License-Identifier: MIT */
/* test_own_files.c - descriptors that other code closed, and those that only look so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/own_files.h"

#define PATH_SIZE 128

/* In the place of the C library's fstat(): as on a network file system that is away. The label,
 * because some build flags make the name fstat64. */
static bool files_fail;
int failing_fstat(int fd, struct stat *info) __asm__("fstat");

int failing_fstat(int fd, struct stat *info)
{
    if (files_fail) {
        errno = ESTALE;
        return -1;
    }
    return (int)syscall(SYS_newfstatat, fd, "", info, AT_EMPTY_PATH);
}

static int listening(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

/* `fd` becomes `other`, as when a number is used again. */
static void replace(int fd, int other)
{
    assert_true(other >= 0);
    assert_int_equal(dup2(other, fd), fd);
    (void)close(other);
}

struct folder {
    char dir[PATH_SIZE / 2], path[PATH_SIZE];
};

static int lock_file(struct folder *folder)
{
    (void)snprintf(folder->dir, sizeof(folder->dir), "/tmp/notegate-own-XXXXXX");
    assert_non_null(mkdtemp(folder->dir));
    (void)snprintf(folder->path, sizeof(folder->path), "%s/lock", folder->dir);
    int fd = open(folder->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void remove_folder(const struct folder *folder)
{
    (void)unlink(folder->path);
    (void)rmdir(folder->dir);
}

static bool is_lost_once_closed(int fd)
{
    struct own_files files = {.count = 0};
    own_files_note(&files, "it", fd);
    assert_null(own_files_lost(&files));
    (void)close(fd);
    const struct own_file *lost = own_files_lost(&files);
    bool told = lost != NULL && lost->fd == fd && strcmp(lost->what, "it") == 0;
    own_files_done(&files);
    return told;
}

static bool is_lost_once_replaced(int fd, int other)
{
    struct own_files files = {.count = 0};
    own_files_note(&files, "it", fd);
    assert_null(own_files_lost(&files));
    replace(fd, other);
    bool told = own_files_lost(&files) != NULL;
    own_files_done(&files);
    (void)close(fd);
    return told;
}

static void test_closed(void **state)
{
    struct folder folder;
    (void)state;
    assert_true(is_lost_once_closed(listening()));
    assert_true(is_lost_once_closed(epoll_create1(EPOLL_CLOEXEC)));
    assert_true(is_lost_once_closed(lock_file(&folder)));
    remove_folder(&folder);
}

static void test_replaced(void **state)
{
    struct folder folder, other;
    (void)state;
    assert_true(is_lost_once_replaced(listening(), listening()));
    assert_true(is_lost_once_replaced(listening(), eventfd(0, EFD_CLOEXEC)));
    assert_true(is_lost_once_replaced(epoll_create1(EPOLL_CLOEXEC), eventfd(0, EFD_CLOEXEC)));
    assert_true(
        is_lost_once_replaced(epoll_create1(EPOLL_CLOEXEC), epoll_create1(EPOLL_CLOEXEC)));
    assert_true(is_lost_once_replaced(lock_file(&folder), lock_file(&other)));
    remove_folder(&other);
    remove_folder(&folder);
}

/* Neither what fails below a file nor what becomes of its name closes it. */
static void test_files_that_are_not_lost(void **state)
{
    struct own_files files = {.count = 0};
    struct folder folder;
    char renamed[PATH_SIZE];
    int fd = lock_file(&folder);
    (void)state;
    own_files_note(&files, "the lock", fd);
    files_fail = true;
    const struct own_file *lost = own_files_lost(&files);
    files_fail = false;
    assert_null(lost);

    (void)snprintf(renamed, sizeof(renamed), "%s-renamed", folder.dir);
    assert_int_equal(rename(folder.dir, renamed), 0);
    assert_null(own_files_lost(&files));
    assert_int_equal(rename(renamed, folder.dir), 0);
    remove_folder(&folder);
    assert_null(own_files_lost(&files));
    own_files_done(&files);
    (void)close(fd);
}

/* A connection would hang in the queue of a socket that a copy keeps. */
static void test_sockets_are_not_kept_open(void **state)
{
    struct own_files files = {.count = 0};
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    int fd = listening();
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;
    assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)&address, &size), 0);
    own_files_note(&files, "it", fd);
    (void)close(fd);
    assert_int_not_equal(connect(client, (const struct sockaddr *)(void *)&address, size), 0);
    assert_int_equal(errno, ECONNREFUSED);
    own_files_done(&files);
    (void)close(client);
}

static int without_kcmp(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(lines) / sizeof(lines[0]), lines};
    struct own_files files = {.count = 0};
    struct folder folder;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        return 1;
    }
    if (!is_lost_once_replaced(epoll_create1(EPOLL_CLOEXEC), eventfd(0, EFD_CLOEXEC))) {
        return 2;
    }
    int fd = lock_file(&folder);
    own_files_note(&files, "the lock", fd);
    remove_folder(&folder);
    if (own_files_lost(&files) != NULL) {
        return 3;
    }
    replace(fd, listening());
    return own_files_lost(&files) == NULL ? 4 : 0;
}

/* As in containers. */
static void test_where_kcmp_is_refused(void **state)
{
    int status = 0;
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(without_kcmp());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_files_that_are_not_lost),
        cmocka_unit_test(test_sockets_are_not_kept_open),
        cmocka_unit_test(test_where_kcmp_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
