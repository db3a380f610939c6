/* SPDX-License-Identifier: MIT */
/* search.c - full-text search. The server narrows the documents down - with its text index if
 * there is one and a whole word is searched for, else with a case-insensitive filter - and the
 * result is checked here. So words, phrases and ranks mean the same with either. */
#include <math.h>

#include "../shared/words.h"
#include "core/base/array.h"
#include "core/base/utf8.h"
#include "db.h"

/* Documents that one search may find. */
#define HITS_MAX 200000
/* Bytes of found documents kept in memory, so that showing them needs no further read. */
#define KEPT_BYTES_MAX ((size_t)4 * 1024 * 1024)
/* How fast further occurrences lose weight, and the length in words of an average text. */
#define RANK_SATURATION 1.2
#define RANK_USUAL_WORDS 120.0

struct hit {
    struct bytes name;
    bson_t *doc; /* as it was found, or NULL */
    double score;
    uint64_t created_seq;
};

struct find {
    struct mongo *db;
    struct ng_call *call;
    const struct db_collection *collection;
    const struct ng_search *search;
    struct wanted wanted;
    struct hit *hits;
    size_t count, cap, kept_bytes;
    bool cancelled, failed, too_many;
};

static bool searches_text(const struct db_collection *collection)
{
    return (collection->flags & NG_COLLECTION_TEXT_SEARCH) != 0;
}

/* ---- narrowing down on the server ---- */

static bool has_plain_word(const struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        if (wanted->phrases[i].count > (wanted->phrases[i].star ? 1U : 0U)) {
            return true;
        }
    }
    return false;
}

/* Any of the words. The index contains unmodified words only. */
static void add_text(bson_t *filter, const struct wanted *wanted)
{
    struct bytes text = {0};
    int rc = NG_OK;
    for (size_t i = 0; i < wanted->count; i++) {
        const struct phrase *phrase = &wanted->phrases[i];
        for (size_t j = 0; j + phrase->star < phrase->count && rc == NG_OK; j++) {
            rc = bytes_add(&text, phrase->words[j].data, phrase->words[j].len);
            if (rc == NG_OK) {
                rc = bytes_add(&text, " ", 1);
            }
        }
    }
    nest_str(filter, "$text", "$search", bytes_str(&text));
    bytes_done(&text);
}

/* The accented forms of a letter that fold to it. */
static const char *letter_forms(char c)
{
    switch (c) {
    case 'a':
        return "[aàáâãäåāăąǎ]";
    case 'c':
        return "[cçćĉċč]";
    case 'd':
        return "[dď]";
    case 'e':
        return "[eèéêëēĕėęě]";
    case 'g':
        return "[gĝğġģ]";
    case 'h':
        return "[hĥ]";
    case 'i':
        return "[iìíîïĩīĭįİ]";
    case 'j':
        return "[jĵ]";
    case 'k':
        return "[kķK]";
    case 'l':
        return "[lĺļľ]";
    case 'n':
        return "[nñńņň]";
    case 'o':
        return "[oòóôõöōŏő]";
    case 'r':
        return "[rŕŗř]";
    case 's':
        return "[sśŝşšßſ]";
    case 't':
        return "[tţť]";
    case 'u':
        return "[uùúûüũūŭůűų]";
    case 'w':
        return "[wŵ]";
    case 'y':
        return "[yýÿŷ]";
    case 'z':
        return "[zźżž]";
    default:
        return NULL;
    }
}

/* A pattern that matches wherever the folded word may occur, and possibly elsewhere. */
static int word_pattern(struct ng_str word, struct bytes *ret)
{
    int rc = NG_OK;
    ret->len = 0;
    for (size_t i = 0; i < word.len && rc == NG_OK; i++) {
        unsigned char c = (unsigned char)word.data[i];
        const char *forms = letter_forms(word.data[i]);
        if (c >= 0x80) {
            if (i > 0 && (unsigned char)word.data[i - 1] >= 0x80) {
                rc = NG_OK;
            } else {
                rc = bytes_add_c(ret, ".*");
            }
        } else if (c == 's' && i + 1 < word.len && word.data[i + 1] == 's') {
            rc = bytes_add_c(ret, "(?:ß|ss)");
            i++;
        } else {
            if (forms != NULL) {
                rc = bytes_add_c(ret, forms);
            } else {
                rc = bytes_add(ret, &word.data[i], 1);
            }
        }
        if (rc == NG_OK && c < 0x80 && i + 1 < word.len) {
            rc = bytes_add_c(ret, "[\xCC\x80-\xCD\xAF]*"); /* combining accents */
        }
    }
    return rc;
}

static void add_either(bson_t *list, uint32_t at, const char *path, const char *pattern)
{
    bson_t one, regex;
    char digits[16];
    const char *key = NULL;
    (void)bson_uint32_to_string(at, &key, digits, sizeof(digits));
    BSON_APPEND_DOCUMENT_BEGIN(list, key, &one);
    BSON_APPEND_DOCUMENT_BEGIN(&one, path, &regex);
    BSON_APPEND_UTF8(&regex, "$regex", pattern);
    BSON_APPEND_UTF8(&regex, "$options", "is");
    (void)bson_append_document_end(&one, &regex);
    (void)bson_append_document_end(list, &one);
}

/* Phrases of one search that the server filters by; with more, all documents are checked
 * here. */
#define FILTER_PHRASES_MAX 32

static int add_any(bson_t *any, const struct find *find, struct ng_str word, uint32_t *at)
{
    struct bytes pattern = {0};
    int rc = word_pattern(word, &pattern);
    if (rc == NG_OK) {
        rc = bytes_add(&pattern, "", 1);
    }
    for (size_t i = 0; rc == NG_OK && i < find->collection->field_count; i++) {
        if (find->collection->fields[i].use == NG_FIELD_TEXT) {
            add_either(any, (*at)++, find->collection->fields[i].path, pattern.data);
        }
    }
    if (rc == NG_OK && searches_text(find->collection)) {
        add_either(any, (*at)++, find->collection->text_member, pattern.data);
    }
    bytes_done(&pattern);
    return rc;
}

/* All words with a stem begin with the stem without its last letter. */
static struct ng_str stem_begin(struct ng_str stem)
{
    return str_of(stem.data, stem.len > 2 ? stem.len - 1 : stem.len);
}

/* The longest word of a phrase, which occurs wherever the phrase does. */
static struct ng_str longest(const struct phrase *phrase)
{
    struct ng_str ret = phrase->words[0];
    for (size_t i = 1; i < phrase->count; i++) {
        struct ng_str word = phrase->words[i];
        if (word.len > ret.len) {
            ret = word;
        }
    }
    return ret;
}

static int add_filter(bson_t *filter, const struct find *find)
{
    bson_t any;
    uint32_t at = 0;
    int rc = NG_OK;
    if (find->wanted.count > FILTER_PHRASES_MAX) {
        return NG_OK;
    }
    BSON_APPEND_ARRAY_BEGIN(filter, "$or", &any);
    for (size_t i = 0; i < find->wanted.count && rc == NG_OK; i++) {
        const struct phrase *phrase = &find->wanted.phrases[i];
        struct ng_str stem = phrase->stem;
        rc = add_any(&any, find, stem.len > 0 ? stem_begin(stem) : longest(phrase), &at);
    }
    (void)bson_append_array_end(filter, &any);
    return rc;
}

/* ---- checking the documents found ---- */

static double part_score(double weight, size_t words, uint32_t hits)
{
    double length = 0.25 + 0.75 * (double)words / RANK_USUAL_WORDS;
    return weight * (double)hits / ((double)hits + RANK_SATURATION * length);
}

/* The text or, below field_count, a field of the document. false: it is not searched. */
static bool searched_part(const struct db_collection *collection, size_t i, const bson_t *doc,
                          struct ng_str *ret, double *ret_weight)
{
    if (i == collection->field_count) {
        *ret = member_str(doc, collection->text_member);
        *ret_weight = 1.0;
        return searches_text(collection);
    }
    *ret = member_str(doc, collection->fields[i].path);
    *ret_weight = collection->fields[i].weight;
    return collection->fields[i].use == NG_FIELD_TEXT;
}

/* 0 if none of the phrases occurs. */
static double doc_score(const struct find *find, const bson_t *doc)
{
    struct found total[PHRASES_MAX] = {0};
    double weight = 0;
    size_t found = 0;
    size_t exact = 0;
    const struct db_collection *collection = find->collection;
    for (size_t i = 0; i <= collection->field_count; i++) {
        struct found hits[PHRASES_MAX] = {0};
        size_t first = 0;
        struct ng_str part;
        double part_weight;
        if (!searched_part(collection, i, doc, &part, &part_weight)) {
            continue;
        }
        size_t words = wanted_count(&find->wanted, part, hits, &first);
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
    return wanted_rank(find->wanted.count, found, exact, weight);
}

static int take_hit(void *user, const bson_t *doc)
{
    struct find *find = user;
    find->cancelled = find->call->host->cancelled(find->call);
    if (find->cancelled) {
        return 1;
    }
    double score = doc_score(find, doc);
    if (!(score > 0)) {
        return 0;
    }
    if (find->count == HITS_MAX) {
        find->too_many = true;
        return 1;
    }
    find->failed = array_reserve((void **)&find->hits, &find->cap, find->count + 1,
                                 sizeof(*find->hits), HITS_MAX) != NG_OK;
    if (find->failed) {
        return 1;
    }
    struct hit hit = {.score = score, .created_seq = member_u64(doc, "notegate.created_seq")};
    find->failed = bytes_set(&hit.name, member_str(doc, "_id")) != NG_OK;
    /* A document locked by an intent is read again, as its present state is not in it. */
    if (find->search->query->limit > 0 && find->kept_bytes + doc->len <= KEPT_BYTES_MAX &&
        member_str(doc, "notegate.intent").data == NULL) {
        hit.doc = bson_copy(doc);
        find->kept_bytes += doc->len;
    }
    find->hits[find->count++] = hit;
    return find->failed;
}

static void find_opts(const struct find *find, bson_t *ret)
{
    bson_t part;
    const struct ng_query *query = find->search->query;
    bson_init(ret);
    if (query->sort.data != NULL && query->sort.len > 0) {
        const char *path = sort_path(find->collection, query->sort);
        BSON_APPEND_DOCUMENT_BEGIN(ret, "sort", &part);
        BSON_APPEND_INT32(&part, path, query->descending ? -1 : 1);
        if (strcmp(path, "notegate.created_seq") != 0) {
            BSON_APPEND_INT32(&part, "notegate.created_seq", query->descending ? -1 : 1);
        }
        (void)bson_append_document_end(ret, &part);
        BSON_APPEND_BOOL(ret, "allowDiskUse", true);
    }
    nest_i32(ret, "projection", "outbox", 0);
    add_time_limit(ret, find->db, find->call);
}

static int by_rank_newest(const void *left, const void *right)
{
    const struct hit *a = left;
    const struct hit *b = right;
    if (a->score > b->score || a->score < b->score) {
        if (a->score > b->score) {
            return -1;
        }
        return 1;
    }
    if (a->created_seq > b->created_seq) {
        return -1;
    }
    return a->created_seq < b->created_seq;
}

static int by_rank(const void *left, const void *right)
{
    const struct hit *a = left;
    const struct hit *b = right;
    if (a->score > b->score || a->score < b->score) {
        if (a->score > b->score) {
            return -1;
        }
        return 1;
    }
    if (a->created_seq < b->created_seq) {
        return -1;
    }
    return a->created_seq > b->created_seq;
}

static bool by_index(const struct find *find)
{
    return atomic_load(&find->collection->text_index) && has_plain_word(&find->wanted);
}

static int find_hits(struct find *find)
{
    struct fault fault;
    bson_t filter, opts;
    const struct ng_query *query = find->search->query;
    struct ng_query live = *query;
    live.with_deleted = false;
    int rc = NG_OK;
    if (!terms_filter(find->collection, &live, &filter)) {
        bson_destroy(&filter);
        return NG_OK;
    }
    if (by_index(find)) {
        add_text(&filter, &find->wanted);
    } else if (add_filter(&filter, find) != NG_OK) {
        rc = ng_fail(find->call, NG_EINTERNAL, "no memory for the search");
    }
    find_opts(find, &opts);
    if (rc == NG_OK &&
        !op_find(find->db, find->collection->name, &filter, &opts, take_hit, find, &fault)) {
        rc = fault_fail(find->call, &fault, "the search");
    }
    bson_destroy(&filter);
    bson_destroy(&opts);
    if (rc == NG_OK && find->cancelled) {
        rc = ng_fail(find->call, NG_ECANCELLED, "the search was cancelled");
    } else if (rc == NG_OK && find->failed) {
        rc = ng_fail(find->call, NG_EINTERNAL, "no memory for the search");
    } else if (rc == NG_OK && find->too_many) {
        rc = ng_fail(find->call, NG_ETOOLARGE,
                     "the search finds more than %d documents: add words", HITS_MAX);
    }
    if (rc == NG_OK && find->count > 0 && query->sort.len == 0) {
        qsort(find->hits, find->count, sizeof(*find->hits),
              query->descending ? by_rank_newest : by_rank);
    }
    return rc;
}

/* ---- rows ---- */

#define ELLIPSIS "\xE2\x80\xA6"

static size_t char_back(struct ng_str text, size_t at)
{
    do {
        at--;
    } while (at > 0 && !utf8_is_start(text.data[at]));
    return at;
}

static size_t char_on(struct ng_str text, size_t at)
{
    do {
        at++;
    } while (at < text.len && !utf8_is_start(text.data[at]));
    return at;
}

/* At most `chars` characters around a position, with dots at each cut. */
static int cut_around(struct ng_str text, size_t place, uint32_t chars, struct bytes *ret)
{
    size_t from = place;
    uint32_t used = 2; /* the dots */
    for (uint32_t i = 0; i < chars / 4 && from > 0; i++) {
        from = char_back(text, from);
    }
    size_t to = from;
    while (to < text.len && used < chars) {
        to = char_on(text, to);
        used++;
    }
    ret->len = 0;
    int rc = NG_OK;
    if (from > 0 && chars > 2) {
        rc = bytes_add_c(ret, ELLIPSIS);
    }
    if (rc == NG_OK) {
        rc = bytes_add(ret, text.data + from, to - from);
    }
    if (rc == NG_OK && to < text.len && chars > 2) {
        return bytes_add_c(ret, ELLIPSIS);
    }
    return rc;
}

static int make_snippet(const struct find *find, const bson_t *doc, struct bytes *ret)
{
    const struct db_collection *collection = find->collection;
    for (size_t i = collection->field_count + 1; i-- > 0;) {
        struct found hits[PHRASES_MAX] = {0};
        size_t first = SIZE_MAX;
        struct ng_str part;
        double weight;
        if (!searched_part(collection, i, doc, &part, &weight)) {
            continue;
        }
        (void)wanted_count(&find->wanted, part, hits, &first);
        if (first != SIZE_MAX) {
            return cut_around(part, first, find->search->snippet_chars, ret);
        }
    }
    return NG_OK;
}

static int report_hit(struct find *find, struct hit *hit, ng_row_fn *row, void *user,
                      bool *ret_stop)
{
    struct fault fault;
    struct bytes json = {0};
    struct bytes snippet = {0};
    struct ng_doc doc;
    bson_t *found = hit->doc;
    hit->doc = NULL;
    int rc = NG_OK;
    if (found == NULL) {
        rc = doc_load(find->db, find->collection, bytes_str(&hit->name), &found, &fault);
    }
    if (rc == NG_ENOTFOUND) {
        return NG_OK; /* deleted since */
    }
    if (rc != NG_OK) {
        return fault_fail(find->call, &fault, "the search");
    }
    rc = body_row(find->collection, found, find->search->query->with_text, &json, &doc);
    if (rc == NG_OK && find->search->snippet_chars > 0) {
        rc = make_snippet(find, found, &snippet);
        doc.snippet = bytes_str(&snippet);
    }
    doc.score = hit->score;
    if (rc == NG_OK && !doc.deleted) {
        *ret_stop = row(user, &doc) != 0;
    }
    bson_destroy(found);
    bytes_done(&json);
    bytes_done(&snippet);
    if (rc == NG_OK) {
        return rc;
    }
    return ng_fail(find->call, rc, "a document found cannot be read");
}

int search_run(void *self, struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
               void *user, uint64_t *ret_total)
{
    struct mongo *db = self;
    const struct ng_query *query = search->query;
    struct find find = {.db = db, .call = call, .search = search};
    bool stop = false;
    bool any = false;
    find.collection = collection_find(db, query->collection);
    for (size_t i = 0; find.collection != NULL && i < find.collection->field_count; i++) {
        any = any || find.collection->fields[i].use == NG_FIELD_TEXT;
    }
    if (find.collection == NULL || (!any && !searches_text(find.collection))) {
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
        bytes_done(&find.hits[i].name);
        if (find.hits[i].doc != NULL) {
            bson_destroy(find.hits[i].doc);
        }
    }
    free(find.hits);
    wanted_done(&find.wanted);
    return rc;
}

const char *search_engine(void *self, const struct ng_search *search)
{
    struct mongo *db = self;
    const struct db_collection *collection = collection_find(db, search->query->collection);
    bool word = false;
    struct ng_str text = search->text;
    struct ng_str found;
    enum script script;
    /* A search for prefixes only cannot use the index. */
    for (size_t at = 0; !word && word_run(text, true, &at, &found, &script);) {
        word = at >= text.len || text.data[at] != '*';
    }
    if (collection != NULL && atomic_load(&collection->text_index) && word) {
        return "text";
    }
    return "filter";
}
