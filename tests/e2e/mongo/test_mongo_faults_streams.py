# SPDX-License-Identifier: MIT
"""The change feed while the change stream, the relay and their lines fail: every change once, in one order."""

import contextlib
import itertools
import re
import time

import pymongo
import pytest
from conftest import eventually
from events_support import flood, stream
from mongo_proxy import GREETINGS, concern_failed, error, is_opening, is_stream, stepped_down
from mongo_world import DATABASE, SECONDS, create, lined, made, mongo, proxy, serving  # noqa: F401

numbers = itertools.count()
MANY = 8


@pytest.fixture(scope="module")
def writer(mongo, tmp_path_factory):  # noqa: F811
    """A gateway on the same database without faults; it moves the events, as it was there first."""
    with serving(tmp_path_factory.mktemp("writer"), mongo.uri) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def reader(writer, proxy, tmp_path_factory):  # noqa: F811
    with serving(tmp_path_factory.mktemp("reader"), proxy.uri) as gateway:
        eventually(lambda: opened(proxy), SECONDS, "a change stream")
        yield gateway


def opened(proxy, since=0):  # noqa: F811
    return [one for one in proxy.since(since) if is_opening(one) and one.reply and one.reply["ok"]]


def write(gateway, count=MANY):
    """Creates so many notebooks, one after the other; their names."""
    made_names = [f"n{next(numbers)}" for _ in range(count)]
    for name in made_names:
        made(create(gateway, name))
    return made_names


def told(events, names):
    """They came each once, in this order, with rising numbers."""
    assert [event.json()["id"] for event in events] == names
    assert [int(event.id) for event in events] == sorted({int(event.id) for event in events})


@contextlib.contextmanager
def following(gateway, names):
    """Nothing but these changes comes by the end of the block."""
    with stream(gateway) as events:
        yield events
        told(events.take(len(names)), names)
        assert not events.waiting()


LOST = {286: "Resume of change stream was not possible, as the resume point may no longer be in the oplog.",
        280: "cannot resume stream; the resume token was not found."}


@pytest.mark.parametrize("code, at", [(286, "more"), (286, "resume"), (280, "resume")])
def test_history_lost(proxy, reader, writer, code, at):  # noqa: F811
    """The position is gone: what was missed is read by number, once, and a new stream begins without a position.

    MongoDB's manual: a resume token that the oplog does not have any more (286, 280) is given up for a new stream."""
    names, before = [], proxy.mark()
    lines = len(reader.logged("cannot be resumed"))
    faults = [dict(names="getMore", where=is_stream, answer=error(code, LOST[code], ["NonResumableChangeStreamError"]))]
    if at == "resume":
        faults = [{**faults[0], "names": "aggregate", "where": is_opening}, dict(names="getMore", where=is_stream, cut="before")]
    with following(reader, names):
        names += write(writer)
        with contextlib.ExitStack() as stack:
            for fault in [stack.enter_context(proxy.fault(**each)) for each in faults]:
                names += write(writer)
                eventually(lambda fault=fault: fault.hits, SECONDS, "a lost position")
            names += write(writer)
        eventually(lambda: opened(proxy, before), SECONDS, "a new stream")
        names += write(writer)
    after = opened(proxy, before)
    assert len(after) == 1 and not {"resumeAfter", "startAfter"} & set(after[0].body["pipeline"][0]["$changeStream"]), after
    assert len(reader.logged("cannot be resumed")) == lines + 1, reader.errors


def test_lost_without_a_position(mongo, tmp_path):  # noqa: F811
    """A stream that is refused as lost though it had no position is not opened again and again."""
    with lined(mongo) as line, line.fault(where=is_opening, times=None, answer=error(286, LOST[286])) as fault:
        with serving(tmp_path, line.uri):
            eventually(lambda: fault.hits >= 3, SECONDS, "some attempts")
        times = [one.at for one in fault.met]
        assert all(later - earlier > 0.9 for earlier, later in zip(times, times[1:], strict=False)), times


def test_only_new_events(proxy, reader):  # noqa: F811
    """The removal of old events wakes nobody."""
    pipeline = opened(proxy)[0].body["pipeline"]
    assert pipeline[1]["$match"]["operationType"] == {"$in": ["insert", "update"]}, pipeline


@pytest.mark.long
def test_trial_of_the_stream(mongo, tmp_path):  # noqa: F811
    """After an outage one operation at a time tries the server. If that is the stream, the others go on as soon as it is open,
    or when it fails: they do not wait for the time limit of an operation."""
    limit, outages = 60, 4

    def asked():
        return gateway.call("notebook", {"mode": "read", "name": "n"})

    def is_down():
        begun = time.monotonic()
        return asked().status_code == 503 and time.monotonic() - begun < 0.2

    with lined(mongo) as line, serving(tmp_path, line.uri, timeout=f"{limit}s", database=DATABASE + "_trial") as gateway:
        made(create(gateway, "n"))
        for _ in range(outages):
            with line.fault(times=None, cut="before", where=lambda one: one.name not in GREETINGS):
                line.cut_all()
                eventually(is_down, SECONDS, "an answer without an attempt")
            begun = time.monotonic()
            eventually(lambda: asked().status_code == 200, SECONDS, "an answer")
            assert time.monotonic() - begun < limit / 2


def test_resumed(proxy, reader, writer):  # noqa: F811
    """After a broken line the stream goes on where it was, also if opening it fails a few times.

    MongoDB's manual: after a broken line a stream is opened again behind the last token that was seen."""
    names, before = [], proxy.mark()
    lines = len(reader.errors)
    with following(reader, names):
        names += write(writer)
        with proxy.fault(where=is_stream, cut="before", times=3) as fault:
            names += write(writer)
            eventually(lambda: fault.hits == 3, SECONDS, "broken lines")
            names += write(writer)
            eventually(lambda: opened(proxy, before), SECONDS, "a resumed stream")
        names += write(writer)
    change = opened(proxy, before)[-1].body["pipeline"][0]["$changeStream"]
    assert {"resumeAfter", "startAfter"} & set(change), change
    assert not [line for line in reader.errors[lines:] if "change stream" in line], "a resumed stream is not worth a line"


def test_failover_of_the_stream(proxy, reader, writer):  # noqa: F811
    """MongoDB's manual: a change stream survives an election: it is resumed at the new primary."""
    names = []
    with following(reader, names):
        names += write(writer)
        with stepped_down(proxy, 10107, 1):
            names += write(writer)
        names += write(writer)


@pytest.mark.parametrize("code", [40573, 20])
def test_no_streams(mongo, writer, tmp_path, code):  # noqa: F811
    """A server without them is polled: one line in the log, and it is not asked all the time.

    MongoDB's manual: only replica sets and sharded clusters have change streams."""
    names = []
    with lined(mongo) as line, line.fault(
            where=is_opening, times=None,
            answer=error(code, "The $changeStream stage is only supported on replica sets")) as fault:
        with serving(tmp_path, line.uri) as gateway:
            eventually(lambda: fault.hits, SECONDS, "an attempt")
            with following(gateway, names):
                names += write(writer)
                names += write(gateway)
                begun = time.monotonic()
                while time.monotonic() - begun < 1.5:
                    names += write(writer, 2)
            assert fault.hits == 1, "asked again at once"
            assert len(gateway.logged("change stream")) == 1, gateway.errors
            assert re.search(r"\bpoll", gateway.logged("change stream")[0])


STEPS = {"events-concern": dict(names="insert", collection="notegate_events", edit=concern_failed),
         "events-cut": dict(names="insert", collection="notegate_events", cut="after"),
         "versions-concern": dict(names="insert", collection="notegate_versions", edit=concern_failed),
         "versions-cut": dict(names="insert", collection="notegate_versions", cut="after"),
         "outbox-concern": dict(names="update", collection="notebooks", where=lambda one: "$unset" in one.body["updates"][0]["u"],
                                edit=concern_failed),
         "outbox-cut": dict(names="update", collection="notebooks", where=lambda one: "$unset" in one.body["updates"][0]["u"],
                            cut="before")}


def test_the_relay(proxy, tmp_path):  # noqa: F811
    """Each of its steps fails, some of them after the server carried it out: nothing is told twice, no version is lost.

    MongoDB's manual: a write whose concern failed, or whose line broke, may have been made: it is repeated with unique keys."""
    names = []
    with serving(tmp_path, proxy.uri, database=DATABASE + "_relay") as gateway:
        with following(gateway, names):
            for step in STEPS.values():
                with proxy.fault(**step) as fault:
                    names += write(gateway, 3)
                    eventually(lambda fault=fault: fault.hits, SECONDS, "the fault")
        for name in names:
            history = gateway.call("notebook", {"mode": "read", "name": name})
            assert history.json()["revision"] == 1


@pytest.mark.long
def test_lease_in_a_long_round(mongo, proxy, tmp_path):  # noqa: F811
    """A gateway with a long backlog looks at its lease between two scans."""
    database, count = DATABASE + "_lease", 450
    with serving(tmp_path, proxy.uri, database=database) as gateway, pymongo.MongoClient(mongo.uri) as client:
        meta, events = client[database]["notegate_meta"], client[database]["notegate_events"]
        made(create(gateway, "first"))
        eventually(lambda: events.count_documents({}), SECONDS, "the lease")
        with proxy.fault("insert", "notegate_events", skip=1, hold=True) as second:
            with proxy.fault("insert", "notegate_events", times=None, answer=error(50, "operation exceeded time limit")):
                flood(gateway, count)
            eventually(lambda: second.hits, SECONDS, "the second scan")
            meta.update_one({"_id": "relay"}, {"$set": {"owner": "another"}})
            before = proxy.mark()
            # The lease was looked at long ago.
            eventually(lambda: time.monotonic() - second.met[0].at > 0.3, SECONDS, "some time")
        looked = eventually(lambda: [one for one in proxy.since(before, "find", "notegate_meta")
                                     if one.body["filter"] == {"_id": "relay"}], SECONDS, "a look at the lease")[0]
        assert not [one for one in proxy.since(before, "insert", "notegate_events") if one.at < looked.at + 0.5]
        eventually(lambda: events.count_documents({"quiet": False}) == count + 1, SECONDS, "all events")


def test_versions_that_may_be_rolled_back(proxy, tmp_path):  # noqa: F811
    """An outbox is emptied only once a majority has its versions: "it is there already" alone does not say so.

    MongoDB's manual: a write with a writeConcernError was made and may be rolled back."""
    with serving(tmp_path, proxy.uri, database=DATABASE + "_versions") as gateway:
        with proxy.fault("insert", "notegate_versions", times=None, edit=concern_failed) as fault:
            before = proxy.mark()
            write(gateway, 1)
            eventually(lambda: fault.hits >= 4, SECONDS, "some attempts")
            assert not [one for one in proxy.since(before, "update", "notebooks") if "$unset" in one.body["updates"][0]["u"]]
        eventually(lambda: [one for one in proxy.since(before, "update", "notebooks")
                            if "$unset" in one.body["updates"][0]["u"]], SECONDS, "an emptied outbox")
