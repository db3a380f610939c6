/* SPDX-License-Identifier: MIT */
/* host_json.c - JSON and configuration as plugins read them. */

#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "core/config/config.h"
#include "host.h"

/* ---- JSON ---- */

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

enum ng_type host_json_type(const struct ng_value *value)
{
    if (value == NULL) {
        return NG_TYPE_ABSENT;
    }
    return value->type;
}

size_t host_json_count(const struct ng_value *value)
{
    if (value == NULL) {
        return 0;
    }
    return value->count;
}

const struct ng_value *host_json_first(const struct ng_value *container)
{
    if (container == NULL) {
        return NULL;
    }
    return container->first;
}

const struct ng_value *host_json_next(const struct ng_value *element)
{
    if (element == NULL) {
        return NULL;
    }
    return element->next;
}

struct ng_str host_json_key(const struct ng_value *member)
{
    if (member != NULL) {
        return member->key;
    }
    return str_make(NULL, 0);
}

struct ng_str host_json_text(const struct ng_value *value)
{
    bool has =
        value != NULL && (value->type == NG_TYPE_STRING || value->type == NG_TYPE_NUMBER);
    if (has) {
        return value->text;
    }
    return str_make(NULL, 0);
}

const struct ng_value *host_json_get(const struct ng_value *object, const char *name)
{
    if (object == NULL) {
        return NULL;
    }
    return json_get(object, name);
}

int host_json_integer(const struct ng_value *number, int64_t *ret)
{
    if (number == NULL) {
        return NG_EINVAL;
    }
    return json_integer(number, ret);
}

double host_json_double(const struct ng_value *number)
{
    if (number == NULL) {
        return 0;
    }
    return json_double(number);
}

struct memory_writer {       /* a writer and its buffer in call memory */
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
    bool good = writer != NULL && writer->complete && writer->buf->rc == NG_OK;
    if (writer != NULL && writer->misuse != NULL) {
        /* The plugin takes it for a want of memory. */
        const struct call *call = ((struct memory_writer *)(void *)writer)->call;
        const struct plugin *plugin = call_plugin(call);
        log_write(NG_LOG_ERROR, "call", "%.*s (plugin %s) misused a JSON writer: %s",
                  (int)call->pub.tool.len, call->pub.tool.data,
                  plugin != NULL ? plugin->desc.name : "(none)", writer->misuse);
    }
    if (good) {
        return str_make(buf_cstr(writer->buf), writer->buf->len);
    }
    return str_make(NULL, 0);
}

/* ---- configuration ---- */

struct ng_str host_conf_text(const struct ng_conf *conf, const char *key)
{
    return config_view_text(conf, key);
}

int64_t host_conf_int(const struct ng_conf *conf, const char *key)
{
    return config_view_int(conf, key);
}

double host_conf_number(const struct ng_conf *conf, const char *key)
{
    return config_view_number(conf, key);
}

bool host_conf_bool(const struct ng_conf *conf, const char *key)
{
    return config_view_bool(conf, key);
}

size_t host_conf_list(const struct ng_conf *conf, const char *key,
                      const struct ng_str **ret_items)
{
    return config_view_list(conf, key, ret_items);
}
