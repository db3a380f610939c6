/* SPDX-License-Identifier: MIT */
/* mcp_client_request.c - the handshake versions: rounds of questions that wait for the client's
 * responses, one thread that ends those which wait too long. */
#include "mcp_client_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
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
    bool late;                 /* under requests->lock */
    char failed[ASK_TEXT_MAX]; /* the client could not answer: the sentence */
    int64_t until_ms;          /* under requests->lock, as the list */
    LIST_ENTRY(mcp_round) link;
};

struct mcp_client_requests {
    struct gateway *gateway;
    struct mcp_seal *seal;
    void (*tick)(void *user);
    void *tick_user;
    struct lock lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, stopping;
    int64_t shift_ms;
    size_t waiting;
    LIST_HEAD(, mcp_round) rounds;
};

/* ---- shared ---- */

int mcp_client_requests_new(struct gateway *gateway, void (*tick)(void *user), void *user,
                            struct mcp_client_requests **ret)
{
    struct mcp_client_requests *requests = alloc_zeroed(1, sizeof(*requests));
    if (requests == NULL) {
        return NG_EINTERNAL;
    }
    requests->gateway = gateway;
    requests->tick = tick;
    requests->tick_user = user;
    int rc = mcp_seal_new(gateway->data_dir, &requests->seal);
    if (rc != NG_OK) {
        free(requests);
        return rc;
    }
    mcp_seal_share(requests->seal, gateway->cluster);
    lock_init(&requests->lock, LOCK_CLIENT_REQUEST);
    lock_cond_init(&requests->changed);
    *ret = requests;
    return NG_OK;
}

void mcp_client_requests_free(struct mcp_client_requests *requests)
{
    if (requests == NULL) {
        return;
    }
    lock_take(&requests->lock);
    requests->stopping = true;
    (void)pthread_cond_broadcast(&requests->changed);
    lock_release(&requests->lock);
    if (requests->started) {
        (void)pthread_join(requests->thread, NULL);
    }
    (void)pthread_cond_destroy(&requests->changed);
    lock_done(&requests->lock);
    mcp_seal_free(requests->seal);
    free(requests);
}

const struct mcp_seal *mcp_client_requests_seal(const struct mcp_client_requests *requests)
{
    return requests->seal;
}

static int64_t requests_now_ms(const struct mcp_client_requests *requests)
{
    return clock_monotonic_ns() / 1000000 + requests->shift_ms;
}

static void end_late(struct mcp_client_requests *requests)
{
    int64_t now = requests_now_ms(requests);
    for (struct mcp_round *round = LIST_FIRST(&requests->rounds); round != NULL;
         round = LIST_NEXT(round, link)) {
        if (round->until_ms <= now) {
            round->late = true;
            mcp_wait_wake(round->exchange); /* it leaves the list on another thread */
        }
    }
}

static void *requests_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-mcp-requests");
    struct mcp_client_requests *requests = user;
    lock_take(&requests->lock);
    while (!requests->stopping) {
        end_late(requests);
        lock_release(&requests->lock);
        if (requests->tick != NULL) {
            requests->tick(requests->tick_user);
        }
        struct timespec until = clock_deadline(MCP_CLIENT_REQUEST_TICK_MS);
        lock_take(&requests->lock);
        if (!requests->stopping) {
            (void)lock_wait_until(&requests->changed, &requests->lock, &until);
        }
    }
    lock_release(&requests->lock);
    return NULL;
}

void mcp_client_requests_start(struct mcp_client_requests *requests)
{
    lock_take(&requests->lock);
    if (!requests->started && !requests->stopping) {
        requests->started =
            pthread_create(&requests->thread, NULL, requests_run, requests) == 0;
    }
    lock_release(&requests->lock);
}

void mcp_client_requests_age(struct mcp_client_requests *requests, int64_t ms)
{
    lock_take(&requests->lock);
    requests->shift_ms += ms;
    (void)pthread_cond_broadcast(&requests->changed);
    lock_release(&requests->lock);
}

static bool enter(struct mcp_client_requests *requests, struct mcp_round *round)
{
    mcp_client_requests_start(requests);
    lock_take(&requests->lock);
    bool room = requests->waiting < MCP_CLIENT_REQUEST_WAITING_MAX && requests->started;
    if (room) {
        requests->waiting++;
        round->until_ms = requests_now_ms(requests) + MCP_CLIENT_REQUEST_WAIT_MS;
        LIST_INSERT_HEAD(&requests->rounds, round, link);
    }
    lock_release(&requests->lock);
    return room;
}

static void leave(struct mcp_client_requests *requests, struct mcp_round *round)
{
    lock_take(&requests->lock);
    LIST_REMOVE(round, link);
    requests->waiting--;
    lock_release(&requests->lock);
}

/* ---- a round ---- */

static void free_round(void *object)
{
    struct mcp_round *round = object;
    for (size_t i = 0; i < round->count; i++) {
        buf_done(&round->questions[i].text);
    }
    arena_done(&round->arena);
    free(round->questions);
    free(round);
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
    struct ng_str text = utf8_cut(json_get_text(error, "message"), ASK_TEXT_MAX / 2);
    if (text.data == NULL) {
        text = ng_str_of("it gave no reason");
    }
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
                       "the client's answer to `%s` does not have the form that MCP defines",
                       mcp_input_method(question->kind));
    } else if (question->kind == NG_ASK_FORM || question->kind == NG_ASK_URL) {
        const struct ng_value *declined = NULL;
        ok = json_parse(&round->arena, ng_str_of("{\"action\":\"decline\"}"), 4, &declined,
                        NULL) == NG_OK &&
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
    const struct ng_value *at = json_first(earlier);
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
        exchange->job->transport->notify(exchange->job, ng_str_of(text));
    }
}

/* On a worker: all answered, failed, late, or withdrawn. */
static void round_over(struct mcp_exchange *exchange)
{
    struct mcp_round *round = exchange->wait_user;
    struct call *call = exchange->call;
    bool cancelled = call_has(call, CALL_CANCELLED);
    bool gone = mcp_session_has_ended(exchange->job->session);
    leave(exchange->job->client_requests, round);
    bool complete = !cancelled && round->failed[0] == '\0' && round->left == 0;
    const char *why = NULL;
    if (!complete) {
        why = "the answer is not needed any more";
        if (!gone && round->late) {
            why = "it took too long";
        }
    }
    withdraw(round, why);
    if (complete) {
        struct ng_value *answers = round->answers;
        /* With the job: the code's answers point into it. */
        if (call_pin(exchange->job->call, free_round, round) == NG_OK) {
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
                     "the client disconnected before it answered the question");
    } else {
        mcp_run_fail(exchange, NG_ETIMEOUT,
                     "the client did not answer the question within ten minutes");
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

/* The texts must outlive the round, which may be over as soon as the first one is sent. */
static void send_questions(struct mcp_job *job, struct buf *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        job->transport->ask(job, buf_str(&texts[i]));
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
    struct buf texts[MCP_CLIENT_REQUEST_QUESTIONS_MAX];
    size_t count = 0;
    for (const struct ask *ask = exchange->call->asks; ask != NULL; ask = ask->next) {
        count++;
    }
    if (count > MCP_CLIENT_REQUEST_QUESTIONS_MAX) {
        return fail_now(exchange, "there are too many questions at once for one client");
    }
    struct mcp_round *round = new_round(exchange, count);
    if (round == NULL) {
        return fail_now(exchange, "the gateway ran out of memory");
    }
    if (!print_questions(round) || !enter(job->client_requests, round)) {
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

int mcp_client_request(struct mcp_exchange *exchange, bool *ret_answered)
{
    struct mcp_job *job = exchange->job;
    *ret_answered = false;
    if (++exchange->rounds > MCP_CLIENT_REQUEST_ROUNDS_MAX) {
        return fail_now(exchange, "it asked too many times; the gateway ends the call");
    }
    if (mcp_is_stateless(exchange->terms.version)) {
        return mcp_input_answer(exchange, ret_answered);
    }
    if (job->session == NULL || job->transport->ask == NULL || job->client_requests == NULL) {
        return fail_now(exchange, "the client cannot be asked: it has no session");
    }
    return ask_client(exchange);
}
