/* SPDX-License-Identifier: MIT */
/* http_peer.c - a client of HTTP for tests. */
#include "http_peer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/str.h"

/* Waiting for an answer gives up after this long. */
#define PATIENCE_S 20
#define RECEIVED_MAX ((size_t)64 * 1024 * 1024)

static void connect_unix(int fd, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    assert_int_equal(
        connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)), 0);
}

static void connect_tcp(int fd, const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[32];
    const char *colon = strrchr(text, ':');
    assert_non_null(colon);
    (void)snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
    address.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    assert_int_equal(
        connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)), 0);
}

void http_open(struct http_peer *peer, const char *address)
{
    bool local = address[0] == '/';
    memset(peer, 0, sizeof(*peer));
    buf_init(&peer->received, RECEIVED_MAX);
    peer->fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(peer->fd >= 0);
    if (local) {
        connect_unix(peer->fd, address);
    } else {
        connect_tcp(peer->fd, address);
    }
}

void http_close(struct http_peer *peer)
{
    (void)close(peer->fd);
    buf_done(&peer->received);
}

static void send_bytes(struct http_peer *peer, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(peer->fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return; /* it ended the connection: its answer tells why */
        }
        bytes += sent;
        len -= (size_t)sent;
    }
}

void http_send(struct http_peer *peer, const char *bytes)
{
    send_bytes(peer, bytes, strlen(bytes));
}

void http_ask(struct http_peer *peer, const char *request)
{
    struct buf text;
    const char *body = strstr(request, "\n\n");
    size_t head_len = body == NULL ? strlen(request) : (size_t)(body - request);
    size_t line_len = strcspn(request, "\n");
    buf_init(&text, RECEIVED_MAX);
    (void)buf_printf(&text, "%.*s HTTP/1.1\r\nHost: localhost\r\n", (int)line_len, request);
    for (size_t at = line_len; at < head_len; at += line_len) {
        at++;
        line_len = strcspn(request + at, "\n");
        (void)buf_printf(&text, "%.*s\r\n", (int)line_len, request + at);
    }
    if (body != NULL && memmem(request, head_len, "Transfer-Encoding", 17) == NULL) {
        (void)buf_printf(&text, "Content-Length: %zu\r\n", strlen(body + 2));
    }
    (void)buf_printf(&text, "\r\n%s", body == NULL ? "" : body + 2);
    assert_int_equal(text.rc, NG_OK);
    send_bytes(peer, text.data, text.len);
    buf_done(&text);
}

/* ---- receiving ---- */

static bool receive_more(struct http_peer *peer)
{
    char chunk[65536];
    struct pollfd wait = {.fd = peer->fd, .events = POLLIN};
    time_t left = peer->until - time(NULL);
    if (left < 0 || poll(&wait, 1, (int)left * 1000) != 1) {
        fail_msg("nothing more comes behind: %s", buf_cstr(&peer->received));
    }
    ssize_t len = recv(peer->fd, chunk, sizeof(chunk), 0);
    if (len <= 0) {
        peer->ended = true;
        return false;
    }
    assert_int_equal(buf_add(&peer->received, chunk, (size_t)len), NG_OK);
    return true;
}

static void need(struct http_peer *peer, size_t len)
{
    while (peer->received.len < len) {
        if (!receive_more(peer)) {
            fail_msg("the answer is cut: %s", buf_cstr(&peer->received));
        }
    }
}

/* The place behind the text, which comes at `from` or later. */
static size_t need_text(struct http_peer *peer, size_t from, const char *text)
{
    const char *at;
    while ((at = strstr(buf_cstr(&peer->received) + from, text)) == NULL) {
        need(peer, peer->received.len + 1);
    }
    return (size_t)(at - peer->received.data) + strlen(text);
}

void http_wait(struct http_peer *peer, const char *text)
{
    peer->until = time(NULL) + PATIENCE_S;
    (void)need_text(peer, 0, text);
}

bool http_has_ended(struct http_peer *peer)
{
    peer->until = time(NULL) + PATIENCE_S;
    if (peer->received.len == 0 && !peer->ended) {
        (void)receive_more(peer);
    }
    return peer->received.len == 0;
}

static char *copy_of(const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *http_header(const struct http_answer *answer, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = answer->head; (line = strstr(line, "\r\n")) != NULL;) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            const char *value = line + len + 1 + strspn(line + len + 1, " ");
            return copy_of(value, strcspn(value, "\r"));
        }
    }
    return NULL;
}

/* The body in chunks; returns where it ends. */
static size_t take_chunks(struct http_peer *peer, size_t at, struct buf *body)
{
    for (;;) {
        size_t begin = need_text(peer, at, "\r\n");
        size_t len = strtoul(peer->received.data + at, NULL, 16);
        need(peer, begin + len + 2);
        assert_int_equal(buf_add(body, peer->received.data + begin, len), NG_OK);
        at = begin + len + 2;
        if (len == 0) {
            return at;
        }
    }
}

/* The body behind the head; returns where it ends. */
static size_t take_body(struct http_peer *peer, const struct http_answer *answer, size_t at,
                        struct buf *body)
{
    char *length = http_header(answer, "Content-Length");
    char *coding = http_header(answer, "Transfer-Encoding");
    size_t end = at;
    if (coding != NULL) {
        end = take_chunks(peer, at, body);
    } else if (length != NULL) {
        end = at + strtoul(length, NULL, 10);
        need(peer, end);
        (void)buf_add(body, peer->received.data + at, end - at);
    } else if (answer->status != 100 && answer->status != 204 && answer->status != 304) {
        while (receive_more(peer)) {
        }
        end = peer->received.len;
        (void)buf_add(body, peer->received.data + at, end - at);
    }
    free(length);
    free(coding);
    return end;
}

struct http_answer http_take(struct http_peer *peer)
{
    struct http_answer answer = {0};
    struct buf body;
    struct ng_str nothing = {NULL, 0};
    peer->until = time(NULL) + PATIENCE_S;
    size_t at = need_text(peer, 0, "\r\n\r\n");
    answer.head = copy_of(peer->received.data, at);
    assert_memory_equal(answer.head, "HTTP/1.", 7);
    answer.status = (int)strtol(answer.head + strcspn(answer.head, " "), NULL, 10);
    buf_init(&body, RECEIVED_MAX);
    size_t end = take_body(peer, &answer, at, &body);
    (void)buf_cstr(&body);
    answer.body_len = body.len;
    answer.body = copy_of(buf_cstr(&body), body.len);
    buf_done(&body);
    assert_int_equal(buf_splice(&peer->received, 0, end, nothing), NG_OK);
    return answer;
}

void http_answer_free(struct http_answer *answer)
{
    free(answer->head);
    free(answer->body);
    memset(answer, 0, sizeof(*answer));
}

struct http_answer http_once(const char *address, const char *request)
{
    struct http_peer peer;
    http_open(&peer, address);
    http_ask(&peer, request);
    struct http_answer answer = http_take(&peer);
    http_close(&peer);
    return answer;
}

void expect_http(const char *address, const struct http_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct http_answer answer = http_once(address, cases[i].request);
        bool there = strstr(answer.head, cases[i].part) != NULL ||
                     strstr(answer.body, cases[i].part) != NULL;
        if (answer.status != cases[i].status || !there) {
            fail_msg("%s\nis answered, and not by %d and %s:\n%s%s", cases[i].request,
                     cases[i].status, cases[i].part, answer.head, answer.body);
        }
        http_answer_free(&answer);
    }
}
