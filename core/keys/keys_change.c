/* SPDX-License-Identifier: MIT */
/* keys_change.c - changes members of a key, pauses it and resumes it. */
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/store/store.h"
#include "keys_table.h"

/* Bytes of the names of all members, with a space between two. */
#define MEMBERS_MAX ((size_t)256)

static const struct {
    const char *name;
    unsigned bit;
} member_names[] = {
    {"role", KEY_ROLE},         {"mode", KEY_MODE},     {"run", KEY_RUN},
    {"restore", KEY_RESTORE},   {"spaces", KEY_SPACES}, {"tools", KEY_TOOLS},
    {"no_tools", KEY_NO_TOOLS}, {"rate", KEY_RATE},     {"expires", KEY_EXPIRES},
    {"note", KEY_NOTE},         {"paused", KEY_PAUSED},
};

/* ---- members ---- */

static bool texts_differ(const struct ng_str *a, size_t a_count, const struct ng_str *b,
                         size_t b_count)
{
    bool differ = a_count != b_count;
    for (size_t i = 0; !differ && i < a_count; i++) {
        differ = !str_equal(a[i], b[i]);
    }
    return differ;
}

unsigned key_differences(const struct key *a, const struct key *b)
{
    const struct {
        bool differs;
        unsigned bit;
    } members[] = {
        {a->role != b->role, KEY_ROLE},
        {a->mode != b->mode, KEY_MODE},
        {a->run != b->run, KEY_RUN},
        {a->restore != b->restore, KEY_RESTORE},
        {a->first_is_default != b->first_is_default ||
             texts_differ(a->spaces, a->space_count, b->spaces, b->space_count),
         KEY_SPACES},
        {texts_differ(a->tools, a->tool_count, b->tools, b->tool_count), KEY_TOOLS},
        {texts_differ(a->no_tools, a->no_tool_count, b->no_tools, b->no_tool_count),
         KEY_NO_TOOLS},
        {a->rate < b->rate || a->rate > b->rate, KEY_RATE},
        {key_expires_ms(a) != key_expires_ms(b), KEY_EXPIRES},
        {!str_equal(a->note, b->note), KEY_NOTE},
        {(a->paused_ms != 0) != (b->paused_ms != 0), KEY_PAUSED},
    };
    unsigned differ = 0;
    for (size_t i = 0; i < NG_COUNT(members); i++) {
        differ |= members[i].differs ? members[i].bit : 0;
    }
    return differ;
}

/* Puts the members of the patch over those of `spec`. */
static void patch_apply(const struct key_patch *patch, struct key_spec *spec)
{
    const struct key_spec *from = &patch->spec;
    const unsigned has = patch->members;
    spec->role = (has & KEY_ROLE) != 0 ? from->role : spec->role;
    spec->mode = (has & KEY_MODE) != 0 ? from->mode : spec->mode;
    spec->run = (has & KEY_RUN) != 0 ? from->run : spec->run;
    spec->restore = (has & KEY_RESTORE) != 0 ? from->restore : spec->restore;
    spec->rate = (has & KEY_RATE) != 0 ? from->rate : spec->rate;
    spec->expires_ms = (has & KEY_EXPIRES) != 0 ? from->expires_ms : spec->expires_ms;
    spec->note = (has & KEY_NOTE) != 0 ? from->note : spec->note;
    if ((has & KEY_SPACES) != 0) {
        spec->spaces = from->spaces;
        spec->space_count = from->space_count;
        spec->first_is_default = from->first_is_default;
    }
    if ((has & KEY_TOOLS) != 0) {
        spec->tools = from->tools;
        spec->tool_count = from->tool_count;
    }
    if ((has & KEY_NO_TOOLS) != 0) {
        spec->no_tools = from->no_tools;
        spec->no_tool_count = from->no_tool_count;
    }
    /* The time of a pause is that of the first one. */
    if ((has & KEY_PAUSED) != 0 && (from->paused_ms == 0 || spec->paused_ms == 0)) {
        spec->paused_ms = from->paused_ms;
    }
}

/* ---- the change ---- */

struct key_change {
    const struct key_patch *patch;
    struct key_log_entry *logged;
    struct key *made; /* the new version, a reference; NULL: nothing differs */
    unsigned changed; /* enum key_member, or-ed */
};

static int write_version(const struct ng_doc *present, struct ng_draft *next,
                         const struct key *made)
{
    struct buf json;
    buf_init(&json, KEY_JSON_MAX);
    int rc = key_write_over(present->body, made, &json);
    if (rc == NG_OK) {
        rc = store_draft_json(next, buf_str(&json));
    }
    buf_done(&json);
    return rc;
}

/* *ret: the version with the changes; a reference. */
static int make_version(struct call *call, const struct key *before,
                        const struct key_patch *patch, struct key **ret)
{
    struct key_spec spec;
    key_spec_of(before, &spec);
    patch_apply(patch, &spec);
    int rc = key_spec_check(call, &spec, patch->members);
    if (rc != NG_OK) {
        return rc;
    }
    *ret = key_new(before->id, &spec, before->hash);
    return *ret != NULL ? NG_OK : call_no_memory(call);
}

/* Runs again if another change came first: on what that one left. */
static int write_change(struct ng_call *pub, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    struct key_change *change = user;
    struct call *call = call_of(pub);
    struct key *before = NULL;
    key_unref(change->made);
    change->made = NULL;
    change->changed = 0;
    change->logged->revision = 0;
    if (present->revision == 0 || present->deleted || present->body == NULL) {
        return NG_ENOTFOUND;
    }
    if (json_get(present->body, "revoked") != NULL) {
        return call_fail(call, NG_ECONFLICT, "the key %s is revoked; add another one",
                         change->logged->id);
    }
    int rc = key_read(present, &before);
    if (rc != NG_OK) {
        return call_fail(call, rc == NG_EINVAL ? NG_ECONFLICT : rc,
                         "the key %s cannot be read; revoke it and add another one",
                         change->logged->id);
    }
    rc = make_version(call, before, change->patch, &change->made);
    if (rc == NG_OK) {
        change->changed = key_differences(before, change->made);
    }
    if (rc == NG_OK && change->changed != 0) {
        key_log_set(change->logged, present, false);
        change->made->revision = change->logged->revision;
        rc = write_version(present, next, change->made);
    }
    key_unref(before);
    return rc;
}

static void tell_change(const struct key_change *change, const struct call *call)
{
    const struct key *key = change->made;
    const char *what = "key_set";
    struct buf names;
    buf_init(&names, MEMBERS_MAX);
    for (size_t i = 0; i < NG_COUNT(member_names); i++) {
        if ((change->changed & member_names[i].bit) != 0) {
            (void)buf_printf(&names, "%s%s", names.len > 0 ? " " : "", member_names[i].name);
        }
    }
    if ((change->changed & KEY_PAUSED) != 0) {
        what = key->paused_ms != 0 ? "key_pause" : "key_resume";
    }
    keys_audit(what, key, buf_str(&names), call);
    log_write(NG_LOG_INFO, "keys", "key %s of %.*s changed by %.*s: %s", key->id,
              (int)key->agent.len, key->agent.data, (int)call->caller.agent.len,
              call->caller.agent.data, buf_cstr(&names));
    buf_done(&names);
}

int keys_change(struct keys *keys, struct call *call, struct ng_str id,
                const struct key_patch *patch, struct key **ret)
{
    struct key_log log = {.count = 1};
    struct key_change change = {.patch = patch, .logged = &log.items[0]};
    if (id.len != KEY_ID_LEN) {
        return call_fail(call, NG_ENOTFOUND, "no key has the id \"%.*s\"",
                         (int)utf8_cut(id, KEY_TEXT_MAX).len, id.data);
    }
    memcpy(log.items[0].id, id.data, KEY_ID_LEN);
    struct ng_change changes[2] = {
        {.size = sizeof(changes[0]),
         .key = keys_document(id),
         .fn = write_change,
         .user = &change},
        keys_log_change(&log),
    };
    int rc = store_write_wait(keys->gateway->store, call, changes, NG_COUNT(changes));
    if (rc == NG_OK && change.changed != 0) {
        key_ref(change.made);
        if (keys_put(keys, change.made, 0)) {
            keys_tell_changed(keys);
        }
        tell_change(&change, call);
    }
    key_unref(change.made);
    if (rc != NG_OK) {
        return rc;
    }
    *ret = keys_get(keys, id);
    return *ret != NULL ? NG_OK
                        : call_fail(call, NG_ENOTFOUND, "no key has the id \"%.*s\"",
                                    KEY_ID_LEN, id.data);
}
