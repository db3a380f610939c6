# SPDX-License-Identifier: MIT
"""createNotebook with its cells: made in one save, and run."""

import concurrent.futures
import json
import re
import subprocess

import nbformat
import pytest
from cells_support import RUN_SECONDS, cells_gateway, need
from cells_tools_support import Handshake, modern, ok, refused, who
from conftest import binary, eventually

CELLS = [{"type": "markdown", "content": "# Sum"}, {"type": "Code", "content": "x = 41\nx + 1"},
         {"type": "code", "content": "print('sum', x)"}, {"type": "raw", "content": "raw"}]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    running = cells_gateway(tmp_path_factory.mktemp("create") / "data")
    yield running
    assert running.stop() == 0, "".join(running.errors)


def load(gateway, name):
    path = gateway.data_dir / "files" / name
    nbformat.validate(nbformat.read(path, as_version=4))
    return json.loads(path.read_text())["cells"]


def text_of(cell):
    return "".join("".join(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in cell["outputs"])


def test_it_has_its_cells(gateway):
    path = gateway.data_dir / "files" / "made" / "new.ipynb"
    said = ok(gateway, "createNotebook", {"notebook": "made/new.ipynb", "cells": CELLS})
    cells = load(gateway, "made/new.ipynb")
    ids = ", ".join(f"{cell['id']} (index {index})" for index, cell in enumerate(cells))
    assert said == f"Created the notebook {path}. Cell IDs: {ids}"
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in cells] == [
        (cell["type"].lower(), cell["content"]) for cell in CELLS]
    assert len({cell["id"] for cell in cells}) == len(cells)
    one = ok(gateway, "createNotebook", {"notebook": "made/one.ipynb", "cells": CELLS[:1]})
    assert re.fullmatch(rf"Created the notebook {path.parent}/one\.ipynb\. Cell ID: [0-9a-f]{{8}} \(index 0\)", one)
    none = ok(gateway, "createNotebook", {"notebook": "made/none.ipynb", "cells": []})
    assert none == f"Created the notebook {path.parent}/none.ipynb without cells" and load(gateway, "made/none.ipynb") == []


def test_nothing_is_made_of_wrong_cells(gateway):
    made = gateway.data_dir / "files" / "wrong.ipynb"
    for cells, words in (([{"type": "chart", "content": ""}], "cells[0]"), ([{"type": "code"}], "content"),
                         ([*CELLS, {"type": "code", "content": "x" * 1_000_001}], "1000000"),
                         ([{"type": "code", "content": ""}] * 101, "100")):
        error = refused(gateway, "createNotebook", {"notebook": "wrong.ipynb", "cells": cells, "run": True},
                        "TOO_LARGE" if "1000000" in words else "INVALID_INPUT")
        assert words in error["message"], error
        assert not made.exists()


@pytest.mark.parametrize("transport", ["rest", "session", "stateless"])
def test_it_runs(gateway, transport):
    need("python3")
    name = f"run-{transport}.ipynb"
    path = gateway.data_dir / "files" / name
    arguments = {"notebook": name, "cells": CELLS, "run": True}
    if transport == "rest":
        answer = gateway.client.post("/v1/tools/createNotebook", json=arguments, timeout=RUN_SECONDS).json()
        said, meta = answer["result"], answer["_meta"]
    elif transport == "session":
        answer = Handshake(gateway, {}).post("tools/call", {"name": "createNotebook", "arguments": arguments}).json()["result"]
        said, meta = answer["content"][0]["text"], answer["_meta"]
    else:
        answer = modern(gateway, "tools/call", {}, name="createNotebook", arguments=arguments)["result"]
        said, meta = answer["content"][0]["text"], answer["_meta"]
    cells = load(gateway, name)
    assert said == ("Successfully executed 2 cell(s).\n2 cell(s) were skipped: no code, or tagged skip-execution.\n"
                    "A new kernel was started for this notebook: `python3`.\n\nOutputs:\n"
                    f"Cell {cells[1]['id']}:\n42\n\nCell {cells[2]['id']}:\nsum 41\nNotebook: {path}")
    assert meta["notegate/notebook"] == str(path)
    assert [text_of(cell) for cell in cells[1:3]] == ["42", "sum 41\n"]
    error = refused(gateway, "createNotebook", arguments, "CONFLICT")
    assert "already exists" in error["message"] and load(gateway, name) == cells


def test_a_cell_that_fails_and_a_kernel_that_dies(gateway):
    """The notebook is there, with the outputs so far."""
    need("python3")
    cases = {"fails": ("raise ValueError('no')", "CELL_FAILED", "ValueError: no"),
             "dies": ("import os; os._exit(7)", "KERNEL_FAILED", "exit code 7")}
    for name, (source, code, words) in cases.items():
        cells = [{"type": "code", "content": text} for text in ("print('first')", source, "print('never')")]
        answer = gateway.client.post("/v1/tools/createNotebook", timeout=RUN_SECONDS,
                                     json={"notebook": f"{name}.ipynb", "cells": cells, "run": True})
        error = answer.json()
        assert answer.status_code == 422 and error["code"] == code and words in error["message"], error
        assert error["message"].endswith(f"\nNotebook: {gateway.data_dir}/files/{name}.ipynb")
        made = load(gateway, f"{name}.ipynb")
        assert len(made) == 3 and text_of(made[0]) == "first\n" and made[2]["outputs"] == []
    # The next run of the notebook has a new kernel.
    answer = gateway.client.post("/v1/tools/runNotebookCells", timeout=RUN_SECONDS,
                                 json={"notebook": "dies.ipynb", "cellIds": [0]})
    assert "all its variables are lost" in answer.json()["result"], answer.text


def test_several_make_one_at_once(gateway):
    """One of them makes it, and what it runs is its own; the others are refused."""
    need("python3")

    def make(number):
        return number, gateway.client.post("/v1/tools/createNotebook", timeout=RUN_SECONDS, headers=who(f"maker{number}"), json={
            "notebook": "race.ipynb", "run": True, "cells": [{"type": "code", "content": f"print('maker', {number})"}]})

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = dict(pool.map(make, range(6)))
    made = [number for number, answer in answers.items() if answer.status_code == 200]
    assert len(made) == 1, {number: answer.text for number, answer in answers.items()}
    assert all(answer.json()["code"] == "CONFLICT" for number, answer in answers.items() if number not in made)
    cell, = load(gateway, "race.ipynb")
    assert text_of(cell) == f"maker {made[0]}\n"


def test_others_change_what_it_runs(gateway, tmp_path):
    """Cells that are added, changed and deleted while its first one runs: each change stays, and outputs are with their cells."""
    need("python3")
    gate = tmp_path / "gate"
    wait = f"import os, time\nprint('begun')\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    cells = [{"type": "code", "content": text} for text in (wait, "print('two')", "print('three')")]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(gateway.client.post, "/v1/tools/createNotebook", timeout=RUN_SECONDS,
                          json={"notebook": "busy.ipynb", "cells": cells, "run": True})
        named = {"notebook": "busy.ipynb"}
        eventually(lambda: "Execution: running" in gateway.call("getNotebookCells", named).text, RUN_SECONDS, "the first cell runs")
        ids = [cell["id"] for cell in load(gateway, "busy.ipynb")]
        ok(gateway, "updateNotebookCell", {**named, "cellId": ids[1], "content": "print('other two')"})
        ok(gateway, "deleteNotebookCells", {**named, "cellIds": [ids[2]]})
        ok(gateway, "addNotebookCell", {**named, "type": "code", "index": 0, "content": "print('not run')"})
        gate.touch()
        answer = run.result(RUN_SECONDS)
    assert answer.status_code == 200, answer.text
    assert f"The source of cell {ids[1]} was changed" in answer.json()["result"]
    made = load(gateway, "busy.ipynb")
    assert [(cell["id"] in ids, text_of(cell)) for cell in made] == [(False, ""), (True, "begun\n"), (True, "other two\n")]


def test_only_whoever_may_run_code_runs_it(tmp_path):
    data = tmp_path / "data"
    key = subprocess.run([binary(), "key", "add", "writer", "--data-dir", str(data), "--role", "writer", "--mode", "agent"],
                         capture_output=True, text=True, check=True).stdout.strip()
    running = cells_gateway(data)
    try:
        headers = {"Authorization": f"Bearer {key}"}
        new = {"notebook": "new.ipynb", "cells": CELLS}
        error = refused(running, "createNotebook", {**new, "run": True}, "RUN_FORBIDDEN", headers)
        assert "--run" in error["hint"] and not (data / "files" / "new.ipynb").exists()
        ok(running, "createNotebook", {**new, "run": False}, headers)
    finally:
        assert running.stop() == 0
