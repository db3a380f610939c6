# SPDX-License-Identifier: MIT
"""A client of the sweep: one connection, kept while it is good; answers as what they came to."""
import http.client
import json
import re
import socket

SECONDS = 60
MODERN = "2026-07-28"
OLDER = "2025-11-25"
TASKS = "io.modelcontextprotocol/tasks"
META = {"io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS: {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "sweep", "version": "1"}}
INTERNAL = -32603
# Members of an answer that differ each time.
VARIES = re.compile(r'\b[0-9a-z]{12}\b|[0-9a-f]{8,}|"id":"[^"]*"|[A-Za-z0-9_-]{22,}|\d+')


# Events that were not yet delivered to a journal of its own, where delivery takes a moment.
BACKLOG = re.compile(r'"backlog":\d+,?')


class Gone(Exception):
    """The connection ended before the answer did."""


class Hangs(Exception):
    """No answer in time."""


class Answer:
    """`ok`: it says that all went well. `failed`: it says that the gateway could not."""

    def __init__(self, status, text, headers=None):
        self.status, self.text, self.headers = status, text, headers or {}
        self.ok = self.failed = False
        self.code = None

    def same(self):
        """The common members of two answers to the same request."""
        text = self.text
        if not self.ok and self.status >= 400:
            # Without memory an error may come without its hint.
            text = json.dumps({key: value for key, value in self.json().items() if key != "hint"})
        elif not self.ok and self.text.startswith("{") and "error" in self.json():
            # Nor does one of MCP have its data.
            text = json.dumps({key: self.json()["error"].get(key) for key in ("code", "message")})
        return VARIES.sub("#", BACKLOG.sub("", text))

    def json(self):
        return json.loads(self.text)

    def __str__(self):
        return f"{self.status} {self.text[:600]}"


def rest_answer(status, text, headers):
    answer = Answer(status, text, headers)
    answer.ok = 200 <= status < 300
    if status >= 400:
        try:
            body = answer.json()
            answer.code = body["code"]
            answer.failed = status >= 500 and bool(body["message"])
        except (ValueError, KeyError, TypeError):
            answer.failed = False
    return answer


def mcp_answer(status, text, headers, endless=False):
    """The last message is the answer; what a stream says before it is progress and log."""
    answer = Answer(status, text, headers)
    if headers.get("content-type", "").startswith("text/event-stream"):
        data = [line[5:].strip() for line in text.split("\n") if line.startswith("data:") and line[5:].strip()]
        if not data:
            raise Gone("a stream without an answer")
        answer.text = data[-1]
        if endless and '"method":' in answer.text:
            answer.ok = True
            return answer
        if '"id":' not in answer.text:
            raise Gone("a stream that ended before its answer")
    if status == 202:
        answer.ok = True
        return answer
    try:
        body = answer.json()
    except ValueError:
        return answer
    error, result = body.get("error"), body.get("result")
    if error is not None:
        answer.code = error.get("code")
        answer.failed = (answer.code == INTERNAL or status >= 500) and bool(error.get("message"))
    elif result is not None:
        inner = result.get("_meta", {}).get("notegate/error", {})
        answer.code = inner.get("code")
        answer.ok = status == 200 and not result.get("isError") and result.get("status") != "failed"
        answer.failed = bool(result.get("isError")) and answer.code in ("INTERNAL", "BUSY", "BACKEND_UNAVAILABLE")
    return answer


class Wire:
    def __init__(self, port, key=None):
        self.port, self.key = port, key
        self.connection = None
        self.session = None

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def raw(self, method, path, body=None, headers=None, lines=None):
        """(status, text, headers); lines: so many of an endless stream."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(headers or {})}
        if self.key:
            sent["Authorization"] = f"Bearer {self.key}"
        try:
            text = None if body is None else body if isinstance(body, str) else json.dumps(body)
            self.connection.request(method, path, text, sent)
            answer = self.connection.getresponse()
            kept = {name.lower(): value for name, value in answer.getheaders()}
            if lines and kept.get("content-type", "").startswith("text/event-stream"):
                got = [answer.readline() for _ in range(lines)]
                self.close()
                if not got[-1]:
                    raise Gone("the stream ended")
                return answer.status, b"".join(got).decode(), kept
            return answer.status, answer.read().decode(), kept
        except (socket.timeout, TimeoutError) as error:
            self.close()
            raise Hangs(f"{method} {path}") from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Gone(repr(error)) from error

    def rest(self, method, path, body=None, headers=None, lines=None):
        return rest_answer(*self.raw(method, path, body, headers, lines))

    def tool(self, name, arguments=None, headers=None):
        return self.rest("POST", f"/v1/tools/{name}", arguments or {}, headers)

    def modern(self, method, params=None, headers=None, lines=None):
        params = params or {}
        name = params.get("name", params.get("taskId", params.get("uri")))
        return mcp_answer(*self.raw("POST", "/mcp", {
            "jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}, {
                "MCP-Protocol-Version": MODERN, "Mcp-Method": method, **({"Mcp-Name": name} if name else {}),
                **(headers or {})}, lines), endless=bool(lines))

    def initialize(self):
        answer = mcp_answer(*self.raw("POST", "/mcp", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": OLDER, "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "sweep", "version": "1"}}}, {"MCP-Protocol-Version": OLDER}))
        if answer.ok:
            self.session = answer.headers.get("mcp-session-id")
        return answer

    def older(self, method, params=None, headers=None, lines=None):
        """In a session, which must be there."""
        return mcp_answer(*self.raw("POST", "/mcp", {
            "jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}, {
                "MCP-Protocol-Version": OLDER, "Mcp-Session-Id": self.session, **(headers or {})}, lines))

    def notify(self, method):
        return mcp_answer(*self.raw("POST", "/mcp", {"jsonrpc": "2.0", "method": method}, {
            "MCP-Protocol-Version": OLDER, "Mcp-Session-Id": self.session}))

    def events(self, path):
        """Events of a stream on its own connection, until the caller has enough."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("GET", path, headers={"Accept": "text/event-stream", "Authorization": f"Bearer {self.key}"})
            answer = connection.getresponse()
            while answer.status == 200:
                line = answer.readline()
                if not line:
                    break
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        except (OSError, http.client.HTTPException) as error:
            raise Gone(repr(error)) from error
        finally:
            connection.close()

    def open_stream(self, path, headers):
        """(status, headers) of a stream that is closed at once."""
        self.close()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("GET", path, headers={"Accept": "text/event-stream", "Authorization": f"Bearer {self.key}",
                                                     **headers})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders())
        except (socket.timeout, TimeoutError) as error:
            raise Hangs(f"GET {path}") from error
        except (OSError, http.client.HTTPException) as error:
            raise Gone(repr(error)) from error
        finally:
            connection.close()
