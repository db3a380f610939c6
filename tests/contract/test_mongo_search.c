/* SPDX-License-Identifier: MIT */
/* test_mongo_search.c - ranks by the stored terms of documents are those by their texts, and
 * need no text. NOTEGATE_TEST_MONGO_URI says where a server is. */
#include <mongoc/mongoc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backend_fixture.h"
#include "core/base/str.h"

#define DATABASE_MAX 64
#define HITS_LISTED 8192
#define WAIT_TRIES 6000
/* More than a search reads together. */
#define MANY_DOCS 120

static const char *const *search_sets;
static char database[DATABASE_MAX];
static mongoc_client_t *client;

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture, "mongo", search_sets);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    bson_error_t error;
    fixture_close(*state);
    free(*state);
    mongoc_database_t *made = mongoc_client_get_database(client, database);
    (void)mongoc_database_drop(made, &error);
    mongoc_database_destroy(made);
    return 0;
}

/* Changes documents as another program does. JSON. */
static void edit(const char *filter, const char *update)
{
    bson_error_t error;
    bson_t reply;
    mongoc_collection_t *things = mongoc_client_get_collection(client, database, "things");
    bson_t *of = bson_new_from_json((const uint8_t *)filter, -1, &error);
    bson_t *to = bson_new_from_json((const uint8_t *)update, -1, &error);
    assert_non_null(of);
    assert_non_null(to);
    if (!mongoc_collection_update_many(things, of, to, NULL, &reply, &error)) {
        fail_msg("%s: %s", update, error.message);
    }
    bson_destroy(&reply);
    bson_destroy(of);
    bson_destroy(to);
    mongoc_collection_destroy(things);
}

static int64_t count(const char *filter)
{
    bson_error_t error;
    mongoc_collection_t *things = mongoc_client_get_collection(client, database, "things");
    bson_t *of = bson_new_from_json((const uint8_t *)filter, -1, &error);
    assert_non_null(of);
    int64_t ret = mongoc_collection_count_documents(things, of, NULL, NULL, NULL, &error);
    bson_destroy(of);
    mongoc_collection_destroy(things);
    return ret;
}

static void put_words(struct fixture *f, const char *id, const char *title, const char *text)
{
    struct change change = {.id = ng_str_of(id), .title = title, .text = ng_str_of(text)};
    assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
}

/* The hits with their ranks and excerpts, one a line. */
static void list_hits(struct fixture *f, const char *text, const char *sort, uint32_t limit,
                      char ret[HITS_LISTED])
{
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .sort = ng_str_of(sort),
                             .limit = limit,
                             .want_total = true};
    struct ng_search search = {
        .size = sizeof(search), .query = &query, .text = ng_str_of(text), .snippet_chars = 40};
    struct rows rows = {0};
    uint64_t total = 0;
    if (f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, &total) != NG_OK) {
        fail_msg("searching %s failed: %s", text, fixture_error(f));
    }
    size_t at = (size_t)snprintf(ret, HITS_LISTED, "%s: %llu", text, (unsigned long long)total);
    for (size_t i = 0; i < rows.count; i++) {
        at += (size_t)snprintf(ret + at, HITS_LISTED - at, "\n%s %.17g %s", rows.items[i].id,
                               rows.items[i].score, rows.items[i].snippet);
        assert_true(at < HITS_LISTED);
    }
    rows_done(&rows);
}

#define STALE "{\"$set\":{\"notegate.terms.revision\":77}}"
#define NO_TERMS "{\"$unset\":{\"notegate.terms\":\"\"}}"
#define ALL "{}"

static const char *const searches[] = {"run",
                                       "running",
                                       "runs drone",
                                       "\"run\"",
                                       "run*",
                                       "ru* dron*",
                                       "run* run running",
                                       "universal univers",
                                       "generically*",
                                       "gener",
                                       "3",
                                       "0*",
                                       "\xE2\x92\x88",
                                       "\xE2\x92\x88*",
                                       "2\xE2\x92\x88",
                                       "caf\xC3\xA9",
                                       "STRASSE",
                                       "\xE6\x97\xA0",
                                       "\xE6\x97\xA0\xE4\xBA\xBA",
                                       "flies fly",
                                       "the of",
                                       "lantern -- run",
                                       "\"runs run\"",
                                       "get_user_name",
                                       "nothing here*",
                                       "happiness happy happily"};

static void put_corpus(struct fixture *f)
{
    put_words(f, "a", "Running",
              "run runs running ran; the drones flew for 3 hours, 3.14 of 0");
    put_words(f, "b", "a universal drone",
              "univers universe universal universally generically");
    put_words(f, "c", "", "gener generic general generate runner rung rune drone drone drone");
    put_words(f, "d", "run run run", "of the flies that fly \xE2\x92\x88 2\xE2\x92\x89 $a.b");
    put_words(f, "e", "caf\xC3\xA9",
              "happiness is happily happy; Die Stra\xC3\x9F"
              "e, get_user_name() lantern");
    put_words(
        f, "f", "nothing",
        "\xE6\x88\x91\xE4\xBB\xAC\xE7\x9A\x84\xE6\x97\xA0\xE4\xBA\xBA\xE6\x9C\xBA runs run");
    put_words(f, "g", "", "");
}

/* Hits without terms, or with those of another revision, are ranked by their texts. */
static void test_ranks_are_equal(void **state)
{
    struct fixture *f = *state;
    static char before[HITS_LISTED], after[HITS_LISTED];
    put_corpus(f);
    for (size_t i = 0; i < NG_COUNT(searches); i++) {
        for (size_t sorted = 0; sorted < 2; sorted++) {
            const char *sort = sorted ? "created" : "";
            edit(ALL, "{\"$set\":{\"notegate.terms.revision\":1}}");
            list_hits(f, searches[i], sort, 10, before);
            edit(ALL, STALE);
            list_hits(f, searches[i], sort, 10, after);
            assert_string_equal(before, after);
        }
    }
    edit(ALL, NO_TERMS);
    list_hits(f, "run", "", 10, before);
    edit("{\"notegate.id\":\"a\"}", "{\"$set\":{\"notegate.terms\":5}}");
    list_hits(f, "run", "", 10, after);
    assert_string_equal(before, after);
}

/* What the documents say is not looked at: here it says something else than the terms. */
static void test_no_text_is_read(void **state)
{
    struct fixture *f = *state;
    static char before[HITS_LISTED], after[HITS_LISTED];
    put_words(f, "once", "", "lantern and other words");
    put_words(f, "often", "", "lantern lanterns lantern lantern");
    put_words(f, "stem", "", "lanterns");
    list_hits(f, "lantern", "", 3, before);
    assert_non_null(strstr(before, "lantern: 3\noften "));
    list_hits(f, "lantern", "", 1, before);
    edit("{\"notegate.id\":{\"$ne\":\"often\"}}",
         "{\"$set\":{\"text\":\"lantern lantern lantern lantern lantern\"}}");
    list_hits(f, "lantern", "", 1, after);
    assert_string_equal(before, after);
    edit("{\"notegate.id\":{\"$ne\":\"often\"}}", "{\"$set\":{\"text\":\"empty\"}}");
    list_hits(f, "lantern*", "", 1, after);
    assert_non_null(strstr(after, "lantern*: 3\noften "));
    edit(ALL, STALE);
    list_hits(f, "lantern*", "", 1, after);
    assert_non_null(strstr(after, "lantern*: 1\noften "));
}

/* Many documents without terms, and more hits than are read together. */
static void test_many(void **state)
{
    struct fixture *f = *state;
    static char before[HITS_LISTED], after[HITS_LISTED];
    for (int i = 0; i < MANY_DOCS; i++) {
        char id[16];
        char text[64];
        (void)snprintf(id, sizeof(id), "d%d", i);
        (void)snprintf(text, sizeof(text), "drone %s%s", i % 3 ? "drones " : "", id);
        put_words(f, id, i % 7 ? "swarm" : "drone", text);
    }
    list_hits(f, "drone d5", "", MANY_DOCS, before);
    edit(ALL, NO_TERMS);
    list_hits(f, "drone d5", "", MANY_DOCS, after);
    assert_string_equal(before, after);
}

/* Larger documents than are kept in memory together. */
static void test_large(void **state)
{
    enum { SIZE = 1536 * 1024, DOCS = 4 };
    struct fixture *f = *state;
    static char before[HITS_LISTED], after[HITS_LISTED];
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (size_t i = 0; i < SIZE; i++) {
        text[i] = "drone walks "[i % 12];
    }
    for (int i = 0; i < DOCS; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "d%d", i);
        struct change change = {.id = ng_str_of(id),
                                .text = str_make(text + 12 * i, SIZE - 12 * (size_t)i)};
        assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    }
    free(text);
    list_hits(f, "drones", "", DOCS, before);
    assert_non_null(strstr(before, "drones: 4\n"));
    edit(ALL, STALE);
    list_hits(f, "drones", "", DOCS, after);
    assert_string_equal(before, after);
}

/* Documents that are large besides their texts are not all in memory at the same time. */
static void test_large_besides(void **state)
{
    enum { SIZE = 6 * 1024 * 1024, DOCS = 4 };
    struct fixture *f = *state;
    static char before[HITS_LISTED], after[HITS_LISTED];
    char *json = malloc(SIZE);
    assert_non_null(json);
    memset(json, 'x', SIZE);
    memcpy(json, "{\"x\":\"", 6);
    memcpy(json + SIZE - 3, "\"}", 3);
    for (int i = 0; i < DOCS; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "d%d", i);
        struct change change = {
            .id = ng_str_of(id), .json = json, .text = ng_str_of("a drone")};
        assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    }
    free(json);
    list_hits(f, "drones", "", DOCS, before);
    assert_string_equal(strchr(before, '\n'), strstr(before, "\nd0 "));
    assert_non_null(strstr(before, "\nd3 "));
    edit(ALL, STALE);
    list_hits(f, "drones", "", DOCS, after);
    assert_string_equal(before, after);
}

/* One that has no room for its terms is stored without them, and ranked by its text. */
static void test_no_room_for_terms(void **state)
{
    enum { SIZE = 6700 * 1024, WORD = 8 };
    struct fixture *f = *state;
    static char hits[HITS_LISTED];
    char *text = malloc(SIZE + 1);
    assert_non_null(text);
    for (size_t at = 0; at < SIZE; at += WORD) {
        (void)snprintf(text + at, WORD + 1, "w%06zu ", at / WORD);
    }
    put_words(f, "small", "", "a drone");
    put_words(f, "grown", "", "a drone");
    assert_int_equal(count("{\"notegate.terms\":{\"$exists\":true}}"), 2);
    put_words(f, "large", "", text);
    struct change change = {.id = ng_str_of("grown"), .base = 1, .text = ng_str_of(text)};
    assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    free(text);
    assert_int_equal(count("{\"notegate.terms\":{\"$exists\":true}}"), 1);
    list_hits(f, "w000001", "", 10, hits);
    assert_non_null(strstr(hits, "w000001: 2\n"));
}

/* A document that an older version has changed gets its terms at the next start. */
static void test_fill(void **state)
{
    struct fixture *f = *state;
    static char before[HITS_LISTED], after[HITS_LISTED];
    const struct timespec nap = {0, 10000000};
    put_corpus(f);
    list_hits(f, "runs drone*", "", 10, before);
    fixture_stop(f);
    edit("{\"notegate.id\":\"a\"}", NO_TERMS);
    edit("{\"notegate.id\":\"c\"}", STALE);
    edit("{\"notegate.id\":\"b\"}", "{\"$unset\":{\"notegate.words\":\"\"}}");
    edit("{\"notegate.id\":\"d\"}",
         "{\"$unset\":{\"notegate.terms\":\"\", \"notegate.words\":\"\"}}");
    assert_int_equal(fixture_start(f), NG_OK);
    fixture_declare(f);
    for (int tries = 0; count("{\"notegate.terms.revision\":1}") < 7; tries++) {
        assert_true(tries < WAIT_TRIES);
        (void)nanosleep(&nap, NULL);
    }
    assert_int_equal(count("{\"notegate.words\":{\"$exists\":true}}"), 7);
    edit(ALL, "{\"$set\":{\"text\":\"empty\"}}");
    list_hits(f, "runs drone*", "", 0, after);
    assert_non_null(strstr(before, after));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const char *uri = getenv("NOTEGATE_TEST_MONGO_URI");
    static char uri_set[512];
    static char database_set[DATABASE_MAX + 16];
    if (uri == NULL || *uri == '\0') {
        printf("skipped: NOTEGATE_TEST_MONGO_URI is not set\n");
        return 77;
    }
    (void)snprintf(uri_set, sizeof(uri_set), "mongo.uri=%s", uri);
    (void)snprintf(database, sizeof(database), "notegate_search_%ld", (long)getpid());
    (void)snprintf(database_set, sizeof(database_set), "mongo.database=%s", database);
    static const char *const sets[] = {uri_set, database_set, "mongo.timeout=30s", NULL};
    const struct CMUnitTest tests[] = {TEST(test_ranks_are_equal),
                                       TEST(test_no_text_is_read),
                                       TEST(test_many),
                                       TEST(test_large),
                                       TEST(test_large_besides),
                                       TEST(test_no_room_for_terms),
                                       TEST(test_fill)};
    search_sets = sets;
    client = mongoc_client_new(uri);
    assert_non_null(client);
    int failed = cmocka_run_group_tests_name("searches in MongoDB", tests, NULL, NULL);
    mongoc_client_destroy(client);
    return failed;
}
