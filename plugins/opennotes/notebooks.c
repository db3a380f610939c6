/* SPDX-License-Identifier: MIT */
/* notebooks.c - the tool that lists the notebooks. */
#include "notebook.h"

const char on_notebooks_summary[] =
    "List all available OpenNotes notebooks.\n\nReturns notebooks from:\n"
    "- Global config (registered notebooks)\n"
    "- Ancestor directories (discovered notebooks)\n\n"
    "Each notebook includes name, path, and source.";

const char on_notebooks_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{}}";

#define NOTEBOOK_INFO                                                                          \
    "\"properties\":{\"name\":{\"type\":\"string\",\"description\":\"Notebook display "        \
    "name\"},"                                                                                 \
    "\"path\":{\"type\":\"string\",\"description\":\"Absolute path to notebook\"},"            \
    "\"source\":{\"type\":\"string\",\"enum\":[\"registered\",\"ancestor\",\"explicit\"]},"    \
    "\"noteCount\":{\"type\":\"integer\"}},\"required\":[\"name\",\"path\",\"source\"]"

const char on_notebooks_result[] =
    "{\"type\":\"object\",\"required\":[\"notebooks\",\"current\"],\"properties\":{"
    "\"notebooks\":{\"type\":\"array\",\"items\":{\"type\":\"object\"," NOTEBOOK_INFO "}},"
    "\"current\":{\"type\":[\"object\",\"null\"]," NOTEBOOK_INFO "}}}";

int on_notebooks_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct on_notebook *notebook = NULL;
    (void)args;
    return on_notebook_pick(self, call, &notebook);
}
