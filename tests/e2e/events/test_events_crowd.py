# SPDX-License-Identifier: MIT
"""The stream of changes: every change once and in order, and readers that are slow, leave or are too many."""

import concurrent.futures
import os
import pathlib
import re
import resource
import socket
import threading

import httpx
from conftest import eventually
from events_support import EVENTS, flood, numbers, raw_stream, read_until, stream, write
from preload_support import fast  # noqa: F401 (a fixture)

SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
MEMORY_BUDGET = 64 * 1024 * 1024
IDLE_STREAMS = 1000


# ---- every change once, in order ----


def test_concurrent_writers_and_readers_that_come_and_go(start):
    """Readers that begin in the store, in the ring and at the seam all see the same."""
    gateway = start(sets=["limits.stream_backlog=100000"])
    writers, writes = 8, 40
    barrier = threading.Barrier(writers)

    def work(number):
        barrier.wait()
        with httpx.Client(base_url=gateway.url, timeout=120, trust_env=False) as client:
            for i in range(writes):
                answer = client.post("/v1/tools/notebook", headers={"X-Notegate-Space": "shared"},
                                     json={"mode": "write", "name": f"n{number % 3}", "newStr": f"{number}.{i}\n"})
                assert answer.status_code == 200, answer.text

    for name in ("n0", "n1", "n2"):
        write(gateway, name=name, space="shared")
    readers = [stream(gateway, since=0) for _ in range(3)]
    try:
        with concurrent.futures.ThreadPoolExecutor(writers) as pool:
            work_done = [pool.submit(work, number) for number in range(writers)]
            while not all(future.done() for future in work_done):
                if len(readers) < 20:
                    readers.append(stream(gateway, since=0))
            for future in work_done:
                future.result()
        write(gateway, name="end", space="shared")
        seen = [reader.take(writers * writes + 4) for reader in readers]
    finally:
        for reader in readers:
            reader.close()
    first = numbers(seen[0])
    assert first == sorted(set(first))
    assert seen[0][-1].json()["id"] == "end"
    for other in seen[1:]:
        assert [event.data for event in other] == [event.data for event in seen[0]]
    for name in ("n0", "n1", "n2"):
        revisions = [e.json()["revision"] for e in seen[0] if e.json()["id"] == name]
        assert revisions == list(range(1, len(revisions) + 1))


def test_nothing_is_lost_or_twice_when_the_gateway_is_killed(start, tmp_path):
    """A reader that resumes with Last-Event-ID, across several kills under load."""
    seen, acknowledged, last = [], [], 0
    for round_number in range(3):
        gateway = start(name="data")
        stop = threading.Event()

        def work(number, gateway=gateway, stop=stop, round_number=round_number):
            with httpx.Client(base_url=gateway.url, timeout=120, trust_env=False) as client:
                i = 0
                while not stop.is_set():
                    name = f"{round_number}.{number}.{i}"
                    try:
                        answer = client.post("/v1/tools/notebook", headers={"X-Notegate-Space": "shared"},
                                             json={"mode": "create", "name": name, "newStr": "x"})
                    except httpx.HTTPError:
                        return
                    if answer.status_code == 200:
                        acknowledged.append(name)
                    i += 1

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        reader = stream(gateway, last=last)
        for thread in threads:
            thread.start()
        part = reader.take(30)
        gateway.process.kill()
        gateway.process.wait()
        stop.set()
        for thread in threads:
            thread.join()
        part += reader.rest()
        reader.close()
        seen += part
        last = seen[-1].id
        gateway.process.returncode = 0  # killed on purpose
    gateway = start(name="data")
    with stream(gateway, last=last) as reader:
        write(gateway, name="end", space="shared")
        while not seen or seen[-1].json()["id"] != "end":
            seen.append(reader.next())
    with stream(gateway, since=0) as reader:
        everything = reader.take(len(seen))
        assert reader.waiting() == 0
    assert [(event.id, event.data) for event in seen] == [(event.id, event.data) for event in everything]
    assert set(acknowledged) <= {event.json()["id"] for event in seen}, "an acknowledged write was lost"


# ---- readers that are slow, leave, are too many ----


def unchunked(data):
    """The body of a whole answer: a chunk may end within an event."""
    _, rest = data.split(b"\r\n\r\n", 1)
    body = b""
    while rest:
        size, rest = rest.split(b"\r\n", 1)
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2:]
    return body.decode()


def test_a_reader_that_is_too_slow_is_told_and_resumes(start):
    gateway = start(sets=["limits.stream_backlog=50"])
    with raw_stream(gateway, "?since=0", receive=4096) as plain:
        write(gateway, name="first")
        text = read_until(plain, b'"id":"first"')
        flood(gateway, 1500)
        text = unchunked(text + read_until(plain, b"\r\n0\r\n\r\n"))  # a clean end
        assert '"reason":"backlog"' in text
        closed = text[text.index("event: closed"):]
        assert "id:" not in closed
        got = [int(number) for number in re.findall(r"^id: (\d+)$", text, re.M)]
        # The connection is as good as before.
        plain.sendall(f"GET /healthz HTTP/1.1\r\nHost: {gateway.host}:{gateway.port}\r\n\r\n".encode())
        read_until(plain, b"200 OK")
    assert 0 < len(got) < 1501
    with stream(gateway, last=got[-1]) as reader:
        rest = numbers(reader.take(1501 - len(got)))
        assert reader.waiting() == 0
    assert len(set(got + rest)) == 1501
    assert got + rest == sorted(got + rest)
    eventually(lambda: gateway.in_use("streams") == 0)


def test_who_begins_far_behind_is_not_cut(start):
    gateway = start(sets=["limits.stream_backlog=20"])
    flood(gateway, 400)
    with stream(gateway, since=0) as reader:
        assert len(set(numbers(reader.take(400)))) == 400
        write(gateway, name="live")
        assert reader.next().json()["id"] == "live"


def test_streams_are_limited_and_shared(start):
    gateway = start(sets=["limits.streams=4"])
    assert gateway.in_use("streams") == 0
    open_streams = [stream(gateway, "ada"), stream(gateway, "ada")]
    try:
        answer = gateway.client.get(EVENTS, headers={"X-Notegate-Agent": "ada"})
        assert (answer.status_code, answer.json()["code"]) == (503, "BUSY")
        assert "limits.streams" in answer.json()["message"]
        assert int(answer.headers["retry-after"]) > 0
        open_streams += [stream(gateway, "bob"), stream(gateway, "eve")]
        assert gateway.client.get(EVENTS, headers={"X-Notegate-Agent": "max"}).status_code == 503
        assert gateway.in_use("streams") == 4
        open_streams.pop().close()
        eventually(lambda: gateway.in_use("streams") == 3)
        open_streams.append(stream(gateway, "max"))
    finally:
        for reader in open_streams:
            reader.close()
    eventually(lambda: gateway.in_use("streams") == 0)


def test_a_client_that_leaves_frees_its_place(fast, start):  # noqa: F811
    gateway = start()
    for leave in (lambda plain: plain.close(), lambda plain: plain.shutdown(socket.SHUT_RDWR)):
        plain = raw_stream(gateway)
        read_until(plain, b": notegate")
        assert gateway.in_use("streams") == 1
        leave(plain)
        # One that still has the socket could be reading: the next comment finds out.
        eventually(lambda: gateway.in_use("streams") == 0)
        plain.close()


def memory_of(gateway):
    status = pathlib.Path(f"/proc/{gateway.process.pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.M)[1]) * 1024


def test_a_thousand_idle_streams(start):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE_STREAMS + 200
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    gateway = start()
    readers = []
    try:
        for number in range(IDLE_STREAMS):
            readers.append(raw_stream(gateway, agent=f"a{number % 10}"))
        for plain in readers:
            read_until(plain, b": notegate")
        assert gateway.in_use("streams") == IDLE_STREAMS
        assert write(gateway, name="n") == 1
        assert gateway.call("notebook", {"mode": "read", "name": "n"}).status_code == 200
        if not SANITIZED:
            assert memory_of(gateway) < MEMORY_BUDGET
        write(gateway, name="for all", space="shared")
        for plain in readers:
            read_until(plain, b'"id":"for all"')
        if not SANITIZED:
            assert memory_of(gateway) < MEMORY_BUDGET
        assert gateway.stop() == 0
        for plain in readers:
            read_until(plain, b"0\r\n\r\n")
    finally:
        for plain in readers:
            plain.close()
