# SPDX-License-Identifier: MIT
"""Entries and memories as an agent finds, changes and takes them back in one call: over REST and both MCP eras, with the
documents and the journal in sqlite, in MongoDB and Redis, and in MongoDB alone."""

import contextlib
import re

import httpx
import pytest
from conftest import Gateway, eventually, whole
from mcp_support import HANDSHAKE, MODERN
from servers import Servers
from sse_support import Stream


WAIT = 120
FACES = ("rest", HANDSHAKE, MODERN)


@pytest.fixture(scope="module", params=["sqlite", "mongo and redis", "mongo"])
def sets(request):
    """The configuration of a gateway, by where its documents and its journal are."""
    with contextlib.ExitStack() as stack:
        made = ["plugins=agent_notebook"]
        servers = Servers(stack)
        if "mongo" in request.param:
            made += ["documents=mongo", f"mongo.uri={servers.mongo().uri}", "mongo.database=notegate_day", "mongo.timeout=30s"]
        if "redis" in request.param:
            made += ["journal=redis", f"redis.uri={servers.redis().uri}"]
        yield made


@pytest.fixture(scope="module")
def gateway(sets, tmp_path_factory):
    made = Gateway(tmp_path_factory.mktemp("day") / "data", sets)
    yield made
    assert made.stop() == 0, made.errors


class Agent:
    """An agent in a space, at one of the faces of a gateway."""

    def __init__(self, gateway, face, space, name="ann", key=None):
        self.gateway, self.face, self.space = gateway, face, space
        self.headers = {"X-Notegate-Space": space} | (
            {"Authorization": f"Bearer {key}"} if key else {"X-Notegate-Agent": name})
        self.session = None

    def also(self, **more):
        return Agent(self.gateway, self.face, more.pop("space", self.space), **more)

    def post(self, method, params):
        version = self.face
        headers = self.headers | {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
        if version == MODERN:
            params = params | {"_meta": {"io.modelcontextprotocol/protocolVersion": version,
                                         "io.modelcontextprotocol/clientCapabilities": {}}}
            headers |= {"Mcp-Method": method} | ({"Mcp-Name": params["name"]} if "name" in params else {})
        elif self.session:
            headers["Mcp-Session-Id"] = self.session
        answer = self.gateway.client.post("/mcp", headers=headers,
                                          json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert answer.status_code == 200, answer.text
        return answer

    def call(self, tool, **arguments):
        """Whether it worked, and the result or the error."""
        if self.face == "rest":
            answer = self.gateway.call(tool, arguments, self.headers)
            return answer.status_code == 200, answer.json()["result"] if answer.status_code == 200 else answer.json()
        if self.face == HANDSHAKE and not self.session:
            self.session = self.post("initialize", {"protocolVersion": self.face, "capabilities": {},
                                                    "clientInfo": {"name": "t", "version": "1"}}).headers["Mcp-Session-Id"]
        result = self.post("tools/call", {"name": tool, "arguments": arguments}).json()["result"]
        worked = not result.get("isError")
        return worked, result["structuredContent"] if worked else result["_meta"]["notegate/error"]

    def __getattr__(self, tool):
        def go(**arguments):
            worked, result = self.call(tool, **arguments)
            assert worked, (tool, arguments, result)
            return result
        return go

    def fails(self, code, tool, **arguments):
        worked, error = self.call(tool, **arguments)
        assert not worked and error["code"] == code, (tool, arguments, error)
        return error

    def page(self, title, content="text\n", collection="pages"):
        return self.notebook_create(collection=collection, title=title, content=content)["notebook_id"]


@pytest.fixture(params=FACES)
def ann(request, gateway):
    """Ann, in a space that nobody else has."""
    gateway.spaces = getattr(gateway, "spaces", 0) + 1
    return Agent(gateway, request.param, f"day{gateway.spaces}")


# ---- a page by its title, a line under its heading ----


def test_a_line_for_a_page_by_its_title(ann):
    page = ann.page("Größe der Übersicht", "# Übersicht\n\none")
    changed = ann.notebook_update(notebook_id="grösse DER übersicht", append="two")
    assert (changed["notebook_id"], changed["collection"], changed["version"]) == (page, "pages", 2)
    assert ann.notebook_read(notebook_id="GRÖSSE DER ÜBERSICHT", collection="pages")["content"] == "# Übersicht\n\none\ntwo"
    assert ann.notebook_history(notebook_id="größe der übersicht")["total"] == 2
    assert ann.notebook_diff(notebook_id="Größe der Übersicht", **{"from": 1})["lines_added"] == 2
    restored = ann.notebook_restore(notebook_id="Größe der Übersicht", version=1)
    assert (restored["notebook_id"], restored["collection"]) == (page, "pages")
    assert ann.notebook_delete(notebook_id="größe DER Übersicht")["notebook_id"] == page
    ann.fails("ENTRY_NOT_FOUND", "notebook_read", notebook_id="Größe der Übersicht")
    # A deleted entry is found by its id.
    assert ann.notebook_history(notebook_id=page)["deleted"] is True
    assert ann.notebook_restore(notebook_id=page, version=2)["version"] == 5
    assert ann.notebook_read(notebook_id=page)["content"].endswith("\ntwo")


def test_a_line_under_a_heading(ann):
    ann.page("Plan", "# Plan\n\n## Tasks\n\n- one\n\n### Later\n\n- x\n\n## Notes\n\nn\n")
    ann.notebook_update(notebook_id="plan", section="Tasks", append="- two")
    ann.notebook_update(notebook_id="plan", section="## Notes", append="m")
    assert ann.notebook_read(notebook_id="Plan")["content"] == (
        "# Plan\n\n## Tasks\n\n- one\n\n### Later\n\n- x\n- two\n\n## Notes\n\nn\nm\n")
    none = ann.fails("SECTION_NOT_FOUND", "notebook_update", notebook_id="plan", section="Task", append="-")
    assert none["details"]["headings"] == ["Plan", "Tasks", "Later", "Notes"]
    ann.fails("INVALID_INPUT", "notebook_update", notebook_id="plan", section="Tasks")
    ann.fails("INVALID_INPUT", "notebook_update", notebook_id="plan", section="Tasks", edits=[{"old_str": "n", "new_str": ""}])


def test_several_entries_with_one_title(ann):
    pages = [ann.page("Notes") for _ in range(2)] + [ann.page("NOTES", collection="research_notes")]
    several = ann.fails("INVALID_INPUT", "notebook_update", notebook_id="notes", append="x")
    assert {match["notebook_id"] for match in several["details"]["matches"]} == set(pages)
    assert {(match["collection"], match["title"]) for match in several["details"]["matches"]} == {
        ("pages", "Notes"), ("research_notes", "NOTES")}
    for page in pages:
        assert page in several["message"]
    assert ann.notebook_read(notebook_id="notes", collection="research_notes")["notebook_id"] == pages[2]
    pages += [ann.page("notes") for _ in range(9)]
    several = ann.fails("INVALID_INPUT", "notebook_delete", notebook_id="notes")
    assert len(several["details"]["matches"]) == 10 and several["details"]["total"] == 12
    assert several["message"].endswith("and 2 more")


def test_an_id_wins_over_a_title(ann):
    page = ann.page("One")
    other = ann.page(page)
    assert ann.notebook_read(notebook_id=page)["notebook_id"] == page
    assert ann.notebook_read(notebook_id=other)["title"] == page
    ann.notebook_delete(notebook_id=page)
    assert "it was deleted" in ann.fails("ENTRY_NOT_FOUND", "notebook_read", notebook_id=page)["message"]
    assert ann.notebook_read(notebook_id=other)["title"] == page


def test_a_title_belongs_to_its_space(ann):
    ann.page("Mine")
    there = ann.also(space=ann.space + "b")
    there.fails("ENTRY_NOT_FOUND", "notebook_read", notebook_id="Mine")
    page = there.page("mine")
    assert there.notebook_read(notebook_id="MINE")["notebook_id"] == page
    assert ann.notebook_read(notebook_id="MINE")["title"] == "Mine"


def test_not_found_as_ever(ann):
    page = ann.page("T")
    assert ann.fails("ENTRY_NOT_FOUND", "notebook_read", notebook_id="nothing", collection="pages")["message"] == (
        "there is no entry 'nothing' in pages")
    wrong = ann.fails("ENTRY_NOT_FOUND", "notebook_update", notebook_id=page, collection="code_snippets", append="x")
    assert "It may be an id of pages or research_notes" in wrong["hint"]
    gone = ann.fails("ENTRY_NOT_FOUND", "notebook_read", notebook_id="nothing")
    assert gone["message"] == "there is no entry 'nothing' in pages, code_snippets or research_notes"


def test_a_changed_title_is_found_at_once(ann):
    page = ann.page("Before")
    for title in ("ÄNDERUNG", "Änderung 2", "architecture", "release 2026"):
        ann.notebook_update(notebook_id=page, title=title)
        assert ann.notebook_read(notebook_id=title.lower())["notebook_id"] == page
        assert ann.notebook_update(notebook_id=title.upper(), collection="pages", append="x")["notebook_id"] == page
    ann.fails("ENTRY_NOT_FOUND", "notebook_read", notebook_id="before")
    assert "title_key" not in ann.notebook_read(notebook_id=page)


# ---- memories taken back ----


def complete(agent, tool, **arguments):
    """An answer without a backlog."""
    return whole(lambda: getattr(agent, tool)(**arguments), WAIT)


def ids_of(agent):
    return [row["id"] for row in complete(agent, "memory_recall", query="", limit=1000)["results"] if row["type"] == "memory"]


def contents(rows):
    return [row["content"] for row in rows if row["type"] == "memory"]


def context(ann):
    """The text of the prompt memory_context."""
    face = Agent(ann.gateway, MODERN, ann.space)
    answer = face.post("prompts/get", {"name": "memory_context", "arguments": {}}).json()["result"]
    return answer["messages"][0]["content"]["text"]


def test_a_memory_is_deleted(ann):
    kept = ann.memory_log(content="the printer is green", tags=["p"])["memory_id"]
    gone = ann.memory_log(content="the printer is blue", tags=["p"])["memory_id"]
    rows = complete(ann, "memory_recall", query="printer")["results"]
    assert {row["id"] for row in rows} == {row["memory_id"] for row in rows} == {kept, gone}
    assert ann.memory_delete(id=gone) == {"id": gone, "status": "deleted", "space": ann.space}
    assert contents(complete(ann, "memory_recall", query="printer")["results"]) == ["the printer is green"]
    assert contents(complete(ann, "memory_recall", query="", tags=["p"])["results"]) == ["the printer is green"]
    assert contents(complete(ann, "memory_timeline")["events"]) == ["the printer is green"]
    assert "green" in context(ann) and "blue" not in context(ann)
    for memory in (gone, "never", ""):
        assert "memory_recall" in ann.fails("NOT_FOUND", "memory_delete", id=memory)["hint"]
    ann.also(space=ann.space + "b").fails("NOT_FOUND", "memory_delete", id=kept)


def spoken(ann, **arguments):
    """The words of the lines of memory_context, by agent, and its whole text."""
    face = Agent(ann.gateway, MODERN, ann.space)
    answer = face.post("prompts/get", {"name": "memory_context", "arguments": arguments}).json()["result"]
    text = answer["messages"][0]["content"]["text"]
    told = {}
    for agent, words in re.findall(r"^- \S+ (\S+) \(thought\): (.*)$", text, re.M):
        told.setdefault(agent, []).append(words)
    return told, text


def test_no_agent_fills_the_context_while_others_write(ann):
    ben, cleo = ann.also(name="ben"), ann.also(name="cleo")
    ben.memory_log(content="ben 0")
    for i in range(3):
        cleo.memory_log(content=f"cleo {i}")
    for i in range(25):
        ann.memory_log(content=f"ann {i}")
    complete(ann, "memory_timeline")
    told, text = spoken(ann)
    assert told == {"ben": ["ben 0"], "cleo": ["cleo 0", "cleo 1", "cleo 2"], "ann": [f"ann {i}" for i in range(19, 25)]}
    assert "Of each agent at most 6; memory_timeline has the others." in text
    assert [words for words in re.findall(r": (\S+ \d+)$", text, re.M)][:2] == ["ben 0", "cleo 0"]
    told, text = spoken(ann, limit="6")
    assert told == {"ben": ["ben 0"], "cleo": ["cleo 1", "cleo 2"], "ann": ["ann 23", "ann 24"]}
    assert {agent: len(words) for agent, words in spoken(ann, limit="2")[0].items()} == {"ann": 1, "cleo": 1}
    # An agent that is asked for, or that is alone, has all lines.
    told, text = spoken(ann, agent="ann")
    assert told == {"ann": [f"ann {i}" for i in range(5, 25)]} and "at most" not in text
    alone = ann.also(space=ann.space + "b")
    for i in range(22):
        alone.memory_log(content=f"alone {i}")
    complete(alone, "memory_timeline")
    told, text = spoken(alone)
    assert told == {"ann": [f"alone {i}" for i in range(2, 22)]} and "at most" not in text


def test_a_deletion_is_an_event(ann):
    """As the memory was: it names the memory, and who deleted it."""
    memory = ann.memory_log(content="to be told")["memory_id"]
    with Stream(ann.gateway.url + "/v1/events", headers=ann.headers) as stream:
        ann.memory_delete(id=memory)
        told = stream.next().json()
        while told["action"] != "deleted":
            told = stream.next().json()
    assert (told["collection"], told["agent"], told["tool"]) == ("agent_memory", "ann", "memory_delete")
    assert memory in str(told)


def test_a_restore_brings_a_memory_back(ann):
    memory = ann.memory_log(content="once more")["memory_id"]
    point = ann.checkpoint_snapshot()["checkpoint_id"]
    ann.memory_delete(id=memory)
    assert contents(complete(ann, "memory_timeline")["events"]) == []
    ann.checkpoint_restore(checkpoint_id=point)
    assert contents(complete(ann, "memory_timeline")["events"]) == ["once more"]
    assert contents(complete(ann, "memory_recall", query="once")["results"]) == ["once more"]
    ann.memory_delete(id=memory)
    assert contents(complete(ann, "memory_timeline")["events"]) == []


def test_deleted_stays_deleted_in_a_journal_that_is_made_again(tmp_path):
    """From the events, in order: Redis lost its data, and then the journal moves into the documents."""
    with contextlib.ExitStack() as stack:
        redis = Servers(stack).redis()
        sets = ["plugins=agent_notebook", "journal=redis", f"redis.uri={redis.uri}"]
        gateway = Gateway(tmp_path / "data", sets)
        ann = Agent(gateway, "rest", "shared")
        kept, gone = (ann.memory_log(content=text)["memory_id"] for text in ("kept", "gone"))
        ann.memory_delete(id=gone)
        redis.execute("FLUSHALL")
        eventually(lambda: ids_of(ann) == [kept], WAIT, "the memories again")
        assert gateway.stop() == 0
        gateway = Gateway(tmp_path / "data", ["plugins=agent_notebook"])
        ann = Agent(gateway, "rest", "shared")
        eventually(lambda: ids_of(ann) == [kept], WAIT, "the memories in documents")
        ann.fails("NOT_FOUND", "memory_delete", id=gone)
        assert gateway.stop() == 0


# ---- who may ----


@pytest.fixture(scope="module")
def keyed(sets, tmp_path_factory):
    """A gateway with keys, on another database and other names in Redis, and its keys."""
    sets = [item.replace("=notegate_day", "=notegate_keys") for item in sets]
    made = Gateway(tmp_path_factory.mktemp("keyed") / "data", [*sets, *(["redis.prefix=keys:"] if "journal=redis" in sets else [])])
    keys = {}
    with httpx.Client(transport=httpx.HTTPTransport(uds=made.socket_path), base_url="http://localhost", timeout=WAIT) as local:
        for name, more in {"ann": {}, "bob": {}, "rea": {"role": "reader"}, "adm": {"role": "admin"}}.items():
            answer = local.post("/v1/keys", json={"agent": name, "spaces": ["team"]} | more)
            assert answer.status_code == 201, answer.text
            keys[name] = answer.json()["key"]
    yield made, keys
    assert made.stop() == 0, made.errors


@pytest.mark.parametrize("face", FACES)
def test_who_may_delete_a_memory(keyed, face):
    gateway, keys = keyed
    ann, bob, rea, adm = (Agent(gateway, face, "team", key=keys[name]) for name in ("ann", "bob", "rea", "adm"))
    first, second = (ann.memory_log(content=f"{face} {text}")["memory_id"] for text in ("one", "two"))
    refused = bob.fails("FORBIDDEN", "memory_delete", id=first)
    assert "agent:ann" in refused["message"] and "author or an admin" in refused["message"]
    assert not rea.call("memory_delete", id=first)[0]
    assert {first, second} <= set(ids_of(rea))
    ann.memory_delete(id=first)
    adm.memory_delete(id=second)
    assert not {first, second} & set(ids_of(rea))
    ann.fails("NOT_FOUND", "memory_delete", id=second)


@pytest.mark.parametrize("face", FACES)
def test_who_may_change_by_title(keyed, face):
    gateway, keys = keyed
    ann, bob, rea = (Agent(gateway, face, "team", key=keys[name]) for name in ("ann", "bob", "rea"))
    page = ann.page(f"Öffentlich {face}")
    assert rea.notebook_read(notebook_id=f"ÖFFENTLICH {face}")["notebook_id"] == page
    assert not rea.call("notebook_update", notebook_id=f"öffentlich {face}", append="x")[0]
    assert bob.notebook_update(notebook_id=f"öffentlich {face}", append="x")["version"] == 2
