/* SPDX-License-Identifier: MIT */
/* file_editor.c - declaration of the plugin. It views, creates and edits text files under the
 * gateway's roots, with undo, through the core's file service. */
#include <stdlib.h>
#include <string.h>

#include "file_editor.h"

struct command {
    const char *name;
    const char *first, *second; /* required members, or NULL */
    int (*run)(struct ng_call *call, struct editor_job *job);
};

static int run_view(struct ng_call *call, struct editor_job *job)
{
    return editor_view(call, job->editor, job->path);
}

static const struct command editor_commands[] = {
    {"view", NULL, NULL, run_view},
    {"create", "file_text", NULL, editor_create},
    {"str_replace", "old_str", NULL, editor_str_replace},
    {"insert", "insert_line", "new_str", editor_insert},
    {"undo_edit", NULL, NULL, editor_undo},
    {"regex_replace", "pattern", "new_str", editor_regex_replace},
    {"copy", "destination", NULL, editor_transfer},
    {"move", "destination", NULL, editor_transfer},
    {"delete", NULL, NULL, editor_delete},
    {"search", "pattern", NULL, editor_search},
};

static int check_required(struct ng_call *call, const struct command *command)
{
    bool first = command->first == NULL || ng_has_arg(call, command->first);
    bool second = command->second == NULL || ng_has_arg(call, command->second);
    if (first && second) {
        return NG_OK;
    }
    const char *missing = first ? command->second : command->first;
    const char *expected = strcmp(missing, "insert_line") == 0 ? "an integer" : "a string";
    if (command->second == NULL) {
        return editor_fail_input(
            call, missing, expected,
            call->host->format(call, "Parameter `%s` is required for command: %s",
                               command->first, command->name));
    }
    return editor_fail_input(
        call, missing, expected,
        call->host->format(call, "Parameters `%s` and `%s` are required for command: %s",
                           command->first, command->second, command->name));
}

static int editor_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)args; /* call->args has them, parsed */
    struct ng_str name = ng_arg_text(call, "command");
    const struct command *command = editor_commands; /* the schema has only these */
    while (!str_is(name, command->name)) {
        command++;
    }
    struct editor_job *job = ng_alloc(call, sizeof(*job));
    if (job == NULL) {
        return ng_fail(call, NG_EINTERNAL, "Out of memory.");
    }
    *job = (struct editor_job){
        .editor = self,
        .destination = ng_arg_text(call, "destination"),
        .expected = ng_arg_text(call, "expectedRevision"),
    };
    int rc = check_required(call, command);
    if (rc == NG_OK) {
        rc = editor_path(call, "path", ng_arg_text(call, "path"), &job->path);
    }
    if (rc == NG_OK) {
        rc = command->run(call, job);
    }
    return rc;
}

static int editor_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    struct editor *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return ng_fail(call, NG_EINTERNAL, "Out of memory.");
    }
    self->max_file_size = (uint64_t)call->host->conf_int(conf, "max_file_size");
    self->max_result = (uint64_t)call->host->conf_int(conf, "limits.result");
    *ret_self = self;
    return NG_OK;
}

static void editor_stop(void *self)
{
    free(self);
}

#define INTEGER                                                                                \
    "\"type\":\"integer\",\"minimum\":-9007199254740991,\"maximum\":9007199254740991"

static const char editor_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"command\",\"path\"],"
    "\"properties\":{"
    "\"command\":{\"type\":\"string\",\"enum\":[\"view\",\"create\",\"str_replace\",\"insert\","
    "\"undo_edit\",\"regex_replace\",\"copy\",\"move\",\"delete\","
    "\"search\"],\"description\":\"What to do.\"},"
    "\"path\":{\"type\":\"string\",\"description\":\"Absolute path of the file, or for `view` "
    "and `search` of a folder.\"},"
    "\"file_text\":{\"type\":\"string\",\"description\":\"`create`: the content of the new "
    "file.\"},"
    "\"view_range\":{\"type\":\"array\",\"items\":{" INTEGER "},\"minItems\":2,\"maxItems\":2,"
    "\"description\":\"`view`: first and last line, from 1; last -1: the end.\"},"
    "\"old_str\":{\"type\":\"string\",\"description\":\"`str_replace`: the exact text to "
    "replace; it must occur once.\"},"
    "\"new_str\":{\"type\":\"string\",\"description\":\"`str_replace` (default: empty), "
    "`insert`: the new text. `regex_replace`: the same; $1 or ${name} is a group, $& the "
    "match, $$ a dollar.\"},"
    "\"insert_line\":{" INTEGER ",\"description\":\"`insert`: the line after which to insert; "
    "0 is the top.\"},"
    "\"pattern\":{\"type\":\"string\",\"description\":\"`regex_replace`: a Perl-compatible "
    "regular expression; ^ and $ match at lines. `search`: a text, or with `regex` an "
    "expression.\"},"
    "\"regex\":{\"type\":\"boolean\",\"description\":\"`search`: the pattern is an "
    "expression.\"},"
    "\"glob\":{\"type\":\"string\",\"description\":\"`search`: only files like *.{c,h} or, "
    "with a slash, src/**/*.c.\"},"
    "\"ignore_case\":{\"type\":\"boolean\",\"description\":\"`search`: in any case.\"},"
    "\"max\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,"
    "\"description\":\"`search`: most lines (default: 100).\"},"
    "\"count\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740991,"
    "\"description\":\"`regex_replace`: most matches (default: all).\"},"
    "\"destination\":{\"type\":\"string\",\"description\":\"`copy`, `move`: absolute path "
    "where nothing is.\"},"
    "\"expectedRevision\":{\"type\":\"string\",\"description\":\"Fail with CONFLICT if the "
    "file is at another revision. A view tells it.\"}}}";

static const struct ng_tool editor_tools[] = {
    {
        .name = "fileEditor",
        .title = "File editor",
        .summary = "View, create and edit text files below the gateway's roots, when source "
                   "code, configuration or another plain file is to be read or changed. `view` "
                   "shows a file with line numbers, or lists a folder; `search` finds lines in "
                   "a file or in all files of a folder; `undo_edit` takes the last change of a "
                   "file back, also a `delete`. `create`, `copy` and `move` never overwrite.",
        .params = editor_params,
        .run = editor_run,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_DESTRUCTIVE,
        .read_argument = "command",
        .read_values = "view search",
        .aliases = "file_editor",
    },
};

static const struct ng_option editor_options[] = {
    {
        .name = "max_file_size",
        .type = NG_OPTION_SIZE,
        .fallback = "1MiB",
        .min = 1,
        .max = (int64_t)64 * 1024 * 1024,
        .help = "Largest file that is viewed whole, edited, created or produced.",
    },
};

static const struct ng_code editor_codes[] = {
    {"NOT_TEXT", 422, "the file is not UTF-8 text"},
    {"FILE_EXISTS", 409, "something is already at this path"},
    {"NO_HISTORY", 422, "there is no edit to undo"},
};

/* The core's file service makes the events of their changes. */
static const struct ng_resources editor_resources[] = {
    {
        .kind = "file",
        .title = "Files",
        .summary = "One file below the gateway's roots; the id is its absolute path.",
        .collection = "files",
        .list = editor_resource_list,
        .read = editor_resource_read,
        .complete = editor_resource_complete,
        .find = editor_resource_find,
        .scans = true,
    },
};

static const struct ng_prompt editor_prompts[] = {
    {
        .name = "file_editor_guide",
        .title = "How to edit files",
        .summary = "Tells a model how to use the `fileEditor` tool: looking, making exact "
                   "edits, taking them back, and editing beside other agents, with examples.",
        .get = editor_guide,
        .is_guide = true,
    },
};

static const struct ng_plugin file_editor = {
    .name = "file_editor",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = editor_tools,
    .tool_count = NG_COUNT(editor_tools),
    .start = editor_start,
    .stop = editor_stop,
    .options = editor_options,
    .option_count = NG_COUNT(editor_options),
    .codes = editor_codes,
    .code_count = NG_COUNT(editor_codes),
    .resources = editor_resources,
    .resource_count = NG_COUNT(editor_resources),
    .prompts = editor_prompts,
    .prompt_count = NG_COUNT(editor_prompts),
};

NG_EXPORT_PLUGIN(file_editor);
