/* SPDX-License-Identifier: MIT */
/* memory_schema.c - JSON Schemas of the arguments and answers of the memory tools. */
#include "memory_tools.h"

#define MEMORY_TAGS                                                                            \
    "{\"type\":\"array\",\"maxItems\":64,\"items\":{\"type\":\"string\",\"minLength\":1,"      \
    "\"maxLength\":128}"

#define MEMORY_ROWS                                                                            \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"type\",\"timestamp\"," \
    "\"agent\",\"event_id\"],\"properties\":{"                                                 \
    "\"type\":{\"type\":\"string\",\"enum\":[\"memory\",\"notebook_ref\"]},"                   \
    "\"id\":{\"type\":\"string\"},\"memory_id\":{\"type\":\"string\"},\"content\":{\"type\":"  \
    "\"string\"},"                                                                             \
    "\"source\":{\"type\":\"string\"},\"score\":{\"type\":\"number\"},"                        \
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"                           \
    "\"action\":{\"type\":\"string\"},\"notebook_id\":{\"type\":\"string\"},"                  \
    "\"title\":{\"type\":\"string\"},\"summary\":{\"type\":\"string\"},"                       \
    "\"collection\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"},"                   \
    "\"version\":{\"type\":\"integer\"},\"data\":{\"type\":\"object\"},"                       \
    "\"timestamp\":{\"type\":\"string\",\"format\":\"date-time\"},\"agent\":{\"type\":"        \
    "\"string\"},"                                                                             \
    "\"event_id\":{\"type\":\"string\"}}}}"

#define MEMORY_BACKLOG                                                                         \
    "\"backlog\":{\"type\":\"integer\",\"description\":\"Events that are on their way: what "  \
    "they say may be missing\"}"

#define MEMORY_MORE                                                                            \
    "\"has_more\":{\"type\":\"boolean\",\"description\":\"Further ones did not fit the "       \
    "answer\"}"

const char memory_log_params[] =
    "{\"type\":\"object\",\"required\":[\"content\"],\"additionalProperties\":false,"
    "\"properties\":{"
    "\"content\":{\"type\":\"string\",\"minLength\":1,\"description\":\"What to remember\"},"
    "\"source\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64,\"default\":\"thought\","
    "\"description\":\"Its origin, such as message, thought or tool\"},"
    "\"tags\":" MEMORY_TAGS ",\"description\":\"Tags for recall\"},"
    "\"score\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1,\"default\":0.5,"
    "\"description\":\"How much it matters, 0 to 1\"}}}";

const char memory_log_result[] =
    "{\"type\":\"object\",\"required\":[\"memory_id\",\"status\",\"timestamp\"],"
    "\"properties\":{\"memory_id\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"},"
    "\"timestamp\":{\"type\":\"string\",\"format\":\"date-time\"}}}";

const char memory_delete_params[] =
    "{\"type\":\"object\",\"required\":[\"id\"],\"additionalProperties\":false,"
    "\"properties\":{\"id\":{\"type\":\"string\",\"description\":\"The ID of the memory\"}}}";

const char memory_delete_result[] =
    "{\"type\":\"object\",\"required\":[\"id\",\"status\"],\"properties\":{"
    "\"id\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"}}}";

const char memory_recall_params[] =
    "{\"type\":\"object\",\"required\":[\"query\"],\"additionalProperties\":false,"
    "\"properties\":{"
    "\"query\":{\"type\":\"string\",\"maxLength\":1000,\"description\":\"Any of these words; "
    "empty: the newest\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":10,"
    "\"description\":\"Most results\"},"
    "\"source\":{\"type\":\"string\",\"description\":\"Only from this source\"},"
    "\"min_score\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1,\"default\":0,"
    "\"description\":\"Least score; entries have 0.8\"},"
    "\"tags\":" MEMORY_TAGS ",\"description\":\"Any of these matches\"},"
    "\"since\":{\"type\":\"string\",\"description\":\"Only since (2026-02-16 or "
    "2026-02-16T10:30:00Z)\"}}}";

const char memory_recall_result[] =
    "{\"type\":\"object\",\"required\":[\"results\",\"count\",\"engine\"],\"properties\":{"
    "\"results\":" MEMORY_ROWS ",\"count\":{\"type\":\"integer\"},"
    "\"engine\":{\"type\":\"string\"}," MEMORY_BACKLOG "," MEMORY_MORE "}}";

const char memory_timeline_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"date\":{\"type\":\"string\",\"description\":\"A day as YYYY-MM-DD (default: today)\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":50,"
    "\"description\":\"The newest of the day\"},"
    "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"default\":0,\"description\":\"Newest "
    "ones to skip\"},"
    "\"agent\":{\"type\":\"string\",\"description\":\"Only of this agent (percy or "
    "agent:percy)\"}}}";

const char memory_timeline_result[] =
    "{\"type\":\"object\",\"required\":[\"events\",\"count\"],\"properties\":{"
    "\"date\":{\"type\":\"string\",\"format\":\"date\"},\"events\":" MEMORY_ROWS
    ",\"count\":{\"type\":\"integer\"}," MEMORY_BACKLOG "," MEMORY_MORE
    ",\"next_offset\":{\"type\":\"integer\"}}}";

const char memory_summary_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"text\":{\"type\":\"string\",\"description\":\"The new summary; without it, the present "
    "one is read\"},"
    "\"mode\":{\"type\":\"string\",\"enum\":[\"read\",\"set\"],\"description\":\"As `text` "
    "says; needed if you may only read: read\"}}}";

const char memory_summary_result[] =
    "{\"type\":\"object\",\"required\":[\"summary\",\"status\"],\"properties\":{"
    "\"summary\":{\"type\":[\"string\",\"null\"]},"
    "\"status\":{\"type\":\"string\",\"enum\":[\"set\",\"read\",\"none\"]},"
    "\"truncated\":{\"type\":\"boolean\",\"description\":\"Its end did not fit the "
    "answer\"}}}";
