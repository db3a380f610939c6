# SPDX-License-Identifier: MIT
"""llama-index-tools-mcp: function tools made of pydantic models that it writes from the schemas."""

from contextlib import asynccontextmanager

import steps
from llama_index.core.tools.calling import acall_tool
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


@asynccontextmanager
async def connect(url, headers):
    found = await McpToolSpec(BasicMCPClient(url, headers=headers)).to_tool_list_async()
    tools = {tool.metadata.name: tool for tool in found}

    async def call(name, arguments):
        output = await acall_tool(tools[name], arguments)
        # Its own `is_error` is of what it caught itself; a failed call of MCP says so in the result.
        if output.is_error or output.raw_output.is_error:
            raise steps.Failed(output.content)
        return output.content

    yield {name: tool.metadata.get_parameters_dict() for name, tool in tools.items()}, call


steps.run(connect)
