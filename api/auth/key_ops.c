/* SPDX-License-Identifier: MIT */
/* key_ops.c - listing, adding, changing and revoking keys, and the right to do so. */
#include "key_ops.h"

#include <string.h>

#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/config/config.h"
#include "core/keys/keys.h"
#include "key_spaces.h"

/* Of a wrong id that a sentence shows. */
#define SHOWN_MAX 80
/* How far an id may be from a known one to be named as a hint. */
#define NEAR_MAX 3

static int shown(struct ng_str text)
{
    return (int)utf8_cut(text, SHOWN_MAX).len;
}

bool key_ops_allowed(const struct call *call)
{
    return call->caller.role == NG_ROLE_ADMIN && !key_limits_tools(call->key);
}

bool key_op_changes(enum key_op op)
{
    return op == KEY_OP_ADD || op == KEY_OP_SET || op == KEY_OP_REVOKE;
}

static int authorize(struct call *call, const struct key_job *job)
{
    if (call->caller.role != NG_ROLE_ADMIN) {
        return call_fail(call, NG_EFORBIDDEN,
                         "keys are for the role admin; this caller's role is %s",
                         key_role_name(call->caller.role));
    }
    /* It could add itself a key without that list. */
    if (!key_ops_allowed(call)) {
        return call_fail(call, NG_EFORBIDDEN,
                         "the caller's key is limited to some tools, so it cannot manage keys");
    }
    if (call->caller.mode == NG_MODE_ASK && key_op_changes(job->op)) {
        return call_fail(call, NG_EMODE,
                         "this changes keys and the caller's mode is ask, which only reads; it "
                         "needs the mode edit or agent");
    }
    return NG_OK;
}

static int unknown_id(struct call *call, struct ng_str id)
{
    struct key **list = NULL;
    size_t count = 0;
    const char *near = NULL;
    size_t least = NEAR_MAX + 1;
    if (keys_list(call->gateway->keys, call, &list, &count) != NG_OK) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(id, ng_str_of(list[i]->id), NEAR_MAX);
        if (distance < least) {
            least = distance;
            near = list[i]->id;
        }
    }
    call_fail(call, NG_ENOTFOUND, "no key has the id \"%.*s\"", shown(id), id.data);
    call->staged.hint = near != NULL ? arena_printf(&call->arena, "Did you mean %s?", near)
                                     : ng_str_of("GET /v1/keys lists the keys.");
    return NG_ENOTFOUND;
}

static int list(struct call *call, const struct key_job *job)
{
    struct key **found = NULL;
    size_t count = 0;
    keys_look_now(call->gateway->keys, call);
    /* Reads again the keys that could not be read when memory was out. */
    int rc = keys_read_again(call->gateway->keys, call);
    keys_refresh_uses(call->gateway->keys, call);
    if (rc != NG_OK) {
        return rc;
    }
    rc = keys_list(call->gateway->keys, call, &found, &count);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_writer *writer = call->pub.host->reply_json(&call->pub);
    json_object(writer);
    json_name(writer, "keys");
    json_array(writer);
    for (size_t i = 0; i < count; i++) {
        bool named = job->name.data == NULL || str_equal(found[i]->agent, job->name) ||
                     str_is(job->name, found[i]->id);
        bool ended = key_is_revoked(found[i]) || key_has_expired(found[i]);
        if (named && (job->all || !ended)) {
            json_object(writer);
            key_print(found[i], writer);
            json_end(writer);
        }
    }
    json_end(writer);
    json_end(writer);
    return NG_OK;
}

/* Attempts to write the answer of a completed change when memory is short. */
#define REPLY_TRIES 8

/* Members of an answer that only the one to the change has. */
struct key_once {
    const char *text; /* of a new key; NULL: it is not new */
    const struct ng_str *new_spaces;
    size_t new_space_count;
};

static void reply_once(struct call *call, const struct key *key, const struct key_once *once)
{
    struct ng_writer *writer = call->pub.host->reply_json(&call->pub);
    json_object(writer);
    if (once->text != NULL) {
        json_member_cstring(writer, "key", once->text);
    }
    key_print(key, writer);
    if (once->new_space_count > 0) {
        json_member_strings(writer, "new_spaces", once->new_spaces, once->new_space_count);
    }
    json_end(writer);
}

static void reply(struct call *call, const struct key *key, const struct key_once *once)
{
    for (int i = 0; i < REPLY_TRIES && (i == 0 || call_lacks_memory(call)); i++) {
        call->arena.oom = false;
        reply_once(call, key, once);
    }
}

static int parse_body(struct call *call, const struct ng_value **ret)
{
    struct json_error error;
    if (json_parse(&call->arena, call->args_text, call->gateway->limits.depth, ret, &error) ==
        NG_OK) {
        return NG_OK;
    }
    return call_fail(call, NG_EJSON, "the body is not valid JSON: %s (line %zu, column %zu)",
                     error.message, error.line, error.column);
}

/* A caller gives no key a higher mode than its own, or the right to run code without having it.
 * id: of the key that changes; NULL: it is a new one. */
static int check_given(struct call *call, enum ng_mode mode, bool run, const char *id)
{
    bool adds = id == NULL;
    if (mode > call->caller.mode) {
        return call_fail(call, NG_EMODE,
                         "a caller in mode %s cannot %s a key of mode %s; give the key that "
                         "mode or a lower one",
                         key_mode_name(call->caller.mode), adds ? "add" : "make",
                         key_mode_name(mode));
    }
    if (!run || call->caller.run) {
        return NG_OK;
    }
    call_fail(call, NG_ERUN,
              "a caller without the right to run code cannot %s a key that has it",
              adds ? "add" : "make");
    call->staged.hint =
        adds ? ng_str_of("Add it on the gateway's machine: `notegate key add NAME --run`")
             : arena_printf(&call->arena,
                            "Change it on the gateway's machine: `notegate key set %s --run`",
                            id);
    return NG_ERUN;
}

static int add(struct call *call)
{
    const struct ng_value *body = NULL;
    struct key_spec spec;
    struct key *key = NULL;
    char text[KEY_TEXT_MAX];
    struct key_once once = {.text = text};
    int rc = parse_body(call, &body);
    if (rc == NG_OK) {
        rc = keys_read_spec(call, body, &spec);
    }
    if (rc == NG_OK) {
        rc = check_given(call, spec.mode, spec.run, NULL);
    }
    if (rc == NG_OK) { /* before the key is there: a failure must not hide it */
        rc = key_spaces_new(call, &spec, &once.new_spaces, &once.new_space_count);
    }
    if (rc == NG_OK) {
        rc = keys_add(call->gateway->keys, call, &spec, text, &key);
    }
    if (rc == NG_OK) {
        reply(call, key, &once);
        explicit_bzero(text, sizeof(text));
    }
    key_unref(key);
    return rc;
}

static int set(struct call *call, const struct key_job *job)
{
    struct keys *keys = call->gateway->keys;
    const struct ng_value *body = NULL;
    struct key_patch patch;
    struct key_once once = {.text = NULL};
    int rc = parse_body(call, &body);
    if (rc != NG_OK) {
        return rc;
    }
    keys_look_now(keys, call);
    struct key *key = keys_get(keys, job->id);
    if (key == NULL) {
        return unknown_id(call, job->id);
    }
    rc = keys_read_patch(call, key->agent, body, &patch);
    if (rc == NG_OK) {
        enum ng_mode mode =
            (patch.members & KEY_MODE) != 0 ? patch.spec.mode : call->caller.mode;
        rc = check_given(call, mode, patch.spec.run, key->id);
    }
    if (rc == NG_OK && (patch.members & KEY_SPACES) != 0) {
        rc = key_spaces_new(call, &patch.spec, &once.new_spaces, &once.new_space_count);
    }
    if (rc == NG_OK) {
        struct key *changed = NULL;
        rc = keys_change(keys, call, job->id, &patch, &changed);
        if (rc == NG_OK) {
            reply(call, changed, &once);
        }
        key_unref(changed);
    }
    key_unref(key);
    return rc == NG_ENOTFOUND ? unknown_id(call, job->id) : rc;
}

static int show(struct call *call, const struct key_job *job)
{
    struct key *key = keys_get(call->gateway->keys, job->id);
    if (key == NULL) {
        return unknown_id(call, job->id);
    }
    keys_refresh_uses(call->gateway->keys, call);
    reply(call, key, &(struct key_once){.text = NULL});
    key_unref(key);
    return NG_OK;
}

/* Without the port, which is 0 where the system picks one. */
static struct ng_str host_of(struct ng_str listen)
{
    const char *colon = memrchr(listen.data, ':', listen.len);
    return colon == NULL ? listen : str_make(listen.data, (size_t)(colon - listen.data));
}

/* Refuses to revoke the last key: the sentence tells the effect, the hint how to force it. */
static int refuse_last(struct call *call, const struct key *key, enum keys_left left)
{
    const struct config *config = call->gateway->config;
    struct ng_str host = host_of(config_text(config, "listen"));
    bool auto_opens = !str_is(config_text(config, "auth"), "on");
    bool stays_closed = call->gateway->is_public || left == KEYS_LEFT_UNUSABLE || !auto_opens;
    bool stops_start = call->gateway->is_public && left == KEYS_LEFT_NONE;
    const char *then = stays_closed ? "a running gateway refuses all callers except commands "
                                      "on its own machine until another key is added"
                                    : "every program of the gateway's own user on this machine "
                                      "needs no key and has the role admin";
    const char *why = key_has_expired(key)
                          ? " (it has expired, but still closes the gateway to callers without "
                            "a key)"
                          : " (it is paused, but still closes the gateway to callers without a "
                            "key)";
    (void)call_fail(
        call, NG_ECONFLICT,
        "the key %s of %.*s is the last one%s, and this gateway listens on %.*s: without it "
        "%s%s",
        key->id, (int)key->agent.len, key->agent.data, key_live(key) ? " in force" : why,
        shown(host), host.data, then,
        text_if(stops_start, ", and the next start refuses to listen there"));
    call->staged.hint =
        arena_printf(&call->arena,
                     "Add another key first: `notegate key add NAME`. To revoke it anyway: "
                     "`notegate key revoke %s --force`, or DELETE /v1/keys/%s?force=true.",
                     key->id, key->id);
    return NG_ECONFLICT;
}

static int revoke(struct call *call, const struct key_job *job)
{
    struct key *key = NULL;
    enum keys_left left = KEYS_LEFT_SOME;
    bool needed = !str_is(config_text(call->gateway->config, "auth"), "off");
    int rc = keys_revoke(call->gateway->keys, call, job->id,
                         needed && !job->force ? &left : NULL, &key);
    if (rc == NG_ENOTFOUND) {
        return unknown_id(call, job->id);
    }
    if (left != KEYS_LEFT_SOME) {
        rc = refuse_last(call, key, left);
    }
    if (rc == NG_OK) {
        reply(call, key, &(struct key_once){.text = NULL});
    }
    key_unref(key);
    return rc;
}

int key_ops_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    const struct key_job *job = user;
    int rc = authorize(call, job);
    if (rc != NG_OK) {
        return rc;
    }
    switch (job->op) {
    case KEY_OP_LIST:
        return list(call, job);
    case KEY_OP_SHOW:
        return show(call, job);
    case KEY_OP_ADD:
        return add(call);
    case KEY_OP_SET:
        return set(call, job);
    case KEY_OP_REVOKE:
        return revoke(call, job);
    default:
        return NG_EINTERNAL;
    }
}
