# SPDX-License-Identifier: MIT
"""What clients write into the envelope of a message, over every transport: null for "not given", a byte order mark, half a
surrogate pair, the id of a session that has ended. A refusal carries the id of its request wherever that can be told."""

import json
import subprocess
import threading

import httpx
import pytest
from conftest import Gateway, binary, environment
from mcp_support import CALL_SECONDS, EVENTS, FIXTURES, HANDSHAKE, MODERN, Session

VERSION, CAPABILITIES, LEVEL = (f"io.modelcontextprotocol/{name}" for name in (
    "protocolVersion", "clientCapabilities", "logLevel"))
BODY = 64 * 1024  # limits.body
SETS = (*FIXTURES, f"limits.body={BODY}")
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": HANDSHAKE, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("envelope") / "data", SETS)
    yield running
    assert running.stop() == 0


class Http:
    """Messages as texts by POST."""

    def __init__(self, server, headers, initialize):
        self.client = httpx.Client(base_url=server.url, timeout=CALL_SECONDS, trust_env=False)
        self.headers = {"Accept": EVENTS, "Content-Type": "application/json", **headers}
        if initialize:
            opened = self.client.post("/mcp", json=INITIALIZE, headers=self.headers)
            self.headers |= {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": HANDSHAKE}

    def ask(self, text, **headers):
        answer = self.client.post("/mcp", content=text, headers=self.headers | headers)
        assert answer.headers["content-type"] == "application/json", answer.text
        return answer.json()

    def close(self):
        self.client.close()


class Lines:
    """Messages as lines: `notegate mcp` with a data directory of its own, or beside a gateway that serves."""

    def __init__(self, data_dir, sets, initialize):
        words = [word for one in sets for word in ("--set", one)]
        self.process = subprocess.Popen([binary(), "mcp", "--data-dir", str(data_dir), *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment())
        if initialize:
            self.ask(json.dumps(INITIALIZE))

    def next(self):
        timer = threading.Timer(CALL_SECONDS, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        assert line, "no answer"
        return json.loads(line)

    def send(self, text):
        self.process.stdin.write((text if isinstance(text, bytes) else text.encode()) + b"\n")
        self.process.stdin.flush()

    def ask(self, text, **_):
        self.send(text)
        while True:
            message = self.next()
            if "method" not in message or "id" in message:
                return message

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(CALL_SECONDS) == 0
        self.process.stdout.close()


class Way:
    """A transport and a version; what differs between the versions is added."""

    def __init__(self, wire, modern, http):
        self.wire, self.modern, self.http = wire, modern, http

    def message(self, method, params, number=7, **members):
        if self.modern:
            meta = {VERSION: MODERN, CAPABILITIES: {}, **((params or {}).get("_meta") or {})}
            params = {**(params or {}), "_meta": meta}
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params, **members}

    def send(self, text, method="", name=""):
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} if self.modern and self.http else {}
        if headers and name:
            headers["Mcp-Name"] = name
        return self.wire.ask(text, **headers)

    def ask(self, method, params, **members):
        return self.send(json.dumps(self.message(method, params, **members)), method, (params or {}).get("name"))


WAYS = {"http 2025": (True, False), "http 2026": (True, True), "stdio 2025": (False, False), "stdio 2026": (False, True),
        "relay 2025": (False, False), "relay 2026": (False, True)}


@pytest.fixture(params=WAYS)
def way(request, server, tmp_path):
    http, modern = WAYS[request.param]
    if http:
        wire = Http(server, {}, not modern)
    elif request.param.startswith("relay"):
        wire = Lines(server.data_dir, (), not modern)
    else:
        wire = Lines(tmp_path / "data", SETS, not modern)
    yield Way(wire, modern, http)
    wire.close()


# ---- null is "not given" ----

PROMPT = {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}}
TOOL = {"name": "test_simple_text"}
NULLS = (  # method, params, what the result has; "early": not in the version in which _meta must be there
    ("tools/list", {"cursor": None}, "tools", False),
    ("tools/list", {"cursor": None, "surprise": None}, "tools", False),
    ("resources/list", {"cursor": None}, "resources", False),
    ("prompts/list", {"cursor": None}, "prompts", False),
    ("resources/templates/list", {"cursor": None}, "resourceTemplates", False),
    ("tools/list", {"_meta": {"progressToken": None, LEVEL: None, "traceparent": None}}, "tools", False),
    ("tools/call", {**TOOL, "arguments": None}, "content", False),
    ("tools/call", {**TOOL, "arguments": None, "task": None, "inputResponses": None, "requestState": None}, "content", False),
    ("prompts/get", {"name": "test_simple_prompt", "arguments": None}, "messages", False),
    ("prompts/get", {"name": "test_simple_prompt", "arguments": {"surprise": None}}, "messages", False),
    ("prompts/get", {**PROMPT, "arguments": {**PROMPT["arguments"], "arg3": None}}, "messages", False),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": PROMPT["name"], "uri": None}, "context": None,
                             "argument": {"name": "arg1", "value": ""}}, "completion", False),
    ("tools/list", None, "tools", True),
    ("tools/list", {"_meta": None}, "tools", True),
    ("ping", None, None, True),
)


@pytest.mark.parametrize("method,params,member,early", NULLS)
def test_null_is_not_given(way, method, params, member, early):
    if early and way.modern:
        return
    for members in ({}, {"result": None, "error": None}):
        answer = way.ask(method, params, **members)
        assert answer["id"] == 7 and "error" not in answer, answer
        assert member is None or member in answer["result"], answer


def test_a_prompt_does_not_get_its_nulls(way):
    answer = way.ask("prompts/get", {**PROMPT, "arguments": {**PROMPT["arguments"], "other": None}})
    without = way.ask("prompts/get", PROMPT)
    assert answer == without and "'a'" in json.dumps(answer)


@pytest.mark.parametrize("method,params,code", (
    ("tools/call", {"name": None}, -32602), ("tools/call", {**TOOL, "arguments": []}, -32602),
    ("prompts/get", {**PROMPT, "arguments": {"arg1": "a", "arg2": None}}, -32602)))
def test_what_must_be_given_is_still_missed(way, method, params, code):
    assert way.ask(method, params)["error"]["code"] == code


def test_an_id_is_never_null(way):
    answer = way.send(json.dumps(way.message("tools/list", {}, None)), "tools/list")
    assert answer["error"]["code"] == -32600 and answer["id"] is None


def test_an_answer_of_the_client_may_have_nulls(tmp_path):
    lines = Lines(tmp_path / "data", SETS, True)
    for number, answer in enumerate((
            {"result": {"action": "accept", "content": {"username": "u", "email": "e"}}, "error": None, "method": None},
            {"result": None, "error": {"code": -1, "message": "no"}}, {"result": None}), 1):
        lines.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "test_elicitation", "arguments": {"message": "who?"}}}))
        asked = lines.next()
        assert asked["method"] == "elicitation/create", asked
        lines.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}))
        told = lines.next()
        assert told["id"] == number and "result" in told, told
        text = json.dumps(told["result"])
        assert ("accept", "decline", "the form that MCP defines")[number - 1] in text, text
    lines.close()


# ---- texts ----

MARK = "\ufeff"
HALF = "\\ud83d"


def test_a_byte_order_mark_is_skipped(way):
    text = json.dumps(way.message("tools/list", {}))
    assert "tools" in way.send((MARK + text).encode(), "tools/list")["result"]
    assert "error" in way.send((MARK + MARK + text).encode(), "tools/list")


def test_half_a_surrogate_pair_becomes_one_character(way):
    name = "n" + "".join(c for c in str(id(way)))
    create = {"mode": "create", "name": name, "newStr": "a@b"}
    text = json.dumps(way.message("tools/call", {"name": "notebook", "arguments": create})).replace("@", HALF)
    assert way.send(text, "tools/call", "notebook")["result"].get("isError") is None
    read = way.ask("tools/call", {"name": "notebook", "arguments": {"mode": "read", "name": name}})
    assert "a\ufffdb" in json.dumps(read, ensure_ascii=False)


# {M}: the method and params of a message of the version, up to its arguments.
CUT = '{"jsonrpc":"2.0",%s"method":"tools/call","params":{"name":"notebook",%s"arguments":{"mode":"list"%s}}%s}'
FAULTS = (  # what stands before, within the arguments, behind; the id of the answer
    ('"id":7,', f',"{HALF}":1', "", 7),
    ("", f',"{HALF}":1', ',"id":7', 7),
    ('"id":"x",', ',"mode":"list"', "", "x"),
    ("", ',"mode":"list"', ',"id":"x"', "x"),
    ('"id":7,', ',"a":"\\x"', "", 7),
    ('"id":7,', ',"a":nul', "", 7),
    ('"id":7,', ',"a":"\udcff"', "", 7),
    ('"id":7,', ',"a":\x00', "", 7),
    ('"id":7,', ',"a":' + "[" * 400 + "]" * 400, "", 7),
    ('"id":7,"id":8,', "", "", None),
    ("", ',"a":nul', ',"id":7', None),
    ('"id":[7],', ',"a":nul', "", None),
    ('"id":7,"result":{},', ',"a":nul', "", None),
)


@pytest.mark.parametrize("before,within,behind,number", FAULTS)
def test_a_text_that_is_refused_is_answered_with_its_id(way, before, within, behind, number):
    meta = f'"_meta":{json.dumps({VERSION: MODERN, CAPABILITIES: {}})},' if way.modern else ""
    text = CUT % (before, meta, within, behind)
    answer = way.send(text.encode(errors="surrogateescape"), "tools/call", "notebook")
    assert answer["id"] == number and answer["error"]["code"] == -32700, answer


LONG = "é b" * 5000
LONG_PARAMS = (
    (LONG, {}), ("tools/call", {"name": LONG, "arguments": {}}), ("tools/list", {"cursor": LONG}),
    ("prompts/get", {"name": LONG, "arguments": {}}),
    ("resources/read", {"uri": LONG}), ("resources/read", {"uri": "notegate://shared/notebook/" + "x" * 15000}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": LONG}, "argument": {"name": LONG, "value": LONG}}),
    ("tasks/get", {"taskId": LONG}))


# Headers repeat the names in the modern version over HTTP: what is as long is refused before.
@pytest.mark.parametrize("way", [name for name in WAYS if name != "http 2026"], indirect=True)
def test_errors_of_the_protocol_are_short(way):
    for method, params in LONG_PARAMS:
        answer = way.ask(method, params)
        assert answer["error"]["message"] and len(json.dumps(answer, ensure_ascii=False).encode()) < 4096, answer


@pytest.mark.parametrize("way", ["stdio 2026"], indirect=True)
def test_a_version_that_is_not_known_is_told_short(way):
    text = json.dumps(way.message("tools/list", {"_meta": {}})).replace(MODERN, "v" * 15000)
    error = way.send(text)["error"]
    assert error["data"]["requested"] == "v" * len(error["data"]["requested"]) and len(error["data"]["requested"]) < 100


def test_a_line_that_is_too_long_is_answered_with_its_id(tmp_path):
    lines = Lines(tmp_path / "data", SETS, False)
    for length in (BODY, 3 * BODY):
        answer = lines.ask(json.dumps({"jsonrpc": "2.0", "id": length, "method": "ping", "params": {"x": "x" * length}}))
        assert answer["id"] == length and answer["error"]["code"] == 413, answer
    assert lines.ask(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}))["result"] == {}
    lines.close()


# ---- sessions ----


def test_initialize_opens_a_session_whatever_id_it_carries(server):
    ended, other = Session(server), Session(server)
    assert ended.client.delete("/mcp", headers=ended.headers).status_code == 204
    old = ended.headers["Mcp-Session-Id"]
    assert ended.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status_code == 404
    assert ended.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 404
    assert ended.post([INITIALIZE]).status_code == 404
    for number in (old, other.headers["Mcp-Session-Id"], "never-there"):
        answer = ended.client.post("/mcp", json=INITIALIZE, headers=ended.headers | {"Mcp-Session-Id": number})
        assert answer.status_code == 200 and answer.headers["mcp-session-id"] != number, answer.text
        ended.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        assert ended.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).json()["result"] == {}
    assert other.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status_code == 200
    ended.close()
    other.close()


# ---- REST and the command line ----

LISTED = (  # arguments of a call that needs none
    b"null", b" null ", b"{}", MARK.encode() + b"{}", MARK.encode() + b"null")


@pytest.mark.parametrize("body", LISTED)
def test_no_arguments_over_rest(server, body):
    headers = {"Content-Type": "application/json"}
    answer = server.client.post("/v1/tools/test_simple_text", content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    missing = server.client.post("/v1/tools/notebook", content=b"null", headers=headers).json()
    assert missing["code"] == "INVALID_INPUT" and "`mode`" in missing["message"]


@pytest.mark.parametrize("body", LISTED)
@pytest.mark.parametrize("serves", (True, False))
def test_no_arguments_on_the_command_line(server, tmp_path, serves, body):
    data, sets = (server.data_dir, ()) if serves else (tmp_path / "data", ("--set", FIXTURES[0]))
    done = subprocess.run([binary(), "call", "test_simple_text", "-", "--data-dir", str(data), *sets], input=body,
                          capture_output=True, timeout=CALL_SECONDS, env=environment(), check=False)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_half_a_surrogate_pair_over_rest(server):
    headers = {"Content-Type": "application/json"}
    body = '{"mode":"create","name":"half","newStr":"a%sb"}' % HALF
    assert server.client.post("/v1/tools/notebook", content=body, headers=headers).status_code == 200
    assert "a\ufffdb" in server.call("notebook", {"mode": "read", "name": "half"}).json()["result"]
    refused = server.client.post("/v1/tools/notebook", content='{"mode":"list","%s":1}' % HALF, headers=headers)
    assert refused.status_code == 400 and refused.json()["code"] == "INVALID_JSON" and HALF in refused.json()["message"]


@pytest.mark.parametrize("serves", (True, False))
def test_half_a_surrogate_pair_on_the_command_line(server, tmp_path, serves):
    data = server.data_dir if serves else tmp_path / "data"

    def call(arguments):
        return subprocess.run([binary(), "call", "notebook", "-", "--data-dir", str(data)], input=arguments, text=True,
                              capture_output=True, timeout=CALL_SECONDS, env=environment(), check=False)

    name = f"half-{serves}"
    assert call('{"mode":"create","name":"%s","newStr":"a%sb"}' % (name, HALF)).returncode == 0
    assert "a\ufffdb" in call('{"mode":"read","name":"%s"}' % name).stdout
    assert HALF in call('{"mode":"list","%s":1}' % HALF).stderr
