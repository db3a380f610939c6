/* SPDX-License-Identifier: MIT */
/* test_opennotes_tree.c - reading files while the process has no descriptor left: existing
 * files must not look removed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "notegate/errors.h"
#include "tree/tree.h"

struct folder {
    char path[64];
    int fd;
    struct rlimit limit;
};

static void put(const struct folder *folder, const char *name)
{
    int fd = openat(folder->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "text\n", 5), 5);
    close(fd);
}

static int setup(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));
    assert_non_null(folder);
    (void)snprintf(folder->path, sizeof(folder->path), "/tmp/notegate-tree-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder->fd >= 0);
    put(folder, "a.md");
    assert_int_equal(symlinkat("a.md", folder->fd, "link.md"), 0);
    assert_int_equal(mkdirat(folder->fd, "below", 0700), 0);
    put(folder, "below/b.md");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &folder->limit), 0);
    *state = folder;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = {"a.md", "link.md", "below/b.md"};
    struct folder *folder = *state;
    (void)setrlimit(RLIMIT_NOFILE, &folder->limit);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)unlinkat(folder->fd, names[i], 0);
    }
    (void)unlinkat(folder->fd, "below", AT_REMOVEDIR);
    close(folder->fd);
    (void)rmdir(folder->path);
    free(folder);
    return 0;
}

/* `left` more descriptors can be had. */
static void leave(const struct folder *folder, int left)
{
    int next = dup(folder->fd);
    assert_true(next >= 0);
    close(next);
    struct rlimit less = {.rlim_cur = (rlim_t)(next + left),
                          .rlim_max = folder->limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
}

static void test_one_file(void **state)
{
    struct folder *folder = *state;
    struct notes_stat stat;
    bool loose = false;
    leave(folder, 0);
    assert_int_equal(notes_tree_stat(folder->fd, "a.md", &stat, &loose), NG_EBUSY);
    assert_int_equal(notes_tree_stat(folder->fd, "link.md", &stat, &loose), NG_EBUSY);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &folder->limit), 0);
    assert_int_equal(notes_tree_stat(folder->fd, "a.md", &stat, &loose), NG_OK);
    assert_int_equal(notes_tree_stat(folder->fd, "none.md", &stat, &loose), NG_ENOTFOUND);
}

static void test_all_files(void **state)
{
    struct folder *folder = *state;
    struct notes_tree_walk walk = {.root_fd = folder->fd};
    struct notes_tree tree;
    for (int left = 0; left < 4; left++) {
        leave(folder, left);
        int rc = notes_tree_read(&walk, &tree);
        assert_true(rc == NG_EBUSY || (rc == NG_OK && tree.file_count == 3));
        notes_tree_done(&tree);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &folder->limit), 0);
    }
    assert_int_equal(notes_tree_read(&walk, &tree), NG_OK);
    assert_int_equal(tree.file_count, 3);
    notes_tree_done(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
