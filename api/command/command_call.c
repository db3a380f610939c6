/* SPDX-License-Identifier: MIT */
/* command_call.c - notegate call: one call of a tool, here or in the running gateway. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call/tool_call.h"
#include "api/client/trial.h"
#include "api/print/print_answer.h"
#include "command_args.h"
#include "commands.h"
#include "core/base/str.h"
#include "core/config/config.h"
#include "core/dispatch/dispatch.h"
#include "core/gateway/gateway_open.h"

/* Most bytes of arguments; the gateway's limits.body is smaller. */
#define CALL_ARGS_MAX ((size_t)1024 * 1024 * 1024)
/* Of an error: more than a word of the command line, escaped. */
#define CALL_ERROR_MAX ((size_t)1024 * 1024)
#define CALL_READ_BYTES 65536
/* Arguments that no tool accepts: the answer shows a refusal that comes before their check. */
#define CALL_NO_ARGS "[]"
#define CALL_NOT_FOUND 404

/* The state of one call. */
struct call_job {
    struct command_line *line;
    struct attach attach;
    const char *tool;
    struct buf args;
};

/* ---- the arguments ---- */

static int call_read_stdin(struct buf *args)
{
    char chunk[CALL_READ_BYTES];
    size_t len;
    while ((len = fread(chunk, 1, sizeof(chunk), stdin)) > 0) {
        if (buf_add(args, chunk, len) != NG_OK) {
            bool large = args->rc == NG_ETOOLARGE;
            command_error("%s", large ? "the standard input is too large to be arguments"
                                      : "out of memory for the arguments");
            if (large) {
                return COMMAND_USAGE;
            }
            return COMMAND_FAILED;
        }
    }
    if (ferror(stdin)) {
        command_error("cannot read the standard input");
        return COMMAND_FAILED;
    }
    return COMMAND_OK;
}

/* The words behind the tool are key=value, and need its schema. */
static bool call_has_pairs(const struct command_line *line)
{
    return line->word_count > 1 && strcmp(line->words[1], "-") != 0 && line->words[1][0] != '{';
}

/* Editors and shells may begin a file with a byte order mark. */
static struct ng_str call_text(const struct buf *args)
{
    return json_skip_mark(buf_str(args));
}

static int call_check_json(const struct command_line *line, struct buf *args)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    const struct ng_value *object = NULL;
    struct json_error error;
    int rc = COMMAND_OK;
    arena_init(&arena, CALL_MEMORY_MAX);
    if (json_parse(&arena, call_text(args), JSON_DEPTH_DEFAULT, &value, &error) != NG_OK) {
        rc = command_usage(line, "the arguments are not JSON: line %zu, column %zu: %s",
                           error.line, error.column, error.message);
    } else if (value->type == NG_TYPE_STRING &&
               json_parse(&arena, value->text, JSON_DEPTH_DEFAULT, &object, NULL) == NG_OK &&
               object->type == NG_TYPE_OBJECT) {
        buf_clear(args); /* the text of an object is the object, as for REST and MCP */
        (void)buf_add_str(args, value->text);
    } else if (value->type != NG_TYPE_OBJECT && value->type != NG_TYPE_NULL) {
        rc = command_usage(line, "the arguments must be one JSON object");
    }
    arena_done(&arena);
    return rc;
}

/* Arguments that are JSON already; COMMAND_OK also where there are none. */
static int call_take_json(struct call_job *job)
{
    const struct command_line *line = job->line;
    int rc = COMMAND_OK;
    if (line->word_count == 1) {
        buf_add_c(&job->args, "{}");
        return COMMAND_OK;
    }
    if (line->word_count > 2) {
        return command_usage(line, "\"%s\" comes after the arguments, which are JSON",
                             line->words[2]);
    }
    if (strcmp(line->words[1], "-") == 0) {
        rc = call_read_stdin(&job->args);
    } else {
        buf_add_c(&job->args, line->words[1]);
    }
    if (rc != COMMAND_OK) {
        return rc;
    }
    return call_check_json(line, &job->args);
}

static int call_take_pairs(struct call_job *job, const struct ng_value *schema)
{
    struct buf error;
    int rc = COMMAND_OK;
    buf_init(&error, CALL_ERROR_MAX);
    buf_clear(&job->args);
    int built = command_args_build(schema, job->line->words + 1, job->line->word_count - 1,
                                   &job->args, &error);
    if (built == NG_EINTERNAL || error.rc == NG_EINTERNAL) {
        command_error("out of memory for the arguments");
        rc = COMMAND_FAILED;
    } else if (built != NG_OK) {
        rc = command_usage(job->line, "%s",
                           error.len > 0 ? buf_cstr(&error) : "the arguments are too large");
    }
    buf_done(&error);
    return rc;
}

/* ---- the call ---- */

static int call_run(struct call_job *job)
{
    struct attach_answer answer;
    struct tool_call wanted = {.tool = job->tool, .args = call_text(&job->args)};
    int rc = tool_call(job->line, &job->attach, &wanted, &answer);
    if (rc == COMMAND_OK) {
        rc = print_answer(answer.status, buf_str(&answer.body), line_has(job->line, LINE_JSON));
    }
    attach_answer_done(&answer);
    return rc;
}

static int call_here(struct call_job *job)
{
    const struct tool *tool =
        registry_find(job->attach.gateway->registry, ng_str_of(job->tool));
    /* The gateway refuses an unknown tool: its words are not parsed here. */
    if (call_has_pairs(job->line) && tool != NULL) {
        int rc = call_take_pairs(job, tool->params_tree);
        if (rc != COMMAND_OK) {
            return rc;
        }
    }
    return call_run(job);
}

/* Asks the gateway for the tool's schema and types the words by it. A tool that this caller
 * does not get to see is called all the same: the gateway's refusal says why, and what would
 * help. */
static int call_type_there(struct call_job *job)
{
    struct attach_answer answer;
    struct arena arena;
    const struct ng_value *tool = NULL;
    struct ng_str path = tool_call_path(job->line, job->tool);
    struct client_request request = {.method = "GET", .path = path.data};
    int rc = COMMAND_FAILED;
    if (path.data == NULL) {
        command_error("out of memory");
        return rc;
    }
    arena_init(&arena, ATTACH_ANSWER_MAX);
    if (attach_caller_headers(job->line, &request) != NG_OK ||
        attach_request(&job->attach, &request, &answer) != NG_OK) {
        arena_done(&arena);
        return rc;
    }
    if (answer.status == CALL_NOT_FOUND) {
        buf_clear(&job->args);
        buf_add_c(&job->args, CALL_NO_ARGS);
        rc = COMMAND_OK;
    } else if (answer.status != 200) {
        rc = print_answer(answer.status, buf_str(&answer.body), line_has(job->line, LINE_JSON));
    } else if (json_parse(&arena, buf_str(&answer.body), JSON_DEPTH_DEFAULT, &tool, NULL) !=
               NG_OK) {
        command_error("the gateway's definition of the tool is not JSON");
    } else {
        rc = call_take_pairs(job, json_get(tool, "inputSchema"));
    }
    attach_answer_done(&answer);
    arena_done(&arena);
    return rc;
}

static int call_there(struct call_job *job)
{
    if (call_has_pairs(job->line)) {
        int rc = call_type_there(job);
        if (rc != COMMAND_OK) {
            return rc;
        }
    }
    return call_run(job);
}

/* ---- with a gateway of its own ---- */

static int call_open(struct call_job *job)
{
    int rc = attach_open_found(job->line, &job->attach);
    if (rc == COMMAND_OK) {
        rc = job->attach.gateway != NULL ? call_here(job) : call_there(job);
        attach_done(&job->attach);
    }
    return rc;
}

/* ---- without a store ---- */

/* A child process, in a data directory that is then removed. */
static int call_in_trial(void *user, const char *dir)
{
    struct call_job *job = user;
    int rc = trial_config(job->line, dir, true, &job->attach.config);
    if (rc == COMMAND_OK) {
        rc = attach_open_found(job->line, &job->attach);
    }
    if (rc == COMMAND_OK) {
        rc = call_here(job);
        attach_done(&job->attach);
    }
    return rc;
}

/* An unknown tool changes nothing. */
static int call_changes(struct call_job *job, bool *ret)
{
    struct gateway *gateway = NULL;
    struct arena arena;
    const struct ng_value *args = NULL;
    if (attach_describe(&job->attach, &gateway) != NG_OK) {
        return COMMAND_FAILED;
    }
    const struct tool *tool = registry_find(gateway->registry, ng_str_of(job->tool));
    int rc = COMMAND_OK;
    if (tool != NULL && call_has_pairs(job->line)) {
        rc = call_take_pairs(job, tool->params_tree);
    }
    arena_init(&arena, CALL_MEMORY_MAX);
    if (rc == COMMAND_OK && tool != NULL) {
        (void)json_parse(&arena, call_text(&job->args), JSON_DEPTH_DEFAULT, &args, NULL);
        *ret = !dispatch_only_reads(tool, args);
    }
    arena_done(&arena);
    gateway_close(gateway);
    return rc;
}

/* A store is made by a call that changes something, where the data directory was named, and for
 * a journal on a server: it has data of its own to read. */
static int call_without_store(struct call_job *job)
{
    struct attach *attach = &job->attach;
    bool named = config_is_set(attach->config, "data_dir");
    bool journal = !str_is(config_text(attach->config, "journal"), "documents");
    bool changes = false;
    int rc = call_changes(job, &changes);
    if (rc == COMMAND_OK && (changes ? named : journal)) {
        rc = command_config(job->line, &attach->config);
        return rc == COMMAND_OK ? call_open(job) : rc;
    }
    if (rc == COMMAND_OK && changes) {
        command_error("there is no store in %s yet, and no gateway serves it; start one with "
                      "`notegate serve`, or name the data directory with --data-dir",
                      attach->data_dir);
        rc = COMMAND_FAILED;
    } else if (rc == COMMAND_OK) {
        rc = trial_run("notegate-call", call_in_trial, job);
    }
    attach_done(attach);
    return rc;
}

static int call_find(struct call_job *job)
{
    bool running = false;
    int rc = attach_find(job->line, &job->attach, &running);
    if (rc != COMMAND_OK) {
        return rc;
    }
    if (!running) {
        return attach_is_new(&job->attach) ? call_without_store(job) : call_open(job);
    }
    rc = attach_refuse_unused(job->line, &job->attach);
    if (rc == COMMAND_OK) {
        rc = call_there(job);
        attach_done(&job->attach);
    }
    return rc;
}

int command_call(struct command_line *line)
{
    struct call_job job = {.line = line, .tool = line->words[0]};
    buf_init(&job.args, CALL_ARGS_MAX);
    int rc = COMMAND_OK;
    if (!call_has_pairs(line)) {
        rc = call_take_json(&job);
    }
    if (rc == COMMAND_OK) {
        rc = call_find(&job);
    }
    buf_done(&job.args);
    return rc;
}
