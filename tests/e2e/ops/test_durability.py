# SPDX-License-Identifier: MIT
"""Acknowledged writes stay: kills, full and read-only disks, damaged files, retries with an idempotency key."""

import concurrent.futures
import contextlib
import json
import os
import random
import resource
import sqlite3
import subprocess
import threading

import httpx
import pytest
from conftest import SUPPORT, Gateway, binary, environment, eventually
from disk_support import fill, mounted, remount

SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
KILLS = 5 if SANITIZED else 10
TIMEOUT = 120
DISK = "6M"


def kill(gateway):
    gateway.client.close()
    gateway.process.kill()
    gateway.process.wait()


@contextlib.contextmanager
def serving(data, **more):
    """A gateway that ends cleanly, or is dead already."""
    gateway = Gateway(data, **more)
    try:
        yield gateway
    except BaseException:
        kill(gateway)
        raise
    if gateway.process.poll() is None:
        assert gateway.stop() == 0, gateway.errors


def command(*words, **more):
    return subprocess.run([binary(), *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT,
                          env=environment(), **more)


def verified(data):
    done = command("verify", "--data-dir", data)
    assert done.returncode == 0, done.stdout + done.stderr


def refused(data, *words):
    """`serve` does not start: exit code 1, nothing on stdout, one sentence beside the log on stderr, which is returned."""
    done = command("serve", "--data-dir", data, "--listen", "127.0.0.1:0", *words, cwd="/")
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("{")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("notegate: ")
    return lines[0]


def fails(answer, status, code):
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert (body["error"], body["code"]) == (True, code), body
    return body


def append(gateway, text, name="n", headers=None):
    return gateway.call("notebook", {"mode": "write", "name": name, "newStr": text}, headers)


def read(gateway, name="n"):
    answer = gateway.call("notebook", {"mode": "read", "name": name})
    assert answer.status_code == 200, answer.text
    return answer.json()


# ---- a disk that gives up ----

if not SANITIZED:  # a sanitizer's runtime must come before everything that is preloaded

    def test_failing_syncs(tmp_path, monkeypatch):
        """Writes are refused while the disk cannot promise them, go on when it can, and none that was promised is lost."""
        shim, switch, data = tmp_path / "failing_sync.so", tmp_path / "fails", tmp_path / "data"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, SUPPORT / "failing_sync.c", "-ldl"], check=True)
        monkeypatch.setenv("LD_PRELOAD", str(shim))
        monkeypatch.setenv("FAILING_SYNC", str(switch))
        lines = ["first"]
        with serving(data) as gateway:
            assert gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "first"}).status_code == 200
            for number in range(3):
                switch.touch()
                for n in range(4):
                    error = fails(append(gateway, f"lost {number} {n}"), 503, "BACKEND_UNAVAILABLE")
                    assert "notegate.db" in error["message"] or n > 0, error
                assert read(gateway)["result"] == "\n".join(lines)
                switch.unlink()
                for n in range(4):
                    answer = append(gateway, f"kept {number} {n}")
                    assert answer.status_code == 200, answer.text
                    lines.append(f"kept {number} {n}")
            kill(gateway)
        monkeypatch.delenv("LD_PRELOAD")
        with serving(data) as gateway:
            now = read(gateway)
        assert now == {"result": "\n".join(lines), "revision": len(lines)}
        verified(data)


# ---- kills ----


def test_killed_with_the_answer_still_on_its_way(tmp_path):
    """Killed at once after an answer, again and again: notebook and file are as acknowledged."""
    data, root = tmp_path / "data", tmp_path / "root"
    root.mkdir()
    file = root / "f.txt"
    with serving(data, args=["--root", str(root)]) as gateway:
        assert gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "0"}).status_code == 200
        made = gateway.call("fileEditor", {"command": "create", "path": str(file), "file_text": "0\n"})
        assert made.status_code == 200
    for number in range(1, KILLS + 1):
        with serving(data, args=["--root", str(root)]) as gateway:
            lines = [str(n) for n in range(number)]
            assert read(gateway) == {"result": "\n".join(lines), "revision": number}, "an acknowledged write was lost"
            assert file.read_text().split() == lines
            insert = {"command": "insert", "path": str(file), "insert_line": number, "new_str": str(number)}
            calls = [lambda: append(gateway, str(number)), lambda: gateway.call("fileEditor", insert)]
            for call in calls if number % 2 else reversed(calls):
                answer = call()
                assert answer.status_code == 200, answer.text
            kill(gateway)
    verified(data)
    assert os.listdir(root) == [file.name]


def test_killed_under_load(tmp_path):
    """Killed while eight agents write: each acknowledged write exists once, the rest at most once, without gaps."""
    data = tmp_path / "data"
    acknowledged, sent = [], []

    def work(gateway, agent, number):
        with contextlib.suppress(httpx.HTTPError, RuntimeError):
            for n in range(10000):
                line = f"{agent}.{number}.{n}"
                sent.append(line)
                if append(gateway, line, headers={"X-Notegate-Space": "team"}).status_code != 200:
                    return
                acknowledged.append(line)

    chance = random.Random(7)
    for number in range(KILLS // 2):
        before = len(acknowledged)
        with serving(data) as gateway:
            if number == 0:
                made = {"mode": "create", "name": "n", "newStr": "first"}
                assert gateway.call("notebook", made, {"X-Notegate-Space": "team"}).status_code == 200
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for agent in range(8):
                    pool.submit(work, gateway, agent, number)
                try:
                    eventually(lambda before=before: len(acknowledged) > before, what="an acknowledged write")
                    threading.Event().wait(chance.uniform(0.05, 0.4))
                finally:
                    gateway.process.kill()
            gateway.process.wait()
    with serving(data) as gateway:
        now = gateway.call("notebook", {"mode": "read", "name": "n"}, {"X-Notegate-Space": "team"}).json()
    lines = now["result"].split("\n")
    assert acknowledged
    assert len(set(lines)) == len(lines)
    assert set(acknowledged) <= set(lines), "an acknowledged write was lost"
    assert set(lines) <= {"first", *sent}
    assert now["revision"] == len(lines)
    verified(data)


# ---- disks ----


@pytest.fixture
def disk(tmp_path):
    """A small file system of its own."""
    with mounted(tmp_path / "disk", DISK) as place:
        yield place


def test_full_disk(disk):
    data = disk / "data"
    with serving(data) as gateway:
        assert gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "first"}).status_code == 200
        lines, failures = ["first"], []
        filler = fill(disk, leave=100000)
        for number in range(2000):
            line = f"{number}:" + "x" * 400
            answer = append(gateway, line)
            if answer.status_code == 200:
                lines.append(line)
            else:
                failures.append(fails(answer, 507, "STORAGE_FULL"))
            if len(failures) == 20:
                break
        assert len(failures) == 20 and len(lines) > 1
        for body in failures:
            assert str(data) in body["message"] + body.get("hint", "")
        # Reads continue, and unacknowledged writes are not visible.
        assert read(gateway)["result"] == "\n".join(lines)
        assert gateway.client.get("/healthz").status_code == 200
        filler.unlink()
        # By itself: the next write is taken.
        answer = append(gateway, "after")
        assert answer.status_code == 200, answer.text
        lines.append("after")
        assert read(gateway) == {"result": "\n".join(lines), "revision": len(lines)}
        kill(gateway)
    with serving(data) as gateway:
        assert read(gateway) == {"result": "\n".join(lines), "revision": len(lines)}
    verified(data)


def test_full_disk_and_many_agents(disk):
    data = disk / "data"
    acknowledged, codes = [], set()
    with serving(data) as gateway:
        team = {"X-Notegate-Space": "team"}
        assert gateway.call("notebook", {"mode": "create", "name": "n"}, team).status_code == 200
        filler = fill(disk, leave=200000)

        def work(agent):
            for number in range(60):
                line = f"{agent}.{number}:" + "y" * 300
                answer = append(gateway, line, headers=team)
                codes.add(answer.status_code)
                if answer.status_code == 200:
                    acknowledged.append(line)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(work, agent) for agent in range(8)]:
                future.result()
        assert codes <= {200, 507} and 507 in codes
        filler.unlink()
        assert append(gateway, "after", headers=team).status_code == 200
        now = gateway.call("notebook", {"mode": "read", "name": "n"}, team).json()
        assert set(acknowledged) <= set(now["result"].split("\n")), "an acknowledged write was lost"
        assert sorted(now["result"].split("\n")) == sorted([*acknowledged, "after"])
        assert now["revision"] == len(acknowledged) + 2
    verified(data)


def test_files_at_the_limit_of_their_size(tmp_path):
    """RLIMIT_FSIZE, which ends a process that does not expect it."""
    with serving(tmp_path / "data") as gateway:
        assert gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "first"}).status_code == 200
        hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (4096, hard))
        fails(append(gateway, "x" * 10000), 507, "STORAGE_FULL")
        assert read(gateway) == {"result": "first", "revision": 1}
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert append(gateway, "second").status_code == 200
        assert read(gateway) == {"result": "first\nsecond", "revision": 2}
    verified(tmp_path / "data")


def test_full_disk_under_a_file(disk, tmp_path):
    """The data is elsewhere; the file that is edited has no room to grow."""
    file = disk / "f.txt"
    with serving(tmp_path / "data", args=["--root", str(disk)]) as gateway:
        text = "line\n" * 1000
        made = gateway.call("fileEditor", {"command": "create", "path": str(file), "file_text": text})
        assert made.status_code == 200, made.text
        filler = fill(disk)
        edit = {"command": "insert", "path": str(file), "insert_line": 1, "new_str": "z" * 200000}
        body = fails(gateway.call("fileEditor", edit), 507, "STORAGE_FULL")
        assert str(file) in body["message"]
        assert file.read_text() == text
        assert sorted(os.listdir(disk)) == ["f.txt", "filler"]
        filler.unlink()
        assert gateway.call("fileEditor", edit).status_code == 200
        assert gateway.call("fileEditor", {"command": "undo_edit", "path": str(file)}).status_code == 200
        assert file.read_text() == text
    verified(tmp_path / "data")


def test_start_on_a_full_disk(disk):
    fill(disk)
    line = refused(disk / "data")
    assert str(disk / "data") in line


def test_disk_that_becomes_read_only(disk):
    data = disk / "data"
    with serving(data) as gateway:
        assert gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "kept"}).status_code == 200
        kill(gateway)
    remount(disk, "ro")
    line = refused(data)
    assert str(data) in line
    remount(disk, "rw")
    with serving(data) as gateway:
        assert read(gateway)["result"] == "kept"


def test_read_only_folder(tmp_path):
    """For root, which may write everywhere, a file takes the place of the folder's parent."""
    parent = tmp_path / "parent"
    if os.geteuid() == 0:
        parent.write_text("")
    else:
        parent.mkdir(mode=0o500)
    assert str(parent) in refused(parent / "data")


def test_a_data_directory_that_is_a_file(tmp_path):
    data = tmp_path / "data"
    data.write_text("not a folder")
    assert str(data) in refused(data)


# ---- damage ----


def filled(data):
    """A store with some megabytes; the database's file."""
    with serving(data) as gateway:
        for number in range(30):
            text = "\n".join(f"{number} {line} {random.Random(line).random()}" for line in range(3000))
            made = gateway.call("notebook", {"mode": "create", "name": f"n{number}", "newStr": text})
            assert made.status_code == 200
    file = data / "notegate.db"
    assert file.stat().st_size > 500000
    return file


def damage_head(file):
    with open(file, "r+b") as out:
        out.write(b"this is not a database" * 10)


def damage_half(file):
    os.truncate(file, file.stat().st_size // 2)


def damage_cut(file):
    os.truncate(file, 1000)


@pytest.mark.parametrize("damage", [damage_head, damage_half, damage_cut])
def test_damaged_database(tmp_path, damage):
    data = tmp_path / "data"
    file = filled(data)
    damage(file)
    before = file.read_bytes()
    line = refused(data)
    assert str(file) in line
    assert "damaged" in line or "not a database" in line
    assert "restore" in line, "the way out is not told"
    assert file.read_bytes() == before, "what is left must not be touched"


def test_damage_in_the_middle(tmp_path):
    """Pages overwritten while the gateway was stopped: no start, or no answer from them; never wrong text, never a
    crash."""
    data = tmp_path / "data"
    file = filled(data)
    size = file.stat().st_size
    with open(file, "r+b") as out:
        out.seek(size // 3 // 4096 * 4096)
        out.write(random.Random(3).randbytes(size // 3))
    done = command("verify", "--data-dir", data)
    assert done.returncode == 1
    assert str(file) in done.stdout + done.stderr or "damaged" in done.stdout + done.stderr
    process = subprocess.run([binary(), "check", "--data-dir", str(data)], capture_output=True, text=True,
                             timeout=TIMEOUT, env=environment())
    if process.returncode == 1:
        assert str(file) in refused(data)
        return
    with serving(data) as gateway:
        for number in range(30):
            answer = gateway.call("notebook?raw=true", {"mode": "read", "name": f"n{number}"})
            if answer.status_code == 200:
                lines = answer.json()["result"].split("\n")
                assert len(lines) == 3000 and all(line.startswith(f"{number} ") for line in lines)
            else:
                assert str(file) in fails(answer, 503, "BACKEND_UNAVAILABLE")["message"]


def test_a_database_of_another_program(tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    with contextlib.closing(sqlite3.connect(data / "notegate.db")) as other:
        other.execute("CREATE TABLE theirs(x)")
        other.commit()
    assert str(data / "notegate.db") in refused(data)


# ---- one process owns a data directory ----


def test_second_serve(tmp_path):
    data = tmp_path / "data"
    with serving(data) as gateway:
        line = refused(data)
        assert str(gateway.process.pid) in line and str(data) in line
        assert gateway.call("notebook", {"mode": "list"}).status_code == 200
        kill(gateway)
    # A killed one is no obstacle.
    with serving(data) as gateway:
        assert gateway.call("notebook", {"mode": "list"}).status_code == 200


def test_many_start_at_once(tmp_path):
    """Exactly one gets the data directory."""
    data = tmp_path / "data"
    words = [binary(), "serve", "--data-dir", str(data), "--listen", "127.0.0.1:0"]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=environment(), cwd=tmp_path) for _ in range(4)]
    try:
        losers = concurrent.futures.ThreadPoolExecutor(4)
        ended = [losers.submit(process.wait, TIMEOUT) for process in processes]
        finished = []
        for future in concurrent.futures.as_completed(ended, timeout=TIMEOUT):
            finished.append(future.result())
            if len(finished) == 3:
                break
        assert finished == [1, 1, 1]
        running = [process for process in processes if process.poll() is None]
        assert len(running) == 1
        assert "listening on" in running[0].stdout.readline()
        running[0].terminate()
        assert running[0].wait(TIMEOUT) == 0
        losers.shutdown()
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


# ---- in memory ----


def test_documents_in_memory(tmp_path):
    data = tmp_path / "data"
    with serving(data, sets=["documents=memory"]) as gateway:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            made = gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "first"})
            assert made.json()["revision"] == 1
            answers = list(pool.map(lambda n: append(gateway, str(n)), range(50)))
        assert sorted(answer.json()["revision"] for answer in answers) == list(range(2, 52))
        assert len(read(gateway)["result"].split("\n")) == 51
        key = {"Idempotency-Key": "k"}
        assert append(gateway, "once", headers=key).json() == append(gateway, "once", headers=key).json()
    assert not list(data.glob("*.db*"))
    with serving(data, sets=["documents=memory"]) as gateway:
        fails(gateway.call("notebook", {"mode": "read", "name": "n"}), 404, "NOT_FOUND")


# ---- idempotency keys ----


def test_repeat_gets_the_first_answer(tmp_path):
    data, root = tmp_path / "data", tmp_path / "root"
    root.mkdir()
    file = root / "f.txt"
    insert = {"command": "insert", "path": str(file), "insert_line": 0, "new_str": "once"}
    with serving(data, args=["--root", str(root)]) as gateway:
        gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "first"})
        gateway.call("fileEditor", {"command": "create", "path": str(file), "file_text": "end\n"})
        note = append(gateway, "once", headers={"Idempotency-Key": "a"})
        edit = gateway.call("fileEditor", insert, {"Idempotency-Key": "b"})
        assert (note.status_code, edit.status_code) == (200, 200)
        append(gateway, "later")
        assert append(gateway, "once", headers={"Idempotency-Key": "a"}).json() == note.json()
        assert gateway.call("fileEditor", insert, {"Idempotency-Key": "b"}).json() == edit.json()
        kill(gateway)
    with serving(data, args=["--root", str(root)]) as gateway:
        assert append(gateway, "once", headers={"Idempotency-Key": "a"}).json() == note.json()
        assert gateway.call("fileEditor", insert, {"Idempotency-Key": "b"}).json() == edit.json()
        assert read(gateway)["result"] == "first\nonce\nlater"
        assert file.read_text() == "once\nend\n"


def test_key_with_another_body(tmp_path):
    with serving(tmp_path / "data") as gateway:
        gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "first"})
        assert append(gateway, "once", headers={"Idempotency-Key": "k"}).status_code == 200
        fails(append(gateway, "other", headers={"Idempotency-Key": "k"}), 422, "IDEMPOTENCY_KEY_REUSED")
        kill(gateway)
    with serving(tmp_path / "data") as gateway:
        fails(append(gateway, "other", headers={"Idempotency-Key": "k"}), 422, "IDEMPOTENCY_KEY_REUSED")
        # Another agent, space or tool: another key.
        other = {"Idempotency-Key": "k", "X-Notegate-Agent": "other"}
        assert gateway.call("notebook", {"mode": "create", "name": "n"}, other).json()["revision"] == 1
        space = {"Idempotency-Key": "k", "X-Notegate-Space": "team"}
        assert gateway.call("notebook", {"mode": "create", "name": "n"}, space).json()["revision"] == 1
        assert read(gateway)["result"] == "first\nonce"


def test_repeats_at_once_wait_for_the_first(tmp_path):
    with serving(tmp_path / "data") as gateway:
        gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "first"})
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for number in range(20):
                barrier = threading.Barrier(8)

                def send(_, number=number, barrier=barrier):
                    barrier.wait(TIMEOUT)
                    return append(gateway, f"line {number}", headers={"Idempotency-Key": f"k{number}"})

                answers = list(pool.map(send, range(8)))
                assert {answer.status_code for answer in answers} == {200}
                assert {answer.json()["revision"] for answer in answers} == {number + 2}
        assert read(gateway)["result"].split("\n") == ["first", *(f"line {n}" for n in range(20))]


def test_a_failed_call_can_be_repeated_as_it_was(tmp_path):
    """The repeat of a call that was refused gives the same refusal, and changes nothing."""
    with serving(tmp_path / "data") as gateway:
        wrong = {"mode": "write", "name": "n", "oldStr": "not there", "newStr": "x"}
        gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "first"})
        first = gateway.call("notebook", wrong, {"Idempotency-Key": "k"})
        again = gateway.call("notebook", wrong, {"Idempotency-Key": "k"})
        assert first.status_code >= 400
        assert (again.status_code, again.json()) == (first.status_code, first.json())
        assert read(gateway) == {"result": "first", "revision": 1}


@pytest.mark.parametrize("key", ["", "x" * 300])
def test_keys_that_are_none(tmp_path, key):
    with serving(tmp_path / "data") as gateway:
        answer = gateway.call("notebook", {"mode": "create", "name": "n"}, {"Idempotency-Key": key})
        fails(answer, 400, "INVALID_INPUT")
        assert gateway.call("notebook", {"mode": "read", "name": "n"}).status_code == 404


def test_repeats_across_kills(tmp_path):
    """A client that repeats each write until it is answered, through kills, has each exactly once."""
    data, root = tmp_path / "data", tmp_path / "root"
    root.mkdir()
    file = root / "f.txt"
    with serving(data, args=["--root", str(root)]) as gateway:
        gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "first"})
        gateway.call("fileEditor", {"command": "create", "path": str(file), "file_text": "first\n"})
        assert gateway.process.poll() is None
    chance = random.Random(11)
    for number in range(KILLS):
        line = f"line {number}"
        words = json.dumps({"mode": "write", "name": "n", "newStr": line}).encode()
        edit = json.dumps({"command": "insert", "path": str(file), "insert_line": 1, "new_str": line}).encode()
        with serving(data, args=["--root", str(root)]) as gateway, gateway.connect() as one, gateway.connect() as two:
            for raw, tool, body in ((one, "notebook", words), (two, "fileEditor", edit)):
                raw.request(f"POST /v1/tools/{tool} HTTP/1.1",
                            ["Content-Type: application/json", f"Idempotency-Key: {number}"], body)
            threading.Event().wait(chance.uniform(0, 0.01))
            kill(gateway)
        with serving(data, args=["--root", str(root)]) as gateway:
            for tool, body in (("notebook", words), ("fileEditor", edit)):
                answer = gateway.call(tool, json.loads(body), {"Idempotency-Key": str(number)})
                assert answer.status_code == 200, answer.text
            kill(gateway)
    expected = [f"line {number}" for number in range(KILLS)]
    with serving(data, args=["--root", str(root)]) as gateway:
        assert read(gateway)["result"].split("\n") == ["first", *expected]
    assert file.read_text().splitlines() == ["first", *reversed(expected)]
    verified(data)


def test_a_text_that_is_replaced_by_nearly_the_same_keeps_what_differs(tmp_path):
    data, size, rounds = tmp_path / "data", 500_000, 12
    text = ("A line of a long text.\n" * size)[:size]
    with serving(data) as gateway:
        for number in range(rounds):
            changed = f"{text[:size // 2]}{number:08}{text[size // 2:]}"
            answer = gateway.call("notebook", {"mode": "create", "name": "long", "newStr": changed})
            assert answer.status_code == 200, answer.text
    verified(data)
    with contextlib.closing(sqlite3.connect(data / "notegate.db")) as db:
        kept = db.execute("SELECT length(text) FROM log WHERE kind=2").fetchall()
    # The others are whole copies, of which there are few.
    assert len(kept) > rounds // 2 and all(length <= 8 for length, in kept), kept
