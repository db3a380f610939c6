/* SPDX-License-Identifier: MIT */
/* test_mcp_streams_rig.c - shared code of test_mcp_streams*.c; see the header.
 */
#include "test_mcp_streams_rig.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/session/mcp_session.h"

/* ---- the HTTP transport's part ---- */

atomic_int places;

struct http_stream *http_stream_new(const struct http_stream_source *source, void *user,
                                    struct key *key)
{
    struct http_stream *stream = calloc(1, sizeof(*stream));
    (void)key;
    if (stream != NULL) {
        stream->source = *source;
        stream->user = user;
        atomic_init(&stream->refs, 1);
    }
    return stream;
}

void http_stream_ref(struct http_stream *stream)
{
    (void)atomic_fetch_add(&stream->refs, 1);
}

void hang_up(struct http_stream *stream)
{
    if (!atomic_exchange(&stream->closed, true)) {
        stream->source.closed(stream->user);
    }
}

void http_stream_unref(struct http_stream *stream)
{
    if (stream != NULL && atomic_fetch_sub(&stream->refs, 1) == 1) {
        hang_up(stream);
        free(stream);
    }
}

void http_stream_wake(struct http_stream *stream)
{
    (void)atomic_fetch_add(&stream->wakes, 1);
}

int http_stream_take(struct gateway *of, struct ng_str agent)
{
    (void)of;
    (void)agent;
    (void)atomic_fetch_add(&places, 1);
    return NG_OK;
}

void http_stream_give(struct gateway *of, struct ng_str agent)
{
    (void)of;
    (void)agent;
    (void)atomic_fetch_sub(&places, 1);
}

void a_moment(void)
{
    const struct timespec step = {0, 1000000};
    (void)nanosleep(&step, NULL);
}

int fill(struct http_stream *stream, struct buf *out)
{
    return stream->source.fill(stream->user, out);
}

void read_until(struct http_stream *stream, const char *part, struct buf *out)
{
    for (int i = 0; i < PATIENCE_MS; i++) {
        struct buf piece;
        buf_init(&piece, HTTP_STREAM_FILL_MAX);
        int state = fill(stream, &piece);
        buf_add_str(out, buf_str(&piece));
        buf_done(&piece);
        if (part == NULL ? state == HTTP_STREAM_END : strstr(buf_cstr(out), part) != NULL) {
            return;
        }
        assert_int_equal(state, HTTP_STREAM_OPEN);
        a_moment();
    }
    fail_msg("%s did not come; there is\n%s", part == NULL ? "the end" : part, buf_cstr(out));
}

/* ---- requests ---- */

struct gateway *gateway;
