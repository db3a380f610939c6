/* SPDX-License-Identifier: MIT */
/* test_opennotes_cost.c - cost of a changed notebook: notes that were only touched or moved
 * keep their rows, and if most notes changed the index is rebuilt. */
#include "test_opennotes_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTES 600
#define FOLDERS 6

static void put_notes(struct test *test, const char *word)
{
    for (int i = 0; i < NOTES; i++) {
        char path[64];
        char text[256];
        (void)snprintf(path, sizeof(path), "@/nb/d%d/n%d.md", i % FOLDERS, i);
        (void)snprintf(text, sizeof(text),
                       "# Head %d\n%s\n[near](n%d.md) [far](../d%d/n%d.md) [[n%d]]\n", i, word,
                       (i + FOLDERS) % NOTES, (i + 1) % FOLDERS, (i + 1) % NOTES, i / 2);
        put(test, path, text);
    }
}

static void index_path(struct test *test, char *path, size_t size)
{
    char folder[400];
    (void)snprintf(folder, sizeof(folder), "%s/opennotes", test->harness.dir);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot != NULL && strcmp(dot, ".db") == 0) {
            (void)snprintf(path, size, "%s/%s", folder, entry->d_name);
        }
    }
    (void)closedir(dir);
}

/* One value out of the index: free() it. */
static char *ask(struct test *test, const char *sql)
{
    char path[900] = "";
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    index_path(test, path, sizeof(path));
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    char *value = strdup((const char *)sqlite3_column_text(statement, 0));
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
    assert_non_null(value);
    return value;
}

static void expect_same(char *before, char *after)
{
    assert_string_equal(before, after);
    free(before);
    free(after);
}

#define ROWS                                                                                   \
    "SELECT group_concat(id||' '||replace(path, 'moved/', 'd3/')) FROM (SELECT id, path FROM " \
    "notes ORDER BY id)"
#define NAMES                                                                                  \
    "SELECT group_concat(note||key||kind) FROM (SELECT note, replace(key, 'moved/', 'd3/') "   \
    "AS key, kind FROM names ORDER BY note, key, kind)"
#define KEYS                                                                                   \
    "SELECT group_concat(note||ifnull(replace(key, 'moved/', 'd3/'), '-')) FROM (SELECT * "    \
    "FROM links WHERE note IN (SELECT id FROM notes WHERE path LIKE 'd3/%' OR path LIKE "      \
    "'moved/%') ORDER BY rowid)"

/* A checkout, a restored backup: other times, other inodes, the same bytes. */
static void touched_notes_stay(void **state)
{
    struct test *test = *state;
    struct timespec then[2] = {{.tv_sec = 1000}, {.tv_sec = 86400}};
    put_notes(test, "apple");
    put(test, "@/nb/own.md", "---\ncreated: 2001-02-03\nmodified: 2002-03-04\n---\n");
    open_with(test, REGISTERED);
    has(test, "list", "{\"limit\":1}", "\"total\":601");
    char *rows = ask(test, ROWS);
    for (int i = 0; i < NOTES; i++) {
        char path[64];
        char real[400];
        char copy[400];
        (void)snprintf(path, sizeof(path), "@/nb/d%d/n%d.md", i % FOLDERS, i);
        expand(test, path, real, sizeof(real));
        if (i == 0) { /* another inode */
            expand(test, "@/nb/copy", copy, sizeof(copy));
            put(test, "@/nb/copy",
                "# Head 0\napple\n[near](n6.md) [far](../d1/n1.md) [[n0]]\n");
            assert_int_equal(rename(copy, real), 0);
        }
        assert_int_equal(utimensat(AT_FDCWD, real, then, 0), 0);
    }
    char own[400];
    expand(test, "@/nb/own.md", own, sizeof(own));
    assert_int_equal(utimensat(AT_FDCWD, own, then, 0), 0);
    has(test, "list", "{\"pattern\":\"d2/n2.md\"}", "\"modified\":\"1970-01-02T00:00:00");
    has(test, "list", "{\"pattern\":\"own.md\"}", "\"modified\":\"2002-03-04");
    expect_same(rows, ask(test, ROWS));
    /* And while the gateway was down. */
    rows = ask(test, ROWS);
    then[1].tv_sec *= 2;
    expand(test, "@/nb/d3/n3.md", own, sizeof(own));
    assert_int_equal(utimensat(AT_FDCWD, own, then, 0), 0);
    harness_reopen(&test->harness);
    has(test, "list", "{\"pattern\":\"d3/n3.md\"}", "\"modified\":\"1970-01-03T00:00:00");
    expect_same(rows, ask(test, ROWS));
}

static void move_folder(struct test *test, const char *from, const char *to)
{
    char old[400];
    char now[400];
    expand(test, from, old, sizeof(old));
    expand(test, to, now, sizeof(now));
    assert_int_equal(rename(old, now), 0);
}

static void moved_notes_stay(void **state)
{
    struct test *test = *state;
    put_notes(test, "apple");
    open_with(test, REGISTERED);
    has(test, "list", "{\"limit\":1}", "\"total\":600");
    char *rows = ask(test, ROWS);
    char *names = ask(test, NAMES);
    char *keys = ask(test, KEYS);
    move_folder(test, "@/nb/d3", "@/nb/moved");
    has(test, "list", "{\"pattern\":\"moved/*\",\"limit\":1}", "\"total\":100");
    has(test, "list", "{\"pattern\":\"d3/*\"}", "\"total\":0");
    expect_same(rows, ask(test, ROWS));
    expect_same(names, ask(test, NAMES));
    expect_same(keys, ask(test, KEYS));
    has(test, "links", "{\"path\":\"moved/n3.md\",\"kind\":\"outgoing\"}", "moved/n9.md");
    has(test, "links", "{\"path\":\"moved/n3.md\",\"kind\":\"outgoing\"}", "d4/n4.md");
    has(test, "search", "{\"query\":\"Head 3\",\"limit\":1000}", "moved/n3.md");
    has(test, "get", "{\"path\":\"moved/n3.md\"}", "Head 3");
    /* A new name is a new title: such a note is found by it. */
    move_folder(test, "@/nb/moved/n3.md", "@/nb/moved/renamed.md");
    harness_reopen(&test->harness);
    has(test, "search", "{\"query\":\"renamed\"}", "moved/renamed.md");
    has(test, "list", "{\"limit\":1}", "\"total\":600");
}

static void most_changed_is_made_anew(void **state)
{
    struct test *test = *state;
    char path[900] = "";
    struct stat before;
    struct stat after;
    put_notes(test, "apple");
    open_with(test, REGISTERED);
    has(test, "list", "{\"limit\":1}", "\"total\":600");
    index_path(test, path, sizeof(path));
    assert_int_equal(stat(path, &before), 0);
    int held = open(path, O_RDONLY | O_CLOEXEC); /* so that its inode is not given again */
    put_notes(test, "cherry");
    has(test, "search", "{\"query\":\"cherry\",\"limit\":1}", "\"total\":600");
    has(test, "search", "{\"query\":\"apple\"}", "\"total\":0");
    assert_int_equal(stat(path, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    /* A few are changed where they are. */
    put(test, "@/nb/d1/n1.md", "plum");
    has(test, "search", "{\"query\":\"plum\"}", "\"total\":1");
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    (void)close(held);
}

/* A note of some megabytes: the line of a hit is found behind all of its words, the words are
 * not compared one by one. */
static void long_notes_are_shown(void **state)
{
    enum { LINES = 100000 };
    static const char line[] = "lorem ipsum d\xc3\xb6lor\n";
    static const char end[] = "the pre-needle batteries\nneedle\n";
    struct test *test = *state;
    size_t bytes = LINES * strlen(line);
    char *text = malloc(bytes + sizeof(end));
    assert_non_null(text);
    for (size_t i = 0; i < LINES; i++) {
        memcpy(text + i * strlen(line), line, strlen(line));
    }
    memcpy(text + bytes, end, sizeof(end));
    put_bytes(test, "@/nb/long.md", text, bytes + strlen(end));
    free(text);
    put(test, "@/nb/other.md", "needlework\nneedles\n");
    open_with(test, REGISTERED);
    has(test, "search", "{\"query\":\"needle\"}", "\"line\":100001");
    has(test, "search", "{\"query\":\"battery\"}", "\"line\":100001");
    has(test, "search", "{\"query\":\"battery\"}", "the pre-needle batteries");
    has(test, "search", "{\"query\":\"battery plan\"}", "\"line\":100001");
    /* A form is a word of its own. */
    has(test, "search", "{\"query\":\"needled\",\"limit\":1000}", "\"line\":2,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(touched_notes_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(moved_notes_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(most_changed_is_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(long_notes_are_shown, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
