/* SPDX-License-Identifier: MIT */
/* test_file_editor_rig.c - shared code of test_file_editor*.c; see the header.
 */
#include "test_file_editor_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void expand(const struct test *test, const char *from, char *to, size_t size)
{
    size_t len = 0;
    for (; *from != '\0'; from++) {
        if (*from == '@') {
            len += (size_t)snprintf(to + len, size - len, "%s", test->root);
        } else {
            to[len++] = *from;
            to[len] = '\0';
        }
        assert_true(len + 1 < size);
    }
    to[len] = '\0';
}

struct answer call_as(struct test *test, const char *agent, const char *args)
{
    char real[TEXT_MAX];
    expand(test, args, real, sizeof(real));
    return harness_call_as(&test->harness, agent, NULL, "fileEditor", real);
}

struct answer call(struct test *test, const char *args)
{
    return call_as(test, NULL, args);
}

void ok(struct test *test, const char *args, const char *text)
{
    char real[TEXT_MAX];
    char wanted[TEXT_MAX];
    expand(test, args, real, sizeof(real));
    expand(test, text, wanted, sizeof(wanted));
    expect_text(&test->harness, "fileEditor", real, wanted);
}

void fails(struct test *test, const char *args, const char *code, const char *message)
{
    char real[TEXT_MAX];
    char wanted[TEXT_MAX];
    expand(test, args, real, sizeof(real));
    expand(test, message, wanted, sizeof(wanted));
    expect_error(&test->harness, "fileEditor", real, code, wanted);
}

void works(struct test *test, const char *args)
{
    struct answer answer = call(test, args);
    if (answer.rc != NG_OK) {
        fail_msg("%s failed: %s %s", args, answer.code, answer.message);
    }
    answer_free(&answer);
}

void put_bytes(struct test *test, const char *path, const char *data, size_t len)
{
    char real[TEXT_MAX];
    expand(test, path, real, sizeof(real));
    int fd = open(real, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

void put(struct test *test, const char *path, const char *text)
{
    put_bytes(test, path, text, strlen(text));
}

void has_bytes(struct test *test, const char *path, const char *data, size_t len)
{
    char real[TEXT_MAX];
    char *there = malloc(len + 2);
    expand(test, path, real, sizeof(real));
    int fd = open(real, O_RDONLY | O_CLOEXEC);
    assert_non_null(there);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, there, len + 1), (ssize_t)len);
    assert_memory_equal(there, data, len);
    (void)close(fd);
    free(there);
}

void has(struct test *test, const char *path, const char *text)
{
    has_bytes(test, path, text, strlen(text));
}

bool exists(struct test *test, const char *path)
{
    char real[TEXT_MAX];
    struct stat st;
    expand(test, path, real, sizeof(real));
    return lstat(real, &st) == 0;
}

void make_dir(struct test *test, const char *path)
{
    char real[TEXT_MAX];
    expand(test, path, real, sizeof(real));
    assert_int_equal(mkdir(real, 0755), 0);
}

void make_link(struct test *test, const char *target, const char *path)
{
    char from[TEXT_MAX];
    char to[TEXT_MAX];
    expand(test, target, to, sizeof(to));
    expand(test, path, from, sizeof(from));
    assert_int_equal(symlink(to, from), 0);
}

static const char *const sets_default[] = {"plugins=file_editor", NULL};

int setup(void **state)
{
    struct test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    harness_open(&test->harness, sets_default);
    (void)snprintf(test->root, sizeof(test->root), "%s/files", test->harness.dir);
    *state = test;
    return 0;
}

int teardown(void **state)
{
    struct test *test = *state;
    harness_close(&test->harness);
    if (test->roots[0] != '\0') {
        char command[400];
        (void)snprintf(command, sizeof(command), "rm -rf '%s'", test->roots);
        assert_int_equal(system(command), 0);
    }
    free(test);
    return 0;
}
