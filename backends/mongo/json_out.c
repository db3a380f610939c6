/* SPDX-License-Identifier: MIT */
/* json_out.c - converts the members of an entry back to JSON, spelled as the core spells it. */
#include "db.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

static void print_value(struct bytes *ret, const bson_iter_t *iter);

static void print_escape(struct bytes *ret, char c)
{
    static const char from[] = "\n\"\\\t\r\b\f";
    static const char to[] = "n\"\\trbf";
    char code[8];
    const char *found = strchr(from, c);
    if (found != NULL && c != '\0') {
        (void)snprintf(code, sizeof(code), "\\%c", to[found - from]);
    } else {
        (void)snprintf(code, sizeof(code), "\\u%04x", (unsigned)(unsigned char)c);
    }
    (void)bytes_add_c(ret, code);
}

static void print_string(struct bytes *ret, struct ng_str text)
{
    size_t from = 0;
    (void)bytes_add_c(ret, "\"");
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if ((unsigned char)c < 0x20 || c == '"' || c == '\\') {
            (void)bytes_add(ret, text.data + from, i - from);
            print_escape(ret, c);
            from = i + 1;
        }
    }
    if (text.len > from) {
        (void)bytes_add(ret, text.data + from, text.len - from);
    }
    (void)bytes_add_c(ret, "\"");
}

static void print_double(struct bytes *ret, double number)
{
    char text[96] = "null";
    for (int digits = 15; digits <= 17 && isfinite(number); digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, number);
        double back = strtod(text, NULL);
        if (!(back < number) && !(back > number)) {
            break;
        }
    }
    (void)bytes_add_c(ret, text);
}

int date_print(struct bytes *ret, int64_t ms)
{
    char text[96];
    int64_t left = ms % 1000;
    left += (left < 0) * 1000;
    time_t seconds = (time_t)((ms - left) / 1000);
    struct tm day = {0};
    (void)gmtime_r(&seconds, &day);
    (void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                   day.tm_year + 1900, day.tm_mon + 1, day.tm_mday, day.tm_hour, day.tm_min,
                   day.tm_sec, (int)left);
    return bytes_add_c(ret, text);
}

static void print_container(struct bytes *ret, const bson_iter_t *iter, bool array)
{
    bson_iter_t child;
    const char *before = "";
    if (!bson_iter_recurse(iter, &child)) {
        ret->rc = NG_EUNAVAILABLE;
        return;
    }
    (void)bytes_add(ret, &"{["[array], 1);
    while (bson_iter_next(&child)) {
        (void)bytes_add_c(ret, before);
        before = ",";
        if (!array) {
            print_string(ret, str_of(bson_iter_key(&child), bson_iter_key_len(&child)));
            (void)bytes_add_c(ret, ":");
        }
        print_value(ret, &child);
    }
    (void)bytes_add(ret, &"}]"[array], 1);
}

static void print_value(struct bytes *ret, const bson_iter_t *iter)
{
    static const char *const words[] = {"false", "true"};
    char text[32];
    switch (bson_iter_type(iter)) {
    case BSON_TYPE_UTF8:
        print_string(ret, iter_str(iter));
        break;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        (void)snprintf(text, sizeof(text), "%lld", (long long)bson_iter_as_int64(iter));
        (void)bytes_add_c(ret, text);
        break;
    case BSON_TYPE_DOUBLE:
        print_double(ret, bson_iter_double(iter));
        break;
    case BSON_TYPE_BOOL:
        (void)bytes_add_c(ret, words[bson_iter_bool(iter)]);
        break;
    case BSON_TYPE_DATE_TIME:
        (void)bytes_add_c(ret, "\"");
        (void)date_print(ret, bson_iter_date_time(iter));
        (void)bytes_add_c(ret, "\"");
        break;
    case BSON_TYPE_DOCUMENT:
        print_container(ret, iter, false);
        break;
    case BSON_TYPE_ARRAY:
        print_container(ret, iter, true);
        break;
    default:
        (void)bytes_add_c(ret, "null"); /* another program has changed the document */
        break;
    }
}

int json_of(const bson_t *doc, const bson_t *names, struct bytes *ret)
{
    bson_iter_t name;
    const char *before = "";
    (void)bytes_set(ret, ng_str_of("{"));
    if (names != NULL && bson_iter_init(&name, names)) {
        while (bson_iter_next(&name)) {
            bson_iter_t value;
            struct ng_str key = iter_str(&name);
            if (key.data == NULL || !bson_iter_init_find(&value, doc, key.data)) {
                continue;
            }
            (void)bytes_add_c(ret, before);
            before = ",";
            print_string(ret, key);
            (void)bytes_add_c(ret, ":");
            print_value(ret, &value);
        }
    }
    return bytes_add_c(ret, "}");
}
