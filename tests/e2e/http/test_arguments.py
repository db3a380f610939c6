# SPDX-License-Identifier: MIT
"""Arguments as clients write them: null for what is not given, the text of a value for the value, members of their own. The same for
every tool, over every transport."""

import json
import pathlib

import pytest
from cells_tools_support import code
from cli_support import notegate
from conftest import Gateway, environment
from mcp_support import Lines, Session, call, modern
from odd import odd_plugins

ADDED = {"toolCallId": "c", "sessionId": "s", "action": {"x": 1}, "chatInput": "hello", "task_progress": "- [ ] one"}
NOTEBOOK = {"cells": [code("c1", "1")], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


# ---- transports: what a call answers, as (is it an error, text) ----


class Rest:
    def __init__(self, gateway):
        self.gateway = gateway

    def call(self, tool, arguments):
        answer = self.gateway.call(tool, arguments)
        body = answer.json()
        told = body.get("message") or body["result"]
        return answer.status_code >= 400, told if isinstance(told, str) else json.dumps(told)

    def close(self):
        pass


def of_result(message):
    """The answer of tools/call, whichever era."""
    if "error" in message:
        return True, message["error"]["message"]
    return message["result"].get("isError", False), message["result"]["content"][0]["text"]


class Handshake:
    def __init__(self, gateway):
        self.session = Session(gateway)

    def call(self, tool, arguments):
        return of_result(json_of(self.session.post(call(tool, arguments))))

    def close(self):
        self.session.close()


class Modern:
    def __init__(self, gateway):
        self.client = gateway.client

    def call(self, tool, arguments):
        message, headers = modern({"name": tool, "arguments": arguments})
        return of_result(json_of(self.client.post("/mcp", json=message, headers=headers)))

    def close(self):
        pass


def served(gateway):
    return (str(gateway.data_dir),)


def alone(gateway):
    """The same documents in a data directory that no gateway serves."""
    return str(gateway.data_dir.parent / "alone"), "--set", gateway.plugins


class Stdio:
    def __init__(self, gateway, where=served):
        data_dir, *flags = where(gateway)
        self.lines = Lines(pathlib.Path(data_dir), *flags)
        self.lines.initialize()

    def call(self, tool, arguments):
        self.lines.send(call(tool, arguments, number=7))
        while (message := self.lines.next()).get("id") != 7:
            pass
        return of_result(message)

    def close(self):
        assert self.lines.end() == 0


class OwnStdio(Stdio):
    def __init__(self, gateway):
        super().__init__(gateway, alone)


class CommandLine:
    def __init__(self, gateway, where=served):
        self.words = "call", "--data-dir", *where(gateway)

    def call(self, tool, arguments):
        done = notegate(*self.words, tool, "-", stdin=json.dumps(arguments), env=environment())
        return done.returncode != 0, done.stderr or done.stdout

    def close(self):
        pass


class OwnCommandLine(CommandLine):
    def __init__(self, gateway):
        super().__init__(gateway, alone)


def json_of(answer):
    """The message of an answer, which may be a stream of one."""
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")][-1]
    return json.loads(text)


TRANSPORTS = {"rest": Rest, "handshake": Handshake, "modern": Modern, "stdio": Stdio, "command line": CommandLine,
              "own stdio": OwnStdio, "own command line": OwnCommandLine}


@pytest.fixture(scope="module")
def every_tool(tmp_path_factory):
    """A gateway with modules of other makers, a folder of notes and an attached notebook, so that all tools are listed."""
    folder = tmp_path_factory.mktemp("arguments")
    running = Gateway(folder / "data", [plugins := odd_plugins(folder)])
    running.plugins = plugins
    for files in (running.data_dir / "files", folder / "alone" / "files"):
        files.mkdir(parents=True, exist_ok=True)
        (files / ".opennotes.json").write_text("{}")
        (files / "n.ipynb").write_text(json.dumps(NOTEBOOK))
    assert running.call("attachNotebook", {"notebook": "n.ipynb"}).status_code == 200
    yield running
    assert running.stop() == 0


@pytest.fixture(params=TRANSPORTS)
def transport(request, every_tool):
    made = TRANSPORTS[request.param](every_tool)
    yield made
    made.close()


# ---- the text of a value ----


def kinds(schema):
    """The types that a schema of an argument admits; None: it does not say."""
    for word in ("anyOf", "oneOf"):
        if word in schema:
            branches = [kinds(branch) for branch in schema[word]]
            return None if None in branches else set().union(*branches)
    if "enum" in schema:
        return {"string"} if any(isinstance(value, str) for value in schema["enum"]) else {"enum"}
    found = schema.get("type")
    return None if found is None else {found} if isinstance(found, str) else set(found)


def sample(schema):
    """A value of a schema."""
    if isinstance(schema, bool):
        return None
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return sample(schema[word][0])
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [sample(schema.get("items", {}))] * max(1, schema.get("minItems", 1))
        case "object":
            return {name: sample(schema["properties"][name]) for name in schema.get("required", ())}
    return "x" * max(1, schema.get("minLength", 1))


def no_texts(schema):
    """A value for each argument that cannot be a text."""
    found = {}
    for name, member in schema.get("properties", {}).items():
        admitted = kinds(member) if isinstance(member, dict) and "$ref" not in member else None
        if admitted and "string" not in admitted:
            found[name] = sample(member)
    return found


def tools_for(transport, gateway):
    """The tools to be tried, some where each call is a process."""
    listed = gateway.client.get("/v1/tools").json()["tools"]
    return listed[::4] if isinstance(transport, CommandLine) else listed


def test_a_text_of_a_value_is_the_value(every_tool, transport):
    """All at once, and one unknown argument, so that no call is made: what else is wrong is told the same."""
    tried = 0
    for tool in tools_for(transport, every_tool):
        values = no_texts(tool["inputSchema"])
        if not values or tool["inputSchema"].get("additionalProperties", True) is not False:
            continue
        refused, message = transport.call(tool["name"], {**values, "unknown~": 1})
        assert refused and "unknown~" in message, (tool["name"], message)
        assert not any(f"`{name}`" in message for name in values), message
        texts = {name: json.dumps(value) for name, value in values.items()}
        assert transport.call(tool["name"], {**texts, "unknown~": 1}) == (True, message)
        deep = {name: json.dumps([json.dumps(item) if not isinstance(item, str) else item for item in value])
                for name, value in values.items() if isinstance(value, list)}
        assert transport.call(tool["name"], {**texts, **deep, "unknown~": 1}) == (True, message)
        tried += len(values)
    assert tried > (10 if isinstance(transport, CommandLine) else 50)


CALLS = [
    ("getNotebookCells", {"notebook": "n.ipynb", "cellIds": '["c1"]'}, "c1"),
    ("notebook_list", {"limit": "5"}, ""),
    ("notebook", {"mode": "create", "name": "texts", "newStr": "5"}, ""),
    ("notebook", {"mode": "read", "name": "texts", "readRange": "[1, 1]"}, "5"),
    ("fileEditor", {"command": "view", "path": "FILES/n.ipynb", "view_range": "[1,1]"}, "cells"),
]


def test_calls_with_texts(every_tool, transport, request):
    data = every_tool.data_dir.parent / ("alone" if "own" in request.node.name else "data")
    for tool, arguments, expected in CALLS:
        if "path" in arguments:
            arguments = {**arguments, "path": arguments["path"].replace("FILES", str(data / "files"))}
        refused, text = transport.call(tool, arguments)
        assert expected in text and (not refused or "exists" in text), (tool, text)


# Tools of other makers, which answer with their arguments: as they are sent, as the tool gets them.
OTHERS = [
    ("odd_composed", {"kind": "a", "size": "5", "any": "[1]"}, {"kind": "a", "size": 5, "any": [1]}),
    ("odd_composed", {"kind": "a", "size": None, "both": None, "again": '{"inner":{"street":null}}'},
     {"kind": "a", "size": None, "again": {"inner": {}}}),
    ("odd_composed", {"kind": "a", "pair": ["x", "1.5"], "map": {"x-a": "5", "x-b": None}, **ADDED},
     {"kind": "a", "pair": ["x", 1.5], "map": {"x-a": "5"}, **ADDED}),
    ("odd_older", {"filter[id]": "5", "$top": "3", "node": '{"next":null}', "free": "5"},
     {"filter[id]": "5", "$top": 3, "node": {"next": None}, "free": "5"}),
    ("odd_mixed", {"on": "true"}, {"on": True}),
    ("odd_referred", {"n": "5", **ADDED}, {"n": 5}),
    ("odd_branched", {"n": "5", **ADDED}, {"n": 5}),
    ("odd_branched", {"on": "false", **ADDED}, {"on": False}),
    ("odd_selected", {"kind": "many", "of": "[\"1\"]", "limit": "2"}, {"kind": "many", "of": [1], "limit": 2}),
    ("odd_selected", {"kind": "one", "of": "1", "limit": None, "more": "true"}, {"kind": "one", "of": 1, "more": True}),
]


def test_tools_of_others(transport):
    for tool, sent, got in OTHERS:
        refused, text = transport.call(tool, sent)
        assert not refused and json.loads(text) == got, (tool, text)
    for tool, sent in (("odd_referred", {"n": "x"}), ("odd_referred", {"actions": 1}), ("odd_branched", {"on": "1"})):
        assert transport.call(tool, {**ADDED, **sent})[0] is True, tool


def test_all_arguments_as_one_text(every_tool):
    text = json.dumps({"notebook": "n.ipynb", "cellIds": ["c1"]})
    assert every_tool.client.post("/v1/tools/getNotebookCells", json=text).status_code == 200
    for kind in (Handshake, Modern, Stdio, OwnStdio, CommandLine, OwnCommandLine):
        transport = kind(every_tool)
        assert transport.call("getNotebookCells", text)[0] is False
        assert transport.call("getNotebookCells", "[]")[0] is True
        transport.close()
    half = json.dumps('{"notebook":"n.ipynb","cellIds":["\\ud83d"]}')
    answer = every_tool.client.post("/v1/tools/getNotebookCells", content=half, headers={"Content-Type": "application/json"})
    assert "\ufffd" in answer.text, "half a surrogate pair is a character that stands for it"
    refused = every_tool.client.post("/v1/tools/getNotebookCells", json="c1")
    assert refused.status_code == 400 and '"c1"' in refused.json()["message"]


@pytest.mark.parametrize("given", ["abc", "1.5", "", " 5", "05", "+5", "0x10", "true", "null", "[5]", "5,"])
def test_what_is_no_number_is_told_as_it_was_sent(every_tool, transport, given):
    refused, message = transport.call("notebook_list", {"limit": given})
    assert refused and "`limit`: expected an integer" in message and f"got a string {json.dumps(given)}" in message


@pytest.mark.parametrize(("tool", "arguments", "shown"), [
    ("notebook_list", {"limit": "5000000"}, "5000000"),
    ("checkpoint_restore", {"checkpoint_id": "x", "notebooks": "1"}, 'got a string "1"'),
    ("getNotebookCells", {"notebook": "n.ipynb", "cellIds": "c1"}, '(["c1"]), got a string "c1"'),
    ("getNotebookCells", {"notebook": "n.ipynb", "cellIds": "[true]"}, 'got a string "[true]"'),
    ("getNotebookCells", {"notebook": "n.ipynb", "cellIds": "[\"c1\""}, "an array"),
])
def test_what_does_not_convert_is_refused(transport, tool, arguments, shown):
    refused, message = transport.call(tool, arguments)
    assert refused and shown in message


def test_a_repeat_with_texts_is_the_same_call(gateway):
    headers = {"Idempotency-Key": "texts"}
    gateway.call("notebook", {"mode": "create", "name": "t", "newStr": "a\nb"})
    answers = [gateway.call("notebook", {"mode": "write", "name": "t", "newStr": "x", "expectedRevision": revision}, headers).json()
               for revision in (1, "1")]
    assert answers[0] == answers[1] and answers[0]["revision"] == 2


def test_a_reader_cannot_change_by_a_text(gateway):
    """The right to a call depends on its arguments as the tool gets them."""
    text = json.dumps({"mode": "list"})
    assert gateway.client.post("/v1/tools/notebook", json=text, headers={"X-Notegate-Mode": "ask"}).status_code == 200
    text = json.dumps({"mode": "create", "name": "never"})
    refused = gateway.client.post("/v1/tools/notebook", json=text, headers={"X-Notegate-Mode": "ask"})
    assert refused.status_code == 403


# ---- members that clients add ----


def test_members_that_clients_add(every_tool, transport):
    for tool in tools_for(transport, every_tool):
        if tool["inputSchema"].get("additionalProperties", True) is not False:
            continue
        own = tool["inputSchema"].get("properties", {})
        added = {name: value for name, value in ADDED.items() if name not in own}
        refused, message = transport.call(tool["name"], {**added, "actions": 1})
        assert refused and "actions" in message and not any(f'"{name}"' in message for name in added), message
    assert transport.call("notebook", {"mode": "list", **ADDED})[0] is False


def test_other_lists_of_them(tmp_path):
    running = Gateway(tmp_path / "data", ["tools.ignored_arguments=trace"])
    assert running.call("notebook", {"mode": "list", "trace": 1}).status_code == 200
    assert running.call("notebook", {"mode": "list", "sessionId": 1}).status_code == 400
    assert running.stop() == 0


def test_a_guard_that_is_misspelt_is_refused(gateway):
    gateway.call("notebook", {"mode": "create", "name": "g", "newStr": "a"})
    refused = gateway.call("notebook", {"mode": "write", "name": "g", "newStr": "b", "expectedRevison": 1, **ADDED})
    assert refused.status_code == 400 and "`expectedRevision`" not in refused.json()["message"].split("nearest")[0]


# ---- null ----


def nulls(tool, given):
    """The arguments, and null for every other property of the tool's schema."""
    return {**{name: None for name in tool["inputSchema"]["properties"]}, **given}


@pytest.fixture
def tools(gateway):
    return {tool["name"]: tool for tool in gateway.client.get("/v1/tools").json()["tools"]}


def test_null_is_not_given(gateway, tools):
    notebook = tools["notebook"]
    for given in ({"mode": "create", "name": "n", "newStr": "a\nb"}, {"mode": "read", "name": "n"}):
        answer = gateway.call("notebook", nulls(notebook, given))
        assert answer.status_code == 200, answer.text
    assert "a" in answer.json()["result"]
    missing = gateway.call("notebook", {"mode": None, "name": "n"})
    assert missing.status_code == 400 and "`mode`" in missing.json()["message"]
    entry = nulls(tools["notebook_create"], {"collection": "pages", "title": "t", "content": "c"})
    assert gateway.call("notebook_create", entry).status_code == 200
    entry["sections"] = [{"heading": "h", "content": None}]
    assert gateway.call("notebook_create", entry).status_code == 200


def test_null_in_a_map_is_not_given(every_tool, transport):
    for params in ({"status": None}, '{"status":null}'):
        refused, text = transport.call("opennotes_views", {"view": "kanban", "params": params})
        assert not refused, text
    assert "`params/status`" in transport.call("opennotes_views", {"view": "kanban", "params": {"status": 1}})[1]


def test_a_repeat_with_nulls_is_the_same_call(gateway, tools):
    headers = {"Idempotency-Key": "once"}
    write = {"mode": "write", "name": "r", "newStr": "x"}
    gateway.call("notebook", {"mode": "create", "name": "r"})
    answers = [gateway.call("notebook", arguments, headers).json() for arguments in (
        nulls(tools["notebook"], write), nulls(tools["notebook"], write))]
    assert answers[0] == answers[1] and answers[0]["revision"] == 2


def walk(schema, path=""):
    if isinstance(schema, dict):
        assert not isinstance(schema.get("type"), list), path
        for name, value in schema.items():
            walk(value, f"{path}/{name}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            walk(value, f"{path}/{index}")


def test_no_input_schema_has_a_list_of_types(tools):
    for name, tool in tools.items():
        walk(tool["inputSchema"], name)


def test_every_violation_is_in_the_sentence(gateway):
    message = gateway.call("notebook", {"mode": "fly", "readRange": "all", "colour": 1}).json()["message"]
    assert all(f"`{name}`" in message for name in ("mode", "readRange")) and "colour" in message and "; " in message
