/* SPDX-License-Identifier: MIT */
/* mcp_prompts.c - prompts/list and prompts/get: the plugins' prompts, their arguments read from
 * their schema. */
#include "mcp_prompts.h"

#include "api/base/content.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/dispatch/dispatch.h"

static const struct ng_str no_text = {NULL, 0};

/* ---- which there are ---- */

bool mcp_prompt_at(struct gateway *gateway, size_t index, struct mcp_prompt *ret)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(gateway->registry, &plugins);
    for (size_t i = 0; i < count; i++) {
        const struct ng_plugin *desc = &plugins[i]->desc;
        if (index < desc->prompt_count) {
            ret->plugin = plugins[i];
            ret->desc = &desc->prompts[index];
            return true;
        }
        index -= desc->prompt_count;
    }
    return false;
}

bool mcp_prompt_find(struct call *call, struct ng_str name, struct mcp_prompt *ret)
{
    struct mcp_prompt prompt;
    for (size_t i = 0; mcp_prompt_at(call->gateway, i, &prompt); i++) {
        if (str_is(name, prompt.desc->name) && mcp_sees_plugin(call, prompt.plugin)) {
            *ret = prompt;
            return true;
        }
    }
    return false;
}

const struct ng_value *mcp_prompt_params(struct arena *arena, const struct ng_prompt *desc)
{
    const struct ng_value *schema = NULL;
    struct json_error error;
    if (desc->params == NULL || json_parse(arena, ng_str_of(desc->params), JSON_DEPTH_DEFAULT,
                                           &schema, &error) != NG_OK) {
        return NULL;
    }
    return schema;
}

static bool is_required(const struct ng_value *schema, struct ng_str name)
{
    const struct ng_value *required = json_get(schema, "required");
    for (const struct ng_value *at = json_first(required); at != NULL; at = at->next) {
        if (at->type == NG_TYPE_STRING && str_equal(at->text, name)) {
            return true;
        }
    }
    return false;
}

/* ---- prompts/list ---- */

static void print_text(struct ng_writer *writer, const char *name, const struct ng_value *value)
{
    if (value != NULL && value->type == NG_TYPE_STRING) {
        json_name(writer, name);
        json_string(writer, value->text);
    }
}

static void print_arguments(struct ng_writer *writer, const struct ng_value *schema)
{
    const struct ng_value *properties = json_get(schema, "properties");
    json_name(writer, "arguments");
    json_array(writer);
    for (const struct ng_value *at = json_first(properties); at != NULL; at = at->next) {
        json_object(writer);
        json_name(writer, "name");
        json_string(writer, at->key);
        print_text(writer, "title", json_get(at, "title"));
        print_text(writer, "description", json_get(at, "description"));
        json_name(writer, "required");
        json_bool(writer, is_required(schema, at->key));
        json_end(writer);
    }
    json_end(writer);
}

int mcp_prompts_list(struct mcp_exchange *exchange)
{
    struct mcp_prompt prompt;
    if (!mcp_check_whole(exchange)) {
        return NG_OK;
    }
    struct buf *out = mcp_answer_open(exchange);
    struct ng_writer writer;
    mcp_result_begin(exchange, out);
    buf_add_c(out, "\"prompts\":");
    json_writer_init(&writer, out);
    json_array(&writer);
    for (size_t i = 0; mcp_prompt_at(exchange->job->gateway, i, &prompt); i++) {
        const struct ng_prompt *desc = prompt.desc;
        if (!mcp_lists_plugin(exchange->call, prompt.plugin) ||
            (desc->modes != 0 &&
             (desc->modes & NG_IN_MODE(exchange->call->caller.mode)) == 0)) {
            continue;
        }
        json_object(&writer);
        json_name(&writer, "name");
        json_cstring(&writer, desc->name);
        if (desc->title != NULL) {
            json_name(&writer, "title");
            json_cstring(&writer, desc->title);
        }
        json_name(&writer, "description");
        json_cstring(&writer, desc->summary == NULL ? desc->name : desc->summary);
        print_arguments(&writer, mcp_prompt_params(&exchange->call->arena, desc));
        json_end(&writer);
    }
    json_end(&writer);
    mcp_print_cache(exchange, out, MCP_LIST_TTL_MS);
    mcp_result_end(exchange, out, no_text);
    if (exchange->call->arena.oom && out->rc == NG_OK) {
        out->rc = NG_EINTERNAL; /* a list in which something is missing */
    }
    mcp_answer_close(exchange);
    return NG_OK;
}

/* ---- prompts/get ---- */

/* Memory of the call. */
struct prompting {
    struct mcp_prompt prompt;
    struct ng_str args;
    const struct ng_value *messages; /* of an answer that is an object */
    struct ng_str description;
};

/* NG_OK, or the call has failed with a sentence that names the argument. */
static int check_argument(struct call *call, const struct prompting *prompting,
                          const struct ng_value *properties, const struct ng_value *value)
{
    const char *prompt = prompting->prompt.desc->name;
    const struct ng_value *property = json_get_str(properties, value->key);
    struct ng_str shown = utf8_cut(value->key, MCP_SENTENCE_MAX / 4);
    if (property == NULL) {
        return call_fail(call, NG_EINVAL, "the prompt `%s` has no argument `%.*s`", prompt,
                         (int)shown.len, shown.data);
    }
    if (value->type != NG_TYPE_STRING) {
        return call_fail(call, NG_EINVAL, "the argument `%.*s` of `%s` must be a string",
                         (int)shown.len, shown.data, prompt);
    }
    const struct ng_value *choices = json_get(property, "enum");
    bool good = choices == NULL;
    for (const struct ng_value *at = good ? NULL : choices->first; at != NULL && !good;
         at = at->next) {
        good = at->type == NG_TYPE_STRING && str_equal(at->text, value->text);
    }
    if (good) {
        return NG_OK;
    }
    return call_fail(call, NG_EINVAL, "the argument `%.*s` of `%s` must be one of %.*s",
                     (int)shown.len, shown.data, prompt, (int)choices->text.len,
                     choices->text.data);
}

static int check_arguments(struct call *call, const struct prompting *prompting,
                           const struct ng_value *arguments)
{
    const struct ng_value *schema = mcp_prompt_params(&call->arena, prompting->prompt.desc);
    const struct ng_value *properties = json_get(schema, "properties");
    int rc = NG_OK;
    for (const struct ng_value *at = arguments->first; at != NULL && rc == NG_OK;
         at = at->next) {
        rc = check_argument(call, prompting, properties, at);
    }
    for (const struct ng_value *at = json_first(properties); at != NULL && rc == NG_OK;
         at = at->next) {
        if (is_required(schema, at->key) && json_get_str(arguments, at->key) == NULL) {
            rc = call_fail(call, NG_EINVAL, "the prompt `%s` needs the argument `%.*s`",
                           prompting->prompt.desc->name, (int)at->key.len, at->key.data);
        }
    }
    return rc;
}

/* An object must be what the protocol wants of it. */
static int check_answer(struct call *call, struct prompting *prompting)
{
    const struct ng_value *value = NULL;
    const struct ng_value *description;
    struct json_error error;
    if (!call_reply_is_open(call)) {
        if (call->staged.has_text || call->staged.parts != NULL) {
            return NG_OK;
        }
        return call_fail(call, NG_EINTERNAL, "the prompt `%s` returned no answer",
                         prompting->prompt.desc->name);
    }
    struct ng_str text =
        arena_copy(&call->arena, str_make(buf_cstr(&call->reply_buf), call->reply_buf.len));
    if (text.data == NULL ||
        json_parse(&call->arena, text, JSON_DEPTH_DEFAULT, &value, &error) != NG_OK) {
        return call_fail(call, NG_EINTERNAL,
                         "the prompt `%s` returned something other than a JSON object",
                         prompting->prompt.desc->name);
    }
    prompting->messages = json_get(value, "messages");
    description = json_get(value, "description");
    if (prompting->messages == NULL || prompting->messages->type != NG_TYPE_ARRAY) {
        return call_fail(call, NG_EINTERNAL, "the prompt `%s` answered without `messages`",
                         prompting->prompt.desc->name);
    }
    if (description != NULL && description->type == NG_TYPE_STRING) {
        prompting->description = description->text;
    }
    return NG_OK;
}

static int get_step(struct ng_call *pub, void *user)
{
    struct prompting *prompting = user;
    const struct mcp_prompt *prompt = &prompting->prompt;
    int rc = prompt->desc->get(prompt->plugin->self, pub, prompting->args);
    if (rc != NG_OK) {
        return rc;
    }
    return check_answer(call_of(pub), prompting);
}

static int start_get(struct mcp_exchange *exchange)
{
    static const struct ng_value no_arguments = {.type = NG_TYPE_OBJECT,
                                                 .text = {"{}", sizeof("{}") - 1}};
    struct call *call = exchange->call;
    struct ng_str name = json_get(exchange->message.params, "name")->text;
    const struct ng_value *arguments = json_get(exchange->message.params, "arguments");
    struct prompting *prompting = arena_zalloc(&call->arena, sizeof(*prompting));
    struct ng_str shown = utf8_cut(name, MCP_SENTENCE_MAX / 4);
    call->read_only = true;
    if (arguments == NULL) {
        call->pub.args = &no_arguments;
    } else {
        call->pub.args = arguments;
    }
    if (prompting == NULL) {
        (void)call_fail(call, NG_EINTERNAL, "out of memory");
    } else if (!mcp_prompt_find(call, name, &prompting->prompt)) {
        (void)call_fail(call, NG_ENOTFOUND,
                        "no prompt is called \"%.*s\"; prompts/list lists them", (int)shown.len,
                        shown.data);
    } else if (check_arguments(call, prompting, call->pub.args) == NG_OK) {
        prompting->args = call->pub.args->text;
        prompting->description = ng_str_of(prompting->prompt.desc->summary == NULL
                                               ? prompting->prompt.desc->name
                                               : prompting->prompt.desc->summary);
        call->plugin = prompting->prompt.plugin;
        call->step_space = prompting->prompt.desc->space;
    }
    return dispatch_step(call, get_step, prompting);
}

static void begin_message(struct buf *out, bool *any)
{
    buf_add_c(out, *any ? "},{" : "{");
    buf_add_c(out, "\"role\":\"user\",\"content\":");
    *any = true;
}

/* A text and parts: each a message of the user. */
static void print_messages(struct buf *out, const struct result *result)
{
    bool any = false;
    buf_add_char(out, '[');
    if (result->has_text) {
        begin_message(out, &any);
        buf_add_c(out, "{\"type\":\"text\",\"text\":");
        buf_add_json(out, result->text);
        buf_add_char(out, '}');
    }
    for (const struct part *part = result->parts; part != NULL; part = part->next) {
        begin_message(out, &any);
        content_print_part(out, part);
    }
    buf_add_c(out, any ? "}]" : "]");
}

static void answer_get(struct mcp_exchange *exchange)
{
    const struct result *result = &exchange->call->final;
    if (result->rc != NG_OK) {
        mcp_answer_failed(exchange, no_text);
        return;
    }
    const struct prompting *prompting = exchange->call->step_user;
    struct buf *out = mcp_answer_open(exchange);
    mcp_result_begin(exchange, out);
    buf_add_c(out, "\"description\":");
    buf_add_json(out, prompting->description);
    buf_add_c(out, ",\"messages\":");
    if (prompting->messages != NULL) {
        (void)json_print(out, prompting->messages);
    } else {
        print_messages(out, result);
    }
    mcp_result_end(exchange, out, no_text);
    mcp_answer_close(exchange);
}

int mcp_prompts_get(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_get, answer_get};
    const struct ng_value *arguments = json_get(exchange->message.params, "arguments");
    struct ng_str name = mcp_text_param(exchange, "name", "the name of a prompt");
    if (name.data == NULL) {
        return NG_OK;
    }
    if (arguments != NULL && arguments->type != NG_TYPE_OBJECT) {
        mcp_answer_error(exchange, 200, MCP_INVALID_PARAMS,
                         ng_str_of("`params.arguments` must be an object of strings; leave it "
                                   "out for none"),
                         no_text);
        return NG_OK;
    }
    return mcp_run(exchange, &run);
}
