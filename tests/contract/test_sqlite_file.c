/* SPDX-License-Identifier: MIT */
/* test_sqlite_file.c - what can happen to sqlite's file: kills, a full disk, damage, other
 * versions, missing rights. */
#include "backend_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_load(fixture, "sqlite", NULL);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

static void start(struct fixture *f)
{
    if (fixture_start(f) != NG_OK) {
        fail_msg("the store did not open: %s", fixture_error(f));
    }
    fixture_declare(f);
}

static void file_of(const struct fixture *f, char *ret, size_t max)
{
    (void)snprintf(ret, max, "%s/notegate.db", f->dir);
}

static void run_sql(const struct fixture *f, const char *text)
{
    char path[300];
    sqlite3 *sql = NULL;
    file_of(f, path, sizeof(path));
    assert_int_equal(sqlite3_open(path, &sql), SQLITE_OK);
    assert_int_equal(sqlite3_exec(sql, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(sql);
}

/* open() must refuse with this in its sentence, which also names the file or folder. */
static void expect_refused(struct fixture *f, const char *words)
{
    assert_int_equal(fixture_start(f), NG_EUNAVAILABLE);
    if (strstr(fixture_error(f), words) == NULL || strstr(fixture_error(f), f->dir) == NULL) {
        fail_msg("the message does not say it: %s", fixture_error(f));
    }
}

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
        assert_true(present >= acknowledged);
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

/* ---- a full disk ---- */

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
        struct change change = {.id = ng_str_of(id), .text = ng_str_of(text)};
        rc = fixture_commit(f, &change, 1, NULL, error, NULL);
        stored += rc == NG_OK;
    }
    assert_int_equal(rc, NG_EFULL);
    assert_non_null(strstr(error, "notegate.db"));
    assert_non_null(strstr(error, "free space"));
    expect_doc(f, id, 0, "");
    expect_doc(f, "a", 1, "one");
    assert_int_equal(f->docs->last_seq(f->db), seq + (uint64_t)stored);
    /* There is room again: it goes on without a restart. */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(fixture_put(f, id, 0, "", text), NG_OK);
    assert_int_equal(fixture_put(f, "a", 1, "one", "two"), NG_OK);
    expect_clean(f);
    fixture_stop(f);
    start(f);
    expect_doc(f, "a", 2, "two");
    expect_doc(f, id, 1, text);
    expect_clean(f);
    (void)signal(SIGXFSZ, old);
    free(text);
}

/* ---- other files ---- */

static void test_newer_version(void **state)
{
    struct fixture *f = *state;
    start(f);
    fixture_stop(f);
    run_sql(f, "PRAGMA user_version=999");
    expect_refused(f, "999");
    run_sql(f, "PRAGMA user_version=2");
    start(f);
}

static void test_upgrade(void **state)
{
    struct fixture *f = *state;
    start(f);
    assert_int_equal(fixture_put(f, "a", 0, "", "one"), NG_OK);
    fixture_stop(f);
    /* What version 1 was. */
    run_sql(f, "DROP INDEX docs_author; DROP INDEX docs_created_ms; PRAGMA user_version=1");
    start(f);
    expect_doc(f, "a", 1, "one");
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .sort = ng_str_of("author"),
                             .limit = 5};
    struct rows rows = {0};
    assert_int_equal(f->docs->query(f->db, fixture_call(f), &query, rows_add, &rows, NULL),
                     NG_OK);
    assert_int_equal(rows.count, 1);
    rows_done(&rows);
    expect_clean(f);
}

static void test_foreign_database(void **state)
{
    struct fixture *f = *state;
    run_sql(f, "CREATE TABLE mine(x)");
    expect_refused(f, "another program");
}

static void test_not_a_database(void **state)
{
    struct fixture *f = *state;
    char path[300];
    file_of(f, path, sizeof(path));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++) {
        (void)fprintf(file, "this is a letter and no database\n");
    }
    assert_int_equal(fclose(file), 0);
    expect_refused(f, "backup");
}

static size_t findings;

static void on_finding(void *user, const char *text)
{
    (void)user;
    (void)text;
    findings++;
}

static void write_file(const struct fixture *f, const char *data, size_t size)
{
    static const char *const beside[] = {"-wal", "-shm"};
    char path[300];
    char other[310];
    file_of(f, path, sizeof(path));
    for (size_t i = 0; i < NG_COUNT(beside); i++) {
        (void)snprintf(other, sizeof(other), "%s%s", path, beside[i]);
        (void)unlink(other);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The closed store, malloc'd. */
static char *read_file(const struct fixture *f, size_t *ret_size)
{
    char path[300];
    struct stat status;
    file_of(f, path, sizeof(path));
    assert_int_equal(stat(path, &status), 0);
    size_t size = (size_t)status.st_size;
    char *whole = malloc(size);
    FILE *file = fopen(path, "r");
    assert_true(whole != NULL && file != NULL);
    assert_int_equal(fread(whole, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    *ret_size = size;
    return whole;
}

static void use_damaged(struct fixture *f)
{
    struct rows rows;
    int rc = fixture_start(f);
    if (rc != NG_OK) {
        assert_int_equal(rc, NG_EUNAVAILABLE);
        assert_non_null(strstr(fixture_error(f), "notegate.db"));
        return;
    }
    (void)f->docs->declare(f->db, fixture_call(f), &fixture_collections[0]);
    (void)fixture_get(f, "a", 20, &rows);
    rows_done(&rows);
    findings = 0;
    rc = f->docs->verify(f->db, fixture_call(f), on_finding, NULL);
    assert_true(rc != NG_OK || findings > 0);
    fixture_stop(f);
}

/* Every page in turn is overwritten: never a crash, and never unnoticed. */
static void test_damaged(void **state)
{
    enum { PAGE = 4096 };
    struct fixture *f = *state;
    char before[64] = "";
    start(f);
    for (int i = 1; i <= 40; i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "revision %d", i);
        assert_int_equal(fixture_put(f, "a", (uint64_t)i - 1, before, text), NG_OK);
        memcpy(before, text, sizeof(before));
    }
    fixture_stop(f);
    size_t size = 0;
    char *whole = read_file(f, &size);
    char *damaged = malloc(size);
    assert_non_null(damaged);
    for (size_t at = 0; at + PAGE <= size; at += PAGE) {
        memcpy(damaged, whole, size);
        memset(damaged + at, 0xA5, PAGE);
        write_file(f, damaged, size);
        use_damaged(f);
    }
    write_file(f, whole, size);
    start(f);
    expect_clean(f);
    free(whole);
    free(damaged);
}

static void test_changed_bytes(void **state)
{
    struct fixture *f = *state;
    start(f);
    assert_int_equal(fixture_put(f, "a", 0, "", "one"), NG_OK);
    assert_int_equal(fixture_put(f, "a", 1, "one", "two"), NG_OK);
    fixture_stop(f);
    run_sql(f, "UPDATE log SET text=CAST('One' AS BLOB) WHERE revision=1");
    start(f);
    findings = 0;
    assert_int_equal(f->docs->verify(f->db, fixture_call(f), on_finding, NULL), NG_OK);
    assert_true(findings >= 1);
}

static const char *looked_for;
static bool seen;

static void look_for(void *user, const char *text)
{
    (void)user;
    seen = seen || strstr(text, looked_for) != NULL;
}

/* Damage that no page check sees: rows that are whole and not what was written. */
static void test_verify_sees(void **state)
{
    static const struct {
        const char *sql, *words;
    } damages[] = {
        {"INSERT INTO field_values SELECT field,shelf,CAST('other' AS BLOB),created_seq,doc "
         "FROM "
         "field_values WHERE value=CAST('red' AS BLOB)",
         "a value that the document"},
        {"INSERT INTO field_values SELECT field,shelf,value+1,created_seq,doc FROM "
         "field_values "
         "WHERE typeof(value)='real' AND value>0",
         "a value that the document"},
        {"DELETE FROM field_values WHERE value=CAST('red' AS BLOB)", "index of its fields"},
        {"DELETE FROM log WHERE revision=2", "missing in the log"},
        {"UPDATE docs SET hash=(SELECT hash FROM log WHERE revision=1),text=CAST('one' AS "
         "BLOB),"
         "text_size=3",
         "not that of its last revision"},
        {"UPDATE docs SET shelf=99", "belongs to no collection"},
        {"UPDATE shelves SET live=7", "number of documents"},
        {"UPDATE search_1_content SET c1='another'", "search index"},
        {"UPDATE meta SET value=1 WHERE name='seq'", "later than the last sequence number"},
    };
    struct fixture *f = *state;
    start(f);
    struct change one = {
        .id = ng_str_of("a"), .text = ng_str_of("one"), .tags = {"red"}, .has_n = true, .n = 5};
    struct change two = one;
    two.base = 1;
    two.text = ng_str_of("two");
    two.before_text = ng_str_of("one");
    assert_int_equal(fixture_commit(f, &one, 1, NULL, NULL, NULL), NG_OK);
    assert_int_equal(fixture_commit(f, &two, 1, NULL, NULL, NULL), NG_OK);
    /* brings the search index up to date */
    assert_int_equal(f->docs->maintain(f->db, fixture_call(f), 0, 0, NULL, NULL), NG_OK);
    expect_clean(f);
    fixture_stop(f);
    size_t size = 0;
    char *whole = read_file(f, &size);
    for (size_t i = 0; i < NG_COUNT(damages); i++) {
        write_file(f, whole, size);
        run_sql(f, damages[i].sql);
        start(f);
        looked_for = damages[i].words;
        seen = false;
        assert_int_equal(f->docs->verify(f->db, fixture_call(f), look_for, NULL), NG_OK);
        if (!seen) {
            fail_msg("verify did not see: %s", damages[i].sql);
        }
        fixture_stop(f);
    }
    free(whole);
    start(f);
}

static void test_no_rights(void **state)
{
    struct fixture *f = *state;
    if (geteuid() == 0) {
        /* Root may write everywhere: as somebody else, in a child. */
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
    expect_refused(f, "not there");
}

/* ---- memory ---- */

/* Bytes beyond what sqlite has in use, in steps, that it is allowed while it reads. */
#define HEAP_STEP 64
#define HEAP_MORE_MAX 65536

static int search_things(struct fixture *f, struct rows *rows)
{
    struct ng_search search = {
        .size = sizeof(search),
        .query = {.size = sizeof(search.query),
                  .collection = ng_str_of("things"),
                  .space = ng_str_of("team"),
                  .limit = 10,
                  .with_text = true},
        .text = ng_str_of("word"),
    };
    return f->docs->search(f->db, fixture_call(f), &search, rows_add, rows, NULL);
}

/* Whatever step of a search there is no memory for, the next one is as good as ever. */
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
    struct ng_search search = {
        .size = sizeof(search),
        .query = {.size = sizeof(search.query),
                  .collection = ng_str_of("things"),
                  .space = ng_str_of("team"),
                  .limit = CUT_DOCS,
                  .with_text = true,
                  .want_total = true},
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

/* Wherever a search is cut off, the next one finds everything. */
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

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reopen),
        TEST(test_killed),
        TEST(test_disk_full),
        TEST(test_newer_version),
        TEST(test_upgrade),
        TEST(test_foreign_database),
        TEST(test_not_a_database),
        TEST(test_damaged),
        TEST(test_changed_bytes),
        TEST(test_verify_sees),
        TEST(test_no_rights),
        TEST(test_no_folder),
        TEST(test_search_without_memory),
        TEST(test_search_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
