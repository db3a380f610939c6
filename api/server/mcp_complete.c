/* SPDX-License-Identifier: MIT */
/* mcp_complete.c - completion/complete: values of a prompt's arguments and of the variables in
 * resource templates. */
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/listing.h"
#include "core/dispatch/dispatch.h"
#include "mcp_prompts.h"

/* Values in one answer: the protocol's limit. */
#define MCP_COMPLETE_MAX 100
/* Entries of a listing that are searched if a plugin has no completion of its own. */
#define MCP_COMPLETE_LOOKED 10000
#define COMPLETE_FULL 1

/* Memory of the call. */
struct completing {
    struct ng_listing listing; /* first */
    struct call *call;
    struct mcp_prompt prompt; /* or ... */
    struct mcp_source source;
    bool is_prompt;
    struct ng_str argument, prefix;
    struct ng_str space; /* of context.arguments, or absent */
    bool filters;        /* the values come from a listing: count only those with the prefix */
    struct ng_str values[MCP_COMPLETE_MAX];
    size_t count, looked;
    bool more;
};

/* ---- values ---- */

static int add_value(struct completing *completing, struct ng_str value)
{
    for (size_t i = 0; i < completing->count; i++) {
        if (str_equal(completing->values[i], value)) {
            return NG_OK;
        }
    }
    struct ng_str copy;
    if (completing->count == MCP_COMPLETE_MAX) {
        copy = STR_NONE;
    } else {
        copy = arena_copy(&completing->call->arena, str_or(value, ng_str_of("")));
    }
    if (copy.data == NULL) {
        completing->more = true;
        return COMPLETE_FULL;
    }
    completing->values[completing->count++] = copy;
    return NG_OK;
}

static int complete_add(struct ng_listing *listing, const struct listing_item *item)
{
    struct completing *completing = (struct completing *)(void *)listing;
    if (completing->more || ++completing->looked > MCP_COMPLETE_LOOKED ||
        call_has(completing->call, CALL_CANCELLED)) {
        completing->more = true;
        return COMPLETE_FULL;
    }
    if (completing->filters && !str_starts(item->id, completing->prefix)) {
        return NG_OK;
    }
    return add_value(completing, item->id);
}

/* ---- whose values ---- */

static int complete_space(struct completing *completing, struct ng_str space)
{
    const struct ng_resources *desc = completing->source.desc;
    struct ng_call *pub = &completing->call->pub;
    void *self = completing->source.plugin->self;
    int rc = NG_OK;
    call_gives(completing->call);
    if (desc->complete != NULL) {
        rc = desc->complete(self, pub, space, completing->argument.data, completing->prefix,
                            &completing->listing);
    } else if (desc->list != NULL && desc->kind != NULL && str_is(completing->argument, "id")) {
        completing->filters = true;
        completing->listing.after = STR_NONE;
        rc = desc->list(self, pub, space, &completing->listing);
    }
    if (completing->more) {
        return NG_OK;
    }
    return call_gave(completing->call, rc);
}

static int complete_resource(struct completing *completing)
{
    struct call *call = completing->call;
    size_t count = 0;
    if (completing->source.desc->kind == NULL) {
        return complete_space(completing, call->caller.space);
    }
    if (completing->space.data != NULL && !str_is(completing->argument, "space")) {
        if (!mcp_space_visible(call, completing->space)) {
            return NG_OK;
        }
        return complete_space(completing, completing->space);
    }
    const struct ng_str *spaces = mcp_spaces(call, &count);
    int rc = NG_OK;
    if (spaces == NULL) {
        rc = call_fail(call, NG_EINTERNAL, "out of memory");
    }
    for (size_t i = 0; i < count && rc == NG_OK && !completing->more; i++) {
        if (!str_is(completing->argument, "space")) {
            rc = complete_space(completing, spaces[i]);
        } else if (str_starts(spaces[i], completing->prefix)) {
            (void)add_value(completing, spaces[i]);
        }
    }
    return rc;
}

/* Of a prompt without completion of its own: the words its schema allows. */
static int complete_choices(struct completing *completing)
{
    const struct ng_value *schema =
        mcp_prompt_params(&completing->call->arena, completing->prompt.desc);
    const struct ng_value *property =
        json_get_str(json_get(schema, "properties"), completing->argument);
    const struct ng_value *choices = json_get(property, "enum");
    for (const struct ng_value *at = json_first(choices); at != NULL; at = at->next) {
        if (at->type == NG_TYPE_STRING && str_starts(at->text, completing->prefix) &&
            add_value(completing, at->text) != NG_OK) {
            break;
        }
    }
    return NG_OK;
}

static int complete_step(struct ng_call *pub, void *user)
{
    struct completing *completing = user;
    const struct mcp_prompt *prompt = &completing->prompt;
    completing->count = 0; /* it may be asked again */
    completing->looked = 0;
    if (!completing->is_prompt) {
        return complete_resource(completing);
    }
    if (prompt->desc->complete == NULL) {
        return complete_choices(completing);
    }
    call_gives(completing->call);
    int rc = prompt->desc->complete(prompt->plugin->self, pub, completing->argument.data,
                                    completing->prefix, &completing->listing);
    if (completing->more) {
        return NG_OK;
    }
    return call_gave(completing->call, rc);
}

/* ---- the request ---- */

/* A template as resources/templates/list gives it, or as clients write it in short. */
static bool find_template(struct call *call, struct ng_str uri, struct mcp_source *ret)
{
    struct mcp_source source;
    for (size_t i = 0; mcp_source_at(call->gateway, i, &source); i++) {
        const char *kind = source.desc->kind;
        struct ng_str plain;
        if (kind == NULL) {
            plain = mcp_source_name(source.desc);
        } else {
            plain = arena_printf(&call->arena, RESOURCE_URI_SCHEME "{space}/%s/{id}", kind);
        }
        struct ng_str rest = STR_NONE;
        if (str_starts(uri, plain)) {
            rest = str_make(uri.data + plain.len, uri.len - plain.len);
        }
        bool same = rest.data != NULL &&
                    (rest.len == 0 || (kind != NULL && (str_is(rest, "?revision={revision}") ||
                                                        str_is(rest, "{?revision}"))));
        if (same && mcp_sees_plugin(call, source.plugin)) {
            *ret = source;
            return true;
        }
    }
    return false;
}

static int fail_ref(struct call *call, const char *what, struct ng_str name)
{
    struct ng_str shown = utf8_cut(name, MCP_SENTENCE_MAX / 4);
    return call_fail(call, NG_EINVAL, "there is no %s \"%.*s\"", what, (int)shown.len,
                     shown.data);
}

static int find_ref(struct call *call, struct completing *completing,
                    const struct ng_value *ref)
{
    struct ng_str type = json_get_text(ref, "type");
    struct ng_str name = json_get_text(ref, "name");
    struct ng_str uri = json_get_text(ref, "uri");
    struct ng_str argument = completing->argument;
    completing->is_prompt = str_is(type, "ref/prompt");
    if (completing->is_prompt && name.data != NULL) {
        if (!mcp_prompt_find(call, name, &completing->prompt)) {
            return fail_ref(call, "prompt", name);
        }
        const struct ng_value *schema =
            mcp_prompt_params(&call->arena, completing->prompt.desc);
        call->plugin = completing->prompt.plugin;
        if (json_get_str(json_get(schema, "properties"), argument) != NULL) {
            return NG_OK;
        }
        return fail_ref(call, "argument of this prompt called", argument);
    }
    if (str_is(type, "ref/resource") && uri.data != NULL) {
        if (!find_template(call, uri, &completing->source)) {
            return fail_ref(call, "resource template", uri);
        }
        bool known;
        if (completing->source.desc->kind == NULL) {
            known = mcp_template_has(uri, argument);
        } else {
            known = str_is(argument, "space") || str_is(argument, "id") ||
                    str_is(argument, "revision");
        }
        call->plugin = completing->source.plugin;
        if (known) {
            return NG_OK;
        }
        return fail_ref(call, "variable of this template called", argument);
    }
    return call_fail(call, NG_EINVAL,
                     "`params.ref` must be {\"type\":\"ref/prompt\",\"name\":...} or "
                     "{\"type\":\"ref/resource\",\"uri\":...}");
}

static int start_complete(struct mcp_exchange *exchange)
{
    const struct ng_value *params = exchange->message.params;
    const struct ng_value *argument = json_get(params, "argument");
    const struct ng_value *context = json_get(params, "context");
    struct call *call = exchange->call;
    struct completing *completing = arena_zalloc(&call->arena, sizeof(*completing));
    call->read_only = true;
    if (completing == NULL) {
        (void)call_fail(call, NG_EINTERNAL, "out of memory");
        return dispatch_step(call, complete_step, NULL);
    }
    completing->listing.add = complete_add;
    completing->call = call;
    completing->argument = arena_copy(&call->arena, json_get_text(argument, "name"));
    completing->prefix = json_get_text(argument, "value");
    completing->space = json_get_text(json_get(context, "arguments"), "space");
    if (completing->argument.data == NULL || completing->prefix.data == NULL) {
        (void)call_fail(call, NG_EINVAL,
                        "`params.argument` must be {\"name\":...,\"value\":...}, both strings");
    } else {
        (void)find_ref(call, completing, json_get(params, "ref"));
    }
    return dispatch_step(call, complete_step, completing);
}

static void answer_complete(struct mcp_exchange *exchange, const struct call *call)
{
    const struct completing *completing = call->step_user;
    struct buf *out = mcp_result_open(exchange);
    struct ng_writer writer;
    buf_add_c(out, "\"completion\":");
    json_writer_init(&writer, out);
    json_object(&writer);
    json_name(&writer, "values");
    json_array(&writer);
    for (size_t i = 0; i < completing->count; i++) {
        json_string(&writer, completing->values[i]);
    }
    json_end(&writer);
    if (!completing->more) {
        json_member_int(&writer, "total", (int64_t)completing->count);
    }
    json_member_bool(&writer, "hasMore", completing->more);
    json_end(&writer);
    mcp_result_close(exchange, STR_NONE);
}

int mcp_complete(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_complete, answer_complete, mcp_answer_failed,
                                       NULL};
    return mcp_run(exchange, &run);
}
