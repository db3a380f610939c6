# SPDX-License-Identifier: MIT
"""The audit log tells of every refusal: foreign paths, spaces and ids, unknown tools, rates; bounded for each agent."""

import json
import os
import pathlib
import time

import pytest
from cli_support import notegate
from conftest import eventually
from keys_support import add, bearer, mcp

BOTH = ["log.access=true", "log.format=json"]
FOREIGN = "/etc/passwd"
# Arguments that each tool needs beside those that name what it works on.
NEEDED = {"string": "x", "integer": 1, "number": 1, "boolean": False, "array": ["x"], "object": {}}
PATHS = ("path", "notebook")
IDS = ("notebook_id", "checkpoint_id")


def audit(gateway, **wanted):
    """The audit lines that have these members."""
    entries = [json.loads(line) for line in list(gateway.errors) if line.startswith("{")]
    return [entry for entry in entries if entry.get("where") == "audit" and
            all(entry.get(name) == value for name, value in wanted.items())]


def told(gateway, **wanted):
    return eventually(lambda: audit(gateway, **wanted), what=f"an audit line with {wanted}")[0]


def arguments_of(tool):
    schema = tool["inputSchema"]
    given = {}
    for name in schema.get("required", []):
        of = schema["properties"][name]
        given[name] = of["enum"][0] if "enum" in of else NEEDED[of.get("type", "string")]
    return given


@pytest.fixture
def gateway(start, tmp_path):
    for name in ("notes", "root"):
        (tmp_path / name).mkdir()
    return start(sets=BOTH + [f"opennotes.notebooks={tmp_path / 'notes'}"], args=["--root", str(tmp_path / "root")])


def tools_with(gateway, headers, names):
    tools = gateway.client.get("/v1/tools", params={"format": "mcp"}, headers=headers).json()["tools"]
    found = [(tool, name) for tool in tools for name in names if name in tool["inputSchema"]["properties"]]
    assert found
    return found


def test_foreign_paths(gateway):
    headers = bearer(add(gateway.data_dir, "prober", "--run"))
    probes = [(tool, name) for tool, name in tools_with(gateway, headers, PATHS)
              if not (tool["name"].startswith("opennotes") and name == "notebook")]
    for number, (tool, name) in enumerate(probes):
        agent = f"prober{number}"  # of its own: the lines of one agent are counted together
        key = bearer(add(gateway.data_dir, agent, "--run"))
        path = FOREIGN if not tool["name"].startswith("opennotes") else "../../../etc/passwd"
        if name == "notebook":
            path = "/etc/passwd.ipynb"
        arguments = arguments_of(tool) | {name: path}
        if "command" in arguments:
            arguments["command"] = "view"
        if tool["name"] == "opennotes_edit":
            arguments["content"] = "x"
        answer = gateway.call(tool["name"], arguments, key)
        assert answer.status_code == 403, (tool["name"], answer.text)
        entry = told(gateway, agent=agent, tool=tool["name"])
        assert (entry["outcome"], entry["target"], entry["count"]) == (answer.json()["code"], path, 1)
        assert entry["remote"] == "127.0.0.1" and entry["key"]
    assert len(probes) >= 8, [tool["name"] for tool, _ in probes]


def test_a_link_out_of_the_roots(gateway, tmp_path):
    headers = bearer(add(gateway.data_dir, "linker"))
    os.symlink("/etc", tmp_path / "root" / "link")
    answer = gateway.call("fileEditor", {"command": "view", "path": str(tmp_path / "root" / "link" / "passwd")}, headers)
    assert answer.status_code == 403, answer.text
    entry = told(gateway, agent="linker")
    assert (entry["outcome"], entry["target"]) == (answer.json()["code"], str(tmp_path / "root" / "link" / "passwd"))


def test_a_hard_link_into_the_data_directory(gateway, tmp_path):
    headers = bearer(add(gateway.data_dir, "linker"))
    kept = next(path for path in pathlib.Path(gateway.data_dir).iterdir() if path.is_file() and path.stat().st_size > 0)
    os.link(kept, tmp_path / "root" / "name")
    answer = gateway.call("fileEditor", {"command": "view", "path": str(tmp_path / "root" / "name")}, headers)
    assert answer.status_code == 403, answer.text
    entry = told(gateway, agent="linker")
    assert (entry["outcome"], entry["target"]) == (answer.json()["code"], str(tmp_path / "root" / "name"))


def test_rights(gateway):
    """To run code, and to use a tool at all."""
    asked = {"runner": ("runNotebookCells", {"cellIds": ["a"]}, [], "RUN_FORBIDDEN"),
             "stranger": ("fileEditor", {"command": "view", "path": "/x"}, ["--tool", "notebook"], "FORBIDDEN")}
    for agent, (tool, arguments, options, outcome) in asked.items():
        answer = gateway.call(tool, arguments, bearer(add(gateway.data_dir, agent, *options)))
        assert (answer.status_code, answer.json()["code"]) == (403, outcome)
        entry = told(gateway, agent=agent)
        assert (entry["tool"], entry["outcome"]) == (tool, outcome) and entry["key"] and entry["remote"] == "127.0.0.1"


def test_foreign_spaces(gateway):
    for number, (tool, _) in enumerate(tools_with(gateway, {}, PATHS + IDS + ("mode",))[:12]):
        agent = f"spacer{number}"
        headers = bearer(add(gateway.data_dir, agent, "--space", "mine", "--run")) | {"X-Notegate-Space": "theirs"}
        answer = gateway.call(tool["name"], arguments_of(tool), headers)
        assert answer.status_code == 403, answer.text
        entry = told(gateway, agent=agent)
        assert (entry["outcome"], entry["event"]) == ("FORBIDDEN", "refused")
        assert tool["name"] in entry["target"]


def test_foreign_ids(gateway):
    owner = bearer(add(gateway.data_dir, "owner", "--space", "theirs"))
    made = gateway.call("notebook_create", {"collection": "pages", "title": "t", "content": "c"}, owner)
    assert made.status_code == 200, made.text
    ids = {"notebook_id": made.json()["result"]["notebook_id"]}
    saved = gateway.call("checkpoint_snapshot", {}, owner)
    assert saved.status_code == 200, saved.text
    ids["checkpoint_id"] = saved.json()["result"]["checkpoint_id"]
    for number, (tool, name) in enumerate(tools_with(gateway, owner, IDS)):
        agent = f"guesser{number}"
        arguments = arguments_of(tool) | {name: ids[name]}
        if "collection" in arguments:
            arguments["collection"] = "pages"
        if tool["name"] == "notebook_update":
            arguments["content"] = "x"
        answer = gateway.call(tool["name"], arguments, bearer(add(gateway.data_dir, agent, "--space", "mine")))
        assert answer.status_code == 404, (tool["name"], answer.text)
        entry = told(gateway, agent=agent)
        assert (entry["tool"], entry["outcome"], entry["target"]) == (tool["name"], answer.json()["code"], ids[name])
        assert entry["space"] == "mine"


def test_unknown_tools(gateway):
    key = add(gateway.data_dir, "asker")
    assert gateway.call("no_such_tool", {}, bearer(key)).status_code == 404
    assert told(gateway, agent="asker", outcome="UNKNOWN_TOOL")["tool"] == "no_such_tool"
    assert "error" in mcp(gateway, key, "tools/call", {"name": "odd name"}).json()
    assert gateway.stop() == 0
    assert audit(gateway, agent="asker", outcome="UNKNOWN_TOOL")[-1]["tool"] == "odd name"


def test_resources_and_prompts(gateway):
    for number, uri in enumerate(("file:///etc/passwd", "notegate://theirs/page/0123456789abcdef")):
        key = add(gateway.data_dir, f"reader{number}", "--space", "mine")
        answer = mcp(gateway, key, "resources/read", {"uri": uri}, Mcp_Name=uri)
        assert "error" in answer.json(), answer.text
        entry = told(gateway, agent=f"reader{number}")
        assert (entry["method"], entry["target"]) == ("resources/read", uri) and entry["outcome"] != "ok"
    key = add(gateway.data_dir, "prompter")
    assert "error" in mcp(gateway, key, "prompts/get", {"name": "none"}).json()
    assert told(gateway, agent="prompter")["method"] == "prompts/get"


def test_rates(gateway):
    headers = bearer(add(gateway.data_dir, "hasty", "--rate", "1/m"))
    codes = [gateway.call("notebook", {"mode": "list"}, headers).status_code for _ in range(20)]
    assert codes.count(429) >= 18
    told(gateway, agent="hasty", outcome="RATE_LIMITED")
    assert gateway.stop() == 0
    entries = audit(gateway, agent="hasty", outcome="RATE_LIMITED")
    assert sum(entry["count"] for entry in entries) == codes.count(429) and len(entries) < codes.count(429)


def test_a_flood_is_counted_and_told_at_the_stop(gateway):
    headers = bearer(add(gateway.data_dir, "flood"))
    began = time.monotonic()
    for number in range(200):
        assert gateway.call("fileEditor", {"command": "view", "path": f"/etc/{number}"}, headers).status_code == 403
    seconds = time.monotonic() - began
    assert gateway.stop() == 0
    entries = audit(gateway, agent="flood")
    # One a second, the first one, and that of the stop.
    assert sum(entry["count"] for entry in entries) == 200 and len(entries) <= seconds + 2
    assert entries[-1]["target"] == "/etc/199" and entries[-1]["tool"] == "fileEditor"
    assert all(entry["key"] == entries[0]["key"] and entry["remote"] == "127.0.0.1" for entry in entries)


def test_a_flood_of_foreign_headers(gateway):
    """Requests that are refused before there is a call."""
    headers = bearer(add(gateway.data_dir, "header", "--space", "mine")) | {"X-Notegate-Space": "theirs"}
    began = time.monotonic()
    for number in range(100):
        assert gateway.client.get(f"/v1/tools/{number}", headers=headers).status_code == 403
    seconds = time.monotonic() - began
    assert gateway.stop() == 0
    entries = audit(gateway, agent="header")
    assert sum(entry["count"] for entry in entries) == 100 and len(entries) <= seconds + 2
    assert {(entry["event"], entry["outcome"], entry["key"]) for entry in entries} == {("refused", "FORBIDDEN", entries[0]["key"])}
    assert entries[-1]["target"] == "/v1/tools/99" and entries[-1]["remote"] == "127.0.0.1"


def test_reads_are_told_where_wanted(start):
    gateway = start(sets=BOTH + ["log.audit=reads"])
    assert gateway.call("notebook", {"mode": "list"}, {"X-Request-Id": "one"}).status_code == 200
    assert told(gateway, request_id="one")["outcome"] == "ok"
    made = gateway.call("notebook_create", {"collection": "pages", "title": "t", "content": "c"})
    ident = made.json()["result"]["notebook_id"]
    headers = {"X-Request-Id": "two"}
    assert gateway.call("notebook_read", {"collection": "pages", "notebook_id": ident}, headers).status_code == 200
    entry = told(gateway, request_id="two")
    assert (entry["target"], entry["agent"]) == (ident, "local")
    uri = f"notegate://shared/pages/{ident}"
    assert "result" in mcp(gateway, None, "resources/read", {"uri": uri}, Mcp_Name=uri).json()
    assert told(gateway, method="resources/read")["target"] == uri
    wrong = notegate("check", "--set", "log.audit=writes")
    assert wrong.returncode == 1 and "reads" in wrong.stdout + wrong.stderr


def test_the_space_is_the_documents(start, tmp_path):
    (tmp_path / "notes").mkdir()
    gateway = start(sets=BOTH + [f"opennotes.notebooks=team:{tmp_path / 'notes'}"])
    headers = bearer(add(gateway.data_dir, "ann", "--space", "shared", "--space", "team"))
    made = gateway.call("opennotes_create", {"title": "a note"}, headers)
    assert made.status_code == 200, made.text
    assert told(gateway, tool="opennotes_create", outcome="ok")["space"] == "team"


def test_access_lines_name_method_and_tool(gateway):
    key = add(gateway.data_dir, "caller")
    mcp(gateway, key, "tools/call", {"name": "notebook", "arguments": {"mode": "list"}})
    mcp(gateway, key, "tools/list", {})

    def lines(method):
        entries = [json.loads(line) for line in list(gateway.errors) if line.startswith("{")]
        return [entry for entry in entries if entry.get("where") == "access" and entry.get("mcp_method") == method]

    called = eventually(lambda: lines("tools/call"))[0]
    assert (called["tool"], called["path"], called["agent"]) == ("notebook", "/mcp", "caller")
    assert "tool" not in eventually(lambda: lines("tools/list"))[0]


def test_more_agents_than_are_counted_at_once(start):
    gateway = start(sets=BOTH + ["log.audit=true"])
    agents = [f"agent{number}" for number in range(100)]
    for _ in range(2):
        for agent in agents:
            assert gateway.call("no_such_tool", {}, {"X-Notegate-Agent": agent}).status_code == 404
    assert gateway.stop() == 0
    counts = {agent: sum(entry["count"] for entry in audit(gateway, agent=agent)) for agent in agents}
    assert counts == dict.fromkeys(agents, 2)
