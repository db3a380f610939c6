/* SPDX-License-Identifier: MIT */
/* journal_documents.c - the journal in documents: timeline, recall, summary. */
#include "journal_documents.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "journal_entry.h"

#define JOURNAL_SUMMARY "summary"
/* Added to the rank of an exact hit: more than a score can be, so these come first. */
#define JOURNAL_EXACT_RANK 1.0
/* Score of a reference; memories have their own. */
#define JOURNAL_REFERENCE_SCORE 0.8
/* Least candidates of a recall by words, and of a recall with a least score. */
#define JOURNAL_CANDIDATES 100
#define JOURNAL_CANDIDATES_SCORED 4000

int journal_documents_open(struct call *call, struct store *store,
                           struct journal_documents **ret)
{
    struct journal_documents *journal = alloc_zeroed(1, sizeof(*journal));
    if (journal == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    journal->store = store;
    int rc = journal_declare(store, call);
    if (rc != NG_OK) {
        free(journal);
        return rc;
    }
    *ret = journal;
    return NG_OK;
}

void journal_documents_close(struct journal_documents *journal)
{
    free(journal);
}

static void journal_close_documents(void *journal)
{
    journal_documents_close(journal);
}

/* ---- reading ---- */

static uint32_t journal_limit(uint32_t limit)
{
    if (limit == 0) {
        return JOURNAL_ROWS_DEFAULT;
    }
    return u32_min(limit, JOURNAL_ROWS_MAX);
}

static struct ng_term journal_equal_number(const char *field, uint64_t number)
{
    struct ng_term term = {
        .field = ng_str_of(field),
        .op = NG_TERM_EQ,
        .number = (double)number,
    };
    return term;
}

static struct ng_term journal_equal(const char *field, struct ng_str value)
{
    struct ng_term term = {.field = ng_str_of(field), .op = NG_TERM_EQ, .value = value};
    return term;
}

struct journal_rows {
    struct call *call;
    ng_entry_row_fn *row;
    void *user;
    struct ng_entry *entries; /* recall: the best so far */
    double *ranks;
    size_t count, max;
    double min_score;
    bool by_time;  /* newest first, else by rank */
    bool memories; /* no references */
    int rc;
};

static int journal_timeline_row(void *user, const struct ng_doc *doc)
{
    struct journal_rows *rows = user;
    struct ng_entry entry;
    rows->rc = journal_row(rows->call, doc, &entry, NULL);
    if (rows->rc != NG_OK) {
        return 1;
    }
    return rows->row(rows->user, &entry);
}

static int journal_timeline(void *user, struct ng_call *pub, const struct ng_timeline *timeline,
                            ng_entry_row_fn *row, void *row_user)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct journal_generation generation;
    char today[RFC3339_DAY_SIZE];
    struct ng_str date = timeline->date;
    if (date.len == 0) {
        journal_zone_day(pub->host->now_ms(), today);
        date = ng_str_of(today);
    } else if (!rfc3339_is_day(date)) {
        return call_fail(call, NG_EINVAL, "`date` is '%.*s', it must be a day as YYYY-MM-DD",
                         (int)date.len, date.data);
    }
    int rc = journal_generation_get(journal, call, timeline->space, &generation);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_term terms[3] = {journal_equal_number("gen", generation.number),
                               journal_equal("date", date),
                               journal_equal("agent", timeline->agent)};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(JOURNAL_DAYS),
        .space = timeline->space,
        .terms = terms,
        .term_count = timeline->agent.len > 0 ? 3 : 2,
        .descending = true,
        .limit = journal_limit(timeline->limit),
        .offset = timeline->offset,
        .with_text = true,
    };
    if (store_is_shared(journal->store)) {
        query.sort = ng_str_of("seq"); /* entries are written in any order */
    }
    struct journal_rows rows = {.call = call, .row = row, .user = row_user};
    rc = store_query(journal->store, call, &query, journal_timeline_row, &rows, NULL);
    return rc != NG_OK ? rc : rows.rc;
}

static double journal_score(const struct ng_entry *entry)
{
    return entry->kind == NG_ENTRY_MEMORY ? entry->score : JOURNAL_REFERENCE_SCORE;
}

/* Keeps the best `max` rows of both collections; of equal ranks the newest first. */
static int journal_recall_row(void *user, const struct ng_doc *doc)
{
    struct journal_rows *rows = user;
    struct ng_entry entry;
    bool full = rows->count == rows->max;
    if (full && !rows->by_time &&
        doc->score + JOURNAL_EXACT_RANK < rows->ranks[rows->max - 1]) {
        return 1; /* texts come best first, and a score only lowers the rank */
    }
    rows->rc = journal_row(rows->call, doc, &entry, NULL);
    if (rows->rc != NG_OK) {
        return 1;
    }
    if (journal_score(&entry) < rows->min_score) {
        return 0;
    }
    double rank = doc->score * journal_score(&entry);
    if (doc->exact > 0) {
        rank += JOURNAL_EXACT_RANK;
    }
    if (rows->by_time) {
        rank = (double)entry.time_ms;
    }
    size_t at = rows->count;
    while (at > 0 &&
           (rows->ranks[at - 1] < rank ||
            (!(rows->ranks[at - 1] > rank) && rows->entries[at - 1].time_ms < entry.time_ms))) {
        at--;
    }
    if (at == rows->max) {
        return rows->by_time;
    }
    size_t kept = size_min(rows->count, rows->max - 1);
    memmove(rows->entries + at + 1, rows->entries + at, (kept - at) * sizeof(*rows->entries));
    memmove(rows->ranks + at + 1, rows->ranks + at, (kept - at) * sizeof(*rows->ranks));
    rows->entries[at] = entry;
    rows->ranks[at] = rank;
    rows->count = kept + 1;
    return 0;
}

/* The conditions of a recall besides its text. */
static size_t journal_recall_terms(const struct ng_recall *recall, uint64_t generation,
                                   struct ng_term terms[4])
{
    size_t count = 0;
    terms[count++] = journal_equal_number("gen", generation);
    if (recall->source.len > 0) {
        terms[count++] = journal_equal("source", recall->source);
    }
    if (recall->since_ms != 0) {
        terms[count] = journal_equal_number("time", 0);
        terms[count].op = NG_TERM_GE;
        terms[count++].number = (double)recall->since_ms;
    }
    if (recall->tag_count > 0) {
        struct ng_term any = {
            .field = ng_str_of("tags"),
            .op = NG_TERM_IN,
            .values = recall->tags,
            .value_count = recall->tag_count,
        };
        terms[count++] = any;
    }
    return count;
}

/* Limit of the query. */
static uint32_t journal_candidates(const struct journal_rows *rows)
{
    size_t least = JOURNAL_CANDIDATES;
    if (rows->min_score > 0) {
        least = JOURNAL_CANDIDATES_SCORED;
    } else if (rows->by_time) {
        least = 0;
    }
    return (uint32_t)size_max(rows->max, least);
}

/* Runs the query on both collections. *ret_engine: of a text search. */
static int journal_recall_rows(struct journal_documents *journal, struct ng_query *query,
                               struct ng_str text, struct journal_rows *rows,
                               const char **ret_engine)
{
    static const char *const collections[] = {JOURNAL_MEMORY, JOURNAL_REFERENCES};
    struct ng_search search = {.size = sizeof(search), .query = query, .text = text};
    int rc = NG_OK;
    size_t count = rows->memories ? 1 : NG_COUNT(collections);
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        query->collection = ng_str_of(collections[i]);
        if (!rows->by_time) {
            rc = store_search(journal->store, rows->call, &search, journal_recall_row, rows,
                              NULL, ret_engine);
        } else {
            query->sort = ng_str_of("time");
            rc = store_query(journal->store, rows->call, query, journal_recall_row, rows, NULL);
        }
        if (rc == NG_OK) {
            rc = rows->rc;
        }
    }
    return rc;
}

static int journal_recall(void *user, struct ng_call *pub, const struct ng_recall *recall,
                          ng_entry_row_fn *row, void *row_user, const char **ret_engine)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct journal_generation generation;
    struct journal_rows rows = {
        .call = call,
        .max = journal_limit(recall->limit),
        .min_score = recall->min_score,
        .by_time = recall->text.len == 0,
        .memories = recall->memories,
    };
    if (recall->tag_count > NG_IN_MAX) {
        return call_fail(call, NG_EINVAL, "%zu tags are too many to look for, %d are allowed",
                         recall->tag_count, NG_IN_MAX);
    }
    int rc = journal_generation_get(journal, call, recall->space, &generation);
    if (rc != NG_OK) {
        return rc;
    }
    rows.entries = arena_alloc(&call->arena, (rows.max + 1) * sizeof(*rows.entries));
    rows.ranks = arena_alloc(&call->arena, (rows.max + 1) * sizeof(*rows.ranks));
    if (rows.entries == NULL || rows.ranks == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory for %zu memories", rows.max);
    }
    struct ng_term terms[4];
    struct ng_query query = {
        .size = sizeof(query),
        .space = recall->space,
        .terms = terms,
        .term_count = journal_recall_terms(recall, generation.number, terms),
        .descending = true,
        .limit = journal_candidates(&rows),
        .with_text = true,
    };
    const char *engine = "scan";
    rc = journal_recall_rows(journal, &query, recall->text, &rows, &engine);
    for (size_t i = 0; rc == NG_OK && i < rows.count; i++) {
        if (row(row_user, &rows.entries[i]) != 0) {
            break;
        }
    }
    if (rc == NG_OK && ret_engine != NULL) {
        *ret_engine = engine;
    }
    return rc;
}

/* ---- the long-term summary ---- */

int journal_summary_of(struct journal_documents *journal, struct call *call,
                       struct ng_str space, uint64_t generation, struct ng_str *ret_text)
{
    struct ng_str id = journal_id(call, generation, ng_str_of(JOURNAL_SUMMARY));
    struct ng_key key = journal_key(JOURNAL_SUMMARIES, space, id);
    const struct ng_doc *doc = NULL;
    if (id.data == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = store_get(journal->store, call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    *ret_text = str_make(NULL, 0);
    if (doc->revision > 0 && !doc->deleted) {
        *ret_text = doc->text.data == NULL ? ng_str_of("") : doc->text;
    }
    return NG_OK;
}

static int journal_summary(void *user, struct ng_call *pub, struct ng_str space,
                           struct ng_str *ret_text)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct journal_generation generation;
    int rc = journal_generation_get(journal, call, space, &generation);
    return rc != NG_OK ? rc
                       : journal_summary_of(journal, call, space, generation.number, ret_text);
}

struct journal_summary_put {
    struct ng_str json, text;
};

static int journal_write_summary(struct ng_call *call, const struct ng_doc *present,
                                 struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    const struct journal_summary_put *put = user;
    int rc = store_draft_json(next, put->json);
    return rc != NG_OK ? rc : store_draft_text(next, &put->text, 1);
}

int journal_summary_change(struct call *call, uint64_t generation, struct ng_str space,
                           struct ng_str text, struct ng_change *ret)
{
    struct journal_summary_put *put = arena_alloc(&call->arena, sizeof(*put));
    struct ng_str id = journal_id(call, generation, ng_str_of(JOURNAL_SUMMARY));
    struct ng_str json =
        arena_printf(&call->arena, "{\"gen\":%llu}", (unsigned long long)generation);
    if (put == NULL || id.data == NULL || json.data == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    put->json = json;
    put->text = text;
    struct ng_change change = {
        .size = sizeof(change),
        .key = journal_key(JOURNAL_SUMMARIES, space, id),
        .fn = journal_write_summary,
        .user = put,
    };
    *ret = change;
    return NG_OK;
}

int journal_summary_store(struct journal_documents *journal, struct call *call,
                          uint64_t generation, struct ng_str space, struct ng_str text)
{
    struct ng_change change;
    int rc = journal_summary_change(call, generation, space, text, &change);
    if (rc != NG_OK) {
        return rc;
    }
    return store_write_wait(journal->store, call, &change, 1);
}

static int journal_set_summary(void *user, struct ng_call *pub, struct ng_str space,
                               struct ng_str text)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct journal_generation generation;
    struct ng_change changes[2];
    int tries = 0;
    int rc;
    do {
        rc = journal_generation_get(journal, call, space, &generation);
        if (rc == NG_OK) {
            journal_generation_hold(space, &generation, &changes[0]);
            rc = journal_summary_change(call, generation.number, space, text, &changes[1]);
        }
        if (rc == NG_OK) {
            rc = store_write_wait(journal->store, call, changes, 2);
        }
    } while (journal_try_again(call, rc, &tries));
    return rc;
}

/* ---- one memory ---- */

static int journal_memory(void *user, struct ng_call *pub, struct ng_str space,
                          struct ng_str event_id, ng_entry_row_fn *row, void *row_user)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct journal_generation generation;
    struct ng_entry entry;
    const struct ng_doc *doc = NULL;
    int rc = journal_generation_get(journal, call, space, &generation);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_key key =
        journal_key(JOURNAL_MEMORY, space, journal_id(call, generation.number, event_id));
    if (key.id.data == NULL) {
        return call_no_memory(call);
    }
    rc = store_get(journal->store, call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (doc->revision == 0 || doc->deleted) {
        return call_fail(call, NG_ENOTFOUND, "the journal has no such memory");
    }
    rc = journal_row(call, doc, &entry, NULL);
    if (rc == NG_OK) {
        (void)row(row_user, &entry);
    }
    return rc;
}

static int journal_forget(void *user, struct ng_call *pub, struct ng_str mark, uint64_t seq,
                          const struct ng_entry *entry)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    struct journal_generation generation;
    int tries = 0;
    int rc;
    (void)mark;
    (void)seq;
    do {
        struct ng_change changes[3];
        rc = journal_generation_get(journal, call, entry->space, &generation);
        if (rc != NG_OK) {
            return rc;
        }
        struct ng_str id = journal_id(call, generation.number, entry->id);
        if (id.data == NULL) {
            return call_no_memory(call);
        }
        journal_generation_hold(entry->space, &generation, &changes[0]);
        changes[1] = (struct ng_change){
            .size = sizeof(changes[1]),
            .key = journal_key(JOURNAL_DAYS, entry->space, id),
            .fn = journal_remove_doc,
        };
        changes[2] = changes[1];
        changes[2].key.collection = ng_str_of(JOURNAL_MEMORY);
        rc = store_write_wait(journal->store, call, changes, NG_COUNT(changes));
    } while (journal_try_again(call, rc, &tries));
    return rc;
}

static int journal_health(void *user, struct ng_call *pub)
{
    struct journal_documents *journal = user;
    return store_health(journal->store, call_of(pub));
}

static const struct ng_journal journal_functions = {
    .name = "documents",
    .version = NOTEGATE_VERSION,
    .close = journal_close_documents,
    .deliver = journal_documents_deliver,
    .timeline = journal_timeline,
    .recall = journal_recall,
    .summary = journal_summary,
    .set_summary = journal_set_summary,
    .dump = journal_snapshot_dump,
    .restore = journal_snapshot_restore,
    .checkpoint_put = journal_checkpoint_put,
    .checkpoint_get = journal_checkpoint_get,
    .checkpoint_list = journal_checkpoint_list,
    .health = journal_health,
    .restore_aside = journal_documents_restore_aside,
    .checkpoint_delete = journal_documents_checkpoint_delete,
    .trim = journal_documents_trim,
    .memory = journal_memory,
    .forget = journal_forget,
};

const struct ng_journal *journal_documents_vtable(void)
{
    return &journal_functions;
}
