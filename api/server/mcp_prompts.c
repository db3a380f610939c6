/* SPDX-License-Identifier: MIT */
/* mcp_prompts.c - prompts/list and prompts/get: the plugins' prompts, their arguments read from
 * their schema. */
#include "mcp_prompts.h"

#include "api/auth/whoami.h"
#include "api/base/content.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/dispatch/dispatch.h"

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
    if (desc->params == NULL || json_parse(arena, ng_str_of(desc->params), JSON_DEPTH_DEFAULT,
                                           &schema, NULL) != NG_OK) {
        return NULL;
    }
    return schema;
}

/* ---- prompts/list ---- */

static void print_text(struct ng_writer *writer, const char *name, const struct ng_value *from)
{
    struct ng_str text = json_get_text(from, name);
    if (text.data != NULL) {
        json_member_string(writer, name, text);
    }
}

static void print_arguments(struct ng_writer *writer, const struct ng_value *schema)
{
    const struct ng_value *properties = json_get(schema, "properties");
    json_name(writer, "arguments");
    json_array(writer);
    for (const struct ng_value *at = json_first(properties); at != NULL; at = at->next) {
        json_object(writer);
        json_member_string(writer, "name", at->key);
        print_text(writer, "title", at);
        print_text(writer, "description", at);
        json_member_bool(writer, "required",
                         json_has_text(json_get(schema, "required"), at->key));
        json_end(writer);
    }
    json_end(writer);
}

int mcp_prompts_list(struct mcp_exchange *exchange)
{
    struct mcp_prompt prompt;
    struct ng_writer writer;
    if (mcp_list_open(exchange, "prompts", &writer) == NULL) {
        return NG_OK;
    }
    for (size_t i = 0; mcp_prompt_at(exchange->job->gateway, i, &prompt); i++) {
        const struct ng_prompt *desc = prompt.desc;
        if (!mcp_lists_plugin(exchange->call, prompt.plugin) ||
            (desc->modes != 0 &&
             (desc->modes & NG_IN_MODE(exchange->call->caller.mode)) == 0)) {
            continue;
        }
        json_object(&writer);
        json_member_cstring(&writer, "name", desc->name);
        if (desc->title != NULL) {
            json_member_cstring(&writer, "title", desc->title);
        }
        json_member_cstring(&writer, "description", text_or(desc->summary, desc->name));
        print_arguments(&writer, mcp_prompt_params(&exchange->call->arena, desc));
        json_end(&writer);
    }
    return mcp_list_close(exchange, &writer);
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
    if (choices == NULL || json_has_text(choices, value->text)) {
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
        if (json_has_text(json_get(schema, "required"), at->key) &&
            json_get_str(arguments, at->key) == NULL) {
            rc = call_fail(call, NG_EINVAL, "the prompt `%s` needs the argument `%.*s`",
                           prompting->prompt.desc->name, (int)at->key.len, at->key.data);
        }
    }
    return rc;
}

/* Checks that the object has the form of the protocol. */
static int check_answer(struct call *call, struct prompting *prompting)
{
    const struct ng_value *value = NULL;
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
        json_parse(&call->arena, text, JSON_DEPTH_DEFAULT, &value, NULL) != NG_OK) {
        return call_fail(call, NG_EINTERNAL,
                         "the prompt `%s` returned something other than a JSON object",
                         prompting->prompt.desc->name);
    }
    prompting->messages = json_get(value, "messages");
    if (prompting->messages == NULL || prompting->messages->type != NG_TYPE_ARRAY) {
        return call_fail(call, NG_EINTERNAL, "the prompt `%s` answered without `messages`",
                         prompting->prompt.desc->name);
    }
    struct ng_str description = json_get_text(value, "description");
    if (description.data != NULL) {
        prompting->description = description;
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

/* As they came; printed where members that were null are gone. */
static int take_arguments(struct call *call, struct prompting *prompting)
{
    struct buf text;
    prompting->args = call->pub.args->text;
    if (prompting->args.data != NULL) {
        return NG_OK;
    }
    buf_init(&text, call->gateway->limits.body);
    if (json_print(&text, call->pub.args) == NG_OK) {
        prompting->args = arena_copy(&call->arena, buf_str(&text));
    }
    buf_done(&text);
    if (prompting->args.data != NULL) {
        return NG_OK;
    }
    return call_fail(call, NG_EINTERNAL, "out of memory");
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
    call->pub.args = &no_arguments;
    if (arguments != NULL) {
        call->pub.args = arguments;
    }
    if (prompting == NULL) {
        (void)call_fail(call, NG_EINTERNAL, "out of memory");
    } else if (!mcp_prompt_find(call, name, &prompting->prompt)) {
        (void)call_fail(call, NG_ENOTFOUND,
                        "no prompt is called \"%.*s\"; prompts/list lists them", (int)shown.len,
                        shown.data);
    } else if (check_arguments(call, prompting, call->pub.args) == NG_OK &&
               take_arguments(call, prompting) == NG_OK) {
        prompting->description =
            ng_str_of(text_or(prompting->prompt.desc->summary, prompting->prompt.desc->name));
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

/* With the facts about the caller, of a guide. */
static void print_prompt_text(struct mcp_exchange *exchange, struct buf *out,
                              struct ng_str prompt_text, bool is_guide)
{
    struct buf text;
    int rc = NG_OK;
    if (!is_guide) {
        buf_add_json(out, prompt_text);
        return;
    }
    buf_init(&text, prompt_text.len + 1 + WHOAMI_TEXT_MAX);
    buf_add_str(&text, prompt_text);
    rc = whoami_print_text(exchange->call, &text);
    buf_add_json(out, buf_str(&text));
    if (rc != NG_OK) {
        out->rc = rc; /* answered as a failure */
    }
    buf_done(&text);
}

/* A text and parts: each a message of the user. */
static void print_messages(struct mcp_exchange *exchange, struct buf *out,
                           const struct result *result, bool is_guide)
{
    bool any = false;
    buf_add_char(out, '[');
    if (result->has_text) {
        begin_message(out, &any);
        buf_add_c(out, "{\"type\":\"text\",\"text\":");
        print_prompt_text(exchange, out, result->text, is_guide);
        buf_add_char(out, '}');
    }
    for (const struct part *part = result->parts; part != NULL; part = part->next) {
        begin_message(out, &any);
        content_print_part(out, part);
    }
    buf_add_c(out, any ? "}]" : "]");
}

static void answer_get(struct mcp_exchange *exchange, const struct call *call)
{
    const struct prompting *prompting = call->step_user;
    struct buf *out = mcp_result_open(exchange);
    buf_add_c(out, "\"description\":");
    buf_add_json(out, prompting->description);
    buf_add_c(out, ",\"messages\":");
    if (prompting->messages != NULL) {
        (void)json_print(out, prompting->messages);
    } else {
        /* With arguments, a guide ends with the data that they name. */
        bool is_guide = prompting->prompt.desc->is_guide && json_first(call->pub.args) == NULL;
        print_messages(exchange, out, &call->final, is_guide);
    }
    mcp_result_close(exchange, STR_NONE);
}

int mcp_prompts_get(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_get, answer_get, mcp_answer_failed, NULL};
    const struct ng_value *arguments = json_get(exchange->message.params, "arguments");
    struct ng_str name = mcp_text_param(exchange, "name", "the name of a prompt");
    if (name.data == NULL) {
        return NG_OK;
    }
    if (arguments != NULL && arguments->type != NG_TYPE_OBJECT) {
        return mcp_refuse_params(
            exchange, "`params.arguments` must be an object of strings; leave it out for none");
    }
    return mcp_run(exchange, &run);
}
