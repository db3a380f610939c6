/* SPDX-License-Identifier: MIT */
/* auth.c - while no key exists: the owner on the Unix socket, and the gateway's own user on
 * loopback. */
#include "auth.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "str.h"

#define AGENT_DEFAULT "local"

#define SHOWN_MAX 80

static const char hint_key[] = "Add a key with: notegate key add NAME, and send it as "
                               "Authorization: Bearer ng_...";

struct auth {
    enum auth_mode mode;
    bool has_keys;
};

int auth_new(struct gateway *gateway, struct auth **ret, struct buf *error)
{
    struct ng_str mode = config_text(gateway->config, "auth");
    struct auth *auth = alloc_zeroed(1, sizeof(*auth));
    if (auth == NULL) {
        (void)buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    if (mode.len == 0 || str_is(mode, "auto")) {
        auth->mode = AUTH_AUTO;
    } else if (str_is(mode, "on")) {
        auth->mode = AUTH_ON;
    } else if (str_is(mode, "off")) {
        auth->mode = AUTH_OFF;
    } else {
        free(auth);
        (void)buf_printf(error, "auth is \"%.*s\", it must be auto, on or off", (int)mode.len,
                         mode.data);
        return NG_EINVAL;
    }
    *ret = auth;
    return NG_OK;
}

void auth_free(struct auth *auth)
{
    free(auth);
}

bool auth_needs_key(const struct auth *auth)
{
    return auth->mode == AUTH_ON || (auth->mode == AUTH_AUTO && auth->has_keys);
}

int auth_check_listen(const struct auth *auth, const char *address, bool is_loopback,
                      struct buf *error)
{
    if (is_loopback) {
        return NG_OK;
    }
    if (auth->mode == AUTH_OFF) {
        (void)buf_printf(
            error,
            "cannot listen on %s: auth is off, and then only a loopback address "
            "(127.0.0.1, ::1) may be listened on; set auth=auto and add a key with "
            "`notegate key add NAME`",
            address);
        return NG_EINVAL;
    }
    if (!auth->has_keys) {
        (void)buf_printf(
            error,
            "cannot listen on %s: it can be reached from other machines and no key "
            "exists; add one with `notegate key add NAME`, or listen on 127.0.0.1",
            address);
        return NG_EINVAL;
    }
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
    va_start(args, format);
    (void)vsnprintf(refusal->text, sizeof(refusal->text), format, args);
    va_end(args);
    return rc;
}

/* How many bytes of a wrong value a sentence shows. */
static int shown(struct ng_str value)
{
    return (int)str_utf8_cut(value, SHOWN_MAX).len;
}

static int parse_mode(struct ng_str text, enum ng_mode *ret)
{
    static const struct {
        const char *name;
        enum ng_mode mode;
    } modes[] = {{"ask", NG_MODE_ASK}, {"edit", NG_MODE_EDIT}, {"agent", NG_MODE_AGENT}};
    if (text.data == NULL) {
        *ret = NG_MODE_AGENT;
        return NG_OK;
    }
    for (size_t i = 0; i < NG_COUNT(modes); i++) {
        if (str_is(text, modes[i].name)) {
            *ret = modes[i].mode;
            return NG_OK;
        }
    }
    return NG_EINVAL;
}

static bool space_valid(struct ng_str space)
{
    if (space.len > 0 && space.data[0] == '~') {
        space = str_make(space.data + 1, space.len - 1);
    }
    return call_name_valid(space);
}

/* May this connection ask without a key? */
static int check_connection(const struct auth *auth, const struct auth_connection *connection,
                            const struct auth_headers *headers, struct auth_refusal *refusal)
{
    if (connection->is_socket) {
        return NG_OK;
    }
    if (auth_needs_key(auth)) {
        bool given = headers->authorization.data != NULL;
        return refuse(refusal, NG_EUNAUTHENTICATED, hint_key, "%s",
                      given ? "The key that was sent is not known here"
                            : "This gateway wants a key, and none was sent");
    }
    if (!connection->is_loopback) {
        return refuse(refusal, NG_EUNAUTHENTICATED, hint_key,
                      "The call came from another machine, and this gateway has no keys yet");
    }
    if (auth->mode == AUTH_OFF) {
        return NG_OK;
    }
    if (headers->proxied != NULL) {
        return refuse(refusal, NG_EUNAUTHENTICATED, hint_key,
                      "The call was forwarded by a proxy (header %s), and this gateway has no "
                      "keys yet",
                      headers->proxied);
    }
    if (!connection->is_own_user) {
        return refuse(refusal, NG_EUNAUTHENTICATED, hint_key,
                      "While this gateway has no keys it answers only programs of the user it "
                      "runs as");
    }
    return NG_OK;
}

int auth_check(const struct auth *auth, const struct auth_connection *connection,
               const struct auth_headers *headers, struct auth_caller *ret,
               struct auth_refusal *refusal)
{
    int rc = check_connection(auth, connection, headers, refusal);
    if (rc != NG_OK) {
        return rc;
    }
    if (headers->agent.data != NULL && !call_name_valid(headers->agent)) {
        return refuse(refusal, NG_EINVAL, NULL,
                      "X-Notegate-Agent is \"%.*s\"; it must have 1 to 64 of the characters "
                      "A-Z a-z 0-9 . "
                      "_ @ -",
                      shown(headers->agent), headers->agent.data);
    }
    if (headers->space.data != NULL && !space_valid(headers->space)) {
        return refuse(refusal, NG_EINVAL, NULL,
                      "X-Notegate-Space is \"%.*s\"; it must have 1 to 64 of the characters "
                      "A-Z a-z 0-9 . "
                      "_ @ -, or such a name with ~ before it",
                      shown(headers->space), headers->space.data);
    }
    memset(ret, 0, sizeof(*ret));
    if (parse_mode(headers->mode, &ret->mode) != NG_OK) {
        return refuse(refusal, NG_EINVAL, NULL,
                      "X-Notegate-Mode is \"%.*s\"; it must be ask, edit or agent",
                      shown(headers->mode), headers->mode.data);
    }
    ret->agent = headers->agent.data != NULL ? headers->agent : ng_str_of(AGENT_DEFAULT);
    ret->space = headers->space;
    ret->role = NG_ROLE_ADMIN;
    return NG_OK;
}

int auth_apply(const struct auth_caller *caller, struct call *call)
{
    int rc = call_set_caller(call, caller->agent, caller->space, caller->role, caller->mode);
    if (rc == NG_OK && (caller->space_count > 0 || caller->all_spaces)) {
        rc = call_allow_spaces(call, caller->spaces, caller->space_count, caller->all_spaces);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (caller->request_id.data != NULL) {
        call->caller.request_id = arena_copy(&call->arena, caller->request_id);
    }
    if (caller->traceparent.data != NULL) {
        call->caller.traceparent = arena_copy(&call->arena, caller->traceparent);
    }
    return NG_OK;
}
