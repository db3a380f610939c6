# SPDX-License-Identifier: MIT
"""Input requests of the stateless protocol: state that returns from the client unchanged is accepted, other state is
refused."""

import json

import pytest
from conftest import Gateway
from mcp_support import Events, FIXTURES, MODERN, modern, server  # noqa: F401 (fixtures among them)


def modern_post(server, params, headers=None, **more):
    body, own = modern(params, **more)
    return server.client.post("/mcp", json=body, headers={**own, **(headers or {})}).json()


ASKING = {"name": "test_input_required_result_request_state", "arguments": {}}
ACCEPTED = {"action": "accept", "content": {"ok": True}}


def asked_state(server, headers=None):
    result = modern_post(server, ASKING, headers)["result"]
    assert result["resultType"] == "input_required"
    key, = result["inputRequests"]
    return key, result["requestState"]


def test_a_modern_stream_has_no_ids(server):
    body, headers = modern({"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 4}})
    events = Events(server.client, "POST", "/mcp", json=body, headers=headers)
    seen = []
    while (event := events.next()) is not None:
        seen.append(event)
    assert len(seen) == 4
    assert not any("id" in event or "retry" in event for event in seen)


def test_state_comes_back_as_it_was(server):
    key, state = asked_state(server)
    done = modern_post(server, {**ASKING, "inputResponses": {key: ACCEPTED}, "requestState": state})
    assert "state-ok" in json.dumps(done["result"])


@pytest.mark.parametrize("change", ["cut", "longer", "letter", "arguments", "agent", "tool", "number", "empty"])
def test_state_of_another_request_is_refused(server, change):
    key, state = asked_state(server)
    params = {**ASKING, "inputResponses": {key: ACCEPTED}, "requestState": state}
    headers = {}
    if change == "cut":
        params["requestState"] = state[:-4]
    elif change == "longer":
        params["requestState"] = state + "AAAA"
    elif change == "letter":
        params["requestState"] = ("B" if state[20] == "A" else "A").join((state[:20], state[21:]))
    elif change == "arguments":
        params["arguments"] = {"x": 1}
    elif change == "agent":
        headers["X-Notegate-Agent"] = "somebody-else"
    elif change == "tool":
        params["name"] = "test_input_required_result_tampered_state"
    elif change == "number":
        params["requestState"] = 5
    else:
        params["requestState"] = ""
    error = modern_post(server, params, headers)["error"]
    assert error["code"] == -32602
    assert "requestState" in error["message"]


def test_state_outlives_a_restart(tmp_path):
    running = Gateway(tmp_path / "data", FIXTURES)
    key, state = asked_state(running)
    assert running.stop() == 0
    assert (tmp_path / "data" / "mcp.key").stat().st_mode & 0o777 == 0o600
    running = Gateway(tmp_path / "data", FIXTURES)
    done = modern_post(running, {**ASKING, "inputResponses": {key: ACCEPTED}, "requestState": state})
    assert running.stop() == 0
    assert "state-ok" in json.dumps(done["result"])


@pytest.mark.parametrize("answer", [5, None, {}, {"action": "maybe"}, {"action": "accept"}])
def test_a_malformed_answer(server, answer):
    params = {"name": "test_input_required_result_elicitation", "arguments": {}, "inputResponses": {"user_name": answer}}
    error = modern_post(server, params)["error"]
    assert error["code"] == -32602
    assert "user_name" in error["message"]


def test_a_missing_capability(server):
    body, headers = modern({"name": "test_missing_capability", "arguments": {}}, capabilities={})
    answer = server.client.post("/mcp", json=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32021
    assert answer.json()["error"]["data"]["requiredCapabilities"] == {"sampling": {}}


def test_get_is_not_for_the_newer_era(server):
    answer = server.client.get("/mcp", headers={"Accept": "text/event-stream", "MCP-Protocol-Version": MODERN})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


def test_listening_needs_a_client_that_reads_events(server):
    body, headers = modern({"notifications": {"toolsListChanged": True}}, method="subscriptions/listen")
    answer = server.client.post("/mcp", json=body, headers={**headers, "Accept": "application/json"})
    assert answer.status_code == 406
