# SPDX-License-Identifier: MIT
"""The command `delete` of fileEditor and its undo, over REST and both versions of MCP."""

import os
import stat

import pytest
from cells_tools_support import Handshake, modern
from conftest import Gateway


def over_rest(served, **arguments):
    answer = served.call("fileEditor", arguments)
    return answer.json()["result" if answer.status_code == 200 else "message"]


def over_handshake(served, **arguments):
    answer = Handshake(served, {}).post("tools/call", {"name": "fileEditor", "arguments": arguments})
    return answer.json()["result"]["content"][0]["text"]


def over_modern(served, **arguments):
    return modern(served, "tools/call", {}, name="fileEditor", arguments=arguments)["result"]["content"][0]["text"]


@pytest.fixture(name="root")
def fixture_root(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture(name="served")
def fixture_served(tmp_path, root):
    running = Gateway(tmp_path / "data", ("plugins=file_editor", f"roots={root}"))
    yield running
    assert running.stop() == 0


def as_agent(served, agent, **arguments):
    return served.call("fileEditor", arguments, {"X-Notegate-Agent": agent})


@pytest.mark.parametrize("over", (over_rest, over_handshake, over_modern))
def test_delete_and_undo(served, root, over):
    path = root / "tool.sh"
    over(served, command="create", path=str(path), file_text="#!/bin/sh\n")
    path.chmod(0o750)
    over(served, command="insert", path=str(path), insert_line=1, new_str="true")
    before = path.read_bytes()
    assert over(served, command="delete", path=str(path)) == f"Deleted the file {path}. `undo_edit` with this path brings it back."
    assert os.listdir(root) == []
    assert over(served, command="undo_edit", path=str(path)) == (
        f"Last edit to {path} undone successfully. It had deleted the file, which is back.")
    assert path.read_bytes() == before and stat.S_IMODE(path.stat().st_mode) == 0o750
    # The steps before the removal are there, too.
    over(served, command="undo_edit", path=str(path))
    assert path.read_text() == "#!/bin/sh\n"


def test_bytes_that_are_no_text(served, root):
    path = root / "picture.png"
    path.write_bytes(bytes(range(256)) * 64)
    assert as_agent(served, "ada", command="delete", path=str(path)).status_code == 200
    assert as_agent(served, "ada", command="undo_edit", path=str(path)).status_code == 200
    assert path.read_bytes() == bytes(range(256)) * 64


def test_folders(served, root):
    folder = root / "a" / "b"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "file").write_text("x\n")
    refused = as_agent(served, "ada", command="delete", path=str(folder))
    assert refused.status_code == 422 and "is not empty" in refused.json()["message"]
    for path in (folder / "file", folder, folder.parent):
        assert as_agent(served, "ada", command="delete", path=str(path)).status_code == 200
    assert os.listdir(root) == []
    # The file comes back with the folders above it, which are no longer those that were removed.
    assert as_agent(served, "ada", command="undo_edit", path=str(folder / "file")).status_code == 200
    assert (folder / "file").read_text() == "x\n"
    assert as_agent(served, "ada", command="delete", path=str(folder / "file")).status_code == 200
    assert as_agent(served, "ada", command="delete", path=str(folder)).status_code == 200
    back = as_agent(served, "ada", command="undo_edit", path=str(folder))
    assert "It had deleted the folder, which is back." in back.json()["result"]
    assert folder.is_dir()


def test_undo_by_another_agent(served, root):
    path = root / "file"
    path.write_text("x\n")
    assert as_agent(served, "ada", command="delete", path=str(path)).status_code == 200
    refused = as_agent(served, "bob", command="undo_edit", path=str(path))
    assert refused.status_code == 409 and "the agent ada made it at 20" in refused.json()["message"]
    assert not path.exists()


def test_a_new_file_at_the_place(served, root):
    path = root / "file"
    path.write_text("old\n")
    assert as_agent(served, "ada", command="delete", path=str(path)).status_code == 200
    path.write_text("another program's\n")
    refused = as_agent(served, "ada", command="undo_edit", path=str(path))
    assert refused.status_code == 409 and path.read_text() == "another program's\n"


def test_the_name_is_used_again(served, root):
    """The undo of the newer file uncovers the removal of the older one."""
    path = root / "file"
    path.write_text("old\n")
    assert as_agent(served, "ada", command="delete", path=str(path)).status_code == 200
    assert as_agent(served, "ada", command="create", path=str(path), file_text="new\n").status_code == 200
    assert as_agent(served, "ada", command="undo_edit", path=str(path)).status_code == 200
    assert not path.exists()
    assert as_agent(served, "ada", command="undo_edit", path=str(path)).status_code == 200
    assert path.read_text() == "old\n"


def test_modes(served, root):
    """What a restored file may do is not more than it was: no other user's set-user-ID."""
    for mode, restored in ((0o4755, 0o755), (0o600, 0o600), (0o444, 0o444)):
        path = root / f"{mode:o}"
        path.write_text("x\n")
        path.chmod(mode)
        assert as_agent(served, "ada", command="delete", path=str(path)).status_code == 200
        assert as_agent(served, "ada", command="undo_edit", path=str(path)).status_code == 200
        assert stat.S_IMODE(path.stat().st_mode) == restored


def test_refused(served, root):
    (root / "large").write_bytes(b"x" * (12 * 1024 * 1024 + 1))
    (root / "file").write_text("x\n")
    assert as_agent(served, "ada", command="delete", path=str(root / "none")).status_code == 404
    assert as_agent(served, "ada", command="undo_edit", path=str(root / "none")).status_code == 404
    assert as_agent(served, "ada", command="delete", path="/etc/passwd").status_code == 403
    large = as_agent(served, "ada", command="delete", path=str(root / "large"))
    assert large.status_code == 413 and "`move` it" in large.json()["message"]
    whole = as_agent(served, "ada", command="delete", path=str(root))
    assert whole.status_code in (400, 422) and root.is_dir()
    stale = as_agent(served, "ada", command="delete", path=str(root / "file"), expectedRevision="0" * 32)
    assert stale.status_code == 409
    asked = served.call("fileEditor", {"command": "delete", "path": str(root / "file")}, {"X-Notegate-Mode": "ask"})
    assert asked.status_code == 403
    assert sorted(os.listdir(root)) == ["file", "large"]


def test_over_a_restart(tmp_path, root):
    path = root / "file"
    path.write_text("x\n")
    running = Gateway(tmp_path / "data", ("plugins=file_editor", f"roots={root}"))
    assert as_agent(running, "ada", command="delete", path=str(path)).status_code == 200
    assert running.stop() == 0
    running = Gateway(tmp_path / "data", ("plugins=file_editor", f"roots={root}"))
    assert as_agent(running, "ada", command="undo_edit", path=str(path)).status_code == 200
    assert running.stop() == 0
    assert path.read_text() == "x\n"


def test_a_repeat_has_the_answer_of_the_first(served, root):
    path = root / "a.txt"
    for number, arguments in enumerate(({"command": "create", "file_text": "x\n"}, {"command": "undo_edit"},
                                        {"command": "create", "file_text": "x\n"}, {"command": "delete"}, {"command": "undo_edit"})):
        first, repeat = (served.call("fileEditor", {"path": str(path), **arguments}, {"Idempotency-Key": f"k{number}"}).json()
                         for _ in range(2))
        assert repeat == first
        assert ("revision" in first) == path.exists()
