# SPDX-License-Identifier: MIT
"""The client library once more, with a connection that costs less: histories are long."""
import http.client
import json
import socket

from wire import BROKEN, Gone, Wire

PIECE = 65536


class Unsent(Gone):
    """No gateway was there: nothing was asked of it."""


class Answer:
    """As much of http.client.HTTPResponse as a Wire uses; its body was read."""
    chunked = False
    length = 0

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def read(self):
        return self.body


class Headers:
    """Header lines, looked up by name."""

    def __init__(self, text):
        self.lines = dict((name.strip().lower(), value.strip()) for name, _, value in
                          (line.partition(":") for line in text.split("\r\n")[1:]))

    def get(self, name, fallback=None):
        return self.lines.get(name.lower(), fallback)


class QuickConnection:
    def __init__(self, port, timeout):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def close(self):
        self.socket.close()

    def request(self, method, path, body=None, headers=None):
        body = (body or "").encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def more(self):
        piece = self.socket.recv(PIECE)
        if not piece:
            raise http.client.IncompleteRead(self.rest)
        self.rest += piece

    def until(self, mark):
        while mark not in self.rest:
            self.more()
        found, _, self.rest = self.rest.partition(mark)
        return found

    def exactly(self, size):
        while len(self.rest) < size:
            self.more()
        found, self.rest = self.rest[:size], self.rest[size:]
        return found

    def chunks(self):
        body = b""
        while True:
            size = int(self.until(b"\r\n").split(b";")[0], 16)
            body += self.exactly(size + 2)[:size]
            if size == 0:
                return body

    def getresponse(self):
        head = self.until(b"\r\n\r\n").decode()
        headers = Headers(head)
        if headers.get("Transfer-Encoding") == "chunked":
            return Answer(int(head.split(" ", 2)[1]), headers, self.chunks())
        if headers.get("Content-Length") is None and not head.startswith("HTTP/1.1 204"):
            raise http.client.IncompleteRead(self.rest)
        return Answer(int(head.split(" ", 2)[1]), headers, self.exactly(int(headers.get("Content-Length") or 0)))


class QuickWire(Wire):
    def open(self):
        life, port = self.where()
        if life != self.life:
            self.close()
            self.life, self.port, self.session = life, port, None
        if self.connection is None:
            try:
                self.connection = QuickConnection(self.port, self.timeout)
            except OSError as error:
                raise Unsent from error
        return self.connection


def compact(value):
    return json.dumps(value, separators=(",", ":"))


__all__ = ["BROKEN", "Gone", "QuickWire", "Unsent", "compact"]
