/* SPDX-License-Identifier: MIT */
#include "test_audit_rig.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/str.h"

#define BATCH_ENTRIES 64 /* made at a time */

/* ---- folders ---- */

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    (void)remove(path);
    return 0;
}

void rig_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void rig_make(struct audit_rig *rig)
{
    char above[RIG_PATH_SIZE - 8];
    *rig = (struct audit_rig){.log = NULL};
    log_set_level(NG_LOG_ERROR);
    buf_init(&rig->error, 4096);
    (void)snprintf(above, sizeof(above), "%s/notegate-audit-XXXXXX", harness_tmp());
    assert_non_null(mkdtemp(above));
    (void)snprintf(rig->dir, sizeof(rig->dir), "%s/audit", above);
}

void rig_open(struct audit_rig *rig)
{
    buf_clear(&rig->error);
    int rc = audit_log_open(rig->dir, ng_str_of(RIG_NAME), &rig->log, &rig->error);
    if (rc != NG_OK) {
        fail_msg("%d: %s", rc, buf_cstr(&rig->error));
    }
}

void rig_close(struct audit_rig *rig)
{
    audit_log_close(rig->log);
    rig->log = NULL;
}

void rig_done(struct audit_rig *rig)
{
    rig_close(rig);
    buf_done(&rig->error);
    *strrchr(rig->dir, '/') = '\0';
    rig_remove(rig->dir);
}

static int copy_to_fd(const char *from, int to)
{
    char block[16384];
    ssize_t got = 0;
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    while ((got = read(fd, block, sizeof(block))) > 0) {
        assert_int_equal(write(to, block, (size_t)got), got);
    }
    return close(fd);
}

static const char *copy_from;
static const char *copy_to;

static int copy_one(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    char to[RIG_PATH_SIZE * 2];
    (void)walk;
    (void)snprintf(to, sizeof(to), "%s%s", copy_to, path + strlen(copy_from));
    if (flag == FTW_D) {
        return mkdir(to, 0700);
    }
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, info->st_mode & 0777);
    assert_true(fd >= 0);
    assert_int_equal(copy_to_fd(path, fd), 0);
    return close(fd);
}

void rig_copy(const struct audit_rig *rig, const char *to)
{
    copy_from = rig->dir;
    copy_to = to;
    assert_int_equal(nftw(rig->dir, copy_one, 16, FTW_PHYS), 0);
}

char *rig_read(const struct audit_rig *rig, const char *name, size_t *ret_len)
{
    char path[RIG_PATH_SIZE + 128];
    struct stat info;
    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    assert_int_equal(fstat(fd, &info), 0);
    char *text = malloc((size_t)info.st_size + 1);
    assert_non_null(text);
    assert_int_equal(read(fd, text, (size_t)info.st_size), info.st_size);
    text[info.st_size] = '\0';
    *ret_len = (size_t)info.st_size;
    (void)close(fd);
    return text;
}

void rig_write(const struct audit_rig *rig, const char *name, struct ng_str bytes)
{
    char path[RIG_PATH_SIZE + 128];
    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.data, bytes.len), bytes.len);
    (void)close(fd);
}

/* ---- entries ---- */

uint32_t rig_any(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (uint32_t)((uint64_t)*seed * below >> 32);
}

struct ng_str rig_entry(uint64_t number, unsigned variant, char out[RIG_ENTRY_SIZE])
{
    uint32_t seed = (uint32_t)number;
    int len = snprintf(out, RIG_ENTRY_SIZE, "{\"v\":1,\"n\":%llu,\"variant\":%u,\"pad\":\"",
                       (unsigned long long)number, variant);
    size_t end = (size_t)len + rig_any(&seed, RIG_ENTRY_SIZE - 100);
    memset(out + len, 'x', end - (size_t)len);
    memcpy(out + end, "\"}", 2);
    return str_make(out, end + 2);
}

int rig_append(struct audit_rig *rig, size_t count)
{
    static char texts[BATCH_ENTRIES][RIG_ENTRY_SIZE];
    struct ng_str entries[BATCH_ENTRIES];
    int rc = NG_OK;
    buf_clear(&rig->error);
    while (rc == NG_OK && count > 0) {
        size_t some = size_min(count, BATCH_ENTRIES);
        size_t done = 0;
        for (size_t i = 0; i < some; i++) {
            entries[i] = rig_entry(audit_log_size(rig->log) + i, 0, texts[i]);
        }
        rc = audit_log_append(rig->log, entries, some, &done, &rig->error);
        count -= done;
    }
    return rc;
}

void rig_grow(struct audit_rig *rig, size_t count)
{
    int rc = rig_append(rig, count);
    if (rc == NG_OK) {
        rc = audit_log_fold(rig->log, &rig->error);
    }
    if (rc != NG_OK) {
        fail_msg("%d: %s", rc, buf_cstr(&rig->error));
    }
}

/* ---- checks ---- */

int rig_verify(const char *dir, const char *kept, struct audit_verify_report *ret,
               struct buf *problem)
{
    buf_clear(problem);
    return audit_verify(dir, kept == NULL ? STR_NONE : ng_str_of(kept), ret, problem);
}

void rig_check(const struct audit_rig *rig, uint64_t size)
{
    struct audit_verify_report report;
    struct buf problem;
    struct buf bundle;
    char text[RIG_ENTRY_SIZE];
    buf_init(&problem, 4096);
    buf_init(&bundle, TLOG_BUNDLE_MAX);
    int rc = rig_verify(rig->dir, NULL, &report, &problem);
    if (rc != NG_OK) {
        fail_msg("%d: %s", rc, buf_cstr(&problem));
    }
    assert_int_equal(report.size, size);
    int dir = open(rig->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    const struct audit_tiles tiles = {dir, size, &problem};
    struct ng_str entries[TLOG_TILE_WIDTH];
    size_t count = 0;
    for (uint64_t number = 0; number < size; number++) {
        size_t at = number % TLOG_TILE_WIDTH;
        if (at == 0) {
            assert_int_equal(
                audit_tiles_entries(&tiles, number / TLOG_TILE_WIDTH, &bundle, entries, &count),
                NG_OK);
        }
        assert_true(str_equal(entries[at], rig_entry(number, 0, text)));
    }
    (void)close(dir);
    buf_done(&problem);
    buf_done(&bundle);
}
