/* SPDX-License-Identifier: MIT */
/* files_event.c - the events of a change of a file, in the transaction of its completion. They
 * run again where another gateway or recovery completes the change. */
#include "core/base/str.h"
#include "core/call/plugin.h"
#include "files_state.h"

/* False for a move between spaces: an event must not reveal a path of the other space. */
static bool within_space(const struct file_record *record)
{
    return str_equal(record->space, record->to_space);
}

/* Members for an undo: `across` of a move to or from another space, whose path the event must
 * not reveal: an id that the events of both spaces have; of a folder, and what changes with it,
 * only `true`, as it is not taken back; `folder` of a folder that moves and of the
 * files in it: where the folder is then. */
static void add_marks(struct buf *data, const struct file_record *record)
{
    const struct file_record *whole = record->move != NULL ? record->move : record;
    const char *comma = data->len > 1 ? "," : "";
    bool across = files_record_moves(whole) && !within_space(whole);
    if (across && whole->before[0] == '\0') {
        (void)buf_printf(data, "%s\"across\":true", comma);
    } else if (across && files_record_moves(record)) {
        (void)buf_printf(data, "%s\"across\":", comma);
        (void)buf_add_json(data, record->op);
    } else if (files_record_moves(record) && whole->before[0] == '\0') {
        (void)buf_printf(data, "%s\"folder\":", comma);
        (void)buf_add_json(data, whole->to);
    }
}

/* Members of the data of an event: the version that its transaction has added before. */
static void add_version(struct buf *data, const struct file_version *version)
{
    if (version->number != 0) {
        (void)buf_printf(data, "%s\"version\":%llu,\"added\":%llu,\"removed\":%llu",
                         data->len > 1 ? "," : "", (unsigned long long)version->number,
                         (unsigned long long)version->lines_added,
                         (unsigned long long)version->lines_removed);
    }
}

/* Ends the data of an event, an object. */
static int draft_data(struct call *call, const struct file_record *record, struct buf *data,
                      struct ng_draft *next)
{
    if (record->note.len > 0) {
        (void)buf_add_c(data, data->len > 1 ? "," : "");
        (void)buf_add_str(data, record->note);
    }
    (void)buf_add_char(data, '}');
    int rc = data->rc == NG_OK ? NG_OK : call_no_memory(call);
    if (rc == NG_OK) {
        store_draft_event(next, buf_str(data));
    }
    buf_done(data);
    return rc;
}

/* The file was removed. Without an earlier record of it a new document carries the event. */
static int draft_gone(struct call *call, const struct file_record *record,
                      const struct ng_doc *present, struct ng_draft *next)
{
    if (present->revision > 0 && !present->deleted) {
        store_draft_delete(next);
        return NG_OK;
    }
    struct ng_str empty = arena_printf(&call->arena, "{\"op\":\"%.*s\",\"gone\":true}",
                                       (int)record->op.len, record->op.data);
    if (empty.data == NULL) {
        return call_no_memory(call);
    }
    return store_draft_json(next, empty);
}

static int draft_removed(struct call *call, const struct file_record *record,
                         const struct ng_doc *present, struct ng_draft *next)
{
    struct buf data;
    int rc = draft_gone(call, record, present, next);
    if (rc != NG_OK || (record->versions.saved.number == 0 && record->note.len == 0)) {
        return rc;
    }
    buf_init(&data, FILES_JSON_MAX);
    (void)buf_add_char(&data, '{');
    add_version(&data, &record->versions.saved);
    return draft_data(call, record, &data, next);
}

/* The event at the path that has the new content. */
int files_event_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    struct file_record *record = user;
    struct call *self = call_of(call);
    if (record->sealed != NULL) {
        self->staged = *record->sealed; /* a retry by the store has reset it */
    }
    if (record->move != NULL) {
        /* Its other documents are in this transaction, too. */
        record->completed = files_same_op(self, present, record->op);
    }
    if (record->completed || files_same_op(self, present, record->op)) {
        return NG_OK;
    }
    if (files_record_removes(record) && record->happened) {
        return NG_OK; /* the event of a later file at this path exists already */
    }
    if (files_record_removes(record)) {
        return draft_removed(self, record, present, next);
    }
    struct ng_str json = arena_printf(&self->arena, "{\"op\":\"%.*s\",\"revision\":\"%s\"}",
                                      (int)record->op.len, record->op.data, record->after);
    if (json.data == NULL) {
        return call_no_memory(self);
    }
    bool from = files_record_moves(record) && within_space(record);
    struct buf data;
    buf_init(&data, FILES_JSON_MAX);
    (void)buf_add_char(&data, '{');
    if (record->after[0] !=
        '\0') { /* unknown for a file in a moved folder, none for a folder */
        (void)buf_printf(&data, "\"revision\":\"%s\"%s", record->after, from ? "," : "");
    }
    if (from) {
        (void)buf_add_c(&data, "\"from\":");
        (void)buf_add_json(&data, record->real);
    }
    add_marks(&data, record);
    add_version(&data, &record->versions.saved);
    int rc = store_draft_json(next, json);
    int data_rc = draft_data(self, record, &data, next);
    return rc != NG_OK ? rc : data_rc;
}

/* The event at the source path of a move. */
int files_moved_away_fn(struct ng_call *call, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    const struct file_record *record = user;
    struct call *self = call_of(call);
    if (record->completed || files_same_op(self, present, record->op)) {
        return NG_OK;
    }
    int rc = draft_gone(self, record, present, next);
    if (rc != NG_OK || (!within_space(record) && record->versions.left.number == 0)) {
        return rc;
    }
    struct buf data;
    buf_init(&data, FILES_JSON_MAX);
    (void)buf_add_char(&data, '{');
    if (within_space(record)) {
        (void)buf_add_c(&data, "\"to\":");
        (void)buf_add_json(&data, record->to);
    }
    add_marks(&data, record);
    add_version(&data, &record->versions.left);
    return draft_data(self, record, &data, next);
}

const char *files_event_action(const struct file_record *record)
{
    if (record->action.len > 0) {
        return record->action.data;
    }
    if (files_record_moves(record)) {
        return "moved";
    }
    if (files_record_removes(record)) {
        return "deleted";
    }
    if (record->kind == FILE_CHANGE_CREATE || record->kind == FILE_CHANGE_UNDO_DELETE) {
        return "created";
    }
    return "updated";
}
