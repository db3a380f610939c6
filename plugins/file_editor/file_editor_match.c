/* SPDX-License-Identifier: MIT */
/*
 * file_editor_match.c - the lines of a text that match a pattern.
 *
 * A plain text is found with memmem(). Everything else is PCRE2, compiled twice. The fast code
 * is JIT code without callouts; its steps cannot be interrupted, so it gets few of them, and
 * short texts. Where that does not suffice, the line is matched by the careful code, which is
 * interpreted, with the limits of regex_replace and a look at the clock every few steps.
 *
 * A pattern for which that changes nothing is matched against several lines at once (a slice),
 * every other one line by line: see is_plain(). Lines without the text that each match has are
 * passed over.
 */
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "file_editor_search.h"

/* Limits of the careful code, as in regex_replace. */
#define MATCH_LIMIT 5000000
#define MATCH_HEAP_LIMIT_KIB 20480
#define MATCH_STEPS 16384 /* between two looks at the clock */
#define MATCH_PATTERN_MAX 65536
#define MATCH_MESSAGE_MAX 256
/* Bytes and steps of the fast code: a bad pattern takes up to bytes * bytes * steps. */
#define MATCH_SLICE 2048
#define MATCH_FAST_LIMIT 200
#define MATCH_STACK ((size_t)512 * 1024) /* of the fast code */
#define MATCH_WANTED_MAX 64              /* bytes of the text that each match has */

struct matcher {
    struct ng_call *call;
    struct ng_str pattern;
    int64_t deadline_ns;
    bool bytes;    /* found by memmem() */
    bool literal;  /* takes no steps to speak of, whatever the text */
    bool plain;    /* may be matched against several lines at once */
    bool line_end; /* has a `$`: not with CR in the lines */
    char wanted[MATCH_WANTED_MAX + UTF8_BYTES_MAX]; /* each line that matches has this text */
    size_t wanted_len;                              /* 0: not known */
    pcre2_code *fast;                               /* NULL: there is none here */
    pcre2_code *careful;
    pcre2_match_data *data;
    pcre2_match_context *fast_context, *careful_context;
    pcre2_jit_stack *stack;
    unsigned steps;
    enum matcher_found stopped; /* by a callout: MATCHER_LATE or MATCHER_CANCELLED */
};

/* ---- compiling */

/* True if a match in several lines at once finds each match of a single line, at the same place
 * (a match that crosses a line end may be found before it). This holds for patterns without
 * look-around, atomic groups, possessive repeats, verbs, `\A`, `\z` and similar. False if
 * unsure. *ret_line_end: the pattern has a `$`. */
static bool is_plain(struct ng_str pattern, bool *ret_line_end)
{
    static const char repeats[] = "*+?}";
    static const char escapes[] = "dDwWsSbBhHt";
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.data[i];
        char next = '\0';
        if (i + 1 < pattern.len) {
            next = pattern.data[i + 1];
        }
        if (c == '\\') {
            bool other = str_is_alpha(next) || str_is_digit(next) || next == '\0';
            if (other && (next == '\0' || strchr(escapes, next) == NULL)) {
                return false;
            }
            i++;
        } else if (c == '(' && (next == '*' || next == '?')) {
            struct ng_str rest = {pattern.data + i, pattern.len - i};
            if (!str_begins(rest, "(?:") && !str_begins(rest, "(?i)")) {
                return false;
            }
            i += 2;
        } else if (next == '+' && c != '\0' && strchr(repeats, c) != NULL) {
            return false;
        }
        *ret_line_end = *ret_line_end || c == '$';
    }
    return true;
}

/* Keeps the run of plain characters if it is the longest so far, and begins a new one. */
static void wanted_end(struct matcher *matcher, struct ng_str *run)
{
    if (run->len > matcher->wanted_len) {
        memcpy(matcher->wanted, run->data, run->len);
        matcher->wanted_len = run->len;
    }
    run->len = 0;
}

/* The place behind a class of characters that begins at `at`. */
static size_t class_end(struct ng_str pattern, size_t at)
{
    at += at + 1 < pattern.len && pattern.data[at + 1] == '^' ? 2 : 1;
    size_t first = at; /* a `]` here is one of the characters */
    while (at < pattern.len && (pattern.data[at] != ']' || at == first)) {
        at += pattern.data[at] == '\\' ? 2 : 1;
    }
    return at;
}

/* Finds the longest text that each match has. Looks only outside of groups, and nowhere in
 * patterns with alternatives. */
static void find_wanted(struct matcher *matcher)
{
    struct ng_str pattern = matcher->pattern;
    char run_data[MATCH_WANTED_MAX + UTF8_BYTES_MAX];
    struct ng_str run = {run_data, 0};
    size_t depth = 0;
    if (memchr(pattern.data, '|', pattern.len) != NULL ||
        str_find(pattern, ng_str_of("(?i)"), 0) != SIZE_MAX ||
        str_find(pattern, ng_str_of("[:"), 0) != SIZE_MAX) {
        return;
    }
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.data[i];
        bool plain = strchr("^$.[]()?*+{}\\", c) == NULL || c == '\0';
        if (c == '\\' && i + 1 < pattern.len) {
            c = pattern.data[++i];
            plain = !str_is_alpha(c);
        } else if (c == '[') {
            i = class_end(pattern, i);
        } else if (c == '(' || c == ')') {
            depth = c == '(' ? depth + 1 : depth - 1;
        } else if ((c == '?' || c == '*' || c == '{') && run.len > 0) {
            do { /* the character before it need not be there */
                run.len--;
            } while (run.len > 0 && !utf8_is_start(run_data[run.len]));
        }
        if (c == '{' && !plain) {
            while (i + 1 < pattern.len && pattern.data[i] != '}') {
                i++;
            }
        }
        if (!plain || depth > 0 || (run.len >= MATCH_WANTED_MAX && utf8_is_start(c))) {
            wanted_end(matcher, &run);
        }
        if (plain && depth == 0) {
            run_data[run.len++] = c;
        }
    }
    wanted_end(matcher, &run);
}

static int matcher_callout(pcre2_callout_block *block, void *user)
{
    struct matcher *matcher = user;
    (void)block;
    if (++matcher->steps % MATCH_STEPS != 0) {
        return 0;
    }
    if (matcher->call->host->cancelled(matcher->call)) {
        matcher->stopped = MATCHER_CANCELLED;
    } else if (clock_monotonic_ns() >= matcher->deadline_ns) {
        matcher->stopped = MATCHER_LATE;
    }
    return matcher->stopped != MATCHER_NONE ? PCRE2_ERROR_CALLOUT : 0;
}

static int matcher_no_memory(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "Out of memory for a search.");
}

static int matcher_fail_pattern(struct ng_call *call, const char *expected, const char *what)
{
    return editor_fail_input(call, "pattern", expected,
                             call->host->format(call, "Invalid `pattern`: %s", what));
}

static int matcher_compile(struct matcher *matcher, uint32_t options, pcre2_code **ret)
{
    int error = 0;
    PCRE2_SIZE offset = 0;
    struct ng_str pattern = matcher->pattern;
    *ret = pcre2_compile((PCRE2_SPTR)pattern.data, pattern.len, options, &error, &offset, NULL);
    if (*ret != NULL) {
        return NG_OK;
    }
    PCRE2_UCHAR message[MATCH_MESSAGE_MAX];
    message[0] = '\0';
    (void)pcre2_get_error_message(error, message, sizeof(message));
    struct ng_str what =
        matcher->call->host->format(matcher->call,
                                    "%s at character %zu. Correct it and try "
                                    "again, or leave `regex` out to find it as plain text",
                                    (const char *)message, (size_t)offset);
    return matcher_fail_pattern(matcher->call, "a regular expression",
                                what.data != NULL ? what.data : "not a regular expression");
}

/* Without JIT (no memory that is writable and executable) all is matched by the careful code.
 */
static void matcher_jit(struct matcher *matcher)
{
    matcher->stack = pcre2_jit_stack_create(MATCH_SLICE, MATCH_STACK, NULL);
    if (matcher->stack == NULL || pcre2_jit_compile(matcher->fast, PCRE2_JIT_COMPLETE) != 0) {
        pcre2_code_free(matcher->fast);
        matcher->fast = NULL;
        return;
    }
    pcre2_jit_stack_assign(matcher->fast_context, NULL, matcher->stack);
}

static int matcher_prepare(struct matcher *matcher, const struct matcher_options *options)
{
    uint32_t common = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
    if (options->ignore_case) {
        common |= PCRE2_CASELESS;
    }
    uint32_t careful = common | PCRE2_LITERAL;
    uint32_t fast = careful;
    if (options->regex) {
        fast = common | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
        careful = fast | PCRE2_AUTO_CALLOUT;
    }
    int rc = matcher_compile(matcher, careful, &matcher->careful);
    if (rc == NG_OK) {
        rc = matcher_compile(matcher, fast, &matcher->fast);
    }
    if (rc != NG_OK) {
        return rc;
    }
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->fast_context = pcre2_match_context_create(NULL);
    matcher->careful_context = pcre2_match_context_create(NULL);
    if (matcher->data == NULL || matcher->fast_context == NULL ||
        matcher->careful_context == NULL) {
        return matcher_no_memory(matcher->call);
    }
    (void)pcre2_set_match_limit(matcher->fast_context, MATCH_FAST_LIMIT);
    (void)pcre2_set_match_limit(matcher->careful_context, MATCH_LIMIT);
    (void)pcre2_set_heap_limit(matcher->careful_context, MATCH_HEAP_LIMIT_KIB);
    (void)pcre2_set_callout(matcher->careful_context, matcher_callout, matcher);
    matcher_jit(matcher);
    return NG_OK;
}

int matcher_open(struct ng_call *call, const struct matcher_options *options,
                 struct matcher **ret)
{
    struct ng_str pattern = options->pattern;
    if (pattern.len == 0) {
        return matcher_fail_pattern(call, "a text",
                                    "it is empty. Give the text that the lines have");
    }
    if (pattern.len > MATCH_PATTERN_MAX) {
        return matcher_fail_pattern(call, "at most 65536 bytes",
                                    "it has more than 65536 bytes. Give a part of it");
    }
    if (!options->regex && memchr(pattern.data, '\n', pattern.len) != NULL) {
        return matcher_fail_pattern(
            call, "one line",
            "it has several lines, and lines are searched one by one. Give one of them");
    }
    struct matcher *matcher = alloc_zeroed(1, sizeof(*matcher));
    if (matcher == NULL) {
        return matcher_no_memory(call);
    }
    *ret = matcher;
    matcher->call = call;
    matcher->pattern = pattern;
    matcher->deadline_ns = options->deadline_ns;
    matcher->literal = !options->regex;
    matcher->bytes = !options->regex && !options->ignore_case;
    matcher->plain = !options->regex || is_plain(pattern, &matcher->line_end);
    if (options->regex && matcher->plain && !options->ignore_case) {
        find_wanted(matcher);
    }
    return matcher->bytes ? NG_OK : matcher_prepare(matcher, options);
}

void matcher_close(struct matcher *matcher)
{
    if (matcher == NULL) {
        return;
    }
    pcre2_code_free(matcher->fast);
    pcre2_code_free(matcher->careful);
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->fast_context);
    pcre2_match_context_free(matcher->careful_context);
    pcre2_jit_stack_free(matcher->stack);
    free(matcher);
}

/* ---- matching */

/* The line around `at`, within text.len. */
static struct match_line line_at(struct ng_str text, size_t at)
{
    const char *before = at > 0 ? memrchr(text.data, '\n', at) : NULL;
    const char *after = memchr(text.data + at, '\n', text.len - at);
    struct match_line line = {.end = text.len, .next = text.len};
    if (before != NULL) {
        line.start = (size_t)(before - text.data) + 1;
    }
    if (after != NULL) {
        line.end = (size_t)(after - text.data);
        line.next = line.end + 1;
        line.end -= line.end > line.start && text.data[line.end - 1] == '\r';
    }
    return line;
}

/* Matches the text alone, without its context. */
static enum matcher_found match_careful(struct matcher *matcher, struct ng_str text,
                                        size_t *ret_from, size_t *ret_to)
{
    int rc = pcre2_match(matcher->careful, (PCRE2_SPTR)text.data, text.len, 0, 0, matcher->data,
                         matcher->careful_context);
    if (rc < 0) {
        bool stopped = matcher->stopped != MATCHER_NONE;
        return rc == PCRE2_ERROR_NOMATCH || stopped ? matcher->stopped : MATCHER_FAILED;
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(matcher->data);
    *ret_from = size_min(at[0], at[1]); /* \K in a look-around: the end may come first */
    *ret_to = size_max(at[0], at[1]);
    return MATCHER_LINE;
}

/* The same by the fast code. MATCHER_FAILED: it takes the careful one. */
static enum matcher_found match_fast(struct matcher *matcher, struct ng_str text,
                                     size_t *ret_from, size_t *ret_to)
{
    if (matcher->fast == NULL) {
        return MATCHER_FAILED;
    }
    int rc = pcre2_match(matcher->fast, (PCRE2_SPTR)text.data, text.len, 0, 0, matcher->data,
                         matcher->fast_context);
    if (rc < 0) {
        return rc == PCRE2_ERROR_NOMATCH ? MATCHER_NONE : MATCHER_FAILED;
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(matcher->data);
    *ret_from = size_min(at[0], at[1]);
    *ret_to = size_max(at[0], at[1]);
    return MATCHER_LINE;
}

static enum matcher_found match_one(struct matcher *matcher, struct ng_str text,
                                    struct match_line *line)
{
    struct ng_str alone = {text.data + line->start, line->end - line->start};
    size_t from = 0;
    size_t to = 0;
    enum matcher_found found = MATCHER_FAILED;
    if (alone.len <= MATCH_SLICE || matcher->literal) {
        found = match_fast(matcher, alone, &from, &to);
    }
    if (found == MATCHER_FAILED) {
        found = match_careful(matcher, alone, &from, &to);
    }
    line->from = line->start + from;
    line->to = line->start + to;
    return found;
}

/* Line by line. */
static enum matcher_found match_lines(struct matcher *matcher, struct ng_str text, size_t at,
                                      struct match_line *ret)
{
    enum matcher_found found = MATCHER_NONE;
    while (found == MATCHER_NONE && at < text.len) {
        *ret = line_at(text, at);
        found = match_one(matcher, text, ret);
        at = ret->next;
    }
    return found;
}

static enum matcher_found match_slice(struct matcher *matcher, struct ng_str text, size_t at,
                                      struct match_line *ret)
{
    bool whole = matcher->plain &&
                 !(matcher->line_end && memchr(text.data + at, '\r', text.len - at) != NULL);
    while (whole && at < text.len) {
        size_t from = 0;
        size_t to = 0;
        struct ng_str rest = {text.data + at, text.len - at};
        enum matcher_found found = match_fast(matcher, rest, &from, &to);
        if (found == MATCHER_NONE) {
            return found;
        }
        if (found != MATCHER_LINE) {
            break;
        }
        /* An empty match behind the last LF is in no line. */
        *ret = line_at(text, size_min(at + from, text.len - 1));
        ret->from = at + from;
        ret->to = at + to;
        if (ret->to > ret->end) {
            found = match_one(matcher, text, ret);
        }
        if (found != MATCHER_NONE) {
            return found;
        }
        at = ret->next;
    }
    return match_lines(matcher, text, at, ret);
}

static enum matcher_found match_bytes(const struct matcher *matcher, struct ng_str text,
                                      size_t at, struct match_line *ret)
{
    struct ng_str wanted = matcher->pattern;
    const char *found = NULL;
    while ((found = memmem(text.data + at, text.len - at, wanted.data, wanted.len)) != NULL) {
        size_t from = (size_t)(found - text.data);
        *ret = line_at(text, from);
        ret->from = from;
        ret->to = from + wanted.len;
        if (ret->to <= ret->end) {
            return MATCHER_LINE;
        }
        at = ret->next; /* it ends with the CR of the line's end */
    }
    return MATCHER_NONE;
}

enum matcher_found matcher_next(struct matcher *matcher, struct ng_str text, size_t at,
                                struct match_line *ret)
{
    if (matcher->bytes) {
        return match_bytes(matcher, text, at, ret);
    }
    enum matcher_found found = MATCHER_NONE;
    while (found == MATCHER_NONE && at < text.len) {
        size_t end = text.len;
        if (matcher->wanted_len > 0) {
            const char *next =
                memmem(text.data + at, text.len - at, matcher->wanted, matcher->wanted_len);
            if (next == NULL) {
                return MATCHER_NONE;
            }
            at = line_at(text, (size_t)(next - text.data)).start;
        }
        if (end - at > MATCH_SLICE && !matcher->literal) {
            const char *last = memrchr(text.data + at, '\n', MATCH_SLICE);
            end = last != NULL ? (size_t)(last - text.data) + 1 : line_at(text, at).next;
        }
        struct ng_str slice = {text.data, end};
        found = end - at > MATCH_SLICE && !matcher->literal
                    ? match_lines(matcher, slice, at, ret)
                    : match_slice(matcher, slice, at, ret);
        at = end;
    }
    return found;
}
