# SPDX-License-Identifier: MIT
"""langchain-mcp-adapters."""

from contextlib import asynccontextmanager

import steps
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.client import MultiServerMCPClient


@asynccontextmanager
async def connect(url, headers):
    client = MultiServerMCPClient({"notegate": {"url": url, "transport": "streamable_http", "headers": headers}})
    tools = {tool.name: tool for tool in await client.get_tools()}

    async def call(name, arguments):
        message = await tools[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
        if message.status == "error":
            raise steps.Failed(message.content)
        return message.content

    yield {name: convert_to_openai_tool(tool)["function"]["parameters"] for name, tool in tools.items()}, call


steps.run(connect)
