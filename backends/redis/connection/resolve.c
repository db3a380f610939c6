/* SPDX-License-Identifier: MIT */
/*
 * resolve.c - name resolution with a time limit.
 *
 * The C library's resolver cannot be interrupted and waits as long as its own configuration
 * allows, so it runs on a thread of its own. If its answer comes too late, that thread frees
 * everything. It may do so after the module was closed, which therefore stays loaded (-z
 * nodelete).
 */
#include "resolve.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"

#define RESOLVE_STEP_NS 20000000
#define RESOLVE_PORT_SIZE 24

struct lookup {
    struct lock lock;
    pthread_cond_t done_cond;
    bool done, given_up;
    int rc;
    struct addrinfo *addresses;
    char port[RESOLVE_PORT_SIZE];
    char host[];
};

static int resolve_now(const char *host, const char *port, int flags, struct addrinfo **ret)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = flags | AI_NUMERICSERV,
    };
    return getaddrinfo(host, port, &hints, ret);
}

static void lookup_free(struct lookup *lookup)
{
    pthread_cond_destroy(&lookup->done_cond);
    lock_done(&lookup->lock);
    free(lookup);
}

static void *resolve_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-resolve");
    struct lookup *lookup = user;
    struct addrinfo *addresses = NULL;
    int rc = resolve_now(lookup->host, lookup->port, 0, &addresses);
    lock_take(&lookup->lock);
    lookup->rc = rc;
    if (rc == 0) {
        lookup->addresses = addresses;
    } else {
        lookup->addresses = NULL;
    }
    lookup->done = true;
    bool given_up = lookup->given_up;
    pthread_cond_signal(&lookup->done_cond);
    lock_release(&lookup->lock);
    if (given_up) {
        if (rc == 0) {
            freeaddrinfo(addresses);
        }
        lookup_free(lookup);
    }
    return NULL;
}

static struct lookup *lookup_new(const char *host, const char *port)
{
    size_t len = strlen(host);
    struct lookup *lookup = calloc(1, sizeof(*lookup) + len + 1);
    if (lookup == NULL) {
        return NULL;
    }
    memcpy(lookup->host, host, len + 1);
    (void)snprintf(lookup->port, sizeof(lookup->port), "%s", port);
    lock_init(&lookup->lock, LOCK_REDIS_RESOLVE);
    lock_cond_init(&lookup->done_cond);
    return lookup;
}

/* Called with the lock held. */
static enum socket_result resolve_wait(struct lookup *lookup, const struct socket_limit *limit)
{
    while (!lookup->done) {
        int64_t now = socket_now_ns();
        if (now >= limit->deadline_ns) {
            return SOCKET_TIMED_OUT;
        }
        if (limit->call != NULL && limit->call->host->cancelled(limit->call)) {
            if (limit->call->host->remaining_ms(limit->call) <= 0) {
                return SOCKET_CALL_EXPIRED;
            }
            return SOCKET_CANCELLED;
        }
        int64_t until = now + RESOLVE_STEP_NS;
        struct timespec at = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
        (void)lock_wait_until(&lookup->done_cond, &lookup->lock, &at);
    }
    return SOCKET_OK;
}

enum socket_result resolve_host(const char *host, const char *port,
                                const struct socket_limit *limit, struct addrinfo **ret,
                                char why[RESOLVE_WHY_SIZE])
{
    /* An address needs no resolver. */
    if (resolve_now(host, port, AI_NUMERICHOST, ret) == 0) {
        return SOCKET_OK;
    }
    (void)snprintf(why, RESOLVE_WHY_SIZE, "there is no memory to resolve its name");
    struct lookup *lookup = lookup_new(host, port);
    pthread_t thread;
    if (lookup == NULL) {
        return SOCKET_CLOSED;
    }
    if (pthread_create(&thread, NULL, resolve_run, lookup) != 0) {
        lookup_free(lookup);
        return SOCKET_CLOSED;
    }
    lock_take(&lookup->lock);
    enum socket_result end = resolve_wait(lookup, limit);
    lookup->given_up = end != SOCKET_OK;
    lock_release(&lookup->lock);
    if (end != SOCKET_OK) {
        (void)pthread_detach(thread);
        (void)snprintf(why, RESOLVE_WHY_SIZE, "its name was not resolved in time");
        return end;
    }
    (void)pthread_join(thread, NULL);
    if (lookup->rc != 0) {
        (void)snprintf(why, RESOLVE_WHY_SIZE, "its name is unknown: %s",
                       gai_strerror(lookup->rc));
        end = SOCKET_CLOSED;
    }
    *ret = lookup->addresses;
    lookup_free(lookup);
    return end;
}
