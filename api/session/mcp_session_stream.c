/* SPDX-License-Identifier: MIT */
/* mcp_session_stream.c - the streams of a session over HTTP: its own, which GET opens, and
 * those of answers, found again by their number when a client comes back. */
#include "core/base/lock.h"
#include "mcp_session.h"

/* Of what one gateway counts; above it the moves of the session. */
#define SEQ_BITS 32
#define NUMBER_BITS 20

static void release_session(void *user)
{
    mcp_session_unref(user);
}

/* The stream keeps its session; the session lets go of it when it ends. */
static struct mcp_stream *make_stream(struct mcp_session *session, unsigned number)
{
    int version = atomic_load(&session->version);
    struct mcp_stream_options options = {
        .resumable = true,
        .primes = version >= MCP_2025_11_25,
        .keeps_unread = true,
        .number = number,
        .seq = (uint64_t)session->moves << SEQ_BITS,
        .kept = session->share == NULL ? NULL : &session->share->kept,
        .user = session,
        .release = release_session,
    };
    (void)atomic_fetch_add(&session->refs, 1);
    struct mcp_stream *stream = mcp_stream_new(&options);
    if (stream == NULL) {
        (void)atomic_fetch_sub(&session->refs, 1); /* the caller has one, so never the last */
    }
    return stream;
}

struct mcp_stream *mcp_session_own_stream(struct mcp_session *session)
{
    struct mcp_stream *stream = NULL;
    lock_take(&session->lock);
    if (session->streams_replay && !session->ended) {
        if (session->own == NULL) {
            session->own = make_stream(session, 0);
        }
        stream = session->own;
        if (stream != NULL) {
            mcp_stream_ref(stream);
        }
    }
    lock_release(&session->lock);
    return stream;
}

/* A free place, or that of the ended stream with the smallest number. */
static size_t find_place(struct mcp_session *session)
{
    size_t place = MCP_SESSION_STREAMS_MAX;
    for (size_t i = 0; i < MCP_SESSION_STREAMS_MAX; i++) {
        struct mcp_stream *stream = session->streams[i];
        if (stream == NULL) {
            return i;
        }
        if (mcp_stream_is_finished(stream) &&
            (place == MCP_SESSION_STREAMS_MAX ||
             mcp_stream_number(stream) < mcp_stream_number(session->streams[place]))) {
            place = i;
        }
    }
    return place;
}

struct mcp_stream *mcp_session_new_stream(struct mcp_session *session)
{
    struct mcp_stream *stream = NULL;
    struct mcp_stream *gone = NULL;
    lock_take(&session->lock);
    size_t place = session->ended ? MCP_SESSION_STREAMS_MAX : find_place(session);
    if (session->streams_replay && place < MCP_SESSION_STREAMS_MAX) {
        unsigned base = session->moves << NUMBER_BITS;
        stream = make_stream(session, base + ++session->stream_number);
        if (stream != NULL) {
            mcp_stream_ref(stream);
            gone = session->streams[place];
            session->streams[place] = stream;
        }
    }
    lock_release(&session->lock);
    mcp_stream_unref(gone);
    return stream;
}

struct mcp_stream *mcp_session_find_stream(struct mcp_session *session, unsigned number)
{
    if (number == 0) {
        return mcp_session_own_stream(session);
    }
    struct mcp_stream *stream = NULL;
    lock_take(&session->lock);
    for (size_t i = 0; i < MCP_SESSION_STREAMS_MAX && stream == NULL; i++) {
        if (session->streams[i] != NULL && mcp_stream_number(session->streams[i]) == number) {
            stream = session->streams[i];
            mcp_stream_ref(stream);
        }
    }
    lock_release(&session->lock);
    return stream;
}

void mcp_session_cut_own(struct mcp_session *session)
{
    lock_take(&session->lock);
    struct mcp_stream *own = session->own;
    session->own = NULL;
    lock_release(&session->lock);
    if (own != NULL) {
        mcp_stream_cut(own);
        mcp_stream_unref(own);
    }
}

void mcp_session_cut_streams(struct mcp_session *session)
{
    struct mcp_stream *streams[MCP_SESSION_STREAMS_MAX];
    mcp_session_cut_own(session);
    lock_take(&session->lock);
    for (size_t i = 0; i < MCP_SESSION_STREAMS_MAX; i++) {
        streams[i] = session->streams[i];
        session->streams[i] = NULL;
    }
    lock_release(&session->lock);
    for (size_t i = 0; i < MCP_SESSION_STREAMS_MAX; i++) {
        if (streams[i] != NULL) {
            mcp_stream_cut(streams[i]);
            mcp_stream_unref(streams[i]);
        }
    }
}
