/* SPDX-License-Identifier: MIT */
/* file_editor_hint.c - the nearest name in the folder of a path that does not exist. */
#include <ctype.h>
#include <string.h>

#include "core/base/minmax.h"
#include "file_editor.h"

#define HINT_ENTRIES_MAX 2000
#define HINT_NAME_MAX 64
#define HINT_DISTANCE_MAX 3

struct hint {
    struct ng_str wanted;
    char nearest[HINT_NAME_MAX + 1];
    size_t distance; /* of the nearest */
};

/* Edits from one name to the other, case folded; both at most HINT_NAME_MAX bytes. */
static size_t name_distance(struct ng_str a, struct ng_str b)
{
    size_t row[HINT_NAME_MAX + 1];
    for (size_t j = 0; j <= b.len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            bool same =
                tolower((unsigned char)a.data[i - 1]) == tolower((unsigned char)b.data[j - 1]);
            size_t least = corner + !same;
            corner = row[j];
            least = size_min(row[j] + 1, least);
            row[j] = size_min(row[j - 1] + 1, least);
        }
    }
    return row[b.len];
}

static int hint_entry(void *user, const struct ng_file_entry *entry)
{
    struct hint *hint = user;
    bool itself = entry->name.len == hint->wanted.len &&
                  memcmp(entry->name.data, hint->wanted.data, entry->name.len) == 0;
    if (itself || entry->name.len == 0 || entry->name.len > HINT_NAME_MAX ||
        editor_not_text(entry->name) != NULL) {
        return 0; /* itself: a link to nothing */
    }
    size_t distance = name_distance(hint->wanted, entry->name);
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
    struct ng_str folder = {path.data, slash > 1 ? slash - 1 : slash};
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
        /* Where the folder cannot be listed there is no hint; the failure is the one below. */
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
