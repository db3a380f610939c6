/* SPDX-License-Identifier: MIT */
/* test_journal_merge.c - restoring a journal after new writes: entries of the base are
 * restored, new ones stay. */
#include "journal_contract.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/journal/journal.h"

#define TEAM "team"

struct over {
    struct harness harness;
    const struct ng_journal *journal;
    void *db;
};

static const char *const over_sets[] = {"plugins=notebook", "documents=memory", NULL};

static int setup(void **state)
{
    struct over *over = calloc(1, sizeof(*over));
    assert_non_null(over);
    harness_open(&over->harness, over_sets);
    over->journal = journal_vtable(over->harness.gateway->journal, &over->db);
    *state = over;
    return 0;
}

static int teardown(void **state)
{
    struct over *over = *state;
    harness_close(&over->harness);
    free(over);
    return 0;
}

static char *dump(struct over *over)
{
    struct call *call = harness_new_call(&over->harness);
    struct ng_str json = {NULL, 0};
    assert_int_equal(over->journal->dump(over->db, &call->pub, ng_str_of(TEAM), &json), NG_OK);
    char *copy = strndup(json.data, json.len);
    assert_non_null(copy);
    call_unref(call);
    return copy;
}

static void deliver(struct over *over, const struct ng_entry *entry)
{
    struct call *call = harness_new_call(&over->harness);
    assert_int_equal(harness_deliver(over->journal, over->db, call, entry, 1), NG_OK);
    call_unref(call);
}

static void set_summary(struct over *over, const char *text)
{
    struct call *call = harness_new_call(&over->harness);
    assert_int_equal(
        over->journal->set_summary(over->db, &call->pub, ng_str_of(TEAM), ng_str_of(text)),
        NG_OK);
    call_unref(call);
}

static void expect_summary(struct over *over, const char *want)
{
    struct call *call = harness_new_call(&over->harness);
    struct ng_str text = {NULL, 0};
    assert_int_equal(over->journal->summary(over->db, &call->pub, ng_str_of(TEAM), &text),
                     NG_OK);
    assert_str(text, want);
    call_unref(call);
}

static int restore(struct over *over, const char *json, const char *base)
{
    struct call *call = harness_new_call(&over->harness);
    int rc = over->journal->restore_over(over->db, &call->pub, ng_str_of(TEAM), ng_str_of(json),
                                         ng_str_of(base));
    call_unref(call);
    return rc;
}

/* The events of the day, newest first, parted by blanks. */
static void expect_day(struct over *over, const char *want)
{
    struct collected *rows = calloc(1, sizeof(*rows));
    struct buf ids;
    assert_non_null(rows);
    buf_init(&ids, 65536);
    journal_collect_timeline(&over->harness, TEAM, journal_day, NULL, 1000, rows);
    for (size_t i = 0; i < rows->count; i++) {
        buf_add_str(&ids, rows->entries[i].event_id);
        buf_add_char(&ids, ' ');
    }
    assert_string_equal(buf_cstr(&ids), want);
    buf_done(&ids);
    collected_done(rows);
    free(rows);
}

/* The version that the reference of a page is at; 0: there is none. */
static int find_page(void *user, const struct ng_entry *entry)
{
    uint64_t *version = user;
    *version = entry->kind == NG_ENTRY_REFERENCE ? entry->version : *version;
    return 0;
}

static void expect_page(struct over *over, uint64_t want)
{
    struct call *call = harness_new_call(&over->harness);
    const char *engine = NULL;
    uint64_t version = 0;
    struct ng_recall recall = {.size = sizeof(recall), .space = ng_str_of(TEAM), .limit = 1000};
    assert_int_equal(
        over->journal->recall(over->db, &call->pub, &recall, find_page, &version, &engine),
        NG_OK);
    assert_int_equal(version, want);
    call_unref(call);
}

static void test_nothing_new(void **state)
{
    struct over *over = *state;
    struct ng_entry first = journal_memory(TEAM, "e1", "one", 1);
    struct ng_entry second = journal_memory(TEAM, "e2", "two", 2);
    deliver(over, &first);
    set_summary(over, "then");
    char *then = dump(over);
    deliver(over, &second);
    set_summary(over, "now");
    char *base = dump(over);
    assert_int_equal(restore(over, then, base), NG_OK);
    expect_day(over, "e1 ");
    expect_summary(over, "then");
    /* Again, as after a crash behind it: what is back is not taken for new. */
    assert_int_equal(restore(over, then, base), NG_OK);
    expect_day(over, "e1 ");
    expect_summary(over, "then");
    free(then);
    free(base);
}

static void test_new_stays(void **state)
{
    struct over *over = *state;
    struct ng_entry entries[] = {
        journal_memory(TEAM, "e1", "one", 1),       journal_reference(TEAM, "e2", "p1", 1, 2),
        journal_memory(TEAM, "e3", "three", 3),     journal_reference(TEAM, "e4", "p1", 2, 4),
        journal_memory(TEAM, "e5", "came then", 5), journal_reference(TEAM, "e6", "p1", 3, 6),
    };
    deliver(over, &entries[0]);
    deliver(over, &entries[1]);
    set_summary(over, "then");
    char *then = dump(over);
    deliver(over, &entries[2]);
    deliver(over, &entries[3]);
    char *base = dump(over);
    deliver(over, &entries[4]);
    assert_int_equal(restore(over, then, base), NG_OK);
    expect_day(over, "e5 e2 e1 ");
    expect_page(over, 1);
    expect_summary(over, "then");
    /* A reference that has moved on, and another summary, stay too. */
    deliver(over, &entries[5]);
    set_summary(over, "later");
    assert_int_equal(restore(over, then, base), NG_OK);
    expect_day(over, "e6 e5 e2 e1 ");
    expect_page(over, 3);
    expect_summary(over, "later");
    free(then);
    free(base);
}

static void test_damaged(void **state)
{
    struct over *over = *state;
    struct ng_entry first = journal_memory(TEAM, "e1", "one", 1);
    char *base = dump(over);
    deliver(over, &first);
    static const char *const bad[] = {
        "",
        "not JSON",
        "{}",
        "{\"format\":\"notegate-journal-1\",\"days\":[]}",
        "{\"format\":\"x\",\"days\":[],\"references\":[],\"memories\":[],\"summary\":null}",
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_int_equal(restore(over, bad[i], base), NG_EINVAL);
        expect_day(over, "e1 ");
    }
    assert_int_equal(restore(over, base, "not JSON"), NG_EINVAL);
    expect_day(over, "e1 ");
    /* The fault is told as the parser found it. */
    struct call *call = harness_new_call(&over->harness);
    assert_int_equal(over->journal->restore_over(over->db, &call->pub, ng_str_of(TEAM),
                                                 ng_str_of("{\"a\":1,\"a\":2}"),
                                                 ng_str_of(base)),
                     NG_EINVAL);
    assert_non_null(strstr(call->staged.message.data, "it is not JSON: member \"a\""));
    call_unref(call);
    free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_new, setup, teardown),
        cmocka_unit_test_setup_teardown(test_new_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
