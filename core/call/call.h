/* SPDX-License-Identifier: MIT */
/*
 * call.h - one call of a tool, from the transport that received it to the answer.
 *
 * A transport makes a call, fills the request part, hands it to dispatch() and reads the result
 * part when the call is done. The plugin sees only `pub`.
 */
#ifndef NOTEGATE_CORE_CALL_H
#define NOTEGATE_CORE_CALL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "async_mutex.h"
#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/lock.h"
#include "core/json/json.h"
#include "deferrals.h"
#include "notegate/plugin.h"
#include "pool.h"

struct gateway;
struct key;
struct plugin;
struct tool;
struct call;
struct store_txn;

enum part_kind {
    PART_TEXT = 1,
    PART_IMAGE,
    PART_AUDIO,
    PART_RESOURCE, /* embedded */
    PART_LINK
};

/* A part of an answer. Memory of the call. */
struct part {
    enum part_kind kind;
    struct ng_str mime_type;
    struct ng_str
        data; /* TEXT: the text; IMAGE, AUDIO: raw bytes; RESOURCE: text or raw bytes */
    struct ng_str uri, name; /* RESOURCE, LINK */
    bool is_text;            /* RESOURCE */
    struct part *next;
};

/* How a call ended. Valid when the call is done; memory of the call. */
struct result {
    int rc;                /* NG_OK or NG_E... or a plugin's own code */
    const char *code;      /* rc != NG_OK: the code's name on the wire */
    int status;            /* and its HTTP status */
    struct ng_str message; /* and the sentence */
    struct ng_str hint;    /* or absent */
    struct ng_str details; /* a JSON object, or absent */
    int retry_after_s;     /* 0: none */
    bool is_json;          /* rc == NG_OK: `text` is one JSON object, else it is plain text */
    struct ng_str text;
    bool has_text;
    struct part *parts, *last_part; /* further parts, in order */
    /* NONE: not known yet, the first commit gives it. WITHOUT: the answer has none. */
    enum { REVISION_NONE, REVISION_NUMBER, REVISION_TEXT, REVISION_WITHOUT } revision_kind;
    uint64_t revision_number;
    struct ng_str revision_text;
    struct result_meta *meta; /* of _meta, or NULL; memory of the call */
};

struct result_meta {
    struct ng_str name, text;
    struct result_meta *next;
};

/* A question to the user or the client's model that unwound the tool (NG_EINPUT). */
struct ask {
    struct ng_str key;
    enum ng_ask_kind kind;
    struct ng_str request; /* JSON */
    bool malformed;        /* there was an answer, not of its kind's form */
    struct ask *next;
};

/* A document or other thing kept alive until the call ends. */
struct pin {
    void (*release)(void *object);
    void *object;
    struct pin *next;
};

/* A callback for the end of the call. Memory of the call. */
struct call_end {
    ng_complete_fn *ended;
    void *user;
    struct call_end *next;
};

/* Documents that one audit line names; the rest is counted. */
#define CALL_CHANGES_MAX 32

/* Bytes of an id that are kept. */
#define CALL_CHANGE_ID_MAX ((size_t)1024)

/* A document that the call changes, for audit.h. Memory of the call. The last two are set by
 * the commit, before it lets the call go on. */
struct call_change {
    struct ng_str collection, space, id, action;
    uint64_t revision;
    struct call_change *next;
    uint64_t seq; /* 0: the backend gives it later */
    bool is_stored;
};

/*
 * The life of a call in dispatch(). One thread at a time moves it: the caller of dispatch(),
 * its run, and the thread that ends it.
 *
 *   from      to        when
 *   NEW       ADMITTED  it is counted in gateway->active
 *   ADMITTED  INLINE    the tool is tried on the event loop
 *   INLINE    ADMITTED  the tool needs a worker
 *   ADMITTED  ASYNC     it is handed to the workers
 *   INLINE    ASYNC     a commit or deferral is pending after the run
 *   any       DONE      it is finished
 */
enum call_phase { CALL_NEW = 0, CALL_ADMITTED, CALL_INLINE, CALL_ASYNC, CALL_DONE };

/* The list of timers.c that has the call: none, until its deadline, from then until it ends. */
enum call_timer { CALL_UNTIMED = 0, CALL_ON_TIME, CALL_LATE };

/* Set by any thread and never cleared: call_has(), call_set(). */
enum call_flag {
    CALL_CANCELLED = 1,        /* the client left or cancelled, or the deadline passed */
    CALL_CANCEL_MASKED = 2,    /* the tool finishes all the same */
    CALL_STAYS = 4,            /* its tool continues when the client leaves */
    CALL_TIMED = 8,            /* timers.h ends it at its deadline, and cancels it then */
    CALL_WAITS = 16,           /* a commit or deferral was begun: NG_PENDING has an end */
    CALL_DEFERRAL_FAILED = 32, /* a deferral has ended with a failure */
    CALL_HAS_REST = 64,        /* rest_text is complete */
    CALL_PREVIEWS = 128        /* it only tells what it would change */
};

/* Set by the transport before dispatch(); only dispatch() sets CALL_SPACE_ARGUED, and the
 * history of files CALL_ALL_FOLDERS. */
enum call_option {
    CALL_ON_LOOP = 1,       /* dispatch() is called on an event loop: nothing here may block */
    CALL_NO_DEADLINE = 2,   /* it takes as long as it takes */
    CALL_NO_RATE = 4,       /* it continues what was counted in the rate before */
    CALL_MUST_REPLY = 8,    /* its success has an answer: of a tool, of a resource */
    CALL_SPACE_ARGUED = 16, /* the argument `space` named the caller's space */
    CALL_RAW_ANSWER = 32,   /* tools.max_answer does not apply */
    CALL_ALL_FOLDERS = 64   /* file paths may lie in the folders of all plugins */
};

/* The answer of its idempotency key. */
enum call_answer {
    CALL_ANSWER_NONE = 0, /* not stored; also after the commit with it was refused */
    CALL_ANSWER_STORED,   /* in the store, or on the way */
    CALL_ANSWER_REPEATED  /* it is that of the first call with this key */
};

#define CALL_NO_USER ((uid_t)-1)

/* Bytes of a run's label. */
#define CALL_RUN_MAX 64
/* Bytes of a clause of call_set_rest(). */
#define CALL_REST_MAX 160

struct call {
    struct ng_call
        pub; /* first: a struct ng_call * of a plugin is the struct call * of the core */
    struct ng_caller caller;
    struct key *key; /* the caller came with it (keys.h), a reference; NULL: with none */
    struct gateway *gateway;
    struct arena arena;
    struct ng_str remote; /* address of the caller, "unix", or absent */
    const char *face;     /* the door that it came in by: "rest", "mcp", "stdio" or "cli"; NULL:
                             it is the gateway's own */
    uid_t user;           /* the Unix user of the caller, or CALL_NO_USER */

    /* Request: filled by the transport before dispatch(). */
    struct ng_str tool_name;       /* as asked for */
    struct ng_str args_text;       /* JSON, lent until the call is freed; "" is "{}". Ignored if
                                      pub.args is set */
    struct ng_str idempotency_key; /* or absent */
    /* For the audit log, of a call that is none of a tool: the protocol's name of what is asked
     * ("resources/read"), and of what it is asked; lent until the call is freed, or absent. */
    struct ng_str method, target;
    unsigned options; /* of enum call_option */
    /* On a worker, once, when nothing refuses the call any more and before the tool runs: what
     * must be there first. A failure is the call's. NULL: nothing. Not with on_loop. */
    int (*begin)(struct call *call, void *user);
    struct ng_str lane; /* of the workers, for the tool; absent: the agent's */
    void (*done)(struct call *call, void *user); /* see dispatch() */
    void *done_user;                             /* of both */
    void (*on_progress)(struct call *call, double done, double total, struct ng_str message,
                        void *user);
    void (*on_log)(struct call *call, enum ng_level level, const char *logger,
                   struct ng_str json, void *user);
    /* call_cancel() was called: any thread, maybe in a lock of the caller's: must be quick and
     * take none. */
    void (*on_cancel)(struct call *call, void *user);
    void (*on_detach_client)(struct call *call, int64_t retry_ms, void *user);
    void *on_user;
    unsigned client_asks; /* bit 1 << enum ng_ask_kind: the client can be asked so */
    const struct ng_value
        *ask_answers; /* object of key -> answer, of an earlier round; or NULL */
    struct ng_str ask_state_in;
    struct ask *asks; /* out, with rc NG_EINPUT */
    struct ng_str ask_state_out;

    /* Result: read by the transport when the call is done. */
    struct result final;

    /* The core's own. */
    struct result
        staged; /* result of the tool; becomes `final` unless the deadline came first */
    const struct tool *tool;
    struct plugin *plugin; /* of a step that runs a plugin's code without a tool: it goes by
                              that plugin's mutex. A step may change it before it continues. */
    enum ng_tool_space step_space; /* of a step: where the caller names no space */
    int64_t started_ns;            /* CLOCK_MONOTONIC */
    int64_t deadline_ns;           /* CLOCK_MONOTONIC; 0: none */
    bool may_block;                /* of the thread that runs the tool just now */
    atomic_bool read_only;         /* by the tool's declaration and this call's arguments */
    enum call_phase phase;
    unsigned epoch;                  /* of gateway->audit.epochs, from ADMITTED on */
    atomic_uint flags;               /* of enum call_flag */
    struct async_mutex *mutex;       /* of its plugin, where the call holds it */
    bool held;                       /* something was begun that outlives the run */
    void (*over)(struct call *call); /* runs when nothing is pending; set by dispatch */
    atomic_int pending; /* the run itself, commits and deferrals that must end before the call
                           is done */
    atomic_int refs;    /* the transport and the run */
    atomic_int
        answered; /* the answer was given (0 -> 1): by the end of the run or by the deadline */
    atomic_int failed_rc; /* first failure of a commit; its sentence: failed_text */
    int after_rc; /* how the call fails though its changes are made; NG_OK: it does not */
    struct ng_str after_text;
    struct pin *pins;
    struct call_end *ends; /* the last registered is called first */
    struct idempotency_claim
        *idempotency; /* this call holds an idempotency key, see idempotency.h */
    bool memory_busy; /* its memory is in use, by its run or by a change function that runs
                        again; see store_run_begins() */
    struct store_txn *memory_waiters; /* transactions that wait for it */
    enum call_answer answer_state;
    struct buf reply_buf; /* JSON reply being written */
    struct ng_writer reply_writer;
    struct buf details_buf;
    struct ng_writer details_writer;
    struct task task;
    struct async_mutex_waiter mutex_waiter;
    ng_step_fn *step; /* runs instead of the tool: dispatch_step, background */
    void *step_user;
    struct deferral deferral;
    ng_step_fn *repeat; /* call_gave(): runs again when all that is pending has ended well */
    void *repeat_user;
    ng_step_fn *later; /* its next step: continue_on_worker */
    void *later_user;
    atomic_bool begun;                    /* its tool or step was run, if only once */
    struct call *timer_prev, *timer_next; /* in a list of timers.c */
    enum call_timer timer;                /* which one */
    int64_t told_ns;                      /* when its delay was last logged; 0: never */
    struct call_change *changes; /* the last first; without an audit log CALL_CHANGES_MAX */
    size_t change_count;         /* all of them */
    struct ng_str changes_run;   /* of the changes, if it is not that of the caller */
    size_t bytes;                /* of files and the like that it keeps */
    size_t bytes_counted;        /* of them, in limits.buffered */

    /* Not zeroed in a new call. */
    char late_text[400];           /* the sentence of a deadline */
    char rest_text[CALL_REST_MAX]; /* call_set_rest() */
    char failed_text[512];         /* sentence of failed_rc */
    char run_text[CALL_RUN_MAX];   /* caller.run_id */
};

/* Calls hold at most this much memory of their own (arguments, drafts, rows). */
#define CALL_MEMORY_MAX ((size_t)256 * 1024 * 1024)
/* A step in the background may use more: it puts back what many calls have made. */
#define CALL_BACKGROUND_MEMORY_MAX ((size_t)1024 * 1024 * 1024)
/* Content up to this size is not counted, and larger one in steps of it. */
#define CALL_UNCOUNTED_BYTES ((size_t)64 * 1024)
/* Over that, for the sentence that says so. */
#define CALL_MESSAGE_RESERVE ((size_t)64 * 1024)
/* Maximum length of an error's message and of its hint, in bytes; a longer text loses its
 * middle. */
#define CALL_MESSAGE_MAX ((size_t)3000)
#define CALL_HINT_MAX ((size_t)1000)
/* Maximum length of a text in the details of an error, if they are longer than a message. */
#define CALL_DETAIL_TEXT_MAX 400

static inline struct call *call_of(struct ng_call *pub)
{
    return (struct call *)(void *)pub;
}

static inline bool call_has(const struct call *call, enum call_flag flag)
{
    return (atomic_load(&call->flags) & (unsigned)flag) != 0;
}

static inline void call_set(struct call *call, enum call_flag flag)
{
    (void)atomic_fetch_or(&call->flags, (unsigned)flag);
}

/* Is a JSON reply, or are details, being written? */
static inline bool call_reply_is_open(const struct call *call)
{
    return call->reply_writer.buf != NULL;
}

static inline bool call_details_are_open(const struct call *call)
{
    return call->details_writer.buf != NULL;
}

/* Asserts that the table of enum call_phase has the transition. */
void call_move(struct call *call, enum call_phase to);

/* A new call with one reference (the transport's). NULL: out of memory. The caller defaults to
 * agent "local", role admin, mode agent, no named space; a transport sets known values with
 * call_set_caller. */
struct call *call_new(struct gateway *gateway);
void call_unref(struct call *call);

static inline void call_ref(struct call *call)
{
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
}

/* Has a client's answer the form that an answer to such a question has? */
bool call_answer_fits(enum ng_ask_kind kind, const struct ng_value *answer);

/* Memory of ended calls for the next ones: those of a busy moment, with the first block of
 * their arenas some 10 KiB each. */
#define CALL_SPARES_MAX 64

struct spare_calls {
    struct lock lock;
    unsigned count;
    struct call *calls[CALL_SPARES_MAX]; /* the last one to end is the next to be used */
};

/* At the start of a gateway, and at its end. */
void call_init_spares(struct gateway *gateway);
void call_free_spares(struct gateway *gateway);

/* Sets the caller. Copies the texts. space: absent if the caller named none. NG_EINVAL: a name
 * is malformed; the result says which. */
int call_set_caller(struct call *call, struct ng_str agent, struct ng_str space,
                    enum ng_role role, enum ng_mode mode, bool run);
/* The space that the caller names; copied. NG_EINVAL: malformed, and the call has failed. */
int call_name_space(struct call *call, struct ng_str space);
int call_allow_spaces(struct call *call, const struct ng_str *spaces, size_t count, bool all);
/* Is the space one of the caller's? all_spaces does not count. */
bool call_has_space(const struct ng_caller *caller, struct ng_str space);
/* The key that the caller came with, or NULL: takes a reference, and the rights that only a key
 * gives (`restore`). Role, mode and the right to run code are those of call_set_caller(). */
void call_take_key(struct call *call, struct key *key);
/* Sets the run, of a form that dispatch/run_id.h has found good; copies. Absent: none. */
void call_set_run(struct call *call, struct ng_str run);
/* Takes address, door, client, method and target, ids of request and trace, run, session and
 * key of `from`. Copies. */
void call_take_origin(struct call *call, const struct call *from);

/* A clause for the sentence of a deadline: the work that is left if the call ends there. Once,
 * by the thread that runs it. */
void call_set_rest(struct call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* From any thread: the client has left or cancelled. */
void call_cancel(struct call *call);
/* Keeps `object` until the call ends. */
int call_pin(struct call *call, void (*release)(void *object), void *object);

/* Before the call takes so many more bytes of its memory for content (of files, of histories):
 * they count in limits.buffered, of which one agent has half, until the call ends. NG_EBUSY,
 * NG_ETOOLARGE: more than there can be. */
int call_count_bytes(struct call *call, size_t bytes);
/* Makes the call a failure; the same as ng_fail(). */
/* A text of at most `max` bytes: of a longer one the beginning, which says what, and the end,
 * which says what helps, with the count of the bytes between them. In the call's arena, also
 * where the call has used up its memory. Absent: out of memory. */
struct ng_str call_shorten(struct call *call, struct ng_str text, size_t max);
/* In a long message: shortens the texts of the arguments, so that what it says of them stays.
 */
void call_cut_echoes(const struct call *call, struct buf *message);
int call_fail(struct call *call, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int call_vfail(struct call *call, int code, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* Makes it the failure that it is. */
int call_no_memory(struct call *call);

/* Did an allocation of the tool or its reply fail in the call's memory? Then its result may be
 * incomplete: it is neither stored nor answered. */
static inline bool call_lacks_memory(const struct call *call)
{
    return call->arena.failed || call->arena.oom ||
           (call_reply_is_open(call) && call->reply_buf.rc != NG_OK &&
            call->reply_writer.misuse == NULL);
}

/* Takes back replies, parts, failure and revision (before a tool or a change function runs
 * again). */
void call_reset_result(struct call *call);
/* Around a plugin's code that gives entries to a listing, in a step that only reads. Where that
 * answered NG_PENDING the step returns so, too, and runs again when the deferral has ended
 * well. */
void call_gives(struct call *call);
int call_gave(struct call *call, int rc);
/* The same of a step that is not the call's first: NG_PENDING, or the failure of a plugin that
 * took no deferral. */
int call_gave_pending(struct call *call, ng_step_fn *step, void *user);

/* A commit or deferral of this call failed, on whatever thread: the call's answer becomes this
 * failure. */
void call_fail_later(struct call *call, int code, const char *sentence);

/* Has it an answer, or one that is being written? */
static inline bool call_has_reply(const struct call *call)
{
    return call->staged.has_text || call_reply_is_open(call) || call->staged.parts != NULL;
}

/* The end of a call: closes and checks the tool's output; then call->staged is the answer for
 * the transport. */
void call_complete_result(struct call *call);
/* call_fit.c: makes a success fit tools.max_answer and limits.result. The size of an answer
 * never turns a change into a failure. */
void call_fit_result(struct call *call);
/* Bytes that the text of the answer may have. */
size_t call_answer_max(const struct call *call);
/* The error object of the interface: {"error":true,"code",...}. */
int call_print_error(const struct call *call, struct buf *out);
/* Sets a member of `_meta` of the staged result; copies. False: out of memory. */
bool call_set_meta(struct call *call, struct ng_str name, struct ng_str text);
/* The members of `_meta`, with commas between them. */
void call_print_meta(const struct result *result, struct buf *out);

/* Agent and space names: [A-Za-z0-9._@-]{1,64}; a space may begin with '~'. */
bool call_name_valid(struct ng_str name);

/* One more thing must end before the call is done. */
static inline void call_pend(struct call *call)
{
    call_set(call, CALL_WAITS);
    if (atomic_fetch_add_explicit(&call->pending, 1, memory_order_relaxed) <= 1) {
        /* Only the failure of the run itself: an earlier failure that the tool handled is not
         * the call's. */
        call->staged.rc = NG_OK;
    }
}

/* One of them has ended; the last ends the call. */
static inline void call_complete(struct call *call)
{
    if (atomic_fetch_sub_explicit(&call->pending, 1, memory_order_acq_rel) == 1) {
        call->over(call);
    }
}

/* Only where call_notes_changes() (gateway.h). A document that the call changes, before its
 * commit is queued. The thread that runs the call. Texts are copied. NULL: it is only counted.
 */
struct call_change *call_note_change(struct call *call, const struct ng_key *key,
                                     uint64_t revision, struct ng_str action);

/* Its plugin's share of the workers, for a task of the call; NULL: the core's own work has
 * none. plugin.h has more of its plugin. */
struct pool_group *call_workers(const struct call *call);

/* Wire name and HTTP status of a code, also of a plugin's own (tool may be NULL). */
const char *error_name(const struct tool *tool, int rc);
int error_status(const struct tool *tool, int rc);
/* The same in a call: of its tool, or of the plugin that runs in it. */
const char *call_error_name(const struct call *call, int rc);
int call_error_status(const struct call *call, int rc);

#endif
