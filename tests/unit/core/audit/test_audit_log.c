/* SPDX-License-Identifier: MIT */
/* test_audit_log.c - a log in its folder: what is written, what is found again, and what is
 * refused. */
#include "test_audit_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/audit/audit_pending.h"
#include "core/base/arena.h"
#include "core/base/str.h"

#define MANY 70000 /* entries: three levels of tiles */
#define ALLOCATIONS_MAX 4000

static void expect_file(const struct audit_rig *rig, const char *name, bool wanted)
{
    char path[RIG_PATH_SIZE + 128];
    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    if ((access(path, F_OK) == 0) != wanted) {
        fail_msg("%s is %sthere", name, wanted ? "not " : "");
    }
}

/* Opening fails with this, and says so. */
static void expect_refused(struct audit_rig *rig, int wanted, const char *sentence)
{
    struct audit_log *log = NULL;
    buf_clear(&rig->error);
    assert_int_equal(audit_log_open(rig->dir, ng_str_of(RIG_NAME), &log, &rig->error), wanted);
    assert_null(log);
    if (strstr(buf_cstr(&rig->error), sentence) == NULL) {
        fail_msg("%s", buf_cstr(&rig->error));
    }
}

static void test_a_new_log_has_keys_and_a_checkpoint(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct stat info;
    char path[RIG_PATH_SIZE + 8];
    size_t len = 0;
    rig_make(&rig);
    rig_open(&rig);
    (void)snprintf(path, sizeof(path), "%s/key", rig.dir);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(stat(rig.dir, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    char *text = rig_read(&rig, "key.pub", &len);
    assert_true(strncmp(text, RIG_NAME "+", strlen(RIG_NAME) + 1) == 0);
    free(text);
    expect_file(&rig, "checkpoint", false);
    rig_grow(&rig, 0);
    text = rig_read(&rig, "checkpoint", &len);
    assert_true(strncmp(text, RIG_NAME "\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n",
                        strlen(RIG_NAME) + 49) == 0);
    free(text);
    rig_check(&rig, 0);
    rig_done(&rig);
}

static void test_entries_are_found_again(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 254, 1, 1, 255, 300, 7};
    struct audit_rig rig;
    uint64_t size = 0;
    rig_make(&rig);
    rig_open(&rig);
    for (size_t i = 0; i < NG_COUNT(steps); i++) {
        rig_grow(&rig, steps[i]);
        size += steps[i];
        rig_check(&rig, size);
        /* Those that wait survive as well. */
        assert_int_equal(rig_append(&rig, 3), NG_OK);
        rig_check(&rig, size);
        size += 3;
        rig_close(&rig);
        rig_open(&rig);
        assert_int_equal(audit_log_size(rig.log), size);
        rig_grow(&rig, 0);
        rig_check(&rig, size);
    }
    rig_done(&rig);
}

static void test_only_needed_partial_tiles_stay(void **state)
{
    (void)state;
    struct audit_rig rig;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 100);
    expect_file(&rig, "tile/0/000.p/100", true);
    expect_file(&rig, "tile/entries/000.p/100", true);
    rig_grow(&rig, 50);
    expect_file(&rig, "tile/0/000.p/100", false);
    expect_file(&rig, "tile/entries/000.p/100", false);
    expect_file(&rig, "tile/0/000.p/150", true);
    rig_grow(&rig, 106);
    expect_file(&rig, "tile/0/000.p", false);
    expect_file(&rig, "tile/entries/000.p", false);
    expect_file(&rig, "tile/0/000", true);
    expect_file(&rig, "tile/1/000.p/1", true);
    rig_grow(&rig, 600);
    expect_file(&rig, "tile/1/000.p/1", false);
    expect_file(&rig, "tile/1/000.p/3", true);
    expect_file(&rig, "tile/entries/003.p/88", true);
    rig_check(&rig, 856);
    rig_done(&rig);
}

static void test_without_news_nothing_is_written(void **state)
{
    (void)state;
    struct audit_rig rig;
    size_t len = 0;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 10);
    rig_write(&rig, "checkpoint", ng_str_of("mark"));
    rig_grow(&rig, 0);
    char *text = rig_read(&rig, "checkpoint", &len);
    assert_string_equal(text, "mark");
    free(text);
    rig_done(&rig);
}

/* Many entries in one fold, and in between by the limit of `pending`. */
static void test_a_large_log(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct tlog_proof proof;
    struct buf problem;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 1000);
    struct checkpoint old = audit_log_checkpoint(rig.log);
    assert_int_equal(rig_append(&rig, MANY - 1000), NG_OK);
    assert_true(audit_log_checkpoint(rig.log).size > old.size); /* over AUDIT_PENDING_MAX */
    rig_grow(&rig, 0);
    struct checkpoint now = audit_log_checkpoint(rig.log);
    assert_int_equal(now.size, MANY);
    expect_file(&rig, "tile/1/000", true);
    expect_file(&rig, "tile/2/000.p/1", true);
    rig_check(&rig, MANY);
    /* Its tiles prove that it grew, and what it has. */
    buf_init(&problem, 4096);
    int dir = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct audit_tiles tiles = {dir, MANY, &problem};
    const struct tlog_source source = {audit_tiles_source, &tiles};
    assert_int_equal(tlog_prove_consistency(&source, old.size, MANY, &proof), NG_OK);
    assert_int_equal(tlog_check_consistency(&proof, old.size, MANY, &old.root, &now.root),
                     NG_OK);
    struct tlog_hash leaf;
    char text[RIG_ENTRY_SIZE];
    assert_int_equal(tlog_hash_leaf(rig_entry(66666, 0, text), &leaf), NG_OK);
    assert_int_equal(tlog_prove_inclusion(&source, 66666, MANY, &proof), NG_OK);
    assert_int_equal(tlog_check_inclusion(&proof, 66666, MANY, &leaf, &now.root), NG_OK);
    struct buf bundle;
    struct ng_str entry;
    buf_init(&bundle, TLOG_BUNDLE_MAX);
    assert_int_equal(audit_tiles_entry(&tiles, 66666, &bundle, &entry), NG_OK);
    assert_true(str_equal(entry, rig_entry(66666, 0, text)));
    buf_done(&bundle);
    buf_done(&problem);
    (void)close(dir);
    rig_done(&rig);
}

static void test_entries_have_a_limit(void **state)
{
    (void)state;
    struct audit_rig rig;
    size_t done = 0;
    char *text = calloc(1, TLOG_ENTRY_MAX + 1);
    assert_non_null(text);
    rig_make(&rig);
    rig_open(&rig);
    const struct ng_str entries[] = {str_make(text, TLOG_ENTRY_MAX), STR_NONE,
                                     str_make(text, TLOG_ENTRY_MAX + 1), ng_str_of("x")};
    assert_int_equal(audit_log_append(rig.log, entries, NG_COUNT(entries), &done, &rig.error),
                     NG_ETOOLARGE);
    assert_int_equal(done, 2);
    assert_non_null(strstr(buf_cstr(&rig.error), "65536 bytes"));
    rig_grow(&rig, 0);
    struct audit_verify_report report;
    assert_int_equal(rig_verify(rig.dir, NULL, &report, &rig.error), NG_OK);
    assert_int_equal(report.size, 2);
    free(text);
    rig_done(&rig);
}

/* ---- what is refused ---- */

static void test_keys_must_be_those_of_the_log(void **state)
{
    (void)state;
    struct audit_rig rig;
    size_t len = 0;
    char path[RIG_PATH_SIZE + 8];
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 5);
    rig_close(&rig);
    (void)snprintf(path, sizeof(path), "%s/key", rig.dir);
    char *key = rig_read(&rig, "key", &len);
    char *public_key = rig_read(&rig, "key.pub", &len);
    assert_int_equal(chmod(path, 0640), 0);
    expect_refused(&rig, NG_EFORBIDDEN, "mode 0640");
    assert_int_equal(chmod(path, 0600), 0);
    rig_write(&rig, "key", ng_str_of("nonsense"));
    expect_refused(&rig, NG_EFAILED, "key is damaged");
    assert_int_equal(unlink(path), 0);
    expect_refused(&rig, NG_EFAILED, "key is missing");
    rig_write(&rig, "key", ng_str_of(key));
    rig_write(&rig, "key.pub",
              ng_str_of("PeterNeumann+c74f20a3+"
                        "ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"));
    expect_refused(&rig, NG_EFAILED, "two keys");
    /* The public one follows from the other. */
    (void)snprintf(path, sizeof(path), "%s/key.pub", rig.dir);
    assert_int_equal(unlink(path), 0);
    rig_open(&rig);
    char *again = rig_read(&rig, "key.pub", &len);
    assert_string_equal(again, public_key);
    rig_check(&rig, 5);
    free(key);
    free(public_key);
    free(again);
    rig_done(&rig);
}

static void test_damage_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *sentence;
    } damages[] = {
        {"checkpoint", "checkpoint"},
        {"tile/0/001.p/44", "another root"},
        {"tile/1/000.p/1", "another root"},
        {"tile/entries/001.p/44", "not that of its tile"},
    };
    struct audit_rig rig;
    char path[RIG_PATH_SIZE + 128];
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 300);
    rig_close(&rig);
    for (size_t i = 0; i < NG_COUNT(damages); i++) {
        size_t len = 0;
        char *bytes = rig_read(&rig, damages[i].name, &len);
        assert_non_null(bytes);
        bytes[20] ^= 1;
        rig_write(&rig, damages[i].name, str_make(bytes, len));
        expect_refused(&rig, NG_EFAILED, damages[i].sentence);
        bytes[20] ^= 1;
        rig_write(&rig, damages[i].name, str_make(bytes, len - 1));
        expect_refused(&rig, NG_EFAILED, "");
        (void)snprintf(path, sizeof(path), "%s/%s", rig.dir, damages[i].name);
        assert_int_equal(unlink(path), 0);
        expect_refused(&rig, NG_EFAILED, "missing");
        rig_write(&rig, damages[i].name, str_make(bytes, len));
        free(bytes);
    }
    rig_open(&rig);
    rig_check(&rig, 300);
    rig_done(&rig);
}

/* ---- pending ---- */

/* The whole records before a torn one count; what another program wrote is found. */
static void test_a_torn_record_is_cut_off(void **state)
{
    (void)state;
    struct audit_rig rig;
    size_t len = 0;
    size_t before = 0;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 10);
    assert_int_equal(rig_append(&rig, 2), NG_OK);
    free(rig_read(&rig, "pending", &before));
    assert_int_equal(rig_append(&rig, 1), NG_OK);
    rig_close(&rig);
    char *bytes = rig_read(&rig, "pending", &len);
    for (size_t at = before; at <= len; at++) {
        rig_write(&rig, "pending", str_make(bytes, at));
        rig_open(&rig);
        assert_int_equal(audit_log_size(rig.log), at == len ? 13 : 12);
        rig_close(&rig);
    }
    bytes[len - 1] ^= 1;
    rig_write(&rig, "pending", str_make(bytes, len));
    rig_open(&rig);
    assert_int_equal(audit_log_size(rig.log), 12);
    rig_grow(&rig, 1);
    rig_check(&rig, 13);
    free(bytes);
    rig_done(&rig);
}

static void test_pending_must_follow(void **state)
{
    (void)state;
    struct audit_rig rig;
    size_t len = 0;
    rig_make(&rig);
    rig_open(&rig);
    rig_grow(&rig, 10);
    assert_int_equal(rig_append(&rig, 2), NG_OK);
    char *bytes = rig_read(&rig, "pending", &len);
    rig_grow(&rig, 3);
    rig_close(&rig);
    /* All of it is in the tiles: the end of a fold is made up for. */
    rig_write(&rig, "pending", str_make(bytes, len));
    rig_open(&rig);
    assert_int_equal(audit_log_size(rig.log), 15);
    rig_close(&rig);
    /* A gap, numbers out of order, and one record too many. */
    bytes[7] = 20;
    rig_write(&rig, "pending", str_make(bytes, len));
    expect_refused(&rig, NG_EFAILED, "entry 11 behind entry 20");
    struct buf batch;
    buf_init(&batch, 4096);
    assert_int_equal(audit_pending_record(16, ng_str_of("x"), &batch), NG_OK);
    rig_write(&rig, "pending", buf_str(&batch));
    expect_refused(&rig, NG_EFAILED, "do not follow");
    buf_clear(&batch);
    assert_int_equal(audit_pending_record(14, ng_str_of("x"), &batch), NG_OK);
    assert_int_equal(audit_pending_record(15, ng_str_of("x"), &batch), NG_OK);
    rig_write(&rig, "pending", buf_str(&batch));
    expect_refused(&rig, NG_EFAILED, "do not follow");
    rig_write(&rig, "pending", STR_NONE);
    rig_open(&rig);
    rig_check(&rig, 15);
    /* Another program writes into it meanwhile. */
    assert_int_equal(rig_append(&rig, 2), NG_OK);
    rig_write(&rig, "pending", ng_str_of("nonsense"));
    buf_clear(&rig.error);
    assert_int_equal(audit_log_fold(rig.log, &rig.error), NG_EFAILED);
    assert_non_null(strstr(buf_cstr(&rig.error), "changed by another program at entry 15"));
    buf_done(&batch);
    free(bytes);
    rig_done(&rig);
}

/* ---- memory ---- */

/* Each single allocation fails in turn: the step fails, and works when it is done again. */
static void test_no_memory(void **state)
{
    (void)state;
    struct audit_rig rig;
    uint64_t size = 0;
    long fails = 0;
    bool failed = true;
    rig_make(&rig);
    for (long at = 0; failed; at++) {
        assert_true(at < ALLOCATIONS_MAX);
        struct audit_verify_report report;
        struct buf error;
        char room[1024];
        char text[RIG_ENTRY_SIZE];
        size_t done = 0;
        struct ng_str entry = rig_entry(size, 0, text);
        error = (struct buf){.data = room, .cap = sizeof(room), .max = sizeof(room) - 1};
        alloc_fail_after(at);
        int rc = audit_log_open(rig.dir, ng_str_of(RIG_NAME), &rig.log, &error);
        if (rc == NG_OK) {
            rc = audit_log_append(rig.log, &entry, 1, &done, &error);
        }
        if (rc == NG_OK) {
            rc = audit_log_fold(rig.log, &error);
        }
        if (rc == NG_OK) {
            rc = audit_verify(rig.dir, STR_NONE, &report, &error);
        }
        alloc_fail_after(-1);
        failed = rc != NG_OK;
        fails += failed;
        assert_true(rc == NG_OK || rc == NG_EINTERNAL);
        if (failed && strstr(buf_cstr(&error), "memory") == NULL) {
            fail_msg("allocation %ld: %s", at, buf_cstr(&error));
        }
        size += done;
        if (rig.log == NULL) {
            rig_open(&rig);
        }
        rig_grow(&rig, 0);
        rig_check(&rig, size);
        rig_close(&rig);
    }
    assert_true(fails > 5);
    rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_log_has_keys_and_a_checkpoint),
        cmocka_unit_test(test_entries_are_found_again),
        cmocka_unit_test(test_only_needed_partial_tiles_stay),
        cmocka_unit_test(test_without_news_nothing_is_written),
        cmocka_unit_test(test_a_large_log),
        cmocka_unit_test(test_entries_have_a_limit),
        cmocka_unit_test(test_keys_must_be_those_of_the_log),
        cmocka_unit_test(test_damage_is_refused),
        cmocka_unit_test(test_a_torn_record_is_cut_off),
        cmocka_unit_test(test_pending_must_follow),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
