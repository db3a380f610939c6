/* SPDX-License-Identifier: MIT */
/* test_exchange.c - requests to other gateways, against a server that breaks off where the test
 * wants it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/client/exchange.h"
#include "core/base/clock.h"
#include "core/cluster/cluster.h"

#define TEXT_MAX 4096
#define DESCRIPTORS_MAX 1024
#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
#define DRIPS 300
#define DRIP_ANSWER OK_HEAD "Content-Length: 300\r\n\r\n"
#define ANSWER OK_HEAD "Content-Length: 2\r\n\r\nok"

/* ---- the other side ---- */

enum deed {
    DEED_ANSWER,   /* and keep the connection */
    DEED_CUT,      /* close the connection without an answer */
    DEED_CUT_LAST, /* the same, and nothing listens any more */
    DEED_DRIP      /* an answer of DRIPS pieces, each when the one before has come */
};

struct server {
    atomic_int listener, connection;
    uint16_t port;
    const enum deed *deeds; /* of the requests, in order */
    size_t deed_count, requests;
    int come[2]; /* a pipe: a byte for each piece that came */
    pthread_t thread;
};

static bool is_whole(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n");
    const char *length = strstr(text, "Content-Length: ");
    size_t body = 0;
    if (length != NULL) {
        body = strtoul(length + strlen("Content-Length: "), NULL, 10);
    }
    return end != NULL && strlen(end + 4) >= body;
}

/* One whole request. False: the connection has ended. */
static bool take_request(int connection)
{
    char text[TEXT_MAX];
    size_t len = 0;
    text[0] = '\0';
    while (!is_whole(text)) {
        ssize_t got = read(connection, text + len, sizeof(text) - len - 1);
        if (got <= 0) {
            return false;
        }
        len += (size_t)got;
        text[len] = '\0';
    }
    return true;
}

static void say(int connection, const char *text)
{
    assert_int_equal(write(connection, text, strlen(text)), (ssize_t)strlen(text));
}

static void drip(const struct server *server)
{
    char byte;
    say(server->connection, DRIP_ANSWER);
    for (int i = 0; i < DRIPS; i++) {
        say(server->connection, "x");
        assert_int_equal(read(server->come[0], &byte, 1), 1);
    }
}

static void *serve(void *user)
{
    struct server *server = user;
    while (server->requests < server->deed_count) {
        if (server->connection < 0) {
            server->connection = accept(server->listener, NULL, NULL);
        }
        if (server->connection < 0) {
            break;
        }
        if (!take_request(server->connection)) {
            (void)close(server->connection);
            server->connection = -1;
            continue;
        }
        enum deed deed = server->deeds[server->requests++];
        if (deed == DEED_ANSWER) {
            say(server->connection, ANSWER);
            continue;
        }
        if (deed == DEED_DRIP) {
            drip(server);
            continue;
        }
        if (deed == DEED_CUT_LAST) {
            (void)close(server->listener);
            server->listener = -1;
        }
        (void)close(server->connection);
        server->connection = -1;
    }
    return NULL;
}

static void server_open(struct server *server, const enum deed *deeds, size_t count)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    *server = (struct server){.connection = -1, .deeds = deeds, .deed_count = count};
    assert_int_equal(pipe(server->come), 0);
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&at, &len), 0);
    server->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

/* How many requests came. */
static size_t server_close(struct server *server)
{
    if (server->listener >= 0) {
        (void)shutdown(server->listener, SHUT_RDWR);
    }
    (void)pthread_join(server->thread, NULL);
    (void)close(server->connection);
    (void)close(server->listener);
    (void)close(server->come[0]);
    (void)close(server->come[1]);
    return server->requests;
}

/* ---- this side ---- */

static const struct exchange_api *api(void)
{
    void *module = dlopen(NOTEGATE_MODULES "/client.so", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(module);
    const struct exchange_api *found = dlsym(module, EXCHANGE_SYMBOL);
    assert_non_null(found);
    assert_int_equal(found->version, EXCHANGE_API);
    return found; /* the module stays */
}

struct asked {
    struct exchange exchange;
    char url[64];
    int status;
    enum exchange_outcome outcome;
    bool over;
    int come; /* where a byte is written for each piece of the body; or -1 */
    int looks;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static struct asked *asked_of(struct exchange *exchange)
{
    return (struct asked *)(void *)exchange;
}

static void on_head(struct exchange *exchange, const struct exchange_head *head)
{
    asked_of(exchange)->status = head->status;
}

static bool on_body(struct exchange *exchange, const char *data, size_t len)
{
    const struct asked *asked = asked_of(exchange);
    if (asked->come >= 0) {
        assert_int_equal(write(asked->come, data, len), (ssize_t)len);
    }
    return true;
}

static bool is_lost(struct exchange *exchange)
{
    asked_of(exchange)->looks++;
    return false;
}

static void on_end(struct exchange *exchange, enum exchange_outcome outcome)
{
    struct asked *asked = asked_of(exchange);
    pthread_mutex_lock(&asked->lock);
    asked->outcome = outcome;
    asked->over = true;
    pthread_cond_signal(&asked->changed);
    pthread_mutex_unlock(&asked->lock);
}

static void asked_open(struct asked *asked, const char *method, uint16_t port)
{
    *asked = (struct asked){
        .come = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    (void)snprintf(asked->url, sizeof(asked->url), "http://127.0.0.1:%u/mcp", port);
    asked->exchange.url = asked->url;
    asked->exchange.method = method;
    if (strcmp(method, "POST") == 0) {
        asked->exchange.body = (struct ng_str){"{}", 2};
    }
    asked->exchange.on_head = on_head;
    asked->exchange.on_body = on_body;
    asked->exchange.is_lost = is_lost;
    asked->exchange.ended = on_end;
}

static void asked_wait(struct asked *asked)
{
    pthread_mutex_lock(&asked->lock);
    while (!asked->over) {
        pthread_cond_wait(&asked->changed, &asked->lock);
    }
    pthread_mutex_unlock(&asked->lock);
}

static enum exchange_outcome ask(struct exchanges *exchanges, const char *method, uint16_t port)
{
    struct asked asked;
    asked_open(&asked, method, port);
    api()->begin(exchanges, &asked.exchange);
    asked_wait(&asked);
    if (asked.outcome == EXCHANGE_OK) {
        assert_int_equal(asked.status, 200);
    }
    return asked.outcome;
}

/* ---- what is sent again ---- */

/* Two requests, the second over the kept connection, which closes without an answer. Returns
 * how many the server got. */
static size_t ask_twice(const char *method, const enum deed *deeds, size_t count,
                        enum exchange_outcome second)
{
    struct server server;
    struct exchanges *exchanges = NULL;
    assert_int_equal(api()->open(&exchanges), NG_OK);
    server_open(&server, deeds, count);
    assert_int_equal(ask(exchanges, method, server.port), EXCHANGE_OK);
    assert_int_equal(ask(exchanges, method, server.port), second);
    api()->close(exchanges);
    return server_close(&server);
}

static void test_a_change_is_sent_once(void **state)
{
    static const enum deed deeds[] = {DEED_ANSWER, DEED_CUT, DEED_ANSWER};
    (void)state;
    assert_int_equal(ask_twice("POST", deeds, 3, EXCHANGE_BROKEN), 2);
    assert_int_equal(ask_twice("DELETE", deeds, 3, EXCHANGE_BROKEN), 2);
}

static void test_a_read_is_sent_again(void **state)
{
    static const enum deed deeds[] = {DEED_ANSWER, DEED_CUT, DEED_ANSWER};
    (void)state;
    assert_int_equal(ask_twice("GET", deeds, 3, EXCHANGE_OK), 3);
}

/* "Nobody" lets the caller serve the request itself. */
static void test_it_was_sent_before_nobody_listened(void **state)
{
    static const enum deed deeds[] = {DEED_ANSWER, DEED_CUT_LAST};
    (void)state;
    assert_int_equal(ask_twice("POST", deeds, 2, EXCHANGE_BROKEN), 2);
    assert_int_equal(ask_twice("GET", deeds, 2, EXCHANGE_BROKEN), 2);
}

static void test_nobody_listens(void **state)
{
    struct server server;
    struct exchanges *exchanges = NULL;
    (void)state;
    assert_int_equal(api()->open(&exchanges), NG_OK);
    server_open(&server, NULL, 0);
    assert_int_equal(server_close(&server), 0);
    assert_int_equal(ask(exchanges, "POST", server.port), EXCHANGE_NOBODY);
    api()->close(exchanges);
}

/* ---- what is lost ---- */

/* Asking takes locks of the cluster: once a second, not at each piece of an answer. */
static void test_looks_are_seldom(void **state)
{
    static const enum deed deeds[] = {DEED_DRIP};
    struct server server;
    struct asked asked;
    struct exchanges *exchanges = NULL;
    (void)state;
    assert_int_equal(api()->open(&exchanges), NG_OK);
    server_open(&server, deeds, 1);
    asked_open(&asked, "GET", server.port);
    asked.come = server.come[1];
    int64_t begun_ns = clock_monotonic_ns();
    api()->begin(exchanges, &asked.exchange);
    asked_wait(&asked);
    int64_t seconds = (clock_monotonic_ns() - begun_ns) / 1000000000;
    assert_int_equal(asked.outcome, EXCHANGE_OK);
    assert_true(asked.looks <= seconds + 2);
    api()->close(exchanges);
    assert_int_equal(server_close(&server), 1);
}

/* This end of the connection that the server has. */
static int own_end(int connection)
{
    struct sockaddr_in peer = {0};
    struct sockaddr_in own = {0};
    socklen_t len = sizeof(peer);
    assert_int_equal(getpeername(connection, (struct sockaddr *)&peer, &len), 0);
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
        len = sizeof(own);
        if (getsockname(fd, (struct sockaddr *)&own, &len) == 0 && own.sin_family == AF_INET &&
            own.sin_port == peer.sin_port) {
            return fd;
        }
    }
    fail_msg("the connection is not of this process");
    return -1;
}

static int option_of(int fd, int level, int option)
{
    int value = 0;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(fd, level, option, &value, &len), 0);
    return value;
}

/* The system's own times are hours without a request under way, and a quarter of one with it.
 */
static void test_a_line_that_is_cut(void **state)
{
    static const enum deed deeds[] = {DEED_ANSWER, DEED_CUT};
    struct server server;
    struct exchanges *exchanges = NULL;
    (void)state;
    assert_int_equal(api()->open(&exchanges), NG_OK);
    server_open(&server, deeds, 2);
    assert_int_equal(ask(exchanges, "POST", server.port), EXCHANGE_OK);
    int fd = own_end(server.connection);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), CLUSTER_LEASE_MS);
    assert_true(option_of(fd, SOL_SOCKET, SO_KEEPALIVE) != 0);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 5);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
    api()->close(exchanges);
    assert_int_equal(server_close(&server), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_change_is_sent_once),
        cmocka_unit_test(test_a_read_is_sent_again),
        cmocka_unit_test(test_it_was_sent_before_nobody_listened),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_looks_are_seldom),
        cmocka_unit_test(test_a_line_that_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
