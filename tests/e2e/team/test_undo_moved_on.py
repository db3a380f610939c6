# SPDX-License-Identifier: MIT
"""history_undo of files that a run moved several times, or moved and removed, and of files that others moved away: beside new
files at their old paths, and kills."""

import itertools
import random
import time

import pytest
from conftest import Gateway
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
TEXT = "one\ntwo\nthree\nfour\nfive\n"
UNDONE = ("undone", None)
ANA = {"by": "ana", "run": "day"}


@pytest.fixture
def place(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    gateway = Gateway(tmp_path / "data", [PLUGINS, f"roots={root}", f"opennotes.notebooks={root}"])
    yield gateway, root
    assert gateway.stop() == 0, gateway.errors


def create(gateway, path, text=TEXT, **more):
    edit(gateway, path, command="create", file_text=text, **more)


def move(gateway, *paths, **more):
    for old, new in itertools.pairwise(paths):
        edit(gateway, old, command="move", destination=str(new), **more)


def check(gateway, root, wanted=None, run="night"):
    """The undo does what the preview tells; once more it changes nothing; its own undo is the identity, and so is that one's."""
    before = tree(root)
    preview = ask(gateway, "history_undo", {"run": run})
    assert tree(root) == before
    told = undo(gateway, run=run)
    assert [(item["id"], item["result"]) for item in preview["items"]] == \
        [(item["id"], item["result"]) for item in told["items"]], (preview, told)
    if wanted is not None:
        assert results(told) == wanted
    after = tree(root)
    again = undo(gateway, run=run)
    assert again["undone"] == 0 and again["conflicts"] == told["conflicts"] and tree(root) == after, again
    if told["undone"] == 0:
        assert after == before
        return after
    back = undo(gateway, run=told["undo"])
    assert back["conflicts"] == 0 and tree(root) == before, back
    undo(gateway, run=back["undo"])
    assert tree(root) == after
    return after


def test_a_file_that_was_moved_twice(place):
    gateway, root = place
    create(gateway, root / "a", run="before")
    move(gateway, root / "a", root / "b", root / "c")
    assert check(gateway, root, {"c": UNDONE, "b": UNDONE}) == {"a": TEXT}


def test_edits_before_between_and_after_moves(place):
    """What others edited at any of its paths stays."""
    gateway, root = place
    create(gateway, root / "a", run="before")
    replace(gateway, root / "a", "one", "robot 1")
    move(gateway, root / "a", root / "b")
    replace(gateway, root / "b", "two", "ana 2", **ANA)
    replace(gateway, root / "b", "three", "robot 3")
    move(gateway, root / "b", root / "sub" / "c")
    replace(gateway, root / "sub" / "c", "four", "robot 4")
    replace(gateway, root / "sub" / "c", "five", "ana 5", **ANA)
    after = check(gateway, root, {"c": UNDONE, "b": UNDONE, "a": UNDONE})
    assert after["a"] == "one\nana 2\nthree\nfour\nana 5\n" and not {"b", "sub/c"} & after.keys()


def test_a_conflict_in_an_edit_before_the_move(place):
    """The whole file stays as it is, whichever came first, the move or the edit."""
    gateway, root = place
    for name in ("early", "late", "taken"):
        create(gateway, root / name, run="before")
    for name in ("early", "taken"):
        replace(gateway, root / name, "one", "robot")
    for name in ("early", "late", "taken"):
        move(gateway, root / name, root / f"{name}.new")
    replace(gateway, root / "late.new", "one", "robot")
    for name in ("early", "late"):
        replace(gateway, root / f"{name}.new", "robot", "ana", **ANA)
    create(gateway, root / "taken", "ana\n", **ANA)
    overlap, taken = ("conflict", "overlap"), ("conflict", "path_taken")
    assert check(gateway, root, {"early": overlap, "early.new": overlap, "late.new": overlap, "taken": taken, "taken.new": taken}) == {
        "early.new": TEXT.replace("one", "ana"), "late.new": TEXT.replace("one", "ana"), "taken": "ana\n",
        "taken.new": TEXT.replace("one", "robot")}


def test_a_file_that_was_made_and_moved_with_its_folder(place):
    """The folder at the new place goes with its last file."""
    gateway, root = place
    for name in ("sub/a.md", "sub/b.md"):
        create(gateway, root / name, run="night" if name == "sub/a.md" else "before")
    ask(gateway, "opennotes_move", {"path": "sub", "to": "new"}, "robot", "night")
    assert check(gateway, root) == {"sub": None, "sub/b.md": TEXT}


def test_the_way_back_is_one_move(place):
    gateway, root = place
    create(gateway, root / "a", run="before")
    move(gateway, *(root / name for name in "abcdef"))
    replace(gateway, root / "f", "one", "robot")
    told = undo(gateway, run="night")
    assert told["undone"] == 5 and tree(root) == {"a": TEXT}
    log = ask(gateway, "history_log", {"run": told["undo"]})["changes"]
    assert {change["id"] for change in log} == {str(root / "a"), str(root / "f")}


@pytest.mark.parametrize("way", ["aba", "abab", "abcb", "abcabc", "abacada"])
def test_a_path_that_a_file_came_to_more_than_once(place, way):
    gateway, root = place
    create(gateway, root / "a", run="before")
    for number, (old, new) in enumerate(itertools.pairwise(way)):
        move(gateway, root / old, root / new)
        if number < 4:
            word = TEXT.split()[number]
            replace(gateway, root / new, word, f"robot {number}")
    replace(gateway, root / way[-1], "five", "ana", **ANA)
    assert check(gateway, root) == {"a": TEXT.replace("five", "ana")}


def test_another_file_is_at_a_path_between(place):
    gateway, root = place
    create(gateway, root / "a", run="before")
    replace(gateway, root / "a", "one", "robot")
    move(gateway, root / "a", root / "b", root / "c")
    create(gateway, root / "b", "ana\n", **ANA)
    assert check(gateway, root, {"c": UNDONE, "b": UNDONE, "a": UNDONE}) == {"a": TEXT, "b": "ana\n"}


def test_another_file_is_at_the_first_path(place):
    """The file stays at its last one, whole."""
    gateway, root = place
    create(gateway, root / "a", run="before")
    move(gateway, root / "a", root / "b", root / "c")
    create(gateway, root / "a", "ana\n", **ANA)
    taken = ("conflict", "path_taken")
    assert check(gateway, root, {"c": taken, "b": taken}) == {"a": "ana\n", "c": TEXT}


def test_others_have_edited_the_same_lines(place):
    gateway, root = place
    create(gateway, root / "a", run="before")
    move(gateway, root / "a", root / "b")
    replace(gateway, root / "b", "two", "robot")
    move(gateway, root / "b", root / "c")
    replace(gateway, root / "c", "robot", "ana", **ANA)
    overlap = ("conflict", "overlap")
    assert check(gateway, root, {"c": overlap, "b": overlap}) == {"c": TEXT.replace("two", "ana")}


def test_others_have_moved_it_on(place):
    gateway, root = place
    create(gateway, root / "a", run="before")
    move(gateway, root / "a", root / "b", root / "c")
    move(gateway, root / "c", root / "d", **ANA)
    create(gateway, root / "c", "ana\n", **ANA)
    on = ("conflict", "moved_on")
    assert check(gateway, root, {"c": on, "b": on}) == {"c": "ana\n", "d": TEXT}


def test_others_have_moved_it_between(place):
    """It is not the file that was at that path before: each goes its own way back."""
    gateway, root = place
    create(gateway, root / "a", run="before")
    move(gateway, root / "a", root / "b")
    move(gateway, root / "b", root / "x", **ANA)
    create(gateway, root / "b", "ana\n", **ANA)
    move(gateway, root / "b", root / "c")
    assert check(gateway, root, {"c": UNDONE, "b": ("conflict", "moved_on")}) == {"x": TEXT, "b": "ana\n"}


def test_a_part_was_taken_back_before(place):
    gateway, root = place
    create(gateway, root / "a", run="before")
    move(gateway, root / "a", root / "b", root / "c")
    replace(gateway, root / "c", "one", "robot")
    undo(gateway, run="night", id=str(root / "c"))
    assert tree(root) == {"b": TEXT}
    told = undo(gateway, run="night")
    assert results(told) == {"c": ("unchanged", None), "b": UNDONE} and tree(root) == {"a": TEXT}
    assert undo(gateway, run="night")["unchanged"] == 2 and tree(root) == {"a": TEXT}


def test_moves_of_a_folder_and_of_its_files(place):
    gateway, root = place
    (root / "one").mkdir()
    for name in ("a.md", "b.md"):
        create(gateway, root / "one" / name, run="before")
    (root / "one" / "unknown.txt").write_text("other program\n")
    before = tree(root)
    ask(gateway, "opennotes_move", {"path": "one", "to": "two"}, "robot", "night")
    ask(gateway, "opennotes_move", {"path": "two/a.md", "to": "two/c.md"}, "robot", "night")
    edit(gateway, root / "two" / "b.md", command="delete")
    ask(gateway, "opennotes_move", {"path": "two", "to": "three"}, "robot", "night")
    told = undo(gateway, run="night")
    assert told["conflicts"] == 0 and tree(root) == before, told
    again = undo(gateway, run=told["undo"])
    assert again["conflicts"] == 0, again
    assert tree(root) == {"three": None, "three/c.md": TEXT, "three/unknown.txt": "other program\n"} | \
        {name: None for name in tree(root) if name == "one"}
    undo(gateway, run=again["undo"])
    assert tree(root) == before


def test_a_file_that_was_moved_and_removed(place):
    gateway, root = place
    for name in ("plain", "edited", "twice", "others"):
        create(gateway, root / name, run="before")
    (root / "edited").chmod(0o640)
    before = tree(root)
    move(gateway, root / "plain", root / "plain 2")
    replace(gateway, root / "edited", "one", "robot")
    move(gateway, root / "edited", root / "sub" / "edited 2")
    replace(gateway, root / "sub" / "edited 2", "two", "robot")
    move(gateway, root / "twice", root / "twice 2", root / "twice 3")
    move(gateway, root / "others", root / "others 2")
    replace(gateway, root / "others 2", "five", "ana", **ANA)
    for name in ("plain 2", "sub/edited 2", "twice 3", "others 2"):
        edit(gateway, root / name, command="delete")
    assert not [text for text in tree(root).values() if text is not None]
    after = check(gateway, root, {name: UNDONE for name in ("plain 2", "edited 2", "edited", "twice 3", "twice 2", "others 2")})
    before["others"] = TEXT.replace("five", "ana")
    assert {name: text for name, text in after.items() if text is not None} == before
    assert (root / "edited").stat().st_mode & 0o777 == 0o640


def test_a_removed_file_whose_first_path_is_taken(place):
    gateway, root = place
    create(gateway, root / "a", run="before")
    move(gateway, root / "a", root / "b")
    edit(gateway, root / "b", command="delete")
    create(gateway, root / "a", "ana\n", **ANA)
    assert check(gateway, root, {"b": ("conflict", "path_taken")}) == {"a": "ana\n"}


def test_a_removed_file_that_others_made_anew(place):
    gateway, root = place
    create(gateway, root / "a", run="before")
    move(gateway, root / "a", root / "b")
    edit(gateway, root / "b", command="delete")
    create(gateway, root / "b", "ana\n", **ANA)
    assert check(gateway, root, {"b": ("conflict", "recreated")}) == {"b": "ana\n"}


def test_a_file_that_was_made_moved_and_removed(place):
    gateway, root = place
    create(gateway, root / "a")
    move(gateway, root / "a", root / "b", root / "c")
    edit(gateway, root / "c", command="delete")
    assert check(gateway, root, {name: ("unchanged", None) for name in "abc"}) == {}
    create(gateway, root / "a", "ana\n", **ANA)
    assert check(gateway, root, {name: ("unchanged", None) for name in "abc"}) == {"a": "ana\n"}


def test_a_new_file_is_where_others_moved_it_away(place):
    gateway, root = place
    create(gateway, root / "x", run="before")
    replace(gateway, root / "x", "two", "robot")
    move(gateway, root / "x", root / "y", root / "z", **ANA)
    create(gateway, root / "x", TEXT.replace("two", "robot"), **ANA)
    create(gateway, root / "y", "ben\n", by="ben", run="day")
    replace(gateway, root / "z", "five", "ana", **ANA)
    assert check(gateway, root, {"x": UNDONE}) == \
        {"x": TEXT.replace("two", "robot"), "y": "ben\n", "z": TEXT.replace("five", "ana")}


def test_a_new_file_is_where_others_moved_away_what_was_made(place):
    gateway, root = place
    create(gateway, root / "x")
    move(gateway, root / "x", root / "y", **ANA)
    create(gateway, root / "x", **ANA)
    assert check(gateway, root, {"x": ("conflict", "changed_since")}) == {"x": TEXT, "y": TEXT}


def test_others_moved_it_away_and_back(place):
    gateway, root = place
    create(gateway, root / "x", run="before")
    replace(gateway, root / "x", "two", "robot")
    move(gateway, root / "x", root / "y", root / "x", **ANA)
    assert check(gateway, root, {"x": UNDONE}) == {"x": TEXT}


def test_a_kill_while_files_are_moved_back_over_several_paths(tmp_path):
    print("seed", SEED)
    root, partly, longest = tmp_path / "root", 0, 0
    chance, sets = random.Random(SEED), [PLUGINS, f"roots={root}"]
    root.mkdir()
    gateway = Gateway(tmp_path / "data", sets)
    for number in range(24):
        create(gateway, root / f"f{number}", run="before")
    before = tree(root)
    for number in range(KILLS + 1):
        run = f"run{number}"
        for at, name in enumerate(sorted(before)):
            replace(gateway, root / name, "one", "robot 1", run=run)
            move(gateway, root / name, root / f"{name} 2", run=run)
            replace(gateway, root / f"{name} 2", "two", "robot 2", run=run)
            last = root / (name if at % 3 == 0 else f"{name} 3")
            move(gateway, root / f"{name} 2", last, run=run)
            if at % 3 == 1:
                edit(gateway, last, command="delete", run=run)
        worked = tree(root)
        if not longest:
            started = time.monotonic()
            undo(gateway, run=run)
            longest = time.monotonic() - started
        else:
            answered = cut_off(gateway, run, chance.random() * longest)
            gateway = Gateway(tmp_path / "data", sets)
            now = tree(root)
            assert not [name for name in now if name.endswith(" 2")], "no file is left between its paths"
            half = TEXT.replace("one", "robot 1")
            assert set(now.values()) <= {TEXT, half, half.replace("two", "robot 2")}
            partly += now not in (before, worked)
            left = ask(gateway, "history_log", {"limit": 1})["unfinished"]
            if left:
                told = undo(gateway, **{"continue": left[0]})
                assert told["conflicts"] == 0, told
                assert tree(root) == before
                again = undo(gateway, run=told["undo"])
                assert again["conflicts"] == 0 and tree(root) == worked, again
                undo(gateway, run=again["undo"])
            elif answered is None:
                undo(gateway, run=run)
        assert tree(root) == before
        assert ask(gateway, "history_log", {"limit": 1})["unfinished"] == []
    print(f"{partly} of {KILLS} were cut off in the middle")
    assert gateway.stop() == 0, gateway.errors
