/* SPDX-License-Identifier: MIT */
/*
 * config.h - configuration: file, environment and flags, checked against declared keys.
 *
 * Life: config_load() reads all sources and checks the gateway's own keys; the modules named in
 * them are loaded and add theirs with config_declare(); config_finish() refuses undeclared
 * keys.
 */
#ifndef NOTEGATE_CORE_CONFIG_H
#define NOTEGATE_CORE_CONFIG_H

#include "core/base/buf.h"
#include "notegate/plugin.h"

struct config;

/* Sources of values in rising priority: file, environment, flags. */
struct config_input {
    /* --config; NULL: notegate/notegate.yaml in $XDG_CONFIG_HOME (~/.config), else in /etc,
     * else none. */
    const char *file;
    bool no_file;            /* read no file at all (tests) */
    char *const *environ;    /* NOTEGATE_...; NULL: none */
    const char *const *sets; /* "key=value" of --set and of the named flags, in order */
    size_t set_count;
};

/* Errors: one sentence in `error` with file and line (or the flag or variable) and the nearest
 * known key. NG_OK, NG_EINVAL. */
int config_load(const struct config_input *input, struct config **ret, struct buf *error);
/* Declares the keys `prefix`.NAME of a module (prefix "" = as they are). May be called again
 * with the same. */
int config_declare(struct config *config, const char *prefix, const struct ng_option *options,
                   size_t count, size_t option_size, struct buf *error);
int config_finish(struct config *config, struct buf *error);
void config_free(struct config *config);

/* Values of declared keys, by whole name ("limits.body"). Lent until config_free. Sizes in
 * bytes, durations in ms. Asking for a key that was not declared is a bug (assert). */
struct ng_str config_text(const struct config *config, const char *key); /* {NULL, 0}: none */
int64_t config_int(const struct config *config, const char *key);
double config_number(const struct config *config, const char *key);
bool config_bool(const struct config *config, const char *key);
size_t config_list(const struct config *config, const char *key,
                   const struct ng_str **ret_items);
/* Was it set by anyone (not the default)? */
bool config_is_set(const struct config *config, const char *key);
/* The source of the value, as "notegate.yaml:3: "; empty if it was not set. */
void config_where(const struct config *config, const char *key, struct buf *out);
/* The file that was read, or NULL. */
const char *config_file(const struct config *config);
/* A usual file that was passed over because this user may not read it, or NULL. */
const char *config_passed_over(const struct config *config);

/* The view of one module: its keys without prefix, and the gateway's own. NULL: out of memory.
 */
struct ng_conf *config_view(struct config *config,
                            const char *prefix); /* lives as long as config */
const struct config *config_of_view(const struct ng_conf *conf);

/* The conf_* functions of struct ng_host: the module's own key, else the gateway's key of that
 * name. An unknown key gives 0, false or {NULL, 0}. */
struct ng_str config_view_text(const struct ng_conf *conf, const char *key);
int64_t config_view_int(const struct ng_conf *conf, const char *key);
double config_view_number(const struct ng_conf *conf, const char *key);
bool config_view_bool(const struct ng_conf *conf, const char *key);
size_t config_view_list(const struct ng_conf *conf, const char *key,
                        const struct ng_str **ret_items);

/* Is a key `prefix`.NAME set that is not declared yet? Then config_finish() refuses it, unless
 * the module of that name (present, but not in use) declares its keys. */
bool config_mentions(const struct config *config, const char *prefix);

/* Every declared key with type, default, range, present value (secrets as "***") and help, for
 * `notegate check --help-config`. */
int config_help(const struct config *config, struct buf *out);

/* The configuration whose value of a key is in effect, and in *ret_reloadable whether a reload
 * can change it. prefix: that of the module that declared the key, "" the gateway's. */
typedef const struct config *config_in_effect_fn(void *user, const char *prefix,
                                                 const char *key, bool *ret_reloadable);
/* All keys declared in `config`, as JSON: {"keys":[{"key","value","default","source",
 * "reloadable","help"}]}. A value is text as a flag takes it, or null; secrets are "***".
 * in_effect NULL: the values of `config`, none reloadable. The error of `out`. */
int config_print(const struct config *config, config_in_effect_fn *in_effect, void *user,
                 struct buf *out);
/* Whether `config` declares the key. */
bool config_declares(const struct config *config, const char *key);

/* "4MiB" -> 4194304; "5min" -> 300000. NG_EINVAL: not of the form, or over 2^53. */
int config_parse_size(struct ng_str text, int64_t *ret_bytes);
int config_parse_duration(struct ng_str text, int64_t *ret_ms);

#endif
