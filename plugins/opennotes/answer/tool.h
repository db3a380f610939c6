/* SPDX-License-Identifier: MIT */
/* tool.h - the declaration of a tool, and schema pieces that several tools share. */
#ifndef OPENNOTES_TOOL_H
#define OPENNOTES_TOOL_H

#include "text/text.h"

struct notes_notebook;

/* Declares what a tool's file defines: its schemas, its summary, its function. The function
 * gets the notebook of the call, open, and memory until it returns. */
#define NOTES_TOOL(name)                                                                       \
    extern const char notes_##name##_params[], notes_##name##_result[],                        \
        notes_##name##_summary[];                                                              \
    int notes_##name##_run(struct notes_notebook *notebook, struct ng_call *call,              \
                           struct arena *arena)

/* The tool's check of its arguments, which runs before the notebook is searched. */
#define NOTES_CHECK(name) int notes_##name##_check(struct ng_call *call)

/* Results of one page. */
#define NOTES_LIMIT_DEFAULT 50
#define NOTES_LIMIT_MAX 1000

/* Pieces of schemas. */
#define NOTES_PARAM_NOTEBOOK                                                                   \
    "\"notebook\":{\"type\":\"string\",\"description\":\"Notebook, by name or folder "         \
    "(default: the first)\"}"
#define NOTES_PARAM_LIMIT                                                                      \
    "\"limit\":{\"type\":\"integer\",\"default\":50,\"minimum\":1,\"maximum\":1000,"           \
    "\"description\":\"Maximum results to return (default: 50)\"}"
#define NOTES_PARAM_OFFSET                                                                     \
    "\"offset\":{\"type\":\"integer\",\"default\":0,\"minimum\":0,\"maximum\":"                \
    "9007199254740991,"                                                                        \
    "\"description\":\"Offset for pagination (default: 0)\"}"

#define NOTES_SCHEMA_NOTEBOOK                                                                  \
    "{\"type\":\"object\",\"required\":[\"name\",\"path\"],\"properties\":{"                   \
    "\"name\":{\"type\":\"string\"},\"path\":{\"type\":\"string\"}}}"
#define NOTES_SCHEMA_SUMMARY                                                                   \
    "{\"type\":\"object\",\"required\":[\"path\"],\"properties\":{"                            \
    "\"path\":{\"type\":\"string\",\"description\":\"File path relative to notebook\"},"       \
    "\"title\":{\"type\":\"string\",\"description\":\"Note title from frontmatter\"},"         \
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"                           \
    "\"created\":{\"type\":\"string\",\"format\":\"date-time\"},"                              \
    "\"modified\":{\"type\":\"string\",\"format\":\"date-time\"},"                             \
    "\"frontmatterError\":{\"type\":\"string\"},\"truncated\":{\"type\":\"boolean\"}}}"
#define NOTES_SCHEMA_PAGINATION                                                                \
    "{\"type\":\"object\",\"required\":[\"total\",\"returned\",\"page\",\"pageSize\","         \
    "\"hasMore\"],\"properties\":{"                                                            \
    "\"total\":{\"type\":\"integer\",\"description\":\"Total number of results\"},"            \
    "\"returned\":{\"type\":\"integer\",\"description\":\"Number returned in this "            \
    "response\"},"                                                                             \
    "\"page\":{\"type\":\"integer\",\"description\":\"Current page (1-indexed)\"},"            \
    "\"pageSize\":{\"type\":\"integer\",\"description\":\"Results per page\"},"                \
    "\"hasMore\":{\"type\":\"boolean\",\"description\":\"Whether more results exist\"},"       \
    "\"nextOffset\":{\"type\":\"integer\",\"description\":\"Offset for next page\"}}}"

#endif
