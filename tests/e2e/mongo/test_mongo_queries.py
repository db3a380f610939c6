# SPDX-License-Identifier: MIT
"""What queries cost the server: lists in the order of an index, searches with a time limit, a gateway that does nothing."""

import collections

import bson
import pymongo
import pytest
from conftest import eventually
from mongo_proxy import GREETINGS, error, is_heartbeat, is_stream
from mongo_world import SECONDS, create, made, mongo, page, proxy, serving  # noqa: F401

NAME = "notegate_queries"
TAGS = ["red", "blue"]
LIMIT_MS = 60_000  # mongo.timeout; nothing here is about a server that answers late


@pytest.fixture(scope="module")
def database(mongo):  # noqa: F811
    with pymongo.MongoClient(mongo.uri) as client:
        yield client[NAME]


@pytest.fixture(scope="module")
def gateway(database, proxy, tmp_path_factory):  # noqa: F811
    """With some pages, and all indexes."""
    with serving(tmp_path_factory.mktemp("queries"), proxy.uri, timeout=f"{LIMIT_MS}ms", database=NAME) as running:
        made(create(running, "n"))
        for number in range(12):
            made(page(running, f"Page {number}", "words of a page", tags=[TAGS[number % 2], "all"]))
        eventually(lambda: {"by_updated", "by_metadata_tags"} <= set(database["pages"].index_information()), SECONDS, "indexes")
        yield running


# ---- lists ----

def conditions(query):
    """Members of a query that are equal to a value (or one of some), and the others."""
    equal, other = set(), set()
    for name, value in query.items():
        if name == "$and":
            for part in value:
                more = conditions(part)
                equal |= more[0]
                other |= more[1]
        elif isinstance(value, dict) and not set(value) <= {"$eq", "$in"}:
            other.add(name)
        else:
            equal.add(name)
    return equal, other


def serves(keys, query, sort):
    """Whether an index finds exactly what the query wants, in the order of the sort, by MongoDB's rules: members that are
    equal first, then those of the sort in one direction, ranges last. The stand-in's own `explain` knows less."""
    equal, other = conditions(query)
    names = [name for name, _ in keys]
    first = next((at for at, name in enumerate(names) if name not in equal), len(names))
    ordered = [name for name in sort if name not in equal]
    ways = {way * dict(keys)[name] for name, way in sort.items() if name in names[first:]}
    return (equal <= set(names[:first]) and len(ways) <= 1 and names[first:first + len(ordered)] == ordered
            and other <= set(names))


def index_of(database, command):
    """The indexes that serve a find."""
    query, sort = command.body["filter"], command.body.get("sort", {})
    return [name for name, index in database[command.collection].index_information().items()
            if serves(index["key"], query, sort)]


def test_the_rules():
    """The check knows an index that needs a sort in memory."""
    query, order = {"space": "s", "notegate.deleted": False}, {"notegate.updated": -1, "notegate.created_seq": -1}
    keys = [("space", 1), ("notegate.deleted", 1), ("notegate.updated", 1)]
    assert not serves(keys, query, order)
    keys.append(("notegate.created_seq", 1))
    assert serves(keys, query, order) and not serves(keys, query, {**order, "notegate.created_seq": 1})
    tagged = {**query, "$and": [{"tags": {"$eq": "red"}}]}
    assert not serves(keys, tagged, order) and serves([*keys[:2], ("tags", 1), *keys[2:]], tagged, order)
    assert serves([("quiet", 1), ("_id", 1)], {"_id": {"$gt": 1}, "quiet": False}, {"_id": 1})
    assert not serves([("_id", 1)], {"_id": {"$gt": 1}, "quiet": False}, {"_id": 1})


LISTS = {"plain": {}, "tag": {"tags": ["red"]}, "status": {"status": "draft"}, "author": {"created_by": "local"},
         "more": {"offset": 3, "limit": 4}}


@pytest.mark.parametrize("what", LISTS)
def test_lists_are_in_the_order_of_an_index(database, gateway, proxy, what):  # noqa: F811
    """MongoDB's manual: an index gives the order if the members of the sort follow those that are compared for equality; else
    all that is found is sorted in memory."""
    mark = proxy.mark()
    made(gateway.call("notebook_list", {"collection": "pages", **LISTS[what]}))
    finds = proxy.since(mark, "find", "pages")
    assert finds and finds[0].body["sort"], finds
    for command in finds:
        assert index_of(database, command), (command.body["filter"], command.body["sort"])


# ---- searches ----

def searched(command):
    """A read of the pages, but those of the relay and of the tombstones' sweep, which come at any time."""
    return (command.collection == "pages" and command.name in ("find", "aggregate", "getMore")
            and "notegate.waiting" not in str(command.body))


def test_searches_have_a_time_limit(gateway, proxy):  # noqa: F811
    """MongoDB's manual: the server ends an operation at its maxTimeMS, and answers MaxTimeMSExpired. No client repeats that."""
    mark = proxy.mark()
    found = made(gateway.call("notebook_search", {"query": "words", "collection": "pages", "limit": 5}))
    assert len(found["results"]) == 5
    seen = [one for one in proxy.since(mark) if searched(one)]
    assert seen
    for command in seen:
        assert command.name == "getMore" or 0 < command.body["maxTimeMS"] <= LIMIT_MS, command.body
    with proxy.fault(where=searched, times=None, answer=error(50, "operation exceeded time limit")) as fault:
        answer = gateway.call("notebook_search", {"query": "words", "collection": "pages"})
    assert answer.status_code == 504 and answer.json()["code"] == "TIMEOUT", answer.text
    assert "time limit" in answer.json()["message"] and fault.hits == 1
    assert made(gateway.call("notebook_search", {"query": "words", "collection": "pages"}))["total"] == 12


def read_bytes(commands):
    """What the server sent for them."""
    return sum(len(bson.encode(one.reply)) for one in commands if one.reply)


# Larger than all else that a search reads.
BIG_BYTES = 300_000
REFUSED = error(168, "Unrecognized expression '$objectToArray'")


def lanterns(gateway, **more):
    """A search with one hit on its page of those that are large."""
    return made(gateway.call("notebook_search", {"collection": "pages", "limit": 1, **more}))


def test_searches_read_their_page(gateway, proxy):  # noqa: F811
    """Of the other hits only counts of words are read, whatever their size.

    MongoDB's manual: since 4.4 the projection of find takes expressions; the answer to one it does not know is an error."""
    for number in range(4):
        made(page(gateway, f"Lantern {number}", "lanterns glow " * (BIG_BYTES // 14) + "lantern " * number))
    for query in ("lantern", "\"lanterns\"", "glow* lantern"):
        before = proxy.mark()
        result = lanterns(gateway, query=query)
        assert result["total"] == 4, query
        reads = [one for one in proxy.since(before) if searched(one)]
        assert BIG_BYTES < read_bytes(reads) < 2 * BIG_BYTES, query
        assert len(reads) == 2 and "_id" in reads[1].body["filter"], reads
    best = lanterns(gateway, query="lantern")["results"][0]["title"]
    assert best == "Lantern 3"
    with proxy.fault("find", "pages", where=lambda command: "star0" in command.body.get("projection", {}), answer=REFUSED) as fault:
        result = lanterns(gateway, query="lantern*")
        assert result["total"] == 4 and fault.hits == 1


# ---- nothing to do ----

HEARTBEATS = 4
# For each heartbeat of a second, without the waits for the change stream: measured 14 to 17.
COMMANDS_A_HEARTBEAT = 24
# Looks at the events, of the feed and of the journal.
LOOKS_A_HEARTBEAT = 3


def is_look(command):
    return command.name == "find" and command.collection == "notegate_events" and "_id" in command.body["filter"]


@pytest.mark.long
def test_an_idle_gateway(database, gateway, proxy):  # noqa: F811
    """After many events that are never shown: few commands, by the gateway's own heartbeats, and no look at the events finds
    any of those again or reads more than an index.

    MongoDB's manual: an index with the compared member first, then the range, reads only what the query finds."""
    for number in range(40):
        made(gateway.call("memory_log", {"content": f"memory {number}"}))
    made(gateway.call("memory_timeline", {}))
    eventually(lambda: not database["agents"].count_documents({"notegate.waiting": {"$exists": True}}), SECONDS, "moved events")
    assert database["notegate_events"].count_documents({"quiet": True}) >= 40
    quiet = eventually(lambda: still(proxy), SECONDS, "a gateway that does nothing")
    eventually(lambda: sum(map(is_heartbeat, proxy.since(quiet))) > HEARTBEATS, SECONDS, "heartbeats")
    seen = [one for one in proxy.since(quiet) if one.name not in GREETINGS | {"ping"}]
    waits = [one for one in seen if is_stream(one)]
    told = [one for one in waits if one.reply and one.reply["cursor"].get("nextBatch")]
    work = [one for one in seen if not is_stream(one)]
    looks = [one for one in seen if is_look(one)]
    beats = sum(map(is_heartbeat, seen))
    counts = collections.Counter(str(one).strip() for one in work)
    print(f"{beats} heartbeats: {len(work)} commands, {len(looks)} of them looks at the events, {len(waits)} waits for the "
          f"change stream, {len(told)} of them told something; {dict(counts)}")
    assert len(work) <= COMMANDS_A_HEARTBEAT * beats, counts
    assert len(looks) <= LOOKS_A_HEARTBEAT * beats and len(told) <= beats, counts
    for look in looks:
        assert look.reply["cursor"]["firstBatch"] == [] and look.reply["cursor"]["id"] == 0
        assert index_of(database, look) == ["quiet"], look.body
    assert not [one for one in seen if one.name == "getMore" and one.collection == "notegate_events"]


def still(proxy):  # noqa: F811
    """A place in what was seen from which nothing was written but heartbeats, for one heartbeat at least."""
    seen = proxy.since()
    last = max((at for at, one in enumerate(seen) if one.name in ("insert", "commitTransaction")), default=0)
    return last + 1 if sum(map(is_heartbeat, seen[last + 1:])) >= 2 else None
