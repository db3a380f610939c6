# SPDX-License-Identifier: MIT
"""A gateway with the conformance plugin, and sessions with it over raw HTTP."""

import json
import queue
import subprocess
import threading

import httpx
import pytest
from conftest import Gateway, binary, environment

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
FIXTURES = ("plugins=+conformance",)
CALL_SECONDS = 120
EVENTS = "application/json, text/event-stream"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("streams") / "data", FIXTURES)
    yield running
    assert running.stop() == 0


class Events:
    """A server-sent event stream, read by a thread."""

    def __init__(self, client, method, url, **more):
        self.queue = queue.Queue()
        self.opened = threading.Event()
        self.status, self.retry, self.last_id, self.response = None, None, None, None
        self.thread = threading.Thread(target=self._read, args=(client, method, url, more), daemon=True)
        self.thread.start()
        assert self.opened.wait(CALL_SECONDS)

    def _read(self, client, method, url, more):
        try:
            with client.stream(method, url, **more) as self.response:
                self.status = self.response.status_code
                self.opened.set()
                event = {}
                for line in self.response.iter_lines():
                    if line == "":
                        if event:
                            self.queue.put(event)
                        event = {}
                    elif not line.startswith(":"):
                        name, _, value = line.partition(":")
                        event[name] = event.get(name, "") + value.removeprefix(" ")
        except (httpx.HTTPError, OSError):
            pass
        finally:
            self.opened.set()
            self.queue.put(None)

    def next(self):
        """The next event as a dict; None: the stream ended."""
        return self.queue.get(timeout=CALL_SECONDS)

    def message(self):
        """The next event with a message."""
        while True:
            event = self.next()
            assert event is not None, "the stream ended"
            if event.get("id"):
                self.last_id = event["id"]
            if event.get("retry"):
                self.retry = int(event["retry"])
            if event.get("data"):
                return json.loads(event["data"])

    def rest(self):
        """All messages until the end."""
        found = []
        while True:
            event = self.next()
            if event is None:
                return found
            self.last_id = event.get("id", self.last_id)
            self.retry = int(event["retry"]) if "retry" in event else self.retry
            if event.get("data"):
                found.append(json.loads(event["data"]))


class Session:
    """A session of the handshake protocol over raw HTTP."""

    def __init__(self, server, version=HANDSHAKE, capabilities=None, headers=None):
        self.client = httpx.Client(base_url=server.url, timeout=CALL_SECONDS, trust_env=False)
        self.headers = {"Accept": EVENTS, **(headers or {})}
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "raw", "version": "1"}}})
        assert answer.status_code == 200, answer.text
        self.headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": version}
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message):
        return self.client.post("/mcp", json=message, headers=self.headers)

    def stream(self, message):
        return Events(self.client, "POST", "/mcp", json=message, headers=self.headers)

    def get(self, **headers):
        return Events(self.client, "GET", "/mcp", headers={**self.headers, **headers})

    def close(self):
        self.client.close()


class Lines:
    """`notegate mcp` by hand: in front of a running gateway, or with a store of its own."""

    def __init__(self, data_dir, *flags, **more):
        self.process = subprocess.Popen(
            [binary(), "mcp", "--data-dir", str(data_dir), *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment() | more, cwd=data_dir.parent)
        self.read_lines()

    def read_lines(self):
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def next(self):
        return self.lines.get(timeout=CALL_SECONDS)

    def answer(self, number):
        """The answer to this request; what comes before it is passed over."""
        while (message := self.next()) is not None:
            if message.get("id") == number and "method" not in message:
                return message
        raise AssertionError("it ended")

    def initialize(self):
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": HANDSHAKE, "capabilities": {"sampling": {}}, "clientInfo": {"name": "raw", "version": "1"}}})
        assert self.next()["id"] == 0
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end(self):
        self.process.stdin.close()
        try:
            return self.process.wait(CALL_SECONDS)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            # Not before the reader has all of it.
            self.reader.join()
            self.process.stdout.close()


def call(name, arguments=None, number=1, meta=None):
    params = {"name": name, "arguments": arguments or {}}
    if meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def modern(params=None, capabilities=None, method="tools/call"):
    params = dict(params or {})
    params["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}} if capabilities is None else capabilities,
        **params.get("_meta", {}),
    }
    headers = {"Accept": EVENTS, "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers
