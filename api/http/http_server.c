/* SPDX-License-Identifier: MIT */
/* http_server.c - the two daemons: how a request runs through libmicrohttpd, start and stop. */
#include "http_server.h"

#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api/base/own_files.h"
#include "api/listen/http_listen.h"
#include "api/listen/http_names.h"
#include "api/listen/http_tls.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/gateway/gateway_open.h"
#include "http_reply.h"
#include "http_request.h"
#include "http_route.h"
#include "http_stream_transport.h"

/* Header lines, and what libmicrohttpd keeps of a request, per connection. */
#define CONNECTION_MEMORY ((size_t)16 * 1024)
/* A connection on which nothing is sent either way is closed. */
#define IDLE_TIMEOUT_S 75
/* libmicrohttpd's own limit lies above the largest limits.connections, because it leaves
 * clients hanging at it. */
#define CONNECTIONS_MOST 1000064
/* Connections of these that the Unix socket may use at the limit: the owner always gets one. */
#define CONNECTIONS_OWNER 32

static struct http_connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info == NULL) {
        return NULL;
    }
    return info->socket_context;
}

/* The certificate of the server that a session belongs to. */
static struct http_tls *tls_of_session(void *mhd_connection)
{
    struct http_connection *connection =
        mhd_connection == NULL ? NULL : connection_of(mhd_connection);
    if (connection == NULL) {
        return NULL;
    }
    return connection->server->tls;
}

static int on_certificate(gnutls_session_t session, const gnutls_datum_t *request,
                          int request_count, const gnutls_pk_algorithm_t *algorithms,
                          int algorithm_count, gnutls_pcert_st **ret_chain, unsigned *ret_len,
                          gnutls_privkey_t *ret_key)
{
    (void)request;
    (void)request_count;
    (void)algorithms;
    (void)algorithm_count;
    struct http_tls *tls = tls_of_session(gnutls_session_get_ptr(session));
    if (tls == NULL) {
        return -1;
    }
    return http_tls_retrieve(tls, ret_chain, ret_len, ret_key);
}

/* As libmicrohttpd takes it: a function as an object pointer, which POSIX has and C leaves
 * open.
 */
static void *certificate_callback(void)
{
    gnutls_certificate_retrieve_function2 *function = on_certificate;
    void *untyped = NULL;
    memcpy(&untyped, &function, sizeof(untyped));
    return untyped;
}

/* ---- what libmicrohttpd calls ---- */

/* Over the limit: closed at once, instead of left hanging in the backlog. */
static enum MHD_Result on_accept(void *cls, const struct sockaddr *address, socklen_t size)
{
    const struct http_server *server = cls;
    unsigned limit = atomic_load(&server->gateway->limits.connections);
    if (size >= sizeof(address->sa_family) && address->sa_family == AF_UNIX) {
        limit += CONNECTIONS_OWNER;
    }
    if (atomic_load(&server->connections) < (int)limit) {
        return MHD_YES;
    }
    metrics_count(server->gateway->metrics, METRICS_REFUSED_CONNECTIONS);
    return MHD_NO;
}

/* A daemon's thread has its own name: by whether it serves the Unix socket. libmicrohttpd has
 * no call in that thread before the first connection. */
static const char *const daemon_threads[] = {"ng-http-0", "ng-http-1"};

static void on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        atomic_fetch_add(&server->connections, 1);
        (void)metrics_use(server->gateway->metrics, METRICS_CONNECTIONS, 1);
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        const union MHD_ConnectionInfo *daemon =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_DAEMON);
        struct http_connection *connection = NULL;
        if (info != NULL && daemon != NULL) {
            /* server->tcp may not be assigned yet; the socket's family tells the daemons apart.
             */
            struct sockaddr_storage local = {0};
            socklen_t size = sizeof(local);
            bool is_socket =
                getsockname(info->connect_fd, (struct sockaddr *)&local, &size) == 0 &&
                local.ss_family == AF_UNIX;
            (void)pthread_setname_np(pthread_self(), daemon_threads[is_socket]);
            connection = http_connection_new(server, mhd, info->connect_fd, is_socket);
        }
        if (connection != NULL) {
            http_monitor_add(&server->monitor, connection);
        }
        *socket_context = connection;
        return;
    }
    struct http_connection *connection = *socket_context;
    *socket_context = NULL;
    atomic_fetch_sub(&server->connections, 1);
    (void)metrics_use(server->gateway->metrics, METRICS_CONNECTIONS, -1);
    if (connection != NULL) {
        http_monitor_remove(&server->monitor, connection);
        http_connection_unref(connection);
    }
}

/* The request line, before libmicrohttpd decodes it. The result is the request's context. */
static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct http_connection *connection = connection_of(mhd);
    (void)cls;
    if (connection != NULL) {
        atomic_store_explicit(&connection->asked, true, memory_order_relaxed);
        http_connection_phase(connection, HTTP_PHASE_HEAD);
        http_request_begin(&connection->request, uri);
        /* libmicrohttpd makes a record of each parameter of a query in the connection's memory,
         * and where that is used up the request hangs until it times out. Nothing reads these
         * records, so the library sees an empty query (the text is its own copy). */
        char *mark = (char *)(uintptr_t)strchr(uri, '?');
        if (mark != NULL) {
            mark[1] = '\0';
        }
    }
    return connection;
}

/* The connection waits no longer. */
static void note_left(struct http_request *request)
{
    struct http_connection *connection = request->connection;
    if (http_monitor_resume(&connection->server->monitor, connection)) {
        http_request_enter(request, HTTP_STATE_LEFT);
    }
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct http_connection *connection = *context;
    (void)cls;
    (void)mhd;
    *context = NULL;
    if (connection != NULL) {
        struct http_request *request = &connection->request;
        int phase = atomic_load(&connection->phase);
        if (phase == HTTP_PHASE_WORKING) {
            /* Its client had left when it was resumed, so that work() was not called. */
            note_left(request);
        } else if (phase == HTTP_PHASE_STREAMING) {
            /* Only this thread sets and clears `stream`. */
            request->sent = http_stream_bytes(connection->stream);
            http_monitor_unstream(&connection->server->monitor, connection);
        }
        metrics_http(request->gateway->metrics, http_request_status(request));
        if (request->access.started_ns != 0) {
            http_access_end(request, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
        }
        http_request_end(request);
        http_connection_phase(connection, HTTP_PHASE_WAITING);
    }
}

static enum MHD_Result send_reply(struct http_request *request)
{
    struct http_connection *connection = request->connection;
    if (request->reply.stream != NULL) {
        http_monitor_stream(&connection->server->monitor, connection, request->reply.stream);
        http_connection_phase(connection, HTTP_PHASE_STREAMING);
    } else {
        http_connection_phase(connection, HTTP_PHASE_SENDING);
    }
    if (http_reply_send(request)) {
        return MHD_YES;
    }
    return MHD_NO;
}

/*
 * The call may end before the connection is suspended, after, or in between. The second of the
 * two to change `stage` sees the other: the end of the call resumes a suspended connection; a
 * connection that finds the call done resumes itself.
 */
static void suspend(struct http_request *request)
{
    struct http_connection *connection = request->connection;
    struct http_wait wait = {.call = request->call};
    if (request->service_state != NULL) {
        connection->server->routes->service->wait(request, &wait);
    }
    http_monitor_suspend(&connection->server->monitor, connection, &wait);
    http_connection_phase(connection, HTTP_PHASE_WORKING);
    MHD_suspend_connection(connection->mhd);
    int running = HTTP_RUNNING;
    if (!atomic_compare_exchange_strong(&request->stage, &running, HTTP_SUSPENDED)) {
        MHD_resume_connection(connection->mhd);
    } else if (atomic_load(&connection->server->stopping)) {
        (void)http_request_abandon(request);
    }
}

/* The request is complete: run it, or finish the pending answer. */
static enum MHD_Result work(struct http_request *request)
{
    struct http_connection *connection = request->connection;
    if (atomic_load_explicit(&connection->phase, memory_order_relaxed) == HTTP_PHASE_WORKING) {
        note_left(request);
        http_request_finish(request);
        return send_reply(request);
    }
    if (http_request_run(request) != NG_PENDING) {
        return send_reply(request);
    }
    if (atomic_load(&request->stage) == HTTP_DONE) {
        http_request_finish(request);
        return send_reply(request);
    }
    suspend(request);
    return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **context)
{
    struct http_connection *connection = *context;
    (void)cls;
    (void)mhd;
    (void)url;
    (void)version;
    if (connection == NULL) {
        return MHD_NO; /* out of memory when it was accepted */
    }
    struct http_request *request = &connection->request;
    if (request->state == HTTP_STATE_LINE) {
        http_request_headers(request, method);
        /* Otherwise a body is always read whole before the answer: the next request begins
         * behind it. */
        if (!request->fault.fatal) {
            return MHD_YES;
        }
        return work(request);
    }
    if (*data_size > 0) {
        bool more = http_request_body(request, data, *data_size);
        *data_size = 0;
        if (more) {
            return MHD_YES;
        }
        return MHD_NO;
    }
    if (http_request_is_answered(request)) {
        return MHD_YES;
    }
    return work(request);
}

/* Of a line that libmicrohttpd logs. */
#define LIBRARY_LINE_MAX 512

static void on_log(void *cls, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void on_log(void *cls, const char *format, va_list args)
{
    char text[LIBRARY_LINE_MAX];
    (void)cls;
    (void)vsnprintf(text, sizeof(text), format, args);
    log_write(NG_LOG_DEBUG, "http", "%.*s", (int)strcspn(text, "\n"), text);
}

/* ---- start ---- */

static struct MHD_Daemon *start_daemon(struct http_server *server, int fd, unsigned more_flags,
                                       const struct MHD_OptionItem *more)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_ERROR_LOG | more_flags;
    /* The logger goes first: it serves the options behind it. */
    return MHD_start_daemon(
        flags, 0, on_accept, server, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log,
        NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MOST,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_URI_LOG_CALLBACK,
        on_request_line, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_ARRAY, more,
        MHD_OPTION_END);
}

static struct MHD_Daemon *start_tcp(struct http_server *server, bool ipv6)
{
    static char priorities[] = HTTP_TLS_PRIORITIES; /* an option's pointer is not const */
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, certificate_callback()},
        {MHD_OPTION_END, 0, NULL},
    };
    static const struct MHD_OptionItem plain = {MHD_OPTION_END, 0, NULL};
    unsigned flags = ipv6 ? (unsigned)MHD_USE_IPv6 : 0;
    if (server->tls == NULL) {
        return start_daemon(server, server->tcp_fd, flags, &plain);
    }
    return start_daemon(server, server->tcp_fd, flags | (unsigned)MHD_USE_TLS, tls);
}

static const char plain_warning[] =
    "can be reached from other machines without TLS: keys and contents cross the network "
    "unencrypted; set tls.certificate and tls.key, or listen on 127.0.0.1 behind a proxy with "
    "TLS";

static int listen_tcp(struct http_server *server, struct buf *error)
{
    struct http_listener listener;
    struct ng_str wanted = config_text(server->gateway->config, "listen");
    int rc = http_listen_tcp(wanted, &listener, error);
    if (rc != NG_OK) {
        return rc;
    }
    server->tcp_fd = listener.fd;
    bool ipv6 = listener.family == AF_INET6;
    (void)snprintf(server->address, sizeof(server->address), ipv6 ? "[%s]:%u" : "%s:%u",
                   listener.host, listener.port);
    rc = auth_check_listen(server->auth, server->address, listener.is_loopback, error);
    if (rc != NG_OK) {
        return rc;
    }
    if (!listener.is_loopback && server->tls == NULL) {
        log_write(NG_LOG_WARNING, "serve", "%s %s", server->address, plain_warning);
    }
    if (listen(listener.fd, HTTP_BACKLOG) != 0) {
        (void)buf_printf(error, "cannot listen on %s", server->address);
        return NG_EUNAVAILABLE;
    }
    /* The name as it was configured is a name of ours too. */
    struct http_authority authority;
    struct ng_str host = ng_str_of(listener.host);
    while (wanted.len > 0 && wanted.data[wanted.len - 1] != ':') {
        wanted.len--;
    }
    wanted.len -= wanted.len > 0;
    if (http_parse_authority(wanted, &authority)) {
        host = authority.host;
    }
    rc = http_server_set_names(server, server->gateway->config, host, listener.port);
    if (rc != NG_OK) {
        (void)buf_add_c(error, "out of memory");
        return rc;
    }
    server->tcp = start_tcp(server, ipv6);
    if (server->tcp == NULL) {
        (void)buf_printf(error, "cannot start the HTTP server on %s", server->address);
        return NG_EINTERNAL;
    }
    return NG_OK;
}

static int bind_unix(struct http_server *server, struct buf *error)
{
    return http_listen_unix(server->gateway->data_dir, NOTEGATE_SOCKET_NAME, &server->local_fd,
                            error);
}

static int start_unix(struct http_server *server, struct buf *error)
{
    static const struct MHD_OptionItem plain = {MHD_OPTION_END, 0, NULL};
    server->local = start_daemon(server, server->local_fd, 0, &plain);
    if (server->local == NULL) {
        (void)buf_printf(error, "cannot start the HTTP server on %s/%s",
                         server->gateway->data_dir, NOTEGATE_SOCKET_NAME);
        return NG_EINTERNAL;
    }
    return NG_OK;
}

int http_server_check(struct gateway *gateway, struct buf *ret)
{
    struct ng_str wanted = config_text(gateway->config, "listen");
    struct http_listener listener;
    struct auth *auth = NULL;
    int rc = http_names_check(gateway->config, ret);
    if (rc == NG_OK) {
        rc = http_listen_tcp(wanted, &listener, ret);
    }
    if (rc == NG_EBUSY) {
        buf_clear(ret);
        (void)buf_printf(ret, "%.*s, which is in use now", (int)wanted.len, wanted.data);
        return NG_OK;
    }
    if (rc != NG_OK) {
        return rc;
    }
    (void)close(listener.fd);
    char address[sizeof(listener.host) + 16];
    (void)snprintf(address, sizeof(address), "%.*s", (int)wanted.len, wanted.data);
    rc = auth_new(gateway, &auth, ret);
    if (rc == NG_OK) {
        rc = auth_check_listen(auth, address, listener.is_loopback, ret);
    }
    if (rc == NG_OK) {
        bool plain = !listener.is_loopback && !http_tls_wanted(gateway->config);
        (void)buf_printf(ret, "%s%s%s", address, text_if(plain, "; warning: this address "),
                         plain ? plain_warning : "");
    }
    auth_free(auth);
    return rc;
}

static int start_parts(struct http_server *server, struct buf *error)
{
    const struct config *config = server->gateway->config;
    int rc = http_names_check(config, error);
    if (rc == NG_OK && server->is_local) {
        rc = bind_unix(server, error);
    } else if (rc == NG_OK && http_tls_wanted(config)) {
        rc = http_tls_new(config, &server->tls, error);
    }
    if (rc == NG_OK) {
        rc = auth_new(server->gateway, &server->auth, error);
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = http_monitor_start(&server->monitor);
    if (rc != NG_OK) {
        (void)buf_add_c(error, "cannot start the HTTP server: out of memory or threads");
        return rc;
    }
    server->watching = true;
    rc = server->routes->service->open(server->gateway, &server->service, error);
    if (rc != NG_OK) {
        return rc;
    }
    if (server->is_local) {
        rc = http_server_set_names(server, config, ng_str_of("localhost"), 0);
        return rc == NG_OK ? start_unix(server, error) : rc;
    }
    rc = listen_tcp(server, error);
    if (rc == NG_OK && server->gateway->data_dir != NULL) {
        rc = bind_unix(server, error);
        rc = rc == NG_OK ? start_unix(server, error) : rc;
    }
    return rc;
}

static int start(struct gateway *gateway, const struct http_routes *routes, bool is_local,
                 struct http_server **ret, struct buf *error)
{
    struct http_server *server = alloc_zeroed(1, sizeof(*server));
    if (server == NULL) {
        (void)buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    server->gateway = gateway;
    server->routes = routes;
    server->is_local = is_local;
    server->tcp_fd = -1;
    server->local_fd = -1;
    auth_started_begin(&server->started);
    if (getrandom(&server->id_prefix, sizeof(server->id_prefix), 0) !=
        (ssize_t)sizeof(server->id_prefix)) {
        server->id_prefix = (uint32_t)getpid();
    }
    int rc = start_parts(server, error);
    if (rc != NG_OK) {
        http_server_stop(server, 0);
        return rc;
    }
    *ret = server;
    return NG_OK;
}

int http_server_start(struct gateway *gateway, const struct http_routes *routes,
                      struct http_server **ret, struct buf *error)
{
    http_server_set_audit(gateway->config);
    return start(gateway, routes, false, ret, error);
}

int http_server_start_local(struct gateway *gateway, const struct http_routes *routes,
                            struct http_server **ret, struct buf *error)
{
    return start(gateway, routes, true, ret, error);
}

const char *http_server_scheme(const struct http_server *server)
{
    if (server->tls != NULL) {
        return "https";
    }
    return "http";
}

const char *http_server_address(const struct http_server *server)
{
    return server->address;
}

static void note_daemon(struct MHD_Daemon *daemon, const char *socket, const char *loop,
                        struct own_files *files)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_LISTEN_FD);
    own_files_note(files, socket, info == NULL ? -1 : info->listen_fd);
    info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    own_files_note(files, loop, info == NULL ? -1 : info->epoll_fd);
}

void http_server_note_files(const struct http_server *server, struct own_files *files)
{
    note_daemon(server->tcp, "its listening socket", "its event loop", files);
    note_daemon(server->local, "its listening Unix socket", "the event loop of its Unix socket",
                files);
}

void http_server_look(struct http_server *server)
{
    (void)auth_started_look(&server->started);
}
