# SPDX-License-Identifier: MIT
"""Event streams of the handshake protocol, read from raw HTTP: sent, missed, resumed and ended."""

import json
import queue
import re
import threading

import httpx
import pytest
from conftest import Gateway, eventually
from keys_support import add, bearer
from mcp_support import CALL_SECONDS, EVENTS, Events, FIXTURES, HANDSHAKE, Session, call, server  # noqa: F401 (fixtures among them)


@pytest.fixture
def session(server):
    opened = Session(server, capabilities={"elicitation": {}, "sampling": {}, "roots": {}})
    yield opened
    opened.close()


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


@pytest.mark.parametrize("length", [10_000, 200_000])
def test_an_answer_is_let_in_however_few_calls_its_key_has(tmp_path, length):
    """The call that asks was counted when it began; other messages are counted before they are answered."""
    gateway = Gateway(tmp_path / "data", FIXTURES)
    session = Session(gateway, "2025-03-26", {"sampling": {}}, bearer(add(gateway.data_dir, "slow", "--rate", "1/min")))
    content = {"type": "text", "text": "Paris" + "x" * length}

    def reply(asked):
        return {"jsonrpc": "2.0", "id": asked["id"], "result": {"role": "assistant", "model": "m", "content": content}}

    events = session.stream(call("test_sampling", {"prompt": "x"}, number=7))
    asked = events.message()
    answer = session.post([reply(asked)] if length < 100_000 else reply(asked))
    assert answer.status_code == 202, answer.text
    assert "Paris" in json.dumps(events.message())
    # Nothing is asked any more.
    assert session.post(reply(asked)).status_code == 429
    session.close()
    # As many as there are questions are parsed before they are counted, and no more.
    other = Session(gateway, "2025-03-26", {"sampling": {}}, bearer(add(gateway.data_dir, "other", "--rate", "1/min")))
    events = other.stream(call("test_sampling", {"prompt": "x"}, number=7))
    asked = events.message()
    large = {"jsonrpc": "2.0", "id": 8, "method": "ping", "params": {"_meta": {"x": "x" * length}}}
    answers = [other.post(message) for message in (large, reply(asked))]
    assert [answer.status_code for answer in answers] == [429, 429], [answer.text[:200] for answer in answers]
    assert all(int(answer.headers["Retry-After"]) > 0 and "a minute" in answer.text for answer in answers)
    small = reply(asked) | {"result": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Rome"}}}
    assert other.post(small).status_code == 202
    assert "Rome" in json.dumps(events.message())
    other.close()
    assert gateway.stop() == 0


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
    # And once more: sent events are kept.
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


def done(server, tool):
    """Calls of a tool that ended well."""
    found = re.search(rf'^notegate_calls_total{{tool="{tool}",outcome="ok"}} (\d+)$', server.client.get("/metrics").text, re.M)
    return int(found.group(1)) if found else 0


def test_clients_that_left_free_their_connections(server, session):
    own = session.get()
    own.next()
    headers = [f"{name}: {value}" for name, value in session.headers.items() if name != "Accept"]
    calls_before, connections = done(server, "test_sampling"), server.in_use("connections")
    raws = [server.connect() for _ in range(20)]
    for number, raw in enumerate(raws):
        raw.request("POST /mcp HTTP/1.1", [*headers, "Accept: application/json", "Content-Type: application/json"],
                    json.dumps(call("test_sampling", {"prompt": "x"}, number=100 + number)).encode())
    asked = [own.message() for _ in raws]
    for raw in raws:
        raw.socket.close()
    eventually(lambda: server.in_use("connections") <= connections, what="the connections to be free")
    assert done(server, "test_sampling") == calls_before
    reply = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    for question in asked:
        assert session.post({"jsonrpc": "2.0", "id": question["id"], "result": reply}).status_code == 202
    eventually(lambda: done(server, "test_sampling") == calls_before + 20, what="the calls to go on to their ends")
    own.response.close()


def test_a_stop_ends_what_was_left_behind(tmp_path):
    gateway = Gateway(tmp_path / "data", FIXTURES)
    session = Session(gateway, capabilities={"sampling": {}})
    own = session.get()
    own.next()
    headers = [f"{name}: {value}" for name, value in session.headers.items() if name != "Accept"]
    with gateway.connect() as raw:
        raw.request("POST /mcp HTTP/1.1", [*headers, "Accept: application/json", "Content-Type: application/json"],
                    json.dumps(call("test_sampling", {"prompt": "x"})).encode())
        assert own.message()["method"] == "sampling/createMessage"
        connections = gateway.in_use("connections")
    eventually(lambda: gateway.in_use("connections") < connections, what="the connection to be free")
    session.close()
    assert gateway.stop() == 0


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
    ({"result": 5}, "does not have the form"),
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


def sessions(gateway):
    found = re.search(r"^notegate_mcp_sessions (\d+)$", gateway.client.get("/metrics").text, re.M)
    return int(found.group(1))


def listening_session(gateway):
    """A session with an open stream; None: it was over before the stream stood."""
    opened = Session(gateway)
    own = opened.get()
    if own.status == 200:
        return opened, own
    opened.close()
    return None


def test_a_session_ends_after_its_silence(tmp_path):
    running = Gateway(tmp_path / "data", (*FIXTURES, "mcp.session_timeout=1s"))
    try:
        silent = Session(running)
        listening, own = eventually(lambda: listening_session(running), what="a session with a stream")
        # By itself: to ask for it would be no silence. The one with an open stream stays.
        eventually(lambda: sessions(running) == 1, what="the silent session's end")
        assert silent.client.delete("/mcp", headers=silent.headers).status_code == 404
        assert listening.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status_code == 200
        own.response.close()
        silent.close()
        listening.close()
    finally:
        assert running.stop() == 0
