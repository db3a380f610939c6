# SPDX-License-Identifier: MIT
"""Two gateways on one database and one folder: the kernel of a notebook runs on one of them, which is known to the other,
and moves when that one stops, dies, or was stopped for too long."""

import concurrent.futures
import os
import re
import signal

import pytest
from cells_support import RUN_SECONDS, Book, marked, need, waits
from conftest import Gateway, eventually
from servers import freeze

NOTEBOOKS = 6
# A dead gateway is given up after 15 s; more on a busy machine.
PATIENCE = 120


class Pair:
    """Gateways "one" and "two"."""

    def __init__(self, folder, mongo):
        self.folder = folder
        self.mongo = mongo
        self.shared = folder / "shared"
        self.shared.mkdir()
        self.gateways = {}

    def start(self, name, *sets):
        self.gateways[name] = Gateway(self.folder / name, [
            "plugins=cells", "documents=mongo", f"mongo.uri={self.mongo.uri}", f"roots={self.shared}", *sets])
        gateway = self.gateways[name]
        eventually(lambda: gateway.client.get("/readyz").status_code == 200, PATIENCE, "readiness")
        return gateway

    def book(self, name, *cells, through="one"):
        return Book(self.gateways[through], name, cells, folder=self.shared)

    def name_of(self, gateway):
        return (gateway.data_dir / "gateway.id").read_text()


@pytest.fixture
def pair(tmp_path, servers):
    need("python3")
    made = Pair(tmp_path, servers.mongo())
    yield made
    for gateway in made.gateways.values():
        if gateway.process.poll() is None:
            gateway.process.send_signal(signal.SIGCONT)
            assert gateway.stop() == 0, "".join(gateway.errors)


@pytest.fixture
def both(pair):
    pair.start("one")
    pair.start("two")
    return pair


def elsewhere(answer, gateway_id):
    """The refusal that names the gateway."""
    told = answer.json()
    assert (answer.status_code, told["code"]) == (421, "KERNEL_ELSEWHERE"), answer.text
    assert gateway_id in told["message"] and told["details"]["gateway"].startswith(gateway_id), told
    assert "Send the call to that gateway" in told["hint"]
    return told


def running(gateway):
    """Notebooks whose kernel it has."""
    text = gateway.call("listKernels").json()["result"]
    own = text.split("Kernels of other gateways:")[0]
    return set(re.findall(r" for (\S+\.ipynb):", own))


def test_one_kernel_for_both(both):
    one = both.book("n.ipynb", ("a", "x = 5"), ("b", "print(x)"))
    two = one.through(both.gateways["two"])
    first = both.name_of(one.gateway)
    assert "A new kernel was started" in one.run("a")
    elsewhere(two.call("runNotebookCells", cellIds=["b"]), first)
    elsewhere(two.call("runNotebookCells", cellIds=["b"], background=True), first)
    elsewhere(two.call("interruptKernel"), first)
    elsewhere(two.call("restartKernel"), first)
    # Files are read and changed anywhere.
    assert two.call("updateNotebookCell", cellId="b", content="print(x + 1)").status_code == 200
    assert "print(x + 1)" in two.call("getNotebookCells").json()["result"]
    assert "6" in one.run("b")
    assert "6" in two.call("getCellOutputs", cellId="b").json()["result"]
    # Runs and kernels tell where they are.
    handle = one.start("b")
    one.wait_over(handle)
    elsewhere(two.look(handle), first)
    assert two.look("0" * len(handle)).json()["code"] == "RUN_NOT_FOUND"
    assert two.look(handle.split("-")[0]).json()["code"] == "RUN_NOT_FOUND"
    assert running(one.gateway) == {str(one.path)} and running(two.gateway) == set()
    assert f"for {one.path}: gateway {first}" in two.gateway.call("listKernels").json()["result"]
    # A stop hands over at once.
    assert one.gateway.stop() == 0
    assert "A new kernel was started" in two.call("runNotebookCells", cellIds=["a"]).json()["result"]
    assert two.look(handle).json()["code"] in ("KERNEL_ELSEWHERE", "RUN_NOT_FOUND")


@pytest.mark.long
def test_an_idle_kernel_leaves_its_notebook(pair):
    pair.start("one", "cells.idle_timeout=1s")
    pair.start("two")
    one = pair.book("n.ipynb", ("a", "x = 5"))
    two = one.through(pair.gateways["two"])
    one.run("a")
    eventually(lambda: two.call("runNotebookCells", cellIds=["a"]).status_code == 200, PATIENCE, "the other's turn")
    elsewhere(one.call("runNotebookCells", cellIds=["a"]), pair.name_of(two.gateway))


@pytest.mark.long
def test_its_gateway_is_killed(both):
    one = both.book("n.ipynb", ("a", "x = 5"), ("b", "x = 6; print(x)"))
    two = one.through(both.gateways["two"])
    one.run("a")
    handle = one.start("a")
    one.gateway.process.kill()
    one.gateway.process.wait()
    one.gateway.client.close()

    def taken():
        answer = two.call("runNotebookCells", cellIds=["b"])
        assert answer.status_code == 200 or answer.json()["code"] == "KERNEL_ELSEWHERE", answer.text
        return answer.status_code == 200 and answer.json()["result"]

    assert "all its variables are lost" in eventually(taken, PATIENCE, "the other has taken over")
    assert two.look(handle).json()["code"] == "RUN_NOT_FOUND"
    # It comes back, and the notebook stays where it is.
    again = one.through(both.start("one"))
    elsewhere(again.call("runNotebookCells", cellIds=["b"]), both.name_of(two.gateway))
    assert two.run("b").startswith("Successfully executed 1 cell(s).\n\n")


@pytest.mark.long
def test_it_restarts_before_it_is_given_up(both):
    """What it had before its end is not its own any more, and nobody waits for that."""
    one = both.book("n.ipynb", ("a", "x = 5"))
    other = both.book("m.ipynb", ("a", "x = 5"))
    two = other.through(both.gateways["two"])
    one.run("a")
    other.run("a")
    one.gateway.process.kill()
    one.gateway.process.wait()
    one.gateway.client.close()
    again = one.through(both.start("one"))
    assert "all its variables are lost" in again.run("a")
    eventually(lambda: two.call("runNotebookCells", cellIds=["a"]).status_code == 200, PATIENCE, "the other's turn")


@pytest.mark.long
def test_it_is_stopped_for_long(both, tmp_path):
    """It finds that its notebook was taken over: its kernel ends, and what its run printed is not saved."""
    go = tmp_path / "go"
    one = both.book("n.ipynb", ("a", waits(go) + "print('of the first')"), ("b", "y = 7; print('of the second')"), ("c", "print(y)"))
    idle = both.book("idle.ipynb", ("a", "x = 5"))
    two = one.through(both.gateways["two"])
    idle.run("a")
    handle = one.start("a", timeout=600)
    one.wait_running(handle, "a")
    freeze(one.gateway.process)
    for book, cell in ((two, "b"), (idle.through(both.gateways["two"]), "a")):
        eventually(lambda book=book, cell=cell: book.call("runNotebookCells", cellIds=[cell]).status_code == 200,
                   PATIENCE, "the other has taken over")
    before = one.path.read_bytes()
    go.touch()
    one.gateway.process.send_signal(signal.SIGCONT)
    over = one.wait_over(handle)
    told = over.json()
    assert (over.status_code, told["code"]) == (421, "KERNEL_ELSEWHERE"), over.text
    assert "another gateway runs the kernel of this notebook now" in told["message"]
    assert one.path.read_bytes() == before
    eventually(lambda: not running(one.gateway), PATIENCE, "its kernels are gone")
    eventually(lambda: not [process for process in marked(str(one.gateway.data_dir)) if process != one.gateway.process.pid
                            and "ipykernel" in command_of(process)], PATIENCE, "their processes, too")
    elsewhere(one.call("runNotebookCells", cellIds=["c"]), both.name_of(two.gateway))
    assert "7" in two.run("c")


def command_of(process):
    try:
        with open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


@pytest.mark.long
def test_many_notebooks_at_once(both):
    """Each is asked for through both gateways at the same time: one of them runs it, and no other kernel is made."""
    books = [both.book(f"n{number}.ipynb", ("a", "import os; print('pid', os.getpid())")) for number in range(NOTEBOOKS)]
    ways = [(book, gateway) for book in books for gateway in both.gateways.values()]
    with concurrent.futures.ThreadPoolExecutor(len(ways)) as pool:
        answers = list(pool.map(lambda way: way[0].through(way[1]).call("runNotebookCells", cellIds=["a"]), ways))
    for number in range(NOTEBOOKS):
        mine = answers[2 * number:2 * number + 2]
        assert sorted(answer.status_code for answer in mine) == [200, 421], [answer.text for answer in mine]
    have = [running(gateway) for gateway in both.gateways.values()]
    assert have[0] | have[1] == {str(book.path) for book in books} and not have[0] & have[1]
    again = {gateway: [book for book in books if str(book.path) in mine] for gateway, mine in zip(both.gateways.values(), have)}
    for gateway, mine in again.items():
        for book in mine:
            assert book.through(gateway).run("a").startswith("Successfully executed 1 cell(s).\n\n")


@pytest.mark.long
def test_another_folder_at_the_same_path(pair, tmp_path):
    """Notebooks of one path in different folders have nothing to do with each other: gateways may have own disks."""
    pair.start("one")
    one = pair.book("n.ipynb", ("a", "x = 5"))
    one.run("a")
    os.rename(pair.shared, tmp_path / "disk of one")
    pair.shared.mkdir()
    pair.start("two")
    two = pair.book("n.ipynb", ("a", "print('here')"), through="two")
    assert "A new kernel was started" in two.run("a", timeout=RUN_SECONDS)
