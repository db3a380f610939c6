/* SPDX-License-Identifier: MIT */
/* test_merge_blame.c - the revision that put in each line. */
#include "core/base/merge/blame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/base/text/diff.h"
#include "core/base/utf8.h"
#include "test_merge_rig.h"

#define REVISIONS_MAX 40
#define LINES_MAX 4096
#define ROUNDS 400
#define UTF8_ROUNDS 5000

/* Revisions 1 to `count`; with a line feed behind the last line for the comparison. */
struct history {
    struct rig_text texts[REVISIONS_MAX];
    size_t count;
};

struct revisions {
    uint64_t items[LINES_MAX];
    size_t count;
};

static struct ng_str text_of(const struct history *history, uint64_t revision)
{
    return rig_str(&history->texts[revision - 1]);
}

/* ---- four ways to get a result ---- */

static void take_result(const struct blame *blame, struct revisions *ret)
{
    uint64_t *revisions = NULL;
    assert_int_equal(blame_result(blame, &revisions, &ret->count), NG_OK);
    assert_true(ret->count <= LINES_MAX);
    memcpy(ret->items, revisions, ret->count * sizeof(ret->items[0]));
    free(revisions);
}

static void blame_onward(const struct history *history, struct revisions *ret)
{
    struct blame *blame = NULL;
    struct ng_splice splice;
    assert_int_equal(blame_new(BLAME_FORWARD, text_of(history, 1), 1, &blame), NG_OK);
    for (uint64_t revision = 2; revision <= history->count; revision++) {
        rig_splice(text_of(history, revision - 1), text_of(history, revision), &splice);
        assert_int_equal(blame_step(blame, revision, &splice), NG_OK);
    }
    assert_true(blame_exact(blame));
    take_result(blame, ret);
    blame_free(blame);
}

/* Another splice that makes the same text: it has bytes beside it that stay, and of equal ones
 * others than the last came or went. */
static void splice_disguise(unsigned *seed, struct ng_str old, struct ng_str new,
                            struct ng_splice *splice)
{
    size_t at = (size_t)splice->at;
    size_t removed = (size_t)splice->removed;
    size_t in = splice->inserted.len;
    size_t slide = rig_below(seed, 2) * RIG_TEXT_MAX;
    while (slide > 0 && at > 0 && (removed == 0 || in == 0) &&
           (removed == 0 || old.data[at - 1] == old.data[at + removed - 1]) &&
           (in == 0 || new.data[at - 1] == new.data[at + in - 1])) {
        at--;
        slide--;
    }
    for (size_t more = rig_below(seed, 3) * rig_below(seed, 9); more > 0 && at > 0; more--) {
        at--;
        removed++;
        in++;
    }
    for (size_t more = rig_below(seed, 3) * rig_below(seed, 9);
         more > 0 && at + removed < old.len; more--) {
        removed++;
        in++;
    }
    *splice = (struct ng_splice){at, removed, str_make(new.data + at, in)};
}

static void blame_disguised(unsigned *seed, const struct history *history,
                            struct revisions *ret)
{
    struct blame *blame = NULL;
    struct ng_splice splice;
    assert_int_equal(blame_new(BLAME_FORWARD, text_of(history, 1), 1, &blame), NG_OK);
    for (uint64_t revision = 2; revision <= history->count; revision++) {
        struct ng_str old = text_of(history, revision - 1);
        struct ng_str new = text_of(history, revision);
        rig_splice(old, new, &splice);
        splice_disguise(seed, old, new, &splice);
        assert_int_equal(blame_step(blame, revision, &splice), NG_OK);
    }
    take_result(blame, ret);
    blame_free(blame);
}

struct walk {
    const struct history *history;
    uint64_t next; /* the next revision that is handed out; 0: none */
    unsigned asked;
};

static int older(void *user, uint64_t *ret_revision, struct ng_str *ret_text)
{
    struct walk *walk = user;
    walk->asked++;
    if (walk->next == 0) {
        return NG_ENOTFOUND;
    }
    *ret_revision = walk->next;
    *ret_text = text_of(walk->history, walk->next--);
    return NG_OK;
}

/* Returns how many older texts it has looked at. */
static unsigned blame_back(const struct history *history, struct revisions *ret)
{
    struct walk walk = {history, history->count - 1, 0};
    struct blame *blame = NULL;
    assert_int_equal(
        blame_new(BLAME_BACKWARD, text_of(history, history->count), history->count, &blame),
        NG_OK);
    assert_int_equal(blame_walk(blame, older, &walk), NG_OK);
    take_result(blame, ret);
    blame_free(blame);
    return walk.asked;
}

/* By comparing whole texts. */
static void blame_plainly(const struct history *history, struct revisions *ret)
{
    static struct rig_text old, new;
    static struct revisions was;
    ret->count = rig_pieces(text_of(history, 1));
    for (size_t i = 0; i < ret->count; i++) {
        ret->items[i] = 1;
    }
    for (uint64_t revision = 2; revision <= history->count; revision++) {
        struct diff diff;
        size_t i = 0;
        was = *ret;
        rig_set(&old, text_of(history, revision - 1));
        rig_set(&new, text_of(history, revision));
        rig_add(&old, "\n", old.len > 0);
        rig_add(&new, "\n", new.len > 0);
        assert_int_equal(diff_lines(rig_str(&old), rig_str(&new), &diff), NG_OK);
        ret->count = diff.new_count;
        for (size_t j = 0; j < diff.new_count; j++) {
            ret->items[j] = revision;
            if (diff.come[j] == 0) {
                while (diff.gone[i] != 0) {
                    i++;
                }
                ret->items[j] = was.items[i++];
            }
        }
        diff_done(&diff);
    }
}

static void expect_same(const struct revisions *got, const struct revisions *want)
{
    assert_int_equal(got->count, want->count);
    for (size_t i = 0; i < got->count; i++) {
        assert_true(got->items[i] == want->items[i]);
    }
}

/* ---- by hand ---- */

static void test_histories(void **state)
{
    static const struct {
        const char *texts[6];
        const char *want; /* a digit for each line */
        unsigned asked;   /* older texts that are needed */
    } rows[] = {
        {{"a\nb"}, "11", 1},
        {{""}, "", 0},
        {{"", "a"}, "2", 1},
        {{"", "a\n"}, "22", 1},
        {{"a", ""}, "", 0},
        {{"a\n", "", "a\n"}, "33", 1},
        {{"a\nb\n", "a\nb\nc\n"}, "1121", 2},
        {{"a\nb", "a\nb\nc", "a\nB\nc"}, "132", 3},
        {{"a\nb\nc\n", "A\nb\nC\n"}, "2121", 2},
        {{"a\nb\nc\n", "c\n", "a\nb\nc\n"}, "3311", 3},
        {{"a b\n", "a\nb\n"}, "221", 2},
        {{"a\nb\n", "a b\n"}, "21", 2},
        {{"a\r\n", "a\n"}, "21", 2},
        {{"a", "b", "c", "d"}, "4", 1},
        {{"a", "a\nb", "a\nb\nc", "a\nx\nb\nc"}, "1423", 4},
    };
    static struct history history;
    static struct revisions got;
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        char text[16] = "";
        history.count = 0;
        for (size_t k = 0; k < 6 && rows[i].texts[k] != NULL; k++) {
            rig_set(&history.texts[history.count++], ng_str_of(rows[i].texts[k]));
        }
        for (int way = 0; way < 2; way++) {
            if (way == 0) {
                blame_onward(&history, &got);
            } else {
                assert_int_equal(blame_back(&history, &got), rows[i].asked);
            }
            for (size_t line = 0; line < got.count; line++) {
                text[line] = (char)('0' + (int)got.items[line]);
            }
            text[got.count] = '\0';
            assert_string_equal(text, rows[i].want);
        }
    }
}

static void test_steps_that_are_refused(void **state)
{
    static const struct ng_splice splices[] = {
        {4, 0, {"", 0}}, {0, 4, {"", 0}}, {2, 2, {"", 0}}, {1, UINT64_MAX, {"", 0}}};
    struct blame *blame = NULL;
    struct revisions got;
    char *data = calloc(BLAME_TEXT_MAX + 1, 1);
    struct ng_splice large = {1, 1, {data, BLAME_TEXT_MAX - 1}};
    (void)state;
    assert_non_null(data);
    assert_int_equal(blame_new(BLAME_FORWARD, str_make(data, BLAME_TEXT_MAX + 1), 1, &blame),
                     NG_ETOOLARGE);
    assert_int_equal(blame_new(BLAME_FORWARD, ng_str_of("abc"), 1, &blame), NG_OK);
    for (size_t i = 0; i < NG_COUNT(splices); i++) {
        assert_int_equal(blame_step(blame, 2, &splices[i]), NG_EINVAL);
    }
    assert_int_equal(blame_step(blame, 2, &large), NG_ETOOLARGE);
    take_result(blame, &got);
    assert_int_equal(got.count, 1);
    assert_true(got.items[0] == 1);
    large.inserted.len--;
    assert_int_equal(blame_step(blame, 2, &large), NG_OK);
    take_result(blame, &got);
    assert_true(got.items[0] == 2);
    blame_free(blame);
    blame_free(NULL);
    free(data);
}

/* Beyond the steps that are allowed, lines count as new: later than they are, never older. */
static void test_work_has_a_bound(void **state)
{
    enum { LINES = 30000, TURNS = 60 };
    struct blame *blame = NULL;
    uint64_t *got = NULL;
    size_t count = 0;
    unsigned seed = 9;
    char *texts[2];
    size_t lens[2] = {0, 0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        texts[i] = malloc((size_t)LINES * 8);
        assert_non_null(texts[i]);
        for (int line = 0; line < LINES; line++) {
            lens[i] +=
                (size_t)sprintf(texts[i] + lens[i], "%u\n", (unsigned)rand_r(&seed) % 5000);
        }
    }
    assert_int_equal(blame_new(BLAME_FORWARD, str_make(texts[0], lens[0]), 1, &blame), NG_OK);
    for (uint64_t revision = 2; revision < TURNS; revision++) {
        size_t which = revision % 2 == 0;
        assert_int_equal(blame_step_text(blame, revision, str_make(texts[which], lens[which])),
                         NG_OK);
    }
    assert_false(blame_exact(blame));
    assert_int_equal(blame_result(blame, &got, &count), NG_OK);
    assert_int_equal(count, LINES + 1);
    assert_true(got[LINES / 2] == TURNS - 1);
    free(got);
    blame_free(blame);
    free(texts[0]);
    free(texts[1]);
}

static void test_without_memory(void **state)
{
    static const struct ng_splice splices[] = {
        {2, 0, {"b\nx", 3}}, {3, 0, {"c", 1}}, {0, 3, {"", 0}}, {0, 0, {"cbc\nc", 5}}};
    (void)state;
    for (int way = BLAME_FORWARD; way <= BLAME_BACKWARD; way++) {
        int rc = NG_EINTERNAL;
        for (long n = 0; rc != NG_OK; n++) {
            struct blame *blame = NULL;
            uint64_t *got = NULL;
            size_t count = 0;
            assert_true(n < 200);
            alloc_fail_after(n);
            rc = blame_new((enum blame_way)way, ng_str_of("a\nb\n"), 1, &blame);
            for (size_t i = 0; rc == NG_OK && i < NG_COUNT(splices); i++) {
                rc = blame_step(blame, i + 2, &splices[i]);
            }
            if (rc == NG_OK) {
                rc = blame_result(blame, &got, &count);
            }
            alloc_fail_after(-1);
            assert_true(rc == NG_OK || rc == NG_EINTERNAL);
            assert_true(rc != NG_OK || n > 20);
            free(got);
            blame_free(blame);
        }
    }
}

/* ---- at random ---- */

/* A text and the next one are made of whole and of cut characters. */
static void test_utf8_is_checked_at_the_splice(void **state)
{
    static const char *const pieces[] = {
        "a",    "\n",   "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf0\x9f\x99",
        "\x80", "\xc3", "\xe2\x82"};
    unsigned seed = rig_seed();
    int valid = 0;
    (void)state;
    for (int round = 0; round < UTF8_ROUNDS; round++) {
        static struct rig_text old, in, new;
        struct blame *blame = NULL;
        old.len = in.len = new.len = 0;
        for (unsigned left = rig_below(&seed, 8); left > 0; left--) {
            const char *piece = pieces[rig_below(&seed, 5)];
            rig_add(&old, piece, strlen(piece));
        }
        for (unsigned left = rig_below(&seed, 4); left > 0; left--) {
            const char *piece = pieces[rig_below(&seed, (unsigned)NG_COUNT(pieces))];
            rig_add(&in, piece, strlen(piece));
        }
        size_t at = rig_below(&seed, (unsigned)old.len + 1);
        size_t removed = rig_below(&seed, (unsigned)(old.len - at) + 1);
        rig_add(&new, old.data, at);
        rig_add(&new, in.data, in.len);
        rig_add(&new, old.data + at + removed, old.len - at - removed);
        bool want = utf8_valid(rig_str(&new));
        struct ng_splice splice = {at, removed, rig_str(&in)};
        assert_int_equal(blame_new(BLAME_FORWARD, rig_str(&old), 1, &blame), NG_OK);
        assert_int_equal(blame_check_utf8(blame, &splice), want ? NG_OK : NG_EINVAL);
        splice = blame_splice_to(blame, rig_str(&new));
        assert_int_equal(blame_check_utf8(blame, &splice), want ? NG_OK : NG_EINVAL);
        splice.at = old.len + 1;
        assert_int_equal(blame_check_utf8(blame, &splice), NG_EINVAL);
        valid += want;
        blame_free(blame);
    }
    assert_true(valid > UTF8_ROUNDS / 5 && valid < UTF8_ROUNDS * 4 / 5);
    struct blame *blame = NULL;
    struct ng_splice cut = {1, 1, {"\xa8", 1}};
    assert_int_equal(blame_new(BLAME_FORWARD, ng_str_of("\xc3\xa9"), 1, &blame), NG_OK);
    alloc_fail_after(0);
    assert_int_equal(blame_check_utf8(blame, &cut), NG_EINTERNAL);
    alloc_fail_after(-1);
    assert_int_equal(blame_check_utf8(blame, &cut), NG_OK);
    blame_free(blame);
}

static void test_random_histories(void **state)
{
    static struct history history;
    static struct revisions want, got;
    unsigned seed = rig_seed();
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned lines = round % 20 == 0 ? 3000 : 25;
        rig_random(&seed, &history.texts[0], lines);
        history.count = 1 + rig_below(&seed, REVISIONS_MAX);
        for (size_t i = 1; i < history.count; i++) {
            rig_set(&history.texts[i], rig_str(&history.texts[i - 1]));
            for (unsigned edits = rig_below(&seed, 3); edits > 0; edits--) {
                rig_edit(&seed, &history.texts[i]);
            }
        }
        blame_plainly(&history, &want);
        blame_onward(&history, &got);
        expect_same(&got, &want);
        blame_disguised(&seed, &history, &got);
        expect_same(&got, &want);
        (void)blame_back(&history, &got);
        expect_same(&got, &want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histories),
        cmocka_unit_test(test_steps_that_are_refused),
        cmocka_unit_test(test_work_has_a_bound),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_random_histories),
        cmocka_unit_test(test_utf8_is_checked_at_the_splice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
