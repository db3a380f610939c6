/* SPDX-License-Identifier: MIT */
/* redis_fixture.h - a Redis that a test was given, looked at as redis-cli would. */
#ifndef NOTEGATE_TEST_REDIS_FIXTURE_H
#define NOTEGATE_TEST_REDIS_FIXTURE_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#define REDIS_FIXTURE_SETS 8

struct redis_fixture {
    redisContext *redis;
    char prefix[64]; /* of this program alone */
    char uri_set[512], prefix_set[96];
    const char *sets[REDIS_FIXTURE_SETS]; /* a gateway's configuration with this journal */
};

/* Of the server that the variable names; false: it names none. A server that is named and does
 * not answer ends the program. */
bool redis_fixture_open(struct redis_fixture *fixture, const char *variable);
/* Removes every key with the prefix, and the indexes over them. */
void redis_fixture_clear(struct redis_fixture *fixture);
void redis_fixture_close(struct redis_fixture *fixture);
/* A command in hiredis's form. No answer ends the program. freeReplyObject() it. */
redisReply *redis_fixture_ask(struct redis_fixture *fixture, const char *format, ...);

#endif
