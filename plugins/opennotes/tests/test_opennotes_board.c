/* SPDX-License-Identifier: MIT */
/* test_opennotes_board.c - searches that keep the order of the notes and the marks of texts:
 * their answers are those of the statements that filters use, after any change; and what they
 * read is the page and the changed notes. */
#include "test_opennotes_rig.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "search/board.h"

#define NOTES 60
#define ROUNDS 80
#define QUERIES_PER_ROUND 6

/* ---- the same answers as with a filter that all notes pass ---- */

static const char *const words[] = {
    "alpha", "alphabet", "beta", "gamma",  "gam",    "th\xc3\xa9ta", "plans",     "planning",
    "the",   "of",       "ab",   "abcdef", "badcfe", "a_b",          "co**de**x", "C++",
};

static const char *const queries[] = {
    "alpha",      "al",      "alpha beta",       "plans gamma", "the plans of", "codex",
    "codex beta", "nowhere", "gam th\xc3\xa9ta", "n1",          "C++ a_b",      "#",
};

static const char *const similar[] = {"aplha", "alphabte", "abcdef", "gama btea", "n"};

static unsigned next(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 12) % below;
}

static void note_path(unsigned number, char *path, size_t size)
{
    (void)snprintf(path, size, "@/nb/d%u/n%u.md", number % 3, number);
}

static void write_note(struct test *test, unsigned *seed, unsigned number, bool anew)
{
    char path[64];
    char other[64];
    char text[2048];
    char from[400];
    char to[400];
    size_t len = 0;
    if (next(seed, 2) == 0) {
        len +=
            (size_t)snprintf(text, sizeof(text), "---\ntitle: %s\nmodified: 2020-01-0%u\n---\n",
                             words[next(seed, 12)], next(seed, 3) + 1);
    }
    for (unsigned i = next(seed, 12) + 1; i > 0; i--) {
        const char *before = (const char *[]){" ", "\n", "\n## ", " "}[next(seed, 4)];
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %s", before,
                                words[next(seed, NG_COUNT(words))],
                                words[next(seed, NG_COUNT(words))]);
    }
    note_path(number, path, sizeof(path));
    (void)snprintf(other, sizeof(other), "%s%s", path, anew ? ".new" : "");
    put(test, other, text);
    if (anew) {
        expand(test, other, from, sizeof(from));
        expand(test, path, to, sizeof(to));
        assert_int_equal(rename(from, to), 0);
    }
}

static void change(struct test *test, unsigned *seed)
{
    char path[64];
    char real[400];
    unsigned number = next(seed, NOTES);
    switch (next(seed, 4)) {
    case 0:
        note_path(number, path, sizeof(path));
        expand(test, path, real, sizeof(real));
        (void)unlink(real);
        break;
    case 1:
        write_note(test, seed, number, true);
        break;
    default:
        write_note(test, seed, number, false);
        break;
    }
}

static void expect_same(struct test *test, const char *args, const char *filter)
{
    char with[512];
    char without[512];
    (void)snprintf(without, sizeof(without), "{%s}", args);
    (void)snprintf(with, sizeof(with), "{%s,%s}", args, filter);
    struct answer ours = call(test, "search", without);
    struct answer other = call(test, "search", with);
    assert_int_equal(ours.rc, NG_OK);
    assert_int_equal(other.rc, NG_OK);
    const char *found = strstr(ours.text, "\"results\"");
    const char *wanted = strstr(other.text, "\"results\"");
    assert_non_null(found);
    assert_non_null(wanted);
    if (strcmp(found, wanted) != 0) {
        fail_msg("%s: %s, not %s", args, found, wanted);
    }
    answer_free(&ours);
    answer_free(&other);
}

static void ask_one(struct test *test, unsigned *seed)
{
    char args[256];
    bool fuzzy = next(seed, 3) == 0;
    const char *query =
        fuzzy ? similar[next(seed, NG_COUNT(similar))] : queries[next(seed, NG_COUNT(queries))];
    (void)snprintf(
        args, sizeof(args), "\"query\":\"%s\",\"fuzzy\":%s,\"limit\":%u,\"offset\":%u", query,
        fuzzy ? "true" : "false", next(seed, 30) + 1, next(seed, 4) == 0 ? next(seed, 70) : 0);
    expect_same(test, args, "\"filters\":{\"not\":[\"path=no.md\"]}");
}

static void same_answers(void **state)
{
    struct test *test = *state;
    unsigned seed = 7;
    for (unsigned i = 0; i < NOTES; i++) {
        write_note(test, &seed, i, false);
    }
    open_with(test, REGISTERED);
    for (unsigned round = 0; round < ROUNDS; round++) {
        /* Now and then more changes than are remembered. */
        for (unsigned i = round % 20 == 19 ? 200 : next(&seed, 4); i > 0; i--) {
            change(test, &seed);
        }
        for (unsigned i = 0; i < QUERIES_PER_ROUND; i++) {
            ask_one(test, &seed);
        }
    }
    expect_same(test, "\"limit\":100", "\"filters\":{\"not\":[\"path=no.md\"]}");
}

/* ---- what is read ---- */

static sqlite3 *open_index(struct test *test)
{
    char folder[400];
    char path[900] = "";
    sqlite3 *db = NULL;
    (void)snprintf(folder, sizeof(folder), "%s/opennotes", test->harness.dir);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot != NULL && strcmp(dot, ".db") == 0) {
            (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        }
    }
    (void)closedir(dir);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    return db;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return value;
}

/* The texts of all notes are damaged behind the gateway's back: a search that read them would
 * not find them any more. */
static void only_changed_notes_are_read(void **state)
{
    struct test *test = *state;
    for (unsigned i = 0; i < NOTES; i++) {
        char path[64];
        note_path(i, path, sizeof(path));
        put(test, path, "# Head\napple of the tree, plum\n");
    }
    open_with(test, REGISTERED);
    static const char *const kept[] = {
        "{\"query\":\"apple\",\"limit\":1}",
        "{\"query\":\"apple plum\",\"limit\":1}",
        "{\"query\":\"aplpe\",\"fuzzy\":true,\"limit\":1}",
    };
    for (size_t i = 0; i < NG_COUNT(kept); i++) {
        has(test, "search", kept[i], "\"total\":60");
    }
    sqlite3 *db = open_index(test);
    int64_t before = ask(db, "SELECT max(seq) FROM changes");
    int64_t first = ask(db, "SELECT id FROM notes WHERE path='d0/n0.md'");
    char *damage = sqlite3_mprintf("UPDATE bodies SET folded='x' WHERE note<>%lld;"
                                   "DELETE FROM headings",
                                   (long long)first);
    assert_int_equal(sqlite3_exec(db, damage, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(damage);
    for (size_t i = 0; i < NG_COUNT(kept); i++) {
        has(test, "search", kept[i], "\"total\":60");
    }
    /* One note changes: the next search sees it, and one note was written. */
    put(test, "@/nb/d0/n0.md", "pear\n");
    for (size_t i = 0; i < NG_COUNT(kept); i++) {
        has(test, "search", kept[i], "\"total\":59");
    }
    has(test, "search", "{\"query\":\"pear\"}", "\"total\":1");
    assert_int_equal(ask(db, "SELECT id FROM notes WHERE path='d0/n0.md'"), first);
    assert_int_equal(ask(db, "SELECT count(DISTINCT note) FROM changes WHERE seq>0"), NOTES);
    assert_true(ask(db, "SELECT max(seq) FROM changes") <= before + 4);
    /* With an id over the limit nothing is kept: the damaged texts are read. */
    char *far = sqlite3_mprintf(
        "INSERT INTO notes SELECT %lld,'far.md',file,title,title_fold,'far.md',created,"
        "modified,size,words,front,front_error,revision,body_line,mtime_ns,ctime_ns,inode,"
        "device,checked_ns,heads FROM notes WHERE id=%lld;INSERT INTO changes(note) "
        "VALUES(%lld)",
        (long long)NOTES_BOARD_IDS_MAX, (long long)first, (long long)NOTES_BOARD_IDS_MAX);
    assert_int_equal(sqlite3_exec(db, far, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(far);
    has(test, "search", kept[1], "\"total\":0");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void run(sqlite3 *db, const char *sql)
{
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void has_total(struct test *test, const char *args, unsigned total)
{
    char wanted[64];
    (void)snprintf(wanted, sizeof(wanted), "\"total\":%u,", total);
    has(test, "search", args, wanted);
}

#define APPLE "{\"query\":\"apple\",\"limit\":1}"
#define SIMILAR "{\"query\":\"aplpe\",\"fuzzy\":true,\"limit\":1}"
#define EDITS 150 /* more than the changes that are remembered */

/* A note that changes again and again is one changed note: its texts are read once, and those
 * of the other notes, which are damaged here, are not. */
static void edits_of_one_note_are_one_change(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md", "apple\n");
    put(test, "@/nb/b.md", "apple\n");
    open_with(test, REGISTERED);
    has_total(test, APPLE, 2);
    has_total(test, SIMILAR, 2);
    sqlite3 *db = open_index(test);
    run(db, "UPDATE bodies SET folded='x' WHERE note=(SELECT id FROM notes WHERE path='a.md')");
    for (unsigned i = 0; i < EDITS; i++) {
        char text[64];
        int64_t before = ask(db, "SELECT max(seq) FROM changes");
        (void)snprintf(text, sizeof(text), "apple %u\n", i);
        put(test, "@/nb/b.md", text);
        has_total(test, "{\"limit\":1}", 2);
        assert_int_equal(ask(db, "SELECT max(seq) FROM changes"), before + 1);
    }
    has_total(test, APPLE, 2);
    has_total(test, SIMILAR, 2);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Of a changed note of this many bytes, is the text split into words? It is damaged before. */
static void expect_split(struct test *test, sqlite3 *db, size_t bytes, bool split)
{
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, ' ', bytes);
    memcpy(text, "apple", 5);
    text[bytes] = '\0';
    put_bytes(test, "@/nb/b.md", text, bytes);
    has_total(test, SIMILAR, 2);
    text[bytes - 1] = '\n';
    put_bytes(test, "@/nb/b.md", text, bytes);
    free(text);
    has_total(test, "{\"limit\":1}", 2);
    run(db, "UPDATE bodies SET folded='x' WHERE note=(SELECT id FROM notes WHERE path='b.md')");
    has_total(test, SIMILAR, split ? 1 : 2);
}

static void long_notes_are_not_split(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md", "apple\n");
    put(test, "@/nb/b.md", "apple\n");
    open_with(test, REGISTERED);
    has_total(test, SIMILAR, 2);
    sqlite3 *db = open_index(test);
    expect_split(test, db, (size_t)NOTES_BOARD_SPLIT_MAX, true);
    run(db, "UPDATE bodies SET folded=content");
    expect_split(test, db, (size_t)NOTES_BOARD_SPLIT_MAX + 1, false);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A copy of a note behind the gateway's back, under another id. */
static void copy_note(sqlite3 *db, int64_t id)
{
    char *sql = sqlite3_mprintf(
        "INSERT INTO notes SELECT %lld,'copy.md',file,'copy','copy','copy.md',created,modified,"
        "size,words,front,front_error,revision,body_line,mtime_ns,ctime_ns,inode,device,"
        "checked_ns,'copy' FROM notes WHERE path='a.md';INSERT INTO changes(note) VALUES(%lld)",
        (long long)id, (long long)id);
    run(db, sql);
    sqlite3_free(sql);
}

static void remove_copy(sqlite3 *db)
{
    run(db, "INSERT INTO changes(note) SELECT id FROM notes WHERE path='copy.md';"
            "DELETE FROM notes WHERE path='copy.md'");
}

/* While there is an id that no note can have, the board is not used; afterwards it is, and the
 * texts of unchanged notes are not read. */
static void wrong_ids(void **state)
{
    static const int64_t ids[] = {-1, INT64_MIN, NOTES_BOARD_IDS_MAX, INT64_MAX};
    struct test *test = *state;
    put(test, "@/nb/a.md", "apple\n");
    open_with(test, REGISTERED);
    has_total(test, APPLE, 1);
    sqlite3 *db = open_index(test);
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        copy_note(db, ids[i]);
        has_total(test, APPLE, 1);
        has_total(test, "{\"limit\":1}", 2);
        remove_copy(db);
        has_total(test, APPLE, 1);
        run(db, "UPDATE bodies SET folded='x'");
        has_total(test, APPLE, 1);
        has_total(test, APPLE, 1);
        run(db, "UPDATE bodies SET folded=content");
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A file that is written in place, and one that is replaced: the next search sees both. */
static void changes_are_seen_at_once(void **state)
{
    struct test *test = *state;
    char from[400];
    char to[400];
    put(test, "@/nb/a.md", "apple\n");
    put(test, "@/nb/b.md", "apple\n");
    open_with(test, REGISTERED);
    has(test, "search", "{\"query\":\"apple\"}", "\"total\":2");
    for (int i = 0; i < 20; i++) {
        char text[64];
        char args[64];
        (void)snprintf(text, sizeof(text), "pear%dx apple\n", i);
        (void)snprintf(args, sizeof(args), "{\"query\":\"pear%dx\"}", i);
        if (i % 2 == 0) {
            put(test, "@/nb/a.md", text);
        } else {
            put(test, "@/nb/b.md.tmp", text);
            expand(test, "@/nb/b.md.tmp", from, sizeof(from));
            expand(test, "@/nb/b.md", to, sizeof(to));
            assert_int_equal(rename(from, to), 0);
        }
        has(test, "search", args, i % 2 == 0 ? "\"path\":\"a.md\"" : "\"path\":\"b.md\"");
        has(test, "search", args, "\"total\":1");
        has(test, "search", "{\"query\":\"apple\"}", "\"total\":2");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(only_changed_notes_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(edits_of_one_note_are_one_change, setup, teardown),
        cmocka_unit_test_setup_teardown(long_notes_are_not_split, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_are_seen_at_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
