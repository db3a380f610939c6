# SPDX-License-Identifier: MIT
"""The versions of files: of plain files, notes and notebooks of cells that agents and other programs save in one root, over REST
and with the commands; and after a gateway was killed amid saves."""

import concurrent.futures
import json
import os
import random
import re
import threading
import time
import urllib.parse

import httpx
import pytest
from cli_support import environment, notegate
from conftest import Gateway, eventually

PLUGINS = "plugins=file_editor,opennotes,cells,history"
RUNS = {"ada": "night", "bob": "day"}
SEED = int(os.environ.get("NOTEGATE_TEST_SEED", random.randrange(2**32)))
SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
KILLS = 2 if SANITIZED else 5
WRITERS = 6
FILES = 3
NOTEBOOK = {"cells": [{"cell_type": "code", "execution_count": None, "id": "c", "metadata": {}, "outputs": [], "source": "1"}],
            "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


class World:
    """A gateway with a root of files, notes and notebooks of cells."""

    def __init__(self, folder, *more):
        self.data, self.root = folder / "data", folder / "root"
        self.root.mkdir()
        self.sets = [PLUGINS, f"roots={self.root}", f"opennotes.notebooks={self.root}", *more]
        self.gateway = Gateway(self.data, self.sets)

    def write(self, agent, tool, /, **arguments):
        answer = self.gateway.call(tool, arguments, {"X-Notegate-Agent": agent, "X-Notegate-Run": RUNS[agent]})
        assert answer.status_code == 200, (tool, arguments, answer.text)
        return answer.json()["result"]

    def get(self, route, accept="application/json", /, **parameters):
        answer = self.gateway.client.get(f"/v1/history{route}", params=parameters, headers={"Accept": accept})
        assert answer.status_code == 200, (route, parameters, answer.text)
        return answer

    def bytes_at(self, name, version):
        return self.get("/at", "text/plain", path=str(self.root / name), at=str(version)).content

    def command(self, *words, cwd="/", status=0):
        env = environment(NOTEGATE_PLUGINS=PLUGINS.removeprefix("plugins="))
        done = notegate(*words, "--data-dir", self.data, env=env, cwd=cwd)
        assert done.returncode == status, (words, done)
        return done.stdout if status == 0 else done.stderr

    def log(self, *words):
        return [change for line in self.command("log", *words, "--json").splitlines() for change in json.loads(line)["changes"]]

    def edit(self, agent, name, line, text):
        self.write(agent, "fileEditor", command="insert", path=str(self.root / name), insert_line=line, new_str=text)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """What two agents and another program have done, and the bytes of each version in `saved`: (name, version) to bytes."""
    made = World(tmp_path_factory.mktemp("files"))
    made.saved = {}

    def keep(name, version):
        made.saved[name, version] = (made.root / name).read_bytes()

    made.write("ada", "fileEditor", command="create", path=str(made.root / "plain.txt"), file_text="one\ntwo\n")
    keep("plain.txt", 1)
    made.edit("bob", "plain.txt", 1, "between")
    keep("plain.txt", 2)
    (made.root / "plain.txt").write_text("one\nbetween\nof another program\n")
    keep("plain.txt", 3)
    made.edit("ada", "plain.txt", 3, "last")
    keep("plain.txt", 4)
    (made.root / "note.md").write_text("# Note\n\n- [ ] one\n")
    keep("note.md", 1)
    made.write("bob", "opennotes_edit", path="note.md", operation="str_replace", oldStr="- [ ] one", newStr="- [x] one")
    keep("note.md", 2)
    made.edit("ada", "note.md", 3, "- [ ] two")
    keep("note.md", 3)
    (made.root / "cells.ipynb").write_text(json.dumps(NOTEBOOK, indent=1) + "\n")
    keep("cells.ipynb", 1)
    made.write("ada", "updateNotebookCell", notebook=str(made.root / "cells.ipynb"), cellId="c", content="2 + 3")
    keep("cells.ipynb", 2)
    yield made
    assert made.gateway.stop() == 0, "".join(made.gateway.errors)


def test_each_version_has_the_bytes_of_the_file(world):
    for (name, version), data in world.saved.items():
        assert world.bytes_at(name, version) == data, (name, version)
        command = ("show", f"{world.root / name}@{version}")
        assert world.command(*command).encode() == data, command


def test_the_log_of_a_file(world):
    path = str(world.root / "plain.txt")
    changes = world.get("", path=path).json()["changes"]
    assert [(change["agent"], change["run"], change["revision"], change["action"], change["summary"]) for change in changes] == [
        ("ada", "night", 4, "updated", "last"), ("bob", "day", 2, "updated", "between"), ("ada", "night", 1, "created", "one")]
    assert {(change["id"], change["tool"], change["kept"]) for change in changes} == {(path, "fileEditor", True)}
    assert world.log(path) == changes
    assert [change["revision"] for change in world.log(path, "--agent", "bob")] == [2]
    deep = world.data.parent / "deep" / "er"
    deep.mkdir(parents=True)
    for folder, word in ((world.root, "./plain.txt"), (world.data, "../root/plain.txt"), (deep, "./.././../root/plain.txt"),
                         ("/", f".{path}")):
        told = world.command("log", word, cwd=folder)
        assert told == world.command("log", path) and path in told
    names = {change["id"] for change in world.get("", path=f"{world.root}/*").json()["changes"]}
    assert names == {str(world.root / name) for name in ("plain.txt", "note.md", "cells.ipynb")}


def test_one_history_whichever_tool_saved(world):
    changes = world.get("", path=str(world.root / "note.md")).json()["changes"]
    assert [(change["tool"], change["revision"]) for change in changes] == [("fileEditor", 3), ("opennotes_edit", 2)]
    assert len({change["collection"] for change in changes}) == 2
    (change,) = world.get("", path=str(world.root / "cells.ipynb")).json()["changes"]
    assert (change["tool"], change["revision"]) == ("updateNotebookCell", 2)


def test_blame_of_a_file(world):
    path = str(world.root / "plain.txt")
    answer = world.get("/blame", path=path).json()
    assert answer["exact"] and answer["revision"] == 4
    rows = [(row["text"], row["revision"], row.get("agent"), row.get("run")) for row in answer["lines"]]
    assert rows[:4] == [("one", 1, "ada", "night"), ("between", 2, "bob", "day"), ("of another program", 3, None, None),
                        ("last", 4, "ada", "night")]
    told = world.command("blame", path).splitlines()
    assert "ada" in told[0] and "bob" in told[1] and "ada" not in told[2] and told[2].endswith("of another program")
    assert world.command("blame", "./plain.txt", cwd=world.root).splitlines() == told


def test_diffs_of_files(world):
    path = str(world.root / "plain.txt")
    wanted = f"--- {path}@3\n+++ {path}@4\n"
    assert world.get("/diff", "text/plain", path=path).text.startswith(wanted)
    assert "+last" in world.command("diff", path)
    assert world.command("diff", f"{path}@1..2").count("\n+between\n") == 1
    rows = {row["id"]: row for row in world.get("/diff", run="night").json()["documents"]}
    assert {name: (row["from"], row["to"], row["others"]) for name, row in rows.items()} == {
        path: (0, 4, 2), str(world.root / "note.md"): (2, 3, 0), str(world.root / "cells.ipynb"): (1, 2, 0)}
    assert f"{path}@4" in world.command("diff", "--run", "night")


def test_events_name_the_version(world):
    events = world.gateway.client.get("/v1/events", params={"agent": "ada"}, headers={"Accept": "application/json"}).json()["events"]
    found = [(event["version"], event["added"], event["removed"]) for event in events if event["id"].endswith("plain.txt")]
    assert found == [(1, 3, 0), (4, 1, 0)]
    assert all(re.fullmatch("[0-9a-f]{32}", event["revision"]) for event in events)


def test_a_file_without_versions(world):
    (world.root / "new.txt").write_text("new\n")
    for words in (("show",), ("blame",), ("diff",)):
        told = world.command(*words, "./new.txt", cwd=world.root, status=1)
        assert "no version of" in told and "history.files" in told
    assert world.log(str(world.root / "new.txt")) == []
    done = notegate("log", world.root / "new.txt", "--data-dir", world.data, env=environment())
    assert (done.returncode, done.stdout) == (0, "") and f"no change fits: no tool has changed {world.root / 'new.txt'}" in done.stderr
    (world.root / "new.txt").unlink()


def test_bytes_that_are_no_text(world):
    data = bytes(range(256)) * 3
    path = world.root / "bytes.bin"
    path.write_bytes(data)
    world.write("ada", "fileEditor", command="copy", path=str(path), destination=str(world.root / "copy.bin"))
    answer = world.get("/at", "text/plain", path=str(world.root / "copy.bin"))
    assert answer.content == data and answer.headers["Content-Type"] == "application/octet-stream"
    assert world.get("/at", path=str(world.root / "copy.bin")).json()["encoding"] == "base64"


def test_the_log_with_comparisons(world):
    """The lines that `diff` shows of the same version, of each kind of file; also of one that was moved since, and of a copy."""
    for name, version in (("plain.txt", 4), ("plain.txt", 2), ("note.md", 3), ("cells.ipynb", 2)):
        path = str(world.root / name)
        compared = world.command("diff", f"{path}@{version - 1}..{version}")
        assert compared.startswith(f"--- {path}@{version - 1}\n") and compared in world.command("log", path, "-p"), name
    for words in (("--run", "day"), ("--tool", "updateNotebookCell"), (str(world.root / "plain.txt"),)):
        assert "no comparison" not in world.command("log", "-p", "-n", "100", *words), words
    old, new = str(world.root / "old.txt"), str(world.root / "new.txt")
    world.write("ada", "fileEditor", command="create", path=old, file_text="first\n")
    world.edit("ada", "old.txt", 1, "second")
    world.write("bob", "fileEditor", command="move", path=old, destination=new)
    world.edit("bob", "new.txt", 2, "third")
    told = world.command("log", new, "-p")
    assert all(f"\n+{line}\n" in told for line in ("first", "second", "third")) and "no comparison" not in told
    assert f"--- {old}@1\n+++ {old}@2\n" in told


def test_files_by_their_uris(world):
    """As search and MCP name them; the history of a cell is that of its notebook."""
    for kind, name, more in (("file", "plain.txt", ""), ("note", "note.md", ""), ("file", "cells.ipynb", ""), ("cell", "cells.ipynb", "#c")):
        path = str(world.root / name)
        uri = f"notegate://shared/{kind}/{urllib.parse.quote(path + more, safe='')}"
        for words in (("show",), ("blame",), ("diff",), ("log",), ("log", "-p")):
            assert world.command(*words, uri) == world.command(*words, path), (words, uri)
        for words in (("show", "@1"), ("blame", "@1"), ("diff", "@1.."), ("diff", "@1..2")):
            assert world.command(words[0], uri + words[1]) == world.command(words[0], path + words[1]), (words, uri)
    assert "absolute path" in world.command("show", "notegate://shared/file/plain.txt", status=2)


def test_a_change_without_a_version_has_no_comparison(tmp_path):
    world = World(tmp_path, "history.files=false")
    world.write("ada", "fileEditor", command="create", path=str(world.root / "a.txt"), file_text="one\n")
    assert "(no comparison: its content is not kept)" in world.command("log", "-p")
    assert world.gateway.stop() == 0


# ---- kills ----


class Writer:
    """Puts lines on top of files, each line once, until the gateway is gone."""

    def __init__(self, number, world, chance):
        self.agent, self.world, self.chance = f"agent-{number}", world, chance
        self.count, self.told = 0, []

    def work(self, url):
        with httpx.Client(base_url=url, timeout=60, trust_env=False, headers={"X-Notegate-Agent": self.agent}) as client:
            while True:
                self.count += 1
                name, line = f"{self.chance.randrange(FILES)}.txt", f"{self.agent} {self.count}"
                arguments = {"command": "insert", "path": str(self.world.root / name), "insert_line": 0, "new_str": line}
                try:
                    answer = client.post("/v1/tools/fileEditor", json=arguments)
                except httpx.HTTPError:
                    return
                assert answer.status_code in (200, 409, 503), answer.text
                if answer.status_code == 200:
                    self.told.append((name, line))


def meddle(world, chance, stop, number):
    """Another program, which replaces the files."""
    count = 0
    while not stop.wait(chance.uniform(0.005, 0.03)):
        count += 1
        path = world.root / f"{chance.randrange(FILES)}.txt"
        beside = path.with_suffix(".new")
        beside.write_text(f"other {number}.{count}\n" + path.read_text()[:2000].rpartition("\n")[0] + "\n")
        beside.replace(path)


def versions_of(world, name):
    """[(the answer of history_read, bytes)] from the first to the newest."""
    path, found = str(world.root / name), []
    newest = world.get("/at", path=path).json()["revision"]
    for version in range(1, newest + 1):
        found.append((world.get("/at", path=path, at=str(version)).json(), world.bytes_at(name, version)))
    return found


def expect_chain(world, name):
    """The newest version has the bytes of the file; each other one is that before it with a line on top, or of another program.
    Returns the lines that agents put in."""
    versions, lines, before = versions_of(world, name), [], b""
    for number, (version, data) in enumerate(versions, 1):
        assert version["revision"] == number
        if version["action"] in ("found", "external"):
            assert "agent" not in version and version["action"] == ("found" if number == 1 else "external")
            assert data != before, (name, number, "nothing was saved by another program")
        else:
            top, _, rest = data.partition(b"\n")
            assert rest == before, (name, number, version["action"])
            assert top.decode().rsplit(" ", 1)[0] == version["agent"], (name, number)
            lines.append(top.decode())
        before = data
    assert len(set(lines)) == len(lines), "a change has two versions"
    return versions, lines


def test_kills_amid_saves(tmp_path):
    print(f"NOTEGATE_TEST_SEED={SEED}")
    chance = random.Random(SEED)
    world = World(tmp_path)
    for number in range(FILES):
        (world.root / f"{number}.txt").write_text(f"file {number}\n")
    writers = [Writer(number, world, random.Random(chance.random())) for number in range(WRITERS)]
    for round_number in range(KILLS):
        before, stop = sum(len(writer.told) for writer in writers), threading.Event()
        with concurrent.futures.ThreadPoolExecutor(WRITERS + 1) as pool:
            tasks = [pool.submit(writer.work, world.gateway.url) for writer in writers]
            tasks.append(pool.submit(meddle, world, random.Random(chance.random()), stop, round_number))
            try:
                eventually(lambda before=before: sum(len(writer.told) for writer in writers) > before + 20, what="twenty saves")
                time.sleep(chance.uniform(0, 0.2))
            finally:
                world.gateway.process.kill()
                stop.set()
        for task in tasks:
            task.result()
        world.gateway.process.wait()
        world.gateway.client.close()
        world.gateway = Gateway(world.data, world.sets)
    try:
        check_after_kills(world, writers)
    finally:
        assert world.gateway.stop() == 0, "".join(world.gateway.errors)


def check_after_kills(world, writers):
    told = {name: {line for writer in writers for at, line in writer.told if at == name} for name in (f"{n}.txt" for n in range(FILES))}
    for name, lines in told.items():
        there = (world.root / name).read_bytes()
        versions, found = expect_chain(world, name)
        assert lines <= set(found), "a save that was answered has no version"
        newest = versions[-1][1]
        answer = world.gateway.call("fileEditor", {"command": "insert", "path": str(world.root / name), "insert_line": 0,
                                                   "new_str": "agent-0 end"}, {"X-Notegate-Agent": "agent-0"})
        assert answer.status_code == 200, answer.text
        after, _ = expect_chain(world, name)
        added = [version["action"] for version, _ in after[len(versions):]]
        assert added == (["updated"] if newest == there else ["external", "updated"]), name
        assert after[-2][1] == there and after[-1][1] == (world.root / name).read_bytes()
