/* SPDX-License-Identifier: MIT */
/* mcp_relay_job.h - one message through the relay, and its answer. */
#ifndef NOTEGATE_API_MCP_RELAY_JOB_H
#define NOTEGATE_API_MCP_RELAY_JOB_H

#include <pthread.h>
#include <sys/queue.h>

#include "core/base/lock.h"
#include "mcp_relay.h"
#include "mcp_relay_events.h"
#include "mcp_relay_message.h"

/* Requests under way at once; the next line waits. */
#define RELAY_THREADS_MAX 128
/* Between two tries where the gateway did not say when. */
#define RELAY_AGAIN_MS 1000
/* New sessions that are tried for one message. */
#define RELAY_SESSIONS_TRIED 3
/* Times that one message is sent to a gateway that was found, and is gone before it is reached.
 */
#define RELAY_REACH_MAX 50
/* The longest pause of a stream that is refused again and again. */
#define RELAY_AGAIN_MAX_MS 30000
/* Requests of the gateway that the client has not answered yet; further ones are not
 * recorded. */
#define RELAY_ASKED_MAX 256
#define RELAY_ASKED_ID_MAX 64
/* Settings of the session, repeated when the session is opened again. */
#define RELAY_SETTINGS_MAX 256

struct relay_job;
struct relay_setting;

enum relay_input {
    RELAY_INPUT_OPEN = 0,
    RELAY_INPUT_OOM,  /* no memory for a message of the client: nothing more is read */
    RELAY_INPUT_ENDED /* the client sends nothing any more */
};

/* The search for a new gateway. The reader thread runs it for all jobs that wait. */
struct relay_search {
    bool wanted;
    int64_t until_ms;
    unsigned ended; /* number of searches that have ended */
    bool found;     /* result of the last one */
};

struct relay {
    struct attach *attach;
    const struct mcp_relay_host *host;
    pthread_t reader;           /* the thread of mcp_relay_run() */
    int wake_fd;                /* readable: the reader is to look for a gateway */
    struct client_request base; /* the caller's headers */
    struct lock lock;           /* the members below, and stdout */
    pthread_cond_t changed;
    LIST_HEAD(, relay_job) jobs; /* all that have a thread */
    size_t running;              /* requests that will end */
    size_t listening;            /* streams that will not */
    pthread_t last;              /* the thread that ended last, to be joined */
    bool has_last;
    char session[RELAY_HEADER_MAX];
    char version[RELAY_HEADER_MAX]; /* of the handshake versions, once agreed on */
    char asked[RELAY_ASKED_MAX][RELAY_ASKED_ID_MAX]; /* ids; "": a free place */
    atomic_int input; /* enum relay_input; written by the reading thread */
    bool broken;      /* stdout takes nothing any more */
    bool has_stream;
    bool of_serve; /* the gateway that answered last is one of `notegate serve` */
    struct relay_search search;
    struct buf initialize;          /* the client's, as it came */
    struct relay_setting *settings; /* mcp_relay_session.c */
    size_t setting_count;
    struct lock opening; /* one at a time; taken before `lock` */
    atomic_bool stop;
};

enum relay_job_kind {
    RELAY_JOB_STREAM = 0, /* ends with the relay; counted in `listening` */
    RELAY_JOB_REQUEST,    /* ends by itself; counted in `running` */
    RELAY_JOB_OWN         /* of the relay itself: the client does not get the answer */
};

struct relay_job {
    struct relay *relay;
    struct buf body;
    struct relay_message message;
    struct buf answer; /* of the request, where it is not an event stream */
    struct relay_events events;
    bool is_stream;                 /* the answer is an event stream */
    int lost;                       /* NG_OK, or why the answer could not be kept */
    bool answered;                  /* the answer went to stdout */
    char session[RELAY_HEADER_MAX]; /* it was sent in */
    enum relay_job_kind kind;
    enum client_outcome reach; /* of its message; CLIENT_NOBODY: no gateway has got it */
    bool has_thread;           /* of its own */
    bool of_mcp;      /* the gateway that answered is one that `notegate mcp` has opened */
    atomic_bool stop; /* the client took it back, or the relay ends */
    LIST_ENTRY(relay_job) link;
};

struct relay_job *relay_job_new(struct relay *relay);
void relay_job_free(struct relay_job *job);
/* Sends it and writes the answer to its end; a request always gets an answer. */
void relay_job_post(struct relay_job *job);
/* The answer to a request that is not sent at all. */
void relay_job_refuse(struct relay_job *job, const char *sentence);
/* No gateway answered: waits until one does again, here or in another process. False: none
 * comes, or this job ends first. In place of `notegate serve` none is opened: it may be
 * starting again, and would be locked out. */
bool relay_find_gateway(struct relay_job *job);
/* Sends it once, and nothing comes of it. True: the gateway took it. */
bool relay_job_try(struct relay_job *job);
/* The session's own stream, begun again whenever it ends. */
void relay_job_listen(struct relay_job *job);
/* Ends the session. */
void relay_job_delete(struct relay_job *job);

/* mcp_relay_session.c: the gateway took this message. */
void relay_session_note(struct relay *relay, const struct relay_job *job);
/* The gateway does not know the session `lost` (any more). True: there is another one now. */
bool relay_session_again(struct relay *relay, const char *lost);
void relay_session_done(struct relay *relay);

/* Under the lock: all that have a thread come to their end. */
void relay_stop_jobs(struct relay *relay);
/* The client answered a request of the gateway. */
void relay_was_answered(struct relay *relay, struct ng_str id);
/* Answers all open requests of the gateway in the place of a client that has left. */
void relay_answer_asked(struct relay *relay);

#endif
