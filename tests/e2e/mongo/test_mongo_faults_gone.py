# SPDX-License-Identifier: MIT
"""A gateway that dies in a transaction, restores seen by a reader, round trips and concerns of every command."""

import contextlib
import itertools
import threading
import time
import uuid

import bson
import httpx
import pymongo
import pytest
from conftest import eventually
from mongo_proxy import is_heartbeat, not_primary, of_a_call
from mongo_world import DATABASE, SECONDS, append, content, create, lined, made, mongo, page, proxy, read, serving  # noqa: F401

# The server ends a transaction by itself after a minute (transactionLifetimeLimitSeconds).
SERVER_LIMIT_SECONDS = 60


def committing(line, gateway, name, told):  # noqa: F811
    """A call whose commit does not arrive."""
    def run():
        with contextlib.suppress(httpx.TransportError):
            told.append(append(gateway, name, "held", f"key-{name}"))

    call = threading.Thread(target=run)
    call.start()
    return call


def session_of(held):
    return next((one.body["lsid"]["id"] for one in held.met if one.name == "commitTransaction"), None)


def ended(proxy, held):  # noqa: F811
    """The session of the held commit was ended by the other gateway."""
    session = session_of(held)
    return [one for one in proxy.since(0, "killSessions") if session in [each["id"] for each in one.body["killSessions"]]]


@pytest.mark.long
def test_dead_and_slow_gateways(mongo, proxy, tmp_path):  # noqa: F811
    """Of gateways whose heartbeats stand still another one ends the sessions, and with these the locks on documents. One
    that is dead has made nothing; one that only stood still runs its transaction again and makes its change once.

    MongoDB's manual: a transaction locks its documents until it ends; killSessions ends it before the server's time limit."""
    database, told = DATABASE + "_gone", []
    with lined(mongo) as dying, lined(mongo) as slowing, contextlib.ExitStack() as stack:
        other, dead, slow = (stack.enter_context(serving(tmp_path, line.uri, database=database, timeout="20s"))
                             for line in (proxy, dying, slowing))
        for name in ("dead", "slow"):
            made(create(other, name))
        faults = dict(names=("commitTransaction", "update"), times=None, hold=True,
                      where=lambda one: one.name != "update" or is_heartbeat(one))
        with dying.fault(**faults) as lost, slowing.fault(**faults) as late:
            calls = [committing(dying, dead, "dead", []), committing(slowing, slow, "slow", told)]
            for held in (lost, late):
                eventually(lambda held=held: [one for one in held.met if one.name == "commitTransaction"], SECONDS, "a commit")
            begun = time.monotonic()
            dead.process.kill()
            made(append(other, "dead"))
            waited = time.monotonic() - begun
            print(f"the document of the dead gateway is free after {waited:.1f} s")
            assert waited < SERVER_LIMIT_SECONDS / 4
            for held in (lost, late):
                eventually(lambda held=held: ended(proxy, held), SECONDS, "the end of its session")
        for call in calls:
            call.join()
        made(told[0])
        assert [content(other, name) for name in ("dead", "slow")] == ["start\nmore", "start\nheld"]
        listed_again(mongo, slow, session_of(late))


def listed_again(mongo, gateway, session):  # noqa: F811
    """The list of its sessions was removed; it lists those that it uses next."""
    numbers = itertools.count()

    def lists(client):
        made(append(gateway, "slow", "again", f"key-{next(numbers)}-again"))
        return client[DATABASE + "_gone"]["notegate_meta"].find_one({"sessions.id": session, "beat": {"$gt": 0}})

    with pymongo.MongoClient(mongo.uri) as client:
        eventually(lambda: lists(client), SECONDS, "its session in the list")


def test_sessions_kept(mongo, tmp_path):  # noqa: F811
    """The list of a gateway's sessions does not grow for ever."""
    database, most = DATABASE + "_sessions", 64
    with serving(tmp_path, mongo.uri, database=database) as gateway, pymongo.MongoClient(mongo.uri) as client:
        meta = client[database]["notegate_meta"]
        itself = eventually(lambda: meta.find_one({"_id": {"$regex": "^gateway:"}}), SECONDS, "its heartbeat")["_id"]
        meta.update_one({"_id": itself}, {"$set": {"sessions": [{"id": uuid.uuid4().bytes} for _ in range(3 * most)]}})
        made(create(gateway, "n"))
        made(append(gateway, "n", "more", "key-sessions"))
        listed = meta.find_one({"_id": itself})["sessions"]
        assert len(listed) == most and isinstance(listed[-1]["id"], uuid.UUID | bson.Binary), listed[-1]


@pytest.mark.long
def test_many_gateways(mongo, tmp_path):  # noqa: F811
    """A dead gateway is noticed among more living ones than MongoDB's table once had places."""
    database, living = DATABASE + "_many", 200
    with pymongo.MongoClient(mongo.uri) as client:
        meta = client[database]["notegate_meta"]
        meta.insert_many([{"_id": f"gateway:a{number:03}", "beat": bson.Int64(1)} for number in range(living)])
        meta.insert_one({"_id": "gateway:b", "beat": bson.Int64(1)})

        def ended():
            meta.update_many({"_id": {"$regex": "^gateway:a"}}, {"$inc": {"beat": bson.Int64(1)}})
            return meta.find_one({"_id": "gateway:b"}) is None

        with serving(tmp_path, mongo.uri, database=database):
            eventually(ended, SECONDS, "the end of the dead one")
        assert meta.count_documents({"_id": {"$regex": "^gateway:a"}}) == living


# ---- restores ----

RESTORES = 10
PAGES = 3


@pytest.mark.long
def test_restore_seen_by_a_reader(proxy, tmp_path):  # noqa: F811
    """Lists and searches show the state before or after a restore of several documents, never a mixture.

    MongoDB's manual: reads of one snapshot session see one moment, outside of any transaction that has not committed."""
    def told(tool, **arguments):
        return made(gateway.call(tool, arguments))

    seen, faults, stop = [], [], threading.Event()

    def look():
        while not stop.is_set():
            answer = gateway.call("notebook_list", {"collection": "pages", "limit": 50})
            if answer.status_code != 200:
                faults.append(answer.text)
                return
            seen.append(tuple(sorted(one["title"] for one in answer.json()["result"]["results"])))

    with serving(tmp_path, proxy.uri, database=DATABASE + "_restore", more=["journal=documents"]) as gateway:
        pages = [made(page(gateway, f"first {number}"))["notebook_id"] for number in range(PAGES)]
        first = told("checkpoint_snapshot", label="first")["checkpoint_id"]
        for number, notebook in enumerate(pages):
            told("notebook_update", collection="pages", notebook_id=notebook, title=f"second {number}")
        second = told("checkpoint_snapshot", label="second")["checkpoint_id"]
        reader = threading.Thread(target=look)
        reader.start()
        try:
            for number in range(RESTORES):
                told("checkpoint_restore", checkpoint_id=(first, second)[number % 2])
        finally:
            stop.set()
            reader.join()
    whole = {tuple(f"{word} {number}" for number in range(PAGES)) for word in ("first", "second")}
    assert not faults and len(seen) > RESTORES and set(seen) <= whole, (faults, set(seen) - whole)


COLLECTIONS = ("pages", "code_snippets", "research_notes")


@pytest.mark.parametrize("tool, arguments", [("notebook_list", {"limit": 50}), ("checkpoint_snapshot", {"label": "moment"})])
def test_reads_of_one_moment(proxy, counted, tool, arguments):  # noqa: F811
    """All queries of a call, of any collection, show the moment of its first one, in batches and after a failure.

    A read concern `snapshot` without a time shows the newest moment; its answer tells `atClusterTime`, which later reads name."""
    for collection in COLLECTIONS:
        for number in range(3):
            made(counted.call("notebook_create", {"collection": collection, "title": f"page {number}", "content": "words"}))
    def snapshot(one):
        return one.collection in COLLECTIONS and one.body.get("readConcern", {}).get("level") == "snapshot" and not one.in_transaction

    before = proxy.mark()
    with proxy.fault("find", where=snapshot, times=None, change=lambda body: {**body, "batchSize": 2}):
        with proxy.fault("find", "code_snippets", where=snapshot, answer=not_primary(10107)) as refused:
            made(counted.call(tool, arguments))
    reads = [one for one in proxy.since(before, ("find", "aggregate")) if snapshot(one)]
    assert {one.collection for one in reads} == set(COLLECTIONS) and refused.hits == 1
    moment = reads[0].reply["cursor"]["atClusterTime"]
    assert "atClusterTime" not in reads[0].body["readConcern"]
    assert {one.body["readConcern"]["atClusterTime"] for one in reads[1:]} == {moment}
    rests = [one for one in proxy.since(before, "getMore") if one.collection in COLLECTIONS]
    assert {one.collection for one in rests} == set(COLLECTIONS) and all(one.reply["ok"] for one in rests)


# ---- round trips and concerns ----

@pytest.fixture(scope="module")
def counted(mongo, proxy, tmp_path_factory):  # noqa: F811
    """A gateway behind the line that has no lease: its commands are those of its calls."""
    with serving(tmp_path_factory.mktemp("first"), mongo.uri, database=DATABASE + "_trips") as first:
        made(create(first, "n0"))
        with serving(tmp_path_factory.mktemp("counted"), proxy.uri, database=DATABASE + "_trips",
                     plugins="notebook,agent_notebook", more=["journal=documents"]) as gateway:
            yield gateway


def trips(proxy, call):  # noqa: F811
    before = proxy.mark()
    made(call())
    return [str(one).strip() for one in proxy.since(before) if of_a_call(one)]


def settled(client):
    """The relay has moved what was written: it would change the same documents."""
    waiting = {"notegate.waiting": {"$exists": True}}
    return not any(client[DATABASE + "_trips"][name].count_documents(waiting) for name in ("notebooks", "pages"))


def test_round_trips(mongo, proxy, counted):  # noqa: F811
    """One for a read, two for a write. A transaction is two and its end. A search reads counts, then its page.

    MongoDB's manual: each command is one round trip, and commitTransaction is one more."""
    made(create(counted, "n"))
    entry = made(page(counted, "Page"))["notebook_id"]
    of_entry = {"collection": "pages", "notebook_id": entry}
    counts = {
        "read": (1, lambda _: read(counted, "n")),
        "append": (2, lambda _: append(counted, "n")),
        "create": (2, lambda again: create(counted, f"m{again}")),
        "append with a key": (4, lambda again: append(counted, "n", "keyed", f"key-{again}")),
        "read of a page": (1, lambda _: counted.call("notebook_read", of_entry)),
        "update of a page": (2, lambda _: counted.call("notebook_update", {**of_entry, "append": "more"})),
        "creation of a page": (3, lambda _: page(counted, "Other")),
        "list of pages": (2, lambda _: counted.call("notebook_list", {"collection": "pages"})),
        "search": (2, lambda _: counted.call("notebook_search", {"query": "words", "collection": "pages"})),
    }
    over = {}
    with pymongo.MongoClient(mongo.uri) as client:
        for what, (most, call) in counts.items():
            tries = []
            # The gateway's own work at that time may add some; then once more.
            while not tries or len(tries) < 5 and len(min(tries, key=len)) > most:
                eventually(lambda: settled(client), SECONDS, "moved events")
                tries.append(trips(proxy, lambda: call(len(tries))))
            seen = min(tries, key=len)
            print(f"{what}: {len(seen)} of {most}: {', '.join(seen)}")
            if len(seen) > most:
                over[what] = seen
    assert not over


WRITES = {"insert", "update", "delete", "findAndModify"}
READS = {"find", "aggregate", "count", "distinct"}


def test_concerns(proxy, counted):  # noqa: F811
    """Every write of the tests above was for a majority with the journal, every read of what a majority has.

    MongoDB's manual: only what a majority has acknowledged cannot be rolled back, in the journal if `j` asks for it."""
    made(counted.call("notebook_search", {"query": "words"}))
    made(counted.call("notebook_list", {"collection": "pages"}))
    for one in proxy.since():
        concern, level = one.body.get("writeConcern"), one.body.get("readConcern", {}).get("level")
        assert concern is None or (concern["w"] == "majority" and concern["j"] is True), one.body
        if one.in_transaction:
            assert not one.body.get("startTransaction") or level == "snapshot", one.body
            assert one.name != "commitTransaction" or concern, one.body
        elif one.name in WRITES:
            assert concern, one.body
        elif one.name in READS:
            assert level in ("majority", "snapshot", "linearizable"), one.body
    seen = {one.name for one in proxy.since()}
    assert {"insert", "update", "find", "aggregate", "commitTransaction", "getMore"} <= seen
