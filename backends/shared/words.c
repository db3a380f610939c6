/* SPDX-License-Identifier: MIT */
/* words.c - cuts a text into tokens for searches. */
#include "words.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "core/base/str.h"
#include "core/base/text/stem.h"
#include "core/base/utf8.h"

struct range {
    utf8proc_int32_t from, to;
    enum script script;
};

/* Sorted. Characters outside of these ranges belong to scripts with spaces. */
static const struct range ranges[] = {
    {0x0E00, 0x0EFF, SCRIPT_JOINED},   {0x1000, 0x109F, SCRIPT_JOINED},
    {0x1100, 0x11FF, SCRIPT_PAIRS},    {0x1780, 0x17FF, SCRIPT_JOINED},
    {0x3005, 0x3007, SCRIPT_PAIRS},    {0x3021, 0x3029, SCRIPT_PAIRS},
    {0x3031, 0x3035, SCRIPT_KATAKANA}, {0x3041, 0x309F, SCRIPT_HIRAGANA},
    {0x30A0, 0x30FF, SCRIPT_KATAKANA}, {0x3100, 0x31BF, SCRIPT_PAIRS},
    {0x31F0, 0x31FF, SCRIPT_KATAKANA}, {0x3400, 0x4DBF, SCRIPT_PAIRS},
    {0x4E00, 0x9FFF, SCRIPT_PAIRS},    {0xA960, 0xA97F, SCRIPT_PAIRS},
    {0xAC00, 0xD7FF, SCRIPT_PAIRS},    {0xF900, 0xFAFF, SCRIPT_PAIRS},
    {0xFF66, 0xFF9F, SCRIPT_KATAKANA}, {0xFFA0, 0xFFDC, SCRIPT_PAIRS},
    {0x20000, 0x3FFFF, SCRIPT_PAIRS},
};

static enum script script_of(utf8proc_int32_t code)
{
    if (code < ranges[0].from) {
        return SCRIPT_SPACED;
    }
    for (size_t i = 0; i < NG_COUNT(ranges) && code >= ranges[i].from; i++) {
        if (code <= ranges[i].to) {
            return ranges[i].script;
        }
    }
    return SCRIPT_SPACED;
}

static bool is_ascii_word(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_word_category(utf8proc_category_t category)
{
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) ||
           category == UTF8PROC_CATEGORY_CO;
}

/* Length of the word character at the position; 0: it is none, and *ret_step skips it. */
static size_t word_char(struct ng_str text, size_t at, size_t *ret_step,
                        enum script *ret_script)
{
    unsigned char c = (unsigned char)text.data[at];
    *ret_step = 1;
    *ret_script = SCRIPT_SPACED;
    if (c < 0x80) {
        if (is_ascii_word(c)) {
            return 1;
        }
        return 0;
    }
    utf8proc_int32_t code = 0;
    utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)text.data + at,
                                            (utf8proc_ssize_t)(text.len - at), &code);
    if (len <= 0) {
        return 0;
    }
    *ret_step = (size_t)len;
    *ret_script = script_of(code);
    if (!is_word_category(utf8proc_category(code))) {
        return 0;
    }
    return (size_t)len;
}

size_t word_step(struct ng_str text, size_t at)
{
    size_t i = at + 1;
    while (i < text.len && !utf8_is_start(text.data[i])) {
        i++;
    }
    return i - at;
}

bool word_run(struct ng_str text, bool joined, size_t *at, struct ng_str *ret,
              enum script *ret_script)
{
    size_t step = 0;
    size_t i = *at;
    enum script next = SCRIPT_SPACED;
    while (i < text.len && word_char(text, i, &step, ret_script) == 0) {
        i += step;
    }
    size_t from = i;
    for (; i < text.len && word_char(text, i, &step, &next) > 0; i += step) {
        bool same;
        if (joined) {
            same = (next == SCRIPT_SPACED) == (*ret_script == SCRIPT_SPACED);
        } else {
            same = next == *ret_script;
        }
        if (!same) {
            break;
        }
    }
    *at = i;
    *ret = str_of(text.data + from, i - from);
    return i > from;
}

int word_fold(struct ng_str word, enum script script, struct bytes *ret)
{
    bool ascii = true;
    if (script == SCRIPT_SPACED && word.len > WORD_BYTES_MAX) {
        word = utf8_cut(word, WORD_BYTES_MAX);
    }
    int rc = bytes_set(ret, word);
    for (size_t i = 0; i < ret->len && rc == NG_OK; i++) {
        unsigned char c = (unsigned char)ret->data[i];
        ascii = ascii && c < 0x80;
        ret->data[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    if (rc != NG_OK || ascii) {
        return rc;
    }
    int options = UTF8PROC_STABLE | UTF8PROC_CASEFOLD | UTF8PROC_COMPAT;
    if (script == SCRIPT_SPACED) {
        options |= UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK;
    } else {
        options |= UTF8PROC_COMPOSE;
    }
    utf8proc_uint8_t *folded = NULL;
    utf8proc_ssize_t len =
        utf8proc_map((const utf8proc_uint8_t *)word.data, (utf8proc_ssize_t)word.len, &folded,
                     (utf8proc_option_t)options);
    if (len > 0) {
        rc = bytes_set(ret, str_of((const char *)folded, (size_t)len));
    }
    free(folded);
    return rc;
}

/* ---- tokens ---- */

struct ng_str token_stem(struct ng_str token, char *buf)
{
    if (token.len == 0 || token.len > WORD_BYTES_MAX) {
        return str_of(NULL, 0);
    }
    memcpy(buf, token.data, token.len);
    size_t len = word_stem(buf, token.len);
    struct ng_str stem = str_of(buf, len);
    return str_equal(stem, token) ? str_of(NULL, 0) : stem;
}

struct token_scan {
    struct ng_str text;
    struct bytes folded;
    token_fn *fn;
    void *user;
};

static int scan_word(struct token_scan *scan, struct ng_str run)
{
    size_t from = (size_t)(run.data - scan->text.data);
    if (word_fold(run, SCRIPT_SPACED, &scan->folded) != NG_OK) {
        return NG_EINTERNAL;
    }
    struct token token = {.text = bytes_str(&scan->folded), .from = from, .to = from + run.len};
    return scan->fn(scan->user, &token);
}

/* Folding may change the number of characters: positions are approximate. */
static int scan_pairs(struct token_scan *scan, struct ng_str run, enum script script)
{
    size_t from = (size_t)(run.data - scan->text.data);
    size_t end = from + run.len;
    int rc = word_fold(run, script, &scan->folded);
    struct ng_str all = bytes_str(&scan->folded);
    for (size_t at = 0; at < all.len && rc == NG_OK;) {
        size_t step = word_step(all, at);
        size_t len = step;
        if (at + step < all.len) {
            len = step + word_step(all, at + step);
        }
        size_t next = end;
        if (from < end) {
            next = from + word_step(scan->text, from);
        }
        size_t to = end;
        if (next < end) {
            to = next + word_step(scan->text, next);
        }
        struct token token = {.text = str_of(all.data + at, len), .from = from, .to = to};
        rc = scan->fn(scan->user, &token);
        if (next < end) {
            from = next;
        }
        at += step;
    }
    return rc;
}

int tokens_each(struct ng_str text, token_fn *fn, void *user)
{
    struct token_scan scan = {.text = text, .fn = fn, .user = user};
    struct ng_str run;
    enum script script = SCRIPT_SPACED;
    size_t at = 0;
    int rc = NG_OK;
    while (rc == NG_OK && word_run(text, true, &at, &run, &script)) {
        if (script == SCRIPT_SPACED) {
            rc = scan_word(&scan, run);
        } else {
            rc = scan_pairs(&scan, run, script);
        }
    }
    bytes_done(&scan.folded);
    return rc;
}

struct skip {
    size_t left, place;
};

static int skip_token(void *user, const struct token *token)
{
    struct skip *skip = user;
    if (skip->left > 0) {
        skip->left--;
        return 0;
    }
    skip->place = token->from;
    return 1;
}

int tokens_skip(struct ng_str text, size_t count, size_t *ret)
{
    struct skip skip = {count, SIZE_MAX};
    int rc = tokens_each(text, skip_token, &skip);
    *ret = skip.place;
    return rc < 0 ? rc : NG_OK;
}
