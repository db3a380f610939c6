/* SPDX-License-Identifier: MIT */
/* json_writer.c - JSON out: of parsed values, and piece by piece with commas and misuse looked
 * after. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "json.h"

#define NUMBER_TEXT_MAX 40

static void print_container(struct buf *buf, const struct ng_value *value)
{
    bool is_object = value->type == NG_TYPE_OBJECT;
    buf_add_char(buf, is_object ? '{' : '[');
    for (const struct ng_value *child = value->first; child != NULL && buf->rc == NG_OK;
         child = child->next) {
        if (child != value->first) {
            buf_add_char(buf, ',');
        }
        if (is_object) {
            buf_add_json(buf, child->key);
            buf_add_char(buf, ':');
        }
        json_print(buf, child);
    }
    buf_add_char(buf, is_object ? '}' : ']');
}

int json_print(struct buf *buf, const struct ng_value *value)
{
    switch (value == NULL ? NG_TYPE_NULL : value->type) {
    case NG_TYPE_FALSE:
        buf_add_c(buf, "false");
        break;
    case NG_TYPE_TRUE:
        buf_add_c(buf, "true");
        break;
    case NG_TYPE_NUMBER:
        buf_add_str(buf, value->text);
        break;
    case NG_TYPE_STRING:
        buf_add_json(buf, value->text);
        break;
    case NG_TYPE_ARRAY:
    case NG_TYPE_OBJECT:
        if (value->printed) {
            buf_add_str(buf, value->text);
        } else {
            print_container(buf, value);
        }
        break;
    default:
        buf_add_c(buf, "null");
        break;
    }
    return buf->rc;
}

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
static bool writer_begin(struct ng_writer *writer)
{
    if (writer->buf->rc != NG_OK) {
        return false;
    }
    if (writer->depth == 0) {
        return writer->complete ? writer_misused(writer, "a value after the whole") : true;
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

static void writer_ended(struct ng_writer *writer)
{
    if (writer->depth == 0) {
        writer->complete = true;
    }
}

static void writer_open(struct ng_writer *writer, bool is_array)
{
    if (!writer_begin(writer)) {
        return;
    }
    if (writer->depth >= JSON_WRITER_DEPTH) {
        writer_misused(writer, "objects and arrays nested too deeply");
        return;
    }
    buf_add_char(writer->buf, is_array ? '[' : '{');
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
        writer_misused(writer, writer->name_due ? "an end after a name without a value"
                                                : "an end without a beginning");
        return;
    }
    writer->depth--;
    buf_add_char(writer->buf, writer->is_array[writer->depth] ? ']' : '}');
    writer_ended(writer);
}

void json_name_str(struct ng_writer *writer, struct ng_str name)
{
    if (writer->buf->rc != NG_OK) {
        return;
    }
    if (writer->depth == 0 || writer->name_due || writer->is_array[writer->depth - 1]) {
        writer_misused(writer, writer->name_due ? "two names without a value between them"
                                                : "a name outside of an object");
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
    if (writer_begin(writer)) {
        buf_add_json(writer->buf, text);
        writer_ended(writer);
    }
}

void json_cstring(struct ng_writer *writer, const char *text)
{
    json_string(writer, ng_str_of(text));
}

void json_raw(struct ng_writer *writer, struct ng_str json)
{
    if (writer_begin(writer)) {
        buf_add_str(writer->buf, json);
        writer_ended(writer);
    }
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
    const char *sign = number < 0 ? "-" : "";
    int len = snprintf(text, NUMBER_TEXT_MAX, "%s%lld.%03d", sign, (long long)(whole / 1000),
                       (int)(whole % 1000));
    while (text[len - 1] == '0') {
        len--;
    }
    return text[len - 1] == '.' ? len - 1 : len;
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
    json_raw(writer, ng_str_of(value ? "true" : "false"));
}

void json_null(struct ng_writer *writer)
{
    json_raw(writer, ng_str_of("null"));
}

void json_copy(struct ng_writer *writer, const struct ng_value *value)
{
    if (writer_begin(writer)) {
        json_print(writer->buf, value);
        writer_ended(writer);
    }
}
