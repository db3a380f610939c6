/* SPDX-License-Identifier: MIT */
/* documents_origin_contract.c - the suite of documents backends: where each change came from.
 */
#include <stdio.h>

#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "documents_parts.h"

#define LOG_MAX ((size_t)1 << 16)
#define REVISIONS 40

void documents_log_origin(struct buf *log, const struct ng_origin *origin)
{
    const struct {
        const char *name;
        struct ng_str text;
    } parts[] = {{" run ", origin->run_id},
                 {" key ", origin->key_id},
                 {" request ", origin->request_id}};
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        if (parts[i].text.data != NULL) {
            buf_add_str(log, ng_str_of(parts[i].name));
            buf_add_str(log, parts[i].text);
        }
    }
    if (origin->has_lines) {
        buf_printf(log, " +%llu -%llu", (unsigned long long)origin->lines_added,
                   (unsigned long long)origin->lines_removed);
    }
}

static int log_row(void *user, const struct ng_doc *row)
{
    struct buf *log = user;
    buf_printf(log, "%llu", (unsigned long long)row->revision);
    documents_log_origin(log, &row->origin);
    buf_add_char(log, ' ');
    buf_add_str(log, row->tool);
    buf_add_str(log, row->event_data);
    buf_add_char(log, '\n');
    return 0;
}

static int log_event(void *user, const struct ng_event *event)
{
    struct buf *log = user;
    if (!str_is(event->key.id, "doc")) {
        return 0;
    }
    buf_printf(log, "%llu", (unsigned long long)event->revision);
    documents_log_origin(log, &event->origin);
    buf_add_char(log, ' ');
    buf_add_str(log, event->tool);
    buf_add_str(log, event->data);
    buf_add_char(log, '\n');
    return 0;
}

static void expect_history(struct fixture *f, const struct ng_range *range, const char *want)
{
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("doc")};
    struct buf log;
    buf_init(&log, LOG_MAX);
    assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, range, log_row, &log),
                     NG_OK);
    assert_string_equal(buf_cstr(&log), want);
    buf_done(&log);
}

static int take_offer(void *user, const struct ng_doc *row)
{
    bool *offered = user;
    *offered = NG_HAS(row, event_data) && row->origin.run_id.data != NULL;
    return 0;
}

/* A backend that was built without the member does not tell. */
static void needs_origin(struct fixture *f)
{
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of("first")};
    struct ng_range all = {.size = sizeof(all), .limit = 1};
    bool offered = false;
    assert_int_equal(fixture_put(f, "first", 0, "", "text"), NG_OK);
    assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, &all, take_offer, &offered),
                     NG_OK);
    fixture_needs(offered, "ng_doc.origin");
}

/* Rows of the history and events have it, the newest as the others, and what is not known is
 * absent. */
static void test_origins(void **state)
{
    struct fixture *f = *state;
    needs_origin(f);
    static const struct ng_origin known = {.run_id = {"nightly-7", 9},
                                           .key_id = {"k1", 2},
                                           .request_id = {"q-1", 3},
                                           .lines_added = UINT64_C(1) << 40,
                                           .lines_removed = 0,
                                           .has_lines = true};
    static const struct ng_origin run_only = {.run_id = {"nightly-7", 9}};
    static const struct ng_origin nothing = {.has_lines = false};
    struct change changes[] = {
        {.id = ng_str_of("doc"), .text = ng_str_of("one"), .origin = &known, .data = "{}"},
        {.id = ng_str_of("doc"),
         .base = 1,
         .text = ng_str_of("two"),
         .before_text = ng_str_of("one"),
         .origin = &run_only},
        {.id = ng_str_of("doc"),
         .base = 2,
         .deleted = true,
         .before_text = ng_str_of("two"),
         .origin = &nothing},
    };
    for (size_t i = 0; i < NG_COUNT(changes); i++) {
        assert_int_equal(fixture_commit(f, &changes[i], 1, NULL, NULL, NULL), NG_OK);
    }
#define FIRST "1 run nightly-7 key k1 request q-1 +1099511627776 -0 test_tool{}\n"
#define SECOND "2 run nightly-7 test_tool\n"
#define THIRD "3 test_tool\n"
    struct ng_range up = {.size = sizeof(up), .limit = 10, .ascending = true};
    struct ng_range down = {.size = sizeof(down), .limit = 10, .with_body = true};
    struct ng_range newest = {.size = sizeof(newest), .from = 3, .to = 3, .limit = 1};
    for (int settled = 0; settled < 2; settled++) {
        expect_history(f, &up, FIRST SECOND THIRD);
        expect_history(f, &down, THIRD SECOND FIRST);
        expect_history(f, &newest, THIRD);
        fixture_settle(f, changes, NG_COUNT(changes));
    }
    struct buf log;
    buf_init(&log, LOG_MAX);
    assert_int_equal(f->docs->changes(f->db, fixture_call(f), 0, 10, log_event, &log), NG_OK);
    assert_string_equal(buf_cstr(&log), FIRST SECOND THIRD);
    buf_done(&log);
    expect_clean(f);
}

/* Many in one commit, of several agents and runs: each keeps its own. */
static void test_many_origins(void **state)
{
    struct fixture *f = *state;
    needs_origin(f);
    static const char *const agents[] = {"ada", "bob", "cy"};
    struct change changes[REVISIONS] = {0};
    struct ng_origin origins[REVISIONS] = {0};
    char ids[REVISIONS][16];
    char runs[REVISIONS][16];
    for (size_t i = 0; i < REVISIONS; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "doc-%zu", i);
        (void)snprintf(runs[i], sizeof(runs[i]), "run-%zu", i % 7);
        origins[i].run_id = ng_str_of(runs[i]);
        changes[i] = (struct change){.id = ng_str_of(ids[i]),
                                     .agent = agents[i % NG_COUNT(agents)],
                                     .origin = &origins[i]};
    }
    assert_int_equal(fixture_commit(f, changes, REVISIONS, NULL, NULL, NULL), NG_OK);
    fixture_settle(f, changes, REVISIONS);
    for (size_t i = 0; i < REVISIONS; i++) {
        struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of(ids[i])};
        struct ng_range all = {.size = sizeof(all), .limit = 10};
        struct buf log, want;
        buf_init(&log, LOG_MAX);
        buf_init(&want, LOG_MAX);
        buf_printf(&want, "1 run %s test_tool\n", runs[i]);
        assert_int_equal(f->docs->history(f->db, fixture_call(f), &key, &all, log_row, &log),
                         NG_OK);
        assert_string_equal(buf_cstr(&log), buf_cstr(&want));
        buf_done(&log);
        buf_done(&want);
    }
    expect_clean(f);
}

/* The rows of one run: as runs() gave them, and the expected ones. */
struct run_sum {
    const char *name;
    uint64_t changes, first_seq, last_seq;
    bool has_agent[3];
};

#define RUN_CHANGES 60

static int sum_run(void *user, const struct ng_run *row)
{
    struct run_sum *sum = user;
    if (str_is(row->run, sum->name)) {
        assert_true(str_is(row->collection, "things") && str_is(row->space, "team"));
        sum->changes += row->changes;
        sum->first_seq = u64_min(sum->first_seq, row->first_seq);
        sum->last_seq = u64_max(sum->last_seq, row->last_seq);
        sum->has_agent[row->agent.data[0] - 'a'] = true;
    }
    return 0;
}

static struct run_sum sum_of(struct fixture *f, const char *name, uint64_t since,
                             uint64_t until)
{
    struct run_sum sum = {.name = name, .first_seq = UINT64_MAX};
    assert_int_equal(f->docs->runs(f->db, fixture_call(f), since, until, sum_run, &sum), NG_OK);
    return sum;
}

/* The changes in a range only, also of a run that has others. */
static void expect_range(struct fixture *f, const uint64_t seqs[RUN_CHANGES], size_t since,
                         size_t until)
{
    static const char *const names[] = {"one", "two"};
    for (size_t run = 0; run < NG_COUNT(names); run++) {
        struct run_sum sum = sum_of(f, names[run], seqs[since], seqs[until]);
        size_t first = size_max(since + 1, run * 20);
        size_t end = size_min(until + 1, run * 20 + 20);
        assert_int_equal(sum.changes, end > first ? end - first : 0);
        if (end > first) {
            assert_int_equal(sum.first_seq, seqs[first]);
            assert_int_equal(sum.last_seq, seqs[end - 1]);
        }
    }
}

/* Each change counts once, whatever agent and transaction it is of; a change without a run is
 * of none. */
static void test_runs(void **state)
{
    struct fixture *f = *state;
    if (f->docs->runs == NULL) {
        return; /* the core reads all changes */
    }
    static const char *const agents[] = {"ada", "bob", "cy"};
    static const struct ng_origin origins[] = {
        {.run_id = {"one", 3}}, {.run_id = {"two", 3}}, {.run_id = {NULL, 0}}};
    uint64_t seqs[RUN_CHANGES];
    for (size_t i = 0; i < RUN_CHANGES; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "doc-%zu", i);
        struct change change = {.id = ng_str_of(id),
                                .agent = agents[i % NG_COUNT(agents)],
                                .origin = &origins[i / 20]};
        assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
        fixture_settle(f, &change, 1);
        seqs[i] = change.seq;
    }
    uint64_t last = seqs[19];
    struct run_sum one = sum_of(f, "one", 0, UINT64_MAX);
    struct run_sum two = sum_of(f, "two", 0, UINT64_MAX);
    assert_int_equal(one.changes, 20);
    assert_int_equal(two.changes, 20);
    assert_int_equal(one.last_seq, last);
    assert_true(one.has_agent[0] && one.has_agent[1] && one.has_agent[2]);
    assert_true(two.first_seq > one.last_seq);
    assert_int_equal(sum_of(f, "", 0, UINT64_MAX).changes, 0);
    assert_int_equal(sum_of(f, "one", last, UINT64_MAX).changes, 0);
    assert_int_equal(sum_of(f, "two", 0, last).changes, 0);
    for (size_t since = 0; since < RUN_CHANGES; since += 3) {
        for (size_t until = since; until < RUN_CHANGES; until += 2) {
            expect_range(f, seqs, since, until);
        }
    }
    expect_clean(f);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, documents_setup, documents_teardown)

int documents_origin_contract(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_origins),
        TEST(test_many_origins),
        TEST(test_runs),
    };
    return cmocka_run_group_tests_name("documents, origins", tests, NULL, NULL);
}
