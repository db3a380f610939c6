/* SPDX-License-Identifier: MIT */
/* test_opennotes_search.c - the parts of searching: distances of words against the plain table,
 * words of texts, conditions taken apart. (Whole searches: tests/e2e/notes.)
 */
#include "harness.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter_parse.h"
#include "index/index.h"
#include "search/fuzzy.h"
#include "search/fuzzy_word.h"

#define ROUNDS 20000
#define LETTERS_MAX 9

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The textbook's table, of bytes. */
static unsigned plain_distance(const char *a, const char *b)
{
    unsigned table[LETTERS_MAX + 1][LETTERS_MAX + 1];
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    for (size_t i = 0; i <= a_len; i++) {
        for (size_t k = 0; k <= b_len; k++) {
            if (i == 0 || k == 0) {
                table[i][k] = (unsigned)(i + k);
                continue;
            }
            unsigned best = smaller(table[i - 1][k], table[i][k - 1]) + 1;
            best = smaller(best, table[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
                best = smaller(best, table[i - 2][k - 2] + 1);
            }
            table[i][k] = best;
        }
    }
    return table[a_len][b_len];
}

static void random_word(uint32_t *seed, char *out)
{
    *seed = *seed * 1664525 + 1013904223;
    size_t len = (*seed >> 16) % LETTERS_MAX + 1;
    for (size_t i = 0; i < len; i++) {
        *seed = *seed * 1664525 + 1013904223;
        out[i] = (char)('a' + (*seed >> 20) % 4);
    }
    out[len] = '\0';
}

static void test_distance(void **state)
{
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char a[LETTERS_MAX + 1];
        char b[LETTERS_MAX + 1];
        random_word(&seed, a);
        random_word(&seed, b);
        unsigned wanted = plain_distance(a, b);
        for (unsigned most = 0; most <= 2; most++) {
            assert_int_equal(notes_fuzzy_distance(ng_str_of(a), ng_str_of(b), most),
                             smaller(wanted, most + 1));
        }
    }
    /* Of characters, not bytes. */
    assert_int_equal(notes_fuzzy_distance(ng_str_of("\xc3\xa9t\xc3\xa9"), ng_str_of("ete"), 2),
                     2);
    assert_int_equal(notes_fuzzy_distance(ng_str_of("\xe4\xbc\x9a\xe8\xad\xb0"),
                                          ng_str_of("\xe4\xbc\x9a"), 2),
                     1);
}

static void expect_match(const char *query, const char *word, enum notes_fuzzy_class wanted)
{
    assert_int_equal(notes_fuzzy_match(ng_str_of(query), ng_str_of(word)), wanted);
}

static void test_classes(void **state)
{
    (void)state;
    expect_match("abc", "abc", NOTES_FUZZY_EXACT);
    expect_match("abc", "abcdefgh", NOTES_FUZZY_PREFIX);
    expect_match("abc", "acb", NOTES_FUZZY_EDITS);
    expect_match("abc", "ab", NOTES_FUZZY_EDITS);
    expect_match("abc", "a", NOTES_FUZZY_NONE);
    expect_match("ab", "abx", NOTES_FUZZY_PREFIX);
    expect_match("ab", "xb", NOTES_FUZZY_NONE);
    expect_match("abcde", "xbcdx", NOTES_FUZZY_NONE);
    expect_match("abcdef", "xbcdex", NOTES_FUZZY_EDITS);
    expect_match("abcdef", "bacdfe", NOTES_FUZZY_EDITS);
    expect_match("abcdef", "xxcdex", NOTES_FUZZY_NONE);
    assert_int_equal(notes_fuzzy_edits(2), 0);
    assert_int_equal(notes_fuzzy_edits(3), 1);
    assert_int_equal(notes_fuzzy_edits(5), 1);
    assert_int_equal(notes_fuzzy_edits(6), 2);
    assert_int_equal(notes_fuzzy_edits(NOTES_FUZZY_LETTERS_MAX), 2);
    assert_int_equal(notes_fuzzy_edits(NOTES_FUZZY_LETTERS_MAX + 1), 0);
    char longest[NOTES_FUZZY_LETTERS_MAX + 40];
    memset(longest, 'a', sizeof(longest));
    assert_int_equal(notes_fuzzy_distance(str_make(longest, sizeof(longest)),
                                          str_make(longest, sizeof(longest) - 1), 2),
                     3);
}

static void test_words(void **state)
{
    struct ng_str words[4];
    (void)state;
    struct ng_str text = ng_str_of("-a_b  \xc3\xa9t\xc3\xa9; 12x");
    assert_int_equal(notes_fuzzy_split(text, words, 4), 4);
    assert_true(str_is(words[0], "a"));
    assert_true(str_is(words[1], "b"));
    assert_true(str_is(words[2], "\xc3\xa9t\xc3\xa9"));
    assert_true(str_is(words[3], "12x"));
    assert_int_equal(notes_fuzzy_split(text, words, 2), 2);
    assert_int_equal(notes_fuzzy_split(ng_str_of("!?"), words, 4), 0);
    assert_int_equal(notes_fuzzy_split(ng_str_of(""), words, 4), 0);
}

static void expect_condition(const char *text, enum notes_field field, enum notes_operator op,
                             const char *key, const char *value)
{
    struct notes_filter_condition condition;
    assert_null(notes_filter_parse(ng_str_of(text), &condition));
    assert_int_equal(condition.field, field);
    assert_int_equal(condition.op, op);
    assert_true(str_is(condition.key, key));
    assert_true(str_is(condition.value, value));
}

static void test_conditions(void **state)
{
    struct notes_filter_condition condition;
    (void)state;
    expect_condition("data.status=open", NOTES_FIELD_DATA, NOTES_EQUAL, "status", "open");
    expect_condition(" data.a.b  !=  x y ", NOTES_FIELD_DATA, NOTES_UNEQUAL, "a.b", "x y");
    expect_condition("data.due date<=\"2026-01-01\"", NOTES_FIELD_DATA, NOTES_LESS_EQUAL,
                     "due date", "2026-01-01");
    expect_condition("data.tag~x", NOTES_FIELD_TAGS, NOTES_CONTAINS, "tag", "x");
    expect_condition("data.tags=a=b", NOTES_FIELD_TAGS, NOTES_EQUAL, "tags", "a=b");
    expect_condition("title='=x'", NOTES_FIELD_TITLE, NOTES_EQUAL, "", "=x");
    expect_condition("title=", NOTES_FIELD_TITLE, NOTES_EQUAL, "", "");
    expect_condition("links-to=a.md", NOTES_FIELD_LINKS_TO, NOTES_EQUAL, "", "a.md");
    expect_condition("linked-by!=a", NOTES_FIELD_LINKED_BY, NOTES_UNEQUAL, "", "a");
    expect_condition("path>=x", NOTES_FIELD_PATH, NOTES_GREATER_EQUAL, "", "x");
    assert_null(notes_filter_parse(ng_str_of("data.n>2.5"), &condition));
    assert_true(condition.is_number && condition.number > 2.4 && condition.number < 2.6);
    assert_null(notes_filter_parse(ng_str_of("data.n>'2.5'"), &condition));
    assert_false(condition.is_number);
    assert_null(notes_filter_parse(ng_str_of("data.n>1e999"), &condition));
    assert_false(condition.is_number);
    static const char *const bad[] = {
        "",          "x",         "=",         "=x",         "data.=x",
        "data..x=1", "data.x.=1", "foo=1",     "data.x==1",  "data.x=~1",
        "data.x!1",  "path=",     "links-to=", "links-to>x", "linked-by<=x",
        "data.x<>1"};
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_non_null(notes_filter_parse(ng_str_of(bad[i]), &condition));
    }
}

/* Without memory a lookup fails; it never finds less. */
static void test_words_without_memory(void **state)
{
    struct notes_fuzzy_words words;
    sqlite3 *db = NULL;
    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(
            db,
            "CREATE TABLE vocab(id INTEGER PRIMARY KEY, word TEXT, letters INTEGER, "
            "stem TEXT);"
            "CREATE VIRTUAL TABLE vocab_grams USING fts5(word, content='', "
            "detail='none', tokenize='trigram case_sensitive 1');"
            "INSERT INTO vocab VALUES(1,'planning',8,'plan'),(2,'plannig',7,'plannig');"
            "INSERT INTO vocab_grams(rowid,word) SELECT id,'^^'||word||'$$' FROM vocab",
            NULL, NULL, NULL),
        SQLITE_OK);
    int rc = SQLITE_NOMEM;
    long fails = 0;
    for (; rc == SQLITE_NOMEM; fails++) {
        alloc_fail_after(fails);
        rc = notes_fuzzy_similar(db, ng_str_of("planing"), &words);
        alloc_fail_after(-1);
        assert_true(rc == SQLITE_NOMEM || words.count == 2);
        notes_fuzzy_words_done(&words);
    }
    assert_int_equal(rc, SQLITE_OK);
    assert_true(fails > 2);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Trigrams that could not be had are not those of a short text. */
static void test_grams_without_memory(void **state)
{
    struct ng_str grams = {NULL, 0};
    (void)state;
    for (long fails = 0; grams.len == 0; fails++) {
        struct arena arena;
        arena_init(&arena, 0);
        alloc_fail_after(fails);
        grams = notes_index_grams(&arena, ng_str_of("planning"));
        alloc_fail_after(-1);
        assert_int_equal(arena.failed, grams.len == 0);
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_words_without_memory),
        cmocka_unit_test(test_grams_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
