# SPDX-License-Identifier: MIT
"""smolagents: a CodeAgent, which runs the code that its model writes; a model that writes one call."""

import asyncio
from contextlib import asynccontextmanager

import steps
from smolagents import CodeAgent, Model, ToolCollection
from smolagents.models import ChatMessage, MessageRole, get_tool_json_schema


class Told(Model):
    """Writes the call of one tool, then gives up."""

    def __init__(self, name, arguments):
        super().__init__(model_id="told")
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        self.answers = [f"Thought: as told.\n<code>\nfinal_answer({name}({given}))\n</code>"]
        self.seen = []

    def generate(self, messages, **_):
        self.seen = messages
        text = self.answers.pop() if self.answers else "<code>\nfinal_answer('gave up')\n</code>"
        return ChatMessage(role=MessageRole.ASSISTANT, content=text)


@asynccontextmanager
async def connect(url, headers):
    server = {"url": url, "transport": "streamable-http", "headers": headers}
    opened = ToolCollection.from_mcp(server, trust_remote_code=True, structured_output=False)
    collection = await asyncio.to_thread(opened.__enter__)

    def run(name, arguments):
        model = Told(name, arguments)
        agent = CodeAgent(tools=[*collection.tools], model=model, verbosity_level=0, max_steps=2)
        answer = agent.run("go")
        failed = [step.error for step in agent.memory.steps if getattr(step, "error", None)]
        if failed:
            raise steps.Failed(failed[0].message)
        return answer

    async def call(name, arguments):
        return await asyncio.to_thread(run, name, arguments)

    try:
        yield {tool.name: get_tool_json_schema(tool)["function"]["parameters"] for tool in collection.tools}, call
    finally:
        await asyncio.to_thread(opened.__exit__, None, None, None)


steps.run(connect)
