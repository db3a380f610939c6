/* SPDX-License-Identifier: MIT */
/* timeline.c - a day's list, newest first, and the long-term summary. */
#include "redis.h"

/* ---- a day ---- */

struct timeline_state {
    struct redis *redis;
    struct ng_call *call;
    const struct ng_timeline *wanted;
    struct ng_str key;
    uint64_t skip;
    uint32_t left;
    ng_entry_row_fn *row;
    void *user;
};

/* The lines from `first` to `last`, newest first. *ret_go_on: the caller wants more. */
static int timeline_page(struct timeline_state *state, int64_t first, int64_t last,
                         bool *ret_go_on)
{
    struct ng_call *call = state->call;
    struct pipeline pipeline;
    pipeline_init(&pipeline, state->redis->pool, call);
    PIPELINE_ADD(&pipeline, WORD("LRANGE"), state->key, redis_number(call, first),
                 redis_number(call, last));
    int rc = pipeline_run_all(&pipeline);
    const redisReply *lines = pipeline_reply(&pipeline, 0);
    for (size_t i = rc == NG_OK ? lines->elements : 0; i > 0 && *ret_go_on; i--) {
        struct ng_entry entry;
        int read = redis_line_read(call, redis_text(lines->element[i - 1]),
                                   state->wanted->space, &entry);
        if (read == NG_EINTERNAL) {
            rc = read;
            break;
        }
        /* A line that is no JSON object comes from another program and cannot be shown. */
        if (read != NG_OK ||
            (state->wanted->agent.len > 0 && !str_equal(entry.agent, state->wanted->agent))) {
            continue;
        }
        if (state->skip > 0) {
            state->skip--;
            continue;
        }
        state->left--;
        *ret_go_on = state->row(state->user, &entry) == 0 && state->left > 0;
    }
    pipeline_done(&pipeline);
    return rc;
}

int redis_timeline(void *journal, struct ng_call *call, const struct ng_timeline *timeline,
                   ng_entry_row_fn *row, void *user)
{
    struct redis *redis = journal;
    struct ng_str date = timeline->date;
    if (date.len == 0) {
        date = call->host->day(call, call->host->now_ms());
    } else if (!rfc3339_is_day(date)) {
        return ng_fail(call, NG_EINVAL, "`date` is '%.*s', it must be a day as YYYY-MM-DD",
                       (int)date.len, date.data);
    }
    struct timeline_state state = {
        .redis = redis,
        .call = call,
        .wanted = timeline,
        .key = redis_key(redis, call, timeline->space, REDIS_DAY, date),
        .skip = timeline->offset,
        .left = redis_limit(timeline->limit),
        .row = row,
        .user = user,
    };
    int64_t end = 0;
    if (date.data == NULL) {
        return redis_no_memory(call);
    }
    /* Positions counted from the front stay the same while lines are appended. */
    int rc = REDIS_DO(redis, call, &end, WORD("LLEN"), state.key);
    bool go_on = true;
    while (rc == NG_OK && end > 0 && go_on) {
        int64_t first = 0;
        if (end > REDIS_PAGE) {
            first = end - REDIS_PAGE;
        }
        rc = timeline_page(&state, first, end - 1, &go_on);
        end = first;
    }
    return rc;
}

/* ---- the summary ---- */

int redis_summary(void *journal, struct ng_call *call, struct ng_str space,
                  struct ng_str *ret_text)
{
    struct ng_str none = {NULL, 0};
    return redis_get(journal, call, redis_key(journal, call, space, REDIS_SUMMARY, none),
                     ret_text);
}

int redis_set_summary(void *journal, struct ng_call *call, struct ng_str space,
                      struct ng_str text)
{
    return REDIS_DO(journal, call, NULL, WORD("SET"),
                    redis_key(journal, call, space, REDIS_SUMMARY, str_make(NULL, 0)),
                    str_or(text, WORD("")));
}
