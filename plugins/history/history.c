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
    ",\"maxItems\":64}],\"description\":\"" description "\"}"
#define OBJECT(members)                                                                        \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" members "}"
#define CURSOR "\"cursor\":" TEXT("Of the last answer: the next page.")
_Static_assert(HISTORY_NAMES_MAX == 64 && HISTORY_LOG_MAX == 200 && HISTORY_LOG_LIMIT == 20,
               "as in the schemas");

/* The document; the gateway adds `space`. */
#define TARGET                                                                                 \
    "\"collection\":" TEXT(                                                                    \
        "notebooks (default), pages, code_snippets, research_notes.") ","                      \
                                                                      "\"id\":" TEXT(          \
                                                                          "Its name or id.")
#define POINT(what) TEXT(what " revision 7, change #123, time, day, 2h or 7d ago, now.")
#define LINES                                                                                  \
    "\"start_line\":" NUMBER("From this line on.",                                             \
                             "\"minimum\":1") ","                                              \
                                              "\"max_lines\":" NUMBER("At most so many.",      \
                                                                      "\"minimum\":1")

/* Each begins with a comma. */
#define OF_NAMES                                                                               \
    ",\"run\":" NAMES("Only in these.") ",\"tool\":" NAMES(                                    \
        "Only with these.") ",\"action\":" NAMES("created, updated, ...") ",\"collection\""    \
                                                                          ":" NAMES("Only of " \
                                                                                    "these.")
#define OF_PLACE                                                                               \
    ",\"space\":" TEXT("Only of this one.") ",\"id\":" TEXT(                                   \
        "Only this one; a final * means a beginning.")
#define OF_TIME                                                                                \
    ",\"since\":" TEXT("After #123, a time, a day, 2h or 7d ago.") ",\"until\":" TEXT(         \
        "Up to it.")
#define LOG_PAGE                                                                               \
    ",\"by\":{\"type\":\"string\",\"enum\":[\"change\",\"run\"],\"description\":\"run: "       \
    "runs.\"}"                                                                                 \
    ",\"limit\":" NUMBER("Rows.", "\"minimum\":1,\"maximum\":200,\"default\":20") "," CURSOR
#define AT ",\"at\":" POINT("When:")
#define FROM_TO                                                                                \
    ",\"to\":" POINT("Newer:") ",\"from\":" TEXT("Older (default: the revision before).")
#define CONTEXT                                                                                \
    ",\"context\":" NUMBER("Lines around.", "\"minimum\":0,\"maximum\":1000,\"default\":3")
#define NEEDS_ID ",\"required\":[\"id\"]}"

static const char log_params[] =
    OBJECT("\"agent\":" NAMES("Only by these.") OF_NAMES OF_PLACE OF_TIME LOG_PAGE) "}";
static const char read_params[] = OBJECT(TARGET AT "," LINES "," CURSOR) "}";
static const char diff_params[] = OBJECT(TARGET FROM_TO CONTEXT) NEEDS_ID;
static const char blame_params[] = OBJECT(TARGET AT "," LINES) NEEDS_ID;
static const char undo_params[] = OBJECT(
    "\"agent\":" NAMES("Of these.") OF_NAMES OF_PLACE OF_TIME
    ",\"changes\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"maxItems\":1000,"
    "\"description\":\"These numbers.\"},\"upto\":" NUMBER(
        "The number a preview told.",
        "\"minimum\":1") ",\"dry_run\":{\"type\":\"boolean\",\"default\":true,\"description\":"
                         "\"Only preview.\"},"
                         "\"continue\":" TEXT("An unfinished undo, undo-...")) "}";
static const char restore_params[] = OBJECT(TARGET AT ",\"expectedRevision\":" NUMBER(
    "Else fail with CONFLICT.", "\"minimum\":0")) ",\"required\":[\"id\",\"at\"]}";

/* ---- answers ---- */

#define ANSWER(required, members)                                                              \
    "{\"type\":\"object\",\"required\":[" required "],\"properties\":{" members "}}"
#define INTEGER "{\"type\":\"integer\"}"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define ARRAY "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
#define KEY "\"collection\":" SHORT_TEXT ",\"id\":" SHORT_TEXT
#define PAGE "\"has_more\":" BOOLEAN ",\"cursor\":" SHORT_TEXT

static const char log_result[] =
    ANSWER("\"has_more\"", "\"changes\":" ARRAY ",\"runs\":" ARRAY "," PAGE);

/* A document, or the documents that were there. */
static const char read_result[] =
    "{\"type\":\"object\",\"properties\":{" KEY ",\"revision\":" INTEGER
    ",\"content\":" SHORT_TEXT ",\"total_lines\":" INTEGER ",\"next_line\":" INTEGER
    ",\"documents\":" ARRAY "," PAGE "}}";

static const char diff_result[] = ANSWER(
    "\"from\",\"to\",\"diff\",\"added\",\"removed\",\"changed\"",
    KEY ",\"from\":" INTEGER ",\"to\":" INTEGER ",\"diff\":" SHORT_TEXT ",\"added\":" INTEGER
        ",\"removed\":" INTEGER ",\"changed\":{\"type\":\"array\",\"items\":" SHORT_TEXT "}");

static const char blame_result[] =
    ANSWER("\"revision\",\"total_lines\",\"exact\",\"lines\"",
           KEY ",\"revision\":" INTEGER ",\"total_lines\":" INTEGER ",\"exact\":" BOOLEAN
               ",\"lines\":" ARRAY ",\"next_line\":" INTEGER);

#define ANY_OBJECT "{\"type\":\"object\"}"

static const struct ng_tool history_tools[] = {
    {
        .name = "history_log",
        .title = "Changes of all documents",
        .summary = "List changes in the history of notebooks and entries, newest first, to see "
                   "who changed what, when, in which run and with which tool.",
        .params = log_params,
        .result = log_result,
        .run = history_log_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
    },
    {
        .name = "history_read",
        .title = "Read a document as of a point",
        .summary = "Read a notebook or entry of the history, to see what it was at a point in "
                   "time. Without `id`: the documents that were there.",
        .params = read_params,
        .result = read_result,
        .run = history_read_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "history_diff",
        .title = "Compare a document at two points",
        .summary = "Compare a notebook or entry at two points of the history, to see what was "
                   "changed, as a unified diff.",
        .params = diff_params,
        .result = diff_result,
        .run = history_diff_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "history_blame",
        .title = "Who wrote each line",
        .summary = "Find in the history who wrote each line of a notebook or entry, with the "
                   "revision and the run, to know where a text comes from.",
        .params = blame_params,
        .result = blame_result,
        .run = history_blame_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "history_undo",
        .title = "Take back changes",
        .summary = "Take back in the history what a run did, or an agent since a point, in all "
                   "notebooks and entries; what others changed since stays. Preview first.",
        .params = undo_params,
        .result = ANY_OBJECT,
        .run = history_undo_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_DESTRUCTIVE | NG_TOOL_STAYS,
    },
    {
        .name = "history_restore",
        .title = "Restore a document",
        .summary =
            "Give a notebook or entry the content it had at a point of the history, as a "
            "new revision; a deleted one comes back.",
        .params = restore_params,
        .result = ANY_OBJECT,
        .run = history_restore_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_DESTRUCTIVE | NG_TOOL_BY_SPACE,
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
