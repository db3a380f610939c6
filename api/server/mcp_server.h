/* SPDX-License-Identifier: MIT */
/*
 * mcp_server.h - MCP above the transports: a text comes in, its messages go through the method
 * table, the answers are printed into one buffer.
 *
 * A transport (HTTP, stdio) makes a call, embeds a struct mcp_job in memory that lives until
 * the answer, and runs it. A job is one message or a batch; each message is an exchange.
 */
#ifndef NOTEGATE_API_MCP_SERVER_H
#define NOTEGATE_API_MCP_SERVER_H

#include "api/auth/auth.h"
#include "api/protocol/mcp_version.h"
#include "api/session/mcp_session.h"
#include "core/base/lock.h"

struct mcp_client_requests;
struct mcp_job;
struct mcp_exchange;
struct mcp_run;
struct mcp_methods;

/* Functions of a transport beyond answering; members may be NULL. */
struct mcp_transport {
    /* Keeps data lent to mcp_job_run() until the answer. NULL: the transport runs its jobs on
     * no event loop. */
    int (*keep)(struct mcp_job *job);
    /* A tool is about to run as `call`. For cancelling it when the client leaves. */
    void (*started)(struct mcp_job *job, struct call *call);
    /* One notification, a whole message, while `exchange` runs; any thread. NULL: the transport
     * has no way for it. */
    void (*notify)(struct mcp_job *job, struct ng_str message);
    /* Does this client read notifications while its request runs? NULL: yes. */
    bool (*can_notify)(const struct mcp_job *job);
    /* Did a notification turn its answer into a stream? Not without memory. NULL: yes. */
    bool (*streams)(struct mcp_job *job);
    /* A request of the gateway's own to this client; must not get lost. NULL: there is no way.
     */
    void (*ask)(struct mcp_job *job, struct ng_str message);
    /* The client may come back for the answer. NULL: it cannot. */
    void (*detach_client)(struct mcp_job *job, int64_t retry_ms);
    /* Is this job answered all the same when its client has cancelled it? NULL: no. */
    bool (*owes_answer)(struct mcp_job *job);
    /* Errors have HTTP statuses of their own; headers are checked. */
    bool is_http;
};

enum mcp_waits { MCP_WAITS_NOT = 0, MCP_WAITS, MCP_WAITS_OVER };

/* One message under way. Memory of the job's call. */
struct mcp_exchange {
    struct mcp_job *job;
    struct mcp_message message;
    struct mcp_terms terms;
    struct call *call; /* runs the message; the job's own for one that is alone */
    struct mcp_inflight inflight;
    bool is_inflight; /* the inflight is in the session */
    const struct ng_value *progress_token;
    enum mcp_log_level log_level;
    atomic_bool answered;      /* nothing more may be said about it */
    const struct mcp_run *run; /* while it runs a plugin's code */
    unsigned rounds;           /* of questions */
    bool taken_back;           /* the client cancelled it */
    bool progressed;
    double progress;  /* the last one sent */
    size_t answer_at; /* start of the answer in the buffer */
    atomic_int waits; /* of mcp_wait(): enum mcp_waits */
    void (*over)(struct mcp_exchange *exchange);
    void *wait_user;  /* of mcp_wait() */
    struct task task; /* over() on a worker */
};

/* Accounting of a large text in the caller's rate: NONE to DUE or PREPAID before it is parsed,
 * DUE to PREPAID after it, PREPAID to NONE at the first request that counts. */
enum mcp_rate_state {
    MCP_RATE_NONE = 0,
    MCP_RATE_PREPAID, /* the first request that counts was taken from the rate */
    MCP_RATE_DUE      /* admitted as an answer of the client: counts unless it is one */
};

struct mcp_job {
    /* Filled by the transport. */
    struct gateway *gateway;
    struct mcp_client_requests *client_requests; /* or NULL: no requests to the client */
    const struct mcp_transport *transport;
    const struct mcp_methods *methods;
    const struct auth_caller *caller; /* lent while mcp_job_run() runs */
    struct call *call; /* owns the parsed text; its caller is set; the transport's reference */
    struct mcp_session *session;       /* or NULL; lent until the answer */
    const struct mcp_headers *headers; /* or NULL; lent while mcp_job_run() runs */
    struct ng_str text;                /* lent while mcp_job_run() runs */
    struct ng_str idempotency_key;     /* or absent; lent until the answer */
    bool on_loop;
    bool is_full; /* the transport has as much under way as it takes: requests are answered BUSY
                   */
    struct buf *out;                   /* answers; empty if there is none (notifications) */
    void (*done)(struct mcp_job *job); /* after NG_PENDING, once, from any thread */
    /* Opens a session at initialize, and keeps it; NULL: the transport keeps none per client.
     */
    int (*open_session)(struct mcp_job *job, enum mcp_version version);

    /* Results. */
    char run[CALL_RUN_MAX + 1]; /* of its requests, where all have the same; else "" */
    int status; /* HTTP: 200, 202 when there is no answer, or that of the error */
    int retry_after_s;

    /* The job's own. */
    struct task task; /* a large text is parsed on a worker */
    enum mcp_rate_state rate;
    size_t out_start; /* the transport may have written before it */
    struct mcp_exchange one;
    struct mcp_exchange *many; /* a batch */
    size_t count;
    bool is_batch;
    bool has_items;
    atomic_size_t left; /* messages not yet answered, and one for the run itself */
    struct lock lock;   /* batches: one answer at a time goes into the buffer */
};

/* NG_OK: answered (job->out, job->status). NG_PENDING: job->done() runs once, possibly before
 * this returns; the job may be gone by then. */
int mcp_job_run(struct mcp_job *job);

/* Refuses all of it. value: what was read, or NULL; the id of a message that was not is looked
 * for in its beginning, since the client waits for it. */
void mcp_job_refuse_unread(struct mcp_job *job, const struct ng_value *value, int status,
                           struct ng_str sentence);

/* An answer is printed between these two. If it does not fit, an error replaces it. */
struct buf *mcp_answer_open(struct mcp_exchange *exchange);
void mcp_answer_close(struct mcp_exchange *exchange);
/* {"jsonrpc":"2.0","id":...,"result":{ - the members come next, if any. */
void mcp_result_begin(struct mcp_exchange *exchange, struct buf *out);
/* Closes the result: its type and the server's name where the version has them, and in _meta
 * the members `meta` (JSON members without braces, or absent). */
void mcp_result_end(struct mcp_exchange *exchange, const char *type, struct ng_str meta);
/* An answer that is a result, opened with mcp_result_begin() and closed as "complete". */
struct buf *mcp_result_open(struct mcp_exchange *exchange);
void mcp_result_close(struct mcp_exchange *exchange, struct ng_str meta);
/* An empty result. NG_OK, as what follows. */
int mcp_answer_done(struct mcp_exchange *exchange);
/* An error as the answer. data: JSON, or absent. */
void mcp_answer_error(struct mcp_exchange *exchange, int status, int code,
                      struct ng_str message, struct ng_str data);
int mcp_refuse(struct mcp_exchange *exchange, int status, int code, const char *sentence);
/* With MCP_INVALID_PARAMS; for want of memory. */
int mcp_refuse_params(struct mcp_exchange *exchange, const char *sentence);
int mcp_refuse_oom(struct mcp_exchange *exchange);
/* `call` keeps `kept` as long as it lives itself: its texts point there. NG_EINTERNAL: out of
 * memory. */
int mcp_keep_call(struct call *call, struct call *kept);
/* A failure's sentence, and its hint behind `between`. buf_done(both) it. */
void mcp_join_hint(struct buf *both, const struct result *result, const char *between);
/* A handler that returned NG_PENDING has its answer printed. */
void mcp_exchange_finish(struct mcp_exchange *exchange);

/*
 * The cost of a request in the rate of its caller's key. Requests that every client sends to
 * connect and to stay connected are free, however few calls its key allows (a key of one call a
 * minute could not even initialize otherwise). So are requests that belong to a call that was
 * counted when it began. This holds only for small messages that come alone. Over HTTP a longer
 * text counts before it is parsed, whatever it is. There is one exception: as many texts as
 * there are open requests to the client are parsed first, and count unless they are answers.
 * Small notifications and answers of the client are free, too.
 */
enum mcp_cost {
    MCP_COST_FREE = 0,
    MCP_COST_COUNTS,
    MCP_COST_CALL /* dispatch() or dispatch_step() takes it */
};

/* A method: NG_OK with an answer printed, or NG_PENDING. */
struct mcp_method {
    const char *name;
    unsigned versions; /* enum mcp_version_set */
    enum mcp_cost cost;
    int (*handle)(struct mcp_exchange *exchange);
};

struct mcp_listen_tasks;

/* How tasks take part in requests of the server. All members are there. */
struct mcp_task_hooks {
    /* Can calls of this gateway become tasks? */
    bool (*are_offered)(struct gateway *gateway);
    /* tools/call of a tool, arguments checked. True: it became a task, or was answered; *ret_rc
     * is what the handler returns. */
    bool (*take)(struct mcp_exchange *exchange, struct ng_str tool,
                 const struct ng_value *arguments, int *ret_rc);
    /* The part of subscriptions/listen that is about tasks: mcp_listen_tasks.h. */
    bool (*listen_begin)(struct mcp_exchange *exchange, const struct ng_value *asked,
                         struct ng_str meta, struct ng_writer *acknowledgement,
                         struct mcp_listen_tasks **ret);
    void (*listen_acknowledged)(struct mcp_listen_tasks *listen);
    void (*listen_end)(struct mcp_listen_tasks *listen);
};

/* The methods that jobs are run with. */
struct mcp_methods {
    const struct mcp_method *items;
    size_t count;
    const struct mcp_task_hooks *tasks;
};

/*
 * A request that runs a plugin's code (mcp_run.c): tools/call, prompts/get, resources/read ...
 */
struct mcp_run {
    /* Fills exchange->call, whose caller, progress, cancellation and questions are wired, and
     * runs it: what dispatch() or dispatch_step() returned. With answers to questions it is
     * called again, with another call. NULL: runs `step` with the call's step_user. */
    int (*start)(struct mcp_exchange *exchange);
    /* Prints the answer to exchange->call->final, and that to a failure. */
    void (*answer)(struct mcp_exchange *exchange, const struct call *call);
    void (*failed)(struct mcp_exchange *exchange, const struct call *call);
    ng_step_fn *step;
};
/* NG_OK: answered; NG_PENDING. */
int mcp_run(struct mcp_exchange *exchange, const struct mcp_run *run);

/*
 * A request that stays open and runs no code meanwhile (subscriptions/listen): its handler
 * calls mcp_wait() and returns NG_PENDING. Messages go out by job->transport->notify(job,
 * message) (any thread, until the exchange is finished; over HTTP the first message makes the
 * answer an event stream). over() comes at most once, on a thread of its own (no lock held),
 * when the client cancelled the request or left, or the gateway stops. A thread that ends the
 * waiting calls mcp_wait_over(), and owns the exchange only if that returns true. The one
 * winner answers (mcp_answer_open ...; over() may also leave the answer out) and calls
 * mcp_exchange_finish().
 */
void mcp_wait(struct mcp_exchange *exchange, void (*over)(struct mcp_exchange *exchange),
              void *user);
bool mcp_wait_over(struct mcp_exchange *exchange);
/* over() now, on a worker, if it did not come yet. Any thread; the caller knows that the
 * exchange is still there. */
void mcp_wait_wake(struct mcp_exchange *exchange);

/* After a question was answered: the code runs again in a call of its own (answers: an object
 * that lives as long as job->call), or the answer is a failure. Both end the exchange some
 * time. */
void mcp_run_again(struct mcp_exchange *exchange, const struct ng_value *answers);
void mcp_run_fail(struct mcp_exchange *exchange, int rc, const char *sentence);
/* Replaces the result that run->answer() prints by this failure. */
void mcp_run_set_result(struct mcp_exchange *exchange, int rc, const char *sentence);

/* mcp_rate.c: see enum mcp_cost. False: answered, there are too many. value: NULL for a text
 * that is not JSON. */
bool mcp_rate_before_parse(struct mcp_job *job);
bool mcp_rate_after_parse(struct mcp_job *job, const struct ng_value *value);
bool mcp_rate_take(struct mcp_exchange *exchange, const struct mcp_method *method);

/* mcp_server.c: another call for this exchange; the one before is let go. */
void mcp_exchange_give_call(struct mcp_exchange *exchange, struct call *call);
/* Cancels all calls of a job. Any thread that holds a reference to its call. */
void mcp_job_cancel(struct mcp_job *job);

/* mcp_work.c: the trace and the run that a request belongs to, into its call. False: answered,
 * the run that it names is not of the form. */
bool mcp_take_work(struct mcp_exchange *exchange);
/* job->run of a batch, whose answer may begin before its last request does. */
void mcp_take_batch_run(struct mcp_job *job, const struct ng_value *batch);

/* mcp_lifecycle.c */
/* For the audit log: what is asked, and by which program. The name that the client gives
 * itself, in _meta or at initialize, is nearer to it than its User-Agent, which is that of a
 * library. */
void mcp_take_asked(struct mcp_exchange *exchange);
/* Names the session for plugins. A connection over stdio has no id, and is the only one of its
 * process. */
void mcp_take_session(struct mcp_exchange *exchange);
int mcp_initialize(struct mcp_exchange *exchange);
int mcp_discover(struct mcp_exchange *exchange);
int mcp_ping(struct mcp_exchange *exchange);
int mcp_set_level(struct mcp_exchange *exchange);
/* A request that changes what the database has of its session is answered once it is there:
 * prints its answer, perhaps on a worker, or a failure. Without a stored session: at once. What
 * `edit` points to lives as long as the call. */
struct mcp_session_edit;
int mcp_session_save(struct mcp_exchange *exchange, const struct mcp_session_edit *edit,
                     const struct mcp_run *run);
/* An empty result, as the answer of such a run. */
void mcp_answer_saved(struct mcp_exchange *exchange, const struct call *call);
/* And its failure: a session that another gateway has leaves this one, so that the next request
 * of it is forwarded. */
void mcp_answer_not_saved(struct mcp_exchange *exchange, const struct call *call);
/* mcp_tools.c */
int mcp_tools_list(struct mcp_exchange *exchange);
int mcp_tools_call(struct mcp_exchange *exchange);
/* The answer to tools/call for what a call came to, and its result object alone. */
void mcp_tools_answer(struct mcp_exchange *exchange, const struct call *call);
void mcp_tools_print_result(struct buf *out, const struct call *call);
/* mcp_resource_list.c, mcp_resources.c */
int mcp_resources_list(struct mcp_exchange *exchange);
int mcp_templates_list(struct mcp_exchange *exchange);
int mcp_resources_read(struct mcp_exchange *exchange);
/* mcp_prompts.c */
int mcp_prompts_list(struct mcp_exchange *exchange);
int mcp_prompts_get(struct mcp_exchange *exchange);
/* mcp_complete.c */
int mcp_complete(struct mcp_exchange *exchange);
/* mcp_subscribe.c */
int mcp_resources_subscribe(struct mcp_exchange *exchange);
int mcp_resources_unsubscribe(struct mcp_exchange *exchange);
/* A client of the handshake versions is ready: its session gets notifications from now on.
 */
void mcp_session_subscribed(struct mcp_exchange *exchange);
/* A session that another gateway had gets notifications again, as if everything had changed
 * meanwhile. caller: a call with the session's caller, kept. */
struct mcp_session_record;
void mcp_session_resume(struct mcp_session *session, struct call *caller,
                        const struct mcp_session_record *record);
/* mcp_listen.c */
int mcp_subscriptions_listen(struct mcp_exchange *exchange);
/* mcp_params.c: do the headers Mcp-Param-... agree with the arguments (may be NULL)? False:
 * answered with an error. */
bool mcp_params_match(struct mcp_exchange *exchange, struct ng_str tool,
                      const struct ng_value *arguments);

#endif
