/* SPDX-License-Identifier: MIT */
/* test_audit_names.c - values that entries show by a keyed hash: kept for a month, redacted,
 * checked. */
#include "test_audit_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/audit/audit_names.h"
#include "core/audit/audit_values.h"
#include "core/base/arena.h"
#include "core/base/str.h"

#define NOVEMBER INT64_C(1796000000000) /* 2026-11-30 */
#define DECEMBER INT64_C(1797000000000) /* 2026-12-11 */
#define FILE_NAME "names/2026-11.jsonl"
#define ALLOCATIONS_MAX 200
/* Bytes in front of the lines of a large file, all of them a hole. */
#define LARGE ((off_t)300 * 1024 * 1024)
/* Values whose lines take many pieces of a file. */
#define MANY 2000

static bool disk_refuses;

int fsync(int fd) // NOLINT: in the place of libc's
{
    struct stat info;
    if (disk_refuses && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        errno = EIO;
        return -1;
    }
    return 0;
}

/* The names of these values, which are durable then. */
static int names_of(struct audit_rig *rig, const char *const *values, size_t count)
{
    char text[AUDIT_NAME_SIZE];
    int dir = open(rig->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct audit_names *names = audit_names_open(dir);
    int rc = names != NULL ? NG_OK : NG_EINTERNAL;
    buf_clear(&rig->error);
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        rc = audit_names_get(names, NOVEMBER, ng_str_of(values[i]), text, &rig->error);
    }
    if (rc == NG_OK) {
        rc = audit_names_sync(names, &rig->error);
    }
    audit_names_close(names);
    (void)close(dir);
    return rc;
}

static const char *const three[] = {"coder-1", "shared", "10.0.0.1"};

static uint64_t names_count(struct audit_rig *rig)
{
    struct audit_verify_report report;
    int rc = rig_verify(rig->dir, NULL, &report, &rig->error);
    if (rc != NG_OK) {
        fail_msg("%d: %s", rc, buf_cstr(&rig->error));
    }
    return report.names;
}

static void test_names_are_kept_for_a_month(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct audit_names *names = NULL;
    char first[AUDIT_NAME_SIZE];
    char other[AUDIT_NAME_SIZE];
    uint64_t count = 0;
    rig_make(&rig);
    rig_open(&rig);
    int dir = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    names = audit_names_open(dir);
    struct ng_str value = ng_str_of("coder-1");
    assert_int_equal(audit_names_get(names, NOVEMBER, value, first, &rig.error), NG_OK);
    assert_int_equal(audit_names_get(names, NOVEMBER, ng_str_of("coder-2"), other, &rig.error),
                     NG_OK);
    assert_string_not_equal(first, other);
    assert_int_equal(audit_names_sync(names, &rig.error), NG_OK);
    audit_names_close(names);
    /* Also by the next start. */
    names = audit_names_open(dir);
    assert_int_equal(audit_names_get(names, NOVEMBER, value, other, &rig.error), NG_OK);
    assert_string_equal(first, other);
    assert_int_equal(audit_names_get(names, DECEMBER, value, other, &rig.error), NG_OK);
    assert_string_not_equal(first, other);
    /* Bytes that are no text. */
    assert_int_equal(audit_names_get(names, DECEMBER, ng_str_of("\xff\n\""), other, &rig.error),
                     NG_OK);
    assert_int_equal(audit_names_sync(names, &rig.error), NG_OK);
    audit_names_close(names);
    assert_int_equal(audit_names_check(dir, &count, &rig.error), NG_OK);
    assert_int_equal(count, 4);
    (void)close(dir);
    rig_done(&rig);
}

/* A line that is gone is redacted; one that was changed is found; one that a kill has cut is
 * cut off. */
static void test_names_are_checked(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct audit_verify_report report;
    size_t len = 0;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 3);
    assert_int_equal(names_count(&rig), 0);
    assert_int_equal(names_of(&rig, three, NG_COUNT(three)), NG_OK);
    assert_int_equal(names_count(&rig), 3);
    char *names = rig_read(&rig, FILE_NAME, &len);
    rig_write(&rig, FILE_NAME, ng_str_of(strchr(names, '\n') + 1));
    assert_int_equal(names_count(&rig), 2);
    rig_write(&rig, FILE_NAME, str_make(names, len - 1)); /* as if it were being written */
    assert_int_equal(names_count(&rig), 3);
    strstr(names, "coder-1")[0] = 'd';
    rig_write(&rig, FILE_NAME, str_make(names, len));
    assert_int_equal(rig_verify(rig.dir, NULL, &report, &rig.error), NG_EFAILED);
    assert_non_null(strstr(buf_cstr(&rig.error), "line 1 of the audit log's file " FILE_NAME));
    assert_int_equal(report.bad_first, 3);
    free(names);
    rig_write(&rig, FILE_NAME, ng_str_of("{\"name\":\"~00"));
    assert_int_equal(names_of(&rig, three, NG_COUNT(three)), NG_OK);
    assert_int_equal(names_count(&rig), 3);
    rig_done(&rig);
}

static void test_a_refusing_disk(void **state)
{
    (void)state;
    struct audit_rig rig;
    char text[AUDIT_NAME_SIZE];
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 1);
    int dir = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct audit_names *names = audit_names_open(dir);
    buf_clear(&rig.error);
    assert_int_equal(audit_names_get(names, NOVEMBER, ng_str_of("a"), text, &rig.error), NG_OK);
    disk_refuses = true;
    assert_int_equal(audit_names_sync(names, &rig.error), NG_EUNAVAILABLE);
    assert_non_null(strstr(buf_cstr(&rig.error), FILE_NAME));
    /* The next month begins when this one is on the disk. */
    assert_int_equal(audit_names_get(names, DECEMBER, ng_str_of("a"), text, &rig.error),
                     NG_EUNAVAILABLE);
    disk_refuses = false;
    assert_int_equal(audit_names_get(names, DECEMBER, ng_str_of("a"), text, &rig.error), NG_OK);
    assert_int_equal(audit_names_sync(names, &rig.error), NG_OK);
    audit_names_close(names);
    (void)close(dir);
    assert_int_equal(names_count(&rig), 2); /* each once */
    rig_done(&rig);
}

/* ---- large files ---- */

/* The value behind the name of a value; `text` is the name's line. */
static void expect_behind(int dir, const char *text, const char *value)
{
    struct ng_str found;
    struct buf error;
    struct audit_values *values = audit_values_open(dir);
    char wanted[AUDIT_NAMED_MAX + 32];
    (void)snprintf(wanted, sizeof(wanted), "\"value\":\"%s\"}", value);
    const char *line = strstr(text, wanted);
    assert_non_null(line);
    while (line > text && line[-1] != '\n') {
        line--;
    }
    const struct ng_str name = str_make(strchr(line, '~'), AUDIT_NAME_SIZE - 1);
    buf_init(&error, 1024);
    assert_int_equal(
        audit_values_get(values, ng_str_of("2026-11-30T00:00:00Z"), name, &found, &error),
        NG_OK);
    assert_true(str_is(found, value));
    audit_values_close(values);
    buf_done(&error);
}

/* More than memory should hold: the end is read at a start, and all of it in pieces. */
static void test_a_large_file(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct stat info;
    uint64_t count = 0;
    size_t len = 0;
    rig_make(&rig);
    rig_open(&rig);
    assert_int_equal(names_of(&rig, three, NG_COUNT(three)), NG_OK);
    char *lines = rig_read(&rig, FILE_NAME, &len);
    int dir = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(dir, FILE_NAME, O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, "\n", 1, LARGE), 1);
    assert_int_equal(pwrite(fd, lines, len, LARGE + 1), len);
    assert_int_equal(names_of(&rig, three, NG_COUNT(three)), NG_OK);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_size, LARGE + 1 + (off_t)len); /* they have their lines */
    expect_behind(dir, lines, "10.0.0.1");
    assert_int_equal(audit_names_check(dir, &count, &rig.error), NG_EFAILED);
    assert_int_equal(count, 1 + NG_COUNT(three));
    assert_non_null(strstr(buf_cstr(&rig.error), "line 1 of the audit log's file " FILE_NAME));
    buf_clear(&rig.error);
    assert_int_equal(audit_values_redact(dir, ng_str_of("shared"), &count, &rig.error),
                     NG_EFAILED);
    assert_non_null(strstr(buf_cstr(&rig.error), "damaged"));
    (void)close(fd);
    (void)close(dir);
    free(lines);
    rig_done(&rig);
}

/* Lines begin in one piece and end in the next. */
static void test_many_names(void **state)
{
    (void)state;
    struct audit_rig rig;
    static char texts[MANY][AUDIT_NAMED_MAX];
    static const char *values[MANY];
    uint64_t count = 0;
    uint32_t seed = 1;
    size_t len = 0;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 1);
    for (size_t i = 0; i < MANY; i++) {
        int digits = snprintf(texts[i], sizeof(texts[i]), "%zu-", i);
        memset(texts[i] + digits, 'x', rig_any(&seed, AUDIT_NAMED_MAX - 10));
        values[i] = texts[i];
    }
    assert_int_equal(names_of(&rig, values, MANY), NG_OK);
    assert_int_equal(names_of(&rig, values, MANY), NG_OK); /* they are known */
    assert_int_equal(names_count(&rig), MANY);
    char *lines = rig_read(&rig, FILE_NAME, &len);
    int dir = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < MANY; i += MANY / 10) {
        expect_behind(dir, lines, values[i]);
    }
    assert_int_equal(audit_values_redact(dir, ng_str_of(values[7]), &count, &rig.error), NG_OK);
    assert_int_equal(count, 1);
    char *kept = rig_read(&rig, FILE_NAME, &len);
    char *gone = strstr(lines, values[7]);
    while (gone > lines && gone[-1] != '\n') {
        gone--;
    }
    const char *after = strchr(gone, '\n') + 1;
    memmove(gone, after, strlen(after) + 1);
    assert_string_equal(kept, lines);
    assert_int_equal(names_count(&rig), MANY - 1);
    (void)close(dir);
    free(lines);
    free(kept);
    rig_done(&rig);
}

/* More values than are remembered: one that is used on and on keeps its name. */
static void test_a_used_value_has_one_line(void **state)
{
    (void)state;
    struct audit_rig rig;
    char first[AUDIT_NAME_SIZE];
    char text[AUDIT_NAME_SIZE];
    rig_make(&rig);
    rig_open(&rig);
    int dir = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct audit_names *names = audit_names_open(dir);
    const struct ng_str agent = ng_str_of("coder-1");
    assert_int_equal(audit_names_get(names, NOVEMBER, agent, first, &rig.error), NG_OK);
    for (size_t i = 0; i < 2 * AUDIT_NAMES_MAX; i++) {
        char id[24];
        int len = snprintf(id, sizeof(id), "doc-%zu", i);
        assert_int_equal(
            audit_names_get(names, NOVEMBER, str_make(id, (size_t)len), text, &rig.error),
            NG_OK);
        assert_int_equal(audit_names_get(names, NOVEMBER, agent, text, &rig.error), NG_OK);
        assert_string_equal(text, first);
        if (i % 10000 == 0) {
            assert_int_equal(audit_names_sync(names, &rig.error), NG_OK);
        }
    }
    audit_names_close(names);
    (void)close(dir);
    rig_done(&rig);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct audit_rig rig;
    bool failed = true;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 1);
    assert_int_equal(names_of(&rig, three, 2), NG_OK);
    for (long at = 0; failed; at++) {
        assert_true(at < ALLOCATIONS_MAX);
        alloc_fail_after(at);
        int rc = names_of(&rig, three, NG_COUNT(three));
        alloc_fail_after(-1);
        failed = rc != NG_OK;
        assert_true(rc == NG_OK || rc == NG_EINTERNAL);
    }
    assert_int_equal(names_count(&rig), 3);
    rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_kept_for_a_month),
        cmocka_unit_test(test_names_are_checked),
        cmocka_unit_test(test_a_refusing_disk),
        cmocka_unit_test(test_a_large_file),
        cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_a_used_value_has_one_line),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
