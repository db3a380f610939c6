# SPDX-License-Identifier: MIT
"""Keys: the first and the last one, revoked, expired, rates, the command, what a kill and a backup leave."""

import concurrent.futures
import json
import re
import signal
import time

import httpx
import pytest
from conftest import Gateway, eventually
from keys_support import KEY, PLUGINS, READ, WRITE, add, bearer, key_id, mcp, notegate, refused, rest_call
from sse_support import WAIT_SECONDS, Stream


# ---- from the first key to the last


def test_the_first_key_closes_and_the_last_opens(start):
    gateway = start(sets=[PLUGINS])
    assert gateway.call("notebook", READ).status_code == 200
    none = gateway.client.get("/v1/tools", headers=bearer("ng_" + "a" * 12 + "_" + "b" * 43))
    body = refused(none, 401, "UNAUTHENTICATED")
    assert "has no keys" in body["message"] and body["hint"] == "Leave the key out: this gateway has none."
    # Some clients always send an Authorization header that is no key of ours.
    assert gateway.client.get("/v1/tools", headers={"Authorization": "Bearer dummy"}).status_code == 200
    key = add(gateway.data_dir, "ada")
    refused(gateway.call("notebook", READ), 401, "UNAUTHENTICATED")
    assert rest_call(gateway, key, "notebook", READ) == "ok"
    done = notegate(gateway.data_dir, "key", "revoke", "ada", "--force")
    assert done.returncode == 0 and "1 key revoked" in done.stdout
    body = refused(gateway.call("notebook", READ, bearer(key)), 401, "UNAUTHENTICATED")
    assert "no keys" in body["message"] or "revoked" in body["message"]
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
        stream.thread.join(WAIT_SECONDS)
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
        assert stream.next().data == ""  # the first one only has an id
        assert stream.next().json()["method"] == "sampling/createMessage"
        assert gateway.client.delete(f"/v1/keys/{key_id(key)}", headers=bearer(keep)).status_code == 200
        answer = waits.result(WAIT_SECONDS)
        assert answer.json()["result"]["isError"], answer.text


def brief_key(gateway, admin):
    """A key that was good a moment ago and soon is not; on a slow machine it takes a longer life to see that."""
    for seconds in (1, 5, 25, 125):
        began = time.monotonic()
        made = gateway.client.post("/v1/keys", headers=bearer(admin), json={"agent": "brief", "expires": f"{seconds}s"})
        assert made.status_code == 201, made.text
        key = made.json()["key"]
        if rest_call(gateway, key, "notebook", READ) == "ok":
            return key
        assert time.monotonic() - began >= seconds, "it expired before its time"
    pytest.fail("no call came before the expiry")


def test_expiry(start):
    gateway = start(sets=[PLUGINS])
    admin = add(gateway.data_dir, "root", "--role", "admin")
    key = brief_key(gateway, admin)
    eventually(lambda: gateway.call("notebook", READ, bearer(key)).status_code == 401, 180, "the expiry")
    answer = gateway.call("notebook", READ, bearer(key))
    assert "expired" in refused(answer, 401, "UNAUTHENTICATED")["message"]
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    listed = {item["agent"]: item["state"]
              for item in gateway.client.get("/v1/keys?all=true", headers=bearer(admin)).json()["keys"]}
    assert listed == {"root": "live", "brief": "expired"}
    # The expired key is the only one left that was not revoked: the gateway does not open by itself.
    assert gateway.client.delete(f"/v1/keys/{key_id(admin)}?force=true", headers=bearer(admin)).status_code == 200
    refused(gateway.call("notebook", READ), 401, "UNAUTHENTICATED")
    assert notegate(gateway.data_dir, "key", "revoke", "brief", "--force").returncode == 0
    assert gateway.call("notebook", READ).status_code == 200


# ---- rates


def test_a_new_key_says_all_that_it_may(tmp_path):
    done = notegate(tmp_path / "data", "key", "add", "ada", "--rate", "30/min", "--tool", "notebook", "--space", "team")
    assert "role writer, mode agent, spaces team, tools notebook, rate 0.5/s, expires never, may not run code" in done.stderr
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


# ---- the command


def table(done):
    lines = done.stdout.splitlines()
    columns = ["ID", "AGENT", "ROLE", "MODE", "RUN", "RESTORE", "SPACES", "TOOLS", "EXCEPT", "RATE", "EXPIRES", "STATE"]
    assert lines[0].split()[:len(columns)] == columns
    return [line.split()[:len(columns)] for line in lines[1:]]


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
    bob = key_id(add(data_dir, "bob", "--run"))
    rows = table(notegate(data_dir, "key", "list"))
    assert rows == [
        [key_id(first.stdout.strip()), "ada", "reader", "ask", "no", "no", "team", "notebook", "-", "5/s",
         "2099-01-01T00:00:00Z", "live"],
        [second["id"], "ada", "writer", "agent", "no", "no", "~ada,shared", "all", "-", "6/min", "never", "live"],
        [bob, "bob", "writer", "agent", "yes", "no", "~bob,shared", "all", "-", "-", "never", "live"]]
    wrong = notegate(data_dir, "key", "revoke", "bop")
    assert wrong.returncode == 1 and 'did you mean "bob"' in wrong.stderr
    both = notegate(data_dir, "key", "revoke", "ada")
    assert both.returncode == 0 and "2 keys revoked" in both.stdout
    again = notegate(data_dir, "key", "revoke", "ada")
    assert again.returncode == 1 and "revoked already" in again.stderr
    one = notegate(data_dir, "key", "revoke", bob, "--json", "--force")
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
    local = httpx.Client(transport=httpx.HTTPTransport(uds=gateway.socket_path), base_url="http://localhost",
                         timeout=WAIT_SECONDS)
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
    (["key"], "needs"), (["key", "ad", "x"], "add, set, pause, resume, list or revoke"), (["key", "add"], "needs a name"),
    (["key", "add", "a", "b"], "unexpected argument"), (["key", "add", "a b"], "agent name"),
    (["key", "add", "a", "--role", "king"], "reader, writer or admin"), (["key", "add", "a", "--mode", "x"], "mode"),
    (["key", "add", "a", "--rate", "x"], "rate"), (["key", "add", "a", "--expires", "x"], "expiry"),
    (["key", "add", "a", "--tool", "notebok"], "notebook"), (["key", "add", "a", "--all"], "--all"),
    (["key", "list", "--role", "reader"], "describe"), (["key", "list", "x"], "unexpected argument"),
    (["key", "add", "a", "--agent", "b"], "--agent")])
def test_command_lines_that_make_no_sense(tmp_path, words, says):
    done = notegate(tmp_path / "data", *words)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr and done.stdout == ""


def test_no_directory_is_made_to_list_nothing(tmp_path):
    done = notegate(tmp_path / "none", "key", "list")
    assert done.returncode == 1 and not (tmp_path / "none").exists()


# ---- answered writes are kept


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
    lines = eventually(lambda: gateway.logged("refused"), what="a line of the log")
    assert len(lines) <= 12 * (seconds + 2)


def test_check_tells_of_the_keys(tmp_path):
    data_dir = tmp_path / "data"
    public = ("--listen", "0.0.0.0:0")
    done = notegate(data_dir, "check", *public)
    assert done.returncode == 1 and "notegate key add" in done.stdout + done.stderr
    add(data_dir, "ada")
    done = notegate(data_dir, "check", *public)
    assert done.returncode == 0 and "1 in force" in done.stdout, done.stdout + done.stderr
