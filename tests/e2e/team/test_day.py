# SPDX-License-Identifier: MIT
"""A day's work: what an agent does every day takes the calls that day_support.TASKS allows, over REST and both MCP eras, and
leaves what was asked for. The tasks with cells are in cells/test_cells_day.py."""

import concurrent.futures
import datetime
import json

import pytest
from conftest import SOURCE
from day_support import TASKS, agent, begin, place  # noqa: F401 (fixtures among them)
from keys_support import add, bearer
from preload_support import shim

DAY_SECONDS = 86400
CLAIMANTS = 4


def put_page(place, title, content):
    place.reader.call("notebook_create", collection="pages", title=title, content=content)


# ---- finding and reading ----


def decide(place, kind, text):
    """Writes the text where this kind is; the title of what has it."""
    title = f"About {kind}"
    if kind in ("page", "code_snippet", "research_note"):
        collection = {"page": "pages", "code_snippet": "code_snippets", "research_note": "research_notes"}[kind]
        place.reader.call("notebook_create", collection=collection, title=title, content=text)
    elif kind == "memory":
        place.reader.call("memory_log", content=text)
        title = "first"
    elif kind == "notebook":
        place.reader.call("notebook", mode="create", name=title, newStr=text, space="shared")
    elif kind == "note":
        (place.notes / "About note.md").write_text(text)
    elif kind == "file":
        title = "about.txt"
        (place.files / title).write_text(text)
    else:
        title = "about.ipynb"
        cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": text}
        (place.files / title).write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return title


def test_find_where_something_was_decided(place, agent):
    """It is in one kind of text, and the agent does not know in which; the other kinds have one of its words."""
    words = {"page": "harbour", "code_snippet": "mooring", "research_note": "ballast", "memory": "gondola", "notebook": "rudder",
             "note": "hangar", "file": "propeller", "cell": "altimeter"}
    titles = {kind: decide(place, kind, f"first\nThe {word} is of steel.\nlast\n") for kind, word in words.items()}
    for kind, word in words.items():
        with agent.task("find where something was decided"):
            found = agent.call("search", query=f"steel {word}", space="shared").result
        [hit] = [hit for hit in found["hits"] if word in hit["excerpt"]]
        assert (hit["kind"], hit["line"], hit["space"], found["complete"]) == (kind, 2, "shared", True), hit
        assert f"The {word} is of steel." in hit["excerpt"] and titles[kind] in hit["title"], hit


def test_find_a_word_in_many_files(place, agent):
    folder = place.files / "many"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number:02}.txt").write_text(f"one\n{'the needle' if number % 2 else 'nothing'} {number}\n")
    with agent.task("find a word in many files"):
        told = agent.call("fileEditor", command="search", path=str(folder), pattern="needle").result
    lines = [f"{folder}/{number:02}.txt:2: the needle {number}" for number in range(60) if number % 2]
    assert told.split("\n") == [*lines, "30 matches in 30 files"]


def test_list_the_open_tasks(begin):
    """Of all notes of a folder."""
    own = begin()
    (own.notes / "team").mkdir()
    (own.notes / "plan.md").write_text("---\nstatus: open\n---\n# Plan\n- [ ] call the printer\n- [x] book the hall\n- no task\n")
    (own.notes / "team" / "ada.md").write_text("# Ada\n\n* [X] done\n\n1. [ ] read the contract\n")
    (own.notes / "none.md").write_text("```\n- [ ] in a listing\n```\n")
    asking = own.agent()
    with asking.task("list the open tasks"):
        found = asking.call("opennotes_search", sql="SELECT n.file_path, t.line, t.text FROM read_markdown('**/*.md') n, "
                                                    "md_tasks(n.content) t WHERE NOT t.done ORDER BY 1, 2").result
    assert [(row["file_path"], row["text"]) for row in found["results"]] == [
        ("plan.md", "call the printer"), ("team/ada.md", "read the contract")]


def test_read_some_lines_of_a_big_file(place, agent):
    path = place.files / "big.log"
    path.write_text("".join(f"line {number} of the log {'x' * 100}\n" for number in range(1, 200_001)))
    with agent.task("read some lines of a big file"):
        told = agent.call("fileEditor", command="view", path=str(path), view_range=[100_000, 100_050]).result
    shown = [line for line in told.split("\n") if " of the log " in line]
    assert [line.strip() for line in shown] == [f"{number}  line {number} of the log {'x' * 100}" for number in range(100_000, 100_051)]


def test_read_a_page_of_another_space(begin):
    own = begin()
    keys = {name: add(own.gateway.data_dir, name, *spaces) for name, spaces in {
        "ann": ("--space", "lab", "--space", "office"), "bob": ("--space", "office")}.items()}
    ann, bob = (own.agent(headers=bearer(key)) for key in keys.values())
    bob.call("notebook_create", collection="pages", title="Rent", content="due in May")
    ann.call("notebook_create", collection="pages", title="Rent", content="of the lab")
    with ann.task("read a page of another space"):
        page = ann.call("notebook_read", notebook_id="rent", space="office").result
    assert (page["title"], page["content"], page["space"]) == ("Rent", "due in May", "office")


@pytest.mark.plain_build
def test_compare_a_page_with_yesterday(begin, tmp_path, monkeypatch):
    """Yesterday is that of a gateway whose clock is a day slow."""
    shim(monkeypatch, tmp_path, "clock")
    monkeypatch.setenv("CLOCK_OFFSET", str(-DAY_SECONDS))
    before = begin()
    put_page(before, "Log", "one\n")
    for text in ("one\ntwo\n", "one\ntwo\nthree\n"):
        before.reader.call("notebook_update", notebook_id="Log", content=text)
    before.stop()
    monkeypatch.setenv("CLOCK_OFFSET", "0")
    own = begin()
    own.reader.call("notebook_update", notebook_id="Log", content="one\n2\nthree\nfour\n")
    asking = own.agent()
    with asking.task("compare a page with yesterday"):
        history = asking.call("notebook_history", notebook_id="Log").result["history"]
        today = history[0]["timestamp"][:10]
        last = next(version["version"] for version in history if version["timestamp"][:10] < today)
        diff = asking.call("notebook_diff", notebook_id="Log", **{"from": last}).result
    assert (last, diff["to"], diff["lines_added"], diff["lines_removed"]) == (3, 4, 2, 1)
    changed = [line for line in diff["diff"].split("\n") if line.startswith(("+", "-"))]
    assert changed[2:] == ["-two", "+2", "+four"], diff


# ---- changing ----


def test_append_a_line_to_a_page(place, agent):
    put_page(place, "Launch plan", "# Plan\n\n- call the printer")
    with agent.task("append a line to a page"):
        agent.call("notebook_update", notebook_id="launch plan", append="- book the hall")
    assert place.page("Launch plan")["content"] == "# Plan\n\n- call the printer\n- book the hall"


def test_add_a_bullet_under_a_heading(place, agent):
    put_page(place, "Budget", "# Budget\n\n## Costs\n\n- hall\n\n## Team\n\n- Ada\n")
    with agent.task("add a bullet under a heading"):
        agent.call("notebook_update", notebook_id="Budget", section="Costs", append="- flyers")
    assert place.page("Budget")["content"] == "# Budget\n\n## Costs\n\n- hall\n- flyers\n\n## Team\n\n- Ada\n"


def test_add_a_task_to_todays_note(place, agent):
    """Under its heading, which is not the last one; tomorrow may begin meanwhile."""
    text = "# Day\n\n## Tasks\n\n- [ ] one\n\n## Log\n\n- noon\n"
    today = datetime.date.today()
    (place.notes / "daily").mkdir()
    days = [f"daily/{today + datetime.timedelta(days=after)}.md" for after in (0, 1)]
    for day in days:
        (place.notes / day).write_text(text)
    with agent.task("add a task to today's note"):
        told = agent.call("opennotes_daily", section="Tasks", content="- [ ] call the printer").result
    assert told["note"]["path"] in days and told["created"] is False
    left = {day: (place.notes / day).read_text() for day in days}
    assert left == {day: text.replace("one\n", "one\n- [ ] call the printer\n") if day == told["note"]["path"] else text for day in days}


def test_tick_a_task_in_a_note(place, agent):
    """It is not known in which one, nor how it is written there."""
    (place.notes / "trip.md").write_text("# Trip\n\n- [ ] pay the ferry\n* [ ] Buy the tickets for Ada\n- [x] ask Ada\n")
    (place.notes / "other.md").write_text("# Other\n\n- [ ] buy bread\n")
    with agent.task("tick a task in a note"):
        note = agent.call("opennotes_search", query="buy the tickets").result["results"][0]
        [line] = [line for line in note["excerpt"].split("\n") if "buy the tickets" in line.lower()]
        agent.call("opennotes_edit", path=note["path"], operation="str_replace", oldStr=line, newStr=line.replace("[ ]", "[x]"))
    assert (place.notes / "trip.md").read_text() == "# Trip\n\n- [ ] pay the ferry\n* [x] Buy the tickets for Ada\n- [x] ask Ada\n"
    assert (place.notes / "other.md").read_text() == "# Other\n\n- [ ] buy bread\n"


def test_claim_a_task(place):
    """Of several agents at once one gets it; each makes one call."""
    put_page(place, "Work", "- [ ] print the flyers\n- [ ] print the flyers of May\n")
    team = [place.agent() for _ in range(CLAIMANTS)]

    def claim(claimant):
        with claimant.task("claim a task"):
            return claimant.ask("notebook_update", notebook_id="Work", edits=[
                {"old_str": "- [ ] print the flyers\n", "new_str": f"- [/] print the flyers ({claimant.headers['X-Notegate-Agent']})\n"}])

    with concurrent.futures.ThreadPoolExecutor(CLAIMANTS) as pool:
        errors = [answer.error for answer in pool.map(claim, team)]
    [winner] = [claimant for claimant, error in zip(team, errors) if error is None]
    assert [error["code"] for error in errors if error] == ["EDIT_NO_MATCH"] * (CLAIMANTS - 1), errors
    assert place.page("Work")["content"] == (
        f"- [/] print the flyers ({winner.headers['X-Notegate-Agent']})\n- [ ] print the flyers of May\n")


SECTION = "## Risks\n\n- ice\n- wind\n"


def test_move_a_section_between_pages(place, agent):
    """The agent has the section before it."""
    put_page(place, "Old report", f"# Old\n\ntext\n\n{SECTION}\n## End\n")
    put_page(place, "New report", "# New\n\ntext\n")
    with agent.task("move a section"):
        agent.call("notebook_update", notebook_id="New report", append=f"\n{SECTION}")
        agent.call("notebook_update", notebook_id="Old report", edits=[{"old_str": f"{SECTION}\n", "new_str": ""}])
    assert place.page("Old report")["content"] == "# Old\n\ntext\n\n## End\n"
    assert place.page("New report")["content"] == f"# New\n\ntext\n\n{SECTION}"


def test_move_a_section_between_notes(place, agent):
    """The agent has the section before it."""
    (place.notes / "old.md").write_text(f"# Old\n\ntext\n\n{SECTION}\n## End\n")
    (place.notes / "new.md").write_text("# New\n\ntext\n")
    with agent.task("move a section"):
        agent.call("opennotes_edit", path="new.md", operation="append", content=f"\n{SECTION}")
        agent.call("opennotes_edit", path="old.md", operation="str_replace", oldStr=f"{SECTION}\n", newStr="")
    assert (place.notes / "old.md").read_text() == "# Old\n\ntext\n\n## End\n"
    assert (place.notes / "new.md").read_text() == f"# New\n\ntext\n\n{SECTION}"


def test_rename_a_note_and_keep_its_links(place, agent):
    (place.notes / "people").mkdir()
    (place.notes / "swarm.md").write_text("# Swarm\n\nSee [Eve](people/eve.md).\n")
    (place.notes / "people" / "eve.md").write_text("---\nup: \"[[swarm]]\"\n---\n[[swarm|the plan]], [again](../swarm.md#swarm)\n")
    with agent.task("rename a note and keep its links"):
        told = agent.call("opennotes_move", path="swarm.md", to="archive/flock.md").result
    assert (told["path"], told["links"], told["notes"]) == ("archive/flock.md", 4, ["people/eve.md"])
    assert not (place.notes / "swarm.md").exists()
    assert (place.notes / "archive" / "flock.md").read_text() == "# Swarm\n\nSee [Eve](../people/eve.md).\n"
    assert (place.notes / "people" / "eve.md").read_text() == (
        "---\nup: \"[[flock]]\"\n---\n[[flock|the plan]], [again](../archive/flock.md#swarm)\n")


# ---- taking back ----


def test_undo_a_change_of_a_page(place, agent):
    agent.call("notebook_create", collection="pages", title="Menu", content="soup")
    agent.call("notebook_update", notebook_id="Menu", content="salad")
    with agent.task("undo a change of a page"):
        told = agent.call("notebook_restore", notebook_id="Menu").result
    page = place.page("Menu")
    assert (page["content"], page["metadata"]["version"], told["version"], told["restored_from"]) == ("soup", 3, 3, 1)


def test_undo_a_change_of_a_named_text(place, agent):
    agent.call("notebook", mode="create", name="list", newStr="one")
    agent.call("notebook", mode="write", name="list", oldStr="one", newStr="two")
    with agent.task("undo a change of a named text"):
        told = agent.call("notebook", mode="undo", name="list").result
    assert told == "Undid the last change of notebook 'list'"
    assert agent.call("notebook", mode="read", name="list").result == "one"


def test_undo_a_change_of_a_note(place, agent):
    (place.notes / "song.md").write_text("# Song\n\none\n")
    agent.call("opennotes_edit", path="song.md", operation="str_replace", oldStr="one", newStr="two")
    assert (place.notes / "song.md").read_text() == "# Song\n\ntwo\n"
    with agent.task("undo a change of a note"):
        agent.call("opennotes_edit", path="song.md", operation="undo")
    assert (place.notes / "song.md").read_text() == "# Song\n\none\n"


def test_undo_a_change_of_a_file(place, agent):
    path = place.files / "song.txt"
    path.write_text("one\n")
    agent.call("fileEditor", command="str_replace", path=str(path), old_str="one", new_str="two")
    assert path.read_text() == "two\n"
    with agent.task("undo a change of a file"):
        agent.call("fileEditor", command="undo_edit", path=str(path))
    assert path.read_text() == "one\n"


# ---- deleting ----


def test_delete_a_note(place, agent):
    (place.notes / "waste.md").write_text("# Waste\n")
    with agent.task("delete a note"):
        told = agent.call("opennotes_delete", path="waste.md").result
    assert not (place.notes / "waste.md").exists() and (place.notes / told["trash"]).read_text() == "# Waste\n"
    assert place.reader.call("opennotes_search", query="Waste").result["results"] == []


def test_delete_a_file(place, agent):
    path = place.files / "waste.txt"
    path.write_text("text\n")
    with agent.task("delete a file"):
        agent.call("fileEditor", command="delete", path=str(path))
    assert not path.exists()


def test_delete_a_named_text(place, agent):
    for name in ("kept", "waste"):
        agent.call("notebook", mode="create", name=name, newStr="text")
    with agent.task("delete a named text"):
        agent.call("notebook", mode="delete", name="waste")
    listed = agent.call("notebook", mode="list").result
    assert "- kept: 1 lines" in listed and "waste" not in listed


# ---- the list ----


def test_each_task_has_its_test():
    tests = "".join((SOURCE / "tests" / "e2e" / name).read_text() for name in ("team/test_day.py", "cells/test_cells_day.py"))
    assert [name for name in TASKS if f'.task("{name}")' not in tests] == []
    assert (len(TASKS), sorted(TASKS.values())[-4:]) == (26, [1, 2, 2, 2])
