/* SPDX-License-Identifier: MIT */
/* config_value.h - one value of the configuration: its text and its meaning. */
#ifndef NOTEGATE_CORE_CONFIG_VALUE_H
#define NOTEGATE_CORE_CONFIG_VALUE_H

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "notegate/plugin.h"

/* Elements of one list. */
#define CONFIG_ITEMS_MAX 4096
/* Largest size, duration or whole number: what a double holds exactly. */
#define CONFIG_INTEGER_MAX (INT64_C(1) << 53)

enum config_source { CONFIG_DEFAULT = 0, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_FLAG };

/* A value as a source has it, not yet matched to a key. Memory of the configuration. */
struct config_raw {
    enum config_source source;
    struct ng_str name; /* the key; ENVIRONMENT: the variable */
    size_t line;        /* FILE: from 1 */
    bool is_list;       /* FILE: a sequence; else `text` */
    bool is_null;       /* FILE: nothing was written: as if the key were not there */
    struct ng_str text;
    struct ng_str written; /* text before ${...} was filled in */
    const struct ng_str *items;
    const struct ng_str *written_items; /* items before ${...} was filled in; or NULL */
    size_t item_count;
    bool used; /* a declared key took it */
    struct config_raw *next;
};

/* A checked value. Every type keeps its text. */
struct config_value {
    struct ng_str text;
    int64_t integer; /* INT; SIZE in bytes; DURATION in ms; BOOL */
    double number;
    const struct ng_str *items; /* LIST */
    size_t item_count;
};

/* Checks `raw` by the option and fills *ret. NG_EINVAL: `error` got the rest of a sentence that
 * began with the place ("`limits.body` is `x`, not a size: ..."); a secret's value stays out of
 * it. NG_EINTERNAL: out of memory. */
int config_value_parse(struct arena *arena, const char *key, const struct ng_option *option,
                       const struct config_raw *raw, struct config_value *ret,
                       struct buf *error);
/* "a, b\,c" -> "a" and "b,c". `text` "" is the empty list. */
int config_value_split(struct arena *arena, struct ng_str text, const struct ng_str **ret_items,
                       size_t *ret_count);
/* A number of the option's type as one would write it: "4MiB", "90d", "17". */
int config_value_print(struct buf *out, enum ng_option_type type, int64_t number);
/* A whole number, size or duration. */
bool config_value_has_range(enum ng_option_type type);
/* The type for people: "size". */
const char *config_value_type(enum ng_option_type type);

#endif
