# SPDX-License-Identifier: MIT
"""Runs a plan of calls with a framework, and prints one line of JSON. Each use_NAME.py does so inside of its environment.

Arguments: URL KEY PLAN, where PLAN is a list of [step, tool, arguments]. Without any, nothing is run: Python has then compiled what
the script imports.
"""

import asyncio
import json
import sys
import traceback


class Failed(Exception):
    """A call that the framework tells as failed, with the text that its model gets."""


def plain(name):
    """Some frameworks turn createNotebook into create_notebook."""
    return name.replace("_", "").lower()


async def keyless(connect, url):
    """How the framework puts it that the gateway wants a key."""
    try:
        async with connect(url, {}) as (tools, _):
            return f"it was let in, and saw {len(tools)} tools"
    except (Exception, asyncio.CancelledError, BaseExceptionGroup) as error:
        return "".join(traceback.format_exception(error))


async def call_once(call, name, arguments):
    try:
        return {"failed": False, "text": str(await call(name, arguments))}
    except Failed as failure:
        return {"failed": True, "text": str(failure)}
    except Exception as error:
        return {"failed": True, "text": "".join(traceback.format_exception(error))}


async def play(connect, more):
    url, key, plan = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    headers = {"Authorization": f"Bearer {key}"}
    told = {"keyless": await keyless(connect, url), "steps": {}}
    async with connect(url, headers) as (tools, call):
        told["tools"] = tools
        names = {plain(name): name for name in tools}
        for step, tool, arguments in plan:
            told["steps"][step] = await call_once(call, names[plain(tool)], arguments)
    if more is not None:
        told.update(await more(url, headers))
    return told


def run(connect, more=None):
    """connect(url, headers) is an async context manager. It gives the schema of each tool as the framework has it for models, and
    call(name, arguments), the framework's own way to run a tool. more(url, headers) adds members."""
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(play(connect, more))))
