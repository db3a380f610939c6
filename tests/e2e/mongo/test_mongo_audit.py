# SPDX-License-Identifier: MIT
"""Audit logs of gateways that share a database: after a kill each adds its own changes that have no entry, and no others."""

import concurrent.futures
import contextlib
import itertools
import os

import pytest
from audit_support import entries
from conftest import Gateway, eventually
from disk_support import fill, mounted
from keys_support import WRITE, add, bearer, key_id
from mongo_world import SECONDS, lined, mongo, unavailable  # noqa: F401

numbers = itertools.count(1)
PAD = "pad"
LOOKED_BACK = 4096  # entries that may be of changes behind a mark that is taken at a start


@pytest.fixture(name="uri")
def fixture_uri(mongo):  # noqa: F811
    return f"mongodb://127.0.0.1:{mongo.port}/?directConnection=true", f"notegate_audit_{next(numbers)}"


def mark_of(data):
    """Each mark of a log is a new file."""
    seen = data / "audit" / "seen"
    return seen.stat().st_ino if seen.exists() else None


def begin(data, uri, audit="on", ready=True):
    before = mark_of(data)
    gateway = Gateway(data, sets=["documents=mongo", f"mongo.uri={uri[0]}", f"mongo.database={uri[1]}", "mongo.timeout=5s",
                                  "plugins=notebook,agent_notebook,file_editor,history", f"audit={audit}"])
    gateway.mark = before
    if ready:
        eventually(lambda: gateway.client.get("/readyz").status_code == 200, SECONDS, "readiness")
    return gateway


def kill(gateway):
    gateway.client.close()
    gateway.process.kill()
    gateway.process.wait()
    gateway.read_all()


def write(gateway, name, space="shared", **headers):
    """Creates a notebook, or adds to it."""
    answer = gateway.call("notebook", WRITE | {"name": name}, {"X-Notegate-Space": space} | headers)
    assert answer.status_code == 200, answer.text


def marked(gateway):
    """The log has another mark: at the first one after a start, what is missing was added."""
    eventually(lambda: mark_of(gateway.data_dir) not in (None, gateway.mark), SECONDS, "a mark of the audit log")
    gateway.mark = mark_of(gateway.data_dir)


def cut_off(gateway, disk):
    """The log takes no entries any more, from now on; the file that takes the room, and the changes until it was full."""
    filler = fill(disk)
    pads = []

    def refuses():
        pads.append(f"{PAD}{len(pads)}")
        write(gateway, pads[-1])
        return gateway.client.get("/readyz").json()["status"] == "degraded"

    eventually(refuses, SECONDS, "a full disk")
    return filler, pads


def told(data):
    """Collection, space, id and revision of each change in a log."""
    return [(doc["collection"], entry.get("space"), doc["id"], doc["revision"]) for entry in entries(data)
            for doc in entry.get("docs", ())]


def padded(data):
    return [name for _, _, name, _ in told(data) if name.startswith(PAD)]


def recovered(data):
    """Those behind the changes that made the disk full."""
    return [(entry["space"], doc["id"], doc["revision"]) for entry in entries(data) if entry["outcome"] == "recovered"
            for doc in entry["docs"] if not doc["id"].startswith(PAD)]


def settle(data, uri):
    """A start that adds what is missing, and a stop."""
    gateway = begin(data, uri)
    eventually(lambda: gateway.logged("(recovered)"), SECONDS, "recovered changes")
    assert gateway.stop() == 0


@contextlib.contextmanager
def two(tmp_path, uri):
    """A gateway whose log is on a small disk, and another one."""
    data = tmp_path / "one"
    data.mkdir(mode=0o700)
    with mounted(data / "audit", "1M") as disk:
        one = begin(data, uri)
        other = begin(tmp_path / "other", uri)
        try:
            yield one, other, disk
        finally:
            kill(other)


def test_own_changes_without_entries_are_added_once(tmp_path, uri):
    with two(tmp_path, uri) as (one, other, disk):
        data = one.data_dir
        write(one, "before")
        write(other, "before")  # the next revision of the same notebook
        marked(one)
        write(one, "written")
        eventually(lambda: len(told(data)) == 2, SECONDS, "entries")
        filler, pads = cut_off(one, disk)
        write(one, "lost", "team", **{"X-Notegate-Agent": "ann", "X-Notegate-Run": "run-1", "X-Request-Id": "r-1"})
        write(one, "lost", "another")  # the same id and revision in another space
        write(one, "written")
        write(other, "lost", "team")
        write(other, "written")
        kill(one)
        write(other, "later")
        os.remove(filler)
        settle(data, uri)
        assert sorted(recovered(data)) == [("another", "lost", 1), ("shared", "written", 2), ("team", "lost", 1)]
        entry = next(entry for entry in entries(data) if entry["outcome"] == "recovered" and entry["space"] == "team")
        assert (entry["agent"], entry["run"], entry["request"]) == ("ann", "run-1", "r-1")
        assert entry["tool"] == "notebook" and "face" not in entry and entry["docs"][0]["seq"] > 0
        kept = told(data)
        for _ in range(2):  # neither a stop nor a kill makes it add anything again
            one = begin(data, uri)
            marked(one)
            assert not one.logged("(recovered)")
            kill(one)
        assert told(data) == kept and len(kept) == len(set(kept)) == 5 + len(pads)
        marked(other)
        assert other.stop() == 0
    assert recovered(tmp_path / "other") == []
    assert sorted(told(tmp_path / "other")) == [
        ("notebooks", "shared", "before", 2), ("notebooks", "shared", "later", 1), ("notebooks", "shared", "written", 3),
        ("notebooks", "team", "lost", 2)]


def test_a_start_without_the_database(mongo, tmp_path, uri):  # noqa: F811
    """Nothing is lost: what is missing is added once the database answers, and changes of this start are no such ones."""
    with lined(mongo) as line:
        far = line.uri, uri[1]
        with two(tmp_path, uri) as (one, other, disk):
            data = one.data_dir
            marked(one)
            filler, pads = cut_off(one, disk)
            write(one, "lost")
            kill(one)
            os.remove(filler)
            with line.fault(times=None, cut="before"):
                one = begin(data, far, ready=False)
                assert unavailable(one.call("notebook", WRITE))
            write(other, "lost")
            eventually(lambda: one.client.get("/readyz").status_code == 200, SECONDS, "readiness")
            write(one, "new")
            eventually(lambda: one.logged("(recovered)"), SECONDS, "recovered changes")
            marked(one)
            assert one.stop() == 0
            assert recovered(data) == [("shared", "lost", 1)]
            assert sorted(padded(data)) == sorted(pads) and len(told(data)) == 2 + len(pads)


@pytest.mark.long
def test_a_log_without_a_mark_and_a_start_without_the_database(mongo, tmp_path, uri):  # noqa: F811
    """Where the log was at the last stop is not known, nor the newest change: no entry is added a second time."""
    with lined(mongo) as line:
        one = begin(tmp_path, uri)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda number: write(one, f"n{number}"), range(LOOKED_BACK + 100)))
        assert one.stop() == 0
        (tmp_path / "audit" / "seen").unlink()
        with line.fault(times=None, cut="before"):
            one = begin(tmp_path, (line.uri, uri[1]), ready=False)
            assert unavailable(one.call("notebook", WRITE))
        eventually(lambda: one.client.get("/readyz").status_code == 200, SECONDS, "readiness")
        write(one, "new")
        eventually(lambda: len(told(tmp_path)) >= LOOKED_BACK + 101, SECONDS, "entries")
        marked(one)  # the one of the start
        marked(one)
        assert one.stop() == 0
        assert recovered(tmp_path) == [] and len(told(tmp_path)) == LOOKED_BACK + 101


def test_files_and_calls_with_several_documents(tmp_path, uri):
    with two(tmp_path, uri) as (one, _, disk):
        data = one.data_dir
        for name in ("plan", "budget"):
            write(one, name, "team", **{"X-Notegate-Run": "night", "X-Notegate-Agent": "ann"})
        marked(one)
        ann = {"X-Notegate-Agent": "ann", "X-Notegate-Space": "team"}
        undone = one.call("history_undo", {"run": "night", "dry_run": False}, ann)
        assert undone.status_code == 200 and undone.json()["result"]["undone"] == 2, undone.text
        saved = one.call("fileEditor", {"command": "create", "path": str(data / "files" / "plan.md"), "file_text": "one"})
        assert saved.status_code == 200, saved.text
        eventually(lambda: len(told(data)) == 5, SECONDS, "entries")
        filler, pads = cut_off(one, disk)
        saved = one.call("fileEditor", {"command": "create", "path": str(data / "files" / "lost.md"), "file_text": "one"}, ann)
        assert saved.status_code == 200, saved.text
        kill(one)
        os.remove(filler)
        settle(data, uri)
        [(space, path, _)] = recovered(data)
        assert path.endswith("lost.md")
        assert sorted(padded(data)) == sorted(pads) and len(told(data)) == 6 + len(pads)


def test_a_name_that_was_redacted(tmp_path, uri):
    with two(tmp_path, uri) as (one, _, disk):
        data = one.data_dir
        marked(one)
        write(one, "secret")
        answer = one.client.post("/v1/audit/redact", json={"name": "secret"})
        assert answer.status_code == 200, answer.text
        filler, pads = cut_off(one, disk)
        write(one, "lost")
        kill(one)
        os.remove(filler)
        settle(data, uri)
        assert recovered(data) == [("shared", "lost", 1)] and sorted(padded(data)) == sorted(pads)


def test_many_changes_of_others(tmp_path, uri):
    """More than are read at once, on both sides of the own one."""
    with two(tmp_path, uri) as (one, other, disk):
        data = one.data_dir
        marked(one)
        filler, pads = cut_off(one, disk)
        for number in range(1100):
            write(other, f"n{number % 7}")
            if number == 550:
                write(one, "lost")
        kill(one)
        os.remove(filler)
        settle(data, uri)
        assert recovered(data) == [("shared", "lost", 1)] and sorted(padded(data)) == sorted(pads)


def test_a_log_that_begins_with_the_first_key(tmp_path, uri):
    """The first key has one entry, and what comes after it. A change of the moment before may have one, too."""
    data = tmp_path / "one"
    one = begin(data, uri, audit="auto")
    write(one, "before")
    token = add(data, "root", "--role", "admin")
    write(one, "after", **bearer(token))
    marked(one)
    write(one, "late", **bearer(token))
    kill(one)
    for _ in range(2):
        one = begin(data, uri, audit="auto")
        marked(one)
        assert one.stop() == 0
    found = [(doc["collection"], doc["id"]) for entry in entries(data) for doc in entry.get("docs", ())
             if doc["id"] != "before"]
    assert sorted(found) == [("keys", key_id(token)), ("notebooks", "after"), ("notebooks", "late")]
