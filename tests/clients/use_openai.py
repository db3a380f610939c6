# SPDX-License-Identifier: MIT
"""openai-agents: an agent's function tools made of its MCP server, without a model."""

import json
from contextlib import asynccontextmanager

import steps
from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStreamableHttp, MCPUtil
from agents.tool_context import ToolContext


@asynccontextmanager
async def connect(url, headers):
    async with MCPServerStreamableHttp({"url": url, "headers": headers}) as server:
        found = await MCPUtil.get_function_tools(server, False, RunContextWrapper(None), Agent(name="a"),
                                                 failure_error_function=None)
        tools = {tool.name: tool for tool in found}

        async def call(name, arguments):
            text = json.dumps(arguments)
            context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
            return await tools[name].on_invoke_tool(context, text)

        yield {name: tool.params_json_schema for name, tool in tools.items()}, call


steps.run(connect)
