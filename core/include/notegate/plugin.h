/* SPDX-License-Identifier: MIT */
/*
 * plugin.h - the header of a tool plugin: its descriptor, the call, and the services of the
 * gateway.
 *
 * plugins/README.md begins with a complete plugin. Lifetimes:
 *  1. The descriptor and the host table outlive the last call of the module.
 *  2. If start() succeeded, stop() runs exactly once.
 *  3. Inputs (ng_str, values, documents, files) are borrowed for the call.
 *  4. Outputs are passed to the host (ng_reply() and others), never as malloc'd memory.
 *  5. A call ends when run() returns; after NG_PENDING, when its last commit or deferral ends.
 *  6. Modules are unloaded at shutdown only; stop() joins the threads of the module.
 */
#ifndef NOTEGATE_PLUGIN_H
#define NOTEGATE_PLUGIN_H

#include "abi.h"
#include "caller.h"
#include "documents.h"
#include "files.h"
#include "resources.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ng_host;
struct ng_call;
struct ng_conf;
struct ng_writer;
struct ng_deferred;
struct ng_later;
struct ng_listing;
struct ng_journal;

/* ---- a call ---- */

/* Never grows; the host has functions for all other properties of a call. */
struct ng_call {
    const struct ng_host *host;
    const struct ng_caller *caller;
    const struct ng_value *args; /* an object, valid by the schema of the tool */
    struct ng_str tool;          /* its name; "" in start(), open() and background work */
};

/* ---- client requests, steps, lists ---- */

enum ng_ask_kind {
    NG_ASK_FORM = 1,  /* elicitation: request = JSON of elicitation/create params */
    NG_ASK_MODEL = 2, /* sampling: JSON of sampling/createMessage params */
    NG_ASK_ROOTS = 3, /* roots/list */
    NG_ASK_URL = 4
};

enum ng_lists { NG_LIST_TOOLS = 1, NG_LIST_RESOURCES = 2, NG_LIST_PROMPTS = 4 };

enum ng_level { NG_LOG_ERROR = 1, NG_LOG_WARNING = 2, NG_LOG_INFO = 3, NG_LOG_DEBUG = 4 };

typedef int ng_step_fn(struct ng_call *call, void *user);

/* Completion of host->change_as. */
typedef void ng_changed_fn(void *user, int rc);

/* Completion of a call; borrows the message. */
typedef void ng_complete_fn(void *user, int rc, struct ng_str message);

/* ---- the services of the gateway ---- */

/*
 * Read by its size, which is the size in this gateway (see NG_NEEDS_HOST). Unless stated
 * otherwise, a function may be called from any thread while the call lives, and only one thread
 * at a time uses a call. The inline functions below are shorter to write.
 */
struct ng_host {
    size_t size;
    const char *version; /* of the gateway */

    /* Call memory, freed with the call. NULL: out of memory or over the limit of the call. */
    void *(*alloc)(struct ng_call *call, size_t bytes);
    struct ng_str (*format)(struct ng_call *call, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

    /* The answer: text or JSON, and further content parts. Return an error: out of memory, or
     * over limits.result (NG_ETOOLARGE). */
    int (*reply)(struct ng_call *call, struct ng_str text); /* copies */
    int (*reply_parts)(struct ng_call *call, const struct ng_str *pieces,
                       size_t count);                      /* concatenates */
    struct ng_writer *(*reply_json)(struct ng_call *call); /* one object; never NULL */
    int (*reply_media)(struct ng_call *call, const char *kind, const char *mime_type,
                       struct ng_str bytes); /* kind "image" or "audio" */
    int (*reply_resource)(struct ng_call *call, struct ng_str uri, const char *mime_type,
                          struct ng_str content, bool is_text); /* embedded */
    int (*reply_link)(struct ng_call *call, struct ng_str uri, struct ng_str name,
                      const char *mime_type);
    /* The revision that was read or written. A change sets the one of its first document. */
    int (*revision_number)(struct ng_call *call, uint64_t revision);
    int (*revision_text)(struct ng_call *call, struct ng_str revision);

    /* Sets the error and its message, one sentence for people. Returns `code`. */
    int (*fail)(struct ng_call *call, int code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void (*hint)(struct ng_call *call, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    struct ng_writer *(*details)(struct ng_call *call); /* one object; never NULL */

    /* Progress (total 0: unknown), cancellation (the client disconnected, or the deadline has
     * passed), remaining time. */
    void (*progress)(struct ng_call *call, double done, double total, struct ng_str message);
    bool (*cancelled)(struct ng_call *call);
    int64_t (*remaining_ms)(struct ng_call *call);
    bool (*may_block)(struct ng_call *call); /* false: on an event loop */
    int64_t (*now_ms)(void);                 /* Unix time */
    void (*log)(struct ng_call *call, enum ng_level level, const char *format, ...)
        __attribute__((format(printf, 3, 4))); /* to the log of the gateway */
    void (*notify_log)(struct ng_call *call, enum ng_level level, const char *logger,
                       struct ng_str json); /* to the client */

    /* Sends a request to the client, for its user or its model. Returns the answer to `key`, an
     * object, or NULL: then return NG_EINPUT, and the tool runs again from its beginning with
     * the answer. ask_state() stores a text for that second run, asked_state() returns it. */
    const struct ng_value *(*ask)(struct ng_call *call, const char *key, enum ng_ask_kind kind,
                                  struct ng_str request);
    void (*ask_state)(struct ng_call *call, struct ng_str state);
    struct ng_str (*asked_state)(struct ng_call *call);
    bool (*client_can)(struct ng_call *call, enum ng_ask_kind kind);

    /* Deferred completion: run() returns NG_PENDING, and the plugin calls finish() exactly
     * once, from any thread, with the result of the call. */
    struct ng_deferred *(*defer)(struct ng_call *call);
    void (*finish)(struct ng_deferred *deferred, int rc);
    /* Continues this call on a worker: run() returns NG_PENDING, and `step` returns the result
     * of the call. */
    int (*continue_on_worker)(struct ng_call *call, ng_step_fn *step, void *user);
    /* Runs `step` on a worker in a new call of the same caller, which may outlive this one. The
     * plugin owns `user`. */
    int (*background)(struct ng_call *call, ng_step_fn *step, void *user);
    void (*lists_changed)(const struct ng_host *host, unsigned lists); /* enum ng_lists */

    /* JSON values. NULL is a value of type NG_TYPE_ABSENT; accessors of another type return 0,
     * false, {NULL, 0}. */
    int (*json_parse)(struct ng_call *call, struct ng_str text,
                      const struct ng_value **ret_value);
    enum ng_type (*json_type)(const struct ng_value *value);
    size_t (*json_count)(const struct ng_value *value); /* elements or members */
    const struct ng_value *(*json_get)(const struct ng_value *object, const char *name);
    const struct ng_value *(*json_first)(const struct ng_value *container);
    const struct ng_value *(*json_next)(const struct ng_value *element); /* order as written */
    struct ng_str (*json_key)(const struct ng_value *member);
    struct ng_str (*json_text)(
        const struct ng_value *string_or_number); /* a number: its digits as written */
    int (*json_integer)(const struct ng_value *number,
                        int64_t *ret_integer); /* NG_EINVAL: none, or over 64 bits */
    double (*json_double)(const struct ng_value *number);

    /* JSON writer. It adds commas, escapes and checks UTF-8; errors are sticky and
     * json_result() reports them. */
    void (*json_object)(struct ng_writer *writer);
    void (*json_array)(struct ng_writer *writer);
    void (*json_end)(struct ng_writer *writer); /* of the innermost object or array */
    void (*json_name)(struct ng_writer *writer, const char *name);
    void (*json_name_str)(struct ng_writer *writer, struct ng_str name);
    void (*json_string)(struct ng_writer *writer, struct ng_str text);
    void (*json_int)(struct ng_writer *writer, int64_t number);
    void (*json_number)(struct ng_writer *writer, double number);
    void (*json_bool)(struct ng_writer *writer, bool value);
    void (*json_null)(struct ng_writer *writer);
    void (*json_copy)(struct ng_writer *writer, const struct ng_value *value);
    struct ng_writer *(*json_writer)(struct ng_call *call); /* into call memory */
    struct ng_str (*json_result)(struct ng_writer *writer); /* {NULL, 0}: failed */

    /* Configuration: keys of the plugin (without its prefix) and "data_dir", "timezone". */
    struct ng_str (*conf_text)(const struct ng_conf *conf, const char *key);
    int64_t (*conf_int)(const struct ng_conf *conf,
                        const char *key); /* sizes in bytes, durations in ms */
    double (*conf_number)(const struct ng_conf *conf, const char *key);
    bool (*conf_bool)(const struct ng_conf *conf, const char *key);
    size_t (*conf_list)(const struct ng_conf *conf, const char *key,
                        const struct ng_str **ret_items);

    /* Documents. Reads see committed states. get: *ret_doc is borrowed for the call. Without a
     * document, or for a tombstone, NG_OK with revision 0 or `deleted`. NG_ENOTFOUND: the given
     * revision is not kept. */
    int (*get)(struct ng_call *call, const struct ng_key *key, uint64_t revision,
               const struct ng_doc **ret_doc);
    int (*query)(struct ng_call *call, const struct ng_query *query, ng_row_fn *row, void *user,
                 uint64_t *ret_total);
    int (*search)(struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
                  void *user, uint64_t *ret_total, const char **ret_engine);
    int (*history)(struct ng_call *call, const struct ng_key *key, const struct ng_range *range,
                   ng_row_fn *row, void *user);
    int (*changes)(struct ng_call *call, uint64_t since, uint32_t limit, ng_event_fn *event,
                   void *user);
    /* Changes documents in one transaction. NG_PENDING: queued; return it. The reply is sent
     * when the commit is durable. */
    int (*change)(struct ng_call *call, const struct ng_change *changes, size_t count);

    /* In a change function: sets the next state. Copies. */
    int (*draft_json)(struct ng_draft *next, struct ng_str object);
    int (*draft_text)(struct ng_draft *next, const struct ng_str *pieces, size_t count);
    int (*draft_splice)(struct ng_draft *next, uint64_t at, uint64_t removed,
                        struct ng_str inserted);
    void (*draft_delete)(struct ng_draft *next);
    void (*draft_event)(struct ng_draft *next, struct ng_str json); /* data of the event */

    /* Files, see files.h. Changes return NG_PENDING, as `change`. */
    int (*file_stat)(struct ng_call *call, struct ng_str path, struct ng_file *ret_file);
    int (*file_read)(struct ng_call *call, struct ng_str path, uint64_t max_bytes,
                     struct ng_file *ret_file);
    int (*file_stream)(struct ng_call *call, struct ng_str path, ng_chunk_fn *chunk, void *user,
                       struct ng_file *ret_file);
    int (*file_list)(struct ng_call *call, const struct ng_file_list *list, ng_entry_fn *entry,
                     void *user);
    int (*file_edit)(struct ng_call *call, const struct ng_file_edit *edit);
    int (*file_transfer)(struct ng_call *call, const struct ng_file_transfer *transfer);
    int (*file_undo)(struct ng_call *call, const struct ng_file_undo *undo);
    /* The roots that the caller may use, in configured order. Borrowed for the call. */
    size_t (*file_roots)(struct ng_call *call, const struct ng_str **ret_roots);

    /* The functions of the journal (see journal.h) and its handle. */
    const struct ng_journal *(*journal)(struct ng_call *call, void **ret_journal);

    /* Adds an entry to a list of resources or prompts, or to a completion (see struct
     * ng_resources). bytes UINT64_MAX: unknown. */
    int (*list_add)(struct ng_listing *listing, struct ng_str id, struct ng_str name,
                    struct ng_str description, const char *mime_type, uint64_t bytes,
                    int64_t modified_ms);

    /* As `fail`, with a message that is not a format: it may contain NUL. Copies. */
    int (*fail_text)(struct ng_call *call, int code, struct ng_str message);

    /* Before long work: the client may disconnect and reconnect for the answer after about
     * retry_ms. No effect if the transport cannot resume (MCP sessions over HTTP can). */
    void (*detach_client)(struct ng_call *call, int64_t retry_ms);

    /* The start of the requested page: after the entry with this id, also if that is gone;
     * absent: the beginning. Without this call, every page is read from the beginning. */
    struct ng_str (*list_after)(struct ng_listing *listing);

    /* Only in start(): adds a folder as a root for file calls of this plugin, as "PATH" or
     * "SPACE:/PATH" (default space: shared). It must exist (NG_ENOTFOUND). Other plugins reach
     * its files only through a root that contains it; a caller without access to its space
     * never. */
    int (*file_folder)(struct ng_call *call, struct ng_str folder);

    /* The day, YYYY-MM-DD, at a Unix time in the zone of the gateway (`timezone`, else TZ),
     * which is that of localtime_r() too. Call memory; {NULL, 0}: out of memory. */
    struct ng_str (*day)(struct ng_call *call, int64_t time_ms);

    /* As `change`, for a step of longer work: returns when the commit is durable (NG_OK) or has
     * failed. The answer does not wait for it, and change functions must not reply.
     * NG_EWOULDBLOCK if the call must not block. */
    int (*change_wait)(struct ng_call *call, const struct ng_change *changes, size_t count);

    /* Changes documents outside of any call, as `agent`: for threads of a plugin. NG_OK:
     * queued; done(user, rc) comes once, from any thread, when the commit is durable or has
     * failed, and must be quick. After an error done() does not come. The changes and their
     * pointers must live until then. May block. */
    int (*change_as)(const struct ng_host *host, struct ng_str agent,
                     const struct ng_change *changes, size_t count, ng_changed_fn *done,
                     void *user);

    /* Deferred failure: the call fails with this after all its changes are committed; they are
     * kept. For work that failed in part. The last call counts; NG_OK resets it. Copies.
     * NG_EINTERNAL: out of memory. */
    int (*fail_on_completion)(struct ng_call *call, int code, struct ng_str message);

    /* Completion: ended(user, rc, message) comes once, when the call has ended and all its
     * changes are durable or have failed, with the result that the caller gets. It runs on any
     * thread and must be quick; of the call it may use only memory from alloc(). An error means
     * out of memory, and ended() does not come. Only in tools, in list and read of resources,
     * and in background work. */
    int (*on_complete)(struct ng_call *call, ng_complete_fn *ended, void *user);

    /* Masks cancellation: from here on cancelled() is false, and changes are accepted. For
     * cancelled work that saves its partial result; only quick steps may follow. */
    void (*mask_cancel)(struct ng_call *call);

    /* 64 hexadecimal digits, equal for all attempts of a call with an idempotency key; {NULL,
     * 0}: without a key. For effects that cannot be committed together with the answer: a name
     * made of the token lets a retry find them. Call memory. */
    struct ng_str (*idempotency_token)(struct ng_call *call);

    /* Number of revisions that history() has for this range without its limit. */
    int (*history_count)(struct ng_call *call, const struct ng_key *key,
                         const struct ng_range *range, uint64_t *ret_count);

    /* As `hint` and `log`, with a text that is not a format: for languages that cannot call
     * variadic functions. fail_text is the same for `fail`. */
    void (*hint_text)(struct ng_call *call, struct ng_str text);
    void (*log_text)(struct ng_call *call, enum ng_level level, struct ng_str text);

    /* Several gateways on one database, for work that one of them does at a time: it stores its
     * name in a document of the work, by a change that expects the revision that it read. The
     * name of this process of this gateway; "": documents are not shared, there are no others.
     * Lives as long as the host table. */
    struct ng_str (*gateway_name)(const struct ng_host *host);
    /* A number that grows when other gateways may have taken over work of this one: because it
     * was stopped or cut off from the database for longer than they wait. Then look whether the
     * documents of the work have its name. 0: they may take it over now. Takes no lock. */
    uint64_t (*gateway_term)(const struct ng_host *host);
    /* May the process with this name still be running? If not, others may take over its work.
     * ret_where: its address as far as it is known, else the name of its machine, or {NULL, 0}.
     * Call memory. May block. */
    int (*gateway_find)(struct ng_call *call, struct ng_str name, bool *ret_alive,
                        struct ng_str *ret_where);

    /* Background work whose time comes later, if at all: `later` keeps the caller of this call,
     * without a call in progress. NULL: out of memory. */
    struct ng_later *(*later)(struct ng_call *call);
    /* From any thread: runs `step` as background() does, and frees `later`, also if it fails
     * (NG_EBUSY: the gateway is stopping, `step` does not run). step NULL: only frees it. Due
     * for each, at the latest in stop(). */
    int (*start_later)(struct ng_later *later, ng_step_fn *step, void *user);

    /* Searches the resources of all plugins that the caller may use, kind by kind in a stable
     * order, in the space that it names, else in the default space of each plugin. `find` is in
     * call memory. Returns NG_PENDING; return it. Then step(call, find->user) runs on a worker
     * and returns the result of the call. A kind that fails is left out (`incomplete`). */
    int (*find)(struct ng_call *call, struct ng_find *find, ng_step_fn *step);
    /* Bytes that the answer's text may have (tools.max_answer), less those in reply_json(). */
    size_t (*answer_room)(struct ng_call *call);
    /* Sets a member of `_meta` of the answer, also of a failure. Copies. */
    int (*reply_meta)(struct ng_call *call, const char *name, struct ng_str text);
    /* See struct ng_undo. Blocks. */
    int (*undo)(struct ng_call *call, const struct ng_undo *undo);
    /* Deletes a document with the action NG_ACTION_PURGED, then removes its earlier revisions
     * for good: from the history, the journal, the index and the files of the store. change->fn
     * deletes it, or changes nothing if it is purged already. *ret_pending: the deletion is
     * durable, but not all of the rest is done; upkeep repeats it. Blocks. NG_EUNAVAILABLE:
     * the backend cannot purge, nothing is changed. */
    int (*purge)(struct ng_call *call, const struct ng_change *change, bool *ret_pending);
    /* For plugins that use SQLite, whose own count of memory the gateway turns off: bytes that
     * the present thread has taken from SQLite less those that it gave back. Differences tell
     * what a statement takes. */
    int64_t (*sqlite_bytes)(void);

    /* The history of all documents. Points are texts, as callers write them: "#1234" (just
     * after that change), a time of RFC 3339, a day (its beginning in the zone of the gateway),
     * "30m", "2h" or "7d" ago, "now", and where a document is meant one of its revisions, "7".
     * Errors name `name`, the argument that the point comes from. All block. */

    /* The declaration of a collection; NULL: none that the caller may see. Does not block. */
    const struct ng_collection *(*collection)(struct ng_call *call, struct ng_str name);
    /* The call is about documents of this collection: if it names no space, caller->space
     * becomes that which the tools of the collection's plugin would take. NG_EFORBIDDEN: the
     * caller may not use it. Does not block. */
    int (*use_collection)(struct ng_call *call, struct ng_str collection);
    /* The number of the last change up to the point; 0: none. NG_EINVAL: it is no point. */
    int (*point_seq)(struct ng_call *call, const char *name, struct ng_str point,
                     uint64_t *ret_seq);
    /* The revision of a document at a point. NG_EINVAL: it is no point. NG_ENOTFOUND: there is
     * no such document, or no such revision. */
    int (*revision_at)(struct ng_call *call, const struct ng_key *key, const char *name,
                       struct ng_str point, struct ng_as_of *ret);
    /* The changes that the caller may see, newest first. `event` may not keep them.
     * NG_EFORBIDDEN: it may not use one of trail->spaces. *ret_next:
     * where to go on (`until`); 0: these were all. Ends early after so many changes, wanted or
     * not, as one call should look at. */
    int (*trail)(struct ng_call *call, const struct ng_trail *trail, ng_event_fn *event,
                 void *user, uint64_t *ret_next);
    /* The runs with changes that the caller may see and `trail` selects by since, until, runs,
     * agents, spaces and collections; several rows for one run, in no order. Changes of such a
     * run before `since` and after `until` do not count. */
    int (*runs)(struct ng_call *call, const struct ng_trail *trail, ng_run_fn *run, void *user);
    /* The members that people write (members of ng_collection) of the JSON of a document, as
     * one object by their last names, in the order of the declaration. body NULL: none. Call
     * memory; NULL: out of memory, or no such collection. */
    const struct ng_value *(*members)(struct ng_call *call, struct ng_str collection,
                                      const struct ng_value *body);
    /* See struct ng_restore. NG_PENDING: queued; return it. */
    int (*restore)(struct ng_call *call, const struct ng_restore *restore);
    /* See struct ng_undo_work. Blocks. */
    int (*undo_changes)(struct ng_call *call, const struct ng_undo_work *work,
                        struct ng_undo_done *ret);
    /* The undos that were cut off, which the caller may continue, oldest first. Blocks. */
    int (*unfinished)(struct ng_call *call, ng_unfinished_fn *undo, void *user);
    /* The call is about the file at this path, absolute or relative to the first root; also in
     * the folders of other plugins. caller->space becomes that of its root. *ret_key: the
     * document of its versions (see NG_FILE_VERSIONS), in call memory; *ret_collection: that of
     * its newest change. NG_ENOTFOUND: it has no version that the caller may see. NULL: it need
     * have none, only the path is resolved. Blocks. */
    int (*use_file)(struct ng_call *call, struct ng_str path, struct ng_key *ret_key,
                    struct ng_str *ret_collection);
    /* Passes the content of the file at `path` as it is compared to `text`, once: by the view
     * of its kind (see struct ng_content_kind), else `content` itself. `path` counts by its
     * ending only. NG_ETOOLARGE: it is not compared. Blocks. */
    int (*file_view)(struct ng_call *call, struct ng_str path, struct ng_str content,
                     ng_chunk_fn *text, void *user);
};

/* ---- declarations of a plugin ---- */

enum ng_threads {
    NG_THREADS_SERIAL = 0,  /* one call at a time: the core takes the lock */
    NG_THREADS_PARALLEL = 1 /* calls run concurrently */
};

/* The effect of a call on data; decides which callers may use it. The default is safe. */
enum ng_effect {
    NG_EFFECT_WRITES = 0,
    NG_EFFECT_READS = 1,
    NG_EFFECT_ADMIN = 2, /* only role admin */
    /* Runs code of the caller: requires the rights of WRITES and the right to run code
     * (`notegate key add --run`); NG_ERUN without it. */
    NG_EFFECT_RUNS = 3
};

enum ng_tool_flags {
    /* Answers from memory: runs on an event loop first, with arguments up to 64 KiB. Functions
     * that might block return NG_EWOULDBLOCK there, and the tool runs again on a worker. */
    NG_TOOL_MEMORY = 1,
    NG_TOOL_DESTRUCTIVE = 2,   /* may overwrite or remove (MCP destructiveHint) */
    NG_TOOL_IDEMPOTENT = 4,    /* a repetition has no further effect */
    NG_TOOL_OPEN_WORLD = 8,    /* has effects outside the gateway */
    NG_TOOL_OWN_TIMEOUT = 16,  /* has its own time limit instead of limits.call_timeout */
    NG_TOOL_TASK_ALLOWED = 32, /* may run as an MCP task */
    NG_TOOL_TASK_REQUIRED = 64,
    NG_TOOL_AGENT_MODE = 128, /* only in mode agent; the default for writes is edit or agent */
    /* With one of the two TASK flags: the tool sends its client requests first, and quickly.
     * Its first run is no task; the task begins with the answers. */
    NG_TOOL_TASK_AFTER_ASKING = 256,
    /* Continues when its HTTP client disconnects. Cancellation (MCP) and shutdown end it. */
    NG_TOOL_STAYS = 512,
    NG_TOOL_RESTORES = 1024, /* needs NG_RIGHT_RESTORE: else not listed, NG_EFORBIDDEN */
    /* Keeps data by space: the gateway adds the member `space` to the properties of `params`
     * and `result`, takes it from the arguments (ng_caller.space) and adds it to the answer. */
    NG_TOOL_BY_SPACE = 2048
};

/* A tool. Read by its size, which is in the module record. */
struct ng_tool {
    const char *name;    /* ^[a-zA-Z][a-zA-Z0-9_]{0,62}$, unique in the gateway */
    const char *title;   /* for people; NULL: the name */
    const char *summary; /* description for the model. Required */
    const char *params;  /* JSON Schema 2020-12 of the arguments, type object. Required */
    const char *result;  /* JSON Schema of an answer that is an object; NULL: a text */
    /* Required. NG_OK after a reply, NG_PENDING, or what ng_fail() gave. args: call->args. */
    int (*run)(void *self, struct ng_call *call, struct ng_str args);
    enum ng_effect effect;
    enum ng_tool_space space;
    uint32_t flags; /* enum ng_tool_flags */
    /* For a tool that reads and writes: calls with one of these values in this argument are
     * reads. */
    const char *read_argument; /* "mode" */
    const char *read_values;   /* "read list", words separated by spaces */
    const char *aliases;       /* further names for calls, separated by spaces; not listed */
    /* Is it listed for this caller? NULL: always. Runs on any thread, must not block. */
    bool (*listed)(void *self, struct ng_call *call);
};

enum ng_option_type {
    NG_OPTION_TEXT = 0,
    NG_OPTION_INT = 1,
    NG_OPTION_SIZE = 2,     /* bytes: 4MiB, 4MB, 4096 */
    NG_OPTION_DURATION = 3, /* milliseconds: 30s, 5min, 1h, 30d */
    NG_OPTION_BOOL = 4,
    NG_OPTION_LIST = 5, /* of texts */
    NG_OPTION_NUMBER = 6
};

/* Configuration key "<module name>.<name>". Read by its size, which is in the module record. */
struct ng_option {
    const char *name; /* [a-z0-9_.]+ without the prefix */
    enum ng_option_type type;
    const char *fallback; /* the default, as in a configuration file; NULL: none */
    int64_t min, max;     /* INT, SIZE, DURATION: the range; both 0: any non-negative value */
    bool secret;          /* never printed */
    const char *env;      /* an additional environment variable, e.g. "REDIS_URL", or NULL */
    const char *choices;  /* TEXT: allowed words separated by spaces, or NULL */
    const char *help;
};

/* An error code of the plugin: number i has the value NG_EPLUGIN - i. Read by its size, which
 * is in the module record. */
struct ng_code {
    const char *name; /* "FILE_EXISTS" */
    int status;       /* HTTP, 400-599 */
    const char *summary;
};

/* The descriptor of a plugin. Read by its size, which is in the module record. */
struct ng_plugin {
    const char *name;    /* [a-z][a-z0-9_]{0,31}. Required */
    const char *version; /* of the plugin. Required */
    enum ng_threads threads;
    const struct ng_tool *tools;
    size_t tool_count;
    /* All optional from here. start runs once, before the first call; its call may block. conf
     * lives until stop(). */
    int (*start)(struct ng_call *call, const struct ng_conf *conf, void **ret_self);
    void (*stop)(void *self);
    const struct ng_option *options;
    size_t option_count;
    const struct ng_code *codes;
    size_t code_count;
    const struct ng_collection *collections;
    size_t collection_count;
    const struct ng_resources *resources;
    size_t resource_count;
    const struct ng_prompt *prompts;
    size_t prompt_count;
    int (*health)(void *self, struct ng_call *call);
    /* Prefix of the names of its tools that the setting "prefix" of the plugin (declare it as a
     * TEXT) replaces. NULL: names are fixed. */
    const char *name_prefix;
    /* Name of INVALID_INPUT (400) for failures of its tools; NULL: the same. */
    const char *invalid_input;
    /* Collections of other plugins, or "files", that it changes, too: words; NULL: none. */
    const char *uses;
    /* One sentence for /readyz about background work in progress, in call memory. {NULL, 0}:
     * none. */
    struct ng_str (*working)(void *self, struct ng_call *call);
    /* False if its tools have nothing to work on for this caller; NULL: always true. Then its
     * tools, prompts and resources are not listed, and calls of its tools fail with
     * NG_ENOTCONFIGURED. In a call (call->tool is not empty) it may block if may_block() is
     * true, and it explains with ng_fail(), and names the missing setting with host->hint().
     * For a list it runs on any thread and must not block; it can check in host->background()
     * and call lists_changed(). */
    bool (*configured)(void *self, struct ng_call *call);
    /* Passes its folders of notes to list_add(), for GET /v1/me: id is the path, name the name
     * for its tools, description the space. NULL: none. The gateway leaves out those of spaces
     * that the caller may not use. Runs on any thread, must not block. */
    int (*notes)(void *self, struct ng_call *call, struct ng_listing *listing);
    const struct ng_content_kind *contents; /* of files, see files.h */
    size_t content_count;
};

#define NG_EXPORT_PLUGIN(plugin)                                                               \
    NG_EXPORT_NOTE(NG_KIND_PLUGIN);                                                            \
    NG_EXTERN __attribute__((visibility("default"))) const struct ng_module ng_module;         \
    const struct ng_module ng_module = {                                                       \
        NG_ABI,                                                                                \
        NG_KIND_PLUGIN,                                                                        \
        sizeof(plugin),                                                                        \
        NG_NEEDS_HOST,                                                                         \
        {sizeof(struct ng_tool), sizeof(struct ng_option), sizeof(struct ng_code),             \
         sizeof(struct ng_collection), sizeof(struct ng_resources), sizeof(struct ng_prompt),  \
         sizeof(struct ng_content_kind)},                                                      \
        &(plugin),                                                                             \
    }

/* ---- shorter forms ---- */

/* return ng_fail(call, NG_EINVAL, "`limit` is %d, it must be at least 1", limit); */
#define ng_fail(call, code, ...) ((call)->host->fail((call), (code), __VA_ARGS__))

static inline void *ng_alloc(struct ng_call *call, size_t bytes)
{
    return call->host->alloc(call, bytes);
}

static inline int ng_reply(struct ng_call *call, struct ng_str text)
{
    return call->host->reply(call, text);
}

/* An argument of the call; NULL if absent. */
static inline const struct ng_value *ng_arg(struct ng_call *call, const char *name)
{
    return call->host->json_get(call->args, name);
}

/* A string argument; {NULL, 0} if absent. */
static inline struct ng_str ng_arg_text(struct ng_call *call, const char *name)
{
    return call->host->json_text(call->host->json_get(call->args, name));
}

static inline bool ng_has_arg(struct ng_call *call, const char *name)
{
    return call->host->json_get(call->args, name) != NULL;
}

/* An integer argument, `fallback` if absent. The schema has checked type and range. */
static inline int64_t ng_arg_int(struct ng_call *call, const char *name, int64_t fallback)
{
    int64_t number = fallback;
    (void)call->host->json_integer(call->host->json_get(call->args, name), &number);
    return number;
}

static inline int ng_change_one(struct ng_call *call, const struct ng_change *change)
{
    return call->host->change(call, change, 1);
}

#ifdef __cplusplus
}
#endif

#endif
