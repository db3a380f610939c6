# SPDX-License-Identifier: MIT
"""MCP streams: answers that begin before they end, sessions that are resumed, questions to the client - with the official
SDK over HTTP, stdio and the relay, and with raw HTTP where a connection is cut."""

import asyncio
import http.server
import json
import queue
import socket
import subprocess
import threading

import httpx
import mcp_types as types
import pytest
from conftest import Gateway, binary, environment, eventually
from mcp import Client, StdioServerParameters

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
FIXTURES = ("plugins=+conformance",)
CALL_SECONDS = 60
EVENTS = "application/json, text/event-stream"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("streams") / "data", FIXTURES)
    yield running
    assert running.stop() == 0


def stdio(data_dir):
    return StdioServerParameters(command=binary(), cwd=str(data_dir.parent), env=environment(),
                                 args=["mcp", "--data-dir", str(data_dir), "--set", FIXTURES[0]])


@pytest.fixture(params=["http", "stdio", "relay"])
def target(request, server, tmp_path):
    if request.param == "http":
        return server.url + "/mcp"
    return stdio(server.data_dir if request.param == "relay" else tmp_path / "data")


@pytest.fixture(params=["legacy", MODERN])
def mode(request):
    return request.param


# ---- the official client ----


class Answers:
    """What the client is asked, and what it says."""

    def __init__(self):
        self.asked = []
        self.logged = []

    async def elicit(self, context, params):
        self.asked.append(("elicitation", params.message))
        names = params.requested_schema["properties"]
        values = {"username": "ada", "email": "ada@example.org", "name": "ada", "ok": True, "color": "blue"}
        return types.ElicitResult(action="accept", content={name: values[name] for name in names if name in values})

    async def decline(self, context, params):
        self.asked.append(("elicitation", params.message))
        return types.ElicitResult(action="decline")

    async def sample(self, context, params):
        self.asked.append(("sampling", params.messages[0].content.text))
        return types.CreateMessageResult(role="assistant", model="test", content=types.TextContent(type="text", text="Paris"))

    async def roots(self, context):
        self.asked.append(("roots", None))
        return types.ListRootsResult(roots=[types.Root(uri="file:///tmp/root", name="Root")])

    async def log(self, params):
        self.logged.append((params.level, params.data))


def with_client(target, mode, use, **more):
    async def run():
        async with Client(target, mode=mode, read_timeout_seconds=CALL_SECONDS, **more) as client:
            await use(client)

    asyncio.run(run())


def text_of(result):
    assert not result.is_error, result
    return result.content[0].text


def test_the_user_is_asked(target, mode):
    answers = Answers()

    async def use(client):
        if mode == "legacy":
            result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
        else:
            result = await client.call_tool("test_input_required_result_elicitation", {})
        assert "ada" in text_of(result)
        assert len(answers.asked) == 1

    with_client(target, mode, use, elicitation_callback=answers.elicit)


def test_the_user_declines(target):
    answers = Answers()

    async def use(client):
        result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
        assert "decline" in json.dumps([part.text for part in result.content])

    with_client(target, "legacy", use, elicitation_callback=answers.decline)


def test_the_model_is_asked(target, mode):
    answers = Answers()

    async def use(client):
        if mode == "legacy":
            result = await client.call_tool("test_sampling", {"prompt": "What is the capital of France?"})
        else:
            result = await client.call_tool("test_input_required_result_sampling", {})
        assert "Paris" in text_of(result)
        assert answers.asked == [("sampling", "What is the capital of France?")]

    with_client(target, mode, use, sampling_callback=answers.sample)


def test_several_things_are_asked_at_once(target, mode):
    answers = Answers()

    async def use(client):
        text_of(await client.call_tool("test_input_required_result_multiple_inputs", {}))
        assert sorted(kind for kind, _ in answers.asked) == ["elicitation", "roots", "sampling"]

    with_client(target, mode, use, elicitation_callback=answers.elicit, sampling_callback=answers.sample,
                list_roots_callback=answers.roots)


def test_several_rounds(target, mode):
    answers = Answers()

    async def use(client):
        text = text_of(await client.call_tool("test_input_required_result_multi_round", {}))
        assert "ada" in text and "blue" in text
        assert len(answers.asked) == 2

    with_client(target, mode, use, elicitation_callback=answers.elicit)


def test_a_client_that_cannot_be_asked(target):
    async def use(client):
        result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
        assert result.is_error
        assert "cannot be asked" in result.content[0].text

    with_client(target, "legacy", use)


def test_progress(target, mode):
    async def use(client):
        seen = []

        async def progress(done, total, message):
            seen.append((done, total))

        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
        assert seen == [(0, 100), (50, 100), (100, 100)]

    with_client(target, mode, use)


def test_log_messages(target):
    answers = Answers()

    async def use(client):
        await client.call_tool("test_tool_with_logging", {})
        assert len(answers.logged) == 3
        assert {level for level, _ in answers.logged} == {"info"}
        await client.set_logging_level("error")
        await client.call_tool("test_tool_with_logging", {})
        assert len(answers.logged) == 3

    with_client(target, "legacy", use, logging_callback=answers.log)


def test_calls_in_parallel_are_asked_apart(target):
    answers = Answers()

    async def use(client):
        results = await asyncio.gather(*(client.call_tool("test_sampling", {"prompt": f"{i}"}) for i in range(8)))
        assert all("Paris" in text_of(result) for result in results)
        assert sorted(prompt for _, prompt in answers.asked) == [str(i) for i in range(8)]

    with_client(target, "legacy", use, sampling_callback=answers.sample)


# ---- raw HTTP, older era ----


class Events:
    """A server-sent event stream, read by a thread."""

    def __init__(self, client, method, url, **more):
        self.queue = queue.Queue()
        self.opened = threading.Event()
        self.status, self.retry, self.last_id, self.response = None, None, None, None
        self.thread = threading.Thread(target=self._read, args=(client, method, url, more), daemon=True)
        self.thread.start()
        assert self.opened.wait(CALL_SECONDS)

    def _read(self, client, method, url, more):
        try:
            with client.stream(method, url, **more) as self.response:
                self.status = self.response.status_code
                self.opened.set()
                event = {}
                for line in self.response.iter_lines():
                    if line == "":
                        if event:
                            self.queue.put(event)
                        event = {}
                    elif not line.startswith(":"):
                        name, _, value = line.partition(":")
                        event[name] = event.get(name, "") + value.removeprefix(" ")
        except (httpx.HTTPError, OSError):
            pass
        finally:
            self.opened.set()
            self.queue.put(None)

    def next(self):
        """The next event as a dict; None: the stream ended."""
        return self.queue.get(timeout=CALL_SECONDS)

    def message(self):
        """The next event with a message."""
        while True:
            event = self.next()
            assert event is not None, "the stream ended"
            if event.get("id"):
                self.last_id = event["id"]
            if event.get("retry"):
                self.retry = int(event["retry"])
            if event.get("data"):
                return json.loads(event["data"])

    def rest(self):
        """All messages until the end."""
        found = []
        while True:
            event = self.next()
            if event is None:
                return found
            self.last_id = event.get("id", self.last_id)
            self.retry = int(event["retry"]) if "retry" in event else self.retry
            if event.get("data"):
                found.append(json.loads(event["data"]))


class Session:
    """A session of the older era over raw HTTP."""

    def __init__(self, server, version=HANDSHAKE, capabilities=None):
        self.client = httpx.Client(base_url=server.url, timeout=CALL_SECONDS, trust_env=False)
        self.headers = {"Accept": EVENTS}
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "raw", "version": "1"}}})
        assert answer.status_code == 200, answer.text
        self.headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": version}
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message):
        return self.client.post("/mcp", json=message, headers=self.headers)

    def stream(self, message):
        return Events(self.client, "POST", "/mcp", json=message, headers=self.headers)

    def get(self, **headers):
        return Events(self.client, "GET", "/mcp", headers={**self.headers, **headers})

    def close(self):
        self.client.close()


@pytest.fixture
def session(server):
    opened = Session(server, capabilities={"elicitation": {}, "sampling": {}, "roots": {}})
    yield opened
    opened.close()


def call(name, arguments=None, number=1, meta=None):
    params = {"name": name, "arguments": arguments or {}}
    if meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_an_answer_without_news_is_plain(session):
    answer = session.post(call("test_simple_text"))
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["id"] == 1


def test_a_stream_begins_with_an_id_and_ends_with_the_answer(session):
    events = session.stream(call("test_tool_with_progress", meta={"progressToken": "p"}))
    assert events.status == 200
    assert events.response.headers["content-type"].startswith("text/event-stream")
    first = events.next()
    assert first["id"] and first.get("data", "") == "" and int(first["retry"]) > 0
    messages = events.rest()
    assert [message.get("method") for message in messages] == ["notifications/progress"] * 3 + [None]
    assert messages[-1]["id"] == 1


def test_an_older_version_is_not_primed(server):
    session = Session(server, "2025-06-18")
    events = session.stream(call("test_tool_with_progress", meta={"progressToken": "p"}))
    assert json.loads(events.next()["data"])["method"] == "notifications/progress"
    session.close()


def test_a_client_that_takes_no_events_gets_the_answer(session):
    session.headers["Accept"] = "application/json"
    answer = session.post(call("test_tool_with_progress", meta={"progressToken": "p"}))
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["id"] == 1


def test_its_question_comes_on_the_sessions_stream(session):
    own = session.get()
    assert own.status == 200
    session.headers["Accept"] = "application/json"
    answers = queue.Queue()
    threading.Thread(target=lambda: answers.put(session.post(call("test_sampling", {"prompt": "x"}))), daemon=True).start()
    asked = own.message()
    assert asked["method"] == "sampling/createMessage"
    reply = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    assert session.post({"jsonrpc": "2.0", "id": asked["id"], "result": reply}).status_code == 202
    assert "Paris" in answers.get(timeout=CALL_SECONDS).text


def test_a_cut_connection_is_resumed(server, session):
    other = httpx.Client(base_url=server.url, timeout=CALL_SECONDS, trust_env=False)
    events = Events(other, "POST", "/mcp", json=call("test_sampling", {"prompt": "x"}, number=7), headers=session.headers)
    asked = events.message()
    assert asked["method"] == "sampling/createMessage" and events.last_id
    events.response.close()
    other.close()
    reply = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    assert session.post({"jsonrpc": "2.0", "id": asked["id"], "result": reply}).status_code == 202
    again = session.get(**{"Last-Event-ID": events.last_id})
    messages = again.rest()
    assert [message.get("id") for message in messages] == [7]
    assert "Paris" in json.dumps(messages[0])
    # And once more: what was sent is kept.
    assert session.get(**{"Last-Event-ID": events.last_id}).rest() == messages


def test_everything_missed_is_replayed(session):
    events = session.stream(call("test_tool_with_progress", meta={"progressToken": "p"}))
    first = events.next()["id"]
    messages = events.rest()
    assert session.get(**{"Last-Event-ID": first}).rest() == messages


def test_the_server_closes_and_the_client_polls(session):
    events = session.stream(call("test_reconnection", number=3))
    before = events.rest()
    assert all("id" not in message for message in before)
    assert events.retry
    messages = session.get(**{"Last-Event-ID": events.last_id}).rest()
    assert messages[-1]["id"] == 3


@pytest.mark.parametrize("last", ["no id", "99-1", "-", "1", "0-x"])
def test_an_unknown_event_id(session, last):
    answer = session.client.get("/mcp", headers={**session.headers, "Last-Event-ID": last})
    assert answer.status_code == 400
    assert "Last-Event-ID" in answer.json()["error"]["message"]


def test_the_newest_connection_has_the_sessions_stream(session):
    first = session.get()
    second = session.get()
    assert first.rest() == []
    assert second.status == 200
    second.response.close()


def test_delete_ends_the_sessions_streams(session):
    own = session.get()
    waiting = session.stream(call("test_sampling", {"prompt": "x"}))
    assert waiting.message()["method"] == "sampling/createMessage"
    assert session.client.delete("/mcp", headers=session.headers).status_code == 204
    assert own.rest() == []
    waiting.rest()
    assert session.client.get("/mcp", headers=session.headers).status_code == 404


def test_a_question_is_taken_back_with_its_call(session):
    waiting = session.stream(call("test_sampling", {"prompt": "x"}, number=9))
    asked = waiting.message()
    session.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
    messages = waiting.rest()
    assert messages[0]["method"] == "notifications/cancelled"
    assert messages[0]["params"]["requestId"] == asked["id"]
    assert messages[-1]["id"] == 9


@pytest.mark.parametrize("answer, part", [
    ({"error": {"code": -1, "message": "no model here"}}, "no model here"),
    ({"result": 5}, "not of the form"),
])
def test_a_client_that_fails_to_answer(session, answer, part):
    waiting = session.stream(call("test_sampling", {"prompt": "x"}))
    asked = waiting.message()
    session.post({"jsonrpc": "2.0", "id": asked["id"], **answer})
    result = waiting.rest()[-1]["result"]
    assert result["isError"] and part in result["content"][0]["text"]


def test_batches_stream(server):
    session = Session(server, "2025-03-26")
    batch = [call("test_tool_with_progress", number=1, meta={"progressToken": "p"}), call("test_simple_text", number=2)]
    messages = session.stream(batch).rest()
    assert [message["method"] for message in messages[:-1]] == ["notifications/progress"] * 3
    assert sorted(message["id"] for message in messages[-1]) == [1, 2]
    session.close()


def test_a_session_ends_after_its_silence(tmp_path):
    running = Gateway(tmp_path / "data", (*FIXTURES, "mcp.session_timeout=1s"))
    try:
        session, listening = Session(running), Session(running)
        own = listening.get()
        gone = lambda: session.client.delete("/mcp", headers=session.headers).status_code == 404  # noqa: E731
        # An end by DELETE would be 204: it must have gone by itself.
        eventually(lambda: running.client.get("/mcp", headers={**session.headers, "Accept": "text/event-stream"},
                                              timeout=5).status_code == 404
                   if not threading.Event().wait(1.5) else True, 20, "the silent session's end")
        assert gone()
        assert listening.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status_code == 200
        own.response.close()
        session.close()
        listening.close()
    finally:
        assert running.stop() == 0


# ---- raw HTTP, newer era ----


def modern(params=None, capabilities=None, method="tools/call"):
    params = dict(params or {})
    params["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}} if capabilities is None else capabilities,
        **params.get("_meta", {}),
    }
    headers = {"Accept": EVENTS, "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers


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


# ---- the relay ----


class Lines:
    """`notegate mcp` by hand."""

    def __init__(self, data_dir):
        self.process = subprocess.Popen(
            [binary(), "mcp", "--data-dir", str(data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment(), cwd=data_dir.parent)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def next(self):
        return self.lines.get(timeout=CALL_SECONDS)

    def initialize(self):
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": HANDSHAKE, "capabilities": {"sampling": {}}, "clientInfo": {"name": "raw", "version": "1"}}})
        assert self.next()["id"] == 0
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end(self):
        self.process.stdin.close()
        try:
            return self.process.wait(CALL_SECONDS)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()


@pytest.fixture
def relay(server):
    lines = Lines(server.data_dir)
    yield lines
    assert lines.end() == 0


def test_the_relay_polls_a_stream_that_was_closed(relay):
    relay.initialize()
    relay.send(call("test_reconnection", number=3))
    while (message := relay.next()).get("id") != 3:
        assert "method" in message
    assert "result" in message


def test_the_relay_ends_while_its_client_is_asked(server):
    lines = Lines(server.data_dir)
    lines.initialize()
    lines.send(call("test_sampling", {"prompt": "x"}, number=5))
    assert lines.next()["method"] == "sampling/createMessage"
    assert lines.end() == 0
    answer = lines.next()
    assert answer["id"] == 5 and answer["result"]["isError"]


def test_the_relay_needs_no_param_headers(relay):
    body, _ = modern({"name": "test_custom_header", "arguments": {"region": "eu"}})
    relay.send(body)
    answer = relay.next()
    assert answer.get("error", {}).get("code") != -32020


def test_the_relay_carries_subscriptions(relay):
    listen, _ = modern({"notifications": {"toolsListChanged": True}}, method="subscriptions/listen")
    relay.send({**listen, "id": "sub"})
    acknowledged = relay.next()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    change, _ = modern({"name": "test_trigger_tool_change", "arguments": {}})
    relay.send({**change, "id": 2})
    seen = [relay.next(), relay.next()]
    assert {message.get("method", message.get("id")) for message in seen} == {"notifications/tools/list_changed", 2}
    relay.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "sub"}})
    discover, _ = modern(method="server/discover")
    relay.send({**discover, "id": 3})
    assert relay.next()["id"] == 3


def test_listening_needs_a_client_that_reads_events(server):
    body, headers = modern({"notifications": {"toolsListChanged": True}}, method="subscriptions/listen")
    answer = server.client.post("/mcp", json=body, headers={**headers, "Accept": "application/json"})
    assert answer.status_code == 406


def test_requests_of_a_relay_whose_gateway_dies(tmp_path):
    running = Gateway(tmp_path / "data", FIXTURES)
    lines = Lines(running.data_dir)
    lines.initialize()
    lines.send(call("test_sampling", {"prompt": "x"}, number=5))
    assert lines.next()["method"] == "sampling/createMessage"
    running.process.kill()
    running.process.wait()
    running.client.close()
    answer = lines.next()
    assert answer["id"] == 5 and "error" in answer
    lines.end()


def test_the_relay_goes_on_with_a_gateway_that_was_restarted(tmp_path):
    running = Gateway(tmp_path / "data", FIXTURES)
    lines = Lines(running.data_dir)
    lines.initialize()
    lines.send({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "error"}})
    assert lines.next()["result"] == {}
    assert running.stop() == 0
    lines.send(call("test_simple_text", number=2))
    assert lines.next()["error"]
    running = Gateway(tmp_path / "data", FIXTURES)
    try:
        # In another session, where the level is the one that was set: nothing but the answer comes.
        lines.send(call("test_tool_with_logging", number=3))
        answer = lines.next()
        assert answer["id"] == 3 and "result" in answer
        # It listens again.
        eventually(lambda: running.in_use("streams") == 1, CALL_SECONDS, "the relay's stream")
        lines.send(call("test_trigger_tool_change", number=4))
        seen = [lines.next(), lines.next()]
        assert {message.get("method", message.get("id")) for message in seen} == {"notifications/tools/list_changed", 4}
        # The client begins anew, whatever there was before.
        lines.initialize()
        lines.send(call("test_simple_text", number=5))
        assert "result" in lines.next()
        assert lines.end() == 0
    finally:
        assert running.stop() == 0


class Starting(http.server.BaseHTTPRequestHandler):
    """A gateway in the moment when it knows no session of before and opens none yet."""

    def do_GET(self):
        self.refuse(404)

    def do_POST(self):
        self.server.opened.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.refuse(503)

    def refuse(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def address_string(self):
        return "relay"

    def log_message(self, *_):
        pass


class UnixServer(http.server.ThreadingHTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self):
        self.socket.bind(self.server_address)


def test_the_relay_listens_again_though_no_session_was_opened_at_first(tmp_path):
    running = Gateway(tmp_path / "data", FIXTURES)
    lines = Lines(running.data_dir)
    lines.initialize()
    eventually(lambda: running.in_use("streams") == 1, CALL_SECONDS, "the relay's stream")
    assert running.stop() == 0
    address = running.data_dir / "notegate.sock"
    address.unlink(missing_ok=True)
    with UnixServer(str(address), Starting) as starting:
        starting.opened = []
        threading.Thread(target=starting.serve_forever).start()
        eventually(lambda: starting.opened, CALL_SECONDS, "the relay's try to open a session")
        starting.shutdown()
    address.unlink()
    running = Gateway(tmp_path / "data", FIXTURES)
    try:
        eventually(lambda: running.in_use("streams") == 1, CALL_SECONDS, "the relay's stream")
        assert lines.end() == 0
    finally:
        assert running.stop() == 0


def test_a_call_that_a_restart_ended(tmp_path):
    running = Gateway(tmp_path / "data", FIXTURES)
    lines = Lines(running.data_dir)
    lines.initialize()
    lines.send(call("test_sampling", {"prompt": "x"}, number=5))
    asked = lines.next()
    running.process.kill()
    running.process.wait()
    running.client.close()
    assert "error" in lines.next()
    running = Gateway(tmp_path / "data", FIXTURES)
    try:
        lines.send({"jsonrpc": "2.0", "id": asked["id"], "result": {}})  # nobody waits for it any more
        lines.send(call("test_simple_text", number=6))
        answer = lines.next()
        assert answer["id"] == 6 and "result" in answer
        assert lines.end() == 0
    finally:
        assert running.stop() == 0


def test_the_relay_asks_about_more_than_it_has_room_for(relay):
    relay.initialize()
    count = 200
    for number in range(1, count + 1):
        relay.send(call("test_sampling", {"prompt": "x"}, number=number))
    reply = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    answered = {}
    while len(answered) < count:
        message = relay.next()
        if message.get("method") == "sampling/createMessage":
            relay.send({"jsonrpc": "2.0", "id": message["id"], "result": reply})
        elif "method" not in message:
            assert message["id"] not in answered
            answered[message["id"]] = message
    assert any("result" in message for message in answered.values())
    relay.send(call("test_simple_text", number=count + 1))
    assert "result" in relay.next()


def test_a_batch_that_asks_through_the_relay(relay):
    relay.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {"sampling": {}}, "clientInfo": {"name": "raw", "version": "1"}}})
    assert relay.next()["id"] == 0
    relay.send([call("test_sampling", {"prompt": "x"}, number=1), call("test_simple_text", number=2)])
    asked = relay.next()
    assert asked["method"] == "sampling/createMessage"
    reply = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    relay.send({"jsonrpc": "2.0", "id": asked["id"], "result": reply})
    assert sorted(message["id"] for message in relay.next()) == [1, 2]


# ---- stdio by hand ----


def test_stdio_ends_while_its_client_is_asked(tmp_path):
    lines = Lines.__new__(Lines)
    lines.process = subprocess.Popen(
        [binary(), "mcp", "--data-dir", str(tmp_path / "data"), "--set", FIXTURES[0]], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env=environment(), cwd=tmp_path)
    lines.lines = queue.Queue()
    threading.Thread(target=lines._read, daemon=True).start()
    lines.initialize()
    lines.send(call("test_sampling", {"prompt": "x"}, number=5))
    assert lines.next()["method"] == "sampling/createMessage"
    assert lines.end() == 0
    messages = []
    while (message := lines.next()) is not None:
        messages.append(message)
    assert messages[-1]["id"] == 5 and messages[-1]["result"]["isError"]
