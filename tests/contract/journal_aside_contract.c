/* SPDX-License-Identifier: MIT */
/* journal_aside_contract.c - the part of the journals' suite about what lies beside the
 * journal: restores that keep the old state unread, deleted checkpoints, entries that are too
 * old. */
#include "journal_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

static int restore_aside(struct suite *suite, const char *id, const char *json)
{
    struct call *call = harness_new_call(&suite->harness);
    int rc = suite->journal->restore_aside(suite->db, &call->pub, ng_str_of("team"),
                                           ng_str_of(id), ng_str_of(json));
    call_unref(call);
    return rc;
}

static int bring_back(struct suite *suite, const char *keep, const char *id)
{
    char json[200];
    (void)snprintf(json, sizeof(json), "{\"format\":\"notegate-journal-kept-1\",\"id\":\"%s\"}",
                   id);
    return restore_aside(suite, keep, json);
}

static int remove_checkpoint(struct suite *suite, const char *id)
{
    struct call *call = harness_new_call(&suite->harness);
    int rc = suite->journal->checkpoint_delete(suite->db, &call->pub, ng_str_of("team"),
                                               ng_str_of(id));
    call_unref(call);
    return rc;
}

static void put_checkpoint(struct suite *suite, const char *id)
{
    struct call *call = harness_new_call(&suite->harness);
    assert_int_equal(suite->journal->checkpoint_put(suite->db, &call->pub, ng_str_of("team"),
                                                    ng_str_of(id),
                                                    ng_str_of("{\"label\":\"one\"}")),
                     NG_OK);
    call_unref(call);
}

static char *dump(struct suite *suite)
{
    struct call *call = harness_new_call(&suite->harness);
    struct ng_str json = {NULL, 0};
    assert_int_equal(suite->journal->dump(suite->db, &call->pub, ng_str_of("team"), &json),
                     NG_OK);
    char *copy = strndup(json.data, json.len);
    assert_non_null(copy);
    call_unref(call);
    return copy;
}

static void expect_dump(struct suite *suite, const char *want)
{
    char *now = dump(suite);
    assert_string_equal(now, want);
    free(now);
}

static void set_summary(struct suite *suite, const char *text)
{
    struct call *call = harness_new_call(&suite->harness);
    assert_int_equal(
        suite->journal->set_summary(suite->db, &call->pub, ng_str_of("team"), ng_str_of(text)),
        NG_OK);
    call_unref(call);
}

static size_t recalled(struct suite *suite, const char *text)
{
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_recall recall = {
        .space = ng_str_of("team"), .text = ng_str_of(text), .limit = 500};
    suite_recall(suite, &recall, rows);
    size_t count = rows->count;
    collected_done(rows);
    free(rows);
    return count;
}

/* ---- restores that keep the old state ---- */

#define ASIDE_ENTRIES 100

static void test_aside(void **state)
{
    struct suite *suite = *state;
    struct ng_entry entries[ASIDE_ENTRIES];
    char ids[ASIDE_ENTRIES][16];
    struct ng_entry early[] = {
        journal_memory("team", "early", "the bridge", 1),
        journal_reference("team", "early2", "p1", 1, 2),
    };
    assert_int_equal(suite_deliver(suite, early, NG_COUNT(early)), NG_OK);
    set_summary(suite, "as it was");
    char *first = dump(suite);
    for (size_t i = 0; i < ASIDE_ENTRIES; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "e%zu", i);
        entries[i] = i % 2 == 0
                         ? journal_memory("team", ids[i], "runaway", (int64_t)i + 10)
                         : journal_reference("team", ids[i], "p1", i + 1, (int64_t)i + 10);
    }
    assert_int_equal(suite_deliver(suite, entries, ASIDE_ENTRIES), NG_OK);
    set_summary(suite, "gone wild");
    char *wild = dump(suite);

    /* A text that is no dump, and a state that is not kept, change nothing. */
    assert_int_equal(restore_aside(suite, "a0", "{\"days\":[]}"), NG_EINVAL);
    assert_int_equal(bring_back(suite, "a0", "never"), NG_ENOTFOUND);
    expect_dump(suite, wild);
    assert_int_equal(restore_aside(suite, "a1", first), NG_OK);
    expect_dump(suite, first);
    assert_int_equal(recalled(suite, "runaway"), 0);
    assert_int_equal(recalled(suite, "bridge"), 1);

    /* Once more is harmless, also when something came in between. */
    struct ng_entry after = journal_memory("team", "after", "a quiet day", 500);
    assert_int_equal(suite_deliver(suite, &after, 1), NG_OK);
    char *quiet = dump(suite);
    assert_int_equal(restore_aside(suite, "a1", first), NG_OK);
    expect_dump(suite, quiet);
    /* Events that were delivered before do not come again by themselves. */
    harness_reopen(&suite->harness);
    suite_find(suite);
    expect_dump(suite, quiet);

    /* Back, as often as one likes. */
    assert_int_equal(bring_back(suite, "a2", "a1"), NG_OK);
    expect_dump(suite, wild);
    assert_int_equal(recalled(suite, "runaway"), ASIDE_ENTRIES / 2);
    assert_int_equal(bring_back(suite, "a3", "a2"), NG_OK);
    expect_dump(suite, quiet);
    assert_int_equal(bring_back(suite, "a4", "a1"), NG_OK);
    expect_dump(suite, wild);
    free(first);
    free(wild);
    free(quiet);
}

/* ---- checkpoints that go ---- */

static void test_checkpoint_delete(void **state)
{
    struct suite *suite = *state;
    struct call *call = harness_new_call(&suite->harness);
    struct ng_entry entry = journal_memory("team", "e1", "the bridge", 1);
    char *empty = dump(suite);
    struct ng_str got = {NULL, 0};
    assert_int_equal(suite_deliver(suite, &entry, 1), NG_OK);
    put_checkpoint(suite, "c1");
    put_checkpoint(suite, "c2");
    assert_int_equal(remove_checkpoint(suite, "never"), NG_ENOTFOUND);
    assert_int_equal(remove_checkpoint(suite, "c1"), NG_OK);
    assert_int_equal(remove_checkpoint(suite, "c1"), NG_ENOTFOUND);
    assert_int_equal(suite->journal->checkpoint_get(suite->db, &call->pub, ng_str_of("team"),
                                                    ng_str_of("c1"), &got),
                     NG_ENOTFOUND);
    assert_int_equal(suite->journal->checkpoint_get(suite->db, &call->pub, ng_str_of("team"),
                                                    ng_str_of("c2"), &got),
                     NG_OK);

    /* Deleting one removes the state under its id, and nothing else. */
    char *full = dump(suite);
    put_checkpoint(suite, "c3");
    assert_int_equal(restore_aside(suite, "c3", empty), NG_OK);
    put_checkpoint(suite, "c4");
    assert_int_equal(restore_aside(suite, "c4", full), NG_OK);
    assert_int_equal(remove_checkpoint(suite, "c4"), NG_OK);
    assert_int_equal(bring_back(suite, "c5", "c4"), NG_ENOTFOUND);
    expect_dump(suite, full);
    assert_int_equal(restore_aside(suite, "c5", empty), NG_OK);
    assert_int_equal(bring_back(suite, "c6", "c3"), NG_OK);
    expect_dump(suite, full);
    free(empty);
    free(full);
    call_unref(call);
}

/* ---- entries that are too old ---- */

static void test_trim(void **state)
{
    struct suite *suite = *state;
    const int64_t day = 24 * 60 * 60;
    struct collected *rows = calloc(1, sizeof(*rows));
    assert_non_null(rows);
    struct ng_entry entries[] = {
        journal_memory("team", "old", "an old one", 1),
        journal_reference("team", "old2", "p1", 1, 2),
        journal_memory("other", "old3", "of another space", 3),
        journal_memory("team", "new", "a new one", day + 1),
        journal_reference("team", "new2", "p2", 1, day + 2),
    };
    for (size_t i = 0; i < NG_COUNT(entries); i++) {
        assert_int_equal(suite_deliver(suite, &entries[i], 1), NG_OK);
    }
    set_summary(suite, "stays");
    char *all = dump(suite);
    assert_int_equal(restore_aside(suite, "a1", all), NG_OK);
    struct call *call = harness_new_call(&suite->harness);
    assert_int_equal(suite->journal->trim(suite->db, &call->pub, ng_str_of("team"),
                                          entries[3].time_ms - 500),
                     NG_OK);
    call_unref(call);
    journal_collect_timeline(&suite->harness, "team", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 0);
    collected_done(rows);
    journal_collect_timeline(&suite->harness, "team", "2024-05-18", NULL, 0, rows);
    assert_int_equal(rows->count, 2);
    collected_done(rows);
    journal_collect_timeline(&suite->harness, "other", journal_day, NULL, 0, rows);
    assert_int_equal(rows->count, 1);
    collected_done(rows);
    assert_int_equal(recalled(suite, ""), 2);
    char *trimmed = dump(suite);
    assert_non_null(strstr(trimmed, "\"summary\":\"stays\""));
    free(trimmed);
    /* The kept state is complete. */
    assert_int_equal(bring_back(suite, "a2", "a1"), NG_OK);
    expect_dump(suite, all);
    free(all);
    free(rows);
}

/* ---- more than a checkpoint holds ---- */

#define LARGE_BYTES ((size_t)500 * 1024)
#define LARGE_ENTRIES 150

static void test_too_large_to_dump(void **state)
{
    struct suite *suite = *state;
    char *empty = dump(suite);
    char *content = malloc(LARGE_BYTES + 1);
    assert_non_null(content);
    memset(content, 'x', LARGE_BYTES);
    content[LARGE_BYTES] = '\0';
    char id[16];
    for (int64_t i = 0; i < LARGE_ENTRIES; i++) {
        (void)snprintf(id, sizeof(id), "e%d", (int)i);
        struct ng_entry entry = journal_memory("team", id, content, i);
        assert_int_equal(suite_deliver(suite, &entry, 1), NG_OK);
    }
    struct call *call = harness_new_call(&suite->harness);
    struct ng_str json = {NULL, 0};
    assert_int_equal(suite->journal->dump(suite->db, &call->pub, ng_str_of("team"), &json),
                     NG_ETOOLARGE);
    assert_non_null(
        memmem(call->staged.message.data, call->staged.message.len, "journal.keep", 12));
    call_unref(call);
    assert_int_equal(restore_aside(suite, "a1", empty), NG_OK);
    expect_dump(suite, empty);
    assert_int_equal(bring_back(suite, "a2", "a1"), NG_OK);
    assert_int_equal(recalled(suite, ""), LARGE_ENTRIES);
    free(content);
    free(empty);
}

/* ---- the rest of a day ---- */

static int count_row(void *user, const struct ng_entry *entry)
{
    struct buf *ids = user;
    buf_add_str(ids, entry->event_id);
    buf_add_char(ids, ' ');
    return 0;
}

static void test_offset(void **state)
{
    struct suite *suite = *state;
    struct call *call = harness_new_call(&suite->harness);
    struct ng_entry entries[] = {
        journal_memory("team", "e1", "one", 1),
        journal_memory("team", "e2", "two", 2),
        journal_memory("team", "e3", "three", 3),
    };
    struct buf ids;
    buf_init(&ids, 4096);
    assert_int_equal(suite_deliver(suite, entries, NG_COUNT(entries)), NG_OK);
    struct ng_timeline timeline = {
        .size = sizeof(timeline),
        .space = ng_str_of("team"),
        .date = ng_str_of(journal_day),
        .limit = 2,
        .offset = 1,
    };
    assert_int_equal(
        suite->journal->timeline(suite->db, &call->pub, &timeline, count_row, &ids), NG_OK);
    assert_string_equal(buf_cstr(&ids), "e2 e1 ");
    buf_done(&ids);
    call_unref(call);
}

int journal_aside_contract(const char *name, struct suite_start *start)
{
    const struct CMUnitTest tests[] = {
        CONTRACT(test_aside),  CONTRACT(test_checkpoint_delete),
        CONTRACT(test_trim),   CONTRACT(test_too_large_to_dump),
        CONTRACT(test_offset),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
