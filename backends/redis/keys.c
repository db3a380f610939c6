/* SPDX-License-Identifier: MIT */
/* keys.c - names of keys, and small string helpers. */
#include <stdio.h>
#include <string.h>

#include "core/base/minmax.h"
#include "redis.h"

/* "%XX" for each byte of a space's name. */
#define KEY_SPACE_SIZE (3 * NG_SPACE_MAX + 1)

int redis_no_memory(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "out of memory");
}

static bool key_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("._-~@", c) != NULL;
}

/* Escapes a space's name so that it is never the prefix of another space's keys. */
static bool key_space(struct ng_str space, char out[KEY_SPACE_SIZE])
{
    size_t at = 0;
    if (space.len > NG_SPACE_MAX) {
        return false;
    }
    for (size_t i = 0; i < space.len; i++) {
        char c = space.data[i];
        if (c != '\0' && key_plain(c)) {
            out[at++] = c;
        } else {
            (void)snprintf(out + at, 4, "%%%02X", (unsigned)(unsigned char)c);
            at += 3;
        }
    }
    out[at] = '\0';
    return true;
}

struct ng_str redis_join(struct ng_call *call, const struct ng_str *pieces, size_t count)
{
    struct ng_str joined = {NULL, 0};
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].data == NULL) {
            return pieces[i];
        }
        joined.len += pieces[i].len;
    }
    char *text = ng_alloc(call, joined.len + 1);
    if (text == NULL) {
        (void)redis_no_memory(call);
        return str_make(NULL, 0);
    }
    joined.data = text;
    for (size_t i = 0; i < count; i++) {
        memcpy(text, pieces[i].data, pieces[i].len);
        text += pieces[i].len;
    }
    *text = '\0';
    return joined;
}

struct ng_str redis_key(const struct redis *redis, struct ng_call *call, struct ng_str space,
                        const char *name, struct ng_str tail)
{
    char folder[KEY_SPACE_SIZE] = "";
    struct ng_str rest[] = {ng_str_of(name), str_or(tail, WORD(""))};
    if (str_is(space, "shared")) {
        return REDIS_JOIN(call, redis->prefix, rest[0], rest[1]);
    }
    if (!key_space(space, folder)) {
        (void)ng_fail(call, NG_EINVAL, "the name of the space is longer than %d bytes",
                      NG_SPACE_MAX);
        return str_make(NULL, space.len);
    }
    return REDIS_JOIN(call, redis->prefix, WORD("space:"), ng_str_of(folder), WORD(":"),
                      rest[0], rest[1]);
}

struct ng_str redis_number(struct ng_call *call, int64_t number)
{
    return call->host->format(call, "%lld", (long long)number);
}

uint32_t redis_limit(uint32_t limit)
{
    if (limit == 0) {
        return REDIS_ROWS_DEFAULT;
    }
    return u32_min(limit, REDIS_ROWS_MAX);
}

int redis_do(struct redis *redis, struct ng_call *call, const struct ng_str *words,
             size_t count, int64_t *ret_number)
{
    struct pipeline pipeline;
    pipeline_init(&pipeline, redis->pool, call);
    pipeline_add(&pipeline, words, count);
    int rc = pipeline_run_all(&pipeline);
    if (rc == NG_OK && ret_number != NULL) {
        *ret_number = pipeline_reply(&pipeline, 0)->integer;
    }
    pipeline_done(&pipeline);
    return rc;
}

int redis_get(struct redis *redis, struct ng_call *call, struct ng_str key, struct ng_str *ret)
{
    struct pipeline pipeline;
    pipeline_init(&pipeline, redis->pool, call);
    PIPELINE_ADD(&pipeline, WORD("GET"), key);
    int rc = pipeline_run_all(&pipeline);
    if (rc == NG_OK) {
        struct ng_str text = redis_text(pipeline_reply(&pipeline, 0));
        *ret = redis_join(call, &text, 1);
        if (text.data != NULL && ret->data == NULL) {
            rc = NG_EINTERNAL;
        }
    }
    pipeline_done(&pipeline);
    return rc;
}
