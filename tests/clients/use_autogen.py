# SPDX-License-Identifier: MIT
"""autogen-ext: makes a model of each tool's schema, and gives up on all tools where it cannot of one."""

import asyncio
import json
import sys
import traceback

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import StreamableHttpServerParams, mcp_server_tools


async def main(url, key):
    tools = await mcp_server_tools(StreamableHttpServerParams(url=url, headers={"Authorization": f"Bearer {key}"}))
    notebook = next(tool for tool in tools if tool.name == "notebook")

    async def call(**arguments):
        return notebook.return_value_as_string(await notebook.run_json(arguments, CancellationToken()))

    await call(mode="write", newStr="written by a framework")
    answer = await call(mode="read")
    try:
        failure = await call(mode="read", name="not-there")
    except Exception as error:
        failure = "".join(traceback.format_exception(error))
    print(json.dumps({"tools": [tool.name for tool in tools], "answer": answer, "failure": failure}))


asyncio.run(main(*sys.argv[1:]))
