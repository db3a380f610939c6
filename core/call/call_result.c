/* SPDX-License-Identifier: MIT */
/* call_result.c - checks the staged result of a tool: complete, of the declared form, within
 * the limits. */
#include <stdio.h>

#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "gateway.h"
#include "plugin.h"

/* Seconds a client is told to wait when a queue is full. */
#define RESULT_RETRY_SECONDS 1

static const char *result_plugin(const struct call *call)
{
    const struct plugin *plugin = call_plugin(call);
    if (plugin == NULL) {
        return "(none)";
    }
    return plugin->desc.name;
}

/* A link only names a resource: it is no contents of one. */
static bool result_has_contents(const struct call *call)
{
    const struct part *part = call->staged.parts;
    while (part != NULL && part->kind == PART_LINK) {
        part = part->next;
    }
    return call->staged.has_text || call_reply_is_open(call) || part != NULL;
}

/* A success that says nothing is none that a caller could rely on. */
static void result_check_reply(struct call *call)
{
    if (call->tool == NULL && !result_has_contents(call)) {
        call_fail(call, NG_EINTERNAL, "the resource was read, but returned no content");
    } else if (!call_has_reply(call)) {
        call_fail(call, NG_EINTERNAL,
                  "`%.*s` (plugin %s) succeeded without an answer; its changes are kept",
                  (int)call->pub.tool.len, call->pub.tool.data, result_plugin(call));
    }
}

/* ---- what a caller sent, in a message ---- */

/* Messages up to this many bytes stay as they are. */
#define ECHO_FROM ((size_t)1000)
/* Bytes of a text of the arguments in a longer one, and most of such texts. */
#define ECHO_MAX ((size_t)200)
#define ECHOES_MAX 16

/* The longest texts of the arguments, longest first. */
struct echoes {
    struct ng_str texts[ECHOES_MAX];
    size_t count;
};

static void echoes_add(struct echoes *echoes, struct ng_str text)
{
    size_t at = echoes->count;
    if (text.len <= ECHO_MAX) {
        return;
    }
    if (at < ECHOES_MAX) {
        echoes->count++;
    } else if (text.len <= echoes->texts[--at].len) {
        return;
    }
    while (at > 0 && echoes->texts[at - 1].len < text.len) {
        echoes->texts[at] = echoes->texts[at - 1];
        at--;
    }
    echoes->texts[at] = text;
}

static void echoes_find(struct echoes *echoes, const struct ng_value *value)
{
    if (json_is(value, NG_TYPE_STRING)) {
        echoes_add(echoes, value->text);
    }
    for (const struct ng_value *child = json_first(value); child != NULL; child = child->next) {
        echoes_find(echoes, child);
    }
}

/* Shortens each place where the text has the echo. */
static void echo_cut(struct buf *text, struct ng_str echo)
{
    struct buf cut;
    size_t from = 0;
    size_t at = str_find(buf_str(text), echo, 0);
    if (at == SIZE_MAX) {
        return;
    }
    buf_init(&cut, text->max);
    while (at != SIZE_MAX) {
        (void)buf_add(&cut, text->data + from, at - from);
        (void)buf_add_shortened(&cut, echo, ECHO_MAX);
        from = at + echo.len;
        at = str_find(buf_str(text), echo, from);
    }
    (void)buf_add(&cut, text->data + from, text->len - from);
    if (cut.rc != NG_OK) {
        buf_done(&cut);
        return;
    }
    buf_done(text);
    *text = cut;
}

void call_cut_echoes(const struct call *call, struct buf *message)
{
    struct echoes echoes = {.count = 0};
    if (message->len <= ECHO_FROM || message->rc != NG_OK) {
        return;
    }
    echoes_find(&echoes, call->pub.args);
    for (size_t i = 0; i < echoes.count; i++) {
        echo_cut(message, echoes.texts[i]);
    }
}

/* Long texts in the details of an error are cut like those in its message. */
static void shorten_texts(struct call *call, struct ng_value *value)
{
    for (struct ng_value *child = value->first; child != NULL; child = child->next) {
        shorten_texts(call, child);
        if (child->type == NG_TYPE_STRING) {
            child->text = call_shorten(call, child->text, CALL_DETAIL_TEXT_MAX);
        }
        if (child->key.len > CALL_DETAIL_TEXT_MAX) {
            child->key = call_shorten(call, child->key, CALL_DETAIL_TEXT_MAX);
        }
    }
}

static struct ng_str result_details(struct call *call)
{
    struct ng_str text = buf_str(&call->details_buf);
    const struct ng_value *value = NULL;
    if (text.len <= CALL_MESSAGE_MAX ||
        json_parse(&call->arena, text, JSON_DEPTH_DEFAULT, &value, NULL) != NG_OK) {
        return text;
    }
    shorten_texts(call, (struct ng_value *)(uintptr_t)value); /* the tree is this call's */
    buf_clear(&call->details_buf);
    (void)json_print(&call->details_buf, value);
    return buf_str(&call->details_buf);
}

/* Formats the member, such as `"space":"team"`; "" for a tool that does not have it. */
static struct ng_str result_space(const struct call *call, char *text, size_t size)
{
    struct ng_str space = call->caller.space; /* names need no escapes */
    text[0] = '\0';
    if (call->tool != NULL && call->tool->result != NULL &&
        (call->tool->desc.flags & NG_TOOL_BY_SPACE) != 0) {
        (void)snprintf(text, size, "\"" TOOL_SPACE_MEMBER "\":\"%.*s\"", (int)space.len,
                       space.data);
    }
    return ng_str_of(text);
}

/* Adds the member `space` to the answer of a tool with NG_TOOL_BY_SPACE. If memory is
 * exhausted, the answer is sent without it, because the change is committed. */
static void result_add_space(struct call *call)
{
    struct buf *out = &call->reply_buf;
    char text[NG_SPACE_MAX + sizeof("\"" TOOL_SPACE_MEMBER "\":\"\"")];
    struct ng_str member = result_space(call, text, sizeof(text));
    if (member.len == 0 || !str_begins(buf_str(out), "{")) {
        return;
    }
    if (buf_reserve(out, member.len + strlen(",}")) == NULL) {
        out->rc = NG_OK;
        return;
    }
    bool is_first = out->len == strlen("{}");
    out->len--;
    buf_add_c(out, text_if(!is_first, ","));
    buf_add_str(out, member);
    buf_add_char(out, '}');
}

/* Adds the member to the stored answer of an idempotency key, which does not have it. */
static void result_repeat_space(struct call *call)
{
    struct ng_str stored = call->staged.text;
    char text[NG_SPACE_MAX + sizeof("\"" TOOL_SPACE_MEMBER "\":\"\"}")];
    struct ng_str member = result_space(call, text, sizeof(text));
    if (member.len == 0 || !str_begins(stored, "{")) {
        return;
    }
    text[member.len] = '}';
    text[member.len + 1] = '\0';
    if (!str_ends(stored, text)) {
        struct ng_str whole =
            arena_printf(&call->arena, "%.*s%s%s", (int)(stored.len - 1), stored.data,
                         text_if(stored.len > strlen("{}"), ","), text);
        call->staged.text = str_or(whole, stored);
    }
}

static void result_close_buffers(struct call *call)
{
    struct result *staged = &call->staged;
    if (call_reply_is_open(call) && staged->rc == NG_OK) {
        const char *misuse = call->reply_writer.misuse;
        if (call->reply_buf.rc == NG_OK && call->reply_writer.complete) {
            result_add_space(call);
        }
        if (call->reply_buf.rc != NG_OK || !call->reply_writer.complete) {
            call_fail(call, NG_EINTERNAL,
                      "`%.*s` (plugin %s) made an answer that is not one JSON object: %s",
                      (int)call->pub.tool.len, call->pub.tool.data, result_plugin(call),
                      misuse != NULL ? misuse : "an end is missing");
        } else {
            staged->is_json = true;
            staged->has_text = true;
            staged->text = buf_str(&call->reply_buf);
        }
    } else if (call->answer_state == CALL_ANSWER_REPEATED && staged->rc == NG_OK &&
               staged->is_json) {
        result_repeat_space(call);
    }
    if (call_details_are_open(call) && call->details_buf.rc == NG_OK &&
        call->details_writer.complete) {
        staged->details = result_details(call);
    }
}

/* The answer must match the schema that the tool declares. */
static void result_check_output(struct call *call)
{
    struct result *staged = &call->staged;
    if (!staged->is_json) {
        call_fail(call, NG_EINTERNAL,
                  "`%s` declares an object as its answer, but returned none",
                  call->tool->desc.name);
        return;
    }
    const struct ng_value *value = NULL;
    struct json_error error;
    struct violations found;
    found.count = 0;
    int rc = json_parse(&call->arena, staged->text, JSON_DEPTH_DEFAULT, &value, &error);
    if (rc == NG_EJSON) {
        call_fail(call, NG_EINTERNAL, "the answer of `%s` (plugin %s) is not valid JSON: %s",
                  call->tool->desc.name, result_plugin(call), error.message);
        return;
    }
    if (rc == NG_OK && call->tool->result != NULL) {
        rc = schema_check(call->tool->result, value, &call->arena, &found);
    }
    /* The change is made and the answer is complete: return it even if memory does not allow to
     * check it. */
    if (rc != NG_OK && rc != NG_EINTERNAL && !call->arena.failed) {
        struct ng_str path;
        if (found.count > 0) {
            path = found.items[0].path;
        } else {
            path = ng_str_of("");
        }
        call_fail(call, NG_EINTERNAL,
                  "the answer of `%s` (plugin %s) is not of the form it declares (at \"%.*s\")",
                  call->tool->desc.name, result_plugin(call), (int)path.len, path.data);
    }
}

/* A tool that ended with NG_EINPUT must have asked, and what this client can be asked. */
static void result_check_asks(struct call *call)
{
    bool can = call->client_asks != 0;
    for (const struct ask *ask = call->asks; ask != NULL; ask = ask->next) {
        can = can && (call->client_asks & (1U << ask->kind)) != 0;
    }
    if (!can) {
        call_fail(call, NG_EFAILED,
                  "`%.*s` must ask the user, but this client does not support questions",
                  (int)call->pub.tool.len, call->pub.tool.data);
    } else if (call->asks == NULL) {
        call_fail(call, NG_EINTERNAL, "`%.*s` waits for an answer, but has asked no question",
                  (int)call->pub.tool.len, call->pub.tool.data);
    }
}

void call_complete_result(struct call *call)
{
    struct result *staged = &call->staged;
    int failed = atomic_load(&call->failed_rc);
    if (failed < 0) {
        call_fail(call, failed, "%s", call->failed_text);
    } else if (staged->rc == NG_OK && call->after_rc < 0) {
        call_fail(call, call->after_rc, "%s", "");
        staged->message = call->after_text;
    }
    /* Out of memory may have looked to the tool like another failure, as not found or too
     * large. */
    if ((staged->rc == NG_OK && call_lacks_memory(call)) ||
        (staged->rc < 0 && call->arena.oom)) {
        call_no_memory(call);
    }
    if (staged->rc == NG_EINPUT) {
        result_check_asks(call);
    }
    if (staged->rc == NG_EWOULDBLOCK || staged->rc > 0) {
        call_fail(call, NG_EINTERNAL, "`%.*s` ended without an answer", (int)call->pub.tool.len,
                  call->pub.tool.data);
    }
    if (staged->rc == NG_OK && (call->options & CALL_MUST_REPLY) != 0) {
        result_check_reply(call);
    }
    result_close_buffers(call);
    if (staged->rc == NG_OK && call->tool != NULL && staged->has_text &&
        (call->tool->result != NULL || staged->is_json)) {
        result_check_output(call);
    }
    if (staged->rc == NG_OK) {
        call_fit_result(call);
    }
    staged->code = "ok";
    staged->status = 200;
    if (staged->rc != NG_OK) {
        staged->has_text = false;
        staged->is_json = false;
        if (staged->message.len == 0) {
            staged->message = arena_printf(&call->arena, "`%.*s` failed without a message",
                                           (int)call->pub.tool.len, call->pub.tool.data);
        }
        bool busy =
            staged->rc == NG_EBUSY || staged->rc == NG_EUNAVAILABLE || staged->rc == NG_ERATE;
        if (busy && staged->retry_after_s == 0) {
            staged->retry_after_s = RESULT_RETRY_SECONDS;
        }
        staged->code = call_error_name(call, staged->rc);
        staged->status = call_error_status(call, staged->rc);
    }
}
