/* SPDX-License-Identifier: MIT */
/* call.c - the life of a call: creation, caller, result, end. */
#include "call.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "buffered.h"
#include "core/base/lock.h"
#include "core/base/log_record.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "gateway.h"
#include "key.h"
#include "plugin.h"

#define CALL_NAME_MAX 64

/* Sanitizers shall see the end of every call: then no memory is kept for others. */
#ifdef NOTEGATE_SANITIZED
#define CALL_KEEPS_SPARES false
#else
#define CALL_KEEPS_SPARES true
#endif

/* Zeroed, with an arena that may already have its first block. */
static struct call *call_allocate(struct gateway *gateway)
{
    struct arena arena;
    struct call *call = NULL;
    if (gateway != NULL) {
        struct spare_calls *spare = &gateway->spare_calls;
        lock_take(&spare->lock);
        if (spare->count > 0) {
            call = spare->calls[--spare->count];
        }
        lock_release(&spare->lock);
    }
    if (call != NULL) {
        arena = call->arena;
    } else {
        call = alloc_bytes(sizeof(*call));
        arena_init(&arena, CALL_MEMORY_MAX);
    }
    if (call != NULL) {
        memset(call, 0, offsetof(struct call, late_text));
        call->arena = arena;
    }
    return call;
}

static bool spare_keep(struct spare_calls *spare, struct call *call)
{
    lock_take(&spare->lock);
    bool room = spare->count < CALL_SPARES_MAX;
    if (room) {
        spare->calls[spare->count++] = call;
    }
    lock_release(&spare->lock);
    return room;
}

static void call_deallocate(struct call *call)
{
    struct gateway *gateway = call->gateway;
    arena_reset(&call->arena);
    call->arena.max = CALL_MEMORY_MAX;
    if (!CALL_KEEPS_SPARES || gateway == NULL || !spare_keep(&gateway->spare_calls, call)) {
        arena_done(&call->arena);
        free(call);
    }
}

void call_init_spares(struct gateway *gateway)
{
    lock_init(&gateway->spare_calls.lock, LOCK_SPARE_CALLS);
    gateway->spare_calls.count = 0;
}

void call_free_spares(struct gateway *gateway)
{
    struct spare_calls *spare = &gateway->spare_calls;
    while (spare->count > 0) {
        struct call *call = spare->calls[--spare->count];
        arena_done(&call->arena);
        free(call);
    }
    lock_done(&spare->lock);
}

struct call *call_new(struct gateway *gateway)
{
    struct call *call = call_allocate(gateway);
    if (call == NULL) {
        return NULL;
    }
    call->gateway = gateway;
    if (gateway != NULL) {
        call->pub.host = &gateway->host;
    } else {
        call->pub.host = NULL;
    }
    call->pub.caller = &call->caller;
    call->pub.tool = str_make("", 0);
    call->may_block = true;
    atomic_init(&call->refs, 1);
    atomic_init(&call->pending, 0);
    atomic_init(&call->answered, 0);
    atomic_init(&call->failed_rc, 0);
    atomic_init(&call->flags, 0);
    call->user = CALL_NO_USER;
    call->caller.size = sizeof(call->caller);
    call->caller.agent = ng_str_of("local");
    call->caller.role = NG_ROLE_ADMIN;
    call->caller.mode = NG_MODE_AGENT;
    call->caller.run = true;
    call->caller.rights = NG_RIGHT_RESTORE;
    buf_init(&call->reply_buf, CALL_MEMORY_MAX);
    buf_init(&call->details_buf, CALL_MEMORY_MAX);
    call->reply_buf.oom = &call->arena.oom;
    call->details_buf.oom = &call->arena.oom;
    return call;
}

void call_unref(struct call *call)
{
    if (call == NULL || atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (struct pin *pin = call->pins; pin != NULL; pin = pin->next) {
        pin->release(pin->object);
    }
    if (call->bytes_counted > 0) {
        buffered_give(call->gateway, call->caller.agent, call->bytes_counted);
    }
    buf_done(&call->reply_buf);
    buf_done(&call->details_buf);
    key_unref(call->key);
    call_deallocate(call);
}

int call_count_bytes(struct call *call, size_t bytes)
{
    struct gateway *gateway = call->gateway;
    if (bytes > SIZE_MAX / 2 - call->bytes) {
        return call_no_memory(call);
    }
    size_t all = call->bytes + bytes;
    size_t steps = (all + CALL_UNCOUNTED_BYTES - 1) / CALL_UNCOUNTED_BYTES;
    size_t more = 0;
    if (steps > 1) {
        more = steps * CALL_UNCOUNTED_BYTES - call->bytes_counted;
    }
    if (more > 0 && gateway != NULL && gateway->buffered != NULL) {
        size_t limit = atomic_load(&gateway->limits.buffered);
        if (all > limit) {
            return call_fail(call, NG_ETOOLARGE,
                             "This takes %zu bytes of memory, and all calls together may use "
                             "%zu (limits.buffered).",
                             all, limit);
        }
        if (buffered_take(gateway, call->caller.agent, call->bytes_counted, more) != NG_OK) {
            return call_fail(
                call, NG_EBUSY,
                "The files of running calls use all memory that they may use (limits.buffered, "
                "of which one agent has half). Try again in a moment.");
        }
        call->bytes_counted += more;
    }
    call->bytes = all;
    return NG_OK;
}

void call_move(struct call *call, enum call_phase to)
{
    static const bool may[CALL_DONE + 1][CALL_DONE + 1] = {
        [CALL_NEW] = {[CALL_ADMITTED] = true, [CALL_DONE] = true},
        [CALL_ADMITTED] = {[CALL_INLINE] = true, [CALL_ASYNC] = true, [CALL_DONE] = true},
        [CALL_INLINE] = {[CALL_ADMITTED] = true, [CALL_ASYNC] = true, [CALL_DONE] = true},
        [CALL_ASYNC] = {[CALL_DONE] = true},
    };
    assert(may[call->phase][to]);
    (void)may;
    call->phase = to;
}

int call_pin(struct call *call, void (*release)(void *object), void *object)
{
    struct pin *pin = arena_alloc(&call->arena, sizeof(*pin));
    if (pin == NULL) {
        release(object);
        return NG_EINTERNAL;
    }
    pin->release = release;
    pin->object = object;
    pin->next = call->pins;
    call->pins = pin;
    return NG_OK;
}

void call_cancel(struct call *call)
{
    call_set(call, CALL_CANCELLED);
    if (call->on_cancel != NULL) {
        call->on_cancel(call, call->on_user);
    }
}

struct call_change *call_note_change(struct call *call, const struct ng_key *key,
                                     uint64_t revision)
{
    call->change_count++;
    if (call->change_count > CALL_CHANGES_MAX && !gateway_keeps_audit(call->gateway)) {
        return NULL;
    }
    struct call_change *change = arena_zalloc(&call->arena, sizeof(*change));
    if (change == NULL) {
        return NULL;
    }
    change->collection = arena_copy(&call->arena, key->collection);
    change->space = arena_copy(&call->arena, key->space);
    change->id = arena_copy(&call->arena, utf8_cut(key->id, CALL_CHANGE_ID_MAX));
    change->revision = revision;
    change->next = call->changes;
    call->changes = change;
    return change;
}

bool call_name_valid(struct ng_str name)
{
    if (name.len == 0 || name.len > CALL_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '.' && c != '_' && c != '@' && c != '-') {
            return false;
        }
    }
    return true;
}

static bool call_space_valid(struct ng_str space)
{
    if (space.len > 1 && space.data[0] == '~') {
        return call_name_valid(str_make(space.data + 1, space.len - 1));
    }
    return call_name_valid(space);
}

int call_name_space(struct call *call, struct ng_str space)
{
    if (!call_space_valid(space)) {
        return call_fail(call, NG_EINVAL,
                         "the space name \"%.*s\" is not of the form [A-Za-z0-9._@-]{1,64}, or "
                         "that behind a ~",
                         (int)utf8_cut(space, CALL_NAME_MAX).len, space.data);
    }
    call->caller.space = arena_copy(&call->arena, space);
    call->caller.space_named = true;
    if (call->caller.space.data == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    return NG_OK;
}

static void set_rights(struct call *call)
{
    bool restore =
        call->caller.role == NG_ROLE_ADMIN || (call->key != NULL && call->key->restore);
    call->caller.rights = restore ? NG_RIGHT_RESTORE : 0;
}

void call_take_key(struct call *call, struct key *key)
{
    key_ref(key);
    key_unref(call->key);
    call->key = key;
    call->caller.key_id = key != NULL ? ng_str_of(key->id) : STR_NONE;
    set_rights(call);
}

void call_set_run(struct call *call, struct ng_str run)
{
    size_t len = size_min(run.len, sizeof(call->run_text));
    call->caller.run_id = STR_NONE;
    if (len > 0) {
        memcpy(call->run_text, run.data, len);
        call->caller.run_id = str_make(call->run_text, len);
    }
}

int call_set_caller(struct call *call, struct ng_str agent, struct ng_str space,
                    enum ng_role role, enum ng_mode mode, bool run)
{
    if (agent.data != NULL) {
        if (!call_name_valid(agent)) {
            return call_fail(call, NG_EINVAL,
                             "the agent name \"%.*s\" is not of the form [A-Za-z0-9._@-]{1,64}",
                             (int)utf8_cut(agent, CALL_NAME_MAX).len, agent.data);
        }
        call->caller.agent = arena_copy(&call->arena, agent);
    }
    call->caller.role = role;
    call->caller.mode = mode;
    call->caller.run = run;
    set_rights(call);
    if (call->caller.agent.data == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    return space.data != NULL ? call_name_space(call, space) : NG_OK;
}

int call_allow_spaces(struct call *call, const struct ng_str *spaces, size_t count, bool all)
{
    struct ng_str *copies = arena_alloc(&call->arena, count * sizeof(*copies));
    if (copies == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        copies[i] = arena_copy(&call->arena, spaces[i]);
        if (copies[i].data == NULL) {
            return call_fail(call, NG_EINTERNAL, "out of memory");
        }
    }
    call->caller.spaces = copies;
    call->caller.space_count = count;
    call->caller.all_spaces = all;
    return NG_OK;
}

void call_take_origin(struct call *call, const struct call *from)
{
    call->face = from->face;
    call->remote = arena_copy(&call->arena, from->remote);
    call->caller.client = arena_copy(&call->arena, from->caller.client);
    call->method = arena_copy(&call->arena, from->method);
    call->target = arena_copy(&call->arena, from->target);
    call->caller.request_id = arena_copy(&call->arena, from->caller.request_id);
    call->caller.traceparent = arena_copy(&call->arena, from->caller.traceparent);
    call->caller.session = arena_copy(&call->arena, from->caller.session);
    call_set_run(call, from->caller.run_id);
    call_take_key(call, from->key);
}

struct pool_group *call_workers(const struct call *call)
{
    struct plugin *plugin = (struct plugin *)(uintptr_t)call_plugin(call); /* for its count */
    if (plugin == NULL) {
        return NULL;
    }
    return &plugin->workers;
}

static const struct ng_code *plugin_code(const struct plugin *plugin, int rc)
{
    size_t index = (size_t)(NG_EPLUGIN - rc);
    if (index >= plugin->desc.code_count) {
        return NULL;
    }
    return &plugin->desc.codes[index];
}

const char *error_name(const struct tool *tool, int rc)
{
    if (tool != NULL && rc <= NG_EPLUGIN) {
        const struct ng_code *code = plugin_code(tool->plugin, rc);
        if (code != NULL) {
            return code->name;
        }
        return "INTERNAL";
    }
    if (tool != NULL && rc == NG_EINVAL && tool->plugin->desc.invalid_input != NULL) {
        return tool->plugin->desc.invalid_input;
    }
    switch (rc) {
#define ERROR_NAME_CASE(symbol, value, name, status, text)                                     \
    case symbol:                                                                               \
        return name;
        NG_ERROR_MAP(ERROR_NAME_CASE)
#undef ERROR_NAME_CASE
    default:
        return "INTERNAL";
    }
}

int error_status(const struct tool *tool, int rc)
{
    if (tool != NULL && rc <= NG_EPLUGIN) {
        const struct ng_code *code = plugin_code(tool->plugin, rc);
        if (code != NULL) {
            return code->status;
        }
        return 500;
    }
    switch (rc) {
#define ERROR_STATUS_CASE(symbol, value, name, status, text)                                   \
    case symbol:                                                                               \
        return status;
        NG_ERROR_MAP(ERROR_STATUS_CASE)
#undef ERROR_STATUS_CASE
    default:
        return 500;
    }
}

const char *call_error_name(const struct call *call, int rc)
{
    const struct ng_code *code = NULL;
    if (rc <= NG_EPLUGIN && call->plugin != NULL) {
        code = plugin_code(call->plugin, rc);
    }
    if (code != NULL) {
        return code->name;
    }
    return error_name(call->tool, rc);
}

int call_error_status(const struct call *call, int rc)
{
    const struct ng_code *code = NULL;
    if (rc <= NG_EPLUGIN && call->plugin != NULL) {
        code = plugin_code(call->plugin, rc);
    }
    if (code != NULL) {
        return code->status;
    }
    return error_status(call->tool, rc);
}

struct ng_str call_shorten(struct call *call, struct ng_str text, size_t max)
{
    struct buf cut;
    buf_init(&cut, max);
    cut.oom = &call->arena.oom;
    if (text.len > max) {
        (void)buf_add_shortened(&cut, text, max);
        text = buf_str(&cut);
    }
    struct ng_str copy = arena_copy(&call->arena, text);
    if (copy.data == NULL) {
        /* All of the call's memory is used, and that is often the failure to report. */
        call->arena.max += CALL_MESSAGE_RESERVE;
        copy = arena_copy(&call->arena, text);
        call->arena.max -= CALL_MESSAGE_RESERVE;
    }
    buf_done(&cut);
    return copy;
}

int call_vfail(struct call *call, int code, const char *format, va_list args)
{
    struct buf text;
    buf_init(&text, CALL_MEMORY_MAX);
    text.oom = &call->arena.oom;
    int rc = buf_vprintf(&text, format, args);
    call_cut_echoes(call, &text);
    struct result *staged = &call->staged;
    staged->rc = code;
    staged->message =
        rc == NG_ETOOLARGE
            ? ng_str_of("the failure has a text that is longer than a call's memory")
            : call_shorten(call, buf_str(&text), CALL_MESSAGE_MAX);
    if (staged->message.data == NULL) {
        staged->message = ng_str_of("out of memory while a failure was described");
    }
    staged->has_text = false;
    buf_done(&text);
    return code;
}

int call_fail(struct call *call, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    call_vfail(call, code, format, args);
    va_end(args);
    return code;
}

void call_set_rest(struct call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(call->rest_text, sizeof(call->rest_text), format, args);
    va_end(args);
    call_set(call, CALL_HAS_REST);
}

int call_no_memory(struct call *call)
{
    return call_fail(call, NG_EINTERNAL,
                     "out of memory, or over what one call may use (%zu bytes)",
                     CALL_MEMORY_MAX);
}

void call_fail_later(struct call *call, int code, const char *sentence)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&call->failed_rc, &none, 1)) {
        (void)snprintf(call->failed_text, sizeof(call->failed_text), "%s", sentence);
        atomic_store(&call->failed_rc, code);
    }
}

void call_reset_result(struct call *call)
{
    memset(&call->staged, 0, sizeof(call->staged));
    buf_clear(&call->reply_buf);
    buf_clear(&call->details_buf);
    call->reply_writer.buf = NULL;
    call->details_writer.buf = NULL;
    call->asks = NULL;
}

bool call_set_meta(struct call *call, struct ng_str name, struct ng_str text)
{
    struct result_meta **at = &call->staged.meta;
    struct ng_str copy = arena_copy(&call->arena, text);
    while (*at != NULL && !str_equal((*at)->name, name)) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        struct result_meta *made = arena_zalloc(&call->arena, sizeof(*made));
        if (made == NULL) {
            return false;
        }
        made->name = arena_copy(&call->arena, name);
        *at = made;
    }
    (*at)->text = copy;
    return copy.data != NULL && (*at)->name.data != NULL;
}

void call_print_meta(const struct result *result, struct buf *out)
{
    for (const struct result_meta *at = result->meta; at != NULL; at = at->next) {
        (void)buf_add_json(out, at->name);
        (void)buf_add_char(out, ':');
        (void)buf_add_json(out, at->text);
        if (at->next != NULL) {
            (void)buf_add_char(out, ',');
        }
    }
}

int call_print_error(const struct call *call, struct buf *out)
{
    const struct result *result = &call->final;
    struct ng_writer writer;
    json_writer_init(&writer, out);
    json_object(&writer);
    json_name(&writer, "error");
    json_bool(&writer, true);
    json_name(&writer, "code");
    json_cstring(&writer, result->code);
    json_name(&writer, "message");
    json_string(&writer, result->message);
    if (result->hint.data != NULL) {
        json_name(&writer, "hint");
        json_string(&writer, result->hint);
    }
    if (result->details.data != NULL) {
        json_name(&writer, "details");
        json_raw(&writer, result->details);
    }
    json_end(&writer);
    return out->rc;
}

bool call_has_space(const struct ng_caller *caller, struct ng_str space)
{
    for (size_t i = 0; i < caller->space_count; i++) {
        if (str_equal(caller->spaces[i], space)) {
            return true;
        }
    }
    return false;
}
