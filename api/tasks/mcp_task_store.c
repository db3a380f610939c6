/* SPDX-License-Identifier: MIT */
/* mcp_task_store.c - tasks as documents: members in the JSON, the outcome as the text beside
 * it, so that it is neither escaped nor parsed. */
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"
#include "core/store/store.h"
#include "mcp_tasks.h"

/* Task documents have no owner in the store: their owner is a member. */
#define TASK_SPACE "mcp"
/* A stored task, without its outcome: arguments and answers are bounded by the bodies they came
 * in. */
#define TASK_JSON_MAX CALL_MEMORY_MAX

static const char *const status_texts[] = {
    [MCP_TASK_WORKING] = "working",     [MCP_TASK_INPUT_REQUIRED] = "input_required",
    [MCP_TASK_COMPLETED] = "completed", [MCP_TASK_FAILED] = "failed",
    [MCP_TASK_CANCELLED] = "cancelled",
};

const char *mcp_task_status_text(enum mcp_task_status status)
{
    return status_texts[status];
}

int mcp_task_declare(struct store *store, struct call *call)
{
    static const struct ng_field fields[] = {
        {.name = "owner", .use = NG_FIELD_STRING},
        {.name = "status", .use = NG_FIELD_STRING},
    };
    /* Results are large and short-lived, so earlier states of a task are not kept. */
    static const struct ng_collection collection = {
        .name = MCP_TASKS_COLLECTION,
        .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
        .fields = fields,
        .field_count = NG_COUNT(fields),
        .field_size = sizeof(struct ng_field),
    };
    return store_declare(store, call, &collection);
}

static struct ng_key key_of(struct ng_str id)
{
    struct ng_key key = {ng_str_of(MCP_TASKS_COLLECTION), ng_str_of(TASK_SPACE), id};
    return key;
}

/* ---- reading ---- */

static enum mcp_task_status status_of(struct ng_str text)
{
    for (size_t i = 0; i < NG_COUNT(status_texts); i++) {
        if (str_is(text, status_texts[i])) {
            return (enum mcp_task_status)i;
        }
    }
    return MCP_TASK_FAILED;
}

static void read_task(struct ng_str id, const struct ng_value *body, struct ng_str text,
                      struct mcp_task *ret)
{
    ret->id = id;
    ret->owner = json_get_text(body, "owner");
    ret->tool = json_get_text(body, "tool");
    ret->space = json_get_text(body, "space");
    ret->run = json_get_text(body, "run");
    ret->arguments = json_get_text(body, "arguments");
    ret->status = status_of(json_get_text(body, "status"));
    ret->created_ms = json_get_integer(body, "created");
    ret->updated_ms = json_get_integer(body, "updated");
    ret->ttl_ms = json_get_integer(body, "ttl");
    ret->can_ask = (unsigned)json_get_integer(body, "can_ask");
    ret->asks = json_get_text(body, "asks");
    ret->answers = json_get_text(body, "answers");
    ret->state = json_get_text(body, "state");
    ret->message = json_get_text(body, "message");
    ret->gateway = json_get_text(body, "gateway");
    ret->maker = json_get_text(body, "maker");
    ret->outcome = text;
    ret->is_error = json_is(json_get(body, "is_error"), NG_TYPE_TRUE);
    ret->is_broken = false;
}

int mcp_task_load(struct call *call, struct ng_str id, struct mcp_task *ret)
{
    struct ng_key key = key_of(id);
    const struct ng_doc *doc = NULL;
    int rc = store_get(call->gateway->store, call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (doc->revision == 0 || doc->deleted) {
        return call_fail(call, NG_ENOTFOUND, "there is no such task");
    }
    read_task(id, doc->body, doc->text, ret);
    return NG_OK;
}

struct each {
    struct call *call;
    mcp_task_row_fn *row;
    void *user;
    bool wants_broken;
    struct arena scratch; /* of one row: a task may be as large as a body */
    int rc;
};

static int each_row(void *user, const struct ng_doc *doc)
{
    struct each *each = user;
    struct mcp_task task = {.is_broken = true};
    const struct ng_value *body = NULL;
    struct ng_str id = arena_copy(&each->call->arena, doc->key.id);
    arena_reset(&each->scratch);
    int rc = json_parse(&each->scratch, doc->json, JSON_DEPTH_DEFAULT, &body, NULL);
    if (rc == NG_OK) {
        read_task(id, body, STR_NONE, &task);
    }
    task.id = id;
    if (id.data == NULL || (rc != NG_OK && rc != NG_EJSON)) {
        each->rc = call_fail(each->call, NG_EINTERNAL,
                             "the stored tasks could not be read: out of memory");
    } else if (rc == NG_OK || each->wants_broken) { /* verify tells about broken ones */
        each->rc = each->row(&task, each->user);
    }
    return each->rc != NG_OK;
}

static int each_of(struct call *call, const struct ng_term *term, bool wants_broken,
                   mcp_task_row_fn *row, void *user)
{
    struct each each = {.call = call, .row = row, .user = user, .wants_broken = wants_broken};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(MCP_TASKS_COLLECTION),
        .space = ng_str_of(TASK_SPACE),
        .terms = term,
        .term_count = term != NULL,
        .limit = MCP_TASK_ROWS_MAX,
    };
    uint64_t total = 0;
    arena_init(&each.scratch, call->arena.max);
    int rc = store_query(call->gateway->store, call, &query, each_row, &each, &total);
    arena_done(&each.scratch);
    if (rc != NG_OK) {
        return rc;
    }
    return each.rc;
}

int mcp_task_each(struct call *call, mcp_task_row_fn *row, void *user)
{
    return each_of(call, NULL, false, row, user);
}

int mcp_task_each_of(struct call *call, const struct ng_str *ids, size_t count,
                     mcp_task_row_fn *row, void *user)
{
    struct ng_term term = {
        .field = ng_str_of("id"), .op = NG_TERM_IN, .values = ids, .value_count = count};
    return each_of(call, &term, true, row, user);
}

int mcp_task_each_open(struct call *call, mcp_task_row_fn *row, void *user)
{
    const struct ng_str open[] = {ng_str_of(status_texts[MCP_TASK_WORKING]),
                                  ng_str_of(status_texts[MCP_TASK_INPUT_REQUIRED])};
    struct ng_term term = {.field = ng_str_of("status"),
                           .op = NG_TERM_IN,
                           .values = open,
                           .value_count = NG_COUNT(open)};
    return each_of(call, &term, false, row, user);
}

int mcp_task_each_owned(struct call *call, struct ng_str owner, mcp_task_row_fn *row,
                        void *user)
{
    struct ng_term term = {.field = ng_str_of("owner"), .op = NG_TERM_EQ, .value = owner};
    return each_of(call, &term, false, row, user);
}

/* ---- writing ---- */

static void write_text(struct ng_writer *writer, const char *name, struct ng_str text)
{
    if (text.data != NULL) {
        json_member_string(writer, name, text);
    }
}

/* JSON is kept as a string: the store's parsed bodies do not keep how their parts were
 * written. */
static void write_task(struct buf *out, const struct mcp_task *task)
{
    struct ng_writer writer;
    json_writer_init(&writer, out);
    json_object(&writer);
    write_text(&writer, "owner", task->owner);
    write_text(&writer, "tool", task->tool);
    write_text(&writer, "space", task->space);
    write_text(&writer, "run", task->run);
    write_text(&writer, "arguments", task->arguments);
    write_text(&writer, "status", ng_str_of(status_texts[task->status]));
    json_member_int(&writer, "created", task->created_ms);
    json_member_int(&writer, "updated", task->updated_ms);
    json_member_int(&writer, "ttl", task->ttl_ms);
    json_member_int(&writer, "can_ask", task->can_ask);
    write_text(&writer, "asks", task->asks);
    write_text(&writer, "answers", task->answers);
    write_text(&writer, "state", task->state);
    write_text(&writer, "message", task->message);
    write_text(&writer, "gateway", task->gateway);
    write_text(&writer, "maker", task->maker);
    if (task->is_error) {
        json_member_bool(&writer, "is_error", true);
    }
    json_end(&writer);
}

static int apply(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                 void *user)
{
    struct mcp_task_edit *edit = user;
    struct call *call = call_of(pub);
    struct mcp_task task;
    struct buf text;
    bool is_there = present->revision != 0 && !present->deleted;
    memset(&task, 0, sizeof(task));
    if (is_there == edit->creates) {
        return call_fail(call, is_there ? NG_ECONFLICT : NG_ENOTFOUND, "%s",
                         is_there ? "a task of this id exists already"
                                  : "there is no such task");
    }
    if (is_there) {
        read_task(present->key.id, present->body, present->text, &task);
    }
    struct ng_str before = task.outcome;
    bool ran = is_there && task.status == MCP_TASK_WORKING;
    if (!edit->fn(&task, call, edit->user)) {
        return NG_OK;
    }
    task.updated_ms = clock_unix_ms();
    if (!is_there && call->gateway->cluster != NULL) {
        task.maker = cluster_id(call->gateway->cluster);
    }
    if (!ran && task.status == MCP_TASK_WORKING && call->gateway->cluster != NULL) {
        task.gateway = cluster_id(call->gateway->cluster); /* whose work it is from here on */
    }
    buf_init(&text, TASK_JSON_MAX);
    write_task(&text, &task);
    int rc = text.rc;
    if (text.rc == NG_OK) {
        rc = store_draft_json(next, buf_str(&text));
    }
    if (rc == NG_OK && task.outcome.data != before.data) {
        rc = store_draft_text(next, &task.outcome, 1);
    }
    buf_done(&text);
    return rc;
}

int mcp_task_change(struct call *call, struct ng_str id, struct mcp_task_edit *edit)
{
    struct ng_change change = {
        .size = sizeof(change), .key = key_of(id), .fn = apply, .user = edit};
    return store_write_wait(call->gateway->store, call, &change, 1);
}

static int erase(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                 void *user)
{
    (void)pub;
    (void)user;
    if (present->revision != 0 && !present->deleted) {
        store_draft_delete(next);
    }
    return NG_OK;
}

int mcp_task_delete(struct call *call, struct ng_str id)
{
    struct ng_change change = {.size = sizeof(change), .key = key_of(id), .fn = erase};
    return store_write_wait(call->gateway->store, call, &change, 1);
}
