# SPDX-License-Identifier: MIT
"""The agent notebook's memory and checkpoints on a real gateway: REST and MCP, SIGKILL in the middle of restores, readers
meanwhile, a journal in Redis that goes away."""

import asyncio
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import threading
import time

import httpx
import pytest
from mcp import Client

from conftest import Gateway, binary, eventually, whole

PLUGIN = "plugins=agent_notebook"
SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
PAGES = 40 if SANITIZED else 200
KILLS = 4 if SANITIZED else 6
CLUSTER_PAGES = 60
WAIT = 180


@pytest.fixture(params=["documents", "redis"])
def sets(request, servers):
    """The configuration of a gateway, by where its journal is."""
    if request.param == "documents":
        return [PLUGIN]
    return [PLUGIN, "journal=redis", f"redis.uri={servers.redis().uri}"]


@pytest.fixture
def start_again(tmp_path, sets):
    """start_again() gives a gateway on the same data as the one before, which is gone by then."""
    started = []

    def begin():
        started.append(Gateway(tmp_path / "data", sets))
        return started[-1]

    yield begin
    started[-1].stop()


def ask(gateway, tool, arguments=None, agent="ann", client=None):
    def asked():
        answer = (client or gateway.client).post(f"/v1/tools/{tool}", json=arguments or {},
                                                 headers={"X-Notegate-Agent": agent})
        assert answer.status_code == 200, f"{tool} {arguments}: {answer.text}"
        return answer.json()["result"]

    return whole(asked, WAIT) if tool in ("memory_recall", "memory_timeline") else asked()


def refused(gateway, tool, arguments):
    answer = gateway.call(tool, arguments)
    assert answer.status_code >= 400, answer.text
    return answer.json()


def make_page(gateway, text):
    return ask(gateway, "notebook_create", {"collection": "pages", "title": "Page", "content": text})["notebook_id"]


def set_page(gateway, page, text):
    ask(gateway, "notebook_update", {"collection": "pages", "notebook_id": page, "content": text})


def page_text(gateway, page):
    """The content; None: it is deleted."""
    answer = gateway.call("notebook_read", {"collection": "pages", "notebook_id": page})
    if answer.status_code == 404:
        return None
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]["content"]


def memories(gateway, client=None):
    found = ask(gateway, "memory_recall", {"query": "", "limit": 1000}, client=client)
    return sorted(row["content"] for row in found["results"] if row["type"] == "memory")


def ready(gateway):
    return gateway.client.get("/readyz").status_code == 200


# ---- the tools ----

def test_memory(start, sets):
    gateway = start(sets)
    logged = ask(gateway, "memory_log", {"content": "The build is green again", "source": "message",
                                         "tags": ["build", "ci"], "score": 0.9})
    assert logged["status"] == "logged"
    found = ask(gateway, "memory_recall", {"query": "green"})
    assert found["engine"] in ("fts5", "redisearch", "scan")
    assert [row["memory_id"] for row in found["results"]] == [logged["memory_id"]]
    memory = found["results"][0]
    assert (memory["agent"], memory["source"], memory["tags"], memory["score"]) == (
        "agent:ann", "message", ["build", "ci"], 0.9)
    page = make_page(gateway, "Long content that is not for the journal")
    events = ask(gateway, "memory_timeline")["events"]
    assert [event["type"] for event in events] == ["notebook_ref", "memory"]
    assert events[0]["notebook_id"] == page and events[0]["action"] == "created"
    assert ask(gateway, "memory_summary") == {"summary": None, "status": "none", "space": "shared"}
    ask(gateway, "memory_summary", {"text": "We keep the build green."})
    assert ask(gateway, "memory_summary")["summary"] == "We keep the build green."
    assert refused(gateway, "memory_recall", {"query": "x", "since": "tomorrow"})["code"] == "INVALID_INPUT"
    assert refused(gateway, "checkpoint_restore", {"checkpoint_id": "none"})["code"] == "NOT_FOUND"


def test_wrong_arguments_are_named(start):
    gateway = start([PLUGIN])
    for tool, arguments, path, got in (("memory_log", {"content": "c", "tags": ["a", "b,c"]}, "/tags", "b,c"),
                                       ("memory_recall", {"query": "", "since": "soon"}, "/since", "soon"),
                                       ("memory_timeline", {"date": "22.11.2026"}, "/date", "22.11.2026"),
                                       ("memory_timeline", {"date": "2026-11-22T10:00:00Z"}, "/date", "2026-11-22T10:00:00Z"),
                                       ("memory_summary", {"mode": "set"}, "/text", "nothing"),
                                       ("memory_summary", {"mode": "read", "text": "t"}, "/mode", "read")):
        error = refused(gateway, tool, arguments)
        assert error["code"] == "INVALID_INPUT" and got in error["message"], error
        assert [(one["path"], one["got"]) for one in error["details"]["violations"]] == [(path, got)]
    today = ask(gateway, "memory_timeline")
    assert ask(gateway, "memory_timeline", {"date": today["date"]}) == today
    error = gateway.client.post("/v1/tools/memory_summary", json={}, headers={"X-Notegate-Mode": "ask"}).json()
    assert error["code"] == "MODE_FORBIDDEN" and "`mode`" in error["hint"] and "read" in error["hint"]
    error = refused(gateway, "notebook_read", {"collection": "code_snippets", "notebook_id": "none"})
    assert "pages or research_notes" in error["hint"]


def test_checkpoint(start, sets):
    gateway = start(sets)
    changed, dropped = make_page(gateway, "one"), make_page(gateway, "to go")
    ask(gateway, "memory_log", {"content": "before"})
    first = ask(gateway, "checkpoint_snapshot", {"label": "first"})
    assert (first["notebooks"], first["memories"]) == (2, 1)
    set_page(gateway, changed, "two")
    ask(gateway, "notebook_delete", {"collection": "pages", "notebook_id": dropped})
    made = make_page(gateway, "since")
    ask(gateway, "memory_log", {"content": "after"})
    diff = ask(gateway, "checkpoint_diff", {"checkpoint_id": first["checkpoint_id"]})
    assert {row["notebook_id"]: row["since"] for row in diff["notebooks"]["moved"]} == {
        changed: "updated", dropped: "deleted", made: "created"}
    assert [row["content"] for row in diff["memories"]["added"]] == ["after"]

    back = ask(gateway, "checkpoint_restore", {"checkpoint_id": first["checkpoint_id"], "notebooks": True})
    assert {row["notebook_id"]: row["outcome"] for row in back["notebooks"]["moved"]} == {
        changed: "restored", dropped: "restored", made: "kept"}
    assert memories(gateway) == ["before"]
    assert [page_text(gateway, page) for page in (changed, dropped, made)] == ["one", "to go", "since"]
    assert [row["label"] for row in ask(gateway, "checkpoint_list")["checkpoints"]] == [
        f"before the restore of {first['checkpoint_id']}", "first"]
    # A version that was restored says so.
    history = ask(gateway, "notebook_history", {"collection": "pages", "notebook_id": changed})
    assert "restored" in json.dumps(history)

    ask(gateway, "checkpoint_restore", {"checkpoint_id": back["previous_checkpoint_id"], "notebooks": True})
    assert memories(gateway) == ["after", "before"]
    assert page_text(gateway, changed) == "two"


def test_mcp(start):
    gateway = start([PLUGIN])

    async def use():
        async with Client(gateway.url + "/mcp", mode="2026-07-28", read_timeout_seconds=WAIT, cache=None) as client:
            logged = await client.call_tool("memory_log", {"content": "seen over MCP"})
            assert not logged.is_error, logged
            ask(gateway, "memory_recall", {"query": "seen"})  # it has come to the journal
            found = await client.call_tool("memory_recall", {"query": "seen"})
            assert found.structured_content["results"][0]["content"] == "seen over MCP"
            await client.call_tool("memory_summary", {"text": "What lasts"})
            context = await client.get_prompt("memory_context", {"limit": "5"})
            text = context.messages[0].content.text
            assert "What lasts" in text and "seen over MCP" in text
            # One line an event, whatever is in it, with what notebook_read takes and the summary.
            await client.call_tool("memory_log", {"content": "first\n- second"})
            made = await client.call_tool("notebook_create", {"collection": "pages", "title": "A\n- B", "content": "in\nshort"})
            page = made.structured_content["notebook_id"]
            context = await client.get_prompt("memory_context", {"limit": "2"})
            lines = context.messages[0].content.text.rstrip("\n").splitlines()[-2:]
            assert lines[0].endswith(": first - second")
            assert lines[1].endswith(f" created pages/{page}: A - B - in short"), lines
            kept = await client.call_tool("checkpoint_snapshot", {"label": "by MCP"})
            name = kept.structured_content["checkpoint_id"]
            listed = await client.list_resources()
            uris = [str(resource.uri) for resource in listed.resources]
            assert f"notegate://shared/checkpoint/{name}" in uris
            assert listed.resources[uris.index(f"notegate://shared/checkpoint/{name}")].size is None
            content = (await client.read_resource(f"notegate://shared/checkpoint/{name}")).contents[0].text
            assert json.loads(content)["journal"]["summary"] == "What lasts"
            progress = []

            async def tell(done, total, message):
                progress.append((done, total, message))

            back = await client.call_tool("checkpoint_restore", {"checkpoint_id": name}, progress_callback=tell)
            assert not back.is_error, back
            failed = await client.call_tool("checkpoint_restore", {"checkpoint_id": "none"})
            assert failed.is_error and "checkpoint" in failed.content[0].text

    asyncio.run(use())


# ---- readers meanwhile ----

def test_readers_see_no_half(start, sets):
    gateway = start(sets)
    names = [f"memory {number}" for number in range(60)]
    for name in names[:30]:
        ask(gateway, "memory_log", {"content": name})
    few = ask(gateway, "checkpoint_snapshot")["checkpoint_id"]
    for name in names[30:]:
        ask(gateway, "memory_log", {"content": name})
    many = ask(gateway, "checkpoint_snapshot")["checkpoint_id"]
    stop, seen = threading.Event(), set()

    def read():
        with httpx.Client(base_url=gateway.url, timeout=WAIT, trust_env=False) as client:
            while not stop.is_set():
                events = ask(gateway, "memory_timeline", {"limit": 1000}, client=client)["events"]
                seen.add(tuple(sorted(event["content"] for event in events)))

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            for _ in range(6):
                ask(gateway, "checkpoint_restore", {"checkpoint_id": few})
                ask(gateway, "checkpoint_restore", {"checkpoint_id": many})
        finally:
            stop.set()
        for reader in readers:
            reader.result()
    assert seen <= {tuple(sorted(names[:30])), tuple(sorted(names))}


# ---- SIGKILL ----

def fill(gateway):
    """Pages, memories, and a checkpoint of them."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(lambda number: make_page(gateway, f"then {number}"), range(PAGES)))
    for number in range(20):
        ask(gateway, "memory_log", {"content": f"then {number}"})
    return pages, ask(gateway, "checkpoint_snapshot", {"label": "then"})["checkpoint_id"]


def change(gateway, pages, turn):
    """Everything moves: nearly all pages change, some go, a memory comes."""
    def one(item):
        number, page = item
        if number % 20 == 0 and page_text(gateway, page) is not None:
            ask(gateway, "notebook_delete", {"collection": "pages", "notebook_id": page})
        elif number % 20 != 0:
            set_page(gateway, page, f"turn {turn}")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, enumerate(pages)))
    ask(gateway, "memory_log", {"content": f"turn {turn}"})


def state(gateway, pages):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda page: page_text(gateway, page), pages))
    return texts, memories(gateway)


@pytest.mark.long
def test_kill_in_a_restore(start_again):
    gateway = start_again()
    pages, checkpoint = fill(gateway)
    then = state(gateway, pages)
    change(gateway, pages, "first")
    began = time.monotonic()
    ask(gateway, "checkpoint_restore", {"checkpoint_id": checkpoint, "notebooks": True})
    took = time.monotonic() - began
    assert state(gateway, pages) == then
    for turn in range(KILLS):
        change(gateway, pages, turn)
        now = state(gateway, pages)
        # The kill falls somewhere into the restore; where, is left to chance.
        timer = threading.Timer(random.uniform(0, took * 1.1), gateway.process.kill)
        timer.start()
        try:
            gateway.call("checkpoint_restore", {"checkpoint_id": checkpoint, "notebooks": True})
        except httpx.HTTPError:
            pass  # it died
        timer.join()
        assert gateway.process.wait() == -signal.SIGKILL
        gateway.client.close()
        gateway = start_again()
        eventually(lambda: ready(gateway), WAIT, "/readyz")
        found = state(gateway, pages)
        assert found in (then, now), f"turn {turn}: half a restore"
        if found != then:
            ask(gateway, "checkpoint_restore", {"checkpoint_id": checkpoint, "notebooks": True})
            assert state(gateway, pages) == then
    # Nothing is left to be done: a restart finds all as it was.
    assert gateway.stop() == 0
    gateway = start_again()
    eventually(lambda: ready(gateway), WAIT, "/readyz")
    assert state(gateway, pages) == then


# ---- several gateways ----

@pytest.fixture
def cluster(servers, tmp_path):
    """Two gateways on one MongoDB and one Redis."""
    if not (pathlib.Path(binary()).parents[1] / "modules" / "backends" / "mongo.so").exists():
        pytest.skip("the mongo backend is not built")
    sets = [PLUGIN, "documents=mongo", f"mongo.uri={servers.mongo().uri}", "mongo.timeout=60s", "journal=redis",
            f"redis.uri={servers.redis().uri}"]
    started = []
    try:
        for number in range(2):
            started.append(Gateway(tmp_path / f"data-{number}", sets))
        yield started
    finally:
        for gateway in started:
            gateway.stop()


@pytest.mark.long
def test_another_gateway_finishes(cluster):
    """The gateway that restores is killed and does not come back: the other one finishes it, or it never began."""
    first, second = cluster
    pages = [make_page(first, f"then {number}") for number in range(CLUSTER_PAGES)]
    ask(first, "memory_log", {"content": "then"})
    # A write at one gateway reaches the other a moment later.
    eventually(lambda: memories(second) == ["then"], WAIT, "the memory")
    checkpoint = ask(second, "checkpoint_snapshot")["checkpoint_id"]
    then = state(second, pages)
    for page in pages:
        set_page(second, page, "now")
    ask(second, "memory_log", {"content": "now"})
    eventually(lambda: memories(second) == ["now", "then"], WAIT, "the memory")
    now = state(second, pages)
    assert now == (["now"] * CLUSTER_PAGES, ["now", "then"])
    # Killed as soon as its record is there, which is seen through the other gateway.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(first.call, "checkpoint_restore", {"checkpoint_id": checkpoint, "notebooks": True})

        def begun():
            answer = second.call("checkpoint_restore", {"checkpoint_id": checkpoint})
            assert answer.status_code in (200, 503), answer.text
            return call.done() or answer.json().get("code") == "BUSY"

        # The second gateway's own restore may come first: it changes the memory alone, to the same.
        eventually(begun, WAIT, "the restore")
        first.process.kill()
        first.process.wait()
        try:
            call.result()
        except httpx.HTTPError:
            pass  # it died

    def settled():
        answer = second.call("checkpoint_snapshot") if ready(second) else None
        record = second.call("checkpoint_restore", {"checkpoint_id": checkpoint}) if answer else None
        return record is not None and record.status_code == 200

    eventually(settled, WAIT, "the end of the restore")
    texts, remembered = state(second, pages)
    assert texts in (then[0], now[0]), "half a restore"
    assert remembered == ["then"]
    ask(second, "memory_log", {"content": "afterwards"})
    eventually(lambda: memories(second) == ["afterwards", "then"], WAIT, "the memory")


# ---- a journal that is away ----

def test_journal_away(start, servers):
    redis = servers.redis()
    gateway = start([PLUGIN, "journal=redis", f"redis.uri={redis.uri}"])
    ask(gateway, "memory_log", {"content": "while it was there"})
    assert memories(gateway) == ["while it was there"]
    redis.stop()
    # Logging goes on; what needs the journal says that it is away.
    for number in range(5):
        ask(gateway, "memory_log", {"content": f"while it was away {number}"})
    for tool, arguments in [("memory_recall", {"query": "away"}), ("memory_timeline", {}), ("memory_summary", {}),
                            ("checkpoint_snapshot", {}), ("checkpoint_list", {}),
                            ("checkpoint_restore", {"checkpoint_id": "x"}), ("checkpoint_delete", {"checkpoint_id": "x"})]:
        answer = gateway.call(tool, arguments)
        assert answer.status_code == 503, f"{tool}: {answer.text}"
        assert answer.json()["code"] == "BACKEND_UNAVAILABLE"
        assert "retry-after" in answer.headers
    redis.start()

    def all_there():
        answer = gateway.call("memory_recall", {"query": "away", "limit": 100})
        return answer.status_code == 200 and len(answer.json()["result"]["results"]) == 5

    eventually(all_there, WAIT, "the memories of the time when Redis was away")
