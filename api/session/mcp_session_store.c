/* SPDX-License-Identifier: MIT */
/* mcp_session_store.c - a session's document: reading it, and its changes, each made from the
 * document as it is. */
#include "mcp_session_store.h"

#include <stdlib.h>

#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/json/json.h"
#include "core/store/store.h"

#define SESSIONS_COLLECTION "mcp_sessions"
#define SESSIONS_SPACE "mcp"
/* The URIs of a session, escaped at worst, and the rest. */
#define SESSION_JSON_MAX ((size_t)8 * 1024 * 1024)
/* Documents looked at by one sweep. */
#define SWEEP_ROWS_MAX 16384

static const struct ng_collection sessions_collection = {
    .name = SESSIONS_COLLECTION,
    .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
};

int mcp_session_declare(struct gateway *gateway, struct buf *error)
{
    struct call *call = call_new(gateway);
    if (call == NULL) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    int rc = store_declare(gateway->store, call, &sessions_collection);
    if (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT) {
        rc = NG_OK; /* the cluster's thread declares it as soon as the database answers */
    }
    if (rc != NG_OK) {
        buf_printf(error, "sessions cannot be stored: %.*s", (int)call->staged.message.len,
                   text_or(call->staged.message.data, ""));
    }
    call_unref(call);
    return rc;
}

static struct ng_key key_of(struct ng_str id)
{
    struct ng_key key = {ng_str_of(SESSIONS_COLLECTION), ng_str_of(SESSIONS_SPACE), id};
    return key;
}

/* ---- reading ---- */

static void read_record(const struct ng_doc *doc, const struct ng_value *body,
                        struct mcp_session_record *ret)
{
    *ret = (struct mcp_session_record){
        .id = doc->key.id,
        .owner = json_get_text(body, "owner"),
        .client = json_get_text(body, "client"),
        .gateway = json_get_text(body, "gateway"),
        .token = json_get_text(body, "start"),
        .version = mcp_version_parse(json_get_text(body, "version")),
        .log_level = mcp_log_level_parse(json_get_text(body, "level")),
        .asks = (unsigned)json_get_integer(body, "asks"),
        .abilities = (unsigned)json_get_integer(body, "abilities"),
        .moves = (unsigned)json_get_integer(body, "moves"),
        .uris = json_get(body, "uris"),
        .revision = doc->revision,
    };
}

int mcp_session_load(struct call *call, struct ng_str id, struct mcp_session_record *ret)
{
    struct ng_key key = key_of(id);
    const struct ng_doc *doc = NULL;
    int rc = store_get(call->gateway->store, call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (doc->revision == 0 || doc->deleted) {
        return call_fail(call, NG_ENOTFOUND, "there is no such session");
    }
    read_record(doc, doc->body, ret);
    return NG_OK;
}

/* ---- changes ---- */

static bool is_ours(const struct call *call, const struct mcp_session_record *record)
{
    const struct cluster *cluster = call->gateway->cluster;
    return str_equal(record->gateway, cluster_id(cluster)) &&
           str_is(record->token, cluster_token(cluster));
}

/* The URIs that were there, but for the one that the edit is about, and that one. */
static void write_uris(struct ng_writer *writer, const struct mcp_session_record *record,
                       const struct mcp_session_edit *edit)
{
    const struct ng_value *uri = NULL;
    if (json_is(record->uris, NG_TYPE_ARRAY)) {
        uri = record->uris->first;
    }
    json_name(writer, "uris");
    json_array(writer);
    for (; uri != NULL; uri = uri->next) {
        if (!str_equal(uri->text, edit->uri)) {
            json_string(writer, uri->text);
        }
    }
    if (edit->kind == MCP_SESSION_SUBSCRIBE) {
        json_string(writer, edit->uri);
    }
    json_end(writer);
}

static int write_record(const struct call *call, const struct mcp_session_record *record,
                        const struct mcp_session_edit *edit, struct ng_draft *next)
{
    const struct cluster *cluster = call->gateway->cluster;
    struct ng_writer writer;
    struct buf text;
    buf_init(&text, SESSION_JSON_MAX);
    json_writer_init(&writer, &text);
    json_object(&writer);
    json_member_string(&writer, "owner", record->owner);
    json_member_string(&writer, "client", record->client);
    json_member_string(&writer, "gateway", cluster_id(cluster));
    json_member_cstring(&writer, "start", cluster_token(cluster));
    json_member_cstring(&writer, "version", mcp_version_text(record->version));
    if (record->log_level != MCP_LOG_NONE) {
        json_member_cstring(&writer, "level", mcp_log_level_text(record->log_level));
    }
    json_member_int(&writer, "asks", record->asks);
    json_member_int(&writer, "abilities", record->abilities);
    json_member_int(&writer, "moves", record->moves);
    write_uris(&writer, record, edit);
    json_end(&writer);
    int rc = text.rc;
    if (rc == NG_OK) {
        rc = store_draft_json(next, buf_str(&text));
    }
    buf_done(&text);
    return rc;
}

static int edit_fn(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    struct mcp_session_edit *edit = user;
    struct call *call = call_of(pub);
    bool is_there = present->revision != 0 && !present->deleted;
    struct mcp_session_record record = edit->record;
    if (edit->kind != MCP_SESSION_CREATE) {
        read_record(present, present->body, &record);
    }
    if (edit->kind >= MCP_SESSION_ERASE) {
        bool is_same = is_ours(call, &record) && record.moves == edit->record.moves;
        if (is_there && (edit->kind == MCP_SESSION_ERASE || is_same)) {
            store_draft_delete(next);
        }
        return NG_OK;
    }
    if (edit->kind != MCP_SESSION_CREATE) {
        if (!is_there || (edit->kind != MCP_SESSION_TAKE && !is_ours(call, &record))) {
            atomic_store(&edit->moved, edit->kind != MCP_SESSION_TAKE);
            return call_fail(
                call, NG_EUNAVAILABLE,
                "the session has moved to another gateway; send the request again");
        }
    }
    if (edit->kind == MCP_SESSION_LEVEL) {
        record.log_level = edit->record.log_level;
    }
    if (edit->kind == MCP_SESSION_TAKE) {
        atomic_store(&edit->moved,
                     !is_ours(call, &record) && !str_equal(record.token, edit->record.token));
        edit->record.moves = ++record.moves;
    }
    if (atomic_load(&edit->moved)) {
        return NG_OK;
    }
    return write_record(call, &record, edit, next);
}

int mcp_session_edit(struct call *call, struct mcp_session_edit *edit)
{
    const struct mcp_session_record *record = &edit->record;
    struct ng_change change = {
        .size = sizeof(change),
        .key = key_of(record->id),
        .fn = edit_fn,
        .user = edit,
        .has_expected = edit->kind == MCP_SESSION_ERASE && record->revision != 0,
        .is_new = edit->kind == MCP_SESSION_CREATE,
        .expected_revision = record->revision,
    };
    return store_write_wait(call->gateway->store, call, &change, 1);
}

int mcp_session_edit_step(struct ng_call *call, void *user)
{
    return mcp_session_edit(call_of(call), user);
}

/* ---- those without a gateway ---- */

/* Of each document without a gateway: a hash of its id and revision. */
struct mcp_session_orphans {
    size_t count;
    uint64_t marks[SWEEP_ROWS_MAX];
};

struct sweep {
    struct call *call;
    struct mcp_sessions *sessions;
    const struct mcp_session_orphans *before;
    struct mcp_session_orphans *now;
    struct mcp_session_edit *old; /* to be erased */
    size_t old_count;
};

static bool was_known(const struct mcp_session_orphans *before, uint64_t mark)
{
    size_t count = before == NULL ? 0 : before->count;
    for (size_t i = 0; i < count; i++) {
        if (before->marks[i] == mark) {
            return true;
        }
    }
    return false;
}

static bool is_held(const struct sweep *sweep, const struct mcp_session_record *record)
{
    if (is_ours(sweep->call, record)) {
        return mcp_sessions_has(sweep->sessions, record->id);
    }
    return cluster_holds(sweep->call->gateway->cluster, record->gateway, record->token);
}

static int sweep_row(void *user, const struct ng_doc *row)
{
    struct sweep *sweep = user;
    struct call *call = sweep->call;
    const struct ng_value *body = NULL;
    struct mcp_session_record record;
    if (json_parse(&call->arena, row->json, JSON_DEPTH_DEFAULT, &body, NULL) != NG_OK) {
        return 0; /* verify tells about broken documents */
    }
    read_record(row, body, &record);
    uint64_t mark = str_hash(record.id) ^ (record.revision * 0x9E3779B97F4A7C15U);
    if (is_held(sweep, &record)) {
        return 0;
    }
    if (!was_known(sweep->before, mark)) {
        sweep->now->marks[sweep->now->count++] = mark;
        return 0;
    }
    record.id = arena_copy(&call->arena, record.id);
    if (record.id.data != NULL) {
        sweep->old[sweep->old_count++] =
            (struct mcp_session_edit){.kind = MCP_SESSION_ERASE, .record = record};
    }
    return 0;
}

int mcp_session_sweep_stored(struct call *call, struct mcp_sessions *sessions,
                             struct mcp_session_orphans **known)
{
    struct ng_str *ids = NULL;
    size_t ids_count = 0;
    struct sweep sweep = {.call = call, .sessions = sessions, .before = *known};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(SESSIONS_COLLECTION),
        .space = ng_str_of(SESSIONS_SPACE),
        .limit = SWEEP_ROWS_MAX,
    };
    sweep.now = alloc_zeroed(1, sizeof(*sweep.now));
    sweep.old = alloc_zeroed(SWEEP_ROWS_MAX, sizeof(*sweep.old));
    int rc = NG_EINTERNAL;
    if (sweep.now != NULL && sweep.old != NULL) {
        rc = cluster_peers(call->gateway->cluster, call, &ids, &ids_count);
    }
    if (rc == NG_OK) {
        rc = store_query(call->gateway->store, call, &query, sweep_row, &sweep, NULL);
    }
    for (size_t i = 0; i < sweep.old_count && rc == NG_OK; i++) {
        rc = mcp_session_edit(call, &sweep.old[i]);
        if (rc == NG_ECONFLICT) { /* it was taken */
            call_reset_result(call);
            rc = NG_OK;
        }
    }
    if (rc == NG_OK) {
        free(*known);
        *known = sweep.now;
        sweep.now = NULL;
    }
    free(sweep.now);
    free(sweep.old);
    return rc;
}

void mcp_session_orphans_free(struct mcp_session_orphans *orphans)
{
    free(orphans);
}
