/* SPDX-License-Identifier: MIT */
/* checkpoint.c - the content of a checkpoint: made of the present, kept, read. */
#include "checkpoint.h"

#include "core/base/str.h"
#include "core/base/text/random.h"

#include <stdlib.h>
#include <string.h>

/* Entries read at a time. */
#define CHECKPOINT_PAGE 1000

struct checkpoint_rows {
    struct ng_call *call;
    struct ng_writer *writer;
    const char *collection;
    uint64_t last_seq, entries;
    uint32_t rows;
};

static int checkpoint_row(void *user, const struct ng_doc *row)
{
    struct checkpoint_rows *state = user;
    const struct ng_host *host = state->call->host;
    host->json_object(state->writer);
    memory_put(state->call, state->writer, "collection", ng_str_of(state->collection));
    memory_put(state->call, state->writer, "id", row->key.id);
    entry_put_int(state->call, state->writer, "version", row->revision);
    host->json_end(state->writer);
    state->last_seq = row->created_seq;
    state->entries++;
    state->rows++;
    return 0;
}

/* Id, collection and version of every entry of the space, a page at a time. */
static int checkpoint_entries(struct checkpoint_rows *state, struct ng_str space)
{
    struct ng_call *call = state->call;
    const struct ng_host *host = call->host;
    struct ng_term after = {.field = ng_str_of("created_seq"), .op = NG_TERM_GT};
    uint64_t moment = 0; /* a change of several entries is in the checkpoint as a whole */
    struct ng_query query = {
        .size = sizeof(query),
        .space = space,
        .terms = &after,
        .term_count = 1,
        .sort = after.field,
        .limit = CHECKPOINT_PAGE,
        .moment = &moment,
    };
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < ENTRY_COLLECTIONS; i++) {
        state->collection = entry_collections[i];
        query.collection = ng_str_of(entry_collections[i]);
        state->last_seq = 0;
        do {
            state->rows = 0;
            after.number = (double)state->last_seq;
            rc = host->query(call, &query, checkpoint_row, state, NULL);
            host->progress(call, (double)state->entries, 0, ng_str_of("entries named"));
            if (rc == NG_OK && host->cancelled(call)) {
                rc = ng_fail(call, NG_ECANCELLED, "cancelled; nothing was changed");
            }
        } while (rc == NG_OK && state->rows == CHECKPOINT_PAGE);
    }
    return rc;
}

static int checkpoint_too_large(struct ng_call *call)
{
    return ng_fail(call, NG_ETOOLARGE, "the space is too large for one checkpoint");
}

/* "journal" comes last, in the text of the dump. */
static int checkpoint_join(struct ng_call *call, struct ng_str head, struct ng_str dump,
                           struct ng_str *ret_json)
{
    const struct ng_str pieces[] = {
        {head.data, head.len - 1}, /* without its closing brace */
        ng_str_of(",\"journal\":"),
        dump,
        ng_str_of("}"),
    };
    *ret_json = entry_join(call, pieces, NG_COUNT(pieces));
    if (ret_json->data == NULL) {
        return checkpoint_too_large(call);
    }
    return NG_OK;
}

/* The members of a checkpoint except its journal, whose text is `dump`. Without a dump the
 * journal is kept aside. */
static int checkpoint_head(struct ng_call *call, struct ng_str space, struct ng_str id,
                           struct ng_str label, struct ng_str dump, struct ng_str *ret_head)
{
    const struct ng_host *host = call->host;
    struct checkpoint_rows state = {.call = call, .writer = host->json_writer(call)};
    struct ng_writer *writer = state.writer;
    if (writer == NULL) {
        return entry_no_memory(call);
    }
    host->json_object(writer);
    memory_put(call, writer, "format", ng_str_of(CHECKPOINT_FORMAT));
    memory_put(call, writer, "checkpoint_id", id);
    memory_put(call, writer, "label", label);
    memory_put(call, writer, "created_at", entry_time(call, host->now_ms()));
    memory_put(call, writer, "created_by", entry_agent_of(call, call->caller->agent));
    if (dump.data != NULL) {
        struct ng_str summary = checkpoint_text_member(dump, "summary");
        entry_put_int(call, writer, "daily_entries",
                      checkpoint_text_count(checkpoint_text_member(dump, "days")));
        entry_put_int(call, writer, "memories",
                      checkpoint_text_count(checkpoint_text_member(dump, "memories")));
        host->json_name(writer, "has_summary");
        host->json_bool(writer, summary.len > 0 && summary.data[0] == '"');
    } else {
        host->json_name(writer, "kept_aside");
        host->json_bool(writer, true);
    }
    host->json_name(writer, "entries");
    host->json_array(writer);
    int rc = checkpoint_entries(&state, space);
    host->json_end(writer);
    entry_put_int(call, writer, "notebooks", state.entries);
    host->json_end(writer);
    *ret_head = host->json_result(writer);
    if (rc == NG_OK && ret_head->data == NULL) {
        return checkpoint_too_large(call);
    }
    return rc;
}

int checkpoint_make(struct ng_call *call, struct ng_str space, struct ng_str id,
                    struct ng_str label, struct ng_str *ret_json)
{
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    struct ng_str dump = {NULL, 0};
    struct ng_str head = {NULL, 0};
    int rc = functions->dump(handle, call, space, &dump);
    if (rc != NG_OK) {
        return rc;
    }
    rc = checkpoint_head(call, space, id, label, dump, &head);
    if (rc != NG_OK) {
        return rc;
    }
    return checkpoint_join(call, head, dump, ret_json);
}

int checkpoint_take_aside(struct ng_call *call, struct ng_str space, struct ng_str label,
                          struct ng_str *ret_id)
{
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    struct ng_str id = memory_uuid(call);
    struct ng_str head = {NULL, 0};
    struct ng_str json = {NULL, 0};
    struct ng_str none = {NULL, 0};
    if (!NG_HAS(functions, restore_aside) || functions->restore_aside == NULL) {
        return ng_fail(call, NG_ETOOLARGE,
                       "the journal of the space is larger than the maximum of a checkpoint, "
                       "and this journal cannot save it in another way");
    }
    if (id.data == NULL) {
        return NG_EINTERNAL;
    }
    int rc = checkpoint_head(call, space, id, label, none, &head);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str kept =
        call->host->format(call, "{\"format\":\"" CHECKPOINT_KEPT_FORMAT "\",\"id\":\"%.*s\"}",
                           (int)id.len, id.data);
    if (kept.data == NULL) {
        return entry_no_memory(call);
    }
    rc = checkpoint_join(call, head, kept, &json);
    if (rc != NG_OK) {
        return rc;
    }
    *ret_id = id;
    return functions->checkpoint_put(handle, call, space, id, json);
}

static int checkpoint_take_as(struct ng_call *call, struct ng_str space, struct ng_str label,
                              struct ng_str id, struct ng_str *ret_json)
{
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    if (id.data == NULL) {
        return NG_EINTERNAL;
    }
    int rc = checkpoint_make(call, space, id, label, ret_json);
    if (rc != NG_OK) {
        return rc;
    }
    return functions->checkpoint_put(handle, call, space, id, *ret_json);
}

int checkpoint_take(struct ng_call *call, struct ng_str space, struct ng_str label,
                    struct ng_str *ret_id, struct ng_str *ret_json)
{
    *ret_id = memory_uuid(call);
    return checkpoint_take_as(call, space, label, *ret_id, ret_json);
}

int checkpoint_take_once(struct ng_call *call, struct ng_str space, struct ng_str label,
                         struct ng_str *ret_id, struct ng_str *ret_json)
{
    void *handle = NULL;
    int64_t made_ms = 0;
    const struct ng_value *body = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    *ret_id = memory_uuid_once(call);
    if (ret_id->data == NULL) {
        return checkpoint_take(call, space, label, ret_id, ret_json);
    }
    int rc = functions->checkpoint_get(handle, call, space, *ret_id, ret_json);
    if (rc == NG_ENOTFOUND) {
        return checkpoint_take_as(call, space, label, *ret_id, ret_json);
    }
    if (rc == NG_OK) {
        rc = call->host->json_parse(call, *ret_json, &body);
    }
    if (rc == NG_OK && entry_time_read(memory_text(call, body, "created_at"), &made_ms) &&
        made_ms < call->host->now_ms() - CHECKPOINT_ONCE_MS) {
        return checkpoint_take(call, space, label, ret_id, ret_json);
    }
    return rc;
}

/* ---- ids ---- */

/* An id is near the wanted one if they share this many leading characters. */
#define CHECKPOINT_NEAR 4

struct checkpoint_near {
    struct ng_str wanted;
    char best[UUID_SIZE];
    size_t same;
};

static int checkpoint_near_row(void *user, const struct ng_doc *row)
{
    struct checkpoint_near *near = user;
    struct ng_str id = row->key.id;
    size_t same = 0;
    while (same < id.len && same < near->wanted.len &&
           id.data[same] == near->wanted.data[same]) {
        same++;
    }
    if (same >= CHECKPOINT_NEAR && same > near->same && id.len < sizeof(near->best)) {
        memcpy(near->best, id.data, id.len);
        near->best[id.len] = '\0';
        near->same = same;
    }
    return 0;
}

int checkpoint_not_found(struct ng_call *call, struct ng_str space, struct ng_str id)
{
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    struct checkpoint_near near = {.wanted = id};
    (void)functions->checkpoint_list(handle, call, space, checkpoint_near_row, &near);
    int rc = ng_fail(call, NG_ENOTFOUND, "there is no checkpoint '%.*s' in the space '%.*s'",
                     (int)id.len, id.data == NULL ? "" : id.data, (int)space.len, space.data);
    if (near.same == 0) {
        call->host->hint(call, "checkpoint_list lists the checkpoints.");
    } else {
        call->host->hint(call, "The nearest is %s; checkpoint_list lists the checkpoints.",
                         near.best);
    }
    return rc;
}

int checkpoint_get(struct ng_call *call, struct ng_str space, struct ng_str id,
                   struct ng_str *ret_json)
{
    void *handle = NULL;
    const struct ng_journal *functions = memory_journal(call, &handle);
    int rc = functions->checkpoint_get(handle, call, space, id, ret_json);
    if (rc != NG_ENOTFOUND) {
        return rc;
    }
    return checkpoint_not_found(call, space, id);
}

/* ---- reading ---- */

int checkpoint_order(const struct checkpoint_entry *one, const struct checkpoint_entry *other)
{
    if (one->collection != other->collection) {
        return (one->collection > other->collection) - (one->collection < other->collection);
    }
    return str_compare(one->id, other->id);
}

static int checkpoint_sort(const void *one, const void *other)
{
    return checkpoint_order(one, other);
}

int checkpoint_read(struct ng_call *call, struct ng_str json, struct checkpoint_view *ret)
{
    const struct ng_host *host = call->host;
    const struct ng_value *entries = NULL;
    struct checkpoint_view view = {.text = checkpoint_text_member(json, "journal")};
    struct ng_str list = checkpoint_text_member(json, "entries");
    bool ours = str_is(checkpoint_text_member(json, "format"), "\"" CHECKPOINT_FORMAT "\"") &&
                view.text.len > 0 && view.text.data[0] == '{' && list.len > 0;
    int rc = NG_EINVAL;
    if (ours) {
        rc = host->json_parse(call, list, &entries);
    }
    if (rc == NG_EINTERNAL) {
        return rc; /* out of memory: a retry may succeed */
    }
    if (rc != NG_OK || host->json_type(entries) != NG_TYPE_ARRAY) {
        return ng_fail(call, NG_EINVAL,
                       "this checkpoint is not of the form " CHECKPOINT_FORMAT
                       ": another program wrote it");
    }
    view.aside =
        str_is(checkpoint_text_member(view.text, "format"), "\"" CHECKPOINT_KEPT_FORMAT "\"");
    view.entries = ng_alloc(call, (host->json_count(entries) + 1) * sizeof(*view.entries));
    if (view.entries == NULL) {
        return entry_no_memory(call);
    }
    for (const struct ng_value *item = host->json_first(entries); item != NULL;
         item = host->json_next(item)) {
        struct checkpoint_entry *entry = &view.entries[view.count];
        entry->collection = entry_collection(memory_text(call, item, "collection"));
        entry->id = memory_text(call, item, "id");
        entry->version = memory_int(call, item, "version");
        view.count += entry->collection < ENTRY_COLLECTIONS && entry->version > 0;
    }
    qsort(view.entries, view.count, sizeof(*view.entries), checkpoint_sort);
    *ret = view;
    return NG_OK;
}

int checkpoint_read_journal(struct ng_call *call, struct checkpoint_view *view)
{
    if (view->aside) {
        return ng_fail(call, NG_ETOOLARGE,
                       "the journal of this checkpoint was saved separately because of its "
                       "size, and is too large to compare; checkpoint_restore can restore it");
    }
    int rc = call->host->json_parse(call, view->text, &view->journal);
    if (rc == NG_OK || rc == NG_EINTERNAL) {
        return rc;
    }
    return ng_fail(call, NG_ETOOLARGE,
                   "the journal of a checkpoint, %zu bytes, is too large to be compared",
                   view->text.len);
}
