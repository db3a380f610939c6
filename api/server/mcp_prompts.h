/* SPDX-License-Identifier: MIT */
/* mcp_prompts.h - the prompts there are, for getting and for completion. */
#ifndef NOTEGATE_API_MCP_PROMPTS_H
#define NOTEGATE_API_MCP_PROMPTS_H

#include "mcp_resources.h"

struct mcp_prompt {
    struct plugin *plugin;
    const struct ng_prompt *desc;
};

/* All prompts, in stable order. False: there are no more. */
bool mcp_prompt_at(struct gateway *gateway, size_t index, struct mcp_prompt *ret);
/* By name, if the caller may see it. */
bool mcp_prompt_find(struct call *call, struct ng_str name, struct mcp_prompt *ret);
/* The schema of its arguments; NULL: it has none. */
const struct ng_value *mcp_prompt_params(struct arena *arena, const struct ng_prompt *desc);

#endif
