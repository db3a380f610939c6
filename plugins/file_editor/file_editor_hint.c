/* SPDX-License-Identifier: MIT */
/* file_editor_hint.c - the nearest name in the folder of a path that does not exist. */
#include <string.h>

#include "core/base/text/edit_distance.h"
#include "file_editor.h"

#define HINT_ENTRIES_MAX 2000
#define HINT_NAME_MAX 64
#define HINT_DISTANCE_MAX 3

struct hint {
    struct ng_str wanted;
    char nearest[HINT_NAME_MAX + 1];
    size_t distance; /* of the nearest */
};

static int hint_entry(void *user, const struct ng_file_entry *entry)
{
    struct hint *hint = user;
    if (str_equal(entry->name, hint->wanted) || entry->name.len == 0 ||
        entry->name.len > HINT_NAME_MAX || editor_not_text(entry->name) != NULL) {
        return 0; /* equal: a dangling link */
    }
    size_t distance = edit_distance(hint->wanted, entry->name, HINT_DISTANCE_MAX);
    if (distance < hint->distance) {
        hint->distance = distance;
        memcpy(hint->nearest, entry->name.data, entry->name.len);
        hint->nearest[entry->name.len] = '\0';
    }
    return 0;
}

int editor_fail_missing(struct ng_call *call, struct ng_str path)
{
    size_t slash = path.len;
    while (slash > 0 && path.data[slash - 1] != '/') {
        slash--;
    }
    struct ng_str folder = {path.data, slash - (slash > 1)};
    struct hint hint = {
        .wanted = {path.data + slash, path.len - slash},
        .distance = HINT_DISTANCE_MAX + 1,
    };
    if (hint.wanted.len > 0 && hint.wanted.len <= HINT_NAME_MAX) {
        struct ng_file_list list = {
            .size = sizeof(list),
            .path = folder,
            .depth = 1,
            .max_entries = HINT_ENTRIES_MAX,
        };
        /* Without a listing there is no hint; the failure below replaces that of the listing.
         */
        (void)call->host->file_list(call, &list, hint_entry, &hint);
    }
    int rc = ng_fail(call, NG_ENOTFOUND,
                     "The path %.*s does not exist. Please provide a valid path.",
                     (int)path.len, path.data);
    if (hint.distance <= HINT_DISTANCE_MAX && hint.distance < hint.wanted.len) {
        call->host->hint(call, "Did you mean %.*s%s?", (int)slash, path.data, hint.nearest);
    }
    return rc;
}
