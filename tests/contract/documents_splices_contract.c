/* SPDX-License-Identifier: MIT */
/* documents_splices_contract.c - the suite of documents backends: a history by what each change
 * replaced. A backend may give complete rows all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/str.h"
#include "documents_parts.h"

#define DAY INT64_C(86400000)
#define REVISIONS 300
#define REVISIONS_FEW 60
#define TEXT_MAX 4096

static unsigned below(unsigned *seed, unsigned limit)
{
    return (unsigned)rand_r(seed) % limit;
}

static unsigned seed_of_run(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe) */
    const char *wanted = getenv("NOTEGATE_TEST_SEED");
    unsigned seed = wanted == NULL ? 1 : (unsigned)strtoul(wanted, NULL, 10);
    print_message("NOTEGATE_TEST_SEED=%u\n", seed);
    return seed;
}

/* ---- a document with a random history ---- */

struct history {
    unsigned seed;
    char text[TEXT_MAX];
    size_t len;
    char json[32], before_json[32];
    uint64_t revision;
    bool deleted;
};

/* Any bytes, also what is not UTF-8. */
static void history_edit(struct history *history)
{
    size_t at = below(&history->seed, (unsigned)history->len + 1);
    size_t removed = below(&history->seed, (unsigned)(history->len - at) + 1);
    size_t more = below(&history->seed, 60);
    removed = below(&history->seed, 8) > 0 && removed > 60 ? 60 : removed;
    more = history->len - removed + more > TEXT_MAX ? 0 : more;
    memmove(history->text + at + more, history->text + at + removed,
            history->len - at - removed);
    for (size_t i = 0; i < more; i++) {
        unsigned any = below(&history->seed, 100);
        history->text[at + i] = (char)(any < 2 ? 0xff : any < 10 ? '\n' : 'a' + any % 3);
    }
    history->len = history->len - removed + more;
}

static void history_step(struct fixture *f, struct history *history, int64_t time_ms)
{
    static char before[TEXT_MAX];
    size_t before_len = history->len;
    unsigned how = below(&history->seed, 20);
    bool deletes = how == 0 && history->revision > 0 && !history->deleted;
    memcpy(before, history->text, before_len);
    memcpy(history->before_json, history->json, sizeof(history->json));
    if (deletes) {
        history->len = 0;
        history->json[0] = '\0';
    } else {
        if (how > 2) {
            history_edit(history);
        }
        (void)snprintf(history->json, sizeof(history->json), "{\"n\":%u}",
                       below(&history->seed, 50));
    }
    struct change change = {
        .id = ng_str_of("doc"),
        .base = history->revision,
        .deleted = deletes,
        .json = deletes ? NULL : history->json,
        .text = str_make(history->text, history->len),
        .before_json = history->before_json[0] == '\0' ? NULL : history->before_json,
        .before_text = str_make(before, before_len),
        .time_ms = time_ms,
    };
    assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    history->revision++;
    history->deleted = deletes;
}

/* ---- both forms of a range ---- */

struct both {
    struct rows whole; /* complete rows */
    size_t at;         /* of the next one */
    struct buf text;   /* of the row before */
    size_t splices;
};

static int take_row(void *user, const struct ng_doc *row)
{
    struct both *both = user;
    assert_true(both->at < both->whole.count);
    const struct row *want = &both->whole.items[both->at];
    const struct ng_splice *splice = NG_HAS(row, text_splice) ? row->text_splice : NULL;
    if (splice != NULL) {
        assert_true(both->at > 0 && want[-1].revision + 1 == want->revision);
        assert_true(row->json.data == NULL && row->text.data == NULL);
        assert_true(splice->at <= both->text.len &&
                    splice->removed <= both->text.len - splice->at);
        assert_int_equal(buf_splice(&both->text, (size_t)splice->at, (size_t)splice->removed,
                                    splice->inserted),
                         NG_OK);
        both->splices++;
    } else {
        assert_int_equal(row->json.len, strlen(want->json));
        assert_memory_equal(row->json.data, want->json, row->json.len);
        assert_non_null(row->text.data);
        buf_clear(&both->text);
        (void)buf_add_str(&both->text, row->text);
    }
    assert_int_equal(row->revision, want->revision);
    assert_int_equal(row->deleted, want->deleted);
    assert_true(row->seq == want->seq || want->seq == 0); /* a shared store numbers later */
    assert_int_equal(row->text_size, want->text_len);
    assert_int_equal(both->text.len, want->text_len);
    assert_true(want->text_len == 0 ||
                memcmp(buf_cstr(&both->text), want->text, want->text_len) == 0);
    both->at++;
    return 0;
}

/* The rows of the range in both forms are the same. Returns how many have a splice. */
static size_t expect_same(struct fixture *f, uint64_t from, uint64_t to, uint32_t limit)
{
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("doc")};
    struct ng_range range = {.size = sizeof(range),
                             .from = from,
                             .to = to,
                             .limit = limit,
                             .with_body = true,
                             .ascending = true};
    struct both both = {.at = 0};
    buf_init(&both.text, TEXT_MAX);
    assert_int_equal(
        f->docs->history(f->db, fixture_call(f), &key, &range, rows_add, &both.whole), NG_OK);
    range.flags = NG_RANGE_SPLICES;
    assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, &range, take_row, &both),
                     NG_OK);
    assert_int_equal(both.at, both.whole.count);
    rows_done(&both.whole);
    buf_done(&both.text);
    return both.splices;
}

static void expect_same_ranges(struct fixture *f, struct history *history)
{
    size_t splices = expect_same(f, 1, 0, UINT32_MAX);
    if (splices == 0) {
        print_message("this backend gives complete rows\n");
    }
    for (int tries = 0; tries < 20; tries++) {
        uint64_t from = below(&history->seed, (unsigned)history->revision + 2);
        uint64_t to = from + below(&history->seed, (unsigned)history->revision);
        (void)expect_same(f, from, tries % 4 == 0 ? 0 : to,
                          tries % 3 == 0 ? 1 + below(&history->seed, 50) : UINT32_MAX);
    }
}

static void test_splices(void **state)
{
    struct fixture *f = *state;
    struct history history = {.seed = seed_of_run()};
    const uint64_t count = documents_slow(f) ? REVISIONS_FEW : REVISIONS;
    while (history.revision < count) {
        history_step(f, &history, 0);
        if (history.revision % 50 == 0) {
            (void)expect_same(f, 1, 0, UINT32_MAX); /* before they are settled */
        }
    }
    expect_same_ranges(f, &history);
    struct change last = {.id = ng_str_of("last")};
    assert_int_equal(fixture_commit(f, &last, 1, NULL, NULL, NULL), NG_OK);
    fixture_settle(f, &last, 1);
    expect_same_ranges(f, &history);
    expect_clean(f);
}

static int expect_complete(void *user, const struct ng_doc *row)
{
    bool with_body = *(const bool *)user;
    assert_true(!NG_HAS(row, text_splice) || row->text_splice == NULL);
    assert_true((row->text.data != NULL) == with_body);
    return 0;
}

/* Descending, and without bodies, there are no splices. */
static void test_splices_are_not_for_all(void **state)
{
    struct fixture *f = *state;
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("doc")};
    struct history history = {.seed = seed_of_run()};
    for (int i = 0; i < 10; i++) {
        history_step(f, &history, 0);
    }
    for (int form = 0; form < 3; form++) {
        struct ng_range range = {.size = sizeof(range),
                                 .to = history.revision - 1,
                                 .limit = UINT32_MAX,
                                 .with_body = form<1, .ascending = form> 1,
                                 .flags = NG_RANGE_SPLICES};
        assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, &range, expect_complete,
                                          &range.with_body),
                         NG_OK);
    }
}

/* A reader that wants no more rows gets none. */
static void test_splices_stop(void **state)
{
    struct fixture *f = *state;
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("doc")};
    struct history history = {.seed = seed_of_run()};
    struct rows rows = {.stop_after = 4};
    struct ng_range range = {.size = sizeof(range),
                             .limit = UINT32_MAX,
                             .with_body = true,
                             .ascending = true,
                             .flags = NG_RANGE_SPLICES};
    for (int i = 0; i < 10; i++) {
        history_step(f, &history, 0);
    }
    assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, &range, rows_add, &rows),
                     NG_OK);
    assert_int_equal(rows.count, 4);
    rows_done(&rows);
}

static bool pin_some(void *user, const struct ng_key *key, uint64_t revision)
{
    (void)user;
    (void)key;
    return revision % 7 < 2;
}

/* The row behind thinned-out revisions is complete. */
static void test_thinned_splices(void **state)
{
    enum { DAYS = 30, PER_DAY = 6 };
    struct fixture *f = *state;
    struct history history = {.seed = seed_of_run()};
    const int64_t now = INT64_C(20000) * DAY;
    fixture_needs(f->inner->maintain != NULL, "maintain");
    for (int i = 0; i < DAYS * PER_DAY; i++) {
        history_step(f, &history, now - (DAYS - i / PER_DAY) * DAY + i);
    }
    assert_int_equal(f->docs->maintain(f->db, fixture_call(f), now, 10 * DAY, pin_some, NULL),
                     NG_OK);
    expect_same_ranges(f, &history);
    expect_clean(f);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, documents_setup, documents_teardown)

int documents_splices_contract(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_splices),
        TEST(test_splices_are_not_for_all),
        TEST(test_splices_stop),
        TEST(test_thinned_splices),
    };
    return cmocka_run_group_tests_name("documents, splices", tests, NULL, NULL);
}
