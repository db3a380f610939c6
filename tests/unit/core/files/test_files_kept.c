/* SPDX-License-Identifier: MIT */
/* test_files_kept.c - contents of files in memory: a change of another program is seen by the
 * next read, whatever it does to the times, and the memory is bounded.
 */
#include "test_files_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/files/files_state.h"

#define BIG (FILES_KEPT_LEAST + 1000)

static struct files *files_of(const struct harness *harness)
{
    return harness->gateway->files;
}

static struct files_kept_stats stats_of(const struct harness *harness)
{
    struct files_kept_stats stats;
    files_kept_stats(files_of(harness), &stats);
    return stats;
}

/* A file of `size` times this letter. */
static void put_letters(struct harness *harness, const char *name, char letter, size_t size)
{
    char *text = calloc(1, size + 1);
    assert_non_null(text);
    memset(text, letter, size);
    put(harness, name, text);
    free(text);
}

/* Reads the file as a tool does: it has `size` bytes, the last one is this letter. */
static void reads(struct harness *harness, const char *name, char letter, size_t size)
{
    char path[PATH_SIZE];
    char hash[FILES_HASH_SIZE];
    struct ng_file file = {.size = sizeof(file)};
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    assert_int_equal(
        files_read(files_of(harness), call, in_root(harness, path, name), 0, &file), NG_OK);
    assert_int_equal(file.data.len, size);
    assert_int_equal(file.bytes, size);
    assert_int_equal(file.data.data[0], letter);
    assert_int_equal(file.data.data[size - 1], letter);
    assert_int_equal(file.data.data[size], '\0');
    files_hash(file.data, hash);
    assert_true(str_is(file.revision, hash));
    call_unref(call);
}

/* Writes over the first and the last byte without another effect than that of a write. */
static void write_ends(struct harness *harness, const char *name, char letter, size_t size)
{
    char path[PATH_SIZE];
    (void)in_root(harness, path, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &letter, 1, 0), 1);
    assert_int_equal(pwrite(fd, &letter, 1, (off_t)size - 1), 1);
    (void)close(fd);
}

static void test_a_file_is_kept(void **state)
{
    struct harness *harness = *state;
    put_letters(harness, "f", 'a', BIG);
    reads(harness, "f", 'a', BIG);
    struct files_kept_stats first = stats_of(harness);
    assert_int_equal(first.count, 1);
    assert_int_equal(first.bytes, BIG);
    reads(harness, "f", 'a', BIG);
    struct files_kept_stats second = stats_of(harness);
    assert_int_equal(second.hits, first.hits + 1);
    assert_int_equal(second.misses, first.misses);
    put_letters(harness, "small", 'a', FILES_KEPT_LEAST - 1);
    reads(harness, "small", 'a', FILES_KEPT_LEAST - 1);
    assert_int_equal(stats_of(harness).count, 1);
}

/* As fast as they come, and so with the same times where the kernel's clock is coarse. */
static void test_changes_are_seen(void **state)
{
    struct harness *harness = *state;
    put_letters(harness, "f", 'a', BIG);
    for (int i = 0; i < 200; i++) {
        char letter = (char)('a' + i % 20);
        write_ends(harness, "f", letter, BIG);
        reads(harness, "f", letter, BIG);
    }
    put_letters(harness, "f", 'x', BIG + 1);
    reads(harness, "f", 'x', BIG + 1);
    put_letters(harness, "g", 'y', BIG + 1);
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    (void)in_root(harness, from, "g");
    (void)in_root(harness, to, "f");
    assert_int_equal(rename(from, to), 0);
    reads(harness, "f", 'y', BIG + 1);
}

static void test_an_old_mtime_hides_nothing(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    struct stat st;
    put_letters(harness, "f", 'a', BIG);
    (void)in_root(harness, path, "f");
    reads(harness, "f", 'a', BIG);
    assert_int_equal(stat(path, &st), 0);
    write_ends(harness, "f", 'b', BIG);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    reads(harness, "f", 'b', BIG);
}

/* A new file "f" of many `a`, mapped for writing. */
static char *map_letters(struct harness *harness)
{
    char path[PATH_SIZE];
    put_letters(harness, "f", 'a', BIG);
    int fd = open(in_root(harness, path, "f").data, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    char *data = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(data != MAP_FAILED);
    (void)close(fd); /* the mapping stays */
    return data;
}

/* Writes through a mapping change the times only once while the page is dirty. */
static void test_a_mapping_is_seen(void **state)
{
    struct harness *harness = *state;
    char *data = map_letters(harness);
    for (int i = 0; i < 50; i++) {
        char letter = (char)('a' + i % 20);
        data[0] = letter;
        data[BIG - 1] = letter;
        reads(harness, "f", letter, BIG);
        reads(harness, "f", letter, BIG);
    }
    (void)munmap(data, BIG);
}

/* A save compares the content, and so does its retry. */
static void test_a_save_trusts_no_times(void **state)
{
    struct harness *harness = *state;
    char *data = map_letters(harness);
    data[BIG - 1] = 'a';
    reads(harness, "f", 'a', BIG);
    data[BIG - 1] = 'b'; /* the page is dirty: its times stay */
    edit_works(harness, "\"command\":\"insert\",\"insert_line\":0,\"new_str\":\"x\"", "f");
    (void)munmap(data, BIG);
    char *text = get(harness, "f");
    assert_non_null(text);
    assert_int_equal(strlen(text), BIG + 2);
    assert_int_equal(text[0], 'x');
    assert_int_equal(text[BIG + 1], 'b');
    free(text);
}

static void test_a_save_is_kept(void **state)
{
    struct harness *harness = *state;
    put_letters(harness, "f", 'a', BIG);
    edit_works(harness, "\"command\":\"insert\",\"insert_line\":0,\"new_str\":\"a\"", "f");
    struct files_kept_stats saved = stats_of(harness);
    assert_int_equal(saved.count, 1); /* not the file that it replaced */
    char *text = get(harness, "f");
    assert_non_null(text);
    size_t size = strlen(text);
    free(text);
    reads(harness, "f", 'a', size);
    assert_int_equal(stats_of(harness).hits, saved.hits + 1);
    write_ends(harness, "f", 'z', size);
    reads(harness, "f", 'z', size);
}

static void test_memory_is_bounded(void **state)
{
    struct harness *harness = *state;
    char name[32];
    size_t size = FILES_KEPT_LARGEST / 2;
    for (int i = 0; i < 12; i++) {
        (void)snprintf(name, sizeof(name), "large%d", i);
        put_letters(harness, name, 'a', size);
        reads(harness, name, 'a', size);
        assert_true(stats_of(harness).bytes <= FILES_KEPT_BYTES);
    }
    assert_int_equal(stats_of(harness).count, FILES_KEPT_BYTES / size);
    put_letters(harness, "larger", 'a', FILES_KEPT_LARGEST + 1);
    reads(harness, "larger", 'a', FILES_KEPT_LARGEST + 1);
    assert_int_equal(stats_of(harness).count, FILES_KEPT_BYTES / size);
    for (int i = 0; i < FILES_KEPT_MAX + 5; i++) {
        (void)snprintf(name, sizeof(name), "many%d", i);
        put_letters(harness, name, 'a', FILES_KEPT_LEAST);
        reads(harness, name, 'a', FILES_KEPT_LEAST);
    }
    assert_int_equal(stats_of(harness).count, FILES_KEPT_MAX);
}

/* Edits at many places of a file: each hash begins at a state of the content before. */
static void test_hashes_of_edits(void **state)
{
    struct harness *harness = *state;
    char args[128];
    size_t lines = 6 * FILES_MARK_BYTES / 16;
    char *text = calloc(lines, 16);
    assert_non_null(text);
    for (size_t i = 0; i < lines; i++) {
        memcpy(text + 16 * i, "x23456789abcdex\n", 16);
    }
    text[16 * lines - 1] = '\0';
    put(harness, "f", text);
    free(text);
    for (size_t i = 0; i < 24; i++) {
        /* 0, the last line, and around the states. */
        size_t line = (i * 5 % 24) * lines / 23;
        (void)snprintf(args, sizeof(args),
                       "\"command\":\"insert\",\"insert_line\":%zu,\"new_str\":\"x%zux\"", line,
                       i);
        edit_works(harness, args, "f");
        char *there = get(harness, "f");
        assert_non_null(there);
        uint64_t hits = stats_of(harness).hits;
        reads(harness, "f", 'x', strlen(there));
        assert_int_equal(stats_of(harness).hits, hits + 1);
        free(there);
    }
}

static void test_hashes_go_on_from_states(void **state)
{
    (void)state;
    struct file_marks marks;
    struct file_marks next;
    char hash[FILES_HASH_SIZE];
    char want[FILES_HASH_SIZE];
    size_t size = 4 * FILES_MARK_BYTES + 77;
    char *data = calloc(1, size);
    assert_non_null(data);
    files_hash_marked(str_make(data, size), NULL, 0, &marks, hash);
    assert_int_equal(marks.count, 4);
    for (size_t at = 0; at < size; at += FILES_MARK_BYTES / 2 - 1) {
        for (size_t len = at + 1; len <= size; len += FILES_MARK_BYTES - 3) {
            data[at] = 'x';
            files_hash_marked(str_make(data, len), &marks, at, &next, hash);
            files_hash(str_make(data, len), want);
            assert_string_equal(hash, want);
            assert_int_equal(next.count, len / FILES_MARK_BYTES);
            files_marks_done(&next);
            data[at] = '\0';
        }
    }
    files_marks_done(&marks);
    free(data);
}

/* The memory of a call that ends in any place of a read leaves what is kept as it is. */
static void test_without_memory_of_the_call(void **state)
{
    struct harness *harness = *state;
    size_t failed = 0;
    put_letters(harness, "f", 'a', BIG);
    for (size_t more = 16; more < 8192; more += 16) {
        struct call *call = harness_new_call(harness);
        struct ng_file read;
        call->may_block = true;
        call->arena.max = call->arena.used + more;
        int rc = files_read(harness->gateway->files, call, ng_str_of("/f"), 0, &read);
        failed += rc != NG_OK;
        call_unref(call);
        reads(harness, "f", 'a', BIG);
    }
    assert_true(failed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_file_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes_are_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_old_mtime_hides_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_mapping_is_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_save_trusts_no_times, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_save_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hashes_of_edits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_memory_of_the_call, setup, teardown),
        cmocka_unit_test(test_hashes_go_on_from_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
