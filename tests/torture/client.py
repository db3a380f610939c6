#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One agent of the torture rig: writes as fast as it is answered and notes what was acknowledged.

    client.py PORT-FILE LOG NUMBER SEED STOP-FILE FILE

Each write carries a token of its own. Half of the writes have an idempotency key and are sent again until they are
answered: these must be there exactly once. The others are sent once: acknowledged ones must be there exactly once, the rest at
most once. A line of the log is written after the answer was read: "ack KIND TOKEN", "sent KIND TOKEN" before.
"""
import http.client
import json
import os
import random
import socket
import sys
import time

TIMEOUT = 20
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "torture", "version": "1"}}


class Gone(Exception):
    """The gateway did not answer: it was killed, or is not up yet."""


class Client:
    def __init__(self, port_file, agent):
        self.port_file = port_file
        self.agent = agent
        self.connection = None
        self.port = None

    def open(self):
        try:
            with open(self.port_file) as file:
                port = int(file.read())
        except (FileNotFoundError, ValueError):
            raise Gone
        if self.connection is None or port != self.port:
            self.close()
            self.port = port
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        return self.connection

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def post(self, path, body, headers):
        try:
            connection = self.open()
            connection.request("POST", path, json.dumps(body), {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                "X-Notegate-Agent": self.agent, "X-Notegate-Space": "shared", **headers})
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text)
        except (OSError, http.client.HTTPException, ValueError, socket.timeout):
            self.close()
            raise Gone

    def rest(self, tool, arguments, key=None):
        """(acknowledged, may be repeated)"""
        status, body = self.post(f"/v1/tools/{tool}", arguments, {"Idempotency-Key": key} if key else {})
        if status == 200:
            return True, False
        if status in (503, 504):
            return False, True
        raise AssertionError(f"{tool} {arguments}: {status} {body}")

    def mcp(self, tool, arguments):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments, "_meta": META}}
        status, body = self.post("/mcp", body, {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
                                                "Mcp-Name": tool})
        if status == 200 and "result" in body and not body["result"].get("isError"):
            return True, False
        if status in (503, 504) or (status == 200 and "result" in body):
            error = body.get("result", {}).get("_meta", {}).get("notegate/error", {})
            if status != 200 or error.get("code") in ("BUSY", "BACKEND_UNAVAILABLE", "TIMEOUT"):
                return False, True
        raise AssertionError(f"{tool} {arguments}: {status} {body}")


def main():
    port_file, log, number, seed, stop_file, path = sys.argv[1:7]
    rng = random.Random(f"{seed}-{number}")
    client = Client(port_file, f"agent-{number}")
    step = 0
    with open(log, "a", buffering=1) as out:
        while not os.path.exists(stop_file):
            step += 1
            token = f"t-{number}-{step:06d}"
            kind = rng.choice(["notebook", "notebook", "file"])
            keyed = rng.random() < 0.5
            if kind == "notebook":
                tool, arguments = "notebook", {"mode": "write", "name": "torture", "newStr": token}
            else:
                tool, arguments = "fileEditor", {"command": "insert", "path": path, "insert_line": 0, "new_str": token}
            out.write(f"{'keyed' if keyed else 'sent'} {kind} {token}\n")
            while not os.path.exists(stop_file):
                try:
                    if not keyed and rng.random() < 0.5:
                        acknowledged, again = client.mcp(tool, arguments)
                    else:
                        acknowledged, again = client.rest(tool, arguments, token if keyed else None)
                except Gone:
                    acknowledged, again = False, True
                    time.sleep(0.01)
                if acknowledged:
                    out.write(f"ack {kind} {token}\n")
                if acknowledged or not (again and keyed):
                    break
    client.close()


if __name__ == "__main__":
    main()
