# SPDX-License-Identifier: MIT
"""Reports of runs: more images than an answer may hold, restarts, displays of objects, cells that change meanwhile."""

import base64
import json

import pytest
from cells_support import RUN_SECONDS, book, cells_gateway, need, waits  # noqa: F401 (a fixture among them)
from cells_tools_support import Handshake
from conftest import eventually

# A PNG of any size: what stands behind its end is not looked at.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE_BYTES = 300000
LIMIT = 1 << 20


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    need("python3")
    running = cells_gateway(tmp_path_factory.mktemp("runs") / "data", f"limits.result={LIMIT}", "tools.max_answer=1MiB", "cells.max_output_text=2MiB",
                            "cells.max_kernels=40")
    yield running
    assert running.stop() == 0, "".join(running.errors)


def images(mark, count, size=IMAGE_BYTES):
    """Prints, appends a byte to a file and shows images."""
    return (f"import base64\nfrom IPython.display import Image, display\nprint('important text')\nopen({str(mark)!r}, 'a').write('x') and None\n"
            f"for _ in range({count}): display(Image(base64.b64decode('{PNG}') + b'x' * {size}))")


# ---- answers that are too large ----


@pytest.mark.parametrize("how", ["rest", "mcp"])
def test_images_beyond_the_limit_are_lines(book, gateway, tmp_path, how):
    one = book(("a", images(tmp_path / "ran", 5)), ("b", images(tmp_path / "ran", 1)))
    arguments = {"notebook": str(one.path), "cellIds": ["a", "b"]}
    if how == "rest":
        answer = one.call("runNotebookCells", cellIds=["a", "b"])
        assert answer.status_code == 200, answer.text
        text, parts = answer.json()["result"], answer.json()["content"]
    else:
        result = Handshake(gateway, {"X-Notegate-Agent": "images"}).post(
            "tools/call", {"name": "runNotebookCells", "arguments": arguments}).json()["result"]
        assert not result.get("isError"), result
        text, parts = result["content"][0]["text"], result["content"][1:]
    assert text.startswith("Successfully executed 2 cell(s).") and text.count("important text") == 2
    assert [part["mimeType"] for part in parts] == ["image/png"] * 3
    size = len(base64.b64decode(PNG)) + IMAGE_BYTES
    assert f"[image 4 of cell a, image/png, {size} bytes: left out]" in text and f"image 1 of cell b, image/png, {size} bytes" in text
    assert f"[3 image(s) left out: the answer would be larger than limits.result, {LIMIT} bytes. They are in the file]" in text
    assert (tmp_path / "ran").read_text() == "xx"
    # All of it is in the file, and what reads it says as much.
    assert len(one.outputs("a")) == 6 and len(one.outputs("b")) == 2
    read = one.call("getCellOutputs", cellId="a")
    assert read.status_code == 200 and len(read.json()["content"]) == 3
    assert "important text" in read.json()["result"] and "[2 image(s) left out" in read.json()["result"]


def test_a_background_run_tells_its_images_as_well(book, tmp_path):
    one = book(("a", images(tmp_path / "ran", 5)), ("big", images(tmp_path / "ran", 1, 2 * LIMIT)))
    for cell, kept in (("a", 3), ("big", 0)):
        handle = one.start(cell)
        over = one.wait_over(handle)
        assert over.status_code == 200 and over.json()["result"].startswith("Successfully executed 1 cell(s).")
        assert len(over.json().get("content", [])) == kept and "left out" in over.json()["result"]
        again = one.look(handle).json()
        assert again["result"] == over.json()["result"], "and once more the same"
    assert (tmp_path / "ran").read_text() == "xx"


def test_text_beyond_the_limit_is_cut(book, tmp_path):
    """`cells.max_output_text` may be set to more than an answer holds."""
    mark = tmp_path / "ran"
    one = book(("a", f"open({str(mark)!r}, 'a').write('x')\nprint('begin ' + 'y' * 1900000 + ' end')"),
               *((f"c{number}", "print('z' * 2000)") for number in range(600)))
    told = one.run("a")
    assert len(told) < LIMIT and "begin" in told and " end" in told and "left out" in told
    assert len(one.run(*(f"c{number}" for number in range(600)))) < LIMIT
    assert mark.read_text() == "x"
    read = one.call("getCellOutputs", cellId="a")
    assert read.status_code == 200 and len(read.text) < LIMIT and "begin" in read.text
    on = one.call("getCellOutputs", cellId="a", offset=1000000)
    assert on.status_code == 200 and " end" in on.text


# ---- sentences ----


def test_a_restart_is_told_as_one(book):
    one = book(("a", "x = 1"))
    one.run("a")
    assert one.call("restartKernel").status_code == 200
    told = one.run("a")
    assert "The kernel of this notebook was restarted: all its variables are lost." in told and "had ended" not in told
    assert "all its variables" not in one.run("a"), "told once"


def test_displays_of_objects_say_what_they_show(book):
    one = book(("a", "from IPython.display import display, HTML, Markdown, Latex, JSON\ndisplay(Markdown('**bold**'))\n"
                     "display(Latex('$x^2$'))\ndisplay(JSON({'a': [1, 2]}))\ndisplay(HTML('<b>page</b>'))\nobject()"))
    told = one.run("a")
    for text in ("**bold**", "$x^2$", '{"a": [1, 2]}', "<b>page</b>", "<object at"):
        assert text in told or text.replace(" ", "") in told.replace(" ", ""), told
    assert "IPython.core.display" not in told and "IPython.core.display" not in one.call("getCellOutputs", cellId="a").text


def test_only_line_ends(book):
    one = book(("a", "print()"))
    one.run("a")
    read = one.call("getCellOutputs", cellId="a").json()["result"]
    assert read == "Outputs for cell a:\n\n[nothing but line ends]"


# ---- cells that change while a run goes on ----


def edit(one, **sources):
    """As another program saves it; None: the cell is deleted."""
    notebook = one.load()
    notebook["cells"] = [cell for cell in notebook["cells"] if sources.get(cell.get("id"), "") is not None]
    for cell in notebook["cells"]:
        if cell.get("id") in sources:
            cell["source"] = sources[cell["id"]]
    one.path.write_text(json.dumps(notebook, indent=1) + "\n")


def test_a_cell_is_run_as_it_is_when_its_turn_comes(book, tmp_path):
    one = book(("a", waits(tmp_path / "go") + "print('first')"), ("b", "print('old b')"), ("c", "print('c')"))
    handle = one.start("a", "b", "c")
    one.wait_running(handle, "a")
    edit(one, b="print('user edited b')")
    (tmp_path / "go").touch()
    told = one.wait_over(handle).json()["result"]
    assert told.startswith("Successfully executed 3 cell(s).") and "old b" not in told
    assert "The source of cell b was changed after the run was asked for: the new one was run." in told
    assert one.text("b") == "user edited b\n" and one.text("a") == "first\n" and one.text("c") == "c\n"


def test_outputs_are_not_saved_under_another_source(book, tmp_path):
    one = book(("a", waits(tmp_path / "go") + "print('of the old source')"), ("b", "print('b')"))
    handle = one.start("a", "b")
    one.wait_running(handle, "a")
    edit(one, a="print('user edited a')")
    (tmp_path / "go").touch()
    told = one.wait_over(handle).json()["result"]
    assert "Not all outputs were saved: the source is no longer the one that was run in cell a" in told and "of the old source" in told
    assert one.outputs("a") == [] and one.cell("a")["execution_count"] is None and one.text("b") == "b\n"
    assert one.cell("a")["source"] == "print('user edited a')"


def test_a_cell_that_went_before_its_turn_is_not_run(book, tmp_path):
    mark = tmp_path / "ran"
    one = book(("a", waits(tmp_path / "go")), ("b", f"open({str(mark)!r}, 'a')"), ("c", "print('c')"))
    handle = one.start("a", "b", "c")
    one.wait_running(handle, "a")
    edit(one, b=None)
    (tmp_path / "go").touch()
    told = one.wait_over(handle).json()["result"]
    assert told.startswith("Successfully executed 2 cell(s).") and not mark.exists()
    assert "Cell b was not run: it is no longer a code cell of the notebook." in told and one.text("c") == "c\n"


def test_a_run_that_waited_takes_what_is_there_then(book, tmp_path):
    one = book(("a", waits(tmp_path / "go")), ("b", "print('old b')"))
    first = one.start("a")
    one.wait_running(first, "a")
    second = one.start("b")
    edit(one, b="print('new b')")
    (tmp_path / "go").touch()
    one.wait_over(first)
    assert "new b" in one.wait_over(second).json()["result"] and one.text("b") == "new b\n"


def test_cells_without_ids_that_change(book, tmp_path):
    one = book(("-", waits(tmp_path / "go")), ("-", "print('old')"), ("-", "print('last')"), minor=4)
    handle = one.start("index:0", "index:1", "index:2")
    one.wait_running(handle, "index:0")
    notebook = one.load()
    notebook["cells"][1]["source"] = "print('new')"
    one.path.write_text(json.dumps(notebook, indent=1) + "\n")
    (tmp_path / "go").touch()
    told = one.wait_over(handle).json()["result"]
    assert told.startswith("Successfully executed 3 cell(s).") and "new" in told and "old" not in told
    assert ["".join(cell["outputs"][0]["text"]) for cell in one.load()["cells"][1:]] == ["new\n", "last\n"]


def test_an_interrupt_between_cells_ends_the_run(book, tmp_path):
    """At whatever moment it comes: a cell runs, or what the next one holds is being read."""
    cells = [(f"c{number}", "1") for number in range(200)] + [("last", waits(tmp_path / "never"))]
    one = book(*cells)
    for number in range(5):
        handle = one.start(*(name for name, _ in cells))
        eventually(lambda: "running" in one.look(handle).text, RUN_SECONDS, "it runs")  # noqa: B023 (called at once)
        edit(one, c199=f"1 # {number}")
        eventually(lambda: "Nothing runs" not in one.call("interruptKernel").text, RUN_SECONDS, "something is interrupted")
        assert "interrupted" in one.wait_over(handle).json()["message"]
