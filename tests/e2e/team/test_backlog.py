# SPDX-License-Identifier: MIT
"""Gateways on one MongoDB that differ: one without the others' plugins and settings delivers their events; and what waits
for the journal is shown by all of them."""

import json
import pathlib

import pytest
from conftest import binary, eventually
from mongo_proxy import Proxy
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
    def started(name, *sets, uri=mongo.uri, timeout="60s"):
        gateway = start(["documents=mongo", f"mongo.uri={uri}", f"mongo.timeout={timeout}", *sets], name=name)
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

    def missing():
        titles = [line["title"] for line in lines(redis) if line["type"] == "notebook_ref"]
        marks = redis.execute("HGETALL", "aether:journal:marks")
        return f"the references (there: {titles}, marks: {marks}, owner: {owner.errors}, other: {other.errors})"

    eventually(lambda: len([line for line in lines(redis) if line["type"] == "notebook_ref"]) == 20, WAIT, missing)
    eventually(lambda: "a memory" in [line.get("content") for line in lines(redis)], WAIT, "the memory")
    eventually(lambda: len([line for line in lines(redis) if "notebook_create" in json.dumps(line)]) >= 20, WAIT, "the calls")
    assert owner.process.poll() is None
    assert not other.logged("this one delivers now")


@pytest.mark.parametrize("added", ["at the start", "by a reload"])
def test_other_gateways_do_not_know_a_collection(start_on, start, mongo, servers, tmp_path, added):
    """A gateway that could not enter its collections into the list of all: their changes wait, so that none is passed by."""
    redis = servers.redis()
    journal = ["journal=redis", f"redis.uri={redis.uri}"]
    start_on("owner", "plugins=notebook", *journal)
    eventually(lambda: redis.execute("HKEYS", "aether:journal:marks"), WAIT, "the mark")
    proxy, config = Proxy(mongo.port), tmp_path / "notegate.yaml"
    try:
        plugins = ["notebook", "agent_notebook"]
        config.write_text(f"plugins: {json.dumps(plugins[:1] if added == 'by a reload' else plugins)}\n")

        def begin():
            return start(["documents=mongo", f"mongo.uri={proxy.uri}", "mongo.timeout=2s", "journal.record_calls=true", *journal],
                         args=["--config", str(config)], name="other")

        other = begin() if added == "by a reload" else None
        with proxy.fault(("insert", "update", "findAndModify"), times=None, cut="before",
                         where=lambda command: "journal_state" in str(command.body) and "referenced" in str(command.body)):
            other = other or begin()
            config.write_text(f"plugins: {json.dumps(plugins)}\n")
            assert added == "at the start" or other.reload()["changes"]
            text = "other gateways do not know the collections of this one yet"
            eventually(lambda: text in other.client.get("/readyz").text, WAIT, "the reason")
            assert other.client.get("/readyz").status_code == 503
            refused = other.call("notebook_create", {"collection": "pages", "title": "early", "content": "text\n"})
            assert refused.status_code == 503, refused.text
            assert "do not know the collection pages yet and would skip its events; try again in a second" in refused.text
            # What has no references is written.
            eventually(lambda: other.call("notebook", {"mode": "create", "name": "n", "newStr": "x"}).status_code == 200, WAIT,
                       "a named text")
        eventually(lambda: other.client.get("/readyz").status_code == 200, WAIT, "readiness")
        create(other, "later")

        def arrived(kind, word):
            return [line for line in lines(redis) if line["type"] == kind and word in json.dumps(line)]

        eventually(lambda: arrived("notebook_ref", "later"), WAIT, lambda: f"the reference {lines(redis)}")
        # Calls are recorded, also those of that time.
        eventually(lambda: arrived("memory", "early"), WAIT, lambda: f"the record of the call {lines(redis)}")
        assert not arrived("notebook_ref", "early")
        other.stop()
    finally:
        proxy.close()


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
