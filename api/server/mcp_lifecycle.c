/* SPDX-License-Identifier: MIT */
/* mcp_lifecycle.c - how a client gets to know the gateway: initialize, server/discover, ping
 * and the log level. */
#include <stdio.h>

#include "api/auth/whoami.h"
#include "api/session/mcp_session_store.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/dispatch/audit.h"
#include "mcp_client_request.h"
#include "mcp_resources.h"

/* Capabilities of all versions; extensions, where there are some, are further members. */
#define MCP_CAPABILITIES                                                                       \
    "\"tools\":{\"listChanged\":true},\"resources\":{\"subscribe\":true,\"listChanged\":"      \
    "true},\"prompts\":{\"listChanged\":true},\"completions\":{}"

static const char mcp_instructions[] =
    "notegate keeps notebooks and files that several agents share. A write that was answered "
    "is "
    "on disk. Tools that say they read change nothing; a failed call says what was wrong and "
    "what to do instead.\n\nWhich notebook for what:\n"
    "- `notebook`: named text notebooks, an agent's own or those of a space\n"
    "- `notebook_*`: entries of the agents' notebook (pages, code, research) that all agents "
    "find; `memory_*` and `checkpoint_*` are its memory\n"
    "- `opennotes_*`: Markdown notes, folders of .md files that people edit too (listed where "
    "there is such a folder)\n"
    "- `createNotebook`, `attachNotebook`, cell and kernel tools: Jupyter .ipynb files\n"
    "Other files: `fileEditor`. A text in any of them: `search`. Who changed "
    "what, and what it was: `history_*`.";

/* The member `instructions`: those for all callers, then the facts about this one. */
static void print_instructions(struct mcp_exchange *exchange, struct buf *out)
{
    struct buf text;
    buf_init(&text, sizeof(mcp_instructions) + WHOAMI_TEXT_MAX);
    buf_add_c(&text, mcp_instructions);
    int rc = whoami_print_text(exchange->call, &text);
    buf_add_c(out, "\"instructions\":");
    buf_add_json(out, buf_str(&text));
    if (rc != NG_OK) {
        out->rc = rc; /* answered as a failure */
    }
    buf_done(&text);
}

/* The name in the member `info` of an object, bounded; "" where it has none. */
static struct ng_str client_name(const struct ng_value *object, const char *info)
{
    return utf8_cut(json_get_text(json_get(object, info), "name"), AUDIT_CLIENT_MAX);
}

static void take_client(struct mcp_exchange *exchange)
{
    struct call *call = exchange->call;
    char kept[AUDIT_CLIENT_MAX + 1] = "";
    struct mcp_session *session = exchange->job->session;
    struct ng_str name = client_name(exchange->message.meta, MCP_META_CLIENT_INFO);
    if (name.len == 0 && session != NULL) {
        lock_take(&session->lock);
        memcpy(kept, session->client, sizeof(kept));
        lock_release(&session->lock);
        name = ng_str_of(kept);
    }
    if (call != NULL && name.len > 0) {
        call->caller.client = arena_copy(&call->arena, name);
    }
}

void mcp_take_asked(struct mcp_exchange *exchange)
{
    const struct mcp_message *message = &exchange->message;
    const struct ng_value *target = json_get(message->params, "uri");
    if (target == NULL && !str_is(message->method, "tools/call")) { /* which has its tool */
        target = json_get(message->params, "name");
    }
    exchange->call->method = message->method;
    if (json_is(target, NG_TYPE_STRING)) {
        exchange->call->target = target->text;
    }
    take_client(exchange);
}

void mcp_take_session(struct mcp_exchange *exchange)
{
    const struct mcp_session *session = exchange->job->session;
    struct call *call = exchange->call;
    if (session == NULL || mcp_is_stateless(exchange->terms.version)) {
        return;
    }
    struct ng_str name = ng_str_of(session->id);
    struct ng_str process = call->pub.host->gateway_name(call->pub.host);
    call->caller.session =
        name.len > 0 ? arena_copy(&call->arena, name)
                     : arena_printf(&call->arena, "stdio %.*s", (int)process.len, process.data);
}

/* ---- what the database has of a session ---- */

void mcp_answer_saved(struct mcp_exchange *exchange, const struct call *call)
{
    (void)call;
    (void)mcp_answer_done(exchange);
}

void mcp_answer_not_saved(struct mcp_exchange *exchange, const struct call *call)
{
    const struct mcp_session_edit *edit = call->step_user;
    struct mcp_session *session = exchange->job->session;
    if (session != NULL && atomic_load(&edit->moved)) {
        atomic_store(&session->moved, true);
    }
    mcp_answer_failed(exchange, call);
}

int mcp_session_save(struct mcp_exchange *exchange, const struct mcp_session_edit *edit,
                     const struct mcp_run *run)
{
    const struct mcp_session *session = exchange->job->session;
    struct call *call = exchange->call;
    struct arena *arena = &call->arena;
    if (session == NULL || !session->stored) {
        run->answer(exchange, call);
        return NG_OK;
    }
    struct mcp_session_edit *kept = arena_alloc(arena, sizeof(*kept));
    if (kept == NULL) {
        return mcp_refuse_oom(exchange);
    }
    *kept = *edit;
    kept->record.id = arena_copy(arena, ng_str_of(session->id));
    kept->record.owner = arena_copy(arena, ng_str_of(session->owner));
    kept->record.client = arena_copy(arena, edit->record.client);
    if (arena->oom) {
        return mcp_refuse_oom(exchange);
    }
    call->options |= CALL_NO_RATE;
    call->step_user = kept;
    return mcp_run(exchange, run);
}

/* ---- initialize ---- */

/* The kinds of requests that the client takes are valid for its session. */
static void remember_client(struct mcp_exchange *exchange)
{
    struct mcp_session *session = exchange->job->session;
    const struct ng_value *capabilities = json_get(exchange->message.params, "capabilities");
    const struct ng_value *roots = json_get(capabilities, "roots");
    const struct ng_value *changed = json_get(roots, "listChanged");
    if (session == NULL) {
        return;
    }
    struct ng_str name = client_name(exchange->message.params, "clientInfo");
    lock_take(&session->lock);
    (void)snprintf(session->client, sizeof(session->client), "%.*s", (int)name.len, name.data);
    lock_release(&session->lock);
    bool tells = json_is(changed, NG_TYPE_TRUE);
    atomic_store(&session->client_asks, mcp_client_request_kinds(capabilities));
    atomic_store(&session->client_abilities, tells ? (unsigned)MCP_CLIENT_ROOTS_CHANGED : 0U);
}

static enum mcp_version version_for(struct ng_str asked)
{
    enum mcp_version version = mcp_version_parse(asked);
    if (version == MCP_VERSION_NONE || mcp_is_stateless(version)) {
        return MCP_VERSION_HANDSHAKE_NEWEST;
    }
    return version;
}

static void answer_initialize(struct mcp_exchange *exchange, const struct call *call)
{
    const struct mcp_job *job = exchange->job;
    struct ng_str asked = json_get_text(exchange->message.params, "protocolVersion");
    enum mcp_version version = version_for(asked);
    struct buf *out = mcp_result_open(exchange);
    (void)call;
    buf_printf(
        out,
        "\"protocolVersion\":\"%s\",\"capabilities\":{\"logging\":{}," MCP_CAPABILITIES "%s},"
        "\"serverInfo\":{\"name\":\"notegate\",\"version\":\"" NOTEGATE_VERSION "\"},",
        mcp_version_text(version),
        text_if(version >= MCP_2025_11_25 && job->methods->tasks->are_offered(job->gateway),
                ",\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{"
                "\"call\":{}}}}"));
    print_instructions(exchange, out);
    mcp_result_close(exchange, STR_NONE);
}

static int save_session(struct mcp_exchange *exchange, enum mcp_version version)
{
    static const struct mcp_run run = {NULL, answer_initialize, mcp_answer_not_saved,
                                       mcp_session_edit_step};
    struct mcp_session_edit edit = {.kind = MCP_SESSION_CREATE};
    const struct mcp_session *session = exchange->job->session;
    remember_client(exchange);
    edit.record.version = version;
    edit.record.client = client_name(exchange->message.params, "clientInfo");
    if (session != NULL) {
        edit.record.asks = atomic_load(&session->client_asks);
        edit.record.abilities = atomic_load(&session->client_abilities);
    }
    return mcp_session_save(exchange, &edit, &run);
}

int mcp_initialize(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    struct ng_str asked = json_get_text(exchange->message.params, "protocolVersion");
    if (asked.data == NULL) {
        return mcp_refuse_params(exchange, "`params.protocolVersion` must be a string, the "
                                           "version of MCP that the client speaks");
    }
    enum mcp_version version = version_for(asked);
    int rc = NG_OK;
    if (job->open_session != NULL) {
        rc = job->open_session(job, version);
    }
    if (rc != NG_OK) {
        job->retry_after_s = rc == NG_EBUSY;
        if (rc == NG_EBUSY) {
            return mcp_refuse(exchange, 503, 503,
                              "the maximum number of MCP sessions is open; end one with "
                              "DELETE, or try again later");
        }
        return mcp_refuse(exchange, 500, MCP_INTERNAL_ERROR, "the session could not be opened");
    }
    return save_session(exchange, version);
}

int mcp_discover(struct mcp_exchange *exchange)
{
    struct mcp_job *job = exchange->job;
    struct buf *out = mcp_result_open(exchange);
    buf_add_c(out, "\"supportedVersions\":");
    mcp_print_versions(out);
    buf_printf(out, ",\"capabilities\":{" MCP_CAPABILITIES "%s},",
               text_if(job->methods->tasks->are_offered(job->gateway),
                       ",\"extensions\":{\"" MCP_TASKS_EXTENSION "\":{}}"));
    print_instructions(exchange, out);
    /* As a list: it tells rights and roots. */
    mcp_print_cache(exchange, out, MCP_LIST_TTL_MS);
    mcp_result_close(exchange, STR_NONE);
    return NG_OK;
}

int mcp_ping(struct mcp_exchange *exchange)
{
    return mcp_answer_done(exchange);
}

int mcp_set_level(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {NULL, mcp_answer_saved, mcp_answer_not_saved,
                                       mcp_session_edit_step};
    enum mcp_log_level level =
        mcp_log_level_parse(json_get_text(exchange->message.params, "level"));
    if (level == MCP_LOG_NONE) {
        return mcp_refuse_params(exchange,
                                 "`params.level` must be one of debug, info, notice, warning, "
                                 "error, critical, alert, emergency");
    }
    if (exchange->job->session != NULL) {
        atomic_store(&exchange->job->session->log_level, (int)level);
    }
    struct mcp_session_edit edit = {.kind = MCP_SESSION_LEVEL, .record.log_level = level};
    return mcp_session_save(exchange, &edit, &run);
}
