# SPDX-License-Identifier: MIT
"""Notebooks for tests that run cells, and a gateway with the kernels that are installed here or made by the test."""

import json
import os
import pathlib
import subprocess

import httpx
import pytest
from conftest import SOURCE, Gateway, eventually
from preload_support import FAST, fast_clock

PYTHON = "/usr/bin/python3"
SPECS = pathlib.Path("/usr/share/jupyter/kernels")
BAD_KERNEL = SOURCE / "tests" / "support" / "misbehaving_kernel.py"
RUN_SECONDS = 120
# How much of a flood is sent: sanitizers are slow, and find as much in less.
MUCH = 1 if os.environ.get("NOTEGATE_TEST_PRESET") not in ("asan", "tsan") else 6


def need(*kernels):
    """Skips without these kernels of Debian."""
    for name in kernels:
        if not (SPECS / name / "kernel.json").exists():
            pytest.skip(f"there is no kernel {name}: install python3-ipykernel and xpython")


def need_zmq():
    need("python3")
    if subprocess.run([PYTHON, "-c", "import zmq"], capture_output=True, check=False).returncode:
        pytest.skip("there is no python3-zmq for the scripted kernel")


def code(cell_id, source, **more):
    cell = {"cell_type": "code", "execution_count": None, "id": cell_id, "metadata": {}, "outputs": [],
            "source": source.splitlines(keepends=True)}
    return {**cell, **more}


def markdown(cell_id, source):
    return {"cell_type": "markdown", "id": cell_id, "metadata": {}, "source": source.splitlines(keepends=True)}


def write_notebook(path, cells, kernel="python3", minor=5, **metadata):
    """Cells: (id, source) or whole cells."""
    whole = [code(*cell) if isinstance(cell, tuple) else cell for cell in cells]
    if minor < 5:
        whole = [{key: value for key, value in cell.items() if key != "id"} for cell in whole]
    if kernel:
        metadata["kernelspec"] = {"display_name": kernel, "name": kernel}
    notebook = {"cells": whole, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def write_spec(folder, name, argv, **more):
    """A kernel.json below a folder of JUPYTER_PATH."""
    place = folder / "kernels" / name
    place.mkdir(parents=True)
    spec = {"argv": argv, "display_name": f"The {name}", "language": "none", **more}
    (place / "kernel.json").write_text(json.dumps(spec))


def bad_kernel(folder, name, *words, **more):
    write_spec(folder, name, [PYTHON, str(BAD_KERNEL), "{connection_file}", *words], **more)


LINE = "\nNotebook: "


def plain(answer):
    """The answer without the line that names its notebook, which must say what `_meta` says."""
    whole = answer.json()
    for member in ("result", "message"):
        if isinstance(whole.get(member), str) and LINE in whole[member]:
            whole[member], path = whole[member].rsplit(LINE, 1)
            assert whole["_meta"]["notegate/notebook"] == path
    return httpx.Response(answer.status_code, json=whole)


class Book:
    """A notebook of a gateway and what a test does with it."""

    def __init__(self, gateway, name, cells, agent=None, folder=None, **more):
        self.gateway = gateway
        self.path = (folder or gateway.data_dir / "files") / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.headers = {"X-Notegate-Agent": agent} if agent else None
        write_notebook(self.path, cells, **more)

    def cells(self, cells, **more):
        """Other cells from now on."""
        write_notebook(self.path, cells, **more)

    def as_agent(self, agent):
        other = object.__new__(Book)
        other.gateway, other.path, other.headers = self.gateway, self.path, {"X-Notegate-Agent": agent}
        return other

    def through(self, gateway):
        other = object.__new__(Book)
        other.gateway, other.path, other.headers = gateway, self.path, self.headers
        return other

    def call(self, tool, **arguments):
        return plain(self.gateway.client.post(f"/v1/tools/{tool}", json={"notebook": str(self.path), **arguments},
                                              headers=self.headers, timeout=RUN_SECONDS))

    def run(self, *cells, **more):
        """The answer's text; it must be a success."""
        answer = self.call("runNotebookCells", cellIds=list(cells), **more)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    def fail(self, *cells, status=422, code="CELL_FAILED", **more):
        """The sentence of a run that must fail so."""
        answer = self.call("runNotebookCells", cellIds=list(cells), **more)
        assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
        return answer.json()["message"]

    def start(self, *cells, **more):
        """A run in the background; its handle."""
        text = self.run(*cells, background=True, **more)
        return text.split("Run: ")[1].split()[0]

    def look(self, handle):
        return plain(self.gateway.client.post("/v1/tools/getNotebookRun", json={"run": handle}, headers=self.headers,
                                              timeout=RUN_SECONDS))

    def is_running(self, handle, cell):
        return f"Cell {cell}: running" in self.look(handle).text

    def wait_running(self, handle, cell):
        eventually(lambda: self.is_running(handle, cell), RUN_SECONDS, f"cell {cell} runs")

    def wait_over(self, handle):
        """The last answer about the run."""
        def over():
            answer = self.look(handle)
            return None if f"Run {handle} is " in answer.text else answer
        return eventually(over, RUN_SECONDS, "the run is over")

    def load(self):
        return json.loads(self.path.read_text())

    def cell(self, cell_id):
        return next(cell for cell in self.load()["cells"] if cell.get("id") == cell_id)

    def outputs(self, cell_id):
        return self.cell(cell_id)["outputs"]

    def text(self, cell_id):
        """All text of streams."""
        return "".join("".join(output["text"]) for output in self.outputs(cell_id) if output["output_type"] == "stream")


def marked(mark):
    """Processes with this text in their command or environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                data = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in data:
                found.append(int(entry.name))
    return found


def child_of(parent):
    """The process below this one that has to do with holding kernels."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                name = (entry / "comm").read_text().strip()
            except OSError:
                continue
            if int(fields[1]) == parent and name.startswith("notegate-kernel"):
                return int(entry.name)
    return None


def guard_of(gateway):
    """The process that guards the one that holds its kernels."""
    return child_of(gateway.process.pid)


def holder_of(gateway):
    """Its supervisor of kernels."""
    guard = guard_of(gateway)
    return guard and child_of(guard)


def cells_gateway(data_dir, *sets):
    return Gateway(data_dir, ["plugins=cells", *sets])


# ---- fixtures, for modules that import them ----


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    need("python3")
    running = cells_gateway(tmp_path_factory.mktemp("kernels") / "data", "cells.max_saved_output=1MiB", "cells.max_output_text=8KiB",
                            "cells.max_kernels=40")
    yield running
    assert running.stop() == 0, "".join(running.errors)


@pytest.fixture
def book(gateway, request):
    """book(cells, ...): a notebook of its own, with its kernel."""
    made = []

    def make(*cells, **more):
        made.append(Book(gateway, f"{request.node.name}-{len(made)}.ipynb", cells, **more))
        return made[-1]

    yield make


@pytest.fixture
def hasty(tmp_path):
    """hasty(cells, ...): a notebook of a gateway of its own, whose clock is fast; kernels have time to start nevertheless."""
    with fast_clock(tmp_path):
        running = cells_gateway(tmp_path / "data", f"cells.start_timeout={60 * FAST}s")
    yield lambda *cells, **more: Book(running, "hasty.ipynb", cells, **more)
    assert running.stop() == 0, "".join(running.errors)


def waits(path):
    """Code that continues when the test has made this file, so that the steps before are in time on any machine."""
    return f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(.02)\n"
