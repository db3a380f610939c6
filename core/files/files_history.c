/* SPDX-License-Identifier: MIT */
/* files_history.c - undo history: for each recent change of a file the splice that reverts it,
 * in one document per file (members as JSON, removed text beside it). */
#include "core/base/clock.h"
#include "core/base/merge/splice.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/utf8.h"
#include "files_state.h"

static struct ng_str to_hex(struct arena *arena, struct ng_str data)
{
    char *hex = arena_alloc(arena, data.len * 2 + 1); /* a file is far below SIZE_MAX / 2 */
    if (hex == NULL) {
        return str_make(NULL, 0);
    }
    hex_write(data.data, data.len, hex);
    return str_make(hex, data.len * 2);
}

int files_undo_make(struct call *call, struct ng_str before, struct ng_str after,
                    struct file_undo *ret)
{
    const struct ng_splice back = splice_between(after, before);
    size_t head = (size_t)back.at;
    size_t tail = before.len - head - back.inserted.len;
    /* Cut between characters: the kept text of a UTF-8 file is UTF-8. */
    while (head > 0 && head < before.len && !utf8_is_start(before.data[head])) {
        head--;
    }
    while (tail > 0 && !utf8_is_start(before.data[before.len - tail])) {
        tail--;
    }
    ret->at = head;
    ret->removed = after.len - head - tail;
    ret->inserted =
        str_make(before.len > 0 ? before.data + head : "", before.len - head - tail);
    ret->hex = !utf8_valid(ret->inserted);
    if (ret->hex) {
        ret->inserted = to_hex(&call->arena, ret->inserted);
    }
    return ret->inserted.data != NULL ? NG_OK : call_no_memory(call);
}

void files_undo_sign(struct call *call, const struct file_record *record,
                     struct file_undo *undo)
{
    undo->op = record->op;
    undo->agent = call->caller.agent;
    undo->time_ms = clock_unix_ms();
    memcpy(undo->before, record->before, sizeof(record->before));
    memcpy(undo->after, record->after, sizeof(record->after));
}

int files_undo_apply(struct call *call, const struct file_undo *undo, struct ng_str now,
                     struct ng_str *ret)
{
    size_t insert = undo->inserted.len;
    if (undo->hex) {
        insert /= 2;
    }
    if (undo->at > now.len || undo->removed > now.len - undo->at ||
        insert > CALL_MEMORY_MAX - 1) {
        return call_fail(call, NG_EINTERNAL, "The undo history does not fit the file.");
    }
    size_t at = (size_t)undo->at;
    size_t removed = (size_t)undo->removed;
    size_t len = now.len - removed + insert;
    char *data = arena_alloc(&call->arena, len + 1);
    if (data == NULL) {
        return call_no_memory(call);
    }
    if (at > 0) {
        memcpy(data, now.data, at);
    }
    if (!undo->hex) {
        memcpy(data + at, undo->inserted.data, insert);
    } else if (!hex_read(str_make(undo->inserted.data, insert * 2), data + at)) {
        return call_fail(call, NG_EINTERNAL, "The undo history of a file is damaged.");
    }
    if (now.len - at - removed > 0) {
        memcpy(data + at + insert, now.data + at + removed, now.len - at - removed);
    }
    data[len] = '\0';
    *ret = str_make(data, len);
    return NG_OK;
}

/* The files of a group. */
static void print_files(struct buf *out, const struct file_undo *undo)
{
    const struct ng_value *file = undo->files != NULL ? undo->files->first : NULL;
    size_t count = 0;
    (void)buf_add_c(out, ",\"files\":[");
    for (; file != NULL; file = file->next) {
        (void)buf_add_c(out, count++ > 0 ? "," : "");
        (void)buf_add_json(out, file->text);
    }
    for (size_t i = 0; undo->files == NULL && i < undo->listed_count; i++) {
        (void)buf_add_c(out, i > 0 ? "," : "");
        (void)buf_add_json(out, undo->listed[i]);
    }
    (void)buf_add_char(out, ']');
}

int files_undo_print(struct buf *out, const struct file_undo *undo)
{
    (void)buf_printf(out,
                     "{\"kind\":%d,\"op\":\"%.*s\",\"before\":\"%s\",\"after\":\"%s\","
                     "\"at\":%llu,\"removed\":%llu,\"bytes\":%zu,\"hex\":%s",
                     (int)undo->kind, (int)undo->op.len, undo->op.data, undo->before,
                     undo->after, (unsigned long long)undo->at,
                     (unsigned long long)undo->removed, undo->inserted.len,
                     undo->hex ? "true" : "false");
    if (undo->former.len > 0) {
        (void)buf_add_c(out, ",\"former\":");
        (void)buf_add_json(out, undo->former);
    }
    if (undo->kind == NG_UNDO_DELETE) {
        (void)buf_printf(out, ",\"mode\":%u,\"names\":%llu", (unsigned)undo->mode,
                         (unsigned long long)undo->names);
    }
    if (undo->group.len > 0) {
        (void)buf_add_c(out, ",\"group\":");
        (void)buf_add_json(out, undo->group);
    }
    if (undo->files != NULL || undo->listed != NULL) {
        print_files(out, undo);
    }
    if (undo->agent.len > 0) {
        (void)buf_printf(out, ",\"time\":%lld,\"agent\":", (long long)undo->time_ms);
        (void)buf_add_json(out, undo->agent);
    }
    return buf_add_char(out, '}');
}

bool files_member_chars(const struct ng_value *object, const char *name, size_t size, char *ret)
{
    struct ng_str text = json_get_text(object, name);
    ret[0] = '\0';
    if (text.data == NULL || text.len >= size) {
        return false;
    }
    memcpy(ret, text.data, text.len);
    ret[text.len] = '\0';
    return true;
}

/* Consumes its text from the beginning of *text. */
int files_undo_parse(const struct ng_value *value, struct ng_str *text, struct file_undo *ret)
{
    int64_t kind = 0;
    int64_t at = -1;
    int64_t removed = -1;
    int64_t bytes = -1;
    const struct ng_value *hex = json_get(value, "hex");
    const struct ng_value *op = json_get(value, "op");
    const struct ng_value *former = json_get(value, "former");
    memset(ret, 0, sizeof(*ret));
    if (json_integer(json_get(value, "kind"), &kind) != NG_OK ||
        json_integer(json_get(value, "at"), &at) != NG_OK ||
        json_integer(json_get(value, "removed"), &removed) != NG_OK ||
        json_integer(json_get(value, "bytes"), &bytes) != NG_OK ||
        !files_member_chars(value, "before", sizeof(ret->before), ret->before) ||
        !files_member_chars(value, "after", sizeof(ret->after), ret->after) || op == NULL ||
        op->type != NG_TYPE_STRING || (former != NULL && former->type != NG_TYPE_STRING) ||
        kind < NG_UNDO_EDIT || kind > NG_UNDO_DELETE || at < 0 || removed < 0 || bytes < 0 ||
        (uint64_t)bytes > text->len) {
        return NG_EINTERNAL;
    }
    ret->kind = (enum ng_undo_kind)kind;
    ret->op = op->text;
    ret->at = (uint64_t)at;
    ret->removed = (uint64_t)removed;
    ret->hex = hex != NULL && hex->type == NG_TYPE_TRUE;
    if (former != NULL) {
        ret->former = former->text;
    }
    int64_t mode = 0;
    if (json_integer(json_get(value, "mode"), &mode) == NG_OK) {
        ret->mode = (uint32_t)mode & 07777U;
    }
    int64_t names = 0;
    if (json_integer(json_get(value, "names"), &names) == NG_OK && names > 0) {
        ret->names = (uint64_t)names;
    }
    ret->agent = json_get_text(value, "agent");
    ret->group = json_get_text(value, "group");
    ret->files = json_get(value, "files");
    (void)json_integer(json_get(value, "time"), &ret->time_ms);
    ret->inserted = str_make(text->len > 0 ? text->data : "", (size_t)bytes);
    if (bytes > 0) {
        *text = str_make(text->data + bytes, text->len - (size_t)bytes);
    }
    return NG_OK;
}

int files_history_read(struct call *call, const struct ng_doc *doc, struct file_history *ret)
{
    ret->count = 0;
    if (doc == NULL || doc->revision == 0 || doc->deleted) {
        return NG_OK;
    }
    /* A copy: the entries outlive the change function. */
    struct ng_str json = arena_copy(&call->arena, doc->json);
    struct ng_str text = arena_copy(&call->arena, files_or_empty(doc->text));
    const struct ng_value *root = NULL;
    struct json_error error;
    if (json.data == NULL || text.data == NULL) {
        return call_no_memory(call);
    }
    if (json_parse(&call->arena, json, JSON_DEPTH_DEFAULT, &root, &error) != NG_OK) {
        return call_fail(call, NG_EINTERNAL, "The undo history of a file cannot be read: %s.",
                         error.message);
    }
    const struct ng_value *steps = json_get(root, "steps");
    const struct ng_value *step = NULL;
    if (steps != NULL) {
        step = steps->first;
    }
    for (; step != NULL && ret->count < NG_FILE_UNDO_MAX; step = step->next) {
        if (files_undo_parse(step, &text, &ret->items[ret->count]) != NG_OK) {
            return call_fail(call, NG_EINTERNAL, "The undo history of a file is damaged.");
        }
        ret->count++;
    }
    return NG_OK;
}

int files_history_write(struct call *call, const struct file_history *history,
                        struct ng_draft *next)
{
    if (history->count == 0) {
        store_draft_delete(next);
        return NG_OK;
    }
    struct buf json;
    struct ng_str pieces[NG_FILE_UNDO_MAX];
    buf_init(&json, FILES_JSON_MAX);
    (void)buf_add_c(&json, "{\"steps\":[");
    for (size_t i = 0; i < history->count; i++) {
        if (i > 0) {
            (void)buf_add_char(&json, ',');
        }
        (void)files_undo_print(&json, &history->items[i]);
        pieces[i] = history->items[i].inserted;
    }
    (void)buf_add_c(&json, "]}");
    int rc = json.rc;
    if (rc == NG_OK) {
        rc = store_draft_json(next, buf_str(&json));
    } else {
        rc = call_no_memory(call);
    }
    buf_done(&json);
    if (rc != NG_OK) {
        return rc;
    }
    return store_draft_text(next, pieces, history->count);
}

bool files_history_on_top(const struct file_history *history, struct ng_str op)
{
    return history->count > 0 && str_equal(history->items[history->count - 1].op, op);
}

bool files_history_has_removal(const struct file_history *history)
{
    return history->count > 0 && history->items[history->count - 1].kind == NG_UNDO_DELETE;
}

const struct file_undo *files_history_elsewhere(const struct file_history *history,
                                                const struct file_history *inode,
                                                const char *now)
{
    if (inode == NULL || inode->count == 0) {
        return NULL;
    }
    const struct file_undo *edit = &inode->items[inode->count - 1];
    for (size_t i = 0; i < history->count; i++) {
        if (str_equal(history->items[i].op, edit->op)) {
            return NULL;
        }
    }
    bool newer =
        history->count == 0 || history->items[history->count - 1].time_ms <= edit->time_ms;
    return newer && strcmp(edit->after, now) == 0 ? edit : NULL;
}

void files_history_pop(struct file_history *history, struct ng_str op)
{
    if (files_history_on_top(history, op)) {
        history->count--;
    }
}

/* Bytes of a step in the document. */
static size_t step_bytes(const struct file_undo *undo)
{
    size_t bytes = undo->inserted.len;
    const struct ng_value *file = undo->files != NULL ? undo->files->first : NULL;
    for (; file != NULL; file = file->next) {
        bytes += file->text.len;
    }
    for (size_t i = 0; undo->files == NULL && i < undo->listed_count; i++) {
        bytes += undo->listed[i].len;
    }
    return bytes;
}

void files_history_push(struct file_history *history, const struct file_undo *undo)
{
    size_t bytes = step_bytes(undo);
    size_t keep = 0; /* newest steps that stay */
    while (keep < history->count && keep < NG_FILE_UNDO_MAX - 1) {
        size_t more = step_bytes(&history->items[history->count - 1 - keep]);
        if (more > FILES_UNDO_BYTES_MAX || bytes > FILES_UNDO_BYTES_MAX - more) {
            break;
        }
        bytes += more;
        keep++;
    }
    memmove(history->items, history->items + (history->count - keep),
            keep * sizeof(history->items[0]));
    history->count = keep;
    if (undo->inserted.len <= FILES_UNDO_BYTES_MAX) {
        history->items[history->count++] = *undo;
    } else {
        history->count = 0; /* without this step the older ones do not apply */
    }
}

/* ---- the documents of a completed change */

/* A group that is recovered late: its files may have newer steps. One that led to the content
 * before this change is none, whatever the clock was when it was made. */
static bool is_older(const struct file_history *history, const struct file_record *record)
{
    if (record->move == NULL || history->count == 0) {
        return false;
    }
    const struct file_undo *last = &history->items[history->count - 1];
    return strcmp(last->after, record->undo.before) != 0 &&
           last->time_ms > record->undo.time_ms;
}

/* before: the steps that are stored. */
static int history_store(struct call *call, const struct file_history *history, size_t before,
                         struct ng_draft *next)
{
    if (history->count == 0 && before == 0) {
        return NG_OK;
    }
    return files_history_write(call, history, next);
}

int files_history_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    struct file_record *record = user;
    struct file_history history;
    int rc = files_history_read(call_of(call), present, &history);
    if (rc != NG_OK || record->completed) {
        return rc;
    }
    size_t before = history.count;
    bool adds = record->kind == FILE_CHANGE_EDIT || record->kind == FILE_CHANGE_CREATE ||
                record->kind == FILE_CHANGE_DELETE;
    if (adds && (files_history_on_top(&history, record->op) || is_older(&history, record))) {
        return NG_OK;
    }
    if (record->kind == FILE_CHANGE_UNDO_EDIT || record->kind == FILE_CHANGE_UNDO_DELETE) {
        files_history_pop(&history, record->undo.op);
        if (history.count == before) {
            return NG_OK;
        }
    } else if (record->kind == FILE_CHANGE_UNDO_CREATE) {
        files_history_pop(&history, record->undo.op);
    } else if (record->kind == FILE_CHANGE_CREATE && !files_history_has_removal(&history)) {
        history.count = 0; /* it belonged to an older file of this name */
    }
    if (adds) {
        files_history_push(&history, &record->undo);
    }
    return history_store(call_of(call), &history, before, next);
}

int files_inode_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    struct file_record *record = user;
    struct file_history history;
    int rc = files_history_read(call_of(call), present, &history);
    if (rc != NG_OK || record->completed) {
        return rc;
    }
    size_t before = history.count;
    if (record->kind == FILE_CHANGE_UNDO_EDIT) {
        files_history_pop(&history, record->undo.op);
    } else if (!files_history_on_top(&history, record->op) && !is_older(&history, record)) {
        struct file_undo step = record->undo;
        step.inserted = ng_str_of("");
        step.former = record->real;
        files_history_push(&history, &step);
    } else {
        return NG_OK;
    }
    return history_store(call_of(call), &history, before, next);
}

int files_history_from_fn(struct ng_call *call, const struct ng_doc *present,
                          struct ng_draft *next, void *user)
{
    struct file_record *record = user;
    int rc = files_history_read(call_of(call), present, &record->carried);
    if (rc == NG_OK && record->carried.count > 0 && !record->completed) {
        store_draft_delete(next);
    }
    return rc;
}

/* Stores it under the destination. Runs after files_history_from_fn. */
int files_history_to_fn(struct ng_call *call, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    struct file_record *record = user;
    struct file_history history;
    int rc = files_history_read(call_of(call), present, &history);
    if (rc != NG_OK || record->completed || files_history_on_top(&history, record->op)) {
        return rc;
    }
    if (record->move != NULL && record->carried.count == 0 &&
        record->kind != FILE_CHANGE_MOVE) {
        return NG_OK; /* a former attempt has carried it */
    }
    size_t before = history.count;
    history = record->carried;
    if (record->kind == FILE_CHANGE_MOVE && record->undo.op.len > 0) {
        files_history_push(&history, &record->undo);
    } else {
        files_history_pop(&history, record->undo.op);
    }
    return history_store(call_of(call), &history, before, next);
}
