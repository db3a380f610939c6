# SPDX-License-Identifier: MIT
"""A file with several names (hard links): undo_edit knows the edits that were made under any of them."""

import os

import pytest
from conftest import Gateway


@pytest.fixture(name="root")
def fixture_root(tmp_path):
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "one").write_text("a\nb\n")
    os.link(root / "one", root / "sub" / "two")
    return root


@pytest.fixture(name="served")
def fixture_served(tmp_path, root):
    running = Gateway(tmp_path / "data", ("plugins=file_editor", f"roots={root}"))
    yield running
    assert running.stop() == 0


@pytest.fixture(name="ask")
def fixture_ask(served, root):
    def ask(agent, command, name, **arguments):
        answer = served.call("fileEditor", {"command": command, "path": str(root / name), **arguments}, {"X-Notegate-Agent": agent})
        body = answer.json()
        return answer.status_code, body["result"] if answer.status_code == 200 else body["message"]
    return ask


def change(ask, agent, name, old, new):
    status, said = ask(agent, "str_replace", name, old_str=old, new_str=new)
    assert status == 200, said


def test_an_edit_under_the_other_name_by_another_agent(ask, root):
    change(ask, "alice", "one", "a", "A")
    change(ask, "bob", "sub/two", "b", "B")
    status, said = ask("alice", "undo_edit", "one")
    assert status == 409 and "is not yours: the agent bob made it at 20" in said
    assert (root / "one").read_text() == "A\nB\n"
    # In the other order each has its own back.
    assert ask("bob", "undo_edit", "sub/two")[0] == 200
    assert ask("alice", "undo_edit", "one")[0] == 200
    assert (root / "one").read_text() == "a\nb\n"
    assert os.stat(root / "one").st_ino == os.stat(root / "sub" / "two").st_ino


def test_an_edit_that_ends_in_the_same_text(ask, root):
    """The text is that of alice's edit, but the edit that made it is not hers."""
    change(ask, "alice", "one", "a", "A")
    change(ask, "bob", "sub/two", "A", "x")
    change(ask, "bob", "sub/two", "x", "A")
    status, said = ask("alice", "undo_edit", "one")
    assert status == 409 and "the agent bob made it" in said
    assert (root / "one").read_text() == "A\nb\n"


def test_an_edit_of_ones_own_under_the_other_name(ask, root):
    change(ask, "alice", "one", "a", "A")
    change(ask, "alice", "sub/two", "b", "B")
    status, said = ask("alice", "undo_edit", "one")
    assert status == 409 and f"under another name of this file, {root / 'sub' / 'two'}." in said
    assert ask("alice", "undo_edit", "sub/two")[0] == 200
    assert ask("alice", "undo_edit", "one")[0] == 200
    assert (root / "one").read_text() == "a\nb\n"


def test_an_edit_under_a_name_that_is_gone(ask, root):
    change(ask, "alice", "one", "a", "A")
    change(ask, "bob", "sub/two", "b", "B")
    (root / "sub" / "two").unlink()
    status, said = ask("alice", "undo_edit", "one")
    assert status == 409 and "the agent bob made it" in said


def test_a_name_without_edits(ask, root):
    change(ask, "bob", "sub/two", "b", "B")
    status, said = ask("alice", "undo_edit", "one")
    assert status == 409 and "the agent bob made it" in said


def test_a_moved_name(ask, root):
    change(ask, "alice", "one", "a", "A")
    assert ask("alice", "move", "one", destination=str(root / "moved"))[0] == 200
    assert ask("alice", "undo_edit", "moved")[0] == 200
    change(ask, "bob", "sub/two", "b", "B")
    assert ask("alice", "move", "one", destination=str(root / "moved"))[0] == 200
    assert ask("alice", "undo_edit", "moved")[0] == 200
    status, said = ask("alice", "undo_edit", "one")
    assert status == 409 and "the agent bob made it" in said


def test_another_program_s_save_is_told_as_such(ask, root):
    change(ask, "alice", "one", "a", "A")
    change(ask, "bob", "sub/two", "b", "B")
    (root / "one").write_text("theirs\n")
    status, said = ask("alice", "undo_edit", "one")
    assert status == 409 and "Another program changed the file" in said


def test_a_removed_name_comes_back_as_a_file_of_its_own(ask, root):
    change(ask, "alice", "one", "a", "A")
    assert ask("alice", "delete", "one")[0] == 200
    status, said = ask("alice", "undo_edit", "one")
    assert status == 200 and "back as a file of its own: it was one of 2 names of a file" in said
    assert (root / "one").read_text() == (root / "sub" / "two").read_text() == "A\nb\n"
    assert os.stat(root / "one").st_ino != os.stat(root / "sub" / "two").st_ino


def test_over_a_restart(tmp_path, root):
    def ask(agent, command, name, **arguments):
        return running.call("fileEditor", {"command": command, "path": str(root / name), **arguments}, {"X-Notegate-Agent": agent})
    settings = ("plugins=file_editor", f"roots={root}")
    running = Gateway(tmp_path / "data", settings)
    assert ask("alice", "str_replace", "one", old_str="a", new_str="A").status_code == 200
    assert ask("bob", "str_replace", "sub/two", old_str="b", new_str="B").status_code == 200
    assert running.stop() == 0
    running = Gateway(tmp_path / "data", settings)
    refused = ask("alice", "undo_edit", "one")
    assert refused.status_code == 409 and "the agent bob made it" in refused.json()["message"]
    assert running.stop() == 0
