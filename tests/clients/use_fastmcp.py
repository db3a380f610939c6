# SPDX-License-Identifier: MIT
"""fastmcp's client."""

import asyncio
import json
import sys

from fastmcp import Client


async def main(url, key):
    async with Client(url, auth=key) as client:
        tools = await client.list_tools()
        await client.call_tool("notebook", {"mode": "write", "newStr": "written by a framework"})
        answer = str((await client.call_tool("notebook", {"mode": "read"})).content)
        try:
            failure = str(await client.call_tool("notebook", {"mode": "read", "name": "not-there"}))
        except Exception as error:
            failure = str(error)
    print(json.dumps({"tools": [tool.name for tool in tools], "answer": answer, "failure": failure}))


asyncio.run(main(*sys.argv[1:]))
