# SPDX-License-Identifier: MIT
"""`notegate mcp` in front of a running gateway: passed messages, and its end when either side leaves."""

import http.server
import socket
import subprocess
import threading

import pytest
from conftest import Gateway, binary, environment, eventually
from mcp_support import CALL_SECONDS, FIXTURES, HANDSHAKE, Lines, call, modern, server  # noqa: F401 (fixtures among them)


# ---- the relay ----


@pytest.fixture
def relay(server):
    lines = Lines(server.data_dir)
    yield lines
    assert lines.end() == 0


def test_the_relay_polls_a_stream_that_was_closed(relay):
    relay.initialize()
    relay.send(call("test_reconnection", number=3))
    while (message := relay.next()).get("id") != 3:
        assert "method" in message
    assert "result" in message


def test_the_relay_ends_while_its_client_is_asked(server):
    lines = Lines(server.data_dir)
    lines.initialize()
    lines.send(call("test_sampling", {"prompt": "x"}, number=5))
    assert lines.next()["method"] == "sampling/createMessage"
    assert lines.end() == 0
    answer = lines.next()
    assert answer["id"] == 5 and answer["result"]["isError"]


def test_the_relay_needs_no_param_headers(relay):
    body, _ = modern({"name": "test_custom_header", "arguments": {"region": "eu"}})
    relay.send(body)
    answer = relay.next()
    assert answer.get("error", {}).get("code") != -32020


def test_the_relay_carries_subscriptions(relay):
    listen, _ = modern({"notifications": {"toolsListChanged": True}}, method="subscriptions/listen")
    relay.send({**listen, "id": "sub"})
    acknowledged = relay.next()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    change, _ = modern({"name": "test_trigger_tool_change", "arguments": {}})
    relay.send({**change, "id": 2})
    seen = [relay.next(), relay.next()]
    assert {message.get("method", message.get("id")) for message in seen} == {"notifications/tools/list_changed", 2}
    relay.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "sub"}})
    discover, _ = modern(method="server/discover")
    relay.send({**discover, "id": 3})
    assert relay.next()["id"] == 3


def test_requests_of_a_relay_whose_gateway_dies(tmp_path):
    running = Gateway(tmp_path / "data", FIXTURES)
    lines = Lines(running.data_dir)
    lines.initialize()
    lines.send(call("test_sampling", {"prompt": "x"}, number=5))
    assert lines.next()["method"] == "sampling/createMessage"
    running.process.kill()
    running.process.wait()
    running.client.close()
    answer = lines.next()
    assert answer["id"] == 5 and "error" in answer
    lines.end()


def test_the_relay_goes_on_with_a_gateway_that_was_restarted(tmp_path):
    running = Gateway(tmp_path / "data", FIXTURES)
    lines = Lines(running.data_dir)
    lines.initialize()
    lines.send({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "error"}})
    assert lines.next()["result"] == {}
    assert running.stop() == 0
    lines.send(call("test_simple_text", number=2))
    assert lines.next()["error"]
    running = Gateway(tmp_path / "data", FIXTURES)
    try:
        # In another session, where the level is the one that was set: nothing but the answer comes.
        lines.send(call("test_tool_with_logging", number=3))
        answer = lines.next()
        assert answer["id"] == 3 and "result" in answer
        # It listens again.
        eventually(lambda: running.in_use("streams") == 1, CALL_SECONDS, "the relay's stream")
        lines.send(call("test_trigger_tool_change", number=4))
        seen = [lines.next(), lines.next()]
        assert {message.get("method", message.get("id")) for message in seen} == {"notifications/tools/list_changed", 4}
        # The client starts again, whatever happened before.
        lines.initialize()
        lines.send(call("test_simple_text", number=5))
        assert "result" in lines.next()
        assert lines.end() == 0
    finally:
        assert running.stop() == 0


class Starting(http.server.BaseHTTPRequestHandler):
    """A gateway in the moment when it knows no session of before and opens none yet."""

    def do_GET(self):
        self.refuse(404)

    def do_POST(self):
        self.server.opened.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.refuse(503)

    def refuse(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def address_string(self):
        return "relay"

    def log_message(self, *_):
        pass


class UnixServer(http.server.ThreadingHTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self):
        self.socket.bind(self.server_address)


def test_the_relay_listens_again_though_no_session_was_opened_at_first(tmp_path):
    running = Gateway(tmp_path / "data", FIXTURES)
    lines = Lines(running.data_dir)
    lines.initialize()
    eventually(lambda: running.in_use("streams") == 1, CALL_SECONDS, "the relay's stream")
    assert running.stop() == 0
    address = running.data_dir / "notegate.sock"
    address.unlink(missing_ok=True)
    with UnixServer(str(address), Starting) as starting:
        starting.opened = []
        threading.Thread(target=starting.serve_forever).start()
        eventually(lambda: starting.opened, CALL_SECONDS, "the relay's try to open a session")
        starting.shutdown()
    address.unlink()
    running = Gateway(tmp_path / "data", FIXTURES)
    try:
        eventually(lambda: running.in_use("streams") == 1, CALL_SECONDS, "the relay's stream")
        assert lines.end() == 0
    finally:
        assert running.stop() == 0


def test_a_call_that_a_restart_ended(tmp_path):
    running = Gateway(tmp_path / "data", FIXTURES)
    lines = Lines(running.data_dir)
    lines.initialize()
    lines.send(call("test_sampling", {"prompt": "x"}, number=5))
    asked = lines.next()
    running.process.kill()
    running.process.wait()
    running.client.close()
    assert "error" in lines.next()
    running = Gateway(tmp_path / "data", FIXTURES)
    try:
        lines.send({"jsonrpc": "2.0", "id": asked["id"], "result": {}})  # no client waits for it any more
        lines.send(call("test_simple_text", number=6))
        answer = lines.next()
        assert answer["id"] == 6 and "result" in answer
        assert lines.end() == 0
    finally:
        assert running.stop() == 0


def test_the_relay_asks_about_more_than_it_has_room_for(relay):
    relay.initialize()
    count = 200
    for number in range(1, count + 1):
        relay.send(call("test_sampling", {"prompt": "x"}, number=number))
    reply = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    answered = {}
    while len(answered) < count:
        message = relay.next()
        if message.get("method") == "sampling/createMessage":
            relay.send({"jsonrpc": "2.0", "id": message["id"], "result": reply})
        elif "method" not in message:
            assert message["id"] not in answered
            answered[message["id"]] = message
    assert any("result" in message for message in answered.values())
    relay.send(call("test_simple_text", number=count + 1))
    assert "result" in relay.next()


def test_a_batch_that_asks_through_the_relay(relay):
    relay.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {"sampling": {}}, "clientInfo": {"name": "raw", "version": "1"}}})
    assert relay.next()["id"] == 0
    relay.send([call("test_sampling", {"prompt": "x"}, number=1), call("test_simple_text", number=2)])
    asked = relay.next()
    assert asked["method"] == "sampling/createMessage"
    reply = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    relay.send({"jsonrpc": "2.0", "id": asked["id"], "result": reply})
    assert sorted(message["id"] for message in relay.next()) == [1, 2]


# ---- stdio by hand ----


def test_stdio_ends_while_its_client_is_asked(tmp_path):
    lines = Lines.__new__(Lines)
    lines.process = subprocess.Popen(
        [binary(), "mcp", "--data-dir", str(tmp_path / "data"), "--set", FIXTURES[0]], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env=environment(), cwd=tmp_path)
    lines.read_lines()
    lines.initialize()
    lines.send(call("test_sampling", {"prompt": "x"}, number=5))
    assert lines.next()["method"] == "sampling/createMessage"
    assert lines.end() == 0
    messages = []
    while (message := lines.next()) is not None:
        messages.append(message)
    assert messages[-1]["id"] == 5 and messages[-1]["result"]["isError"]
