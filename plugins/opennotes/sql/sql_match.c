/* SPDX-License-Identifier: MIT */
/* sql_match.c - LIKE and GLOB with checks of the deadline: a pattern with many wildcards takes
 * time in proportion to text times pattern. LIKE ignores the case of every alphabet. */
#include <string.h>
#include <utf8proc.h>

#include "sql_parts.h"

#define PATTERN_MAX 1000      /* bytes, as SQLite's limit */
#define CLOCK_STEPS (1 << 16) /* steps between checks of the deadline */

struct match {
    struct notes_sql_guard *guard;
    struct ng_str text, pattern;
    int32_t escape; /* -1: none */
    uint32_t steps;
    bool over;
};

/* Bytes that are not UTF-8 match themselves, outside the range of code points. */
static int32_t next_char(struct ng_str text, size_t *at)
{
    utf8proc_int32_t c = 0;
    unsigned char first = (unsigned char)text.data[*at];
    if (first < 0x80) {
        (*at)++;
        return first;
    }
    utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)text.data + *at,
                                            (utf8proc_ssize_t)(text.len - *at), &c);
    if (len < 1) {
        (*at)++;
        return 0x110000 + first;
    }
    *at += (size_t)len;
    return c;
}

static int32_t fold_char(int32_t c)
{
    if (c < 0x80) {
        if (c >= 'A' && c <= 'Z') {
            return c + 32;
        }
        return c;
    }
    if (c >= 0x110000) {
        return c;
    }
    return utf8proc_tolower(c);
}

/* Counts a step; true: the deadline has passed. */
static bool step(struct match *match)
{
    if (++match->steps % CLOCK_STEPS == 0 && notes_sql_guard_over(match->guard)) {
        match->over = true;
    }
    return match->over;
}

/* One element of a LIKE pattern that is not '%' against one character. */
static bool like_one(const struct match *match, size_t *p, size_t *t)
{
    int32_t c = next_char(match->pattern, p);
    if (c == match->escape && match->escape >= 0) {
        if (*p >= match->pattern.len) {
            return false;
        }
        c = next_char(match->pattern, p);
    } else if (c == '_') {
        (void)next_char(match->text, t);
        return true;
    }
    return fold_char(c) == fold_char(next_char(match->text, t));
}

/* The set at pattern[*p], behind '['; false: it does not end, or the character is not in it. */
static bool glob_set(struct ng_str pattern, size_t *p, int32_t c)
{
    bool inverted = *p < pattern.len && pattern.data[*p] == '^';
    bool in = false;
    *p += inverted;
    for (size_t first = *p; *p < pattern.len;) {
        bool at_first = *p == first;
        int32_t low = next_char(pattern, p);
        if (low == ']' && !at_first) {
            return in != inverted;
        }
        int32_t high = low;
        if (*p + 1 < pattern.len && pattern.data[*p] == '-' && pattern.data[*p + 1] != ']') {
            (*p)++;
            high = next_char(pattern, p);
        }
        in = in || (c >= low && c <= high);
    }
    return false;
}

static bool glob_one(const struct match *match, size_t *p, size_t *t)
{
    int32_t c = next_char(match->pattern, p);
    int32_t have = next_char(match->text, t);
    if (c == '[') {
        return glob_set(match->pattern, p, have);
    }
    return c == '?' || c == have;
}

/* Skips characters that cannot begin a match of the part behind a wildcard: an optimization. */
static size_t skip_ascii(const struct match *match, size_t p, size_t t, char any)
{
    if (p >= match->pattern.len || (unsigned char)match->pattern.data[p] >= 0x80 ||
        strchr("%_*?[", match->pattern.data[p]) != NULL || match->escape >= 0) {
        return t;
    }
    char wanted = match->pattern.data[p];
    char other = wanted;
    if (any == '%') {
        wanted = (char)fold_char(wanted);
        if (wanted >= 'a' && wanted <= 'z') {
            other = (char)(wanted - 32);
        } else {
            other = wanted;
        }
    }
    while (t < match->text.len && (unsigned char)match->text.data[t] < 0x80 &&
           match->text.data[t] != wanted && match->text.data[t] != other) {
        t++;
    }
    return t;
}

/* Only the last wildcard must be tried at other places: the part before it has matched at the
 * earliest place. */
static bool matches(struct match *match, char any,
                    bool (*one)(const struct match *match, size_t *p, size_t *t))
{
    size_t p = 0;
    size_t t = 0;
    size_t star = SIZE_MAX; /* behind the last wildcard */
    size_t star_text = 0;
    while (t < match->text.len) {
        if (step(match)) {
            return false;
        }
        if (p < match->pattern.len && match->pattern.data[p] == any && match->escape != any) {
            star = ++p;
            t = skip_ascii(match, p, t, any);
            star_text = t;
            continue;
        }
        size_t next_p = p;
        size_t next_t = t;
        if (p < match->pattern.len && one(match, &next_p, &next_t)) {
            p = next_p;
            t = next_t;
            continue;
        }
        if (star == SIZE_MAX) {
            return false;
        }
        (void)next_char(match->text, &star_text);
        star_text = skip_ascii(match, star, star_text, any);
        p = star;
        t = star_text;
    }
    while (p < match->pattern.len && match->pattern.data[p] == any && match->escape != any) {
        p++;
    }
    return p == match->pattern.len;
}

static bool take_arguments(sqlite3_context *context, sqlite3_value **values,
                           struct match *match)
{
    *match = (struct match){
        .guard = sqlite3_user_data(context),
        .pattern = notes_value_text(values[0]),
        .text = notes_value_text(values[1]),
        .escape = -1,
    };
    if (match->pattern.data == NULL || match->text.data == NULL) {
        return false; /* NULL */
    }
    if (match->pattern.len > PATTERN_MAX) {
        sqlite3_result_error(context, "a LIKE or GLOB pattern has at most 1000 bytes", -1);
        return false;
    }
    return true;
}

static void give_result(sqlite3_context *context, const struct match *match, bool matched)
{
    if (match->over) {
        notes_sql_guard_result(match->guard, context);
    } else {
        sqlite3_result_int(context, matched);
    }
}

void notes_sql_like(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct match match;
    if (!take_arguments(context, values, &match)) {
        return;
    }
    if (count > 2) {
        struct ng_str escape = notes_value_text(values[2]);
        size_t at = 0;
        if (escape.data == NULL) {
            return;
        }
        if (escape.len > 0) {
            match.escape = next_char(escape, &at);
        }
        if (escape.len == 0 || at != escape.len) {
            sqlite3_result_error(context, "ESCAPE expression must be a single character", -1);
            return;
        }
    }
    bool matched = matches(&match, '%', like_one);
    give_result(context, &match, matched);
}

void notes_sql_glob(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct match match;
    (void)count;
    if (take_arguments(context, values, &match)) {
        bool matched = matches(&match, '*', glob_one);
        give_result(context, &match, matched);
    }
}
