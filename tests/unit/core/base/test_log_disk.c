/* SPDX-License-Identifier: MIT */
/* test_log_disk.c - messages about a full disk, and their rate. The test moves the uptime. */
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "test_clock.h"
#include "test_log_rig.h"

#include "core/base/log.h"
#include "core/store/disk.h"

#define MESSAGE "the commit failed: no room is left for x"

/* In place of the C library's: a disk on which no other program makes room meanwhile. */
__attribute__((visibility("default"))) int statvfs(const char *path, struct statvfs *ret)
{
    static const struct statvfs half = {.f_bsize = 4096,
                                        .f_frsize = 4096,
                                        .f_blocks = 1000000,
                                        .f_bfree = 500000,
                                        .f_bavail = 500000};
    if (access(path, F_OK) != 0) {
        return -1;
    }
    *ret = half;
    return 0;
}

static size_t lines_with(const char *text, const char *what)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what)) {
        count++;
    }
    return count;
}

/* So many lines about refused writes while step() ran. */
static size_t told(struct disk *disk, void (*step)(struct disk *disk))
{
    struct catcher catcher;
    catch_begin(&catcher);
    step(disk);
    char *text = caught(&catcher);
    size_t count = lines_with(text, MESSAGE);
    free(text);
    return count;
}

static void refuse(struct disk *disk)
{
    disk_committed(disk, NG_EFULL, MESSAGE);
    disk_refused(disk, ng_str_of(MESSAGE)); /* the end of the same call */
}

static void refuse_many(struct disk *disk)
{
    for (int i = 0; i < 100; i++) {
        refuse(disk);
    }
}

static void take_and_refuse(struct disk *disk)
{
    for (int i = 0; i < 100; i++) {
        disk_committed(disk, NG_OK, "");
        refuse(disk);
    }
}

static void take(struct disk *disk)
{
    disk_committed(disk, NG_OK, "");
}

static void refuse_file(struct disk *disk)
{
    disk_refused(disk, ng_str_of(MESSAGE));
}

static bool has_reason(struct disk *disk)
{
    struct buf text;
    buf_init(&text, 4096);
    bool found = disk_reason(disk, 0, &text) && strstr(buf_cstr(&text), MESSAGE) != NULL;
    buf_done(&text);
    return found;
}

static void test_lines_and_reasons(void **state)
{
    (void)state;
    struct disk *disk = disk_new("/tmp");
    assert_non_null(disk);
    log_set_format(LOG_TEXT);
    test_clock_set_ahead(CLOCK_BOOTTIME, 0);
    assert_false(has_reason(disk));
    /* The first at once, then one a minute, whatever is refused. */
    assert_int_equal(told(disk, refuse), 1);
    assert_true(has_reason(disk));
    assert_int_equal(told(disk, refuse_many), 0);
    assert_int_equal(told(disk, disk_look), 0);
    test_clock_set_ahead(CLOCK_BOOTTIME, 61000);
    assert_int_equal(told(disk, disk_look), 1);
    assert_int_equal(told(disk, disk_look), 0);
    /* Also where small writes still find room. */
    assert_int_equal(told(disk, take_and_refuse), 0);
    assert_true(has_reason(disk));
    /* While it lasts, without another write. */
    test_clock_set_ahead(CLOCK_BOOTTIME, 122000);
    assert_int_equal(told(disk, disk_look), 1);
    test_clock_set_ahead(CLOCK_BOOTTIME, 183000);
    assert_int_equal(told(disk, disk_look), 1);
    assert_int_equal(told(disk, take), 0);
    assert_false(has_reason(disk));
    test_clock_set_ahead(CLOCK_BOOTTIME, 244000);
    assert_int_equal(told(disk, disk_look), 0);
    /* A file below a root on another disk: a line, and no reason. */
    assert_int_equal(told(disk, refuse_file), 1);
    assert_int_equal(told(disk, refuse_file), 0);
    assert_false(has_reason(disk));
    disk_close(disk);
}

static void test_what_is_low(void **state)
{
    static const struct {
        uint64_t free, total;
        bool low;
    } rooms[] = {
        {0, 0, false},
        {0, 1000, true},
        {99, 1000, true},
        {100, 1000, false},
        {1000, 1000, false},
        {UINT64_MAX / 20, UINT64_MAX, true},
        {UINT64_MAX / 5, UINT64_MAX, false},
    };
    struct buf text;
    struct disk_room room;
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rooms); i++) {
        room = (struct disk_room){rooms[i].free, rooms[i].total};
        assert_int_equal(disk_is_low(&room), rooms[i].low);
    }
    room = (struct disk_room){UINT64_C(3) << 29, UINT64_C(40) << 30};
    buf_init(&text, 256);
    disk_describe(&room, &text);
    assert_string_equal(buf_cstr(&text), "1.5 GiB of 40.0 GiB are free");
    buf_done(&text);
    assert_true(disk_ask("/tmp", &room));
    assert_true(room.free <= room.total);
    assert_false(disk_ask("/no/such/folder", &room));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_and_reasons),
        cmocka_unit_test(test_what_is_low),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
