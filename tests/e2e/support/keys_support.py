# SPDX-License-Identifier: MIT
"""Keys for tests: made by the command, sent over REST and MCP."""

import re
import subprocess

from conftest import binary, environment

KEY = re.compile(r"^ng_[a-z2-7]{12}_[A-Za-z0-9]{43}$")
PLUGINS = "plugins=notebook,file_editor"
MODERN = "2026-07-28"
READ = {"mode": "list"}
WRITE = {"mode": "create", "name": "n", "newStr": "text"}


def notegate(data_dir, *words, plugins="notebook,file_editor"):
    """One command on a data directory."""
    return subprocess.run([binary(), *map(str, words), "--data-dir", str(data_dir)], capture_output=True, text=True,
                          timeout=120, env=environment() | {"NOTEGATE_PLUGINS": plugins}, cwd="/", check=False)


def add(data_dir, name, *options, **more):
    """A new key, and its id."""
    done = notegate(data_dir, "key", "add", name, *options, **more)
    assert done.returncode == 0, done.stderr
    key = done.stdout.strip()
    assert KEY.match(key), done.stdout
    return key


def key_id(key):
    return key.split("_")[1]


def bearer(key, **headers):
    return ({"Authorization": f"Bearer {key}"} if key else {}) | {name.replace("_", "-"): value for name, value in headers.items()}


def refused(answer, status, code):
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["error"] is True and body["code"] == code
    return body


def mcp(gateway, key, method, params=None, **headers):
    """One stateless MCP request."""
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}
    params = (params or {}) | {"_meta": meta}
    named = {"Mcp-Name": params["name"]} if "name" in params else {}
    return gateway.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers={
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": MODERN, "Mcp-Method": method,
        **named, **bearer(key, **headers)})


def rest_call(gateway, key, tool, arguments, **headers):
    answer = gateway.call(tool, arguments, bearer(key, **headers))
    return "ok" if answer.status_code == 200 else answer.json()["code"]
