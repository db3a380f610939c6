/* SPDX-License-Identifier: MIT */
/* history.c - declaration of the plugin: the history of all documents, for people and agents.
 */
#include "history.h"

#define TEXT(description) "{\"type\":\"string\",\"description\":\"" description "\"}"
#define SHORT_TEXT "{\"type\":\"string\"}"
#define NUMBER(description, range)                                                             \
    "{\"type\":\"integer\"," range ",\"description\":\"" description "\"}"
#define NAMES(description)                                                                     \
    "{\"anyOf\":[" SHORT_TEXT ",{\"type\":\"array\",\"items\":" SHORT_TEXT                     \
    "}],\"description\":\"" description "\"}"
#define OBJECT(members)                                                                        \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" members "}"
#define CURSOR "\"cursor\":" TEXT("The next page.")
_Static_assert(HISTORY_LOG_MAX == 200 && HISTORY_LOG_LIMIT == 20, "as in the schemas");

/* The document; the gateway adds `space`. */
#define ID ",\"id\":" TEXT("Its name or id.")
#define TARGET "\"collection\":" TEXT("Default: notebooks.") ID
#define POINT(what) TEXT(what " 7, change #123, time, day, 2h ago, now.")
#define LINES                                                                                  \
    ",\"start_line\":" NUMBER("From here on.", "\"minimum\":1") ",\"max_lines\":" NUMBER(      \
        "At most.", "\"minimum\":1")

/* Each begins with a comma. */
#define OF_NAMES                                                                               \
    ",\"agent\":" NAMES("By these.") ",\"run\":" NAMES("In these.") ",\"tool\":" NAMES(        \
        "With these.") ",\"action\":" NAMES("created, updated, ...")
#define OF_TIME(since) ",\"since\":" TEXT("After " since ".") ",\"until\":" TEXT("Up to it.")
#define LOG_PAGE                                                                               \
    ",\"by\":{\"type\":\"string\",\"enum\":[\"change\",\"run\"],\"description\":\"run: "       \
    "runs.\"}"                                                                                 \
    ",\"limit\":" NUMBER("Rows.", "\"minimum\":1,\"maximum\":200,\"default\":20") "," CURSOR
#define AT ",\"at\":" POINT("When: revision")
#define FROM_TO ",\"to\":" POINT("Revision") ",\"from\":" TEXT("Default: the one before.")
#define CONTEXT ",\"context\":" NUMBER("Lines around (3).", "\"minimum\":0,\"maximum\":1000")
#define NEEDS_ID ",\"required\":[\"id\"]}"

static const char log_params[] =
    OBJECT("\"collection\":" NAMES("Of these.") ",\"id\":" TEXT(
        "This one; a final *: a beginning.") ",\"space\":" TEXT("Of this one.")
               OF_NAMES OF_TIME("#123, a time, a day, 2h ago") LOG_PAGE) "}";
static const char read_params[] = OBJECT("\"collection\":" TEXT(
    "notebooks (default), pages, code_snippets, research_notes.") ID AT LINES "," CURSOR) "}";
static const char diff_params[] = OBJECT("\"collection\":" NAMES(
    "Default: notebooks.") ID FROM_TO CONTEXT OF_NAMES OF_TIME("a point") "," CURSOR) "}";
static const char blame_params[] = OBJECT(TARGET AT LINES) NEEDS_ID;

/* ---- answers: the members that their forms have; no types, so that they are short ---- */

#define ANSWER(members) "{\"type\":\"object\",\"properties\":{" members "}}"
#define ANY "{}"

static const char log_result[] = ANSWER("\"changes\":" ANY ",\"runs\":" ANY);
static const char read_result[] = ANSWER("\"content\":" ANY ",\"documents\":" ANY);
static const char diff_result[] = ANSWER("\"diff\":" ANY ",\"documents\":" ANY);
static const char blame_result[] = ANSWER("\"lines\":" ANY);

static const struct ng_tool history_tools[] = {
    {
        .name = "history_log",
        .title = "Changes",
        .summary = "List changes in the history, newest first, to see who changed what and "
                   "when.",
        .params = log_params,
        .result = log_result,
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
        .result = read_result,
        .run = history_read_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "history_diff",
        .title = "Comparison",
        .summary = "Compare a document at two points of the history, to see what changed, as a "
                   "unified diff. With `run` or `agent` (or `space`, no `id`): each document, "
                   "from before the first to after the last of these changes.",
        .params = diff_params,
        .result = diff_result,
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
        .result = blame_result,
        .run = history_blame_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
};

static const struct ng_code history_codes[] = {
    {"NOT_KEPT", 404, "the content of this revision was thinned out (history.keep)"},
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
