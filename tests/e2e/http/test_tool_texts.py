# SPDX-License-Identifier: MIT
"""Tools say which kind of notebook they are for, describe every argument and refuse others; a plugin without anything to
work on lists no tools."""

import fnmatch
import json
import os
import pty
import re
import subprocess

import pytest
from cli_support import BINARY, environment
from cli_support import notegate as run
from conftest import SOURCE, Gateway
from mcp_support import HANDSHAKE, MODERN
from vendors import subschemas

NOTES = "opennotes_"
FORMS = ("mcp", "openai", "openai-responses", "anthropic", "gemini")
KINDS = {
    "notebook": "named text notebooks", "notebook_": "agents' notebook", "memory_": "agents' shared memory",
    "checkpoint_": "agents' shared memory", NOTES: "Markdown note", "fileEditor": "text files", "search": "everything",
    "history_": "the history",
    "": "Jupyter notebook"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "root" / "notes").mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def served(tmp_path, folder):
    running = Gateway(tmp_path / "data", (f"roots={folder}",))
    yield running
    assert running.stop() == 0


def tools_of(running, form="mcp"):
    answer = running.client.get("/v1/tools", params={"format": form})
    assert answer.status_code == 200
    return answer.json()


@pytest.fixture
def tools(served, folder):
    (folder / "notes" / ".opennotes.json").write_text("{}")
    assert served.call(NOTES + "list", {}).status_code == 200
    assert served.call("createNotebook", {"notebook": str(folder / "a.ipynb")}).status_code == 200
    assert served.call("attachNotebook", {"notebook": str(folder / "a.ipynb")}).status_code == 200
    found = {tool["name"]: tool for tool in tools_of(served)["tools"]}
    assert {"selectNotebookCells", "restartKernel", "runNotebookCells"} <= set(found), "listed once a notebook is attached"
    return found


def kind_of(name):
    return KINDS.get(name) or next(text for start, text in KINDS.items() if start in ("", name[:name.find("_") + 1] or "-"))


def test_the_first_sentence_names_the_kind_and_the_occasion(tools):
    without = []
    for name, tool in tools.items():
        first = tool["description"].split("\n")[0].split(". ")[0]
        assert kind_of(name) in first or (NOTES in name and "Markdown note" in first), (name, first)
        if not re.search(r"\b(when|before|for|to)\b", first):
            without.append((name, first))
        assert len(first) < 200, (name, first)
    assert not without, "\n".join(map(str, without))


def test_no_text_speaks_of_a_context(tools):
    """The notebook that is meant without `notebook` is told; there is no other state that a model could know."""
    assert len(tools) > 30
    for name, tool in tools.items():
        assert "current context" not in json.dumps(tool), name


def members(schema, path):
    if isinstance(schema, dict):
        if "properties" in schema:
            assert schema.get("additionalProperties") is False, f"{path} takes unknown members"
        for name, member in schema.get("properties", {}).items():
            assert member.get("description"), f"{path}.{name} has no description"
            members(member, f"{path}.{name}")
        for name in ("items", "additionalProperties"):
            members(schema.get(name), f"{path}[]")
        for name in ("anyOf", "oneOf", "prefixItems"):
            for part in schema.get(name, ()):
                members(part, path)


def test_every_member_is_described_and_no_other_is_taken(served, tools):
    for name, tool in tools.items():
        members(tool["inputSchema"], name)
        answer = served.call(name, {"no_such_member": 1})
        assert answer.status_code == 400, (name, answer.text)
        assert "no_such_member" in answer.json()["message"], (name, answer.text)


# What every model vendor takes; a description of OpenAI's functions has 1,024 characters at most.
KEYWORDS = {
    "type", "description", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "format", "minimum",
    "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern", "default"}
DESCRIPTION_MAX = 1024
SCHEMAS = ("inputSchema", "outputSchema", "input_schema", "parameters", "parametersJsonSchema")


def definitions(node):
    """The definitions of tools in a list of any form."""
    if isinstance(node, list):
        for one in node:
            yield from definitions(one)
    elif isinstance(node, dict):
        if "name" in node and "description" in node:
            yield node
        else:
            for name in ("tools", "function", "functionDeclarations"):
                yield from definitions(node.get(name))


def lists(running, before):
    """Every list of tools, by the way that gives it; those of sessions after these calls."""
    for form in FORMS:
        yield f"REST {form}", tools_of(running, form)
        printed = notegate("tools", "--format", form, "--data-dir", running.data_dir)
        assert printed.returncode == 0, printed.stderr
        yield f"command {form}", json.loads(printed.stdout)
    for version in (HANDSHAKE, "2025-06-18", MODERN):
        yield f"MCP {version}", mcp(running, version, "tools/list", before)


def test_no_vendor_refuses_a_list(served, folder):
    """One tool that is refused makes the whole request fail: also those that are listed later."""
    before = {tool["name"] for tool in tools_of(served)["tools"]}
    (folder / "notes" / ".opennotes.json").write_text("{}")
    assert served.call(NOTES + "list", {}).status_code == 200
    assert served.call("createNotebook", {"notebook": str(folder / "a.ipynb")}).status_code == 200
    assert served.call("attachNotebook", {"notebook": str(folder / "a.ipynb")}).status_code == 200
    faults = []
    for way, told in lists(served, [("attachNotebook", {"notebook": str(folder / "a.ipynb")})]):
        found = list(definitions(told))
        assert {tool["name"] for tool in found} >= before | {"runNotebookCells", NOTES + "search"}, way
        for tool in found:
            length = len(tool["description"])
            faults += [f"{way}: {tool['name']} has {length} characters"] * (length > DESCRIPTION_MAX)
            for schema in SCHEMAS:
                for part, _ in subschemas(tool.get(schema)):
                    faults += [f"{way}: {tool['name']} has {name}" for name in part.keys() - KEYWORDS]
                    faults += [f"{way}: {tool['name']} describes at length"] * (len(part.get("description", "")) > DESCRIPTION_MAX)
    assert not faults, "\n".join(sorted(set(faults)))


def test_what_no_schema_says_the_tool_says(served, folder):
    (folder / "notes" / ".opennotes.json").write_text("{}")
    many = {f"k{number}": 1 for number in range(201)}
    for name, arguments in (("create", {"title": "t"}), ("edit", {"path": "t.md", "operation": "set"})):
        refused = served.call(NOTES + name, {**arguments, "data": many})
        assert refused.status_code == 400 and "201" in refused.json()["message"], refused.text
        assert "200" in refused.json()["message"]
        most = dict(list(many.items())[1:])
        assert served.call(NOTES + name, {**arguments, "data": most}).status_code == 200
    assert served.call("createNotebook", {"notebook": str(folder / "a.ipynb")}).status_code == 200
    assert served.call("attachNotebook", {"notebook": str(folder / "a.ipynb")}).status_code == 200
    cell = re.search(r'"id": ?"([^"]+)"', (folder / "a.ipynb").read_text()).group(1)
    for timeout in (0, -1, 0.0, -0.5):
        refused = served.call("runNotebookCells", {"cellIds": [cell], "timeout": timeout})
        assert refused.status_code == 400 and refused.json()["code"] == "INVALID_INPUT", refused.text
        assert "timeout" in refused.json()["message"]


EVERY_TOOL = {
    "notebook", "fileEditor", "runNotebookCells", "addNotebookCell", "updateNotebookCell", "getNotebookCells", "getCellOutputs",
    "attachNotebook", "detachNotebook", "selectNotebookCells", "getNotebookContext", "createNotebook", "deleteNotebookCells",
    "moveNotebookCell", "clearCellOutputs", "getNotebookRun", "interruptKernel", "restartKernel", "listKernels",
    "listNotebooks", "search"}
EVERY_TOOL |= {NOTES + name for name in ("search", "list", "get", "create", "edit", "daily", "views", "links", "tags", "notebooks")}
EVERY_TOOL |= {"notebook_" + name for name in ("create", "read", "update", "search", "list", "delete", "history", "diff", "restore")}
EVERY_TOOL |= {"memory_" + name for name in ("log", "delete", "recall", "timeline", "summary")}
EVERY_TOOL |= {"checkpoint_" + name for name in ("snapshot", "list", "diff", "restore", "delete")}
# Calls that fail with words of what else could be done.
FAILURES = [
    ("notebook_read", {"collection": "pages", "notebook_id": "{gone}"}), ("notebook_read", {"collection": "pages", "notebook_id": "never"}),
    ("notebook_diff", {"collection": "pages", "notebook_id": "{page}", "from": 7, "to": 8}),
    ("notebook_update", {"collection": "pages", "notebook_id": "{page}", "edits": [{"old_str": "none", "new_str": ""}]}),
    ("notebook_update", {"collection": "pages", "notebook_id": "{page}", "section": "none", "content": ""}),
    ("notebook_read", {"notebook_id": "never"}), ("memory_delete", {"id": "none"}),
    ("checkpoint_restore", {"checkpoint_id": "none"}), ("checkpoint_diff", {"checkpoint_id": "none"}),
    ("getNotebookCells", {"cellIds": ["none"]}), ("getNotebookCells", {"notebook": "a.ipynb", "cellIds": ["none"]}),
    ("runNotebookCells", {"notebook": "a.ipynb", "cellIds": ["none"]}), ("getNotebookRun", {"run": "none"}),
    ("addNotebookCell", {"type": "code", "index": 0, "content": ""}), ("createNotebook", {"notebook": "b.ipynb", "kernel": "none"}),
    (NOTES + "get", {"path": "none.md"}), (NOTES + "get", {"path": "note.md", "section": "none"}),
    (NOTES + "create", {"title": "note", "content": ""}), (NOTES + "edit", {"path": "broken.md", "operation": "set", "data": {"k": 1}}),
    (NOTES + "edit", {"path": "note.md", "operation": "replace_section", "section": "none", "content": ""}),
    (NOTES + "edit", {"path": "note.md", "operation": "append", "section": "none", "content": "x"}),
    (NOTES + "edit", {"path": "note.md", "operation": "str_replace", "oldStr": "none", "newStr": ""}),
    (NOTES + "edit", {"path": "note.md", "operation": "undo"}), (NOTES + "daily", {"section": "none"}),
    (NOTES + "search", {"sql": "SELECT md_extract_sections(content) FROM read_markdown('**/*.md')"}), (NOTES + "views", {"view": "none"}),
    ("fileEditor", {"command": "view", "path": "none"}), ("fileEditor", {"command": "undo_edit", "path": "{files}/note.md"}),
    ("search", {"query": "x", "kinds": ["none"]}), ("search", {"query": "x", "cursor": "none"}),
    ("notebook", {"mode": "read", "name": "none"}), ("notbook", {}), ("notebook_lst", {}),
]
CALLERS = {"all": {}, "ask": {"X-Notegate-Mode": "ask"}, "edit": {"X-Notegate-Mode": "edit"}}
CALLERS |= {plugin: {"plugins": plugin} for plugin in ("notebook", "file_editor", "cells", "opennotes", "agent_notebook", "search")}


@pytest.mark.parametrize("caller", CALLERS)
def test_no_error_names_what_the_caller_does_not_have(tmp_path, caller):
    """The tools of other plugins, and those of another mode."""
    headers = {name: value for name, value in CALLERS[caller].items() if name != "plugins"}
    running = Gateway(tmp_path / "data", [f"plugins={CALLERS[caller]['plugins']}"] if "plugins" in CALLERS[caller] else [])
    files = running.data_dir / "files"
    (files / ".opennotes.json").write_text("{}")
    (files / "note.md").write_text("# note\n")
    (files / "broken.md").write_text("---\ntitle: a: b\n---\n")
    (files / "a.ipynb").write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    made = [running.call("notebook_create", {"collection": "pages", "title": "t", "content": "c"}).json() for _ in range(2)]
    names = {"{files}": str(files)}
    if "result" in made[0]:
        names |= {"{page}": made[0]["result"]["notebook_id"], "{gone}": made[1]["result"]["notebook_id"]}
        running.call("notebook_delete", {"collection": "pages", "notebook_id": names["{gone}"]})
    running.call(NOTES + "list", {})
    # A definition can be read of every tool that may be called, listed or not.
    has = {name for name in EVERY_TOOL if running.client.get(f"/v1/tools/{name}", headers=headers).status_code == 200}
    assert has and (has == EVERY_TOOL) == (caller == "all")
    tried, faults = 0, []
    for tool, arguments in FAILURES:
        text = json.dumps(arguments)
        for name, value in names.items():
            text = text.replace(name, value)
        answer = running.call(tool, json.loads(text), headers)
        body = answer.json()
        assert answer.status_code >= 400, (tool, text, body)
        said = body["message"] + "\n" + body.get("hint", "")
        for word in set(re.findall(r"\w+", said)) & EVERY_TOOL - {tool, "notebook"}:
            if word not in has:
                faults.append((tool, text, word, said))
        tried += tool in has
    assert not faults, "\n".join(map(str, faults))
    assert tried > (0 if "plugins" in CALLERS[caller] else len(FAILURES) // 3)
    assert running.stop() == 0


def mcp(running, version, method, before=()):
    """The result of one request, in a session where the version has sessions, and after these calls of tools there."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
    about = {"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"_meta": about} if version == MODERN else {}
    if version == MODERN:
        headers["Mcp-Method"] = method
    else:
        opened = running.client.post("/mcp", headers=headers, json={
            "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        assert opened.status_code == 200, opened.text
        headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
        if method == "initialize":
            return opened.json()["result"]
        for number, (tool, arguments) in enumerate(before):
            called = running.client.post("/mcp", headers=headers, json={
                "jsonrpc": "2.0", "id": f"before{number}", "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
            assert called.status_code == 200 and not called.json()["result"].get("isError"), called.text
    answer = running.client.post("/mcp", headers=headers, json={
        "jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


@pytest.mark.parametrize("version", [HANDSHAKE, "2025-06-18", MODERN])
def test_without_notes_no_tool_for_them_is_listed(served, folder, version):
    assert not [tool for tool in mcp(served, version, "tools/list")["tools"] if NOTES in tool["name"]]
    assert NOTES not in served.client.get("/openapi.json").text
    assert "/note/" not in str(mcp(served, version, "resources/templates/list"))
    for form in FORMS:
        assert NOTES not in str(tools_of(served, form)), form
    refused = served.call(NOTES + "list", {})
    assert refused.status_code == 404 and refused.json()["code"] == "NOT_CONFIGURED"
    assert "`opennotes.notebooks`" in refused.json()["hint"]
    (folder / "notes" / ".opennotes.json").write_text("{}")
    assert served.call(NOTES + "list", {}).status_code == 200
    assert len([tool for tool in mcp(served, version, "tools/list")["tools"] if NOTES in tool["name"]]) == 12
    assert "/note/" in str(mcp(served, version, "resources/templates/list"))


@pytest.mark.parametrize("version, method", [(HANDSHAKE, "initialize"), (MODERN, "server/discover")])
def test_instructions_say_which_notebook_is_for_what(served, version, method):
    text = mcp(served, version, method)["instructions"]
    for name in ("`notebook`", "`notebook_*`", "`opennotes_*`", "`attachNotebook`"):
        assert name in text


@pytest.mark.parametrize("version, method", [(HANDSHAKE, "initialize"), (MODERN, "server/discover")])
def test_the_table_of_notebooks_names_the_plugins(served, folder, version, method):
    """README's: the plugins that are on from the start, and only their tools. The instructions name the same tools."""
    (folder / "notes" / ".opennotes.json").write_text("{}")
    assert served.call(NOTES + "list", {}).status_code == 200
    table = re.search(r"^\| you have \| plugin .*?\n\n", (SOURCE / "README.md").read_text(), re.M | re.S)[0]
    rows = {plugin: tools for plugin, tools in re.findall(r"^\| [^|]+ \| `(\w+)` \| ([^|]+) \|", table, re.M)}
    text = on_a_terminal("tools", "--data-dir", served.data_dir)
    listed = {plugin: re.findall(r"^  (\w+)", tools, re.M) for plugin, tools in re.findall(r"^(\w+):\n((?:  .*\n)+)", text, re.M)}
    instructions = mcp(served, version, method)["instructions"]
    assert rows.keys() == listed.keys() and len(table.strip().splitlines()) == len(rows) + 2
    for plugin, cell in rows.items():
        patterns = re.findall(r"`([\w*]+)`", cell)
        assert [pattern for pattern in patterns if not fnmatch.filter(listed[plugin], pattern)] == [], plugin
        rest = [tool for tool in listed[plugin] if not any(fnmatch.fnmatch(tool, pattern) for pattern in patterns)]
        assert rest == [] or "and more" in cell, (plugin, rest)
        assert [pattern for pattern in patterns if f"`{pattern}`" not in instructions] == [], plugin


# ---- at the command line ----


def all_plugins():
    return {name: value for name, value in environment().items() if name != "NOTEGATE_PLUGINS"}


def notegate(*words):
    return run(*words, env=all_plugins())


def on_a_terminal(*words):
    """Output of a command whose stdout is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([BINARY, *map(str, words)], stdout=theirs, stderr=subprocess.PIPE, env=all_plugins()) as running:
        os.close(theirs)
        seen = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:
                break  # all that had it open have ended
            if not more:
                break
            seen += more
        assert running.wait(120) == 0, running.stderr.read()
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


def begun(data):
    """A data directory that a gateway has had."""
    assert notegate("call", "notebook", "mode=create", "name=plan", "newStr=text", "--data-dir", data).returncode == 0
    return data


@pytest.mark.parametrize("words", [("tools",), ("tools", "notebook"), ("call", "notebook", "--help")])
def test_looking_at_tools_makes_nothing(tmp_path, words):
    """Creates neither a missing data directory, nor a store in one that is empty or belongs to another user."""
    asked = [tmp_path / "none" / "data", tmp_path / "empty"]
    asked[1].mkdir()
    if os.geteuid() == 0:
        asked.append(tmp_path / "foreign")
        begun(asked[2])
        os.chown(asked[2], 4242, 4242)
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    for data in asked:
        done = notegate(*words, "--data-dir", data)
        assert done.returncode == 0 and "notebook" in done.stdout and done.stderr == "", done.stderr
        text = on_a_terminal(*words, "--data-dir", data)
        assert "notebook" in text
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_the_same_list_alone_and_beside_a_gateway(tmp_path):
    words = ("tools", "--data-dir", begun(tmp_path / "data"))
    alone, text = json.loads(notegate(*words).stdout), on_a_terminal(*words)
    names = [tool["name"] for tool in alone["tools"]]
    assert "notebook" in names and not [name for name in names if name.startswith(NOTES)]
    running = Gateway(tmp_path / "data")
    assert json.loads(notegate(*words).stdout) == alone == tools_of(running)
    assert on_a_terminal(*words) == text
    assert running.stop() == 0
    assert "\nnotebook:\n  notebook " in text and "\ncells:\n" in text
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  ")] == names


def test_a_pipe_has_a_tool_a_line(tmp_path):
    """In each form, with nothing else on its line: for `less` and `grep`."""
    words = ("tools", "--data-dir", begun(tmp_path / "data"))

    def printed():
        names = [tool["name"] for tool in json.loads(notegate(*words).stdout)["tools"]]
        for more in ((), ("--json",), *(("--format", form) for form in FORMS)):
            _, *lines, _ = notegate(*words, *more).stdout.splitlines()
            found = [[tool["name"] for tool in definitions(json.loads(line.removesuffix(",")))] for line in lines]
            assert found == [[name] for name in names], more
        return names

    alone = printed()
    running = Gateway(tmp_path / "data")
    assert printed() == alone
    assert running.stop() == 0


def test_notes_that_are_registered_are_listed_alone(tmp_path):
    (tmp_path / "notes").mkdir()
    done = notegate("tools", "--data-dir", begun(tmp_path / "data"), "--set", f"opennotes.notebooks={tmp_path / 'notes'}")
    assert sum(tool["name"].startswith(NOTES) for tool in json.loads(done.stdout)["tools"]) == 12


def test_the_arguments_of_one_tool(tmp_path):
    where = ("--data-dir", tmp_path / "data")
    one = notegate("tools", "notebook", *where).stdout
    assert one == notegate("call", "notebook", "--help", *where).stdout
    assert "  mode (string, required): one of create, list, search, read, write, clear, rename, delete, undo\n" in one
    assert "  insertLine (string or integer)\n" in one and "  readRange (list of integer)\n" in one
    example = one.split("Example:\n  notegate ")[1].split()
    assert notegate(*example, *where).returncode == 0
    running = Gateway(tmp_path / "data")
    assert notegate("tools", "notebook", *where).stdout == one
    assert "Did you mean" in notegate("tools", "notbook", *where).stderr
    assert running.stop() == 0
    assert json.loads(notegate("tools", "notebook", "--format", "openai", *where).stdout)["function"]["name"] == "notebook"
    wrong = notegate("tools", "notbook", *where)
    assert wrong.returncode == 1 and "`notebook`" in wrong.stderr


def test_help_and_version_are_words_too():
    assert notegate("help").stdout == notegate("--help").stdout
    assert notegate("help", "call").stdout == notegate("call", "--help").stdout
    assert notegate("version").stdout == notegate("--version").stdout
    assert "$'one\\ntwo'" in notegate("call", "--help").stdout
