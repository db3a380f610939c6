# SPDX-License-Identifier: MIT
"""Keys: creator, purpose and time of last use; the last one is revoked only by force."""

import concurrent.futures
import datetime
import json
import os
import pwd
import re
import signal

import httpx
import pytest
from conftest import Gateway, eventually
from keys_support import PLUGINS, READ, add, bearer, key_id, mcp, notegate, refused, rest_call

OWNER = f"unix user {pwd.getpwuid(os.getuid()).pw_name} ({os.getuid()})"
TITLES = ["ID", "AGENT", "ROLE", "MODE", "RUN", "RESTORE", "SPACES", "TOOLS", "EXCEPT", "RATE", "EXPIRES", "STATE",
          "CREATED", "LAST USED", "MADE BY", "NOTE"]


def table(data_dir, *options):
    """The list that people read, by agent."""
    done = notegate(data_dir, "key", "list", *options)
    assert done.returncode == 0, done.stderr
    rows = [re.split(r" {2,}", line, maxsplit=len(TITLES) - 1) for line in done.stdout.splitlines()]
    assert rows[0] == TITLES
    return {row[1]: dict(zip(TITLES, row, strict=True)) for row in rows[1:]}


def listed(data_dir):
    done = notegate(data_dir, "key", "list", "--json")
    assert done.returncode == 0, done.stderr
    return {key["agent"]: key for key in json.loads(done.stdout)["keys"]}


def now():
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def time_of(text):
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text), text
    return datetime.datetime.fromisoformat(text)


# ---- creator and purpose


@pytest.mark.parametrize("running", [False, True])
def test_note_and_maker_by_the_command(start, tmp_path, running):
    data = tmp_path / "data"
    if running:
        start(sets=[PLUGINS])
    add(data, "ada", "--note", "for  CI – nightly")
    add(data, "bob")
    rows = table(data)
    assert [(rows[name]["LAST USED"], rows[name]["MADE BY"], rows[name]["NOTE"]) for name in ("ada", "bob")] == [
        ("never", OWNER, "for  CI – nightly"), ("never", OWNER, "-")]
    assert abs(time_of(rows["ada"]["CREATED"]) - now()) < datetime.timedelta(hours=1)
    keys = listed(data)
    assert keys["ada"]["note"] == "for  CI – nightly" and keys["ada"]["made_by"] == OWNER
    assert "note" not in keys["bob"] and "last_used" not in keys["bob"] and keys["bob"]["made_by"] == OWNER


def test_note_and_maker_over_rest(start):
    gateway = start(sets=[PLUGINS])
    first = gateway.client.post("/v1/keys", json={"agent": "ops", "role": "admin"}).json()
    assert first["made_by"] == OWNER, "the kernel says whose the connection is"
    made = gateway.client.post("/v1/keys", headers=bearer(first["key"]), json={"agent": "ada", "note": "x" * 200})
    assert made.status_code == 201 and made.json()["note"] == "x" * 200
    assert made.json()["made_by"] == f"agent ops ({first['id']})"
    for note in ("a\nb", "\x1b[2J", "\x7f", "\u0085", "\u2028", "x" * 201, 7, ["x"]):
        answer = gateway.client.post("/v1/keys", headers=bearer(first["key"]), json={"agent": "b", "note": note})
        assert "note" in refused(answer, 400, "INVALID_INPUT")["message"]
    for note in ("", None):
        made = gateway.client.post("/v1/keys", headers=bearer(first["key"]), json={"agent": "b", "note": note})
        assert made.status_code == 201 and "note" not in made.json()
    shown = gateway.client.get("/v1/keys", headers=bearer(first["key"])).text
    assert "hash" not in shown and first["key"] not in shown


@pytest.mark.parametrize("words,says", [
    (["key", "add", "a", "--note", "a\tb"], "one line"), (["key", "list", "--note", "x"], "describe"),
    (["key", "add", "a", "--force"], "--force belongs"), (["key", "list", "--force"], "--force belongs")])
def test_command_lines_that_make_no_sense(tmp_path, words, says):
    add(tmp_path / "data", "ada")
    done = notegate(tmp_path / "data", *words)
    assert done.returncode == 2 and says in done.stderr and done.stdout == "", done.stderr


# ---- the last use


def test_last_use(tmp_path):
    data = tmp_path / "data"
    gateway = Gateway(data, sets=[PLUGINS])
    try:
        ada, bob, idle = add(data, "ada"), add(data, "bob", "--role", "reader"), add(data, "idle")
        before = now()
        assert rest_call(gateway, ada, "notebook", READ) == "ok"
        assert mcp(gateway, bob, "tools/list").status_code == 200
        refused(gateway.call("notebook", READ, bearer(idle[:-1] + "!")), 401, "UNAUTHENTICATED")
        after = now()
        keys = listed(data)
        for name in ("ada", "bob"):
            assert before <= time_of(keys[name]["last_used"]) <= after
        assert "last_used" not in keys["idle"], "its id alone does not use it"
        assert table(data)["ada"]["LAST USED"] == keys["ada"]["last_used"]
    finally:
        assert gateway.stop() == 0
    stopped = listed(data)
    assert {name: key.get("last_used") for name, key in stopped.items()} == {
        name: key.get("last_used") for name, key in keys.items()}, "a stop stores what no upkeep did"

    gateway = Gateway(data, sets=[PLUGINS])
    assert listed(data) == stopped
    assert rest_call(gateway, ada, "notebook", READ) == "ok"
    gateway.process.send_signal(signal.SIGKILL)
    gateway.process.wait()
    killed = listed(data)
    assert killed["bob"] == stopped["bob"] and killed["idle"] == stopped["idle"]
    assert time_of(killed["ada"]["last_used"]) >= time_of(stopped["ada"]["last_used"]), "a kill takes nothing that was stored"
    assert notegate(data, "verify").returncode == 0


def test_a_use_writes_nothing(start):
    """A call that only reads stays one: the last use is written apart from it."""
    gateway = start(sets=[PLUGINS])
    key = add(gateway.data_dir, "ada")
    writes = re.compile(r"^notegate_store_\S*(?:commits|puts|batches|transactions)\S* (\d+)", re.M)
    count = lambda: writes.findall(gateway.client.get("/metrics", headers=bearer(key)).text)  # noqa: E731
    assert count(), "nothing to look at"
    before = count()
    for _ in range(50):
        assert rest_call(gateway, key, "notebook", READ) == "ok"
    after = count()
    # No more than the upkeep's, should a minute end just now.
    assert all(int(new) - int(old) < 25 for old, new in zip(before, after, strict=True)), (before, after)


def test_last_uses_go_into_the_backup_and_back(tmp_path):
    data, copy, backup = tmp_path / "data", tmp_path / "copy", tmp_path / "keys.backup"
    key = add(data, "ada", "--note", "of the backup")
    gateway = Gateway(data, sets=[PLUGINS])
    assert rest_call(gateway, key, "notebook", READ) == "ok"
    assert gateway.stop() == 0
    assert notegate(data, "backup", backup).returncode == 0
    assert notegate(copy, "restore", backup).returncode == 0
    assert listed(copy) == listed(data) and listed(copy)["ada"]["last_used"]


# ---- the last key


OPEN = "every program of the gateway's own user on this machine needs no key and has the role admin"
SHUT = "refuses all callers except commands on its own machine"


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("listen,auth,says", [
    ("127.0.0.1:0", "auto", [OPEN]), ("127.0.0.1:0", "on", [SHUT]), ("[::1]:0", "auto", [OPEN]),
    ("0.0.0.0:0", "auto", [SHUT, "the next start refuses"]), ("0.0.0.0:0", "on", [SHUT, "the next start refuses"])])
def test_the_last_key_by_the_command(tmp_path, running, listen, auth, says):
    data = tmp_path / "data"
    key, other = add(data, "ada"), add(data, "bob")
    gateway = Gateway(data, sets=[PLUGINS, f"auth={auth}"], listen=listen) if running else None
    # The configuration of the gateway counts, not that of the command.
    options = () if running else ("--listen", listen, "--set", f"auth={auth}")
    try:
        assert notegate(data, "key", "revoke", "bob", *options).returncode == 0
        done = notegate(data, "key", "revoke", "ada", *options)
        assert done.returncode == 1 and done.stdout == "", done.stdout
        assert all(text in done.stderr for text in says) and f"notegate key revoke {key_id(key)} --force" in done.stderr
        assert key not in done.stderr and ":0" not in done.stderr, "no port is known"
        assert table(data)["ada"]["STATE"] == "live"
        done = notegate(data, "key", "revoke", "ada", "--force", *options)
        assert done.returncode == 0 and "1 key revoked" in done.stdout, done.stderr
        assert table(data) == {}
        # Once more, and another that is revoked already: nothing to refuse.
        assert notegate(data, "key", "revoke", key_id(key), *options).returncode == 0
        assert notegate(data, "key", "revoke", key_id(other), *options).returncode == 0
    finally:
        assert gateway is None or gateway.stop() == 0


@pytest.mark.parametrize("running", [False, True])
def test_without_keys_nothing_is_at_stake(tmp_path, running):
    data = tmp_path / "data"
    add(data, "ada")
    gateway = Gateway(data, sets=[PLUGINS, "auth=off"]) if running else None
    try:
        done = notegate(data, "key", "revoke", "ada", *(() if running else ("--set", "auth=off")))
        assert done.returncode == 0 and "1 key revoked" in done.stdout
    finally:
        assert gateway is None or gateway.stop() == 0


def test_all_keys_of_one_agent(start):
    """Those that can be revoked are, and said so."""
    gateway = start(sets=[PLUGINS])
    keys = [add(gateway.data_dir, "ada") for _ in range(3)]
    done = notegate(gateway.data_dir, "key", "revoke", "ada")
    assert done.returncode == 1 and done.stdout.count("revoked ") == 2 and "the last one" in done.stderr
    states = [gateway.call("notebook", READ, bearer(key)).status_code for key in keys]
    assert sorted(states) == [200, 401, 401]
    assert notegate(gateway.data_dir, "key", "revoke", "ada", "--force").returncode == 0
    assert gateway.call("notebook", READ).status_code == 200


def test_the_last_key_over_rest(start):
    gateway = start(sets=[PLUGINS])
    admin, path = add(gateway.data_dir, "ops", "--role", "admin"), "/v1/keys/"
    own = path + key_id(admin)
    for query in ("", "?force=false", "?force=0"):
        body = refused(gateway.client.delete(own + query, headers=bearer(admin)), 409, "CONFLICT")
        assert OPEN in body["message"] and f"{own}?force=true" in body["hint"]
    for query in ("?force=yes", "?forced=true", "?force"):
        refused(gateway.client.delete(own + query, headers=bearer(admin)), 400, "INVALID_INPUT")
    refused(gateway.client.get("/v1/keys?force=true", headers=bearer(admin)), 400, "INVALID_INPUT")
    refused(gateway.client.get("/v1/tools"), 401, "UNAUTHENTICATED")
    eventually(lambda: gateway.logged('"key_revoke"', "CONFLICT"), what="the audit line of a refusal")
    # A key that admits no caller does not count as another key.
    late = gateway.client.post("/v1/keys", headers=bearer(admin), json={"agent": "late", "expires": "1s"}).json()
    eventually(lambda: gateway.client.get(path + late["id"], headers=bearer(admin)).json()["state"] == "expired",
               what="the expiry")
    body = refused(gateway.client.delete(own, headers=bearer(admin)), 409, "CONFLICT")
    assert SHUT in body["message"] and OPEN not in body["message"]
    assert gateway.client.delete(path + late["id"], headers=bearer(admin)).status_code == 200
    assert gateway.client.delete(own + "?force=true", headers=bearer(admin)).json()["state"] == "revoked"
    eventually(lambda: gateway.logged('"key_revoke"', '"ok"'), what="the audit line, also where no key is left")
    assert gateway.client.get("/v1/tools").status_code == 200
    assert admin[16:] not in "".join(gateway.errors)


def test_two_admins_revoke_each_other_at_once(start):
    gateway = start(sets=[PLUGINS])
    for _ in range(20):
        keys = [add(gateway.data_dir, name, "--role", "admin") for name in ("ada", "bob")]
        clients = [httpx.Client(base_url=gateway.url, trust_env=False, timeout=120) for _ in keys]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda client, own, other: client.delete(f"/v1/keys/{key_id(other)}", headers=bearer(own)),
                                    clients, keys, reversed(keys)))
        # The other one was refused, or had lost its own key by then.
        assert sorted(answer.status_code for answer in answers) in ([200, 401], [200, 403], [200, 409]), answers
        left = listed(gateway.data_dir)
        assert len(left) == 1
        assert notegate(gateway.data_dir, "key", "revoke", *left, "--force").returncode == 0
