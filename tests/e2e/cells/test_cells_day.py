# SPDX-License-Identifier: MIT
"""A day's work with Jupyter notebooks: each task takes the calls that day_support.TASKS allows, over REST and both MCP eras, and
leaves what was asked for. Where cells of a notebook are used it is attached. The tasks without cells are in team/test_day.py."""

import base64
import json
import re

from cells_support import code, markdown, need, write_notebook
from day_support import agent, place  # noqa: F401 (fixtures)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PLOT = f"import base64\nfrom IPython.display import Image, display\ndisplay(Image(base64.b64decode('{PNG}')))\nprint('plotted')"


def cells_of(path):
    return json.loads(path.read_text())["cells"]


def text_of(cell):
    """All that it printed and answered."""
    return "".join("".join(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in cell["outputs"])


def test_run_a_cell_and_show_its_plot(place, agent):
    """The third one, of the notebook that is attached."""
    need("python3")
    path = place.files / "plots.ipynb"
    write_notebook(path, [("a", "print('never')"), markdown("b", "# Plot"), ("c", PLOT), ("d", "print('never')")])
    agent.call("attachNotebook", notebook="plots.ipynb")
    with agent.task("run a cell and show its plot"):
        told = agent.call("runNotebookCells", cellIds=[2])
    assert told.pictures == [("image/png", base64.b64decode(PNG))] and "plotted" in told.result
    assert told.notebook == str(path)
    cells = cells_of(path)
    assert [bool(cell.get("outputs")) for cell in cells] == [False, False, True, False] and "plotted\n" in text_of(cells[2])


def test_run_all_cells(place, agent):
    need("python3")
    path = place.files / "all.ipynb"
    write_notebook(path, [("a", "x = 20"), markdown("b", "text"), ("c", "print(x + 1)"), ("d", "x * 2")])
    agent.call("attachNotebook", notebook="all.ipynb")
    with agent.task("run all cells"):
        told = agent.call("runNotebookCells", cellIds=["all"])
    assert "Successfully executed 3 cell(s)." in told.result and "\n21\n" in told.result and "\n40\n" in told.result
    assert [text_of(cell) for cell in cells_of(path) if cell["cell_type"] == "code"] == ["", "21\n", "40"]


def test_list_the_jupyter_notebooks(place, agent):
    folder = place.files / "listed"
    (folder / "deep").mkdir(parents=True)
    paths = [folder / "deep" / "one.ipynb", folder / "two.ipynb"]
    for count, path in enumerate(paths):
        write_notebook(path, [(f"c{number}", "1") for number in range(count)])
    with agent.task("list the Jupyter notebooks"):
        told = agent.call("listNotebooks").result
    found = dict(re.findall(r"^- (\S+): (\d+) cell\(s\)", told, re.M))
    assert {path: found.get(str(path)) for path in paths} == {paths[0]: "0", paths[1]: "1"}
    assert set(found) == {str(path) for path in place.files.rglob("*.ipynb")}


def test_make_a_jupyter_notebook_and_run_it(place, agent):
    need("python3")
    with agent.task("make a Jupyter notebook and run it"):
        told = agent.call("createNotebook", notebook="made/sum.ipynb", run=True, cells=[
            {"type": "markdown", "content": "# Sum"}, {"type": "code", "content": "x = 41"}, {"type": "code", "content": "print(x + 1)"}])
    assert told.notebook == str(place.files / "made" / "sum.ipynb") and "\n42\n" in told.result
    cells = cells_of(place.files / "made" / "sum.ipynb")
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in cells] == [
        ("markdown", "# Sum"), ("code", "x = 41"), ("code", "print(x + 1)")]
    assert [text_of(cell) for cell in cells[1:]] == ["", "42\n"]


def test_change_one_line_of_a_long_cell(place, agent):
    path = place.files / "long.ipynb"
    source = "".join(f"x{number} = {number}  # a line\n" for number in range(200))
    write_notebook(path, [("a", "1"), code("b", source)])
    before = path.read_text()
    agent.call("attachNotebook", notebook="long.ipynb")
    with agent.task("change one line of a long cell"):
        agent.call("updateNotebookCell", cellId="index:1", edits=[
            {"old_str": "x117 = 117", "new_str": "x117 = 'new'"}])
    assert path.read_text() == before.replace("x117 = 117", "x117 = 'new'")


def test_undo_a_change_of_a_cell(place, agent):
    path = place.files / "undone.ipynb"
    write_notebook(path, [("a", "1 + 1"), ("b", "2 + 2")])
    before = path.read_text()
    agent.call("attachNotebook", notebook="undone.ipynb")
    agent.call("updateNotebookCell", cellId="index:1", content="3 + 3")
    assert "3 + 3" in path.read_text()
    with agent.task("undo a change of a cell"):
        agent.call("fileEditor", command="undo_edit", path=str(path))
    assert path.read_text() == before
