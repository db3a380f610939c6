# SPDX-License-Identifier: MIT
"""The role of the primary moves to another member under load: the driver finds it, no acknowledged change is lost, none is
made twice, and the events keep one order without gaps."""

import collections
import contextlib
import itertools
import threading
import time

import pymongo
import pytest
from conftest import eventually
from events_support import stream
from mongo_load import create, in_a_line, load
from mongo_set import REFUSALS, replica_set
from mongo_world import SECONDS, made, mongo, page, serving  # noqa: F401

WRITES = {"insert", "update", "delete", "findAndModify", "commitTransaction"}
ELECTIONS = 3
numbers = itertools.count(1)


def step_down(group):
    group.elect(group.other())


def be_unaware(group):
    group.elect(group.other(), unaware=True)


def die(group):
    """Its lines break. The other one is elected after a moment without a primary."""
    former, following = group.primary, group.other()
    group.elect(None)
    former.down = True
    former.cut_all()
    time.sleep(0.5)
    group.elect(following)


class Pages:
    """A caller without idempotency keys that creates pages, each in a transaction."""

    def __init__(self, gateway):
        self.gateway, self.over = gateway, threading.Event()
        self.titles, self.refused = [], []
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.over.is_set():
            title = f"page {len(self.titles)}"
            answer = page(self.gateway, title)
            if answer.status_code != 200:
                self.refused.append(answer.text)
                return
            self.titles.append(title)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def listed(gateway, count):
    answer = made(gateway.call("notebook_list", {"collection": "pages", "limit": 100}))
    assert answer["total"] == count <= 100, answer
    return sorted(one["title"] for one in answer["results"])


def writes(member, mark=0):
    """Those that this member has carried out."""
    return [one for one in member.since(mark, WRITES) if one.reply and one.reply.get("ok")]


def one_order(database, told):
    """Each gateway told the same events, rising, every revision of each document once; their numbers have no gap."""
    first, second = [[(int(event.id), event.json()["collection"], event.json()["id"], event.json()["revision"])
                      for event in events] for events in told]
    assert first == second
    assert [event[0] for event in first] == sorted({event[0] for event in first})
    revisions = collections.defaultdict(list)
    for _, collection, document, revision in first:
        revisions[collection, document].append(revision)
    for document, found in revisions.items():
        assert found == list(range(1, len(found) + 1)), (document, found)
    numbered = sorted(event["_id"] for event in database["notegate_events"].find({}, {"_id": 1}))
    assert numbered == list(range(numbered[0], numbered[0] + len(numbered)))


@pytest.mark.long
@pytest.mark.parametrize("how", [step_down, be_unaware, die], ids=lambda how: how.__name__)
def test_another_primary(mongo, tmp_path, how):  # noqa: F811
    """MongoDB's manual: a client keeps to the member that says it is the primary with the highest election id, and sends
    retryable writes and reads once more after NotWritablePrimary and broken lines; transactions of a former primary are gone."""
    database = f"election_{next(numbers)}"
    with replica_set(mongo) as group, contextlib.ExitStack() as stack:
        gateways = [stack.enter_context(serving(tmp_path, group.uri, timeout="20s", database=database)) for _ in range(2)]
        streams = [stack.enter_context(stream(gateway)) for gateway in gateways]
        create(gateways[0])
        pages = Pages(gateways[0])

        def elections(written):
            for _ in range(ELECTIONS):
                goal = len(written) + 8
                eventually(lambda goal=goal: len(written) >= goal, SECONDS, "some writes")
                former = group.primary
                how(group)
                mark = group.primary.mark()
                eventually(lambda mark=mark: writes(group.primary, mark), SECONDS, "a write at the new primary")
                former.down = False

        with pages:
            written = load(gateways, elections)
        assert not pages.refused
        in_a_line(gateways[1], written)
        assert listed(gateways[1], len(pages.titles)) == sorted(pages.titles)
        if how is not die:
            refusals = [one.reply["code"] for member in group.members for one in member.since() if one.reply
                        and one.reply.get("code") in REFUSALS]
            print(f"{how.__name__}: refused with {collections.Counter(refusals)}")
            assert refusals, "the former primary was not asked for anything"
        with pymongo.MongoClient(mongo.uri) as client:
            one_order(client[database], [each.take(1 + len(written) + len(pages.titles)) for each in streams])


def test_no_writes_elsewhere(mongo, tmp_path):  # noqa: F811
    """MongoDB's manual: writes, and reads with the read preference `primary`, go to the primary alone."""
    with replica_set(mongo) as group, serving(tmp_path, group.uri, database="election_alone") as gateway:
        create(gateway)
        asked = {one.name for one in group.other().since()}
        assert asked <= {"hello", "isMaster", "ismaster", "ping", "endSessions"}, asked
        group.elect(None)
        begun = time.monotonic()
        waiting = threading.Timer(1, lambda: group.elect(group.members[1]))
        waiting.start()
        made(page(gateway))
        print(f"a page is made {time.monotonic() - begun:.1f} s after the role went, and 1 s after it came back")
        assert [one for one in writes(group.members[1]) if one.name == "commitTransaction"]
