/* SPDX-License-Identifier: MIT */
/* test_glob.c - names by `*` and `?`. */
#include "core/base/text/glob.h"
#include "harness.h"

#define LONG 4096

static void test_patterns(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"?", "", false},
        {"?", "a", true},
        {"?", "ab", false},
        {"notebook", "notebook", true},
        {"notebook", "notebook_read", false},
        {"Notebook", "notebook", false},
        {"notebook_*", "notebook_read", true},
        {"notebook_*", "notebook_", true},
        {"notebook_*", "notebook", false},
        {"*_read", "notebook_read", true},
        {"*_read", "notebook_reads", false},
        {"*o*e*", "notebook_read", true},
        {"n*k_?ead", "notebook_read", true},
        {"n*k_??ead", "notebook_read", false},
        {"a*b*c", "aXbXbc", true},
        {"a*b*c", "aXbXbcX", false},
        {"**", "a", true},
        {"a[b]", "ab", false},
        {"a[b]", "a[b]", true},
        {"a\\*", "a*", false},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        if (glob_match(ng_str_of(cases[i].pattern), ng_str_of(cases[i].text)) !=
            cases[i].matches) {
            fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].text);
        }
    }
    assert_true(glob_is(ng_str_of("a*")) && glob_is(ng_str_of("?")));
    assert_false(glob_is(ng_str_of("notebook")) || glob_is(ng_str_of("")) ||
                 glob_is((struct ng_str){NULL, 0}));
}

/* Many stars: the number of steps is bounded by the lengths. */
static void test_many_stars(void **state)
{
    static char pattern[LONG];
    static char text[LONG];
    (void)state;
    for (size_t i = 0; i < LONG; i++) {
        pattern[i] = i % 2 == 0 ? '*' : 'a';
        text[i] = 'a';
    }
    pattern[LONG - 1] = 'b';
    assert_false(glob_match((struct ng_str){pattern, LONG}, (struct ng_str){text, LONG}));
    text[LONG - 1] = 'b';
    assert_true(glob_match((struct ng_str){pattern, LONG}, (struct ng_str){text, LONG}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_many_stars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
