/* SPDX-License-Identifier: MIT */
/* config_key.h - the declared keys, as the parts of the configuration (config.c,
 * config_default.c, config_read.c) see them. */
#ifndef NOTEGATE_CORE_CONFIG_KEY_H
#define NOTEGATE_CORE_CONFIG_KEY_H

#include "config.h"
#include "config_source.h"

/* Declared keys; longest key with its prefix. */
#define CONFIG_KEYS_MAX 1024
#define CONFIG_NAME_MAX 160

struct config_key {
    char *name;              /* whole */
    char *env;               /* NOTEGATE_... */
    char *prefix;            /* prefix of the module that declared it; "" is the gateway */
    struct ng_option option; /* its texts are copies */
    struct config_value value;
    bool has_value;                  /* set, or a default */
    const struct config_raw *origin; /* strongest source; NULL: the default */
    struct config_key *next;         /* in the order of declaration */
};

struct config {
    struct arena arena;
    struct config_sources sources;
    struct config_key *keys[CONFIG_KEYS_MAX]; /* sorted by name */
    size_t count;
    struct config_key *first, **last;
};

/* By whole name; NULL: it is not declared. */
struct config_key *config_key_find(const struct config *config, const char *name);
/* `text` (lent for as long as the configuration) is the key's default and present value. */
int config_key_default(struct config *config, struct config_key *key, const char *text,
                       struct buf *error);
/* config_default.c: the defaults of the gateway's keys that depend on the machine. */
int config_default_machine(struct config *config, struct buf *error);

#endif
