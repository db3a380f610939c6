# SPDX-License-Identifier: MIT
"""Where each change came from - run, key, request, lines - in stores of earlier versions and in backups."""

import contextlib
import sqlite3

import pytest
from cli_support import notegate
from conftest import Gateway
from events_support import stream

ORIGIN = {"run", "request_id", "added", "removed"}
CHANGES = [("create", "one\ntwo\n"), ("write", "three\n"), ("write", "four\n")]


def change(gateway, name, changes=CHANGES):
    for mode, text in changes:
        answer = gateway.call("notebook", {"mode": mode, "name": name, **({"newStr": text} if text else {})},
                              {"X-Request-Id": f"{name}-{mode}", "X-Notegate-Run": "nightly-7"})
        assert answer.status_code == 200, answer.text


def events(gateway, count):
    with stream(gateway, since=0) as reader:
        return [reader.next().json() for _ in range(count)]


@pytest.fixture(name="data")
def fixture_data(tmp_path):
    """Two notebooks, one of them gone."""
    gateway = Gateway(tmp_path / "data")
    try:
        change(gateway, "kept")
        change(gateway, "gone", CHANGES[:1])
        change(gateway, "gone", [("delete", None)])
    finally:
        assert gateway.stop() == 0
    return tmp_path / "data"


def make_layout_3(data):
    """As a gateway has left it that did not record origins."""
    with contextlib.closing(sqlite3.connect(data / "notegate.db", isolation_level=None)) as store:
        store.execute("DROP TABLE origins")
        store.execute("DROP TABLE trail")
        store.execute("PRAGMA user_version=3")


def origins(data):
    with contextlib.closing(sqlite3.connect(data / "notegate.db")) as store:
        return store.execute("SELECT agent, run, sum(changes), min(first_seq), max(last_seq) FROM origins GROUP BY agent, run"
                             ).fetchall(), store.execute("SELECT count(*), count(added), count(request) FROM trail").fetchone()


def test_a_store_of_an_earlier_version(data):
    make_layout_3(data)
    gateway = Gateway(data)
    try:
        before = events(gateway, 5)
        assert not any(ORIGIN & set(event) for event in before), before
        assert [event["id"] for event in before] == ["kept"] * 3 + ["gone"] * 2
        change(gateway, "kept", CHANGES[1:2])
        after = events(gateway, 6)
        assert after[:5] == before
        assert {name: after[5][name] for name in ORIGIN} == {
            "run": "nightly-7", "request_id": "kept-write", "added": 1, "removed": 0}
    finally:
        assert gateway.stop() == 0
    done = notegate("verify", "--data-dir", data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert origins(data)[1] == (6, 1, 1)


def test_a_wrong_origin_is_found(data):
    with contextlib.closing(sqlite3.connect(data / "notegate.db", isolation_level=None)) as store:
        store.execute("UPDATE origins SET agent = 'mallory'")
        store.execute("DELETE FROM trail WHERE seq = 2")
    done = notegate("verify", "--data-dir", data)
    assert done.returncode == 1
    for seq in range(1, 6):
        assert f"the change {seq} has no origin, or a wrong one" in done.stdout + done.stderr


def test_a_backup_keeps_them(data, tmp_path):
    gateway = Gateway(data)
    try:
        before = events(gateway, 5)
    finally:
        assert gateway.stop() == 0
    assert all(ORIGIN <= set(event) for event in before), before
    assert notegate("backup", tmp_path / "backup", "--data-dir", data).returncode == 0
    fresh = tmp_path / "fresh"
    assert notegate("restore", tmp_path / "backup", "--data-dir", fresh).returncode == 0
    assert origins(fresh) == origins(data)
    gateway = Gateway(fresh)
    try:
        assert events(gateway, 5) == before
    finally:
        assert gateway.stop() == 0
    assert notegate("verify", "--data-dir", fresh).returncode == 0
