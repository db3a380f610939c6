# SPDX-License-Identifier: MIT
"""Transactions that the server wants again, and commits whose result is unknown: what MongoDB's labels ask of a client."""

import itertools
import os
import subprocess
import threading

import pytest
from conftest import SOURCE, eventually
from mongo_proxy import aborted, error, gone
from mongo_world import (DATABASE, SECONDS, append, content, create, hasty, made, mongo, page, patient, proxy, serving,  # noqa: F401
                         unavailable)

names = (f"n{number}" for number in itertools.count())
TRANSIENT = "TransientTransactionError"
UNKNOWN = "UnknownTransactionCommitResult"


def conflict(_command=None):
    return error(112, "WriteConflict error: this operation conflicted with another operation", [TRANSIENT])


def unknown(_command, _reply):
    return error(50, "operation exceeded time limit", [UNKNOWN])


def in_transaction(command):
    return command.in_transaction and command.name in ("insert", "update", "find")


def titled(gateway, title):
    listed = made(gateway.call("notebook_list", {"collection": "pages", "limit": 100}))["results"]
    return [one["notebook_id"] for one in listed if one["title"] == title]


@pytest.mark.parametrize("how", ["operation", "commit"])
@pytest.mark.parametrize("times", [1, 4])
def test_transient(proxy, patient, how, times):
    """The whole transaction runs again, with a pause, and is made once.

    MongoDB's manual: after TransientTransactionError the whole transaction is run again."""
    name = next(names)
    made(create(patient, name))
    fault = {"operation": dict(where=in_transaction, answer=conflict),
             "commit": dict(names="commitTransaction", change=aborted, edit=gone)}[how]
    before = proxy.mark()
    with proxy.fault(times=times, **fault) as met:
        made(append(patient, name, "keyed", f"key-{name}"))
        entry = made(page(patient, title=name))["notebook_id"]
    assert met.hits == times
    started = {(command.body["lsid"]["id"], command.body["txnNumber"]) for command in proxy.since(before)
               if command.body.get("startTransaction")}
    assert len(started) >= times + 2, "the transaction began anew each time"
    assert content(patient, name) == "start\nkeyed"
    assert titled(patient, name) == [entry]


@pytest.mark.parametrize("how", ["operation", "commit"])
def test_always_transient(proxy, hasty, how):
    """Shortly before the end of the call it says so, and nothing has been made.

    MongoDB's manual: repeating a transaction has a time limit, which the client sets."""
    name = next(names)
    made(create(hasty, name))
    fault = {"operation": dict(where=in_transaction, answer=conflict),
             "commit": dict(names="commitTransaction", change=aborted, edit=gone)}[how]
    with proxy.fault(times=None, **fault) as met:
        answer = append(hasty, name, "keyed", f"key-{name}")
        if how == "operation":
            assert answer.status_code == 503 and answer.json()["code"] == "BUSY", answer.text
            assert "other changes of the same documents do not end" in answer.json()["message"], answer.text
        else:
            unavailable(answer)
    assert met.hits > 2
    assert content(hasty, name) == "start"
    made(append(hasty, name, "keyed", f"key-{name}"))
    assert content(hasty, name) == "start\nkeyed"


def test_transient_beyond_the_limit_of_an_operation(proxy, hasty):
    """The call's own end is the limit of its retries, also while no transaction can begin."""
    name = next(names)
    made(create(hasty, name))
    with proxy.fault(where=in_transaction, seconds=1.5, times=None, answer=conflict) as met:
        made(append(hasty, name, "keyed", f"key-{name}"))
    assert met.met[-1].at - met.met[0].at > 1
    assert content(hasty, name) == "start\nkeyed"


def interrupted(_command, reply):
    """What killSessions of another gateway makes of a commit that waits for a majority."""
    return {**reply, "writeConcernError": {"code": 11601, "codeName": "Interrupted", "errmsg": "operation was interrupted"}}


@pytest.mark.parametrize("times", [1, None])
def test_interrupted_commit(proxy, hasty, times):
    """The transaction was committed: its commit is sent again, and what stays unknown is told so."""
    name = next(names)
    made(create(hasty, name))
    with proxy.fault("commitTransaction", times=times, edit=interrupted) as met:
        answer = append(hasty, name, "keyed", f"key-{name}")
        assert met.hits >= 1
    if times:
        made(answer)
    else:
        assert answer.status_code == 504 and "may have been made" in answer.json()["message"], answer.text
    made(append(hasty, name, "keyed", f"key-{name}"))
    assert content(hasty, name) == "start\nkeyed"


@pytest.mark.parametrize("times", [1, 4])
def test_unknown_commit(proxy, patient, times):
    """The commit alone is sent again; the server knows what became of the first.

    MongoDB's manual: after UnknownTransactionCommitResult only the commit is sent again, for a majority."""
    name = next(names)
    made(create(patient, name))
    before = proxy.mark()
    with proxy.fault("commitTransaction", times=times, edit=unknown) as met:
        made(append(patient, name, "keyed", f"key-{name}"))
    assert met.hits == times
    seen = [command for command in proxy.since(before) if command.in_transaction]
    mine = [command for command in seen if command.body["txnNumber"] == met.met[0].body["txnNumber"]
            and command.body["lsid"] == met.met[0].body["lsid"]]
    assert sum(command.name == "commitTransaction" for command in mine) == times + 1
    assert sum(command.collection == "notebooks" and command.name == "update" for command in mine) == 1
    # MongoDB's manual: a commit that is repeated asks for a majority, with a time limit.
    for command in mine[-times:]:
        assert command.body["writeConcern"]["w"] == "majority", command.body
    assert content(patient, name) == "start\nkeyed"


def test_a_commit_that_ends_after_its_repetition_began(proxy, patient):
    """The commit had no answer. The repetition does not see the entry yet, and cannot make it either: it looks again."""
    name = next(names)

    def unseen(_command, reply):
        return {**reply, "cursor": {**reply["cursor"], "firstBatch": []}}

    def begins_again(command):
        return command.in_transaction and command.name == "find" and command.collection == "pages"

    def forgotten(command, reply):
        return unknown(command, reply) if len(met.met) == 1 else gone(command)

    with proxy.fault(where=begins_again, times=1, edit=unseen) as missed, \
            proxy.fault("commitTransaction", times=2, edit=forgotten) as met:
        entry = made(page(patient, title=name))["notebook_id"]
    assert met.hits == 2 and missed.hits == 1
    assert titled(patient, name) == [entry]


def test_a_commit_that_the_driver_sends_twice(proxy, patient):
    """The driver repeats a commit by itself, so the answer that the transaction is gone is the first that is seen."""
    name = next(names)
    with proxy.fault("commitTransaction", times=1, edit=gone) as met:
        entry = made(page(patient, title=name))["notebook_id"]
    assert met.hits == 1
    assert titled(patient, name) == [entry]


def test_a_commit_that_the_server_forgets(proxy, patient, hasty):
    """It was made and had no answer, the entry was changed by another gateway, and the server knows no such transaction any
    more: the creation is found all the same, and made once."""
    name = next(names)

    def first_unknown(command, reply):
        if command.body["txnNumber"] != met.met[0].body["txnNumber"] or len(met.met) == 1:
            return unknown(command, reply)
        for entry in titled(hasty, name):
            made(hasty.call("notebook_update", {"collection": "pages", "notebook_id": entry, "append": "by another\n"}))
        return gone(command)

    with proxy.fault("commitTransaction", times=2, edit=first_unknown) as met:
        entry = made(page(patient, title=name))["notebook_id"]
    assert met.hits == 2
    assert titled(patient, name) == [entry]


def test_a_forgotten_commit_whose_repetition_fails(proxy, hasty):
    """The first one may have been made, so nobody is told that nothing was."""
    name = next(names)

    def forgotten(command, reply):
        return unknown(command, reply) if len(met.met) == 1 else gone(command)

    def begins_again(command):
        return in_transaction(command) and met.hits >= 2

    with proxy.fault("commitTransaction", times=2, edit=forgotten) as met, \
            proxy.fault(where=begins_again, times=None, answer=conflict):
        answer = page(hasty, title=name)
    assert answer.status_code == 504 and "may have been made" in answer.json()["message"], answer.text
    assert len(titled(hasty, name)) == 1


@pytest.mark.parametrize("landed", [True, False])
def test_never_known_commit(proxy, hasty, landed):
    """The call says that its change may have been made. Repeated with its key, it tells the truth.

    MongoDB's manual: a commit of unknown result may have been made, and may be sent again at any time."""
    name = next(names)
    made(create(hasty, name))
    fault = dict(edit=unknown) if landed else dict(change=aborted, edit=unknown)
    with proxy.fault("commitTransaction", times=None, **fault) as met:
        answer = append(hasty, name, "keyed", f"key-{name}")
        assert answer.status_code == 504 and answer.json()["code"] == "TIMEOUT", answer.text
        assert "may have been made" in answer.json()["message"] and "idempotency key" in answer.json()["message"], answer.text
    assert met.hits > 2
    assert content(hasty, name) == ("start\nkeyed" if landed else "start")
    for _ in range(2):
        assert made(append(hasty, name, "keyed", f"key-{name}"))
    assert content(hasty, name) == "start\nkeyed"


def test_without_a_key(proxy, hasty):
    """A page whose creation stays unknown is not acknowledged; a second one is another page.

    MongoDB's manual: as long as the result of a commit is unknown the client must not say that it was made."""
    name = next(names)
    with proxy.fault("commitTransaction", times=None, edit=unknown):
        answer = page(hasty, title=name)
        assert answer.status_code == 504 and "may have been made" in answer.json()["message"], answer.text
    assert len(titled(hasty, name)) == 1
    made(page(hasty, title=name))
    assert len(titled(hasty, name)) == 2


# ---- a condition ----

@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The module of tests/torture/together.c: steps over several documents."""
    path = tmp_path_factory.mktemp("together") / "together.so"
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-shared", "-fPIC", "-D_GNU_SOURCE", "-DNG_ABI=1",
                    "-I", str(SOURCE / "core" / "include"), "-o", str(path),
                    str(SOURCE / "tests" / "torture" / "together.c")], check=True)
    return path


def test_condition_behind_an_unknown_commit(mongo, proxy, together, tmp_path):  # noqa: F811
    """A step was made, without an answer, and the server forgot it. A document that it only reads is changed by another gateway
    before it is sent again: it is not made twice, nor refused.

    MongoDB's manual: NoSuchTransaction (251) behind a commit without an answer does not say that nothing was made."""
    one, other = next(names), next(names)

    def append_to(gateway, name, token, unchanged=()):
        return gateway.call("together_append", {"group": "g", "names": [name], "token": token, "unchanged": list(unchanged)})

    def tokens(gateway):
        return {line.split()[0]: line.split()[2:] for line in made(gateway.call("together_read", {"group": "g"})).splitlines()}

    with serving(tmp_path, proxy.uri, database=DATABASE + "_together", plugins=str(together)) as gateway, \
            serving(tmp_path, mongo.uri, database=DATABASE + "_together", plugins=str(together)) as another:
        made(append_to(gateway, one, "first"))
        made(append_to(gateway, other, "first"))
        told = []
        with proxy.fault("commitTransaction", cut="after") as lost, proxy.fault(
                "commitTransaction", where=lambda _: lost.hits, hold=True, answer=error(251, "no such transaction", [TRANSIENT])) as held:
            call = threading.Thread(target=lambda: told.append(append_to(gateway, one, "step", [other])))
            call.start()
            eventually(lambda: held.hits, SECONDS, "the commit is sent again")
            made(append_to(another, other, "meanwhile"))
            proxy.remove(held)
            call.join()
        made(told[0])
        assert tokens(gateway) == {one: ["first", "step"], other: ["first", "meanwhile"]}
