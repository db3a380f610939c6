/* SPDX-License-Identifier: MIT */
/* ram_query.c - conditions, order and pages, over all documents one by one. */
#include "ram.h"

#include <stdlib.h>

/* By bytes; they may hold NUL. */
static int order(struct ng_str a, struct ng_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int by_bytes = len == 0 ? 0 : memcmp(a.data, b.data, len);
    return by_bytes != 0 ? by_bytes : (a.len > b.len) - (a.len < b.len);
}

/* How the values of a field are compared. */
enum compared { AS_TEXT, AS_NUMBER, AS_TAG, AS_NOTHING };

struct value {
    bool there;
    struct ng_str text;
    double number;
};

/* The value number `at` of a field; not there: there are no more. Only tags have several. */
static struct value value_of(const struct revision *revision, struct ng_str field, size_t at)
{
    const struct ng_doc *doc = &revision->doc;
    const struct {
        const char *name;
        struct ng_str text;
        double number;
    } built_in[] = {
        {"id", doc->key.id, 0},
        {"author", doc->author, 0},
        {"created", {NULL, 0}, (double)doc->created_ms},
        {"updated", {NULL, 0}, (double)doc->updated_ms},
        {"created_seq", {NULL, 0}, (double)doc->created_seq},
        {"seq", {NULL, 0}, (double)doc->seq},
        {"revision", {NULL, 0}, (double)doc->revision},
    };
    struct value value = {false, {NULL, 0}, 0};
    for (size_t i = 0; i < NG_COUNT(built_in); i++) {
        if (same(field, ng_str_of(built_in[i].name))) {
            value.there = at == 0;
            value.text = built_in[i].text;
            value.number = built_in[i].number;
            return value;
        }
    }
    for (size_t i = 0; i < revision->field_count; i++) {
        const struct ng_field_value *found = &revision->fields[i];
        if (same(found->name, field) && at-- == 0) {
            value.there = true;
            value.text = found->text;
            value.number = found->number;
            break;
        }
    }
    return value;
}

static enum compared compared_as(const struct ram *ram, struct ng_str collection,
                                 struct ng_str name)
{
    static const char *const texts[] = {"id", "author"};
    static const char *const numbers[] = {"created", "updated", "created_seq", "seq",
                                          "revision"};
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        if (same(name, ng_str_of(texts[i]))) {
            return AS_TEXT;
        }
    }
    for (size_t i = 0; i < NG_COUNT(numbers); i++) {
        if (same(name, ng_str_of(numbers[i]))) {
            return AS_NUMBER;
        }
    }
    const struct collection *declared = ram_collection(ram, collection);
    enum ng_field_use use = NG_FIELD_TEXT;
    for (size_t i = 0; declared != NULL && i < declared->field_count; i++) {
        if (same(declared->fields[i].name, name)) {
            use = declared->fields[i].use;
        }
    }
    switch (use) {
    case NG_FIELD_TAG:
        return AS_TAG;
    case NG_FIELD_NUMBER:
        return AS_NUMBER;
    case NG_FIELD_STRING:
        return AS_TEXT;
    default:
        return AS_NOTHING; /* undeclared, or for searches only */
    }
}

/* Undeclared fields and operators that a field has not are the backend's to refuse. */
static int query_check(const struct ram *ram, struct ng_call *call,
                       const struct ng_query *query)
{
    for (size_t i = 0; i < query->term_count; i++) {
        const struct ng_term *term = &query->terms[i];
        enum compared as = compared_as(ram, query->collection, term->field);
        bool fits = as == AS_TEXT ||
                    (as == AS_NUMBER && term->op != NG_TERM_PREFIX && term->op != NG_TERM_IN) ||
                    (as == AS_TAG && (term->op == NG_TERM_EQ || term->op == NG_TERM_NE ||
                                      term->op == NG_TERM_IN));
        if (!fits) {
            return ng_fail(call, NG_EINVAL, "a condition of `%.*s` cannot be asked so",
                           (int)term->field.len, term->field.data);
        }
    }
    enum compared as = compared_as(ram, query->collection, query->sort);
    if (query->sort.len > 0 && as != AS_TEXT && as != AS_NUMBER) {
        return ng_fail(call, NG_EINVAL, "documents cannot be sorted by `%.*s`",
                       (int)query->sort.len, query->sort.data);
    }
    return NG_OK;
}

static bool value_holds(const struct value *value, const struct ng_term *term, enum compared as)
{
    int sign = as == AS_NUMBER ? (value->number > term->number) - (value->number < term->number)
                               : order(value->text, term->value);
    switch (term->op) {
    case NG_TERM_LT:
        return sign < 0;
    case NG_TERM_LE:
        return sign <= 0;
    case NG_TERM_GT:
        return sign > 0;
    case NG_TERM_GE:
        return sign >= 0;
    case NG_TERM_PREFIX:
        return value->text.len >= term->value.len &&
               (term->value.len == 0 ||
                memcmp(value->text.data, term->value.data, term->value.len) == 0);
    case NG_TERM_IN:
        for (size_t i = 0; i < term->value_count; i++) {
            if (same(value->text, term->values[i])) {
                return true;
            }
        }
        return false;
    default:
        return sign == 0; /* EQ, and NE, which is its negation */
    }
}

static bool term_holds(const struct ram *ram, const struct revision *revision,
                       const struct ng_query *query, const struct ng_term *term)
{
    enum compared as = compared_as(ram, query->collection, term->field);
    bool any = false; /* a missing field is unequal to everything */
    struct value value = value_of(revision, term->field, 0);
    for (size_t at = 1; value.there && !any; at++) {
        any = value_holds(&value, term, as);
        value = value_of(revision, term->field, at);
    }
    return term->op == NG_TERM_NE ? !any : any;
}

static bool matches(const struct ram *ram, const struct revision *revision,
                    const struct ng_query *query)
{
    const struct ng_key *key = &revision->doc.key;
    bool seen = query->space.data != NULL && same(key->space, query->space);
    for (size_t i = 0; query->space.data == NULL && i < query->space_count && !seen; i++) {
        seen = same(key->space, query->spaces[i]); /* one may be named twice */
    }
    bool only_deleted = NG_HAS(query, only_deleted) && query->only_deleted;
    seen =
        seen && same(key->collection, query->collection) &&
        (only_deleted ? revision->doc.deleted : query->with_deleted || !revision->doc.deleted);
    for (size_t i = 0; i < query->term_count && seen; i++) {
        seen = term_holds(ram, revision, query, &query->terms[i]);
    }
    return seen;
}

/* A document that matches, and what it is sorted by. */
struct hit {
    const struct revision *revision;
    struct value by;
    bool descending;
};

/* Missing values first; ties by creation, in the direction of the sort. */
static int hit_order(const void *left, const void *right)
{
    const struct hit *a = left;
    const struct hit *b = right;
    int sign = a->by.there - b->by.there;
    if (sign == 0 && a->by.there) {
        sign = (a->by.number > b->by.number) - (a->by.number < b->by.number);
        sign = sign != 0 ? sign : order(a->by.text, b->by.text);
    }
    if (sign == 0) {
        uint64_t one = a->revision->doc.created_seq;
        uint64_t other = b->revision->doc.created_seq;
        sign = (one > other) - (one < other);
    }
    return a->descending ? -sign : sign;
}

static int query_collect(const struct ram *ram, struct ng_call *call,
                         const struct ng_query *query, struct hit **ret_hits, size_t *ret_count)
{
    size_t room = 0;
    for (const struct document *at = ram->documents; at != NULL; at = at->next) {
        room++;
    }
    struct hit *hits = calloc(room + 1, sizeof(*hits));
    if (hits == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for a query");
    }
    size_t count = 0;
    struct ng_str sort = query->sort.len > 0 ? query->sort : ng_str_of("created_seq");
    for (const struct document *at = ram->documents; at != NULL; at = at->next) {
        if (call->host->cancelled(call)) {
            free(hits);
            return ng_fail(call, NG_ECANCELLED, "the query was cancelled");
        }
        if (matches(ram, at->newest, query)) {
            hits[count].revision = at->newest;
            hits[count].by = value_of(at->newest, sort, 0);
            hits[count++].descending = query->descending;
        }
    }
    qsort(hits, count, sizeof(*hits), hit_order);
    *ret_hits = hits;
    *ret_count = count;
    return NG_OK;
}

int ram_query(void *db, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
              void *user, uint64_t *ret_total)
{
    struct ram *ram = db;
    struct hit *hits = NULL;
    size_t count = 0;
    pthread_mutex_lock(&ram->lock);
    int rc = query_check(ram, call, query);
    rc = rc != NG_OK ? rc : query_collect(ram, call, query, &hits, &count);
    bool stop = rc != NG_OK;
    for (uint64_t i = query->offset; i < count && i - query->offset < query->limit && !stop;
         i++) {
        struct ng_doc doc = hits[i].revision->doc;
        if (!query->with_text) {
            doc.text.data = NULL;
            doc.text.len = 0;
        }
        stop = row(user, &doc) != 0;
    }
    pthread_mutex_unlock(&ram->lock);
    free(hits);
    if (rc == NG_OK && query->want_total && ret_total != NULL) {
        *ret_total = count;
    }
    return rc;
}
