/* SPDX-License-Identifier: MIT */
/* list.c - the tool that lists the notes of a notebook. */
#include "index.h"

const char on_list_summary[] =
    "List all notes in an OpenNotes notebook with metadata.\n\n"
    "Use 'sortBy' to order by: modified (default), created, title, or path.\n"
    "Use 'pattern' to filter: e.g., 'tasks/*.md' for only task notes.\n\n"
    "Returns note summaries with pagination. For full content, use opennotes_get.";

const char on_list_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" ON_PARAM_NOTEBOOK ","
    "\"sortBy\":{\"type\":\"string\",\"enum\":[\"modified\",\"created\",\"title\",\"path\"],"
    "\"default\":\"modified\",\"description\":\"Sort field (default: modified)\"},"
    "\"sortOrder\":{\"type\":\"string\",\"enum\":[\"asc\",\"desc\"],"
    "\"description\":\"Sort order (default: desc for dates, asc for text)\"}," ON_PARAM_LIMIT
    "," ON_PARAM_OFFSET ","
    "\"pattern\":{\"type\":\"string\",\"default\":\"**/*.md\","
    "\"description\":\"Glob pattern to filter paths (default: **/*.md)\"}}}";

const char on_list_result[] =
    "{\"type\":\"object\",\"required\":[\"notes\",\"notebook\",\"pagination\"],\"properties\":{"
    "\"notes\":{\"type\":\"array\",\"items\":" ON_SCHEMA_SUMMARY "},"
    "\"notebook\":" ON_SCHEMA_NOTEBOOK ",\"pagination\":" ON_SCHEMA_PAGINATION ","
    "\"_guidance\":{\"type\":\"string\"}}}";

int on_list_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct on_notebook *notebook = NULL;
    (void)args;
    return on_notebook_pick(self, call, &notebook);
}
