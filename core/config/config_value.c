/* SPDX-License-Identifier: MIT */
/* config_value.c - sizes, durations, numbers, words and lists of the configuration: parsing,
 * range checks, and their error messages. */
#include "config_value.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "config.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

/* Longest value shown in a message, in bytes. */
#define CONFIG_SHOWN_MAX 80
/* Longest number as text. */
#define CONFIG_NUMBER_MAX 64

struct config_unit {
    const char *name;
    int64_t factor;
};

/* Largest first: printing takes the first that divides. */
static const struct config_unit config_size_units[] = {
    {"TiB", INT64_C(1) << 40},
    {"GiB", INT64_C(1) << 30},
    {"MiB", INT64_C(1) << 20},
    {"KiB", INT64_C(1) << 10},
    {"TB", INT64_C(1000000000000)},
    {"GB", INT64_C(1000000000)},
    {"MB", INT64_C(1000000)},
    {"kB", INT64_C(1000)},
    {"B", 1},
    {"", 1},
};

static const struct config_unit config_duration_units[] = {
    {"d", INT64_C(86400000)},
    {"h", INT64_C(3600000)},
    {"min", INT64_C(60000)},
    {"s", INT64_C(1000)},
    {"ms", 1},
};

static struct ng_str config_trim(struct ng_str text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.data[0]) != NULL) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]) != NULL) {
        text.len--;
    }
    return text;
}

/* The digits at the beginning of `text`, and the rest. */
static int config_digits(struct ng_str text, int64_t *ret, struct ng_str *ret_rest)
{
    int64_t value = 0;
    size_t i = 0;
    for (; i < text.len && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
        value = value * 10 + (text.data[i] - '0');
        if (value > CONFIG_INTEGER_MAX) {
            return NG_EINVAL;
        }
    }
    if (i == 0) {
        return NG_EINVAL;
    }
    *ret = value;
    *ret_rest = str_make(text.data + i, text.len - i);
    return NG_OK;
}

static int config_with_unit(struct ng_str text, const struct config_unit *units, size_t count,
                            int64_t *ret)
{
    int64_t value;
    struct ng_str rest;
    if (config_digits(config_trim(text), &value, &rest) != NG_OK) {
        return NG_EINVAL;
    }
    rest = config_trim(rest);
    for (size_t i = 0; i < count; i++) {
        if (str_equal_fold(rest, ng_str_of(units[i].name))) {
            if (value > CONFIG_INTEGER_MAX / units[i].factor) {
                return NG_EINVAL;
            }
            *ret = value * units[i].factor;
            return NG_OK;
        }
    }
    return NG_EINVAL;
}

int config_parse_size(struct ng_str text, int64_t *ret_bytes)
{
    return config_with_unit(text, config_size_units, NG_COUNT(config_size_units), ret_bytes);
}

int config_parse_duration(struct ng_str text, int64_t *ret_ms)
{
    if (str_is(config_trim(text), "0")) {
        *ret_ms = 0; /* nothing is nothing in any unit */
        return NG_OK;
    }
    return config_with_unit(text, config_duration_units, NG_COUNT(config_duration_units),
                            ret_ms);
}

static int config_parse_int(struct ng_str text, int64_t *ret)
{
    struct ng_str rest;
    int64_t value;
    text = config_trim(text);
    bool negative = text.len > 0 && text.data[0] == '-';
    if (negative || (text.len > 0 && text.data[0] == '+')) {
        text.data++;
        text.len--;
    }
    if (config_digits(text, &value, &rest) != NG_OK || rest.len > 0) {
        return NG_EINVAL;
    }
    if (negative) {
        *ret = -value;
    } else {
        *ret = value;
    }
    return NG_OK;
}

static int config_parse_number(struct ng_str text, double *ret)
{
    char copy[CONFIG_NUMBER_MAX];
    text = config_trim(text);
    if (text.len == 0 || text.len >= sizeof(copy)) {
        return NG_EINVAL;
    }
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    if (strspn(copy, "0123456789+-.eE") < text.len) {
        return NG_EINVAL; /* strtod also takes hexadecimal, infinity and NaN */
    }
    char *end;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0) {
        return NG_EINVAL;
    }
    double value = strtod_l(copy, &end, plain);
    freelocale(plain);
    if (*end != '\0' || !isfinite(value)) {
        return NG_EINVAL;
    }
    *ret = value;
    return NG_OK;
}

static int config_parse_bool(struct ng_str text, int64_t *ret)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    text = config_trim(text);
    for (size_t i = 0; i < NG_COUNT(words); i++) {
        if (str_equal_fold(text, ng_str_of(words[i]))) {
            *ret = (int64_t)(i % 2);
            return NG_OK;
        }
    }
    return NG_EINVAL;
}

/* Copies the element of `text` at *at to `to`, with "\\," made ",", and moves *at to its end.
 */
static struct ng_str config_split_next(char *to, struct ng_str text, size_t *at)
{
    size_t len = 0;
    while (*at < text.len && text.data[*at] != ',') {
        if (text.data[*at] == '\\' && *at + 1 < text.len && text.data[*at + 1] == ',') {
            (*at)++;
        }
        to[len++] = text.data[(*at)++];
    }
    struct ng_str item = config_trim(str_make(to, len));
    to[(size_t)(item.data - to) + item.len] = '\0';
    return item;
}

int config_value_split(struct arena *arena, struct ng_str text, const struct ng_str **ret_items,
                       size_t *ret_count)
{
    *ret_items = NULL;
    *ret_count = 0;
    if (config_trim(text).len == 0) {
        return NG_OK;
    }
    size_t most = 1;
    for (size_t i = 0; i < text.len; i++) {
        most += text.data[i] == ',';
    }
    if (most > CONFIG_ITEMS_MAX) {
        return NG_EINVAL;
    }
    struct ng_str *items = arena_alloc(arena, most * sizeof(*items));
    char *copy = arena_alloc(arena, text.len + 1);
    if (items == NULL || copy == NULL) {
        return NG_EINTERNAL;
    }
    size_t count = 0;
    for (size_t at = 0; at <= text.len; at++) {
        /* An element never needs more room than it had: it goes where it was. */
        items[count] = config_split_next(copy + at, text, &at);
        if (items[count].len == 0) {
            return NG_EINVAL;
        }
        count++;
    }
    *ret_items = items;
    *ret_count = count;
    return NG_OK;
}

int config_value_print(struct buf *out, enum ng_option_type type, int64_t number)
{
    const struct config_unit *units = config_size_units;
    size_t count = NG_COUNT(config_size_units);
    if (type == NG_OPTION_DURATION) {
        units = config_duration_units;
        count = NG_COUNT(config_duration_units);
    } else if (type != NG_OPTION_SIZE) {
        count = 0;
    }
    for (size_t i = 0; i < count && number > 0; i++) {
        if (units[i].factor > 1 && number % units[i].factor == 0) {
            return buf_printf(out, "%lld%s", (long long)(number / units[i].factor),
                              units[i].name);
        }
    }
    bool bare_ms = type == NG_OPTION_DURATION && number != 0;
    return buf_printf(out, "%lld%s", (long long)number, bare_ms ? "ms" : "");
}

/* The name of each type, and the message for a value that is none of it. */
static const struct {
    const char *name, *refused;
} config_types[] = {
    [NG_OPTION_TEXT] = {"text", "not text"},
    [NG_OPTION_INT] = {"whole number", "not a whole number"},
    [NG_OPTION_SIZE] = {"size", "not a size: write it as 4MiB, 4MB or 4096"},
    [NG_OPTION_DURATION] = {"duration",
                            "not a duration: write it as 500ms, 30s, 5min, 1h or 30d"},
    [NG_OPTION_BOOL] = {"true or false", "neither true nor false"},
    [NG_OPTION_LIST] = {"list",
                        "a list with an empty element, or with too many: write it as a,b,c"},
    [NG_OPTION_NUMBER] = {"number", "not a number"},
};

const char *config_value_type(enum ng_option_type type)
{
    return config_types[type].name;
}

bool config_value_has_range(enum ng_option_type type)
{
    return type == NG_OPTION_INT || type == NG_OPTION_SIZE || type == NG_OPTION_DURATION;
}

/* "`key` is `value`, " - without the value where it is secret or was brought in. */
static void config_begin(struct buf *error, const char *key, const struct ng_option *option,
                         const struct config_raw *raw)
{
    struct ng_str shown = utf8_cut(raw->written, CONFIG_SHOWN_MAX);
    if (option->secret || raw->is_list) {
        (void)buf_printf(error, "`%s` is ", key);
        return;
    }
    (void)buf_printf(error, "`%s` is `%.*s%s`, ", key, (int)shown.len,
                     shown.len > 0 ? shown.data : "",
                     shown.len < raw->written.len ? "..." : "");
}

static int config_check_range(const char *key, const struct ng_option *option,
                              const struct config_raw *raw, int64_t value, struct buf *error)
{
    bool open = option->min == 0 && option->max == 0;
    int64_t max = CONFIG_INTEGER_MAX;
    if (!open) {
        max = option->max;
    }
    if (value >= option->min && value <= max) {
        return NG_OK;
    }
    config_begin(error, key, option, raw);
    if (open) {
        (void)buf_add_c(error, "it must not be negative");
        return NG_EINVAL;
    }
    (void)buf_add_c(error, "it must be from ");
    (void)config_value_print(error, option->type, option->min);
    (void)buf_add_c(error, " to ");
    (void)config_value_print(error, option->type, option->max);
    return NG_EINVAL;
}

static int config_check_choice(const char *key, const struct ng_option *option,
                               const struct config_raw *raw, struct buf *error)
{
    if (option->choices == NULL || str_in_words(raw->text, option->choices)) {
        return NG_OK;
    }
    config_begin(error, key, option, raw);
    (void)buf_printf(error, "it must be one of: %s", option->choices);
    return NG_EINVAL;
}

static int config_parse_list(struct arena *arena, const struct config_raw *raw,
                             struct config_value *ret)
{
    if (!raw->is_list) {
        return config_value_split(arena, raw->text, &ret->items, &ret->item_count);
    }
    for (size_t i = 0; i < raw->item_count; i++) {
        if (raw->items[i].len == 0) {
            return NG_EINVAL;
        }
    }
    ret->items = raw->items;
    ret->item_count = raw->item_count;
    return NG_OK;
}

static int config_parse_typed(struct arena *arena, const struct ng_option *option,
                              const struct config_raw *raw, struct config_value *ret)
{
    switch (option->type) {
    case NG_OPTION_TEXT:
        return NG_OK;
    case NG_OPTION_INT:
        return config_parse_int(raw->text, &ret->integer);
    case NG_OPTION_SIZE:
        return config_parse_size(raw->text, &ret->integer);
    case NG_OPTION_DURATION:
        return config_parse_duration(raw->text, &ret->integer);
    case NG_OPTION_BOOL:
        return config_parse_bool(raw->text, &ret->integer);
    case NG_OPTION_LIST:
        return config_parse_list(arena, raw, ret);
    case NG_OPTION_NUMBER:
        return config_parse_number(raw->text, &ret->number);
    }
    return NG_EINVAL;
}

int config_value_parse(struct arena *arena, const char *key, const struct ng_option *option,
                       const struct config_raw *raw, struct config_value *ret,
                       struct buf *error)
{
    struct config_value value = {.text = raw->text};
    if (raw->is_list && option->type != NG_OPTION_LIST) {
        (void)buf_printf(error, "`%s` takes one value (%s), not a list", key,
                         config_value_type(option->type));
        return NG_EINVAL;
    }
    int rc = config_parse_typed(arena, option, raw, &value);
    if (rc == NG_EINVAL) {
        config_begin(error, key, option, raw);
        (void)buf_add_c(error, config_types[option->type].refused);
    }
    if (rc == NG_OK && config_value_has_range(option->type)) {
        value.number = (double)value.integer;
        rc = config_check_range(key, option, raw, value.integer, error);
    } else if (rc == NG_OK && option->type == NG_OPTION_TEXT) {
        rc = config_check_choice(key, option, raw, error);
    }
    if (rc == NG_OK) {
        *ret = value;
    }
    return rc;
}
