/* SPDX-License-Identifier: MIT */
/* cells - Jupyter notebooks: reads, changes and runs cells of real .ipynb files in real
 * kernels. The declaration of the plugin; the tools are in tools/. */
#include "cells_resources.h"
#include "content/notebook_content.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "tools/cells_lease.h"
#include "whole/whole.h"

#include <stdio.h>
#include <stdlib.h>

static int cells_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    const struct ng_host *host = call->host;
    struct cells *self = calloc(1, sizeof(*self));
    struct kernels_options options = {
        .max_kernels = (size_t)host->conf_int(conf, "max_kernels"),
        .idle_timeout_ms = host->conf_int(conf, "idle_timeout"),
        .start_timeout_ms = host->conf_int(conf, "start_timeout"),
    };
    struct ng_str folder = host->conf_text(conf, "data_dir");
    if (self == NULL) {
        return cells_no_memory(call);
    }
    self->host = host;
    self->max_source = (uint64_t)host->conf_int(conf, "max_source");
    self->max_output_text = (uint64_t)host->conf_int(conf, "max_output_text");
    self->max_result = (uint64_t)host->conf_int(conf, "limits.result");
    /* An answer has other lines, too. */
    uint64_t most = (uint64_t)host->conf_int(conf, "tools.max_answer");
    self->max_output_text =
        u64_min(self->max_output_text,
                u64_min(cells_text_max(call), most - u64_min(most / 2, CELLS_ANSWER_HEAD_MAX)));
    self->max_saved_output = (uint64_t)host->conf_int(conf, "max_saved_output");
    self->max_timeout_ms = host->conf_int(conf, "max_timeout");
    self->lists_always = str_is(host->conf_text(conf, "list"), "always");
    self->indexes = nb_cache_new();
    int rc = cells_check_memory(call, self->indexes != NULL);
    if (rc == NG_OK) {
        rc = cells_name_process(self, call);
    }
    if (rc == NG_OK) {
        rc = cells_attachments_open(call, &self->attachments);
    }
    if (rc == NG_OK) {
        rc = cells_runs_open(call, &self->runs);
    }
    if (rc == NG_OK) {
        rc = cells_leases_open(self, call);
    }
    if (rc == NG_OK) {
        options.data_folder = folder;
        if (self->leases != NULL) {
            options.watch = cells_leases_watch;
            options.watch_user = self->leases;
        }
        self->kernels = kernels_new(&options);
        rc = cells_check_memory(call, self->kernels != NULL);
    }
    if (rc != NG_OK) {
        cells_attachments_close(self->attachments);
        cells_runs_close(self->runs);
        cells_leases_close(self->leases);
        nb_cache_free(self->indexes);
        free(self);
        return rc;
    }
    *ret_self = self;
    return NG_OK;
}

static void cells_stop(void *user)
{
    struct cells *self = user;
    if (self != NULL) {
        cells_leases_settle(self->leases);
        kernels_free(self->kernels);
        cells_leases_close(self->leases);
        cells_runs_close(self->runs);
        cells_attachments_close(self->attachments);
        nb_cache_free(self->indexes);
        free(self);
    }
}

static const struct ng_tool cells_tools[] = {
    {
        .name = "runNotebookCells",
        .title = "Run Notebook Cells",
        .summary =
            "Run code cells of a Jupyter notebook (.ipynb) in its kernel and return "
            "their outputs, to try code or see its results. The code has the gateway's "
            "rights. The kernel is started when needed and keeps its state between calls. "
            "A run stops at the first cell that raises.",
        .params = cells_run_params,
        .run = cells_run_run,
        .effect = NG_EFFECT_RUNS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_AGENT_MODE | NG_TOOL_OWN_TIMEOUT | NG_TOOL_OPEN_WORLD |
                 NG_TOOL_TASK_ALLOWED | NG_TOOL_STAYS,
        .aliases = "RunNotebookCells",
        .listed = cells_listed_attached,
    },
    {
        .name = "addNotebookCell",
        .title = "Add Notebook Cell",
        .summary = "Add a code or markdown cell to a Jupyter notebook (.ipynb), at a "
                   "position, when new code or text belongs there.",
        .params = cells_add_params,
        .run = cells_edit_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_AGENT_MODE,
        .aliases = "AddNotebookCell",
        .listed = cells_listed_attached,
    },
    {
        .name = "updateNotebookCell",
        .title = "Update Notebook Cell",
        .summary =
            "Replace the source of one cell of a Jupyter notebook (.ipynb), or texts in it, to "
            "correct or extend it. `undo_edit` of fileEditor takes it back.",
        .params = cells_update_params,
        .run = cells_edit_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_AGENT_MODE | NG_TOOL_DESTRUCTIVE | NG_TOOL_IDEMPOTENT,
        .aliases = "UpdateNotebookCell",
        .listed = cells_listed_attached,
    },
    {
        .name = "getNotebookCells",
        .title = "Get Notebook Cells",
        .summary = "Read cells of a Jupyter notebook (.ipynb) with their ids, status and "
                   "source, before changing or running them.",
        .params = cells_get_params,
        .run = cells_get_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .aliases = "GetNotebookCells",
        .listed = cells_listed_attached,
    },
    {
        .name = "getCellOutputs",
        .title = "Get Cell Outputs",
        .summary = "Read the outputs of cells of a Jupyter notebook (.ipynb), when results are "
                   "needed without running them again: text without terminal codes, errors "
                   "with their traceback, images as images.",
        .params = cells_outputs_params,
        .run = cells_outputs_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .aliases = "GetCellOutputs",
        .listed = cells_listed_attached,
    },
    {
        .name = "attachNotebook",
        .title = "Attach Notebook",
        .summary = "Attach a Jupyter notebook (.ipynb) that exists, before other cell tools "
                   "are used: it becomes the active one, which calls without `notebook` mean.",
        .params = cells_attach_params,
        .run = cells_attach_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_IDEMPOTENT,
        .aliases = "AttachNotebook",
    },
    {
        .name = "detachNotebook",
        .title = "Detach Notebook",
        .summary = "Detach a Jupyter notebook (.ipynb) when work on it is done; after the "
                   "active one none is active.",
        .params = cells_detach_params,
        .run = cells_detach_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .aliases = "DetachNotebook",
        .listed = cells_listed_attached,
    },
    {
        .name = "selectNotebookCells",
        .title = "Select Notebook Cells",
        .summary = "Say which cells of a Jupyter notebook (.ipynb) are selected and which one "
                   "is being edited, when the user points at cells, or before "
                   "getNotebookContext reads what is around them in a large notebook.",
        .params = cells_select_params,
        .run = cells_select_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_IDEMPOTENT,
        .aliases = "SelectNotebookCells",
        .listed = cells_listed_attached,
    },
    {
        .name = "getNotebookContext",
        .title = "Get Notebook Context",
        .summary = "Get a Jupyter notebook (.ipynb) as context for a model, when work on it "
                   "begins or the selection has changed. It has the kernel, the selected "
                   "cells, and all cells, or those around the selection of a large notebook.",
        .params = cells_context_params,
        .result = "{\"type\":\"object\"}",
        .run = cells_context_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .aliases = "GetNotebookContext",
    },
    {
        .name = "createNotebook",
        .title = "Create Notebook",
        .summary = "Create a Jupyter notebook (.ipynb), empty or with its cells, and run them, "
                   "when work needs a file of its own; to use one that exists: attachNotebook.",
        .params = cells_create_params,
        .run = cells_create_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_AGENT_MODE | NG_TOOL_OWN_TIMEOUT | NG_TOOL_OPEN_WORLD | NG_TOOL_STAYS,
        .aliases = "CreateNotebook",
    },
    {
        .name = "deleteNotebookCells",
        .title = "Delete Notebook Cells",
        .summary = "Delete cells of a Jupyter notebook (.ipynb) by id, when they are no longer "
                   "needed.",
        .params = cells_delete_params,
        .run = cells_edit_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_AGENT_MODE | NG_TOOL_DESTRUCTIVE,
        .aliases = "DeleteNotebookCells",
        .listed = cells_listed_attached,
    },
    {
        .name = "moveNotebookCell",
        .title = "Move Notebook Cell",
        .summary =
            "Move a cell of a Jupyter notebook (.ipynb) to another position, when cells are "
            "to be read or run in another order.",
        .params = cells_move_params,
        .run = cells_edit_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_AGENT_MODE,
        .aliases = "MoveNotebookCell",
        .listed = cells_listed_attached,
    },
    {
        .name = "clearCellOutputs",
        .title = "Clear Cell Outputs",
        .summary = "Remove the outputs of cells from the file of a Jupyter notebook (.ipynb), "
                   "before it is shared.",
        .params = cells_clear_params,
        .run = cells_edit_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_AGENT_MODE | NG_TOOL_DESTRUCTIVE | NG_TOOL_IDEMPOTENT,
        .aliases = "ClearCellOutputs",
        .listed = cells_listed_attached,
    },
    {
        .name = "getNotebookRun",
        .title = "Get Notebook Run",
        .summary = "Get how a run of cells of a Jupyter notebook (.ipynb) is doing, when "
                   "runNotebookCells answered before its end: state and outputs so far, after "
                   "its end the whole answer.",
        .params = cells_get_run_params,
        .run = cells_get_run_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .aliases = "GetNotebookRun",
        .listed = cells_listed_attached,
    },
    {
        .name = "interruptKernel",
        .title = "Interrupt Kernel",
        .summary = "Interrupt what the kernel of a Jupyter notebook (.ipynb) runs, when a "
                   "cell takes too long.",
        .params = cells_kernel_params,
        .run = cells_interrupt_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_AGENT_MODE | NG_TOOL_OWN_TIMEOUT,
        .aliases = "InterruptKernel",
        .listed = cells_listed_attached,
    },
    {
        .name = "restartKernel",
        .title = "Restart Kernel",
        .summary = "End the kernel of a Jupyter notebook (.ipynb) and start a new one, when "
                   "its state is broken: all its variables are lost.",
        .params = cells_kernel_params,
        .run = cells_restart_run,
        .effect = NG_EFFECT_RUNS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_AGENT_MODE | NG_TOOL_DESTRUCTIVE | NG_TOOL_OWN_TIMEOUT,
        .aliases = "RestartKernel",
        .listed = cells_listed_attached,
    },
    {
        .name = "listKernels",
        .title = "List Kernels",
        .summary = "List which kernels for Jupyter notebooks (.ipynb) are installed, and "
                   "which run for which notebook, to choose one.",
        .params = cells_list_params,
        .run = cells_kernels_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .aliases = "ListKernels",
    },
    {
        .name = "listNotebooks",
        .title = "List Notebooks",
        .summary =
            "List which Jupyter notebooks (.ipynb) there are, to choose one: path, cells, "
            "language, whether a kernel is alive, time of the last change.",
        .params = cells_notebooks_params,
        .run = cells_list_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .aliases = "ListNotebooks",
    },
};

static const struct ng_option cells_options[] = {
    {.name = "max_kernels",
     .type = NG_OPTION_INT,
     .fallback = "8",
     .min = 1,
     .max = SUPERVISOR_KERNELS_MAX / 2,
     .help = "Maximum number of running kernels; at the maximum an idle kernel is ended for a "
             "new one."},
    {.name = "idle_timeout",
     .type = NG_OPTION_DURATION,
     .fallback = "30min",
     .min = 1000,
     .max = 604800000,
     .help = "Idle time after which a kernel is ended."},
    {.name = "start_timeout",
     .type = NG_OPTION_DURATION,
     .fallback = "60s",
     .min = 100,
     .max = 3600000,
     .help = "Time limit for the start of a kernel."},
    {.name = "max_timeout",
     .type = NG_OPTION_DURATION,
     .fallback = "1h",
     .min = 1000,
     .max = 604800000,
     .help = "The longest `timeout` of one run."},
    {.name = "max_output_text",
     .type = NG_OPTION_SIZE,
     .fallback = "64KiB",
     .min = 1024,
     .max = 8388608,
     .help = "Maximum text of outputs in one answer; longer text is cut in the middle."},
    {.name = "max_saved_output",
     .type = NG_OPTION_SIZE,
     .fallback = "16MiB",
     .min = 1024,
     .max = 268435456,
     .help = "Maximum raw output of one cell that is saved in the file: of more, the beginning "
             "and the end. Values and errors do not count."},
    {.name = "list",
     .type = NG_OPTION_TEXT,
     .fallback = "attached",
     .choices = "attached always",
     .help = "When clients with sessions see the cell tools: while a notebook is active, or "
             "always."},
    {.name = "max_source",
     .type = NG_OPTION_SIZE,
     .fallback = "1000000",
     .min = 1,
     .max = 67108864,
     .help = "Maximum size of the source of one cell."},
};

static const struct ng_code cells_codes[] = {
    {"CELL_NOT_FOUND", 404, "There is no cell with this id in the notebook."},
    {"NO_ACTIVE_NOTEBOOK", 404, "No notebook was named, and none is active."},
    {"NOTEBOOK_MALFORMED", 422, "The file is not a usable notebook; it was not changed."},
    {"CELL_FAILED", 422, "A cell raised an error."},
    {"KERNEL_FAILED", 422, "The kernel could not be started, or ended."},
    {"RUN_NOT_FOUND", 404, "There is no run with this handle."},
    {"KERNEL_ELSEWHERE", 421, "The kernel of the notebook runs on another gateway."},
    {"NOTEBOOK_AMBIGUOUS", 400, "No notebook was named, and several are attached."},
    {"EDIT_NO_MATCH", 422, "The text to replace is not in the cell."},
    {"EDIT_AMBIGUOUS", 422, "The text to replace is in the cell more than once."},
};

static const struct ng_collection cells_collections[] = {
    {.name = CELLS_COLLECTION,
     .flags = NG_COLLECTION_NO_HISTORY,
     .field_size = sizeof(struct ng_field)},
    {.name = CELLS_ATTACHED,
     .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
     .field_size = sizeof(struct ng_field)},
    {.name = CELLS_LEASES,
     .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
     .field_size = sizeof(struct ng_field)},
};

static const char prompt_params[] =
    "{\"type\":\"object\",\"properties\":{\"notebook\":{\"type\":\"string\",\"description\":"
    "\"Path of the notebook; without it the active one.\"}}}";

static const struct ng_resources cells_resources[] = {
    {
        .kind = "cell",
        .title = "Cells",
        .summary =
            "The source of one cell of a Jupyter notebook (.ipynb); the id is the file's "
            "absolute path, #, and the cell's id.",
        .mime_type = "text/plain",
        .read = cells_resource_read,
        .find = cells_resource_find,
        .scans = true,
    },
};

static const struct ng_prompt cells_prompts[] = {
    {.name = "notebook-mode-agent",
     .title = "Work in a notebook",
     .summary = "Instructions and context for a model that may change and run the cells of the "
                "notebook.",
     .params = prompt_params,
     .get = cells_prompt_agent,
     .modes = NG_IN_MODE(NG_MODE_AGENT),
     .space = NG_SPACE_SHARED},
    {.name = "notebook-mode-readonly",
     .title = "Explain a notebook",
     .summary = "Instructions and context for a model that may only read the notebook.",
     .params = prompt_params,
     .get = cells_prompt_readonly,
     .modes = NG_IN_MODE(NG_MODE_ASK) | NG_IN_MODE(NG_MODE_EDIT),
     .space = NG_SPACE_SHARED},
};

/* For the history of files. */
static const struct ng_content_kind cells_contents[] = {
    {
        .ending = ".ipynb",
        .view = notebook_content_view,
        .merge = notebook_content_merge,
    },
};

static const struct ng_plugin cells_plugin = {
    .name = "cells",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = cells_tools,
    .tool_count = NG_COUNT(cells_tools),
    .start = cells_start,
    .stop = cells_stop,
    .options = cells_options,
    .option_count = NG_COUNT(cells_options),
    .codes = cells_codes,
    .code_count = NG_COUNT(cells_codes),
    .collections = cells_collections,
    .collection_count = NG_COUNT(cells_collections),
    .resources = cells_resources,
    .resource_count = NG_COUNT(cells_resources),
    .prompts = cells_prompts,
    .prompt_count = NG_COUNT(cells_prompts),
    .uses = "files",
    .contents = cells_contents,
    .content_count = NG_COUNT(cells_contents),
};

NG_EXPORT_PLUGIN(cells_plugin);
