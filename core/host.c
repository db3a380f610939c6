/* SPDX-License-Identifier: MIT */
/* host.c - the table of services handed to plugins: thin functions over the core's modules. */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "gateway.h"
#include "idem.h"
#include "journal.h"
#include "keys.h"
#include "listing.h"
#include "log.h"
#include "str.h"

/* Between two lines of the log about changes that no call waits for. */
#define HOST_TELL_MS 1000

/* ---- memory and answers ---- */

static void *host_alloc(struct ng_call *pub, size_t bytes)
{
    return arena_alloc(&call_of(pub)->arena, bytes);
}

static struct ng_str host_format(struct ng_call *pub, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static struct ng_str host_format(struct ng_call *pub, const char *format, ...)
{
    struct ng_str result = {NULL, 0};
    struct buf text;
    va_list args;
    va_start(args, format);
    buf_init(&text, CALL_MEMORY_MAX);
    text.starved = &call_of(pub)->arena.starved;
    if (buf_vprintf(&text, format, args) == NG_OK) {
        result = arena_copy(&call_of(pub)->arena, str_make(buf_cstr(&text), text.len));
    } else {
        call_of(pub)->arena.failed = true;
    }
    va_end(args);
    buf_done(&text);
    return result;
}

static int host_reply_parts(struct ng_call *pub, const struct ng_str *pieces, size_t count)
{
    struct call *call = call_of(pub);
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += pieces[i].len;
    }
    char *text = arena_alloc(&call->arena, size + 1);
    if (text == NULL) {
        return call_no_memory(call);
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len > 0) {
            memcpy(text + at, pieces[i].data, pieces[i].len);
            at += pieces[i].len;
        }
    }
    text[size] = '\0';
    call->work.text = str_make(text, size);
    call->work.has_text = true;
    call->work.is_json = false;
    call->reply_open = false;
    return NG_OK;
}

static int host_reply(struct ng_call *pub, struct ng_str text)
{
    return host_reply_parts(pub, &text, 1);
}

static struct ng_writer *host_reply_json(struct ng_call *pub)
{
    struct call *call = call_of(pub);
    buf_clear(&call->reply_buf);
    json_writer_init(&call->reply_writer, &call->reply_buf);
    call->reply_open = true;
    return &call->reply_writer;
}

static struct part *host_add_part(struct call *call, enum part_kind kind)
{
    struct part *part = arena_zalloc(&call->arena, sizeof(*part));
    if (part == NULL) {
        return NULL;
    }
    part->kind = kind;
    if (call->work.last_part == NULL) {
        call->work.parts = part;
    } else {
        call->work.last_part->next = part;
    }
    call->work.last_part = part;
    return part;
}

static int host_reply_media(struct ng_call *pub, const char *kind, const char *mime_type,
                            struct ng_str bytes)
{
    struct call *call = call_of(pub);
    bool audio = strcmp(kind, "audio") == 0;
    struct part *part = host_add_part(call, audio ? PART_AUDIO : PART_IMAGE);
    if (part == NULL) {
        return call_no_memory(call);
    }
    part->mime_type = arena_copy(&call->arena, ng_str_of(mime_type));
    part->data = arena_copy(&call->arena, bytes);
    bool good = part->data.data != NULL && (mime_type == NULL || part->mime_type.data != NULL);
    return good ? NG_OK : call_no_memory(call);
}

static int host_reply_resource(struct ng_call *pub, struct ng_str uri, const char *mime_type,
                               struct ng_str content, bool is_text)
{
    struct call *call = call_of(pub);
    struct part *part = host_add_part(call, PART_RESOURCE);
    if (part == NULL) {
        return call_no_memory(call);
    }
    part->uri = arena_copy(&call->arena, uri);
    part->mime_type = arena_copy(&call->arena, ng_str_of(mime_type));
    part->data = arena_copy(&call->arena, content);
    part->is_text = is_text;
    bool good = part->data.data != NULL && part->uri.data != NULL &&
                (mime_type == NULL || part->mime_type.data != NULL);
    return good ? NG_OK : call_no_memory(call);
}

static int host_reply_link(struct ng_call *pub, struct ng_str uri, struct ng_str name,
                           const char *mime_type)
{
    struct call *call = call_of(pub);
    struct part *part = host_add_part(call, PART_LINK);
    if (part == NULL) {
        return call_no_memory(call);
    }
    part->uri = arena_copy(&call->arena, uri);
    part->name = arena_copy(&call->arena, name);
    part->mime_type = arena_copy(&call->arena, ng_str_of(mime_type));
    bool good = part->uri.data != NULL && (name.data == NULL || part->name.data != NULL) &&
                (mime_type == NULL || part->mime_type.data != NULL);
    return good ? NG_OK : call_no_memory(call);
}

static int host_revision_number(struct ng_call *pub, uint64_t revision)
{
    struct result *work = &call_of(pub)->work;
    work->revision_kind = REVISION_NUMBER;
    work->revision_number = revision;
    return NG_OK;
}

static int host_revision_text(struct ng_call *pub, struct ng_str revision)
{
    struct call *call = call_of(pub);
    call->work.revision_kind = REVISION_TEXT;
    call->work.revision_text = arena_copy(&call->arena, revision);
    return call->work.revision_text.data == NULL ? call_no_memory(call) : NG_OK;
}

static int host_fail(struct ng_call *pub, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int host_fail(struct ng_call *pub, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    call_vfail(call_of(pub), code, format, args);
    va_end(args);
    return code;
}

static int host_fail_text(struct ng_call *pub, int code, struct ng_str message)
{
    struct call *call = call_of(pub);
    call_fail(call, code, "%s", "");
    struct ng_str copy = arena_copy(&call->arena, message);
    call->work.message =
        copy.data != NULL ? copy : ng_str_of("out of memory while a failure was described");
    return code;
}

static int host_fail_after(struct ng_call *pub, int code, struct ng_str message)
{
    struct call *call = call_of(pub);
    struct ng_str copy = arena_copy(&call->arena, message);
    call->after_rc = copy.data == NULL ? NG_EINTERNAL : code;
    call->after_text =
        copy.data == NULL ? ng_str_of("out of memory while a failure was described") : copy;
    return copy.data == NULL ? NG_EINTERNAL : NG_OK;
}

static int host_when_ended(struct ng_call *pub, ng_ended_fn *ended, void *user)
{
    struct call *call = call_of(pub);
    struct call_end *end = arena_alloc(&call->arena, sizeof(*end));
    if (end == NULL) {
        return call_no_memory(call);
    }
    *end = (struct call_end){ended, user, call->ends};
    call->ends = end;
    return NG_OK;
}

static void host_hint(struct ng_call *pub, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void host_hint(struct ng_call *pub, const char *format, ...)
{
    struct call *call = call_of(pub);
    struct buf text;
    va_list args;
    va_start(args, format);
    buf_init(&text, CALL_MEMORY_MAX);
    text.starved = &call->arena.starved;
    if (buf_vprintf(&text, format, args) == NG_OK) {
        call->work.hint = arena_copy(&call->arena, buf_str(&text));
    }
    va_end(args);
    buf_done(&text);
}

static struct ng_writer *host_details(struct ng_call *pub)
{
    struct call *call = call_of(pub);
    buf_clear(&call->details_buf);
    json_writer_init(&call->details_writer, &call->details_buf);
    call->details_open = true;
    return &call->details_writer;
}

/* ---- the running call ---- */

static void host_progress(struct ng_call *pub, double done, double total, struct ng_str message)
{
    struct call *call = call_of(pub);
    if (call->on_progress != NULL) {
        call->on_progress(call, done, total, message, call->on_user);
    }
}

static void host_shield(struct ng_call *pub)
{
    atomic_store(&call_of(pub)->shielded, true);
}

static struct ng_str host_once(struct ng_call *pub)
{
    return idem_once(call_of(pub));
}

static bool host_cancelled(struct ng_call *pub)
{
    const struct call *call = call_of(pub);
    if (atomic_load_explicit(&call->shielded, memory_order_relaxed)) {
        return false;
    }
    /* Whom the timers watch has been answered when it hears of its deadline: a tool that ends
     * because of it would be taken for one that is done. */
    return atomic_load_explicit(&call->cancelled, memory_order_relaxed) ||
           (call->gateway != NULL &&
            atomic_load_explicit(&call->gateway->cancelling, memory_order_relaxed)) ||
           (!atomic_load_explicit(&call->timed, memory_order_relaxed) &&
            call->deadline_ns != 0 && clock_monotonic_ns() >= call->deadline_ns);
}

static int64_t host_remaining_ms(struct ng_call *pub)
{
    const struct call *call = call_of(pub);
    if (call->deadline_ns == 0) {
        return INT64_MAX;
    }
    int64_t left = (call->deadline_ns - clock_monotonic_ns()) / 1000000;
    return left < 0 ? 0 : left;
}

static bool host_may_block(struct ng_call *pub)
{
    return call_of(pub)->may_block;
}

static int64_t host_now_ms(void)
{
    return clock_unix_ms();
}

static void host_log(struct ng_call *pub, enum ng_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void host_log(struct ng_call *pub, enum ng_level level, const char *format, ...)
{
    const struct call *call = call_of(pub);
    const char *where = call->tool != NULL ? call->tool->plugin->desc.name : "module";
    va_list args;
    va_start(args, format);
    log_vwrite(level, where, format, args);
    va_end(args);
}

static void host_notify_log(struct ng_call *pub, enum ng_level level, const char *logger,
                            struct ng_str json)
{
    struct call *call = call_of(pub);
    if (call->on_log != NULL) {
        call->on_log(call, level, logger, json, call->on_user);
    }
}

static void host_let_go(struct ng_call *pub, int64_t retry_ms)
{
    struct call *call = call_of(pub);
    if (call->on_let_go != NULL && retry_ms >= 0) {
        call->on_let_go(call, retry_ms, call->on_user);
    }
}

static bool host_client_can(struct ng_call *pub, enum ng_ask_kind kind)
{
    return (call_of(pub)->client_asks & (1U << kind)) != 0;
}

bool call_answer_fits(enum ng_ask_kind kind, const struct ng_value *answer)
{
    if (answer->type != NG_TYPE_OBJECT) {
        return false;
    }
    if (kind == NG_ASK_ROOTS) {
        const struct ng_value *roots = json_get(answer, "roots");
        return roots != NULL && roots->type == NG_TYPE_ARRAY;
    }
    if (kind == NG_ASK_MODEL) {
        return true;
    }
    const struct ng_value *action = json_get(answer, "action");
    const struct ng_value *content = json_get(answer, "content");
    if (action == NULL || action->type != NG_TYPE_STRING ||
        !str_in_words(action->text, "accept decline cancel")) {
        return false;
    }
    bool has_content = content != NULL && content->type == NG_TYPE_OBJECT;
    return has_content || kind == NG_ASK_URL || !str_is(action->text, "accept");
}

static const struct ng_value *host_ask(struct ng_call *pub, const char *key,
                                       enum ng_ask_kind kind, struct ng_str request)
{
    struct call *call = call_of(pub);
    const struct ng_value *answer =
        call->ask_answers == NULL ? NULL : json_get(call->ask_answers, key);
    if (answer != NULL && call_answer_fits(kind, answer)) {
        return answer;
    }
    struct ask *ask = arena_zalloc(&call->arena, sizeof(*ask));
    if (ask != NULL) {
        ask->key = arena_copy(&call->arena, ng_str_of(key));
        ask->kind = kind;
        ask->malformed = answer != NULL;
        ask->request = arena_copy(&call->arena, request);
        struct ask **last = &call->asks;
        while (*last != NULL) {
            last = &(*last)->next;
        }
        *last = ask;
    }
    return NULL;
}

static void host_ask_state(struct ng_call *pub, struct ng_str state)
{
    struct call *call = call_of(pub);
    call->ask_state_out = arena_copy(&call->arena, state);
}

static struct ng_str host_asked_state(struct ng_call *pub)
{
    return call_of(pub)->ask_state_in;
}

/* ---- finishing later ---- */

static struct ng_deferred *host_defer(struct ng_call *pub)
{
    call_hold(call_of(pub));
    call_of(pub)->held = true;
    return (struct ng_deferred *)(void *)pub;
}

static void host_finish(struct ng_deferred *deferred, int rc)
{
    struct call *call = (struct call *)(void *)deferred;
    if (rc < 0) {
        call->work.rc = rc;
    }
    call_release(call);
}

static void host_run_step(struct task *task)
{
    struct call *call = (struct call *)(void *)((char *)task - offsetof(struct call, task));
    call->may_block = true;
    ng_step_fn *step = call->step;
    struct gate *gate = dispatch_gate(call); /* before the step: it may go on to another */
    int rc = step(&call->pub, call->step_user);
    if (gate != NULL) {
        gate_leave(gate);
    }
    if (rc != NG_PENDING) {
        call->work.rc = rc;
    }
    call_release(call);
}

static void host_step_entered(void *user)
{
    struct call *call = user;
    pool_resume(call->gateway->pool, &call->task);
}

static int host_continue_on_worker(struct ng_call *pub, ng_step_fn *step, void *user)
{
    struct call *call = call_of(pub);
    call->step = step;
    call->step_user = user;
    call->task.run = host_run_step;
    call_hold(call);
    call->held = true;
    /* Of a serial plugin: behind the run that asks for it, which is in the gate. */
    struct gate *gate = dispatch_gate(call);
    call->gate_entry.enter = host_step_entered;
    call->gate_entry.user = call;
    if (gate == NULL || gate_enter(gate, &call->gate_entry)) {
        pool_resume(call->gateway->pool, &call->task);
    }
    return NG_PENDING;
}

static void host_background_done(struct call *call, void *user)
{
    (void)user;
    if (call->result.rc != NG_OK) {
        log_write(NG_LOG_WARNING, "background", "%.*s", (int)call->result.message.len,
                  call->result.message.data);
    }
    call_unref(call);
}

static int host_background(struct ng_call *pub, ng_step_fn *step, void *user)
{
    struct call *call = call_of(pub);
    struct call *background = call_new(call->gateway);
    if (background == NULL) {
        return call_no_memory(call);
    }
    struct ng_str space = {NULL, 0};
    if (call->caller.space_named) {
        space = call->caller.space;
    }
    int rc = call_set_caller(background, call->caller.agent, space, call->caller.role,
                             call->caller.mode);
    if (rc == NG_OK && call->caller.spaces != NULL) { /* start() has none */
        rc = call_allow_spaces(background, call->caller.spaces, call->caller.space_count,
                               call->caller.all_spaces);
    }
    if (rc != NG_OK) {
        call_unref(background);
        return call_no_memory(call);
    }
    key_ref(call->key);
    background->key = call->key;
    background->no_rate = true;
    background->arena.max = CALL_BACKGROUND_MEMORY_MAX;
    background->tool = call->tool;
    background->read_only = call->read_only;
    background->pub.tool = call->pub.tool;
    background->done = host_background_done;
    if (dispatch_step(background, step, user) == NG_OK) {
        rc = background->result.rc;
        call_fail(call, rc, "%.*s", (int)background->result.message.len,
                  background->result.message.data);
        call_unref(background);
        return rc;
    }
    return NG_OK;
}

static void host_lists_changed(const struct ng_host *host, unsigned lists)
{
    struct gateway *gateway =
        (struct gateway *)(uintptr_t)((uintptr_t)host - offsetof(struct gateway, host));
    if (gateway->lists_changed != NULL) {
        gateway->lists_changed(gateway, lists, gateway->lists_user);
    }
}

/* ---- JSON ---- */

static int host_json_parse(struct ng_call *pub, struct ng_str text, const struct ng_value **ret)
{
    struct call *call = call_of(pub);
    struct json_error error;
    int rc = json_parse(&call->arena, text, JSON_DEPTH_DEFAULT, ret, &error);
    if (rc != NG_OK) {
        call_fail(call, rc, "not valid JSON: %s (line %zu, column %zu)", error.message,
                  error.line, error.column);
    }
    return rc;
}

static enum ng_type host_json_type(const struct ng_value *value)
{
    return value == NULL ? NG_TYPE_ABSENT : value->type;
}

static size_t host_json_count(const struct ng_value *value)
{
    return value == NULL ? 0 : value->count;
}

static const struct ng_value *host_json_first(const struct ng_value *container)
{
    return container == NULL ? NULL : container->first;
}

static const struct ng_value *host_json_next(const struct ng_value *element)
{
    return element == NULL ? NULL : element->next;
}

static struct ng_str host_json_key(const struct ng_value *member)
{
    return member == NULL ? str_make(NULL, 0) : member->key;
}

static struct ng_str host_json_text(const struct ng_value *value)
{
    bool has =
        value != NULL && (value->type == NG_TYPE_STRING || value->type == NG_TYPE_NUMBER);
    return has ? value->text : str_make(NULL, 0);
}

static const struct ng_value *host_json_get(const struct ng_value *object, const char *name)
{
    return object == NULL ? NULL : json_get(object, name);
}

static int host_json_integer(const struct ng_value *number, int64_t *ret)
{
    return number == NULL ? NG_EINVAL : json_integer(number, ret);
}

static double host_json_double(const struct ng_value *number)
{
    return number == NULL ? 0 : json_double(number);
}

struct memory_writer {       /* a writer and its buffer in call memory */
    struct ng_writer writer; /* first */
    struct buf buf;
};

static void host_memory_writer_done(void *object)
{
    struct memory_writer *memory = object;
    buf_done(&memory->buf);
}

static struct ng_writer *host_json_writer(struct ng_call *pub)
{
    struct call *call = call_of(pub);
    struct memory_writer *memory = arena_zalloc(&call->arena, sizeof(*memory));
    if (memory == NULL) {
        return NULL;
    }
    buf_init(&memory->buf, CALL_MEMORY_MAX);
    memory->buf.starved = &call->arena.starved;
    json_writer_init(&memory->writer, &memory->buf);
    return call_pin(call, host_memory_writer_done, memory) == NG_OK ? &memory->writer : NULL;
}

static struct ng_str host_json_result(struct ng_writer *writer)
{
    bool good = writer != NULL && writer->complete && writer->buf->rc == NG_OK;
    return good ? str_make(buf_cstr(writer->buf), writer->buf->len) : str_make(NULL, 0);
}

/* ---- configuration ---- */

static struct ng_str host_conf_text(const struct ng_conf *conf, const char *key)
{
    return config_view_text(conf, key);
}

static int64_t host_conf_int(const struct ng_conf *conf, const char *key)
{
    return config_view_int(conf, key);
}

static double host_conf_number(const struct ng_conf *conf, const char *key)
{
    return config_view_number(conf, key);
}

static bool host_conf_bool(const struct ng_conf *conf, const char *key)
{
    return config_view_bool(conf, key);
}

static size_t host_conf_list(const struct ng_conf *conf, const char *key,
                             const struct ng_str **ret_items)
{
    return config_view_list(conf, key, ret_items);
}

/* ---- documents, files, journal ---- */

static int host_get(struct ng_call *pub, const struct ng_key *key, uint64_t revision,
                    const struct ng_doc **ret_doc)
{
    return store_get(call_of(pub)->gateway->store, call_of(pub), key, revision, ret_doc);
}

static int host_query(struct ng_call *pub, const struct ng_query *query, ng_row_fn *row,
                      void *user, uint64_t *ret_total)
{
    return store_query(call_of(pub)->gateway->store, call_of(pub), query, row, user, ret_total);
}

static int host_search(struct ng_call *pub, const struct ng_search *search, ng_row_fn *row,
                       void *user, uint64_t *ret_total, const char **ret_engine)
{
    return store_search(call_of(pub)->gateway->store, call_of(pub), search, row, user,
                        ret_total, ret_engine);
}

static int host_history(struct ng_call *pub, const struct ng_key *key,
                        const struct ng_range *range, ng_row_fn *row, void *user)
{
    return store_history(call_of(pub)->gateway->store, call_of(pub), key, range, row, user);
}

static int host_history_count(struct ng_call *pub, const struct ng_key *key,
                              const struct ng_range *range, uint64_t *ret_count)
{
    return store_history_count(call_of(pub)->gateway->store, call_of(pub), key, range,
                               ret_count);
}

static int host_changes(struct ng_call *pub, uint64_t since, uint32_t limit, ng_event_fn *event,
                        void *user)
{
    return store_changes(call_of(pub)->gateway->store, call_of(pub), since, limit, event, user);
}

static int host_change(struct ng_call *pub, const struct ng_change *changes, size_t count)
{
    return store_change(call_of(pub)->gateway->store, call_of(pub), changes, count);
}

static int host_change_wait(struct ng_call *pub, const struct ng_change *changes, size_t count)
{
    struct call *call = call_of(pub);
    return call->may_block ? store_write_wait(call->gateway->store, call, changes, count)
                           : NG_EWOULDBLOCK;
}

/* A change that no call waits for. */
struct host_write {
    struct call *call;
    ng_changed_fn *done;
    void *user;
};

/* They fail by the hundred where they fail, and are tried again: one line in a second says it.
 */
static void host_tell_failed(struct call *call)
{
    long long now = clock_monotonic_ns() / 1000000;
    long long told = atomic_load(&call->gateway->background_told_ms);
    if ((told == 0 || now - told >= HOST_TELL_MS) &&
        atomic_compare_exchange_strong(&call->gateway->background_told_ms, &told, now)) {
        log_write(NG_LOG_WARNING, "background", "%.*s", (int)call->work.message.len,
                  call->work.message.data == NULL ? "" : call->work.message.data);
    }
}

static void host_write_done(void *user, int rc)
{
    struct host_write *write = user;
    struct call *call = write->call;
    ng_changed_fn *done = write->done;
    void *done_user = write->user;
    if (rc != NG_OK) {
        host_tell_failed(call);
    }
    call_unref(call);
    done(done_user, rc);
}

static int host_change_as(const struct ng_host *host, struct ng_str agent,
                          const struct ng_change *changes, size_t count, ng_changed_fn *done,
                          void *user)
{
    struct gateway *gateway =
        (struct gateway *)(uintptr_t)((uintptr_t)host - offsetof(struct gateway, host));
    struct ng_str space = {NULL, 0};
    struct call *call = call_new(gateway);
    struct host_write *write = call == NULL ? NULL : arena_alloc(&call->arena, sizeof(*write));
    if (write == NULL) {
        call_unref(call);
        return NG_EINTERNAL;
    }
    *write = (struct host_write){call, done, user};
    call->deadline_ns = clock_monotonic_ns() + gateway->limits.call_timeout_ms * 1000000;
    int rc = call_set_caller(call, agent, space, NG_ROLE_WRITER, NG_MODE_AGENT);
    if (rc == NG_OK) {
        rc = store_write(gateway->store, call, changes, count, host_write_done, write);
    }
    if (rc != NG_OK) {
        call_unref(call);
    }
    return rc;
}

static int host_file_stat(struct ng_call *pub, struct ng_str path, struct ng_file *ret_file)
{
    return files_stat(call_of(pub)->gateway->files, call_of(pub), path, ret_file);
}

static int host_file_read(struct ng_call *pub, struct ng_str path, uint64_t max_bytes,
                          struct ng_file *ret_file)
{
    return files_read(call_of(pub)->gateway->files, call_of(pub), path, max_bytes, ret_file);
}

static int host_file_stream(struct ng_call *pub, struct ng_str path, ng_chunk_fn *chunk,
                            void *user, struct ng_file *ret_file)
{
    return files_stream(call_of(pub)->gateway->files, call_of(pub), path, chunk, user,
                        ret_file);
}

static int host_file_list(struct ng_call *pub, const struct ng_file_list *list,
                          ng_entry_fn *entry, void *user)
{
    return files_list(call_of(pub)->gateway->files, call_of(pub), list, entry, user);
}

static int host_file_edit(struct ng_call *pub, const struct ng_file_edit *edit)
{
    return files_edit(call_of(pub)->gateway->files, call_of(pub), edit);
}

static int host_file_transfer(struct ng_call *pub, const struct ng_file_transfer *transfer)
{
    return files_transfer(call_of(pub)->gateway->files, call_of(pub), transfer);
}

static int host_file_undo(struct ng_call *pub, const struct ng_file_undo *undo)
{
    return files_undo(call_of(pub)->gateway->files, call_of(pub), undo);
}

static size_t host_file_roots(struct ng_call *pub, const struct ng_str **ret_roots)
{
    return files_roots(call_of(pub)->gateway->files, call_of(pub), ret_roots);
}

static int host_file_folder(struct ng_call *pub, struct ng_str folder)
{
    return files_add_folder(call_of(pub)->gateway->files, call_of(pub), folder);
}

static const struct ng_journal *host_journal(struct ng_call *pub, void **ret_journal)
{
    return journal_vtable(call_of(pub)->gateway->journal, ret_journal);
}

static int host_list_add(struct ng_listing *listing, struct ng_str id, struct ng_str name,
                         struct ng_str description, const char *mime_type, uint64_t bytes,
                         int64_t modified_ms)
{
    struct listing_item item = {id,    name,       description, ng_str_of(mime_type),
                                bytes, modified_ms};
    return listing->add(listing, &item);
}

static struct ng_str host_list_after(struct ng_listing *listing)
{
    listing->seeks = true;
    return listing->after;
}

static struct ng_str host_day(struct ng_call *pub, int64_t time_ms)
{
    struct call *call = call_of(pub);
    char date[ZONE_DATE_SIZE];
    journal_date(call->gateway->journal, time_ms, date);
    return arena_copy(&call->arena, ng_str_of(date));
}

const struct ng_host call_host = {
    .size = sizeof(struct ng_host),
    .version = NOTEGATE_VERSION,
    .alloc = host_alloc,
    .format = host_format,
    .reply = host_reply,
    .reply_parts = host_reply_parts,
    .reply_json = host_reply_json,
    .reply_media = host_reply_media,
    .reply_resource = host_reply_resource,
    .reply_link = host_reply_link,
    .revision_number = host_revision_number,
    .revision_text = host_revision_text,
    .fail = host_fail,
    .fail_text = host_fail_text,
    .hint = host_hint,
    .details = host_details,
    .progress = host_progress,
    .cancelled = host_cancelled,
    .remaining_ms = host_remaining_ms,
    .may_block = host_may_block,
    .now_ms = host_now_ms,
    .log = host_log,
    .notify_log = host_notify_log,
    .let_go = host_let_go,
    .ask = host_ask,
    .ask_state = host_ask_state,
    .asked_state = host_asked_state,
    .client_can = host_client_can,
    .defer = host_defer,
    .finish = host_finish,
    .continue_on_worker = host_continue_on_worker,
    .background = host_background,
    .lists_changed = host_lists_changed,
    .json_parse = host_json_parse,
    .json_type = host_json_type,
    .json_count = host_json_count,
    .json_get = host_json_get,
    .json_first = host_json_first,
    .json_next = host_json_next,
    .json_key = host_json_key,
    .json_text = host_json_text,
    .json_integer = host_json_integer,
    .json_double = host_json_double,
    .json_object = json_object,
    .json_array = json_array,
    .json_end = json_end,
    .json_name = json_name,
    .json_name_str = json_name_str,
    .json_string = json_string,
    .json_int = json_int,
    .json_number = json_number,
    .json_bool = json_bool,
    .json_null = json_null,
    .json_copy = json_copy,
    .json_writer = host_json_writer,
    .json_result = host_json_result,
    .conf_text = host_conf_text,
    .conf_int = host_conf_int,
    .conf_number = host_conf_number,
    .conf_bool = host_conf_bool,
    .conf_list = host_conf_list,
    .get = host_get,
    .query = host_query,
    .search = host_search,
    .history = host_history,
    .changes = host_changes,
    .change = host_change,
    .draft_json = store_draft_json,
    .draft_text = store_draft_text,
    .draft_splice = store_draft_splice,
    .draft_delete = store_draft_delete,
    .draft_event = store_draft_event,
    .file_stat = host_file_stat,
    .file_read = host_file_read,
    .file_stream = host_file_stream,
    .file_list = host_file_list,
    .file_edit = host_file_edit,
    .file_transfer = host_file_transfer,
    .file_undo = host_file_undo,
    .file_roots = host_file_roots,
    .journal = host_journal,
    .list_add = host_list_add,
    .list_after = host_list_after,
    .file_folder = host_file_folder,
    .day = host_day,
    .change_wait = host_change_wait,
    .change_as = host_change_as,
    .fail_after = host_fail_after,
    .when_ended = host_when_ended,
    .shield = host_shield,
    .once = host_once,
    .history_count = host_history_count,
};
