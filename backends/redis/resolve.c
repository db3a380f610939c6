/* SPDX-License-Identifier: MIT */
/*
 * resolve.c - name resolution that does not outlast its limit.
 *
 * The C library's resolver waits as long as its own configuration says, and cannot be
 * interrupted: so it runs on a thread of its own. One whose answer came too late frees it all.
 */
#include "resolve.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_STEP_NS 20000000
#define RESOLVE_PORT_SIZE 24

struct resolving {
    pthread_mutex_t lock;
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

static void resolving_free(struct resolving *resolving)
{
    pthread_cond_destroy(&resolving->done_cond);
    pthread_mutex_destroy(&resolving->lock);
    free(resolving);
}

static void *resolve_run(void *user)
{
    struct resolving *resolving = user;
    struct addrinfo *addresses = NULL;
    int rc = resolve_now(resolving->host, resolving->port, 0, &addresses);
    pthread_mutex_lock(&resolving->lock);
    resolving->rc = rc;
    resolving->addresses = rc == 0 ? addresses : NULL;
    resolving->done = true;
    bool given_up = resolving->given_up;
    pthread_cond_signal(&resolving->done_cond);
    pthread_mutex_unlock(&resolving->lock);
    if (given_up) {
        if (rc == 0) {
            freeaddrinfo(addresses);
        }
        resolving_free(resolving);
    }
    return NULL;
}

static struct resolving *resolving_new(const char *host, const char *port)
{
    size_t len = strlen(host);
    struct resolving *resolving = calloc(1, sizeof(*resolving) + len + 1);
    if (resolving == NULL) {
        return NULL;
    }
    memcpy(resolving->host, host, len + 1);
    (void)snprintf(resolving->port, sizeof(resolving->port), "%s", port);
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0) {
        free(resolving);
        return NULL;
    }
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&resolving->lock, NULL);
    pthread_cond_init(&resolving->done_cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return resolving;
}

/* With the lock held. */
static enum wire_end resolve_wait(struct resolving *resolving, const struct wire_limit *limit)
{
    while (!resolving->done) {
        int64_t now = wire_now_ns();
        if (now >= limit->deadline_ns) {
            return WIRE_SLOW;
        }
        if (limit->call != NULL && limit->call->host->cancelled(limit->call)) {
            return limit->call->host->remaining_ms(limit->call) <= 0 ? WIRE_TIME_UP
                                                                     : WIRE_CANCELLED;
        }
        int64_t until = now + RESOLVE_STEP_NS;
        struct timespec at = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
        (void)pthread_cond_timedwait(&resolving->done_cond, &resolving->lock, &at);
    }
    return WIRE_OK;
}

enum wire_end resolve_host(const char *host, const char *port, const struct wire_limit *limit,
                           struct addrinfo **ret, char why[RESOLVE_WHY_SIZE])
{
    /* An address needs no resolver. */
    if (resolve_now(host, port, AI_NUMERICHOST, ret) == 0) {
        return WIRE_OK;
    }
    (void)snprintf(why, RESOLVE_WHY_SIZE, "there is no memory to look up its name");
    struct resolving *resolving = resolving_new(host, port);
    pthread_t thread;
    if (resolving == NULL) {
        return WIRE_CLOSED;
    }
    if (pthread_create(&thread, NULL, resolve_run, resolving) != 0) {
        resolving_free(resolving);
        return WIRE_CLOSED;
    }
    pthread_mutex_lock(&resolving->lock);
    enum wire_end end = resolve_wait(resolving, limit);
    resolving->given_up = end != WIRE_OK;
    pthread_mutex_unlock(&resolving->lock);
    if (end != WIRE_OK) {
        (void)pthread_detach(thread);
        (void)snprintf(why, RESOLVE_WHY_SIZE, "its name was not resolved in time");
        return end;
    }
    (void)pthread_join(thread, NULL);
    if (resolving->rc != 0) {
        (void)snprintf(why, RESOLVE_WHY_SIZE, "its name is not known: %s",
                       gai_strerror(resolving->rc));
        end = WIRE_CLOSED;
    }
    *ret = resolving->addresses;
    resolving_free(resolving);
    return end;
}
