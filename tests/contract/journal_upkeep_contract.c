/* SPDX-License-Identifier: MIT */
/* journal_upkeep_contract.c - the part of the journals' suite about what outlives the moment:
 * summaries, dumps, checkpoints, restarts. */
#include "journal_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

/* ---- summary ---- */

static void expect_summary(struct suite *suite, const char *space, const char *want)
{
    struct call *call = harness_new_call(&suite->harness);
    struct ng_str text = ng_str_of("untouched");
    assert_int_equal(suite->journal->summary(suite->db, &call->pub, ng_str_of(space), &text),
                     NG_OK);
    if (want == NULL) {
        assert_null(text.data);
    } else {
        assert_non_null(text.data);
        assert_str(text, want);
    }
    call_unref(call);
}

static void set_summary(struct suite *suite, const char *space, const char *text)
{
    struct call *call = harness_new_call(&suite->harness);
    assert_int_equal(
        suite->journal->set_summary(suite->db, &call->pub, ng_str_of(space), ng_str_of(text)),
        NG_OK);
    call_unref(call);
}

static void test_summary(void **state)
{
    struct suite *suite = *state;
    expect_summary(suite, "team", NULL);
    set_summary(suite, "team", "We build a bridge.");
    expect_summary(suite, "team", "We build a bridge.");
    expect_summary(suite, "other", NULL);
    set_summary(suite, "team", "");
    expect_summary(suite, "team", "");
}

/* ---- dump and restore ---- */

static char *dump(struct suite *suite, const char *space)
{
    struct call *call = harness_new_call(&suite->harness);
    struct ng_str json = {NULL, 0};
    assert_int_equal(suite->journal->dump(suite->db, &call->pub, ng_str_of(space), &json),
                     NG_OK);
    char *copy = malloc(json.len + 1);
    assert_non_null(copy);
    memcpy(copy, json.data, json.len);
    copy[json.len] = '\0';
    call_unref(call);
    return copy;
}

static int restore(struct suite *suite, const char *space, const char *json)
{
    struct call *call = harness_new_call(&suite->harness);
    int rc = suite->journal->restore(suite->db, &call->pub, ng_str_of(space), ng_str_of(json));
    call_unref(call);
    return rc;
}

static void test_restore(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry before[100];
    char ids[100][16];
    for (size_t i = 0; i < 100; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "e%zu", i);
        before[i] = i % 2 == 0 ? journal_memory("team", ids[i], "before", (int64_t)i)
                               : journal_reference("team", ids[i], "p1", i, (int64_t)i);
    }
    assert_int_equal(suite_deliver(suite, before, 100), NG_OK);
    set_summary(suite, "team", "as it was");
    char *first = dump(suite, "team");

    struct ng_entry after[] = {
        journal_memory("team", "later", "after", 500),
        journal_reference("team", "later2", "p1", 1000, 501),
        journal_memory("other", "kept", "another space", 502),
    };
    assert_int_equal(suite_deliver(suite, after, NG_COUNT(after)), NG_OK);
    set_summary(suite, "team", "as it is");
    assert_int_equal(restore(suite, "team", first), NG_OK);

    expect_summary(suite, "team", "as it was");
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 1000, rows);
    assert_int_equal(rows->count, 100);
    assert_str(rows->entries[0].event_id, "e99");
    assert_str(rows->entries[99].event_id, "e0");
    assert_str(rows->entries[99].content, "before");
    collected_done(rows);
    struct ng_recall recall = {.space = ng_str_of("team"), .limit = 1000};
    suite_recall(suite, &recall, rows);
    assert_int_equal(rows->count, 51); /* 50 memories and one page */
    assert_int_equal(rows->entries[0].version, 99);
    collected_done(rows);
    journal_collect_timeline(&suite->harness, "other", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 1);
    collected_done(rows);

    /* It is what was dumped, and stays a journal that takes entries, also twice. */
    char *second = dump(suite, "team");
    assert_string_equal(first, second);
    assert_int_equal(suite_deliver(suite, after, 2), NG_OK);
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 1000, rows);
    assert_int_equal(rows->count, 102);
    collected_done(rows);
    assert_int_equal(restore(suite, "team", second), NG_OK);
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 1000, rows);
    assert_int_equal(rows->count, 100);
    collected_done(rows);
    free(first);
    free(second);
    free(rows);
}

static void test_restore_nothing(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    char *empty = dump(suite, "team");
    struct ng_entry entry = journal_memory("team", "e1", "gone soon", 1);
    assert_int_equal(suite_deliver(suite, &entry, 1), NG_OK);
    set_summary(suite, "team", "gone soon");
    /* A text that is no dump changes nothing. */
    assert_int_equal(restore(suite, "team", "{\"days\":[]}"), NG_EINVAL);
    assert_int_equal(restore(suite, "team", "not JSON"), NG_EINVAL);
    expect_summary(suite, "team", "gone soon");
    assert_int_equal(restore(suite, "team", empty), NG_OK);
    expect_summary(suite, "team", NULL);
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 0);
    collected_done(rows);
    free(empty);
    free(rows);
}

/* ---- checkpoints ---- */

static int count_checkpoint(void *user, const struct ng_doc *row)
{
    struct buf *ids = user;
    assert_true(row->text.len == 0);
    assert_null(memmem(row->json.data, row->json.len, "body", 4));
    assert_non_null(memmem(row->json.data, row->json.len, "label", 5));
    buf_add_str(ids, row->key.id);
    buf_add_char(ids, ' ');
    return 0;
}

static void test_checkpoints(void **state)
{
    struct suite *suite = *state;
    struct call *call = harness_new_call(&suite->harness);
    struct ng_str space = ng_str_of("team");
    struct ng_str got = {NULL, 0};
    struct buf ids;
    buf_init(&ids, 4096);
    assert_int_equal(suite->journal->checkpoint_put(
                         suite->db, &call->pub, space, ng_str_of("c1"),
                         ng_str_of("{\"label\":\"one\",\"body\":{\"days\":[1,2]}}")),
                     NG_OK);
    assert_int_equal(
        suite->journal->checkpoint_put(suite->db, &call->pub, space, ng_str_of("c2"),
                                       ng_str_of("{\"label\":\"two\",\"body\":[]}")),
        NG_OK);
    assert_int_equal(
        suite->journal->checkpoint_get(suite->db, &call->pub, space, ng_str_of("c1"), &got),
        NG_OK);
    assert_str(got, "{\"label\":\"one\",\"body\":{\"days\":[1,2]}}");
    assert_int_equal(suite->journal->checkpoint_get(suite->db, &call->pub, ng_str_of("other"),
                                                    ng_str_of("c1"), &got),
                     NG_ENOTFOUND);
    assert_int_equal(suite->journal->checkpoint_put(suite->db, &call->pub, space,
                                                    ng_str_of("c3"), ng_str_of("[]")),
                     NG_EINVAL);
    assert_int_equal(
        suite->journal->checkpoint_list(suite->db, &call->pub, space, count_checkpoint, &ids),
        NG_OK);
    assert_string_equal(buf_cstr(&ids), "c2 c1 ");
    buf_done(&ids);
    call_unref(call);
}

static void test_restart(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry entry = journal_memory("team", "e1", "kept", 1);
    assert_int_equal(suite_deliver(suite, &entry, 1), NG_OK);
    set_summary(suite, "team", "kept");
    harness_reopen(&suite->harness);
    suite_find(suite);
    expect_summary(suite, "team", "kept");
    assert_int_equal(suite_deliver(suite, &entry, 1), NG_OK);
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 1);
    assert_str(rows->entries[0].content, "kept");
    collected_done(rows);
    free(rows);
}

#define AGAIN_MAX 40

/* A delivery of which one entry was there before, as after a kill: all others come in order. */
static void test_delivered_in_part(void **state)
{
    struct suite *suite = *state;
    struct collected *rows = calloc(1, sizeof(*rows));
    struct ng_entry entries[AGAIN_MAX];
    char ids[AGAIN_MAX][16];
    const size_t before = 3;
    assert_non_null(rows);
    for (size_t i = 0; i < AGAIN_MAX; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "e%zu", i);
        entries[i] =
            journal_reference("team", ids[i], i % 2 == 0 ? "p1" : "p2", i + 1, (int64_t)i);
    }
    assert_int_equal(suite_deliver(suite, &entries[before], 1), NG_OK);
    harness_reopen(&suite->harness);
    suite_find(suite);
    assert_int_equal(suite_deliver(suite, entries, AGAIN_MAX), NG_OK);
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 1000, rows);
    assert_int_equal(rows->count, AGAIN_MAX);
    size_t at = AGAIN_MAX;
    assert_str(rows->entries[--at].event_id, ids[before]);
    for (size_t i = 0; i < AGAIN_MAX; i++) {
        if (i != before) {
            assert_str(rows->entries[--at].event_id, ids[i]);
        }
    }
    collected_done(rows);
    free(rows);
}

int journal_upkeep_contract(const char *name, struct suite_start *start)
{
    const struct CMUnitTest tests[] = {
        CONTRACT(test_summary),     CONTRACT(test_restore), CONTRACT(test_restore_nothing),
        CONTRACT(test_checkpoints), CONTRACT(test_restart), CONTRACT(test_delivered_in_part),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
