# SPDX-License-Identifier: MIT
"""strands-agents: an agent with its MCP client, and a model that makes given calls."""

import asyncio
import json
from contextlib import asynccontextmanager

import steps
from strands import Agent
from strands.models.model import Model
from strands.tools.mcp import MCPClient


class Told(Model):
    """Calls one tool, then ends."""

    def __init__(self, name, arguments):
        self.name, self.arguments, self.seen = name, arguments, []

    def update_config(self, **model_config):
        pass

    def get_config(self):
        return {}

    def structured_output(self, output_model, prompt, system_prompt=None, **kwargs):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        calls = self.name is not None and len(messages) == 1
        self.seen = tool_specs
        yield {"messageStart": {"role": "assistant"}}
        if calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "1", "name": self.name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(self.arguments)}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


@asynccontextmanager
async def connect(url, headers):
    client = MCPClient(url=url, headers=headers)
    await asyncio.to_thread(client.start)
    try:
        tools = await asyncio.to_thread(client.list_tools_sync)

        async def ask(name, arguments):
            model = Told(name, arguments)
            agent = Agent(model=model, tools=list(tools), callback_handler=None)
            await agent.invoke_async("go")
            return model, [block["toolResult"] for message in agent.messages for block in message["content"]
                           if "toolResult" in block]

        async def call(name, arguments):
            _, (result,) = await ask(name, arguments)
            text = "\n".join(part.get("text", str(part)) for part in result["content"])
            if result["status"] != "success":
                raise steps.Failed(text)
            return text

        model, _ = await ask(None, None)
        yield {spec["name"]: spec["inputSchema"]["json"] for spec in model.seen}, call
    finally:
        await asyncio.to_thread(client.stop, None, None, None)


steps.run(connect)
