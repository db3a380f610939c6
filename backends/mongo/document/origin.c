/* SPDX-License-Identifier: MIT */
/* origin.c - the origin of a change, as members of its outbox entry, version and event. A part
 * that is not known has no member. */
#include "document.h"

struct part {
    const char *name;
    struct ng_str text;
};

void origin_append(bson_t *to, const struct ng_origin *origin)
{
    const struct part parts[] = {
        {"run", origin->run_id}, {"key", origin->key_id}, {"request", origin->request_id}};
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        if (parts[i].text.len > 0) {
            put_str(to, parts[i].name, parts[i].text);
        }
    }
    if (origin->has_lines) {
        bson_add(to, "added:u, removed:u", origin->lines_added, origin->lines_removed);
    }
}

struct ng_origin origin_of(const bson_t *from)
{
    bson_iter_t iter;
    return (struct ng_origin){
        .run_id = member_str(from, "run"),
        .key_id = member_str(from, "key"),
        .request_id = member_str(from, "request"),
        .lines_added = member_u64(from, "added"),
        .lines_removed = member_u64(from, "removed"),
        .has_lines = member(from, "added", &iter),
    };
}
