/* SPDX-License-Identifier: MIT */
/* test_redis.c - the journal in Redis: the contract, on each kind of server that was named. */
#include "journal_contract.h"

#include <stdio.h>

#include "redis_fixture.h"

/* SKIP_RETURN_CODE of the test. */
#define SKIPPED 77

static const char *const variables[] = {
    "NOTEGATE_TEST_REDIS_URI",
    "NOTEGATE_TEST_REDIS_NEW_URI",
    "NOTEGATE_TEST_REDIS_SEARCH_URI",
    "NOTEGATE_TEST_REDIS_CLUSTER_URI",
};

/* The one in use, for the suite's preparation between its tests. */
static struct redis_fixture fixture;

static void prepare(void)
{
    redis_fixture_clear(&fixture);
}

int main(void)
{
    int failed = 0;
    int missing = 0;
    for (size_t i = 0; i < NG_COUNT(variables); i++) {
        if (!redis_fixture_open(&fixture, variables[i])) {
            (void)printf("%s names no server: skipped\n", variables[i]);
            missing++;
            continue;
        }
        failed += journal_contract_on(variables[i], fixture.sets, prepare);
        redis_fixture_close(&fixture);
    }
    return failed != 0 ? 1 : missing > 0 ? SKIPPED : 0;
}
