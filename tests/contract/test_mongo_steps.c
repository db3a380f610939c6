/* SPDX-License-Identifier: MIT */
/* test_mongo_steps.c - changes of several documents on MongoDB: a writer that dies between any
 * two steps leaves all of a change or nothing of it, and many writers of the same documents
 * lose nothing. NOTEGATE_TEST_MONGO_URI says where a server is, on this machine. */
#include <mongoc/mongoc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backend_fixture.h"
#include "core/base/str.h"
#include "cut_line.h"

#define DOCS 3
#define PATIENCE_S 120
#define STEPS_MAX 48
#define WRITERS 6
#define CHANGES 12
#define NAME_MAX_BYTES 32
#define FIRST_TRIES 5

static char database[64], database_set[96], uri_set[512];
static const char *server_uri;
static int server_port;
static mongoc_client_t *client;

static void open_with(struct fixture *fixture, const char *const *sets)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture_open(fixture, "mongo", sets);
}

/* A slow server is no fault here. */
static void open_direct(struct fixture *fixture)
{
    static const char *const sets[] = {uri_set, database_set, "mongo.timeout=10s", NULL};
    open_with(fixture, sets);
}

static int drop_database(void **state)
{
    bson_error_t error;
    (void)state;
    mongoc_database_t *made = mongoc_client_get_database(client, database);
    (void)mongoc_database_drop(made, &error);
    mongoc_database_destroy(made);
    return 0;
}

/* ---- a writer that dies between two steps ---- */

static bool has(const char *message, size_t len, const char *word)
{
    return memmem(message, len, word, strlen(word)) != NULL;
}

/* A message of a transaction, the commit among them. */
static bool of_transaction(const char *message, size_t len)
{
    return has(message, len, "txnNumber") && has(message, len, "autocommit");
}

static void doc_name(char name[NAME_MAX_BYTES], size_t step, size_t doc)
{
    (void)snprintf(name, NAME_MAX_BYTES, "%s-%zu", (const char *[]){"old", "new", "other"}[doc],
                   step);
}

/* "old" and "other" are there before, "new" is made. */
static void before_step(struct fixture *fixture, size_t step)
{
    char name[NAME_MAX_BYTES];
    for (size_t doc = 0; doc < DOCS; doc += 2) {
        doc_name(name, step, doc);
        assert_int_equal(fixture_put(fixture, name, 0, "", "before"), NG_OK);
    }
}

static int change_all(struct fixture *fixture, size_t step)
{
    char names[DOCS][NAME_MAX_BYTES];
    struct change changes[DOCS];
    memset(changes, 0, sizeof(changes));
    for (size_t doc = 0; doc < DOCS; doc++) {
        doc_name(names[doc], step, doc);
        changes[doc].id = ng_str_of(names[doc]);
        changes[doc].text = ng_str_of("after");
        changes[doc].base = doc == 1 ? 0 : 1;
        changes[doc].before_text = ng_str_of(doc == 1 ? "" : "before");
    }
    return fixture_commit(fixture, changes, DOCS, NULL, NULL, NULL);
}

/* How many of the documents show the change: all or none, at any time. */
static size_t changed(struct fixture *fixture, size_t step)
{
    size_t count = 0;
    for (size_t doc = 0; doc < DOCS; doc++) {
        char name[NAME_MAX_BYTES];
        struct rows rows = {0};
        doc_name(name, step, doc);
        int rc = fixture_get(fixture, name, 0, &rows);
        assert_true(rc == NG_OK || (rc == NG_ENOTFOUND && doc == 1));
        if (rc == NG_OK && strcmp(rows.items[0].text, "after") == 0) {
            count++;
        }
        rows_done(&rows);
    }
    if (count != 0 && count != DOCS) {
        fail_msg("after a death before step %zu, %zu of %d documents show the change", step,
                 count, DOCS);
    }
    return count;
}

static void open_over(struct fixture *fixture, const struct cut_line *line, const char *timeout)
{
    char uri[128];
    (void)snprintf(uri, sizeof(uri), "mongo.uri=mongodb://127.0.0.1:%d/?directConnection=true",
                   cut_line_port(line));
    const char *const sets[] = {uri, database_set, timeout, NULL};
    open_with(fixture, sets);
}

/* Result of the change for a writer on that connection, which stays open. */
static int change_over(const struct cut_line *line, size_t step, const char *timeout)
{
    struct fixture writer;
    open_over(&writer, line, timeout);
    int rc = change_all(&writer, step);
    fixture_close(&writer);
    return rc;
}

/* Returns whether the writer died; *ret_rc: what the change came to for it. */
static bool die_before(size_t step, int *ret_rc)
{
    struct cut_line *line = cut_line_new(server_port, step, of_transaction);
    assert_non_null(line);
    *ret_rc = change_over(line, step, "mongo.timeout=1s");
    return cut_line_free(line);
}

static void test_death_between_steps(void **state)
{
    struct fixture other;
    int rcs[STEPS_MAX];
    size_t steps = 0;
    bool died = true;
    (void)state;
    open_direct(&other);
    while (died) {
        assert_true(steps < STEPS_MAX);
        before_step(&other, steps);
        died = die_before(steps, &rcs[steps]);
        size_t shows = changed(&other, steps);
        assert_true(rcs[steps] != NG_OK || shows == DOCS);
        steps++;
    }
    assert_int_equal(rcs[steps - 1], NG_OK);
    assert_true(steps > DOCS);
    for (size_t step = 0; step < steps; step++) {
        char name[NAME_MAX_BYTES];
        size_t shows = changed(&other, step);
        assert_true(rcs[step] != NG_OK || shows == DOCS);
        for (size_t doc = 0; doc < DOCS; doc++) {
            uint64_t base = (shows == DOCS ? 1U : 0U) + (doc == 1 ? 0U : 1U);
            doc_name(name, step, doc);
            assert_int_equal(fixture_put(&other, name, base,
                                         shows == DOCS ? "after"
                                         : doc == 1    ? ""
                                                       : "before",
                                         "more"),
                             NG_OK);
        }
    }
    expect_clean(&other);
    fixture_close(&other);
}

/* ---- many writers ---- */

struct writer {
    pthread_t thread;
    size_t number;
    size_t made[2]; /* changes of each document that were acknowledged */
    const char *fault;
};

static bool is_passing(int rc)
{
    return rc == NG_ECONFLICT || rc == NG_EBUSY;
}

/* Adds a line to one document or to both, made on what was just read. */
static int add_line(struct fixture *fixture, const char *line, bool both)
{
    struct change changes[2];
    struct rows rows[2] = {{0}, {0}};
    char *texts[2] = {NULL, NULL};
    int rc = NG_OK;
    size_t count = both ? 2 : 1;
    memset(changes, 0, sizeof(changes));
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = fixture_get(fixture, i == 0 ? "first" : "second", 0, &rows[i]);
        if (rc != NG_OK) {
            break;
        }
        const struct row *row = &rows[i].items[0];
        size_t size = strlen(row->text) + strlen(line) + 2;
        texts[i] = malloc(size);
        if (texts[i] == NULL) {
            rc = NG_EINTERNAL;
            break;
        }
        (void)snprintf(texts[i], size, "%s%s\n", row->text, line);
        changes[i].id = ng_str_of(i == 0 ? "first" : "second");
        changes[i].base = row->revision;
        changes[i].text = ng_str_of(texts[i]);
        changes[i].before_text = ng_str_of(row->text);
    }
    rc = rc == NG_OK ? fixture_commit(fixture, changes, count, NULL, NULL, NULL) : rc;
    for (size_t i = 0; i < count; i++) {
        rows_done(&rows[i]);
        free(texts[i]);
    }
    return rc;
}

static void *writer_main(void *user)
{
    struct writer *writer = user;
    struct fixture fixture;
    open_direct(&fixture);
    for (size_t i = 0; i < CHANGES && writer->fault == NULL; i++) {
        char line[NAME_MAX_BYTES];
        bool both = (i + writer->number) % 3 == 0;
        int rc = NG_ECONFLICT;
        time_t until = time(NULL) + PATIENCE_S;
        (void)snprintf(line, sizeof(line), "writer %zu line %zu", writer->number, i);
        while (is_passing(rc) && time(NULL) < until) {
            rc = add_line(&fixture, line, both);
        }
        if (rc != NG_OK) {
            writer->fault = fixture_error(&fixture);
            break;
        }
        writer->made[0]++;
        writer->made[1] += both ? 1 : 0;
    }
    fixture_close(&fixture);
    return NULL;
}

static size_t times(const char *text, const char *line)
{
    size_t count = 0;
    size_t len = strlen(line);
    for (const char *at = strstr(text, line); at != NULL; at = strstr(at + len, line)) {
        count += at[len] == '\n' ? 1 : 0;
    }
    return count;
}

static void test_many_writers_of_two_documents(void **state)
{
    struct fixture other;
    struct writer writers[WRITERS];
    struct rows rows[2] = {{0}, {0}};
    size_t made[2] = {0, 0};
    (void)state;
    open_direct(&other);
    assert_int_equal(fixture_put(&other, "first", 0, "", "begin\n"), NG_OK);
    assert_int_equal(fixture_put(&other, "second", 0, "", "begin\n"), NG_OK);
    memset(writers, 0, sizeof(writers));
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i].number = i;
        assert_int_equal(pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        (void)pthread_join(writers[i].thread, NULL);
        assert_null(writers[i].fault);
        made[0] += writers[i].made[0];
        made[1] += writers[i].made[1];
    }
    assert_int_equal(fixture_get(&other, "first", 0, &rows[0]), NG_OK);
    assert_int_equal(fixture_get(&other, "second", 0, &rows[1]), NG_OK);
    for (size_t i = 0; i < WRITERS * CHANGES; i++) {
        char line[NAME_MAX_BYTES];
        size_t number = i / CHANGES;
        bool both = (i % CHANGES + number) % 3 == 0;
        (void)snprintf(line, sizeof(line), "writer %zu line %zu", number, i % CHANGES);
        assert_int_equal(times(rows[0].items[0].text, line), 1);
        assert_int_equal(times(rows[1].items[0].text, line), both ? 1 : 0);
    }
    assert_int_equal(rows[0].items[0].revision, made[0] + 1);
    assert_int_equal(rows[1].items[0].revision, made[1] + 1);
    rows_done(&rows[0]);
    rows_done(&rows[1]);
    expect_clean(&other);
    fixture_close(&other);
}

/* ---- the first write of a collection ---- */

static atomic_bool indexed, too_early;

static bool note_order(const char *message, size_t len)
{
    if (has(message, len, "things") && has(message, len, "createIndexes")) {
        atomic_store(&indexed, true);
    } else if (has(message, len, "things") && has(message, len, "updates") &&
               !atomic_load(&indexed)) {
        atomic_store(&too_early, true);
    }
    return false;
}

/* It may be an update that finds nothing. A server that makes the collection for it and for the
 * indexes at the same time may block on itself. */
static void test_indexes_come_before_an_update(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIRST_TRIES; i++) {
        struct fixture fixture;
        struct cut_line *line = cut_line_new(server_port, SIZE_MAX, note_order);
        assert_non_null(line);
        atomic_store(&indexed, false);
        open_over(&fixture, line, "mongo.timeout=10s");
        assert_int_equal(fixture_put(&fixture, "gone", 1, "before", "after"), NG_ECONFLICT);
        assert_int_equal(fixture_put(&fixture, "new", 0, "", "text"), NG_OK);
        expect_doc(&fixture, "new", 1, "text");
        fixture_close(&fixture);
        assert_false(cut_line_free(line));
        assert_true(atomic_load(&indexed));
        assert_false(atomic_load(&too_early));
        (void)drop_database(NULL);
    }
}

/* ---- the first operation ---- */

static atomic_bool away;

/* Nothing is answered while `away`. Then dropping a collection that is not there is an error,
 * as in MongoDB before 7: in its place a command that is one. */
static bool pass_later(const char *message, size_t len)
{
    static const char drop[] = "\x02"
                               "drop";
    static const char other[] = "collMod";
    size_t more = sizeof(other) - (sizeof(drop) - 1);
    while (atomic_load(&away)) {
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    char *at = memmem((void *)(uintptr_t)message, len, drop, sizeof(drop));
    if (at != NULL) {
        int32_t size = 0;
        char name[NAME_MAX_BYTES];
        memcpy(&size, at + sizeof(drop), sizeof(size));
        size -= (int32_t)more;
        (void)snprintf(name, sizeof(name), "%.*s", (int)size - 1,
                       at + sizeof(drop) + sizeof(size));
        memcpy(++at, other, sizeof(other));
        memcpy(at + sizeof(other), &size, sizeof(size));
        memcpy(at + sizeof(other) + sizeof(size), name, (size_t)size);
    }
    return false;
}

/* Documents that are there, whatever was told of them. */
static int64_t stored(void)
{
    bson_error_t error;
    bson_t all = BSON_INITIALIZER;
    mongoc_collection_t *things = mongoc_client_get_collection(client, database, "things");
    int64_t count = mongoc_collection_count_documents(things, &all, NULL, NULL, NULL, &error);
    mongoc_collection_destroy(things);
    return count;
}

/* The server answers only after the start, and the first operation is a change. It is told as
 * it ended. */
static void test_first_operation(void **state)
{
    struct fixture fixture;
    struct cut_line *line = cut_line_new(server_port, SIZE_MAX, pass_later);
    time_t until = time(NULL) + PATIENCE_S;
    int rc = NG_EUNAVAILABLE;
    int64_t unknown = 0;
    (void)state;
    assert_non_null(line);
    atomic_store(&away, true);
    open_over(&fixture, line, "mongo.timeout=300ms");
    assert_int_equal(fixture_put(&fixture, "away", 0, "", "text"), NG_EUNAVAILABLE);
    atomic_store(&away, false);
    for (size_t i = 0; rc != NG_OK && time(NULL) < until; i++) {
        char name[NAME_MAX_BYTES];
        (void)snprintf(name, sizeof(name), "first-%zu", i);
        rc = fixture_put(&fixture, name, 0, "", "text");
        assert_true(rc == NG_OK || rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT);
        unknown += rc == NG_ETIMEOUT;
    }
    assert_int_equal(rc, NG_OK);
    assert_in_range(stored(), 1, 1 + unknown);
    fixture_close(&fixture);
    (void)cut_line_free(line);
}

/* ---- names ---- */

/* The id of a document may be the name of another one's version: their histories stay apart. */
static void test_names_like_versions(void **state)
{
    static const char *const ids[] = {"a", "a#00000000000000000001"};
    struct fixture fixture;
    (void)state;
    open_direct(&fixture);
    for (int revision = 0; revision < 3; revision++) {
        for (size_t i = 0; i < 2; i++) {
            char before[96] = "", after[96];
            if (revision > 0) {
                (void)snprintf(before, sizeof(before), "a text that stays as it is, %s %d",
                               ids[i], revision);
            }
            (void)snprintf(after, sizeof(after), "a text that stays as it is, %s %d", ids[i],
                           revision + 1);
            assert_int_equal(fixture_put(&fixture, ids[i], (uint64_t)revision, before, after),
                             NG_OK);
        }
    }
    assert_int_equal(fixture.docs->settle(fixture.db, fixture_call(&fixture), UINT32_MAX,
                                          PATIENCE_S * INT64_C(1000)),
                     NG_OK);
    for (size_t i = 0; i < 2; i++) {
        struct rows rows = {0};
        char text[96];
        (void)snprintf(text, sizeof(text), "a text that stays as it is, %s 2", ids[i]);
        assert_int_equal(fixture_get(&fixture, ids[i], 2, &rows), NG_OK);
        assert_string_equal(rows.items[0].text, text);
        rows_done(&rows);
    }
    expect_clean(&fixture);
    fixture_close(&fixture);
}

/* ---- advice, the pool ---- */

static void count_advice(void *user, const char *text)
{
    printf("advice: %s\n", text);
    ++*(size_t *)user;
}

/* A replica set without access control, with all indexes: nothing is to be done. */
static void test_no_advice(void **state)
{
    struct fixture fixture;
    size_t count = 0;
    (void)state;
    open_direct(&fixture);
    assert_int_equal(fixture_put(&fixture, "one", 0, "", "text"), NG_OK);
    assert_int_equal(
        fixture.docs->advise(fixture.db, fixture_call(&fixture), count_advice, &count), NG_OK);
    assert_int_equal(count, 0);
    fixture_close(&fixture);
}

/* The change stream and the readers need connections beside the writers. */
static void test_small_pools(void **state)
{
    struct fixture fixture = {0};
    char uri[640];
    const char *const sets[] = {uri, database_set, "mongo.writers=64", NULL};
    (void)state;
    const char *join = strchr(server_uri, '?') != NULL ? "&" : "/?";
    (void)snprintf(uri, sizeof(uri), "%s%smaxPoolSize=2", uri_set, join);
    fixture_load(&fixture, "mongo", sets);
    assert_int_equal(fixture_start(&fixture), NG_EINVAL);
    assert_non_null(strstr(fixture_error(&fixture), "maxPoolSize is 2"));
    fixture_close(&fixture);
    (void)snprintf(uri, sizeof(uri), "%s%smaxPoolSize=3", uri_set, join);
    open_with(&fixture, sets);
    for (size_t i = 0; i < 20; i++) {
        char name[NAME_MAX_BYTES];
        (void)snprintf(name, sizeof(name), "small-%zu", i);
        assert_int_equal(fixture_put(&fixture, name, 0, "", "text"), NG_OK);
    }
    fixture_close(&fixture);
}

int main(int argc, char **argv)
{
    server_uri = getenv("NOTEGATE_TEST_MONGO_URI");
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    if (server_uri == NULL || *server_uri == '\0') {
        printf("skipped: NOTEGATE_TEST_MONGO_URI is not set\n");
        return 77;
    }
    (void)snprintf(uri_set, sizeof(uri_set), "mongo.uri=%s", server_uri);
    (void)snprintf(database, sizeof(database), "notegate_steps_%ld", (long)getpid());
    (void)snprintf(database_set, sizeof(database_set), "mongo.database=%s", database);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_death_between_steps, drop_database),
        cmocka_unit_test_teardown(test_many_writers_of_two_documents, drop_database),
        cmocka_unit_test_teardown(test_indexes_come_before_an_update, drop_database),
        cmocka_unit_test_teardown(test_first_operation, drop_database),
        cmocka_unit_test_teardown(test_names_like_versions, drop_database),
        cmocka_unit_test_teardown(test_no_advice, drop_database),
        cmocka_unit_test_teardown(test_small_pools, drop_database),
    };
    client = mongoc_client_new(server_uri);
    assert_non_null(client);
    server_port = mongoc_uri_get_hosts(mongoc_client_get_uri(client))->port;
    int failed = cmocka_run_group_tests_name("steps in MongoDB", tests, NULL, NULL);
    mongoc_client_destroy(client);
    return failed;
}
