# SPDX-License-Identifier: MIT
"""history_undo and history_restore of files: edits, creations, removals and moves of a run, beside people, other programs and
kills."""

import concurrent.futures
import json
import random
import threading
import time

import pytest
from cli_support import environment, notegate
from conftest import Gateway
from undo_support import KILLS, PLUGINS, ask, cut_off, edit, replace, results, undo

SEED = random.randrange(2**32)
FILES = 24
PEOPLE = ("ana", "ben")


@pytest.fixture
def place(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    gateway = Gateway(tmp_path / "data", [PLUGINS, f"roots={root}", f"opennotes.notebooks={root}"])
    yield gateway, root
    assert gateway.stop() == 0, gateway.errors


def test_each_kind_of_change_is_taken_back(place):
    gateway, root = place
    for name in ("edited", "deleted", "moved", "moved_and_edited", "both", "conflict", "external"):
        (root / name).write_text(f"{name}\none\ntwo\nthree\n")
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    replace(gateway, root / "edited", "two", "robot")
    edit(gateway, root / "created", command="create", file_text="robot\n")
    edit(gateway, root / "kept", command="create", file_text="robot\n")
    edit(gateway, root / "deleted", command="delete")
    edit(gateway, root / "moved", command="move", destination=str(root / "sub" / "there"))
    replace(gateway, root / "moved_and_edited", "two", "robot")
    edit(gateway, root / "moved_and_edited", command="move", destination=str(root / "elsewhere"))
    replace(gateway, root / "both", "two", "robot")
    replace(gateway, root / "conflict", "two", "robot")
    replace(gateway, root / "external", "three", "robot")
    # Then the others.
    replace(gateway, root / "both", "one", "ana", by="ana", run="day")
    replace(gateway, root / "conflict", "robot", "ana", by="ana", run="day")
    replace(gateway, root / "kept", "robot", "robot\nana", by="ana", run="day")
    replace(gateway, root / "elsewhere", "three", "ana", by="ana", run="day")
    (root / "external").write_text("external\nother program\ntwo\nrobot\n")
    preview = ask(gateway, "history_undo", {"run": "night"})
    assert preview["dry_run"] and (root / "edited").read_text().count("robot") == 1
    told = undo(gateway, run="night")
    assert {key: told[key] for key in ("total", "undone", "conflicts")} == {key: preview[key] for key in ("total", "undone", "conflicts")}
    found = results(told)
    assert found["conflict"] == ("conflict", "overlap") and found["kept"] == ("conflict", "changed_since"), found
    assert not (root / "created").exists() and not (root / "sub" / "there").exists() and not (root / "elsewhere").exists()
    assert {name: (root / name).read_bytes() for name in ("edited", "deleted", "moved")} == \
        {name: before[name] for name in ("edited", "deleted", "moved")}
    assert (root / "both").read_text() == "both\nana\ntwo\nthree\n"
    assert (root / "moved_and_edited").read_text() == "moved_and_edited\none\ntwo\nana\n"
    assert (root / "external").read_text() == "external\nother program\ntwo\nthree\n"
    assert (root / "conflict").read_text() == "conflict\none\nana\nthree\n"
    # An undo of the undo is what was there before it.
    undo(gateway, run=told["undo"])
    assert (root / "edited").read_text() == "edited\none\nrobot\nthree\n" and not (root / "deleted").exists()
    assert (root / "sub" / "there").read_text() == "moved\none\ntwo\nthree\n" and not (root / "moved").exists()
    assert (root / "elsewhere").read_text() == "moved_and_edited\none\nrobot\nana\n"
    assert (root / "external").read_text() == "external\nother program\ntwo\nrobot\n"
    assert (root / "created").read_text() == "robot\n"


def test_lines_of_a_conflict_are_those_of_the_file(place):
    """Newer changes of the run have been taken out before the one that conflicts."""
    gateway, root = place
    (root / "a").write_text("one\ntwo\nthree\nfour\n")
    replace(gateway, root / "a", "four", "robot")
    replace(gateway, root / "a", "robot", "ana", by="ana", run="day")
    edit(gateway, root / "a", command="insert", insert_line=0, new_str="top\ntop\n")
    before = (root / "a").read_text()
    told = undo(gateway, run="night")
    assert results(told) == {"a": ("conflict", "overlap")} and (root / "a").read_text() == before
    line = before.split("\n").index("ana") + 1
    assert line > 4 and told["items"][0]["conflict"]["at"] == [{"line": line, "present": "ana", "before": "four"}]


def test_moves_that_went_on_and_places_that_are_taken(place):
    gateway, root = place
    for name in ("on", "taken", "gone"):
        (root / name).write_text(f"{name}\n")
    edit(gateway, root / "on", command="move", destination=str(root / "on2"))
    edit(gateway, root / "taken", command="move", destination=str(root / "taken2"))
    replace(gateway, root / "gone", "gone", "robot")
    edit(gateway, root / "on2", command="move", destination=str(root / "on3"), by="ana", run="day")
    edit(gateway, root / "taken", command="create", file_text="ana\n", by="ana", run="day")
    edit(gateway, root / "gone", command="delete", by="ana", run="day")
    found = results(undo(gateway, run="night"))
    assert found == {"on2": ("conflict", "moved_on"), "taken2": ("conflict", "path_taken"), "gone": ("conflict", "gone")}
    assert (root / "on3").exists() and (root / "taken2").exists() and (root / "taken").read_text() == "ana\n"


def test_what_was_taken_back_is_no_conflict_once_more(place):
    gateway, root = place
    for name in ("moved", "followed"):
        (root / name).write_text("one\ntwo\n")
    edit(gateway, root / "moved", command="move", destination=str(root / "there"))
    replace(gateway, root / "followed", "two", "robot")
    edit(gateway, root / "followed", command="move", destination=str(root / "on"), by="ana", run="day")
    told = undo(gateway, run="night")
    assert told["undone"] == 2 and sorted(path.name for path in root.iterdir()) == ["moved", "on"]
    replace(gateway, root / "on", "two", "ana", by="ana", run="day")
    assert results(undo(gateway, run="night", dry_run=True)) == {"there": ("unchanged", None), "followed": ("unchanged", None)}
    # The move is there again, and others have moved on.
    assert results(undo(gateway, run=told["undo"], id=str(root / "moved")))["moved"][0] == "undone" and (root / "there").exists()
    edit(gateway, root / "there", command="move", destination=str(root / "far"), by="ana", run="day")
    assert results(undo(gateway, run="night", dry_run=True))["there"] == ("conflict", "moved_on")


def test_numbers_of_changes_in_any_order(place):
    gateway, root = place
    (root / "a").write_text("one\n")
    edit(gateway, root / "a", command="move", destination=str(root / "b"))
    edit(gateway, root / "b", command="move", destination=str(root / "c"))
    changes = ask(gateway, "history_log", {"run": "night"})["changes"]
    at_new = sorted(row["seq"] for row in changes if row["id"] in (str(root / "b"), str(root / "c")) and "to" not in row["summary"])
    assert len(at_new) == 2
    assert undo(gateway, changes=at_new)["undone"] == 2
    assert (root / "a").exists() and not (root / "b").exists() and not (root / "c").exists()


def test_the_number_at_the_old_path_of_a_move_is_that_of_the_move(place):
    gateway, root = place
    (root / "a").write_text("one\n")
    edit(gateway, root / "a", command="move", destination=str(root / "b"))
    away, = (row["seq"] for row in ask(gateway, "history_log", {"run": "night"})["changes"] if row["summary"].startswith("moved to"))
    assert undo(gateway, changes=[away])["undone"] == 1
    assert (root / "a").exists() and not (root / "b").exists()


def test_the_command_tells_where_files_are(place, tmp_path):
    gateway, root = place
    for name in ("back", "on", "edited"):
        (root / name).write_text(f"{name}\nmoved from {root}/nowhere\n")
    edit(gateway, root / "back", command="move", destination=str(root / "back2"))
    edit(gateway, root / "on", command="move", destination=str(root / "on2"))
    replace(gateway, root / "edited", "edited", "moved from ")
    for old, new in (("on2", "on3"), ("on3", "on4")):
        edit(gateway, root / old, command="move", destination=str(root / new), by="ana", run="day")
    for words, result in ((["--dry-run"], "undo  "), (["--yes"], "undone")):
        done = notegate("undo", "--run", "night", *words, "--data-dir", tmp_path / "data", env=environment())
        lines = {line.split()[1]: line for line in done.stdout.splitlines()[:3]}
        assert done.returncode == 1 and done.stderr == "" and lines.keys() == {str(root / name) for name in ("back2", "on2", "edited")}
        assert lines[str(root / "back2")].startswith(result) and lines[str(root / "back2")].endswith(f" → {root / 'back'}")
        assert lines[str(root / "on2")].endswith(f"moved_on: it was moved on since, and is now {root / 'on4'}")
        assert "→" not in lines[str(root / "edited")]
    assert (root / "back").exists()


def test_an_edit_is_taken_out_of_a_file_that_was_moved_since(place):
    gateway, root = place
    (root / "a").write_text("one\ntwo\n")
    replace(gateway, root / "a", "two", "robot")
    edit(gateway, root / "a", command="move", destination=str(root / "b"), by="ana", run="day")
    told = undo(gateway, run="night")
    assert told["undone"] == 1 and (root / "b").read_text() == "one\ntwo\n" and not (root / "a").exists()


def test_what_others_have_moved_is_not_removed(place):
    gateway, root = place
    edit(gateway, root / "made", command="create", file_text="robot\n")
    edit(gateway, root / "made", command="move", destination=str(root / "ours"), by="ana", run="day")
    assert results(undo(gateway, run="night")) == {"made": ("conflict", "changed_since")}
    assert (root / "ours").read_text() == "robot\n"


def test_a_preview_is_what_is_done(place):
    """Also where a later change moves what an earlier one has made."""
    gateway, root = place
    (root / "a").write_text("one\ntwo\n")
    replace(gateway, root / "a", "one", "robot")
    for old, new in (("a", "b"), ("b", "c")):
        edit(gateway, root / old, command="move", destination=str(root / new))
    replace(gateway, root / "c", "two", "robot")
    edit(gateway, root / "made", command="create", file_text="robot\n")
    edit(gateway, root / "made", command="move", destination=str(root / "made2"))
    replace(gateway, root / "made2", "robot", "robot 2")
    preview = ask(gateway, "history_undo", {"run": "night"})
    told = undo(gateway, run="night")
    assert [(item["id"], item["result"]) for item in preview["items"]] == [(item["id"], item["result"]) for item in told["items"]]
    assert told["conflicts"] == 0, told
    assert [path.name for path in root.iterdir()] == ["a"] and (root / "a").read_text() == "one\ntwo\n"


def test_a_file_that_comes_back_has_its_mode(place):
    gateway, root = place
    for name in ("secret", "script"):
        (root / name).write_text("one\n")
    (root / "secret").chmod(0o600)
    (root / "script").chmod(0o755)
    for name in ("secret", "script"):
        edit(gateway, root / name, command="delete")
    undo(gateway, run="night")
    assert ((root / "secret").stat().st_mode & 0o777, (root / "script").stat().st_mode & 0o777) == (0o600, 0o755)
    edit(gateway, root / "secret", command="delete")
    ask(gateway, "history_restore", {"path": str(root / "secret"), "at": "1"})
    assert (root / "secret").stat().st_mode & 0o777 == 0o600


def notes_of(root):
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.md")}


def test_a_note_that_moved_comes_back_with_its_links(place):
    gateway, root = place
    (root / "plan.md").write_text("# Plan\n\n[Ada](ada.md)\n")
    (root / "ada.md").write_text("# Ada\n\n[the plan](plan.md)\n")
    before = notes_of(root)
    ask(gateway, "opennotes_move", {"path": "plan.md", "to": "done/plan.md"}, "robot", "night")
    assert "done/plan.md" in notes_of(root)["ada.md"]
    told = undo(gateway, run="night")
    assert told["conflicts"] == 0 and notes_of(root) == before, told
    ask(gateway, "opennotes_delete", {"path": "plan.md"}, "robot", "cleanup")
    undo(gateway, run="cleanup")
    assert notes_of(root) == before


def test_cells_need_the_mode_agent_wherever_they_are(place):
    gateway, root = place
    (root / "a.json").write_text("one\ntwo\n")
    replace(gateway, root / "a.json", "two", "robot")
    edit(gateway, root / "a.json", command="move", destination=str(root / "a.ipynb"), by="ana", run="day")
    answer = gateway.call("history_undo", {"run": "night", "dry_run": False},
                          {"X-Notegate-Agent": "robot", "X-Notegate-Mode": "edit"})
    assert answer.status_code == 200, answer.text
    assert results(answer.json()["result"]) == {"a.json": ("conflict", "forbidden")}
    assert (root / "a.ipynb").read_text() == "one\nrobot\n"


def test_bytes_that_are_no_text(place):
    gateway, root = place
    (root / "x.ipynb").write_text('{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}\n')
    before = (root / "x.ipynb").read_bytes()
    ask(gateway, "attachNotebook", {"notebook": str(root / "x.ipynb")}, "robot", "night")
    ask(gateway, "addNotebookCell", {"type": "markdown", "index": 0, "content": "# robot"}, "robot", "night")
    assert (root / "x.ipynb").read_bytes() != before
    assert undo(gateway, run="night")["undone"] == 1
    assert (root / "x.ipynb").read_bytes() == before


def write_notebook(path, **sources):
    cells = [{"cell_type": "code", "execution_count": None, "id": name, "metadata": {}, "outputs": [], "source": source}
             for name, source in sources.items()]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n")


def sources(path):
    return {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]}


def cells(gateway, path, tool, by="robot", run="night", **arguments):
    return ask(gateway, tool, {"notebook": str(path)} | arguments, by, run)


def test_notebooks_are_merged_by_cells(place):
    gateway, root = place
    path = root / "x.ipynb"
    write_notebook(path, a="x = 1", b="y = 1", c="z = 1\nz += 1\nz += 2")
    cells(gateway, path, "updateNotebookCell", cellId="a", content="x = 2")
    cells(gateway, path, "updateNotebookCell", cellId="c", content="z = 2\nz += 1\nz += 2")
    cells(gateway, path, "addNotebookCell", type="code", index=0, content="robot")
    cells(gateway, path, "updateNotebookCell", "ana", "day", cellId="b", content="y = 3")
    cells(gateway, path, "updateNotebookCell", "ana", "day", cellId="c", content="z = 2\nz += 1\nz += 3")
    cells(gateway, path, "addNotebookCell", "ana", "day", type="code", index=-1, content="ana")
    both = path.read_bytes()
    told = undo(gateway, run="night")
    assert told["undone"] == 1 and told["conflicts"] == 0, told
    assert list(sources(path).values()) == ["x = 1", "y = 3", "z = 1\nz += 1\nz += 3", "ana"]
    undo(gateway, run=told["undo"])
    assert json.loads(path.read_bytes()) == json.loads(both)


def test_conflicts_of_cells(place):
    gateway, root = place
    for name in ("same", "gone"):
        write_notebook(root / f"{name}.ipynb", a="first", b="x = 1")
        cells(gateway, root / f"{name}.ipynb", "updateNotebookCell", cellId="b", content="x = 2")
    cells(gateway, root / "same.ipynb", "updateNotebookCell", "ana", "day", cellId="b", content="x = 3")
    cells(gateway, root / "gone.ipynb", "deleteNotebookCells", "ana", "day", cellIds=["b"])
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    told = undo(gateway, run="night")
    assert results(told) == {"same.ipynb": ("conflict", "overlap"), "gone.ipynb": ("conflict", "cell")}, told
    conflict = next(item["conflict"] for item in told["items"] if item["id"].endswith("same.ipynb"))
    assert conflict["at"] == [{"line": 5, "present": "x = 3", "before": "x = 1"}]
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before


def test_notebooks_without_the_plugin_of_cells(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    for name in ("alone", "both"):
        write_notebook(root / f"{name}.ipynb", a="x = 1", b="y = 1")
    before = (root / "alone.ipynb").read_bytes()
    gateway = Gateway(tmp_path / "data", ["plugins=file_editor,history", f"roots={root}"])
    for name in ("alone", "both"):
        replace(gateway, root / f"{name}.ipynb", "x = 1", "x = 2")
    replace(gateway, root / "both.ipynb", "y = 1", "y = 2", by="ana", run="day")
    told = undo(gateway, run="night")
    assert results(told) == {"alone.ipynb": ("undone", None), "both.ipynb": ("conflict", "not_text")}
    assert (root / "alone.ipynb").read_bytes() == before
    assert sources(root / "both.ipynb") == {"a": "x = 2", "b": "y = 2"}
    assert gateway.stop() == 0, gateway.errors


def test_front_matter_of_notes(place):
    gateway, root = place
    note = "---\ntitle: Plan\nstatus: old\n---\n\nText\n"
    for name in ("good.md", "broken.md", "broken.txt"):
        (root / name).write_text(note)
        replace(gateway, root / name, "status: old\n", "")
    replace(gateway, root / "good.md", "Text", "Words", by="ana", run="day")
    for name in ("broken.md", "broken.txt"):
        replace(gateway, root / name, "title", "status: new\ntitle", by="ana", run="day")
    told = undo(gateway, run="night")
    # A key would be there twice. In a text that is no note that is nobody's concern.
    assert results(told) == {"good.md": ("undone", None), "broken.md": ("conflict", "invalid_merge"), "broken.txt": ("undone", None)}
    assert (root / "good.md").read_text() == note.replace("Text", "Words")
    assert (root / "broken.md").read_text() == "---\nstatus: new\ntitle: Plan\n---\n\nText\n"
    assert (root / "broken.txt").read_text() == "---\nstatus: new\ntitle: Plan\nstatus: old\n---\n\nText\n"


def test_a_file_is_restored(place):
    gateway, root = place
    path = root / "plan.md"
    path.write_text("one\n")
    replace(gateway, path, "one", "two")
    replace(gateway, path, "two", "three")
    told = ask(gateway, "history_restore", {"path": str(path), "at": "1"})
    assert told == {"revision": 4, "restored_from": 1, "added": 1, "removed": 1, "space": "shared"}
    assert path.read_text() == "one\n"
    refused = ask(gateway, "history_restore", {"path": str(path), "at": "2", "expectedRevision": 3}, status=409)
    assert refused["code"] == "CONFLICT" and path.read_text() == "one\n"
    edit(gateway, path, command="delete")
    ask(gateway, "history_restore", {"path": str(path), "at": "3"})
    assert path.read_text() == "three\n"
    log = ask(gateway, "history_log", {"path": "plan.md", "limit": 2})["changes"]
    assert [(change["revision"], change["action"], change["agent"]) for change in log] == \
        [(6, "created", "lead"), (5, "deleted", "robot")]


def test_a_run_is_taken_back_while_people_work(place):
    """No line of the people is lost, none of the run is left but in files that are told as conflicts."""
    print("seed", SEED)
    chance, (gateway, root) = random.Random(SEED), place
    paths = [root / f"f{number}.md" for number in range(FILES)]
    for path in paths:
        path.write_text("".join(f"line {n}\n" for n in range(8)))
    written, stop = {path: [] for path in paths}, threading.Event()

    def person(who, seed):
        own, count = random.Random(seed), 0
        while not stop.is_set():
            path, line = own.choice(paths), f"{who} {count}"
            edit(gateway, path, command="insert", insert_line=own.randrange(9), new_str=line + "\n", by=who, run="day")
            written[path].append(line)
            count += 1

    with concurrent.futures.ThreadPoolExecutor(len(PEOPLE)) as pool:
        working = [pool.submit(person, who, chance.random()) for who in PEOPLE]
        try:
            for number, path in enumerate(paths * 2):
                edit(gateway, path, command="insert", insert_line=chance.randrange(9), new_str=f"robot {number}\n")
            told = undo(gateway, run="night")
        finally:
            stop.set()
        for done in working:
            done.result()
    assert told["total"] == FILES and told["agents"] == ["robot"]
    conflicts = {item["id"] for item in told["items"] if item["result"] == "conflict"}
    assert len(conflicts) == told["conflicts"] and told["undone"] + told["conflicts"] == FILES
    for path in paths:
        lines = path.read_text().split("\n")
        assert set(written[path]) <= set(lines), path
        assert any(line.startswith("robot") for line in lines) == (str(path) in conflicts), path


def test_a_kill_leaves_whole_files_and_the_rest_is_done_later(tmp_path):
    print("seed", SEED)
    chance, sets, partly = random.Random(SEED), [PLUGINS, f"roots={tmp_path / 'root'}"], 0
    (tmp_path / "root").mkdir()
    paths = [tmp_path / "root" / f"f{number}" for number in range(40)]
    gateway = Gateway(tmp_path / "data", sets)
    for path in paths:
        path.write_text("first\nlast\n")
    started = time.monotonic()
    for path in paths[:8]:
        replace(gateway, path, "first\n", "first\nrobot\n", run="probe")
    undo(gateway, run="probe")
    longest = (time.monotonic() - started) * len(paths) / 8
    for number in range(KILLS):
        run = f"run{number}"
        for path in paths:
            replace(gateway, path, "first\n", f"first\nrobot {number}\n", run=run)
        for path in paths[::2]:
            edit(gateway, path, command="move", destination=str(path) + ".moved", run=run)
        answered = cut_off(gateway, run, chance.random() * longest)
        gateway = Gateway(tmp_path / "data", sets)
        there = [path if path.exists() else path.with_name(path.name + ".moved") for path in paths]
        states = {path.read_text() for path in there}
        assert states <= {"first\nlast\n", f"first\nrobot {number}\nlast\n"}, "each file is whole or untouched"
        left = ask(gateway, "history_log", {"limit": 1})["unfinished"]
        partly += len(states) == 2
        if left:
            told = undo(gateway, **{"continue": left[0]})
            assert told["conflicts"] == 0, told
        elif answered is None:
            undo(gateway, run=run)
        assert {path.read_text() for path in paths} == {"first\nlast\n"}
        assert sorted(paths) == sorted((tmp_path / "root").iterdir())
        assert ask(gateway, "history_log", {"limit": 1})["unfinished"] == []
    print(f"{partly} of {KILLS} were cut off in the middle")
    assert gateway.stop() == 0, gateway.errors
