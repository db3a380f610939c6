/* SPDX-License-Identifier: MIT */
/* test_json_number.c - numbers: comparing, integers, doubles, multiples.
 */
#include "test_json_rig.h"

#include <math.h>
#include <stdlib.h>

#include "core/json/json_number.h"

static void test_compare(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        "-1e1000000000",
        "-123456789012345678901234567890.5",
        "-10",
        "-9.99",
        "-1e-1000000000",
        "0",
        "1e-1000000000",
        "0.00001",
        "9.99e-1",
        "1",
        "1.00000000000000000000000000001",
        "9",
        "10",
        "99e0",
        "100",
        "1e999999999",
        "1.1e999999999",
        "0.1e1000000001",
    };
    for (size_t i = 0; i < NG_COUNT(ascending); i++) {
        for (size_t j = 0; j < NG_COUNT(ascending); j++) {
            int order = json_compare_numbers(number(ascending[i]), number(ascending[j]));
            assert_int_equal((i > j) - (i < j), (order > 0) - (order < 0));
        }
    }
    assert_int_equal(0, json_compare_numbers(number("1e2"), number("100.000")));
    assert_int_equal(0, json_compare_numbers(number("-0"), number("0e99")));
    assert_int_equal(0, json_compare_numbers(number("0.0012e5"), number("120")));
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        int64_t value;
    } cases[] = {
        {"0", NG_OK, 0},
        {"-0.0", NG_OK, 0},
        {"1.0", NG_OK, 1},
        {"1e2", NG_OK, 100},
        {"-120e-1", NG_OK, -12},
        {"9223372036854775807", NG_OK, INT64_MAX},
        {"-9223372036854775808", NG_OK, INT64_MIN},
        {"922337203685477580.7e1", NG_OK, INT64_MAX},
        {"9223372036854775808", NG_EINVAL, 0},
        {"-9223372036854775809", NG_EINVAL, 0},
        {"1e19", NG_EINVAL, 0},
        {"1e999999999999999999999", NG_EINVAL, 0},
        {"1.5", NG_EINVAL, 0},
        {"1e-1", NG_EINVAL, 0},
        {"\"1\"", NG_EINVAL, 0},
    };
    struct arena arena;
    arena_init(&arena, 0);
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        int64_t value = 0;
        assert_int_equal(cases[i].rc, json_integer(parse(&arena, cases[i].text), &value));
        assert_true(value == cases[i].value);
    }
    assert_int_equal(NG_EINVAL, json_integer(NULL, NULL));
    assert_true(json_is_integer(parse(&arena, "1e300")));
    assert_false(json_is_integer(parse(&arena, "1e-300")));
    assert_false(json_is_integer(parse(&arena, "true")));
    arena_done(&arena);
}

static void test_doubles(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0.5",
        "0.1",
        "123456789.125e-3",
        "1.7976931348623157e308",
        "5e-324",
        "1e22",
        "2.2250738585072011e-308",
        "9007199254740993",
        "9007199254740993.00000000000000000000000000000000000000000000000000000000001",
    };
    struct arena arena;
    arena_init(&arena, 0);
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        double expected = strtod(texts[i], NULL);
        double value = json_double(parse(&arena, texts[i]));
        assert_memory_equal(&expected, &value, sizeof(value));
    }
    assert_true(isinf(json_double(parse(&arena, "1e999999999999"))));
    struct buf longer;
    buf_init(&longer, 4096);
    buf_add_c(&longer, "9007199254740993.");
    for (int i = 0; i < 2000; i++) {
        buf_add_char(&longer, '0');
    }
    buf_add_char(&longer, '1');
    assert_true(json_double(parse(&arena, buf_cstr(&longer))) > 9007199254740993.0);
    buf_done(&longer);
    arena_done(&arena);
}

static void test_multiples(void **state)
{
    (void)state;
    static const struct {
        const char *number, *divisor;
        bool multiple;
    } cases[] = {
        {"0", "3", true},
        {"9", "3", true},
        {"10", "3", false},
        {"0.0075", "0.0001", true},
        {"0.00751", "0.0001", false},
        {"4.5", "1.5", true},
        {"35", "1.5", false},
        {"-9", "3", true},
        {"1e308", "0.5", true},
        {"1e308", "0.123456789", false},
        {"12391239123", "1e-8", true},
        {"1e1000000", "7", false},
        {"7e1000000", "7", true},
        {"1e-5", "1e-4", false},
        {"99999999999999999999999999999999999999", "9999999999999999999", true},
        {"99999999999999999999999999999999999998", "9999999999999999999", false},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        assert_int_equal(cases[i].multiple,
                         json_is_multiple(number(cases[i].number), number(cases[i].divisor)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_multiples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
