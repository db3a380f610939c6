/* SPDX-License-Identifier: MIT */
/* test_merge_place.c - lines found again in another version of a text. */
#include "core/base/merge/merge_place.h"
#include "core/base/str.h"
#include "test_merge_rig.h"

#define ROUNDS 2000
#define LINES 30

static uint64_t place(const char *from, const char *to, uint64_t line)
{
    assert_int_equal(merge_place_lines(ng_str_of(from), ng_str_of(to), &line, 1), NG_OK);
    return line;
}

static void test_places(void **state)
{
    (void)state;
    assert_int_equal(place("a\nb\n", "a\nb\n", 2), 2);
    assert_int_equal(place("a\nb\n", "x\ny\na\nb\n", 2), 4);
    assert_int_equal(place("x\ny\na\nb\n", "a\nb\n", 4), 2);
    assert_int_equal(place("a\nb", "x\na\nb", 2), 3);
    assert_int_equal(place("a\nb\nc\n", "a\nB1\nB2\nc\n", 2), 2);
    assert_int_equal(place("a\nb\nc\n", "a\nB1\nB2\nc\n", 3), 4);
    assert_int_equal(place("a\nb1\nb2\nb3\nc\n", "a\nB1\nB2\nc\n", 4),
                     3);                                  /* the last of both */
    assert_int_equal(place("a\nb\nc\n", "a\nc\n", 2), 2); /* what follows it */
    assert_int_equal(place("a\nb\nc", "a", 3), 1);        /* the last one */
    assert_int_equal(place("a\n", "", 2), 1);
    assert_int_equal(place("", "a\nb\n", 1), 3);
    assert_int_equal(place("", "", 1), 1);
}

/* A random text with a few edits: a line that is there once in both is found. */
static uint64_t find_once(struct ng_str text, struct ng_str line)
{
    uint64_t found = 0;
    uint64_t number = 1;
    size_t at = 0;
    while (at <= text.len) {
        const char *end = at < text.len ? memchr(text.data + at, '\n', text.len - at) : NULL;
        size_t len = end != NULL ? (size_t)(end - text.data) - at : text.len - at;
        if (str_equal(str_make(text.data + at, len), line)) {
            if (found != 0) {
                return 0;
            }
            found = number;
        }
        number++;
        at += len + 1;
    }
    return found;
}

static void test_random_places(void **state)
{
    static struct rig_text from;
    static struct rig_text to;
    unsigned seed = rig_seed();
    unsigned checked = 0;
    unsigned found = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char mark[] = "the line\n";
        from.len = 0;
        unsigned count = rig_below(&seed, LINES) + 1;
        for (unsigned i = 0; i < count; i++) {
            static const char *const words[] = {"a\n", "b\n", "\n", "c d\n"};
            const char *word = words[rig_below(&seed, NG_COUNT(words))];
            rig_add(&from, word, strlen(word));
            if (i == count / 2) {
                rig_add(&from, mark, sizeof(mark) - 1);
            }
        }
        rig_set(&to, rig_str(&from));
        for (unsigned i = rig_below(&seed, 4); i > 0; i--) {
            rig_edit(&seed, &to);
        }
        uint64_t line = find_once(rig_str(&from), ng_str_of("the line"));
        uint64_t there = find_once(rig_str(&to), ng_str_of("the line"));
        uint64_t pieces = rig_pieces(rig_str(&to));
        assert_int_equal(merge_place_lines(rig_str(&from), rig_str(&to), &line, 1), NG_OK);
        assert_true(line >= 1 && (line <= pieces || (line == 1 && pieces == 0)));
        if (there != 0) {
            found += line == there;
            checked++;
        }
    }
    /* The comparison may match other lines if they move past this one. */
    assert_true(checked > ROUNDS / 4 && found > checked - checked / 20);
}

static void test_places_of_a_conflict(void **state)
{
    static const struct {
        const char *from, *present, *to;
        uint64_t line, there;
        const char *found;
    } rows[] = {
        {"a\nb\nc\n", "b", "a\nb\nc\n", 2, 2, "b"},
        {"a\nb\nc\n", "b", "x\na\nY\nZ\nc\n", 2, 3, "Y\nZ"},
        {"a\nb\nc\n", "b\nc", "a\nb\nc", 2, 2, "b\nc"},
        {"a\nb\nc\n", "b", "a\nc\n", 2, 2, ""},
        {"a\nc\n", "", "a\nc\n", 2, 2, ""},
        {"a\n", "a", "", 1, 1, ""},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        struct merge_conflict conflict = {0};
        merge_conflict_add(&conflict, MERGE_OVERLAP, rows[i].line, ng_str_of(rows[i].present),
                           ng_str_of("before"));
        conflict.count = 40;
        assert_int_equal(
            merge_place_conflict(ng_str_of(rows[i].from), ng_str_of(rows[i].to), &conflict),
            NG_OK);
        assert_int_equal(conflict.place_count, 1);
        assert_int_equal(conflict.count, 40);
        assert_int_equal(conflict.places[0].line, rows[i].there);
        assert_true(str_is(merge_conflict_present(&conflict, 0), rows[i].found));
        assert_true(str_is(merge_conflict_before(&conflict, 0), "before"));
        merge_conflict_done(&conflict);
    }
}

static void test_conflict_without_memory(void **state)
{
    (void)state;
    int rc = NG_EINTERNAL;
    for (long n = 0; rc != NG_OK; n++) {
        struct merge_conflict conflict = {0};
        merge_conflict_add(&conflict, MERGE_OVERLAP, 2, ng_str_of("b"), ng_str_of("c"));
        assert_true(n < 200);
        alloc_fail_after(n);
        rc = merge_place_conflict(ng_str_of("a\nb\n"), ng_str_of("x\na\nb\n"), &conflict);
        alloc_fail_after(-1);
        assert_int_equal(conflict.places[0].line, rc == NG_OK ? 3 : 2);
        merge_conflict_done(&conflict);
    }
}

static void test_without_memory(void **state)
{
    (void)state;
    int rc = NG_EINTERNAL;
    for (long n = 0; rc != NG_OK; n++) {
        uint64_t line = 2;
        assert_true(n < 200);
        alloc_fail_after(n);
        rc = merge_place_lines(ng_str_of("a\nb\n"), ng_str_of("x\na\nb\n"), &line, 1);
        alloc_fail_after(-1);
        assert_true(rc == NG_OK ? line == 3 : rc == NG_EINTERNAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_places_of_a_conflict),
        cmocka_unit_test(test_conflict_without_memory),
        cmocka_unit_test(test_random_places),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
