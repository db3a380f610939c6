# SPDX-License-Identifier: MIT
"""How cells are named: ids, positions as index:N, numbers or digits, and all of them."""

import pytest
from cells_support import RUN_SECONDS, need, plain
from cells_tools_support import code, gateway, modern, ok, put, refused, who  # noqa: F401 (a fixture among them)

PNG = "iVBORw0KGgo="


def markdown(ident, source):
    return {"cell_type": "markdown", "id": ident, "metadata": {}, "source": source}


def printed(text):
    return [{"output_type": "stream", "name": "stdout", "text": text}]


def ids_of(text):
    return [line[4:] for line in text.splitlines() if line.startswith("ID: ")]


def test_positions(gateway):
    put(gateway, "positions.ipynb", [code("a", "1"), code("b", "2"), code("1", "3"), code("c", "4")])
    named = {"notebook": "positions.ipynb"}
    for cells, found in (([0], "a"), (["0"], "a"), ([3], "c"), (["03"], "c"), (["index:1"], "b"),
                         ([1], "1"), (["1"], "1")):  # an id that is equal wins
        assert ids_of(ok(gateway, "getNotebookCells", {**named, "cellIds": cells})) == [found], cells
    for cells in ([4], ["4"], [-1], ["1.0"], ["0x1"], [99999999999999999999]):
        error = refused(gateway, "getNotebookCells", {**named, "cellIds": cells}, "CELL_NOT_FOUND")
        assert str(cells[0]) in error["message"] and "index:N" in error["hint"]
    # One that several cells have is no position.
    put(gateway, "twice.ipynb", [code("0", "1"), code("0", "2"), code("x", "3")])
    refused(gateway, "getNotebookCells", {"notebook": "twice.ipynb", "cellIds": [0]}, "CONFLICT")
    # Every tool that names one cell takes digits.
    assert "has no outputs" in ok(gateway, "getCellOutputs", {**named, "cellId": 0})
    assert ok(gateway, "updateNotebookCell", {**named, "cellId": "3", "content": "5"}) == "Successfully updated cell c (index 3)"
    assert ok(gateway, "deleteNotebookCells", {**named, "cellIds": ["0"]}) == "Successfully deleted cell a (index 0)"


def test_all_cells(gateway):
    put(gateway, "all.ipynb", [code("a", "1"), markdown("m", "# m"), code("b", "2")])
    put(gateway, "none.ipynb", [])
    named = {"notebook": "all.ipynb"}
    every = ok(gateway, "getNotebookCells", named)
    assert every.startswith("Retrieved all 3 cell(s) from notebook:")
    assert ok(gateway, "getNotebookCells", {**named, "cellIds": ["all"]}) == every
    assert ok(gateway, "getNotebookCells", {"notebook": "none.ipynb", "cellIds": ["all"]}) == "The notebook has no cells"
    for cells in (["all", "a"], ["All"]):
        told = ok(gateway, "getNotebookCells", {**named, "cellIds": cells}) if "a" in cells else ""
        assert not told or "Retrieved 1 cell(s):" in told and "specified IDs: all" in told
    refused(gateway, "deleteNotebookCells", {**named, "cellIds": ["all"]}, "CELL_NOT_FOUND")
    # A cell with that id is the one that is meant.
    put(gateway, "named-all.ipynb", [code("a", "1"), code("all", "2")])
    assert ids_of(ok(gateway, "getNotebookCells", {"notebook": "named-all.ipynb", "cellIds": ["all"]})) == ["all"]


def test_all_cells_run(gateway):
    need("python3")
    put(gateway, "run.ipynb", [code("a", "x = 1"), markdown("m", "# m"), code("b", "print(x + 1)")])
    put(gateway, "empty.ipynb", [])

    def run(name, cells):
        return plain(gateway.client.post("/v1/tools/runNotebookCells", json={"notebook": name, "cellIds": cells}, timeout=RUN_SECONDS))

    said = run("run.ipynb", ["all"]).json()["result"]
    assert said.startswith("Successfully executed 2 cell(s).\n1 cell(s) were skipped") and said.endswith("Cell b:\n2")
    assert "Cell b:\n2" in run("run.ipynb", [2]).json()["result"]
    assert run("empty.ipynb", ["all"]).json()["result"] == "Successfully executed 0 cell(s)."
    assert run("run.ipynb", []).json()["message"] == "Cell indices array cannot be empty"


def test_outputs_of_several_cells(gateway):
    image = [{"output_type": "display_data", "metadata": {}, "data": {"image/png": PNG}}]
    put(gateway, "outputs.ipynb", [
        code("a", "", outputs=printed("from a\n")), markdown("m", "# m"), code("b", "", outputs=image), code("c", ""),
        code("d", "", outputs=printed("from d\n"))])
    named = {"notebook": "outputs.ipynb"}
    told = ok(gateway, "getCellOutputs", {**named, "cellIds": ["a", "c", 4]})
    assert told == "Outputs for cell a:\n\nfrom a\n\nCell c has no outputs\n\nOutputs for cell d:\n\nfrom d"
    every = "Outputs for cell a:\n\nfrom a\n\nOutputs for cell b:\n\n[1 image(s)]\n\nOutputs for cell d:\n\nfrom d"
    assert ok(gateway, "getCellOutputs", {**named, "cellIds": ["all"]}) == every
    parts = modern(gateway, "tools/call", who("x"), name="getCellOutputs", arguments={**named, "cellIds": ["all"]})["result"]["content"]
    assert [part["type"] for part in parts] == ["text", "image"] and parts[1]["data"] == PNG
    # One is told as with `cellId`.
    one = ok(gateway, "getCellOutputs", {**named, "cellId": "a"})
    assert ok(gateway, "getCellOutputs", {**named, "cellIds": ["a"]}) == one == "Outputs for cell a:\n\nfrom a"
    told = ok(gateway, "getCellOutputs", {**named, "cellIds": ["a", "gone"]})
    assert told == one + "\n\nFailed to get outputs: Cell not found: gone"
    refused(gateway, "getCellOutputs", {**named, "cellIds": ["gone", "too"]}, "CELL_NOT_FOUND")
    for wrong in ({}, {"cellId": "a", "cellIds": ["b"]}, {"cellIds": []}):
        refused(gateway, "getCellOutputs", {**named, **wrong}, "INVALID_INPUT")
    error = refused(gateway, "getCellOutputs", {**named, "cellIds": ["a", "d"], "offset": 2}, "INVALID_INPUT")
    assert "one by one" in error["message"]
    put(gateway, "bare.ipynb", [code("a", "")])
    assert ok(gateway, "getCellOutputs", {"notebook": "bare.ipynb", "cellIds": ["all"]}) == "No cell has outputs"


@pytest.mark.parametrize("cells", [3, 200])
def test_many_outputs_are_bounded(gateway, cells):
    put(gateway, f"many{cells}.ipynb", [code(f"c{number}", "", outputs=printed("x" * 50_000)) for number in range(cells)])
    told = ok(gateway, "getCellOutputs", {"notebook": f"many{cells}.ipynb", "cellIds": ["all"]})
    assert len(told) < 70_000
    shown = told.count("Outputs for cell ")
    assert shown == cells or f"[{cells - shown} more cell(s) left out, from c{shown} on: name them]" in told
    # Each gets 2 KiB at least, of the 60 KiB that tools.max_answer leaves for outputs; the rest of the room is used, too.
    assert shown == 3 or (shown >= 60 * 1024 // (2048 + 64) and len(told) > 58_000)


@pytest.mark.parametrize("tool", ["getNotebookCells", "getCellOutputs"])
def test_a_cut_answer_names_its_notebook(gateway, tool):
    """The last line stays where the rest is cut, the whole is no longer than tools.max_answer, and the rest can be asked for."""
    cells = [code(f"c{number}", "y" * 20_000, outputs=printed("x" * 20_000)) for number in range(30)]
    path = put(gateway, f"cut-{tool}.ipynb", cells)
    answer = gateway.call(tool, {"notebook": f"cut-{tool}.ipynb", "cellIds": ["all"]})
    assert answer.status_code == 200, answer.text
    told = answer.json()["result"]
    assert told.endswith(f"\nNotebook: {path}"), told[-400:]
    assert 40_000 < len(told.encode()) <= 64 * 1024


def test_cells_that_do_not_fit(gateway):
    """Whole cells as far as they fit, then how many follow; a source that alone is too long is cut, and the cell is closed."""
    put(gateway, "wide.ipynb", [code(f"c{number}", "y" * 20_000) for number in range(30)])
    wide = {"notebook": "wide.ipynb"}
    told = ok(gateway, "getNotebookCells", wide)
    assert ids_of(told) == ["c0", "c1", "c2"] and told.count("y" * 20_000) == 3
    assert told.endswith("\n\n[27 more cell(s) left out, from c3 on: name them]")
    told = ok(gateway, "getNotebookCells", {**wide, "cellIds": ["c3", "c4", "c5", "c6", "gone"]})
    assert ids_of(told) == ["c3", "c4", "c5"] and "[1 more cell(s) left out, from c6 on: name them]" in told
    assert told.startswith("Retrieved 4 cell(s):") and "specified IDs: gone" in told
    # A program that wants all of it gets it.
    whole = gateway.client.post("/v1/tools/getNotebookCells?raw=true", json=wide)
    assert whole.status_code == 200 and whole.text.count("y" * 20_000) == 30 and "left out" not in whole.text
    put(gateway, "long.ipynb", [code("a", "\u00e9" * 50_000), code("b", "z" * 2_000)])
    told = ok(gateway, "getNotebookCells", {"notebook": "long.ipynb", "cellIds": ["a"]})
    shown = told.count("\u00e9")
    assert 25_000 < shown < 50_000
    assert f"[... cut after {shown} of 50000 characters; fileEditor shows the lines of the file with view_range ...]\n```" in told
    assert "[1 more cell(s) left out, from b on: name them]" in ok(gateway, "getNotebookCells", {"notebook": "long.ipynb"})
