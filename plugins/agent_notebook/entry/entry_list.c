/* SPDX-License-Identifier: MIT */
/*
 * entry_list.c - notebook_search and notebook_list: summaries from one collection or all three,
 * as one list, by rank or newest first.
 *
 * The first pass collects the candidates of each collection (id, time, rank), the second one
 * writes those on the page. For short pages the first pass keeps the JSON of the candidates;
 * for far pages of all collections that would take too much memory, so the second pass reads
 * the entries again.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "entry.h"
#include "entry_tools.h"

#define LIST_LIMIT_DEFAULT 10
/* Limit of candidates of each collection, if all collections are merged. */
#define LIST_MERGED_MAX 10000
/* For up to this many candidates of each collection the first pass keeps the JSON. */
#define LIST_KEPT_MAX 100
/* Filters of one query. */
#define LIST_TERMS_MAX 4
/* Versions that are looked at for the last one of a deleted entry. */
#define LIST_VERSIONS_MAX 8
/* Limits of an excerpt, in characters and bytes. */
#define LIST_EXCERPT_CHARS 180
#define LIST_EXCERPT_BYTES 200
/* Bytes of an answer behind its results. */
#define LIST_END_MAX 200
/* Texts of a hit that does not fit alone are cut to this share of the answer. */
#define LIST_CUT_SHARE 32
/* Scores are shown with six digits. */
#define LIST_SCORE_UNIT 1e6

/* A candidate for the page. Call memory. */
struct list_hit {
    struct ng_str id;
    unsigned collection;
    int64_t updated_ms;
    uint64_t seq;
    double score;
    struct ng_str json;          /* from the first pass, if kept */
    struct ng_str excerpt;       /* of a search */
    const struct ng_value *body; /* after it was read; of a deleted entry: of `version` */
    uint64_t revision, version;  /* version: the last one that a deleted entry has */
    struct ng_str author;        /* of a deletion */
};

struct list {
    struct ng_call *call;
    bool by_rank;
    bool deleted; /* deleted entries, that can be restored */
    struct ng_str text;
    struct ng_term terms[LIST_TERMS_MAX];
    size_t term_count;
    uint64_t offset, limit; /* of the page */
    uint64_t moment;        /* of all queries */
    unsigned collection;    /* of the present query */
    struct list_hit *hits;
    size_t count, cap;
    bool keeps;      /* the JSON of each hit */
    size_t text_max; /* longer texts are cut */
    size_t room;     /* of the answer */
    uint64_t total;
    bool at_least; /* there are more hits than that */
    const char *engine;
    int rc;
};

/* ---- filters ---- */

static void list_term_eq(struct list *list, const char *field, struct ng_str value)
{
    list->terms[list->term_count++] = (struct ng_term){
        .field = ng_str_of(field),
        .op = NG_TERM_EQ,
        .value = value,
    };
}

static int list_term_tags(struct list *list)
{
    struct ng_term *term = &list->terms[list->term_count];
    *term = (struct ng_term){.field = ng_str_of("metadata.tags"), .op = NG_TERM_IN};
    int rc = entry_strings(list->call, "tags", &term->values, &term->value_count);
    list->term_count += term->value_count > 0;
    return rc;
}

/* A deletion keeps no members, and they are what these ask for. */
static int list_filters_deleted(struct ng_call *call)
{
    static const char *const names[] = {"status", "created_by", "tags"};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        if (ng_has_arg(call, names[i])) {
            return entry_invalid(call, call->host->format(call, "/%s", names[i]).data,
                                 ng_str_of("nothing where `deleted` is true"),
                                 ng_str_of("both"));
        }
    }
    return NG_OK;
}

static int list_filters(struct list *list)
{
    struct ng_call *call = list->call;
    int rc = list->deleted ? list_filters_deleted(call) : NG_OK;
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str since = ng_arg_text(call, "updated_since");
    int64_t ms = 0;
    if (ng_has_arg(call, "status")) {
        list_term_eq(list, "metadata.status", ng_arg_text(call, "status"));
    }
    if (ng_has_arg(call, "created_by")) {
        list_term_eq(list, "metadata.created_by",
                     entry_agent_of(call, ng_arg_text(call, "created_by")));
    }
    if (since.data != NULL) {
        if (!entry_time_read(since, &ms)) {
            return entry_invalid(call, "/updated_since",
                                 ng_str_of("a date or time as 2026-02-16 or "
                                           "2026-02-16T10:30:00Z"),
                                 entry_quoted(since));
        }
        list->terms[list->term_count++] = (struct ng_term){
            .field = ng_str_of("updated"), .op = NG_TERM_GE, .number = (double)ms};
    }
    return list_term_tags(list);
}

/* ---- which entries ---- */

static int list_row(void *user, const struct ng_doc *row)
{
    struct list *list = user;
    if (list->count == list->cap) {
        return 1; /* impossible: the queries have limits */
    }
    struct list_hit *hit = &list->hits[list->count++];
    bool lives = row->body != NULL; /* as long as the call */
    *hit = (struct list_hit){
        .id = lives ? row->key.id : entry_join(list->call, &row->key.id, 1),
        .body = row->body,
        .collection = list->collection,
        .updated_ms = row->updated_ms,
        .seq = row->seq,
        .score = row->score,
        .revision = row->revision,
    };
    if (list->deleted) {
        hit->body = NULL;
        if (entry_is_purged(row)) {
            hit->revision = 0; /* no version of it is shown */
        }
        hit->author = entry_join(list->call, &row->author, 1);
    } else if (list->keeps && !lives) {
        hit->json = entry_join(list->call, &row->json, 1);
    }
    if (row->snippet.len > 0) {
        struct ng_str excerpt = utf8_cut(row->snippet, LIST_EXCERPT_BYTES);
        hit->excerpt = entry_join(list->call, &excerpt, 1);
    }
    return 0;
}

/* The candidates of one collection: as many as may be on or before the page. */
static int list_query(struct list *list, unsigned collection, uint64_t offset, uint64_t limit)
{
    const struct ng_host *host = list->call->host;
    const char *engine = "filter";
    uint64_t total = 0;
    bool at_least = false;
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(entry_collections[collection]),
        .space = list->call->caller->space,
        .terms = list->terms,
        .term_count = list->term_count,
        .offset = offset,
        .limit = (uint32_t)limit,
        .want_total = true,
        .moment = &list->moment,
        .only_deleted = list->deleted,
    };
    struct ng_search search = {.size = sizeof(search),
                               .query = &query,
                               .text = list->text,
                               .snippet_chars = LIST_EXCERPT_CHARS,
                               .at_least = &at_least};
    list->collection = collection;
    list->keeps = limit <= LIST_KEPT_MAX;
    if (!list->by_rank) {
        query.sort = ng_str_of("updated");
        query.descending = true;
    }
    int rc = list->by_rank ? host->search(list->call, &search, list_row, list, &total, &engine)
                           : host->query(list->call, &query, list_row, list, &total);
    list->total += total;
    list->at_least = list->at_least || at_least;
    /* Of different engines, report the one that is not a text search. */
    if (list->engine == NULL || strcmp(engine, "filter") == 0 || strcmp(engine, "scan") == 0) {
        list->engine = engine;
    }
    if (rc != NG_OK) {
        return rc;
    }
    return list->rc;
}

static int list_order_newest(const void *left, const void *right)
{
    const struct list_hit *a = left;
    const struct list_hit *b = right;
    if (a->updated_ms != b->updated_ms) {
        return (b->updated_ms > a->updated_ms) - (b->updated_ms < a->updated_ms);
    }
    return (b->seq > a->seq) - (b->seq < a->seq);
}

static int list_order_rank(const void *left, const void *right)
{
    const struct list_hit *a = left;
    const struct list_hit *b = right;
    int order = (b->score > a->score) - (b->score < a->score);
    if (order != 0) {
        return order;
    }
    return list_order_newest(left, right);
}

static int list_room(struct list *list, uint64_t hits)
{
    list->cap = (size_t)hits;
    list->hits = ng_alloc(list->call, (list->cap + 1) * sizeof(*list->hits));
    if (list->hits != NULL) {
        return NG_OK;
    }
    return entry_no_memory(list->call);
}

/* Fills `hits` with those of the page. */
static int list_find(struct list *list)
{
    struct ng_str name = ng_arg_text(list->call, "collection");
    if (name.data != NULL) {
        int rc = list_room(list, list->limit);
        if (rc != NG_OK) {
            return rc;
        }
        return list_query(list, entry_collection(name), list->offset, list->limit);
    }
    uint64_t each = list->offset + list->limit;
    if (list->offset > LIST_MERGED_MAX) {
        return entry_invalid(
            list->call, "/offset",
            list->call->host->format(
                list->call, "at most %d, or a `collection` to look in alone", LIST_MERGED_MAX),
            list->call->host->format(list->call, "%llu", (unsigned long long)list->offset));
    }
    int rc = list_room(list, each * ENTRY_COLLECTIONS);
    for (unsigned i = 0; i < ENTRY_COLLECTIONS && rc == NG_OK; i++) {
        rc = list_query(list, i, 0, each);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (list->count > 1) {
        qsort(list->hits, list->count, sizeof(*list->hits),
              list->by_rank ? list_order_rank : list_order_newest);
    }
    size_t skip = (size_t)u64_min(list->offset, list->count);
    list->hits += skip;
    list->count -= skip;
    list->count = (size_t)u64_min(list->count, list->limit);
    return NG_OK;
}

/* ---- members in answers ---- */

static int list_body_row(void *user, const struct ng_doc *row)
{
    struct list *list = user;
    for (size_t i = 0; i < list->count; i++) {
        struct list_hit *hit = &list->hits[i];
        if (hit->collection != list->collection || !str_equal(hit->id, row->key.id)) {
            continue;
        }
        list->rc = entry_row_body(list->call, row, &hit->body);
        break;
    }
    return list->rc != NG_OK;
}

/* Parses the JSON that the first pass kept. */
static int list_parse(struct list *list)
{
    int rc = NG_OK;
    for (size_t i = 0; i < list->count && rc == NG_OK; i++) {
        struct list_hit *hit = &list->hits[i];
        if (hit->json.data != NULL) {
            rc = list->call->host->json_parse(list->call, hit->json, &hit->body);
        }
    }
    return rc;
}

/* Reads the entries that were not kept. */
static int list_bodies(struct list *list, unsigned collection)
{
    struct ng_str ids[NG_IN_MAX];
    size_t count = 0;
    for (size_t i = 0; i < list->count && count < NG_COUNT(ids); i++) {
        if (list->hits[i].collection == collection && list->hits[i].body == NULL) {
            ids[count++] = list->hits[i].id;
        }
    }
    if (count == 0) {
        return NG_OK;
    }
    struct ng_term term = {
        .field = ng_str_of("id"), .op = NG_TERM_IN, .values = ids, .value_count = count};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(entry_collections[collection]),
        .space = list->call->caller->space,
        .terms = &term,
        .term_count = 1,
        .limit = (uint32_t)count,
        .moment = &list->moment,
    };
    list->collection = collection;
    int rc = list->call->host->query(list->call, &query, list_body_row, list, NULL);
    if (rc != NG_OK) {
        return rc;
    }
    return list->rc;
}

/* The newest version of an entry that is kept and not a deletion. */
struct list_version {
    struct list *list;
    struct list_hit *hit;
};

static int list_version_row(void *user, const struct ng_doc *row)
{
    struct list_version *version = user;
    if (row->deleted) {
        return 0;
    }
    version->hit->version = row->revision;
    version->list->rc = entry_row_body(version->list->call, row, &version->hit->body);
    return 1;
}

/* Reads what deleted entries were. One without a version that is kept gets no body. */
static int list_versions(struct list *list)
{
    const struct ng_host *host = list->call->host;
    int rc = NG_OK;
    for (size_t i = 0; i < list->count && rc == NG_OK && list->deleted; i++) {
        struct list_hit *hit = &list->hits[i];
        struct list_version version = {list, hit};
        struct ng_key key = {ng_str_of(entry_collections[hit->collection]),
                             list->call->caller->space, hit->id};
        struct ng_range range = {.size = sizeof(range),
                                 .from = 1,
                                 .to = hit->revision - 1,
                                 .limit = LIST_VERSIONS_MAX,
                                 .with_body = true};
        if (hit->revision > 1) {
            rc = host->history(list->call, &key, &range, list_version_row, &version);
        }
        if (rc == NG_OK) {
            rc = list->rc;
        }
    }
    return rc;
}

static void list_copy_member(const struct list *list, struct ng_writer *writer,
                             const struct ng_value *object, const char *name)
{
    const struct ng_host *host = list->call->host;
    const struct ng_value *value = host->json_get(object, name);
    if (host->json_type(value) == NG_TYPE_STRING) {
        entry_put_cut(list->call, writer, name, host->json_text(value), list->text_max);
    } else if (value != NULL) {
        host->json_name(writer, name);
        host->json_copy(writer, value);
    }
}

/* Those that fit into text_max bytes. */
static void list_put_tags(const struct list *list, struct ng_writer *writer,
                          const struct ng_value *tags)
{
    const struct ng_host *host = list->call->host;
    size_t left = list->text_max;
    if (tags == NULL) {
        return;
    }
    host->json_name(writer, "tags");
    host->json_array(writer);
    for (const struct ng_value *tag = host->json_first(tags); tag != NULL;
         tag = host->json_next(tag)) {
        struct ng_str text = host->json_text(tag);
        if (text.len >= left) {
            break;
        }
        left -= text.len + 1;
        host->json_string(writer, text);
    }
    host->json_end(writer);
}

/* Writes a summary: never content, code or sections. */
static void list_put_hit(const struct list *list, struct ng_writer *writer,
                         const struct list_hit *hit)
{
    static const char *const shown[] = {"updated_at", "status", "created_by", "word_count",
                                        "version"};
    struct ng_call *call = list->call;
    const struct ng_host *host = call->host;
    const struct ng_value *metadata = host->json_get(hit->body, "metadata");
    host->json_object(writer);
    entry_put(call, writer, "_id", hit->id);
    entry_put(call, writer, "notebook_id", hit->id);
    entry_put(call, writer, "_collection", ng_str_of(entry_collections[hit->collection]));
    entry_put(call, writer, "collection", ng_str_of(entry_collections[hit->collection]));
    list_copy_member(list, writer, hit->body, "title");
    list_copy_member(list, writer, hit->body, "summary");
    if (hit->excerpt.len > 0) {
        entry_put_cut(call, writer, "excerpt", hit->excerpt, list->text_max);
    }
    host->json_name(writer, "metadata");
    host->json_object(writer);
    list_put_tags(list, writer, host->json_get(metadata, "tags"));
    for (size_t i = 0; i < NG_COUNT(shown); i++) {
        list_copy_member(list, writer, metadata, shown[i]);
    }
    host->json_end(writer);
    if (list->deleted) {
        entry_put_int(call, writer, "version", hit->version);
        entry_put(call, writer, "deleted_at", entry_time(call, hit->updated_ms));
        entry_put(call, writer, "deleted_by", entry_agent_of(call, hit->author));
    }
    if (list->by_rank) {
        host->json_name(writer, "score");
        double rounded = (double)(int64_t)(hit->score * LIST_SCORE_UNIT + 0.5);
        host->json_number(writer, rounded / LIST_SCORE_UNIT);
    }
    host->json_end(writer);
}

/* Writes the first `count` hits; returns how many of them fit. */
static size_t list_write(struct list *list, size_t count)
{
    struct ng_call *call = list->call;
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    size_t fits = 0;
    host->json_object(writer);
    host->json_name(writer, "results");
    host->json_array(writer);
    for (size_t i = 0; i < count && fits == i; i++) {
        if (list->hits[i].body != NULL) { /* otherwise deleted meanwhile, or not kept */
            list_put_hit(list, writer, &list->hits[i]);
        }
        fits += host->answer_room(call) > LIST_END_MAX;
    }
    host->json_end(writer);
    entry_put_int(call, writer, "total", list->total);
    if (list->at_least) {
        host->json_name(writer, "at_least");
        host->json_bool(writer, true);
    }
    entry_put_int(call, writer, "offset", list->offset);
    uint64_t next = list->offset + (count < list->count ? count : list->limit);
    entry_put_more(call, writer, next, list->total);
    entry_put(call, writer, "engine", ng_str_of(list->engine));
    host->json_end(writer);
    return fits;
}

static int list_reply(struct list *list)
{
    size_t fits = list_write(list, list->count);
    if (fits < list->count) {
        if (fits == 0) {
            list->text_max = list->room / LIST_CUT_SHARE;
        }
        (void)list_write(list, size_max(fits, 1));
    }
    return NG_OK;
}

static int list_run(struct ng_call *call, struct ng_str text)
{
    bool blank = true;
    for (size_t i = 0; i < text.len && blank; i++) {
        blank = memchr(" \t\r\n", text.data[i], 4) != NULL;
    }
    struct list list = {
        .call = call,
        .by_rank = !blank,
        .deleted = call->host->json_type(ng_arg(call, "deleted")) == NG_TYPE_TRUE,
        .text = text,
        .offset = (uint64_t)ng_arg_int(call, "offset", 0),
        .limit = (uint64_t)ng_arg_int(call, "limit", LIST_LIMIT_DEFAULT),
        .text_max = SIZE_MAX,
        .room = call->host->answer_room(call),
    };
    int rc = list_filters(&list);
    if (rc == NG_OK) {
        rc = list_find(&list);
    }
    if (rc == NG_OK) {
        rc = list_parse(&list);
    }
    for (unsigned i = 0; i < ENTRY_COLLECTIONS && rc == NG_OK && !list.deleted; i++) {
        rc = list_bodies(&list, i);
    }
    if (rc == NG_OK) {
        rc = list_versions(&list);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return list_reply(&list);
}

int entry_search_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return list_run(call, ng_arg_text(call, "query"));
}

int entry_list_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_str none = {NULL, 0};
    (void)self;
    (void)args;
    return list_run(call, none);
}
