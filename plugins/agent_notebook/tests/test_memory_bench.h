/* SPDX-License-Identifier: MIT */
/* test_memory_bench.h - what the tests of memory and checkpoints share: a gateway on sqlite, in
 * memory, or with its journal in Redis where NOTEGATE_TEST_REDIS_URI names a server; answers
 * parsed. */
#ifndef NOTEGATE_TEST_MEMORY_BENCH_H
#define NOTEGATE_TEST_MEMORY_BENCH_H

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/json/json.h"

struct bench {
    struct harness harness;
    char uri[512], prefix[128];
    const char *sets[7];
    struct arena arena; /* of parsed answers */
};

static inline void bench_open(struct bench *bench, const char *documents)
{
    bool search = strcmp(documents, "documents=sqlite-search") == 0;
    const char *uri =
        getenv(search ? "NOTEGATE_TEST_REDIS_SEARCH_URI" : "NOTEGATE_TEST_REDIS_URI");
    size_t count = 0;
    bench->sets[count++] = "plugins=agent_notebook";
    bench->sets[count++] = documents;
    bench->sets[count++] = "tools.max_answer=8MiB"; /* lists of a whole day */
    if (uri != NULL && (search || strcmp(documents, "documents=sqlite-redis") == 0)) {
        static atomic_int number;
        (void)snprintf(bench->uri, sizeof(bench->uri), "redis.uri=%s", uri);
        (void)snprintf(bench->prefix, sizeof(bench->prefix), "redis.prefix=memory-%ld-%d",
                       (long)getpid(), atomic_fetch_add(&number, 1));
        bench->sets[1] = "documents=sqlite";
        bench->sets[count++] = "journal=redis";
        bench->sets[count++] = bench->uri;
        bench->sets[count++] = bench->prefix;
    }
    bench->sets[count] = NULL;
    arena_init(&bench->arena, 0);
    harness_open(&bench->harness, bench->sets);
}

static inline int setup_of(void **state, const char *documents)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    bench_open(bench, documents);
    *state = bench;
    return 0;
}

static inline int setup_sqlite(void **state)
{
    return setup_of(state, "documents=sqlite");
}

static inline int setup_memory(void **state)
{
    return setup_of(state, "documents=memory");
}

static inline int setup_redis(void **state)
{
    return setup_of(state, "documents=sqlite-redis");
}

/* Redis with its search module. */
static inline int setup_search(void **state)
{
    return setup_of(state, "documents=sqlite-search");
}

static inline int teardown(void **state)
{
    struct bench *bench = *state;
    harness_close(&bench->harness);
    arena_done(&bench->arena);
    free(bench);
    return 0;
}

/* ---- helpers ---- */

/* The answer of a call that must succeed. */
static inline const struct ng_value *ask_as(struct bench *bench, const char *agent,
                                            const char *space, const char *tool,
                                            const char *args)
{
    struct answer answer = harness_call_as(&bench->harness, agent, space, tool, args);
    const struct ng_value *body = NULL;
    struct json_error error;
    if (answer.rc != NG_OK) {
        fail_msg("%s %s: %s: %s", tool, args, answer.code, answer.message);
    }
    struct ng_str copy = arena_copy(&bench->arena, str_make(answer.text, answer.text_len));
    assert_int_equal(json_parse(&bench->arena, copy, JSON_DEPTH_DEFAULT, &body, &error), NG_OK);
    answer_free(&answer);
    return body;
}

static inline const struct ng_value *ask(struct bench *bench, const char *tool,
                                         const char *args)
{
    return ask_as(bench, "ann", NULL, tool, args);
}

static inline const struct ng_value *at(const struct ng_value *array, size_t index)
{
    assert_non_null(array);
    const struct ng_value *item = array->first;
    while (item != NULL && index-- > 0) {
        item = item->next;
    }
    assert_non_null(item);
    return item;
}

static inline void expect_member(const struct ng_value *object, const char *name,
                                 const char *want)
{
    const struct ng_value *member = json_get(object, name);
    if (member == NULL || !str_is(member->text, want)) {
        fail_msg("%s is \"%.*s\", it should be \"%s\"", name,
                 member == NULL ? 0 : (int)member->text.len,
                 member == NULL ? "" : member->text.data, want);
    }
}

static inline int64_t number(const struct ng_value *object, const char *name)
{
    int64_t value = -1;
    assert_non_null(json_get(object, name));
    assert_int_equal(json_integer(json_get(object, name), &value), NG_OK);
    return value;
}

static inline void refused(struct bench *bench, const char *tool, const char *args,
                           const char *code, const char *part)
{
    struct answer answer = harness_call_as(&bench->harness, "ann", NULL, tool, args);
    assert_int_not_equal(answer.rc, NG_OK);
    assert_string_equal(answer.code, code);
    if (part[0] != '\0' && strstr(answer.message, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", answer.message, part);
    }
    answer_free(&answer);
}

#endif
