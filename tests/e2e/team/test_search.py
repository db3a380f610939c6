# SPDX-License-Identifier: MIT
"""The tool `search`: every kind of text is found in one call, over REST and both MCP eras, with the documents and the journal in
sqlite and in MongoDB and Redis; and what a caller may not read, what is deleted and what is no text is not found."""

import contextlib
import json
import os
import re

import pytest
from cells_tools_support import code
from conftest import Gateway
from keys_support import add, bearer
from mcp_support import HANDSHAKE, MODERN
from servers import Servers

FACES = ("rest", HANDSHAKE, MODERN)
KINDS = ["notebook", "page", "code_snippet", "research_note", "memory", "note", "file", "cell"]
ANSWER_BYTES = 64 * 1024
# The time in which a test's files are surely read.
PATIENT = "search.scan_time=60s"


class Place:
    """A gateway with a folder of notes, and its root."""

    def __init__(self, folder, sets=()):
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.words = 0
        self.gateway = Gateway(folder / "data", [f"opennotes.notebooks={self.notes}", PATIENT, *sets])
        self.files = self.gateway.data_dir / "files"

    def word(self):
        """One that no other test has."""
        self.words += 1
        return "zeppelin" + "".join(chr(ord("a") + number) for number in divmod(self.words, 26)) + "x"


@pytest.fixture(scope="module", params=["sqlite", "mongo and redis"])
def place(request, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        sets = []
        if "mongo" in request.param:
            servers = Servers(stack)
            sets = ["documents=mongo", f"mongo.uri={servers.mongo().uri}", "mongo.database=notegate_search", "mongo.timeout=30s",
                    "journal=redis", f"redis.uri={servers.redis().uri}"]
        made = Place(tmp_path_factory.mktemp("search"), sets)
        yield made
        assert made.gateway.stop() == 0, made.gateway.errors


class Caller:
    """One at a face of the gateway; in the space `shared`, if it does not name another one."""

    def __init__(self, gateway, face, headers=None, space="shared"):
        self.gateway, self.face, self.session = gateway, face, None
        self.headers = ({"X-Notegate-Space": space} if space else {}) | (headers or {})

    def post(self, method, params):
        version = MODERN if self.face == "rest" else self.face
        headers = self.headers | {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
        if version == MODERN:
            params = params | {"_meta": {"io.modelcontextprotocol/protocolVersion": version,
                                         "io.modelcontextprotocol/clientCapabilities": {}}}
            named = params.get("name", params.get("uri"))
            headers |= {"Mcp-Method": method} | ({"Mcp-Name": named} if named else {})
        elif self.session:
            headers["Mcp-Session-Id"] = self.session
        elif method != "initialize":
            self.session = self.post("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {
                "name": "t", "version": "1"}}).headers["Mcp-Session-Id"]
            headers["Mcp-Session-Id"] = self.session
        answer = self.gateway.client.post("/mcp", headers=headers, json={
            "jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return answer

    def call(self, tool, **arguments):
        if self.face == "rest":
            answer = self.gateway.call(tool, arguments, self.headers)
            assert answer.status_code == 200, answer.text
            return answer.json()["result"]
        result = self.post("tools/call", {"name": tool, "arguments": arguments}).json()["result"]
        assert not result.get("isError"), result
        return result.get("structuredContent", result["content"])

    def search(self, query, **more):
        return self.call("search", query=query, **more)

    def kinds(self, query, **more):
        found = self.search(query, **more)
        assert found["total"] == len(found["hits"]), found
        return sorted(hit["kind"] for hit in found["hits"])

    def read(self, uri):
        return self.post("resources/read", {"uri": uri}).json()

    def page(self, title, content, collection="pages"):
        return self.call("notebook_create", collection=collection, title=title, content=content)["notebook_id"]


@pytest.fixture(params=FACES)
def ann(request, place):
    return Caller(place.gateway, request.param)


def put_cells(path, *sources):
    cells = [code(f"c{number}", source) for number, source in enumerate(sources)]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def put_all(place, ann, word):
    """A text of every kind, with the word in its second line; the ids of some."""
    text = f"# first\nthe {word} is over the harbour\nlast\n"
    ann.call("notebook", mode="create", name=f"book {word}", newStr=text)
    ids = {"page": ann.page("A page", text), "code": ann.page("A snippet", text, "code_snippets"),
           "research": ann.page("Research", text, "research_notes")}
    ids["memory"] = ann.call("memory_log", content=text)["memory_id"]
    (place.notes / f"note-{word}.md").write_text(text)
    (place.files / f"file-{word}.txt").write_text(text)
    put_cells(place.files / f"cells-{word}.ipynb", "x = 1", text)
    return ids


def test_every_kind_is_found_and_can_be_read(place, ann):
    word = place.word()
    put_all(place, ann, word)
    found = ann.search(word)
    assert sorted(hit["kind"] for hit in found["hits"]) == sorted(KINDS), found
    assert (found["total"], found["complete"], "cursor" in found) == (8, True, False)
    for hit in found["hits"]:
        assert hit["space"] == "shared" and word in hit["excerpt"] and 0 < hit["score"] < 1, hit
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", hit["updated"]), hit
        assert hit["uri"].startswith("notegate://shared/"), hit
        [content] = ann.read(hit["uri"])["result"]["contents"]
        assert word in content["text"].split("\n")[hit["line"] - 1], (hit, content)
    agents = {hit["kind"]: hit.get("agent") for hit in found["hits"]}
    assert all(agents[kind] for kind in KINDS[:5]) and agents["file"] is None, agents
    for kind in KINDS:
        assert ann.kinds(word, kinds=[kind]) == [kind]
    assert ann.kinds(word, kinds=["memory", "cell"]) == ["cell", "memory"]
    assert ann.kinds(f"{word} nowhere", kinds=["file", "cell"]) == []
    assert ann.kinds(f"HARBOUR {word.upper()}", kinds=["file", "cell"]) == ["cell", "file"]


def test_an_equal_title_is_first(place, ann):
    word = place.word()
    for number in range(4):
        ann.page(f"Entry {number}", f"the {word} {number} {word}")
    page = ann.page(f"the {word} PLAN", "nothing else")
    (place.notes / f"the {word} plan.md").write_text("text\n")
    hits = ann.search(f"The {word} plan")["hits"]
    assert {hits[0]["kind"], hits[1]["kind"]} == {"page", "note"}, hits
    assert any(page in hit["uri"] for hit in hits[:2]) and hits[1]["score"] > 1 > hits[2]["score"]


def test_what_is_gone_is_not_found(place, ann):
    word = place.word()
    ids = put_all(place, ann, word)
    assert ann.kinds(word) == sorted(KINDS)
    for name, collection in (("page", "pages"), ("code", "code_snippets"), ("research", "research_notes")):
        ann.call("notebook_delete", collection=collection, notebook_id=ids[name])
    ann.call("memory_delete", id=ids["memory"])
    ann.call("notebook", mode="clear", name=f"book {word}")
    assert ann.kinds(word) == ["cell", "file", "note"]
    (place.notes / f"note-{word}.md").unlink()
    (place.files / f"file-{word}.txt").unlink()
    put_cells(place.files / f"cells-{word}.ipynb", "x = 1")
    assert ann.kinds(word) == []


def test_a_reference_is_no_memory(place, ann):
    word = place.word()
    page = ann.page(f"About the {word}", "text")
    for number in range(3):
        ann.call("notebook_update", notebook_id=page, append=f"{number}")
    found = ann.call("memory_recall", query=word)["results"]
    assert [entry["type"] for entry in found] == ["notebook_ref"], found
    assert ann.kinds(word) == ["page"]
    ann.call("memory_log", content=f"saw the {word}", source="notebook", score=0.5)
    assert ann.kinds(word) == ["memory", "page"]


def test_what_is_no_text_is_not_found(place, ann):
    word = place.word()
    folder = place.files / word
    folder.mkdir()
    (folder / "binary").write_bytes(b"\0" + word.encode())
    (folder / "latin").write_bytes(f"größe {word}".encode("latin-1"))
    (folder / ".hidden").write_text(word)
    (folder / "broken.ipynb").write_text(word)
    (folder / "text").write_text(f"größe {word}")
    (folder / "loop").symlink_to(folder)
    (folder / "gone").symlink_to("nowhere")
    os.mkfifo(folder / "fifo")
    (folder / "closed").write_text(word)
    (folder / "closed").chmod(0)
    found = ann.search(f"GRÖSSE {word}")
    assert [hit["title"] for hit in found["hits"]] == ["text"] and found["complete"], found
    names = {hit["title"] for hit in ann.search(word)["hits"]}
    assert names == {"text"} | ({"closed"} if os.geteuid() == 0 else set()), names


def test_pages_have_each_hit_once(place, ann):
    word = place.word()
    for number in range(9):
        ann.page(f"Page {number}", f"{word}\n" * (number + 1))
        ann.call("notebook", mode="create", name=f"{word} {number}", newStr=word)
        (place.files / f"{word}-{number}.txt").write_text(word)
    seen, more = [], {}
    while more is not None:
        found = ann.search(word, limit=4, **more)
        assert found["total"] >= 5 and len(found["hits"]) <= 4
        seen += [hit["uri"] for hit in found["hits"]]
        more = {"cursor": found["cursor"]} if "cursor" in found else None
    assert len(seen) == len(set(seen)) == 27
    assert {uri.split("/")[3] for uri in seen[:3]} == {"pages", "notebook", "file"}
    assert set(seen[:20]) == {hit["uri"] for hit in ann.search(word, limit=20)["hits"]}


def test_an_answer_fits_a_context(place, ann):
    word = place.word()
    for number in range(30):
        ann.call("notebook", mode="create", name=f"{word} {number} " + "é" * 700, newStr=word)
    seen, more = [], {}
    while more is not None:
        found = ann.search(word, limit=50, kinds=["notebook"], **more)
        assert len(json.dumps(found, ensure_ascii=False).encode()) <= ANSWER_BYTES and found["hits"]
        seen += [hit["uri"] for hit in found["hits"]]
        more = {"cursor": found["cursor"]} if "cursor" in found else None
    assert len(seen) == len(set(seen)) == 30


# ---- rights ----


def test_default_spaces(place, ann):
    """Without a space each kind is searched where its tools would be: notebooks in the agent's own."""
    word = place.word()
    own = Caller(place.gateway, ann.face, space=None)
    own.call("notebook", mode="create", name=word, newStr=word)
    own.page(word, "text")
    Caller(place.gateway, ann.face, space="elsewhere").page(word, "text")
    found = {hit["kind"]: hit["space"] for hit in own.search(word)["hits"]}
    assert found["page"] == "shared" and found["notebook"].startswith("~") and len(found) == 2
    assert ann.kinds(word) == ["page"]
    assert [hit["space"] for hit in own.search(word, space="elsewhere")["hits"]] == ["elsewhere"]


def test_readers_and_mode_ask(place, ann):
    word = place.word()
    ann.page(word, "text")
    asking = Caller(place.gateway, ann.face, {"X-Notegate-Mode": "ask"})
    assert asking.kinds(word) == ["page"]


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """A gateway with keys, two spaces, and a root for each."""
    folder = tmp_path_factory.mktemp("keys")
    (folder / "red").mkdir()
    (folder / "blue").mkdir()
    made = Place(folder, [f"roots=red:{folder / 'red'},blue:{folder / 'blue'}"])
    made.gateway.data_dir.mkdir(exist_ok=True)
    for space in ("red", "blue"):
        (folder / space / "plan.txt").write_text("the airship of " + space)
        put_cells(folder / space / "plan.ipynb", "airship = 1")
        key = add(made.gateway.data_dir, f"writer-{space}", "--space", space)
        caller = Caller(made.gateway, "rest", bearer(key), space=None)
        caller.page("Airship of " + space, "text")
        caller.call("notebook", mode="create", name="airship", newStr=space)
    yield made
    assert made.gateway.stop() == 0, made.gateway.errors


def keyed(team, face, *options):
    keyed.count = getattr(keyed, "count", 0) + 1
    key = add(team.gateway.data_dir, f"key-{keyed.count}", *options)
    return Caller(team.gateway, face, bearer(key), space=None)


@pytest.mark.parametrize("face", FACES)
def test_only_what_a_key_may_read(team, face):
    red = keyed(team, face, "--space", "red", "--role", "reader")
    assert red.kinds("airship") == ["cell", "file", "notebook", "page"]
    assert {hit["space"] for hit in red.search("airship")["hits"]} == {"red"}
    both = keyed(team, face, "--space", "blue", "--space", "red")
    assert {hit["space"] for hit in both.search("airship")["hits"]} == {"blue"}
    assert {hit["space"] for hit in both.search("airship", space="red")["hits"]} == {"red"}
    # The key's tools decide which plugins it sees.
    few = keyed(team, face, "--space", "red", "--tool", "search", "--tool", "fileEditor")
    assert few.kinds("airship") == ["file"]
    assert keyed(team, face, "--space", "red", "--tool", "search").kinds("airship") == []
    none = keyed(team, face, "--space", "green")
    assert none.kinds("airship") == []


def test_foreign_spaces_are_refused(team):
    red = keyed(team, "rest", "--space", "red")
    refused = team.gateway.call("search", {"query": "airship", "space": "blue"}, red.headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")


# ---- scans ----


def test_roots_that_are_taken_away(tmp_path):
    """After a restart without them, nothing below them is found."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("airship")
    put_cells(root / "a.ipynb", "airship")
    for roots, kinds in ((f"roots={root}", ["cell", "file"]), ("roots=", [])):
        running = Gateway(tmp_path / "data", [roots, PATIENT])
        assert Caller(running, "rest").kinds("airship") == kinds
        assert running.stop() == 0


def test_a_scan_without_time(start, tmp_path):
    """The indexed kinds are found all the same; a call for them alone is complete."""
    running = start(["search.scan_time=0ms"])
    (running.data_dir / "files" / "a.txt").write_text("airship")
    ann = Caller(running, "rest")
    ann.page("airship", "text")
    found = ann.search("airship")
    assert [hit["kind"] for hit in found["hits"]] == ["page"] and found["complete"] is False
    assert ann.search("airship", kinds=["page", "note", "memory"])["complete"] is True


def test_newest_files_first(place, ann):
    word = place.word()
    for number in range(14):
        path = place.files / f"{word}-{number}.txt"
        path.write_text(word)
        os.utime(path, (1_700_000_000 + number * 60,) * 2)
    found, titles = ann.search(word, kinds=["file"], limit=5), []
    assert found["complete"] is False and found["total"] < 14  # the oldest were not looked at
    while "cursor" in found:
        titles += [hit["title"] for hit in found["hits"]]
        found = ann.search(word, kinds=["file"], limit=5, cursor=found["cursor"])
    titles += [hit["title"] for hit in found["hits"]]
    assert titles == [f"{word}-{number}.txt" for number in reversed(range(14))]
    assert found["complete"] is True and found["total"] == 14


@pytest.mark.parametrize("arguments", [
    {"query": ""}, {"query": "x", "limit": 51}, {"query": "x", "limit": 0}, {"query": "x", "cursor": "x"}, {"query": "x", "kinds": ["pages"]}, {}])
def test_refused_arguments(place, arguments):
    refused = place.gateway.call("search", arguments)
    assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_INPUT"), refused.text
