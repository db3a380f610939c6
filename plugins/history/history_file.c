/* SPDX-License-Identifier: MIT */
/* history_file.c - files: their versions are the revisions of a document of NG_FILE_VERSIONS,
 * and the events of their changes are in the collections of the tools. */
#include <notegate/files.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "history.h"

int history_file_target(struct ng_call *call, struct history_target *ret)
{
    struct ng_str collection = STR_NONE;
    *ret = (struct history_target){.collection = NULL};
    if (ng_has_arg(call, "id") || ng_has_arg(call, "collection")) {
        return ng_fail(call, NG_EINVAL,
                       "`path` names a file, `collection` and `id` name a document: leave one "
                       "of them out");
    }
    int rc = call->host->use_file(call, ng_arg_text(call, "path"), &ret->key, &collection);
    if (rc == NG_OK) {
        ret->shown = (struct ng_key){collection, ret->key.space, ret->key.id};
    }
    return rc;
}

bool history_file_version(struct ng_call *call, const struct ng_event *event,
                          const struct ng_value *data, struct ng_key *ret_key,
                          uint64_t *ret_version)
{
    int64_t version = 0;
    const struct ng_value *number = call->host->json_get(data, "version");
    if (number == NULL || event->key.id.len == 0 || event->key.id.data[0] != '/' ||
        call->host->json_integer(number, &version) != NG_OK || version < 1) {
        return false;
    }
    *ret_key = (struct ng_key){ng_str_of(NG_FILE_VERSIONS), event->key.space, event->key.id};
    *ret_version = (uint64_t)version;
    return true;
}

struct ng_origin history_origin(struct ng_call *call, const struct ng_event *event,
                                const struct ng_value *data)
{
    struct ng_origin origin = event->origin;
    struct ng_key key;
    uint64_t version = 0;
    int64_t added = 0;
    int64_t removed = 0;
    if (history_file_version(call, event, data, &key, &version) &&
        call->host->json_integer(call->host->json_get(data, "added"), &added) == NG_OK &&
        call->host->json_integer(call->host->json_get(data, "removed"), &removed) == NG_OK) {
        origin.has_lines = true;
        origin.lines_added = (uint64_t)added;
        origin.lines_removed = (uint64_t)removed;
    }
    return origin;
}

/* ---- the change of a version ---- */

struct file_event {
    struct ng_call *call;
    uint64_t version;
    struct history_change *change;
};

static int take_event(void *user, const struct ng_event *event)
{
    struct file_event *wanted = user;
    const struct ng_value *data = NULL;
    struct ng_key key;
    uint64_t version = 0;
    if (event->data.len == 0 ||
        wanted->call->host->json_parse(wanted->call, event->data, &data) != NG_OK ||
        !history_file_version(wanted->call, event, data, &key, &version) ||
        version != wanted->version) {
        return 0;
    }
    wanted->change->seq = event->seq;
    wanted->change->time_ms = event->time_ms;
    wanted->change->action = history_copy(wanted->call, event->action);
    return 1;
}

/* The time of the file; the tool that found the content did not make it. */
static int file_found(struct ng_call *call, uint64_t version, struct ng_str data,
                      struct history_change *change)
{
    const struct ng_value *body = NULL;
    int64_t modified = 0;
    if (data.len > 0 && call->host->json_parse(call, data, &body) == NG_OK &&
        call->host->json_integer(call->host->json_get(body, "modified"), &modified) == NG_OK) {
        change->time_ms = modified;
    }
    change->agent = STR_NONE;
    change->run = STR_NONE;
    change->tool = STR_NONE;
    if (version > 1) {
        change->action = ng_str_of("external");
    }
    return NG_OK;
}

int history_file_change(struct ng_call *call, const struct history_target *target,
                        uint64_t version, struct ng_str data, struct history_change *change)
{
    if (str_is(change->action, NG_FILE_FOUND)) {
        return file_found(call, version, data, change);
    }
    struct file_event wanted = {call, version, change};
    uint64_t near = HISTORY_EVENT_NEAR;
    uint64_t next = 0;
    const struct ng_trail trail = {
        .size = sizeof(trail),
        .since = change->seq > near ? change->seq - near : 0,
        .until = change->seq + near,
        .spaces = {&target->key.space, 1},
        .id = target->key.id,
    };
    return call->host->trail(call, &trail, take_event, &wanted, &next);
}

/* ---- contents as they are compared ---- */

struct file_view {
    struct ng_call *call;
    struct ng_str content, text;
};

static int take_view(void *user, struct ng_str text)
{
    struct file_view *view = user;
    if (text.len == 0) {
        view->text = ng_str_of("");
    } else if (text.data != view->content.data) {
        view->text = history_copy(view->call, text);
    }
    return 0;
}

int history_view(struct ng_call *call, const struct history_target *target,
                 struct ng_str content, struct ng_str *ret)
{
    content = str_or(content, ng_str_of(""));
    struct file_view view = {call, content, content};
    int rc = NG_OK;
    if (target->collection == NULL) {
        rc = call->host->file_view(call, target->key.id, content, take_view, &view);
    }
    *ret = view.text;
    return rc == NG_OK && view.text.data == NULL ? history_no_memory(call) : rc;
}

/* ---- a path in a filter ---- */

/* Of a beginning the folder is resolved: "src/ma*". */
static int filter_real(struct ng_call *call, struct ng_str path, struct ng_trail *ret)
{
    struct ng_str *spaces = ng_alloc(call, sizeof(*spaces));
    struct ng_str rest = STR_NONE;
    struct ng_key key;
    if (spaces == NULL) {
        return history_no_memory(call);
    }
    if (ret->id_prefix) {
        size_t len = path.len;
        while (len > 0 && path.data[len - 1] != '/') {
            len--;
        }
        rest = str_make(path.data + len, path.len - len);
        path = len == 0 ? ng_str_of(".") : str_make(path.data, len > 1 ? len - 1 : len);
    }
    int rc = call->host->use_file(call, path, &key, NULL);
    if (rc != NG_OK) {
        return rc;
    }
    ret->id = key.id;
    if (ret->id_prefix) {
        ret->id = call->host->format(call, "%.*s/%.*s", (int)key.id.len, key.id.data,
                                     (int)rest.len, rest.data);
    }
    *spaces = key.space;
    ret->spaces = (struct ng_names){spaces, 1};
    return ret->id.data != NULL ? NG_OK : history_no_memory(call);
}

int history_file_filter(struct ng_call *call, struct ng_str path, struct ng_trail *ret)
{
    if (ng_has_arg(call, "id")) {
        return ng_fail(call, NG_EINVAL,
                       "`path` names files, `id` names documents: leave one of them out");
    }
    ret->id_prefix = str_ends(path, "*") && !str_ends(path, "\\*");
    if (str_ends(path, "\\*")) {
        path = call->host->format(call, "%.*s*", (int)path.len - 2, path.data);
    }
    path.len -= ret->id_prefix;
    return path.data != NULL ? filter_real(call, path, ret) : history_no_memory(call);
}
