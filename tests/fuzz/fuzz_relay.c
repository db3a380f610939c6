/* SPDX-License-Identifier: MIT */
/*
 * fuzz_relay.c - messages that `notegate mcp` passes on: up to the first NUL a line of its
 * client, after it the answer of the gateway, as an event stream and as one body.
 *
 * Of a message only what may stand in a header gets into one; an error that the relay makes is
 * JSON; events are the same in whatever pieces they come.
 */
#include <stdlib.h>
#include <string.h>

#include "api/client/mcp_relay_events.h"
#include "api/client/mcp_relay_message.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/json/json.h"

#define INPUT_BYTES_MAX 16384
#define EVENTS_BYTES_MAX ((size_t)8192)
#define ERROR_BYTES_MAX ((size_t)1024 * 1024)
#define PIECE_BYTES 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_header_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < 0x20 || *text > 0x7e) {
            return false;
        }
    }
    return true;
}

static bool is_json(struct ng_str text)
{
    struct arena arena;
    struct json_error error;
    const struct ng_value *value = NULL;
    arena_init(&arena, 0);
    bool good = json_parse(&arena, text, JSON_DEPTH_DEFAULT * 16, &value, &error) == NG_OK;
    arena_done(&arena);
    return good;
}

static void look_at_error(const struct relay_message *message, int status, struct ng_str body)
{
    struct buf out;
    buf_init(&out, ERROR_BYTES_MAX);
    relay_message_error(message, status, body, &out);
    if (message->id.rc == NG_OK && message->id.len > 0 && out.rc == NG_OK &&
        (status != 0 || utf8_valid(body))) {
        must(is_json(buf_str(&out)));
    }
    buf_done(&out);
}

static void try_message(struct ng_str line, struct ng_str answer)
{
    struct relay_message message;
    relay_message_read(line, &message);
    must(is_header_text(message.method) && is_header_text(message.version) &&
         is_header_text(message.name));
    must(message.id.rc != NG_OK || message.id.len == 0 || is_json(buf_str(&message.id)));
    must(message.answers.rc != NG_OK || message.answers.len == 0 ||
         is_json(buf_str(&message.answers)));
    must(message.cancels.rc != NG_OK || message.cancels.len == 0 ||
         is_json(buf_str(&message.cancels)));
    must(!message.is_initialize || !message.is_initialized);
    look_at_error(&message, 503, answer);
    look_at_error(&message, 0, answer);
    relay_message_done(&message);
}

static void try_answer(struct ng_str text)
{
    char id[RELAY_HEADER_MAX];
    char version[RELAY_HEADER_MAX] = "";
    enum relay_said said = relay_message_said(text, id, sizeof(id));
    must(memchr(id, '\0', sizeof(id)) != NULL);
    must(id[0] == '\0' || (said == RELAY_ASKS && is_json(ng_str_of(id))));
    relay_message_agreed(text, version);
    must(memchr(version, '\0', sizeof(version)) != NULL && is_header_text(version));
}

/* ---- events ---- */

static void keep(void *user, struct ng_str text)
{
    struct buf *all = user;
    must(text.len > 0);
    buf_add_str(all, text);
    buf_add_char(all, '\n');
}

static int read_events(struct ng_str text, size_t piece, struct relay_events *events,
                       struct buf *all)
{
    int rc = NG_OK;
    relay_events_init(events, EVENTS_BYTES_MAX);
    buf_init(all, 2 * INPUT_BYTES_MAX);
    for (size_t at = 0; rc == NG_OK && at < text.len; at += piece) {
        size_t len = text.len - at < piece ? text.len - at : piece;
        rc = relay_events_add(events, text.data + at, len, keep, all);
    }
    return rc;
}

static void try_events(struct ng_str text)
{
    struct relay_events whole;
    struct relay_events pieces;
    struct buf all;
    struct buf same;
    int rc = read_events(text, text.len + 1, &whole, &all);
    int again = read_events(text, PIECE_BYTES, &pieces, &same);
    must(memchr(whole.last_id, '\0', sizeof(whole.last_id)) != NULL && whole.retry_ms >= 0);
    /* A text that does not fit at once may fit in parts. */
    if (rc == NG_OK) {
        must(again == NG_OK && str_equal(buf_str(&all), buf_str(&same)));
        must(strcmp(whole.last_id, pieces.last_id) == 0 && whole.retry_ms == pieces.retry_ms);
    }
    relay_events_restart(&whole);
    relay_events_done(&whole);
    relay_events_done(&pieces);
    buf_done(&all);
    buf_done(&same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    const uint8_t *end = memchr(data, '\0', size);
    size_t len = end == NULL ? size : (size_t)(end - data);
    struct ng_str line = {(const char *)data, len};
    size_t skip = end == NULL ? len : len + 1;
    struct ng_str rest = {(const char *)data + skip, size - skip};
    try_message(line, rest);
    try_answer(rest);
    try_events(rest);
    return 0;
}
