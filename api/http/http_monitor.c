/* SPDX-License-Identifier: MIT */
/* http_monitor.c - clients that left, slow clients. */
#include "http_monitor.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "api/auth/auth_peer.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/quota.h"
#include "http_request.h"
#include "http_server.h"
#include "http_stream_transport.h"

/* Calls cancelled in one round; the next round takes the rest. */
#define ROUND_CALLS 64
/* Probing a client on another machine that has shut down its sending side: seconds before the
 * first probe, between two, and how many go unanswered. */
#define PROBE_IDLE_S 5
#define PROBE_INTERVAL_S 5
#define PROBE_COUNT 3

static struct ng_str agent_of(const struct http_connection *connection)
{
    return str_make(connection->agent, connection->agent_len);
}

static void list_add(struct http_connection **first, struct http_connection *connection)
{
    connection->prev = NULL;
    connection->next = *first;
    if (*first != NULL) {
        (*first)->prev = connection;
    }
    *first = connection;
}

static void list_remove(struct http_connection **first, struct http_connection *connection)
{
    if (connection->prev != NULL) {
        connection->prev->next = connection->next;
    } else {
        *first = connection->next;
    }
    if (connection->next != NULL) {
        connection->next->prev = connection->prev;
    }
}

static void give_place(struct http_monitor *monitor, struct http_connection *connection)
{
    if (connection->agent_len > 0) {
        quota_release(monitor->agents, agent_of(connection));
        connection->agent_len = 0;
    }
}

void http_monitor_add(struct http_monitor *monitor, struct http_connection *connection)
{
    lock_take(&monitor->lock);
    list_add(&monitor->first, connection);
    connection->turn = monitor->added++;
    if (monitor->count++ == 0) {
        pthread_cond_signal(&monitor->wake);
    }
    lock_release(&monitor->lock);
}

/* A call left behind keeps its agent's place: else leaving would be a way to run more. */
void http_monitor_remove(struct http_monitor *monitor, struct http_connection *connection)
{
    lock_take(&monitor->lock);
    list_remove(&monitor->first, connection);
    monitor->count--;
    if (connection->client == HTTP_CLIENT_BEHIND) {
        list_add(&monitor->behind, connection);
    } else {
        give_place(monitor, connection);
    }
    lock_release(&monitor->lock);
}

void http_monitor_forget(struct http_monitor *monitor, struct http_connection *connection)
{
    if (connection->client != HTTP_CLIENT_BEHIND) {
        return;
    }
    lock_take(&monitor->lock);
    list_remove(&monitor->behind, connection);
    give_place(monitor, connection);
    lock_release(&monitor->lock);
    call_unref(connection->waits.call);
}

int http_monitor_agent(struct http_monitor *monitor, struct http_connection *connection,
                       struct ng_str agent)
{
    if (str_equal(agent, agent_of(connection)) || agent.len > sizeof(connection->agent)) {
        return NG_OK; /* only this thread writes it */
    }
    size_t limit = atomic_load(&connection->request.gateway->limits.connections);
    int rc = quota_acquire(monitor->agents, agent, limit);
    if (rc != NG_OK) {
        return rc;
    }
    lock_take(&monitor->lock);
    if (connection->agent_len > 0) {
        quota_release(monitor->agents, agent_of(connection));
    }
    memcpy(connection->agent, agent.data, agent.len);
    connection->agent_len = agent.len;
    lock_release(&monitor->lock);
    return NG_OK;
}

void http_monitor_suspend(struct http_monitor *monitor, struct http_connection *connection,
                          const struct http_wait *wait)
{
    if (wait->call != NULL) {
        call_ref(wait->call);
    }
    lock_take(&monitor->lock);
    connection->waits = *wait;
    connection->client = HTTP_CLIENT_PRESENT;
    lock_release(&monitor->lock);
}

bool http_monitor_resume(struct http_monitor *monitor, struct http_connection *connection)
{
    lock_take(&monitor->lock);
    bool abandoned = atomic_load(&connection->request.stage) == HTTP_ABANDONED;
    struct call *call = NULL;
    if (connection->client != HTTP_CLIENT_BEHIND || !abandoned) {
        call = connection->waits.call;
        connection->waits.call = NULL;
    }
    if (connection->client == HTTP_CLIENT_BEHIND && !abandoned) {
        connection->client = HTTP_CLIENT_LEFT;
    }
    lock_release(&monitor->lock);
    call_unref(call);
    return abandoned;
}

void http_monitor_stream(struct http_monitor *monitor, struct http_connection *connection,
                         struct http_stream *stream)
{
    http_stream_ref(stream);
    lock_take(&monitor->lock);
    connection->stream = stream;
    if (monitor->ending) {
        http_stream_finish(stream);
    }
    lock_release(&monitor->lock);
}

void http_monitor_unstream(struct http_monitor *monitor, struct http_connection *connection)
{
    lock_take(&monitor->lock);
    struct http_stream *stream = connection->stream;
    connection->stream = NULL;
    lock_release(&monitor->lock);
    http_stream_unref(stream);
}

/*
 * A client that has shut down its sending side may still read the answer, and one that has
 * closed the socket looks the same from here. Within this machine the socket table knows which
 * it is; elsewhere keep-alive probes find out, because a closed socket answers them with a
 * reset.
 */
static bool half_closed_has_left(struct http_connection *connection)
{
    if (connection->auth.way == AUTH_LOOPBACK) {
        struct auth_peer found;
        return auth_peer_find(&connection->peer, &connection->local, &found) == NG_ENOTFOUND;
    }
    if (!connection->half_closed && connection->auth.way != AUTH_SOCKET) {
        static const int on = 1;
        static const int idle = PROBE_IDLE_S;
        static const int interval = PROBE_INTERVAL_S;
        static const int count = PROBE_COUNT;
        (void)setsockopt(connection->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
        (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval,
                         sizeof(interval));
        (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    }
    connection->half_closed = true;
    return false;
}

static bool has_left(struct http_connection *connection)
{
    struct pollfd poll_fd = {.fd = connection->fd, .events = POLLRDHUP};
    if (poll(&poll_fd, 1, 0) <= 0) {
        return false;
    }
    if ((poll_fd.revents & (POLLHUP | POLLERR)) != 0) {
        return true;
    }
    return (poll_fd.revents & POLLRDHUP) != 0 && half_closed_has_left(connection);
}

/*
 * The client has ended its side in the middle of a request, which can never be whole any more.
 * libmicrohttpd misses that where data and end came together (it polls for edges).
 */
static bool cut_off(struct http_connection *connection, long long age)
{
    char byte;
    struct pollfd poll_fd = {.fd = connection->fd, .events = POLLRDHUP};
    return age > 2 * HTTP_MONITOR_MS && poll(&poll_fd, 1, 0) > 0 &&
           recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A connection between two requests may rest; one that has begun to send a request line may not
 * take for ever over it. The time is counted from the first round that saw bytes come. */
static bool dawdles_before_head(struct http_connection *connection, long long now,
                                long long since)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);
    if (connection->head_since_ms <= since) {
        connection->head_since_ms = 0;
        if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
            (long long)info.tcpi_last_data_recv + HTTP_MONITOR_MS >= now - since) {
            return false;
        }
        connection->head_since_ms = now;
        return false;
    }
    return now - connection->head_since_ms > HTTP_HEAD_MAX_MS;
}

/* How many more connections are open than leave room for others. */
static size_t crowd(const struct http_monitor *monitor)
{
    if (monitor->first == NULL) {
        return 0;
    }
    size_t limit = atomic_load(&monitor->first->request.gateway->limits.connections);
    size_t most = limit - limit / 8;
    if (monitor->count <= most) {
        return 0;
    }
    return monitor->count - most;
}

static bool dawdles(struct http_connection *connection, long long now)
{
    long long since = atomic_load(&connection->since_ms);
    long long age = now - since;
    switch ((enum http_phase)atomic_load(&connection->phase)) {
    case HTTP_PHASE_WAITING:
        /* One that has not asked anything yet, or does not get on with its handshake (TLS),
         * takes a place from others. */
        return (age > HTTP_HEAD_MAX_MS && !atomic_load(&connection->asked)) ||
               cut_off(connection, age) || dawdles_before_head(connection, now, since);
    case HTTP_PHASE_HEAD:
        return age > HTTP_HEAD_MAX_MS || cut_off(connection, age);
    case HTTP_PHASE_BODY:
        return age > HTTP_RECEIVE_MAX_MS || cut_off(connection, age);
    case HTTP_PHASE_SENDING:
        return age > HTTP_SEND_MAX_MS;
    case HTTP_PHASE_WORKING:
    case HTTP_PHASE_STREAMING:
        return false;
    }
    return false;
}

/* No request on it was authenticated. */
static bool is_stranger(struct http_connection *connection)
{
    return !atomic_load_explicit(&connection->trusted, memory_order_relaxed) &&
           connection->auth.way != AUTH_SOCKET;
}

/* From whom a crowded look takes connections that wait: the agent that has the most, or all
 * strangers together if they have more. */
struct crowding {
    bool of_strangers;
    char agent[HTTP_AGENT_MAX];
    size_t agent_len;
    size_t excess; /* connections of it that may go */
};

static void crowding_begin(struct http_monitor *monitor, size_t excess, struct crowding *ret)
{
    size_t strangers = 0;
    ret->excess = 0;
    if (excess == 0) {
        return;
    }
    for (struct http_connection *at = monitor->first; at != NULL; at = at->next) {
        strangers += is_stranger(at);
    }
    size_t has = quota_most(monitor->agents, ret->agent, sizeof(ret->agent), &ret->agent_len);
    ret->of_strangers = strangers >= has;
    if (ret->of_strangers) {
        has = strangers;
    }
    if (has > 1) {
        ret->excess = size_min(excess, has - 1);
    }
}

static bool gives_way(struct http_connection *connection, long long now,
                      struct crowding *crowding)
{
    struct ng_str agent = str_make(crowding->agent, crowding->agent_len);
    bool is_meant;
    if (crowding->of_strangers) {
        is_meant = is_stranger(connection) && atomic_load(&connection->asked);
    } else {
        is_meant = str_equal(agent_of(connection), agent);
    }
    if (crowding->excess == 0 || !is_meant ||
        now - atomic_load(&connection->since_ms) < HTTP_CROWDED_IDLE_MS) {
        return false;
    }
    crowding->excess--;
    return true;
}

/* Between requests, or over one that is not whole. */
static bool must_go(struct http_connection *connection, int phase, long long now, bool has_turn,
                    bool crowded)
{
    return ((phase != HTTP_PHASE_WAITING || has_turn) && dawdles(connection, now)) ||
           (crowded && is_stranger(connection) &&
            now - atomic_load(&connection->since_ms) > HTTP_STRANGER_MAX_MS);
}

/* A stream may be open for days; its client, its key and what lies between are looked after. */
static void look_at_stream(struct http_connection *connection, long long now, bool ask)
{
    if (connection->stream == NULL) {
        return;
    }
    /* The first key that is made holds for streams that came before it, too. */
    bool needs_key =
        connection->auth.way != AUTH_SOCKET && auth_needs_key(connection->server->auth);
    bool shut =
        http_stream_look(connection->stream, now, needs_key) || (ask && has_left(connection));
    if (shut) {
        http_stream_cut(connection->stream);
        (void)shutdown(connection->fd, SHUT_RDWR);
    }
}

/*
 * A request under way whose client left. A cancelled call comes back soon; else the connection
 * stops waiting. False: nothing to do.
 */
static bool take_left(struct http_connection *connection, struct http_wait *ret)
{
    struct call *call = connection->waits.call;
    bool goes_on = call == NULL || connection->waits.left != NULL || call_has(call, CALL_STAYS);
    if (connection->client != HTTP_CLIENT_PRESENT || !has_left(connection)) {
        return false;
    }
    if (goes_on && !http_request_abandon(&connection->request)) {
        return false; /* not asleep yet, or over: the next look sees it again */
    }
    connection->client = goes_on ? HTTP_CLIENT_BEHIND : HTTP_CLIENT_LEFT;
    if (goes_on && connection->waits.left == NULL) {
        return false;
    }
    *ret = connection->waits;
    call_ref(call);
    return true;
}

/* One check of all connections; the lock is held. Fills `left` with the events to report. */
static size_t look(struct http_monitor *monitor, struct http_wait *left)
{
    size_t count = 0;
    long long now = http_now_ms();
    struct crowding crowding;
    size_t excess = crowd(monitor);
    crowding_begin(monitor, excess, &crowding);
    unsigned looks = monitor->looks++;
    for (struct http_connection *connection = monitor->first; connection != NULL;
         connection = connection->next) {
        int phase = atomic_load(&connection->phase);
        unsigned turn = looks + connection->turn;
        if (phase == HTTP_PHASE_STREAMING) {
            look_at_stream(connection, now, turn % HTTP_MONITOR_STREAM_TURNS == 0);
        } else if (phase == HTTP_PHASE_WORKING) {
            if (count < ROUND_CALLS && take_left(connection, &left[count])) {
                count++;
            }
        } else if (must_go(connection, phase, now, turn % HTTP_MONITOR_WAITING_TURNS == 0,
                           excess > 0) ||
                   (phase == HTTP_PHASE_WAITING && gives_way(connection, now, &crowding))) {
            (void)shutdown(connection->fd, SHUT_RDWR);
        }
    }
    return count;
}

/* Without the lock. */
static void tell_left(struct http_wait *left, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (left[i].left != NULL) {
            left[i].left(left[i].user);
        } else {
            call_cancel(left[i].call);
        }
        call_unref(left[i].call);
    }
}

static void *monitor_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-http-monitor");
    struct http_monitor *monitor = user;
    struct http_wait left[ROUND_CALLS];
    lock_take(&monitor->lock);
    while (!monitor->stopping) {
        if (monitor->count == 0) {
            lock_wait(&monitor->wake, &monitor->lock);
            continue;
        }
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += HTTP_MONITOR_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            until.tv_sec++;
        }
        if (lock_wait_until(&monitor->wake, &monitor->lock, &until) != ETIMEDOUT) {
            continue;
        }
        size_t count = look(monitor, left);
        if (count > 0) {
            lock_release(&monitor->lock);
            tell_left(left, count);
            lock_take(&monitor->lock);
        }
    }
    lock_release(&monitor->lock);
    return NULL;
}

int http_monitor_start(struct http_monitor *monitor)
{
    monitor->first = NULL;
    monitor->behind = NULL;
    monitor->count = 0;
    monitor->looks = 0;
    monitor->added = 0;
    monitor->ending = false;
    monitor->stopping = false;
    monitor->agents = quota_new();
    if (monitor->agents == NULL) {
        return NG_EINTERNAL;
    }
    lock_init(&monitor->lock, LOCK_HTTP_MONITOR);
    lock_cond_init(&monitor->wake);
    if (pthread_create(&monitor->thread, NULL, monitor_run, monitor) != 0) {
        (void)pthread_cond_destroy(&monitor->wake);
        lock_done(&monitor->lock);
        quota_free(monitor->agents);
        return NG_EINTERNAL;
    }
    return NG_OK;
}

void http_monitor_stop(struct http_monitor *monitor)
{
    lock_take(&monitor->lock);
    monitor->stopping = true;
    pthread_cond_signal(&monitor->wake);
    lock_release(&monitor->lock);
    (void)pthread_join(monitor->thread, NULL);
    (void)pthread_cond_destroy(&monitor->wake);
    lock_done(&monitor->lock);
    quota_free(monitor->agents);
}

/* Up to ROUND_CALLS calls of the list that were not cancelled yet. */
static size_t uncancelled(struct http_connection *first, struct http_wait *ret, size_t count)
{
    for (struct http_connection *at = first; at != NULL && count < ROUND_CALLS; at = at->next) {
        struct call *call = at->waits.call;
        if (call != NULL && !call_has(call, CALL_CANCELLED)) {
            call_ref(call);
            ret[count].left = NULL;
            ret[count++].call = call;
        }
    }
    return count;
}

void http_monitor_cancel_all(struct http_monitor *monitor)
{
    struct http_wait calls[ROUND_CALLS];
    size_t count;
    do {
        lock_take(&monitor->lock);
        count = uncancelled(monitor->first, calls, 0);
        count = uncancelled(monitor->behind, calls, count);
        lock_release(&monitor->lock);
        tell_left(calls, count);
    } while (count == ROUND_CALLS);
}

void http_monitor_end_streams(struct http_monitor *monitor)
{
    lock_take(&monitor->lock);
    monitor->ending = true;
    for (struct http_connection *connection = monitor->first; connection != NULL;
         connection = connection->next) {
        if (connection->stream != NULL) {
            http_stream_finish(connection->stream);
        }
    }
    lock_release(&monitor->lock);
}

size_t http_monitor_busy(struct http_monitor *monitor)
{
    size_t busy = 0;
    lock_take(&monitor->lock);
    for (struct http_connection *connection = monitor->first; connection != NULL;
         connection = connection->next) {
        int phase = atomic_load(&connection->phase);
        busy += phase == HTTP_PHASE_WORKING || phase == HTTP_PHASE_SENDING ||
                (phase == HTTP_PHASE_STREAMING && monitor->ending);
    }
    lock_release(&monitor->lock);
    return busy;
}

void http_monitor_each(struct http_monitor *monitor,
                       void (*each)(struct http_connection *connection))
{
    lock_take(&monitor->lock);
    for (struct http_connection *connection = monitor->first; connection != NULL;
         connection = connection->next) {
        each(connection);
    }
    lock_release(&monitor->lock);
}
