/* SPDX-License-Identifier: MIT */
/* redis_fixture.c - connects to the Redis of NOTEGATE_TEST_REDIS_..., and cleans up in it. */
#include "redis_fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define FIXTURE_TIMEOUT_S 60
#define FIXTURE_PORT 6379

/* "redis://host:port" is all that tests are given. */
static redisContext *fixture_connect(const char *uri)
{
    char host[256] = "";
    const char *start = strstr(uri, "://");
    start = start == NULL ? uri : start + 3;
    size_t len = strcspn(start, ":/");
    int port = FIXTURE_PORT;
    if (len >= sizeof(host)) {
        return NULL;
    }
    memcpy(host, start, len);
    if (start[len] == ':') {
        port = (int)strtol(start + len + 1, NULL, 10);
    }
    struct timeval timeout = {.tv_sec = FIXTURE_TIMEOUT_S};
    redisContext *redis = redisConnectWithTimeout(host, port, timeout);
    if (redis != NULL && redis->err == 0) {
        (void)redisSetTimeout(redis, timeout);
    }
    return redis;
}

bool redis_fixture_open(struct redis_fixture *fixture, const char *variable)
{
    static int number;
    const char *uri = getenv(variable);
    memset(fixture, 0, sizeof(*fixture));
    if (uri == NULL || uri[0] == '\0') {
        return false;
    }
    fixture->redis = fixture_connect(uri);
    if (fixture->redis == NULL || fixture->redis->err != 0) {
        (void)fprintf(stderr, "%s is %s: %s\n", variable, uri,
                      fixture->redis == NULL ? "out of memory" : fixture->redis->errstr);
        exit(1);
    }
    bool cluster = strstr(variable, "CLUSTER") != NULL;
    (void)snprintf(fixture->prefix, sizeof(fixture->prefix),
                   "%snotegate-test-%ld-%d%s:", cluster ? "{" : "", (long)getpid(), number++,
                   cluster ? "}" : "");
    (void)snprintf(fixture->uri_set, sizeof(fixture->uri_set), "redis.uri=%s", uri);
    (void)snprintf(fixture->prefix_set, sizeof(fixture->prefix_set), "redis.prefix=%s",
                   fixture->prefix);
    fixture->sets[0] = "plugins=notebook";
    fixture->sets[1] = "journal=redis";
    fixture->sets[2] = fixture->uri_set;
    fixture->sets[3] = fixture->prefix_set;
    fixture->sets[4] = "redis.timeout=60s"; /* sanitizers and a full machine are slow */
    if (cluster) {
        fixture->sets[5] = "redis.cluster=true";
    }
    return true;
}

redisReply *redis_fixture_ask(struct redis_fixture *fixture, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = redisvCommand(fixture->redis, format, args);
    va_end(args);
    if (reply == NULL) {
        (void)fprintf(stderr, "%s: %s\n", format, fixture->redis->errstr);
        exit(1);
    }
    return reply;
}

static bool fixture_mine(const struct redis_fixture *fixture, const redisReply *name)
{
    return name->type == REDIS_REPLY_STRING &&
           strncmp(name->str, fixture->prefix, strlen(fixture->prefix)) == 0;
}

void redis_fixture_clear(struct redis_fixture *fixture)
{
    redisReply *indexes = redis_fixture_ask(fixture, "FT._LIST");
    for (size_t i = 0; i < indexes->elements; i++) {
        if (fixture_mine(fixture, indexes->element[i])) {
            freeReplyObject(
                redis_fixture_ask(fixture, "FT.DROPINDEX %s", indexes->element[i]->str));
        }
    }
    freeReplyObject(indexes);
    redisReply *keys = redis_fixture_ask(fixture, "KEYS %s*", fixture->prefix);
    for (size_t i = 0; i < keys->elements; i++) {
        freeReplyObject(redis_fixture_ask(fixture, "DEL %b", keys->element[i]->str,
                                          (size_t)keys->element[i]->len));
    }
    freeReplyObject(keys);
}

void redis_fixture_close(struct redis_fixture *fixture)
{
    if (fixture->redis != NULL) {
        redis_fixture_clear(fixture);
        redisFree(fixture->redis);
        fixture->redis = NULL;
    }
}
