/* SPDX-License-Identifier: MIT */
/* history_log.c - history_log: the changes of all documents, newest first. */
#include <notegate/files.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "history.h"

/* Bytes of a row in the answer without its texts, and of what follows the rows. */
#define LOG_ROW_MAX ((size_t)400)
#define LOG_END_MAX ((size_t)100)

struct log_list {
    struct ng_call *call;
    struct history_paths paths; /* of one file; count 0: of none */
    size_t at;                  /* the path that is walked through */
    struct ng_writer *writer;
    uint64_t limit;
    uint64_t shown;
    uint64_t next; /* where the next page goes on, if this one ended early; 0: it did not */
    int rc;
};

static size_t row_bytes(const struct ng_event *event, struct ng_str summary)
{
    const struct ng_key *key = &event->key;
    size_t texts = key->space.len + key->collection.len + key->id.len + event->agent.len +
                   event->tool.len + event->action.len + event->origin.run_id.len +
                   event->origin.request_id.len + event->origin.key_id.len + summary.len;
    return LOG_ROW_MAX + JSON_GROWTH_MAX * texts;
}

/* Of a file: the version, if one was kept, and the hash of the content. */
static void put_revision(struct log_list *list, const struct ng_event *event,
                         const struct ng_value *data)
{
    const struct ng_host *host = list->call->host;
    const struct ng_value *hash = host->json_get(data, "revision");
    struct ng_key key;
    uint64_t revision = event->revision;
    if (!history_file_version(list->call, event, data, &key, &revision) && hash != NULL) {
        revision = 0;
    }
    json_member_int(list->writer, "revision", (int64_t)revision);
    if (hash != NULL) {
        json_name(list->writer, "hash");
        host->json_copy(list->writer, hash);
    }
}

static void put_origin(struct log_list *list, const struct ng_origin *origin)
{
    struct ng_writer *writer = list->writer;
    if (origin->has_lines) {
        json_member_int(writer, "added", (int64_t)origin->lines_added);
        json_member_int(writer, "removed", (int64_t)origin->lines_removed);
    }
    if (origin->request_id.len > 0) {
        json_member_string(writer, "request_id", origin->request_id);
    }
    if (origin->key_id.len > 0 && list->call->caller->role == NG_ROLE_ADMIN) {
        json_member_string(writer, "key", origin->key_id);
    }
}

static void put_change(struct log_list *list, const struct ng_event *event,
                       const struct ng_value *data, struct ng_str summary, bool kept)
{
    struct ng_writer *writer = list->writer;
    const struct ng_value *undo = list->call->host->json_get(data, "undo");
    const struct history_change change = {.seq = event->seq,
                                          .time_ms = event->time_ms,
                                          .agent = event->agent,
                                          .run = event->origin.run_id,
                                          .tool = event->tool};
    const struct ng_origin origin = history_origin(list->call, event, data);
    json_object(writer);
    history_put_change(writer, &change);
    json_member_string(writer, "action", event->action);
    json_member_string(writer, "space", event->key.space);
    history_put_key(writer, &event->key);
    put_revision(list, event, data);
    json_member_string(writer, "summary", str_or(summary, ng_str_of("")));
    json_member_bool(writer, "kept", kept);
    put_origin(list, &origin);
    if (undo != NULL) {
        json_name(writer, "undo");
        list->call->host->json_copy(writer, undo);
    }
    json_end(writer);
}

/* Is it a change of the file whose log this is, and not of another one at the same path? The
 * move to another path counts there. */
static bool is_of_path(const struct log_list *list, const struct ng_event *event,
                       const struct ng_value *data)
{
    const struct history_path *path = &list->paths.items[list->at];
    bool is_newest = list->at == 0;
    struct ng_key key;
    uint64_t version = 0;
    if (list->paths.count == 0) {
        return true;
    }
    if (history_file_version(list->call, event, data, &key, &version)) {
        return version >= path->first && (is_newest || version <= path->last);
    }
    return event->seq > path->first_seq && (is_newest || event->seq < path[-1].first_seq);
}

static int log_take(void *user, const struct ng_event *event)
{
    struct log_list *list = user;
    struct ng_call *call = list->call;
    const struct ng_value *data = NULL;
    struct ng_str summary;
    bool kept = false;
    if (event->data.len > 0 && call->host->json_parse(call, event->data, &data) != NG_OK) {
        data = NULL;
    }
    if (!is_of_path(list, event, data)) {
        return 0;
    }
    if (list->shown == list->limit) {
        list->next = event->seq;
        return 1;
    }
    list->rc = history_summary(call, event, data, &summary, &kept);
    if (list->rc != NG_OK) {
        return 1;
    }
    if (list->shown > 0 &&
        row_bytes(event, summary) + LOG_END_MAX > call->host->answer_room(call)) {
        list->next = event->seq;
        return 1;
    }
    put_change(list, event, data, summary, kept);
    if (call->host->answer_room(call) < LOG_END_MAX) {
        list->rc = ng_fail(call, NG_ETOOLARGE,
                           "change #%llu alone is longer than an answer (tools.max_answer); go "
                           "on with `until` \"#%llu\"",
                           (unsigned long long)event->seq, (unsigned long long)event->seq - 1);
        return 1;
    }
    list->shown++;
    return 0;
}

int history_not_a_cursor(struct ng_call *call)
{
    return ng_fail(call, NG_EINVAL,
                   "`cursor` is not of an answer; leave it out to start again");
}

/* *ret: where the page begins; UINT64_MAX: at the newest change. */
static int log_cursor(struct ng_call *call, uint64_t *ret)
{
    struct ng_str cursor = ng_arg_text(call, "cursor");
    uint64_t number = 0;
    *ret = UINT64_MAX;
    if (cursor.data == NULL) {
        return NG_OK;
    }
    if (!str_number(cursor, INT64_MAX, &number) || number == 0) {
        return history_not_a_cursor(call);
    }
    *ret = number;
    return NG_OK;
}

/* The changes of a file at one of its paths; those at the next one are older. */
static int walk_path(struct log_list *list, const struct ng_trail *trail, uint64_t *ret_next)
{
    const struct history_path *path = &list->paths.items[list->at];
    struct ng_trail part = *trail;
    part.id = path->target.key.id;
    if (list->at > 0) {
        part.until = u64_min(part.until, path[-1].first_seq + HISTORY_EVENT_NEAR);
    }
    if (path->first_seq > HISTORY_EVENT_NEAR) {
        part.since = u64_max(part.since, path->first_seq - HISTORY_EVENT_NEAR);
    }
    return part.since < part.until
               ? list->call->host->trail(list->call, &part, log_take, list, ret_next)
               : NG_OK;
}

/* Its newest path first. */
static int log_paths(struct log_list *list, const struct ng_trail *trail)
{
    const struct history_target target = {
        .key = {ng_str_of(NG_FILE_VERSIONS), trail->spaces.items[0], trail->id}};
    const struct ng_doc *newest = NULL;
    int rc = list->call->host->get(list->call, &target.key, 0, &newest);
    if (rc == NG_OK && newest->revision != 0) {
        rc = history_paths(list->call, &target, newest->revision, &list->paths);
    }
    return rc;
}

/* *ret_next: where the next page goes on. */
static int log_walk(struct log_list *list, const struct ng_trail *trail, uint64_t *ret_next)
{
    int rc = NG_OK;
    *ret_next = 0;
    if (list->paths.count == 0) {
        rc = list->call->host->trail(list->call, trail, log_take, list, ret_next);
    }
    for (; list->at < list->paths.count && rc == NG_OK && *ret_next == 0; list->at++) {
        rc = walk_path(list, trail, ret_next);
        rc = rc == NG_OK ? list->rc : rc;
        *ret_next = list->next != 0 ? list->next : *ret_next;
    }
    *ret_next = list->next != 0 ? list->next : *ret_next;
    return rc == NG_OK ? list->rc : rc;
}

int history_log_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_trail trail;
    struct log_list list = {.call = call,
                            .limit = (uint64_t)ng_arg_int(call, "limit", HISTORY_LOG_LIMIT)};
    uint64_t before = UINT64_MAX;
    uint64_t next = 0;
    (void)self;
    (void)args;
    int rc = history_filter(call, &trail);
    if (rc == NG_OK) {
        rc = log_cursor(call, &before);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (str_is(ng_arg_text(call, "by"), "run")) {
        return history_runs(call, &trail, before);
    }
    trail.until = u64_min(trail.until, before);
    if (ng_has_arg(call, "path") && !trail.id_prefix) {
        rc = log_paths(&list, &trail);
    }
    if (rc != NG_OK) {
        return rc;
    }
    list.writer = call->host->reply_json(call);
    json_object(list.writer);
    rc = history_put_unfinished(call, list.writer);
    json_name(list.writer, "changes");
    json_array(list.writer);
    if (rc == NG_OK) {
        rc = log_walk(&list, &trail, &next);
    }
    if (rc == NG_OK && list.shown == 0 && next == 0) {
        rc = history_check_runs(call, &trail);
    }
    json_end(list.writer);
    json_member_bool(list.writer, "has_more", next != 0);
    if (next != 0) {
        json_member_string(list.writer, "cursor",
                           call->host->format(call, "%llu", (unsigned long long)next));
    }
    json_end(list.writer);
    return rc;
}
