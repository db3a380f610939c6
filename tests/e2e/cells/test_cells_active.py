# SPDX-License-Identifier: MIT
"""Which notebook a call means that names none, and which one each answer names, over REST and MCP of both protocols."""

import json

import pytest
from cells_support import need
from cells_tools_support import Handshake, code, gateway, modern, put, who  # noqa: F401 (a fixture among them)
from mcp_support import Lines

LINE = "\nNotebook: "


class Rest:
    def __init__(self, gateway, headers):
        self.gateway, self.headers = gateway, headers

    def call(self, tool, arguments):
        """The error's code, or None, the text, and `_meta`."""
        answer = self.gateway.call(tool, arguments, self.headers).json()
        return answer.get("code"), answer.get("message") or answer["result"], answer.get("_meta", {})


def mcp_answer(result):
    code = result["_meta"]["notegate/error"]["code"] if result.get("isError") else None
    return code, result["content"][0]["text"], result["_meta"]


class Session(Handshake):
    def call(self, tool, arguments):
        return mcp_answer(self.post("tools/call", {"name": tool, "arguments": arguments}).json()["result"])


class Stateless(Rest):
    def call(self, tool, arguments):
        return mcp_answer(modern(self.gateway, "tools/call", self.headers, name=tool, arguments=arguments)["result"])


TRANSPORTS = (Rest, Session, Stateless)


def succeed(caller, tool, arguments):
    failed, text, meta = caller.call(tool, arguments)
    assert failed is None, text
    return text, meta


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_each_answer_names_its_notebook(gateway, transport):
    need("python3")
    name = f"named-{transport.__name__}"
    path = put(gateway, f"{name}.ipynb", [code("a", "1 + 1"), code("b", "raise ValueError('b')"), code("c", "")])
    caller = transport(gateway, who(name))
    calls = [
        ("attachNotebook", {"notebook": f"{name}.ipynb"}), ("getNotebookCells", {}), ("getCellOutputs", {"cellId": "a"}),
        ("addNotebookCell", {"type": "code", "index": -1, "content": ""}), ("updateNotebookCell", {"cellId": "c", "content": "2"}),
        ("moveNotebookCell", {"cellId": "c", "index": 0}), ("moveNotebookCell", {"cellId": "c", "index": 0}),
        ("selectNotebookCells", {"cellIds": ["a"]}), ("runNotebookCells", {"cellIds": ["a"]}), ("getCellOutputs", {"cellId": "a"}),
        ("interruptKernel", {}), ("restartKernel", {}), ("clearCellOutputs", {}), ("deleteNotebookCells", {"cellIds": ["c"]}),
        ("detachNotebook", {}),
    ]
    for tool, arguments in calls:
        text, meta = succeed(caller, tool, arguments)
        assert text.endswith(f"{LINE}{path}") and text.count(LINE) == 1, (tool, text)
        assert meta["notegate/notebook"] == str(path)
    named = {"notebook": str(path)}
    failed, text, meta = caller.call("runNotebookCells", {**named, "cellIds": ["b"]})
    assert failed == "CELL_FAILED" and text.endswith(f"{LINE}{path}") and text.count(LINE) == 1
    assert meta["notegate/notebook"] == str(path)
    # An object has no last line.
    text, meta = succeed(caller, "getNotebookContext", named)
    assert LINE not in str(text) and meta["notegate/notebook"] == str(path)
    new = path.with_name(f"new-{name}.ipynb")
    text, meta = succeed(caller, "createNotebook", {"notebook": new.name})
    assert text.endswith(f"{LINE}{new}") and meta["notegate/notebook"] == str(new)


def test_background_runs_name_their_notebook(gateway):
    need("python3")
    path = put(gateway, "background.ipynb", [code("a", "1"), code("b", "raise ValueError('b')")])
    caller = Rest(gateway, who("background"))
    for cell, failure in (("a", None), ("b", "CELL_FAILED")):
        text, meta = succeed(caller, "runNotebookCells", {"notebook": str(path), "cellIds": [cell], "background": True})
        assert text.endswith(f"{LINE}{path}") and meta["notegate/notebook"] == str(path)
        run = text.split("Run: ")[1].split()[0]
        failed, text, meta = caller.call("getNotebookRun", {"run": run})
        while f"Run {run} is" in text:
            assert text.endswith(f"{LINE}{path}") and meta["notegate/notebook"] == str(path)
            failed, text, meta = caller.call("getNotebookRun", {"run": run})
        assert failed == failure and text.endswith(f"{LINE}{path}") and text.count(LINE) == 1, text
        assert meta["notegate/notebook"] == str(path)


def test_a_repeated_request_names_its_notebook(gateway):
    path = put(gateway, "repeated.ipynb", [code("a", "1")])
    headers = who("repeated", **{"Idempotency-Key": "one"})
    change = {"notebook": "repeated.ipynb", "type": "code", "index": -1, "content": "2"}
    first = gateway.call("addNotebookCell", change, headers).json()
    assert first["_meta"] == {"notegate/notebook": str(path)}
    assert gateway.call("addNotebookCell", change, headers).json() == first


def test_two_sessions_of_an_agent(gateway):
    """Each has the notebook that it attached, also for its prompts; calls without a session have another."""
    for name in ("one", "two", "three"):
        put(gateway, f"{name}.ipynb", [code(name, "1")])
    one, two, rest = (transport(gateway, who("both")) for transport in (Session, Session, Rest))
    succeed(one, "attachNotebook", {"notebook": "one.ipynb"})
    assert "updateNotebookCell" in one.listed() and "updateNotebookCell" not in two.listed()
    assert two.call("getNotebookCells", {})[0] == rest.call("getNotebookCells", {})[0] == "NO_ACTIVE_NOTEBOOK"
    succeed(two, "attachNotebook", {"notebook": "two.ipynb"})
    succeed(rest, "attachNotebook", {"notebook": "three.ipynb"})
    for caller, name in ((one, "one"), (two, "two"), (rest, "three")):
        assert f"ID: {name}" in succeed(caller, "getNotebookCells", {})[0]
    for caller, name in ((one, "one"), (two, "two")):
        succeed(caller, "updateNotebookCell", {"cellId": name, "content": "2"})
        prompt = caller.post("prompts/get", {"name": "notebook-mode-agent"}).json()["result"]
        assert f"{name}.ipynb" in prompt["messages"][0]["content"]["text"]


@pytest.mark.parametrize("transport", [Rest, Stateless])
def test_several_attached_without_a_session(gateway, transport):
    agent = f"several-{transport.__name__}"
    paths = [put(gateway, f"{agent}-{number}.ipynb", [code("c", "1")]) for number in range(2)]
    caller = transport(gateway, who(agent))
    for path in paths:
        succeed(caller, "attachNotebook", {"notebook": str(path)})
    failed, text, _ = caller.call("updateNotebookCell", {"cellId": "c", "content": "2"})
    assert failed == "NOTEBOOK_AMBIGUOUS" and all(str(path) in text for path in paths)
    if transport is Rest:
        assert gateway.call("updateNotebookCell", {"cellId": "c", "content": "2"}, who(agent)).status_code == 400
    assert succeed(caller, "getNotebookCells", {})[0].endswith(f"{LINE}{paths[1]}")
    succeed(caller, "detachNotebook", {"notebook": str(paths[0])})
    succeed(caller, "updateNotebookCell", {"cellId": "c", "content": "2"})


def test_a_connection_over_stdio_is_a_session(tmp_path, gateway):
    """One of its own process, and one that is relayed to a gateway: two clients of an agent have a notebook each."""
    def told(lines, tool, arguments):
        lines.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        return mcp_answer(lines.answer(7)["result"])

    own = tmp_path / "own"
    (own / "files").mkdir(parents=True)
    for data_dir in (own, gateway.data_dir):
        for name in ("x", "y"):
            (data_dir / "files" / f"stdio-{name}.ipynb").write_text(
                json.dumps({"cells": [code(name, "1")], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        clients = [Lines(data_dir) for _ in range(2)]
        for lines, name in zip(clients, ("x", "y")):
            lines.initialize()
            assert told(lines, "getNotebookCells", {})[0] == "NO_ACTIVE_NOTEBOOK"
            assert told(lines, "attachNotebook", {"notebook": f"stdio-{name}.ipynb"})[0] is None
        for lines, name in zip(clients, ("x", "y")):
            failed, text, meta = told(lines, "updateNotebookCell", {"cellId": name, "content": "2"})
            assert failed is None and meta["notegate/notebook"] == str(data_dir / "files" / f"stdio-{name}.ipynb"), text
        for lines in reversed(clients):
            assert lines.end() == 0
