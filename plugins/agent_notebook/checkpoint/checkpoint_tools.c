/* SPDX-License-Identifier: MIT */
/* checkpoint_tools.c - checkpoint_snapshot, checkpoint_list and checkpoint_delete, and
 * checkpoints as resources. */
#include "checkpoint.h"
#include "core/base/str.h"

#define CHECKPOINT_ROWS 100
/* Bytes of an answer beside the descriptions of checkpoints, as they are stored. */
#define CHECKPOINT_LIST_END_MAX 256

/* The members of a checkpoint that its description has: those that are no containers. */
static void checkpoint_head_write(struct ng_call *call, struct ng_writer *writer,
                                  const struct ng_value *body)
{
    const struct ng_host *host = call->host;
    for (const struct ng_value *member = host->json_first(body); member != NULL;
         member = host->json_next(member)) {
        enum ng_type type = host->json_type(member);
        if (type != NG_TYPE_ARRAY && type != NG_TYPE_OBJECT &&
            !str_is(host->json_key(member), "format")) {
            host->json_name_str(writer, host->json_key(member));
            host->json_copy(writer, member);
        }
    }
}

int checkpoint_snapshot_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    const struct ng_value *body = NULL;
    struct ng_str id = {NULL, 0};
    struct ng_str json = {NULL, 0};
    (void)self;
    (void)args;
    int rc =
        checkpoint_take_once(call, call->caller->space, ng_arg_text(call, "label"), &id, &json);
    if (rc == NG_OK) {
        rc = host->json_parse(call, json, &body);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    memory_put(call, writer, "status", ng_str_of("kept"));
    checkpoint_head_write(call, writer, body);
    entry_put_int(call, writer, "bytes", json.len);
    host->json_end(writer);
    return NG_OK;
}

/* ---- the list ---- */

struct checkpoint_rows {
    struct ng_call *call;
    struct ng_writer *writer;
    struct ng_listing *listing;
    uint64_t offset, limit, total, shown;
    bool is_cut; /* the next row did not fit */
    int rc;
};

static int checkpoint_list_row(void *user, const struct ng_doc *row)
{
    struct checkpoint_rows *rows = user;
    const struct ng_value *body = NULL;
    uint64_t at = rows->total++;
    if (at < rows->offset || at - rows->offset >= rows->limit || rows->is_cut) {
        return 0;
    }
    rows->is_cut =
        rows->shown > 0 && row->json.len + row->key.id.len + CHECKPOINT_LIST_END_MAX >
                               rows->call->host->answer_room(rows->call);
    if (rows->is_cut) {
        return 0;
    }
    rows->shown++;
    rows->rc = entry_row_body(rows->call, row, &body);
    if (rows->rc == NG_OK) {
        rows->call->host->json_object(rows->writer);
        if (memory_text(rows->call, body, "checkpoint_id").data == NULL) {
            memory_put(rows->call, rows->writer, "checkpoint_id", row->key.id);
        }
        checkpoint_head_write(rows->call, rows->writer, body);
        rows->call->host->json_end(rows->writer);
    }
    return rows->rc != NG_OK;
}

int checkpoint_list_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    struct checkpoint_rows rows = {
        .call = call,
        .writer = host->reply_json(call),
        .offset = (uint64_t)ng_arg_int(call, "offset", 0),
        .limit = (uint64_t)ng_arg_int(call, "limit", CHECKPOINT_ROWS),
    };
    (void)self;
    (void)args;
    host->json_object(rows.writer);
    host->json_name(rows.writer, "checkpoints");
    host->json_array(rows.writer);
    int rc = functions->checkpoint_list(handle, call, call->caller->space, checkpoint_list_row,
                                        &rows);
    if (rc == NG_OK) {
        rc = rows.rc;
    }
    host->json_end(rows.writer);
    entry_put_int(call, rows.writer, "total", rows.total);
    if (rows.is_cut) {
        entry_put_more(call, rows.writer, rows.offset + rows.shown, rows.total);
    }
    host->json_end(rows.writer);
    return rc;
}

/* ---- deleting ---- */

static bool may_restore(const struct ng_caller *caller)
{
    return caller->role == NG_ROLE_ADMIN ||
           (NG_HAS(caller, rights) && (caller->rights & NG_RIGHT_RESTORE) != 0);
}

/* The caller's own checkpoint, or any with the right to restore. */
static int checkpoint_may_delete(struct ng_call *call, struct ng_str space, struct ng_str id)
{
    const struct ng_host *host = call->host;
    const struct ng_value *author = NULL;
    struct ng_str json = {NULL, 0};
    if (may_restore(call->caller)) {
        return NG_OK;
    }
    int rc = checkpoint_get(call, space, id, &json);
    if (rc == NG_OK) {
        /* Absent in a checkpoint of another program: not the caller's own. */
        struct ng_str by = checkpoint_text_member(json, "created_by");
        rc = by.len > 0 ? host->json_parse(call, by, &author) : NG_OK;
    }
    if (rc != NG_OK ||
        (author != NULL && str_equal(host->json_text(author), entry_agent(call)))) {
        return rc;
    }
    host->hint(call, "An admin gives a key that right: `notegate key set ID --restore`");
    return ng_fail(
        call, NG_EFORBIDDEN,
        "the checkpoint %.*s is another agent's: deleting it needs the role admin or "
        "a key with the right --restore",
        (int)id.len, id.data);
}

int checkpoint_delete_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    struct ng_str space = call->caller->space;
    struct ng_str id = ng_arg_text(call, "checkpoint_id");
    (void)self;
    (void)args;
    if (!NG_HAS(functions, checkpoint_delete) || functions->checkpoint_delete == NULL) {
        return ng_fail(call, NG_EINVAL, "the journal in use keeps every checkpoint");
    }
    int rc = checkpoint_may_delete(call, space, id);
    if (rc == NG_OK) {
        rc = checkpoint_intent_needs(call, space, id);
    }
    if (rc == NG_OK) {
        rc = functions->checkpoint_delete(handle, call, space, id);
    }
    if (rc == NG_ENOTFOUND) {
        return checkpoint_not_found(call, space, id);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    memory_put(call, writer, "status", ng_str_of("deleted"));
    memory_put(call, writer, "checkpoint_id", id);
    host->json_end(writer);
    return NG_OK;
}

/* ---- resources ---- */

static int checkpoint_resource_row(void *user, const struct ng_doc *row)
{
    struct checkpoint_rows *rows = user;
    const struct ng_value *body = NULL;
    rows->rc = entry_row_body(rows->call, row, &body);
    if (rows->rc != NG_OK) {
        return 1;
    }
    struct ng_str label = memory_text(rows->call, body, "label");
    struct ng_str when = memory_text(rows->call, body, "created_at");
    return rows->call->host->list_add(rows->listing, row->key.id,
                                      label.len > 0 ? label : row->key.id, when,
                                      "application/json", UINT64_MAX, 0) != NG_OK;
}

int checkpoint_resource_list(void *self, struct ng_call *call, struct ng_str space,
                             struct ng_listing *listing)
{
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    struct checkpoint_rows rows = {.call = call, .listing = listing};
    (void)self;
    int rc = functions->checkpoint_list(handle, call, space, checkpoint_resource_row, &rows);
    if (rc != NG_OK) {
        return rc;
    }
    return rows.rc;
}

int checkpoint_resource_read(void *self, struct ng_call *call, struct ng_str space,
                             struct ng_str id, uint64_t revision)
{
    struct ng_str json = {NULL, 0};
    (void)self;
    (void)revision;
    int rc = checkpoint_get(call, space, id, &json);
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(call, json);
}
