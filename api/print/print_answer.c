/* SPDX-License-Identifier: MIT */
/* print_answer.c - prints a tool's answer; both ways of a call end in one form, the REST
 * answer. */
#include "print_answer.h"
#include <string.h>

#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/json/json.h"

#define DONE "may have been carried out"
#define ANSWER_MAX ((size_t)512 * 1024 * 1024)

static void answer_end_line(struct ng_str text)
{
    if (text.len == 0 || text.data[text.len - 1] != '\n') {
        (void)command_put(stdout, ng_str_of("\n"));
    }
}

/* A part that is not text: one line that names it. */
static void answer_part(const struct ng_value *part)
{
    struct ng_str type = json_get_text(part, "type");
    struct ng_str mime = json_get_text(part, "mimeType");
    struct ng_str uri = json_get_text(part, "uri");
    const struct ng_value *resource = json_get(part, "resource");
    if (str_is(type, "text")) {
        struct ng_str text = json_get_text(part, "text");
        (void)command_put(stdout, text);
        answer_end_line(text);
        return;
    }
    if (resource != NULL) {
        uri = json_get_text(resource, "uri");
        mime = json_get_text(resource, "mimeType");
    }
    printf("[%.*s%s%.*s%s%.*s: --json prints it]\n", (int)type.len, type.data,
           text_if(mime.len > 0, " "), (int)mime.len, mime.data, text_if(uri.len > 0, " "),
           (int)uri.len, uri.data);
}

static void answer_result(const struct ng_value *answer)
{
    const struct ng_value *result = json_get(answer, "result");
    const struct ng_value *content = json_get(answer, "content");
    if (json_is(result, NG_TYPE_STRING)) {
        if (result->text.len > 0 || content == NULL) {
            (void)command_put(stdout, result->text);
            answer_end_line(result->text);
        }
    } else if (result != NULL && result->type != NG_TYPE_NULL) {
        struct buf text;
        buf_init(&text, ANSWER_MAX);
        if (json_print(&text, result) == NG_OK) {
            (void)command_put(stdout, buf_str(&text));
            answer_end_line(buf_str(&text));
        }
        buf_done(&text);
    }
    for (const struct ng_value *part = json_first(content); part != NULL; part = part->next) {
        answer_part(part);
    }
}

static void answer_failure(const struct ng_value *answer)
{
    struct ng_str message = json_get_text(answer, "message");
    struct ng_str hint = json_get_text(answer, "hint");
    struct ng_str code = json_get_text(answer, "code");
    command_error("%.*s%s%.*s%s", (int)message.len, message.data, text_if(code.len > 0, " ("),
                  (int)code.len, code.data, text_if(code.len > 0, ")"));
    if (hint.len > 0) {
        (void)fprintf(stderr, "%.*s\n", (int)hint.len, hint.data);
    }
}

int print_answer(int status, struct ng_str body, bool json)
{
    struct arena arena;
    const struct ng_value *answer = NULL;
    int rc = COMMAND_FAILED;
    if (status >= 200 && status < 300) {
        rc = COMMAND_OK;
    }
    if (json) {
        (void)command_put(stdout, body);
        answer_end_line(body);
        return rc;
    }
    arena_init(&arena, ANSWER_MAX);
    /* The gateway wrote it: no limit of depth but the parser's own. */
    if (json_parse(&arena, body, JSON_DEPTH_DEFAULT * 2, &answer, NULL) != NG_OK) {
        rc = COMMAND_FAILED;
        if (arena.oom) {
            command_error("out of memory for the answer, of status %d; the request " DONE,
                          status);
        } else {
            command_error("the gateway answered with status %d and no JSON", status);
        }
    } else if (rc == COMMAND_OK) {
        answer_result(answer);
    } else {
        answer_failure(answer);
    }
    arena_done(&arena);
    return rc;
}
