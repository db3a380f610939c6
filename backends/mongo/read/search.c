/* SPDX-License-Identifier: MIT */
/* search.c - full-text search. The server narrows the documents down - with its text index if
 * there is one and a whole word is searched for, else with a case-insensitive filter - and the
 * result is checked here. So words, phrases and ranks mean the same with either. */
#include <math.h>
#include <stdio.h>

#include "../../shared/words.h"
#include "core/base/array.h"
#include "core/base/utf8.h"
#include "read.h"

/* Documents that one search may find. */
#define HITS_MAX 200000
/* Bytes of found documents kept in memory, so that showing them needs no further read. */
#define KEPT_BYTES_MAX ((size_t)4 * 1024 * 1024)
/* How fast further occurrences lose weight, and the length in words of an average text. */
#define RANK_SATURATION 1.2
#define RANK_USUAL_WORDS 120.0

struct hit {
    bson_t *doc; /* as it was found, or its name and space alone */
    bool whole;
    double score;
    size_t exact;   /* phrases that match as they are */
    uint64_t order; /* of hits with the same score */
};

struct find {
    struct mongo *db;
    struct ng_call *call;
    struct db_collection *collection;
    const struct ng_search *search;
    struct wanted wanted;
    struct hit *hits;
    size_t count, cap, kept_bytes;
    struct bytes json, snippet; /* of the present row */
    int rc;                     /* the call has failed */
};

/* ---- narrowing down on the server ---- */

static bool is_prefix(const struct phrase *phrase)
{
    return phrase->star && phrase->count == 1;
}

/* The word of the phrase that is rarest by its looks, and occurs as such wherever the phrase
 * does. Its stem, where that may match instead. */
static struct ng_str key_word(const struct phrase *phrase)
{
    struct ng_str ret = phrase->stem.len > 0 ? phrase->stem : phrase->words[0];
    for (size_t i = 1; i + phrase->star < phrase->count; i++) {
        if (phrase->words[i].len > ret.len) {
            ret = phrase->words[i];
        }
    }
    return ret;
}

/* Phrases of one search that the server filters by; with more, all documents are checked
 * here. Bytes of a word in a pattern: servers limit patterns. */
#define FILTER_PHRASES_MAX 32
#define FILTER_WORD_BYTES 64

/* Any of the words. A document without a list of them was stored by an older version. Words
 * have letters and digits only, nothing that a pattern would take otherwise. */
static void add_narrow(bson_t *filter, const struct wanted *wanted, bool text)
{
    struct bytes any = {0};
    for (size_t i = 0; i < wanted->count; i++) {
        struct ng_str word = key_word(&wanted->phrases[i]);
        struct ng_str part = word;
        if (!text) {
            part = utf8_cut(word, FILTER_WORD_BYTES);
            if (i > 0) {
                (void)bytes_add_c(&any, "|");
            }
            (void)bytes_add_c(&any, " ");
        }
        (void)bytes_add(&any, part.data, part.len);
        if (part.len == word.len && !is_prefix(&wanted->phrases[i])) {
            (void)bytes_add_c(&any, " ");
        }
    }
    if (text) {
        bson_add(filter, "$text:{$search:s}", bytes_str(&any));
    } else if (wanted->count <= FILTER_PHRASES_MAX) {
        bson_add(filter, "$or:[{notegate.words:N}, {notegate.words:{$regex:s}}]",
                 bytes_str(&any));
    }
    bytes_done(&any);
}

/* ---- checking the documents found ---- */

static double part_score(double weight, size_t words, uint32_t hits)
{
    double length = 0.25 + 0.75 * (double)words / RANK_USUAL_WORDS;
    return weight * (double)hits / ((double)hits + RANK_SATURATION * length);
}

/* The text of the document or, below field_count, the texts of a field: none if it is not
 * searched. Returns the weight. */
static double searched_part(const struct db_collection *collection, size_t i, const bson_t *doc,
                            struct texts *ret)
{
    ret->count = 0;
    if (i < collection->field_count) {
        texts_add(ret, doc, &collection->fields[i]);
        return collection->fields[i].weight;
    }
    if ((collection->flags & NG_COLLECTION_TEXT_SEARCH) != 0) {
        ret->list[ret->count++].text = member_str(doc, collection->text_member);
    }
    return 1.0;
}

/* 0 if none of the phrases occurs. */
static double doc_score(const struct find *find, const bson_t *doc, size_t *ret_exact)
{
    struct found total[PHRASES_MAX] = {0};
    double weight = 0;
    size_t found = 0;
    size_t exact = 0;
    const struct db_collection *collection = find->collection;
    for (size_t i = 0; i <= collection->field_count; i++) {
        struct found hits[PHRASES_MAX] = {0};
        size_t words = 0;
        struct texts part;
        double part_weight = searched_part(collection, i, doc, &part);
        for (size_t j = 0; j < part.count; j++) {
            words += wanted_count(&find->wanted, part.list[j].text, hits);
        }
        for (size_t j = 0; j < find->wanted.count; j++) {
            uint32_t both = hits[j].exact + hits[j].stems;
            total[j].exact += hits[j].exact;
            total[j].stems += hits[j].stems;
            if (both > 0) {
                weight += part_score(part_weight, words, both);
            }
        }
    }
    for (size_t j = 0; j < find->wanted.count; j++) {
        found += total[j].exact + total[j].stems > 0;
        exact += total[j].exact > 0;
    }
    *ret_exact = exact;
    return wanted_rank(find->wanted.count, found, exact, weight);
}

static int take_hit(void *user, const bson_t *doc)
{
    struct find *find = user;
    const struct ng_query *query = find->search->query;
    struct hit hit = {.order = member_u64(doc, "notegate.created_seq")};
    hit.score = doc_score(find, doc, &hit.exact);
    if (find->call->host->cancelled(find->call)) {
        find->rc = ng_fail(find->call, NG_ECANCELLED, "the search was cancelled");
        return 1;
    }
    if (!(hit.score > 0)) {
        return 0;
    }
    find->rc = array_reserve((void **)&find->hits, &find->cap, find->count + 1,
                             sizeof(*find->hits), HITS_MAX);
    if (find->rc == NG_ETOOLARGE) {
        (void)ng_fail(find->call, find->rc,
                      "the search finds more than %d documents: add words", HITS_MAX);
    } else if (find->rc != NG_OK) {
        (void)ng_fail(find->call, find->rc, "no memory for the search");
    }
    if (find->rc != NG_OK) {
        return 1;
    }
    if (query->descending) {
        hit.order = UINT64_MAX - hit.order;
    }
    hit.whole = query->limit > 0 && find->kept_bytes + doc->len <= KEPT_BYTES_MAX;
    if (hit.whole) {
        hit.doc = bson_copy(doc);
        find->kept_bytes += doc->len;
    } else {
        hit.doc = name_filter(doc, false);
    }
    find->hits[find->count++] = hit;
    return 0;
}

static int by_rank(const void *left, const void *right)
{
    const struct hit *a = left;
    const struct hit *b = right;
    int order = (a->score < b->score) - (a->score > b->score);
    if (order == 0) {
        order = (a->order > b->order) - (a->order < b->order);
    }
    return order;
}

/* The text index has whole words only. */
static bool by_index(const struct find *find)
{
    bool any_prefix = false;
    for (size_t i = 0; i < find->wanted.count; i++) {
        any_prefix = any_prefix || is_prefix(&find->wanted.phrases[i]);
    }
    return !any_prefix && atomic_load(&find->collection->text_index);
}

static void find_once(struct find *find, bool text, struct fault *fault)
{
    const struct ng_query *query = find->search->query;
    struct ng_query live = *query;
    bson_t filter;
    live.with_deleted = false;
    if (terms_filter(find->collection, &live, &filter)) {
        bson_t *opts = bson_of("projection:{outbox:0, notegate.words:0}");
        add_narrow(&filter, &find->wanted, text);
        if (query->sort.len > 0) {
            add_sort(opts, find->collection, query);
            bson_add(opts, "allowDiskUse:T");
        }
        add_time_limit(opts, find->db, find->call);
        (void)op_find(find->db, NULL, find->collection->name, bson_copy(&filter), opts,
                      take_hit, find, fault);
    }
    bson_destroy(&filter);
}

static int find_hits(struct find *find)
{
    struct fault fault = {0};
    const struct ng_query *query = find->search->query;
    bool text = by_index(find);
    find_once(find, text, &fault);
    if (text && fault.code == SERVER_INDEX_NOT_FOUND) {
        text_index_lost(find->collection);
        find_once(find, false, &fault);
    }
    if (fault.rc != NG_OK) {
        return fault_fail(find->call, &fault, "the search");
    }
    if (find->rc == NG_OK && find->count > 0 && query->sort.len == 0) {
        qsort(find->hits, find->count, sizeof(*find->hits), by_rank);
    }
    return find->rc;
}

/* ---- rows ---- */

static int make_snippet(const struct find *find, const bson_t *doc, struct bytes *ret)
{
    const struct db_collection *collection = find->collection;
    ret->len = 0;
    int rc = NG_OK;
    for (size_t i = collection->field_count + 1; i-- > 0 && ret->len == 0 && rc == NG_OK;) {
        struct texts part;
        (void)searched_part(collection, i, doc, &part);
        for (size_t j = 0; j < part.count && ret->len == 0 && rc == NG_OK; j++) {
            rc = excerpt_make(&find->wanted, part.list[j].text, find->search->snippet_chars,
                              ret);
        }
    }
    return rc;
}

static int report_hit(struct find *find, struct hit *hit, ng_row_fn *row, void *user,
                      bool *ret_stop)
{
    struct fault fault = {0};
    const struct ng_query *query = find->search->query;
    struct ng_doc doc;
    bson_t *found = hit->doc;
    int rc = NG_OK;
    if (!hit->whole) {
        rc = doc_load(find->db, find->collection, member_str(hit->doc, "space"),
                      member_str(hit->doc, "_id"), false, &found, &fault);
        bson_destroy(hit->doc);
    }
    hit->doc = NULL;
    if (rc == NG_ENOTFOUND) {
        return NG_OK; /* deleted since */
    }
    if (rc == NG_OK) {
        rc = body_row(find->collection, found, query->with_text, &find->json, &doc);
    }
    if (rc == NG_OK && find->search->snippet_chars > 0) {
        rc = make_snippet(find, found, &find->snippet);
        doc.snippet = bytes_str(&find->snippet);
    }
    if (rc == NG_OK && !doc.deleted) {
        doc.score = hit->score;
        doc.exact = hit->exact;
        *ret_stop = row(user, &doc) != 0;
    }
    bson_destroy(found);
    if (rc != NG_OK && fault.rc == NG_OK) {
        (void)fault_refuse(&fault, rc, "a document found cannot be read");
    }
    return fault_end(find->call, rc, &fault, "the search");
}

int search_run(void *self, struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
               void *user, uint64_t *ret_total)
{
    struct mongo *db = self;
    const struct ng_query *query = search->query;
    struct find find = {.db = db, .call = call, .search = search};
    bool stop = false;
    find.collection = collection_find(db, query->collection);
    if (find.collection == NULL || !is_searchable(find.collection)) {
        return ng_fail(call, NG_EINVAL, "this collection has no searchable fields");
    }
    int rc = terms_check(call, find.collection, query);
    if (rc == NG_OK) {
        rc = wanted_parse(call, search->text, &find.wanted);
    }
    if (rc == NG_OK && find.wanted.count > 0) {
        rc = find_hits(&find);
    }
    for (uint64_t i = query->offset;
         i < find.count && rc == NG_OK && !stop && i - query->offset < query->limit; i++) {
        rc = report_hit(&find, &find.hits[i], row, user, &stop);
    }
    if (rc == NG_OK && query->want_total && ret_total != NULL) {
        *ret_total = find.count;
    }
    for (size_t i = 0; i < find.count; i++) {
        bson_destroy(find.hits[i].doc);
    }
    free(find.hits);
    bytes_done(&find.json);
    bytes_done(&find.snippet);
    wanted_done(&find.wanted);
    return rc;
}

const char *search_engine(void *self, const struct ng_search *search)
{
    struct mongo *db = self;
    const struct db_collection *collection = collection_find(db, search->query->collection);
    bool prefix = memchr(search->text.data, '*', search->text.len) != NULL;
    bool text = collection != NULL && atomic_load(&collection->text_index) && !prefix;
    return text ? "text" : "filter";
}
