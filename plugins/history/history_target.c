/* SPDX-License-Identifier: MIT */
/* history_target.c - the document that a call names, and its revision at a point. */
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "history.h"

int history_no_memory(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "out of memory for a history");
}

int history_shelf(struct ng_call *call, struct history_target *ret)
{
    struct ng_str name = str_or(ng_arg_text(call, "collection"), ng_str_of("notebooks"));
    if (call->host->json_type(ng_arg(call, "collection")) == NG_TYPE_ARRAY) {
        return ng_fail(call, NG_EINVAL, "`collection` is a list, but a document is in one");
    }
    *ret = (struct history_target){.key.collection = name};
    ret->collection = call->host->collection(call, name);
    if (ret->collection == NULL || (ret->collection->flags & NG_COLLECTION_CONTENT) == 0) {
        return ng_fail(call, NG_ENOTFOUND,
                       "`collection`: none that keeps revisions is called \"%.*s\"",
                       (int)utf8_cut(name, HISTORY_SHOWN).len, name.data);
    }
    int rc = call->host->use_collection(call, name);
    ret->key.space = call->caller->space;
    return rc;
}

int history_target(struct ng_call *call, struct history_target *ret)
{
    if (ng_has_arg(call, "path")) {
        return history_file_target(call, ret);
    }
    int rc = history_shelf(call, ret);
    ret->key.id = ng_arg_text(call, "id");
    ret->shown = ret->key;
    if (rc == NG_OK && ret->key.id.data == NULL) {
        rc = ng_fail(call, NG_EINVAL,
                     "neither `id` nor `path`: the document or file is not named");
    }
    return rc;
}

/* ---- the change that made a revision ---- */

struct ng_str history_copy(struct ng_call *call, struct ng_str text)
{
    char *copy = text.len == 0 ? NULL : ng_alloc(call, text.len);
    if (copy == NULL) {
        return str_make(NULL, 0);
    }
    memcpy(copy, text.data, text.len);
    return str_make(copy, text.len);
}

struct change_row {
    struct ng_call *call;
    struct history_change *change;
    struct ng_str data; /* of the event; call memory */
};

static int take_change(void *user, const struct ng_doc *row)
{
    struct change_row *taken = user;
    taken->data = history_copy(taken->call, row->event_data);
    *taken->change = (struct history_change){
        .seq = row->seq,
        .time_ms = row->updated_ms,
        .agent = history_copy(taken->call, row->author),
        .run = history_copy(taken->call, row->origin.run_id),
        .tool = history_copy(taken->call, row->tool),
        .action = history_copy(taken->call, row->action),
    };
    return 1;
}

int history_change_of(struct ng_call *call, const struct history_target *target,
                      uint64_t revision, struct history_change *ret)
{
    struct ng_range range = {
        .size = sizeof(range), .from = revision, .to = revision, .limit = 1};
    struct change_row row = {.call = call, .change = ret};
    int rc = call->host->history(call, &target->key, &range, take_change, &row);
    if (rc == NG_OK && target->collection == NULL) {
        rc = history_file_change(call, target, revision, row.data, ret);
    }
    return rc;
}

/* A revision before the newest one: content and change from one read. */
struct revision_row {
    struct ng_call *call;
    const struct history_target *target;
    struct history_version *version;
    struct ng_str data;
    int rc;
};

static int take_revision(void *user, const struct ng_doc *row)
{
    struct revision_row *taken = user;
    struct ng_call *call = taken->call;
    struct history_change *change = &taken->version->change;
    struct change_row change_row = {.call = call, .change = change};
    struct ng_doc *doc = ng_alloc(call, sizeof(*doc));
    struct ng_str json = history_copy(call, row->json);
    struct ng_str text = history_copy(call, row->text);
    if (doc == NULL || json.len < row->json.len || text.len < row->text.len) {
        taken->rc = history_no_memory(call);
        return 1;
    }
    (void)take_change(&change_row, row);
    taken->data = change_row.data;
    *doc = (struct ng_doc){
        .size = sizeof(*doc),
        .key = taken->target->key,
        .revision = row->revision,
        .deleted = row->deleted,
        .json = json,
        .text = str_or(text, ng_str_of("")),
        .text_size = row->text_size,
        .seq = row->seq,
        .created_seq = row->created_seq,
        .created_ms = row->created_ms,
        .updated_ms = row->updated_ms,
        .author = change->agent,
        .action = change->action,
    };
    taken->rc = call->host->json_parse(call, json, &doc->body);
    taken->version->doc = doc;
    return 1;
}

static int read_revision(struct ng_call *call, const struct history_target *target,
                         uint64_t revision, struct history_version *ret)
{
    const struct ng_range range = {
        .size = sizeof(range), .from = revision, .to = revision, .limit = 1, .with_body = true};
    struct revision_row row = {.call = call, .target = target, .version = ret};
    ret->doc = NULL;
    int rc = call->host->history(call, &target->key, &range, take_revision, &row);
    if (rc == NG_OK) {
        rc = row.rc;
    }
    if (rc == NG_OK && ret->doc == NULL) {
        rc = ng_fail(call, NG_ENOTFOUND, "revision %llu is not kept",
                     (unsigned long long)revision);
    }
    if (rc == NG_OK && target->collection == NULL) {
        rc = history_file_change(call, target, revision, row.data, &ret->change);
    }
    return rc;
}

int history_revision(struct ng_call *call, const struct history_target *target,
                     uint64_t revision, struct history_version *ret)
{
    const struct ng_doc *newest = NULL;
    ret->revision = revision;
    int rc = call->host->get(call, &target->key, 0, &newest);
    if (rc != NG_OK) {
        return rc;
    }
    if (newest->revision != revision) {
        return read_revision(call, target, revision, ret);
    }
    ret->doc = newest;
    return history_change_of(call, target, revision, &ret->change);
}

/* ---- at a point ---- */

static struct ng_str shown(const struct history_target *target)
{
    return utf8_cut(target->key.id, HISTORY_SHOWN);
}

static void put_nearest(struct ng_call *call, uint64_t before, uint64_t after)
{
    struct ng_writer *writer = call->host->details(call);
    json_object(writer);
    if (before != 0) {
        json_member_int(writer, "before", (int64_t)before);
    }
    if (after != 0) {
        json_member_int(writer, "after", (int64_t)after);
    }
    json_end(writer);
}

bool history_has_gap(struct ng_call *call, const struct history_target *target,
                     const struct ng_doc *version)
{
    return target->collection == NULL && call->host->json_get(version->body, "gap") != NULL;
}

int history_fail_gap(struct ng_call *call, const struct history_target *target,
                     uint64_t revision)
{
    struct ng_str id = shown(target);
    struct ng_as_of found = {.size = sizeof(found)};
    if (revision > 1) {
        struct ng_str number =
            call->host->format(call, "%llu", (unsigned long long)(revision - 1));
        int rc = call->host->revision_at(call, &target->key, "from", number, &found);
        if (rc != NG_OK) {
            return rc;
        }
    }
    put_nearest(call, found.kept ? found.revision : found.before, revision);
    return ng_fail(call, HISTORY_NOT_KEPT,
                   "what %.*s was before version %llu was not kept (history.max_file); name "
                   "another version as `from`",
                   (int)id.len, id.data, (unsigned long long)revision);
}

static int not_kept(struct ng_call *call, const struct history_target *target,
                    const struct ng_as_of *found)
{
    struct ng_str id = shown(target);
    put_nearest(call, found->before, found->after);
    if (found->revision == found->before) {
        return ng_fail(
            call, HISTORY_NOT_KEPT,
            "what %.*s was at this point is not kept (history.max_file); the nearest "
            "versions are: %llu before it, %llu after it (0: none)",
            (int)id.len, id.data, (unsigned long long)found->before,
            (unsigned long long)found->after);
    }
    return ng_fail(call, HISTORY_NOT_KEPT,
                   "revision %llu of %.*s is not kept (history.keep); the nearest that are: "
                   "%llu before it, %llu after it (0: none)",
                   (unsigned long long)found->revision, (int)id.len, id.data,
                   (unsigned long long)found->before, (unsigned long long)found->after);
}

/* The document was not there: `from` and `to` say when it was. */
static int not_there(struct ng_call *call, const struct history_target *target,
                     const char *name, int64_t from_ms, const struct history_change *deleted)
{
    struct ng_writer *writer = call->host->details(call);
    json_object(writer);
    history_put_time(writer, "from", from_ms);
    if (deleted != NULL) {
        history_put_time(writer, "to", deleted->time_ms);
    }
    json_end(writer);
    struct ng_str id = shown(target);
    return ng_fail(call, NG_ENOTFOUND, "%.*s %s at this point (`%s`)", (int)id.len, id.data,
                   deleted != NULL ? "was deleted" : "did not exist yet", name);
}

static int not_created(struct ng_call *call, const struct history_target *target,
                       const char *name)
{
    struct history_change first = {0};
    struct change_row row = {.call = call, .change = &first};
    struct ng_range range = {.size = sizeof(range), .from = 1, .limit = 1, .ascending = true};
    int rc = call->host->history(call, &target->key, &range, take_change, &row);
    if (rc != NG_OK) {
        return rc;
    }
    return not_there(call, target, name, first.time_ms, NULL);
}

int history_at(struct ng_call *call, const struct history_target *target, const char *name,
               struct ng_str fallback, struct history_version *ret)
{
    struct ng_as_of found = {.size = sizeof(found)};
    struct ng_str point = str_or(ng_arg_text(call, name), fallback);
    int rc = call->host->revision_at(call, &target->key, name, point, &found);
    if (rc != NG_OK) {
        return rc;
    }
    ret->gone = HISTORY_THERE;
    if (found.revision == 0 && found.after == 0) {
        ret->gone = HISTORY_NOT_YET;
        return not_created(call, target, name);
    }
    if (!found.kept) {
        return not_kept(call, target, &found);
    }
    rc = history_revision(call, target, found.revision, ret);
    if (rc == NG_OK && ret->doc->deleted) {
        ret->gone = HISTORY_DELETED;
        rc = not_there(call, target, name, ret->doc->created_ms, &ret->change);
    }
    return rc;
}
