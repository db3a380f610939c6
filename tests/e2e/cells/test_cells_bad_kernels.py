# SPDX-License-Identifier: MIT
"""A scripted kernel that breaks every rule of the protocol, and programs that are no kernels at all."""

import concurrent.futures
import json
import time

import pytest
from cells_support import MUCH, RUN_SECONDS, Book, bad_kernel, need_zmq, write_spec
from conftest import Gateway, eventually
from preload_support import FAST, fast_clock

# Of the kernels that never get ready, by the clock of their gateway.
START_TIMEOUT = 30


def bad_gateway(folder, *sets):
    need_zmq()
    bad_kernel(folder / "jupyter", "bad")
    bad_kernel(folder / "jupyter", "dead", "dead")
    bad_kernel(folder / "jupyter", "mute", "mute")
    for name in ("late", "shares", "alone"):
        bad_kernel(folder / "jupyter", name, name)
    bad_kernel(folder / "jupyter", "messages", interrupt_mode="message")
    write_spec(folder / "jupyter", "missing", ["/nowhere/at/all", "{connection_file}"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
        return Gateway(folder / "data", ["plugins=cells", *sets])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    running = bad_gateway(tmp_path_factory.mktemp("bad"))
    yield running
    assert running.stop() == 0, "".join(running.errors)


@pytest.fixture
def bad(gateway, request):
    """bad(actions, ...): a notebook whose cells c0, c1 ... do these."""

    def make(*cells, kernel="bad"):
        sources = [(f"c{at}", json.dumps({"do": actions})) for at, actions in enumerate(cells)]
        return Book(gateway, request.node.name + ".ipynb", sources, kernel=kernel)

    return make


@pytest.fixture
def mute(tmp_path):
    """A notebook whose kernel never gets ready."""
    with fast_clock(tmp_path):
        running = bad_gateway(tmp_path, f"cells.start_timeout={START_TIMEOUT}s")
    yield Book(running, "mute.ipynb", [("c0", "1")], kernel="mute")
    assert running.stop() == 0, "".join(running.errors)


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
    # Only after the last cell of a run is it waited for.
    assert "Cell c0:\nafter\n\n5" in one.run("c0")
    one.run("c0", "c1")
    assert one.text("c1") == "hi\n"
    assert "after" in one.run("c0")


def test_output_between_two_cells(bad):
    """What comes after the end of a cell is its own, also before the next one has begun. Reading that one's source from a
    large file takes a while."""
    large = [["stream", "x" * 4_000_000]]
    one = bad([["busy"], ["input"], ["reply"], ["idle"], ["go_on"]], [["busy"], ["input"], ["lines"], ["reply"], ["idle"]], large)
    one.run("c0", "c1")
    count = int(one.text("c1"))
    assert count > 0 and one.text("c0") == "".join(f"{at}\n" for at in range(count))


def test_no_idle(bad):
    one = bad([["busy"], ["stream", "x\n"], ["reply"]], GOOD)
    one.run("c0", "c1")
    assert one.text("c0") == "x\n" and one.text("c1") == "hi\n"


@pytest.mark.long
def test_no_reply(bad):
    one = bad([["busy"], ["stream", "x\n"], ["idle"]], GOOD)
    said = one.fail("c0", status=504, code="TIMEOUT", timeout=5)
    assert "still running" in said and one.text("c0") == "x\n"
    assert one.call("restartKernel").status_code == 200
    assert "hi" in one.run("c1")


@pytest.mark.long
def test_no_reply_does_not_block_the_next_run(bad):
    one = bad([["busy"], ["stream", "x\n"], ["idle"]], GOOD)
    one.fail("c0", status=504, code="TIMEOUT", timeout=5)
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
    assert "Cell c1:\nnew\n\nOutput of cell c0 after the end of its run:\nold" in one.run("c1")
    assert one.text("c0") == "mine\nold\n" and one.text("c1") == "new\n"


def test_late_output_is_saved_before_its_kernel_exits(bad, tmp_path):
    one = bad([["busy"], ["input"], ["reply"], ["idle"], ["chatter", str(tmp_path / "go")], ["stream", "last words\n"], ["exit", 3]])
    one.run("c0")
    (tmp_path / "go").touch()
    eventually(lambda: one.text("c0").endswith("last words\n"), RUN_SECONDS, "the end in the file")


def test_output_without_a_parent_is_not_of_an_empty_cell(bad):
    one = bad([["orphan", "whose?\n"], ["busy"], ["reply"], ["idle"]])
    notebook = one.load()
    notebook["cells"].insert(0, {**notebook["cells"][0], "id": "empty", "source": []})
    one.path.write_text(json.dumps(notebook, indent=1) + "\n")
    one.run("empty", "c0")
    assert one.outputs("empty") == [] and one.text("c0") == "whose?\n"


@pytest.mark.long
def test_time_that_is_over_between_cells(bad, tmp_path):
    """The first one is whole, the second one is not begun."""
    timeout = 6  # long for a reply at once
    one = bad([["busy"], ["input"], ["stream", "whole\n"], ["reply"], ["chatter", str(tmp_path / "go")], ["idle"]], GOOD)
    handle = one.start("c0", "c1", timeout=timeout)
    eventually(lambda: "whole" in one.look(handle).text, RUN_SECONDS, "the first cell's output")
    time.sleep(timeout + 1)
    (tmp_path / "go").touch()
    over = one.wait_over(handle)
    said = over.json()["message"]
    assert (over.status_code, over.json()["code"]) == (504, "TIMEOUT")
    assert said.startswith("The run reached its time limit (timeout) before cell c1 began. "
                           "1 of 2 cell(s) were executed before, 1 not at all.")
    assert one.text("c0").startswith("whole\n") and one.outputs("c1") == []
    one.run("c1")


def test_an_interrupt_between_cells(bad, tmp_path):
    one = bad([["busy"], ["input"], ["reply"], ["stream", "replied\n"], ["chatter", str(tmp_path / "go")], ["idle"]], GOOD)
    handle = one.start("c0", "c1")
    eventually(lambda: "replied" in one.look(handle).text, RUN_SECONDS, "the reply")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        interrupt = pool.submit(one.call, "interruptKernel")
        # A call that interrupts waits in the queue, too.
        eventually(lambda: f"{one.path}: busy, 2 run(s)" in one.gateway.call("listKernels").text, RUN_SECONDS, "the interrupt")
        (tmp_path / "go").touch()
        assert interrupt.result().status_code in (200, 504)  # on a slow machine it does not wait for the end
    over = one.wait_over(handle)
    assert over.status_code == 422 and over.json()["code"] == "CELL_FAILED"
    assert over.json()["message"].startswith("The run was interrupted before cell c1 began. 1 of 2 cell(s) were executed before")
    assert one.outputs("c1") == []
    one.run("c1")


def test_a_huge_message(bad):
    one = bad([["busy"], ["huge", 102 // MUCH], ["stream", "end", "stderr"], ["reply"], ["idle"]], GOOD)
    said = one.run("c0")
    assert len(said) < 80_000
    first, note, last, end = ("".join(output["text"]) for output in one.outputs("c0"))
    assert (15 << 20) - 3 <= len(first + last + end) <= 16 << 20 and "not kept" in note and end == "end"
    assert "hi" in one.run("c1")


@pytest.mark.long
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


@pytest.mark.long
def test_an_interrupt_that_takes_the_reply_with_it(bad):
    """ipykernel has such a moment, just before the code runs."""
    one = bad([["busy"], ["input"], ["stream", "x\n"], ["swallow"], ["idle"]], GOOD)
    said = one.fail("c0", status=504, code="TIMEOUT", timeout=4)
    assert said.startswith("Cell c0 was interrupted: it ran longer than 4 s (timeout).")
    assert one.text("c0") == "x\n"
    assert "hi" in one.run("c1") and one.cell("c1")["execution_count"] == 2


@pytest.mark.long
def test_an_interrupt_by_message(bad):
    one = bad([["busy"], ["sleep", 10], ["reply"], ["idle"]], kernel="messages")
    assert "TIMEOUT" in one.call("runNotebookCells", cellIds=["c0"], timeout=2).text


def test_an_end_after_the_reply(bad):
    one = bad([["busy"], ["stream", "x\n"], ["reply"], ["idle"], ["exit", 0]], GOOD)
    answer = one.call("runNotebookCells", cellIds=["c0", "c1"])
    assert answer.status_code == 422 and "exit code 0" in answer.text
    assert one.text("c0") == "x\n" and one.outputs("c1") == []
    assert "all its variables are lost" in one.run("c1")


def test_what_is_no_kernel(bad, mute):
    said = bad(GOOD, kernel="dead").fail("c0", code="KERNEL_FAILED")
    assert said.startswith("The kernel `dead` ended before it was ready: exit code 3; "
                           "its last output: no module named nothing")
    said = bad(GOOD, kernel="missing").fail("c0", code="KERNEL_FAILED")
    assert "could not be started (/nowhere/at/all): No such file or directory" in said
    began = time.monotonic()
    said = mute.fail("c0", code="KERNEL_FAILED")
    assert f"The kernel `mute` did not get ready within {START_TIMEOUT} s (cells.start_timeout)." in said
    assert time.monotonic() - began >= START_TIMEOUT / FAST


@pytest.mark.parametrize("kernel", ["shares", "alone"])
def test_no_other_program_takes_the_ports_of_a_starting_kernel(bad, kernel):
    """Where its iopub is taken ipykernel hangs. A kernel that can use no held port has its last attempt without."""
    one = bad(GOOD, kernel=kernel)
    one.run("c0")
    assert one.text("c0") == "hi\n"


def test_a_start_that_hangs_can_be_ended(mute):
    handle = mute.start("c0")
    eventually(lambda: "starting the kernel" in mute.look(handle).text, what="it starts")
    answer = mute.call("restartKernel")
    assert answer.status_code == 422 and "did not get ready" in answer.text
    assert "did not get ready" in mute.wait_over(handle).text
