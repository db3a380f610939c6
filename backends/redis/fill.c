/* SPDX-License-Identifier: MIT */
/*
 * fill.c - the words by which RediSearch finds an entry: one more member of its hash.
 *
 * RediSearch splits and folds words in a way of its own. The member `words` has them as all
 * backends split, fold and stem them. Hashes written by an earlier version get it while there
 * is nothing to deliver; until all have it, recall scans.
 */
#include "core/base/buf.h"
#include "core/base/clock.h"

#include "query.h"
#include "redis.h"

/* Bytes of the words of one entry. */
#define FILL_WORDS_MAX ((size_t)64 * 1024 * 1024)
/* Time of one call, and names of one SCAN. */
#define FILL_NS INT64_C(100000000)
#define FILL_COUNT "1000"

/* KEYS: a hash. ARGV: its words. A delivery that wrote it meanwhile wrote them, too; a hash
 * that was removed stays removed. */
static const char fill_script[] = "if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end\n"
                                  "return redis.call('HSETNX', KEYS[1], 'words', ARGV[1])\n";

struct fill_words {
    struct buf words, stems;
};

static int fill_token(void *user, const struct token *token)
{
    struct fill_words *words = user;
    char buf[WORD_BYTES_MAX];
    struct ng_str stem = token_stem(token->text, buf);
    (void)redis_word_add(&words->words, token->text);
    int rc = buf_add_char(&words->words, ' ');
    if (stem.len > 0) {
        (void)redis_word_add(&words->stems, stem);
        rc = buf_add_char(&words->stems, ' ');
    }
    return rc;
}

struct ng_str redis_words(struct ng_call *call, struct ng_str text)
{
    struct fill_words words;
    struct ng_str ret = {NULL, 0};
    buf_init(&words.words, FILL_WORDS_MAX);
    buf_init(&words.stems, FILL_WORDS_MAX);
    if (tokens_each(text, fill_token, &words) == NG_OK) {
        ret = REDIS_JOIN(call, str_or(buf_str(&words.words), WORD("")),
                         str_or(buf_str(&words.stems), WORD("")));
    }
    buf_done(&words.words);
    buf_done(&words.stems);
    return ret;
}

/* ---- hashes of earlier versions ---- */

/* Is it the name of a memory or of a reference, of any space? */
static bool fill_is_entry(const struct redis *redis, struct ng_str key)
{
    struct ng_str name = str_make(key.data + redis->prefix.len, key.len - redis->prefix.len);
    if (str_begins(name, "space:")) {
        size_t end = str_find(name, WORD(":"), sizeof("space:") - 1);
        if (end == SIZE_MAX) {
            return false;
        }
        name = str_make(name.data + end + 1, name.len - end - 1);
    }
    return str_begins(name, REDIS_MEMORY) || str_begins(name, REDIS_REFERENCE);
}

/* The names of one page, in call memory. *ret_next: the next cursor. */
static int fill_names(struct redis *redis, struct ng_call *call, struct ng_str **ret_names,
                      size_t *ret_count, uint64_t *ret_next)
{
    struct pipeline pipeline;
    struct ng_str at = call->host->format(call, "%llu", (unsigned long long)redis->fill_at);
    pipeline_init(&pipeline, redis->pool, call);
    PIPELINE_ADD(&pipeline, WORD("SCAN"), at, WORD("MATCH"),
                 REDIS_JOIN(call, redis->prefix, WORD("*")), WORD("COUNT"), WORD(FILL_COUNT));
    int rc = pipeline_run_all(&pipeline);
    const redisReply *page = pipeline_reply(&pipeline, 0);
    if (rc == NG_OK && (page->type != REDIS_REPLY_ARRAY || page->elements != 2 ||
                        !str_number(redis_text(page->element[0]), UINT64_MAX, ret_next))) {
        rc = pool_fail_reply(redis->pool, call, page);
    }
    const redisReply *names = NULL;
    if (rc == NG_OK) {
        names = page->element[1];
        *ret_names = ng_alloc(call, (names->elements + 1) * sizeof(**ret_names));
        rc = *ret_names == NULL ? redis_no_memory(call) : NG_OK;
    }
    *ret_count = 0;
    for (size_t i = 0; rc == NG_OK && i < names->elements; i++) {
        struct ng_str name = redis_text(names->element[i]);
        if (str_starts(name, redis->prefix) && fill_is_entry(redis, name)) {
            (*ret_names)[(*ret_count)++] = redis_join(call, &name, 1);
        }
    }
    pipeline_done(&pipeline);
    return rc;
}

static int fill_page(struct redis *redis, struct ng_call *call)
{
    struct ng_str *names = NULL;
    struct pipeline pipeline;
    struct pipeline writes;
    size_t count = 0;
    uint64_t next = 0;
    int rc = fill_names(redis, call, &names, &count, &next);
    if (rc != NG_OK) {
        return rc;
    }
    pipeline_init(&pipeline, redis->pool, call);
    pipeline_init(&writes, redis->pool, call);
    for (size_t i = 0; i < count; i++) {
        PIPELINE_ADD(&pipeline, WORD("HMGET"), names[i], WORD("content"), WORD("words"));
    }
    if (count > 0) {
        rc = pipeline_run(&pipeline);
    }
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        const redisReply *hash = pipeline_reply(&pipeline, i);
        if (hash->type == REDIS_REPLY_ARRAY && hash->elements == 2 &&
            redis_text(hash->element[0]).data != NULL &&
            redis_text(hash->element[1]).data == NULL) {
            PIPELINE_ADD(&writes, WORD("EVAL"), WORD(fill_script), WORD("1"), names[i],
                         redis_words(call, redis_text(hash->element[0])));
        }
    }
    if (rc == NG_OK && writes.count > 0) {
        rc = pipeline_run_all(&writes);
    }
    pipeline_done(&writes);
    pipeline_done(&pipeline);
    if (rc == NG_OK) {
        redis->fill_at = next;
    }
    return rc;
}

/* A cursor holds for one server: with the next one the walk begins again. */
static bool fill_same_server(struct redis *redis)
{
    uint64_t turn = pool_turn(redis->pool);
    bool same = turn == redis->fill_turn;
    if (!same) {
        redis->fill_turn = turn;
        redis->fill_at = 0;
    }
    return same;
}

static struct ng_str fill_key(const struct redis *redis, struct ng_call *call)
{
    return redis_key(redis, call, WORD("shared"), REDIS_WORDS, str_make(NULL, 0));
}

/* Goes on with the walk for a moment. *ret_done: it is complete. */
static int fill_some(struct redis *redis, struct ng_call *call, bool *ret_done)
{
    int64_t until = clock_monotonic_ns() + FILL_NS;
    int rc = NG_OK;
    bool done = false;
    do {
        (void)fill_same_server(redis);
        rc = fill_page(redis, call);
        done = fill_same_server(redis) && rc == NG_OK && redis->fill_at == 0;
    } while (rc == NG_OK && !done && clock_monotonic_ns() < until);
    if (done) {
        rc = REDIS_DO(redis, call, NULL, WORD("SET"), fill_key(redis, call),
                      WORD(REDIS_WORDS_VERSION));
        *ret_done = rc == NG_OK;
    }
    return rc;
}

int redis_fill(struct redis *redis, struct ng_call *call)
{
    struct ng_str version = {NULL, 0};
    if (atomic_load(&redis->filled) || atomic_flag_test_and_set(&redis->filling)) {
        return NG_OK;
    }
    int rc = redis_get(redis, call, fill_key(redis, call), &version);
    bool done = rc == NG_OK && str_is(version, REDIS_WORDS_VERSION);
    if (rc == NG_OK && !done) {
        rc = fill_some(redis, call, &done);
    }
    atomic_store(&redis->filled, done);
    if (rc != NG_OK && !atomic_exchange(&redis->fill_failed, true)) {
        call->host->log(call, NG_LOG_WARNING,
                        "redis: entries of an earlier version cannot be given their words; "
                        "until then recall does not use RediSearch");
    } else if (rc == NG_OK) {
        atomic_store(&redis->fill_failed, false);
    }
    atomic_flag_clear(&redis->filling);
    return rc;
}
