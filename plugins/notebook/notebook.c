/* SPDX-License-Identifier: MIT */
/* notebook.c - declaration of the plugin: named texts that agents create, read, write, list,
 * search, clear, rename and delete. One notebook is one document, and every write is one change
 * of it.
 */
#include "notebook.h"

#include <stdlib.h>

#define NOTEBOOK_MAX_SIZE_DEFAULT "1MiB"
/* Largest value of notebook.max_size, by the limits of call memory and replies. */
#define NOTEBOOK_MAX_SIZE_MOST ((int64_t)64 * 1024 * 1024)

struct notebook {
    uint64_t max_size; /* bytes of one notebook */
};

static int notebook_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    struct notebook *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    self->max_size = (uint64_t)call->host->conf_int(conf, "max_size");
    *ret_self = self;
    return NG_OK;
}

static void notebook_stop(void *self)
{
    free(self);
}

static int notebook_restore(void *self, struct ng_call *call, const struct ng_content *content,
                            const struct ng_doc *present, struct ng_draft *next)
{
    const struct notebook *notebook = self;
    (void)present;
    return notebook_take_content(call, content, next, notebook->max_size);
}

static int notebook_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)args; /* call->args has them, parsed */
    const struct notebook *notebook = self;
    struct ng_str mode = ng_arg_text(call, "mode");
    struct ng_str name = notebook_name(call);
    if (str_is(mode, "list")) {
        return notebook_list(call);
    }
    if (name.len > NG_ID_MAX) {
        return ng_fail(call, NG_EINVAL, "`name` is %zu bytes long, it may have at most %d",
                       name.len, NG_ID_MAX);
    }
    if (str_is(mode, "read")) {
        return notebook_read(call, name);
    }
    if (str_is(mode, "search")) {
        return notebook_search(call);
    }
    if (str_is(mode, "create")) {
        return notebook_create(call, name, notebook->max_size);
    }
    if (str_is(mode, "clear")) {
        return notebook_clear(call, name);
    }
    if (str_is(mode, "rename")) {
        return notebook_rename(call, name);
    }
    if (str_is(mode, "delete")) {
        return notebook_delete(call, name);
    }
    if (str_is(mode, "undo")) {
        return notebook_undo(call, name);
    }
    return notebook_edit(call, name, notebook->max_size);
}

/* ---- declarations ---- */

/* Model vendors refuse oneOf, and tuples as for readRange. */
static const char notebook_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"mode\"],"
    "\"properties\":{"
    "\"mode\":{\"type\":\"string\","
    "\"enum\":[\"create\",\"list\",\"search\",\"read\",\"write\",\"clear\",\"rename\","
    "\"delete\",\"undo\"],"
    "\"description\":\"`create` makes or overwrites a notebook, `search` finds lines in all, "
    "`write` replaces, inserts or appends text, `clear` empties it, `undo` takes back your own "
    "last change, also `rename` and `delete`.\"},"
    "\"name\":{\"type\":\"string\","
    "\"description\":\"Name of the notebook. Without it: `default`, which always exists.\"},"
    "\"newStr\":{\"type\":\"string\","
    "\"description\":\"`create`: the first content. `write`: the text to put in; alone it is "
    "appended.\"},"
    "\"query\":{\"type\":\"string\",\"description\":\"`search`: words of a line, in any "
    "case.\"},"
    "\"newName\":{\"type\":\"string\",\"description\":\"For `rename`.\"},"
    "\"readRange\":{\"type\":\"array\",\"items\":{\"type\":\"integer\","
    "\"minimum\":-9007199254740992,\"maximum\":9007199254740992},"
    "\"minItems\":2,\"maxItems\":2,"
    "\"description\":\"`read`: first and last line, from 1 (-1: the last line), with "
    "numbers.\"},"
    "\"oldStr\":{\"type\":\"string\","
    "\"description\":\"`write`: the text whose first occurrence newStr replaces. Not with "
    "insertLine.\"},"
    "\"insertLine\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\","
    "\"minimum\":-9007199254740992,\"maximum\":9007199254740992}],"
    "\"description\":\"`write`: insert newStr after this line: a number (0: at the start, -1: "
    "after the last line, -2: before the last line), or a text (after the first line that "
    "contains it).\"},"
    "\"expectedRevision\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9007199254740992,"
    "\"description\":\"Fail with CONFLICT if the notebook is at another revision (0: does not "
    "exist yet). A read tells it.\"}}}";

static const struct ng_tool notebook_tools[] = {
    {
        .name = "notebook",
        .title = "Notebook",
        .summary =
            "Keep named text notebooks that survive the conversation and can be shared by "
            "several agents: for notes, plans and lists to be read again later.",
        .params = notebook_params,
        .run = notebook_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_OWN,
        .flags = NG_TOOL_MEMORY | NG_TOOL_DESTRUCTIVE | NG_TOOL_BY_SPACE,
        .read_argument = "mode",
        .read_values = "read list search",
    },
};

static const struct ng_option notebook_options[] = {
    {
        .name = "max_size",
        .type = NG_OPTION_SIZE,
        .fallback = NOTEBOOK_MAX_SIZE_DEFAULT,
        .min = 1,
        .max = NOTEBOOK_MAX_SIZE_MOST,
        .help = "Largest text of one notebook.",
    },
};

static const struct ng_collection notebook_collections[] = {
    {
        .name = NOTEBOOK_COLLECTION,
        .flags = NG_COLLECTION_TEXT_SEARCH | NG_COLLECTION_CONTENT,
        .field_size = sizeof(struct ng_field),
        .restore = notebook_restore,
    },
};

static const struct ng_resources notebook_resources[] = {
    {
        .kind = "notebook",
        .title = "Notebooks",
        .summary = "The text of one notebook.",
        .mime_type = "text/plain",
        .collection = NOTEBOOK_COLLECTION,
        .list = notebook_resource_list,
        .read = notebook_resource_read,
        .complete = notebook_resource_complete,
        .find = notebook_resource_find,
    },
};

static const struct ng_prompt notebook_prompts[] = {
    {
        .name = "notebook_guide",
        .title = "How to use notebooks",
        .summary = "Tells a model how to keep notes with the `notebook` tool: what each mode "
                   "does, how to edit safely beside other agents, with examples.",
        .params = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
                  "\"description\":\"A notebook to begin with: its text is part of the "
                  "prompt.\"}}}",
        .get = notebook_guide,
        .complete = notebook_guide_complete,
        .is_guide = true,
    },
};

static const struct ng_plugin notebook_plugin = {
    .name = "notebook",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = notebook_tools,
    .tool_count = NG_COUNT(notebook_tools),
    .start = notebook_start,
    .stop = notebook_stop,
    .options = notebook_options,
    .option_count = NG_COUNT(notebook_options),
    .collections = notebook_collections,
    .collection_count = NG_COUNT(notebook_collections),
    .resources = notebook_resources,
    .resource_count = NG_COUNT(notebook_resources),
    .prompts = notebook_prompts,
    .prompt_count = NG_COUNT(notebook_prompts),
};

NG_EXPORT_PLUGIN(notebook_plugin);
