# SPDX-License-Identifier: MIT
"""Every change of a notebook entry becomes exactly one reference in Redis, in order: with Redis away for thousands of writes,
gateways killed in the middle, and two gateways that deliver at the same time."""

import collections
import concurrent.futures
import json
import os
import pathlib
import threading

import httpx
import pytest

from conftest import Gateway, binary, eventually

SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
WAIT = 120
WRITERS = 8
UPDATES = 30 if SANITIZED else 250
CLUSTER_UPDATES = 10 if SANITIZED else 30


def lines(redis):
    """All lines of all days, oldest first."""
    days = sorted(redis.execute("KEYS", "aether:daily:*"))
    return [json.loads(line) for day in days for line in redis.execute("LRANGE", day, 0, -1)]


class Writer:
    """Writes to an entry of its own through gateways that may die: an answer that did not come leaves open whether it was
    done, which the entry's version tells."""

    def __init__(self, number, gateways):
        self.number = number
        self.gateways = gateways
        self.client = httpx.Client(timeout=WAIT, headers={"X-Notegate-Agent": f"writer-{number}"})
        self.key = None
        self.calls = 0
        self.acknowledged = 0

    def ask(self, tool, missing_ok=False, **arguments):
        self.calls += 1
        gateway = self.gateways[(self.number + self.calls) % len(self.gateways)]
        try:
            answer = self.client.post(f"{gateway.url}/v1/tools/{tool}", json=arguments)
        except httpx.HTTPError:
            return None
        if answer.status_code in (409, 503, 504):
            return None  # as above: the database was too slow, or another write too quick
        if answer.status_code == 404 and missing_ok:
            return None  # a try before it was done after all
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    def create(self):
        made = None
        while made is None:
            made = self.ask("notebook_create", collection="pages", title=f"Page {self.number}", content="0")
        self.key = {"notebook_id": made["notebook_id"], "collection": "pages"}

    def update(self, count):
        done = 0
        while done < count:
            answer = self.ask("notebook_update", **self.key, content=f"{done} of {count}")
            if answer is not None:
                done += 1
        self.acknowledged += done

    def delete(self):
        while not self.gone():
            self.ask("notebook_delete", missing_ok=True, **self.key)

    def gone(self):
        gateway = self.gateways[0]
        answer = gateway.call("notebook_read", self.key)
        return answer.status_code == 404


def backlog(gateway):
    text = gateway.client.get("/metrics").text
    return int(next(line for line in text.splitlines() if line.startswith("notegate_outbox_backlog ")).split()[1])


def check(redis, writers):
    """Of every version exactly one line, in order, and the hash is at the last."""
    events = lines(redis)
    ids = collections.Counter(event["event_id"] for event in events)
    assert not [name for name, times in ids.items() if times > 1], "a reference came twice"
    by_entry = collections.defaultdict(list)
    for event in events:
        if event["action"] != "opened":
            by_entry[event["notebook_id"]].append((event["version"], event["action"]))
    for writer in writers:
        found = by_entry[writer.key["notebook_id"]]
        versions = [version for version, _ in found]
        assert versions == list(range(1, len(versions) + 1)), versions
        assert len(versions) >= writer.acknowledged + 2, "an acknowledged write was lost"
        assert [action for _, action in found] == \
            ["created"] + ["updated"] * (len(found) - 2) + ["deleted"], found[-3:]
        names = redis.execute("HGETALL", f"aether:notebook:ref:{writer.key['notebook_id']}")
        reference = dict(zip(names[::2], names[1::2]))
        assert int(reference["version"]) == len(versions)
        assert reference["content"].startswith("[Notebook deleted] ")


def settled(redis, writers):
    actions = collections.Counter(event["notebook_id"] for event in lines(redis) if event["action"] == "deleted")
    return all(actions[writer.key["notebook_id"]] == 1 for writer in writers)


@pytest.mark.long
def test_away_for_thousands(servers, tmp_path):
    """Redis is away for thousands of writes, and the gateway is killed twice among them."""
    redis = servers.redis()
    sets = ["plugins=agent_notebook", "journal=redis", f"redis.uri={redis.uri}", "redis.timeout=1s"]
    gateways = [Gateway(tmp_path / "data", sets)]
    writers = [Writer(number, gateways) for number in range(WRITERS)]
    try:
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(Writer.create, writers))
            redis.kill()
            for _ in range(2):
                running = [pool.submit(writer.update, UPDATES // 2) for writer in writers]
                eventually(lambda: sum(writer.calls for writer in writers) > UPDATES, WAIT, "some calls")
                gateways[0].process.kill()
                gateways[0].process.wait()
                gateways[0].client.close()
                gateways[0] = Gateway(tmp_path / "data", sets)
                for one in running:
                    one.result()
            list(pool.map(Writer.delete, writers))
        assert backlog(gateways[0]) >= WRITERS * UPDATES
        assert gateways[0].client.get("/readyz").json()["backlog"] >= WRITERS * UPDATES
        redis.restart()
        eventually(lambda: settled(redis, writers), WAIT, "all deletions")
        eventually(lambda: backlog(gateways[0]) == 0, WAIT, "an empty backlog")
        check(redis, writers)
    finally:
        for writer in writers:
            writer.client.close()
        gateways[0].stop()


@pytest.fixture
def mongo(servers):
    if not (pathlib.Path(binary()).parents[1] / "modules" / "backends" / "mongo.so").exists():
        pytest.skip("the mongo backend is not built")
    return servers.mongo()


@pytest.mark.long
def test_two_deliver_at_once(servers, mongo, tmp_path):
    """Both gateways are asked all the time for what they know of, so that both deliver; the one that had the lease is
    killed and comes back, and Redis goes away in between."""
    redis = servers.redis()
    sets = ["plugins=agent_notebook", "documents=mongo", f"mongo.uri={mongo.uri}", "mongo.timeout=60s", "journal=redis",
            f"redis.uri={redis.uri}"]
    gateways = [Gateway(tmp_path / f"data-{number}", sets) for number in range(2)]
    writers = [Writer(number, gateways) for number in range(4)]
    stop = threading.Event()

    def ask_for_all(number):
        with httpx.Client(timeout=WAIT) as client:
            while not stop.is_set():
                try:
                    client.post(f"{gateways[number].url}/v1/tools/memory_timeline", json={"limit": 1})
                except httpx.HTTPError:
                    stop.wait(0.05)

    askers = [threading.Thread(target=ask_for_all, args=(number,)) for number in range(2)]
    try:
        for asker in askers:
            asker.start()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(Writer.create, writers))
            running = [pool.submit(writer.update, CLUSTER_UPDATES) for writer in writers]
            redis.kill()
            eventually(lambda: sum(writer.calls for writer in writers) > CLUSTER_UPDATES, WAIT, "some calls")
            redis.restart()
            gateways[0].process.kill()
            gateways[0].process.wait()
            gateways[0].client.close()
            gateways[0] = Gateway(tmp_path / "data-0", sets)
            for one in running:
                one.result()
            list(pool.map(Writer.delete, writers))
        eventually(lambda: settled(redis, writers), WAIT, "all deletions")
        for gateway in gateways:
            eventually(lambda: backlog(gateway) == 0, WAIT, "an empty backlog")
        check(redis, writers)
    finally:
        stop.set()
        for asker in askers:
            asker.join()
        for writer in writers:
            writer.client.close()
        for gateway in gateways:
            gateway.stop()
