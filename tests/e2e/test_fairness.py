# SPDX-License-Identifier: MIT
"""One agent floods the gateway over many connections; another's calls all succeed, and soon."""

import concurrent.futures
import threading

import httpx
from conftest import eventually
from test_limits import stuck, workers  # noqa: F401 - fixtures

FLOOD = 60
POLITE = 20
# Long against what a busy machine adds to a polite call, which is short.
FLOOD_MS = 500
POLITE_MS = 10
TIMEOUT = 60


def flood(gateway, stop, done, number):
    """Calls of one agent, one after the other; 503 is what it may get."""
    headers = {"X-Notegate-Agent": "flood"}
    with httpx.Client(base_url=gateway.url, timeout=TIMEOUT, trust_env=False) as client:
        while not stop.is_set():
            answer = client.post("/v1/tools/stuck", json={"ms": FLOOD_MS}, headers=headers)
            assert answer.status_code in (200, 503), answer.text
            if answer.status_code == 200:
                done[number] += 1
            else:
                assert "limits.queue" in answer.text


def test_a_flood_of_slow_calls(workers):  # noqa: F811
    gateway = workers("limits.workers=4", "limits.queue=16")
    stop = threading.Event()
    done = [0] * FLOOD
    with concurrent.futures.ThreadPoolExecutor(FLOOD) as pool:
        flooding = [pool.submit(flood, gateway, stop, done, number) for number in range(FLOOD)]
        try:
            eventually(lambda: gateway.in_use("queue") >= 8, what="the flood's half of the queue")
            headers = {"X-Notegate-Agent": "polite"}
            turns = []
            with httpx.Client(base_url=gateway.url, timeout=TIMEOUT, trust_env=False) as client:
                for _ in range(POLITE):
                    before = sum(done)
                    answer = client.post("/v1/tools/stuck", json={"ms": POLITE_MS}, headers=headers)
                    assert answer.status_code == 200, answer.text
                    turns.append(sum(done) - before)
                    assert client.post("/v1/tools/notebook", json={"mode": "list"},
                                       headers=headers).status_code == 200
                    assert client.get("/readyz").status_code == 200
            # Behind the eight of the flood that wait, a polite call would see about as many end; in a fair turn it waits for none.
            assert sorted(turns)[POLITE // 2] <= 3, turns
        finally:
            stop.set()
        assert all(call.exception() is None for call in flooding)
    assert sum(done) > 0


def test_one_agent_holds_half_of_the_buffers(start):
    gateway = start(sets=["limits.buffered=8MiB"])
    head = ("POST /v1/tools/notebook HTTP/1.1\r\nHost: localhost\r\nX-Notegate-Agent: flood\r\n"
            "Content-Type: application/json\r\nContent-Length: 2000000\r\n\r\n").encode()
    held = []
    try:
        for _ in range(6):
            raw = gateway.connect()
            held.append(raw)
            raw.send(head + b" " * 1_040_000)
        eventually(lambda: gateway.in_use("buffered") >= 4 * 1024 * 1024, what="its half")
        body = {"mode": "read", "name": "x" * 1_000_000}
        assert gateway.call("notebook", body, {"X-Notegate-Agent": "polite"}).status_code in (400, 404)
        # The polite one has its answer a moment before its bytes are given back.
        eventually(lambda: gateway.in_use("buffered") <= 4 * 1024 * 1024, what="no more than that")
        refused = gateway.call("notebook", body, {"X-Notegate-Agent": "flood"})
        assert refused.status_code == 503 and "one agent has half" in refused.text
    finally:
        for raw in held:
            raw.socket.close()
    eventually(lambda: gateway.in_use("buffered") == 0, what="all of it given back")
    assert gateway.call("notebook", body, {"X-Notegate-Agent": "flood"}).status_code in (400, 404)
