# SPDX-License-Identifier: MIT
"""A scripted kernel that breaks every rule of the protocol, and programs that are no kernels at all."""

import json
import time

import pytest
from cells_support import MUCH, Book, bad_kernel, need_zmq, write_spec
from conftest import Gateway, eventually


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    need_zmq()
    folder = tmp_path_factory.mktemp("bad")
    bad_kernel(folder / "jupyter", "bad")
    bad_kernel(folder / "jupyter", "dead", "dead")
    bad_kernel(folder / "jupyter", "mute", "mute")
    bad_kernel(folder / "jupyter", "late", "late")
    bad_kernel(folder / "jupyter", "messages", interrupt_mode="message")
    write_spec(folder / "jupyter", "missing", ["/nowhere/at/all", "{connection_file}"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
        running = Gateway(folder / "data", ["plugins=cells", "cells.start_timeout=8s"])
    yield running
    assert running.stop() == 0, "".join(running.errors)


@pytest.fixture
def bad(gateway, request):
    """bad(actions, ...): a notebook whose cells c0, c1 ... do these."""

    def make(*cells, kernel="bad"):
        sources = [(f"c{at}", json.dumps({"do": actions})) for at, actions in enumerate(cells)]
        return Book(gateway, request.node.name + ".ipynb", sources, kernel=kernel)

    return make


GOOD = [["busy"], ["input"], ["stream", "hi\n"], ["reply"], ["idle"]]


def test_one_that_behaves(bad):
    one = bad(GOOD, GOOD)
    one.run("c0", "c1")
    assert [one.text(cell) for cell in ("c0", "c1")] == ["hi\n", "hi\n"]
    assert one.cell("c1")["execution_count"] == 2


def test_a_reply_before_all_else(bad):
    one = bad([["reply"], ["busy"], ["input"], ["stream", "late\n"], ["idle"]])
    one.run("c0")
    assert one.text("c0") == "late\n"


def test_output_after_idle(bad):
    one = bad([["busy"], ["reply"], ["idle"], ["stream", "after\n"], ["result", "5"]], GOOD)
    assert "Cell c0:\nafter\n\n5" in one.run("c0", "c1")
    assert one.text("c1") == "hi\n"
    assert "after" in one.run("c0")


def test_no_idle(bad):
    one = bad([["busy"], ["stream", "x\n"], ["reply"]], GOOD)
    one.run("c0", "c1")
    assert one.text("c0") == "x\n" and one.text("c1") == "hi\n"


def test_no_reply(bad):
    one = bad([["busy"], ["stream", "x\n"], ["idle"]], GOOD)
    said = one.fail("c0", status=504, code="TIMEOUT", timeout=1)
    assert "still running" in said and one.text("c0") == "x\n"
    assert one.call("restartKernel").status_code == 200
    assert "hi" in one.run("c1")


def test_an_error_that_only_the_reply_tells(bad):
    one = bad([["busy"], ["error_reply", "SyntaxError", "odd"], ["idle"]], [["reply", "abort"], ["idle"]])
    assert one.fail("c0").startswith("Cell c0 failed: SyntaxError: odd.")
    assert one.outputs("c0") == [{"ename": "SyntaxError", "evalue": "odd", "output_type": "error",
                                  "traceback": ["\x1b[31mSyntaxError\x1b[0m: odd"]}]
    one.fail("c1")


def test_aborted(bad):
    one = bad([["busy"], ["reply", "aborted"], ["idle"]], GOOD)
    said = one.fail("c0", "c1")
    assert said.startswith("The kernel aborted a cell without running it. 0 of 2 cell(s)") and "2 not at all" in said
    assert one.outputs("c0") == [] and one.cell("c0")["execution_count"] is None


def test_wrong_signatures_garbage_and_unknown_types(bad):
    one = bad([["busy"], ["unsigned", "forged\n"], ["garbage"], ["unknown"], ["stream", "good\n"], ["reply"], ["idle"]], GOOD)
    one.run("c0")
    assert "forged" not in json.dumps(one.outputs("c0")) and "good\n" in one.text("c0")
    assert "hi" in one.run("c1")


def test_output_of_no_request_goes_to_the_running_cell(bad):
    one = bad([["busy"], ["foreign", "whose?\n"], ["reply"], ["idle"]])
    one.run("c0")
    assert one.text("c0") == "whose?\n"


def test_late_output_of_the_run_before(bad):
    one = bad([["busy"], ["stream", "mine\n"], ["reply"], ["idle"]], [["busy"], ["stale", "old\n"], ["stream", "new\n"], ["reply"], ["idle"]])
    one.run("c0")
    assert "Cell c1:\nnew\n\nAfter its run was over, cell c0 put out:\nold" in one.run("c1")
    assert one.text("c0") == "mine\nold\n" and one.text("c1") == "new\n"


def test_output_without_a_parent_is_not_of_an_empty_cell(bad):
    one = bad([["orphan", "whose?\n"], ["busy"], ["reply"], ["idle"]])
    notebook = one.load()
    notebook["cells"].insert(0, {**notebook["cells"][0], "id": "empty", "source": []})
    one.path.write_text(json.dumps(notebook, indent=1) + "\n")
    one.run("empty", "c0")
    assert one.outputs("empty") == [] and one.text("c0") == "whose?\n"


def test_time_that_is_over_between_cells(bad):
    """The first one is whole, the second one is not begun."""
    one = bad([["busy"], ["input"], ["stream", "whole\n"], ["reply"], ["sleep", 7], ["idle"]], GOOD)
    said = one.fail("c0", "c1", status=504, code="TIMEOUT", timeout=3)
    assert said.startswith("Its time was over (timeout) before cell c1 began. 1 of 2 cell(s) were executed before, 1 not at all.")
    assert one.text("c0") == "whole\n" and one.outputs("c1") == []
    one.run("c1")


def test_an_interrupt_between_cells(bad):
    one = bad([["busy"], ["input"], ["reply"], ["stream", "replied\n"], ["sleep", 3], ["idle"]], GOOD)
    handle = one.start("c0", "c1")
    eventually(lambda: "replied" in one.look(handle).text, 120, "the reply")
    assert one.call("interruptKernel").status_code == 200
    over = one.wait_over(handle)
    assert over.status_code == 422 and over.json()["code"] == "CELL_FAILED"
    assert over.json()["message"].startswith("The run was interrupted before cell c1 began. 1 of 2 cell(s) were executed before")
    assert one.outputs("c1") == []
    one.run("c1")


def test_a_huge_message(bad):
    one = bad([["busy"], ["huge", 102 // MUCH], ["stream", "end", "stderr"], ["reply"], ["idle"]], GOOD)
    said = one.run("c0")
    assert len(said) < 80_000
    kept = one.outputs("c0")
    assert len("".join(kept[0]["text"])) == 16 << 20 and "not kept" in "".join(kept[-1]["text"])
    assert "hi" in one.run("c1")


def test_a_flood_is_whole(bad):
    one = bad([["busy"], ["reply"], ["flood", 60000 // MUCH], ["idle"]], GOOD)
    handle = one.start("c0")
    one.wait_over(handle)
    assert one.text("c0") == "".join(f"{at:05}\n" for at in range(60000 // MUCH))
    assert "hi" in one.run("c1")


def test_a_question_gets_an_empty_answer(bad):
    one = bad([["busy"], ["ask"], ["reply"], ["idle"]])
    assert "answered ''" in one.run("c0")


def test_a_question_at_once_waits_for_its_channel(bad):
    """A question would be lost that comes before its channel is connected."""
    one = bad([["busy"], ["ask"], ["reply"], ["idle"]], kernel="late")
    assert "answered ''" in one.run("c0")


def test_an_interrupt_that_takes_the_reply_with_it(bad):
    """ipykernel has such a moment, just before the code runs."""
    one = bad([["busy"], ["input"], ["stream", "x\n"], ["swallow"], ["idle"]], GOOD)
    said = one.fail("c0", status=504, code="TIMEOUT", timeout=2)
    assert said.startswith("Cell c0 was interrupted: it ran longer than 2 s (timeout).")
    assert one.text("c0") == "x\n"
    assert "hi" in one.run("c1") and one.cell("c1")["execution_count"] == 2


def test_an_interrupt_by_message(bad):
    one = bad([["busy"], ["sleep", 3], ["reply"], ["idle"]], kernel="messages")
    assert "TIMEOUT" in one.call("runNotebookCells", cellIds=["c0"], timeout=1).text


def test_an_end_after_the_reply(bad):
    one = bad([["busy"], ["stream", "x\n"], ["reply"], ["idle"], ["exit", 0]], GOOD)
    answer = one.call("runNotebookCells", cellIds=["c0", "c1"])
    assert answer.status_code == 422 and "exit code 0" in answer.text
    assert one.text("c0") == "x\n" and one.outputs("c1") == []
    assert "all its variables are gone" in one.run("c1")


def test_what_is_no_kernel(bad):
    said = bad(GOOD, kernel="dead").fail("c0", code="KERNEL_FAILED")
    assert said.startswith("The kernel `dead` ended before it was ready: exit code 3; the last it wrote: no module named nothing")
    said = bad(GOOD, kernel="missing").fail("c0", code="KERNEL_FAILED")
    assert "could not be started (/nowhere/at/all): No such file or directory" in said
    began = time.monotonic()
    said = bad(GOOD, kernel="mute").fail("c0", code="KERNEL_FAILED")
    assert "The kernel `mute` did not get ready within 8 s (cells.start_timeout)." in said
    assert time.monotonic() - began >= 8


def test_a_start_that_hangs_can_be_ended(bad):
    one = bad(GOOD, kernel="mute")
    handle = one.start("c0")
    eventually(lambda: "starting the kernel" in one.look(handle).text, 30, "it starts")
    answer = one.call("restartKernel")
    assert answer.status_code == 422 and "did not get ready" in answer.text
    assert "did not get ready" in one.wait_over(handle).text
