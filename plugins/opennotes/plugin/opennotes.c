/* SPDX-License-Identifier: MIT */
/* opennotes - Markdown notebooks that agents search, read and write: the plugin's declaration,
 * its start and stop. */

#include <stdlib.h>
#include <string.h>

#include "index/index_wait.h"
#include "move/move.h"
#include "note/frontmatter_check.h"
#include "notebook/notebook.h"
#include "read/read.h"
#include "resources.h"
#include "search/search.h"
#include "sql/sql.h"
#include "text/codes.h"
#include "view/view.h"
#include "write/write.h"

/* ---- life ---- */

static void opennotes_stop(void *user)
{
    struct opennotes *self = user;
    if (self == NULL) {
        return;
    }
    notes_notebooks_close(self->notebooks);
    free(self->folder);
    free(self->daily_path);
    free(self->views);
    free(self);
}

static int read_conf(struct opennotes *self, struct ng_call *call, const struct ng_conf *conf)
{
    const struct ng_host *host = call->host;
    struct ng_str data_dir = host->conf_text(conf, "data_dir");
    struct ng_str views = host->conf_text(conf, "views");
    self->host = host;
    self->budget.max_bytes = (size_t)host->conf_int(conf, "max_bytes");
    self->budget.max_lines = (size_t)host->conf_int(conf, "max_lines");
    self->query_timeout_ms = host->conf_int(conf, "query_timeout");
    self->daily_path = str_dup(host->conf_text(conf, "daily_path"));
    self->folder =
        str_dup(host->format(call, "%.*s/opennotes", (int)data_dir.len, data_dir.data));
    if (self->daily_path == NULL || self->folder == NULL) {
        return notes_fail_memory(call);
    }
    if (views.len == 0) {
        return NG_OK;
    }
    const struct ng_value *value = NULL;
    if (host->json_parse(call, views, &value) != NG_OK ||
        host->json_type(value) != NG_TYPE_OBJECT) {
        return ng_fail(call, NG_EINVAL,
                       "opennotes.views is not a JSON object; write it as "
                       "{\"NAME\":{\"description\":\"...\",\"query\":{...}}}.");
    }
    self->views = str_dup(views);
    return notes_memory(call, self->views != NULL);
}

static int opennotes_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    const struct ng_str *registered = NULL;
    size_t count = call->host->conf_list(conf, "notebooks", &registered);
    struct opennotes *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return notes_fail_memory(call);
    }
    int rc = read_conf(self, call, conf);
    if (rc == NG_OK) {
        rc = notes_notebooks_open(self, call, registered, count);
    }
    if (rc != NG_OK) {
        opennotes_stop(self);
        return rc;
    }
    *ret_self = self;
    return NG_OK;
}

/* ---- the plugin's declaration ---- */

/* The tools that work on one notebook: name, title, effect, flags, check of the arguments. */
#define NOTEBOOK_TOOLS(TOOL)                                                                   \
    TOOL(search, "Search notes", NG_EFFECT_READS, 0, notes_search_check)                       \
    TOOL(list, "List notes", NG_EFFECT_READS, 0, notes_list_check)                             \
    TOOL(get, "Get a note", NG_EFFECT_READS, 0, notes_get_check)                               \
    TOOL(create, "Create a note", NG_EFFECT_WRITES, 0, NULL)                                   \
    TOOL(edit, "Edit a note", NG_EFFECT_WRITES, NG_TOOL_DESTRUCTIVE, NULL)                     \
    TOOL(daily, "The day's note", NG_EFFECT_WRITES, 0, NULL)                                   \
    TOOL(move, "Move a note", NG_EFFECT_WRITES, NG_TOOL_DESTRUCTIVE, NULL)                     \
    TOOL(delete, "Delete a note", NG_EFFECT_WRITES, NG_TOOL_DESTRUCTIVE, NULL)                 \
    TOOL(views, "Views", NG_EFFECT_READS, 0, notes_views_check)                                \
    TOOL(links, "Links of a note", NG_EFFECT_READS, 0, NULL)                                   \
    TOOL(tags, "Tags", NG_EFFECT_READS, 0, NULL)

/* Each releases its worker while it waits for an index. */
#define RUN(id, shown, what, more, check)                                                      \
    static int id##_again(void *user, struct ng_call *call)                                    \
    {                                                                                          \
        return notes_notebook_run(user, call, check, notes_##id##_run);                        \
    }                                                                                          \
    static int id##_waiting(void *user, struct ng_call *call, struct ng_str args)              \
    {                                                                                          \
        const struct opennotes *self = user;                                                   \
        (void)args;                                                                            \
        return notes_wait_run(notes_notebooks_indexes(self->notebooks), call, id##_again,      \
                              user);                                                           \
    }

NOTEBOOK_TOOLS(RUN)

#define TOOL_OF(id, shown, what, more, function)                                               \
    {                                                                                          \
        .name = "opennotes_" #id,                                                              \
        .title = (shown),                                                                      \
        .summary = notes_##id##_summary,                                                       \
        .params = notes_##id##_params,                                                         \
        .result = notes_##id##_result,                                                         \
        .run = (function),                                                                     \
        .effect = (what),                                                                      \
        .space = NG_SPACE_SHARED,                                                              \
        .flags = (more),                                                                       \
    },
#define WAITING(id, shown, what, more, check) TOOL_OF(id, shown, what, more, id##_waiting)

static const struct ng_tool opennotes_tools[] = {NOTEBOOK_TOOLS(WAITING) TOOL_OF(
    notebooks, "List notebooks", NG_EFFECT_READS, 0, notes_notebooks_run)};

static const struct ng_option opennotes_options[] = {
    {
        .name = "notebooks",
        .type = NG_OPTION_LIST,
        .help = "Folders of notes, each PATH or SPACE:/PATH (default space: `shared`). The "
                "first is the default of calls without `notebook`.",
    },
    {
        .name = "views",
        .type = NG_OPTION_TEXT,
        .help = "Views for every notebook: a JSON object of definitions by name.",
    },
    {
        .name = "prefix",
        .type = NG_OPTION_TEXT,
        .fallback = "opennotes_",
        .help = "Prefix of the names of the tools.",
    },
    {
        .name = "daily_path",
        .type = NG_OPTION_TEXT,
        .fallback = "daily/{{date}}.md",
        .help = "Path of the day's note.",
    },
    {
        .name = "query_timeout",
        .type = NG_OPTION_DURATION,
        .fallback = "30s",
        .min = 1,
        .max = (int64_t)3600 * 1000,
        .help = "Time limit of one SQL statement.",
    },
    {
        .name = "max_bytes",
        .type = NG_OPTION_SIZE,
        .fallback = "50KiB",
        .min = 1024,
        .max = (int64_t)4 * 1024 * 1024,
        .help = "Maximum size of an answer; 75 % of it are for results.",
    },
    {
        .name = "max_lines",
        .type = NG_OPTION_INT,
        .fallback = "2000",
        .min = 10,
        .max = 1000000,
        .help = "Maximum number of lines of an answer; 75 % of them are for results.",
    },
};

static const struct ng_code opennotes_codes[] = {
    {"NOTEBOOK_NOT_FOUND", 404, "there is no such notebook, or none at all"},
    {"NOTE_NOT_FOUND", 404, "the notebook has no such note"},
    {"VIEW_NOT_FOUND", 404, "there is no view of this name"},
    {"TEMPLATE_NOT_FOUND", 404, "the notebook has no such template"},
    {"SECTION_NOT_FOUND", 404, "the note has no such heading"},
    {"INVALID_SQL", 400, "the statement is not one that may run here"},
    {"NOTE_EXISTS", 409, "there is a note at this path already"},
    {"NOTE_INVALID_PATH", 400, "the path cannot be that of a note"},
    {"NOTEBOOK_CONFIG_ERROR", 422, "the notebook's .opennotes.json cannot be used"},
    {"VIEW_INVALID_PARAMS", 400, "the view wants other parameters"},
    {"NOT_TEXT", 422, "the note is not UTF-8 text"},
    {"NO_HISTORY", 422, "there is no edit to undo"},
};

static struct ng_str opennotes_working(void *user, struct ng_call *call)
{
    const struct opennotes *self = user;
    return notes_wait_tell(notes_notebooks_indexes(self->notebooks), call);
}

/* For events of notes that tools write; the notes themselves are files. */
static const struct ng_collection opennotes_collections[] = {
    {
        .name = NOTES_COLLECTION,
        .field_size = sizeof(struct ng_field),
    },
};

/* Their changes are events of the core's file service. */
static const struct ng_resources opennotes_resources[] = {
    {
        .kind = "note",
        .title = "Notes",
        .summary = "One Markdown note of a notebook; the id is its absolute path.",
        .mime_type = "text/markdown",
        .collection = NOTES_COLLECTION,
        .list = notes_resource_list,
        .read = notes_resource_read,
        .find = notes_resource_find,
    },
};

static int opennotes_check_merge(void *self, struct ng_call *call, const struct ng_sides *sides,
                                 struct ng_str merged, bool *ret_good)
{
    (void)self;
    (void)call;
    return notes_frontmatter_check(sides->present, sides->before, merged, ret_good);
}

/* For the history of files: any Markdown file may become a note. */
static const struct ng_content_kind opennotes_contents[] = {
    {
        .ending = ".md",
        .check = opennotes_check_merge,
    },
};

static const struct ng_plugin opennotes = {
    .name = "opennotes",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = opennotes_tools,
    .tool_count = NG_COUNT(opennotes_tools),
    .start = opennotes_start,
    .stop = opennotes_stop,
    .options = opennotes_options,
    .option_count = NG_COUNT(opennotes_options),
    .codes = opennotes_codes,
    .code_count = NG_COUNT(opennotes_codes),
    .collections = opennotes_collections,
    .collection_count = NG_COUNT(opennotes_collections),
    .resources = opennotes_resources,
    .resource_count = NG_COUNT(opennotes_resources),
    .name_prefix = "opennotes_",
    .invalid_input = "INVALID_PARAMS",
    .working = opennotes_working,
    .configured = notes_configured,
    .notes = notes_names_list,
    .uses = "files",
    .contents = opennotes_contents,
    .content_count = NG_COUNT(opennotes_contents),
};

NG_EXPORT_PLUGIN(opennotes);
