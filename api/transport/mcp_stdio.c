/* SPDX-License-Identifier: MIT */
/* mcp_stdio.c - the reader is the thread that runs it, one writer thread sends the answers: a
 * client that does not read never holds up the threads that answer. */
#include "mcp_stdio.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/server/mcp_client_request.h"
#include "api/server/mcp_notifier.h"
#include "core/base/clock.h"
#include "core/base/files/fd_io.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/config/config.h"

#define MCP_STDIO_CHUNK ((size_t)64 * 1024)
/* An answer is at most limits.result, escaped (6 for 1) and as text and structure, and its
 * frame. */
#define MCP_STDIO_ANSWER_FACTOR 8
#define MCP_STDIO_ANSWER_ROOM ((size_t)16 * 1024 * 1024)

/* How often it is looked whether the client still reads, after its input has ended. */
#define MCP_STDIO_STEP_MS 200

struct line {
    struct line *next;
    char *data;
    size_t len;
};

struct stdio_state {
    const struct mcp_stdio *config;
    struct mcp_session *session;
    atomic_int refs; /* the run, and every call that may still speak */
    struct lock lock;
    pthread_cond_t changed;
    struct line *first, **last; /* to be written */
    size_t queued;              /* bytes of them */
    size_t in_flight, in_flight_bytes;
    bool closing; /* nothing more will be queued */
    bool broken;  /* the client reads no more */
    size_t limit; /* limits.buffered */
    struct mcp_client_requests *client_requests;
};

/* Memory of its call. */
struct stdio_job {
    struct mcp_job job;
    struct stdio_state *state;
    struct buf out;
    struct line *line; /* for the answer: there is memory for that before anything is done */
    size_t bytes;      /* counted in in_flight_bytes */
    bool finished;     /* under the state's lock */
};

static void state_unref(void *object)
{
    struct stdio_state *state = object;
    if (atomic_fetch_sub(&state->refs, 1) == 1) {
        mcp_client_requests_free(state->client_requests);
        (void)pthread_cond_destroy(&state->changed);
        lock_done(&state->lock);
        free(state);
    }
}

/* ---- writing ---- */

static struct line *next_line(struct stdio_state *state)
{
    lock_take(&state->lock);
    while (state->first == NULL && !state->closing) {
        lock_wait(&state->changed, &state->lock);
    }
    struct line *line = state->first;
    if (line != NULL) {
        state->first = line->next;
        if (state->first == NULL) {
            state->last = &state->first;
        }
    }
    lock_release(&state->lock);
    return line;
}

static void *run_writer(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-mcp-stdio");
    struct stdio_state *state = user;
    bool alive = true;
    struct line *line;
    while ((line = next_line(state)) != NULL) {
        alive = alive &&
                fd_put(state->config->out_fd, str_make(line->data, line->len)) == NG_OK &&
                fd_put(state->config->out_fd, ng_str_of("\n")) == NG_OK;
        lock_take(&state->lock);
        state->queued -= line->len;
        state->broken = state->broken || !alive;
        (void)pthread_cond_broadcast(&state->changed);
        lock_release(&state->lock);
        free(line->data);
        free(line);
    }
    return NULL;
}

/* Signals of a broken pipe are ignored: write() reports it too. */
static int start_writer(struct stdio_state *state, pthread_t *ret_thread)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(ret_thread, NULL, run_writer, state);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

/* Takes `line` and the buffer's memory, and makes one line of it. Under the lock. */
static void queue_in(struct stdio_state *state, struct line *line, struct buf *text)
{
    if (line == NULL || state->broken || text->rc != NG_OK || text->len == 0) {
        free(line);
        buf_done(text);
        return;
    }
    line->next = NULL;
    line->data = buf_take(text, &line->len);
    mcp_stream_one_line(line->data, line->len);
    *state->last = line;
    state->last = &line->next;
    state->queued += line->len;
    (void)pthread_cond_broadcast(&state->changed);
}

static void queue_line(struct stdio_state *state, struct buf *text)
{
    queue_in(state, alloc_bytes(sizeof(struct line)), text);
}

/* Not where *over, or while more than `most` wait to be written. */
static void queue_message(struct stdio_state *state, struct ng_str message, const bool *over,
                          size_t most)
{
    struct buf text;
    buf_init(&text, message.len + 1);
    buf_add_str(&text, message);
    lock_take(&state->lock);
    if (*over || state->queued > most) {
        buf_done(&text);
    } else {
        queue_line(state, &text);
    }
    lock_release(&state->lock);
}

static void notify(struct mcp_job *job, struct ng_str message)
{
    struct stdio_job *stdio_job = (struct stdio_job *)(void *)job;
    queue_message(stdio_job->state, message, &stdio_job->finished, stdio_job->state->limit);
}

/* Messages that belong to no request. */
static void say(struct mcp_session *session, struct ng_str message)
{
    struct stdio_state *state = session->say_user;
    queue_message(state, message, &state->closing, state->limit);
}

static struct stdio_state *state_new(const struct mcp_stdio *config)
{
    struct stdio_state *state = alloc_zeroed(1, sizeof(*state));
    if (state == NULL) {
        return NULL;
    }
    atomic_init(&state->refs, 1);
    state->config = config;
    state->last = &state->first;
    lock_init(&state->lock, LOCK_MCP_STDIO);
    lock_cond_init(&state->changed);
    state->limit = config->gateway->limits.buffered;
    state->session = mcp_session_new();
    if (state->session == NULL || mcp_client_requests_new(config->gateway, NULL, NULL,
                                                          &state->client_requests) != NG_OK) {
        mcp_session_unref(state->session);
        state_unref(state);
        return NULL;
    }
    state->session->say = say;
    state->session->say_user = state;
    state->session->say_release = state_unref; /* others may hold the session for longer */
    (void)atomic_fetch_add(&state->refs, 1);
    return state;
}

/* A question must not get lost, unless it was answered meanwhile; their number is bounded by
 * the calls that ask. */
static void ask(struct mcp_job *job, struct ng_str message)
{
    struct stdio_job *stdio_job = (struct stdio_job *)(void *)job;
    queue_message(stdio_job->state, message, &stdio_job->finished, SIZE_MAX);
}

/* ---- jobs ---- */

static const struct mcp_transport stdio_transport = {
    .notify = notify,
    .ask = ask,
};

static int open_session(struct mcp_job *job, enum mcp_version version)
{
    atomic_store(&job->session->version, (int)version);
    return NG_OK;
}

static void finish_job(struct mcp_job *job)
{
    struct stdio_job *stdio_job = (struct stdio_job *)(void *)job;
    struct stdio_state *state = stdio_job->state;
    struct call *call = job->call;
    (void)atomic_fetch_add(&state->refs, 1); /* the call has one too, and may go first */
    lock_take(&state->lock);
    stdio_job->finished = true;
    queue_in(state, stdio_job->line, &stdio_job->out);
    stdio_job->line = NULL;
    state->in_flight_bytes -= stdio_job->bytes;
    lock_release(&state->lock);
    call_unref(call);
    /* Last: a thread that waits for no request being in flight closes the gateway then. */
    lock_take(&state->lock);
    state->in_flight--;
    (void)pthread_cond_broadcast(&state->changed);
    lock_release(&state->lock);
    state_unref(state);
}

static struct stdio_job *new_job(struct stdio_state *state, struct call *call, size_t bytes)
{
    const struct gateway *gateway = state->config->gateway;
    struct stdio_job *job = arena_zalloc(&call->arena, sizeof(*job));
    if (job == NULL || auth_apply(state->config->caller, call) != NG_OK) {
        return NULL;
    }
    call->face = "stdio";
    (void)atomic_fetch_add(&state->refs, 1);
    if (call_pin(call, state_unref, state) != NG_OK) {
        return NULL;
    }
    job->line = alloc_bytes(sizeof(*job->line));
    if (job->line == NULL) {
        return NULL;
    }
    job->state = state;
    job->bytes = bytes;
    buf_init(&job->out,
             gateway->limits.result * MCP_STDIO_ANSWER_FACTOR + MCP_STDIO_ANSWER_ROOM);
    job->job.gateway = state->config->gateway;
    job->job.client_requests = state->client_requests;
    job->job.transport = &stdio_transport;
    job->job.methods = state->config->methods;
    job->job.caller = state->config->caller;
    job->job.call = call;
    job->job.session = state->session;
    job->job.on_loop = true; /* the reader must not wait for a tool */
    job->job.out = &job->out;
    job->job.done = finish_job;
    job->job.open_session = open_session;
    return job;
}

/* Unread answers hold up further requests. False: the client reads no more. */
static bool admit(struct stdio_state *state, size_t bytes, bool *ret_full)
{
    size_t buffered = state->config->gateway->limits.buffered;
    lock_take(&state->lock);
    while (state->queued > buffered && !state->broken) {
        lock_wait(&state->changed, &state->lock);
    }
    *ret_full = state->in_flight >= MCP_STDIO_IN_FLIGHT_MAX ||
                (state->in_flight > 0 && state->in_flight_bytes + bytes > buffered);
    bool alive = !state->broken;
    if (alive) {
        state->in_flight++;
        state->in_flight_bytes += bytes;
    }
    lock_release(&state->lock);
    return alive;
}

/* id: NULL where it is not known. */
static void refuse_line(struct stdio_state *state, const struct ng_value *id, int code,
                        const char *message)
{
    struct buf text;
    buf_init(&text, MCP_STDIO_CHUNK);
    mcp_print_error(&text, id, code, ng_str_of(message), STR_NONE);
    lock_take(&state->lock);
    queue_line(state, &text);
    lock_release(&state->lock);
}

static bool is_blank(struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (strchr(" \t\r", text.data[i]) == NULL || text.data[i] == '\0') {
            return false;
        }
    }
    return true;
}

/* False: stop reading. */
static bool handle_line(struct stdio_state *state, struct ng_str text)
{
    bool full = false;
    text = json_skip_mark(text);
    if (is_blank(text)) {
        return true;
    }
    if (!admit(state, text.len, &full)) {
        return false;
    }
    struct call *call = call_new(state->config->gateway);
    struct stdio_job *job = call == NULL ? NULL : new_job(state, call, text.len);
    if (job == NULL) {
        call_unref(call);
        lock_take(&state->lock);
        state->in_flight--;
        state->in_flight_bytes -= text.len;
        lock_release(&state->lock);
        refuse_line(state, NULL, MCP_INTERNAL_ERROR,
                    "the gateway ran out of memory; try again");
        return true;
    }
    job->job.text = text;
    job->job.is_full = full;
    if (mcp_job_run(&job->job) != NG_PENDING) {
        finish_job(&job->job);
    }
    return true;
}

/* ---- reading ---- */

struct reader {
    struct buf buf;
    size_t scanned; /* no line feed before this */
    size_t max;
    bool skipping; /* the rest of a line that was too long */
};

/* The client waits for an answer with its id, which may be in what was read. */
static void refuse_long(struct stdio_state *state, struct ng_str read)
{
    struct arena arena;
    arena_init(&arena, CALL_MEMORY_MAX);
    refuse_line(state, mcp_message_early_id(&arena, read), 413,
                "the message is longer than limits.body allows; send less at once");
    arena_done(&arena);
}

/* Handles every whole line in the buffer. False: stop. */
static bool handle_lines(struct stdio_state *state, struct reader *reader)
{
    struct buf *buf = &reader->buf;
    size_t start = 0;
    bool going = true;
    while (going) {
        size_t from = size_max(reader->scanned, start);
        const char *feed =
            from == buf->len ? NULL : memchr(buf->data + from, '\n', buf->len - from);
        if (feed == NULL) {
            break;
        }
        size_t end = (size_t)(feed - buf->data);
        if (!reader->skipping && end - start > reader->max) {
            refuse_long(state, str_make(buf->data + start, reader->max));
        } else if (!reader->skipping) {
            going = handle_line(state, str_make(buf->data + start, end - start));
        }
        reader->skipping = false;
        start = end + 1;
    }
    if (start > 0) {
        memmove(buf->data, buf->data + start, buf->len - start);
        buf->len -= start;
    }
    if (buf->len > reader->max || reader->skipping) {
        if (!reader->skipping) {
            refuse_long(state, buf_str(buf));
        }
        reader->skipping = true;
        buf->len = 0;
    }
    reader->scanned = buf->len;
    return going;
}

/* Waits for input. False: the client went away, or this is to stop. */
static bool wait_input(const struct mcp_stdio *config)
{
    struct pollfd fds[3] = {
        {.fd = config->in_fd, .events = POLLIN},
        {.fd = config->out_fd, .events = 0},
        {.fd = config->stop_fd, .events = POLLIN},
    };
    int ready;
    do {
        if (config->look != NULL) {
            config->look(config->look_user);
        }
        ready = poll(fds, NG_COUNT(fds), config->look != NULL ? MCP_STDIO_LOOK_MS : -1);
    } while (ready == 0 || (ready < 0 && errno == EINTR));
    /* Input that has already come is read, even if no client waits for answers any more. */
    return ready >= 0 && fds[2].revents == 0 && fds[0].revents != 0;
}

static void read_all(struct stdio_state *state)
{
    struct reader reader = {.max = state->config->gateway->limits.body};
    bool going = true;
    buf_init(&reader.buf, reader.max + MCP_STDIO_CHUNK);
    while (going && wait_input(state->config)) {
        char *to = buf_reserve(&reader.buf, MCP_STDIO_CHUNK);
        if (to == NULL) {
            refuse_line(state, NULL, MCP_INTERNAL_ERROR, "the gateway ran out of memory");
            break;
        }
        ssize_t got = read(state->config->in_fd, to, MCP_STDIO_CHUNK);
        if (got > 0) {
            reader.buf.len += (size_t)got;
            going = handle_lines(state, &reader);
        } else if (got == 0) {
            if (!reader.skipping && reader.buf.len > 0) {
                (void)handle_line(state, buf_str(&reader.buf));
            }
            going = false;
        } else {
            going = errno == EINTR || errno == EAGAIN;
        }
    }
    buf_done(&reader.buf);
}

/* The reader of the answers has closed its end. */
static bool client_left(const struct mcp_stdio *config)
{
    struct pollfd out = {.fd = config->out_fd, .events = 0};
    return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

static void wait_a_step(struct stdio_state *state)
{
    struct timespec until = clock_deadline(MCP_STDIO_STEP_MS);
    (void)lock_wait_until(&state->changed, &state->lock, &until);
}

/* Told to stop (which the end of input is not), and what runs had shutdown_timeout to finish.
 * *since: when that was first seen; 0: not yet. */
static bool stop_is_due(const struct mcp_stdio *config, int64_t *since)
{
    struct pollfd stop = {.fd = config->stop_fd, .events = POLLIN};
    int64_t now = clock_monotonic_ns() / 1000000;
    if (*since == 0 && (poll(&stop, 1, 0) <= 0 || stop.revents == 0)) {
        return false;
    }
    if (*since == 0) {
        *since = now;
    }
    return now - *since >= config_int(config->gateway->config, "shutdown_timeout");
}

/* Lets running calls finish; cancels them if the client is gone or the time is over. Only
 * polling tells that the client left while there is nothing to write. */
static void wait_idle(struct stdio_state *state)
{
    int64_t stopping_since = 0;
    lock_take(&state->lock);
    while (state->in_flight > 0) {
        state->broken = state->broken || client_left(state->config);
        if (state->broken || stop_is_due(state->config, &stopping_since)) {
            lock_release(&state->lock);
            if (!state->config->is_shared) {
                atomic_store(&state->config->gateway->cancelling, true);
            }
            mcp_session_cancel(state->session, NULL); /* also what has begun since */
            lock_take(&state->lock);
        }
        if (state->in_flight > 0) {
            wait_a_step(state);
        }
    }
    state->closing = true;
    (void)pthread_cond_broadcast(&state->changed);
    lock_release(&state->lock);
}

/* Calls that end later still have the state, and others the session: they come to nothing. */
static void state_detach(struct stdio_state *state)
{
    mcp_client_requests_free(state->client_requests);
    state->client_requests = NULL;
    mcp_session_unref(state->session);
    state->session = NULL;
}

int mcp_stdio_run(const struct mcp_stdio *stdio)
{
    pthread_t writer;
    struct stdio_state *state = state_new(stdio);
    if (state == NULL || start_writer(state, &writer) != NG_OK) {
        if (state != NULL) {
            state_detach(state);
            state_unref(state);
        }
        return NG_EINTERNAL;
    }
    bool notifiers = mcp_notifiers_open(stdio->gateway) == NG_OK; /* without: no list_changed */
    read_all(state);
    mcp_session_hang_up(state->session);
    wait_idle(state);
    (void)pthread_join(writer, NULL);
    if (notifiers) {
        mcp_notifiers_close(stdio->gateway);
    }
    state_detach(state);
    state_unref(state);
    return NG_OK;
}
