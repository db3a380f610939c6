/* SPDX-License-Identifier: MIT */
/* mcp_resources.c - the kinds of resources there are, which of them a caller sees, their
 * templates, and reading one. */
#include "mcp_resources.h"

#include "api/base/content.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/dispatch/dispatch.h"

/* Older versions had a code of their own for it. */
#define MCP_RESOURCE_NOT_FOUND (-32002)
/* Bytes around contents, asked for at once. */
#define MCP_READ_ENVELOPE 1024

/* ---- kinds ---- */

bool mcp_source_at(struct gateway *gateway, size_t index, struct mcp_source *ret)
{
    return registry_resource(gateway->registry, index, &ret->plugin, &ret->desc);
}

struct ng_str mcp_source_name(const struct ng_resources *desc)
{
    return ng_str_of(text_or(text_or(desc->kind, desc->uri_template), ""));
}

bool mcp_source_find(struct call *call, struct ng_str name, struct mcp_source *ret,
                     size_t *ret_index)
{
    struct mcp_source source;
    for (size_t i = 0; mcp_source_at(call->gateway, i, &source); i++) {
        if (str_equal(mcp_source_name(source.desc), name) &&
            mcp_sees_plugin(call, source.plugin)) {
            *ret = source;
            if (ret_index != NULL) {
                *ret_index = i;
            }
            return true;
        }
    }
    return false;
}

int mcp_source_of_uri(struct call *call, struct ng_str text, struct mcp_source *ret,
                      struct mcp_uri *ret_uri, const char **ret_why)
{
    if (mcp_uri_is_ours(text)) {
        int rc = mcp_uri_parse(&call->arena, text, ret_uri, ret_why);
        if (rc != NG_OK) {
            return rc;
        }
        bool found = mcp_source_find(call, ret_uri->kind, ret, NULL) && ret->desc->kind != NULL;
        if (found) {
            return NG_OK;
        }
        return NG_ENOTFOUND;
    }
    struct mcp_source source;
    for (size_t i = 0; mcp_source_at(call->gateway, i, &source); i++) {
        if (source.desc->kind == NULL && source.desc->uri_template != NULL &&
            mcp_template_matches(ng_str_of(source.desc->uri_template), text) &&
            mcp_sees_plugin(call, source.plugin)) {
            *ret = source;
            *ret_uri = (struct mcp_uri){.id = text};
            return NG_OK;
        }
    }
    return NG_ENOTFOUND;
}

bool mcp_source_keeps_history(const struct mcp_source *source)
{
    const struct ng_plugin *plugin = &source->plugin->desc;
    for (size_t i = 0; source->desc->collection != NULL && i < plugin->collection_count; i++) {
        const struct ng_collection *collection = &plugin->collections[i];
        if (strcmp(collection->name, source->desc->collection) == 0) {
            return (collection->flags & NG_COLLECTION_NO_HISTORY) == 0;
        }
    }
    return false;
}

/* ---- what a caller sees ---- */

bool mcp_sees_plugin(struct call *call, const struct plugin *plugin)
{
    return plugin->started && dispatch_sees_plugin(call, plugin);
}

bool mcp_lists_plugin(struct call *call, const struct plugin *plugin)
{
    return mcp_sees_plugin(call, plugin) && dispatch_configured(call, plugin);
}

bool mcp_space_listed(const struct call *call, struct ng_str space)
{
    const struct ng_caller *caller = &call->caller;
    return str_equal(caller->space, space) || call_has_space(caller, space);
}

bool mcp_space_visible(const struct call *call, struct ng_str space)
{
    return call->caller.all_spaces || mcp_space_listed(call, space);
}

const struct ng_str *mcp_spaces(struct call *call, size_t *ret_count)
{
    const struct ng_caller *caller = &call->caller;
    size_t count = 0;
    struct ng_str *spaces =
        arena_alloc(&call->arena, (caller->space_count + 1) * sizeof(*spaces));
    if (spaces == NULL) {
        return NULL;
    }
    for (size_t i = 0; i <= caller->space_count; i++) {
        struct ng_str space = caller->space;
        if (i < caller->space_count) {
            space = caller->spaces[i];
        }
        bool known = space.len == 0;
        for (size_t j = 0; j < count && !known; j++) {
            known = str_equal(spaces[j], space);
        }
        if (!known) {
            spaces[count++] = space;
        }
    }
    *ret_count = count;
    return spaces;
}

int mcp_enter_plugin(struct call *call, struct plugin *plugin, ng_step_fn *step, void *user)
{
    if (call->plugin == plugin) {
        return NG_OK;
    }
    call->plugin = plugin; /* by whose gate it goes, and whose workers it counts for */
    return call->pub.host->continue_on_worker(&call->pub, step, user);
}

/* ---- answers ---- */

void mcp_print_cache(struct mcp_exchange *exchange, struct buf *out, int ttl_ms)
{
    if (mcp_is_stateless(exchange->terms.version)) {
        (void)buf_printf(out, ",\"ttlMs\":%d,\"cacheScope\":\"private\"", ttl_ms);
    }
}

/* As HTTP tells it: what another request would not fail at is the request's own fault. */
static int code_of(const struct result *result)
{
    switch (result->rc) {
    case NG_EUNAUTHENTICATED:
    case NG_ERATE:
    case NG_EBUSY:
        return result->status;
    case NG_ECANCELLED:
        return MCP_INTERNAL_ERROR;
    default:
        if (result->status >= 400 && result->status < 500) {
            return MCP_INVALID_PARAMS;
        }
        return MCP_INTERNAL_ERROR;
    }
}

void mcp_answer_failed(struct mcp_exchange *exchange, const struct call *call)
{
    const struct result *result = &call->final;
    int code = code_of(result);
    struct buf both;
    struct buf error;
    if (code > 0 && !exchange->job->is_batch) {
        exchange->job->retry_after_s = result->retry_after_s;
    }
    buf_init(&error, exchange->job->out->max);
    mcp_join_hint(&both, result, ". ");
    (void)call_print_error(call, &error);
    mcp_answer_error(exchange, code > 0 ? code : 200, code, buf_str_or(&both, result->message),
                     buf_str_or(&error, STR_NONE));
    buf_done(&both);
    buf_done(&error);
}

void mcp_answer_unknown_uri(struct mcp_exchange *exchange, struct ng_str uri,
                            struct ng_str message)
{
    struct buf data;
    buf_init(&data, exchange->job->out->max);
    buf_add_c(&data, "{\"uri\":");
    buf_add_json(&data, call_shorten(exchange->job->call, uri, CALL_DETAIL_TEXT_MAX));
    buf_add_char(&data, '}');
    mcp_answer_error(exchange, 200,
                     mcp_is_stateless(exchange->terms.version) ? MCP_INVALID_PARAMS
                                                               : MCP_RESOURCE_NOT_FOUND,
                     message, buf_str_or(&data, STR_NONE));
    buf_done(&data);
}

struct ng_str mcp_text_param(struct mcp_exchange *exchange, const char *name, const char *what)
{
    struct ng_str text = json_get_text(exchange->message.params, name);
    if (text.data == NULL) {
        struct ng_str sentence = arena_printf(&exchange->job->call->arena,
                                              "`params.%s` must be a string, %s", name, what);
        (void)mcp_refuse_params(exchange, text_or(sentence.data, what));
    }
    return text;
}

struct buf *mcp_list_open(struct mcp_exchange *exchange, const char *name,
                          struct ng_writer *writer)
{
    if (json_get(exchange->message.params, "cursor") != NULL) {
        (void)mcp_refuse_params(
            exchange, "`params.cursor` is not a cursor of this gateway: the list has one page");
        return NULL;
    }
    struct buf *out = mcp_result_open(exchange);
    buf_printf(out, "\"%s\":", name);
    json_writer_init(writer, out);
    json_array(writer);
    return out;
}

int mcp_list_close(struct mcp_exchange *exchange, struct ng_writer *writer)
{
    struct buf *out = exchange->job->out;
    json_end(writer);
    mcp_print_cache(exchange, out, MCP_LIST_TTL_MS);
    if (exchange->call->arena.oom && out->rc == NG_OK) {
        out->rc = NG_EINTERNAL; /* a list in which something is missing */
    }
    mcp_result_close(exchange, STR_NONE);
    return NG_OK;
}

/* ---- resources/templates/list ---- */

static void print_template(struct ng_writer *writer, const struct ng_resources *desc,
                           struct ng_str uri)
{
    json_object(writer);
    json_member_string(writer, "uriTemplate", uri);
    json_member_string(writer, "name", mcp_source_name(desc));
    if (desc->title != NULL) {
        json_member_cstring(writer, "title", desc->title);
    }
    if (desc->summary != NULL) {
        json_member_cstring(writer, "description", desc->summary);
    }
    if (desc->mime_type != NULL) {
        json_member_cstring(writer, "mimeType", desc->mime_type);
    }
    json_end(writer);
}

static void print_source(struct mcp_exchange *exchange, struct ng_writer *writer,
                         const struct mcp_source *source)
{
    const struct ng_resources *desc = source->desc;
    if (desc->kind == NULL) {
        if (mcp_template_is_open(mcp_source_name(desc))) {
            print_template(writer, desc, mcp_source_name(desc));
        }
        return;
    }
    struct ng_str uri =
        arena_printf(&exchange->call->arena, RESOURCE_URI_SCHEME "{space}/%s/{id}", desc->kind);
    print_template(writer, desc, uri);
    if (mcp_source_keeps_history(source)) {
        struct ng_resources earlier = *desc;
        struct ng_str name = arena_printf(&exchange->call->arena, "%s_revision", desc->kind);
        struct ng_str summary = arena_printf(
            &exchange->call->arena, "%s An earlier revision of it, by number (from 1).",
            text_or(desc->summary, ""));
        uri =
            arena_printf(&exchange->call->arena,
                         RESOURCE_URI_SCHEME "{space}/%s/{id}?revision={revision}", desc->kind);
        earlier.kind = name.data;
        earlier.summary = summary.data;
        print_template(writer, &earlier, uri);
    }
}

int mcp_templates_list(struct mcp_exchange *exchange)
{
    struct mcp_source source;
    struct ng_writer writer;
    if (mcp_list_open(exchange, "resourceTemplates", &writer) == NULL) {
        return NG_OK;
    }
    for (size_t i = 0; mcp_source_at(exchange->job->gateway, i, &source); i++) {
        if (mcp_lists_plugin(exchange->call, source.plugin)) {
            print_source(exchange, &writer, &source);
        }
    }
    return mcp_list_close(exchange, &writer);
}

/* ---- resources/read ---- */

struct reading {
    struct mcp_source source;
    struct mcp_uri uri;
};

static int read_step(struct ng_call *pub, void *user)
{
    struct reading *reading = user;
    struct call *call = call_of(pub);
    const struct ng_resources *desc = reading->source.desc;
    if (desc->kind != NULL && !mcp_space_visible(call, reading->uri.space)) {
        return call_fail(call, NG_ENOTFOUND, "there is no such resource");
    }
    struct ng_str space = call->caller.space;
    if (desc->kind != NULL) {
        space = reading->uri.space;
    }
    return desc->read(reading->source.plugin->self, pub, space, reading->uri.id,
                      reading->uri.revision);
}

static int start_read(struct mcp_exchange *exchange)
{
    struct call *call = exchange->call;
    const char *why = "out of memory";
    struct ng_str text = json_get(exchange->message.params, "uri")->text;
    struct reading *reading = arena_zalloc(&call->arena, sizeof(*reading));
    int rc = NG_EINTERNAL;
    call->read_only = true;
    if (reading != NULL) {
        rc = mcp_source_of_uri(call, text, &reading->source, &reading->uri, &why);
    }
    if (rc != NG_OK) {
        (void)call_fail(call, rc, "%s", rc == NG_ENOTFOUND ? "there is no such resource" : why);
    } else {
        call->plugin = reading->source.plugin;
        call->options |= CALL_MUST_REPLY;
    }
    return dispatch_step(call, read_step, reading);
}

static void print_contents(struct buf *out, const struct result *result, struct ng_str uri,
                           const char *mime_type)
{
    bool any = false;
    buf_add_c(out, "\"contents\":[");
    if (result->has_text) {
        const char *given = mime_type;
        if (mime_type == NULL && result->is_json) {
            given = "application/json";
        }
        struct part text = {.kind = PART_TEXT, .data = result->text};
        text.mime_type = ng_str_of(given);
        content_print_contents(out, &text, uri);
        any = true;
    }
    for (const struct part *part = result->parts; part != NULL; part = part->next) {
        if (part->kind == PART_LINK) {
            continue; /* names another resource: not contents of this one */
        }
        if (any) {
            buf_add_char(out, ',');
        }
        content_print_contents(out, part, uri);
        any = true;
    }
    buf_add_char(out, ']');
}

static void answer_contents(struct mcp_exchange *exchange, const struct call *call)
{
    const struct reading *reading = call->step_user;
    const struct result *result = &call->final;
    struct ng_str uri = json_get(exchange->message.params, "uri")->text;
    struct buf meta;
    buf_init(&meta, MCP_READ_ENVELOPE + 6 * result->revision_text.len);
    mcp_print_revision(&meta, result);
    struct buf *out = mcp_result_open(exchange);
    print_contents(out, result, uri, reading->source.desc->mime_type);
    mcp_print_cache(exchange, out,
                    reading->uri.revision > 0 ? MCP_REVISION_TTL_MS : MCP_RESOURCES_TTL_MS);
    if (out->rc == NG_OK && meta.rc == NG_EINTERNAL) {
        out->rc = NG_EINTERNAL;
    }
    mcp_result_close(exchange, buf_str_or(&meta, STR_NONE));
    buf_done(&meta);
}

static void answer_unread(struct mcp_exchange *exchange, const struct call *call)
{
    const struct result *result = &call->final;
    struct ng_str uri = json_get(exchange->message.params, "uri")->text;
    switch (result->rc) {
    case NG_ENOTFOUND:
        mcp_answer_unknown_uri(exchange, uri, result->message);
        break;
    case NG_EOUTSIDE: /* does not reveal existing resources */
        mcp_answer_unknown_uri(exchange, uri, ng_str_of("there is no such resource"));
        break;
    case NG_EINVAL:
        mcp_answer_unknown_uri(exchange, uri,
                               arena_printf(&exchange->job->call->arena,
                                            "the URI is not the URI of a resource: %.*s",
                                            (int)result->message.len, result->message.data));
        break;
    default:
        mcp_answer_failed(exchange, call);
        break;
    }
}

int mcp_resources_read(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_read, answer_contents, answer_unread, NULL};
    struct ng_str uri = mcp_text_param(exchange, "uri", "the URI of a resource");
    if (uri.data == NULL) {
        return NG_OK;
    }
    return mcp_run(exchange, &run);
}
