/* SPDX-License-Identifier: MIT */
/* mcp_relay.c - each line of stdin is a POST to the gateway; each message that comes back, a
 * line of stdout. */
#include "mcp_relay.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mcp_relay_message.h"
#include "str.h"

/* Requests under way at once; the next line waits. */
#define RELAY_THREADS_MAX 128
#define RELAY_READ_BYTES ((size_t)64 * 1024)
/* Between two tries to have the gateway's own messages (sessions of the older era). */
#define RELAY_AGAIN_MS 1000

struct relay {
    struct target *target;
    struct client_request base; /* the caller's headers */
    pthread_mutex_t lock;       /* the members below, and stdout */
    pthread_cond_t changed;
    size_t running;   /* requests that will end */
    size_t listening; /* streams that will not */
    char session[RELAY_HEADER_MAX];
    char version[RELAY_HEADER_MAX]; /* of the older era, once agreed on */
    bool broken;                    /* stdout takes nothing any more */
    bool has_stream;
    atomic_bool stop;
};

/* One message on its way. */
struct relay_job {
    struct relay *relay;
    struct buf body;
    struct relay_message message;
    struct buf answer; /* of the request: a body, or what is left of an event stream */
    struct buf data;   /* of the event that is being read */
    bool is_stream;    /* the answer is an event stream */
    bool answered;     /* a message went to stdout */
    bool ends_itself;  /* counted in running, else in listening */
};

/* ---- out ---- */

static void relay_write(struct relay *relay, struct ng_str line)
{
    (void)pthread_mutex_lock(&relay->lock);
    struct ng_str parts[2] = {line, ng_str_of("\n")};
    for (size_t i = 0; i < NG_COUNT(parts) && !relay->broken; i++) {
        struct ng_str left = parts[i];
        while (left.len > 0) {
            ssize_t written = write(STDOUT_FILENO, left.data, left.len);
            if (written < 0 && errno == EINTR) {
                continue;
            }
            if (written <= 0) {
                relay->broken = true;
                atomic_store(&relay->stop, true);
                break;
            }
            left.data += written;
            left.len -= (size_t)written;
        }
    }
    (void)pthread_mutex_unlock(&relay->lock);
}

static void job_write(struct relay_job *job, struct ng_str text)
{
    while (text.len > 0 && strchr("\r\n", text.data[text.len - 1]) != NULL) {
        text.len--;
    }
    if (text.len > 0 && memchr(text.data, '\n', text.len) == NULL) {
        job->answered = true;
        relay_write(job->relay, text);
    }
}

/* Lines of an event stream: "data: ..." until an empty one. */
static void job_take_events(struct relay_job *job)
{
    size_t at = 0;
    const char *end;
    while (at < job->answer.len &&
           (end = memchr(job->answer.data + at, '\n', job->answer.len - at)) != NULL) {
        struct ng_str line =
            str_make(job->answer.data + at, (size_t)(end - job->answer.data) - at);
        at += line.len + 1;
        if (line.len > 0 && line.data[line.len - 1] == '\r') {
            line.len--;
        }
        if (line.len == 0) {
            job_write(job, buf_str(&job->data));
            buf_clear(&job->data);
        } else if (line.len >= 5 && memcmp(line.data, "data:", 5) == 0) {
            size_t skip = line.len > 5 && line.data[5] == ' ' ? 6 : 5;
            buf_add(&job->data, line.data + skip, line.len - skip);
        }
    }
    size_t rest = job->answer.len - at;
    if (at > 0 && rest > 0) {
        memmove(job->answer.data, job->answer.data + at, rest);
    }
    job->answer.len = rest;
}

static int job_on_body(void *user, int status, const char *data, size_t len)
{
    struct relay_job *job = user;
    (void)status;
    int rc = buf_add(&job->answer, data, len);
    if (rc == NG_OK && job->is_stream) {
        job_take_events(job);
    }
    return rc;
}

static void job_on_header(void *user, const char *name, struct ng_str value)
{
    struct relay_job *job = user;
    if (strcmp(name, "content-type") == 0) {
        job->is_stream = value.len >= 17 && memcmp(value.data, "text/event-stream", 17) == 0;
    } else if (strcmp(name, "mcp-session-id") == 0 && value.len < RELAY_HEADER_MAX) {
        struct relay *relay = job->relay;
        (void)pthread_mutex_lock(&relay->lock);
        memcpy(relay->session, value.data, value.len);
        relay->session[value.len] = '\0';
        (void)pthread_mutex_unlock(&relay->lock);
    }
}

/* ---- one request ---- */

struct job_headers {
    char session[RELAY_HEADER_MAX + 32];
    char version[RELAY_HEADER_MAX + 32];
    char method[RELAY_HEADER_MAX + 32];
    char name[RELAY_NAME_MAX + 32];
};

static void header_add(struct client_request *request, char *text, size_t size,
                       const char *name, const char *value)
{
    if (value[0] != '\0' && request->header_count < CLIENT_HEADERS_MAX) {
        (void)snprintf(text, size, "%s: %s", name, value);
        request->headers[request->header_count++] = text;
    }
}

static void job_headers(struct relay_job *job, struct client_request *request,
                        struct job_headers *texts)
{
    struct relay *relay = job->relay;
    bool modern = job->message.version[0] != '\0';
    request->headers[request->header_count++] = "Content-Type: application/json";
    request->headers[request->header_count++] = "Accept: application/json, text/event-stream";
    if (modern) {
        header_add(request, texts->version, sizeof(texts->version), "MCP-Protocol-Version",
                   job->message.version);
        header_add(request, texts->method, sizeof(texts->method), "Mcp-Method",
                   job->message.method);
        header_add(request, texts->name, sizeof(texts->name), "Mcp-Name", job->message.name);
        return;
    }
    (void)pthread_mutex_lock(&relay->lock);
    header_add(request, texts->version, sizeof(texts->version), "MCP-Protocol-Version",
               relay->version);
    header_add(request, texts->session, sizeof(texts->session), "Mcp-Session-Id",
               relay->session);
    (void)pthread_mutex_unlock(&relay->lock);
}

static enum client_outcome job_send(struct relay_job *job, const char *method, int *ret_status,
                                    char *error, size_t error_size)
{
    struct relay *relay = job->relay;
    struct job_headers texts;
    struct client_request request = relay->base;
    request.socket_path = relay->target->socket_path;
    request.method = method;
    request.path = "/mcp";
    if (strcmp(method, "POST") == 0) {
        request.body = buf_str(&job->body);
    }
    request.on_body = job_on_body;
    request.on_header = job_on_header;
    request.user = job;
    request.stop = &relay->stop;
    job_headers(job, &request, &texts);
    return relay->target->client->send(&request, ret_status, error, error_size);
}

/* A request always gets an answer, also where the gateway gave none that names it. */
static void job_post(struct relay_job *job)
{
    char error[512] = "";
    int status = 0;
    enum client_outcome outcome = job_send(job, "POST", &status, error, sizeof(error));
    if (outcome == CLIENT_OK && job->message.is_initialize && status == 200) {
        (void)pthread_mutex_lock(&job->relay->lock);
        relay_message_agreed(buf_str(&job->answer), job->relay->version);
        (void)pthread_mutex_unlock(&job->relay->lock);
    }
    if (outcome == CLIENT_OK && job->is_stream) {
        job_write(job, buf_str(&job->data));
    } else if (outcome == CLIENT_OK && (status < 400 || job->message.method[0] == '\0')) {
        job_write(job, buf_str(&job->answer));
    }
    if (!job->answered && job->message.id.len > 0 && outcome != CLIENT_STOPPED) {
        struct buf line;
        buf_init(&line, TARGET_ANSWER_MAX);
        relay_message_error(&job->message, outcome == CLIENT_OK ? status : 0,
                            outcome == CLIENT_OK ? buf_str(&job->answer) : ng_str_of(error),
                            &line);
        job_write(job, buf_str(&line));
        buf_done(&line);
    }
}

static void job_free(struct relay_job *job)
{
    buf_done(&job->body);
    buf_done(&job->answer);
    buf_done(&job->data);
    relay_message_done(&job->message);
    free(job);
}

static struct relay_job *job_new(struct relay *relay)
{
    struct relay_job *job = alloc_zeroed(1, sizeof(*job));
    if (job != NULL) {
        job->relay = relay;
        buf_init(&job->body, TARGET_ANSWER_MAX);
        buf_init(&job->answer, TARGET_ANSWER_MAX);
        buf_init(&job->data, TARGET_ANSWER_MAX);
    }
    return job;
}

static void job_leave(struct relay_job *job)
{
    struct relay *relay = job->relay;
    (void)pthread_mutex_lock(&relay->lock);
    if (job->ends_itself) {
        relay->running--;
    } else {
        relay->listening--;
    }
    (void)pthread_cond_broadcast(&relay->changed);
    (void)pthread_mutex_unlock(&relay->lock);
    job_free(job);
}

static void *job_thread(void *user)
{
    job_post(user);
    job_leave(user);
    return NULL;
}

/* The gateway's own messages in the older era: one long GET, begun again when it ends. */
static void *stream_thread(void *user)
{
    struct relay_job *job = user;
    char error[512];
    int status = 200;
    while (status == 200 && !atomic_load(&job->relay->stop)) {
        buf_clear(&job->answer);
        buf_clear(&job->data);
        if (job_send(job, "GET", &status, error, sizeof(error)) != CLIENT_OK) {
            break;
        }
        const struct timespec pause = {RELAY_AGAIN_MS / 1000, 0};
        (void)nanosleep(&pause, NULL);
    }
    job_leave(job);
    return NULL;
}

static bool job_start(struct relay_job *job, void *(*run)(void *user))
{
    struct relay *relay = job->relay;
    pthread_t thread;
    pthread_attr_t attributes;
    (void)pthread_mutex_lock(&relay->lock);
    while (relay->running + relay->listening >= RELAY_THREADS_MAX &&
           !atomic_load(&relay->stop)) {
        (void)pthread_cond_wait(&relay->changed, &relay->lock);
    }
    if (job->ends_itself) {
        relay->running++;
    } else {
        relay->listening++;
    }
    (void)pthread_mutex_unlock(&relay->lock);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool ok = pthread_create(&thread, &attributes, run, job) == 0;
    (void)pthread_attr_destroy(&attributes);
    return ok;
}

static void relay_listen(struct relay *relay)
{
    struct relay_job *job =
        relay->has_stream || relay->session[0] == '\0' ? NULL : job_new(relay);
    if (job == NULL) {
        return;
    }
    relay->has_stream = true;
    if (!job_start(job, stream_thread)) {
        job_leave(job);
    }
}

static void relay_line(struct relay *relay, struct ng_str line)
{
    struct relay_job *job = job_new(relay);
    if (job == NULL || buf_add_str(&job->body, line) != NG_OK) {
        command_error("out of memory; a message was dropped");
        if (job != NULL) {
            job_free(job);
        }
        return;
    }
    relay_message_read(buf_str(&job->body), &job->message);
    job->ends_itself = !job->message.is_listen;
    /* What has no answer keeps its place in the order; so does what all others depend on. */
    bool now = job->message.id.len == 0 || job->message.is_initialize;
    if (now) {
        job_post(job);
        bool initialized = job->message.is_initialized;
        job_free(job);
        if (initialized) {
            relay_listen(relay);
        }
    } else if (!job_start(job, job_thread)) {
        job_thread(job);
    }
}

/* ---- in ---- */

static void relay_lines(struct relay *relay, struct buf *input)
{
    size_t at = 0;
    const char *end;
    while (at < input->len && (end = memchr(input->data + at, '\n', input->len - at)) != NULL) {
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

static void relay_read(struct relay *relay, int stop_fd)
{
    struct buf input;
    buf_init(&input, TARGET_ANSWER_MAX);
    while (!atomic_load(&relay->stop)) {
        struct pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {stop_fd, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0) {
            if (errno == EINTR) {
                continue;
            }
            break;
        }
        if (fds[1].revents != 0) {
            atomic_store(&relay->stop, true);
            break;
        }
        char *to = buf_reserve(&input, RELAY_READ_BYTES);
        ssize_t len = to == NULL ? -1 : read(STDIN_FILENO, to, RELAY_READ_BYTES);
        if (len < 0 && errno == EINTR && to != NULL) {
            continue;
        }
        if (len <= 0) {
            break;
        }
        input.len += (size_t)len;
        relay_lines(relay, &input);
    }
    if (input.len > 0 && !atomic_load(&relay->stop)) {
        buf_add_char(&input, '\n');
        relay_lines(relay, &input);
    }
    buf_done(&input);
}

/* What runs is finished, streams are ended, the session is closed. */
static void relay_end(struct relay *relay)
{
    (void)pthread_mutex_lock(&relay->lock);
    while (relay->running > 0) {
        (void)pthread_cond_wait(&relay->changed, &relay->lock);
    }
    (void)pthread_mutex_unlock(&relay->lock);
    bool stopped = atomic_exchange(&relay->stop, true);
    (void)pthread_mutex_lock(&relay->lock);
    while (relay->listening > 0) {
        (void)pthread_cond_wait(&relay->changed, &relay->lock);
    }
    (void)pthread_mutex_unlock(&relay->lock);
    struct relay_job *job = relay->session[0] == '\0' || stopped ? NULL : job_new(relay);
    if (job != NULL) {
        char error[512];
        int status = 0;
        atomic_store(&relay->stop, false);
        (void)job_send(job, "DELETE", &status, error, sizeof(error));
        job_free(job);
    }
}

int mcp_relay_run(struct command_line *line, struct target *target, int stop_fd)
{
    struct relay relay = {.target = target};
    if (target_caller_headers(line, &relay.base) != NG_OK) {
        target_done(target);
        return COMMAND_USAGE;
    }
    (void)pthread_mutex_init(&relay.lock, NULL);
    (void)pthread_cond_init(&relay.changed, NULL);
    relay_read(&relay, stop_fd);
    relay_end(&relay);
    (void)pthread_cond_destroy(&relay.changed);
    (void)pthread_mutex_destroy(&relay.lock);
    return COMMAND_OK;
}
