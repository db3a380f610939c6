# SPDX-License-Identifier: MIT
"""MCP tasks for tests: a module with tools that run as tasks, and requests of the stateless protocol about them."""

import subprocess

import pytest
from conftest import SOURCE, eventually

TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES = {"elicitation": {}, "extensions": {TASKS: {}}}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": CAPABILITIES}


@pytest.fixture(scope="module")
def tasker(tmp_path_factory):
    """The module with the tools that run as tasks."""
    module = tmp_path_factory.mktemp("module") / "tasker.so"
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-D_GNU_SOURCE", "-DNG_ABI=1",
                    f"-I{SOURCE}/core/include", "-o", str(module),
                    str(SOURCE / "tests/unit/modules/tasker.c")], check=True)
    return module


def message(method, params):
    name = params.get("name", params.get("taskId"))
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
               "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    if name is not None:
        headers["Mcp-Name"] = name
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return body, headers


def send(gateway, method, params, agent=None):
    """One request of the stateless protocol; the answer."""
    body, headers = message(method, params)
    if agent:
        headers["X-Notegate-Agent"] = agent
    return gateway.client.post("/mcp", json=body, headers=headers).json()


def try_to_make(gateway, tool, arguments=None, agent=None):
    """The task; None: too many of this caller's are running."""
    answer = send(gateway, "tools/call", {"name": tool, "arguments": arguments or {}}, agent)
    if answer.get("error", {}).get("code") == 429:
        return None
    assert answer["result"]["resultType"] == "task", answer
    return answer["result"]["taskId"]


def make(gateway, tool, arguments=None, agent=None):
    task = try_to_make(gateway, tool, arguments, agent)
    assert task is not None
    return task


def get(gateway, task, agent=None):
    return send(gateway, "tasks/get", {"taskId": task}, agent)["result"]


def reach(gateway, task, status, agent=None):
    """The task when it has this status."""
    def reached():
        found = get(gateway, task, agent)
        return found if found["status"] == status else None

    return eventually(reached, what=f"a task that is {status}")


def text_of(task):
    return task["result"]["content"][0]["text"]
