# SPDX-License-Identifier: MIT
"""autogen-ext: makes a model of each tool's schema, and gives up on all tools where it cannot of one."""

from contextlib import asynccontextmanager

import steps
from autogen_core import CancellationToken
from autogen_ext.tools.mcp import StreamableHttpServerParams, mcp_server_tools


@asynccontextmanager
async def connect(url, headers):
    tools = {tool.name: tool for tool in await mcp_server_tools(StreamableHttpServerParams(url=url, headers=headers))}

    async def call(name, arguments):
        return tools[name].return_value_as_string(await tools[name].run_json(arguments, CancellationToken()))

    yield {name: tool.schema["parameters"] for name, tool in tools.items()}, call


steps.run(connect)
