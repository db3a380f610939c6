/* SPDX-License-Identifier: MIT */
/* config_read.c - reading the configuration: values, views of modules, and the help that lists
 * every key. */
#include <assert.h>
#include <stdio.h>

#include "config_key.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Instead of a secret. */
#define CONFIG_REDACTED "***"

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

bool config_declares(const struct config *config, const char *key)
{
    return config_key_find(config, key) != NULL;
}

/* ---- values for people ---- */

/* User and password of a URI are secret, whatever key it is the value of. */
static void config_put_text(struct buf *out, struct ng_str text)
{
    const char *scheme = text.len > 0 ? memmem(text.data, text.len, "://", 3) : NULL;
    size_t head = scheme != NULL ? (size_t)(scheme - text.data) + 3 : text.len;
    const char *at = head < text.len ? memrchr(scheme, '@', text.len - head + 3) : NULL;
    (void)buf_add(out, text.data, head);
    if (at != NULL) {
        (void)buf_add_c(out, CONFIG_REDACTED);
        head = (size_t)(at - text.data);
    }
    (void)buf_add(out, text.data + head, text.len - head);
}

/* As written: what ${...} brought in may be secret. */
static bool config_is_filled_in(const struct config_raw *origin)
{
    return origin != NULL && !origin->is_list && !str_equal(origin->written, origin->text);
}

static void config_put_list(struct buf *out, const struct config_key *key)
{
    const struct ng_str *items = key->value.items;
    if (key->origin != NULL && key->origin->written_items != NULL) {
        items = key->origin->written_items;
    }
    for (size_t i = 0; i < key->value.item_count; i++) {
        (void)buf_add_c(out, text_if(i > 0, ", "));
        config_put_text(out, items[i]);
    }
}

/* The value for people, without secrets. False: none. */
static bool config_put_value(const struct config_key *key, struct buf *out)
{
    if (key->option.secret) {
        (void)buf_add_c(out, text_if(key->origin != NULL, CONFIG_REDACTED));
        return key->origin != NULL;
    }
    if (!key->has_value) {
        return false;
    }
    if (config_is_filled_in(key->origin)) {
        config_put_text(out, key->origin->written);
    } else if (key->option.type == NG_OPTION_LIST) {
        config_put_list(out, key);
    } else if (key->origin != NULL) {
        config_put_text(out, key->origin->written);
    } else {
        config_put_text(out, key->value.text);
    }
    return true;
}

static const char *config_default(const struct config_key *key)
{
    if (key->option.secret && key->option.fallback != NULL) {
        return CONFIG_REDACTED;
    }
    return key->option.fallback;
}

/* ---- JSON ---- */

/* Equal values are equal texts: 4096KiB is 4MiB. */
static void config_put_member(struct buf *out, enum ng_option_type type, struct ng_str text)
{
    struct buf equal;
    int64_t number = 0;
    int rc = NG_EINVAL;
    buf_init(&equal, CONFIG_NAME_MAX);
    if (type == NG_OPTION_SIZE) {
        rc = config_parse_size(text, &number);
    } else if (type == NG_OPTION_DURATION) {
        rc = config_parse_duration(text, &number);
    }
    if (rc == NG_OK && config_value_print(&equal, type, number) == NG_OK) {
        text = buf_str(&equal);
    }
    (void)buf_add_json(out, text);
    buf_done(&equal);
}

static void config_print_key(const struct config_key *key, bool reloadable, struct buf *out)
{
    static const char *const sources[] = {
        [CONFIG_DEFAULT] = "default",
        [CONFIG_FILE] = "file",
        [CONFIG_ENVIRONMENT] = "environment",
        [CONFIG_FLAG] = "command line",
    };
    const struct ng_option *option = &key->option;
    enum config_source source = key->origin != NULL ? key->origin->source : CONFIG_DEFAULT;
    const char *fallback = config_default(key);
    struct buf value;
    buf_init(&value, CONFIG_VALUE_MAX);
    bool has_value = config_put_value(key, &value);
    (void)buf_printf(out, "{\"key\":\"%s\",\"value\":", key->name);
    if (!has_value) {
        (void)buf_add_c(out, "null");
    } else if (option->type == NG_OPTION_BOOL && !config_is_filled_in(key->origin)) {
        (void)buf_add_c(out, key->value.integer != 0 ? "\"true\"" : "\"false\"");
    } else {
        config_put_member(out, option->type, buf_str(&value));
    }
    (void)buf_add_c(out, ",\"default\":");
    if (fallback == NULL) {
        (void)buf_add_c(out, "null");
    } else {
        config_put_member(out, option->type, ng_str_of(fallback));
    }
    (void)buf_printf(out, ",\"source\":\"%s\",\"reloadable\":%s,\"help\":", sources[source],
                     reloadable ? "true" : "false");
    (void)buf_add_json(out, ng_str_of(text_or(option->help, "")));
    (void)buf_add_char(out, '}');
    if (value.rc != NG_OK) {
        out->rc = value.rc;
    }
    buf_done(&value);
}

int config_print(const struct config *config, config_in_effect_fn *in_effect, void *user,
                 struct buf *out)
{
    (void)buf_add_c(out, "{\"keys\":[");
    for (const struct config_key *key = config->first; key != NULL; key = key->next) {
        bool reloadable = false;
        const struct config_key *shown = NULL;
        if (in_effect != NULL) {
            shown = config_key_find(in_effect(user, key->prefix, key->name, &reloadable),
                                    key->name);
        }
        (void)buf_add_c(out, text_if(key != config->first, ","));
        config_print_key(shown != NULL ? shown : key, reloadable, out);
    }
    return buf_add_c(out, "]}");
}

/* ---- help ---- */

static void config_help_key(const struct config *config, const struct config_key *key,
                            struct buf *out)
{
    const struct ng_option *option = &key->option;
    (void)buf_printf(out, "%s = ", key->name);
    if (!config_put_value(key, out)) {
        (void)buf_add_c(out, "(none)");
    }
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
    (void)buf_printf(out, ". Default: %s. Environment: %s",
                     text_or(config_default(key), "none"), key->env);
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
