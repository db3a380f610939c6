/* SPDX-License-Identifier: MIT */
/* test_mongo_entries.c - the entries of the agent notebook as mongosh shows them; they read
 * back as they were written. NOTEGATE_TEST_MONGO_URI says where a server is. */
#include <mongoc/mongoc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backend_fixture.h"
#include "core/base/clock.h"
#include "core/base/str.h"

#define DATABASE_MAX 64
#define PATIENCE_S 150
#define NAME_MAX_BYTES 128
#define DAY_MS INT64_C(86400000)

static const char *const *entry_sets;
static char database[DATABASE_MAX];
static mongoc_client_t *client;

static const struct ng_collection snippets = {.name = "code_snippets",
                                              .flags = NG_COLLECTION_TEXT_SEARCH};

static const struct ng_collection hidden = {
    .name = "hidden", .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture, "mongo", entry_sets);
    assert_int_equal(fixture->docs->declare(fixture->db, fixture_call(fixture), &snippets),
                     NG_OK);
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

static bson_t *find_in(const char *name, const char *id)
{
    const bson_t *doc = NULL;
    bson_t *copy = NULL;
    bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&filter, "_id", id);
    mongoc_collection_t *collection = mongoc_client_get_collection(client, database, name);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, &filter, NULL, NULL);
    if (mongoc_cursor_next(cursor, &doc)) {
        copy = bson_copy(doc);
    }
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(collection);
    bson_destroy(&filter);
    return copy;
}

static bson_t *find(const char *id)
{
    return find_in(snippets.name, id);
}

static void expect_type(const bson_t *doc, const char *path, bson_type_t type)
{
    bson_iter_t iter;
    bson_iter_t found;
    assert_true(bson_iter_init(&iter, doc));
    if (!bson_iter_find_descendant(&iter, path, &found) || bson_iter_type(&found) != type) {
        fail_msg("%s is not there, or of another type", path);
    }
}

static void expect_json(struct fixture *f, const char *space, uint64_t revision,
                        const char *json, const char *text)
{
    struct ng_key key = {ng_str_of(snippets.name), ng_str_of(space), ng_str_of("aB3dE6gH9jK2")};
    struct rows rows = {0};
    assert_int_equal(f->docs->get(f->db, fixture_call(f), &key, revision, rows_add, &rows),
                     NG_OK);
    assert_string_equal(rows.items[0].json, json);
    assert_string_equal(rows.items[0].text, text);
    rows_done(&rows);
}

#define FIRST                                                                                  \
    "{\"title\":\"T\",\"summary\":\"S\",\"language\":\"c\",\"metadata\":{\"created_by\":"      \
    "\"agent:a\",\"created_at\":\"2025-01-02T03:04:05.678Z\",\"version\":1,\"tags\":[\"x\"]}," \
    "\"history\":[{\"version\":1,\"timestamp\":\"2025-01-02T03:04:05.678Z\"}]}"
#define SECOND "{\"summary\":\"S2\",\"title\":\"T\",\"odd\":1.0}"

static void test_shape(void **state)
{
    struct fixture *f = *state;
    struct change entry = {.collection = snippets.name,
                           .space = "shared",
                           .id = ng_str_of("aB3dE6gH9jK2"),
                           .json = FIRST,
                           .text = ng_str_of("int main(void);")};
    assert_int_equal(fixture_commit(f, &entry, 1, NULL, NULL, NULL), NG_OK);
    bson_t *doc = find("aB3dE6gH9jK2");
    assert_non_null(doc);
    expect_type(doc, "title", BSON_TYPE_UTF8);
    expect_type(doc, "code", BSON_TYPE_UTF8);
    expect_type(doc, "metadata.created_at", BSON_TYPE_DATE_TIME);
    expect_type(doc, "metadata.version", BSON_TYPE_INT64);
    expect_type(doc, "metadata.tags", BSON_TYPE_ARRAY);
    expect_type(doc, "history.0.timestamp", BSON_TYPE_DATE_TIME);
    expect_type(doc, "space", BSON_TYPE_UTF8);
    assert_false(bson_has_field(doc, "json"));
    assert_false(bson_has_field(doc, "notegate.json"));
    assert_false(bson_has_field(doc, "notegate.fields"));
    bson_destroy(doc);
    expect_json(f, "shared", 0, FIRST, "int main(void);");
    /* The same id in another space is another document. */
    entry.space = "team";
    assert_int_equal(fixture_commit(f, &entry, 1, NULL, NULL, NULL), NG_OK);
    doc = find("team/aB3dE6gH9jK2");
    assert_non_null(doc);
    bson_destroy(doc);
}

static void test_change_and_delete(void **state)
{
    struct fixture *f = *state;
    struct change entry = {.collection = snippets.name,
                           .space = "shared",
                           .id = ng_str_of("aB3dE6gH9jK2"),
                           .json = FIRST,
                           .text = ng_str_of("one")};
    assert_int_equal(fixture_commit(f, &entry, 1, NULL, NULL, NULL), NG_OK);
    entry.base = 1;
    entry.json = SECOND;
    entry.before_json = FIRST;
    entry.before_text = ng_str_of("one");
    entry.text = ng_str_of("two");
    assert_int_equal(fixture_commit(f, &entry, 1, NULL, NULL, NULL), NG_OK);
    expect_json(f, "shared", 0, SECOND, "two");
    bson_t *doc = find("aB3dE6gH9jK2");
    assert_non_null(doc);
    assert_false(bson_has_field(doc, "metadata"));
    assert_false(bson_has_field(doc, "language"));
    expect_type(doc, "odd", BSON_TYPE_DOUBLE);
    expect_type(doc, "notegate.json", BSON_TYPE_UTF8); /* 1.0 would come back as 1 */
    bson_destroy(doc);
    expect_json(f, "shared", 1, FIRST, "one");
    struct change gone = {.collection = snippets.name,
                          .space = "shared",
                          .id = entry.id,
                          .base = 2,
                          .deleted = true,
                          .before_json = SECOND,
                          .before_text = ng_str_of("two")};
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
    doc = find("aB3dE6gH9jK2");
    assert_true(doc == NULL || !bson_has_field(doc, "title"));
    assert_true(doc == NULL || !bson_has_field(doc, "code"));
    bson_destroy(doc);
    expect_json(f, "shared", 2, SECOND, "two");
    expect_json(f, "shared", 0, "{}", "");
    expect_clean(f);
}

struct counting {
    size_t count;
    uint64_t newest;
};

static int count_row(void *user, const struct ng_doc *doc)
{
    struct counting *counting = user;
    counting->count++;
    counting->newest = doc->revision > counting->newest ? doc->revision : counting->newest;
    return 0;
}

static size_t history_of(struct fixture *f, const struct ng_key *key)
{
    struct counting counting = {0, 0};
    struct ng_range range = {.size = sizeof(range), .limit = 100, .with_body = true};
    assert_int_equal(
        f->docs->history(f->db, fixture_call(f), key, &range, count_row, &counting), NG_OK);
    return counting.count;
}

static void wait_until_gone(const char *id)
{
    time_t until = time(NULL) + PATIENCE_S;
    bson_t *doc = find(id);
    while (doc != NULL && time(NULL) < until) {
        struct timespec step = {0, 100000000};
        bson_destroy(doc);
        (void)nanosleep(&step, NULL);
        doc = find(id);
    }
    assert_null(doc);
}

/* The owner of the relay's lease; empty if the lease is free. */
static void lease_owner(char *ret, size_t size)
{
    bson_t *lease = find_in("notegate_meta", "relay");
    bson_iter_t iter;
    ret[0] = '\0';
    if (lease != NULL && bson_iter_init_find(&iter, lease, "owner")) {
        (void)snprintf(ret, size, "%s", bson_iter_utf8(&iter, NULL));
    }
    bson_destroy(lease);
}

static void wait_for_lease(const char *former_owner)
{
    char owner[NAME_MAX_BYTES];
    time_t until = time(NULL) + PATIENCE_S;
    do {
        struct timespec step = {0, 100000000};
        (void)nanosleep(&step, NULL);
        lease_owner(owner, sizeof(owner));
    } while ((owner[0] == '\0' || strcmp(owner, former_owner) == 0) && time(NULL) < until);
    assert_string_not_equal(owner, "");
    assert_string_not_equal(owner, former_owner);
}

/* Waits at the first record of an entry until its tombstone has left. */
static int wait_in_export(void *user, const struct ng_record *record)
{
    struct counting *counting = user;
    if (record->kind == NG_RECORD_REVISION &&
        str_equal(record->doc->key.collection, ng_str_of(snippets.name))) {
        if (counting->count++ == 0) {
            wait_until_gone("aB3dE6gH9jK2");
        }
    }
    return 0;
}

/* A deleted entry that has left its collection: its history is there, its revisions go on. */
static void test_buried(void **state)
{
    struct fixture *f = *state;
    struct fixture keeper;
    struct counting exported = {0, 0};
    struct ng_key key = {ng_str_of(snippets.name), ng_str_of("shared"),
                         ng_str_of("aB3dE6gH9jK2")};
    struct change entry = {.collection = snippets.name,
                           .space = "shared",
                           .id = key.id,
                           .json = FIRST,
                           .text = ng_str_of("one")};
    struct change gone = {.collection = snippets.name,
                          .space = "shared",
                          .id = key.id,
                          .base = 1,
                          .deleted = true,
                          .before_json = FIRST,
                          .before_text = ng_str_of("one")};
    /* The tests' own gateway ends, and the one that buries soon has the lease. */
    char former_owner[NAME_MAX_BYTES];
    fixture_stop(f);
    lease_owner(former_owner, sizeof(former_owner));
    const char *const sooner[] = {entry_sets[0], entry_sets[1], "mongo.timeout=2s",
                                  "mongo.tombstones=3s", NULL};
    memset(&keeper, 0, sizeof(keeper));
    fixture_open(&keeper, "mongo", sooner);
    assert_int_equal(keeper.docs->declare(keeper.db, fixture_call(&keeper), &snippets), NG_OK);
    wait_for_lease(former_owner);
    assert_int_equal(fixture_start(f), NG_OK);
    fixture_declare(f);
    assert_int_equal(f->docs->declare(f->db, fixture_call(f), &snippets), NG_OK);

    assert_int_equal(fixture_commit(f, &entry, 1, NULL, NULL, NULL), NG_OK);
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
    wait_until_gone("aB3dE6gH9jK2");
    expect_json(f, "shared", 0, "{}", "");
    expect_json(f, "shared", 1, FIRST, "one");
    assert_int_equal(history_of(f, &key), 2);
    /* A document that never existed cannot take its place; one that follows the tombstone can.
     */
    assert_int_equal(fixture_commit(f, &entry, 1, NULL, NULL, NULL), NG_ECONFLICT);
    entry.base = 2;
    entry.text = ng_str_of("again");
    entry.before_json = "{}";
    assert_int_equal(fixture_commit(f, &entry, 1, NULL, NULL, NULL), NG_OK);
    expect_json(f, "shared", 3, FIRST, "again");
    assert_int_equal(history_of(f, &key), 3);
    /* And a second time. */
    gone.base = 3;
    gone.before_text = ng_str_of("again");
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
    /* A backup that is made while it leaves has each revision once. */
    assert_int_equal(f->docs->export_all(f->db, fixture_call(f), wait_in_export, &exported),
                     NG_OK);
    assert_int_equal(exported.count, 4);
    exported.count = 1;
    assert_int_equal(f->docs->export_all(f->db, fixture_call(f), wait_in_export, &exported),
                     NG_OK);
    assert_int_equal(exported.count, 1 + 4);
    assert_int_equal(history_of(f, &key), 4);
    expect_json(f, "shared", 3, FIRST, "again");
    expect_clean(f);
    fixture_close(&keeper);
}

/* ---- deleted documents that nothing shows ---- */

static void maintain(struct fixture *f, int64_t days)
{
    int64_t now_ms = clock_unix_ms() + days * DAY_MS;
    assert_int_equal(
        f->docs->maintain(f->db, fixture_call(f), now_ms, 1000 * DAY_MS, NULL, NULL), NG_OK);
}

/* Revision 1 and its deletion. */
static void come_and_go(struct fixture *f, const char *collection, const char *id)
{
    struct change comes = {.collection = collection, .id = ng_str_of(id)};
    struct change goes = {
        .collection = collection, .id = ng_str_of(id), .base = 1, .deleted = true};
    assert_int_equal(fixture_commit(f, &comes, 1, NULL, NULL, NULL), NG_OK);
    assert_int_equal(fixture_commit(f, &goes, 1, NULL, NULL, NULL), NG_OK);
    fixture_settle(f, &goes, 1);
}

static bool is_kept(const char *collection, const char *name)
{
    bson_t *doc = find_in(collection, name);
    bool is_there = doc != NULL;
    bson_destroy(doc);
    return is_there;
}

static void test_deleted_and_hidden(void **state)
{
    struct fixture *f = *state;
    struct change again = {.collection = hidden.name, .id = ng_str_of("x")};
    struct ng_key key = {ng_str_of(hidden.name), ng_str_of("team"), ng_str_of("x")};
    struct rows rows = {0};
    assert_int_equal(f->docs->declare(f->db, fixture_call(f), &hidden), NG_OK);
    come_and_go(f, hidden.name, "x");
    come_and_go(f, "quiet", "x");
    assert_int_equal(fixture_put(f, "live", 0, "", "text"), NG_OK);
    maintain(f, 0); /* waits until all events are moved */
    maintain(f, 1);
    assert_true(is_kept(hidden.name, "team/x"));
    maintain(f, 3);
    assert_false(is_kept(hidden.name, "team/x"));
    assert_true(is_kept("quiet", "team/x")); /* its history is kept */
    /* It begins anew, and no earlier event is taken for one of it. */
    for (again.base = 0; again.base < 3; again.base++) {
        assert_int_equal(fixture_commit(f, &again, 1, NULL, NULL, NULL), NG_OK);
    }
    maintain(f, 0);
    assert_int_equal(f->docs->get(f->db, fixture_call(f), &key, 0, rows_add, &rows), NG_OK);
    assert_int_equal(rows.items[0].revision, 3);
    assert_true(rows.items[0].seq != 0);
    rows_done(&rows);
    maintain(f, 3);
    assert_true(is_kept(hidden.name, "team/x"));
    expect_clean(f);
}

static void test_too_large(void **state)
{
    enum { SIZE = 16 * 1024 * 1024 };
    struct fixture *f = *state;
    char *text = malloc(SIZE);
    char error[512] = "";
    assert_non_null(text);
    memset(text, 'x', SIZE);
    struct change entry = {.collection = snippets.name,
                           .space = "shared",
                           .id = ng_str_of("aB3dE6gH9jK2"),
                           .json = FIRST,
                           .text = str_make(text, SIZE)};
    assert_int_equal(fixture_commit(f, &entry, 1, NULL, error, NULL), NG_ETOOLARGE);
    assert_non_null(strstr(error, "15 MiB; MongoDB's limit of a document is 16 MiB"));
    assert_null(find("aB3dE6gH9jK2"));
    free(text);
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
    (void)snprintf(database, sizeof(database), "notegate_entries_%ld", (long)getpid());
    (void)snprintf(database_set, sizeof(database_set), "mongo.database=%s", database);
    static const char *const sets[] = {uri_set, database_set, "mongo.timeout=30s", NULL};
    const struct CMUnitTest tests[] = {TEST(test_shape), TEST(test_change_and_delete),
                                       TEST(test_buried), TEST(test_deleted_and_hidden),
                                       TEST(test_too_large)};
    entry_sets = sets;
    client = mongoc_client_new(uri);
    assert_non_null(client);
    int failed = cmocka_run_group_tests_name("entries in MongoDB", tests, NULL, NULL);
    mongoc_client_destroy(client);
    return failed;
}
