# SPDX-License-Identifier: MIT
"""listNotebooks; cells.list; a change of a cell is taken back by one call."""

import json
import os
import re

import pytest
from cells_support import RUN_SECONDS, cells_gateway, need
from cells_tools_support import MODES, Handshake, code, ok, put, refused, who
from conftest import Gateway

DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


@pytest.fixture
def gateway(tmp_path):
    running = cells_gateway(tmp_path / "data")
    yield running
    assert running.stop() == 0, "".join(running.errors)


def kernelspec(language):
    return {"metadata": {"kernelspec": {"name": "x", "display_name": "X", "language": language}}}


def lines_of(gateway, arguments=None, headers=None):
    return ok(gateway, "listNotebooks", arguments, headers).split("\n")


def test_what_is_told(gateway):
    assert lines_of(gateway) == ["0 notebook(s)"]
    one = put(gateway, "b/one.ipynb", [code("a", "1"), code("b", "2")], **kernelspec("julia"))
    two = put(gateway, "a.ipynb", [], metadata={"language_info": {"name": "R"}})
    bare = put(gateway, "c.ipynb", [])
    (bare.parent / "broken.ipynb").write_text("{")
    (bare.parent / "text.txt").write_text("no notebook")
    (bare.parent / "z.ipynb").mkdir()
    put(gateway, ".ipynb_checkpoints/a-checkpoint.ipynb", [])
    (bare.parent / "link.ipynb").symlink_to("a.ipynb")
    os.utime(one, (86400, 86400))
    for mode in MODES:
        told = lines_of(gateway, {}, who("reader", mode))
        assert told[0] == "4 notebook(s):" and told[2] == f"- {one}: 2 cell(s), julia, no kernel, modified 1970-01-02T00:00:00Z"
        assert re.fullmatch(rf"- {two}: 0 cell\(s\), R, no kernel, modified {DATE}", told[1])
        assert re.fullmatch(rf"- {bare.parent}/broken\.ipynb: no usable notebook \(.*\), no kernel, modified {DATE}", told[3])
        assert re.fullmatch(rf"- {bare}: 0 cell\(s\), language unknown, no kernel, modified {DATE}", told[4])
        assert told[5:] == ["Left out: 1 hidden files and folders, 1 links"]
    # A folder, and one file, alone.
    assert lines_of(gateway, {"path": "b"})[1:] == [told[2]] == lines_of(gateway, {"path": str(one)})[1:]
    refused(gateway, "listNotebooks", {"path": "/etc"}, "PATH_OUTSIDE_ROOTS")
    refused(gateway, "listNotebooks", {"path": "none"}, "NOT_FOUND")
    refused(gateway, "listNotebooks", {"path": ""}, "INVALID_INPUT")
    for limit in (0, 1001):
        refused(gateway, "listNotebooks", {"limit": limit}, "INVALID_INPUT")


def test_a_kernel_is_alive(gateway):
    need("python3")
    path = put(gateway, "alive.ipynb", [code("a", "1")], **kernelspec("python"))
    gateway.client.post("/v1/tools/runNotebookCells", json={"notebook": str(path), "cellIds": ["a"]}, timeout=RUN_SECONDS)
    assert re.search(rf"- {path}: 1 cell\(s\), python, kernel python3 alive \(\w+\), modified", ok(gateway, "listNotebooks"))


def test_what_is_left_out(gateway):
    for number in range(120):
        put(gateway, f"many/{number:03}.ipynb", [])
    told = lines_of(gateway)
    assert told[0] == "120 notebook(s):" and len(told) == 102 and told[-1] == "Left out: 20 over `limit`"
    assert "/000.ipynb: " in told[1] and "/099.ipynb: " in told[100]
    told = lines_of(gateway, {"limit": 7})
    assert len(told) == 9 and told[-1] == "Left out: 113 over `limit`"
    large = put(gateway, "large.ipynb", [])
    with large.open("ab") as file:
        file.truncate(17 << 20)
    assert f"- {large}: over 16 MiB, cells not counted, no kernel" in ok(gateway, "listNotebooks")
    deep = gateway.data_dir / "files" / "long"
    for number in range(300):
        folder = deep / f"{number:03}{'x' * 200}"
        folder.mkdir(parents=True)
        (folder / "n.ipynb").write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    told = ok(gateway, "listNotebooks", {"path": "long", "limit": 1000})
    assert len(told) < 62 << 10 and "over the size of an answer (60 KiB)" in told


def test_roots_inside_of_roots(tmp_path):
    root = tmp_path / "root"
    (root / "below").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    for name in ("root/a.ipynb", "root/below/b.ipynb", "other/c.ipynb"):
        (tmp_path / name).write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    running = Gateway(tmp_path / "data", ["plugins=cells"],
                      ["--root", str(root / "below"), "--root", str(root), "--root", str(tmp_path / "other")])
    try:
        told = lines_of(running)
        assert [line.split(":")[0] for line in told[1:]] == [f"- {tmp_path}/{name}" for name in (
            "root/a.ipynb", "root/below/b.ipynb", "other/c.ipynb")]
    finally:
        assert running.stop() == 0


def test_tools_are_listed_always(tmp_path):
    """cells.list=always: without a notebook, also for sessions; what the mode forbids is not listed."""
    running = cells_gateway(tmp_path / "data", "cells.list=always")
    try:
        for mode in MODES:
            listed = Handshake(running, who("lists", mode)).listed()
            assert {"getNotebookCells", "getCellOutputs", "detachNotebook"} <= listed
            assert ("runNotebookCells" in listed) == ("updateNotebookCell" in listed) == (mode == "agent")
        refused(running, "getNotebookCells", {}, "NO_ACTIVE_NOTEBOOK")
    finally:
        assert running.stop() == 0


def test_the_last_change_of_a_cell_is_taken_back(tmp_path):
    """By undo_edit of the file: every kind of change, and not beyond a change of another agent."""
    running = Gateway(tmp_path / "data", ["plugins=cells,file_editor"])
    try:
        path = put(running, "undo.ipynb", [code("a", "1", outputs=[{"output_type": "stream", "name": "stdout", "text": "x"}]), code("b", "2")])
        named = {"notebook": "undo.ipynb"}
        changes = [("updateNotebookCell", {"cellId": "a", "content": "3"}),
                   ("updateNotebookCell", {"cellId": "a", "edits": [{"old_str": "1", "new_str": "one"}]}),
                   ("addNotebookCell", {"type": "code", "index": 0, "content": "new"}), ("deleteNotebookCells", {"cellIds": ["a"]}),
                   ("moveNotebookCell", {"cellId": "a", "index": 1}), ("clearCellOutputs", {})]
        before = path.read_bytes()
        for tool, arguments in changes:
            ok(running, tool, {**named, **arguments}, who("anna"))
            assert path.read_bytes() != before
            ok(running, "fileEditor", {"command": "undo_edit", "path": str(path)}, who("anna"))
            assert path.read_bytes() == before, tool
        ok(running, "createNotebook", {"notebook": "made.ipynb"}, who("anna"))
        ok(running, "fileEditor", {"command": "undo_edit", "path": str(path.with_name("made.ipynb"))}, who("anna"))
        assert not path.with_name("made.ipynb").exists()
    finally:
        assert running.stop() == 0
