/* SPDX-License-Identifier: MIT */
/* mcp_ask.c - the older era: rounds of questions that wait for the client's responses, one
 * thread that ends those which wait too long. */
#include "mcp_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "mcp_input.h"

#define ROUND_MEMORY_MAX ((size_t)64 * 1024 * 1024)
#define ASK_TEXT_MAX 512

struct round_question {
    struct mcp_question question; /* first */
    struct mcp_round *round;
    struct ng_str key;
    enum ng_ask_kind kind;
    struct buf text; /* the request */
};

/* One run's questions. */
struct mcp_round {
    struct mcp_exchange *exchange;
    struct arena arena;       /* the answers; under the session's lock */
    struct ng_value *answers; /* an object; earlier rounds' first */
    struct round_question *questions;
    size_t count, left;
    bool late;                 /* under asks->lock */
    char failed[ASK_TEXT_MAX]; /* the client could not answer: the sentence */
    int64_t until_ms;          /* under asks->lock, as the list */
    struct mcp_round *prev, *next;
};

struct mcp_asks {
    struct gateway *gateway;
    struct mcp_seal *seal;
    void (*tick)(void *user);
    void *tick_user;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, stopping;
    int64_t shift_ms;
    size_t waiting;
    struct mcp_round *rounds;
};

/* ---- what is shared ---- */

int mcp_asks_new(struct gateway *gateway, void (*tick)(void *user), void *user,
                 struct mcp_asks **ret)
{
    struct mcp_asks *asks = alloc_zeroed(1, sizeof(*asks));
    if (asks == NULL) {
        return NG_EINTERNAL;
    }
    asks->gateway = gateway;
    asks->tick = tick;
    asks->tick_user = user;
    int rc = mcp_seal_new(gateway->data_dir, &asks->seal);
    if (rc != NG_OK) {
        free(asks);
        return rc;
    }
    (void)pthread_mutex_init(&asks->lock, NULL);
    pthread_condattr_t monotonic; /* the time of day may be set back by hours */
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&asks->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    *ret = asks;
    return NG_OK;
}

void mcp_asks_free(struct mcp_asks *asks)
{
    if (asks == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&asks->lock);
    asks->stopping = true;
    (void)pthread_cond_broadcast(&asks->changed);
    (void)pthread_mutex_unlock(&asks->lock);
    if (asks->started) {
        (void)pthread_join(asks->thread, NULL);
    }
    (void)pthread_cond_destroy(&asks->changed);
    (void)pthread_mutex_destroy(&asks->lock);
    mcp_seal_free(asks->seal);
    free(asks);
}

const struct mcp_seal *mcp_asks_seal(const struct mcp_asks *asks)
{
    return asks->seal;
}

static int64_t asks_now_ms(const struct mcp_asks *asks)
{
    return clock_monotonic_ns() / 1000000 + asks->shift_ms;
}

static void end_late(struct mcp_asks *asks)
{
    int64_t now = asks_now_ms(asks);
    for (struct mcp_round *round = asks->rounds; round != NULL; round = round->next) {
        if (round->until_ms <= now) {
            round->late = true;
            mcp_wait_wake(round->exchange); /* it leaves the list on another thread */
        }
    }
}

static void *asks_run(void *user)
{
    struct mcp_asks *asks = user;
    (void)pthread_mutex_lock(&asks->lock);
    while (!asks->stopping) {
        struct timespec until;
        end_late(asks);
        (void)pthread_mutex_unlock(&asks->lock);
        if (asks->tick != NULL) {
            asks->tick(asks->tick_user);
        }
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += MCP_ASK_TICK_MS / 1000;
        (void)pthread_mutex_lock(&asks->lock);
        if (!asks->stopping) {
            (void)pthread_cond_timedwait(&asks->changed, &asks->lock, &until);
        }
    }
    (void)pthread_mutex_unlock(&asks->lock);
    return NULL;
}

void mcp_asks_start(struct mcp_asks *asks)
{
    (void)pthread_mutex_lock(&asks->lock);
    if (!asks->started && !asks->stopping) {
        asks->started = pthread_create(&asks->thread, NULL, asks_run, asks) == 0;
    }
    (void)pthread_mutex_unlock(&asks->lock);
}

void mcp_asks_age(struct mcp_asks *asks, int64_t ms)
{
    (void)pthread_mutex_lock(&asks->lock);
    asks->shift_ms += ms;
    (void)pthread_cond_broadcast(&asks->changed);
    (void)pthread_mutex_unlock(&asks->lock);
}

static bool enter(struct mcp_asks *asks, struct mcp_round *round)
{
    mcp_asks_start(asks);
    (void)pthread_mutex_lock(&asks->lock);
    bool room = asks->waiting < MCP_ASK_WAITING_MAX && asks->started;
    if (room) {
        asks->waiting++;
        round->until_ms = asks_now_ms(asks) + MCP_ASK_WAIT_MS;
        round->next = asks->rounds;
        if (round->next != NULL) {
            round->next->prev = round;
        }
        asks->rounds = round;
    }
    (void)pthread_mutex_unlock(&asks->lock);
    return room;
}

static void leave(struct mcp_asks *asks, struct mcp_round *round)
{
    (void)pthread_mutex_lock(&asks->lock);
    if (round->next != NULL) {
        round->next->prev = round->prev;
    }
    if (round->prev != NULL) {
        round->prev->next = round->next;
    } else {
        asks->rounds = round->next;
    }
    asks->waiting--;
    (void)pthread_mutex_unlock(&asks->lock);
}

/* ---- a round ---- */

static void free_round(struct mcp_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        buf_done(&round->questions[i].text);
    }
    arena_done(&round->arena);
    free(round->questions);
    free(round);
}

static void release_round(void *object)
{
    free_round(object);
}

static bool add_answer(struct mcp_round *round, struct ng_str key, const struct ng_value *value)
{
    struct ng_value *copy = json_clone(&round->arena, value);
    struct ng_str name = arena_copy(&round->arena, key);
    if (copy == NULL || name.data == NULL) {
        return false;
    }
    copy->key = name;
    copy->next = round->answers->first;
    round->answers->first = copy;
    round->answers->count++;
    return true;
}

static void cannot_answer(struct mcp_round *round, const struct round_question *question,
                          const struct ng_value *error)
{
    const struct ng_value *message = json_get(error, "message");
    struct ng_str text = message != NULL && message->type == NG_TYPE_STRING
                             ? utf8_cut(message->text, ASK_TEXT_MAX / 2)
                             : ng_str_of("it gave no reason");
    (void)snprintf(round->failed, sizeof(round->failed),
                   "the client could not answer `%s`: %.*s", mcp_input_method(question->kind),
                   (int)text.len, text.data);
}

/* In the session's lock. */
static void answered(struct mcp_question *asked, const struct ng_value *message)
{
    struct round_question *question = (struct round_question *)(void *)asked;
    struct mcp_round *round = question->round;
    const struct ng_value *result = json_get(message, "result");
    const struct ng_value *error = json_get(message, "error");
    bool ok = true;
    if (result != NULL && call_answer_fits(question->kind, result)) {
        ok = add_answer(round, question->key, result);
    } else if (result != NULL) {
        (void)snprintf(round->failed, sizeof(round->failed),
                       "the client's answer to `%s` is not of the form that MCP gives it",
                       mcp_input_method(question->kind));
    } else if (question->kind == NG_ASK_FORM || question->kind == NG_ASK_URL) {
        const struct ng_value *declined = NULL;
        struct json_error fault;
        ok = json_parse(&round->arena, ng_str_of("{\"action\":\"decline\"}"), 4, &declined,
                        &fault) == NG_OK &&
             add_answer(round, question->key, declined);
    } else {
        cannot_answer(round, question, error);
    }
    if (!ok) {
        (void)snprintf(round->failed, sizeof(round->failed),
                       "the gateway ran out of memory while the client answered");
    }
    round->left--;
    if (round->left == 0 || round->failed[0] != '\0') {
        mcp_wait_wake(round->exchange);
    }
}

static bool copy_answers(struct mcp_round *round, const struct ng_value *earlier)
{
    bool ok = true;
    const struct ng_value *at = earlier == NULL ? NULL : earlier->first;
    for (; at != NULL && ok; at = at->next) {
        ok = add_answer(round, at->key, at);
    }
    return ok;
}

static bool add_question(struct mcp_round *round, const struct ask *ask)
{
    struct round_question *question = &round->questions[round->count++];
    buf_init(&question->text, ask->request.len + ASK_TEXT_MAX);
    question->round = round;
    question->question.answered = answered;
    question->kind = ask->kind;
    question->key = arena_copy(&round->arena, ask->key);
    return question->key.data != NULL;
}

static struct mcp_round *new_round(struct mcp_exchange *exchange, size_t count)
{
    struct mcp_round *round = alloc_zeroed(1, sizeof(*round));
    if (round == NULL) {
        return NULL;
    }
    arena_init(&round->arena, ROUND_MEMORY_MAX);
    round->exchange = exchange;
    round->questions = alloc_zeroed(count, sizeof(*round->questions));
    round->answers = arena_zalloc(&round->arena, sizeof(*round->answers));
    bool ok = round->questions != NULL && round->answers != NULL;
    if (ok) {
        round->answers->type = NG_TYPE_OBJECT;
        ok = copy_answers(round, exchange->call->ask_answers);
    }
    for (const struct ask *ask = exchange->call->asks; ask != NULL && ok; ask = ask->next) {
        ok = add_question(round, ask);
    }
    if (!ok) {
        free_round(round);
        return NULL;
    }
    round->left = round->count;
    return round;
}

/* ---- its end ---- */

static void withdraw(struct mcp_round *round, const char *reason)
{
    struct mcp_exchange *exchange = round->exchange;
    for (size_t i = 0; i < round->count; i++) {
        struct mcp_question *question = &round->questions[i].question;
        if (!mcp_session_withdraw(exchange->job->session, question) || reason == NULL) {
            continue;
        }
        char text[ASK_TEXT_MAX];
        (void)snprintf(text, sizeof(text),
                       "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
                       "{\"requestId\":%llu,\"reason\":\"%s\"}}",
                       (unsigned long long)question->id, reason);
        exchange->job->face->notify(exchange->job, ng_str_of(text));
    }
}

/* On a worker: all answered, failed, late, or taken back. */
static void round_over(struct mcp_exchange *exchange)
{
    struct mcp_round *round = exchange->wait_user;
    struct call *call = exchange->call;
    bool cancelled = atomic_load(&call->cancelled);
    bool gone = mcp_session_has_ended(exchange->job->session);
    leave(exchange->job->asks, round);
    bool complete = !cancelled && round->failed[0] == '\0' && round->left == 0;
    withdraw(round, complete               ? NULL
                    : !gone && round->late ? "it took too long"
                                           : "the answer is not needed any more");
    if (complete) {
        struct ng_value *answers = round->answers;
        /* With the job: the code's answers point into it. */
        if (call_pin(exchange->job->call, release_round, round) == NG_OK) {
            mcp_run_again(exchange, answers);
        } else {
            mcp_run_fail(exchange, NG_EINTERNAL, "the gateway ran out of memory");
        }
        return;
    }
    if (cancelled) {
        mcp_run_fail(exchange, NG_ECANCELLED,
                     "the call was cancelled while it waited for an answer");
    } else if (round->failed[0] != '\0') {
        mcp_run_fail(exchange, NG_EFAILED, round->failed);
    } else if (gone) {
        mcp_run_fail(exchange, NG_EFAILED,
                     "the client went away before it answered what was asked");
    } else {
        mcp_run_fail(exchange, NG_ETIMEOUT,
                     "nobody answered what was asked within ten minutes");
    }
    free_round(round);
}

/* ---- asking ---- */

static bool print_questions(struct mcp_round *round)
{
    struct mcp_session *session = round->exchange->job->session;
    const struct ask *ask = round->exchange->call->asks;
    bool ok = true;
    for (size_t i = 0; i < round->count && ok; i++, ask = ask->next) {
        struct round_question *question = &round->questions[i];
        ok = mcp_session_ask(session, &question->question);
        buf_printf(&question->text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,",
                   (unsigned long long)question->question.id);
        mcp_input_print(&question->text, ask);
        buf_add_char(&question->text, '}');
        ok = ok && question->text.rc == NG_OK;
    }
    return ok;
}

/* What is sent must outlive the round, which may be over as soon as the first is sent. */
static void send_questions(struct mcp_job *job, struct buf *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        job->face->ask(job, buf_str(&texts[i]));
        buf_done(&texts[i]);
    }
}

static int fail_now(struct mcp_exchange *exchange, const char *sentence)
{
    mcp_run_set_result(exchange, NG_EFAILED, sentence);
    return NG_OK;
}

static int ask_client(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    struct buf texts[MCP_ASK_QUESTIONS_MAX];
    size_t count = 0;
    for (const struct ask *ask = exchange->call->asks; ask != NULL; ask = ask->next) {
        count++;
    }
    if (count > MCP_ASK_QUESTIONS_MAX) {
        return fail_now(exchange, "more is to be asked at once than a client is asked");
    }
    struct mcp_round *round = new_round(exchange, count);
    if (round == NULL) {
        return fail_now(exchange, "the gateway ran out of memory");
    }
    if (!print_questions(round) || !enter(job->asks, round)) {
        withdraw(round, NULL);
        free_round(round);
        return fail_now(exchange, "the client cannot be asked now: too many calls wait for "
                                  "answers already, or its session has ended");
    }
    for (size_t i = 0; i < count; i++) {
        texts[i] = round->questions[i].text;
        buf_init(&round->questions[i].text, 0);
    }
    struct call *call = job->call;
    call_ref(call); /* the job lies in it, and may be done before all is sent */
    mcp_wait(exchange, round_over, round);
    send_questions(job, texts, count);
    call_unref(call);
    return NG_PENDING;
}

int mcp_ask(struct mcp_exchange *exchange, bool *ret_answered)
{
    struct mcp_job *job = exchange->job;
    *ret_answered = false;
    if (++exchange->rounds > MCP_ASK_ROUNDS_MAX) {
        return fail_now(exchange, "it asked again and again; that is given up here");
    }
    if (mcp_is_stateless(exchange->terms.version)) {
        return mcp_input_answer(exchange, ret_answered);
    }
    if (job->session == NULL || job->face->ask == NULL || job->asks == NULL) {
        return fail_now(exchange, "the client cannot be asked: it has no session");
    }
    return ask_client(exchange);
}
