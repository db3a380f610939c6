/* SPDX-License-Identifier: MIT */
/* host_json.c - access of plugins to JSON. */

#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "host.h"

int host_json_parse(struct ng_call *pub, struct ng_str text, const struct ng_value **ret)
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

/* NULL is a value of type NG_TYPE_ABSENT. */
static const struct ng_value *or_absent(const struct ng_value *value)
{
    static const struct ng_value absent = {.type = NG_TYPE_ABSENT};
    return value != NULL ? value : &absent;
}

enum ng_type host_json_type(const struct ng_value *value)
{
    return or_absent(value)->type;
}

size_t host_json_count(const struct ng_value *value)
{
    return or_absent(value)->count;
}

const struct ng_value *host_json_first(const struct ng_value *container)
{
    return or_absent(container)->first;
}

const struct ng_value *host_json_next(const struct ng_value *element)
{
    return or_absent(element)->next;
}

struct ng_str host_json_key(const struct ng_value *member)
{
    return or_absent(member)->key;
}

struct memory_writer {       /* a writer and its buffer in the memory of a call */
    struct ng_writer writer; /* first */
    struct buf buf;
    struct call *call;
};

static void host_memory_writer_done(void *object)
{
    struct memory_writer *memory = object;
    buf_done(&memory->buf);
}

struct ng_writer *host_json_writer(struct ng_call *pub)
{
    struct call *call = call_of(pub);
    struct memory_writer *memory = arena_zalloc(&call->arena, sizeof(*memory));
    if (memory == NULL) {
        return NULL;
    }
    memory->call = call;
    buf_init(&memory->buf, CALL_MEMORY_MAX);
    memory->buf.oom = &call->arena.oom;
    json_writer_init(&memory->writer, &memory->buf);
    if (call_pin(call, host_memory_writer_done, memory) != NG_OK) {
        return NULL;
    }
    return &memory->writer;
}

struct ng_str host_json_result(struct ng_writer *writer)
{
    if (writer != NULL && writer->misuse != NULL) {
        /* The plugin sees the same as out of memory; the log tells the difference. */
        const struct call *call = ((struct memory_writer *)(void *)writer)->call;
        const struct plugin *plugin = call_plugin(call);
        log_write(NG_LOG_ERROR, "call", "%.*s (plugin %s) misused a JSON writer: %s",
                  (int)call->pub.tool.len, call->pub.tool.data,
                  plugin != NULL ? plugin->desc.name : "(none)", writer->misuse);
    }
    if (writer == NULL || !writer->complete || writer->buf->rc != NG_OK) {
        return str_make(NULL, 0);
    }
    return str_make(buf_cstr(writer->buf), writer->buf->len);
}
