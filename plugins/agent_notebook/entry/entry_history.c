/* SPDX-License-Identifier: MIT */
/* entry_history.c - notebook_history: the versions of an entry, also of a deleted one. */
#include "core/base/minmax.h"
#include "core/base/text/json_writer.h"
#include "entry.h"
#include "entry_tools.h"

#define HISTORY_LIMIT_DEFAULT 20
/* Bytes of a version in the answer, without its texts, and of what follows the versions. */
#define HISTORY_ROW_MAX 256
#define HISTORY_END_MAX 160

/* The description of a version. */
struct history_said {
    uint64_t version;
    struct ng_str did;
};

struct history_list {
    struct ng_call *call;
    struct ng_writer *writer;
    struct history_said *said; /* the history member of the document, oldest first */
    size_t said_count;         /* items for rows that are still to come */
    uint64_t skip, limit;      /* of the rows that are still to come */
    uint64_t shown;
    uint64_t from; /* the first version that there is */
};

/* The description of a version in the history of the document. Rows come newest first, so later
 * items need no second look. */
static struct ng_str history_did(struct history_list *list, uint64_t version)
{
    struct ng_str none = {NULL, 0};
    while (list->said_count > 0 && list->said[list->said_count - 1].version > version) {
        list->said_count--;
    }
    if (list->said_count == 0 || list->said[list->said_count - 1].version != version) {
        return none;
    }
    return list->said[list->said_count - 1].did;
}

static int history_row(void *user, const struct ng_doc *row)
{
    struct history_list *list = user;
    struct ng_call *call = list->call;
    if (list->skip > 0) {
        list->skip--;
        return 0;
    }
    if (list->limit == 0) {
        return 1;
    }
    struct ng_str did = history_did(list, row->revision);
    struct ng_str by = ng_str_of("external"); /* without an agent: by another program */
    if (row->author.len > 0) {
        by = entry_agent_of(call, row->author);
    }
    if (did.data == NULL && row->deleted) {
        did = ng_str_of("Deleted");
    } else if (did.data == NULL) {
        did = ng_str_of("");
    }
    size_t texts = JSON_GROWTH_MAX * (did.len + by.len + row->action.len);
    if (list->shown > 0 &&
        texts + HISTORY_ROW_MAX + HISTORY_END_MAX > call->host->answer_room(call)) {
        return 1;
    }
    list->limit--;
    list->shown++;
    call->host->json_object(list->writer);
    entry_put_int(call, list->writer, "version", row->revision);
    entry_put(call, list->writer, "timestamp", entry_time(call, row->updated_ms));
    entry_put(call, list->writer, "action", row->action);
    entry_put(call, list->writer, "summary", did);
    entry_put(call, list->writer, "changed_by", by);
    call->host->json_end(list->writer);
    return 0;
}

/* The history of a document, oldest first. */
static int history_said(struct history_list *list, const struct ng_value *light)
{
    const struct ng_host *host = list->call->host;
    size_t count = host->json_count(light);
    list->said = ng_alloc(list->call, (count + 1) * sizeof(*list->said));
    if (list->said == NULL) {
        return entry_no_memory(list->call);
    }
    for (const struct ng_value *item = host->json_first(light); item != NULL;
         item = host->json_next(item)) {
        int64_t number = 0;
        (void)host->json_integer(host->json_get(item, "version"), &number);
        list->said[list->said_count].version = (uint64_t)i64_max(number, 0);
        list->said[list->said_count++].did = host->json_text(host->json_get(item, "summary"));
    }
    return NG_OK;
}

/* Taken from the newest version that is not a deletion. */
static int history_light(struct history_list *list, const struct ng_key *key,
                         const struct ng_doc *newest)
{
    struct ng_call *call = list->call;
    const struct ng_value *body = NULL;
    int rc = NG_OK;
    if (entry_is_purged(newest)) {
        list->from = newest->revision;
        return NG_OK;
    }
    if (newest->deleted && newest->revision < 2) {
        return NG_OK;
    }
    if (newest->deleted) {
        rc = call->host->get(call, key, newest->revision - 1, &newest);
    }
    if (rc == NG_ENOTFOUND) {
        return NG_OK;
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = entry_body(call, newest, &body);
    if (rc != NG_OK) {
        return rc;
    }
    return history_said(list, call->host->json_get(body, "history"));
}

/* The versions newest first, without the first `offset`. As long as none of them has been
 * thinned out, the number of the first wanted one can be computed, and nothing has to be
 * skipped. */
static int history_page(struct history_list *list, const struct ng_key *key, uint64_t newest,
                        uint64_t offset)
{
    const struct ng_host *host = list->call->host;
    struct ng_range range = {.size = sizeof(range), .from = list->from, .limit = UINT32_MAX};
    int rc = NG_OK;
    list->skip = offset;
    if (offset > 0 && offset < newest) {
        struct ng_range before = {.size = sizeof(before), .from = newest - offset + 1};
        uint64_t count = 0;
        rc = host->history_count(list->call, key, &before, &count);
        if (rc == NG_OK && count == offset) {
            range.to = newest - offset;
            list->skip = 0;
        }
    }
    if (list->limit < UINT32_MAX - list->skip) {
        range.limit = (uint32_t)(list->skip + list->limit);
    }
    if (rc == NG_OK && list->limit > 0) {
        return host->history(list->call, key, &range, history_row, list);
    }
    return rc;
}

static int history_answer(struct history_list *list, const struct ng_key *key,
                          const struct ng_doc *newest, uint64_t offset)
{
    struct ng_call *call = list->call;
    const struct ng_host *host = call->host;
    struct ng_range all = {.size = sizeof(all), .from = list->from};
    uint64_t total = 0;
    int rc = host->history_count(call, key, &all, &total);
    if (rc != NG_OK) {
        return rc;
    }
    list->writer = host->reply_json(call);
    host->json_object(list->writer);
    entry_put(call, list->writer, "notebook_id", key->id);
    entry_put(call, list->writer, "collection", key->collection);
    entry_put_int(call, list->writer, "current_version", newest->revision);
    host->json_name(list->writer, "deleted");
    host->json_bool(list->writer, newest->deleted);
    host->json_name(list->writer, "history");
    host->json_array(list->writer);
    if (offset < total) {
        rc = history_page(list, key, newest->revision, offset);
    }
    host->json_end(list->writer);
    entry_put_int(call, list->writer, "total", total);
    entry_put_int(call, list->writer, "offset", offset);
    entry_put_more(call, list->writer, offset + list->shown, total);
    host->json_end(list->writer);
    return rc;
}

int entry_history_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_key key;
    const struct ng_doc *newest = NULL;
    struct history_list list = {
        .call = call,
        .limit = (uint64_t)ng_arg_int(call, "limit", HISTORY_LIMIT_DEFAULT),
    };
    (void)self;
    (void)args;
    int rc = entry_find(call, &key, &newest);
    if (rc == NG_OK && newest->revision == 0) {
        rc = entry_not_found(call, &key, newest);
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = history_light(&list, &key, newest);
    if (rc != NG_OK) {
        return rc;
    }
    return history_answer(&list, &key, newest, (uint64_t)ng_arg_int(call, "offset", 0));
}
