/* SPDX-License-Identifier: MIT */
/*
 * cmocka.h - the part of cmocka that the documents suite uses, for the program that `notegate
 * test-backend` runs: it is installed, and needs no library for tests. The suites in the tree
 * use cmocka itself.
 */
#ifndef NOTEGATE_CONTRACT_CMOCKA_H
#define NOTEGATE_CONTRACT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
    int (*setup_func)(void **state);
    int (*teardown_func)(void **state);
    void *initial_state;
};

/* A case that fails or is skipped ends here; in a process of its own, whose end it is. */
void kit_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
void kit_skip(void) __attribute__((noreturn));
void kit_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
int kit_run(const char *group, const struct CMUnitTest *tests, size_t count);
void kit_equal(const char *file, int line, uintmax_t a, uintmax_t b);
void kit_text(const char *file, int line, const char *a, const char *b);
void kit_bytes(const char *file, int line, const void *a, const void *b, size_t size);

#define KIT_HOLDS(c, what)                                                                     \
    ((c) ? (void)0 : kit_fail(__FILE__, __LINE__, "it does not hold that %s", (what)))

/* NOLINTBEGIN(readability-identifier-naming): cmocka's names */
#define assert_int_equal(a, b)                                                                 \
    kit_equal(__FILE__, __LINE__, (uintmax_t)(intmax_t)(a), (uintmax_t)(intmax_t)(b))
#define assert_string_equal(a, b) kit_text(__FILE__, __LINE__, (a), (b))
#define assert_memory_equal(a, b, size) kit_bytes(__FILE__, __LINE__, (a), (b), (size))
#define assert_true(c) KIT_HOLDS(c, #c)
#define assert_false(c) KIT_HOLDS(!(c), "not " #c)
#define assert_null(c) KIT_HOLDS((c) == NULL, #c " is NULL")
#define assert_non_null(c) KIT_HOLDS((c) != NULL, #c " is not NULL")
#define assert_in_range(value, least, most)                                                    \
    KIT_HOLDS((value) >= (least) && (value) <= (most),                                         \
              #value " is between " #least " and " #most)
#define fail_msg(...) kit_fail(__FILE__, __LINE__, __VA_ARGS__)
#define print_message(...) kit_print(__VA_ARGS__)
#define skip() kit_skip()
#define cmocka_unit_test_setup_teardown(test, setup, teardown)                                 \
    {                                                                                          \
#test, test, setup, teardown, NULL                                                     \
    }
#define cmocka_run_group_tests_name(group, tests, setup, teardown)                             \
    kit_run((group), (tests), sizeof(tests) / sizeof((tests)[0]))
/* NOLINTEND(readability-identifier-naming) */

#endif
