# SPDX-License-Identifier: MIT
"""The audit log in the data directory: the calls of each door, events, a disk that takes none of it, a damaged log."""

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from audit_support import entries, names, raw
from cli_support import notegate
from conftest import Gateway, binary, environment, eventually
from disk_support import fill, mounted
from keys_support import PLUGINS, WRITE, add, bearer, key_id, mcp

TIMEOUT = 120
SECRET = "sesame-sesame-sesame"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def picked(found, **wanted):
    return [entry for entry in found if all(entry.get(name) == value for name, value in wanted.items())]


def test_calls_of_all_doors_and_events(tmp_path):
    data = tmp_path / "data"
    gateway = Gateway(data, sets=[PLUGINS])
    assert gateway.call("notebook", WRITE).status_code == 200  # before there is a key
    admin = add(data, "root", "--role", "admin")
    reader = add(data, "rita", "--role", "reader")
    headers = bearer(admin, X_Notegate_Run="run-1", X_Request_Id="rest-1", X_Notegate_Space="team",
                     traceparent=TRACE, User_Agent="tester/1")
    assert gateway.call("notebook", WRITE | {"newStr": SECRET}, headers).status_code == 200
    assert gateway.call("notebook", {"mode": "read", "name": "n"}, headers).status_code == 200
    assert gateway.call("notebook", WRITE, bearer(reader, X_Request_Id="refused-1")).status_code == 403
    assert gateway.call("notebook", WRITE, bearer("ng_" + "a" * 12 + "_" + "b" * 43)).status_code == 401
    answer = mcp(gateway, admin, "tools/call", {"name": "notebook", "arguments": WRITE | {"name": "m"}})
    assert answer.status_code == 200, answer.text
    assert gateway.client.post("/v1/reload", headers=bearer(admin)).status_code == 200
    saved = notegate("backup", tmp_path / "saved", "--data-dir", data)
    assert saved.returncode == 0, saved.stderr
    assert gateway.stop() == 0
    here = notegate("call", "notebook", json.dumps(WRITE | {"name": "c"}), "--data-dir", data, "--agent", "cleo")
    assert here.returncode == 0, here.stderr

    found = entries(data)
    changed = picked(found, request="rest-1")
    assert len(changed) == 1  # not the read
    entry = changed[0]
    assert (entry["v"], entry["face"], entry["agent"], entry["key"]) == (1, "rest", "root", key_id(admin))
    assert (entry["role"], entry["mode"], entry["space"]) == ("admin", "agent", "team")
    assert (entry["remote"], entry["client"]) == ("127.0.0.1", "tester/1")
    assert (entry["tool"], entry["operation"], entry["outcome"]) == ("notebook", "create", "ok")
    assert (entry["run"], entry["trace"]) == ("run-1", TRACE.split("-")[1])
    [doc] = entry["docs"]
    assert (doc["collection"], doc["id"], doc["revision"]) == ("notebooks", "n", 1) and doc["seq"] > 0
    assert [refused["outcome"] for refused in picked(found, request="refused-1")] == ["FORBIDDEN"]
    assert [refused["face"] for refused in picked(found, operation="refused", outcome="UNAUTHENTICATED")] == ["http"]
    assert [(call["face"], call["docs"][0]["id"]) for call in picked(found, tool="notebook", outcome="ok")] == [
        ("rest", "n"), ("mcp", "m"), ("cli", "c")]
    assert picked(found, tool="notebook", face="cli")[0]["agent"] == "cleo"
    assert [event["operation"] for event in found if "tool" not in event] == [
        "key_add", "key_add", "refused", "reload", "backup", "stop"]
    assert [(event["outcome"], event["remote"]) for event in picked(found, operation="backup")] == [("ok", "unix")]
    assert [event["docs"][0]["id"] for event in picked(found, operation="key_add")] == [key_id(admin), key_id(reader)]

    plain = b"\n".join(raw(data))
    for hidden in (SECRET, "root", "127.0.0.1", "tester/1", "team", '"n"'):
        assert hidden.encode() not in plain, hidden
    assert SECRET not in names(data).values()
    assert oct((data / "audit" / "key").stat().st_mode & 0o777) == "0o600"


def test_a_start_is_told_and_stdio(tmp_path):
    data = tmp_path / "data"
    with subprocess.Popen([binary(), "mcp", "--data-dir", str(data), "--set", PLUGINS, "--set", "audit=on"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), cwd=tmp_path) as process:
        for message in ({"id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
                        {"method": "notifications/initialized"},
                        {"id": 2, "method": "tools/call", "params": {"name": "notebook", "arguments": WRITE}}):
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
            process.stdin.flush()
            while "id" in message and json.loads(process.stdout.readline()).get("id") != message["id"]:
                pass
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0
    [entry] = entries(data)
    assert (entry["face"], entry["tool"], entry["outcome"]) == ("stdio", "notebook", "ok")
    gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
    assert gateway.stop() == 0
    assert [entry.get("operation") for entry in entries(data)] == ["create", "start", "stop"]


def ready(gateway):
    return gateway.client.get("/readyz").json()


def test_a_disk_that_takes_no_entries(tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    with mounted(data / "audit", "1M") as disk:
        gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
        assert ready(gateway)["status"] == "ready"
        filler = fill(disk)
        assert gateway.call("notebook", WRITE).status_code == 200
        told = eventually(lambda: ready(gateway).get("status") == "degraded" and ready(gateway), what="degraded")
        assert "audit log's file" in told["message"] and "No space left on device" in told["message"]
        assert "entries wait" in told["message"] and told["reasons"] == [told["message"]]
        assert gateway.logged("error", "audit", "No space left on device")
        os.remove(filler)
        eventually(lambda: ready(gateway)["status"] == "ready", what="ready")
        assert gateway.logged("the audit log is written again")
        assert gateway.stop() == 0
        assert [entry["operation"] for entry in entries(data)] == ["start", "create", "stop"]


def refused_start(data, *sets):
    done = subprocess.run([binary(), "serve", "--data-dir", str(data), "--listen", "127.0.0.1:0", "--set", PLUGINS,
                           *(word for one in sets for word in ("--set", one))],
                          capture_output=True, text=True, timeout=TIMEOUT, env=environment(), cwd="/")
    assert done.returncode == 1, done.stderr
    return done.stderr


def test_a_damaged_log_refuses_the_start(tmp_path):
    data = tmp_path / "data"
    gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
    assert gateway.call("notebook", WRITE).status_code == 200
    assert gateway.stop() == 0
    (data / "audit" / "checkpoint").unlink()
    assert "the audit log is damaged: it has tiles, but its checkpoint is missing" in refused_start(data, "audit=on")
    gateway = Gateway(data, sets=[PLUGINS, "audit=off"])
    assert gateway.call("notebook", {"mode": "read", "name": "n"}).status_code == 200
    assert gateway.stop() == 0


def test_a_key_that_others_can_read(tmp_path):
    data = tmp_path / "data"
    gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
    assert gateway.stop() == 0
    (data / "audit" / "key").chmod(0o644)
    command = re.search(r"`(chmod 600[^`]*)`", refused_start(data, "audit=on")).group(1)
    subprocess.run([*command.split(), "key"], check=True, cwd=data / "audit", timeout=TIMEOUT)
    gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
    assert gateway.stop() == 0


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_without_keys(tmp_path, mode):
    data = tmp_path / "data"
    gateway = Gateway(data, sets=[PLUGINS, f"audit={mode}"])
    assert gateway.call("notebook", WRITE).status_code == 200
    assert gateway.stop() == 0
    assert (data / "audit").exists() == (mode == "on")


def changes(data):
    """The numbers of the changes that calls of tools made, by a backup of the data directory."""
    done = subprocess.run([binary(), "backup", "-", "--data-dir", str(data), "--set", "audit=off"], capture_output=True,
                          text=True, timeout=TIMEOUT, env=environment(), cwd="/")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["seq"]: row for row in rows if row["kind"] == "event" and row["tool"]}


def numbers(found):
    return [doc["seq"] for entry in found for doc in entry.get("docs", ())]


def test_a_change_whose_entry_a_kill_took_is_recovered(tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    with mounted(data / "audit", "1M") as disk:
        gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
        assert gateway.call("notebook", WRITE | {"name": "before"}).status_code == 200
        filler = fill(disk)
        headers = {"X-Notegate-Agent": "ann", "X-Notegate-Space": "team", "X-Notegate-Run": "run-1", "X-Request-Id": "r-1"}
        assert gateway.call("notebook", WRITE | {"name": "lost"}, headers).status_code == 200
        gateway.process.kill()
        gateway.process.wait()
        os.remove(filler)
        for _ in range(2):  # the second start finds nothing
            gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
            assert gateway.stop() == 0
        found = entries(data)
        entry = picked(found, outcome="recovered")[-1]  # the first one may have been in the log
        assert (entry["agent"], entry["space"], entry["run"], entry["request"]) == ("ann", "team", "run-1", "r-1")
        assert entry["tool"] == "notebook" and "face" not in entry and "ms" not in entry
        assert [(doc["collection"], doc["id"]) for doc in entry["docs"]] == [("notebooks", "lost")]
        assert sorted(numbers(found)) == sorted(changes(data))


def test_kills_under_load_lose_no_change_and_repeat_none(tmp_path):
    data = tmp_path / "data"
    plugins = "plugins=notebook,file_editor,agent_notebook"
    for life in range(3):
        gateway = Gateway(data, sets=[plugins, "audit=on"])

        def write(number, life=life, gateway=gateway):
            return gateway.call("notebook", WRITE | {"name": f"n{life}-{number}"}, {"X-Notegate-Agent": f"a{number % 5}"}).status_code

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(write, range(150))) == {200}
            last = [pool.submit(write, number) for number in range(150, 214)]
            assert last[20].result() == 200
            gateway.process.kill()
            gateway.process.wait()
            for call in last:
                call.exception()
    gateway = Gateway(data, sets=[plugins, "audit=on"])
    assert gateway.stop() == 0
    made = changes(data)
    assert len(made) >= 450
    assert sorted(numbers(entries(data))) == sorted(made)


def test_changes_without_a_log_are_recovered_when_it_is_on_again(tmp_path):
    data = tmp_path / "data"
    for audit, name in (("off", "first"), ("on", "second"), ("off", "third"), ("on", "fourth")):
        gateway = Gateway(data, sets=[PLUGINS, f"audit={audit}"])
        assert gateway.call("notebook", WRITE | {"name": name}).status_code == 200
        assert gateway.stop() == 0
    found = [entry for entry in entries(data) if "docs" in entry]
    assert [(entry["docs"][0]["id"], entry["outcome"]) for entry in found] == [
        ("second", "ok"), ("third", "recovered"), ("fourth", "ok")]
