/* SPDX-License-Identifier: MIT */
/*
 * exchange.h - many HTTP requests at a time to other gateways, on one thread. Part of
 * client.so, so that only a gateway that needs it loads libcurl.
 *
 * Exports one symbol, `notegate_exchanges`, of type struct exchange_api.
 */
#ifndef NOTEGATE_API_EXCHANGE_H
#define NOTEGATE_API_EXCHANGE_H

#include <sys/queue.h>

#include "notegate/abi.h"

#define EXCHANGE_SYMBOL "notegate_exchanges"
/* Raised with every change of these structs: binary and module come from one build. */
#define EXCHANGE_API 6
/* Time to connect. */
#define EXCHANGE_CONNECT_MS 2000L

struct exchanges;

enum exchange_outcome {
    EXCHANGE_OK = 0,
    EXCHANGE_NOBODY,  /* its host refused the connection: nothing was sent */
    EXCHANGE_STOPPED, /* cancelled */
    EXCHANGE_BROKEN   /* not reached in time, or it broke off */
};

/* The head of an answer; texts or NULL, valid during on_head(). */
struct exchange_head {
    int status;
    int retry_after_s; /* 0 where it names none */
    const char *content_type;
    const char *allow;
    const char *session_id; /* Mcp-Session-Id */
    const char *run;        /* X-Notegate-Run */
};

/* One request. The owner's memory, lent from begin() until ended() returns; texts end with NUL.
 */
struct exchange {
    const char *url, *method;
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    struct ng_str body;
    const char *authorities; /* a file of certificates for https; NULL: those of the system */
    /* On the thread of the exchanges; must not block. */
    void (*on_head)(struct exchange *exchange, const struct exchange_head *head);
    /* False: not taken; they come again after resume(). */
    bool (*on_body)(struct exchange *exchange, const char *data, size_t len);
    /* Asked now and then: is there no more to hope for? It ends as broken. NULL: never. */
    bool (*is_lost)(struct exchange *exchange);
    /* Once, after begin(). */
    void (*ended)(struct exchange *exchange, enum exchange_outcome outcome);
    /* The module's; zeroed by the owner. */
    struct exchanges *of;
    void *handle, *lines;
    bool sent;      /* of the thread: an attempt was made, the other side may have got it */
    unsigned asked; /* under the lock, as the next three */
    bool queued, over;
    TAILQ_ENTRY(exchange) queue;
    LIST_ENTRY(exchange) running; /* of the thread */
};

struct exchange_api {
    unsigned version; /* EXCHANGE_API */
    int (*open)(struct exchanges **ret);
    /* Those under way and those that begin later end as cancelled. */
    void (*refuse)(struct exchanges *exchanges);
    /* All have ended. */
    void (*close)(struct exchanges *exchanges);
    /* Any thread, none blocks. */
    void (*begin)(struct exchanges *exchanges, struct exchange *exchange);
    void (*resume)(struct exchange *exchange); /* after ended(): a no-op, as cancel() */
    void (*cancel)(struct exchange *exchange);
};

#endif
