# SPDX-License-Identifier: MIT
"""Indexes while they are built: reported progress, waiting calls, and the state after a kill."""

import concurrent.futures
import contextlib
import json
import re
import sqlite3

import pytest
from conftest import Gateway, eventually
from test_opennotes import ask, everything, index_of, notes  # noqa: F401 (a fixture)

BUILD_NOTES = 1500
LISTS = 12


def ask_mcp(gateway, told, method, **params):
    """A request that needs the index; tells each progress, as it comes. Its result, or None where the index was locked too long."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": {"progressToken": "p"}}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    with gateway.client.stream("POST", "/mcp", json=call, headers=headers, timeout=300) as answer:
        for line in answer.iter_lines():
            message = json.loads(line.removeprefix("data:")) if line.startswith(("data:", "{")) and len(line) > 6 else {}
            if message.get("method") == "notifications/progress":
                told(message["params"])
            elif "result" in message:
                return None if message["result"].get("isError") else message["result"]
    return None


def indexed(data):
    """Notes that the one index has for good, read beside the gateway; 0 where there is none yet."""
    files = list((data / "opennotes").glob("*.db"))
    try:
        with contextlib.closing(sqlite3.connect(f"file:{files[0]}?mode=ro", uri=True)) as index:
            return index.execute("SELECT count(*) FROM notes").fetchone()[0]
    except (IndexError, sqlite3.OperationalError):
        return 0


def write_many(notes):
    for number in range(BUILD_NOTES):
        (notes / f"n{number}.md").write_text(f"---\ntitle: Note {number}\n---\n" + f"word{number % 50} " * 200)


def whole_index(gateway, notes):
    """Each note is there once, and found."""
    assert sorted(item["path"] for item in everything(gateway, notebook=str(notes))) == sorted(path.name for path in notes.iterdir())
    assert len(everything(gateway, "search", query="word7", notebook=str(notes))) == BUILD_NOTES // 50


def test_kills_while_an_index_is_made(tmp_path, notes):
    """Killed at any place, the next build ends with all notes, each once."""
    write_many(notes)
    sets = [f"opennotes.notebooks={notes}", "plugins=opennotes"]
    data = tmp_path / "data"
    for least in (0, 1, BUILD_NOTES // 3 + 1, BUILD_NOTES):  # it is begun at the start, whether a call asks or not
        gateway = Gateway(data, sets=sets)
        try:
            eventually(lambda: list((data / "opennotes").glob("*.db")) and indexed(data) >= least, 300, f"{least} notes")
        finally:
            gateway.process.kill()
            gateway.process.wait()
        assert indexed(data) >= least
    gateway = Gateway(data, sets=sets)
    try:
        whole_index(gateway, notes)
    finally:
        assert gateway.stop() == 0


def test_progress_while_an_index_is_made(start, notes):
    """Calls tell how far it is: the one that indexes, and the one that waits for it, which is told from its beginning."""
    (notes / "first.md").write_text("# First\n")
    gateway = start(sets=[f"opennotes.notebooks={notes}", "plugins=opennotes"])
    assert len(everything(gateway)) == 1
    told = [[], []]

    def run(number):
        told[number].clear()
        return ask_mcp(gateway, told[number].append, "tools/call", name="opennotes_list", arguments={"limit": 1})

    with contextlib.closing(index_of(gateway)) as index, concurrent.futures.ThreadPoolExecutor(2) as pool:
        index.isolation_level = None
        index.execute("BEGIN IMMEDIATE")  # no note is indexed before one of the calls is told that it waits
        write_many(notes)
        calls = [None, None]

        def waits():
            for number, call in enumerate(calls):
                if call is None or call.done():  # the lock was held for longer than it waits
                    assert call is None or call.result() is None
                    calls[number] = pool.submit(run, number)
            return any(told)

        eventually(waits, 300, "a call that waits")
        index.execute("ROLLBACK")
        results = [call.result() for call in calls]
    for progress, result in zip(told, results):
        if result is None:  # the lock was held for longer than this one waits; the other one indexed
            continue
        assert result["structuredContent"]["pagination"]["total"] == BUILD_NOTES + 1
        assert progress and all(one["progressToken"] == "p" and one["total"] == BUILD_NOTES + 1 for one in progress)
        assert [one["progress"] for one in progress] == sorted({one["progress"] for one in progress})
    assert any(results)
    whole_index(gateway, notes)


def test_an_index_that_is_made_is_told(tmp_path, notes):
    """It is begun at the start, and `/readyz` says how far it is; notes are served by their paths."""
    (notes / "first.md").write_text("# First\n")
    sets = [f"opennotes.notebooks={notes}", "plugins=opennotes"]
    gateway = Gateway(tmp_path / "data", sets=sets)
    assert len(everything(gateway)) == 1
    assert gateway.stop() == 0
    for number in range(BUILD_NOTES):
        (notes / f"n{number}.md").write_text(f"word{number % 50} " * 200)
    [file] = (tmp_path / "data" / "opennotes").glob("*.db")
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as index:
        index.execute("BEGIN IMMEDIATE")  # it waits before the first note
        gateway = Gateway(tmp_path / "data", sets=sets)
        try:

            def told():
                """Its line of `/readyz`; before it, that notes are being looked for."""
                ready = gateway.client.get("/readyz").json()
                assert ready["status"] == "ready"
                return next((line for line in ready.get("working", []) if line.endswith("are indexed")), None)

            # The first note may be too young to be trusted.
            assert re.fullmatch(f"[01] of {BUILD_NOTES + 1} notes in {notes} are indexed", eventually(told, what="the index"))
            assert ask(gateway, "get", path="n7.md")["note"]["title"] == "n7"
            index.execute("ROLLBACK")
            assert len(everything(gateway)) == BUILD_NOTES + 1
            eventually(lambda: "working" not in gateway.client.get("/readyz").json(), 60, "the end")
            assert gateway.client.get("/readyz").json()["status"] == "ready"
        finally:
            assert gateway.stop() == 0


@pytest.mark.parametrize("method", ["list", "complete"])
def test_lists_that_wait_keep_no_worker(start, notes, tmp_path, method):
    """While an index cannot be written, more lists of resources wait for it than there are workers; calls are served."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.md").write_text("# O\n")
    (notes / "first.md").write_text("# First\n")
    gateway = start(sets=[f"opennotes.notebooks={notes}", "plugins=opennotes", "limits.workers=8"])
    assert len(everything(gateway)) == 1
    index = index_of(gateway)
    gateway.stop()
    gateway = start(sets=[f"opennotes.notebooks={notes},{other}", "plugins=opennotes", "limits.workers=8"])
    for notebook in (notes, other):
        assert len(everything(gateway, notebook=str(notebook))) == 1
    told = [[] for _ in range(LISTS)]

    def run(number):
        if method == "list":
            return ask_mcp(gateway, told[number].append, "resources/list")
        return ask_mcp(gateway, told[number].append, "completion/complete", argument={"name": "id", "value": ""},
                       ref={"type": "ref/resource", "uri": "notegate://{space}/note/{id}"})

    with contextlib.closing(index), concurrent.futures.ThreadPoolExecutor(LISTS) as pool:
        index.isolation_level = None
        index.execute("BEGIN IMMEDIATE")
        write_many(notes)
        lists = [pool.submit(run, number) for number in range(LISTS)]

        def all_wait():
            for number, one in enumerate(lists):
                if one.done():  # the lock was held for longer than the one that indexes waits
                    assert one.result() is None
                    lists[number] = pool.submit(run, number)
            return sum(map(bool, told)) >= LISTS - 1

        eventually(all_wait, 300, "lists that wait")
        for _ in range(LISTS):
            assert len(everything(gateway, notebook=str(other))) == 1
            assert ask(gateway, "get", path="n7.md")["note"]["title"] == "Note 7"
        index.execute("ROLLBACK")
        results = [one.result() for one in lists]
    whole_index(gateway, notes)
    for result in filter(None, results):
        if method == "list":
            names = [item["name"] for item in result["resources"]]
            assert len(names) == len(set(names)) == 200 and result["nextCursor"]
        else:
            assert len(result["completion"]["values"]) == 100 and result["completion"]["hasMore"]
    assert any(results)
