# SPDX-License-Identifier: MIT
"""The disk under a serving gateway: full and freed again, files that are gone or replaced, and what of it is told."""

import contextlib
import json
import os
import shutil
import subprocess

import pytest
from conftest import Gateway, binary, environment, eventually
from disk_support import fill, free_bytes, mounted, remount
from prometheus_support import metrics_are_right

TIMEOUT = 120

# Space that must be enough for the next write, whatever filled the disk before.
FREED = 300 * 1024


@contextlib.contextmanager
def serving(data, **more):
    gateway = Gateway(data, **more)
    try:
        yield gateway
    finally:
        assert gateway.stop() == 0, gateway.errors


def command(*words):
    return subprocess.run([binary(), *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT,
                          env=environment(), cwd="/")


def create(gateway, name, text="text"):
    return gateway.call("notebook", {"mode": "create", "name": name, "newStr": text})


def append(gateway, text, name="n"):
    return gateway.call("notebook", {"mode": "write", "name": name, "newStr": text})


def metric(gateway, name):
    """The value of a series."""
    text = gateway.client.get("/metrics").text
    return next(float(row.split()[1]) for row in text.splitlines() if row.split()[0] == name)


def crowd(gateway):
    """Notebooks until none is taken, however short; their number."""
    made = 0
    for size in (200000, 20000, 2000, 20):
        while (answer := create(gateway, f"many{made}", "x" * size)).status_code == 200:
            made += 1
        assert answer.status_code == 507, answer.text
        assert answer.json()["code"] == "STORAGE_FULL"
    return made


@pytest.mark.parametrize("size", ["48M", "24M"])
def test_a_little_room_is_enough_for_the_next_write(tmp_path, size):
    with mounted(tmp_path / "disk", size) as disk:
        spare = disk / "spare"
        spare.write_bytes(b"\0" * (FREED * 4))
        with serving(disk / "data") as gateway:
            assert create(gateway, "n", "first").status_code == 200
            made = crowd(gateway)
            # The log may restart meanwhile, and give room.
            lines = ["first"]
            while (answer := append(gateway, f"more {len(lines)}")).status_code == 200:
                lines.append(f"more {len(lines)}")
            told = answer.json()["message"]
            assert "at least 2" in told and "KiB" in told  # 256 KiB and what little is written
            assert 256 * 1024 <= metric(gateway, "notegate_store_needed_bytes") < FREED
            for number in range(4):
                before = spare.stat().st_size
                os.truncate(spare, before - FREED)
                answer = append(gateway, f"kept {number}")
                assert answer.status_code == 200, answer.text
                assert metric(gateway, "notegate_store_needed_bytes") == 0
                fill(disk)
            assert free_bytes(disk) < 65536
        (disk / "filler").unlink()
        with serving(disk / "data") as gateway:
            read = gateway.call("notebook", {"mode": "read", "name": "n"}).json()
            assert read["result"].split("\n") == [*lines, *(f"kept {n}" for n in range(4))]
            for number in range(made):
                assert gateway.call("notebook", {"mode": "read", "name": f"many{number}"}).status_code == 200


# ---- files that are gone ----


def gone(answer, word):
    assert answer.status_code == 503, answer.text
    body = answer.json()
    assert body["code"] == "BACKEND_UNAVAILABLE"
    assert word in body["message"] and "notegate.db" in body["message"]


def files(data):
    return [data / name for name in ("notegate.db", "notegate.db-wal", "notegate.db-shm")]


def removed(data):
    for file in files(data):
        file.unlink()


def log_removed(data):
    (data / "notegate.db-wal").unlink()


def moved(data):
    for file in files(data):
        file.rename(str(file) + ".away")


def restored_over(data):
    """As `cp -p backup/notegate.db*` with a tool that writes a new file and renames it."""
    for file in files(data):
        shutil.copy(file, str(file) + ".new")
        os.rename(str(file) + ".new", file)


def folder_replaced(data):
    data.rename(str(data) + ".away")
    shutil.copytree(str(data) + ".away", data, ignore=shutil.ignore_patterns("*.sock"))


@pytest.mark.parametrize("what, word", [(removed, "is gone"), (log_removed, "is gone"), (moved, "is gone"),
                                        (restored_over, "another file"), (folder_replaced, "another file")])
def test_nothing_is_acknowledged_into_files_that_are_gone(tmp_path, what, word):
    data = tmp_path / "data"
    gateway = Gateway(data)
    assert create(gateway, "n", "first").status_code == 200
    what(data)
    for number in range(3):
        gone(append(gateway, f"lost {number}"), word)
        gone(create(gateway, f"new {number}"), word)
    ready = gateway.client.get("/readyz")
    assert ready.status_code == 503 and word in ready.json()["message"]
    assert ready.json()["reasons"] == [ready.json()["message"]]
    assert gateway.stop() == 0


def test_files_that_are_put_back_take_writes_again(tmp_path):
    data = tmp_path / "data"
    with serving(data, sets=["journal.record_calls=true"]) as gateway:
        assert create(gateway, "n", "first").status_code == 200
        moved(data)
        gone(append(gateway, "lost"), "put it back")
        eventually(lambda: gateway.logged('"record"', '"warning"', "calls are not recorded"), what="a warning")
        gone(append(gateway, "lost"), "put it back")
        for file in files(data):
            os.rename(str(file) + ".away", file)
        assert append(gateway, "second").status_code == 200
        assert gateway.client.get("/readyz").status_code == 200
        eventually(lambda: gateway.logged('"record"', '"info"', "calls are recorded again"), what="the end of it")
        assert len(gateway.logged('"record"')) == 2
    with serving(data) as gateway:
        assert gateway.call("notebook", {"mode": "read", "name": "n"}).json()["result"] == "first\nsecond"


# ---- what of it is told ----


def ready(gateway):
    answer = gateway.client.get("/readyz")
    assert answer.status_code == 200, answer.text
    return {name: value for name, value in answer.json().items() if name != "version"}


def refusal(gateway):
    answer = create(gateway, "too big", "x" * 1000000)
    assert answer.status_code == 507, answer.text
    return answer.json()["message"]


def test_a_disk_that_fills_is_told_of(tmp_path):
    with mounted(tmp_path / "disk", "40M") as disk, serving(disk / "data") as gateway:
        assert create(gateway, "n", "first").status_code == 200
        assert ready(gateway) == {"status": "ready"}
        assert metric(gateway, "notegate_data_total_bytes") == 40 * 1024 * 1024
        assert abs(metric(gateway, "notegate_data_free_bytes") - free_bytes(disk)) < 1024 * 1024
        size = metric(gateway, "notegate_data_size_bytes")
        assert 4096 < size < 2 * 1024 * 1024
        assert not gateway.logged('"disk"')

        filler = fill(disk, leave=1024 * 1024)
        told = ready(gateway)
        assert told["status"] == "degraded"
        assert len(told["reasons"]) == 1 and "nearly full" in told["reasons"][0] and str(disk) in told["reasons"][0]
        ready(gateway)
        assert metric(gateway, "notegate_data_free_bytes") < 2 * 1024 * 1024
        lines = eventually(lambda: gateway.logged('"disk"'), what="a line about the disk")
        assert len(lines) == 1 and '"warning"' in lines[0] and "less than 10 %" in lines[0]

        messages = {refusal(gateway) for _ in range(3)}
        assert all("no room is left" in message for message in messages)
        told = ready(gateway)
        assert told["status"] == "degraded" and len(told["reasons"]) == 2
        assert told["reasons"][0].startswith("writes are refused: ") and "free space there" in told["reasons"][0]
        lines = eventually(lambda: gateway.logged('"disk"', '"error"'), what="a line about the refusal")
        assert len(lines) == 1 and "a write was refused" in lines[0]
        assert metric(gateway, "notegate_store_failed_transactions_total") >= 3

        filler.unlink()
        assert ready(gateway) == {"status": "ready"}
        for over in ("writes are accepted again", "enough again"):
            eventually(lambda over=over: len(gateway.logged('"disk"', '"info"', over)) == 1, what=over)
        assert create(gateway, "too big", "x" * 1000000).status_code == 200
        assert metric(gateway, "notegate_data_size_bytes") > size + 1000000
        assert ready(gateway) == {"status": "ready"}


def test_a_disk_that_is_nearly_full_at_the_start_is_told_of_by_who_serves(tmp_path):
    with mounted(tmp_path / "disk", "40M") as disk:
        fill(disk, leave=2 * 1024 * 1024)
        done = command("call", "notebook", "mode=list", "--data-dir", disk / "data")
        assert (done.returncode, done.stderr) == (0, "")
        with serving(disk / "data") as gateway:
            eventually(lambda: gateway.logged('"disk"', '"warning"', "less than 10 %"), what="a warning")


def test_a_stranger_learns_no_reasons(tmp_path):
    with mounted(tmp_path / "disk", "40M") as disk, serving(disk / "data", sets=["auth=on"]) as gateway:
        fill(disk, leave=2 * 1024 * 1024)
        assert ready(gateway) == {"status": "degraded"}


def test_a_full_root_is_told_of(tmp_path):
    with mounted(tmp_path / "disk", "6M") as disk:
        with serving(tmp_path / "data", args=["--root", str(disk)]) as gateway:
            assert metric(gateway, f'notegate_root_total_bytes{{root="{disk}"}}') == 6 * 1024 * 1024
            fill(disk)
            for number in range(3):
                made = {"command": "create", "path": str(disk / f"{number}.txt"), "file_text": "z" * 200000}
                assert gateway.call("fileEditor", made).status_code == 507
            lines = eventually(lambda: gateway.logged('"disk"', '"error"'), what="a line about the refusal")
            assert len(lines) == 1 and str(disk) in lines[0]
            # The store's own disk has room.
            told = ready(gateway)
            assert told["status"] == "degraded" and len(told["reasons"]) == 1
            assert "nearly full" in told["reasons"][0] and str(disk) in told["reasons"][0]
            eventually(lambda: gateway.logged('"disk"', '"warning"', str(disk)), what="a warning")
            assert metric(gateway, f'notegate_root_free_bytes{{root="{disk}"}}') < 65536
            metrics_are_right(gateway)
            (disk / "filler").unlink()
            assert ready(gateway) == {"status": "ready"}
            eventually(lambda: gateway.logged('"disk"', '"info"', str(disk), "enough again"), what="the end of it")


def test_a_root_that_is_gone_is_told_of(tmp_path):
    roots = [tmp_path / "root", tmp_path / "other"]
    for root in roots:
        root.mkdir()
    with serving(tmp_path / "data", args=["--root", str(roots[0]), "--root", str(roots[1])]) as gateway:
        assert ready(gateway) == {"status": "ready"}
        roots[0].rename(tmp_path / "away")
        roots[1].rmdir()
        told = ready(gateway)
        assert told["status"] == "degraded"
        assert told["reasons"] == [f"the root {root} is not there" for root in roots]
        eventually(lambda: gateway.logged('"disk"', '"warning"', str(roots[0]), "missing: "), what="the warning")
        ready(gateway)
        assert len(gateway.logged('"disk"', '"warning"')) == 1
        (tmp_path / "away").rename(roots[0])
        roots[1].mkdir()
        assert ready(gateway) == {"status": "ready"}
        eventually(lambda: gateway.logged('"disk"', '"info"', str(roots[0]), "no longer missing: "), what="the end of it")


def check(data):
    done = command("check", "--json", "--data-dir", data)
    return done.returncode, {item["check"]: item for item in json.loads(done.stdout)["checks"]}


def test_check_looks_at_the_space(tmp_path):
    with mounted(tmp_path / "disk", "40M") as disk:
        data = disk / "data"
        with serving(data) as gateway:
            assert create(gateway, "n", "first").status_code == 200
            code, found = check(data)
            assert code == 0 and found["space"]["ok"] and "are free" in found["space"]["message"]
            filler = fill(disk, leave=2 * 1024 * 1024)
            code, found = check(data)
            assert code == 0 and "warning: the disk is nearly full" in found["space"]["message"]
            assert "degraded" in found["gateway"]["message"] and "nearly full" in found["gateway"]["message"]
        fill(disk)
        code, found = check(data)
        assert code == 1 and not found["space"]["ok"] and "No space left" in found["space"]["message"]
        filler.unlink()
        remount(disk, "ro")
        code, found = check(data)
        assert code == 1 and not found["space"]["ok"] and str(data) in found["space"]["message"]
        remount(disk, "rw")
        code, found = check(data)
        assert code == 0 and found["space"]["ok"]
