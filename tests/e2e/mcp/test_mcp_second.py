# SPDX-License-Identifier: MIT
"""Several `notegate mcp` on one data directory without `notegate serve`: the first one has the gateway, then another."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import types

import httpx
import pytest
from cells_support import Book, need
from cli_support import notegate
from conftest import binary, environment, eventually
from mcp import Client, StdioServerParameters
from mcp_support import CALL_SECONDS, MODERN, Lines, call, modern

PLUGINS = "notebook,conformance"
ENDED = ("check whether the request was carried out", "no gateway answers", "stopping", "cancelled")


@pytest.fixture(name="begin")
def fixture_begin(tmp_path):
    """begin() starts another client on the data directory; those that were not ended or killed end well."""
    begun = []

    def begin(data=tmp_path / "data", **more):
        begun.append(Lines(data, **{"NOTEGATE_PLUGINS": PLUGINS, **more}))
        return begun[-1]

    yield begin
    for lines in begun:
        if lines.process.poll() is None:
            assert lines.end() == 0


def run(data, *words):
    return notegate(*words, "--data-dir", data, env=environment() | {"NOTEGATE_PLUGINS": PLUGINS})


def write(name, number):
    return call("notebook", {"mode": "create", "name": name, "newStr": "text"}, number)


def notebooks(lines, number):
    lines.send(call("notebook", {"mode": "list"}, number))
    return lines.answer(number)["result"]["content"][0]["text"]


def holder(clients, data):
    """The one whose process has the data directory; None also while another signs the lock."""
    said = (data / "notegate.lock").read_text().split()
    return next((client for client in clients if said[1:] == [str(client.process.pid)]), None)


def kill(lines):
    lines.process.kill()
    lines.process.wait()


# ---- beside each other ----


def test_a_second_client_and_the_command_line(begin, tmp_path):
    data = tmp_path / "data"
    first, second = begin(), None
    first.initialize()
    assert stat.S_IMODE((data / "notegate.sock").stat().st_mode) == 0o600
    second = begin()
    second.initialize()
    first.send(write("of-first", 1))
    second.send(write("of-second", 1))
    assert "result" in first.answer(1) and "result" in second.answer(1)
    for lines in (first, second):
        assert {"of-first", "of-second"} <= set(notebooks(lines, 2).replace(":", " ").split())
    for words, says in (
            (("call", "notebook", "mode=list"), "of-second"), (("tools",), "notebook"), (("whoami",), "admin"),
            (("key", "add", "ada"), "ng_"), (("key", "list"), "ada"), (("backup", tmp_path / "backup"), ""), (("verify",), "")):
        done = run(data, *words)
        assert done.returncode == 0 and says in done.stdout, (words, done.stdout, done.stderr)
    # Another configuration than the gateway's is refused, not passed over.
    done = run(data, "mcp", "--set", "limits.body=1MiB")
    assert done.returncode == 2 and "limits.body" in done.stderr, done.stderr
    done = run(data, "serve", "--listen", "127.0.0.1:0")
    assert done.returncode == 1 and f"in use by process {first.process.pid}" in done.stderr, done.stderr
    assert second.end() == 0 and first.end() == 0
    assert not (data / "notegate.sock").exists()
    assert run(data, "call", "notebook", "mode=list").returncode == 0


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_two_official_clients(tmp_path, mode):
    server = StdioServerParameters(command=binary(), cwd=str(tmp_path), env=environment() | {"NOTEGATE_PLUGINS": PLUGINS},
                                   args=["mcp", "--data-dir", str(tmp_path / "data")])

    async def listed(client):
        return (await client.call_tool("notebook", {"mode": "list"})).content[0].text

    async def first(written, ends):
        async with Client(server, mode=mode, read_timeout_seconds=CALL_SECONDS) as client:
            assert not (await client.call_tool("notebook", {"mode": "create", "name": "plan", "newStr": "x"})).is_error
            written.set()
            await ends.wait()

    async def work():
        written, ends = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(first(written, ends))
        await asyncio.wait({task, asyncio.create_task(written.wait())}, return_when=asyncio.FIRST_COMPLETED)
        async with Client(server, mode=mode, read_timeout_seconds=CALL_SECONDS) as second:
            assert "plan" in await listed(second)
            ends.set()
            await task
            assert "plan" in await listed(second)
            async with Client(server, mode=mode, read_timeout_seconds=CALL_SECONDS) as third:
                assert "plan" in await listed(third)

    asyncio.run(work())


def test_two_that_start_at_once(begin, tmp_path):
    for number in range(20):
        data = tmp_path / f"data-{number}"
        clients = [begin(data), begin(data)]
        for client in clients:
            client.initialize()
        assert notebooks(clients[0], 1) == notebooks(clients[1], 1)
        assert [client.end() for client in clients] == [0, 0]


def test_alone_where_there_can_be_no_socket(begin, tmp_path):
    (tmp_path / "data" / "notegate.sock").mkdir(parents=True)
    (tmp_path / "data").chmod(0o700)
    client = begin()
    client.initialize()
    assert "default" in notebooks(client, 1)
    assert client.end() == 0


# In a cell: asks as the owner would, itself and as a program whose parents are gone.
ASK = """
import os, socket, time

def ask():
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect({path!r})
        plain.sendall(b"GET /v1/keys HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
        return plain.recv(100).split()[1]

print(ask().decode())
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    left = os.getpid()
    if os.fork() == 0:
        while os.getppid() == left:
            time.sleep(0.01)
        os.write(writing, ask())
    os._exit(0)
os.wait()
print(os.read(reading, 10).decode())
"""


@pytest.mark.parametrize("takes_over", [False, True])
def test_programs_of_its_kernels_are_not_the_owner(begin, tmp_path, takes_over):
    """Neither of the first one's kernels nor of those of the one that takes its place."""
    need("python3")
    data = tmp_path / "data"
    clients = [begin(NOTEGATE_PLUGINS="cells,notebook") for _ in range(1 + takes_over)]
    for client in clients:
        client.initialize()
    if takes_over:
        gone = holder(clients, data)
        kill(gone)
        clients.remove(gone)
        assert "default" in notebooks(clients[0], 1)
    path = str(data / "notegate.sock")
    with contextlib.closing(httpx.Client(transport=httpx.HTTPTransport(uds=path), base_url="http://localhost")) as client:
        book = Book(types.SimpleNamespace(client=client, data_dir=data), "n.ipynb", [("a", ASK.format(path=path))])
        book.run("a")
        assert book.text("a").split() == ["401", "401"]
        assert client.get("/v1/keys").status_code == 200
    assert clients[0].end() == 0


# ---- when the first one goes ----


def test_the_first_ends_and_the_second_goes_on(begin, tmp_path):
    data = tmp_path / "data"
    first = begin()
    first.initialize()
    second = begin()
    second.initialize()
    second.send({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "error"}})
    assert second.answer(1)["result"] == {}
    # A call under way ends as if nothing had happened.
    second.send(call("test_tool_with_progress", number=2, meta={"progressToken": 2}))
    while (message := second.next()).get("method") != "notifications/progress":
        assert "id" not in message
    assert first.end() == 0
    assert "result" in second.answer(2)
    # Without any request the next one has the gateway, and its client is still in its session.
    eventually(lambda: holder([second], data) and (data / "notegate.sock").exists(), CALL_SECONDS, "another gateway")
    second.send(call("test_tool_with_logging", number=3))
    message = second.next()
    assert message["id"] == 3 and "result" in message
    # It has a stream, for changes that others make.
    third = begin()
    third.initialize()
    while True:
        third.send(call("test_trigger_tool_change", number=4))
        assert "result" in third.answer(4)
        seen = second.next()
        if seen == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}:
            break
    done = run(data, "call", "notebook", "mode=list")
    assert done.returncode == 0, done.stderr


def test_the_first_ends_and_a_call_takes_too_long(begin):
    first = begin(NOTEGATE_SHUTDOWN_TIMEOUT="50ms")
    first.initialize()
    second = begin()
    second.initialize()
    second.send(call("test_sampling", {"prompt": "x"}, number=1))
    while (asked := second.next()).get("method") != "sampling/createMessage":
        assert "id" not in asked
    assert first.end() == 0
    answer = second.answer(1)
    assert "error" in answer or answer["result"]["isError"]
    second.send({"jsonrpc": "2.0", "id": asked["id"], "result": {}})  # no call waits for it any more
    assert "default" in notebooks(second, 2)


def test_the_first_is_killed_during_a_call(begin):
    first = begin()
    first.initialize()
    second = begin()
    second.initialize()
    second.send(call("test_sampling", {"prompt": "x"}, number=1))
    while second.next().get("method") != "sampling/createMessage":
        pass
    kill(first)
    assert any(part in second.answer(1)["error"]["message"] for part in ENDED)
    assert "default" in notebooks(second, 2)


def test_a_call_that_was_running_ends_where_the_session_is_opened_again_meanwhile(begin):
    """Its answer is in no other session."""
    first = begin()
    first.initialize()
    second = begin()
    second.initialize()
    second.send(call("test_sampling", {"prompt": "x"}, number=1))
    while second.next().get("method") != "sampling/createMessage":
        pass
    kill(first)
    second.send(call("notebook", {"mode": "list"}, 2))
    answers = {}
    while len(answers) < 2:
        message = second.next()
        if "method" not in message:
            answers[message["id"]] = message
    assert "result" in answers[2] and any(part in answers[1]["error"]["message"] for part in ENDED), answers


def test_a_request_that_was_taken_back_is_not_sent_to_the_next(begin):
    first = begin()
    first.initialize()
    second = begin()
    second.initialize()
    assert "default" in notebooks(second, 3)  # all lines before are sent
    # Stopped, so that it reads both lines before it looks for another gateway.
    second.process.send_signal(signal.SIGSTOP)
    assert os.waitid(os.P_PID, second.process.pid, os.WSTOPPED | os.WNOWAIT).si_status == signal.SIGSTOP
    kill(first)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    second.process.stdin.write("".join(json.dumps(message) + "\n" for message in (write("taken-back", 1), cancelled)))
    second.process.stdin.flush()
    second.process.send_signal(signal.SIGCONT)
    assert "taken-back" not in notebooks(second, 2)


def test_a_client_without_a_session_goes_on(begin, tmp_path):
    """Of the stateless protocol: nothing is sent before its first call."""
    first = begin()
    first.initialize()
    second = begin()
    body, _ = modern(method="server/discover")
    second.send({**body, "id": 1})
    assert "result" in second.answer(1)
    kill(first)
    assert (tmp_path / "data" / "notegate.sock").exists()  # nobody answers there
    body, _ = modern({"name": "notebook", "arguments": {"mode": "list"}})
    second.send({**body, "id": 2})
    assert "result" in second.answer(2)


def test_the_first_ends_before_the_second_has_sent_anything(begin, tmp_path):
    first = begin()
    first.initialize()
    second = begin()
    body, _ = modern(method="server/discover")
    second.send({**body, "id": 1})
    assert "result" in second.answer(1)
    third = begin()
    assert first.end() == 0
    third.initialize()
    assert "default" in notebooks(third, 2)
    assert second.end() == 0


def test_eight_that_are_killed_one_after_another(begin, tmp_path):
    """Each time all of them write: what was acknowledged is there, and a refusal says what to do."""
    data = tmp_path / "data"
    clients = [begin() for _ in range(8)]
    for client in clients:
        client.initialize()
    kept, number = set(), 0
    while len(clients) > 1:
        number += 1
        for at, client in enumerate(clients):
            client.send(write(f"n-{number}-{at}", number))
        gone = eventually(lambda: holder(clients, data), CALL_SECONDS, "one that has the gateway")
        at_gone = clients.index(gone)
        kill(gone)
        for at, client in enumerate(clients):
            if at == at_gone:
                continue
            answer = client.answer(number)
            if "result" not in answer:
                assert any(part in answer["error"]["message"] for part in ENDED), answer
                client.send(write(f"n-{number}-{at}-again", number))
                assert "result" in client.answer(number)
            kept.add(f"n-{number}-{at}" + "-again" * ("error" in answer))
        clients.remove(gone)
        there = set(notebooks(clients[0], 1000 + number).replace(":", " ").split())
        assert kept <= there, kept - there
    assert len(kept) == sum(range(1, 8))
    assert os.listdir(data).count("notegate.sock") == 1
    assert json.loads(run(data, "call", "notebook", "mode=list", "--json").stdout)
