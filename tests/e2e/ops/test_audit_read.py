# SPDX-License-Identifier: MIT
"""The audit log read: the command `notegate audit`, and /v1/audit for admins."""

import base64
import json
import subprocess

import pytest
from audit_support import entries, names, raw, tile_path
from conftest import Gateway, binary, environment, eventually
from keys_support import PLUGINS, WRITE, add, bearer, key_id, refused

TIMEOUT = 120


def audit(data, *words, stdin=None):
    return subprocess.run([binary(), "audit", *map(str, words), "--data-dir", str(data)], capture_output=True, text=True,
                          timeout=TIMEOUT, env=environment(), cwd="/", input=stdin)


def lines(data, *words):
    done = audit(data, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def rows(data, *words):
    return [json.loads(line) for line in lines(data, *words)]


def ids(found):
    return [entry["docs"][0]["id"] for entry in found if "docs" in entry]


@pytest.fixture
def served(tmp_path):
    """A gateway with three changes by two agents, and one refused."""
    data = tmp_path / "data"
    gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
    for agent, name in (("ann", "a1"), ("bob", "b1"), ("ann", "a2")):
        headers = {"X-Notegate-Agent": agent, "X-Notegate-Run": f"run-{agent}", "X-Notegate-Space": "team"}
        assert gateway.call("notebook", WRITE | {"name": name}, headers).status_code == 200
    assert gateway.call("notebook", WRITE, {"X-Notegate-Agent": "ann", "X-Notegate-Mode": "ask"}).status_code == 403
    eventually(lambda: len(rows(data, "list", "--json")) == 5, what="all entries")
    yield gateway
    assert gateway.stop() == 0


def test_an_id_stays_on_its_line(served):
    """Ids may have any characters: none of them begins a line or commands the terminal."""
    name = "a\nb\x1b[31m\x7f\u009bc"
    assert served.call("notebook", WRITE | {"name": name}, {"X-Notegate-Agent": "cy"}).status_code == 200
    found = eventually(lambda: rows(served.data_dir, "list", "--json", "--agent", "cy"), what="the entry")
    assert ids(found) == [name]
    [line] = lines(served.data_dir, "list", "--agent", "cy")
    assert line.isprintable() and r"notebooks/a\u000ab\u001b[31m\u007f\u009bc@1" in line


def test_list_and_its_filters(served):
    data = served.data_dir
    assert ids(rows(data, "list", "--json")) == ["a2", "b1", "a1"]
    assert [row["number"] for row in rows(data, "list", "--json")] == [4, 3, 2, 1, 0]
    assert ids(rows(data, "list", "--json", "--agent", "ann")) == ["a2", "a1"]
    assert ids(rows(data, "list", "--json", "--run", "run-bob")) == ["b1"]
    assert ids(rows(data, "list", "--json", "--id", "a*")) == ["a2", "a1"]
    assert ids(rows(data, "list", "--json", "--id", "b1", "--collection", "notebooks", "--space", "team")) == ["b1"]
    assert ids(rows(data, "list", "--json", "--action", "created")) == ["a2", "b1", "a1"]
    assert rows(data, "list", "--json", "--action", "deleted") == []
    assert ids(rows(data, "list", "--json", "--action", "created", "--id", "b*")) == ["b1"]
    assert rows(data, "list", "--json", "--id", "b1")[0]["docs"][0]["action"] == "created"
    assert ids(served.client.get("/v1/audit?action=created&agent=bob").json()["entries"]) == ["b1"]
    assert len(rows(data, "list", "--json", "-n", "2")) == 2
    [blocked] = rows(data, "list", "--json", "--agent", "ann", "-n", "1")
    assert blocked["mode"] == "ask" and "docs" not in blocked
    assert rows(data, "list", "--json", "--outcome", blocked["outcome"]) == [blocked]
    assert len(rows(data, "list", "--json", "--since", "1h")) == 5
    assert rows(data, "list", "--json", "--since", "2100-01-01") == []
    assert rows(data, "list", "--json", "--until", "2000-01-01T00:00:00Z") == []
    first = lines(data, "list", "--agent", "bob")[0].split(" ", 1)[1]
    assert first == "ok rest bob notebook create notebooks/b1@1 #2"
    for words in (("list", "--since", "soon"), ("list", "-n", "0"), ("look",), ("list", "more"), ("redact",)):
        assert audit(data, *words).returncode == 2, words


def test_what_the_list_does_not_show(served):
    """On stderr, for people only: stdout has entries, and a program sees that there are none."""
    for words, told in ((("--agent", "eve"), "notegate: no entry fits\n"), (("--agent", "ann"), ""), (("-n", "1"), "")):
        done = audit(served.data_dir, "list", *words)
        assert (done.returncode, done.stderr) == (0, told), words
    assert audit(served.data_dir, "list", "--agent", "eve", "--json").stderr == ""
    for number in range(20):
        assert served.call("notebook", WRITE | {"name": f"n{number}"}, {"X-Notegate-Agent": "dan"}).status_code == 200
    eventually(lambda: len(rows(served.data_dir, "list", "--json", "--agent", "dan", "-n", "30")) == 20, what="all entries")
    done = audit(served.data_dir, "list")
    assert len(done.stdout.splitlines()) == 20 and done.stderr == "notegate: only the newest 20 are shown; -n N shows more, if more fit\n"


def test_filters_are_those_of_the_history(served):
    """Lists by commas, a final * and its escape, numbers of changes and other points."""
    data = served.data_dir
    assert served.call("notebook", WRITE | {"name": "a*"}, {"X-Notegate-Agent": "cy"}).status_code == 200
    found = eventually(lambda: rows(data, "list", "--json", "--id", r"a\*"), what="the entry")
    assert ids(found) == ["a*"]
    assert ids(rows(data, "list", "--json", "--id", "a*")) == ["a*", "a2", "a1"]
    assert ids(rows(data, "list", "--json", "--agent", "bob,cy")) == ["a*", "b1"]
    assert ids(rows(data, "list", "--json", "--run", "run-bob,run-ann", "--action", "deleted,created")) == ["a2", "b1", "a1"]
    assert ids(rows(data, "list", "--json", "--collection", "pages,notebooks", "--tool", "x,notebook", "--space", "team,x")) == ["a2", "b1", "a1"]
    assert rows(data, "list", "--json", "--agent", "an,n,ann bob", "--outcome", "ok") == []
    seqs = {row["docs"][0]["id"]: row["docs"][0]["seq"] for row in rows(data, "list", "--json") if "docs" in row}
    assert ids(rows(data, "list", "--json", "--since", f"#{seqs['a1']}", "--until", f"#{seqs['a2']}")) == ["a2", "b1"]
    assert rows(data, "list", "--json", "--until", "#0") == []
    assert ids(rows(data, "list", "--json", "--until", "now")) == ["a*", "a2", "b1", "a1"]

    def answered(**parameters):
        answer = served.client.get("/v1/audit", params=parameters)
        assert answer.status_code == 200, answer.text
        return ids(answer.json()["entries"])

    assert answered(agent="bob,cy") == ["a*", "b1"] and answered(id=r"a\*") == ["a*"] and answered(since=f"#{seqs['a2']}") == ["a*"]
    for wrong in ({"since": "7"}, {"until": "#x"}, {"path": "a.txt"}, {"path": "/a.txt", "id": "a"}):
        refused(served.client.get("/v1/audit", params=wrong), 400, "INVALID_INPUT")
    for words in (("--since", "7"), ("--path", "no-folder/a"), ("--path", "/a", "--id", "a")):
        assert audit(data, "list", *words).returncode == 2, words


def test_entries_of_a_file(tmp_path):
    data, root = tmp_path / "data", tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root)
    gateway = Gateway(data, sets=["plugins=file_editor", "audit=on", f"roots={root}"])
    paths = [str(root / name) for name in ("one.txt", "sub/two.txt")]
    for path in paths:
        assert gateway.call("fileEditor", {"command": "create", "path": path, "file_text": "one\n"}).status_code == 200
    eventually(lambda: len(rows(data, "list", "--json", "--tool", "fileEditor")) == 2, what="the entries")
    assert ids(rows(data, "list", "--json", "--path", paths[0])) == paths[:1]
    assert ids(rows(data, "list", "--json", "--path", tmp_path / "link" / "sub" / "two.txt")) == paths[1:]
    assert ids(rows(data, "list", "--json", "--path", tmp_path / "link" / "sub" / "*")) == paths[1:]
    assert ids(rows(data, "list", "--json", "--path", root / "*")) == paths[::-1]
    assert rows(data, "list", "--json", "--path", root / "one.txt\\*") == []
    (root / "one.txt").unlink()
    assert ids(rows(data, "list", "--json", "--path", tmp_path / "link" / "one.txt")) == paths[:1]
    answer = gateway.client.get("/v1/audit", params={"path": paths[1]})
    assert ids(answer.json()["entries"]) == paths[1:]
    assert gateway.stop() == 0


def test_export(served):
    data = served.data_dir
    exported = rows(data, "export")
    assert [row["number"] for row in exported] == list(range(5)) and ids(exported) == ["a1", "b1", "a2"]
    events = rows(data, "export", "--ocsf", "--tool", "notebook")
    assert [(event["class_uid"], event["activity_id"], event["type_uid"], event["status_id"]) for event in events] == [
        (6003, 1, 600301, 1)] * 3 + [(6003, 1, 600301, 2)]
    event = events[0]
    assert event["metadata"]["version"] == "1.8.0" and event["metadata"]["sequence"] == 1
    assert event["actor"]["user"]["name"] == "ann" and event["src_endpoint"] == {"ip": "127.0.0.1"}
    assert event["api"]["operation"] == "create" and event["api"]["service"]["name"] == "notebook"
    assert [(item["type"], item["name"], item["version"]) for item in event["resources"]] == [("notebooks", "a1", "1")]
    assert event["unmapped"]["run"] == "run-ann" and event["time"] > 1600000000000


def test_verify_finds_what_was_changed(tmp_path):
    data = tmp_path / "data"
    assert "there is no audit log" in audit(data, "verify").stderr
    gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
    assert gateway.stop() == 0
    kept = tmp_path / "checkpoint"
    kept.write_bytes((data / "audit" / "checkpoint").read_bytes())
    gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
    assert gateway.call("notebook", WRITE).status_code == 200
    assert gateway.stop() == 0
    assert "the log is whole in itself" in lines(data, "verify")[-1]
    told = lines(data, "verify", "--checkpoint", kept)
    assert told[0].startswith(f"{data}/audit: 5 entries; ") and told[1].startswith("the log is whole, and goes on from")
    assert audit(data, "verify", "--checkpoint", "-", stdin=kept.read_text()).returncode == 0
    bundle = data / "audit" / tile_path("entries", 0, 5)
    bundle.write_bytes(bundle.read_bytes().replace(b'"operation":"create"', b'"operation":"delete"'))
    done = audit(data, "verify")
    assert done.returncode == 1
    assert done.stdout == "entry 3 is not the one whose hash is in its tile\nthe first bad entry is 3\n"


def test_redaction(served):
    data = served.data_dir
    before = raw_now(data)
    assert lines(data, "redact", "ann") == ["1 name redacted"]
    shown = eventually(lambda: rows(data, "list", "--json", "--number", "1")[0]["number"] == 5 and rows(data, "list", "--json"))
    assert (shown[0]["operation"], shown[0]["outcome"], shown[0]["face"]) == ("audit_redact", "ok", "rest")
    assert all(entry.get("agent", "~").startswith("~") for entry in shown if entry.get("agent") not in ("bob", "local"))
    assert "ann" not in names(data).values() and "bob" in names(data).values()
    assert raw_now(data)[:5] == before  # no entry changed
    assert audit(data, "verify").returncode == 0
    done = audit(data, "redact", "ann")
    assert done.returncode == 1 and 'no name in the audit log stands for "ann"' in done.stderr
    # A value that comes again gets another name, which can be told.
    assert served.call("notebook", WRITE | {"name": "a3"}, {"X-Notegate-Agent": "ann"}).status_code == 200
    eventually(lambda: ids(rows(data, "list", "--json", "--agent", "ann")) == ["a3"])


def raw_now(data):
    return [{key: value for key, value in row.items() if key not in ("agent",)} for row in rows(data, "export")]


def test_redaction_without_a_gateway(tmp_path):
    data = tmp_path / "data"
    gateway = Gateway(data, sets=[PLUGINS, "audit=on"])
    assert gateway.call("notebook", WRITE, {"X-Notegate-Agent": "ann"}).status_code == 200
    assert gateway.stop() == 0
    name = next(name for name, value in names(data).items() if value == "ann")
    assert lines(data, "redact", name, "--set", "audit=on") == ["1 name redacted"]
    assert entries(data)[1]["agent"] == name
    assert [entry["operation"] for entry in entries(data)] == ["start", "create", "stop", "audit_redact"]
    assert json.loads(raw(data)[1])["agent"] == name


def test_rest_is_for_admins(tmp_path):
    data = tmp_path / "data"
    gateway = Gateway(data, sets=[PLUGINS])
    admin, writer = add(data, "root", "--role", "admin"), add(data, "will")
    limited = add(data, "lim", "--role", "admin", "--tool", "notebook")
    for number in range(3):
        assert gateway.call("notebook", WRITE | {"name": f"n{number}"}, bearer(writer)).status_code == 200

    def get(path, key=admin):
        return gateway.client.get(path, headers=bearer(key))  # of whichever gateway there is then

    page = eventually(lambda: (found := get("/v1/audit?tool=notebook").json()).get("entries", [])[2:] and found)
    assert ids(page["entries"]) == ["n2", "n1", "n0"] and page["has_more"] is False
    assert page["entries"][0]["key"] == key_id(writer) and page["entries"][0]["agent"] == "will"
    first = get("/v1/audit?limit=2").json()
    assert len(first["entries"]) == 2 and first["has_more"] is True
    rest = get(f"/v1/audit?limit=200&before={first['next']}").json()
    numbers = [entry["number"] for entry in first["entries"] + rest["entries"]]
    assert numbers == sorted(numbers, reverse=True) and numbers[-1] == 0 and len(set(numbers)) == len(numbers)
    for path in ("/v1/audit", "/v1/audit/checkpoint", "/v1/audit/tile/0/000"):
        refused(get(path, writer), 403, "FORBIDDEN")
        refused(get(path, limited), 403, "FORBIDDEN")
        assert get(path, None).status_code == 401
    for bad in ("limit=0", "limit=201", "before=x", "color=red", "since=soon"):
        refused(get(f"/v1/audit?{bad}"), 400, "INVALID_INPUT")
    refused(get("/v1/audit/tile/0/../../key"), 404, "NOT_FOUND")
    refused(get("/v1/audit/tile/%2e%2e/key"), 404, "NOT_FOUND")
    refused(get("/v1/audit/tile/9/000"), 404, "NOT_FOUND")

    assert gateway.stop() == 0  # signs a checkpoint
    gateway = Gateway(data, sets=[PLUGINS])
    note = get("/v1/audit/checkpoint")
    assert note.status_code == 200
    assert note.headers["content-type"].startswith("text/plain")
    origin, size, root = note.text.splitlines()[:3]
    assert origin.startswith("notegate/") and int(size) > 0 and len(base64.b64decode(root)) == 32
    bundle = get("/v1/audit/" + tile_path("entries", 0, int(size)))
    assert bundle.status_code == 200 and bundle.content == (data / "audit" / tile_path("entries", 0, int(size))).read_bytes()

    def redact(key, body):
        return gateway.client.post("/v1/audit/redact", json=body, headers=bearer(key))

    refused(redact(writer, {"name": "will"}), 403, "FORBIDDEN")
    refused(redact(admin, {"nam": "will"}), 400, "INVALID_INPUT")
    assert redact(admin, {"name": "will"}).json() == {"names": 1}
    refused(redact(admin, {"name": "will"}), 404, "NOT_FOUND")
    assert get("/v1/audit?agent=will").json()["entries"] == []
    assert gateway.stop() == 0
    assert entries(data)[-2]["operation"] == "audit_redact" and entries(data)[-2]["agent"] == "root"
