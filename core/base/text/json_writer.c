/* SPDX-License-Identifier: MIT */
/* json_writer.c - JSON out, piece by piece: commas and misuse are looked after. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "json_writer.h"

#define NUMBER_TEXT_MAX 40

void json_writer_init(struct ng_writer *writer, struct buf *buf)
{
    memset(writer, 0, sizeof(*writer));
    writer->buf = buf;
}

static bool writer_misused(struct ng_writer *writer, const char *how)
{
    if (writer->buf->rc == NG_OK) {
        writer->buf->rc = NG_EINTERNAL;
        writer->misuse = how;
    }
    return false;
}

/* Before a value: is one due, and does a comma come first? */
bool json_value_begin(struct ng_writer *writer)
{
    if (writer->buf->rc != NG_OK) {
        return false;
    }
    if (writer->depth == 0) {
        return !writer->complete || writer_misused(writer, "a value after the whole");
    }
    unsigned top = writer->depth - 1;
    if (writer->name_due) {
        writer->name_due = false;
        return true;
    }
    if (!writer->is_array[top]) {
        return writer_misused(writer, "a value in an object without a name before it");
    }
    if (writer->has_items[top]) {
        buf_add_char(writer->buf, ',');
    }
    writer->has_items[top] = true;
    return true;
}

void json_value_end(struct ng_writer *writer)
{
    if (writer->depth == 0) {
        writer->complete = true;
    }
}

static void writer_open(struct ng_writer *writer, bool is_array)
{
    if (!json_value_begin(writer)) {
        return;
    }
    if (writer->depth >= JSON_WRITER_DEPTH) {
        writer_misused(writer, "objects and arrays nested too deeply");
        return;
    }
    buf_add_char(writer->buf, "{["[is_array]);
    writer->is_array[writer->depth] = is_array;
    writer->has_items[writer->depth] = false;
    writer->depth++;
}

void json_object(struct ng_writer *writer)
{
    writer_open(writer, false);
}

void json_array(struct ng_writer *writer)
{
    writer_open(writer, true);
}

void json_end(struct ng_writer *writer)
{
    if (writer->buf->rc != NG_OK) {
        return;
    }
    if (writer->depth == 0 || writer->name_due) {
        const char *how = "an end without a beginning";
        if (writer->name_due) {
            how = "an end after a name without a value";
        }
        writer_misused(writer, how);
        return;
    }
    writer->depth--;
    buf_add_char(writer->buf, "}]"[writer->is_array[writer->depth]]);
    json_value_end(writer);
}

void json_name_str(struct ng_writer *writer, struct ng_str name)
{
    if (writer->buf->rc != NG_OK) {
        return;
    }
    if (writer->depth == 0 || writer->name_due || writer->is_array[writer->depth - 1]) {
        const char *how = "a name outside of an object";
        if (writer->name_due) {
            how = "two names without a value between them";
        }
        writer_misused(writer, how);
        return;
    }
    if (writer->has_items[writer->depth - 1]) {
        buf_add_char(writer->buf, ',');
    }
    writer->has_items[writer->depth - 1] = true;
    buf_add_json(writer->buf, name);
    buf_add_char(writer->buf, ':');
    writer->name_due = true;
}

void json_name(struct ng_writer *writer, const char *name)
{
    json_name_str(writer, ng_str_of(name));
}

void json_string(struct ng_writer *writer, struct ng_str text)
{
    if (json_value_begin(writer)) {
        buf_add_json(writer->buf, text);
        json_value_end(writer);
    }
}

void json_cstring(struct ng_writer *writer, const char *text)
{
    json_string(writer, ng_str_of(text));
}

void json_raw(struct ng_writer *writer, struct ng_str json)
{
    if (json_value_begin(writer)) {
        buf_add_str(writer->buf, json);
        json_value_end(writer);
    }
}

void json_comma_list(struct ng_writer *writer, struct ng_str text)
{
    size_t comma = 0;
    json_array(writer);
    while ((comma = str_find(text, ng_str_of(","), 0)) != SIZE_MAX) {
        json_string(writer, str_make(text.data, comma));
        text = str_make(text.data + comma + 1, text.len - comma - 1);
    }
    json_string(writer, text);
    json_end(writer);
}

void json_member_strings(struct ng_writer *writer, const char *name, const struct ng_str *texts,
                         size_t count)
{
    json_name(writer, name);
    json_array(writer);
    for (size_t i = 0; i < count; i++) {
        json_string(writer, texts[i]);
    }
    json_end(writer);
}

void json_int(struct ng_writer *writer, int64_t number)
{
    char text[NUMBER_TEXT_MAX];
    int len = snprintf(text, sizeof(text), "%lld", (long long)number);
    json_raw(writer, str_make(text, (size_t)len));
}

/* Numbers of at most three decimals, as scores are, without the search for their digits. 0: it
 * is none, or one that is written with an exponent. */
static int print_thousandths(double number, char text[NUMBER_TEXT_MAX])
{
    double size = fabs(number);
    if (!(size >= 0.001 && size < 1e11)) {
        return 0;
    }
    int64_t whole = (int64_t)(size * 1000 + 0.5);
    double back = (double)whole / 1000;
    if (back < size || back > size) {
        return 0;
    }
    const char *sign = "";
    if (number < 0) {
        sign = "-";
    }
    int len = snprintf(text, NUMBER_TEXT_MAX, "%s%lld.%03d", sign, (long long)(whole / 1000),
                       (int)(whole % 1000));
    while (text[len - 1] == '0') {
        len--;
    }
    return len - (text[len - 1] == '.');
}

void json_number(struct ng_writer *writer, double number)
{
    char text[NUMBER_TEXT_MAX];
    int len = 0;
    if (!isfinite(number)) {
        json_null(writer);
        return;
    }
    len = print_thousandths(number, text);
    if (len > 0) {
        json_raw(writer, str_make(text, (size_t)len));
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        len = snprintf(text, sizeof(text), "%.*g", digits, number);
        double back = strtod(text, NULL);
        if (!(back < number) && !(back > number)) {
            break;
        }
    }
    json_raw(writer, str_make(text, (size_t)len));
}

void json_bool(struct ng_writer *writer, bool value)
{
    static const char *const words[] = {"false", "true"};
    json_raw(writer, ng_str_of(words[value]));
}

void json_null(struct ng_writer *writer)
{
    json_raw(writer, ng_str_of("null"));
}

/* Bytes of a character of `len` bytes in a JSON string. */
static size_t json_character_bytes(char c, size_t len)
{
    if ((unsigned char)c < 0x20 && (c == '\0' || strchr("\b\t\n\f\r", c) == NULL)) {
        return strlen("\\u0000");
    }
    return (unsigned char)c < 0x20 || c == '"' || c == '\\' ? strlen("\\n") : len;
}

struct ng_str json_cut(struct ng_str text, size_t bytes)
{
    size_t used = 0;
    if (text.len <= bytes / strlen("\\u0000")) { /* all of it fits, whatever it is */
        return text;
    }
    for (size_t at = 0; at < text.len;) {
        size_t len = size_max(utf8_length(text, at), 1);
        used += json_character_bytes(text.data[at], len);
        if (used > bytes) {
            return str_make(text.data, at);
        }
        at += len;
    }
    return text;
}
