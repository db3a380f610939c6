# SPDX-License-Identifier: MIT
"""Isolation of callers: a caller sees no data of others, an ended key does nothing more, and the memory of a caller
counts as its own."""

import concurrent.futures
import contextlib
import json
import subprocess

import httpx
import pytest
from conftest import binary, environment, eventually
from test_limits import stuck, workers  # noqa: F401 (fixtures)

MODERN = "2026-07-28"
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
# Long against what it takes to find calls waiting, and to revoke a key.
STUCK_MS = 10000
BOTH = {"Accept": "application/json, text/event-stream"}


def add(gateway, name, *options):
    done = subprocess.run([binary(), "key", "add", name, *options, "--data-dir", str(gateway.data_dir)],
                          capture_output=True, text=True, timeout=120, env=environment() | {"NOTEGATE_PLUGINS": "notebook"}, cwd="/",
                          check=True)
    return done.stdout.strip()


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def team(start):
    """A gateway with an admin, alice, and mallory, that has only its own space."""
    gateway = start(sets=["plugins=notebook,file_editor"])
    gateway.admin = add(gateway, "root", "--role", "admin")
    gateway.alice = add(gateway, "alice")
    gateway.mallory = add(gateway, "mallory", "--space", "~mallory", "--tool", "notebook")
    return gateway


def revoke(gateway, key):
    answer = gateway.client.delete(f"/v1/keys/{key.split('_')[1]}", headers=bearer(gateway.admin))
    assert answer.status_code == 200, answer.text


def metric(gateway, name):
    text = gateway.client.get("/metrics", headers=bearer(gateway.admin)).text
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))


def test_metrics_name_no_other_agent(team):
    for key in (team.alice, team.mallory):
        assert team.call("notebook", {"mode": "list"}, bearer(key)).status_code == 200
    assert team.call("fileEditor", {"command": "view", "path": "/etc"}, bearer(team.alice)).status_code == 403
    seen = team.client.get("/metrics", headers=bearer(team.mallory)).text
    assert 'notegate_agent_calls_total{agent="mallory"} 1\n' in seen
    assert 'notegate_agent_calls_total{agent="other"} 2\n' in seen
    assert "alice" not in seen and "fileEditor" not in seen and 'tool="notebook"' in seen
    whole = team.client.get("/metrics", headers=bearer(team.admin)).text
    assert 'notegate_agent_calls_total{agent="alice"} 2\n' in whole and 'tool="fileEditor"' in whole


def test_a_key_that_ends_while_its_request_comes(team):
    """The headers came while the key was good, the body when it was not."""
    body = b'{"mode":"create","name":"late","newStr":"x"}'
    head = ["Content-Type: application/json", f"Authorization: Bearer {team.alice}", f"Content-Length: {len(body)}"]
    with team.connect() as connection:
        connection.request("POST /v1/tools/notebook HTTP/1.1", [*head, "Expect: 100-continue"])
        while b"100 Continue\r\n\r\n" not in connection.buffer:  # the headers were judged
            assert connection._more()
        connection.buffer = b""
        revoke(team, team.alice)
        connection.send(body)
        answer = connection.answer()
    assert answer.status == 401 and answer.json()["code"] == "UNAUTHENTICATED"
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    listed = team.call("notebook", {"mode": "list"}, bearer(team.admin) | {"X-Notegate-Space": "~alice"})
    assert "late" not in listed.text


def test_a_key_that_ends_while_its_calls_run_and_wait(workers):  # noqa: F811
    """Running calls are finished, waiting calls do not begin."""
    gateway = workers("limits.queue=16")
    gateway.admin = add(gateway, "root", "--role", "admin")
    key = add(gateway, "ada")

    def call(_):
        return httpx.post(f"{gateway.url}/v1/tools/stuck", json={"ms": STUCK_MS}, headers=bearer(key), timeout=120,
                          trust_env=False)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(call, number) for number in range(3)]
        eventually(lambda: metric(gateway, 'notegate_in_use{name="queue"}') == 2, what="two calls that wait")
        revoke(gateway, key)
        statuses = sorted(done.result().status_code for done in calls)
    assert statuses == [200, 401, 401]


def test_a_keyless_request_that_comes_while_the_first_key_is_made(start):
    gateway = start(sets=["plugins=notebook"])
    body = b'{"mode":"create","name":"late","newStr":"x"}'
    with gateway.connect() as connection:
        connection.request("POST /v1/tools/notebook HTTP/1.1", [
            "Content-Type: application/json", f"Content-Length: {len(body)}", "Expect: 100-continue"])
        while b"100 Continue\r\n\r\n" not in connection.buffer:
            assert connection._more()
        connection.buffer = b""
        add(gateway, "root", "--role", "admin")
        connection.send(body)
        assert connection.answer().status == 401


def test_sessions_of_ended_keys_take_no_places(team):
    key = add(team, "gone")
    for _ in range(3):
        answer = team.client.post("/mcp", json=HELLO, headers=BOTH | bearer(key))
        assert "mcp-session-id" in answer.headers
    assert metric(team, "notegate_mcp_sessions") == 3
    revoke(team, key)
    eventually(lambda: metric(team, "notegate_mcp_sessions") == 0, what="the end of the sessions")


def test_what_a_body_becomes_is_counted(team):
    """A body of many small values takes far more memory as a tree, as long as its request is under way."""
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}, "junk": [1] * 1_000_000}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "_meta": meta, "notifications": {"toolsListChanged": True}}}, separators=(",", ":")).encode()
    headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream",
               f"MCP-Protocol-Version: {MODERN}", "Mcp-Method: subscriptions/listen",
               f"Authorization: Bearer {team.mallory}"]
    streams, statuses = [], []
    used = 'notegate_in_use{name="buffered"}'
    try:
        while not statuses or statuses[-1] == 200:
            assert len(streams) < 8, "no end of it"
            streams.append(team.connect())
            streams[-1].request("POST /mcp HTTP/1.1", headers, body)
            while b"\r\n\r\n" not in streams[-1].buffer:
                assert streams[-1]._more()
            statuses.append(int(streams[-1].buffer.split()[1]))
        assert statuses[0] == 200 and statuses[-1] == 503
        assert metric(team, used) > 40_000_000
        # Another agent has its half.
        answer = team.call("notebook", {"mode": "create", "name": "n", "newStr": "x" * 1_000_000}, bearer(team.alice))
        assert answer.status_code == 200, answer.text
    finally:
        for stream in streams:
            stream.socket.close()
    eventually(lambda: metric(team, used) == 0, what="the end of the streams")


def test_strangers_do_not_keep_the_others_out(start):
    """A client that holds all connections without a key gives way to a client with a key."""
    gateway = start(sets=["plugins=notebook", "limits.connections=24"])
    key = add(gateway, "ada")
    gateway.client.close()
    with contextlib.ExitStack() as held:
        known = held.enter_context(gateway.connect())
        known.request("GET /v1/tools HTTP/1.1", [f"Authorization: Bearer {key}"])
        assert known.answer().status == 200
        for number in range(23):
            stranger = held.enter_context(gateway.connect())
            if number % 3 == 0:
                stranger.request("GET /healthz HTTP/1.1")
                assert stranger.answer().status == 200
            elif number % 3 == 1:
                stranger.send(b"POST /v1/tools/notebook HTTP/1.1\r\nHost: loc")

        def enters():
            with gateway.connect() as raw:
                raw.request("GET /v1/tools HTTP/1.1", [f"Authorization: Bearer {key}"])
                answer = raw.answer()
                return answer is not None and answer.status == 200

        # Sooner than the strangers' own times end: those that sent nothing whole have 20 s.
        eventually(enters, 15, "a place")
        known.request("GET /v1/tools HTTP/1.1", [f"Authorization: Bearer {key}"])
        assert known.answer().status == 200
