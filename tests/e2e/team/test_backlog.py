# SPDX-License-Identifier: MIT
"""Gateways on one MongoDB that differ: one without the others' plugins and settings delivers their events; and what waits
for the journal is shown by all of them."""

import json
import pathlib

import pytest
from conftest import binary, eventually
from test_redis_journal import backlog, lines

WAIT = 120
CREATES = 120


@pytest.fixture
def mongo(servers):
    if not (pathlib.Path(binary()).parents[1] / "modules" / "backends" / "mongo.so").exists():
        pytest.skip("the mongo backend is not built")
    return servers.mongo()


@pytest.fixture
def start_on(mongo, start):
    def started(name, *sets):
        gateway = start(["documents=mongo", f"mongo.uri={mongo.uri}", "mongo.timeout=60s", *sets], name=name)
        eventually(lambda: gateway.client.get("/readyz").status_code == 200, WAIT, "readiness")
        return gateway

    return started


def create(gateway, title):
    answer = gateway.call("notebook_create", {"collection": "pages", "title": title, "content": "text\n"})
    assert answer.status_code == 200, answer.text


def test_owner_lacks_plugin_and_setting(start_on, servers):
    redis = servers.redis()
    journal = ["journal=redis", f"redis.uri={redis.uri}"]
    owner = start_on("owner", "plugins=notebook,file_editor", *journal)
    # It delivers: the mark is there.
    eventually(lambda: redis.execute("HKEYS", "aether:journal:marks"), WAIT, "the mark")
    other = start_on("other", "plugins=agent_notebook", "journal.record_calls=true", *journal)
    for number in range(20):
        create(other, f"page {number}")
    other.call("memory_log", {"content": "a memory"})
    eventually(lambda: len([line for line in lines(redis) if line["type"] == "notebook_ref"]) == 20, WAIT, "the references")
    eventually(lambda: "a memory" in [line.get("content") for line in lines(redis)], WAIT, "the memory")
    eventually(lambda: len([line for line in lines(redis) if "notebook_create" in json.dumps(line)]) >= 20, WAIT, "the calls")
    assert owner.process.poll() is None
    assert not other.logged("this one delivers now")


@pytest.mark.long
def test_backlog_of_all(start_on, servers):
    """Each gateway shows the backlog while Redis is away, also one that starts then, and none afterwards."""
    redis = servers.redis()
    journal = ["plugins=agent_notebook", "journal=redis", f"redis.uri={redis.uri}", "redis.timeout=1s"]
    first = start_on("first", *journal)
    second = start_on("second", *journal)
    eventually(lambda: redis.execute("HKEYS", "aether:journal:marks"), WAIT, "the mark")
    redis.kill()
    for number in range(CREATES):
        create((first, second)[number % 2], f"page {number}")
    third = start_on("third", *journal)
    for gateway in (first, second, third):
        eventually(lambda gateway=gateway: backlog(gateway) == CREATES, WAIT, "the backlog")
        assert gateway.client.get("/readyz").json()["backlog"] == CREATES
    redis.restart()
    eventually(lambda: len(lines(redis)) == CREATES, WAIT, "the references")
    for gateway in (first, second, third):
        eventually(lambda gateway=gateway: backlog(gateway) == 0, WAIT, "an empty backlog")


@pytest.mark.long
def test_flushed_with_two(start_on, servers):
    redis = servers.redis()
    journal = ["plugins=agent_notebook", "journal=redis", f"redis.uri={redis.uri}"]
    gateways = [start_on(name, *journal) for name in ("first", "second")]
    for number in range(CREATES):
        create(gateways[number % 2], f"page {number}")
        if number % 40 == 20:
            redis.execute("FLUSHALL")
    eventually(lambda: len(lines(redis)) >= CREATES, WAIT, "the references")
    for gateway in gateways:
        eventually(lambda gateway=gateway: backlog(gateway) == 0, WAIT, "an empty backlog")
    events = lines(redis)
    assert len(events) == len({event["event_id"] for event in events}) == CREATES
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)


@pytest.mark.long
def test_default_journal(start_on):
    """The journal in the documents: its backlog is shown while it is delivered, and the day keeps the order."""
    gateway = start_on("gateway", "plugins=agent_notebook")
    start_on("other", "plugins=agent_notebook")
    shown = 0
    for number in range(CREATES):
        create(gateway, f"page {number}")
        shown = max(shown, backlog(gateway))

    def timeline():
        return gateway.call("memory_timeline", {"limit": 1000}).json()["result"]

    told = eventually(lambda: (lambda day: day if "backlog" not in day else None)(timeline()), WAIT, "the timeline")
    titles = [event["title"] for event in reversed(told["events"])]
    assert titles == [f"page {number}" for number in range(CREATES)]
    eventually(lambda: backlog(gateway) == 0, WAIT, "an empty backlog")
    assert shown > 0
