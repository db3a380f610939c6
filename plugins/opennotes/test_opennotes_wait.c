/* SPDX-License-Identifier: MIT */
/* test_opennotes_wait.c - calls that wait for an index: they keep no worker, are told how far
 * it is, and none waits that needs one path only. */
#include "test_opennotes_rig.h"

#include <dirent.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CALLS 12
#define NOTES 3000
#define PATIENCE 200 /* calls until a large index is made */

static bool is_of(sqlite3 *db, const char *folder)
{
    sqlite3_stmt *statement = NULL;
    bool is = sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE name='folder'", -1,
                                 &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW &&
              strcmp((const char *)sqlite3_column_text(statement, 0), folder) == 0;
    (void)sqlite3_finalize(statement);
    return is;
}

/* Takes the writing lock of the index of @/nb. */
static sqlite3 *lock_index(struct test *test)
{
    char folder[400];
    char path[800];
    char notes[400];
    sqlite3 *found = NULL;
    expand(test, "@/nb", notes, sizeof(notes));
    (void)snprintf(folder, sizeof(folder), "%s/opennotes", test->harness.dir);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const char *dot = strrchr(entry->d_name, '.');
        sqlite3 *db = NULL;
        if (dot == NULL || strcmp(dot, ".db") != 0) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        (void)sqlite3_busy_timeout(db, 10000);
        if (is_of(db, notes)) {
            found = db;
        } else {
            (void)sqlite3_close(db);
        }
    }
    (void)closedir(dir);
    assert_non_null(found);
    assert_int_equal(sqlite3_exec(found, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return found;
}

static void open_workers(struct test *test, const char *notebooks, const char *limit)
{
    expand(test, notebooks, test->set, sizeof(test->set));
    test->sets[0] = "documents=memory";
    test->sets[1] = test->set;
    test->sets[2] = limit;
    test->sets[3] = NULL;
    harness_open(&test->harness, test->sets);
}

struct lister {
    struct test *test;
    atomic_int *ended;
    int number;
    bool good;
};

static void *run_list(void *user)
{
    struct lister *lister = user;
    char agent[16];
    (void)snprintf(agent, sizeof(agent), "a%d", lister->number % 3);
    struct answer answer =
        harness_call_as(&lister->test->harness, agent, NULL, "opennotes_list", "{}");
    atomic_fetch_add(lister->ended, 1);
    lister->good = answer.rc == NG_OK && strstr(answer.text, "\"total\":2") != NULL;
    if (!lister->good) {
        print_error("%s: %s\n", answer.code, answer.message);
    }
    answer_free(&answer);
    return NULL;
}

/* While the index of one notebook cannot be written, 12 calls wait for it; another notebook,
 * and single notes of the same, are served. */
static void waiting_keeps_no_worker(void **state)
{
    struct test *test = *state;
    struct lister listers[CALLS];
    pthread_t threads[CALLS];
    atomic_int ended = 0;
    char args[500];
    put(test, "@/nb/a.md", "# a");
    put(test, "@/other/c.md", "# c");
    open_workers(test, REGISTERED ",@/other", "limits.workers=4");
    has(test, "list", "{}", "\"total\":1");
    sqlite3 *db = lock_index(test);
    put(test, "@/nb/b.md", "# b");
    for (int i = 0; i < CALLS; i++) {
        listers[i] = (struct lister){test, &ended, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, run_list, &listers[i]), 0);
    }
    expand(test, "{\"notebook\":\"@/other\"}", args, sizeof(args));
    for (int i = 0; i < CALLS; i++) {
        has(test, "list", args, "\"total\":1");
        has(test, "get", "{\"path\":\"b.md\"}", "# b");
    }
    has(test, "edit", "{\"path\":\"b.md\",\"operation\":\"append\",\"content\":\"more\"}",
        "b.md");
    assert_int_equal(atomic_load(&ended), 0);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(listers[i].good);
    }
}

/* A large notebook, and calls that may take a second: each says how far the index is, and it is
 * made in the end. Nothing was asked of it before. */
static void is_told_how_far(void **state)
{
    struct test *test = *state;
    static char text[9000];
    size_t told = 0;
    int64_t total = 0;
    for (size_t i = 0; i + 1 < sizeof(text); i++) {
        text[i] = (char)(i % 7 == 0 ? ' ' : 'a' + (char)((i * i / 7 + i) % 26));
    }
    for (int i = 0; i < NOTES; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "@/nb/d%d/n%d.md", i % 30, i);
        put(test, path, text + i);
    }
    open_workers(test, REGISTERED, "limits.call_timeout=1s");
    has(test, "get", "{\"path\":\"d7/n7.md\"}", "n7");
    for (int i = 0; i < PATIENCE && total == 0; i++) {
        struct answer answer = call(test, "list", "{\"limit\":1}");
        if (answer.rc == NG_OK) {
            total = number_of(answer.text, "total");
        } else {
            assert_string_equal(answer.code, "TIMEOUT");
            told += strstr(answer.message, " of 3000 are") != NULL;
        }
        answer_free(&answer);
    }
    assert_int_equal(total, NOTES);
    print_message("%zu calls were told how far the index is\n", told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waiting_keeps_no_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(is_told_how_far, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
