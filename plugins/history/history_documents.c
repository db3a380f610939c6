/* SPDX-License-Identifier: MIT */
/* history_documents.c - history_read without an id: the documents that were there at a point.
 */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "history.h"

/* Bytes of a row in the answer without its texts, and of what follows the rows. */
#define DOCUMENTS_ROW_MAX ((size_t)128)
#define DOCUMENTS_END_MAX ((size_t)100)

struct documents {
    struct ng_call *call;
    struct ng_writer *writer;
    struct history_target shelf;
    struct ng_str ids[HISTORY_DOCUMENTS_MAX];
    size_t count;
    int rc;
};

static int take_id(void *user, const struct ng_doc *row)
{
    struct documents *list = user;
    struct ng_str id = history_copy(list->call, row->key.id);
    if (id.data == NULL && row->key.id.len > 0) {
        list->rc = history_no_memory(list->call);
        return 1;
    }
    list->ids[list->count++] = str_or(id, ng_str_of(""));
    return list->count == HISTORY_DOCUMENTS_MAX;
}

struct size_row {
    bool there;
    uint64_t bytes;
};

static int take_size(void *user, const struct ng_doc *row)
{
    *(struct size_row *)user = (struct size_row){!row->deleted, row->text_size};
    return 1;
}

/* The id stands in the row and perhaps in the cursor. */
static bool document_fits(const struct documents *list, struct ng_str id)
{
    size_t room = list->call->host->answer_room(list->call);
    size_t around = DOCUMENTS_ROW_MAX + DOCUMENTS_END_MAX +
                    JSON_GROWTH_MAX * list->shelf.key.collection.len;
    room -= size_min(room, around);
    return json_cut(id, room / 2).len == id.len;
}

/* No answer would ever get past it. */
static int document_too_long(struct ng_call *call, struct ng_str id)
{
    struct ng_str shown = utf8_cut(id, HISTORY_SHOWN);
    return ng_fail(call, NG_ETOOLARGE,
                   "an id that begins with \"%.*s\" alone is longer than an answer "
                   "(tools.max_answer); go on with a `cursor` behind it",
                   (int)shown.len, shown.data);
}

/* Writes its row if it was there. *ret_full: the answer has no room for it. */
static int put_document(struct documents *list, struct ng_str id, struct ng_str at,
                        bool *ret_full)
{
    struct ng_call *call = list->call;
    const struct ng_key key = {list->shelf.key.collection, list->shelf.key.space, id};
    struct ng_as_of found = {.size = sizeof(found)};
    struct size_row size = {0};
    int rc = call->host->revision_at(call, &key, "at", at, &found);
    if (rc != NG_OK || found.revision == 0) {
        return rc == NG_ENOTFOUND ? NG_OK : rc; /* forgotten since */
    }
    struct ng_range range = {
        .size = sizeof(range), .from = found.revision, .to = found.revision, .limit = 1};
    rc = call->host->history(call, &key, &range, take_size, &size);
    if (rc != NG_OK || (found.kept && !size.there)) {
        return rc;
    }
    *ret_full = !document_fits(list, id);
    if (*ret_full) {
        return NG_OK;
    }
    json_object(list->writer);
    json_member_string(list->writer, "collection", key.collection);
    json_member_string(list->writer, "id", id);
    json_member_int(list->writer, "revision", (int64_t)found.revision);
    if (found.kept) {
        json_member_int(list->writer, "bytes", (int64_t)size.bytes);
    }
    json_end(list->writer);
    return NG_OK;
}

/* The ids behind the cursor, which is the last one of the page before. */
static int read_ids(struct documents *list)
{
    struct ng_str cursor = ng_arg_text(list->call, "cursor");
    const struct ng_term after = {.field = ng_str_of("id"), .op = NG_TERM_GT, .value = cursor};
    const struct ng_query query = {
        .size = sizeof(query),
        .collection = list->shelf.key.collection,
        .space = list->shelf.key.space,
        .terms = &after,
        .term_count = cursor.data != NULL,
        .sort = ng_str_of("id"),
        .limit = HISTORY_DOCUMENTS_MAX,
        .with_deleted = true,
    };
    uint64_t total = 0;
    int rc = list->call->host->query(list->call, &query, take_id, list, &total);
    return rc == NG_OK ? list->rc : rc;
}

int history_documents(struct ng_call *call)
{
    struct ng_str at = str_or(ng_arg_text(call, "at"), ng_str_of("now"));
    struct documents *list = ng_alloc(call, sizeof(*list));
    if (list == NULL) {
        return history_no_memory(call);
    }
    *list = (struct documents){.call = call};
    uint64_t seq = 0;
    int rc = history_shelf(call, &list->shelf);
    if (rc == NG_OK) {
        rc = call->host->point_seq(call, "at", at, &seq); /* no revision of one document */
    }
    if (rc == NG_OK) {
        rc = read_ids(list);
    }
    if (rc != NG_OK) {
        return rc;
    }
    bool full = false;
    size_t shown = 0;
    list->writer = call->host->reply_json(call);
    json_object(list->writer);
    json_name(list->writer, "documents");
    json_array(list->writer);
    for (size_t i = 0; i < list->count && rc == NG_OK && !full; i++) {
        rc = put_document(list, list->ids[i], at, &full);
        shown += !full;
    }
    if (rc == NG_OK && full && shown == 0) {
        rc = document_too_long(call, list->ids[0]);
    }
    json_end(list->writer);
    bool more = full || list->count == HISTORY_DOCUMENTS_MAX;
    json_member_bool(list->writer, "has_more", more);
    if (more && shown > 0) {
        json_member_string(list->writer, "cursor", list->ids[shown - 1]);
    }
    json_end(list->writer);
    return rc;
}
