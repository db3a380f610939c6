# SPDX-License-Identifier: MIT
"""The stream of changes: what an event is, positions, filters, keys, other ways in, the end."""

import datetime
import re
import subprocess

import httpx
import pytest
from conftest import binary, environment, eventually
from events_support import EVENTS, events_url, flood, numbers, raw_stream, read_until, stream, write
from preload_support import fast  # noqa: F401 (a fixture)
from sse_support import Stream
from tls_support import authority  # noqa: F401 (a fixture)

MEMBERS = {"seq", "time", "agent", "space", "tool", "action", "collection", "id", "revision", "request_id", "added",
           "removed"}


def edit(gateway, **arguments):
    answer = gateway.call("fileEditor", arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()


def what(events):
    return [(e.json()["collection"], e.json()["action"], e.json()["id"]) for e in events]


def refused(gateway, query="", **headers):
    answer = gateway.client.get(EVENTS + query, headers=headers)
    assert answer.status_code == 400, answer.text
    body = answer.json()
    assert body["code"] == "INVALID_INPUT"
    return body["message"]


# ---- what an event is ----


def test_a_stream_opens_before_anything_happens(gateway):
    with Stream(events_url(gateway), wait_open=False) as reader:
        assert reader.comment() == "notegate"
        assert reader.answer.headers["content-type"] == "text/event-stream"
        assert reader.answer.headers["cache-control"] == "no-store"
        assert reader.answer.headers["x-accel-buffering"] == "no"
        write(gateway)
        assert reader.next().name == "change"
        assert reader.retry > 0


def test_an_event_tells_who_changed_what(start):
    gateway = start()
    with stream(gateway) as reader:
        before = datetime.datetime.now(datetime.timezone.utc)
        revision = write(gateway, name="plan", agent="ada", space="shared")
        event = reader.next()
        body = event.json()
        assert set(body) == MEMBERS
        assert event.id == str(body["seq"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["time"])
        stamp = datetime.datetime.fromisoformat(body["time"].replace("Z", "+00:00"))
        assert abs(stamp - before) < datetime.timedelta(hours=1)
        del body["seq"], body["time"]
        assert re.fullmatch(r"[0-9a-zA-Z-]+", body.pop("request_id"))
        assert body == {"agent": "ada", "space": "shared", "tool": "notebook", "action": "created",
                        "collection": "notebooks", "id": "plan", "revision": revision, "added": 2, "removed": 0}


def test_an_event_counts_the_lines_of_its_change(start):
    """Those of the stretch that was replaced; whole lines that are put in or taken out count as they are."""
    gateway = start()
    steps = [({"mode": "create", "newStr": "- a\n- b\n- c\n"}, (4, 0)),
             ({"mode": "write", "newStr": "- d\n"}, (1, 0)),
             ({"mode": "write", "oldStr": "- b\n", "newStr": ""}, (0, 1)),
             ({"mode": "write", "oldStr": "- a\n", "newStr": "- a\n- x\n"}, (1, 0)),
             ({"mode": "write", "oldStr": "- c", "newStr": "- C"}, (1, 1)),
             ({"mode": "clear"}, (0, 5))]
    with stream(gateway) as reader:
        for arguments, counts in steps:
            assert gateway.call("notebook", {"name": "n", **arguments}).status_code == 200
            body = reader.next().json()
            assert (body["added"], body["removed"]) == counts, arguments


def test_each_kind_of_change_is_one_event(start):
    gateway = start()
    path = str(gateway.data_dir / "files" / "a.txt")
    other = str(gateway.data_dir / "files" / "b.txt")
    third = str(gateway.data_dir / "files" / "c.txt")
    with stream(gateway) as reader:
        for arguments in ({"mode": "create", "newStr": "one"}, {"mode": "write", "newStr": "two"},
                          {"mode": "clear"}):
            assert gateway.call("notebook", {"name": "n", **arguments}).status_code == 200
        revisions = [edit(gateway, path=path, **arguments)["revision"] for arguments in (
            {"command": "create", "file_text": "one\n"},
            {"command": "str_replace", "old_str": "one", "new_str": "two"},
            {"command": "insert", "insert_line": 0, "new_str": "zero"},
            {"command": "undo_edit"},
            {"command": "copy", "destination": other})]
        edit(gateway, command="move", path=other, destination=third)
        assert gateway.call("notebook", {"mode": "read", "name": "n"}).status_code == 200
        edit(gateway, command="view", path=path)
        assert gateway.call("notebook", {"mode": "create", "name": "last", "newStr": "x"}).status_code == 200
        events = []
        while not events or events[-1].json()["id"] != "last":
            events.append(reader.next())
    assert what(events)[:3] == [("notebooks", action, "n") for action in ("created", "updated", "updated")]
    files = [event.json() for event in events[3:-1]]
    assert [(file["action"], file["id"]) for file in files] == [
        ("created", path), ("updated", path), ("updated", path), ("updated", path), ("created", other),
        ("moved", third), ("deleted", other)]
    assert {(file["collection"], file["tool"], file["space"]) for file in files} == {("files", "fileEditor", "shared")}
    # A file's revision is the one the tool takes, and moves name both ends.
    assert [file["revision"] for file in files[:5]] == revisions
    assert (files[5]["from"], files[6]["to"]) == (other, third)


def test_a_change_that_failed_is_no_event(start):
    gateway = start()
    with stream(gateway) as reader:
        assert gateway.call("notebook", {"mode": "write", "name": "n", "oldStr": "not there",
                                         "newStr": "x"}).status_code >= 400
        assert gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "x",
                                         "expectedRevision": 7}).status_code == 409
        write(gateway, name="marker")
        assert reader.next().json()["id"] == "marker"


# ---- position ----


def test_since_gives_what_was_before(start):
    gateway = start()
    for i in range(5):
        write(gateway, name=f"n{i}")
    with stream(gateway, since=0) as reader:
        events = reader.take(5)
        assert [event.json()["id"] for event in events] == [f"n{i}" for i in range(5)]
        write(gateway, name="live")
        assert reader.next().json()["id"] == "live"
    with stream(gateway, since=events[2].id) as reader:
        assert [event.json()["id"] for event in reader.take(3)] == ["n3", "n4", "live"]
    with stream(gateway, since=0, last=events[3].id) as reader:
        assert [event.json()["id"] for event in reader.take(2)] == ["n4", "live"]
    with stream(gateway) as reader:
        write(gateway, name="new")
        assert reader.next().json()["id"] == "new"


def test_a_bad_position_is_refused(start):
    gateway = start()
    write(gateway)
    with stream(gateway, since=0) as reader:
        last = int(reader.next().id)
    for value in ("x", "-1", "1.5", "1e3", "0x1", "99999999999999999999", ""):
        assert f'"{value}"' in refused(gateway, "?" + str(httpx.QueryParams(since=value)))
    for value in ("x", "-1", "12a"):
        message = refused(gateway, "", **{"Last-Event-ID": value})
        assert f'"{value}"' in message and "Last-Event-ID" in message
    beyond = last + 1000
    assert f"since is {beyond}" in refused(gateway, f"?since={beyond}")
    assert f"Last-Event-ID is {beyond}" in refused(gateway, "?since=0", **{"Last-Event-ID": str(beyond)})
    assert "second since" in refused(gateway, "?since=0&since=0")


def test_unknown_names_are_refused(gateway):
    assert '"colection"' in refused(gateway, "?colection=notebooks")
    assert '"notebook"' in refused(gateway, "?collection=notebook")
    assert '"notabook"' in refused(gateway, "?tool=notabook")
    assert '"notebooks,"' in refused(gateway, "?collection=notebooks,")
    assert "percent-encoded" in refused(gateway, "?collection=%ff")
    many = ",".join(["notebooks"] * 33)
    assert "too many" in refused(gateway, f"?collection={many}")


def test_an_agent_follows_others_and_a_run(start):
    gateway = start()
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for agent in ("ada", "bob", "cy"):
        write(gateway, name=f"of-{agent}", agent=agent, space="shared")
    with Stream(f"{events_url(gateway)}?since=0&agent=ada,cy") as reader:
        assert [event.json()["id"] for event in reader.take(2)] == ["of-ada", "of-cy"]
        write(gateway, name="more", agent="bob", space="shared")
        write(gateway, name="last", agent="cy", space="shared")
        assert reader.next().json()["id"] == "last"
    with stream(gateway, since=0, run=trace[3:35]) as reader:
        write(gateway, name="of none", agent="ada", space="shared")
        gateway.call("notebook", {"mode": "create", "name": "of the run", "newStr": "x"},
                     {"X-Notegate-Agent": "ada", "X-Notegate-Space": "shared", "traceparent": trace})
        event = reader.next().json()
        assert (event["id"], event["run"]) == ("of the run", trace[3:35])


def test_other_methods(gateway):
    answer = gateway.client.post(EVENTS)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    head = gateway.client.head(EVENTS)
    assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream")
    with gateway.connect() as raw:
        raw.request(f"HEAD {EVENTS} HTTP/1.1")
        assert raw.answer(head=True).status == 200
        raw.request("GET /healthz HTTP/1.1")
        assert raw.answer().status == 200
    eventually(lambda: gateway.in_use("streams") == 0)


def test_http_1_0_gets_the_events_without_chunks(start):
    gateway = start()
    write(gateway, name="old")
    with gateway.connect() as raw:
        raw.request(f"GET {EVENTS}?since=0 HTTP/1.0")
        while b'"id":"old"' not in raw.buffer:
            assert raw._more()
        write(gateway, name="new")
        while b'"id":"new"' not in raw.buffer:
            assert raw._more()
        assert b"Transfer-Encoding" not in raw.buffer
    eventually(lambda: gateway.in_use("streams") == 0)


# ---- filters and spaces ----


def test_filters(start):
    gateway = start()
    path = str(gateway.data_dir / "files" / "a.txt")

    def change():
        write(gateway, name="n")
        edit(gateway, command="insert", path=path, insert_line=0, new_str="one\n")
        write(gateway, name="m")

    (gateway.data_dir / "files" / "a.txt").write_text("zero\n")
    change()
    wanted = {
        "collection=files": ["files"],
        "collection=notebooks": ["notebooks"] * 2,
        "collection=notebooks,files": ["notebooks", "files", "notebooks"],
        "collection=notebooks&collection=files": ["notebooks", "files", "notebooks"],
        "collection=notebooks%2Cfiles": ["notebooks", "files", "notebooks"],
        "tool=fileEditor": ["files"],
        "tool=notebook": ["notebooks"] * 2,
        "tool=fileEditor,notebook&collection=notebooks": ["notebooks"] * 2,
    }
    readers = {query: Stream(f"{events_url(gateway)}?since=0&{query}") for query in wanted}
    nothing = Stream(f"{events_url(gateway)}?since=0&tool=fileEditor&collection=notebooks")
    try:
        for query, reader in readers.items():
            assert [e.json()["collection"] for e in reader.take(len(wanted[query]))] == wanted[query], query
        change()
        for query, reader in readers.items():
            assert [e.json()["collection"] for e in reader.take(len(wanted[query]))] == wanted[query], query
        with stream(gateway, since=0) as everything:
            everything.take(6)
        assert nothing.waiting() == 0
        assert all(reader.waiting() == 0 for reader in readers.values())
    finally:
        for reader in [*readers.values(), nothing]:
            reader.close()


def test_only_the_callers_spaces(start):
    gateway = start()

    def change():
        write(gateway, name="ada's", agent="ada")
        write(gateway, name="bob's", agent="bob")
        write(gateway, name="team's", agent="bob", space="team")
        write(gateway, name="all's", agent="bob", space="shared")

    with stream(gateway, "ada") as ada, stream(gateway, "bob") as bob, \
            Stream(events_url(gateway), headers={"X-Notegate-Agent": "eve", "X-Notegate-Space": "team"}) as team:
        for _ in range(2):
            change()
            assert [e.json()["id"] for e in ada.take(2)] == ["ada's", "all's"]
            assert [e.json()["id"] for e in bob.take(2)] == ["bob's", "all's"]
            assert [e.json()["id"] for e in team.take(2)] == ["team's", "all's"]
        assert [reader.waiting() for reader in (ada, bob, team)] == [0, 0, 0]
    with stream(gateway, "ada", since=0) as ada:
        assert [e.json()["id"] for e in ada.take(4)] == ["ada's", "all's"] * 2


# ---- keys ----


def add_key(gateway, *words):
    done = subprocess.run([binary(), "key", "add", *words, "--data-dir", str(gateway.data_dir)], capture_output=True,
                          text=True, timeout=120, env=environment(), check=True)
    return done.stdout.strip()


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def test_the_first_key_ends_streams_that_have_none(start):
    """Once a key exists every caller needs one, also open connections; except on the owner's socket."""
    gateway = start()
    keyless = Stream(events_url(gateway))
    gateway.call("notebook", {"mode": "create", "name": "open", "newStr": "x"})
    assert keyless.take(1)[0].json()["id"] == "open"
    add_key(gateway, "ada")
    keyless.rest()
    assert keyless.error is None
    assert gateway.client.get("/v1/events").status_code == 401


def test_a_revoked_key_ends_its_streams(start):
    """Also that of a client which takes nothing; those of other keys go on."""
    gateway = start()
    ada, bob = add_key(gateway, "ada"), add_key(gateway, "bob")
    revoked = Stream(events_url(gateway), headers=bearer(ada))
    other = Stream(events_url(gateway), headers=bearer(bob))
    stuck = raw_stream(gateway, "?since=0", receive=4096, header=f"Authorization: Bearer {ada}")
    try:
        read_until(stuck, b": notegate")
        for i in range(1500):
            answer = gateway.call("notebook", {"mode": "create", "name": f"{'long' * 50}{i}", "newStr": "x"},
                                  {**bearer(bob), "X-Notegate-Space": "shared"})
            assert answer.status_code == 200, answer.text
        revoked.take(1500)
        subprocess.run([binary(), "key", "revoke", "ada", "--data-dir", str(gateway.data_dir)], capture_output=True,
                       timeout=120, env=environment(), check=True)
        last = revoked.rest()[-1]
        assert (last.name, last.json()["reason"], last.id) == ("closed", "key_revoked", None)
        assert revoked.error is None
        metrics = lambda: gateway.client.get("/metrics", headers=bearer(bob)).text
        eventually(lambda: 'notegate_in_use{name="streams"} 1\n' in metrics())
        answer = gateway.call("notebook", {"mode": "create", "name": "on", "newStr": "x"},
                              {**bearer(bob), "X-Notegate-Space": "shared"})
        assert answer.status_code == 200
        assert other.take(1501)[-1].json()["id"] == "on"
    finally:
        stuck.close()
        revoked.close()
        other.close()


def test_an_expired_key_ends_its_streams(start):
    gateway = start()
    add_key(gateway, "bob")
    for seconds in (2, 10, 60):  # the command may take longer than its key lives
        key = bearer(add_key(gateway, "ada", "--expires", f"{seconds}s"))
        if gateway.client.get("/v1/tools", headers=key).status_code != 200:
            continue
        try:
            with Stream(events_url(gateway), headers=key) as reader:
                assert reader.next().json()["reason"] == "key_revoked"
                assert reader.rest() == []
            return
        except pytest.fail.Exception:
            if gateway.client.get("/v1/tools", headers=key).status_code == 200:
                raise
    pytest.fail("this machine is too slow to open a stream in time")


def test_a_key_sees_what_its_tools_see_in_its_spaces(start):
    gateway = start()
    path = str(gateway.data_dir / "files" / "a.txt")
    boss = bearer(add_key(gateway, "boss", "--role", "admin"))
    files = bearer(add_key(gateway, "files", "--tool", "fileEditor"))
    team = bearer(add_key(gateway, "team", "--space", "team"))

    def change(number):
        for space in ("shared", "team", "~boss"):
            answer = gateway.call("notebook", {"mode": "create", "name": f"{space}{number}", "newStr": "x"},
                                  {**boss, "X-Notegate-Space": space})
            assert answer.status_code == 200, answer.text
        command = {"command": "create", "file_text": "x"} if number == 0 else {
            "command": "insert", "insert_line": 0, "new_str": "y"}
        assert gateway.call("fileEditor", {"path": path, **command}, boss).status_code == 200

    with Stream(events_url(gateway), {"since": 0}, files) as of_files, \
            Stream(events_url(gateway), {"since": 0}, team) as of_team, \
            Stream(events_url(gateway), {"since": 0, "collection": "notebooks,files"}, boss) as of_all:
        for number in range(2):
            change(number)
            assert [e.json()["id"] for e in of_files.take(1)] == [path]
            assert [e.json()["id"] for e in of_team.take(1)] == [f"team{number}"]
            assert [e.json()["id"] for e in of_all.take(4)] == [
                f"shared{number}", f"team{number}", f"~boss{number}", path]
        assert [reader.waiting() for reader in (of_files, of_team, of_all)] == [0, 0, 0]


# ---- other ways in ----


def test_over_tls(start, authority):
    gateway = start(sets=authority.sets(), verify=authority.context())
    with Stream(events_url(gateway), {"since": 0}, verify=authority.context()) as left:
        flood(gateway, 300)
        assert len(set(numbers(left.take(300)))) == 300
    eventually(lambda: gateway.in_use("streams") == 0)
    with Stream(events_url(gateway), verify=authority.context()) as reader:
        write(gateway, name="late")
        assert reader.next().json()["id"] == "late"
        gateway.terminate()
        assert reader.rest()[-1].json()["reason"] == "stopping"
        assert reader.error is None


def test_over_the_unix_socket(start):
    gateway = start()
    with gateway.connect_local() as raw:
        raw.request(f"GET {EVENTS} HTTP/1.1")
        read_until(raw.socket, b": notegate")
        write(gateway, name="n", agent="ada")
        write(gateway, name="m", space="shared")
        text = read_until(raw.socket, b'"id":"m"')
        assert b'"id":"n"' in text  # the owner sees all spaces
    eventually(lambda: gateway.in_use("streams") == 0)


# ---- the end ----


def test_streams_end_cleanly_when_the_gateway_stops(start):
    gateway = start(sets=["shutdown_timeout=5min"])
    readers = [stream(gateway) for _ in range(5)]
    stuck = raw_stream(gateway, "?since=0", receive=4096)
    try:
        read_until(stuck, b": notegate")
        flood(gateway, 800)
        for reader in readers:
            reader.take(800)
        gateway.terminate()
        for reader in readers:
            last = reader.rest()[-1]
            assert (last.name, last.json()["reason"]) == ("closed", "stopping")
            assert last.id is None
            assert reader.error is None
        assert gateway.stop() == 0  # long before shutdown_timeout
    finally:
        stuck.close()
        for reader in readers:
            reader.close()


def test_quiet_streams_get_a_comment(fast, start):  # noqa: F811
    with stream(start()) as reader:
        assert reader.comment() == ""


def test_openapi_describes_the_stream(gateway):
    document = gateway.client.get("/openapi.json").json()
    path = document["paths"][EVENTS]["get"]
    parameters = [document["components"]["parameters"][one["$ref"].rsplit("/", 1)[1]] for one in path["parameters"]]
    assert {one["name"] for one in parameters} >= {"since", "collection", "tool", "Last-Event-ID"}
    names = document["components"]["schemas"]
    assert "notebook" in names["ToolName"]["enum"] and "files" in names["CollectionName"]["enum"]
    assert "text/event-stream" in path["responses"]["200"]["content"]


def test_the_events_lie_in_the_log_of_changes(start):
    """The stream agrees with the data: the sum of events gives the state."""
    gateway = start()
    for i in range(10):
        write(gateway, name=f"n{i % 3}", text=f"{i}")
    with stream(gateway, since=0) as reader:
        newest = {}
        for event in reader.take(10):
            newest[event.json()["id"]] = event.json()["revision"]
    for name, revision in newest.items():
        read = gateway.call("notebook", {"mode": "read", "name": name}).json()
        assert read["revision"] == revision
