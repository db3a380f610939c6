/* SPDX-License-Identifier: MIT */
/* http_peer.h - a client of HTTP that sends what it is told, byte by byte if need be. */
#ifndef NOTEGATE_TEST_HTTP_PEER_H
#define NOTEGATE_TEST_HTTP_PEER_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "core/base/buf.h"

struct http_peer {
    int fd;
    struct buf received; /* of what comes next */
    bool ended;          /* nothing comes any more */
    time_t until;        /* waiting gives up, though comments of a stream come */
};

struct http_answer {
    int status;
    char *head; /* all header lines */
    char *body; /* without the framing; malloc'd as the head is */
    size_t body_len;
};

/* "127.0.0.1:80", or the path of a Unix socket. */
void http_open(struct http_peer *peer, const char *address);
void http_close(struct http_peer *peer);
void http_send(struct http_peer *peer, const char *bytes);
/*
 * Sends a request that is written "GET /path\nName: value\n\nbody" (header lines and body may
 * be absent): with Host, and with Content-Length if it has a body and no Transfer-Encoding.
 */
void http_ask(struct http_peer *peer, const char *request);
/* The next answer; a failed test if it does not come. 100 is an answer of its own. */
struct http_answer http_take(struct http_peer *peer);
/* Until the received bytes contain the text, as those of an event stream. They stay. */
void http_wait(struct http_peer *peer, const char *text);
/* Has the other side ended the connection, with nothing more sent? Waits for either. */
bool http_has_ended(struct http_peer *peer);
/* The value of a header, malloc'd; NULL: there is none. */
char *http_header(const struct http_answer *answer, const char *name);
void http_answer_free(struct http_answer *answer);

/* One request on a connection of its own. */
struct http_answer http_once(const char *address, const char *request);

struct http_case {
    const char *request;
    int status;
    const char *part; /* of the headers or the body */
};

void expect_http(const char *address, const struct http_case *cases, size_t count);

#endif
