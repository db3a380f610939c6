/* SPDX-License-Identifier: MIT */
/* plugin_self.h - the plugin's self: its options and its open objects. */
#ifndef OPENNOTES_PLUGIN_SELF_H
#define OPENNOTES_PLUGIN_SELF_H

#include "text/text.h"

struct notes_notebooks;

/* The plugin's self: set in start() and constant until stop(). */
struct opennotes {
    const struct ng_host *host;
    char *folder;               /* of the indexes: data_dir/opennotes, absolute */
    struct notes_budget budget; /* an answer may have 75 % of it */
    int64_t query_timeout_ms;   /* of one SQL statement */
    char *daily_path;           /* template of the path of daily notes */
    char *views;                /* opennotes.views: a JSON object, or NULL */
    struct notes_notebooks *notebooks;
};

#endif
