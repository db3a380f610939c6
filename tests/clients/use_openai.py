# SPDX-License-Identifier: MIT
"""openai-agents: its MCP server, without a model."""

import asyncio
import json
import sys

from agents.mcp import MCPServerStreamableHttp


async def main(url, key):
    async with MCPServerStreamableHttp({"url": url, "headers": {"Authorization": f"Bearer {key}"}}) as server:
        tools = await server.list_tools()
        await server.call_tool("notebook", {"mode": "write", "newStr": "written by a framework"})
        answer = str(await server.call_tool("notebook", {"mode": "read"}))
        try:
            failure = str(await server.call_tool("notebook", {"mode": "read", "name": "not-there"}))
        except Exception as error:
            failure = str(error)
    print(json.dumps({"tools": [tool.name for tool in tools], "answer": answer, "failure": failure}))


asyncio.run(main(*sys.argv[1:]))
