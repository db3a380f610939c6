# SPDX-License-Identifier: MIT
"""Keys: rights of each role and mode, invalid keys, spaces and lists, keys over REST, addresses that need one."""

import contextlib
import json
import os
import re
import subprocess

import httpx
import pytest
from conftest import Gateway, binary, environment, eventually
from keys_support import KEY, PLUGINS, READ, WRITE, add, bearer, key_id, mcp, notegate, refused, rest_call
from sse_support import Stream


def mcp_call(gateway, key, tool, arguments, **headers):
    """The code of a call over MCP: "ok" or that of its error."""
    answer = mcp(gateway, key, "tools/call", {"name": tool, "arguments": arguments}, **headers)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    return result["_meta"]["notegate/error"]["code"] if result.get("isError") else "ok"


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
    assert team.client.get("/").headers["Location"] == "docs"
    assert set(team.client.get("/readyz").json()) == {"status"}
    for path in ("/v1/tools", "/v1/tools/notebook", "/openapi.json", "/metrics", "/v1/events", "/mcp", "/x"):
        assert team.client.get(path).status_code == 401, path


def test_refusals_are_logged_without_the_key(team):
    wrong = team.admin[:-1] + ("A" if team.admin[-1] != "A" else "B")
    team.client.get("/v1/tools", headers=bearer(wrong))
    eventually(lambda: any("refused" in line and "127.0.0.1" in line for line in team.errors), what="the log line")
    assert wrong[15:] not in "".join(team.errors)


# ---- lists


def tool_names(gateway, key, **headers):
    """The lists of all transports; they agree."""
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
    assert body.pop("new_spaces", ["team"]) == ["team"]
    assert KEY.match(key) and body["id"] == key_id(key)
    assert body | {"created": ""} == {
        "id": key_id(key), "agent": "zoe", "role": "reader", "mode": "edit", "run": False, "restore": False, "paused": False,
        "spaces": ["team", "~zoe"],
        "tools": ["notebook"], "rate": 0.5, "created": "", "expires": "2099-02-01T00:00:00Z", "state": "live",
        "made_by": f"agent admin-agent ({key_id(team.admin)})"}
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
    ({"agent": "a", "expires": "2027-02-30"}, "expiry"), ({"agent": "a", "hash": "00"}, "not a member of a key")])
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
            seen += all_events.take(1)
        actions = [(event.json()["collection"], event.json()["id"], event.json()["action"]) for event in seen]
        assert ("keys", key_id(third), "created") in actions and ("keys", key_id(third), "revoked") in actions
        first = some.next()
        assert first.json()["collection"] == "notebooks" and first.json()["agent"] == "ada"
        assert first.json()["space"] == "~ada"
        for event in seen:
            assert "hash" not in event.data and third[16:] not in event.data
    metrics = gateway.client.get("/metrics", headers=bearer(writer)).text
    assert "notegate_calls_total" in metrics and "ng_" not in metrics


# ---- a public address


@contextlib.contextmanager
def at_a_terminal(data_dir, *options):
    """A gateway whose stderr is a terminal, and what it says there up to the call to try."""
    ours, theirs = os.openpty()
    command = [binary(), "serve", "--data-dir", str(data_dir), "--set", PLUGINS, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment())
    os.close(theirs)
    said = b""
    try:
        while not re.search(rb"^try: .*\n", said, re.M):
            said += os.read(ours, 4096)
        yield said.decode().replace("\r\n", "\n")
    finally:
        process.terminate()
        process.communicate(timeout=120)
        os.close(ours)


def test_a_start_without_a_key_names_what_to_do_next(tmp_path):
    data_dir = tmp_path / "data"
    with at_a_terminal(data_dir, "--listen", "127.0.0.1:0") as said:
        page = re.search(r"^page: (http://127\.0\.0\.1:\d+)/docs$", said, re.M)
        assert page and f"\ndata: {data_dir}\n" in said, said
        url = page[1]
        assert f"\nClaude Code: claude mcp add --transport http notegate {url}/mcp\n" in said
        assert f"\ntry: curl -s {url}/v1/tools/notebook " in said and "NOTEGATE_KEY" not in said
        first = httpx.get(f"{url}/", follow_redirects=True, trust_env=False)
        assert first.status_code == 200 and str(first.url) == f"{url}/docs" and "<html" in first.text
        call = re.search(r"^try: (curl .*)$", said, re.M)[1]
        tried = subprocess.run(["sh", "-c", call], capture_output=True, text=True, timeout=120, check=True)
        assert "Available notebooks" in json.loads(tried.stdout)["result"]


def test_a_call_to_try_is_for_people(tmp_path):
    """At a terminal, by the name that clients use. A log has lines of its own form only."""
    data_dir = tmp_path / "data"
    add(data_dir, "ada")
    hosts = "allowed_hosts=10.0.0.0/8,*.example.com,notes.example.com"
    with at_a_terminal(data_dir, "--listen", "0.0.0.0:0", "--set", hosts) as said:
        assert said.count("$NOTEGATE_KEY") == 2
        assert "try: curl -s http://notes.example.com:" in said
        assert "page: http://notes.example.com:" in said and "/docs" in said and "data: " in said
        assert "claude mcp add --transport http notegate http://notes.example.com:" in said
    gateway = Gateway(data_dir, sets=[PLUGINS, hosts], listen="0.0.0.0:0")
    gateway.stop()
    assert gateway.errors and all(json.loads(line)["message"] for line in gateway.errors)


def test_a_public_address_needs_a_key_for_good(tmp_path):
    data_dir = tmp_path / "data"
    refused_start = subprocess.run([binary(), "serve", "--data-dir", str(data_dir), "--listen", "0.0.0.0:0"],
                                   capture_output=True, text=True, timeout=60, env=environment(), check=False)
    assert refused_start.returncode == 1 and "notegate key add" in refused_start.stderr
    key = add(data_dir, "ada")
    gateway = Gateway(data_dir, sets=[PLUGINS, "allowed_hosts=notes.example.com"], listen="0.0.0.0:0")
    try:
        url = f"http://127.0.0.1:{gateway.port}"
        eventually(lambda: gateway.logged("0.0.0.0", "without TLS"), what="keys would cross the network in clear")
        checked = notegate(tmp_path / "other", "check", "--listen", "0.0.0.0:0")
        assert checked.returncode == 1 and "no key exists" in checked.stdout
        add(tmp_path / "other", "ada")
        checked = notegate(tmp_path / "other", "check", "--listen", "0.0.0.0:0")
        assert checked.returncode == 0 and "0.0.0.0:0; warning: " in checked.stdout and "TLS" in checked.stdout
        assert httpx.get(url + "/v1/tools", headers=bearer(key), trust_env=False).status_code == 200
        assert notegate(data_dir, "key", "revoke", "ada", "--force").returncode == 0
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
