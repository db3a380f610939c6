/* SPDX-License-Identifier: MIT */
/*
 * plain_writer.c - the baseline for durable writes: one sqlite connection (WAL,
 * synchronous=FULL) that updates one row per transaction, as a plain server would. Prints one
 * JSON object.
 *
 *   plain_writer FILE SECONDS BYTES
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define WRITER_ROWS 32

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void must(sqlite3 *db, int rc)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW) {
        fprintf(stderr, "plain_writer: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        return 2;
    }
    sqlite3 *db = NULL;
    sqlite3_stmt *put = NULL;
    must(db, sqlite3_open(argv[1], &db));
    must(db, sqlite3_exec(db,
                          "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE IF "
                          "NOT EXISTS notebook("
                          "name INTEGER PRIMARY KEY, revision INTEGER, text TEXT)",
                          NULL, NULL, NULL));
    must(db, sqlite3_prepare_v2(
                 db,
                 "INSERT INTO notebook VALUES(?1,1,?2) ON CONFLICT(name) DO UPDATE SET "
                 "revision=revision+1, text=?2",
                 -1, &put, NULL));
    size_t bytes = strtoul(argv[3], NULL, 10);
    char *text = malloc(bytes + 1);
    if (text == NULL) {
        return 1;
    }
    memset(text, 'x', bytes);
    int64_t start = now_ns();
    int64_t end = start + (int64_t)(strtod(argv[2], NULL) * 1e9);
    unsigned long rows = 0;
    while (now_ns() < end) {
        char digits[24];
        int len = snprintf(digits, sizeof(digits), "%08lu", rows);
        if (len > 0 && (size_t)len <= bytes) {
            memcpy(text, digits, (size_t)len);
            memcpy(text + bytes - (size_t)len, digits, (size_t)len);
        }
        must(db, sqlite3_bind_int(put, 1, (int)(rows % WRITER_ROWS)));
        must(db, sqlite3_bind_text(put, 2, text, (int)bytes, SQLITE_STATIC));
        must(db, sqlite3_step(put));
        must(db, sqlite3_reset(put));
        rows++;
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("{\"rows\":%lu,\"seconds\":%.3f,\"rate\":%.1f,\"cpu_us\":%.2f}\n", rows, seconds,
           (double)rows / seconds, cpu * 1e6 / (double)rows);
    sqlite3_finalize(put);
    sqlite3_close(db);
    free(text);
    return 0;
}
