/* SPDX-License-Identifier: MIT */
/* pipeline.h - commands sent together, and their answers. */
#ifndef NOTEGATE_REDIS_PIPELINE_H
#define NOTEGATE_REDIS_PIPELINE_H

#include "pool.h"

/* Words of one command. */
#define PIPELINE_WORDS_MAX 65536

/*
 * A round: pipeline_add() the commands, pipeline_run(), look at the replies. Everything that is
 * asked may be asked again without harm, because a connection that was idle may turn out to be
 * dead, and then the round is sent once more on a new one. pipeline_done() ends it, also after
 * a failure.
 */
struct pipeline {
    struct redis_pool *pool;
    struct ng_call *call;
    bool keeps_connection; /* set before the first round: the next rounds use the same
                              connection */
    struct pool_conn *conn;
    char *out; /* the commands */
    size_t out_len, out_size;
    size_t count;
    redisReply **replies;
    bool failed; /* out of memory while adding */
};

void pipeline_init(struct pipeline *pipeline, struct redis_pool *pool, struct ng_call *call);
void pipeline_add(struct pipeline *pipeline, const struct ng_str *words, size_t count);
#define PIPELINE_ADD(pipeline, ...)                                                            \
    pipeline_add((pipeline), (const struct ng_str[]){__VA_ARGS__},                             \
                 NG_COUNT(((const struct ng_str[]){__VA_ARGS__})))
#define WORD(text) ((struct ng_str){(text), sizeof(text) - 1})
/* Sends what was added and reads an answer to each; earlier replies are gone. */
int pipeline_run(struct pipeline *pipeline);
/* As pipeline_run(); each answer that is an error fails the call. */
int pipeline_run_all(struct pipeline *pipeline);
const redisReply *pipeline_reply(const struct pipeline *pipeline, size_t at);
void pipeline_done(struct pipeline *pipeline);

bool redis_error_is(const redisReply *reply, const char *code);
/* The bytes of a string; {NULL, 0}: it is none. */
struct ng_str redis_text(const redisReply *reply);

#endif
