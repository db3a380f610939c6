/* SPDX-License-Identifier: MIT */
/* ask.h - commands sent together, and their answers. */
#ifndef NOTEGATE_REDIS_ASK_H
#define NOTEGATE_REDIS_ASK_H

#include "link.h"

/* Words of one command. */
#define ASK_WORDS_MAX 65536

/*
 * A round: ask_add() the commands, ask_run(), look at the replies. Everything that is asked may
 * be asked again without harm, because a connection that was idle may turn out to be dead, and
 * then the round is sent once more on a new one. ask_done() ends it, also after a failure.
 */
struct ask {
    struct link *link;
    struct ng_call *call;
    bool hold; /* set before the first round: the next rounds use the same connection */
    struct link_conn *conn;
    char *out; /* the commands */
    size_t out_len, out_size;
    size_t count;
    redisReply **replies;
    bool failed; /* out of memory while adding */
};

void ask_init(struct ask *ask, struct link *link, struct ng_call *call);
void ask_add(struct ask *ask, const struct ng_str *words, size_t count);
#define ASK(ask, ...)                                                                          \
    ask_add((ask), (const struct ng_str[]){__VA_ARGS__},                                       \
            NG_COUNT(((const struct ng_str[]){__VA_ARGS__})))
#define ASK_WORD(text) ((struct ng_str){(text), sizeof(text) - 1})
/* Sends what was added and reads an answer to each; earlier replies are gone. */
int ask_run(struct ask *ask);
/* As ask_run(); each answer that is an error fails the call. */
int ask_run_all(struct ask *ask);
const redisReply *ask_reply(const struct ask *ask, size_t at);
void ask_done(struct ask *ask);

bool redis_error_is(const redisReply *reply, const char *code);
/* The bytes of a string; {NULL, 0}: it is none. */
struct ng_str redis_text(const redisReply *reply);

#endif
