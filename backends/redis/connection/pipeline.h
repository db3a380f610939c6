/* SPDX-License-Identifier: MIT */
/* pipeline.h - commands sent together, and their replies. */
#ifndef NOTEGATE_REDIS_PIPELINE_H
#define NOTEGATE_REDIS_PIPELINE_H

#include "pool.h"

/* One round: pipeline_add() the commands, pipeline_run(), read the replies. pipeline_done()
 * ends it, also after a failure. Every command must be repeatable without harm: if an idle
 * connection turns out to be dead, or the server changes, the round is sent again. */
struct pipeline {
    struct redis_pool *pool;
    struct ng_call *call;
    /* Set before the first round: later rounds use the same connection. A change of the server
     * fails such a round, as the rounds before it are lost. */
    bool keeps_connection;
    bool at_once; /* set before the first round: a change of the server fails the round */
    bool again;   /* the round failed, but the server is changing: it may be repeated */
    struct conn *conn;
    struct buf out; /* the commands */
    size_t count;
    redisReply **replies;
};

void pipeline_init(struct pipeline *pipeline, struct redis_pool *pool, struct ng_call *call);
/* A word that is absent (data NULL) could not be made: the run fails, with NG_EINVAL if the
 * word has a length (see redis.h). */
void pipeline_add(struct pipeline *pipeline, const struct ng_str *words, size_t count);
#define PIPELINE_ADD(pipeline, ...)                                                            \
    pipeline_add((pipeline), (const struct ng_str[]){__VA_ARGS__},                             \
                 NG_COUNT(((const struct ng_str[]){__VA_ARGS__})))
#define WORD(text) ((struct ng_str){(text), sizeof(text) - 1})
/* Sends the added commands and reads a reply to each; drops earlier replies. */
int pipeline_run(struct pipeline *pipeline);
/* As pipeline_run(), but any error reply fails the call. */
int pipeline_run_all(struct pipeline *pipeline);
const redisReply *pipeline_reply(const struct pipeline *pipeline, size_t at);
void pipeline_done(struct pipeline *pipeline);

#endif
