# SPDX-License-Identifier: MIT
"""Three gateways on one MongoDB and one Redis: no acknowledged write is lost, whichever server dies, and all gateways
give the same answers."""

import collections
import concurrent.futures
import json
import threading
import uuid

import httpx
import pytest

from conftest import Gateway, eventually, whole
from prometheus_support import metrics_are_right
from sse_support import Stream

GATEWAYS = 3
AGENTS = 8
UPDATES = 15
# Of each agent while a gateway or the database dies.
UPDATES_KILLED = 30
# How long the databases may take to answer: they are slow ones, on busy machines.
TIMEOUT = 30
# Time while a server is away or frozen on purpose. A call may then take several of these, and is retried until it ends.
SHORT_TIMEOUT = 5
SHORT_CALL = 30
PATIENCE = 120
NOT_NOW = {"BACKEND_UNAVAILABLE", "TIMEOUT", "BUSY"}


class Cluster:
    """Gateways by number, each in a folder of its own."""

    def __init__(self, folder, mongo, redis, timeout):
        self.folder = folder
        self.mongo = mongo
        self.redis = redis
        self.timeout = timeout
        self.gateways = {}
        for number in range(GATEWAYS):
            self.start(number)

    def start(self, number, listen="127.0.0.1:0"):
        self.gateways[number] = Gateway(
            self.folder / f"gateway{number}",
            ["plugins=agent_notebook", "documents=mongo", f"mongo.uri={self.mongo.uri}", f"mongo.timeout={self.timeout}s",
             "journal=redis", f"redis.uri={self.redis.uri}", f"redis.timeout={self.timeout}s",
             *([f"limits.call_timeout={SHORT_CALL}s"] if self.timeout == SHORT_TIMEOUT else [])], listen=listen)
        return self.gateways[number]

    def wait_ready(self):
        # The stand-in for MongoDB is slow while three gateways make their indexes.
        for gateway in self.gateways.values():
            eventually(lambda gateway=gateway: gateway.client.get("/readyz").status_code == 200, PATIENCE, "readiness")

    def __getitem__(self, number):
        return self.gateways[number % GATEWAYS]

    def kill(self, number):
        self.gateways[number].process.kill()
        self.gateways[number].process.wait()

    def stop(self):
        for gateway in self.gateways.values():
            if gateway.process.poll() is None:
                gateway.process.kill()
                gateway.process.wait()
            gateway.client.close()


@pytest.fixture
def cluster(tmp_path, servers, request):
    made = Cluster(tmp_path, servers.mongo(), servers.redis(), getattr(request, "param", TIMEOUT))
    try:
        made.wait_ready()
        yield made
    finally:
        made.stop()


short_timeout = pytest.mark.parametrize("cluster", [SHORT_TIMEOUT], indirect=True)


def create(gateway):
    key = {"Idempotency-Key": uuid.uuid4().hex}

    def made():
        answer = gateway.call("notebook_create", {"collection": "pages", "title": "Shared", "content": "begin\n"}, key)
        assert answer.status_code == 200 or answer.json()["code"] in NOT_NOW, answer.text
        return answer.json().get("result")

    return eventually(made, PATIENCE, "a page")["notebook_id"]


def append(gateway, page, line, headers=None, client=None):
    return (client or gateway.client).post("/v1/tools/notebook_update", headers=headers,
                                           json={"collection": "pages", "notebook_id": page, "append": line + "\n"})


def read(gateway, page):
    answer = gateway.call("notebook_read", {"collection": "pages", "notebook_id": page})
    return answer.json()["result"] if answer.status_code == 200 else None


def lines_of(gateway, page):
    return eventually(lambda: read(gateway, page), PATIENCE, "reading")["content"].splitlines()


class Load:
    """Agents that append lines of their own, each through one gateway, and remember what became of them."""

    def __init__(self, cluster, page, count=UPDATES, headers=None):
        self.kept, self.refused, self.lost = [], [], []
        self.lock = threading.Lock()
        self.count = count
        self.threads = [threading.Thread(target=self._run, args=(cluster[number], page, number, headers or {}))
                        for number in range(AGENTS)]
        for thread in self.threads:
            thread.start()

    def _run(self, gateway, page, number, headers):
        with httpx.Client(base_url=gateway.url, timeout=PATIENCE, trust_env=False) as client:
            for index in range(self.count):
                line = f"agent {number} line {index}"
                try:
                    answer = append(gateway, page, line, {"X-Notegate-Agent": f"agent{number}", **headers}, client)
                except httpx.HTTPError:
                    with self.lock:
                        self.lost.append(line)
                    return  # its gateway is gone
                with self.lock:
                    if answer.status_code == 200:
                        self.kept.append(line)
                    else:
                        self.refused.append((line, answer))

    def wait_for(self, kept):
        eventually(lambda: len(self.kept) >= kept or not any(thread.is_alive() for thread in self.threads), PATIENCE,
                   f"{kept} updates")

    def wait_for_refused(self):
        eventually(lambda: self.refused or not any(thread.is_alive() for thread in self.threads), PATIENCE, "a refusal")

    def end(self):
        for thread in self.threads:
            thread.join(PATIENCE * 2)
            assert not thread.is_alive(), "an agent hangs"
        return self


def expect_kept(cluster, page, load, numbers=range(GATEWAYS)):
    """Every acknowledged line is there once, on every gateway; no line is there twice."""
    for number in numbers:
        found = collections.Counter(lines_of(cluster[number], page))
        assert [line for line in load.kept if found[line] != 1] == []
        assert [line for line, count in found.items() if count > 1] == []


def test_one_document_through_all(cluster):
    page = create(cluster[0])
    load = Load(cluster, page).end()
    assert [answer.text for _, answer in load.refused] == []
    assert len(load.kept) == AGENTS * UPDATES
    expect_kept(cluster, page, load)
    entry = eventually(lambda: read(cluster[2], page), PATIENCE, "reading")
    assert entry["metadata"]["version"] == AGENTS * UPDATES + 1
    history = cluster[1].call("notebook_history", {"collection": "pages", "notebook_id": page, "limit": 100}).json()
    versions = [item["version"] for item in history["result"]["history"]]
    assert versions == list(range(AGENTS * UPDATES + 1, AGENTS * UPDATES + 1 - len(versions), -1))
    for number in range(AGENTS):
        own = [line for line in lines_of(cluster[0], page) if line.startswith(f"agent {number} ")]
        assert own == [f"agent {number} line {index}" for index in range(UPDATES)]


def events(gateway, count, since=0):
    """So many events of pages."""
    with Stream(gateway.url + "/v1/events", {"since": since, "collection": "pages"}) as stream:
        return [(int(event.id), event.json()["id"], event.json()["revision"]) for event in stream.take(count, PATIENCE)]


@pytest.mark.long
def test_events_have_one_order(cluster):
    pages = [create(cluster[number]) for number in range(GATEWAYS)]
    loads = [Load(cluster, page, 8) for page in pages]
    for load in loads:
        load.end()
        assert len(load.kept) == AGENTS * 8
    total = GATEWAYS * (AGENTS * 8 + 1)
    told = [events(cluster[number], total) for number in range(GATEWAYS)]
    assert told[0] == told[1] == told[2]
    assert [seq for seq, _, _ in told[0]] == sorted({seq for seq, _, _ in told[0]})
    for page in pages:
        assert [revision for _, name, revision in told[0] if name == page] == list(range(1, AGENTS * 8 + 2))
    # A reader that continues at another gateway misses no event and gets none twice.
    middle = told[0][total // 2][0]
    assert events(cluster[1], total - total // 2 - 1, middle) == told[0][total // 2 + 1:]


@pytest.mark.long
def test_references_are_complete(cluster):
    page = create(cluster[0])
    load = Load(cluster, page, 5).end()
    assert len(load.kept) == AGENTS * 5

    def referenced():
        days = [key for key in cluster.redis.execute("KEYS", "aether:daily:*")]
        texts = [text for key in days for text in cluster.redis.execute("LRANGE", key, 0, -1)]
        entries = [json.loads(text) for text in texts]
        return sorted(entry["version"] for entry in entries
                      if entry.get("notebook_id") == page and entry["action"] in ("created", "updated"))

    eventually(lambda: len(referenced()) >= AGENTS * 5 + 1, PATIENCE, "all references")
    assert referenced() == list(range(1, AGENTS * 5 + 2))


def test_a_killed_gateway(cluster):
    page = create(cluster[0])
    load = Load(cluster, page, UPDATES_KILLED)
    load.wait_for(UPDATES_KILLED)
    cluster.kill(1)
    load.end()
    assert [answer.text for _, answer in load.refused] == []
    # Those of the other gateways all went through, while it was away.
    others = [number for number in range(AGENTS) if number % GATEWAYS != 1]
    for number in others:
        assert sum(line.startswith(f"agent {number} ") for line in load.kept) == UPDATES_KILLED
    expect_kept(cluster, page, load, (0, 2))
    # Unacknowledged writes exist only if they were in flight when it died.
    found = set(lines_of(cluster[0], page)) - {"begin"} - set(load.kept)
    assert found <= set(load.lost)
    # A gateway that comes back continues, and the others got its events.
    cluster.start(1)
    expect_kept(cluster, page, load)
    version = eventually(lambda: read(cluster[1], page), PATIENCE, "reading")["metadata"]["version"]
    told = events(cluster[2], version)
    assert [revision for _, _, revision in told] == list(range(1, version + 1))


@pytest.mark.long
@short_timeout
def test_a_killed_database(cluster):
    page = create(cluster[0])
    load = Load(cluster, page, UPDATES_KILLED)
    load.wait_for(UPDATES_KILLED)
    cluster.mongo.kill()
    load.wait_for_refused()
    cluster.mongo.restart()
    load.end()
    assert {answer.json()["code"] for _, answer in load.refused} <= NOT_NOW
    assert all(answer.headers.get("Retry-After") for _, answer in load.refused if answer.status_code == 503)
    for number in range(GATEWAYS):
        key = {"Idempotency-Key": f"again-{number}"}  # an unacknowledged write may have been done
        eventually(lambda gateway=cluster[number]: append(gateway, page, f"again {number}", key).status_code == 200, PATIENCE,
                   "a write after the restart")
    expect_kept(cluster, page, load)


@pytest.mark.long
@short_timeout
def test_a_frozen_database(cluster):
    page = create(cluster[0])
    cluster.mongo.freeze()
    try:
        for number in range(GATEWAYS):
            answer = append(cluster[number], page, "while frozen")
            assert answer.status_code in (503, 504), answer.text
            assert answer.json()["code"] in NOT_NOW
            ready = cluster[number].client.get("/readyz", timeout=PATIENCE)
            assert ready.status_code == 503
            assert ready.headers["Retry-After"]
            assert cluster[number].client.get("/healthz").status_code == 200
    finally:
        cluster.mongo.thaw()
    for number in range(GATEWAYS):
        gateway = cluster[number]
        eventually(lambda: gateway.client.get("/readyz").status_code == 200, PATIENCE, "readiness")
        eventually(lambda: append(gateway, page, f"after {number}").status_code == 200, PATIENCE, "a write")
    lines = lines_of(cluster[0], page)
    assert all(lines.count(f"after {number}") >= 1 for number in range(GATEWAYS))


@pytest.mark.long
def test_the_journal_away(cluster):
    page = create(cluster[0])
    cluster.redis.kill()
    load = Load(cluster, page, 3).end()
    assert len(load.kept) == AGENTS * 3
    for number in range(GATEWAYS):
        gateway = cluster[number]
        ready = eventually(lambda: (lambda answer: answer if answer.json()["status"] == "degraded" else None)(
            gateway.client.get("/readyz")), PATIENCE, "degraded")
        assert ready.status_code == 200
        assert "the journal takes no events" in ready.json()["reasons"][0]
        metrics_are_right(gateway)
    cluster.redis.restart()
    for number in range(GATEWAYS):
        gateway = cluster[number]
        eventually(lambda: gateway.client.get("/readyz").json()["status"] == "ready", PATIENCE, "ready")


def test_one_idempotency_key_at_once(cluster):
    page = create(cluster[0])
    for index in range(5):
        answers = []
        key = {"Idempotency-Key": f"key-{index}"}
        threads = [threading.Thread(target=lambda number=number: answers.append(
            append(cluster[number], page, f"once {index}", key, httpx.Client(base_url=cluster[number].url, timeout=PATIENCE))))
            for number in range(GATEWAYS * 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [answer.status_code for answer in answers] == [200] * len(threads)
        assert len({answer.text for answer in answers}) == 1
    lines = lines_of(cluster[1], page)
    assert lines == ["begin"] + [f"once {index}" for index in range(5)]
    refused = append(cluster[2], page, "another", {"Idempotency-Key": "key-0"})
    assert refused.json()["code"] == "IDEMPOTENCY_KEY_REUSED"


def test_keys_hold_everywhere(cluster):
    local = httpx.Client(transport=httpx.HTTPTransport(uds=cluster[0].socket_path), base_url="http://localhost", timeout=PATIENCE)
    made = local.post("/v1/keys", json={"agent": "someone"})
    assert made.status_code in (200, 201), made.text
    key = {"Authorization": "Bearer " + made.json()["key"]}
    for number in range(GATEWAYS):
        gateway = cluster[number]
        eventually(lambda: gateway.client.get("/v1/tools", headers=key).status_code == 200, PATIENCE, "the key")
        assert gateway.client.get("/v1/tools").status_code == 401
    gone = local.delete("/v1/keys/" + made.json()["id"] + "?force=true")
    assert gone.status_code in (200, 204), gone.text
    for number in range(GATEWAYS):
        gateway = cluster[number]
        eventually(lambda: gateway.client.get("/v1/tools", headers=key).status_code == 401, PATIENCE, "the revocation")


def test_changes_of_keys_hold_everywhere(cluster):
    """A key is changed at one gateway after the other; two admins change it at the same time, each at one of their own."""
    locals_ = [httpx.Client(transport=httpx.HTTPTransport(uds=cluster[number].socket_path), base_url="http://localhost",
                            timeout=PATIENCE) for number in range(GATEWAYS)]
    kept, made = (locals_[0].post("/v1/keys", json={"agent": name}).json() for name in ("kept", "someone"))
    headers = {"Authorization": "Bearer " + made["key"]}

    def change(number, **members):
        answer = locals_[number].patch("/v1/keys/" + made["id"], json=members)
        assert answer.status_code == 200, answer.text

    def everywhere(what, holds):
        for number in range(GATEWAYS):
            eventually(lambda number=number: holds(number), PATIENCE, what)

    def status(number):
        return cluster[number].client.get("/v1/tools", headers=headers).status_code

    def one_of(number):
        keys = locals_[number].get("/v1/keys", params={"name": made["id"]}).json()["keys"]
        return keys[0] if keys else {}

    everywhere("the key", lambda number: status(number) == 200)
    with Stream(f"{cluster[1].url}/v1/events", headers=headers) as stream:
        change(0, paused=True)
        everywhere("the pause", lambda number: status(number) == 401)
        assert [event.json()["reason"] for event in stream.rest()] == ["key_paused"]
    change(1, paused=False)
    everywhere("the end of the pause", lambda number: status(number) == 200)
    with Stream(f"{cluster[0].url}/v1/events", headers=headers) as stream:
        change(2, role="reader", no_tools=["memory_*"])
        assert [event.json()["reason"] for event in stream.rest()] == ["key_changed"]
    everywhere("the role", lambda number: cluster[number].call("memory_log", {"content": "x", "source": "note"},
                                                               headers).json().get("code") == "FORBIDDEN")
    with concurrent.futures.ThreadPoolExecutor(GATEWAYS) as pool:
        for number in range(5):
            wanted = [{"note": f"round {number}"}, {"rate": number + 1}, {"spaces": ["shared", f"team{number}"]}]
            list(pool.map(lambda at: change(at, **wanted[at]), range(GATEWAYS)))
            whole_key = {name: value for members in wanted for name, value in members.items()}
            everywhere("all members", lambda at, whole_key=whole_key: whole_key.items() <= one_of(at).items())
    for one in (made, kept):
        assert locals_[0].delete(f"/v1/keys/{one['id']}?force=true").status_code == 200


@pytest.mark.long
def test_the_last_two_keys_at_two_gateways(cluster):
    """Each revokes another one at the same time: one key stays."""
    locals_ = [httpx.Client(transport=httpx.HTTPTransport(uds=cluster[number].socket_path), base_url="http://localhost",
                            timeout=PATIENCE) for number in range(2)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            ids = []
            for local in locals_:
                made = local.post("/v1/keys", json={"agent": "someone"})
                assert made.status_code == 201, made.text
                ids.append(made.json()["id"])
            for local in locals_:
                eventually(lambda: {key["id"] for key in local.get("/v1/keys").json()["keys"]} == set(ids), PATIENCE, "both keys")
            answers = list(pool.map(lambda local, name: local.delete(f"/v1/keys/{name}"), locals_, ids))
            assert sorted(answer.status_code for answer in answers) == [200, 409], [answer.text for answer in answers]
            for name in ids:
                assert locals_[0].delete(f"/v1/keys/{name}?force=true").status_code == 200
            for local in locals_:
                eventually(lambda: local.get("/v1/keys").json()["keys"] == [], PATIENCE, "no key")


@pytest.mark.long
@short_timeout
def test_a_start_without_the_database(cluster):
    page = create(cluster[0])
    cluster.kill(1)
    cluster.mongo.kill()
    late = cluster.start(1)
    answer = append(late, page, "too early")
    assert answer.status_code == 503, answer.text
    assert answer.headers["Retry-After"]
    assert late.client.get("/readyz", timeout=PATIENCE).status_code == 503
    assert late.client.get("/healthz").status_code == 200
    cluster.mongo.restart()
    eventually(lambda: append(late, page, "in time").status_code == 200, PATIENCE, "a write")
    eventually(lambda: late.client.get("/readyz").status_code == 200, PATIENCE, "readiness")
    assert "too early" not in lines_of(late, page)


def asked(gateway, tool, arguments=None):
    """The answer, also where the databases are slow for a moment."""
    def answered():
        answer = gateway.call(tool, arguments or {})
        assert answer.status_code == 200 or answer.json()["code"] in NOT_NOW, answer.text
        return answer.json().get("result")

    return eventually(answered, PATIENCE, tool)


def contents(gateway):
    """Answers of recall and timeline, both without a backlog."""
    found = []
    for tool, arguments, rows in (("memory_recall", {"query": "", "limit": 1000}, "results"),
                                  ("memory_timeline", {"limit": 1000}, "events")):
        told = whole(lambda: asked(gateway, tool, arguments), PATIENCE)
        found.append({row["content"] for row in told[rows] if row["type"] == "memory"})
    assert found[0] == found[1]
    return found[0]


def test_what_one_gateway_answered_the_others_remember_at_once(cluster):
    """Numbers are given later than answers: recall, the timeline and checkpoints wait for them."""
    create(cluster[0])
    said = set()
    for number in range(2 * GATEWAYS):
        asked(cluster[number], "memory_log", {"content": f"memory {number}"})
        said.add(f"memory {number}")
        assert contents(cluster[number + 1]) == said
    for number in range(GATEWAYS):
        asked(cluster[number], "memory_log", {"content": f"before {number}"})
        point = asked(cluster[number + 1], "checkpoint_snapshot")["checkpoint_id"]
        said.add(f"before {number}")
        asked(cluster[number + 1], "memory_log", {"content": f"after {number}"})
        undo = asked(cluster[number + 2], "checkpoint_restore", {"checkpoint_id": point})["previous_checkpoint_id"]
        assert contents(cluster[number]) == said
        asked(cluster[number], "checkpoint_restore", {"checkpoint_id": undo})
        said.add(f"after {number}")
        assert contents(cluster[number + 2]) == said
