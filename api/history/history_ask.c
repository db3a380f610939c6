/* SPDX-License-Identifier: MIT */
/* history_ask.c - calls a tool of the history. */
#include "history_ask.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/call/tool_call.h"
#include "api/print/print_answer.h"
#include "core/base/str.h"

/* An id with each byte escaped, and the rest. */
#define ASK_ARGS_MAX ((size_t)1024 * 1024)

void history_ask_init(struct history_ask *ask, struct command_line *line, struct attach *attach)
{
    *ask = (struct history_ask){.line = line, .attach = attach};
    buf_init(&ask->args, ASK_ARGS_MAX);
    arena_init(&ask->arena, 2 * ATTACH_ANSWER_MAX);
}

void history_ask_done(struct history_ask *ask)
{
    buf_done(&ask->args);
    arena_done(&ask->arena);
}

struct ng_writer *history_ask_args(struct history_ask *ask)
{
    buf_clear(&ask->args);
    json_writer_init(&ask->writer, &ask->args);
    json_object(&ask->writer);
    return &ask->writer;
}

void history_ask_text(struct history_ask *ask, const char *name, struct ng_str value)
{
    if (value.data != NULL) {
        json_member_string(&ask->writer, name, value);
    }
}

/* Takes "./" and "../" off the beginning. Returns how many parents they lead up. */
static size_t ask_leading_dots(struct ng_str *inout_path)
{
    struct ng_str path = *inout_path;
    size_t parents = 0;
    while (str_begins(path, "./") || str_begins(path, "../") || str_begins(path, "/")) {
        size_t len = strcspn(path.data, "/") + 1;
        parents += len == sizeof("../") - 1;
        path = str_make(path.data + len, path.len - len);
    }
    *inout_path = path;
    return parents;
}

/* The gateway may have another working directory. It refuses a path that leads through a folder
 * outside of its roots, so the parents are resolved here; getcwd() has no links. */
static struct ng_str ask_path(struct history_ask *ask, struct ng_str path)
{
    char *folder = path.data[0] != '/' ? getcwd(NULL, 0) : NULL;
    if (folder == NULL) {
        return path;
    }
    if (folder[1] == '\0') { /* "/": the path begins with one slash */
        folder[0] = '\0';
    }
    size_t parents = ask_leading_dots(&path);
    for (; parents > 0 && folder[0] != '\0'; parents--) {
        *strrchr(folder, '/') = '\0';
    }
    struct ng_str whole =
        arena_printf(&ask->arena, "%s/%.*s", folder, (int)path.len, path.data);
    free(folder);
    return whole;
}

void history_ask_name(struct history_ask *ask, const struct history_name *name)
{
    if (name->path.len > 0) {
        history_ask_text(ask, "path", ask_path(ask, name->path));
        return;
    }
    history_ask_text(ask, "space", name->space);
    history_ask_text(ask, "collection", name->collection);
    history_ask_text(ask, "id", name->id);
}

static int ask_parse(struct history_ask *ask, const struct attach_answer *answer,
                     enum history_failure failure, const struct ng_value **ret)
{
    const struct ng_value *value = NULL;
    struct ng_str body = arena_copy(&ask->arena, buf_str(&answer->body));
    bool is_good = answer->status >= 200 && answer->status < 300;
    if (!is_good && failure == HISTORY_FAILURE_PRINTED) {
        return print_answer(answer->status, body, line_has(ask->line, LINE_JSON));
    }
    /* The gateway wrote it: no limit of depth but the parser's own. */
    if (body.data == NULL ||
        json_parse(&ask->arena, body, JSON_DEPTH_DEFAULT * 2, &value, NULL) != NG_OK) {
        command_error("%s", ask->arena.oom ? "out of memory for the answer"
                                           : "the answer of the gateway is not JSON");
        return COMMAND_FAILED;
    }
    *ret = is_good ? json_get(value, "result") : value;
    return is_good ? COMMAND_OK : COMMAND_FAILED;
}

int history_ask(struct history_ask *ask, const char *tool, enum history_failure failure,
                const struct ng_value **ret)
{
    struct attach_answer answer;
    struct tool_call wanted = {.tool = tool, .is_raw = true};
    json_end(&ask->writer);
    *ret = NULL;
    if (ask->args.rc != NG_OK) {
        command_error("the arguments are too long");
        return COMMAND_USAGE;
    }
    wanted.args = buf_str(&ask->args);
    arena_reset(&ask->arena);
    int rc = tool_call(ask->line, ask->attach, &wanted, &answer);
    if (rc == COMMAND_OK) {
        rc = ask_parse(ask, &answer, failure, ret);
    }
    attach_answer_done(&answer);
    return rc;
}
