/* SPDX-License-Identifier: MIT */
/* history_diff_rows.c - history_diff of selected changes: a row per document, from before the
 * first to after the last of these changes. */
#include <string.h>

#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/diff.h"
#include "core/base/utf8.h"
#include "history.h"

/* Bytes of the diffs of one answer together. */
#define ROWS_DIFFS_MAX ((size_t)256 * 1024)
/* Bytes of a row in the answer without its texts, and of what follows the rows. */
#define ROW_MAX ((size_t)320)
#define ROWS_END_MAX ((size_t)150)

/* The result of the comparison of a document. */
enum row_result { ROW_COMPARED, ROW_NOT_KEPT, ROW_NOT_TEXT, ROW_TOO_LARGE };

/* A revision of the document. */
struct row_side {
    struct ng_call *call;
    struct buf text; /* used again for the next document */
    const struct ng_value *body;
    struct ng_str path; /* of a file; else absent */
    enum row_result result;
    int rc;
};

/* The page that the call asks for. */
struct rows_page {
    uint64_t before; /* documents whose last selected change is before this one */
    uint64_t until;  /* the newest change of the first page */
};

struct rows {
    struct ng_call *call;
    struct ng_writer *writer;
    struct row_side from, to;
    struct buf diff;
    uint64_t added, removed; /* lines of the last comparison */
    int64_t steps;           /* that are left for comparisons */
    size_t room;             /* bytes that are left for diffs */
    uint64_t shown;
    uint64_t next; /* where the next page goes on, if this one ended early; 0: it did not */
};

/* ---- the revisions ---- */

static int side_take_text(void *user, struct ng_str text)
{
    struct row_side *side = user;
    if (text.len > HISTORY_TEXT_MAX) {
        side->result = ROW_TOO_LARGE;
    } else if (!utf8_valid(text)) {
        side->result = ROW_NOT_TEXT;
    } else {
        (void)buf_add_str(&side->text, text);
    }
    return 0;
}

static int side_take(void *user, const struct ng_doc *row)
{
    struct row_side *side = user;
    const struct ng_host *host = side->call->host;
    side->result = ROW_COMPARED;
    if (row->deleted) {
        return 1;
    }
    struct ng_str json = history_copy(side->call, row->json);
    int rc = NG_OK;
    if (side->path.len > 0) {
        rc = host->file_view(side->call, side->path, row->text, side_take_text, side);
    } else {
        (void)side_take_text(side, row->text);
    }
    if (rc == NG_ETOOLARGE) {
        side->result = ROW_TOO_LARGE;
    } else if (rc != NG_OK) {
        side->rc = rc;
        return 1;
    }
    if (json.data == NULL || side->text.rc != NG_OK) {
        side->rc = history_no_memory(side->call);
    } else {
        side->rc = host->json_parse(side->call, json, &side->body);
    }
    return 1;
}

/* Revision 0 is what was before a document: nothing. */
static int side_read(struct row_side *side, const struct ng_key *key, uint64_t revision)
{
    const struct ng_range range = {
        .size = sizeof(range), .from = revision, .to = revision, .limit = 1, .with_body = true};
    int rc = NG_OK;
    buf_clear(&side->text);
    side->body = NULL;
    side->result = revision == 0 ? ROW_COMPARED : ROW_NOT_KEPT;
    side->rc = NG_OK;
    if (revision != 0) {
        rc = side->call->host->history(side->call, key, &range, side_take, side);
    }
    if (rc == NG_ENOTFOUND) { /* forgotten since */
        rc = NG_OK;
    }
    return rc == NG_OK ? side->rc : rc;
}

static int rows_add_piece(void *user, struct ng_str piece)
{
    return buf_add_str(user, piece);
}

/* rows->diff.rc: NG_ETOOLARGE where the diff is longer than all of an answer may be. */
static int rows_compare_texts(struct rows *rows, const struct history_document *document)
{
    const struct ng_key *key = &document->key;
    struct ng_str from = history_version_name(rows->call, key, document->first - 1);
    struct ng_str to = history_version_name(rows->call, key, document->last);
    size_t context = (size_t)ng_arg_int(rows->call, "context", (int64_t)DIFF_CONTEXT);
    struct diff diff = {0};
    if (from.data == NULL || to.data == NULL) {
        return history_no_memory(rows->call);
    }
    int rc = diff_lines_within(buf_str(&rows->from.text), buf_str(&rows->to.text), &rows->steps,
                               &diff);
    if (rc == NG_OK) {
        (void)diff_unified(&diff, context, from, to, rows_add_piece, &rows->diff);
    }
    rows->added = diff.added;
    rows->removed = diff.removed;
    diff_done(&diff);
    return rc == NG_OK && rows->diff.rc != NG_EINTERNAL ? NG_OK : history_no_memory(rows->call);
}

static int rows_compare(struct rows *rows, const struct history_document *document,
                        enum row_result *ret)
{
    const struct ng_key *key = &document->key;
    const struct ng_collection *collection =
        rows->call->host->collection(rows->call, key->collection);
    buf_clear(&rows->diff);
    rows->from.path = document->is_file ? key->id : STR_NONE;
    rows->to.path = rows->from.path;
    *ret = ROW_NOT_KEPT;
    bool has_content = collection != NULL && (collection->flags & NG_COLLECTION_CONTENT) != 0;
    if ((!document->is_file && !has_content) || document->has_gap) {
        return NG_OK;
    }
    int rc = side_read(&rows->from, key, document->first - 1);
    if (rc == NG_OK) {
        rc = side_read(&rows->to, key, document->last);
    }
    if (rc != NG_OK) {
        return rc;
    }
    *ret = rows->from.result != ROW_COMPARED ? rows->from.result : rows->to.result;
    if (rows->from.result == ROW_NOT_KEPT || rows->to.result == ROW_NOT_KEPT) {
        *ret = ROW_NOT_KEPT;
    }
    return *ret == ROW_COMPARED ? rows_compare_texts(rows, document) : NG_OK;
}

static void rows_begin(struct rows *rows)
{
    rows->from.call = rows->call;
    rows->to.call = rows->call;
    buf_init(&rows->from.text, HISTORY_TEXT_MAX);
    buf_init(&rows->to.text, HISTORY_TEXT_MAX);
    buf_init(&rows->diff, ROWS_DIFFS_MAX);
}

static void rows_end(struct rows *rows)
{
    buf_done(&rows->from.text);
    buf_done(&rows->to.text);
    buf_done(&rows->diff);
}

/* ---- the answer ---- */

/* Lines of the comparison, else those that the changes recorded, if each did. */
static void row_put_lines(struct rows *rows, const struct history_document *document,
                          enum row_result result)
{
    if (result == ROW_COMPARED) {
        json_member_int(rows->writer, "added", (int64_t)rows->added);
        json_member_int(rows->writer, "removed", (int64_t)rows->removed);
    } else if (document->counted == document->changes) {
        json_member_int(rows->writer, "added", (int64_t)document->added);
        json_member_int(rows->writer, "removed", (int64_t)document->removed);
    }
}

static void row_put_numbers(struct rows *rows, const struct history_document *document,
                            enum row_result result)
{
    uint64_t between = document->last - document->first + 1;
    json_member_int(rows->writer, "from",
                    (int64_t)(document->first - u64_min(document->first, 1)));
    json_member_int(rows->writer, "to", (int64_t)document->last);
    row_put_lines(rows, document, result);
    json_member_int(rows->writer, "others",
                    (int64_t)(between - u64_min(between, document->changes)));
}

static void row_put(struct rows *rows, const struct history_document *document,
                    enum row_result result, struct ng_str diff)
{
    struct ng_call *call = rows->call;
    struct ng_writer *writer = rows->writer;
    const struct ng_collection *collection =
        document->is_file ? NULL : call->host->collection(call, document->key.collection);
    json_object(writer);
    json_member_string(writer, "space", document->shown.space);
    history_put_key(writer, &document->shown);
    row_put_numbers(rows, document, result);
    if (result == ROW_NOT_KEPT) {
        json_name(writer, "changed");
        json_array(writer);
        json_end(writer);
        json_member_bool(writer, "kept", result != ROW_NOT_KEPT);
    } else {
        history_put_changed(call, writer, collection, rows->from.body, rows->to.body);
    }
    if (diff.data != NULL) {
        json_member_string(writer, "diff", diff);
    }
    if (result == ROW_NOT_TEXT || result == ROW_TOO_LARGE) {
        json_member_cstring(writer, "reason",
                            result == ROW_NOT_TEXT ? "not_text" : "too_large");
    }
    json_end(writer);
}

static size_t row_bytes(struct rows *rows, const struct history_document *document)
{
    const struct ng_key *key = &document->shown;
    const struct ng_collection *collection =
        rows->call->host->collection(rows->call, document->key.collection);
    size_t bytes =
        ROW_MAX + JSON_GROWTH_MAX * (key->space.len + key->collection.len + key->id.len);
    if (collection != NULL && collection->members != NULL) {
        bytes += 4 * strlen(collection->members);
    }
    return bytes;
}

/* Writes the row of the document. False: the page ends before it. */
static bool row_add(struct rows *rows, const struct history_document *document,
                    enum row_result result)
{
    size_t room = rows->call->host->answer_room(rows->call);
    size_t around = row_bytes(rows, document) + ROWS_END_MAX;
    struct ng_str diff = STR_NONE;
    room -= size_min(room, around);
    if (result == ROW_COMPARED && rows->diff.rc == NG_OK && rows->diff.len <= rows->room) {
        diff = str_or(buf_str(&rows->diff), ng_str_of(""));
    }
    bool whole = json_cut(diff, room).len == diff.len;
    if (rows->shown > 0 && (room == 0 || !whole)) {
        return false;
    }
    if (!whole) {
        diff = STR_NONE; /* it alone is longer than an answer */
    }
    rows->room -= diff.len;
    row_put(rows, document, result, diff);
    rows->shown++;
    return true;
}

/* No answer would ever get past it. */
static int rows_too_long(struct ng_call *call, const struct history_document *document,
                         const struct rows_page *page)
{
    struct ng_str shown = utf8_cut(document->key.id, HISTORY_SHOWN);
    return ng_fail(call, NG_ETOOLARGE,
                   "the row of the id that begins with \"%.*s\" alone is longer than an answer "
                   "(tools.max_answer); go on with the `cursor` \"%llu-%llu\"",
                   (int)shown.len, shown.data, (unsigned long long)document->last_seq,
                   (unsigned long long)page->until);
}

static int rows_put(struct rows *rows, const struct history_changed *changed,
                    const struct rows_page *page)
{
    const struct history_document *document = changed->newest;
    struct ng_call *call = rows->call;
    int rc = NG_OK;
    while (document != NULL && document->last_seq >= page->before) {
        document = document->next;
    }
    for (; document != NULL && rc == NG_OK && rows->next == 0; document = document->next) {
        enum row_result result = ROW_NOT_KEPT;
        bool fits = rows->shown < HISTORY_DOCUMENTS_MAX;
        if (fits) {
            rc = rows_compare(rows, document, &result);
            fits = rc == NG_OK && row_add(rows, document, result);
        }
        if (rc == NG_OK && !fits) {
            rows->next = document->last_seq + 1;
        }
        if (rc == NG_OK && call->host->answer_room(call) < ROWS_END_MAX) {
            rc = rows_too_long(call, document, page);
        }
        if (rc == NG_OK && call->host->cancelled(call)) {
            rc = ng_fail(call, NG_ECANCELLED, "cancelled while documents were compared");
        }
    }
    return rc;
}

static int rows_answer(struct rows *rows, const struct history_changed *changed,
                       const struct rows_page *page)
{
    struct ng_call *call = rows->call;
    rows->writer = call->host->reply_json(call);
    json_object(rows->writer);
    json_name(rows->writer, "documents");
    json_array(rows->writer);
    int rc = rows_put(rows, changed, page);
    json_end(rows->writer);
    json_member_bool(rows->writer, "has_more", rows->next != 0);
    if (rows->next != 0) {
        json_member_string(rows->writer, "cursor",
                           call->host->format(call, "%llu-%llu", (unsigned long long)rows->next,
                                              (unsigned long long)page->until));
    }
    json_end(rows->writer);
    return rc;
}

/* The cursor has both numbers of the page: changes that are made between two pages do not move
 * a document from one to the other. */
static int rows_page(struct ng_call *call, struct rows_page *ret)
{
    struct ng_str cursor = ng_arg_text(call, "cursor");
    const char *dash = cursor.len > 0 ? memchr(cursor.data, '-', cursor.len) : NULL;
    *ret = (struct rows_page){UINT64_MAX, UINT64_MAX};
    if (cursor.data == NULL) {
        return NG_OK;
    }
    size_t len = dash != NULL ? (size_t)(dash - cursor.data) : cursor.len;
    struct ng_str behind = str_make(cursor.data + len, cursor.len - len);
    if (dash == NULL || !str_number(str_make(cursor.data, len), INT64_MAX, &ret->before) ||
        !str_number(str_make(behind.data + 1, behind.len - 1), INT64_MAX, &ret->until)) {
        return history_not_a_cursor(call);
    }
    return NG_OK;
}

static int rows_check(struct ng_call *call, const struct ng_trail *trail)
{
    if (trail->runs.count + trail->agents.count == 0 && !call->caller->space_named) {
        return ng_fail(call, NG_EINVAL,
                       "name one document with `id`, or select changes by `run`, `agent` or "
                       "`space`");
    }
    if (ng_has_arg(call, "from") || ng_has_arg(call, "to")) {
        return ng_fail(call, NG_EINVAL,
                       "`from` and `to` are of one document (`id` without a filter); a filter "
                       "has `since` and `until`");
    }
    return NG_OK;
}

int history_diff_rows(struct ng_call *call)
{
    struct history_changed changed = {.call = call};
    struct rows rows = {.call = call, .steps = DIFF_STEPS_MAX, .room = ROWS_DIFFS_MAX};
    struct rows_page page;
    struct ng_trail trail;
    int rc = history_filter(call, &trail);
    if (rc == NG_OK) {
        rc = rows_check(call, &trail);
    }
    if (rc == NG_OK) {
        rc = rows_page(call, &page);
    }
    if (rc != NG_OK) {
        return rc;
    }
    trail.until = u64_min(trail.until, page.until);
    rc = history_changed(call, &trail, &changed);
    if (rc == NG_OK && changed.newest == NULL) {
        rc = history_check_runs(call, &trail);
    }
    if (rc == NG_OK) {
        page.until = changed.newest != NULL ? changed.newest->last_seq : 0;
        rows_begin(&rows);
        rc = rows_answer(&rows, &changed, &page);
        rows_end(&rows);
    }
    history_changed_done(&changed);
    return rc;
}
