/* SPDX-License-Identifier: MIT */
/* documents_trail_contract.c - the suite of documents backends: the changes that a filter
 * selects, and the revisions around a point. The oracle is what changes() and history() give.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "documents_parts.h"

#define CHANGES 400
#define DOCS 90 /* more than a backend may look at one by one */
#define FILTERS 150
#define DIMENSIONS 6
#define VALUES 3
#define LOOKS 50000
#define REVISIONS 60
#define LONG_REVISIONS 6000
#define POINTS 300

/* In the order of names_of(). */
static const char *const values[DIMENSIONS][VALUES] = {
    {"team", "other", "none"}, {"things", "quiet", "fleeting"}, {"ada", "bob", "cy"},
    {"one", "two", "never"},   {"test_tool", "other", "none"},  {"made", "moved", "none"},
};

struct trail_row {
    uint64_t seq, revision;
    char id[16];
    char names[DIMENSIONS][16];
};

struct trail_rows {
    struct trail_row *rows;
    size_t count, max, page, stop_after; /* stop_after 0: never */
};

static unsigned below(unsigned *seed, unsigned limit)
{
    return (unsigned)rand_r(seed) % limit;
}

static void copy_text(char copy[16], struct ng_str text)
{
    assert_true(text.len < 16);
    (void)snprintf(copy, 16, "%.*s", (int)text.len, text.len > 0 ? text.data : "");
}

static int take_event(void *user, const struct ng_event *event)
{
    struct trail_rows *rows = user;
    assert_true(rows->count < rows->max);
    struct trail_row *row = &rows->rows[rows->count++];
    const struct ng_str names[DIMENSIONS] = {event->key.space, event->key.collection,
                                             event->agent,     event->origin.run_id,
                                             event->tool,      event->action};
    *row = (struct trail_row){.seq = event->seq, .revision = event->revision};
    copy_text(row->id, event->key.id);
    for (size_t i = 0; i < DIMENSIONS; i++) {
        copy_text(row->names[i], names[i]);
    }
    return ++rows->page == rows->stop_after;
}

static struct trail_rows rows_of(size_t max)
{
    struct trail_rows rows = {.rows = calloc(max, sizeof(struct trail_row)), .max = max};
    assert_non_null(rows.rows);
    return rows;
}

/* ---- changes ---- */

static void write_random(struct fixture *f, unsigned *seed)
{
    static const struct ng_origin origins[] = {
        {.run_id = {"one", 3}}, {.run_id = {"two", 3}}, {.run_id = {NULL, 0}}};
    static uint64_t revisions[2][2][DOCS];
    memset(revisions, 0, sizeof(revisions));
    for (size_t i = 0; i < CHANGES; i++) {
        char id[16];
        unsigned place[] = {below(seed, 2), below(seed, 2), below(seed, DOCS)};
        uint64_t *revision = &revisions[place[0]][place[1]][place[2]];
        (void)snprintf(id, sizeof(id), "%s-%u", place[2] % 3 == 0 ? "a" : "b", place[2]);
        struct change change = {.collection = values[1][place[1]],
                                .space = values[0][place[0]],
                                .id = ng_str_of(id),
                                .base = *revision,
                                .agent = values[2][below(seed, VALUES)],
                                .action = values[5][below(seed, 2)],
                                .origin = &origins[below(seed, NG_COUNT(origins))]};
        assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
        if (i + 1 == CHANGES) {
            fixture_settle(f, &change, 1);
        }
        ++*revision;
    }
}

/* ---- filters ---- */

static struct ng_names *names_of(struct ng_trail *trail, size_t dimension)
{
    struct ng_names *const lists[DIMENSIONS] = {&trail->spaces, &trail->collections,
                                                &trail->agents, &trail->runs,
                                                &trail->tools,  &trail->actions};
    return lists[dimension];
}

static void random_filter(struct ng_trail *trail, struct ng_str texts[DIMENSIONS][2],
                          uint64_t last, unsigned *seed)
{
    static const char *const ids[] = {"a-", "", "b-1", "a-9", "c"};
    *trail = (struct ng_trail){.size = sizeof(*trail), .until = last};
    for (size_t i = 0; i < DIMENSIONS; i++) {
        texts[i][0] = ng_str_of(values[i][below(seed, VALUES)]);
        texts[i][1] = ng_str_of(values[i][below(seed, VALUES)]);
        *names_of(trail, i) = (struct ng_names){texts[i], below(seed, 3)};
        names_of(trail, i)->count *= below(seed, 2);
    }
    if (below(seed, 2) == 0) {
        trail->id = ng_str_of(ids[below(seed, NG_COUNT(ids))]);
        trail->id_prefix = below(seed, 2) == 0;
    }
    trail->since = below(seed, 2) == 0 ? 0 : below(seed, (unsigned)last + 5);
    trail->until = below(seed, 2) == 0 ? last : 1 + below(seed, (unsigned)last);
}

static bool has_name(const struct ng_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (str_is(names->items[i], name)) {
            return true;
        }
    }
    return names->count == 0;
}

static bool wants(struct ng_trail *trail, const struct trail_row *row)
{
    struct ng_str id = ng_str_of(row->id);
    bool all = row->seq > trail->since && row->seq <= trail->until;
    for (size_t i = 0; i < DIMENSIONS && all; i++) {
        all = has_name(names_of(trail, i), row->names[i]);
    }
    bool named = trail->id.data == NULL ||
                 (trail->id_prefix ? str_starts(id, trail->id) : str_equal(id, trail->id));
    return all && named;
}

/* All pages; the ones that are not selected are left out. */
static void expect_filter(struct fixture *f, struct ng_trail *trail,
                          const struct trail_rows *all, size_t page)
{
    struct trail_rows found = rows_of(CHANGES);
    struct ng_trail rest = *trail;
    size_t at = 0;
    found.stop_after = page;
    while (rest.until > rest.since) {
        uint64_t next = 0;
        size_t before = found.count;
        found.page = 0;
        assert_int_equal(
            f->docs->trail(f->db, fixture_call(f), &rest, LOOKS, take_event, &found, &next),
            NG_OK);
        bool stopped = found.stop_after != 0 && found.page == found.stop_after;
        for (size_t i = before; i < found.count; i++) {
            assert_true(found.rows[i].seq <= rest.until);
            assert_true(i == before || found.rows[i].seq < found.rows[i - 1].seq);
        }
        assert_true(stopped || next < rest.until);
        rest.until = stopped ? found.rows[found.count - 1].seq - 1 : next;
    }
    for (size_t i = all->count; i > 0; i--) {
        if (!wants(trail, &all->rows[i - 1])) {
            continue;
        }
        while (at < found.count && !wants(trail, &found.rows[at])) {
            at++; /* a backend may pass others */
        }
        assert_true(at < found.count);
        assert_memory_equal(&found.rows[at++], &all->rows[i - 1], sizeof(found.rows[0]));
    }
    while (at < found.count) {
        assert_false(wants(trail, &found.rows[at++]));
    }
    free(found.rows);
}

static void test_trail(void **state)
{
    struct fixture *f = *state;
    if (f->docs->trail == NULL) {
        return; /* optional */
    }
    struct trail_rows all = rows_of(CHANGES);
    unsigned seed = 1;
    write_random(f, &seed);
    assert_int_equal(f->docs->changes(f->db, fixture_call(f), 0, CHANGES, take_event, &all),
                     NG_OK);
    assert_true(all.count > CHANGES / 4 && all.count < CHANGES);
    uint64_t last = all.rows[all.count - 1].seq;
    for (int i = 0; i < FILTERS; i++) {
        struct ng_str texts[DIMENSIONS][2];
        struct ng_trail trail;
        random_filter(&trail, texts, last, &seed);
        expect_filter(f, &trail, &all, 0);
        expect_filter(f, &trail, &all, 1 + below(&seed, 20));
    }
    free(all.rows);
    expect_clean(f);
}

/* ---- revisions around a point ---- */

static int64_t revision_ms(size_t number)
{
    return 1700000000000 + (int64_t)(number / 3) * 10; /* some have the same time */
}

static void write_revisions(struct fixture *f, struct ng_str id)
{
    static struct change changes[REVISIONS];
    for (size_t i = 0; i < REVISIONS; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "other-%zu", i);
        struct change other = {.id = ng_str_of(name), .time_ms = revision_ms(i)};
        changes[i] = (struct change){
            .id = id, .base = i, .deleted = i % 7 == 6, .time_ms = revision_ms(i)};
        assert_int_equal(fixture_commit(f, &changes[i], 1, NULL, NULL, NULL), NG_OK);
        if (i % 2 == 0) {
            assert_int_equal(fixture_commit(f, &other, 1, NULL, NULL, NULL), NG_OK);
        }
    }
    fixture_settle(f, changes, REVISIONS);
}

static void expect_kept(struct fixture *f, const struct ng_key *key, const struct rows *rows,
                        uint64_t seq, int64_t time_ms)
{
    static const struct row nothing;
    struct ng_kept kept = {.size = sizeof(kept)};
    size_t before = 0;
    while (before < rows->count && rows->items[before].seq <= seq &&
           rows->items[before].updated_ms <= time_ms) {
        before++;
    }
    const struct row *last = before > 0 ? &rows->items[before - 1] : &nothing;
    const struct row *next = before < rows->count ? &rows->items[before] : &nothing;
    assert_int_equal(f->docs->revision_at(f->db, fixture_call(f), key, seq, time_ms, &kept),
                     NG_OK);
    assert_int_equal(kept.before, last->revision);
    assert_int_equal(kept.before_seq, last->seq);
    assert_int_equal(kept.before_ms, last->updated_ms);
    assert_int_equal(kept.after, next->revision);
    assert_int_equal(kept.after_seq, next->seq);
    assert_int_equal(kept.after_ms, next->updated_ms);
}

/* At each number and time of its revisions, and beside them. */
static void test_revision_at(void **state)
{
    struct fixture *f = *state;
    if (f->docs->revision_at == NULL) {
        return; /* optional */
    }
    const struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("doc")};
    const struct ng_key no = {ng_str_of("things"), ng_str_of("team"), ng_str_of("no")};
    struct ng_range range = {.size = sizeof(range), .limit = REVISIONS, .ascending = true};
    struct ng_kept none = {.size = sizeof(none)};
    struct rows rows = {0};
    write_revisions(f, key.id);
    assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, &range, rows_add, &rows),
                     NG_OK);
    assert_int_equal(rows.count, REVISIONS);
    for (size_t i = 0; i < rows.count; i++) {
        for (int beside = -1; beside <= 1; beside++) {
            expect_kept(f, &key, &rows, rows.items[i].seq + (uint64_t)(1 + beside) - 1,
                        INT64_MAX);
            expect_kept(f, &key, &rows, UINT64_MAX, rows.items[i].updated_ms + beside);
        }
    }
    expect_kept(f, &key, &rows, UINT64_MAX, INT64_MIN);
    rows_done(&rows);
    assert_int_equal(f->docs->revision_at(f->db, fixture_call(f), &no, 1, INT64_MAX, &none),
                     NG_ENOTFOUND);
    expect_clean(f);
}

/* ---- the same of a long history ---- */

struct past {
    uint64_t seq;
    int64_t time_ms;
    bool kept;
};

/* [0] is revision 1. */
struct pasts {
    struct past items[LONG_REVISIONS];
    struct fixture to;
    unsigned seed;
};

/* A third of it thinned, a third whole, a third with holes; many at one time, and pauses. */
static void make_past(struct pasts *pasts)
{
    uint64_t seq = 0;
    int64_t time_ms = 1700000000000;
    for (size_t i = 0; i < LONG_REVISIONS; i++) {
        bool holes = i > LONG_REVISIONS / 3 * 2;
        unsigned one_of = holes ? 1 + (unsigned)i / 100 % 5 : 30;
        bool whole = !holes && i > LONG_REVISIONS / 3;
        seq += 1 + below(&pasts->seed, 3);
        time_ms += below(&pasts->seed, 20) == 0 ? 1 + below(&pasts->seed, 9) : 0;
        time_ms += below(&pasts->seed, 500) == 0 ? 86400000 : 0;
        pasts->items[i] =
            (struct past){seq, time_ms, whole || below(&pasts->seed, one_of) == 0};
    }
    pasts->items[0].kept = pasts->items[LONG_REVISIONS - 1].kept = true;
}

static const struct ng_key long_key = {{"things", 6}, {"team", 4}, {"long", 4}};

static void import_revision(struct pasts *pasts, size_t at)
{
    const struct past *past = &pasts->items[at];
    const struct ng_doc doc = {.size = sizeof(doc),
                               .key = long_key,
                               .revision = at + 1,
                               .json = ng_str_of("{}"),
                               .text = ng_str_of(at % 2 == 0 ? "even" : "odd"),
                               .seq = past->seq,
                               .created_seq = pasts->items[0].seq,
                               .created_ms = pasts->items[0].time_ms,
                               .updated_ms = past->time_ms,
                               .author = ng_str_of("ada"),
                               .action = ng_str_of("updated")};
    const struct ng_record record = {.size = sizeof(record),
                                     .kind = NG_RECORD_REVISION,
                                     .doc = &doc,
                                     .newest = at + 1 == LONG_REVISIONS};
    assert_int_equal(
        pasts->to.docs->import_record(pasts->to.db, fixture_call(&pasts->to), &record), NG_OK);
}

static void import_event(struct pasts *pasts, size_t at)
{
    const struct past *past = &pasts->items[at];
    const struct ng_event event = {.size = sizeof(event),
                                   .seq = past->seq,
                                   .time_ms = past->time_ms,
                                   .key = long_key,
                                   .revision = at + 1,
                                   .agent = ng_str_of("ada"),
                                   .tool = ng_str_of("test_tool"),
                                   .action = ng_str_of("updated")};
    const struct ng_record record = {
        .size = sizeof(record), .kind = NG_RECORD_EVENT, .event = &event};
    assert_int_equal(
        pasts->to.docs->import_record(pasts->to.db, fixture_call(&pasts->to), &record), NG_OK);
}

static void import_past(struct pasts *pasts)
{
    struct fixture *f = &pasts->to;
    assert_int_equal(f->docs->import_begin(f->db, fixture_call(f)), NG_OK);
    for (size_t i = 0; i < LONG_REVISIONS; i++) {
        if (pasts->items[i].kept) {
            import_revision(pasts, i);
        }
    }
    for (size_t i = 0; i < LONG_REVISIONS; i++) {
        import_event(pasts, i);
    }
    assert_int_equal(f->docs->import_end(f->db, fixture_call(f), true), NG_OK);
}

/* A point beside a random revision: by number, by time, or both. */
static void expect_random(struct pasts *pasts, int64_t point)
{
    struct fixture *f = &pasts->to;
    const struct past *beside = &pasts->items[below(&pasts->seed, LONG_REVISIONS)];
    const struct past *other = &pasts->items[below(&pasts->seed, LONG_REVISIONS)];
    uint64_t seq = point % 2 == 0 ? beside->seq + below(&pasts->seed, 3) - 1 : UINT64_MAX;
    int64_t time_ms = point % 2 == 1 ? beside->time_ms + below(&pasts->seed, 3) - 1 : INT64_MAX;
    time_ms = point % 8 == 0 ? other->time_ms : time_ms;
    struct ng_kept found = {.size = sizeof(found)};
    struct ng_kept want = {.size = sizeof(want)};
    for (size_t i = 0; i < LONG_REVISIONS && want.after == 0; i++) {
        const struct past *past = &pasts->items[i];
        if (past->kept && (past->seq > seq || past->time_ms > time_ms)) {
            want.after = i + 1;
            want.after_seq = past->seq;
            want.after_ms = past->time_ms;
        } else if (past->kept) {
            want.before = i + 1;
            want.before_seq = past->seq;
            want.before_ms = past->time_ms;
        }
    }
    assert_int_equal(
        f->docs->revision_at(f->db, fixture_call(f), &long_key, seq, time_ms, &found), NG_OK);
    if (memcmp(&found, &want, sizeof(want)) != 0) {
        fail_msg("up to %llu and %lld: %llu and %llu, not %llu and %llu",
                 (unsigned long long)seq, (long long)time_ms, (unsigned long long)found.before,
                 (unsigned long long)found.after, (unsigned long long)want.before,
                 (unsigned long long)want.after);
    }
}

static int64_t number_of(const char *variable, int64_t fallback)
{
    const char *wanted = getenv(variable);
    return wanted != NULL ? strtoll(wanted, NULL, 10) : fallback;
}

static void test_revision_at_long(void **state)
{
    struct fixture *f = *state;
    struct pasts *pasts = calloc(1, sizeof(*pasts));
    assert_non_null(pasts);
    if (f->docs->revision_at == NULL || f->docs->import_begin == NULL) {
        free(pasts);
        return; /* optional */
    }
    pasts->seed = (unsigned)number_of("NOTEGATE_TEST_SEED", 1);
    make_past(pasts);
    documents_second(&pasts->to);
    import_past(pasts);
    int64_t points = number_of("NOTEGATE_TEST_POINTS", documents_slow(f) ? POINTS / 3 : POINTS);
    for (int64_t i = 0; i < points; i++) {
        expect_random(pasts, i);
    }
    expect_clean(&pasts->to);
    fixture_close(&pasts->to);
    free(pasts);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, documents_setup, documents_teardown)

int documents_trail_contract(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_trail),
        TEST(test_revision_at),
        TEST(test_revision_at_long),
    };
    return cmocka_run_group_tests_name("documents, changes newest first", tests, NULL, NULL);
}
