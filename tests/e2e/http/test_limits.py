# SPDX-License-Identifier: MIT
"""Every limit: its key, its default, its error, and no effect on other callers."""

import concurrent.futures
import contextlib
import json
import re
import shlex
import signal
import socket
import subprocess
import threading
from pathlib import Path

import httpx
import pytest
from conftest import SOURCE, STOP_SECONDS, binary, environment, eventually
from preload_support import fast  # noqa: F401 (a fixture)

JSON = {"Content-Type": "application/json"}
DEFAULTS = {
    "body": "4MiB",
    "buffered": "256MiB",
    "call_timeout": "120s",
    "connections": "4096",
    "depth": "128",
    "queue": "1024",
    "result": "8MiB",
    "stream_backlog": "10000",
    "streams": "2000",
    "workers": None,
}
# A time limit ends a call that would hang the tests.
STUCK_MS = 60000


@pytest.fixture(scope="session")
def stuck(tmp_path_factory):
    """The module of tests/bench/stuck.c: a tool that holds its worker."""
    module = tmp_path_factory.mktemp("stuck") / "stuck.so"
    source = SOURCE / "tests" / "bench" / "stuck.c"
    flags = shlex.split(f"-shared -fPIC -D_GNU_SOURCE -DNG_ABI=1 -I{SOURCE}/core/include")
    subprocess.run(["cc", *flags, "-o", str(module), str(source)], check=True, timeout=60)
    return module


@pytest.fixture
def workers(start, stuck):
    """workers(sets) gives a gateway with the stuck tool, two workers and room for two calls that wait."""

    def begin(*sets):
        return start(sets=[f"plugins=+{stuck}", "limits.workers=2", "limits.queue=2", *sets])

    return begin


class Calls:
    """Calls under way, of any agents, each on a connection of its own."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.pool = concurrent.futures.ThreadPoolExecutor(32)
        self.open = []

    def start(self, agent, ms=STUCK_MS, **more):
        client = httpx.Client(base_url=self.gateway.url, timeout=2 * STUCK_MS / 1000, trust_env=False)
        self.open.append(client)
        headers = {"X-Notegate-Agent": agent}
        return self.pool.submit(client.post, "/v1/tools/stuck", json={"ms": ms, **more}, headers=headers)

    def running(self, count):
        eventually(lambda: self.gateway.in_use("workers") == count, what=f"{count} busy workers")

    def waiting(self, count):
        eventually(lambda: self.gateway.in_use("queue") == count, what=f"{count} waiting calls")


@contextlib.contextmanager
def calls_of(gateway):
    calls = Calls(gateway)
    try:
        yield calls
    finally:
        # A stuck call does not block the end: a second signal does not wait for calls. (Two of one kind may be told as
        # one.)
        for number in (signal.SIGTERM, signal.SIGINT):
            if gateway.process.poll() is None:
                gateway.process.send_signal(number)
        calls.pool.shutdown(wait=True)
        for client in calls.open:
            client.close()


def fails(answer, status, code):
    """The answer is the error object of this status and code; returns it."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert (body["error"], body["code"]) == (True, code), body
    assert len(body["message"]) > 20
    return body


def post(gateway, tool, text, **headers):
    return gateway.client.post(f"/v1/tools/{tool}", content=text, headers={**JSON, **headers})


# ---- keys and defaults ----


def test_every_limit_is_a_key_with_a_default():
    shown = subprocess.run([binary(), "check", "--help-config"], capture_output=True, text=True, env=environment(),
                           timeout=60, check=True).stdout
    for name, default in DEFAULTS.items():
        found = re.search(rf"^\s*limits\.{name}\b(.*\n(?:\s+.*\n)?)", shown, re.M)
        assert found, f"limits.{name} is not in:\n{shown}"
        assert default is None or default in found.group(1), found.group(0)


def test_every_limit_is_in_the_metrics(gateway):
    text = gateway.client.get("/metrics").text
    limits = dict(re.findall(r'^notegate_limit{name="(\w+)"} (\S+)$', text, re.M))
    assert set(DEFAULTS) <= set(limits)
    assert float(limits["body"]) == 4 << 20
    assert float(limits["result"]) == 8 << 20
    assert float(limits["buffered"]) == 256 << 20
    assert float(limits["depth"]) == 128
    assert float(limits["queue"]) == 1024
    assert float(limits["stream_backlog"]) == 10000


@pytest.mark.parametrize("setting, says", [
    ("limits.body=0", "limits.body"),
    ("limits.depth=-1", "limits.depth"),
    ("limits.workers=many", "many"),
    ("limits.call_timeout=10x", "10x"),
    ("limits.bdy=4MiB", "limits.body"),
])
def test_a_bad_limit_stops_the_start(tmp_path, setting, says):
    done = subprocess.run([binary(), "serve", "--data-dir", str(tmp_path / "d"), "--listen", "127.0.0.1:0", "--set",
                           setting], capture_output=True, text=True, env=environment(), timeout=60, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert says in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr


# ---- sizes ----


def test_body(start):
    gateway = start(sets=["limits.body=1000"])
    frame = len(json.dumps({"mode": "create", "name": "n", "newStr": ""}))
    fits = json.dumps({"mode": "create", "name": "n", "newStr": "x" * (1000 - frame)})
    assert len(fits) == 1000
    assert post(gateway, "notebook", fits).status_code == 200
    body = fails(post(gateway, "notebook", fits[:-2] + 'x"}'), 413, "TOO_LARGE")
    assert "1000" in body["message"] and "limits.body" in str(body)
    assert gateway.call("notebook", {"mode": "list"}).status_code == 200


def nested(depth):
    return '{"mode":"list","name":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


def test_depth(start):
    gateway = start(sets=["limits.depth=10"])
    # The deepest that is read is refused by the tool's schema only.
    fails(post(gateway, "notebook", nested(10)), 400, "INVALID_INPUT")
    body = fails(post(gateway, "notebook", nested(11)), 400, "INVALID_JSON")
    assert "deeper than 10 levels" in body["message"]


def test_depth_default(gateway):
    fails(post(gateway, "notebook", nested(128)), 400, "INVALID_INPUT")
    fails(post(gateway, "notebook", nested(129)), 400, "INVALID_JSON")


def test_result(start):
    gateway = start(sets=["limits.result=1000"])
    wrote = gateway.call("notebook", {"mode": "create", "name": "long", "newStr": "x" * 2000})
    assert wrote.status_code == 200
    read = gateway.call("notebook", {"mode": "read", "name": "long"})
    assert len(read.json()["result"]) <= 1000 and read.json()["result"].endswith("[line 1 of 1 is cut after 800 bytes]")
    # An object that does not fit is refused.
    page = gateway.call("notebook_create", {"collection": "pages", "title": "t", "content": "x",
                                            "tags": [f"{i}" + "t" * 150 for i in range(10)]})
    entry = {"notebook_id": page.json()["result"]["notebook_id"]}
    body = fails(gateway.client.post("/v1/tools/notebook_read?raw=true", json=entry), 413, "TOO_LARGE")
    assert "limits.result" in str(body) and "1000" in str(body)
    # A part of it can be had, and what was written is there.
    gateway.call("notebook", {"mode": "create", "name": "lines", "newStr": "\n".join("y" * 100 for _ in range(20))})
    part = gateway.call("notebook", {"mode": "read", "name": "lines", "readRange": [1, 2]})
    assert part.status_code == 200 and "y" * 100 in part.json()["result"]


def test_buffered(start):
    gateway = start(sets=["limits.buffered=300KiB"])
    text = json.dumps({"mode": "create", "name": "n", "newStr": "x" * 150000})
    # One body fits; beside another that is still coming it does not.
    assert post(gateway, "notebook", text).status_code == 200
    eventually(lambda: gateway.in_use("buffered") == 0, what="the first body given back")
    with gateway.connect() as raw:
        raw.send(b"POST /v1/tools/notebook HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Content-Length: 150000\r\n\r\n" + b" " * 140000)
        eventually(lambda: gateway.in_use("buffered") >= 140000, what="the other body")
        answer = post(gateway, "notebook", text)
        assert "limits.buffered" in str(fails(answer, 503, "BUSY"))
        assert int(answer.headers["retry-after"]) >= 1
        assert gateway.call("notebook", {"mode": "list"}).status_code == 200
    eventually(lambda: gateway.in_use("buffered") == 0, what="all memory given back")
    assert post(gateway, "notebook", text).status_code == 200


# ---- connections ----


def test_connections(start):
    gateway = start(sets=["limits.connections=20"])
    gateway.client.close()
    with contextlib.ExitStack() as held:
        good = [held.enter_context(gateway.connect()) for _ in range(20)]
        for raw in good:
            raw.request("GET /healthz HTTP/1.1")
            assert raw.answer().status == 200
        for _ in range(5):
            with gateway.connect() as raw:
                assert raw.ended()
        for raw in good:
            raw.request("POST /v1/tools/notebook HTTP/1.1", ["Content-Type: application/json"], b'{"mode":"list"}')
            assert raw.answer().status == 200
        # The owner's socket is not what strangers can fill.
        with gateway.connect_local() as raw:
            raw.request("GET /healthz HTTP/1.1")
            assert raw.answer().status == 200

    def again():
        with gateway.connect() as raw:
            raw.request("GET /healthz HTTP/1.1")
            answer = raw.answer()
            return answer is not None and answer.status == 200

    eventually(again, what="a place once others left")


# ---- workers and their queue ----


def test_queue(workers):
    gateway = workers("limits.workers=4", "limits.queue=4")  # of which one plugin has half
    known = gateway.call("notebook", {"mode": "create", "name": "known", "newStr": "text"})
    assert known.status_code == 200
    with calls_of(gateway) as calls:
        # One agent has half of the workers and of the queue: one runs, two wait, the next is refused at once.
        first = calls.start("busy")
        calls.running(1)
        more = [calls.start("busy"), calls.start("busy")]
        calls.waiting(2)
        answer = calls.start("busy").result(STUCK_MS / 1000)
        assert not first.done()
        assert "limits.queue" in str(fails(answer, 503, "BUSY"))
        assert "its half of limits.queue" in answer.text
        assert int(answer.headers["retry-after"]) >= 1
        # Another one still has a worker and room to wait, until the whole queue is full.
        others = [calls.start("other")]
        calls.running(2)
        others += [calls.start("other"), calls.start("other")]
        calls.waiting(4)
        assert "4 calls are waiting already" in calls.start("third").result(STUCK_MS / 1000).text
        assert not any(call.done() for call in others)
        assert not first.done() and not any(call.done() for call in more)
        # Answers from memory need no worker, nor do the metrics of the queue.
        assert gateway.call("notebook", {"mode": "read", "name": "known"}).json()["result"] == "text"
        assert gateway.client.get("/healthz").status_code == 200


def test_one_agent_has_half_of_the_workers(workers):
    gateway = workers("limits.workers=4", "limits.queue=100")  # of which one plugin has half
    with calls_of(gateway) as calls:
        for _ in range(20):
            calls.start("busy")
        calls.running(1)
        calls.waiting(19)
        answer = calls.start("other", ms=10).result(STUCK_MS / 1000)
        assert answer.json()["result"] == "done"
        # The calls of no agent are in the way of the gateway's own.
        calls.start("local")
        calls.running(2)
        assert gateway.client.get("/readyz").status_code == 200


def test_a_signal_ends_stdio_though_a_call_is_stuck(stuck, tmp_path):
    words = ["mcp", "--data-dir", tmp_path / "data", "--set", f"plugins=+{stuck}",
             "--set", "shutdown_timeout=300ms", "--set", "limits.call_timeout=5min"]
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
           "params": {"name": "stuck", "arguments": {"ms": 10 * STUCK_MS}}}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    with subprocess.Popen([binary(), *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, env=environment(), cwd=tmp_path) as process:
        process.stdin.write(json.dumps(ask) + "\n" + json.dumps(ping) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=2 * STUCK_MS / 1000) == 0


def test_call_timeout(fast, workers):  # noqa: F811
    # Much longer than the short calls need: they, too, must be over by then.
    gateway = workers("limits.call_timeout=30s")
    with calls_of(gateway) as calls:
        held = calls.start("busy")
        calls.running(1)
        others = [calls.start("other", ms=20).result(STUCK_MS / 1000).status_code for _ in range(3)]
        assert others == [200] * 3
        body = fails(held.result(STUCK_MS / 1000), 504, "TIMEOUT")
        assert "limits.call_timeout" in str(body) or "30" in str(body)
        eventually(lambda: gateway.in_use("workers") == 0, what="the worker given back")
        assert calls.start("busy", ms=10).result(STUCK_MS / 1000).status_code == 200


def test_call_timeout_of_calls_that_wait(workers):
    # Half of the queue has room for all three, also while no worker has taken the first yet.
    gateway = workers("limits.call_timeout=500ms", "limits.queue=6")
    with calls_of(gateway) as calls:
        answers = [calls.start("busy") for _ in range(3)]
        for answer in answers:
            fails(answer.result(STUCK_MS / 1000), 504, "TIMEOUT")
        eventually(lambda: gateway.in_use("queue") == 0, what="an empty queue")


def test_calls_of_clients_that_left_give_their_worker_back(workers):
    gateway = workers()
    body = json.dumps({"ms": STUCK_MS}).encode()
    for _ in range(3):
        with gateway.connect() as raw:
            raw.request("POST /v1/tools/stuck HTTP/1.1", ["Content-Type: application/json"], body)
            eventually(lambda: gateway.in_use("workers") == 1, what="a busy worker")
        eventually(lambda: gateway.in_use("workers") == 0, what="the worker given back")
    answer = gateway.call("stuck", {"ms": 10})
    assert answer.json()["result"] == "done"


def test_a_write_whose_client_left_is_whole_or_not_there(gateway):
    revisions = []
    for n in range(50):
        name = f"left-{n}"
        with gateway.connect() as raw:
            body = json.dumps({"mode": "create", "name": name, "newStr": "whole " * 100}).encode()
            raw.request("POST /v1/tools/notebook HTTP/1.1", ["Content-Type: application/json"], body)
        read = gateway.call("notebook", {"mode": "read", "name": name})
        assert read.status_code in (200, 404)
        if read.status_code == 200:
            assert read.json()["result"] == "whole " * 100
            revisions.append(read.json()["revision"])
    assert all(revision == 1 for revision in revisions)


# ---- stopping ----


def test_stop_answers_running_calls(workers, tmp_path):
    gateway = workers("limits.workers=8", "limits.queue=100", "shutdown_timeout=1min")
    held = tmp_path / "held"
    held.touch()
    with calls_of(gateway) as calls:
        running = [calls.start(f"agent-{n}", until_gone=str(held)) for n in range(4)]
        calls.running(4)
        gateway.process.send_signal(signal.SIGTERM)
        eventually(lambda: gateway.logged("stopping"), what="the signal taken")
        held.unlink()
        answers = [call.result(STUCK_MS / 1000) for call in running]
        assert [answer.status_code for answer in answers] == [200] * 4
        assert gateway.process.wait(STOP_SECONDS) == 0


def test_stop_does_not_wait_for_ever(workers):
    gateway = workers("shutdown_timeout=500ms")
    with calls_of(gateway) as calls:
        held = calls.start("busy")
        calls.running(1)
        gateway.process.send_signal(signal.SIGTERM)
        # Not as long as the call would be.
        assert gateway.process.wait(STUCK_MS / 2000) == 0
        # The tool checks its cancellation and ends; otherwise it would be aborted.
        answer = held.exception(STUCK_MS / 1000) or held.result()
        assert isinstance(answer, httpx.HTTPError) or answer.status_code in (200, 503, 504)


def test_a_second_signal_does_not_wait(workers):
    gateway = workers("shutdown_timeout=5min")
    with calls_of(gateway) as calls:
        calls.start("busy")
        calls.running(1)
        gateway.process.send_signal(signal.SIGTERM)
        eventually(lambda: any("stopping" in line for line in gateway.errors), what="the first signal taken")
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(STUCK_MS / 2000) == 0


# ---- rights ----


@pytest.mark.parametrize("tool, arguments", [
    ("notebook", {"mode": "create", "name": "x", "newStr": "y"}),
    ("notebook", {"mode": "write", "newStr": "y"}),
    ("notebook", {"mode": "clear"}),
    ("fileEditor", {"command": "create", "path": "/x", "file_text": ""}),
    ("fileEditor", {"command": "str_replace", "path": "/x", "old_str": "a", "new_str": "b"}),
    ("fileEditor", {"command": "undo_edit", "path": "/x"}),
])
def test_ask_mode_changes_nothing(gateway, tool, arguments):
    body = fails(gateway.call(tool, arguments, {"X-Notegate-Mode": "ask"}), 403, "MODE_FORBIDDEN")
    assert tool in body["message"] and "ask" in body["message"]


def test_ask_mode_reads(gateway):
    gateway.call("notebook", {"mode": "create", "name": "asked", "newStr": "text"})
    ask = {"X-Notegate-Mode": "ask"}
    assert gateway.call("notebook", {"mode": "read", "name": "asked"}, ask).json()["result"] == "text"
    assert gateway.call("notebook", {"mode": "list"}, ask).status_code == 200
    root = gateway.data_dir / "files"
    assert gateway.call("fileEditor", {"command": "view", "path": str(root)}, ask).status_code == 200
    fails(gateway.call("notebook", {"mode": "list"}, {"X-Notegate-Mode": "askk"}), 400, "INVALID_INPUT")


@pytest.mark.parametrize("wrong, right", [("notebok", "notebook"), ("Notebook", "notebook"), ("fileeditor", "fileEditor")])
def test_unknown_tool(gateway, wrong, right):
    answer = gateway.call(wrong, {"mode": "list"})
    if answer.status_code == 200:
        pytest.skip(f"{wrong} is an alias")
    body = fails(answer, 404, "UNKNOWN_TOOL")
    assert wrong in body["message"] and right in body["hint"]


# ---- one agent does not disturb another ----


def test_a_client_that_reads_slowly_holds_up_nobody(gateway):
    assert gateway.call("notebook", {"mode": "create", "name": "large", "newStr": "z" * 1000000}).status_code == 200
    body = json.dumps({"mode": "read", "name": "large"}).encode()
    clients, requests, before = 20, 20, gateway.counted("notegate_calls_total")
    with contextlib.ExitStack() as held:
        for _ in range(clients):
            raw = held.enter_context(gateway.connect())
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(requests):  # their answers are more than the kernel takes
                raw.request("POST /v1/tools/notebook?raw=true HTTP/1.1", ["Content-Type: application/json"], body)
        eventually(lambda: gateway.counted("notegate_calls_total") >= before + clients, what="the first calls of all of them")
        for n in range(50):
            assert gateway.call("notebook", {"mode": "write", "name": "other", "newStr": f"{n}"}).status_code in (200, 404)
        assert gateway.counted("notegate_calls_total") < before + clients * requests, "they do not wait"
    eventually(lambda: gateway.in_use("buffered") == 0, what="all memory given back")


def test_signals_while_calls_come(start):
    gateway = start()
    stop = threading.Event()
    outcomes = []

    def write(n):
        while not stop.is_set():
            try:
                answer = gateway.call("notebook", {"mode": "create", "name": f"s-{n}", "newStr": "x"})
                outcomes.append(answer.status_code)
            except httpx.HTTPError:
                return

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for n in range(8):
            pool.submit(write, n)
        eventually(lambda: len(outcomes) > 50, what="calls under way")
        gateway.process.send_signal(signal.SIGHUP)
        count = len(outcomes)
        eventually(lambda: len(outcomes) > count + 50, what="calls after the reload")
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(STOP_SECONDS) == 0
        stop.set()
    assert set(outcomes) <= {200, 503}


def test_undos_of_large_files_take_no_memory(start):
    """A copy is found by its hash; four at once take no more memory than one."""
    gateway = start()
    files = gateway.data_dir / "files"
    with (files / "large").open("wb") as file:
        file.write(b"head\n")
        file.truncate(100 * 1024 * 1024)

    def edit(command, path, **more):
        return gateway.call("fileEditor", {"command": command, "path": str(files / path), **more})

    def memory():
        status = (Path("/proc") / str(gateway.process.pid) / "status").read_text()
        return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)[1]) * 1024

    copies = [f"copy{number}" for number in range(4)]
    for name in copies:
        assert edit("copy", "large", destination=str(files / name)).status_code == 200
        assert (files / name).stat().st_blocks * 512 < 1024 * 1024
    before = memory()
    with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
        answers = list(pool.map(lambda name: edit("undo_edit", name), copies))
    assert [answer.status_code for answer in answers] == [200] * len(copies)
    assert memory() - before < 64 * 1024 * 1024
    assert not any((files / name).exists() for name in copies)
