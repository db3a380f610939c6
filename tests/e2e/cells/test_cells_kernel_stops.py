# SPDX-License-Identifier: MIT
"""How runs of cells end before their time: timeouts, interrupts, restarts, kernels that die, clients that leave."""

import json
import time

import httpx
import pytest
from cells_support import RUN_SECONDS, book, gateway, hasty, waits  # noqa: F401 (fixtures)
from conftest import eventually

STUBBORN = "import time\nwhile True:\n    try:\n        while True: time.sleep(0.05)\n    except KeyboardInterrupt: print('no', flush=True)"


# ---- time, interrupts, restarts ----


def test_time_is_up(book):
    one = book(("a", "x = 5\nimport time\nprint('begun', flush=True)\ntime.sleep(600)"), ("b", "x"))
    said = one.fail("a", "b", status=504, code="TIMEOUT", timeout=8)
    assert said.startswith("Cell a was interrupted: it ran longer than 8 s (timeout).")
    assert "begun" in said and one.outputs("a")[-1]["ename"] == "KeyboardInterrupt"
    assert one.outputs("b") == []
    assert "Cell b:\n5" in one.run("b")  # the kernel lives


def test_time_has_a_limit(book):
    answer = book(("a", "1")).call("runNotebookCells", cellIds=["a"], timeout=3601)
    assert answer.status_code == 400 and "3601 s, the most is 3600 s" in answer.text


@pytest.mark.long
def test_one_that_does_not_let_itself_be_interrupted(hasty):
    one = hasty(("a", STUBBORN), ("b", "'alive'"))
    one.run("b")
    said = one.fail("a", status=504, code="TIMEOUT", timeout=30)
    assert "was interrupted, and is still running: restartKernel ends it" in said
    assert "no" in one.text("a")
    waiting = one.fail("b", status=504, code="TIMEOUT", timeout=1)
    assert "The run timed out before the kernel was free" in waiting
    answer = one.call("interruptKernel")
    assert answer.status_code == 504 and "still running" in answer.text
    assert one.call("restartKernel").json()["result"] == "Successfully restarted the kernel."
    assert "'alive'" in one.run("b")


def test_interrupting(book):
    one = book(("a", "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.1)"), ("b", "1"))
    answer = one.call("interruptKernel")
    assert answer.status_code == 422 and "No active kernel session found" in answer.text
    one.run("b")
    assert one.call("interruptKernel").json()["result"] == "Nothing runs in the kernel."
    assert "Cell b:\n1" in one.run("b")
    handle = one.start("a", "b")
    eventually(lambda: "begun" in one.look(handle).text, RUN_SECONDS, "its first output")
    assert one.call("interruptKernel").json()["result"] == "Successfully interrupted notebook execution."
    over = one.wait_over(handle)
    assert over.status_code == 422 and "Cell a was interrupted" in over.json()["message"]
    assert one.outputs("a")[-1]["ename"] == "KeyboardInterrupt"


def test_a_restart_ends_what_runs_and_keeps_what_waits(book):
    one = book(("a", "x = 1\nimport time\ntime.sleep(600)"), ("b", "'x' in globals()"))
    handle = one.start("a")
    one.wait_running(handle, "a")
    waiting = one.start("b")
    assert one.call("restartKernel").status_code == 200
    assert "Cell a was interrupted: the kernel was restarted" in one.wait_over(handle).json()["message"]
    after = one.wait_over(waiting).json()["result"]
    assert "Cell b:\nFalse" in after and "all its variables are lost" in after
    assert one.cell("b")["execution_count"] == 1


# ---- death ----


@pytest.mark.parametrize("source, how", [
    ("import os, signal; print('last', flush=True); os.kill(os.getpid(), signal.SIGKILL)", "signal 9 (SIGKILL)"),
    ("import ctypes; print('last', flush=True); ctypes.string_at(0)", "signal 11 (SIGSEGV)"),
    ("import os; print('last', flush=True)\n{waits}os._exit(7)", "exit code 7")])
def test_a_kernel_dies(book, tmp_path, source, how):
    one = book(("a", source.replace("{waits}", waits(tmp_path / "go"))), ("b", "1"))
    handle = one.start("a", "b")
    if how.startswith("exit"):
        eventually(lambda: "\\nlast" in one.look(handle).text, RUN_SECONDS, "what it put out")  # the path has the word, too
        (tmp_path / "go").touch()
    over = one.wait_over(handle)
    said = over.json()["message"]
    assert (over.status_code, over.json()["code"]) == (422, "KERNEL_FAILED")
    assert said.startswith(f"Cell a did not end: the kernel ended: {how}")
    assert "0 of 2 cell(s) were executed before, 1 not at all." in said
    if how.startswith("exit"):
        assert one.text("a") == "last\n"
    after = one.run("b")
    assert "The kernel of this notebook had ended: a new one was started, all its variables are lost." in after


def test_quitting(book):
    one = book(("a", "print('bye'); quit()"), ("b", "1"))
    said = one.run("a")
    assert "Successfully executed 1 cell(s)." in said and "bye" in said
    assert "The kernel ended by itself; the next run starts a new one." in said
    assert "all its variables are lost" in one.run("b")


def test_those_that_wait_are_told_of_the_death(book, tmp_path):
    one = book(("a", waits(tmp_path / "go") + "os._exit(1)"), ("b", "1"))
    handle = one.start("a")
    one.wait_running(handle, "a")
    waiting = one.start("b")
    (tmp_path / "go").touch()
    assert "exit code 1" in one.wait_over(handle).json()["message"]
    assert "the kernel ended" in one.wait_over(waiting).json()["message"]
    assert one.outputs("b") == []


# ---- clients that leave ----


def test_a_rest_client_that_leaves_lets_the_cell_finish(book, tmp_path):
    one = book(("a", f"open({str(tmp_path / 'begun')!r}, 'w').close()\nprint('begun', flush=True)\n{waits(tmp_path / 'go')}print('end')"),
               ("b", "1"))
    one.run("b")
    with one.gateway.connect() as raw:
        raw.request("POST /v1/tools/runNotebookCells HTTP/1.1", ["Content-Type: application/json"],
                    json.dumps({"notebook": str(one.path), "cellIds": ["a"]}).encode())
        eventually((tmp_path / "begun").exists, RUN_SECONDS, "the cell runs")
    time.sleep(1)  # in which it would be interrupted if it were
    (tmp_path / "go").touch()
    eventually(lambda: one.cell("a")["execution_count"] == 2, RUN_SECONDS, "its outputs are saved")
    assert one.text("a") == "begun\nend\n"


class Mcp:
    """One MCP call over HTTP, read as it comes."""

    def __init__(self, gateway, one, modern, number=5):
        self.client = httpx.Client(base_url=gateway.url, timeout=RUN_SECONDS, trust_env=False)
        self.headers = {"Accept": "application/json, text/event-stream"}
        arguments = {"notebook": str(one.path), "cellIds": ["a"], "timeout": 600}
        meta = {"progressToken": "p"}
        if modern:
            meta |= {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                     "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                     "io.modelcontextprotocol/clientCapabilities": {}}
            self.headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "runNotebookCells"}
        else:
            self._initialize()
        body = {"jsonrpc": "2.0", "id": number, "method": "tools/call",
                "params": {"name": "runNotebookCells", "arguments": arguments, "_meta": meta}}
        self.stream = self.client.stream("POST", "/mcp", json=body, headers=self.headers)
        self.lines = self.stream.__enter__().iter_lines()

    def _initialize(self):
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
        answer = self.client.post("/mcp", json=body, headers=self.headers)
        self.headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, body):
        self.client.post("/mcp", json=body, headers=self.headers).raise_for_status()

    def messages(self):
        for line in self.lines:
            if line.startswith("data:") and line[5:].strip():
                yield json.loads(line[5:])

    def close(self):
        self.client.close()


def interrupted(one):
    """Did the cell end by an interrupt, and was that saved?"""
    outputs = one.outputs("a")
    return bool(outputs) and outputs[-1].get("ename") == "KeyboardInterrupt"


@pytest.mark.parametrize("modern", [False, True])
def test_progress_comes_while_a_cell_runs(book, gateway, tmp_path, modern):
    one = book(("a", waits(tmp_path / "go")))
    client = Mcp(gateway, one, modern)
    seen = []
    for message in client.messages():
        seen.append(message)
        if sum("Cell a is running" in json.dumps(one_seen) for one_seen in seen) == 2:
            (tmp_path / "go").touch()
    values = [message["params"]["progress"] for message in seen if message.get("method") == "notifications/progress"]
    assert len(values) >= 3 and values == sorted(set(values)) and values[-1] == 1
    texts = [message["params"].get("message", "") for message in seen if message.get("method") == "notifications/progress"]
    assert any("Cell a is running" in text for text in texts)
    assert seen[-1]["id"] == 5 and "Successfully executed" in json.dumps(seen[-1]["result"])
    client.close()


def test_an_mcp_cancellation_interrupts(book, gateway, tmp_path):
    one = book(("a", f"import time\nopen({str(tmp_path / 'begun')!r}, 'w')\nwhile True: time.sleep(.1)"))
    client = Mcp(gateway, one, False)
    for message in client.messages():
        if "Cell a is running" in message.get("params", {}).get("message", "") and (tmp_path / "begun").exists():
            client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
            break
    eventually(lambda: interrupted(one), RUN_SECONDS, "the cell is interrupted")
    client.close()


def test_a_cancellation_of_one_that_waits(book, gateway):
    one = book(("a", "print('a ran')"), ("long", "import time\nwhile True: time.sleep(.1)"))
    handle = one.start("long")
    one.wait_running(handle, "long")
    assert f"{one.path}: busy, 1 run(s)" in gateway.call("listKernels").text
    client = Mcp(gateway, one, False)
    for message in client.messages():
        if "Waiting for other runs" in message.get("params", {}).get("message", ""):
            assert f"{one.path}: busy, 2 run(s)" in gateway.call("listKernels").text
            client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
            break
    eventually(lambda: f"{one.path}: busy, 1 run(s)" in gateway.call("listKernels").text, RUN_SECONDS, "it does not wait any more")
    assert one.is_running(handle, "long") and one.outputs("a") == []
    client.close()
    one.call("interruptKernel")
    one.wait_over(handle)
    assert one.outputs("a") == []


def test_cancelling_a_task_interrupts(book, gateway, tmp_path):
    from tasks_support import get, make, reach, send
    one = book(("a", f"import time\nprint('begun', flush=True)\nopen({str(tmp_path / 'begun')!r}, 'w')\nwhile True: time.sleep(.1)"),
               ("b", "1"))
    task = make(gateway, "runNotebookCells", {"notebook": str(one.path), "cellIds": ["a", "b"]})
    reach(gateway, task, "working")
    eventually((tmp_path / "begun").exists, RUN_SECONDS, "the cell runs")
    assert "Execution: running" in one.call("getNotebookCells", cellIds=["a"]).text
    assert send(gateway, "tasks/cancel", {"taskId": task})["result"]["resultType"] == "complete"
    assert get(gateway, task)["status"] == "cancelled"
    eventually(lambda: interrupted(one), RUN_SECONDS, "the cell is interrupted")
    assert one.text("a") == "begun\n" and one.outputs("b") == []


@pytest.mark.long
def test_closing_a_stateless_stream_interrupts(book, gateway, tmp_path):
    one = book(("a", f"import time\nopen({str(tmp_path / 'begun')!r}, 'w')\nwhile True: time.sleep(.1)"))
    client = Mcp(gateway, one, True)
    for message in client.messages():
        if "Cell a is running" in message.get("params", {}).get("message", "") and (tmp_path / "begun").exists():
            break
    client.close()
    eventually(lambda: interrupted(one), RUN_SECONDS, "the cell is interrupted")
