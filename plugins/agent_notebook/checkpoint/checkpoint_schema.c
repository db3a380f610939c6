/* SPDX-License-Identifier: MIT */
/* checkpoint_schema.c - JSON Schemas of the arguments and answers of the checkpoint tools. */
#include "checkpoint_tools.h"

#define CHECKPOINT_HEAD                                                                        \
    "\"checkpoint_id\":{\"type\":\"string\"},\"label\":{\"type\":\"string\"},"                 \
    "\"created_at\":{\"type\":\"string\",\"format\":\"date-time\"},\"created_by\":{\"type\":"  \
    "\"string\"},"                                                                             \
    "\"daily_entries\":{\"type\":\"integer\"},\"memories\":{\"type\":\"integer\"},"            \
    "\"has_summary\":{\"type\":\"boolean\"},\"kept_aside\":{\"type\":\"boolean\","             \
    "\"description\":\"The journal was too large to be part of it and is kept beside: it can " \
    "be restored, and not compared\"},\"notebooks\":{\"type\":\"integer\"}"

#define CHECKPOINT_ID                                                                          \
    "\"checkpoint_id\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128,"                \
    "\"description\":\"ID, from checkpoint_list\"}"

#define CHECKPOINT_NOTEBOOKS                                                                   \
    "\"notebooks\":{\"type\":\"object\",\"required\":[\"updated\",\"deleted\",\"created\","    \
    "\"moved\",\"truncated\"],\"properties\":{"                                                \
    "\"updated\":{\"type\":\"integer\"},\"deleted\":{\"type\":\"integer\"},"                   \
    "\"created\":{\"type\":\"integer\"},\"restored\":{\"type\":\"integer\"},"                  \
    "\"moved\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":["              \
    "\"notebook_id\",\"collection\",\"since\"],\"properties\":{"                               \
    "\"notebook_id\":{\"type\":\"string\"},\"collection\":{\"type\":\"string\"},"              \
    "\"since\":{\"type\":\"string\",\"enum\":[\"updated\",\"deleted\",\"created\"]},"          \
    "\"checkpoint_version\":{\"type\":\"integer\"},\"version\":{\"type\":\"integer\"},"        \
    "\"outcome\":{\"type\":\"string\",\"enum\":[\"kept\",\"restored\","                        \
    "\"changed_meanwhile\",\"version_gone\"]},\"new_version\":{\"type\":\"integer\"}}}},"      \
    "\"truncated\":{\"type\":\"boolean\"}}}"

#define CHECKPOINT_MEMORIES                                                                    \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"                      \
    "\"memory_id\":{\"type\":\"string\"},\"content\":{\"type\":\"string\"},"                   \
    "\"source\":{\"type\":\"string\"},\"agent\":{\"type\":\"string\"}}}}"

const char checkpoint_snapshot_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"label\":{\"type\":\"string\",\"maxLength\":200,\"description\":\"What it is, to find it "
    "later\"}}}";

const char checkpoint_snapshot_result[] =
    "{\"type\":\"object\",\"required\":[\"checkpoint_id\",\"status\",\"created_at\","
    "\"notebooks\"],\"properties\":{\"status\":{\"type\":\"string\"}," CHECKPOINT_HEAD
    ",\"bytes\":{\"type\":\"integer\"}}}";

const char checkpoint_list_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100,"
    "\"description\":\"Most checkpoints\"},"
    "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"default\":0,"
    "\"description\":\"Checkpoints to skip\"}}}";

const char checkpoint_list_result[] =
    "{\"type\":\"object\",\"required\":[\"checkpoints\",\"total\"],\"properties\":{"
    "\"checkpoints\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":"
    "{" CHECKPOINT_HEAD "}}},\"total\":{\"type\":\"integer\"},"
    "\"has_more\":{\"type\":\"boolean\"},\"next_offset\":{\"type\":\"integer\"}}}";

const char checkpoint_delete_params[] =
    "{\"type\":\"object\",\"required\":[\"checkpoint_id\"],\"additionalProperties\":false,"
    "\"properties\":{" CHECKPOINT_ID "}}";

const char checkpoint_delete_result[] =
    "{\"type\":\"object\",\"required\":[\"status\",\"checkpoint_id\"],\"properties\":{"
    "\"status\":{\"type\":\"string\"},\"checkpoint_id\":{\"type\":\"string\"}}}";

const char checkpoint_diff_params[] =
    "{\"type\":\"object\",\"required\":[\"checkpoint_id\"],\"additionalProperties\":false,"
    "\"properties\":{" CHECKPOINT_ID
    ",\"against\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128,\"description\":\"ID "
    "of a later one (default: the present)\"}}}";

const char checkpoint_diff_result[] =
    "{\"type\":\"object\",\"required\":[\"checkpoint_id\",\"against\",\"days\",\"memories\","
    "\"summary\",\"notebooks\"],\"properties\":{"
    "\"checkpoint_id\":{\"type\":\"string\"},\"against\":{\"type\":\"string\"},"
    "\"days\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"date\":{\"type\":\"string\",\"format\":\"date\"},\"added\":{\"type\":\"integer\"},"
    "\"removed\":{\"type\":\"integer\"}}}},"
    "\"memories\":{\"type\":\"object\",\"properties\":{\"added\":" CHECKPOINT_MEMORIES
    ",\"removed\":" CHECKPOINT_MEMORIES ",\"added_count\":{\"type\":\"integer\"},"
    "\"removed_count\":{\"type\":\"integer\"}}},"
    "\"summary\":{\"type\":\"object\",\"properties\":{\"changed\":{\"type\":\"boolean\"},"
    "\"before\":{\"type\":[\"string\",\"null\"]},"
    "\"after\":{\"type\":[\"string\",\"null\"]}}}," CHECKPOINT_NOTEBOOKS "}}";

const char checkpoint_restore_params[] =
    "{\"type\":\"object\",\"required\":[\"checkpoint_id\"],\"additionalProperties\":false,"
    "\"properties\":{" CHECKPOINT_ID ",\"notebooks\":{\"type\":\"boolean\",\"default\":false,"
    "\"description\":\"Notebook entries too\"}}}";

const char checkpoint_restore_result[] =
    "{\"type\":\"object\",\"required\":[\"status\",\"checkpoint_id\","
    "\"previous_checkpoint_id\",\"notebooks_restored\",\"notebooks\"],\"properties\":{"
    "\"status\":{\"type\":\"string\"},\"checkpoint_id\":{\"type\":\"string\"},"
    "\"previous_checkpoint_id\":{\"type\":\"string\",\"description\":\"The state before: "
    "restoring it undoes this\"},"
    "\"notebooks_restored\":{\"type\":\"boolean\"}," CHECKPOINT_NOTEBOOKS "}}";
