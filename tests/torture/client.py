#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One agent of the torture rig: writes as fast as it is answered and notes what was acknowledged.

    client.py SETTINGS-FILE NUMBER

Each write carries a token of its own. Half of the writes have an idempotency key and are sent again until they are
answered: these must be there exactly once. The others are sent once: acknowledged ones must be there exactly once, the rest at
most once. A line of the log is written after the answer was read, or before the request is sent (see rig.py). Each write
goes over a transport drawn at random: REST, MCP of either protocol; so does each repeat. Now and then the agent gets a new key
and its old one is revoked.
"""
import json
import random
import sys
import time

from wire import Gone, Wire, stopped

AGAIN = ("BUSY", "BACKEND_UNAVAILABLE", "TIMEOUT")
ROTATE = 0.02
TRY_REVOKED = 0.05


class Client:
    def __init__(self, settings, number):
        self.settings = settings
        self.number = number
        self.agent = f"agent-{number}"
        self.rng = random.Random(f"{settings['seed']}-{number}")
        self.stop_file = settings["stop_file"]
        self.wire = Wire(settings["port_file"], settings["keys"][self.agent])
        self.admin = Wire(settings["port_file"], settings["keys"]["root"])
        self.revoked = []
        self.log = open(f"{settings['folder']}/client-{number}.log", "a", buffering=1)

    def note(self, *words):
        self.log.write(" ".join(map(str, words)) + "\n")

    def stopped(self):
        return stopped(self.stop_file)

    # ---- writing

    def rest(self, tool, arguments, headers):
        """(acknowledged revision or None, may be repeated)"""
        status, body = self.wire.request("POST", f"/v1/tools/{tool}", arguments, headers)
        if status == 200:
            return body["revision"], False
        assert status in (503, 504), f"{tool} {arguments}: {status} {body}"
        return None, True

    def mcp(self, protocol, tool, arguments, headers):
        send = self.wire.stateless if protocol == "stateless" else self.wire.handshake
        status, body = send("tools/call", {"name": tool, "arguments": arguments}, headers)
        result = (body or {}).get("result", {})
        if status == 200 and "result" in body and not result.get("isError"):
            return result["_meta"]["notegate/revision"], False
        error = result.get("_meta", {}).get("notegate/error", {})
        assert status in (503, 504) or error.get("code") in AGAIN, f"{protocol} {tool} {arguments}: {status} {body}"
        return None, True

    def what(self, token):
        """(kind, tool, arguments, space)"""
        kind = self.rng.choice(["notebook", "notebook", "file", "own"])
        if kind == "file":
            return kind, "fileEditor", {"command": "insert", "path": self.settings["file"], "insert_line": 0,
                                        "new_str": token}, "shared"
        own = kind == "own"
        return kind, "notebook", {"mode": "write", "name": self.agent if own else "torture", "newStr": token}, (
            f"~{self.agent}" if own else "shared")

    def write(self, token):
        keyed = self.rng.random() < 0.5
        kind, tool, arguments, space = self.what(token)
        headers = {"X-Notegate-Space": space, **({"Idempotency-Key": token} if keyed else {})}
        self.note("keyed" if keyed else "sent", kind, token)
        revision, again = None, True
        while revision is None and again and not self.stopped():
            transport = self.rng.choice(["rest", "stateless", "handshake"])
            try:
                revision, again = (self.rest(tool, arguments, headers) if transport == "rest"
                                   else self.mcp(transport, tool, arguments, headers))
            except Gone:
                time.sleep(0.01)
            again = again and keyed
        if revision is not None:
            self.note("ack", kind, token, revision)

    # ---- keys

    def insist(self, *request):
        """An answer, however often the gateway dies before it."""
        while not self.stopped():
            try:
                return self.admin.request(*request)
            except Gone:
                time.sleep(0.01)
        return None, None

    def rotate(self):
        """A new key; it works; the old one is revoked; it does not work any more."""
        status, body = self.insist("POST", "/v1/keys", {"agent": self.agent, "restore": True})
        if status is None:
            return
        assert status == 201, (status, body)
        old, new = self.wire.key, body["key"]
        self.note("key-added", body["id"])
        self.wire.use(new)
        revoked = old.split("_")[1]
        status, body = self.insist("DELETE", f"/v1/keys/{revoked}")
        if status is None:
            return
        assert status == 200 and body["state"] == "revoked", (status, body)
        self.note("key-revoked", revoked)
        self.revoked.append(old)

    def try_revoked(self):
        wire = Wire(self.settings["port_file"], self.rng.choice(self.revoked))
        try:
            status, body = wire.request("POST", "/v1/tools/notebook", {"mode": "list"})
        except Gone:
            return
        finally:
            wire.close()
        assert status == 401, f"a revoked key was let in: {status} {body}"

    def run(self):
        step = 0
        while not self.stopped():
            step += 1
            self.write(f"t-{self.number}-{step:06d}")
            if self.rng.random() < ROTATE:
                self.rotate()
            if self.revoked and self.rng.random() < TRY_REVOKED:
                self.try_revoked()
        self.wire.close()
        self.admin.close()
        self.log.close()


def main():
    with open(sys.argv[1]) as file:
        settings = json.load(file)
    Client(settings, int(sys.argv[2])).run()


if __name__ == "__main__":
    main()
