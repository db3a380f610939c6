/* SPDX-License-Identifier: MIT */
/* test_opennotes_rig.c - shared code of test_opennotes*.c; see the header.
 */
#include "test_opennotes_rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- helpers ---- */

void expand(const struct test *test, const char *from, char *to, size_t size)
{
    size_t len = 0;
    to[0] = '\0';
    for (; *from != '\0'; from++) {
        if (*from == '@') {
            len += (size_t)snprintf(to + len, size - len, "%s", test->dir);
        } else {
            to[len++] = *from;
            to[len] = '\0';
        }
        assert_true(len + 1 < size);
    }
}

void put_bytes(struct test *test, const char *path, const char *data, size_t len)
{
    char real[4096];
    expand(test, path, real, sizeof(real));
    for (char *at = real + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            assert_true(mkdir(real, 0755) == 0 || errno == EEXIST);
            *at = '/';
        }
    }
    int fd = open(real, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

void put(struct test *test, const char *path, const char *text)
{
    put_bytes(test, path, text, strlen(text));
}

struct answer call(struct test *test, const char *tool, const char *args)
{
    char real[TEXT_MAX];
    char name[64];
    expand(test, args, real, sizeof(real));
    (void)snprintf(name, sizeof(name), "opennotes_%s", tool);
    return harness_call(&test->harness, name, real);
}

void has(struct test *test, const char *tool, const char *args, const char *text)
{
    char wanted[TEXT_MAX];
    struct answer answer = call(test, tool, args);
    expand(test, text, wanted, sizeof(wanted));
    if (answer.rc != NG_OK) {
        fail_msg("%s %s failed: %s %s", tool, args, answer.code, answer.message);
    }
    if (strstr(answer.text, wanted) == NULL) {
        fail_msg("%s %s: no %s in %s", tool, args, wanted, answer.text);
    }
    answer_free(&answer);
}

void has_not(struct test *test, const char *tool, const char *args, const char *text)
{
    struct answer answer = call(test, tool, args);
    assert_int_equal(answer.rc, NG_OK);
    if (strstr(answer.text, text) != NULL) {
        fail_msg("%s %s: %s in %s", tool, args, text, answer.text);
    }
    answer_free(&answer);
}

void fails(struct test *test, const char *tool, const char *args, const char *code,
           const char *hint)
{
    char wanted[TEXT_MAX];
    struct answer answer = call(test, tool, args);
    expand(test, hint, wanted, sizeof(wanted));
    if (strcmp(answer.code, code) != 0) {
        fail_msg("%s %s: %s %s %s, not %s", tool, args, answer.code, answer.message,
                 answer.text, code);
    }
    if (strstr(answer.hint, wanted) == NULL && strstr(answer.message, wanted) == NULL) {
        fail_msg("%s %s: no %s in %s / %s", tool, args, wanted, answer.message, answer.hint);
    }
    answer_free(&answer);
}

void open_with(struct test *test, const char *set)
{
    char expanded[sizeof(test->set)];
    expand(test, set, expanded, sizeof(expanded));
    memcpy(test->set, expanded, sizeof(expanded));
    test->sets[0] = "documents=memory";
    test->sets[1] = test->set;
    test->sets[2] = NULL;
    harness_open(&test->harness, test->sets);
}

int setup(void **state)
{
    struct test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    (void)snprintf(test->dir, sizeof(test->dir), "%s/opennotes-XXXXXX", harness_tmp());
    assert_non_null(mkdtemp(test->dir));
    *state = test;
    return 0;
}

static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    struct stat found;
    if (dir == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char below[4096];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        (void)snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        if (lstat(below, &found) == 0 && S_ISDIR(found.st_mode)) {
            remove_tree(below);
        } else {
            (void)unlink(below);
        }
    }
    (void)closedir(dir);
    (void)rmdir(path);
}

int teardown(void **state)
{
    struct test *test = *state;
    if (test->harness.gateway != NULL) {
        harness_close(&test->harness);
    }
    remove_tree(test->dir);
    free(test);
    return 0;
}

/* ---- one note ---- */

int64_t number_of(const char *text, const char *name)
{
    char member[64];
    (void)snprintf(member, sizeof(member), "\"%s\":", name);
    const char *at = strstr(text, member);
    return at != NULL ? strtoll(at + strlen(member), NULL, 10) : 0;
}
