/* SPDX-License-Identifier: MIT */
/*
 * scan.c - recall without RediSearch: looks through the newest entries, word by word.
 *
 * Walks the sorted set of recent entries, newest first, up to SCAN_MAX. Fetches only the fields
 * that are compared; the best entries are read whole at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "query.h"
#include "rank.h"
#include "redis.h"

/* Entries that one recall looks through. */
#define SCAN_MAX 10000
#define SCAN_FIELDS 5
static const char *const scan_fields[SCAN_FIELDS] = {"content", "source", "tags", "entry_tags",
                                                     "score"};

struct scan_hit {
    struct ng_str key;
    double rank;
};

struct scan {
    struct redis *redis;
    struct ng_call *call;
    const struct ng_recall *recall;
    struct wanted wanted;
    struct scan_hit *hits; /* the best, best first */
    size_t count, max;
    struct ng_str recent;
    size_t seen;
};

/* ---- one entry ---- */

/* Whether one of the wanted tags is in the comma-separated list. */
static bool scan_tagged(const struct ng_recall *recall, struct ng_str tags)
{
    size_t from = 0;
    for (size_t i = 0; tags.data != NULL && i <= tags.len; i++) {
        if (i < tags.len && tags.data[i] != ',') {
            continue;
        }
        struct ng_str tag = {tags.data + from, i - from};
        for (size_t k = 0; tag.len > 0 && k < recall->tag_count; k++) {
            if (str_equal(tag, recall->tags[k])) {
                return true;
            }
        }
        from = i + 1;
    }
    return false;
}

/* fields: as scan_fields. Returns RANK_NONE if the entry does not match. */
static double scan_entry(const struct scan *scan, const redisReply *fields)
{
    const struct ng_recall *recall = scan->recall;
    if (fields->type != REDIS_REPLY_ARRAY || fields->elements != SCAN_FIELDS ||
        redis_text(fields->element[0]).data == NULL) {
        return RANK_NONE;
    }
    if (recall->source.len > 0 && !str_equal(redis_text(fields->element[1]), recall->source)) {
        return RANK_NONE;
    }
    if (recall->tag_count > 0 && !scan_tagged(recall, redis_text(fields->element[2])) &&
        !scan_tagged(recall, redis_text(fields->element[3]))) {
        return RANK_NONE;
    }
    struct ng_str score = redis_text(fields->element[4]);
    if (recall->memories && str_is(score, REFERENCE_SCORE) &&
        str_is(redis_text(fields->element[1]), REFERENCE_SOURCE)) {
        return RANK_NONE;
    }
    double factor = 0;
    if (score.len > 0) {
        factor = strtod(score.data, NULL);
    }
    if (factor < recall->min_score) {
        return RANK_NONE;
    }
    if (recall->text.len == 0) {
        return 1;
    }
    return redis_rank(&scan->wanted, redis_text(fields->element[0]), factor);
}

/* Entries that arrive between two pages move the following ones: the next page begins with some
 * of the last one. */
static bool scan_has(const struct scan *scan, struct ng_str key)
{
    for (size_t i = 0; i < scan->count; i++) {
        if (str_equal(scan->hits[i].key, key)) {
            return true;
        }
    }
    return false;
}

/* Inserts the entry if it is among the best. Of equal ones the newer, which came first, stays
 * ahead. */
static void scan_keep(struct scan *scan, struct ng_str key, double rank)
{
    size_t at = scan->count;
    while (at > 0 && scan->hits[at - 1].rank < rank) {
        at--;
    }
    if (at == scan->max) {
        return;
    }
    size_t kept = size_min(scan->count, scan->max - 1);
    memmove(scan->hits + at + 1, scan->hits + at, (kept - at) * sizeof(*scan->hits));
    scan->hits[at] = (struct scan_hit){key, rank};
    scan->count = kept + 1;
}

/* ---- pages ---- */

/* Looks through the entries named in `names`. */
static int scan_page(struct scan *scan, const redisReply *names)
{
    struct ng_call *call = scan->call;
    struct ng_str *keys = ng_alloc(call, (names->elements + 1) * sizeof(*keys));
    struct pipeline pipeline;
    if (keys == NULL) {
        return redis_no_memory(call);
    }
    pipeline_init(&pipeline, scan->redis->pool, call);
    for (size_t i = 0; i < names->elements; i++) {
        keys[i] = redis_key(scan->redis, call, scan->recall->space, "",
                            redis_text(names->element[i]));
        PIPELINE_ADD(&pipeline, WORD("HMGET"), keys[i], ng_str_of(scan_fields[0]),
                     ng_str_of(scan_fields[1]), ng_str_of(scan_fields[2]),
                     ng_str_of(scan_fields[3]), ng_str_of(scan_fields[4]));
    }
    int rc = pipeline_run(&pipeline);
    for (size_t i = 0; rc == NG_OK && i < names->elements; i++) {
        double rank = scan_entry(scan, pipeline_reply(&pipeline, i));
        if (rank >= 0 && !scan_has(scan, keys[i])) {
            scan_keep(scan, keys[i], rank);
        }
    }
    pipeline_done(&pipeline);
    return rc;
}

static int scan_pages(struct scan *scan)
{
    struct ng_call *call = scan->call;
    struct ng_str since = WORD("-inf");
    if (scan->recall->since_ms != 0) {
        since = redis_number(call, scan->recall->since_ms);
    }
    bool more = true;
    int rc = NG_OK;
    while (rc == NG_OK && more && scan->seen < SCAN_MAX) {
        struct pipeline pipeline;
        pipeline_init(&pipeline, scan->redis->pool, call);
        PIPELINE_ADD(&pipeline, WORD("ZREVRANGEBYSCORE"), scan->recent, WORD("+inf"), since,
                     WORD("LIMIT"), redis_number(call, (int64_t)scan->seen),
                     redis_number(call, REDIS_PAGE));
        rc = pipeline_run_all(&pipeline);
        const redisReply *names = pipeline_reply(&pipeline, 0);
        size_t found = 0;
        if (rc == NG_OK) {
            found = names->elements;
        }
        if (found > 0) {
            rc = scan_page(scan, names);
        }
        pipeline_done(&pipeline);
        scan->seen += found;
        /* Without words, order is rank: the first entries are the best. */
        more =
            found == REDIS_PAGE && !(scan->recall->text.len == 0 && scan->count == scan->max);
    }
    return rc;
}

/* Reads the best entries whole and passes them to the caller. */
static int scan_report(struct scan *scan, ng_entry_row_fn *row, void *user)
{
    struct pipeline pipeline;
    if (scan->count == 0) {
        return NG_OK;
    }
    pipeline_init(&pipeline, scan->redis->pool, scan->call);
    for (size_t i = 0; i < scan->count; i++) {
        PIPELINE_ADD(&pipeline, WORD("HGETALL"), scan->hits[i].key);
    }
    int rc = pipeline_run(&pipeline);
    for (size_t i = 0; rc == NG_OK && i < scan->count; i++) {
        struct ng_entry entry;
        int read = redis_hash_read(scan->call, pipeline_reply(&pipeline, i),
                                   scan->recall->space, &entry);
        if (read == NG_EINTERNAL) {
            rc = read;
        }
        if (read == NG_OK && row(user, &entry) != 0) {
            break;
        }
    }
    pipeline_done(&pipeline);
    return rc;
}

int redis_scan(struct redis *redis, struct ng_call *call, const struct ng_recall *recall,
               ng_entry_row_fn *row, void *user)
{
    struct scan *scan = ng_alloc(call, sizeof(*scan));
    if (scan == NULL) {
        return redis_no_memory(call);
    }
    memset(scan, 0, sizeof(*scan));
    scan->redis = redis;
    scan->call = call;
    scan->recall = recall;
    scan->max = redis_limit(recall->limit);
    scan->recent = redis_key(redis, call, recall->space, REDIS_RECENT, str_make(NULL, 0));
    scan->hits = ng_alloc(call, (scan->max + 1) * sizeof(*scan->hits));
    if (scan->hits == NULL) {
        return redis_no_memory(call);
    }
    int rc = wanted_parse(call, recall->text, &scan->wanted);
    if (rc == NG_OK) {
        rc = scan_pages(scan);
    }
    wanted_done(&scan->wanted);
    if (rc != NG_OK) {
        return rc;
    }
    return scan_report(scan, row, user);
}
