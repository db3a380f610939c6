/* SPDX-License-Identifier: MIT */
/* exchange.c - requests to other gateways: a queue of orders, and a thread that carries them
 * out with libcurl. */
#include "exchange.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"

/* Longest sleep of the thread, which is woken for each order: with nothing under way, and
 * between two looks for what is lost. */
#define EXCHANGE_SLEEP_MS 60000
#define EXCHANGE_LOOK_MS 1000
/* Kept connections that were idle longer are not used again: a gateway closes them after 75 s,
 * and a request that meets that has an unknown end. */
#define EXCHANGE_KEEP_S 30L
/* A line that is cut says nothing: the other side has to acknowledge a probe, or what was sent,
 * within the time after which a silent gateway counts as dead. */
#define EXCHANGE_PROBE_S 5L
#define EXCHANGE_UNHEARD_MS CLUSTER_LEASE_MS
#define EXCHANGE_FINAL_STATUS 200 /* below: more heads follow */

enum order { ORDER_BEGIN = 1, ORDER_RESUME = 2, ORDER_CANCEL = 4 };

struct exchanges {
    CURLM *multi;
    pthread_t thread;
    struct lock lock;
    TAILQ_HEAD(, exchange) orders; /* under the lock */
    bool refuses, stopping;        /* under the lock */
    LIST_HEAD(, exchange) running; /* of the thread */
};

/* ---- one exchange, on the thread ---- */

/* Takes it out of the queue: no order is carried out from now on. */
static void forget(struct exchange *exchange)
{
    struct exchanges *exchanges = exchange->of;
    lock_take(&exchanges->lock);
    exchange->over = true;
    if (exchange->queued) {
        TAILQ_REMOVE(&exchanges->orders, exchange, queue);
        exchange->queued = false;
    }
    lock_release(&exchanges->lock);
}

static void end(struct exchange *exchange, enum exchange_outcome outcome)
{
    forget(exchange);
    if (exchange->handle != NULL) {
        LIST_REMOVE(exchange, running);
        (void)curl_multi_remove_handle(exchange->of->multi, exchange->handle);
        curl_easy_cleanup(exchange->handle);
    }
    curl_slist_free_all(exchange->lines);
    exchange->ended(exchange, outcome);
}

/* NULL: the answer does not have it. */
static const char *header_of(struct exchange *exchange, const char *name)
{
    struct curl_header *header = NULL;
    if (curl_easy_header(exchange->handle, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) {
        return NULL;
    }
    return header->value;
}

static size_t take_header(char *data, size_t size, size_t count, void *user)
{
    struct exchange *exchange = user;
    long status = 0;
    struct exchange_head head = {0};
    curl_off_t retry = 0;
    bool last = size * count == 2 && memcmp(data, "\r\n", 2) == 0;
    (void)curl_easy_getinfo(exchange->handle, CURLINFO_RESPONSE_CODE, &status);
    if (last && status >= EXCHANGE_FINAL_STATUS) {
        (void)curl_easy_getinfo(exchange->handle, CURLINFO_CONTENT_TYPE, &head.content_type);
        (void)curl_easy_getinfo(exchange->handle, CURLINFO_RETRY_AFTER, &retry);
        head.allow = header_of(exchange, "Allow");
        head.session_id = header_of(exchange, "Mcp-Session-Id");
        head.run = header_of(exchange, "X-Notegate-Run");
        head.status = (int)status;
        head.retry_after_s = (int)retry;
        exchange->on_head(exchange, &head);
    }
    return size * count;
}

static size_t take_body(char *data, size_t size, size_t count, void *user)
{
    struct exchange *exchange = user;
    if (exchange->on_body(exchange, data, size * count)) {
        return size * count;
    }
    return CURL_WRITEFUNC_PAUSE;
}

/* Before each attempt of libcurl, which sends a request again by itself if a kept connection
 * closed before the first byte of its answer. The other gateway may have run it by then. */
/* NOLINTNEXTLINE(readability-non-const-parameter) */
static int before_request(void *user, char *remote_ip, char *local_ip, int remote_port,
                          int local_port)
{
    struct exchange *exchange = user;
    bool is_repeat = exchange->sent && strcmp(exchange->method, "GET") != 0;
    (void)remote_ip;
    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    exchange->sent = true;
    return is_repeat ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static bool set_lines(struct exchange *exchange)
{
    /* curl would wait a second for the "100 Continue" of large bodies. */
    struct curl_slist *lines = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; lines != NULL && i < exchange->header_count; i++) {
        struct curl_slist *longer = curl_slist_append(lines, exchange->headers[i]);
        if (longer == NULL) {
            curl_slist_free_all(lines);
        }
        lines = longer;
    }
    exchange->lines = lines;
    return lines != NULL;
}

/* For what was sent, too: without it the system tries for a quarter of an hour. */
static int set_socket(void *user, curl_socket_t socket, curlsocktype purpose)
{
    unsigned unheard_ms = EXCHANGE_UNHEARD_MS;
    (void)user;
    (void)purpose;
    if (setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard_ms, sizeof(unheard_ms)) !=
        0) {
        return CURL_SOCKOPT_ERROR;
    }
    return CURL_SOCKOPT_OK;
}

static bool set_connection(struct exchange *exchange)
{
    CURL *curl = exchange->handle;
    bool ok = curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, EXCHANGE_PROBE_S) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, EXCHANGE_PROBE_S) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, set_socket) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, EXCHANGE_KEEP_S) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, before_request) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_PREREQDATA, exchange) == CURLE_OK;
    return ok &&
           curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, EXCHANGE_CONNECT_MS) == CURLE_OK;
}

static bool set_options(struct exchange *exchange)
{
    CURL *curl = exchange->handle;
    bool ok = set_connection(exchange);
    ok = ok && curl_easy_setopt(curl, CURLOPT_URL, exchange->url) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_HTTPHEADER, exchange->lines) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_HEADERDATA, exchange) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_PRIVATE, exchange) == CURLE_OK;
    if (ok && exchange->authorities != NULL) {
        ok = curl_easy_setopt(curl, CURLOPT_CAINFO, exchange->authorities) == CURLE_OK;
    }
    if (ok && exchange->body.data != NULL) {
        ok = curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                              (curl_off_t)exchange->body.len) == CURLE_OK &&
             curl_easy_setopt(curl, CURLOPT_POSTFIELDS, exchange->body.data) == CURLE_OK;
    }
    return ok && curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, exchange->method) == CURLE_OK;
}

static void start(struct exchanges *exchanges, struct exchange *exchange)
{
    exchange->sent = false;
    exchange->handle = curl_easy_init();
    if (exchange->handle != NULL) {
        LIST_INSERT_HEAD(&exchanges->running, exchange, running);
    }
    if (exchange->handle == NULL || !set_lines(exchange) || !set_options(exchange) ||
        curl_multi_add_handle(exchanges->multi, exchange->handle) != CURLM_OK) {
        end(exchange, EXCHANGE_BROKEN);
    }
}

/* Only the host of a gateway knows that nothing listens there. A name without an address, a
 * network without a route, and too many open files here tell nothing about that gateway. A
 * request that was sent before may have been run. */
static enum exchange_outcome outcome_of(const struct exchange *exchange, CURLcode rc)
{
    long number = 0;
    if (rc == CURLE_OK) {
        return EXCHANGE_OK;
    }
    (void)curl_easy_getinfo(exchange->handle, CURLINFO_OS_ERRNO, &number);
    if (rc == CURLE_COULDNT_CONNECT && number == ECONNREFUSED && !exchange->sent) {
        return EXCHANGE_NOBODY;
    }
    return EXCHANGE_BROKEN;
}

/* ---- the thread ---- */

static void carry_out(struct exchanges *exchanges, struct exchange *exchange, unsigned orders,
                      bool refuses)
{
    if ((orders & ORDER_CANCEL) != 0 || refuses) {
        end(exchange, EXCHANGE_STOPPED);
    } else if ((orders & ORDER_BEGIN) != 0) {
        start(exchanges, exchange);
    } else if ((orders & ORDER_RESUME) != 0) {
        (void)curl_easy_pause(exchange->handle, CURLPAUSE_CONT);
    }
}

static void end_running(struct exchanges *exchanges)
{
    while (!LIST_EMPTY(&exchanges->running)) {
        end(LIST_FIRST(&exchanges->running), EXCHANGE_STOPPED);
    }
}

/* False: the thread is to end. */
static bool carry_out_all(struct exchanges *exchanges)
{
    for (;;) {
        lock_take(&exchanges->lock);
        struct exchange *exchange = TAILQ_FIRST(&exchanges->orders);
        bool stopping = exchanges->stopping;
        bool refuses = exchanges->refuses;
        unsigned orders = 0;
        if (exchange != NULL) {
            TAILQ_REMOVE(&exchanges->orders, exchange, queue);
            exchange->queued = false;
            orders = exchange->asked;
            exchange->asked = 0;
        }
        lock_release(&exchanges->lock);
        if (exchange != NULL) {
            carry_out(exchanges, exchange, orders, refuses);
            continue;
        }
        if (refuses) {
            end_running(exchanges);
        }
        return !stopping;
    }
}

static void end_finished(struct exchanges *exchanges)
{
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(exchanges->multi, &left)) != NULL) {
        char *user = NULL;
        CURLcode rc = message->data.result;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &user);
        struct exchange *exchange = (struct exchange *)(void *)user;
        end(exchange, outcome_of(exchange, rc));
    }
}

/* A stopped process accepts connections and never answers. */
static void end_lost(struct exchanges *exchanges)
{
    struct exchange *exchange = LIST_FIRST(&exchanges->running);
    while (exchange != NULL) {
        struct exchange *next = LIST_NEXT(exchange, running);
        if (exchange->is_lost != NULL && exchange->is_lost(exchange)) {
            end(exchange, EXCHANGE_BROKEN);
        }
        exchange = next;
    }
}

static void *run(void *user)
{
    struct exchanges *exchanges = user;
    int running = 0;
    int64_t looked_ms = 0;
    (void)pthread_setname_np(pthread_self(), "ng-exchanges");
    while (carry_out_all(exchanges)) {
        (void)curl_multi_perform(exchanges->multi, &running);
        end_finished(exchanges);
        int64_t now_ms = clock_monotonic_ns() / 1000000;
        if (now_ms - looked_ms >= EXCHANGE_LOOK_MS) {
            looked_ms = now_ms;
            end_lost(exchanges);
        }
        int sleep_ms = EXCHANGE_SLEEP_MS;
        if (!LIST_EMPTY(&exchanges->running)) {
            sleep_ms = EXCHANGE_LOOK_MS;
        }
        (void)curl_multi_poll(exchanges->multi, NULL, 0, sleep_ms, NULL);
    }
    return NULL;
}

/* ---- any thread ---- */

static void order(struct exchange *exchange, unsigned what)
{
    struct exchanges *exchanges = exchange->of;
    lock_take(&exchanges->lock);
    if (!exchange->over) {
        exchange->asked |= what;
        if (!exchange->queued) {
            exchange->queued = true;
            TAILQ_INSERT_TAIL(&exchanges->orders, exchange, queue);
        }
        (void)curl_multi_wakeup(exchanges->multi);
    }
    lock_release(&exchanges->lock);
}

static void exchanges_begin(struct exchanges *exchanges, struct exchange *exchange)
{
    exchange->of = exchanges;
    order(exchange, ORDER_BEGIN);
}

static void exchange_resume(struct exchange *exchange)
{
    order(exchange, ORDER_RESUME);
}

static void exchange_cancel(struct exchange *exchange)
{
    order(exchange, ORDER_CANCEL);
}

static void exchanges_refuse(struct exchanges *exchanges)
{
    lock_take(&exchanges->lock);
    exchanges->refuses = true;
    (void)curl_multi_wakeup(exchanges->multi);
    lock_release(&exchanges->lock);
}

static void exchanges_close(struct exchanges *exchanges)
{
    lock_take(&exchanges->lock);
    exchanges->refuses = true;
    exchanges->stopping = true;
    (void)curl_multi_wakeup(exchanges->multi);
    lock_release(&exchanges->lock);
    (void)pthread_join(exchanges->thread, NULL);
    (void)curl_multi_cleanup(exchanges->multi);
    lock_done(&exchanges->lock);
    free(exchanges);
}

static int exchanges_open(struct exchanges **ret)
{
    struct exchanges *exchanges = alloc_zeroed(1, sizeof(*exchanges));
    if (exchanges == NULL) {
        return NG_EINTERNAL;
    }
    (void)curl_global_init(CURL_GLOBAL_NOTHING);
    exchanges->multi = curl_multi_init();
    if (exchanges->multi == NULL) {
        free(exchanges);
        return NG_EINTERNAL;
    }
    lock_init(&exchanges->lock, LOCK_EXCHANGES);
    TAILQ_INIT(&exchanges->orders);
    LIST_INIT(&exchanges->running);
    if (pthread_create(&exchanges->thread, NULL, run, exchanges) != 0) {
        (void)curl_multi_cleanup(exchanges->multi);
        lock_done(&exchanges->lock);
        free(exchanges);
        return NG_EINTERNAL;
    }
    *ret = exchanges;
    return NG_OK;
}

__attribute__((visibility("default"))) extern const struct exchange_api notegate_exchanges;
const struct exchange_api notegate_exchanges = {.version = EXCHANGE_API,
                                                .open = exchanges_open,
                                                .refuse = exchanges_refuse,
                                                .close = exchanges_close,
                                                .begin = exchanges_begin,
                                                .resume = exchange_resume,
                                                .cancel = exchange_cancel};
