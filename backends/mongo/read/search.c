/* SPDX-License-Identifier: MIT */
/*
 * search.c - full-text search. The server narrows the documents down, with its text index if
 * there is one and a whole word is searched for, else with a case-insensitive filter. The
 * result is checked and ranked here, so words and ranks mean the same with either.
 *
 * A search of single words needs no texts for that (rank.c): only those of its page are read.
 * One with a phrase of several words reads the texts of all documents it finds.
 */

#include "core/base/array.h"
#include "core/base/utf8.h"
#include "rank.h"

/* Documents that one search may find. */
#define HITS_MAX 200000
/* Bytes of documents kept while a search by texts finds them, so that showing them needs no
 * further read. */
#define KEPT_BYTES_MAX ((size_t)4 * 1024 * 1024)
/* Documents that are read together, and bytes of their texts. With more of them without terms,
 * a search ranks all by their texts. */
#define GROUP_DOCS_MAX 100
#define GROUP_TEXT_BYTES_MAX ((size_t)4 * 1024 * 1024)
/* Bytes of those in memory, whatever else they have. */
#define GROUP_BYTES_MAX ((size_t)16 * 1024 * 1024)

struct hit {
    bson_t *doc; /* as it was found, or its name and space alone */
    bool whole;
    bool unranked; /* it has no terms of its revision */
    struct rank rank;
    uint64_t order; /* of hits with the same score */
    size_t bytes;   /* of its text */
};

struct find {
    struct mongo *db;
    struct ng_call *call;
    struct db_collection *collection;
    const struct ng_search *search;
    struct wanted wanted;
    struct ranking ranking;
    bool by_terms;
    struct hit *hits;
    size_t count, cap, kept_bytes, unranked;
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

/* ---- the documents found ---- */

static void set_order(const struct find *find, struct hit *hit, const bson_t *doc)
{
    hit->order = member_u64(doc, CREATED_SEQ);
    if (find->search->query->descending) {
        hit->order = UINT64_MAX - hit->order;
    }
}

static int add_hit(struct find *find, struct hit *hit, const bson_t *doc)
{
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
    hit->whole = !find->by_terms && find->search->query->limit > 0 &&
                 find->kept_bytes + doc->len <= KEPT_BYTES_MAX;
    if (hit->whole) {
        hit->doc = bson_copy(doc);
        find->kept_bytes += doc->len;
    } else {
        hit->doc = name_filter(doc, false);
    }
    find->hits[find->count++] = *hit;
    return 0;
}

static int take_hit(void *user, const bson_t *doc)
{
    struct find *find = user;
    struct hit hit = {.bytes = member_u64(doc, "notegate.text_size")};
    if (!find->by_terms) {
        hit.rank = rank_by_text(&find->ranking, doc);
    } else if (!rank_by_terms(&find->ranking, doc, &hit.rank)) {
        hit.unranked = true;
        find->unranked++;
    }
    if (find->call->host->cancelled(find->call)) {
        find->rc = ng_fail(find->call, NG_ECANCELLED, "the search was cancelled");
        return 1;
    }
    if (find->unranked > GROUP_DOCS_MAX) {
        return 1;
    }
    if (!hit.unranked && !(hit.rank.score > 0)) {
        return 0;
    }
    set_order(find, &hit, doc);
    return add_hit(find, &hit, doc);
}

static void hits_clear(struct find *find)
{
    for (size_t i = 0; i < find->count; i++) {
        bson_destroy(find->hits[i].doc);
    }
    find->count = 0;
    find->kept_bytes = 0;
    find->unranked = 0;
}

/* ---- reading whole documents ---- */

/* Hits that are read together. */
struct group {
    struct find *find;
    struct hit *hits[GROUP_DOCS_MAX];
    size_t count, text_bytes;
    size_t bytes; /* read */
    bool is_cut;  /* not all were read */
};

/* false: it is full. */
static bool group_add(struct group *group, struct hit *hit)
{
    if (group->count == GROUP_DOCS_MAX ||
        (group->count > 0 && group->text_bytes + hit->bytes > GROUP_TEXT_BYTES_MAX)) {
        return false;
    }
    group->hits[group->count++] = hit;
    group->text_bytes += hit->bytes;
    return true;
}

static struct hit *group_find(const struct group *group, const bson_t *doc)
{
    struct ng_str name = member_str(doc, "_id");
    for (size_t i = 0; i < group->count; i++) {
        if (str_equal(member_str(group->hits[i]->doc, "_id"), name)) {
            return group->hits[i];
        }
    }
    return NULL;
}

static int take_whole(void *user, const bson_t *doc)
{
    struct group *group = user;
    struct hit *hit = group_find(group, doc);
    if (hit != NULL && !hit->whole) {
        bson_destroy(hit->doc);
        hit->doc = bson_copy(doc);
        hit->whole = true;
        group->bytes += doc->len;
        group->is_cut = group->bytes >= GROUP_BYTES_MAX;
    }
    return group->is_cut;
}

static int rank_whole(void *user, const bson_t *doc)
{
    const struct group *group = user;
    struct hit *hit = group_find(group, doc);
    if (hit != NULL) {
        hit->rank = rank_by_text(&group->find->ranking, doc);
        set_order(group->find, hit, doc);
    }
    return 0;
}

/* Those that are deleted by now are left out. */
static void group_read(struct group *group, bool with_text, op_each_fn *each,
                       struct fault *fault)
{
    struct find *find = group->find;
    bson_t names = BSON_INITIALIZER;
    bson_t spaces = BSON_INITIALIZER;
    for (size_t i = 0; i < group->count; i++) {
        bson_item(&names, (uint32_t)i, member_str(group->hits[i]->doc, "_id"));
        bson_item(&spaces, (uint32_t)i, member_str(group->hits[i]->doc, "space"));
    }
    bson_t *opts = bson_new();
    add_row_fields(opts, find->collection, with_text);
    add_time_limit(opts, find->db, find->call);
    (void)op_find(find->db, NULL, find->collection->name,
                  bson_of("_id:{$in:A}, space:{$in:A}, notegate.deleted:F", &names, &spaces),
                  opts, each, group, fault);
    bson_destroy(&names);
    bson_destroy(&spaces);
}

/* Documents that an older version has changed: until they are changed again, or the gateway is
 * started again. */
static void rank_others(struct find *find, struct fault *fault)
{
    size_t kept = 0;
    for (size_t i = 0; i < find->count && fault->rc == NG_OK;) {
        struct group group = {.find = find};
        while (i < find->count &&
               (!find->hits[i].unranked || group_add(&group, &find->hits[i]))) {
            i++;
        }
        if (group.count > 0) {
            group_read(&group, true, rank_whole, fault);
        }
    }
    for (size_t i = 0; i < find->count; i++) {
        if (find->hits[i].rank.score > 0) {
            find->hits[kept++] = find->hits[i];
        } else {
            bson_destroy(find->hits[i].doc);
        }
    }
    find->count = kept;
}

/* ---- finding ---- */

static int by_rank(const void *left, const void *right)
{
    const struct hit *a = left;
    const struct hit *b = right;
    int order = (a->rank.score < b->rank.score) - (a->rank.score > b->rank.score);
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
        bson_t *opts = bson_new();
        add_narrow(&filter, &find->wanted, text);
        if (find->by_terms) {
            bson_t *fields = bson_of("space:1, %:1, notegate.text_size:1", CREATED_SEQ);
            ranking_fields(&find->ranking, fields);
            BSON_APPEND_DOCUMENT(opts, "projection", fields);
            bson_destroy(fields);
        } else {
            add_row_fields(opts, find->collection, true);
        }
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

/* The server refuses to count prefixes, or there are too many documents without terms. */
static bool needs_texts(const struct find *find, const struct fault *fault)
{
    bool refused = fault->answered && fault->rc == NG_EUNAVAILABLE && find->ranking.has_stars;
    return find->by_terms && (refused || find->unranked > GROUP_DOCS_MAX);
}

static int find_hits(struct find *find)
{
    struct fault fault = {0};
    const struct ng_query *query = find->search->query;
    bool text = by_index(find);
    find->by_terms = find->ranking.by_terms;
    find_once(find, text, &fault);
    if (text && fault.code == SERVER_INDEX_NOT_FOUND) {
        text_index_lost(find->collection);
        text = false;
        find_once(find, text, &fault);
    }
    if (find->rc == NG_OK && needs_texts(find, &fault)) {
        hits_clear(find);
        find->by_terms = false;
        find_once(find, text, &fault);
    }
    if (find->rc == NG_OK && fault.rc == NG_OK && find->unranked > 0) {
        rank_others(find, &fault);
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
    const struct ng_query *query = find->search->query;
    struct ng_doc doc;
    int rc = body_row(find->collection, hit->doc, query->with_text, &find->json, &doc);
    if (rc == NG_OK && find->search->snippet_chars > 0) {
        rc = make_snippet(find, hit->doc, &find->snippet);
        doc.snippet = bytes_str(&find->snippet);
    }
    if (rc != NG_OK) {
        return ng_fail(find->call, rc, "the search failed: a document found cannot be read");
    }
    doc.score = hit->rank.score;
    doc.exact = hit->rank.exact;
    *ret_stop = row(user, &doc) != 0;
    return NG_OK;
}

/* The rows that are shown. */
struct page {
    uint64_t end;     /* the hit behind the last of them */
    uint64_t read_to; /* those before it were read, but if the group was cut */
    bool is_cut;
};

/* Reads the hit at `at`, and others of the page with it. */
static int page_read(struct find *find, struct page *page, uint64_t at)
{
    struct fault fault = {0};
    struct group group = {.find = find};
    bool alone = at < page->read_to;
    uint64_t end = alone ? at + 1 : page->end;
    uint64_t i = at;
    while (i < end && (find->hits[i].whole || group_add(&group, &find->hits[i]))) {
        i++;
    }
    group_read(&group, find->search->query->with_text || find->search->snippet_chars > 0,
               take_whole, &fault);
    if (!alone) {
        page->read_to = i;
        page->is_cut = group.is_cut;
    }
    return fault_end(find->call, fault.rc, &fault, "the search");
}

static int report_page(struct find *find, ng_row_fn *row, void *user)
{
    const struct ng_query *query = find->search->query;
    struct page page = {.end = find->count};
    bool stop = false;
    int rc = NG_OK;
    if (query->offset < page.end && page.end - query->offset > query->limit) {
        page.end = query->offset + query->limit;
    }
    for (uint64_t i = query->offset; i < page.end && rc == NG_OK && !stop; i++) {
        struct hit *hit = &find->hits[i];
        if (!hit->whole && (i >= page.read_to || page.is_cut)) {
            rc = page_read(find, &page, i);
        }
        if (rc == NG_OK && hit->whole) { /* else it is deleted by now */
            rc = report_hit(find, hit, row, user, &stop);
        }
        bson_destroy(hit->doc);
        hit->doc = NULL;
    }
    return rc;
}

int search_run(void *self, struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
               void *user, uint64_t *ret_total)
{
    struct mongo *db = self;
    const struct ng_query *query = search->query;
    struct find find = {.db = db, .call = call, .search = search};
    find.collection = collection_find(db, query->collection);
    if (find.collection == NULL || !is_searchable(find.collection)) {
        return ng_fail(call, NG_EINVAL, "this collection has no searchable fields");
    }
    int rc = terms_check(call, find.collection, query);
    if (rc == NG_OK) {
        rc = wanted_parse(call, search->text, &find.wanted);
    }
    if (rc == NG_OK && !ranking_begin(&find.ranking, find.collection, &find.wanted)) {
        rc = ng_fail(call, NG_EINTERNAL, "no memory for the search");
    }
    if (rc == NG_OK && find.wanted.count > 0) {
        rc = find_hits(&find);
    }
    if (rc == NG_OK) {
        rc = report_page(&find, row, user);
    }
    if (rc == NG_OK && query->want_total && ret_total != NULL) {
        *ret_total = find.count;
    }
    hits_clear(&find);
    free(find.hits);
    bytes_done(&find.json);
    bytes_done(&find.snippet);
    ranking_end(&find.ranking);
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
