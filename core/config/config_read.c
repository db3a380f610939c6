/* SPDX-License-Identifier: MIT */
/* config_read.c - reading the configuration: values, views of modules, and the help that lists
 * every key. */
#include <assert.h>
#include <stdio.h>

#include "config_key.h"
#include "core/base/str.h"

struct ng_conf {
    const struct config *config;
    const char *prefix;
};

static const struct config_key *config_must(const struct config *config, const char *name)
{
    const struct config_key *key = config_key_find(config, name);
    assert(key != NULL && "a key that nobody declared");
    return key;
}

/* All zero where there is no such key, or it has no value. */
static const struct config_value *config_value_of(const struct config_key *key)
{
    static const struct config_value none = {.integer = 0};
    if (key == NULL || !key->has_value) {
        return &none;
    }
    return &key->value;
}

struct ng_str config_text(const struct config *config, const char *key)
{
    return config_value_of(config_must(config, key))->text;
}

int64_t config_int(const struct config *config, const char *key)
{
    return config_value_of(config_must(config, key))->integer;
}

double config_number(const struct config *config, const char *key)
{
    return config_value_of(config_must(config, key))->number;
}

bool config_bool(const struct config *config, const char *key)
{
    return config_int(config, key) != 0;
}

size_t config_list(const struct config *config, const char *key,
                   const struct ng_str **ret_items)
{
    const struct config_value *value = config_value_of(config_must(config, key));
    *ret_items = value->items;
    return value->item_count;
}

bool config_is_set(const struct config *config, const char *key)
{
    const struct config_key *found = config_must(config, key);
    return found != NULL && found->origin != NULL;
}

const char *config_file(const struct config *config)
{
    return config->sources.file;
}

void config_where(const struct config *config, const char *key, struct buf *out)
{
    const struct config_key *found = config_key_find(config, key);
    if (found != NULL && found->origin != NULL) {
        config_source_where(&config->sources, found->origin, out);
    }
}

const char *config_passed_over(const struct config *config)
{
    if (config->sources.file != NULL) {
        return NULL;
    }
    return config->sources.passed;
}

/* ---- views ---- */

struct ng_conf *config_view(struct config *config, const char *prefix)
{
    struct ng_conf *conf = arena_zalloc(&config->arena, sizeof(*conf));
    struct ng_str copy = arena_copy(&config->arena, ng_str_of(prefix));
    if (conf == NULL || copy.data == NULL) {
        return NULL;
    }
    conf->config = config;
    conf->prefix = copy.data;
    return conf;
}

const struct config *config_of_view(const struct ng_conf *conf)
{
    return conf->config;
}

/* The module's own key, else the gateway's; NULL: neither. */
static const struct config_key *config_view_find(const struct ng_conf *conf, const char *name)
{
    char whole[CONFIG_NAME_MAX];
    int len = snprintf(whole, sizeof(whole), "%s.%s", conf->prefix, name);
    const struct config_key *key = NULL;
    if (len > 0 && (size_t)len < sizeof(whole) && conf->prefix[0] != '\0') {
        key = config_key_find(conf->config, whole);
    }
    if (key != NULL && strcmp(key->prefix, conf->prefix) == 0) {
        return key;
    }
    key = config_key_find(conf->config, name);
    if (key == NULL || key->prefix[0] != '\0') {
        return NULL;
    }
    return key;
}

struct ng_str config_view_text(const struct ng_conf *conf, const char *key)
{
    return config_value_of(config_view_find(conf, key))->text;
}

int64_t config_view_int(const struct ng_conf *conf, const char *key)
{
    return config_value_of(config_view_find(conf, key))->integer;
}

double config_view_number(const struct ng_conf *conf, const char *key)
{
    return config_value_of(config_view_find(conf, key))->number;
}

bool config_view_bool(const struct ng_conf *conf, const char *key)
{
    return config_view_int(conf, key) != 0;
}

size_t config_view_list(const struct ng_conf *conf, const char *key,
                        const struct ng_str **ret_items)
{
    const struct config_value *value = config_value_of(config_view_find(conf, key));
    *ret_items = value->items;
    return value->item_count;
}

/* ---- help ---- */

static void config_help_value(const struct config_key *key, struct buf *out)
{
    if (key->option.secret) {
        (void)buf_add_c(out, key->origin != NULL ? "***" : "(none)");
        return;
    }
    if (!key->has_value) {
        (void)buf_add_c(out, "(none)");
    } else if (key->option.type == NG_OPTION_LIST) {
        for (size_t i = 0; i < key->value.item_count; i++) {
            if (i > 0) {
                (void)buf_add_c(out, ", ");
            }
            (void)buf_add_str(out, key->value.items[i]);
        }
    } else if (key->origin != NULL) {
        /* As written: what ${...} brought in may be secret. */
        (void)buf_add_str(out, key->origin->written);
    } else {
        (void)buf_add_str(out, key->value.text);
    }
}

static void config_help_key(const struct config *config, const struct config_key *key,
                            struct buf *out)
{
    const struct ng_option *option = &key->option;
    (void)buf_printf(out, "%s = ", key->name);
    config_help_value(key, out);
    if (key->origin != NULL) {
        (void)buf_add_c(out, "   (");
        config_source_where(&config->sources, key->origin, out);
        /* its ": " */
        if (out->rc == NG_OK) {
            out->len -= 2;
        }
        (void)buf_add_c(out, ")");
    }
    (void)buf_printf(out, "\n    %s\n    Type: %s", option->help != NULL ? option->help : "",
                     config_value_type(option->type));
    if (option->choices != NULL) {
        (void)buf_printf(out, ", one of: %s", option->choices);
    }
    if (config_value_has_range(option->type) && (option->min != 0 || option->max != 0)) {
        (void)buf_add_c(out, " from ");
        (void)config_value_print(out, option->type, option->min);
        (void)buf_add_c(out, " to ");
        (void)config_value_print(out, option->type, option->max);
    }
    const char *fallback = "none";
    if (option->fallback != NULL) {
        fallback = option->fallback;
    }
    (void)buf_printf(out, ". Default: %s. Environment: %s",
                     option->secret && option->fallback != NULL ? "***" : fallback, key->env);
    if (option->env != NULL) {
        (void)buf_printf(out, " or %s", option->env);
    }
    (void)buf_add_c(out, ".\n");
}

int config_help(const struct config *config, struct buf *out)
{
    for (const struct config_key *key = config->first; key != NULL; key = key->next) {
        config_help_key(config, key, out);
    }
    return out->rc;
}
