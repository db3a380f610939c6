# SPDX-License-Identifier: MIT
"""Many agents in one notebook at once, over REST and MCP of both protocols; the rights of each key; malicious files."""

import concurrent.futures
import json
import os
import random
import re
import subprocess
import threading
import time

import httpx
import nbformat
import pytest
from cells_support import code, markdown, need, write_notebook
from cells_tools_support import MODERN, Handshake
from conftest import Gateway, binary

SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
SETS = ("plugins=cells",)
AGENTS = 16
EDITS = 3 if SANITIZED else 8
DEADLINE = 120
NOT_NOW = {"BUSY", "CONFLICT"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("cells") / "data", SETS)
    yield running
    assert running.stop() == 0, "".join(running.errors)


def folder(gateway):
    path = gateway.data_dir / "files"
    path.mkdir(parents=True, exist_ok=True)
    return path


def sources(path):
    found = json.loads(path.read_text())
    nbformat.validate(nbformat.reads(path.read_text(), as_version=4))
    return ["".join(cell["source"]) for cell in found["cells"]]


# ---- one caller on each transport ----


class Rest:
    def __init__(self, gateway, headers):
        self.client = httpx.Client(base_url=gateway.url, headers=headers, timeout=DEADLINE, trust_env=False, verify=False)

    def call(self, tool, arguments):
        """The error's code, or None, and the text."""
        answer = self.client.post(f"/v1/tools/{tool}", json=arguments).json()
        return answer.get("code"), answer.get("message") or answer["result"]


class Session:
    """MCP with the handshake protocol."""

    def __init__(self, gateway, headers):
        self.handshake = Handshake(gateway, headers)
        self.handshake.client.timeout = DEADLINE

    def call(self, tool, arguments):
        answer = self.handshake.post("tools/call", {"name": tool, "arguments": arguments})
        return mcp_answer(stream_or_json(answer))


class Stateless:
    """MCP of 2026-07-28."""

    def __init__(self, gateway, headers):
        self.client = httpx.Client(base_url=gateway.url, timeout=DEADLINE, trust_env=False, verify=False, headers={
            "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Accept": "application/json, text/event-stream", **headers})

    def call(self, tool, arguments):
        meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}}
        return mcp_answer(stream_or_json(self.client.post("/mcp", headers={"Mcp-Name": tool}, json={
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}})))


def stream_or_json(answer):
    if answer.headers["content-type"].startswith("text/event-stream"):
        return [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")][-1]
    return answer.json()


def mcp_answer(answer):
    result = answer["result"]
    code = result["_meta"]["notegate/error"]["code"] if result.get("isError") else None
    return code, result["content"][0]["text"]


FACES = (Rest, Session, Stateless)


def together(count, work):
    """work(number) on that many threads, which begin at once."""
    begin = threading.Barrier(count)

    def one(number):
        begin.wait(DEADLINE)
        return work(number)

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def insist(caller, tool, arguments):
    """Until it is done: a full queue says so at once."""
    while True:
        failed, text = caller.call(tool, arguments)
        if failed is None:
            return text
        assert failed in NOT_NOW, text


# ---- many agents ----


def test_agents_in_cells_of_their_own(gateway):
    """Each updates its cell and adds cells; every one that was acknowledged is there."""
    path = folder(gateway) / "own.ipynb"
    write_notebook(path, [(f"c{number}", "begin") for number in range(AGENTS)])
    callers = [FACES[number % 3](gateway, {"X-Notegate-Agent": f"agent{number}"}) for number in range(AGENTS)]

    def work(number):
        for count in range(EDITS):
            insist(callers[number], "updateNotebookCell", {
                "notebook": path.name, "cellId": f"c{number}", "content": f"{number}\nedit {count}"})
            insist(callers[number], "addNotebookCell", {
                "notebook": path.name, "type": "markdown", "index": number % 3 - 1, "content": f"{number} added {count}"})
        insist(callers[number], "moveNotebookCell", {"notebook": path.name, "cellId": f"c{number}", "index": number})

    together(AGENTS, work)
    found = sources(path)
    wanted = [f"{number} added {count}" for number in range(AGENTS) for count in range(EDITS)]
    wanted += [f"{number}\nedit {EDITS - 1}" for number in range(AGENTS)]
    assert sorted(found) == sorted(wanted)


def test_agents_in_the_same_cell(gateway):
    """Each appends a line to what it read, if the file is still at that revision: all lines are there then, and none twice."""
    path = folder(gateway) / "same.ipynb"
    write_notebook(path, [("c", "begin\n"), ("other", "1")])
    lines = 1 if SANITIZED else 2

    def work(number):
        client = httpx.Client(base_url=gateway.url, timeout=DEADLINE, trust_env=False, verify=False,
                              headers={"X-Notegate-Agent": f"a{number}"})
        callers = [transport(gateway, {"X-Notegate-Agent": f"a{number}"}) for transport in FACES]
        for count in range(lines):
            while True:
                read = client.post("/v1/tools/getNotebookCells", json={"notebook": path.name, "cellIds": ["c"]}).json()
                source = re.search(r"```\n(.*?)\n```", read["result"], re.S).group(1)
                failed, text = callers[(number + count) % 3].call("updateNotebookCell", {
                    "notebook": path.name, "cellId": "c", "content": source + f"{number} line {count}\n",
                    "expectedRevision": read["revision"]})
                if failed is None:
                    break
                assert failed in NOT_NOW, text

    together(AGENTS, work)
    found = sources(path)[0].splitlines()
    assert sorted(found) == sorted(["begin"] + [f"{number} line {count}" for number in range(AGENTS) for count in range(lines)])
    for number in range(AGENTS):
        assert [line for line in found if line.startswith(f"{number} ")] == [f"{number} line {count}" for count in range(lines)]


def test_two_gateways_in_one_folder(tmp_path):
    """Each with a data directory of its own: what either acknowledged is there."""
    root = tmp_path / "root"
    root.mkdir()
    path = root / "n.ipynb"
    write_notebook(path, [(f"c{number}", "begin") for number in range(4)])
    made = []
    try:
        for number in range(2):
            made.append(Gateway(tmp_path / f"gateway{number}", SETS, ["--root", str(root)]))

        def work(number):
            caller = Rest(made[number % 2], {"X-Notegate-Agent": f"two{number}"})
            for count in range(EDITS):
                insist(caller, "updateNotebookCell", {"notebook": str(path), "cellId": f"c{number}", "content": f"{number} {count}"})
                insist(caller, "addNotebookCell", {"notebook": str(path), "type": "raw", "index": -1, "content": f"{number}+{count}"})

        together(4, work)
        wanted = [f"{number}+{count}" for number in range(4) for count in range(EDITS)]
        assert sources(path)[:4] == [f"{number} {EDITS - 1}" for number in range(4)]
        assert sorted(sources(path)[4:]) == sorted(wanted)
        assert [entry.name for entry in root.iterdir()] == ["n.ipynb"]
    finally:
        for gateway in made:
            assert gateway.stop() == 0, gateway.errors


def test_the_last_of_those_who_do_not_ask_stays(gateway):
    """Without a revision the newest acknowledged text stays, whole."""
    path = folder(gateway) / "blind.ipynb"
    write_notebook(path, [("c", "begin")])
    callers = [FACES[number % 3](gateway, {"X-Notegate-Agent": f"b{number}"}) for number in range(AGENTS)]

    def work(number):
        for count in range(EDITS):
            insist(callers[number], "updateNotebookCell", {
                "notebook": path.name, "cellId": "c", "content": f"{number}\n{count}\n" * 20})

    together(AGENTS, work)
    last = sources(path)[0]
    assert last in {f"{number}\n{EDITS - 1}\n" * 20 for number in range(AGENTS)}


def test_cells_that_go_meanwhile_are_told(gateway):
    """Some delete cells that others update: each edit was done, or its cell was not found."""
    path = folder(gateway) / "gone.ipynb"
    write_notebook(path, [(f"c{number}", "begin") for number in range(AGENTS)])
    callers = [FACES[number % 3](gateway, {"X-Notegate-Agent": f"g{number}"}) for number in range(AGENTS)]
    kept = {}

    def work(number):
        cell = f"c{number // 2}"
        if number % 2:
            insist(callers[number], "deleteNotebookCells", {"notebook": path.name, "cellIds": [cell]})
            return
        for count in range(EDITS):
            failed, text = callers[number].call("updateNotebookCell", {
                "notebook": path.name, "cellId": cell, "content": f"{count}"})
            assert failed in (None, "CELL_NOT_FOUND", *NOT_NOW), text
            kept.setdefault(cell, []).append(failed)

    together(AGENTS, work)
    assert sources(path) == ["begin"] * (AGENTS - AGENTS // 2)
    for answers in kept.values():
        first = answers.index("CELL_NOT_FOUND") if "CELL_NOT_FOUND" in answers else len(answers)
        assert set(answers[first:]) <= {"CELL_NOT_FOUND", *NOT_NOW}  # deleted cells stay deleted


def test_agents_attach_at_once(gateway):
    """One agent on many connections: nothing it attached is forgotten."""
    for number in range(AGENTS):
        write_notebook(folder(gateway) / f"at{number}.ipynb", [("c", f"{number}")])
    callers = [FACES[number % 3](gateway, {"X-Notegate-Agent": "many"}) for number in range(AGENTS)]
    together(AGENTS, lambda number: insist(callers[number], "attachNotebook", {"notebook": f"at{number}.ipynb"}))
    for number in range(AGENTS):
        failed, text = callers[0].call("detachNotebook", {"notebook": f"at{number}.ipynb"})
        assert failed is None, text


# ---- keys ----

READS = {"getNotebookCells": {}, "getCellOutputs": {"cellId": "c"}, "getNotebookContext": {}, "selectNotebookCells": {"cellIds": ["c"]}}
CHANGES = {"runNotebookCells": {"cellIds": []}, "addNotebookCell": {"type": "code", "index": -1, "content": ""},
           "updateNotebookCell": {"cellId": "c", "content": "2"}, "moveNotebookCell": {"cellId": "c", "index": 0},
           "clearCellOutputs": {}, "deleteNotebookCells": {"cellIds": ["c"]}, "interruptKernel": {}, "restartKernel": {}}


def test_the_mode_of_a_key_holds_on_every_transport(tmp_path):
    """The call is checked, whatever mode the client claims and whatever it listed before."""
    data = tmp_path / "data"
    keys = {}
    for mode in ("ask", "edit", "agent"):
        done = subprocess.run([binary(), "key", "add", mode, "--data-dir", str(data), "--role", "writer", "--mode", mode],
                              capture_output=True, text=True, check=True)
        keys[mode] = done.stdout.strip()
    gateway = Gateway(data, SETS)
    try:
        path = folder(gateway) / "n.ipynb"
        write_notebook(path, [code("c", "1"), markdown("m", "2")])
        before = path.read_bytes()
        for mode in ("ask", "edit"):
            for transport in FACES:
                caller = transport(gateway, {"Authorization": f"Bearer {keys[mode]}"})
                assert caller.call("attachNotebook", {"notebook": "n.ipynb"})[0] is None
                for tool, arguments in READS.items():
                    failed, text = caller.call(tool, arguments)
                    assert failed is None, text
                for tool, arguments in {**CHANGES, "createNotebook": {"notebook": "new.ipynb"}}.items():
                    for more in ({}, {"notebook": "n.ipynb"}):
                        failed, text = caller.call(tool, {**arguments, **more})
                        assert failed == "MODE_FORBIDDEN" and "Agent mode" in text, (transport, tool, text)
            raised = Rest(gateway, {"Authorization": f"Bearer {keys[mode]}", "X-Notegate-Mode": "agent"})
            assert raised.call("updateNotebookCell", {"cellId": "c", "content": "2"})[0] == "MODE_FORBIDDEN"
        assert path.read_bytes() == before and not path.with_name("new.ipynb").exists()
        for transport in FACES:
            caller = transport(gateway, {"Authorization": f"Bearer {keys['agent']}"})
            failed, text = caller.call("addNotebookCell", {"notebook": "n.ipynb", **CHANGES["addNotebookCell"]})
            assert failed is None, text
        assert len(sources(path)) == 5
    finally:
        assert gateway.stop() == 0, gateway.errors


# ---- files made to harm ----


def big(count, more=""):
    return ('{"cells": [' + ",".join(['{"cell_type": "raw", "metadata": {}, "source": ""' + more + "}"] * count) +
            '], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}').encode()


CELL = b'{"cells": [{"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": %s}], "metadata": {}, ' \
       b'"nbformat": 4, "nbformat_minor": 4}'
HARMFUL = {
    "nul": (b'{"cells": [], "a": "\0"}', "a control character stands unescaped in a string (line 1, column 21)"),
    "overlong": (b'{"cells": [], "a": "\xc0\xaf"}', "it is not UTF-8 (line 1, column 21)"),
    "surrogate": (b'{"cells": [], "a": "\xed\xa0\x80"}', "it is not UTF-8 (line 1, column 21)"),
    "two": (CELL % b'""' + b"{}", "there is text after the end of its JSON"),
    "half escape": (CELL % b'"\\ud8"', "\\u needs four hexadecimal digits"),
    "comment": (b'{"cells": [] // none\n}', "a comma or the closing bracket is missing"),
    "single quotes": (b"{'cells': []}", "a string is missing"),
    "major": (b'{"cells": [], "nbformat": 4.0}', "its nbformat is missing or not a whole number"),
    "huge major": (b'{"cells": [], "nbformat": 400000000000000000000}', "its nbformat is missing or not a whole number"),
    "cells twice": (CELL[:-1] % b'""' + b', "cells": {}}', "it has no list of cells"),
    "source null": (CELL % b"null", "cell 0 has a source that is not text (line 1, column 100)"),
    "source mixed": (CELL % b'["a", null]', "cell 0 has a source that is not text"),
    "cell array": (b'{"cells": [[]], "nbformat": 4}', "cell 0 is not an object (line 1, column 12)"),
    "page": (b"<!DOCTYPE html><title>Sign in</title>", "this is not a JSON value (line 1, column 1)"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\n", "this is not a JSON value (line 1, column 1)"),
    "gzip": (b"\x1f\x8b\x08\x00\x00", "this is not a JSON value (line 1, column 1)"),
    "too many": (big(1048577), "it has too many cells"),
}


@pytest.mark.parametrize("name", [name for name in HARMFUL if not (SANITIZED and len(HARMFUL[name][0]) > 1_000_000)])
def test_harmful_files_are_told_and_never_written(gateway, name):
    content, words = HARMFUL[name]
    path = folder(gateway) / f"harm-{name}.ipynb"
    path.write_bytes(content)
    before = path.stat()
    for tool, arguments in (("getNotebookCells", {}), ("addNotebookCell", {"type": "code", "index": -1, "content": ""})):
        answer = gateway.call(tool, {"notebook": path.name, **arguments})
        assert answer.status_code == 422 and answer.json()["code"] == "NOTEBOOK_MALFORMED", answer.text
        assert words in answer.json()["message"]
    after = path.stat()
    assert path.read_bytes() == content and (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    path.unlink()


def test_what_is_no_file(gateway):
    """None of it makes a call wait, or is written."""
    place = folder(gateway)
    os.mkfifo(place / "fifo.ipynb")
    (place / "folder.ipynb").mkdir()
    (place / "loop.ipynb").symlink_to("loop.ipynb")
    (place / "dangling.ipynb").symlink_to("nowhere.ipynb")
    (place / "null.ipynb").symlink_to("/dev/null")
    (place / "long").mkdir()
    for name in ("fifo", "folder", "loop", "dangling", "null", "long/" + "x" * 300, "fifo.ipynb/x"):
        for tool, arguments in (("getNotebookCells", {}), ("attachNotebook", {}),
                                ("addNotebookCell", {"type": "code", "index": -1, "content": ""})):
            answer = gateway.call(tool, {"notebook": f"{name}.ipynb", **arguments})
            assert answer.status_code in (400, 403, 404, 422), (name, answer.text)
            assert answer.json()["code"] in ("NOT_FOUND", "TOOL_FAILED", "PATH_OUTSIDE_ROOTS", "INVALID_INPUT"), answer.text
    assert not (place / "nowhere.ipynb").exists()
    for name in ("fifo", "loop", "dangling", "null"):
        (place / f"{name}.ipynb").unlink()


def test_extreme_but_good_files(gateway):
    """An unusual but valid notebook is read and changed, and nothing else of it changes."""
    rng = random.Random(3)
    long_line = "x" * 300_000
    files = {
        "quotes": CELL % json.dumps('"\\' * 100_000).encode(),
        "line": CELL % json.dumps(long_line).encode(),
        "lines": CELL % json.dumps(["\n"] * 50_000).encode(),
        "empties": CELL % b'["", "", "a", "", "b\\n", "", ""]',
        "cells": big(20_000),
        "doubled": big(3_000, ', "id": "same"'),
        "numbers": CELL.replace(b'"metadata": {}, "nbformat"', b'"metadata": {"n": [%s, -0, 0e9, 1E+400, NaN]}, "nbformat"'
                                % (b"9" * 100_000)) % b'"a"',
        "twice": CELL % b'"no", "source": "yes"',
        "names": CELL % json.dumps("".join(chr(rng.randrange(0x20, 0xd7ff)) for _ in range(5000))).encode(),
    }
    for name, content in files.items():
        path = folder(gateway) / f"extreme-{name}.ipynb"
        path.write_bytes(content)
        wanted = json.loads(content, parse_int=str, parse_float=str, parse_constant=str)
        last = len(wanted["cells"]) - 1
        change = {"notebook": path.name, "cellId": f"index:{last}", "content": "changed"}
        answer = gateway.call("updateNotebookCell", change)
        assert answer.status_code == 200, answer.text
        wanted["cells"][last]["source"] = "changed"
        found = json.loads(path.read_bytes(), parse_int=str, parse_float=str, parse_constant=str)
        found["cells"][last]["source"] = "".join(found["cells"][last]["source"])
        assert found == wanted, name
        changed = path.read_bytes()
        head = os.path.commonprefix([content, changed])
        tail = os.path.commonprefix([content[len(head):][::-1], changed[len(head):][::-1]])
        assert b'"cell_type"' not in content[len(head):len(content) - len(tail)], name
        assert gateway.call("getNotebookCells", {"notebook": path.name, "cellIds": [f"index:{last}"]}).status_code == 200
        path.unlink()


# ---- what a run leaves in status and context ----


def test_status_and_context_after_a_run(gateway):
    need("python3")
    path = folder(gateway) / "status.ipynb"
    write_notebook(path, [code("good", "x = 1\nx"), code("bad", "1 / 0"), code("new", "2"), markdown("m", "3")])
    named = {"notebook": path.name}
    assert gateway.call("runNotebookCells", {**named, "cellIds": ["good"]}).status_code == 200
    assert gateway.call("runNotebookCells", {**named, "cellIds": ["bad"]}).json()["code"] == "CELL_FAILED"
    text = gateway.call("getNotebookCells", named).json()["result"]
    status = dict(re.findall(r"ID: (\w+)\nStatus: (.*)", text))
    duration = r"Duration: (\d+ms|\d+\.\d\ds)"
    unselected = r"Selection: unselected \| Execution: idle \| "
    assert re.fullmatch(unselected + r"Order: \[1\] \| Last run: success \| " + duration + r" \| Has output", status["good"])
    assert re.fullmatch(unselected + r"Order: \[2\] \| Last run: failed \| " + duration + r" \| Has output", status["bad"])
    assert status["new"] == "Selection: unselected | Execution: idle | No output"
    assert status["m"] == "Selection: unselected | No output"
    context = gateway.call("getNotebookContext", named).json()["result"]
    assert (context["kernelId"], context["kernelLanguage"], context["runtimeState"]) == ("python3", "python", "idle")
    cells = {cell["id"]: cell for cell in context["allCells"]}
    for name, success in (("good", True), ("bad", False)):
        assert cells[name]["lastRunSuccess"] is success and cells[name]["executionStatus"] == "idle"
        assert cells[name]["lastExecutionDuration"] >= 0 and cells[name]["lastRunEndTime"] > 1_600_000_000_000
    assert set(cells["new"]) == {"id", "index", "type", "content", "hasOutput", "selectionStatus", "executionStatus"}
    assert set(cells["m"]) == {"id", "index", "type", "content", "hasOutput", "selectionStatus"}


TRUNCATES = """
import os
with open({path!r}, "r+b") as file:
    file.truncate({size})
print("done")
"""


def test_outputs_are_kept_though_the_file_is_being_written(gateway):
    """Another program that writes in place, and is in the middle of it when the run ends."""
    need("python3")
    path = folder(gateway) / "writing.ipynb"
    for _ in range(40):
        write_notebook(path, [("cut", TRUNCATES.format(path=str(path), size=300)), ("more", "x" * 300)])
        whole = path.read_bytes()
        answers = []
        thread = threading.Thread(target=lambda: answers.append(gateway.client.post(
            "/v1/tools/runNotebookCells", json={"notebook": path.name, "cellIds": ["cut"]}, timeout=DEADLINE)))
        thread.start()
        while path.stat().st_size != 300 and not answers:
            time.sleep(0.001)
        cut = path.stat().st_mtime
        time.sleep(0.04)
        with open(path, "r+b") as file:
            file.write(whole)
        in_time = time.time() - cut < 0.1  # it waits no longer
        thread.join()
        if in_time:
            break
    else:
        pytest.fail("this machine is too slow to write a file in time")
    assert answers[0].status_code == 200 and "Not all outputs were saved" not in answers[0].text, answers[0].text
    assert json.loads(path.read_text())["cells"][0]["outputs"][0]["text"] == ["done\n"]
