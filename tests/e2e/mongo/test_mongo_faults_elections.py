# SPDX-License-Identifier: MIT
"""A new primary that shows to majority reads, for a moment, less than was acknowledged; histories that are thinned while
they are read: no call is refused and no event is left out because of it."""

import contextlib
import itertools
import threading

import pymongo
import pytest
from conftest import eventually
from events_support import stream
from mongo_proxy import error, stepped_down
from mongo_world import DATABASE, SECONDS, append, content, create, lined, made, mongo, page, proxy, read, serving, unavailable  # noqa: F401

names = (f"n{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def pair(mongo, proxy, tmp_path_factory):  # noqa: F811
    """A gateway whose reads may lag behind, and another one on the same database."""
    database = DATABASE + "_elections"
    with serving(tmp_path_factory.mktemp("other"), mongo.uri, database=database) as other, \
            serving(tmp_path_factory.mktemp("late"), proxy.uri, database=database) as late, \
            pymongo.MongoClient(mongo.uri) as client:
        yield late, other, client[database]


@contextlib.contextmanager
def lagging(proxy, collection, older):  # noqa: F811
    """Majority reads of the collection show these documents."""
    def edit(_command, reply):
        return {**reply, "cursor": {**reply["cursor"], "firstBatch": older}}

    with proxy.fault("find", collection, times=None, edit=edit,
                     where=lambda one: one.body.get("readConcern", {}).get("level") == "majority") as fault:
        yield fault


# ---- refusals ----

def test_guard_of_a_revision(proxy, pair):  # noqa: F811
    """The caller knows a newer revision than the first read shows."""
    late, other, database = pair
    name = next(names)
    made(create(late, name))
    older = database["notebooks"].find_one({"notegate.id": name})
    made(append(other, name))
    change = {"mode": "write", "name": name, "newStr": "guarded"}
    with lagging(proxy, "notebooks", [older]) as fault:
        made(late.call("notebook", {**change, "expectedRevision": 2}))
        assert fault.hits
        refused = late.call("notebook", {**change, "expectedRevision": 2})
        assert refused.status_code == 409, refused.text
    assert content(other, name) == "start\nmore\nguarded"


def test_guard_of_an_entry(proxy, pair):  # noqa: F811
    """The entry that the first read does not show is there, for a change and for a deletion."""
    late, other, _ = pair
    of_entry = {"collection": "pages", "notebook_id": made(page(other))["notebook_id"]}
    with lagging(proxy, "pages", []), lagging(proxy, "notegate_tombstones", []) as fault:
        made(late.call("notebook_update", {**of_entry, "append": "more"}))
        assert fault.hits
    assert "more" in made(other.call("notebook_read", of_entry))["content"]
    absent = late.call("notebook_update", {"collection": "pages", "notebook_id": "page_none", "append": "more"})
    assert absent.status_code == 404, absent.text


def test_refusal_without_a_majority(proxy, pair):  # noqa: F811
    """The read that confirms a refusal has a time limit, and a refusal that cannot be confirmed is none."""
    late, _, _ = pair
    name = next(names)
    made(create(late, name))
    change = {"mode": "write", "name": name, "newStr": "guarded", "expectedRevision": 7}
    with proxy.fault("find", "notebooks", times=None, answer=error(50, "operation exceeded time limit"),
                     where=lambda one: one.body.get("readConcern", {}).get("level") == "linearizable") as fault:
        answer = late.call("notebook", change)
        assert answer.status_code in (503, 504), answer.text
        assert fault.met[0].body["maxTimeMS"] > 0
    assert late.call("notebook", change).status_code == 409


# ---- reads ----

def test_reads_after_an_election(proxy, pair):  # noqa: F811
    """A document and a list show what was acknowledged, though the new primary shows less until it was asked for that.

    MongoDB's manual: a linearizable read waits until a majority has what it shows, and shows all that was acknowledged."""
    late, other, database = pair
    name, title = next(names), next(names)
    made(create(late, name))
    older = database["notebooks"].find_one({"notegate.id": name})
    made(append(other, name))
    entry = made(page(other, title=title))["notebook_id"]
    with stream(late, last=0) as following:  # all events are known: nothing else asks for what was acknowledged
        while following.next().json()["id"] != entry:
            pass
    before = proxy.mark()

    def lags(_command):
        # Asked under the line's lock, too.
        return not any(one.reply and one.body.get("readConcern", {}).get("level") == "linearizable" for one in proxy.seen[before:])

    def shows(documents):
        return lambda _command, reply: {**reply, "cursor": {**reply["cursor"], "firstBatch": documents}}

    with proxy.fault("find", "notebooks", where=lags, times=None, edit=shows([older])), \
            proxy.fault("find", "pages", where=lags, times=None, edit=shows([])):
        with stepped_down(proxy, 10107, 0.5):
            eventually(lambda: not proxy.secondary, SECONDS, "the end of the election")
        listed = eventually(lambda: (lambda told: told if told.status_code == 200 else None)(
            late.call("notebook_list", {"collection": "pages", "limit": 100})), SECONDS, "a list")
        assert title in [one["title"] for one in made(listed)["results"]]
        assert content(late, name) == "start\nmore"


@contextlib.contextmanager
def unconfirmed(proxy, **more):  # noqa: F811
    """Linearizable reads of the events are refused."""
    with proxy.fault("find", "notegate_events", where=lambda one: one.body.get("readConcern", {}).get("level") == "linearizable",
                     **more) as fault:
        yield fault


def test_broken_lines_are_no_election(proxy, pair):  # noqa: F811
    """With the primary of before, reads need no majority."""
    late, _, _ = pair
    name = next(names)
    made(create(late, name))
    with unconfirmed(proxy, times=None, answer=error(50, "operation exceeded time limit")) as fault:
        proxy.cut_all()
        assert content(late, name) == "start"
        assert not fault.hits


def test_a_new_primary_without_a_majority(proxy, pair):  # noqa: F811
    """A change waits for it. It was not sent, so nothing is unknown about it."""
    late, _, _ = pair
    name = next(names)
    made(create(late, name))
    with unconfirmed(proxy, times=None, answer=error(50, "operation exceeded time limit")) as fault:
        with stepped_down(proxy, 10107, 0.5):
            eventually(lambda: not proxy.secondary, SECONDS, "the end of the election")
        eventually(lambda: fault.hits, SECONDS, "a look at the new primary")
        told, before = [], fault.hits
        call = threading.Thread(target=lambda: told.append(append(late, name)))
        call.start()
        eventually(lambda: fault.hits > before + 4, SECONDS, "tries")
        unavailable(read(late, name))
        assert not told
        proxy.remove(fault)
        call.join()
    made(told[0])
    assert content(late, name) == "start\nmore"


# ---- events ----

def is_first_page(command):
    return command.body["filter"].get("_id", {}) == {"$gt": 0} and command.body.get("readConcern", {}).get("level") == "majority"


class Late:
    """A database with events, and the proxy in front of it whose majority reads leave the last ones out until a linearizable
    read was answered."""

    def __init__(self, proxy, client, database, other, count=12):  # noqa: F811
        self.proxy, self.count, self.before = proxy, count, 0
        self.written = [next(names) for _ in range(count)]
        for name in self.written:
            made(create(other, name))
        events = client[database]["notegate_events"]
        eventually(lambda: events.count_documents({"quiet": False}) == count, SECONDS, "numbered events")
        self.last = max(one["_id"] for one in events.find({"quiet": False}))

    def confirmed(self):
        # Asked under the line's lock, too.
        return [one for one in self.proxy.seen[self.before:] if one.collection == "notegate_events" and one.reply
                and one.body.get("readConcern", {}).get("level") == "linearizable"]

    def shorter(self, _command, reply):
        batch = [one for one in reply["cursor"]["firstBatch"] if one["_id"] < self.last - 2]
        return {**reply, "cursor": {**reply["cursor"], "firstBatch": batch}}

    def lags(self):
        self.before = self.proxy.mark()
        return self.proxy.fault("find", "notegate_events", where=lambda one: is_first_page(one) and not self.confirmed(), times=None,
                                edit=self.shorter)

    def all_of(self, following):
        return [event.json()["id"] for event in following.take(self.count)]


def test_events_are_not_left_out(mongo, proxy, tmp_path):  # noqa: F811
    """A reader from the beginning gets each event, though the new primary of an election shows only the first ones until it was
    asked for what is acknowledged.

    MongoDB's manual: a linearizable read waits until a majority has what it shows, and shows all that was acknowledged."""
    database = DATABASE + "_late_events"
    with serving(tmp_path, mongo.uri, database=database) as other, pymongo.MongoClient(mongo.uri) as client:
        events = Late(proxy, client, database, other)
        with serving(tmp_path, proxy.uri, database=database) as late, events.lags():
            with stepped_down(proxy, 10107, 0.5):
                eventually(lambda: not proxy.secondary, SECONDS, "the end of the election")
            with stream(late, last=0) as following:
                assert events.all_of(following) == events.written
            assert events.confirmed()


def test_a_read_that_the_driver_sends_again(mongo, proxy, tmp_path):  # noqa: F811
    """The line breaks under the read of events: the driver sends it again, and then it is one of a primary that is behind."""
    database = DATABASE + "_again"

    def elects(command):
        proxy.elections += is_first_page(command)
        return is_first_page(command)

    with serving(tmp_path, mongo.uri, database=database) as other, pymongo.MongoClient(mongo.uri) as client:
        events = Late(proxy, client, database, other)
        with serving(tmp_path, proxy.uri, database=database) as late:
            with stream(late, last=0) as following:  # nothing is in doubt after it
                assert events.all_of(following) == events.written
            with events.lags(), proxy.fault("find", "notegate_events", where=elects, cut="before") as broken:
                # Until then it is as it was: the answers are whole.
                with stream(late, last=0) as following:
                    assert events.all_of(following) == events.written
            assert broken.hits == 1 and events.confirmed()


def test_readers_beside_the_one_that_asks(mongo, proxy, tmp_path):  # noqa: F811
    """While one reader waits for the primary's word, no other takes it as given."""
    database = DATABASE + "_beside"
    with serving(tmp_path, mongo.uri, database=database) as other, pymongo.MongoClient(mongo.uri) as client:
        events = Late(proxy, client, database, other)
        with serving(tmp_path, proxy.uri, database=database) as late, contextlib.ExitStack() as stack:
            with stream(late, last=0) as following:
                assert events.all_of(following) == events.written
            stack.enter_context(events.lags())
            with stepped_down(proxy, 10107, 0.5):
                eventually(lambda: not proxy.secondary, SECONDS, "the end of the election")
            with proxy.fault("find", "notegate_events", times=None, hold=True, where=lambda one: one.body.get(
                    "readConcern", {}).get("level") == "linearizable") as held:
                first = stack.enter_context(stream(late, last=0))
                eventually(lambda: held.hits, SECONDS, "a read that waits")
                second = stack.enter_context(stream(late, last=0))
                eventually(lambda: held.hits > 1 or [one for one in proxy.seen[events.before:] if one.reply and
                                                     one.collection == "notegate_events" and is_first_page(one)],
                           SECONDS, "the other's read")
            assert events.all_of(first) == events.written
            assert events.all_of(second) == events.written


# ---- histories ----

def test_history_that_is_thinned(proxy, pair):  # noqa: F811
    """Another gateway drops revisions between the two reads of one: it is read once more."""
    late, other, database = pair
    of_entry = {"collection": "pages", "notebook_id": made(page(other, text="words\n" * 50))["notebook_id"]}
    for number in range(4):
        made(other.call("notebook_update", {**of_entry, "append": f"line {number}"}))
    eventually(lambda: database["notegate_versions"].count_documents({"document": of_entry["notebook_id"]}) == 5, SECONDS,
               "moved versions")

    def gap(_command, reply):
        return {**reply, "cursor": {**reply["cursor"], "firstBatch": reply["cursor"]["firstBatch"][:1]
                                    + reply["cursor"]["firstBatch"][2:]}}

    wanted = {**of_entry, "version": 4}
    with proxy.fault("find", "notegate_versions", edit=gap, where=lambda one: one.body["sort"]["_id"] == 1) as fault:
        assert "line 2" in made(late.call("notebook_read", wanted))["content"]
        assert fault.hits == 1
    with proxy.fault("find", "notegate_versions", times=None, edit=gap, where=lambda one: one.body["sort"]["_id"] == 1):
        answer = late.call("notebook_read", wanted)
        assert answer.status_code == 503 and "damaged" in answer.json()["message"], answer.text
