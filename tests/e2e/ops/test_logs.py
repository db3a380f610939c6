# SPDX-License-Identifier: MIT
"""The access log and the audit log: caller, action, outcome; never a secret, and no call waits for them."""

import asyncio
import json
import os
import re
import signal
import subprocess

import httpx
import pytest
from cli_support import environment, notegate
from conftest import SOURCE, binary, eventually
from keys_support import add, key_id, mcp
from mcp import Client, StdioServerParameters
from mcp.types import Implementation

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BOTH = ["log.access=true", "log.audit=true", "log.format=json"]
SECRET = "sesame-sesame-sesame-0123456789"
TIMEOUT = 120
# Heartbeat comment of a silent stream (15 s), on a slow machine.
KEEPALIVE = b":\n\n"


def lines(gateway, where, **wanted):
    """The log's lines of one kind that have these members."""
    found = []
    for line in list(gateway.errors):
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("where") == where and all(entry.get(name) == value for name, value in wanted.items()):
            found.append(entry)
    return found


def line(gateway, where, **wanted):
    found = eventually(lambda: lines(gateway, where, **wanted), what=f"a line of {where} with {wanted}")
    assert len(found) == 1, found
    return found[0]


@pytest.fixture
def gateway(start):
    return start(sets=BOTH)


WRITE = {"mode": "write", "newStr": SECRET}


def test_a_change_is_told_with_who_what_and_revision(gateway):
    headers = {"X-Notegate-Agent": "ann", "X-Notegate-Space": "team", "X-Request-Id": "request-1", "traceparent": TRACE}
    answer = gateway.call("notebook", WRITE, headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["traceparent"] == TRACE
    entry = line(gateway, "audit", request_id="request-1")
    assert entry["tool"] == "notebook" and entry["operation"] == "write" and entry["outcome"] == "ok"
    assert (entry["agent"], entry["space"], entry["role"], entry["mode"]) == ("ann", "team", "admin", "agent")
    assert entry["traceparent"] == TRACE and entry["duration_ms"] > 0 and entry["level"] == "info"
    assert [(c["collection"], c["revision"]) for c in entry["changes"]] == [("notebooks", 1)]
    access = line(gateway, "access", request_id="request-1")
    assert (access["method"], access["path"], access["status"]) == ("POST", "/v1/tools/notebook", 200)
    assert access["remote"] == "127.0.0.1" and access["agent"] == "ann" and access["traceparent"] == TRACE
    assert access["bytes_in"] == int(answer.request.headers["content-length"])
    assert access["bytes_out"] == len(answer.content)
    assert access["user_agent"].startswith("python-httpx/")


def test_files_are_told(gateway):
    path = gateway.data_dir / "files" / "a.txt"
    answer = gateway.call("fileEditor", {"command": "create", "path": str(path), "file_text": SECRET},
                          {"X-Request-Id": "file-1"})
    assert answer.status_code == 200, answer.text
    entry = line(gateway, "audit", request_id="file-1")
    assert entry["operation"] == "create" and entry["outcome"] == "ok"
    assert [c["collection"] for c in entry["changes"]] == ["files"]
    assert "a.txt" in entry["changes"][0]["id"]


def test_reading_is_no_audit_line_but_refusals_and_failures_are(gateway):
    assert gateway.call("notebook", {"mode": "list"}, {"X-Request-Id": "read"}).status_code == 200
    refused = gateway.call("notebook", WRITE, {"X-Notegate-Mode": "ask", "X-Request-Id": "refused"})
    assert refused.status_code == 403
    failed = gateway.call("fileEditor", {"command": "str_replace", "path": str(gateway.data_dir / "files" / "none"),
                                         "old_str": "a", "new_str": "b"}, {"X-Request-Id": "failed"})
    assert failed.status_code >= 400
    entry = line(gateway, "audit", request_id="refused")
    assert entry["outcome"] == "MODE_FORBIDDEN" and entry["mode"] == "ask" and "changes" not in entry
    assert line(gateway, "audit", request_id="failed")["outcome"] == failed.json()["code"]
    assert line(gateway, "access", request_id="read")["status"] == 200
    assert not lines(gateway, "audit", request_id="read")


def test_an_unknown_prompt_is_told(gateway):
    """It may be one that the key does not reach."""
    key = add(gateway.data_dir, "ann")
    answer = mcp(gateway, key, "prompts/get", {"name": "no_such_guide"}, X_Request_Id="prompt")
    assert "error" in answer.json(), answer.text
    entry = line(gateway, "audit", request_id="prompt")
    assert (entry["agent"], entry["key"], entry["count"]) == ("ann", key_id(key), 1)
    assert (entry["method"], entry["target"], entry["outcome"]) == ("prompts/get", "no_such_guide", "NOT_FOUND")
    assert "tool" not in entry and "changes" not in entry
    assert entry["duration_ms"] < 1000 * TIMEOUT, "since the machine was started"


def test_the_query_is_not_told(gateway):
    gateway.client.get("/v1/tools", params={"token": SECRET, "format": "mcp"}, headers={"X-Request-Id": "query"})
    assert line(gateway, "access", request_id="query")["path"] == "/v1/tools"


def test_the_bytes_of_a_stream_and_of_an_answer_without_a_body(gateway):
    assert gateway.call("notebook", WRITE).status_code == 200
    with gateway.client.stream("GET", "/v1/events", params={"since": 0},
                               headers={"X-Request-Id": "stream"}) as answer:
        got = b""
        for part in answer.iter_bytes():
            got += part
            if b"event: change" in got and got.endswith(b"\n\n"):
                break
    entry = line(gateway, "access", request_id="stream")
    assert (entry["bytes_out"] - len(got)) % len(KEEPALIVE) == 0 and entry["bytes_out"] >= len(got)
    assert entry["status"] == 200 and entry["ended"] == "early"
    assert gateway.client.head("/v1/tools", headers={"X-Request-Id": "head"}).status_code == 200
    assert line(gateway, "access", request_id="head")["bytes_out"] == 0


def test_bad_requests_are_told_with_who_sent_them(gateway):
    with gateway.connect() as raw:
        raw.request("GET /v1/tools HTTP/1.1", ["Content-Length: 1", "Transfer-Encoding: chunked",
                                               "X-Request-Id: smuggled", "User-Agent: odd"])
        assert raw.answer().status == 400
    entry = line(gateway, "access", request_id="smuggled")
    assert (entry["remote"], entry["user_agent"], entry["status"]) == ("127.0.0.1", "odd", 400)


def test_a_key_in_the_path_is_not_told(start):
    gateway = start(sets=BOTH + ["auth=on"])
    key = f"ng_0123456789ab_{'s3cretS3CRET' * 3}"
    for number, name in enumerate((key, key[:30], f"a{key}")):
        gateway.client.delete(f"/v1/keys/{name}", headers={"X-Request-Id": f"key-{number}"})
        assert line(gateway, "access", request_id=f"key-{number}")["path"].endswith("ng_...")
    eventually(lambda: lines(gateway, "audit", event="refused"))
    # Nor where an admin may ask, and takes the key's text for its id.
    made = notegate("key", "add", "root", "--role", "admin", "--data-dir", gateway.data_dir, "--json")
    headers = {"Authorization": f"Bearer {json.loads(made.stdout)['key']}", "X-Request-Id": "admin"}
    assert gateway.client.delete(f"/v1/keys/{key}", headers=headers).status_code == 404
    entry = line(gateway, "audit", request_id="admin")
    assert (entry["event"], entry["outcome"], entry["target"]) == ("key_revoke", "NOT_FOUND", "/v1/keys/ng_...")
    assert not gateway.logged("s3cret"), gateway.errors


def test_callers_that_are_turned_away(start):
    gateway = start(sets=BOTH + ["auth=on"])
    answer = gateway.client.get("/v1/tools", headers={"Authorization": f"Bearer ng_{SECRET}", "X-Request-Id": "who"})
    assert answer.status_code == 401
    entry = line(gateway, "audit", request_id="who")
    assert (entry["event"], entry["outcome"], entry["remote"]) == ("refused", "UNAUTHENTICATED", "127.0.0.1")
    assert entry["target"] == "/v1/tools" and "agent" not in entry
    assert "agent" not in line(gateway, "access", request_id="who")


def test_whose_good_key_was_refused_is_told(start):
    gateway = start(sets=BOTH)
    made = json.loads(notegate("key", "add", "ann", "--space", "team", "--mode", "edit", "--data-dir", gateway.data_dir,
                               "--json").stdout)
    headers = {"Authorization": f"Bearer {made['key']}"}
    asked = [("space", 403, {"X-Notegate-Space": "other"}, "FORBIDDEN"),
             ("mode", 403, {"X-Notegate-Mode": "agent"}, "MODE_FORBIDDEN"),
             ("agent", 400, {"X-Notegate-Agent": "bob"}, "INVALID_INPUT")]
    for name, status, more, outcome in asked:
        assert gateway.call("notebook", WRITE, headers | more | {"X-Request-Id": name}).status_code == status
        entry = line(gateway, "audit", request_id=name)
        assert (entry["event"], entry["outcome"]) == ("refused", outcome)
        assert (entry["agent"], entry["key"]) == ("ann", made["id"])
        access = line(gateway, "access", request_id=name)
        assert (access["agent"], access["key"]) == ("ann", made["id"])


def test_changes_of_keys_that_fail_are_told(gateway):
    for method, path, body, event, outcome in (("POST", "/v1/keys", {"agent": "a", "role": "king"}, "key_add", "INVALID_INPUT"),
                                               ("DELETE", "/v1/keys/none", None, "key_revoke", "NOT_FOUND")):
        gateway.client.request(method, path, json=body, headers={"X-Request-Id": event})
        entry = line(gateway, "audit", request_id=event)
        assert (entry["event"], entry["outcome"], entry["target"]) == (event, outcome, path)


@pytest.mark.parametrize(("header", "value"), [("Host", "evil.example"), ("Origin", "http://evil.example")])
def test_wrong_hosts_and_origins_are_told(start, header, value):
    gateway = start(sets=BOTH)
    answer = gateway.client.get("/v1/tools", headers={header: value, "X-Request-Id": header})
    assert answer.status_code == 403
    entry = line(gateway, "audit", request_id=header)
    assert (entry["event"], entry["outcome"], entry["target"]) == ("refused", "FORBIDDEN", "/v1/tools")
    assert gateway.logged("refused a caller from 127.0.0.1", f"The {header} header names", "evil.example")


def test_the_trace_in_a_message_of_mcp(gateway):
    meta = {"traceparent": TRACE, "tracestate": "vendor=1", "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": "notebook", "arguments": WRITE, "_meta": meta}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
               "Mcp-Method": "tools/call", "Mcp-Name": "notebook", "X-Request-Id": "mcp-trace",
               "traceparent": TRACE.replace("b7ad", "0000")}
    answer = gateway.client.post("/mcp", json=message, headers=headers)
    assert answer.status_code == 200 and "error" not in answer.text, answer.text
    told = line(gateway, "audit", request_id="mcp-trace")
    assert told["traceparent"] == TRACE and told["client"] == "test"
    # One that is none is not believed.
    message["params"]["_meta"]["traceparent"] = "evil\nline"
    headers["X-Request-Id"] = "mcp-no-trace"
    del headers["traceparent"]
    assert gateway.client.post("/mcp", json=message, headers=headers).status_code == 200
    assert "traceparent" not in line(gateway, "audit", request_id="mcp-no-trace")


def test_keys_are_told_but_never_shown(start, tmp_path):
    gateway = start(sets=BOTH + ["log.level=debug"])
    made = notegate("key", "add", "ann", "--data-dir", gateway.data_dir, "--json")
    assert made.returncode == 0, made.stderr
    found = re.findall(r"ng_[A-Za-z0-9_-]{20,}", made.stdout)
    assert found, made.stdout
    key = found[0]
    added = line(gateway, "audit", event="key_add")
    answer = gateway.call("notebook", WRITE, {"Authorization": f"Bearer {key}", "X-Request-Id": "with-key"})
    assert answer.status_code == 200, answer.text
    entry = line(gateway, "audit", request_id="with-key")
    assert (entry["agent"], entry["key"], entry["role"]) == ("ann", added["target"], "writer")
    assert line(gateway, "access", request_id="with-key")["key"] == added["target"]
    wrong = key[:-4] + ("aaaa" if key[-4:] != "aaaa" else "bbbb")
    for bearer in (f"Bearer {wrong}", f"Basic {key}", key, f"Bearer {key}x"):
        headers = {"Authorization": bearer}
        assert gateway.client.get(f"/v1/tools?key={key}", headers=headers).status_code in (400, 401)
    revoked = notegate("key", "revoke", added["target"], "--force", "--data-dir", gateway.data_dir)
    assert revoked.returncode == 0, revoked.stderr
    assert line(gateway, "audit", event="key_revoke")["target"] == added["target"]
    assert gateway.call("notebook", WRITE, {"Authorization": f"Bearer {key}"}).status_code == 401
    assert gateway.stop() == 0
    told = "".join(gateway.errors)
    secret = key[len("ng_") + len(added["target"]):].strip("_")
    assert len(secret) > 16 and secret not in told and wrong not in told


def test_a_reload_in_mode_ask_is_told(start):
    gateway = start(sets=BOTH)
    made = json.loads(notegate("key", "add", "root", "--role", "admin", "--data-dir", gateway.data_dir, "--json").stdout)
    headers = {"Authorization": f"Bearer {made['key']}", "X-Request-Id": "asking", "X-Notegate-Mode": "ask"}
    answer = gateway.client.post("/v1/reload", headers=headers)
    assert answer.status_code == 403 and answer.json()["code"] == "MODE_FORBIDDEN"
    entry = line(gateway, "audit", request_id="asking")
    assert (entry["event"], entry["outcome"], entry["agent"]) == ("refused", "MODE_FORBIDDEN", "root")
    del headers["X-Notegate-Mode"]
    headers["X-Request-Id"] = "doing"
    assert gateway.client.post("/v1/reload", headers=headers).status_code == 200
    assert line(gateway, "audit", request_id="doing")["outcome"] == "ok"


def test_no_secret_is_in_any_log(start):
    gateway = start(sets=BOTH + ["log.level=debug"])
    key = f"ng_{SECRET}"
    secret_headers = [{"Authorization": f"Bearer {key}"}, {"Cookie": f"session={key}"}, {"X-Api-Key": key},
                      {"Mcp-Session-Id": key}, {"Idempotency-Key": key}, {"Proxy-Authorization": f"Basic {key}"}]
    for headers in secret_headers:
        gateway.call("notebook", WRITE, headers)
        gateway.client.post(f"/mcp?key={key}", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
        gateway.client.get(f"/v1/tools?access_token={key}", headers=headers)
    gateway.call("notebook", {"mode": "no such mode", "newStr": key})
    gateway.call("notebook", {"mode": "write", "newStr": key, "unknown": key})
    gateway.client.get(f"/{'a' * 10}?{key}")
    with gateway.connect() as raw:
        raw.request(f"GET /v1/tools?k={key} HTTP/1.1", [f"Authorization: Bearer {key}", f"Bad Header: {key}"])
        raw.answer()
    eventually(lambda: len(lines(gateway, "access")) >= 3 * len(secret_headers), what="their lines")
    assert gateway.stop() == 0
    told = "".join(gateway.errors)
    assert SECRET not in told and "audit" in told and "access" in told


def test_a_line_tells_address_and_client(gateway):
    """The User-Agent, or the name that an MCP client gives itself; bounded, whatever it holds."""
    assert gateway.call("notebook", WRITE, {"X-Request-Id": "rest", "User-Agent": "made/1 \x1b[31m" + "x" * 300}).status_code in (200, 400)
    assert gateway.call("notebook", WRITE, {"X-Request-Id": "plain", "User-Agent": "made/1 (" + "x" * 300 + ")"}).status_code == 200
    entry = line(gateway, "audit", request_id="plain")
    assert entry["remote"] == "127.0.0.1" and entry["client"] == ("made/1 (" + "x" * 300)[:128]
    headers = {"Accept": "application/json, text/event-stream"}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "an editor\n2026", "version": "1"}}}
    opened = gateway.client.post("/mcp", json=hello, headers=headers)
    headers.update({"Mcp-Session-Id": opened.headers["mcp-session-id"], "X-Request-Id": "in-session"})
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "notebook", "arguments": WRITE}}
    assert gateway.client.post("/mcp", json=call, headers=headers).status_code == 200
    assert line(gateway, "audit", request_id="in-session")["client"] == "an editor\n2026"


def test_it_is_on_once_there_is_a_key(start):
    gateway = start(sets=["log.format=json"])
    assert gateway.call("notebook", WRITE, {"X-Request-Id": "keyless"}).status_code == 200
    made = notegate("key", "add", "ann", "--data-dir", gateway.data_dir, "--json")
    key = json.loads(made.stdout)["key"]
    headers = {"Authorization": f"Bearer {key}", "X-Request-Id": "keyed"}
    assert gateway.call("notebook", WRITE, headers).status_code == 200
    assert line(gateway, "audit", request_id="keyed")["agent"] == "ann"
    assert line(gateway, "audit", event="key_add")["remote"] == "unix"
    assert not lines(gateway, "audit", request_id="keyless")
    quiet = start(sets=["log.format=json", "log.audit=false"], name="quiet")
    made = notegate("key", "add", "ann", "--data-dir", quiet.data_dir, "--json")
    headers["Authorization"] = "Bearer " + json.loads(made.stdout)["key"]
    assert quiet.call("notebook", WRITE, headers).status_code == 200
    assert quiet.stop() == 0 and not lines(quiet, "audit", request_id="keyed")


def test_the_switches_follow_a_reload(start, tmp_path):
    file = tmp_path / "notegate.yaml"
    file.write_text("log:\n  format: json\n")
    gateway = start(args=["--config", str(file)])
    assert gateway.call("notebook", WRITE).status_code == 200
    file.write_text("log:\n  format: json\n  access: true\n  audit: true\n")
    report = gateway.reload()
    assert {c["key"]: c["holds"] for c in report["changes"]} == {"log.access": True, "log.audit": True}
    assert gateway.call("notebook", WRITE, {"X-Request-Id": "on"}).status_code == 200
    line(gateway, "access", request_id="on")
    line(gateway, "audit", request_id="on")
    assert len(lines(gateway, "audit", tool="notebook")) == 1
    file.write_text("log:\n  format: json\n")
    gateway.process.send_signal(signal.SIGHUP)
    eventually(lambda: lines(gateway, "serve", message="reload: log.audit: the new value is in effect")[1:],
               what="the second reload")
    assert gateway.call("notebook", WRITE, {"X-Request-Id": "off"}).status_code == 200
    assert gateway.stop() == 0
    assert not lines(gateway, "access", request_id="off") and not lines(gateway, "audit", request_id="off")


def test_text_is_readable(start):
    gateway = start(sets=["log.access=true", "log.audit=true", "log.format=text"])
    headers = {"User-Agent": 'odd "client" 1', "X-Request-Id": "text-1"}
    assert gateway.call("notebook", WRITE, headers).status_code == 200
    told = eventually(lambda: gateway.logged("info access: POST /v1/tools/notebook 200 remote=127.0.0.1", "text-1"))[0]
    assert 'user_agent="odd \\"client\\" 1"' in told and " agent=local " in told
    told = eventually(lambda: gateway.logged("info audit: notebook ok tool=notebook operation=write", "text-1"))[0]
    assert "changes=notebooks:" in told and "@1" in told


def test_the_command_line_and_stdio(tmp_path):
    env = environment(NOTEGATE_LOG_AUDIT="true", NOTEGATE_LOG_FORMAT="json")
    done = notegate("call", "notebook", json.dumps(WRITE), "--data-dir", tmp_path / "a", "--agent", "bob", env=env)
    assert done.returncode == 0, done.stderr
    entries = [json.loads(told) for told in done.stderr.splitlines() if '"audit"' in told]
    assert [(e["tool"], e["agent"], e["outcome"]) for e in entries] == [("notebook", "bob", "ok")]
    assert entries[0]["client"].startswith("notegate/")

    log = tmp_path / "stdio.log"

    async def run():
        with open(log, "w") as errors:
            from mcp.client.stdio import stdio_client
            server = StdioServerParameters(command=binary(), cwd=str(tmp_path), env={**os.environ, **env}, args=[
                "mcp", "--data-dir", str(tmp_path / "b"), "--agent", "eve"])
            async with Client(stdio_client(server, errlog=errors), read_timeout_seconds=TIMEOUT,
                              client_info=Implementation(name="an editor", version="1")) as client:
                assert not (await client.call_tool("notebook", WRITE)).is_error

    asyncio.run(run())
    entries = [json.loads(told) for told in log.read_text().splitlines() if '"audit"' in told]
    assert [(e["tool"], e["agent"], e["operation"], e["client"]) for e in entries] == [
        ("notebook", "eve", "write", "an editor")]


def stdio_calls(name, data):
    """`notegate mcp`: a write in a session that `initialize` opens, one of the stateless protocol."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
    modern = {f"io.modelcontextprotocol/{member}": value for member, value in (
        ("protocolVersion", "2026-07-28"), ("clientCapabilities", {}), ("clientInfo", {"name": f"{name} 2", "version": "2"}))}
    call = {"name": "notebook", "arguments": WRITE}
    messages = [{"id": 1, "method": "tools/call", "params": {**call, "_meta": modern}},
                {"id": 2, "method": "initialize", "params": params},
                {"method": "notifications/initialized"},
                {"id": 3, "method": "tools/call", "params": call}]
    process = subprocess.Popen([binary(), "mcp", "--data-dir", str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, cwd=SOURCE,
                               env=environment(NOTEGATE_LOG_AUDIT="true", NOTEGATE_LOG_FORMAT="json"))
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        if "id" in message:
            answer = json.loads(process.stdout.readline())
            assert "error" not in answer and not answer["result"].get("isError"), answer
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return [json.loads(told) for told in errors.splitlines() if '"audit"' in told]


def test_a_line_tells_the_client_behind_stdio(tmp_path, gateway):
    """The name of `initialize` and of `_meta`, in the stdio server's own lines and in those of the gateway that it relays to."""
    told = stdio_calls("alone", tmp_path / "alone")
    assert [entry["client"] for entry in told] == ["alone 2", "alone"]
    assert stdio_calls("relayed", gateway.data_dir) == []
    for name in ("relayed", "relayed 2"):
        assert line(gateway, "audit", client=name)["remote"] == "unix"
    done = notegate("call", "notebook", json.dumps(WRITE), "--data-dir", gateway.data_dir, "--agent", "cli")
    assert done.returncode == 0, done.stderr
    assert line(gateway, "audit", agent="cli")["client"].startswith("notegate/")


def test_a_log_that_nobody_reads_stops_nobody(tmp_path):
    """stderr is a pipe that is full: calls go on, lines are dropped and counted, and the gateway ends."""
    read, written = os.pipe()
    command = [binary(), "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")]
    for item in BOTH:
        command += ["--set", item]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=written, text=True, env=environment(),
                               cwd=SOURCE)
    os.close(written)
    try:
        url = process.stdout.readline().split(" listening on ")[1].strip()
        with httpx.Client(base_url=url, timeout=TIMEOUT, trust_env=False) as client:
            def dropped():
                for _ in range(500):
                    headers = {"X-Request-Id": "x" * 128, "User-Agent": "y" * 200}
                    assert client.get("/healthz", headers=headers).status_code == 200
                assert client.post("/v1/tools/notebook", json=WRITE).status_code == 200
                text = client.get("/metrics").text
                return [row for row in text.splitlines() if row.startswith("notegate_log_dropped_total ")
                        and not row.endswith(" 0")]

            eventually(dropped, seconds=TIMEOUT, what="a dropped line")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(read)


def test_text_lines_cannot_be_forged(start):
    gateway = start(sets=["log.format=text", "log.access=true", "log.audit=true"])
    name = "x@1 agent=root role=admin\u009b31m\u202e"
    assert gateway.call("notebook", {"mode": "create", "name": name, "newStr": "text"}).status_code == 200
    path = "/v1/tools/x%20agent=root%20status=200%20%C2%9B31m"
    assert gateway.client.get(path).status_code == 404
    line = eventually(lambda: gateway.logged(" access: GET ", "31m"), what="the access line")[0]
    shown = '"/v1/tools/x agent=root status=200 \\u009b31m"'
    assert f" access: GET {shown} 404 " in line and f" path={shown} " in line
    line = eventually(lambda: gateway.logged(" audit: notebook ok ", "changes="), what="the audit line")[0]
    assert "\u009b" not in line and "\u202e" not in line
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)  # quoted text is no member
    assert re.findall(r" agent=(\S+)", plain) == ["local"] and "agent=root" not in plain
    assert "31m" in line and "31m" not in plain
