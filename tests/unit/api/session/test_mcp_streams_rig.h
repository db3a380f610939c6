/* SPDX-License-Identifier: MIT */
/* test_mcp_streams_rig.h - streams without sockets: the HTTP transport's part, read and cut off
 * by the case. */
#ifndef NOTEGATE_TEST_MCP_STREAMS_RIG_H
#define NOTEGATE_TEST_MCP_STREAMS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "api/http/http_stream.h"
#include "core/base/buf.h"

#define PATIENCE_MS 20000

struct http_stream {
    struct http_stream_source source;
    void *user;
    atomic_int refs, wakes;
    atomic_bool closed;
};

extern atomic_int places; /* bytes of streams */
/* The client leaves. */
void hang_up(struct http_stream *stream);
void http_stream_unref(struct http_stream *stream);
void a_moment(void);
/* Message that it sends now. */
int fill(struct http_stream *stream, struct buf *out);
/* Reads until `part` came (or, NULL, the end), into `out`. */
void read_until(struct http_stream *stream, const char *part, struct buf *out);
extern struct gateway *gateway; /* of the case, where it has one */

#endif
