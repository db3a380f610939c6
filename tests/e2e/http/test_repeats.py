# SPDX-License-Identifier: MIT
"""A write with an idempotency key whose first try came to a stop somewhere: the repeat does it once, and has an answer."""

import os
import resource
import sys
import time

import pytest
from conftest import SOURCE, Gateway, eventually, whole

sys.path.insert(0, str(SOURCE / "tests" / "torture"))
from gateways import Control, build_shim  # noqa: E402

TRIES = 400
PAUSE = 0.05
HEALED_AFTER = 3
EIO = 5
# Fewer than a file's history keeps.
UNDONE = 6


class Faulty:
    """A gateway whose disk fails as the test says."""

    def __init__(self, folder, monkeypatch, sets=()):
        self.folder, self.sets = folder, list(sets)
        self.control = Control(str(folder / "control"))
        self.root = folder / "root"
        self.root.mkdir()
        monkeypatch.setenv("LD_PRELOAD", build_shim(str(folder)))
        monkeypatch.setenv("FAULTY_SYSTEM", self.control.path)
        self.start()

    def start(self):
        self.gateway = Gateway(self.folder / "data", self.sets, ["--root", str(self.root)])

    def kill(self):
        self.gateway.client.close()
        self.gateway.process.kill()
        self.gateway.process.wait()

    def call(self, tool, **arguments):
        answer = self.gateway.call(tool, arguments, {"X-Notegate-Space": "shared"})
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    def insist(self, tool, key, arguments):
        """The answer, and how many tries it took; only a failing disk may refuse one."""
        for tries in range(1, TRIES):
            answer = self.gateway.call(tool, arguments, {"Idempotency-Key": key, "X-Notegate-Space": "shared"})
            if answer.status_code == 200:
                return answer.json(), tries
            assert answer.status_code in (500, 503), answer.text
            if tries == HEALED_AFTER:
                self.control.heal()
            time.sleep(PAUSE)
        raise AssertionError(f"no answer in {TRIES} tries: {answer.text}")


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    made = []

    def make(sets=()):
        made.append(Faulty(tmp_path, monkeypatch, sets))
        return made[0]

    yield make
    for one in made:
        one.control.heal()
        if one.gateway.process.poll() is None:
            assert one.gateway.stop() == 0, "".join(one.gateway.errors)


def edit(faulty, path, lines, number, every, part):
    """One line more, with syncs that fail."""
    key = f"{every}-{number}-{os.path.basename(part)}"
    faulty.control.arm("sync", every, EIO, part)
    body, tries = faulty.insist("fileEditor", key, {
        "command": "insert", "path": str(path), "insert_line": len(lines), "new_str": key, "expectedRevision": lines.revision})
    faulty.control.heal()
    lines.append(key)
    lines.revision = body["revision"]
    assert path.read_text() == "".join(line + "\n" for line in lines)
    return tries


class Lines(list):
    revision = None


@pytest.mark.parametrize("part", ["/root", "notegate.db"])
def test_edits_while_syncs_fail(faulty, part):
    """Of the file's folder when the file is in place already; of the database when the end of the save is committed."""
    one = faulty()
    path, lines, repeats = one.root / "f.txt", Lines(["begin"]), 0
    made = one.gateway.call("fileEditor", {"command": "create", "path": str(path), "file_text": "begin\n"})
    lines.revision = made.json()["revision"]
    for number in range(6):
        for every in (2, 3):
            repeats += edit(one, path, lines, number, every, part) - 1
    assert repeats > 0
    # Each has its event, and its step in the history.
    for left in range(len(lines) - 1, len(lines) - 1 - UNDONE, -1):
        one.call("fileEditor", command="undo_edit", path=str(path))
        assert path.read_text() == "".join(line + "\n" for line in lines[:left])
    assert os.listdir(one.root) == ["f.txt"]


def test_an_edit_whose_gateway_is_killed_when_it_could_not_be_completed(faulty):
    one = faulty()
    path = one.root / "f.txt"
    one.call("fileEditor", command="create", path=str(path), file_text="begin\n")
    arguments = {"command": "insert", "path": str(path), "insert_line": 1, "new_str": "once"}
    one.control.arm("sync", 2, EIO, "/root")
    first = one.gateway.call("fileEditor", arguments, {"Idempotency-Key": "k", "X-Notegate-Space": "shared"})
    assert first.status_code == 500 and path.read_text() == "begin\nonce\n", first.text
    one.control.heal()
    one.kill()
    one.start()
    one.insist("fileEditor", "k", arguments)
    assert path.read_text() == "begin\nonce\n"


def test_moves_of_notes_while_syncs_fail(faulty, tmp_path):
    """A repeat may find no note at the old path, as its first try has moved it."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "hub.md").write_text("")
    one = faulty([f"opennotes.notebooks={vault}"])
    missed = 0
    for number in range(2, 10):
        name, to = f"a{number}.md", f"b{number}.md"
        (vault / name).write_text("text\n")
        (vault / "hub.md").write_text(f"[[a{number}]]\n")
        for tool, arguments, moved in (("opennotes_move", {"path": name, "to": to}, to),
                                       ("opennotes_delete", {"path": to}, f".trash/{to}"),
                                       ("opennotes_edit", {"path": f".trash/{to}", "operation": "undo"}, to),
                                       ("opennotes_edit", {"path": to, "operation": "undo"}, name)):
            key = f"{number} {tool} {arguments['path']}"
            one.control.arm("sync", number, EIO, "/vault")
            first = one.gateway.call(tool, arguments, {"Idempotency-Key": key, "X-Notegate-Space": "shared"})
            missed += first.status_code == 500 and not (vault / arguments["path"]).exists()
            one.control.heal()
            one.insist(tool, key, arguments)
            assert (vault / moved).read_text() == "text\n" and not (vault / arguments["path"]).exists()
        assert (vault / "hub.md").read_text() == f"[[a{number}]]\n"
    assert missed > 0


def test_moves_and_copies_while_syncs_fail(faulty):
    one = faulty()
    one.call("fileEditor", command="create", path=str(one.root / "f0"), file_text="text")
    for number in range(6):
        one.control.arm("sync", 1 + number % 2, EIO, ("/root", "notegate.db")[number // 3])
        one.insist("fileEditor", f"m{number}", {
            "command": "move", "path": str(one.root / f"f{number}"), "destination": str(one.root / f"f{number + 1}")})
        one.insist("fileEditor", f"c{number}", {
            "command": "copy", "path": str(one.root / f"f{number + 1}"), "destination": str(one.root / f"c{number}")})
        one.control.heal()
    assert sorted(os.listdir(one.root)) == [f"c{number}" for number in range(6)] + ["f6"]
    assert {(one.root / name).read_text() for name in os.listdir(one.root)} == {"text"}


def test_new_notes_while_syncs_fail(faulty, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    one = faulty([f"opennotes.notebooks={notes}"])
    for number in range(6):
        one.control.arm("sync", 2, EIO, "/notes" if number % 2 else "notegate.db")
        body, _ = one.insist("opennotes_create", f"k{number}", {"title": f"Note {number}", "content": "text"})
        one.control.heal()
        assert body["result"]["created"]["path"] == f"note-{number}.md"
    assert len(list(notes.iterdir())) == 6


def test_checkpoints_while_syncs_fail(faulty):
    """The checkpoint is kept, its answer is not: the repeat takes no second one."""
    one = faulty()
    repeats = 0
    for number in range(8):
        one.control.arm("sync", 2 + number % 3, EIO, "notegate.db")
        body, tries = one.insist("checkpoint_snapshot", f"s{number}", {"label": f"label {number}"})
        one.control.heal()
        repeats += tries - 1
        labels = [(point["label"], point["checkpoint_id"]) for point in one.call("checkpoint_list", limit=1000)["checkpoints"]]
        assert [number for label, number in labels if label == body["result"]["label"]] == [body["result"]["checkpoint_id"]]
    assert repeats > 0


def memories(one):
    """All, including events on their way to the journal."""
    found = whole(lambda: one.call("memory_timeline", limit=1000), 120)
    return {event["content"] for event in found["events"] if event["type"] == "memory"}


def test_restores_while_syncs_fail(faulty):
    """A retry does not restore again, over later memories."""
    one = faulty()
    one.call("memory_log", content="first")
    point = one.call("checkpoint_snapshot")["checkpoint_id"]
    repeats = 0
    for number in range(2, 10):
        one.call("memory_log", content=f"gone {number}")
        one.control.arm("sync", number, EIO, "notegate.db")
        key = {"Idempotency-Key": f"r{number}", "X-Notegate-Space": "shared"}
        answer = one.gateway.call("checkpoint_restore", {"checkpoint_id": point}, key)
        one.control.heal()
        eventually(lambda: one.gateway.client.get("/readyz").json()["status"] == "ready", 60, "readiness")
        restored = f"gone {number}" not in memories(one)
        one.call("memory_log", content=f"since {number}")
        if answer.status_code != 200:
            repeats += restored
            body, _ = one.insist("checkpoint_restore", f"r{number}", {"checkpoint_id": point})
            assert body["result"]["status"] == "restored"
            # Completed work of the first attempt is not repeated; an interrupted attempt keeps new content.
            assert not restored or f"since {number}" in memories(one)
        undo = one.insist("checkpoint_restore", f"r{number}", {"checkpoint_id": point})[0]["result"]["previous_checkpoint_id"]
        one.call("checkpoint_restore", checkpoint_id=undo)
        assert f"gone {number}" in memories(one)
        one.call("checkpoint_restore", checkpoint_id=point)


@pytest.mark.long
def test_edits_on_shared_documents(faulty, servers):
    """A save that one gateway could not complete is recovered, also after a kill, without a second edit."""
    mongo = servers.mongo()
    one = faulty(["documents=mongo", f"mongo.uri={mongo.uri}", "plugins=file_editor"])
    path = one.root / "f.txt"
    eventually(lambda: one.gateway.client.get("/readyz", timeout=60).status_code == 200, 120, "readiness")
    one.insist("fileEditor", "c", {"command": "create", "path": str(path), "file_text": "begin\n"})
    for number, killed in enumerate((False, True)):
        arguments = {"command": "insert", "path": str(path), "insert_line": 1 + number, "new_str": f"once {number}"}
        one.control.arm("sync", 2, EIO, "/root")
        headers = {"Idempotency-Key": f"k{number}", "X-Notegate-Space": "shared"}
        first = one.gateway.call("fileEditor", arguments, headers)
        one.control.heal()
        if killed:
            one.kill()
            one.start()
        one.insist("fileEditor", f"k{number}", arguments)
        assert path.read_text().splitlines() == ["begin"] + [f"once {n}" for n in range(number + 1)], first.text


def test_a_start_without_the_database_of_all_plugins(faulty, tmp_path):
    """The gateway waits for lookups of plugins in the store."""
    notes = tmp_path / "notes"
    notes.mkdir()
    one = faulty(["documents=mongo", "mongo.uri=mongodb://127.0.0.1:1/?directConnection=true", "mongo.timeout=1s",
                  f"opennotes.notebooks={notes}"])
    assert one.gateway.client.get("/readyz", timeout=60).status_code == 503
    assert one.gateway.client.get("/healthz").status_code == 200


def test_a_caller_who_cannot_be_asked_for(tmp_path, monkeypatch):
    """Without free descriptors the owner of a connection is unknown: the check is repeated, not refused for good."""
    gateway = Gateway(tmp_path / "data")
    process = gateway.process.pid
    try:
        assert gateway.client.get("/readyz").status_code == 200
        before = gateway.in_use("connections")
        with gateway.connect() as raw:
            eventually(lambda: gateway.in_use("connections") > before, what="the connection")
            hard = resource.prlimit(process, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(process, resource.RLIMIT_NOFILE, (3, hard))
            first = raw.request("GET /v1/tools HTTP/1.1").answer()
            resource.prlimit(process, resource.RLIMIT_NOFILE, (hard, hard))
            assert first.status == 503 and first.json()["code"] == "BUSY", first.body
            assert raw.request("GET /v1/tools HTTP/1.1").answer().status == 200
    finally:
        assert gateway.stop() == 0, gateway.errors
