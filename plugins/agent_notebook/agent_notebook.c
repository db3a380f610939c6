/* SPDX-License-Identifier: MIT */
/* agent_notebook - pages, code snippets and research notes that many agents share, with
 * versions, and the memory beside them. This file holds the tables of the plugin; each tool has
 * its own file. */
#include <stdlib.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_tools.h"
#include "entry/entry.h"
#include "entry/entry_tools.h"
#include "entry/read_receipts.h"
#include "memory/memory.h"
#include "memory/memory_tools.h"

#define AGENT_NOTEBOOK_MAX_SIZE_DEFAULT "4MiB"

static int agent_notebook_start(struct ng_call *call, const struct ng_conf *conf,
                                void **ret_self)
{
    const struct ng_host *host = call->host;
    struct agent_notebook *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    self->max_size = (uint64_t)host->conf_int(conf, "max_size");
    self->max_tags = (uint32_t)host->conf_int(conf, "max_tags");
    self->max_title = (uint32_t)host->conf_int(conf, "max_title");
    int rc = read_receipts_start(call, &self->receipts);
    if (rc != NG_OK) {
        free(self);
        return rc;
    }
    rc = checkpoint_start(call, conf, self);
    if (rc != NG_OK) {
        read_receipts_stop(self->receipts);
        free(self);
        return rc;
    }
    *ret_self = self;
    return NG_OK;
}

static void agent_notebook_stop(void *self)
{
    struct agent_notebook *notebook = self;
    if (notebook != NULL) {
        checkpoint_stop(notebook->checkpoint);
        read_receipts_stop(notebook->receipts);
        free(notebook);
    }
}

/* ---- declarations of the plugin ---- */

static const struct ng_tool agent_notebook_tools[] = {
    {
        .name = "notebook_create",
        .title = "Create a notebook entry",
        .summary = "Create an entry of the agents' notebook (page, code snippet or research "
                   "note), for other agents to find.",
        .params = entry_create_params,
        .result = entry_create_result,
        .run = entry_create_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_MEMORY | NG_TOOL_BY_SPACE,
    },
    {
        .name = "notebook_read",
        .title = "Open a notebook entry",
        .summary =
            "Read an entry of the agents' notebook by ID, when a search or list has named it.",
        .params = entry_read_params,
        .result = entry_read_result,
        .run = entry_read_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_MEMORY | NG_TOOL_BY_SPACE,
    },
    {
        .name = "notebook_update",
        .title = "Update a notebook entry",
        .summary =
            "Update an entry of the agents' notebook, to correct or extend it, as a new "
            "version: content (whole, one section, edits or appended), title, tags or status.",
        .params = entry_update_params,
        .result = entry_update_result,
        .run = entry_update_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_MEMORY | NG_TOOL_DESTRUCTIVE | NG_TOOL_BY_SPACE,
    },
    {
        .name = "notebook_search",
        .title = "Search the notebook",
        .summary = "Search the entries of the agents' notebook by words or tags, when the ID "
                   "is not known. Returns titles and "
                   "summaries, not full content.",
        .params = entry_search_params,
        .result = entry_list_result,
        .run = entry_search_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_MEMORY | NG_TOOL_BY_SPACE,
    },
    {
        .name = "notebook_list",
        .title = "List notebook entries",
        .summary = "List recent entries of the agents' notebook, to see what there is. "
                   "Returns titles, summaries and metadata, not full content.",
        .params = entry_list_params,
        .result = entry_list_result,
        .run = entry_list_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_MEMORY | NG_TOOL_BY_SPACE,
    },
    {
        .name = "notebook_delete",
        .title = "Delete a notebook entry",
        .summary = "Delete an entry of the agents' notebook, when it is wrong or no longer "
                   "needed. notebook_restore brings it back for a while.",
        .params = entry_delete_params,
        .result = entry_delete_result,
        .run = entry_delete_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_MEMORY | NG_TOOL_DESTRUCTIVE | NG_TOOL_BY_SPACE,
    },
    {
        .name = "notebook_history",
        .title = "Versions of a notebook entry",
        .summary = "List the versions of an entry of the agents' notebook, also a deleted one, "
                   "newest first, to see when, by whom and what changed.",
        .params = entry_history_params,
        .result = entry_history_result,
        .run = entry_history_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "notebook_diff",
        .title = "Compare versions of a notebook entry",
        .summary = "Compare two versions of an entry of the agents' notebook, to see what a "
                   "change did: a unified diff of the content, and which other members "
                   "changed.",
        .params = entry_diff_params,
        .result = entry_diff_result,
        .run = entry_diff_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "notebook_restore",
        .title = "Restore a version of a notebook entry",
        .summary = "Bring back an earlier version of an entry of the agents' notebook, or a "
                   "deleted entry, as a new version, when a change was a mistake.",
        .params = entry_restore_params,
        .result = entry_restore_result,
        .run = entry_restore_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_DESTRUCTIVE | NG_TOOL_BY_SPACE,
    },
    {
        .name = "memory_log",
        .title = "Log a memory",
        .summary = "Log a message, a thought or the output of a tool into the agents' shared "
                   "memory, for other agents and later conversations.",
        .params = memory_log_params,
        .result = memory_log_result,
        .run = memory_log_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_MEMORY | NG_TOOL_BY_SPACE,
    },
    {
        .name = "memory_delete",
        .title = "Delete a memory",
        .summary = "Delete a memory of yours (an admin: of any agent) from the agents' shared "
                   "memory, when it is wrong or not to be known. Only restoring a checkpoint "
                   "that has it brings it back.",
        .params = memory_delete_params,
        .result = memory_delete_result,
        .run = memory_delete_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_DESTRUCTIVE | NG_TOOL_BY_SPACE,
    },
    {
        .name = "memory_recall",
        .title = "Recall memories",
        .summary = "Search the agents' shared memory (what memory_log kept, and titles and "
                   "summaries of notebook entries) by words, tags, source and time, when "
                   "something was said or done before.",
        .params = memory_recall_params,
        .result = memory_recall_result,
        .run = memory_recall_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "memory_timeline",
        .title = "Timeline of a day",
        .summary = "List what happened in the agents' shared memory on a day, to catch up, "
                   "newest first: "
                   "memories and changes of notebook entries.",
        .params = memory_timeline_params,
        .result = memory_timeline_result,
        .run = memory_timeline_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "memory_summary",
        .title = "Long-term summary",
        .summary = "Read or set the long-term summary of the agents' shared memory, when work "
                   "begins or has taught something that holds beyond the day.",
        .params = memory_summary_params,
        .result = memory_summary_result,
        .run = memory_summary_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_IDEMPOTENT | NG_TOOL_BY_SPACE,
        .read_argument = "mode",
        .read_values = "read",
    },
    {
        .name = "checkpoint_snapshot",
        .title = "Keep a checkpoint",
        .summary = "Keep a checkpoint of the agents' shared memory and of the versions of "
                   "notebook entries, before a change that may have to be undone.",
        .params = checkpoint_snapshot_params,
        .result = checkpoint_snapshot_result,
        .run = checkpoint_snapshot_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_OWN_TIMEOUT | NG_TOOL_TASK_ALLOWED | NG_TOOL_BY_SPACE,
    },
    {
        .name = "checkpoint_list",
        .title = "List checkpoints",
        .summary = "List the checkpoints of the agents' shared memory, newest first, to find "
                   "the one to compare with or restore.",
        .params = checkpoint_list_params,
        .result = checkpoint_list_result,
        .run = checkpoint_list_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "checkpoint_delete",
        .title = "Delete a checkpoint",
        .summary = "Delete a checkpoint of the agents' shared memory for good. Versions of "
                   "notebook entries that only it kept go when their time is over.",
        .params = checkpoint_delete_params,
        .result = checkpoint_delete_result,
        .run = checkpoint_delete_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags =
            NG_TOOL_DESTRUCTIVE | NG_TOOL_OWN_TIMEOUT | NG_TOOL_TASK_ALLOWED | NG_TOOL_BY_SPACE,
    },
    {
        .name = "checkpoint_diff",
        .title = "Compare a checkpoint",
        .summary = "Compare the agents' shared memory and notebook entries with a checkpoint, "
                   "or two checkpoints, before one is restored.",
        .params = checkpoint_diff_params,
        .result = checkpoint_diff_result,
        .run = checkpoint_diff_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
    {
        .name = "checkpoint_restore",
        .title = "Restore a checkpoint",
        .summary = "Put the agents' shared memory back to a checkpoint, and with `notebooks` "
                   "the notebook entries too, as new versions, to give up later work as a "
                   "whole (one entry: notebook_restore). checkpoint_diff shows what that takes "
                   "back; restoring previous_checkpoint_id undoes it.",
        .params = checkpoint_restore_params,
        .result = checkpoint_restore_result,
        .run = checkpoint_restore_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_DESTRUCTIVE | NG_TOOL_OWN_TIMEOUT | NG_TOOL_TASK_ALLOWED |
                 NG_TOOL_RESTORES | NG_TOOL_BY_SPACE,
    },
};

static const struct ng_prompt agent_notebook_prompts[] = {
    {
        .name = "agent_notebook_guide",
        .title = "How to use the agents' notebook",
        .summary = "Tells a model how to find, open, write and restore entries of the notebook "
                   "that agents share, with examples.",
        .get = entry_guide_get,
        .is_guide = true,
    },
    {
        .name = "memory_context",
        .title = "What is known",
        .summary = "The long-term summary and the latest of today, for an agent's context.",
        .params = memory_context_params,
        .get = memory_context_get,
    },
};

static const struct ng_option agent_notebook_options[] = {
    {
        .name = "max_size",
        .type = NG_OPTION_SIZE,
        .fallback = AGENT_NOTEBOOK_MAX_SIZE_DEFAULT,
        .min = 1,
        .max = (int64_t)ENTRY_BYTES_MAX,
        .help = "Largest content of one entry.",
    },
    {
        .name = "max_tags",
        .type = NG_OPTION_INT,
        .fallback = "64",
        .min = 1,
        .max = 256,
        .help = "Most tags of one entry.",
    },
    {
        .name = "max_title",
        .type = NG_OPTION_INT,
        .fallback = "500",
        .min = 1,
        .max = 10000,
        .help = "Longest title of an entry, in characters.",
    },
};

static const struct ng_code agent_notebook_codes[] = {
    {"ENTRY_NOT_FOUND", 404, "there is no entry with this id in this collection"},
    {"EDIT_NO_MATCH", 422, "the text to replace is not in the entry"},
    {"EDIT_AMBIGUOUS", 422,
     "the text or the heading of what to replace is in the entry more than once"},
    {"SECTION_NOT_FOUND", 404, "the entry has no heading of this text"},
    {"VERSION_NOT_FOUND", 404, "the entry has no such version, or it is no longer kept"},
};

/* Weights of search hits: the title counts more than the summary, and the summary more than the
 * text. */
#define ENTRY_FIELDS                                                                           \
    {"title", NG_FIELD_TEXT, 8.0}, {"summary", NG_FIELD_TEXT, 3.0},                            \
        {"metadata.tags", NG_FIELD_TAG, 0}, {"metadata.status", NG_FIELD_TAG, 0},              \
        {"metadata.created_by", NG_FIELD_TAG, 0},                                              \
    {                                                                                          \
        ENTRY_TITLE_KEY, NG_FIELD_TAG, 0                                                       \
    }

static const struct ng_field page_fields[] = {
    ENTRY_FIELDS,
};

static const struct ng_field code_fields[] = {
    ENTRY_FIELDS,
    {"language", NG_FIELD_TAG, 0},
    {"description", NG_FIELD_TEXT, 3.0},
};

static const struct ng_field research_fields[] = {
    ENTRY_FIELDS,
    {"source_url", NG_FIELD_TAG, 0},
    {"key_findings", NG_FIELD_TEXT, 3.0},
};

#define ENTRY_FLAGS                                                                            \
    (NG_COLLECTION_TEXT_SEARCH | NG_COLLECTION_REFERENCED | NG_COLLECTION_CONTENT)
/* Members of every entry besides its text. */
#define ENTRY_MEMBERS "title summary?summary_given metadata.tags metadata.status"

static const struct ng_collection agent_notebook_collections[] = {
    {
        .name = "pages",
        .flags = ENTRY_FLAGS,
        .fields = page_fields,
        .field_count = NG_COUNT(page_fields),
        .field_size = sizeof(struct ng_field),
        .members = ENTRY_MEMBERS " sections?sections_given",
        .restore = entry_take_content,
    },
    {
        .name = "code_snippets",
        .flags = ENTRY_FLAGS,
        .fields = code_fields,
        .field_count = NG_COUNT(code_fields),
        .field_size = sizeof(struct ng_field),
        .members = ENTRY_MEMBERS " language description metadata.related_page",
        .restore = entry_take_content,
    },
    {
        .name = "research_notes",
        .flags = ENTRY_FLAGS,
        .fields = research_fields,
        .field_count = NG_COUNT(research_fields),
        .field_size = sizeof(struct ng_field),
        .members =
            ENTRY_MEMBERS " source_url key_findings metadata.confidence metadata.related_pages",
        .restore = entry_take_content,
    },
    {
        .name = READ_RECEIPTS_COLLECTION,
        .flags = NG_COLLECTION_REFERENCED | NG_COLLECTION_NO_HISTORY,
        .field_size = sizeof(struct ng_field),
    },
    {
        .name = MEMORY_COLLECTION,
        .flags = NG_COLLECTION_REFERENCED | NG_COLLECTION_NO_HISTORY,
        .field_size = sizeof(struct ng_field),
    },
    {
        .name = CHECKPOINT_RESTORES,
        .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
        .field_size = sizeof(struct ng_field),
    },
};

static const struct ng_resources agent_notebook_resources[] = {
    {
        .kind = "pages",
        .title = "Pages",
        .summary = "The content of one page of the agents' notebook.",
        .mime_type = "text/markdown",
        .collection = "pages",
        .list = entry_pages_list,
        .read = entry_pages_read,
        .complete = entry_pages_complete,
        .find = entry_pages_find,
        .find_kind = "page",
    },
    {
        .kind = "code_snippets",
        .title = "Code snippets",
        .summary = "The code of one snippet of the agents' notebook.",
        .mime_type = "text/plain",
        .collection = "code_snippets",
        .list = entry_code_list,
        .read = entry_code_read,
        .complete = entry_code_complete,
        .find = entry_code_find,
        .find_kind = "code_snippet",
    },
    {
        .kind = "research_notes",
        .title = "Research notes",
        .summary = "The content of one research note of the agents' notebook.",
        .mime_type = "text/markdown",
        .collection = "research_notes",
        .list = entry_research_list,
        .read = entry_research_read,
        .complete = entry_research_complete,
        .find = entry_research_find,
        .find_kind = "research_note",
    },
    {
        .kind = "memory",
        .title = "Memories",
        .summary = "One memory of the agents' shared memory, by its id.",
        .mime_type = "text/plain",
        .read = memory_resource_read,
        .find = memory_resource_find,
    },
    {
        .kind = "checkpoint",
        .title = "Checkpoints",
        .summary = "The memory as it was, and the versions that notebook entries had.",
        .mime_type = "application/json",
        .list = checkpoint_resource_list,
        .read = checkpoint_resource_read,
    },
};

static const struct ng_plugin agent_notebook_plugin = {
    .name = "agent_notebook",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = agent_notebook_tools,
    .tool_count = NG_COUNT(agent_notebook_tools),
    .start = agent_notebook_start,
    .stop = agent_notebook_stop,
    .options = agent_notebook_options,
    .option_count = NG_COUNT(agent_notebook_options),
    .codes = agent_notebook_codes,
    .code_count = NG_COUNT(agent_notebook_codes),
    .collections = agent_notebook_collections,
    .collection_count = NG_COUNT(agent_notebook_collections),
    .resources = agent_notebook_resources,
    .resource_count = NG_COUNT(agent_notebook_resources),
    .prompts = agent_notebook_prompts,
    .prompt_count = NG_COUNT(agent_notebook_prompts),
    .health = checkpoint_health,
};

NG_EXPORT_PLUGIN(agent_notebook_plugin);
