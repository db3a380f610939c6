/* SPDX-License-Identifier: MIT */
/*
 * plain_work.c - the baselines for single steps of a call: what a plain program needs for the
 * same search, the same read of a file, or the same safe replacement of it, again and again for
 * so many seconds. Prints one JSON object.
 *
 *   plain_work search SECONDS FILE TABLE MATCH WEIGHTS
 *   plain_work read SECONDS FILE
 *   plain_work replace SECONDS FILE
 *
 * search: the ten best hits of an FTS5 table, with snippets. WEIGHTS are the arguments of bm25.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HITS 10
/* As in the gateway's answers, in words. */
#define SNIPPET_WORDS 31
#define TEXT_MAX 4096

/* State of the kind of work that was asked for. */
struct work {
    sqlite3 *db;
    sqlite3_stmt *find;
    char path[TEXT_MAX], other[TEXT_MAX];
    char *data;
    size_t cap, len;
    unsigned long hits;
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- search ---- */

static void must(struct work *work, int rc)
{
    if (rc != SQLITE_OK) {
        fprintf(stderr, "plain_work: %s\n", sqlite3_errmsg(work->db));
        exit(1);
    }
}

static void search_open(struct work *work, char **args)
{
    char text[TEXT_MAX];
    (void)snprintf(text, sizeof(text),
                   "SELECT rowid,snippet(%s,-1,'','','\xE2\x80\xA6',%d),rank FROM %s WHERE %s "
                   "MATCH ?1 AND rank MATCH 'bm25(%s)' ORDER BY rank LIMIT %d",
                   args[1], SNIPPET_WORDS, args[1], args[1], args[3], HITS);
    must(work, sqlite3_open_v2(args[0], &work->db, SQLITE_OPEN_READONLY, NULL));
    must(work, sqlite3_prepare_v2(work->db, text, -1, &work->find, NULL));
    must(work, sqlite3_bind_text(work->find, 1, args[2], -1, SQLITE_STATIC));
}

static void search_once(struct work *work)
{
    int rc;
    work->hits = 0;
    while ((rc = sqlite3_step(work->find)) == SQLITE_ROW) {
        work->hits += sqlite3_column_text(work->find, 1) != NULL;
    }
    must(work, rc == SQLITE_DONE ? SQLITE_OK : rc);
    must(work, sqlite3_reset(work->find));
}

/* ---- files ---- */

static void file_open(struct work *work, char **args)
{
    struct stat stat_of;
    (void)snprintf(work->path, sizeof(work->path), "%s", args[0]);
    (void)snprintf(work->other, sizeof(work->other), "%.4000s.new", args[0]);
    if (stat(work->path, &stat_of) != 0) {
        die(work->path);
    }
    work->cap = (size_t)stat_of.st_size;
    work->data = malloc(work->cap + 1);
    if (work->data == NULL) {
        die("malloc");
    }
}

static void read_once(struct work *work)
{
    int fd = open(work->path, O_RDONLY | O_CLOEXEC);
    work->len = 0;
    while (fd >= 0 && work->len < work->cap) {
        ssize_t n = read(fd, work->data + work->len, work->cap - work->len);
        if (n <= 0) {
            die(work->path);
        }
        work->len += (size_t)n;
    }
    if (fd < 0 || close(fd) != 0) {
        die(work->path);
    }
}

static void replace_once(struct work *work)
{
    read_once(work);
    int fd = open(work->other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, work->data, work->len) != (ssize_t)work->len || fsync(fd) != 0 ||
        close(fd) != 0 || rename(work->other, work->path) != 0) {
        die(work->other);
    }
}

/* ---- the program ---- */

static const struct kind {
    const char *name;
    int arguments;
    void (*open)(struct work *work, char **args);
    void (*once)(struct work *work);
} kinds[] = {
    {"search", 4, search_open, search_once},
    {"read", 1, file_open, read_once},
    {"replace", 1, file_open, replace_once},
};

static const struct kind *kind_of(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(argv[1], kinds[i].name) == 0 && argc == 3 + kinds[i].arguments) {
            return &kinds[i];
        }
    }
    return NULL;
}

static double cpu_us(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    static struct work work;
    const struct kind *kind = kind_of(argc, argv);
    if (kind == NULL) {
        fprintf(stderr, "usage: plain_work search|read|replace SECONDS FILE ...\n");
        return 2;
    }
    kind->open(&work, argv + 3);
    kind->once(&work); /* the first one is not counted */
    double cpu = cpu_us();
    int64_t start = now_ns();
    int64_t end = start + (int64_t)(strtod(argv[2], NULL) * 1e9);
    unsigned long times = 0;
    do {
        kind->once(&work);
        times++;
    } while (now_ns() < end);
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{\"times\":%lu,\"hits\":%lu,\"rate\":%.1f,\"cpu_us\":%.2f}\n", times, work.hits,
           (double)times / seconds, (cpu_us() - cpu) / (double)times);
    (void)sqlite3_finalize(work.find);
    (void)sqlite3_close(work.db);
    free(work.data);
    return 0;
}
