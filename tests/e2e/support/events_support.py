# SPDX-License-Identifier: MIT
"""Streams of changes for tests, and writes that make some."""

import concurrent.futures
import socket

from sse_support import WAIT_SECONDS, Stream

EVENTS = "/v1/events"


def events_url(gateway):
    return gateway.url + EVENTS


def stream(gateway, agent=None, last=None, **params):
    headers = {}
    if agent:
        headers["X-Notegate-Agent"] = agent
    if last is not None:
        headers["Last-Event-ID"] = str(last)
    return Stream(events_url(gateway), params=params, headers=headers)


def write(gateway, text="x\n", name="n", agent="local", space=None):
    headers = {"X-Notegate-Agent": agent}
    if space:
        headers["X-Notegate-Space"] = space
    answer = gateway.call("notebook", {"mode": "create", "name": name, "newStr": text}, headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["revision"]


def numbers(events):
    return [int(event.id) for event in events]


def flood(gateway, count):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(write, gateway, "x", f"{'long' * 50}{i}") for i in range(count)]:
            future.result()


def raw_stream(gateway, query="", agent="local", receive=None, header=None):
    """A connection that asks for events and reads only when told."""
    plain = socket.socket(socket.AF_INET6 if ":" in gateway.host else socket.AF_INET)
    if receive:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    plain.settimeout(WAIT_SECONDS)
    plain.connect((gateway.host, gateway.port))
    plain.sendall(f"GET {EVENTS}{query} HTTP/1.1\r\nHost: {gateway.host}:{gateway.port}\r\n"
                  f"{header or 'X-Notegate-Agent: ' + agent}\r\n\r\n".encode())
    return plain


def read_until(plain, what_comes):
    """Reads until the text has come; all of it."""
    text = b""
    while what_comes not in text:
        data = plain.recv(65536)
        assert data, text[-500:]
        text += data
    return text
