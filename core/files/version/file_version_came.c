/* SPDX-License-Identifier: MIT */
/* file_version_came.c - where a file came from that was moved without its content: it is too
 * large, or belongs to a folder with more contents than a move takes along. The first version
 * at the new path gets it as its `from`. */
#include "core/base/buf.h"
#include "core/base/str.h"
#include "core/json/json.h"
#include "file_version.h"

/* Bytes of the JSON, which has a path. */
#define CAME_JSON_MAX ((size_t)512 * 1024)

static int came_write(const struct file_version_came *came, struct ng_draft *next)
{
    struct buf json;
    buf_init(&json, CAME_JSON_MAX);
    (void)buf_printf(&json, "{\"at\":%llu,\"from_version\":%llu,\"from\":",
                     (unsigned long long)came->at, (unsigned long long)came->from_version);
    (void)buf_add_json(&json, came->from);
    (void)buf_add_char(&json, '}');
    int rc = json.rc == NG_OK ? store_draft_json(next, buf_str(&json)) : json.rc;
    buf_done(&json);
    return rc;
}

static int came_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    const struct file_version_came *came = user;
    (void)call;
    if (came->is_done != NULL && *came->is_done) {
        return NG_OK;
    }
    if (came->from_version != 0) {
        return came_write(came, next);
    }
    if (present->revision != 0 && !present->deleted) {
        store_draft_delete(next);
    }
    return NG_OK;
}

static struct ng_key came_key(struct ng_str space, struct ng_str real)
{
    return (struct ng_key){ng_str_of(FILE_VERSION_CAME), space, real};
}

void file_version_came(struct file_version_came *came, struct ng_change *ret)
{
    *ret = (struct ng_change){.size = sizeof(*ret),
                              .key = came_key(came->space, came->real),
                              .fn = came_fn,
                              .user = came};
}

int file_version_came_read(struct store *store, struct call *call, struct ng_str space,
                           struct ng_str real, uint64_t at, struct file_version_came *ret)
{
    const struct ng_key key = came_key(space, real);
    const struct ng_doc *doc = NULL;
    *ret = (struct file_version_came){.space = space, .real = real};
    int rc = store_get(store, call, &key, 0, &doc);
    if (rc != NG_OK || doc->revision == 0 || doc->deleted ||
        (uint64_t)json_get_integer(doc->body, "at") != at) {
        return rc;
    }
    ret->from = json_get_text(doc->body, "from");
    ret->from_version = (uint64_t)json_get_integer(doc->body, "from_version");
    return NG_OK;
}
