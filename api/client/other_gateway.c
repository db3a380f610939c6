/* SPDX-License-Identifier: MIT */
/* other_gateway.c - one request over TCP, to tell a gateway from other programs. */
#include "other_gateway.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/json/json.h"

#define ADDRESS_MAX 256
#define ANSWER_MAX ((size_t)256 * 1024)
#define READ_BYTES 4096

/* "[::1]:8420" into "::1" and "8420". */
static bool split_address(struct ng_str address, char host[ADDRESS_MAX], const char **ret_port)
{
    if (address.len == 0 || address.len >= ADDRESS_MAX) {
        return false;
    }
    memcpy(host, address.data, address.len);
    host[address.len] = '\0';
    char *colon = strrchr(host, ':');
    if (colon == NULL || strcmp(colon, ":0") == 0) {
        return false;
    }
    *colon = '\0';
    *ret_port = colon + 1;
    size_t len = strlen(host);
    if (host[0] == '[' && host[len - 1] == ']') {
        memmove(host, host + 1, len - 2);
        host[len - 2] = '\0';
    }
    return true;
}

static int connect_to(const char *host, const char *port)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const struct timeval wait = {OTHER_GATEWAY_WAIT_MS / 1000,
                                 (OTHER_GATEWAY_WAIT_MS % 1000) * 1000L};
    struct addrinfo *found = NULL;
    int fd = -1;
    if (getaddrinfo(host, port, &wanted, &found) != 0) {
        return -1;
    }
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        /* The wait for sending is that of connect(), too. */
        if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) != 0 ||
                        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) != 0 ||
                        connect(fd, at->ai_addr, at->ai_addrlen) != 0)) {
            (void)close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

/* Only a gateway answers so: with its keys, or with its error. */
static bool is_gateway(const char *body, struct buf *hint)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    arena_init(&arena, ANSWER_MAX * 4);
    bool is = json_parse(&arena, ng_str_of(body), JSON_DEPTH_DEFAULT, &value, NULL) == NG_OK &&
              (json_is(json_get(value, "keys"), NG_TYPE_ARRAY) ||
               json_get_text(value, "code").data != NULL);
    struct ng_str said = is ? json_get_text(value, "hint") : STR_NONE;
    if (said.len > 0) {
        (void)buf_add_str(hint, said);
    }
    arena_done(&arena);
    return is;
}

bool other_gateway_answers(struct ng_str address, struct buf *hint)
{
    char host[ADDRESS_MAX];
    char chunk[READ_BYTES];
    const char *port = NULL;
    struct buf text;
    if (!split_address(address, host, &port)) {
        return false;
    }
    int fd = connect_to(host, port);
    if (fd < 0) {
        return false;
    }
    buf_init(&text, ANSWER_MAX);
    (void)buf_printf(&text,
                     "GET /v1/keys HTTP/1.0\r\nHost: %.*s\r\nAccept: application/json\r\n\r\n",
                     (int)address.len, address.data);
    ssize_t got = send(fd, text.data, text.len, MSG_NOSIGNAL);
    buf_clear(&text);
    while (got > 0 && text.rc == NG_OK) {
        got = recv(fd, chunk, sizeof(chunk), 0);
        if (got > 0) {
            (void)buf_add(&text, chunk, (size_t)got);
        }
    }
    (void)close(fd);
    const char *body = strstr(buf_cstr(&text), "\r\n\r\n");
    bool is = body != NULL && is_gateway(body + 4, hint);
    buf_done(&text);
    return is;
}
