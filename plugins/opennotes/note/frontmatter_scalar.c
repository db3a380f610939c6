/* SPDX-License-Identifier: MIT */
/* frontmatter_scalar.c - scalars and their types by the core schema of YAML 1.2, and values as
 * YAML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text/hex.h"
#include "note.h"

/* Digits of a hexadecimal or octal number of 64 bits. */
#define HEX_DIGITS_MAX 16
#define OCTAL_DIGITS_MAX 21

static bool is_one_of(struct ng_str text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_is(text, words[i])) {
            return true;
        }
    }
    return false;
}

static size_t count_digits(struct ng_str text, size_t at)
{
    size_t count = 0;
    while (at + count < text.len && notes_is_digit(text.data[at + count])) {
        count++;
    }
    return count;
}

/* 0x1F and 0o17 as decimal; numbers over 64 bits stay a text. */
static bool based_number(struct arena *arena, struct ng_str text, struct ng_str *ret_json)
{
    int base = 8;
    size_t digits_max = OCTAL_DIGITS_MAX;
    if (str_begins(text, "0x")) {
        base = 16;
        digits_max = HEX_DIGITS_MAX;
    } else if (!str_begins(text, "0o")) {
        return false;
    }
    uint64_t number = 0;
    size_t digits = 0;
    for (size_t i = 2; i < text.len; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0 || digit >= base) {
            return false;
        }
        number = number * (uint64_t)base + (uint64_t)digit;
        digits += digits > 0 || digit > 0;
    }
    if (text.len == 2 || digits > digits_max) {
        return false;
    }
    char decimal[24];
    int len = snprintf(decimal, sizeof(decimal), "%llu", (unsigned long long)number);
    *ret_json = arena_copy(arena, str_make(decimal, (size_t)len));
    return true;
}

/* The parts of [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
struct decimal {
    bool minus;
    struct ng_str whole, fraction, exponent; /* exponent with its 'e' */
    bool point;
};

static bool split_decimal(struct ng_str text, struct decimal *parts)
{
    size_t at = 0;
    *parts = (struct decimal){.minus = text.len > 0 && text.data[0] == '-'};
    at += text.len > 0 && (text.data[0] == '-' || text.data[0] == '+');
    parts->whole = str_make(text.data + at, count_digits(text, at));
    at += parts->whole.len;
    if (at < text.len && text.data[at] == '.') {
        parts->point = true;
        at++;
        parts->fraction = str_make(text.data + at, count_digits(text, at));
        at += parts->fraction.len;
    }
    if (parts->whole.len + parts->fraction.len == 0) {
        return false;
    }
    if (at < text.len && (text.data[at] == 'e' || text.data[at] == 'E')) {
        size_t from = at++;
        at += at < text.len && (text.data[at] == '-' || text.data[at] == '+');
        size_t count = count_digits(text, at);
        at += count;
        parts->exponent = str_make(text.data + from, at - from);
        if (count == 0) {
            return false;
        }
    }
    return at == text.len;
}

/* As JSON writes it: without '+' and leading zeros, a digit on both sides of the point. */
static struct ng_str decimal_json(struct arena *arena, const struct decimal *parts)
{
    struct ng_str whole = parts->whole;
    struct ng_str fraction = parts->fraction;
    while (whole.len > 1 && whole.data[0] == '0') {
        whole = str_make(whole.data + 1, whole.len - 1);
    }
    if (whole.len == 0) {
        whole = ng_str_of("0");
    }
    if (parts->point && fraction.len == 0) {
        fraction = ng_str_of("0");
    }
    return arena_printf(arena, "%s%.*s%s%.*s%.*s", &"-"[!parts->minus], (int)whole.len,
                        whole.data, &"."[!parts->point], (int)fraction.len, fraction.data,
                        (int)parts->exponent.len, parts->exponent.data);
}

enum notes_type notes_scalar_type(struct arena *arena, struct ng_str text,
                                  struct ng_str *ret_text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const trues[] = {"true", "True", "TRUE"};
    static const char *const falses[] = {"false", "False", "FALSE"};
    struct decimal parts;
    *ret_text = text;
    if (is_one_of(text, nulls, NG_COUNT(nulls))) {
        return NOTES_NULL;
    }
    if (is_one_of(text, trues, NG_COUNT(trues))) {
        return NOTES_TRUE;
    }
    if (is_one_of(text, falses, NG_COUNT(falses))) {
        return NOTES_FALSE;
    }
    if (based_number(arena, text, ret_text)) {
        return NOTES_NUMBER;
    }
    if (split_decimal(text, &parts)) {
        *ret_text = decimal_json(arena, &parts);
        return NOTES_NUMBER;
    }
    return NOTES_STRING;
}

/* ---- out */

/* Words and forms that YAML 1.1 parsers read as another type. */
static bool is_old_word(struct ng_str text)
{
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off"};
    char lower[4] = {0};
    if (text.len == 0 || text.len > 3) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        lower[i] = (char)(text.data[i] | 0x20);
    }
    return is_one_of(str_make(lower, text.len), words, NG_COUNT(words));
}

static bool is_old_number(struct ng_str text)
{
    /* 1_000, 0b11, 12:30:45, .inf; not days, which all parsers read as days. */
    bool digit = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (notes_is_digit(c)) {
            digit = true;
        } else if (c != '_' && c != ':' && c != '.' && c != '+' && c != '-' && c != ',') {
            return str_begins(text, "0b") || str_begins(text, "0x") || str_begins(text, ".") ||
                   str_begins(text, "+.") || str_begins(text, "-.");
        }
    }
    return digit && !rfc3339_is_day(text);
}

static bool is_safe_start(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || notes_is_digit((char)c) ||
           c == '_' || c == '/' || c == '(' || c == '.' || c == '+' || c == '$' || c >= 0x80;
}

/* Characters that YAML allows only as escapes. */
static bool is_hidden(int32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
           c == 0xfffe || c == 0xffff || c == 0xa0;
}

static bool is_plain(struct ng_str text, bool in_flow)
{
    struct ng_str ignored;
    if (text.len == 0 || !is_safe_start((unsigned char)text.data[0]) ||
        text.data[text.len - 1] == ' ' || text.data[text.len - 1] == ':' || is_old_word(text) ||
        is_old_number(text) || str_begins(text, "...")) {
        return false;
    }
    for (size_t at = 0; at < text.len;) {
        size_t here = at;
        int32_t c = notes_next(text, &at);
        char next = at < text.len ? text.data[at] : '\0';
        if (is_hidden(c) || (c == ':' && (next == ' ' || in_flow)) ||
            (c == ' ' && next == '#') ||
            (in_flow && c < 0x80 && strchr(",[]{}", c) != NULL && text.data[here] != '\0')) {
            return false;
        }
    }
    struct arena arena;
    arena_init(&arena, 0);
    bool plain = notes_scalar_type(&arena, text, &ignored) == NOTES_STRING;
    arena_done(&arena);
    return plain;
}

static void write_double(struct buf *out, struct ng_str text)
{
    buf_add_char(out, '"');
    for (size_t at = 0; at < text.len;) {
        size_t from = at;
        int32_t c = notes_next(text, &at);
        if (c == '"' || c == '\\') {
            buf_printf(out, "\\%c", (int)c);
        } else if (c == '\n') {
            buf_add_c(out, "\\n");
        } else if (c == '\t') {
            buf_add_c(out, "\\t");
        } else if (is_hidden(c)) {
            buf_printf(out, "\\u%04x", (unsigned)c);
        } else {
            buf_add_str(out, str_make(text.data + from, at - from));
        }
    }
    buf_add_char(out, '"');
}

/* False: the text needs escapes. */
static bool write_single(struct buf *out, struct ng_str text)
{
    for (size_t at = 0; at < text.len;) {
        if (is_hidden(notes_next(text, &at))) {
            return false;
        }
    }
    notes_add_quoted(out, text, '\'');
    return true;
}

static void write_text(const struct notes_yaml *yaml, struct ng_str text, bool in_flow)
{
    if (yaml->quotes == NOTES_STYLE_SINGLE && write_single(yaml->out, text)) {
        return;
    }
    if (yaml->quotes == NOTES_STYLE_DOUBLE || !is_plain(text, in_flow)) {
        write_double(yaml->out, text);
    } else {
        buf_add_str(yaml->out, text);
    }
}

void notes_yaml_key(const struct notes_yaml *yaml, struct ng_str key, bool in_flow)
{
    struct notes_yaml plain = {.out = yaml->out, .newline = yaml->newline};
    write_text(&plain, key, in_flow);
}

void notes_yaml_flow(const struct notes_yaml *yaml, const struct notes_value *value,
                     bool in_flow)
{
    bool map = value->type == NOTES_MAP;
    if (value->type == NOTES_STRING) {
        write_text(yaml, value->text, in_flow);
        return;
    }
    if (value->type == NOTES_NUMBER) {
        buf_add_str(yaml->out, value->text);
        return;
    }
    if (value->type != NOTES_LIST && !map) {
        static const char *const words[] = {"null", "false", "true"}; /* enum notes_type */
        buf_add_c(yaml->out, words[value->type]);
        return;
    }
    buf_add_char(yaml->out, "[{"[map]);
    for (const struct notes_value *item = value->first; item != NULL; item = item->next) {
        notes_add_if(yaml->out, item != value->first, ", ");
        if (map) {
            notes_yaml_key(yaml, item->key, true);
            buf_add_c(yaml->out, ": ");
        }
        notes_yaml_flow(yaml, item, true);
    }
    buf_add_char(yaml->out, "]}"[map]);
}

static void write_indent(const struct notes_yaml *yaml, size_t indent)
{
    for (size_t i = 0; i < indent; i++) {
        buf_add_char(yaml->out, ' ');
    }
}

void notes_yaml_member(const struct notes_yaml *yaml, struct ng_str key,
                       const struct notes_value *value, size_t indent, bool begun)
{
    if (!begun) {
        write_indent(yaml, indent);
    }
    notes_yaml_key(yaml, key, false);
    buf_add_char(yaml->out, ':');
    if (notes_value_is_block(value)) {
        buf_add_c(yaml->out, yaml->newline);
        notes_yaml_block(yaml, value, indent + 2, false);
        return;
    }
    buf_add_char(yaml->out, ' ');
    notes_yaml_flow(yaml, value, false);
    buf_add_c(yaml->out, yaml->newline);
}

void notes_yaml_block(const struct notes_yaml *yaml, const struct notes_value *value,
                      size_t indent, bool begun)
{
    for (const struct notes_value *item = value->first; item != NULL; item = item->next) {
        bool here = begun && item == value->first;
        if (value->type == NOTES_MAP) {
            notes_yaml_member(yaml, item->key, item, indent, here);
            continue;
        }
        if (!here) {
            write_indent(yaml, indent);
        }
        buf_add_c(yaml->out, "- ");
        if (notes_value_is_block(item)) {
            notes_yaml_block(yaml, item, indent + 2, true);
        } else {
            notes_yaml_flow(yaml, item, false);
            buf_add_c(yaml->out, yaml->newline);
        }
    }
}
