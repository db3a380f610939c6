/* SPDX-License-Identifier: MIT */
/* test_sqlite_file_damaged.c - files of another version, of others, or with damage, and what
 * verify says of them. */
#include "test_sqlite_file_rig.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    /* The content of version 1. */
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

/* Damage that no page check sees: complete rows with other content than was written. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_newer_version),  TEST(test_upgrade), TEST(test_foreign_database),
        TEST(test_not_a_database), TEST(test_damaged), TEST(test_changed_bytes),
        TEST(test_verify_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
