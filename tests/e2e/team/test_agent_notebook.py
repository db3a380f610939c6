# SPDX-License-Identifier: MIT
"""The agent notebook as agents use it: the workflow of a document over several sessions, through REST and the MCP SDK;
nothing acknowledged is lost, whatever many clients do at once and whatever is killed."""

import asyncio
import concurrent.futures
import json
import re
import subprocess
import threading

import httpx
import pytest
from conftest import Gateway, binary, environment, eventually
from mcp import Client
from preload_support import SANITIZED, shim

CLIENTS = 32
LINES = 20
KILLS = 3 if SANITIZED else 8
TIMEOUT = 300
COLLECTIONS = ("pages", "code_snippets", "research_notes")
ARGUMENTS = {
    "notebook_create": {"collection", "title", "content", "tags", "summary"},
    "notebook_read": {"notebook_id", "collection"},
    "notebook_update": {"notebook_id", "collection", "content", "title", "tags", "summary", "status"},
    "notebook_search": {"query", "collection", "tags", "limit"},
    "notebook_list": {"collection", "limit", "status"},
    "notebook_delete": {"notebook_id", "collection"},
}
REQUIRED = {
    "notebook_create": {"collection", "title", "content"},
    "notebook_read": {"notebook_id"},
    "notebook_update": {"notebook_id"},
    "notebook_search": {"query"},
    "notebook_list": set(),
    "notebook_delete": {"notebook_id"},
}


@pytest.fixture(scope="module", params=["sqlite", "memory"])
def gateway(request, tmp_path_factory):
    made = Gateway(tmp_path_factory.mktemp("notebook") / "data", sets=[f"documents={request.param}"])
    yield made
    assert made.stop() == 0, made.errors


def done(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def go(gateway, tool, headers=None, **arguments):
    return done(gateway.call(tool, arguments, headers))


def fails(answer, status, code):
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert (body["error"], body["code"]) == (True, code), body
    return body


def space(name):
    return {"X-Notegate-Space": name}


# ---- what the tools look like ----


def test_the_tools_are_the_known_ones(gateway):
    tools = {tool["name"]: tool for tool in gateway.client.get("/v1/tools").json()["tools"]}
    for name, members in ARGUMENTS.items():
        schema = tools[name]["inputSchema"]
        assert members <= set(schema["properties"])
        assert set(schema.get("required", [])) == REQUIRED[name]
        assert tools[name]["outputSchema"]["type"] == "object"
    assert tuple(tools["notebook_create"]["inputSchema"]["properties"]["collection"]["enum"]) == COLLECTIONS
    assert tools["notebook_search"]["inputSchema"]["properties"]["limit"]["default"] == 10
    for name in ("notebook_read", "notebook_search", "notebook_list", "notebook_history", "notebook_diff"):
        assert tools[name]["annotations"]["readOnlyHint"] is True, name
    assert tools["notebook_create"]["annotations"]["destructiveHint"] is False
    assert tools["notebook_delete"]["annotations"]["destructiveHint"] is True


def test_unknown_collection_and_entry(gateway):
    wrong = fails(gateway.call("notebook_read", {"notebook_id": "x", "collection": "notes"}), 400, "INVALID_INPUT")
    assert all(name in wrong["message"] for name in COLLECTIONS)
    gone = fails(gateway.call("notebook_read", {"notebook_id": "x", "collection": "pages"}), 404, "ENTRY_NOT_FOUND")
    assert gone["details"]["notebook_id"] == "x"
    assert gone["details"]["status"] == "not_found"


# ---- a document over several sessions ----


def test_workflow_over_rest(gateway):
    percy = {"X-Notegate-Agent": "percy", **space("workflow")}
    maestro = {"X-Notegate-Agent": "maestro", **space("workflow")}
    title = "AetherSync Drone Swarm Architecture Proposal"
    content = "## Overview\n\nThis proposal outlines the distributed autonomous swarm." + " More of it." * 50
    made = go(gateway, "notebook_create", percy, collection="pages", title=title, content=content,
              tags=["aethersync", "drones", "proposal"])
    assert re.fullmatch(r"[0-9a-z]{12}", made["notebook_id"])
    assert (made["title"], made["collection"], made["status"]) == (title, "pages", "created")
    entry = {"notebook_id": made["notebook_id"], "collection": "pages"}

    # Session 2: another agent finds it by its title and summary, opens it, and goes on with it.
    listed = go(gateway, "notebook_list", maestro)
    assert [found["_id"] for found in listed["results"]] == [entry["notebook_id"]]
    shown = listed["results"][0]
    assert shown["summary"] == content[:200].strip() + "..."
    assert shown["metadata"]["tags"] == ["aethersync", "drones", "proposal"]
    assert not {"content", "code", "sections", "history"} & set(shown)
    read = go(gateway, "notebook_read", maestro, **entry)
    assert read["content"] == content
    assert read["metadata"]["created_by"] == "agent:percy"
    assert read["metadata"]["word_count"] == len(content.split())
    updated = go(gateway, "notebook_update", maestro, **entry, content=content + "\n\n## Costs\n\nsome\n",
                 status="in_progress")
    assert (updated["status"], updated["version"]) == ("updated", 2)

    # Session 3: searching shows summaries only.
    found = go(gateway, "notebook_search", percy, query="drone swarm")
    assert found["total"] == 1 and found["engine"] == "fts5"
    assert found["results"][0]["metadata"]["status"] == "in_progress"
    assert "some" not in json.dumps(found)
    read = go(gateway, "notebook_read", percy, **entry)
    assert [item["version"] for item in read["history"]] == [1, 2]
    assert [item["changed_by"] for item in read["history"]] == ["agent:percy", "agent:maestro"]
    assert [item["heading"] for item in read["sections"]] == ["Overview", "Costs"]
    assert go(gateway, "notebook_delete", percy, **entry)["status"] == "deleted"
    fails(gateway.call("notebook_read", entry, percy), 404, "ENTRY_NOT_FOUND")
    assert go(gateway, "notebook_list", percy)["total"] == 0

    # All of that is in the stream of consciousness, without the content.
    def references():
        events = go(gateway, "memory_timeline", percy, limit=50)["events"]
        return events if len(events) == 5 else None

    events = eventually(references, 60, "five references")
    assert [(event["action"], event["agent"]) for event in reversed(events)] == [
        ("created", "agent:percy"), ("opened", "agent:maestro"), ("updated", "agent:maestro"),
        ("opened", "agent:percy"), ("deleted", "agent:percy")]
    assert all(event["notebook_id"] == entry["notebook_id"] for event in events)
    assert all(event["type"] == "notebook_ref" and len(event["summary"]) <= 200 for event in events)
    assert "Costs" not in json.dumps(events)


def test_workflow_over_mcp(gateway):
    async def work():
        async with Client(f"{gateway.url}/mcp", read_timeout_seconds=TIMEOUT) as client:
            made = await client.call_tool("notebook_create", {
                "collection": "code_snippets", "title": "Loop", "content": "for x in y:\n    pass\n",
                "language": "python"})
            assert not made.is_error
            entry = {"notebook_id": made.structured_content["notebook_id"], "collection": "code_snippets"}
            read = await client.call_tool("notebook_read", entry)
            assert read.structured_content["code"] == read.structured_content["content"]
            assert read.structured_content["language"] == "python"
            changed = await client.call_tool("notebook_update", {
                **entry, "edits": [{"old_str": "pass", "new_str": "print(x)"}]})
            assert changed.structured_content["version"] == 2
            wrong = await client.call_tool("notebook_update", {
                **entry, "edits": [{"old_str": "never", "new_str": ""}]})
            assert wrong.is_error
            assert "not in the entry" in wrong.content[0].text
            diff = await client.call_tool("notebook_diff", {**entry, "from": 1})
            assert "-    pass\n+    print(x)\n" in diff.structured_content["diff"]
            uri = f"notegate://shared/code_snippets/{entry['notebook_id']}"
            resources = await client.list_resources()
            assert uri in {str(resource.uri) for resource in resources.resources}
            whole = await client.read_resource(uri)
            assert whole.contents[0].text == "for x in y:\n    print(x)\n"
            earlier = await client.read_resource(f"{uri}?revision=1")
            assert earlier.contents[0].text == "for x in y:\n    pass\n"
            prompt = await client.get_prompt("agent_notebook_guide")
            assert "expected_version" in prompt.messages[0].content.text

    asyncio.run(work())


def test_history_diff_restore(gateway):
    where = space("versions")
    made = go(gateway, "notebook_create", where, collection="research_notes", title="N", content="one\ntwo\n")
    entry = {"notebook_id": made["notebook_id"], "collection": "research_notes"}
    go(gateway, "notebook_update", where, **entry, content="one\n2\n")
    stale = fails(gateway.call("notebook_update", {**entry, "content": "x", "expected_version": 1}, where), 409,
                  "CONFLICT")
    assert stale["details"]["current_version"] == 2
    assert go(gateway, "notebook_delete", where, **entry)["status"] == "deleted"
    history = go(gateway, "notebook_history", where, **entry)
    assert [item["action"] for item in history["history"]] == ["deleted", "updated", "created"]
    back = go(gateway, "notebook_restore", where, **entry, version=1)
    assert (back["version"], back["restored_from"]) == (4, 1)
    assert go(gateway, "notebook_read", where, **entry)["content"] == "one\ntwo\n"
    diff = go(gateway, "notebook_diff", where, **entry, **{"from": 2, "to": 4})
    assert "-2\n+two\n" in diff["diff"]


def test_readers_only_read(tmp_path):
    data = tmp_path / "data"
    key = subprocess.run([binary(), "key", "add", "ada", "--role", "reader", "--data-dir", str(data)], check=True,
                         capture_output=True, text=True, timeout=60, env=environment()).stdout.split()[0]
    gateway = Gateway(data)
    try:
        reader = {"Authorization": f"Bearer {key}"}
        assert go(gateway, "notebook_list", reader)["total"] == 0
        assert go(gateway, "notebook_search", reader, query="x")["results"] == []
        create = {"collection": "pages", "title": "T", "content": "c"}
        fails(gateway.call("notebook_create", create, reader), 403, "FORBIDDEN")
        for tool, more in (("notebook_update", {}), ("notebook_delete", {}), ("notebook_restore", {"version": 1})):
            entry = {"notebook_id": "x", "collection": "pages", **more}
            fails(gateway.call(tool, entry, reader), 403, "FORBIDDEN")
    finally:
        assert gateway.stop() == 0


# ---- nothing is lost ----


def test_many_clients_append_to_one_entry(gateway):
    where = space("crowd")
    made = go(gateway, "notebook_create", where, collection="pages", title="Log", content="")
    entry = {"notebook_id": made["notebook_id"], "collection": "pages"}

    def client(number):
        headers = {"X-Notegate-Agent": f"agent{number}", **where}
        versions = []
        with httpx.Client(base_url=gateway.url, timeout=TIMEOUT, trust_env=False) as http:
            for line in range(LINES):
                answer = http.post("/v1/tools/notebook_update", headers=headers,
                                   json={**entry, "append": f"client {number} line {line}\n"})
                versions.append(done(answer)["version"])
        return versions

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        versions = [version for made in pool.map(client, range(CLIENTS)) for version in made]
    assert sorted(versions) == list(range(2, CLIENTS * LINES + 2))
    read = go(gateway, "notebook_read", where, **entry)
    lines = read["content"].splitlines()
    assert len(lines) == CLIENTS * LINES
    assert set(lines) == {f"client {n} line {i}" for n in range(CLIENTS) for i in range(LINES)}
    assert read["metadata"]["version"] == CLIENTS * LINES + 1
    assert read["metadata"]["word_count"] == CLIENTS * LINES * 4
    assert len(read["history"]) == 100


def load(gateway, entries, stop, acknowledged):
    """Appends until the gateway is gone; records acknowledged writes."""
    number = 0
    with httpx.Client(base_url=gateway.url, timeout=TIMEOUT, trust_env=False) as http:
        while not stop.is_set():
            number += 1
            entry = entries[number % len(entries)]
            line = f"{threading.get_ident()}-{number}"
            try:
                answer = http.post("/v1/tools/notebook_update", json={**entry, "append": line + "\n"})
                if answer.status_code == 200:
                    acknowledged.append((entry["notebook_id"], line))
                http.post("/v1/tools/notebook_read", json={**entry, "max_lines": 1})
            except httpx.HTTPError:
                return


def test_a_kill_takes_nothing_back(tmp_path):
    data = tmp_path / "data"
    gateway = Gateway(data)
    entries = []
    for title in "abc":
        made = go(gateway, "notebook_create", collection="pages", title=title, content="")
        entries.append({"notebook_id": made["notebook_id"], "collection": "pages"})
    acknowledged = []
    for kill in range(KILLS):
        stop = threading.Event()
        before = len(acknowledged)
        threads = [threading.Thread(target=load, args=(gateway, entries, stop, acknowledged)) for _ in range(8)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(acknowledged) > before + 20 * (kill + 1), 120, "load")
        gateway.process.kill()
        gateway.process.wait()
        stop.set()
        for thread in threads:
            thread.join()
        gateway.client.close()
        gateway = Gateway(data)
        for entry in entries:
            lines = set(go(gateway, "notebook_read", **entry)["content"].splitlines())
            missing = {line for name, line in acknowledged if name == entry["notebook_id"]} - lines
            assert not missing, "an acknowledged write was lost"
    last = {entry["notebook_id"]: go(gateway, "notebook_read", **entry)["metadata"]["version"] for entry in entries}
    assert gateway.stop() == 0
    done = subprocess.run([binary(), "verify", "--data-dir", str(data)], capture_output=True, text=True,
                          timeout=TIMEOUT, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(last.values()) >= len(acknowledged) + len(entries)


# ---- chance and broken disks ----


if not SANITIZED:  # a sanitizer's runtime must come before everything that is preloaded

    def test_an_id_that_is_taken(tmp_path, monkeypatch):
        """The same random bytes three times: the second entry gets another id, the first stays what it is."""
        shim(monkeypatch, tmp_path, "same_random")
        gateway = Gateway(tmp_path / "data")
        try:
            made = [go(gateway, "notebook_create", collection="pages", title=title, content=title) for title in "ab"]
            assert made[0]["notebook_id"] == "0" * 12
            assert made[1]["notebook_id"] != made[0]["notebook_id"]
            for title, entry in zip("ab", made, strict=True):
                read = go(gateway, "notebook_read", notebook_id=entry["notebook_id"], collection="pages")
                assert (read["content"], read["metadata"]["version"]) == (title, 1)
        finally:
            assert gateway.stop() == 0

    def test_openings_outlast_a_broken_disk(tmp_path, monkeypatch):
        """Openings during a time without writes are reported once writes succeed."""
        switch = tmp_path / "fails"
        shim(monkeypatch, tmp_path, "failing_sync")
        monkeypatch.setenv("FAILING_SYNC", str(switch))
        gateway = Gateway(tmp_path / "data")
        try:
            made = go(gateway, "notebook_create", collection="pages", title="T", content="c")
            entry = {"notebook_id": made["notebook_id"], "collection": "pages"}
            switch.touch()
            for _ in range(40):
                assert go(gateway, "notebook_read", **entry)["content"] == "c"
            eventually(lambda: gateway.logged("background"), 60, "a failed write of openings")
            switch.unlink()

            def opened():
                answer = gateway.call("memory_timeline", {"limit": 200})
                if answer.status_code != 200:
                    return 0
                return sum(event.get("data", {}).get("count", 1) for event in answer.json()["result"]["events"] if event["action"] == "opened")

            eventually(lambda: opened() == 40, 60, "forty openings")
        finally:
            assert gateway.stop() == 0
        gateway = Gateway(tmp_path / "data")
        assert opened() == 40
        assert gateway.stop() == 0
