# SPDX-License-Identifier: MIT
"""The everyday tasks of an agent and the most calls each may take, a gateway with all that they need, and agents that count
their calls over REST and both MCP eras."""

import base64
import contextlib
import json

import pytest
from conftest import Gateway
from mcp_support import HANDSHAKE, MODERN, Session, modern

FACES = ("rest", HANDSHAKE, MODERN)
# The agent knows what a person would say: titles, names, paths, headings and texts, but no ids.
TASKS = {
    "find where something was decided": 1,
    "find a word in many files": 1,
    "list the open tasks": 1,
    "list the Jupyter notebooks": 1,
    "read some lines of a big file": 1,
    "read a page of another space": 1,
    "compare a page with yesterday": 2,
    "append a line to a page": 1,
    "add a bullet under a heading": 1,
    "add a task to today's note": 1,
    "tick a task in a note": 2,
    "claim a task": 1,
    "move a section": 2,
    "rename a note and keep its links": 1,
    "change one line of a long cell": 1,
    "undo a change of a page": 1,
    "undo a change of a named text": 1,
    "undo a change of a note": 1,
    "undo a change of a file": 1,
    "undo a change of a cell": 1,
    "delete a note": 1,
    "delete a file": 1,
    "delete a named text": 1,
    "run a cell and show its plot": 1,
    "run all cells": 1,
    "make a Jupyter notebook and run it": 1,
}


class Answer:
    """What a tool told: its error, or its result as an object or text, and its pictures."""

    def __init__(self, error, result, content, meta):
        self.error, self.result = error, result
        self.pictures = [(part["mimeType"], base64.b64decode(part["data"])) for part in content if part["type"] == "image"]
        self.notebook = meta.get("notegate/notebook")


def of_rest(answer):
    body = answer.json()
    meta = body.get("_meta", {})
    return Answer(None, body["result"], body.get("content", []), meta) if answer.status_code == 200 else Answer(body, None, [], meta)


def of_mcp(answer):
    assert answer.status_code == 200, answer.text
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = [line for line in text.splitlines() if line.startswith("data:")][-1].removeprefix("data:")
    result = json.loads(text)["result"]
    content, meta = result["content"], result.get("_meta", {})
    if result.get("isError"):
        return Answer(meta["notegate/error"], None, [], meta)
    shown = content[0]["text"]
    if "structuredContent" in result:
        assert json.loads(shown) == result["structuredContent"]
    return Answer(None, result.get("structuredContent", shown), content, meta)


class Agent:
    """One at a face of a gateway, who counts its calls."""

    def __init__(self, gateway, face, headers):
        self.gateway, self.face, self.headers, self.calls = gateway, face, headers, 0
        self.session = Session(gateway, headers=headers) if face == HANDSHAKE else None
        self.known = set()

    def post(self, method, **params):
        if self.session:
            return self.session.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        message, headers = modern(params, method=method)
        return self.gateway.client.post("/mcp", json=message, headers=headers | self.headers)

    def listed(self):
        """The tools of which this face tells."""
        if self.face == "rest":
            answer = self.gateway.client.get("/v1/tools", headers=self.headers).json()
        else:
            answer = self.post("tools/list").json()["result"]
        assert "nextCursor" not in answer
        return {tool["name"] for tool in answer["tools"]}

    def ask(self, tool, **arguments):
        """The answer, also a refusal, of a tool that is listed."""
        self.calls += 1
        if tool not in self.known:
            self.known = self.listed()
            assert tool in self.known, tool
        if self.face == "rest":
            return of_rest(self.gateway.call(tool, arguments, self.headers))
        return of_mcp(self.post("tools/call", name=tool, arguments=arguments))

    def call(self, tool, **arguments):
        """The answer of a call that must succeed."""
        answer = self.ask(tool, **arguments)
        assert answer.error is None, answer.error
        return answer

    @contextlib.contextmanager
    def task(self, name):
        """The calls of this block do the task."""
        before = self.calls
        yield
        assert 1 <= self.calls - before <= TASKS[name], f"{name}: {self.calls - before} calls"

    def close(self):
        if self.session:
            self.session.close()


class Place:
    """A gateway with a folder of notes and one of files."""

    def __init__(self, folder, face):
        self.face, self.agents = face, []
        self.notes, self.files = folder / "vault", folder / "project"
        self.notes.mkdir(exist_ok=True)
        self.files.mkdir(exist_ok=True)
        self.gateway = Gateway(folder / "data", [f"opennotes.notebooks={self.notes}", f"roots={self.files}"])
        self.reader = self.agent("rest")

    def agent(self, face=None, headers=None):
        """One that nobody was before, with a name of its own."""
        made = Agent(self.gateway, face or self.face, headers or {"X-Notegate-Agent": f"agent{len(self.agents)}"})
        self.agents.append(made)
        return made

    def page(self, title):
        """What an entry is now."""
        return self.reader.call("notebook_read", notebook_id=title).result

    def stop(self):
        for agent in self.agents:
            agent.close()
        assert self.gateway.stop() == 0, "".join(self.gateway.errors)


# ---- fixtures, for modules that import them ----


@pytest.fixture(scope="module", params=FACES)
def place(request, tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("day"), request.param)
    yield made
    made.stop()


@pytest.fixture
def agent(place):
    return place.agent()


@pytest.fixture
def begin(place, tmp_path):
    """begin(): a gateway for this test alone; the next one has the data of the one before."""
    made = []

    def start():
        made.append(Place(tmp_path, place.face))
        return made[-1]

    yield start
    for one in made:
        one.stop()
