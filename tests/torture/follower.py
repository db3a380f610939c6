#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A follower of the changes, over all kills, that logs the events it received.

    follower.py SETTINGS-FILE NAME

NAME is one of FOLLOWERS. `all`, `shared` and `slow` read GET /v1/events and resume with Last-Event-ID; their lines are
the events. `listen` has one subscriptions/listen (2026-07-28), `session` a session's GET stream with two resources
subscribed to (2025-11-25); their lines are "open LIFE", "updated" and, of the resource that only the rig writes, "fence".
"""
import json
import random
import sys
import time

from wire import META, STATELESS, HANDSHAKE, Gone, Wire, events, stopped

FOLLOWERS = ("all", "shared", "slow", "listen", "session")
URI = "notegate://shared/notebook/torture"
# Written when no other client writes: earlier changes were reported before.
FENCE = "notegate://shared/notebook/fence"
# The slow follower sleeps again and again, so that it falls more than the backlog behind.
AWAKE_SECONDS = 2
SLEEP_SECONDS = 3
SMALL_BUFFER = 4096
# One event in so many is the last before a follower hangs up by itself.
HANGS_UP = 150


class Follower:
    def __init__(self, settings, name):
        self.name = name
        self.stop_file = settings["stop_file"]
        self.rng = random.Random(f"{settings['seed']}-{name}")
        self.wire = Wire(settings["port_file"], settings["keys"]["root" if name in ("all", "slow") else "reader"],
                         SMALL_BUFFER if name == "slow" else None)
        self.log = open(f"{settings['folder']}/follower-{name}.log", "a", buffering=1)
        self.last = None
        self.tired = time.monotonic() + self.rng.random() * AWAKE_SECONDS

    def hangs_up(self):
        return self.name in ("slow", "session") and self.rng.randrange(HANGS_UP) == 0

    # ---- GET /v1/events

    def follow(self):
        path = "/v1/events" + {"all": "?since=0", "shared": "?since=0&collection=notebooks,files", "slow": "?since=0"}[self.name]
        answer = self.wire.start("GET", path, None, {"Last-Event-ID": self.last} if self.last else None)
        if answer.status != 200:
            text = answer.read()
            assert answer.status == 503, (answer.status, text, self.last)
            raise Gone
        for number, name, data in events(answer):
            if name == "closed":
                reason = json.loads(data)["reason"]
                assert reason in ("backlog", "stopping"), data
                self.log.write(f"closed {reason}\n")
                break
            assert name == "change", (name, data)
            body = json.loads(data)
            assert str(body["seq"]) == number, data
            self.log.write(json.dumps([body[part] for part in ("seq", "collection", "space", "id", "revision", "agent")]) + "\n")
            self.last = number
            if self.name == "slow" and time.monotonic() > self.tired:
                time.sleep(SLEEP_SECONDS)
                self.tired = time.monotonic() + AWAKE_SECONDS
            if self.hangs_up():
                break
        self.wire.close()

    # ---- MCP

    def take(self, answer):
        """Notes each update; the id of the last event, and whether the follower hung up."""
        last = None
        for number, _, data in events(answer):
            last = number or last
            message = json.loads(data) if data else {}
            if message.get("method") == "notifications/subscriptions/acknowledged":
                assert message["params"]["notifications"] == {"resourceSubscriptions": [URI, FENCE]}, data
                self.log.write(f"open {self.wire.life}\n")
            elif message.get("method") == "notifications/resources/updated":
                assert message["params"]["uri"] in (URI, FENCE), data
                self.log.write("updated\n" if message["params"]["uri"] == URI else "fence\n")
            if self.hangs_up():
                return last, True
        return last, False

    def listen(self):
        answer = self.wire.start("POST", "/mcp", {
            "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
            "params": {"notifications": {"resourceSubscriptions": [URI, FENCE]}, "_meta": META}},
            {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "subscriptions/listen"})
        if answer.status != 200:
            text = answer.read()
            assert answer.status == 503, (answer.status, text)
            raise Gone
        self.take(answer)
        self.wire.close()

    def in_session(self):
        """The session lives as long as its gateway: its stream is resumed until then."""
        sessions = set()
        for uri in (FENCE, URI):
            status, body = self.wire.handshake("resources/subscribe", {"uri": uri})
            assert status == 200 and "result" in body, (status, body)
            sessions.add(self.wire.session)
        if len(sessions) > 1:
            raise Gone  # a gateway was killed between the two
        self.log.write(f"open {self.wire.life}\n")
        last, hung_up = None, True
        while hung_up and not stopped(self.stop_file):
            answer = self.wire.start("GET", "/mcp", None, {
                "MCP-Protocol-Version": HANDSHAKE, "Mcp-Session-Id": self.wire.session, "Accept": "text/event-stream",
                **({"Last-Event-ID": last} if last else {})})
            assert answer.status == 200, (answer.status, answer.read())
            newest, hung_up = self.take(answer)
            last = newest or last
            self.wire.close()
        self.wire.session = None

    def run(self):
        once = {"listen": self.listen, "session": self.in_session}.get(self.name, self.follow)
        while not stopped(self.stop_file):
            try:
                once()
            except Gone:
                self.wire.close()
                time.sleep(0.01)


def main():
    with open(sys.argv[1]) as file:
        settings = json.load(file)
    Follower(settings, sys.argv[2]).run()


if __name__ == "__main__":
    main()
