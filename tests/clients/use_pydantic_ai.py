# SPDX-License-Identifier: MIT
"""pydantic-ai: an agent whose model is told what to call, and TestModel, which makes arguments from each tool's schema."""

from contextlib import asynccontextmanager

import steps
from fastmcp.client.transports import StreamableHttpTransport
from pydantic_ai import Agent, UnexpectedModelBehavior
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel


def agent_of(url, headers, behavior):
    toolset = MCPToolset(StreamableHttpTransport(url, headers=headers), tool_error_behavior=behavior)
    return Agent("test", toolsets=[toolset], retries=0)


def returned(result, name):
    """What the model was told of the call."""
    for message in result.all_messages():
        for part in message.parts:
            if part.part_kind in ("tool-return", "retry-prompt") and part.tool_name == name:
                return part
    raise AssertionError(f"{name} was not answered: {result.all_messages()}")


async def ask(agent, model, name):
    part = returned(await agent.run("go", model=model), name)
    text = part.model_response_str() if part.part_kind == "tool-return" else part.model_response()
    if part.part_kind == "retry-prompt" or part.outcome != "success":
        raise steps.Failed(text)
    return text


@asynccontextmanager
async def connect(url, headers):
    agent = agent_of(url, headers, "failed")
    seen = {}

    async def call(name, arguments):
        def model(messages, info):
            seen.update({tool.name: tool.parameters_json_schema for tool in info.function_tools})
            return ModelResponse(parts=[TextPart("done") if len(messages) > 1 else ToolCallPart(name, arguments)])

        return await ask(agent, FunctionModel(model), name)

    def look(_messages, info):
        seen.update({tool.name: tool.parameters_json_schema for tool in info.function_tools})
        return ModelResponse(parts=[TextPart("done")])

    async with agent:
        await agent.run("look", model=FunctionModel(look))
        yield seen, call


async def generated(url, headers):
    """Each tool alone with TestModel's arguments; then, in one run, those that took them with others: what was made is there now."""
    told = {}
    agent = agent_of(url, headers, "failed")
    async with agent:
        model = TestModel(call_tools=[])
        await agent.run("look", model=model)
        for tool in model.last_model_request_parameters.function_tools:
            told[tool.name] = await steps.call_once(lambda name, _: ask(agent, TestModel(call_tools=[name]), name), tool.name, {})
    strict = agent_of(url, headers, "retry")
    works = [name for name, outcome in told.items() if not outcome["failed"]]
    async with strict:
        try:
            text = (await strict.run("go", model=TestModel(call_tools=works, seed=1))).output
        except UnexpectedModelBehavior as error:
            text = f"UnexpectedModelBehavior: {error}"
    return {"generated": told, "together": text}


steps.run(connect, generated)
