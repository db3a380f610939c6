/* SPDX-License-Identifier: MIT */
/* cells_schemas.c - JSON Schemas of the tools' arguments. */
#include "cells.h"

#define PATH "Path of the .ipynb file, absolute or relative to the first root."
#define NOTEBOOK                                                                               \
    "\"notebook\":{\"type\":\"string\",\"description\":\".ipynb file; default: the active "    \
    "one\"}"
#define REVISION                                                                               \
    "\"expectedRevision\":{\"type\":\"string\",\"description\":\"Fail with CONFLICT at "       \
    "another revision.\"}"
#define ID_TYPE "\"type\":\"string\",\"minLength\":1"
#define IDS "\"type\":\"array\",\"items\":{" ID_TYPE "}"
#define CELL "Id, or index:N (any cell, from 0)."
#define CELLS "Ids, or index:N (any cell, from 0)"
/* Ids or positions. */
#define NAME_TYPE "\"anyOf\":[{" ID_TYPE "},{\"type\":\"integer\"}]"
#define NAMES "\"type\":\"array\",\"items\":{" NAME_TYPE "}"
#define CELLS_OR_ALL CELLS "; [\\\"all\\\"]: all"

const char cells_run_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"cellIds\":{" NAMES ",\"description\":\"" CELLS_OR_ALL
    ". They run in the order of the notebook.\"}," NOTEBOOK ","
    "\"timeout\":{\"type\":\"number\",\"minimum\":0,\"description\":\"Seconds (120), then "
    "the cell is interrupted.\"},"
    "\"background\":{\"type\":\"boolean\",\"description\":\"Answer at once with a run "
    "handle for getNotebookRun.\"},"
    "\"kernel\":{\"type\":\"string\",\"description\":\"Kernel to start if none "
    "runs; default: the notebook's.\"}," REVISION
    "},\"required\":[\"cellIds\"],\"additionalProperties\":false}";

const char cells_add_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"type\":{\"type\":\"string\",\"description\":\"code, markdown or raw.\"},"
    "\"index\":{\"type\":\"number\","
    "\"description\":\"Its position, from 0; -1: the end.\"},"
    "\"content\":{\"type\":\"string\",\"description\":\"Its source.\"}," NOTEBOOK "," REVISION
    "},\"required\":[\"type\",\"index\",\"content\"],\"additionalProperties\":false}";

const char cells_update_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"cellId\":{" ID_TYPE ",\"description\":\"" CELL "\"},"
    "\"content\":{\"type\":\"string\",\"description\":\"The new source. Outputs stay "
    "until the cell is run.\"},"
    "\"edits\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":100,\"items\":{\"type\":"
    "\"object\",\"required\":[\"old_str\",\"new_str\"],\"additionalProperties\":false,"
    "\"properties\":{\"old_str\":{\"type\":\"string\",\"minLength\":1,\"description\":"
    "\"Present text.\"},\"new_str\":{\"type\":"
    "\"string\",\"description\":\"New text.\"}}},\"description\":\"Instead of content: "
    "replacements in order, all or none; each old_str exactly once.\"}," NOTEBOOK "," REVISION
    "},\"required\":[\"cellId\"],\"additionalProperties\":false}";

const char cells_get_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"cellIds\":{" NAMES ",\"description\":\"" CELLS_OR_ALL ", the default.\"}," NOTEBOOK
    "},\"additionalProperties\":false}";

const char cells_outputs_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"cellId\":{" NAME_TYPE ",\"description\":\"" CELL "\"},"
    "\"cellIds\":{" NAMES ",\"minItems\":1,\"description\":\"Instead, several cells; "
    "[\\\"all\\\"]: all.\"},"
    "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"First character "
    "of the text.\"},"
    "\"format\":{\"type\":\"string\",\"enum\":[\"text\",\"html\"],"
    "\"description\":\"html: the HTML of outputs that have it.\"}," NOTEBOOK
    "},\"additionalProperties\":false}";

const char cells_attach_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"notebook\":{\"type\":\"string\",\"description\":\"" PATH "\"},"
    "\"active\":{\"type\":\"boolean\",\"description\":\"Make it the active one "
    "(default).\"}"
    "},\"required\":[\"notebook\"],\"additionalProperties\":false}";

const char cells_detach_params[] =
    "{\"type\":\"object\",\"properties\":{" NOTEBOOK "},\"additionalProperties\":false}";

const char cells_select_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"cellIds\":{" IDS ",\"maxItems\":1000,\"description\":\"" CELLS
    "; an empty list selects none.\"},"
    "\"active\":{" ID_TYPE ",\"description\":\"The cell that is being edited.\"}," NOTEBOOK
    "},\"required\":[\"cellIds\"],\"additionalProperties\":false}";

const char cells_context_params[] =
    "{\"type\":\"object\",\"properties\":{" NOTEBOOK "},\"additionalProperties\":false}";

const char cells_create_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"notebook\":{\"type\":\"string\",\"description\":\"" PATH
    " Folders are made; no file is overwritten.\"},"
    "\"kernel\":{\"type\":\"string\",\"description\":\"An installed kernel; default: "
    "python3.\"},"
    "\"cells\":{\"type\":\"array\",\"maxItems\":100,\"items\":{\"type\":\"object\","
    "\"properties\":"
    "{\"type\":{\"type\":\"string\",\"description\":\"code, markdown or raw.\"},\"content\":{"
    "\"type\":\"string\",\"description\":\"The "
    "source.\"}},\"required\":[\"type\",\"content\"],\"additionalProperties\":false},"
    "\"description\":\"Its cells, instead of an empty one.\"},"
    "\"run\":{\"type\":\"boolean\",\"description\":\"Run them, and answer as "
    "runNotebookCells.\"}"
    "},\"required\":[\"notebook\"],\"additionalProperties\":false}";

const char cells_delete_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"cellIds\":{" IDS ",\"minItems\":1,\"maxItems\":10000,\"description\":\"" CELLS
    ".\"}," NOTEBOOK "," REVISION
    "},\"required\":[\"cellIds\"],\"additionalProperties\":false}";

const char cells_move_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"cellId\":{" ID_TYPE ",\"description\":\"" CELL "\"},"
    "\"index\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"Where it is "
    "afterwards, from 0.\"}," NOTEBOOK "," REVISION
    "},\"required\":[\"cellId\",\"index\"],\"additionalProperties\":false}";

const char cells_clear_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"cellIds\":{" IDS ",\"minItems\":1,\"maxItems\":10000,\"description\":\"" CELLS
    "; without it all.\"}," NOTEBOOK "," REVISION "},\"additionalProperties\":false}";

const char cells_get_run_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"run\":{\"type\":\"string\",\"description\":\"Handle of runNotebookCells.\"}"
    "},\"required\":[\"run\"],\"additionalProperties\":false}";

const char cells_kernel_params[] =
    "{\"type\":\"object\",\"properties\":{" NOTEBOOK "},\"additionalProperties\":false}";

const char cells_list_params[] = "{\"type\":\"object\",\"properties\":{"
                                 "},\"additionalProperties\":false}";

const char cells_notebooks_params[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"path\":{\"type\":\"string\",\"description\":\"Folder; default: all "
    "roots.\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"description\":\"100 by "
    "default.\"}},\"additionalProperties\":false}";
