/* SPDX-License-Identifier: MIT */
/* test_http_server.c - connections and requests as bytes: framing, bounds, clients that leave.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "core/base/str.h"
#include "http_peer.h"
#include "program.h"

#define CALL "POST /v1/tools/notebook HTTP/1.1\r\nHost: localhost\r\n"
#define TYPE "Content-Type: application/json\r\n"
#define LIST "{\"mode\":\"list\"}"
#define GET "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"

/* Waiting for connections to end gives up after about this long. */
#define PATIENCE_MS 10000

static struct program gateway;
static const char *home;
static char local[512];

/* The bytes are refused with this status, and the connection ends. */
static void expect_refused(const char *bytes, int status, const char *part)
{
    struct http_peer peer;
    http_open(&peer, gateway.address);
    http_send(&peer, bytes);
    struct http_answer answer = http_take(&peer);
    if (answer.status != status || strstr(answer.body, part) == NULL) {
        fail_msg("%s: %s%s", bytes, answer.head, answer.body);
    }
    char *connection = http_header(&answer, "Connection");
    assert_non_null(connection);
    assert_string_equal(connection, "close");
    assert_true(http_has_ended(&peer));
    free(connection);
    http_answer_free(&answer);
    http_close(&peer);
}

static void framing_that_can_be_read_twice(void **state)
{
    static const char *const headers[] = {
        "Content-Length: 5\r\nContent-Length: 15\r\n",
        "Content-Length: 15\r\nContent-Length: 15\r\n",
        "Content-Length: 15\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(headers); i++) {
        char bytes[512];
        (void)snprintf(bytes, sizeof(bytes), CALL TYPE "%s\r\n" LIST, headers[i]);
        expect_refused(bytes, 400, "INVALID_INPUT");
    }
}

static void hosts_and_bytes(void **state)
{
    static const struct {
        const char *bytes;
        int status;
        const char *part;
    } cases[] = {
        {"GET /healthz HTTP/1.1\r\n\r\n", 400, "INVALID_INPUT"},
        {GET "Host: localhost\r\n\r\n", 400, "INVALID_INPUT"},
        {GET "X-A : b\r\n\r\n", 400, "INVALID_INPUT"},
        {GET "X-A: a\x01"
             "b\r\n\r\n",
         400, "INVALID_INPUT"},
        {"BREW /v1/tools HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "METHOD_NOT_ALLOWED"},
        {CALL TYPE "Expect: 100-continue\r\nContent-Length: 1099511627776\r\n\r\n", 413,
         "TOO_LARGE"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        expect_refused(cases[i].bytes, cases[i].status, cases[i].part);
    }
}

static void targets(void **state)
{
    static const struct http_case cases[] = {
        {"GET /healthz%00", 400, "INVALID_INPUT"},
        {"GET /healthz%", 400, "INVALID_INPUT"},
        {"GET /healthz%zz", 400, "INVALID_INPUT"},
        {"GET /v1/tools/%ff", 400, "INVALID_INPUT"},
        {"GET /v1/tools/a%0d%0ab", 400, "INVALID_INPUT"},
        {"GET /v1/tools\nAuthorization: Bearer a\nAuthorization: Bearer b", 400, "twice"},
        {"GET /v1/tools\nX-Notegate-Agent: a\nX-Notegate-Agent: b", 400, "twice"},
        {"GET /v1/tools\nOrigin: http://localhost\nOrigin: http://localhost", 400, "twice"},
    };
    char request[4096] = "GET /";
    (void)state;
    expect_http(gateway.address, cases, NG_COUNT(cases));
    memset(request + 5, 'a', 3000);
    request[3005] = '\0';
    expect_http(gateway.address, &(struct http_case){request, 413, "TOO_LARGE"}, 1);
    size_t len = (size_t)snprintf(request, sizeof(request), "GET /v1/tools?a");
    for (int i = 0; i < 250; i++) {
        memcpy(request + len + (size_t)i * 2, "&a", 3);
    }
    expect_http(gateway.address, &(struct http_case){request, 413, "251 parameters"}, 1);
}

static void many_headers(void **state)
{
    char bytes[8192];
    size_t len = (size_t)snprintf(bytes, sizeof(bytes), GET);
    (void)state;
    for (int i = 0; i < 100; i++) {
        len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "X-%d: 1\r\n", i);
    }
    (void)snprintf(bytes + len, sizeof(bytes) - len, "\r\n");
    expect_refused(bytes, 413, "TOO_LARGE");
}

static void expect_next(struct http_peer *peer, int status, const char *part)
{
    struct http_answer answer = http_take(peer);
    if (answer.status != status ||
        (strstr(answer.body, part) == NULL && strstr(answer.head, part) == NULL)) {
        fail_msg("not %d and %s: %s%s", status, part, answer.head, answer.body);
    }
    http_answer_free(&answer);
}

static void a_connection_is_kept(void **state)
{
    struct http_peer peer;
    (void)state;
    http_open(&peer, gateway.address);
    for (int i = 0; i < 3; i++) {
        http_ask(&peer, "POST /nothing\nContent-Type: application/json\n\nxxxxxxxxxx");
        expect_next(&peer, 404, "NOT_FOUND");
        http_ask(&peer, "POST /v1/tools/notebook\nContent-Type: text/plain\n\n{}");
        expect_next(&peer, 415, "UNSUPPORTED_MEDIA_TYPE");
        http_ask(&peer, "GET /healthz\n\n" LIST);
        expect_next(&peer, 200, "ok");
    }
    http_send(&peer, "HEAD /v1/tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    http_wait(&peer, "\r\n\r\n");
    while (!peer.ended) {
        buf_clear(&peer.received);
        assert_true(http_has_ended(&peer)); /* no body comes */
    }
    http_close(&peer);
}

static void pipelining(void **state)
{
    struct http_peer peer;
    char bytes[512];
    (void)state;
    http_open(&peer, gateway.address);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(bytes, sizeof(bytes),
                       CALL TYPE "X-Request-Id: n%d\r\nContent-Length: 15\r\n\r\n" LIST, i);
        http_send(&peer, bytes);
    }
    for (int i = 0; i < 20; i++) {
        (void)snprintf(bytes, sizeof(bytes), "X-Request-Id: n%d\r\n", i);
        expect_next(&peer, 200, bytes);
    }
    http_close(&peer);
}

static void bodies_in_pieces(void **state)
{
    struct http_peer peer;
    (void)state;
    http_open(&peer, gateway.address);
    http_send(&peer, CALL TYPE "Transfer-Encoding: chunked\r\n\r\n");
    http_send(&peer, "3\r\n{\"m\r\n");
    http_send(&peer, "c\r\node\":\"list\"}\r\n0\r\n\r\n");
    expect_next(&peer, 200, "\"result\"");
    assert_true(http_has_ended(&peer)); /* nothing behind chunks is a request */
    http_close(&peer);
    http_open(&peer, gateway.address);
    for (const char *at = CALL TYPE "Content-Length: 15\r\n\r\n" LIST; *at != '\0'; at++) {
        char byte[2] = {*at, '\0'};
        http_send(&peer, byte);
    }
    expect_next(&peer, 200, "\"result\"");
    http_send(&peer, CALL TYPE "Expect: 100-continue\r\nContent-Length: 15\r\n\r\n");
    expect_next(&peer, 100, "100 Continue");
    http_send(&peer, LIST);
    expect_next(&peer, 200, "\"result\"");
    http_close(&peer);
}

static void bodies_have_a_limit(void **state)
{
    struct http_peer peer;
    struct buf body;
    (void)state;
    buf_init(&body, 1024 * 1024);
    buf_add_c(&body, "POST /v1/tools/notebook\nContent-Type: application/json\n\n");
    for (int i = 0; i < 70000; i++) {
        buf_add_char(&body, 'x');
    }
    http_open(&peer, gateway.address);
    http_ask(&peer, buf_cstr(&body));
    expect_next(&peer, 413, "65536");
    http_close(&peer);
    http_open(&peer, gateway.address);
    http_send(&peer, CALL TYPE "Transfer-Encoding: chunked\r\n\r\n");
    buf_clear(&body);
    buf_add_c(&body, "10000\r\n");
    for (int i = 0; i < 65536; i++) {
        buf_add_char(&body, 'x');
    }
    buf_add_c(&body, "\r\n5\r\nabcde\r\n0\r\n\r\n");
    http_send(&peer, buf_cstr(&body));
    expect_next(&peer, 413, "TOO_LARGE");
    http_close(&peer);
    buf_done(&body);
}

static void older_http(void **state)
{
    struct http_peer peer;
    (void)state;
    http_open(&peer, gateway.address);
    http_send(&peer, "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n");
    expect_next(&peer, 200, "ok");
    assert_true(http_has_ended(&peer));
    http_close(&peer);
    http_open(&peer, gateway.address);
    http_send(&peer, "GET /v1/events HTTP/1.0\r\nHost: localhost\r\n\r\n");
    http_wait(&peer, ": notegate\nretry: 2000\n\n");
    assert_null(strstr(buf_cstr(&peer.received), "Transfer-Encoding"));
    http_close(&peer);
}

static void a_half_closed_connection(void **state)
{
    const char *const addresses[] = {gateway.address, local};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(addresses); i++) {
        struct http_peer peer;
        http_open(&peer, addresses[i]);
        http_ask(&peer, "GET /v1/tools");
        assert_int_equal(shutdown(peer.fd, SHUT_WR), 0);
        expect_next(&peer, 200, "notebook");
        http_close(&peer);
    }
}

static void requests_that_end_in_the_middle(void **state)
{
    static const char whole[] = CALL TYPE "Content-Length: 15\r\n\r\n" LIST;
    struct http_peer peers[8];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(peers); i++) {
        char bytes[sizeof(whole)];
        size_t cut = 1 + i * (sizeof(whole) - 2) / NG_COUNT(peers);
        memcpy(bytes, whole, cut);
        bytes[cut] = '\0';
        http_open(&peers[i], gateway.address);
        http_send(&peers[i], bytes);
        assert_int_equal(shutdown(peers[i].fd, SHUT_WR), 0);
    }
    for (size_t i = 0; i < NG_COUNT(peers); i++) {
        assert_true(http_has_ended(&peers[i]));
        http_close(&peers[i]);
    }
}

static void clients_that_leave(void **state)
{
    const struct timespec step = {0, 1000000};
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    (void)state;
    for (int i = 0; i < 30; i++) {
        struct http_peer peer;
        http_open(&peer, gateway.address);
        http_ask(&peer, i % 2 == 0 ? "GET /readyz"
                                   : "POST /v1/tools/notebook\n"
                                     "Content-Type: application/json\n\n" LIST);
        if (i % 3 == 0) {
            (void)setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        }
        http_close(&peer);
    }
    bool gone = false; /* but for the connection that asks */
    for (int i = 0; i < PATIENCE_MS && !gone; i++) {
        struct http_answer answer = http_once(gateway.address, "GET /metrics");
        assert_int_equal(answer.status, 200);
        gone = strstr(answer.body, "notegate_in_use{name=\"connections\"} 1\n") != NULL;
        http_answer_free(&answer);
        (void)nanosleep(&step, NULL);
    }
    assert_true(gone);
}

static void connections_have_a_limit(void **state)
{
    struct program small;
    struct http_peer held[8];
    struct http_peer late;
    char words[1024];
    (void)state;
    (void)snprintf(words, sizeof(words), "--data-dir %s/small --set limits.connections=8",
                   home);
    program_serve(&small, words);
    for (size_t i = 0; i < NG_COUNT(held); i++) {
        http_open(&held[i], small.address);
        http_ask(&held[i], "GET /healthz");
        expect_next(&held[i], 200, "ok");
    }
    http_open(&late, small.address);
    assert_true(http_has_ended(&late));
    http_close(&late);
    for (size_t i = 0; i < NG_COUNT(held); i++) {
        http_close(&held[i]);
    }
    program_stop(&small);
}

static int open_gateway(void **state)
{
    *state = &gateway;
    home = program_home();
    (void)snprintf(local, sizeof(local), "%s/data/notegate.sock", home);
    program_serve(&gateway, "--set limits.body=64KiB "
                            "--set log.access=true --set log.level=debug");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(framing_that_can_be_read_twice),
        cmocka_unit_test(hosts_and_bytes),
        cmocka_unit_test(targets),
        cmocka_unit_test(many_headers),
        cmocka_unit_test(a_connection_is_kept),
        cmocka_unit_test(pipelining),
        cmocka_unit_test(bodies_in_pieces),
        cmocka_unit_test(bodies_have_a_limit),
        cmocka_unit_test(older_http),
        cmocka_unit_test(a_half_closed_connection),
        cmocka_unit_test(requests_that_end_in_the_middle),
        cmocka_unit_test(clients_that_leave),
        cmocka_unit_test(connections_have_a_limit),
    };
    return cmocka_run_group_tests(tests, open_gateway, program_tear_down);
}
