/* SPDX-License-Identifier: MIT */
/* files_intent.c - documents around a change of a file: the write intent before it; event,
 * history and removal of the intent after it, in one transaction. Every function here is
 * idempotent: another gateway or recovery may run it a second time for one change. */
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/call/plugin.h"
#include "core/store/idempotency.h"
#include "files_state.h"

int files_record_init(struct call *call, struct file_record *record, enum file_change kind)
{
    char op[17];
    memset(record, 0, sizeof(*record));
    record->kind = kind;
    record->undoable = true;
    if (!random_hex(8, op)) {
        return call_fail(call, NG_EINTERNAL, "The system gives no random numbers.");
    }
    record->op = arena_copy(&call->arena, ng_str_of(op));
    record->intents = files_intent_space(call);
    record->agent = call->caller.agent;
    record->tool = call->pub.tool;
    record->run = call->caller.run_id;
    record->key_id = call->caller.key_id;
    record->request = call->caller.request_id;
    bool complete = record->op.data != NULL && record->intents.data != NULL;
    return complete ? NG_OK : call_no_memory(call);
}

bool files_same_op(struct call *call, const struct ng_doc *present, struct ng_str op)
{
    const struct ng_value *root = NULL;
    if (present->revision == 0 || present->deleted ||
        json_parse(&call->arena, present->json, JSON_DEPTH_DEFAULT, &root, NULL) != NG_OK) {
        return false;
    }
    const struct ng_value *there = json_get(root, "op");
    return there != NULL && str_equal(there->text, op);
}

static void add_member(struct buf *out, const char *name, struct ng_str value)
{
    if (value.len > 0) {
        (void)buf_printf(out, ",\"%s\":", name);
        (void)buf_add_json(out, value);
    }
}

int files_intent_add_idempotency(struct call *call, const struct file_record *record,
                                 struct buf *out)
{
    struct ng_answer answer;
    if (call->idempotency == NULL ||
        call->after_rc < 0) { /* failures are not stored as answers */
        return NG_OK;
    }
    int rc = NG_OK;
    if (record->after[0] != '\0') {
        rc = call->pub.host->revision_text(&call->pub, ng_str_of(record->after));
    }
    if (rc == NG_OK) {
        rc = idempotency_answer(call, &answer);
    }
    if (rc != NG_OK || answer.reply.len > FILES_REPLY_MAX) {
        return rc;
    }
    (void)buf_printf(out, ",\"time\":%lld,\"expires\":%lld", (long long)answer.time_ms,
                     (long long)answer.expires_ms);
    add_member(out, "scope", answer.scope);
    add_member(out, "body_hash", answer.body_hash);
    add_member(out, "reply", answer.reply);
    return NG_OK;
}

/* All members but the end of the object. */
static void print_members(const struct file_record *record, struct buf *out)
{
    (void)buf_printf(out, "{\"op\":\"%.*s\",\"kind\":%d,\"before\":\"%s\",\"after\":\"%s\"",
                     (int)record->op.len, record->op.data, (int)record->kind, record->before,
                     record->after);
    add_member(out, "real", record->real);
    add_member(out, "space", record->space);
    add_member(out, "to", record->to);
    add_member(out, "to_space", record->to_space);
    add_member(out, "copied", record->copied);
    add_member(out, "copied_space", record->copied_space);
    if (record->to.len > 0) {
        add_member(out, "mark", ng_str_of(record->mark));
    }
    add_member(out, "inode", ng_str_of(record->inode));
    add_member(out, "collection", record->collection);
    add_member(out, "action", record->action);
    (void)buf_printf(out, ",\"undoable\":%s,\"undo\":", record->undoable ? "true" : "false");
    (void)files_undo_print(out, &record->undo);
}

static void print_group(const struct file_group *group, struct buf *out)
{
    (void)buf_add_c(out, ",\"group\":[");
    for (size_t i = 0; i < group->count; i++) {
        (void)buf_add_c(out, i > 0 ? "," : "");
        print_members(&group->items[i].record, out);
        (void)buf_printf(out, ",\"saves\":%s}", group->items[i].saves ? "true" : "false");
    }
    (void)buf_add_char(out, ']');
}

static int print_record(struct call *call, const struct file_record *record, struct buf *out)
{
    print_members(record, out);
    add_member(out, "agent", record->agent);
    add_member(out, "tool", record->tool);
    add_member(out, "run", record->run);
    add_member(out, "key", record->key_id);
    add_member(out, "request", record->request);
    add_member(out, "note", record->note);
    if (record->group != NULL) {
        print_group(record->group, out);
    }
    int rc = files_intent_add_idempotency(call, record, out);
    if (rc != NG_OK) {
        return rc;
    }
    return buf_add_char(out, '}');
}

static int fail_damaged(struct call *call)
{
    return call_fail(call, NG_EINTERNAL, "The record of an unfinished save is damaged.");
}

/* The members of a change, of an intent or of a file in a group. Takes its text from *rest. */
static int parse_members(struct call *call, const struct ng_value *value, struct ng_str *rest,
                         struct file_record *ret)
{
    int64_t kind = 0;
    memset(ret, 0, sizeof(*ret));
    if (json_integer(json_get(value, "kind"), &kind) != NG_OK || kind < FILE_CHANGE_EDIT ||
        kind > FILE_CHANGE_UNDO_DELETE ||
        files_undo_parse(json_get(value, "undo"), rest, &ret->undo) != NG_OK) {
        return fail_damaged(call);
    }
    ret->kind = (enum file_change)kind;
    ret->intents = files_intent_space(call);
    ret->op = json_get_text(value, "op");
    ret->real = json_get_text(value, "real");
    ret->space = json_get_text(value, "space");
    ret->to = json_get_text(value, "to");
    ret->to_space = json_get_text(value, "to_space");
    ret->copied = json_get_text(value, "copied");
    ret->copied_space = json_get_text(value, "copied_space");
    /* Copies, because these are used as C strings. */
    ret->collection = arena_copy(&call->arena, json_get_text(value, "collection"));
    ret->action = arena_copy(&call->arena, json_get_text(value, "action"));
    ret->undoable = json_is(json_get(value, "undoable"), NG_TYPE_TRUE);
    /* A text that does not fit was not written by this program; it becomes "". */
    (void)files_member_chars(value, "before", sizeof(ret->before), ret->before);
    (void)files_member_chars(value, "after", sizeof(ret->after), ret->after);
    (void)files_member_chars(value, "mark", sizeof(ret->mark), ret->mark);
    (void)files_member_chars(value, "inode", sizeof(ret->inode), ret->inode);
    return NG_OK;
}

static int parse_group(struct call *call, const struct ng_value *items, struct ng_str *rest,
                       struct file_record *record)
{
    struct arena *arena = &call->arena;
    struct file_group *group = arena_zalloc(arena, sizeof(*group));
    size_t room = 0;
    for (const struct ng_value *item = items->first; item != NULL; item = item->next) {
        room++;
    }
    if (group != NULL) {
        group->items = arena_zalloc(arena, room * sizeof(*group->items));
    }
    if (group == NULL || group->items == NULL) {
        return call_no_memory(call);
    }
    record->group = group;
    int rc = NG_OK;
    for (const struct ng_value *value = items->first; value != NULL && rc == NG_OK;
         value = value->next) {
        struct file_group_item *item = &group->items[group->count++];
        rc = parse_members(call, value, rest, &item->record);
        item->record.move = record;
        item->saves = json_is(json_get(value, "saves"), NG_TYPE_TRUE);
    }
    files_group_self(group, record);
    return rc;
}

int files_record_parse(struct call *call, struct ng_str json, struct ng_str text,
                       struct file_record *ret)
{
    const struct ng_value *root = NULL;
    struct ng_str rest = files_or_empty(text);
    memset(ret, 0, sizeof(*ret));
    if (json_parse(&call->arena, json, JSON_DEPTH_DEFAULT, &root, NULL) != NG_OK) {
        return fail_damaged(call);
    }
    int rc = parse_members(call, root, &rest, ret);
    if (rc != NG_OK) {
        return rc;
    }
    ret->agent = json_get_text(root, "agent");
    ret->tool = json_get_text(root, "tool");
    ret->run = json_get_text(root, "run");
    ret->key_id = json_get_text(root, "key");
    ret->request = json_get_text(root, "request");
    ret->note = json_get_text(root, "note");
    ret->happened = json_is(json_get(root, "happened"), NG_TYPE_TRUE);
    /* A later change has pushed its undo step already; this older one must not go above it. */
    ret->undoable = ret->undoable && !ret->happened;
    ret->answer.size = sizeof(ret->answer);
    ret->answer.scope = json_get_text(root, "scope");
    ret->answer.body_hash = json_get_text(root, "body_hash");
    ret->answer.reply = json_get_text(root, "reply");
    ret->has_answer = ret->answer.scope.len > 0 &&
                      json_integer(json_get(root, "time"), &ret->answer.time_ms) == NG_OK &&
                      json_integer(json_get(root, "expires"), &ret->answer.expires_ms) == NG_OK;
    const struct ng_value *items = json_get(root, "group");
    return items != NULL ? parse_group(call, items, &rest, ret) : NG_OK;
}

/* ---- the intent */

/* NG_ECONFLICT: an unfinished save must be recovered first. */
static int check_stale(struct call *call, const struct ng_doc *present, struct ng_str real,
                       struct file_record *record)
{
    if (present->revision == 0 || present->deleted ||
        files_same_op(call, present, record->op)) {
        return NG_OK;
    }
    record->stale = arena_copy(&call->arena, present->json);
    record->stale_text = arena_copy(&call->arena, files_or_empty(present->text));
    return call_fail(call, NG_ECONFLICT, "An unfinished save of %.*s is in the way.",
                     (int)real.len, real.data);
}

static int intent_write(struct call *call, const struct ng_doc *present, struct ng_draft *next,
                        struct file_record *record)
{
    int rc = check_stale(call, present, record->real, record);
    if (rc != NG_OK) {
        return rc;
    }
    struct buf json;
    buf_init(&json, FILES_JSON_MAX);
    rc = print_record(call, record, &json);
    rc = rc == NG_OK ? store_draft_json(next, buf_str(&json)) : call_no_memory(call);
    buf_done(&json);
    if (rc != NG_OK) {
        return rc;
    }
    size_t count = record->group != NULL ? record->group->count : 0;
    struct ng_str *texts = arena_alloc(&call->arena, (count + 1) * sizeof(*texts));
    if (texts == NULL) {
        return call_no_memory(call);
    }
    texts[0] = record->undo.inserted;
    for (size_t i = 0; i < count; i++) {
        texts[i + 1] = record->group->items[i].record.undo.inserted;
    }
    return store_draft_text(next, texts, count + 1);
}

static int intent_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    return intent_write(call_of(call), present, next, user);
}

/* The intent of a move is stored under its source path. An unfinished removal at the
 * destination must be recovered first: afterwards the moved file would look as if it had not
 * been removed.
 */
static int target_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    struct file_record *record = user;
    (void)next;
    return check_stale(call_of(call), present, record->to, record);
}

static int peek_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    struct file_record *record = user;
    (void)next;
    return record->peek(call_of(call), record, present, record->peek_user);
}

static int inode_peek_fn(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    const struct file_record *record = user;
    (void)next;
    return files_history_read(call_of(call), present, record->inode_history);
}

/* Marks the intent of another gateway whose save this change builds on. */
static int mark_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    const struct file_built_on *built_on = user;
    struct call *self = call_of(call);
    struct file_record there;
    if (present->revision == 0 || present->deleted || present->json.len == 0 ||
        files_record_parse(self, present->json, present->text, &there) != NG_OK ||
        there.happened || strcmp(there.after, built_on->after) != 0) {
        return NG_OK;
    }
    struct ng_str text = files_or_empty(present->text);
    struct ng_str json = arena_printf(&self->arena, "%.*s,\"happened\":true}",
                                      (int)present->json.len - 1, present->json.data);
    if (json.data == NULL) {
        return call_no_memory(self);
    }
    int rc = store_draft_json(next, json);
    if (rc != NG_OK) {
        return rc;
    }
    return store_draft_text(next, &text, 1);
}

/* Without it the change is complete: nothing else of the completion is due. */
static int drop_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    struct file_record *record = user;
    record->completed = !files_same_op(call_of(call), present, record->op);
    if (!record->completed) {
        store_draft_delete(next);
    }
    return NG_OK;
}

static void set_change(struct ng_change *change, const char *collection, struct ng_str space,
                       struct ng_str id, ng_change_fn *fn, void *user)
{
    memset(change, 0, sizeof(*change));
    change->size = sizeof(*change);
    change->key.collection = ng_str_of(collection);
    change->key.space = space;
    change->key.id = id;
    change->fn = fn;
    change->user = user;
}

size_t files_intent_changes(struct file_record *record, struct ng_change *changes)
{
    size_t count = 0;
    if (record->inode_history != NULL) {
        set_change(&changes[count++], FILES_HISTORY, record->space, ng_str_of(record->inode),
                   inode_peek_fn, record);
    }
    if (record->peek != NULL) {
        set_change(&changes[count++], FILES_HISTORY, record->space, record->real, peek_fn,
                   record);
    }
    set_change(&changes[count++], FILES_INTENTS, record->intents, record->real, intent_fn,
               record);
    if (record->to.len > 0) {
        set_change(&changes[count++], FILES_INTENTS, record->intents, record->to, target_fn,
                   record);
    }
    if (record->versions.found.real.len > 0) {
        file_version_found(&record->versions.found, &changes[count++]);
    }
    for (size_t i = 0; i < record->mark_count; i++) {
        struct file_built_on *mark = &record->marks[i];
        set_change(&changes[count++], FILES_INTENTS, mark->space, mark->real, mark_fn, mark);
    }
    return count;
}

size_t files_intent_drop(struct file_record *record, struct ng_change *changes)
{
    set_change(&changes[0], FILES_INTENTS, record->intents, record->real, drop_fn, record);
    return 1;
}

/* ---- the completion */

bool files_record_moves(const struct file_record *record)
{
    return record->kind == FILE_CHANGE_MOVE || record->kind == FILE_CHANGE_UNDO_MOVE;
}

bool files_record_removes(const struct file_record *record)
{
    return record->kind == FILE_CHANGE_DELETE || record->kind == FILE_CHANGE_UNDO_CREATE;
}

size_t files_effect_changes(struct file_record *record, struct ng_change *changes)
{
    const char *events = FILES_EVENTS;
    if (record->collection.len > 0) {
        events = record->collection.data;
    }
    bool moves = files_record_moves(record);
    struct ng_str space = record->space;
    struct ng_str now = record->real;
    if (moves) {
        space = record->to_space;
        now = record->to;
    }
    size_t count = 0;
    struct file_versions *versions = &record->versions;
    if (versions->left.real.len > 0 && !record->replaced) {
        file_version_saved(&versions->left, &changes[count++]);
    }
    if (versions->saved.real.len > 0) {
        file_version_saved(&versions->saved, &changes[count++]);
    }
    if (file_version_is_pinned(&versions->saved)) {
        file_version_pin(&versions->saved, &changes[count++]);
    }
    set_change(&changes[count], events, space, now, files_event_fn, record);
    changes[count++].action = files_event_action(record);
    if (moves && !record->replaced) { /* else the source path belongs to another file by now */
        set_change(&changes[count], events, record->space, record->real, files_moved_away_fn,
                   record);
        changes[count++].action = "deleted";
        set_change(&changes[count++], FILES_HISTORY, record->space, record->real,
                   files_history_from_fn, record);
    }
    if (moves) {
        set_change(&changes[count++], FILES_HISTORY, space, now, files_history_to_fn, record);
    } else if (record->undoable) {
        set_change(&changes[count++], FILES_HISTORY, space, now, files_history_fn, record);
    }
    bool edits = record->kind == FILE_CHANGE_EDIT || record->kind == FILE_CHANGE_UNDO_EDIT;
    if (edits && record->undoable && record->inode[0] != '\0') {
        set_change(&changes[count++], FILES_HISTORY, space, ng_str_of(record->inode),
                   files_inode_fn, record);
    }
    return count;
}

size_t files_completion_changes(struct file_record *record, struct ng_change *changes)
{
    /* First: its function tells the others whether they are due. */
    size_t count = files_intent_drop(record, changes);
    return count + files_effect_changes(record, changes + count);
}
