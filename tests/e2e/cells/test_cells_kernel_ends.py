# SPDX-License-Identifier: MIT
"""How many kernels there are, how they are found, and how they end: with the gateway, in every case, and with nothing
left."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import httpx
import pytest
from cells_support import (RUN_SECONDS, Book, bad_kernel, cells_gateway, guard_of, holder_of, marked, need, need_zmq,
                           write_notebook, write_spec)
from conftest import binary, environment, eventually
from preload_support import SANITIZED, shim


# ---- how many, how long ----


@pytest.mark.long
def test_kernels_are_capped(start):
    need("python3")
    running = start(["plugins=cells", "cells.max_kernels=2"])
    books = [Book(running, f"n{i}.ipynb", [("a", f"x = {i}"), ("busy", "import time\nwhile True: time.sleep(.1)"), ("x", "x")])
             for i in range(3)]
    handles = []
    for one in books[:2]:
        one.run("a")
        handles.append(one.start("busy"))
        one.wait_running(handles[-1], "busy")
    assert "All kernels are at work" in books[2].fail("a", status=503, code="BUSY")
    books[0].call("interruptKernel")
    books[0].wait_over(handles[0])
    assert "Successfully executed 1 cell(s)." in books[2].run("a")  # the idle one made room
    books[1].call("interruptKernel")
    books[1].wait_over(handles[1])
    assert "Cell x failed: NameError" in (said := books[0].fail("x")) and "all its variables are lost" in said


@pytest.mark.long
def test_idle_kernels_are_ended(start):
    need("python3")
    running = start(["plugins=cells", "cells.idle_timeout=1s"])
    one = Book(running, "n.ipynb", [("a", "x = 1"), ("b", "x"), ("c", "import time\ntime.sleep(2.5)\nx = 2\nx")])
    one.run("a")
    assert "Cell c:\n2" in one.run("c")  # one that works is not idle
    eventually(lambda: str(one.path) not in running.call("listKernels").text, RUN_SECONDS, "the kernel is ended")
    assert "all its variables are lost" in one.fail("b")


@pytest.mark.long
def test_too_many_runs_wait(start):
    need("python3")
    running = start(["plugins=cells"])
    one = Book(running, "n.ipynb", [("a", "import time\nwhile True: time.sleep(.1)"), ("b", "1")])
    first = one.start("a")
    one.wait_running(first, "a")
    for _ in range(63):
        one.start("b")
    last = one.wait_over(one.start("b"))
    assert last.status_code == 503 and "Too many runs wait" in last.text


def test_kernelspecs_are_found_where_jupyter_looks(start, tmp_path, monkeypatch):
    names = {"JUPYTER_PATH": tmp_path / "path", "JUPYTER_DATA_DIR": tmp_path / "data-dir", "VIRTUAL_ENV": tmp_path / "venv"}
    folders = {"JUPYTER_PATH": tmp_path / "path", "JUPYTER_DATA_DIR": tmp_path / "data-dir",
               "VIRTUAL_ENV": tmp_path / "venv" / "share" / "jupyter"}
    for at, (name, folder) in enumerate(folders.items()):
        monkeypatch.setenv(name, str(names[name]))
        for kernel in ("k0", "k1", "k2")[:at + 1]:
            write_spec(folder, kernel, ["/nowhere/" + name])
    write_spec(folders["JUPYTER_PATH"], "BIG", ["/x"])
    (folders["JUPYTER_PATH"] / "kernels" / "broken").mkdir()
    (folders["JUPYTER_PATH"] / "kernels" / "broken" / "kernel.json").write_text("{")
    running = start(["plugins=cells"])
    listed = running.call("listKernels").json()["result"]
    assert all(f"\n- {name}: " in listed for name in ("k0", "k1", "k2", "big")) and "broken" not in listed
    for kernel, name in (("k0", "JUPYTER_PATH"), ("k1", "VIRTUAL_ENV"), ("k2", "VIRTUAL_ENV")):
        # An environment that is active comes before the user's own folder; names are of any case.
        said = Book(running, f"{kernel}.ipynb", [("a", "1")], kernel=kernel.upper()).fail("a", code="KERNEL_FAILED")
        assert f"could not be started (/nowhere/{name}): No such file or directory" in said


# ---- the end ----


def strays(book_of, mark):
    """A cell whose children hide: another session, a double fork."""
    child = (f"import subprocess, sys, os\nos.environ['STRAY'] = {mark!r}\n"
             f"subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
             f"subprocess.run(['sh', '-c', 'setsid sh -c \"sleep 601 & sleep 602\" & exit'])\n"
             f"print('spawned', flush=True)\nimport time\ntime.sleep(600)")
    handle = book_of.start("a") if book_of else child
    return child if book_of is None else handle


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_nothing_survives_the_gateway(tmp_path, how):
    need("python3")
    mark = f"stray-{os.getpid()}-{how}-{time.monotonic_ns()}"
    running = cells_gateway(tmp_path / "data", "shutdown_timeout=1s")
    one = Book(running, "n.ipynb", [("a", strays(None, mark)), ("b", "1")])
    try:
        one.run("b")
        handle = one.start("a")
        eventually(lambda: "spawned" in one.look(handle).text, RUN_SECONDS, "the children")
        eventually(lambda: len(marked(mark)) >= 3, RUN_SECONDS, "the children are there")
        kernels = marked(str(tmp_path / "data"))
        running.process.send_signal(how)
        running.process.wait(RUN_SECONDS)
        eventually(lambda: not marked(mark), RUN_SECONDS, "the children are gone")
        eventually(lambda: not marked(str(tmp_path / "data")), RUN_SECONDS, "all are gone")
        assert kernels
        if how == signal.SIGTERM:
            assert running.process.returncode == 0
            assert one.text("a") == "spawned\n"  # its output was saved
    finally:
        running.client.close()
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


def test_a_killed_gateway_starts_again(tmp_path):
    need("python3")
    running = cells_gateway(tmp_path / "data")
    one = Book(running, "n.ipynb", [("a", "x = 1"), ("b", "2")])
    one.call("attachNotebook")
    one.run("a")
    running.process.kill()
    running.process.wait()
    running.client.close()
    again = cells_gateway(tmp_path / "data")
    try:
        one.gateway = again
        answer = again.call("runNotebookCells", {"cellIds": ["b"]})
        assert answer.json()["code"] == "NO_ACTIVE_NOTEBOOK"  # attached, but not active any more
        answer = one.call("runNotebookCells", cellIds=["b"])
        assert "A new kernel was started for this notebook: `python3`." in answer.json()["result"]
        assert len(list((tmp_path / "data" / "kernels").iterdir())) == 1
    finally:
        assert again.stop() == 0
    assert not list((tmp_path / "data").glob("kernels/*"))


def killed(pids):
    """All at once: none sees the others go."""
    for how in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, how)


@pytest.mark.parametrize("who", ["gateway and holder", "gateway and guard", "all"])
def test_nothing_survives_however_much_is_killed(tmp_path, who):
    need("python3")
    mark = f"stray-{os.getpid()}-{time.monotonic_ns()}"
    running = cells_gateway(tmp_path / "data")
    again = None
    one = Book(running, "n.ipynb", [("a", strays(None, mark)), ("b", "1")])
    try:
        handle = one.start("a")
        eventually(lambda: "spawned" in one.look(handle).text, RUN_SECONDS, "the children")
        eventually(lambda: len(marked(mark)) >= 4, RUN_SECONDS, "the children are there")
        pids = {"gateway": running.process.pid, "holder": holder_of(running), "guard": guard_of(running)}
        assert None not in pids.values() and len(set(pids.values())) == 3
        killed([pid for name, pid in pids.items() if name in who or who == "all"])
        running.process.wait(RUN_SECONDS)
        if who == "all":
            assert len(marked(mark)) >= 4  # no process is left that could end them
            again = cells_gateway(tmp_path / "data")
        eventually(lambda: not marked(mark), RUN_SECONDS, "the children are gone")
        if who != "all":
            eventually(lambda: not marked(str(tmp_path / "data")), RUN_SECONDS, "all are gone")
    finally:
        for gateway in (running, again):
            if gateway is not None:
                gateway.client.close()
                gateway.process.kill()
                gateway.process.wait()
        for pid in marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_another_data_directory_is_left_alone(tmp_path):
    """A gateway that was killed and started again removes only its own processes."""
    need("python3")
    other = cells_gateway(tmp_path / "other")
    try:
        one = Book(other, "n.ipynb", [("a", "x = 7"), ("b", "x")])
        one.run("a")
        for _ in range(2):
            running = cells_gateway(tmp_path / "data")
            Book(running, "n.ipynb", [("a", "1")]).run("a")
            running.client.close()
            running.process.kill()
            running.process.wait()
            eventually(lambda: not marked(str(tmp_path / "data")), RUN_SECONDS, "all are gone")
        assert "Cell b:\n7" in one.run("b")
    finally:
        assert other.stop() == 0


def test_a_kill_during_runs_keeps_what_was_acknowledged(tmp_path):
    """Cells are added, changed and run by several at once; whatever was answered is in the file after SIGKILL, which is whole."""
    import nbformat
    need("python3")
    running = cells_gateway(tmp_path / "data")
    books = [Book(running, f"n{at}.ipynb", [("a", "for i in range(5): print(i, 'x' * 1000)")]) for at in range(2)]
    known = [[] for _ in books]
    stop = threading.Event()

    def work(one, mine):
        try:
            while not stop.is_set():
                made = one.call("addNotebookCell", type="code", index=-1, content=f"print('cell', {len(mine)})").json()["result"]
                cell = made.split("Cell ID: ")[1].split()[0]
                mine.append([cell, False])
                one.run(cell, "a")
                mine[-1][1] = True
        except (httpx.HTTPError, AssertionError):
            pass

    threads = [threading.Thread(target=work, args=pair) for pair in zip(books, known)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: all(sum(ran for _, ran in mine) >= 3 for mine in known), RUN_SECONDS, "some cells ran")
    finally:
        running.process.kill()
        running.process.wait()
        stop.set()
        for thread in threads:
            thread.join()
        running.client.close()
    eventually(lambda: not marked(str(tmp_path / "data")), RUN_SECONDS, "all are gone")
    for one, mine in zip(books, known):
        nbformat.validate(nbformat.read(one.path, as_version=4))
        assert one.text("a") == "".join(f"{i} {'x' * 1000}\n" for i in range(5))
        for at, (cell, ran) in enumerate(mine):
            assert one.cell(cell)["source"] == [f"print('cell', {at})"]
            assert not ran or one.text(cell) == f"cell {at}\n"


def test_two_gateways_run_cells_of_one_file(tmp_path):
    """Each has a kernel of its own; no output of either is lost."""
    need("python3")
    both = []
    try:
        for name in ("one", "two"):
            (tmp_path / "shared").mkdir(exist_ok=True)
            both.append(cells_gateway(tmp_path / name, f"roots={tmp_path / 'shared'}"))
        cells = [(f"{name}{at}", f"print('{name}', {at})") for name in "ab" for at in range(6)]
        one = Book(both[0], "n.ipynb", cells, folder=tmp_path / "shared")
        two = one.through(both[1])

        def work(mine, name):
            return {(name, at): mine.run(f"{name}{at}") for at in range(6)}

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            said = [text for done in pool.map(work, (one, two), "ab") for text in done.items()]
        assert len(said) == 12 and all(f"{name} {at}" in text for (name, at), text in said)
        assert {cell: one.text(cell) for cell, _ in cells} == {f"{name}{at}": f"{name} {at}\n" for name in "ab" for at in range(6)}
        handle = one.start("a0")
        one.wait_over(handle)
        assert two.look(handle).json()["code"] == "RUN_NOT_FOUND"
    finally:
        for gateway in both:
            assert gateway.stop() == 0


def test_the_holder_is_killed(start):
    need("python3")
    running = start(["plugins=cells"])
    mark = f"stray-{os.getpid()}-{time.monotonic_ns()}"
    one = Book(running, "n.ipynb", [("a", strays(None, mark)), ("b", "1")])
    handle = one.start("a")
    eventually(lambda: "spawned" in one.look(handle).text, RUN_SECONDS, "the children")
    holder = holder_of(running)
    assert holder
    os.kill(holder, signal.SIGTERM)  # only the end of the gateway ends it
    os.kill(holder, signal.SIGKILL)
    over = one.wait_over(handle)
    assert over.status_code == 422 and "the supervisor of kernels ended" in over.json()["message"]
    eventually(lambda: not marked(mark), RUN_SECONDS, "the children are gone")
    assert "all its variables are lost" in one.run("b")
    assert holder_of(running) not in (None, holder)


if not SANITIZED:  # a sanitizer's runtime must come before everything that is preloaded

    def test_last_words_that_are_read_late(tmp_path, monkeypatch):
        """The news of its end comes another way, and sooner."""
        need_zmq()
        late = tmp_path / "late"
        bad_kernel(tmp_path / "jupyter", "bad")
        monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
        shim(monkeypatch, tmp_path, "late_recv")
        monkeypatch.setenv("LATE_RECV", str(late))
        running = cells_gateway(tmp_path / "data")
        try:
            # It exits when what it said has left it.
            does = [["busy"], ["input"], ["chatter", str(late)], ["stream", "last\n"], ["exit", 7]]
            one = Book(running, "n.ipynb", [("a", json.dumps({"do": does}))], kernel="bad")
            handle = one.start("a")
            one.wait_running(handle, "a")
            late.touch()
            assert "exit code 7" in one.wait_over(handle).json()["message"]
            assert one.text("a").endswith("last\n")
            late.unlink()
        finally:
            assert running.stop() == 0


def test_secrets_and_descriptors_stay_here(tmp_path, monkeypatch, start):
    need("python3")
    secrets = {"NOTEGATE_LOG_LEVEL": "info", "MONGODB_URL": "mongodb://u:hush-hush@h", "REDIS_URL": "redis://:hush-hush@h"}
    real = environment()
    monkeypatch.setattr("conftest.environment", lambda: {**real, **secrets, "KEPT": "yes"})
    running = start(["plugins=cells"])
    one = Book(running, "n.ipynb", [("a", "import os\nprint(sorted(os.environ))\nprint(os.environ['KEPT'], os.getcwd())\n"
                                          "print([os.readlink('/proc/self/fd/%s' % f) for f in os.listdir('/proc/self/fd')\n"
                                          "       if os.path.exists('/proc/self/fd/%s' % f)])")])
    text = one.run("a")
    assert "'KEPT'" in text and f"yes {one.path.parent}" in text
    assert "hush-hush" not in text and not any(f"'{name}'" in text for name in secrets)
    assert str(tmp_path / "data" / "notegate") not in text


def test_stdio_carries_the_protocol_only(tmp_path):
    need("python3")
    data = tmp_path / "data"
    (data / "files").mkdir(parents=True)
    write_notebook(data / "files" / "n.ipynb", [("a", "import os, sys\nos.write(1, b'raw bytes\\n'); os.system('echo child'); print(1)")])
    process = subprocess.Popen([binary(), "mcp", "--data-dir", str(data), "--set", "plugins=cells"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), cwd=tmp_path)
    timer = threading.Timer(RUN_SECONDS, process.kill)
    timer.start()
    try:
        for number, (method, params) in enumerate((
                ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
                ("tools/call", {"name": "runNotebookCells", "arguments": {"notebook": "n.ipynb", "cellIds": ["a"]}}))):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
            process.stdin.flush()
            while json.loads(process.stdout.readline()).get("id") != number:
                pass
        process.stdin.close()
        rest = process.stdout.read()
        assert all(json.loads(line) for line in rest.splitlines())
        assert process.wait(RUN_SECONDS) == 0
        eventually(lambda: not marked(str(data)), RUN_SECONDS, "all are gone")
    finally:
        timer.cancel()
        process.kill()
        process.wait()


def test_a_relative_data_directory(tmp_path):
    need("python3")
    data = tmp_path / "data"
    (data / "files").mkdir(parents=True)
    write_notebook(data / "files" / "n.ipynb", [("a", "6 * 7")])
    done = subprocess.run([binary(), "call", "runNotebookCells", json.dumps({"notebook": "n.ipynb", "cellIds": ["a"]}),
                           "--data-dir", "data", "--set", "plugins=cells"], capture_output=True, text=True,
                          env=environment(), cwd=tmp_path, timeout=RUN_SECONDS, check=False)
    assert done.returncode == 0 and "42" in done.stdout, done


def test_without_the_holder_program(start, tmp_path):
    need("python3")
    alone = tmp_path / "cells.so"
    alone.write_bytes((pathlib.Path(binary()).parents[1] / "modules" / "plugins" / "cells.so").read_bytes())
    running = start([f"plugins={alone}"])
    said = Book(running, "n.ipynb", [("a", "1")]).fail("a", code="KERNEL_FAILED")
    assert f"the supervisor {tmp_path}/notegate-kernels does not start: No such file or directory" in said
