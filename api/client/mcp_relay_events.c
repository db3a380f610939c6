/* SPDX-License-Identifier: MIT */
/* mcp_relay_events.c - lines of an event stream: fields until an empty line, which ends the
 * event. */
#include "mcp_relay_events.h"

#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"

#define RELAY_RETRY_MAX_MS 60000

void relay_events_init(struct relay_events *events, size_t max)
{
    memset(events, 0, sizeof(*events));
    buf_init(&events->rest, max);
    buf_init(&events->data, max);
}

void relay_events_done(struct relay_events *events)
{
    buf_done(&events->rest);
    buf_done(&events->data);
}

void relay_events_restart(struct relay_events *events)
{
    buf_clear(&events->rest);
    buf_clear(&events->data);
    events->id[0] = '\0';
}

static void take_retry(struct relay_events *events, struct ng_str value)
{
    long number = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9') {
            return;
        }
        number = number * 10 + (value.data[i] - '0');
        number = i64_min(number, RELAY_RETRY_MAX_MS);
    }
    events->retry_ms = number;
}

static void take_field(struct relay_events *events, struct ng_str line)
{
    const char *colon = memchr(line.data, ':', line.len);
    size_t name = line.len;
    if (colon != NULL) {
        name = (size_t)(colon - line.data);
    }
    struct ng_str field = str_make(line.data, name);
    struct ng_str value = str_make("", 0);
    if (colon != NULL) {
        value = str_make(colon + 1, line.len - name - 1);
        if (value.len > 0 && value.data[0] == ' ') {
            value = str_make(value.data + 1, value.len - 1);
        }
    }
    if (str_is(field, "data")) {
        if (events->data.len > 0) {
            buf_add_char(&events->data, ' '); /* a line feed: in JSON as good as a blank */
        }
        buf_add_str(&events->data, value);
    } else if (str_is(field, "id") && value.len < sizeof(events->id) &&
               (value.len == 0 || memchr(value.data, '\0', value.len) == NULL)) {
        memcpy(events->id, value.data, value.len);
        events->id[value.len] = '\0';
    } else if (str_is(field, "retry")) {
        take_retry(events, value);
    }
}

int relay_events_add(struct relay_events *events, const char *data, size_t len,
                     void (*message)(void *user, struct ng_str text), void *user)
{
    size_t at = 0;
    const char *end;
    int rc = buf_add(&events->rest, data, len);
    struct buf *rest = &events->rest;
    while (rc == NG_OK && at < rest->len &&
           (end = memchr(rest->data + at, '\n', rest->len - at)) != NULL) {
        struct ng_str line = str_make(rest->data + at, (size_t)(end - rest->data) - at);
        at += line.len + 1;
        if (line.len > 0 && line.data[line.len - 1] == '\r') {
            line.len--;
        }
        if (line.len > 0) {
            take_field(events, line);
            rc = events->data.rc;
            continue;
        }
        if (events->id[0] != '\0') {
            memcpy(events->last_id, events->id, sizeof(events->last_id));
            events->id[0] = '\0';
        }
        if (events->data.len > 0) {
            message(user, buf_str(&events->data));
        }
        buf_clear(&events->data);
    }
    if (at > 0 && rest->len > at) {
        memmove(rest->data, rest->data + at, rest->len - at);
    }
    rest->len -= at;
    return rc;
}
