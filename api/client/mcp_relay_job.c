/* SPDX-License-Identifier: MIT */
/* mcp_relay_job.c - a POST and what follows it: an event stream that broke is resumed where its
 * session allows that. */
#include "mcp_relay_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/files/fd_io.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

#define RELAY_ERROR_MAX 512
#define RELAY_GONE "the client of this relay went away"
#define RELAY_CHECK "; check whether the request was carried out before you send it again"

void relay_stop_jobs(struct relay *relay)
{
    for (struct relay_job *job = LIST_FIRST(&relay->jobs); job != NULL;
         job = LIST_NEXT(job, link)) {
        atomic_store(&job->stop, true);
    }
    (void)pthread_cond_broadcast(&relay->changed);
}

/* ---- out ---- */

static void relay_write(struct relay *relay, struct ng_str line)
{
    lock_take(&relay->lock);
    if (!relay->broken && (fd_put(relay->host->out_fd, line) != NG_OK ||
                           fd_put(relay->host->out_fd, ng_str_of("\n")) != NG_OK)) {
        relay->broken = true;
        atomic_store(&relay->stop, true);
        relay_stop_jobs(relay);
    }
    lock_release(&relay->lock);
}

static void job_write(struct relay_job *job, struct ng_str text)
{
    while (text.len > 0 && strchr("\r\n", text.data[text.len - 1]) != NULL) {
        text.len--;
    }
    if (text.len > 0 && memchr(text.data, '\n', text.len) == NULL) {
        relay_write(job->relay, text);
    }
}

/* ---- requests of the gateway ---- */

static void note_asked(struct relay *relay, const char *id)
{
    size_t i = 0;
    while (i < RELAY_ASKED_MAX && relay->asked[i][0] != '\0') {
        i++;
    }
    if (i < RELAY_ASKED_MAX) {
        (void)snprintf(relay->asked[i], RELAY_ASKED_ID_MAX, "%s", id);
        (void)pthread_cond_broadcast(&relay->changed); /* wake threads that wait for room */
    }
}

void relay_was_answered(struct relay *relay, struct ng_str id)
{
    lock_take(&relay->lock);
    for (size_t i = 0; i < RELAY_ASKED_MAX; i++) {
        if (relay->asked[i][0] != '\0' && str_is(id, relay->asked[i])) {
            relay->asked[i][0] = '\0';
        }
    }
    lock_release(&relay->lock);
}

static void answer_for_client(struct relay *relay, const char *id)
{
    struct relay_job *job = relay_job_new(relay);
    if (job == NULL) {
        return;
    }
    buf_printf(
        &job->body,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32000,\"message\":\"" RELAY_GONE
        "\"}}",
        id);
    relay_message_read(buf_str(&job->body), &job->message);
    relay_job_post(job);
    relay_job_free(job);
}

void relay_answer_asked(struct relay *relay)
{
    for (size_t i = 0; i < RELAY_ASKED_MAX; i++) {
        char id[RELAY_ASKED_ID_MAX];
        lock_take(&relay->lock);
        atomic_store(&relay->input, RELAY_INPUT_ENDED);
        memcpy(id, relay->asked[i], sizeof(id));
        relay->asked[i][0] = '\0';
        lock_release(&relay->lock);
        if (id[0] != '\0') {
            answer_for_client(relay, id);
        }
    }
}

/* One message of the gateway. */
static void job_take(void *user, struct ng_str text)
{
    struct relay_job *job = user;
    struct relay *relay = job->relay;
    char id[RELAY_ASKED_ID_MAX];
    enum relay_said said = relay_message_said(text, id, sizeof(id));
    bool ended = false;
    if (said == RELAY_ANSWERS) {
        job->answered = true;
    } else if (said == RELAY_ASKS && id[0] != '\0') {
        lock_take(&relay->lock);
        ended = atomic_load(&relay->input) == RELAY_INPUT_ENDED;
        if (!ended) {
            note_asked(relay, id);
        }
        lock_release(&relay->lock);
    }
    if (ended) {
        answer_for_client(relay, id);
    } else if (job->kind != RELAY_JOB_OWN) {
        job_write(job, text);
    }
}

static int job_on_body(void *user, int status, const char *data, size_t len)
{
    struct relay_job *job = user;
    int rc;
    if (status < 400 && job->is_stream) {
        rc = relay_events_add(&job->events, data, len, job_take, job);
    } else {
        rc = buf_add(&job->answer, data, len);
    }
    if (rc != NG_OK) {
        job->lost = rc;
    }
    return rc;
}

static void job_on_header(void *user, const char *name, struct ng_str value)
{
    struct relay_job *job = user;
    if (strcmp(name, "content-type") == 0) {
        job->is_stream = value.len >= 17 && memcmp(value.data, "text/event-stream", 17) == 0;
    } else if (strcmp(name, CLIENT_GATEWAY_HEADER) == 0) {
        job->of_mcp = str_is(value, CLIENT_GATEWAY_MCP);
    } else if (strcmp(name, "mcp-session-id") == 0 && value.len < RELAY_HEADER_MAX) {
        struct relay *relay = job->relay;
        lock_take(&relay->lock);
        memcpy(relay->session, value.data, value.len);
        relay->session[value.len] = '\0';
        lock_release(&relay->lock);
    }
}

/* ---- one request ---- */

static void header_add(struct client_request *request, struct arena *arena, const char *name,
                       const char *value)
{
    if (value[0] != '\0' && request->header_count < CLIENT_HEADERS_MAX) {
        request->headers[request->header_count++] =
            text_or(arena_printf(arena, "%s: %s", name, value).data, "");
    }
}

static void job_headers(struct relay_job *job, bool resumes, struct client_request *request,
                        struct arena *arena)
{
    struct relay *relay = job->relay;
    request->headers[request->header_count++] = "Content-Type: application/json";
    request->headers[request->header_count++] = "Accept: application/json, text/event-stream";
    if (job->message.version[0] != '\0') {
        header_add(request, arena, "MCP-Protocol-Version", job->message.version);
        header_add(request, arena, "Mcp-Method", job->message.method);
        header_add(request, arena, "Mcp-Name", job->message.name);
        return;
    }
    if (job->message.is_initialize) {
        return; /* it is in no session, also where there was one before */
    }
    lock_take(&relay->lock);
    if (strcmp(job->session, relay->session) != 0) {
        memcpy(job->session, relay->session, sizeof(job->session));
        job->events.last_id[0] = '\0'; /* it was the other session's */
    }
    header_add(request, arena, "MCP-Protocol-Version", relay->version);
    header_add(request, arena, "Mcp-Session-Id", relay->session);
    if (resumes) {
        header_add(request, arena, "Last-Event-ID", job->events.last_id);
    }
    lock_release(&relay->lock);
}

/* Its session has ended, and no other session gives its answer. */
static bool job_is_left_behind(struct relay_job *job)
{
    struct relay *relay = job->relay;
    lock_take(&relay->lock);
    bool left = job->kind == RELAY_JOB_REQUEST && !job->message.is_initialize &&
                strcmp(job->session, relay->session) != 0;
    lock_release(&relay->lock);
    return left;
}

static enum client_outcome job_send(struct relay_job *job, const char *method, int *ret_status,
                                    char *error, size_t error_size)
{
    struct relay *relay = job->relay;
    struct arena arena;
    struct client_request request = relay->base;
    if (strcmp(method, "GET") == 0 && job_is_left_behind(job)) {
        return CLIENT_NOBODY;
    }
    attach_direct(relay->attach, &request);
    request.method = method;
    request.path = "/mcp";
    if (strcmp(method, "POST") == 0) {
        request.body = buf_str(&job->body);
    }
    request.on_body = job_on_body;
    request.on_header = job_on_header;
    request.user = job;
    request.stop = &job->stop;
    if (job->kind == RELAY_JOB_OWN) {
        request.stop = &relay->stop;
    }
    job->is_stream = false;
    job->of_mcp = false;
    arena_init(&arena, 0);
    job_headers(job, strcmp(method, "GET") == 0, &request, &arena);
    enum client_outcome outcome = CLIENT_BROKEN;
    if (arena.oom) {
        (void)snprintf(error, error_size, "out of memory");
    } else {
        outcome = relay->attach->client->send(&request, ret_status, error, error_size);
    }
    arena_done(&arena);
    if (*ret_status >= 200 && *ret_status < 400) { /* refusals may be of the HTTP library */
        lock_take(&relay->lock);
        relay->of_serve = !job->of_mcp;
        lock_release(&relay->lock);
    }
    return outcome;
}

/* As the gateway wants it, where it said so. */
static long job_again_ms(const struct relay_job *job)
{
    if (job->events.retry_ms <= 0) {
        return RELAY_AGAIN_MS;
    }
    return job->events.retry_ms;
}

/* False: stopped meanwhile. */
static bool job_pause(struct relay_job *job, long ms)
{
    struct relay *relay = job->relay;
    struct timespec until = clock_deadline(ms);
    lock_take(&relay->lock);
    int rc = 0;
    while (rc == 0 && !atomic_load(&job->stop)) {
        rc = lock_wait_until(&relay->changed, &relay->lock, &until);
    }
    lock_release(&relay->lock);
    return !atomic_load(&job->stop);
}

/* The gateway does not know the session, so it did nothing with the message. */
static bool job_lost_session(const struct relay_job *job, enum client_outcome outcome,
                             int status)
{
    return outcome == CLIENT_OK && status == 404 && job->message.version[0] == '\0' &&
           !job->message.is_initialize && job->session[0] != '\0';
}

/* It answers or cancels a request of the lost session: another gateway cannot use it. */
static bool job_is_of_session(const struct relay_job *job)
{
    return job->message.answers.len > 0 || job->message.cancels.len > 0;
}

/* Sends the message. A gateway that cannot be reached has not received it, so it is sent to the
 * next one. */
static enum client_outcome job_reach(struct relay_job *job, int *status, char *error,
                                     size_t error_size)
{
    buf_clear(&job->answer);
    enum client_outcome outcome = job_send(job, "POST", status, error, error_size);
    for (int i = 0;
         i < RELAY_REACH_MAX && outcome == CLIENT_NOBODY && !job_is_of_session(job) &&
         relay_find_gateway(job) && job_pause(job, ATTACH_POLL_MS);
         i++) {
        buf_clear(&job->answer);
        outcome = job_send(job, "POST", status, error, error_size);
    }
    job->reach = outcome;
    return outcome == CLIENT_NOBODY && atomic_load(&job->stop) ? CLIENT_STOPPED : outcome;
}

/* The same in a new session if the old one is gone. The gateway may go, too, before it has
 * opened that. */
static enum client_outcome job_post(struct relay_job *job, int *status, char *error,
                                    size_t error_size)
{
    enum client_outcome outcome = job_reach(job, status, error, error_size);
    for (int i = 0; i < RELAY_SESSIONS_TRIED && !job_is_of_session(job) &&
                    job_lost_session(job, outcome, *status);
         i++) {
        char lost[RELAY_HEADER_MAX];
        memcpy(lost, job->session, sizeof(lost));
        (void)relay_session_again(job->relay, lost);
        outcome = job_reach(job, status, error, error_size);
    }
    return outcome;
}

static void job_agree(struct relay_job *job)
{
    lock_take(&job->relay->lock);
    relay_message_agreed(buf_str(&job->answer), job->relay->version);
    lock_release(&job->relay->lock);
}

bool relay_job_try(struct relay_job *job)
{
    char error[RELAY_ERROR_MAX] = "";
    int status = 0;
    bool ok = job_send(job, "POST", &status, error, sizeof(error)) == CLIENT_OK && status < 300;
    if (ok && job->message.is_initialize) {
        job_agree(job);
    }
    return ok;
}

void relay_job_refuse(struct relay_job *job, const char *sentence)
{
    struct buf line;
    buf_init(&line, ATTACH_ANSWER_MAX);
    if (job->message.id.len == 0) { /* of a batch */
        buf_add_c(&job->message.id, "null");
    }
    relay_message_error(&job->message, 0, ng_str_of(sentence), &line);
    job_write(job, buf_str(&line));
    buf_done(&line);
}

/* Fetches the rest of an answer whose stream ended too soon. */
static enum client_outcome job_resume(struct relay_job *job, enum client_outcome outcome,
                                      int *status, char *error, size_t error_size)
{
    bool resumable =
        job->message.id.len > 0 && job->message.version[0] == '\0' && job->is_stream;
    while (resumable && !job->answered && job->events.last_id[0] != '\0' &&
           (outcome == CLIENT_OK || outcome == CLIENT_BROKEN) && *status == 200 &&
           job_pause(job, job_again_ms(job))) {
        relay_events_restart(&job->events);
        buf_clear(&job->answer);
        outcome = job_send(job, "GET", status, error, error_size);
    }
    return outcome;
}

/* A request always gets an answer, also where the gateway gave none that names it; unless the
 * client took it back (202). */
void relay_job_post(struct relay_job *job)
{
    char error[RELAY_ERROR_MAX] = "";
    int status = 0;
    enum client_outcome outcome = job_post(job, &status, error, sizeof(error));
    bool began = outcome != CLIENT_NOBODY && status == 200;
    outcome = job_resume(job, outcome, &status, error, sizeof(error));
    if (outcome == CLIENT_OK && job->message.is_initialize && status == 200) {
        job_agree(job);
    }
    if (outcome == CLIENT_OK && status == 200) {
        relay_session_note(job->relay, job);
    }
    bool lost = outcome == CLIENT_NOBODY || job_lost_session(job, outcome, status);
    if (began && !job->answered && lost) {
        relay_job_refuse(
            job, "the gateway was restarted, or ended the session, meanwhile" RELAY_CHECK);
        return;
    }
    if (job->message.answers.len > 0 && job_lost_session(job, outcome, status)) {
        return; /* the client does not wait for it any more */
    }
    if (outcome == CLIENT_OK && !job->is_stream && job->answer.len > 0 &&
        (status < 400 || job->message.method[0] == '\0')) {
        job->answered = true;
        job_write(job, buf_str(&job->answer));
    }
    if (!job->answered && job->message.id.len > 0 && job->lost != NG_OK) {
        relay_job_refuse(job, job->lost == NG_EINTERNAL
                                  ? "out of memory for the answer; check whether the request "
                                    "was carried out before you send it again"
                                  : "the answer is too large to be passed on");
        return;
    }
    bool taken_back = outcome == CLIENT_OK && status == 202;
    if (!job->answered && job->message.id.len > 0 && outcome != CLIENT_STOPPED && !taken_back) {
        bool refused = outcome == CLIENT_OK && status >= 400;
        struct buf line;
        if (outcome == CLIENT_BROKEN) {
            size_t len = strlen(error);
            (void)snprintf(error + len, sizeof(error) - len, "%s", RELAY_CHECK);
        }
        struct ng_str reason = ng_str_of(error);
        if (refused) {
            reason = buf_str(&job->answer);
        } else if (outcome == CLIENT_OK) {
            reason = ng_str_of("the gateway ended the stream without an answer");
        }
        buf_init(&line, ATTACH_ANSWER_MAX);
        relay_message_error(&job->message, refused ? status : 0, reason, &line);
        job_write(job, buf_str(&line));
        buf_done(&line);
    }
}

/* Decides whether and when to retry. A gateway that stops or starts refuses much that it
 * accepts a moment later; one that refuses for good (a key that ended) is asked at growing
 * intervals. */
static long listen_again_ms(struct relay_job *job, enum client_outcome outcome, int status,
                            long before)
{
    char lost[RELAY_HEADER_MAX];
    memcpy(lost, job->session, sizeof(lost));
    if (outcome == CLIENT_NOBODY) {
        (void)relay_find_gateway(job);
    }
    if (outcome != CLIENT_OK || status == 200 || status == 503 ||
        (job_lost_session(job, outcome, status) && relay_session_again(job->relay, lost))) {
        return job_again_ms(job);
    }
    job->events.last_id[0] = '\0'; /* the protocol version may be the reason of the refusal */
    return i64_min(before * 2, RELAY_AGAIN_MAX_MS);
}

/* The gateway's own messages in the handshake versions: one long GET, begun again whenever it
 * ends. */
void relay_job_listen(struct relay_job *job)
{
    char error[RELAY_ERROR_MAX];
    long again_ms = RELAY_AGAIN_MS;
    do {
        int status = 0;
        relay_events_restart(&job->events);
        buf_clear(&job->answer);
        enum client_outcome outcome = job_send(job, "GET", &status, error, sizeof(error));
        if (atomic_load(&job->stop)) {
            return;
        }
        again_ms = listen_again_ms(job, outcome, status, again_ms);
    } while (job_pause(job, again_ms));
}

void relay_job_delete(struct relay_job *job)
{
    char error[RELAY_ERROR_MAX];
    int status = 0;
    (void)job_send(job, "DELETE", &status, error, sizeof(error));
}

void relay_job_free(struct relay_job *job)
{
    buf_done(&job->body);
    buf_done(&job->answer);
    relay_events_done(&job->events);
    relay_message_done(&job->message);
    free(job);
}

struct relay_job *relay_job_new(struct relay *relay)
{
    struct relay_job *job = alloc_zeroed(1, sizeof(*job));
    if (job != NULL) {
        job->relay = relay;
        atomic_init(&job->stop, false);
        buf_init(&job->body, ATTACH_ANSWER_MAX);
        buf_init(&job->answer, ATTACH_ANSWER_MAX);
        relay_events_init(&job->events, ATTACH_ANSWER_MAX);
    }
    return job;
}
