/* SPDX-License-Identifier: MIT */
/* history.c - declaration of the plugin: the history of all documents, for people and agents.
 */
#include "history.h"

#define TEXT(description) "{\"type\":\"string\",\"description\":\"" description "\"}"
#define SHORT_TEXT "{\"type\":\"string\"}"
#define NUMBER(description, range)                                                             \
    "{\"type\":\"integer\"," range ",\"description\":\"" description "\"}"
/* A text, or a list of texts. Vendors of models and frameworks of agents refuse a member
 * without `type` or `anyOf`, and an array without `items`. */
#define NAMES(description)                                                                     \
    "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]," \
    "\"description\":\"" description "\"}"
#define OBJECT(members)                                                                        \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" members "}"
#define CURSOR "\"cursor\":" TEXT("Next page.")
_Static_assert(HISTORY_LOG_MAX == 200 && HISTORY_LOG_LIMIT == 20, "as in the schemas");

/* The document; the gateway adds `space`. */
#define PATH ",\"path\":" TEXT("Or a file.")
#define ID ",\"id\":" TEXT("Its id.") PATH
#define TARGET "\"collection\":" TEXT("Default: notebooks.") ID
#define POINT(what) TEXT(what " 7, #123, time, day, 2h ago, now.")
#define LINES                                                                                  \
    ",\"start_line\":" NUMBER("From here on.", "\"minimum\":1") ",\"max_lines\":" NUMBER(      \
        "At most.", "\"minimum\":1")

/* Each begins with a comma. */
#define ACTION ",\"action\":" NAMES("Such as created.")
#define OF_NAMES                                                                               \
    ",\"agent\":" NAMES("Of these agents.") ",\"run\":" NAMES(                                 \
        "Of these runs.") ",\"tool\":" NAMES("Of these tools.") ACTION
#define OF_TIME(since) ",\"since\":" TEXT("After " since ".") ",\"until\":" TEXT("Up to it.")
#define LOG_PAGE                                                                               \
    ",\"by\":{\"type\":\"string\",\"enum\":[\"change\",\"run\"],\"description\":\"run: "       \
    "runs.\"}"                                                                                 \
    ",\"limit\":" NUMBER("Rows.", "\"minimum\":1,\"maximum\":200,\"default\":20") "," CURSOR
#define AT ",\"at\":" POINT("Revision")
#define FROM_TO ",\"to\":" POINT("Revision") ",\"from\":" TEXT("Default: the one before.")
#define CONTEXT ",\"context\":" NUMBER("Lines around (3).", "\"minimum\":0,\"maximum\":1000")
#define CHANGES                                                                                \
    ",\"changes\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"description\":"       \
    "\"These "                                                                                 \
    "numbers.\"}"
#define DRY_RUN                                                                                \
    ",\"dry_run\":{\"type\":\"boolean\",\"default\":true,\"description\":\"false: do it.\"},"  \
    "\"continue\":" TEXT("An unfinished undo.")

static const char log_params[] =
    OBJECT("\"collection\":" NAMES("Of these kinds.") ",\"id\":" TEXT(
        "This one; a final *: a beginning.") PATH ",\"space\":" TEXT("Of this one.")
               OF_NAMES OF_TIME("#123, a time, a day, 2h ago") LOG_PAGE) "}";
static const char read_params[] =
    OBJECT("\"collection\":" TEXT("Default: notebooks.") ID AT LINES "," CURSOR) "}";
static const char diff_params[] = OBJECT("\"collection\":" NAMES(
    "Default: notebooks.") ID FROM_TO CONTEXT OF_NAMES OF_TIME("a point") "," CURSOR) "}";
static const char blame_params[] = OBJECT(TARGET AT LINES) "}";
static const char undo_params[] =
    OBJECT("\"collection\":" NAMES("Of these kinds.") ",\"id\":" TEXT("This one, or a*.") PATH
           ",\"space\":" TEXT("Of this one.") OF_NAMES OF_TIME("a point") CHANGES
           ","
           "\"upto\":" NUMBER("That of the preview.", "\"minimum\":1") DRY_RUN) "}";
static const char restore_params[] = OBJECT(TARGET AT ",\"expectedRevision\":" NUMBER(
    "Else CONFLICT.", "\"minimum\":0")) ",\"required\":[\"at\"]}";

/* ---- answers: their members are those of the forms that the guide has ---- */

static const char result[] = "{\"type\":\"object\"}";

static const struct ng_tool history_tools[] = {
    {
        .name = "history_log",
        .title = "Changes",
        .summary = "List changes in the history, newest first, to see who changed what and "
                   "when.",
        .params = log_params,
        .result = result,
        .run = history_log_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
    },
    {
        .name = "history_read",
        .title = "Document at a point",
        .summary = "Read a document of the history, to see what it was at a point. Without "
                   "`id`: those that were there.",
        .params = read_params,
        .result = result,
        .run = history_read_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "history_diff",
        .title = "Comparison",
        .summary = "Compare a document at two points of the history, to see what changed, as a "
                   "unified "
                   "diff. With `run`, `agent` or `space`: each document that these changes "
                   "changed.",
        .params = diff_params,
        .result = result,
        .run = history_diff_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "history_blame",
        .title = "Origin of lines",
        .summary = "Find in the history who wrote each line, to know where it comes from.",
        .params = blame_params,
        .result = result,
        .run = history_blame_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "history_undo",
        .title = "Undo of many changes",
        .summary =
            "Take back in the history what a run did, or an agent since a point, to repair "
            "many documents; what others changed since stays. Preview first.",
        .params = undo_params,
        .result = result,
        .run = history_undo_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_DESTRUCTIVE | NG_TOOL_STAYS,
    },
    {
        .name = "history_restore",
        .title = "Restoration",
        .summary = "Give a document the content of a point of the history, to repair it or to "
                   "bring it back.",
        .params = restore_params,
        .result = result,
        .run = history_restore_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_DESTRUCTIVE | NG_TOOL_BY_SPACE,
    },
};

static const struct ng_code history_codes[] = {
    {"NOT_KEPT", 404,
     "the content of this revision is not kept (history.keep, history.max_file)"},
};

static const struct ng_plugin history_plugin = {
    .name = "history",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = history_tools,
    .tool_count = NG_COUNT(history_tools),
    .codes = history_codes,
    .code_count = NG_COUNT(history_codes),
};

NG_EXPORT_PLUGIN(history_plugin);
