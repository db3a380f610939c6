# SPDX-License-Identifier: MIT
"""What a cell puts out, at its limit and after its end, and how a terminal would show it."""

import pytest
from cells_support import RUN_SECONDS, Book, cells_gateway, code, need, waits
from conftest import eventually

CAP = 64 * 1024


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    need("python3")
    running = cells_gateway(tmp_path_factory.mktemp("outputs") / "data", f"cells.max_saved_output={CAP}", "cells.max_kernels=40")
    yield running
    assert running.stop() == 0, "".join(running.errors)


@pytest.fixture
def book(gateway, request):
    made = []

    def make(*cells, **more):
        made.append(Book(gateway, f"{request.node.name}-{len(made)}.ipynb", cells, **more))
        return made[-1]

    return make


def read(one, cell, **more):
    return one.call("getCellOutputs", cellId=cell, **more).json()["result"]


# ---- the limit of what is saved ----

LINES = "for i in range(3000): print(f'line {i:05} ' + 'x' * 40)\n"


def test_the_end_of_long_output_is_kept(book):
    one = book(("a", LINES + "print('FINAL')"))
    answer = one.run("a")
    saved = one.text("a")
    for text in (answer, saved, read(one, "a")):
        assert "line 00000 " in text and text.rstrip().endswith("FINAL")
    assert "bytes of output were not kept here: cells.max_saved_output is 65536" in saved
    before, after = saved.split("[notegate: ")
    assert len(before) + len(after.split("]\n", 1)[1]) <= CAP
    first = int(after.split("]\n", 1)[1].split()[1])
    assert after.split("]\n", 1)[1] == "".join(f"line {i:05} {'x' * 40}\n" for i in range(first, 3000)) + "FINAL\n"


@pytest.mark.parametrize("between", [LINES, "print('y' * 500_000)\n", "import sys\nsys.stderr.write('z\\n' * 100_000)\n"])
def test_a_value_and_a_traceback_are_kept(book, between):
    one = book(("value", between + "'the ' + 'value'"), ("error", between + "raise ValueError('the ' + 'error')"))
    assert "'the value'" in one.run("value")
    assert one.outputs("value")[-1]["data"]["text/plain"] == ["'the value'"]
    said = one.fail("error")
    assert said.startswith("Cell error failed: ValueError: the error.") and "Traceback" in said
    last = one.outputs("error")[-1]
    assert (last["ename"], last["evalue"]) == ("ValueError", "the error") and "ValueError" in "".join(last["traceback"])


def test_both_ends_of_a_large_value_are_kept(book):
    one = book(("a", "'begin' + 'x' * 300_000 + 'end'"))
    saved = "".join(one.run("a") and one.outputs("a")[-1]["data"]["text/plain"])
    assert saved.startswith("'beginxxx") and saved.endswith("xxxend'") and "were not kept here" in saved and len(saved) <= CAP
    assert read(one, "a").endswith("xxxend'")


def test_the_last_state_of_a_bar_is_kept_at_the_limit(book):
    bar = "from IPython.display import HTML, display\nbar = display(HTML(''), display_id=True)\n"
    one = book(("a", LINES + bar + "for i in range(0, 30_001, 1000):\n    bar.update(HTML('#' * i))\nprint('FINAL')"))
    one.run("a")
    shown, = ["".join(output["data"]["text/html"]) for output in one.outputs("a") if output["output_type"] == "display_data"]
    assert shown == "#" * 30_000
    assert one.text("a").startswith("line 00000 ") and one.text("a").endswith("FINAL\n") and len(one.text("a")) <= CAP


def test_a_large_error_is_cut(book):
    one = book(("a", "raise ValueError('begin' + 'x' * 300_000 + 'end')"))
    said = one.fail("a")
    assert said.startswith("Cell a failed: ValueError: beginxxx") and "xxxend" in said
    (output,) = one.outputs("a")
    assert output["ename"] == "ValueError" and "Traceback" in "".join(output["traceback"])
    assert "were not kept here" in output["evalue"] and output["evalue"].startswith("begin") and output["evalue"].endswith("end")


def test_a_progress_bar_does_not_displace_what_was_printed(book):
    bar = "for i in range(5001): print(f'\\r\\x1b[32m{i / 50:6.2f}% ' + '#' * (i // 100), end='', flush=i % 50 == 0)\n"
    one = book(("a", "print('before')\n" + bar + "print()\nprint('after')"))
    one.run("a")
    assert "not kept" not in one.text("a") and len(one.text("a")) <= CAP
    assert read(one, "a") == f"Outputs for cell a:\n\nbefore\n100.00% {'#' * 50}\nafter"


def test_cleared_output_does_not_count(book):
    one = book(("a", "from IPython.display import clear_output\n" + LINES + "clear_output()\nprint('only')"))
    one.run("a")
    assert one.text("a") == "only\n"


# ---- what a terminal shows ----


def stream(text, name="stdout"):
    return {"name": name, "output_type": "stream", "text": text}


@pytest.mark.parametrize("pieces, shown", [
    (["downloading 1234", "\r\x1b[K", "done\n"], "done"),
    (["0 ", "1\n"], "0 1"),
    (["50%", "\r100%", "\n"], "100%"),
    (["one\ntwo\n", "\x1b[1A\x1b[2KTWO\n", "three"], "one\nTWO\nthree"),
    (["a", "b\b", "c"], "ac"),
    (["\x1b[1;3", "1mred\x1b[0", "m"], "red"),
])
def test_pieces_of_a_stream_are_one_text(book, pieces, shown):
    outputs = [stream(piece) for piece in pieces]
    one = book(code("a", "1", outputs=outputs))
    before = one.path.read_bytes()
    assert read(one, "a") == "Outputs for cell a:\n\n" + shown
    assert one.path.read_bytes() == before


def test_other_streams_are_other_texts(book):
    one = book(code("a", "1", outputs=[stream("a"), stream("b", "stderr"), stream("c")]))
    assert read(one, "a") == "Outputs for cell a:\n\na\n\n[stderr] b\n\nc"


# ---- sources that no kernel runs ----


def test_a_nul_in_a_source_is_named(book):
    one = book(("a", "1"), ("b", "'b'"))
    assert one.call("updateNotebookCell", cellId="a", content="x = 1\ny = '\0'").status_code == 200
    said = one.fail("a")
    assert said.startswith("Cell a cannot be run: its source has a NUL character (character 12, in line 2); remove it."), said
    assert "Cell b:\n'b'" in one.run("b")


def test_a_nul_in_a_file_stops_no_kernel(book):
    one = book(("a", "x = 5"), ("nul", "\u00e9\0"), ("b", "x"))
    said = one.fail("a", "nul", "b")
    assert said.startswith("Cell nul cannot be run: its source has a NUL character (character 2, in line 1); remove it. "
                           "1 of 3 cell(s) were executed before, 2 not at all."), said
    assert "Cell b:\n5" in one.run("b")


# ---- output after the end of its cell ----


def go_on(folder, *lines):
    """A cell that ends while a thread of it waits for `go` in the folder."""
    return "\n".join(["import threading, os, time", "from IPython.display import display, clear_output, HTML",
                      "def more():", *(f"    {line}" for line in waits(folder / "go").splitlines()), *(f"    {line}" for line in lines),
                      "print('begun')", "h = display(HTML('one'), display_id='d')",
                      "threading.Thread(target=more, daemon=True).start()"])


def test_late_output_is_saved_when_it_comes(book, tmp_path):
    """Without another run: each time all of it, behind what the run has saved."""
    one = book(("a", go_on(tmp_path, "print('first', flush=True)", "h.update(HTML('two'))",
                           *waits(tmp_path / "again").splitlines(), "print('second', flush=True)")), ("b", "'b'"))
    one.run("a")
    (tmp_path / "go").touch()
    eventually(lambda: one.text("a") == "begun\nfirst\n", RUN_SECONDS, "the first line in the file")
    assert one.outputs("a")[1]["data"]["text/html"] == ["two"]
    assert "first" in read(one, "a")
    (tmp_path / "again").touch()
    eventually(lambda: one.text("a") == "begun\nfirst\nsecond\n", RUN_SECONDS, "the second line in the file")
    assert one.cell("a")["execution_count"] == 1 and len(one.outputs("a")) == 3
    assert "Output of cell a after the end of its run:\nfirst\nsecond" in one.run("b")
    assert one.text("a") == "begun\nfirst\nsecond\n"


def test_late_output_that_clears_is_saved(book, tmp_path):
    one = book(("a", go_on(tmp_path, "clear_output()", "print('only this', flush=True)")))
    one.run("a")
    (tmp_path / "go").touch()
    eventually(lambda: one.text("a") == "only this\n", RUN_SECONDS, "the file")


def test_late_output_is_saved_before_the_kernel_is_restarted(book, tmp_path):
    one = book(("a", go_on(tmp_path, "print('late', flush=True)", f"open({str(tmp_path / 'done')!r}, 'w').close()")), ("b", "'b'"))
    one.run("a")
    (tmp_path / "go").touch()
    eventually((tmp_path / "done").exists, RUN_SECONDS, "the thread is done")
    assert one.call("restartKernel").status_code == 200
    eventually(lambda: one.text("a") == "begun\nlate\n", RUN_SECONDS, "the file")


def test_late_output_has_a_limit(book, tmp_path):
    one = book(("a", go_on(tmp_path, *LINES.splitlines(), "print('FINAL', flush=True)")))
    one.run("a")
    (tmp_path / "go").touch()
    eventually(lambda: one.text("a").endswith("FINAL\n"), RUN_SECONDS, "the file")
    assert one.text("a").startswith("begun\nline 00000 ") and len(one.text("a")) < CAP + 200


def test_late_output_does_not_keep_a_gateway(tmp_path):
    need("python3")
    running = cells_gateway(tmp_path / "data")
    one = Book(running, "waits.ipynb", [("a", go_on(tmp_path, "pass"))])
    one.run("a")
    assert "notegate_plugin_deferred_calls{plugin=\"cells\"} 0" in running.client.get("/metrics").text
    assert running.stop() == 0, "".join(running.errors)
