# SPDX-License-Identifier: MIT
"""The history of all documents: the log, documents as of a point, diffs and blame, of one gateway on sqlite or in memory and of two
that share MongoDB."""

import contextlib
import datetime
import itertools
import os
import random

import pytest
from conftest import Gateway
from keys_support import add, bearer
from servers import Servers

SEED = random.randrange(2**32)
SPACES = itertools.count(1)
LINES = itertools.count(1)  # each line that is written is another one
CHANGES = 80
READS = int(os.environ.get("NOTEGATE_TEST_READS", "200"))  # at random points; the long form has 100,000
PLUGINS = "notebook,agent_notebook,history"
AGENTS = ("ada", "bob", "eve")


@pytest.fixture(scope="module", params=["sqlite", "memory", "mongo"])
def gateways(request, tmp_path_factory):
    """One gateway with a store of its own, or two with one database."""
    with contextlib.ExitStack() as stack:
        sets, count = [f"plugins={PLUGINS}"], 1
        if request.param == "memory":
            sets.append("documents=memory")
        if request.param == "mongo":
            sets += ["documents=mongo", f"mongo.uri={Servers(stack).mongo().uri}", "mongo.database=notegate_time",
                     "mongo.timeout=30s"]
            count = 2
        made = [Gateway(tmp_path_factory.mktemp("time") / "data", sets) for _ in range(count)]
        yield made
        for gateway in made:
            assert gateway.stop() == 0, gateway.errors


class Team:
    """The agents of a space that nobody else has. Each call goes to the next gateway."""

    def __init__(self, gateways):
        self.space, self.next = f"time{next(SPACES)}", itertools.cycle(gateways)

    def answer(self, tool, arguments, by="reader", run=""):
        headers = {"X-Notegate-Agent": by, "X-Notegate-Space": self.space} | ({"X-Notegate-Run": run} if run else {})
        return next(self.next).call(tool, arguments, headers)

    def write(self, by, run, tool, /, **arguments):
        answer = self.answer(tool, arguments, by, run)
        assert answer.status_code == 200, (by, tool, arguments, answer.text)
        return answer.json()["result"]

    def ok(self, tool, /, **arguments):
        answer = self.answer(tool, arguments)
        assert answer.status_code == 200, (tool, arguments, answer.text)
        return answer.json()["result"]

    def fails(self, status, tool, /, **arguments):
        answer = self.answer(tool, arguments)
        assert answer.status_code == status, (tool, arguments, answer.text)
        return answer.json()

    def log(self, **arguments):
        """All pages."""
        changes, cursor = [], {}
        while True:
            page = self.ok("history_log", **arguments, **cursor)
            changes += page["changes"]
            if not page["has_more"]:
                return changes
            cursor = {"cursor": page["cursor"]}


@pytest.fixture
def team(gateways):
    return Team(gateways)


def edited(text, chance):
    """The text after a change of some of its lines."""
    lines = text.split("\n")
    at = chance.randrange(len(lines) + 1)
    lines[at:at + chance.randrange(3)] = [f"line {next(LINES)} ä" for _ in range(chance.randrange(1, 4))]
    return "\n".join(lines)


@pytest.fixture
def written(team):
    """Notebooks that three agents have changed, and what they wrote: (name, revision) to (text, agent, run)."""
    chance = random.Random(SEED)
    print(f"seed {SEED}")
    texts, made, revisions = {}, {}, {}
    for number in range(CHANGES):
        name, agent, run = f"book {chance.randrange(4)}", chance.choice(AGENTS), f"run-{chance.randrange(5)}"
        texts[name] = edited(texts.get(name, ""), chance)
        team.write(agent, run, "notebook", mode="create", name=name, newStr=texts[name])
        revisions[name] = revisions.get(name, 0) + 1
        made[name, revisions[name]] = (texts[name], agent, run)
    return made


def test_log_has_every_change_once(team, written):
    changes = team.log(limit=7)
    assert sorted((change["id"], change["revision"]) for change in changes) == sorted(written)
    assert [change["seq"] for change in changes] == sorted((change["seq"] for change in changes), reverse=True)
    for change in changes:
        text, agent, run = written[change["id"], change["revision"]]
        assert (change["agent"], change["run"], change["tool"], change["space"]) == (agent, run, "notebook", team.space)
        assert change["kept"] and (change["summary"] in text or change["summary"].startswith("removed "))


def test_log_filters(team, written):
    every = team.log(limit=200)
    middle = every[len(every) // 2]["seq"]
    filters = [
        ({"agent": "ada"}, lambda change: change["agent"] == "ada"),
        ({"agent": ["ada", "bob"]}, lambda change: change["agent"] != "eve"),
        ({"run": "run-3"}, lambda change: change["run"] == "run-3"),
        ({"action": "created"}, lambda change: change["action"] == "created"),
        ({"tool": "notebook_create"}, lambda change: False),
        ({"collection": "notebooks"}, lambda change: True),
        ({"collection": ["pages"]}, lambda change: False),
        ({"id": "book 1"}, lambda change: change["id"] == "book 1"),
        ({"id": "book*"}, lambda change: True),
        ({"id": "book\\*"}, lambda change: False),
        ({"since": f"#{middle}"}, lambda change: change["seq"] > middle),
        ({"until": f"#{middle}"}, lambda change: change["seq"] <= middle),
        ({"agent": "bob", "id": "book 2", "since": f"#{middle}"},
         lambda change: change["agent"] == "bob" and change["id"] == "book 2" and change["seq"] > middle),
        ({"until": "1h"}, lambda change: False),
        ({"since": "1h", "until": "now"}, lambda change: True),
    ]
    for arguments, wanted in filters:
        assert team.log(limit=200, **arguments) == [change for change in every if wanted(change)], arguments


def test_log_by_run(team, written):
    every = team.log(limit=200)
    runs, cursor = [], {}
    while True:
        page = team.ok("history_log", by="run", limit=2, **cursor)
        runs += page["runs"]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["cursor"]}
    assert [run["last_seq"] for run in runs] == sorted((run["last_seq"] for run in runs), reverse=True)
    assert {run["run"] for run in runs} == {change["run"] for change in every} and len(runs) == len({run["run"] for run in runs})
    for run in runs:
        own = [change for change in every if change["run"] == run["run"]]
        assert (run["changes"], run["first_seq"], run["last_seq"]) == (len(own), own[-1]["seq"], own[0]["seq"])
        assert (run["from"], run["to"]) == (own[-1]["time"], own[0]["time"])
        assert set(run["agents"]) == {change["agent"] for change in own}
    by_ada = team.ok("history_log", by="run", agent="ada")["runs"]
    assert {run["run"] for run in by_ada} == {change["run"] for change in every if change["agent"] == "ada"}
    later = team.ok("history_log", by="run", since=f"#{every[0]['seq'] - 1}")["runs"]
    assert [run["run"] for run in later] == [every[0]["run"]]
    assert team.fails(400, "history_log", by="run", tool="notebook")["code"] == "INVALID_INPUT"


def test_a_run_that_is_not_there(team, written):
    refused = team.fails(404, "history_log", run="run-33")
    assert refused["code"] == "NOT_FOUND" and '"run-3"' in refused["hint"]
    assert team.ok("history_log", run="run-3", agent="nobody")["changes"] == [], "the run is there, the change is not"


def test_every_point_gives_what_was_there(team, written):
    chance = random.Random(SEED)
    every = {(change["id"], change["revision"]): change for change in team.log(limit=200)}
    for (name, revision), (text, agent, run) in written.items():
        change = every[name, revision]
        behind = every.get((name, revision + 1))
        points = [str(revision), f"#{change['seq']}"]
        if behind:
            points.append(f"#{chance.randrange(change['seq'], behind['seq'])}")
        if behind and behind["time"] > change["time"]:
            points.append(change["time"])
        for point in points:
            read = team.ok("history_read", id=name, at=point)
            assert (read["content"], read["revision"], read["agent"], read["run"]) == (text, revision, agent, run), point
    first = min(change["seq"] for change in every.values())
    missing = team.fails(404, "history_read", id="book 0", at=f"#{first - 1}")
    assert missing["code"] == "NOT_FOUND" and missing["details"]["from"] == every["book 0", 1]["time"]


def milliseconds(text):
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def random_point(chance, changes):
    """A point beside one of the changes, and the changes of the document that are not after it."""
    beside, kind = chance.choice(changes), chance.choice(("revision", "seq", "time"))
    if kind == "revision":
        number = beside["revision"]
        return str(number), [one for one in changes if one["revision"] <= number]
    if kind == "seq":
        number = max(0, beside["seq"] + chance.randrange(-2, 3))
        return f"#{number}", [one for one in changes if one["seq"] <= number]
    moment = milliseconds(beside["time"]) + chance.randrange(-2, 3)
    text = datetime.datetime.fromtimestamp(moment / 1000, datetime.timezone.utc).isoformat(timespec="milliseconds")
    return text, [one for one in changes if milliseconds(one["time"]) <= moment]


def test_random_reads_give_what_was_there(team):
    """Notebooks that are written, deleted and written again, at random points. Nothing is old enough to be thinned."""
    chance = random.Random(SEED)
    print(f"seed {SEED}, NOTEGATE_TEST_READS={READS}")
    texts, changes = {}, {}
    for _ in range(CHANGES):
        name = f"book {chance.randrange(3)}"
        there = texts.get(name, [None])[-1] is not None
        text = None if there and chance.randrange(5) == 0 else f"line {next(LINES)}\n" * chance.randrange(1, 40)
        arguments = {"mode": "delete"} if text is None else {"mode": "create", "newStr": text}
        team.write("ada", "", "notebook", name=name, **arguments)
        texts.setdefault(name, []).append(text)
    for name in texts:
        changes[name] = sorted(team.log(id=name, limit=200), key=lambda one: one["revision"])
        assert [one["revision"] for one in changes[name]] == list(range(1, len(texts[name]) + 1))
    for _ in range(READS):
        name = chance.choice(list(texts))
        point, past = random_point(chance, changes[name])
        answer = team.answer("history_read", {"id": name, "at": point})
        wanted = texts[name][len(past) - 1] if past else None
        found = answer.json()
        if wanted is None:
            assert answer.status_code == 404 and found["code"] == "NOT_FOUND", (name, point, found)
        else:
            assert answer.status_code == 200, (name, point, found)
            assert (found["result"]["content"], found["result"]["revision"]) == (wanted, len(past)), (name, point, past)


def test_documents_of_a_point(team, written):
    every = sorted(team.log(limit=200), key=lambda change: change["seq"])
    for change in every[::7]:
        there = {one["id"]: one["revision"] for one in every if one["seq"] <= change["seq"]}
        found = team.ok("history_read", at=f"#{change['seq']}")["documents"]
        assert {one["id"]: one["revision"] for one in found} == there
        assert {one["id"]: one["bytes"] for one in found} == {name: len(written[name, there[name]][0].encode()) for name in there}


def test_blame_and_diff_follow_the_texts(team, written):
    for name, last in {name: max(revision for one, revision in written if one == name) for name, _ in written}.items():
        text = written[name, last][0]
        answer = team.ok("history_blame", id=name, max_lines=10000)
        shown = [(line, part["revision"]) for part in answer["lines"] for line in part["text"].split("\n")]
        assert [line for line, _ in shown] == text.split("\n") and answer["exact"] and answer["total_lines"] == len(shown)
        for line, revision in shown:
            assert revision == min(one for one in range(1, last + 1) if line in written[name, one][0].split("\n")), line
        for revision in range(2, last + 1):
            diff = team.ok("history_diff", id=name, to=str(revision))
            lines = diff["diff"].split("\n")[2:]
            assert sum(line.startswith("+") for line in lines) == diff["added"]
            assert sum(line.startswith("-") for line in lines) == diff["removed"]
            assert diff["from"] == revision - 1 and diff["changed"] == []


def test_diff_of_selected_changes(team, written):
    """A row per document, against what the log tells and the texts that were written."""
    every = team.log(limit=200)
    middle = every[len(every) // 2]["seq"]
    filters = [
        ({"run": "run-3"}, lambda change: change["run"] == "run-3"),
        ({"run": ["run-1", "run-2"], "agent": "ada"}, lambda change: change["run"] in ("run-1", "run-2") and change["agent"] == "ada"),
        ({"agent": "bob", "since": f"#{middle}"}, lambda change: change["agent"] == "bob" and change["seq"] > middle),
        ({"agent": ["eve", "bob"], "id": "book 1"}, lambda change: change["agent"] != "ada" and change["id"] == "book 1"),
        ({"space": team.space, "until": f"#{middle}"}, lambda change: change["seq"] <= middle),
        ({"space": team.space, "action": "created", "id": "book*"}, lambda change: change["action"] == "created"),
        ({"agent": "nobody"}, lambda change: False)]
    for arguments, wanted in filters:
        own = [change for change in every if wanted(change)]
        answer = team.ok("history_diff", **arguments)
        assert not answer["has_more"]
        assert [row["id"] for row in answer["documents"]] == list(dict.fromkeys(change["id"] for change in own)), arguments
        for row in answer["documents"]:
            revisions = [change["revision"] for change in own if change["id"] == row["id"]]
            assert (row["from"], row["to"]) == (min(revisions) - 1, max(revisions)), (arguments, row)
            assert row["others"] == max(revisions) - min(revisions) + 1 - len(revisions) and row["changed"] == []
            before = written[row["id"], row["from"]][0] if row["from"] else ""
            after = written[row["id"], row["to"]][0]
            lines = row["diff"].replace("\\ No newline at end of file\n", "").split("\n")[2:]
            assert sum(line.startswith("+") for line in lines) == row["added"]
            assert sum(line.startswith("-") for line in lines) == row["removed"]
            if row["from"]:
                alone = team.ok("history_diff", id=row["id"], **{"from": str(row["from"]), "to": str(row["to"])})
                assert {name: row[name] for name in ("diff", "added", "removed", "from", "to")} == {
                    name: alone[name] for name in ("diff", "added", "removed", "from", "to")}
            else:
                assert row["added"] == len(after.split("\n")) - after.endswith("\n") and not before


def test_diff_of_a_run_that_is_not_there(team, written):
    refused = team.fails(404, "history_diff", run="run-33")
    assert refused["code"] == "NOT_FOUND" and '"run-3"' in refused["hint"]
    assert team.ok("history_diff", run="run-3", agent="nobody")["documents"] == []


def test_deleted_and_made_again(team):
    made = team.write("ada", "night", "notebook_create", title="T", collection="pages", content="one\ntwo\n", tags=["a"])["notebook_id"]
    team.write("bob", "day", "notebook_update", collection="pages", notebook_id=made, title="T2", tags=["a", "b"])
    team.write("ada", "night", "notebook_delete", collection="pages", notebook_id=made)
    page = {"collection": "pages", "id": made}
    assert team.ok("history_read", **page, at="2")["members"]["title"] == "T2"
    gone = team.fails(404, "history_read", **page)
    assert gone["code"] == "NOT_FOUND" and gone["details"]["from"] <= gone["details"]["to"]
    assert team.ok("history_read", collection="pages")["documents"] == []
    changed = team.ok("history_diff", **page, to="2")
    assert changed["changed"] == ["title", "tags"] and changed["diff"] == ""
    assert [change["action"] for change in team.log(**page)] == ["deleted", "updated", "created"]
    assert team.log(**page)[0]["summary"] == "removed 3 lines"
    (night,) = team.ok("history_diff", run="night")["documents"]
    assert (night["from"], night["to"], night["others"], night["diff"], night["changed"]) == (0, 3, 1, "", [])
    (later,) = team.ok("history_diff", agent="ada", action="deleted")["documents"]
    assert (later["from"], later["to"], later["removed"]) == (2, 3, 2) and {"title", "tags"} <= set(later["changed"])


def test_others_see_nothing(gateways, team):
    """Another space, and a key whose tools are others: neither the changes nor the documents."""
    team.write("ada", "night", "notebook", mode="create", name="secret", newStr="text")
    other = Team(gateways)
    assert other.log() == []
    assert other.fails(404, "history_read", id="secret")["code"] == "NOT_FOUND"


def test_keys(tmp_path):
    ada = bearer(add(tmp_path / "data", "ada", "--space", "shared", "--space", "~ada"))
    log = bearer(add(tmp_path / "data", "log", "--space", "shared", "--role", "reader", "--tool", "history_log", "--tool", "history_read",
                     "--tool", "notebook_read", plugins=PLUGINS))
    gateway = Gateway(tmp_path / "data", [f"plugins={PLUGINS}"])
    try:
        page = gateway.call("notebook_create", {"title": "t", "content": "x", "collection": "pages"}, ada).json()["result"]["notebook_id"]
        gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "x", "space": "shared"}, ada)
        gateway.call("notebook", {"mode": "create", "name": "own", "newStr": "x"}, ada)
        seen = gateway.call("history_log", {}, log).json()["result"]["changes"]
        assert [change["id"] for change in seen] == [page], "the key has no tool of named notebooks"
        assert "key" not in seen[0]
        assert gateway.call("history_read", {"id": "n", "space": "shared"}, log).status_code == 404
        forbidden = gateway.call("history_log", {"space": "~ada"}, log)
        assert forbidden.status_code == 403 and "it allows shared" in forbidden.json()["message"]
        assert gateway.call("history_blame", {"id": "n"}, log).json()["code"] == "FORBIDDEN"
        assert {change["id"] for change in gateway.call("history_log", {}, ada).json()["result"]["changes"]} == {page, "n", "own"}
    finally:
        assert gateway.stop() == 0
