/* SPDX-License-Identifier: MIT */
/* undo_file_version.c - the changes of files in their events, and the contents of versions. */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/json/json.h"
#include "core/store/store.h"
#include "undo.h"

/* Memory of the data of one event. */
#define FILE_DATA_MAX ((size_t)16 << 20)

/* ---- the change of a file in its event ---- */

/* A text of the event in memory of the undo's call; {NULL, 0}: it has none. */
static int change_text(struct undo *undo, const struct ng_value *data, const char *name,
                       struct ng_str *ret)
{
    struct ng_str text = json_get_text(data, name);
    *ret = text.len > 0 ? arena_copy(&undo->call->arena, text) : STR_NONE;
    return text.len > 0 && ret->data == NULL ? call_no_memory(undo->call) : NG_OK;
}

/* A file without a version counts if a folder took it along, which needs no content. */
static int change_read(struct undo *undo, const struct ng_value *data,
                       struct undo_file_change *ret)
{
    int64_t number = 0;
    struct ng_str folder = json_get_text(data, "folder");
    int rc = change_text(undo, data, "to", &ret->to);
    ret->is_folder = str_equal(folder, ret->key.id);
    bool has = json_integer(json_get(data, "version"), &number) == NG_OK && number > 0;
    if (rc != NG_OK || (!has && (folder.len == 0 || ret->is_folder))) {
        return rc;
    }
    ret->is_file = true;
    ret->version = has ? (uint64_t)number : 0;
    ret->has_gap = json_get(data, "gap") != NULL;
    ret->key.collection = ng_str_of(NG_FILE_VERSIONS);
    rc = change_text(undo, data, "across", &ret->across);
    ret->is_across = json_get(data, "across") != NULL && ret->across.len == 0;
    ret->is_source = ret->across.len > 0 && json_get(data, "revision") == NULL;
    if (rc == NG_OK) {
        rc = change_text(undo, data, "from", &ret->from);
    }
    if (rc == NG_OK) {
        rc = change_text(undo, data, "folder", &ret->folder);
    }
    return rc;
}

int undo_file_change(struct undo *undo, const struct ng_event *event,
                     struct undo_file_change *ret)
{
    const struct ng_value *data = NULL;
    struct arena arena;
    int rc = NG_OK;
    *ret = (struct undo_file_change){.key = event->key, .version = event->revision};
    if (!str_begins(event->key.id, "/") || event->data.len == 0) {
        return NG_OK;
    }
    arena_init(&arena, FILE_DATA_MAX);
    if (json_parse(&arena, event->data, JSON_DEPTH_DEFAULT, &data, NULL) == NG_OK) {
        rc = change_read(undo, data, ret);
    }
    arena_done(&arena);
    return rc;
}

/* ---- versions ---- */

/* A version as it is stored, and its content. */
struct version {
    const struct ng_doc *doc; /* NULL: there was none, or it is not kept */
    struct content content;
};

/* Version 0: there was none. *ret_kept: it can be read. */
static int version_read(struct undo_plan *plan, const struct ng_key *key, uint64_t version,
                        struct version *ret, bool *ret_kept)
{
    struct call *call = plan->call;
    const struct ng_doc *doc = NULL;
    *ret = (struct version){.doc = NULL};
    *ret_kept = true;
    if (version == 0) {
        return NG_OK;
    }
    int rc = store_get(call->gateway->store, call, key, version, &doc);
    if (rc == NG_ENOTFOUND) {
        call_reset_result(call);
        *ret_kept = false;
        return NG_OK;
    }
    if (rc != NG_OK) {
        return rc;
    }
    ret->doc = doc;
    if (!doc->deleted) {
        ret->content.exists = doc->revision != 0;
        ret->content.text = str_or(doc->text, ng_str_of(""));
    }
    return NG_OK;
}

/* Of a file that came with a move: the version that it had at its old place, where that is
 * known. inout: the one at the new place. */
static int version_origin(struct undo_plan *plan, struct version *inout)
{
    const struct undo_doc *doc = plan->part;
    const struct ng_key key = {doc->key.collection, doc->moved_space, doc->moved_from};
    struct version origin;
    int64_t from = (int64_t)doc->moved_version;
    bool known = false;
    if (from == 0) {
        (void)json_integer(json_get(inout->doc->body, "from_version"), &from);
    }
    if (from <= 0) {
        return NG_OK;
    }
    int rc = version_read(plan, &key, (uint64_t)from, &origin, &known);
    if (rc == NG_OK && known && origin.content.exists) {
        *inout = origin;
    }
    return rc;
}

int undo_file_after(struct undo_plan *plan, uint64_t version, struct content *ret,
                    bool *ret_kept)
{
    struct version found;
    int rc = version_read(plan, &plan->part->key, version, &found, ret_kept);
    *ret = found.content;
    return rc;
}

int undo_file_before(struct undo_plan *plan, uint64_t version, struct content *ret,
                     bool *ret_kept)
{
    const struct undo_doc *doc = plan->part;
    struct version found;
    bool moved = doc->moved_at == version;
    int rc = version_read(plan, &doc->key, moved ? version : version - 1, &found, ret_kept);
    if (rc == NG_OK && moved && found.doc != NULL) {
        rc = version_origin(plan, &found);
    }
    *ret = found.content;
    if (rc == NG_OK && plan->group_count == 1 && found.content.exists) {
        plan->file->mode = (uint32_t)json_get_integer(found.doc->body, "mode");
    }
    return rc;
}
