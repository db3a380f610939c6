/* SPDX-License-Identifier: MIT */
/* wire.c - sockets that never block: connecting, TLS, writing and reading with deadlines. */
#include "wire.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "resolve.h"

/* A cancelled call is noticed this often. */
#define WIRE_STEP_MS 50
#define WIRE_NS_PER_MS 1000000
/* TLS records are at most a little longer than 16 KiB. */
#define WIRE_TLS_CHUNK 16384

int64_t wire_now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static enum wire_end wire_fail(struct wire *wire, enum wire_end end, const char *what)
{
    (void)snprintf(wire->error, sizeof(wire->error), "%s", what);
    return end;
}

static enum wire_end wire_fail_errno(struct wire *wire, const char *what, int error)
{
    char text[96];
    (void)snprintf(wire->error, sizeof(wire->error), "%s: %s", what,
                   strerror_r(error, text, sizeof(text)));
    return WIRE_CLOSED;
}

/* ---- waiting ---- */

static enum wire_end wire_wait(struct wire *wire, short events, const struct wire_limit *limit)
{
    for (;;) {
        struct ng_call *call = limit->call;
        int64_t left_ms =
            (limit->deadline_ns - wire_now_ns() + WIRE_NS_PER_MS - 1) / WIRE_NS_PER_MS;
        if (call != NULL && call->host->cancelled(call)) {
            bool time_up = call->host->remaining_ms(call) <= 0;
            return wire_fail(wire, time_up ? WIRE_TIME_UP : WIRE_CANCELLED,
                             time_up ? "the call's time is up" : "the call was cancelled");
        }
        if (left_ms <= 0) {
            return wire_fail(wire, WIRE_SLOW, "it did not answer in time");
        }
        struct pollfd poll_fd = {.fd = wire->fd, .events = events};
        int ready =
            poll(&poll_fd, 1, left_ms < WIRE_STEP_MS ? (int)left_ms : (int)WIRE_STEP_MS);
        if (ready > 0) {
            return WIRE_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return wire_fail_errno(wire, "poll", errno);
        }
    }
}

bool wire_is_quiet(const struct wire *wire)
{
    struct pollfd poll_fd = {.fd = wire->fd, .events = POLLIN};
    return wire->fd >= 0 && poll(&poll_fd, 1, 0) == 0;
}

/* ---- plain bytes ---- */

static enum wire_end wire_send(struct wire *wire, const char *data, size_t len,
                               const struct wire_limit *limit)
{
    while (len > 0) {
        ssize_t sent = send(wire->fd, data, len, MSG_NOSIGNAL);
        if (sent >= 0) {
            data += sent;
            len -= (size_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            enum wire_end end = wire_wait(wire, POLLOUT, limit);
            if (end != WIRE_OK) {
                return end;
            }
        } else if (errno != EINTR) {
            return wire_fail_errno(wire, "the connection was lost while sending", errno);
        }
    }
    return WIRE_OK;
}

static enum wire_end wire_receive(struct wire *wire, char *data, size_t size, size_t *ret_len,
                                  const struct wire_limit *limit)
{
    for (;;) {
        ssize_t got = recv(wire->fd, data, size, 0);
        if (got > 0) {
            *ret_len = (size_t)got;
            return WIRE_OK;
        }
        if (got == 0) {
            return wire_fail(wire, WIRE_CLOSED, "it closed the connection");
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            enum wire_end end = wire_wait(wire, POLLIN, limit);
            if (end != WIRE_OK) {
                return end;
            }
        } else if (errno != EINTR) {
            return wire_fail_errno(wire, "the connection was lost", errno);
        }
    }
}

/* ---- TLS: OpenSSL works on two buffers, the socket is ours ---- */

static enum wire_end wire_tls_error(struct wire *wire, const char *what)
{
    long verified = wire->tls == NULL ? X509_V_OK : SSL_get_verify_result(wire->tls);
    unsigned long code = ERR_get_error();
    char text[120] = "";
    if (verified != X509_V_OK) {
        (void)snprintf(wire->error, sizeof(wire->error), "%s: its certificate: %s", what,
                       X509_verify_cert_error_string(verified));
        ERR_clear_error();
        return WIRE_REFUSED;
    }
    if (code != 0) {
        ERR_error_string_n(code, text, sizeof(text));
    }
    (void)snprintf(wire->error, sizeof(wire->error), "%s: %s", what,
                   code == 0 ? "the connection was lost" : text);
    ERR_clear_error();
    return WIRE_CLOSED;
}

/* Sends what OpenSSL has made. */
static enum wire_end wire_tls_flush(struct wire *wire, const struct wire_limit *limit)
{
    char chunk[WIRE_TLS_CHUNK];
    int got = 0;
    while ((got = BIO_read(wire->tls_out, chunk, sizeof(chunk))) > 0) {
        enum wire_end end = wire_send(wire, chunk, (size_t)got, limit);
        if (end != WIRE_OK) {
            return end;
        }
    }
    return WIRE_OK;
}

static enum wire_end wire_tls_fill(struct wire *wire, const struct wire_limit *limit)
{
    char chunk[WIRE_TLS_CHUNK];
    size_t got = 0;
    enum wire_end end = wire_receive(wire, chunk, sizeof(chunk), &got, limit);
    if (end == WIRE_OK && BIO_write(wire->tls_in, chunk, (int)got) != (int)got) {
        end = wire_tls_error(wire, "out of memory for TLS");
    }
    return end;
}

/* After a TLS operation that gave `result`: sends and fetches what it wants, until it may be
 * repeated. */
static enum wire_end wire_tls_go_on(struct wire *wire, int result,
                                    const struct wire_limit *limit, const char *what)
{
    int error = SSL_get_error(wire->tls, result);
    enum wire_end end = wire_tls_flush(wire, limit);
    if (end != WIRE_OK) {
        return end;
    }
    if (error == SSL_ERROR_WANT_READ) {
        return wire_tls_fill(wire, limit);
    }
    if (error == SSL_ERROR_WANT_WRITE) {
        return WIRE_OK;
    }
    return error == SSL_ERROR_ZERO_RETURN
               ? wire_fail(wire, WIRE_CLOSED, "it closed the connection")
               : wire_tls_error(wire, what);
}

static bool wire_tls_expect(SSL *tls, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(tls);
    SSL_set_verify(tls, SSL_VERIFY_PEER, NULL);
    /* An address is no name: it is looked for among the certificate's addresses. */
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1) {
        return true;
    }
    /* What SSL_set_tlsext_host_name() is, without its cast; the text is copied. */
    return SSL_set1_host(tls, host) == 1 &&
           SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                    (void *)(uintptr_t)host) == 1;
}

static enum wire_end wire_tls_start(struct wire *wire, SSL_CTX *context, const char *host,
                                    const struct wire_limit *limit)
{
    wire->tls = SSL_new(context);
    wire->tls_in = BIO_new(BIO_s_mem());
    wire->tls_out = BIO_new(BIO_s_mem());
    if (wire->tls == NULL || wire->tls_in == NULL || wire->tls_out == NULL) {
        (void)BIO_free(wire->tls_in);
        (void)BIO_free(wire->tls_out);
        return wire_tls_error(wire, "out of memory for TLS");
    }
    SSL_set_bio(wire->tls, wire->tls_in, wire->tls_out);
    if (!wire_tls_expect(wire->tls, host)) {
        return wire_tls_error(wire, "the name of the host is none that a certificate can have");
    }
    int result = 0;
    while ((result = SSL_connect(wire->tls)) != 1) {
        enum wire_end end = wire_tls_go_on(wire, result, limit, "TLS");
        if (end != WIRE_OK) {
            return end;
        }
    }
    return wire_tls_flush(wire, limit);
}

/* ---- connecting ---- */

static enum wire_end wire_connect(struct wire *wire, const struct sockaddr *address,
                                  socklen_t len, const struct wire_limit *limit)
{
    wire->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (wire->fd < 0) {
        return wire_fail_errno(wire, "no socket", errno);
    }
    int on = 1;
    if (address->sa_family != AF_UNIX) {
        (void)setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)setsockopt(wire->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    }
    if (connect(wire->fd, address, len) == 0) {
        return WIRE_OK;
    }
    if (errno != EINPROGRESS && errno != EINTR) {
        return wire_fail_errno(wire, "it cannot be reached", errno);
    }
    enum wire_end end = wire_wait(wire, POLLOUT, limit);
    int error = 0;
    socklen_t error_len = sizeof(error);
    if (end == WIRE_OK &&
        (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &error, &error_len) != 0 || error != 0)) {
        end = wire_fail_errno(wire, "it cannot be reached", error);
    }
    return end;
}

static enum wire_end wire_open_path(struct wire *wire, const char *path,
                                    const struct wire_limit *limit)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof(address.sun_path)) {
        return wire_fail(wire, WIRE_REFUSED, "the path of the socket is too long");
    }
    memcpy(address.sun_path, path, len + 1);
    return wire_connect(wire, (const struct sockaddr *)&address, sizeof(address), limit);
}

static enum wire_end wire_open_host(struct wire *wire, const struct redis_uri *uri,
                                    const struct wire_limit *limit)
{
    struct addrinfo *addresses = NULL;
    char why[96];
    enum wire_end end = resolve_host(uri->host, uri->port, limit, &addresses, why);
    if (end != WIRE_OK) {
        return wire_fail(wire, end, why);
    }
    end = wire_fail(wire, WIRE_CLOSED, "its name has no address");
    for (struct addrinfo *at = addresses; at != NULL && end == WIRE_CLOSED; at = at->ai_next) {
        wire_close(wire);
        end = wire_connect(wire, at->ai_addr, at->ai_addrlen, limit);
    }
    freeaddrinfo(addresses);
    return end;
}

enum wire_end wire_open(struct wire *wire, const struct redis_uri *uri, SSL_CTX *tls,
                        const struct wire_limit *limit)
{
    memset(wire, 0, sizeof(*wire));
    wire->fd = -1;
    enum wire_end end = uri->path != NULL ? wire_open_path(wire, uri->path, limit)
                                          : wire_open_host(wire, uri, limit);
    if (end == WIRE_OK && tls != NULL) {
        end = wire_tls_start(wire, tls, uri->host, limit);
    }
    if (end != WIRE_OK) {
        wire_close(wire);
    }
    return end;
}

void wire_close(struct wire *wire)
{
    SSL_free(wire->tls);
    wire->tls = NULL;
    if (wire->fd >= 0) {
        (void)close(wire->fd);
        wire->fd = -1;
    }
}

/* ---- both kinds ---- */

enum wire_end wire_write(struct wire *wire, const char *data, size_t len,
                         const struct wire_limit *limit)
{
    if (wire->tls == NULL) {
        return wire_send(wire, data, len, limit);
    }
    while (len > 0) {
        int piece = len < WIRE_TLS_CHUNK ? (int)len : WIRE_TLS_CHUNK;
        int result = SSL_write(wire->tls, data, piece);
        enum wire_end end = result > 0 ? wire_tls_flush(wire, limit)
                                       : wire_tls_go_on(wire, result, limit, "TLS");
        if (end != WIRE_OK) {
            return end;
        }
        if (result > 0) {
            data += result;
            len -= (size_t)result;
        }
    }
    return WIRE_OK;
}

enum wire_end wire_read(struct wire *wire, char *data, size_t size, size_t *ret_len,
                        const struct wire_limit *limit)
{
    if (wire->tls == NULL) {
        return wire_receive(wire, data, size, ret_len, limit);
    }
    for (;;) {
        int result = SSL_read(wire->tls, data, (int)size);
        if (result > 0) {
            *ret_len = (size_t)result;
            return WIRE_OK;
        }
        enum wire_end end = wire_tls_go_on(wire, result, limit, "TLS");
        if (end != WIRE_OK) {
            return end;
        }
    }
}
