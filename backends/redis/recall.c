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

#include "core/base/minmax.h"
#include "query.h"
#include "rank.h"
#include "redis.h"

/* Any other reply to an FT. command means that RediSearch is unusable here. */
enum recall_state {
    RECALL_READY,
    RECALL_MISSING,
    RECALL_FOREIGN, /* of an earlier version or another program: it has no words */
    RECALL_UNUSABLE
};

static bool recall_has(const redisReply *reply, const char *text)
{
    return reply != NULL && reply->type == REDIS_REPLY_ERROR &&
           strstr(reply->str, text) != NULL;
}

/* Is there such a text anywhere in the reply? */
static bool recall_names(const redisReply *reply, const char *text)
{
    if (reply->type != REDIS_REPLY_ARRAY) {
        return str_is(redis_text(reply), text);
    }
    for (size_t i = 0; i < reply->elements; i++) {
        if (recall_names(reply->element[i], text)) {
            return true;
        }
    }
    return false;
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
    if (!recall_names(info, "words")) {
        return RECALL_FOREIGN;
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
        redis_key(redis, pipeline->call, space, REDIS_REFERENCE, none), WORD("SCORE_FIELD"),
        WORD("score"), WORD("STOPWORDS"), WORD("0"), WORD("SCHEMA"), WORD("content"),
        WORD("TEXT"), WORD("NOSTEM"), WORD("words"), WORD("TEXT"), WORD("NOSTEM"),
        WORD("source"), WORD("TAG"), WORD("SEPARATOR"), WORD("|"), WORD("CASESENSITIVE"),
        WORD("tags"), WORD("TAG"), WORD("SEPARATOR"), WORD(","), WORD("CASESENSITIVE"),
        WORD("entry_tags"), WORD("TAG"), WORD("SEPARATOR"), WORD(","), WORD("CASESENSITIVE"),
        WORD("agent"), WORD("TAG"), WORD("CASESENSITIVE"), WORD("time"), WORD("NUMERIC"),
        WORD("SORTABLE"), WORD("score"), WORD("NUMERIC"));
}

/* The hashes stay when their index is dropped. */
static int recall_create(struct redis *redis, struct ng_call *call, struct ng_str space,
                         bool drop)
{
    struct pipeline pipeline;
    pipeline_init(&pipeline, redis->pool, call);
    if (drop) {
        PIPELINE_ADD(&pipeline, WORD("FT.DROPINDEX"),
                     redis_key(redis, call, space, REDIS_INDEX, str_make(NULL, 0)));
    }
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
    redis->pool->settings.greeting = pipeline.out;
    if (pipeline.out.rc != NG_OK) {
        return redis_no_memory(call);
    }
    return NG_OK;
}

/* Least number of candidates of a recall by words: of the best by RediSearch's own rank times
 * the score, and of the newest, which come first among equal ones. */
#define RECALL_CANDIDATES 100
/* Tries after which a missing index or missing words count as unusable. */
#define RECALL_TRIES 3

/* The fields that redis_hash_read() and the rank need. RediSearch gives SCORE_FIELD only under
 * another name. */
#define RECALL_SCORE "own_score"
#define RECALL_RETURN                                                                          \
    WORD("RETURN"), WORD("8"), WORD("event"), WORD("content"), WORD("score"), WORD("AS"),      \
        WORD(RECALL_SCORE), WORD("agent"), WORD("source"), WORD("timestamp")

/* A recall under way. */
struct recall {
    struct redis *redis;
    struct ng_call *call;
    const struct ng_recall *asked;
    struct wanted wanted;
    struct ng_str query;
    ng_entry_row_fn *row;
    void *user;
};

struct recall_hit {
    struct ng_str key;
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

static bool recall_is_there(const struct recall_hit *hits, size_t count, struct ng_str key)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(hits[i].key, key)) {
            return true;
        }
    }
    return false;
}

/* Adds the rows of an FT.SEARCH reply: the total, then key and hash in turn. RediSearch finds
 * words in any order; hits that do not match as a whole have no rank. */
static int recall_add_hits(const struct recall *recall, const redisReply *found,
                           struct recall_hit *hits, size_t *count)
{
    bool words = recall->asked->text.len > 0;
    for (size_t i = 2; i < found->elements; i += 2) {
        struct recall_hit *hit = &hits[*count];
        const redisReply *hash = found->element[i];
        hit->key = redis_text(found->element[i - 1]);
        if (recall_is_there(hits, *count, hit->key)) {
            continue;
        }
        int rc = redis_hash_read(recall->call, hash, recall->asked->space, &hit->entry);
        if (rc == NG_EINTERNAL) {
            return rc;
        }
        struct ng_str text = redis_hash_text(hash, RECALL_SCORE);
        double score = 0;
        if (text.len > 0) {
            score = strtod(text.data, NULL);
        }
        hit->rank = 0;
        if (words) {
            hit->rank = redis_rank(&recall->wanted, redis_hash_text(hash, "content"), score);
        }
        bool left_out = recall->asked->memories && hit->entry.kind != NG_ENTRY_MEMORY;
        if (rc != NG_OK || hit->rank < 0 || left_out) {
            continue;
        }
        if (hit->entry.event_id.len == 0) {
            hit->entry.score = score; /* of another program */
        }
        ++*count;
    }
    return NG_OK;
}

/* Passes on the best rows of the replies behind `first`; sorted by rank if words were given,
 * else as they come. */
static int recall_rows(const struct recall *recall, const struct pipeline *pipeline,
                       size_t first)
{
    size_t count = 0;
    size_t max = 1;
    for (size_t i = first; i < pipeline->count; i++) {
        max += pipeline_reply(pipeline, i)->elements / 2;
    }
    struct recall_hit *hits = ng_alloc(recall->call, max * sizeof(*hits));
    if (hits == NULL) {
        return redis_no_memory(recall->call);
    }
    int rc = NG_OK;
    for (size_t i = first; rc == NG_OK && i < pipeline->count; i++) {
        rc = recall_add_hits(recall, pipeline_reply(pipeline, i), hits, &count);
    }
    if (rc == NG_OK && count > 1 && recall->asked->text.len > 0) {
        qsort(hits, count, sizeof(*hits), recall_by_rank);
    }
    for (size_t i = 0; rc == NG_OK && i < count && i < redis_limit(recall->asked->limit); i++) {
        if (recall->row(recall->user, &hits[i].entry) != 0) {
            break;
        }
    }
    return rc;
}

#define RECALL_STATE_REPLIES 2

/* Without VERBATIM RediSearch also searches for the stems of the words. The default scorer of
 * older modules counts a single word three times. */
static void recall_add_search(const struct recall *recall, struct pipeline *pipeline,
                              struct ng_str index)
{
    size_t rows = redis_limit(recall->asked->limit);
    bool words = recall->asked->text.len > 0;
    if (words) {
        rows = size_max(rows, RECALL_CANDIDATES);
    }
    struct ng_str limit = redis_number(recall->call, (int64_t)rows);
    PIPELINE_ADD(
        pipeline, WORD("GET"),
        redis_key(recall->redis, recall->call, WORD("shared"), REDIS_WORDS, str_make(NULL, 0)));
    PIPELINE_ADD(pipeline, WORD("FT.INFO"), index);
    PIPELINE_ADD(pipeline, WORD("FT.SEARCH"), index, recall->query, RECALL_RETURN,
                 WORD("LIMIT"), WORD("0"), limit, WORD("DIALECT"), WORD("2"), WORD("VERBATIM"),
                 WORD("SORTBY"), WORD("time"), WORD("DESC"));
    if (words) {
        PIPELINE_ADD(pipeline, WORD("FT.SEARCH"), index, recall->query, RECALL_RETURN,
                     WORD("LIMIT"), WORD("0"), limit, WORD("DIALECT"), WORD("2"),
                     WORD("VERBATIM"), WORD("SCORER"), WORD("BM25"));
    }
}

/* *ret_used: RediSearch was used; if not, the caller scans. *ret_again: what was missing was
 * made. */
static int recall_try(const struct recall *recall, bool *ret_used, bool *ret_again)
{
    struct redis *redis = recall->redis;
    struct ng_call *call = recall->call;
    struct ng_str space = recall->asked->space;
    struct ng_str index = redis_key(redis, call, space, REDIS_INDEX, str_make(NULL, 0));
    struct pipeline pipeline;
    pipeline_init(&pipeline, redis->pool, call);
    recall_add_search(recall, &pipeline, index);
    int rc = pipeline_run(&pipeline);
    enum recall_state state = RECALL_UNUSABLE;
    bool filled = false;
    if (rc == NG_OK) {
        state = recall_state(pipeline_reply(&pipeline, 1));
        filled = str_is(redis_text(pipeline_reply(&pipeline, 0)), REDIS_WORDS_VERSION);
    }
    bool good = state == RECALL_READY && filled;
    for (size_t i = RECALL_STATE_REPLIES; good && i < pipeline.count; i++) {
        good = pipeline_reply(&pipeline, i)->type == REDIS_REPLY_ARRAY;
    }
    if (good) {
        *ret_used = true;
        rc = recall_rows(recall, &pipeline, RECALL_STATE_REPLIES);
    }
    pipeline_done(&pipeline);
    if (rc == NG_OK && (state == RECALL_MISSING || state == RECALL_FOREIGN)) {
        *ret_again = true;
        rc = recall_create(redis, call, space, state == RECALL_FOREIGN);
    } else if (rc == NG_OK && state == RECALL_READY && !filled) {
        /* Also Redis may have lost its data since this gateway has filled it. */
        *ret_again = true;
        atomic_store(&redis->filled, false);
        rc = redis_fill(redis, call);
    }
    return rc;
}

static int recall_no_row(void *user, const struct ng_entry *entry)
{
    (void)user;
    (void)entry;
    return 1;
}

static int recall_search(struct recall *recall, bool *ret_used)
{
    struct buf out;
    int rc = NG_OK;
    buf_init(&out, QUERY_BYTES_MAX);
    int written = redis_query(recall->asked, &recall->wanted, &out);
    recall->query = buf_str(&out);
    if (written == NG_ENOTFOUND) {
        /* Nothing can match, but the search still runs: its result tells whether the index is
         * usable. */
        recall->query = WORD("*");
        recall->row = recall_no_row;
    } else if (written != NG_OK) {
        rc = redis_no_memory(recall->call);
    }
    bool again = true;
    for (int i = 0; rc == NG_OK && again && i < RECALL_TRIES; i++) {
        again = false;
        rc = recall_try(recall, ret_used, &again);
    }
    buf_done(&out);
    return rc != NG_OK ? rc : written;
}

int redis_recall(void *journal, struct ng_call *call, const struct ng_recall *recall,
                 ng_entry_row_fn *row, void *user, const char **ret_engine)
{
    static const char *const engines[] = {"scan", "redisearch"};
    struct recall state = {
        .redis = journal, .call = call, .asked = recall, .row = row, .user = user};
    bool used = false;
    int rc = wanted_parse(call, recall->text, &state.wanted);
    if (rc == NG_OK && redis_query_can(&state.wanted)) {
        rc = recall_search(&state, &used);
    }
    if (rc == NG_OK && !used) {
        rc = redis_scan(journal, call, recall, row, user);
    } else if (rc == NG_ENOTFOUND) {
        rc = NG_OK; /* nothing can match */
    }
    wanted_done(&state.wanted);
    if (rc == NG_OK && ret_engine != NULL) {
        *ret_engine = engines[used];
    }
    return rc;
}
