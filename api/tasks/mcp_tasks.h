/* SPDX-License-Identifier: MIT */
/*
 * mcp_tasks.h - MCP tasks: tool calls that continue without the request that began them.
 *
 * A task is a document of the collection "mcp_tasks", stored before the client is answered and
 * found by its owner (agent and key) alone. A table in memory holds the live ones: running
 * calls, waiting requests, expiry times. A task that was running when the gateway died is
 * failed at the next start, or by another gateway on the same documents when its lease has run
 * out (cluster.h); a task that waits for an answer goes on waiting.
 */
#ifndef NOTEGATE_API_MCP_TASKS_H
#define NOTEGATE_API_MCP_TASKS_H

#include <sys/queue.h>

#include "api/server/mcp_server.h"

#define MCP_TASKS_RELATED "io.modelcontextprotocol/related-task"
#define MCP_TASKS_COLLECTION "mcp_tasks"
/* Tasks kept, of all callers and of one; those of one that run at the same time. */
#define MCP_TASKS_MAX 8192
#define MCP_TASKS_PER_CALLER_MAX 512
#define MCP_TASKS_RUNNING_PER_CALLER_MAX 64
/* Documents read at a start: expired ones that were not removed yet are among them. */
#define MCP_TASK_ROWS_MAX (4 * MCP_TASKS_MAX)
/* How long a task is kept after its creation: the default, and the maximum that a client may
 * ask for.
 */
#define MCP_TASK_TTL_MS ((int64_t)3600 * 1000)
#define MCP_TASK_TTL_MIN_MS ((int64_t)1000)
#define MCP_TASK_TTL_MAX_MS ((int64_t)24 * 3600 * 1000)
/* How often a client may well ask. */
#define MCP_TASK_POLL_MS 500
/* Requests that wait for the end of one task. */
#define MCP_TASK_WAITERS_MAX 8
/* Bytes of randomness in an id; written as twice as many hexadecimal digits. */
#define MCP_TASK_ID_BYTES 24
#define MCP_TASK_ID_LEN (2 * (size_t)MCP_TASK_ID_BYTES)
/* Agent and key id. */
#define MCP_TASK_OWNER_MAX 96
/* Longest progress message of a task. */
#define MCP_TASK_MESSAGE_MAX 256
/* Tasks in one page of tasks/list. */
#define MCP_TASKS_PAGE 50
/* Watchers of all streams, and tasks of one. */
#define MCP_TASK_SUBSCRIPTIONS_MAX 4096
#define MCP_TASK_WATCHED_MAX 64

/* Longest id of a gateway (cluster.h). */
#define MCP_TASK_GATEWAY_MAX 32

enum mcp_task_status {
    MCP_TASK_WORKING = 0,
    MCP_TASK_INPUT_REQUIRED,
    MCP_TASK_COMPLETED,
    MCP_TASK_FAILED,
    MCP_TASK_CANCELLED
};

const char *mcp_task_status_text(enum mcp_task_status status);
static inline bool mcp_task_is_over(enum mcp_task_status status)
{
    return status >= MCP_TASK_COMPLETED;
}

/* ---- the document (mcp_task_store.c) ---- */

/* One task in its stored form. Texts are lent by the code that filled it in. */
struct mcp_task {
    struct ng_str id;
    struct ng_str owner;
    struct ng_str tool;
    struct ng_str space;     /* the one the caller named, or absent */
    struct ng_str run;       /* of the call that made it, or absent */
    struct ng_str arguments; /* JSON, an object */
    enum mcp_task_status status;
    int64_t created_ms, updated_ms, ttl_ms;
    unsigned can_ask;      /* enum ng_ask_kind bits of the client that made it */
    struct ng_str asks;    /* INPUT_REQUIRED: JSON, key -> request, the open questions */
    struct ng_str answers; /* JSON, key -> answer; or absent */
    struct ng_str state;   /* ng_ask_state of the tool, or absent */
    struct ng_str message; /* about the status, or absent */
    struct ng_str gateway; /* the one that runs it, or ran it last */
    struct ng_str maker;   /* the gateway that made it: `created_ms` is by its clock */
    struct ng_str outcome; /* COMPLETED: the tool's result, FAILED: the error; JSON */
    bool is_error;         /* COMPLETED: the tool said that it failed */
    bool is_broken;        /* the document is no JSON: there is the id alone */
};

/* The next state of a task, made from the present one; false: no change. Runs under the
 * document's lock, perhaps twice. Memory that it sets in `task` must live as long as `user`. */
typedef bool mcp_task_edit_fn(struct mcp_task *task, struct call *call, void *user);
struct mcp_task_edit {
    mcp_task_edit_fn *fn;
    void *user;
    bool creates;
};

int mcp_task_declare(struct store *store, struct call *call);
/* The task of this id into call memory. NG_ENOTFOUND: there is none. On workers. */
int mcp_task_load(struct call *call, struct ng_str id, struct mcp_task *ret);
/* Changes it, and waits until that is on disk. On workers. */
int mcp_task_change(struct call *call, struct ng_str id, struct mcp_task_edit *edit);
int mcp_task_delete(struct call *call, struct ng_str id);
/* Every stored task. Texts but the id are valid during row(). A document that is broken is left
 * out; one that there is no memory for fails the whole. */
typedef int mcp_task_row_fn(const struct mcp_task *task, void *user);
int mcp_task_each(struct call *call, mcp_task_row_fn *row, void *user);
/* Those that are not over; with these ids (at most NG_IN_MAX), broken ones too; of this owner.
 */
int mcp_task_each_open(struct call *call, mcp_task_row_fn *row, void *user);
int mcp_task_each_of(struct call *call, const struct ng_str *ids, size_t count,
                     mcp_task_row_fn *row, void *user);
int mcp_task_each_owned(struct call *call, struct ng_str owner, mcp_task_row_fn *row,
                        void *user);

/* ---- the living ones (mcp_task_table.c, _open.c, _wait.c) ---- */

struct mcp_tasks;
struct mcp_task_waiter;

/* The table's entry of a task. All under its lock. */
/* The gateway that runs a task. */
enum mcp_task_host {
    MCP_TASK_HERE = 0,
    MCP_TASK_FORMER,   /* this gateway, before it was started again */
    MCP_TASK_ELSEWHERE /* entry->gateway */
};

struct mcp_task_entry {
    char id[MCP_TASK_ID_LEN + 1];
    char owner[MCP_TASK_OWNER_MAX];
    int64_t created_ms; /* Unix time of the gateway that made it: shown, and for the order */
    int64_t expires_ms; /* clock_uptime_ms() of this one */
    enum mcp_task_status status;
    bool is_stored; /* its creation is on disk */
    bool is_gone;   /* expired while it ran */
    bool is_lost;   /* its end could not be stored */
    bool is_ending; /* the run is over; its end is being stored */
    enum mcp_task_host host;
    char gateway[MCP_TASK_GATEWAY_MAX + 1];
    bool is_asking;    /* a request that waits for it puts its questions to the client */
    struct call *call; /* the run, or NULL; lent */
    char message[MCP_TASK_MESSAGE_MAX];
    struct mcp_task_waiter *waiters;
    struct mcp_task_entry *hash_next;
    LIST_ENTRY(mcp_task_entry) link;
};

/* Opens the tasks of a gateway: from now on it runs some. Nothing to do where it has no store
 * or has them already. */
int mcp_tasks_open(struct gateway *gateway, struct buf *error);
/* The gateway stops: requests that wait are answered; runs_too: and what runs is cancelled. */
void mcp_tasks_stop(struct gateway *gateway, bool runs_too);
bool mcp_tasks_stopping(struct mcp_tasks *tasks);
/* NULL: this gateway runs none. */
struct mcp_tasks *mcp_tasks_of(struct gateway *gateway);
void mcp_tasks_lock(struct mcp_tasks *tasks);
void mcp_tasks_unlock(struct mcp_tasks *tasks);

/* A new entry, held by `call`. NG_ERATE, NG_EBUSY, NG_EINTERNAL: *ret_error says why not. */
int mcp_tasks_add(struct mcp_tasks *tasks, struct ng_str owner, int64_t ttl_ms,
                  struct call *call, struct mcp_task_entry **ret, const char **ret_error);
/* With the lock held: the stored, living task of this owner, or NULL. */
struct mcp_task_entry *mcp_tasks_find(struct mcp_tasks *tasks, struct ng_str id,
                                      struct ng_str owner);
/* A run of the task starts again, or could not start. A task has one at a time, but one whose
 * end is being stored counts no more: the answers may come through another gateway, which reads
 * that end first. A task that is over gets none (NG_ECONFLICT, reported to `asker`). */
int mcp_tasks_hold(struct mcp_tasks *tasks, struct ng_str id, struct call *call,
                   struct call *asker);
void mcp_tasks_let_go(struct mcp_tasks *tasks, struct ng_str id);
/* The tool of this run has returned: its end is stored next. */
void mcp_tasks_run_ends(struct mcp_tasks *tasks, struct ng_str id, const struct call *run);
/* Cancels the run, if there is one. */
void mcp_tasks_cancel_run(struct mcp_tasks *tasks, struct ng_str id);
/* Its progress, in words. */
void mcp_tasks_say(struct mcp_tasks *tasks, struct ng_str id, const char *message);
void mcp_tasks_remove(struct mcp_tasks *tasks, struct mcp_task_entry *entry);
/* The position of a task among all, whether it is still there or not. */
struct mcp_task_place {
    int64_t created_ms;
    char id[MCP_TASK_ID_LEN + 1];
};

/* With the lock held: up to `count` tasks of the owner that come after `after` (NULL: from the
 * newest), newest first. */
void mcp_tasks_page(struct mcp_tasks *tasks, struct ng_str owner,
                    const struct mcp_task_place *after, struct mcp_task_place *places,
                    size_t *count);
/* The status on disk changed, or this run ended (its task may be over since it was cancelled,
 * or have another run): waiting requests and subscribers are notified. ended: NULL where no run
 * did. is_lost: the status could not be stored. */
void mcp_tasks_settle(struct mcp_tasks *tasks, struct ng_str id, const struct call *ended,
                      enum mcp_task_status status, bool is_lost);
/* Calls `step` on a worker, as the rest of `call`, when the task is over, or has questions that
 * the client of this call can be asked (one call at a time is given them). NG_OK: it is so
 * already. NG_PENDING: return that. Else a failure. */
int mcp_tasks_await(struct mcp_tasks *tasks, struct call *call, struct ng_str id,
                    struct ng_str owner, ng_step_fn *step, void *user);

/* The request that was given the questions did not get answers. */
void mcp_tasks_ask_over(struct mcp_tasks *tasks, struct ng_str id);
/* Requests that wait now. */
size_t mcp_tasks_waiting(struct mcp_tasks *tasks);

/* ---- watching (subscriptions/listen) ---- */

struct mcp_task_subscription;

/*
 * A task changed its status, and the change is on disk: changed(user, task), on a worker, with
 * the members of the task as it is by now (see mcp_task_print); must be quick and must not call
 * back. Those of the ids that are the owner's are watched.
 */
typedef void mcp_task_changed_fn(void *user, struct ng_str task);
int mcp_tasks_subscribe(struct mcp_tasks *tasks, struct ng_str owner, const struct ng_str *ids,
                        size_t count, mcp_task_changed_fn *changed, void *user,
                        struct mcp_task_subscription **ret);
/* How many are watched, and the id of one of them. */
size_t mcp_tasks_subscribed(const struct mcp_task_subscription *subscription);
const char *mcp_tasks_subscribed_id(const struct mcp_task_subscription *subscription,
                                    size_t index);
/* changed() is not called any more when it returns. NULL is a no-op. */
void mcp_tasks_unsubscribe(struct mcp_tasks *tasks, struct mcp_task_subscription *subscription);

/* ---- runs (mcp_task_run.c) ---- */

/* "agent\nkey id" of the caller. */
struct ng_str mcp_task_owner(struct arena *arena, const struct call *call);

struct mcp_task_order {
    struct ng_str tool;
    const struct ng_value *arguments;
    int64_t ttl_ms;
    unsigned can_ask;
    const struct ng_value *answers; /* of earlier rounds, or NULL */
    struct ng_str state;
};

/* Makes a task of a call: it is answered when the task is on disk (or, if dispatch() refuses
 * the call, with that). NG_OK or NG_PENDING, as a method. */
int mcp_task_start(struct mcp_exchange *exchange, const struct mcp_task_order *order);

/* Another call of the same caller, for mcp_task_resume; NULL: out of memory. */
struct call *mcp_task_prepare(const struct call *from);
/* Runs the tool of a task again, with all answers. The status is WORKING already, on disk.
 * call: of mcp_task_prepare, its reference passes over. NG_OK: it runs. Else it does not, and
 * `asker` says why. On workers. */
int mcp_task_resume(struct mcp_tasks *tasks, struct call *call, const struct mcp_task *task,
                    struct call *asker);

/* ---- methods (mcp_tasks.c) ---- */

/* Does the client of this request know tasks as an extension? */
bool mcp_tasks_declared(const struct mcp_exchange *exchange);
/* Answers that it does not. */
int mcp_tasks_answer_undeclared(struct mcp_exchange *exchange);
/* Is this tools/call a task, or refused because it is (or is not) one? True: handled, *ret_rc
 * is the method's. */
bool mcp_tasks_take(struct mcp_exchange *exchange, struct ng_str name,
                    const struct ng_value *arguments, int *ret_rc);

int mcp_tasks_get(struct mcp_exchange *exchange);
int mcp_tasks_update(struct mcp_exchange *exchange);
int mcp_tasks_cancel(struct mcp_exchange *exchange);
int mcp_tasks_result(struct mcp_exchange *exchange);
int mcp_tasks_list(struct mcp_exchange *exchange);

/* A task as its owner sees it now, in the memory of `call`. NG_ENOTFOUND. On workers. */
int mcp_task_view(struct mcp_tasks *tasks, struct call *call, struct ng_str id,
                  struct ng_str owner, struct mcp_task *ret);
/* The members of a task, as its version writes them (without braces); whole: with its outcome
 * and questions. With "stateless" and "whole" they are the params of notifications/tasks. */
void mcp_task_print(struct buf *out, const struct mcp_task *task, bool is_stateless,
                    bool whole);

#endif
