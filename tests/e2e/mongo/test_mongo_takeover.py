# SPDX-License-Identifier: MIT
"""One gateway numbers the events: its death is noticed by its heartbeats, and its events reach others by the change stream."""

import itertools

import pytest
from conftest import eventually
from events_support import stream
from mongo_proxy import is_heartbeat, is_stream
from mongo_world import SECONDS, create, lined, made, mongo, proxy, serving  # noqa: F401

NAME = "notegate_takeover"
# Of backends/mongo/feed/relay.c: so many heartbeats without one of the owner. The first may come before the owner's last one
# was seen, and the lease is looked at after the last.
LEASE_HEARTBEATS = 2
SLACK_HEARTBEATS = 2
# Of core/feed: events of one poll, which the journal's looks have not, and the interval of polls doubles while nothing comes.
FEED_EVENTS = 1000
SETTLED_SECONDS = 1
numbers = itertools.count()


def heartbeats(proxy, mark=0):  # noqa: F811
    return [one for one in proxy.since(mark) if is_heartbeat(one)]


def takeovers(proxy, mark=0):  # noqa: F811
    """The lease is written by a new owner."""
    return [one for one in proxy.since(mark, "update", "notegate_meta") for update in one.body["updates"]
            if update["q"]["_id"] == "relay" and update["u"].get("$set", {}).get("owner")]


def write(gateway, count=1):
    names = [f"n{next(numbers)}" for _ in range(count)]
    for name in names:
        made(create(gateway, name))
    return names


def numbering(proxy, mark=0):  # noqa: F811
    return proxy.since(mark, "insert", "notegate_events")


@pytest.mark.long
@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_another_numbers_the_events(mongo, proxy, tmp_path, end):  # noqa: F811
    """MongoDB's manual: an update with a condition is atomic, so of several gateways one takes the lease. After kill -9 that
    is two heartbeats later; a gateway that is told to stop gives it away."""
    with lined(mongo) as line, serving(tmp_path, line.uri, database=f"{NAME}_{end}") as owner:
        names = write(owner, 2)
        eventually(lambda: numbering(line), SECONDS, "numbered events")
        start = proxy.mark()
        with serving(tmp_path, proxy.uri, database=f"{NAME}_{end}") as other, stream(other, last=0) as events:
            names += write(owner) + write(other)
            # While the owner lives nobody takes its lease.
            eventually(lambda: len(heartbeats(proxy, start)) > LEASE_HEARTBEATS + SLACK_HEARTBEATS, SECONDS, "heartbeats")
            assert not takeovers(proxy, start) and not numbering(proxy, start)
            mark = proxy.mark()
            if end == "killed":
                owner.process.kill()
            else:
                owner.process.terminate()
            names += write(other, 2)
            eventually(lambda: numbering(proxy, mark), SECONDS, "numbered events")
            names += write(other)
            taken = takeovers(proxy, mark)[0]
            beats = [one for one in heartbeats(proxy, mark) if one.at < taken.at]
            print(f"{end}: taken after {len(beats)} heartbeats")
            least = LEASE_HEARTBEATS if end == "killed" else 0
            assert least <= len(beats) <= LEASE_HEARTBEATS + SLACK_HEARTBEATS
            told = events.take(len(names))
            assert [event.json()["id"] for event in told] == names
            assert [int(event.id) for event in told] == sorted({int(event.id) for event in told})
            assert not events.waiting()


# ---- who wakes readers ----

def is_poll(command):
    """The feed looks for events behind those that it knows."""
    return command.name == "find" and command.collection == "notegate_events" and command.body.get("limit") == FEED_EVENTS


def brings(command, event):
    """The answer has the event of this number: itself, or that there is one."""
    cursor = (command.reply or {}).get("cursor", {})
    found = cursor.get("firstBatch", []) + cursor.get("nextBatch", [])
    return any(event in (one["_id"], one.get("documentKey", {}).get("_id")) for one in found)


def settled(proxy):  # noqa: F811
    """The last two polls, if the next one is still far away."""
    polls = [one for one in proxy.since() if is_poll(one)][-2:]
    return polls if len(polls) == 2 and polls[1].at - polls[0].at > SETTLED_SECONDS else None


@pytest.mark.long
def test_a_stream_wakes_readers(mongo, proxy, tmp_path):  # noqa: F811
    """MongoDB's manual: a change stream tells of changes that a majority has. The event of another gateway is read when the
    stream has told of it, long before the next poll; without an answer of the stream it comes by that poll."""
    with serving(tmp_path, mongo.uri, database=NAME) as writer:
        write(writer)
        with serving(tmp_path, proxy.uri, database=NAME) as reader, stream(reader) as events:
            for woken in (True, False):
                eventually(lambda: settled(proxy), SECONDS, "a pause between polls")
                mark = proxy.mark()
                with proxy.fault("getMore", where=lambda one, woken=woken: not woken and is_stream(one), hold=True, times=None):
                    name = write(writer)[0]
                    # The first change may get its number after the reader has started.
                    told = next(event for event in iter(events.next, None) if event.json()["id"] == name)
                    seen = proxy.since(mark)
                read = next(one for one in seen if is_poll(one) and brings(one, int(told.id)))
                tell = [one for one in seen if is_stream(one) and brings(one, int(told.id)) and one.ended <= read.at]
                assert bool(tell) == woken
