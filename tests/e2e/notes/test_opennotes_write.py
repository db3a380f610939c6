# SPDX-License-Identifier: MIT
"""Notes that agents write, in a vault as people have it: small diffs, kills in mid-write, repeats, parallel agents."""

import concurrent.futures
import json
import os
import random
import subprocess
import threading

import httpx
import pytest
from conftest import Gateway, binary, environment
from disk_support import bound

SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
KILLS = 3 if SANITIZED else 8
TIMEOUT = 120

DAILY = "---\ntags: [daily]\n---\n## Log\n"
PROJECT = """---
title: "Project Alpha"   # shown in the graph
aliases:
  - Alpha
tags: [project, work/alpha]
status: active
due: 2026-03-01
cssclasses:
- wide
summary: >-
  A long
  summary
rating: 4.50
---
# Project Alpha

See [[Meeting 1|the meeting]] and [tasks](Tasks/List.md).

## Tasks

- [ ] one
- [x] two

## Notes

Text with ```` ## no heading ````.
"""


@pytest.fixture
def vault(tmp_path):
    """A folder as Obsidian leaves it, in git."""
    folder = tmp_path / "vault"
    (folder / ".obsidian").mkdir(parents=True)
    (folder / ".obsidian" / "app.json").write_text("{}\n")
    (folder / "Projects").mkdir()
    (folder / "Projects" / "Project Alpha.md").write_text(PROJECT)
    (folder / "Windows.md").write_bytes(b"\xef\xbb\xbf" + PROJECT.replace("\n", "\r\n").encode())
    (folder / "Tasks").mkdir()
    (folder / "Tasks" / "List.md").write_text("- [ ] a\n")
    (folder / "Meeting 1.md").write_text("No front matter.\n")
    config = {"name": "Vault", "templates": {"daily": DAILY}, "something": {"of": ["another", "program"]}}
    (folder / ".opennotes.json").write_text(json.dumps(config, indent=3))
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "vault")
    return folder


def git(folder, *words):
    options = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.autocrlf=false",
               "-c", "core.quotePath=false", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *options, *words], cwd=folder, capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def serve(start, folder, **more):
    return start(sets=[f"opennotes.notebooks={folder}"], **more)


def ok(gateway, tool, arguments, headers=None):
    answer = gateway.call(f"opennotes_{tool}", arguments, headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def changed(folder):
    """The lines of the whole difference, '+' and '-' alone."""
    return [line for line in git(folder, "diff", "-U0").split("\n")
            if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))]


@pytest.mark.parametrize("path", ["Projects/Project Alpha.md", "Windows.md"])
def test_an_edit_changes_what_it_says_and_nothing_else(start, vault, path):
    gateway = serve(start, vault)
    end = "\r" if path == "Windows.md" else ""
    steps = [
        ({"operation": "set", "data": {"status": "done"}}, ["-status: active", "+status: done"]),
        ({"operation": "set", "data": {"rating": 4.5}}, ["-rating: 4.50", "+rating: 4.5"]),
        ({"operation": "set", "data": {"title": "Alpha: new"}},
         ['-title: "Project Alpha"   # shown in the graph', '+title: "Alpha: new"   # shown in the graph']),
        ({"operation": "set", "data": {"cssclasses": ["wide", "tall"]}}, ["+- tall"]),
        ({"operation": "set", "data": {"priority": 2}}, ["+priority: 2"]),
        ({"operation": "set", "data": {"aliases": None}}, ["-aliases:", "-  - Alpha"]),
        ({"operation": "replace_section", "section": "Tasks", "content": "- [x] one\n- [x] two"},
         ["-- [ ] one", "+- [x] one"]),
        ({"operation": "append", "content": "The end."}, ["+The end."]),
        ({"operation": "prepend", "content": "First."}, ["+First."]),
    ]
    for arguments, lines in steps:
        before = ok(gateway, "get", {"path": path})["note"]["revision"]
        done = ok(gateway, "edit", {"path": path, "expectedRevision": before, **arguments})
        assert changed(vault) == [line + end for line in lines]
        assert done["revision"] != before
        assert ok(gateway, "get", {"path": path})["note"]["revision"] == done["revision"]
        git(vault, "commit", "-aqm", "step")
    assert git(vault, "status", "--porcelain") == ""


def test_a_second_name_stays(start, vault):
    gateway = serve(start, vault)
    path, second = vault / "Meeting 1.md", vault / "Tasks" / "Meeting.md"
    os.link(path, second)
    ok(gateway, "edit", {"path": "Meeting 1.md", "operation": "append", "content": "One."})
    ok(gateway, "edit", {"path": "Tasks/Meeting.md", "operation": "append", "content": "Two."})
    assert path.stat().st_ino == second.stat().st_ino and path.stat().st_nlink == 2
    assert path.read_text() == "No front matter.\nOne.\nTwo.\n"


def test_a_mounted_note_is_written(start, vault, tmp_path):
    source = tmp_path / "source.md"
    source.write_text("# Mounted\n")
    with bound(source, vault / "Mounted.md"):
        gateway = serve(start, vault)
        ok(gateway, "edit", {"path": "Mounted.md", "operation": "append", "content": "One."})
        assert source.read_text() == "# Mounted\nOne.\n"


def test_reading_and_refused_writes_change_nothing(start, vault, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (vault / "way out").symlink_to(outside)
    git(vault, "add", "-A")
    git(vault, "commit", "-qm", "link")
    gateway = serve(start, vault)
    before = {path: path.lstat().st_mtime_ns for path in vault.rglob("*") if ".git" not in path.parts}
    for view in ("today", "recent", "kanban", "untagged", "orphans", "broken-links"):
        ok(gateway, "views", {"view": view})
    ok(gateway, "views", {})
    ok(gateway, "tags", {})
    ok(gateway, "links", {"path": "Projects/Project Alpha.md"})
    for path in ("../x", "/tmp", "way out", "way out/deeper", ".obsidian", "a/../../b", "Tasks/List.md/x"):
        answer = gateway.call("opennotes_create", {"title": "x", "path": path})
        assert answer.status_code >= 400, answer.text
    answer = gateway.call("opennotes_edit", {"path": "way out/x.md", "operation": "append", "content": "x"})
    assert answer.status_code == 404
    assert list(outside.iterdir()) == []
    after = {path: path.lstat().st_mtime_ns for path in vault.rglob("*") if ".git" not in path.parts}
    assert after == before
    assert git(vault, "status", "--porcelain") == ""


def test_made_notes_and_the_day(start, vault):
    gateway = serve(start, vault)
    config = (vault / ".opennotes.json").read_bytes()
    made = ok(gateway, "create", {"title": "Über Café", "path": "Projects", "data": {"status": "todo"},
                                  "content": "See [[Project Alpha]]."})
    assert made["created"]["path"] == "Projects/über-café.md"
    assert made["created"]["absolutePath"] == str(vault / "Projects" / "über-café.md")
    links = ok(gateway, "links", {"path": "Projects/Project Alpha.md", "kind": "incoming"})
    assert links["incoming"] == [{"path": "Projects/über-café.md", "line": 6, "context": "See [[Project Alpha]]."}]
    day = ok(gateway, "daily", {"date": "2026-02-28", "content": "- 10:00 wrote a test"})
    assert day["created"] is True
    assert (vault / day["note"]["path"]).read_text().endswith("---\n## Log\n- 10:00 wrote a test\n")
    board = ok(gateway, "views", {"view": "kanban", "params": {"status": "todo,active"}})
    rows = [(row["status"], row["path"]) for row in board["results"]]
    assert rows[0] == ("todo", "Projects/über-café.md")
    # Of one status the newest comes first, and which of these two is depends on when the vault was made.
    assert sorted(rows[1:]) == [("active", "Projects/Project Alpha.md"), ("active", "Windows.md")]
    assert (vault / ".opennotes.json").read_bytes() == config
    assert oct((vault / "Projects" / "über-café.md").stat().st_mode & 0o777) == "0o644"


def test_a_repeat_with_a_key_is_answered_and_not_done_again(start, vault):
    gateway = serve(start, vault)
    headers = {"Idempotency-Key": "one"}
    create = {"title": "Once", "content": "x"}
    first = gateway.call("opennotes_create", create, headers)
    again = gateway.call("opennotes_create", create, headers)
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    append = {"path": "once.md", "operation": "append", "content": "line"}
    headers = {"Idempotency-Key": "two"}
    first = gateway.call("opennotes_edit", append, headers)
    assert gateway.call("opennotes_edit", append, headers).json() == first.json()
    assert (vault / "once.md").read_text().count("line\n") == 1


def test_many_agents_make_one_note_and_lose_no_line(start, vault):
    gateway = serve(start, vault)
    count = 50
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        made = list(pool.map(lambda _: gateway.call("opennotes_create", {"title": "Same"}), range(count)))
        assert sorted(answer.status_code for answer in made) == [200] + [409] * (count - 1)
        assert {answer.json()["code"] for answer in made if answer.status_code == 409} == {"NOTE_EXISTS"}
        added = list(pool.map(lambda i: gateway.call("opennotes_edit", {
            "path": "same.md", "operation": "append", "content": f"- line {i}."}), range(count)))
        assert {answer.status_code for answer in added} == {200}
    text = (vault / "same.md").read_text()
    assert all(text.count(f"- line {i}.\n") == 1 for i in range(count))
    assert len({answer.json()["result"]["revision"] for answer in added}) == count


def test_readers_and_strangers_may_not_write(start, vault):
    gateway = serve(start, vault)

    def key(name, *options):
        done = subprocess.run([binary(), "key", "add", name, *options, "--data-dir", str(gateway.data_dir)],
                              capture_output=True, text=True, env=environment(), timeout=TIMEOUT)
        assert done.returncode == 0, done.stderr
        return {"Authorization": f"Bearer {done.stdout.strip()}"}

    reader = key("eve", "--role", "reader")
    stranger = key("sam", "--space", "~sam")
    assert gateway.call("opennotes_tags", {}, reader).status_code == 200
    for tool, arguments in (("create", {"title": "x"}), ("daily", {}),
                            ("edit", {"path": "Meeting 1.md", "operation": "append", "content": "x"})):
        assert gateway.call(f"opennotes_{tool}", arguments, reader).status_code == 403
        answer = gateway.call(f"opennotes_{tool}", arguments, stranger)
        assert answer.json()["code"] in ("NOTEBOOK_NOT_FOUND", "NOT_CONFIGURED", "FORBIDDEN"), answer.text
    assert git(vault, "status", "--porcelain") == ""


def write_until_dead(gateway, agent, acknowledged, stop):
    """Appends, sets and creates until the gateway is gone; records acknowledged writes."""
    number = 0
    client = httpx.Client(base_url=gateway.url, timeout=TIMEOUT, trust_env=False)
    try:
        while not stop.is_set():
            number += 1
            word = f"{gateway.process.pid}-{agent}-{number}"
            calls = [("edit", {"path": "Meeting 1.md", "operation": "append", "content": f"- {word}."}),
                     ("edit", {"path": "Projects/Project Alpha.md", "operation": "set",
                               "data": {f"k{agent}": word}}),
                     ("create", {"title": word, "path": "made", "content": word + "\n" + "x" * 20000})]
            for tool, arguments in calls:
                if client.post(f"/v1/tools/opennotes_{tool}", json=arguments).status_code == 200:
                    acknowledged.append((tool, arguments, word))
    except httpx.HTTPError:
        pass
    finally:
        client.close()


def test_kills_leave_old_or_new_and_no_other_file(vault, tmp_path):
    data = tmp_path / "data"
    acknowledged = []
    for _ in range(KILLS):
        gateway = Gateway(data, sets=[f"opennotes.notebooks={vault}"])
        stop = threading.Event()
        lists = [[] for _ in range(4)]
        threads = [threading.Thread(target=write_until_dead, args=(gateway, agent, lists[agent], stop))
                   for agent in range(4)]
        try:
            for thread in threads:
                thread.start()
            wanted = random.randint(5, 60)
            while sum(map(len, lists)) < wanted and all(thread.is_alive() for thread in threads):
                stop.wait(0.005)
        finally:
            gateway.process.kill()
            gateway.process.wait()
            stop.set()
            for thread in threads:
                thread.join()
            gateway.client.close()
        acknowledged += [item for some in lists for item in some]
        assert sum(map(len, lists)) >= wanted
    gateway = Gateway(data, sets=[f"opennotes.notebooks={vault}"])
    try:
        listed = ok(gateway, "tags", {})
        assert listed["pagination"]["total"] >= 3
        meeting = (vault / "Meeting 1.md").read_text()
        project = (vault / "Projects" / "Project Alpha.md").read_text()
        for tool, arguments, word in acknowledged:
            if tool == "create":
                text = (vault / "made" / f"{word}.md").read_text()
                assert text.startswith("---\n") and text.endswith("x\n")
                assert len(text) > 20000
            elif arguments["operation"] == "append":
                assert meeting.count(f"- {word}.\n") == 1
        assert meeting.startswith("No front matter.\n")
        assert project.endswith(PROJECT.split("rating: 4.50\n")[1].split("---\n", 1)[1])
        # Every file is a note that was asked for, whole; nothing else is there.
        strays = [str(path) for path in vault.rglob("*") if path.is_file() and ".git" not in path.parts
                  and path.suffix != ".md" and path.name not in (".opennotes.json", "app.json")]
        assert strays == []
        for path in (vault / "made").iterdir():
            assert path.read_text().endswith("x" * 20000 + "\n"), path
    finally:
        assert gateway.stop() == 0, gateway.errors
