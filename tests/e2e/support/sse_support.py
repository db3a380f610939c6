# SPDX-License-Identifier: MIT
"""A client of server-sent events: a thread reads a stream, the test waits for what came."""

import json
import queue
import threading

import httpx
import pytest

WAIT_SECONDS = 120
ENDED = object()


class Event:
    """One event as it was dispatched."""

    def __init__(self, name, number, data):
        self.name = name
        self.id = number
        self.data = data

    def json(self):
        return json.loads(self.data)

    def __repr__(self):
        return f"<{self.name} {self.id}: {self.data}>"


class Stream:
    """An open stream. Iterating gives its events until it ends; `error` is how it broke, if it did."""

    def __init__(self, url, params=None, headers=None, wait_open=True, verify=True):
        self.client = httpx.Client(timeout=httpx.Timeout(WAIT_SECONDS, read=None), trust_env=False, verify=verify)
        self.events = queue.Queue()
        self.comments = queue.Queue()
        self.retry = None
        self.error = None
        self.last_id = None
        request = self.client.build_request("GET", url, params=params,
                                            headers={"Accept": "text/event-stream", **(headers or {})})
        self.answer = self.client.send(request, stream=True)
        if self.answer.status_code != 200:
            self.answer.read()
            self.client.close()
            pytest.fail(f"no stream: {self.answer.status_code} {self.answer.text}")
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        if wait_open:
            self.comment()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        name, number, data = None, None, []
        try:
            for line in self.answer.iter_lines():
                if line == "":
                    if data:
                        self.last_id = number or self.last_id
                        self.events.put(Event(name or "message", number, "\n".join(data)))
                    name, number, data = None, None, []
                elif line.startswith(":"):
                    self.comments.put(line[1:].strip())
                else:
                    field, _, value = line.partition(":")
                    value = value.removeprefix(" ")
                    if field == "event":
                        name = value
                    elif field == "id":
                        number = value
                    elif field == "data":
                        data.append(value)
                    elif field == "retry":
                        self.retry = int(value)
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            self.error = error
        self.events.put(ENDED)
        self.comments.put(ENDED)

    def next(self, seconds=WAIT_SECONDS):
        """The next event; None: the stream has ended."""
        try:
            event = self.events.get(timeout=seconds)
        except queue.Empty:
            pytest.fail(f"no event came within {seconds} s")
        if event is ENDED:
            self.events.put(ENDED)
            return None
        return event

    def take(self, count, seconds=WAIT_SECONDS):
        """So many events; all must come."""
        events = []
        while len(events) < count:
            event = self.next(seconds)
            assert event is not None, f"the stream ended after {events}: {self.error}"
            events.append(event)
        return events

    def rest(self):
        """Events until the stream ends."""
        events = []
        while (event := self.next()) is not None:
            events.append(event)
        return events

    def waiting(self):
        """Received events that were not taken yet."""
        return self.events.qsize()

    def comment(self, seconds=WAIT_SECONDS):
        """The next comment."""
        try:
            text = self.comments.get(timeout=seconds)
        except queue.Empty:
            pytest.fail(f"no comment came within {seconds} s")
        assert text is not ENDED, f"the stream ended: {self.error}"
        return text

    def close(self):
        """Leaves, whatever comes."""
        stream = self.answer.extensions.get("network_stream")
        plain = stream.get_extra_info("socket") if stream else None
        if plain is not None:
            try:
                plain.shutdown(2)
            except OSError:
                pass
        self.thread.join(WAIT_SECONDS)
        self.answer.close()
        self.client.close()
