/* SPDX-License-Identifier: MIT */
/* write_log LOG COUNT STEP: writes an audit log of COUNT entries, folded after each STEP; the
 * checkpoint of each is kept in LOG.past/. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/audit/audit_disk.h"
#include "core/audit/audit_log.h"
#include "core/base/str.h"

#define ENTRY_MAX 256
#define BATCH ((size_t)256)
#define COUNT_MAX 100000000

static int keep(const char *folder, const struct audit_log *log, const char *past)
{
    struct buf note;
    struct buf error;
    char name[64];
    int from = -1;
    int to = -1;
    buf_init(&note, NOTE_BYTES_MAX);
    buf_init(&error, ENTRY_MAX);
    (void)snprintf(name, sizeof(name), "%llu",
                   (unsigned long long)audit_log_checkpoint(log).size);
    int rc = audit_disk_open(folder, false, &from, &error);
    if (rc == NG_OK) {
        rc = audit_disk_open(past, true, &to, &error);
    }
    if (rc == NG_OK) {
        rc = audit_disk_read(from, AUDIT_CHECKPOINT_FILE, &note);
    }
    if (rc == NG_OK) {
        rc = audit_disk_replace(to, name, buf_str(&note), S_IRUSR | S_IWUSR);
    }
    (void)close(from);
    (void)close(to);
    buf_done(&note);
    buf_done(&error);
    return rc;
}

/* Appends entries `first` to `end`, a batch at a time. */
static int append(struct audit_log *log, uint64_t first, uint64_t end, struct buf *error)
{
    static char texts[BATCH][ENTRY_MAX];
    struct ng_str entries[BATCH];
    int rc = NG_OK;
    while (rc == NG_OK && first < end) {
        size_t count = size_min(BATCH, end - first);
        for (size_t i = 0; i < count; i++) {
            int len =
                snprintf(texts[i], ENTRY_MAX, "{\"v\":1,\"tool\":\"notebook\",\"n\":%llu}",
                         (unsigned long long)first + i);
            entries[i] = str_make(texts[i], (size_t)len);
        }
        rc = audit_log_append(log, entries, count, &count, error);
        first += count;
    }
    return rc;
}

static int write_log(const char *folder, uint64_t count, uint64_t step, struct buf *error)
{
    struct audit_log *log = NULL;
    char past[ENTRY_MAX];
    int rc = audit_log_open(folder, ng_str_of("notegate/0123456789abcdef"), &log, error);
    (void)snprintf(past, sizeof(past), "%s.past", folder);
    for (uint64_t first = 0; rc == NG_OK && first < count; first += step) {
        rc = append(log, first, u64_min(first + step, count), error);
        rc = rc == NG_OK ? audit_log_fold(log, error) : rc;
        rc = rc == NG_OK ? keep(folder, log, past) : rc;
    }
    audit_log_close(log);
    return rc;
}

int main(int argc, char **argv)
{
    struct buf error;
    uint64_t count = 0;
    uint64_t step = 0;
    if (argc != 4 || !str_number(ng_str_of(argv[2]), COUNT_MAX, &count) ||
        !str_number(ng_str_of(argv[3]), COUNT_MAX, &step) || step == 0) {
        (void)fprintf(stderr, "usage: write_log LOG COUNT STEP\n");
        return 2;
    }
    buf_init(&error, 4096);
    int rc = write_log(argv[1], count, step, &error);
    if (rc != NG_OK) {
        (void)fprintf(stderr, "%d: %s\n", rc, buf_cstr(&error));
    }
    buf_done(&error);
    return rc == NG_OK ? 0 : 1;
}
