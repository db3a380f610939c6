/* SPDX-License-Identifier: MIT */
/* history_paths.c - the paths that a file had before it was moved or copied. The version that
 * came with the move is the first one since the file is at its path, and names the version that
 * it was. */
#include <notegate/files.h>

#include "core/base/str.h"
#include "history.h"

/* May the caller see the file at its old path, and is it that path still? */
static int came_from_seen(struct ng_call *call, const struct history_target *target,
                          struct ng_str from, struct history_target *ret, bool *ret_seen)
{
    struct ng_str collection = STR_NONE;
    struct ng_key same;
    *ret = (struct history_target){.collection = NULL};
    int rc = call->host->use_file(call, from, &ret->key, &collection);
    *ret_seen = rc == NG_OK && str_equal(ret->key.id, from) &&
                str_equal(ret->key.space, target->key.space);
    if (rc == NG_ENOTFOUND || rc == NG_EOUTSIDE || rc == NG_EFORBIDDEN) {
        rc = NG_OK;
    }
    if (rc == NG_OK && !*ret_seen) { /* the call is about the target again */
        rc = call->host->use_file(call, target->key.id, &same, NULL);
    }
    ret->shown = (struct ng_key){collection, ret->key.space, ret->key.id};
    return rc;
}

int history_came_from(struct ng_call *call, const struct history_target *target,
                      const struct ng_value *body, struct history_target *ret,
                      uint64_t *ret_version)
{
    const struct ng_host *host = call->host;
    struct ng_str from = host->json_text(host->json_get(body, "from"));
    int64_t version = 0;
    bool seen = false;
    *ret_version = 0;
    if (from.len == 0 ||
        host->json_integer(host->json_get(body, "from_version"), &version) != NG_OK ||
        version < 1) {
        return NG_OK;
    }
    int rc = came_from_seen(call, target, from, ret, &seen);
    *ret_version = rc == NG_OK && seen ? (uint64_t)version : 0;
    return rc;
}

/* ---- the first version at a path ---- */

struct path_row {
    struct ng_call *call;
    uint64_t revision, seq, created_seq; /* revision 0: it is not kept */
    struct ng_str json;
};

static int take_row(void *user, const struct ng_doc *row)
{
    struct path_row *taken = user;
    taken->revision = row->revision;
    taken->seq = row->seq;
    taken->created_seq = row->created_seq;
    taken->json = history_copy(taken->call, row->json);
    return 1;
}

static int read_row(const struct history_path *path, struct ng_range range,
                    struct path_row *ret)
{
    const struct ng_key *key = &path->target.key;
    range.size = sizeof(range);
    range.limit = 1;
    return ret->call->host->history(ret->call, key, &range, take_row, ret);
}

/* Its JSON. revision 0: it is not known which one it is, or it is not kept. */
static int read_first(const struct history_path *path, struct path_row *ret)
{
    struct ng_call *call = ret->call;
    struct ng_as_of found = {.size = sizeof(found)};
    struct path_row last = {.call = call};
    int rc = read_row(path, (struct ng_range){.from = path->last, .to = path->last}, &last);
    if (rc != NG_OK || last.created_seq == 0) {
        return rc;
    }
    struct ng_str point =
        call->host->format(call, "#%llu", (unsigned long long)last.created_seq);
    if (point.data == NULL) {
        return history_no_memory(call);
    }
    rc = call->host->revision_at(call, &path->target.key, "path", point, &found);
    if (rc == NG_OK && found.kept && found.revision != 0) {
        const struct ng_range range = {
            .from = found.revision, .to = found.revision, .with_body = true};
        rc = read_row(path, range, ret);
    }
    if (rc == NG_OK && ret->seq != last.created_seq) {
        ret->revision = 0; /* thinned out: it is one before */
    }
    return rc;
}

/* ---- all paths ---- */

/* *ret_found: the file was moved to this path, from *ret. */
static int path_before(struct ng_call *call, struct history_path *path,
                       struct history_path *ret, bool *ret_found)
{
    struct path_row first = {.call = call};
    const struct ng_value *body = NULL;
    *ret_found = false;
    int rc = read_first(path, &first);
    if (rc != NG_OK || first.revision == 0) {
        return rc;
    }
    rc = call->host->json_parse(call, first.json, &body);
    *ret = (struct history_path){.first = 1};
    if (rc == NG_OK) {
        rc = history_came_from(call, &path->target, body, &ret->target, &ret->last);
    }
    if (rc == NG_OK && ret->last != 0) {
        path->first = first.revision;
        path->first_seq = first.seq;
        *ret_found = true;
    }
    return rc;
}

int history_paths(struct ng_call *call, const struct history_target *target, uint64_t last,
                  struct history_paths *ret)
{
    bool found = target->collection == NULL;
    int rc = NG_OK;
    ret->items[0] = (struct history_path){.target = *target, .first = 1, .last = last};
    ret->count = 1;
    ret->is_cut = false;
    while (rc == NG_OK && found) {
        struct history_path before = {.first = 0};
        rc = path_before(call, &ret->items[ret->count - 1], &before, &found);
        if (rc == NG_OK && found && ret->count == NG_COUNT(ret->items)) {
            ret->is_cut = found;
            break;
        }
        if (rc == NG_OK && found) {
            ret->items[ret->count++] = before;
        }
    }
    return rc;
}
