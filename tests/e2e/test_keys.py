# SPDX-License-Identifier: MIT
"""Bearer keys against the real gateway: who gets in, what each key may do on every face, and that what was added or
revoked stays so."""

import concurrent.futures
import json
import re
import signal
import subprocess
import time

import httpx
import pytest

from conftest import Gateway, binary, environment, eventually
from sse_support import Stream

KEY = re.compile(r"^ng_[a-z2-7]{12}_[A-Za-z0-9]{43}$")
PLUGINS = "plugins=notebook,file_editor"
MODERN = "2026-07-28"
READ = {"mode": "list"}
WRITE = {"mode": "create", "name": "n", "newStr": "text"}


def notegate(data_dir, *words, plugins="notebook,file_editor"):
    """One command on a data directory."""
    return subprocess.run([binary(), *map(str, words), "--data-dir", str(data_dir)], capture_output=True, text=True,
                          timeout=60, env=environment() | {"NOTEGATE_PLUGINS": plugins}, cwd="/", check=False)


def add(data_dir, name, *options):
    """A new key, and its id."""
    done = notegate(data_dir, "key", "add", name, *options)
    assert done.returncode == 0, done.stderr
    key = done.stdout.strip()
    assert KEY.match(key), done.stdout
    return key


def key_id(key):
    return key.split("_")[1]


def bearer(key, **headers):
    return {"Authorization": f"Bearer {key}"} | {name.replace("_", "-"): value for name, value in headers.items()}


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


def mcp_call(gateway, key, tool, arguments, **headers):
    """The code of a call over MCP: "ok" or that of its error."""
    answer = mcp(gateway, key, "tools/call", {"name": tool, "arguments": arguments}, **headers)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    return result["_meta"]["notegate/error"]["code"] if result.get("isError") else "ok"


def rest_call(gateway, key, tool, arguments, **headers):
    answer = gateway.call(tool, arguments, bearer(key, **headers))
    return "ok" if answer.status_code == 200 else answer.json()["code"]


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """A gateway with one key for each role and mode, and an admin."""
    gateway = Gateway(tmp_path_factory.mktemp("team") / "data", sets=[PLUGINS])
    gateway.keys = {(role, mode): add(gateway.data_dir, f"{role}-{mode}", "--role", role, "--mode", mode)
                    for role in ("reader", "writer", "admin") for mode in ("ask", "edit", "agent")}
    gateway.admin = gateway.keys["admin", "agent"]
    yield gateway
    assert gateway.stop() == 0, "".join(gateway.errors)
    log = "".join(gateway.errors)
    assert not re.search(r"ng_[a-z2-7]{12}_", log), "a key is in the log"


# ---- roles and modes


def expected(role, mode, effect):
    if effect == "reads":
        return "ok"
    if role == "reader":
        return "FORBIDDEN"
    return "MODE_FORBIDDEN" if mode == "ask" else "ok"


@pytest.mark.parametrize("call", [rest_call, mcp_call])
@pytest.mark.parametrize("effect,arguments", [("reads", READ), ("writes", WRITE)])
@pytest.mark.parametrize("mode", ["ask", "edit", "agent"])
@pytest.mark.parametrize("role", ["reader", "writer", "admin"])
def test_role_mode_and_effect(team, role, mode, effect, arguments, call):
    assert call(team, team.keys[role, mode], "notebook", arguments) == expected(role, mode, effect)


@pytest.mark.parametrize("call", [rest_call, mcp_call])
@pytest.mark.parametrize("mode,sent,effect,code", [
    ("agent", "ask", WRITE, "MODE_FORBIDDEN"), ("agent", "edit", WRITE, "ok"), ("edit", "ask", READ, "ok"),
    ("edit", "edit", WRITE, "ok"), ("ask", "ask", READ, "ok")])
def test_the_mode_can_be_lowered(team, mode, sent, effect, code, call):
    assert call(team, team.keys["writer", mode], "notebook", effect, X_Notegate_Mode=sent) == code


@pytest.mark.parametrize("mode,sent", [("ask", "edit"), ("ask", "agent"), ("edit", "agent")])
def test_the_mode_cannot_be_raised(team, mode, sent):
    key = team.keys["writer", mode]
    body = refused(team.call("notebook", READ, bearer(key, X_Notegate_Mode=sent)), 403, "MODE_FORBIDDEN")
    assert sent in body["message"] and mode in body["message"]
    answer = mcp(team, key, "tools/list", X_Notegate_Mode=sent)
    assert answer.status_code == 403 and answer.json()["jsonrpc"] == "2.0"


def test_the_agent_is_the_keys(team):
    key = team.keys["writer", "agent"]
    body = refused(team.call("notebook", READ, bearer(key, X_Notegate_Agent="ada")), 400, "INVALID_INPUT")
    assert "writer-agent" in body["message"]


# ---- 401


def authorization(key):
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    unknown = "ng_" + "a" * 12 + key[15:]
    return {"missing": None, "empty": "", "wrong": f"Bearer {wrong}", "unknown": f"Bearer {unknown}",
            "short": f"Bearer {key[:-1]}", "long": f"Bearer {key}A", "other": "Bearer abc",
            "two": f"Bearer {key} {key}", "basic": "Basic YTpi", "bare": key, "no scheme": f"Bearer{key}",
            "bearer alone": "Bearer", "prefix": "Bearer ng_", "upper": f"Bearer {key.upper()}"}


@pytest.mark.parametrize("kind", sorted(authorization("ng_" + "b" * 56)))
def test_what_is_no_key(team, kind):
    value = authorization(team.admin)[kind]
    headers = {} if value is None else {"Authorization": value}
    for answer in (team.call("notebook", READ, headers), team.client.get("/v1/nothing", headers=headers),
                   team.client.get("/metrics", headers=headers), team.client.get("/openapi.json", headers=headers),
                   team.client.get("/v1/keys", headers=headers), team.client.get("/v1/events", headers=headers)):
        refused(answer, 401, "UNAUTHENTICATED")
        challenge = answer.headers["www-authenticate"]
        assert challenge.startswith('Bearer realm="notegate"')
        sent = kind not in ("missing", "empty", "basic", "bare", "no scheme", "bearer alone")
        assert ('error="invalid_token"' in challenge) == sent
        assert team.admin not in answer.text
    over_mcp = team.client.post("/mcp", json={}, headers=headers)
    assert over_mcp.status_code == 401 and "www-authenticate" in over_mcp.headers
    assert over_mcp.json()["jsonrpc"] == "2.0"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR  "])
def test_the_scheme_is_not_case_sensitive(team, scheme):
    assert team.client.get("/v1/tools", headers={"Authorization": f"{scheme} {team.admin}"}).status_code == 200


def test_open_without_a_key(team):
    for path in ("/healthz", "/readyz", "/docs", "/docs/docs.js", "/docs/docs.css"):
        assert team.client.get(path).status_code == 200, path
    assert set(team.client.get("/readyz").json()) == {"status"}
    for path in ("/v1/tools", "/v1/tools/notebook", "/openapi.json", "/metrics", "/v1/events", "/mcp", "/", "/x"):
        assert team.client.get(path).status_code == 401, path


def test_refusals_are_logged_without_the_key(team):
    wrong = team.admin[:-1] + ("A" if team.admin[-1] != "A" else "B")
    team.client.get("/v1/tools", headers=bearer(wrong))
    eventually(lambda: any("refused" in line and "127.0.0.1" in line for line in team.errors), what="the log line")
    assert wrong[15:] not in "".join(team.errors)


# ---- lists


def tool_names(gateway, key, **headers):
    """What each face lists; they agree."""
    all_headers = bearer(key, **headers)
    mcp_names = [tool["name"] for tool in mcp(gateway, key, "tools/list", **headers).json()["result"]["tools"]]
    rest = [tool["name"] for tool in gateway.client.get("/v1/tools", headers=all_headers).json()["tools"]]
    openai = [tool["function"]["name"]
              for tool in gateway.client.get("/v1/tools?format=openai", headers=all_headers).json()]
    document = gateway.client.get("/openapi.json", headers=all_headers).json()
    paths = [path.removeprefix("/v1/tools/") for path in document["paths"]
             if path.startswith("/v1/tools/") and "{" not in path]
    assert mcp_names == rest == openai == paths
    return mcp_names, document


def test_lists_show_what_is_allowed(team):
    only = add(team.data_dir, "only", "--tool", "fileEditor")
    names, document = tool_names(team, only)
    assert names == ["fileEditor"] and "/v1/keys" not in document["paths"]
    assert not [name for name in document["components"]["schemas"] if name.startswith("notebook")]
    assert sorted(tool_names(team, team.keys["reader", "ask"])[0]) == ["fileEditor", "notebook"]
    assert "/v1/keys" in tool_names(team, team.admin)[1]["paths"]
    refused(team.client.get("/v1/tools/notebook", headers=bearer(only)), 404, "UNKNOWN_TOOL")
    body = refused(team.call("notebook", READ, bearer(only)), 403, "FORBIDDEN")
    assert "fileEditor" in body["message"] and "notebook" in body["message"]
    assert mcp_call(team, only, "notebook", READ) == "FORBIDDEN"
    assert rest_call(team, only, "notebok", READ) == "UNKNOWN_TOOL"
    assert "notebook" not in team.call("notebok", READ, bearer(only)).text.replace("notebok", "")


# ---- spaces


def test_spaces(team):
    ada = add(team.data_dir, "ada", "--space", "~ada", "--space", "team")
    bob = add(team.data_dir, "bob")
    eve = add(team.data_dir, "eve", "--space", "team")

    def write(key, text, **headers):
        return team.call("notebook", {"mode": "create", "name": "plan", "newStr": text}, bearer(key, **headers))

    def read(key, **headers):
        answer = team.call("notebook", {"mode": "read", "name": "plan"}, bearer(key, **headers))
        return answer.json()["result"] if answer.status_code == 200 else answer.json()["code"]

    assert write(ada, "of ada").status_code == 200
    assert write(bob, "of bob").status_code == 200
    assert write(eve, "of the team").status_code == 200  # has no space of its own: its first one
    assert "of ada" in read(ada) and "of bob" in read(bob)
    assert "of the team" in read(ada, X_Notegate_Space="team") and "of the team" in read(eve)
    for key, space, has in ((bob, "team", "shared"), (bob, "~ada", "~bob"), (eve, "~eve", "team"),
                            (ada, "shared", "~ada, team")):
        body = refused(write(key, "x", X_Notegate_Space=space), 403, "FORBIDDEN")
        assert space in body["message"] and has in body["message"]
        assert mcp(team, key, "tools/list", X_Notegate_Space=space).status_code == 403
    assert "of ada" in read(team.admin, X_Notegate_Space="~ada")  # admin: all spaces
    done = notegate(team.data_dir, "key", "add", "eve", "--space", "~ada")
    assert done.returncode == 2 and "another agent's own" in done.stderr


def test_roots_belong_to_spaces(start, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "s").mkdir()
    (tmp_path / "t" / "f").write_text("team file\n")
    (tmp_path / "s" / "f").write_text("shared file\n")
    gateway = start(sets=[PLUGINS, f"roots=team:{tmp_path}/t,{tmp_path}/s"])
    member = add(gateway.data_dir, "member", "--space", "team", "--role", "reader")
    other = add(gateway.data_dir, "other")

    def view(key, folder):
        return rest_call(gateway, key, "fileEditor", {"command": "view", "path": f"{tmp_path}/{folder}/f"})

    assert view(member, "t") == "ok" and view(member, "s") == "PATH_OUTSIDE_ROOTS"
    assert view(other, "s") == "ok" and view(other, "t") == "PATH_OUTSIDE_ROOTS"
    admin = add(gateway.data_dir, "root", "--role", "admin")
    assert view(admin, "s") == view(admin, "t") == "ok"


# ---- from the first key to the last


def test_the_first_key_closes_and_the_last_opens(start):
    gateway = start(sets=[PLUGINS])
    assert gateway.call("notebook", READ).status_code == 200
    none = gateway.client.get("/v1/tools", headers=bearer("ng_" + "a" * 12 + "_" + "b" * 43))
    assert "has none" in refused(none, 401, "UNAUTHENTICATED")["message"]
    # What other clients insist on sending is not ours.
    assert gateway.client.get("/v1/tools", headers={"Authorization": "Bearer dummy"}).status_code == 200
    key = add(gateway.data_dir, "ada")
    refused(gateway.call("notebook", READ), 401, "UNAUTHENTICATED")
    assert rest_call(gateway, key, "notebook", READ) == "ok"
    done = notegate(gateway.data_dir, "key", "revoke", "ada")
    assert done.returncode == 0 and "1 key revoked" in done.stdout
    body = refused(gateway.call("notebook", READ, bearer(key)), 401, "UNAUTHENTICATED")
    assert "none" in body["message"] or "revoked" in body["message"]
    assert gateway.call("notebook", READ).status_code == 200


def test_revoking_holds_at_once_for_sessions_and_streams(start):
    gateway = start(sets=[PLUGINS])
    keep = add(gateway.data_dir, "keep", "--role", "admin")
    key = add(gateway.data_dir, "ada")
    accept = {"Accept": "application/json, text/event-stream"}
    opened = gateway.client.post("/mcp", headers=bearer(key) | accept, json={
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    assert opened.status_code == 200, opened.text
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert gateway.client.post("/mcp", json=ping, headers=bearer(key) | accept | session).status_code == 200
    # A session is its key's: another key, also of the same agent, does not get in.
    second = add(gateway.data_dir, "ada")
    assert gateway.client.post("/mcp", json=ping, headers=bearer(second) | accept | session).status_code == 404
    with Stream(f"{gateway.url}/v1/events", headers=bearer(key)) as stream:
        gone = gateway.client.delete(f"/v1/keys/{key_id(key)}", headers=bearer(keep))
        assert gone.status_code == 200 and gone.json()["state"] == "revoked"
        assert gateway.client.post("/mcp", json=ping, headers=bearer(key) | accept | session).status_code == 401
        body = refused(gateway.call("notebook", READ, bearer(key)), 401, "UNAUTHENTICATED")
        assert "revoked" in body["message"]
        stream.thread.join(20)
        assert not stream.thread.is_alive(), "the stream of a revoked key goes on"
    assert rest_call(gateway, second, "notebook", READ) == "ok"


def test_revoking_ends_what_waits_for_the_client(start):
    gateway = start(sets=["plugins=+conformance"])
    keep, key = add(gateway.data_dir, "keep", "--role", "admin"), add(gateway.data_dir, "ada")
    headers = bearer(key) | {"Accept": "application/json, text/event-stream"}
    opened = gateway.client.post("/mcp", headers=headers, json={
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"sampling": {}}, "clientInfo": {"name": "t", "version": "1"}}})
    headers |= {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "test_sampling", "arguments": {"prompt": "x"}}}
    with Stream(f"{gateway.url}/mcp", headers=headers, wait_open=False) as stream, \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        # Without events this answer cannot end with its stream: it waits for the model's.
        waits = pool.submit(gateway.client.post, "/mcp", json=call, headers=headers | {"Accept": "application/json"})
        assert stream.events.get(timeout=20).data == ""  # the first one only has an id
        assert stream.events.get(timeout=20).json()["method"] == "sampling/createMessage"
        assert gateway.client.delete(f"/v1/keys/{key_id(key)}", headers=bearer(keep)).status_code == 200
        answer = waits.result(20)
        assert answer.json()["result"]["isError"], answer.text


def test_expiry(start):
    gateway = start(sets=[PLUGINS])
    admin = add(gateway.data_dir, "root", "--role", "admin")
    made = gateway.client.post("/v1/keys", headers=bearer(admin), json={"agent": "brief", "expires": "1500ms"})
    assert made.status_code == 201, made.text
    key = made.json()["key"]
    assert rest_call(gateway, key, "notebook", READ) == "ok"
    eventually(lambda: gateway.call("notebook", READ, bearer(key)).status_code == 401, what="the expiry")
    answer = gateway.call("notebook", READ, bearer(key))
    assert "expired" in refused(answer, 401, "UNAUTHENTICATED")["message"]
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    listed = {item["agent"]: item["state"]
              for item in gateway.client.get("/v1/keys?all=true", headers=bearer(admin)).json()["keys"]}
    assert listed == {"root": "live", "brief": "expired"}
    # The expired key is the only one left that was not revoked: the gateway does not open by itself.
    assert gateway.client.delete(f"/v1/keys/{key_id(admin)}", headers=bearer(admin)).status_code == 200
    refused(gateway.call("notebook", READ), 401, "UNAUTHENTICATED")
    assert notegate(gateway.data_dir, "key", "revoke", "brief").returncode == 0
    assert gateway.call("notebook", READ).status_code == 200


# ---- rates


def test_a_new_key_says_all_that_it_may(tmp_path):
    done = notegate(tmp_path / "data", "key", "add", "ada", "--rate", "30/min", "--tool", "notebook", "--space", "team")
    assert "role writer, mode agent, spaces team, tools notebook, rate 0.5/s, expires never" in done.stderr
    assert "rate" not in notegate(tmp_path / "data", "key", "add", "bob").stderr

def test_rate(start):
    gateway = start(sets=[PLUGINS])
    key = add(gateway.data_dir, "ada", "--rate", "2/min")
    free = add(gateway.data_dir, "bob")
    answers = [gateway.call("notebook", READ, bearer(key)) for _ in range(5)]
    limited = [answer for answer in answers if answer.status_code != 200]
    assert limited, "five calls at once are over 2 a minute"
    for answer in limited:
        assert "2 calls a minute" in refused(answer, 429, "RATE_LIMITED")["message"]
        assert 1 <= int(answer.headers["retry-after"]) <= 30
        assert answer.json()["hint"] == f"Try again in {answer.headers['retry-after']} s"
    over_mcp = mcp(gateway, key, "tools/call", {"name": "notebook", "arguments": READ})
    assert over_mcp.status_code == 429 and "error" in over_mcp.json(), over_mcp.text
    assert int(over_mcp.headers["retry-after"]) >= 1
    assert rest_call(gateway, free, "notebook", READ) == "ok"
    metrics = gateway.client.get("/metrics", headers=bearer(free)).text
    assert re.search(r'notegate_calls_total{tool="notebook",outcome="RATE_LIMITED"} [1-9]', metrics)
    quick = add(gateway.data_dir, "carl", "--rate", "5/s")
    statuses = [gateway.call("notebook", READ, bearer(quick)).status_code for _ in range(10)]
    assert statuses == [200] * 10, "bursts of twice the rate"
    eventually(lambda: gateway.call("notebook", READ, bearer(quick)).status_code == 200, what="a call after the burst")


# ---- REST


def test_keys_over_rest(team):
    admin = bearer(team.admin)
    made = team.client.post("/v1/keys", headers=admin, json={
        "agent": "zoe", "role": "reader", "mode": "edit", "spaces": ["team", "~zoe"], "tools": ["notebook"],
        "rate": "30/min", "expires": "2099-01-31"})
    assert made.status_code == 201, made.text
    assert made.headers.get("cache-control", "no-store") == "no-store"
    body = made.json()
    key = body.pop("key")
    assert KEY.match(key) and body["id"] == key_id(key)
    assert body | {"created": ""} == {
        "id": key_id(key), "agent": "zoe", "role": "reader", "mode": "edit", "spaces": ["~zoe", "team"],
        "tools": ["notebook"], "rate": 0.5, "created": "", "expires": "2099-02-01T00:00:00Z", "state": "live"}
    assert team.client.get(f"/v1/keys/{body['id']}", headers=admin).json() == body
    listed = team.client.get("/v1/keys", headers=admin)
    assert body in listed.json()["keys"] and "hash" not in listed.text and key not in listed.text
    assert team.client.delete(f"/v1/keys/{body['id']}", headers=admin).json()["state"] == "revoked"
    assert team.client.delete(f"/v1/keys/{body['id']}", headers=admin).status_code == 200
    assert body["id"] not in [item["id"] for item in team.client.get("/v1/keys", headers=admin).json()["keys"]]
    near = body["id"][:-1] + ("a" if body["id"][-1] != "a" else "b")
    gone = refused(team.client.delete(f"/v1/keys/{near}", headers=admin), 404, "NOT_FOUND")
    assert body["id"] in gone["hint"]


@pytest.mark.parametrize("body,says", [
    ({}, "agent name"), ({"agent": "a b"}, "agent name"), ({"agent": 1}, "agent"), ({"agent": "a" * 65}, "agent"),
    ([], "object"), ({"agent": "a", "role": "god"}, "reader, writer or admin"), ({"agent": "a", "mode": "x"}, "mode"),
    ({"agent": "a", "spaces": "x"}, "spaces"), ({"agent": "a", "spaces": ["a/b"]}, "space"),
    ({"agent": "a", "spaces": ["~b"]}, "another agent"), ({"agent": "a", "spaces": ["~:gateway"]}, "space"),
    ({"agent": "a", "tools": []}, "tools"), ({"agent": "a", "tools": ["notebok"]}, "notebok"),
    ({"agent": "a", "rate": 0}, "rate"), ({"agent": "a", "rate": "fast"}, "rate"), ({"agent": "a", "rate": -1}, "rate"),
    ({"agent": "a", "expires": "soon"}, "expiry"), ({"agent": "a", "expires": "2001-01-01"}, "past"),
    ({"agent": "a", "expires": "2027-02-30"}, "expiry"), ({"agent": "a", "hash": "00"}, "no part of a key")])
def test_bad_requests_for_a_key(team, body, says):
    answer = team.client.post("/v1/keys", headers=bearer(team.admin), json=body)
    assert says in refused(answer, 400, "INVALID_INPUT")["message"]


def test_keys_are_for_admins(team):
    for role in ("reader", "writer"):
        headers = bearer(team.keys[role, "agent"])
        for answer in (team.client.get("/v1/keys", headers=headers),
                       team.client.post("/v1/keys", headers=headers, json={"agent": "x"}),
                       team.client.delete(f"/v1/keys/{key_id(team.admin)}", headers=headers)):
            body = refused(answer, 403, "FORBIDDEN")
            assert "admin" in body["message"] and role in body["message"]
    asking = bearer(team.keys["admin", "ask"])
    assert team.client.get("/v1/keys", headers=asking).status_code == 200
    refused(team.client.post("/v1/keys", headers=asking, json={"agent": "x"}), 403, "MODE_FORBIDDEN")
    editing = bearer(team.keys["admin", "edit"])
    refused(team.client.post("/v1/keys", headers=editing, json={"agent": "x"}), 403, "MODE_FORBIDDEN")
    listed = add(team.data_dir, "narrow", "--role", "admin", "--tool", "notebook")
    refused(team.client.post("/v1/keys", headers=bearer(listed), json={"agent": "x"}), 403, "FORBIDDEN")
    assert team.client.put("/v1/keys", headers=asking).status_code == 405


def test_while_no_key_exists_the_own_user_is_admin(start):
    gateway = start(sets=[PLUGINS])
    made = gateway.client.post("/v1/keys", json={"agent": "root", "role": "admin"})
    assert made.status_code == 201
    refused(gateway.client.post("/v1/keys", json={"agent": "x"}), 401, "UNAUTHENTICATED")
    assert gateway.client.get("/v1/keys", headers=bearer(made.json()["key"])).status_code == 200


# ---- events, metrics


def test_events_of_keys_are_for_admins_and_hold_no_secret(start):
    gateway = start(sets=[PLUGINS])
    admin = add(gateway.data_dir, "root", "--role", "admin")
    writer = add(gateway.data_dir, "ada")
    url = f"{gateway.url}/v1/events"
    with Stream(url, {"since": 0}, bearer(admin)) as all_events, Stream(url, {"since": 0}, bearer(writer)) as some:
        third = add(gateway.data_dir, "third")
        notegate(gateway.data_dir, "key", "revoke", "third")
        assert rest_call(gateway, writer, "notebook", WRITE) == "ok"
        seen = []
        while not seen or seen[-1].json()["collection"] != "notebooks":
            seen.append(all_events.events.get(timeout=20))
        actions = [(event.json()["collection"], event.json()["id"], event.json()["action"]) for event in seen]
        assert ("keys", key_id(third), "created") in actions and ("keys", key_id(third), "revoked") in actions
        first = some.events.get(timeout=20)
        assert first.json()["collection"] == "notebooks" and first.json()["agent"] == "ada"
        assert first.json()["space"] == "~ada"
        for event in seen:
            assert "hash" not in event.data and third[16:] not in event.data
    metrics = gateway.client.get("/metrics", headers=bearer(writer)).text
    assert "notegate_calls_total" in metrics and "ng_" not in metrics


# ---- a public address


def test_a_public_address_needs_a_key_for_good(tmp_path):
    data_dir = tmp_path / "data"
    refused_start = subprocess.run([binary(), "serve", "--data-dir", str(data_dir), "--listen", "0.0.0.0:0"],
                                   capture_output=True, text=True, timeout=60, env=environment(), check=False)
    assert refused_start.returncode == 1 and "notegate key add" in refused_start.stderr
    key = add(data_dir, "ada")
    gateway = Gateway(data_dir, sets=[PLUGINS, "allowed_hosts=notes.example.com"], listen="0.0.0.0:0")
    try:
        url = f"http://127.0.0.1:{gateway.port}"
        assert gateway.logged("0.0.0.0", "without TLS"), "keys would cross the network in clear"
        checked = notegate(tmp_path / "other", "check", "--listen", "0.0.0.0:0")
        assert checked.returncode == 1 and "no key exists" in checked.stdout
        add(tmp_path / "other", "ada")
        checked = notegate(tmp_path / "other", "check", "--listen", "0.0.0.0:0")
        assert checked.returncode == 0 and "0.0.0.0:0; warning: " in checked.stdout and "TLS" in checked.stdout
        eventually(lambda: gateway.logged(f"try: curl -s http://notes.example.com:{gateway.port}/", "$NOTEGATE_KEY"),
                   what="a call to try, by the name that clients use")
        assert httpx.get(url + "/v1/tools", headers=bearer(key), trust_env=False).status_code == 200
        assert notegate(data_dir, "key", "revoke", "ada").returncode == 0
        assert httpx.get(url + "/v1/tools", headers=bearer(key), trust_env=False).status_code == 401
        assert httpx.get(url + "/v1/tools", trust_env=False).status_code == 401
    finally:
        assert gateway.stop() == 0


@pytest.mark.parametrize("auth,status", [("on", 401), ("off", 200), ("auto", 401)])
def test_auth_with_a_key(start, tmp_path, auth, status):
    key = add(tmp_path / "data", "ada", "--role", "reader")
    gateway = start(sets=[PLUGINS, f"auth={auth}"])
    assert gateway.call("notebook", READ).status_code == status
    # A key that is sent counts, also where none is needed.
    assert rest_call(gateway, key, "notebook", READ) == "ok"
    assert rest_call(gateway, key, "notebook", WRITE) == "FORBIDDEN"
    refused(gateway.call("notebook", READ, bearer(key[:-1] + "!")), 401, "UNAUTHENTICATED")


def test_the_unix_socket_is_the_owner(team):
    with team.connect_local() as local:
        local.request("GET /v1/keys HTTP/1.1")
        assert local.answer().status == 200
        local.request("GET /v1/tools HTTP/1.1", ["X-Notegate-Agent: bob"])
        assert local.answer().status == 200
        local.request("GET /v1/keys HTTP/1.1", [f"Authorization: Bearer {team.keys['reader', 'ask']}"])
        assert local.answer().status == 403


# ---- the command


def table(done):
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["ID", "AGENT", "ROLE", "MODE", "SPACES", "TOOLS", "RATE", "EXPIRES", "STATE"]
    return [line.split() for line in lines[1:]]


@pytest.mark.parametrize("running", [False, True])
def test_the_command(start, tmp_path, running):
    data_dir = tmp_path / "data"
    if running:
        start(sets=[PLUGINS])
    first = notegate(data_dir, "key", "add", "ada", "--role", "reader", "--mode", "ask", "--space", "team",
                     "--tool", "notebook", "--rate", "5/s", "--expires", "2099-01-01T00:00:00Z")
    assert first.returncode == 0 and KEY.match(first.stdout.strip()) and first.stdout.count("\n") == 1
    assert "only this once" in first.stderr and first.stdout.strip() not in first.stderr
    second = json.loads(notegate(data_dir, "key", "add", "ada", "--rate", "6/min", "--json").stdout)
    assert KEY.match(second["key"]) and second["spaces"] == ["~ada", "shared"]
    bob = key_id(add(data_dir, "bob"))
    rows = table(notegate(data_dir, "key", "list"))
    assert rows == [
        [key_id(first.stdout.strip()), "ada", "reader", "ask", "team", "notebook", "5/s", "2099-01-01T00:00:00Z",
         "live"],
        [second["id"], "ada", "writer", "agent", "~ada,shared", "all", "6/min", "never", "live"],
        [bob, "bob", "writer", "agent", "~bob,shared", "all", "-", "never", "live"]]
    wrong = notegate(data_dir, "key", "revoke", "bop")
    assert wrong.returncode == 1 and 'did you mean "bob"' in wrong.stderr
    both = notegate(data_dir, "key", "revoke", "ada")
    assert both.returncode == 0 and "2 keys revoked" in both.stdout
    again = notegate(data_dir, "key", "revoke", "ada")
    assert again.returncode == 1 and "revoked already" in again.stderr
    one = notegate(data_dir, "key", "revoke", bob, "--json")
    assert [item["state"] for item in json.loads(one.stdout)["revoked"]] == ["revoked"]
    assert table(notegate(data_dir, "key", "list")) == []
    assert [row[-1] for row in table(notegate(data_dir, "key", "list", "--all"))] == ["revoked"] * 3
    assert json.loads(notegate(data_dir, "key", "list", "--json").stdout) == {"keys": []}


@pytest.mark.parametrize("running", [False, True])
def test_a_key_is_revoked_by_its_text(start, tmp_path, running):
    if running:
        start(sets=[PLUGINS])
    keep = add(tmp_path / "data", "ada")
    leaked = add(tmp_path / "data", "ada")
    done = notegate(tmp_path / "data", "key", "revoke", leaked)
    assert done.returncode == 0 and leaked not in done.stdout + done.stderr
    assert [row[0] for row in table(notegate(tmp_path / "data", "key", "list"))] == [key_id(keep)]
    unknown = notegate(tmp_path / "data", "key", "revoke", f"ng_{'a' * 12}_secret")
    assert unknown.returncode == 1 and "secret" not in unknown.stderr


@pytest.mark.parametrize("running", [False, True])
def test_the_command_reads_many_keys(start, tmp_path, running):
    gateway = start(sets=[PLUGINS])
    local = httpx.Client(transport=httpx.HTTPTransport(uds=gateway.socket_path), base_url="http://localhost")
    spaces = [f"a-space-with-quite-a-long-name-for-the-team-number-{i}" for i in range(64)]
    for i in range(600):
        assert local.post("/v1/keys", json={"agent": f"agent{i}", "spaces": spaces}).status_code == 201
    answer = local.get("/v1/keys", params={"name": "agent7"}).json()["keys"]
    assert [key["agent"] for key in answer] == ["agent7"]
    assert local.get("/v1/keys", params={"name": answer[0]["id"]}).json()["keys"] == answer
    assert local.get("/v1/keys", params=[("name", "a"), ("name", "b")]).status_code == 400
    if not running:
        assert gateway.stop() == 0
    assert len(table(notegate(gateway.data_dir, "key", "list"))) == 600
    assert "1 key revoked" in notegate(gateway.data_dir, "key", "revoke", "agent7").stdout
    near = notegate(gateway.data_dir, "key", "revoke", "agent77x")
    assert near.returncode == 1 and "did you mean" in near.stderr


@pytest.mark.parametrize("words,says", [
    (["key"], "needs"), (["key", "ad", "x"], "add, list or revoke"), (["key", "add"], "needs a name"),
    (["key", "add", "a", "b"], "more than"), (["key", "add", "a b"], "agent name"),
    (["key", "add", "a", "--role", "king"], "reader, writer or admin"), (["key", "add", "a", "--mode", "x"], "mode"),
    (["key", "add", "a", "--rate", "x"], "rate"), (["key", "add", "a", "--expires", "x"], "expiry"),
    (["key", "add", "a", "--tool", "notebok"], "notebook"), (["key", "add", "a", "--all"], "--all"),
    (["key", "list", "--role", "reader"], "describe"), (["key", "list", "x"], "more than"),
    (["key", "add", "a", "--agent", "b"], "--agent")])
def test_command_lines_that_make_no_sense(tmp_path, words, says):
    done = notegate(tmp_path / "data", *words)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr and done.stdout == ""


def test_no_directory_is_made_to_list_nothing(tmp_path):
    done = notegate(tmp_path / "none", "key", "list")
    assert done.returncode == 1 and not (tmp_path / "none").exists()


# ---- what was answered holds


def test_a_key_survives_a_kill(tmp_path):
    data_dir = tmp_path / "data"
    gateway = Gateway(data_dir, sets=[PLUGINS])
    keep = add(data_dir, "keep")
    gone = add(data_dir, "gone")
    assert notegate(data_dir, "key", "revoke", "gone").returncode == 0
    last = add(data_dir, "last", "--role", "reader")
    gateway.process.send_signal(signal.SIGKILL)
    gateway.process.wait()
    gateway = Gateway(data_dir, sets=[PLUGINS])
    try:
        assert rest_call(gateway, keep, "notebook", WRITE) == "ok"
        assert rest_call(gateway, last, "notebook", WRITE) == "FORBIDDEN"
        body = refused(gateway.call("notebook", READ, bearer(gone)), 401, "UNAUTHENTICATED")
        assert "revoked" in body["message"]
        refused(gateway.call("notebook", READ), 401, "UNAUTHENTICATED")
    finally:
        assert gateway.stop() == 0


def test_many_processes_add_at_once(start, tmp_path):
    gateway = start(sets=[PLUGINS])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda i: add(gateway.data_dir, f"agent{i}"), range(24)))
    assert len(set(keys)) == 24
    for i, key in enumerate(keys):
        assert rest_call(gateway, key, "notebook", READ) == "ok", i
    assert len(table(notegate(gateway.data_dir, "key", "list"))) == 24


def test_keys_go_into_the_backup_and_back(tmp_path):
    source, copy = tmp_path / "data", tmp_path / "copy"
    key = add(source, "ada", "--role", "reader")
    gone = add(source, "gone")
    assert notegate(source, "key", "revoke", "gone").returncode == 0
    backup = tmp_path / "keys.backup"
    assert notegate(source, "backup", backup).returncode == 0
    assert key not in backup.read_text() and key[16:] not in backup.read_text()
    assert notegate(copy, "restore", backup).returncode == 0
    assert notegate(copy, "verify").returncode == 0
    gateway = Gateway(copy, sets=[PLUGINS])
    try:
        assert rest_call(gateway, key, "notebook", READ) == "ok"
        assert rest_call(gateway, key, "notebook", WRITE) == "FORBIDDEN"
        assert gateway.call("notebook", READ, bearer(gone)).status_code == 401
    finally:
        assert gateway.stop() == 0


def test_wrong_keys_do_not_fill_the_log(start):
    gateway = start(sets=[PLUGINS])
    key = add(gateway.data_dir, "ada")
    wrong = bearer(key[:-1] + ("A" if key[-1] != "A" else "B"))
    began = time.monotonic()
    for _ in range(300):
        assert gateway.client.get("/v1/tools", headers=wrong).status_code == 401
    seconds = time.monotonic() - began
    lines = [line for line in gateway.errors if "refused" in line]
    assert 1 <= len(lines) <= 12 * (seconds + 2)


def test_check_tells_of_the_keys(tmp_path):
    data_dir = tmp_path / "data"
    public = ("--listen", "0.0.0.0:0")
    done = notegate(data_dir, "check", *public)
    assert done.returncode == 1 and "notegate key add" in done.stdout + done.stderr
    add(data_dir, "ada")
    done = notegate(data_dir, "check", *public)
    assert done.returncode == 0 and "1 in force" in done.stdout, done.stdout + done.stderr
