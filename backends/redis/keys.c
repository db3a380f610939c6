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

int redis_check_memory(struct ng_call *call, struct ng_str text)
{
    if (text.data != NULL) {
        return NG_OK;
    }
    return redis_no_memory(call);
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

struct ng_str redis_key(const struct redis *redis, struct ng_call *call, struct ng_str space,
                        const char *name, struct ng_str tail)
{
    char folder[KEY_SPACE_SIZE] = "";
    bool other = !str_is(space, "shared");
    struct ng_str none = {NULL, 0};
    if (other && !key_space(space, folder)) {
        (void)ng_fail(call, NG_EINVAL, "the name of the space is longer than %d bytes",
                      NG_SPACE_MAX);
        return none;
    }
    const char *parts[] = {"space:", folder, ":", name};
    if (!other) {
        parts[0] = "";
        parts[2] = "";
    }
    size_t len = redis->prefix.len + tail.len;
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        len += strlen(parts[i]);
    }
    char *key = ng_alloc(call, len + 1);
    if (key == NULL) {
        (void)redis_no_memory(call);
        return none;
    }
    size_t at = redis->prefix.len;
    memcpy(key, redis->prefix.data, at);
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        size_t part = strlen(parts[i]);
        memcpy(key + at, parts[i], part);
        at += part;
    }
    if (tail.len > 0) {
        memcpy(key + at, tail.data, tail.len);
    }
    key[len] = '\0';
    struct ng_str made = {key, len};
    return made;
}

struct ng_str redis_number(struct ng_call *call, int64_t number)
{
    return call->host->format(call, "%lld", (long long)number);
}

struct ng_str redis_copy(struct ng_call *call, struct ng_str text)
{
    char *copy = ng_alloc(call, text.len + 1);
    struct ng_str made = {copy, 0};
    if (copy != NULL) {
        if (text.len > 0) {
            memcpy(copy, text.data, text.len);
        }
        copy[text.len] = '\0';
        made.len = text.len;
    }
    return made;
}

uint32_t redis_limit(uint32_t limit)
{
    if (limit == 0) {
        return REDIS_ROWS_DEFAULT;
    }
    return u32_min(limit, REDIS_ROWS_MAX);
}

int redis_get(struct redis *redis, struct ng_call *call, struct ng_str key, struct ng_str *ret)
{
    struct pipeline pipeline;
    if (key.data == NULL) {
        return NG_EINTERNAL;
    }
    pipeline_init(&pipeline, redis->pool, call);
    PIPELINE_ADD(&pipeline, WORD("GET"), key);
    int rc = pipeline_run_all(&pipeline);
    if (rc == NG_OK) {
        *ret = redis_text(pipeline_reply(&pipeline, 0));
    }
    if (rc == NG_OK && ret->data != NULL) {
        *ret = redis_copy(call, *ret);
        rc = redis_check_memory(call, *ret);
    }
    pipeline_done(&pipeline);
    return rc;
}
