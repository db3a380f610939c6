# SPDX-License-Identifier: MIT
"""history_undo of moves of folders, and between spaces: beside people, foreign spaces and kills."""

import os
import random
import time

import pytest
from conftest import Gateway
from keys_support import add, bearer
from undo_support import (
    KILLS,
    PLUGINS,
    ask,
    cut_off,
    edit,
    replace,
    results,
    tree,
    undo,
)

SEED = random.randrange(2**32)


@pytest.fixture
def place(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    gateway = Gateway(tmp_path / "data", [PLUGINS, f"roots={root}", f"opennotes.notebooks={root}"])
    yield gateway, root
    assert gateway.stop() == 0, gateway.errors


def test_a_moved_folder_is_moved_back(place):
    """Also a file that no tool has saved, and one that the run edited before and after; links come back, too."""
    gateway, root = place
    (root / "sub" / "deep").mkdir(parents=True)
    for name in ("a.md", "deep/b.md"):
        edit(gateway, root / "sub" / name, command="create", file_text=f"{name}\none\ntwo\n", run="before")
    (root / "sub" / "deep" / "unknown.txt").write_text("other program\n")
    (root / "sub" / "deep" / "unknown.md").write_text("other program\n")
    (root / "links.md").write_text("[a](sub/a.md)\n")
    before = tree(root)
    replace(gateway, root / "sub" / "a.md", "one", "robot")
    ask(gateway, "opennotes_move", {"path": "sub", "to": "new"}, "robot", "night")
    replace(gateway, root / "new" / "a.md", "two", "robot")
    replace(gateway, root / "new" / "deep" / "unknown.md", "other", "robot's")
    moved = tree(root)
    assert moved["links.md"] == "[a](new/a.md)\n" and "sub" not in moved
    preview = ask(gateway, "history_undo", {"run": "night"})
    assert tree(root) == moved
    told = undo(gateway, run="night")
    assert [(item["id"], item["result"]) for item in preview["items"]] == [(item["id"], item["result"]) for item in told["items"]]
    assert told["conflicts"] == 0 and told["undone"] == told["total"] - told["unchanged"], told
    assert tree(root) == before, "the folder that the move made is gone"
    again = undo(gateway, run=told["undo"])
    assert again["conflicts"] == 0 and tree(root) == moved, again
    undo(gateway, run=again["undo"])
    assert tree(root) == before


def test_a_folder_that_was_moved_twice_is_moved_back_to_its_first_place(place):
    gateway, root = place
    (root / "one").mkdir()
    edit(gateway, root / "one" / "a.md", command="create", file_text="a\n", run="before")
    (root / "one" / "unknown.txt").write_text("other program\n")
    before = tree(root)
    for old, new in (("one", "two"), ("two", "three/two")):
        ask(gateway, "opennotes_move", {"path": old, "to": new}, "robot", "night")
    preview = ask(gateway, "history_undo", {"run": "night"})
    told = undo(gateway, run="night")
    assert [(item["id"], item["result"]) for item in preview["items"]] == [(item["id"], item["result"]) for item in told["items"]]
    assert told["conflicts"] == 0, told
    assert {name: text for name, text in tree(root).items() if name != "three"} == before


def test_what_others_did_in_a_moved_folder_stays(place):
    """Files that they added stay where they are; one conflict does not hold up the other files."""
    gateway, root = place
    (root / "sub").mkdir()
    for name in ("edited.md", "moved.md", "early.md", "late.md", "taken.md", "plain.md"):
        edit(gateway, root / "sub" / name, command="create", file_text=f"{name}\none\ntwo\n", run="before")
    replace(gateway, root / "sub" / "early.md", "one", "robot")
    ask(gateway, "opennotes_move", {"path": "sub", "to": "new"}, "robot", "night")
    replace(gateway, root / "new" / "edited.md", "two", "ana", by="ana", run="day")
    replace(gateway, root / "new" / "late.md", "one", "robot")
    for name in ("early.md", "late.md"):
        replace(gateway, root / "new" / name, "robot", "ana", by="ana", run="day")
    edit(gateway, root / "new" / "moved.md", command="move", destination=str(root / "on.md"), by="ana", run="day")
    edit(gateway, root / "new" / "added.md", command="create", file_text="ana\n", by="ana", run="day")
    edit(gateway, root / "sub" / "taken.md", command="create", file_text="ana\n", by="ana", run="day")
    (root / "new" / "external.txt").write_text("other program\n")
    told = undo(gateway, run="night")
    found = {item["id"].removeprefix(f"{root}/"): (item["result"], item.get("conflict", {}).get("reason"))
             for item in told["items"]}
    assert found == {"new/edited.md": ("undone", None), "new/plain.md": ("undone", None),
                     "new/moved.md": ("conflict", "moved_on"), "new/late.md": ("conflict", "overlap"),
                     "new/taken.md": ("conflict", "path_taken"), "new/early.md": ("conflict", "overlap"),
                     "sub/early.md": ("conflict", "overlap")}, found
    plain = "{}\none\ntwo\n".format
    assert tree(root) == {
        "new": None, "sub": None, "sub/edited.md": "edited.md\none\nana\n", "sub/plain.md": plain("plain.md"),
        "sub/taken.md": "ana\n", "on.md": plain("moved.md"), "new/added.md": "ana\n", "new/taken.md": plain("taken.md"),
        "new/late.md": "late.md\nana\ntwo\n", "new/early.md": "early.md\nana\ntwo\n", "new/external.txt": "other program\n"}


def test_a_file_in_the_place_of_a_moved_folder(place):
    gateway, root = place
    (root / "sub").mkdir()
    edit(gateway, root / "sub" / "a.md", command="create", file_text="a\n", run="before")
    ask(gateway, "opennotes_move", {"path": "sub", "to": "new"}, "robot", "night")
    (root / "sub").write_text("other program\n")
    assert results(undo(gateway, run="night")) == {"a.md": ("conflict", "path_taken")}
    assert tree(root) == {"new": None, "new/a.md": "a\n", "sub": "other program\n"}


def test_a_foreign_move_of_a_folder_is_left_alone(place):
    gateway, root = place
    (root / "sub").mkdir()
    edit(gateway, root / "sub" / "a.md", command="create", file_text="a\n", run="before")
    ask(gateway, "opennotes_move", {"path": "sub", "to": "new"}, "robot", "night")
    (root / "new" / "a.md").rename(root / "a.md")
    undo(gateway, run="night")
    assert tree(root) == {"new": None, "a.md": "a\n"}, "nothing was moved back, so the folder stays"


def test_a_kill_while_a_folder_is_moved_back(tmp_path):
    print("seed", SEED)
    root, partly = tmp_path / "root", 0
    chance, sets = random.Random(SEED), [PLUGINS, f"roots={root}", f"opennotes.notebooks={root}"]
    (root / "sub" / "deep").mkdir(parents=True)
    gateway = Gateway(tmp_path / "data", sets)
    for number in range(20):
        edit(gateway, root / "sub" / f"f{number}.md", command="create", file_text="first\nlast\n", run="before")
        (root / "sub" / "deep" / f"g{number}.md").write_text("first\nlast\n")
    before, longest = tree(root), 0
    for number in range(KILLS + 1):
        run = f"run{number}"
        ask(gateway, "opennotes_move", {"path": "sub", "to": "new/sub"}, "robot", run)
        for path in list((root / "new").rglob("*.md"))[::2]:
            replace(gateway, path, "first\n", f"first\nrobot {number}\n", run=run)
        if not longest:
            started = time.monotonic()
            undo(gateway, run=run)
            longest = time.monotonic() - started
        else:
            answered = cut_off(gateway, run, chance.random() * longest)
            gateway = Gateway(tmp_path / "data", sets)
            files = [path for path in root.rglob("*.md") if path.is_file()]
            assert sorted(path.name for path in files) == sorted(os.path.basename(name) for name in before if name.endswith(".md"))
            assert {path.read_text() for path in files} <= {"first\nlast\n", f"first\nrobot {number}\nlast\n"}
            left = ask(gateway, "history_log", {"limit": 1})["unfinished"]
            partly += (root / "sub").exists() and (root / "new").exists()
            if left:
                told = undo(gateway, **{"continue": left[0]})
                assert told["conflicts"] == 0, told
            elif answered is None:
                undo(gateway, run=run)
        assert {name: text for name, text in tree(root).items() if name != "new"} == before
        assert ask(gateway, "history_log", {"limit": 1})["unfinished"] == []
    print(f"{partly} of {KILLS} were cut off in the middle")
    assert gateway.stop() == 0, gateway.errors


def two_spaces(folder):
    """Roots of two spaces, and callers that see both."""
    for name in ("red", "blue"):
        (folder / "root" / name).mkdir(parents=True)
    (folder / "data").mkdir(mode=0o700)
    keys = {name: bearer(add(folder / "data", name, "--space", "red", "--space", "blue", "--role", role))
            for name, role in (("robot", "writer"), ("ana", "writer"), ("lead", "admin"))}

    def start():
        gateway = Gateway(folder / "data", [PLUGINS, f"roots=red:{folder / 'root' / 'red'},blue:{folder / 'root' / 'blue'}"])
        gateway.keys = keys
        return gateway

    return start, folder / "root"


@pytest.fixture
def spaces(tmp_path):
    start, root = two_spaces(tmp_path)
    gateway = start()
    yield gateway, root
    assert gateway.stop() == 0, gateway.errors


def test_a_move_between_spaces_is_taken_back(spaces):
    """With the edits before and after it, and what others edited since; also in a preview."""
    gateway, root = spaces
    for name in ("both", "alone", "conflict", "on", "taken"):
        edit(gateway, root / "red" / name, command="create", file_text="one\ntwo\nthree\n", run="before")
    before = tree(root)
    replace(gateway, root / "red" / "both", "one", "robot")
    for name in ("both", "alone", "conflict", "on", "taken"):
        edit(gateway, root / "red" / name, command="move", destination=str(root / "blue" / f"{name}.txt"))
    for name in ("both", "conflict"):
        replace(gateway, root / "blue" / f"{name}.txt", "two", "robot")
    replace(gateway, root / "blue" / "both.txt", "three", "ana", by="ana", run="day")
    replace(gateway, root / "blue" / "conflict.txt", "robot", "ana", by="ana", run="day")
    edit(gateway, root / "blue" / "on.txt", command="move", destination=str(root / "blue" / "on"), by="ana", run="day")
    edit(gateway, root / "red" / "taken", command="create", file_text="ana\n", by="ana", run="day")
    moved = tree(root)
    preview = ask(gateway, "history_undo", {"run": "night"})
    assert tree(root) == moved
    told = undo(gateway, run="night")
    assert [(item["id"], item["result"]) for item in preview["items"]] == [(item["id"], item["result"]) for item in told["items"]]
    assert results(told) == {"both.txt": ("undone", None), "both": ("undone", None), "alone.txt": ("undone", None),
                             "conflict.txt": ("conflict", "overlap"), "on.txt": ("conflict", "moved_on"),
                             "taken.txt": ("conflict", "path_taken")}, told
    after = tree(root)
    assert after["red/both"] == "one\ntwo\nana\n" and after["red/alone"] == before["red/alone"]
    assert after["red/taken"] == "ana\n" and after["blue/taken.txt"] == before["red/taken"]
    assert {name for name, text in after.items() if text is not None} == \
        {"red/both", "red/alone", "red/taken", "blue/taken.txt", "blue/on", "blue/conflict.txt"}
    again = undo(gateway, run=told["undo"])
    assert again["conflicts"] == 0 and tree(root) == moved, again
    undo(gateway, run=again["undo"])
    assert tree(root) == after


def test_a_new_file_is_where_others_moved_one_to_another_space(spaces):
    """It is not followed there. The new one is not touched, also not after the run's own move of it is taken back."""
    gateway, root = spaces
    ana = {"by": "ana", "run": "day"}
    for name in ("x", "y"):
        edit(gateway, root / "red" / name, command="create", file_text="one\ntwo\n", run="before")
        replace(gateway, root / "red" / name, "two", "robot")
        edit(gateway, root / "red" / name, command="move", destination=str(root / "blue" / name), **ana)
        edit(gateway, root / "red" / name, command="create", file_text="one\nrobot\n", **ana)
    before = tree(root)
    edit(gateway, root / "red" / "y", command="move", destination=str(root / "blue" / "y2"))
    preview = ask(gateway, "history_undo", {"run": "night"})
    told = undo(gateway, run="night")
    assert results(preview) == results(told) == {"x": ("conflict", "gone"), "y": ("conflict", "gone"), "y2": ("undone", None)}
    assert tree(root) == before


def test_a_move_between_spaces_needs_both(tmp_path):
    """A caller that sees one of them is refused, and learns no path of the other one."""
    root, data = tmp_path / "root", tmp_path / "data"
    for name in ("red", "blue"):
        (root / name).mkdir(parents=True)
    data.mkdir(mode=0o700)
    # Admins see all spaces. Each key is one of the same agent.
    keys = {"both": bearer(add(data, "robot", "--space", "red", "--space", "blue"))} | \
        {space: bearer(add(data, "robot", "--space", space)) for space in ("red", "blue")}
    gateway = Gateway(data, [PLUGINS, f"roots=red:{root / 'red'},blue:{root / 'blue'}"])

    def keyed(name, tool, arguments, run=None):
        answer = gateway.call(tool, arguments, keys[name] | ({"X-Notegate-Run": run} if run else {}))
        assert answer.status_code == 200, answer.text
        return answer.json()["result"], answer.text

    path = {"path": str(root / "red" / "secret-red")}
    keyed("both", "fileEditor", path | {"command": "create", "file_text": "one\n"}, "before")
    keyed("both", "fileEditor", path | {"command": "str_replace", "old_str": "one", "new_str": "two"}, "night")
    keyed("both", "fileEditor", path | {"command": "move", "destination": str(root / "blue" / "secret-blue")}, "night")
    for name, other in (("red", "secret-blue"), ("blue", "secret-red")):
        for dry_run in (True, False):
            told, text = keyed(name, "history_undo", {"run": "night", "dry_run": dry_run})
            assert {reason for _, reason in results(told).values()} == {"forbidden"}, (name, told)
            assert other not in text
        assert other not in keyed(name, "history_log", {"run": "night"})[1]
    assert (root / "blue" / "secret-blue").read_text() == "two\n" and not (root / "red" / "secret-red").exists()
    told, _ = keyed("both", "history_undo", {"run": "night", "dry_run": False})
    assert told["conflicts"] == 0 and (root / "red" / "secret-red").read_text() == "one\n", told
    for name, other in (("red", "secret-blue"), ("blue", "secret-red")):
        for asked in ({}, {"run": told["undo"]}):
            assert other not in keyed(name, "history_log", asked)[1]
        headers = keys[name] | {"Accept": "application/json"}
        seen = gateway.client.get("/v1/events", params={"limit": 1000}, headers=headers)
        assert seen.status_code == 200 and other not in seen.text and "secret" in seen.text
    assert gateway.stop() == 0, gateway.errors


def test_a_kill_while_files_are_moved_between_spaces(tmp_path):
    print("seed", SEED)
    chance, partly, longest = random.Random(SEED), 0, 0
    start, root = two_spaces(tmp_path)
    gateway = start()
    for number in range(20):
        edit(gateway, root / "red" / f"f{number}", command="create", file_text="first\nlast\n", run="before")
    before = tree(root)
    for number in range(KILLS + 1):
        run = f"run{number}"
        for path in sorted((root / "red").iterdir()):
            replace(gateway, path, "first\n", f"first\nrobot {number}\n", run=run)
            edit(gateway, path, command="move", destination=str(root / "blue" / path.name), run=run)
        if not longest:
            started = time.monotonic()
            undo(gateway, run=run)
            longest = time.monotonic() - started
        else:
            answered = cut_off(gateway, run, chance.random() * longest)
            gateway = start()
            files = [path for path in root.rglob("f*") if path.is_file()]
            assert sorted(path.name for path in files) == sorted(f"f{number}" for number in range(20))
            assert {path.read_text() for path in files} <= {"first\nlast\n", f"first\nrobot {number}\nlast\n"}
            left = ask(gateway, "history_log", {"limit": 1})["unfinished"]
            partly += len({path.parent for path in files} | {path.read_text() for path in files}) > 2
            if left:
                told = undo(gateway, **{"continue": left[0]})
                assert told["conflicts"] == 0, told
            elif answered is None:
                undo(gateway, run=run)
        assert tree(root) == before
    print(f"{partly} of {KILLS} were cut off in the middle")
    assert gateway.stop() == 0, gateway.errors
