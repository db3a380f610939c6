/* SPDX-License-Identifier: MIT */
/* test_audit_prune.c - the oldest bundles and their tiles go, and what is left is still whole.
 */
#include "test_audit_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/audit/audit_mark.h"
#include "core/audit/audit_read.h"
#include "core/audit/audit_tiles.h"
#include "core/audit/audit_values.h"
#include "core/audit/writer/audit_writer.h"
#include "core/base/str.h"

#define SIZE 70000 /* a full tile of level 1, and a partial one */
#define DAY_MS INT64_C(86400000)
#define NOW_MS INT64_C(1796000000000)

/* The bundles get older by a day each: the first one is of 300 days ago. */
static void make_old(const struct audit_rig *rig, uint64_t size)
{
    for (uint64_t i = 0; i < size >> TLOG_TILE_BITS; i++) {
        char name[TLOG_PATH_SIZE];
        char path[RIG_PATH_SIZE + TLOG_PATH_SIZE];
        const time_t second = (time_t)((NOW_MS - (300 - (int64_t)i) * DAY_MS) / 1000);
        const struct timespec times[2] = {{second, 0}, {second, 0}};
        tlog_tile_path(TLOG_ENTRIES, i, TLOG_TILE_WIDTH, name);
        (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
}

static uint64_t prune(struct audit_rig *rig, uint64_t size, int64_t keep_ms, uint64_t max_bytes)
{
    uint64_t first = 0;
    int dir = open(rig->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct audit_tiles tiles = {dir, size, &rig->error};
    const struct audit_prune limits = {keep_ms, max_bytes};
    buf_clear(&rig->error);
    int rc = audit_tiles_prune(&tiles, &limits, NOW_MS, &first);
    if (rc != NG_OK) {
        fail_msg("%d: %s", rc, buf_cstr(&rig->error));
    }
    (void)close(dir);
    return first;
}

static bool has_bundle(const struct audit_rig *rig, uint64_t index)
{
    char name[TLOG_PATH_SIZE];
    char path[RIG_PATH_SIZE + TLOG_PATH_SIZE];
    bool found[2];
    for (int i = 0; i < 2; i++) {
        tlog_tile_path(i == 0 ? 0 : TLOG_ENTRIES, index, TLOG_TILE_WIDTH, name);
        (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
        found[i] = access(path, F_OK) == 0;
    }
    assert_int_equal(found[0], found[1]);
    return found[0];
}

/* Verifies against the checkpoint `kept`; NULL: without. */
static int verify(struct audit_rig *rig, const char *kept, struct audit_verify_report *ret)
{
    buf_clear(&rig->error);
    return rig_verify(rig->dir, kept, ret, &rig->error);
}

static void expect_entry(struct audit_reader *reader, uint64_t number)
{
    char room[RIG_ENTRY_SIZE];
    struct ng_str entry;
    struct buf error;
    buf_init(&error, 1024);
    assert_int_equal(audit_reader_get(reader, number, &entry, &error), NG_OK);
    assert_true(str_equal(entry, rig_entry(number, 0, room)));
    buf_done(&error);
}

static void test_old_bundles_go(void **state)
{
    struct audit_rig rig;
    struct audit_verify_report report;
    struct ng_str entry;
    size_t len = 0;
    (void)state;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 2048);
    char *whole = rig_read(&rig, "checkpoint", &len); /* of whole tiles */
    rig_grow(&rig, 100);
    char *between = rig_read(&rig, "checkpoint", &len);
    rig_grow(&rig, SIZE - 2148);
    char *newest = rig_read(&rig, "checkpoint", &len);
    make_old(&rig, SIZE);
    assert_int_equal(prune(&rig, SIZE, 0, 0), 0);
    assert_int_equal(prune(&rig, SIZE, 301 * DAY_MS, 0), 0);
    assert_int_equal(prune(&rig, SIZE, 290 * DAY_MS, 0), 10 * TLOG_TILE_WIDTH);
    assert_false(has_bundle(&rig, 0));
    assert_false(has_bundle(&rig, 9));
    assert_true(has_bundle(&rig, 10));
    assert_int_equal(verify(&rig, NULL, &report), NG_OK);
    assert_int_equal(report.size, SIZE);
    assert_int_equal(report.pruned, 10 * TLOG_TILE_WIDTH);
    assert_int_equal(verify(&rig, whole, &report), NG_OK);
    assert_int_equal(verify(&rig, newest, &report), NG_OK);
    assert_int_equal(verify(&rig, between, &report), NG_EINVAL);
    assert_non_null(strstr(buf_cstr(&rig.error), "take a newer checkpoint"));

    struct audit_reader *reader = NULL;
    buf_clear(&rig.error);
    assert_int_equal(audit_reader_open(rig.dir, &reader, &rig.error), NG_OK);
    assert_int_equal(audit_reader_first(reader), 10 * TLOG_TILE_WIDTH);
    assert_int_equal(audit_reader_size(reader), SIZE);
    assert_int_equal(audit_reader_get(reader, 10 * TLOG_TILE_WIDTH - 1, &entry, &rig.error),
                     NG_ENOTFOUND);
    expect_entry(reader, 10 * TLOG_TILE_WIDTH);
    expect_entry(reader, SIZE - 1);
    audit_reader_close(reader);

    /* The log goes on, also after a start. */
    rig_close(&rig);
    rig_open(&rig);
    rig_grow(&rig, 700);
    assert_int_equal(verify(&rig, newest, &report), NG_OK);
    assert_int_equal(report.size, SIZE + 700);
    free(whole);
    free(between);
    free(newest);
    rig_done(&rig);
}

static void test_room(void **state)
{
    struct audit_rig rig;
    struct audit_verify_report report;
    uint64_t bytes = 0;
    (void)state;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 1300);
    for (uint64_t i = 3; i < 5; i++) { /* the newest two full ones */
        char name[TLOG_PATH_SIZE];
        size_t len = 0;
        tlog_tile_path(TLOG_ENTRIES, i, TLOG_TILE_WIDTH, name);
        char *bundle = rig_read(&rig, name, &len);
        assert_non_null(bundle);
        free(bundle);
        bytes += len + TLOG_TILE_BYTES;
    }
    assert_int_equal(prune(&rig, 1300, 0, bytes), 3 * TLOG_TILE_WIDTH);
    assert_int_equal(prune(&rig, 1300, 0, 1), 5 * TLOG_TILE_WIDTH); /* never the last one */
    assert_int_equal(verify(&rig, NULL, &report), NG_OK);
    rig_done(&rig);
}

/* A kill after `first` was written leaves files in front of it: the next time they go. */
static void test_a_kill(void **state)
{
    struct audit_rig rig;
    struct audit_verify_report report;
    (void)state;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 1300);
    rig_write(&rig, "first", ng_str_of("768"));
    assert_true(has_bundle(&rig, 2));
    assert_int_equal(verify(&rig, NULL, &report), NG_OK);
    assert_int_equal(prune(&rig, 1300, 0, 0), 768);
    assert_false(has_bundle(&rig, 0));
    assert_false(has_bundle(&rig, 2));
    assert_true(has_bundle(&rig, 3));
    rig_done(&rig);
}

/* A start reads the entries behind the mark: those that were pruned before the next mark are
 * gone, the others are read. */
static void test_a_mark_before_the_first_entry(void **state)
{
    struct audit_rig rig;
    struct audit_seqs seqs;
    const struct audit_mark mark = {.seq = 5, .entries = 100};
    const struct ng_str entry = ng_str_of("{\"v\":1,\"docs\":[{\"seq\":5},{\"seq\":7}]}");
    size_t done = 0;
    (void)state;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 1299);
    assert_int_equal(audit_log_append(rig.log, &entry, 1, &done, &rig.error), NG_OK);
    assert_int_equal(audit_log_fold(rig.log, &rig.error), NG_OK);
    assert_int_equal(prune(&rig, 1300, 0, 1), 1280);
    int rc = audit_seqs_read(rig.dir, &mark, &seqs, &rig.error);
    if (rc != NG_OK) {
        fail_msg("%d: %s", rc, buf_cstr(&rig.error));
    }
    assert_int_equal(seqs.count, 1);
    assert_true(audit_seqs_have(&seqs, 7));
    audit_seqs_done(&seqs);
    rig_done(&rig);
}

static void test_tampering(void **state)
{
    struct audit_rig rig;
    struct audit_verify_report report;
    char path[RIG_PATH_SIZE + 64];
    (void)state;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 1300);
    assert_int_equal(prune(&rig, 1300, 0, 1), 1280);
    rig_write(&rig, "first", ng_str_of("1024")); /* less than was pruned */
    assert_int_equal(verify(&rig, NULL, &report), NG_EFAILED);
    assert_int_equal(report.bad_first, 1024);
    rig_write(&rig, "first", ng_str_of("1536")); /* beyond the tree */
    assert_int_equal(verify(&rig, NULL, &report), NG_EFAILED);
    rig_write(&rig, "first", ng_str_of("1279"));
    assert_int_equal(verify(&rig, NULL, &report), NG_EFAILED);
    rig_write(&rig, "first", ng_str_of("1280"));
    assert_int_equal(verify(&rig, NULL, &report), NG_OK);
    /* The hashes of the pruned tiles are needed. */
    (void)snprintf(path, sizeof(path), "%s/tile/1/000.p/5", rig.dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(verify(&rig, NULL, &report), NG_EFAILED);
    rig_done(&rig);
}

static void test_the_writer_prunes(void **state)
{
    struct audit_rig rig;
    struct audit_verify_report report;
    struct audit_writer *writer = NULL;
    const struct audit_entry entry = {.time_ms = NOW_MS, .took_ms = -1, .outcome = "ok"};
    (void)state;
    rig_make(&rig);
    assert_int_equal(
        audit_writer_open(rig.dir, ng_str_of(RIG_NAME), AUDIT_AT_ONCE, &writer, &rig.error),
        NG_OK);
    audit_writer_keep(writer, 0, 1);
    for (int i = 0; i < 600; i++) {
        audit_writer_put(writer, &entry);
    }
    audit_writer_close(writer);
    assert_int_equal(verify(&rig, NULL, &report), NG_OK);
    assert_int_equal(report.size, 600);
    assert_int_equal(report.pruned, 512);
    rig_done(&rig);
}

/* Names of months that no entry is of any more. */
static void test_names(void **state)
{
    struct audit_rig rig;
    static const struct {
        int64_t time_ms;
        const char *file;
        bool stays;
    } months[] = {{INT64_C(1788000000000), "names/2026-08.jsonl", false},
                  {INT64_C(1791000000000), "names/2026-10.jsonl", true},
                  {INT64_C(1793800000000), "names/2026-11.jsonl", true}};
    static const char entry[] = "{\"v\":1,\"time\":\"2026-11-04T00:00:00.000Z\"}";
    const struct ng_str text = ng_str_of(entry);
    char name[AUDIT_NAME_SIZE];
    size_t done = 0;
    (void)state;
    rig_make(&rig);
    rig_open(&rig);
    assert_int_equal(audit_log_append(rig.log, &text, 1, &done, &rig.error), NG_OK);
    assert_int_equal(audit_log_fold(rig.log, &rig.error), NG_OK);
    int dir = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct audit_names *names = audit_names_open(dir);
    for (size_t i = 0; i < NG_COUNT(months); i++) {
        assert_int_equal(
            audit_names_get(names, months[i].time_ms, ng_str_of("ann"), name, &rig.error),
            NG_OK);
        assert_int_equal(audit_names_sync(names, &rig.error), NG_OK);
    }
    audit_names_close(names);
    const struct audit_tiles tiles = {dir, 1, &rig.error};
    assert_int_equal(audit_values_prune(&tiles, 0), NG_OK);
    for (size_t i = 0; i < NG_COUNT(months); i++) {
        size_t len = 0;
        char *file = rig_read(&rig, months[i].file, &len);
        assert_int_equal(file != NULL, months[i].stays);
        free(file);
    }
    (void)close(dir);
    rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_bundles_go),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_a_kill),
        cmocka_unit_test(test_a_mark_before_the_first_entry),
        cmocka_unit_test(test_tampering),
        cmocka_unit_test(test_the_writer_prunes),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
