# SPDX-License-Identifier: MIT
"""One agent floods the gateway over many connections; another's calls all succeed, and soon."""

import concurrent.futures
import contextlib
import json
import threading

import httpx
import pytest
from conftest import eventually
from keys_support import add, bearer
from mcp_support import Lines
from test_limits import calls_of, stuck, workers  # noqa: F401 - fixtures

# More than the gateway admits: one call runs, and eight wait.
FLOOD = 20
ADMITTED = 9
POLITE = 20
TIMEOUT = 60


def flood(gateway, stop, body, done):
    """Calls of one agent, one after the other; 503 is what it may get."""
    headers = {"X-Notegate-Agent": "flood"}
    with httpx.Client(base_url=gateway.url, timeout=None, trust_env=False) as client:
        while not stop.is_set():
            answer = client.post("/v1/tools/stuck", json=body, headers=headers)
            assert answer.status_code in (200, 503), answer.text
            if answer.status_code == 200:
                done.append(answer)
            else:
                assert "limits.queue" in answer.text


def test_a_flood_of_slow_calls(workers, tmp_path):  # noqa: F811
    """Another agent's calls wait for none of them; where no worker is free, lanes take turns (unit.pool)."""
    gateway = workers("limits.workers=4", "limits.queue=16", "limits.call_timeout=1h")
    stop = threading.Event()
    done = []
    held = tmp_path / "held"
    held.touch()
    body = {"ms": 60 * 60 * 1000, "until_gone": str(held)}
    with concurrent.futures.ThreadPoolExecutor(FLOOD) as pool:
        flooding = [pool.submit(flood, gateway, stop, body, done) for _ in range(FLOOD)]
        try:
            eventually(lambda: gateway.in_use("workers") == 1 and gateway.in_use("queue") == 8,
                       what="the flood's worker and its half of the queue")
            headers = {"X-Notegate-Agent": "polite"}
            with httpx.Client(base_url=gateway.url, timeout=TIMEOUT, trust_env=False) as client:
                for _ in range(POLITE):
                    answer = client.post("/v1/tools/stuck", json={}, headers=headers)
                    assert answer.status_code == 200, answer.text
                    assert client.post("/v1/tools/notebook", json={"mode": "list"},
                                       headers=headers).status_code == 200
                    assert client.get("/readyz").status_code == 200
            assert not done, "a call of the flood ended meanwhile"
        finally:
            stop.set()
            held.unlink()
        assert all(call.exception() is None for call in flooding)
    assert len(done) >= ADMITTED


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


# ---- connections


def knock(raw, key, path="/v1/tools"):
    raw.request(f"GET {path} HTTP/1.1", [f"Authorization: Bearer {key}"])
    return raw.answer()


def test_one_agent_has_half_of_the_connections(start):
    gateway = start(sets=["limits.connections=16"])
    keys = [add(gateway.data_dir, "flood"), add(gateway.data_dir, "flood")]
    polite = add(gateway.data_dir, "polite")
    with contextlib.ExitStack() as held:
        for number in range(8):
            assert knock(held.enter_context(gateway.connect()), keys[number % 2]).status == 200
        for key in keys:
            with gateway.connect() as raw:
                answer = knock(raw, key)
                assert answer.status == 503 and int(answer.headers["retry-after"]) > 0
                assert "half of limits.connections" in answer.json()["message"]
                assert raw.ended()
        for _ in range(4):
            assert knock(held.enter_context(gateway.connect()), polite).status == 200
        # Without a key a connection counts for no agent, and the owner's socket is not counted.
        with gateway.connect() as raw:
            assert raw.request("GET /healthz HTTP/1.1").answer().status == 200
        with gateway.connect_local() as raw:
            assert knock(raw, keys[0]).status == 200

    def again():
        with gateway.connect() as raw:
            return knock(raw, keys[0]).status == 200

    eventually(again, what="a place once its others left")


def test_a_connection_counts_for_whose_key_came_last(start):
    gateway = start(sets=["limits.connections=8"])
    keys = {name: add(gateway.data_dir, name) for name in ("ada", "bob")}
    with contextlib.ExitStack() as held:
        raws = [held.enter_context(gateway.connect()) for _ in range(4)]
        assert all(knock(raw, keys["ada"]).status == 200 for raw in raws)
        assert all(knock(raw, keys["bob"]).status == 200 for raw in raws)
        assert knock(held.enter_context(gateway.connect()), keys["ada"]).status == 200
        with gateway.connect() as raw:
            assert knock(raw, keys["bob"]).status == 503


def test_when_crowded_the_agent_with_the_most_gives_way(start):
    limit = 200
    gateway = start(sets=[f"limits.connections={limit}"])
    keys = {name: add(gateway.data_dir, name) for name in ("flood", "other", "polite")}
    with contextlib.ExitStack() as held:
        mine = held.enter_context(gateway.connect())
        assert knock(mine, keys["polite"]).status == 200
        for name, count in (("other", 95), ("flood", 100)):
            for _ in range(count):
                assert knock(held.enter_context(gateway.connect()), keys[name], "/healthz") is not None

        def some():
            # Full for a moment at most: connections that wait go until an eighth is free.
            try:
                with gateway.connect() as raw:
                    answer = knock(raw, keys["polite"])
                    return answer is not None and answer.status == 200
            except OSError:
                return False

        for _ in range(20):
            eventually(some, what="a place for the polite one")
        assert knock(mine, keys["polite"]).status == 200, "of who has few, none is closed"


# ---- bodies that are parsed on workers

LARGE = 70_000
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
JSON = {"Content-Type": "application/json", "Accept": "application/json"}


def ping(size):
    text = {"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": ""}}
    text["params"]["x"] = "x" * (size - len(json.dumps(text)))
    return json.dumps(text)


def listing(size):
    return json.dumps({"mode": "list"}) + " " * size


LARGE_BODIES = {
    "rest": ("/v1/tools/notebook", {}, listing(LARGE)),
    "mcp": ("/mcp", {}, ping(LARGE)),
    "batch": ("/mcp", {"MCP-Protocol-Version": "2025-03-26"}, f"[{ping(100)},{ping(LARGE)}]"),
    "notification": ("/mcp", {}, json.dumps({"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "x" * LARGE}})),
}


@pytest.mark.parametrize("kind", LARGE_BODIES)
def test_large_bodies_wait_in_their_agents_lane(workers, kind):  # noqa: F811
    gateway = workers("limits.workers=2", "limits.queue=2")
    path, more, body = LARGE_BODIES[kind]
    with calls_of(gateway) as calls:
        stuck_call = calls.start("flood")
        calls.running(1)
        headers = {**JSON, **more, "X-Notegate-Agent": "flood"}
        with httpx.Client(base_url=gateway.url, timeout=TIMEOUT, trust_env=False) as client:
            waits = calls.pool.submit(client.post, path, content=body, headers=headers)
            calls.waiting(1)
            refused = gateway.client.post(path, content=body, headers=headers)
            assert refused.status_code == 503 and int(refused.headers["Retry-After"]) > 0, refused.text
            assert "limits.queue" in refused.text and refused.headers["Content-Type"].startswith("application/json")
            assert refused.json().get("id") == (7 if kind == "mcp" else None)
            # A small one of the same agent, and a large one of another, do not wait.
            assert gateway.client.post("/mcp", content=ping(100), headers=headers).status_code == 200
            polite = gateway.client.post(path, content=body, headers={**JSON, **more, "X-Notegate-Agent": "polite"})
            assert polite.status_code in (200, 202), polite.text
            assert not waits.done() and not stuck_call.done()


def test_a_refusal_of_a_full_queue_has_the_id(workers):  # noqa: F811
    """Of a message that is not read: over HTTP if the id stands in its beginning, at the other end of `notegate mcp` always."""
    gateway = workers("limits.workers=2", "limits.queue=2")
    first = ping(LARGE)
    last = json.dumps({"jsonrpc": "2.0", "method": "ping", "params": {"x": "x" * LARGE}, "id": 7})
    with calls_of(gateway) as calls:
        calls.start("flood")
        calls.running(1)
        headers = {**JSON, "X-Notegate-Agent": "flood"}
        with httpx.Client(base_url=gateway.url, timeout=TIMEOUT, trust_env=False) as client:
            calls.pool.submit(client.post, "/mcp", content=first, headers=headers)
            calls.waiting(1)
            for text, number in ((first, 7), (last, None), (first.replace("7", '"a"'), "a"), (first.replace(', "id": 7', ""), None)):
                refused = gateway.client.post("/mcp", content=text, headers=headers).json()
                assert (refused["id"], refused["error"]["code"]) == (number, 503)
            lines = Lines(gateway.data_dir, "--agent", "flood")
            lines.initialize()
            for text in (first, last):
                lines.send(json.loads(text))
                refused = lines.next()
                assert (refused["id"], refused["error"]["code"]) == (7, 503)
            assert lines.end() == 0


@pytest.mark.parametrize("kind", LARGE_BODIES)
def test_a_large_body_is_counted_before_it_is_parsed(start, kind):
    gateway = start()
    key = add(gateway.data_dir, "slow", "--rate", "1/min")
    path, more, body = LARGE_BODIES[kind]
    headers = {**JSON, **more, **bearer(key)}
    first = gateway.client.post(path, content=body, headers=headers)
    assert first.status_code in (200, 202), first.text
    for text in (body, "[" + body):
        second = gateway.client.post(path, content=text, headers=headers)
        assert second.status_code == 429 and int(second.headers["Retry-After"]) > 0, second.text
        assert "a minute" in second.text
        assert second.json().get("id") == (7 if kind == "mcp" and text == body else None)
    broken = add(gateway.data_dir, "broken", "--rate", "1/min")
    answer = gateway.client.post(path, content="[" + body, headers={**headers, **bearer(broken)})
    assert answer.status_code == 400 and "not" in answer.text and "JSON" in answer.text


def test_a_message_that_is_not_small_is_counted_before_it_is_parsed(start):
    """Those are parsed on the event loop: more than its key allows, an agent does not occupy it."""
    gateway = start()
    headers = {**JSON, **bearer(add(gateway.data_dir, "slow", "--rate", "1/min"))}
    statuses = [gateway.client.post("/mcp", content="[" + ping(5000), headers=headers).status_code for _ in range(3)]
    assert statuses == [400, 429, 429]
    assert gateway.client.post("/mcp", content=ping(5000), headers=headers).json()["id"] == 7
    assert gateway.client.post("/mcp", content="[" + ping(100), headers=headers).status_code == 400
    # Once, and a batch's other requests by themselves.
    key = add(gateway.data_dir, "quick", "--rate", "2/min")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "notebook", "arguments": {"mode": "list"}, "_meta": {"x": "x" * 5000}}}
    answers = [gateway.client.post("/mcp", json=call, headers={**JSON, **bearer(key)}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429], [answer.text for answer in answers]
    assert "a minute" in answers[1].text and int(answers[1].headers["Retry-After"]) > 0


def test_a_large_call_is_counted_once(start):
    gateway = start()
    for number, method in enumerate(("tools/call", "resources/list")):
        key = add(gateway.data_dir, f"agent{number}", "--rate", "1/min")
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "notebook", "arguments": {"mode": "list"},
                                                                         "_meta": {"x": "x" * LARGE}}}
        answers = [gateway.client.post("/mcp", json=message, headers={**JSON, **bearer(key)}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 429], [answer.text for answer in answers]
        assert "result" in answers[0].json()


def test_what_counts_against_a_rate(start):
    gateway = start()

    def statuses(name, messages, **more):
        headers = {**JSON, **more, **bearer(add(gateway.data_dir, name, "--rate", "1/min"))}
        found = []
        for message in messages:
            answer = gateway.client.post("/mcp", json=message, headers=headers)
            found.append(answer.status_code)
            headers.update({"Mcp-Session-Id": answer.headers["mcp-session-id"]} if "mcp-session-id" in answer.headers else {})
        return found

    def request(method, **params):
        return {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}

    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    call = request("tools/call", name="notebook", arguments={"mode": "list"})
    subscribe = request("resources/subscribe", uri="notegate://shared/notebook/a")
    # To connect and to stay connected is free, however few calls a key has.
    assert statuses("a", [INITIALIZE, done, request("tools/list"), request("ping"), call, call, request("ping")]) == [
        200, 202, 200, 200, 200, 429, 200]
    assert statuses("b", [INITIALIZE, subscribe, subscribe]) == [200, 200, 429]
    # Not so in batches, nor in messages that are long.
    long_ping = json.loads(ping(5000))
    assert statuses("c", [long_ping, long_ping]) == [200, 429]
    batch = [request("ping") | {"id": number} for number in range(3)]
    headers = {**JSON, "MCP-Protocol-Version": "2025-03-26", **bearer(add(gateway.data_dir, "d", "--rate", "1/min"))}
    answers = gateway.client.post("/mcp", json=batch, headers=headers).json()
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, 429, 429]


# ---- subscriptions


def session(gateway, agent):
    """The headers of a new session."""
    headers = {**JSON, "X-Notegate-Agent": agent}
    answer = gateway.client.post("/mcp", json=INITIALIZE, headers=headers)
    assert answer.status_code == 200, answer.text
    return headers | {"Mcp-Session-Id": answer.headers["mcp-session-id"]}


def subscribe(gateway, headers, number, count=50):
    """A batch of subscriptions to URIs of 1 kB; what became of each."""
    batch = [{"jsonrpc": "2.0", "id": at, "method": "resources/subscribe",
              "params": {"uri": f"notegate://shared/notebook/{number}-{at}-" + "x" * 1000}} for at in range(count)]
    answer = gateway.client.post("/mcp", json=batch, headers=headers)
    assert answer.status_code == 200, answer.text
    return ["error" not in one for one in answer.json()], answer.text


def test_subscriptions_count_against_the_buffers(start):
    gateway = start(sets=["limits.buffered=1MiB"])
    sessions = [session(gateway, "flood") for _ in range(4)]
    refused = ""
    for number in range(8):
        done, text = subscribe(gateway, sessions[number % 4], number)
        refused = refused or ("" if all(done) else text)
    assert "limits.buffered" in refused and "unsubscribe" in refused
    for number in range(500):  # the share of the batches' own bodies
        alone = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe",
                 "params": {"uri": f"notegate://shared/notebook/{number}-" + "y" * 1000}}
        answer = gateway.client.post("/mcp", json=alone, headers=sessions[0])
        if answer.status_code != 200:
            break
    assert answer.status_code == 503 and int(answer.headers["Retry-After"]) > 0, answer.text
    used = gateway.in_use("buffered")
    assert 400 * 1024 < used <= 512 * 1024, used
    done, text = subscribe(gateway, session(gateway, "polite"), 0)
    assert all(done), text
    # Known bytes are not counted twice, and released bytes are free.
    before = gateway.in_use("buffered")
    assert subscribe(gateway, sessions[0], 0, 1)[0] == [True]
    assert gateway.in_use("buffered") == before
    for headers in sessions:
        assert gateway.client.delete("/mcp", headers=headers).status_code == 204
    eventually(lambda: gateway.in_use("buffered") < before - 400 * 1024, what="the flood's bytes to be given back")
    done, text = subscribe(gateway, session(gateway, "flood"), 0)
    assert all(done), text
