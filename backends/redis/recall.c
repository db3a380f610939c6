/* SPDX-License-Identifier: MIT */
/*
 * recall.c - finds memories and references with RediSearch where it is available.
 *
 * Each space has its own index over its own two kinds of hashes, so no query can reach another
 * space. A missing index is created. Recall scans instead until the index has read the existing
 * hashes, and on servers without RediSearch.
 */
#include <stdlib.h>
#include <string.h>

#include "query.h"
#include "rank.h"
#include "redis.h"

/* Any other reply to an FT. command means that RediSearch is unusable here. */
enum recall_state { RECALL_READY, RECALL_MISSING, RECALL_UNUSABLE };

static bool recall_has(const redisReply *reply, const char *text)
{
    return reply != NULL && reply->type == REDIS_REPLY_ERROR &&
           strstr(reply->str, text) != NULL;
}

/* Reads the reply to FT.INFO: whether the index exists and has read everything. */
static enum recall_state recall_state(const redisReply *info)
{
    if (recall_has(info, "nknown command") || recall_has(info, "NOPERM")) {
        return RECALL_UNUSABLE;
    }
    if (info->type != REDIS_REPLY_ARRAY) {
        return RECALL_MISSING;
    }
    for (size_t i = 0; i + 1 < info->elements; i += 2) {
        const redisReply *value = info->element[i + 1];
        if (str_is(redis_text(info->element[i]), "indexing")) {
            bool done = str_is(redis_text(value), "0");
            if (value->type == REDIS_REPLY_INTEGER) {
                done = value->integer == 0;
            }
            if (!done) {
                return RECALL_UNUSABLE;
            }
            return RECALL_READY;
        }
    }
    return RECALL_READY;
}

/* Adds the command that creates the index of a space. No effect if it exists. */
static void recall_add_create(struct redis *redis, struct pipeline *pipeline,
                              struct ng_str space)
{
    struct ng_str none = {NULL, 0};
    PIPELINE_ADD(
        pipeline, WORD("FT.CREATE"), redis_key(redis, pipeline->call, space, REDIS_INDEX, none),
        WORD("ON"), WORD("HASH"), WORD("PREFIX"), WORD("2"),
        redis_key(redis, pipeline->call, space, REDIS_MEMORY, none),
        redis_key(redis, pipeline->call, space, REDIS_REFERENCE, none), WORD("STOPWORDS"),
        WORD("0"), WORD("SCHEMA"), WORD("content"), WORD("TEXT"), WORD("NOSTEM"),
        WORD("source"), WORD("TAG"), WORD("SEPARATOR"), WORD("|"), WORD("CASESENSITIVE"),
        WORD("tags"), WORD("TAG"), WORD("SEPARATOR"), WORD(","), WORD("CASESENSITIVE"),
        WORD("entry_tags"), WORD("TAG"), WORD("SEPARATOR"), WORD(","), WORD("CASESENSITIVE"),
        WORD("agent"), WORD("TAG"), WORD("CASESENSITIVE"), WORD("time"), WORD("NUMERIC"),
        WORD("SORTABLE"), WORD("score"), WORD("NUMERIC"));
}

static int recall_create(struct redis *redis, struct ng_call *call, struct ng_str space)
{
    struct pipeline pipeline;
    pipeline_init(&pipeline, redis->pool, call);
    recall_add_create(redis, &pipeline, space);
    /* If it cannot be created, or another gateway just created it, the next check finds out. */
    int rc = pipeline_run(&pipeline);
    pipeline_done(&pipeline);
    return rc;
}

int redis_greet(struct redis *redis, struct ng_call *call)
{
    struct pipeline pipeline;
    pipeline_init(&pipeline, redis->pool, call);
    recall_add_create(redis, &pipeline, ng_str_of("shared"));
    redis->pool->greeting = pipeline.out;
    if (pipeline.out.rc != NG_OK) {
        return redis_no_memory(call);
    }
    return NG_OK;
}

/* Least number of candidates of a recall by words, whatever their scores. */
#define RECALL_CANDIDATES 100

struct recall_hit {
    struct ng_entry entry;
    double rank;
};

static int recall_by_rank(const void *left, const void *right)
{
    const struct recall_hit *a = left;
    const struct recall_hit *b = right;
    if (a->rank > b->rank || a->rank < b->rank) {
        return (a->rank < b->rank) - (a->rank > b->rank);
    }
    return (a->entry.time_ms < b->entry.time_ms) - (a->entry.time_ms > b->entry.time_ms);
}

/* The rows of an FT.SEARCH reply: the total, then key and hash in turn. Sorted best first if
 * words were given, else in order. */
static int recall_rows(struct ng_call *call, const redisReply *found,
                       const struct ng_recall *recall, ng_entry_row_fn *row, void *user)
{
    struct recall_hit *hits = ng_alloc(call, (found->elements / 2 + 1) * sizeof(*hits));
    struct wanted wanted = {0};
    size_t count = 0;
    if (hits == NULL) {
        return redis_no_memory(call);
    }
    int rc = wanted_parse(call, recall->text, &wanted);
    if (rc != NG_OK) {
        wanted_done(&wanted);
        return rc;
    }
    for (size_t i = 2; i < found->elements && rc != NG_EINTERNAL; i += 2) {
        struct recall_hit *hit = &hits[count];
        rc = redis_hash_read(call, found->element[i], recall->space, &hit->entry);
        if (rc == NG_OK) {
            struct ng_str score = redis_hash_text(found->element[i], "score");
            struct ng_str text = redis_hash_text(found->element[i], "content");
            hit->rank =
                redis_rank(&wanted, text) * (score.len > 0 ? strtod(score.data, NULL) : 0);
            count++;
        }
    }
    wanted_done(&wanted);
    if (rc == NG_EINTERNAL) {
        return rc;
    }
    if (count > 1 && recall->text.len > 0) {
        qsort(hits, count, sizeof(*hits), recall_by_rank);
    }
    for (size_t i = 0; i < count && i < redis_limit(recall->limit); i++) {
        if (row(user, &hits[i].entry) != 0) {
            break;
        }
    }
    return NG_OK;
}

static void recall_add_search(struct pipeline *pipeline, struct ng_str index,
                              struct ng_str query, bool by_time, struct ng_str limit)
{
    PIPELINE_ADD(pipeline, WORD("FT.INFO"), index);
    /* Without VERBATIM RediSearch also searches for the stems of the words, which the index
     * does not hold. The default scorer of older modules counts a single word three times. */
    if (by_time) {
        PIPELINE_ADD(pipeline, WORD("FT.SEARCH"), index, query, WORD("LIMIT"), WORD("0"), limit,
                     WORD("DIALECT"), WORD("2"), WORD("VERBATIM"), WORD("SORTBY"), WORD("time"),
                     WORD("DESC"));
    } else {
        PIPELINE_ADD(pipeline, WORD("FT.SEARCH"), index, query, WORD("LIMIT"), WORD("0"), limit,
                     WORD("DIALECT"), WORD("2"), WORD("VERBATIM"), WORD("SCORER"),
                     WORD("BM25"));
    }
}

/* *ret_used: RediSearch was used; if not, the caller scans. */
static int recall_search(struct redis *redis, struct ng_call *call,
                         const struct ng_recall *recall, struct ng_str query,
                         ng_entry_row_fn *row, void *user, bool *ret_used)
{
    struct ng_str index = redis_key(redis, call, recall->space, REDIS_INDEX, str_make(NULL, 0));
    size_t rows = redis_limit(recall->limit);
    if (recall->text.len > 0 && rows < RECALL_CANDIDATES) {
        rows = RECALL_CANDIDATES;
    }
    struct ng_str limit = redis_number(call, (int64_t)rows);
    *ret_used = false;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct pipeline pipeline;
        pipeline_init(&pipeline, redis->pool, call);
        recall_add_search(&pipeline, index, query, recall->text.len == 0, limit);
        int rc = pipeline_run(&pipeline);
        enum recall_state state = RECALL_UNUSABLE;
        if (rc == NG_OK) {
            state = recall_state(pipeline_reply(&pipeline, 0));
        }
        const redisReply *found = pipeline_reply(&pipeline, 1);
        if (rc == NG_OK && state == RECALL_READY && found->type == REDIS_REPLY_ARRAY) {
            *ret_used = true;
            rc = recall_rows(call, found, recall, row, user);
        }
        pipeline_done(&pipeline);
        if (rc != NG_OK || state != RECALL_MISSING || attempt > 0) {
            return rc;
        }
        rc = recall_create(redis, call, recall->space);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

static int recall_no_row(void *user, const struct ng_entry *entry)
{
    (void)user;
    (void)entry;
    return 1;
}

int redis_recall(void *journal, struct ng_call *call, const struct ng_recall *recall,
                 ng_entry_row_fn *row, void *user, const char **ret_engine)
{
    struct redis *redis = journal;
    struct buf out;
    bool used = false;
    buf_init(&out, QUERY_BYTES_MAX);
    int rc = redis_query(recall, &out);
    bool hopeless = rc == NG_ENOTFOUND;
    struct ng_str query = buf_str(&out);
    if (hopeless) {
        /* Nothing can match, but the search still runs: its result tells whether the index is
         * usable. */
        query = WORD("*");
    }
    struct ng_recall nothing = *recall;
    nothing.limit = 1;
    if (rc != NG_OK && !hopeless) {
        rc = redis_no_memory(call);
    } else {
        rc = recall_search(redis, call, hopeless ? &nothing : recall, query,
                           hopeless ? recall_no_row : row, user, &used);
    }
    buf_done(&out);
    if (rc == NG_OK && !used && !hopeless) {
        rc = redis_scan(redis, call, recall, row, user);
    }
    if (rc == NG_OK && ret_engine != NULL) {
        if (used) {
            *ret_engine = "redisearch";
        } else {
            *ret_engine = "scan";
        }
    }
    return rc;
}
