# SPDX-License-Identifier: MIT
"""A gateway with cells, and calls of its tools as agents in a mode."""

import json

import httpx
import pytest
from cells_support import plain
from conftest import Gateway

SETS = ("plugins=cells",)
MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
SECONDS = 120
MODES = ("ask", "edit", "agent")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("cells") / "data", SETS)
    yield running
    assert running.stop() == 0, "".join(running.errors)


def code(ident, source, **more):
    return {"cell_type": "code", "execution_count": None, "id": ident, "metadata": {}, "outputs": [], "source": source, **more}


def put(gateway, name, cells, **more):
    """The path of a notebook with these cells."""
    path = gateway.data_dir / "files" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}, indent=1) + "\n")
    return path


def who(agent, mode="agent", **more):
    return {"X-Notegate-Agent": agent, "X-Notegate-Mode": mode, **more}


def ok(gateway, tool, arguments=None, headers=None):
    answer = gateway.call(tool, arguments, headers)
    assert answer.status_code == 200, answer.text
    return plain(answer).json()["result"]


def refused(gateway, tool, arguments, code, headers=None):
    answer = gateway.call(tool, arguments, headers)
    assert answer.status_code != 200, answer.text
    assert answer.json()["code"] == code, answer.text
    return answer.json()


class Handshake:
    """A session of the handshake protocol."""

    def __init__(self, gateway, headers):
        self.client = httpx.Client(base_url=gateway.url, timeout=SECONDS, trust_env=False)
        self.headers = {"Accept": "application/json, text/event-stream", **headers}
        answer = self.post("initialize", {"protocolVersion": HANDSHAKE, "capabilities": {},
                                          "clientInfo": {"name": "t", "version": "1"}})
        self.headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": HANDSHAKE}

    def post(self, method, params=None):
        answer = self.client.post("/mcp", headers=self.headers, json={
            "jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})})
        assert answer.status_code == 200, answer.text
        return answer

    def listed(self, what="tools"):
        return {item["name"] for item in self.post(f"{what}/list").json()["result"][what]}

    def tools(self):
        return self.post("tools/list").json()["result"]["tools"]


def modern(gateway, method, headers, **params):
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}}
    mirrored = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Accept": "application/json, text/event-stream"}
    if "name" in params:
        mirrored["Mcp-Name"] = params["name"]
    return httpx.post(gateway.url + "/mcp", headers={**mirrored, **headers}, timeout=SECONDS, trust_env=False, json={
        "jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}).json()


def rest_tools(gateway, headers):
    answer = gateway.client.get("/v1/tools", headers=headers)
    assert answer.status_code == 200
    return answer.json()["tools"]
