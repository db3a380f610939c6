# SPDX-License-Identifier: MIT
"""Questions, progress and log messages of tools, for the official client over HTTP, stdio and the relay."""

import asyncio
import json
import mcp_types as types

import pytest
from conftest import binary, environment
from mcp import Client, StdioServerParameters
from mcp_support import CALL_SECONDS, FIXTURES, MODERN, server  # noqa: F401 (fixtures among them)


def stdio(data_dir, *sets):
    return StdioServerParameters(command=binary(), cwd=str(data_dir.parent), env=environment(),
                                 args=["mcp", "--data-dir", str(data_dir), *sets])


@pytest.fixture(params=["http", "stdio", "relay"])
def target(request, server, tmp_path):
    if request.param == "http":
        return server.url + "/mcp"
    if request.param == "relay":
        return stdio(server.data_dir)
    return stdio(tmp_path / "data", "--set", FIXTURES[0])


@pytest.fixture(params=["legacy", MODERN])
def mode(request):
    return request.param


class Answers:
    """Questions to the client, and its answers."""

    def __init__(self):
        self.asked = []
        self.logged = []

    async def elicit(self, context, params):
        self.asked.append(("elicitation", params.message))
        names = params.requested_schema["properties"]
        values = {"username": "ada", "email": "ada@example.org", "name": "ada", "ok": True, "color": "blue"}
        return types.ElicitResult(action="accept", content={name: values[name] for name in names if name in values})

    async def decline(self, context, params):
        self.asked.append(("elicitation", params.message))
        return types.ElicitResult(action="decline")

    async def sample(self, context, params):
        self.asked.append(("sampling", params.messages[0].content.text))
        return types.CreateMessageResult(role="assistant", model="test", content=types.TextContent(type="text", text="Paris"))

    async def roots(self, context):
        self.asked.append(("roots", None))
        return types.ListRootsResult(roots=[types.Root(uri="file:///tmp/root", name="Root")])

    async def log(self, params):
        self.logged.append((params.level, params.data))


def with_client(target, mode, use, **more):
    async def run():
        async with Client(target, mode=mode, read_timeout_seconds=CALL_SECONDS, **more) as client:
            await use(client)

    asyncio.run(run())


def text_of(result):
    assert not result.is_error, result
    return result.content[0].text


def test_the_user_is_asked(target, mode):
    answers = Answers()

    async def use(client):
        if mode == "legacy":
            result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
        else:
            result = await client.call_tool("test_input_required_result_elicitation", {})
        assert "ada" in text_of(result)
        assert len(answers.asked) == 1

    with_client(target, mode, use, elicitation_callback=answers.elicit)


def test_the_user_declines(target):
    answers = Answers()

    async def use(client):
        result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
        assert "decline" in json.dumps([part.text for part in result.content])

    with_client(target, "legacy", use, elicitation_callback=answers.decline)


def test_the_model_is_asked(target, mode):
    answers = Answers()

    async def use(client):
        if mode == "legacy":
            result = await client.call_tool("test_sampling", {"prompt": "What is the capital of France?"})
        else:
            result = await client.call_tool("test_input_required_result_sampling", {})
        assert "Paris" in text_of(result)
        assert answers.asked == [("sampling", "What is the capital of France?")]

    with_client(target, mode, use, sampling_callback=answers.sample)


def test_several_things_are_asked_at_once(target, mode):
    answers = Answers()

    async def use(client):
        text_of(await client.call_tool("test_input_required_result_multiple_inputs", {}))
        assert sorted(kind for kind, _ in answers.asked) == ["elicitation", "roots", "sampling"]

    with_client(target, mode, use, elicitation_callback=answers.elicit, sampling_callback=answers.sample,
                list_roots_callback=answers.roots)


def test_several_rounds(target, mode):
    answers = Answers()

    async def use(client):
        text = text_of(await client.call_tool("test_input_required_result_multi_round", {}))
        assert "ada" in text and "blue" in text
        assert len(answers.asked) == 2

    with_client(target, mode, use, elicitation_callback=answers.elicit)


def test_a_client_that_cannot_be_asked(target):
    async def use(client):
        result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
        assert result.is_error
        assert "does not support questions" in result.content[0].text

    with_client(target, "legacy", use)


def test_progress(target, mode):
    async def use(client):
        seen = []

        async def progress(done, total, message):
            seen.append((done, total))

        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
        assert seen == [(0, 100), (50, 100), (100, 100)]

    with_client(target, mode, use)


def test_log_messages(target):
    answers = Answers()

    async def use(client):
        await client.call_tool("test_tool_with_logging", {})
        assert len(answers.logged) == 3
        assert {level for level, _ in answers.logged} == {"info"}
        await client.set_logging_level("error")
        await client.call_tool("test_tool_with_logging", {})
        assert len(answers.logged) == 3

    with_client(target, "legacy", use, logging_callback=answers.log)


def test_calls_in_parallel_are_asked_apart(target):
    answers = Answers()

    async def use(client):
        results = await asyncio.gather(*(client.call_tool("test_sampling", {"prompt": f"{i}"}) for i in range(8)))
        assert all("Paris" in text_of(result) for result in results)
        assert sorted(prompt for _, prompt in answers.asked) == [str(i) for i in range(8)]

    with_client(target, "legacy", use, sampling_callback=answers.sample)
