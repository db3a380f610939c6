/* SPDX-License-Identifier: MIT */
/* mcp_relay.c - each line of stdin is a POST to the gateway; each message that comes back, a
 * line of stdout. The gateway trusts its own socket: headers that repeat arguments are not
 * needed there. */
#include "core/base/lock.h"
#include "mcp_relay_job.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/dispatch/run_id.h"

#define RELAY_READ_BYTES ((size_t)64 * 1024)
/* The longest interval between two calls of the host's look(). */
#define RELAY_LOOK_MS 5000
/* Interval of checks for a stop while the relay waits for jobs. */
#define RELAY_WAIT_MS 200

/* ---- a gateway that is gone ---- */

static int64_t now_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}

static bool is_stopped(const struct relay *relay)
{
    struct pollfd stop = {.fd = relay->host->stop_fd, .events = POLLIN};
    return poll(&stop, 1, 0) > 0;
}

static bool is_wanted(struct relay *relay)
{
    lock_take(&relay->lock);
    bool wanted = relay->search.wanted;
    lock_release(&relay->lock);
    return wanted;
}

/* Called by the reader thread without the lock: tries once to find or open a gateway. */
static void search(struct relay *relay)
{
    int rc = is_stopped(relay) ? NG_EUNAVAILABLE : relay->host->take_over(relay->host->user);
    lock_take(&relay->lock);
    if (rc != NG_EBUSY || now_ms() >= relay->search.until_ms) {
        relay->search.wanted = false;
        relay->search.found = rc == NG_OK;
        relay->search.ended++;
        (void)pthread_cond_broadcast(&relay->changed);
    }
    lock_release(&relay->lock);
}

/* Called by the reader thread with the lock held: waits for a change or a stop, and runs the
 * search if a job wants it. */
static void wait_searching(struct relay *relay)
{
    long wait_ms = RELAY_WAIT_MS;
    if (relay->search.wanted && !atomic_load(&relay->stop)) {
        lock_release(&relay->lock);
        search(relay);
        lock_take(&relay->lock);
        wait_ms = relay->search.wanted ? ATTACH_POLL_MS : 0;
    }
    if (wait_ms > 0) {
        struct timespec until = clock_deadline(wait_ms);
        (void)lock_wait_until(&relay->changed, &relay->lock, &until);
    }
    if (!atomic_load(&relay->stop) && is_stopped(relay)) {
        atomic_store(&relay->stop, true);
        relay_stop_jobs(relay);
        (void)pthread_cond_broadcast(&relay->changed);
    }
}

bool relay_find_gateway(struct relay_job *job)
{
    struct relay *relay = job->relay;
    bool is_reader = pthread_equal(pthread_self(), relay->reader) != 0;
    lock_take(&relay->lock);
    unsigned ended = relay->search.ended;
    if (!relay->of_serve && !relay->search.wanted) {
        relay->search.wanted = true;
        relay->search.until_ms = now_ms() + ATTACH_MCP_WAIT_MS;
        (void)pthread_cond_broadcast(&relay->changed);
        (void)eventfd_write(relay->wake_fd, 1);
    }
    while (relay->search.wanted && relay->search.ended == ended && !atomic_load(&job->stop) &&
           !atomic_load(&relay->stop)) {
        if (is_reader) {
            wait_searching(relay);
        } else {
            lock_wait(&relay->changed, &relay->lock);
        }
    }
    bool found = relay->search.ended != ended && relay->search.found &&
                 !atomic_load(&job->stop) && !atomic_load(&relay->stop);
    lock_release(&relay->lock);
    return found;
}

/* ---- threads ---- */

/* Under the lock. */
static bool is_full(const struct relay *relay)
{
    return relay->running + relay->listening >= RELAY_THREADS_MAX;
}

/* Under the lock. */
static bool has_asked(const struct relay *relay)
{
    size_t i = 0;
    while (i < RELAY_ASKED_MAX && relay->asked[i][0] == '\0') {
        i++;
    }
    return i < RELAY_ASKED_MAX;
}

/* False: there is no room, and waiting would deadlock: the answers of the client are in lines
 * that were not read yet. */
static bool job_enter(struct relay_job *job)
{
    struct relay *relay = job->relay;
    lock_take(&relay->lock);
    while (is_full(relay) && !has_asked(relay) && !atomic_load(&relay->stop)) {
        wait_searching(relay);
    }
    if (is_full(relay) && !atomic_load(&relay->stop)) {
        lock_release(&relay->lock);
        return false;
    }
    if (job->kind == RELAY_JOB_REQUEST) {
        relay->running++;
    } else {
        relay->listening++;
    }
    LIST_INSERT_HEAD(&relay->jobs, job, link);
    atomic_store(&job->stop, atomic_load(&relay->stop));
    lock_release(&relay->lock);
    return true;
}

static void job_leave(struct relay_job *job)
{
    struct relay *relay = job->relay;
    bool has_thread = job->has_thread;
    lock_take(&relay->lock);
    LIST_REMOVE(job, link);
    if (job->kind == RELAY_JOB_REQUEST) {
        relay->running--;
    } else {
        relay->listening--;
    }
    /* Each thread waits for the one that ended before it, relay_end() for the last: none is
     * left when the process exits and libraries take down what threads still use. */
    pthread_t before = relay->last;
    bool has_before = has_thread && relay->has_last;
    if (has_thread) {
        relay->last = pthread_self();
        relay->has_last = true;
    }
    (void)pthread_cond_broadcast(&relay->changed);
    lock_release(&relay->lock);
    relay_job_free(job);
    if (has_before) {
        (void)pthread_join(before, NULL);
    }
}

static void *post_thread(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-relay-post");
    relay_job_post(user);
    job_leave(user);
    return NULL;
}

static void *listen_thread(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-relay-listen");
    relay_job_listen(user);
    job_leave(user);
    return NULL;
}

/* The job has entered. */
static bool job_start(struct relay_job *job, void *(*run)(void *user))
{
    pthread_t thread;
    job->has_thread = true; /* before it is there, and looks */
    if (pthread_create(&thread, NULL, run, job) != 0) {
        job->has_thread = false;
        return false;
    }
    return true;
}

static void relay_listen(struct relay *relay)
{
    struct relay_job *job = NULL;
    if (!relay->has_stream && relay->session[0] != '\0') {
        job = relay_job_new(relay);
    }
    if (job == NULL) {
        return;
    }
    relay->has_stream = true;
    relay_message_read(ng_str_of("{}"), &job->message);
    if (!job_enter(job)) {
        relay->has_stream = false;
        relay_job_free(job);
    } else if (!job_start(job, listen_thread)) {
        job_leave(job);
    }
}

/* ---- in ---- */

enum cancel_scope { CANCEL_STATELESS, CANCEL_ALL };

/* In the stateless version a request is cancelled by closing its stream. True: done. */
static bool cancel_here(struct relay *relay, struct ng_str id, enum cancel_scope scope)
{
    bool found = false;
    lock_take(&relay->lock);
    for (struct relay_job *job = LIST_FIRST(&relay->jobs); job != NULL && id.len > 0;
         job = LIST_NEXT(job, link)) {
        if ((job->message.version[0] != '\0' || scope == CANCEL_ALL) &&
            str_equal(buf_str(&job->message.id), id)) {
            atomic_store(&job->stop, true);
            found = true;
            (void)pthread_cond_broadcast(&relay->changed);
        }
    }
    lock_release(&relay->lock);
    return found;
}

/* A message without an answer keeps its place in the order; so does a message that all others
 * depend on. */
static void post_now(struct relay *relay, struct relay_job *job)
{
    bool initialized = job->message.is_initialized;
    if (job->message.answers.len > 0) {
        relay_was_answered(relay, buf_str(&job->message.answers));
    }
    if (!cancel_here(relay, buf_str(&job->message.cancels), CANCEL_STATELESS)) {
        relay_job_post(job);
        /* The next gateway must not get the request that is cancelled. */
        if (job->reach == CLIENT_NOBODY) {
            (void)cancel_here(relay, buf_str(&job->message.cancels), CANCEL_ALL);
        }
    }
    relay_job_free(job);
    if (initialized) {
        relay_listen(relay);
    }
}

static void relay_line(struct relay *relay, struct ng_str line)
{
    struct relay_job *job = relay_job_new(relay);
    if (job == NULL || buf_add_str(&job->body, line) != NG_OK) {
        atomic_store(&relay->input, RELAY_INPUT_OOM); /* its client would wait for the answer */
        if (job != NULL) {
            relay_job_free(job);
        }
        return;
    }
    relay_message_read(buf_str(&job->body), &job->message);
    if (!job->message.is_listen) {
        job->kind = RELAY_JOB_REQUEST;
    }
    if ((job->message.id.len == 0 && !job->message.is_batch) || job->message.is_initialize) {
        post_now(relay, job);
    } else if (!job_enter(job)) {
        relay_job_refuse(job, "too many requests are in flight; answer the open questions, "
                              "then send the request again");
        relay_job_free(job);
    } else if (!job_start(job, post_thread)) {
        post_thread(job);
    }
}

static void relay_lines(struct relay *relay, struct buf *input)
{
    size_t at = 0;
    const char *end;
    while (at < input->len && atomic_load(&relay->input) != RELAY_INPUT_OOM &&
           (end = memchr(input->data + at, '\n', input->len - at)) != NULL) {
        struct ng_str line = str_make(input->data + at, (size_t)(end - input->data) - at);
        at += line.len + 1;
        while (line.len > 0 && strchr("\r \t", line.data[line.len - 1]) != NULL) {
            line.len--;
        }
        if (line.len > 0) {
            relay_line(relay, line);
        }
    }
    size_t rest = input->len - at;
    if (at > 0 && rest > 0) {
        memmove(input->data, input->data + at, rest);
    }
    input->len = rest;
}

/* Waits for input. Meanwhile it runs the search and the host's look(), which belong to this
 * thread. False: the relay ends. */
static bool wait_input(struct relay *relay)
{
    struct pollfd fds[3] = {{STDIN_FILENO, POLLIN, 0},
                            {relay->host->stop_fd, POLLIN, 0},
                            {relay->wake_fd, POLLIN, 0}};
    do {
        eventfd_t count = 0;
        bool wanted = is_wanted(relay);
        if (wanted) {
            search(relay);
        }
        relay->host->look(relay->host->user);
        if (poll(fds, NG_COUNT(fds), wanted ? ATTACH_POLL_MS : RELAY_LOOK_MS) < 0 &&
            errno != EINTR) {
            return false;
        }
        if (fds[2].revents != 0) {
            (void)eventfd_read(relay->wake_fd, &count);
        }
        if (fds[1].revents != 0) {
            atomic_store(&relay->stop, true);
        }
    } while (fds[0].revents == 0 && !atomic_load(&relay->stop));
    return !atomic_load(&relay->stop);
}

static void relay_read(struct relay *relay)
{
    struct buf input;
    buf_init(&input, ATTACH_ANSWER_MAX);
    while (!atomic_load(&relay->stop) && atomic_load(&relay->input) != RELAY_INPUT_OOM &&
           wait_input(relay)) {
        char *to = buf_reserve(&input, RELAY_READ_BYTES);
        ssize_t len = -1;
        if (to != NULL) {
            len = read(STDIN_FILENO, to, RELAY_READ_BYTES);
        }
        if (len < 0 && errno == EINTR && to != NULL) {
            continue;
        }
        if (to == NULL) {
            atomic_store(&relay->input, RELAY_INPUT_OOM);
        }
        if (len <= 0) {
            break;
        }
        input.len += (size_t)len;
        relay_lines(relay, &input);
    }
    if (input.len > 0 && !atomic_load(&relay->stop) &&
        atomic_load(&relay->input) != RELAY_INPUT_OOM) {
        buf_add_char(&input, '\n');
        relay_lines(relay, &input);
    }
    buf_done(&input);
}

/* Finishes running jobs, ends streams, closes the session. */
static void relay_end(struct relay *relay)
{
    if (!atomic_load(&relay->stop)) {
        relay_answer_asked(relay);
    }
    lock_take(&relay->lock);
    if (atomic_load(&relay->stop)) {
        relay_stop_jobs(relay);
    }
    while (relay->running > 0) {
        wait_searching(relay);
    }
    bool stopped = atomic_exchange(&relay->stop, true);
    relay_stop_jobs(relay);
    while (relay->listening > 0) {
        lock_wait(&relay->changed, &relay->lock);
    }
    lock_release(&relay->lock);
    if (relay->has_last) {
        (void)pthread_join(relay->last, NULL);
    }
    struct relay_job *job = NULL;
    if (relay->session[0] != '\0' && !stopped) {
        job = relay_job_new(relay);
    }
    if (job != NULL) {
        relay_message_read(ng_str_of("{}"), &job->message);
        relay_job_delete(job);
        relay_job_free(job);
    }
}

/* Without memory the calls have no label, and are made all the same. */
static void add_process_run(struct command_line *line, const struct mcp_relay_host *host,
                            struct client_request *base)
{
    struct ng_str header = arena_printf(&line->arena, RUN_ID_PROCESS_HEADER ": %s", host->run);
    if (host->run[0] != '\0' && header.data != NULL) {
        base->headers[base->header_count++] = header.data;
    }
}

int mcp_relay_run(struct command_line *line, struct attach *attach,
                  const struct mcp_relay_host *host)
{
    struct relay *relay = alloc_zeroed(1, sizeof(*relay));
    int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (relay == NULL || wake_fd < 0) {
        command_error("out of memory or open files");
        if (wake_fd >= 0) {
            (void)close(wake_fd);
        }
        free(relay);
        return COMMAND_FAILED;
    }
    if (attach_caller_headers(line, &relay->base) != NG_OK) {
        (void)close(wake_fd);
        free(relay);
        return COMMAND_USAGE;
    }
    add_process_run(line, host, &relay->base);
    relay->attach = attach;
    relay->host = host;
    relay->reader = pthread_self();
    relay->wake_fd = wake_fd;
    relay->of_serve = attach->address != NULL; /* on its machine it is another user's */
    lock_init(&relay->lock, LOCK_RELAY);
    lock_init(&relay->opening, LOCK_RELAY_OPENING);
    lock_cond_init(&relay->changed);
    buf_init(&relay->initialize, ATTACH_ANSWER_MAX);
    relay_read(relay);
    bool oom = atomic_load(&relay->input) == RELAY_INPUT_OOM;
    relay_end(relay);
    relay_session_done(relay);
    (void)pthread_cond_destroy(&relay->changed);
    lock_done(&relay->opening);
    lock_done(&relay->lock);
    (void)close(wake_fd);
    free(relay);
    if (oom) {
        command_error(
            "reading stopped: a message of the client is too large, or memory is exhausted");
        return COMMAND_FAILED;
    }
    return COMMAND_OK;
}
