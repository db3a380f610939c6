/* SPDX-License-Identifier: MIT */
/* documents_contract.c - the suite of documents backends: writing, keys, history, answers,
 * faults. Queries and searches are in documents_query_contract.c, upkeep and transport in
 * documents_upkeep_contract.c. */
#include "documents_contract.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/host/host.h"
#include "documents_parts.h"
#include "faulty_backend.h"

static const char *suite_module;
static const char *const *suite_sets;

int documents_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture, suite_module, suite_sets);
    *state = fixture;
    return 0;
}

/* The same store behind the wrapper, which then has nothing to fail. */
static int setup_faulty(void **state)
{
    (void)documents_setup(state);
    struct fixture *fixture = *state;
    void *faulty = faulty_new(fixture->inner, fixture->db);
    assert_non_null(faulty);
    fixture->db = faulty;
    fixture->docs = &faulty_documents;
    return 0;
}

int documents_teardown(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    free(fixture);
    return 0;
}

void documents_second(struct fixture *fixture)
{
    fixture_open(fixture, suite_module, suite_sets);
}

/* ---- writing and reading ---- */

static void make_text(char *text, size_t max, int revision)
{
    size_t at = 0;
    for (int i = 0; i < 40 && at + 24 < max; i++) {
        at += (size_t)snprintf(text + at, max - at, "line %d of %d\n", i,
                               (i % 7 == revision % 7) ? revision : i);
    }
}

static void test_every_revision(void **state)
{
    enum { REVISIONS = 300, REVISIONS_FEW = 60, TEXT = 2048 };
    struct fixture *f = *state;
    const int revisions = documents_slow(f) ? REVISIONS_FEW : REVISIONS;
    char before[TEXT] = "";
    char text[TEXT];
    for (int i = 1; i <= revisions; i++) {
        make_text(text, sizeof(text), i);
        assert_int_equal(fixture_put(f, "doc", (uint64_t)i - 1, before, text), NG_OK);
        memcpy(before, text, sizeof(before));
    }
    for (int i = 1; i <= revisions; i++) {
        struct rows rows;
        make_text(text, sizeof(text), i);
        assert_int_equal(fixture_get(f, "doc", (uint64_t)i, &rows), NG_OK);
        assert_int_equal(rows.items[0].revision, i);
        assert_string_equal(rows.items[0].text, text);
        assert_string_equal(rows.items[0].json, "{}");
        assert_string_equal(rows.items[0].action, i == 1 ? "created" : "updated");
        rows_done(&rows);
    }
    struct rows rows;
    assert_int_equal(fixture_get(f, "doc", (uint64_t)revisions + 1, &rows), NG_ENOTFOUND);
    assert_int_equal(fixture_get(f, "other", 0, &rows), NG_ENOTFOUND);
    expect_clean(f);
}

static void test_conditions(void **state)
{
    struct fixture *f = *state;
    char error[512];
    size_t failed = 9;
    assert_int_equal(fixture_put(f, "a", 0, "", "one"), NG_OK);
    assert_int_equal(fixture_put(f, "a", 0, "", "two"), NG_ECONFLICT);
    assert_int_equal(fixture_put(f, "a", 2, "one", "two"), NG_ECONFLICT);
    expect_doc(f, "a", 1, "one");
    /* One condition of a batch fails: nothing of it is there. */
    struct change batch[3] = {
        {.id = ng_str_of("b"), .text = ng_str_of("b1")},
        {.id = ng_str_of("a"), .base = 5, .only_condition = true},
        {.id = ng_str_of("c"), .text = ng_str_of("c1")},
    };
    assert_int_equal(fixture_commit(f, batch, 3, NULL, error, &failed), NG_ECONFLICT);
    assert_int_equal(failed, 1);
    assert_true(strlen(error) > 0);
    expect_doc(f, "b", 0, "");
    expect_doc(f, "c", 0, "");
    batch[1].base = 1;
    assert_int_equal(fixture_commit(f, batch, 3, NULL, NULL, NULL), NG_OK);
    expect_doc(f, "a", 1, "one");
    expect_doc(f, "b", 1, "b1");
    expect_doc(f, "c", 1, "c1");
    /* A condition that something has never been. */
    struct change never = {.id = ng_str_of("d"), .only_condition = true};
    assert_int_equal(fixture_commit(f, &never, 1, NULL, NULL, NULL), NG_OK);
    assert_int_equal(fixture_commit(f, NULL, 0, NULL, NULL, NULL), NG_OK);
    fixture_settle(f, batch, 3);
    if (f->inner->last_seq != NULL) {
        assert_int_equal(f->docs->last_seq(f->db), batch[2].seq);
    }
    expect_clean(f);
}

static void test_tombstone(void **state)
{
    struct fixture *f = *state;
    struct rows rows;
    assert_int_equal(fixture_put(f, "a", 0, "", "one"), NG_OK);
    struct change gone = {.id = ng_str_of("a"), .base = 1, .deleted = true};
    gone.before_text = ng_str_of("one");
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
    assert_int_equal(fixture_get(f, "a", 0, &rows), NG_OK);
    assert_true(rows.items[0].deleted);
    assert_string_equal(rows.items[0].json, "{}");
    assert_string_equal(rows.items[0].text, "");
    rows_done(&rows);
    struct change anew = {.id = ng_str_of("a"), .base = 2, .json = "{\"x\":1}"};
    anew.text = ng_str_of("three");
    anew.before_json = "";
    assert_int_equal(fixture_commit(f, &anew, 1, NULL, NULL, NULL), NG_OK);
    struct change more = {.id = ng_str_of("a"),
                          .base = 3,
                          .text = ng_str_of("threefour"),
                          .before_json = "{\"x\":1}",
                          .before_text = ng_str_of("three")};
    assert_int_equal(fixture_commit(f, &more, 1, NULL, NULL, NULL), NG_OK);
    expect_doc(f, "a", 4, "threefour");
    assert_int_equal(fixture_get(f, "a", 1, &rows), NG_OK);
    assert_string_equal(rows.items[0].text, "one");
    rows_done(&rows);
    assert_int_equal(fixture_get(f, "a", 2, &rows), NG_OK);
    assert_true(rows.items[0].deleted);
    rows_done(&rows);
    expect_clean(f);
}

static void test_odd_keys(void **state)
{
    struct fixture *f = *state;
    char *longest = malloc(NG_ID_MAX + 1);
    assert_non_null(longest);
    memset(longest, 'x', NG_ID_MAX + 1);
    const struct ng_str ids[] = {
        str_make("", 0),  str_make("a\0b", 3),          str_make("a\0c", 3),
        str_make("a", 1), str_make("line\nline", 9),    str_make("\xC3\xA4%_'\"", 6),
        str_make("A", 1), str_make(longest, NG_ID_MAX), str_make("a\0", 2),
    };
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "t%zu", i);
        struct change change = {.id = ids[i], .text = ng_str_of(text)};
        assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    }
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        char text[16];
        struct rows rows = {0};
        struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ids[i]};
        (void)snprintf(text, sizeof(text), "t%zu", i);
        assert_int_equal(f->docs->get(f->db, fixture_call(f), &key, 0, rows_add, &rows), NG_OK);
        assert_string_equal(rows.items[0].text, text);
        assert_int_equal(rows.items[0].id_len, ids[i].len);
        rows_done(&rows);
    }
    struct change over = {.id = str_make(longest, NG_ID_MAX + 1)};
    assert_int_equal(fixture_commit(f, &over, 1, NULL, NULL, NULL), NG_EINVAL);
    struct change undeclared = {.collection = "nobody", .id = ng_str_of("x")};
    assert_int_equal(fixture_commit(f, &undeclared, 1, NULL, NULL, NULL), NG_EINVAL);
    free(longest);
    expect_clean(f);
}

static void test_large_and_binary(void **state)
{
    enum { SIZE = 3 * 1024 * 1024 };
    struct fixture *f = *state;
    char *one = malloc(SIZE);
    char *two = malloc(SIZE);
    assert_non_null(one);
    assert_non_null(two);
    for (size_t i = 0; i < SIZE; i++) {
        one[i] = two[i] = (char)(i * 31 % 251);
    }
    two[SIZE / 2] = 0;
    struct change first = {.id = ng_str_of("big"), .text = str_make(one, SIZE)};
    assert_int_equal(fixture_commit(f, &first, 1, NULL, NULL, NULL), NG_OK);
    struct change second = {.id = ng_str_of("big"), .base = 1, .text = str_make(two, SIZE)};
    second.before_text = first.text;
    assert_int_equal(fixture_commit(f, &second, 1, NULL, NULL, NULL), NG_OK);
    for (uint64_t i = 1; i <= 2; i++) {
        struct rows rows;
        assert_int_equal(fixture_get(f, "big", i, &rows), NG_OK);
        assert_int_equal(rows.items[0].text_size, SIZE);
        assert_memory_equal(rows.items[0].text, i == 1 ? one : two, SIZE);
        rows_done(&rows);
    }
    free(one);
    free(two);
}

static void test_history(void **state)
{
    struct fixture *f = *state;
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("h")};
    char before[16] = "";
    for (int i = 1; i <= 10; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "text %d", i);
        assert_int_equal(fixture_put(f, "h", (uint64_t)i - 1, before, text), NG_OK);
        memcpy(before, text, sizeof(before));
    }
    static const struct {
        uint64_t from, to;
        uint32_t limit;
        bool body, ascending;
        int first, count;
    } cases[] = {
        {0, 0, 100, true, false, 10, 10}, {1, 0, 100, true, true, 1, 10},
        {3, 5, 100, true, false, 5, 3},   {3, 5, 2, true, true, 3, 2},
        {0, 0, 1, false, false, 10, 1},   {10, 10, 5, true, true, 10, 1},
        {11, 20, 5, true, false, 0, 0},   {0, 99, 3, false, false, 10, 3},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct ng_range range = {.size = sizeof(range),
                                 .from = cases[i].from,
                                 .to = cases[i].to,
                                 .limit = cases[i].limit,
                                 .with_body = cases[i].body,
                                 .ascending = cases[i].ascending};
        struct rows rows = {0};
        assert_int_equal(
            f->docs->history(f->db, fixture_call(f), &key, &range, rows_add, &rows), NG_OK);
        assert_int_equal(rows.count, cases[i].count);
        uint64_t counted = 0;
        range.limit = UINT32_MAX;
        if (f->docs->history_count != NULL && cases[i].limit >= 5) {
            assert_int_equal(
                f->docs->history_count(f->db, fixture_call(f), &key, &range, &counted), NG_OK);
            assert_int_equal(counted, cases[i].count);
        }
        for (size_t j = 0; j < rows.count; j++) {
            char text[16];
            int step = cases[i].ascending ? (int)j : -(int)j;
            (void)snprintf(text, sizeof(text), "text %d", cases[i].first + step);
            assert_int_equal(rows.items[j].revision, cases[i].first + step);
            assert_string_equal(rows.items[j].text, cases[i].body ? text : "");
            assert_int_equal(rows.items[j].text_size, strlen(text));
        }
        rows_done(&rows);
    }
    key.id = ng_str_of("none");
    struct ng_range range = {.size = sizeof(range), .limit = 5};
    struct rows rows = {0};
    assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, &range, rows_add, &rows),
                     NG_ENOTFOUND);
    uint64_t none = 7;
    if (f->docs->history_count != NULL) {
        assert_int_equal(f->docs->history_count(f->db, fixture_call(f), &key, &range, &none),
                         NG_ENOTFOUND);
    }
}

static void test_no_history(void **state)
{
    struct fixture *f = *state;
    struct ng_key key = {ng_str_of("fleeting"), ng_str_of("team"), ng_str_of("x")};
    for (uint64_t i = 0; i < 3; i++) {
        struct change change = {.collection = "fleeting", .id = key.id, .base = i};
        change.text = ng_str_of(i == 2 ? "last" : "early");
        change.before_text = ng_str_of(i == 0 ? "" : "early");
        assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    }
    struct rows rows = {0};
    assert_int_equal(f->docs->get(f->db, fixture_call(f), &key, 3, rows_add, &rows), NG_OK);
    assert_string_equal(rows.items[0].text, "last");
    rows_done(&rows);
    struct ng_range range = {.size = sizeof(range), .limit = 5, .with_body = true};
    assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, &range, rows_add, &rows),
                     NG_OK);
    assert_true(rows.count >= 1);
    assert_int_equal(rows.items[0].revision, 3);
    rows_done(&rows);
    expect_clean(f);
}

/* ---- events, answers ---- */

/* Changes one after the other. */
#define ORDERED 90

struct events {
    size_t count;
    uint64_t seqs[64];
    uint64_t revisions[64];
};

static int on_event(void *user, const struct ng_event *event)
{
    struct events *events = user;
    assert_true(events->count < NG_COUNT(events->seqs));
    assert_true(str_is(event->tool, "test_tool"));
    assert_true(str_is(event->key.space, "team"));
    events->revisions[events->count] = event->revision;
    events->seqs[events->count++] = event->seq;
    return 0;
}

static void test_changes(void **state)
{
    struct fixture *f = *state;
    struct change batch[2] = {{.id = ng_str_of("a")}, {.id = ng_str_of("b")}};
    struct change quiet = {.collection = "quiet", .id = ng_str_of("q")};
    assert_int_equal(fixture_commit(f, batch, 2, NULL, NULL, NULL), NG_OK);
    assert_int_equal(fixture_commit(f, &quiet, 1, NULL, NULL, NULL), NG_OK);
    struct change last = {.id = ng_str_of("a"), .base = 1, .text = ng_str_of("x")};
    assert_int_equal(fixture_commit(f, &last, 1, NULL, NULL, NULL), NG_OK);
    fixture_settle(f, batch, 2);
    fixture_settle(f, &quiet, 1);
    fixture_settle(f, &last, 1);
    assert_true(batch[0].seq < batch[1].seq && batch[1].seq < quiet.seq);
    struct events events = {0};
    assert_int_equal(f->docs->changes(f->db, fixture_call(f), 0, 10, on_event, &events), NG_OK);
    assert_int_equal(events.count, 3);
    assert_int_equal(events.seqs[0], batch[0].seq);
    assert_int_equal(events.seqs[1], batch[1].seq);
    assert_true(events.seqs[2] > quiet.seq);
    assert_int_equal(events.revisions[2], 2);
    if (f->inner->last_seq != NULL) {
        assert_int_equal(f->docs->last_seq(f->db), events.seqs[2]);
    }
    struct events some = {0};
    assert_int_equal(f->docs->changes(f->db, fixture_call(f), batch[0].seq, 1, on_event, &some),
                     NG_OK);
    assert_int_equal(some.count, 1);
    assert_int_equal(some.seqs[0], batch[1].seq);
}

static bool has_moments = true;

void documents_contract_without_moments(void)
{
    has_moments = false;
}

/* What is acknowledged before a change begins has a lower number, in whichever collection. */
static void test_order(void **state)
{
    static const char *const collections[] = {"things", "quiet", "fleeting"};
    struct fixture *f = *state;
    struct change changes[ORDERED];
    char ids[ORDERED][16];
    size_t spread = NG_COUNT(collections);
    if (!has_moments) {
        spread = 1;
    }
    memset(changes, 0, sizeof(changes));
    for (size_t i = 0; i < ORDERED; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "%zu", i);
        changes[i].collection = collections[i % spread];
        changes[i].id = ng_str_of(ids[i]);
        assert_int_equal(fixture_commit(f, &changes[i], 1, NULL, NULL, NULL), NG_OK);
    }
    fixture_settle(f, changes, ORDERED);
    for (size_t i = 1; i < ORDERED; i++) {
        if (changes[i - 1].seq >= changes[i].seq) {
            fail_msg("change %zu has the number %llu, and the one after it %llu", i - 1,
                     (unsigned long long)changes[i - 1].seq,
                     (unsigned long long)changes[i].seq);
        }
    }
}

static void test_answers(void **state)
{
    struct fixture *f = *state;
    int64_t now = call_host.now_ms();
    struct ng_answer answer = {
        .size = sizeof(answer),
        .scope = str_make("agent\0key", 9),
        .body_hash = str_make("hash", 4),
        .reply = str_make("re\0ply", 6),
        .time_ms = now,
        .expires_ms = now + 100000,
    };
    struct ng_answer found = {.size = sizeof(found)};
    assert_int_equal(f->docs->answer(f->db, fixture_call(f), answer.scope, &found),
                     NG_ENOTFOUND);
    struct change change = {.id = ng_str_of("a"), .text = ng_str_of("1")};
    assert_int_equal(fixture_commit(f, &change, 1, &answer, NULL, NULL), NG_OK);
    assert_int_equal(f->docs->answer(f->db, fixture_call(f), answer.scope, &found), NG_OK);
    assert_true(str_equal(found.reply, answer.reply));
    assert_true(str_equal(found.body_hash, answer.body_hash));
    /* The same key again: nothing is written. */
    change.base = 1;
    assert_int_equal(fixture_commit(f, &change, 1, &answer, NULL, NULL), NG_EKEYREUSED);
    expect_doc(f, "a", 1, "1");
    /* A condition fails: the answer is not there either. */
    struct ng_answer other = answer;
    other.scope = ng_str_of("other");
    change.base = 7;
    assert_int_equal(fixture_commit(f, &change, 1, &other, NULL, NULL), NG_ECONFLICT);
    assert_int_equal(f->docs->answer(f->db, fixture_call(f), other.scope, &found),
                     NG_ENOTFOUND);
    /* Expired ones are gone and give way. */
    other.time_ms = now - 2000;
    other.expires_ms = now - 1000;
    assert_int_equal(fixture_commit(f, NULL, 0, &other, NULL, NULL), NG_OK);
    assert_int_equal(f->docs->answer(f->db, fixture_call(f), other.scope, &found),
                     NG_ENOTFOUND);
    other.time_ms = now;
    other.expires_ms = now + 100000;
    assert_int_equal(fixture_commit(f, NULL, 0, &other, NULL, NULL), NG_OK);
    assert_int_equal(f->docs->answer(f->db, fixture_call(f), other.scope, &found), NG_OK);
}

static void test_cancelled(void **state)
{
    struct fixture *f = *state;
    struct rows rows = {0};
    struct ng_query query = documents_query();
    for (int i = 0; i < 300; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%d", i);
        assert_int_equal(fixture_put(f, id, 0, "", "some text"), NG_OK);
    }
    struct ng_term term = {.field = ng_str_of("s"), .op = NG_TERM_NE, .value = ng_str_of("x")};
    query.terms = &term;
    query.term_count = 1;
    query.limit = 1;
    query.offset = 299;
    struct ng_call *call = fixture_call(f);
    call_cancel(f->call);
    assert_int_equal(f->docs->query(f->db, call, &query, rows_add, &rows, NULL), NG_ECANCELLED);
    assert_int_equal(f->docs->query(f->db, fixture_call(f), &query, rows_add, &rows, NULL),
                     NG_OK);
    assert_int_equal(rows.count, 1);
    rows_done(&rows);
}

/* ---- many at once ---- */

#define THREADS 8
/* Of each thread. */
#define ROUNDS 200
#define ROUNDS_FEW 10

struct worker {
    struct fixture fixture; /* shares the store, has its own call */
    int number;
    int rounds;
    int conflicts;
};

static void *append(void *user)
{
    struct worker *worker = user;
    for (int i = 0; i < worker->rounds; i++) {
        int rc = NG_ECONFLICT;
        while (rc == NG_ECONFLICT) {
            struct rows rows;
            int got = fixture_get(&worker->fixture, "shared", 0, &rows);
            const char *before = got == NG_OK ? rows.items[0].text : "";
            size_t len = strlen(before);
            char *text = malloc(len + 8);
            assert_non_null(text);
            memcpy(text, before, len);
            (void)snprintf(text + len, 8, "%d,", worker->number);
            rc = fixture_put(&worker->fixture, "shared",
                             got == NG_OK ? rows.items[0].revision : 0, before, text);
            worker->conflicts += rc == NG_ECONFLICT;
            free(text);
            rows_done(&rows);
        }
        assert_int_equal(rc, NG_OK);
    }
    return NULL;
}

static void test_many_writers(void **state)
{
    struct fixture *f = *state;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    int counts[THREADS] = {0};
    const int rounds = documents_slow(f) ? ROUNDS_FEW : ROUNDS;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.fixture = *f, .number = i, .rounds = rounds};
        workers[i].fixture.call = NULL;
        assert_int_equal(pthread_create(&threads[i], NULL, append, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        call_unref(workers[i].fixture.call);
    }
    struct rows rows;
    assert_int_equal(fixture_get(f, "shared", 0, &rows), NG_OK);
    assert_int_equal(rows.items[0].revision, THREADS * rounds);
    for (const char *c = rows.items[0].text; *c != '\0'; c++) {
        if (*c != ',') {
            counts[*c - '0']++;
        }
    }
    rows_done(&rows);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(counts[i], rounds);
    }
    expect_clean(f);
}

/* ---- faults ---- */

static void test_commit_fails(void **state)
{
    struct fixture *f = *state;
    const enum fault faults[] = {FAULT_BUSY, FAULT_COMMIT};
    uint64_t revision = 0;
    const char *before = "";
    for (size_t i = 0; i < NG_COUNT(faults); i++) {
        for (unsigned after = 0; after < 3; after++) {
            faulty_arm(f->db, faults[i], after);
            for (unsigned call = 0; call <= after; call++) {
                struct change batch[2] = {
                    {.id = ng_str_of("a"), .base = revision, .text = ng_str_of("text")},
                    {.id = ng_str_of("b"), .base = revision, .text = ng_str_of("text")},
                };
                batch[0].before_text = batch[1].before_text = ng_str_of(before);
                int rc = fixture_commit(f, batch, 2, NULL, NULL, NULL);
                if (call == after) {
                    assert_int_equal(rc, faults[i] == FAULT_BUSY ? NG_EBUSY : NG_EUNAVAILABLE);
                    expect_doc(f, "a", revision, before);
                    expect_doc(f, "b", revision, before);
                    rc = fixture_commit(f, batch, 2, NULL, NULL, NULL);
                }
                assert_int_equal(rc, NG_OK);
                revision++;
                before = "text";
                expect_doc(f, "a", revision, before);
                expect_doc(f, "b", revision, before);
            }
        }
    }
    expect_clean(f);
}

static void test_reads_fail(void **state)
{
    struct fixture *f = *state;
    struct rows rows = {0};
    struct events events = {0};
    struct ng_answer answer = {.size = sizeof(answer)};
    struct ng_query query = documents_query();
    struct ng_range range = {.size = sizeof(range), .limit = 5};
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("a")};
    struct ng_search search = {
        .size = sizeof(search), .query = &query, .text = ng_str_of("text")};
    assert_int_equal(fixture_put(f, "a", 0, "", "text"), NG_OK);
    for (int i = 0; i < 2; i++) {
        int want = i == 0 ? NG_EUNAVAILABLE : NG_OK;
        enum fault arm = i == 0 ? FAULT_GET : FAULT_NONE;
        faulty_arm(f->db, arm, 0);
        assert_int_equal(f->docs->get(f->db, fixture_call(f), &key, 0, rows_add, &rows), want);
        faulty_arm(f->db, i == 0 ? FAULT_QUERY : FAULT_NONE, 0);
        assert_int_equal(f->docs->query(f->db, fixture_call(f), &query, rows_add, &rows, NULL),
                         want);
        faulty_arm(f->db, i == 0 ? FAULT_HISTORY : FAULT_NONE, 0);
        assert_int_equal(
            f->docs->history(f->db, fixture_call(f), &key, &range, rows_add, &rows), want);
        faulty_arm(f->db, i == 0 ? FAULT_CHANGES : FAULT_NONE, 0);
        assert_int_equal(f->docs->changes(f->db, fixture_call(f), 0, 5, on_event, &events),
                         want);
        faulty_arm(f->db, i == 0 ? FAULT_SEARCH : FAULT_NONE, 0);
        if (f->inner->search != NULL) {
            assert_int_equal(
                f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, NULL), want);
        }
        faulty_arm(f->db, i == 0 ? FAULT_ANSWER : FAULT_NONE, 0);
        assert_int_equal(f->docs->answer(f->db, fixture_call(f), ng_str_of("x"), &answer),
                         i == 0 ? NG_EUNAVAILABLE : NG_ENOTFOUND);
        assert_int_equal(rows.count, i == 0 ? 0 : f->inner->search != NULL ? 4 : 3);
    }
    rows_done(&rows);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, documents_setup, documents_teardown)
#define FAULTY(test)                                                                           \
    {                                                                                          \
#test " (wrapped)", test, setup_faulty, documents_teardown, NULL                       \
    }

static int documents_change_contract(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_revision), TEST(test_conditions),       TEST(test_tombstone),
        TEST(test_odd_keys),       TEST(test_large_and_binary), TEST(test_history),
        TEST(test_no_history),     TEST(test_changes),          TEST(test_order),
        TEST(test_answers),        TEST(test_cancelled),        TEST(test_many_writers),
    };
    return cmocka_run_group_tests_name("documents", tests, NULL, NULL);
}

static int documents_wrapped_contract(void)
{
    const struct CMUnitTest tests[] = {
        FAULTY(test_every_revision), FAULTY(test_conditions),   FAULTY(test_tombstone),
        FAULTY(test_answers),        FAULTY(test_many_writers), FAULTY(test_commit_fails),
        FAULTY(test_reads_fail),
    };
    return cmocka_run_group_tests_name("documents", tests, NULL, NULL);
}

int documents_contract_part(const char *module_name, const char *const *sets,
                            enum documents_part part)
{
    suite_module = module_name;
    suite_sets = sets;
    switch (part) {
    case DOCUMENTS_CHANGES:
        return documents_change_contract();
    case DOCUMENTS_WRAPPED:
        return documents_wrapped_contract();
    case DOCUMENTS_REST:
        break;
    }
    return documents_origin_contract() + documents_splices_contract() +
           documents_trail_contract() + documents_query_contract() +
           documents_upkeep_contract() + documents_shared_contract();
}

int documents_contract(const char *module_name, const char *const *sets)
{
    int failed = documents_contract_part(module_name, sets, DOCUMENTS_CHANGES);
    failed += documents_contract_part(module_name, sets, DOCUMENTS_WRAPPED);
    return failed + documents_contract_part(module_name, sets, DOCUMENTS_REST);
}
