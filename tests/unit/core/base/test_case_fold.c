/* SPDX-License-Identifier: MIT */
/* test_case_fold.c - texts that differ only in case. */
#include "core/base/text/case_fold.h"
#include "harness.h"

static void test_texts(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"Plan B", "plan b"},
        {"\xc3\x84RGER", "\xc3\xa4rger"},  /* umlauts */
        {"A\xcc\x88rger", "\xc3\xa4rger"}, /* in two code points */
        {"Stra\xc3\x9f"
         "e",
         "strasse"},                              /* sharp s */
        {"\xce\xa3\xce\xa3", "\xcf\x83\xcf\x83"}, /* Greek */
        {"\xce\xa3\xcf\x82", "\xcf\x83\xcf\x83"}, /* and its final sigma */
        {"a\xff"
         "B",
         "a\xff"
         "B"}, /* not valid: as it is */
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct buf out;
        buf_init(&out, 100);
        assert_int_equal(buf_add_c(&out, "="), NG_OK);
        assert_int_equal(case_fold(&out, ng_str_of(cases[i][0])), NG_OK);
        assert_string_equal(buf_cstr(&out) + 1, cases[i][1]);
        buf_done(&out);
    }
}

static void test_limit(void **state)
{
    struct buf out;
    (void)state;
    buf_init(&out, 3);
    assert_int_equal(case_fold(&out, ng_str_of("abcd")), NG_ETOOLARGE);
    buf_clear(&out);
    assert_int_equal(case_fold(&out, ng_str_of("\xc3\xa4\xc3\xa4")), NG_ETOOLARGE);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
