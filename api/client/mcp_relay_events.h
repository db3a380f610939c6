/* SPDX-License-Identifier: MIT */
/* mcp_relay_events.h - reads server-sent events as they come in pieces. */
#ifndef NOTEGATE_API_MCP_RELAY_EVENTS_H
#define NOTEGATE_API_MCP_RELAY_EVENTS_H

#include "core/base/buf.h"

#define RELAY_EVENT_ID_MAX 64

struct relay_events {
    struct buf rest;                  /* of a line that is not whole */
    struct buf data;                  /* of the event being read */
    char id[RELAY_EVENT_ID_MAX];      /* of the event being read */
    char last_id[RELAY_EVENT_ID_MAX]; /* of the last whole event that had one: to resume */
    long retry_ms;                    /* as told; 0: not */
};

void relay_events_init(struct relay_events *events, size_t max);
void relay_events_done(struct relay_events *events);
/* Another connection begins: drops the incomplete event and keeps the last id. */
void relay_events_restart(struct relay_events *events);
/* Gives each event's data (not empty) to message(). NG_OK, or that it is too long. */
int relay_events_add(struct relay_events *events, const char *data, size_t len,
                     void (*message)(void *user, struct ng_str text), void *user);

#endif
