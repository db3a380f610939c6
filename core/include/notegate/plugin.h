/* SPDX-License-Identifier: MIT */
/*
 * plugin.h - what a tool plugin includes: its descriptor, the call, and the services of the
 * gateway.
 *
 * plugins/README.md begins with a plugin that runs. Lifetimes, in one place:
 *  1. The descriptor and the host table outlive the module's last call.
 *  2. If start() succeeded, stop() runs exactly once.
 *  3. Inputs (ng_str, values, documents, files) are lent for the call.
 *  4. Outputs go into the host (ng_reply and the like), never as malloc'd memory across the
 * border.
 *  5. A call ends when run() returns, or, where it returned NG_PENDING, when its last commit or
 * deferral is done.
 *  6. No module is unloaded before shutdown; stop() joins its own threads.
 */
#ifndef NOTEGATE_PLUGIN_H
#define NOTEGATE_PLUGIN_H

#include "abi.h"
#include "documents.h"
#include "files.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ng_host;
struct ng_call;
struct ng_conf;
struct ng_value;
struct ng_writer;
struct ng_draft;
struct ng_deferred;
struct ng_listing;
struct ng_entry;
struct ng_recall;
struct ng_timeline;
struct ng_journal;

/* ---- who is calling ---- */

enum ng_role { NG_ROLE_READER = 1, NG_ROLE_WRITER = 2, NG_ROLE_ADMIN = 3 };

/* What the caller's client lets its model do, from least to most. */
enum ng_mode { NG_MODE_ASK = 1, NG_MODE_EDIT = 2, NG_MODE_AGENT = 3 };

/* Set by the server only, never from arguments. Lent for the call. Read by its size. */
struct ng_caller {
    size_t size;
    struct ng_str agent; /* [A-Za-z0-9._@-]{1,64} */
    struct ng_str space; /* the space of this call: the one named, else the tool's default
                            (ng_tool.space) */
    bool space_named;    /* the caller named it */
    enum ng_role role;
    enum ng_mode mode;
    /* Every space the caller may see: its own (~agent), shared, the named one; with keys the
     * key's. */
    const struct ng_str *spaces;
    size_t space_count;
    bool all_spaces; /* admin */
    struct ng_str request_id;
    struct ng_str traceparent; /* W3C trace context, or {NULL, 0} */
    bool run; /* may run code (NG_EFFECT_RUNS). A tool that runs code only for some arguments
                 fails those calls with NG_ERUN where this is false */
};

/* ---- a call ---- */

/* Never grows; everything else about a call is asked of the host. */
struct ng_call {
    const struct ng_host *host;
    const struct ng_caller *caller;
    const struct ng_value
        *args;          /* the arguments, parsed and valid by the tool's schema; an object */
    struct ng_str tool; /* name of the tool; "" in start(), open() and background work */
};

/* ---- asking, running, listing ---- */

enum ng_ask_kind {
    NG_ASK_FORM = 1,  /* elicitation: request = JSON of elicitation/create params */
    NG_ASK_MODEL = 2, /* sampling: JSON of sampling/createMessage params */
    NG_ASK_ROOTS = 3, /* roots/list */
    NG_ASK_URL = 4
};

enum ng_lists { NG_LIST_TOOLS = 1, NG_LIST_RESOURCES = 2, NG_LIST_PROMPTS = 4 };

enum ng_level { NG_LOG_ERROR = 1, NG_LOG_WARNING = 2, NG_LOG_INFO = 3, NG_LOG_DEBUG = 4 };

typedef int ng_step_fn(struct ng_call *call, void *user);

/* How a change ended that no call waits for. */
typedef void ng_changed_fn(void *user, int rc);

/* How a call ended; the sentence is lent. */
typedef void ng_complete_fn(void *user, int rc, struct ng_str message);

/* ---- the services of the gateway ---- */

/*
 * Read by its size, which is how much of it this gateway has (see NG_NEEDS_HOST). Unless a line
 * says otherwise a function may be called from any thread for as long as the call lives, and
 * one call is used by one thread at a time. Authors use the inline functions below, which read
 * better.
 */
struct ng_host {
    size_t size;
    const char *version; /* of the gateway */

    /* Memory of the call: freed with it. NULL: out of memory or over the call's limit. */
    void *(*alloc)(struct ng_call *call, size_t bytes);
    struct ng_str (*format)(struct ng_call *call, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

    /* The answer. One of text, json; parts are added to either. Not NG_OK: out of memory or
     * over limits.result (NG_ETOOLARGE); return it. */
    int (*reply)(struct ng_call *call, struct ng_str text); /* copies */
    int (*reply_parts)(struct ng_call *call, const struct ng_str *pieces,
                       size_t count);                      /* one text of pieces */
    struct ng_writer *(*reply_json)(struct ng_call *call); /* write one object into it */
    int (*reply_media)(struct ng_call *call, const char *kind, const char *mime_type,
                       struct ng_str bytes); /* kind "image" or "audio" */
    int (*reply_resource)(struct ng_call *call, struct ng_str uri, const char *mime_type,
                          struct ng_str content, bool is_text); /* embedded */
    int (*reply_link)(struct ng_call *call, struct ng_str uri, struct ng_str name,
                      const char *mime_type);
    /* What was read or written is at this revision now. A change sets it by itself (of its
     * first document). */
    int (*revision_number)(struct ng_call *call, uint64_t revision);
    int (*revision_text)(struct ng_call *call, struct ng_str revision);

    /* Failing: the sentence a person reads. Returns `code`. */
    int (*fail)(struct ng_call *call, int code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void (*hint)(struct ng_call *call, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    struct ng_writer *(*details)(struct ng_call *call); /* write one object into it */

    /* Progress (total 0: unknown), cancellation (the client left, or its time is up), time
     * left. */
    void (*progress)(struct ng_call *call, double done, double total, struct ng_str message);
    bool (*cancelled)(struct ng_call *call);
    int64_t (*remaining_ms)(struct ng_call *call);
    bool (*may_block)(struct ng_call *call); /* false: on an event loop */
    int64_t (*now_ms)(void);                 /* Unix time */
    void (*log)(struct ng_call *call, enum ng_level level, const char *format, ...)
        __attribute__((format(printf, 3, 4))); /* into the gateway's log */
    void (*notify_log)(struct ng_call *call, enum ng_level level, const char *logger,
                       struct ng_str json); /* to the client */

    /* Asks the user or the client's model. The answer to `key`, an object, or NULL: then return
     * NG_EINPUT, and the tool runs again from its beginning with the answer. *ret_state: what
     * ask_state kept, or absent. */
    const struct ng_value *(*ask)(struct ng_call *call, const char *key, enum ng_ask_kind kind,
                                  struct ng_str request);
    void (*ask_state)(struct ng_call *call, struct ng_str state);
    struct ng_str (*asked_state)(struct ng_call *call);
    bool (*client_can)(struct ng_call *call, enum ng_ask_kind kind);

    /* Finishing later: run() returns NG_PENDING, and finish() is called exactly once, from any
     * thread, with what run() would have returned. */
    struct ng_deferred *(*defer)(struct ng_call *call);
    void (*finish)(struct ng_deferred *deferred, int rc);
    /* Goes on with this call on a worker: run() returns NG_PENDING, `step` returns what run()
     * would have. */
    int (*continue_on_worker)(struct ng_call *call, ng_step_fn *step, void *user);
    /* Runs `step` on a worker in a call of its own with the same caller, which outlives this
     * one. `user` is the plugin's. */
    int (*background)(struct ng_call *call, ng_step_fn *step, void *user);
    void (*lists_changed)(const struct ng_host *host, unsigned lists); /* enum ng_lists */

    /* JSON values. NULL is a value of type NG_TYPE_ABSENT; accessors of another type give 0,
     * false, {NULL, 0}. */
    int (*json_parse)(struct ng_call *call, struct ng_str text,
                      const struct ng_value **ret_value);
    enum ng_type (*json_type)(const struct ng_value *value);
    size_t (*json_count)(const struct ng_value *value); /* elements or members */
    const struct ng_value *(*json_get)(const struct ng_value *object, const char *name);
    const struct ng_value *(*json_first)(const struct ng_value *container);
    const struct ng_value *(*json_next)(
        const struct ng_value *element); /* in the order as written */
    struct ng_str (*json_key)(const struct ng_value *member);
    struct ng_str (*json_text)(
        const struct ng_value *string_or_number); /* a number: its digits as written */
    int (*json_integer)(const struct ng_value *number,
                        int64_t *ret_integer); /* NG_EINVAL: none, or over 64 bits */
    double (*json_double)(const struct ng_value *number);

    /* JSON out. Commas, escapes and UTF-8 are the writer's; an error sticks and comes out of
     * json_end. */
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

    /* Configuration, of the plugin's own keys (without its prefix) and the gateway's:
     * "data_dir", "timezone". */
    struct ng_str (*conf_text)(const struct ng_conf *conf, const char *key);
    int64_t (*conf_int)(const struct ng_conf *conf,
                        const char *key); /* sizes in bytes, durations in ms */
    double (*conf_number)(const struct ng_conf *conf, const char *key);
    bool (*conf_bool)(const struct ng_conf *conf, const char *key);
    size_t (*conf_list)(const struct ng_conf *conf, const char *key,
                        const struct ng_str **ret_items);

    /* Documents. Reading sees committed states. get: *ret_doc is lent for the call; no
     * document or a tombstone: NG_OK with revision 0 or deleted (revision given and not kept:
     * NG_ENOTFOUND). */
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
    /* Changes documents as one step. NG_PENDING: queued; return it: the reply leaves when the
     * commit is on disk. */
    int (*change)(struct ng_call *call, const struct ng_change *changes, size_t count);

    /* Inside a change: the next state. Copies. */
    int (*draft_json)(struct ng_draft *next, struct ng_str object);
    int (*draft_text)(struct ng_draft *next, const struct ng_str *pieces, size_t count);
    int (*draft_splice)(struct ng_draft *next, uint64_t at, uint64_t removed,
                        struct ng_str inserted);
    void (*draft_delete)(struct ng_draft *next);
    void (*draft_event)(struct ng_draft *next,
                        struct ng_str json); /* further members of the event */

    /* Files, see files.h. Changes return NG_PENDING as `change` does. */
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
    /* The roots the caller may use, in the order of the configuration. Lent for the call. */
    size_t (*file_roots)(struct ng_call *call, const struct ng_str **ret_roots);

    /* The journal: the functions of the one in use (see journal.h) and its handle. */
    const struct ng_journal *(*journal)(struct ng_call *call, void **ret_journal);

    /* Entries of a resource or prompt listing and of a completion (see struct ng_resources).
     * bytes UINT64_MAX: not known. */
    int (*list_add)(struct ng_listing *listing, struct ng_str id, struct ng_str name,
                    struct ng_str description, const char *mime_type, uint64_t bytes,
                    int64_t modified_ms);

    /* As `fail`, with a sentence that is not formatted: names and texts in it may hold NUL.
     * Copies. */
    int (*fail_text)(struct ng_call *call, int code, struct ng_str message);

    /* What is left takes long: the client's connection may go, and the client comes back for
     * the answer after about retry_ms. Nothing happens where a transport cannot resume (MCP
     * sessions over HTTP can). */
    void (*detach_client)(struct ng_call *call, int64_t retry_ms);

    /* Where the page that is wanted begins: behind the entry with this id; absent: at the
     * start. A listing that asks must begin there (also where that entry is gone); one that
     * does not is read from its start for every page. */
    struct ng_str (*list_after)(struct ng_listing *listing);

    /* Only in start(): a folder beyond the roots that the plugin's own file calls may use as
     * one, as "PATH" or "SPACE:/PATH" (default space: shared). It must be there: NG_ENOTFOUND,
     * and nothing is made. Other plugins reach its files only where a root holds them too; a
     * caller who may not see its space reaches them nowhere. */
    int (*file_folder)(struct ng_call *call, struct ng_str folder);

    /* The day, YYYY-MM-DD, at a Unix time in the zone that `timezone` names. Call memory;
     * {NULL, 0}: out of memory. Not in open() and start(), which come before the zone. */
    struct ng_str (*day)(struct ng_call *call, int64_t time_ms);

    /* As `change`, but a step inside longer work: returns when the commit is on disk (NG_OK) or
     * has failed. The answer does not wait for it, and functions must not reply. Only where the
     * call may block, else NG_EWOULDBLOCK. */
    int (*change_wait)(struct ng_call *call, const struct ng_change *changes, size_t count);

    /* Changes documents outside of any call, in the name of `agent`: what a plugin writes on
     * its own account, from a thread of its own for instance. NG_OK: queued, and done(user, rc)
     * comes once, from any thread, when it is on disk or has failed; it must be quick. Else it
     * does not come. The changes and what they point to live until then. May block. */
    int (*change_as)(const struct ng_host *host, struct ng_str agent,
                     const struct ng_change *changes, size_t count, ng_changed_fn *done,
                     void *user);

    /* The call fails with this once all that it has begun is done, and what it changes stays
     * changed: of work that failed and left something to keep. The last one counts; NG_OK takes
     * it back. Copies; out of memory: NG_EINTERNAL. */
    int (*fail_on_completion)(struct ng_call *call, int code, struct ng_str message);

    /* ended(user, rc, message) comes once, when the call is over and all that it changed is on
     * disk or has failed; rc and the sentence of a failure are what the caller is told. From
     * any thread; must be quick, and of the call only what the plugin took of its memory is
     * still there. Not NG_OK: out of memory, and it does not come. Only in the run of a tool,
     * of a listing or reading of resources, and in background work. */
    int (*on_complete)(struct ng_call *call, ng_complete_fn *ended, void *user);

    /* From here on a cancellation comes too late: cancelled() is false, and changes are made.
     * Of work that was stopped and is to keep what it has; only what is quick comes after. */
    void (*mask_cancel)(struct ng_call *call);

    /* 64 hexadecimal digits, the same at each try of one call that came with an idempotency
     * key; {NULL, 0}: it came without. For what cannot be committed together with the answer:
     * made under a name of this text, it is found again by the next try. Call memory. */
    struct ng_str (*idempotency_token)(struct ng_call *call);

    /* How many revisions history() would give for this range without its limit. */
    int (*history_count)(struct ng_call *call, const struct ng_key *key,
                         const struct ng_range *range, uint64_t *ret_count);

    /* As `hint` and `log`, with a text that is not formatted: for languages that cannot call
     * functions with "...". The twin of `fail` is fail_text; `format` needs none, as texts of
     * one's own are copied wherever they are given. */
    void (*hint_text)(struct ng_call *call, struct ng_str text);
    void (*log_text)(struct ng_call *call, enum ng_level level, struct ng_str text);
};

/* ---- what a plugin declares ---- */

enum ng_threads {
    NG_THREADS_SERIAL = 0,  /* one call at a time: the core takes the lock */
    NG_THREADS_PARALLEL = 1 /* anything goes */
};

/* What a call of the tool does to data; decides who may call it. The safe answer is the
 * default. */
enum ng_effect {
    NG_EFFECT_WRITES = 0,
    NG_EFFECT_READS = 1,
    NG_EFFECT_ADMIN = 2, /* only role admin */
    /* Runs code that the caller chose: needs what WRITES needs, and the right to run code
     * (`notegate key add --run`); NG_ERUN without it. */
    NG_EFFECT_RUNS = 3
};

enum ng_tool_flags {
    /* Answers from memory: may be tried on an event loop first, with arguments up to 64 KiB.
     * What might block returns NG_EWOULDBLOCK there, and the tool runs again on a worker. */
    NG_TOOL_MEMORY = 1,
    NG_TOOL_DESTRUCTIVE = 2,   /* may overwrite or remove (MCP destructiveHint) */
    NG_TOOL_IDEMPOTENT = 4,    /* repeating it changes nothing more */
    NG_TOOL_OPEN_WORLD = 8,    /* reaches beyond the gateway */
    NG_TOOL_OWN_TIMEOUT = 16,  /* keeps its own time limit; limits.call_timeout does not hold */
    NG_TOOL_TASK_ALLOWED = 32, /* may run as an MCP task */
    NG_TOOL_TASK_REQUIRED = 64,
    NG_TOOL_AGENT_MODE =
        128, /* only in mode agent (the default for what writes is edit or agent) */
    /* With one of the two TASK flags: the tool asks first and is quick until then. Its first
     * run is a plain one, and the task begins with the answers. */
    NG_TOOL_TASK_AFTER_ASKING = 256,
    /* Goes on to its end when the client of an HTTP request leaves: what it does is kept. A
     * cancellation (MCP), and the end of the gateway, still reach it. */
    NG_TOOL_STAYS = 512
};

enum ng_tool_space {
    NG_SPACE_OWN = 0,   /* where the caller names no space: the agent's own */
    NG_SPACE_SHARED = 1 /* ... the space "shared" */
};

/* A tool. Read by its size, which is in the module record. */
struct ng_tool {
    const char *name;    /* ^[a-zA-Z][a-zA-Z0-9_]{0,62}$, unique in the gateway */
    const char *title;   /* for people; NULL: the name */
    const char *summary; /* what it does, for the model. Required */
    const char *params;  /* JSON Schema 2020-12 of the arguments, type object. Required */
    const char *result;  /* JSON Schema of the answer where it is an object; NULL: it is text */
    /* Required. NG_OK with a reply made, NG_PENDING, or a failure from ng_fail(). args: the
     * text of call->args. */
    int (*run)(void *self, struct ng_call *call, struct ng_str args);
    enum ng_effect effect;
    enum ng_tool_space space;
    uint32_t flags; /* enum ng_tool_flags */
    /* Of a tool that does both: calls with this argument equal to one of these words only read.
     */
    const char *read_argument; /* "mode" */
    const char *read_values;   /* "read list", words separated by spaces */
    const char *aliases; /* further names a call may use, separated by spaces; never listed */
    /* Is it listed for this caller now? NULL: yes. Runs on any thread, must not block. */
    bool (*listed)(void *self, struct ng_call *call);
};

/* A configuration key of a plugin or backend: "<module name>.<name>". */
enum ng_option_type {
    NG_OPTION_TEXT = 0,
    NG_OPTION_INT = 1,
    NG_OPTION_SIZE = 2,     /* bytes: 4MiB, 4MB, 4096 */
    NG_OPTION_DURATION = 3, /* milliseconds: 30s, 5min, 1h, 30d */
    NG_OPTION_BOOL = 4,
    NG_OPTION_LIST = 5, /* of texts */
    NG_OPTION_NUMBER = 6
};

/* A configuration key. Read by its size, which is in the module record. */
struct ng_option {
    const char *name; /* [a-z0-9_.]+ without the prefix */
    enum ng_option_type type;
    const char *fallback; /* the default, as it would be written; NULL: none */
    int64_t min, max;     /* INT, SIZE, DURATION: the range; both 0: any that is not negative */
    bool secret;          /* never printed */
    const char *env;      /* a further environment name, e.g. "REDIS_URL", or NULL */
    const char *choices;  /* TEXT: allowed words separated by spaces, or NULL */
    const char *help;
};

/* An error code of the plugin's own: its number i is the value NG_EPLUGIN - i. Read by its
 * size, which is in the module record. */
struct ng_code {
    const char *name; /* "FILE_EXISTS" */
    int status;       /* HTTP, 400-599 */
    const char *summary;
};

/*
 * A kind of resource. With `kind` set its URIs are notegate://SPACE/KIND/ID (percent-encoded),
 * ids are the plugin's; with `uri_template` the plugin names whole URIs (RFC 6570 level 1), and
 * id is the whole URI. Read by its size, which is in the module record.
 */
struct ng_resources {
    const char *kind; /* "notebook", or NULL */
    const char *uri_template;
    const char *title;
    const char *summary;
    const char *mime_type;
    const char
        *collection; /* its events are changes of these resources: id = the document's id */
    /* Gives entries to list_add() until that does not return NG_OK (the page is full), then
     * returns NG_OK. Always in the same order; new entries may come anywhere. list and complete
     * may return NG_PENDING: when the deferral ends with NG_OK they are asked again, and what
     * they gave before does not count. */
    int (*list)(void *self, struct ng_call *call, struct ng_str space,
                struct ng_listing *listing);
    /* Replies with ng_reply() or host->reply_resource. revision 0: the newest. */
    int (*read)(void *self, struct ng_call *call, struct ng_str space, struct ng_str id,
                uint64_t revision);
    /* Values of `variable` that begin with `prefix`. NULL: from list. */
    int (*complete)(void *self, struct ng_call *call, struct ng_str space, const char *variable,
                    struct ng_str prefix, struct ng_listing *listing);
};

/* A prompt. Read by its size, which is in the module record. */
struct ng_prompt {
    const char *name;
    const char *title;
    const char *summary;
    const char *params; /* JSON Schema of the arguments: an object of strings; NULL: none */
    /* Replies with one JSON object {"messages": [...]} as MCP has it, or with one text (a user
     * message). */
    int (*get)(void *self, struct ng_call *call, struct ng_str args);
    int (*complete)(void *self, struct ng_call *call, const char *argument,
                    struct ng_str prefix, struct ng_listing *listing);
    /* The modes it is listed in, as bits NG_IN_MODE(NG_MODE_ASK); 0: all. It can be got in any:
     * get() may fail with NG_EMODE. */
    uint32_t modes;
    enum ng_tool_space space; /* as of a tool */
};

#define NG_IN_MODE(mode) (1u << (mode))

/* The descriptor of a plugin. Read by its size, which is in the module record. */
struct ng_plugin {
    const char *name;    /* [a-z][a-z0-9_]{0,31}. Required */
    const char *version; /* of the plugin. Required */
    enum ng_threads threads;
    const struct ng_tool *tools;
    size_t tool_count;
    /* All optional. start: once, before the first call; its call may block. conf lives until
     * stop(). */
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
    /* What the names of its tools begin with in the table: where the plugin's key "prefix"
     * (declare it as a TEXT) is set, its value stands in the place of that. NULL: names are
     * fixed. */
    const char *name_prefix;
    /* What failures of its tools are called that are INVALID_INPUT (400) elsewhere; NULL: that.
     */
    const char *invalid_input;
    /* Names of collections of other plugins, separated by spaces, whose documents it changes as
     * well; NULL: it changes documents of its own collections only. */
    const char *uses;
    /* What it is making in the background, in one sentence in the call's memory, while it
     * serves: /readyz shows it. {NULL, 0}: nothing. */
    struct ng_str (*working)(void *self, struct ng_call *call);
    /* Is there anything for its tools to work on, for this caller? NULL: yes. False: its tools,
     * prompts and resources are in no list, and a call of one of its tools fails with
     * NG_ENOTCONFIGURED. In a call (call->tool is not empty) it may block where may_block()
     * says so, and says what is missing with ng_fail() and the key to set with host->hint().
     * For a list it runs on any thread and must not block; host->background() can look, and
     * tells lists_changed(). */
    bool (*configured)(void *self, struct ng_call *call);
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
         sizeof(struct ng_collection), sizeof(struct ng_resources), sizeof(struct ng_prompt)}, \
        &(plugin),                                                                             \
    }

/* ---- the same, pleasant to read ---- */

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

/* An argument of the call; NULL where the caller did not give it. */
static inline const struct ng_value *ng_arg(struct ng_call *call, const char *name)
{
    return call->host->json_get(call->args, name);
}

/* A string argument; {NULL, 0} where absent. */
static inline struct ng_str ng_arg_text(struct ng_call *call, const char *name)
{
    return call->host->json_text(call->host->json_get(call->args, name));
}

static inline bool ng_has_arg(struct ng_call *call, const char *name)
{
    return call->host->json_get(call->args, name) != NULL;
}

/* An integer argument, `fallback` where absent. The schema has checked the type and range. */
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
