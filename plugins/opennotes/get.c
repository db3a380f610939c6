/* SPDX-License-Identifier: MIT */
/* get.c - the tool that gives one note, or a part of it. */
#include "index.h"

const char on_get_summary[] =
    "Get the full content and metadata of a specific note by path.\n\n"
    "The path should be relative to the notebook root (e.g., 'tasks/task-001.md').\n\n"
    "Set 'includeContent: false' to get only metadata without the full body (faster for large "
    "notes).\n\n"
    "A large note comes in parts: follow 'nextLine' with 'startLine' (a line too long for one "
    "answer goes on with 'startByte'). 'section' gives what is below one heading.";

const char on_get_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"path\"],"
    "\"properties\":{"
    "\"path\":{\"type\":\"string\","
    "\"description\":\"Path to the note file (relative to notebook root)\"}," ON_PARAM_NOTEBOOK
    ","
    "\"includeContent\":{\"type\":\"boolean\",\"default\":true,"
    "\"description\":\"Whether to include full markdown content (default: true)\"},"
    "\"raw\":{\"type\":\"boolean\",\"default\":false,"
    "\"description\":\"The file as it is, front matter included (default: false)\"},"
    "\"section\":{\"type\":\"string\","
    "\"description\":\"A heading, or its anchor: only its part of the note\"},"
    "\"startLine\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740991,"
    "\"description\":\"First line of content to return, from 1\"},"
    "\"maxLines\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740991,"
    "\"description\":\"Lines to return at most\"},"
    "\"startByte\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9007199254740991,"
    "\"description\":\"First byte of the line startLine to return: nextByte of the answer "
    "before\"}}}";

const char on_get_result[] =
    "{\"type\":\"object\",\"required\":[\"note\",\"notebook\"],\"properties\":{"
    "\"note\":{\"type\":\"object\",\"required\":[\"path\"],\"properties\":{"
    "\"path\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
    "\"content\":{\"type\":\"string\"},\"frontmatter\":{\"type\":\"object\"},"
    "\"frontmatterError\":{\"type\":\"string\"},\"wordCount\":{\"type\":\"integer\"},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"created\":{\"type\":\"string\"},\"modified\":{\"type\":\"string\"},"
    "\"size\":{\"type\":\"integer\"},\"lines\":{\"type\":\"integer\"},"
    "\"revision\":{\"type\":\"string\"},\"truncated\":{\"type\":\"boolean\"},"
    "\"startLine\":{\"type\":\"integer\"},\"nextLine\":{\"type\":\"integer\"},"
    "\"nextByte\":{\"type\":\"integer\"}}},"
    "\"notebook\":" ON_SCHEMA_NOTEBOOK ",\"_guidance\":{\"type\":\"string\"}}}";

int on_get_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct on_notebook *notebook = NULL;
    (void)args;
    return on_notebook_pick(self, call, &notebook);
}
