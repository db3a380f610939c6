/* SPDX-License-Identifier: MIT */
/* test_merge_texts.c - three-way merge of texts by lines, and of whole values. */
#include "core/base/merge/merge3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "test_merge_rig.h"

#define ROUNDS 3000
#define GIT_ROUNDS 150
#define LINES_MAX 4096

static struct ng_str str(const char *text)
{
    return ng_str_of(text);
}

/* ---- by hand ---- */

struct row {
    const char *base, *present, *before;
    const char *merged; /* or conflicts: "!LINE|PRESENT|BEFORE" each */
};

/* As struct row has it. */
static void print_merge(const struct merge3 *merge, struct rig_text *ret)
{
    char line[32];
    ret->len = 0;
    if (merge->conflict_count == 0) {
        rig_add(ret, merge->text.data, merge->text.len);
    }
    for (uint64_t i = 0; i < merge->conflict_count && i < MERGE3_CONFLICTS_MAX; i++) {
        const struct merge3_conflict *conflict = &merge->conflicts[i];
        int len = snprintf(line, sizeof(line), "!%llu|", (unsigned long long)conflict->line);
        rig_add(ret, line, (size_t)len);
        rig_add(ret, conflict->present.data, conflict->present.len);
        rig_add(ret, "|", 1);
        rig_add(ret, conflict->before.data, conflict->before.len);
    }
    ret->data[ret->len] = '\0';
}

static void expect_rows(const struct row *rows, size_t count)
{
    static struct rig_text got;
    struct merge3 merge;
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        assert_int_equal(
            merge3_texts(str(row->base), str(row->present), str(row->before), &merge), NG_OK);
        print_merge(&merge, &got);
        assert_string_equal(got.data, row->merged);
        assert_false(merge.coarse);
        merge3_done(&merge);
    }
}

static void test_whole_texts(void **state)
{
    static const struct row rows[] = {
        {"a\n", "a\n", "b", "b"}, {"a\n", "b", "a\n", "b"}, {"a\n", "b", "b", "b"},
        {"", "", "", ""},         {"", "", "x", "x"},       {"x", "x", "", ""},
    };
    (void)state;
    expect_rows(rows, NG_COUNT(rows));
}

static void test_hunks(void **state)
{
    static const struct row rows[] = {
        /* apart */
        {"a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"},
        {"a\nb\nc\nd\n", "b\nc\nd\n", "a\nb\nc\n", "b\nc\n"},
        /* they touch */
        {"a\nb\n", "A\nb\n", "a\nB\n", "A\nB\n"},
        {"a\nb\n", "a\nB\n", "A\nb\n", "A\nB\n"},
        {"a\nb\nc\n", "a\nx\nb\nc\n", "a\nB\nc\n", "a\nx\nB\nc\n"},
        {"a\nb\nc\n", "a\nb\nx\nc\n", "a\nB\nc\n", "a\nB\nx\nc\n"},
        {"a\nb\nc\n", "a\nB\nc\n", "a\nx\nb\nc\n", "a\nx\nB\nc\n"},
        {"a\nb\nc\n", "a\nB\nc\n", "a\nb\nx\nc\n", "a\nB\nx\nc\n"},
        {"a\nb\nc\n", "a\nx\nb\nc\n", "a\nc\n", "a\nx\nc\n"},
        {"a\nb\nc\nd\n", "a\nd\n", "a\nx\nb\nc\ny\nd\n", "a\nx\ny\nd\n"},
        {"a\nb\nc\n", "a\nx\nb\nc\n", "A\ny\nb\nc\n", "A\ny\nx\nb\nc\n"},
        /* equal */
        {"a\nb\nc", "X\nb\nC", "X\nb\nc", "X\nb\nC"},
        {"a\nb\nc\nd\n", "a\nb\nx\nc\nD\n", "A\nb\nx\nc\nd\n", "A\nb\nx\nc\nD\n"},
        {"a\nb\nc\nd\n", "a\nd\n", "a\nd\ne\n", "a\nd\ne\n"},
        /* the same lines */
        {"a\n", "b\n", "c\n", "!1|b|c"},
        {"a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n", "!2|x|y"},
        {"a\nb\nc\nd\n", "a\nd\n", "a\nc\nd\n", "!2||c"},
        {"a\nb\nc\nd\n", "a\nX\nd\n", "a\nY\nc\nd\n", "!2|X|Y\nc"},
        {"a\nb\nc\nd\ne\n", "a\nB\nc\nD\ne\n", "a\nb\nX\nd\ne\n", "a\nB\nX\nD\ne\n"},
        {"a\nb\nc\nd\ne\n", "a\nB\nc\nD\ne\n", "a\nX\nY\nZ\ne\n", "!2|B\nc\nD|X\nY\nZ"},
        {"1\n2\n3\n", "one\n2\nthree\n", "eins\n2\ndrei\n", "!1|one|eins!3|three|drei"},
        /* inside, and at one place */
        {"a\nb\nc\nd\n", "a\nb\nx\nc\nd\n", "a\nd\n", "!2|b\nx\nc|"},
        {"a\nb\nc\nd\n", "a\nd\n", "a\nb\nx\nc\nd\n", "!2||b\nx\nc"},
        {"a\nb\n", "a\nx\nb\n", "a\ny\nb\n", "!2|x|y"},
        {"a\nb\n", "a\nx\nb\n", "a\nx\nb\n", "a\nx\nb\n"},
        {"", "x", "y", "!1|x|y"},
        /* the line of a conflict is one that present has */
        {"a\nb", "a", "a\nB", "!1||B"},
        {"a", "", "b", "!1||b"},
    };
    (void)state;
    expect_rows(rows, NG_COUNT(rows));
}

static void test_appends_and_last_lines(void **state)
{
    static const struct row rows[] = {
        /* one append is taken back, another followed */
        {"a\nb\n", "a\nb\nc\n", "a\n", "a\nc\n"},
        {"a\nb", "a\nb\nc", "a", "a\nc"},
        {"a\nb", "a\nb\nc\n", "a", "a\nc\n"},
        {"a\nb\n", "a\nb\nc", "a\n", "a\nc"},
        {"x\nx\n", "x\nx\nx\n", "x\n", "x\nx\n"},
        /* several, and an edit above */
        {"a\nb\nc\n", "A\nb\nc\nd\n", "a\nc\n", "A\nc\nd\n"},
        /* paragraphs with a blank line before them, or behind, or with the same last line */
        {"H\n\n# A\ntext\n", "H\n\n# A\ntext\n\n# B\ntext\n", "H\n", "H\n\n# B\ntext\n"},
        {"H\n\n# A\ntext", "H\n\n# A\ntext\n\n# B\ntext", "H", "H\n\n# B\ntext"},
        {"H\n# A\n\n", "H\n# A\n\n# B\n\n", "H\n", "H\n# B\n\n"},
        {"f {\n}\ng {\n}\n", "f {\n}\ng {\n}\nh {\n}\n", "f {\n}\n", "f {\n}\nh {\n}\n"},
        {"f {\n}\ng {\n}\nh {\n}\n", "f {\n}\ng {\n}\nx {\n}\nh {\n}\n", "f {\n}\nh {\n}\n",
         "f {\n}\nx {\n}\nh {\n}\n"},
        /* two appends with a blank line, the second of them longer, are no hunks that touch */
        {"H\n", "H\n\nA\n", "H\n\nA\n\nB\n", "!2|\nA|\nA\n\nB"},
        /* one of two equal lines is removed, the other one changed */
        {"x\nx\ny\n", "x\ny\n", "X\nx\ny\n", "X\ny\n"},
        /* both removed some of several equal lines */
        {"x\nx\nx\ny\n", "x\nx\ny\n", "x\ny\n", "!1|x|"},
        /* prepends that begin with the same line */
        {"-\na\n\nT\n", "-\nb\n\n-\na\n\nT\n", "T\n", "-\nb\n\nT\n"},
        /* the text was empty before */
        {"a\n", "a\nb\n", "", "b\n"},
        {"a", "a\nb", "", "b"},
        {"a\n", "", "a\nb\n", "b\n"},
        /* the last line feed */
        {"a\nb\n", "a\nb", "A\nb\n", "A\nb"},
        {"a\nb", "a\nb\n", "A\nb", "A\nb\n"},
        {"a\n", "a", "a\nb\n", "a\nb"},
        {"a", "b", "a\n", "b\n"},
        {"a\n", "a\n\n", "A\n", "A\n\n"},
        {"\n", "\n\n", "", "\n"},
        /* a carriage return belongs to its line */
        {"a\r\nb\r\n", "A\r\nb\r\n", "a\r\nb\n", "A\r\nb\n"},
        {"a\r\nb\r\n", "a\nb\r\n", "A\r\nb\r\n", "!1|a|A\r"},
        {"a\rb\n", "a\rB\n", "A\rb\n", "!1|a\rB|A\rb"},
    };
    (void)state;
    expect_rows(rows, NG_COUNT(rows));
}

/* ---- limits ---- */

static char *repeat(const char *unit, size_t count, struct ng_str *ret)
{
    size_t len = strlen(unit);
    char *data = malloc(len * count + 1);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) {
        memcpy(data + i * len, unit, len);
    }
    *ret = str_make(data, len * count);
    return data;
}

static void test_sides_are_cut(void **state)
{
    struct merge3 merge;
    struct ng_str present;
    struct ng_str before;
    (void)state;
    char *one = repeat("\xe2\x82\xac", 1000, &present);
    char *other = repeat("abc", 1000, &before);
    assert_int_equal(merge3_texts(str("x"), present, before, &merge), NG_OK);
    assert_int_equal(merge.conflict_count, 1);
    assert_int_equal(merge.conflicts[0].present.len, 1023);
    assert_int_equal(merge.conflicts[0].before.len, 1024);
    merge3_done(&merge);
    free(one);
    free(other);
}

static void test_conflicts_are_counted(void **state)
{
    enum { CONFLICTS = 100 };
    static struct rig_text texts[3];
    struct merge3 merge;
    char line[64];
    (void)state;
    for (int i = 0; i < CONFLICTS; i++) {
        for (int text = 0; text < 3; text++) {
            int len = snprintf(line, sizeof(line), "%d of %d\nsame %d\n", i, text, i);
            rig_add(&texts[text], line, (size_t)len);
        }
    }
    assert_int_equal(
        merge3_texts(rig_str(&texts[0]), rig_str(&texts[1]), rig_str(&texts[2]), &merge),
        NG_OK);
    assert_int_equal(merge.conflict_count, CONFLICTS);
    assert_int_equal(merge.conflicts[MERGE3_CONFLICTS_MAX - 1].line,
                     2 * MERGE3_CONFLICTS_MAX - 1);
    merge3_done(&merge);
}

static void test_long_texts(void **state)
{
    struct merge3 merge;
    struct ng_str long_text;
    (void)state;
    char *data = repeat("x", MERGE3_TEXT_MAX + 1, &long_text);
    assert_int_equal(merge3_texts(str("a"), str("b"), long_text, &merge), NG_ETOOLARGE);
    merge3_done(&merge);
    /* Whole texts of any length. */
    assert_int_equal(merge3_texts(str("a"), str("a"), long_text, &merge), NG_OK);
    assert_int_equal(merge.text.len, long_text.len);
    merge3_done(&merge);
    assert_int_equal(merge3_texts(str("a"), long_text, str("a"), &merge), NG_OK);
    assert_int_equal(merge.text.len, long_text.len);
    merge3_done(&merge);
    long_text.len--;
    assert_int_equal(merge3_texts(str("a"), str("b"), long_text, &merge), NG_OK);
    assert_int_equal(merge.conflict_count, 1);
    merge3_done(&merge);
    free(data);
}

/* Lines that are too many to compare, or too different: it ends, and loses nothing. */
static void test_work_has_a_bound(void **state)
{
    enum { LINES = 400 * 1000 };
    unsigned seed = 5;
    char *texts[3];
    struct ng_str strs[3];
    struct merge3 merge;
    (void)state;
    for (int text = 0; text < 3; text++) {
        size_t len = 0;
        texts[text] = malloc((size_t)LINES * 8 + 32);
        assert_non_null(texts[text]);
        len += (size_t)sprintf(texts[text], "%s\nsecond\n", text == 1 ? "FIRST" : "first");
        for (int i = 0; i < LINES && text != 1; i++) {
            len += (size_t)sprintf(texts[text] + len, "%u\n", (unsigned)rand_r(&seed) % 900);
        }
        if (text == 1) { /* as base, but for its first line */
            memcpy(texts[1] + len, texts[0] + len, strs[0].len - len);
            len = strs[0].len;
        }
        strs[text] = str_make(texts[text], len);
    }
    assert_int_equal(merge3_texts(strs[0], strs[1], strs[2], &merge), NG_OK);
    assert_true(merge.coarse);
    assert_int_equal(merge.conflict_count, 0);
    memcpy(texts[2], "FIRST", 5);
    assert_int_equal(merge.text.len, strs[2].len);
    assert_memory_equal(merge.text.data, texts[2], strs[2].len);
    merge3_done(&merge);
    for (int text = 0; text < 3; text++) {
        free(texts[text]);
    }
    /* Nothing but line feeds. */
    char *feeds = repeat("\n", MERGE3_TEXT_MAX, &strs[0]);
    strs[1] = str_make(feeds, MERGE3_TEXT_MAX - 100);
    assert_int_equal(merge3_texts(strs[1], strs[0], str_make(feeds, 1000), &merge), NG_OK);
    merge3_done(&merge);
    free(feeds);
}

static void test_without_memory(void **state)
{
    struct merge3 merge;
    int rc = NG_EINTERNAL;
    (void)state;
    for (long n = 0; rc != NG_OK; n++) {
        assert_true(n < 100);
        alloc_fail_after(n);
        rc = merge3_texts(str("a\nb\nc\nd\ne\n"), str("A\nb\nc\nx\nd\ne\n"),
                          str("a\nb\nc\nE\n"), &merge);
        alloc_fail_after(-1);
        assert_true(rc == NG_OK || rc == NG_EINTERNAL);
        assert_true(rc != NG_OK || n > 10);
        merge3_done(&merge);
    }
}

/* ---- properties ---- */

/* Lines that occur once in a text, by number. */
struct numbers {
    unsigned items[LINES_MAX];
    size_t count;
};

static void print_numbers(const struct numbers *numbers, struct rig_text *ret)
{
    char line[32];
    ret->len = 0;
    for (size_t i = 0; i < numbers->count; i++) {
        int len = snprintf(line, sizeof(line), "line %u\n", numbers->items[i]);
        rig_add(ret, line, (size_t)len);
    }
}

static void read_numbers(struct ng_str text, struct numbers *ret)
{
    ret->count = 0;
    for (size_t at = 0; at < text.len; at++) {
        ret->items[ret->count++] = (unsigned)strtoul(text.data + at + 5, NULL, 10);
        while (text.data[at] != '\n') {
            at++;
        }
    }
}

/* Removes and adds lines of `base` within [from, to); `next` numbers new ones. */
static void edit_numbers(unsigned *seed, const struct numbers *base, size_t from, size_t to,
                         unsigned *next, struct numbers *ret)
{
    ret->count = 0;
    for (size_t i = 0; i <= base->count; i++) {
        bool within = i >= from && i < to;
        if (within && rig_below(seed, 8) == 0) {
            for (unsigned add = 1 + rig_below(seed, 3); add > 0; add--) {
                ret->items[ret->count++] = (*next)++;
            }
        }
        if (i < base->count && !(within && rig_below(seed, 8) == 0)) {
            ret->items[ret->count++] = base->items[i];
        }
    }
}

static bool has_number(const struct numbers *numbers, unsigned number)
{
    for (size_t i = 0; i < numbers->count; i++) {
        if (numbers->items[i] == number) {
            return true;
        }
    }
    return false;
}

/* The merged text has the lines that a side added and those that no side removed. */
static void expect_numbers(const struct numbers texts[3], const struct numbers *merged)
{
    size_t count = 0;
    for (int text = 0; text < 3; text++) {
        for (size_t i = 0; i < texts[text].count; i++) {
            unsigned number = texts[text].items[i];
            bool in_base = has_number(&texts[0], number);
            bool in_both = has_number(&texts[1], number) && has_number(&texts[2], number);
            bool want = in_base ? in_both : text > 0;
            assert_int_equal(has_number(merged, number), want);
            count += want && (in_base ? text == 0 : true);
        }
    }
    assert_int_equal(merged->count, count);
}

static void random_numbers(unsigned *seed, struct numbers texts[3])
{
    unsigned next = 0;
    texts[0].count = rig_below(seed, 30);
    for (size_t i = 0; i < texts[0].count; i++) {
        texts[0].items[i] = next++;
    }
    edit_numbers(seed, &texts[0], 0, texts[0].count + 1, &next, &texts[1]);
    edit_numbers(seed, &texts[0], 0, texts[0].count + 1, &next, &texts[2]);
}

static void test_lines_of_both_sides(void **state)
{
    static struct numbers numbers[3], merged;
    static struct rig_text texts[3];
    struct merge3 merge;
    unsigned seed = rig_seed();
    unsigned clean = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        random_numbers(&seed, numbers);
        for (int text = 0; text < 3; text++) {
            print_numbers(&numbers[text], &texts[text]);
        }
        assert_int_equal(
            merge3_texts(rig_str(&texts[0]), rig_str(&texts[1]), rig_str(&texts[2]), &merge),
            NG_OK);
        if (merge.conflict_count == 0) {
            clean++;
            read_numbers(buf_str(&merge.text), &merged);
            expect_numbers(numbers, &merged);
        }
        merge3_done(&merge);
    }
    assert_in_range(clean, ROUNDS / 10, ROUNDS);
}

/* An edit above a line and one below it: the merge has both, byte for byte. */
static void test_edits_apart(void **state)
{
    static struct rig_text top, bottom, new_top, new_bottom, texts[3], want;
    struct merge3 merge;
    unsigned seed = rig_seed();
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        rig_random(&seed, &top, 20);
        rig_random(&seed, &bottom, 20);
        rig_set(&new_top, rig_str(&top));
        rig_set(&new_bottom, rig_str(&bottom));
        rig_edit(&seed, &new_top);
        rig_edit(&seed, &new_bottom);
        const struct rig_text *parts[4][2] = {
            {&top, &bottom}, {&new_top, &bottom}, {&top, &new_bottom}, {&new_top, &new_bottom}};
        for (int i = 0; i < 4; i++) {
            struct rig_text *text = i < 3 ? &texts[i] : &want;
            rig_set(text, rig_str(parts[i][0]));
            rig_add(text, "\n-- between --\n", 15);
            rig_add(text, parts[i][1]->data, parts[i][1]->len);
        }
        assert_int_equal(
            merge3_texts(rig_str(&texts[0]), rig_str(&texts[1]), rig_str(&texts[2]), &merge),
            NG_OK);
        assert_int_equal(merge.conflict_count, 0);
        assert_int_equal(merge.text.len, want.len);
        assert_memory_equal(merge.text.data, want.data, want.len);
        merge3_done(&merge);
    }
}

/* Changes are taken back under later ones, and the undo is taken back. */
static void test_undo_of_undo(void **state)
{
    static struct rig_text before, base, present, undone;
    struct merge3 merge;
    unsigned seed = rig_seed();
    unsigned clean = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        rig_random(&seed, &before, 30);
        rig_set(&base, rig_str(&before));
        rig_edit(&seed, &base);
        rig_set(&present, rig_str(&base));
        for (unsigned i = rig_below(&seed, 3); i > 0; i--) {
            rig_edit(&seed, &present);
        }
        assert_int_equal(
            merge3_texts(rig_str(&base), rig_str(&present), rig_str(&before), &merge), NG_OK);
        if (merge.conflict_count == 0) {
            clean++;
            rig_set(&undone, buf_str(&merge.text));
            merge3_done(&merge);
            assert_int_equal(
                merge3_texts(rig_str(&undone), rig_str(&undone), rig_str(&present), &merge),
                NG_OK);
            assert_int_equal(merge.text.len, present.len);
            assert_memory_equal(merge.text.data, present.data, present.len);
        }
        merge3_done(&merge);
    }
    assert_in_range(clean, ROUNDS / 4, ROUNDS);
}

/* ---- git's own merge ---- */

static void write_file(const char *dir, const char *name, const struct rig_text *text)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text->data, 1, text->len, file), text->len);
    assert_int_equal(fclose(file), 0);
}

/* True: without conflicts. */
static bool git_merge(const char *dir, const struct rig_text texts[3], struct rig_text *ret)
{
    char command[512];
    write_file(dir, "base", &texts[0]);
    write_file(dir, "present", &texts[1]);
    write_file(dir, "before", &texts[2]);
    (void)snprintf(command, sizeof(command),
                   "git merge-file -p -q %s/present %s/base %s/before", dir, dir, dir);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    ret->len = fread(ret->data, 1, sizeof(ret->data), pipe);
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 0, 127);
    return WEXITSTATUS(status) == 0;
}

/* git has hunks that touch as a conflict; all others are as here. */
static void test_as_git_merges(void **state)
{
    static struct numbers numbers[3];
    static struct rig_text texts[3], want;
    char dir[] = "/tmp/notegate-merge-XXXXXX";
    char command[128];
    struct merge3 merge;
    unsigned seed = rig_seed();
    unsigned same = 0;
    (void)state;
    if (system("command -v git >/dev/null 2>&1") != 0) {
        print_message("git is not installed\n");
        skip();
    }
    assert_non_null(mkdtemp(dir));
    for (int round = 0; round < GIT_ROUNDS; round++) {
        random_numbers(&seed, numbers);
        for (int text = 0; text < 3; text++) {
            print_numbers(&numbers[text], &texts[text]);
        }
        assert_int_equal(
            merge3_texts(rig_str(&texts[0]), rig_str(&texts[1]), rig_str(&texts[2]), &merge),
            NG_OK);
        if (git_merge(dir, texts, &want)) {
            same++;
            assert_int_equal(merge.conflict_count, 0);
            assert_int_equal(merge.text.len, want.len);
            assert_memory_equal(merge.text.data, want.data, want.len);
        }
        merge3_done(&merge);
    }
    print_message("%u of %d merges without a conflict\n", same, GIT_ROUNDS);
    assert_in_range(same, GIT_ROUNDS / 10, GIT_ROUNDS);
    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

/* ---- whole values ---- */

static void test_values(void **state)
{
    static const struct {
        const char *base, *present, *before; /* NULL: absent */
        enum merge3_value want;
    } rows[] = {
        {"a", "a", "b", MERGE3_BEFORE},    {"a", "b", "a", MERGE3_PRESENT},
        {"a", "b", "b", MERGE3_PRESENT},   {"a", "b", "c", MERGE3_CONFLICT},
        {"a", "a", "a", MERGE3_PRESENT},   {NULL, NULL, "b", MERGE3_BEFORE},
        {NULL, "b", NULL, MERGE3_PRESENT}, {"a", NULL, "b", MERGE3_CONFLICT},
        {"a", "a", NULL, MERGE3_BEFORE},   {NULL, "", NULL, MERGE3_PRESENT},
        {"", NULL, "b", MERGE3_CONFLICT},  {NULL, "", "b", MERGE3_CONFLICT},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        assert_int_equal(
            merge3_values(str(rows[i].base), str(rows[i].present), str(rows[i].before)),
            rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_texts),
        cmocka_unit_test(test_hunks),
        cmocka_unit_test(test_appends_and_last_lines),
        cmocka_unit_test(test_sides_are_cut),
        cmocka_unit_test(test_conflicts_are_counted),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_work_has_a_bound),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_lines_of_both_sides),
        cmocka_unit_test(test_edits_apart),
        cmocka_unit_test(test_undo_of_undo),
        cmocka_unit_test(test_as_git_merges),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
