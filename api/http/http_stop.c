/* SPDX-License-Identifier: MIT */
/* http_stop.c - the end of the server: calls get their time, then connections are cut. */
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api/listen/http_listen.h"
#include "api/listen/http_tls.h"
#include "core/gateway/gateway_open.h"
#include "http_request.h"
#include "http_route.h"
#include "http_server.h"

/* At the end: for cancelled calls to come back, and for their answers to be sent. */
#define STOP_CANCEL_MS 1000
#define STOP_SEND_MS 1000
#define STOP_STEP_NS 2000000L

/* Its call does not come back: the client gets an answer, the call keeps its memory. */
static void abandon(struct http_connection *connection)
{
    (void)http_request_abandon(&connection->request);
}

/* Waits until no request is under way, at most wait_ms. */
static bool wait_idle(struct http_server *server, long long wait_ms)
{
    static const struct timespec step = {.tv_nsec = STOP_STEP_NS};
    long long until = http_now_ms() + wait_ms;
    while (http_monitor_busy(&server->monitor) > 0) {
        if (http_now_ms() >= until) {
            return false;
        }
        (void)nanosleep(&step, NULL);
    }
    return true;
}

static void quiesce(struct MHD_Daemon *daemon)
{
    if (daemon != NULL) {
        MHD_socket fd = MHD_quiesce_daemon(daemon);
        if (fd != MHD_INVALID_SOCKET) {
            (void)shutdown(fd, SHUT_RDWR); /* closed when the daemon has stopped */
        }
    }
}

static void end_daemon(struct MHD_Daemon *daemon, int fd)
{
    if (daemon != NULL) {
        MHD_stop_daemon(daemon);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Calls whose clients were answered early return at some time, and use the gateway then. There
 * is no limit here: the caller of http_server_stop() bounds the whole stop. */
static void wait_released(struct http_server *server)
{
    static const struct timespec step = {.tv_nsec = STOP_STEP_NS};
    while (atomic_load(&server->held) > 0) {
        (void)nanosleep(&step, NULL);
    }
}

void http_server_drain(struct http_server *server)
{
    atomic_store(&server->draining, true);
}

bool http_server_drains(const struct http_server *server)
{
    return atomic_load(&server->draining);
}

void http_server_stop(struct http_server *server, int64_t wait_ms)
{
    if (server == NULL) {
        return;
    }
    quiesce(server->tcp);
    quiesce(server->local);
    if (server->local_fd >= 0) {
        http_listen_end(server->gateway->data_dir, NOTEGATE_SOCKET_NAME);
    }
    const struct http_service *service = server->routes->service;
    if (server->service != NULL) {
        service->stop(server->gateway, server->service, HTTP_STOP_WAITING);
        if (server->tcp != NULL || server->local != NULL) {
            (void)gateway_drain(server->gateway, wait_ms);
        }
        service->stop(server->gateway, server->service, HTTP_STOP_RUNNING);
        atomic_store(&server->gateway->cancelling, true);
        http_monitor_cancel_all(&server->monitor);
        service->stop(server->gateway, server->service, HTTP_STOP_ALL);
        (void)wait_idle(server, STOP_CANCEL_MS);
        /* Stopping a daemon that has suspended connections aborts the process. */
        atomic_store(&server->stopping, true);
        http_monitor_each(&server->monitor, abandon);
        http_monitor_end_streams(&server->monitor);
        (void)wait_idle(server, STOP_SEND_MS);
    }
    end_daemon(server->tcp, server->tcp_fd);
    end_daemon(server->local, server->local_fd);
    wait_released(server);
    if (server->watching) {
        http_monitor_stop(&server->monitor);
    }
    service->close(server->service);
    auth_free(server->auth);
    http_tls_free(server->tls);
    http_server_free_names(server);
    free(server);
}
