/* SPDX-License-Identifier: MIT */
/* checkpoint.c - stores snapshots by their id and lists them. */
#include <stdlib.h>

#include "redis.h"

/* KEYS: the checkpoint, order, heads. ARGV: JSON, id, now, head. Checkpoints are ordered by the
 * time of their first write, made strictly increasing. */
static const char checkpoint_script[] =
    "local score = tonumber(ARGV[3])\n"
    "local last = tonumber(redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or '')\n"
    "if last and last >= score then score = last + 1 end\n"
    "redis.call('SET', KEYS[1], ARGV[1])\n"
    "redis.call('ZADD', KEYS[2], 'NX', string.format('%.0f', score), ARGV[2])\n"
    "redis.call('HSET', KEYS[3], ARGV[2], ARGV[4])\n"
    "return 1\n";

/* The members that are not containers: a list shows these. */
static struct ng_str checkpoint_head(struct ng_call *call, const struct ng_value *body)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    struct ng_str none = {NULL, 0};
    if (writer == NULL) {
        return none;
    }
    host->json_object(writer);
    const struct ng_value *member = host->json_first(body);
    for (; member != NULL; member = host->json_next(member)) {
        enum ng_type type = host->json_type(member);
        if (type != NG_TYPE_ARRAY && type != NG_TYPE_OBJECT) {
            host->json_name_str(writer, host->json_key(member));
            host->json_copy(writer, member);
        }
    }
    host->json_end(writer);
    return host->json_result(writer);
}

int redis_checkpoint_put(void *journal, struct ng_call *call, struct ng_str space,
                         struct ng_str id, struct ng_str json)
{
    struct redis *redis = journal;
    const struct ng_value *body = NULL;
    struct ng_str none = {NULL, 0};
    int rc = call->host->json_parse(call, json, &body);
    if (rc == NG_EINTERNAL) {
        return rc; /* no memory */
    }
    if (rc != NG_OK || call->host->json_type(body) != NG_TYPE_OBJECT) {
        return ng_fail(call, NG_EINVAL, "a checkpoint must be a JSON object");
    }
    id = str_or(id, WORD(""));
    return REDIS_DO(redis, call, NULL, WORD("EVAL"), WORD(checkpoint_script), WORD("3"),
                    redis_key(redis, call, space, REDIS_CHECKPOINT, id),
                    redis_key(redis, call, space, REDIS_CHECKPOINTS, none),
                    redis_key(redis, call, space, REDIS_HEADS, none), json, id,
                    redis_number(call, call->host->now_ms()), checkpoint_head(call, body));
}

int redis_checkpoint_get(void *journal, struct ng_call *call, struct ng_str space,
                         struct ng_str id, struct ng_str *ret_json)
{
    struct ng_str key = redis_key(journal, call, space, REDIS_CHECKPOINT, id);
    int rc = redis_get(journal, call, key, ret_json);
    if (rc == NG_OK && ret_json->data == NULL) {
        rc = ng_fail(call, NG_ENOTFOUND, "there is no checkpoint '%.*s'", (int)id.len, id.data);
    }
    return rc;
}

struct checkpoint_list {
    struct redis *redis;
    struct ng_call *call;
    struct ng_str space, heads;
    ng_row_fn *row;
    void *user;
};

/* `order`: ids and scores in turn. *ret_stopped: the callback wants no more. */
static int list_page(const struct checkpoint_list *list, const redisReply *order,
                     bool *ret_stopped)
{
    struct ng_call *call = list->call;
    size_t count = order->elements / 2;
    struct ng_str *words = ng_alloc(call, (count + 2) * sizeof(*words));
    struct pipeline pipeline;
    if (words == NULL) {
        return redis_no_memory(call);
    }
    words[0] = WORD("HMGET");
    words[1] = list->heads;
    for (size_t i = 0; i < count; i++) {
        words[i + 2] = redis_text(order->element[2 * i]);
        if (words[i + 2].data == NULL || redis_text(order->element[2 * i + 1]).data == NULL) {
            return pool_fail_reply(list->redis->pool, call, order);
        }
    }
    pipeline_init(&pipeline, list->redis->pool, call);
    pipeline_add(&pipeline, words, count + 2);
    int rc = pipeline_run_all(&pipeline);
    const redisReply *heads = pipeline_reply(&pipeline, 0);
    if (rc == NG_OK && (heads->type != REDIS_REPLY_ARRAY || heads->elements != count)) {
        rc = pool_fail_reply(list->redis->pool, call, heads);
    }
    for (size_t i = 0; rc == NG_OK && i < count && !*ret_stopped; i++) {
        struct ng_str head = redis_text(heads->element[i]);
        if (head.data == NULL) {
            head = ng_str_of("{}");
        }
        int64_t time_ms = strtoll(redis_text(order->element[2 * i + 1]).data, NULL, 10);
        struct ng_doc doc = {
            .size = sizeof(doc),
            .key = {ng_str_of("checkpoints"), list->space, words[i + 2]},
            .revision = 1,
            .json = head,
            .created_ms = time_ms,
            .updated_ms = time_ms,
        };
        *ret_stopped = list->row(list->user, &doc) != 0;
    }
    pipeline_done(&pipeline);
    return rc;
}

int redis_checkpoint_list(void *journal, struct ng_call *call, struct ng_str space,
                          ng_row_fn *row, void *user)
{
    struct redis *redis = journal;
    struct ng_str none = {NULL, 0};
    struct ng_str order = redis_key(redis, call, space, REDIS_CHECKPOINTS, none);
    struct checkpoint_list list = {
        .redis = redis,
        .call = call,
        .space = space,
        .heads = redis_key(redis, call, space, REDIS_HEADS, none),
        .row = row,
        .user = user,
    };
    bool stopped = false;
    int rc = NG_OK;
    for (int64_t at = 0; rc == NG_OK && !stopped; at += REDIS_PAGE) {
        struct pipeline pipeline;
        pipeline_init(&pipeline, redis->pool, call);
        PIPELINE_ADD(&pipeline, WORD("ZREVRANGE"), order, redis_number(call, at),
                     redis_number(call, at + REDIS_PAGE - 1), WORD("WITHSCORES"));
        rc = pipeline_run_all(&pipeline);
        const redisReply *page = pipeline_reply(&pipeline, 0);
        size_t found = 0;
        if (rc == NG_OK) {
            found = page->elements / 2;
        }
        if (found > 0) {
            rc = list_page(&list, page, &stopped);
        }
        stopped = stopped || found < REDIS_PAGE;
        pipeline_done(&pipeline);
    }
    return rc;
}
