/* SPDX-License-Identifier: MIT */
/* test_sqlite_file.c - documents in a file: kills, full disks, no rights, no memory, calls
 * that end in the middle. */
#include "test_sqlite_file_rig.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_reopen(void **state)
{
    struct fixture *f = *state;
    start(f);
    assert_int_equal(fixture_put(f, "a", 0, "", "one"), NG_OK);
    uint64_t seq = f->docs->last_seq(f->db);
    fixture_stop(f);
    start(f);
    assert_int_equal(f->docs->last_seq(f->db), seq);
    expect_doc(f, "a", 1, "one");
    assert_int_equal(fixture_put(f, "a", 1, "one", "two"), NG_OK);
    assert_true(f->docs->last_seq(f->db) > seq);
    expect_clean(f);
}

/* ---- kills ---- */

#define KILL_ROUNDS 12

/* Appends revisions and says each on the pipe once it was acknowledged. Never returns. */
static void child(struct fixture *f, int out, uint64_t revision)
{
    char before[64] = "";
    char text[64];
    if (fixture_start(f) != NG_OK) {
        _exit(2);
    }
    fixture_declare(f);
    for (;;) {
        (void)snprintf(before, sizeof(before), "%s%llu", revision > 0 ? "revision " : "",
                       (unsigned long long)revision);
        (void)snprintf(text, sizeof(text), "revision %llu", (unsigned long long)revision + 1);
        if (fixture_put(f, "a", revision, revision > 0 ? before : "", text) != NG_OK) {
            _exit(3);
        }
        revision++;
        if (write(out, &revision, sizeof(revision)) != (ssize_t)sizeof(revision)) {
            _exit(4);
        }
    }
}

static uint64_t present_revision(struct fixture *f)
{
    struct rows rows;
    uint64_t revision = 0;
    if (fixture_get(f, "a", 0, &rows) == NG_OK) {
        revision = rows.items[0].revision;
    }
    rows_done(&rows);
    return revision;
}

static void test_killed(void **state)
{
    struct fixture *f = *state;
    uint64_t acknowledged = 0;
    uint64_t present = 0;
    for (int round = 0; round < KILL_ROUNDS; round++) {
        int ends[2];
        uint64_t wanted = acknowledged + 1 + (uint64_t)(round * 37 % 90);
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(ends[0]);
            child(f, ends[1], present);
        }
        close(ends[1]);
        uint64_t said = 0;
        while (acknowledged < wanted && read(ends[0], &said, sizeof(said)) == sizeof(said)) {
            acknowledged = said;
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        while (read(ends[0], &said, sizeof(said)) == sizeof(said)) {
            acknowledged = said;
        }
        close(ends[0]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_true(acknowledged >= wanted);
        start(f);
        present = present_revision(f);
        if (present < acknowledged) {
            fail_msg("an acknowledged write was lost");
        }
        for (uint64_t i = 1; i <= present; i++) {
            struct rows rows;
            char text[64];
            (void)snprintf(text, sizeof(text), "revision %llu", (unsigned long long)i);
            assert_int_equal(fixture_get(f, "a", i, &rows), NG_OK);
            assert_string_equal(rows.items[0].text, text);
            rows_done(&rows);
        }
        expect_clean(f);
        fixture_stop(f);
    }
}

/* ---- the write-ahead log ---- */

#define LOG_WRITES 400 /* over 100 MB of log */
#define LOG_TEXT ((size_t)96 * 1024)
#define LOG_TURN 3 /* commits that a read lasts: longer than one, but not for ever */
/* The log starts again at 8 MB, or at half as much more if the readers do not end in the time
 * that the writer waits for them. A commit takes less than 1 MB. */
#define LOG_MAX ((off_t)9 * 1024 * 1024)
#define LOG_MAX_LATE ((off_t)13 * 1024 * 1024)

/* Readers whose transactions overlap: there is always one. */
struct overlap {
    sqlite3 *readers[2];
    unsigned turns, failed;
    bool late;        /* they do not end in every other commit that waits for them */
    bool waits;       /* the present commit does */
    unsigned waiting; /* commits that did */
};

static sqlite3_vfs *overlap_base;               /* sqlite's own */
static _Atomic(struct overlap *) overlap_aside; /* of the commit that runs; NULL: none */

static unsigned fails(sqlite3 *sql, const char *text)
{
    return sqlite3_exec(sql, text, NULL, NULL, NULL) != SQLITE_OK;
}

static void overlap_read(struct overlap *overlap)
{
    overlap->failed +=
        fails(overlap->readers[overlap->turns % 2], "BEGIN; SELECT count(*) FROM meta");
}

/* One transaction ends when the next one has begun. */
static void overlap_turn(struct overlap *overlap)
{
    overlap->turns++;
    overlap_read(overlap);
    overlap->failed += fails(overlap->readers[(overlap->turns + 1) % 2], "COMMIT");
}

/* For sqlite's own sleep: the readers go on while a commit waits for them. */
static int overlap_sleep(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    struct overlap *overlap = atomic_exchange(&overlap_aside, NULL);
    if (overlap == NULL) {
        return overlap_base->xSleep(overlap_base, microseconds);
    }
    overlap->waiting += overlap->waits ? 0 : 1;
    overlap->waits = true;
    if (!overlap->late || overlap->waiting % 2 == 0) {
        overlap_turn(overlap);
    }
    atomic_store(&overlap_aside, overlap);
    return microseconds;
}

static void overlap_begin(struct overlap *overlap, const char *path)
{
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            sqlite3_open_v2(path, &overlap->readers[i], SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    }
    overlap_read(overlap);
}

static void overlap_end(struct overlap *overlap)
{
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sqlite3_close(overlap->readers[i]), SQLITE_OK);
    }
    assert_int_equal(overlap->failed, 0);
}

/* The most bytes that the log has while documents are written and readers overlap. */
static off_t log_under_readers(struct fixture *f, struct overlap *overlap, const char *wal)
{
    struct stat status;
    char id[16];
    off_t most = 0;
    char *text = malloc(LOG_TEXT);
    assert_non_null(text);
    memset(text, 'x', LOG_TEXT - 1);
    text[LOG_TEXT - 1] = '\0';
    for (int i = 1; i <= LOG_WRITES; i++) {
        (void)snprintf(id, sizeof(id), "big%d", i);
        overlap->waits = false;
        atomic_store(&overlap_aside, overlap);
        assert_int_equal(fixture_put(f, id, 0, "", text), NG_OK);
        atomic_store(&overlap_aside, NULL);
        assert_int_equal(stat(wal, &status), 0);
        most = status.st_size > most ? status.st_size : most;
        if (i % LOG_TURN == 0) {
            overlap_turn(overlap);
        }
    }
    free(text);
    return most;
}

static void expect_log_below(struct fixture *f, bool late, off_t max)
{
    struct overlap overlap = {.late = late};
    static sqlite3_vfs vfs;
    char path[300];
    char wal[320];
    overlap_base = sqlite3_vfs_find(NULL);
    vfs = *overlap_base;
    vfs.zName = "overlap";
    vfs.xSleep = overlap_sleep;
    assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
    start(f);
    assert_int_equal(fixture_put(f, "a", 0, "", "one"), NG_OK);
    (void)snprintf(path, sizeof(path), "%s/notegate.db", f->dir);
    (void)snprintf(wal, sizeof(wal), "%s-wal", path);
    overlap_begin(&overlap, path);
    off_t most = log_under_readers(f, &overlap, wal);
    overlap_end(&overlap);
    if (most > max) {
        fail_msg("the log grew to %lld bytes", (long long)most);
    }
    assert_true(overlap.turns > 100);
    assert_true(overlap.waiting > 10);
    expect_clean(f);
    fixture_stop(f);
    assert_int_equal(sqlite3_vfs_unregister(&vfs), SQLITE_OK);
}

static void test_log_under_readers(void **state)
{
    expect_log_below(*state, false, LOG_MAX);
}

static void test_log_under_late_readers(void **state)
{
    expect_log_below(*state, true, LOG_MAX_LATE);
}

/* ---- a full disk ---- */

/* Changes whose origin is not in the file, and those that origins count too many or too few. */
static int64_t wrong_origins(struct fixture *f)
{
    sqlite3 *sql = NULL;
    sqlite3_stmt *stmt = NULL;
    char path[300];
    (void)snprintf(path, sizeof(path), "%s/notegate.db", f->dir);
    assert_int_equal(sqlite3_open_v2(path, &sql, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(sql,
                           "SELECT count(*)-count(o.origin)+abs(count(*)-(SELECT sum(changes) "
                           "FROM origins)) FROM trail t LEFT JOIN origins o USING(origin)",
                           -1, &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(sql);
    return count;
}

static void test_disk_full(void **state)
{
    struct fixture *f = *state;
    struct rlimit before;
    char error[512] = "";
    char *text = malloc(200000);
    assert_non_null(text);
    memset(text, 'x', 199999);
    text[199999] = '\0';
    start(f);
    assert_int_equal(fixture_put(f, "a", 0, "", "one"), NG_OK);
    uint64_t seq = f->docs->last_seq(f->db);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = before;
    small.rlim_cur = 512 * 1024;
    void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = NG_OK;
    int stored = 0;
    char id[16];
    while (rc == NG_OK && stored < 50) {
        (void)snprintf(id, sizeof(id), "big%d", stored);
        const struct ng_origin origin = {.run_id = ng_str_of(id)};
        struct change change = {
            .id = ng_str_of(id), .text = ng_str_of(text), .origin = &origin};
        rc = fixture_commit(f, &change, 1, NULL, error, NULL);
        stored += rc == NG_OK;
    }
    assert_int_equal(rc, NG_EFULL);
    assert_non_null(strstr(error, "notegate.db"));
    assert_non_null(strstr(error, "free space there, at least"));
    expect_doc(f, id, 0, "");
    expect_doc(f, "a", 1, "one");
    assert_int_equal(f->docs->last_seq(f->db), seq + (uint64_t)stored);
    /* There is room again: it goes on without a restart. */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    const struct ng_origin again = {.run_id = ng_str_of(id)}; /* as of the refused change */
    struct change change = {.id = ng_str_of(id), .text = ng_str_of(text), .origin = &again};
    assert_int_equal(fixture_commit(f, &change, 1, NULL, error, NULL), NG_OK);
    assert_int_equal(fixture_put(f, "a", 1, "one", "two"), NG_OK);
    expect_clean(f);
    assert_int_equal(wrong_origins(f), 0);
    fixture_stop(f);
    start(f);
    expect_doc(f, "a", 2, "two");
    expect_doc(f, id, 1, text);
    expect_clean(f);
    (void)signal(SIGXFSZ, old);
    free(text);
}

/* ---- other files ---- */

static void test_no_rights(void **state)
{
    struct fixture *f = *state;
    if (geteuid() == 0) {
        /* Root may write everywhere: so run as another user, in a child. */
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            if (chmod(f->dir, 0555) != 0 || seteuid(65534) != 0) {
                _exit(2);
            }
            int rc = fixture_start(f);
            _exit(rc == NG_EUNAVAILABLE && strstr(fixture_error(f), f->dir) != NULL ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(chmod(f->dir, 0700), 0);
        assert_int_equal(status, 0);
    } else {
        assert_int_equal(chmod(f->dir, 0555), 0);
        expect_refused(f, "may not write");
        assert_int_equal(chmod(f->dir, 0700), 0);
    }
}

static void test_no_folder(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rmdir(f->dir), 0);
    expect_refused(f, "does not exist");
}

/* ---- memory ---- */

/* Bytes beyond what sqlite has in use, in steps, that it is allowed while it reads. */
#define HEAP_STEP 64
#define HEAP_MORE_MAX 65536

static int search_things(struct fixture *f, struct rows *rows)
{
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .limit = 10,
                             .with_text = true};
    struct ng_search search = {
        .size = sizeof(search),
        .query = &query,
        .text = ng_str_of("word"),
    };
    return f->docs->search(f->db, fixture_call(f), &search, rows_add, rows, NULL);
}

/* After a search that failed for want of memory in any step, the next one succeeds. */
static void test_search_without_memory(void **state)
{
    struct fixture *f = *state;
    size_t failed = 0;
    start(f);
    assert_int_equal(fixture_put(f, "a", 0, "", "a word"), NG_OK);
    for (sqlite3_int64 more = 0; more < HEAP_MORE_MAX; more += HEAP_STEP) {
        struct rows rows = {0};
        (void)sqlite3_release_memory(INT32_MAX);
        (void)sqlite3_hard_heap_limit64(sqlite3_memory_used() + more);
        int rc = search_things(f, &rows);
        (void)sqlite3_hard_heap_limit64(0);
        failed += rc != NG_OK ? 1 : 0;
        rows_done(&rows);
        rows = (struct rows){0};
        rc = search_things(f, &rows);
        if (rc != NG_OK || rows.count != 1) {
            fail_msg("after %lld bytes: %d, %zu rows: %s", (long long)more, rc, rows.count,
                     fixture_error(f));
        }
        rows_done(&rows);
        assert_int_equal(
            fixture_put(f, "a", (uint64_t)(more / HEAP_STEP) + 1, "a word", "a word"), NG_OK);
    }
    assert_true(failed > 0);
    expect_clean(f);
}

/* ---- calls that end in the middle ---- */

#define CUT_DOCS 600

/* Looks at the call's end that say "not yet". */
static int looks_left;

static bool cut_off(struct ng_call *call)
{
    (void)call;
    return looks_left-- <= 0;
}

/* Searches for all documents, in a call that is over after so many looks. */
static int search_until(struct fixture *f, int looks, struct rows *rows, uint64_t *ret_total)
{
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .limit = CUT_DOCS,
                             .with_text = true,
                             .want_total = true};
    struct ng_search search = {
        .size = sizeof(search),
        .query = &query,
        .text = ng_str_of("word"),
        .snippet_chars = 40,
    };
    struct ng_call *call = fixture_call(f);
    const struct ng_host *real = call->host;
    struct ng_host host = *real;
    host.cancelled = cut_off;
    call->host = &host;
    looks_left = looks;
    int rc = f->docs->search(f->db, call, &search, rows_add, rows, ret_total);
    call->host = real;
    return rc;
}

/* Wherever a search is interrupted, the next one finds all documents. */
static void test_search_cut_off(void **state)
{
    struct fixture *f = *state;
    struct change *changes = calloc(CUT_DOCS, sizeof(*changes));
    char(*ids)[16] = calloc(CUT_DOCS, sizeof(*ids));
    int cut = 0;
    bool whole = false;
    assert_non_null(changes);
    assert_non_null(ids);
    start(f);
    for (size_t i = 0; i < CUT_DOCS; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "d%zu", i);
        changes[i] = (struct change){.id = ng_str_of(ids[i]), .text = ng_str_of("a word")};
    }
    assert_int_equal(fixture_commit(f, changes, CUT_DOCS, NULL, NULL, NULL), NG_OK);
    for (int looks = 0; !whole; looks++) {
        struct rows rows = {0};
        uint64_t total = 0;
        whole = search_until(f, looks, &rows, &total) == NG_OK;
        cut += whole ? 0 : 1;
        rows_done(&rows);
        rows = (struct rows){0};
        assert_int_equal(search_until(f, INT32_MAX, &rows, &total), NG_OK);
        assert_int_equal(rows.count, CUT_DOCS);
        assert_int_equal(total, CUT_DOCS);
        rows_done(&rows);
        assert_int_equal(fixture_put(f, "d0", (uint64_t)looks + 1, "a word", "a word"), NG_OK);
    }
    assert_true(cut > 2);
    free(ids);
    free(changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reopen),
        TEST(test_killed),
        TEST(test_log_under_readers),
        TEST(test_log_under_late_readers),
        TEST(test_disk_full),
        TEST(test_no_rights),
        TEST(test_no_folder),
        TEST(test_search_without_memory),
        TEST(test_search_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
