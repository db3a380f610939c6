/* SPDX-License-Identifier: MIT */
/* json_out.c - the members of an entry's document as JSON again, spelled as the core spells it.
 */
#include "db.h"

#include <math.h>
#include <stdio.h>

static int print_value(struct bytes *ret, const bson_iter_t *iter);

static int print_escape(struct bytes *ret, unsigned char c)
{
    static const char from[] = "\n\"\\\t\r\b\f";
    static const char to[] = "n\"\\trbf";
    char code[8];
    const char *found = c != '\0' ? strchr(from, c) : NULL;
    if (found != NULL) {
        (void)snprintf(code, sizeof(code), "\\%c", to[found - from]);
    } else {
        (void)snprintf(code, sizeof(code), "\\u%04x", c);
    }
    return bytes_add_c(ret, code);
}

static int print_string(struct bytes *ret, struct ng_str text)
{
    size_t from = 0;
    int rc = bytes_add(ret, "\"", 1);
    for (size_t i = 0; i < text.len && rc == NG_OK; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        rc = bytes_add(ret, text.data + from, i - from);
        rc = rc == NG_OK ? print_escape(ret, c) : rc;
        from = i + 1;
    }
    rc =
        rc == NG_OK && text.len > from ? bytes_add(ret, text.data + from, text.len - from) : rc;
    return rc == NG_OK ? bytes_add(ret, "\"", 1) : rc;
}

static int print_double(struct bytes *ret, double number)
{
    char text[96];
    if (!isfinite(number)) {
        return bytes_add_c(ret, "null");
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, number);
        double back = strtod(text, NULL);
        if (!(back < number) && !(back > number)) {
            break;
        }
    }
    return bytes_add_c(ret, text);
}

int date_print(struct bytes *ret, int64_t ms)
{
    char text[96];
    int64_t days = (ms >= 0 ? ms : ms - 86399999) / 86400000;
    int64_t left = ms - days * 86400000;
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t mp = (5 * of_year + 2) / 153;
    int64_t month = mp < 10 ? mp + 3 : mp - 9;
    (void)snprintf(text, sizeof(text), "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%03lldZ",
                   (long long)year + era * 400 + (month <= 2), (long long)month,
                   (long long)(of_year - (153 * mp + 2) / 5 + 1), (long long)(left / 3600000),
                   (long long)(left / 60000 % 60), (long long)(left / 1000 % 60),
                   (long long)(left % 1000));
    return bytes_add_c(ret, text);
}

static int print_container(struct bytes *ret, const bson_iter_t *iter, bool array)
{
    bson_iter_t child;
    bool first = true;
    int rc = bytes_add(ret, array ? "[" : "{", 1);
    if (!bson_iter_recurse(iter, &child)) {
        return NG_EUNAVAILABLE;
    }
    while (rc == NG_OK && bson_iter_next(&child)) {
        rc = first ? NG_OK : bytes_add(ret, ",", 1);
        first = false;
        if (rc == NG_OK && !array) {
            rc = print_string(ret, str_of(bson_iter_key(&child), bson_iter_key_len(&child)));
            rc = rc == NG_OK ? bytes_add(ret, ":", 1) : rc;
        }
        rc = rc == NG_OK ? print_value(ret, &child) : rc;
    }
    return rc == NG_OK ? bytes_add(ret, array ? "]" : "}", 1) : rc;
}

static int print_date(struct bytes *ret, int64_t ms)
{
    int rc = bytes_add(ret, "\"", 1);
    rc = rc == NG_OK ? date_print(ret, ms) : rc;
    return rc == NG_OK ? bytes_add(ret, "\"", 1) : rc;
}

static int print_value(struct bytes *ret, const bson_iter_t *iter)
{
    char text[32];
    switch (bson_iter_type(iter)) {
    case BSON_TYPE_UTF8:
        return print_string(ret, iter_str(iter));
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        (void)snprintf(text, sizeof(text), "%lld", (long long)bson_iter_as_int64(iter));
        return bytes_add_c(ret, text);
    case BSON_TYPE_DOUBLE:
        return print_double(ret, bson_iter_double(iter));
    case BSON_TYPE_BOOL:
        return bytes_add_c(ret, bson_iter_bool(iter) ? "true" : "false");
    case BSON_TYPE_DATE_TIME:
        return print_date(ret, bson_iter_date_time(iter));
    case BSON_TYPE_DOCUMENT:
        return print_container(ret, iter, false);
    case BSON_TYPE_ARRAY:
        return print_container(ret, iter, true);
    default:
        return bytes_add_c(ret, "null"); /* nothing of ours: somebody changed it by hand */
    }
}

int json_of(const bson_t *doc, const bson_t *names, struct bytes *ret)
{
    bson_iter_t name;
    bool first = true;
    ret->len = 0;
    int rc = bytes_add(ret, "{", 1);
    if (names != NULL && bson_iter_init(&name, names)) {
        while (rc == NG_OK && bson_iter_next(&name)) {
            bson_iter_t value;
            struct ng_str key = iter_str(&name);
            if (key.data == NULL || !bson_iter_init_find(&value, doc, key.data)) {
                continue;
            }
            rc = first ? NG_OK : bytes_add(ret, ",", 1);
            first = false;
            rc = rc == NG_OK ? print_string(ret, key) : rc;
            rc = rc == NG_OK ? bytes_add(ret, ":", 1) : rc;
            rc = rc == NG_OK ? print_value(ret, &value) : rc;
        }
    }
    return rc == NG_OK ? bytes_add(ret, "}", 1) : rc;
}
