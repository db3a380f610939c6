/* SPDX-License-Identifier: MIT */
/* test_journal_entry.c - entries of events whose data are wrong, too long, or more than the
 * memory holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buf.h"
#include "core/base/str.h"
#include "core/journal/journal_entry.h"

#define TEXT(text) ((struct ng_str){(text), sizeof(text) - 1})
#define GOOD                                                                                   \
    "{\"title\":\"A paper\",\"summary\":\"About things\",\"tags\":[\"x\",\"y\"],\"more\":[1]}"

static struct ng_event event_of(struct ng_str data)
{
    return (struct ng_event){
        .size = sizeof(struct ng_event),
        .seq = 7,
        .time_ms = 1000,
        .key = {TEXT("papers"), TEXT("team"), TEXT("p1")},
        .revision = 2,
        .agent = TEXT("ann"),
        .action = TEXT("updated"),
        .data = data,
    };
}

static void expect(struct ng_str text, const char *want)
{
    if (!str_is(text, want)) {
        fail_msg("'%.*s' is not '%s'", (int)text.len, text.data, want);
    }
}

static void expect_head(const struct ng_entry *entry)
{
    expect(entry->event_id, "1000-7");
    expect(entry->space, "team");
    expect(entry->agent, "ann");
    expect(entry->action, "updated");
    expect(entry->collection, "papers");
    expect(entry->id, "p1");
    assert_int_equal(entry->version, 2);
}

static void expect_good(const struct ng_entry *entry)
{
    expect_head(entry);
    expect(entry->title, "A paper");
    expect(entry->content, "About things");
    expect(entry->data, "{\"more\":[1]}");
    assert_int_equal(entry->tag_count, 2);
    expect(entry->tags[1], "y");
}

static void test_not_an_object(void **state)
{
    static const char *const wrong[] = {"{\"title\":", "[1]", "\"text\"", "nothing", ""};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(wrong); i++) {
        struct arena arena;
        struct ng_entry entry;
        struct ng_event event = event_of(ng_str_of(wrong[i]));
        arena_init(&arena, 0);
        assert_int_equal(journal_entry_of_event(&arena, &event, &entry), NG_OK);
        expect_head(&entry);
        assert_null(entry.title.data);
        arena_done(&arena);
    }
}

/* The entry is stored without what is too long. */
static void test_much_data(void **state)
{
    struct arena arena;
    struct ng_entry entry;
    struct buf data;
    (void)state;
    buf_init(&data, 8 * 1024 * 1024);
    buf_add_c(&data, "{\"title\":\"A paper\",\"more\":\"");
    for (size_t i = 0; i < (size_t)1024 * 1024; i++) {
        buf_add_char(&data, 'x');
    }
    buf_add_c(&data, "\"}");
    assert_int_equal(data.rc, NG_OK);
    struct ng_event event = event_of(buf_str(&data));
    arena_init(&arena, 0);
    assert_int_equal(journal_entry_of_event(&arena, &event, &entry), NG_OK);
    expect_head(&entry);
    expect(entry.title, "A paper");
    assert_null(entry.data.data);
    /* Nor does the arena keep what was read. */
    assert_true(arena.used < (size_t)64 * 1024);
    arena_done(&arena);
    buf_done(&data);
}

/* Whichever allocation fails: it is said, and no part of the entry is missing in silence. */
static void test_out_of_memory(void **state)
{
    struct ng_event event = event_of(ng_str_of(GOOD));
    int rc = NG_EINTERNAL;
    long failed = -1;
    (void)state;
    while (rc != NG_OK) {
        struct arena arena;
        struct ng_entry entry;
        arena_init(&arena, 0);
        alloc_fail_after(++failed);
        rc = journal_entry_of_event(&arena, &event, &entry);
        alloc_fail_after(-1);
        if (rc == NG_OK) {
            expect_good(&entry);
        } else {
            assert_int_equal(rc, NG_EINTERNAL);
        }
        arena_done(&arena);
    }
    assert_true(failed >= 3);
}

/* Of the arena of the entries: what it was given must not be larger. */
static void test_full_arena(void **state)
{
    struct ng_event event = event_of(ng_str_of(GOOD));
    (void)state;
    for (size_t max = 1;; max++) {
        struct arena arena;
        struct ng_entry entry;
        arena_init(&arena, max);
        int rc = journal_entry_of_event(&arena, &event, &entry);
        if (rc == NG_OK) {
            expect_good(&entry);
            arena_done(&arena);
            break;
        }
        assert_int_equal(rc, NG_EINTERNAL);
        arena_done(&arena);
        assert_true(max < 65536);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_an_object),
        cmocka_unit_test(test_much_data),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_full_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
