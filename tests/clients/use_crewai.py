# SPDX-License-Identifier: MIT
"""crewai-tools: its adapter sends null for every optional argument that it was not given."""

import asyncio
from contextlib import asynccontextmanager

import steps
from crewai_tools import MCPServerAdapter

CONNECT_SECONDS = 60


@asynccontextmanager
async def connect(url, headers):
    server = {"url": url, "transport": "streamable-http", "headers": headers}
    adapter = await asyncio.to_thread(MCPServerAdapter, server, connect_timeout=CONNECT_SECONDS if headers else 5)
    try:
        tools = {tool.name: tool for tool in adapter.tools}

        async def call(name, arguments):
            return await asyncio.to_thread(tools[name].run, **arguments)

        yield {name: tool.args_schema.model_json_schema() for name, tool in tools.items()}, call
    finally:
        await asyncio.to_thread(adapter.stop)


steps.run(connect)
