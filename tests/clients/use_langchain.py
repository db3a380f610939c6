# SPDX-License-Identifier: MIT
"""langchain-mcp-adapters."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(url, key):
    client = MultiServerMCPClient({"notegate": {
        "url": url, "transport": "streamable_http", "headers": {"Authorization": f"Bearer {key}"}}})
    tools = await client.get_tools()
    notebook = next(tool for tool in tools if tool.name == "notebook")
    await notebook.ainvoke({"mode": "write", "newStr": "written by a framework"})
    answer = str(await notebook.ainvoke({"mode": "read"}))
    try:
        failure = str(await notebook.ainvoke({"mode": "read", "name": "not-there"}))
    except Exception as error:
        failure = str(error)
    print(json.dumps({"tools": [tool.name for tool in tools], "answer": answer, "failure": failure}))


asyncio.run(main(*sys.argv[1:]))
