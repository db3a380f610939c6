# SPDX-License-Identifier: MIT
"""Sessions of older MCP versions behind a load balancer that knows nothing of them: each request reaches another gateway."""

import contextlib
import hashlib
import http.client
import http.server
import json
import queue
import re
import secrets
import signal
import subprocess
import threading
import time

import httpx
import pymongo
import pytest

from balancer_support import GATEWAYS, PATIENCE, Team
from conftest import Gateway, binary, environment, eventually
from keys_support import add, bearer
from mcp_support import CALL_SECONDS, Session, call, modern
from servers import Servers, free_port, freeze, give_back
from tls_support import authority  # noqa: F401 (a fixture)

ABILITIES = {"elicitation": {}, "sampling": {}, "roots": {}}
# CLUSTER_LEASE_MS
LEASE_SECONDS = 15
# Attempts to stop a gateway that holds its lease.
STOPS = 3
ANSWER = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}


@pytest.fixture(scope="module")
def module_servers():
    with contextlib.ExitStack() as stack:
        yield Servers(stack)


@pytest.fixture(scope="module")
def team(tmp_path_factory, module_servers):
    made = Team(tmp_path_factory.mktemp("team"), module_servers, "agent_notebook,conformance", sticky=False)
    with contextlib.closing(made):
        for name in GATEWAYS:
            made.wait_up(name)
        made.key = made.make_key("ada", "--role", "admin")
        made.other_key = made.make_key("ben", "--role", "admin")
        yield made


@pytest.fixture
def opened(team):
    """A session of gateway-1."""
    with contextlib.closing(Session(team.gateways["gateway-1"], capabilities=ABILITIES, headers=bearer(team.key))) as session:
        yield session


class At:
    """The same session at another gateway, over connections of its own."""

    def __init__(self, session, gateway):
        self.headers = dict(session.headers)
        self.client = httpx.Client(base_url=gateway.url, timeout=CALL_SECONDS, trust_env=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    post = Session.post
    stream = Session.stream
    get = Session.get

    def delete(self):
        return self.client.delete("/mcp", headers=self.headers)


def test_each_request_elsewhere(team):
    with contextlib.closing(Session(team.front, headers=bearer(team.key))) as session:
        for number in range(3 * len(GATEWAYS)):
            answer = session.post(call("test_simple_text", number=number))
            assert answer.status_code == 200 and answer.json()["id"] == number, answer.text
            label = hashlib.sha256(session.headers["Mcp-Session-Id"].encode()).hexdigest()[:16]
            assert answer.headers["X-Notegate-Run"] == f"mcp-{label}", "the same at every gateway"
            named = session.client.post("/mcp", json=call("test_simple_text"), headers=session.headers | {"X-Notegate-Run": "named"})
            assert named.headers["X-Notegate-Run"] == "named"
        refused = session.post({"jsonrpc": "2.0", "id": 1, "method": "no/such"})
        assert refused.json()["error"]["code"] == -32601


def test_its_own_stream_and_questions(team, opened):
    """The stream at one gateway, the call that asks at another, the client's answer at the third."""
    with At(opened, team.gateways["gateway-2"]) as second, At(opened, team.gateways["gateway-3"]) as third:
        own = second.get()
        assert own.status == 200
        third.headers["Accept"] = "application/json"
        answers = queue.Queue()
        asking = threading.Thread(target=lambda: answers.put(third.post(call("test_sampling", {"prompt": "x"}))), daemon=True)
        asking.start()
        asked = own.message()
        assert asked["method"] == "sampling/createMessage"
        with At(opened, team.gateways["gateway-2"]) as again:
            assert again.post({"jsonrpc": "2.0", "id": asked["id"], "result": ANSWER}).status_code == 202
        assert "Paris" in answers.get(timeout=CALL_SECONDS).text


def test_a_stream_is_resumed_elsewhere(team, opened):
    with At(opened, team.gateways["gateway-2"]) as second:
        events = second.stream(call("test_sampling", {"prompt": "x"}, number=7))
        asked = events.message()
        assert asked["method"] == "sampling/createMessage" and events.last_id
        events.response.close()
    with At(opened, team.gateways["gateway-3"]) as third:
        assert third.post({"jsonrpc": "2.0", "id": asked["id"], "result": ANSWER}).status_code == 202
        messages = third.get(**{"Last-Event-ID": events.last_id}).rest()
        assert [message.get("id") for message in messages] == [7] and "Paris" in json.dumps(messages[0])
    with At(opened, team.gateways["gateway-2"]) as second:
        assert second.get(**{"Last-Event-ID": events.last_id}).rest() == messages


def test_progress_and_large_answers_pass(team, opened):
    with At(opened, team.gateways["gateway-3"]) as third:
        messages = third.stream(call("test_tool_with_progress", meta={"progressToken": "p"})).rest()
        assert [message.get("method") for message in messages] == ["notifications/progress"] * 3 + [None]
        text = "x" * 1_000_000
        made = third.post(call("notebook_create", {"collection": "pages", "title": "Large", "content": text}))
        assert made.status_code == 200 and "isError" not in made.json()["result"], made.text[:500]
        page = json.loads(made.json()["result"]["content"][0]["text"])["notebook_id"]
        read = third.post(call("notebook_read", {"collection": "pages", "notebook_id": page}))
        content = json.loads(read.json()["result"]["content"][0]["text"])["content"]
        assert len(content) > 60_000 and text.startswith(content)


@pytest.mark.long
def test_a_client_that_leaves(team, opened):
    """Its connection to the other gateway ends with it; the call goes on, and its answer waits."""
    with At(opened, team.gateways["gateway-2"]) as second:
        own = second.get()
        events = second.stream(call("test_sampling", {"prompt": "x"}, number=9))
        asked = events.message()
        own.response.close()
        events.response.close()
    first = team.gateways["gateway-1"]
    first.client.headers.update(bearer(team.key))
    eventually(lambda: first.in_use("streams") == 0, PATIENCE, "streams of a client that has left")
    assert opened.post({"jsonrpc": "2.0", "id": asked["id"], "result": ANSWER}).status_code == 202
    assert "Paris" in json.dumps(opened.get(**{"Last-Event-ID": events.last_id}).rest())


def test_only_its_caller(team, opened):
    """The session's gateway checks the key that came, wherever it came."""
    for name in GATEWAYS:
        with At(opened, team.gateways[name]) as there:
            there.headers |= bearer(team.other_key)
            assert there.post(call("test_simple_text")).status_code == 404
            assert there.delete().status_code == 404
            there.headers |= bearer("ng_aaaaaaaaaaaa_" + "a" * 43)
            assert there.post(call("test_simple_text")).status_code == 401
    assert opened.post(call("test_simple_text")).status_code == 200


def test_nobody_else_forwards(team, opened):
    """The header between gateways has a token that only the database knows; with it a request goes no further."""
    for name in GATEWAYS:
        with At(opened, team.gateways[name]) as there:
            there.headers["Notegate-Forwarded"] = "0" * 64
            assert there.post(call("test_simple_text")).status_code == 421
            assert there.get().status == 421


def test_the_end_is_everywhere(team):
    with contextlib.closing(Session(team.gateways["gateway-1"], headers=bearer(team.key))) as session:
        with At(session, team.gateways["gateway-2"]) as second, At(session, team.gateways["gateway-3"]) as third:
            own = second.get()
            assert third.delete().status_code == 204
            assert own.rest() == []
            for there in (session, second, third):
                assert there.post(call("test_simple_text")).status_code == 404


def test_unknown_sessions(team, opened):
    known = opened.headers["Mcp-Session-Id"]
    for text in ("x", known[:-1], known + "0", "0" * len(known), "-" * len(known), known.upper() + "g"):
        for name in GATEWAYS:
            with At(opened, team.gateways[name]) as there:
                there.headers["Mcp-Session-Id"] = text
                answer = there.post(call("test_simple_text"))
                assert answer.status_code == 404 and "initialize" in answer.text, (text, answer.text)


def test_looking_for_sessions_counts(team, opened):
    """Each unknown session is asked for in the database: it takes from the rate of its caller's key."""
    key = add(team.gateways["gateway-1"].data_dir, "kim", "--rate", "2/min")
    with At(opened, team.gateways["gateway-2"]) as second:
        second.headers |= bearer(key)

        def ask():
            second.headers["Mcp-Session-Id"] = secrets.token_hex(32)
            return second.post(call("test_simple_text"))

        eventually(lambda: ask().status_code != 401, PATIENCE, "the key")
        answers = [ask() for _ in range(4)]
        assert answers[-1].status_code == 429 and int(answers[-1].headers["Retry-After"]) > 0, answers[-1].text
        assert "the caller's key allows 2 calls a minute" in answers[-1].json()["error"]["message"]
        second.headers |= bearer(team.key)
        assert ask().status_code == 404


def test_stateless_state_is_opened_elsewhere(team):
    """What a client of 2026-07-28 keeps for one gateway is good at the others."""
    asking = {"name": "test_input_required_result_request_state", "arguments": {}}

    def ask(name, params):
        body, headers = modern(params)
        answer = team.gateways[name].client.post("/mcp", json=body, headers=headers | bearer(team.key))
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    asked = ask("gateway-1", asking)
    key, = asked["inputRequests"]
    responses = {key: {"action": "accept", "content": {"ok": True}}}
    for name in ("gateway-2", "gateway-3"):
        assert "state-ok" in json.dumps(ask(name, asking | {"inputResponses": responses, "requestState": asked["requestState"]}))


def subscribe(session, uri):
    answer = session.post({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}})
    assert answer.json().get("result") == {}, answer.text


def append(session, page, line):
    answer = session.post(call("notebook_update", {"collection": "pages", "notebook_id": page, "append": line}))
    assert answer.status_code == 200 and "isError" not in answer.json()["result"], answer.text


def new_page(session):
    made = session.post(call("notebook_create", {"collection": "pages", "title": "Page", "content": "begin\n"}))
    return json.loads(made.json()["result"]["content"][0]["text"])["notebook_id"]


def start_again(team, name):
    team.start(name)
    team.wait_up(name)


def test_a_gateway_that_was_killed(team):
    """Another one takes its sessions, with all that they had set; so does the gateway itself, when it was started again."""
    session = Session(team.gateways["gateway-3"], capabilities=ABILITIES, headers=bearer(team.key))
    page, other = new_page(session), new_page(session)
    uris = [f"notegate://shared/pages/{each}" for each in (page, other)]
    for uri in uris:
        subscribe(session, uri)
    gone = session.post({"jsonrpc": "2.0", "id": 1, "method": "resources/unsubscribe", "params": {"uri": uris[1]}})
    assert gone.json()["result"] == {}
    assert session.post({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "error"}}).json()["result"] == {}
    own = session.get()
    append(session, page, "before\n")
    while own.message().get("params", {}).get("uri") != uris[0]:
        pass  # the list changed too, when the pages were made
    team.gateways["gateway-3"].process.kill()
    team.gateways["gateway-3"].process.wait()
    with At(session, team.gateways["gateway-1"]) as first, At(session, team.gateways["gateway-2"]) as second:
        append(second, page, "after\n")
        resumed = first.get(**{"Last-Event-ID": own.last_id})
        told = [resumed.message() for _ in range(4)]
        assert {message["method"] for message in told} >= {"notifications/resources/updated", "notifications/tools/list_changed"}
        assert [message["params"]["uri"] for message in told if "params" in message].count(uris[0]) >= 1
        assert uris[1] not in json.dumps(told)
        # The client can still be asked, and log messages below its level do not come.
        events = first.stream(call("test_sampling", {"prompt": "x"}, number=8))
        asked = events.message()
        assert asked["method"] == "sampling/createMessage"
        assert second.post({"jsonrpc": "2.0", "id": asked["id"], "result": ANSWER}).status_code == 202
        assert "Paris" in json.dumps(events.rest())
        quiet = first.post(call("test_tool_with_logging"))
        assert "notifications/message" not in quiet.text and quiet.status_code == 200
        start_again(team, "gateway-3")
        with At(session, team.gateways["gateway-3"]) as third:
            append(third, page, "again\n")
            with At(session, team.gateways["gateway-2"]) as other_caller:
                other_caller.headers |= bearer(team.other_key)
                assert other_caller.post(call("test_simple_text")).status_code == 404
            assert third.delete().status_code == 204
            for there in (first, second, third):
                assert there.post(call("test_simple_text")).status_code == 404
    session.close()


def test_one_takes_a_session(team):
    """All gateways are asked for the sessions of a dead one at the same time: each session is in one of them afterwards."""
    sessions = [Session(team.gateways["gateway-3"], capabilities=ABILITIES, headers=bearer(team.key)) for _ in range(4)]
    team.gateways["gateway-3"].process.kill()
    team.gateways["gateway-3"].process.wait()
    before = sum(count_sessions(team, name) for name in ("gateway-1", "gateway-2"))
    statuses = queue.Queue()

    def ask(session, name):
        with At(session, team.gateways[name]) as there:
            answer = there.post(call("test_simple_text"))
            statuses.put((answer.status_code, answer.text))

    asking = [threading.Thread(target=ask, args=(session, name), daemon=True)
              for session in sessions for name in ("gateway-1", "gateway-2") for _ in range(3)]
    for thread in asking:
        thread.start()
    told = [statuses.get(timeout=CALL_SECONDS) for _ in asking]
    assert [answer for answer in told if answer[0] != 200] == []
    assert sum(count_sessions(team, name) for name in ("gateway-1", "gateway-2")) == before + len(sessions)
    start_again(team, "gateway-3")
    for session in sessions:
        session.close()


def count_sessions(team, name):
    text = team.gateways[name].client.get("/metrics", headers=bearer(team.key)).text
    return float(re.search(r"^notegate_mcp_sessions (\S+)$", text, re.M).group(1))


@pytest.mark.long
def test_a_gateway_that_is_stopped(team):
    """SIGSTOP: its connections stay. A request that it may have got is answered 503 when its lease is over; the next one
    finds the session elsewhere. When it goes on, it does not speak for the session any more."""
    statuses = []
    while 503 not in statuses and len(statuses) < STOPS:
        statuses.append(stopped_under_a_session(team))
    assert statuses[-1] == 503, statuses


def stopped_under_a_session(team):
    """The status of the first request while it stands still. 200: a heartbeat of it was late on a busy machine, so its lease
    was over before the request came, and the session was taken: the stopped one cannot have answered."""
    session = Session(team.gateways["gateway-3"], headers=bearer(team.key))
    page = new_page(session)
    subscribe(session, f"notegate://shared/pages/{page}")
    process = team.gateways["gateway-3"].process
    with At(session, team.gateways["gateway-1"]) as first, At(session, team.gateways["gateway-2"]) as second:
        assert second.post(call("test_simple_text")).status_code == 200
        own = first.get()
        freeze(process)
        try:
            begun = time.monotonic()
            answer = second.post(call("test_simple_text"))
            assert answer.status_code == 200 or (answer.status_code == 503 and answer.headers["Retry-After"]), answer.text
            assert time.monotonic() - begun < LEASE_SECONDS + 15
            assert own.rest() is not None
            resumed = first.get()
            assert resumed.status == 200
            append(second, page, "while one is stopped\n")
            assert resumed.message()["method"].startswith("notifications/")
        finally:
            process.send_signal(signal.SIGCONT)
        with At(session, team.gateways["gateway-3"]) as third:
            eventually(lambda: third.post(call("test_simple_text")).status_code == 200, PATIENCE,
                       "the session at the gateway that goes on")
            assert third.delete().status_code == 204
            assert resumed.rest() is not None
            assert first.post(call("test_simple_text")).status_code == 404
    session.close()
    return answer.status_code


@pytest.mark.long
def test_a_stream_of_a_gateway_that_was_stopped(team):
    """It ends when its gateway goes on, although nothing is asked there any more: the session is elsewhere."""
    process = team.gateways["gateway-3"].process
    with contextlib.closing(Session(team.gateways["gateway-3"], headers=bearer(team.key))) as session:
        own = session.get()
        with At(session, team.gateways["gateway-2"]) as second:
            freeze(process)
            begun = time.monotonic()
            try:
                # A request before that would wait for the stopped gateway, in its socket.
                eventually(lambda: time.monotonic() - begun > LEASE_SECONDS + 5, PATIENCE, "the end of its lease")
                eventually(lambda: second.post(call("test_simple_text")).status_code == 200, PATIENCE, "the session elsewhere")
            finally:
                process.send_signal(signal.SIGCONT)
            assert own.rest() is not None
            assert second.post(call("test_simple_text")).status_code == 200
            assert second.delete().status_code == 204


def test_an_address_without_a_host(tmp_path, servers):
    """A gateway whose name is not found may be well: its session stays with it."""
    mongo = servers.mongo()
    sets = ["plugins=conformance", "auth=on", "documents=mongo", f"mongo.uri={mongo.uri}", "mongo.timeout=30s"]
    first = Gateway(tmp_path / "first", [*sets, "cluster.advertise=http://gateway.invalid:1"])
    port = free_port()
    second = Gateway(tmp_path / "second", [*sets, f"cluster.advertise=http://127.0.0.1:{port}"], listen=f"127.0.0.1:{port}")
    try:
        key = bearer(add(first.data_dir, "ada", "--role", "admin"))
        for gateway in (first, second):
            eventually(lambda gateway=gateway: gateway.client.get("/v1/tools", headers=key).status_code == 200, PATIENCE, "the key")
        with contextlib.closing(Session(first, headers=key)) as session, At(session, second) as there:
            answer = there.post(call("test_simple_text"))
            assert answer.status_code == 503 and answer.headers["Retry-After"], answer.text
            assert session.post(call("test_simple_text")).status_code == 200
    finally:
        for gateway in (first, second):
            gateway.process.kill()
            gateway.process.wait()
            gateway.client.close()
        give_back(port)


@contextlib.contextmanager
def pair(tmp_path, servers, advertised):
    """A session at the first gateway, and the same at the second; the first one says it is reached at that address."""
    sets = ["plugins=conformance,agent_notebook", "auth=on", "documents=mongo", f"mongo.uri={servers.mongo().uri}",
            "mongo.timeout=30s"]
    port = free_port()
    first = Gateway(tmp_path / "first", [*sets, f"cluster.advertise={advertised}"])
    second = Gateway(tmp_path / "second", [*sets, f"cluster.advertise=http://127.0.0.1:{port}"], listen=f"127.0.0.1:{port}")
    try:
        key = bearer(add(first.data_dir, "ada", "--role", "admin"))
        for gateway in (first, second):
            eventually(lambda gateway=gateway: gateway.client.get("/v1/tools", headers=key).status_code == 200, PATIENCE, "the key")
        with contextlib.closing(Session(first, headers=key)) as session, At(session, second) as there:
            yield session, there
    finally:
        for gateway in (first, second):
            gateway.process.kill()
            gateway.process.wait()
            gateway.client.close()
        give_back(port)


def test_a_session_that_was_taken_from_a_living_gateway(tmp_path, servers):
    """The address of the first gateway refuses connections: the second one takes the session. The first one finds out when
    it is to store something, says so once, and forwards from then on."""
    closed = free_port()
    try:
        with pair(tmp_path, servers, f"http://127.0.0.1:{closed}") as (session, there):
            own = session.get()
            assert there.post(call("test_simple_text")).status_code == 200
            level = {"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "error"}}
            assert "has moved to another gateway" in session.post(level).text
            assert own.rest() == []
            assert session.post(level).json()["result"] == {}
            page = new_page(session)
            uri = f"notegate://shared/pages/{page}"
            subscribe(session, uri)
            resumed = there.get()
            append(session, page, "more\n")
            while resumed.message().get("params", {}).get("uri") != uri:
                pass
            assert "notifications/message" not in session.post(call("test_tool_with_logging")).text
            assert session.post({"jsonrpc": "2.0", "id": 1, "method": "resources/unsubscribe",
                                 "params": {"uri": uri}}).json()["result"] == {}
            assert there.delete().status_code == 204
            assert session.post(level).status_code == 404
    finally:
        give_back(closed)


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers as the server says, and remembers what it was sent."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came = self.headers
        status, headers, body = self.server.answer
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def scripted(tmp_path, servers):
    """A session of a gateway whose address is another server's, at a second gateway; and that server."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with pair(tmp_path, servers, f"http://127.0.0.1:{server.server_port}") as (_, there):
                yield there, server
        finally:
            server.shutdown()


def test_the_head_of_another_gateway(scripted):
    """Also a refusal in the form of events is no stream."""
    there, server = scripted
    for status, headers, body in ((405, {"allow": "POST, PATCH"}, b""),
                                  (429, {"Content-Type": "text/event-stream", "Retry-After": "7"}, b"data: slower\n\n"),
                                  (502, {"Content-Type": "text/html; charset=utf-8"}, b"<p>no</p>"),
                                  (200, {"Content-Type": "application/json", "Mcp-Session-Id": "abc"}, b"{}"),
                                  (200, {"Content-Type": "text/event-stream", "Mcp-Session-Id": "abc"}, b"data: {}\n\n")):
        server.answer = (status, headers, body)
        answer = there.post(call("test_simple_text"))
        comment = b":\n\n"  # of this gateway's stream
        assert answer.status_code == status and answer.content.replace(comment, b"") == body, answer.text
        assert headers.items() <= {name: answer.headers.get(name) for name in headers}.items(), answer.headers


def test_what_the_client_accepts_goes_to_another_gateway(scripted):
    """libcurl has an Accept of its own, which would take events."""
    there, server = scripted
    server.answer = (200, {"Content-Type": "application/json"}, b"{}")
    address = (there.client.base_url.host, there.client.base_url.port)
    for accept, sent in ((None, None), ("", ""), ("application/json", "application/json")):
        with contextlib.closing(http.client.HTTPConnection(*address, timeout=CALL_SECONDS)) as client:
            headers = {name: value for name, value in there.headers.items() if name.lower() != "accept"}
            headers |= {"Content-Type": "application/json"} | ({} if accept is None else {"Accept": accept})
            client.request("POST", "/mcp", json.dumps(call("test_simple_text")), headers)
            assert client.getresponse().status == 200
        assert server.came["Accept"] == sent


@pytest.mark.parametrize("value", ["http://10.0.0.5:8420/mcp", "http://10.0.0.5:8420?a=b", "https://gateway#part",
                                   "http://ada:secret@gateway:8420", "http://", "http://:8420", "gateway:8420",
                                   "http://gateway//"])
def test_an_address_that_is_none(tmp_path, value):
    """At the start and by `check`, whatever the documents are; both name the value and the form."""
    for command in (["serve", "--listen", "127.0.0.1:0"], ["check"]):
        told = subprocess.run([binary(), *command, "--data-dir", str(tmp_path / "data"), "--set",
                               f"cluster.advertise={value}"], capture_output=True, text=True, env=environment(),
                              timeout=PATIENCE)
        text = told.stdout + told.stderr
        assert told.returncode != 0 and f'cluster.advertise is "{value}"; it must be http:// or https://' in text, text
        assert "like http://10.0.0.5:8420" in text


def test_authorities_that_cannot_be_read(tmp_path, servers):
    path = tmp_path / "absent.pem"
    told = subprocess.run([binary(), "serve", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0",
                           "--set", "documents=mongo", "--set", f"mongo.uri={servers.mongo().uri}",
                           "--set", "cluster.advertise=https://127.0.0.1:8420", "--set", f"cluster.authorities={path}"],
                          capture_output=True, text=True, env=environment(), timeout=PATIENCE)
    assert told.returncode != 0 and f'cluster.authorities is "{path}", which cannot be read' in told.stderr, told.stderr


def test_between_gateways_with_tls(tmp_path, servers, authority):  # noqa: F811 (the fixture)
    """A gateway trusts the certificate of another one only if an authority of its own signed it."""
    mongo = servers.mongo()
    ports = [free_port() for _ in range(3)]
    gateways, keys = [], {}
    try:
        for number, port in enumerate(ports):
            sets = ["plugins=conformance", "auth=on", "documents=mongo", f"mongo.uri={mongo.uri}", "mongo.timeout=30s",
                    f"cluster.advertise=https://127.0.0.1:{port}", *authority.sets()]
            sets += [] if number == 2 else [f"cluster.authorities={authority.path}"]
            gateways.append(Gateway(tmp_path / f"data-{number}", sets, listen=f"127.0.0.1:{port}",
                                    verify=authority.context()))
            if number == 0:
                keys = bearer(add(gateways[0].data_dir, "ada", "--role", "admin"))
        for gateway in gateways:
            eventually(lambda gateway=gateway: gateway.client.get("/v1/tools", headers=keys).status_code == 200, PATIENCE, "the key")
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}}
        headers = keys | {"Accept": "application/json, text/event-stream"}
        opened = gateways[0].client.post("/mcp", json=body, headers=headers)
        headers |= {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-11-25"}
        answers = [gateway.client.post("/mcp", json=call("test_simple_text"), headers=headers) for gateway in gateways]
        assert [answer.status_code for answer in answers] == [200, 200, 503], [answer.text for answer in answers]
        assert answers[2].headers["Retry-After"]
    finally:
        codes = [gateway.stop() for gateway in gateways]
        for port in ports:
            give_back(port)
    assert codes == [0, 0, 0]


def test_stored_sessions_are_no_fault_to_verify(tmp_path, servers):
    """Also of a command that does not serve, and so does not know their collection."""
    mongo = servers.mongo()
    sets = ["auth=on", "documents=mongo", f"mongo.uri={mongo.uri}", "mongo.timeout=30s", "plugins=agent_notebook"]
    gateway = Gateway(tmp_path / "serving", [*sets, "cluster.advertise=http://127.0.0.1:1"])
    try:
        key = bearer(add(gateway.data_dir, "ada", "--role", "admin"))
        eventually(lambda: gateway.client.get("/v1/tools", headers=key).status_code == 200, PATIENCE, "the key")
        with contextlib.closing(Session(gateway, headers=key)) as session:
            new_page(session)
            assert gateway.stop() == 0
    finally:
        gateway.process.kill()
        gateway.client.close()
    options = [word for item in sets for word in ("--set", item)]
    done = subprocess.run([binary(), "verify", "--data-dir", str(tmp_path / "cold"), *options], capture_output=True, text=True,
                          env=environment(), timeout=PATIENCE, cwd=tmp_path)
    with pymongo.MongoClient(mongo.uri) as client:
        assert client["aether_notebook"]["mcp_sessions"].count_documents({}) > 0
    assert done.returncode == 0, done.stdout + done.stderr
