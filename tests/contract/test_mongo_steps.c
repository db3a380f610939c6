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
#define STEPS_MAX 48
#define PATIENCE_S 120
#define WRITERS 6
#define CHANGES 12
#define NAME_MAX_BYTES 32
#define FIRST_TRIES 5

static char database[64], database_set[96], uri_set[512];
static const char *server_uri;
static int server_port;
static mongoc_client_t *client;

static void nap(void)
{
    struct timespec step = {0, 50000000};
    (void)nanosleep(&step, NULL);
}

static void open_with(struct fixture *fixture, const char *const *sets)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture_open(fixture, "mongo", sets);
}

/* A slow server is no fault here; an intent that stays open is undone after that time. */
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

static int64_t count_of(const char *collection, const bson_t *filter)
{
    bson_error_t error;
    mongoc_collection_t *target = mongoc_client_get_collection(client, database, collection);
    int64_t count = mongoc_collection_count_documents(target, filter, NULL, NULL, NULL, &error);
    mongoc_collection_destroy(target);
    if (count < 0) {
        fail_msg("counting %s: %s", collection, error.message);
    }
    return count;
}

/* ---- a writer that dies between two steps ---- */

static bool has(const char *message, size_t len, const char *word)
{
    return memmem(message, len, word, strlen(word)) != NULL;
}

static bool of_intent(const char *message, size_t len)
{
    return (has(message, len, "notegate_intent") || has(message, len, "notegate.intent")) &&
           !has(message, len, "createIndexes") && !has(message, len, "started");
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
    struct cut_line *line = cut_line_new(server_port, step, of_intent);
    assert_non_null(line);
    *ret_rc = change_over(line, step, "mongo.timeout=1s");
    return cut_line_free(line);
}

static void expect_nothing_left(void)
{
    bson_t all = BSON_INITIALIZER;
    bson_t locked = BSON_INITIALIZER;
    bson_t places = BSON_INITIALIZER;
    bson_t part;
    time_t until = time(NULL) + PATIENCE_S;
    while ((count_of("notegate_intents", &all) > 0 ||
            count_of("notegate_intent_puts", &all) > 0) &&
           time(NULL) < until) {
        nap();
    }
    assert_int_equal(count_of("notegate_intents", &all), 0);
    assert_int_equal(count_of("notegate_intent_puts", &all), 0);
    BSON_APPEND_DOCUMENT_BEGIN(&locked, "notegate.intent", &part);
    BSON_APPEND_BOOL(&part, "$exists", true);
    (void)bson_append_document_end(&locked, &part);
    BSON_APPEND_INT64(&places, "notegate.revision", 0);
    assert_int_equal(count_of("things", &locked), 0);
    assert_int_equal(count_of("things", &places), 0);
    bson_destroy(&all);
    bson_destroy(&locked);
    bson_destroy(&places);
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
    expect_nothing_left();
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

/* ---- a commit whose answer got lost ---- */

static struct fixture *reader;
static unsigned looks; /* 0: the commit is not made yet */

static void commit_open_intents(void)
{
    bson_error_t error;
    bson_t open = BSON_INITIALIZER;
    bson_t done = BSON_INITIALIZER;
    bson_t part;
    mongoc_collection_t *intents =
        mongoc_client_get_collection(client, database, "notegate_intents");
    BSON_APPEND_UTF8(&open, "state", "open");
    BSON_APPEND_DOCUMENT_BEGIN(&done, "$set", &part);
    BSON_APPEND_UTF8(&part, "state", "done");
    (void)bson_append_document_end(&done, &part);
    assert_true(mongoc_collection_update_one(intents, &open, &done, NULL, NULL, &error));
    mongoc_collection_destroy(intents);
    bson_destroy(&open);
    bson_destroy(&done);
}

/* The commit is made twice, as a driver does that lost the first answer. Of the looks that the
 * writer then takes at what came of it, another gateway's reader ends the change between the
 * first two. Nothing is ever cut. */
static bool come_between(const char *message, size_t len)
{
    bool done = has(message, len, "notegate_intents") && has(message, len, "done");
    if (looks == 0 && done && has(message, len, "$set")) {
        commit_open_intents();
        looks = 1;
    } else if (looks > 0 &&
               ((done && has(message, len, "find")) || has(message, len, "outbox.batch"))) {
        if (++looks == 3) {
            (void)changed(reader, 0);
        }
    }
    return false;
}

/* No gateway moves events until this one counts as dead: its events would be published, too. */
static void hold_the_relay(void)
{
    bson_error_t error;
    bson_t lease = BSON_INITIALIZER;
    mongoc_collection_t *meta = mongoc_client_get_collection(client, database, "notegate_meta");
    BSON_APPEND_UTF8(&lease, "_id", "relay");
    BSON_APPEND_UTF8(&lease, "owner", "nobody");
    BSON_APPEND_INT64(&lease, "beat", 1);
    BSON_APPEND_INT64(&lease, "kicks", 0);
    assert_true(mongoc_collection_insert_one(meta, &lease, NULL, NULL, &error));
    mongoc_collection_destroy(meta);
    bson_destroy(&lease);
}

static void test_lost_answer_to_a_commit(void **state)
{
    struct fixture other;
    int rc = NG_OK;
    (void)state;
    looks = 0;
    reader = &other;
    hold_the_relay();
    open_direct(&other);
    before_step(&other, 0);
    struct cut_line *line = cut_line_new(server_port, 0, come_between);
    assert_non_null(line);
    rc = change_over(line, 0, "mongo.timeout=10s");
    (void)cut_line_free(line);
    assert_true(looks > 1);
    assert_int_equal(changed(&other, 0), DOCS);
    assert_int_equal(rc, NG_OK);
    expect_nothing_left();
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
        cmocka_unit_test_teardown(test_lost_answer_to_a_commit, drop_database),
        cmocka_unit_test_teardown(test_many_writers_of_two_documents, drop_database),
        cmocka_unit_test_teardown(test_indexes_come_before_an_update, drop_database),
    };
    client = mongoc_client_new(server_uri);
    assert_non_null(client);
    server_port = mongoc_uri_get_hosts(mongoc_client_get_uri(client))->port;
    int failed = cmocka_run_group_tests_name("steps in MongoDB", tests, NULL, NULL);
    mongoc_client_destroy(client);
    return failed;
}
