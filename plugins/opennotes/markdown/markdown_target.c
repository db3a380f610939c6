/* SPDX-License-Identifier: MIT */
/* markdown_target.c - targets and labels of links, addresses in angle brackets and HTML tags in
 * the text of a block, by CommonMark's rules. */
#include <string.h>

#include "markdown_parts.h"

#define PARENS_MAX 32
#define LABEL_MAX 999
#define SCHEME_MIN 2
#define SCHEME_MAX 32

static bool is_alnum(char c)
{
    return notes_is_alpha(c) || notes_is_digit(c);
}

static bool is_punct(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

/* Blanks and at most one line end; a text of a block has no empty lines. */
static size_t skip_space(struct ng_str text, size_t at)
{
    while (at < text.len && notes_is_space(text.data[at])) {
        at++;
    }
    return at;
}

static size_t behind_escape(struct ng_str text, size_t at)
{
    bool escapes = text.data[at] == '\\' && at + 1 < text.len && is_punct(text.data[at + 1]);
    return at + 1 + escapes;
}

/* ---- inline targets */

static bool angle_target(struct ng_str text, size_t *at, struct ng_str *ret_target)
{
    size_t begin = *at + 1;
    for (size_t i = begin; i < text.len; i = behind_escape(text, i)) {
        if (text.data[i] == '>') {
            *ret_target = str_make(text.data + begin, i - begin);
            *at = i + 1;
            return true;
        }
        if (text.data[i] == '<' || text.data[i] == '\n' || text.data[i] == '\r') {
            return false;
        }
    }
    return false;
}

static bool plain_target(struct ng_str text, size_t *at, struct ng_str *ret_target)
{
    size_t begin = *at;
    size_t i = begin;
    unsigned open = 0;
    while (i < text.len && (unsigned char)text.data[i] > ' ' && text.data[i] != 0x7f) {
        if (text.data[i] == '(' && ++open > PARENS_MAX) {
            return false;
        }
        if (text.data[i] == ')' && open-- == 0) {
            open = 0;
            break;
        }
        i = behind_escape(text, i);
    }
    *ret_target = str_make(text.data + begin, i - begin);
    *at = i;
    return open == 0;
}

/* The end of a title at `at`; `at`: there is none. */
static size_t title_end(struct ng_str text, size_t at)
{
    if (at >= text.len || memchr("\"'(", text.data[at], 3) == NULL) {
        return at;
    }
    char opens = text.data[at];
    char closes = opens == '(' ? ')' : opens;
    for (size_t i = at + 1; i < text.len; i = behind_escape(text, i)) {
        if (text.data[i] == closes) {
            return i + 1;
        }
        if (opens == '(' && text.data[i] == '(') {
            break;
        }
    }
    return at;
}

bool notes_destination_at(struct ng_str text, size_t at, struct ng_str *ret_target,
                          size_t *ret_end)
{
    *ret_end = at;
    if (at < text.len && text.data[at] == '<') {
        return angle_target(text, ret_end, ret_target);
    }
    return plain_target(text, ret_end, ret_target);
}

bool notes_target_at(struct ng_str text, size_t at, struct ng_str *ret_target, size_t *ret_end)
{
    if (at >= text.len || text.data[at] != '(') {
        return false;
    }
    size_t i = skip_space(text, at + 1);
    *ret_target = str_make("", 0);
    if (i == text.len) {
        return false;
    }
    if (!notes_destination_at(text, i, ret_target, &i)) {
        return false;
    }
    size_t title = skip_space(text, i);
    if (title > i) {
        i = skip_space(text, title_end(text, title));
    }
    if (i >= text.len || text.data[i] != ')') {
        return false;
    }
    *ret_end = i + 1;
    return true;
}

size_t notes_markdown_target(struct buf *buf, struct ng_str written, size_t len)
{
    size_t begin = buf->len;
    size_t at = 0;
    while (at < written.len && buf->len - begin < len && buf->rc == NG_OK) {
        size_t next = behind_escape(written, at);
        size_t entity = notes_entity_end(written, at);
        if (written.data[at] == '&' && entity > at) {
            notes_entity_add(buf, str_make(written.data + at, entity - at));
            next = entity;
        } else {
            buf_add_char(buf, written.data[next - 1]);
        }
        at = next;
    }
    return at;
}

bool notes_label_at(struct ng_str text, size_t at, struct ng_str *ret_label, size_t *ret_end)
{
    if (at >= text.len || text.data[at] != '[') {
        return false;
    }
    for (size_t i = at + 1; i < text.len && i - at <= LABEL_MAX; i = behind_escape(text, i)) {
        if (text.data[i] == '[') {
            return false;
        }
        if (text.data[i] == ']') {
            *ret_label = str_make(text.data + at + 1, i - at - 1);
            *ret_end = i + 1;
            return true;
        }
    }
    return false;
}

/* ---- angle brackets */

static bool is_mail(struct ng_str address)
{
    const char *sign = memchr(address.data, '@', address.len);
    if (sign == NULL || sign == address.data || sign + 1 == address.data + address.len) {
        return false;
    }
    for (const char *c = address.data; c < address.data + address.len; c++) {
        bool name = c < sign && memchr(".!#$%&'*+/=?^_`{|}~-", *c, 20) != NULL;
        bool host = c > sign && (*c == '.' || *c == '-');
        if (c != sign && !is_alnum(*c) && !name && !host) {
            return false;
        }
    }
    return true;
}

static bool has_scheme(struct ng_str address)
{
    size_t i = 0;
    while (i < address.len && (is_alnum(address.data[i]) || address.data[i] == '+' ||
                               address.data[i] == '.' || address.data[i] == '-')) {
        i++;
    }
    return i >= SCHEME_MIN && i <= SCHEME_MAX && i < address.len && address.data[i] == ':' &&
           notes_is_alpha(address.data[0]);
}

bool notes_autolink_at(struct ng_str text, size_t at, struct ng_str *ret_address,
                       bool *ret_mail, size_t *ret_end)
{
    size_t end = at + 1;
    while (end < text.len && (unsigned char)text.data[end] > ' ' && text.data[end] != '<' &&
           text.data[end] != '>') {
        end++;
    }
    if (end >= text.len || text.data[end] != '>' || end == at + 1) {
        return false;
    }
    *ret_address = str_make(text.data + at + 1, end - at - 1);
    *ret_mail = !has_scheme(*ret_address);
    *ret_end = end + 1;
    return !*ret_mail || is_mail(*ret_address);
}

/* "b", "b=c", "b='c d'" at `at`; its end, or `at`. */
static size_t attribute_end(struct ng_str text, size_t at)
{
    size_t i = at;
    if (i >= text.len ||
        !(notes_is_alpha(text.data[i]) || text.data[i] == '_' || text.data[i] == ':')) {
        return at;
    }
    while (i < text.len &&
           (is_alnum(text.data[i]) || memchr("_.:-", text.data[i], 4) != NULL)) {
        i++;
    }
    size_t name = i;
    i = skip_space(text, i);
    if (i >= text.len || text.data[i] != '=') {
        return name;
    }
    i = skip_space(text, i + 1);
    if (i >= text.len) {
        return at;
    }
    if (text.data[i] == '"' || text.data[i] == '\'') {
        size_t end = notes_find_char(text, i + 1, text.data[i]);
        if (end == text.len) {
            return at;
        }
        return end + 1;
    }
    size_t value = i;
    while (i < text.len && !notes_is_space(text.data[i]) &&
           memchr("\"'=<>`", text.data[i], 6) == NULL) {
        i++;
    }
    if (i == value) {
        return at;
    }
    return i;
}

size_t notes_html_end(struct ng_str text, size_t at)
{
    bool closing = at + 1 < text.len && text.data[at + 1] == '/';
    size_t i = at + 1 + closing;
    if (i >= text.len || !notes_is_alpha(text.data[i])) {
        return at;
    }
    while (i < text.len && (is_alnum(text.data[i]) || text.data[i] == '-')) {
        i++;
    }
    for (size_t space = skip_space(text, i); !closing && space > i;
         space = skip_space(text, i)) {
        size_t end = attribute_end(text, space);
        if (end == space) {
            break;
        }
        i = end;
    }
    i = skip_space(text, i);
    if (!closing && i < text.len && text.data[i] == '/') {
        i++;
    }
    if (i >= text.len || text.data[i] != '>') {
        return at;
    }
    return i + 1;
}
