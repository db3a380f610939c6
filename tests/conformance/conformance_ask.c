/* SPDX-License-Identifier: MIT */
/* conformance_ask.c - tools that ask the user (forms of every shape) or the client's model. */
#include "conformance.h"

#include <string.h>

/* The answer to a question: an object. NG_EINPUT: asked, to be returned. */
static int ask_object(struct ng_call *call, const char *key, enum ng_ask_kind kind,
                      struct ng_str request, const struct ng_value **ret_answer)
{
    const struct ng_value *answer = call->host->ask(call, key, kind, request);
    if (answer == NULL) {
        return NG_EINPUT;
    }
    if (call->host->json_type(answer) != NG_TYPE_OBJECT) {
        return ng_fail(call, NG_EINVAL, "the answer to `%s` must be an object", key);
    }
    *ret_answer = answer;
    return NG_OK;
}

int conformance_ask_form(struct ng_call *call, const char *key, const char *request,
                         const struct ng_value **ret_content)
{
    const struct ng_host *host = call->host;
    const struct ng_value *answer = NULL;
    int rc = ask_object(call, key, NG_ASK_FORM, ng_str_of(request), &answer);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str action = host->json_text(host->json_get(answer, "action"));
    const struct ng_value *content = host->json_get(answer, "content");
    if (action.len != strlen("accept") || memcmp(action.data, "accept", action.len) != 0 ||
        host->json_type(content) != NG_TYPE_OBJECT) {
        return ng_fail(call, NG_EFAILED, "the question `%s` was not accepted: %.*s", key,
                       (int)action.len, action.data != NULL ? action.data : "");
    }
    *ret_content = content;
    return NG_OK;
}

/* ---- forms ---- */

/* "<before>action=..., content={...}", whatever the user did. */
static int ask_and_tell(struct ng_call *call, struct ng_str request, const char *before)
{
    const struct ng_host *host = call->host;
    const struct ng_value *answer = NULL;
    int rc = ask_object(call, "form", NG_ASK_FORM, request, &answer);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_writer *writer = host->json_writer(call);
    if (writer == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    const struct ng_value *content = host->json_get(answer, "content");
    if (content != NULL) {
        host->json_copy(writer, content);
    } else {
        host->json_object(writer);
        host->json_end(writer);
    }
    struct ng_str pieces[] = {
        ng_str_of(before),
        ng_str_of("action="),
        host->json_text(host->json_get(answer, "action")),
        ng_str_of(", content="),
        host->json_result(writer),
    };
    return host->reply_parts(call, pieces, NG_COUNT(pieces));
}

int conformance_elicitation(void *self, struct ng_call *call, struct ng_str args)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
        "\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}},"
        "\"required\":[\"username\",\"email\"]}";
    const struct ng_host *host = call->host;
    const struct ng_value *parsed = NULL;
    struct ng_writer *writer = host->json_writer(call);
    (void)self;
    (void)args;
    int rc = host->json_parse(call, ng_str_of(schema), &parsed);
    if (rc != NG_OK || writer == NULL) {
        return rc != NG_OK ? rc : ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    host->json_object(writer);
    host->json_name(writer, "message");
    host->json_string(writer, ng_arg_text(call, "message"));
    host->json_name(writer, "requestedSchema");
    host->json_copy(writer, parsed);
    host->json_end(writer);
    return ask_and_tell(call, host->json_result(writer), "User response: ");
}

int conformance_defaults(void *self, struct ng_call *call, struct ng_str args)
{
    static const char request[] =
        "{\"message\":\"Please review and update the form fields with defaults\","
        "\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
        "\"name\":{\"type\":\"string\",\"description\":\"A name\",\"default\":\"John Doe\"},"
        "\"age\":{\"type\":\"integer\",\"description\":\"An age\",\"default\":30},"
        "\"score\":{\"type\":\"number\",\"description\":\"A score\",\"default\":95.5},"
        "\"status\":{\"type\":\"string\",\"description\":\"A status\","
        "\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},"
        "\"verified\":{\"type\":\"boolean\",\"description\":\"Verified?\",\"default\":true}},"
        "\"required\":[]}}";
    (void)self;
    (void)args;
    return ask_and_tell(call, ng_str_of(request), "Elicitation completed: ");
}

int conformance_enums(void *self, struct ng_call *call, struct ng_str args)
{
    static const char request[] =
        "{\"message\":\"Please choose from the options\","
        "\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
        "\"untitledSingle\":{\"type\":\"string\",\"description\":\"One of three\","
        "\"enum\":[\"option1\",\"option2\",\"option3\"]},"
        "\"titledSingle\":{\"type\":\"string\",\"description\":\"One of three with titles\","
        "\"oneOf\":[{\"const\":\"value1\",\"title\":\"First Option\"},"
        "{\"const\":\"value2\",\"title\":\"Second Option\"},"
        "{\"const\":\"value3\",\"title\":\"Third Option\"}]},"
        "\"legacyEnum\":{\"type\":\"string\",\"description\":\"Titles as they used to be\","
        "\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
        "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
        "\"untitledMulti\":{\"type\":\"array\",\"description\":\"Some of three\","
        "\"items\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
        "\"titledMulti\":{\"type\":\"array\",\"description\":\"Some of three with titles\","
        "\"items\":{\"anyOf\":[{\"const\":\"value1\",\"title\":\"First Choice\"},"
        "{\"const\":\"value2\",\"title\":\"Second Choice\"},"
        "{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}},"
        "\"required\":[]}}";
    (void)self;
    (void)args;
    return ask_and_tell(call, ng_str_of(request), "Elicitation completed: ");
}

int conformance_streaming_elicitation(void *self, struct ng_call *call, struct ng_str args)
{
    static const char request[] =
        "{\"message\":\"Shall the stream go on?\",\"requestedSchema\":{\"type\":\"object\","
        "\"properties\":{\"go\":{\"type\":\"boolean\"}},\"required\":[\"go\"]}}";
    struct ng_str none = {NULL, 0};
    (void)self;
    (void)args;
    call->host->progress(call, 1, 2, none);
    return ask_and_tell(call, ng_str_of(request), "Elicitation completed: ");
}

/* ---- the client's model ---- */

/* The text of a message's content: one part, or several of which the first counts. */
static struct ng_str ask_message_text(struct ng_call *call, const struct ng_value *answer)
{
    const struct ng_host *host = call->host;
    const struct ng_value *content = host->json_get(answer, "content");
    if (host->json_type(content) == NG_TYPE_ARRAY) {
        content = host->json_first(content);
    }
    struct ng_str text = host->json_text(host->json_get(content, "text"));
    return text.data != NULL ? text : ng_str_of("(no text)");
}

static int ask_model(struct ng_call *call, const char *key, struct ng_str request)
{
    const struct ng_value *answer = NULL;
    int rc = ask_object(call, key, NG_ASK_MODEL, request, &answer);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str pieces[] = {ng_str_of("LLM response: "), ask_message_text(call, answer)};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

int conformance_sampling(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    (void)self;
    (void)args;
    if (writer == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    host->json_object(writer);
    host->json_name(writer, "messages");
    host->json_array(writer);
    host->json_object(writer);
    host->json_name(writer, "role");
    host->json_string(writer, ng_str_of("user"));
    host->json_name(writer, "content");
    host->json_object(writer);
    host->json_name(writer, "type");
    host->json_string(writer, ng_str_of("text"));
    host->json_name(writer, "text");
    host->json_string(writer, ng_arg_text(call, "prompt"));
    host->json_end(writer);
    host->json_end(writer);
    host->json_end(writer);
    host->json_name(writer, "maxTokens");
    host->json_int(writer, 100);
    host->json_end(writer);
    return ask_model(call, "model", host->json_result(writer));
}

int conformance_missing_capability(void *self, struct ng_call *call, struct ng_str args)
{
    static const char request[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
        "\"Are you there?\"}}],\"maxTokens\":10}";
    (void)self;
    (void)args;
    return ask_model(call, "model", ng_str_of(request));
}

int conformance_input_sampling(void *self, struct ng_call *call, struct ng_str args)
{
    static const char request[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
        "\"What is the capital of France?\"}}],\"maxTokens\":100}";
    (void)self;
    (void)args;
    return ask_model(call, "capital_question", ng_str_of(request));
}
