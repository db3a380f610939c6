/* SPDX-License-Identifier: MIT */
/* conformance_prompt.c - prompts with every kind of content, completion of an argument, and one
 * that asks the user first. */
#include "conformance.h"

#include <string.h>

/* ---- messages ---- */

static struct ng_writer *prompt_open(struct ng_call *call)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    if (writer != NULL) {
        host->json_object(writer);
        host->json_name(writer, "messages");
        host->json_array(writer);
    }
    return writer;
}

static int prompt_close(struct ng_call *call, struct ng_writer *writer)
{
    call->host->json_end(writer);
    call->host->json_end(writer);
    return NG_OK;
}

/* One message of the user; its content is written between these two. */
static void prompt_begin(struct ng_call *call, struct ng_writer *writer, const char *type)
{
    const struct ng_host *host = call->host;
    host->json_object(writer);
    host->json_name(writer, "role");
    host->json_string(writer, ng_str_of("user"));
    host->json_name(writer, "content");
    host->json_object(writer);
    host->json_name(writer, "type");
    host->json_string(writer, ng_str_of(type));
}

static void prompt_end(struct ng_call *call, struct ng_writer *writer)
{
    call->host->json_end(writer);
    call->host->json_end(writer);
}

static void prompt_member(struct ng_call *call, struct ng_writer *writer, const char *name,
                          struct ng_str text)
{
    call->host->json_name(writer, name);
    call->host->json_string(writer, text);
}

static void prompt_text(struct ng_call *call, struct ng_writer *writer, struct ng_str text)
{
    prompt_begin(call, writer, "text");
    prompt_member(call, writer, "text", text);
    prompt_end(call, writer);
}

static int prompt_no_memory(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "out of memory");
}

/* ---- prompts ---- */

static int prompt_simple(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_reply(call, ng_str_of("This is a simple prompt for testing."));
}

static int prompt_arguments(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_str pieces[] = {ng_str_of("Prompt with arguments: arg1='"),
                              ng_arg_text(call, "arg1"), ng_str_of("', arg2='"),
                              ng_arg_text(call, "arg2"), ng_str_of("'")};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

static int prompt_complete(void *self, struct ng_call *call, const char *argument,
                           struct ng_str prefix, struct ng_listing *listing)
{
    static const char *const words[] = {"testValue1", "paris", "park", "party"};
    struct ng_str none = {NULL, 0};
    (void)self;
    if (strcmp(argument, "arg1") != 0) {
        return NG_OK;
    }
    for (size_t i = 0; i < NG_COUNT(words); i++) {
        struct ng_str word = ng_str_of(words[i]);
        if (word.len >= prefix.len &&
            (prefix.len == 0 || memcmp(word.data, prefix.data, prefix.len) == 0)) {
            if (call->host->list_add(listing, word, word, none, NULL, 0, 0) != NG_OK) {
                return NG_OK; /* enough */
            }
        }
    }
    return NG_OK;
}

static int prompt_resource(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_writer *writer = prompt_open(call);
    (void)self;
    (void)args;
    if (writer == NULL) {
        return prompt_no_memory(call);
    }
    prompt_begin(call, writer, "resource");
    call->host->json_name(writer, "resource");
    call->host->json_object(writer);
    prompt_member(call, writer, "uri", ng_arg_text(call, "resourceUri"));
    prompt_member(call, writer, "mimeType", ng_str_of("text/plain"));
    prompt_member(call, writer, "text", ng_str_of("Embedded resource content for testing."));
    call->host->json_end(writer);
    prompt_end(call, writer);
    prompt_text(call, writer, ng_str_of("Please process the embedded resource above."));
    return prompt_close(call, writer);
}

static int prompt_image(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_writer *writer = prompt_open(call);
    (void)self;
    (void)args;
    if (writer == NULL) {
        return prompt_no_memory(call);
    }
    prompt_begin(call, writer, "image");
    prompt_member(call, writer, "data", ng_str_of(conformance_png_base64));
    prompt_member(call, writer, "mimeType", ng_str_of("image/png"));
    prompt_end(call, writer);
    prompt_text(call, writer, ng_str_of("Please analyze the image above."));
    return prompt_close(call, writer);
}

static int prompt_input(void *self, struct ng_call *call, struct ng_str args)
{
    static const char request[] =
        "{\"message\":\"What context should the prompt use?\",\"requestedSchema\":{"
        "\"type\":\"object\",\"properties\":{\"context\":{\"type\":\"string\"}},"
        "\"required\":[\"context\"]}}";
    const struct ng_value *content = NULL;
    (void)self;
    (void)args;
    int rc = conformance_ask_form(call, "user_context", request, &content);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str context = call->host->json_text(call->host->json_get(content, "context"));
    struct ng_str pieces[] = {ng_str_of("Use this context: "),
                              context.data != NULL ? context : ng_str_of("(none)")};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

const struct ng_prompt conformance_prompts[CONFORMANCE_PROMPTS] = {
    {
        .name = "test_simple_prompt",
        .title = "Simple prompt",
        .summary = "One message without arguments.",
        .get = prompt_simple,
    },
    {
        .name = "test_prompt_with_arguments",
        .title = "Prompt with arguments",
        .summary = "A message that repeats its arguments.",
        .params = "{\"type\":\"object\",\"properties\":{"
                  "\"arg1\":{\"type\":\"string\",\"description\":\"First test argument\"},"
                  "\"arg2\":{\"type\":\"string\",\"description\":\"Second test argument\"}},"
                  "\"required\":[\"arg1\",\"arg2\"]}",
        .get = prompt_arguments,
        .complete = prompt_complete,
    },
    {
        .name = "test_prompt_with_embedded_resource",
        .title = "Prompt with a resource",
        .summary = "A message with a resource in it, and one that asks to process it.",
        .params = "{\"type\":\"object\",\"properties\":{\"resourceUri\":{\"type\":\"string\","
                  "\"description\":\"URI of the resource to embed\"}},"
                  "\"required\":[\"resourceUri\"]}",
        .get = prompt_resource,
    },
    {
        .name = "test_prompt_with_image",
        .title = "Prompt with an image",
        .summary = "A message with a picture in it, and one that asks to look at it.",
        .get = prompt_image,
    },
    {
        .name = "test_input_required_result_prompt",
        .title = "Prompt that asks",
        .summary = "Asks the user for a context and makes a message of it.",
        .get = prompt_input,
    },
};
