/* SPDX-License-Identifier: MIT */
/* listing.h - receives a plugin's entries of a resource, prompt or completion listing
 * (ng_host.list_add). */
#ifndef NOTEGATE_CORE_LISTING_H
#define NOTEGATE_CORE_LISTING_H

#include "notegate/plugin.h"

/* One entry; lent for the call of add(). */
struct listing_item {
    struct ng_str id, name, description, mime_type;
    uint64_t bytes;
    int64_t modified_ms;
};

/* A transport embeds this first in its own struct. add(): not NG_OK stops the listing. */
struct ng_listing {
    int (*add)(struct ng_listing *listing, const struct listing_item *item);
    struct ng_str after; /* the id behind which the listing is wanted; absent: from its start */
    bool seeks;          /* the plugin asked for `after`, and begins behind it by itself */
};

#endif
