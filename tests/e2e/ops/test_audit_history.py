# SPDX-License-Identifier: MIT
"""The audit log's entries of the history's tools, and the OCSF activity of calls that change documents."""

import json
import subprocess

import pytest
from conftest import Gateway, binary, environment, eventually
from keys_support import add, bearer, refused

PLUGINS = "plugins=notebook,file_editor,opennotes,cells,history"
TIMEOUT = 120


@pytest.fixture
def place(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    gateway = Gateway(tmp_path / "data", [PLUGINS, f"roots={root}", f"opennotes.notebooks={root}", "audit=on"])
    yield gateway, root
    assert gateway.stop() == 0, gateway.errors


def ask(gateway, tool, arguments, run=None):
    headers = {"X-Notegate-Agent": "lead"} | ({"X-Notegate-Run": run} if run else {})
    answer = gateway.call(tool, arguments, headers)
    assert answer.status_code == 200, (tool, arguments, answer.text)
    return answer.json()["result"]


def audit(gateway, *words):
    done = subprocess.run([binary(), "audit", *words, "--data-dir", str(gateway.data_dir)], capture_output=True, text=True,
                          timeout=TIMEOUT, env=environment(), cwd="/")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def listed(gateway, *words):
    return audit(gateway, "list", "--json", *words)


def all_listed(gateway, count, *words):
    """The entries, once there are so many."""
    return eventually(lambda: (found := listed(gateway, *words)) and len(found) >= count and found, what=f"{count} entries")


def notebook(gateway, run=None, **arguments):
    return ask(gateway, "notebook", arguments, run)


def test_a_restored_file_stands_in_its_entry(place):
    gateway, root = place
    paths = [str(root / name) for name in ("a.txt", "note.md", "cells.ipynb")]
    ask(gateway, "fileEditor", {"command": "create", "path": paths[0], "file_text": "one\n"})
    ask(gateway, "fileEditor", {"command": "str_replace", "path": paths[0], "old_str": "one", "new_str": "two"})
    ask(gateway, "opennotes_create", {"title": "Note", "content": "one"})
    ask(gateway, "opennotes_edit", {"path": "note.md", "operation": "append", "content": "two"})
    ask(gateway, "createNotebook", {"notebook": paths[2]})
    ask(gateway, "addNotebookCell", {"notebook": paths[2], "type": "code", "index": 0, "content": "1"})
    before = [ask(gateway, "history_log", {"path": path})["changes"][0] for path in paths]
    for path in paths:
        ask(gateway, "history_restore", {"path": path, "at": "1"})
    found = all_listed(gateway, 3, "--tool", "history_restore")[::-1]
    for path, change, entry in zip(paths, before, found, strict=True):
        now = ask(gateway, "history_log", {"path": path})["changes"][0]
        [doc] = entry["docs"]
        assert (doc["id"], doc["collection"], doc["action"]) == (path, change["collection"], "updated")
        assert doc["seq"] == now["seq"] > change["seq"]
        assert listed(gateway, "--id", path)[0] == entry


def test_an_undo_has_the_run_of_its_changes(place):
    gateway, root = place
    path = str(root / "a.txt")
    notebook(gateway, "night", mode="create", name="made", newStr="one")
    ask(gateway, "fileEditor", {"command": "create", "path": path, "file_text": "one\n"}, "night")
    told = ask(gateway, "history_undo", {"run": "night", "dry_run": False}, "lead-1")
    assert told["undone"] == 2
    [entry] = all_listed(gateway, 1, "--run", told["undo"])
    assert (entry["tool"], entry["outcome"], entry["agent"]) == ("history_undo", "ok", "lead")
    made = ask(gateway, "history_log", {"run": told["undo"]})["changes"]
    assert {doc["id"] for doc in entry["docs"]} == {"made", path}
    assert {doc["seq"] for doc in entry["docs"]} == {change["seq"] for change in made}
    assert listed(gateway, "--tool", "history_undo") == [entry]
    # Of one that changed nothing it is the run of the call.
    notebook(gateway, "night-2", mode="create", name="kept", newStr="one")
    notebook(gateway, "day", mode="write", name="kept", newStr="two")
    told = ask(gateway, "history_undo", {"run": "night-2", "dry_run": False}, "lead-2")
    assert told["conflicts"] == 1 and "undo" not in told
    [entry] = all_listed(gateway, 1, "--run", "lead-2")
    assert entry["tool"] == "history_undo" and "docs" not in entry


def test_a_preview_is_a_read(tmp_path):
    data = tmp_path / "data"
    for reads in ("false", "true"):
        gateway = Gateway(data, [PLUGINS, "audit=on", f"audit.reads={reads}"])
        notebook(gateway, f"night-{reads}", mode="create", name=reads, newStr="one")
        ask(gateway, "history_undo", {"run": f"night-{reads}"}, f"look-{reads}")
        told = ask(gateway, "history_undo", {"run": f"night-{reads}", "dry_run": False})
        all_listed(gateway, 1, "--run", told["undo"])
        looks = listed(gateway, "--run", f"look-{reads}")
        assert [(entry["operation"], entry["outcome"]) for entry in looks] == [("preview", "ok")] * (reads == "true")
        assert gateway.stop() == 0
    [look] = audit(gateway, "export", "--ocsf", "--run", "look-true")
    assert (look["activity_id"], look["activity_name"], look["type_uid"]) == (2, "Read", 600302)


def test_the_activity_is_what_became_of_the_documents(place):
    gateway, root = place
    path, book = str(root / "a.txt"), str(root / "x.ipynb")
    book_calls = (("createNotebook", {}), ("addNotebookCell", {"type": "code", "index": 0, "content": "1"}),
                  ("updateNotebookCell", {"cellId": "1", "content": "2"}), ("deleteNotebookCells", {"cellIds": ["1"]}))
    for tool, arguments in book_calls:
        ask(gateway, tool, {"notebook": book} | arguments)
    for arguments in ({"command": "create", "file_text": "one\n"},
                      {"command": "regex_replace", "pattern": "one", "new_str": "two"},
                      {"command": "move", "destination": path + "2"}):
        ask(gateway, "fileEditor", {"path": path} | arguments)
    ask(gateway, "fileEditor", {"command": "delete", "path": path + "2"})
    notebook(gateway, "night", mode="create", name="n", newStr="one")
    notebook(gateway, mode="create", name="m", newStr="one")
    notebook(gateway, "edits", mode="write", name="m", newStr="two")
    for run in ("night", "edits"):
        ask(gateway, "history_undo", {"run": run, "dry_run": False})
    all_listed(gateway, 2, "--tool", "history_undo")
    events = [event for event in audit(gateway, "export", "--ocsf") if "resources" in event]
    assert [(event["api"]["service"]["name"], event["activity_id"]) for event in events] == [
        ("createNotebook", 1), ("addNotebookCell", 3), ("updateNotebookCell", 3), ("deleteNotebookCells", 3),
        ("fileEditor", 1), ("fileEditor", 3), ("fileEditor", 3), ("fileEditor", 4),
        ("notebook", 1), ("notebook", 1), ("notebook", 3), ("history_undo", 4), ("history_undo", 3)]


def test_a_preview_needs_the_role_writer(tmp_path):
    gateway = Gateway(tmp_path / "data", [PLUGINS, "audit=on"])
    reader = add(tmp_path / "data", "rita", "--role", "reader", plugins="notebook,history")
    error = refused(gateway.call("history_undo", {"run": "night"}, bearer(reader)), 403, "FORBIDDEN")
    assert error["message"] == "`history_undo` needs the role writer, and the caller's role is reader"
    error = refused(gateway.call("notebook", {"mode": "create", "name": "n"}, bearer(reader)), 403, "FORBIDDEN")
    assert error["message"].startswith("this call of `notebook` changes something and the caller's role is reader")
    assert gateway.stop() == 0
