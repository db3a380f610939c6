/* SPDX-License-Identifier: MIT */
/* config.c - the declared keys and their values: matches the values of the sources with the
 * keys of the modules, strongest source last. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "config_key.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/text_choice.h"
#include "gateway_options.h"

/* Memory of one configuration, all sources and keys. */
#define CONFIG_MEMORY_MAX ((size_t)32 * 1024 * 1024)

static int config_no_memory(struct buf *error)
{
    (void)buf_add_c(error, "no memory is left for the configuration");
    return NG_EINTERNAL;
}

static char *config_copy(struct config *config, const char *text)
{
    /* The arena's own memory: only the type says it is const. */
    return (char *)(uintptr_t)arena_copy(&config->arena, ng_str_of(text)).data;
}

/* The name of the variable of a key. */
static void config_to_env(char *name)
{
    for (char *c = name; *c != '\0'; c++) {
        if (*c == '.') {
            *c = '_';
        } else if (*c >= 'a' && *c <= 'z') {
            *c = (char)(*c - 'a' + 'A');
        }
    }
}

/* The place of `name` among the sorted keys; *ret_found: it is there. */
static size_t config_place(const struct config *config, const char *name, bool *ret_found)
{
    size_t low = 0;
    size_t high = config->count;
    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(config->keys[middle]->name, name);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct config_key *config_key_find(const struct config *config, const char *name)
{
    bool found;
    size_t place = config_place(config, name, &found);
    if (!found) {
        return NULL;
    }
    return config->keys[place];
}

/* ---- values ---- */

/* Elements with '+' add to the default. If all elements have it, the signs stay for the code
 * that knows the default (it depends on the installed modules); else the list replaces the
 * default and the signs are removed. */
static int config_plus(struct config *config, struct config_value *value, struct buf *error)
{
    bool all = true;
    for (size_t i = 0; i < value->item_count; i++) {
        all = all && value->items[i].data[0] == '+';
        if (str_is(value->items[i], "+")) {
            (void)buf_add_c(error, "`plugins` has a + without a name behind it");
            return NG_EINVAL;
        }
    }
    if (all || value->item_count == 0) {
        return NG_OK;
    }
    struct ng_str *items = arena_alloc(&config->arena, value->item_count * sizeof(*items));
    if (items == NULL) {
        return config_no_memory(error);
    }
    for (size_t i = 0; i < value->item_count; i++) {
        size_t skip = value->items[i].data[0] == '+';
        items[i] = str_make(value->items[i].data + skip, value->items[i].len - skip);
    }
    value->items = items;
    return NG_OK;
}

/* A flag given several times makes one list. */
static int config_append(struct config *config, const struct config_value *before,
                         struct config_value *value, struct buf *error)
{
    size_t count = before->item_count + value->item_count;
    if (count > CONFIG_ITEMS_MAX) {
        (void)buf_printf(error, "more than %d elements", CONFIG_ITEMS_MAX);
        return NG_EINVAL;
    }
    struct ng_str *items = arena_alloc(&config->arena, (count + 1) * sizeof(*items));
    if (items == NULL) {
        return config_no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        if (i < before->item_count) {
            items[i] = before->items[i];
        } else {
            items[i] = value->items[i - before->item_count];
        }
    }
    value->items = items;
    value->item_count = count;
    return NG_OK;
}

static int config_take(struct config *config, struct config_key *key, struct config_raw *raw,
                       struct buf *error)
{
    struct config_value value;
    struct buf why;
    raw->used = true;
    if (raw->is_null) {
        return NG_OK;
    }
    buf_init(&why, 2048);
    int rc = config_value_parse(&config->arena, key->name, &key->option, raw, &value, &why);
    bool again = key->origin != NULL && key->origin->source == CONFIG_FLAG &&
                 raw->source == CONFIG_FLAG && key->option.type == NG_OPTION_LIST;
    if (rc == NG_OK && again) {
        rc = config_append(config, &key->value, &value, &why);
    }
    if (rc == NG_OK && strcmp(key->name, "plugins") == 0) {
        rc = config_plus(config, &value, &why);
    }
    if (rc == NG_OK) {
        key->value = value;
        key->has_value = true;
        key->origin = raw;
    } else {
        config_source_where(&config->sources, raw, error);
        (void)buf_add_c(error, why.len > 0 ? buf_cstr(&why) : "no memory is left");
    }
    buf_done(&why);
    if (rc == NG_OK || rc == NG_EINTERNAL) {
        return rc;
    }
    return NG_EINVAL;
}

static bool config_matches(const struct config_key *key, const struct config_raw *raw)
{
    return str_is(raw->name, raw->source == CONFIG_ENVIRONMENT ? key->env : key->name);
}

/* A further name in the environment (REDIS_URL): weaker than NOTEGATE_..., stronger than the
 * file. */
static int config_take_env(struct config *config, struct config_key *key, struct buf *error)
{
    struct ng_str value = str_make(NULL, 0);
    if (key->option.env != NULL) {
        value = config_source_env(&config->sources, ng_str_of(key->option.env));
    }
    if (value.len == 0) {
        return NG_OK;
    }
    struct config_raw *raw = arena_zalloc(&config->arena, sizeof(*raw));
    if (raw == NULL) {
        return config_no_memory(error);
    }
    raw->source = CONFIG_ENVIRONMENT;
    raw->name = ng_str_of(key->option.env);
    raw->text = raw->written = value;
    return config_take(config, key, raw, error);
}

/* The value of a key from all sources, the strongest last. */
static int config_resolve(struct config *config, struct config_key *key, struct buf *error)
{
    static const enum config_source order[] = {CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_FLAG};
    for (size_t i = 0; i < NG_COUNT(order); i++) {
        int rc = NG_OK;
        if (order[i] == CONFIG_ENVIRONMENT) {
            rc = config_take_env(config, key, error);
        }
        for (struct config_raw *raw = config->sources.first; raw != NULL && rc == NG_OK;
             raw = raw->next) {
            if (raw->source == order[i] && config_matches(key, raw)) {
                rc = config_take(config, key, raw, error);
            }
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

int config_key_default(struct config *config, struct config_key *key, const char *text,
                       struct buf *error)
{
    struct config_raw raw = {.source = CONFIG_DEFAULT, .text = ng_str_of(text)};
    raw.written = raw.text;
    key->option.fallback = text;
    int rc =
        config_value_parse(&config->arena, key->name, &key->option, &raw, &key->value, error);
    key->has_value = rc == NG_OK;
    if (rc == NG_EINVAL) {
        (void)buf_add_c(error, " (the default of the module that declares it)");
    }
    return rc;
}

/* ---- declaring ---- */

static bool config_name_valid(const char *prefix, const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";
    return name != NULL && name[0] != '\0' && name[strspn(name, allowed)] == '\0' &&
           strlen(prefix) + strlen(name) + 2 < CONFIG_NAME_MAX;
}

static void config_copy_option(struct config *config, struct config_key *key,
                               const struct ng_option *option)
{
    const char **texts[] = {&key->option.name, &key->option.fallback, &key->option.env,
                            &key->option.choices, &key->option.help};
    key->option = *option;
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        if (*texts[i] != NULL) {
            *texts[i] = config_copy(config, *texts[i]);
        }
    }
}

static struct config_key *config_new_key(struct config *config, const char *prefix,
                                         const struct ng_option *option)
{
    struct config_key *key = arena_zalloc(&config->arena, sizeof(*key));
    struct ng_str env = arena_printf(&config->arena, CONFIG_ENV_PREFIX "%s%s%s", prefix,
                                     text_if(prefix[0] != '\0', "."), option->name);
    if (key == NULL || env.data == NULL) {
        return NULL;
    }
    key->env = (char *)(uintptr_t)env.data;
    key->name = config_copy(config, key->env + strlen(CONFIG_ENV_PREFIX));
    key->prefix = config_copy(config, prefix);
    config_copy_option(config, key, option);
    if (config->arena.failed) {
        return NULL;
    }
    config_to_env(key->env);
    return key;
}

static int config_insert(struct config *config, struct config_key *key, struct buf *error)
{
    bool found;
    size_t place = config_place(config, key->name, &found);
    if (config->count == CONFIG_KEYS_MAX) {
        (void)buf_printf(error, "more than %d keys are declared", CONFIG_KEYS_MAX);
        return NG_EINVAL;
    }
    for (const struct config_key *other = config->first; other != NULL; other = other->next) {
        if (strcmp(other->env, key->env) == 0) {
            (void)buf_printf(error, "the keys `%s` and `%s` share the variable %s", other->name,
                             key->name, key->env);
            return NG_EINVAL;
        }
    }
    memmove(&config->keys[place + 1], &config->keys[place],
            (config->count - place) * sizeof(config->keys[0]));
    config->keys[place] = key;
    config->count++;
    *config->last = key;
    config->last = &key->next;
    return NG_OK;
}

static int config_declare_one(struct config *config, const char *prefix,
                              const struct ng_option *option, struct buf *error)
{
    if (!config_name_valid(prefix, option->name)) {
        (void)buf_printf(error, "module %s declares a key with an invalid name: `%s`", prefix,
                         text_or(option->name, ""));
        return NG_EINVAL;
    }
    struct config_key *key = config_new_key(config, prefix, option);
    if (key == NULL) {
        return config_no_memory(error);
    }
    const struct config_key *present = config_key_find(config, key->name);
    if (present != NULL && strcmp(present->prefix, prefix) == 0) {
        return NG_OK;
    }
    if (present != NULL) {
        (void)buf_printf(error, "the key `%s` is declared by two modules", key->name);
        return NG_EINVAL;
    }
    int rc = config_insert(config, key, error);
    if (rc == NG_OK && key->option.fallback != NULL) {
        rc = config_key_default(config, key, key->option.fallback, error);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return config_resolve(config, key, error);
}

/* A module's keys begin with its name: that of a key or of a section of the gateway's own, as
 * `limits`, would put them among those. One without keys may have such a name. */
static int config_check_prefix(const struct config *config, const char *prefix,
                               struct buf *error)
{
    size_t len = strlen(prefix);
    for (const struct config_key *key = config->first; len > 0 && key != NULL;
         key = key->next) {
        if (key->prefix[0] == '\0' && strncmp(key->name, prefix, len) == 0 &&
            (key->name[len] == '\0' || key->name[len] == '.')) {
            (void)buf_printf(
                error,
                "a module cannot be called `%s`: `%s` is a key of the gateway's own "
                "configuration",
                prefix, key->name);
            return NG_EINVAL;
        }
    }
    return NG_OK;
}

int config_declare(struct config *config, const char *prefix, const struct ng_option *options,
                   size_t count, size_t option_size, struct buf *error)
{
    if (count > 0 && config_check_prefix(config, prefix, error) != NG_OK) {
        return NG_EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        struct ng_option option = {0};
        size_t size = size_min(option_size, sizeof(option));
        memcpy(&option, (const char *)options + i * option_size, size);
        int rc = config_declare_one(config, prefix, &option, error);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

/* ---- unknown keys ---- */

/* Distance of a declared key from the written name; SIZE_MAX: not similar. */
static size_t config_distance(const struct config_key *key, const struct config_raw *raw)
{
    bool env = raw->source == CONFIG_ENVIRONMENT;
    struct ng_str known = ng_str_of(env ? key->env : key->name);
    const char *dot = strrchr(key->name, '.');
    if (!env && dot != NULL && str_is(raw->name, dot + 1)) {
        return 1; /* the group was forgotten: `body` for `limits.body` */
    }
    size_t most = raw->name.len / 3;
    return edit_distance(known, raw->name, size_max(most, 2));
}

/* `key: {name: ...}` of a module's key that has one value; NULL: it is none of that, or there
 * are keys below it as well. */
static const struct config_key *config_above(const struct config *config,
                                             const struct config_raw *raw)
{
    const struct config_key *above = NULL;
    for (const struct config_key *key = config->first; key != NULL; key = key->next) {
        size_t len = strlen(key->name);
        if (above == NULL && raw->source == CONFIG_FILE && key->prefix[0] != '\0' &&
            raw->name.len > len && raw->name.data[len] == '.' &&
            memcmp(raw->name.data, key->name, len) == 0) {
            above = key;
        }
    }
    for (const struct config_key *key = config->first; key != NULL && above != NULL;
         key = key->next) {
        size_t len = strlen(above->name);
        if (strncmp(key->name, above->name, len) == 0 && key->name[len] == '.') {
            return NULL;
        }
    }
    return above;
}

static void config_unknown(const struct config *config, const struct config_raw *raw,
                           struct buf *error)
{
    const struct config_key *nearest = NULL;
    const struct config_key *above = config_above(config, raw);
    size_t best = SIZE_MAX;
    if (above != NULL && above->option.type == NG_OPTION_TEXT) {
        config_source_where(&config->sources, raw, error);
        (void)buf_printf(error,
                         "`%s` is one text, not a mapping; where it is JSON, write it in "
                         "quotes: `%s: '{\"name\": {...}}'`",
                         above->name, above->name);
        return;
    }
    for (const struct config_key *key = config->first; key != NULL; key = key->next) {
        size_t distance = config_distance(key, raw);
        if (distance < best) {
            best = distance;
            nearest = key;
        }
    }
    config_source_where(&config->sources, raw, error);
    (void)buf_printf(error, "unknown key `%s`", raw->name.data);
    if (nearest == NULL) {
        (void)buf_add_c(error, "; `notegate check --help-config` lists all");
        return;
    }
    bool env = raw->source == CONFIG_ENVIRONMENT;
    (void)buf_printf(error, "; the nearest is `%s`", env ? nearest->env : nearest->name);
}

/* `limits:` with nothing below it: a group, not a key. */
static bool config_is_group(const struct config *config, const struct config_raw *raw)
{
    for (const struct config_key *key = config->first; key != NULL; key = key->next) {
        if (raw->is_null && strncmp(key->name, raw->name.data, raw->name.len) == 0 &&
            key->name[raw->name.len] == '.') {
            return true;
        }
    }
    return false;
}

/* Could a module declare it later? Not where it has no group, or one of the gateway's. */
static bool config_is_ours(const struct config *config, const struct config_raw *raw)
{
    if (raw->source == CONFIG_ENVIRONMENT) {
        return false; /* its `_` may stand for a `.` or not */
    }
    const char *dot = strchr(raw->name.data, '.');
    size_t len = 0;
    if (dot != NULL) {
        len = (size_t)(dot - raw->name.data) + 1;
    }
    for (const struct config_key *key = config->first; key != NULL && len > 0;
         key = key->next) {
        if (strncmp(key->name, raw->name.data, len) == 0) {
            return true;
        }
    }
    return len == 0 && !raw->is_null;
}

/* Before any module is loaded: errors that no module can change. */
static int config_check_ours(const struct config *config, struct buf *error)
{
    for (const struct config_raw *raw = config->sources.first; raw != NULL; raw = raw->next) {
        if (!raw->used && config_is_ours(config, raw) && !config_is_group(config, raw)) {
            config_unknown(config, raw, error);
            return NG_EINVAL;
        }
    }
    return NG_OK;
}

/* ---- life ---- */

static int config_read(struct config *config, const struct config_input *input,
                       struct buf *error)
{
    int rc = config_source_init(&config->sources, &config->arena, input->environ, error);
    if (rc == NG_OK && !input->no_file) {
        rc = config_source_file(&config->sources, input->file, error);
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = config_source_environment(&config->sources, error);
    if (rc != NG_OK) {
        return rc;
    }
    rc = config_source_flags(&config->sources, input->sets, input->set_count, error);
    if (rc != NG_OK) {
        return rc;
    }
    rc = config_declare(config, "", gateway_options, gateway_option_count,
                        sizeof(gateway_options[0]), error);
    if (rc != NG_OK) {
        return rc;
    }
    rc = config_check_ours(config, error);
    if (rc != NG_OK) {
        return rc;
    }
    return config_default_machine(config, error);
}

int config_load(const struct config_input *input, struct config **ret, struct buf *error)
{
    struct config *config = alloc_zeroed(1, sizeof(*config));
    if (config == NULL) {
        return config_no_memory(error);
    }
    arena_init(&config->arena, CONFIG_MEMORY_MAX);
    config->last = &config->first;
    int rc = config_read(config, input, error);
    if (rc != NG_OK) {
        config_free(config);
        if (rc == NG_EINTERNAL) {
            return rc;
        }
        return NG_EINVAL;
    }
    *ret = config;
    return NG_OK;
}

void config_free(struct config *config)
{
    if (config != NULL) {
        arena_done(&config->arena);
        free(config);
    }
}

int config_finish(struct config *config, struct buf *error)
{
    for (const struct config_raw *raw = config->sources.first; raw != NULL; raw = raw->next) {
        if (!raw->used && !config_is_group(config, raw)) {
            config_unknown(config, raw, error);
            return NG_EINVAL;
        }
    }
    return NG_OK;
}

bool config_mentions(const struct config *config, const char *prefix)
{
    size_t len = strlen(prefix);
    char env[CONFIG_NAME_MAX];
    int env_len = snprintf(env, sizeof(env), "%s%s_", CONFIG_ENV_PREFIX, prefix);
    if (env_len < 0 || (size_t)env_len >= sizeof(env)) {
        return false;
    }
    config_to_env(env);
    for (const struct config_raw *raw = config->sources.first; raw != NULL; raw = raw->next) {
        bool ours;
        if (raw->source == CONFIG_ENVIRONMENT) {
            ours = strncmp(raw->name.data, env, (size_t)env_len) == 0;
        } else {
            ours = strncmp(raw->name.data, prefix, len) == 0 &&
                   (raw->name.data[len] == '.' || raw->name.data[len] == '\0');
        }
        if (!raw->used && ours) {
            return true;
        }
    }
    return false;
}
