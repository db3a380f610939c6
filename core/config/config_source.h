/* SPDX-License-Identifier: MIT */
/* config_source.h - the sources of the configuration: file, environment, flags. Collects
 * values; their meaning is checked later. */
#ifndef NOTEGATE_CORE_CONFIG_SOURCE_H
#define NOTEGATE_CORE_CONFIG_SOURCE_H

#include "config_value.h"

/* Largest configuration file; largest file brought in with ${file:...}; largest value; values
 * of all sources together; nesting of the file; bytes of the environment that are read. */
#define CONFIG_FILE_MAX ((size_t)1024 * 1024)
#define CONFIG_SECRET_MAX ((size_t)64 * 1024)
#define CONFIG_VALUE_MAX ((size_t)256 * 1024)
#define CONFIG_VALUES_MAX 4096
#define CONFIG_DEPTH_MAX 16
#define CONFIG_ENVIRONMENT_MAX ((size_t)4 * 1024 * 1024)

/* Of a user's entry. */
#define CONFIG_PASSWD_MAX ((size_t)16 * 1024)

#define CONFIG_ENV_PREFIX "NOTEGATE_"

struct config_sources {
    struct arena *arena;
    const char *file;     /* the file that was read, or NULL */
    const char *passed;   /* a usual file that this user may not read, or NULL */
    char *const *environ; /* copied: "NAME=value", NULL at the end */
    struct config_raw *first, **last;
    size_t count;
};

int config_source_init(struct config_sources *sources, struct arena *arena,
                       char *const *variables, struct buf *error);
/* The home folder: $HOME, else the user's entry; {NULL, 0}: not known. */
struct ng_str config_source_home(struct config_sources *sources);
/* A value of a variable; {NULL, 0}: not set. */
struct ng_str config_source_env(const struct config_sources *sources, struct ng_str name);
/* A new, empty entry at the end. NULL: out of memory or too many, told in `error`. */
struct config_raw *config_source_add(struct config_sources *sources, enum config_source source,
                                     struct ng_str name, struct buf *error);
/* The file: `path`, or where that is NULL the first of the usual ones that exists and may be
 * read. One that others can write is refused. */
int config_source_file(struct config_sources *sources, const char *path, struct buf *error);
/* NOTEGATE_... of the environment. */
int config_source_environment(struct config_sources *sources, struct buf *error);
int config_source_flags(struct config_sources *sources, const char *const *sets, size_t count,
                        struct buf *error);
/* `text` with ${NAME} and ${file:/path} filled in; "$${" stands for "${". The sentence in
 * `error` has no place yet. */
int config_source_expand(struct config_sources *sources, struct ng_str text, struct ng_str *ret,
                         struct buf *error);
/* "notegate.yaml:3: ", "environment NOTEGATE_X: " or "flag x: ". */
void config_source_where(const struct config_sources *sources, const struct config_raw *raw,
                         struct buf *error);

/* config_yaml.c: adds the values of the YAML `text` of the file `path`. */
int config_yaml_read(struct config_sources *sources, struct ng_str text, struct buf *error);

#endif
