/* SPDX-License-Identifier: MIT */
/* tool_call.c - a command's call of a tool. */
#include "tool_call.h"

#include "api/base/content.h"
#include "api/client/command_wait.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/dispatch/dispatch.h"

#define TOOL_PATH "/v1/tools/"
/* A path: more than a word of the command line, escaped. */
#define TOOL_PATH_MAX ((size_t)1024 * 1024)
#define TOOL_ANSWER_MAX ((size_t)512 * 1024 * 1024)
#define TOOL_DONE "may have been carried out"

/* ---- in the running gateway ---- */

struct ng_str tool_call_path(struct command_line *line, const char *tool)
{
    struct buf path;
    buf_init(&path, TOOL_PATH_MAX);
    buf_add_c(&path, TOOL_PATH);
    for (const char *at = tool; *at != '\0'; at++) {
        if (str_is_alpha(*at) || str_is_digit(*at) || *at == '_' || *at == '-') {
            buf_add_char(&path, *at);
        } else {
            buf_printf(&path, "%%%02X", (unsigned)(unsigned char)*at);
        }
    }
    struct ng_str copy = arena_copy(&line->arena, buf_str(&path));
    buf_done(&path);
    return copy;
}

static int tool_call_there(struct command_line *line, struct attach *attach,
                           const struct tool_call *wanted, struct attach_answer *ret)
{
    struct client_request request = {.method = "POST"};
    struct ng_str path = tool_call_path(line, wanted->tool);
    if (path.data != NULL && wanted->is_raw) {
        path = arena_printf(&line->arena, "%s?raw=true", path.data);
    }
    if (path.data == NULL) {
        command_error("out of memory");
        return COMMAND_FAILED;
    }
    request.path = path.data;
    request.headers[request.header_count++] = "Content-Type: application/json";
    request.body = str_or(wanted->args, ng_str_of("{}"));
    if (attach_caller_headers(line, &request) != NG_OK) {
        return COMMAND_USAGE;
    }
    return command_exit_code(attach_request(attach, &request, ret));
}

/* ---- here ---- */

static int tool_call_answer(const struct call *call, struct attach_answer *ret)
{
    struct buf *body = &ret->body;
    buf_init(body, TOOL_ANSWER_MAX);
    ret->status = 200;
    if (call->final.rc == NG_OK) {
        content_print_result(body, &call->final);
    } else {
        ret->status = call->final.status;
        (void)call_print_error(call, body);
    }
    if (body->rc == NG_EINTERNAL) {
        command_error("out of memory for the answer; the request " TOOL_DONE);
    } else if (body->rc != NG_OK) {
        command_error("the answer is too large for this command");
    }
    return command_exit_code(body->rc);
}

static int tool_call_here(const struct command_line *line, struct attach *attach,
                          const struct tool_call *wanted, struct attach_answer *ret)
{
    struct call *call = call_new(attach->gateway);
    if (call == NULL) {
        command_error("out of memory");
        return COMMAND_FAILED;
    }
    call->tool_name = ng_str_of(wanted->tool);
    call->args_text = str_or(wanted->args, ng_str_of("{}"));
    call->options |= wanted->is_raw ? CALL_RAW_ANSWER : 0;
    if (attach_set_caller(line, call) == NG_OK) {
        struct command_wait wait;
        command_wait_begin(&wait, call);
        command_wait_end(&wait, dispatch(call));
    } else {
        call->final = call->staged;
        call->final.code = error_name(NULL, call->staged.rc);
        call->final.status = error_status(NULL, call->staged.rc);
    }
    int rc = tool_call_answer(call, ret);
    call_unref(call);
    return rc;
}

int tool_call(struct command_line *line, struct attach *attach, const struct tool_call *wanted,
              struct attach_answer *ret)
{
    *ret = (struct attach_answer){.status = 0};
    if (attach->gateway != NULL) {
        return tool_call_here(line, attach, wanted, ret);
    }
    return tool_call_there(line, attach, wanted, ret);
}
