/* SPDX-License-Identifier: MIT */
/* json_number.c - JSON numbers by their digits: comparing, integers, doubles, multiples. */
#include "json_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/minmax.h"
#include "core/base/str.h"

/* No double needs more digits than this to be rounded right, because a last digit stands for
 * all dropped digits. */
#define DOUBLE_DIGITS 780

__extension__ typedef unsigned __int128 wide_uint;

static int64_t exponent_of(const char *at, const char *end)
{
    bool negative = at < end && *at == '-';
    int64_t exponent = 0;
    if (at < end && (*at == '-' || *at == '+')) {
        at++;
    }
    for (; at < end && str_is_digit(*at); at++) {
        exponent = exponent * 10 + (*at - '0');
        if (exponent > JSON_EXPONENT_MAX) {
            exponent = JSON_EXPONENT_MAX;
        }
    }
    if (!negative) {
        return exponent;
    }
    return -exponent;
}

struct json_decimal json_decimal_of(struct ng_str number)
{
    struct json_decimal decimal = {.negative = number.len > 0 && number.data[0] == '-'};
    const char *at = number.data;
    const char *end = at + number.len;
    const char *dot = NULL;
    if (decimal.negative) {
        at++;
    }
    const char *mantissa_end = at;
    for (; mantissa_end < end && *mantissa_end != 'e' && *mantissa_end != 'E'; mantissa_end++) {
        if (*mantissa_end == '.') {
            dot = mantissa_end;
        }
    }
    if (dot == NULL) {
        dot = mantissa_end;
    }
    const char *first = at;
    while (first < mantissa_end && !(str_is_digit(*first) && *first != '0')) {
        first++;
    }
    if (first == mantissa_end) {
        decimal.negative = false;
        return decimal;
    }
    const char *last = mantissa_end - 1;
    while (!(str_is_digit(*last) && *last != '0')) {
        last--;
    }
    decimal.digits = first;
    decimal.end = last + 1;
    decimal.count = (size_t)(decimal.end - first) - (first < dot && dot < last);
    if (first < dot) {
        decimal.point = dot - first;
    } else {
        decimal.point = -(first - dot - 1);
    }
    if (mantissa_end < end) {
        decimal.point += exponent_of(mantissa_end + 1, end);
    }
    return decimal;
}

bool json_decimal_is_integer(const struct json_decimal *decimal)
{
    return decimal->count == 0 || decimal->point >= (int64_t)decimal->count;
}

/* The next digit at *at, '0' when there are none left. */
static char next_digit(const char **at, const char *end)
{
    if (*at < end && **at == '.') {
        (*at)++;
    }
    if (*at >= end) {
        return '0';
    }
    char digit = **at;
    (*at)++;
    return digit;
}

int json_decimal_integer(struct ng_str number, int64_t *ret)
{
    struct json_decimal decimal = json_decimal_of(number);
    if (!json_decimal_is_integer(&decimal) || decimal.point > 19) {
        return NG_EINVAL;
    }
    uint64_t limit = (uint64_t)INT64_MAX + decimal.negative;
    uint64_t magnitude = 0; /* at most 19 digits: fits */
    const char *at = decimal.digits;
    for (int64_t i = 0; decimal.count > 0 && i < decimal.point; i++) {
        magnitude = magnitude * 10 + (uint64_t)(next_digit(&at, decimal.end) - '0');
    }
    if (magnitude > limit) {
        return NG_EINVAL;
    }
    if (!decimal.negative) {
        *ret = (int64_t)magnitude;
    } else {
        if (magnitude == limit) {
            *ret = INT64_MIN;
        } else {
            *ret = -(int64_t)magnitude;
        }
    }
    return NG_OK;
}

static int compare_magnitudes(const struct json_decimal *a, const struct json_decimal *b)
{
    if (a->count == 0 || b->count == 0) {
        return (a->count != 0) - (b->count != 0);
    }
    if (a->point != b->point) {
        if (a->point < b->point) {
            return -1;
        }
        return 1;
    }
    const char *left = a->digits;
    const char *right = b->digits;
    size_t count = size_max(a->count, b->count);
    for (size_t i = 0; i < count; i++) {
        char x = next_digit(&left, a->end);
        char y = next_digit(&right, b->end);
        if (x != y) {
            if (x < y) {
                return -1;
            }
            return 1;
        }
    }
    return 0;
}

int json_decimal_compare(const struct json_decimal *a, const struct json_decimal *b)
{
    if (a->negative != b->negative) {
        if (a->negative) {
            return -1;
        }
        return 1;
    }
    int order = compare_magnitudes(a, b);
    if (!a->negative) {
        return order;
    }
    return -order;
}

int json_compare_numbers(struct ng_str a, struct ng_str b)
{
    struct json_decimal left = json_decimal_of(a);
    struct json_decimal right = json_decimal_of(b);
    return json_decimal_compare(&left, &right);
}

bool json_is_integer(const struct ng_value *number)
{
    if (number == NULL || number->type != NG_TYPE_NUMBER) {
        return false;
    }
    struct json_decimal decimal = json_decimal_of(number->text);
    return json_decimal_is_integer(&decimal);
}

static double double_of(const struct json_decimal *decimal)
{
    char text[DOUBLE_DIGITS + 40];
    size_t len = 0;
    if (decimal->count == 0) {
        return 0.0;
    }
    if (decimal->negative) {
        text[len++] = '-';
    }
    text[len++] = '0';
    text[len++] = '.';
    const char *at = decimal->digits;
    size_t digits = size_min(decimal->count, DOUBLE_DIGITS);
    for (size_t i = 0; i < digits; i++) {
        text[len++] = next_digit(&at, decimal->end);
    }
    if (digits < decimal->count) {
        text[len++] = '1'; /* the dropped digits are not zero */
    }
    int64_t exponent = decimal->point;
    if (exponent > 100000) {
        exponent = 100000;
    } else {
        exponent = i64_max(exponent, -100000);
    }
    (void)snprintf(text + len, sizeof(text) - len, "e%d", (int)exponent);
    return strtod(text, NULL);
}

double json_double(const struct ng_value *number)
{
    if (number == NULL || number->type != NG_TYPE_NUMBER) {
        return 0.0;
    }
    struct json_decimal decimal = json_decimal_of(number->text);
    return double_of(&decimal);
}

static uint64_t mul_mod(uint64_t a, uint64_t b, uint64_t modulus)
{
    return (uint64_t)((wide_uint)a * b % modulus);
}

/* The digits (followed by 10^zeros) modulo `modulus`. */
static uint64_t digits_mod(const struct json_decimal *decimal, uint64_t zeros, uint64_t modulus)
{
    uint64_t rest = 0;
    const char *at = decimal->digits;
    for (size_t i = 0; i < decimal->count; i++) {
        uint64_t digit = (uint64_t)(next_digit(&at, decimal->end) - '0');
        rest = (uint64_t)(((wide_uint)rest * 10 + digit) % modulus);
    }
    uint64_t power = 10 % modulus;
    for (; zeros > 0; zeros >>= 1) {
        if ((zeros & 1) != 0) {
            rest = mul_mod(rest, power, modulus);
        }
        power = mul_mod(power, power, modulus);
    }
    return rest;
}

bool json_is_multiple(struct ng_str number, struct ng_str divisor)
{
    struct json_decimal a = json_decimal_of(number);
    struct json_decimal b = json_decimal_of(divisor);
    if (a.count == 0) {
        return true;
    }
    if (b.count == 0) {
        return false;
    }
    if (b.count > JSON_DIVISOR_DIGITS) {
        return fmod(double_of(&a), double_of(&b)) == 0.0;
    }
    /* a = A x 10^i and b = B x 10^j with whole A, B that do not end in 0. */
    int64_t zeros = (a.point - (int64_t)a.count) - (b.point - (int64_t)b.count);
    if (zeros < 0) {
        return false; /* A would have to be a multiple of 10 */
    }
    uint64_t modulus = 0;
    const char *at = b.digits;
    for (size_t i = 0; i < b.count; i++) {
        modulus = modulus * 10 + (uint64_t)(next_digit(&at, b.end) - '0');
    }
    return digits_mod(&a, (uint64_t)zeros, modulus) == 0;
}
