# SPDX-License-Identifier: MIT
"""MCP tasks against a real gateway: they outlive the request, the client and the process."""

import concurrent.futures
import json
import signal
import socket
import subprocess

import httpx
import pytest

from conftest import STOP_SECONDS, Gateway, binary, environment, eventually
from tasks_support import META, get, make, message, reach, send, tasker, text_of, try_to_make  # noqa: F401 (a fixture)

RUNNING_MAX = 64


@pytest.fixture
def start(tasker, tmp_path):
    """Starts a gateway on the same data again and again."""
    started = []

    def run(*sets):
        started.append(Gateway(tmp_path / "data", sets=(f"plugins={tasker}", *sets)))
        return started[-1]

    (tmp_path / "data").mkdir(mode=0o700)
    yield run
    for gateway in started:
        gateway.client.close()
        if gateway.process.poll() is None:
            gateway.process.kill()
        gateway.process.wait()


def test_a_task_outlives_its_client(start):
    gateway = start()
    body, headers = message("tools/call", {"name": "k_slow", "arguments": {"ms": 300}})
    data = json.dumps(body).encode()
    with socket.create_connection((gateway.host, gateway.port)) as plain:
        lines = [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(["POST /mcp HTTP/1.1", f"Host: {gateway.host}:{gateway.port}",
                            f"Content-Length: {len(data)}", *lines]) + "\r\n\r\n"
        plain.sendall(head.encode() + data)
        answer = b""
        while b'"taskId"' not in answer or b"}}}" not in answer:
            answer += plain.recv(65536)
    task = json.loads(answer[answer.index(b'{"jsonrpc"'):answer.rindex(b"}") + 1])["result"]["taskId"]
    assert "slept for" in text_of(reach(gateway, task, "completed"))


def test_the_audit_line_of_a_task_tells_address_and_client(start):
    gateway = start("log.audit=true", "log.format=json")
    body, headers = message("tools/call", {"name": "k_write", "arguments": {}})
    body["params"]["_meta"] = {**META, "io.modelcontextprotocol/clientInfo": {"name": "an editor", "version": "1"}}
    task = gateway.client.post("/mcp", json=body, headers=headers).json()["result"]["taskId"]
    reach(gateway, task, "completed")
    told = eventually(lambda: [json.loads(row) for row in gateway.errors if '"audit"' in row], what="its line")
    assert [(entry["tool"], entry["remote"], entry["client"]) for entry in told] == [("k_write", "127.0.0.1", "an editor")]


def test_a_task_keeps_the_run_of_the_call_that_made_it(start):
    """Also when another run resumes it, after a restart."""
    gateway = start("log.audit=reads", "log.format=json")

    def ask(gateway, run, method, params):
        body, headers = message(method, params)
        body["params"]["_meta"] = {**META, "io.notegate/run": run}
        answer = gateway.client.post("/mcp", json=body, headers=headers)
        assert answer.headers["X-Notegate-Run"] == run
        return answer.json()["result"]

    def runs(gateway):
        return [json.loads(row)["run"] for row in gateway.errors if '"tool":"k_ask"' in row]

    task = ask(gateway, "first", "tools/call", {"name": "k_ask", "arguments": {}})["taskId"]
    reach(gateway, task, "input_required")
    assert eventually(lambda: runs(gateway), what="the line of its first part") == ["first"]
    gateway.process.send_signal(signal.SIGKILL)
    gateway.process.wait(STOP_SECONDS)
    again = start("log.audit=reads", "log.format=json")
    answers = {"first": {"action": "accept", "content": {"name": "x"}}}
    ask(again, "second", "tasks/update", {"taskId": task, "inputResponses": answers})
    reach(again, task, "completed")
    assert eventually(lambda: runs(again), what="the line of its second part") == ["first"]


@pytest.mark.parametrize("arguments", [{"space": "team"}, {"space": "team", "count": 1}])
def test_a_tool_that_asks_in_a_space(start, arguments):
    """The state of its questions is bound to the space that the arguments name."""
    gateway = start()
    params = {"name": "k_ask_first", "arguments": arguments}
    asked = send(gateway, "tools/call", params)["result"]
    assert asked["resultType"] == "input_required"
    answers = {"inputResponses": {"first": {"action": "accept", "content": {"name": "x"}}}, "requestState": asked["requestState"]}
    other = send(gateway, "tools/call", params | answers | {"arguments": arguments | {"space": "other"}})
    assert "requestState" in other["error"]["message"], other
    made = send(gateway, "tools/call", params | answers)
    assert made["result"]["resultType"] == "task", made
    assert text_of(reach(gateway, made["result"]["taskId"], "completed")) == "+x"


def test_results_survive_a_kill_and_running_ones_fail(start):
    gateway = start()
    done = make(gateway, "k_slow")
    asks = make(gateway, "k_ask")
    runs = make(gateway, "k_slow", {"ms": 600000})
    cancelled = make(gateway, "k_slow", {"ms": 600000})
    reach(gateway, done, "completed")
    reach(gateway, asks, "input_required")
    send(gateway, "tasks/cancel", {"taskId": cancelled})
    gateway.process.send_signal(signal.SIGKILL)
    gateway.process.wait()
    gateway = start()
    assert "slept for" in text_of(get(gateway, done))
    assert get(gateway, cancelled)["status"] == "cancelled"
    failed = get(gateway, runs)
    assert failed["status"] == "failed"
    assert "restarted while the tool ran" in failed["error"]["message"]
    assert "result" not in failed
    assert "first" in get(gateway, asks)["inputRequests"]
    answer = {"first": {"action": "accept", "content": {"name": "after the kill"}}}
    assert send(gateway, "tasks/update", {"taskId": asks, "inputResponses": answer})["result"]["resultType"] == "complete"
    assert text_of(reach(gateway, asks, "completed")) == "+after the kill"


def test_every_answered_task_is_there_after_a_kill(start):
    """Created durably before the answer: whatever the client was told of exists."""
    gateway = start()
    told = []

    def flood(number):
        try:
            while len(told) < 300:
                task = try_to_make(gateway, "k_slow", agent=f"agent{number}")
                if task is not None:
                    told.append((task, f"agent{number}"))
        except (httpx.HTTPError, json.JSONDecodeError):
            pass

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(flood, number) for number in range(8)]
        eventually(lambda: len(told) >= 60, what="sixty tasks")
        gateway.process.send_signal(signal.SIGKILL)
        for future in futures:
            future.result()
    gateway.process.wait()
    known = list(told)
    gateway = start()
    for task, agent in known:
        assert get(gateway, task, agent)["status"] in ("completed", "failed")


def test_only_its_owner_sees_a_task(start):
    gateway = start()
    task = make(gateway, "k_slow", agent="one")
    assert reach(gateway, task, "completed", agent="one")
    for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
        answer = send(gateway, method, {"taskId": task, **more}, agent="two")
        assert answer["error"]["code"] == -32602, answer
    assert "slept for one in ~one" in text_of(get(gateway, task, agent="one"))


def test_many_tasks_at_once(start):
    gateway = start("limits.workers=4")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        tasks = list(pool.map(lambda n: (n, make(gateway, "k_slow", {"ms": n % 20}, agent=f"agent{n % 6}")), range(180)))
    for number, task in tasks:
        agent = f"agent{number % 6}"
        assert f"slept for {agent} " in text_of(reach(gateway, task, "completed", agent=agent))


def test_tools_that_hold_workers_do_not_keep_their_owner_away(start):
    gateway = start("limits.workers=4")
    tasks = [make(gateway, "k_slow", {"ms": 600000}) for _ in range(RUNNING_MAX)]
    refused = send(gateway, "tools/call", {"name": "k_slow", "arguments": {}})
    assert refused["error"]["code"] == 429
    assert "this caller has 64 running tasks" in refused["error"]["message"]
    assert make(gateway, "k_slow", agent="other")
    for task in tasks:
        assert get(gateway, task)["status"] == "working"
        assert send(gateway, "tasks/cancel", {"taskId": task})["result"]["resultType"] == "complete"
    again = eventually(lambda: send(gateway, "tools/call", {"name": "k_slow", "arguments": {}}).get("result"),
                       what="a place for another task")
    assert reach(gateway, again["taskId"], "completed")


def test_listening_to_tasks(start):
    gateway = start()
    task = make(gateway, "k_ask")
    foreign = make(gateway, "k_ask", agent="other")
    reach(gateway, task, "input_required")
    body, headers = message("subscriptions/listen", {"notifications": {"taskIds": [task, foreign]}})
    with gateway.client.stream("POST", "/mcp", json=body, headers=headers) as stream:
        messages = (json.loads(line[len("data:"):]) for line in stream.iter_lines()
                    if line.startswith("data:") and line[len("data:"):].strip())
        first = next(messages)
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"taskIds": [task]}
        send(gateway, "tasks/update", {"taskId": task, "inputResponses": {
            "first": {"action": "accept", "content": {"name": "heard"}}}})
        seen = []
        while not seen or seen[-1]["status"] != "completed":
            told = next(messages)
            assert told["method"] == "notifications/tasks"
            assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1
            assert told["params"]["taskId"] == task
            seen.append(told["params"])
        assert text_of(seen[-1]) == "+heard"
    undeclared = {**META, "io.modelcontextprotocol/clientCapabilities": {}}
    body["params"]["_meta"] = undeclared
    assert gateway.client.post("/mcp", json=body, headers=headers).json()["error"]["code"] == -32021


def older(gateway, method, params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
               "MCP-Protocol-Version": "2025-11-25"}
    return gateway.client.post("/mcp", json=body, headers=headers).json()


def test_the_older_era(start):
    gateway = start()
    made = older(gateway, "tools/call", {"name": "k_slow", "arguments": {"ms": 200}, "task": {"ttl": 60000}})["result"]["task"]
    assert (made["status"], made["ttl"]) == ("working", 60000)
    result = older(gateway, "tasks/result", {"taskId": made["taskId"]})["result"]
    assert "slept for" in result["content"][0]["text"]
    assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": made["taskId"]}
    assert [task["taskId"] for task in older(gateway, "tasks/list", {})["result"]["tasks"]] == [made["taskId"]]
    short = older(gateway, "tools/call", {"name": "k_slow", "arguments": {}, "task": {"ttl": 1}})["result"]["task"]
    assert eventually(lambda: older(gateway, "tasks/get", {"taskId": short["taskId"]}).get("error"),
                      what="an expired task")["code"] == -32602


def events_of(stream):
    return (json.loads(line[len("data:"):]) for line in stream.iter_lines()
            if line.startswith("data:") and line[len("data:"):].strip())


def test_the_older_era_asks_while_the_result_is_waited_for(start):
    gateway = start()
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
               "MCP-Protocol-Version": "2025-11-25"}

    def post(body):
        return gateway.client.post("/mcp", json={"jsonrpc": "2.0", **body}, headers=headers)

    opened = post({"id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"}}})
    headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
    post({"method": "notifications/initialized"})

    def make_older():
        answer = post({"id": 2, "method": "tools/call", "params": {
            "name": "k_ask", "arguments": {"count": 2}, "task": {}}})
        return answer.json()["result"]["task"]["taskId"]

    def status(task):
        return post({"id": 4, "method": "tasks/get", "params": {"taskId": task}}).json()["result"]["status"]

    task = make_older()
    waiting = {"jsonrpc": "2.0", "id": 3, "method": "tasks/result", "params": {"taskId": task}}
    with gateway.client.stream("POST", "/mcp", json=waiting, headers=headers) as stream:
        messages = events_of(stream)
        for number in range(2):
            asked = next(messages)
            assert asked["method"] == "elicitation/create", asked
            assert asked["params"]["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task}
            assert status(task) == "input_required"
            post({"id": asked["id"], "result": {"action": "accept", "content": {"name": f"n{number}"}}})
        answer = next(messages)
        assert answer["id"] == 3
        assert answer["result"]["content"][0]["text"] == "+n0+n1"
    assert status(task) == "completed"
    # A client that leaves without answering can come back and is asked again.
    task = make_older()
    for number in range(2):
        waiting["params"]["taskId"] = task
        with gateway.client.stream("POST", "/mcp", json=waiting, headers=headers) as stream:
            messages = events_of(stream)
            first = next(messages)
            assert first["method"] == "elicitation/create"
            if number == 0:
                post({"method": "notifications/cancelled", "params": {"requestId": 3}})
                continue
            for asked in (first, next(messages)):
                post({"id": asked["id"], "result": {"action": "accept", "content": {"name": "again"}}})
            assert next(messages)["result"]["content"][0]["text"] == "+again+again"


def test_a_stop_waits_no_longer_than_it_may(start):
    gateway = start("shutdown_timeout=1s")
    task = make(gateway, "k_slow", {"ms": 600000})
    assert gateway.stop() == 0
    gateway = start()
    assert get(gateway, task)["status"] == "failed"


@pytest.mark.parametrize("relayed", [False, True], ids=["alone", "relayed"])
def test_stdio(start, tasker, tmp_path, relayed):
    """The same on stdin and stdout, in a gateway of its own or through the one that serves."""
    gateway = start() if relayed else None
    own = () if relayed else ("--set", f"plugins={tasker}", "--set", "shutdown_timeout=1s")
    process = subprocess.Popen(
        [binary(), "mcp", "--data-dir", str(tmp_path / "data"), *own],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(), cwd=tmp_path)
    try:
        def ask(method, params):
            body, _ = message(method, params)
            process.stdin.write(json.dumps(body) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())["result"]

        task = ask("tools/call", {"name": "k_slow", "arguments": {"ms": 50}})["taskId"]
        done = eventually(lambda: next((found for found in [ask("tasks/get", {"taskId": task})]
                                        if found["status"] == "completed"), None), what="the end")
        assert "slept for" in text_of(done)
        left = ask("tools/call", {"name": "k_slow", "arguments": {"ms": 600000}})["taskId"]
        process.stdin.close()
        assert process.wait(STOP_SECONDS) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    if relayed:
        assert get(gateway, left, agent="local")["status"] == "working"
        send(gateway, "tasks/cancel", {"taskId": left}, agent="local")
