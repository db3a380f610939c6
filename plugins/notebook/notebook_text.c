/* SPDX-License-Identifier: MIT */
/* notebook_text.c - counts, finds, numbers and places lines. */
#include "notebook_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "notebook.h"

#define ONES UINT64_C(0x0101010101010101)
/* Words that are counted in one-byte counters before these can overflow. */
#define WORDS_AT_ONCE 255

int64_t notebook_lines(struct ng_str text)
{
    size_t count = 1;
    size_t at = 0;
    while (text.len - at >= sizeof(uint64_t)) {
        uint64_t counts = 0; /* one for each byte of a word */
        for (int i = 0; i < WORDS_AT_ONCE && text.len - at >= sizeof(uint64_t); i++) {
            uint64_t word;
            memcpy(&word, text.data + at, sizeof(word));
            word ^= ONES * '\n';
            /* The high bit of a byte says that it is no line end. */
            uint64_t other = ((word & (ONES * 0x7f)) + ONES * 0x7f) | word;
            counts += (~other >> 7) & ONES;
            at += sizeof(uint64_t);
        }
        for (; counts > 0; counts >>= 8) {
            count += counts & 0xff;
        }
    }
    for (; at < text.len; at++) {
        count += text.data[at] == '\n';
    }
    return (int64_t)count;
}

size_t notebook_line_start(struct ng_str text, int64_t line)
{
    size_t at = 0;
    for (int64_t i = 1; i < line && at < text.len; i++) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        if (end == NULL) {
            return text.len;
        }
        at = (size_t)(end - text.data) + 1;
    }
    return at;
}

/* Length of the line that begins at `at`, without its '\n'. */
static size_t notebook_line_length(struct ng_str text, size_t at)
{
    if (at >= text.len) {
        return 0;
    }
    const char *end = memchr(text.data + at, '\n', text.len - at);
    if (end == NULL) {
        return text.len - at;
    }
    return (size_t)(end - text.data) - at;
}

uint64_t notebook_line_end(struct ng_str text, int64_t line)
{
    size_t at = notebook_line_start(text, line);
    return at + notebook_line_length(text, at);
}

bool notebook_find(struct ng_str text, struct ng_str needle, uint64_t *ret_at)
{
    if (needle.len == 0) {
        *ret_at = 0;
        return true;
    }
    size_t hit = str_find(text, needle, 0);
    if (hit == SIZE_MAX) {
        return false;
    }
    *ret_at = hit;
    return true;
}

int64_t notebook_find_line(struct ng_str text, struct ng_str needle)
{
    uint64_t at = 0;
    if (needle.len > 0 && memchr(needle.data, '\n', needle.len) != NULL) {
        return 0;
    }
    if (!notebook_find(text, needle, &at)) {
        return 0;
    }
    struct ng_str before = {text.data, (size_t)at};
    return notebook_lines(before);
}

bool notebook_integer(struct ng_str text, int64_t *ret_number)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    size_t at = negative;
    if (at == text.len) {
        return false;
    }
    int64_t number = 0;
    for (; at < text.len; at++) {
        char c = text.data[at];
        if (c < '0' || c > '9') {
            return false;
        }
        number = i64_min(number, (INT64_MAX - 9) / 10) * 10 + (c - '0');
    }
    *ret_number = negative ? -number : number;
    return true;
}

bool notebook_range(int64_t lines, int64_t a, int64_t b, int64_t *ret_first, int64_t *ret_last)
{
    if (a < 0) {
        a += lines + 1;
    }
    if (b < 0) {
        b += lines + 1;
    }
    *ret_first = i64_max(a, 1);
    *ret_last = i64_min(b, lines);
    return *ret_first <= *ret_last;
}

/* Writes the separator and the number of a line; returns its bytes. */
static size_t notebook_label(char label[NOTEBOOK_LABEL_MAX], int64_t line, int64_t first)
{
    return (size_t)snprintf(label, NOTEBOOK_LABEL_MAX, "%s%lld: ", line == first ? "" : "\n",
                            (long long)line);
}

int64_t notebook_fitting(struct ng_str text, int64_t first, int64_t last, size_t room,
                         size_t *ret_bytes)
{
    char label[NOTEBOOK_LABEL_MAX];
    size_t at = notebook_line_start(text, first);
    int64_t line = first;
    *ret_bytes = 0;
    for (; line <= last; line++) {
        size_t len = notebook_line_length(text, at);
        size_t bytes = notebook_label(label, line, first) + len;
        if (bytes > room - *ret_bytes) {
            break;
        }
        *ret_bytes += bytes;
        at += len + 1;
    }
    return line - first;
}

size_t notebook_number(struct ng_str text, int64_t first, int64_t last, char *out)
{
    size_t bytes = 0;
    size_t at = notebook_line_start(text, first);
    for (int64_t line = first; line <= last; line++) {
        char label[NOTEBOOK_LABEL_MAX];
        size_t label_len = notebook_label(label, line, first);
        size_t len = notebook_line_length(text, at);
        memcpy(out + bytes, label, label_len);
        if (len > 0) {
            memcpy(out + bytes + label_len, text.data + at, len);
        }
        bytes += label_len + len;
        at += len + 1;
    }
    return bytes;
}

bool notebook_place(int64_t lines, int64_t number, int64_t *ret_after)
{
    if (number > lines + 1 || number < -(lines + 1)) {
        return false;
    }
    *ret_after = i64_min(number, lines);
    if (number < 0) {
        *ret_after = lines + number + 1;
    }
    return true;
}

int64_t notebook_stored_lines(struct ng_call *call, const struct ng_doc *row)
{
    const struct ng_value *body = row->body;
    int64_t lines = 0;
    if (body == NULL && call->host->json_parse(call, row->json, &body) != NG_OK) {
        return 0;
    }
    (void)call->host->json_integer(call->host->json_get(body, "lines"), &lines);
    return lines;
}
