/* SPDX-License-Identifier: MIT */
/* keys.c - names of keys, and small things about texts. */
#include <stdio.h>
#include <string.h>

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

/* A space's name, so that none is the beginning of another one's keys. */
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
    bool other = !redis_is(space, "shared");
    struct ng_str none = {NULL, 0};
    if (other && !key_space(space, folder)) {
        (void)ng_fail(call, NG_EINVAL, "the name of the space is longer than %d bytes",
                      NG_SPACE_MAX);
        return none;
    }
    const char *const parts[] = {other ? "space:" : "", folder, other ? ":" : "", name};
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
    struct ng_str made = {copy, copy == NULL ? 0 : text.len};
    if (copy != NULL) {
        if (text.len > 0) {
            memcpy(copy, text.data, text.len);
        }
        copy[text.len] = '\0';
    }
    return made;
}

bool redis_is(struct ng_str text, const char *want)
{
    return redis_equal(text, ng_str_of(want));
}

bool redis_equal(struct ng_str one, struct ng_str other)
{
    return one.len == other.len && (one.len == 0 || memcmp(one.data, other.data, one.len) == 0);
}

bool redis_date_valid(struct ng_str date)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int parts[3] = {0, 0, 0};
    size_t part = 0;
    if (date.len != 10 || date.data[4] != '-' || date.data[7] != '-') {
        return false;
    }
    for (size_t i = 0; i < date.len; i++) {
        if (i == 4 || i == 7) {
            part++;
        } else if (date.data[i] < '0' || date.data[i] > '9') {
            return false;
        } else {
            parts[part] = parts[part] * 10 + (date.data[i] - '0');
        }
    }
    int year = parts[0];
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (parts[1] < 1 || parts[1] > 12) {
        return false;
    }
    int last = days[parts[1] - 1] + (parts[1] == 2 && leap ? 1 : 0);
    return parts[2] >= 1 && parts[2] <= last;
}

uint32_t redis_limit(uint32_t limit)
{
    if (limit == 0) {
        return REDIS_ROWS_DEFAULT;
    }
    return limit > REDIS_ROWS_MAX ? REDIS_ROWS_MAX : limit;
}
