/* SPDX-License-Identifier: MIT */
/* socket.c - non-blocking sockets: connecting, TLS, writing and reading with deadlines. */
#include "socket.h"

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
#include <unistd.h>

#include "core/base/clock.h"
#include "resolve.h"

/* How often a wait checks whether the call is cancelled. */
#define SOCKET_STEP_MS 50
#define SOCKET_NS_PER_MS 1000000
/* A TLS record is at most slightly longer than 16 KiB. */
#define SOCKET_TLS_CHUNK 16384

int64_t socket_now_ns(void)
{
    return clock_monotonic_ns();
}

static enum socket_result socket_fail(struct redis_socket *sock, enum socket_result end,
                                      const char *what)
{
    (void)snprintf(sock->error, sizeof(sock->error), "%s", what);
    return end;
}

static enum socket_result socket_fail_errno(struct redis_socket *sock, const char *what,
                                            int error)
{
    char text[96];
    (void)snprintf(sock->error, sizeof(sock->error), "%s: %s", what,
                   strerror_r(error, text, sizeof(text)));
    return SOCKET_CLOSED;
}

/* ---- waiting ---- */

static enum socket_result socket_wait(struct redis_socket *sock, short events,
                                      const struct socket_limit *limit)
{
    for (;;) {
        struct ng_call *call = limit->call;
        int64_t left_ms =
            (limit->deadline_ns - socket_now_ns() + SOCKET_NS_PER_MS - 1) / SOCKET_NS_PER_MS;
        if (call != NULL && call->host->cancelled(call)) {
            bool time_up = call->host->remaining_ms(call) <= 0;
            return socket_fail(sock, time_up ? SOCKET_CALL_EXPIRED : SOCKET_CANCELLED,
                               time_up ? "the call's time is up" : "the call was cancelled");
        }
        if (left_ms <= 0) {
            return socket_fail(sock, SOCKET_TIMED_OUT, "it did not answer in time");
        }
        struct pollfd poll_fd = {.fd = sock->fd, .events = events};
        int ready =
            poll(&poll_fd, 1, left_ms < SOCKET_STEP_MS ? (int)left_ms : (int)SOCKET_STEP_MS);
        if (ready > 0) {
            return SOCKET_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return socket_fail_errno(sock, "poll", errno);
        }
    }
}

bool socket_is_idle(const struct redis_socket *sock)
{
    struct pollfd poll_fd = {.fd = sock->fd, .events = POLLIN};
    return sock->fd >= 0 && poll(&poll_fd, 1, 0) == 0;
}

/* ---- plain bytes ---- */

static enum socket_result socket_send(struct redis_socket *sock, const char *data, size_t len,
                                      const struct socket_limit *limit)
{
    while (len > 0) {
        ssize_t sent = send(sock->fd, data, len, MSG_NOSIGNAL);
        if (sent >= 0) {
            data += sent;
            len -= (size_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            enum socket_result end = socket_wait(sock, POLLOUT, limit);
            if (end != SOCKET_OK) {
                return end;
            }
        } else if (errno != EINTR) {
            return socket_fail_errno(sock, "the connection was lost while sending", errno);
        }
    }
    return SOCKET_OK;
}

static enum socket_result socket_receive(struct redis_socket *sock, char *data, size_t size,
                                         size_t *ret_len, const struct socket_limit *limit)
{
    for (;;) {
        ssize_t got = recv(sock->fd, data, size, 0);
        if (got > 0) {
            *ret_len = (size_t)got;
            return SOCKET_OK;
        }
        if (got == 0) {
            return socket_fail(sock, SOCKET_CLOSED, "it closed the connection");
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            enum socket_result end = socket_wait(sock, POLLIN, limit);
            if (end != SOCKET_OK) {
                return end;
            }
        } else if (errno != EINTR) {
            return socket_fail_errno(sock, "the connection was lost", errno);
        }
    }
}

/* ---- TLS: OpenSSL works on two memory buffers; this file does the socket I/O. What an earlier
 * operation of this thread left in OpenSSL's queue of errors would count as one of the next: it
 * is cleared before each. ---- */

static enum socket_result socket_tls_error(struct redis_socket *sock, const char *what)
{
    long verified = X509_V_OK;
    if (sock->tls != NULL) {
        verified = SSL_get_verify_result(sock->tls);
    }
    unsigned long code = ERR_get_error();
    char text[120] = "";
    if (verified != X509_V_OK) {
        (void)snprintf(sock->error, sizeof(sock->error), "%s: its certificate: %s", what,
                       X509_verify_cert_error_string(verified));
        ERR_clear_error();
        return SOCKET_REFUSED;
    }
    if (ERR_GET_REASON(code) == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED) {
        ERR_clear_error();
        return socket_fail(sock, SOCKET_REFUSED,
                           "it requires a certificate of its clients; set redis.tls_cert and "
                           "redis.tls_key");
    }
    if (code != 0) {
        ERR_error_string_n(code, text, sizeof(text));
    }
    (void)snprintf(sock->error, sizeof(sock->error), "%s: %s", what,
                   code == 0 ? "the connection was lost" : text);
    ERR_clear_error();
    return SOCKET_CLOSED;
}

/* The connection was lost while sending: what the server said before may still be there, such
 * as an alert that refuses the certificate. */
static enum socket_result socket_tls_last_words(struct redis_socket *sock)
{
    char chunk[SOCKET_TLS_CHUNK];
    char data[1];
    ssize_t got = recv(sock->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    ERR_clear_error();
    if (got > 0 && BIO_write(sock->tls_in, chunk, (int)got) == (int)got &&
        SSL_get_error(sock->tls, SSL_read(sock->tls, data, sizeof(data))) == SSL_ERROR_SSL) {
        return socket_tls_error(sock, "TLS");
    }
    ERR_clear_error();
    return SOCKET_CLOSED;
}

/* Sends the bytes that OpenSSL has produced. */
static enum socket_result socket_tls_flush(struct redis_socket *sock,
                                           const struct socket_limit *limit)
{
    char chunk[SOCKET_TLS_CHUNK];
    int got = 0;
    while ((got = BIO_read(sock->tls_out, chunk, sizeof(chunk))) > 0) {
        enum socket_result end = socket_send(sock, chunk, (size_t)got, limit);
        if (end == SOCKET_CLOSED) {
            end = socket_tls_last_words(sock);
        }
        if (end != SOCKET_OK) {
            return end;
        }
    }
    return SOCKET_OK;
}

static enum socket_result socket_tls_fill(struct redis_socket *sock,
                                          const struct socket_limit *limit)
{
    char chunk[SOCKET_TLS_CHUNK];
    size_t got = 0;
    enum socket_result end = socket_receive(sock, chunk, sizeof(chunk), &got, limit);
    if (end == SOCKET_OK && BIO_write(sock->tls_in, chunk, (int)got) != (int)got) {
        end = socket_tls_error(sock, "out of memory for TLS");
    }
    return end;
}

/* After a TLS operation returned `result`: sends and receives what it needs until it can be
 * repeated. */
static enum socket_result socket_tls_continue(struct redis_socket *sock, int result,
                                              const struct socket_limit *limit,
                                              const char *what)
{
    int error = SSL_get_error(sock->tls, result);
    enum socket_result end = socket_tls_flush(sock, limit);
    if (end != SOCKET_OK) {
        return end;
    }
    if (error == SSL_ERROR_WANT_READ) {
        return socket_tls_fill(sock, limit);
    }
    if (error == SSL_ERROR_WANT_WRITE) {
        return SOCKET_OK;
    }
    if (error == SSL_ERROR_ZERO_RETURN) {
        return socket_fail(sock, SOCKET_CLOSED, "it closed the connection");
    }
    return socket_tls_error(sock, what);
}

static bool socket_tls_expect(SSL *tls, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(tls);
    SSL_set_verify(tls, SSL_VERIFY_PEER, NULL);
    /* An IP address is matched against the certificate's addresses, not its names. */
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1) {
        return true;
    }
    /* Same as SSL_set_tlsext_host_name(), without its cast; the text is copied. */
    return SSL_set1_host(tls, host) == 1 &&
           SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                    (void *)(uintptr_t)host) == 1;
}

static enum socket_result socket_tls_start(struct redis_socket *sock, SSL_CTX *context,
                                           const char *host, const struct socket_limit *limit)
{
    sock->tls = SSL_new(context);
    sock->tls_in = BIO_new(BIO_s_mem());
    sock->tls_out = BIO_new(BIO_s_mem());
    if (sock->tls == NULL || sock->tls_in == NULL || sock->tls_out == NULL) {
        (void)BIO_free(sock->tls_in);
        (void)BIO_free(sock->tls_out);
        return socket_tls_error(sock, "out of memory for TLS");
    }
    SSL_set_bio(sock->tls, sock->tls_in, sock->tls_out);
    if (!socket_tls_expect(sock->tls, host)) {
        return socket_tls_error(sock, "the host name cannot be matched with a certificate");
    }
    int result = 0;
    ERR_clear_error();
    while ((result = SSL_connect(sock->tls)) != 1) {
        enum socket_result end = socket_tls_continue(sock, result, limit, "TLS");
        if (end != SOCKET_OK) {
            return end;
        }
        ERR_clear_error();
    }
    return socket_tls_flush(sock, limit);
}

/* ---- connecting ---- */

static enum socket_result socket_connect(struct redis_socket *sock,
                                         const struct sockaddr *address, socklen_t len,
                                         const struct socket_limit *limit)
{
    sock->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock->fd < 0) {
        return socket_fail_errno(sock, "no socket", errno);
    }
    int on = 1;
    if (address->sa_family != AF_UNIX) {
        (void)setsockopt(sock->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)setsockopt(sock->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    }
    if (connect(sock->fd, address, len) == 0) {
        return SOCKET_OK;
    }
    if (errno != EINPROGRESS && errno != EINTR) {
        return socket_fail_errno(sock, "it cannot be reached", errno);
    }
    enum socket_result end = socket_wait(sock, POLLOUT, limit);
    int error = 0;
    socklen_t error_len = sizeof(error);
    if (end == SOCKET_OK &&
        (getsockopt(sock->fd, SOL_SOCKET, SO_ERROR, &error, &error_len) != 0 || error != 0)) {
        end = socket_fail_errno(sock, "it cannot be reached", error);
    }
    return end;
}

static enum socket_result socket_open_path(struct redis_socket *sock, const char *path,
                                           const struct socket_limit *limit)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof(address.sun_path)) {
        return socket_fail(sock, SOCKET_REFUSED, "the path of the socket is too long");
    }
    memcpy(address.sun_path, path, len + 1);
    return socket_connect(sock, (const struct sockaddr *)&address, sizeof(address), limit);
}

static enum socket_result socket_open_host(struct redis_socket *sock,
                                           const struct redis_place *place,
                                           const struct socket_limit *limit)
{
    struct addrinfo *addresses = NULL;
    char why[96];
    enum socket_result end = resolve_host(place->host, place->port, limit, &addresses, why);
    if (end != SOCKET_OK) {
        return socket_fail(sock, end, why);
    }
    end = socket_fail(sock, SOCKET_CLOSED, "its name has no address");
    for (struct addrinfo *at = addresses; at != NULL && end == SOCKET_CLOSED;
         at = at->ai_next) {
        socket_close(sock);
        end = socket_connect(sock, at->ai_addr, at->ai_addrlen, limit);
    }
    freeaddrinfo(addresses);
    return end;
}

enum socket_result socket_open(struct redis_socket *sock, const char *path,
                               const struct redis_place *place, SSL_CTX *tls,
                               const struct socket_limit *limit)
{
    memset(sock, 0, sizeof(*sock));
    sock->fd = -1;
    enum socket_result end;
    if (path != NULL) {
        end = socket_open_path(sock, path, limit);
    } else {
        end = socket_open_host(sock, place, limit);
    }
    if (end == SOCKET_OK && tls != NULL) {
        end = socket_tls_start(sock, tls, place->host, limit);
    }
    if (end != SOCKET_OK) {
        socket_close(sock);
    }
    return end;
}

void socket_close(struct redis_socket *sock)
{
    SSL_free(sock->tls);
    sock->tls = NULL;
    if (sock->fd >= 0) {
        (void)close(sock->fd);
        sock->fd = -1;
    }
}

/* ---- plain and TLS ---- */

enum socket_result socket_write(struct redis_socket *sock, const char *data, size_t len,
                                const struct socket_limit *limit)
{
    if (sock->tls == NULL) {
        return socket_send(sock, data, len, limit);
    }
    while (len > 0) {
        int piece = SOCKET_TLS_CHUNK;
        if (len < SOCKET_TLS_CHUNK) {
            piece = (int)len;
        }
        ERR_clear_error();
        int result = SSL_write(sock->tls, data, piece);
        enum socket_result end;
        if (result > 0) {
            end = socket_tls_flush(sock, limit);
        } else {
            end = socket_tls_continue(sock, result, limit, "TLS");
        }
        if (end != SOCKET_OK) {
            return end;
        }
        if (result > 0) {
            data += result;
            len -= (size_t)result;
        }
    }
    return SOCKET_OK;
}

enum socket_result socket_read(struct redis_socket *sock, char *data, size_t size,
                               size_t *ret_len, const struct socket_limit *limit)
{
    if (sock->tls == NULL) {
        return socket_receive(sock, data, size, ret_len, limit);
    }
    for (;;) {
        ERR_clear_error();
        int result = SSL_read(sock->tls, data, (int)size);
        if (result > 0) {
            *ret_len = (size_t)result;
            return SOCKET_OK;
        }
        enum socket_result end = socket_tls_continue(sock, result, limit, "TLS");
        if (end != SOCKET_OK) {
            return end;
        }
    }
}
