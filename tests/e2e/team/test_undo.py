# SPDX-License-Identifier: MIT
"""history_undo beside people who go on working, and over kills: of one gateway on sqlite and of two that share MongoDB."""

import concurrent.futures
import contextlib
import itertools
import os
import random
import threading
import time

import pytest
from conftest import Gateway
from servers import Servers

SEED = int(os.environ.get("NOTEGATE_UNDO_SEED", random.randrange(2**32)))
SPACES = itertools.count(1)
DOCUMENTS = 40
PEOPLE = ("ana", "ben", "cleo")
KILLS = 6
MANY_KILLS = int(os.environ.get("NOTEGATE_UNDO_KILLS", "40"))
KILLED_DOCUMENTS = 150


@pytest.fixture(scope="module", params=["sqlite", "mongo"])
def gateways(request, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        sets, count = ["plugins=notebook,agent_notebook,history"], 1
        if request.param == "mongo":
            sets += ["documents=mongo", f"mongo.uri={Servers(stack).mongo().uri}", "mongo.database=notegate_undo",
                     "mongo.timeout=30s"]
            count = 2
        made = [Gateway(tmp_path_factory.mktemp("undo") / "data", sets) for _ in range(count)]
        yield made
        for gateway in made:
            assert gateway.stop() == 0, gateway.errors


def write(gateway, space, by, arguments, run=None):
    headers = {"X-Notegate-Agent": by, "X-Notegate-Space": space} | ({"X-Notegate-Run": run} if run else {})
    answer = gateway.call("notebook", arguments, headers)
    assert answer.status_code == 200, (arguments, answer.text)
    return answer.json()["result"]


def text_of(gateway, space, name):
    return write(gateway, space, "reader", {"mode": "read", "name": name})


def undo(gateway, space, **arguments):
    answer = gateway.call("history_undo", arguments, {"X-Notegate-Agent": "lead", "X-Notegate-Space": space})
    assert answer.status_code == 200, (arguments, answer.text)
    return answer.json()["result"]


def test_a_nightly_run_is_taken_back_while_people_work(gateways):
    """No line of the people is lost, none of the run is left but in documents that are told as conflicts."""
    print("seed", SEED)
    chance = random.Random(SEED)
    space = f"night{next(SPACES)}"
    names = [f"doc{number}" for number in range(DOCUMENTS)]
    for name in names:
        write(gateways[0], space, "ana", {"mode": "create", "name": name, "newStr": "".join(f"line {n}\n" for n in range(8))})
    written, stop = {name: [] for name in names}, threading.Event()

    def person(who, seed):
        own, count = random.Random(seed), 0
        while not stop.is_set():
            name, line = own.choice(names), f"{who} {count}"
            write(own.choice(gateways), space, who, {"mode": "write", "name": name, "newStr": line + "\n"}
                  | ({"insertLine": own.randrange(8)} if own.random() < 0.5 else {}))
            written[name].append(line)
            count += 1

    with concurrent.futures.ThreadPoolExecutor(len(PEOPLE)) as pool:
        working = [pool.submit(person, who, chance.random()) for who in PEOPLE]
        try:
            for number, name in enumerate(names * 2):
                write(gateways[number % len(gateways)], space, "robot",
                      {"mode": "write", "name": name, "newStr": f"robot {number}\n"}, run="night")
            told = undo(gateways[0], space, run="night", dry_run=False)
        finally:
            stop.set()
        for done in working:
            done.result()
    assert told["total"] == DOCUMENTS and told["agents"] == ["robot"]
    conflicts = {item["id"] for item in told["items"] if item["result"] == "conflict"}
    assert len(conflicts) == told["conflicts"] and told["undone"] + told["conflicts"] == DOCUMENTS
    for name in names:
        lines = text_of(gateways[0], space, name).split("\n")
        assert set(written[name]) <= set(lines), name
        assert any(line.startswith("robot") for line in lines) == (name in conflicts), name
    # The undo is a run as any other.
    back = undo(gateways[-1], space, run=told["undo"], dry_run=False)
    assert back["total"] == told["undone"]
    for item in back["items"]:
        lines = text_of(gateways[0], space, item["id"]).split("\n")
        assert set(written[item["id"]]) <= set(lines)
        assert item["result"] == "conflict" or any(line.startswith("robot") for line in lines)


def test_a_conflict_shows_what_is_there(gateways):
    """Also where newer changes of the run were taken out of the text before."""
    space = f"shown{next(SPACES)}"
    write(gateways[0], space, "ana", {"mode": "create", "name": "doc", "newStr": "first\none\nlast\n"})
    for by, old, new in (("robot", "one", "R1"), ("ana", "R1", "ANA"), ("robot", "ANA", "R2\nR3"), ("robot", "first", "top\nfirst")):
        write(gateways[0], space, by, {"mode": "write", "name": "doc", "oldStr": old, "newStr": new}, run="r" if by == "robot" else None)
    item, = undo(gateways[0], space, run="r")["items"]
    assert item["conflict"] == {"reason": "overlap", "at": [{"line": 3, "present": "R2\nR3", "before": "one"}]}


def test_changes_that_were_taken_back_are_no_conflict_once_more(gateways):
    space, gateway = f"again{next(SPACES)}", gateways[0]

    def replace(by, old, new, run=None):
        write(gateway, space, by, {"mode": "write", "name": "doc", "oldStr": old, "newStr": new}, run)

    write(gateway, space, "ana", {"mode": "create", "name": "doc", "newStr": "one\ntwo\n"})
    replace("robot", "two", "TWO", "again")
    first = undo(gateway, space, run="again", dry_run=False)
    assert first["undone"] == 1
    replace("ben", "two", "ben")
    told = undo(gateway, space, run="again")
    assert (told["unchanged"], told["conflicts"]) == (1, 0) and "conflict" not in told["items"][0]
    # The undo itself has not been taken back: that is a conflict with ben's line.
    assert undo(gateway, space, run=first["undo"])["conflicts"] == 1
    replace("ben", "ben", "two")
    undo(gateway, space, run=first["undo"], dry_run=False)
    assert text_of(gateway, space, "doc") == "one\nTWO\n"
    # Now the changes of the run are there again.
    replace("ben", "TWO", "ben")
    assert undo(gateway, space, run="again")["conflicts"] == 1


def unfinished(gateway):
    answer = gateway.call("history_log", {"limit": 1}, {"X-Notegate-Agent": "lead"})
    return answer.json()["result"]["unfinished"]


def cut_off(gateway, run, delay):
    """Kills the gateway while it takes the run back. Has it answered?"""
    def go():
        with contextlib.suppress(Exception):
            return undo(gateway, "kills", run=run, dry_run=False)
        return None

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(go)
        time.sleep(delay)
        gateway.process.kill()
        gateway.process.wait()
    gateway.client.close()
    return answer.result()


@pytest.mark.parametrize("kills", [KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.long, id="many")])
def test_a_kill_leaves_whole_documents_and_the_rest_is_done_later(tmp_path, kills):
    print("seed", SEED)
    chance, sets, partly = random.Random(SEED), ["plugins=notebook,history"], 0
    gateway = Gateway(tmp_path / "data", sets)
    names = [f"doc{number}" for number in range(KILLED_DOCUMENTS)]
    for name in names:
        write(gateway, "kills", "ana", {"mode": "create", "name": name, "newStr": "first\nlast\n"})
    started = time.monotonic()
    write(gateway, "kills", "robot", {"mode": "write", "name": names[0], "newStr": "robot\n", "insertLine": 1}, run="probe")
    undo(gateway, "kills", run="probe", dry_run=False)
    longest = (time.monotonic() - started) * 4
    before = text_of(gateway, "kills", names[0])
    for number in range(kills):
        run = f"run{number}"
        for name in names:
            write(gateway, "kills", "robot", {"mode": "write", "name": name, "newStr": f"robot {number}\n", "insertLine": 1}, run=run)
        after = text_of(gateway, "kills", names[0])
        answered = cut_off(gateway, run, chance.random() * longest)
        gateway = Gateway(tmp_path / "data", sets)
        texts = [text_of(gateway, "kills", name) for name in names]
        assert set(texts) <= {before, after}
        left = unfinished(gateway)
        if answered is not None:
            assert set(texts) == {before} and left == []
        if texts.count(before) not in (0, KILLED_DOCUMENTS):
            partly += 1
            assert len(left) == 1
        for undone in left:
            if number % 2 and before in texts:  # it may also be given up: what it did is taken back
                upto = undo(gateway, "kills", run=undone)["upto"]
                given_up = undo(gateway, "kills", run=undone, upto=upto, dry_run=False)
                assert given_up["undone"] == texts.count(before) and unfinished(gateway) == []
                continue
            rest = undo(gateway, "kills", **{"continue": undone}, dry_run=False)
            assert rest["conflicts"] == 0 and rest["undo"] == undone
            assert rest["total"] == texts.count(after)
        if any(text_of(gateway, "kills", name) == after for name in names):
            undo(gateway, "kills", run=run, dry_run=False)
        assert {text_of(gateway, "kills", name) for name in names} == {before}
        assert unfinished(gateway) == []
    print("cut off in the middle:", partly)
    assert gateway.stop() == 0
