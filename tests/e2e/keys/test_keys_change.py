# SPDX-License-Identifier: MIT
"""Keys that change: their members, over REST and by the command; pauses; what open streams and sessions see of it."""

import concurrent.futures
import json

import pytest
from cells_tools_support import Handshake
from conftest import Gateway, eventually
from keys_support import PLUGINS, READ, WRITE, add, bearer, key_id, mcp, notegate, refused, rest_call
from sse_support import Stream

AUDIT = "log.format=json"
ROUNDS = 20


class Rest:
    """Changes a key over REST, as an admin."""

    def __init__(self, gateway, admin):
        self.gateway, self.admin = gateway, admin

    def send(self, key, **members):
        return self.gateway.client.patch(f"/v1/keys/{key_id(key)}", json=members, headers=bearer(self.admin))

    def change(self, key, **members):
        answer = self.send(key, **members)
        assert answer.status_code == 200, answer.text
        return answer.json()


class Command:
    """The same by `notegate key`."""

    def __init__(self, gateway, admin):
        self.gateway, self.admin = gateway, admin

    def change(self, key, **members):
        words = ["set", key_id(key)]
        for name, value in members.items():
            if name == "paused":
                words[0] = "pause" if value else "resume"
            elif isinstance(value, bool):
                words.append(f"--{name}" if value else f"--no-{name}")
            else:
                option = {"spaces": "space", "tools": "tool", "no_tools": "no-tool"}.get(name, name)
                for item in value if isinstance(value, list) else [value]:
                    words += [f"--{option}", "" if item is None else item]
        done = notegate(self.gateway.data_dir, "key", *words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(params=[Rest, Command])
def keys(request, start):
    """A gateway, and a way to change its keys."""
    gateway = start(sets=[PLUGINS, AUDIT])
    return request.param(gateway, add(gateway.data_dir, "root", "--role", "admin", "--run"))


@pytest.fixture
def rest(start):
    gateway = start(sets=[PLUGINS, AUDIT])
    return Rest(gateway, add(gateway.data_dir, "root", "--role", "admin", "--run"))


def tools(gateway, key):
    return {tool["name"] for tool in gateway.client.get("/v1/tools", headers=bearer(key)).json()["tools"]}


# ---- members


def test_every_member_changes_alone_and_holds_at_once(keys):
    gateway = keys.gateway
    key = add(gateway.data_dir, "ada", "--note", "before")
    known = gateway.client.get(f"/v1/keys/{key_id(key)}", headers=bearer(keys.admin)).json()
    assert rest_call(gateway, key, "notebook", WRITE) == "ok"
    for name, value in {"role": "reader", "mode": "edit", "run": True, "restore": True, "spaces": ["~ada", "team"],
                        "tools": ["notebook"], "no_tools": ["file*"], "rate": "500/s", "note": "after",
                        "expires": "2099-01-01T00:00:00Z"}.items():
        changed = keys.change(key, **{name: value})
        known[name] = 500 if name == "rate" else value
        assert {member: changed.get(member) for member in known if member != "last_used"} == {
            member: known[member] for member in known if member != "last_used"}, name
    assert rest_call(gateway, key, "notebook", WRITE) == "FORBIDDEN"
    assert rest_call(gateway, key, "fileEditor", {"command": "view", "path": "/"}) == "FORBIDDEN"
    assert rest_call(gateway, key, "notebook", READ, X_Notegate_Space="shared") == "FORBIDDEN"
    keys.change(key, role="writer")
    assert rest_call(gateway, key, "notebook", WRITE, X_Notegate_Space="team") == "ok"
    # Null, or an empty value of an option: as a new key has it.
    gone = keys.change(key, tools=None, no_tools=None, rate=None, expires=None, note=None, spaces=None, run=False,
                       restore=False)
    assert not {"tools", "no_tools", "rate", "expires", "note"} & gone.keys()
    assert gone["spaces"] == ["~ada", "shared"] and gone["run"] is False and gone["restore"] is False
    assert tools(gateway, key) == tools(gateway, keys.admin)


def test_changes_are_kept(tmp_path):
    data_dir = tmp_path / "data"
    key = add(data_dir, "ada")
    add(data_dir, "keep")
    for words in (["set", key_id(key), "--role", "reader", "--no-tool", "file*", "--expires", "2099-01-01"],
                  ["pause", "ada"]):
        assert notegate(data_dir, "key", *words).returncode == 0
    gateway = Gateway(data_dir, sets=[PLUGINS])
    try:
        assert "is paused" in refused(gateway.call("notebook", READ, bearer(key)), 401, "UNAUTHENTICATED")["message"]
        done = notegate(data_dir, "key", "resume", key)
        assert done.returncode == 0 and done.stdout == f"resumed {key_id(key)} of ada\n"
        assert rest_call(gateway, key, "notebook", READ) == "ok"
        assert rest_call(gateway, key, "notebook", WRITE) == "FORBIDDEN"
        assert "fileEditor" not in tools(gateway, key)
        listed = json.loads(notegate(data_dir, "key", "list", "--json").stdout)["keys"]
        assert {item["agent"]: item.get("expires") for item in listed} == {"ada": "2099-01-02T00:00:00Z", "keep": None}
    finally:
        assert gateway.stop() == 0


def test_changes_that_are_refused(rest):
    gateway = rest.gateway
    key, gone = add(gateway.data_dir, "ada"), add(gateway.data_dir, "gone")
    assert gateway.client.delete(f"/v1/keys/{key_id(gone)}", headers=bearer(rest.admin)).status_code == 200
    for members, says in (({}, "nothing to change"), ({"agent": "bob"}, "does not change"),
                          ({"rule": "x"}, "is not a member"), ({"restore": "yes"}, "`restore`"),
                          ({"role": "king"}, "reader, writer or admin"), ({"spaces": ["~bob"]}, "another agent's own"),
                          ({"tools": []}, "`tools`"), ({"tools": ["notebok"]}, "no tool is called"),
                          ({"paused": 1}, "`paused`"),
                          ({"no_tools": ["zz_*"]}, "no tool matches"), ({"no_tools": ["*"]}, "could use none"),
                          ({"tools": ["notebook"], "no_tools": ["note*"]}, "could use none"),
                          ({"note": "x" * 201}, "at most 200"), ({"expires": "2020-01-01"}, "in the past")):
        assert says in refused(rest.send(key, **members), 400, "INVALID_INPUT")["message"], members
    assert rest.change(key, agent="ada", mode="ask")["mode"] == "ask"
    # What does not fit together is refused, whichever member comes last.
    assert rest.change(key, role="admin", spaces=["~bob"])["spaces"] == ["~bob"]
    assert "another agent's own" in refused(rest.send(key, role="writer"), 400, "INVALID_INPUT")["message"]
    assert "is revoked" in refused(rest.send(gone, paused=True), 409, "CONFLICT")["message"]
    refused(rest.send("ng_aaaaaaaaaaaa_x", mode="ask"), 404, "NOT_FOUND")
    refused(rest.send("ng_short_x", mode="ask"), 404, "NOT_FOUND")
    body = gateway.client.patch(f"/v1/keys/{key_id(key)}", content="{",
                                headers=bearer(rest.admin) | {"Content-Type": "application/json"})
    refused(body, 400, "INVALID_JSON")


def test_who_may_change_keys(rest):
    gateway = rest.gateway
    key, plain = add(gateway.data_dir, "ada"), add(gateway.data_dir, "plain", "--role", "admin", "--mode", "edit")
    narrow = add(gateway.data_dir, "narrow", "--role", "admin", "--no-tool", "fileEditor")
    for who, members, code in ((key, {"note": "x"}, "FORBIDDEN"), (narrow, {"note": "x"}, "FORBIDDEN"),
                               (plain, {"mode": "agent"}, "MODE_FORBIDDEN"), (plain, {"mode": None}, "MODE_FORBIDDEN"),
                               (plain, {"run": True}, "RUN_FORBIDDEN")):
        refused(Rest(gateway, who).send(key, **members), 403, code)
    asks = gateway.client.patch(f"/v1/keys/{key_id(key)}", json={"note": "x"},
                                headers=bearer(rest.admin, X_Notegate_Mode="ask"))
    refused(asks, 403, "MODE_FORBIDDEN")
    assert Rest(gateway, plain).change(key, note="x", mode="ask")["note"] == "x"
    allowed = gateway.client.options(f"/v1/keys/{key_id(key)}", headers=bearer(rest.admin)).headers["allow"]
    assert allowed == "GET, HEAD, PATCH, DELETE, OPTIONS"


@pytest.mark.parametrize("words,code,says", [
    (["set"], 2, "needs a name"), (["set", "ada"], 2, "says what changes"),
    (["set", "ada", "x"], 2, "unexpected argument"), (["set", "ada", "--run", "--no-run"], 2, "contradict"),
    (["set", "ada", "--restore", "--no-restore"], 2, "contradict"),
    (["set", "ada", "--role", "king"], 2, "reader, writer or admin"),
    (["set", "ada", "--all", "--note", "x"], 2, "--all"),
    (["pause", "ada", "--note", "x"], 2, "describe"), (["resume"], 2, "needs a name"),
    (["set", "adda", "--note", "x"], 1, 'did you mean "ada"'), (["pause", "bob"], 1, "bob has 2 keys"),
    (["set", "ada", "--no-tool", "zz*"], 2, "no tool matches")])
def test_command_lines(tmp_path, words, code, says):
    data_dir = tmp_path / "data"
    for name in ("ada", "bob", "bob"):
        add(data_dir, name)
    done = notegate(data_dir, "key", *words)
    assert done.returncode == code and says in done.stderr and done.stdout == "", (done.stdout, done.stderr)


def test_the_table_and_a_new_key_show_it(tmp_path):
    data_dir = tmp_path / "data"
    made = notegate(data_dir, "key", "add", "ada", "--restore", "--tool", "note*", "--no-tool", "notebook_*")
    assert made.returncode == 2 and "no tool matches" in made.stderr
    made = notegate(data_dir, "key", "add", "ada", "--restore", "--tool", "note*", "--tool", "file?ditor",
                    "--no-tool", "fileE*")
    assert "tools note*, file?ditor without fileE*" in made.stderr and "may restore checkpoints" in made.stderr
    assert notegate(data_dir, "key", "pause", "ada").returncode == 0
    lines = notegate(data_dir, "key", "list").stdout.splitlines()
    assert lines[0].split()[4:11] == ["RUN", "RESTORE", "SPACES", "TOOLS", "EXCEPT", "RATE", "EXPIRES"]
    assert lines[1].split()[4:12] == ["no", "yes", "~ada,shared", "note*,file?ditor", "fileE*", "-", "never", "paused"]


# ---- tools by globs


def test_globs_and_excluded_tools(rest):
    gateway = rest.gateway
    every = tools(gateway, rest.admin)
    assert {"notebook", "fileEditor"} <= every
    key = add(gateway.data_dir, "ada", "--tool", "note*", "--tool", "fileE?itor", "--no-tool", "fileEditor")
    assert tools(gateway, key) == {"notebook"} == Handshake(gateway, bearer(key)).listed()
    body = refused(gateway.call("fileEditor", {"command": "view", "path": "/"}, bearer(key)), 403, "FORBIDDEN")
    assert "excludes `fileEditor`" in body["message"]
    rest.change(key, no_tools=["notebook"])
    me = gateway.client.get("/v1/me", headers=bearer(key)).json()
    assert me["tools"] == ["note*", "fileE?itor"] and me["no_tools"] == ["notebook"]
    assert tools(gateway, key) == {"fileEditor"}
    body = refused(gateway.call("notebook", READ, bearer(key)), 403, "FORBIDDEN")
    assert "excludes `notebook`" in body["message"]
    assert mcp(gateway, key, "tools/call", {"name": "notebook", "arguments": READ}).json()["result"]["isError"]
    rest.change(key, no_tools=[], tools=["file*"])
    body = refused(gateway.call("notebook", READ, bearer(key)), 403, "FORBIDDEN")
    assert "it allows `file*`" in body["message"]
    assert rest.change(key, tools=["*"]).get("tools") is None and tools(gateway, key) == every


# ---- pauses


def test_a_pause_and_its_end(keys):
    gateway = keys.gateway
    key = add(gateway.data_dir, "ada")
    session = Handshake(gateway, bearer(key))
    with Stream(f"{gateway.url}/v1/events", headers=bearer(key)) as stream:
        changed = keys.change(key, paused=True)
        assert changed["paused"] is True and changed["state"] == "paused"
        answer = gateway.call("notebook", READ, bearer(key))
        body = refused(answer, 401, "UNAUTHENTICATED")
        assert "is paused" in body["message"] and "notegate key resume" in body["hint"]
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        over_mcp = session.client.post("/mcp", headers=session.headers, json=ping)
        assert over_mcp.status_code == 401 and "paused" in over_mcp.text
        ended = stream.rest()
        assert [event.json()["reason"] for event in ended if event.name == "closed"] == ["key_paused"]
    listed = {item["agent"]: item for item in gateway.client.get("/v1/keys", headers=bearer(keys.admin)).json()["keys"]}
    assert listed["ada"]["paused"] is True and listed["root"]["paused"] is False
    assert keys.change(key, paused=True)["state"] == "paused"  # again
    changed = keys.change(key, paused=False)
    assert changed["paused"] is False and changed["state"] == "live"
    assert rest_call(gateway, key, "notebook", READ) == "ok"


def test_a_paused_key_is_changed_and_revoked(rest):
    gateway = rest.gateway
    key = add(gateway.data_dir, "ada", "--expires", "30d")
    rest.change(key, paused=True)
    assert rest.change(key, note="why", expires="2099-01-01T00:00:00Z")["state"] == "paused"
    changed = rest.change(key, paused=False)
    assert changed["expires"] == "2099-01-01T00:00:00Z" and changed["note"] == "why" and changed["state"] == "live"
    rest.change(key, paused=True)
    # A paused key is no other one in force, and keeps the gateway closed.
    body = refused(gateway.client.delete(f"/v1/keys/{key_id(rest.admin)}", headers=bearer(rest.admin)), 409, "CONFLICT")
    assert "is the last one in force" in body["message"]
    forced = gateway.client.delete(f"/v1/keys/{key_id(rest.admin)}?force=true", headers=bearer(rest.admin))
    assert forced.status_code == 200
    refused(gateway.call("notebook", READ), 401, "UNAUTHENTICATED")
    last = notegate(gateway.data_dir, "key", "revoke", "ada")
    assert last.returncode == 1 and "it is paused, but still closes" in last.stderr
    assert notegate(gateway.data_dir, "key", "revoke", "ada", "--force").returncode == 0
    assert gateway.call("notebook", READ).status_code == 200


# ---- what is open


def test_a_stream_of_events_ends_when_a_right_changes(rest):
    gateway = rest.gateway
    key = add(gateway.data_dir, "ada", "--space", "team", "--space", "shared")
    with Stream(f"{gateway.url}/v1/events", headers=bearer(key)) as stream:
        rest.change(key, note="nothing that a stream depends on", rate="100/s", expires="30d")
        assert rest_call(gateway, rest.admin, "notebook", WRITE, X_Notegate_Space="team") == "ok"
        assert stream.next().json()["space"] == "team"
        last = stream.last_id
        rest.change(key, spaces=["shared"])
        assert [(event.name, event.json()["reason"]) for event in stream.rest()] == [("closed", "key_changed")]
    assert rest_call(gateway, rest.admin, "notebook", WRITE | {"name": "m"}, X_Notegate_Space="team") == "ok"
    assert rest_call(gateway, rest.admin, "notebook", WRITE, X_Notegate_Space="shared") == "ok"
    with Stream(f"{gateway.url}/v1/events", headers=bearer(key) | {"Last-Event-ID": last}) as stream:
        assert stream.next().json()["space"] == "shared"


def test_a_session_follows_its_key(rest):
    gateway = rest.gateway
    key = add(gateway.data_dir, "ada", "--space", "team", "--space", "shared", "--tool", "notebook")
    for space in ("team", "shared"):
        assert rest_call(gateway, rest.admin, "notebook", WRITE, X_Notegate_Space=space) == "ok"
    session = Handshake(gateway, bearer(key))
    session.client.post("/mcp", headers=session.headers, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    for space in ("team", "shared"):
        session.post("resources/subscribe", {"uri": f"notegate://{space}/notebook/n"})
    with Stream(f"{gateway.url}/mcp", headers=session.headers, wait_open=False) as stream:
        def told():
            event = stream.next()
            return event.json() if event.data else told()

        def write(space, text):
            arguments = {"mode": "write", "name": "n", "newStr": text}
            assert rest_call(gateway, rest.admin, "notebook", arguments, X_Notegate_Space=space) == "ok"

        write("team", "one")
        assert told()["params"] == {"uri": "notegate://team/notebook/n"}
        rest.change(key, spaces=["shared"], tools=None)
        lists = {told()["method"] for _ in range(3)}
        assert lists == {f"notifications/{name}/list_changed" for name in ("tools", "prompts", "resources")}
        assert "fileEditor" in session.listed()
        write("team", "two")  # of no concern to it any more
        write("shared", "three")
        assert told()["params"] == {"uri": "notegate://shared/notebook/n"}
        # What it gains holds as well, in the session that it has.
        rest.change(key, spaces=["shared", "team"], no_tools=["fileEditor"])
        lists = {told()["method"] for _ in range(3)}
        assert "notifications/tools/list_changed" in lists and "fileEditor" not in session.listed()
        write("team", "four")
        assert told()["params"] == {"uri": "notegate://team/notebook/n"}


# ---- races


def test_two_admins_lose_nothing_of_each_other(rest):
    gateway = rest.gateway
    key = add(gateway.data_dir, "ada")
    other = Rest(gateway, add(gateway.data_dir, "second", "--role", "admin", "--run"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for number in range(ROUNDS):
            wanted = [{"note": f"round {number}"}, {"mode": ("ask", "edit", "agent")[number % 3]},
                      {"spaces": ["shared", f"team{number}"]}, {"paused": number % 2 == 0}]
            done = [pool.submit((rest, other)[at % 2].change, key, **members) for at, members in enumerate(wanted)]
            for one in done:
                one.result()
            known = gateway.client.get(f"/v1/keys/{key_id(key)}", headers=bearer(rest.admin)).json()
            for members in wanted:
                assert members.items() <= known.items(), (known, members)
    notes = [f"by {number}" for number in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda note: rest.change(key, note=note), notes))
    known = gateway.client.get(f"/v1/keys/{key_id(key)}", headers=bearer(rest.admin)).json()
    assert known["note"] in notes


def test_a_revocation_wins_over_changes(rest):
    gateway = rest.gateway
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(ROUNDS):
            key = add(gateway.data_dir, "ada")
            sent = [pool.submit(rest.send, key, note=str(number)) for number in range(3)]
            gone = pool.submit(gateway.client.delete, f"/v1/keys/{key_id(key)}", headers=bearer(rest.admin))
            assert gone.result().status_code == 200
            assert {one.result().status_code for one in sent} <= {200, 409}
            assert gateway.call("notebook", READ, bearer(key)).status_code == 401
            shown = gateway.client.get(f"/v1/keys/{key_id(key)}", headers=bearer(rest.admin)).json()
            assert shown["state"] == "revoked"


# ---- the audit log


def test_changes_are_audited(keys):
    gateway = keys.gateway
    key = add(gateway.data_dir, "ada", "--role", "reader")

    def lines(event):
        found = [json.loads(line) for line in gateway.logged(f'"{event}"', key_id(key))]
        return [line for line in found if line["where"] == "audit"]

    keys.change(key, role="reader", mode="edit", no_tools=["fileEditor"])  # it is a reader already
    keys.change(key, paused=True)
    keys.change(key, paused=True)
    keys.change(key, paused=False)
    eventually(lambda: lines("key_resume"), what="the audit lines")
    assert [line["members"] for line in lines("key_set")] == ["mode no_tools"]
    assert [line["members"] for line in lines("key_pause")] == ["paused"]
    who = "root" if isinstance(keys, Rest) else "local"
    for line in lines("key_set") + lines("key_pause") + lines("key_resume"):
        assert (line["agent"], line["target"], line["outcome"]) == (who, key_id(key), "ok")
    refused(Rest(gateway, key).send(key, role="admin"), 403, "FORBIDDEN")
    eventually(lambda: gateway.logged('"audit"', '"key_set"', '"FORBIDDEN"', key_id(key)),
               what="the audit line of a refusal")
    refused(Rest(gateway, keys.admin).send(key, role="king"), 400, "INVALID_INPUT")
    eventually(lambda: gateway.logged('"audit"', '"key_set"', '"INVALID_INPUT"'), what="the audit line of a failure")


# ---- the right to restore


@pytest.fixture
def memory(start):
    """A gateway with the lead's checkpoint, and keys with and without the right."""
    gateway = start(sets=["plugins=agent_notebook", AUDIT])
    gateway.keys = {name: add(gateway.data_dir, name, *options) for name, options in {
        "lead": ["--role", "admin"], "plain": [], "other": [], "may": ["--restore"]}.items()}
    return gateway


def snapshot(gateway, who):
    answer = gateway.call("checkpoint_snapshot", {"label": who}, bearer(gateway.keys[who]))
    assert answer.status_code == 200, answer.text
    return {"checkpoint_id": answer.json()["result"]["checkpoint_id"]}


def test_restoring_needs_the_right(memory):
    leads = snapshot(memory, "lead")
    for who, listed in (("plain", False), ("may", True), ("lead", True)):
        headers = bearer(memory.keys[who])
        assert ("checkpoint_restore" in tools(memory, memory.keys[who])) == listed
        assert ("checkpoint_restore" in Handshake(memory, headers).listed()) == listed
    body = refused(memory.call("checkpoint_restore", leads, bearer(memory.keys["plain"])), 403, "FORBIDDEN")
    assert "role admin or a key with the right --restore" in body["message"]
    assert f"notegate key set {key_id(memory.keys['plain'])} --restore" in body["hint"]
    line = eventually(lambda: memory.logged('"audit"', '"checkpoint_restore"', "FORBIDDEN"), what="the audit line")[0]
    assert json.loads(line)["agent"] == "plain" and leads["checkpoint_id"] in line
    for who in ("may", "lead"):
        assert memory.call("checkpoint_restore", leads, bearer(memory.keys[who])).status_code == 200
    changed = Rest(memory, memory.keys["lead"])
    assert changed.change(memory.keys["plain"], restore=True)["restore"] is True
    assert memory.call("checkpoint_restore", leads, bearer(memory.keys["plain"])).status_code == 200
    changed.change(memory.keys["plain"], restore=False)
    refused(memory.call("checkpoint_restore", leads, bearer(memory.keys["plain"])), 403, "FORBIDDEN")


def test_deleting_a_checkpoint_of_another_needs_the_right(memory):
    own, others = snapshot(memory, "plain"), snapshot(memory, "other")
    body = refused(memory.call("checkpoint_delete", others, bearer(memory.keys["plain"])), 403, "FORBIDDEN")
    assert "role admin or a key with the right --restore" in body["message"]
    assert others["checkpoint_id"] in body["message"]
    assert eventually(lambda: memory.logged('"audit"', '"checkpoint_delete"', "FORBIDDEN"), what="the audit line")
    named = {"name": "checkpoint_delete", "arguments": others}
    over_mcp = mcp(memory, memory.keys["plain"], "tools/call", named).json()
    assert over_mcp["result"]["_meta"]["notegate/error"]["code"] == "FORBIDDEN"
    missing = memory.call("checkpoint_delete", {"checkpoint_id": "none"}, bearer(memory.keys["plain"]))
    refused(missing, 404, "NOT_FOUND")
    assert memory.call("checkpoint_delete", own, bearer(memory.keys["plain"])).status_code == 200
    assert memory.call("checkpoint_delete", others, bearer(memory.keys["may"])).status_code == 200
    for who in ("lead", "may"):
        assert memory.call("checkpoint_delete", snapshot(memory, "other"), bearer(memory.keys[who])).status_code == 200


def test_callers_without_keys_restore_as_admins(start):
    gateway = start(sets=["plugins=agent_notebook", "auth=off"])
    made = gateway.call("checkpoint_snapshot", {}, {"X-Notegate-Agent": "ada"}).json()["result"]
    named = {"checkpoint_id": made["checkpoint_id"]}
    assert gateway.call("checkpoint_restore", named, {"X-Notegate-Agent": "bob"}).status_code == 200
    assert gateway.call("checkpoint_delete", named, {"X-Notegate-Agent": "bob"}).status_code == 200
