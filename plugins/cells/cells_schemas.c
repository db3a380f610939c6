/* SPDX-License-Identifier: MIT */
/* cells_schemas.c - the JSON Schemas of the tools' arguments. */
#include "cells.h"

const char cells_run_params[] =
    "{\"type\":\"object\",\"properties\":{\"cellIds\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"stri"
    "ng\"},\"maxItems\":10000,\"description\":\"Ids of the cells to run (index:N for a ce"
    "ll without an id). They run in the order of the notebook.\"},\"notebook\":{\"type\""
    ":\"string\",\"description\":\"Path of the .ipynb file, absolute or relative to the "
    "first root. Without it: the active notebook.\"},\"timeout\":{\"type\":\"number\",\"exc"
    "lusiveMinimum\":0,\"description\":\"Seconds this call may run; then the cell is in"
    "terrupted. 120 by default.\"},\"background\":{\"type\":\"boolean\",\"description\":\"Ans"
    "wer at once with a run handle; getNotebookRun tells how it is doing.\"},\"kernel"
    "\":{\"type\":\"string\",\"description\":\"Kernel to start where the notebook has none "
    "running; by default the one the notebook names.\"},\"expectedRevision\":{\"type\":\""
    "string\",\"description\":\"Do it only if the file is at this revision, else fail w"
    "ith CONFLICT.\"}},\"required\":[\"cellIds\"],\"additionalProperties\":false}";

const char cells_add_params[] =
    "{\"type\":\"object\",\"properties\":{\"type\":{\"type\":\"string\",\"description\":\"code,"
    " ma"
    "rkdown or raw.\"},\"index\":{\"type\":\"number\",\"multipleOf\":1,\"minimum\":-1,\"maximum\":1000000,\"description\":\"Positio"
    "n of the new cell, from 0; -1: at the end.\"},\"content\":{\"type\":\"string\",\"descr"
    "iption\":\"The source of the cell.\"},\"notebook\":{\"type\":\"string\",\"description\":\""
    "Path of the .ipynb file, absolute or relative to the first root. Without it: t"
    "he active notebook.\"},\"expectedRevision\":{\"type\":\"string\",\"description\":\"Do it"
    " only if the file is at this revision, else fail with CONFLICT.\"}},\"required\":"
    "[\"type\",\"index\",\"content\"],\"additionalProperties\":false}";

const char cells_update_params[] =
    "{\"type\":\"object\",\"properties\":{\"cellId\":{\"type\":\"string\",\"description\":\"Id "
    "of "
    "the cell (index:N for a cell without an id).\"},\"content\":{\"type\":\"string\",\"des"
    "cription\":\"The new source. Outputs stay until the cell is run.\"},\"notebook\":{\""
    "type\":\"string\",\"description\":\"Path of the .ipynb file, absolute or relative to"
    " the first root. Without it: the active notebook.\"},\"expectedRevision\":{\"type\""
    ":\"string\",\"description\":\"Do it only if the file is at this revision, else fail"
    " with CONFLICT.\"}},\"required\":[\"cellId\",\"content\"],\"additionalProperties\":fals"
    "e}";

const char cells_get_params[] =
    "{\"type\":\"object\",\"properties\":{\"cellIds\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"stri"
    "ng\"},\"maxItems\":10000,\"description\":\"Only these cells; without it all.\"},\"note"
    "book\":{\"type\":\"string\",\"description\":\"Path of the .ipynb file, absolute or rel"
    "ative to the first root. Without it: the active notebook.\"}},\"required\":[],\"ad"
    "ditionalProperties\":false}";

const char cells_outputs_params[] =
    "{\"type\":\"object\",\"properties\":{\"cellId\":{\"type\":\"string\",\"description\":\"Id "
    "of "
    "the cell (index:N for a cell without an id).\"},\"offset\":{\"type\":\"integer\",\"min"
    "imum\":0,\"description\":\"Read the text of the outputs on from this character.\"},"
    "\"format\":{\"type\":\"string\",\"enum\":[\"text\",\"html\"],\"description\":\"html: the "
    "HTML"
    " of outputs that have it.\"},\"notebook\":{\"type\":\"string\",\"description\":\"Path of"
    " the .ipynb file, absolute or relative to the first root. Without it: the acti"
    "ve notebook.\"}},\"required\":[\"cellId\"],\"additionalProperties\":false}";

const char cells_attach_params[] =
    "{\"type\":\"object\",\"properties\":{\"notebook\":{\"type\":\"string\",\"description\":"
    "\"Path"
    " of the .ipynb file, absolute or relative to the first root.\"},\"active\":{\"type"
    "\":\"boolean\",\"description\":\"Make it the active notebook (the default).\"}},\"requ"
    "ired\":[\"notebook\"],\"additionalProperties\":false}";

const char cells_detach_params[] =
    "{\"type\":\"object\",\"properties\":{\"notebook\":{\"type\":\"string\",\"description\":"
    "\"Path"
    " of the .ipynb file, absolute or relative to the first root. Without it: the a"
    "ctive notebook.\"}},\"required\":[],\"additionalProperties\":false}";

const char cells_select_params[] =
    "{\"type\":\"object\",\"properties\":{\"cellIds\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"stri"
    "ng\"},\"maxItems\":1000,\"description\":\"Ids of the selected cells; an empty list s"
    "elects none.\"},\"active\":{\"type\":\"string\",\"description\":\"Id of the cell that is"
    " being edited.\"},\"notebook\":{\"type\":\"string\",\"description\":\"Path of the .ipynb"
    " file, absolute or relative to the first root. Without it: the active notebook"
    ".\"}},\"required\":[\"cellIds\"],\"additionalProperties\":false}";

const char cells_context_params[] =
    "{\"type\":\"object\",\"properties\":{\"notebook\":{\"type\":\"string\",\"description\":"
    "\"Path"
    " of the .ipynb file, absolute or relative to the first root. Without it: the a"
    "ctive notebook.\"}},\"required\":[],\"additionalProperties\":false}";

const char cells_create_params[] =
    "{\"type\":\"object\",\"properties\":{\"notebook\":{\"type\":\"string\",\"description\":"
    "\"Path"
    " of the .ipynb file, absolute or relative to the first root. Parent folders ar"
    "e made, an existing file is never overwritten.\"},\"kernel\":{\"type\":\"string\",\"de"
    "scription\":\"Name of an installed kernel; by default python3.\"}},\"required\":[\"n"
    "otebook\"],\"additionalProperties\":false}";

const char cells_delete_params[] =
    "{\"type\":\"object\",\"properties\":{\"cellIds\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"stri"
    "ng\"},\"minItems\":1,\"maxItems\":10000,\"description\":\"Ids of the cells to delete.\""
    "},\"notebook\":{\"type\":\"string\",\"description\":\"Path of the .ipynb file, absolute"
    " or relative to the first root. Without it: the active notebook.\"},\"expectedRe"
    "vision\":{\"type\":\"string\",\"description\":\"Do it only if the file is at this revi"
    "sion, else fail with CONFLICT.\"}},\"required\":[\"cellIds\"],\"additionalProperties"
    "\":false}";

const char cells_move_params[] =
    "{\"type\":\"object\",\"properties\":{\"cellId\":{\"type\":\"string\",\"description\":\"Id "
    "of "
    "the cell to move.\"},\"index\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"Where"
    " it is afterwards, from 0.\"},\"notebook\":{\"type\":\"string\",\"description\":\"Path o"
    "f the .ipynb file, absolute or relative to the first root. Without it: the act"
    "ive notebook.\"},\"expectedRevision\":{\"type\":\"string\",\"description\":\"Do it only "
    "if the file is at this revision, else fail with CONFLICT.\"}},\"required\":[\"cell"
    "Id\",\"index\"],\"additionalProperties\":false}";

const char cells_clear_params[] =
    "{\"type\":\"object\",\"properties\":{\"cellIds\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"stri"
    "ng\"},\"minItems\":1,\"maxItems\":10000,\"description\":\"Ids of the cells whose outpu"
    "ts go; without it all.\"},\"notebook\":{\"type\":\"string\",\"description\":\"Path of th"
    "e .ipynb file, absolute or relative to the first root. Without it: the active "
    "notebook.\"},\"expectedRevision\":{\"type\":\"string\",\"description\":\"Do it only if t"
    "he file is at this revision, else fail with CONFLICT.\"}},\"required\":[],\"additi"
    "onalProperties\":false}";

const char cells_get_run_params[] =
    "{\"type\":\"object\",\"properties\":{\"run\":{\"type\":\"string\",\"description\":\"The "
    "handl"
    "e that runNotebookCells gave.\"}},\"required\":[\"run\"],\"additionalProperties\":fal"
    "se}";

const char cells_kernel_params[] =
    "{\"type\":\"object\",\"properties\":{\"notebook\":{\"type\":\"string\",\"description\":"
    "\"Path"
    " of the .ipynb file, absolute or relative to the first root. Without it: the a"
    "ctive notebook.\"}},\"required\":[],\"additionalProperties\":false}";

const char cells_list_params[] =
    "{\"type\":\"object\",\"properties\":{},\"required\":[],\"additionalProperties\":false}";
