# SPDX-License-Identifier: MIT
"""How the rig's clients speak to the gateway: REST, MCP of both protocols and event streams, over a connection that is killed."""
import http.client
import json
import os
import socket

TIMEOUT = 30
STATELESS = "2026-07-28"
HANDSHAKE = "2025-11-25"
TASKS = "io.modelcontextprotocol/tasks"
META = {"io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS: {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "torture", "version": "1"}}
# Of a client that does not accept a task as the answer.
PLAIN_META = {**META, "io.modelcontextprotocol/clientCapabilities": {}}
BROKEN = (OSError, http.client.HTTPException, ValueError, socket.timeout)


class Gone(Exception):
    """The gateway did not answer: it was killed, or is not up yet."""


class Connection(http.client.HTTPConnection):
    receive_buffer = None

    def connect(self):
        self.sock = socket.socket()
        self.sock.settimeout(self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        self.sock.connect((self.host, self.port))


class Wire:
    """One agent's connection, made again after every kill. `life` counts the gateways it has met. A key or, without
    keys, a name identifies it."""

    def __init__(self, port_file, key=None, receive_buffer=None, agent=None, timeout=TIMEOUT):
        self.port_file = port_file
        self.key = key
        self.agent = agent
        self.timeout = timeout
        self.receive_buffer = receive_buffer
        self.connection = None
        self.port = None
        self.life = None
        self.session = None

    def where(self):
        """(life, port) of the gateway that is up, or the last that was."""
        try:
            with open(self.port_file) as file:
                life, port = file.read().split()
        except (FileNotFoundError, ValueError):
            raise Gone
        return int(life), int(port)

    def open(self):
        life, port = self.where()
        if life != self.life:
            self.close()
            self.life, self.port = life, port
            self.session = None
        if self.connection is None:
            self.connection = Connection("127.0.0.1", self.port, timeout=self.timeout)
            self.connection.receive_buffer = self.receive_buffer
        return self.connection

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def use(self, key):
        """From now on with this key, which does not get into another key's session."""
        self.key = key
        self.session = None

    def identity(self):
        return {"Authorization": f"Bearer {self.key}"} if self.key else {"X-Notegate-Agent": self.agent}

    def start(self, method, path, body=None, headers=None):
        """The answer, its body not yet read."""
        life = self.life
        try:
            connection = self.open()
            if life != self.life and "Mcp-Session-Id" in (headers or {}):
                raise Gone  # another gateway, which does not know the session
            connection.request(method, path, None if body is None else json.dumps(body), {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                **self.identity(), **(headers or {})})
            return connection.getresponse()
        except BROKEN:
            self.close()
            raise Gone

    def request(self, method, path, body=None, headers=None):
        """(status, body)"""
        answer = self.start(method, path, body, headers)
        try:
            text = answer.read()
            # A line that was cut within the headers looks like their end.
            if answer.length is None and not answer.chunked and not text:
                raise http.client.IncompleteRead(text)
            if answer.headers.get("Content-Type", "").startswith("text/event-stream"):
                found = [message for message in messages(text.decode().split("\n")) if "id" in message]
                return answer.status, found[-1]
            return answer.status, json.loads(text) if text else None
        except (*BROKEN, IndexError):
            self.close()
            raise Gone

    def stateless(self, method, params, headers=None):
        name = params.get("name", params.get("taskId", params.get("uri")))
        return self.request("POST", "/mcp", {
            "jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META if self.key else PLAIN_META}}, {
            "MCP-Protocol-Version": STATELESS, "Mcp-Method": method, **({"Mcp-Name": name} if name else {}), **(headers or {})})

    def initialize(self):
        """A session, if there is none."""
        self.open()
        if self.session is not None:
            return
        version = {"MCP-Protocol-Version": HANDSHAKE}
        answer = self.start("POST", "/mcp", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": HANDSHAKE, "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "torture", "version": "1"}}}, version)
        session = answer.headers.get("Mcp-Session-Id")
        try:
            text = answer.read()
        except BROKEN:
            self.close()
            raise Gone
        if answer.status == 429 or answer.status >= 500 or not text:
            raise Gone  # nothing came of it, or only a part of the headers
        assert answer.status == 200 and session, (answer.status, text)
        status, _ = self.request("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"},
                                 {**version, "Mcp-Session-Id": session})
        if status in (404, 429) or status >= 500:
            raise Gone
        assert status == 202, status
        self.session = session

    def handshake(self, method, params, headers=None):
        """In a session, made where there is none."""
        self.initialize()
        return self.request("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, {
            "MCP-Protocol-Version": HANDSHAKE, "Mcp-Session-Id": self.session, **(headers or {})})


def events(answer):
    """(id, name, data) of an event stream, until it ends or breaks; without data it only says where to resume."""
    number, name, data = None, "message", []
    while True:
        try:
            line = answer.readline()
        except BROKEN:
            return
        if not line.endswith(b"\n"):
            return
        line = line.decode().rstrip("\r\n")
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if data:
                yield number, name, "\n".join(data)
            number, name, data = None, "message", []
        elif field == "id":
            number = value
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)


def messages(lines):
    """The JSON-RPC messages of a stream that was read whole."""
    return [json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip()]


def stopped(stop_file):
    return os.path.exists(stop_file)
