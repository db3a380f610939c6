/* SPDX-License-Identifier: MIT */
/* make.c - BSON from a template. */
#include "bson_members.h"

#include <stdarg.h>
#include <stdio.h>

struct maker {
    const char *at; /* in the template */
    va_list args;
};

static void make_members(struct maker *maker, bson_t *into, bool array);

static void make_container(struct maker *maker, bson_t *into, const char *key, bool array)
{
    bson_t below;
    if (array) {
        BSON_APPEND_ARRAY_BEGIN(into, key, &below);
    } else {
        BSON_APPEND_DOCUMENT_BEGIN(into, key, &below);
    }
    make_members(maker, &below, array);
    (void)bson_append_document_end(into, &below); /* of an array just the same */
}

static void make_number(struct maker *maker, bson_t *into, const char *key)
{
    char *end = NULL;
    BSON_APPEND_INT32(into, key, (int32_t)strtol(maker->at - 1, &end, 10));
    maker->at = end;
}

static void make_value(struct maker *maker, bson_t *into, const char *key)
{
    char code = *maker->at++;
    switch (code) {
    case '{':
    case '[':
        make_container(maker, into, key, code == '[');
        break;
    case 's':
        put_str(into, key, va_arg(maker->args, struct ng_str));
        break;
    case 't':
        (void)bson_append_utf8(into, key, -1, va_arg(maker->args, const char *), -1);
        break;
    case 'i':
        (void)bson_append_int32(into, key, -1, va_arg(maker->args, int));
        break;
    case 'l':
    case 'u':
        (void)bson_append_int64(into, key, -1, va_arg(maker->args, int64_t));
        break;
    case 'd':
        (void)bson_append_date_time(into, key, -1, va_arg(maker->args, int64_t));
        break;
    case 'b':
        (void)bson_append_bool(into, key, -1, va_arg(maker->args, int) != 0);
        break;
    case 'D':
        (void)bson_append_document(into, key, -1, va_arg(maker->args, const bson_t *));
        break;
    case 'A':
        (void)bson_append_array(into, key, -1, va_arg(maker->args, const bson_t *));
        break;
    case 'V':
        (void)bson_append_value(into, key, -1, va_arg(maker->args, const bson_value_t *));
        break;
    case 'T':
    case 'F':
        BSON_APPEND_BOOL(into, key, code == 'T');
        break;
    case 'N':
        BSON_APPEND_NULL(into, key);
        break;
    case 'E':
        BSON_APPEND_UTF8(into, key, "");
        break;
    default:
        make_number(maker, into, key);
        break;
    }
}

/* Up to and with the closing bracket, or to the end. */
static void make_members(struct maker *maker, bson_t *into, bool array)
{
    char name[64];
    for (uint32_t index = 0;; index++) {
        maker->at += strspn(maker->at, ", ");
        if (*maker->at == '\0' || *maker->at == '}' || *maker->at == ']') {
            maker->at += *maker->at != '\0';
            return;
        }
        if (*maker->at == '*') {
            maker->at++;
            (void)bson_concat(into, va_arg(maker->args, const bson_t *));
            continue;
        }
        const char *key = name;
        if (array) {
            (void)bson_uint32_to_string(index, &key, name, sizeof(name));
        } else if (*maker->at == '%') {
            key = va_arg(maker->args, const char *);
            maker->at += 2;
        } else {
            size_t len = strcspn(maker->at, ":");
            (void)snprintf(name, sizeof(name), "%.*s", (int)len, maker->at);
            maker->at += len + (maker->at[len] == ':');
        }
        make_value(maker, into, key);
    }
}

void bson_add(bson_t *bson, const char *template, ...)
{
    struct maker maker = {.at = template};
    va_start(maker.args, template);
    make_members(&maker, bson, false);
    va_end(maker.args);
}

bson_t *bson_of(const char *template, ...)
{
    struct maker maker = {.at = template};
    bson_t *bson = bson_new();
    va_start(maker.args, template);
    make_members(&maker, bson, false);
    va_end(maker.args);
    return bson;
}

void bson_item(bson_t *array, uint32_t at, struct ng_str text)
{
    char digits[16];
    const char *key = NULL;
    (void)bson_uint32_to_string(at, &key, digits, sizeof(digits));
    put_str(array, key, text);
}
