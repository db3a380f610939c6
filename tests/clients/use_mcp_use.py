# SPDX-License-Identifier: MIT
"""mcp-use: LangChain tools that it makes of an MCP server."""

from contextlib import asynccontextmanager

import steps
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp_use import MCPClient
from mcp_use.agents.adapters.langchain_adapter import LangChainAdapter


@asynccontextmanager
async def connect(url, headers):
    client = MCPClient(config={"mcpServers": {"notegate": {"url": url, "headers": headers}}})
    try:
        found = await LangChainAdapter().create_tools(client)
        tools = {tool.name: tool for tool in found}

        async def call(name, arguments):
            answer = await tools[name].ainvoke(arguments)
            if isinstance(answer, dict):  # a failure, as it tells a model of it
                raise steps.Failed(answer["details"])
            return answer

        yield {name: convert_to_openai_tool(tool)["function"]["parameters"] for name, tool in tools.items()}, call
    finally:
        await client.close_all_sessions()


steps.run(connect)
