/* SPDX-License-Identifier: MIT */
/* documents_upkeep_contract.c - the suite of documents backends: thinning history, export and
 * import, health. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "documents_parts.h"

#define DAY INT64_C(86400000)

static void text_of(char *ret, size_t max, int revision)
{
    (void)snprintf(ret, max, "a text that stays, then %d, and the same end", revision);
}

/* `count` revisions, `per_day` a day, the last one at `end`. */
static void write_days(struct fixture *f, const char *id, int count, int per_day, int64_t end)
{
    char before[64] = "";
    for (int i = 1; i <= count; i++) {
        char text[64];
        text_of(text, sizeof(text), i);
        struct change change = {.id = ng_str_of(id),
                                .base = (uint64_t)i - 1,
                                .text = ng_str_of(text),
                                .before_text = ng_str_of(before)};
        change.time_ms = end / DAY * DAY - (count - i) / per_day * DAY + (i * 1000);
        assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
        memcpy(before, text, sizeof(before));
    }
}

static bool pin_five(void *user, const struct ng_key *key, uint64_t revision)
{
    (void)user;
    return str_is(key->id, "doc") && revision == 5;
}

static void check_kept(struct fixture *f, const char *id, int revision, bool *ret_kept)
{
    struct rows rows;
    char text[64];
    int rc = fixture_get(f, id, (uint64_t)revision, &rows);
    *ret_kept = rc == NG_OK;
    if (rc == NG_OK) {
        text_of(text, sizeof(text), revision);
        assert_string_equal(rows.items[0].text, text);
    } else {
        assert_int_equal(rc, NG_ENOTFOUND);
    }
    rows_done(&rows);
}

static int count_event(void *user, const struct ng_event *event)
{
    size_t *count = user;
    (void)event;
    ++*count;
    return 0;
}

/* The count of the backend, if it counts; it may cache the count. */
static void expect_counted(struct fixture *f, const char *id, uint64_t from, uint64_t to,
                           uint64_t expected)
{
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of(id)};
    struct ng_range range = {.size = sizeof(range), .from = from, .to = to};
    uint64_t counted = 0;
    if (f->docs->history_count != NULL) {
        assert_int_equal(f->docs->history_count(f->db, fixture_call(f), &key, &range, &counted),
                         NG_OK);
        assert_int_equal(counted, expected);
    }
}

static void test_thinning(void **state)
{
    enum { DAYS = 40, PER_DAY = 10, PER_DAY_FEW = 3 };
    struct fixture *f = *state;
    const int per_day = documents_slow(f) ? PER_DAY_FEW : PER_DAY;
    const int count = DAYS * per_day;
    int64_t now = INT64_C(20000) * DAY;
    fixture_needs(f->inner->maintain != NULL, "maintain");
    write_days(f, "doc", count, per_day, now);
    expect_counted(f, "doc", 0, 0, (uint64_t)count);
    expect_counted(f, "doc", 0, 7, 7);
    expect_counted(f, "doc", 1, (uint64_t)count - 1, (uint64_t)count - 1);
    write_days(f, "short", 1, 1, now - 100 * DAY);
    uint64_t all = 0;
    /* Kept whole: the last 10 days. */
    for (int round = 0; round < 2; round++) {
        assert_int_equal(
            f->docs->maintain(f->db, fixture_call(f), now, 10 * DAY, pin_five, NULL), NG_OK);
        int kept_old = 0;
        uint64_t kept_all = 0;
        for (int i = 1; i <= count; i++) {
            bool kept = false;
            check_kept(f, "doc", i, &kept);
            int days_ago = (count - i) / per_day;
            if (days_ago < 9 || i == count || i == 5) {
                assert_true(kept);
            }
            kept_old += kept && days_ago > 10;
            kept_all += kept;
        }
        /* One a day of 29 days, the pinned one, and perhaps the first. */
        assert_in_range(kept_old, 29, 32);
        expect_counted(f, "doc", 0, 0, kept_all);
        expect_counted(f, "doc", (uint64_t)(count - 5 * per_day), 0,
                       (uint64_t)(5 * per_day + 1));
        all = kept_all;
    }
    bool kept = false;
    check_kept(f, "short", 1, &kept);
    assert_true(kept);
    size_t events = 0;
    assert_int_equal(f->docs->changes(f->db, fixture_call(f), 0, 1000, count_event, &events),
                     NG_OK);
    assert_int_equal(events, count + 1);
    expect_clean(f);
    /* And writing goes on. */
    char before[64];
    text_of(before, sizeof(before), count);
    assert_int_equal(fixture_put(f, "doc", (uint64_t)count, before, "more"), NG_OK);
    expect_doc(f, "doc", (uint64_t)count + 1, "more");
    expect_counted(f, "doc", 0, 0, all + 1);
    expect_clean(f);
}

/* The events of a feed, as one text of lines. */
struct event_lines {
    struct buf text;
};

static int add_event_line(void *user, const struct ng_event *event)
{
    struct event_lines *lines = user;
    (void)buf_printf(&lines->text, "%.*s %llu %.*s %.*s\n", (int)event->key.id.len,
                     event->key.id.data, (unsigned long long)event->revision,
                     (int)event->action.len, event->action.data, (int)event->data.len,
                     event->data.data != NULL ? event->data.data : "");
    return 0;
}

#define ABOUT "\"about\":{\"id\":\"doc\"}"
#define EVENTS_MAX 16

struct event_list {
    struct buf text;
    uint64_t seqs[EVENTS_MAX];
    size_t count;
};

/* Without their data, which need not be there. */
static int add_event(void *user, const struct ng_event *event)
{
    struct event_list *list = user;
    assert_true(list->count < EVENTS_MAX);
    list->seqs[list->count++] = event->seq;
    (void)buf_printf(&list->text, "%.*s %llu %.*s, ", (int)event->key.id.len,
                     event->key.id.data, (unsigned long long)event->revision,
                     (int)event->action.len, event->action.data);
    return 0;
}

/* Asks in two pages, whose border is behind the event `page`. */
static void take_events(struct fixture *f, const char *id, uint64_t revision, uint64_t page,
                        struct event_list *ret)
{
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of(id)};
    const uint64_t borders[] = {0, page, 1U << 30};
    memset(ret, 0, sizeof(*ret));
    buf_init(&ret->text, 65536);
    for (size_t i = 0; i + 1 < NG_COUNT(borders); i++) {
        assert_int_equal(f->docs->purge_events(f->db, fixture_call(f), &key, revision,
                                               ng_str_of(ABOUT), borders[i], borders[i + 1],
                                               add_event, ret),
                         NG_OK);
    }
}

static void expect_versions(struct fixture *f, const char *id, const char *expected)
{
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of(id)};
    struct ng_range range = {
        .size = sizeof(range), .from = 1, .limit = 100, .with_body = true, .ascending = true};
    struct rows rows = {0};
    char found[256] = "";
    assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, &range, rows_add, &rows),
                     NG_OK);
    for (size_t i = 0; i < rows.count; i++) {
        size_t at = strlen(found);
        (void)snprintf(found + at, sizeof(found) - at, "%llu%s:%s ",
                       (unsigned long long)rows.items[i].revision,
                       rows.items[i].deleted ? "-" : "", rows.items[i].text);
    }
    assert_string_equal(found, expected);
    expect_counted(f, id, 0, 0, rows.count);
    rows_done(&rows);
}

static void test_purge(void **state)
{
    struct fixture *f = *state;
    fixture_needs(f->docs->purge != NULL, "purge");
    static const char *const texts[] = {"first", "first and more", "first and most"};
    struct change changes[8] = {0};
    for (size_t i = 0; i < 3; i++) {
        changes[i] = (struct change){.id = ng_str_of("doc"),
                                     .base = i,
                                     .text = ng_str_of(texts[i]),
                                     .before_text = ng_str_of(i > 0 ? texts[i - 1] : ""),
                                     .data = "{\"title\":\"secret\"}"};
        assert_int_equal(fixture_commit(f, &changes[i], 1, NULL, NULL, NULL), NG_OK);
    }
    /* Names that begin alike, an event about it, and one of another space. */
    changes[3] = (struct change){.id = ng_str_of("doc#00000000000000000001"),
                                 .text = ng_str_of("other"),
                                 .data = "{\"title\":\"stays\"}"};
    changes[4] = (struct change){.id = ng_str_of("reader"),
                                 .data = "{\"about\":{\"id\":\"doc\"},\"title\":\"secret\"}"};
    changes[5] = (struct change){.id = ng_str_of("elsewhere"),
                                 .space = "other",
                                 .data = "{\"about\":{\"id\":\"doc\"},\"title\":\"there\"}"};
    changes[6] = (struct change){.id = ng_str_of("doc"),
                                 .base = 3,
                                 .deleted = true,
                                 .before_text = ng_str_of(texts[2]),
                                 .action = NG_ACTION_PURGED,
                                 .data = "{\"status\":\"gone\"}"};
    for (size_t i = 3; i < 7; i++) {
        assert_int_equal(fixture_commit(f, &changes[i], 1, NULL, NULL, NULL), NG_OK);
    }
    fixture_settle(f, changes, 7);
    expect_versions(f, "doc", "1:first 2:first and more 3:first and most 4-: ");
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("doc")};
    struct event_list about;
    take_events(f, "doc", 4, changes[1].seq, &about);
    assert_string_equal(buf_cstr(&about.text),
                        "doc 1 created, doc 2 updated, doc 3 updated, reader 1 created, ");
    for (int round = 0; round < 2; round++) {
        struct event_lines lines;
        struct event_list own;
        struct rows rows;
        assert_int_equal(f->docs->purge(f->db, fixture_call(f), &key, 4), NG_OK);
        assert_int_equal(f->docs->purge_data(f->db, fixture_call(f), about.seqs, about.count),
                         NG_OK);
        assert_int_equal(f->docs->purge_sweep(f->db, fixture_call(f)), NG_OK);
        expect_versions(f, "doc", "4-: ");
        assert_int_equal(fixture_get(f, "doc", 3, &rows), NG_ENOTFOUND);
        rows_done(&rows);
        assert_int_equal(fixture_get(f, "doc", 0, &rows), NG_OK);
        assert_true(rows.items[0].deleted);
        assert_string_equal(rows.items[0].action, NG_ACTION_PURGED);
        rows_done(&rows);
        take_events(f, "doc", 4, 0, &own);
        assert_string_equal(buf_cstr(&own.text),
                            "doc 1 created, doc 2 updated, doc 3 updated, ");
        buf_done(&own.text);
        buf_init(&lines.text, 65536);
        assert_int_equal(
            f->docs->changes(f->db, fixture_call(f), 0, 1000, add_event_line, &lines), NG_OK);
        assert_null(strstr(buf_cstr(&lines.text), "secret"));
        assert_non_null(strstr(buf_cstr(&lines.text), "stays"));
        assert_non_null(strstr(buf_cstr(&lines.text), "there"));
        assert_non_null(strstr(buf_cstr(&lines.text), "doc 4 purged {\"status\":\"gone\"}\n"));
        buf_done(&lines.text);
        expect_doc(f, "doc#00000000000000000001", 1, "other");
        expect_clean(f);
    }
    buf_done(&about.text);
    /* It counts on where it is made again, and that is another document then. */
    assert_int_equal(fixture_put(f, "doc", 4, "", "new"), NG_OK);
    assert_int_equal(f->docs->purge(f->db, fixture_call(f), &key, 4), NG_OK);
    expect_versions(f, "doc", "4-: 5:new ");
    /* None of that name: nothing to do. */
    key.id = ng_str_of("nothing");
    assert_int_equal(f->docs->purge(f->db, fixture_call(f), &key, 4), NG_OK);
    expect_clean(f);
}

/* More revisions than one transaction removes. */
static void test_purge_many(void **state)
{
    struct fixture *f = *state;
    fixture_needs(f->docs->purge != NULL, "purge");
    const int count = documents_slow(f) ? 20 : 700;
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("doc")};
    write_days(f, "doc", count, 1000, INT64_C(20000) * DAY);
    struct change gone = {.id = ng_str_of("doc"), .base = (uint64_t)count, .deleted = true};
    char last[64];
    text_of(last, sizeof(last), count);
    gone.before_text = ng_str_of(last);
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
    assert_int_equal(f->docs->purge(f->db, fixture_call(f), &key, (uint64_t)count + 1), NG_OK);
    char expected[32];
    (void)snprintf(expected, sizeof(expected), "%d-: ", count + 1);
    expect_versions(f, "doc", expected);
    expect_clean(f);
}

static void test_keep_all(void **state)
{
    struct fixture *f = *state;
    fixture_needs(f->inner->maintain != NULL, "maintain");
    write_days(f, "doc", 50, 10, INT64_C(1000) * DAY);
    assert_int_equal(
        f->docs->maintain(f->db, fixture_call(f), INT64_C(20000) * DAY, 0, NULL, NULL), NG_OK);
    for (int i = 1; i <= 50; i++) {
        bool kept = false;
        check_kept(f, "doc", i, &kept);
        assert_true(kept);
    }
}

/* ---- export and import ---- */

struct copying {
    struct fixture *from, *to;
    struct buf log; /* the received rows, as text */
    int rc;
};

static void log_record(struct buf *log, const struct ng_record *record)
{
    if (record->kind == NG_RECORD_REVISION) {
        const struct ng_doc *doc = record->doc;
        buf_printf(log, "R %d %llu %llu %llu %d %lld ", record->newest,
                   (unsigned long long)doc->revision, (unsigned long long)doc->seq,
                   (unsigned long long)doc->created_seq, doc->deleted,
                   (long long)doc->updated_ms);
        buf_add_str(log, doc->key.space);
        buf_add_str(log, doc->key.id);
        buf_add_str(log, doc->json);
        buf_add_str(log, doc->text);
        buf_add_str(log, doc->author);
        buf_add_str(log, doc->action);
        documents_log_origin(log, &doc->origin);
    } else if (record->kind == NG_RECORD_EVENT) {
        const struct ng_event *event = record->event;
        buf_printf(log, "E %llu %llu %lld ", (unsigned long long)event->seq,
                   (unsigned long long)event->revision, (long long)event->time_ms);
        buf_add_str(log, event->key.id);
        buf_add_str(log, event->tool);
        buf_add_str(log, event->agent);
        buf_add_str(log, event->action);
        documents_log_origin(log, &event->origin);
    } else if (record->kind == NG_RECORD_ANSWER) {
        buf_add_c(log, "A ");
        buf_add_str(log, record->answer->scope);
        buf_add_str(log, record->answer->reply);
    } else {
        buf_printf(log, "S %llu", (unsigned long long)record->seq);
    }
    buf_add_char(log, '\n');
}

static int on_record(void *user, const struct ng_record *record)
{
    struct copying *copying = user;
    log_record(&copying->log, record);
    if (copying->to != NULL) {
        struct ng_record given = *record;
        const struct ng_field_value tag = {
            .name = ng_str_of("tag"), .use = NG_FIELD_TAG, .text = ng_str_of("kept")};
        if (record->newest && str_is(record->doc->key.id, "tagged")) {
            given.fields = &tag;
            given.field_count = 1;
        }
        if (record->kind == NG_RECORD_REVISION) {
            given.no_history = str_is(record->doc->key.collection, "fleeting");
        }
        copying->rc = copying->to->docs->import_record(copying->to->db,
                                                       fixture_call(copying->to), &given);
        return copying->rc;
    }
    return 0;
}

/* Tools for a copy. */
static void needs_copying(struct fixture *f)
{
    fixture_needs(f->inner->maintain != NULL, "maintain");
    fixture_needs(f->inner->export_all != NULL, "export_all");
    fixture_needs(f->inner->import_begin != NULL && f->inner->import_record != NULL &&
                      f->inner->import_end != NULL,
                  "import_begin");
}

static void fill_all(struct fixture *f)
{
    write_days(f, "doc", 150, 10, INT64_C(20000) * DAY);
    assert_int_equal(
        f->docs->maintain(f->db, fixture_call(f), INT64_C(20000) * DAY, 5 * DAY, NULL, NULL),
        NG_OK);
    struct change tagged = {.id = ng_str_of("tagged"),
                            .tags = {"kept"},
                            .json = "{\"a\":1}",
                            .text = ng_str_of("findable words")};
    struct change quiet = {.collection = "quiet", .id = ng_str_of("q")};
    struct change fleeting = {.collection = "fleeting", .id = ng_str_of("f")};
    struct change gone = {.id = ng_str_of("tomb")};
    struct ng_answer answer = {.size = sizeof(answer),
                               .scope = ng_str_of("scope"),
                               .body_hash = ng_str_of("hash"),
                               .reply = ng_str_of("reply"),
                               .time_ms = 1,
                               .expires_ms = INT64_C(99999999999999)};
    assert_int_equal(fixture_commit(f, &tagged, 1, &answer, NULL, NULL), NG_OK);
    assert_int_equal(fixture_commit(f, &fleeting, 1, NULL, NULL, NULL), NG_OK);
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
    gone.base = 1;
    gone.deleted = true;
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
    assert_int_equal(fixture_commit(f, &quiet, 1, NULL, NULL, NULL), NG_OK);
}

static void test_copy(void **state)
{
    struct fixture *f = *state;
    struct fixture second;
    struct copying out = {.from = f, .to = &second};
    struct copying back = {.from = &second};
    needs_copying(f);
    buf_init(&out.log, 1 << 24);
    buf_init(&back.log, 1 << 24);
    fill_all(f);
    documents_second(&second);
    assert_int_equal(second.docs->import_begin(second.db, fixture_call(&second)), NG_OK);
    assert_int_equal(f->docs->export_all(f->db, fixture_call(f), on_record, &out), NG_OK);
    assert_int_equal(out.rc, NG_OK);
    assert_int_equal(second.docs->import_end(second.db, fixture_call(&second), true), NG_OK);
    assert_int_equal(
        second.docs->export_all(second.db, fixture_call(&second), on_record, &back), NG_OK);
    assert_string_equal(buf_cstr(&back.log), buf_cstr(&out.log));
    if (f->inner->last_seq != NULL) {
        assert_int_equal(second.docs->last_seq(second.db), f->docs->last_seq(f->db));
    }
    expect_clean(&second);
    /* Not into a store that has something. */
    assert_int_equal(second.docs->import_begin(second.db, fixture_call(&second)), NG_EINVAL);
    /* It is a store like any other. */
    char before[64];
    text_of(before, sizeof(before), 150);
    assert_int_equal(fixture_put(&second, "doc", 150, before, "more"), NG_OK);
    struct ng_query query = documents_query();
    struct ng_term term = {
        .field = ng_str_of("tag"), .op = NG_TERM_EQ, .value = ng_str_of("kept")};
    struct rows rows = {0};
    query.terms = &term;
    query.term_count = 1;
    assert_int_equal(
        second.docs->query(second.db, fixture_call(&second), &query, rows_add, &rows, NULL),
        NG_OK);
    assert_int_equal(rows.count, 1);
    rows_done(&rows);
    expect_clean(&second);
    fixture_close(&second);
    buf_done(&out.log);
    buf_done(&back.log);
}

static void test_import_thrown_away(void **state)
{
    struct fixture *f = *state;
    struct fixture second;
    struct copying out = {.from = f, .to = &second};
    needs_copying(f);
    buf_init(&out.log, 1 << 24);
    fill_all(f);
    documents_second(&second);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(second.docs->import_begin(second.db, fixture_call(&second)), NG_OK);
        assert_int_equal(f->docs->export_all(f->db, fixture_call(f), on_record, &out), NG_OK);
        assert_int_equal(second.docs->import_end(second.db, fixture_call(&second), false),
                         NG_OK);
    }
    expect_doc(&second, "doc", 0, "");
    if (f->inner->last_seq != NULL) {
        assert_int_equal(second.docs->last_seq(second.db), 0);
    }
    assert_int_equal(fixture_put(&second, "doc", 0, "", "own"), NG_OK);
    expect_clean(&second);
    fixture_close(&second);
    buf_done(&out.log);
}

/* A change in the middle of an export neither waits for it nor shows in it. */
static int write_during(void *user, const struct ng_record *record)
{
    struct copying *copying = user;
    if (copying->rc == 0) {
        struct fixture other = *copying->from;
        other.call = NULL;
        copying->rc = fixture_put(&other, "during", 0, "", "late") == NG_OK ? 1 : -1;
        call_unref(other.call);
    }
    log_record(&copying->log, record);
    return 0;
}

static void test_export_is_a_snapshot(void **state)
{
    struct fixture *f = *state;
    struct copying out = {.from = f};
    fixture_needs(f->inner->export_all != NULL, "export_all");
    buf_init(&out.log, 1 << 24);
    assert_int_equal(fixture_put(f, "a", 0, "", "early"), NG_OK);
    assert_int_equal(f->docs->export_all(f->db, fixture_call(f), write_during, &out), NG_OK);
    assert_int_equal(out.rc, 1);
    assert_null(strstr(buf_cstr(&out.log), "late"));
    assert_non_null(strstr(buf_cstr(&out.log), "early"));
    expect_doc(f, "during", 1, "late");
    buf_done(&out.log);
}

static void on_stat(void *user, const char *name, double value)
{
    size_t *count = user;
    assert_non_null(name);
    assert_true(value >= 0);
    ++*count;
}

static void test_health_and_stats(void **state)
{
    struct fixture *f = *state;
    size_t count = 0;
    fixture_needs(f->inner->health != NULL, "health");
    fixture_needs(f->inner->stats != NULL, "stats");
    assert_int_equal(f->docs->health(f->db, fixture_call(f)), NG_OK);
    f->docs->stats(f->db, on_stat, &count);
    assert_true(count > 0);
    f->docs->close(NULL);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, documents_setup, documents_teardown)

int documents_upkeep_contract(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_thinning),
        TEST(test_purge),
        TEST(test_purge_many),
        TEST(test_keep_all),
        TEST(test_copy),
        TEST(test_import_thrown_away),
        TEST(test_export_is_a_snapshot),
        TEST(test_health_and_stats),
    };
    return cmocka_run_group_tests_name("documents: upkeep", tests, NULL, NULL);
}
