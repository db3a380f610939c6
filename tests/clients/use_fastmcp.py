# SPDX-License-Identifier: MIT
"""fastmcp's client."""

from contextlib import asynccontextmanager

import steps
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.exceptions import ToolError


@asynccontextmanager
async def connect(url, headers):
    async with Client(StreamableHttpTransport(url, headers=headers)) as client:
        async def call(name, arguments):
            try:
                return (await client.call_tool(name, arguments)).content
            except ToolError as error:
                raise steps.Failed(error) from error

        yield {tool.name: tool.inputSchema for tool in await client.list_tools()}, call


steps.run(connect)
