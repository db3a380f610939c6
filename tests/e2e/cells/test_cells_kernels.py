# SPDX-License-Identifier: MIT
"""Cells run in real kernels, Debian's ipykernel and xpython: their output, their failures, and their order."""

import base64
import json
import re

import pytest
from cells_support import MUCH, RUN_SECONDS, book, code, gateway, hasty, markdown, need, waits  # noqa: F401 (fixtures)
from conftest import eventually

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


# ---- what cells put out ----


def test_results_and_counts(book):
    one = book(("a", "x = 40\nx + 2"), ("b", "x += 1; x"), ("c", "  \n"), markdown("m", "# hi"))
    first = one.run("a", "b", "c", "m")
    assert first.startswith("Successfully executed 3 cell(s).\n1 cell(s) were skipped")
    assert "A new kernel was started for this notebook: `python3`." in first
    assert "Cell a:\n42\n\nCell b:\n41" in first
    assert [one.cell(cell)["execution_count"] for cell in "abc"] == [1, 2, None]
    assert one.outputs("a") == [{"data": {"text/plain": ["42"]}, "execution_count": 1, "metadata": {},
                                 "output_type": "execute_result"}]
    assert one.run("b") == "Successfully executed 1 cell(s).\n\nOutputs:\nCell b:\n42"
    assert one.cell("b")["execution_count"] == 3


def test_nothing_to_run_starts_nothing(book, gateway):
    one = book(markdown("m", "# hi"), code("s", "1", metadata={"tags": ["skip-execution"]}))
    before = one.path.read_bytes()
    assert one.run("m", "s").startswith("Successfully executed 0 cell(s).\n2 cell(s) were skipped")
    assert one.path.read_bytes() == before
    assert str(one.path) not in gateway.call("listKernels").json()["result"]


def test_an_error_stops_the_run(book):
    one = book(("a", "print('before')\nraise ValueError('bad \\x1b[31mthing')"), ("b", "open('/nonexistent')"), ("c", "1"))
    said = one.fail("a", "b")
    assert said.startswith("Cell a failed: ValueError: bad")
    assert "0 of 2 cell(s) were executed before, 1 not at all." in said
    assert "before" in said and "Traceback" in said and "\x1b" not in said
    kinds = [output["output_type"] for output in one.outputs("a")]
    assert kinds == ["stream", "error"]
    assert one.outputs("a")[1]["ename"] == "ValueError"
    assert any("\x1b[" in line for line in one.outputs("a")[1]["traceback"])
    assert one.outputs("b") == [] and one.cell("b")["execution_count"] is None
    assert "Cell exit failed: SystemExit" in book(("exit", "import sys; sys.exit(4)")).fail("exit")


def test_a_traceback_that_is_shown_is_no_failure(book):
    one = book(("a", "try:\n    1/0\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()\nprint('on')"))
    assert one.run("a").startswith("Successfully executed 1 cell(s).")
    assert "error" in [output["output_type"] for output in one.outputs("a")]


def test_tags(book):
    one = book(code("a", "1/0", metadata={"tags": ["raises-exception"]}), ("b", "print('b ran')"),
               code("c", "print('never')", metadata={"tags": ["skip-execution"]}))
    assert one.run("a", "b", "c").startswith("Successfully executed 2 cell(s).")
    assert one.text("b") == "b ran\n" and one.outputs("c") == []


def test_streams_keep_their_order(book):
    one = book(("a", "import sys\nfor i in range(3):\n    print(i, flush=True)\n    print('e%d' % i, file=sys.stderr, flush=True)"))
    one.run("a")
    assert [(output["name"], "".join(output["text"])) for output in one.outputs("a")] == [
        (name, f"{letter}{i}\n") for i in range(3) for name, letter in (("stdout", ""), ("stderr", "e"))]


def test_images_are_parts(book):
    one = book(("a", f"import base64\nfrom IPython.display import Image, SVG, display\n"
                     f"display(Image(base64.b64decode('{PNG}')))\ndisplay(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))"))
    answer = one.call("runNotebookCells", cellIds=["a"]).json()
    images = [part for part in answer["content"] if part["type"] == "image"]
    assert [(part["mimeType"], base64.b64decode(part["data"])) for part in images][:1] == [
        ("image/png", base64.b64decode(PNG))]
    assert PNG not in answer["result"]
    assert one.outputs("a")[0]["data"]["image/png"].strip() == PNG


def test_displays_change_in_earlier_cells(book):
    one = book(("a", "from IPython.display import display\nh = display('one', display_id='d')\ndisplay('two')"),
               ("b", "h.update('changed')"), ("c", "display('again', display_id='d')"), ("d", "h.update('last'); print('d')"))
    one.run("a", "b")
    assert one.outputs("a")[0]["data"]["text/plain"] == ["'changed'"]
    assert "transient" not in json.dumps(one.load())
    assert one.outputs("b") == []
    one.run("c")
    assert one.outputs("a")[0]["data"]["text/plain"] == ["'again'"]
    one.run("d")
    assert one.outputs("a")[0]["data"]["text/plain"] == ["'last'"]
    assert one.outputs("a")[1]["data"]["text/plain"] == ["'two'"]
    assert one.outputs("c")[0]["data"]["text/plain"] == ["'last'"]
    # All in one run, the changed cell to be run again behind the one that changes it.
    one.run("a")
    one.path.write_text(json.dumps({**one.load(), "cells": [one.cell("b"), one.cell("a")]}, indent=1))
    one.run("b", "a")
    assert [output["data"]["text/plain"] for output in one.outputs("a")] == [["'one'"], ["'two'"]]


def test_outputs_are_cleared(book):
    one = book(("now", "from IPython.display import clear_output\nprint(1)\nclear_output()\nprint(2)"),
               ("late", "print(1)\nclear_output(wait=True)\nprint(2)"), ("never", "print(1)\nclear_output(wait=True)"))
    one.run("now", "late", "never")
    assert [one.text(cell) for cell in ("now", "late", "never")] == ["2\n", "2\n", "1\n"]


def test_questions_are_refused(book):
    one = book(("a", "input('name?')"), ("b", "1"))
    assert "StdinNotImplementedError" in one.fail("a")
    assert "Cell b:\n1" in one.run("b")


def test_pages_are_told_and_not_saved(book):
    one = book(("a", "len?"))
    assert "Return the number of items in a container" in one.run("a")
    assert one.outputs("a") == []


def test_text_is_made_readable(book):
    one = book(("a", "print('10%\\r50%\\r99%')\nprint('\\x1b[1mbold\\x1b[0m')"))
    assert one.run("a").endswith("Cell a:\n99%\nbold")
    assert one.text("a") == "10%\r50%\r99%\n\x1b[1mbold\x1b[0m\n"


def test_late_output_of_threads(book):
    """A thread prints all the time, also between the end of a cell and the begin of the next: each cell has an unbroken run of
    its lines, and none is lost."""
    one = book(("a", "import threading, time\nlast, stop = 0, False\n"
                     "def more():\n    global last\n    while not stop:\n        last += 1; print(f'<{last}>', flush=True)\n"
                     "        time.sleep(.002)\n"
                     "t = threading.Thread(target=more, daemon=True); t.start()"),
               ("b", "enough = last + 50\nwhile last < enough: time.sleep(.002)\nstop = True; t.join(); print(f'joined {last}')"))
    one.run("a", "b")  # the thread does not keep the first cell from its end
    first, second = ([int(number) for number in re.findall(r"<(\d+)>", one.text(cell))] for cell in "ab")
    assert len(second) >= 50
    assert first + second == list(range(1, int(re.search(r"joined (\d+)", one.text("b"))[1]) + 1))


def go_on(folder, *lines):
    """A cell that ends while a thread of it waits for `go` in the folder; then that goes on, and makes `done`."""
    return "\n".join(["import threading, os, time", "from IPython.display import display, clear_output, HTML",
                      "def more():", f"    while not os.path.exists({str(folder / 'go')!r}): time.sleep(.02)",
                      *(f"    {line}" for line in lines), f"    open({str(folder / 'done')!r}, 'w').close()",
                      "print('begun')", "h = display(HTML('one'), display_id='d')",
                      "threading.Thread(target=more, daemon=True).start()"])


def let_go_on(folder):
    """Returns when the thread is done."""
    (folder / "go").touch()
    eventually((folder / "done").exists, RUN_SECONDS, "the thread is done")
    (folder / "go").unlink()
    (folder / "done").unlink()


def test_what_threads_put_out_while_nothing_runs(book, tmp_path):
    """It belongs to the cell that ran last, and is told and saved with the next run."""
    one = book(("a", go_on(tmp_path, "print('later', flush=True)", "h.update(HTML('two'))")), ("b", "'b'"), ("c", "'c'"))
    one.run("c")
    one.run("a")
    let_go_on(tmp_path)
    said = one.run("b")
    assert "Cell b:\n'b'\n\nOutput of cell a after the end of its run:\nlater" in said
    assert one.text("a") == "begun\nlater\n" and one.cell("a")["execution_count"] == 2
    assert one.outputs("a")[1]["data"]["text/html"] == ["two"]
    assert "after the end of its run" not in one.run("c")
    # A cell that is run again starts with empty outputs.
    one.run("a")
    let_go_on(tmp_path)
    one.run("a")
    assert "after the end of its run" not in one.run("c")
    assert one.text("a") == "begun\n"


def test_threads_that_clear_what_was_there(book, tmp_path):
    one = book(("a", go_on(tmp_path, "clear_output()", "print('only this', flush=True)")), ("b", "1"))
    one.run("a")
    let_go_on(tmp_path)
    one.run("b")
    assert one.text("a") == "only this\n" and len(one.outputs("a")) == 1


def test_outputs_that_are_no_longer_those_of_the_run_stay(book, tmp_path):
    one = book(("a", go_on(tmp_path, "print('later', flush=True)")), ("b", "1"))
    one.run("a")
    let_go_on(tmp_path)
    one.call("clearCellOutputs", cellIds=["a"])
    assert "after the end of its run:\nlater" in one.run("b")
    assert one.outputs("a") == []


def test_a_display_that_changes_has_the_same_cap(book):
    one = book(("a", "from IPython.display import display, HTML\nh = display(HTML('one'), display_id='d')"),
               ("b", "h.update(HTML('x' * 2_000_000))"), ("c", "h.update(HTML('y' * 1_000_000))"), ("d", "h.update(HTML('z'))"))
    one.run("a")
    one.run("b")
    assert one.outputs("a")[0]["data"]["text/html"] == ["one"]
    one.run("c")
    assert one.outputs("a")[0]["data"]["text/html"] == ["y" * 1_000_000]
    one.run("d")
    assert one.outputs("a")[0]["data"]["text/html"] == ["z"]


# ---- much of it ----


def test_a_flood(book):
    """ipykernel itself drops lines where the machine is slow: what comes is in order, and the end is seen. test_a_flood_is_whole has
    a larger one."""
    one = book(("a", f"for i in range({6000 // MUCH}): print('%05d' % i, flush=True)"), ("b", "'after'"))
    text = one.run("a", "b")
    assert len(text) < 12000 and "00000" in text and "Cell b:\n'after'" in text
    lines = one.text("a").split()
    assert lines == sorted(lines) and lines[0] == "00000" and len(set(lines)) == len(lines) > 1000 // MUCH


def test_saved_output_has_a_cap(book):
    one = book(("a", "print('x' * 3_000_000)"))
    one.run("a")
    first, note, last = ("".join(output["text"]) for output in one.outputs("a"))
    assert set(first) == {"x"} and set(last) == {"x", "\n"} and last.endswith("\n") and len(first) + len(last) <= 1 << 20
    assert f"[notegate: {3_000_001 - len(first) - len(last)} bytes of output were not kept here" in note


def test_what_was_cut_can_be_read(book):
    one = book(("a", "print(''.join(chr(0x4e00 + i % 20000) for i in range(40000)))"))
    whole = "".join(chr(0x4e00 + i % 20000) for i in range(40000))
    text = one.run("a")
    assert len(text.encode()) < 10000 and text.count("\u4e00") >= 1
    part = one.call("getCellOutputs", cellId="a", offset=20000).json()["result"]
    assert whole[20000:21000] in part and whole[19990:20010] not in part


# ---- several at once ----


def test_agents_take_turns(book):
    one = book(("a", "import time\nlog = ['a']\ntime.sleep(1)\nlog.append('a done')"), ("b", "log.append('b'); log"),
               ("c", "log.append('c'); log"))
    first = one.start("a")
    one.wait_running(first, "a")
    second = one.as_agent("bob").start("b")
    third = one.as_agent("cyd").start("c")
    assert "['a', 'a done', 'b']" in one.as_agent("bob").wait_over(second).json()["result"]
    assert "['a', 'a done', 'b', 'c']" in one.as_agent("cyd").wait_over(third).json()["result"]
    assert one.look(second).status_code == 404  # of another agent


def test_a_second_run_of_a_running_cell_waits(book):
    one = book(("a", "import time\ntime.sleep(1)\nprint('whole')"))
    handle = one.start("a")
    one.wait_running(handle, "a")
    assert "whole" in one.run("a")
    assert one.wait_over(handle).json()["result"].startswith("Successfully executed 1 cell(s).")
    assert one.cell("a")["execution_count"] == 2


def test_two_paths_of_one_file_have_one_kernel(book, gateway):
    one = book(("a", "y = 9"), ("b", "y"))
    link = one.path.with_name("link-" + one.path.name)
    link.symlink_to(one.path.name)
    one.run("a")
    answer = gateway.client.post("/v1/tools/runNotebookCells", json={"notebook": str(link), "cellIds": ["b"]},
                                 timeout=RUN_SECONDS)
    assert "Cell b:\n9" in answer.json()["result"]


def test_background_runs_are_polled(book, tmp_path):
    one = book(("a", f"print('half', flush=True)\n{waits(tmp_path / 'go')}'whole'"), ("b", f"from IPython.display import Image\n"
               f"import base64\nImage(base64.b64decode('{PNG}'))"))
    handle = one.start("a", "b")
    eventually(lambda: "half" in one.look(handle).text, RUN_SECONDS, "the first output")
    assert "Cell b: pending" in one.look(handle).text
    status = one.call("getNotebookCells", cellIds=["a", "b"]).json()["result"]
    assert "Execution: running" in status and "Execution: pending" in status
    (tmp_path / "go").touch()
    over = one.wait_over(handle).json()
    assert "Successfully executed 2 cell(s)." in over["result"] and "'whole'" in over["result"]
    assert [part["type"] for part in over["content"]].count("image") == 1
    assert one.outputs("a")[1]["data"]["text/plain"] == ["'whole'"]  # saved before it is said
    answer = one.look("nosuchrun")
    assert answer.status_code == 404 and answer.json()["code"] == "RUN_NOT_FOUND"


def test_outputs_of_cells_in_a_run_at_work(book, tmp_path):
    """They are not in the file yet; the outputs in the file are not taken for them."""
    before = [{"name": "stdout", "output_type": "stream", "text": "before\n"}]
    one = book(("a", "print('now')"), ("b", waits(tmp_path / "go")),
               code("c", "3", outputs=before))
    handle = one.start("a", "b", "c")

    def said(cell):
        return one.call("getCellOutputs", cellId=cell).json()["result"]

    eventually(lambda: "Cell a: success" in one.look(handle).text, RUN_SECONDS, "the first cell to be over")
    assert said("a").startswith("Cell a has no outputs\n\nA run of this cell is in progress")
    assert "before" in said("c") and "These are of an earlier run. A run of this cell is in progress" in said("c")
    (tmp_path / "go").touch()
    one.wait_over(handle)
    assert "now" in said("a") and "at work" not in said("a") + said("b") + said("c")


# ---- the file meanwhile ----


def test_another_program_saves_meanwhile(book, tmp_path):
    one = book(("a", waits(tmp_path / "go") + "print('here')"), ("b", "2"),
               code("t", "3", metadata={"execution": {"iopub.status.busy": "2020-01-01T00:00:00Z"}}))
    handle = one.start("a", "t")
    one.wait_running(handle, "a")
    notebook = one.load()
    notebook["cells"].insert(0, code("new", "print('inserted')"))
    notebook["cells"][2]["source"] = "20"
    one.path.write_text(json.dumps(notebook, indent=1) + "\n")
    (tmp_path / "go").touch()
    one.wait_over(handle)
    assert [cell["id"] for cell in one.load()["cells"]] == ["new", "a", "b", "t"]
    assert one.text("a") == "here\n" and one.outputs("new") == [] and one.cell("b")["source"] == "20"
    assert one.cell("t")["metadata"] == {"execution": {"iopub.status.busy": "2020-01-01T00:00:00Z"}}


def test_a_cell_without_id_is_found_again(book, tmp_path):
    one = book(("-", waits(tmp_path / "go") + "print('here')"), ("-", "print('other')"), minor=4)
    handle = one.start("index:0")
    one.wait_running(handle, "index:0")
    notebook = one.load()
    fresh = {key: value for key, value in code("-", "9").items() if key != "id"}
    notebook["cells"].insert(0, fresh)
    one.path.write_text(json.dumps(notebook, indent=1) + "\n")
    (tmp_path / "go").touch()
    one.wait_over(handle)
    cells = one.load()["cells"]
    assert [len(cell["outputs"]) for cell in cells] == [0, 1, 0] and "id" not in cells[1]


def test_a_cell_is_deleted_meanwhile(book, tmp_path):
    one = book(("a", waits(tmp_path / "go") + "print('here')"), ("b", "2"))
    handle = one.start("a", "b")
    one.wait_running(handle, "a")
    notebook = one.load()
    del notebook["cells"][0]
    one.path.write_text(json.dumps(notebook, indent=1) + "\n")
    (tmp_path / "go").touch()
    said = one.wait_over(handle).json()["result"]
    assert "Not all outputs were saved: there is no longer a code cell a" in said and "here" in said
    assert one.outputs("b")[0]["data"]["text/plain"] == ["2"]


def test_the_file_goes_meanwhile(book, tmp_path):
    one = book(("a", waits(tmp_path / "go") + "print('here')"))
    handle = one.start("a")
    one.wait_running(handle, "a")
    one.path.unlink()
    (tmp_path / "go").touch()
    said = one.wait_over(handle).text
    assert "the file is gone" in said and "here" in said and not one.path.exists()


def test_unknown_cells_run_nothing(book):
    one = book(("a", "1"))
    answer = one.call("runNotebookCells", cellIds=["a", "nope", "index:7"])
    assert answer.status_code == 404 and "No cells found with IDs: nope, index:7" in answer.text
    assert one.outputs("a") == []


# ---- which kernel ----


def test_kernels_are_chosen(book):
    need("xpython")
    one = book(("a", "import sys; 'xpython' in sys.modules or sys.argv"), kernel="nosuch", language_info={"name": "python"})
    said = one.run("a")
    assert "The kernel `nosuch` that the notebook names is not installed: `python3` was started instead." in said
    other = one.run("a", kernel="xpython")
    assert "The kernel of this notebook is `python3` and runs already: `xpython` was not started." in other
    answer = one.call("runNotebookCells", cellIds=["a"], kernel="nothing")
    assert answer.status_code == 400 and "There is no kernel `nothing`" in answer.text
    two = book(("a", "1"), kernel="cobol-1", language_info={"name": "cobol"})
    assert "No installed kernel fits this notebook, it names cobol-1 (installed: " in two.fail("a", code="KERNEL_FAILED")
    three = book(("a", "1"), kernel=None)
    assert "A new kernel was started for this notebook: `python3`." in three.run("a")


@pytest.mark.long
def test_another_implementation(book):
    need("xpython")
    one = book(("a", "print('a'); print('b'); 1 + 1"), ("b", "1/0"), ("c", "input()"), ("d", "'on'"), kernel="xpython")
    assert "a\nb\n" in one.run("a") and one.cell("a")["execution_count"] == 1
    assert "ZeroDivisionError" in one.fail("b")
    one.fail("c")
    assert "'on'" in one.run("d")


@pytest.mark.long
def test_one_that_cannot_be_interrupted(hasty):
    """xpython acknowledges an interrupt and goes on."""
    need("xpython")
    one = hasty(("a", "print('begun')\nwhile True: pass"), ("b", "'on'"), kernel="xpython")
    one.run("b")
    said = one.fail("a", status=504, code="TIMEOUT", timeout=30)
    assert "was interrupted, and is still running: restartKernel ends it" in said and one.text("a") == "begun\n"
    assert one.call("restartKernel").status_code == 200
    assert "'on'" in one.run("b")
