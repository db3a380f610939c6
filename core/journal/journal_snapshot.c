/* SPDX-License-Identifier: MIT */
/* journal_snapshot.c - dumps and restores the journal of a space as one JSON text; checkpoints.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "journal_documents.h"
#include "journal_entry.h"

/* Largest dump of one space. */
#define JOURNAL_DUMP_MAX ((size_t)64 * 1024 * 1024)
/* Rows of one query. */
#define JOURNAL_PAGE 256
/* Rows of one query of a dump; large, because each query scans from the start. */
#define JOURNAL_DUMP_PAGE 4096

const struct journal_part journal_parts[JOURNAL_PARTS] = {
    {JOURNAL_IN_DAY, JOURNAL_DAYS, "days"},
    {JOURNAL_IN_REFERENCES, JOURNAL_REFERENCES, "references"},
    {JOURNAL_IN_MEMORY, JOURNAL_MEMORY, "memories"},
};

/* ---- dump ---- */

struct journal_dump {
    struct call *call;
    struct ng_writer *writer;
    uint64_t last_seq;
    uint32_t rows;
    int rc;
};

static int journal_dump_row(void *user, const struct ng_doc *doc)
{
    struct journal_dump *dump = user;
    struct ng_writer *writer = dump->writer;
    struct ng_entry entry;
    struct ng_str date = {NULL, 0};
    dump->rows++;
    dump->last_seq = doc->created_seq;
    dump->rc = journal_row(dump->call, doc, &entry, &date);
    if (dump->rc != NG_OK) {
        return 1;
    }
    json_object(writer);
    if (date.data != NULL) {
        json_name(writer, "date");
        json_string(writer, date);
    }
    journal_entry_write(writer, &entry);
    json_name(writer, "content");
    json_string(writer, entry.content);
    json_end(writer);
    return writer->buf->rc != NG_OK;
}

struct ng_query journal_part_query(size_t part, struct ng_str space, uint64_t generation,
                                   struct ng_term terms[2])
{
    terms[0] = (struct ng_term){
        .field = ng_str_of("gen"), .op = NG_TERM_EQ, .number = (double)generation};
    terms[1] = (struct ng_term){.field = ng_str_of("created_seq"), .op = NG_TERM_GT};
    return (struct ng_query){
        .size = sizeof(struct ng_query),
        .collection = ng_str_of(journal_parts[part].collection),
        .space = space,
        .terms = terms,
        .term_count = 2,
        .sort = terms[1].field,
        .with_text = true,
    };
}

static int journal_dump_part(struct journal_documents *journal, struct call *call, size_t part,
                             struct ng_str space, uint64_t generation, uint64_t *moment,
                             struct ng_writer *writer)
{
    struct journal_dump dump = {.writer = writer};
    struct ng_term terms[2];
    struct ng_query query = journal_part_query(part, space, generation, terms);
    query.limit = JOURNAL_DUMP_PAGE;
    query.moment = moment;
    int rc = NG_OK;
    do {
        dump.rows = 0;
        dump.call = journal_step(call);
        if (dump.call == NULL) {
            return NG_EINTERNAL;
        }
        terms[1].number = (double)dump.last_seq;
        if (call_has(call, CALL_CANCELLED)) {
            rc = call_fail(dump.call, NG_ECANCELLED, "the call was cancelled");
        } else {
            rc = store_query(journal->store, dump.call, &query, journal_dump_row, &dump, NULL);
        }
        if (rc == NG_OK) {
            rc = dump.rc;
        }
        rc = journal_step_end(call, dump.call, rc);
    } while (rc == NG_OK && writer->buf->rc == NG_OK && dump.rows == JOURNAL_DUMP_PAGE);
    return rc;
}

static int journal_dump_all(struct journal_documents *journal, struct call *call,
                            struct ng_str space, struct ng_writer *writer)
{
    struct journal_generation generation;
    struct ng_str summary = {NULL, 0};
    uint64_t moment = 0; /* of all parts: another gateway may deliver meanwhile */
    int rc = journal_generation_get(journal, call, space, &generation);
    json_object(writer);
    json_name(writer, "format");
    json_cstring(writer, JOURNAL_FORMAT);
    for (size_t i = 0; rc == NG_OK && i < JOURNAL_PARTS; i++) {
        json_name(writer, journal_parts[i].member);
        json_array(writer);
        rc = journal_dump_part(journal, call, i, space, generation.number, &moment, writer);
        json_end(writer);
    }
    if (rc == NG_OK) {
        rc = journal_documents_vtable()->summary(journal, &call->pub, space, &summary);
    }
    json_name(writer, "summary");
    if (summary.data == NULL) {
        json_null(writer);
    } else {
        json_string(writer, summary);
    }
    json_end(writer);
    return rc;
}

int journal_snapshot_dump(void *user, struct ng_call *pub, struct ng_str space,
                          struct ng_str *ret_json)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct buf buf;
    struct ng_writer writer;
    buf_init(&buf, JOURNAL_DUMP_MAX);
    json_writer_init(&writer, &buf);
    int rc = journal_dump_all(journal, call, space, &writer);
    if (rc == NG_OK && buf.rc != NG_OK) {
        rc = call_fail(call, buf.rc,
                       "the journal of the space is larger than the maximum of a checkpoint, "
                       "%zu bytes; set journal.keep to remove old entries",
                       JOURNAL_DUMP_MAX);
    }
    if (rc != NG_OK) {
        buf_done(&buf);
        return rc;
    }
    if (journal_take_buf(&call->arena, &buf, ret_json) != NG_OK) {
        return call_fail(call, NG_EINTERNAL, "out of memory for the journal");
    }
    return NG_OK;
}

/* ---- restore ---- */

struct journal_removal {
    struct call *call;
    struct ng_change changes[JOURNAL_BATCH + 1]; /* the last one holds the pointer */
    size_t count;
    int rc;
};

int journal_remove_doc(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    (void)call;
    (void)user;
    if (present->revision > 0 && !present->deleted) {
        store_draft_delete(next);
    }
    return NG_OK;
}

static int journal_remove_row(void *user, const struct ng_doc *doc)
{
    struct journal_removal *removal = user;
    struct arena *arena = &removal->call->arena;
    struct ng_change change = {
        .size = sizeof(change),
        .key = {arena_copy(arena, doc->key.collection), arena_copy(arena, doc->key.space),
                arena_copy(arena, doc->key.id)},
        .fn = journal_remove_doc,
    };
    if (change.key.id.data == NULL || change.key.space.data == NULL) {
        removal->rc = NG_EINTERNAL;
        return 1;
    }
    removal->changes[removal->count++] = change;
    return removal->count == JOURNAL_BATCH;
}

int journal_remove_some(struct journal_documents *journal, struct call *call,
                        struct ng_query *query, const struct ng_change *hold, bool *ret_more)
{
    struct call *step = journal_step(call);
    if (step == NULL) {
        return NG_EINTERNAL;
    }
    struct journal_removal *removal = arena_zalloc(&step->arena, sizeof(*removal));
    if (removal == NULL) {
        return journal_step_end(call, step, call_no_memory(step));
    }
    removal->call = step;
    query->limit = JOURNAL_BATCH;
    int rc = store_query(journal->store, step, query, journal_remove_row, removal, NULL);
    if (rc == NG_OK && removal->rc != NG_OK) {
        rc = call_fail(step, removal->rc, "out of memory");
    }
    if (rc == NG_OK && removal->count > 0) {
        size_t count = removal->count;
        if (hold != NULL) {
            removal->changes[count++] = *hold;
        }
        rc = store_write_wait(journal->store, step, removal->changes, count);
    }
    *ret_more = removal->count == JOURNAL_BATCH;
    return journal_step_end(call, step, rc);
}

/* Removes the documents of generations strictly between two numbers from one collection. */
static int journal_sweep_part(struct journal_documents *journal, struct call *call,
                              const char *collection, const struct ng_change *hold,
                              const struct ng_term terms[2])
{
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(collection),
        .space = hold->key.space,
        .terms = terms,
        .term_count = 2,
    };
    bool more = true;
    int rc = NG_OK;
    while (rc == NG_OK && more) {
        rc = journal_remove_some(journal, call, &query, hold, &more);
    }
    return rc;
}

static int journal_sweep_between(struct journal_documents *journal, struct call *call,
                                 const struct ng_change *hold, double above, double below)
{
    struct ng_term terms[2] = {
        {.field = ng_str_of("gen"), .op = NG_TERM_GT, .number = above},
        {.field = ng_str_of("gen"), .op = NG_TERM_LT, .number = below},
    };
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < JOURNAL_PARTS; i++) {
        rc = journal_sweep_part(journal, call, journal_parts[i].collection, hold, terms);
    }
    return rc != NG_OK ? rc : journal_sweep_part(journal, call, JOURNAL_SUMMARIES, hold, terms);
}

static int journal_sort_numbers(const void *one, const void *other)
{
    double a = *(const double *)one;
    double b = *(const double *)other;
    return (a > b) - (a < b);
}

int journal_sweep(struct journal_documents *journal, struct call *call, struct ng_str space,
                  const struct journal_generation *generation)
{
    const struct ng_value *item = NULL;
    size_t count = 0;
    if (generation->kept != NULL) {
        item = generation->kept->first;
        count = generation->kept->count;
    }
    double *stay = arena_alloc(&call->arena, (count + 3) * sizeof(*stay));
    struct ng_change hold;
    if (stay == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    /* If the pointer has moved since it was read, nothing is removed. */
    journal_generation_hold(space, generation, &hold);
    count = 0;
    stay[count++] = -1;
    stay[count++] = (double)generation->number;
    for (; item != NULL; item = item->next) {
        int64_t number = 0;
        if (json_integer(item, &number) == NG_OK) {
            stay[count++] = (double)number;
        }
    }
    /* A restore writes into the generation after the last. */
    stay[count++] = (double)generation->last + 2;
    qsort(stay, count, sizeof(*stay), journal_sort_numbers);
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i + 1 < count; i++) {
        if (stay[i + 1] - stay[i] > 1) {
            rc = journal_sweep_between(journal, call, &hold, stay[i], stay[i + 1]);
        }
    }
    return rc;
}

int journal_damaged(struct call *call, const char *what)
{
    return call_fail(call, NG_EINVAL, "this is not a dump of a journal: %s", what);
}

int journal_parse(struct call *call, struct arena *tree, struct ng_str json,
                  const struct ng_value **ret)
{
    struct json_error error;
    int rc = json_parse(tree, json, JSON_DEPTH_DEFAULT, ret, &error);
    if (rc == NG_EJSON) {
        return call_fail(call, NG_EINVAL, "this is not a dump of a journal: it is not JSON: %s",
                         error.message);
    }
    if (rc != NG_OK && tree->oom) {
        return call_no_memory(call);
    }
    if (rc != NG_OK) {
        return call_fail(call, NG_ETOOLARGE, "the journal is too large to restore: %zu bytes",
                         json.len);
    }
    return NG_OK;
}

/* Writes one commit of items from *at on, and advances *at. */
static int journal_restore_batch(struct journal_documents *journal, struct call *step,
                                 size_t part, const struct ng_key *place, uint64_t generation,
                                 const struct ng_value **at)
{
    struct journal_batch *batch = arena_alloc(&step->arena, sizeof(*batch));
    bool in_day = journal_parts[part].place == JOURNAL_IN_DAY;
    size_t count = 0;
    int rc = NG_OK;
    if (batch == NULL) {
        return call_fail(step, NG_EINTERNAL, "out of memory");
    }
    for (; rc == NG_OK && *at != NULL && count < JOURNAL_BATCH; *at = (*at)->next) {
        struct ng_entry *entry = &batch->entries[count];
        const struct ng_value *date = json_get(*at, "date");
        const struct ng_value *content = json_get(*at, "content");
        struct ng_str day = {NULL, 0};
        if (journal_entry_read(&step->arena, *at, place->space, entry) != NG_OK ||
            (in_day && (date == NULL || !rfc3339_is_day(date->text)))) {
            return journal_damaged(step, "one of its entries has an invalid form");
        }
        if (content != NULL) {
            entry->content = content->text;
        }
        if (in_day) {
            day = date->text;
        }
        rc = journal_put(step, journal_parts[part].place, generation, day, entry,
                         &batch->changes[count++]);
    }
    return rc != NG_OK ? rc : store_write_wait(journal->store, step, batch->changes, count);
}

/* Writes one part of the dump into a new generation. */
static int journal_restore_part(struct journal_documents *journal, struct call *call,
                                size_t part, struct ng_str space, uint64_t generation,
                                const struct ng_value *array)
{
    const struct ng_key place = {.space = space};
    const struct ng_value *at = array->first;
    int rc = NG_OK;
    while (rc == NG_OK && at != NULL) {
        struct call *step = journal_step(call);
        if (step == NULL) {
            return NG_EINTERNAL;
        }
        rc = journal_restore_batch(journal, step, part, &place, generation, &at);
        rc = journal_step_end(call, step, rc);
    }
    return rc;
}

int journal_restore_all(struct journal_documents *journal, struct call *call,
                        struct ng_str space, uint64_t generation, const struct ng_value *dump)
{
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < JOURNAL_PARTS; i++) {
        const struct ng_value *array = json_get(dump, journal_parts[i].member);
        if (array == NULL || array->type != NG_TYPE_ARRAY) {
            return journal_damaged(call, "a part of it is missing");
        }
        rc = journal_restore_part(journal, call, i, space, generation, array);
    }
    const struct ng_value *summary = json_get(dump, "summary");
    if (rc == NG_OK && summary != NULL && summary->type == NG_TYPE_STRING) {
        rc = journal_summary_store(journal, call, generation, space, summary->text);
    }
    return rc;
}

static int journal_restore_tree(struct journal_documents *journal, struct call *call,
                                struct ng_str space, const struct ng_value *dump)
{
    const struct ng_value *format = json_get(dump, "format");
    struct journal_generation generation;
    if (format == NULL || !str_is(format->text, JOURNAL_FORMAT)) {
        return journal_damaged(call, "its format is not " JOURNAL_FORMAT);
    }
    int rc = journal_generation_get(journal, call, space, &generation);
    /* Leftovers of an interrupted restore would mix with this one. */
    if (rc == NG_OK) {
        rc = journal_sweep(journal, call, space, &generation);
    }
    struct journal_move move = {.number = generation.last + 1};
    if (rc == NG_OK) {
        rc = journal_restore_all(journal, call, space, move.number, dump);
    }
    if (rc == NG_OK) {
        rc = journal_generation_move(journal, call, space, &generation, &move);
    }
    /* The next restore sweeps the former generation: a failure of that must not fail this call.
     */
    return rc;
}

int journal_snapshot_restore(void *user, struct ng_call *pub, struct ng_str space,
                             struct ng_str json)
{
    struct call *call = call_of(pub);
    const struct ng_value *dump = NULL;
    struct arena tree;
    arena_init(&tree, JOURNAL_TREE_MAX);
    int rc = journal_parse(call, &tree, json, &dump);
    if (rc == NG_OK) {
        rc = journal_restore_tree(user, call, space, dump);
    }
    arena_done(&tree);
    return rc;
}

/* ---- checkpoints ---- */

struct journal_checkpoint {
    struct ng_str head; /* members that are neither arrays nor objects */
    struct ng_str json;
};

static int journal_write_checkpoint(struct ng_call *call, const struct ng_doc *present,
                                    struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    const struct journal_checkpoint *checkpoint = user;
    int rc = store_draft_json(next, checkpoint->head);
    return rc != NG_OK ? rc : store_draft_text(next, &checkpoint->json, 1);
}

static int journal_checkpoint_short(struct call *call, const struct ng_value *body,
                                    struct ng_str *ret)
{
    struct buf buf;
    struct ng_writer writer;
    buf_init(&buf, JOURNAL_DUMP_MAX);
    json_writer_init(&writer, &buf);
    json_object(&writer);
    for (const struct ng_value *member = body->first; member != NULL; member = member->next) {
        if (member->type != NG_TYPE_ARRAY && member->type != NG_TYPE_OBJECT) {
            json_name_str(&writer, member->key);
            json_copy(&writer, member);
        }
    }
    json_end(&writer);
    int rc = journal_take_buf(&call->arena, &buf, ret);
    return rc == NG_OK ? NG_OK : call_fail(call, rc, "out of memory for a checkpoint");
}

/* The members of a checkpoint that a list shows. */
static int journal_checkpoint_head(struct call *call, struct ng_str json, struct ng_str *ret)
{
    const struct ng_value *body = NULL;
    struct arena tree;
    arena_init(&tree, JOURNAL_TREE_MAX);
    int rc = json_parse(&tree, json, JSON_DEPTH_DEFAULT, &body, NULL);
    call->arena.oom |= tree.oom;
    if (rc != NG_OK && rc != NG_EJSON) {
        rc = call_fail(call, NG_ETOOLARGE, "a checkpoint of %zu bytes is too large to keep",
                       json.len);
    } else if (rc != NG_OK || body->type != NG_TYPE_OBJECT) {
        rc = call_fail(call, NG_EINVAL, "a checkpoint must be a JSON object");
    } else {
        rc = journal_checkpoint_short(call, body, ret);
    }
    arena_done(&tree);
    return rc;
}

int journal_checkpoint_put(void *user, struct ng_call *pub, struct ng_str space,
                           struct ng_str id, struct ng_str json)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct journal_checkpoint checkpoint = {.json = json};
    int rc = journal_checkpoint_head(call, json, &checkpoint.head);
    struct ng_change change = {
        .size = sizeof(change),
        .key = journal_key(JOURNAL_CHECKPOINTS, space, id),
        .fn = journal_write_checkpoint,
        .user = &checkpoint,
    };
    return rc != NG_OK ? rc : store_write_wait(journal->store, call, &change, 1);
}

int journal_checkpoint_get(void *user, struct ng_call *pub, struct ng_str space,
                           struct ng_str id, struct ng_str *ret_json)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct ng_key key = journal_key(JOURNAL_CHECKPOINTS, space, id);
    const struct ng_doc *doc = NULL;
    int rc = store_get(journal->store, call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (doc->revision == 0 || doc->deleted) {
        return call_fail(call, NG_ENOTFOUND, "there is no checkpoint '%.*s'", (int)id.len,
                         id.data);
    }
    *ret_json = doc->text;
    return NG_OK;
}

struct journal_list {
    ng_row_fn *row;
    void *user;
    uint32_t rows;
    bool stopped;
};

static int journal_checkpoint_row(void *user, const struct ng_doc *doc)
{
    struct journal_list *list = user;
    list->rows++;
    list->stopped = list->row(list->user, doc) != 0;
    return list->stopped;
}

int journal_checkpoint_list(void *user, struct ng_call *pub, struct ng_str space,
                            ng_row_fn *row, void *row_user)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct journal_list list = {.row = row, .user = row_user};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(JOURNAL_CHECKPOINTS),
        .space = space,
        .descending = true,
        .limit = JOURNAL_PAGE,
    };
    int rc = NG_OK;
    do {
        list.rows = 0;
        rc = store_query(journal->store, call, &query, journal_checkpoint_row, &list, NULL);
        query.offset += list.rows;
    } while (rc == NG_OK && !list.stopped && list.rows == JOURNAL_PAGE);
    return rc;
}
