# SPDX-License-Identifier: MIT
"""MCP against the real gateway: the official SDK with both protocols over both transports, and raw HTTP where the
headers count."""

import asyncio
import http.client
import json
import os
import pathlib
import re
import subprocess
import threading

import httpx
import pytest
from mcp import Client, MCPError, StdioServerParameters

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("NOTEGATE_TEST_BINARY", str(ROOT / "build" / "dev" / "bin" / "notegate"))
START_TIMEOUT = 120
CALL_TIMEOUT = 120
MODERN = "2026-07-28"
SUPPORTED = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


class Gateway:
    """`notegate serve` on a port and a data directory of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen(
            [BINARY, "serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder)],
            stdout=subprocess.PIPE,
            cwd=folder,
            text=True,
        )
        line = self.first_line()
        found = re.search(r"http://\S+", line)
        assert found, f"the gateway did not start: {line!r}"
        self.url = found.group(0) + "/mcp"

    def first_line(self):
        lines = []
        reader = threading.Thread(target=lambda: lines.append(self.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(START_TIMEOUT)
        return lines[0] if lines else ""

    def stop(self):
        self.process.terminate()
        assert self.process.wait(START_TIMEOUT) == 0
        self.process.stdout.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("gateway"))
    yield running
    running.stop()


@pytest.fixture(params=["http", "stdio"])
def target(request, gateway, tmp_path):
    if request.param == "http":
        return gateway.url
    return StdioServerParameters(command=BINARY, args=["mcp", "--data-dir", str(tmp_path)], cwd=str(tmp_path))


@pytest.fixture(params=["legacy", "auto", MODERN])
def mode(request):
    return request.param


def with_client(target, mode, use):
    async def run():
        async with Client(target, mode=mode, read_timeout_seconds=CALL_TIMEOUT) as client:
            await use(client)

    asyncio.run(run())


# ---- the official client ----


def test_the_era_is_agreed_on(target, mode):
    async def use(client):
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else MODERN)
        if mode != MODERN:  # the pinned mode asks the server nothing
            assert client.server_info.name == "notegate"
            assert client.server_capabilities.tools is not None
            assert client.server_capabilities.resources.subscribe
            assert client.server_capabilities.prompts.list_changed

    with_client(target, mode, use)


def test_tools_are_listed(target, mode):
    async def use(client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        notebook = tools["notebook"]
        assert notebook.description
        assert notebook.input_schema["type"] == "object"
        assert notebook.annotations.read_only_hint is False

    with_client(target, mode, use)


def test_calls_write_and_read(target, mode):
    async def use(client):
        name = f"n-{mode}"
        written = await client.call_tool("notebook", {"mode": "create", "name": name, "newStr": 'one\ntwo "quoted"'})
        assert not written.is_error
        read = await client.call_tool("notebook", {"mode": "read", "name": name})
        assert not read.is_error
        assert read.content[0].text == 'one\ntwo "quoted"'
        assert read.meta["notegate/revision"] == 1

    with_client(target, mode, use)


def test_calls_in_parallel(target, mode):
    async def use(client):
        name = f"p-{mode}"
        await client.call_tool("notebook", {"mode": "create", "name": name})
        answers = await asyncio.gather(
            *(
                client.call_tool("notebook", {"mode": "write", "name": name, "insertLine": -1, "newStr": f"line {i}"})
                for i in range(20)
            )
        )
        assert not any(answer.is_error for answer in answers)
        read = await client.call_tool("notebook", {"mode": "read", "name": name})
        for i in range(20):
            assert f"line {i}" in read.content[0].text.splitlines()

    with_client(target, mode, use)


def test_a_failed_tool_is_a_result(target, mode):
    async def use(client):
        failed = await client.call_tool("notebook", {"mode": "read", "name": "not there"})
        assert failed.is_error
        assert "not there" in failed.content[0].text
        assert failed.meta["notegate/error"]["code"] == "NOT_FOUND"
        assert failed.structured_content is None
        wrong = await client.call_tool("notebook", {"mode": "dance"})
        assert wrong.is_error
        assert wrong.meta["notegate/error"]["code"] == "INVALID_INPUT"
        assert wrong.meta["notegate/error"]["details"]

    with_client(target, mode, use)


def test_an_unknown_tool_is_an_error(target, mode):
    async def use(client):
        with pytest.raises(MCPError) as raised:
            await client.call_tool("notebok", {})
        assert raised.value.code == -32602
        assert "notebook" in raised.value.message

    with_client(target, mode, use)


# ---- the handshake protocol over HTTP ----


def post(gateway, message, headers=None):
    standard = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    content = message if isinstance(message, (str, bytes)) else json.dumps(message)
    return httpx.post(gateway.url, content=content, headers={**standard, **(headers or {})}, timeout=CALL_TIMEOUT)


def request(method, params=None, ident=1):
    message = {"jsonrpc": "2.0", "id": ident, "method": method}
    return message if params is None else {**message, "params": params}


def initialize(gateway, version="2025-11-25", headers=None):
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return post(gateway, request("initialize", params), headers)


@pytest.mark.parametrize("version", SUPPORTED[1:])
def test_every_older_version_is_spoken(gateway, version):
    answer = initialize(gateway, version)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["result"]["protocolVersion"] == version
    assert re.fullmatch(r"[\x21-\x7e]+", answer.headers["mcp-session-id"])
    session = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
    ready = post(gateway, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    assert (ready.status_code, ready.content) == (202, b"")
    assert post(gateway, request("ping"), session).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    batch = post(gateway, [request("ping", ident="a"), request("tools/list", ident=2)], session)
    if version in ("2025-03-26", "2024-11-05"):
        assert {item["id"] for item in batch.json()} == {"a", 2}
    else:
        assert batch.status_code == 400


def test_sessions_end(gateway):
    session = {"Mcp-Session-Id": initialize(gateway).headers["mcp-session-id"]}
    other = initialize(gateway).headers["mcp-session-id"]
    assert session["Mcp-Session-Id"] != other
    as_other = {**session, "X-Notegate-Agent": "somebody"}
    assert post(gateway, request("ping"), as_other).status_code == 404
    assert httpx.delete(gateway.url, headers=as_other, timeout=CALL_TIMEOUT).status_code == 404
    assert httpx.delete(gateway.url, headers=session, timeout=CALL_TIMEOUT).status_code in (200, 204)
    assert post(gateway, request("ping"), session).status_code == 404
    assert post(gateway, request("ping"), {"Mcp-Session-Id": other}).status_code == 200


def test_http_rules(gateway):
    events = {"Accept": "text/event-stream"}
    assert httpx.get(gateway.url, headers=events, timeout=CALL_TIMEOUT).status_code == 400  # of no session
    refused = httpx.get(gateway.url, headers={**events, "MCP-Protocol-Version": MODERN}, timeout=CALL_TIMEOUT)
    assert refused.status_code == 405
    assert "POST" in refused.headers["allow"]
    assert post(gateway, request("ping"), {"Accept": "text/html"}).status_code == 406
    assert post(gateway, request("ping"), {"Content-Type": "text/plain"}).status_code == 415
    refused = post(gateway, request("ping"), {"Origin": "http://evil.example"})
    assert refused.status_code == 403 and refused.json()["jsonrpc"] == "2.0"
    assert refused.json()["error"]["data"]["code"] == "FORBIDDEN"
    assert post(gateway, request("ping"), {"Host": "evil.example"}).status_code >= 400
    assert post(gateway, "{").json()["error"]["code"] == -32700


def test_ids_come_back_as_they_were(gateway):
    answer = post(gateway, '{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}')
    assert '"id":12345678901234567890,' in answer.text


# ---- the stateless protocol over HTTP ----


def modern(gateway, method, params=None, headers=None, meta=None, drop=()):
    body = request(method, {**(params or {}), "_meta": META if meta is None else meta}, ident=77)
    mirrored = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if params and "name" in params:
        mirrored["Mcp-Name"] = params["name"]
    mirrored.update(headers or {})
    answer = post(gateway, body, {name: value for name, value in mirrored.items() if name not in drop})
    assert answer.json()["id"] == 77
    return answer


def test_discover(gateway):
    answer = modern(gateway, "server/discover")
    result = answer.json()["result"]
    assert answer.status_code == 200
    assert result["supportedVersions"] == SUPPORTED
    assert result["resultType"] == "complete"
    assert isinstance(result["ttlMs"], int) and result["ttlMs"] >= 0
    assert result["cacheScope"] in ("public", "private")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "notegate"
    assert "mcp-session-id" not in answer.headers


def test_stateless_results_carry_what_they_must(gateway):
    listed = modern(gateway, "tools/list").json()["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    read = modern(gateway, "tools/call", {"name": "notebook", "arguments": {"mode": "list"}}).json()["result"]
    assert read["resultType"] == "complete"
    assert read["_meta"]["io.modelcontextprotocol/serverInfo"]["version"]


@pytest.mark.parametrize(
    "headers, drop",
    [
        ({"Mcp-Method": "tools/list"}, ()),
        ({"Mcp-Method": "TOOLS/CALL"}, ()),
        ({}, ("Mcp-Method",)),
        ({"Mcp-Name": "other"}, ()),
        ({}, ("Mcp-Name",)),
        ({"Mcp-Name": "=?base64?bm90ZWJvb2s?="}, ()),
        ({"MCP-Protocol-Version": "2025-11-25"}, ()),
        ({}, ("MCP-Protocol-Version",)),
    ],
)
def test_headers_must_say_what_the_body_says(gateway, headers, drop):
    params = {"name": "notebook", "arguments": {"mode": "list"}}
    answer = modern(gateway, "tools/call", params, headers=headers, drop=drop)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("name", ["  notebook  ", "=?base64?bm90ZWJvb2s=?="])
def test_header_values_are_read_as_they_may_be_written(gateway, name):
    # Not with httpx: it refuses to send white space around a value.
    body = request("tools/call", {"name": "notebook", "arguments": {"mode": "list"}, "_meta": META})
    connection = http.client.HTTPConnection(httpx.URL(gateway.url).netloc.decode(), timeout=CALL_TIMEOUT)
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call"}
    connection.request("POST", "/mcp", json.dumps(body), {**headers, "mcp-NAME": name})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert "result" in answer


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_what_meta_must_have(gateway, missing):
    meta = {key: value for key, value in META.items() if not key.endswith(missing)}
    answer = modern(gateway, "server/discover", meta=meta)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


def test_client_info_is_not_needed(gateway):
    meta = {key: value for key, value in META.items() if not key.endswith("clientInfo")}
    assert modern(gateway, "server/discover", meta=meta).status_code == 200


def test_other_versions_get_the_list(gateway):
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "v999"}
    answer = modern(gateway, "server/discover", headers={"MCP-Protocol-Version": "v999"}, meta=meta)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, -32022)
    assert error["data"] == {"supported": SUPPORTED, "requested": "v999"}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"])
def test_methods_that_are_not_there(gateway, method):
    answer = modern(gateway, method)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


# ---- stdio ----


def test_stdio_ends_with_its_input(tmp_path):
    messages = [request("initialize", {"protocolVersion": "2025-11-25"}), request("tools/list", ident=2)]
    done = subprocess.run(
        [BINARY, "mcp", "--data-dir", str(tmp_path)],
        input="".join(json.dumps(message) + "\n" for message in messages),
        stdout=subprocess.PIPE,
        text=True,
        timeout=START_TIMEOUT,
        check=True,
        cwd=tmp_path,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert set(answers) == {1, 2}
    assert answers[2]["result"]["tools"]
