# SPDX-License-Identifier: MIT
"""Changes that a majority does not confirm, a primary that goes away, lines that break: what is acknowledged is in the
database, once."""

import concurrent.futures
import contextlib
import itertools
import re
import threading

import pymongo
import pytest
from conftest import eventually
from mongo_proxy import GREETINGS, concern_failed, error, stepped_down
from mongo_world import (DATABASE, SECONDS, append, at_once, content, create, hasty, lined, made, mongo, page, patient,  # noqa: F401
                         proxy, read, serving, unavailable)

names = (f"n{number}" for number in itertools.count())
# The backend's sentence, or that of a call that ends while its last attempt is under way.
MAYBE = re.compile("may (have been|still be) made")
CHANGES = ("insert", "update", "delete", "findAndModify", "commitTransaction")


def confirmed(command):
    return command.reply is not None and command.reply.get("ok") and "writeConcernError" not in command.reply


def acknowledged_after(proxy, fault, collection):
    """A change of the collection whose answer has no doubt of a majority came after the doubtful one."""
    return [command for command in proxy.since() if command.at > fault.met[-1].at and command.name in CHANGES
            and command.collection in (collection, None) and confirmed(command)]


def puts(command):
    """A change that a call waits for, not a step of the relay."""
    return "notegate.outbox_bytes" in command.body["updates"][0]["q"]


def waits_for_majority(command):
    return command.name == "commitTransaction" or (command.collection == "notebooks" and not command.in_transaction)


# ---- WriteConcernFailed ----

@pytest.mark.parametrize("times", [1, 3])
def test_no_majority_for_a_moment(proxy, patient, times):
    """An insert, an update and a transaction are acknowledged once a majority has them, each made once.

    MongoDB's manual: WriteConcernFailed (64) means made, not acknowledged: it is no success until a majority has it."""
    name = next(names)
    with proxy.fault("insert", "notebooks", times=times, edit=concern_failed) as fault:
        made(create(patient, name))
    # The transaction after it finds the document, and its commit waits for a majority.
    assert fault.hits == 1 and acknowledged_after(proxy, fault, "notebooks")
    with proxy.fault("update", "notebooks", where=puts, times=times, edit=concern_failed) as fault:
        made(append(patient, name))
    assert fault.hits == times and acknowledged_after(proxy, fault, "notebooks")
    with proxy.fault("commitTransaction", times=times, edit=concern_failed) as fault:
        made(append(patient, name, "keyed", f"key-{name}"))
    assert fault.hits == times and acknowledged_after(proxy, fault, "notebooks")
    assert content(patient, name) == "start\nmore\nkeyed"


def test_no_majority(proxy, hasty):
    """Neither of these is acknowledged, also where the document is found to be there.

    MongoDB's manual: an error about the concern stands beside the result of a write, also of one that failed otherwise."""
    name, other = next(names), next(names)
    made(create(hasty, other))
    with proxy.fault(CHANGES, times=None, edit=concern_failed, where=waits_for_majority) as fault:
        answers = at_once(lambda: create(hasty, name), lambda: append(hasty, other), lambda: page(hasty),
                          lambda: append(hasty, other, "keyed", f"key-{other}"))
        ended = [command.name for command in fault.met]
        assert "insert" in ended and ended.count("commitTransaction") > len(answers), "the commits were not sent again"
    for answer in answers:
        assert answer.status_code == 504 and answer.json()["code"] == "TIMEOUT", answer.text
        assert MAYBE.search(answer.json()["message"]), answer.text
    # The key tells that it had been made.
    assert made(append(hasty, other, "keyed", f"key-{other}"))
    assert content(hasty, other).split("\n").count("keyed") == 1


@pytest.mark.parametrize("cut", ["before", "after"])
def test_no_answer(proxy, hasty, cut):
    """Lines that break until the time limit: the server may have made the change or not. The call says that it may.

    MongoDB's manual: the driver sends a write once more after a broken line; behind that the outcome is unknown."""
    name = next(names)
    made(create(hasty, name))
    with proxy.fault("update", "notebooks", where=puts, times=None, cut=cut) as fault:
        answer = append(hasty, name)
        assert answer.status_code == 504 and MAYBE.search(answer.json()["message"]), answer.text
    assert fault.hits > 2
    assert content(hasty, name) == ("start" if cut == "before" else "start\nmore")


def test_line_breaks_in_a_transaction(proxy, hasty):
    """Neither the commit nor the abort of a change arrives: the server keeps its document locked for a minute, unless the gateway ends
    the session once it is back. MongoDB's manual: transactionLifetimeLimitSeconds."""
    name, mark = next(names), proxy.mark()
    made(create(hasty, name))
    with proxy.fault(("commitTransaction", "abortTransaction"), times=None, cut="before") as fault:
        answer = append(hasty, name, "lost", f"key-{name}")
        assert answer.status_code == 504 and MAYBE.search(answer.json()["message"]), answer.text
    left = {command.transaction[0] for command in fault.met}

    def killed():
        return {bytes(one["id"]) for command in proxy.since(mark, "killSessions") for one in command.body["killSessions"]}

    eventually(lambda: left <= killed(), SECONDS, "the end of the sessions")
    made(append(hasty, name))
    assert content(hasty, name) == "start\nmore"


def stepping(_command, _reply=None):
    return error(11602, "operation was interrupted", ["RetryableWriteError"])


def test_made_and_refused(proxy, hasty):
    """The server made the change and then answered that it is no primary any more, as to all that follows. With the label
    NoWritesPerformed, too: it speaks of the driver's second attempt, not of the first."""
    name = next(names)
    made(create(hasty, name))
    with proxy.fault(("update", "find", "commitTransaction"), times=None, answer=stepping,
                     where=lambda one: one.collection in ("notebooks", None)), \
            proxy.fault("update", "notebooks", where=puts, edit=stepping) as fault:
        answer = append(hasty, name)
        assert answer.status_code == 504 and MAYBE.search(answer.json()["message"]), answer.text
    assert fault.hits == 1
    assert content(hasty, name) == "start\nmore"


@pytest.mark.long
def test_deletion_whose_tombstone_left(mongo, proxy, tmp_path):  # noqa: F811
    """The answer of a deletion is lost until another gateway has moved the tombstone out of its collection."""
    database = DATABASE + "_tombstones"
    with serving(tmp_path, mongo.uri, timeout="500ms", database=database, more=["mongo.tombstones=3s"]) as other, \
            serving(tmp_path, proxy.uri, timeout="2s", database=database) as gateway, \
            pymongo.MongoClient(mongo.uri) as client:
        of_entry = {"collection": "pages", "notebook_id": made(page(other))["notebook_id"]}
        made(gateway.call("notebook_read", of_entry))
        with proxy.fault(("update", "find"), "pages", times=None, hold=True, where=lambda one: one.in_transaction) as held, \
                proxy.fault("update", "pages", where=puts, cut="after", times=2) as lost:
            told = []
            call = threading.Thread(target=lambda: told.append(gateway.call("notebook_delete", of_entry)))
            call.start()
            eventually(lambda: held.hits and client[database]["notegate_tombstones"].count_documents({})
                       and not client[database]["pages"].count_documents({}), SECONDS, "the tombstone elsewhere")
            assert lost.hits
        call.join()
        made(told[0])


def test_writes_in_an_outage(mongo, tmp_path):  # noqa: F811
    """Changes that may have been made try until their calls end, each with a writer of its own. Those that come meanwhile, or wait for
    a writer, are told that the database is away, and when to come again."""
    writers = 2
    with lined(mongo) as line, serving(tmp_path, line.uri, timeout="1s", database=DATABASE + "_outage",
                                       more=[f"mongo.writers={writers}"]) as gateway:
        under_way, later = [next(names) for _ in range(writers)], [next(names) for _ in range(4)]
        for name in [*under_way, *later]:
            made(create(gateway, name))
        with concurrent.futures.ThreadPoolExecutor(writers) as pool:
            with contextlib.ExitStack() as stack:
                fault = stack.enter_context(line.fault("update", "notebooks", where=puts, times=None, cut="before"))
                calls = [pool.submit(append, gateway, name) for name in under_way]
                eventually(lambda: len({str(one.body["updates"][0]["q"]["_id"]) for one in fault.met}) == writers, SECONDS, "the changes are sent")
                stack.enter_context(line.fault(times=None, cut="before", where=lambda one: one.name not in GREETINGS))
                for name in later:
                    unavailable(append(gateway, name))
                assert not [call for call in calls if call.done()]
            for call in calls:
                made(call.result())
        for name in under_way:
            assert content(gateway, name) == "start\nmore"


# ---- a primary that steps down ----

def everything(gateway, name, other):
    """One call of each kind."""
    return [lambda: create(gateway, name), lambda: append(gateway, other), lambda: read(gateway, other), lambda: page(gateway),
            lambda: append(gateway, other + "k", "keyed", f"key-{name}")]


@pytest.mark.parametrize("code, seconds", [(10107, 1), (189, 1), (11602, 1), (10107, 3)])
def test_step_down(proxy, patient, code, seconds):
    """Calls under way are carried out when there is a primary again, each once.

    MongoDB's manual: NotWritablePrimary and InterruptedDueToReplStateChange are retryable at the next primary."""
    name, other = next(names), next(names)
    for one in (other, other + "k"):
        made(create(patient, one))
    with stepped_down(proxy, code, seconds) as fault:
        for answer in at_once(*everything(patient, name, other)):
            made(answer)
    assert fault.hits
    assert [content(patient, one) for one in (name, other, other + "k")] == ["start", "start\nmore", "start\nkeyed"]


def test_no_primary(proxy, hasty):
    """Each call says within its time limit that the database is away, and when to come again; later it works.

    MongoDB's manual: without a primary the driver looks for one until serverSelectionTimeoutMS, then fails."""
    name, other = next(names), next(names)
    content(hasty, name)  # it may still have met the last test's step-down
    for one in (other, other + "k"):
        made(create(hasty, one))
    with stepped_down(proxy, 10107, 60):
        answers = at_once(*everything(hasty, name, other))
        for answer in answers:
            # A change that had been sent when the primary went away may have been made.
            assert answer.status_code == 504 and MAYBE.search(answer.text) or unavailable(answer)
        unavailable(append(hasty, other))
    content(hasty, other)
    made(append(hasty, other + "k", "keyed", f"key-{name}"))
    assert content(hasty, other + "k") == "start\nkeyed"
    assert content(hasty, name) is None


# ---- lines that break ----

@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("times", [1, 3])
def test_cut_lines(proxy, patient, cut, times):
    """Whether or not the server had carried it out: made once, as the call says.

    MongoDB's manual: a retryable write that is sent twice is made once by the server."""
    name = next(names)
    with proxy.fault("insert", "notebooks", cut=cut, times=times) as fault:
        made(create(patient, name))
    # The driver sends it twice. Then a transaction finds what was made.
    assert fault.hits == (min(times, 2) if cut == "after" else times)
    with proxy.fault("update", "notebooks", where=puts, cut=cut, times=times) as fault:
        made(append(patient, name))
    assert fault.hits == times
    with proxy.fault("update", "notebooks", where=lambda command: command.in_transaction, cut=cut, times=times) as fault:
        made(append(patient, name, "keyed", f"key-{name}"))
    assert fault.hits == times
    with proxy.fault("commitTransaction", cut=cut, times=times) as fault:
        made(append(patient, name, "last", f"last-{name}"))
        entry = made(page(patient, title=name))["notebook_id"]
    assert fault.hits == times
    with proxy.fault("find", "notebooks", cut=cut) as fault:
        assert content(patient, name) == "start\nmore\nkeyed\nlast"
    assert fault.hits
    listed = made(patient.call("notebook_list", {"collection": "pages", "limit": 100}))["results"]
    assert [one["notebook_id"] for one in listed if one["title"] == name] == [entry]
