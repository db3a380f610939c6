/* SPDX-License-Identifier: MIT */
/* log_record.c - values of a structured line, as JSON members or as words. */
#include "log_record.h"

#include <stdio.h>

#include "str.h"
#include "utf8.h"

#define SENTENCE_MAX 1024

void log_record_begin(struct log_record *record, enum log_kind kind)
{
    record->kind = kind;
    record->json = log_is_json();
    record->cut = false;
    record->in_list = false;
    record->first = true;
    record->len = 0;
}

/* False: no room, nothing was added. */
static bool add(struct log_record *record, const char *data, size_t len)
{
    if (len > sizeof(record->data) - record->len) {
        record->cut = true;
        return false;
    }
    memcpy(record->data + record->len, data, len);
    record->len += len;
    return true;
}

static bool add_c(struct log_record *record, const char *text)
{
    return add(record, text, strlen(text));
}

static void add_text(struct log_record *record, struct ng_str value)
{
    value = utf8_cut(value, LOG_VALUE_MAX);
    bool ascii = !utf8_valid(value);
    size_t at = 0;
    while (at < value.len && !record->cut) {
        char c = value.data[at];
        char escaped[LOG_ESCAPE_MAX] = {'\\', c};
        size_t len = 2;
        if (c == '"' || c == '\\') {
            at++;
        } else {
            len = log_escape(value, &at, ascii, escaped);
        }
        (void)add(record, escaped, len);
    }
}

/* Does the value stand as a word of its own in a line of text? */
static bool is_word(struct ng_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c >= 0x7f) {
            return false;
        }
    }
    return value.len > 0;
}

static void add_name(struct log_record *record, const char *name)
{
    if (record->json) {
        (void)add_c(record, record->first ? "\"" : ",\"");
        (void)add_c(record, name);
        (void)add_c(record, "\":");
    } else {
        (void)add_c(record, record->first ? "" : " ");
        (void)add_c(record, name);
        (void)add_c(record, "=");
    }
    record->first = false;
}

/* A value goes in whole or not at all, so that the line stays well-formed. */
static void add_value(struct log_record *record, const char *name, struct ng_str value,
                      bool quoted)
{
    size_t before = record->len;
    bool first = record->first;
    bool cut = record->cut;
    record->cut = false;
    add_name(record, name);
    if (quoted) {
        (void)add_c(record, "\"");
    }
    add_text(record, value);
    if (quoted) {
        (void)add_c(record, "\"");
    }
    if (record->cut) {
        record->len = before;
        record->first = first;
    }
    record->cut = record->cut || cut;
}

void log_record_text(struct log_record *record, const char *name, struct ng_str value)
{
    if (value.data != NULL) {
        add_value(record, name, value, record->json || !is_word(value));
    }
}

void log_record_int(struct log_record *record, const char *name, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    add_value(record, name, ng_str_of(text), false);
}

void log_record_word(struct log_record *record, const char *name, const char *value)
{
    add_value(record, name, ng_str_of(value), false);
}

void log_record_ms(struct log_record *record, const char *name, int64_t ns)
{
    char text[32];
    long long us = ns < 0 ? 0 : (long long)(ns / 1000);
    (void)snprintf(text, sizeof(text), "%lld.%03lld", us / 1000, us % 1000);
    add_value(record, name, ng_str_of(text), false);
}

/* Room for closing a list, whatever was in it. */
#define LIST_TAIL 2

void log_record_list(struct log_record *record, const char *name)
{
    size_t before = record->len;
    bool first = record->first;
    add_name(record, name);
    if (record->json) {
        (void)add_c(record, "[");
    }
    record->in_list = sizeof(record->data) - record->len >= LIST_TAIL && !record->cut;
    if (!record->in_list) {
        record->len = before;
        record->first = first;
        return;
    }
    record->first = true;
}

/* Does the id stand in a list of text without looking like another entry of it? */
static bool is_item(struct ng_str id)
{
    return is_word(id) && memchr(id.data, ',', id.len) == NULL;
}

void log_record_change(struct log_record *record, struct ng_str collection, struct ng_str id,
                       uint64_t revision)
{
    char number[32];
    size_t before = record->len;
    bool cut = record->cut;
    if (!record->in_list) {
        return;
    }
    record->cut = false;
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)revision);
    if (!record->first) {
        (void)add_c(record, ",");
    }
    bool quoted = record->json || !is_item(id);
    (void)add_c(record, record->json ? "{\"collection\":\"" : "");
    add_text(record, collection);
    (void)add_c(record, record->json ? "\",\"id\":" : ":");
    (void)add_c(record, quoted ? "\"" : "");
    add_text(record, id);
    (void)add_c(record, quoted ? "\"" : "");
    (void)add_c(record, record->json ? ",\"revision\":" : "@");
    (void)add_c(record, number);
    (void)add_c(record, record->json ? "}" : "");
    if (record->cut || sizeof(record->data) - record->len < LIST_TAIL) {
        record->len = before;
        record->cut = true;
    } else {
        record->first = false;
    }
    record->cut = record->cut || cut;
}

void log_record_list_end(struct log_record *record)
{
    if (record->in_list && record->json) {
        (void)add_c(record, "]");
    }
    record->in_list = false;
    record->first = false;
}

void log_record_shown(char *out, size_t size, struct ng_str value)
{
    struct log_record record;
    log_record_begin(&record, LOG_ACCESS);
    bool quoted = !is_word(value);
    (void)add_c(&record, quoted ? "\"" : "");
    add_text(&record, value);
    (void)add_c(&record, quoted ? "\"" : "");
    bool fits = !record.cut && record.len < size;
    (void)snprintf(out, size, "%.*s", fits ? (int)record.len : 3, fits ? record.data : "...");
}

void log_record_end(struct log_record *record, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    log_kind_write(record->kind, sentence, str_make(record->data, record->len), record->cut);
}
