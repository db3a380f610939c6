/* SPDX-License-Identifier: MIT */
/* nb_string.c - decodes and encodes JSON strings. */
#include "core/base/text/hex.h"
#include "core/base/utf8.h"
#include "nb.h"

#include <string.h>

static unsigned hex4(const char *digits)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        code = code << 4 | (unsigned)hex_digit(digits[i]);
    }
    return code;
}

static void add_character(struct nb_text *out, unsigned code)
{
    char bytes[UTF8_BYTES_MAX];
    nb_add(out, bytes, utf8_encode(code, bytes));
}

/* Decodes the escape \uXXXX whose backslash is at `at`; returns its end. */
static size_t decode_unicode(struct nb_text *out, const char *data, size_t at, size_t end)
{
    unsigned code = hex4(data + at + 2);
    at += 6;
    if (code < 0xd800 || code > 0xdfff) {
        add_character(out, code);
        return at;
    }
    if (code < 0xdc00 && at + 6 <= end && data[at] == '\\' && data[at + 1] == 'u') {
        unsigned low = hex4(data + at + 2);
        if (low >= 0xdc00 && low <= 0xdfff) {
            add_character(out, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
            return at + 6;
        }
    }
    nb_add_word(out, UTF8_REPLACEMENT);
    return at;
}

void nb_decode(struct nb_text *out, struct ng_str bytes, struct nb_span string)
{
    static const char escapes[] = "bfnrt\"\\/";
    static const char meanings[] = "\b\f\n\r\t\"\\/";
    const char *data = bytes.data;
    if (string.len < 2) {
        return;
    }
    size_t at = string.at + 1;
    size_t end = string.at + string.len - 1;
    while (at < end) {
        const char *escape = memchr(data + at, '\\', end - at);
        if (escape == NULL) {
            nb_add(out, data + at, end - at);
            break;
        }
        nb_add(out, data + at, (size_t)(escape - data) - at);
        at = (size_t)(escape - data);
        if (data[at + 1] == 'u') {
            at = decode_unicode(out, data, at, end);
        } else {
            const char *which = strchr(escapes, data[at + 1]);
            if (which != NULL) {
                nb_add(out, &meanings[which - escapes], 1);
            }
            at += 2;
        }
    }
}

bool nb_decode_lines(struct nb_text *out, struct ng_str bytes, struct nb_span value)
{
    if (value.len > 0 && bytes.data[value.at] == '"') {
        nb_decode(out, bytes, value);
        return true;
    }
    if (value.len == 0 || bytes.data[value.at] != '[') {
        return false;
    }
    struct nb_walk walk = nb_walk_into(bytes, value);
    struct nb_span line;
    while (nb_walk_element(&walk, &line)) {
        nb_decode(out, bytes, line);
    }
    return true;
}

/* ---- encoding ---- */

static void add_escape(struct nb_text *out, unsigned unit)
{
    nb_addf(out, "\\u%04x", unit);
}

static size_t encode_beyond_ascii(struct nb_text *out, struct ng_str text, size_t at,
                                  bool ascii)
{
    uint32_t code = 0xfffd;
    size_t len = utf8_decode(text, at, &code);
    if (!ascii && len > 0) {
        nb_add(out, text.data + at, len);
    } else if (!ascii) {
        nb_add_word(out, UTF8_REPLACEMENT);
    } else if (code < 0x10000) {
        add_escape(out, code);
    } else {
        add_escape(out, 0xd800 + ((code - 0x10000) >> 10));
        add_escape(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
    }
    return len + (len == 0);
}

static void encode_special(struct nb_text *out, char c)
{
    static const char meanings[] = "\b\f\n\r\t\"\\";
    static const char escapes[] = "bfnrt\"\\";
    const char *which = strchr(meanings, c);
    if (which != NULL && c != '\0') {
        char pair[2] = {'\\', escapes[which - meanings]};
        nb_add(out, pair, 2);
    } else {
        add_escape(out, (unsigned char)c);
    }
}

void nb_encode(struct nb_text *out, struct ng_str text, bool ascii)
{
    size_t plain = 0; /* start of bytes to be copied */
    nb_add(out, "\"", 1);
    for (size_t at = 0; at < text.len;) {
        unsigned char c = (unsigned char)text.data[at];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            at++;
            continue;
        }
        nb_add(out, text.data + plain, at - plain);
        if (c == 0x7f && !ascii) {
            nb_add(out, text.data + at, 1);
            at++;
        } else if (c < 0x80) {
            encode_special(out, text.data[at]);
            at++;
        } else {
            at += encode_beyond_ascii(out, text, at, ascii);
        }
        plain = at;
    }
    nb_add(out, text.data + plain, text.len - plain);
    nb_add(out, "\"", 1);
}

/* The length of the line ending at `at`; 0: none. The line endings of Python's splitlines(),
 * which nbformat uses: otherwise Jupyter's next save would change the cell. */
static size_t line_end(struct ng_str text, size_t at)
{
    const unsigned char *bytes = (const unsigned char *)text.data + at;
    size_t left = text.len - at;
    if (left == 0) {
        return 0;
    }
    if (bytes[0] == '\r') {
        return (size_t)1 + (left > 1 && bytes[1] == '\n');
    }
    if ((bytes[0] >= '\n' && bytes[0] <= '\f') || (bytes[0] >= 0x1c && bytes[0] <= 0x1e)) {
        return 1;
    }
    if (left > 1 && bytes[0] == 0xc2 && bytes[1] == 0x85) { /* U+0085 */
        return 2;
    }
    if (left > 2 && bytes[0] == 0xe2 && bytes[1] == 0x80 &&
        (bytes[2] == 0xa8 || bytes[2] == 0xa9)) { /* U+2028, U+2029 */
        return 3;
    }
    return 0;
}

size_t nb_line_length(struct ng_str text, size_t at)
{
    for (size_t i = at; i < text.len; i++) {
        size_t end = line_end(text, i);
        if (end > 0) {
            return i + end - at;
        }
    }
    return text.len - at;
}

bool nb_line_begins(struct ng_str text, size_t at)
{
    for (size_t back = 1; back <= 3 && back <= at; back++) {
        if (line_end(text, at - back) == back) {
            return true;
        }
    }
    return at == 0;
}

void nb_encode_lines(struct nb_text *out, struct ng_str text, bool ascii)
{
    nb_add(out, "[", 1);
    for (size_t at = 0; at < text.len;) {
        size_t len = nb_line_length(text, at);
        struct ng_str line = {text.data + at, len};
        nb_add_if(out, at > 0, ",");
        nb_encode(out, line, ascii);
        at += len;
    }
    nb_add(out, "]", 1);
}

void nb_encode_text(struct nb_text *out, struct ng_str text, bool ascii, bool one_string)
{
    if (one_string) {
        nb_encode(out, text, ascii);
    } else {
        nb_encode_lines(out, text, ascii);
    }
}
