/* SPDX-License-Identifier: MIT */
/*
 * keys_record.c - makes a key in memory, converts it from and to its document, and prints it.
 *
 * Gateways of earlier versions read these documents too, and ignore members that they do not
 * know. So that a key has no more rights there:
 * - `tools`, which they compare letter by letter, has only names of tools that the key may use,
 *   and never is empty where there are globs or excluded tools: `allow_tools` and `no_tools`
 * have what was asked for.
 * - `expires` is the time of the pause while the key is paused: `paused_expires` has the
 * expiry.
 */
#include "keys_table.h"

#include <float.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/base/text/glob.h"
#include "core/base/text/hex.h"

#define RECORD_DEPTH 8
#define HASH_CHARS ((size_t)2 * KEY_HASH_BYTES)

/* ---- in memory ---- */

static const struct ng_str *copy_texts(struct arena *arena, const struct ng_str *texts,
                                       size_t count)
{
    struct ng_str *copies = arena_alloc(arena, count * sizeof(*copies));
    for (size_t i = 0; i < count && copies != NULL; i++) {
        copies[i] = arena_copy(arena, texts[i]);
    }
    return copies;
}

struct key *key_new(const char *id, const struct key_spec *spec,
                    const unsigned char hash[KEY_HASH_BYTES])
{
    struct key *key = alloc_zeroed(1, sizeof(*key));
    struct arena *memory = alloc_zeroed(1, sizeof(*memory));
    if (key == NULL || memory == NULL) {
        free(key);
        free(memory);
        return NULL;
    }
    arena_init(memory, 0);
    memory->first = 512;
    atomic_init(&key->refs, 1);
    lock_init(&key->lock, LOCK_KEY);
    key->memory = memory;
    memcpy(key->id, id, KEY_ID_LEN);
    key->agent = arena_copy(memory, spec->agent);
    key->role = spec->role;
    key->mode = spec->mode;
    key->run = spec->run;
    key->restore = spec->restore;
    key->spaces = copy_texts(memory, spec->spaces, spec->space_count);
    key->space_count = spec->space_count;
    key->first_is_default = spec->first_is_default;
    key->tools = copy_texts(memory, spec->tools, spec->tool_count);
    key->tool_count = spec->tool_count;
    key->no_tools = copy_texts(memory, spec->no_tools, spec->no_tool_count);
    key->no_tool_count = spec->no_tool_count;
    key->rate = spec->rate;
    key->created_ms = spec->created_ms;
    key->paused_ms = spec->paused_ms;
    atomic_init(&key->expires_ms, spec->expires_ms);
    atomic_init(&key->paused, spec->paused_ms != 0);
    key->note = arena_copy(memory, spec->note);
    key->made_by = arena_copy(memory, spec->made_by);
    atomic_init(&key->used_ms, 0);
    atomic_init(&key->used_stored_ms, 0);
    memcpy(key->hash, hash, KEY_HASH_BYTES);
    key_fill(key, clock_monotonic_ns());
    if (memory->failed) {
        key_unref(key);
        return NULL;
    }
    return key;
}

void key_spec_of(const struct key *key, struct key_spec *ret)
{
    *ret = (struct key_spec){
        .agent = key->agent,
        .role = key->role,
        .mode = key->mode,
        .run = key->run,
        .restore = key->restore,
        .spaces = key->spaces,
        .space_count = key->space_count,
        .first_is_default = key->first_is_default,
        .tools = key->tools,
        .tool_count = key->tool_count,
        .no_tools = key->no_tools,
        .no_tool_count = key->no_tool_count,
        .rate = key->rate,
        .created_ms = key->created_ms,
        .expires_ms = key_expires_ms(key),
        .paused_ms = key->paused_ms,
        .note = key->note,
        .made_by = key->made_by,
    };
}

/* ---- the document ---- */

/* The members that write_changeable() writes. */
static const char changeable[] =
    "role mode run restore spaces first_is_default tools allow_tools no_tools rate expires "
    "paused paused_expires note";

static void write_text(struct ng_writer *writer, const char *name, struct ng_str text)
{
    if (text.data != NULL) {
        json_name(writer, name);
        json_string(writer, text);
    }
}

/* The members that the document and the listing have in common. */
static void write_common(struct ng_writer *writer, const struct key *key)
{
    json_member_cstring(writer, "role", key_role_name(key->role));
    json_member_cstring(writer, "mode", key_mode_name(key->mode));
    json_member_bool(writer, "run", key->run);
    json_member_bool(writer, "restore", key->restore);
    json_member_strings(writer, "spaces", key->spaces, key->space_count);
}

static void write_tools(struct ng_writer *writer, const struct key *key)
{
    bool globs = key->no_tool_count > 0;
    size_t count = 0;
    json_name(writer, "tools");
    json_array(writer);
    for (size_t i = 0; i < key->tool_count; i++) {
        if (glob_is(key->tools[i])) {
            globs = true;
        } else if (!key_excludes_tool(key, key->tools[i])) {
            json_string(writer, key->tools[i]);
            count++;
        }
    }
    if (globs && count == 0) {
        json_cstring(writer, KEY_NO_TOOL);
    }
    json_end(writer);
    if (globs) {
        json_member_strings(writer, "allow_tools", key->tools, key->tool_count);
        json_member_strings(writer, "no_tools", key->no_tools, key->no_tool_count);
    }
}

static void write_changeable(struct ng_writer *writer, const struct key *key)
{
    int64_t expires_ms = key_expires_ms(key);
    bool paused = key->paused_ms != 0;
    write_common(writer, key);
    json_member_bool(writer, "first_is_default", key->first_is_default);
    write_tools(writer, key);
    json_name(writer, "rate");
    json_number(writer, key->rate);
    json_member_int(writer, "expires", paused ? key->paused_ms : expires_ms);
    if (paused) {
        json_member_int(writer, "paused", key->paused_ms);
        json_member_int(writer, "paused_expires", expires_ms);
    }
    write_text(writer, "note", key->note);
}

int key_write(const struct key *key, struct buf *out)
{
    char hash[HASH_CHARS + 1];
    struct ng_writer writer;
    hex_write(key->hash, KEY_HASH_BYTES, hash);
    json_writer_init(&writer, out);
    json_object(&writer);
    json_member_string(&writer, "agent", key->agent);
    write_changeable(&writer, key);
    json_member_int(&writer, "created", key->created_ms);
    write_text(&writer, "made_by", key->made_by);
    json_member_cstring(&writer, "hash", hash);
    int64_t revoked_ms = atomic_load(&key_state(key)->revoked_ms);
    if (revoked_ms != 0) {
        json_member_int(&writer, "revoked", revoked_ms);
    }
    json_end(&writer);
    return out->rc;
}

int key_write_over(const struct ng_value *present, const struct key *key, struct buf *out)
{
    struct ng_writer writer;
    json_writer_init(&writer, out);
    json_object(&writer);
    for (const struct ng_value *member = present->first; member != NULL;
         member = member->next) {
        if (!str_in_words(member->key, changeable)) {
            json_name_str(&writer, member->key);
            json_copy(&writer, member);
        }
    }
    write_changeable(&writer, key);
    json_end(&writer);
    return out->rc;
}

static bool read_hash(const struct ng_value *value, unsigned char hash[KEY_HASH_BYTES])
{
    return value != NULL && value->type == NG_TYPE_STRING && value->text.len == HASH_CHARS &&
           hex_read(value->text, hash);
}

static bool read_texts(struct arena *arena, const struct ng_value *array, size_t most,
                       const struct ng_str **ret, size_t *ret_count)
{
    if (array == NULL || array->type != NG_TYPE_ARRAY || array->count > most) {
        return false;
    }
    struct ng_str *texts = arena_alloc(arena, array->count * sizeof(*texts));
    size_t count = 0;
    for (const struct ng_value *item = array->first; item != NULL; item = item->next) {
        if (texts == NULL || item->type != NG_TYPE_STRING) {
            return false;
        }
        texts[count++] = item->text;
    }
    *ret = texts;
    *ret_count = count;
    return texts != NULL;
}

static bool read_integer(const struct ng_value *body, const char *name, int64_t *ret)
{
    const struct ng_value *value = json_get(body, name);
    *ret = 0;
    return value == NULL || json_integer(value, ret) == NG_OK;
}

/* Calls a second; absent: no limit. */
static bool read_rate(const struct ng_value *body, double *ret)
{
    const struct ng_value *value = json_get(body, "rate");
    *ret = 0;
    if (value == NULL) {
        return true;
    }
    *ret = json_double(value);
    return value->type == NG_TYPE_NUMBER && *ret >= 0 && *ret <= DBL_MAX;
}

static bool read_word(const struct ng_value *body, const char *name, struct ng_str *ret)
{
    *ret = json_get_text(body, name);
    return ret->data != NULL;
}

/* A member for display only; documents of earlier versions do not have it. */
static struct ng_str read_display_text(const struct ng_value *body, const char *name)
{
    struct ng_str text = json_get_text(body, name);
    return key_note_valid(text) ? text : STR_NONE;
}

/* Absent in documents of earlier versions: false. */
static bool read_bool(const struct ng_value *body, const char *name, bool *ret)
{
    const struct ng_value *value = json_get(body, name);
    *ret = value != NULL && value->type == NG_TYPE_TRUE;
    return value == NULL || *ret || value->type == NG_TYPE_FALSE;
}

static bool read_tools(struct arena *arena, const struct ng_value *body, struct key_spec *spec)
{
    const struct ng_value *tools = json_get(body, "allow_tools");
    const struct ng_value *no_tools = json_get(body, "no_tools");
    if (tools == NULL) {
        tools = json_get(body, "tools");
    }
    return read_texts(arena, tools, KEY_TOOLS_MAX, &spec->tools, &spec->tool_count) &&
           (no_tools == NULL ||
            read_texts(arena, no_tools, KEY_TOOLS_MAX, &spec->no_tools, &spec->no_tool_count));
}

static bool read_expiry(const struct ng_value *body, struct key_spec *spec)
{
    return read_integer(body, "paused", &spec->paused_ms) && spec->paused_ms >= 0 &&
           read_integer(body, spec->paused_ms != 0 ? "paused_expires" : "expires",
                        &spec->expires_ms);
}

static int read_body(struct arena *arena, const struct ng_doc *doc, struct key **ret)
{
    const struct ng_value *body = NULL;
    struct key_spec spec;
    struct ng_str role;
    struct ng_str mode;
    unsigned char hash[KEY_HASH_BYTES];
    int64_t revoked_ms;
    memset(&spec, 0, sizeof(spec));
    if (doc->key.id.len != KEY_ID_LEN ||
        json_parse(arena, doc->json, RECORD_DEPTH, &body, NULL) != NG_OK ||
        !read_word(body, "agent", &spec.agent) || !call_name_valid(spec.agent) ||
        !read_word(body, "role", &role) || !key_parse_role(role, &spec.role) ||
        !read_word(body, "mode", &mode) || !key_parse_mode(mode, &spec.mode) ||
        !read_texts(arena, json_get(body, "spaces"), KEY_SPACES_MAX, &spec.spaces,
                    &spec.space_count) ||
        !read_tools(arena, body, &spec) || !read_expiry(body, &spec) ||
        !read_integer(body, "created", &spec.created_ms) ||
        !read_integer(body, "revoked", &revoked_ms) || !read_rate(body, &spec.rate) ||
        !read_bool(body, "run", &spec.run) || !read_bool(body, "restore", &spec.restore) ||
        !read_bool(body, "first_is_default", &spec.first_is_default) ||
        !read_hash(json_get(body, "hash"), hash)) {
        return NG_EINVAL;
    }
    spec.note = read_display_text(body, "note");
    spec.made_by = read_display_text(body, "made_by");
    struct key *key = key_new(doc->key.id.data, &spec, hash);
    if (key == NULL) {
        return NG_EINTERNAL;
    }
    key->revision = doc->revision;
    atomic_init(&key->revoked_ms, revoked_ms);
    atomic_init(&key->revoked, revoked_ms != 0);
    *ret = key;
    return NG_OK;
}

int key_read(const struct ng_doc *doc, struct key **ret)
{
    struct arena arena;
    arena_init(&arena, 4 * KEY_JSON_MAX);
    int rc = read_body(&arena, doc, ret);
    if (rc == NG_EINVAL && arena.oom) {
        rc = NG_EINTERNAL; /* the document may be valid */
    }
    arena_done(&arena);
    return rc;
}

/* ---- printing ---- */

static void print_time(struct ng_writer *writer, const char *name, int64_t time_ms)
{
    char text[KEY_TIME_SIZE];
    rfc3339_write(time_ms, RFC3339_SECONDS, text);
    json_name(writer, name);
    json_cstring(writer, text);
}

static const char *state_name(const struct key *key)
{
    if (key_is_revoked(key)) {
        return "revoked";
    }
    if (key_live(key)) {
        return "live";
    }
    return key_has_expired(key) ? "expired" : "paused";
}

void key_print(const struct key *key, struct ng_writer *writer)
{
    int64_t revoked_ms = atomic_load(&key_state(key)->revoked_ms);
    int64_t expires_ms = key_expires_ms(key);
    const char *state = state_name(key);
    json_member_cstring(writer, "id", key->id);
    json_member_string(writer, "agent", key->agent);
    write_common(writer, key);
    if (key->tool_count > 0) {
        json_member_strings(writer, "tools", key->tools, key->tool_count);
    }
    if (key->no_tool_count > 0) {
        json_member_strings(writer, "no_tools", key->no_tools, key->no_tool_count);
    }
    if (key->rate > 0) {
        json_name(writer, "rate");
        json_number(writer, key->rate);
    }
    int64_t used_ms = atomic_load(&key_state(key)->used_ms);
    print_time(writer, "created", key->created_ms);
    write_text(writer, "made_by", key->made_by);
    write_text(writer, "note", key->note);
    if (used_ms != 0) {
        print_time(writer, "last_used", used_ms);
    }
    if (expires_ms != 0) {
        print_time(writer, "expires", expires_ms);
    }
    if (revoked_ms != 0) {
        print_time(writer, "revoked", revoked_ms);
    }
    json_member_bool(writer, "paused", key_is_paused(key));
    json_member_cstring(writer, "state", state);
}
