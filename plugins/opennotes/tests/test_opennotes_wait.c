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
#include <time.h>

#include "core/call/listing.h"
#include "core/dispatch/dispatch.h"
#include "core/module/registry.h"

#define CALLS 12
#define LISTS 4
#define WAIT_S 60 /* for what happens at once on an idle machine */
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

/* ---- lists that are not asked again ---- */

struct tally {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting, ended, failed;
};

struct asked {
    struct ng_listing listing; /* first */
    struct tally *tally;
    bool before;
};

static void count(struct tally *tally, int *what)
{
    (void)pthread_mutex_lock(&tally->lock);
    (*what)++;
    (void)pthread_cond_broadcast(&tally->changed);
    (void)pthread_mutex_unlock(&tally->lock);
}

static void await(struct tally *tally, const int *what, int wanted)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    (void)pthread_mutex_lock(&tally->lock);
    int rc = 0;
    while (*what < wanted && rc == 0) {
        rc = pthread_cond_timedwait(&tally->changed, &tally->lock, &until);
    }
    (void)pthread_mutex_unlock(&tally->lock);
    assert_int_equal(rc, 0);
}

static int skip_entry(struct ng_listing *listing, const struct listing_item *item)
{
    (void)listing;
    (void)item;
    return NG_OK;
}

/* As resources/list where the plugin is listed no more when it runs again. */
static int ask_once(struct ng_call *pub, void *user)
{
    struct asked *asked = user;
    struct call *call = call_of(pub);
    if (asked->before) {
        return NG_OK;
    }
    asked->before = true;
    call_gives(call);
    int rc =
        call_gave(call, call->plugin->desc.resources[0].list(
                            call->plugin->self, pub, ng_str_of("shared"), &asked->listing));
    if (rc == NG_PENDING) {
        count(asked->tally, &asked->tally->waiting);
    }
    return rc;
}

static void list_ended(struct call *call, void *user)
{
    struct tally *tally = user;
    bool good = call->final.rc == NG_OK;
    call_unref(call);
    if (!good) {
        count(tally, &tally->failed);
    }
    count(tally, &tally->ended);
}

static struct plugin *find_plugin(struct test *test)
{
    struct plugin *const *plugins = NULL;
    size_t all = registry_plugins(test->harness.gateway->registry, &plugins);
    for (size_t i = 0; i < all; i++) {
        if (strcmp(plugins[i]->desc.name, "opennotes") == 0) {
            return plugins[i];
        }
    }
    fail_msg("there is no opennotes");
    return NULL;
}

/* One of the calls makes the index. The others wait for it, and end without the plugin; later
 * calls meet nothing of them. */
static void a_wait_ends_with_its_call(void **state)
{
    struct test *test = *state;
    struct tally tally = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    static const char *const agents[LISTS] = {"a0", "a1", "a2", "a3"};
    struct asked lists[LISTS];
    put(test, "@/nb/a.md", "# a");
    open_workers(test, REGISTERED, "limits.workers=4");
    has(test, "list", "{}", "\"total\":1");
    sqlite3 *db = lock_index(test);
    put(test, "@/nb/b.md", "# b");
    for (int i = 0; i < LISTS; i++) {
        struct call *call = harness_new_call(&test->harness);
        lists[i] = (struct asked){.listing.add = skip_entry, .tally = &tally};
        call->caller.agent = ng_str_of(agents[i]);
        call->read_only = true;
        call->plugin = find_plugin(test);
        call->done = list_ended;
        call->done_user = &tally;
        assert_int_equal(dispatch_step(call, ask_once, &lists[i]), NG_PENDING);
    }
    await(&tally, &tally.waiting, LISTS - 1);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    await(&tally, &tally.ended, LISTS);
    assert_int_equal(tally.failed, 0);
    has(test, "list", "{}", "\"total\":2");
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
        cmocka_unit_test_setup_teardown(a_wait_ends_with_its_call, setup, teardown),
        cmocka_unit_test_setup_teardown(is_told_how_far, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
