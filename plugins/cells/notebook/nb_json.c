/* SPDX-License-Identifier: MIT */
/* nb_json.c - strict JSON parser for files that Python writes: checks the syntax and finds the
 * spans of values. */
#include "core/base/text/hex.h"
#include "core/base/utf8.h"
#include "nb_scan.h"

#include <stdio.h>
#include <string.h>

bool nb_scan_fail(struct nb_scan *scan, enum nb_fault fault, size_t at, const char *what)
{
    size_t line = 1;
    size_t column = 1; /* in characters */
    for (size_t i = scan->start; i < at && i < scan->bytes.len; i++) {
        char c = scan->bytes.data[i];
        column += utf8_is_start(c);
        if (c == '\n') {
            line++;
            column = 1;
        }
    }
    if (scan->error->fault == NB_FINE) {
        scan->error->fault = fault;
        (void)snprintf(scan->error->text, sizeof(scan->error->text),
                       "%s (line %zu, column %zu)", what, line, column);
    }
    return false;
}

/* Conflict markers of git. */
static bool at_merge_mark(const struct nb_scan *scan)
{
    static const char *const marks[] = {"<<<<<<<", "=======", ">>>>>>>", "|||||||"};
    bool found = false;
    for (size_t i = 0; i < NG_COUNT(marks) && !found; i++) {
        size_t len = strlen(marks[i]);
        found = scan->bytes.len - scan->at >= len &&
                memcmp(scan->bytes.data + scan->at, marks[i], len) == 0;
    }
    return found;
}

static bool fail_json(struct nb_scan *scan, const char *what)
{
    if (scan->at >= scan->bytes.len) {
        return nb_scan_fail(scan, NB_NOT_JSON, scan->at,
                            "it is cut short: its JSON does not end");
    }
    if (at_merge_mark(scan)) {
        return nb_scan_fail(scan, NB_NOT_JSON, scan->at,
                            "it has conflict markers of a merge: resolve the conflicts first");
    }
    return nb_scan_fail(scan, NB_NOT_JSON, scan->at, what);
}

void nb_scan_space(struct nb_scan *scan)
{
    const char *data = scan->bytes.data;
    while (scan->at < scan->bytes.len && (data[scan->at] == ' ' || data[scan->at] == '\n' ||
                                          data[scan->at] == '\r' || data[scan->at] == '\t')) {
        scan->at++;
    }
}

/* Parses an escape after its backslash. Lone surrogates are accepted: real files have them. */
static bool scan_escape(struct nb_scan *scan)
{
    const char *data = scan->bytes.data;
    if (scan->at >= scan->bytes.len) {
        return fail_json(scan, "");
    }
    char c = data[scan->at++];
    if (c != 'u') {
        return (strchr("\"\\/bfnrt", c) != NULL && c != '\0') ||
               nb_scan_fail(scan, NB_NOT_JSON, scan->at - 2, "this escape does not exist");
    }
    for (int i = 0; i < 4; i++, scan->at++) {
        if (scan->at >= scan->bytes.len || hex_digit(data[scan->at]) < 0) {
            return fail_json(scan, "\\u needs four hexadecimal digits");
        }
    }
    return true;
}

/* Non-zero if one of the eight bytes is a quote, a backslash, a control character or not ASCII.
 */
static uint64_t not_plain(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t high = 0x8080808080808080u;
    uint64_t quote = word ^ (ones * '"');
    uint64_t backslash = word ^ (ones * '\\');
    /* For a byte below 0x80 the subtraction sets the high bit if it is smaller. */
    return (word | (word - ones * ' ') | (quote - ones) | (backslash - ones)) & high;
}

/* Skips plain bytes: images make up most of a file. */
static size_t after_plain(struct ng_str bytes, size_t at)
{
    uint64_t word;
    const char *p = bytes.data + at;
    const char *end = bytes.data + bytes.len;
    while ((size_t)(end - p) >= sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        if (not_plain(word) != 0) {
            break;
        }
        p += sizeof(word);
    }
    while (p < end && (signed char)*p >= ' ' && *p != '"' && *p != '\\') {
        p++; /* non-ASCII bytes are negative as signed char */
    }
    return (size_t)(p - bytes.data);
}

static bool scan_string(struct nb_scan *scan, struct nb_span *ret)
{
    const char *data = scan->bytes.data;
    size_t start = scan->at;
    if (scan->at >= scan->bytes.len || data[scan->at] != '"') {
        return fail_json(scan, "a string is missing");
    }
    scan->at++;
    while (scan->at < scan->bytes.len) {
        scan->at = after_plain(scan->bytes, scan->at);
        if (scan->at >= scan->bytes.len) {
            break;
        }
        unsigned char c = (unsigned char)data[scan->at];
        if (c == '"') {
            scan->at++;
            *ret = (struct nb_span){start, scan->at - start};
            return true;
        }
        if (c == '\\') {
            scan->at++;
            if (!scan_escape(scan)) {
                return false;
            }
        } else if (c < 0x20) {
            return fail_json(scan, "a control character stands unescaped in a string");
        } else {
            size_t len = utf8_length(scan->bytes, scan->at);
            if (len == 0) {
                return nb_scan_fail(scan, NB_NOT_UTF8, scan->at, "it is not UTF-8");
            }
            scan->at += len;
        }
    }
    return fail_json(scan, "");
}

static size_t scan_digits(struct nb_scan *scan)
{
    size_t start = scan->at;
    while (scan->at < scan->bytes.len && scan->bytes.data[scan->at] >= '0' &&
           scan->bytes.data[scan->at] <= '9') {
        scan->at++;
    }
    return scan->at - start;
}

bool nb_scan_is(const struct nb_scan *scan, char c)
{
    return scan->at < scan->bytes.len && scan->bytes.data[scan->at] == c;
}

static bool scan_number(struct nb_scan *scan)
{
    size_t start = scan->at;
    scan->at += nb_scan_is(scan, '-');
    bool zero = nb_scan_is(scan, '0');
    size_t digits = scan_digits(scan);
    if (zero && digits > 1) {
        scan->at = start;
        return fail_json(scan, "this is not a JSON value");
    }
    if (digits == 0) {
        return fail_json(scan, "this is not a JSON value");
    }
    if (nb_scan_is(scan, '.')) {
        scan->at++;
        if (scan_digits(scan) == 0) {
            return fail_json(scan, "digits are missing after the point");
        }
    }
    if (nb_scan_is(scan, 'e') || nb_scan_is(scan, 'E')) {
        scan->at++;
        scan->at += nb_scan_is(scan, '+') || nb_scan_is(scan, '-');
        if (scan_digits(scan) == 0) {
            return fail_json(scan, "digits are missing in the exponent");
        }
    }
    return true;
}

static bool scan_word(struct nb_scan *scan)
{
    /* The last three are written and read by Python. */
    static const char *const words[] = {"true", "false",    "null",
                                        "NaN",  "Infinity", "-Infinity"};
    for (size_t i = 0; i < NG_COUNT(words); i++) {
        size_t len = strlen(words[i]);
        if (scan->bytes.len - scan->at >= len &&
            memcmp(scan->bytes.data + scan->at, words[i], len) == 0) {
            scan->at += len;
            return true;
        }
    }
    return false;
}

static bool scan_any_member(struct nb_scan *scan, struct nb_span name, void *user)
{
    struct nb_span value;
    (void)name;
    (void)user;
    return nb_scan_value(scan, &value);
}

static bool scan_end(struct nb_scan *scan, char end)
{
    if (!nb_scan_is(scan, end)) {
        return false;
    }
    scan->at++;
    scan->depth--;
    return true;
}

static bool scan_deeper(struct nb_scan *scan, char end, bool *ret_end)
{
    if (++scan->depth > NB_DEPTH_MAX) {
        return nb_scan_fail(scan, NB_DEEP, scan->at, "its JSON is nested too deep");
    }
    scan->at++;
    nb_scan_space(scan);
    *ret_end = scan_end(scan, end);
    return true;
}

/* Parses a comma or the end of the container. */
static bool scan_next(struct nb_scan *scan, char end, bool *ret_end)
{
    nb_scan_space(scan);
    *ret_end = scan_end(scan, end);
    if (*ret_end) {
        return true;
    }
    if (!nb_scan_is(scan, ',')) {
        return fail_json(scan, "a comma or the closing bracket is missing");
    }
    scan->at++;
    nb_scan_space(scan);
    return true;
}

bool nb_scan_object(struct nb_scan *scan, nb_member_fn *member, void *user, struct nb_span *ret)
{
    size_t start = scan->at;
    bool end = false;
    if (!scan_deeper(scan, '}', &end)) {
        return false;
    }
    while (!end) {
        struct nb_span name;
        if (!scan_string(scan, &name)) {
            return false;
        }
        nb_scan_space(scan);
        if (!nb_scan_is(scan, ':')) {
            return fail_json(scan, "a colon is missing");
        }
        scan->at++;
        nb_scan_space(scan);
        if (!member(scan, name, user) || !scan_next(scan, '}', &end)) {
            return false;
        }
    }
    *ret = (struct nb_span){start, scan->at - start};
    return true;
}

bool nb_scan_array(struct nb_scan *scan, bool (*element)(struct nb_scan *scan, void *user),
                   void *user, struct nb_span *ret)
{
    size_t start = scan->at;
    bool end = false;
    if (!scan_deeper(scan, ']', &end)) {
        return false;
    }
    while (!end) {
        if (!element(scan, user) || !scan_next(scan, ']', &end)) {
            return false;
        }
    }
    *ret = (struct nb_span){start, scan->at - start};
    return true;
}

static bool scan_any_element(struct nb_scan *scan, void *user)
{
    struct nb_span value;
    (void)user;
    return nb_scan_value(scan, &value);
}

bool nb_scan_value(struct nb_scan *scan, struct nb_span *ret)
{
    size_t start = scan->at;
    if (nb_scan_is(scan, '{')) {
        return nb_scan_object(scan, scan_any_member, NULL, ret);
    }
    if (nb_scan_is(scan, '[')) {
        return nb_scan_array(scan, scan_any_element, NULL, ret);
    }
    if (nb_scan_is(scan, '"')) {
        return scan_string(scan, ret);
    }
    if (!scan_word(scan) && !scan_number(scan)) {
        return false;
    }
    *ret = (struct nb_span){start, scan->at - start};
    return true;
}

bool nb_check(struct ng_str json)
{
    struct nb nothing = {.cell_count = 0};
    struct nb_error ignored = {.fault = NB_FINE};
    struct nb_scan scan = {
        .bytes = json, .nb = &nothing, .error = &ignored, .depth = NB_DEPTH_AROUND};
    struct nb_span value;
    nb_scan_space(&scan);
    if (!nb_scan_value(&scan, &value)) {
        return false;
    }
    nb_scan_space(&scan);
    return scan.at == json.len;
}
