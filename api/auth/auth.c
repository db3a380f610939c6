/* SPDX-License-Identifier: MIT */
/* auth.c - authentication of a request: by a key, as the owner on the Unix socket, or as the
 * gateway's own user on loopback while no key exists. */
#include "auth.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/files/run_as.h"
#include "core/base/files/trust.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/config/config.h"
#include "core/dispatch/audit.h"
#include "core/dispatch/dispatch.h"
#include "core/keys/keys.h"

#define AGENT_DEFAULT "local"

#define SHOWN_MAX 80
#define AUTH_HINT_MAX 1024
#define HINT_SEND "Send it as Authorization: Bearer ng_..."

static const char hint_key[] =
    "The gateway's user makes a key with `notegate key add NAME`. " HINT_SEND;

/* Lines of refusals in the log, a second. */
#define LOG_LINES_MAX 5

#define HINT_LOST "A key that was lost or has expired cannot be restored"

static const char hint_other_key[] =
    HINT_LOST ": the gateway's user makes another with `notegate key add NAME`";

static const char hint_paused[] = "An admin can resume it: `notegate key resume ID`";

static const char hint_no_keys[] = "Leave the key out: this gateway has none.";

static const char bearer[] = "Bearer";
static const char key_prefix[] = "ng_";

struct auth {
    struct gateway *gateway;
    enum auth_mode mode;
    bool is_public; /* it listens where other machines can reach it */
    /* The same hints for users of this machine: they name store and user. */
    char hint_own[AUTH_HINT_MAX];
    char hint_own_other[AUTH_HINT_MAX];
    char hint_own_paused[AUTH_HINT_MAX];
    /* Refusals in the log: how many in this second, and how many were left out. */
    _Atomic int64_t log_second;
    atomic_uint log_lines, log_left_out;
};

static void key_command(const struct auth *auth, const char *verb, struct buf *out)
{
    (void)run_as_add_program(out, geteuid());
    (void)buf_printf(out, " key %s --data-dir ", verb);
    (void)trust_add_word(out, text_or(auth->gateway->data_dir, "DIR"));
}

/* For another user of this machine, whose own store is none of this gateway: the user that has
 * the right to do it, and its command. */
static void make_own_hint(const struct auth *auth, char hint[AUTH_HINT_MAX], const char *doing,
                          const char *verb, const char *otherwise)
{
    struct buf command;
    struct buf text;
    buf_init(&command, AUTH_HINT_MAX);
    buf_init(&text, AUTH_HINT_MAX - 1);
    key_command(auth, verb, &command);
    (void)buf_add_c(&text, doing);
    (void)run_as_add_whom(&text, geteuid(), buf_cstr(&command));
    (void)buf_add_c(&text, ". " HINT_SEND);
    (void)snprintf(hint, AUTH_HINT_MAX, "%s", text.rc == NG_OK ? buf_cstr(&text) : otherwise);
    buf_done(&command);
    buf_done(&text);
}

int auth_new(struct gateway *gateway, struct auth **ret, struct buf *error)
{
    static const char *const modes[] = {
        [AUTH_AUTO] = "auto", [AUTH_ON] = "on", [AUTH_OFF] = "off"};
    struct ng_str text = str_or(config_text(gateway->config, "auth"), ng_str_of("auto"));
    size_t mode = 0;
    while (mode < NG_COUNT(modes) && !str_is(text, modes[mode])) {
        mode++;
    }
    if (mode == NG_COUNT(modes)) {
        (void)buf_printf(error, "auth is \"%.*s\", it must be auto, on or off", (int)text.len,
                         text.data);
        return NG_EINVAL;
    }
    struct auth *auth = alloc_zeroed(1, sizeof(*auth));
    if (auth == NULL) {
        (void)buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    auth->mode = (enum auth_mode)mode;
    auth->gateway = gateway;
    make_own_hint(auth, auth->hint_own, "A key is made by ", "add NAME", hint_key);
    make_own_hint(auth, auth->hint_own_other, HINT_LOST ": another is made by ", "add NAME",
                  hint_other_key);
    make_own_hint(auth, auth->hint_own_paused, "It is resumed by ", "resume ID", hint_paused);
    *ret = auth;
    return NG_OK;
}

void auth_free(struct auth *auth)
{
    free(auth);
}

bool auth_needs_key(const struct auth *auth)
{
    return auth->mode == AUTH_ON || auth->is_public ||
           (auth->mode == AUTH_AUTO && gateway_has_keys(auth->gateway));
}

int auth_check_listen(struct auth *auth, const char *address, bool is_loopback,
                      struct buf *error)
{
    if (is_loopback) {
        return NG_OK;
    }
    if (auth->mode == AUTH_OFF) {
        (void)buf_printf(
            error,
            "cannot listen on %s: with auth=off only a loopback address (127.0.0.1, ::1) is "
            "allowed; set auth=auto and add a key with `",
            address);
        key_command(auth, "add NAME", error);
        (void)buf_add_c(error, "`");
        return NG_EINVAL;
    }
    /* A gateway that is only described has no keys to look at. */
    if (auth->gateway->keys != NULL && keys_active(auth->gateway->keys) == 0) {
        (void)buf_printf(
            error,
            "cannot listen on %s: it can be reached from other machines and no key exists; add "
            "one with `",
            address);
        key_command(auth, "add NAME", error);
        (void)buf_add_c(error, "`, or listen on 127.0.0.1");
        return NG_EINVAL;
    }
    auth->is_public = true;
    auth->gateway->is_public = true;
    return NG_OK;
}

static int refuse(struct auth_refusal *refusal, int rc, const char *hint, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

static int refuse(struct auth_refusal *refusal, int rc, const char *hint, const char *format,
                  ...)
{
    va_list args;
    refusal->rc = rc;
    refusal->hint = hint;
    refusal->bad_token = false;
    va_start(args, format);
    (void)vsnprintf(refusal->text, sizeof(refusal->text), format, args);
    va_end(args);
    return rc;
}

/* How many bytes of a wrong value a sentence shows. */
static int shown(struct ng_str value)
{
    return (int)utf8_cut(value, SHOWN_MAX).len;
}

static bool space_valid(struct ng_str space)
{
    if (space.len > 0 && space.data[0] == '~') {
        space = str_make(space.data + 1, space.len - 1);
    }
    return call_name_valid(space);
}

/* ---- with a key ---- */

/* The bearer token of the request. Other schemes are ignored; so is a token that has not our
 * form while no key is required, because many clients insist on sending something. */
static bool find_token(struct ng_str authorization, struct ng_str *ret)
{
    const size_t len = sizeof(bearer) - 1;
    if (authorization.data == NULL || authorization.len <= len ||
        strncasecmp(authorization.data, bearer, len) != 0 ||
        (authorization.data[len] != ' ' && authorization.data[len] != '\t')) {
        return false;
    }
    *ret = str_trim(str_make(authorization.data + len, authorization.len - len));
    return true;
}

static bool is_ours(struct ng_str token)
{
    return str_begins(token, key_prefix);
}

static int refuse_space(const struct key *key, struct ng_str space,
                        struct auth_refusal *refusal)
{
    char has[AUTH_TEXT_MAX / 2];
    size_t used = 0;
    has[0] = '\0';
    for (size_t i = 0; i < key->space_count && used < sizeof(has); i++) {
        int len = snprintf(has + used, sizeof(has) - used, "%s%.*s", text_if(i != 0, ", "),
                           (int)key->spaces[i].len, key->spaces[i].data);
        if (len >= 0) {
            used += (size_t)len;
        }
    }
    return refuse(refusal, NG_EFORBIDDEN, "Name one of them in X-Notegate-Space, or none",
                  "The key does not allow the space \"%.*s\"; it allows %s%s", shown(space),
                  space.data, has, text_if(used >= sizeof(has), "..."));
}

static int check_rights(const struct key *key, const struct auth_headers *headers,
                        struct auth_caller *ret, struct auth_refusal *refusal)
{
    if (headers->agent.data != NULL) {
        return refuse(
            refusal, NG_EINVAL, NULL,
            "X-Notegate-Agent cannot be sent with a key: the agent is the key's, %.*s",
            (int)key->agent.len, key->agent.data);
    }
    if (headers->mode.data != NULL && ret->mode > key->mode) {
        return refuse(refusal, NG_EMODE, "Send a lower mode in X-Notegate-Mode, or none",
                      "X-Notegate-Mode is %s and the key's mode is %s: it can only be lowered",
                      key_mode_name(ret->mode), key_mode_name(key->mode));
    }
    if (ret->space.data != NULL && key->role != NG_ROLE_ADMIN &&
        !key_has_space(key, ret->space)) {
        return refuse_space(key, ret->space, refusal);
    }
    return NG_OK;
}

/* Neither the owner of the key nor the existence of keys can be determined. */
static int refuse_unread(struct auth_refusal *refusal)
{
    return refuse(refusal, NG_EUNAVAILABLE, "Try again when the database answers",
                  "The gateway cannot read its keys because its database does not answer");
}

/* Names and paths of this machine are for its users. */
static bool is_local(const struct auth_connection *connection,
                     const struct auth_headers *headers)
{
    return connection->way == AUTH_LOOPBACK && headers->proxied == NULL;
}

static int find_key(const struct auth *auth, struct ng_str token, bool local, struct key **ret,
                    struct auth_refusal *refusal)
{
    const char *why = NULL;
    *ret = NULL;
    if (keys_not_loaded(auth->gateway->keys)) {
        return refuse_unread(refusal);
    }
    *ret = keys_find(auth->gateway->keys, token, &why);
    if (*ret == NULL) {
        const char *hint = local ? auth->hint_own_other : hint_other_key;
        if (!gateway_has_keys(auth->gateway)) {
            hint = auth_needs_key(auth) ? hint_key : hint_no_keys;
        } else if (why == keys_why_paused) {
            hint = local ? auth->hint_own_paused : hint_paused;
        }
        (void)refuse(refusal, NG_EUNAUTHENTICATED, hint, "%s", why);
        refusal->bad_token = true;
        return refusal->rc;
    }
    return NG_OK;
}

/* The reference passes over. */
static void take_key(struct key *key, const struct auth_headers *headers,
                     struct auth_caller *ret)
{
    ret->key = key;
    ret->agent = key->agent;
    ret->role = key->role;
    ret->run = key->run;
    if (headers->mode.data == NULL) {
        ret->mode = key->mode;
    }
    ret->spaces = key->spaces;
    ret->space_count = key->space_count;
    ret->all_spaces = key->role == NG_ROLE_ADMIN;
}

/* ---- without ---- */

static int refuse_unknown(struct auth_refusal *refusal)
{
    return refuse(refusal, NG_EBUSY, "Try again in a moment; more file descriptors help",
                  "The gateway could not ask the system for the calling program: too few file "
                  "descriptors or too little memory is free");
}

static int refuse_without_key(const struct auth *auth, const struct auth_connection *connection,
                              const struct auth_headers *headers, struct auth_refusal *refusal)
{
    return refuse(refusal, NG_EUNAUTHENTICATED,
                  is_local(connection, headers) ? auth->hint_own : hint_key,
                  headers->authorization.data != NULL
                      ? "This gateway requires a key, and the Authorization header is not "
                        "Bearer and a key"
                      : "This gateway requires a key, and none was sent");
}

/* May this connection ask without a key? */
static int check_connection(const struct auth *auth, const struct auth_connection *connection,
                            const struct auth_headers *headers, struct auth_refusal *refusal)
{
    if (connection->started == AUTH_STARTED_UNSEEN) {
        return refuse(refusal, NG_EUNAUTHENTICATED, hint_key,
                      "The calling program was not found: it has ended, or the gateway cannot "
                      "inspect it. It may be a program that this gateway started, and such a "
                      "program needs a key");
    }
    if (connection->started == AUTH_STARTED_YES) {
        return refuse(refusal, NG_EUNAUTHENTICATED, hint_key,
                      "The call came from a program that this gateway started, for example a "
                      "cell of a notebook; such a program needs a key");
    }
    if (connection->way == AUTH_SOCKET) {
        if (!connection->is_unknown) {
            return NG_OK;
        }
        return refuse_unknown(refusal);
    }
    if (auth_needs_key(auth) && keys_not_loaded(auth->gateway->keys)) {
        return refuse_unread(refusal);
    }
    if (auth_needs_key(auth)) {
        return refuse_without_key(auth, connection, headers, refusal);
    }
    if (connection->way != AUTH_LOOPBACK) {
        return refuse(refusal, NG_EUNAUTHENTICATED, hint_key,
                      "The call came from another machine, and this gateway has no keys yet");
    }
    /* No mode admits a program of ours, so first check that the caller is none. */
    if (connection->is_unknown) {
        return refuse_unknown(refusal);
    }
    if (auth->mode == AUTH_OFF) {
        return NG_OK;
    }
    if (headers->proxied != NULL) {
        return refuse(
            refusal, NG_EUNAUTHENTICATED, hint_key,
            "The call was forwarded by a proxy (header %s), and this gateway has no keys yet",
            headers->proxied);
    }
    if (connection->is_mute) {
        return refuse(
            refusal, NG_EUNAUTHENTICATED, hint_key,
            "This system does not show the user of a connection (NETLINK_SOCK_DIAG), so calls "
            "over TCP need a key; calls over the Unix socket in the data directory do not");
    }
    if (!connection->is_own_user) {
        return refuse(
            refusal, NG_EUNAUTHENTICATED, auth->hint_own,
            "While this gateway has no keys, it answers only programs of its own user");
    }
    return NG_OK;
}

static int check_run(const char *header, struct ng_str run, struct auth_refusal *refusal)
{
    char text[RUN_ID_TEXT_MAX];
    if (run.data == NULL || run_id_check(header, run, text) == NG_OK) {
        return NG_OK;
    }
    return refuse(refusal, NG_EINVAL, NULL, "%s", text);
}

static int check_runs(const struct auth_headers *headers, struct auth_caller *ret,
                      struct auth_refusal *refusal)
{
    int rc = check_run(RUN_ID_HEADER, headers->run, refusal);
    if (rc == NG_OK) {
        rc = check_run(RUN_ID_PROCESS_HEADER, headers->process_run, refusal);
    }
    ret->run_id = headers->run;
    ret->process_run = headers->process_run;
    return rc;
}

/* Space, mode and run as they were sent: only their form. */
static int check_names(const struct auth_headers *headers, struct auth_caller *ret,
                       struct auth_refusal *refusal)
{
    if (headers->agent.data != NULL && !call_name_valid(headers->agent)) {
        return refuse(refusal, NG_EINVAL, NULL,
                      "X-Notegate-Agent is \"%.*s\"; it must have 1 to 64 of the characters "
                      "A-Z a-z 0-9 . _ @ -",
                      shown(headers->agent), headers->agent.data);
    }
    if (headers->space.data != NULL && !space_valid(headers->space)) {
        return refuse(refusal, NG_EINVAL, NULL,
                      "X-Notegate-Space is \"%.*s\"; it must have 1 to 64 of the characters "
                      "A-Z a-z 0-9 . _ @ -, or such a name with ~ before it",
                      shown(headers->space), headers->space.data);
    }
    ret->mode = NG_MODE_AGENT;
    if (headers->mode.data != NULL && !key_parse_mode(headers->mode, &ret->mode)) {
        return refuse(refusal, NG_EINVAL, NULL,
                      "X-Notegate-Mode is \"%.*s\"; it must be ask, edit or agent",
                      shown(headers->mode), headers->mode.data);
    }
    ret->space = headers->space;
    return check_runs(headers, ret, refusal);
}

/* For the logs: the key was good, and its agent is known. */
static void name_refused(const struct key *key, struct auth_refusal *refusal)
{
    if (key != NULL) {
        (void)snprintf(refusal->agent, sizeof(refusal->agent), "%.*s", (int)key->agent.len,
                       key->agent.data);
        (void)snprintf(refusal->key, sizeof(refusal->key), "%s", key->id);
    }
}

int auth_check(const struct auth *auth, const struct auth_connection *connection,
               const struct auth_headers *headers, struct auth_caller *ret,
               struct auth_refusal *refusal)
{
    struct ng_str token;
    refusal->agent[0] = '\0';
    refusal->key[0] = '\0';
    /* Authentication comes first: an unauthenticated caller learns nothing about its other
     * headers. A key that is sent is checked even where none is required: its sender wants the
     * agent and the limits of the key, and wants to learn when it has expired. */
    bool keyed = find_token(headers->authorization, &token) &&
                 (is_ours(token) || (auth_needs_key(auth) && connection->way != AUTH_SOCKET));
    struct key *key = NULL;
    int rc = keyed ? find_key(auth, token, is_local(connection, headers), &key, refusal)
                   : check_connection(auth, connection, headers, refusal);
    if (rc != NG_OK) {
        return rc;
    }
    memset(ret, 0, sizeof(*ret));
    ret->knows_user = connection->knows_user;
    ret->user = connection->user;
    rc = check_names(headers, ret, refusal);
    if (rc == NG_OK && key != NULL) {
        rc = check_rights(key, headers, ret, refusal);
    }
    if (rc != NG_OK) {
        name_refused(key, refusal);
        key_unref(key);
        return rc;
    }
    if (key != NULL) {
        take_key(key, headers, ret);
        return NG_OK;
    }
    ret->agent = str_or(headers->agent, ng_str_of(AGENT_DEFAULT));
    ret->role = NG_ROLE_ADMIN;
    ret->run = true;
    ret->all_spaces = connection->way == AUTH_SOCKET; /* the owner */
    return NG_OK;
}

/* ---- the log ---- */

void auth_log_refusal(struct auth *auth, const char *why, const char *peer,
                      const char *request_id)
{
    int64_t second = clock_monotonic_ns() / 1000000000;
    unsigned left_out = 0;
    if (atomic_exchange(&auth->log_second, second) != second) {
        atomic_store(&auth->log_lines, 0);
        left_out = atomic_exchange(&auth->log_left_out, 0);
    }
    if (atomic_fetch_add(&auth->log_lines, 1) >= LOG_LINES_MAX) {
        atomic_fetch_add(&auth->log_left_out, 1);
        return;
    }
    if (left_out > 0) {
        log_write(NG_LOG_WARNING, "auth", "%u more callers were refused", left_out);
    }
    log_write(NG_LOG_WARNING, "auth", "refused a caller from %s (request %s): %s",
              peer[0] == '\0' ? "the Unix socket" : peer, request_id, why);
}

int auth_apply(const struct auth_caller *caller, struct call *call)
{
    int rc = call_set_caller(call, caller->agent, caller->space, caller->role, caller->mode,
                             caller->run);
    if (rc != NG_OK) {
        return rc;
    }
    call->caller.all_spaces = caller->all_spaces;
    if (caller->knows_user) {
        call->user = caller->user;
    }
    if (caller->key != NULL) {
        call_take_key(call, caller->key);
        call->caller.spaces = caller->key->spaces; /* which the call keeps with the key */
        call->caller.space_count = caller->key->space_count;
    } else if (caller->space_count > 0) {
        rc = call_allow_spaces(call, caller->spaces, caller->space_count, caller->all_spaces);
    }
    if (rc != NG_OK) {
        return rc;
    }
    call->caller.request_id = arena_copy(&call->arena, caller->request_id);
    call->remote = arena_copy(&call->arena, caller->remote);
    call->caller.client = arena_copy(&call->arena, utf8_cut(caller->client, AUDIT_CLIENT_MAX));
    call->caller.traceparent = arena_copy(&call->arena, caller->traceparent);
    call_set_run(call, auth_run(caller));
    return NG_OK;
}

struct call *auth_call_again(const struct call *call)
{
    const struct ng_caller *before = &call->caller;
    struct key *key = keys_get(call->gateway->keys, ng_str_of(call->key->id));
    struct call *made = key != NULL ? call_new(call->gateway) : NULL;
    struct auth_caller caller = {.agent = before->agent, .key = key};
    int rc = NG_EINTERNAL;
    if (made != NULL) {
        bool keeps = key->role == NG_ROLE_ADMIN || key_has_space(key, before->space);
        caller.role = key->role;
        caller.mode = before->mode < key->mode ? before->mode : key->mode;
        caller.run = key->run;
        caller.all_spaces = key->role == NG_ROLE_ADMIN;
        caller.space = before->space_named && keeps ? before->space : STR_NONE;
        rc = auth_apply(&caller, made);
    }
    key_unref(key);
    if (rc != NG_OK || dispatch_spaces(made, NULL) != NG_OK) {
        call_unref(made);
        return NULL;
    }
    return made;
}

const struct auth_caller *auth_keep(const struct auth_caller *caller, struct call *call)
{
    struct auth_caller *kept = arena_zalloc(&call->arena, sizeof(*kept));
    if (kept == NULL) {
        return NULL;
    }
    *kept = *caller;
    kept->agent = arena_copy(&call->arena, caller->agent);
    kept->space = arena_copy(&call->arena, caller->space);
    kept->request_id = arena_copy(&call->arena, caller->request_id);
    kept->remote = call->remote;
    kept->client = call->caller.client;
    kept->traceparent = arena_copy(&call->arena, caller->traceparent);
    kept->run_id = arena_copy(&call->arena, caller->run_id);
    kept->process_run = arena_copy(&call->arena, caller->process_run);
    if (call->arena.oom) {
        return NULL;
    }
    return kept;
}
