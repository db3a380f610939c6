# SPDX-License-Identifier: MIT
"""Renaming, deleting and taking back by the one rule of undo, of one gateway on sqlite and of two that share MongoDB."""

import concurrent.futures
import contextlib
import itertools

import pytest
from conftest import Gateway
from servers import Servers


SPACES = itertools.count(1)
AT_ONCE = 4
STEPS = 30


@pytest.fixture(scope="module", params=["sqlite", "mongo"])
def gateways(request, tmp_path_factory):
    """One gateway with a store of its own, or two with one database."""
    with contextlib.ExitStack() as stack:
        sets, count = ["plugins=notebook,agent_notebook"], 1
        if request.param == "mongo":
            sets += ["documents=mongo", f"mongo.uri={Servers(stack).mongo().uri}", "mongo.database=notegate_undo",
                     "mongo.timeout=30s"]
            count = 2
        made = [Gateway(tmp_path_factory.mktemp("undo") / "data", sets) for _ in range(count)]
        yield made
        for gateway in made:
            assert gateway.stop() == 0, gateway.errors


class Team:
    """The agents of a space that nobody else has. Each call goes to the next gateway."""

    def __init__(self, gateways):
        self.space, self.next = f"undo{next(SPACES)}", itertools.cycle(gateways)

    def answer(self, agent, tool, arguments, **headers):
        return next(self.next).call(tool, arguments, {"X-Notegate-Agent": agent, "X-Notegate-Space": self.space} | headers)

    def ok(self, agent, tool, **arguments):
        answer = self.answer(agent, tool, arguments)
        assert answer.status_code == 200, (agent, arguments, answer.text)
        return answer.json()["result"]

    def fails(self, status, agent, tool, **arguments):
        answer = self.answer(agent, tool, arguments)
        assert answer.status_code == status, (agent, arguments, answer.text)
        return answer.json()

    def book(self, agent, mode, name="n", **more):
        return self.ok(agent, "notebook", mode=mode, name=name, **more)

    def text(self, name="n"):
        return self.book("reader", "read", name)


@pytest.fixture
def team(gateways):
    return Team(gateways)


# ---- notebooks ----


def test_a_notebook_is_taken_back(team):
    for text in ("one", "two"):
        team.book("ann", "create", newStr=text)
    assert team.book("ann", "undo") == "Undid the last change of notebook 'n'"
    assert team.text() == "one"
    team.book("bob", "write", newStr="three")
    refused = team.fails(409, "ann", "notebook", mode="undo", name="n")
    assert refused["code"] == "CONFLICT" and "the agent bob made it at 20" in refused["message"]
    assert refused["details"]["changed_by"] == "bob" and refused["details"]["timestamp"]
    assert team.text() == "one\nthree"
    team.book("bob", "undo")
    assert team.text() == "one"
    assert team.book("ann", "undo") == "Undid the creation of notebook 'n'"
    assert team.fails(422, "ann", "notebook", mode="undo", name="n")["message"] == "No edit history found for notebook 'n'."


def test_a_notebook_is_deleted_and_comes_back(team):
    team.book("ann", "create", newStr="text")
    assert team.book("ann", "delete") == "Deleted notebook 'n'"
    assert "- n" not in team.ok("ann", "notebook", mode="list")
    team.fails(404, "ann", "notebook", mode="read", name="n")
    team.fails(409, "bob", "notebook", mode="undo", name="n")
    assert team.book("ann", "undo") == "Undid the deletion of notebook 'n'"
    assert team.text() == "text"


def test_a_notebook_is_renamed_and_back(team):
    for text in ("one", "two"):
        team.book("ann", "create", "a", newStr=text)
    team.book("ann", "create", "taken")
    assert team.fails(409, "ann", "notebook", mode="rename", name="a", newName="taken")["code"] == "CONFLICT"
    assert team.book("ann", "rename", "a", newName="b") == "Renamed notebook 'a' to 'b'"
    assert team.ok("ann", "notebook", mode="list") == "Available notebooks:\n- default: Empty\n- taken: Empty\n- b: 1 lines"
    assert team.book("ann", "undo", "b") == "Undid the last change of notebook 'b': renamed back to 'a'"
    team.fails(404, "ann", "notebook", mode="read", name="b")
    team.book("ann", "undo", "a")
    assert team.text("a") == "one"
    assert team.fails(400, "ann", "notebook", mode="rename", name="default", newName="c")["code"] == "INVALID_INPUT"


def test_an_undo_with_a_key_is_made_once(team):
    for text in ("one", "two", "three"):
        team.book("ann", "create", newStr=text)
    for _ in range(3):
        answer = team.answer("ann", "notebook", {"mode": "undo", "name": "n"}, **{"Idempotency-Key": "once"})
        assert answer.json() == {"result": "Undid the last change of notebook 'n'", "revision": 4}
    assert team.text() == "two"


def test_modes_that_write(team):
    team.book("ann", "create", newStr="text")
    for mode in ("rename", "delete", "undo"):
        answer = team.answer("ann", "notebook", {"mode": mode, "name": "n", "newName": "m"}, **{"X-Notegate-Mode": "ask"})
        assert answer.status_code == 403 and answer.json()["code"] == "MODE_FORBIDDEN"
    assert team.text() == "text"


# ---- many at once ----


def at_once(work, count=AT_ONCE):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_agents_take_back_only_their_own(team):
    """Each appends lines and takes some back: the lines that are left are those that were written and not undone."""
    team.book("ann", "create", "log", newStr="first")

    def work(number):
        agent, kept = f"w{number}", []
        for step in range(STEPS):
            if step % 3 == 2:
                answer = team.answer(agent, "notebook", {"mode": "undo", "name": "log"})
                assert answer.status_code in (200, 409, 422), answer.text
                if answer.status_code == 200:
                    kept.pop()
            else:
                team.book(agent, "write", "log", newStr=f"{agent}-{step}")
                kept.append(f"{agent}-{step}")
        return kept

    kept = at_once(work)
    lines = team.text("log").split("\n")
    assert lines[0] == "first" and sorted(lines[1:]) == sorted(itertools.chain(*kept))


def test_one_agent_undoes_at_once(team):
    for number in range(2 * AT_ONCE + 1):
        team.book("ann", "create", newStr=str(number))
    at_once(lambda _: team.book("ann", "undo"))
    assert team.text() == str(AT_ONCE)


def test_rename_delete_and_write_at_once(team):
    """Of those that move one notebook away, one comes first; what is there afterwards has all that was acknowledged."""
    for turn in range(8):
        name = f"n{turn}"
        team.book("ann", "create", name, newStr="text")
        calls = [{"mode": "rename", "name": name, "newName": name + "x"}, {"mode": "rename", "name": name, "newName": name + "y"},
                 {"mode": "delete", "name": name}, {"mode": "write", "name": name, "newStr": "more"}]
        answers = at_once(lambda number: team.answer("ann", "notebook", calls[number]))
        assert all(answer.status_code in (200, 404) for answer in answers), [answer.text for answer in answers]
        assert sum(answer.status_code == 200 for answer in answers[:3]) == 1
        if answers[2].status_code != 200:
            where = name + "xy"[answers[0].status_code != 200]
            assert team.text(where) == ("text\nmore" if answers[3].status_code == 200 else "text")
            assert team.book("ann", "undo", where).endswith(f"renamed back to '{name}'")
        else:
            team.book("ann", "undo", name)
        assert team.text(name) == ("text\nmore" if answers[3].status_code == 200 else "text")


# ---- entries ----


def page(team, *texts, agent="ann"):
    entry = team.ok(agent, "notebook_create", collection="pages", title="T", content=texts[0])["notebook_id"]
    for text in texts[1:]:
        team.ok(agent, "notebook_update", notebook_id=entry, content=text)
    return entry


def content(team, entry):
    return team.ok("reader", "notebook_read", notebook_id=entry)["content"]


def test_an_entry_is_taken_back(team):
    entry = page(team, "one", "two", "three")
    back = team.ok("ann", "notebook_restore", notebook_id="t")
    assert (back["notebook_id"], back["status"], back["version"], back["restored_from"]) == (entry, "restored", 4, 2)
    assert content(team, entry) == "two"
    team.ok("bob", "notebook_update", notebook_id=entry, append="bob's")
    refused = team.fails(409, "ann", "notebook_restore", notebook_id=entry)
    assert refused["code"] == "CONFLICT" and refused["details"]["changed_by"] == "bob" and "version" in refused["message"]
    team.ok("bob", "notebook_restore", notebook_id=entry)
    assert content(team, entry) == "two"
    team.ok("ann", "notebook_delete", notebook_id=entry)
    assert team.ok("ann", "notebook_restore", notebook_id=entry)["restored_from"] == 6
    assert content(team, entry) == "two"


def test_entries_are_taken_back_at_once(team):
    """Each agent appends and takes back: what is left is what was written and not taken back, and one deletion is undone once."""
    entry = page(team, "first")

    def work(number):
        agent, kept = f"w{number}", []
        for step in range(STEPS):
            if step % 3 == 2:
                answer = team.answer(agent, "notebook_restore", {"notebook_id": entry})
                assert answer.status_code in (200, 404, 409, 422), answer.text
                if answer.status_code == 200:
                    kept.pop()
            else:
                team.ok(agent, "notebook_update", notebook_id=entry, append=f"{agent}-{step}")
                kept.append(f"{agent}-{step}")
        return kept

    kept = at_once(work)
    lines = content(team, entry).split("\n")
    assert lines[0] == "first" and sorted(lines[1:]) == sorted(itertools.chain(*kept))
    team.ok("ann", "notebook_update", notebook_id=entry, content="last")
    team.ok("ann", "notebook_delete", notebook_id=entry)
    answers = at_once(lambda _: team.answer("ann", "notebook_restore", {"notebook_id": entry}))
    assert sorted(answer.status_code for answer in answers)[0] == 200
    assert all(answer.status_code in (200, 409) for answer in answers), [answer.text for answer in answers]


def test_deleted_entries_are_listed(team):
    entries = [page(team, "text", f"text {number}") for number in range(5)]
    code = team.ok("ann", "notebook_create", collection="code_snippets", title="Code", content="x")["notebook_id"]
    assert team.ok("rea", "notebook_list", deleted=True)["results"] == []
    for entry in [*entries[:4], code]:
        team.ok("bob", "notebook_delete", notebook_id=entry)
    gone = team.ok("rea", "notebook_list", deleted=True, limit=3)
    assert (gone["total"], gone["has_more"]) == (5, True)
    assert [row["notebook_id"] for row in gone["results"]] == [code, entries[3], entries[2]]
    row = gone["results"][1]
    assert (row["title"], row["summary"], row["version"], row["deleted_by"]) == ("T", "text 3", 2, "agent:bob")
    assert row["deleted_at"] > row["metadata"]["updated_at"]
    rest = team.ok("rea", "notebook_list", deleted=True, collection="pages", offset=2)
    assert [row["notebook_id"] for row in rest["results"]] == [entries[1], entries[0]] and rest["total"] == 4
    since = team.ok("rea", "notebook_list", deleted=True, updated_since=row["deleted_at"])
    assert {row["notebook_id"] for row in since["results"]} >= {code, entries[3]} and since["total"] < 5
    assert team.ok("rea", "notebook_list")["total"] == 1 and team.ok("rea", "notebook_list", deleted=False)["total"] == 1
    for filters in ({"tags": ["a"]}, {"status": "draft"}, {"created_by": "ann"}):
        answer = team.answer("rea", "notebook_list", {"deleted": True} | filters)
        assert answer.status_code == 400 and answer.json()["code"] == "INVALID_INPUT", answer.text
    # Each can be restored, by version or by whoever deleted it, and is then none of them.
    team.ok("ann", "notebook_restore", notebook_id=entries[3], version=row["version"])
    team.ok("bob", "notebook_restore", notebook_id=code, collection="code_snippets")
    assert {row["notebook_id"] for row in team.ok("rea", "notebook_list", deleted=True)["results"]} == set(entries[:3])
    assert content(team, entries[3]) == "text 3"


# ---- finding ----


def test_lines_of_all_notebooks_are_found(team):
    team.book("ann", "create", "a", newStr="nothing\nWhere X was decided\n")
    team.book("ann", "create", "b", newStr="undecided: x")
    ask = team.answer("rea", "notebook", {"mode": "search", "query": "X Decided"}, **{"X-Notegate-Mode": "ask"})
    assert ask.json()["result"] == "a:2: Where X was decided\nb:1: undecided: x"
    assert team.ok("ann", "notebook", mode="search", query="where") == "a:2: Where X was decided"
    assert team.ok("ann", "notebook", mode="search", query="nowhere") == "No matches"
