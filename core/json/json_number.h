/* SPDX-License-Identifier: MIT */
/* json_number.h - exact arithmetic on the digits of JSON numbers. Private to json_*.c and
 * schema_*.c. */
#ifndef NOTEGATE_CORE_JSON_NUMBER_H
#define NOTEGATE_CORE_JSON_NUMBER_H

#include "json.h"

/* Exponents are cut off here: far beyond the numbers that are compared exactly by contract, far
 * from overflowing when lengths of texts are added. */
#define JSON_EXPONENT_MAX INT64_C(100000000000000000)

/*
 * A number taken apart without copying: its value is 0.DDD x 10^point, where DDD are the digits
 * from `digits` on, without a zero at either end; a '.' may lie between them. Zero has no
 * digits.
 */
struct json_decimal {
    bool negative;
    const char *digits;
    const char *end;
    size_t count; /* digits, the '.' not counted */
    int64_t point;
};

struct json_decimal json_decimal_of(struct ng_str number);
bool json_decimal_is_integer(const struct json_decimal *decimal);
/* The number as an integer, or NG_EINVAL. */
int json_decimal_integer(struct ng_str number, int64_t *ret);
int json_decimal_compare(const struct json_decimal *a, const struct json_decimal *b);

/*
 * Is `number` an integer multiple of `divisor` (> 0)? Exact for numbers of any length and
 * exponent as long as the divisor has at most JSON_DIVISOR_DIGITS significant digits; beyond
 * that both are taken as doubles.
 */
#define JSON_DIVISOR_DIGITS 19
bool json_is_multiple(struct ng_str number, struct ng_str divisor);

/* Equal values (json_equal) have equal hashes. Seeded per process. */
uint64_t json_hash(const struct ng_value *value);

#endif
